//! `cupel count`

use std::path::PathBuf;

use clap::Args;
use cupel_app::{CountAnswer, CounterName, Options, count, count_text, counter_of_model};

use crate::config::ConfigArgs;
use crate::failure::{Exit, Failure};
use crate::input::{self, ReadArgs};
use crate::output::{Output, columns, style};
use crate::task::config_line;
use crate::text::{Give, Table, excerpt, grouped, left, right};

/// Count tokens per message, per role and in total
///
/// Counts what the provider counts: messages with their framing, names, tool calls and tool
/// definitions. The heuristic is an estimate for models whose encoding is not public.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Count {
    /// Chat, items or request document; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Encoding, such as o200k, or heuristic; repeatable. Default: that of cupel.toml, otherwise o200k, cl100k and
    /// heuristic
    #[arg(long, value_name = "NAME", conflicts_with = "model")]
    encoding: Vec<CounterName>,

    /// Count with the encoding of this model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    config: ConfigArgs,

    /// Count the whole file as one text
    #[arg(long, conflicts_with_all = ["shape", "at"])]
    text: bool,
}

const EXAMPLES: &str = "\
Examples:
  cupel count chat.json
  cupel count chat.json --model gpt-4o --json | jq .total
  cupel count README.md --text";

impl Count {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let source = input::read(&self.file)?;
        let mut config_used = None;
        let counters = match &self.model {
            Some(model) => vec![counter_of_model(model)?],
            None if self.encoding.is_empty() => {
                let config = self.config.load()?;
                let options = Options {
                    config,
                    ..Options::default()
                };
                let (counters, used) = options.counters()?;
                config_used = used;
                counters
            }
            None => self.encoding.iter().map(|name| name.counter()).collect(),
        };
        let answer = if self.text {
            count_text(&source.text, &counters)
        } else {
            let answer = count(&source, &self.read.options(), &counters);
            answer.map_err(|error| match source.text.trim_start() {
                text if text.starts_with(['{', '[']) => Failure::from(error),
                _ => Failure::from(error).help("count any text with --text"),
            })?
        };
        if output.is_json() {
            output.json(&answer)?;
        } else {
            write(&answer, output)?;
            output.finish()?;
            if let Some(config) = config_used {
                output.note(config_line(&config));
            }
        }
        Ok(Exit::Success)
    }
}

/// Writes a table with one row per message, one per label, and the total.
fn write(answer: &CountAnswer, output: &mut Output) -> Result<(), Failure> {
    let mut headers = vec![right("#"), left(answer.heading)];
    headers.extend(answer.counters.iter().map(right));
    headers.push(left("content"));
    let mut table = Table::new(headers, GIVES);
    let mut row = |index: String, label: &str, tokens: &[i64], content: &str| {
        let mut cells = vec![index, label.to_owned()];
        cells.extend(tokens.iter().map(|&tokens| grouped(tokens)));
        cells.push(content.to_owned());
        table.row(cells);
    };
    for (index, message) in answer.items.iter().enumerate() {
        row(
            index.to_string(),
            &message.label,
            &message.tokens,
            &excerpt(&message.text, columns()),
        );
    }
    let labels = answer.labels();
    let has_parts = labels.len() > 1 || answer.overhead.iter().any(|tokens| *tokens > 0);
    for (label, tokens) in labels.iter().filter(|_| has_parts) {
        row(String::new(), label, tokens, "");
    }
    if answer.overhead.iter().any(|tokens| *tokens > 0) {
        row(String::new(), "request overhead", &answer.overhead, "");
    }
    row(String::new(), "total", &answer.total, "");
    let (bold, mut lines) = (style::HEADER, table.lines(columns()));
    let total = lines.pop().unwrap_or_default();
    for (index, line) in lines.into_iter().enumerate() {
        if index == 0 {
            output.line(format_args!("{bold}{line}{bold:#}"))?;
            continue;
        }
        if index == answer.items.len() + 1 {
            output.line("")?;
        }
        output.line(line)?;
    }
    output.line(format_args!("{bold}{total}{bold:#}"))
}

/// The order in which columns make room.
const GIVES: &[Give] = &[Give::Cut("content", 12), Give::Omit("content")];
