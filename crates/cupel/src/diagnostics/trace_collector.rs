//! [`TraceCollector`]: hooks that a run calls, and the collectors of this crate.

use std::fmt;

use super::report::totals;
use super::{
    CountRequirementShortfall, ExcludedItem, ExclusionReason, IncludedItem, InclusionReason,
    OverflowEvent, PipelineStage, SelectionReport, StageTraceSnapshot, TraceEvent,
};
use crate::{ContextBudget, ContextItem, CupelError};

/// The detail a collector wants. A higher level includes the lower ones (TRACE-7).
#[non_exhaustive]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TraceDetailLevel {
    /// One event per stage.
    #[default]
    Stage,
    /// Also one event per excluded item.
    Item,
}

/// Receives what a run does while it runs.
///
/// The pipeline calls [`is_enabled`](Self::is_enabled) first. If it returns `false`, the pipeline calls
/// no other method, reads no clock and builds nothing. Tracing never changes a run (DIAG-4).
///
/// The order of calls:
///
/// 1. [`on_run_started`](Self::on_run_started) and [`set_candidates`](Self::set_candidates).
/// 2. Per stage [`on_stage_started`](Self::on_stage_started); per excluded item
///    [`record_item_event`](Self::record_item_event) and [`record_excluded`](Self::record_excluded);
///    [`record_stage_event`](Self::record_stage_event).
/// 3. [`record_included`](Self::record_included) per item of the window, in order.
/// 4. [`on_pipeline_completed`](Self::on_pipeline_completed), or after an error only
///    [`on_run_failed`](Self::on_run_failed).
///
/// ```
/// use cupel::*;
///
/// /// Counts the excluded items.
/// #[derive(Default)]
/// struct Excluded(usize);
///
/// impl TraceCollector for Excluded {
///     fn is_enabled(&self) -> bool { true }
///     fn record_stage_event(&mut self, _event: TraceEvent) {}
///     fn record_item_event(&mut self, _event: TraceEvent) {}
///     fn record_excluded(&mut self, _item: ContextItem, _score: f64, _reason: ExclusionReason) {
///         self.0 += 1;
///     }
/// }
///
/// let pipeline = Pipeline::builder()
///     .scorer(RecencyScorer)
///     .slicer(GreedySlice)
///     .placer(ChronologicalPlacer)
///     .build()?;
/// let items = [ContextItem::builder("far too long", 900).build()?];
/// let mut excluded = Excluded::default();
/// pipeline.run_traced(&items, &ContextBudget::with_target(100, 100)?, &mut excluded)?;
/// assert_eq!(excluded.0, 1);
/// # Ok::<(), CupelError>(())
/// ```
pub trait TraceCollector {
    /// Returns whether the other hooks are to be called. Must not change during a run.
    fn is_enabled(&self) -> bool;

    /// Receives the event of a stage that finished.
    fn record_stage_event(&mut self, event: TraceEvent);

    /// Receives the event of an excluded item. Not called below [`TraceDetailLevel::Item`].
    fn record_item_event(&mut self, event: TraceEvent);

    /// Receives an item of the window, in the window's order.
    fn record_included(&mut self, _item: ContextItem, _score: f64, _reason: InclusionReason) {}

    /// Receives an excluded item, in the order of exclusion.
    fn record_excluded(&mut self, _item: ContextItem, _score: f64, _reason: ExclusionReason) {}

    /// Receives the number of candidates and their tokens.
    fn set_candidates(&mut self, _total: usize, _total_tokens: i64) {}

    /// Receives the report of a run that succeeded. Not called if
    /// [`wants_report`](Self::wants_report) is `false`.
    fn on_pipeline_completed(
        &mut self,
        _report: &SelectionReport,
        _budget: &ContextBudget,
        _stage_snapshots: &[StageTraceSnapshot],
    ) {
    }

    /// Returns the level of detail. Defaults to [`TraceDetailLevel::Item`].
    fn detail_level(&self) -> TraceDetailLevel {
        TraceDetailLevel::Item
    }

