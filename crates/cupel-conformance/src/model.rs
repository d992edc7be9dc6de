//! Tasks and observations as plain data.
//!
//! Values are not validated: an empty content, a negative budget or a NaN weight
//! is passed on, because the implementation has to reject it.

use std::{collections::BTreeMap, fmt, ops::Not, str::FromStr};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

/// One candidate.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Item {
    /// Tells items of equal content apart in expectations; not part of the specification's item.
    #[serde(skip)]
    pub id: Option<String>,
    /// The text.
    pub content: String,
    /// The token count, as the caller claims it.
    pub tokens: i64,
    /// The kind; `None` means the implementation's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The source; `None` means the implementation's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// The tags, in order, repeats kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The metadata; values that were not strings are in their plain text form.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// The instant of the item.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_time"
    )]
    pub timestamp: Option<DateTime<Utc>>,
    /// The caller's relevance hint.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_number"
    )]
    pub future_relevance_hint: Option<f64>,
    /// Whether the item bypasses scoring and slicing.
    #[serde(skip_serializing_if = "Not::not")]
    pub pinned: bool,
    /// The token count before some earlier summarization.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_tokens: Option<i64>,
}

impl Item {
    /// Returns the name of the item in expectations: its id, otherwise its content.
    pub fn label(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.content)
    }
}

/// A candidate with a score computed elsewhere.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ScoredItem {
    /// The candidate.
    pub item: Item,
    /// Its score.
    #[serde(serialize_with = "number")]
    pub score: f64,
}

/// A token budget.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Budget {
    /// The hard ceiling.
    pub max_tokens: i64,
    /// The soft goal.
    pub target_tokens: i64,
    /// Tokens kept free for the model's answer.
    pub output_reserve: i64,
    /// Tokens reserved per kind.
    #[serde(serialize_with = "object")]
    pub reserved_slots: Vec<(String, i64)>,
    /// Percentage taken off both limits.
    #[serde(serialize_with = "number")]
    pub estimation_safety_margin_percent: f64,
}

/// A strategy or a whole policy, as policy documents have it: an object whose `type` names the
/// strategy (`cupel policy schema`).
///
/// A number that JSON cannot express is the string `"NaN"`, `"inf"` or `"-inf"`. A field with a
/// default may be left out.
pub type Document = serde_json::Value;

/// The version of the questions that [`Task::question`] writes.
///
/// Version 2 leaves out the fields of a strategy that a vector does not state.
pub const QUESTION_VERSION: u32 = 2;

/// A task for an implementation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "task", rename_all = "snake_case")]
pub enum Task {
    /// Score every item against all of them.
    Score {
        /// The scorer to build.
        scorer: Document,
        /// The scoreable list.
        items: Vec<Item>,
    },
    /// Select from a scored list, in the order given.
    Slice {
        /// The slicer to build.
        slicer: Document,
        /// The effective budget.
        budget: Budget,
        /// The list.
        items: Vec<ScoredItem>,
    },
    /// Order a scored list.
    Place {
        /// The placer to build.
        placer: Document,
        /// The merged list.
        items: Vec<ScoredItem>,
    },
    /// Run all six stages.
    Run {
        /// The policy to build. It always has `scorer`, `slicer`, `placer`, `deduplication` and
        /// `overflow_strategy`.
        policy: Document,
        /// The caller's budget.
        budget: Budget,
        /// The candidates.
        items: Vec<Item>,
    },
}

impl Task {
    /// Returns the task as a question to a program: `PROGRAM.md` describes it.
    ///
    /// ```
    /// use cupel_conformance::model::{Item, Task};
    /// use serde_json::json;
    ///
    /// let items = vec![Item { content: "a".into(), tokens: 1, ..Item::default() }];
    /// let task = Task::Score { scorer: json!({"type": "recency"}), items };
    /// assert_eq!(
    ///     task.question(),
    ///     json!({
    ///         "version": 2,
    ///         "task": "score",
    ///         "scorer": {"type": "recency"},
    ///         "items": [{"content": "a", "tokens": 1}],
    ///     })
    /// );
    /// ```
    pub fn question(&self) -> Document {
        // Only maps with keys other than strings fail, and a task has none.
        let mut question = json!(self);
        question["version"] = QUESTION_VERSION.into();
        question
    }

    /// Returns the name of the item at `index` in expectations.
    pub fn label(&self, index: usize) -> &str {
        match self {
            Self::Score { items, .. } | Self::Run { items, .. } => items[index].label(),
            Self::Slice { items, .. } | Self::Place { items, .. } => items[index].item.label(),
        }
    }

    /// Returns the channel that every answer to the task has, an error included.
    pub fn channel(&self) -> Channel {
        match self {
            Self::Score { .. } => Channel::Scores,
            Self::Slice { .. } => Channel::Selection,
            Self::Place { .. } => Channel::Order,
            Self::Run { .. } => Channel::Window,
        }
    }

    /// Returns the number of items in the task.
    pub fn item_count(&self) -> usize {
        match self {
            Self::Score { items, .. } | Self::Run { items, .. } => items.len(),
            Self::Slice { items, .. } | Self::Place { items, .. } => items.len(),
        }
    }
}

/// Returns a number as a document has it.
pub(crate) fn document_number(number: f64) -> Document {
    // JSON has no NaN and no infinity; the string fails at the same path of a document.
    if number.is_finite() {
        number.into()
    } else {
        number.to_string().into()
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn number<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    document_number(*number).serialize(serializer)
}

#[expect(clippy::ref_option, reason = "the signature that serde calls")]
fn optional_number<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    number.map(document_number).serialize(serializer)
}

