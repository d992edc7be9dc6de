//! The budget sweep: the window as a function of the budget.

mod axis;
mod builder;

use std::fmt::Write as _;
use std::ops::{ControlFlow, RangeInclusive};

use self::axis::Axis;
use self::builder::SweepBuilder;
use crate::pipeline::PreparedRun;
use crate::slicer::chain;
use crate::{ContextBudget, ContextItem, CupelError, Pipeline};

/// How the window changes with the budget, over a range of budgets.
///
/// A budget is identified by its `target_tokens`; `max_tokens` changes by the same amount, and
/// reserve, slots and margin are constant. See [`Pipeline::sweep`].
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetSweep {
    /// Whether the steps are complete. If not, budgets were sampled: a step is certain at its first
    /// budget, and smaller steps before the next may be missing.
    pub exact: bool,
    /// Budgets with the same window, in ascending order, without gaps.
    pub steps: Vec<SweepStep>,
    /// The budgets at which each candidate is in the window, by position.
    pub items: Vec<ItemIntervals>,
}

/// Budgets with the same window: the same items, in the same forms.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweepStep {
    /// The first of the budgets.
    pub from: i64,
    /// The last of the budgets.
    pub to: i64,
    /// The tokens of the window.
    pub tokens_used: i64,
    /// The sum of the scores of the window's items, 1.0 for each pinned one. A shortened item counts
    /// with its score times the value of its view.
    #[cfg_attr(feature = "serde", serde(with = "crate::wire::float"))]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Float"))]
    pub total_score: f64,
    /// The number of items in the window.
    pub included: usize,
    /// The number of items in the window as a view.
    pub shortened: usize,
    /// The number of candidates that are not in the window.
    pub excluded: usize,
    /// The code of the error that runs with these budgets end with. There is no window then.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub error: Option<&'static str>,
}

/// The budgets at which one candidate is in the window.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ItemIntervals {
    /// The candidate's position.
    pub index: usize,
    /// First and last budget of every interval, ascending; intervals neither touch nor overlap.
    pub intervals: Vec<(i64, i64)>,
    /// The parts of the intervals in which the candidate is in the window as a view, ascending.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub views: Vec<ViewInterval>,
}

/// The budgets at which one candidate is in the window as one of its views.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ViewInterval {
    /// The first of the budgets.
    pub from: i64,
    /// The last of the budgets.
    pub to: i64,
    /// The index of the view.
    pub view: usize,
}

impl ItemIntervals {
    /// Returns first and last budget of the intervals in which the candidate is in the window in one
    /// form, with its view or `None` for the item in full.
    pub fn forms(&self) -> Vec<(i64, i64, Option<usize>)> {
        let mut forms = Vec::new();
        let mut views = self.views.iter().peekable();
        for &(from, to) in &self.intervals {
            let mut at = from;
            while let Some(view) = views.next_if(|view| view.from <= to) {
                if at < view.from {
                    forms.push((at, view.from - 1, None));
                }
                forms.push((view.from, view.to, Some(view.view)));
                at = view.to + 1;
            }
            if at <= to {
                forms.push((at, to, None));
            }
        }
        forms
    }

    /// Adds budgets behind all others at which the candidate is in the window in one form.
    fn push(&mut self, from: i64, to: i64, view: Option<usize>) {
        match self.intervals.last_mut() {
            Some((_, last)) if *last + 1 == from => *last = to,
            _ => self.intervals.push((from, to)),
        }
        let Some(view) = view else { return };
        match self.views.last_mut() {
            Some(last) if last.view == view && last.to + 1 == from => last.to = to,
            _ => self.views.push(ViewInterval { from, to, view }),
        }
    }
}

impl SweepStep {
    /// Returns whether the numbers of two windows are the same.
    fn is_like(&self, other: &Self) -> bool {
        let (from, to) = (self.from, self.to);
        *self
            == Self {
                from,
                to,
                ..other.clone()
            }
    }
}

