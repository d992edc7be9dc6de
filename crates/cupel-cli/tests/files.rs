//! Files that the command writes: the old content or the new one, never half of it, and what the file is stays.
#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::sandbox::{Sandbox, example};

/// Every option that names a file to write, as a command that writes `out`.
fn writers() -> [Vec<String>; 7] {
    let chat = example("agent-session.json");
    let items = example("items.json");
    let line = |words: &str, input: &str| {
        let words = words.split(' ');
        let words = words.map(|word| if word == "IN" { input } else { word });
        words.map(str::to_owned).collect()
    };
    [
        line("fit IN --budget 2k -o out", &chat),
        line("explain IN --budget 2k -o out", &chat),
        line("fit IN --budget 2k --state out", &chat),
        line("fit IN --budget 2k --report out", &chat),
        line("select IN --budget 150 --report out", &items),
        line("explain IN --budget 150 --html out", &items),
        line("batch IN out", &example("requests.jsonl")),
    ]
}

fn args(line: &[String]) -> Vec<&str> {
    line.iter().map(String::as_str).collect()
}

/// Returns the names in the directory of a test.
fn names(sandbox: &Sandbox) -> Vec<String> {
    let entries = fs::read_dir(sandbox.path("")).expect("the directory of the test");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

fn mode(sandbox: &Sandbox, name: &str) -> u32 {
    let metadata = fs::symlink_metadata(sandbox.path(name)).expect("a file");
    metadata.permissions().mode() & 0o7777
}

/// Writes the file that is replaced later. The command does it, because a state must be a valid one.
fn prepare(sandbox: &Sandbox, line: &[String], name: &str) {
    sandbox.run(&args(line)).ok();
    fs::rename(sandbox.path("out"), sandbox.path(name)).expect("the command wrote the file");
}

#[test]
fn a_replaced_file_keeps_its_mode() {
    for line in writers() {
        let sandbox = Sandbox::new();
        prepare(&sandbox, &line, "out");
        let before = fs::metadata(sandbox.path("out")).expect("the file").ino();
        fs::set_permissions(sandbox.path("out"), Permissions::from_mode(0o600)).expect("chmod");
        sandbox.run(&args(&line)).ok();
        assert_eq!(mode(&sandbox, "out"), 0o600, "{line:?}");
        let after = fs::metadata(sandbox.path("out")).expect("the file").ino();
        assert_ne!(before, after, "{line:?}: written in place");
        assert_eq!(names(&sandbox), ["out"], "{line:?}");
    }
}

#[test]
fn a_symbolic_link_stays_and_its_target_is_replaced() {
    for line in writers() {
        let sandbox = Sandbox::new();
        let elsewhere = Sandbox::new();
        prepare(&sandbox, &line, "plain");
        let expected = sandbox.read("plain");
        // A chain: a link to a link with a relative path, to a file in another directory.
        let target = elsewhere.path("target");
        fs::rename(sandbox.path("plain"), &target).expect("rename");
        fs::set_permissions(&target, Permissions::from_mode(0o640)).expect("chmod");
        let before = fs::metadata(&target).expect("the target").ino();
        symlink(&target, sandbox.path("second")).expect("a link");
        symlink("second", sandbox.path("out")).expect("a link");
        sandbox.run(&args(&line)).ok();
        let link = fs::read_link(sandbox.path("out")).expect("still a link");
        assert_eq!(link.to_str(), Some("second"), "{line:?}");
        assert_eq!(names(&sandbox), ["out", "second"], "{line:?}");
        assert_eq!(names(&elsewhere), ["target"], "{line:?}");
        assert_eq!(mode(&elsewhere, "target"), 0o640, "{line:?}");
        assert_ne!(before, fs::metadata(&target).expect("the target").ino());
        if !line
            .iter()
            .any(|word| ["--report", "--state"].contains(&&**word))
        {
            assert_eq!(elsewhere.read("target"), expected, "{line:?}");
        }
    }
}

#[test]
fn a_link_to_nothing_gets_a_target() {
    let sandbox = Sandbox::new();
    symlink("new.json", sandbox.path("out")).expect("a link");
    sandbox.run(&args(&writers()[0])).ok();
    assert_eq!(names(&sandbox), ["new.json", "out"]);
    assert!(sandbox.path("out").is_symlink());
    assert!(sandbox.read("new.json").contains("messages"));
    // Links in a circle have no target.
    symlink("b", sandbox.path("a")).expect("a link");
    symlink("a", sandbox.path("b")).expect("a link");
    let ran = sandbox.run(&["policy", "list", "-o", "a"]);
    assert_eq!(ran.exit, 2);
    assert!(ran.err.contains("cannot write a: "), "{}", ran.err);
}

#[test]
fn a_state_with_summaries_keeps_mode_and_link() {
    let sandbox = Sandbox::new();
    let chat = example("agent-session.json");
    let line = |command: &'static str| {
        let line = "fit IN --budget 2k --state s.state --summarize".replace("IN", &chat);
        let mut line: Vec<String> = line.split(' ').map(str::to_owned).collect();
        line.push(command.to_owned());
        line
    };
    sandbox.run(&args(&line("echo one"))).ok();
    assert!(sandbox.read("s.state").contains("\"one\""));
    fs::rename(sandbox.path("s.state"), sandbox.path("state")).expect("rename");
    fs::set_permissions(sandbox.path("state"), Permissions::from_mode(0o600)).expect("chmod");
    symlink("state", sandbox.path("s.state")).expect("a link");
    sandbox.run(&args(&line("echo two"))).ok();
    assert_eq!(names(&sandbox), ["s.state", "state"]);
    assert!(sandbox.path("s.state").is_symlink());
    assert_eq!(mode(&sandbox, "state"), 0o600);
    let state = sandbox.read("state");
    assert!(
        state.contains("\"two\"") && !state.contains("\"one\""),
        "{state}"
    );
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    let Some(user) = Unprivileged::new() else {
        return;
    };
    user.write("out", "old", 0o444);
    let output = user.run("policy list -o out");
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("cannot write out: permission denied"),
        "{told}"
    );
    assert_eq!(user.sandbox.read("out"), "old");
}

