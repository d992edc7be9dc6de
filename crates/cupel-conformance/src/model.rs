//! Tasks and observations as plain data.
//!
//! Values are not validated: an empty content, a negative budget or a NaN weight
//! is passed on, because the implementation has to reject it.

use std::{collections::BTreeMap, fmt, str::FromStr};

use chrono::{DateTime, TimeDelta, Utc};

/// One candidate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Item {
    /// Tells items of equal content apart in expectations; not part of the specification's item.
    pub id: Option<String>,
    /// The text.
    pub content: String,
    /// The token count, as the caller claims it.
    pub tokens: i64,
    /// The kind; `None` means the implementation's default.
    pub kind: Option<String>,
    /// The source; `None` means the implementation's default.
    pub source: Option<String>,
    /// The priority.
    pub priority: Option<i64>,
    /// The tags, in order, repeats kept.
    pub tags: Vec<String>,
    /// The metadata; values that were not strings are in their plain text form.
    pub metadata: BTreeMap<String, String>,
    /// The instant of the item.
    pub timestamp: Option<DateTime<Utc>>,
    /// The caller's relevance hint.
    pub future_relevance_hint: Option<f64>,
    /// Whether the item bypasses scoring and slicing.
    pub pinned: bool,
    /// The token count before some earlier summarization.
    pub original_tokens: Option<i64>,
}

impl Item {
    /// Returns the name of the item in expectations: its id, otherwise its content.
    pub fn label(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.content)
    }
}

/// A candidate with a score computed elsewhere.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScoredItem {
    /// The candidate.
    pub item: Item,
    /// Its score.
    pub score: f64,
}

/// A token budget.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Budget {
    /// The hard ceiling.
    pub max_tokens: i64,
    /// The soft goal.
    pub target_tokens: i64,
    /// Tokens kept free for the model's answer.
    pub output_reserve: i64,
    /// Tokens reserved per kind.
    pub reserved_slots: Vec<(String, i64)>,
    /// Percentage taken off both limits.
    pub estimation_safety_margin_percent: f64,
}

/// A scorer and its configuration.
#[derive(Debug, Clone, PartialEq)]
pub enum Scorer {
    /// `RecencyScorer`.
    Recency,
    /// `PriorityScorer`.
    Priority,
    /// `KindScorer`; `None` means the default weights.
    Kind {
        /// Weight per kind, in configured order.
        weights: Option<Vec<(String, f64)>>,
    },
    /// `TagScorer`.
    Tag {
        /// Weight per tag, in configured order.
        weights: Vec<(String, f64)>,
        /// Whether keys are compared ignoring ASCII case.
        ignore_case: bool,
    },
    /// `FrequencyScorer`.
    Frequency,
    /// `ReflexiveScorer`.
    Reflexive,
    /// `CompositeScorer`: children with their weights.
    Composite(Vec<(Scorer, f64)>),
    /// `ProductScorer`: the children's scores multiplied.
    Product(Vec<Scorer>),
    /// `FusionScorer`: children with their weights, made comparable.
    Fusion {
        /// The children with their weights.
        entries: Vec<(Scorer, f64)>,
        /// How they are combined.
        method: FusionMethod,
        /// The constant of reciprocal ranks.
        k: f64,
    },
    /// `RelevanceScorer`, or `ConversationScorer` with the rules for questions.
    Relevance {
        /// The texts of the query with their weights.
        query: Vec<(String, f64)>,
        /// How slowly repetitions saturate.
        k1: f64,
        /// How much long items are discounted.
        b: f64,
        /// The kernels of a `ConversationScorer`.
        conversation: Option<Neighborhood>,
    },
    /// `NeighborScorer`.
    Neighbor {
        /// The scorer whose scores are spread.
        inner: Box<Scorer>,
        /// How they are spread.
        neighborhood: Neighborhood,
    },
    /// `ScaledScorer`.
    Scaled(Box<Scorer>),
    /// `MetadataTrustScorer`.
    MetadataTrust {
        /// Score of items without a usable trust value.
        default_score: f64,
    },
    /// `DecayScorer`.
    Decay {
        /// The time of the injected clock.
        reference_time: DateTime<Utc>,
        /// Score of items without a timestamp; `None` means the default.
        null_timestamp_score: Option<f64>,
        /// The shape of the decay.
        curve: Curve,
    },
    /// `MetadataKeyScorer`.
    MetadataKey {
        /// The key looked up.
        key: String,
        /// The value that earns the boost.
        value: String,
        /// The boost.
        boost: f64,
    },
}

/// The kernels of `NeighborScorer` and `ConversationScorer`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighborhood {
    /// The share of a match that the next item gets.
    pub forward: f64,
    /// The share of a match that the previous item gets.
    pub backward: f64,
    /// The most that a passage adds.
    pub weight: f64,
    /// The share that remains with each item of distance.
    pub decay: f64,
    /// The power of the scores.
    pub power: u32,
    /// Whether sessions separate items.
    pub sessions: bool,
}

/// How a `FusionScorer` combines its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FusionMethod {
    /// Scores divided by their maximum.
    Sum,
    /// Reciprocal ranks.
    ReciprocalRank,
    /// An order by shares of the tokens.
    Shares,
}

