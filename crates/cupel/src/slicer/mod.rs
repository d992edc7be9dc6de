//! Slicers choose the items that fit the token budget.
//!
//! | slicer | chooses | cost |
//! |---|---|---|
//! | [`GreedySlice`] | by score per token, best first | one sort |
//! | [`RankSlice`] | by score, best first | one sort |
//! | [`DensitySlice`] | by score per power of the tokens, best first | one sort |
//! | [`DiversitySlice`] | by score less similarity to what is chosen, best first | one heap, and few comparisons of texts per item |
//! | [`KnapsackSlice`] | the set with the highest total score | items times budget buckets |
//! | [`QuotaSlice`] | within percentage shares per kind, through an inner slicer | the inner slicer per kind |
//! | [`CountQuotaSlice`] | with item counts per kind, through an inner slicer | one sort and the inner slicer |
//! | [`CountConstrainedKnapsackSlice`] | with item counts per kind, through a knapsack | one sort and the knapsack |
//! | [`GroupSlice`] | whole groups of items, through an inner slicer | one sort and the inner slicer |
//! | [`NearDuplicateSlice`] | no item similar to a better one, through an inner slicer | one pass over the texts, and the inner slicer a few times |
//! | [`LadderSlice`] | items in full, then their views, then fewer items | one pass per state |
//! | [`ChoiceSlice`] | items and views with the highest total score | items times views times target |
//! | `StreamSlice` (feature `stream`) | from an asynchronous stream, batch by batch | one sort per batch |
//!
//! [`RankSlice`], [`DensitySlice`], [`DiversitySlice`], [`GroupSlice`], [`NearDuplicateSlice`], [`LadderSlice`] and
//! [`ChoiceSlice`] are additions to the specification.

mod choice;
mod count;
mod density;
mod diversity;
mod fill;
mod greedy;
mod group;
mod knapsack;
mod ladder;
mod near_duplicate;
mod quota;
mod rank;
mod selection;
mod shingles;
#[cfg(feature = "stream")]
mod stream;
mod visitor;

use std::collections::HashMap;
use std::fmt;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

pub use choice::ChoiceSlice;
pub use count::{
    CountConstrainedKnapsackSlice, CountQuotaEntry, CountQuotaSlice, ScarcityBehavior,
};
pub use density::DensitySlice;
pub use diversity::{DiversitySlice, Similarity};
pub use greedy::GreedySlice;
pub use group::{GroupScore, GroupSlice};
pub use knapsack::KnapsackSlice;
pub use ladder::{LadderSlice, LadderStep};
pub use near_duplicate::NearDuplicateSlice;
pub use quota::{QuotaEntry, QuotaSlice};
pub use rank::RankSlice;
pub use selection::{Refusal, Selection};
pub(crate) use selection::{check_distinct_positions, match_handles};
#[cfg(feature = "stream")]
pub use stream::StreamSlice;
pub use visitor::{SweepVisitor, ViewChange};

#[cfg(feature = "serde")]
use crate::config::{ConfigError, SlicerConfig};
use crate::type_name::type_name;
use crate::{ContextBudget, ContextItem, ContextKind, CupelError, ScoredItem, ScoredRef};

/// Chooses a subset of the ranked items that fits a budget.
///
/// Only [`slice`](Self::slice) is required. It returns some of the items it received, or views of
/// them ([`ContextItem::as_view`]): no others, none twice (SLICER-1); their tokens stay within
/// `budget.target_tokens()`;
/// an empty list or a target of zero gives an empty list (SLICER-4). A run whose slicer
/// breaks the first rule ends with [`CupelError::Contract`].
///
/// A decorator, a slicer that wraps another, also implements [`inner`](Self::inner), and
/// `to_config` if a document can name it.
///
/// ```
/// use cupel::{ContextBudget, ContextItem, CupelError, ScoredItem, Slicer};
///
/// /// Takes the best items until the first that does not fit.
/// struct PrefixSlice;
///
/// impl Slicer for PrefixSlice {
///     fn slice(
///         &self,
///         sorted: &[ScoredItem],
///         budget: &ContextBudget,
///     ) -> Result<Vec<ContextItem>, CupelError> {
///         let mut left = budget.target_tokens();
///         let mut kept = Vec::new();
///         for scored in sorted {
///             if left <= 0 || scored.item.tokens() > left {
///                 break;
///             }
///             left -= scored.item.tokens();
///             kept.push(scored.item.clone());
///         }
///         Ok(kept)
///     }
/// }
///
/// let scored = |content: &str, tokens, score| -> Result<ScoredItem, CupelError> {
///     Ok(ScoredItem { item: ContextItem::builder(content, tokens).build()?, score })
/// };
/// let sorted = [scored("a", 60, 0.9)?, scored("b", 60, 0.8)?, scored("c", 10, 0.7)?];
/// let kept = PrefixSlice.slice(&sorted, &ContextBudget::with_target(100, 100)?)?;
/// assert_eq!(kept.len(), 1);
/// # Ok::<(), CupelError>(())
/// ```
pub trait Slicer: Send + Sync {
    /// Returns the chosen items, in any order, from a list sorted by score, best first.
    ///
    /// # Errors
    ///
    /// Any error that makes a choice impossible. The run ends with it.
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError>;