#[test]
fn a_writable_file_in_a_read_only_directory_is_written_in_place() {
    let Some(user) = Unprivileged::new() else {
        return;
    };
    user.write("out", &"old ".repeat(10_000), 0o600);
    let before = fs::metadata(user.path("out")).expect("the file").ino();
    fs::set_permissions(user.path(""), Permissions::from_mode(0o555)).expect("chmod");
    let output = user.run("policy show rag -o out");
    let none = user.run("policy show rag -o new");
    fs::set_permissions(user.path(""), Permissions::from_mode(0o755)).expect("chmod");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        fs::metadata(user.path("out")).expect("the file").ino(),
        before
    );
    let rag = user.run("policy show rag").stdout;
    assert_eq!(user.sandbox.read("out").as_bytes(), rag);
    let told = String::from_utf8_lossy(&none.stderr);
    assert!(
        told.contains("cannot write new: permission denied"),
        "{told}"
    );
}

#[test]
fn a_replaced_file_keeps_its_owner() {
    let Some(user) = Unprivileged::new() else {
        return;
    };
    if user.command.is_none() {
        return;
    }
    user.write("out", "old", 0o4640);
    user.sandbox.run(&["policy", "list", "-o", "out"]).ok();
    let owner = || {
        let metadata = fs::metadata(user.path("out")).expect("the file");
        (metadata.uid(), metadata.gid())
    };
    assert_eq!(owner(), (NOBODY, NOBODY));
    assert_eq!(mode(&user.sandbox, "out"), 0o4640);
    // Nobody may write this file of root, but cannot make another one that belongs to root.
    chown(user.path("out"), Some(0), Some(0)).expect("chown");
    fs::set_permissions(user.path("out"), Permissions::from_mode(0o666)).expect("chmod");
    let output = user.run("policy show rag -o out");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(owner(), (0, 0));
    assert!(user.sandbox.read("out").contains("scorer"));
    assert_eq!(names(&user.sandbox), ["out"]);
}

/// The user that root runs the command as.
const NOBODY: u32 = 65_534;

/// A directory in which the command runs as a user whom permissions bind. Root ignores them.
struct Unprivileged {
    sandbox: Sandbox,
    /// A copy of the command that anyone may run, if the tests run as root.
    command: Option<Sandbox>,
}

