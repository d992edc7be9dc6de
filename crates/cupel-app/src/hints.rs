//! Hints outside of the range that a scorer reads.

use cupel::{ContextItem, Policy};

use crate::notice::Notice;

/// Returns the notice for hints outside of 0 to 1, if the policy reads hints. The scorer clamps them, so that the
/// best of several scores above 1, such as those of a reranker, is no longer the best.
pub fn hints_out_of_range(items: &[ContextItem], policy: &Policy) -> Option<Notice> {
    let hints = items.iter().map(ContextItem::future_relevance_hint);
    let mut outside = hints
        .enumerate()
        .filter_map(|(index, hint)| Some((index, hint?)))
        .filter(|(_, hint)| !(0.0..=1.0).contains(hint));
    let (index, hint) = outside.next()?;
    let count = 1 + outside.count();
    let notice = Notice::HintsOutOfRange { count, index, hint };
    policy.scorer().reads_hints().then_some(notice)
}
