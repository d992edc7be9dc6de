//! [`Selection`]: a slicer's choice by rank.
//!
//! Slicers of 1.2 return items, and items are compared by handle, because two items may be equal.
//! New slicers return ranks, which cannot be ambiguous. [`Selection::by_identity`] turns the former
//! into the latter.
//!
//! A decorator gives a part of its list to an inner slicer and gets ranks of the part back.
//! [`Selection::adopt`] translates them: with the part `[2, 5, 7]` of a list, rank 1 of the part is
//! 5.

use std::collections::{HashMap, HashSet};

use crate::diagnostics::{CountRequirementShortfall, ExclusionReason};
use crate::error::{ContractViolation, StrategyRole};
use crate::{ContextItem, CupelError, ScoredRef};

/// A slicer's choice from a ranked list, with views, refusals and shortfalls.
///
/// Items are identified by rank: their index in the list the slicer received. A kept item stays as it
/// is, or as one of its [views](crate::ContextView). An item that is neither kept nor refused did not
/// fit.
///
/// ```
/// use cupel::{Refusal, Selection};
///
/// let mut selection = Selection::keep(vec![0, 2]);
/// selection.refuse(1, Refusal::CountCap { cap: 2, count: 2 });
/// assert_eq!(selection.kept(), [0, 2]);
/// assert_eq!(selection.refusals().len(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    kept: Vec<usize>,
    /// Kept ranks with the indices of their views, in any order; a kept rank without an entry is
    /// kept in full. [`check`](Self::check) makes sure that each rank is kept and has one entry.
    views: Vec<(usize, usize)>,
    refusals: Vec<(usize, Refusal)>,
    shortfalls: Vec<CountRequirementShortfall>,
    /// For every shortfall the number of count slicers around its own: the report has those of the
    /// outermost slicer first. As long as `shortfalls`.
    levels: Vec<usize>,
}

/// Why a slicer refused an item that fit.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The item's kind has reached its largest count.
    CountCap {
        /// The largest number allowed.
        cap: usize,
        /// The count when the item was refused.
        count: usize,
    },
    /// A custom slicer's own reason, copied to the report.
    Because(ExclusionReason),
}

impl Selection {
    /// Creates a choice of ranks, in the order in which the slicer chose them.
    pub fn keep(kept: Vec<usize>) -> Self {
        Self {
            kept,
            ..Self::default()
        }
    }

    /// Adds a kept rank.
    pub fn push(&mut self, rank: usize) {
        self.kept.push(rank);
    }

    /// Adds kept ranks.
    pub fn extend(&mut self, ranks: impl IntoIterator<Item = usize>) {
        self.kept.extend(ranks);
    }

    /// Records that the kept item of this rank stays as the view at this index of
    /// [`ContextItem::views`].
    ///
    /// ```
    /// use cupel::{ContextItem, ContextView, ScoredRef, Selection};
    ///
    /// let view = ContextView::new("short", 2);
    /// let item = ContextItem::builder("a long text", 40).view(view).build()?;
    /// let mut selection = Selection::keep(vec![0]);
    /// selection.shorten(0, 0);
    /// assert_eq!(selection.items(&[ScoredRef::new(&item, 0.5, 0)])[0].content(), "short");
    /// # Ok::<(), cupel::CupelError>(())
    /// ```
    pub fn shorten(&mut self, rank: usize, view: usize) {
        self.views.push((rank, view));
    }

    /// Records why an item was refused.
    pub fn refuse(&mut self, rank: usize, refusal: Refusal) {
        self.refusals.push((rank, refusal));
    }

    /// Records a count requirement that was not met.
    pub fn fall_short(&mut self, shortfall: CountRequirementShortfall) {
        self.shortfalls.push(shortfall);
        self.levels.push(0);
    }

    /// Returns the kept ranks in the order in which they were chosen.
    pub fn kept(&self) -> &[usize] {
        &self.kept
    }

    /// Returns the kept ranks that stay as a view, with the indices of their views.
    pub fn views(&self) -> &[(usize, usize)] {
        &self.views
    }

    /// Returns the refused ranks with the slicer's reasons.
    pub fn refusals(&self) -> &[(usize, Refusal)] {
        &self.refusals
    }

    /// Returns the count requirements that were not met.
    pub fn shortfalls(&self) -> &[CountRequirementShortfall] {
        &self.shortfalls
    }