impl BudgetSweep {
    /// Returns the least budget at which a candidate is in the window; `None` if it never is.
    pub fn min_budget(&self, candidate: usize) -> Option<i64> {
        let intervals = &self.items.get(candidate)?.intervals;
        intervals.first().map(|(from, _)| *from)
    }

    /// Returns the least budget at which a candidate is in the window in full; `None` if it never is.
    pub fn min_budget_in_full(&self, candidate: usize) -> Option<i64> {
        let forms = self.items.get(candidate)?.forms();
        let mut in_full = forms.iter().filter(|(_, _, view)| view.is_none());
        in_full.next().map(|(from, _, _)| *from)
    }

    /// Returns the kept view of a candidate at a budget; `None` if it is in full or not
    /// in the window.
    pub fn view_at(&self, candidate: usize, budget: i64) -> Option<usize> {
        let views = self.items.get(candidate)?.views.iter();
        let mut at = views.filter(|view| (view.from..=view.to).contains(&budget));
        at.next().map(|view| view.view)
    }

    /// Returns the positions of the candidates in the window at a budget.
    pub fn selection_at(&self, budget: i64) -> Vec<usize> {
        let is_in = |item: &&ItemIntervals| {
            let after = item.intervals.partition_point(|(from, _)| *from <= budget);
            after > 0 && budget <= item.intervals[after - 1].1
        };
        let selected = self.items.iter().filter(is_in);
        selected.map(|item| item.index).collect()
    }

    /// Creates a sweep of no budget over so many candidates, to [`append`](Self::append) to.
    pub fn new(candidates: usize) -> Self {
        let item = |index| ItemIntervals {
            index,
            ..ItemIntervals::default()
        };
        Self {
            exact: true,
            steps: Vec::new(),
            items: (0..candidates).map(item).collect(),
        }
    }

    /// Extends the last step up to a larger budget, for budgets that are not tried.
    pub fn extend_to(&mut self, last: i64) {
        let Some(step) = self.steps.last_mut() else {
            return;
        };
        let end = std::mem::replace(&mut step.to, last);
        for item in &mut self.items {
            if let Some((_, to)) = item.intervals.last_mut().filter(|(_, to)| *to == end) {
                *to = last;
            }
            if let Some(view) = item.views.last_mut().filter(|view| view.to == end) {
                view.to = last;
            }
        }
    }

    /// Appends a sweep of the budgets that follow, of the same candidates with views of its own: `view_of` returns the
    /// view that stands here for a candidate's form there. Equal windows at the border become one step.
    ///
    /// ```
    /// use cupel::*;
    ///
    /// let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);
    /// let items = [ContextItem::builder("note", 10).build()?];
    /// let budget = ContextBudget::with_target(20, 20)?;
    /// let mut sweep = pipeline.sweep(&items, &budget, 0..=14)?;
    /// sweep.append(pipeline.sweep(&items, &budget, 15..=20)?, |_, view| view);
    /// assert_eq!(sweep, pipeline.sweep(&items, &budget, 0..=20)?);
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn append(
        &mut self,
        next: Self,
        mut view_of: impl FnMut(usize, Option<usize>) -> Option<usize>,
    ) {
        self.exact &= next.exact;
        let border = next.steps.first().map_or(0, |step| step.from);
        let mut is_same = true;
        for (item, next) in self.items.iter_mut().zip(next.items) {
            let last = item.forms().pop().filter(|(_, to, _)| to + 1 == border);
            let last = last.map(|(.., view)| view);
            let mut first = None;
            for (from, to, view) in next.forms() {
                let view = view_of(next.index, view);
                if from == border {
                    first = Some(view);
                }
                item.push(from, to, view);
            }
            is_same &= last == first;
        }
        let mut steps = next.steps.into_iter().peekable();
        if let Some(last) = self.steps.last_mut()
            && let Some(first) = steps.next_if(|first| is_same && last.is_like(first))
        {
            last.to = first.to;
        }
        self.steps.extend(steps);
    }

