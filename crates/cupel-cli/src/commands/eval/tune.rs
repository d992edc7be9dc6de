//! `cupel eval tune`

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cupel::config::Format;
use cupel_eval::{
    Axis, EvalPolicy, Grid, GridError, Objective, Overlap, Trial, TuneError, Tuned, Tuning,
};

use super::evidence::{note, percent, write};
use super::{failure, observed, read_dataset};
use crate::failure::{Exit, Failure};
use crate::output::{Output, style};
use crate::task::Named;
use crate::text::{Table, counted, grouped_count, left, right};
use crate::trimming::at_least_one;

/// Search a grid of a policy's numbers
///
/// Runs every combination of the values on TRAIN, chooses the best by the mean of a measure over the
/// budgets, and reports it on another file. Prints the grid, the report and the policy document with the
/// chosen values. Among equal settings the first in the order of the grid is chosen.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "cupel eval tune [OPTIONS] <TRAIN>")]
pub(super) struct Tune {
    /// Transcripts to choose on, one per line
    #[arg(value_name = "TRAIN")]
    train: PathBuf,

    /// Transcripts to report on; none of them may be in TRAIN
    #[arg(long, value_name = "FILE")]
    report: PathBuf,

    /// Policy to start from: a preset or a file
    #[arg(long, value_name = "NAME|FILE")]
    policy: String,

    /// Number of the policy and its values: scorer.k1=0.5,0.9; repeatable
    ///
    /// The path has the keys and positions that lead to the number, such as `scorer.entries[0].weight`.
    #[arg(long, value_name = "PATH=VALUES", value_parser = axis, required = true)]
    grid: Vec<Axis>,

    /// Token limits: 512,1024,2k
    #[arg(long, value_name = "TOKENS", value_parser = at_least_one, value_delimiter = ',', required = true)]
    budget: Vec<i64>,

    /// Measure to choose by: items or tokens
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        default_value = "items",
        hide_possible_values = true
    )]
    by: By,
}

const EXAMPLES: &str = "\
Examples:
  cupel eval tune train.jsonl --report val.jsonl --policy mine.toml \\
    --budget 1k,2k --grid scorer.k1=0.5,0.9,1.2 --grid scorer.b=0.3,0.5
  cupel eval tune train.jsonl --report val.jsonl --policy chat \\
    --budget 2k --grid 'scorer.entries[0].weight=1,3' --json | jq .policy";

/// The measure of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Items,
    Tokens,
}

/// Parses an axis such as `scorer.k1=0.5,0.9`.
fn axis(text: &str) -> Result<Axis, String> {
    let expected = "expected PATH=VALUES, such as scorer.k1=0.5,0.9,1.2";
    let (path, values) = text.split_once('=').ok_or(expected)?;
    if path.trim().is_empty() {
        return Err(expected.to_owned());
    }
    let value = |value: &str| {
        let value = value.trim();
        value
            .parse()
            .map_err(|_| format!("`{value}` is not a number; {expected}"))
    };
    Ok(Axis {
        path: path.trim().to_owned(),
        values: values.split(',').map(value).collect::<Result<_, _>>()?,
    })
}

impl Tune {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let start = Named::find(&self.policy)?.config()?;
        let grid = Grid::new(self.grid.clone()).map_err(|error| self.invalid_grid(&error))?;
        let policy = start.build();
        let policy = policy.map_err(|error| Failure::input(error.to_string()))?;
        let (train, report) = (read_dataset(&self.train)?, read_dataset(&self.report)?);
        let tuning = Tuning {
            start: &start,
            grid: &grid,
            objective: match self.by {
                By::Items => Objective::Items,
                By::Tokens => Objective::Tokens,
            },
            budgets: &self.budget,
            train: &train,
            report: &report,
            baselines: &[EvalPolicy::new(&*self.policy, policy)],
        };
        let tuned = observed(output, "transcript", |observe| tuning.run(observe));
        let tuned = tuned.map_err(|error| match error {
            TuneError::Grid(error) => self.invalid_grid(&error),
            TuneError::Overlap(Overlap { report: line, train: other }) => {
                let (report, train) = (report.name(), train.name());
                Failure::input(format!(
                    "line {line} of {report} is also line {other} of {train}"
                ))
                .help("report on transcripts that the setting is not chosen on: split the file in two")
            }
            TuneError::Eval(error) => failure(error),
            error => Failure::input(error.to_string()),
        })?;
        if output.is_json() {
            output.json(&tuned)?;
            return Ok(Exit::Success);
        }
        write_grid(&grid, &tuned, output)?;
        output.line("")?;
        let bold = style::HEADER;
        output.line(format_args!("{bold}Report on {}{bold:#}", report.name()))?;
        output.line("")?;
        write(&tuned.report.results, output)?;
        let text = tuned.policy.to_text(Format::Json);
        output.text(text.map_err(|error| Failure::internal(error.to_string()))?)?;
        output.finish()?;
        output.note(format_args!(
            "{} tried on {}: {}, {}",
            counted(tuned.grid.len(), "setting"),
            tuned.train.name,
            counted(tuned.train.transcripts, "transcript"),
            counted(tuned.train.questions, "question"),
        ));
        note(&tuned.report.dataset, output);
        Ok(Exit::Success)
    }

    /// Returns the failure of `--grid`.
    fn invalid_grid(&self, error: &GridError) -> Failure {
        match error {
            GridError::TooManySettings => {
                let most = grouped_count(Grid::MAX_SETTINGS);
                Failure::input(format!("the grid has more than {most} settings"))
                    .help("give fewer values, or tune one number after the other")
            }
            GridError::InvalidPolicy(fault) => Failure::input(format!("--grid: {fault}")),
            GridError::UnknownKey { .. } | GridError::NotANumber { .. } => {
                Failure::input(format!("--grid {error}")).help(format!(
                    "`cupel policy show {}` prints the document",
                    self.policy
                ))
            }
            error => Failure::input(format!("--grid {error}")),
        }
    }
}

/// The most settings in the table.
const ROWS: usize = 30;

/// Writes the settings with the highest means.
fn write_grid(grid: &Grid, tuned: &Tuned, output: &mut Output) -> Result<(), Failure> {
    let mut trials: Vec<(usize, &Trial)> = tuned.grid.iter().enumerate().collect();
    trials.sort_by(|(_, a), (_, b)| b.mean.total_cmp(&a.mean));
    let mut headings: Vec<_> = grid.axes().iter().map(|axis| right(&*axis.path)).collect();
    headings.extend([right(tuned.by.at(0).name()), left("")]);
    let mut table = Table::new(headings, &[]);
    for &(position, Trial { setting, mean }) in trials.iter().take(ROWS) {
        let mut cells: Vec<String> = setting.iter().map(|(_, value)| value.to_string()).collect();
        let mark = if position == tuned.best { "chosen" } else { "" };
        cells.extend([percent(*mean), mark.to_owned()]);
        table.row(cells);
    }
    output.table(&table)?;
    if trials.len() > ROWS {
        let more = grouped_count(trials.len() - ROWS);
        output.line(format_args!(
            "{more} more settings; --json writes all of them"
        ))?;
    }
    Ok(())
}
