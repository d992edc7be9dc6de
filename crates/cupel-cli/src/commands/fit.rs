//! `cupel fit`

use clap::Args;
use cupel::total_tokens;
use cupel_chat::{Fitted, TokenCounter};
use serde_json::json;

use crate::decision::Run;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::summary::Summary;
use crate::task::{Need, ReportArg, Task, TaskArgs};

/// Fit a chat into a token budget
///
/// Reads a chat from any provider: OpenAI (Chat Completions or Responses), Anthropic or LangChain.
/// Writes the messages that stay, in the same format, valid for the provider. System messages, the
/// task (the first user turn), the last user turn and the newest tool calls with their results always
/// stay. Old tool results and texts are shortened first; if that is not enough, the oldest messages are
/// dropped, a tool call together with its results. Everything else stays byte for byte, in order.
///
/// Items and request documents are read too; a request may give its own budget and policy.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Fit {
    #[command(flatten)]
    report: ReportArg,

    #[command(flatten)]
    task: TaskArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel fit chat.json --budget 8k > fitted.json
  cupel fit chat.json --budget 70% --model gpt-4o --reserve 2k
  cupel fit chat.json --budget 8k --policy tool-use --report why.json
  cat chat.json | cupel fit - --budget 8k | my-client

Exit status: 1 if the mandatory messages do not fit.";

impl Fit {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let task = self.task.load(Need::OneBudget)?;
        let run = task.run()?;
        self.report.write(&run)?;
        let mut kept = run.decisions.window().to_vec();
        kept.retain(|&index| index < task.len());
        kept.sort_unstable();
        let fitted = task.fitted(&run);
        let text = match &fitted {
            Some(fitted) => fitted.to_json(),
            None => task.rewritten(&kept)?,
        };
        if output.is_json() {
            output.json(&document(&task, &run, &kept, fitted.as_ref(), &text)?)?;
        } else {
            output.text(&text)?;
            if !text.ends_with('\n') {
                output.line("")?;
            }
            output.finish()?;
            let summary = Summary::new(&task, &run).of_chat(fitted.as_ref());
            summary.write(output);
        }
        Ok(Exit::Success)
    }
}

fn document(
    task: &Task,
    run: &Run<'_>,
    kept: &[usize],
    fitted: Option<&Fitted<'_>>,
    text: &str,
) -> Result<serde_json::Value, Failure> {
    let values = serde_json::Deserializer::from_str(text).into_iter();
    let values: Vec<serde_json::Value> = values
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::internal(error.to_string()))?;
    // One value is the document, several are lines.
    let chat = match <[_; 1]>::try_from(values) {
        Ok([document]) => document,
        Err(lines) => lines.into(),
    };
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
    let counter = task.counter.as_deref();
    Ok(json!({
        "chat": chat,
        "shape": task.shape().name(),
        "kept": kept,
        "dropped": dropped.collect::<Vec<_>>(),
        "shortened": fitted.map_or(&[][..], |fitted| &fitted.shortened),
        "markers": fitted.map_or(&[][..], |fitted| &fitted.markers),
        "tokens_before": fitted.map_or(total_tokens(&task.items), |it| it.tokens_before),
        "tokens_after": fitted.map_or(run.decisions.tokens_used(), |it| it.tokens_after),
        "budget": task.budget.window_limit(),
        "counter": counter.map(TokenCounter::name),
        "estimated": counter.is_some_and(TokenCounter::is_estimate),
    }))
}
