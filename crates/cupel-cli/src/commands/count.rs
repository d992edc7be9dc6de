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
use crate::output::{Output, columns, style};
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
    /// The heading of the labels: `role` or `kind`.
    heading: &'static str,
    messages: Vec<Row>,
    /// The totals per kind.
    kinds: BTreeMap<String, Vec<i64>>,
    /// The request overhead: tools and parameters.
    overhead: Vec<i64>,
    total: Vec<i64>,
}

struct Row {
    kind: String,
    /// The role of a message or the kind of an item.
    label: String,
    excerpt: String,
    tokens: Vec<i64>,
}

impl Counts {
    fn new(
        counters: &[Box<dyn TokenCounter>],
        heading: &'static str,
        messages: Vec<Row>,
        overhead: Vec<i64>,
    ) -> Self {
        let mut kinds: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        let mut total = overhead.clone();
        for row in &messages {
            let of_kind = kinds.entry(row.kind.clone());
            let of_kind = of_kind.or_insert_with(|| vec![0; counters.len()]);
            add(of_kind, &row.tokens);
            add(&mut total, &row.tokens);
        }
        Self {
            counters: counters
                .iter()
                .map(|counter| counter.name().to_owned())
                .collect(),
            heading,
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
            label: "text".to_owned(),
            excerpt: excerpt(&source.text, columns()),
            tokens: tokens.collect(),
        };
        Self::new(counters, "", vec![row], vec![0; counters.len()])
    }

    /// Counts the contents; the tokens that items state are counts by someone else.
    fn of_items(items: &[ContextItem], counters: &[Box<dyn TokenCounter>]) -> Self {
        let rows = items.iter().map(|item| {
            let tokens = counters.iter().map(|counter| counter.count(item.content()));
            Row {
                tokens: tokens.collect(),
                kind: item.kind().to_string(),
                label: item.kind().to_string(),
                excerpt: excerpt(item.content(), columns()),
            }
        });
        Self::new(counters, "kind", rows.collect(), vec![0; counters.len()])
    }

    fn of_chat(chat: &Chat, counters: &[Box<dyn TokenCounter>]) -> Self {
        let counted: Vec<Vec<ContextItem>> =
            counters.iter().map(|counter| chat.items(counter)).collect();
        let rows = chat.messages().map(|message| {
            let index = message.index();
            let tokens = counted.iter().map(|items| items[index].tokens());
            Row {
                tokens: tokens.collect(),
                kind: counted
                    .first()
                    .map_or_else(String::new, |items| items[index].kind().to_string()),
                label: message.label().to_owned(),
                excerpt: excerpt(&message.text(), columns()),
            }
        });
        let overhead = counters.iter().map(|counter| chat.overhead(counter));
        Self::new(counters, "role", rows.collect(), overhead.collect())
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
            json!({ "index": index, "role": row.label, "kind": row.kind, "tokens": named(&row.tokens) })
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
        let mut headers = vec![right("#"), left(self.heading)];
        headers.extend(self.counters.iter().map(right));
        headers.push(left("content"));
        let mut table = Table::new(headers, GIVES);
        let mut row = |index: String, label: &str, tokens: &[i64], content: &str| {
            let mut cells = vec![index, label.to_owned()];
            cells.extend(tokens.iter().map(|&tokens| grouped(tokens)));
            cells.push(content.to_owned());
            table.row(cells);
        };
        for (index, message) in self.messages.iter().enumerate() {
            row(
                index.to_string(),
                &message.label,
                &message.tokens,
                &message.excerpt,
            );
        }
        let mut labels: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for message in &self.messages {
            let sum = labels.entry(&message.label);
            add(
                sum.or_insert_with(|| vec![0; self.counters.len()]),
                &message.tokens,
            );
        }
        let has_parts = labels.len() > 1 || self.overhead.iter().any(|tokens| *tokens > 0);
        for (label, tokens) in labels.iter().filter(|_| has_parts) {
            row(String::new(), label, tokens, "");
        }
        if self.overhead.iter().any(|tokens| *tokens > 0) {
            row(String::new(), "request overhead", &self.overhead, "");
        }
        row(String::new(), "total", &self.total, "");
        let (bold, mut lines) = (style::HEADER, table.lines(columns()));
        let total = lines.pop().unwrap_or_default();
        for (index, line) in lines.into_iter().enumerate() {
            if index == 0 {
                output.line(format_args!("{bold}{line}{bold:#}"))?;
                continue;
            }
            if index == self.messages.len() + 1 {
                output.line("")?;
            }
            output.line(line)?;
        }
        output.line(format_args!("{bold}{total}{bold:#}"))
    }
}

/// The order in which columns make room.
const GIVES: &[Give] = &[Give::Cut("content", 12), Give::Omit("content")];

fn add(sum: &mut [i64], tokens: &[i64]) {
    for (sum, tokens) in sum.iter_mut().zip(tokens) {
        *sum = sum.saturating_add(*tokens);
    }
}
