//! The budgets of a sweep.

use std::ops::RangeInclusive;

use crate::model::saturate;
use crate::pipeline::PreparedRun;
use crate::{ContextBudget, CupelError};

/// The budgets of a sweep, and the conversion between a budget and what it leaves to the slicer.
///
/// With a target of 100, a maximum of 120, a reserve of 30 for the answer and pinned items of 15 tokens:
///
/// ```text
/// taken       15 pinned + 30 - (120 - 100) = 25: the gap between both limits holds a part of the reserve
/// target 80   leaves 80 - 25 = 55 to the slicer, less the safety margin
/// ```
///
/// The slicer's changes come as such effective targets; `first_with_effective` finds their budgets.
pub(super) struct Axis<'a> {
    budget: &'a ContextBudget,
    pub(super) from: i64,
    pub(super) to: i64,
    /// The tokens of a target that the slicer does not get.
    taken: i128,
}

impl<'a> Axis<'a> {
    pub(super) fn new(
        budget: &'a ContextBudget,
        targets: &RangeInclusive<i64>,
    ) -> Result<Self, CupelError> {
        let (from, to) = (*targets.start(), *targets.end());
        let gap = budget.max_tokens() - budget.target_tokens();
        if from < 0 || from > to || to.checked_add(gap).is_none_or(|max| max == i64::MAX) {
            return Err(CupelError::InvalidBudget(format!(
                "the swept targets ({from} to {to}) must start at 0 or above, must not be empty, and must stay within 64 bits with the other limit"
            )));
        }
        let reserve_beyond_gap = (budget.output_reserve() - gap).max(0);
        Ok(Self {
            budget,
            from,
            to,
            taken: budget.slot_tokens() + i128::from(reserve_beyond_gap),
        })
    }

    /// Subtracts the tokens of pinned items from every budget.
    pub(super) fn with_pinned(mut self, pinned_tokens: i128) -> Self {
        self.taken += pinned_tokens;
        self
    }

    /// Returns the budget with this target.
    ///
    /// # Errors
    ///
    /// [`CupelError::InvalidBudget`] if the limits do not allow the reserve.
    pub(super) fn at(&self, target: i64) -> Result<ContextBudget, CupelError> {
        let gap = self.budget.max_tokens() - self.budget.target_tokens();
        self.budget.with_limits(target + gap, target)
    }

    /// Returns the effective target of the budget with this target.
    pub(super) fn effective(&self, target: i64) -> i64 {
        let left = (i128::from(target) - self.taken).max(0);
        self.budget.less_margin(saturate(left))
    }

    pub(super) fn effective_targets(&self) -> RangeInclusive<i64> {
        self.effective(self.from)..=self.effective(self.to)
    }

    /// Returns the first budget whose effective target is at least `wanted`; one past the last budget
    /// if there is none.
    #[inline]
    pub(super) fn first_with_effective(&self, wanted: i64) -> i64 {
        if wanted <= 0 {
            self.from
        } else if self.budget.estimation_safety_margin_percent() > 0.0 {
            // The margin rounds, so that several budgets have one effective target.
            self.first(|target| self.effective(target) >= wanted)
        } else {
            let enough = saturate(i128::from(wanted) + self.taken);
            enough.clamp(self.from, self.to + 1)
        }
    }

    /// Returns the first budget for which `holds`, by bisection: it holds for all larger ones too. One
    /// past the last budget if there is none.
    pub(super) fn first(&self, holds: impl Fn(i64) -> bool) -> i64 {
        let (mut low, mut high) = (self.from, self.to + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// Returns how the run with this target fails before the slicer chooses anything. Such a budget
    /// leaves nothing to the slicer.
    pub(super) fn failure(&self, prepared: &PreparedRun<'_>, target: i64) -> Option<CupelError> {
        let budget = self.at(target);
        budget
            .and_then(|budget| prepared.check_pinned(&budget))
            .err()
    }

    /// Returns the first budget that is valid and has room for the pinned items; one past the last
    /// budget if there is none.
    pub(super) fn first_valid(&self, prepared: &PreparedRun<'_>) -> i64 {
        self.first(|target| self.failure(prepared, target).is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ContextKind;

    /// Returns budgets with every combination of limits, reserve, slots and margin.
    fn budgets() -> Vec<ContextBudget> {
        let mut budgets = Vec::new();
        for (max_tokens, slot) in [(30, 0), (36, 0), (36, 4)] {
            for reserve in [0, 9, 15] {
                for margin in [0.0, 5.0, 33.0] {
                    let budget = ContextBudget::builder(max_tokens)
                        .target_tokens(20)
                        .output_reserve(reserve)
                        .reserved_slot(ContextKind::memory(), slot)
                        .safety_margin_percent(margin);
                    budgets.push(budget.build().unwrap());
                }
            }
        }
        budgets
    }

    #[test]
    fn the_first_budget_with_an_effective_target_is_that_of_a_linear_search() {
        for budget in budgets() {
            for (pinned, from, to) in [(0, 0, 40), (7, 0, 40), (7, 12, 30), (100, 0, 40)] {
                let axis = Axis::new(&budget, &(from..=to)).unwrap();
                let axis = axis.with_pinned(pinned);
                for wanted in -1..=42 {
                    let has_it = |target: &i64| axis.effective(*target) >= wanted;
                    let expected = (from..=to).find(has_it).unwrap_or(to + 1);
                    let first = axis.first_with_effective(wanted);
                    assert_eq!(first, expected, "{wanted} of {budget:?}");
                }
            }
        }
    }

    #[test]
    fn the_effective_target_is_that_of_the_budget_with_the_target() {
        for budget in budgets() {
            let axis = Axis::new(&budget, &(0..=40)).unwrap().with_pinned(7);
            for target in 0..=40 {
                if let Ok(swept) = axis.at(target) {
                    let expected = swept.effective(7).target_tokens();
                    assert_eq!(axis.effective(target), expected, "{target} of {budget:?}");
                }
            }
        }
    }
}
