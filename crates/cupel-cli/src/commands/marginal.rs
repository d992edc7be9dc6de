//! `cupel marginal`

use clap::Args;
use cupel_app::{LostItem, Scope};

use crate::budget::tokens;
use crate::failure::{Exit, Failure};
use crate::output::{Output, columns};
use crate::task::{TaskArgs, label_heading, warn};
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
        let task = self.task.load(Scope::Budget)?;
        warn(&task, output);
        let answer = task.marginal(self.slack)?;
        if output.is_json() {
            output.json(&answer)?;
            return Ok(Exit::Success);
        }
        if answer.lost.is_empty() {
            output.note(format_args!(
                "a budget smaller by {} tokens loses nothing",
                grouped(self.slack)
            ));
            return Ok(Exit::Success);
        }
        let mut table = Table::new(
            [
                right("#"),
                left(label_heading(&task)),
                right("tokens"),
                left("content"),
            ],
            &[Give::Cut("content", 16)],
        );
        for LostItem { index, item } in &answer.lost {
            table.row(vec![
                index.to_string(),
                task.label(*index),
                grouped(item.tokens()),
                excerpt(item.content(), columns()),
            ]);
        }
        output.table(&table)?;
        Ok(Exit::Success)
    }
}
