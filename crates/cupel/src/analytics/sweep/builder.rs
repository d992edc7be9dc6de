//! [`SweepBuilder`].

use std::ops::ControlFlow;

use super::axis::Axis;
use super::{BudgetSweep, ItemIntervals, Observer, SweepProgress, SweepStep, ViewInterval};
use crate::model::saturate;
use crate::pipeline::{Choice, PreparedRun};
use crate::slicer::{SweepVisitor, ViewChange};
use crate::{ContextItem, ContextView, CupelError};

/// Builds a sweep, one budget after another in ascending order.
///
/// The slicer reports changes, and a change ends the step before it. Items of 5 and 10 tokens, the
/// latter better:
///
/// ```text
/// change at 5    {5} enters         step 0..=4: nothing
/// change at 10   5 leaves, 10 enters    step 5..=9: {5}, interval 5..=9 of the first item
/// change at 15   5 enters           step 10..=14: {10}
/// end at 20                         step 15..=20: {10, 5}, intervals 15..=20 and 10..=20
/// ```
pub(super) struct SweepBuilder<'s, 'a> {
    prepared: &'s PreparedRun<'a>,
    axis: &'s Axis<'a>,
    observer: Observer<'s>,
    /// Whether the observer stopped the sweep.
    is_stopped: bool,
    /// The first budget whose run does not fail before slicing.
    first_valid: i64,
    /// The current budget, the first of its step.
    at: i64,
    /// The code of the error its run ends with.
    error: Option<&'static str>,
    /// The window at that budget.
    window: Window,
    steps: Vec<SweepStep>,
    candidates: Vec<Candidate>,
    items: Vec<ItemIntervals>,
    /// The candidates whose scores do not fit the fixed-point sum.
    unsummed: Vec<usize>,
}

#[derive(Default)]
struct Window {
    items: usize,
    shortened: usize,
    tokens: i128,
    /// As [`Candidate::score`].
    score: i128,
}

/// A candidate's part in the sums of the window, and its last interval.
struct Candidate {
    /// As it is in the window, or in full.
    tokens: i64,
    /// In multiples of 2^-64: additions to a fixed-point sum can be undone exactly. A sum of binary64
    /// numbers would depend on which items entered and left before.
    score: i128,
    from: i64,
    /// The first budget at which it is out again, or [`STILL_IN`](Self::STILL_IN).
    to: i64,
    /// Its kept view, and the first budget of its interval.
    view: Option<(usize, i64)>,
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

impl<'s, 'a> SweepBuilder<'s, 'a> {
    /// The largest number of steps that are recorded: about 200 MB. 100,000 random items have 1.8 million
    /// up to the budget that holds all of them.
    const MOST_STEPS: usize = 1 << 22;

    /// The number of steps between two calls of the observer: a fraction of a millisecond, so that
    /// Ctrl-C ends a sweep at once and the calls cost nothing.
    const STEPS_PER_CALL: usize = 1 << 12;

    pub(super) fn new(
        prepared: &'s PreparedRun<'a>,
        axis: &'s Axis<'a>,
        observer: Observer<'s>,
    ) -> Self {
        let from = axis.from;
        let items = prepared.items().iter().enumerate();
        let candidate = |(index, item): (usize, &ContextItem)| Candidate {
            tokens: item.tokens(),
            score: multiples(prepared.score(index)).unwrap_or(0),
            from,
            to: from,
            view: None,
        };
        let never = |(index, _)| ItemIntervals {
            index,
            ..ItemIntervals::default()
        };
        let is_unsummed = |index: &usize| multiples(prepared.score(*index)).is_none();
        Self {
            prepared,
            axis,
            observer,
            is_stopped: false,
            first_valid: axis.first_valid(prepared),
            at: from,
            error: None,
            window: Window::default(),
            steps: Vec::new(),
            unsummed: (0..items.len()).filter(is_unsummed).collect(),
            candidates: items.clone().map(candidate).collect(),
            items: items.map(never).collect(),
        }
    }

