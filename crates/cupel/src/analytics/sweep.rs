//! The budget sweep: the window as a function of the budget.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use crate::pipeline::Rehearsal;
use crate::{ContextBudget, ContextItem, CupelError, OverflowStrategy, Pipeline, TargetSweep};

/// How the window changes with the budget, over a range of budgets.
///
/// A budget is named by its `target_tokens`; `max_tokens` moves along with it, and reserve, slots
/// and margin stay. See [`Pipeline::sweep`].
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct BudgetSweep {
    /// Whether the steps are known to be all there are. If not, budgets were sampled: a step holds
    /// at its first budget, and up to the next step as far as anybody looked.
    pub exact: bool,
    /// Budgets with the same window, in ascending order, without gaps.
    pub steps: Vec<SweepStep>,
    /// For every candidate, by position, the budgets at which it is in the window.
    pub items: Vec<ItemIntervals>,
}

/// Budgets with the same window.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct SweepStep {
    /// The first of the budgets.
    pub from: i64,
    /// The last of the budgets.
    pub to: i64,
    /// The tokens of the window.
    pub tokens_used: i64,
    /// The scores of the window's items added up, 1.0 for every pinned one.
    #[cfg_attr(feature = "serde", serde(with = "crate::wire::float"))]
    pub total_score: f64,
    /// The items in the window.
    pub included: usize,
    /// The candidates that are not.
    pub excluded: usize,
    /// The code of the error that a run with these budgets ends with, if it does; then there is
    /// no window.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub error: Option<&'static str>,
}

/// The budgets at which one candidate is in the window.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ItemIntervals {
    /// The candidate.
    pub index: usize,
    /// First and last budget of every interval, ascending; intervals neither touch nor overlap.
    pub intervals: Vec<(i64, i64)>,
}

impl BudgetSweep {
    /// The least budget at which a candidate is in the window; `None` if it never is.
    pub fn min_budget(&self, candidate: usize) -> Option<i64> {
        let intervals = &self.items.get(candidate)?.intervals;
        intervals.first().map(|(from, _)| *from)
    }

    /// The candidates in the window at a budget, by position.
    pub fn selection_at(&self, budget: i64) -> Vec<usize> {
        let is_in = |item: &&ItemIntervals| {
            let after = item.intervals.partition_point(|(from, _)| *from <= budget);
            after > 0 && budget <= item.intervals[after - 1].1
        };
        let selected = self.items.iter().filter(is_in);
        selected.map(|item| item.index).collect()
    }

    /// The steps as comma-separated values with a heading.
    pub fn steps_csv(&self) -> String {
        let mut csv = String::from("from,to,tokens_used,total_score,included,excluded,error\n");
        for step in &self.steps {
            let _ = writeln!(
                csv,
                "{},{},{},{},{},{},{}",
                step.from,
                step.to,
                step.tokens_used,
                step.total_score,
                step.included,
                step.excluded,
                step.error.unwrap_or_default()
            );
        }
        csv
    }

    /// The intervals of all candidates as comma-separated values with a heading.
    pub fn intervals_csv(&self) -> String {
        let mut csv = String::from("index,from,to\n");
        for item in &self.items {
            for (from, to) in &item.intervals {
                let _ = writeln!(csv, "{},{from},{to}", item.index);
            }
        }
        csv
    }
}

impl Pipeline {
    /// How many budgets [`sweep`](Self::sweep) tries at most where it has to try them one by one.
    pub const SWEEP_SAMPLES: usize = 4096;

    /// The window as a function of the budget: for every candidate all budgets at which it is in,
    /// and for every step what the window holds.
    ///
    /// The budgets are `targets`; the other limit of `budget` moves along, its reserve, slots and
    /// margin stay. Scoring happens once. [`GreedySlice`](crate::GreedySlice) and
    /// [`KnapsackSlice`](crate::KnapsackSlice), and groups through them, find all steps without trying
    /// every budget; other slicers are tried at every budget if there are at most [`SWEEP_SAMPLES`](Self::SWEEP_SAMPLES)
    /// of them, else at so many spread over the range, and [`BudgetSweep::exact`] says so.
    ///
    /// A budget whose run fails has no window and its step carries the error.
    ///
    /// # Errors
    ///
    /// [`CupelError::InvalidBudget`] if the range is empty or begins below zero; whatever
    /// scoring fails with.
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
    /// assert_eq!(sweep.items[1].intervals, [(5, 9), (15, 20)]); // in, out again, in
    /// assert_eq!(sweep.min_budget(1), Some(5));
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn sweep(
        &self,
        items: &[ContextItem],
        budget: &ContextBudget,
        targets: RangeInclusive<i64>,
    ) -> Result<BudgetSweep, CupelError> {
        self.sweep_sampled(items, budget, targets, Self::SWEEP_SAMPLES)
    }

