//! `cupel fit`

use clap::Args;
use cupel_app::{Options, Prepared, PreparedSession, Scope, Source};
use cupel_chat::Chats;
use serde::Serialize;

use crate::chats;
use crate::diff::Diff;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::session::SessionArgs;
use crate::summary::Summary;
use crate::task::{ReportArg, TaskArgs};
use crate::text::grouped_count;

/// Fit a chat into a token budget
///
/// Reads a chat from any provider and writes the messages that stay, in the same format, valid for the
/// provider. System messages, the task (the first user turn), the last user turn and the newest tool
/// calls with their results always stay. Old tool results and texts are shortened first; if that is not
/// enough, the oldest messages are dropped, a tool call together with its results. Everything else
/// stays byte for byte, in order.
///
/// A file may hold many chats: one per line, or an array of them. Each is fitted into the budget; one that
/// does not fit is answered by an object with `error`. Items and request documents are read too; a request
/// may give its own budget and policy.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = MORE)]
pub(crate) struct Fit {
    /// List what stays, is shortened and is dropped
    ///
    /// The list takes the place of the chat on standard output; with -o, the chat is written to the file.
    #[arg(long, conflicts_with = "json")]
    diff: bool,

    #[command(flatten)]
    report: ReportArg,

    #[command(flatten)]
    task: TaskArgs,

    #[command(flatten)]
    session: SessionArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel fit chat.json > fitted.json             # into the model's window
  cupel fit chat.json --budget 8k -o fitted.json
  cupel fit chat.json --budget 8k --diff        # what would go?";

const MORE: &str = "\
Examples:
  cupel fit chat.json > fitted.json             # into the model's window
  cupel fit chat.json --budget 8k -o fitted.json
  cupel fit chat.json --budget 8k --diff        # what would go?
  cupel fit chat.json --budget 8k --state s.state    # turn by turn
  cat chat.json | cupel fit - --budget 8k | my-client

Exit status: 1 if the mandatory messages do not fit.";

impl Fit {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        self.session.check(self.task.file())?;
        self.report.check(self.task.file())?;
        let source = self.task.source()?;
        if source.had_byte_order_mark {
            output.warn("removed the byte order mark at the start of the input");
        }
        let options = self.task.options()?;
        if let Some(chats) = chats::find(&source, self.task.read_args()) {
            return self.run_many(&options, &source, &chats, output);
        }
        if self.session.is_given() {
            self.run_session(&options, source, output)?;
        } else {
            self.run_once(&options, source, output)?;
        }
        Ok(Exit::Success)
    }

    fn run_many(
        &self,
        options: &Options,
        source: &Source,
        chats: &Chats<'_>,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        if self.session.is_given() || self.report.is_given() || self.diff {
            let count = grouped_count(chats.len());
            let message = format!(
                "--state, --summarize, --report and --diff apply to one chat, and this file has {count}"
            );
            return Err(Failure::input(message).in_file(&source.name));
        }
        let is_json = output.is_json();
        let (answers, exit) = chats::fit_all(options, source, chats, output, |fit| {
            let text = fit.text()?;
            if is_json {
                json_line(&fit.answer().with_chat(&text)?)
            } else {
                Ok(text)
            }
        })?;
        let texts = answers.iter().zip(chats.iter());
        let texts = texts.map(|(answer, (_, chat))| match answer {
            Ok(text) => text.clone(),
            Err(problem) => chats::failed(problem, chat),
        });
        let texts: Vec<String> = texts.collect();
        if is_json {
            for text in texts {
                output.data_line(text)?;
            }
            output.finish()?;
        } else {
            write_text(&chats.write(&texts), None, output)?;
        }
        Ok(exit)
    }

    fn run_once(
        &self,
        options: &Options,
        source: Source,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let prepared = Prepared::new(source, options, Scope::OneBudget)?;
        let fit = prepared.fit()?;
        self.report.write(&fit.run.report)?;
        let text = fit.text()?;
        if output.is_json() {
            return output.json(&fit.answer().with_chat(&text)?);
        }
        let diff = self.diff.then(|| Diff::of_fit(&prepared, &fit));
        write_text(&text, diff.as_ref(), output)?;
        Summary::of_fit(&prepared, &fit).write(output);
        Ok(())
    }

    fn run_session(
        &self,
        options: &Options,
        source: Source,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let task = PreparedSession::new(source, &self.session.options(options))?;
        let window = self.session.fit(&task)?;
        self.report.write(&window.fitted.report)?;
        let text = window.fitted.to_json();
        if output.is_json() {
            return output.json(&task.answer(&window).with_chat(&text)?);
        }
        let diff = self.diff.then(|| {
            let items = task.chat.candidates(task.counter());
            Diff::of_chat(&task.chat, &items, &window.fitted)
        });
        write_text(&text, diff.as_ref(), output)?;
        Summary::of_session(&task, &window).write(output);
        Ok(())
    }
}

/// Returns an answer as one line of JSON.
pub(super) fn json_line(answer: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(answer).map_err(|error| Failure::internal(error.to_string()))
}

/// Writes the answer: the chat, or the list of changes and the chat to a file.
fn write_text(text: &str, diff: Option<&Diff>, output: &mut Output) -> Result<(), Failure> {
    if let Some(diff) = diff {
        diff.show(output)?;
    }
    if diff.is_none() || output.has_file() {
        output.text(text)?;
        // In a file or a pipe, a chat that fits is the same to the last byte.
        if !text.ends_with('\n') && output.is_on_terminal() {
            output.line("")?;
        }
    }
    output.finish()
}
