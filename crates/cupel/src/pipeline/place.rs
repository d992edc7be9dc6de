//! Stage 6: does the merged selection fit, and in what order is it read?

use std::borrow::Cow;

use super::Policy;
use super::ledger::{Cause, Ledger};
use crate::error::{ContractViolation, StrategyRole};
use crate::model::reported;
use crate::slicer::check_distinct_positions;
use crate::{ContextBudget, CupelError, OverflowStrategy};

/// What becomes of the merged candidates before they are ordered.
pub(super) struct Merge<'m> {
    pub(super) kept: Cow<'m, [usize]>,
    dropped: Vec<(usize, Cause)>,
    /// The tokens left of the limit.
    left: i64,
    /// By how many tokens the limit is exceeded, if that was accepted.
    over: Option<i64>,
}

/// Applies the overflow strategy to the merged candidates: the pinned ones, then the sliced ones
/// by rank.
///
/// The limit is the target, or the hard ceiling where a slicer went beyond its budget (BUDGET-11).
pub(super) fn merge<'m>(
    ledger: &Ledger<'_>,
    merged: &'m [usize],
    budget: &ContextBudget,
    strategy: OverflowStrategy,
) -> Result<Merge<'m>, CupelError> {
    let limit = budget.window_limit();
    let tokens = merged.iter().map(|&index| ledger.items()[index].tokens());
    let merged_tokens: i128 = tokens.map(i128::from).sum();
    let over = merged_tokens - i128::from(limit);
    let mut merge = Merge {
        kept: merged.into(),
        dropped: Vec::new(),
        left: reported(-over),
        over: None,
    };
    if over > 0 {
        match strategy {
            OverflowStrategy::Throw => {
                return Err(CupelError::Overflow {
                    merged_tokens: reported(merged_tokens),
                    target_tokens: limit,
                });
            }
            OverflowStrategy::Truncate => merge.truncate(ledger, limit),
            OverflowStrategy::Proceed => merge.over = Some(reported(over)),
        }
    }
    Ok(merge)
}

impl Merge<'_> {
    /// Keeps pinned items whatever they cost, and the others in order as long as they fit.
    fn truncate(&mut self, ledger: &Ledger<'_>, limit: i64) {
        let limit = i128::from(limit);
        let dropped = &mut self.dropped;
        let mut pinned_tokens: i128 = 0;
        let mut other_tokens: i128 = 0;
        self.kept.to_mut().retain(|&candidate| {
            let item = &ledger.items()[candidate];
            let tokens = i128::from(item.tokens());
            if item.pinned() {
                pinned_tokens += tokens;
                return true;
            }
            if pinned_tokens + other_tokens + tokens <= limit {
                other_tokens += tokens;
                return true;
            }
            let fits_alone = other_tokens + tokens <= limit;
            let cause = if ledger.first_pinned.is_some() && fits_alone {
                Cause::TruncatedBesidePinned
            } else {
                Cause::Truncated
            };
            dropped.push((candidate, cause));
            false
        });
        self.left = reported(limit - pinned_tokens - other_tokens);
    }
}

/// Writes the window into the ledger. `notify` is told of an overflow that is accepted.
pub(super) fn place(
    ledger: &mut Ledger<'_>,
    policy: &Policy,
    merged: &[usize],
    budget: &ContextBudget,
    notify: impl FnOnce(i64),
) -> Result<(), CupelError> {
    let merge = merge(ledger, merged, budget, policy.overflow_strategy())?;
    if let Some(over) = merge.over {
        notify(over);
    }
    ledger.left_by_place = merge.left;
    for (candidate, cause) in merge.dropped {
        ledger.exclude(candidate, cause);
    }
    let window = arrange(ledger, policy, &merge.kept)?;
    ledger.set_window(window);
    Ok(())
}

/// The window: the placer's order of the candidates.
pub(super) fn arrange(
    ledger: &Ledger<'_>,
    policy: &Policy,
    candidates: &[usize],
) -> Result<Vec<usize>, CupelError> {
    let order = policy
        .placer()
        .arrange(&ledger.scored(candidates.iter().copied()))?;
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
    let window = order.into_iter().map(|position| candidates[position]);
    Ok(window.collect())
}
