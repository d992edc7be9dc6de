//! Events and the stages they come from.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::ExcludedItem;
use crate::{ContextBudget, ContextItem};

/// A stage of the pipeline that reports. Sorting, between Deduplicate and Slice, reports nothing.
///
/// A name this version does not know survives reading and writing as
/// [`Unknown`](Self::Unknown) (EVENT-9).
///
/// ```
/// use cupel::PipelineStage;
///
/// assert_eq!(PipelineStage::Slice.name(), "Slice");
/// ```
///
/// Stages order as they run, unknown ones last.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PipelineStage {
    /// Splits pinned from scoreable items and drops invalid ones.
    Classify,
    /// Scores.
    Score,
    /// Drops copies of equal content.
    Deduplicate,
    /// Chooses what fits.
    Slice,
    /// Merges, handles overflow, orders.
    Place,
    /// A stage of another version or implementation.
    Unknown(UnknownName),
}

impl PipelineStage {
    /// The five stages every run reports, in order.
    pub const ALL: [Self; 5] = [
        Self::Classify,
        Self::Score,
        Self::Deduplicate,
        Self::Slice,
        Self::Place,
    ];

    /// The name on the wire.
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

    /// The stage of that name.
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
/// The types it lives in are `Copy` and come in great numbers, so each distinct name is stored once
/// for the life of the process, and this is its number. The store is bounded, so that documents from
/// strangers cannot fill the memory: a name of more than 256 bytes, or one too many after 4096
/// others, is read as `Unknown`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnknownName(u16);

/// Every name that was ever stored, by its number.
static NAMES: Mutex<Names> = Mutex::new(Names {
    by_number: Vec::new(),
    numbers: BTreeMap::new(),
});

struct Names {
    by_number: Vec<&'static str>,
    numbers: BTreeMap<&'static str, u16>,
}

impl UnknownName {
    const MAX_BYTES: usize = 256;
    const MAX_NAMES: u16 = 4096;
    /// Stands for the names that are not stored.
    const NOT_STORED: Self = Self(u16::MAX);

    /// Stores a name.
    pub fn new(name: &str) -> Self {
        if name == Self::NOT_STORED.as_str() {
            return Self::NOT_STORED;
        }
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = names.numbers.get(name) {
            return Self(known);
        }
        let number = u16::try_from(names.by_number.len()).unwrap_or(u16::MAX);
        if name.len() > Self::MAX_BYTES || number >= Self::MAX_NAMES {
            return Self::NOT_STORED;
        }
        let stored: &'static str = Box::leak(name.into());
        names.by_number.push(stored);
        names.numbers.insert(stored, number);
        Self(number)
    }

    /// The name.
    pub fn as_str(&self) -> &'static str {
        let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = names.by_number.get(usize::from(self.0));
        stored.copied().unwrap_or("Unknown")
    }
}

/// By name.
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

/// One thing that happened: a stage that finished, or an item that was excluded.
///
/// A stage event has the stage's wall-clock time and the number of items that left it. An item
/// event has time 0, count 1 and a message that begins with the reason's name.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TraceEvent {
    /// The stage.
    pub stage: PipelineStage,
    /// Milliseconds.
    #[cfg_attr(
        feature = "serde",
        serde(alias = "durationMs", with = "crate::wire::float")
    )]
    pub duration_ms: f64,
    /// Items.
    #[cfg_attr(feature = "serde", serde(alias = "itemCount"))]
    pub item_count: usize,
    /// More, where there is more to say.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub message: Option<String>,
}

impl TraceEvent {
    /// A stage that finished.
    pub fn stage(stage: PipelineStage, duration_ms: f64, item_count: usize) -> Self {
        Self {
            stage,
            duration_ms,
            item_count,
            message: None,
        }
    }

    /// Something about one item.
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
    /// How far the items exceed the limit.
    #[cfg_attr(feature = "serde", serde(alias = "tokensOverBudget"))]
    pub tokens_over_budget: i64,
    /// All items, pinned first, then by score.
    #[cfg_attr(feature = "serde", serde(alias = "overflowingItems"))]
    pub overflowing_items: Vec<ContextItem>,
    /// The caller's budget.
    pub budget: ContextBudget,
}

impl OverflowEvent {
    /// An overflow by so many tokens.
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

/// What one stage did, for collectors that look at a finished run.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
pub struct StageTraceSnapshot {
    /// The stage.
    pub stage: PipelineStage,
    /// Items that entered.
    pub item_count_in: usize,
    /// Items that left.
    pub item_count_out: usize,
    /// Wall-clock milliseconds.
    pub duration_ms: f64,
    /// Items the stage excluded, in the order it did.
    pub excluded: Vec<ExcludedItem>,
}

impl StageTraceSnapshot {
    /// A stage by its counts, without exclusions.
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