/// Writes a time so that times in order are strings in order.
#[expect(clippy::ref_option, reason = "the signature that serde calls")]
fn optional_time<S: Serializer>(
    time: &Option<DateTime<Utc>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    time.map(|time| time.to_rfc3339()).serialize(serializer)
}

/// Writes pairs as an object. JSON objects have no duplicate keys: the last value stays.
fn object<S: Serializer>(pairs: &[(String, i64)], serializer: S) -> Result<S::Ok, S::Error> {
    let pairs: BTreeMap<&str, i64> = pairs.iter().map(|(key, n)| (key.as_str(), *n)).collect();
    pairs.serialize(serializer)
}

/// A part of an answer that can be compared by itself.
///
/// An adapter declares the channels it has; every expectation of a case belongs to one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// The scores of a scorer.
    Scores,
    /// The items a slicer keeps.
    Selection,
    /// The shortfalls of a slicer and the items its count caps reject.
    Shortfalls,
    /// The order a placer returns.
    Order,
    /// The window of a run.
    Window,
    /// The report of a run.
    Report,
    /// The trace events in the report of a run.
    Events,
    /// The overflow a run accepts.
    Overflow,
}

impl Channel {
    /// Every channel.
    pub const ALL: [Self; 8] = [
        Self::Scores,
        Self::Selection,
        Self::Shortfalls,
        Self::Order,
        Self::Window,
        Self::Report,
        Self::Events,
        Self::Overflow,
    ];

    /// Returns the name of the channel in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scores => "scores",
            Self::Selection => "selection",
            Self::Shortfalls => "shortfalls",
            Self::Order => "order",
            Self::Window => "window",
            Self::Report => "report",
            Self::Events => "events",
            Self::Overflow => "overflow",
        }
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Channel {
    type Err = UnknownChannel;

    fn from_str(name: &str) -> Result<Self, UnknownChannel> {
        let mut all = Self::ALL.into_iter();
        all.find(|channel| channel.name() == name)
            .ok_or_else(|| UnknownChannel(name.to_owned()))
    }
}

/// A name that is not the name of a [`Channel`]; holds the name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown channel `{0}`: expected one of scores, selection, shortfalls, order, window, report, \
     events, overflow"
)]
pub struct UnknownChannel(pub String);

/// The answer of an implementation. Items are named by their position in the task.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// One score per item, in input order.
    Scores(Vec<f64>),
    /// The choice of a slicer.
    Selected(Selected),
    /// The order a placer chose.
    Placed(Vec<usize>),
    /// The result of a run.
    Ran(Run),
    /// An error, at construction or later.
    Failed(Failure),
}

/// The choice of a slicer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Selected {
    /// The kept items in the order the slicer emitted them.
    pub kept: Vec<usize>,
    /// Requirements that could not be met; `None` if the entry point has no channel for them.
    pub shortfalls: Option<Vec<Shortfall>>,
    /// Items a count cap refused; `None` if the entry point has no channel for them.
    pub cap_rejected: Option<Vec<usize>>,
}

/// A count requirement that could not be met.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Shortfall {
    /// The kind as configured.
    pub kind: String,
    /// The required count.
    pub required_count: usize,
    /// The available count.
    pub satisfied_count: usize,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run {
    /// The window: candidates in final order.
    pub output: Vec<usize>,
    /// The report; `None` if the entry point gives none.
    pub report: Option<Report>,
    /// The overflow that was accepted; the outer `None` if the entry point has no channel for it.
    pub overflow: Option<Option<Overflow>>,
}

/// A report.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The included items in final order.
    pub included: Vec<Included>,
    /// The excluded items in report order.
    pub excluded: Vec<Excluded>,
    /// The number of candidates.
    pub total_candidates: usize,
    /// The token sum over both lists.
    pub total_tokens_considered: i64,
    /// Count requirements that could not be met.
    pub shortfalls: Vec<Shortfall>,
    /// The events in order; `None` if the entry point records none.
    pub events: Option<Vec<Event>>,
}

/// One included item.
#[derive(Debug, Clone, PartialEq)]
pub struct Included {
    /// The candidate.
    pub index: usize,
    /// Its score.
    pub score: f64,
    /// The variant name of the reason.
    pub reason: String,
}

/// One excluded item.
#[derive(Debug, Clone, PartialEq)]
pub struct Excluded {
    /// The candidate.
    pub index: usize,
    /// Its score.
    pub score: f64,
    /// The variant name of the reason.
    pub reason: String,
    /// The fields of the reason by their wire names (`item_tokens`, `displaced_by`, ...).
    pub fields: BTreeMap<String, Field>,
}

/// A field of an exclusion reason.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    /// A number of tokens or items.
    Integer(i64),
    /// A score or threshold.
    Float(f64),
    /// A string.
    Text(String),
}

/// One trace event.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Event {
    /// The wire name of the stage.
    pub stage: String,
    /// The number of items.
    pub item_count: usize,
    /// The message; item events have one that begins with the reason's variant name.
    pub message: Option<String>,
}

/// An accepted overflow.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Overflow {
    /// How far the merged items exceed the limit.
    pub tokens_over_budget: i64,
    /// The merged items, pinned first.
    pub items: Vec<usize>,
}

/// An error.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Failure {
    /// Whether building a strategy, budget or item failed, before anything ran.
    #[serde(default)]
    pub at_construction: bool,
    /// The error's variant name: `ScorerConfig`, `TableTooLarge`, ...
    pub code: String,
    /// The rendered message.
    #[serde(default)]
    pub message: String,
}
