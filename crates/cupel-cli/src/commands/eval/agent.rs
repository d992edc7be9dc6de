//! `cupel eval agent`

use std::path::PathBuf;

use clap::Args;
use cupel_app::Source;
use cupel_chat::Chat;
use cupel_eval::{Billing, Prices, ReplayError, parse_runs, replay};

use super::method::{MethodArgs, runs_failure};
use super::{observed, stopped, table};
use crate::budget::tokens;
use crate::counting::ChatArgs;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::output::Output;

/// Replay recorded agent runs and measure their windows
///
/// Trims the history before each answer of a run to the budget and measures the window: the share
/// of the next tool call's argument values that it still contains (grounding recall), the prefix
/// it shares with the window before, its cost, and faults. docs/agents.md defines the measures.
/// Every value has a 95 % bootstrap interval over runs.
#[derive(Debug, Args)]
#[command(after_help = AGENT_EXAMPLES)]
pub(super) struct Agent {
    /// Recorded runs, one chat from any provider per line; `-` reads standard input
    #[arg(value_name = "RUNS")]
    runs: PathBuf,

    /// Token limits, without system messages and request overhead: 1000,2k
    #[arg(long, value_name = "TOKENS", value_parser = tokens, value_delimiter = ',', required = true)]
    budget: Vec<i64>,

    #[command(flatten)]
    method: MethodArgs,

    #[command(flatten)]
    billing: BillingArgs,

    #[command(flatten)]
    chat: ChatArgs,
}

/// How the full bill is computed.
#[derive(Debug, Args)]
struct BillingArgs {
    /// Prices of cached tokens: anthropic, openai, or READ,WRITE
    ///
    /// The prices of a token that the provider's cache reads and of one that it writes, where a plain
    /// input token costs 1: 0.1,1.25 for Anthropic, which is the default, 0.1,1 for OpenAI.
    #[arg(
        long,
        value_name = "PRICES",
        default_value = "anthropic",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    prices: Prices,

    /// Tokens of system and tools, which are always cached
    ///
    /// Default: the system messages and the request overhead of each request.
    #[arg(long, value_name = "TOKENS", value_parser = tokens, allow_hyphen_values = true)]
    prefix: Option<i64>,

    /// Seconds from a request until the cache expires
    ///
    /// By the timestamps of messages, where the runs have them. Default: it never expires.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_hyphen_values = true)]
    lifetime: Option<u32>,
}

impl BillingArgs {
    fn billing(&self) -> Billing {
        Billing {
            prices: self.prices,
            prefix: self.prefix,
            lifetime: self.lifetime,
        }
    }
}

/// Parses a number of seconds.
fn seconds(text: &str) -> Result<u32, &'static str> {
    let seconds = text.trim().parse();
    seconds.map_err(|_| "expected a whole number of seconds, such as 300")
}

const AGENT_EXAMPLES: &str = "\
Examples:
  cupel eval agent runs.jsonl --budget 1000,2000,4000
  cupel eval agent runs.jsonl --budget 8k --policy suffix,mine.toml
  cupel eval agent runs.jsonl --budget 8k --policy agent --shorten off
  cupel eval agent runs.jsonl --budget 8k --prefix 24k --lifetime 300
  cupel eval agent runs.jsonl --budget 8k --json | jq '.results[].cost'

A line: {\"id\": \"run-1\", \"messages\": [...]}";

impl Agent {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let methods = self.method.methods()?;
        let counter = self.chat.counter().counter(None, None)?;
        let source = input::read(&self.runs)?;
        let runs = self.read(&source)?;
        let report = observed(output, "run", |observe| {
            let billing = self.billing.billing();
            replay(&runs, &methods, &self.budget, &billing, &*counter, observe)
        });
        let report = report.map_err(|error| match error {
            ReplayError::Stopped(_) => stopped(),
            ReplayError::NoAnswer => Failure::input(error.to_string())
                .in_file(&source.name)
                .help(LINE),
            error => Failure::internal(error.to_string()).in_file(&source.name),
        })?;
        if output.is_json() {
            output.json(&report)?;
        } else {
            table::write(&report, output)?;
        }
        Ok(Exit::Success)
    }

    fn read(&self, source: &Source) -> Result<Vec<Chat>, Failure> {
        let args = &self.chat.read;
        let at = args.at.as_deref().unwrap_or_default();
        let runs = parse_runs(&source.text, at, args.shape);
        runs.map_err(|error| runs_failure(error, source, LINE))
    }
}

/// The format of the input, for errors.
const LINE: &str = "each line holds one run: {\"id\": \"run-1\", \"messages\": [...]}";
