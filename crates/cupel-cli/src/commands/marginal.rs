//! `cupel marginal`

use clap::Args;
use serde_json::json;

use crate::budget::tokens;
use crate::failure::{Exit, Failure};
use crate::output::{Output, columns};
use crate::task::{Need, TaskArgs};
use crate::text::{Give, Table, excerpt, grouped, left, right};

/// Show what a smaller budget loses
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Marginal {
    /// How many tokens smaller the budget is
    #[arg(long, value_name = "TOKENS", value_parser = tokens, allow_hyphen_values = true)]
    slack: i64,

    #[command(flatten)]
    task: TaskArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel marginal items.json --budget 4000 --policy rag --slack 500";

impl Marginal {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let task = self.task.load(Need::Budget)?;
        task.warn(output);
        if self.slack > task.budget.max_tokens() {
            let (slack, most) = (grouped(self.slack), grouped(task.budget.max_tokens()));
            return Err(
                Failure::input(format!("--slack {slack} is greater than the budget"))
                    .help(format!("give at most the budget, {most}")),
            );
        }
        if task.pipeline().policy().slicer().is_quota() {
            return Err(Failure::input(
                "a percentage quota changes with the budget, so no item is marginal",
            )
            .help("use a policy without a quota slicer, or see all budgets with `cupel sweep`"));
        }
        let smaller = task
            .budget
            .with_limits(
                task.budget.max_tokens() - self.slack,
                (task.budget.target_tokens() - self.slack).max(0),
            )
            .map_err(|error| Failure::run(&error))?;
        let kept = task.decide_within(&smaller)?;
        let decisions = task.decide()?;
        let lost = decisions.window().iter().copied();
        let lost: Vec<usize> = lost
            .filter(|&index| kept.inclusion(index).is_none())
            .collect();
        if output.is_json() {
            let items = lost
                .iter()
                .map(|&index| json!({ "index": index, "item": task.items[index] }));
            output.json(&json!({ "slack": self.slack, "lost": items.collect::<Vec<_>>() }))?;
            return Ok(Exit::Success);
        }
        if lost.is_empty() {
            output.note(format_args!(
                "a budget smaller by {} tokens loses nothing",
                grouped(self.slack)
            ));
            return Ok(Exit::Success);
        }
        let mut table = Table::new(
            [
                right("#"),
                left(task.label_heading()),
                right("tokens"),
                left("content"),
            ],
            &[Give::Cut("content", 16)],
        );
        for &index in &lost {
            let item = &task.items[index];
            table.row(vec![
                index.to_string(),
                task.label(index),
                grouped(item.tokens()),
                excerpt(item.content(), columns()),
            ]);
        }
        output.table(&table)?;
        Ok(Exit::Success)
    }
}
