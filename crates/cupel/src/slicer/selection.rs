//! [`Selection`]: a slicer's choice by rank.

use std::collections::HashMap;

use crate::diagnostics::{CountRequirementShortfall, ExclusionReason};
use crate::error::{ContractViolation, StrategyRole};
use crate::{ContextItem, CupelError, ScoredRef};

/// A slicer's choice from a ranked list, with refusals and shortfalls.
///
/// Items are identified by rank: their index in the list the slicer received. An item that is
/// neither kept nor refused did not fit.
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
    refusals: Vec<(usize, Refusal)>,
    shortfalls: Vec<CountRequirementShortfall>,
    /// For every shortfall the number of count slicers around its own.
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

    /// Returns the refused ranks with the slicer's reasons.
    pub fn refusals(&self) -> &[(usize, Refusal)] {
        &self.refusals
    }

    /// Returns the count requirements that were not met.
    pub fn shortfalls(&self) -> &[CountRequirementShortfall] {
        &self.shortfalls
    }

    /// Returns the kept items of `ranked`, the list the choice was made from.
    ///
    /// # Panics
    ///
    /// If a kept rank is beyond the list.
    pub fn items(&self, ranked: &[ScoredRef<'_>]) -> Vec<ContextItem> {
        self.kept
            .iter()
            .map(|&rank| ranked[rank].item.clone())
            .collect()
    }

    /// Returns the refusals and shortfalls.
    pub(crate) fn into_remarks(self) -> (Vec<(usize, Refusal)>, Vec<CountRequirementShortfall>) {
        (self.refusals, self.shortfalls)
    }

    /// Adds the refusals and shortfalls of a wrapped slicer's choice from a part of the list, and returns
    /// the kept items as ranks of the whole list. `ranks` holds the part's ranks.
    ///
    /// # Errors
    ///
    /// [`CupelError::Contract`] if the wrapped slicer named a rank it was not offered, or kept one
    /// twice.
    pub fn adopt(&mut self, part: Self, ranks: &[usize]) -> Result<Vec<usize>, CupelError> {
        part.check(ranks.len())?;
        let refusals = part.refusals.into_iter();
        self.refusals
            .extend(refusals.map(|(rank, refusal)| (ranks[rank], refusal)));
        self.shortfalls.extend(part.shortfalls);
        self.levels.extend(part.levels);
        Ok(part.kept.into_iter().map(|rank| ranks[rank]).collect())
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

    /// Finds the choice that `items` is of `ranked`, by handle.
    ///
    /// # Errors
    ///
    /// [`CupelError::Contract`] if an item was not offered, or was returned more often than offered.
    pub(crate) fn by_identity(
        ranked: &[ScoredRef<'_>],
        items: &[ContextItem],
    ) -> Result<Self, CupelError> {
        match_handles(ranked, items, StrategyRole::Slicer).map(Self::keep)
    }

    /// Checks that the kept ranks exist and are distinct and that the refused ranks exist.
    pub(crate) fn check(&self, offered: usize) -> Result<(), CupelError> {
        let mut refused = self.refusals.iter();
        if let Some(position) = refused.position(|(rank, _)| *rank >= offered) {
            return Err(CupelError::Contract {
                strategy: StrategyRole::Slicer,
                violation: ContractViolation::UnknownItem { position },
            });
        }
        check_distinct_positions(&self.kept, offered, StrategyRole::Slicer)
    }
}

/// Returns the indices in `offered` of the returned items. A handle that was offered several times
/// matches its indices in order.
pub(crate) fn match_handles(
    offered: &[ScoredRef<'_>],
    returned: &[ContextItem],
    strategy: StrategyRole,
) -> Result<Vec<usize>, CupelError> {
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
