//! Collectors: who is told what a run does.

use std::fmt;

use super::report::totals;
use super::{
    CountRequirementShortfall, ExcludedItem, ExclusionReason, IncludedItem, InclusionReason,
    OverflowEvent, PipelineStage, SelectionReport, StageTraceSnapshot, TraceEvent,
};
use crate::{ContextBudget, ContextItem, CupelError};

/// How much a collector wants to know. A higher level includes the lower ones (TRACE-7).
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

/// Is told what a run does, while it does it.
///
/// The pipeline asks [`is_enabled`](Self::is_enabled) first and, on `false`, calls nothing else,
/// reads no clock and builds nothing. Tracing never changes a run (DIAG-4).
///
/// Per run: [`on_run_started`](Self::on_run_started) and [`set_candidates`](Self::set_candidates);
/// per stage [`on_stage_started`](Self::on_stage_started), then for every item it excludes
/// [`record_item_event`](Self::record_item_event) and [`record_excluded`](Self::record_excluded),
/// then [`record_stage_event`](Self::record_stage_event); at the end
/// [`record_included`](Self::record_included) for the window in order, and
/// [`on_pipeline_completed`](Self::on_pipeline_completed) or [`on_run_failed`](Self::on_run_failed).
///
/// ```
/// use cupel::*;
///
/// /// Counts what was left out.
/// #[derive(Default)]
/// struct Left(usize);
///
/// impl TraceCollector for Left {
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
/// let mut left = Left::default();
/// pipeline.run_traced(&items, &ContextBudget::with_target(100, 100)?, &mut left)?;
/// assert_eq!(left.0, 1);
/// # Ok::<(), CupelError>(())
/// ```
pub trait TraceCollector {
    /// Whether to tell this collector anything at all. Does not change during a run.
    fn is_enabled(&self) -> bool;

    /// A stage has finished.
    fn record_stage_event(&mut self, event: TraceEvent);

    /// Something happened to one item; not called below [`TraceDetailLevel::Item`].
    fn record_item_event(&mut self, event: TraceEvent);

    /// An item is in the window; called in the window's order.
    fn record_included(&mut self, _item: ContextItem, _score: f64, _reason: InclusionReason) {}

    /// An item is out; called in the order of exclusion.
    fn record_excluded(&mut self, _item: ContextItem, _score: f64, _reason: ExclusionReason) {}

    /// The number of candidates and their tokens.
    fn set_candidates(&mut self, _total: usize, _total_tokens: i64) {}

    /// The run has succeeded. Not called if [`wants_report`](Self::wants_report) is `false`.
    fn on_pipeline_completed(
        &mut self,
        _report: &SelectionReport,
        _budget: &ContextBudget,
        _stage_snapshots: &[StageTraceSnapshot],
    ) {
    }

    /// The level of detail wanted: all of it, unless said otherwise.
    fn detail_level(&self) -> TraceDetailLevel {
        TraceDetailLevel::Item
    }

    /// Whether the run has to build a report for
    /// [`on_pipeline_completed`](Self::on_pipeline_completed).
    fn wants_report(&self) -> bool {
        true
    }

    /// Whether the run has to build entries for [`record_included`](Self::record_included),
    /// [`record_excluded`](Self::record_excluded) and the stage snapshots.
    fn wants_entries(&self) -> bool {
        true
    }

    /// A run begins.
    fn on_run_started(&mut self, _budget: &ContextBudget) {}

    /// A stage begins.
    fn on_stage_started(&mut self, _stage: PipelineStage) {}

    /// A count requirement could not be met; called after slicing.
    fn record_shortfall(&mut self, _shortfall: CountRequirementShortfall) {}

    /// An overflow was accepted under [`OverflowStrategy::Proceed`](crate::OverflowStrategy::Proceed).
    fn on_overflow(&mut self, _event: &OverflowEvent) {}

    /// The run has failed.
    fn on_run_failed(&mut self, _error: &CupelError) {}
}

