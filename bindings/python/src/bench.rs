//! The engine alone, for `bench/overhead.py` (feature `bench`).

use std::time::Instant;

use cupel::{ContextItem, CupelError};
use pyo3::prelude::*;

use crate::item::Items;
use crate::{budget, error, policy};

/// Runs a policy over prebuilt items and returns the nanoseconds of each run. With `build` a run starts with
/// building the items from their fields, as a caller in Rust does.
#[pyfunction]
#[pyo3(signature = (items, budget, policy, runs, *, build=false))]
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
pub(crate) fn engine_nanoseconds(
    items: &Bound<'_, Items>,
    budget: &Bound<'_, PyAny>,
    policy: &Bound<'_, PyAny>,
    runs: usize,
    build: bool,
) -> PyResult<Vec<u128>> {
    let policy = policy::read(policy)?.policy;
    let budget = budget::read(budget)?;
    let items = &items.get().0;
    let times = (0..runs).map(|_| {
        let start = Instant::now();
        if build {
            let items = items.iter().map(rebuild).collect::<Result<Vec<_>, _>>()?;
            drop(policy.decide(&items, &budget)?);
            drop(items);
        } else {
            drop(policy.decide(items, &budget)?);
        }
        Ok(start.elapsed().as_nanos())
    });
    let times: Result<_, CupelError> = times.collect();
    times.map_err(error::raise)
}

/// Builds an item from the fields of another, without sharing its text.
fn rebuild(item: &ContextItem) -> Result<ContextItem, CupelError> {
    let mut builder = ContextItem::builder(item.content(), item.tokens())
        .kind(item.kind().clone())
        .source(item.source().clone())
        .pinned(item.pinned());
    if let Some(time) = item.timestamp() {
        builder = builder.timestamp(time);
    }
    if let Some(hint) = item.future_relevance_hint() {
        builder = builder.future_relevance_hint(hint);
    }
    builder.build()
}
