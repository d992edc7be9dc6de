//! `cupel eval FILE`

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::bootstrap::{Estimate, SAMPLES};
use super::dataset::Dataset;
use super::evaluation::{EvalPolicy, Evaluation, Measure};
use crate::failure::{Exit, Failure};
use crate::output::{Output, columns, style};
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

/// Returns budgets in order, each once.
pub(super) fn ascending(mut budgets: Vec<i64>) -> Vec<i64> {
    budgets.sort_unstable();
    budgets.dedup();
    budgets
}

impl Evidence {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let policies = self.policy.iter().map(|name| EvalPolicy::find(name));
        let policies = policies.collect::<Result<Vec<_>, _>>()?;
        let dataset = Dataset::read(&self.file)?;
        let evaluation = Evaluation::run(&dataset, &policies, &ascending(self.budget), output)?;
        let names: Vec<&str> = policies.iter().map(|policy| &*policy.name).collect();
        let results = Results::new(&evaluation, &names);
        if output.is_json() {
            let mut document = describe(&dataset);
            document["results"] = results.document();
            output.json(&document)?;
        } else if self.csv {
            results.write_csv(output)?;
        } else {
            results.write(output)?;
            output.finish()?;
            note(&dataset, output);
        }
        Ok(Exit::Success)
    }
}

/// Returns the size of a data set in JSON.
pub(super) fn describe(dataset: &Dataset) -> Value {
    json!({
        "file": dataset.name,
        "transcripts": dataset.transcripts.len(),
        "questions": dataset.questions(),
        "skipped": dataset.skipped,
        "samples": SAMPLES,
    })
}

/// Writes the size of a data set to standard error.
pub(super) fn note(dataset: &Dataset, output: &mut Output) {
    output.note(format_args!(
        "{}, {}; [95 % bootstrap interval over transcripts]",
        counted(dataset.transcripts.len(), "transcript"),
        counted(dataset.questions(), "question"),
    ));
    if dataset.skipped > 0 {
        let skipped = counted(dataset.skipped, "question");
        output.note(format_args!("{skipped} without evidence skipped"));
    }
}

/// The results of policies, and the differences of the first one to the others.
pub(super) struct Results<'a> {
    measures: &'a [Measure],
    columns: Vec<Column<'a>>,
}

/// The results of one policy, or of one difference.
struct Column<'a> {
    policy: &'a str,
    /// The policy that is subtracted.
    minus: Option<&'a str>,
    /// By measure.
    estimates: Vec<Option<Estimate>>,
}

impl<'a> Results<'a> {
    pub(super) fn new(evaluation: &'a Evaluation, names: &[&'a str]) -> Self {
        let measures = evaluation.measures();
        let own = names.iter().enumerate().map(|(position, &policy)| Column {
            policy,
            minus: None,
            estimates: measures
                .iter()
                .map(|&measure| evaluation.estimate(position, measure))
                .collect(),
        });
        let differences = names.iter().enumerate().skip(1);
        let differences = differences.map(|(position, &other)| Column {
            policy: names[0],
            minus: Some(other),
            estimates: measures
                .iter()
                .map(|&measure| evaluation.difference(0, position, measure))
                .collect(),
        });
        Self {
            measures,
            columns: own.chain(differences).collect(),
        }
    }

    /// Returns one row per measure and column.
    fn rows(&self) -> impl Iterator<Item = (Measure, &Column<'a>, Estimate)> {
        let measures = self.measures.iter().enumerate();
        measures.flat_map(move |(position, &measure)| {
            let columns = self.columns.iter();
            columns.filter_map(move |column| Some((measure, column, column.estimates[position]?)))
        })
    }

    pub(super) fn document(&self) -> Value {
        let rows = self.rows().map(|(measure, column, estimate)| {
            let Estimate { value, low, high } = estimate;
            json!({
                "measure": measure.name(),
                "at": measure.at(),
                "policy": column.policy,
                "minus": column.minus,
                "value": value,
                "low": low,
                "high": high,
            })
        });
        rows.collect()
    }

    fn write_csv(&self, output: &mut Output) -> Result<(), Failure> {
        output.line("measure,at,policy,minus,value,low,high")?;
        for (measure, column, Estimate { value, low, high }) in self.rows() {
            let (name, at) = (measure.name(), measure.at());
            let [policy, minus] = [column.policy, column.minus.unwrap_or_default()].map(csv_field);
            output.line(format_args!(
                "{name},{at},{policy},{minus},{value},{low},{high}"
            ))?;
        }
        Ok(())
    }

    /// Writes a table per kind of measure.
    pub(super) fn write(&self, output: &mut Output) -> Result<(), Failure> {
        let mut start = 0;
        for measures in self.measures.chunk_by(|a, b| a.name() == b.name()) {
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
            for columns in self.columns.chunks((room / CELL).max(1)) {
                let headings = columns.iter().map(|column| left(column.heading()));
                let headings: Vec<_> = std::iter::once(right(format!("{heading:>LABEL$}")))
                    .chain(headings)
                    .collect();
                let mut table = Table::new(headings, &[]);
                for (position, measure) in (start..).zip(measures) {
                    let cells = columns.iter().map(|column| column.cell(position));
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
}

/// The columns of a budget, and of a cell with the space before it.
const LABEL: usize = 8;
const CELL: usize = 22;

impl Column<'_> {
    fn heading(&self) -> String {
        let heading = match self.minus {
            None => file_name(self.policy).to_owned(),
            Some(other) => format!("vs {}", file_name(other)),
        };
        excerpt(&heading, CELL - 2)
    }

    fn cell(&self, measure: usize) -> String {
        let Some(Estimate { value, low, high }) = self.estimates[measure] else {
            return "-".to_owned();
        };
        let percent = |share: f64| match self.minus {
            Some(_) if share >= 0.0 => format!("+{}", percent(share)),
            _ => percent(share),
        };
        format!("{} [{}, {}]", percent(value), percent(low), percent(high))
    }
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
