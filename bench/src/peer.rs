//! The published crate, as a black box.

use ::cupel_peer as api;

#[path = "library.rs"]
#[allow(clippy::duplicate_mod, reason = "the same lines drive both libraries")]
mod library;
pub(crate) use library::*;

/// As ours; what becomes of every candidate is told by its report alone.
pub(crate) fn decide(
    pipeline: &api::Pipeline,
    items: &[api::ContextItem],
    budget: &api::ContextBudget,
) -> Result<usize, api::CupelError> {
    Ok(pipeline.dry_run(items, budget)?.included.len())
}
