//! `cupel sweep`

use std::cmp::Reverse;
use std::collections::BTreeSet;

use clap::{Args, ValueEnum};
use cupel::{BudgetSweep, SweepStep};
use cupel_app::{Prepared, Scope, SweepAnswer};

use crate::budget::tokens;
use crate::failure::{Exit, Failure};
use crate::output::{Output, columns, style};
use crate::progress::Progress;
use crate::task::{TaskArgs, warn};
use crate::text::{Give, Table, grouped, grouped_count, left, right, score, words};

/// Show what each budget of a range keeps
///
/// Only the budget varies; reserve, slots and margin stay. The default policy for chats replays the cuts of each budget,
/// as fit does, so a larger budget may keep less; --policy single always keeps more. A policy with quotas, counts or
/// similarities is run at each budget, at samples of a large range. A search of more than a second shows its progress; Ctrl-C ends it with
/// the budgets reached so far and exit status 130.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sweep {
    /// Smallest target
    #[arg(long, value_name = "TOKENS", value_parser = tokens, allow_hyphen_values = true, default_value = "0")]
    from: i64,

    /// Largest target. Default: the tokens of the input
    #[arg(long, value_name = "TOKENS", value_parser = tokens, allow_hyphen_values = true)]
    to: Option<i64>,

    /// Write CSV: the steps, or the budgets of each message (items)
    #[arg(long, value_enum, value_name = "WHAT", hide_possible_values = true, num_args = 0..=1, default_missing_value = "steps", conflicts_with = "json")]
    csv: Option<Csv>,

    #[command(flatten)]
    task: TaskArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Csv {
    Steps,
    Items,
}

const EXAMPLES: &str = "\
Examples:
  cupel sweep chat.json                                  # a plot
  cupel sweep items.json --policy rag --csv > steps.csv
  cupel sweep items.json --policy rag --csv items        # per item
  cupel sweep request.json --from 500 --to 4000 --json";

impl Sweep {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let task = self.task.load(Scope::AnyBudget)?;
        warn(&task, output);
        let mut progress = Progress::new(output);
        let answer = task.sweep(self.from, self.to, &mut |now| progress.observe(now));
        progress.finish();
        let answer = answer?;
        let SweepAnswer {
            sweep, stopped_at, ..
        } = &answer;
        if output.is_json() {
            output.json(&answer)?;
        } else {
            match self.csv {
                Some(Csv::Steps) => output.text(sweep.steps_csv())?,
                Some(Csv::Items) => output.text(sweep.intervals_csv())?,
                None => plot(&task, sweep, output)?,
            }
        }
        if task.has_replay() && !output.is_json() {
            output.note(NOT_MONOTONE);
        }
        if !sweep.exact {
            output.note(if task.has_replay() {
                "budgets were sampled: a step is certain at its first budget"
            } else {
                "budgets were sampled: a step may start at a smaller budget"
            });
        }
        let Some(budget) = stopped_at else {
            return Ok(Exit::Success);
        };
        output.note(format_args!(
            "stopped: budgets above {} were not tried",
            grouped(*budget)
        ));
        Ok(Exit::Stopped)
    }
}

/// What a replay means for a range of budgets.
pub(super) const NOT_MONOTONE: &str = "not monotone: each budget has cuts of its own, so a larger one may keep less; --policy single always keeps more";

/// A number of a step.
type Measure = fn(&SweepStep) -> f64;

/// Writes three lines over the budgets, then the steps that matter most as a table.
fn plot(task: &Prepared, sweep: &BudgetSweep, output: &mut Output) -> Result<(), Failure> {
    const LABEL: usize = 9;
    const MAX_PLOT: usize = 100;
    let (Some(first), Some(last)) = (sweep.steps.first(), sweep.steps.last()) else {
        return Ok(());
    };
    let units = format!("{}s", task.shape().unit());
    let values: [(&str, Measure); 3] = [
        (&units, |step| step.included as f64),
        ("tokens", |step| step.tokens_used as f64),
        ("score", |step| step.total_score),
    ];
    let values = values.map(|(name, value)| {
        let all = sweep.steps.iter().map(value);
        let most = all.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let shown = match name {
            "score" => score(most),
            _ => grouped(whole(most)),
        };
        (name, value, most, format!(" up to {shown}"))
    });
    let tail = values.iter().map(|(.., tail)| tail.len()).max();
    let room = columns().saturating_sub(LABEL + tail.unwrap_or(0));
    let plot = room.clamp(8, MAX_PLOT);
    let span = i128::from(last.to) - i128::from(first.from);
    let at = |column: usize| {
        let budget = i128::from(first.from) + span * column as i128 / (plot as i128 - 1);
        let step = sweep
            .steps
            .partition_point(|step| i128::from(step.to) < budget);
        &sweep.steps[step.min(sweep.steps.len() - 1)]
    };
    let (bold, shade) = (style::HEADER, style::IN);
    for (name, value, most, tail) in &values {
        let line: Vec<f64> = (0..plot).map(|column| value(at(column))).collect();
        output.line(format_args!(
            "{bold}{name:>8}{bold:#} {shade}{}{shade:#}{tail}",
            spark(&line, *most),
        ))?;
    }
    let (from, to) = (grouped(first.from), grouped(last.to));
    let gap = plot.saturating_sub(from.len() + to.len());
    output.line(format_args!("  budget {from}{}{to}", " ".repeat(gap)))?;
    output.line("")?;

    let budget = Some(task.budget().target_tokens()).filter(|budget| *budget < task.all_tokens());
    let shown = shown_steps(&sweep.steps, budget);
    output.table(&table(&sweep.steps, &shown, budget, units))?;
    if shown.len() < sweep.steps.len() {
        let around = budget.map_or_else(String::new, |budget| {
            format!(", those around the budget of {} (>)", grouped(budget))
        });
        output.wrapped(format_args!(
            "{} of {} steps: the first and the last window{around}, and the largest changes. --csv and --json write all of them.",
            grouped_count(shown.len()),
            grouped_count(sweep.steps.len())
        ))?;
    }
    Ok(())
}

