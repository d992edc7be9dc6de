//! Stage 2: how relevant is each scoreable item among the scoreable ones?

use std::borrow::Cow;

use super::ledger::Ledger;
use crate::scorer::column;
use crate::{ContextItem, CupelError, Scorer};

/// Asks the scorer once for the whole scoreable list, and not at all if it is empty (SCORE-6).
pub(super) fn score(
    ledger: &mut Ledger<'_>,
    scorer: &dyn Scorer,
    scoreable: &[usize],
) -> Result<(), CupelError> {
    if scoreable.is_empty() {
        return Ok(());
    }
    let all = ledger.items();
    let items: Cow<'_, [ContextItem]> = if scoreable.len() == all.len() {
        Cow::Borrowed(all)
    } else {
        scoreable.iter().map(|&index| all[index].clone()).collect()
    };
    for (&candidate, score) in scoreable.iter().zip(column(scorer, &items)?) {
        ledger.set_score(candidate, score);
    }
    Ok(())
}
