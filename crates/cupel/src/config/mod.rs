//! Policies as data (feature `serde`).
//!
//! A [`PolicyConfig`] is a policy written down: plain data that serde reads and writes, and that
//! [builds](PolicyConfig::build) the [`Policy`] it describes. [`PolicyConfig::of`] goes the
//! other way. The names are those of [`registry`].
//!
//! ```
//! use cupel::config::{PolicyConfig, ScorerConfig};
//! use cupel::{ContextBudget, ContextItem};
//!
//! let config: PolicyConfig = serde_json::from_str(
//!     r#"{"scorer": {"type": "scaled", "inner": {"type": "priority"}}, "overflow_strategy": "truncate"}"#,
//! )?;
//! assert_eq!(config.scorer, ScorerConfig::Scaled { inner: ScorerConfig::Priority.into() });
//!
//! let policy = config.build()?;
//! let items = [ContextItem::builder("hello", 2).build()?];
//! assert_eq!(policy.run(&items, &ContextBudget::with_target(10, 10)?)?.len(), 1);
//! assert_eq!(PolicyConfig::of(&policy)?, config);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With the feature `documents` policies and requests are read from JSON, TOML and YAML texts by
//! [`Document`], with errors that know line and column; there are [presets](presets()), and a JSON
//! Schema for both.

mod build;
#[cfg(feature = "documents")]
mod document;
mod duration;
mod error;
#[cfg(feature = "documents")]
mod faults;
#[cfg(feature = "documents")]
mod presets;
mod read;
pub mod registry;
#[cfg(feature = "documents")]
mod request;
#[cfg(feature = "documents")]
mod schema;
mod suggest;
mod tree;

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Serialize, Serializer};

#[cfg(feature = "documents")]
pub use document::{Document, Format};
pub use error::{ConfigError, ConfigErrorKind, Position};
#[cfg(feature = "documents")]
pub use presets::{Preset, preset, presets};
#[cfg(feature = "documents")]
pub use request::RequestConfig;
#[cfg(feature = "documents")]
pub use schema::{policy_schema, request_schema};
pub use suggest::nearest_name;

use crate::{
    ContextKind, CountQuotaEntry, GroupScore, OverflowStrategy, Policy, QuotaEntry,
    ScarcityBehavior,
};

/// A policy as data.
///
/// ```
/// use cupel::config::{PolicyConfig, ScorerConfig, SlicerConfig};
///
/// let config = PolicyConfig::new(ScorerConfig::Recency);
/// assert_eq!(config.slicer, SlicerConfig::Greedy);
/// assert!(config.build().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyConfig {
    /// What the policy is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Counts the changes of the policy under its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// When to use the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How relevant an item is.
    pub scorer: ScorerConfig,
    /// Which items stay within the budget.
    pub slicer: SlicerConfig,
    /// In what order the window is read.
    pub placer: PlacerConfig,
    /// Whether of items with the same content only the best stays.
    pub deduplication: bool,
    /// What happens when pinned and selected items exceed the target.
    #[serde(serialize_with = "overflow_name")]
    pub overflow_strategy: OverflowStrategy,
}

/// A scorer as data: a row of [`registry::SCORERS`].
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ScorerConfig {
    /// [`RecencyScorer`](crate::RecencyScorer).
    Recency,
    /// [`PriorityScorer`](crate::PriorityScorer).
    Priority,
    /// [`KindScorer`](crate::KindScorer).
    Kind {
        /// The weight of every kind.
        weights: BTreeMap<ContextKind, f64>,
    },
    /// [`TagScorer`](crate::TagScorer).
    Tag {
        /// The weight of every tag, summed in the order of the tags.
        tag_weights: BTreeMap<String, f64>,
        /// Whether ASCII letters match in either case; [`PolicyConfig::of`] then gives the tags in lower case.
        ignore_case: bool,
    },
    /// [`FrequencyScorer`](crate::FrequencyScorer).
    Frequency,
    /// [`ReflexiveScorer`](crate::ReflexiveScorer).
    Reflexive,
    /// [`CompositeScorer`](crate::CompositeScorer).
    Composite {
        /// The scorers with their weights.
        entries: Vec<ScorerEntry>,
    },
    /// [`ScaledScorer`](crate::ScaledScorer).
    Scaled {
        /// The scorer to stretch.
        inner: Box<ScorerConfig>,
    },
    /// [`DecayScorer`](crate::DecayScorer).
    Decay {
        /// How a score falls with age.
        curve: CurveConfig,
        /// The score of items without a timestamp.
        null_timestamp_score: f64,
        /// The time from which ages are counted; the machine's clock if absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        reference_time: Option<DateTime<Utc>>,
    },
    /// [`MetadataTrustScorer`](crate::MetadataTrustScorer).
    MetadataTrust {
        /// The score of items without a usable number.
        default_score: f64,
    },
    /// [`MetadataKeyScorer`](crate::MetadataKeyScorer).
    MetadataKey {
        /// The metadata key.
        key: String,
        /// The value that earns the boost.
        value: String,
        /// The score on a match.
        boost: f64,
    },
    /// [`ProductScorer`](crate::ProductScorer).
    Product {
        /// The factors.
        scorers: Vec<ScorerConfig>,
    },
}

