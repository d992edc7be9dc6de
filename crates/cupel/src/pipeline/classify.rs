//! Stage 1, Classify: invalid, pinned and scoreable items.

use super::ledger::{Cause, Ledger};
use super::positions::Positions;
use crate::model::saturate;
use crate::{ContextBudget, CupelError};

/// The pinned and the scoreable candidates, in input order.
#[derive(Clone)]
pub(super) struct Classes {
    pub(super) pinned: Vec<usize>,
    pub(super) scoreable: Positions,
    pinned_tokens: i128,
}

/// Classifies the candidates; excludes items with a negative token count, pinned or not (CLASSIFY-2).
pub(super) fn classify(ledger: &mut Ledger<'_>) -> Classes {
    let mut classes = Classes {
        pinned: Vec::new(),
        scoreable: Positions::with_capacity(ledger.items().len()),
        pinned_tokens: 0,
    };
    for (candidate, item) in ledger.items().iter().enumerate() {
        if item.tokens() < 0 {
            ledger.exclude(candidate, Cause::NegativeTokens);
        } else if item.pinned() {
            classes.pinned.push(candidate);
            classes.pinned_tokens += i128::from(item.tokens());
            if item.tokens() > 0 {
                ledger.first_pinned.get_or_insert(candidate);
            }
        } else {
            classes.scoreable.push(candidate);
        }
    }
    classes
}

impl Classes {
    /// Returns the exact tokens of the pinned items.
    pub(super) fn total_pinned_tokens(&self) -> i128 {
        self.pinned_tokens
    }

    /// Returns the tokens of the pinned items, or an error if they do not fit the window (CLASSIFY-5).
    pub(super) fn pinned_tokens(&self, budget: &ContextBudget) -> Result<i64, CupelError> {
        let available = budget.input_limit();
        if self.pinned_tokens <= i128::from(available) {
            return Ok(saturate(self.pinned_tokens));
        }
        Err(CupelError::PinnedExceedsBudget {
            pinned_tokens: saturate(self.pinned_tokens),
            available,
        })
    }
}
