//! The gaps of a window that shrinks and grows, and the tokens of their markers.
//!
//! A cut drops one group after the other until the rest fits, and a drop can cost tokens: where it leaves two user
//! turns in a row, a marker goes between them. So the kept messages are a doubly linked list, in which the neighbors of
//! a message are found in constant time, however many were dropped:
//!
//! ```text
//! kept     0 user   1 assistant   2 user   3 assistant   4 user        markers: 0 tokens
//! drop 1   0 user                 2 user   3 assistant   4 user        one between 0 and 2
//! drop 3   0 user                 2 user                 4 user        two
//! drop 2   0 user                                        4 user        one
//! ```
//!
//! A removed message keeps its own links, so that the removal is undone in the reverse order (dancing links, Knuth
//! 2000).

use std::collections::HashMap;

use crate::chat::Chat;
use crate::marker::Markers;
use crate::tokens::TokenCounter;

/// The kept messages of a chat so far, with the tokens of the markers in their gaps.
pub(crate) struct Gaps<'c> {
    chat: &'c Chat,
    markers: &'c Markers,
    counter: &'c dyn TokenCounter,
    /// The kept messages before and after each message, by position plus 1. The entry 0 stands for the start of the
    /// window and for its end.
    previous: Vec<usize>,
    next: Vec<usize>,
    /// The tokens of a marker, by the number of messages that it stands for.
    costs: HashMap<usize, i64>,
    tokens: i64,
}

impl<'c> Gaps<'c> {
    pub(crate) fn new(chat: &'c Chat, markers: &'c Markers, counter: &'c dyn TokenCounter) -> Self {
        let len = chat.len() + 1;
        Self {
            chat,
            markers,
            counter,
            previous: vec![0; len],
            next: vec![0; len],
            costs: HashMap::new(),
            tokens: 0,
        }
    }

    /// Returns the tokens of the markers.
    pub(crate) fn tokens(&self) -> i64 {
        self.tokens
    }

    /// Adds a message behind all others.
    pub(crate) fn push(&mut self, index: usize) {
        self.insert(index, self.previous[0].checked_sub(1));
    }

    /// Adds a message behind a kept one, or at the start.
    pub(crate) fn insert(&mut self, index: usize, before: Option<usize>) {
        let (before, node) = (before.map_or(0, |index| index + 1), index + 1);
        self.previous[node] = before;
        self.next[node] = self.next[before];
        self.restore(index);
    }

    /// Removes a kept message.
    pub(crate) fn remove(&mut self, index: usize) {
        let (before, node, after) = self.around(index);
        self.tokens -= self.cost(before, node) + self.cost(node, after);
        self.tokens += self.cost(before, after);
        self.next[before] = after;
        self.previous[after] = before;
    }

    /// Puts a message back; of several, the one that was removed last comes first.
    pub(crate) fn restore(&mut self, index: usize) {
        let (before, node, after) = self.around(index);
        self.tokens -= self.cost(before, after);
        self.tokens += self.cost(before, node) + self.cost(node, after);
        self.next[before] = node;
        self.previous[after] = node;
    }

    fn around(&self, index: usize) -> (usize, usize, usize) {
        let node = index + 1;
        (self.previous[node], node, self.next[node])
    }

    /// Returns the tokens of the marker between two entries of the list, 0 if there is none.
    fn cost(&mut self, before: usize, after: usize) -> i64 {
        // Nothing follows a gap at the end, so that it has no marker yet.
        let Some(index) = after.checked_sub(1) else {
            return 0;
        };
        let omitted = index - before;
        if omitted == 0
            || !self
                .chat
                .has_marker(self.markers, before.checked_sub(1), index)
        {
            return 0;
        }
        self.cost_of(omitted)
    }

    /// Returns the tokens of a marker that stands for this number of messages.
    pub(crate) fn cost_of(&mut self, omitted: usize) -> i64 {
        let (chat, markers, counter) = (self.chat, self.markers, self.counter);
        let cost = || chat.marker_cost(markers, omitted, counter);
        *self.costs.entry(omitted).or_insert_with(cost)
    }
}
