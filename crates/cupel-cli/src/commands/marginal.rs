//! `cupel marginal`

use clap::Args;
use cupel::CupelError;
use serde_json::json;

use crate::budget::tokens;
use crate::counting::ChatArgs;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::task::{InputArgs, Need, PolicyArg, Task};
use crate::text::{Table, excerpt, grouped, left, right};

/// Show what a smaller budget would lose
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Marginal {
    #[command(flatten)]
    policy: PolicyArg,

    /// How many tokens smaller
    #[arg(long, value_name = "TOKENS", value_parser = tokens, allow_hyphen_values = true)]
    slack: i64,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    chat: ChatArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel marginal items.json --budget 4000 --policy rag --slack 500";

impl Marginal {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let task = Task::load(&self.input, &self.chat, self.policy.name(), Need::Budget)?;
        if self.slack > task.budget.max_tokens() {
            let (slack, most) = (self.slack, task.budget.max_tokens());
            return Err(
                Failure::input(format!("--slack {slack} is more than the budget")).help(format!(
                    "the budget is {most}: give a --slack of at most that"
                )),
            );
        }
        let lost = task
            .pipeline()
            .marginal_items(&task.items, &task.budget, self.slack)
            .map_err(|error| match error {
                CupelError::PipelineConfig(_) => Failure::input(
                    "percentage quotas share out the budget anew for every size, so no item is marginal",
                )
                .help("use a policy without a quota slicer, or look at all budgets with `cupel sweep`"),
                error => Failure::run(&error),
            })?;
        let lost = crate::decision::positions(&task.items, &lost);
        if output.is_json() {
            let items = lost
                .iter()
                .map(|&index| json!({ "index": index, "item": task.items[index] }));
            output.json(&json!({ "slack": self.slack, "lost": items.collect::<Vec<_>>() }))?;
            return Ok(Exit::Success);
        }
        let mut table =
            Table::new(const { &[right("#"), left("kind"), right("tokens"), left("content")] });
        for &index in &lost {
            let item = &task.items[index];
            table.row(vec![
                index.to_string(),
                item.kind().to_string(),
                grouped(item.tokens()),
                excerpt(item.content(), 60),
            ]);
        }
        if lost.is_empty() {
            output.note(format_args!(
                "{} tokens less would lose nothing",
                grouped(self.slack)
            ));
        } else {
            for line in table.lines() {
                output.line(line)?;
            }
        }
        Ok(Exit::Success)
    }
}
