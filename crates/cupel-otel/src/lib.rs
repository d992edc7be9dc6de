//! Writes Cupel runs as OpenTelemetry spans.
//!
//! Hand a [`CupelOtelTraceCollector`] to
//! [`run_traced`](cupel::Pipeline::run_traced). When the run has ended there is a span for it and
//! one for each of its five stages:
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
//! The root is a child of the span that is current when the run ends. A span starts when
//! its stage did and is as long as its stage was; that is where durations are, no attribute repeats
//! them. The instrumentation scope is [`SOURCE_NAME`].
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
//! # What is written
//!
//! [`CupelVerbosity`] chooses how much. Every tier has what the tiers before it have.
//!
//! | from tier | where | name | type | |
//! |---|---|---|---|---|
//! | `StageOnly` | root | `cupel.budget.max_tokens` | int | the budget's ceiling |
//! | | root | `cupel.verbosity` | string | the tier's name |
//! | | root, if items were left out | `gen_ai.conversation.compacted` | bool | `true`, never `false` |
//! | | root, if items were left out | `cupel.tokens.before` | int | tokens of all candidates |
//! | | root, if items were left out | `cupel.tokens.after` | int | tokens of the window |
//! | | root of a failed run | `error.type` | string | [`CupelError::code`](cupel::CupelError::code) |
//! | | stage | `cupel.stage.name` | string | `classify`, `score`, `deduplicate`, `slice`, `place` |
//! | | stage | `cupel.stage.item_count_in` | int | items that entered |
//! | | stage | `cupel.stage.item_count_out` | int | items that left |
//! | `StageAndExclusions` | stage, if it excluded items | `cupel.exclusion.count` | int | how many |
//! | | stage, event `cupel.exclusion` per item | `cupel.exclusion.reason` | string | the reason's name: [`exclusion_reason_name`] |
//! | | | `cupel.exclusion.item_kind` | string | |
//! | | | `cupel.exclusion.item_tokens` | int | |
//! | `Full` | `place`, event `cupel.item.included` per item of the window, in order | `cupel.item.kind` | string | |
//! | | | `cupel.item.tokens` | int | |
//! | | | `cupel.item.score` | double | |
//!
//! Events bear the time at which their stage ended. The text of an item is never written.
//!
//! A run that fails has a root whose status is an error with the error's message, and the stages
//! that finished before it; the stage it failed in has none.
//!
//! # Before you rely on a name
//!
//! Names that begin with `cupel.` or `gen_ai.` are not stable: the conventions for language models
//! are still being written, and these names will follow them. Look at them while you develop; an
//! alert or a dashboard that spells one out may go blank with the next release. Reasons are an open
//! set for good: what reads `cupel.exclusion.reason` has to accept a value it has never seen.
//!
//! # What a tier costs
//!
//! `StageOnly` writes six spans whatever the number of items. `StageAndExclusions` adds an event for
//! every item left out and `Full` one for every item, so `Full` belongs in development, or behind a
//! sampler. The SDK keeps 128 events of a span and counts the rest as dropped unless its
//! `max_events_per_span` says otherwise; `cupel.exclusion.count` counts all of them. Spans
//! that a sampler dropped get no events.
//!
//! # One version of OpenTelemetry
//!
//! Types of `opentelemetry` 0.33 are in the signature of
//! [`with_provider`](CupelOtelTraceCollector::with_provider), and each minor version has a global
//! provider of its own: an application that installs the one of another version gets no spans.

mod collector;
mod names;
mod spans;

use cupel::ExclusionReason;

pub use collector::CupelOtelTraceCollector;

/// The name of the instrumentation scope of every span (OTEL-2).
pub const SOURCE_NAME: &str = "cupel";

/// How much is written about a run. Tiers are ordered: each includes the ones before it.
///
/// ```
/// use cupel_otel::CupelVerbosity;
///
/// assert!(CupelVerbosity::StageOnly < CupelVerbosity::Full);
/// assert_eq!(CupelVerbosity::default().name(), "StageOnly");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CupelVerbosity {
    /// Spans with the number of items in and out. Fit for production.
    #[default]
    StageOnly,
    /// Also an event for every item left out, with the reason. Fit for staging.
    StageAndExclusions,
    /// Also an event for every item of the window. For development.
    Full,
}

impl CupelVerbosity {
    /// The value of the attribute `cupel.verbosity`.
    pub fn name(self) -> &'static str {
        match self {
            Self::StageOnly => "StageOnly",
            Self::StageAndExclusions => "StageAndExclusions",
            Self::Full => "Full",
        }
    }
}

/// The value of the attribute `cupel.exclusion.reason`: the variant's name, or `Unknown` for a
/// reason this version does not know (OTEL-13, OTEL-14).
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

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
