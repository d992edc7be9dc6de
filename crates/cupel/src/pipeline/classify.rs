//! Stage 1: what is invalid, what is pinned, what is scored?

use super::ledger::{Cause, Ledger};
use crate::model::reported;
use crate::{ContextBudget, CupelError};

/// The candidates of a run, by what happens to them next; both lists in input order.
pub(super) struct Classes {
    pub(super) pinned: Vec<usize>,
    pub(super) scoreable: Vec<usize>,
    pub(super) pinned_tokens: i64,
}

/// Drops items with a negative token count, pinned or not (CLASSIFY-2), and checks that the
/// pinned items fit the window (CLASSIFY-5). They enter the merge with score 1.0.
pub(super) fn classify(
    ledger: &mut Ledger<'_>,
    budget: &ContextBudget,
) -> Result<Classes, CupelError> {
    let mut pinned = Vec::new();
    let mut scoreable = Vec::new();
    let mut pinned_tokens: i128 = 0;
    for (candidate, item) in ledger.items().iter().enumerate() {
        if item.tokens() < 0 {
            ledger.exclude(candidate, Cause::NegativeTokens);
        } else if item.pinned() {
            ledger.set_score(candidate, 1.0);
            pinned.push(candidate);
            pinned_tokens += i128::from(item.tokens());
            if item.tokens() > 0 {
                ledger.first_pinned.get_or_insert(candidate);
            }
        } else {
            scoreable.push(candidate);
        }
    }
    let available = budget.max_tokens() - budget.output_reserve();
    if pinned_tokens > i128::from(available) {
        return Err(CupelError::PinnedExceedsBudget {
            pinned_tokens: reported(pinned_tokens),
            available,
        });
    }
    Ok(Classes {
        pinned,
        scoreable,
        pinned_tokens: reported(pinned_tokens),
    })
}
