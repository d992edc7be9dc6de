//! Diagnostics: the trace of a run, the report, and the reasons for inclusion and exclusion.
//!
//! A run calls the hooks of a [`TraceCollector`]. [`NullTraceCollector`] is disabled and costs
//! nothing; [`DiagnosticTraceCollector`] collects a [`SelectionReport`]; a custom collector implements
//! three methods. `()`, `&mut C`, `Box<C>` and pairs of collectors are collectors too.

mod event;
mod reason;
mod report;
pub mod trace_collector;

pub use event::{OverflowEvent, PipelineStage, StageTraceSnapshot, TraceEvent, UnknownName};
pub(crate) use reason::{Blocker, Excerpt, Grouped};
pub use reason::{ExclusionReason, InclusionReason, RawValue, UnknownReason};
#[cfg(feature = "serde")]
pub(crate) use report::totals;
pub use report::{CountRequirementShortfall, ExcludedItem, IncludedItem, SelectionReport};
pub use trace_collector::{
    DiagnosticTraceCollector, NullTraceCollector, TraceCollector, TraceDetailLevel,
};
