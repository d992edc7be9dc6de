//! Compares the library with the oracle on random input: whole answers, bit for bit.
//!
//! `CUPEL_CASES` sets the number of cases of each property.

use std::cell::RefCell;
use std::collections::BTreeMap;

use cupel_conformance::Adapter;
use cupel_conformance::model::{Observation, Task};
use cupel_conformance::testing::cases;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

use crate::adapter::Surface;
use crate::arbitrary;
use crate::comparison::compare;
use crate::oracle;

/// Surfaces that answer tasks of single strategies.
const STRATEGIES: &[&str] = &["plain", "batch", "provided methods", "document"];

/// Surfaces that answer whole runs.
const RUNS: &[&str] = &[
    "plain",
    "batch",
    "traced (stage)",
    "traced (item)",
    "completion hook",
    "decisions",
    "provided methods",
    "json",
    "document",
];

/// Compares every surface with the oracle. Exactly `surfaces` answer, each of them every task.
fn check(default_cases: u32, surfaces: &[&str], tasks: impl Strategy<Value = Task>) {
    let config = Config {
        cases: cases(default_cases),
        failure_persistence: None,
        ..Config::default()
    };
    let cases = config.cases;
    let answers = RefCell::new(BTreeMap::new());
    TestRunner::new(config)
        .run(&tasks, |task| {
            let expected = oracle::observe(&task);
            for surface in Surface::ALL {
                let answered = compare(*surface, &task, &expected).map_err(TestCaseError::fail)?;
                *answers.borrow_mut().entry(surface.name()).or_insert(0) += u32::from(answered);
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    let answers = answers.into_inner();
    for name in Surface::ALL.iter().map(Surface::name) {
        let answered = answers.get(name).copied().unwrap_or(0);
        let expected = if surfaces.contains(&name) { cases } else { 0 };
        assert_eq!(answered, expected, "{name}\n{answers:#?}");
    }
}

// proves: GEN-1, GEN-7, GEN-11, SLICE-11, PLACE-2, EXCL-1, EXCL-12, REPORT-6, REPORT-13, R034
#[test]
fn whole_runs_equal_the_oracle() {
    check(4_000, RUNS, arbitrary::run());
}

// proves: BUDGET-11, CLASSIFY-11, R008
#[test]
fn whole_runs_at_the_ends_of_the_number_range_equal_the_oracle() {
    check(2_000, RUNS, arbitrary::extreme_run());
}

// proves: SCORER-1, COMP-8, SCALED-7, GEN-3, GEN-4
#[test]
fn scores_equal_the_oracle() {
    check(3_000, STRATEGIES, arbitrary::score());
}

// proves: SLICER-1, GREEDY-15, SIM-2
#[test]
fn selections_equal_the_oracle() {
    check(4_000, STRATEGIES, arbitrary::slice());
}

// proves: KNAP-9, KNAP-10, KNAP-11, KNAP-12
#[test]
fn knapsacks_full_of_ties_equal_the_oracle() {
    check(20_000, STRATEGIES, arbitrary::tied_knapsack());
}

// proves: PLACER-1, PLACER-2
#[test]
fn orders_equal_the_oracle() {
    check(2_000, STRATEGIES, arbitrary::place());
}

/// Guards the properties above against a generator that only makes runs that fail.
#[test]
fn random_runs_mostly_succeed_and_meet_every_outcome() {
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
            other => panic!("expected a run, got {other:?}"),
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