/// The collector that is never told anything, at no cost.
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

/// As [`NullTraceCollector`].
impl TraceCollector for () {
    fn is_enabled(&self) -> bool {
        false
    }

    fn record_stage_event(&mut self, _event: TraceEvent) {}

    fn record_item_event(&mut self, _event: TraceEvent) {}
}

/// Is called with every event as it is recorded.
type EventCallback = Box<dyn Fn(&TraceEvent)>;

/// Buffers a run into a [`SelectionReport`].
///
/// The level decides about item events only; both lists are always complete. A collector
/// serves one run; a second run starts it afresh.
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
    /// A collector that records at the given level.
    pub fn new(detail_level: TraceDetailLevel) -> Self {
        Self {
            detail_level,
            ..Self::default()
        }
    }

    /// A collector that also calls `callback` with every event it records, as it comes.
    pub fn with_callback(
        detail_level: TraceDetailLevel,
        callback: Box<dyn Fn(&TraceEvent)>,
    ) -> Self {
        Self {
            callback: Some(callback),
            ..Self::new(detail_level)
        }
    }

    /// What was recorded, with totals computed from the lists.
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

    /// Every candidate may be excluded, and have an event.
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

/// A pointer to a collector is a collector.
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

            fn wants_entries(&self) -> bool {
                (**self).wants_entries()
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

/// Tells both, each only what it wants to know.
///
/// The report of [`on_pipeline_completed`](TraceCollector::on_pipeline_completed) holds the events
/// of the more curious one.
impl<A: TraceCollector, B: TraceCollector> TraceCollector for (A, B) {
    fn is_enabled(&self) -> bool {
        self.0.is_enabled() || self.1.is_enabled()
    }

    fn record_stage_event(&mut self, event: TraceEvent) {
        self.tell(
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
        self.tell(
            |a| a.record_included(item.clone(), score, reason),
            |b| b.record_included(item.clone(), score, reason),
        );
    }

    fn record_excluded(&mut self, item: ContextItem, score: f64, reason: ExclusionReason) {
        self.tell(
            |a| a.record_excluded(item.clone(), score, reason.clone()),
            |b| b.record_excluded(item.clone(), score, reason.clone()),
        );
    }

    fn set_candidates(&mut self, total: usize, total_tokens: i64) {
        self.tell(
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

    fn wants_entries(&self) -> bool {
        self.0.is_enabled() && self.0.wants_entries()
            || self.1.is_enabled() && self.1.wants_entries()
    }

    fn on_run_started(&mut self, budget: &ContextBudget) {
        self.tell(|a| a.on_run_started(budget), |b| b.on_run_started(budget));
    }

    fn on_stage_started(&mut self, stage: PipelineStage) {
        self.tell(|a| a.on_stage_started(stage), |b| b.on_stage_started(stage));
    }

    fn record_shortfall(&mut self, shortfall: CountRequirementShortfall) {
        self.tell(
            |a| a.record_shortfall(shortfall.clone()),
            |b| b.record_shortfall(shortfall.clone()),
        );
    }

    fn on_overflow(&mut self, event: &OverflowEvent) {
        self.tell(|a| a.on_overflow(event), |b| b.on_overflow(event));
    }

    fn on_run_failed(&mut self, error: &CupelError) {
        self.tell(|a| a.on_run_failed(error), |b| b.on_run_failed(error));
    }
}

/// Telling a pair.
trait Tell<A, B> {
    /// Calls each function with its collector, if that one is enabled.
    fn tell(&mut self, first: impl FnOnce(&mut A), second: impl FnOnce(&mut B));
}

impl<A: TraceCollector, B: TraceCollector> Tell<A, B> for (A, B) {
    fn tell(&mut self, first: impl FnOnce(&mut A), second: impl FnOnce(&mut B)) {
        if self.0.is_enabled() {
            first(&mut self.0);
        }
        if self.1.is_enabled() {
            second(&mut self.1);
        }
    }
}
