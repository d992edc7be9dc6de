//! The engine alone, for `bench/overhead.py` (feature `bench`).

use std::time::Instant;

use pyo3::prelude::*;

use crate::item::Items;
use crate::{budget, error, policy};

/// Runs a policy over prebuilt items and returns the nanoseconds of each run.
#[pyfunction]
pub(crate) fn engine_nanoseconds(
    py: Python<'_>,
    items: &Bound<'_, Items>,
    budget: &Bound<'_, PyAny>,
    policy: &Bound<'_, PyAny>,
    runs: usize,
) -> PyResult<Vec<u128>> {
    let (policy, _) = policy::read(policy)?;
    let budget = budget::read(budget)?;
    let items = &items.get().0;
    let times = (0..runs).map(|_| {
        let start = Instant::now();
        let decisions = policy.decide(items, &budget)?;
        drop(decisions);
        Ok(start.elapsed().as_nanos())
    });
    let times: Result<_, _> = times.collect();
    times.map_err(|fault| error::run(py, &fault))
}