    /// Returns whether the run builds a report for
    /// [`on_pipeline_completed`](Self::on_pipeline_completed). Defaults to `true`.
    fn wants_report(&self) -> bool {
        true
    }

    /// Called when a run starts.
    fn on_run_started(&mut self, _budget: &ContextBudget) {}

    /// Called when a stage starts.
    fn on_stage_started(&mut self, _stage: PipelineStage) {}

    /// Receives a count requirement that was not met, after slicing.
    fn record_shortfall(&mut self, _shortfall: CountRequirementShortfall) {}

    /// Receives an overflow accepted by
    /// [`OverflowStrategy::Proceed`](crate::OverflowStrategy::Proceed).
    fn on_overflow(&mut self, _event: &OverflowEvent) {}

    /// Receives the error of a run that failed.
    fn on_run_failed(&mut self, _error: &CupelError) {}
}

/// A collector that is disabled and costs nothing.
///
/// ```
/// use cupel::{NullTraceCollector, TraceCollector};
///
/// assert!(!NullTraceCollector.is_enabled());
/// assert_eq!(std::mem::size_of::<NullTraceCollector>(), 0);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NullTraceCollector;

impl TraceCollector for NullTraceCollector {
    fn is_enabled(&self) -> bool {
        false
    }

    fn record_stage_event(&mut self, _event: TraceEvent) {}

    fn record_item_event(&mut self, _event: TraceEvent) {}
}

/// Disabled, as [`NullTraceCollector`].
impl TraceCollector for () {
    fn is_enabled(&self) -> bool {
        false
    }

    fn record_stage_event(&mut self, _event: TraceEvent) {}

    fn record_item_event(&mut self, _event: TraceEvent) {}
}

/// Called with every event when it is recorded.
type EventCallback = Box<dyn Fn(&TraceEvent)>;

/// Collects a run into a [`SelectionReport`].
///
/// The level affects item events only; both lists are always complete. A second run replaces the
/// first.
///
/// ```
/// use cupel::*;
///
/// let pipeline = Pipeline::builder()
///     .scorer(RecencyScorer)
///     .slicer(GreedySlice)
///     .placer(ChronologicalPlacer)
///     .build()?;
/// let items = [ContextItem::builder("hello", 2).build()?];
/// let mut collector = DiagnosticTraceCollector::default();
/// let window = pipeline.run_traced(&items, &ContextBudget::with_target(9, 9)?, &mut collector)?;
/// let report = collector.into_report();
/// assert_eq!(report.events.len(), 5);
/// assert_eq!(report.included.len(), window.len());
/// # Ok::<(), CupelError>(())
/// ```
#[derive(Default)]
pub struct DiagnosticTraceCollector {
    pub(crate) events: Vec<TraceEvent>,
    pub(crate) included: Vec<IncludedItem>,
    pub(crate) excluded: Vec<ExcludedItem>,
    pub(crate) shortfalls: Vec<CountRequirementShortfall>,
    pub(crate) detail_level: TraceDetailLevel,
    callback: Option<EventCallback>,
}

impl DiagnosticTraceCollector {
    /// Creates a collector with this level of detail.
    pub fn new(detail_level: TraceDetailLevel) -> Self {
        Self {
            detail_level,
            ..Self::default()
        }
    }

    /// Creates a collector that also calls `callback` with every event when it is recorded.
    pub fn with_callback(
        detail_level: TraceDetailLevel,
        callback: Box<dyn Fn(&TraceEvent)>,
    ) -> Self {
        Self {
            callback: Some(callback),
            ..Self::new(detail_level)
        }
    }

    /// Returns the report, with totals computed from the lists.
    pub fn into_report(mut self) -> SelectionReport {
        self.events.shrink_to_fit();
        self.excluded.shrink_to_fit();
        SelectionReport::new(self.events, self.included, self.excluded, self.shortfalls)
    }

    fn record(&mut self, event: TraceEvent) {
        if let Some(callback) = &self.callback {
            callback(&event);
        }
        self.events.push(event);
    }
}

