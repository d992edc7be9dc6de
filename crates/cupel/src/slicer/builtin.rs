//! [`BuiltinSlicer`]: what the pipeline asks of a built-in slicer beyond [`Slicer::select`].

use std::ops::{ControlFlow, RangeInclusive};

use super::count::Counts;
use super::{GroupScore, Selection, Slicer};
use crate::fast::parallel;
use crate::order::Ranked;
use crate::{ContextBudget, ContextItem, ContextKind, CupelError, ScoredRef};

/// Shortcuts of the built-in slicers, see [`Slicer::builtin`]. Not part of the public interface.
///
/// No method has a default: every built-in slicer says for each whether it has the shortcut. An
/// answer has to agree with [`Slicer::select`] on the ranked list.
#[doc(hidden)]
pub trait BuiltinSlicer {
    /// Selects as [`Slicer::select`], inside the partition of a kind if there is one: then only that
    /// kind's count entries apply.
    ///
    /// # Errors
    ///
    /// As [`Slicer::select`].
    fn select_in(
        &self,
        partition: Option<&ContextKind>,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError>;

    /// Returns the kept indices of a list in any order: the choice from the list sorted by score, ties
    /// by index. `None` if the list has to be sorted, or if there may be refusals.
    fn select_unsorted(&self, list: &Unsorted<'_>, budget: &ContextBudget) -> Option<Vec<usize>>;

    /// Returns a function that tells for any budget whether the item at the index `wanted` is kept.
    /// Only for slicers that neither fail nor exceed their target.
    fn prepare<'a>(&'a self, list: &Unsorted<'_>, wanted: usize) -> Option<PreparedChoice<'a>>;

    /// Visits the choices for a range of targets in ascending order. Only for slicers whose choice
    /// depends on the target alone and never exceeds it. Returns `None`, without a visit, if it
    /// cannot.
    fn sweep(
        &self,
        ranked: &[ScoredRef<'_>],
        targets: RangeInclusive<i64>,
        visitor: &mut dyn SweepVisitor,
    ) -> Option<ControlFlow<()>>;

    /// Returns for every rank the least target from 1 to `last` at which the item is kept, if the
    /// slicer knows it without a sweep.
    fn least_targets(&self, ranked: &[ScoredRef<'_>], last: i64) -> Option<Vec<Option<i64>>>;

    /// Returns what a group scores, if this slicer makes groups.
    fn group_score(&self) -> Option<GroupScore>;

    /// Returns the counts per kind, if this slicer has any.
    fn counts(&self) -> Option<&Counts>;
}

/// Answers `None` for the methods of [`BuiltinSlicer`] that it lists.
#[doc(hidden)]
#[macro_export]
macro_rules! without {
    ($($method:ident)*) => { $($crate::without! { @$method })* };
    (@select_unsorted) => {
        fn select_unsorted(
            &self,
            _: &$crate::slicer::Unsorted<'_>,
            _: &$crate::ContextBudget,
        ) -> Option<Vec<usize>> {
            None
        }
    };
    (@prepare) => {
        fn prepare<'a>(
            &'a self,
            _: &$crate::slicer::Unsorted<'_>,
            _: usize,
        ) -> Option<$crate::slicer::PreparedChoice<'a>> {
            None
        }
    };
    (@sweep) => {
        fn sweep(
            &self,
            _: &[$crate::ScoredRef<'_>],
            _: std::ops::RangeInclusive<i64>,
            _: &mut dyn $crate::slicer::SweepVisitor,
        ) -> Option<std::ops::ControlFlow<()>> {
            None
        }
    };
    (@least_targets) => {
        fn least_targets(&self, _: &[$crate::ScoredRef<'_>], _: i64) -> Option<Vec<Option<i64>>> {
            None
        }
    };
    (@group_score) => {
        fn group_score(&self) -> Option<$crate::slicer::GroupScore> {
            None
        }
    };
    (@counts) => {
        fn counts(&self) -> Option<&$crate::slicer::Counts> {
            None
        }
    };
}
pub(super) use without;

/// Implements the methods of [`Slicer`] that a built-in one derives from
/// [`BuiltinSlicer::select_in`].
#[doc(hidden)]
#[macro_export]
macro_rules! selects_in_partitions {
    () => {
        fn slice(
            &self,
            sorted: &[$crate::ScoredItem],
            budget: &$crate::ContextBudget,
        ) -> Result<Vec<$crate::ContextItem>, $crate::CupelError> {
            $crate::slicer::slice_by_selection(self, sorted, budget)
        }

        fn select(
            &self,
            ranked: &[$crate::ScoredRef<'_>],
            budget: &$crate::ContextBudget,
        ) -> Result<$crate::slicer::Selection, $crate::CupelError> {
            self.select_in(None, ranked, budget)
        }

        fn builtin(&self) -> Option<&dyn $crate::slicer::BuiltinSlicer> {
            Some(self)
        }
    };
}
pub(super) use selects_in_partitions;

/// Receives the choices of a [`BuiltinSlicer::sweep`] as changes. Nothing is chosen before the first.
#[doc(hidden)]
pub trait SweepVisitor {
    /// From `target` on the items of these ranks enter the choice, in full, or leave it if they were in
    /// it. A rank that is listed twice stays as it was. Then the items of `views`, which are in
    /// the choice, are kept as these views, or in full.
    fn change(&mut self, target: i64, ranks: &[u32], views: &[ViewChange]) -> ControlFlow<()>;

    /// From `target` to the next change the slicer fails, so that nothing is chosen.
    fn fail(&mut self, target: i64, error: CupelError);
}

/// A rank, and the index of its view or `None` for the item in full.
#[doc(hidden)]
pub type ViewChange = (u32, Option<usize>);

/// Converts a rank to the type that [`SweepVisitor::change`] takes.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a run has at most u32::MAX candidates"
)]
pub(super) fn rank_to_u32(rank: usize) -> u32 {
    rank as u32
}

/// Tells whether an item is kept at a budget, see [`BuiltinSlicer::prepare`].
#[doc(hidden)]
pub type PreparedChoice<'a> = Box<dyn Fn(&ContextBudget) -> bool + 'a>;

/// Some of the candidates of a run with their scores, in any order.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Unsorted<'a> {
    items: &'a [ContextItem],
    scores: &'a [f64],
    /// The positions of the listed candidates in both.
    positions: &'a [u32],
}

impl<'a> Unsorted<'a> {
    pub(crate) fn new(items: &'a [ContextItem], scores: &'a [f64], positions: &'a [u32]) -> Self {
        Self {
            items,
            scores,
            positions,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.positions.len()
    }

    pub(super) fn get(&self, index: usize) -> ScoredRef<'a> {
        self.scored(self.positions[index])
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = ScoredRef<'a>> {
        self.positions.iter().map(|&position| self.scored(position))
    }

    fn scored(&self, position: u32) -> ScoredRef<'a> {
        let position = position as usize;
        ScoredRef::new(&self.items[position], self.scores[position], position)
    }

    /// Returns the indices by score, ties by index.
    pub(super) fn ranked(&self) -> Vec<usize> {
        let mut ranked = parallel::map(self.positions, |index, &position| {
            Ranked::new(self.scores[position as usize], index)
        });
        parallel::sort(&mut ranked);
        ranked.into_iter().map(Ranked::position).collect()
    }
}

/// Returns a slicer and the slicers it wraps, outermost first.
pub(crate) fn chain(slicer: &dyn Slicer) -> impl Iterator<Item = &dyn Slicer> {
    std::iter::successors(Some(slicer), |slicer| (**slicer).inner())
}

/// Returns what a group scores if a [`GroupSlice`](super::GroupSlice) takes part in the choice, here
/// or in a wrapped slicer.
pub(super) fn group_score(slicer: &dyn Slicer) -> Option<GroupScore> {
    chain(slicer).find_map(|slicer| slicer.builtin()?.group_score())
}

/// Returns the counts of a slicer and of those it wraps, outermost first.
pub(super) fn counts_in(slicer: &dyn Slicer) -> impl Iterator<Item = &Counts> {
    chain(slicer).filter_map(|slicer| slicer.builtin()?.counts())
}

/// Selects with any slicer inside the partition of a kind, if there is one.
pub(super) fn select_in(
    slicer: &dyn Slicer,
    partition: Option<&ContextKind>,
    ranked: &[ScoredRef<'_>],
    budget: &ContextBudget,
) -> Result<Selection, CupelError> {
    match slicer.builtin() {
        Some(builtin) => builtin.select_in(partition, ranked, budget),
        None => slicer.select(ranked, budget),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{DensitySlice, GreedySlice, GroupSlice, KnapsackSlice, RankSlice};

    /// Tokens, score and group; an empty name is none.
    type Row = (i64, f64, &'static str);

    /// Free items, ties, and groups of three, two and one.
    const ROWS: [Row; 9] = [
        (7, 0.5, ""),
        (0, 0.1, "a"),
        (3, 0.9, "a"),
        (5, 0.9, ""),
        (0, 0.0, ""),
        (4, 0.2, "b"),
        (2, 0.5, "b"),
        (6, 0.7, "a"),
        (3, 0.9, "c"),
    ];

    /// Collects the choices of a sweep by target.
    #[derive(Default)]
    struct Choices {
        chosen: BTreeSet<u32>,
        changes: Vec<(i64, BTreeSet<u32>)>,
    }

    impl SweepVisitor for Choices {
        fn change(&mut self, target: i64, ranks: &[u32], views: &[ViewChange]) -> ControlFlow<()> {
            assert!(views.is_empty());
            for rank in ranks {
                if !self.chosen.remove(rank) {
                    self.chosen.insert(*rank);
                }
            }
            self.changes.push((target, self.chosen.clone()));
            ControlFlow::Continue(())
        }

        fn fail(&mut self, target: i64, error: CupelError) {
            panic!("{target}: {error}");
        }
    }

    /// Compares the shortcuts of a slicer with its choices. Returns whether it has `select_unsorted`,
    /// `prepare`, `least_targets` and `sweep`.
    fn check(slicer: &dyn Slicer, rows: &[Row]) -> [bool; 4] {
        let item = |&(tokens, _, group): &Row| {
            let item = ContextItem::builder("x", tokens);
            let item = match group {
                "" => item,
                name => item.meta(GroupSlice::KEY, name),
            };
            item.build().unwrap()
        };
        // The first candidate is not listed.
        let all = || std::iter::once(&(1, 1.0, "")).chain(rows);
        let items: Vec<ContextItem> = all().map(item).collect();
        let scores: Vec<f64> = all().map(|(_, score, _)| *score).collect();
        let positions: Vec<u32> = (1..).take(rows.len()).collect();
        let list = Unsorted::new(&items, &scores, &positions);
        let mut ranking: Vec<usize> = (0..rows.len()).collect();
        ranking.sort_by(|&a, &b| rows[b].1.total_cmp(&rows[a].1));
        let ranked: Vec<ScoredRef<'_>> = ranking.iter().map(|&index| list.get(index)).collect();

        let builtin = slicer.builtin().unwrap();
        let limits = |target| ContextBudget::with_target(target, target).unwrap();
        let last = 40;
        let choices = (0..=last).map(|target| {
            let selection = slicer.select(&ranked, &limits(target)).unwrap();
            let mut kept: Vec<usize> = selection.kept().iter().map(|&r| ranking[r]).collect();
            kept.sort_unstable();
            kept
        });
        let choices: Vec<Vec<usize>> = choices.collect();
        let unsorted = (0..).zip(&choices).map(|(target, kept)| {
            let mut chosen = builtin.select_unsorted(&list, &limits(target))?;
            chosen.sort_unstable();
            assert_eq!(chosen, *kept, "at {target}");
            Some(())
        });
        let prepared = (0..rows.len()).map(|index| {
            let is_chosen = builtin.prepare(&list, index)?;
            for (target, kept) in (0..).zip(&choices) {
                let is_kept = kept.contains(&index);
                assert_eq!(is_chosen(&limits(target)), is_kept, "{index} at {target}");
            }
            Some(())
        });
        let least = [0, 1, 9, last].map(|last| {
            let least = builtin.least_targets(&ranked, last)?;
            let expected = ranking.iter().map(|index| {
                let mut targets = (1..=last).zip(&choices[1..]);
                targets.find(|(_, kept)| kept.contains(index)).map(|t| t.0)
            });
            assert_eq!(least, expected.collect::<Vec<_>>(), "up to {last}");
            Some(())
        });
        let ranges = (0..=last).flat_map(|from| (from..=last).map(move |to| (from, to)));
        let swept = ranges.map(|(from, to)| {
            let mut sweep = Choices::default();
            let _ = builtin.sweep(&ranked, from..=to, &mut sweep)?;
            for (target, kept) in (0..)
                .zip(&choices)
                .filter(|(at, _)| (from..=to).contains(at))
            {
                let change = sweep.changes.iter().rfind(|(at, _)| *at <= target);
                let chosen = change.into_iter().flat_map(|(_, chosen)| chosen);
                let mut chosen: Vec<usize> = chosen.map(|&r| ranking[r as usize]).collect();
                chosen.sort_unstable();
                assert_eq!(chosen, *kept, "at {target} of {from} to {to}");
            }
            let mut targets = sweep.changes.iter().map(|(target, _)| *target);
            assert!(targets.clone().is_sorted() && targets.all(|at| (from..=to).contains(&at)));
            Some(())
        });
        [
            unsorted.collect::<Option<()>>().is_some(),
            prepared.collect::<Option<()>>().is_some(),
            least.into_iter().collect::<Option<()>>().is_some(),
            swept.collect::<Option<()>>().is_some(),
        ]
    }

    #[test]
    fn shortcuts_agree_with_the_choice() {
        let group = |inner: Box<dyn Slicer>| Box::new(GroupSlice::new(inner)) as Box<dyn Slicer>;
        let alone = ROWS.map(|(tokens, score, _)| (tokens, score, ""));
        let (all, none) = ([true; 4], [false; 4]);
        let (ranked_only, sweep_only) = ([false, true, true, true], [false, false, false, true]);
        let fills: [fn() -> Box<dyn Slicer>; 3] = [
            || Box::new(GreedySlice),
            || Box::new(RankSlice),
            || Box::new(DensitySlice::new(0.5).unwrap()),
        ];
        for fill in fills {
            assert_eq!(check(&fill(), &alone), all);
            assert_eq!(check(&group(fill()), &alone), all);
            assert_eq!(check(&group(fill()), &ROWS), ranked_only);
            // An item that frees tokens.
            let mut rows = alone;
            rows[5].0 = -4;
            assert_eq!(check(&fill(), &rows), none);
        }
        let knapsack = KnapsackSlice::new(1).unwrap();
        assert_eq!(check(&knapsack, &alone), sweep_only);
        assert_eq!(check(&group(Box::new(knapsack)), &ROWS), sweep_only);
    }
}
