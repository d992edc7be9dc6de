//! The least budgets at which candidates are selected.

use std::ops::ControlFlow;

use super::axis::Axis;
use super::builder::SweepBuilder;
use super::{Observer, SweepProgress};
use crate::pipeline::{Choice, PreparedRun};
use crate::slicer::{SweepVisitor, ViewChange};
use crate::{ContextBudget, ContextItem, CupelError, Pipeline};

/// The least budget of every candidate; see [`Pipeline::min_budgets`].
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MinBudgets {
    /// Whether no smaller budgets select the candidates. If not, budgets were sampled.
    pub exact: bool,
    /// The least `target_tokens` at which each candidate is selected, by position; `None` if there is
    /// none up to the ceiling.
    pub budgets: Vec<Option<i64>>,
    /// The least `target_tokens` at which each candidate is selected in full. Greater than the one in
    /// `budgets` if the slicer keeps the candidate as a view before.
    pub in_full: Vec<Option<i64>>,
}

impl Pipeline {
    /// Finds the least budget from 0 to `ceiling` at which each candidate is in the window.
    ///
    /// The answers are those of [`sweep`](Self::sweep) without its steps, which may be many:
    /// [`GreedySlice`](crate::GreedySlice), [`RankSlice`](crate::RankSlice) and
    /// [`DensitySlice`](crate::DensitySlice), and groups through them, need little more than a sort for all candidates.
    ///
    /// # Errors
    ///
    /// As [`sweep`](Self::sweep).
    ///
    /// ```
    /// use cupel::*;
    ///
    /// let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);
    /// let items = [
    ///     ContextItem::builder("dense", 10).future_relevance_hint(1.0).build()?,
    ///     ContextItem::builder("filler", 5).future_relevance_hint(0.4).build()?,
    ///     ContextItem::builder("long", 90).future_relevance_hint(0.4).build()?,
    /// ];
    /// let least = pipeline.min_budgets(&items, &ContextBudget::with_target(20, 20)?, 100)?;
    /// assert_eq!(least.budgets, [Some(10), Some(5), None]);
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn min_budgets(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
        ceiling: i64,
    ) -> Result<MinBudgets, CupelError> {
        let samples = self.sweep_samples(items.len());
        self.min_budgets_observed(items, budget, ceiling, samples, |_| {
            ControlFlow::Continue(())
        })
    }

    /// Finds budgets as [`min_budgets`](Self::min_budgets), with a given number of budgets to try one by
    /// one, and tells `observer` of the progress, as [`sweep_observed`](Self::sweep_observed) does. If it stops the search, budgets above the one
    /// that was reached are missing.
    ///
    /// # Errors
    ///
    /// As [`sweep`](Self::sweep).
    pub fn min_budgets_observed(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
        ceiling: i64,
        samples: usize,
        mut observer: impl FnMut(SweepProgress) -> ControlFlow<()>,
    ) -> Result<MinBudgets, CupelError> {
        let axis = Axis::new(budget, &(0..=ceiling))?;
        let prepared = PreparedRun::new(self, items)?;
        let axis = axis.with_pinned(prepared.pinned_tokens());
        if let Some(budgets) = least_budgets(&prepared, &axis) {
            return Ok(MinBudgets {
                exact: true,
                in_full: budgets.clone(),
                budgets,
            });
        }
        let mut entries = FirstEntries::new(&prepared, &axis, &mut observer);
        let slicer = self.slicer();
        let swept = slicer.sweep(&prepared.scored(), axis.effective_targets(), &mut entries);
        if swept.is_some() {
            return Ok(MinBudgets {
                exact: true,
                budgets: entries.budgets,
                in_full: entries.in_full,
            });
        }
        let mut sweep = SweepBuilder::new(&prepared, &axis, &mut observer);
        let exact = sweep.sample(samples.max(1));
        let sweep = sweep.finish(exact);
        Ok(MinBudgets {
            exact,
            budgets: (0..items.len())
                .map(|index| sweep.min_budget(index))
                .collect(),
            in_full: (0..items.len())
                .map(|index| sweep.min_budget_in_full(index))
                .collect(),
        })
    }
}