    /// Returns the steps as CSV with a header line.
    pub fn steps_csv(&self) -> String {
        let mut csv =
            String::from("from,to,tokens_used,total_score,included,shortened,excluded,error\n");
        for step in &self.steps {
            let _ = writeln!(
                csv,
                "{},{},{},{},{},{},{},{}",
                step.from,
                step.to,
                step.tokens_used,
                step.total_score,
                step.included,
                step.shortened,
                step.excluded,
                step.error.unwrap_or_default()
            );
        }
        csv
    }

    /// Returns the intervals of all candidates as CSV with a header line. The column `view` is empty for
    /// an item in full.
    pub fn intervals_csv(&self) -> String {
        let mut csv = String::from("index,from,to,view\n");
        for item in &self.items {
            for (from, to, view) in item.forms() {
                let view = view.map(|view| view.to_string()).unwrap_or_default();
                let _ = writeln!(csv, "{},{from},{to},{view}", item.index);
            }
        }
        csv
    }
}

/// How far a sweep has got; see [`Pipeline::sweep_observed`].
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SweepProgress {
    /// The first budget of the sweep.
    pub first: i64,
    /// The budget up to which windows are known.
    pub reached: i64,
    /// The last budget of the sweep.
    pub last: i64,
    /// Whether budgets are tried one by one. A sweep that finds the steps by itself may turn out to
    /// have too many of them; then it starts again with budgets one by one.
    pub one_by_one: bool,
}

impl SweepProgress {
    /// Creates the progress of a sweep that tries budgets one by one.
    pub fn one_by_one(first: i64, reached: i64, last: i64) -> Self {
        Self {
            first,
            reached,
            last,
            one_by_one: true,
        }
    }

    /// Returns the share of the budgets that is done, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        let budgets = |to: i64| to.abs_diff(self.first) as f64 + 1.0;
        budgets(self.reached) / budgets(self.last)
    }
}

/// Told of a sweep's progress; can stop it.
type Observer<'o> = &'o mut dyn FnMut(SweepProgress) -> ControlFlow<()>;

impl Pipeline {
    /// The largest number of budgets that [`sweep`](Self::sweep) tries one by one.
    pub const SWEEP_SAMPLES: usize = 4096;

    /// Computes the window as a function of the budget: all budgets at which each candidate is in,
    /// and a summary of the window for each step.
    ///
    /// The budgets are `targets`; the other limit of `budget` changes by the same amount, its reserve,
    /// slots and margin are constant. Scoring happens once. [`GreedySlice`](crate::GreedySlice),
    /// [`RankSlice`](crate::RankSlice), [`DensitySlice`](crate::DensitySlice),
    /// [`KnapsackSlice`](crate::KnapsackSlice), [`ChoiceSlice`](crate::ChoiceSlice) and
    /// [`LadderSlice`](crate::LadderSlice), and groups through them, give all steps in one pass, if there are at
    /// most 4,194,304. Otherwise the slicer is run at every budget if there are at most
    /// [`sweep_samples`](Self::sweep_samples) of them, else at so many spread evenly over the range, and
    /// [`BudgetSweep::exact`] is `false`.
    ///
    /// A budget whose run fails has no window. Its step carries the error.
    ///
    /// # Errors
    ///
    /// [`CupelError::InvalidBudget`] if the range is empty or begins below zero; any error of
    /// scoring.
    ///
    /// ```
    /// use cupel::*;
    ///
    /// let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);
    /// let items = [
    ///     ContextItem::builder("dense", 10).future_relevance_hint(1.0).build()?,
    ///     ContextItem::builder("filler", 5).future_relevance_hint(0.4).build()?,
    /// ];
    /// let sweep = pipeline.sweep(&items, &ContextBudget::with_target(20, 20)?, 0..=20)?;
    /// assert!(sweep.exact);
    /// assert_eq!(sweep.items[0].intervals, [(10, 20)]);
    /// assert_eq!(sweep.items[1].intervals, [(5, 9), (15, 20)]); // in, out, in again
    /// assert_eq!(sweep.min_budget(1), Some(5));
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn sweep(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
        targets: RangeInclusive<i64>,
    ) -> Result<BudgetSweep, CupelError> {
        let samples = self.sweep_samples(items.len());
        self.sweep_sampled(items, budget, targets, samples)
    }

