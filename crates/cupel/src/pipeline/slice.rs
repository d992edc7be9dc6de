//! Stage 5: what fits into the effective budget?

use std::borrow::Cow;

use super::ledger::{Cause, Ledger};
use super::positions::Positions;
use super::sort::sort;
use crate::error::StrategyRole;
use crate::model::reported;
use crate::slicer::{Refusal, check_distinct_positions};
use crate::{ContextBudget, CountRequirementShortfall, CupelError, Slicer};

/// What the slicer made of the candidates.
#[derive(Default)]
pub(super) struct Sliced {
    /// The candidates it kept, in the order of the ranking whatever order it kept them in (PLACE-2).
    pub(super) kept: Positions,
    /// Candidates with its reasons; of several for one candidate the last one counts.
    refusals: Vec<(usize, Refusal)>,
    shortfalls: Vec<CountRequirementShortfall>,
}

/// The slicer's choice. A slicer that can do without the ranking gets the candidates as they are, and
/// then sorting what it keeps is enough; the others get the ranking.
pub(super) fn slice<'r>(
    ledger: &Ledger<'_>,
    slicer: &dyn Slicer,
    candidates: &Positions,
    ranked: impl FnOnce() -> Cow<'r, Positions>,
    effective: &ContextBudget,
) -> Result<Sliced, CupelError> {
    if let Some(kept) = slicer.select_unsorted(&ledger.unsorted(candidates), effective) {
        check_distinct_positions(&kept, candidates.len(), StrategyRole::Slicer)?;
        let kept = kept.into_iter().map(|index| candidates.at(index));
        return Ok(Sliced {
            kept: sort(ledger, &kept.collect()),
            ..Sliced::default()
        });
    }
    let ranked = ranked();
    let selection = slicer.select(&ledger.scored(ranked.iter()), effective)?;
    selection.check(ranked.len())?;
    let mut ranks = selection.kept().to_vec();
    ranks.sort_unstable();
    let (refusals, shortfalls) = selection.into_remarks();
    let refusals = refusals.into_iter();
    let refusals = refusals.map(|(rank, refusal)| (ranked.at(rank), refusal));
    Ok(Sliced {
        kept: ranks.into_iter().map(|rank| ranked.at(rank)).collect(),
        refusals: refusals.collect(),
        shortfalls,
    })
}

impl Sliced {
    /// Writes the candidates that were not kept into the ledger, with the slicer's reason, or for want
    /// of room, which the pinned items may be the cause of. Returns the others.
    pub(super) fn write(
        self,
        ledger: &mut Ledger<'_>,
        candidates: &Positions,
        effective: &ContextBudget,
        without_pinned: &ContextBudget,
    ) -> Positions {
        let mut is_kept = vec![false; ledger.items().len()];
        let mut kept_tokens: i128 = 0;
        for candidate in self.kept.iter() {
            is_kept[candidate] = true;
            kept_tokens += i128::from(ledger.items()[candidate].tokens());
        }
        for (index, (candidate, _)) in (0..).zip(&self.refusals) {
            if !is_kept[*candidate] {
                ledger.refuse(*candidate, index);
            }
        }
        let room = effective.target_tokens();
        let without_pinned = without_pinned.target_tokens();
        for candidate in candidates.iter() {
            if is_kept[candidate] || ledger.is_excluded(candidate) {
                continue;
            }
            let tokens = ledger.items()[candidate].tokens();
            let is_displaced =
                ledger.first_pinned.is_some() && room < tokens && tokens <= without_pinned;
            ledger.exclude(
                candidate,
                if is_displaced {
                    Cause::NoRoomBesidePinned
                } else {
                    Cause::NoRoom
                },
            );
        }
        ledger.left_by_slice = reported(i128::from(room) - kept_tokens);
        (ledger.refusals, ledger.shortfalls) = (self.refusals, self.shortfalls);
        self.kept
    }
}
