//! The byte ranges of the messages in a text, so that a selection is written back byte for byte.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::chats::Chats;
use crate::error::{ChatError, Kind, Place};
use crate::pointer::{self, Found};
use crate::shape::{Shape, evidence, foreign};

/// A text as a list of values, and the text before, between and after them.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) text: String,
    /// The path of the list, such as `messages`; empty for a top-level array and for lines.
    pub(crate) path: String,
    /// The JSON pointer that the list was looked for at.
    pub(crate) at: String,
    /// Whether a string takes the place of the list.
    pub(crate) is_text: bool,
    /// The other fields of the request.
    pub(crate) envelope: Vec<(String, Value)>,
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

impl Piece<'_> {
    fn index(&self) -> usize {
        match self {
            Self::Original(index) | Self::Replaced(index, _) | Self::Before(index, _) => *index,
        }
    }
}

#[derive(Debug, Clone)]
struct Element {
    /// The start of its leading white space.
    lead: usize,
    value: Range<usize>,
    /// The end, with a line break.
    end: usize,
}

/// A document that contains a request: the fields that identify it, and where the request is.
struct Wrapper {
    fields: &'static [&'static str],
    pointer: &'static str,
}

/// The documents that contain a request.
const WRAPPERS: [Wrapper; 6] = [
    // A line of an OpenAI batch.
    Wrapper {
        fields: &["custom_id", "body"],
        pointer: "/body",
    },
    // An element of an Anthropic batch.
    Wrapper {
        fields: &["custom_id", "params"],
        pointer: "/params",
    },
    // A state of LangGraph, and a checkpoint.
    Wrapper {
        fields: &["values", "next"],
        pointer: "/values",
    },
    Wrapper {
        fields: &["channel_values"],
        pointer: "/channel_values",
    },
    // A run of tau-bench.
    Wrapper {
        fields: &["task_id", "traj"],
        pointer: "/traj",
    },
    // A trajectory of SWE-agent.
    Wrapper {
        fields: &["history", "trajectory"],
        pointer: "/history",
    },
];

impl Layout {
    /// Finds the list in a request, a top-level array, or one value per line. `at` is the JSON pointer
    /// (RFC 6901) of the list or of the request; empty for the whole text.
    pub(crate) fn find(text: &str, at: &str, shape: Option<Shape>) -> Result<Self, ChatError> {
        let body = text.strip_prefix('\u{feff}').unwrap_or(text);
        if body.trim().is_empty() {
            return Err(ChatError::new(
                text,
                0,
                "the text is empty; a chat is a JSON document or one JSON object per line",
            ));
        }
        if let Some(chats) = Chats::find(text, at) {
            let message = format!("{} chats in one text; read them one by one", chats.len());
            return Err(ChatError::new(text, 0, message).kind(Kind::Many));
        }
        if at.is_empty() && is_one_per_line(body) {
            return Self::lines(text);
        }
        let whole: &RawValue = match parse(text, body) {
            Ok(whole) => whole,
            Err(error) => return Err(foreign(text, &Value::from(body)).unwrap_or(error)),
        };
        let found = pointer::resolve(text, Found::whole(whole), at)?;
        let layout = Self::of(text, found, shape)?;
        Ok(Self {
            at: at.to_owned(),
            ..layout
        })
    }

    /// Finds the list in a value.
    fn of(text: &str, found: Found<'_>, shape: Option<Shape>) -> Result<Self, ChatError> {
        let raw = found.raw;
        match raw.get().as_bytes()[0] {
            b'[' => Self::list(text, found),
            b'{' => Self::document(text, &found, shape),
            _ => {
                let message = "a chat is a JSON object with an array `messages`, `input` or `items`, a JSON array, or one JSON object per line";
                Err(ChatError::new(text, offset(text, raw), message).at(found.path))
            }
        }
    }

    /// Finds the list in a request, or the request in its wrapper.
    fn document(text: &str, found: &Found<'_>, shape: Option<Shape>) -> Result<Self, ChatError> {
        let Entries(entries) = found.entries();
        let has = |name: &str| entries.iter().any(|(key, _)| key == name);
        let mut keys = match shape {
            Some(shape) => shape.format().lists.to_vec(),
            None => Vec::new(),
        };
        if !keys.iter().any(|key| has(key)) {
            keys = list_keys();
        }
        keys.retain(|key| has(key));
        // A field of that name that holds no list is a field like others, if there is a list.
        let is_list = |key: &&str| {
            let mut values = entries.iter().filter(|(name, _)| name == key);
            values.any(|(_, value)| is_list(key, value.get()))
        };
        if keys.iter().any(is_list) {
            keys.retain(is_list);
        }
        match keys[..] {
            [key] => Self::list(text, found.field(text, key)?),
            [] => {
                let is_in = |wrapper: &&Wrapper| wrapper.fields.iter().all(|field| has(field));
                match WRAPPERS.iter().find(is_in) {
                    Some(Wrapper { pointer, .. }) => {
                        let inner = pointer::resolve(text, found.clone(), pointer)?;
                        Self::of(text, inner, shape)
                    }
                    None => Err(no_list(text, found)),
                }
            }
            _ => {
                let message = format!("the object has both {}", list_of(&keys));
                let pointers = keys.iter().map(|key| found.pointer(key)).collect();
                Err(needs_list(text, found, &message).elsewhere(pointers))
            }
        }
    }

