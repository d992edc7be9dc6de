//! `cupel conform`

use std::io::BufRead as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use cupel_conformance::model::Channel;
use cupel_conformance::{
    Adapter, Level, Options, SUITE_VERSION, Summary, Vector, load_dir, run, suite,
};
use serde_json::{Value, json};

use crate::conformance::{Library, Program, answer_to};
use crate::failure::{Exit, Failure};
use crate::output::{Output, style};
use crate::text::{Give, Table, counted, left};

/// Run the conformance suite: over cupel itself, or over any program
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Conform {
    /// Directory with vectors. Default: the embedded suite
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,

    /// Only cases whose name contains this
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,

    /// Only cases that prove a requirement: an id, or a prefix and a `*`
    #[arg(long, value_name = "ID")]
    requirement: Option<String>,

    /// Only cases that catch this class of bug
    #[arg(long, value_name = "FLAG")]
    flag: Option<String>,

    /// List the cases without running them
    #[arg(long)]
    list: bool,

    /// Time limit for one answer of a program
    #[arg(long, value_name = "SECONDS", default_value_t = 10, requires = "exec")]
    timeout: u64,

    /// Fail if the program does not support one of these
    ///
    /// Channels: scores, selection, shortfalls, order, window, report, events, overflow.
    #[arg(
        long,
        value_name = "CHANNELS",
        value_delimiter = ',',
        requires = "exec"
    )]
    supports: Vec<Channel>,

    /// Answer the questions of another `cupel conform --exec`
    #[arg(long, hide = true, conflicts_with_all = ["exec", "list"])]
    answer: bool,

    /// Program and arguments that answer one question per line; must come last
    #[arg(long, value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true)]
    exec: Option<Vec<String>>,
}

const EXAMPLES: &str = "\
Examples:
  cupel conform                                    all cases, over cupel itself
  cupel conform --requirement 'SLICE-*' --list     the cases for these requirements
  cupel conform my-vectors --flag TwinContent
  cupel conform --exec python3 my_adapter.py       test another implementation

A program reads one JSON object per line from standard input and answers each
with one line; crates/cupel-conformance/PROGRAM.md describes both. Exit status:
1 if a case fails or a required one is not supported.";

impl Conform {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        if self.answer {
            return answer(output);
        }
        let vectors = match &self.directory {
            Some(directory) => load_dir(directory),
            None => suite(),
        };
        let vectors = vectors.map_err(|errors| {
            Failure::input(errors.to_string())
                .help("crates/cupel-conformance/FORMAT.md describes the files")
        })?;
        let options = Options {
            name: self.name,
            requirement: self.requirement,
            flag: self.flag,
            ..Options::default()
        };
        let selected: Vec<&Vector> = vectors
            .iter()
            .filter(|case| options.selects(case))
            .collect();
        if selected.is_empty() {
            return Err(Failure::input("no case is selected").help(
                "`cupel conform --list` shows all names; --json adds requirements and flags",
            ));
        }
        if self.list {
            list(&selected, output)?;
            return Ok(Exit::Success);
        }
        let adapter: Box<dyn Adapter> = match self.exec {
            Some(command) => Box::new(Program::new(
                command,
                self.supports,
                Duration::from_secs(self.timeout),
            )?),
            None => Box::new(Library),
        };
        let summary = run(&vectors, &[&*adapter], &options);
        report(&summary, adapter.name(), self.directory.is_none(), output)
    }
}

fn list(vectors: &[&Vector], output: &mut Output) -> Result<(), Failure> {
    if output.is_json() {
        let cases = vectors.iter().map(|case| {
            json!({
                "path": case.path,
                "name": case.name,
                "level": case.level.name(),
                "stage": case.stage(),
                "requirements": case.requirements,
                "rulings": case.rulings,
                "flags": case.flags,
            })
        });
        return output.json(&cases.collect::<Value>());
    }
    let mut table = Table::new(
        [left("level"), left("stage"), left("name")],
        &[Give::Cut("name", 20), Give::Omit("stage")],
    );
    for case in vectors {
        table.row(vec![
            case.level.to_string(),
            case.stage().to_owned(),
            case.name.clone(),
        ]);
    }
    output.table(&table)?;
    output.note(counted(vectors.len(), "case"));
    Ok(())
}

fn report(
    summary: &Summary,
    adapter: &str,
    embedded: bool,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let required = summary.tally(adapter, Level::Required);
    let success = summary.is_success() && required.unsupported == 0;
    if output.is_json() {
        let tallies = summary.tallies.iter().flat_map(|(_, levels)| levels);
        let levels = tallies.map(|(level, tally)| {
            let counts = json!({
                "passed": tally.passed,
                "failed": tally.failed,
                "unsupported": tally.unsupported,
            });
            (level.name().to_owned(), counts)
        });
        let channels = summary.channels.iter().flat_map(|(_, channels)| channels);
        let channels = channels.map(|(channel, cases)| (channel.to_string(), json!(cases)));
        let failures = summary.failures.iter().map(|failed| {
            json!({
                "path": failed.path,
                "name": failed.name,
                "level": failed.level.name(),
                "problem": failed.to_string().trim_end(),
            })
        });
        output.json(&json!({
            "adapter": adapter,
            "suite_version": embedded.then_some(SUITE_VERSION),
            "levels": levels.collect::<serde_json::Map<_, _>>(),
            "channels": channels.collect::<serde_json::Map<_, _>>(),
            "failures": failures.collect::<Value>(),
            "claim": summary.claim(adapter).map(|claim| claim.to_string()),
            "success": success,
        }))?;
    } else {
        let style = if success { style::IN } else { style::OUT };
        for line in summary.to_string().lines() {
            output.log(line)?;
        }
        let verdict = match required.unsupported {
            _ if success => "ok".to_owned(),
            0 => "FAILED".to_owned(),
            cases => format!("FAILED, {} not supported", counted(cases, "required case")),
        };
        let version = if embedded {
            format!(", suite {SUITE_VERSION}")
        } else {
            String::new()
        };
        output.line(format_args!("{style}{verdict}{style:#}{version}"))?;
    }
    Ok(if success { Exit::Success } else { Exit::Over })
}

/// Answers one question per line until the input ends.
fn answer(output: &mut Output) -> Result<Exit, Failure> {
    for line in std::io::stdin().lock().lines() {
        let line =
            line.map_err(|error| Failure::input(format!("cannot read a question: {error}")))?;
        output.data_line(answer_to(&line))?;
        output.finish()?;
    }
    Ok(Exit::Success)
}
