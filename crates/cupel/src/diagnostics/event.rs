//! Trace events and the stages that emit them.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::ExcludedItem;
use crate::{ContextBudget, ContextItem};

/// A stage of the pipeline that emits events. Sort, between Deduplicate and Slice, emits none.
///
/// A name that this version does not know is kept as [`Unknown`](Self::Unknown) (EVENT-9).
///
/// ```
/// use cupel::PipelineStage;
///
/// assert_eq!(PipelineStage::Slice.name(), "Slice");
/// ```
///
/// Stages compare in the order they run, unknown ones last.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PipelineStage {
    /// Splits pinned from scoreable items and drops invalid ones.
    Classify,
    /// Scores the scoreable items.
    Score,
    /// Drops duplicates: items with equal content.
    Deduplicate,
    /// Selects what fits.
    Slice,
    /// Merges pinned and selected items, applies the overflow strategy, orders the window.
    Place,
    /// A stage of another version or implementation.
    Unknown(UnknownName),
}

impl PipelineStage {
    /// The stages that emit events, in order.
    pub const ALL: [Self; 5] = [
        Self::Classify,
        Self::Score,
        Self::Deduplicate,
        Self::Slice,
        Self::Place,
    ];

    /// Returns the name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Classify => "Classify",
            Self::Score => "Score",
            Self::Deduplicate => "Deduplicate",
            Self::Slice => "Slice",
            Self::Place => "Place",
            Self::Unknown(name) => name.as_str(),
        }
    }

    /// Returns the stage of that name.
    pub fn from_name(name: &str) -> Self {
        let known = Self::ALL.into_iter().find(|stage| stage.name() == name);
        known.unwrap_or_else(|| Self::Unknown(UnknownName::new(name)))
    }
}

impl fmt::Display for PipelineStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of a stage or reason this version does not know.
///
/// Names are interned: each distinct name is stored once for the life of the process, and this is its
/// index, so that the types with a name are `Copy`. The interner is bounded, so that untrusted input
/// cannot exhaust memory: a name longer than 256 bytes, or beyond 4096 distinct names, becomes
/// `Unknown`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnknownName(u16);

/// The interner.
static NAMES: Mutex<Names> = Mutex::new(Names {
    by_index: Vec::new(),
    indices: BTreeMap::new(),
});

struct Names {
    by_index: Vec<&'static str>,
    indices: BTreeMap<&'static str, u16>,
}

impl UnknownName {
    const MAX_BYTES: usize = 256;
    const MAX_NAMES: u16 = 4096;
    /// The index of names that are not stored.
    const NOT_STORED: Self = Self(u16::MAX);

    /// Interns a name.
    pub fn new(name: &str) -> Self {
        if name == Self::NOT_STORED.as_str() {
            return Self::NOT_STORED;
        }
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = names.indices.get(name) {
            return Self(known);
        }
        let index = u16::try_from(names.by_index.len()).unwrap_or(u16::MAX);
        if name.len() > Self::MAX_BYTES || index >= Self::MAX_NAMES {
            return Self::NOT_STORED;
        }
        let stored: &'static str = Box::leak(name.into());
        names.by_index.push(stored);
        names.indices.insert(stored, index);
        Self(index)
    }

    /// Returns the name.
    pub fn as_str(&self) -> &'static str {
        let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = names.by_index.get(usize::from(self.0));
        stored.copied().unwrap_or("Unknown")
    }
}

/// Compares by name.
impl Ord for UnknownName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl PartialOrd for UnknownName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// An event of a run: a stage finished, or an item was excluded.
///
/// A stage event has the stage's wall-clock duration and the number of items that left it. An item
/// event has duration 0, count 1 and a message that starts with the reason's name.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceEvent {
    /// The stage.
    pub stage: PipelineStage,
    /// The duration in milliseconds.
    #[cfg_attr(
        feature = "serde",
        serde(alias = "durationMs", with = "crate::wire::float")
    )]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Float"))]
    pub duration_ms: f64,
    /// The number of items.
    #[cfg_attr(feature = "serde", serde(alias = "itemCount"))]
    pub item_count: usize,
    /// Details; `None` for stage events.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub message: Option<String>,
}

impl TraceEvent {
    /// Creates the event of a stage that finished.
    pub fn stage(stage: PipelineStage, duration_ms: f64, item_count: usize) -> Self {
        Self {
            stage,
            duration_ms,
            item_count,
            message: None,
        }
    }

    /// Creates an event about one item.
    pub fn item(stage: PipelineStage, message: impl Into<String>) -> Self {
        Self {
            stage,
            duration_ms: 0.0,
            item_count: 1,
            message: Some(message.into()),
        }
    }
}

/// An overflow that [`OverflowStrategy::Proceed`](crate::OverflowStrategy::Proceed) accepted.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OverflowEvent {
    /// The number of tokens above the limit.
    #[cfg_attr(feature = "serde", serde(alias = "tokensOverBudget"))]
    pub tokens_over_budget: i64,
    /// All items of the window: the pinned ones first, then the others by rank.
    #[cfg_attr(feature = "serde", serde(alias = "overflowingItems"))]
    pub overflowing_items: Vec<ContextItem>,
    /// The caller's budget.
    pub budget: ContextBudget,
}

impl OverflowEvent {
    /// Creates an event.
    pub fn new(
        tokens_over_budget: i64,
        overflowing_items: Vec<ContextItem>,
        budget: ContextBudget,
    ) -> Self {
        Self {
            tokens_over_budget,
            overflowing_items,
            budget,
        }
    }
}

/// The counts, duration and exclusions of one stage of a finished run.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
pub struct StageTraceSnapshot {
    /// The stage.
    pub stage: PipelineStage,
    /// The number of items that entered.
    pub item_count_in: usize,
    /// The number of items that left.
    pub item_count_out: usize,
    /// The wall-clock duration in milliseconds.
    pub duration_ms: f64,
    /// The items the stage excluded, in order.
    pub excluded: Vec<ExcludedItem>,
}

impl StageTraceSnapshot {
    /// Creates a snapshot without exclusions.
    pub fn new(
        stage: PipelineStage,
        item_count_in: usize,
        item_count_out: usize,
        duration_ms: f64,
    ) -> Self {
        Self {
            stage,
            item_count_in,
            item_count_out,
            duration_ms,
            excluded: Vec::new(),
        }
    }
}