    /// Goes to the first valid budget, with the pinned items in the window.
    pub(super) fn start(&mut self) {
        let (axis, prepared) = (self.axis, self.prepared);
        // The failures of invalid budgets, pinned items and overflow end in this order, each for good.
        while self.at < self.first_valid {
            let code = |target| axis.failure(prepared, target).map(|error| error.code());
            self.error = code(self.at);
            let next = axis.first(|target| target > self.at && code(target) != self.error);
            self.advance(next);
        }
        self.error = None;
        self.include_pinned();
    }

    fn include_pinned(&mut self) {
        for &candidate in self.prepared.pinned() {
            self.toggle(candidate);
        }
    }

    /// Whether the steps exceeded their limit.
    pub(super) fn is_too_long(&self) -> bool {
        self.steps.len() > Self::MOST_STEPS
    }

    /// Tries budgets one by one. Returns whether these were all budgets.
    pub(super) fn sample(&mut self, samples: usize) -> bool {
        let axis = self.axis;
        let span = axis.to.abs_diff(axis.from);
        let stride = span / samples as u64 + 1;
        let mut before: Option<Result<Choice, &'static str>> = None;
        let mut at = axis.from;
        loop {
            let selected = axis
                .at(at)
                .and_then(|budget| self.prepared.select(&budget))
                .map_err(|error| error.code());
            if before.as_ref() != Some(&selected) {
                self.advance(at);
                for choice in before.iter().flatten().chain(&selected) {
                    for &candidate in &choice.kept {
                        self.toggle(candidate);
                    }
                }
                for (candidate, view) in selected.iter().flat_map(|c| c.shortened.iter()) {
                    self.set_view(candidate, Some(view));
                }
                self.error = selected.as_ref().err().copied();
                before = Some(selected);
            }
            if self.observe(at, true).is_break() {
                self.advance(at + 1);
                return stride == 1;
            }
            let next = at.checked_add_unsigned(stride);
            match next.filter(|&next| next <= axis.to) {
                Some(next) => at = next,
                None => return stride == 1,
            }
        }
    }

    /// Tells the observer of the progress.
    fn observe(&mut self, reached: i64, one_by_one: bool) -> ControlFlow<()> {
        let flow = (self.observer)(SweepProgress {
            first: self.axis.from,
            reached,
            last: self.axis.to,
            one_by_one,
        });
        self.is_stopped = flow.is_break();
        flow
    }

    /// Ends the step if the budget is another one.
    fn advance(&mut self, budget: i64) {
        if budget > self.at {
            self.steps.push(SweepStep {
                from: self.at,
                to: budget - 1,
                tokens_used: saturate(self.window.tokens),
                total_score: self.total_score(),
                included: self.window.items,
                shortened: self.window.shortened,
                excluded: self.candidates.len() - self.window.items,
                error: self.error,
            });
            self.at = budget;
        }
    }

    fn total_score(&self) -> f64 {
        let unsummed = self.unsummed.iter();
        let unsummed = unsummed.filter(|&&index| self.candidates[index].is_in());
        let scores = unsummed.map(|&index| {
            let view = self.candidates[index].view;
            self.prepared.score(index) * self.view_value(index, view.map(|(view, _)| view))
        });
        scores.fold(self.window.score as f64 / UNITS, |sum, score| sum + score)
    }

    /// Returns the share of a candidate's score that a view of it keeps.
    fn view_value(&self, index: usize, view: Option<usize>) -> f64 {
        let views = self.prepared.items()[index].views();
        let view = view.and_then(|view| views.get(view));
        view.and_then(ContextView::value).unwrap_or(1.0)
    }

