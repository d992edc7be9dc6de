//! This project's library.

use ::cupel as api;

use crate::recipe::Scoring;

#[path = "library.rs"]
mod library;
pub(crate) use library::*;

/// Returns the knapsack without its limit on table cells.
pub(crate) fn knapsack(bucket: i64) -> api::KnapsackSlice {
    let knapsack = api::KnapsackSlice::new(bucket).expect("a positive size");
    knapsack.cell_limit(u64::MAX)
}

/// Decides on every candidate and returns how many are included.
pub(crate) fn decide(
    pipeline: &api::Pipeline,
    items: &[api::ContextItem],
    budget: &api::ContextBudget,
) -> Result<usize, api::CupelError> {
    Ok(pipeline.decide(items, budget)?.window().len())
}

/// Returns [`pipeline`] with or without deduplication.
pub(crate) fn pipeline_with(scoring: Scoring, deduplicates: bool) -> api::Pipeline {
    finished(builder_of_pipeline(scoring).deduplication(deduplicates))
}

/// Returns [`pipeline`] with the u-shaped placer.
pub(crate) fn u_shaped_pipeline(scoring: Scoring) -> api::Pipeline {
    finished(builder_of_pipeline(scoring).placer(api::UShapedPlacer))
}
