//! Diagnostics: what a run did, stage by stage and item by item.
//!
//! A run hands what it does to a [`TraceCollector`]. [`NullTraceCollector`] costs nothing;
//! [`DiagnosticTraceCollector`] buffers everything into a [`SelectionReport`];
//! collectors of your own implement three methods. `()`, `&mut C`, `Box<C>` and pairs of
//! collectors are collectors too.

mod event;
mod reason;
mod report;
pub mod trace_collector;

pub use event::{OverflowEvent, PipelineStage, StageTraceSnapshot, TraceEvent, UnknownName};
pub(crate) use reason::{BudgetExceededMessages, Excerpt, Grouped};
pub use reason::{ExclusionReason, InclusionReason, RawValue, UnknownReason};
#[cfg(feature = "serde")]
pub(crate) use report::totals;
pub use report::{CountRequirementShortfall, ExcludedItem, IncludedItem, SelectionReport};
pub use trace_collector::{
    DiagnosticTraceCollector, NullTraceCollector, TraceCollector, TraceDetailLevel,
};
