//! The byte ranges of the messages in a text, so that a selection is written back byte for byte.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{ChatError, Kind, Place};

/// A text as a list of values, and the text before, between and after them.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) text: String,
    /// The path of the list, such as `messages`; empty for a top-level array and for lines.
    pub(crate) path: &'static str,
    /// Whether a string takes the place of the list.
    pub(crate) is_text: bool,
    /// The other fields of the request.
    pub(crate) envelope: Vec<(String, serde_json::Value)>,
    /// The values, each from the end of the separator before it.
    elements: Vec<Element>,
    separator: &'static str,
    /// The end of the text before the values, and the start of the text after them.
    head: usize,
    tail: usize,
}

/// One value of a text that is written.
pub(crate) enum Piece<'p> {
    /// A value as it was read.
    Original(usize),
    /// Another value in the place of the one at an index.
    Replaced(usize, &'p str),
    /// A new value before the one at an index, with the same white space.
    Before(usize, &'p str),
}

#[derive(Debug, Clone)]
struct Element {
    /// The start of its leading white space.
    lead: usize,
    value: Range<usize>,
    /// The end, with a line break.
    end: usize,
}

/// The names that the list has in a request.
const LISTS: [&str; 3] = ["messages", "input", "items"];

impl Layout {
    /// Finds the list in a request, a top-level array, or one value per line.
    pub(crate) fn find(text: &str) -> Result<Self, ChatError> {
        let body = text.strip_prefix('\u{feff}').unwrap_or(text);
        if body.trim().is_empty() {
            return Err(ChatError::new(
                text,
                0,
                "the text is empty; a chat is a JSON document or one JSON object per line",
            ));
        }
        if is_one_per_line(body) {
            return Self::lines(text);
        }
        match body.trim_start().as_bytes().first() {
            Some(b'[') => {
                let list: Vec<&RawValue> = parse(text, body)?;
                let whole: &RawValue = parse(text, body)?;
                Ok(Self::list(text, "", Vec::new(), whole, &list))
            }
            Some(b'{') => Self::document(text, body),
            _ => {
                let _: IgnoredAny = parse(text, body)?;
                Err(ChatError::new(
                    text,
                    0,
                    "a chat is a JSON object with an array `messages`, `input` or `items`, a JSON array, or one JSON object per line",
                ))
            }
        }
    }

    fn document(text: &str, body: &str) -> Result<Self, ChatError> {
        let Entries(entries) = parse(text, body)?;
        let names: Vec<&str> = LISTS
            .into_iter()
            .filter(|name| entries.iter().any(|(key, _)| key == name))
            .collect();
        let [path] = names[..] else {
            let keys: Vec<String> = entries.iter().map(|(key, _)| format!("`{key}`")).collect();
            let message = match names.len() {
                0 if keys.is_empty() => "the object is empty".to_owned(),
                0 => format!("the object has {}", keys.join(", ")),
                _ => format!("the object has both {}", list_of(&names)),
            };
            return Err(ChatError::new(
                text,
                start(text, body),
                format!(
                    "{message}; a chat has one array, `messages` (OpenAI Chat, Anthropic, LangChain), `input` (OpenAI Responses) or `items`"
                ),
            ));
        };
        let mut lists = entries.iter().filter(|(key, _)| key == path);
        let (Some((_, whole)), None) = (lists.next(), lists.next()) else {
            return Err(
                ChatError::new(text, start(text, body), "duplicate key; remove one").at(path),
            );
        };
        let list: Vec<&RawValue> = if path == "input" && whole.get().starts_with('"') {
            vec![*whole]
        } else {
            serde_json::from_str(whole.get()).map_err(|_| {
                ChatError::new(text, offset(text, whole), "must be an array")
                    .at(path)
                    .kind(Kind::Value)
            })?
        };
        let envelope = entries.iter().filter(|(key, _)| key != path);
        let envelope = envelope
            .map(|(key, value)| Ok((key.clone(), serde_json::from_str(value.get())?)))
            .collect::<Result<_, serde_json::Error>>()
            .map_err(|error| syntax(text, body, &error))?;
        Ok(Self::list(text, path, envelope, whole, &list))
    }

    fn list(
        text: &str,
        path: &'static str,
        envelope: Vec<(String, serde_json::Value)>,
        whole: &RawValue,
        list: &[&RawValue],
    ) -> Self {
        let is_text = whole.get().starts_with('"');
        let head = offset(text, whole) + usize::from(!is_text);
        let mut at = head;
        let mut elements = Vec::with_capacity(list.len());
        for raw in list {
            let from = offset(text, raw);
            // The separator is white space and one comma.
            let lead = text[at..from].find(',').map_or(at, |comma| at + comma + 1);
            at = from + raw.get().len();
            elements.push(Element {
                lead,
                value: from..at,
                end: at,
            });
        }
        Self {
            text: text.to_owned(),
            path,
            is_text,
            envelope,
            elements,
            separator: ",",
            head,
            tail: at,
        }
    }

    fn lines(text: &str) -> Result<Self, ChatError> {
        let mut elements = Vec::new();
        let mut at = text.len() - text.trim_start_matches('\u{feff}').len();
        let head = at;
        for line in text[at..].split_inclusive('\n') {
            let (lead, end) = (at, at + line.len());
            at = end;
            let value = line.trim();
            if value.is_empty() {
                continue;
            }
            let from = lead + line.find(value).unwrap_or(0);
            let _: IgnoredAny = serde_json::from_str(value).map_err(|error| {
                let place = from + error.column().saturating_sub(1);
                ChatError::new(text, place, described(&error))
            })?;
            elements.push(Element {
                lead,
                value: from..from + value.len(),
                end,
            });
        }
        Ok(Self {
            text: text.to_owned(),
            path: "",
            is_text: false,
            envelope: Vec::new(),
            elements,
            separator: "",
            head,
            tail: text.len(),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.elements.len()
    }

    /// Returns the text of a value.
    pub(crate) fn json(&self, index: usize) -> &str {
        &self.text[self.elements[index].value.clone()]
    }

    /// Returns the path of a value, or of a field in it.
    pub(crate) fn path_of(&self, index: usize, field: &str) -> String {
        let dot = if field.is_empty() || field.starts_with('[') {
            ""
        } else {
            "."
        };
        format!("{}[{index}]{dot}{field}", self.path)
    }

    /// Returns an error at a value.
    pub(crate) fn fault(&self, index: usize, field: &str, message: impl Into<String>) -> ChatError {
        let from = self
            .elements
            .get(index)
            .map_or(0, |element| element.value.start);
        ChatError::new(&self.text, from, message).at(self.path_of(index, field))
    }

    /// Returns the position of a value.
    pub(crate) fn place(&self, index: usize) -> Place {
        Place::of(&self.text, self.elements[index].value.start)
    }

    /// Returns another field of the request.
    pub(crate) fn field(&self, key: &str) -> Option<&serde_json::Value> {
        let mut found = self.envelope.iter().filter(|(name, _)| name == key);
        found.next_back().map(|(_, value)| value)
    }

    /// Returns the text with other values. The originals are in ascending order.
    pub(crate) fn write(&self, pieces: &[Piece<'_>]) -> String {
        let is_original = |(index, piece): (usize, &Piece<'_>)| matches!(piece, Piece::Original(original) if *original == index);
        if pieces.len() == self.elements.len() && pieces.iter().enumerate().all(is_original) {
            return self.text.clone();
        }
        let mut text = self.text[..self.head].to_owned();
        for (position, piece) in pieces.iter().enumerate() {
            let (Piece::Original(index) | Piece::Replaced(index, _) | Piece::Before(index, _)) =
                *piece;
            let Element {
                lead,
                ref value,
                end,
            } = self.elements[index];
            if position > 0 {
                text.push_str(self.separator);
                // The last line may have no line break.
                if self.separator.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
            }
            text.push_str(&self.text[lead..value.start]);
            text.push_str(match piece {
                Piece::Original(_) => &self.text[value.clone()],
                Piece::Replaced(_, json) | Piece::Before(_, json) => json,
            });
            text.push_str(&self.text[value.end..end]);
        }
        text.push_str(&self.text[self.tail..]);
        text
    }
}

/// Returns whether the first line is an object, and more lines follow or it is a message.
fn is_one_per_line(body: &str) -> bool {
    let mut lines = body.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    let whole =
        first.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(first).is_ok();
    let is_message = || {
        let entries = serde_json::from_str::<Entries<'_>>(first);
        let is_message = |key: &str| ["role", "type", "content", "lc"].contains(&key);
        entries.is_ok_and(|Entries(entries)| {
            let mut keys = entries.iter().map(|(key, _)| key.as_str());
            keys.clone().any(is_message) && !keys.any(|key| LISTS.contains(&key))
        })
    };
    whole && (lines.next().is_some() || is_message())
}

fn parse<'a, T: Deserialize<'a>>(text: &str, body: &'a str) -> Result<T, ChatError> {
    serde_json::from_str(body).map_err(|error| syntax(text, body, &error))
}

fn syntax(text: &str, body: &str, error: &serde_json::Error) -> ChatError {
    let skipped = text.len() - body.len();
    let line = error.line().max(1);
    let start: usize = body
        .split_inclusive('\n')
        .take(line - 1)
        .map(str::len)
        .sum();
    ChatError::new(
        text,
        skipped + start + error.column().saturating_sub(1),
        described(error),
    )
}

/// Returns the message of the parser without its position.
fn described(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let message = text
        .rfind(" at line ")
        .map_or(text.as_str(), |end| &text[..end]);
    match error.classify() {
        serde_json::error::Category::Eof => format!("incomplete JSON: {message}"),
        _ => format!("invalid JSON: {message}"),
    }
}

fn start(text: &str, body: &str) -> usize {
    text.len() - body.trim_start().len()
}

/// Returns the offset of a value borrowed from `text`.
pub(crate) fn offset(text: &str, raw: &RawValue) -> usize {
    raw.get().as_ptr().addr() - text.as_ptr().addr()
}

fn list_of(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(" and ")
}

/// The fields of an object in order, with duplicates.
pub(crate) struct Entries<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}
