//! Stage 2, Score: the relevance of each scoreable item among the scoreable ones.

use std::borrow::Cow;

use super::classify::Classes;
use super::ledger::Ledger;
use crate::scorer::{Among, scores};
use crate::{ContextItem, CupelError, Scorer};

/// Calls the scorer once for the whole scoreable list, and not at all if it is empty (SCORE-6).
/// Pinned items get score 1.0, invalid ones 0.0.
pub(super) fn score(
    ledger: &mut Ledger<'_>,
    scorer: &dyn Scorer,
    classes: &Classes,
) -> Result<(), CupelError> {
    let items = ledger.items();
    let scoreable = classes.scoreable.len();
    let mut column = if scoreable == 0 {
        vec![0.0; items.len()]
    } else if scoreable == items.len() {
        scores(scorer, items, Among::All)?
    } else {
        scores(scorer, items, Among::Scoreable)?
    };
    for &pinned in &classes.pinned {
        column[pinned] = 1.0;
    }
    if scoreable + classes.pinned.len() < items.len() {
        let invalid = column.iter_mut().zip(items);
        let invalid = invalid.filter(|(_, item)| item.tokens() < 0);
        invalid.for_each(|(score, _)| *score = 0.0);
    }
    ledger.set_scores(column);
    Ok(())
}

/// Returns the scoreable items as one list.
pub(super) fn scoreable_items(items: &[ContextItem]) -> Cow<'_, [ContextItem]> {
    if items.iter().all(ContextItem::is_scored) {
        return items.into();
    }
    let scored = items.iter().filter(|item| item.is_scored());
    scored.cloned().collect()
}
