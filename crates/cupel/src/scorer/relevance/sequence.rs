//! [`Sequence`]: the items that take part in scoring, in the order of the conversation.

use std::borrow::Cow;
use std::ops::Range;

use crate::ContextItem;
use crate::scorer::Among;

/// The metadata key of the session that an item belongs to.
const SESSION: &str = "cupel:session";

/// The items that take part, ordered by time if all have one, else as in the input.
///
/// Neighborhood is about the order of the conversation, not of the input: a caller may pass items
/// by relevance. If some items have no time, the times of the others cannot place them, so none
/// counts.
pub(super) struct Sequence<'a> {
    items: Cow<'a, [ContextItem]>,
    /// The positions of the items in the input; nothing if they are the input.
    positions: Option<Vec<usize>>,
    /// The length of the input.
    input: usize,
}

impl<'a> Sequence<'a> {
    pub(super) fn of(items: &'a [ContextItem], among: Among) -> Self {
        let take_part = |item: &&ContextItem| among.includes(item);
        let is_all = items.iter().all(|item| take_part(&item));
        let is_timed = items
            .iter()
            .filter(take_part)
            .all(|it| it.timestamp().is_some());
        if is_all && (!is_timed || items.is_sorted_by_key(ContextItem::timestamp)) {
            return Self {
                items: Cow::Borrowed(items),
                positions: None,
                input: items.len(),
            };
        }
        let mut positions: Vec<usize> = (0..items.len()).collect();
        positions.retain(|&position| take_part(&&items[position]));
        if is_timed {
            positions.sort_by_key(|&position| items[position].timestamp());
        }
        Self {
            items: positions
                .iter()
                .map(|&position| items[position].clone())
                .collect(),
            positions: Some(positions),
            input: items.len(),
        }
    }

    pub(super) fn items(&self) -> &[ContextItem] {
        &self.items
    }

    /// Returns values in the order of the input; `others` for the items that do not take part.
    pub(super) fn in_input_order<T: Clone>(&self, values: Vec<T>, others: T) -> Vec<T> {
        let Some(positions) = &self.positions else {
            return values;
        };
        let mut spread = vec![others; self.input];
        for (&position, value) in positions.iter().zip(values) {
            spread[position] = value;
        }
        spread
    }

    /// Returns the ranges of adjacent items with the same session.
    pub(super) fn sessions(&self) -> Vec<Range<usize>> {
        let session = |item: &ContextItem| item.metadata().get(SESSION).cloned();
        let mut start = 0;
        let chunks = self.items.chunk_by(|a, b| session(a) == session(b));
        chunks
            .map(|chunk| {
                let range = start..start + chunk.len();
                start = range.end;
                range
            })
            .collect()
    }
}
