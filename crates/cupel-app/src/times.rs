//! Policies that rank by time, over items without times.

use cupel::config::ScorerConfig;
use cupel::{ContextBudget, ContextItem, Policy, total_tokens};

use crate::notice::Notice;

/// Returns the notice for items of which none has a timestamp and not all fit, if a policy ranks them by time
/// above all.
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
    let scorer = policy.scorer().to_config().ok()?;
    ranks_by_time(&scorer).then_some(Notice::NoTimes)
}

/// Returns whether recency is the scorer, or the one with the largest weight.
fn ranks_by_time(scorer: &ScorerConfig) -> bool {
    match scorer {
        ScorerConfig::Recency => true,
        ScorerConfig::Scaled { inner } => ranks_by_time(inner),
        ScorerConfig::Composite { entries } => {
            let heaviest = entries.iter().max_by(|a, b| a.weight.total_cmp(&b.weight));
            heaviest.is_some_and(|entry| ranks_by_time(&entry.scorer))
        }
        _ => false,
    }
}