    /// Returns the kept items of `ranked`, the list the choice was made from, shortened ones as their
    /// views.
    ///
    /// # Panics
    ///
    /// If a kept rank is beyond the list.
    pub fn items(&self, ranked: &[ScoredRef<'_>]) -> Vec<ContextItem> {
        let views: HashMap<usize, usize> = self.views.iter().copied().collect();
        let kept = self.kept.iter().map(|&rank| {
            let item = ranked[rank].item;
            let view = views.get(&rank).and_then(|&view| item.as_view(view));
            view.unwrap_or_else(|| item.clone())
        });
        kept.collect()
    }

    /// Returns the refusals and shortfalls.
    pub(crate) fn into_remarks(self) -> (Vec<(usize, Refusal)>, Vec<CountRequirementShortfall>) {
        (self.refusals, self.shortfalls)
    }

    /// Adds the views, refusals and shortfalls of a wrapped slicer's choice from a part of the list, and
    /// returns the kept items as ranks of the whole list. `ranks` holds the part's ranks.
    ///
    /// # Errors
    ///
    /// [`CupelError::Contract`] if the wrapped slicer named a rank it was not offered, kept or shortened
    /// one twice, or shortened one that it did not keep.
    pub fn adopt(&mut self, part: Self, ranks: &[usize]) -> Result<Vec<usize>, CupelError> {
        part.check(ranks.len())?;
        let views = part.views.into_iter();
        self.views
            .extend(views.map(|(rank, view)| (ranks[rank], view)));
        let refusals = part.refusals.into_iter();
        self.refusals
            .extend(refusals.map(|(rank, refusal)| (ranks[rank], refusal)));
        self.shortfalls.extend(part.shortfalls);
        self.levels.extend(part.levels);
        Ok(part.kept.into_iter().map(|rank| ranks[rank]).collect())
    }

    /// Forgets the view of a rank that is not kept after all.
    pub(super) fn forget_view(&mut self, rank: usize) {
        self.views.retain(|(shortened, _)| *shortened != rank);
    }

    /// Moves the shortfalls of another choice to this one.
    pub(super) fn take_shortfalls(&mut self, other: &mut Self) {
        self.shortfalls.append(&mut other.shortfalls);
        self.levels.append(&mut other.levels);
    }

    /// Marks the shortfalls as those of a slicer wrapped by one more count slicer.
    pub(super) fn lower_shortfalls(&mut self) {
        self.levels.iter_mut().for_each(|level| *level += 1);
    }

    /// Adds the shortfalls of the count slicer below `level` others.
    pub(super) fn add_shortfalls(&mut self, level: usize, part: Self) {
        self.levels.extend(part.shortfalls.iter().map(|_| level));
        self.shortfalls.extend(part.shortfalls);
    }

    /// Sorts the shortfalls by the level of their count slicer, outermost first, then by the index that
    /// `order` gives for the level and the kind.
    pub(super) fn sort_shortfalls(&mut self, order: impl Fn(usize, &str) -> Option<usize>) {
        let levels = std::mem::take(&mut self.levels);
        let shortfalls = std::mem::take(&mut self.shortfalls);
        let mut sorted: Vec<_> = levels.into_iter().zip(shortfalls).collect();
        sorted.sort_by_cached_key(|(level, shortfall)| (*level, order(*level, &shortfall.kind)));
        (self.levels, self.shortfalls) = sorted.into_iter().unzip();
    }

    /// Finds the choice that `items` is of `ranked`: by handle, or by equality for an item that is not
    /// among them but equals a view of one.
    ///
    /// # Errors
    ///
    /// [`CupelError::Contract`] if an item was not offered, or was returned more often than offered.
    pub(crate) fn by_identity(
        ranked: &[ScoredRef<'_>],
        items: &[ContextItem],
    ) -> Result<Self, CupelError> {
        // Almost always every item is one that was offered. Only otherwise are views searched, by
        // content.
        if let Ok(kept) = match_handles(ranked, items, StrategyRole::Slicer) {
            return Ok(Self::keep(kept));
        }
        let offered: HashSet<usize> = ranked.iter().map(|s| s.item.identity()).collect();
        let mut views = ViewFinder::new(ranked);
        let mut shortened = Vec::new();
        let mut full = Vec::with_capacity(items.len());
        for item in items {
            if !offered.contains(&item.identity())
                && let Some((rank, view)) = views.find(item)
            {
                shortened.push((rank, view));
                full.push(ranked[rank].item.clone());
            } else {
                full.push(item.clone());
            }
        }
        let kept = match_handles(ranked, &full, StrategyRole::Slicer)?;
        let mut selection = Self::keep(kept);
        selection.views = shortened;
        Ok(selection)
    }

    /// Checks that the kept ranks exist and are distinct, that shortened ranks are kept and distinct, and
    /// that the refused ranks exist. Whether a view exists, [`as_view`](ContextItem::as_view) tells.
    pub(crate) fn check(&self, offered: usize) -> Result<(), CupelError> {
        let fail = |violation| {
            Err(CupelError::Contract {
                strategy: StrategyRole::Slicer,
                violation,
            })
        };
        let mut refused = self.refusals.iter();
        if let Some(position) = refused.position(|(rank, _)| *rank >= offered) {
            return fail(ContractViolation::UnknownItem { position });
        }
        check_distinct_positions(&self.kept, offered, StrategyRole::Slicer)?;
        if self.views.is_empty() {
            return Ok(());
        }
        let mut unshortened: HashSet<usize> = self.kept.iter().copied().collect();
        let mut views = self.views.iter();
        match views.position(|(rank, _)| !unshortened.remove(rank)) {
            Some(position) => fail(ContractViolation::UnknownView { position }),
            None => Ok(()),
        }
    }
}

/// Finds the ranks and views that items are equal to. Each rank is found once.
struct ViewFinder<'a> {
    ranked: &'a [ScoredRef<'a>],
    /// Ranks and views by the content of the view, best rank last.
    by_content: HashMap<&'a str, Vec<(usize, usize)>>,
    found: HashSet<usize>,
}

