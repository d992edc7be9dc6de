//! Stage 6, Place: applies the overflow strategy to the merged selection and orders the window.

use std::borrow::Cow;

use super::Policy;
use super::ledger::{Cause, Ledger};
use super::shortened::Shortened;
use crate::error::{ContractViolation, StrategyRole};
use crate::model::saturate;
use crate::slicer::check_distinct_positions;
use crate::{ContextBudget, CupelError, OverflowStrategy, ScoredRef};

/// The merged candidates after the overflow strategy.
pub(super) struct Merge<'m> {
    pub(super) kept: Cow<'m, [usize]>,
    dropped: Vec<(usize, Cause)>,
    /// The tokens left of the limit after truncation.
    left: i64,
    /// The tokens above the limit, if the strategy accepted them.
    pub(super) tokens_over: Option<i64>,
}

/// Applies the overflow strategy to the merged candidates: the pinned ones, then the sliced ones
/// by rank.
///
/// The limit is the target, or the hard ceiling where a slicer went beyond its budget (BUDGET-11).
pub(super) fn merge<'m>(
    ledger: &Ledger<'_>,
    shortened: &Shortened,
    merged: &'m [usize],
    budget: &ContextBudget,
    strategy: OverflowStrategy,
) -> Result<Merge<'m>, CupelError> {
    let limit = budget.window_limit();
    let items = merged
        .iter()
        .map(|&candidate| shortened.item(ledger.items(), candidate));
    let merged_tokens: i128 = items.map(|item| i128::from(item.tokens())).sum();
    let over = merged_tokens - i128::from(limit);
    let mut merge = Merge {
        kept: merged.into(),
        dropped: Vec::new(),
        left: 0,
        tokens_over: None,
    };
    if over > 0 {
        match strategy {
            OverflowStrategy::Throw => {
                return Err(CupelError::Overflow {
                    merged_tokens: saturate(merged_tokens),
                    target_tokens: limit,
                });
            }
            OverflowStrategy::Truncate => merge.truncate(ledger, shortened, limit),
            OverflowStrategy::Proceed => merge.tokens_over = Some(saturate(over)),
        }
    }
    Ok(merge)
}

impl Merge<'_> {
    /// Keeps the pinned items, and the others in order if they fit.
    fn truncate(&mut self, ledger: &Ledger<'_>, shortened: &Shortened, limit: i64) {
        let limit = i128::from(limit);
        let dropped = &mut self.dropped;
        let mut pinned_tokens: i128 = 0;
        let mut other_tokens: i128 = 0;
        self.kept.to_mut().retain(|&candidate| {
            let item = shortened.item(ledger.items(), candidate);
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
                Cause::TruncatedNextToPinned
            } else {
                Cause::Truncated
            };
            dropped.push((candidate, cause));
            false
        });
        self.left = saturate(limit - pinned_tokens - other_tokens);
    }
}

/// Orders the merged candidates and writes the window into the ledger.
pub(super) fn place(
    ledger: &mut Ledger<'_>,
    policy: &Policy,
    merge: Merge<'_>,
) -> Result<(), CupelError> {
    ledger.left_by_place = merge.left;
    ledger.tokens_over = merge.tokens_over;
    for (candidate, cause) in merge.dropped {
        ledger.exclude(candidate, cause);
    }
    let window = arrange(ledger, &ledger.shortened, policy, &merge.kept)?;
    ledger.set_window(window);
    Ok(())
}

/// Returns the candidates in the placer's order.
pub(super) fn arrange(
    ledger: &Ledger<'_>,
    shortened: &Shortened,
    policy: &Policy,
    candidates: &[usize],
) -> Result<Vec<usize>, CupelError> {
    let scored = |&candidate: &usize| {
        let item = shortened.item(ledger.items(), candidate);
        ScoredRef::new(item, ledger.score(candidate), candidate)
    };
    let scored: Vec<ScoredRef<'_>> = candidates.iter().map(scored).collect();
    let order = policy.placer().arrange(&scored)?;
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