    /// Returns the choice by rank, with the slicer's own reasons. The pipeline calls this method.
    ///
    /// The provided method calls [`slice`](Self::slice) and finds the chosen items by their
    /// handles, and views by their content. A slicer that implements this one saves that work and can say why an item was refused
    /// and which requirements were not met. It implements `slice` with [`slice_by_selection`].
    ///
    /// # Errors
    ///
    /// As [`slice`](Self::slice), and [`CupelError::Contract`] if it returned an item it was not
    /// offered, or one twice.
    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        let sorted: Vec<ScoredItem> = ranked
            .iter()
            .map(|scored| scored.to_scored_item())
            .collect();
        let kept = self.slice(&sorted, budget)?;
        Selection::by_identity(ranked, &kept)
    }

    /// Returns the slicer that this one wraps.
    ///
    /// Defaults to `None`. A slicer that wraps another returns it here; the questions below
    /// and the slicer's [`name`](Self::slicer_name) in debug output are then answered through it.
    fn inner(&self) -> Option<&dyn Slicer> {
        None
    }

    /// Selects from a part of the candidates: those of one kind, within its share of a
    /// [`QuotaSlice`]. Without a kind it selects as [`select`](Self::select).
    ///
    /// Defaults to `select`. A slicer with rules per kind applies only those of `kind`; a slicer that
    /// wraps another passes the kind on.
    ///
    /// # Errors
    ///
    /// As [`select`](Self::select).
    fn select_in(
        &self,
        kind: Option<&ContextKind>,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        let _ = kind;
        self.select(ranked, budget)
    }

    /// Returns the kept indices of candidates in input order, if the slicer needs no ranking: those
    /// that [`select`](Self::select) keeps of the list sorted by score, ties by position, in any
    /// order. The pipeline then sorts only them.
    ///
    /// Defaults to `None`: the pipeline sorts the list and calls `select`. A slicer that may fail, keep views or
    /// give reasons must return `None`.
    fn select_unsorted(
        &self,
        candidates: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Option<Vec<usize>> {
        let _ = (candidates, budget);
        None
    }

    /// Returns all ranks in the order in which the slicer fills the budget, if that is all it does:
    /// it takes every item that still fits, and skips the others.
    ///
    /// Defaults to `None`. A slicer that returns an order gets [`sweep`](Self::sweep) from it.
    ///
    /// ```
    /// use cupel::slicer::slice_by_selection;
    /// use cupel::*;
    ///
    /// /// Takes the shortest items first.
    /// struct ShortestFirst;
    ///
    /// impl Slicer for ShortestFirst {
    ///     fn slice(
    ///         &self,
    ///         sorted: &[ScoredItem],
    ///         budget: &ContextBudget,
    ///     ) -> Result<Vec<ContextItem>, CupelError> {
    ///         slice_by_selection(self, sorted, budget)
    ///     }
    ///
    ///     fn select(
    ///         &self,
    ///         ranked: &[ScoredRef<'_>],
    ///         budget: &ContextBudget,
    ///     ) -> Result<Selection, CupelError> {
    ///         let mut left = budget.target_tokens();
    ///         let mut order = self.fill_order(ranked).unwrap_or_default();
    ///         order.retain(|&rank| {
    ///             let fits = budget.target_tokens() > 0 && ranked[rank].item.tokens() <= left;
    ///             left -= if fits { ranked[rank].item.tokens() } else { 0 };
    ///             fits
    ///         });
    ///         Ok(Selection::keep(order))
    ///     }
    ///
    ///     fn fill_order(&self, ranked: &[ScoredRef<'_>]) -> Option<Vec<usize>> {
    ///         let mut order: Vec<usize> = (0..ranked.len()).collect();
    ///         order.sort_by_key(|&rank| ranked[rank].item.tokens());
    ///         Some(order)
    ///     }
    /// }
    ///
    /// let items = [
    ///     ContextItem::builder("long", 30).build()?,
    ///     ContextItem::builder("short", 20).build()?,
    /// ];
    /// let pipeline = Pipeline::new(RecencyScorer, ShortestFirst, ChronologicalPlacer);
    /// let sweep = pipeline.sweep(&items, &ContextBudget::with_target(50, 50)?, 0..=1_000_000_000)?;
    /// assert!(sweep.exact);
    /// assert_eq!(sweep.min_budget(0), Some(50));
    /// # Ok::<(), CupelError>(())
    /// ```
    fn fill_order(&self, ranked: &[ScoredRef<'_>]) -> Option<Vec<usize>> {
        let _ = ranked;
        None
    }

    /// Visits the choices for a range of targets, in ascending order of the target, as changes from
    /// one choice to the next. Returns `None`, without a visit, if the slicer has no faster way than
    /// to try each target; [`Pipeline::sweep`](crate::Pipeline::sweep) then does so.
    ///
    /// Defaults to the choices of the [`fill_order`](Self::fill_order). It is not passed on to
    /// [`inner`](Self::inner), because a decorator changes the choice. Only for slicers whose choice
    /// depends on the target alone, not on the maximum, and never exceeds it.
    fn sweep(
        &self,
        ranked: &[ScoredRef<'_>],
        targets: RangeInclusive<i64>,
        visitor: &mut dyn SweepVisitor,
    ) -> Option<ControlFlow<()>> {
        fill::sweep(self.fill_order(ranked)?, ranked, targets, visitor)
    }

    /// Returns how a group is scored, if the slicer keeps or drops groups as a whole, as
    /// [`GroupSlice`] does. Quotas around it then divide groups, not items, by kind. Defaults to the
    /// inner slicer's answer.
    fn group_score(&self) -> Option<GroupScore> {
        self.inner()?.group_score()
    }

    /// Returns the item counts per kind that this slicer requires and allows, and what it does if a
    /// kind has fewer candidates. Defaults to `None`; those of wrapped slicers are not part of it.
    fn counts(&self) -> Option<(&[CountQuotaEntry], ScarcityBehavior)> {
        None
    }

    /// Returns the slicer's name in debug output. Defaults to the name of its type.
    fn slicer_name(&self) -> &str {
        type_name::<Self>()
    }

    /// Returns whether a [`KnapsackSlice`] chooses from the whole list, which [`CountQuotaSlice`] does
    /// not accept. Defaults to the inner slicer's answer.
    fn is_knapsack(&self) -> bool {
        self.inner().is_some_and(Slicer::is_knapsack)
    }

    /// Returns whether percentage shares take part in the choice, here or in a wrapped slicer.
    /// Defaults to the inner slicer's answer.
    fn is_quota(&self) -> bool {
        self.inner().is_some_and(Slicer::is_quota)
    }

    /// Returns whether item counts take part in the choice, here or in a wrapped slicer. Defaults to
    /// the inner slicer's answer.
    fn is_count_quota(&self) -> bool {
        self.inner().is_some_and(Slicer::is_count_quota)
    }

    /// Returns the largest item count per kind, for kinds that have one. Defaults to the inner slicer's
    /// answer.
    fn count_cap_map(&self) -> HashMap<ContextKind, usize> {
        self.inner().map(Slicer::count_cap_map).unwrap_or_default()
    }

    /// Returns the ladder that shortens and drops the items, this slicer itself or one that it wraps.
    ///
    /// It is for a caller that prepares the items, such as the crate for chats: only a ladder keeps items that are
    /// marked as mandatory, and its steps say which views it can use. Defaults to the inner slicer's answer.
    fn ladder(&self) -> Option<&LadderSlice> {
        self.inner().and_then(Slicer::ladder)
    }

    /// Returns this slicer with another [`ladder`](Self::ladder) in the place of its own, or nothing
    /// if it has none.
    ///
    /// A decorator rebuilds itself around what its inner slicer returns. Defaults to nothing: the ladder inside of
    /// a decorator without this method cannot be adapted, and a caller that has to adapt it fails.
    fn with_ladder(&self, ladder: LadderSlice) -> Option<Arc<dyn Slicer>> {
        let _ = ladder;
        None
    }

    /// Returns the kinds that this slicer treats differently from others, here or in a wrapped slicer.
    ///
    /// A kind may be listed more than once. Defaults to the inner slicer's answer.
    fn kinds(&self) -> Vec<ContextKind> {
        self.inner().map(Slicer::kinds).unwrap_or_default()
    }

    /// Returns whether the contents of items take part in the choice, here or in a wrapped slicer.
    ///
    /// A caller without the contents, such as one that replays a log of token counts, does not run
    /// a policy that reads them. Defaults to the inner slicer's answer, without one to `false`.
    fn reads_content(&self) -> bool {
        self.inner().is_some_and(Slicer::reads_content)
    }

    /// Returns this slicer as data, for [`PolicyConfig::of`](crate::config::PolicyConfig::of).
    ///
    /// # Errors
    ///
    /// [`ConfigError::not_data`], as provided, for a slicer that no document can name.
    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<SlicerConfig, ConfigError> {
        Err(ConfigError::not_data(std::any::type_name::<Self>()))
    }
}

/// Prints the names of a slicer and of the slicers it wraps: `GroupSlice(GreedySlice)`.
impl fmt::Debug for dyn Slicer + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slicer_name())?;
        match self.inner() {
            Some(inner) => write!(f, "({inner:?})"),
            None => Ok(()),
        }
    }
}

