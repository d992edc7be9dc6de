//! Writes Cupel runs as OpenTelemetry spans.
//!
//! Pass a [`CupelOtelTraceCollector`] to [`run_traced`](cupel::Pipeline::run_traced). When the run
//! ends, the collector writes a root span and a span for each of the five stages:
//!
//! ```text
//! cupel.pipeline
//! ├── cupel.stage.classify
//! ├── cupel.stage.score
//! ├── cupel.stage.deduplicate
//! ├── cupel.stage.slice
//! └── cupel.stage.place
//! ```
//!
//! The root span is a child of the span that is current when the run ends. Spans have the start times
//! and durations of their stages; no attribute repeats them. The instrumentation scope is
//! [`SOURCE_NAME`].
//!
//! ```
//! use cupel::*;
//! use cupel_otel::{CupelOtelTraceCollector, CupelVerbosity};
//! use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
//!
//! let exporter = InMemorySpanExporter::default();
//! let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
//!
//! let mut collector =
//!     CupelOtelTraceCollector::with_provider(CupelVerbosity::StageOnly, &provider);
//! let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, UShapedPlacer);
//! let items = [ContextItem::builder("hello", 2).build()?];
//! pipeline.run_traced(&items, &ContextBudget::with_target(9, 9)?, &mut collector)?;
//!
//! let spans = exporter.get_finished_spans().unwrap();
//! assert_eq!(spans.len(), 6);
//! assert_eq!(spans[5].name, "cupel.pipeline");
//! # Ok::<(), CupelError>(())
//! ```
//!
//! # Attributes and events
//!
//! [`CupelVerbosity`] selects a tier. Each tier includes the previous ones.
//!
//! | from tier | where | name | type | value |
//! |---|---|---|---|---|
//! | `StageOnly` | root | `cupel.budget.max_tokens` | int | `max_tokens` of the budget |
//! | | root | `cupel.verbosity` | string | the tier's name |
//! | | root, if items were excluded or shortened | `gen_ai.conversation.compacted` | bool | `true`, never `false` |
//! | | root, if items were excluded or shortened | `cupel.tokens.before` | int | tokens of all candidates |
//! | | root, if items were excluded or shortened | `cupel.tokens.after` | int | tokens of the window |
//! | | root of a failed run | `error.type` | string | [`CupelError::code`](cupel::CupelError::code) |
//! | | stage | `cupel.stage.name` | string | `classify`, `score`, `deduplicate`, `slice`, `place` |
//! | | stage | `cupel.stage.item_count_in` | int | number of items that entered |
//! | | stage | `cupel.stage.item_count_out` | int | number of items that left |
//! | `StageAndExclusions` | stage, if it excluded items | `cupel.exclusion.count` | int | number of excluded items |
//! | | stage, event `cupel.exclusion` per item | `cupel.exclusion.reason` | string | the reason's name: [`exclusion_reason_name`] |
//! | | | `cupel.exclusion.item_kind` | string | the item's kind |
//! | | | `cupel.exclusion.item_tokens` | int | the item's tokens |
//! | `Full` | `place`, event `cupel.item.included` per item of the window, in order | `cupel.item.kind` | string | the item's kind |
//! | | | `cupel.item.tokens` | int | the item's tokens |
//! | | | `cupel.item.score` | double | the item's score |
//! | | the same, if the item is shortened | `cupel.item.original_tokens` | int | the item's tokens in full |
//!
//! Events have the time at which their stage ended. The content of an item is never written.
//!
//! The root span of a failed run has an error status with the error's message. Stages that finished
//! before the error have spans; the stage that failed has none.
//!
//! # Stability of names
//!
//! Names that start with `cupel.` or `gen_ai.` are not stable: the semantic conventions for generative
//! AI are in development, and these names will follow them. Do not build alerts or dashboards on
//! them. Reasons are an open set: readers of `cupel.exclusion.reason` must accept unknown values.
//!
//! # Cost of a tier
//!
//! `StageOnly` writes six spans for any number of items. `StageAndExclusions` adds an event per
//! excluded item and `Full` an event per item: use `Full` in development, or with a sampler. The SDK
//! keeps 128 events per span and drops the rest; its `max_events_per_span` changes that.
//! `cupel.exclusion.count` counts all of them. Spans that a sampler drops get no events.
//!
//! # Version of OpenTelemetry
//!
//! The signature of [`with_provider`](CupelOtelTraceCollector::with_provider) has types of
//! `opentelemetry` 0.33. Each minor version has its own global provider: an application that installs
//! the provider of another version gets no spans.

