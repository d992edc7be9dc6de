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
        // The least budget in full, if the item is shortened at smaller ones.
        let in_full =
            |index: usize| least.in_full[index].filter(|b| least.budgets[index] != Some(*b));
        if output.is_json() {
            let items = found
                .iter()
                .map(|(index, min_budget)| json!({ "index": index, "min_budget": min_budget, "in_full": least.in_full[*index] }));
            let mut answer = json!({
                "exact": least.exact,
                "ceiling": ceiling,
                "items": items.collect::<Vec<_>>(),
            });
            if let Some(budget) = stopped_at {
                answer["stopped_at"] = budget.into();
            }
            output.json(&answer)?;
        } else if let (Some(item), [(_, min_budget)]) = (self.item, &found[..]) {
            match min_budget {
                Some(min_budget) => {
                    output.line(min_budget)?;
                    if let Some(budget) = in_full(item) {
                        let budget = grouped(budget);
                        output.note(format_args!("shortened below a budget of {budget}"));
                    }
                }
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
            for (index, min_budget) in &found {
                let item = &task.items[*index];
                let min_budget = min_budget.map_or_else(|| "-".to_owned(), grouped);
                table.row(vec![
                    index.to_string(),
                    match in_full(*index) {
                        Some(budget) => format!("{min_budget} (in full {})", grouped(budget)),
                        None => min_budget,
                    },
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
