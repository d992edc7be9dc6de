//! `cupel select`

use std::path::PathBuf;

use clap::Args;

use crate::budget::{BudgetArgs, shown};
use crate::decision::Decision;
use crate::failure::{Exit, Failure};
use crate::input::Form;
use crate::output::{Output, style, write_file};
use crate::reason;
use crate::task::{Origin, Task};
use crate::text::{counted, grouped};

/// Select the items that fit a budget: items in, items out
///
/// FILE is a JSON array of items, one item a line (JSONL), or a request document with `items`,
/// `budget` and `policy`. The selected items come out in the order of the window and as they were
/// written: an array for an array, lines for lines.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Select {
    /// Items, a JSON array or one a line, or a request document; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The policy: the name of a preset or a file; unless set the request's own, else `chat`
    #[arg(long, value_name = "NAME|FILE")]
    policy: Option<String>,

    /// Write the report of the run, a JSON object, to a file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    #[command(flatten)]
    budget: BudgetArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel select items.jsonl --budget 2000 --policy rag > window.jsonl
  cupel select request.json                        items, budget and policy in one file
  cupel select request.json --json | jq '.excluded[] | .reason'
  cupel select items.json --budget 8k --reserve 1k --slot Memory=500 --report why.json

An item: {\"content\": \"...\", \"tokens\": 12, \"kind\": \"Document\", \"timestamp\": \"2026-01-31T12:00:00Z\"}
Only content and tokens are required; `cupel policy schema --request` has every field.";

impl Select {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let task = Task::load_items(&self.file, &self.budget, self.policy.as_deref())?;
        let decision = task.decide()?;
        if let (Some(path), Some(report)) = (&self.report, &decision.report) {
            let report = serde_json::to_string_pretty(report)
                .map_err(|error| Failure::internal(error.to_string()))?;
            write_file(path, &format!("{report}\n"))?;
        }
        if output.is_json() {
            output.json(&decision.timeless())?;
        } else {
            write_items(&task, &decision, output)?;
            output.finish()?;
            summary(&task, &decision, output);
        }
        Ok(Exit::Success)
    }
}

/// The selected items as they stood in the input.
fn write_items(task: &Task, decision: &Decision, output: &mut Output) -> Result<(), Failure> {
    let form = match task.origin {
        Origin::Items(form) => form,
        Origin::Chat(..) => Form::Array,
    };
    let written = task.written(form)?;
    let mut window = decision
        .selected
        .iter()
        .map(|selected| &written[selected.index]);
    match form {
        Form::Lines => window.try_for_each(|item| output.line(item)),
        Form::Array | Form::Request => {
            let mut between = "";
            output.text("[")?;
            for item in window {
                output.text(format_args!("{between}\n  {item}"))?;
                between = ",";
            }
            output.line(if between.is_empty() { "]" } else { "\n]" })
        }
    }
}

fn summary(task: &Task, decision: &Decision, output: &mut Output) {
    let (quiet, items) = (style::QUIET, &task.items);
    output.note(format_args!(
        "kept {} of {}, {} of {} tokens ({}, policy {})",
        decision.selected.len(),
        counted(items.len(), "item"),
        grouped(decision.tokens(items)),
        grouped(cupel::total_tokens(items)),
        shown(task.budget.target_tokens(), &task.budget),
        task.policy.name,
    ));
    let dropped = decision.excluded.iter();
    for line in reason::summary(dropped.map(|excluded| (excluded.index, &excluded.reason))) {
        output.note(format_args!("{quiet}  {line}{quiet:#}"));
    }
    if let Some(overflow) = &decision.overflow {
        output.note(format_args!(
            "  over the budget by {} tokens, as the policy allows",
            grouped(overflow.tokens_over_budget)
        ));
    }
    if let Some(report) = &decision.report {
        for shortfall in &report.count_requirement_shortfalls {
            output.note(format_args!(
                "  short of {}: {} required, {} found",
                shortfall.kind, shortfall.required_count, shortfall.satisfied_count
            ));
        }
    }
}