impl<'a> ViewFinder<'a> {
    fn new(ranked: &'a [ScoredRef<'a>]) -> Self {
        let mut by_content: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
        for (rank, scored) in ranked.iter().enumerate().rev() {
            for (view, offered) in scored.item.views().iter().enumerate() {
                let views = by_content.entry(offered.content()).or_default();
                views.push((rank, view));
            }
        }
        Self {
            ranked,
            by_content,
            found: HashSet::new(),
        }
    }

    fn find(&mut self, item: &ContextItem) -> Option<(usize, usize)> {
        let views = self.by_content.get(item.content())?;
        let mut views = views.iter().rev().copied();
        let found = views.find(|&(rank, view)| {
            let is_equal = || self.ranked[rank].item.as_view(view).as_ref() == Some(item);
            !self.found.contains(&rank) && is_equal()
        })?;
        self.found.insert(found.0);
        Some(found)
    }
}

/// Returns the indices in `offered` of the returned items. A handle that was offered several times
/// matches its indices in order.
pub(crate) fn match_handles(
    offered: &[ScoredRef<'_>],
    returned: &[ContextItem],
    strategy: StrategyRole,
) -> Result<Vec<usize>, CupelError> {
    // The same handle may be offered several times. Its positions are pushed from the last to the
    // first, so that `pop` gives the best rank first.
    let mut positions: HashMap<usize, Vec<usize>> = HashMap::with_capacity(offered.len());
    for (position, scored) in offered.iter().enumerate().rev() {
        let identity = scored.item.identity();
        positions.entry(identity).or_default().push(position);
    }
    let find = |(position, item): (usize, &ContextItem)| {
        let violation = match positions.get_mut(&item.identity()) {
            Some(left) => match left.pop() {
                Some(found) => return Ok(found),
                None => ContractViolation::RepeatedItem { position },
            },
            None => ContractViolation::UnknownItem { position },
        };
        Err(CupelError::Contract {
            strategy,
            violation,
        })
    };
    returned.iter().enumerate().map(find).collect()
}

/// Checks that every position is below `offered` and that none is repeated.
pub(crate) fn check_distinct_positions(
    positions: &[usize],
    offered: usize,
    strategy: StrategyRole,
) -> Result<(), CupelError> {
    let mut seen = vec![false; offered];
    for (position, &index) in positions.iter().enumerate() {
        let violation = match seen.get_mut(index) {
            Some(seen) if !*seen => {
                *seen = true;
                continue;
            }
            Some(_) => ContractViolation::RepeatedItem { position },
            None => ContractViolation::UnknownItem { position },
        };
        return Err(CupelError::Contract {
            strategy,
            violation,
        });
    }
    Ok(())
}
