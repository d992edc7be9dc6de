//! Markers: texts in the place of dropped messages.
//!
//! Most chat templates and some providers require that users and the model take turns. Where
//! messages were dropped, two user turns may meet:
//!
//! ```text
//! chat     0 user   1 assistant   2 user   3 assistant   4 user
//! kept     0 user                                        4 user      two user turns in a row
//! window   0 user   assistant: "[3 earlier messages omitted]"   4 user
//! ```
//!
//! By default only such gaps have a marker. With a marker text of the caller every gap has one;
//! where a message of its own would break the turns, the text becomes part of the user message next
//! to it. Markers cost tokens, which the ladder reserves before it chooses
//! ([`Chat::marker_tokens`]).

use std::cmp::Reverse;
use std::collections::BTreeSet;

use cupel::{ChatSettings, total_tokens};
use serde_json::Value;

use crate::candidates::Candidates;
use crate::chat::Chat;
use crate::fit::{Fitted, Shortened};
use crate::message::{ContentPart, ParsedMessage, Role};
use crate::splice::quoted;
use crate::tokens::{TokenCounter, cost};

/// A text in the place of dropped messages: a message of its own, or part of the user message next to it
/// if roles would not alternate otherwise.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Marker {
    /// The position of the kept message that it precedes.
    pub before: usize,
    /// The number of messages dropped there.
    pub omitted: usize,
    /// Its role.
    pub role: &'static str,
    /// Its text.
    pub text: String,
    /// The tokens that it adds to the window.
    pub tokens: i64,
    /// The position of the user message whose text it is part of, if it is not a message of its own. It
    /// precedes that text if the message follows the dropped ones, and follows it otherwise.
    pub merged_into: Option<usize>,
    /// The JSON of the message.
    #[serde(skip)]
    author: Role,
    #[serde(skip)]
    pub(crate) json: String,
}

/// Where a marker goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A message of its own.
    Message(Role),
    /// Into the text of a user message.
    Into(usize),
    Nowhere,
}

/// When markers are written, and their text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Markers {
    Off,
    /// Before a user turn that would otherwise follow another one, or a tool result.
    BeforeUserTurn,
    /// At every gap.
    Everywhere(String),
}

impl Markers {
    pub(crate) fn of(settings: &ChatSettings) -> Self {
        match settings.marker.as_deref() {
            None => Self::BeforeUserTurn,
            Some("") => Self::Off,
            Some(text) => Self::Everywhere(text.to_owned()),
        }
    }

    /// Returns whether a gap with this place for a marker has one.
    fn is_wanted(&self, place: Place) -> bool {
        match self {
            Self::Off => false,
            Self::BeforeUserTurn => place == Place::Message(Role::Assistant),
            Self::Everywhere(_) => place != Place::Nowhere,
        }
    }

    fn text(&self, omitted: usize) -> String {
        match self {
            Self::Everywhere(text) => text.replace("{n}", &omitted.to_string()),
            _ if omitted == 1 => "[1 earlier message omitted]".to_owned(),
            _ => format!("[{omitted} earlier messages omitted]"),
        }
    }
}

