//! Filling a budget in a fixed order: take an item if it fits, else skip it.
//!
//! [`GreedySlice`](super::GreedySlice), [`RankSlice`](super::RankSlice) and
//! [`DensitySlice`](super::DensitySlice) differ in the order alone. A target of 10 and items of
//! 6, 5, 3 and 2 tokens, in that order:
//!
//! ```text
//! item       6   5   3   2
//! room left  10  4   4   1     6 fits, 5 is skipped, 3 fits, 2 is skipped
//! ```
//!
//! More room can therefore drop an item: at a target of 11, 6 and 5 fill it, and 3 is out.
//!
//! | file | answers |
//! |---|---|
//! | `unsorted` | one budget without sorting the list |
//! | `sweep` | all budgets of a range |

mod sweep;
#[cfg(test)]
mod tests;
mod unsorted;

use std::ops::{ControlFlow, RangeInclusive};

pub(super) use self::unsorted::select_unsorted;
use super::{Selection, SweepVisitor};
use crate::fast::parallel;
use crate::order::Ranked;
use crate::{ContextBudget, ScoredRef};

/// Returns the ranks of a ranked list by a key, highest first, ties by rank.
pub(super) fn order(
    ranked: &[ScoredRef<'_>],
    key: impl Fn(&ScoredRef<'_>) -> f64 + Sync,
) -> Vec<usize> {
    let mut order = parallel::map(ranked, |rank, scored| Ranked::new(key(scored), rank));
    parallel::sort(&mut order);
    order.into_iter().map(Ranked::position).collect()
}

/// Takes every item that fits, in this order.
pub(super) fn select(
    order: Vec<usize>,
    ranked: &[ScoredRef<'_>],
    budget: &ContextBudget,
) -> Selection {
    // Without room nothing is kept, not even a free item (SLICER-4).
    if budget.target_tokens() <= 0 {
        return Selection::default();
    }
    // An item with a negative token count frees room, so that the room may exceed 64 bits.
    let mut room = i128::from(budget.target_tokens());
    let fits = |rank: &usize| {
        let tokens = i128::from(ranked[*rank].item.tokens());
        let fits = tokens <= room;
        room -= if fits { tokens } else { 0 };
        fits
    };
    Selection::keep(order.into_iter().filter(fits).collect())
}

/// Visits the choices of all targets of a range, as [`Slicer::sweep`](super::Slicer::sweep).
pub(super) fn sweep(
    order: Vec<usize>,
    ranked: &[ScoredRef<'_>],
    targets: RangeInclusive<i64>,
    visitor: &mut dyn SweepVisitor,
) -> Option<ControlFlow<()>> {
    let (first, last) = targets.into_inner();
    let end = last.checked_add(1)?;
    let ordered = Ordered::new(order, ranked)?;
    // Targets below 1 keep nothing.
    let first = first.max(1);
    if last < first {
        return Some(ControlFlow::Continue(()));
    }
    Some(sweep::sweep(ordered, first..end, visitor))
}

/// The items in the order in which they are taken, free ones apart: these are kept at every target
/// above 0, and the algorithms for many targets need positive token counts.
struct Ordered {
    /// The ranks of items of zero tokens.
    free: Vec<usize>,
    /// The ranks of the others.
    ranks: Vec<usize>,
    /// The tokens of each of `ranks`.
    tokens: Vec<i64>,
}

impl Ordered {
    /// Returns `None` if an item has a negative token count, so that a choice could free tokens.
    fn new(order: Vec<usize>, ranked: &[ScoredRef<'_>]) -> Option<Self> {
        let tokens = |rank: usize| ranked[rank].item.tokens();
        if order.iter().any(|&rank| tokens(rank) < 0) {
            return None;
        }
        let (free, ranks): (Vec<usize>, Vec<usize>) =
            order.into_iter().partition(|&rank| tokens(rank) == 0);
        Some(Self {
            free,
            tokens: ranks.iter().map(|&rank| tokens(rank)).collect(),
            ranks,
        })
    }
}

/// Implements [`Slicer`](super::Slicer) for a slicer that fills the budget in the order of its
/// method `key`, highest first, ties by rank.
macro_rules! fills_by_key {
    () => {
        $crate::slicer::slice_by_select!();

        fn select(
            &self,
            ranked: &[$crate::ScoredRef<'_>],
            budget: &$crate::ContextBudget,
        ) -> Result<$crate::slicer::Selection, $crate::CupelError> {
            let order = $crate::slicer::fill::order(ranked, |scored| self.key(scored));
            Ok($crate::slicer::fill::select(order, ranked, budget))
        }

        fn select_unsorted(
            &self,
            candidates: &[$crate::ScoredRef<'_>],
            budget: &$crate::ContextBudget,
        ) -> Option<Vec<usize>> {
            $crate::slicer::fill::select_unsorted(candidates, budget, |scored| self.key(scored))
        }

        fn fill_order(&self, ranked: &[$crate::ScoredRef<'_>]) -> Option<Vec<usize>> {
            Some($crate::slicer::fill::order(ranked, |scored| {
                self.key(scored)
            }))
        }
    };
}
pub(super) use fills_by_key;