    /// As [`sweep`](Self::sweep), with the number of budgets to try one by one.
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
        let axis = Axis::new(budget, &targets)?;
        let rehearsal = Rehearsal::new(self.policy(), items)?;
        let mut course = Course::new(&rehearsal);
        let effective = axis.effective_targets(&rehearsal);
        let slicer = self.policy().slicer();
        let known = slicer.sweep(&rehearsal.scored(), effective.clone());
        let exact = match known {
            Some(known) => {
                course.follow(&axis, &known);
                true
            }
            None => course.sample(&axis, samples.max(1)),
        };
        Ok(course.finish(&axis, exact))
    }
}

/// By how many tokens both limits of `budget` have to grow at least for `candidate` to be selected;
/// `None` if that is farther than anybody wants to look, or cannot be told.
pub(super) fn least_growth(
    rehearsal: &Rehearsal<'_>,
    budget: &ContextBudget,
    candidate: usize,
) -> Option<i64> {
    const FARTHEST: i64 = 1 << 17;
    const FARTHEST_ONE_BY_ONE: i64 = 1 << 11;
    let rank = rehearsal.ranked().iter().position(|c| c == candidate)?;
    let now = budget.target_tokens();
    let slicer = rehearsal.policy().slicer();
    let scored = rehearsal.scored();
    let mut span: i64 = 1 << 10;
    while span <= FARTHEST {
        let axis = Axis::new(budget, &(now..=now.checked_add(span)?)).ok()?;
        let Some(known) = slicer.sweep(&scored, axis.effective_targets(rehearsal)) else {
            return (0..FARTHEST_ONE_BY_ONE).find(|growth| {
                let selected = now.checked_add(*growth).map(|target| axis.at(target));
                let selected = selected.and_then(Result::ok);
                let selected = selected.and_then(|budget| rehearsal.select(&budget).ok());
                selected.is_some_and(|selected| selected.contains(&candidate))
            });
        };
        let pieces = known.kept().iter().filter(|(kept, ..)| *kept == rank);
        if let Some(target) = pieces.map(|(_, from, _)| *from).min() {
            return Some(axis.first_with_effective(target, rehearsal) - now);
        }
        span *= 2;
    }
    None
}

/// The budgets of a sweep.
struct Axis<'a> {
    budget: &'a ContextBudget,
    from: i64,
    to: i64,
}

impl<'a> Axis<'a> {
    fn new(budget: &'a ContextBudget, targets: &RangeInclusive<i64>) -> Result<Self, CupelError> {
        let (from, to) = (*targets.start(), *targets.end());
        let gap = budget.max_tokens() - budget.target_tokens();
        if from < 0 || from > to || to.checked_add(gap).is_none_or(|max| max == i64::MAX) {
            return Err(CupelError::InvalidBudget(format!(
                "the swept targets ({from} to {to}) must begin at 0 or above, end where they begin or later, and stay in range"
            )));
        }
        Ok(Self { budget, from, to })
    }

    /// The budget with this target; an error if reserve and limits do not go together.
    fn at(&self, target: i64) -> Result<ContextBudget, CupelError> {
        let gap = self.budget.max_tokens() - self.budget.target_tokens();
        self.budget.with_limits(target + gap, target)
    }

    /// The first budget, if any, whose effective target is at least `wanted`.
    fn first_with_effective(&self, wanted: i64, rehearsal: &Rehearsal<'_>) -> i64 {
        let is_enough = |target| self.effective(target, rehearsal) >= wanted;
        // Mostly every budget is as much larger than its effective target as the largest is.
        let taken = self.to - self.effective(self.to, rehearsal);
        let guess = wanted.saturating_add(taken);
        let is_inside = guess > self.from && guess <= self.to;
        if is_inside && is_enough(guess) && !is_enough(guess - 1) {
            return guess;
        }
        self.first(is_enough)
    }

