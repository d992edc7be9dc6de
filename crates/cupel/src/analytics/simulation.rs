//! Questions about other budgets. One scoring pass serves all of them.

use crate::pipeline::PreparedRun;
use crate::{ContextBudget, ContextItem, CupelError, Pipeline};

impl Pipeline {
    /// The items that a budget smaller by `slack_tokens` would lose, in the order of the window.
    ///
    /// The smaller budget has both limits lowered and keeps reserve, slots and margin. Slicers need
    /// not keep what they kept when they get more, so this is the difference between two runs, not a
    /// claim about the budgets in between.
    ///
    /// # Errors
    ///
    /// [`CupelError::PipelineConfig`] if percentage shares take part in the selection, here or in a
    /// wrapped slicer; [`CupelError::InvalidBudget`] for a negative slack or one that leaves no
    /// valid budget; whatever one of the two runs fails with.
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
    /// let lost = pipeline.marginal_items(&items, &budget, 10)?;
    /// assert_eq!(lost[0].content(), "large");
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn marginal_items(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
        slack_tokens: i64,
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
        let prepared = PreparedRun::new(self.policy(), items)?;
        let window = prepared.window(budget)?;
        let reduced = budget.with_limits(
            budget.max_tokens().saturating_sub(slack_tokens),
            budget.target_tokens().saturating_sub(slack_tokens),
        )?;
        let mut is_kept = vec![false; items.len()];
        for candidate in prepared.select(&reduced)? {
            is_kept[candidate] = true;
        }
        let lost = window.into_iter().filter(|&candidate| !is_kept[candidate]);
        Ok(lost.map(|candidate| items[candidate].clone()).collect())
    }

    /// [`marginal_items`](Self::marginal_items) with the slack as an `i32`.
    ///
    /// # Errors
    ///
    /// As [`marginal_items`](Self::marginal_items).
    pub fn get_marginal_items(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
        slack_tokens: i32,
    ) -> Result<Vec<ContextItem>, CupelError> {
        self.marginal_items(items, budget, slack_tokens.into())
    }

    /// A budget, up to `search_ceiling`, at which `target` is selected, by bisection.
    ///
    /// Both limits of a probe are equal; reserve, slots and margin are those of `budget`. A probe
    /// at which there is no valid budget, the pinned items do not fit or the run overflows counts as
    /// not selecting the target.
    ///
    /// Slicers need not select more with every larger budget, so a smaller budget that also selects
    /// the target may exist: [`sweep`](Self::sweep) knows them all.
    ///
    /// # Errors
    ///
    /// [`CupelError::PipelineConfig`] if shares or counts per kind take part in the selection, here
    /// or in a wrapped slicer; [`CupelError::InvalidBudget`] if `target` is not among `items` or the
    /// ceiling is below its tokens; any other error of a probe.
    ///
    /// ```
    /// use cupel::*;
    ///
    /// let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);
    /// let items = [
    ///     ContextItem::builder("first", 30).future_relevance_hint(0.9).build()?,
    ///     ContextItem::builder("second", 50).future_relevance_hint(0.5).build()?,
    /// ];
    /// let budget = ContextBudget::builder(100).output_reserve(10).build()?;
    /// let least = pipeline.min_budget_for(&items, &budget, &items[1], 200)?;
    /// assert_eq!(least, Some(90)); // 30 + 50, and the reserve
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn min_budget_for(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
        target: &ContextItem,
        search_ceiling: i64,
    ) -> Result<Option<i64>, CupelError> {
        self.bisect(items, target, search_ceiling, |tokens| {
            budget.with_limits(tokens, tokens).ok()
        })
    }

    /// A budget, up to `search_ceiling`, at which `target` is selected, by bisection.
    ///
    /// As [`min_budget_for`](Self::min_budget_for), except that probes have no reserve, slots or
    /// margin: the `budget` takes no part.
    ///
    /// # Errors
    ///
    /// As [`min_budget_for`](Self::min_budget_for).
    pub fn find_min_budget_for(
        &self,
        items: &[ContextItem],
        _budget: &ContextBudget,
        target: &ContextItem,
        search_ceiling: i32,
    ) -> Result<Option<i32>, CupelError> {
        let found = self.bisect(items, target, search_ceiling.into(), |tokens| {
            ContextBudget::with_target(tokens, tokens).ok()
        })?;
        // An answer is at most the ceiling.
        Ok(found.and_then(|tokens| i32::try_from(tokens).ok()))
    }

    fn bisect(
        &self,
        items: &[ContextItem],
        target: &ContextItem,
        search_ceiling: i64,
        budget: impl Fn(i64) -> Option<ContextBudget>,
    ) -> Result<Option<i64>, CupelError> {
        let slicer = self.policy().slicer();
        if slicer.is_quota() || slicer.is_count_quota() {
            return Err(CupelError::PipelineConfig(
                "FindMinBudgetFor requires monotonic item inclusion. QuotaSlice and CountQuotaSlice produce non-monotonic inclusion as budget changes shift allocations. Use a GreedySlice or KnapsackSlice inner slicer for budget simulation."
                    .to_owned(),
            ));
        }
        let wanted = position(items, target)?;
        if search_ceiling < target.tokens() {
            return Err(CupelError::InvalidBudget(format!(
                "search_ceiling ({search_ceiling}) must be >= target.tokens() ({})",
                target.tokens()
            )));
        }
        if target.tokens() < 0 {
            return Ok(None);
        }
        let prepared = PreparedRun::new(self.policy(), items)?;
        let is_selected = prepared.selects(wanted);
        let selects = |tokens: i64| {
            let Some(budget) = budget(tokens) else {
                return Ok(false);
            };
            match is_selected(&budget) {
                Err(CupelError::PinnedExceedsBudget { .. } | CupelError::Overflow { .. }) => {
                    Ok(false)
                }
                selected => selected,
            }
        };
        let (mut low, mut high) = (target.tokens(), search_ceiling);
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
                return Ok(Some(tokens));
            }
        }
        Ok(None)
    }
}

/// The position of `target`: this very item, else an equal one.
pub(super) fn position(items: &[ContextItem], target: &ContextItem) -> Result<usize, CupelError> {
    let same = items.iter().position(|item| item.is_same(target));
    same.or_else(|| items.iter().position(|item| item == target))
        .ok_or_else(|| {
            CupelError::InvalidBudget("target item must be an element of items".to_owned())
        })
}