/// The most rows of the table.
const ROWS: usize = 16;

/// Returns the positions of the steps that the table shows, in ascending order: all, if they are few; otherwise the
/// first and the last window, two steps on each side of the budget, and the steps at which the tokens of the window
/// change most.
fn shown_steps(steps: &[SweepStep], budget: Option<i64>) -> Vec<usize> {
    const AROUND: usize = 2;
    if steps.len() <= ROWS {
        return (0..steps.len()).collect();
    }
    let first = steps.iter().position(|step| step.error.is_none());
    let last = steps.len() - 1;
    let mut shown = BTreeSet::from([first.unwrap_or(0), last]);
    if let Some(at) = budget.and_then(|budget| step_of(steps, budget)) {
        shown.extend(at.saturating_sub(AROUND)..=(at + AROUND).min(last));
    }
    let change = |&at: &usize| (steps[at].tokens_used - steps[at - 1].tokens_used).unsigned_abs();
    let mut by_change: Vec<usize> = (1..steps.len()).collect();
    // Stable: the smaller budget of equal changes.
    by_change.sort_by_key(|at| Reverse(change(at)));
    for at in by_change {
        if shown.len() == ROWS {
            break;
        }
        shown.insert(at);
    }
    shown.into_iter().collect()
}

/// Returns the position of the step that contains a budget.
fn step_of(steps: &[SweepStep], budget: i64) -> Option<usize> {
    steps
        .iter()
        .position(|step| (step.from..=step.to).contains(&budget))
}

/// Returns a table of some steps, with a row of dots in the place of others and `>` at the one of the budget.
fn table(steps: &[SweepStep], shown: &[usize], budget: Option<i64>, units: String) -> Table {
    let mut table = Table::new(
        [
            left(""),
            right("from"),
            right("to"),
            right(units),
            right("shortened"),
            right("tokens"),
            right("change"),
            right("score"),
        ],
        &[
            Give::Cut("score", 16),
            Give::Omit("change"),
            Give::Omit("shortened"),
            Give::Cut("score", 6),
        ],
    );
    let of_budget = budget.and_then(|budget| step_of(steps, budget));
    let mut next = 0;
    for &at in shown {
        let step = &steps[at];
        if at > next {
            let mut dots = vec![String::new(); 8];
            "...".clone_into(&mut dots[1]);
            table.row(dots);
        }
        next = at + 1;
        // The first budget of the sweep has no window before it.
        let change = at.checked_sub(1).map_or_else(String::new, |before| {
            let change = step.tokens_used - steps[before].tokens_used;
            format!("{}{}", if change > 0 { "+" } else { "" }, grouped(change))
        });
        let mark = if Some(at) == of_budget { ">" } else { "" };
        table.row(vec![
            mark.to_owned(),
            grouped(step.from),
            grouped(step.to),
            grouped_count(step.included),
            grouped_count(step.shortened),
            grouped(step.tokens_used),
            change,
            step.error.map_or_else(|| score(step.total_score), words),
        ]);
    }
    table
}

/// Draws one value per column, as blocks of eight heights.
fn spark(values: &[f64], most: f64) -> String {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let block = |value: &f64| {
        let share = if most > 0.0 {
            (value / most).clamp(0.0, 1.0)
        } else {
            0.0
        };
        let height = usize::try_from(whole((share * 8.0).ceil())).unwrap_or(0);
        BLOCKS[height.min(8)]
    };
    values.iter().map(block).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
fn whole(number: f64) -> i64 {
    number as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spark_has_eight_heights() {
        assert_eq!(spark(&[0.0, 1.0, 4.0, 8.0], 8.0), " ▁▄█");
        assert_eq!(spark(&[0.0, f64::NAN], 0.0), "  ");
    }
}
