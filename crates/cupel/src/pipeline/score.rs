//! Stage 2: how relevant is each scoreable item among the scoreable ones?

use std::borrow::Cow;

use super::classify::Classes;
use super::ledger::Ledger;
use crate::scorer::{column, column_among};
use crate::{ContextItem, CupelError, Scorer};

/// Asks the scorer once for the whole scoreable list, and not at all if it is empty (SCORE-6).
/// Pinned items enter the merge with score 1.0, invalid ones have score 0.0.
pub(super) fn score(
    ledger: &mut Ledger<'_>,
    scorer: &dyn Scorer,
    classes: &Classes,
) -> Result<(), CupelError> {
    let items = ledger.items();
    let scoreable = classes.scoreable.len();
    let mut scores = if scoreable == 0 {
        vec![0.0; items.len()]
    } else if scoreable == items.len() {
        column(scorer, items)?
    } else {
        column_among(scorer, items)?
    };
    for &pinned in &classes.pinned {
        scores[pinned] = 1.0;
    }
    if scoreable + classes.pinned.len() < items.len() {
        let invalid = scores.iter_mut().zip(items);
        let invalid = invalid.filter(|(_, item)| item.tokens() < 0);
        invalid.for_each(|(score, _)| *score = 0.0);
    }
    ledger.set_scores(scores);
    Ok(())
}

/// The scoreable items as one list.
pub(super) fn scoreable_items(items: &[ContextItem]) -> Cow<'_, [ContextItem]> {
    if items.iter().all(ContextItem::is_scored) {
        return items.into();
    }
    let scored = items.iter().filter(|item| item.is_scored());
    scored.cloned().collect()
}
