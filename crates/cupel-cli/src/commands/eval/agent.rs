//! `cupel eval agent`

use std::path::PathBuf;

use clap::Args;
use cupel_app::{Classified, Input, NamedPolicy, Source};
use cupel_chat::{Chat, TokenCounter};
use rayon::prelude::*;

use super::replay::{Method, Setting, replay};
use super::table::{Results, Row};
use super::tally::Tally;
use crate::budget::tokens;
use crate::chats;
use crate::counting::ChatArgs;
use crate::failure::{Exit, Failure};
use crate::input;
use crate::output::Output;
use crate::progress::Meter;
use crate::task::find_policy;
use crate::text::{counted, grouped_count};
use crate::trimming::TrimmingArgs;

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

    /// Policies: presets, files, or `suffix`, the newest messages that fit. Default: `suffix` and
    /// `agent`, or `session` with --state
    #[arg(long, value_name = "NAME|FILE", value_delimiter = ',')]
    policy: Vec<String>,

    /// Remember decisions from request to request, as `cupel fit --state` does
    #[arg(long)]
    state: bool,

    #[command(flatten)]
    chat: ChatArgs,

    #[command(flatten)]
    trimming: TrimmingArgs,
}

const AGENT_EXAMPLES: &str = "\
Examples:
  cupel eval agent runs.jsonl --budget 1000,2000,4000
  cupel eval agent runs.jsonl --budget 8k --policy suffix,mine.toml
  cupel eval agent runs.jsonl --budget 8k --state
  cupel eval agent runs.jsonl --budget 8k --policy agent --shorten off
  cupel eval agent runs.jsonl --budget 8k --json | jq '.results[].cost'

A line: {\"id\": \"run-1\", \"messages\": [...]}";

impl Agent {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let methods = self.methods()?;
        let mut settings = Vec::new();
        for &budget in &self.budget {
            for method in &methods {
                let method = method.clone();
                settings.push(Setting { method, budget });
            }
        }
        let counter = self.chat.counter().counter(None, None)?;
        let runs = self.read()?;
        let tallies = replay_all(&runs, &settings, &*counter, output)?;
        let rows = settings.iter().enumerate().map(|(position, setting)| {
            let tallies = tallies.iter().map(|tallies| &tallies[position]);
            Row::new(setting, &tallies.collect::<Vec<_>>())
        });
        let results = Results {
            runs: runs.len(),
            counter: counter.name(),
            rows: rows.collect(),
        };
        if results.requests() == 0 {
            return Err(Failure::input("the runs have no answer to replay")
                .in_file(&crate::input::name(&self.runs))
                .help(LINE));
        }
        if output.is_json() {
            output.json(&results.document())?;
        } else {
            results.write(output)?;
        }
        Ok(Exit::Success)
    }

    fn methods(&self) -> Result<Vec<Method>, Failure> {
        let method = if self.state {
            Method::Session
        } else {
            Method::Fit
        };
        let method = |policy: NamedPolicy| Ok(method(self.trimming.options().apply(policy)?));
        if self.policy.is_empty() {
            let policy = NamedPolicy::for_chats(self.state);
            return Ok(vec![Method::Suffix, method(policy)?]);
        }
        let policies = self.policy.iter().map(|name| match name.as_str() {
            Method::SUFFIX => Ok(Method::Suffix),
            name => find_policy(name).and_then(method),
        });
        policies.collect()
    }

    /// Reads the runs. Blank lines are skipped.
    fn read(&self) -> Result<Vec<Chat>, Failure> {
        let source = input::read(&self.runs)?;
        let runs: Vec<(usize, &str)> = match chats::find(&source, &self.chat.read) {
            Some(chats) => chats.iter().collect(),
            None => {
                let lines = (1..).zip(source.text.lines());
                lines.filter(|(_, line)| !line.trim().is_empty()).collect()
            }
        };
        let run = |(line, text): (usize, &str)| {
            let line = Source::line(&source.name, line, text.into())?;
            let options = self.chat.read.options();
            let classified = Classified::of(&line, &options);
            match Input::read(&line, &classified, &options, &|_| 0)? {
                Input::Chat(chat) => Ok(*chat),
                Input::Items { .. } => Err(Failure::input("this is not a chat")
                    .at(line.whole())
                    .help(LINE)),
            }
        };
        runs.into_iter().map(run).collect()
    }
}

/// The format of the input, for errors.
const LINE: &str = "each line holds one run: {\"id\": \"run-1\", \"messages\": [...]}";

/// Replays the runs on all cores and returns the tallies of each run. Reports progress on a terminal.
fn replay_all(
    runs: &[Chat],
    settings: &[Setting],
    counter: &dyn TokenCounter,
    output: &mut Output,
) -> Result<Vec<Vec<Tally>>, Failure> {
    let mut meter = Meter::new(output);
    let mut tallies = Vec::with_capacity(runs.len());
    for chunk in runs.chunks(4 * rayon::current_num_threads()) {
        let chunk = chunk.par_iter().map(|run| replay(run, settings, counter));
        let chunk: Result<Vec<_>, _> = chunk.collect();
        tallies.extend(chunk.map_err(|error| Failure::internal(error.to_string()))?);
        meter.update(output, || {
            let (done, all) = (grouped_count(tallies.len()), counted(runs.len(), "run"));
            format!("{done} of {all}")
        });
    }
    meter.clear(output);
    Ok(tallies)
}