/// Implements [`Slicer`] for pointers to slicers.
macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<T: Slicer + ?Sized> Slicer for $pointer {
            fn slice(
                &self,
                sorted: &[ScoredItem],
                budget: &ContextBudget,
            ) -> Result<Vec<ContextItem>, CupelError> {
                (**self).slice(sorted, budget)
            }

            fn select(
                &self,
                ranked: &[ScoredRef<'_>],
                budget: &ContextBudget,
            ) -> Result<Selection, CupelError> {
                (**self).select(ranked, budget)
            }

            fn inner(&self) -> Option<&dyn Slicer> {
                (**self).inner()
            }

            fn select_in(
                &self,
                kind: Option<&ContextKind>,
                ranked: &[ScoredRef<'_>],
                budget: &ContextBudget,
            ) -> Result<Selection, CupelError> {
                (**self).select_in(kind, ranked, budget)
            }

            fn select_unsorted(
                &self,
                candidates: &[ScoredRef<'_>],
                budget: &ContextBudget,
            ) -> Option<Vec<usize>> {
                (**self).select_unsorted(candidates, budget)
            }

            fn fill_order(&self, ranked: &[ScoredRef<'_>]) -> Option<Vec<usize>> {
                (**self).fill_order(ranked)
            }

            fn sweep(
                &self,
                ranked: &[ScoredRef<'_>],
                targets: RangeInclusive<i64>,
                visitor: &mut dyn SweepVisitor,
            ) -> Option<ControlFlow<()>> {
                (**self).sweep(ranked, targets, visitor)
            }

            fn group_score(&self) -> Option<GroupScore> {
                (**self).group_score()
            }

            fn counts(&self) -> Option<(&[CountQuotaEntry], ScarcityBehavior)> {
                (**self).counts()
            }

            fn slicer_name(&self) -> &str {
                (**self).slicer_name()
            }

            fn is_knapsack(&self) -> bool {
                (**self).is_knapsack()
            }

            fn is_quota(&self) -> bool {
                (**self).is_quota()
            }

            fn is_count_quota(&self) -> bool {
                (**self).is_count_quota()
            }

            fn count_cap_map(&self) -> HashMap<ContextKind, usize> {
                (**self).count_cap_map()
            }

            fn ladder(&self) -> Option<&LadderSlice> {
                (**self).ladder()
            }

            fn with_ladder(&self, ladder: LadderSlice) -> Option<Arc<dyn Slicer>> {
                (**self).with_ladder(ladder)
            }

            fn kinds(&self) -> Vec<ContextKind> {
                (**self).kinds()
            }

            fn reads_content(&self) -> bool {
                (**self).reads_content()
            }

            #[cfg(feature = "serde")]
            fn to_config(&self) -> Result<SlicerConfig, ConfigError> {
                (**self).to_config()
            }
        }
    )*};
}

forward!(Box<T>, Arc<T>, &T);

/// The per-kind limits of a slicer, for reports on how they were used.
///
/// ```
/// use cupel::{ContextKind, GreedySlice, QuotaEntry, QuotaPolicy, QuotaSlice};
///
/// let entry = QuotaEntry::new(ContextKind::memory(), 10.0, 40.0)?;
/// let slicer = QuotaSlice::new(vec![entry], GreedySlice)?;
/// assert_eq!(slicer.quota_constraints()[0].cap, 40.0);
/// # Ok::<(), cupel::CupelError>(())
/// ```
pub trait QuotaPolicy {
    /// Returns one constraint per configured entry, in order.
    fn quota_constraints(&self) -> Vec<QuotaConstraint>;
}

/// The unit of the numbers of a [`QuotaConstraint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuotaConstraintMode {
    /// Percent of the target tokens.
    Percentage,
    /// Items.
    Count,
}

/// The limits of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct QuotaConstraint {
    /// The kind.
    pub kind: ContextKind,
    /// What the numbers count.
    pub mode: QuotaConstraintMode,
    /// The least amount.
    pub require: f64,
    /// The largest amount.
    pub cap: f64,
}