    /// Returns the layout of a list, or of a string in its place.
    fn list(text: &str, found: Found<'_>) -> Result<Self, ChatError> {
        let raw = found.raw;
        let is_text = raw.get().starts_with('"') && is_list(found.key(), raw.get());
        let list: Vec<&RawValue> = if is_text {
            vec![raw]
        } else {
            serde_json::from_str(raw.get()).map_err(|_| {
                ChatError::new(text, offset(text, raw), "must be an array")
                    .at(&*found.path)
                    .kind(Kind::Value)
            })?
        };
        let head = offset(text, raw) + usize::from(!is_text);
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
        let siblings = found.siblings.into_iter();
        let siblings = siblings.map(|(key, value)| (key, parsed(value)));
        Ok(Self {
            text: text.to_owned(),
            path: found.path,
            at: String::new(),
            is_text,
            envelope: siblings.collect(),
            elements,
            separator: ",",
            head,
            tail: at,
        })
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
            path: String::new(),
            at: String::new(),
            is_text: false,
            envelope: Vec::new(),
            tail: elements.last().map_or(head, |last: &Element| last.end),
            elements,
            separator: "",
            head,
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

    /// Returns the key of the list; empty for a top-level array and for lines.
    pub(crate) fn key(&self) -> &str {
        self.path.rsplit(['.', ']']).next().unwrap_or_default()
    }

    /// Returns the text with other values. The pieces are in ascending order.
    pub(crate) fn write(&self, pieces: &[Piece<'_>]) -> String {
        let is_original = |(index, piece): (usize, &Piece<'_>)| matches!(piece, Piece::Original(original) if *original == index);
        if pieces.len() == self.elements.len() && pieces.iter().enumerate().all(is_original) {
            return self.text.clone();
        }
        let mut text = self.text[..self.head].to_owned();
        for (position, piece) in pieces.iter().enumerate() {
            let Element {
                lead,
                ref value,
                end,
            } = self.elements[piece.index()];
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

/// Returns the keys that the list has in a request of any format.
fn list_keys() -> Vec<&'static str> {
    let mut keys: Vec<&str> = Vec::new();
    for shape in Shape::ALL {
        let new = shape.format().lists.iter();
        let new: Vec<&str> = new.copied().filter(|key| !keys.contains(key)).collect();
        keys.extend(new);
    }
    keys
}

/// Returns whether a value is a list of messages under a key: an array, or a string where a format
/// accepts one.
fn is_list(key: &str, json: &str) -> bool {
    let accepts_string = |shape: &Shape| {
        let format = shape.format();
        format.read_string.is_some() && format.lists.contains(&key)
    };
    json.starts_with('[') || json.starts_with('"') && Shape::ALL.iter().any(accepts_string)
}

/// Returns the error for an object without a list: what it looks like, and where else a list is.
fn no_list(text: &str, found: &Found<'_>) -> ChatError {
    if let Some(error) = foreign(text, &parsed(found.raw)) {
        return error;
    }
    let Entries(entries) = found.entries();
    let keys: Vec<String> = entries.iter().map(|(key, _)| format!("`{key}`")).collect();
    let message = if keys.is_empty() {
        "the object is empty".to_owned()
    } else {
        format!("the object has {}", keys.join(", "))
    };
    needs_list(text, found, &message).elsewhere(found.lists())
}

/// Returns an error that names the keys of the list by format.
fn needs_list(text: &str, found: &Found<'_>, message: &str) -> ChatError {
    let keys = list_keys().into_iter().map(|key| {
        let has_key = |shape: &Shape| shape.format().lists.contains(&key) && shape.is_chat();
        let titles = Shape::ALL.into_iter().filter(has_key);
        let titles: Vec<&str> = titles.map(|shape| shape.format().title).collect();
        match &titles[..] {
            [] => format!("`{key}`"),
            titles => format!("`{key}` ({})", titles.join(", ")),
        }
    });
    let mut keys: Vec<String> = keys.collect();
    let last = keys.pop().unwrap_or_default();
    let message = format!(
        "{message}; a chat has one array, {} or {last}",
        keys.join(", ")
    );
    ChatError::new(text, offset(text, found.raw), message).at(&*found.path)
}

/// Returns whether the first line is an object, and more lines follow or it is a message.
pub(crate) fn is_one_per_line(body: &str) -> bool {
    let mut lines = body.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    let whole =
        first.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(first).is_ok();
    let is_message = || {
        let entries = serde_json::from_str::<Entries<'_>>(first);
        let is_message = |key: &str| ["role", "type", "content", "lc"].contains(&key);
        entries.is_ok_and(|Entries(entries)| {
            let mut keys = entries.iter().map(|(key, _)| key.as_str());
            keys.clone().any(is_message) && !keys.any(|key| list_keys().contains(&key))
        })
    };
    whole && (lines.next().is_some() || is_message())
}

/// Returns whether a value is a request or contains one: an object with a list of messages, also at a
/// JSON pointer. A message is not a request.
pub(crate) fn is_request(json: &str, at: &str) -> bool {
    let Ok(whole) = serde_json::from_str::<&RawValue>(json) else {
        return false;
    };
    let value = parsed(whole);
    let is_message = || value.get("role").is_some() || evidence(&value).is_some();
    let found = pointer::resolve(json, Found::whole(whole), at);
    let layout = found.and_then(|found| Layout::of(json, found, None));
    layout.is_ok_and(|layout| !layout.path.is_empty() && layout.key() != "items" && !is_message())
}

/// Returns the value of JSON that was read before.
fn parsed(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
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
