//! The results of a replay as a table.

use cupel_eval::{Billing, Estimate, Prices, ReplayMeasure, ReplayReport, ReplayRow};

use super::evidence::percent;
use crate::failure::Failure;
use crate::output::{Output, columns, style};
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
        let room = columns().saturating_sub(LABEL);
        for rows in rows.chunks((room / CELL).max(1)) {
            write_block(rows, output)?;
            output.line("")?;
        }
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

/// Returns the label of a measure.
fn label(measure: ReplayMeasure) -> &'static str {
    match measure {
        ReplayMeasure::Grounding => "grounding recall, %",
        ReplayMeasure::Supported => "supported recall, %",
        ReplayMeasure::Lines => "lines, %",
        ReplayMeasure::Fill => "fill, %",
        ReplayMeasure::BodyReuse => "reuse, body, %",
        ReplayMeasure::RequestReuse => "reuse, request, %",
        ReplayMeasure::Cost => "cost / no trimming",
        ReplayMeasure::Bill => "bill of the body",
        ReplayMeasure::FullBill => "bill, full",
        ReplayMeasure::Orphans => "orphans, %",
        ReplayMeasure::OverBudget => "over budget, %",
        ReplayMeasure::Mandatory => "mandatory missing, %",
        ReplayMeasure::Prefix => "broken prefixes, %",
        ReplayMeasure::Longer => "longer forms, %",
        ReplayMeasure::Holes => "holes, %",
        ReplayMeasure::Breaks => "alternation breaks, %",
        ReplayMeasure::Failed => "failed, %",
    }
}

/// The columns of a label, and of a cell with the space before it.
const LABEL: usize = 22;
const CELL: usize = 19;

/// Writes a table with one column per row of results.
fn write_block(rows: &[ReplayRow], output: &mut Output) -> Result<(), Failure> {
    let mut header = " ".repeat(LABEL);
    for row in rows {
        let state = if row.state { ", state" } else { "" };
        let name = excerpt(&row.policy, CELL - 2 - state.len());
        header.push_str(&cell(&(name + state)));
    }
    output.line(header.trim_end())?;
    for measure in ReplayMeasure::ALL {
        let mut line = format!("{:<LABEL$}", label(measure));
        for row in rows {
            let estimate = row.estimates.get(measure);
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
fn shown(measure: ReplayMeasure, estimate: Estimate) -> String {
    let Estimate { value, low, high } = estimate;
    let [value, low, high] = [value, low, high].map(|number| match measure {
        ReplayMeasure::Cost | ReplayMeasure::Bill | ReplayMeasure::FullBill => {
            format!("{number:.2}")
        }
        _ => percent(number),
    });
    format!("{value} [{low}, {high}]")
}
