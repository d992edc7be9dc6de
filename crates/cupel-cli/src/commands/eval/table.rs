//! The results of an evaluation as a table and as JSON.

use serde_json::{Map, Value, json};

use super::bootstrap::{Estimate, SAMPLES};
use super::evidence::percent;
use super::replay::Setting;
use super::tally::{Measure, Tally, estimates};
use crate::failure::Failure;
use crate::output::{Output, columns, style};
use crate::text::{counted, excerpt, grouped, width};

/// The results of all settings.
pub(super) struct Results<'a> {
    pub(super) runs: usize,
    pub(super) counter: &'a str,
    /// By budget, then by policy.
    pub(super) rows: Vec<Row>,
}

/// The results of one setting.
pub(super) struct Row {
    budget: i64,
    policy: String,
    has_state: bool,
    requests: usize,
    /// The requests whose history exceeds the budget.
    trimmed: usize,
    /// The trimmed requests whose answer has evidence.
    steps: usize,
    estimates: [Option<Estimate>; Measure::ALL.len()],
}

impl Row {
    pub(super) fn new(setting: &Setting, runs: &[&Tally]) -> Self {
        let sum = |of: fn(&Tally) -> usize| runs.iter().map(|run| of(run)).sum();
        Self {
            budget: setting.budget,
            policy: setting.method.name().to_owned(),
            has_state: setting.method.has_state(),
            requests: sum(|run| run.requests),
            trimmed: sum(|run| run.trimmed),
            steps: sum(|run| run.steps),
            estimates: estimates(runs),
        }
    }

    fn document(&self) -> Value {
        let mut document = Map::new();
        document.insert("budget".to_owned(), self.budget.into());
        document.insert("policy".to_owned(), self.policy.clone().into());
        document.insert("state".to_owned(), self.has_state.into());
        document.insert("trimmed".to_owned(), self.trimmed.into());
        document.insert("steps".to_owned(), self.steps.into());
        for ((_, name, _), estimate) in Measure::ALL.into_iter().zip(self.estimates) {
            let estimate = estimate.map(
                |Estimate { value, low, high }| json!({ "value": value, "low": low, "high": high }),
            );
            document.insert(name.to_owned(), estimate.into());
        }
        document.into()
    }
}

impl Results<'_> {
    /// Returns the number of requests of all runs.
    pub(super) fn requests(&self) -> usize {
        self.rows.first().map_or(0, |row| row.requests)
    }

    pub(super) fn document(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(Row::document).collect();
        json!({
            "runs": self.runs,
            "requests": self.requests(),
            "counter": self.counter,
            "samples": SAMPLES,
            "results": rows,
        })
    }

    pub(super) fn write(&self, output: &mut Output) -> Result<(), Failure> {
        for rows in self.rows.chunk_by(|a, b| a.budget == b.budget) {
            let Row {
                budget,
                trimmed,
                steps,
                ..
            } = &rows[0];
            let bold = style::HEADER;
            output.line(format_args!(
                "{bold}budget {}{bold:#}: {} over it, {} with evidence",
                grouped(*budget),
                counted(*trimmed, "request"),
                counted(*steps, "step"),
            ))?;
            if *trimmed == 0 {
                output.line("")?;
                continue;
            }
            let room = columns().saturating_sub(LABEL);
            for rows in rows.chunks((room / CELL).max(1)) {
                write_block(rows, output)?;
                output.line("")?;
            }
        }
        output.finish()?;
        output.note(format_args!(
            "{}, {}, counted by {}; [95 % bootstrap interval over runs]",
            counted(self.runs, "run"),
            counted(self.requests(), "request"),
            self.counter,
        ));
        Ok(())
    }
}

/// The columns of a label, and of a cell with the space before it.
const LABEL: usize = 22;
const CELL: usize = 19;

/// Writes a table with one column per row of results.
fn write_block(rows: &[Row], output: &mut Output) -> Result<(), Failure> {
    let mut header = " ".repeat(LABEL);
    for row in rows {
        let state = if row.has_state { ", state" } else { "" };
        let name = excerpt(&row.policy, CELL - 2 - state.len());
        header.push_str(&cell(&(name + state)));
    }
    output.line(header.trim_end())?;
    for (position, (measure, _, label)) in Measure::ALL.into_iter().enumerate() {
        let mut line = format!("{label:<LABEL$}");
        for row in rows {
            let estimate = row.estimates[position];
            line.push_str(&cell(
                &estimate.map_or_else(|| "-".to_owned(), |estimate| shown(measure, estimate)),
            ));
        }
        output.line(line.trim_end())?;
    }
    Ok(())
}

/// Pads a cell on the right.
fn cell(text: &str) -> String {
    let padding = (CELL - 2).saturating_sub(width(text));
    format!("  {text}{}", " ".repeat(padding))
}

/// Formats a cost as a factor and every other measure in percent.
fn shown(measure: Measure, estimate: Estimate) -> String {
    let Estimate { value, low, high } = estimate;
    let [value, low, high] = [value, low, high].map(|number| match measure {
        Measure::Cost => format!("{number:.2}"),
        _ => percent(number),
    });
    format!("{value} [{low}, {high}]")
}