impl Unprivileged {
    /// Returns `None` for root without `setpriv` (util-linux), which cannot test this.
    fn new() -> Option<Self> {
        let sandbox = Sandbox::new();
        let is_root = fs::metadata(sandbox.path("")).expect("the directory").uid() == 0;
        if !is_root {
            return Some(Self {
                sandbox,
                command: None,
            });
        }
        Command::new("setpriv").arg("--version").output().ok()?;
        let command = Sandbox::new();
        fs::copy(cupel(), command.path("cupel")).expect("a copy of the command");
        fs::set_permissions(command.path(""), Permissions::from_mode(0o755)).expect("chmod");
        chown(sandbox.path(""), Some(NOBODY), Some(NOBODY)).expect("chown");
        Some(Self {
            sandbox,
            command: Some(command),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.sandbox.path(name)
    }

    /// Writes a file of the user.
    fn write(&self, name: &str, text: &str, mode: u32) {
        let path = self.path(name);
        fs::write(&path, text).expect("a file");
        if self.command.is_some() {
            chown(&path, Some(NOBODY), Some(NOBODY)).expect("chown");
        }
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("chmod");
    }

    fn run(&self, line: &str) -> Output {
        let mut command = match &self.command {
            None => Command::new(cupel()),
            Some(copy) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
                command.arg(copy.path("cupel"));
                command
            }
        };
        let command = command.args(line.split(' ')).current_dir(self.path(""));
        command.output().expect("the command runs")
    }
}

fn cupel() -> PathBuf {
    assert_cmd::cargo::cargo_bin("cupel")
}

/// Runs the command with a limit of 4 KiB for the files that it writes, which ends a write as a full disk does.
fn run_limited(sandbox: &Sandbox, line: &str) -> Output {
    // Blocks of 512 bytes (POSIX). The signal of an exceeded limit is ignored, so the write fails.
    let script = format!(
        "trap '' XFSZ; ulimit -f 8; exec {} {line}",
        cupel().display()
    );
    let mut command = Command::new("sh");
    let command = command.args(["-c", &script]).current_dir(sandbox.path(""));
    command.output().expect("the command runs")
}

/// A chat of several megabytes.
fn large_chat() -> String {
    let text = "a long line of a log file that repeats ".repeat(1_000);
    let message = |index: usize| {
        let role = if index.is_multiple_of(2) {
            "user"
        } else {
            "assistant"
        };
        serde_json::json!({"role": role, "content": format!("{index} {text}")})
    };
    let messages: Vec<_> = (0..60).map(message).collect();
    serde_json::json!({"messages": messages}).to_string()
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let chat = large_chat();
    for line in [
        "fit old.json --encoding heuristic --budget 200k -o old.json",
        "fit chat.json --encoding heuristic --budget 200k -q --report old.json",
        "explain chat.json --encoding heuristic --budget 200k --html old.json",
        "batch requests.jsonl old.json --encoding heuristic --budget 200k",
    ] {
        let sandbox = Sandbox::with(&[
            ("chat.json", chat.as_bytes()),
            ("old.json", chat.as_bytes()),
            ("requests.jsonl", chat.as_bytes()),
        ]);
        let ran = run_limited(&sandbox, line);
        let told = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{line}: {told}");
        assert!(
            told.contains("cannot write old.json: file too large"),
            "{line}: {told}"
        );
        assert!(
            told.contains("help: the file is unchanged"),
            "{line}: {told}"
        );
        assert!(sandbox.read("old.json") == chat, "{line}: the chat is lost");
        assert_eq!(
            names(&sandbox),
            ["chat.json", "old.json", "requests.jsonl"],
            "{line}"
        );
    }
    // A state is small: the limit is smaller.
    let sandbox = Sandbox::new();
    let line = format!(
        "fit {} --budget 2k --state s.state",
        example("agent-session.json")
    );
    sandbox.run(&line.split(' ').collect::<Vec<_>>()).ok();
    let state = sandbox.read("s.state");
    let script = format!(
        "trap '' XFSZ; ulimit -f 0; exec {} {line} -q",
        cupel().display()
    );
    let mut command = Command::new("sh");
    let command = command.args(["-c", &script]).current_dir(sandbox.path(""));
    let ran = command.output().expect("the command runs");
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(told.contains("cannot write s.state: "), "{told}");
    assert_eq!(sandbox.read("s.state"), state);
    assert_eq!(names(&sandbox), ["s.state"]);
}

/// `kill -9` as soon as anything about the file or its directory changes, which is in the middle of the write.
#[test]
fn a_killed_command_leaves_the_old_file_or_the_new_one() {
    const RUNS: usize = 5;
    let chat = large_chat();
    for line in [
        "fit chat.json --encoding heuristic --budget 200k -o chat.json",
        "explain requests.jsonl --encoding heuristic --budget 200k --html chat.json",
        "batch requests.jsonl chat.json --encoding heuristic --budget 200k",
    ] {
        let whole = Sandbox::with(&[
            ("chat.json", chat.as_bytes()),
            ("requests.jsonl", chat.as_bytes()),
        ]);
        whole.run(&line.split(' ').collect::<Vec<_>>()).ok();
        let new = whole.read("chat.json");
        assert!(new != chat);
        let mut killed = 0;
        for run in 0..RUNS {
            let sandbox = Sandbox::with(&[
                ("chat.json", chat.as_bytes()),
                ("requests.jsonl", chat.as_bytes()),
            ]);
            let mut child = Command::new(cupel())
                .args(line.split(' '))
                .current_dir(sandbox.path(""))
                .stderr(Stdio::null())
                .spawn()
                .expect("the command starts");
            let is_running = loop {
                if child.try_wait().expect("the command runs").is_some() {
                    break false;
                }
                let length = fs::metadata(sandbox.path("chat.json")).map(|it| it.len());
                if names(&sandbox).len() > 2 || length.ok() != Some(chat.len() as u64) {
                    break true;
                }
            };
            // Later runs are killed later.
            std::thread::sleep(Duration::from_micros(700 * run as u64));
            child.kill().expect("the command is killed");
            let status = child.wait().expect("the command ends");
            killed += usize::from(is_running && status.code().is_none());
            let left = sandbox.read("chat.json");
            assert!(
                left == chat || left == new,
                "{line}: run {run} left {} bytes; before {}, after {}",
                left.len(),
                chat.len(),
                new.len()
            );
        }
        assert!(killed > 0, "{line}: every run ended before it was killed");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_not_a_file_is_written_directly() {
    let sandbox = Sandbox::new();
    let full = sandbox.run(&["policy", "list", "-o", "/dev/full"]);
    assert_eq!(full.exit, 2);
    assert!(
        full.err.contains("cannot write /dev/full: no space left"),
        "{}",
        full.err
    );
    let state = [
        "fit",
        &example("agent-session.json"),
        "--budget",
        "2k",
        "-q",
    ];
    let null = sandbox.run(&[&state[..], &["--report", "/dev/null"]].concat());
    null.ok();
    let null = fs::metadata("/dev/null").expect("the device");
    assert!(!null.is_file(), "the device was replaced");
    // A pipe behind a link.
    let listed = sandbox.run(&["policy", "list"]);
    let piped = sandbox.run(&["policy", "list", "-o", "/dev/stdout"]);
    assert_eq!(piped.ok(), listed.ok());
    symlink("/dev/stdout", sandbox.path("link")).expect("a link");
    assert_eq!(
        sandbox.run(&["policy", "list", "-o", "link"]).ok(),
        listed.ok()
    );
    // Standard output is a file that others write to as well.
    let script = format!(
        "(echo before; {} policy list -o /dev/stdout) >> log; echo after >> log",
        cupel().display()
    );
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", &script]).current_dir(sandbox.path(""));
    assert!(shell.status().expect("sh runs").success());
    let expected = format!("before\n{}after\n", listed.ok());
    assert_eq!(sandbox.read("log"), expected);
}

/// A reader that stops early closes the pipe; the file is written all the same.
#[test]
fn a_closed_pipe_does_not_lose_the_file() {
    let sandbox = Sandbox::with(&[("chat.json", large_chat().as_bytes())]);
    let mut child = Command::new(cupel())
        .args(["fit", "chat.json", "--encoding", "heuristic"])
        .args(["--budget", "200k", "--diff", "-o", "fitted.json", "-q"])
        .current_dir(sandbox.path(""))
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(child.stdout.take());
    assert!(child.wait().expect("the command ends").success());
    assert!(sandbox.read("fitted.json").contains("\"messages\""));
}
