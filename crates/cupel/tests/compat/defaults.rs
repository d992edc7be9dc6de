//! The defaults the specification lists, which the published interface left to the caller.

use std::collections::HashMap;

use chrono::Duration;
use cupel::{
    ContextBudget, DecayCurve, DecayScorer, DiagnosticTraceCollector, Scorer, SystemTimeProvider,
    TraceCollector, TraceDetailLevel,
};

use super::{budget, item};

// proves: BUDGET-9, R030
#[test]
fn a_budget_of_two_limits_reserves_nothing() {
    let expected = ContextBudget::new(100, 80, 0, HashMap::new(), 0.0).unwrap();
    assert_eq!(ContextBudget::with_target(100, 80).unwrap(), expected);
    let built = ContextBudget::builder(100).target_tokens(80).build();
    assert_eq!(built.unwrap(), expected);
    assert_eq!(expected, budget(100, 80));
}

// proves: DECAY-13, R030
#[test]
fn an_item_without_timestamp_decays_to_one_half() {
    let curve = DecayCurve::window(Duration::hours(1)).unwrap();
    let scorer = DecayScorer::with_curve(SystemTimeProvider, curve).unwrap();
    assert_eq!(scorer.score(&item("text", 1), &[]), 0.5);
}

// proves: TRACE-4, R030
#[test]
fn a_collector_records_stages() {
    let collector = DiagnosticTraceCollector::default();
    assert!(collector.is_enabled());
    assert_eq!(
        format!("{collector:?}"),
        format!(
            "{:?}",
            DiagnosticTraceCollector::new(TraceDetailLevel::Stage)
        )
    );
}