    /// Returns the number of budgets that [`sweep`](Self::sweep) tries for so many candidates if it has
    /// to try them one by one: at most [`SWEEP_SAMPLES`](Self::SWEEP_SAMPLES), and fewer for large
    /// runs, so that candidates times wrapped slicers times budgets stay below 2^27, but at least 64.
    pub fn sweep_samples(&self, candidates: usize) -> usize {
        // Some ten seconds of work at most, a fifth of it for usual slicers.
        const MOST_VISITS: usize = 1 << 27;
        let depth = chain(self.slicer()).count();
        let visits = candidates.saturating_mul(depth).max(1);
        (MOST_VISITS / visits).clamp(64, Self::SWEEP_SAMPLES)
    }

    /// Sweeps as [`sweep`](Self::sweep), with a given number of budgets to try one by one.
    ///
    /// # Errors
    ///
    /// As [`sweep`](Self::sweep).
    pub fn sweep_sampled(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
        targets: RangeInclusive<i64>,
        samples: usize,
    ) -> Result<BudgetSweep, CupelError> {
        self.sweep_observed(items, budget, targets, samples, |_| {
            ControlFlow::Continue(())
        })
    }

    /// Sweeps as [`sweep`](Self::sweep), with a given number of budgets to try one by one, and tells
    /// `observer` of the progress: after each budget that was tried, or after some thousands of steps. The observer can stop the sweep; its
    /// steps then end at the budget that was reached.
    ///
    /// # Errors
    ///
    /// As [`sweep`](Self::sweep).
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use cupel::*;
    ///
    /// let half = QuotaEntry::new(ContextKind::memory(), 0.0, 50.0)?;
    /// let slicer = QuotaSlice::new(vec![half], GreedySlice)?;
    /// let pipeline = Pipeline::new(ReflexiveScorer, slicer, ChronologicalPlacer);
    /// let items = [ContextItem::builder("note", 10).build()?];
    /// let budget = ContextBudget::with_target(100, 100)?;
    /// let samples = pipeline.sweep_samples(items.len());
    /// let sweep = pipeline.sweep_observed(&items, &budget, 0..=100, samples, |progress| {
    ///     if progress.reached < 20 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    /// })?;
    /// assert_eq!(sweep.steps.last().map(|step| step.to), Some(20));
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn sweep_observed(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
        targets: RangeInclusive<i64>,
        samples: usize,
        mut observer: impl FnMut(SweepProgress) -> ControlFlow<()>,
    ) -> Result<BudgetSweep, CupelError> {
        let axis = Axis::new(budget, &targets)?;
        let prepared = PreparedRun::new(self, items)?;
        Ok(sweep_prepared(&prepared, axis, samples, &mut observer))
    }
}

/// Sweeps the budgets of an axis, over candidates that are scored already.
fn sweep_prepared(
    prepared: &PreparedRun<'_>,
    axis: Axis<'_>,
    samples: usize,
    observer: Observer<'_>,
) -> BudgetSweep {
    let axis = axis.with_pinned(prepared.pinned_tokens());
    let mut sweep = SweepBuilder::new(prepared, &axis, observer);
    sweep.start();
    let slicer = prepared.policy().slicer();
    let swept = slicer.sweep(&prepared.scored(), axis.effective_targets(), &mut sweep);
    if swept.is_some() && !sweep.is_too_long() {
        return sweep.finish(true);
    }
    // The slicer has no steps, or too many to record: start again, with budgets one by one.
    sweep = SweepBuilder::new(prepared, &axis, observer);
    let exact = sweep.sample(samples.max(1));
    sweep.finish(exact)
}

