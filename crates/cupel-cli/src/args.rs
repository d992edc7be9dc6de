//! The command line.

use clap::{Parser, Subcommand};

use crate::commands::{
    batch::Batch, compare::Compare, completions::Completions, conform::Conform, count::Count,
    eval::Eval, explain::Explain, fit::Fit, man::Man, marginal::Marginal, min_budget::MinBudget,
    models::Models, policy::Policy, select::Select, sweep::Sweep,
};
use crate::failure::{Exit, Failure};
use crate::output::{Color, Output};

/// Fits chats and items into a token budget, and explains why
///
/// The answer goes to standard output, everything else to standard error. FILE may be `-` for
/// standard input.
#[derive(Debug, Parser)]
#[command(
    name = "cupel",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = EXAMPLES,
)]
pub(crate) struct Cli {
    /// When to use colors
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Color,

    /// Write answers and errors as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  cupel fit chat.json --budget 8k > fitted.json    # a chat from any provider
  cupel explain chat.json --budget 8k              # why is a message in or out?
  cupel select items.jsonl --budget 2000 --policy rag
  cupel policy list                                # the presets

Exit status: 0 success, 1 over budget or not conformant, 2 invalid input or usage,
3 internal error.";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Fit(Fit),
    Select(Select),
    Explain(Explain),
    Sweep(Sweep),
    MinBudget(MinBudget),
    Marginal(Marginal),
    Compare(Compare),
    Count(Count),
    Policy(Policy),
    Models(Models),
    Batch(Batch),
    Eval(Eval),
    Conform(Conform),
    Completions(Completions),
    Man(Man),
}

impl Command {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        match self {
            Self::Fit(command) => command.run(output),
            Self::Select(command) => command.run(output),
            Self::Explain(command) => command.run(output),
            Self::Sweep(command) => command.run(output),
            Self::MinBudget(command) => command.run(output),
            Self::Marginal(command) => command.run(output),
            Self::Compare(command) => command.run(output),
            Self::Count(command) => command.run(output),
            Self::Policy(command) => command.run(output),
            Self::Models(command) => command.run(output),
            Self::Batch(command) => command.run(output),
            Self::Eval(command) => command.run(output),
            Self::Conform(command) => command.run(output),
            Self::Completions(command) => command.run(output),
            Self::Man(command) => command.run(output),
        }
    }
}