mod collector;
pub mod names;
mod spans;

use cupel::{ExclusionReason, PipelineStage, SelectionReport, StageTraceSnapshot};

pub use collector::CupelOtelTraceCollector;

/// The name of the instrumentation scope of every span (OTEL-2).
pub const SOURCE_NAME: &str = "cupel";

/// The amount of detail that is written about a run. Each tier includes the previous ones.
///
/// ```
/// use cupel_otel::CupelVerbosity;
///
/// assert!(CupelVerbosity::StageOnly < CupelVerbosity::Full);
/// assert_eq!(CupelVerbosity::default().name(), "StageOnly");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CupelVerbosity {
    /// Spans with the number of items in and out. For production.
    #[default]
    StageOnly,
    /// Also an event per excluded item, with the reason. For staging.
    StageAndExclusions,
    /// Also an event per item of the window. For development.
    Full,
}

impl CupelVerbosity {
    /// Returns the value of the attribute `cupel.verbosity`.
    pub fn name(self) -> &'static str {
        match self {
            Self::StageOnly => "StageOnly",
            Self::StageAndExclusions => "StageAndExclusions",
            Self::Full => "Full",
        }
    }
}

/// Returns the value of the attribute `cupel.exclusion.reason`: the variant's name, or `Unknown` for
/// a reason that this version does not know (OTEL-13, OTEL-14).
///
/// ```
/// use cupel::ExclusionReason;
///
/// let reason = ExclusionReason::BudgetExceeded { item_tokens: 60, available_tokens: 17 };
/// assert_eq!(cupel_otel::exclusion_reason_name(&reason), "BudgetExceeded");
/// ```
pub fn exclusion_reason_name(reason: &ExclusionReason) -> &'static str {
    reason.known_name().unwrap_or("Unknown")
}

/// Returns the snapshots of the stages of a run from its report, for callers that have no other trace of it.
///
/// The report has an event per stage. It does not say which stage excluded an item; that follows from the reason, except
/// that items over the budget are those of `slice`, also if `place` truncated them.
///
/// ```
/// use cupel::*;
/// use cupel_otel::{CupelOtelTraceCollector, CupelVerbosity, stage_snapshots};
///
/// let mut trace = DiagnosticTraceCollector::new(TraceDetailLevel::Stage);
/// let pipeline = Pipeline::new(RecencyScorer, GreedySlice, ChronologicalPlacer);
/// let items = [ContextItem::builder("a", 3).build()?, ContextItem::builder("b", 9).build()?];
/// let budget = ContextBudget::with_target(5, 5)?;
/// pipeline.run_traced(&items, &budget, &mut trace)?;
/// let report = trace.into_report();
///
/// let snapshots = stage_snapshots(&report);
/// let counts: Vec<_> = snapshots.iter().map(|it| (it.item_count_in, it.item_count_out)).collect();
/// assert_eq!(counts, [(2, 2), (2, 2), (2, 2), (2, 1), (1, 1)]);
/// assert_eq!(snapshots[3].excluded, report.excluded);
///
/// let mut collector = CupelOtelTraceCollector::new(CupelVerbosity::StageOnly);
/// collector.on_pipeline_completed(&report, &budget, &snapshots);
/// # Ok::<(), CupelError>(())
/// ```
pub fn stage_snapshots(report: &SelectionReport) -> Vec<StageTraceSnapshot> {
    let stages = report.events.iter().filter(|event| event.message.is_none());
    let snapshots = stages.map(|event| {
        let excluded = report.excluded.iter();
        let excluded = excluded.filter(|entry| stage_of(&entry.reason) == event.stage);
        let mut snapshot =
            StageTraceSnapshot::new(event.stage, 0, event.item_count, event.duration_ms);
        snapshot.excluded = excluded.cloned().collect();
        snapshot.item_count_in = event.item_count + snapshot.excluded.len();
        snapshot
    });
    snapshots.collect()
}

fn stage_of(reason: &ExclusionReason) -> PipelineStage {
    match reason {
        ExclusionReason::NegativeTokens { .. } => PipelineStage::Classify,
        ExclusionReason::Deduplicated { .. } => PipelineStage::Deduplicate,
        _ => PipelineStage::Slice,
    }
}

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
