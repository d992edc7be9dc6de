//! The library against the oracle on random input: whole answers, compared to the last bit.
//!
//! `CUPEL_CASES` sets the number of cases of each property.

use std::collections::BTreeMap;

use cupel_conformance::Adapter;
use cupel_conformance::model::{Observation, Task};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

use crate::adapter::Surface;
use crate::arbitrary;
use crate::oracle;

fn check(default_cases: u32, tasks: impl Strategy<Value = Task>) {
    let cases = std::env::var("CUPEL_CASES").ok();
    let config = Config {
        cases: cases.map_or(default_cases, |cases| {
            cases.parse().expect("CUPEL_CASES is a number")
        }),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&tasks, |task| {
            let expected = oracle::observe(&task);
            for surface in Surface::ALL {
                let Ok(observed) = surface.observe(&task) else {
                    continue;
                };
                let (observed, expected) = comparable(observed, expected.clone());
                prop_assert!(
                    observed == expected,
                    "surface {}\nexpected {expected}\nobserved {observed}",
                    surface.name()
                );
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

/// Both answers as text, in which every number is exact and NaN equals NaN, without what the
/// surface cannot know and without wording.
fn comparable(mut observed: Observation, mut expected: Observation) -> (String, String) {
    match (&mut observed, &mut expected) {
        (Observation::Selected(observed), Observation::Selected(expected)) => {
            forget_unknown(observed.shortfalls.as_ref(), &mut expected.shortfalls);
            forget_unknown(observed.cap_rejected.as_ref(), &mut expected.cap_rejected);
        }
        (Observation::Ran(observed), Observation::Ran(expected)) => {
            forget_unknown(observed.overflow.as_ref(), &mut expected.overflow);
            if let (Some(observed), Some(expected)) = (&mut observed.report, &mut expected.report) {
                forget_unknown(observed.events.as_ref(), &mut expected.events);
                for event in observed
                    .events
                    .iter_mut()
                    .chain(&mut expected.events)
                    .flatten()
                {
                    let message = event.message.take();
                    event.message = message.map(|text| text.split(':').take(1).collect());
                }
            } else {
                expected.report = None;
            }
        }
        (Observation::Failed(observed), Observation::Failed(expected)) => {
            observed.message.clear();
            expected.message.clear();
        }
        _ => {}
    }
    (format!("{observed:#?}"), format!("{expected:#?}"))
}

fn forget_unknown<T>(observed: Option<&T>, expected: &mut Option<T>) {
    if observed.is_none() {
        *expected = None;
    }
}

// proves: GEN-1, GEN-7, GEN-11, SLICE-11, PLACE-2, EXCL-1, EXCL-12, REPORT-6, REPORT-13, R034
#[test]
fn whole_runs_equal_the_oracle() {
    check(4_000, arbitrary::run());
}

// proves: BUDGET-11, CLASSIFY-11, R008
#[test]
fn whole_runs_at_the_ends_of_the_number_range_equal_the_oracle() {
    check(2_000, arbitrary::extreme_run());
}

// proves: SCORER-1, COMP-8, SCALED-7, GEN-3, GEN-4
#[test]
fn scores_equal_the_oracle() {
    check(3_000, arbitrary::score());
}

// proves: SLICER-1, GREEDY-15, SIM-2
#[test]
fn selections_equal_the_oracle() {
    check(4_000, arbitrary::slice());
}

// proves: KNAP-9, KNAP-10, KNAP-11, KNAP-12
#[test]
fn knapsacks_full_of_ties_equal_the_oracle() {
    check(20_000, arbitrary::tied_knapsack());
}

// proves: PLACER-1, PLACER-2
#[test]
fn orders_equal_the_oracle() {
    check(2_000, arbitrary::place());
}

/// The properties above are worth something only if the random runs get somewhere.
#[test]
fn random_runs_mostly_succeed_and_meet_every_fate() {
    let mut runner = TestRunner::deterministic();
    let mut met: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..2_000 {
        let tree = arbitrary::run().new_tree(&mut runner);
        let outcomes = match oracle::observe(&tree.expect("a task").current()) {
            Observation::Failed(failure) => vec![failure.code],
            Observation::Ran(run) => {
                let report = run.report.expect("the oracle reports");
                let reasons = report.included.into_iter().map(|included| included.reason);
                let mut met: Vec<String> = reasons.collect();
                met.extend(report.excluded.into_iter().map(|excluded| excluded.reason));
                met.extend(report.shortfalls.first().map(|_| "shortfall".into()));
                met.extend(run.overflow.flatten().map(|_| "overflow".into()));
                met.push("run".into());
                met
            }
            other => panic!("{other:?} is no run"),
        };
        for outcome in outcomes {
            *met.entry(outcome).or_default() += 1;
        }
    }
    assert!(met["run"] > 1_400, "{met:#?}");
    for outcome in [
        "Scored",
        "Pinned",
        "ZeroToken",
        "BudgetExceeded",
        "Deduplicated",
        "NegativeTokens",
        "PinnedOverride",
        "CountCapExceeded",
        "shortfall",
        "overflow",
        "Overflow",
        "PinnedExceedsBudget",
        "InvalidBudget",
        "ScorerConfig",
        "SlicerConfig",
    ] {
        assert!(met.get(outcome) > Some(&10), "{outcome} in {met:#?}");
    }
}