impl fmt::Debug for DiagnosticTraceCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (total_candidates, total_tokens) = totals(&self.included, &self.excluded);
        let excluded: Vec<_> = self.excluded.iter().zip(0..).collect();
        let mut debug = f.debug_struct("DiagnosticTraceCollector");
        debug
            .field("events", &self.events)
            .field("included", &self.included)
            .field("excluded", &excluded)
            .field("total_candidates", &total_candidates)
            .field("total_tokens_considered", &total_tokens);
        if !self.shortfalls.is_empty() {
            debug.field("shortfalls", &self.shortfalls);
        }
        debug
            .field("detail_level", &self.detail_level)
            .field("callback", &self.callback.as_ref().map(|_| "<callback>"))
            .finish()
    }
}

impl TraceCollector for DiagnosticTraceCollector {
    fn is_enabled(&self) -> bool {
        true
    }

    fn record_stage_event(&mut self, event: TraceEvent) {
        self.record(event);
    }

    fn record_item_event(&mut self, event: TraceEvent) {
        if self.detail_level >= TraceDetailLevel::Item {
            self.record(event);
        }
    }

    fn record_included(&mut self, item: ContextItem, score: f64, reason: InclusionReason) {
        self.included.push(IncludedItem::new(item, score, reason));
    }

    fn record_excluded(&mut self, item: ContextItem, score: f64, reason: ExclusionReason) {
        self.excluded.push(ExcludedItem::new(item, score, reason));
    }

    /// Reserves for the worst case: every candidate is excluded and has an event.
    fn set_candidates(&mut self, total: usize, _total_tokens: i64) {
        self.excluded.reserve_exact(total);
        if self.detail_level >= TraceDetailLevel::Item {
            self.events.reserve_exact(total);
        }
    }

    fn detail_level(&self) -> TraceDetailLevel {
        self.detail_level
    }

    fn wants_report(&self) -> bool {
        false
    }

    fn on_run_started(&mut self, _budget: &ContextBudget) {
        self.events.clear();
        self.included.clear();
        self.excluded.clear();
        self.shortfalls.clear();
    }

    fn record_shortfall(&mut self, shortfall: CountRequirementShortfall) {
        self.shortfalls.push(shortfall);
    }
}

/// Implements `TraceCollector` for pointers to collectors.
macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<C: TraceCollector + ?Sized> TraceCollector for $pointer {
            fn is_enabled(&self) -> bool {
                (**self).is_enabled()
            }

            fn record_stage_event(&mut self, event: TraceEvent) {
                (**self).record_stage_event(event);
            }

            fn record_item_event(&mut self, event: TraceEvent) {
                (**self).record_item_event(event);
            }

            fn record_included(&mut self, item: ContextItem, score: f64, reason: InclusionReason) {
                (**self).record_included(item, score, reason);
            }

            fn record_excluded(&mut self, item: ContextItem, score: f64, reason: ExclusionReason) {
                (**self).record_excluded(item, score, reason);
            }

            fn set_candidates(&mut self, total: usize, total_tokens: i64) {
                (**self).set_candidates(total, total_tokens);
            }

            fn on_pipeline_completed(
                &mut self,
                report: &SelectionReport,
                budget: &ContextBudget,
                stage_snapshots: &[StageTraceSnapshot],
            ) {
                (**self).on_pipeline_completed(report, budget, stage_snapshots);
            }

            fn detail_level(&self) -> TraceDetailLevel {
                (**self).detail_level()
            }

            fn wants_report(&self) -> bool {
                (**self).wants_report()
            }

            fn on_run_started(&mut self, budget: &ContextBudget) {
                (**self).on_run_started(budget);
            }

            fn on_stage_started(&mut self, stage: PipelineStage) {
                (**self).on_stage_started(stage);
            }

            fn record_shortfall(&mut self, shortfall: CountRequirementShortfall) {
                (**self).record_shortfall(shortfall);
            }

            fn on_overflow(&mut self, event: &OverflowEvent) {
                (**self).on_overflow(event);
            }

            fn on_run_failed(&mut self, error: &CupelError) {
                (**self).on_run_failed(error);
            }
        }
    )*};
}

forward!(Box<C>, &mut C);