    fn effective(&self, target: i64, rehearsal: &Rehearsal<'_>) -> i64 {
        let pinned = i64::try_from(rehearsal.pinned_tokens()).unwrap_or(i64::MAX);
        self.at(target)
            .map_or(0, |budget| budget.effective(pinned).target_tokens())
    }

    fn effective_targets(&self, rehearsal: &Rehearsal<'_>) -> RangeInclusive<i64> {
        self.effective(self.from, rehearsal)..=self.effective(self.to, rehearsal)
    }

    /// The first budget for which `holds`, which holds for all larger ones too; one past the
    /// last budget if there is none.
    fn first(&self, holds: impl Fn(i64) -> bool) -> i64 {
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
}

/// A sweep in the making.
struct Course<'a, 'r> {
    rehearsal: &'r Rehearsal<'a>,
    /// The first budget of every step, and how its runs fail if they do.
    starts: Vec<(i64, Option<&'static str>)>,
    /// First and last budget of every interval, by candidate, ascending.
    intervals: Vec<Vec<(i64, i64)>>,
}

impl<'a, 'r> Course<'a, 'r> {
    fn new(rehearsal: &'r Rehearsal<'a>) -> Self {
        Self {
            rehearsal,
            starts: Vec::new(),
            intervals: vec![Vec::new(); rehearsal.items().len()],
        }
    }

    /// Translates the slicer's own sweep over effective targets into budgets.
    fn follow(&mut self, axis: &Axis<'_>, known: &TargetSweep) {
        let rehearsal = self.rehearsal;
        let pinned = rehearsal.pinned_tokens();
        let fails = |target: i64| match axis.at(target) {
            Err(_) => Some("InvalidBudget"),
            Ok(budget) => {
                let ceiling = i128::from(budget.max_tokens() - budget.output_reserve());
                let limit = ceiling.min(target.into());
                let throws = rehearsal.policy().overflow_strategy() == OverflowStrategy::Throw;
                if pinned > ceiling {
                    Some("PinnedExceedsBudget")
                } else if pinned > limit && throws {
                    Some("Overflow")
                } else {
                    None
                }
            }
        };
        // Each of the three failures ends for good at some budget, the later ones later.
        let works = axis.first(|target| fails(target).is_none());
        let mut at = axis.from;
        while at < works {
            let failure = fails(at);
            self.starts.push((at, failure));
            at = axis.first(|target| target > at && fails(target) != failure);
        }
        let refused = known.failure().map(|(target, error)| {
            let from = axis.first_with_effective(*target, rehearsal);
            (from.max(works), error.code())
        });
        let end = refused.map_or(axis.to + 1, |(from, _)| from);

        let to_budget = |target: i64| {
            let budget = axis.first_with_effective(target, rehearsal);
            budget.clamp(works, end.max(works))
        };
        let mut starts: Vec<i64> = known.steps().iter().map(|&step| to_budget(step)).collect();
        starts.dedup();
        let starts = starts.into_iter().filter(|&start| start < end);
        self.starts.extend(starts.map(|start| (start, None)));
        if let Some((from, code)) = refused.filter(|(from, _)| *from <= axis.to) {
            self.starts.push((from, Some(code)));
        }
        for &candidate in rehearsal.pinned() {
            self.add(candidate, works, end);
        }
        for &(rank, from, to) in known.kept() {
            if let Some(candidate) = rehearsal.ranked().get(rank) {
                self.add(candidate, to_budget(from), to_budget(to));
            }
        }
    }

    /// Tries budgets one by one; returns whether these were all.
    fn sample(&mut self, axis: &Axis<'_>, samples: usize) -> bool {
        let span = axis.to.abs_diff(axis.from);
        let stride = span / samples as u64 + 1;
        let mut before: Option<Result<Vec<usize>, &'static str>> = None;
        let mut at = axis.from;
        loop {
            let selected = axis
                .at(at)
                .and_then(|budget| self.rehearsal.select(&budget))
                .map_err(|error| error.code());
            let next = at.checked_add_unsigned(stride);
            let next = next.filter(|&next| next <= axis.to);
            for &candidate in selected.iter().flatten() {
                self.add(candidate, at, next.unwrap_or(axis.to + 1));
            }
            if before.as_ref() != Some(&selected) {
                self.starts.push((at, selected.as_ref().err().copied()));
            }
            before = Some(selected);
            match next {
                Some(next) => at = next,
                None => return stride == 1,
            }
        }
    }