/// A scorer of a composite, with its weight.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScorerEntry {
    /// The scorer.
    pub scorer: ScorerConfig,
    /// Its weight, relative to the others.
    pub weight: f64,
}

/// How a score falls with age: a row of [`registry::CURVES`].
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CurveConfig {
    /// Halves with every half-life.
    Exponential {
        /// The age at which the score is 0.5.
        #[serde(serialize_with = "duration::serialize")]
        half_life: TimeDelta,
    },
    /// 1 while younger than an age, then 0.
    Window {
        /// The age at which the score becomes 0.
        #[serde(serialize_with = "duration::serialize")]
        max_age: TimeDelta,
    },
    /// The score of the first window that is longer than the age, else of the last.
    Step {
        /// The windows in order.
        windows: Vec<StepWindow>,
    },
}

/// A window of a step curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepWindow {
    /// The age at which the window ends.
    #[serde(serialize_with = "duration::serialize")]
    pub max_age: TimeDelta,
    /// The score within it.
    pub score: f64,
}

/// A slicer as data: a row of [`registry::SLICERS`].
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SlicerConfig {
    /// [`GreedySlice`](crate::GreedySlice).
    Greedy,
    /// [`RankSlice`](crate::RankSlice).
    Rank,
    /// [`KnapsackSlice`](crate::KnapsackSlice).
    Knapsack(KnapsackConfig),
    /// [`QuotaSlice`](crate::QuotaSlice).
    Quota {
        /// The shares in percent.
        quotas: Vec<QuotaEntry>,
        /// The slicer that chooses within them.
        inner: Box<SlicerConfig>,
    },
    /// [`CountQuotaSlice`](crate::CountQuotaSlice).
    CountQuota {
        /// The counts.
        #[serde(serialize_with = "count_entries")]
        entries: Vec<CountQuotaEntry>,
        /// What happens when a kind has fewer candidates than it requires.
        #[serde(serialize_with = "scarcity_name")]
        scarcity: ScarcityBehavior,
        /// The slicer that chooses the rest.
        inner: Box<SlicerConfig>,
    },
    /// [`CountConstrainedKnapsackSlice`](crate::CountConstrainedKnapsackSlice).
    CountConstrainedKnapsack {
        /// The counts.
        #[serde(serialize_with = "count_entries")]
        entries: Vec<CountQuotaEntry>,
        /// What happens when a kind has fewer candidates than it requires.
        #[serde(serialize_with = "scarcity_name")]
        scarcity: ScarcityBehavior,
        /// The knapsack that chooses the rest.
        #[serde(flatten)]
        knapsack: KnapsackConfig,
    },
    /// [`GroupSlice`](crate::GroupSlice).
    Group {
        /// What a group scores.
        #[serde(serialize_with = "group_score_name")]
        score: GroupScore,
        /// The slicer that chooses among the groups.
        inner: Box<SlicerConfig>,
    },
}

/// A [`KnapsackSlice`](crate::KnapsackSlice) as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KnapsackConfig {
    /// Tokens a bucket.
    pub bucket_size: i64,
    /// Accepts tables up to so many cells; the specification's 50,000,000 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell_limit: Option<u64>,
    /// Accepts tables of any size that can be solved within so many bytes; not beside a cell limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<usize>,
}

