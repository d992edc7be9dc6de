//! Counts heap allocations. A binary of its own, because it replaces the global allocator.

use allocation_counter::measure;
use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, DiagnosticTraceCollector, GreedySlice,
    NullTraceCollector, PipelineStage, Policy, ReflexiveScorer, TraceCollector, TraceDetailLevel,
    TraceEvent,
};

fn count(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

// proves: TRACE-2
#[test]
fn a_disabled_collector_does_not_allocate() {
    let items: Vec<_> = (0..50)
        .map(|n| {
            ContextItem::builder(format!("item {n}"), n)
                .build()
                .unwrap()
        })
        .collect();
    let budget = ContextBudget::with_target(200, 200).unwrap();
    let policy = Policy::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);

    let untraced = count(|| drop(policy.run(&items, &budget)));
    let traced = |collector: &mut dyn TraceCollector| {
        count(|| drop(policy.run_traced(&items, &budget, collector)))
    };
    assert!(untraced > 0, "a run allocates");
    assert_eq!(traced(&mut NullTraceCollector), untraced);
    let mut buffering = DiagnosticTraceCollector::new(TraceDetailLevel::Item);
    assert!(
        traced(&mut buffering) > untraced,
        "the counter sees a trace"
    );

    let stage = TraceEvent::stage(PipelineStage::Slice, 1.0, 1);
    let item = TraceEvent::item(PipelineStage::Slice, "BudgetExceeded: 2 of 1");
    let recorded = count(|| {
        let mut collector = NullTraceCollector;
        collector.record_stage_event(stage);
        collector.record_item_event(item);
        assert!(!collector.is_enabled());
    });
    assert_eq!(recorded, 0);
    assert_eq!(size_of::<NullTraceCollector>(), 0, "it has no buffer");
}