    /// Sets the kept view of a candidate of the window, or `None` for the item in full.
    fn set_view(&mut self, index: usize, view: Option<usize>) {
        let candidate = &self.candidates[index];
        if !candidate.is_in() || candidate.view.map(|(view, _)| view) == view {
            return;
        }
        let value = self.view_value(index, view);
        let candidate = &mut self.candidates[index];
        let intervals = &mut self.items[index].views;
        if let Some((view, from)) = candidate.view.take() {
            self.window.shortened -= 1;
            intervals.extend(view_interval(view, from, self.at));
        }
        if let Some(view) = view {
            self.window.shortened += 1;
            // The same view up to the budget before: the interval goes on.
            let last = intervals.pop_if(|last| last.view == view && last.to + 1 == self.at);
            candidate.view = Some((view, last.map_or(self.at, |last| last.from)));
        }
        let item = &self.prepared.items()[index];
        let view = view.and_then(|view| item.views().get(view));
        let tokens = view.map_or(item.tokens(), ContextView::tokens);
        let full = self.prepared.score(index);
        // A score that is not part of the sum is not part of it as a view either.
        let score = multiples(full).and_then(|_| multiples(full * value));
        let score = score.unwrap_or(0);
        self.window.tokens += i128::from(tokens) - i128::from(candidate.tokens);
        self.window.score += score - candidate.score;
        (candidate.tokens, candidate.score) = (tokens, score);
    }

    /// Adds the candidate to the window, in full, or removes it.
    fn toggle(&mut self, index: usize) {
        self.set_view(index, None);
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

    pub(super) fn finish(mut self, exact: bool) -> BudgetSweep {
        if !self.is_stopped {
            self.advance(self.axis.to + 1);
        }
        for (item, mut candidate) in self.items.iter_mut().zip(self.candidates) {
            candidate.to = candidate.to.min(self.at);
            item.intervals.extend(candidate.interval());
            let view = candidate.view;
            let view = view.and_then(|(view, from)| view_interval(view, from, self.at));
            item.views.extend(view);
        }
        BudgetSweep {
            exact,
            steps: self.steps,
            items: self.items,
        }
    }
}

impl SweepVisitor for SweepBuilder<'_, '_> {
    fn change(&mut self, target: i64, ranks: &[usize], views: &[ViewChange]) -> ControlFlow<()> {
        let budget = self.axis.first_with_effective(target);
        self.advance(budget.max(self.first_valid));
        if self.is_too_long() {
            return ControlFlow::Break(());
        }
        if self.steps.len() % Self::STEPS_PER_CALL == Self::STEPS_PER_CALL - 1 {
            self.observe(self.at - 1, false)?;
        }
        if self.error.take().is_some() {
            self.include_pinned();
        }
        let ranked = self.prepared.ranked();
        for &rank in ranks {
            if let Some(candidate) = ranked.get(rank) {
                self.toggle(candidate);
            }
        }
        for &(rank, view) in views {
            if let Some(candidate) = ranked.get(rank) {
                self.set_view(candidate, view);
            }
        }
        ControlFlow::Continue(())
    }

    fn fail(&mut self, target: i64, error: CupelError) {
        let budget = self.axis.first_with_effective(target);
        self.advance(budget.max(self.first_valid));
        for index in 0..self.candidates.len() {
            if self.candidates[index].is_in() {
                self.toggle(index);
            }
        }
        self.error = Some(error.code());
    }
}

/// Returns the interval of a view that ends before the budget `end`; `None` if it is empty.
fn view_interval(view: usize, from: i64, end: i64) -> Option<ViewInterval> {
    let to = end - 1;
    (from <= to).then_some(ViewInterval { from, to, view })
}

/// 2^64.
const UNITS: f64 = 18_446_744_073_709_551_616.0;

/// Returns a score in multiples of 2^-64; `None` if it is not finite, or so large that the sum over all
/// candidates could overflow.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the fraction of a multiple is discarded"
)]
fn multiples(score: f64) -> Option<i128> {
    const LARGE: f64 = 2_147_483_648.0;
    (score.abs() < LARGE).then_some((score * UNITS) as i128)
}
