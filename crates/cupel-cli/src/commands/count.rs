//! `cupel count`

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use cupel::ContextItem;
use cupel_chat::{Chat, Model, TokenCounter};
use serde_json::{Map, Value, json};

use crate::classify::{Classified, Input};
use crate::counting::Counter;
use crate::failure::{Exit, Failure};
use crate::input::{ReadArgs, Source};
use crate::output::{Output, style};
use crate::text::{excerpt, grouped, width};

/// Count tokens per message, per kind and in total
///
/// Counts what the provider counts: messages with their framing, names, tool calls and tool
/// definitions. The heuristic is an estimate for models whose encoding is not public.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Count {
    /// A chat from any provider, items, or a request document; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Encoding, such as o200k, or heuristic; repeatable. Default: o200k, cl100k and heuristic
    #[arg(long, value_name = "NAME", conflicts_with = "model")]
    encoding: Vec<Counter>,

    /// Count with the encoding of this model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,

    #[command(flatten)]
    read: ReadArgs,

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
        let source = Source::read(&self.file)?;
        let model = self.model.as_deref().map(Model::find).transpose();
        let model = model.map_err(|error| Failure::input(error.to_string()))?;
        let counters: Vec<Counter> = match model {
            Some(model) => vec![Counter::of(model)],
            None if self.encoding.is_empty() => Counter::ALL.to_vec(),
            None => self.encoding,
        };
        let counters: Vec<_> = counters.into_iter().map(Counter::boxed).collect();
        let table = if self.text {
            Counts::of_text(&source, &counters)
        } else {
            let classified = Classified::of(&source, &self.read);
            let input = Input::read(&source, &classified, &self.read, &|_| 0);
            match input {
                Ok(Input::Chat(chat)) => Counts::of_chat(&chat, &counters),
                Ok(Input::Items { request, .. }) => Counts::of_items(&request.items, &counters),
                Err(failure) if source.text.trim_start().starts_with(['{', '[']) => {
                    return Err(failure);
                }
                Err(failure) => return Err(failure.help("count any text with --text")),
            }
        };
        if output.is_json() {
            output.json(&table.document())?;
        } else {
            table.write(output)?;
        }
        Ok(Exit::Success)
    }
}

/// Token counts, one column per counter.
struct Counts {
    counters: Vec<String>,
    messages: Vec<Row>,
    /// The totals per kind.
    kinds: BTreeMap<String, Vec<i64>>,
    /// The request overhead: tools and parameters.
    overhead: Vec<i64>,
    total: Vec<i64>,
}

struct Row {
    kind: String,
    excerpt: String,
    tokens: Vec<i64>,
}

impl Counts {
    fn new(counters: &[Box<dyn TokenCounter>], messages: Vec<Row>, overhead: Vec<i64>) -> Self {
        let mut kinds: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        let mut total = overhead.clone();
        for row in &messages {
            let of_kind = kinds.entry(row.kind.clone());
            let of_kind = of_kind.or_insert_with(|| vec![0; counters.len()]);
            for (column, tokens) in row.tokens.iter().enumerate() {
                of_kind[column] = of_kind[column].saturating_add(*tokens);
                total[column] = total[column].saturating_add(*tokens);
            }
        }
        Self {
            counters: counters
                .iter()
                .map(|counter| counter.name().to_owned())
                .collect(),
            messages,
            kinds,
            overhead,
            total,
        }
    }

    fn of_text(source: &Source, counters: &[Box<dyn TokenCounter>]) -> Self {
        let tokens = counters.iter().map(|counter| counter.count(&source.text));
        let row = Row {
            kind: "Text".to_owned(),
            excerpt: excerpt(&source.text, 60),
            tokens: tokens.collect(),
        };
        Self::new(counters, vec![row], vec![0; counters.len()])
    }

    /// Counts the contents; the tokens that items state are counts by someone else.
    fn of_items(items: &[ContextItem], counters: &[Box<dyn TokenCounter>]) -> Self {
        let rows = items.iter().map(|item| {
            let tokens = counters.iter().map(|counter| counter.count(item.content()));
            Row {
                tokens: tokens.collect(),
                kind: item.kind().to_string(),
                excerpt: excerpt(item.content(), 60),
            }
        });
        Self::new(counters, rows.collect(), vec![0; counters.len()])
    }

    fn of_chat(chat: &Chat, counters: &[Box<dyn TokenCounter>]) -> Self {
        let columns: Vec<Vec<ContextItem>> =
            counters.iter().map(|counter| chat.items(counter)).collect();
        let rows = chat.messages().map(|message| {
            let index = message.index();
            let tokens = columns.iter().map(|items| items[index].tokens());
            Row {
                tokens: tokens.collect(),
                kind: columns
                    .first()
                    .map_or_else(String::new, |items| items[index].kind().to_string()),
                excerpt: excerpt(&message.text(), 60),
            }
        });
        let overhead = counters.iter().map(|counter| chat.overhead(counter));
        Self::new(counters, rows.collect(), overhead.collect())
    }

    fn document(&self) -> Value {
        let named = |tokens: &[i64]| -> Value {
            let named = self
                .counters
                .iter()
                .cloned()
                .zip(tokens.iter().map(|&n| n.into()));
            named.collect::<Map<_, _>>().into()
        };
        let items = self.messages.iter().enumerate().map(|(index, row)| {
            json!({ "index": index, "kind": row.kind, "tokens": named(&row.tokens) })
        });
        let kinds = self
            .kinds
            .iter()
            .map(|(kind, tokens)| (kind.clone(), named(tokens)));
        json!({
            "items": items.collect::<Vec<_>>(),
            "kinds": kinds.collect::<Map<_, _>>(),
            "overhead": named(&self.overhead),
            "total": named(&self.total),
        })
    }

    fn write(&self, output: &mut Output) -> Result<(), Failure> {
        let widths: Vec<usize> = self
            .counters
            .iter()
            .map(|name| width(name).max(9))
            .collect();
        let kind_width = self
            .kinds
            .keys()
            .map(|kind| width(kind))
            .max()
            .unwrap_or(0)
            .max(19);
        let cells = |texts: Vec<String>| -> String {
            let cells = texts.iter().zip(&widths);
            let cells = cells.map(|(text, width)| format!("  {text:>width$}"));
            cells.collect()
        };
        let numbers = |tokens: &[i64]| cells(tokens.iter().map(|&n| grouped(n)).collect());
        let (bold, quiet) = (style::HEADER, style::QUIET);
        output.line(format_args!(
            "{bold}    #  {:<kind_width$}{}{bold:#}",
            "kind",
            cells(self.counters.clone())
        ))?;
        for (index, row) in self.messages.iter().enumerate() {
            output.line(format_args!(
                "{index:>5}  {:<kind_width$}{}  {quiet}{}{quiet:#}",
                row.kind,
                numbers(&row.tokens),
                row.excerpt
            ))?;
        }
        output.line("")?;
        for (kind, tokens) in &self.kinds {
            output.line(format_args!(
                "       {kind:<kind_width$}{}",
                numbers(tokens)
            ))?;
        }
        if self.overhead.iter().any(|tokens| *tokens > 0) {
            let overhead = "request overhead";
            output.line(format_args!(
                "       {overhead:<kind_width$}{}",
                numbers(&self.overhead)
            ))?;
        }
        output.line(format_args!(
            "{bold}       {:<kind_width$}{}{bold:#}",
            "total",
            numbers(&self.total)
        ))
    }
}