/// Returns the budgets from the target of `budget` on, at most `span` tokens above it, at which a
/// candidate is in the window; `None` if the slicer has to try budgets one by one.
pub(super) fn intervals_above(
    prepared: &PreparedRun<'_>,
    budget: &ContextBudget,
    candidate: usize,
    span: i64,
) -> Option<ItemIntervals> {
    let now = budget.target_tokens();
    let axis = Axis::new(budget, &(now..=now.checked_add(span)?)).ok()?;
    let mut observer = |_| ControlFlow::Continue(());
    let mut sweep = sweep_prepared(prepared, axis, 1, &mut observer);
    sweep.exact.then(|| sweep.items.swap_remove(candidate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_appended_sweep_continues_forms_and_windows() {
        let step = |from, to, tokens_used| SweepStep {
            from,
            to,
            tokens_used,
            total_score: 0.0,
            included: 1,
            shortened: 0,
            excluded: 0,
            error: None,
        };
        let sweep = |steps: &[SweepStep], intervals: &[(i64, i64)], views: &[(i64, i64, usize)]| {
            let views = views
                .iter()
                .map(|&(from, to, view)| ViewInterval { from, to, view });
            BudgetSweep {
                exact: true,
                steps: steps.to_vec(),
                items: vec![ItemIntervals {
                    index: 0,
                    intervals: intervals.to_vec(),
                    views: views.collect(),
                }],
            }
        };
        let first = || sweep(&[step(0, 4, 0), step(5, 9, 3)], &[(5, 9)], &[(5, 9, 7)]);
        // The form in full of the second sweep is view 7 of the first one.
        let second = || {
            sweep(
                &[step(10, 19, 3), step(20, 29, 3)],
                &[(10, 29)],
                &[(20, 29, 0)],
            )
        };
        let mut both = first();
        both.append(second(), |_, view| match view {
            None => Some(7),
            Some(_) => None,
        });
        let steps = [step(0, 4, 0), step(5, 19, 3), step(20, 29, 3)];
        assert_eq!(both, sweep(&steps, &[(5, 29)], &[(5, 19, 7)]));
        // Another form at the border is another window of the same numbers.
        let mut both = first();
        both.append(second(), |_, view| view);
        assert_eq!(both.steps.len(), 4);
        assert_eq!(
            both.items[0].forms(),
            [(5, 9, Some(7)), (10, 19, None), (20, 29, Some(0))]
        );
        // A gap, an error, and a sweep with samples.
        let mut failed = step(10, 10, 3);
        failed.error = Some("Overflow");
        let mut sampled = sweep(&[failed, step(11, 12, 3)], &[(11, 12)], &[]);
        sampled.exact = false;
        let mut both = first();
        both.append(sampled, |_, view| view);
        assert_eq!(both.steps.len(), 4);
        assert_eq!(both.items[0].intervals, [(5, 9), (11, 12)]);
        assert!(!both.exact);
        // Budgets that are not tried have the last window.
        let mut longer = BudgetSweep::new(1);
        longer.append(first(), |_, view| view);
        longer.extend_to(15);
        let steps = [step(0, 4, 0), step(5, 15, 3)];
        assert_eq!(longer, sweep(&steps, &[(5, 15)], &[(5, 15, 7)]));
    }

    #[test]
    fn the_forms_of_an_item_fill_its_intervals() {
        let view = |from, to, view| ViewInterval { from, to, view };
        let forms = |intervals: &[(i64, i64)], views: &[ViewInterval]| {
            let (intervals, views) = (intervals.to_vec(), views.to_vec());
            ItemIntervals {
                index: 0,
                intervals,
                views,
            }
            .forms()
        };
        assert_eq!(forms(&[(5, 9)], &[]), [(5, 9, None)]);
        assert_eq!(forms(&[(5, 9)], &[view(5, 9, 0)]), [(5, 9, Some(0))]);
        // In full, then two views, then in full again; a second interval without views.
        assert_eq!(
            forms(&[(2, 20), (30, 31)], &[view(4, 6, 1), view(7, 7, 0)]),
            [
                (2, 3, None),
                (4, 6, Some(1)),
                (7, 7, Some(0)),
                (8, 20, None),
                (30, 31, None)
            ]
        );
    }
}
