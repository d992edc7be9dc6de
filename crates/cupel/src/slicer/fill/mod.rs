//! Filling a budget in a fixed order: take an item if it fits, else skip it.
//!
//! [`GreedySlice`](super::GreedySlice), [`RankSlice`](super::RankSlice) and
//! [`DensitySlice`](super::DensitySlice) differ in the order alone.
//!
//! | file | answers |
//! |---|---|
//! | `histogram` | one budget without sorting the list |
//! | `sweep` | all budgets of a range |
//! | `least` | the least budget of every item |

mod histogram;
mod least;
mod sweep;

use std::ops::{ControlFlow, RangeInclusive};

use super::builtin::without;
use super::{BuiltinSlicer, PreparedChoice, Selection, SweepVisitor, Unsorted};
use crate::fast::parallel;
use crate::fast::radix::RadixKey;
use crate::order::{Ranked, descending_key};
use crate::{ContextBudget, ContextKind, CupelError, ScoredRef};

/// A slicer that fills the budget in an order.
pub(super) trait FillOrder {
    /// Returns the number by which items are ordered, highest first, ties by rank.
    fn key(&self, scored: &ScoredRef<'_>) -> f64;

    /// Returns the ranks of a ranked list in that order.
    fn order(&self, ranked: &[ScoredRef<'_>]) -> Vec<usize>;
}

/// Returns the ranks of a ranked list by [`FillOrder::key`].
pub(super) fn sort_by_key(
    slicer: &(impl FillOrder + Sync),
    ranked: &[ScoredRef<'_>],
) -> Vec<usize> {
    let mut order = parallel::map(ranked, |rank, scored| Ranked::new(slicer.key(scored), rank));
    parallel::sort(&mut order);
    order.into_iter().map(Ranked::position).collect()
}

/// Items with a positive token count in the order in which they are taken.
struct Ordered {
    /// The ranks of free items, which every positive target keeps.
    free: Vec<usize>,
    ranks: Vec<usize>,
    /// The tokens of each of `ranks`.
    tokens: Vec<i64>,
}

impl Ordered {
    /// Returns `None` if an item has a negative token count, so that a choice could free tokens.
    fn new(order: &impl FillOrder, ranked: &[ScoredRef<'_>]) -> Option<Self> {
        let tokens = |rank: usize| ranked[rank].item.tokens();
        if (0..ranked.len()).any(|rank| tokens(rank) < 0) {
            return None;
        }
        let (free, ranks): (Vec<usize>, Vec<usize>) = order
            .order(ranked)
            .into_iter()
            .partition(|&rank| tokens(rank) == 0);
        Some(Self {
            free,
            tokens: ranks.iter().map(|&rank| tokens(rank)).collect(),
            ranks,
        })
    }
}

impl<O: FillOrder> BuiltinSlicer for O {
    fn select_in(
        &self,
        _partition: Option<&ContextKind>,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        let mut remaining = i128::from(budget.target_tokens());
        let mut kept = Vec::new();
        if remaining <= 0 {
            return Ok(Selection::default());
        }
        for rank in self.order(ranked) {
            let tokens = i128::from(ranked[rank].item.tokens());
            if tokens <= remaining {
                kept.push(rank);
                remaining -= tokens;
            }
        }
        Ok(Selection::keep(kept))
    }

    fn select_unsorted(&self, list: &Unsorted<'_>, budget: &ContextBudget) -> Option<Vec<usize>> {
        histogram::select(self, list, budget)
    }

    /// Sorts what comes before the item. Each budget is then one walk up to it.
    fn prepare<'a>(&'a self, list: &Unsorted<'_>, wanted: usize) -> Option<PreparedChoice<'a>> {
        let visit = |index: usize, scored: &ScoredRef<'_>| Visit {
            key: descending_key(self.key(scored)),
            score: descending_key(scored.score),
            index,
        };
        let item = list.get(wanted);
        let needed = item.item.tokens();
        let wanted = visit(wanted, &item);
        let mut before = Vec::new();
        for (index, scored) in list.iter().enumerate() {
            let tokens = scored.item.tokens();
            let visit = visit(index, &scored);
            if tokens < 0 {
                return None;
            }
            if visit < wanted {
                before.push(visit);
            }
        }
        parallel::sort(&mut before);
        let tokens = |visit: &Visit| list.get(visit.index).item.tokens();
        let before: Vec<i64> = before.iter().map(tokens).collect();
        Some(Box::new(move |budget| {
            let mut remaining = budget.target_tokens();
            if remaining <= 0 {
                return false;
            }
            for &tokens in &before {
                if remaining < needed {
                    return false;
                }
                if tokens <= remaining {
                    remaining -= tokens;
                }
            }
            needed <= remaining
        }))
    }

    fn sweep(
        &self,
        ranked: &[ScoredRef<'_>],
        targets: RangeInclusive<i64>,
        visitor: &mut dyn SweepVisitor,
    ) -> Option<ControlFlow<()>> {
        let (first, last) = targets.into_inner();
        let end = last.checked_add(1)?;
        let ordered = Ordered::new(self, ranked)?;
        if last < first.max(1) {
            return Some(ControlFlow::Continue(()));
        }
        Some(sweep::sweep(ordered, first.max(1)..end, visitor))
    }

    fn least_targets(&self, ranked: &[ScoredRef<'_>], last: i64) -> Option<Vec<Option<i64>>> {
        let ordered = Ordered::new(self, ranked)?;
        let mut least = vec![None; ranked.len()];
        for &rank in ordered.free.iter().filter(|_| last > 0) {
            least[rank] = Some(1);
        }
        let targets = least::least_targets(&ordered.tokens, last);
        for (&rank, target) in ordered.ranks.iter().zip(targets) {
            least[rank] = target;
        }
        Some(least)
    }

    without! { group_score counts }
}

/// An item's place in the order: the least is taken first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Visit {
    key: u64,
    score: u64,
    index: usize,
}

impl RadixKey for Visit {
    fn radix(self) -> u64 {
        self.key
    }
}
