//! Stage 6: does the merged selection fit, and in what order is it read?

use super::Policy;
use super::ledger::{Cause, Ledger};
use crate::error::{ContractViolation, StrategyRole};
use crate::model::reported;
use crate::slicer::check_distinct_positions;
use crate::{ContextBudget, CupelError, OverflowStrategy};

/// Writes the window into the ledger. `merged` holds the pinned candidates, then the sliced ones
/// by rank. `notify` is told by how many tokens they exceed the limit if that is accepted.
///
/// The limit is the target, or the hard ceiling where a slicer went beyond its budget (BUDGET-11).
pub(super) fn place(
    ledger: &mut Ledger<'_>,
    policy: &Policy,
    merged: &[usize],
    budget: &ContextBudget,
    notify: impl FnOnce(i64),
) -> Result<(), CupelError> {
    let ceiling = budget.max_tokens() - budget.output_reserve();
    let limit = budget.target_tokens().min(ceiling);
    let items = ledger.items();
    let tokens = merged.iter().map(|&candidate| items[candidate].tokens());
    let merged_tokens: i128 = tokens.map(i128::from).sum();
    if merged_tokens <= i128::from(limit) {
        return arrange(ledger, policy, merged);
    }
    match policy.overflow_strategy() {
        OverflowStrategy::Throw => Err(CupelError::Overflow {
            merged_tokens: reported(merged_tokens),
            target_tokens: limit,
        }),
        OverflowStrategy::Truncate => {
            let kept = truncate(ledger, merged, limit);
            arrange(ledger, policy, &kept)
        }
        OverflowStrategy::Proceed => {
            notify(reported(merged_tokens - i128::from(limit)));
            arrange(ledger, policy, merged)
        }
    }
}

/// Keeps pinned items whatever they cost, and the others in order as long as they fit.
fn truncate(ledger: &mut Ledger<'_>, merged: &[usize], limit: i64) -> Vec<usize> {
    let limit = i128::from(limit);
    let mut kept = Vec::with_capacity(merged.len());
    let mut pinned_tokens: i128 = 0;
    let mut other_tokens: i128 = 0;
    for &candidate in merged {
        let item = &ledger.items()[candidate];
        let tokens = i128::from(item.tokens());
        if item.pinned() {
            pinned_tokens += tokens;
            kept.push(candidate);
        } else if pinned_tokens + other_tokens + tokens <= limit {
            other_tokens += tokens;
            kept.push(candidate);
        } else {
            let cause = match ledger.first_pinned {
                Some(pinned) if other_tokens + tokens <= limit => Cause::TruncatedBeside(pinned),
                _ => Cause::Truncated,
            };
            ledger.exclude(candidate, cause);
        }
    }
    ledger.left_by_place = reported(limit - pinned_tokens - other_tokens);
    kept
}

fn arrange(
    ledger: &mut Ledger<'_>,
    policy: &Policy,
    candidates: &[usize],
) -> Result<(), CupelError> {
    let order = policy.placer().arrange(&ledger.scored(candidates))?;
    if order.len() != candidates.len() {
        return Err(CupelError::Contract {
            strategy: StrategyRole::Placer,
            violation: ContractViolation::WrongLength {
                expected: candidates.len(),
                returned: order.len(),
            },
        });
    }
    check_distinct_positions(&order, candidates.len(), StrategyRole::Placer)?;
    ledger.set_window(
        order
            .into_iter()
            .map(|position| candidates[position])
            .collect(),
    );
    Ok(())
}