    /// The candidate is in from `from` up to, but without, `to`; called in ascending order.
    fn add(&mut self, candidate: usize, from: i64, to: i64) {
        if from >= to {
            return;
        }
        match self.intervals[candidate].last_mut() {
            Some((_, last)) if *last + 1 >= from => *last = (to - 1).max(*last),
            _ => self.intervals[candidate].push((from, to - 1)),
        }
    }

    fn finish(self, axis: &Axis<'_>, exact: bool) -> BudgetSweep {
        let ends = self.starts.iter().skip(1).map(|(start, _)| start - 1);
        let ends = ends.chain([axis.to]);
        let starts: Vec<i64> = self.starts.iter().map(|(start, _)| *start).collect();
        let windows = Windows::of(&self, &starts);
        let steps = self.starts.iter().zip(ends).zip(windows.0);
        let steps = steps.map(|((&(from, error), to), window)| SweepStep {
            from,
            to,
            tokens_used: crate::model::reported(window.tokens),
            total_score: window.score.value(),
            included: window.items,
            excluded: self.intervals.len() - window.items,
            error,
        });
        BudgetSweep {
            exact,
            steps: steps.collect(),
            items: self
                .intervals
                .into_iter()
                .enumerate()
                .map(|(index, intervals)| ItemIntervals { index, intervals })
                .collect(),
        }
    }
}

/// What the window holds at every step, added up from what enters and leaves.
struct Windows(Vec<Window>);

#[derive(Clone, Copy, Default)]
struct Window {
    items: usize,
    tokens: i128,
    score: Sum,
}

impl Windows {
    fn of(course: &Course<'_, '_>, starts: &[i64]) -> Self {
        // Who enters and who leaves at every step.
        let mut entering: Vec<Vec<usize>> = vec![Vec::new(); starts.len()];
        let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); starts.len() + 1];
        for (candidate, intervals) in course.intervals.iter().enumerate() {
            for (from, to) in intervals {
                entering[starts.partition_point(|start| start < from)].push(candidate);
                leaving[starts.partition_point(|start| start <= to)].push(candidate);
            }
        }
        let rehearsal = course.rehearsal;
        let mut window = Window::default();
        let mut windows = Vec::with_capacity(starts.len());
        for (entering, leaving) in entering.iter().zip(&leaving) {
            for &candidate in leaving {
                window.items -= 1;
                window.tokens -= i128::from(rehearsal.items()[candidate].tokens());
                window.score.add(rehearsal.score(candidate), -1);
            }
            for &candidate in entering {
                window.items += 1;
                window.tokens += i128::from(rehearsal.items()[candidate].tokens());
                window.score.add(rehearsal.score(candidate), 1);
            }
            windows.push(window);
        }
        Self(windows)
    }
}

/// A sum of scores from which scores can be taken away again without a trace.
///
/// Finite scores are added as multiples of 2^-64, exactly; what is not finite is counted.
#[derive(Clone, Copy, Default)]
struct Sum {
    multiples: i128,
    nan: i64,
    infinite: i64,
    negative_infinite: i64,
}

impl Sum {
    const UNIT: f64 = 18_446_744_073_709_551_616.0;

    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
    fn add(&mut self, score: f64, times: i64) {
        if score.is_nan() {
            self.nan += times;
        } else if score == f64::INFINITY {
            self.infinite += times;
        } else if score == f64::NEG_INFINITY {
            self.negative_infinite += times;
        } else {
            let multiples = (score * Self::UNIT) as i128;
            self.multiples = self
                .multiples
                .saturating_add(multiples.saturating_mul(times.into()));
        }
    }

    fn value(self) -> f64 {
        let finite = self.multiples as f64 / Self::UNIT;
        match (self.nan > 0, self.infinite > 0, self.negative_infinite > 0) {
            (true, ..) | (_, true, true) => f64::NAN,
            (_, true, _) => f64::INFINITY,
            (_, _, true) => f64::NEG_INFINITY,
            _ => finite,
        }
    }
}
