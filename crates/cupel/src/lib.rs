//! Selects and orders the items of a language model's context window, and explains the decision about
//! every item.
//!
//! A [`Pipeline`] takes candidates with their token counts and a [`ContextBudget`]. It scores them, drops
//! duplicates, selects what fits and orders it. The same input always gives the same window.
//!
//! ```
//! use cupel::*;
//!
//! let items = [
//!     ContextItem::builder("You are a helpful assistant.", 8).pinned(true).build()?,
//!     ContextItem::builder("Where are my keys?", 5).future_relevance_hint(0.9).build()?,
//!     ContextItem::builder("A long story", 60).future_relevance_hint(0.3).build()?,
//! ];
//! let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);
//! let budget = ContextBudget::try_from(40)?;
//!
//! let window = pipeline.run(&items, &budget)?;
//! let contents: Vec<_> = window.iter().map(ContextItem::content).collect();
//! assert_eq!(contents, ["You are a helpful assistant.", "Where are my keys?"]);
//!
//! let decisions = pipeline.decide(&items, &budget)?;
//! let reason = decisions.exclusion(2).map(|reason| reason.to_string());
//! assert_eq!(reason.as_deref(), Some("BudgetExceeded: 60 tokens requested, 27 available"));
//! # Ok::<(), CupelError>(())
//! ```
//!
//! # Stages
//!
//! | stage | effect | configured by |
//! |---|---|---|
//! | Classify | separates pinned items, drops items with negative tokens | |
//! | Score | scores every other item | a [`Scorer`]: [`scorer`] lists them |
//! | Deduplicate | keeps the best of items with the same content | on or off |
//! | Sort | orders by score, best first | |
//! | Slice | selects items that fit the budget | a [`Slicer`]: [`slicer`] lists them |
//! | Place | merges pinned and selected items, handles overflow, orders the window | an [`OverflowStrategy`] and a [`Placer`]: [`placer`] lists them |
//!
//! # Methods
//!
//! - [`Pipeline::run`] returns the window.
//! - [`Pipeline::decide`] returns the decision about every candidate, by position, and copies no item.
//! - [`Pipeline::explain`] returns why one candidate is in or out, and the budget that includes it.
//! - [`Pipeline::sweep`] returns the window at every budget of a range.
//!
//! [`Pipeline::dry_run`] and [`SelectionReport`] are for compatibility with 1.2. [`Pipeline::run_traced`]
//! calls the hooks of a [`TraceCollector`] during a run. [`analytics`] lists further analyses.
//!
//! # Terms
//!
//! - **candidate**: an item passed to a run.
//! - **pinned**: included regardless of score.
//! - **window**: the selected items in their final order.
//! - **effective budget**: the budget minus pinned items, reserve, slots and margin; see
//!   [`ContextBudget::effective`].
//! - **view**: a shorter form of an item; see [`ContextView`].
//! - **rank**: a position in the list sorted by score.
//! - **shortfall**: a count requirement that was not met.
//!
//! # Features
//!
//! No feature is enabled by default.
//!
//! - `serde`: serializes [`ContextItem`], [`ContextBudget`], [`SelectionReport`] and their parts, and
//!   adds `config`: policies as data. Depends on serde and strsim.
//! - `documents`: reads policies and requests from JSON, TOML and YAML, and adds presets. Depends on
//!   `serde_json`, toml and granit-parser.
//! - `relevance`: adds `RelevanceScorer`, `NeighborScorer` and `ConversationScorer`, which know the
//!   question. Depends on rust-stemmers, unicode-normalization and unicode-script. Without it a document
//!   that names one of them is read, and building its policy is an error that names the feature.
//! - `embeddings`: adds `WordVectors`, a table of word vectors for [`EmbeddingScorer`]. Depends on
//!   `serde_json`, and includes `relevance`.
//! - `stream`: adds `StreamSlice`, which selects from an asynchronous stream. Depends on futures-core.
//! - `rayon`: scores and sorts large inputs on all cores. Depends on rayon.
//!
//! The library does no input or output, except for `Policy::from_path` (feature `documents`), which reads
//! a file, and `WordVectors::from_path` (feature `embeddings`), which a policy that names a table calls.
//!
//! Names such as `SORT-4` in these pages are rows of `spec/requirements.md` in the repository.

