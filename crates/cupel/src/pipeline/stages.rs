//! [`Trace`]: times, counts and reports the stages of a run.

use std::time::Instant;

use super::ledger::Ledger;
use crate::total_tokens;
use crate::{
    ContextBudget, ContextItem, CupelError, OverflowEvent, PipelineStage, SelectionReport,
    StageTraceSnapshot, TraceCollector, TraceDetailLevel, TraceEvent,
};

/// Calls the hooks of a collector. If the collector is disabled, every method returns immediately: no
/// clock is read, and nothing is summed or built (TRACE-2).
pub(super) struct Trace<'c, C: ?Sized> {
    collector: &'c mut C,
    enabled: bool,
    item_events: bool,
    /// The arguments of the completion hook, if the collector wants them.
    completion: Option<Completion>,
    overflow_observer: Option<&'c dyn Fn(&OverflowEvent)>,
}

#[derive(Default)]
struct Completion {
    events: Vec<TraceEvent>,
    snapshots: Vec<StageTraceSnapshot>,
}

/// A stage that has started.
#[derive(Clone, Copy)]
pub(super) struct Entered {
    stage: PipelineStage,
    /// When it was entered; `None` without a trace, and on a platform without a clock.
    since: Option<Instant>,
}

/// Returns the time of the stage timer. `wasm32-unknown-unknown` has no clock, and reading one panics
/// there: a trace from it has durations of 0.
fn stage_clock() -> Option<Instant> {
    if cfg!(all(target_family = "wasm", target_os = "unknown")) {
        return None;
    }
    #[expect(clippy::disallowed_methods, reason = "the stage timer")]
    Some(Instant::now())
}

impl<'c, C: TraceCollector + ?Sized> Trace<'c, C> {
    pub(super) fn start(
        collector: &'c mut C,
        overflow_observer: Option<&'c dyn Fn(&OverflowEvent)>,
        items: &[ContextItem],
        budget: &ContextBudget,
    ) -> Self {
        let enabled = collector.is_enabled();
        if enabled {
            collector.on_run_started(budget);
            collector.set_candidates(items.len(), total_tokens(items));
        }
        Self {
            enabled,
            item_events: enabled && collector.detail_level() >= TraceDetailLevel::Item,
            completion: (enabled && collector.wants_report()).then(Completion::default),
            overflow_observer,
            collector,
        }
    }

    /// Returns a trace that calls neither the collector nor an overflow observer.
    pub(super) fn disabled(collector: &'c mut C) -> Self {
        Self {
            enabled: false,
            item_events: false,
            completion: None,
            overflow_observer: None,
            collector,
        }
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.enabled
    }

    pub(super) fn enter(&mut self, stage: PipelineStage) -> Entered {
        if !self.enabled {
            return Entered { stage, since: None };
        }
        self.collector.on_stage_started(stage);
        let since = stage_clock();
        Entered { stage, since }
    }

    /// Reports a stage that processed `considered`, in that order, and passed on `passed` of them.
    pub(super) fn leave(
        &mut self,
        entered: Entered,
        ledger: &Ledger<'_>,
        considered: impl ExactSizeIterator<Item = usize>,
        passed: usize,
    ) {
        let Entered { stage, since } = entered;
        if !self.enabled {
            return;
        }
        let duration_ms = since.map_or(0.0, |since| since.elapsed().as_secs_f64() * 1e3);
        let mut snapshot = StageTraceSnapshot::new(stage, considered.len(), passed, duration_ms);
        for candidate in considered.filter(|&candidate| ledger.is_excluded(candidate)) {
            if self.item_events {
                let event = TraceEvent::item(stage, ledger.message(candidate));
                self.record(event, C::record_item_event);
            }
            if let Some(excluded) = ledger.excluded(candidate) {
                if self.completion.is_some() {
                    snapshot.excluded.push(excluded.clone());
                }
                self.collector
                    .record_excluded(excluded.item, excluded.score, excluded.reason);
            }
        }
        let event = TraceEvent::stage(stage, duration_ms, passed);
        self.record(event, C::record_stage_event);
        if let Some(completion) = &mut self.completion {
            completion.snapshots.push(snapshot);
        }
    }

