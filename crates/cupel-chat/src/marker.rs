//! Markers: messages in the place of dropped ones.

use std::collections::BTreeSet;

use cupel::ChatSettings;
use serde_json::Value;

use crate::chat::Chat;
use crate::fit::Fitted;
use crate::message::{ParsedMessage, Role};
use crate::splice::quoted;
use crate::tokens::{TokenCounter, cost};

/// A message in the place of dropped ones.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Marker {
    /// The position of the kept message that it precedes.
    pub before: usize,
    /// The number of messages dropped there.
    pub omitted: usize,
    /// Its role.
    pub role: &'static str,
    /// Its text.
    pub text: String,
    /// Its tokens.
    pub tokens: i64,
    #[serde(skip)]
    author: Role,
    #[serde(skip)]
    pub(crate) json: String,
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
        let text = text.to_owned();
        let new = self
            .chat
            .marker(old.author, old.before, old.omitted, text, counter);
        self.tokens_after = self.tokens_after - old.tokens + new.tokens;
        self.markers[position] = new;
    }
}

impl Chat {
    /// Returns the markers of a window, in order, as far as they fit into `room`. `kept` is in ascending
    /// order.
    pub(crate) fn markers(
        &self,
        markers: &Markers,
        kept: &[usize],
        mut room: i64,
        counter: &dyn TokenCounter,
    ) -> Vec<Marker> {
        if *markers == Markers::Off || !self.shape.is_chat() {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut next = 0;
        let mut previous = None;
        for &index in kept {
            let omitted = index - next;
            next = index + 1;
            let before = previous.replace(index);
            let is_user = self.messages[index].is_user_turn();
            let is_answered = before.is_none_or(|before| {
                matches!(self.messages[before].role(), Role::System | Role::Assistant)
            });
            if omitted == 0 || (*markers == Markers::BeforeUserTurn && (!is_user || is_answered)) {
                continue;
            }
            let role = if is_user { Role::Assistant } else { Role::User };
            let marker = self.marker(role, index, omitted, markers.text(omitted), counter);
            if marker.tokens <= room {
                room -= marker.tokens;
                found.push(marker);
            }
        }
        found
    }

    fn marker(
        &self,
        role: Role,
        before: usize,
        omitted: usize,
        text: String,
        counter: &dyn TokenCounter,
    ) -> Marker {
        let (label, json) = self.marker_json(role, &text, before);
        let mut message = ParsedMessage::new(role, label);
        message.push_text(&text);
        Marker {
            before,
            omitted,
            role: label,
            author: role,
            tokens: cost::message(self.shape, &message, counter),
            text,
            json,
        }
    }

    /// Returns the tokens that the markers of one window may cost. Pinned messages make more gaps.
    pub(crate) fn marker_tokens(
        &self,
        markers: &Markers,
        pinned: &BTreeSet<usize>,
        counter: &dyn TokenCounter,
    ) -> i64 {
        let user_turns = self.messages.iter().filter(|it| it.is_user_turn()).count();
        let pinned = i64::try_from(pinned.len()).unwrap_or(i64::MAX);
        let count = match markers {
            _ if !self.shape.is_chat() || user_turns == 0 => 0,
            Markers::Off => 0,
            Markers::BeforeUserTurn if user_turns == 1 => 0,
            Markers::BeforeUserTurn => 1 + pinned,
            // After the task and after the last user turn.
            Markers::Everywhere(_) => 2 + pinned,
        };
        if count == 0 {
            return 0;
        }
        // A longer number never has fewer tokens; the role is the longer one.
        let text = markers.text(self.len().max(2));
        count * self.marker(Role::Assistant, 0, 1, text, counter).tokens
    }

    /// Returns the role as written and the JSON of a marker, in the notation of the message `like`.
    fn marker_json(&self, role: Role, text: &str, like: usize) -> (&'static str, String) {
        let like: Value = serde_json::from_str(self.layout.json(like)).unwrap_or_default();
        (self.shape.format().marker)(role, &quoted(text), &like)
    }
}
