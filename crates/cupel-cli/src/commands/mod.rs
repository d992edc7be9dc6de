//! The subcommands, a file each. This file is the one list of them: a subcommand has a `mod` line, a variant of
//! [`Command`], its arm in [`Command::run`] and its name in [`GROUPS`].

mod batch;
mod compare;
mod completions;
mod config;
mod conform;
mod count;
mod eval;
mod explain;
mod fit;
mod init;
mod licenses;
mod man;
mod marginal;
mod min_budget;
mod models;
mod policy;
mod search;
mod select;
mod sweep;

use clap::Subcommand;

use crate::failure::{Exit, Failure};
use crate::output::Output;

/// The subcommands of the main help, by heading.
pub(crate) const GROUPS: &[(&str, &[&str])] = &[
    (
        "Everyday",
        &[
            "fit", "explain", "search", "count", "compare", "select", "batch",
        ],
    ),
    (
        "Budgets and policies",
        &[
            "sweep",
            "min-budget",
            "marginal",
            "models",
            "policy",
            "eval",
        ],
    ),
    (
        "Conformance and setup",
        &[
            "init",
            "config",
            "conform",
            "completions",
            "man",
            "licenses",
        ],
    ),
];

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Fit(fit::Fit),
    Select(select::Select),
    Explain(explain::Explain),
    Search(search::Search),
    Sweep(sweep::Sweep),
    MinBudget(min_budget::MinBudgetArgs),
    Marginal(marginal::Marginal),
    Compare(compare::Compare),
    Count(count::Count),
    Policy(policy::Policy),
    Models(models::Models),
    Batch(batch::Batch),
    Init(init::Init),
    Config(config::Config),
    Eval(eval::Eval),
    Conform(conform::Conform),
    Completions(completions::Completions),
    Man(man::Man),
    Licenses(licenses::Licenses),
}

impl Command {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        match self {
            Self::Fit(command) => command.run(output),
            Self::Select(command) => command.run(output),
            Self::Explain(command) => command.run(output),
            Self::Search(command) => command.run(output),
            Self::Sweep(command) => command.run(output),
            Self::MinBudget(command) => command.run(output),
            Self::Marginal(command) => command.run(output),
            Self::Compare(command) => command.run(output),
            Self::Count(command) => command.run(output),
            Self::Policy(command) => command.run(output),
            Self::Models(command) => command.run(output),
            Self::Batch(command) => command.run(output),
            Self::Init(command) => command.run(output),
            Self::Config(command) => command.run(output),
            Self::Eval(command) => command.run(output),
            Self::Conform(command) => command.run(output),
            Self::Completions(command) => command.run(output),
            Self::Man(command) => command.run(output),
            Self::Licenses(command) => command.run(output),
        }
    }
}
