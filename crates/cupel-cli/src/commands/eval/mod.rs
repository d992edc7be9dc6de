//! `cupel eval`: the arguments, files and tables of the measures in the crate `cupel-eval`.

mod agent;
mod criteria;
mod evidence;
mod method;
mod table;
mod tune;

use std::ops::ControlFlow;
use std::path::Path;

use clap::{Args, Subcommand};
use cupel_app::Place;
use cupel_chat::Encoding;
use cupel_eval::{Dataset, EvalError, LINE_FORMAT, Progress};

use self::agent::Agent;
use self::criteria::Criteria;
use self::evidence::Evidence;
use self::tune::Tune;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::output::Output;
use crate::progress::Meter;
use crate::text::{counted, grouped_count};

/// Measure policies on questions, agent runs or conversations
///
/// Selects for each question of a transcript and measures how much of its evidence is kept, with 95 %
/// bootstrap intervals over transcripts and paired differences between policies. docs/relevance.md
/// defines the measures. The subcommands tune a policy, and replay agent runs and conversations.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "cupel eval [OPTIONS] <FILE>\n       cupel eval <COMMAND>",
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Eval {
    #[command(subcommand)]
    subject: Option<Subject>,

    #[command(flatten)]
    evidence: Option<Evidence>,
}

const EXAMPLES: &str = "\
Examples:
  cupel eval questions.jsonl --policy newest,mine.toml --budget 1k,2k,4k
  cupel eval questions.jsonl --policy mine.toml --budget 2k --json
  cupel eval tune train.jsonl --report val.jsonl --policy mine.toml \\
    --budget 2k --grid scorer.k1=0.5,0.9,1.2
  cupel eval agent runs.jsonl --budget 1000,2000,4000
  cupel eval criteria conversations.jsonl --share 80,40

A line of questions.jsonl; `evidence` has positions in `items`:
  {\"items\": [{\"content\": \"...\", \"tokens\": 12}, ...],
   \"questions\": [{\"query\": \"...\", \"evidence\": [3, 4]}, ...]}";

#[derive(Debug, Subcommand)]
enum Subject {
    Agent(Agent),
    Criteria(Criteria),
    Tune(Tune),
}

impl Eval {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        match (self.subject, self.evidence) {
            (Some(Subject::Agent(agent)), _) => agent.run(output),
            (Some(Subject::Criteria(criteria)), _) => criteria.run(output),
            (Some(Subject::Tune(tune)), _) => tune.run(output),
            (None, Some(evidence)) => evidence.run(output),
            (None, None) => Err(Failure::input("missing the file with questions")
                .help("`cupel eval --help` has examples")),
        }
    }
}

/// Reads a file with questions.
fn read_dataset(path: &Path) -> Result<Dataset, Failure> {
    let source = input::read(path)?;
    let dataset = Dataset::parse(&*source.name, &source.text, &Encoding::O200k);
    dataset.map_err(|error| {
        let failure = Failure::input(error.problem.to_string());
        let failure = match (
            error.problem.suggestion(),
            error.problem.is_about_structure(),
        ) {
            (Some(name), _) => failure.help(format!("did you mean `{name}`?")),
            (None, true) => failure.help(format!("a line: {LINE_FORMAT}")),
            (None, false) => failure,
        };
        match error.line {
            0 => failure.in_file(&source.name),
            line => failure.at(source.place(line, error.column, error.path)),
        }
    })
}

/// Runs a call that reports its progress, and shows it on a terminal.
fn observed<T>(
    output: &mut Output,
    unit: &str,
    call: impl FnOnce(&mut dyn FnMut(Progress) -> ControlFlow<()>) -> T,
) -> T {
    let mut meter = Meter::new(output);
    let result = call(&mut |Progress { done, total }| {
        meter.update(output, || {
            format!("{} of {}", grouped_count(done), counted(total, unit))
        });
        ControlFlow::Continue(())
    });
    meter.clear(output);
    result
}

fn stopped() -> Failure {
    Failure::new(Exit::Stopped, "stopped")
}

/// Returns the failure of an evaluation.
fn failure(error: EvalError) -> Failure {
    match error {
        EvalError::Run {
            dataset,
            line,
            error,
            ..
        } => Failure::from(error).or_at(|| Place {
            file: dataset,
            line,
            column: 1,
            ..Place::default()
        }),
        EvalError::Stopped(_) => stopped(),
        error => Failure::input(error.to_string()),
    }
}
