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
    let items = scoreable_items(ledger.items(), scoreable);
    let scores = column(scorer, &items)?;
    if scores.len() == ledger.items().len() {
        ledger.set_scores(scores);
    } else {
        for (&candidate, score) in scoreable.iter().zip(scores) {
            ledger.set_score(candidate, score);
        }
    }
    Ok(())
}

/// The scoreable items as one list.
pub(super) fn scoreable_items<'a>(
    items: &'a [ContextItem],
    scoreable: &[usize],
) -> Cow<'a, [ContextItem]> {
    if scoreable.len() == items.len() {
        Cow::Borrowed(items)
    } else {
        scoreable
            .iter()
            .map(|&index| items[index].clone())
            .collect()
    }
}
