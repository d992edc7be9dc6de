//! Questions about other budgets, answered by dry runs.

use crate::{ContextBudget, ContextItem, CupelError, Pipeline};

impl Pipeline {
    /// The items that a budget smaller by `slack_tokens` would lose, in the order of the window.
    ///
    /// The smaller budget has both limits lowered and keeps reserve, slots and margin.
    ///
    /// # Errors
    ///
    /// [`CupelError::PipelineConfig`] if percentage shares take part in the selection, here or in a
    /// wrapped slicer; [`CupelError::InvalidBudget`] for a negative slack or one that
    /// leaves no valid budget; whatever one of the two runs fails with.
    pub fn get_marginal_items(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
        slack_tokens: i32,
    ) -> Result<Vec<ContextItem>, CupelError> {
        if self.policy().slicer().is_quota() {
            return Err(CupelError::PipelineConfig(
                "GetMarginalItems requires monotonic item inclusion. QuotaSlice produces non-monotonic inclusion as budget changes shift percentage allocations."
                    .to_owned(),
            ));
        }
        if slack_tokens < 0 {
            return Err(CupelError::InvalidBudget(format!(
                "slack_tokens ({slack_tokens}) must be >= 0"
            )));
        }
        if slack_tokens == 0 {
            return Ok(Vec::new());
        }
        let slack = i64::from(slack_tokens);
        let full = self.run_indices(items, budget)?;
        let reduced_budget = ContextBudget::new(
            budget.max_tokens() - slack,
            budget.target_tokens() - slack,
            budget.output_reserve(),
            budget.reserved_slots().clone(),
            budget.estimation_safety_margin_percent(),
        )?;
        let mut is_kept = vec![false; items.len()];
        for candidate in self.run_indices(items, &reduced_budget)? {
            is_kept[candidate] = true;
        }
        let lost = full.into_iter().filter(|&candidate| !is_kept[candidate]);
        Ok(lost.map(|candidate| items[candidate].clone()).collect())
    }

    /// A budget, up to `search_ceiling`, at which `target` is selected.
    ///
    /// The answer is found by bisection between the target's own tokens and the ceiling. No
    /// slicer selects more with every larger budget, so a smaller budget that also selects the
    /// target may exist. Probes use a budget whose two limits are equal and have no reserve;
    /// `budget` takes no part. A probe at which the run overflows or the pinned items do not fit
    /// counts as not selecting the target.
    ///
    /// # Errors
    ///
    /// [`CupelError::PipelineConfig`] if shares or counts per kind take part in the selection, here or
    /// in a wrapped slicer; [`CupelError::InvalidBudget`] if `target` is not among `items` or the
    /// ceiling is below its tokens; any other error of a probe.
    pub fn find_min_budget_for(
        &self,
        items: &[ContextItem],
        _budget: &ContextBudget,
        target: &ContextItem,
        search_ceiling: i32,
    ) -> Result<Option<i32>, CupelError> {
        let slicer = self.policy().slicer();
        if slicer.is_quota() || slicer.is_count_quota() {
            return Err(CupelError::PipelineConfig(
                "FindMinBudgetFor requires monotonic item inclusion. QuotaSlice and CountQuotaSlice produce non-monotonic inclusion as budget changes shift allocations. Use a GreedySlice or KnapsackSlice inner slicer for budget simulation."
                    .to_owned(),
            ));
        }
        let same = items.iter().position(|item| item.is_same(target));
        let equal = || items.iter().position(|item| item == target);
        let Some(wanted) = same.or_else(equal) else {
            return Err(CupelError::InvalidBudget(
                "target item must be an element of items".to_owned(),
            ));
        };
        if i64::from(search_ceiling) < target.tokens() {
            return Err(CupelError::InvalidBudget(format!(
                "search_ceiling ({search_ceiling}) must be >= target.tokens() ({})",
                target.tokens()
            )));
        }
        if target.tokens() < 0 {
            return Ok(None);
        }
        let selects = |tokens: i32| {
            let probe = ContextBudget::with_target(tokens.into(), tokens.into())?;
            match self.run_indices(items, &probe) {
                Ok(window) => Ok(window.contains(&wanted)),
                Err(CupelError::PinnedExceedsBudget { .. } | CupelError::Overflow { .. }) => {
                    Ok(false)
                }
                Err(error) => Err(error),
            }
        };
        // The ceiling is an i32 and at least the target's tokens.
        let mut low = i32::try_from(target.tokens()).unwrap_or(i32::MAX);
        let mut high = search_ceiling;
        let lowest = low;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if selects(middle)? {
                high = middle;
            } else {
                low = middle;
            }
        }
        for candidate in [lowest, high] {
            if selects(candidate)? {
                return Ok(Some(candidate));
            }
        }
        Ok(None)
    }
}
