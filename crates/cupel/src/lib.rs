//! Decides what goes into a language model's context window, in what order, and says why for
//! every item.
//!
//! Give a [`Pipeline`] candidates with their token counts and a [`ContextBudget`]. It scores
//! them, drops copies, selects what fits and orders it. The same input always gives the same window.
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
//! let budget = ContextBudget::with_target(40, 40)?;
//!
//! let window = pipeline.run(&items, &budget)?;
//! let contents: Vec<_> = window.iter().map(ContextItem::content).collect();
//! assert_eq!(contents, ["You are a helpful assistant.", "Where are my keys?"]);
//!
//! let report = pipeline.dry_run(&items, &budget)?;
//! assert_eq!(
//!     report.excluded[0].reason.to_string(),
//!     "BudgetExceeded: 60 tokens requested, 27 available",
//! );
//! # Ok::<(), CupelError>(())
//! ```
//!
//! # The flow
//!
//! | stage | what happens | chosen by |
//! |---|---|---|
//! | Classify | pinned items are set aside, items with negative tokens dropped | |
//! | Score | every other item gets a score | a [`Scorer`]: [`scorer`] lists them |
//! | Deduplicate | of items with the same content the best stays | on or off |
//! | Sort | best score first | |
//! | Slice | what fits is selected | a [`Slicer`]: [`slicer`] lists them |
//! | Place | pinned and selected items are merged, overflow handled, the order chosen | an [`OverflowStrategy`] and a [`Placer`]: [`placer`] lists them |
//!
//! # Questions
//!
//! - What is in, what is out, and why? [`Pipeline::dry_run`] gives a [`SelectionReport`];
//!   [`Pipeline::decide`] answers by position and copies nothing; [`Pipeline::run_traced`] tells a [`TraceCollector`] while it runs.
//! - Why this item, and what would it take? [`Pipeline::explain`].
//! - What if the budget were another? [`Pipeline::sweep`] knows all of them;
//!   [`analytics`] lists more questions.
//!
//! # Words
//!
//! - **candidate**: an item offered to a run; **pinned**: included whatever it scores.
//! - **window**: the result, in reading order.
//! - **effective budget**: what is left for slicing once pinned items, reserve, slots and margin are
//!   taken off; see [`ContextBudget::effective`].
//! - **rank**: a position in the list sorted by score.
//! - **shortfall**: a count requirement that could not be met.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `serde`: [`ContextItem`], [`ContextBudget`], [`SelectionReport`] and their parts can be written
//!   and read, and policies are data: `config`. Adds serde.
//! - `documents`: policies and requests from JSON, TOML and YAML texts, presets. Adds `serde_json`,
//!   toml and granit-parser.
//! - `stream`: `StreamSlice` selects from an asynchronous stream. Adds futures-core.
//! - `rayon`: large inputs are scored and sorted, and [`Policy::run_many`] runs, on all cores. Adds rayon.
//!
//! Names like `SORT-4` in these pages are rows of `spec/requirements.md` in the repository.

#![cfg_attr(docsrs, feature(doc_cfg))]

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
pub mod scorer;
pub mod slicer;
mod type_name;
#[cfg(feature = "serde")]
mod wire;

pub use analytics::{
    BudgetSweep, Explanation, ItemIntervals, ItemStatus, KindQuotaUtilization, MinBudgets,
    Neighbor, PolicySensitivityDiffEntry, PolicySensitivityReport, SweepProgress, SweepStep,
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
    ContextSource, OverflowStrategy, ParseContextKindError, ScoredItem, ScoredRef, total_tokens,
};
pub use pipeline::{Decision, Decisions, Pipeline, PipelineBuilder, Policy, PolicyBuilder};
pub use placer::{ChronologicalPlacer, Placer, UShapedPlacer};
pub use scorer::{
    CompositeScorer, CompositeScorerBuilder, DecayCurve, DecayScorer, FrequencyScorer, KindScorer,
    MetadataKeyScorer, MetadataTrustScorer, PriorityScorer, ProductScorer, RecencyScorer,
    ReflexiveScorer, ScaledScorer, ScorePart, Scorer, SystemTimeProvider, TagComparison, TagScorer,
    TimeProvider,
};
#[cfg(feature = "stream")]
pub use slicer::StreamSlice;
pub use slicer::{
    CountConstrainedKnapsackSlice, CountQuotaEntry, CountQuotaSlice, GreedySlice, GroupScore,
    GroupSlice, KnapsackSlice, QuotaConstraint, QuotaConstraintMode, QuotaEntry, QuotaPolicy,
    QuotaSlice, RankSlice, Refusal, ScarcityBehavior, Selection, Slicer,
};

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
