//! A directory of its own for every test, and the command run in it.

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A directory that is gone when the test is over.
pub(crate) struct Sandbox(TempDir);

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a directory for the test"))
    }

    /// With these files in it.
    pub(crate) fn with(files: &[(&str, &[u8])]) -> Self {
        let sandbox = Self::new();
        for (name, bytes) in files {
            std::fs::write(sandbox.path(name), bytes).expect("a file for the test");
        }
        sandbox
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("the command wrote the file")
    }

    /// Runs the command here.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.run_with_input(args, b"")
    }

    /// Runs the command here with something on standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(args);
        let output = command.write_stdin(input).output();
        Ran::from(output.expect("the command runs"))
    }

    /// Runs the command here with this many columns, or in a pipe that states none.
    pub(crate) fn run_in_columns(&self, args: &[&str], columns: Option<usize>) -> Ran {
        let mut command = self.command(args);
        let columns = columns.map(|columns| ("COLUMNS", columns.to_string()));
        let output = command.envs(columns).output();
        Ran::from(output.expect("the command runs"))
    }

    /// Runs the command in a directory below this one, with these variables and no others. It searches a configuration.
    pub(crate) fn run_in(&self, directory: &str, variables: &[(&str, &str)], args: &[&str]) -> Ran {
        let mut command = self.command(args);
        let command = command.env_clear().envs(variables.iter().copied());
        let output = command.current_dir(self.path(directory)).output();
        Ran::from(output.expect("the command runs"))
    }

    /// Does not search a configuration: one above the directory of a test is not its own.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("cupel").expect("the command is built");
        command.current_dir(self.0.path()).env_clear().args(args);
        command.env("CUPEL_CONFIG", "");
        command
    }
}

/// How the command ended and what it wrote.
pub(crate) struct Ran {
    pub(crate) exit: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the command writes UTF-8");
        Self {
            exit: output.status.code().expect("the command ends by itself"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

impl Ran {
    /// The answer of a run that ended well.
    #[track_caller]
    pub(crate) fn ok(&self) -> &str {
        assert_eq!(self.exit, 0, "{}", self.err);
        &self.out
    }

    /// The answer as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.ok()).expect("the answer is JSON")
    }
}

/// A file that comes with the project.
pub(crate) fn example(name: &str) -> String {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    examples.join(name).display().to_string()
}
