//! `cupel fit`

use clap::Args;
use cupel::{ContextBudget, total_tokens};
use cupel_chat::{Chats, Fitted, SessionWindow, Shape, TokenCounter};
use serde_json::{Value, json};

use crate::chats;
use crate::decision::Run;
use crate::diff::Diff;
use crate::embed::{FitAnswer, Session, WindowMessage};
use crate::failure::{Exit, Failure};
use crate::input::Source;
use crate::output::Output;
use crate::session::SessionArgs;
use crate::summary::Summary;
use crate::task::{Content, Need, ReportArg, SessionTask, Settings, Task, TaskArgs};
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
        let source = self.task.source()?;
        if source.had_byte_order_mark {
            output.warn("removed the byte order mark at the start of the input");
        }
        let settings = self.task.settings()?;
        if let Some(chats) = chats::find(&source, self.task.read_args()) {
            return self.run_many(&settings, &source, &chats, output);
        }
        if self.session.is_given() {
            self.run_session(&settings, source, output)?;
        } else {
            self.run_once(&settings, source, output)?;
        }
        Ok(Exit::Success)
    }

    fn run_many(
        &self,
        settings: &Settings<'_>,
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
        let (answers, exit) = chats::fit_all(settings, source, chats, output, |task, fitted| {
            let text = fitted.to_json();
            if is_json {
                let mut document = task_document(task, fitted);
                document["chat"] = parsed(&text)?;
                Ok(document.to_string())
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
        settings: &Settings<'_>,
        source: Source,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let task = settings.task(source, Need::OneBudget)?;
        let run = task.run()?;
        self.report.write(&run.report)?;
        let fitted = task.fitted(&run);
        let text = match &fitted {
            Some(fitted) => fitted.to_json(),
            None => task.rewritten(&kept(&task, &run))?,
        };
        if output.is_json() {
            let mut document = match &fitted {
                Some(fitted) => task_document(&task, fitted),
                None => described(&task, items_document(&task, &run)),
            };
            document["chat"] = parsed(&text)?;
            return output.json(&document);
        }
        let diff = self.diff.then(|| match (&task.content, &fitted) {
            (Content::Chat { chat, .. }, Some(fitted)) => Diff::of_chat(chat, &task.items, fitted),
            _ => Diff::of_items(&task, &run),
        });
        write_text(&text, diff.as_ref(), output)?;
        Summary::of_run(&task, &run, fitted.as_ref()).write(output);
        Ok(())
    }

    /// Checks the command line before there is an input.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.task.check()
    }

    /// Fits one chat or list of items for a program, which has the messages.
    pub(crate) fn answer(self, session: Option<&mut Session>) -> Result<FitAnswer, Failure> {
        let source = self.task.source()?;
        let settings = self.task.settings()?;
        if session.is_none() && !self.session.is_given() {
            let task = settings.task(source, Need::OneBudget)?;
            let run = task.run()?.without_times();
            let notes = task.header().notes();
            return Ok(match (&task.content, task.fitted(&run)) {
                (Content::Chat { chat, .. }, Some(fitted)) => {
                    let document = task_document(&task, &fitted);
                    FitAnswer::of_chat(chat, document, fitted, notes)
                }
                _ => FitAnswer {
                    list: task.list_pointer(),
                    document: described(&task, items_document(&task, &run)),
                    messages: kept(&task, &run)
                        .into_iter()
                        .map(WindowMessage::Original)
                        .collect(),
                    scores: (0..task.len()).map(|it| run.decisions.score(it)).collect(),
                    ranks: (0..task.len()).map(|it| run.decisions.rank(it)).collect(),
                    report: run.report,
                    notes,
                },
            });
        }
        let has_state = session.is_some() || self.session.has_state();
        let task = settings.session(source, has_state)?;
        let window = match session {
            Some(session) => session.fit(&task)?,
            None => self.session.fit(&task)?,
        };
        let document = session_document(&task, &window);
        Ok(FitAnswer::of_chat(
            &task.chat,
            document,
            window.fitted,
            task.header().notes(),
        ))
    }

    fn run_session(
        &self,
        settings: &Settings<'_>,
        source: Source,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let task = settings.session(source, self.session.has_state())?;
        let window = self.session.fit(&task)?;
        self.report.write(&window.fitted.report)?;
        let text = window.fitted.to_json();
        if output.is_json() {
            let mut document = session_document(&task, &window);
            document["chat"] = parsed(&text)?;
            return output.json(&document);
        }
        let diff = self.diff.then(|| {
            let items = task.chat.candidates(&*task.counter);
            Diff::of_chat(&task.chat, &items, &window.fitted)
        });
        write_text(&text, diff.as_ref(), output)?;
        Summary::of_session(&task, &window).write(output);
        Ok(())
    }
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

fn kept(task: &Task, run: &Run<'_>) -> Vec<usize> {
    let mut kept = run.decisions.window().to_vec();
    kept.retain(|&index| index < task.len());
    kept.sort_unstable();
    kept
}

/// Parses the written chat: one value is the document, several are lines.
pub(super) fn parsed(text: &str) -> Result<Value, Failure> {
    let values = serde_json::Deserializer::from_str(text).into_iter();
    let values: Vec<Value> = values
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::internal(error.to_string()))?;
    Ok(match <[_; 1]>::try_from(values) {
        Ok([document]) => document,
        Err(lines) => lines.into(),
    })
}

/// Returns the answer of a chat in JSON, without the chat.
pub(super) fn task_document(task: &Task, fitted: &Fitted<'_>) -> Value {
    described(task, chat_document(fitted))
}

/// Adds how the input was read and counted.
fn described(task: &Task, mut document: Value) -> Value {
    let counter = task.counter.as_deref();
    describe(&mut document, task.shape(), &task.budget, counter);
    document
}

fn chat_document(fitted: &Fitted<'_>) -> Value {
    json!({
        "kept": fitted.kept,
        "dropped": fitted.dropped,
        "shortened": fitted.shortened,
        "markers": fitted.markers,
        "warnings": fitted.warnings,
        "tokens_before": fitted.tokens_before,
        "tokens_after": fitted.tokens_after,
    })
}

fn items_document(task: &Task, run: &Run<'_>) -> Value {
    let mut dropped = run.decisions.excluded();
    dropped.sort_unstable();
    let dropped = dropped.into_iter().map(|index| {
        json!({
            "index": index,
            "role": task.label(index),
            "tokens": task.items[index].tokens(),
            "reason": run.decisions.exclusion(index),
        })
    });
    json!({
        "kept": kept(task, run),
        "dropped": dropped.collect::<Vec<_>>(),
        "shortened": [],
        "markers": [],
        "warnings": [],
        "tokens_before": total_tokens(&task.items),
        "tokens_after": run.decisions.tokens_used(),
    })
}

/// Returns the answer of a session in JSON, without the chat.
fn session_document(task: &SessionTask, window: &SessionWindow<'_>) -> Value {
    let mut document = chat_document(&window.fitted);
    document["reuse"] = json!(window.reuse);
    document["rebuilt"] = json!(window.rebuilt);
    let counter = Some(&*task.counter);
    describe(&mut document, task.chat.shape(), &task.budget, counter);
    document
}

/// Adds how the input was read and counted.
fn describe(
    document: &mut Value,
    shape: Shape,
    budget: &ContextBudget,
    counter: Option<&dyn TokenCounter>,
) {
    document["shape"] = shape.name().into();
    document["budget"] = budget.window_limit().into();
    document["counter"] = json!(counter.map(TokenCounter::name));
    document["estimated"] = counter.is_some_and(TokenCounter::is_estimate).into();
}
