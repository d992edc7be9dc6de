//! Many chats in one file: one per line, or the elements of an array.

use std::collections::HashMap;

use cupel_app::{ErrorAnswer, Fit, Options, Prepared, Scope, Source};
use cupel_chat::{Chats, Shape};
use rayon::prelude::*;

use crate::failure::{Exit, Failure, Problem};
use crate::input::ReadArgs;
use crate::output::Output;
use crate::summary::ranges;
use crate::text::{counted, grouped, grouped_count};

/// The sizes of a chat before and after it was fitted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sizes {
    pub(crate) messages: usize,
    pub(crate) kept: usize,
    pub(crate) tokens_before: i64,
    pub(crate) tokens_after: i64,
}

impl Sizes {
    fn of(prepared: &Prepared, fitted: &cupel_chat::Fitted<'_>) -> Self {
        Self {
            messages: prepared.len(),
            kept: fitted.kept.len(),
            tokens_before: fitted.tokens_before,
            tokens_after: fitted.tokens_after,
        }
    }

    fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.kept += other.kept;
        self.tokens_before = self.tokens_before.saturating_add(other.tokens_before);
        self.tokens_after = self.tokens_after.saturating_add(other.tokens_after);
    }

    fn describe(self) -> String {
        format!(
            "kept {} of {}, {} of {} tokens",
            grouped_count(self.kept),
            counted(self.messages, "message"),
            grouped(self.tokens_after),
            grouped(self.tokens_before)
        )
    }
}

/// The most chats that are reported one by one.
const TOLD: usize = 20;

/// Reports the errors of many chats, an error that several have only once.
#[derive(Default)]
pub(crate) struct Errors {
    /// The lines of each error, in the order in which it was first met.
    lines: Vec<Vec<usize>>,
    /// The position in `lines` by what an error says, apart from its place.
    known: HashMap<(String, Option<String>, String), usize>,
}

impl Errors {
    /// Writes an error, unless an earlier line has it.
    pub(crate) fn add(&mut self, line: usize, problem: &Problem, output: &mut Output) {
        let path = problem.place.as_ref().map(|place| place.path.clone());
        let key = (
            problem.message.clone(),
            problem.help.clone(),
            path.unwrap_or_default(),
        );
        let new = self.lines.len();
        let position = *self.known.entry(key).or_insert(new);
        if position < new {
            self.lines[position].push(line);
            return;
        }
        self.lines.push(vec![line]);
        if new < TOLD {
            output.problem(problem);
        } else if new == TOLD && !output.is_json() {
            output.note("more lines failed; see their answers");
        }
    }

    /// Says on which lines an error was met again.
    pub(crate) fn finish(&self, output: &mut Output) {
        if output.is_json() {
            return;
        }
        for lines in self.lines.iter().take(TOLD) {
            if let [first, others @ ..] = &lines[..]
                && !others.is_empty()
            {
                let count = counted(others.len(), "more line");
                let others = ranges(others);
                output.note(format_args!(
                    "the error of line {first} is on {count}: {others}"
                ));
            }
        }
    }
}

/// Returns the chats of a text with many; `None` for items and for one chat.
pub(crate) fn find<'s>(source: &'s Source, args: &ReadArgs) -> Option<Chats<'s>> {
    if args.shape == Some(Shape::Items) {
        return None;
    }
    Chats::find(&source.text, args.at.as_deref().unwrap_or_default())
}

/// Writes which configuration was used. What of it applies differs from chat to chat.
pub(crate) fn note_config(options: &Options, output: &mut Output) {
    let config = options.config.as_ref().filter(|config| !config.is_empty());
    if let Some(config) = config.filter(|_| !output.is_json()) {
        output.note(format_args!("config: {}", config.name()));
    }
}

/// Fits one chat. `answer` turns it into what is written.
fn fit<T>(
    options: &Options,
    source: Source,
    answer: impl FnOnce(&Fit<'_>) -> Result<T, Failure>,
) -> Result<(T, Sizes), Failure> {
    let place = source.whole();
    let fit = || {
        let prepared = Prepared::new(source, options, Scope::OneBudget)?;
        let fit = prepared.fit()?;
        let Some(fitted) = &fit.fitted else {
            return Err(Failure::input("this is a list of items, not a chat"));
        };
        Ok((answer(&fit)?, Sizes::of(&prepared, fitted)))
    };
    fit().map_err(|failure: Failure| failure.or_at(|| place))
}

/// Returns what is written in the place of a chat that was not fitted: the error, and the `custom_id` of a line
/// of a batch.
pub(crate) fn failed(problem: &Problem, chat: &str) -> String {
    let chat: serde_json::Value = serde_json::from_str(chat).unwrap_or_default();
    let line = ErrorAnswer {
        custom_id: chat.get("custom_id").cloned(),
        ..problem.answer()
    };
    // As a value, so that the keys are in the order of other errors.
    serde_json::json!(line).to_string()
}

/// Fits many chats on all cores and reports them on standard error. Returns the answer or the problem of
/// each, and the worst exit status.
pub(crate) fn fit_all<T: Send>(
    options: &Options,
    source: &Source,
    chats: &Chats<'_>,
    output: &mut Output,
    answer: impl Fn(&Fit<'_>) -> Result<T, Failure> + Sync,
) -> Result<(Vec<Result<T, Problem>>, Exit), Failure> {
    // A wrong argument is one error of the command line, not one per chat.
    options.check()?;
    let chats: Vec<(usize, &str)> = chats.iter().collect();
    let fitted: Vec<Result<(T, Sizes), Failure>> = chats
        .par_iter()
        .map(|&(line, text)| {
            let source = Source {
                line: Some(line),
                ..Source::new(&source.name, text)
            };
            fit(options, source, &answer)
        })
        .collect();
    let (mut answers, mut exit, mut total) = (Vec::new(), Exit::Success, Sizes::default());
    let mut errors = Errors::default();
    let mut failed = 0;
    for (position, (fitted, (line, _))) in fitted.into_iter().zip(chats).enumerate() {
        match fitted {
            Ok((answer, sizes)) => {
                total.add(sizes);
                if position < TOLD && !output.is_json() {
                    output.note(format_args!("line {line}: {}", sizes.describe()));
                }
                answers.push(Ok(answer));
            }
            Err(failure) => {
                let problem = failure.into_problem()?;
                exit = exit.max(problem.exit);
                failed += 1;
                errors.add(line, &problem, output);
                answers.push(Err(problem));
            }
        }
    }
    errors.finish(output);
    if !output.is_json() {
        let fitted = answers.len() - failed;
        let sizes = match fitted {
            0 => String::new(),
            _ => format!(": {}", total.describe()),
        };
        let (fitted, failed) = (counted(fitted, "chat"), grouped_count(failed));
        output.note(format_args!("{fitted} fitted, {failed} failed{sizes}"));
    }
    note_config(options, output);
    Ok((answers, exit))
}
