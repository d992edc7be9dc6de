//! The results of a replay as a table, and tables with a column per policy.

use cupel_eval::{
    Billing, Estimate, Estimates, Measures, Prices, ReplayMeasure, ReplayReport, ReplayRow,
};

use super::evidence::percent;
use crate::failure::Failure;
use crate::output::{self, Output, style};
use crate::text::{counted, excerpt, grouped, grouped_count, width};

/// Writes a table per budget.
pub(super) fn write(report: &ReplayReport, output: &mut Output) -> Result<(), Failure> {
    for rows in report.results.chunk_by(|a, b| a.budget == b.budget) {
        let ReplayRow {
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
        let columns: Vec<_> = rows
            .iter()
            .map(|row| (&*row.policy, &row.estimates))
            .collect();
        write_columns(&columns, self::row, output)?;
    }
    output.finish()?;
    output.note(format_args!(
        "{}, {}, counted by {}; [95 % bootstrap interval over runs]",
        counted(report.runs, "run"),
        counted(report.requests, "request"),
        report.counter,
    ));
    note_billing(report, output);
    Ok(())
}

/// Writes how the full bill was computed to standard error.
fn note_billing(report: &ReplayReport, output: &mut Output) {
    let Billing {
        prices: Prices { read, write },
        prefix,
        lifetime,
    } = report.billing;
    let prefix = prefix.map_or_else(
        || "the runs' own".to_owned(),
        |tokens| format!("{} tokens", grouped(tokens)),
    );
    output.note(format_args!(
        "bill, full: a read token {read}, a written one {write}; cached prefix: {prefix}"
    ));
    match (lifetime, report.timed) {
        (None, _) => {}
        (Some(_), 0) => output.note("--lifetime has no effect: the messages have no timestamps"),
        (Some(lifetime), timed) => output.note(format_args!(
            "requests more than {} s after the one before: {} of {}",
            grouped(i64::from(lifetime)),
            grouped_count(report.expired),
            grouped_count(timed),
        )),
    }
}

/// Returns the label and the unit of a measure.
fn row(measure: ReplayMeasure) -> (&'static str, Unit) {
    match measure {
        ReplayMeasure::Grounding => ("grounding recall, %", Unit::Percent),
        ReplayMeasure::Supported => ("supported recall, %", Unit::Percent),
        ReplayMeasure::Lines => ("lines, %", Unit::Percent),
        ReplayMeasure::Fill => ("fill, %", Unit::Percent),
        ReplayMeasure::BodyReuse => ("reuse, body, %", Unit::Percent),
        ReplayMeasure::RequestReuse => ("reuse, request, %", Unit::Percent),
        ReplayMeasure::Cost => ("cost / no trimming", Unit::Factor),
        ReplayMeasure::Bill => ("bill of the body", Unit::Factor),
        ReplayMeasure::FullBill => ("bill, full", Unit::Factor),
        ReplayMeasure::Orphans => ("orphans, %", Unit::Percent),
        ReplayMeasure::OverBudget => ("over budget, %", Unit::Percent),
        ReplayMeasure::Mandatory => ("mandatory missing, %", Unit::Percent),
        ReplayMeasure::Prefix => ("broken prefixes, %", Unit::Percent),
        ReplayMeasure::Longer => ("longer forms, %", Unit::Percent),
        ReplayMeasure::Holes => ("holes, %", Unit::Percent),
        ReplayMeasure::Breaks => ("alternation breaks, %", Unit::Percent),
        ReplayMeasure::Failed => ("failed, %", Unit::Percent),
    }
}

/// How a value is written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unit {
    /// A share, in percent.
    Percent,
    /// A factor of the price without trimming.
    Factor,
}

/// The columns of a label, and of a cell with the space before it.
const LABEL: usize = 22;
const CELL: usize = 19;

/// Writes tables with a column per policy, as many as fit the terminal. A column is the name of the policy and its
/// values; `row` is the label and the unit of a measure.
pub(super) fn write_columns<M: Measures>(
    columns: &[(&str, &Estimates<M>)],
    row: fn(M) -> (&'static str, Unit),
    output: &mut Output,
) -> Result<(), Failure> {
    let room = output::columns().saturating_sub(LABEL);
    for columns in columns.chunks((room / CELL).max(1)) {
        let mut header = " ".repeat(LABEL);
        for (policy, _) in columns {
            header.push_str(&cell(&excerpt(policy, CELL - 2)));
        }
        output.line(header.trim_end())?;
        for &measure in M::ALL {
            let (label, unit) = row(measure);
            let mut line = format!("{label:<LABEL$}");
            for (_, estimates) in columns {
                let shown = estimates.get(measure).map(|value| shown(unit, value));
                line.push_str(&cell(&shown.unwrap_or_else(|| "-".to_owned())));
            }
            output.line(line.trim_end())?;
        }
        output.line("")?;
    }
    Ok(())
}

/// Pads a cell on the right.
fn cell(text: &str) -> String {
    let padding = (CELL - 2).saturating_sub(width(text));
    format!("  {text}{}", " ".repeat(padding))
}

/// Formats a value and its interval.
fn shown(unit: Unit, estimate: Estimate) -> String {
    let Estimate { value, low, high } = estimate;
    let [value, low, high] = [value, low, high].map(|number| match unit {
        Unit::Percent => percent(number),
        Unit::Factor => format!("{number:.2}"),
    });
    format!("{value} [{low}, {high}]")
}
