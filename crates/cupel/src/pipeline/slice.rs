//! Stage 5, Slice: selects what fits the effective budget.

use super::ledger::{Cause, Ledger};
use super::positions::Positions;
use super::shortened::Shortened;
use super::sort::sort;
use crate::error::StrategyRole;
use crate::model::saturate;
use crate::slicer::{Refusal, check_distinct_positions};
use crate::{ContextBudget, CountRequirementShortfall, CupelError, Slicer};

/// The slicer's selection.
#[derive(Default)]
pub(super) struct Sliced {
    /// The selected candidates by rank, in whatever order the slicer returned them (PLACE-2).
    pub(super) kept: Positions,
    /// Those of them that are kept as views.
    pub(super) shortened: Shortened,
    /// Candidates with the slicer's reasons. If a candidate has several, the last one counts.
    refusals: Vec<(usize, Refusal)>,
    shortfalls: Vec<CountRequirementShortfall>,
}

/// Calls the slicer. A slicer that needs no ranking gets the candidates in input order, and only the
/// selected ones are sorted; the others get the ranking.
pub(super) fn slice<'r>(
    ledger: &Ledger<'_>,
    slicer: &dyn Slicer,
    candidates: &Positions,
    ranked: impl FnOnce() -> &'r Positions,
    effective: &ContextBudget,
) -> Result<Sliced, CupelError> {
    let unsorted = ledger.scored(candidates.iter());
    if let Some(kept) = slicer.select_unsorted(&unsorted, effective) {
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
    let views = selection.views().iter();
    let views = views.map(|&(rank, view)| (ranked.at(rank), view));
    let shortened = Shortened::new(ledger.items(), views)?;
    let (refusals, shortfalls) = selection.into_remarks();
    let refusals = refusals.into_iter();
    let refusals = refusals.map(|(rank, refusal)| (ranked.at(rank), refusal));
    Ok(Sliced {
        kept: ranks.into_iter().map(|rank| ranked.at(rank)).collect(),
        shortened,
        refusals: refusals.collect(),
        shortfalls,
    })
}

impl Sliced {
    /// Writes the candidates that were not selected into the ledger: with the slicer's reason, or as
    /// having no room, or as having no room next to the pinned items. Returns the selected ones.
    pub(super) fn write(
        self,
        ledger: &mut Ledger<'_>,
        candidates: &Positions,
        effective: &ContextBudget,
        without_pinned: &ContextBudget,
    ) -> Positions {
        ledger.shortened = self.shortened;
        let mut is_kept = vec![false; ledger.items().len()];
        let mut kept_tokens: i128 = 0;
        for candidate in self.kept.iter() {
            is_kept[candidate] = true;
            kept_tokens += i128::from(ledger.item(candidate).tokens());
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
                    Cause::NoRoomNextToPinned
                } else {
                    Cause::NoRoom
                },
            );
        }
        ledger.left_by_slice = saturate(i128::from(room) - kept_tokens);
        (ledger.refusals, ledger.shortfalls) = (self.refusals, self.shortfalls);
        self.kept
    }
}