/// Implements [`Slicer::slice`] by [`Slicer::select`], for slicers that implement the latter.
///
/// # Errors
///
/// As [`Slicer::select`].
///
/// ```
/// use cupel::slicer::slice_by_selection;
/// use cupel::{ContextBudget, ContextItem, GreedySlice, ScoredItem};
///
/// let item = ContextItem::builder("short", 5).build()?;
/// let sorted = [ScoredItem { item, score: 0.5 }];
/// let kept = slice_by_selection(&GreedySlice, &sorted, &ContextBudget::with_target(9, 9)?)?;
/// assert_eq!(kept[0].content(), "short");
/// # Ok::<(), cupel::CupelError>(())
/// ```
pub fn slice_by_selection(
    slicer: &(impl Slicer + ?Sized),
    sorted: &[ScoredItem],
    budget: &ContextBudget,
) -> Result<Vec<ContextItem>, CupelError> {
    let ranked = ScoredRef::from_list(sorted);
    Ok(slicer.select(&ranked, budget)?.items(&ranked))
}

/// Implements [`Slicer::slice`] by [`slice_by_selection`].
macro_rules! slice_by_select {
    () => {
        fn slice(
            &self,
            sorted: &[$crate::ScoredItem],
            budget: &$crate::ContextBudget,
        ) -> Result<Vec<$crate::ContextItem>, $crate::CupelError> {
            $crate::slicer::slice_by_selection(self, sorted, budget)
        }
    };
}
use slice_by_select;