impl FusionMethod {
    /// Every method with its name.
    pub const ALL: &[(&str, Self)] = &[
        ("sum", Self::Sum),
        ("reciprocal_rank", Self::ReciprocalRank),
        ("shares", Self::Shares),
    ];

    /// The name of the method.
    pub fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(_, method)| *method == self)
            .map_or("", |(name, _)| name)
    }
}

/// The shape of a `DecayScorer`.
#[derive(Debug, Clone, PartialEq)]
pub enum Curve {
    /// Halves with every half-life.
    Exponential {
        /// The half-life.
        half_life: TimeDelta,
    },
    /// One inside the window, zero outside.
    Window {
        /// The first age that is outside.
        max_age: TimeDelta,
    },
    /// The score of the first window that is longer than the age.
    Step {
        /// Upper age (exclusive) and score, in order.
        windows: Vec<(TimeDelta, f64)>,
    },
}

/// A slicer and its configuration.
#[derive(Debug, Clone, PartialEq)]
pub enum Slicer {
    /// `GreedySlice`.
    Greedy,
    /// `RankSlice`, an addition to the specification.
    Rank,
    /// `DensitySlice`, an addition to the specification.
    Density {
        /// The power of the tokens.
        exponent: f64,
    },
    /// `KnapsackSlice`; `None` means the default bucket size.
    Knapsack {
        /// Tokens per bucket.
        bucket_size: Option<i64>,
    },
    /// `QuotaSlice`.
    Quota {
        /// Shares per kind, in configured order.
        quotas: Vec<Quota>,
        /// The slicer of each kind.
        inner: Box<Slicer>,
    },
    /// `CountQuotaSlice`.
    CountQuota {
        /// Counts per kind, in configured order.
        entries: Vec<CountEntry>,
        /// The behavior if a requirement cannot be met.
        scarcity: Scarcity,
        /// The slicer of the remaining items.
        inner: Box<Slicer>,
    },
    /// `CountConstrainedKnapsackSlice`.
    CountConstrainedKnapsack {
        /// Counts per kind, in configured order.
        entries: Vec<CountEntry>,
        /// The behavior if a requirement cannot be met.
        scarcity: Scarcity,
        /// Tokens per bucket; `None` means the default.
        bucket_size: Option<i64>,
    },
}

/// A share of the budget for one kind, in percent.
#[derive(Debug, Clone, PartialEq)]
pub struct Quota {
    /// The kind.
    pub kind: String,
    /// The least share.
    pub require: f64,
    /// The largest share.
    pub cap: f64,
}

/// Item counts for one kind. Counts are signed so that a vector can state an invalid one.
#[derive(Debug, Clone, PartialEq)]
pub struct CountEntry {
    /// The kind.
    pub kind: String,
    /// The least number of items.
    pub require_count: i64,
    /// The largest number of items.
    pub cap_count: i64,
}

/// The behavior of a count slicer with too few candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scarcity {
    /// Takes the available items and records a shortfall.
    #[default]
    Degrade,
    /// Fail.
    Throw,
}

/// A placer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placer {
    /// `ChronologicalPlacer`.
    Chronological,
    /// `UShapedPlacer`.
    UShaped,
}

/// The behavior if the merged items exceed the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverflowStrategy {
    /// Fail.
    #[default]
    Throw,
    /// Drop items until it fits.
    Truncate,
    /// Keep everything and report.
    Proceed,
}

/// A whole pipeline configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The scorer.
    pub scorer: Scorer,
    /// The slicer.
    pub slicer: Slicer,
    /// The placer.
    pub placer: Placer,
    /// Whether equal contents are merged.
    pub deduplication: bool,
    /// The behavior on overflow.
    pub overflow_strategy: OverflowStrategy,
}

/// A task for an implementation.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Score every item against all of them.
    Score {
        /// The scorer to build.
        scorer: Scorer,
        /// The scoreable list.
        items: Vec<Item>,
    },
    /// Select from a scored list, in the order given.
    Slice {
        /// The slicer to build.
        slicer: Slicer,
        /// The effective budget.
        budget: Budget,
        /// The list.
        items: Vec<ScoredItem>,
    },
    /// Order a scored list.
    Place {
        /// The placer to build.
        placer: Placer,
        /// The merged list.
        items: Vec<ScoredItem>,
    },
    /// Run all six stages.
    Run {
        /// The configuration.
        policy: Policy,
        /// The caller's budget.
        budget: Budget,
        /// The candidates.
        items: Vec<Item>,
    },
}

impl Task {
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The wire name of the stage.
    pub stage: String,
    /// The number of items.
    pub item_count: usize,
    /// The message; item events have one that begins with the reason's variant name.
    pub message: Option<String>,
}

/// An accepted overflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overflow {
    /// How far the merged items exceed the limit.
    pub tokens_over_budget: i64,
    /// The merged items, pinned first.
    pub items: Vec<usize>,
}

/// An error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Whether building a strategy, budget or item failed, before anything ran.
    pub at_construction: bool,
    /// The error's variant name: `ScorerConfig`, `TableTooLarge`, ...
    pub code: String,
    /// The rendered message.
    pub message: String,
}