/// Returns the budgets of the pinned candidates; `None` for the others.
fn pinned_budgets(prepared: &PreparedRun<'_>, axis: &Axis<'_>) -> Vec<Option<i64>> {
    let mut budgets = vec![None; prepared.items().len()];
    let first = Some(axis.first_valid(prepared)).filter(|first| *first <= axis.to);
    for &candidate in prepared.pinned() {
        budgets[candidate] = first;
    }
    budgets
}

/// Returns the least budgets of all candidates if the slicer knows its least targets.
fn least_budgets(prepared: &PreparedRun<'_>, axis: &Axis<'_>) -> Option<Vec<Option<i64>>> {
    let slicer = prepared.policy().slicer();
    let targets = slicer.least_targets(&prepared.scored(), axis.effective(axis.to))?;
    let mut budgets = pinned_budgets(prepared, axis);
    for (candidate, target) in prepared.ranked().iter().zip(targets) {
        let Some(target) = target else { continue };
        let budget = axis.first_with_effective(target);
        if axis.effective(budget) != target {
            // A safety margin skips targets above 2^53.
            return None;
        }
        budgets[candidate] = Some(budget);
    }
    Some(budgets)
}

/// Records the first budget of every candidate, and the first at which it is in full; stops when all
/// have both.
struct FirstEntries<'s, 'a> {
    prepared: &'s PreparedRun<'a>,
    axis: &'s Axis<'a>,
    observer: Observer<'s>,
    first_valid: i64,
    /// Whether the slicer fails at the first valid budget, and has not chosen anything since.
    has_failed_first: bool,
    budgets: Vec<Option<i64>>,
    in_full: Vec<Option<i64>>,
    /// By rank.
    is_in: Vec<bool>,
    is_shortened: Vec<bool>,
    /// The number of ranked candidates that have not been in full.
    missing: usize,
    changes: usize,
}

impl<'s, 'a> FirstEntries<'s, 'a> {
    fn new(prepared: &'s PreparedRun<'a>, axis: &'s Axis<'a>, observer: Observer<'s>) -> Self {
        let budgets = pinned_budgets(prepared, axis);
        Self {
            prepared,
            axis,
            observer,
            first_valid: axis.first_valid(prepared),
            has_failed_first: false,
            in_full: budgets.clone(),
            budgets,
            is_in: vec![false; prepared.ranked().len()],
            is_shortened: vec![false; prepared.ranked().len()],
            missing: prepared.ranked().len(),
            changes: 0,
        }
    }

    /// Sets the first budget of the pinned candidates.
    fn set_pinned(&mut self, budget: Option<i64>) {
        for &candidate in self.prepared.pinned() {
            self.budgets[candidate] = budget;
            self.in_full[candidate] = budget;
        }
    }
}

