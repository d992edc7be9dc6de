//! `cupel min-budget`

use clap::Args;
use cupel::{BudgetSweep, ItemIntervals};
use serde_json::json;

use crate::budget::tokens;
use crate::failure::{Exit, Failure};
use crate::output::{Output, columns};
use crate::progress::Progress;
use crate::task::{Need, Task, TaskArgs, position};
use crate::text::{Give, Table, budget_ranges, excerpt, grouped, left, right};

/// Find the smallest budget from which on a message stays
///
/// A policy may include an item at a budget, drop it at a larger one for a better item, and include both at
/// a still larger one. The answer is the smallest budget from which on the item stays; the smaller ranges that
/// include it are listed, too. The default policy for chats has none: what a budget keeps, every larger one keeps.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = MORE)]
pub(crate) struct MinBudget {
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

/// The budgets at which one message or item is included.
struct Budgets {
    index: usize,
    /// The least budget from which on it stays.
    stays_from: Option<i64>,
    /// The least budget from which on it stays in full.
    in_full_from: Option<i64>,
    /// All ranges.
    ranges: Vec<(i64, i64)>,
}

impl Budgets {
    /// Reads the budgets off a sweep that ends at `last`.
    fn new(item: &ItemIntervals, last: i64) -> Self {
        let stays = item.intervals.last().filter(|(_, to)| *to >= last);
        let forms = item.forms();
        let in_full = forms
            .last()
            .filter(|(_, to, view)| *to >= last && view.is_none());
        Self {
            index: item.index,
            stays_from: stays.map(|(from, _)| *from),
            in_full_from: in_full.map(|(from, _, _)| *from),
            ranges: item.intervals.clone(),
        }
    }

    /// Returns the ranges below the one from which on the item stays.
    fn below(&self) -> &[(i64, i64)] {
        match self.stays_from {
            Some(_) => &self.ranges[..self.ranges.len() - 1],
            None => &self.ranges,
        }
    }

    /// Returns the least budget in full, if the item is shortened at smaller ones.
    fn shortened_below(&self) -> Option<i64> {
        self.in_full_from
            .filter(|_| self.in_full_from != self.stays_from)
    }
}

impl MinBudget {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let task = self.task.load(Need::AnyBudget)?;
        task.warn(output);
        if let Some(item) = self.item {
            task.check_index(item)?;
        }
        let ceiling = self.ceiling.unwrap_or_else(|| task.all_tokens());
        let mut progress = Progress::new(output);
        let sweep = task.sweep(0, Some(ceiling), |now| progress.observe(now));
        let stopped_at = progress.finish();
        let sweep = sweep?;
        let last = stopped_at.unwrap_or(ceiling);
        let asked = match self.item {
            Some(item) => &sweep.items[item..=item],
            None => &sweep.items[..],
        };
        let found: Vec<Budgets> = asked.iter().map(|item| Budgets::new(item, last)).collect();
        match (self.item, &found[..]) {
            _ if output.is_json() => {
                output.json(&document(&sweep, ceiling, stopped_at, &found))?;
            }
            (Some(_), [budgets]) => one(&task, budgets, last, output)?,
            _ => output.table(&table(&task, &found))?,
        }
        output.finish()?;
        if !sweep.exact {
            output.note("budgets were sampled: a smaller one may do, too");
        }
        if let Some(budget) = stopped_at {
            output.note(format_args!(
                "stopped: budgets above {} were not tried",
                grouped(budget)
            ));
            return Ok(Exit::Stopped);
        }
        let missed = self.item.is_some() && found.iter().any(|it| it.stays_from.is_none());
        Ok(if missed { Exit::Over } else { Exit::Success })
    }
}

fn document(
    sweep: &BudgetSweep,
    ceiling: i64,
    stopped_at: Option<i64>,
    found: &[Budgets],
) -> serde_json::Value {
    let items = found.iter().map(|it| {
        json!({
            "index": it.index,
            "min_budget": it.stays_from,
            "in_full": it.in_full_from,
            "ranges": it.ranges,
        })
    });
    let mut answer = json!({
        "exact": sweep.exact,
        "ceiling": ceiling,
        "items": items.collect::<Vec<_>>(),
    });
    if let Some(budget) = stopped_at {
        answer["stopped_at"] = budget.into();
    }
    answer
}

/// Writes the budget of one item, and its ranges to standard error.
fn one(task: &Task, budgets: &Budgets, last: i64, output: &mut Output) -> Result<(), Failure> {
    let below = budget_ranges(budgets.below());
    match budgets.stays_from {
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

fn table(task: &Task, found: &[Budgets]) -> Table {
    let has_ranges = found.iter().any(|it| !it.below().is_empty());
    let has_views = found.iter().any(|it| it.shortened_below().is_some());
    let mut headers = vec![
        right("#"),
        left(task.label_heading()),
        right("tokens"),
        right("stays from"),
    ];
    headers.extend(has_views.then(|| right("in full from")));
    headers.extend(has_ranges.then(|| left("also at")));
    headers.push(left("content"));
    let mut table = Table::new(headers, GIVES);
    for budgets in found {
        let index = budgets.index;
        let item = &task.items[index];
        let budget = |budget: Option<i64>| budget.map_or_else(|| "-".to_owned(), grouped);
        let mut row = vec![
            index.to_string(),
            task.label(index),
            grouped(item.tokens()),
            budget(budgets.stays_from),
        ];
        row.extend(has_views.then(|| budget(budgets.in_full_from)));
        row.extend(has_ranges.then(|| budget_ranges(budgets.below())));
        row.push(excerpt(item.content(), columns()));
        table.row(row);
    }
    table
}
