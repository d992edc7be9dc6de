//! Slicers: which items stay within the token budget?
//!
//! | slicer | chooses | cost |
//! |---|---|---|
//! | [`GreedySlice`] | by score per token, best first | one sort |
//! | [`KnapsackSlice`] | the set with the highest total score | items times budget buckets |
//! | [`QuotaSlice`] | within percentage shares per kind, through an inner slicer | the inner slicer per kind |
//! | [`CountQuotaSlice`] | with item counts per kind, through an inner slicer | one sort and the inner slicer |
//! | [`CountConstrainedKnapsackSlice`] | with item counts per kind, through a knapsack | one sort and the knapsack |
//! | [`GroupSlice`] | whole groups of items, through an inner slicer | one sort and the inner slicer |
//! | `StreamSlice` (feature `stream`) | from an asynchronous stream, batch by batch | one sort per batch |
//!
//! All but [`GroupSlice`] are the specification's.

mod count;
mod greedy;
mod group;
mod knapsack;
mod quota;
mod selection;
#[cfg(feature = "stream")]
mod stream;
mod sweep;

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

pub use count::{
    CountConstrainedKnapsackSlice, CountQuotaEntry, CountQuotaSlice, ScarcityBehavior,
};
pub use greedy::GreedySlice;
pub use group::{GroupScore, GroupSlice};
pub use knapsack::KnapsackSlice;
pub use quota::{QuotaEntry, QuotaSlice};
pub use selection::{Refusal, Selection};
pub(crate) use selection::{check_distinct_positions, match_handles};
#[cfg(feature = "stream")]
pub use stream::StreamSlice;
pub use sweep::TargetSweep;

#[cfg(feature = "serde")]
use crate::config::{ConfigError, SlicerConfig};
use crate::fast::parallel;
use crate::order::Ranked;
use crate::{ContextBudget, ContextItem, ContextKind, CupelError, ScoredItem, ScoredRef};

/// Chooses a subset of the ranked items that fits a budget.
///
/// Only [`slice`](Self::slice) has to be written. It returns some of the items it received:
/// none made up, none twice (SLICER-1); their tokens stay within `budget.target_tokens()`;
/// an empty list or a target of zero gives an empty list (SLICER-4). A run that uses a slicer
/// that breaks the first rule ends with [`CupelError::Contract`].
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
    /// The chosen items, in any order, from a list sorted by score, best first.
    ///
    /// # Errors
    ///
    /// Whatever makes a choice impossible; the run ends with it.
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError>;

    /// The choice by rank, with the slicer's own reasons: what the pipeline calls.
    ///
    /// The provided method calls [`slice`](Self::slice) and finds the chosen items by their
    /// handles. A slicer that writes this one saves that work and can say more: why an item
    /// was refused and which requirements it could not meet. It then writes `slice` by way of
    /// [`Selection::items`].
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

    /// For the built-in slicers, not part of the contract.
    ///
    /// The kept positions of a list in any order, if the slicer can choose from it as it would from
    /// the list sorted by score, ties in list order, without sorting it, and has nothing to say about
    /// the rest.
    ///
    /// `None`, as by default, means that the list has to be sorted.
    #[doc(hidden)]
    fn select_unsorted(&self, _list: &Unsorted<'_>, _budget: &ContextBudget) -> Option<Vec<usize>> {
        None
    }

    /// For the built-in slicers, not part of the contract.
    ///
    /// A function that says for one budget after another whether the item at the position `wanted` of
    /// a list in any order is chosen, if the slicer can tell without choosing for each. It has to agree
    /// with [`select`](Self::select) on the list sorted by score, ties in list order, which may then
    /// neither fail nor go beyond its target.
    ///
    /// `None`, as by default, leaves it to the caller to look into every choice.
    #[doc(hidden)]
    fn prepare<'a>(&'a self, _list: &Unsorted<'_>, _wanted: usize) -> Option<PreparedChoice<'a>> {
        None
    }

    /// For the built-in slicers, not part of the contract.
    ///
    /// The choices for all targets of a range at once, if the slicer knows a cheaper way than
    /// [`select`](Self::select) for each, its choice depends on the target alone, and it never goes
    /// beyond it.
    ///
    /// `None`, as by default, leaves it to the caller to try targets one by one.
    #[doc(hidden)]
    fn sweep(
        &self,
        _ranked: &[ScoredRef<'_>],
        _targets: RangeInclusive<i64>,
    ) -> Option<TargetSweep> {
        None
    }

    /// For the built-in slicers, not part of the contract.
    ///
    /// What a group scores, if a [`GroupSlice`] takes part in the choice, here or in a wrapped slicer:
    /// whoever wraps it makes the groups before doing anything else.
    #[doc(hidden)]
    fn group_score(&self) -> Option<GroupScore> {
        None
    }

    /// Whether this is a [`KnapsackSlice`], which [`CountQuotaSlice`] refuses to wrap.
    fn is_knapsack(&self) -> bool {
        false
    }

    /// Whether percentage shares take part in the choice, here or in a wrapped slicer.
    fn is_quota(&self) -> bool {
        false
    }

    /// Whether item counts take part in the choice, here or in a wrapped slicer.
    fn is_count_quota(&self) -> bool {
        false
    }

    /// The largest item count per kind, for kinds that have one.
    fn count_cap_map(&self) -> HashMap<ContextKind, usize> {
        HashMap::new()
    }

    /// This slicer as data, for [`PolicyConfig::of`](crate::config::PolicyConfig::of).
    ///
    /// # Errors
    ///
    /// [`ConfigError::not_data`], as provided, for a slicer that no document can name.
    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<SlicerConfig, ConfigError> {
        Err(ConfigError::not_data(std::any::type_name::<Self>()))
    }
}

