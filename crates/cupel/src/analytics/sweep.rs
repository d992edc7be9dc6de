//! The budget sweep: the window as a function of the budget.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use crate::model::reported;
use crate::pipeline::PreparedRun;
use crate::{ContextBudget, ContextItem, CupelError, Pipeline, TargetSweep};

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
        let prepared = PreparedRun::new(self.policy(), items)?;
        let axis = axis.beside(prepared.pinned_tokens());
        let slicer = self.policy().slicer();
        let mut course = Course::new(&prepared, axis.from);
        let exact = match slicer.sweep(&prepared.scored(), axis.effective_targets()) {
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
    prepared: &PreparedRun<'_>,
    budget: &ContextBudget,
    candidate: usize,
) -> Option<i64> {
    const FARTHEST: i64 = 1 << 17;
    const FARTHEST_ONE_BY_ONE: i64 = 1 << 11;
    let rank = prepared.ranked().iter().position(|c| c == candidate)?;
    let rank = u32::try_from(rank).ok()?;
    let now = budget.target_tokens();
    let slicer = prepared.policy().slicer();
    let scored = prepared.scored();
    let mut span: i64 = 1 << 10;
    while span <= FARTHEST {
        let axis = Axis::new(budget, &(now..=now.checked_add(span)?)).ok()?;
        let axis = axis.beside(prepared.pinned_tokens());
        let Some(known) = slicer.sweep(&scored, axis.effective_targets()) else {
            let selects = prepared.selects(candidate);
            return (0..FARTHEST_ONE_BY_ONE).find(|growth| {
                let budget = now.checked_add(*growth).map(|target| axis.at(target));
                let selected = budget.map(|budget| budget.and_then(|budget| selects(&budget)));
                matches!(selected, Some(Ok(true)))
            });
        };
        let entering = known.steps().find(|(_, changes)| changes.contains(&rank));
        if let Some((target, _)) = entering {
            return Some(axis.first_with_effective(target) - now);
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
    /// What a budget has to give before anything is left to the slicer.
    taken: i128,
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
        let reserve_beyond_gap = (budget.output_reserve() - gap).max(0);
        Ok(Self {
            budget,
            from,
            to,
            taken: budget.slot_tokens() + i128::from(reserve_beyond_gap),
        })
    }

    /// With pinned items, which take their tokens first.
    fn beside(mut self, pinned_tokens: i128) -> Self {
        self.taken += pinned_tokens;
        self
    }

    /// The budget with this target; an error if reserve and limits do not go together.
    fn at(&self, target: i64) -> Result<ContextBudget, CupelError> {
        let gap = self.budget.max_tokens() - self.budget.target_tokens();
        self.budget.with_limits(target + gap, target)
    }

    /// The effective target of the budget with this target.
    fn effective(&self, target: i64) -> i64 {
        let left = (i128::from(target) - self.taken).max(0);
        self.budget.less_margin(reported(left))
    }

    fn effective_targets(&self) -> RangeInclusive<i64> {
        self.effective(self.from)..=self.effective(self.to)
    }

    /// The first budget whose effective target is at least `wanted`; one past the last budget if
    /// there is none.
    #[inline]
    fn first_with_effective(&self, wanted: i64) -> i64 {
        if wanted <= 0 {
            self.from
        } else if self.budget.estimation_safety_margin_percent() > 0.0 {
            self.first(|target| self.effective(target) >= wanted)
        } else {
            let enough = reported(i128::from(wanted) + self.taken);
            enough.clamp(self.from, self.to + 1)
        }
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

/// A sweep in the making: looks at one budget after another, in ascending order.
struct Course<'a, 'r> {
    prepared: &'r PreparedRun<'a>,
    /// The budget that is looked at, the first of its step.
    at: i64,
    /// How its run fails, if it does.
    error: Option<&'static str>,
    /// What its window holds.
    window: Window,
    steps: Vec<SweepStep>,
    candidates: Vec<Candidate>,
    items: Vec<ItemIntervals>,
    /// The candidates whose scores are not in the sum of the window's.
    unsummed: Vec<usize>,
}

#[derive(Default)]
struct Window {
    items: usize,
    tokens: i128,
    /// As [`Candidate::score`].
    score: i128,
}

/// What a candidate adds to the window, and the last interval in which it does.
struct Candidate {
    tokens: i64,
    /// In multiples of 2^-64: a sum from which scores can be taken away again without a trace.
    score: i128,
    from: i64,
    /// The first budget at which it is out again, [`STILL_IN`](Self::STILL_IN) if it is not.
    to: i64,
}

impl Candidate {
    const STILL_IN: i64 = i64::MAX;

    fn is_in(&self) -> bool {
        self.to == Self::STILL_IN
    }

    fn interval(&self) -> Option<(i64, i64)> {
        (self.from < self.to).then(|| (self.from, self.to - 1))
    }
}

impl<'a, 'r> Course<'a, 'r> {
    fn new(prepared: &'r PreparedRun<'a>, from: i64) -> Self {
        let items = prepared.items().iter().enumerate();
        let candidate = |(index, item): (usize, &ContextItem)| Candidate {
            tokens: item.tokens(),
            score: multiples(prepared.score(index)).unwrap_or(0),
            from,
            to: from,
        };
        let never = |(index, _)| ItemIntervals {
            index,
            intervals: Vec::new(),
        };
        let is_unsummed = |index: &usize| multiples(prepared.score(*index)).is_none();
        Self {
            prepared,
            at: from,
            error: None,
            window: Window::default(),
            steps: Vec::new(),
            unsummed: (0..items.len()).filter(is_unsummed).collect(),
            candidates: items.clone().map(candidate).collect(),
            items: items.map(never).collect(),
        }
    }

    /// Translates the slicer's own sweep over effective targets into budgets.
    fn follow(&mut self, axis: &Axis<'_>, known: &TargetSweep) {
        let prepared = self.prepared;
        let fails = |target: i64| {
            let checked = axis.at(target);
            let checked = checked.and_then(|budget| prepared.check_pinned(&budget));
            checked.err().map(|error| error.code())
        };
        // Each of the three failures ends for good at some budget, the later ones later.
        let works = axis.first(|target| fails(target).is_none());
        while self.at < works {
            let failure = fails(self.at);
            self.error = failure;
            self.go_to(axis.first(|target| target > self.at && fails(target) != failure));
        }
        self.error = None;
        for &candidate in prepared.pinned() {
            self.toggle(candidate);
        }
        self.expect(known);
        let ranked = prepared.ranked();
        for (target, changes) in known.steps() {
            self.go_to(works.max(axis.first_with_effective(target)));
            for &rank in changes {
                if let Some(candidate) = ranked.get(rank as usize) {
                    self.toggle(candidate);
                }
            }
        }
        if let Some((target, error)) = known.failure() {
            self.go_to(works.max(axis.first_with_effective(*target)));
            for index in 0..self.candidates.len() {
                if self.candidates[index].is_in() {
                    self.toggle(index);
                }
            }
            self.error = Some(error.code());
        }
    }

    /// Makes room for what the slicer's sweep is going to need, so that nothing is moved later.
    fn expect(&mut self, known: &TargetSweep) {
        const BESIDE: usize = 4;
        self.steps.reserve_exact(known.step_count() + BESIDE);
        let ranked = self.prepared.ranked();
        let mut changes = vec![0_u32; ranked.len()];
        for &rank in known.changes() {
            if let Some(changes) = changes.get_mut(rank as usize) {
                *changes += 1;
            }
        }
        for (candidate, changes) in ranked.iter().zip(changes) {
            let intervals = &mut self.items[candidate].intervals;
            intervals.reserve_exact(changes.div_ceil(2) as usize);
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
                .and_then(|budget| self.prepared.select(&budget))
                .map_err(|error| error.code());
            if before.as_ref() != Some(&selected) {
                self.go_to(at);
                let leaving = before.iter().flatten().flatten();
                for &candidate in leaving.chain(selected.iter().flatten()) {
                    self.toggle(candidate);
                }
                self.error = selected.as_ref().err().copied();
                before = Some(selected);
            }
            let next = at.checked_add_unsigned(stride);
            match next.filter(|&next| next <= axis.to) {
                Some(next) => at = next,
                None => return stride == 1,
            }
        }
    }

    /// Ends the step if the budget is another one.
    fn go_to(&mut self, budget: i64) {
        if budget > self.at {
            self.steps.push(SweepStep {
                from: self.at,
                to: budget - 1,
                tokens_used: reported(self.window.tokens),
                total_score: self.total_score(),
                included: self.window.items,
                excluded: self.candidates.len() - self.window.items,
                error: self.error,
            });
            self.at = budget;
        }
    }

    fn total_score(&self) -> f64 {
        let unsummed = self.unsummed.iter();
        let unsummed = unsummed.filter(|&&index| self.candidates[index].is_in());
        let scores = unsummed.map(|&index| self.prepared.score(index));
        scores.fold(self.window.score as f64 / UNITS, |sum, score| sum + score)
    }

    /// The candidate enters the window or leaves it.
    fn toggle(&mut self, index: usize) {
        let candidate = &mut self.candidates[index];
        if candidate.is_in() {
            candidate.to = self.at;
            self.window.items -= 1;
            self.window.tokens -= i128::from(candidate.tokens);
            self.window.score -= candidate.score;
        } else {
            if candidate.to != self.at {
                self.items[index].intervals.extend(candidate.interval());
                candidate.from = self.at;
            }
            candidate.to = Candidate::STILL_IN;
            self.window.items += 1;
            self.window.tokens += i128::from(candidate.tokens);
            self.window.score += candidate.score;
        }
    }

    fn finish(mut self, axis: &Axis<'_>, exact: bool) -> BudgetSweep {
        self.go_to(axis.to + 1);
        for (item, mut candidate) in self.items.iter_mut().zip(self.candidates) {
            candidate.to = candidate.to.min(self.at);
            item.intervals.extend(candidate.interval());
        }
        BudgetSweep {
            exact,
            steps: self.steps,
            items: self.items,
        }
    }
}

/// How many times 2^-64 fits one.
const UNITS: f64 = 18_446_744_073_709_551_616.0;

/// A score in multiples of 2^-64; `None` if it is not finite, or so large that the sum of all
/// candidates could be out of range.
#[expect(
    clippy::cast_possible_truncation,
    reason = "what is less than a multiple is cut off"
)]
fn multiples(score: f64) -> Option<i128> {
    const LARGE: f64 = 2_147_483_648.0;
    (score.abs() < LARGE).then_some((score * UNITS) as i128)
}