impl Fitted<'_> {
    /// Replaces the text of a marker, such as by a summary of the dropped messages.
    ///
    /// The tokens of the window change with it. To leave room, fit with a marker of as many tokens.
    ///
    /// # Panics
    ///
    /// If there is no marker at this position of [`markers`](Self::markers).
    pub fn set_marker_text(&mut self, position: usize, text: &str, counter: &dyn TokenCounter) {
        let old = &self.markers[position];
        let own = Place::Message(old.author);
        let place = old.merged_into.map_or(own, Place::Into);
        let gap = (old.before, old.omitted);
        let new = self
            .chat
            .marker(place, gap, text.to_owned(), &self.shortened, counter);
        if let Some(new) = new {
            self.tokens_after = self.tokens_after - old.tokens + new.tokens;
            self.markers[position] = new;
        }
    }

    /// Returns the marker that is a message of its own before a kept message.
    pub(crate) fn marker_before(&self, index: usize) -> Option<&Marker> {
        let mut own = self.markers.iter().filter(|it| it.merged_into.is_none());
        own.find(|marker| marker.before == index)
    }

    /// Returns the marker that is part of a kept message.
    pub(crate) fn marker_in(&self, index: usize) -> Option<&Marker> {
        let mut markers = self.markers.iter();
        markers.find(|marker| marker.merged_into == Some(index))
    }

    /// Returns the path and the new text of each string of a kept message that is not as it was read.
    pub(crate) fn replaced(&self, index: usize) -> Vec<(&str, String)> {
        let short = self.shortened.binary_search_by_key(&index, |it| it.index);
        let short = short.map(|position| &self.shortened[position]);
        let texts = short.iter().flat_map(|it| &it.texts);
        let mut texts: Vec<(&str, String)> = texts
            .map(|(path, text)| (path.as_str(), text.clone()))
            .collect();
        if let Some(marker) = self.marker_in(index)
            && let Some((path, text)) =
                self.chat
                    .merge_target(marker.before, index, &self.shortened)
        {
            texts.retain(|(replaced, _)| *replaced != path);
            texts.push((path, merged(marker.before == index, &marker.text, text)));
        }
        texts
    }
}

/// Returns a marker and the text of the message that it is merged into.
fn merged(is_before: bool, marker: &str, text: &str) -> String {
    if is_before {
        format!("{marker}\n\n{text}")
    } else {
        format!("{text}\n\n{marker}")
    }
}

