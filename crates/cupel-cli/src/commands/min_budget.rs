//! `cupel min-budget`

use clap::Args;
use serde_json::json;

use crate::budget::tokens;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::progress::Progress;
use crate::task::{Need, TaskArgs, position};
use crate::text::{Table, excerpt, grouped, left, right};

/// Find the smallest budget that selects an item
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MinBudget {
    /// Position of the item in the input, from 0. Default: every item
    #[arg(long, value_name = "K", value_parser = position)]
    item: Option<usize>,

    /// Largest budget to consider. Default: the tokens of all candidates
    #[arg(long, value_name = "TOKENS", value_parser = tokens, allow_hyphen_values = true)]
    ceiling: Option<i64>,

    #[command(flatten)]
    task: TaskArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel min-budget items.json --policy rag --item 3
  cupel min-budget request.json --json             # every item

Exit status: 1 if no budget up to the ceiling selects the item, 130 if Ctrl-C
ended a long search (the answer then covers the budgets reached so far).";

impl MinBudget {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let task = self.task.load(Need::AnyBudget)?;
        if let Some(item) = self.item {
            task.check_index(item)?;
        }
        let mut progress = Progress::new(output);
        let found = task.min_budgets(self.ceiling, |now| progress.observe(now));
        let stopped_at = progress.finish();
        let (least, ceiling) = found?;
        let searched = stopped_at.unwrap_or(ceiling);
        let asked = match self.item {
            Some(item) => item..item + 1,
            None => 0..task.items.len(),
        };
        let found: Vec<(usize, Option<i64>)> =
            asked.map(|index| (index, least.budgets[index])).collect();
        if output.is_json() {
            let items = found
                .iter()
                .map(|(index, least)| json!({ "index": index, "min_budget": least }));
            let mut answer = json!({
                "exact": least.exact,
                "ceiling": ceiling,
                "items": items.collect::<Vec<_>>(),
            });
            if let Some(budget) = stopped_at {
                answer["stopped_at"] = budget.into();
            }
            output.json(&answer)?;
        } else if let (Some(item), [(_, least)]) = (self.item, &found[..]) {
            match least {
                Some(least) => output.line(least)?,
                None => output.note(format_args!(
                    "no budget up to {} selects item {item}",
                    grouped(searched)
                )),
            }
        } else {
            let mut table = Table::new(
                const {
                    &[
                        right("#"),
                        right("min budget"),
                        right("tokens"),
                        left("content"),
                    ]
                },
            );
            for (index, least) in &found {
                let item = &task.items[*index];
                table.row(vec![
                    index.to_string(),
                    least.map_or_else(|| "-".to_owned(), grouped),
                    grouped(item.tokens()),
                    excerpt(item.content(), 60),
                ]);
            }
            for line in table.lines() {
                output.line(line)?;
            }
        }
        if !least.exact {
            output.note("budgets were sampled: a smaller one may select an item too");
        }
        if let Some(budget) = stopped_at {
            output.note(format_args!(
                "stopped: budgets above {} were not tried",
                grouped(budget)
            ));
            return Ok(Exit::Stopped);
        }
        let missed = self.item.is_some() && found.iter().any(|(_, least)| least.is_none());
        Ok(if missed { Exit::Over } else { Exit::Success })
    }
}
