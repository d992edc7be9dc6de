//! `cupel eval`

mod agent;
mod bootstrap;
mod dataset;
mod evaluation;
mod evidence;
mod metric;
mod recall;
mod replay;
mod table;
mod tally;
mod tune;

use clap::{Args, Subcommand};

use self::agent::Agent;
use self::evidence::Evidence;
use self::tune::Tune;
use crate::failure::{Exit, Failure};
use crate::output::Output;

/// Measure policies on questions with evidence, or on agent runs
///
/// Selects for each question of a transcript and measures how much of its evidence is kept, with 95 %
/// bootstrap intervals over transcripts and paired differences between policies. docs/relevance.md
/// defines the measures. The subcommands tune a policy and replay agent runs.
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

A line of questions.jsonl; `evidence` has positions in `items`:
  {\"items\": [{\"content\": \"...\", \"tokens\": 12}, ...],
   \"questions\": [{\"query\": \"...\", \"evidence\": [3, 4]}, ...]}";

#[derive(Debug, Subcommand)]
enum Subject {
    Agent(Agent),
    Tune(Tune),
}

impl Eval {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        match (self.subject, self.evidence) {
            (Some(Subject::Agent(agent)), _) => agent.run(output),
            (Some(Subject::Tune(tune)), _) => tune.run(output),
            (None, Some(evidence)) => evidence.run(output),
            (None, None) => Err(Failure::input("missing the file with questions")
                .help("`cupel eval --help` has examples")),
        }
    }
}