    /// Reports the count requirements that slicing did not meet.
    pub(super) fn record_shortfalls(&mut self, ledger: &Ledger<'_>) {
        if self.enabled {
            let shortfalls = ledger.shortfalls.iter().cloned();
            shortfalls.for_each(|shortfall| self.collector.record_shortfall(shortfall));
        }
    }

    /// Reports an accepted overflow. The event is built only if it is reported to anyone.
    pub(super) fn overflowed(&mut self, event: impl FnOnce() -> OverflowEvent) {
        if !self.enabled && self.overflow_observer.is_none() {
            return;
        }
        let event = event();
        if let Some(observer) = self.overflow_observer {
            observer(&event);
        }
        if self.enabled {
            self.collector.on_overflow(&event);
        }
    }

    pub(super) fn end(mut self, result: &Result<Ledger<'_>, CupelError>, budget: &ContextBudget) {
        if !self.enabled {
            return;
        }
        let ledger = match result {
            Ok(ledger) => ledger,
            Err(error) => return self.collector.on_run_failed(error),
        };
        for &candidate in ledger.window() {
            let included = ledger.included(candidate);
            self.collector
                .record_included(included.item, included.score, included.reason);
        }
        if let Some(completion) = self.completion.take() {
            let report: SelectionReport = ledger.report(completion.events);
            self.collector
                .on_pipeline_completed(&report, budget, &completion.snapshots);
        }
    }

    fn record(&mut self, event: TraceEvent, tell: impl FnOnce(&mut C, TraceEvent)) {
        if let Some(completion) = &mut self.completion {
            completion.events.push(event.clone());
        }
        tell(self.collector, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ChronologicalPlacer, ExclusionReason, GreedySlice, InclusionReason, Pipeline, RecencyScorer,
    };

    /// Counts the calls of the hooks that a collector can decline.
    #[derive(Default)]
    struct Declining {
        detail_level: TraceDetailLevel,
        wants_report: bool,
        item_events: usize,
        entries: usize,
        reports: usize,
        entries_in_snapshots: usize,
    }

    impl TraceCollector for Declining {
        fn is_enabled(&self) -> bool {
            true
        }

        fn record_stage_event(&mut self, _event: TraceEvent) {}

        fn record_item_event(&mut self, _event: TraceEvent) {
            self.item_events += 1;
        }

        fn record_included(&mut self, _item: ContextItem, _score: f64, _reason: InclusionReason) {
            self.entries += 1;
        }

        fn record_excluded(&mut self, _item: ContextItem, _score: f64, _reason: ExclusionReason) {
            self.entries += 1;
        }

        fn on_pipeline_completed(
            &mut self,
            _report: &SelectionReport,
            _budget: &ContextBudget,
            stage_snapshots: &[StageTraceSnapshot],
        ) {
            self.reports += 1;
            let entries = stage_snapshots
                .iter()
                .map(|snapshot| snapshot.excluded.len());
            self.entries_in_snapshots += entries.sum::<usize>();
        }

        fn detail_level(&self) -> TraceDetailLevel {
            self.detail_level
        }

        fn wants_report(&self) -> bool {
            self.wants_report
        }
    }

    // proves: TRACE-7
    #[test]
    fn an_enabled_collector_gets_only_what_it_wants() {
        let item = |text: &str, tokens| ContextItem::builder(text, tokens).build().unwrap();
        let items = [item("short", 5), item("long", 90), item("longer", 99)];
        let budget = ContextBudget::with_target(20, 20).unwrap();
        let pipeline = Pipeline::new(RecencyScorer, GreedySlice, ChronologicalPlacer);
        for choice in 0..4 {
            let [is_item, wants_report] = [1, 2].map(|bit| choice & bit != 0);
            let mut collector = Declining {
                detail_level: if is_item {
                    TraceDetailLevel::Item
                } else {
                    TraceDetailLevel::Stage
                },
                wants_report,
                ..Declining::default()
            };
            pipeline
                .run_traced(&items, &budget, &mut collector)
                .unwrap();
            let if_true = |wanted: bool, calls: usize| if wanted { calls } else { 0 };
            assert_eq!(collector.item_events, if_true(is_item, 2), "{choice}");
            assert_eq!(collector.entries, 3, "{choice}");
            assert_eq!(collector.reports, if_true(wants_report, 1), "{choice}");
            let in_snapshots = if_true(wants_report, 2);
            assert_eq!(collector.entries_in_snapshots, in_snapshots, "{choice}");
        }
    }
}
