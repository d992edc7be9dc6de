//! Sessions on the command line: what is remembered of a growing chat, and summaries of dropped messages.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use cupel_app::{DroppedMessages, Options, PreparedSession, SUMMARY_TOKENS, Session};
use cupel_chat::{FitState, SessionWindow};

use crate::failure::Failure;
use crate::input::check_output;
use crate::replace::write_file;
use crate::trimming::at_least_one;

/// What is remembered of a growing chat, and the program that summarizes it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sessions")]
pub(crate) struct SessionArgs {
    /// Remember counts and summaries in FILE, and say what is reused
    ///
    /// The window is the same without FILE. Messages that were there before are not counted again, and the summary says
    /// how much of the window before a prompt cache can reuse.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// Shell command that summarizes dropped messages
    ///
    /// It reads them as a JSON array and prints the text that takes their place. With --state the
    /// command runs once per cut.
    #[arg(long, value_name = "COMMAND", conflicts_with = "marker")]
    summarize: Option<String>,

    /// Most tokens of a summary; a longer one is cut
    #[arg(long, value_name = "TOKENS", default_value_t = SUMMARY_TOKENS, hide_short_help = true, value_parser = at_least_one, requires = "summarize")]
    summary_tokens: i64,
}

impl SessionArgs {
    /// Returns whether a session is requested.
    pub(crate) fn is_given(&self) -> bool {
        self.state.is_some() || self.summarize.is_some()
    }

    /// Fails if `--state` names the input.
    pub(crate) fn check(&self, input: &Path) -> Result<(), Failure> {
        check_output(input, "--state", self.state.as_deref())
    }

    /// Asks for summaries, if a command makes them.
    pub(crate) fn options(&self, options: &Options) -> Options {
        let summary_tokens = self.summarize.as_ref().map(|_| self.summary_tokens);
        Options {
            summary_tokens,
            ..options.clone()
        }
    }

    /// Fits a chat and writes the state.
    pub(crate) fn fit<'t>(&self, task: &'t PreparedSession) -> Result<SessionWindow<'t>, Failure> {
        let mut session = Session::resume(self.read_state()?);
        let window = match &self.summarize {
            Some(command) => {
                let summarize = |dropped: &DroppedMessages| ask(command, &dropped.json);
                task.fit_summarized(&mut session, command, summarize)?
            }
            None => task.fit(&mut session)?,
        };
        if let Some(path) = &self.state {
            write_file(path, &(session.state().to_json() + "\n"))?;
        }
        Ok(window)
    }

    /// Reads the state; a file that does not exist is an empty one.
    fn read_state(&self) -> Result<FitState, Failure> {
        let Some(path) = &self.state else {
            return Ok(FitState::default());
        };
        let Some(text) = read_if_exists(path)? else {
            return Ok(FitState::default());
        };
        FitState::from_json(&text)
            .map_err(|error| Failure::input(error.to_string()).in_file(&path.display().to_string()))
    }
}

fn read_if_exists(path: &Path) -> Result<Option<String>, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::io("read", path, &error)),
    }
}

/// The most bytes of a command's output that are read.
const MAX_OUTPUT: u64 = 1 << 20;

/// Runs the command.
fn ask(command: &str, dropped: &str) -> Result<String, Failure> {
    let fault = |problem: String| {
        Failure::input(format!("--summarize: {problem}"))
            .help("the command reads a JSON array of messages on standard input and prints a text")
    };
    let failed = |error: std::io::Error| fault(error.to_string());
    let (shell, option) = if cfg!(windows) {
        ("cmd", "/C")
    } else {
        ("sh", "-c")
    };
    let mut child = Command::new(shell)
        .args([option, command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let read = std::thread::scope(|scope| {
        // A command may write before it has read everything, and may stop reading early.
        scope.spawn(move || input.map(|mut input| input.write_all(dropped.as_bytes())));
        let mut text = Vec::new();
        let output = output.map(|output| output.take(MAX_OUTPUT).read_to_end(&mut text));
        output.unwrap_or(Ok(0)).map(|_| text)
    });
    let text = read.map_err(failed)?;
    let is_cut = text.len() as u64 == MAX_OUTPUT;
    let status = child.wait().map_err(failed)?;
    if !status.success() && !is_cut {
        return Err(fault(format!("the command failed: {status}")));
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}
