//! Budget simulation: runs at other budgets that share one scoring pass.

use crate::pipeline::PreparedRun;
use crate::{ContextBudget, ContextItem, ContextView, CupelError, Pipeline};

impl Pipeline {
    /// Returns the items that a budget smaller by `slack_tokens` would lose, in the order of the
    /// window. An item that the smaller budget keeps as a view is not lost.
    ///
    /// The smaller budget has both limits lowered and keeps reserve, slots and margin. A slicer may
    /// drop an item at a larger budget, so the result is the difference between two runs. It says
    /// nothing about the budgets in between.
    ///
    /// # Errors
    ///
    /// [`CupelError::PipelineConfig`] if the slicer, or one that it wraps, is a percentage quota; use
    /// [`sweep`](Self::sweep), which supports quotas. [`CupelError::InvalidBudget`] if
    /// `slack_tokens` is negative or leaves no valid budget. Any error of the two runs.
    ///
    /// ```
    /// use cupel::*;
    ///
    /// let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);
    /// let items = [
    ///     ContextItem::builder("small", 20).future_relevance_hint(0.9).build()?,
    ///     ContextItem::builder("large", 80).future_relevance_hint(0.5).build()?,
    /// ];
    /// let budget = ContextBudget::with_target(100, 100)?;
    /// let lost = pipeline.get_marginal_items(&items, &budget, 10)?;
    /// assert_eq!(lost[0].content(), "large");
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn get_marginal_items(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
        slack_tokens: i32,
    ) -> Result<Vec<ContextItem>, CupelError> {
        if self.slicer().is_quota() {
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
        let slack_tokens = i64::from(slack_tokens);
        let prepared = PreparedRun::new(self, items)?;
        let window = prepared.window(budget)?;
        let reduced = budget.with_limits(
            budget.max_tokens().saturating_sub(slack_tokens),
            budget.target_tokens().saturating_sub(slack_tokens),
        )?;
        let mut is_kept = vec![false; items.len()];
        for candidate in prepared.select(&reduced)?.kept {
            is_kept[candidate] = true;
        }
        let lost = window.kept.iter().filter(|&&candidate| !is_kept[candidate]);
        let lost = lost.map(|&candidate| window.shortened.item(items, candidate).clone());
        Ok(lost.collect())
    }

    /// Returns a budget, up to `search_ceiling`, at which `target` is selected, by binary search.
    ///
    /// Ignores `budget`, as 1.2 does: probes have no reserve, slots or margin. At the returned budget
    /// `target` may therefore not be selected once a reserve is set. A slicer may also drop an item at
    /// a larger budget, so a smaller budget that selects the target may exist.
    /// [`sweep`](Self::sweep) has neither limit.
    ///
    /// A probe counts as not selecting the target if the pinned items do not fit or the run overflows.
    ///
    /// # Errors
    ///
    /// [`CupelError::PipelineConfig`] if the slicer, or one that it wraps, is a percentage or count
    /// quota; use [`sweep`](Self::sweep), which supports quotas. [`CupelError::InvalidBudget`] if
    /// `target` is not in `items` or `search_ceiling` is below its tokens. Any other error of a probe.
    pub fn find_min_budget_for(
        &self,
        items: &[ContextItem],
        _budget: &ContextBudget,
        target: &ContextItem,
        search_ceiling: i32,
    ) -> Result<Option<i32>, CupelError> {
        let slicer = self.slicer();
        if slicer.is_quota() || slicer.is_count_quota() {
            return Err(CupelError::PipelineConfig(
                "FindMinBudgetFor requires monotonic item inclusion. QuotaSlice and CountQuotaSlice produce non-monotonic inclusion as budget changes shift allocations. Use a GreedySlice or KnapsackSlice inner slicer for budget simulation."
                    .to_owned(),
            ));
        }
        let wanted = position(items, target)?;
        let views = target.views().iter().map(ContextView::tokens);
        let least_tokens = views.min().unwrap_or(target.tokens());
        let ceiling = i64::from(search_ceiling);
        if ceiling < least_tokens {
            return Err(CupelError::InvalidBudget(format!(
                "search_ceiling ({search_ceiling}) must be >= target.tokens() ({least_tokens})"
            )));
        }
        if target.tokens() < 0 {
            return Ok(None);
        }
        let prepared = PreparedRun::new(self, items)?;
        let selects = |tokens: i64| -> Result<bool, CupelError> {
            // An item with a negative token count does not get here, so the budget is valid.
            let budget = ContextBudget::with_target(tokens, tokens)?;
            match prepared.select(&budget) {
                Err(
                    CupelError::PinnedExceedsBudget { .. }
                    | CupelError::MandatoryExceedsBudget { .. }
                    | CupelError::Overflow { .. },
                ) => Ok(false),
                selected => Ok(selected?.kept.contains(&wanted)),
            }
        };
        let (mut low, mut high) = (least_tokens, ceiling);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if selects(middle)? {
                high = middle;
            } else {
                low = middle;
            }
        }
        for tokens in [low, high] {
            if selects(tokens)? {
                // At most the ceiling, so the conversion is lossless.
                return Ok(i32::try_from(tokens).ok());
            }
        }
        Ok(None)
    }
}

/// Returns the position of `target`: the identical item, otherwise the first equal one.
pub(super) fn position(items: &[ContextItem], target: &ContextItem) -> Result<usize, CupelError> {
    let same = items.iter().position(|item| item.is_same(target));
    same.or_else(|| items.iter().position(|item| item == target))
        .ok_or_else(|| {
            CupelError::InvalidBudget("target item must be an element of items".to_owned())
        })
}