/// A placer as data: a row of [`registry::PLACERS`].
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum PlacerConfig {
    /// [`ChronologicalPlacer`](crate::ChronologicalPlacer).
    Chronological,
    /// [`UShapedPlacer`](crate::UShapedPlacer).
    UShaped,
}

impl PolicyConfig {
    /// A scorer, everything else at its default: greedy, chronological, copies dropped, overflow an error.
    pub fn new(scorer: ScorerConfig) -> Self {
        Self {
            name: None,
            version: None,
            description: None,
            scorer,
            slicer: SlicerConfig::Greedy,
            placer: PlacerConfig::Chronological,
            deduplication: true,
            overflow_strategy: OverflowStrategy::default(),
        }
    }

    /// The policy as data. An overflow observer is not data and is left out.
    ///
    /// # Errors
    ///
    /// [`ConfigErrorKind::NotData`] naming the part that is a strategy of the caller's own.
    ///
    /// ```
    /// use cupel::config::PolicyConfig;
    /// use cupel::*;
    ///
    /// struct Brevity;
    /// impl Scorer for Brevity {
    ///     fn score(&self, item: &ContextItem, _: &[ContextItem]) -> f64 {
    ///         1.0 / (1.0 + item.content().len() as f64)
    ///     }
    /// }
    ///
    /// let scorer = CompositeScorer::builder().add(RecencyScorer, 1.0).add(Brevity, 2.0).build()?;
    /// let error = PolicyConfig::of(&Policy::new(scorer, GreedySlice, UShapedPlacer)).unwrap_err();
    /// assert_eq!(error.path(), "scorer.entries[1].scorer");
    /// assert!(error.message().starts_with("Brevity cannot be written as data"));
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn of(policy: &Policy) -> Result<Self, ConfigError> {
        Ok(Self {
            slicer: policy
                .slicer()
                .to_config()
                .map_err(|e| e.within("slicer"))?,
            placer: policy
                .placer()
                .to_config()
                .map_err(|e| e.within("placer"))?,
            deduplication: policy.deduplication(),
            overflow_strategy: policy.overflow_strategy(),
            ..Self::new(
                policy
                    .scorer()
                    .to_config()
                    .map_err(|e| e.within("scorer"))?,
            )
        })
    }
}

impl Default for KnapsackConfig {
    fn default() -> Self {
        Self {
            bucket_size: 100,
            cell_limit: None,
            memory_limit: None,
        }
    }
}

/// Reads through the tree that documents are read into.
macro_rules! deserialize {
    ($($type:ty: $read:path),* $(,)?) => {$(
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = crate::RawValue::deserialize(deserializer)?;
                tree::Node::try_from(value)
                    .and_then(|node| $read(&node))
                    .map_err(serde::de::Error::custom)
            }
        }
    )*};
}

deserialize! {
    PolicyConfig: read::policy,
    ScorerConfig: read::scorer,
    SlicerConfig: read::slicer,
    PlacerConfig: read::placer,
    CurveConfig: read::curve,
}

#[cfg(feature = "documents")]
deserialize!(RequestConfig: request::request);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn overflow_name<S: Serializer>(value: &OverflowStrategy, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match value {
        OverflowStrategy::Throw => "throw",
        OverflowStrategy::Truncate => "truncate",
        OverflowStrategy::Proceed => "proceed",
    })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn scarcity_name<S: Serializer>(value: &ScarcityBehavior, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match value {
        ScarcityBehavior::Degrade => "degrade",
        ScarcityBehavior::Throw => "throw",
    })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn group_score_name<S: Serializer>(value: &GroupScore, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match value {
        GroupScore::Max => "max",
        GroupScore::Mean => "mean",
        GroupScore::Sum => "sum",
    })
}

fn count_entries<S: Serializer>(entries: &[CountQuotaEntry], to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Entry<'a> {
        kind: &'a ContextKind,
        require_count: usize,
        cap_count: usize,
    }
    to.collect_seq(entries.iter().map(|entry| Entry {
        kind: entry.kind(),
        require_count: entry.require_count(),
        cap_count: entry.cap_count(),
    }))
}
