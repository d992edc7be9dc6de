//! [`DensitySlice`](cupel::DensitySlice) with exponents 0 and 1 answers as `RankSlice` and `GreedySlice`.

use cupel_conformance::model::{Document, Task};
use cupel_conformance::suite;
use cupel_conformance::testing::cases;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use crate::adapter::Surface;
use crate::arbitrary;
use crate::comparison::compare;
use crate::oracle;

/// Replaces the innermost slicer by its equal. Returns whether it has one.
fn replace(slicer: &mut Document) -> bool {
    let exponent = match slicer["type"].as_str() {
        Some("greedy") => 1.0,
        Some("rank") => 0.0,
        _ => return slicer.get_mut("inner").is_some_and(replace),
    };
    *slicer = json!({ "type": "density", "exponent": exponent });
    true
}

/// Compares every surface, asked with the equal slicer, with the oracle. Returns whether there is one.
fn check(task: &Task) -> Result<bool, String> {
    let mut replaced = task.clone();
    let has_equal = match &mut replaced {
        Task::Slice { slicer, .. } => replace(slicer),
        Task::Run { policy, .. } => replace(&mut policy["slicer"]),
        Task::Score { .. } | Task::Place { .. } => false,
    };
    if has_equal {
        let expected = oracle::observe(task);
        for surface in Surface::ALL {
            compare(*surface, &replaced, &expected)?;
        }
    }
    Ok(has_equal)
}

// proves: GREEDY-15
#[test]
fn every_vector_of_the_greedy_and_the_rank_slicer_passes() {
    let vectors = suite().unwrap_or_else(|errors| panic!("{errors}"));
    let mut checked = 0;
    for vector in &vectors {
        let has_equal =
            check(&vector.task).unwrap_or_else(|error| panic!("{}: {error}", vector.path));
        checked += usize::from(has_equal);
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn random_selections_and_runs_of_the_greedy_and_the_rank_slicer_are_equal() {
    let check = |tasks: BoxedStrategy<Task>| {
        let config = Config {
            cases: cases(2_000),
            failure_persistence: None,
            ..Config::default()
        };
        TestRunner::new(config)
            .run(&tasks, |task| {
                check(&task).map_err(TestCaseError::fail)?;
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{error}"));
    };
    check(arbitrary::slice().boxed());
    check(arbitrary::run().boxed());
}