impl SweepVisitor for FirstEntries<'_, '_> {
    fn change(&mut self, target: i64, ranks: &[usize], views: &[ViewChange]) -> ControlFlow<()> {
        const CHANGES_PER_CALL: usize = 1 << 12;
        let budget = self.axis.first_with_effective(target);
        let budget = budget.max(self.first_valid);
        if budget > self.axis.to {
            return ControlFlow::Break(());
        }
        if std::mem::take(&mut self.has_failed_first) {
            self.set_pinned(Some(budget));
        }
        let ranked = self.prepared.ranked();
        for &rank in ranks {
            self.is_in[rank] ^= true;
            self.is_shortened[rank] = false;
        }
        for &(rank, view) in views {
            self.is_shortened[rank] = view.is_some();
        }
        let changed = ranks.iter().copied();
        for rank in changed.chain(views.iter().map(|(rank, _)| *rank)) {
            let candidate = ranked.at(rank);
            if !self.is_in[rank] {
                continue;
            }
            self.budgets[candidate].get_or_insert(budget);
            if !self.is_shortened[rank] && self.in_full[candidate].is_none() {
                self.in_full[candidate] = Some(budget);
                self.missing -= 1;
            }
        }
        self.changes += 1;
        if self.changes.is_multiple_of(CHANGES_PER_CALL) {
            (self.observer)(SweepProgress {
                first: self.axis.from,
                reached: budget,
                last: self.axis.to,
                one_by_one: false,
            })?;
        }
        if self.missing == 0 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn fail(&mut self, target: i64, _error: CupelError) {
        let budget = self.axis.first_with_effective(target);
        if budget <= self.first_valid {
            self.set_pinned(None);
            self.has_failed_first = true;
        }
    }
}

/// Returns the least growth of both limits of `budget` at which `candidate` is selected, as any form or
/// in full; `None` if it is more than 131,072 tokens, or more than 2,048 for a slicer that has to be
/// tried at each budget.
pub(in crate::analytics) fn least_growth(
    prepared: &PreparedRun<'_>,
    budget: &ContextBudget,
    candidate: usize,
    in_full: bool,
) -> Option<i64> {
    // Farther than a model's whole window the answer would help nobody; one run per budget is slower
    // by orders of magnitude than a sweep, and 2,048 of them are about what someone waits for.
    const FARTHEST: i64 = 1 << 17;
    const FARTHEST_ONE_BY_ONE: i64 = 1 << 11;
    let rank = prepared.ranked().iter().position(|c| c == candidate)?;
    let now = budget.target_tokens();
    let scored = prepared.scored();
    let mut span: i64 = 1 << 10;
    while span <= FARTHEST {
        let axis = Axis::new(budget, &(now..=now.checked_add(span)?)).ok()?;
        let axis = axis.with_pinned(prepared.pinned_tokens());
        let mut entry = FirstEntry {
            rank,
            in_full,
            is_in: false,
            target: None,
        };
        let slicer = prepared.policy().slicer();
        let swept = slicer.sweep(&scored, axis.effective_targets(), &mut entry);
        if swept.is_none() {
            let selects = |budget: &ContextBudget| {
                let Choice { kept, shortened } = prepared.select(budget)?;
                let is_wanted_form = !in_full || shortened.view(candidate).is_none();
                Ok::<_, CupelError>(is_wanted_form && kept.contains(&candidate))
            };
            return (0..=FARTHEST_ONE_BY_ONE).find(|growth| {
                let budget = now.checked_add(*growth).map(|target| axis.at(target));
                let selected = budget.map(|budget| budget.and_then(|budget| selects(&budget)));
                matches!(selected, Some(Ok(true)))
            });
        }
        if let Some(target) = entry.target {
            return Some(axis.first_with_effective(target) - now);
        }
        // A knapsack's table grows with the span, so small spans are tried first. All of them together
        // cost at most twice the last one.
        span *= 2;
    }
    None
}

/// Finds the first target at which a rank is chosen, as any form or in full.
struct FirstEntry {
    rank: usize,
    in_full: bool,
    is_in: bool,
    target: Option<i64>,
}

impl SweepVisitor for FirstEntry {
    fn change(&mut self, target: i64, ranks: &[usize], views: &[ViewChange]) -> ControlFlow<()> {
        let toggles = ranks.iter().filter(|rank| **rank == self.rank).count();
        let view = views.iter().find(|(rank, _)| *rank == self.rank);
        if toggles == 0 && view.is_none() {
            return ControlFlow::Continue(());
        }
        self.is_in ^= toggles % 2 == 1;
        let is_full = view.is_none_or(|(_, view)| view.is_none());
        if self.is_in && (is_full || !self.in_full) {
            self.target = Some(target);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn fail(&mut self, _target: i64, _error: CupelError) {}
}
