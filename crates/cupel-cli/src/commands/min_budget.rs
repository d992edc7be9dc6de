//! `cupel min-budget`

use clap::Args;
use cupel_app::{MinBudget, Prepared, Scope};

use crate::budget::tokens;
use crate::commands::sweep::NOT_MONOTONE;
use crate::failure::{Exit, Failure};
use crate::output::{Output, columns};
use crate::progress::Progress;
use crate::task::{TaskArgs, label_heading, position, warn};
use crate::text::{Give, Table, budget_ranges, excerpt, grouped, left, right};

/// Find the smallest budget from which on a message stays
///
/// A policy may include an item at a budget, drop it at a larger one for a better item, and include both at
/// a still larger one. The answer is the smallest budget from which on the item stays; the smaller ranges that
/// include it are listed, too. The default policy for chats cuts differently at each budget; with --policy single every
/// larger budget keeps what a smaller one keeps.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = MORE)]
pub(crate) struct MinBudgetArgs {
    /// Position of the message in the input, from 0. Default: all
    #[arg(long, value_name = "K", value_parser = position)]
    item: Option<usize>,

    /// Largest budget to consider. Default: the tokens of the input
    #[arg(long, value_name = "TOKENS", value_parser = tokens, allow_hyphen_values = true)]
    ceiling: Option<i64>,

    #[command(flatten)]
    task: TaskArgs,
}

const EXAMPLES: &str = "\
Examples:
  cupel min-budget chat.json --item 3
  cupel min-budget items.json --policy rag";

const MORE: &str = "\
Examples:
  cupel min-budget chat.json --item 3
  cupel min-budget items.json --policy rag
  cupel min-budget request.json --json

Exit status: 1 if the item does not stay at any budget up to the ceiling, 130 if
Ctrl-C ended a long search (the answer covers the budgets reached so far).";

impl MinBudgetArgs {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let task = self.task.load(Scope::AnyBudget)?;
        warn(&task, output);
        let mut progress = Progress::new(output);
        let answer = task.min_budget(self.item, self.ceiling, &mut |now| progress.observe(now));
        progress.finish();
        let answer = answer?;
        match (self.item, &answer.items[..]) {
            _ if output.is_json() => output.json(&answer)?,
            (Some(_), [budgets]) => {
                let last = answer.stopped_at.unwrap_or(answer.ceiling);
                one(&task, budgets, last, output)?;
            }
            (_, found) => output.table(&table(&task, found))?,
        }
        output.finish()?;
        let is_said = task.has_replay() && !output.is_json();
        if is_said && answer.items.iter().any(|it| !it.below().is_empty()) {
            output.note(NOT_MONOTONE);
        }
        if !answer.exact {
            output.note("budgets were sampled: a smaller one may do, too");
        }
        if let Some(budget) = answer.stopped_at {
            output.note(format_args!(
                "stopped: budgets above {} were not tried",
                grouped(budget)
            ));
            return Ok(Exit::Stopped);
        }
        let missed = self.item.is_some() && answer.items.iter().any(|it| it.min_budget.is_none());
        Ok(if missed { Exit::Over } else { Exit::Success })
    }
}

/// Writes the budget of one item, and its ranges to standard error.
fn one(
    task: &Prepared,
    budgets: &MinBudget,
    last: i64,
    output: &mut Output,
) -> Result<(), Failure> {
    let below = budget_ranges(budgets.below());
    match budgets.min_budget {
        Some(budget) => {
            output.line(budget)?;
            output.finish()?;
            if !below.is_empty() {
                output.note(format_args!("also included at {below}"));
            }
        }
        None => {
            let (name, last) = (task.named(budgets.index), grouped(last));
            output.note(match &*below {
                "" => format!("no budget up to {last} includes {name}"),
                below => format!("{name} is included at {below}, but not at {last}"),
            });
        }
    }
    if let Some(budget) = budgets.shortened_below() {
        output.note(format_args!(
            "shortened below a budget of {}",
            grouped(budget)
        ));
    }
    Ok(())
}

const GIVES: &[Give] = &[
    Give::Cut("content", 16),
    Give::Cut("also at", 16),
    Give::Omit("content"),
    Give::Omit("also at"),
];

fn table(task: &Prepared, found: &[MinBudget]) -> Table {
    let has_ranges = found.iter().any(|it| !it.below().is_empty());
    let has_views = found.iter().any(|it| it.shortened_below().is_some());
    let mut headers = vec![
        right("#"),
        left(label_heading(task)),
        right("tokens"),
        right("stays from"),
    ];
    headers.extend(has_views.then(|| right("in full from")));
    headers.extend(has_ranges.then(|| left("also at")));
    headers.push(left("content"));
    let mut table = Table::new(headers, GIVES);
    for budgets in found {
        let index = budgets.index;
        let item = &task.items()[index];
        let budget = |budget: Option<i64>| budget.map_or_else(|| "-".to_owned(), grouped);
        let mut row = vec![
            index.to_string(),
            task.label(index),
            grouped(item.tokens()),
            budget(budgets.min_budget),
        ];
        row.extend(has_views.then(|| budget(budgets.in_full)));
        row.extend(has_ranges.then(|| budget_ranges(budgets.below())));
        row.push(excerpt(item.content(), columns()));
        table.row(row);
    }
    table
}
