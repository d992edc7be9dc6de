//! `cupel fit`

use std::path::PathBuf;

use clap::Args;
use cupel::ContextBudget;
use cupel_chat::{Chat, Fitted, TokenCounter};
use serde_json::json;

use crate::budget::{BudgetArgs, shown};
use crate::counting::ChatArgs;
use crate::failure::{Exit, Failure};
use crate::input::Source;
use crate::output::{Output, style, write_file};
use crate::reason;
use crate::task::NamedPolicy;
use crate::text::{counted, grouped};

/// Fit a chat into a token budget, in any shape
///
/// FILE is a chat of OpenAI (Chat or Responses), Anthropic or LangChain, or plain items, alone or in a
/// request document, whose budget and policy hold unless the command line says others. What stays comes out in the same shape and to the byte, valid for its provider: the system's messages and the
/// last user turn stay, tool calls go together with their results, the order is kept.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Fit {
    /// A chat in any known shape; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The policy: the name of a preset or a file; unless set the request's own, else the newest stay
    #[arg(long, value_name = "NAME|FILE")]
    policy: Option<String>,

    /// Write the report of the run, a JSON object, to a file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    #[command(flatten)]
    budget: BudgetArgs,

    #[command(flatten)]
    chat: ChatArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel fit chat.json --budget 8k > fitted.json
  cupel fit chat.json --budget 70% --model gpt-4o --reserve 2k
  cupel fit chat.json --budget 8k --policy tool-use --report why.json
  cat chat.json | cupel fit - --budget 8k | my-client

Exit status 1 if what has to stay is over the budget.";

impl Fit {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let source = Source::read(&self.file)?;
        let plain = source.plain(self.chat.shape)?;
        let (own_budget, own_policy) = match &plain {
            Some(plain) => (plain.budget.as_ref(), plain.policy.as_ref()),
            None => (None, None),
        };
        let chat = source.chat(self.chat.shape)?;
        let budget = self.budget.over(own_budget, None, chat.model())?;
        let model = self.budget.model.as_deref().or(chat.model());
        let counter = self.chat.counter(model)?;
        let policy = NamedPolicy::for_chats(self.policy.as_deref(), own_policy)?;
        let fitted = chat
            .fit(&policy.policy, &budget, &counter)
            .map_err(|error| Failure::fit(&error).in_file(&source.name))?;
        if let Some(path) = &self.report {
            let report = serde_json::to_string_pretty(&fitted.report)
                .map_err(|error| Failure::internal(error.to_string()))?;
            write_file(path, &format!("{report}\n"))?;
        }
        let counted = plain.is_none_or(|plain| !plain.counted);
        let done = Done {
            budget: &budget,
            counter: counted.then_some(&*counter),
            policy: &policy.name,
            chat: &chat,
            fitted,
        };
        if output.is_json() {
            output.json(&done.document()?)?;
        } else {
            let text = done.fitted.to_json();
            output.text(&text)?;
            if !text.ends_with('\n') {
                output.line("")?;
            }
            output.finish()?;
            done.summary(output);
            if let (true, Some(unknown)) = (counted, self.chat.unknown(model)) {
                output.note(format_args!("note: {unknown}"));
            }
        }
        Ok(Exit::Success)
    }
}

/// A chat that was made to fit.
struct Done<'a> {
    chat: &'a Chat,
    fitted: Fitted<'a>,
    budget: &'a ContextBudget,
    policy: &'a str,
    /// What counted; `None` if all tokens are as given.
    counter: Option<&'a dyn TokenCounter>,
}

impl Done<'_> {
    fn available(&self) -> i64 {
        self.budget.window_limit()
    }

    fn document(&self) -> Result<serde_json::Value, Failure> {
        let Self { chat, fitted, .. } = self;
        let text = fitted.to_json();
        let values = serde_json::Deserializer::from_str(&text).into_iter();
        let values: Vec<serde_json::Value> = values
            .collect::<Result<_, _>>()
            .map_err(|error| Failure::internal(error.to_string()))?;
        // One value is the document, several are lines.
        let fitted_chat = match <[_; 1]>::try_from(values) {
            Ok([document]) => document,
            Err(lines) => lines.into(),
        };
        let dropped = fitted.dropped.iter().map(|dropped| {
            json!({
                "index": dropped.index,
                "role": dropped.role,
                "tokens": dropped.tokens,
                "reason": dropped.reason,
            })
        });
        Ok(json!({
            "chat": fitted_chat,
            "shape": chat.shape().name(),
            "kept": fitted.kept,
            "dropped": dropped.collect::<Vec<_>>(),
            "tokens_before": fitted.tokens_before,
            "tokens_after": fitted.tokens_after,
            "budget": self.available(),
            "counter": self.counter.map(TokenCounter::name),
            "estimated": self.counter.is_some_and(TokenCounter::is_estimate),
        }))
    }

    fn summary(&self, output: &mut Output) {
        let Self { chat, fitted, .. } = self;
        let (bold, quiet) = (style::HEADER, style::QUIET);
        let by = match self.counter {
            None => "tokens as given".to_owned(),
            Some(counter) if counter.is_estimate() => format!("estimated by {}", counter.name()),
            Some(counter) => format!("counted by {}", counter.name()),
        };
        output.note(format_args!(
            "{bold}kept {} of {}, {} of {} tokens{bold:#} ({}, {by}, {}, policy {})",
            fitted.kept.len(),
            counted(chat.len(), chat.shape().unit()),
            grouped(fitted.tokens_after),
            grouped(fitted.tokens_before),
            shown(self.available(), self.budget),
            chat.shape(),
            self.policy,
        ));
        let dropped = fitted.dropped.iter();
        for line in reason::summary(dropped.map(|dropped| (dropped.index, &dropped.reason))) {
            output.note(format_args!("{quiet}  {line}{quiet:#}"));
        }
    }
}
