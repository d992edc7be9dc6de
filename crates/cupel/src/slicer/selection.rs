//! [`Selection`]: a slicer's choice, by rank.

use std::collections::HashMap;

use crate::diagnostics::{CountRequirementShortfall, ExclusionReason};
use crate::error::{ContractViolation, StrategyRole};
use crate::{ContextItem, CupelError, ScoredRef};

/// What a slicer chose from a ranked list, and what it has to say about the rest.
///
/// Items are named by rank: their position in the list the slicer received. An item that is
/// neither kept nor refused simply found no room.
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
}

/// Why a slicer refused an item that had room.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The item's kind already has as many items as it may have.
    CountCap {
        /// The largest number allowed.
        cap: usize,
        /// The number there was when the item was refused.
        count: usize,
    },
    /// A custom slicer's own reason, which the report carries as it is.
    Because(ExclusionReason),
}

impl Selection {
    /// A choice of ranks, in the order in which the slicer made it.
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

    /// Says why an item was refused.
    pub fn refuse(&mut self, rank: usize, refusal: Refusal) {
        self.refusals.push((rank, refusal));
    }

    /// Records a count requirement that could not be met.
    pub fn fall_short(&mut self, shortfall: CountRequirementShortfall) {
        self.shortfalls.push(shortfall);
    }

    /// The kept ranks in the order in which they were chosen.
    pub fn kept(&self) -> &[usize] {
        &self.kept
    }

    /// The refused ranks with the slicer's reasons.
    pub fn refusals(&self) -> &[(usize, Refusal)] {
        &self.refusals
    }

    /// The count requirements that could not be met.
    pub fn shortfalls(&self) -> &[CountRequirementShortfall] {
        &self.shortfalls
    }

    /// The kept items of `ranked`, the list the choice was made from.
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

    /// Everything but the choice.
    pub(crate) fn into_remarks(self) -> (Vec<(usize, Refusal)>, Vec<CountRequirementShortfall>) {
        (self.refusals, self.shortfalls)
    }

    /// Takes over what a wrapped slicer said about a part of the list, except its choice, which is
    /// returned in ranks of the whole list. `ranks` holds the part's ranks.
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
        Ok(part.kept.into_iter().map(|rank| ranks[rank]).collect())
    }

    /// The choice that `items` is of `ranked`, handle by handle.
    ///
    /// # Errors
    ///
    /// [`CupelError::Contract`] if an item was not offered, or comes more often than it was.
    pub(crate) fn by_identity(
        ranked: &[ScoredRef<'_>],
        items: &[ContextItem],
    ) -> Result<Self, CupelError> {
        match_handles(ranked, items, StrategyRole::Slicer).map(Self::keep)
    }

    /// Checks that the kept ranks exist and are distinct and that the refused ranks exist, as a
    /// slicer has to ensure.
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

/// The positions in `offered` of the returned items. A handle offered several times matches
/// its positions in order.
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

/// Checks that every position exists among `offered` and comes once.
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
