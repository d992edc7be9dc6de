//! Stage 5: what fits into the effective budget?

use super::ledger::{Cause, Ledger};
use super::positions::Positions;
use super::sort::sort;
use crate::error::StrategyRole;
use crate::model::reported;
use crate::slicer::check_distinct_positions;
use crate::{ContextBudget, CupelError, Selection, Slicer};

/// The slicer's choice from the ranking.
pub(super) fn select(
    ledger: &Ledger<'_>,
    slicer: &dyn Slicer,
    ranked: &Positions,
    effective: &ContextBudget,
) -> Result<Selection, CupelError> {
    let selection = match slicer.select_unsorted(&ledger.unsorted(ranked), effective) {
        Some(kept) => Selection::keep(kept),
        None => slicer.select(&ledger.scored(ranked.iter()), effective)?,
    };
    selection.check(ranked.len())?;
    Ok(selection)
}

/// The candidates the slicer keeps, by rank, if it can do without the ranking of the rest: then
/// sorting what is kept is enough. The rest is not written into the ledger.
pub(super) fn slice_unheard(
    ledger: &Ledger<'_>,
    slicer: &dyn Slicer,
    candidates: &Positions,
    effective: &ContextBudget,
) -> Result<Option<Positions>, CupelError> {
    let Some(kept) = slicer.select_unsorted(&ledger.unsorted(candidates), effective) else {
        return Ok(None);
    };
    check_distinct_positions(&kept, candidates.len(), StrategyRole::Slicer)?;
    let kept = kept.into_iter().map(|index| candidates.at(index));
    Ok(Some(sort(ledger, &kept.collect())))
}

/// The candidates the slicer kept, in the order of the ranking whatever order it kept them in
/// (PLACE-2). The rest is written into the ledger with the slicer's reason, or for want of room,
/// which the pinned items may be the cause of.
pub(super) fn slice(
    ledger: &mut Ledger<'_>,
    slicer: &dyn Slicer,
    ranked: &Positions,
    effective: &ContextBudget,
    without_pinned: &ContextBudget,
) -> Result<Positions, CupelError> {
    let selection = select(ledger, slicer, ranked, effective)?;

    let mut verdicts = vec![Verdict::Nothing; ranked.len()];
    for (index, (rank, _)) in (0..).zip(selection.refusals()) {
        verdicts[*rank] = Verdict::Refused(index);
    }
    for &rank in selection.kept() {
        verdicts[rank] = Verdict::Kept;
    }
    let mut kept = Positions::with_capacity(selection.kept().len());
    (ledger.refusals, ledger.shortfalls) = selection.into_remarks();

    let without_pinned = without_pinned.target_tokens();
    let room = effective.target_tokens();
    let mut kept_tokens: i128 = 0;
    for (candidate, verdict) in ranked.iter().zip(verdicts) {
        let tokens = ledger.items()[candidate].tokens();
        let is_displaced =
            || ledger.first_pinned.is_some() && room < tokens && tokens <= without_pinned;
        let cause = match verdict {
            Verdict::Kept => {
                kept.push(candidate);
                kept_tokens += i128::from(tokens);
                continue;
            }
            Verdict::Refused(index) => Cause::Refused(index),
            Verdict::Nothing if is_displaced() => Cause::NoRoomBesidePinned,
            Verdict::Nothing => Cause::NoRoom,
        };
        ledger.exclude(candidate, cause);
    }
    ledger.left_by_slice = reported(i128::from(room) - kept_tokens);
    Ok(kept)
}

/// What the slicer said about a rank.
#[derive(Clone, Copy)]
enum Verdict {
    Nothing,
    Kept,
    Refused(u32),
}