/// Some of the candidates of a run with their scores, see [`Slicer::select_unsorted`].
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Unsorted<'a> {
    items: &'a [ContextItem],
    scores: &'a [f64],
    /// The positions of the list's candidates in both.
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

    fn iter(&self) -> impl Iterator<Item = ScoredRef<'a>> {
        self.positions.iter().map(|&position| self.scored(position))
    }

    fn scored(&self, position: u32) -> ScoredRef<'a> {
        let position = position as usize;
        ScoredRef::new(&self.items[position], self.scores[position], position)
    }

    /// The list's own positions by score, ties in list order.
    fn ranked(&self) -> Vec<usize> {
        let mut ranked = parallel::map(self.positions, |index, &position| {
            Ranked::new(self.scores[position as usize], index)
        });
        parallel::sort(&mut ranked);
        ranked.into_iter().map(Ranked::position).collect()
    }
}

/// Whether an item is chosen, see [`Slicer::prepare`].
#[doc(hidden)]
pub type PreparedChoice<'a> = Box<dyn Fn(&ContextBudget) -> bool + 'a>;

/// A pointer to a slicer is a slicer.
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

            fn select_unsorted(
                &self,
                list: &Unsorted<'_>,
                budget: &ContextBudget,
            ) -> Option<Vec<usize>> {
                (**self).select_unsorted(list, budget)
            }

            fn prepare<'a>(
                &'a self,
                list: &Unsorted<'_>,
                wanted: usize,
            ) -> Option<PreparedChoice<'a>> {
                (**self).prepare(list, wanted)
            }

            fn sweep(
                &self,
                ranked: &[ScoredRef<'_>],
                targets: RangeInclusive<i64>,
            ) -> Option<TargetSweep> {
                (**self).sweep(ranked, targets)
            }

            fn group_score(&self) -> Option<GroupScore> {
                (**self).group_score()
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

            #[cfg(feature = "serde")]
            fn to_config(&self) -> Result<SlicerConfig, ConfigError> {
                (**self).to_config()
            }
        }
    )*};
}

forward!(Box<T>, Arc<T>, &T);

/// Per-kind limits a slicer was configured with, for reports on how they were used.
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
    /// One constraint per configured entry, in order.
    fn quota_constraints(&self) -> Vec<QuotaConstraint>;
}

/// What the numbers of a [`QuotaConstraint`] count.
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

/// [`Slicer::slice`] in terms of [`Slicer::select`], for slicers that write the latter.
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

/// The ranks of each kind, kinds in order of first appearance, ranks ascending.
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

/// Refuses a list of per-kind entries that names a kind twice.
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
