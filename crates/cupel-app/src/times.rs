//! Policies that rank by time, over items without times.

use cupel::{ContextBudget, ContextItem, Policy, total_tokens};

use crate::notice::Notice;

/// Returns the notice for items without any timestamp that do not all fit, if a policy ranks them
/// by time above all.
pub fn missing_times(
    items: &[ContextItem],
    budget: &ContextBudget,
    policy: &Policy,
) -> Option<Notice> {
    let has_times = items.iter().any(|item| item.timestamp().is_some());
    if has_times || total_tokens(items) <= budget.target_tokens() {
        return None;
    }
    no_times(policy)
}

/// Returns the notice for a log without timestamps, if a policy ranks items by time above all.
pub fn no_times(policy: &Policy) -> Option<Notice> {
    policy.scorer().ranks_by_time().then_some(Notice::NoTimes)
}