/// Forwards to both collectors, to each only what it wants.
///
/// The report of [`on_pipeline_completed`](TraceCollector::on_pipeline_completed) holds the events
/// of the higher level of detail.
impl<A: TraceCollector, B: TraceCollector> TraceCollector for (A, B) {
    fn is_enabled(&self) -> bool {
        self.0.is_enabled() || self.1.is_enabled()
    }

    fn record_stage_event(&mut self, event: TraceEvent) {
        self.for_enabled(
            |a| a.record_stage_event(event.clone()),
            |b| {
                b.record_stage_event(event.clone());
            },
        );
    }

    fn record_item_event(&mut self, event: TraceEvent) {
        let item = TraceDetailLevel::Item;
        if self.0.is_enabled() && self.0.detail_level() >= item {
            self.0.record_item_event(event.clone());
        }
        if self.1.is_enabled() && self.1.detail_level() >= item {
            self.1.record_item_event(event);
        }
    }

    fn record_included(&mut self, item: ContextItem, score: f64, reason: InclusionReason) {
        self.for_enabled(
            |a| a.record_included(item.clone(), score, reason),
            |b| b.record_included(item.clone(), score, reason),
        );
    }

    fn record_excluded(&mut self, item: ContextItem, score: f64, reason: ExclusionReason) {
        self.for_enabled(
            |a| a.record_excluded(item.clone(), score, reason.clone()),
            |b| b.record_excluded(item.clone(), score, reason.clone()),
        );
    }

    fn set_candidates(&mut self, total: usize, total_tokens: i64) {
        self.for_enabled(
            |a| a.set_candidates(total, total_tokens),
            |b| b.set_candidates(total, total_tokens),
        );
    }

    fn on_pipeline_completed(
        &mut self,
        report: &SelectionReport,
        budget: &ContextBudget,
        stage_snapshots: &[StageTraceSnapshot],
    ) {
        if self.0.is_enabled() && self.0.wants_report() {
            self.0
                .on_pipeline_completed(report, budget, stage_snapshots);
        }
        if self.1.is_enabled() && self.1.wants_report() {
            self.1
                .on_pipeline_completed(report, budget, stage_snapshots);
        }
    }

    fn detail_level(&self) -> TraceDetailLevel {
        let of_first = self.0.is_enabled().then(|| self.0.detail_level());
        let of_second = self.1.is_enabled().then(|| self.1.detail_level());
        of_first.max(of_second).unwrap_or_default()
    }

    fn wants_report(&self) -> bool {
        self.0.is_enabled() && self.0.wants_report() || self.1.is_enabled() && self.1.wants_report()
    }

    fn on_run_started(&mut self, budget: &ContextBudget) {
        self.for_enabled(|a| a.on_run_started(budget), |b| b.on_run_started(budget));
    }

    fn on_stage_started(&mut self, stage: PipelineStage) {
        self.for_enabled(|a| a.on_stage_started(stage), |b| b.on_stage_started(stage));
    }

    fn record_shortfall(&mut self, shortfall: CountRequirementShortfall) {
        self.for_enabled(
            |a| a.record_shortfall(shortfall.clone()),
            |b| b.record_shortfall(shortfall.clone()),
        );
    }

    fn on_overflow(&mut self, event: &OverflowEvent) {
        self.for_enabled(|a| a.on_overflow(event), |b| b.on_overflow(event));
    }

    fn on_run_failed(&mut self, error: &CupelError) {
        self.for_enabled(|a| a.on_run_failed(error), |b| b.on_run_failed(error));
    }
}

/// Forwarding to a pair.
trait ForEnabled<A, B> {
    /// Calls each function with its collector if that collector is enabled.
    fn for_enabled(&mut self, first: impl FnOnce(&mut A), second: impl FnOnce(&mut B));
}

impl<A: TraceCollector, B: TraceCollector> ForEnabled<A, B> for (A, B) {
    fn for_enabled(&mut self, first: impl FnOnce(&mut A), second: impl FnOnce(&mut B)) {
        if self.0.is_enabled() {
            first(&mut self.0);
        }
        if self.1.is_enabled() {
            second(&mut self.1);
        }
    }
}
