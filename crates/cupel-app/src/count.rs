//! The question `count`: tokens per message, per kind and in total.

use std::collections::BTreeMap;
use std::sync::Arc;

use cupel::ContextItem;
use cupel_chat::{Chat, Model, TokenCounter};
use serde::{Serialize, Serializer};

use crate::counter::CounterName;
use crate::error::{Error, Fault};
use crate::input::{Classified, Input};
use crate::options::ReadOptions;
use crate::source::Source;

/// Token counts, one number per counter.
#[derive(Debug, Clone)]
pub struct CountAnswer {
    /// The names of the counters.
    pub counters: Vec<String>,
    /// What labels the entries: `role`, `kind`, or nothing for a text.
    pub heading: &'static str,
    /// One entry per message or item.
    pub items: Vec<Counted>,
    /// The totals per kind.
    pub kinds: BTreeMap<String, Vec<i64>>,
    /// The request overhead: tools and parameters.
    pub overhead: Vec<i64>,
    /// The totals.
    pub total: Vec<i64>,
}

/// The counts of one message or item.
#[derive(Debug, Clone)]
pub struct Counted {
    /// Its kind.
    pub kind: String,
    /// The role of a message or the kind of an item.
    pub label: String,
    /// Its text.
    pub text: String,
    /// Its tokens, one number per counter.
    pub tokens: Vec<i64>,
}

/// Counts the tokens of a chat, items or a request, with every counter.
///
/// # Errors
///
/// What is wrong with the input.
pub fn count(
    source: &Source,
    options: &ReadOptions,
    counters: &[Arc<dyn TokenCounter>],
) -> Result<CountAnswer, Error> {
    let classified = Classified::of(source, options);
    // Contents are counted below, by every counter, so reading needs no counts.
    Ok(match Input::read(source, &classified, options, &|_| 0)? {
        Input::Chat(chat) => CountAnswer::of_chat(&chat, counters),
        Input::Items { request, .. } => CountAnswer::of_items(&request.items, counters),
    })
}

/// Counts the tokens of a text as a whole, with every counter.
pub fn count_text(text: &str, counters: &[Arc<dyn TokenCounter>]) -> CountAnswer {
    let tokens = counters.iter().map(|counter| counter.count(text));
    let row = Counted {
        kind: "Text".to_owned(),
        label: "text".to_owned(),
        text: text.to_owned(),
        tokens: tokens.collect(),
    };
    CountAnswer::new(counters, "", vec![row], vec![0; counters.len()])
}

/// Returns the counter of a model that has to be known.
///
/// # Errors
///
/// [`Fault::UnknownModel`].
pub fn counter_of_model(name: &str) -> Result<Arc<dyn TokenCounter>, Error> {
    let model = Model::find(name).map_err(|error| Fault::UnknownModel(error.to_string()))?;
    Ok(CounterName::of(model).counter())
}

impl CountAnswer {
    fn new(
        counters: &[Arc<dyn TokenCounter>],
        heading: &'static str,
        items: Vec<Counted>,
        overhead: Vec<i64>,
    ) -> Self {
        let mut kinds: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        let mut total = overhead.clone();
        for row in &items {
            let of_kind = kinds.entry(row.kind.clone());
            let of_kind = of_kind.or_insert_with(|| vec![0; counters.len()]);
            add(of_kind, &row.tokens);
            add(&mut total, &row.tokens);
        }
        let names = counters.iter().map(|counter| counter.name().to_owned());
        Self {
            counters: names.collect(),
            heading,
            items,
            kinds,
            overhead,
            total,
        }
    }

    /// Counts the contents. The tokens that items state are not used: the counter that they are from is unknown.
    fn of_items(items: &[ContextItem], counters: &[Arc<dyn TokenCounter>]) -> Self {
        let rows = items.iter().map(|item| {
            let tokens = counters.iter().map(|counter| counter.count(item.content()));
            Counted {
                tokens: tokens.collect(),
                kind: item.kind().to_string(),
                label: item.kind().to_string(),
                text: item.content().to_owned(),
            }
        });
        Self::new(counters, "kind", rows.collect(), vec![0; counters.len()])
    }

    fn of_chat(chat: &Chat, counters: &[Arc<dyn TokenCounter>]) -> Self {
        let counted: Vec<Vec<ContextItem>> =
            counters.iter().map(|counter| chat.items(counter)).collect();
        let rows = chat.messages().map(|message| {
            let index = message.index();
            let tokens = counted.iter().map(|items| items[index].tokens());
            let kind = counted.first().map(|items| items[index].kind().to_string());
            Counted {
                tokens: tokens.collect(),
                kind: kind.unwrap_or_default(),
                label: message.label().to_owned(),
                text: message.text(),
            }
        });
        let overhead = counters.iter().map(|counter| chat.overhead(counter));
        Self::new(counters, "role", rows.collect(), overhead.collect())
    }

    /// Returns the sums per label, by name.
    pub fn labels(&self) -> BTreeMap<&str, Vec<i64>> {
        let mut labels: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for row in &self.items {
            let sum = labels.entry(&row.label);
            let sum = sum.or_insert_with(|| vec![0; self.counters.len()]);
            add(sum, &row.tokens);
        }
        labels
    }
}

fn add(sum: &mut [i64], tokens: &[i64]) {
    for (sum, tokens) in sum.iter_mut().zip(tokens) {
        *sum = sum.saturating_add(*tokens);
    }
}

/// Numbers by the name of their counter.
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(inline, with = "BTreeMap<String, i64>")
)]
struct ByCounter<'a>(&'a [String], &'a [i64]);

impl Serialize for ByCounter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().zip(self.1))
    }
}

/// Token counts, by the name of the counter.
#[derive(Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "CountAnswer")
)]
struct WrittenCount<'a> {
    /// One entry per message or item.
    items: Vec<WrittenRow<'a>>,
    /// The totals per kind.
    kinds: BTreeMap<&'a str, ByCounter<'a>>,
    /// The request overhead: tools and parameters.
    overhead: ByCounter<'a>,
    /// The totals, with the overhead.
    total: ByCounter<'a>,
}

/// The counts of one message or item.
#[derive(Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "CountedEntry")
)]
struct WrittenRow<'a> {
    /// Its position.
    index: usize,
    /// The role of a message as written, or the kind of an item.
    role: &'a str,
    /// Its kind.
    kind: &'a str,
    /// Its tokens, by the name of the counter.
    tokens: ByCounter<'a>,
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for CountAnswer {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        WrittenCount::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        WrittenCount::json_schema(generator)
    }
}

/// Writes an object with `items`, `kinds`, `overhead` and `total`; counts are objects by counter.
impl Serialize for CountAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let named = |tokens| ByCounter(&self.counters, tokens);
        let items = self
            .items
            .iter()
            .enumerate()
            .map(|(index, row)| WrittenRow {
                index,
                role: &row.label,
                kind: &row.kind,
                tokens: named(&row.tokens),
            });
        let kinds = self
            .kinds
            .iter()
            .map(|(kind, tokens)| (kind, named(tokens)));
        let written = WrittenCount {
            items: items.collect(),
            kinds: kinds
                .map(|(kind, tokens)| (kind.as_str(), tokens))
                .collect(),
            overhead: named(&self.overhead),
            total: named(&self.total),
        };
        written.serialize(serializer)
    }
}