/// Implements [`Slicer::select`] by [`Slicer::select_in`] without a kind, for slicers whose choice
/// differs inside of a partition.
macro_rules! select_anywhere {
    () => {
        fn select(
            &self,
            ranked: &[ScoredRef<'_>],
            budget: &ContextBudget,
        ) -> Result<Selection, CupelError> {
            self.select_in(None, ranked, budget)
        }
    };
}
use select_anywhere;

/// Returns a slicer and the slicers it wraps, outermost first.
pub(crate) fn chain(slicer: &dyn Slicer) -> impl Iterator<Item = &dyn Slicer> {
    std::iter::successors(Some(slicer), |slicer| (**slicer).inner())
}

/// Returns the ranks of each kind, kinds in order of first appearance, ranks ascending.
fn ranks_by_kind<'a>(ranked: &[ScoredRef<'a>]) -> Vec<(&'a ContextKind, Vec<usize>)> {
    let mut partitions: Vec<(&ContextKind, Vec<usize>)> = Vec::new();
    let mut partition_of: HashMap<&ContextKind, usize> = HashMap::new();
    for (rank, scored) in ranked.iter().enumerate() {
        let kind = scored.item.kind();
        let partition = *partition_of.entry(kind).or_insert_with(|| {
            partitions.push((kind, Vec::new()));
            partitions.len() - 1
        });
        partitions[partition].1.push(rank);
    }
    partitions
}

/// Fails if a slicer that divides or counts the items by kind wraps a ladder.
///
/// Each kind would have a ladder of its own. A group with members of two kinds, such as a call and its
/// result, would be split, and a share or a cap could drop what the ladder must keep.
fn check_no_ladder(outer: &str, inner: &dyn Slicer) -> Result<(), CupelError> {
    if inner.ladder().is_none() {
        return Ok(());
    }
    Err(CupelError::SlicerConfig(format!(
        "{outer} does not support LadderSlice as the inner slicer: limits per kind would split its groups and drop mandatory items. Use LadderSlice without {outer}, or GreedySlice inside of it."
    )))
}

/// Fails if a list of per-kind entries names a kind twice.
fn check_distinct<'a>(kinds: impl IntoIterator<Item = &'a ContextKind>) -> Result<(), CupelError> {
    let mut seen = std::collections::HashSet::new();
    for kind in kinds {
        if !seen.insert(kind) {
            return Err(CupelError::SlicerConfig(format!(
                "kind '{kind}' is listed twice; give every kind one entry"
            )));
        }
    }
    Ok(())
}
