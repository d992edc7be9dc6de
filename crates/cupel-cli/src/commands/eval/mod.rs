//! `cupel eval`

mod agent;
mod metric;
mod replay;
mod table;
mod tally;

use clap::{Args, Subcommand};

use self::agent::Agent;
use crate::failure::{Exit, Failure};
use crate::output::Output;

/// Measure what trimming costs on recorded data
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Eval {
    #[command(subcommand)]
    subject: Subject,
}

const EXAMPLES: &str = "\
Examples:
  cupel eval agent runs.jsonl --budget 1000,2000,4000";

#[derive(Debug, Subcommand)]
enum Subject {
    Agent(Agent),
}

impl Eval {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        match self.subject {
            Subject::Agent(agent) => agent.run(output),
        }
    }
}
