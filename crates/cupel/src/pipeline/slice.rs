//! Stage 5: what fits into the effective budget?

use super::ledger::{Cause, Ledger};
use crate::model::reported;
use crate::{ContextBudget, CupelError, Selection, Slicer};

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

/// The candidates the slicer kept, in the order of the ranking whatever order it kept them in
/// (PLACE-2). The rest is written into the ledger with the slicer's reason, or for want of room.
pub(super) fn slice(
    ledger: &mut Ledger<'_>,
    slicer: &dyn Slicer,
    ranked: &[usize],
    budget: &ContextBudget,
    pinned_tokens: i64,
) -> Result<Vec<usize>, CupelError> {
    let effective = budget.effective(pinned_tokens);
    let selection = select(ledger, slicer, ranked, &effective)?;

    let mut verdicts = vec![Verdict::Nothing; ranked.len()];
    for (index, (rank, _)) in selection.refusals().iter().enumerate() {
        verdicts[*rank] = Verdict::Refused(index);
    }
    for &rank in selection.kept() {
        verdicts[rank] = Verdict::Kept;
    }
    (ledger.refusals, ledger.shortfalls) = selection.into_remarks();

    let without_pinned = budget.effective(0).target_tokens();
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
