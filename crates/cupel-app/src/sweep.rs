//! The questions `sweep` and `min_budget`: the window as a function of the budget.

use std::ops::ControlFlow;

use cupel::{BudgetSweep, ItemIntervals, SweepProgress};
use serde::Serialize;

use crate::error::{Error, Fault};
use crate::prepared::Prepared;

/// The window at every budget of a range.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweepAnswer {
    /// The steps, with the tokens of markers, and the budgets of each message or item.
    #[serde(flatten)]
    pub sweep: BudgetSweep,
    /// Whether no budget of the range drops or shortens what a smaller one keeps in full or longer. A policy with a
    /// replay has cuts of its own at each budget.
    pub monotone: bool,
    /// The last budget that was tried, if the observer stopped the search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<i64>,
}

/// The smallest budgets from which on messages or items stay.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MinBudgetAnswer {
    /// Whether every budget was tried, not samples.
    pub exact: bool,
    /// The largest budget that was to be tried.
    pub ceiling: i64,
    /// One entry per message or item, or only the requested one.
    pub items: Vec<MinBudget>,
    /// The last budget that was tried, if the observer stopped the search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<i64>,
}

/// The budgets at which one message or item is included.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MinBudget {
    /// Its position.
    pub index: usize,
    /// The smallest budget from which on it stays.
    pub min_budget: Option<i64>,
    /// The smallest budget from which on it stays in full.
    pub in_full: Option<i64>,
    /// All ranges that include it.
    pub ranges: Vec<(i64, i64)>,
}

impl MinBudget {
    /// Reads the budgets off a sweep that ends at `last`.
    fn new(item: &ItemIntervals, last: i64) -> Self {
        let stays = item.intervals.last().filter(|(_, to)| *to >= last);
        let forms = item.forms();
        let in_full = forms
            .last()
            .filter(|(_, to, view)| *to >= last && view.is_none());
        Self {
            index: item.index,
            min_budget: stays.map(|(from, _)| *from),
            in_full: in_full.map(|(from, _, _)| *from),
            ranges: item.intervals.clone(),
        }
    }

    /// Returns the ranges below the one from which on the item stays.
    pub fn below(&self) -> &[(i64, i64)] {
        match self.min_budget {
            Some(_) => &self.ranges[..self.ranges.len() - 1],
            None => &self.ranges,
        }
    }

    /// Returns the smallest budget in full, if the item is shortened at smaller ones.
    pub fn shortened_below(&self) -> Option<i64> {
        self.in_full.filter(|_| self.in_full != self.min_budget)
    }
}

/// Returns whether a message or item, once it is in the window, stays there at all larger budgets, and never in a shorter
/// form. Views are in the order of their size, largest first.
fn is_monotone(item: &ItemIntervals) -> bool {
    let forms = item.forms();
    let rank = |view: Option<usize>| view.map_or(0, |view| view + 1);
    let mut pairs = forms.windows(2);
    item.intervals.len() <= 1 && pairs.all(|pair| rank(pair[0].2) >= rank(pair[1].2))
}

/// Watches a search over budgets: it is called between runs, and ends the search with
/// [`ControlFlow::Break`]. The answer then covers the budgets up to that point.
pub type Observer<'o> = &'o mut dyn FnMut(SweepProgress) -> ControlFlow<()>;

impl Prepared {
    /// Returns the window at every budget from `from` to `to`, which defaults to the tokens of all candidates.
    ///
    /// # Errors
    ///
    /// [`Fault::EmptyRange`] and [`Fault::Run`].
    pub fn sweep(
        &self,
        from: i64,
        to: Option<i64>,
        observer: Observer<'_>,
    ) -> Result<SweepAnswer, Error> {
        if let Some(to) = to.filter(|to| *to < from) {
            return Err(Fault::EmptyRange { from, to }.into());
        }
        let to = to.unwrap_or_else(|| self.all_tokens().max(from));
        let (mut sweep, stopped_at) = self.observed(from, to, observer)?;
        self.add_markers(&mut sweep);
        Ok(SweepAnswer {
            monotone: sweep.items.iter().all(is_monotone),
            sweep,
            stopped_at,
        })
    }

    /// Finds the smallest budget from which on `item`, or every message or item, stays, up to `ceiling`, which
    /// defaults to the tokens of all candidates.
    ///
    /// # Errors
    ///
    /// [`Fault::OutOfRange`] and [`Fault::Run`].
    pub fn min_budget(
        &self,
        item: Option<usize>,
        ceiling: Option<i64>,
        observer: Observer<'_>,
    ) -> Result<MinBudgetAnswer, Error> {
        if let Some(item) = item {
            self.check_index(item)?;
        }
        let ceiling = ceiling.unwrap_or_else(|| self.all_tokens());
        let (sweep, stopped_at) = self.observed(0, ceiling, observer)?;
        let last = stopped_at.unwrap_or(ceiling);
        let requested = match item {
            Some(item) => &sweep.items[item..=item],
            None => &sweep.items[..],
        };
        let items = requested.iter().map(|item| MinBudget::new(item, last));
        Ok(MinBudgetAnswer {
            exact: sweep.exact,
            ceiling,
            items: items.collect(),
            stopped_at,
        })
    }

    /// Sweeps, and returns the budget at which the observer stopped the search.
    fn observed(
        &self,
        from: i64,
        to: i64,
        observer: Observer<'_>,
    ) -> Result<(BudgetSweep, Option<i64>), Error> {
        let mut stopped_at = None;
        let sweep = self.swept(from..=to, &mut |progress: SweepProgress| {
            let reached = progress.reached;
            let flow = observer(progress);
            stopped_at = flow.is_break().then_some(reached);
            flow
        })?;
        Ok((sweep, stopped_at))
    }
}
