//! `cupel eval FILE`

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::Args;
use cupel_eval::{
    Comparison, ComparisonColumn, DatasetSize, Estimate, EvalPolicy, Evaluation, Measure,
};

use super::{failure, observed, read_dataset};
use cupel_app::NamedPolicy;

use crate::failure::{Exit, Failure};
use crate::output::{Output, columns, style};
use crate::task::find_policy;
use crate::text::{Table, counted, excerpt, grouped, left, right};
use crate::trimming::at_least_one;

/// The questions, the policies and the budgets. Has no flattened arguments: `Option<Evidence>` would then
/// always be `None`.
#[derive(Debug, Args)]
pub(super) struct Evidence {
    /// Transcripts with questions and marked evidence, one per line; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Token limits: 512,1024,2k
    #[arg(long, value_name = "TOKENS", value_parser = at_least_one, value_delimiter = ',', required = true)]
    budget: Vec<i64>,

    /// Policies: presets or files; the first one is compared with each other one
    #[arg(
        long,
        value_name = "NAME|FILE",
        value_delimiter = ',',
        default_value = "memory,newest"
    )]
    policy: Vec<String>,

    /// Write CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

impl Evidence {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let policies = self.policy.iter().map(|name| {
            let NamedPolicy { name, policy } = find_policy(name)?;
            Ok(EvalPolicy::new(name, policy))
        });
        let policies = policies.collect::<Result<Vec<_>, Failure>>()?;
        let dataset = read_dataset(&self.file)?;
        let evaluation = observed(output, "transcript", |observe| {
            Evaluation::run(&dataset, &policies, &self.budget, observe)
        });
        let report = evaluation.map_err(failure)?.report();
        if output.is_json() {
            output.json(&report)?;
        } else if self.csv {
            write_csv(&report.results, output)?;
        } else {
            write(&report.results, output)?;
            output.finish()?;
            note(&report.dataset, output);
        }
        Ok(Exit::Success)
    }
}

/// Writes the size of a data set to standard error.
pub(super) fn note(dataset: &DatasetSize, output: &mut Output) {
    output.note(format_args!(
        "{}, {}; [95 % bootstrap interval over transcripts]",
        counted(dataset.transcripts, "transcript"),
        counted(dataset.questions, "question"),
    ));
    if dataset.skipped > 0 {
        let skipped = counted(dataset.skipped, "question");
        output.note(format_args!("{skipped} without evidence skipped"));
    }
}

fn write_csv(results: &Comparison, output: &mut Output) -> Result<(), Failure> {
    output.line("measure,at,policy,minus,value,low,high")?;
    for row in results.rows() {
        let (name, at) = (row.measure, row.at);
        let [policy, minus] = [row.policy, row.minus.unwrap_or_default()].map(csv_field);
        let Estimate { value, low, high } = row.estimate;
        output.line(format_args!(
            "{name},{at},{policy},{minus},{value},{low},{high}"
        ))?;
    }
    Ok(())
}

/// Writes a table per kind of measure.
pub(super) fn write(results: &Comparison, output: &mut Output) -> Result<(), Failure> {
    let mut start = 0;
    for measures in results.measures.chunk_by(|a, b| a.name() == b.name()) {
        let (title, heading) = match measures[0] {
            Measure::Items(_) => ("evidence items kept, %", "budget"),
            Measure::Tokens(_) => (
                "evidence tokens kept, % of those that fit the budget",
                "budget",
            ),
            Measure::RecallAt(_) => ("evidence items among the first k by score, %", "k"),
        };
        let bold = style::HEADER;
        output.line(format_args!("{bold}{title}{bold:#}"))?;
        let room = columns().saturating_sub(LABEL);
        for columns in results.columns.chunks((room / CELL).max(1)) {
            let headings = columns.iter().map(|column| left(column_heading(column)));
            let headings: Vec<_> = std::iter::once(right(format!("{heading:>LABEL$}")))
                .chain(headings)
                .collect();
            let mut table = Table::new(headings, &[]);
            for (position, measure) in (start..).zip(measures) {
                let cells = columns.iter().map(|column| cell(column, position));
                table.row(
                    std::iter::once(grouped(measure.at()))
                        .chain(cells)
                        .collect(),
                );
            }
            output.table(&table)?;
        }
        output.line("")?;
        start += measures.len();
    }
    Ok(())
}

/// The columns of a budget, and of a cell with the space before it.
const LABEL: usize = 8;
const CELL: usize = 22;

fn column_heading(column: &ComparisonColumn) -> String {
    let heading = match &column.minus {
        None => file_name(&column.policy).to_owned(),
        Some(other) => format!("vs {}", file_name(other)),
    };
    excerpt(&heading, CELL - 2)
}

fn cell(column: &ComparisonColumn, measure: usize) -> String {
    let Some(Estimate { value, low, high }) = column.estimates[measure] else {
        return "-".to_owned();
    };
    let percent = |share: f64| match column.minus {
        Some(_) if share >= 0.0 => format!("+{}", percent(share)),
        _ => percent(share),
    };
    format!("{} [{}, {}]", percent(value), percent(low), percent(high))
}

/// Returns the name of a policy without its directory.
fn file_name(policy: &str) -> &str {
    let name = Path::new(policy).file_name();
    name.and_then(OsStr::to_str).unwrap_or(policy)
}

/// Formats a share in percent with one decimal.
pub(super) fn percent(share: f64) -> String {
    let percent = format!("{:.1}", 100.0 * share);
    match percent.strip_suffix("100.0") {
        Some(sign) => format!("{sign}100"),
        None => percent,
    }
}

/// Quotes a field of CSV that needs it (RFC 4180).
fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
