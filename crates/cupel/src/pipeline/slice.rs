//! Stage 5: what fits into the effective budget?

use super::ledger::{Cause, Ledger};
use super::sort::sort;
use super::stages::Trace;
use crate::error::StrategyRole;
use crate::model::reported;
use crate::slicer::check_distinct_positions;
use crate::{ContextBudget, CupelError, Selection, Slicer, TraceCollector};

/// The slicer's choice from the ranking.
pub(super) fn select(
    ledger: &Ledger<'_>,
    slicer: &dyn Slicer,
    ranked: &[usize],
    effective: &ContextBudget,
) -> Result<Selection, CupelError> {
    let selection = slicer.select(&ledger.scored(ranked), effective)?;
    selection.check(ranked.len())?;
    Ok(selection)
}

/// The candidates the slicer keeps, by rank, if nobody listens and it can do without the ranking
/// of the rest: then sorting what is kept is enough.
pub(super) fn slice_unheard<C: TraceCollector + ?Sized>(
    ledger: &Ledger<'_>,
    slicer: &dyn Slicer,
    candidates: &[usize],
    effective: &ContextBudget,
    trace: &Trace<'_, C>,
) -> Result<Option<Vec<usize>>, CupelError> {
    if trace.is_enabled() {
        return Ok(None);
    }
    let Some(kept) = slicer.select_unsorted(&ledger.scored(candidates), effective) else {
        return Ok(None);
    };
    check_distinct_positions(&kept, candidates.len(), StrategyRole::Slicer)?;
    let mut kept: Vec<usize> = kept
        .into_iter()
        .map(|position| candidates[position])
        .collect();
    sort(ledger, &mut kept);
    Ok(Some(kept))
}

/// The candidates the slicer kept, in the order of the ranking whatever order it kept them in
/// (PLACE-2). The rest is written into the ledger with the slicer's reason, or for want of room,
/// which the pinned items may be the cause of.
pub(super) fn slice(
    ledger: &mut Ledger<'_>,
    slicer: &dyn Slicer,
    ranked: &[usize],
    effective: &ContextBudget,
    without_pinned: &ContextBudget,
) -> Result<Vec<usize>, CupelError> {
    let selection = select(ledger, slicer, ranked, effective)?;

    let mut verdicts = vec![Verdict::Nothing; ranked.len()];
    for (index, (rank, _)) in selection.refusals().iter().enumerate() {
        verdicts[*rank] = Verdict::Refused(index);
    }
    for &rank in selection.kept() {
        verdicts[rank] = Verdict::Kept;
    }
    (ledger.refusals, ledger.shortfalls) = selection.into_remarks();

    let without_pinned = without_pinned.target_tokens();
    let room = effective.target_tokens();
    let mut kept = Vec::new();
    let mut kept_tokens: i128 = 0;
    for (&candidate, verdict) in ranked.iter().zip(verdicts) {
        let tokens = ledger.items()[candidate].tokens();
        let cause = match (verdict, ledger.first_pinned) {
            (Verdict::Kept, _) => {
                kept.push(candidate);
                kept_tokens += i128::from(tokens);
                continue;
            }
            (Verdict::Refused(index), _) => Cause::Refused(index),
            (Verdict::Nothing, Some(pinned)) if room < tokens && tokens <= without_pinned => {
                Cause::NoRoomBeside(pinned)
            }
            (Verdict::Nothing, _) => Cause::NoRoom,
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
    Refused(usize),
}