#![cfg_attr(docsrs, feature(doc_cfg))]
// The docs of data that a feature's strategies are built from link to the strategies.
#![cfg_attr(not(feature = "relevance"), allow(rustdoc::broken_intra_doc_links))]

pub mod analytics;
#[cfg(feature = "serde")]
pub mod config;
pub mod diagnostics;
pub mod error;
mod fast;
pub mod model;
mod order;
pub mod pipeline;
pub mod placer;
#[cfg(feature = "schema")]
pub mod schema;
pub mod scorer;
pub mod slicer;
mod type_name;
mod vector;
#[cfg(feature = "serde")]
mod wire;

pub use analytics::{
    BudgetSweep, Explanation, ItemIntervals, ItemStatus, KindQuotaUtilization, Neighbor,
    PolicySensitivityDiffEntry, PolicySensitivityReport, SweepProgress, SweepStep, ViewInterval,
    budget_utilization, kind_diversity, policy_sensitivity, policy_sensitivity_from_pipelines,
    quota_utilization, timestamp_coverage,
};
pub use diagnostics::{
    CountRequirementShortfall, DiagnosticTraceCollector, ExcludedItem, ExclusionReason,
    IncludedItem, InclusionReason, NullTraceCollector, OverflowEvent, PipelineStage, RawValue,
    SelectionReport, StageTraceSnapshot, TraceCollector, TraceDetailLevel, TraceEvent, UnknownName,
    UnknownReason,
};
pub use error::{ContractViolation, CupelError, StrategyRole};
pub use model::{
    ContextBudget, ContextBudgetBuilder, ContextItem, ContextItemBuilder, ContextKind,
    ContextSource, ContextView, Marks, OverflowStrategy, ParseContextKindError, Query, Retention,
    ScoredItem, ScoredRef, total_tokens,
};
pub use pipeline::{
    ChatSettings, Decision, Decisions, Pipeline, PipelineBuilder, Policy, PolicyBuilder, Shorten,
    ToolResults,
};
pub use placer::{ChronologicalPlacer, PlacementRule, Placer, UShapedPlacer, WindowEnd};
#[cfg(feature = "embeddings")]
pub use scorer::WordVectors;
pub use scorer::{
    CompositeScorer, CompositeScorerBuilder, DecayCurve, DecayScorer, EmbeddingScorer,
    FrequencyScorer, FusionMethod, FusionScorer, KindScorer, MetadataKeyScorer,
    MetadataTrustScorer, PriorityScorer, ProductScorer, RecencyScorer, ReflexiveScorer,
    ScaledScorer, ScorePart, Scorer, SystemTimeProvider, TagComparison, TagScorer, TimeProvider,
};
#[cfg(feature = "relevance")]
pub use scorer::{ConversationScorer, NeighborScorer, RelevanceScorer};
#[cfg(any(feature = "serde", feature = "relevance"))]
pub use scorer::{Language, NearKernel, QuestionRules, WideKernel};
#[cfg(feature = "stream")]
pub use slicer::StreamSlice;
pub use slicer::{
    ChoiceSlice, CountConstrainedKnapsackSlice, CountQuotaEntry, CountQuotaSlice, DensitySlice,
    DiversitySlice, GreedySlice, GroupScore, GroupSlice, KnapsackSlice, LadderSlice, LadderStep,
    NearDuplicateSlice, QuotaConstraint, QuotaConstraintMode, QuotaEntry, QuotaPolicy, QuotaSlice,
    RankSlice, Refusal, ScarcityBehavior, Selection, Similarity, Slicer,
};

/// Compiles and runs the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