impl Chat {
    /// Returns the texts that [`fit`](Self::fit) adds in the place of dropped messages, if it keeps the
    /// messages `kept`, which are in ascending order, each as the [view](cupel::ContextItem::views) of its
    /// candidate that `view` returns.
    ///
    /// ```
    /// use cupel_chat::{Chat, Encoding, single_policy};
    ///
    /// let chat = Chat::parse(r#"[
    ///   {"role": "user", "content": "Hello!"},
    ///   {"role": "assistant", "content": "What can I do for you?"},
    ///   {"role": "user", "content": "What is 2 + 2?"}
    /// ]"#, None)?;
    /// let candidates = chat.candidates_for(&single_policy(), None, &Encoding::O200k)?;
    /// let markers = chat.markers_for(&candidates, &[0, 2], |_| None, &Encoding::O200k);
    /// assert_eq!((markers[0].before, &*markers[0].text), (2, "[1 earlier message omitted]"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn markers_for(
        &self,
        candidates: &Candidates,
        kept: &[usize],
        view: impl Fn(usize) -> Option<usize>,
        counter: &dyn TokenCounter,
    ) -> Vec<Marker> {
        let mut is_kept = vec![false; self.len()];
        for &index in kept {
            is_kept[index] = true;
        }
        let room = self.marker_room(candidates, |index| is_kept[index]);
        if room == 0 {
            return Vec::new();
        }
        // Only a user turn next to a gap has a marker in its text. The others are not shortened
        // here: a sweep asks for the markers of many windows.
        let is_at_gap = |&index: &usize| {
            let is_dropped = |other: usize| is_kept.get(other) == Some(&false);
            is_dropped(index.wrapping_sub(1)) || is_dropped(index + 1)
        };
        let user_turns = kept.iter().copied().filter(is_at_gap);
        let user_turns = user_turns.filter(|&index| self.messages[index].is_user_turn());
        let shortened: Vec<Shortened> = user_turns
            .filter_map(|index| self.shortened(candidates, index, view(index)))
            .collect();
        self.markers(candidates, kept, &shortened, room, counter)
    }

    /// Returns the tokens that the ladder reserves for markers in a window: 0 if the dropped messages have no more
    /// tokens than the markers.
    pub(crate) fn marker_room(
        &self,
        candidates: &Candidates,
        is_kept: impl Fn(usize) -> bool,
    ) -> i64 {
        let Some(ladder) = &candidates.ladder else {
            return 0;
        };
        if ladder.marker_tokens() == 0 {
            return 0;
        }
        let filter = self.ladder_filter(candidates);
        let dropped = (0..self.len()).filter(|&index| !is_kept(index) && filter(index).is_none());
        let is_more = |tokens| tokens > ladder.marker_tokens();
        let mut sums = dropped.scan(0_i64, |sum, index| {
            *sum += candidates.least_tokens(index);
            Some(*sum)
        });
        if is_more(candidates.gap_tokens()) || sums.any(is_more) {
            ladder.marker_tokens()
        } else {
            0
        }
    }

    /// Returns the markers of a window, in order. Those of the largest gaps that fit into `room` are taken, if
    /// each costs less than the messages that it stands for. `kept` is in ascending order.
    fn markers(
        &self,
        candidates: &Candidates,
        kept: &[usize],
        shortened: &[Shortened],
        mut room: i64,
        counter: &dyn TokenCounter,
    ) -> Vec<Marker> {
        let markers = &candidates.markers;
        if *markers == Markers::Off || !self.shape.is_chat() {
            return Vec::new();
        }
        let mut gaps: Vec<(usize, usize, Place)> = Vec::new();
        let mut next = 0;
        let mut previous = None;
        for &index in kept {
            let omitted = index - next;
            next = index + 1;
            let before = previous.replace(index);
            if omitted == 0 {
                continue;
            }
            let place = self.marker_place(before, index);
            if markers.is_wanted(place) {
                gaps.push((index, omitted, place));
            }
        }
        // The sort is stable: of gaps of the same size the earlier one gets the marker.
        gaps.sort_by_key(|&(_, omitted, _)| Reverse(omitted));
        let mut found: Vec<Marker> = Vec::new();
        for (index, omitted, place) in gaps {
            let text = markers.text(omitted);
            let marker = self.marker(place, (index, omitted), text, shortened, counter);
            let dropped = total_tokens(&candidates[index - omitted..index]);
            let marker = marker.filter(|marker| {
                let is_taken = |other: &Marker| other.merged_into == marker.merged_into;
                let is_second = marker.merged_into.is_some() && found.iter().any(is_taken);
                marker.tokens <= room && marker.tokens < dropped && !is_second
            });
            if let Some(marker) = marker {
                room -= marker.tokens;
                found.push(marker);
            }
        }
        found.sort_by_key(|marker| marker.before);
        found
    }

    /// Returns where a marker goes between two kept messages, so that users and the model take turns.
    ///
    /// | before the gap | after it: user turn | after it: another message |
    /// |---|---|---|
    /// | nothing, system, assistant | into that user turn | message of the user |
    /// | user turn | message of the assistant | into the user turn before |
    /// | user message with tool results only | message of the assistant | nowhere |
    /// | tool | message of the assistant | message of the user |
    ///
    /// In a format whose roles alternate there are no messages of their own: nowhere instead.
    fn marker_place(&self, before: Option<usize>, index: usize) -> Place {
        // Nothing may come between a call and its result, which may come after other calls.
        if before.is_some_and(|before| self.groups.goes_on(before, index)) {
            return Place::Nowhere;
        }
        let previous = before.map(|before| self.messages[before].role());
        let is_user = self.messages[index].is_user_turn();
        match (previous, before) {
            (None | Some(Role::System | Role::Assistant), _) if is_user => Place::Into(index),
            // There, a message of its own would be a second one of its role in a row.
            _ if is_user && self.shape.format().alternates() => Place::Nowhere,
            _ if is_user => Place::Message(Role::Assistant),
            (Some(Role::User), Some(before)) if self.messages[before].is_user_turn() => {
                Place::Into(before)
            }
            (Some(Role::User), _) => Place::Nowhere,
            _ if self.shape.format().alternates() => Place::Nowhere,
            _ => Place::Message(Role::User),
        }
    }

    /// Returns the path and the text of the string in the message `index` that a marker before the message
    /// `before` is merged into.
    fn merge_target<'a>(
        &'a self,
        before: usize,
        index: usize,
        shortened: &'a [Shortened],
    ) -> Option<(&'a str, &'a str)> {
        let message = &self.messages[index];
        let mut own = message.slots.iter().filter(|slot| slot.result.is_none());
        let slot = if before == index {
            own.next()
        } else {
            own.next_back()
        }?;
        let ContentPart::Text(text) = &message.parts[slot.part] else {
            return None;
        };
        let short = shortened.iter().find(|short| short.index == index);
        let mut texts = short.into_iter().flat_map(|short| &short.texts);
        let short = texts.find(|(path, _)| *path == slot.path);
        Some((&slot.path, short.map_or(text, |(_, text)| text)))
    }

    /// Returns a marker; `gap` is the position of the message after it and the number of dropped ones.
    fn marker(
        &self,
        place: Place,
        gap: (usize, usize),
        text: String,
        shortened: &[Shortened],
        counter: &dyn TokenCounter,
    ) -> Option<Marker> {
        let (before, omitted) = gap;
        let role = match place {
            Place::Message(role) => role,
            Place::Into(_) => Role::User,
            Place::Nowhere => return None,
        };
        let (label, json) = self.marker_json(role, &text, before);
        let (tokens, merged_into) = match place {
            Place::Into(index) => {
                let (_, old) = self.merge_target(before, index, shortened)?;
                let new = merged(before == index, &text, old);
                (counter.count(&new) - counter.count(old), Some(index))
            }
            _ => {
                let mut message = ParsedMessage::new(role, label);
                message.push_text(&text);
                (cost::message(self.shape, &message, counter), None)
            }
        };
        Some(Marker {
            before,
            omitted,
            role: label,
            author: role,
            text,
            tokens,
            merged_into,
            json,
        })
    }

    /// Returns the tokens that the markers of one window may cost, at most `gaps` of them. Pinned
    /// messages make more.
    pub(crate) fn marker_tokens(
        &self,
        markers: &Markers,
        gaps: i64,
        pinned: &BTreeSet<usize>,
        counter: &dyn TokenCounter,
    ) -> i64 {
        let user_turns = self.messages.iter().filter(|it| it.is_user_turn()).count();
        let pinned = i64::try_from(pinned.len()).unwrap_or(i64::MAX);
        let count = match markers {
            _ if !self.shape.is_chat() || user_turns == 0 => 0,
            Markers::Off => 0,
            Markers::BeforeUserTurn if user_turns == 1 || self.shape.format().alternates() => 0,
            Markers::BeforeUserTurn => 1 + pinned,
            Markers::Everywhere(_) => gaps + pinned,
        };
        if count == 0 {
            return 0;
        }
        // An upper bound for any marker of any window: a longer number never has fewer tokens.
        count * self.marker_cost(markers, self.len().max(2), counter)
    }

    /// Returns whether a window has a marker between two kept messages with a gap between them, or before its first
    /// one.
    pub(crate) fn has_marker(
        &self,
        markers: &Markers,
        before: Option<usize>,
        index: usize,
    ) -> bool {
        self.shape.is_chat() && markers.is_wanted(self.marker_place(before, index))
    }

    /// Returns the most tokens that a marker for this number of messages costs: those of a message of its own.
    /// `assistant` is the longer role, and part of another message it needs no role at all.
    pub(crate) fn marker_cost(
        &self,
        markers: &Markers,
        omitted: usize,
        counter: &dyn TokenCounter,
    ) -> i64 {
        let place = Place::Message(Role::Assistant);
        let marker = self.marker(place, (0, 1), markers.text(omitted), &[], counter);
        marker.map_or(0, |marker| marker.tokens)
    }

    /// Returns the role as written and the JSON of a marker, in the notation of the message `like`.
    fn marker_json(&self, role: Role, text: &str, like: usize) -> (&'static str, String) {
        let like: Value = serde_json::from_str(self.layout.json(like)).unwrap_or_default();
        (self.shape.format().marker)(role, &quoted(text), &like)
    }
}
