//! `cupel select`

use clap::Args;
use cupel_app::{Form, Prepared, Run};

use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::summary::Summary;
use crate::task::{ItemsArgs, ReportArg};

/// Select the items that fit a token budget
///
/// Reads a JSON array of items, one item per line (JSONL), or a request document with `items`,
/// `budget` and `policy`. Writes the selected items byte for byte in the order of the window: an
/// array for an array, lines for lines.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Select {
    #[command(flatten)]
    report: ReportArg,

    #[command(flatten)]
    task: ItemsArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel select items.jsonl --budget 2000 --policy rag > window.jsonl
  cupel select request.json                        # items, budget and policy
  cupel select request.json --json | jq '.excluded[] | .reason'
  cupel select items.json --budget 8k --reserve 1k --slot Memory=500

An item:
  {\"content\": \"...\", \"tokens\": 12, \"kind\": \"Document\"}
Only `content` is required; missing `tokens` are counted. All fields:
  cupel policy schema --request";

impl Select {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        self.report.check(self.task.file())?;
        let task = self.task.load()?;
        let form = task.form()?;
        let run = task.run()?;
        self.report.write(&run.report)?;
        if output.is_json() {
            output.json(&run.without_times().answer())?;
        } else {
            write_items(&task, form, &run, output)?;
            output.finish()?;
            Summary::of_run(&task, &run, None).write(output);
        }
        Ok(Exit::Success)
    }
}

/// Writes the selected items as they stand in the input, shortened ones as their views.
fn write_items(
    task: &Prepared,
    form: Form,
    run: &Run<'_>,
    output: &mut Output,
) -> Result<(), Failure> {
    let written = task.written(form)?;
    let decisions = &run.decisions;
    let text = |&index: &usize| match decisions.view(index) {
        Some(_) => serde_json::to_string(decisions.item(index)).expect("an item is valid JSON"),
        None => written[index].clone(),
    };
    let mut window = decisions.window().iter().map(text);
    match form {
        Form::Lines => window.try_for_each(|item| output.data_line(item)),
        Form::Array | Form::Request => {
            let mut between = "";
            output.text("[")?;
            for item in window {
                output.text(format_args!("{between}\n  {item}"))?;
                between = ",";
            }
            output.data_line(if between.is_empty() { "]" } else { "\n]" })
        }
    }
}
