//! The published crate, as a black box.

use ::cupel_peer as api;

#[path = "library.rs"]
#[allow(clippy::duplicate_mod, reason = "the same code for both libraries")]
mod library;
pub(crate) use library::*;

/// Decides on every candidate; in this library only the report does.
pub(crate) fn decide(
    pipeline: &api::Pipeline,
    items: &[api::ContextItem],
    budget: &api::ContextBudget,
) -> Result<usize, api::CupelError> {
    Ok(pipeline.dry_run(items, budget)?.included.len())
}
