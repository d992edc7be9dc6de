//! `cupel min-budget`

use clap::Args;
use serde_json::json;

use crate::budget::tokens;
use crate::failure::{Exit, Failure};
use crate::output::Output;
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

Exit status: 1 if no budget up to the ceiling selects the item.";

impl MinBudget {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let task = self.task.load(Need::AnyBudget)?;
        if let Some(item) = self.item {
            task.check_index(item)?;
        }
        let (least, ceiling) = task.min_budgets(self.ceiling)?;
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
            output.json(&json!({
                "exact": least.exact,
                "ceiling": ceiling,
                "items": items.collect::<Vec<_>>(),
            }))?;
        } else if let (Some(item), [(_, least)]) = (self.item, &found[..]) {
            match least {
                Some(least) => output.line(least)?,
                None => output.note(format_args!(
                    "no budget up to {} selects item {item}",
                    grouped(ceiling)
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
        let missed = self.item.is_some() && found.iter().any(|(_, least)| least.is_none());
        Ok(if missed { Exit::Over } else { Exit::Success })
    }
}
