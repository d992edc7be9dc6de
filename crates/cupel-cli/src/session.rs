//! Sessions on the command line: what is remembered of a growing chat, and summaries of dropped messages.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use cupel_app::{Argument, NamedPolicy, PreparedSession, Session, check_ladder};
use cupel_chat::{Chat, FitState, Fitted, SessionWindow, TokenCounter};
use sha2::{Digest as _, Sha256};

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
    #[arg(long, value_name = "TOKENS", default_value = "200", hide_short_help = true, value_parser = at_least_one, requires = "summarize")]
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

    /// Leaves room for a summary in the windows of a chat, if one is requested.
    pub(crate) fn prepare(&self, task: &mut PreparedSession) -> Result<(), Failure> {
        if self.summarize.is_none() {
            return Ok(());
        }
        let mut marker = "[{n} earlier messages omitted]".to_owned();
        while task.counter().count(&marker) < self.summary_tokens {
            marker.push_str(" omitted");
        }
        let NamedPolicy { name, policy } = &task.setting.policy;
        check_ladder(policy, name, Argument::Summarize)?;
        let mut chat = policy.chat().clone();
        chat.marker = Some(marker);
        let policy = policy.to_builder().chat(chat).build();
        task.setting.policy.policy =
            policy.map_err(|error| Failure::internal(error.to_string()))?;
        Ok(())
    }

    /// Fits a chat and writes the state.
    pub(crate) fn fit<'t>(&self, task: &'t PreparedSession) -> Result<SessionWindow<'t>, Failure> {
        let mut session = Session::resume(self.read_state()?);
        let mut window = task.fit(&mut session)?;
        if let Some(command) = &self.summarize {
            let summarizer = Summarizer {
                command,
                tokens: self.summary_tokens,
                counter: task.counter(),
            };
            let known = self.read_summaries()?;
            let used = summarizer.replace_markers(&task.chat, &mut window.fitted, &known)?;
            if let Some(path) = self.summaries_path() {
                let text = serde_json::to_string(&used)
                    .map_err(|error| Failure::internal(error.to_string()))?;
                write_file(&path, &text)?;
            }
        }
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

    /// Returns the file of the summaries, next to the state.
    fn summaries_path(&self) -> Option<PathBuf> {
        let mut path = OsString::from(self.state.as_ref()?);
        path.push(".summaries");
        Some(path.into())
    }

    /// Reads the summaries by the hash of what they summarize.
    fn read_summaries(&self) -> Result<BTreeMap<String, String>, Failure> {
        let Some(path) = self.summaries_path() else {
            return Ok(BTreeMap::new());
        };
        let Some(text) = read_if_exists(&path)? else {
            return Ok(BTreeMap::new());
        };
        serde_json::from_str(&text).map_err(|error| {
            Failure::input(format!("these are not summaries: {error}"))
                .in_file(&path.display().to_string())
                .help("delete the file; the summaries are made again")
        })
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

/// A command that summarizes dropped messages.
struct Summarizer<'a> {
    command: &'a str,
    /// The most tokens of a summary.
    tokens: i64,
    counter: &'a dyn TokenCounter,
}

impl Summarizer<'_> {
    /// Puts a summary in the place of each marker. Returns the summaries of this window.
    fn replace_markers(
        &self,
        chat: &Chat,
        fitted: &mut Fitted<'_>,
        known: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, Failure> {
        let mut used = BTreeMap::new();
        for position in 0..fitted.markers.len() {
            let marker = &fitted.markers[position];
            let dropped = marker.before - marker.omitted..marker.before;
            let dropped: Vec<&str> = dropped.map(|index| chat.message(index).json()).collect();
            let dropped = format!("[{}]", dropped.join(","));
            let key = self.key(&dropped);
            let summary = match known.get(&key) {
                Some(summary) => summary.clone(),
                None => self.cut(&self.ask(&dropped)?),
            };
            fitted.set_marker_text(position, &summary, self.counter);
            used.insert(key, summary);
        }
        Ok(used)
    }

    /// Returns the hash of the command, the limit and the messages.
    fn key(&self, dropped: &str) -> String {
        let limit = self.tokens.to_string();
        let mut hash = Sha256::new();
        for part in [self.command, &limit, dropped] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        let mut key = String::new();
        for byte in hash.finalize() {
            let _ = write!(key, "{byte:02x}");
        }
        key
    }

    /// Runs the command.
    fn ask(&self, dropped: &str) -> Result<String, Failure> {
        let fault = |problem: String| {
            Failure::input(format!("--summarize: {problem}")).help(
                "the command reads a JSON array of messages on standard input and prints a text",
            )
        };
        let failed = |error: std::io::Error| fault(error.to_string());
        let (shell, option) = if cfg!(windows) {
            ("cmd", "/C")
        } else {
            ("sh", "-c")
        };
        let mut child = Command::new(shell)
            .args([option, self.command])
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
        match String::from_utf8_lossy(&text).trim() {
            "" => Err(fault("the command printed nothing".to_owned())),
            text => Ok(text.to_owned()),
        }
    }

    /// Returns the longest prefix within the limit that ends with a word.
    fn cut(&self, text: &str) -> String {
        let fits = |text: &str| self.counter.count(text) <= self.tokens;
        if fits(text) {
            return text.to_owned();
        }
        let words = text.match_indices(char::is_whitespace).map(|(at, _)| at);
        let ends: Vec<usize> = words.collect();
        let ends = if ends.is_empty() {
            text.char_indices().map(|(at, _)| at).collect()
        } else {
            ends
        };
        let shortened = |end: usize| format!("{} [...]", text[..end].trim_end());
        let count = ends.partition_point(|&end| fits(&shortened(end)));
        shortened(count.checked_sub(1).map_or(0, |last| ends[last]))
    }
}
