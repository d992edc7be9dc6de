//! The byte ranges of the messages in a text (a piece table), so that a selection is written back
//! byte for byte.
//!
//! A chat is never serialized again: a parser that reads `1.0`, a large integer, a duplicate key or
//! an escape may write it differently. The layout finds where each message starts and ends, and
//! [`Layout::write`] copies ranges of the input. For the request
//!
//! ```text
//! {"model": "m", "messages": [A, B,  C], "n": 1}
//!                             ^head   ^tail
//! ```
//!
//! the elements are `A`, ` B` and `  C`: each with the white space before it, without the comma.
//! Keeping A and C copies the text up to `head`, `A`, a comma, `  C`, and the text from `tail`:
//! `{"model": "m", "messages": [A,  C], "n": 1}`.
//!
//! With one value per line there is no separator. An element is a whole line with its line break:
//!
//! ```text
//! {"role": "user", "content": "a"}     element 0
//! (a blank line)                       part of no element: always copied
//! {"role": "user", "content": "b"}     element 1
//! ```
//!
//! A transcript is such a text whose lines are the records of a program, such as Claude Code. Its values are
//! the messages inside of records: `{"uuid": "u1", "message": A}` is one element with the value `A`. Records
//! without a message are copied like blank lines. Records are linked ([`Changes`]).
//!
//! Two properties of the crate rest on this file: a chat that is kept whole is the input byte for
//! byte, and everything outside of the list of messages stays as it is.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::chats::Chats;
use crate::error::{ChatError, Kind, Place};
use crate::pointer::{self, Found};
use crate::scan::{duplicate_key, tolerant, unpaired_surrogate};
use crate::shape::{Record, Shape, Transcript, evidence, foreign, is_request_field, type_of};

/// A text as a list of values, and the text before, between and after them.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) text: String,
    /// The path of the list, such as `messages`; empty for a top-level array and for lines.
    pub(crate) path: String,
    /// The JSON pointer of the list; empty for a top-level array and for lines.
    list_pointer: String,
    /// The JSON pointer searched for the list: the caller's `at`, not where the list was found.
    pub(crate) at: String,
    /// The format of a transcript, whose records hold the values.
    pub(crate) transcript: Option<Shape>,
    /// Whether a string takes the place of the list, such as `"input": "Hello"` of OpenAI Responses.
    pub(crate) is_text: bool,
    /// The other fields of the request: those beside the list, or those that the records of a
    /// transcript state. They cost tokens (tools) and name the model.
    pub(crate) envelope: RequestFields,
    /// The values in the order of the text. Their ranges ascend and do not overlap, which is what
    /// lets `write` copy the text in one pass.
    elements: Vec<Element>,
    /// The text between two values: `,` in an array, empty for one value per line. Empty also
    /// means "lines" wherever the two are told apart.
    separator: &'static str,
    /// The end of the text before the values, and the start of the text after them. Both are
    /// copied whatever is kept.
    head: usize,
    tail: usize,
}

/// Fields of a request.
pub(crate) type RequestFields = Vec<(String, Value)>;

/// One value in the output of [`Layout::write`].
pub(crate) enum Piece<'p> {
    /// A value as it was read.
    Original(usize),
    /// Another value in the place of the one at an index, such as a shortened message.
    Replaced(usize, &'p str),
    /// A new value before the one at an index, with the same white space: a marker. The value at the index
    /// itself may be dropped.
    Before(usize, &'p str),
}

impl Piece<'_> {
    fn index(&self) -> usize {
        match self {
            Self::Original(index) | Self::Replaced(index, _) | Self::Before(index, _) => *index,
        }
    }
}

/// A value and the bytes that come and go with it: `lead <= value.start < value.end <= end`.
#[derive(Debug, Clone)]
struct Element {
    /// The start of its leading white space; in a transcript the start of its record.
    lead: usize,
    value: Range<usize>,
    /// The end: of the value in an array, of the line with its line break otherwise.
    end: usize,
}

/// A document that contains a request: the fields that identify it, and where the request is.
struct Wrapper {
    fields: &'static [&'static str],
    pointer: &'static str,
}

/// The documents that contain a request, by their fields. All fields of a row must be there, so
/// that a request with a field named `body` is not taken for a batch. Only documents without a list
/// of messages of their own are looked up here.
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
    /// Finds the list in a request, a top-level array, or one value per line. `at` is the JSON
    /// pointer (RFC 6901) of the list or of the request; empty for the whole text.
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
            return Self::lines(text, shape);
        }
        let whole: &RawValue = match parse(text, body) {
            Ok(whole) => whole,
            // The text may be of another kind, such as a log. That is a better error than the parser's.
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
        if let Some(shape) = shape.filter(|shape| shape.format().transcript.is_some()) {
            let message = format!("a transcript of the format {shape} has one record per line");
            return Err(ChatError::new(text, offset(text, raw), message).at(found.path));
        }
        match raw.get().as_bytes()[0] {
            b'[' => {
                check_keys(text, raw, &found.path)?;
                Self::list(text, found)
            }
            b'{' => Self::document(text, &found, shape),
            _ => {
                let message = format!(
                    "a chat is a JSON object with a list of messages, a JSON array, or one JSON object per line, not {}",
                    type_of(&parsed(raw))
                );
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
        // A request may have two of the keys, such as `messages` and, as metadata, `input`. The one with a
        // list is used. If neither has one, both stay for the error below.
        let is_list = |key: &&str| {
            let mut values = entries.iter().filter(|(name, _)| name == key);
            values.any(|(_, value)| is_list(key, value.get()))
        };
        if keys.iter().any(is_list) {
            keys.retain(is_list);
        }
        match keys[..] {
            [key] => {
                check_keys(text, found.raw, &found.path)?;
                Self::list(text, found.field(text, key)?)
            }
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
                let pointers = keys.iter().map(|key| found.pointer_of(key)).collect();
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
        // The values start after the bracket. A string in the place of the list has none.
        let head = offset(text, raw) + usize::from(!is_text);
        let mut at = head;
        let mut elements = Vec::with_capacity(list.len());
        for raw in list {
            let from = offset(text, raw);
            // Between two values of valid JSON are white space and one comma, so the first comma is the
            // separator. White space before it belongs to no element, so `write` drops it if the list changes.
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
            list_pointer: found.pointer,
            at: String::new(),
            transcript: None,
            is_text,
            envelope: siblings.collect(),
            elements,
            separator: ",",
            head,
            tail: at,
        })
    }

    fn lines(text: &str, shape: Option<Shape>) -> Result<Self, ChatError> {
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
            // All lines are checked here, so that an invalid line 900 is an error at line 900 even if that
            // message would be dropped.
            let raw: &RawValue = serde_json::from_str(value).map_err(|error| {
                let place = from + error.column().saturating_sub(1);
                ChatError::new(text, place, described(&error))
            })?;
            check_keys(text, raw, "")?;
            elements.push(Element {
                lead,
                value: from..from + value.len(),
                end,
            });
        }
        let json = |element: &Element| &text[element.value.clone()];
        // The first record that has fields of one format only decides. The first lines of a transcript often
        // have none: metadata that any format may have.
        let transcript = match shape {
            Some(shape) => shape.format().transcript.map(|_| shape),
            None => elements.iter().find_map(|line| transcript_of(json(line))),
        };
        let mut envelope = Vec::new();
        if let Some(shape) = transcript {
            (elements, envelope) = records(text, elements, shape)?;
        }
        Ok(Self {
            text: text.to_owned(),
            path: String::new(),
            list_pointer: String::new(),
            at: String::new(),
            transcript,
            is_text: false,
            envelope,
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

    /// Returns the JSON pointer of the list in its document; `None` for one value per line.
    pub(crate) fn list_pointer(&self) -> Option<&str> {
        (!self.separator.is_empty()).then_some(&*self.list_pointer)
    }

    /// Returns the JSON pointer of a value in its document, which is its line if there is one per
    /// line.
    pub(crate) fn pointer_of(&self, index: usize) -> String {
        if self.separator.is_empty() {
            String::new()
        } else {
            format!("{}/{index}", self.list_pointer)
        }
    }

    /// Returns an element as a value. Fails at what a value cannot hold: an unpaired surrogate and a number out
    /// of range, which are valid in JSON (RFC 8259, sections 6 and 8.2).
    pub(crate) fn value(&self, index: usize) -> Result<Value, ChatError> {
        let (json, start) = (self.json(index), self.elements[index].value.start);
        let error = match serde_json::from_str(json) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let error = match unpaired_surrogate(json) {
            Some(escape) => {
                let message = format!(
                    "unpaired surrogate `{}`, half of a character; write the whole character or `\\ufffd`",
                    &json[escape.clone()]
                );
                ChatError::new(&self.text, start + escape.start, message)
            }
            None if error.to_string().starts_with("number out of range") => {
                // The parser reports the end of the number. Its start is the first of the number's characters
                // before that.
                let end = syntax(&self.text, start, json, &error).place.offset;
                let is_number = |byte: &&u8| b"+-.eE0123456789".contains(byte);
                let before = self.text.as_bytes()[..end].iter().rev();
                let number = end - before.take_while(is_number).count();
                let message = "number out of range; write a number that a 64-bit float can hold";
                ChatError::new(&self.text, number, message)
            }
            None => syntax(&self.text, start, json, &error),
        };
        Err(error.at(self.path_of(index, "")))
    }

    /// Returns an error at a field of the request, by its path from there.
    pub(crate) fn field_fault(&self, field: &str, message: String) -> ChatError {
        // The request is the object that has the list.
        let parent = self.list_pointer.rsplit_once('/').map_or("", |(it, _)| it);
        let pointer = format!("{parent}/{}", field.replace('.', "/"));
        let body = self.text.strip_prefix('\u{feff}').unwrap_or(&self.text);
        let whole = serde_json::from_str::<&RawValue>(body).ok();
        let found = whole.and_then(|raw| {
            let found = pointer::resolve(&self.text, Found::whole(raw), &pointer).ok()?;
            Some((offset(&self.text, found.raw), found.path))
        });
        // The fields of a transcript are in its records, so no pointer leads there.
        let (place, path) = found.unwrap_or_else(|| (0, field.to_owned()));
        ChatError::new(&self.text, place, message)
            .at(path)
            .kind(Kind::Value)
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

    /// Returns a field of the request beside the list.
    pub(crate) fn field(&self, key: &str) -> Option<&serde_json::Value> {
        // A caller may leave out the fields that no reader names.
        debug_assert!(is_request_field(key), "`is_request_field` lacks `{key}`");
        // Records of a transcript may state a field repeatedly, such as the model. The last counts.
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
        // The whole chat is the text itself. The general case below would lose white space before
        // commas.
        if pieces.len() == self.elements.len() && pieces.iter().enumerate().all(is_original) {
            return self.text.clone();
        }
        let mut text = self.text[..self.head].to_owned();
        let mut pieces = pieces.iter().peekable();
        let (mut is_first, mut end) = (true, self.head);
        let mut changes = Changes::default();
        for (index, element) in self.elements.iter().enumerate() {
            let is_line = self.separator.is_empty();
            if is_line {
                // What lies between two elements stays: records without a message, and blank lines.
                text.push_str(&self.text[end..element.lead]);
            }
            end = element.end;
            // An element has at most one piece of its own, and any number of new values before it.
            let mut is_kept = false;
            while let Some(piece) = pieces.next_if(|piece| piece.index() == index) {
                if !is_first {
                    text.push_str(self.separator);
                }
                // The last line may have no line break.
                if is_line && text.len() > self.head && !text.ends_with('\n') {
                    text.push('\n');
                }
                is_first = false;
                let json = match piece {
                    Piece::Original(_) => self.json(index),
                    Piece::Replaced(_, json) => json,
                    Piece::Before(_, json) => match self.marker_record(index, json, &mut changes) {
                        Some(line) => {
                            text.push_str(&line);
                            continue;
                        }
                        None => json,
                    },
                };
                is_kept |= !matches!(piece, Piece::Before(..));
                // The bytes around the value are copied: indentation, the rest of a record, the
                // line break.
                text.push_str(&self.text[element.lead..element.value.start]);
                text.push_str(json);
                text.push_str(&self.text[element.value.end..element.end]);
            }
            // Later records may name this one as their parent, which has to be repaired.
            if !is_kept && let Some((id, parent)) = self.parent_keys() {
                let mut record = self.record(index);
                if let Some(Value::String(id)) = record.remove(id) {
                    let parent = record.remove(parent).unwrap_or_default();
                    changes.dropped.insert(id, parent);
                }
            }
        }
        text.push_str(&self.text[self.tail..]);
        match self.parent_keys() {
            Some(keys) => changes.relink(&text, keys),
            None => text,
        }
    }

    /// Returns the record that holds a value in a transcript. `records` has parsed it before, so the default
    /// is never returned.
    pub(crate) fn record(&self, index: usize) -> Map<String, Value> {
        let Element { lead, end, .. } = self.elements[index];
        tolerant(&self.text[lead..end]).unwrap_or_default()
    }

    fn parent_keys(&self) -> Option<(&'static str, &'static str)> {
        self.transcript?.format().transcript?.parent
    }

    /// Returns the record of a marker before a record of a transcript, and notes its link. `None` outside of
    /// transcripts: there the marker itself is the value.
    fn marker_record(&self, index: usize, json: &str, changes: &mut Changes) -> Option<String> {
        let transcript = self.transcript?.format().transcript?;
        let next = self.record(index);
        let marker = (transcript.marker)(serde_json::from_str(json).ok()?, &next);
        if let Some((id, _)) = transcript.parent
            && let (Some(Value::String(next)), Some(new)) = (next.get(id), marker.get(id))
        {
            changes.inserted.insert(next.clone(), new.clone());
        }
        Some(format!("{}\n", Value::from(marker)))
    }
}

/// Removals and insertions in the linked list that the records of a transcript form.
///
/// Each record names the one before it. The program that wrote the transcript follows these links
/// from the last record, so a link to a dropped record would end the session there.
///
/// ```text
/// a <- b <- c <- d        b and c are dropped: dropped = {b: a, c: b}
/// a <------------ d       the parent of d is the first of c, b, a that is not dropped
/// a <- m <------- d       with a marker m before d: inserted = {d: m}
/// ```
#[derive(Default)]
struct Changes {
    /// The parents of dropped records by the ids of these records.
    dropped: HashMap<String, Value>,
    /// The ids of markers by the ids of the records after them.
    inserted: HashMap<String, Value>,
}

impl Changes {
    /// Returns the text with the nearest kept ancestor as the parent of each record.
    fn relink(&self, text: &str, (id, parent): (&str, &str)) -> String {
        let mut relinked = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let Entries(entries) = serde_json::from_str(line).unwrap_or(Entries(Vec::new()));
            let field = |key: &str| entries.iter().rfind(|(name, _)| name == key);
            let Some((_, raw)) = field(parent) else {
                relinked.push_str(line);
                continue;
            };
            let id = field(id).map(|(_, id)| parsed(id));
            let old = parsed(raw);
            // A marker takes the place of the dropped records before it, so its link wins.
            let new = match id.as_ref().and_then(Value::as_str) {
                Some(id) if self.inserted.contains_key(id) => &self.inserted[id],
                _ => self.ancestor(&old),
            };
            // Only the bytes of the link change, and only in records that need it.
            if *new == old {
                relinked.push_str(line);
            } else {
                let start = offset(line, raw);
                relinked.push_str(&line[..start]);
                relinked.push_str(&new.to_string());
                relinked.push_str(&line[start + raw.get().len()..]);
            }
        }
        relinked
    }

    /// Returns the nearest kept ancestor.
    fn ancestor<'a>(&'a self, mut id: &'a Value) -> &'a Value {
        // Invalid records may form a cycle. A path without one has at most as many steps as there
        // are dropped records.
        for _ in 0..=self.dropped.len() {
            match id.as_str().and_then(|id| self.dropped.get(id)) {
                Some(parent) => id = parent,
                None => return id,
            }
        }
        &Value::Null
    }
}

/// Returns the transcript format of a record, if the line has fields of one format only.
fn transcript_of(json: &str) -> Option<Shape> {
    Shape::ALL.into_iter().find(|shape| {
        let format = shape.format();
        // A search in the text first: parsing every line for every format takes longer than reading
        // the chat.
        let may_be = |it: &Transcript| json.contains(&format!("\"{}\"", it.message));
        format.transcript.is_some_and(may_be) && shape.is_evident(&parsed_str(json))
    })
}

/// Returns the values in the records of a transcript, and the fields of the request that records
/// state.
///
/// A transcript is a log, not a request. The values are the messages that the next request would contain:
/// everything since the last compaction. Messages of side chains (subagents) are used only if there are no
/// others: then it is the transcript of a subagent.
fn records(
    text: &str,
    lines: Vec<Element>,
    shape: Shape,
) -> Result<(Vec<Element>, RequestFields), ChatError> {
    let (mut main, mut side, mut envelope) = (Vec::new(), Vec::new(), Vec::new());
    let Some(transcript) = shape.format().transcript else {
        return Ok((lines, envelope));
    };
    for line in lines {
        let json = &text[line.value.clone()];
        let record: Map<String, Value> = tolerant(json).unwrap_or_default();
        if record.contains_key("role") || !record.contains_key("type") {
            let message = format!(
                "not a record of the format {shape}, which has `type` and no `role`; use records only"
            );
            let error = ChatError::new(text, line.value.start, message);
            return Err(error.kind(Kind::Ambiguous));
        }
        let fields = (transcript.request_fields)(&record).into_iter();
        envelope.extend(fields);
        let kind = (transcript.classify)(&record);
        // A compaction replaces all messages before it. They stay in the text: `write` copies what
        // lies between elements.
        if let Record::Summary | Record::Boundary = kind {
            main.clear();
        }
        let Entries(entries) = serde_json::from_str(json).unwrap_or(Entries(Vec::new()));
        let message = entries.iter().rfind(|(key, _)| key == transcript.message);
        let Some((_, raw)) = message else { continue };
        let start = offset(text, raw);
        let element = Element {
            value: start..start + raw.get().len(),
            ..line
        };
        match kind {
            Record::Message | Record::Summary => main.push(element),
            Record::Side => side.push(element),
            Record::Boundary | Record::Other => {}
        }
    }
    Ok((if main.is_empty() { side } else { main }, envelope))
}

/// Returns the keys of the list in the requests of all formats, such as `messages`, without duplicates.
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

/// Returns the error for an object without a list. It names the format if the object is of a known one that
/// is not read, otherwise its keys, and where else in the text a list is.
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

/// Returns the pointers of the lists of messages in a value.
pub(crate) fn lists_in(json: &str) -> Vec<String> {
    let whole = serde_json::from_str::<&RawValue>(json);
    whole.map_or_else(|_| Vec::new(), |whole| Found::whole(whole).lists())
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

/// Returns whether a text has one value per line: its first line is an object by itself, and it has more
/// lines or that object is a message.
///
/// One line alone is ambiguous: `{"role": "user", ...}` is a chat of one message, and
/// `{"messages": [...]}` a request. A message has a key such as `role` and no key of a list.
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

/// Returns whether a value is a request or contains one: an object with a list of messages, also at
/// a JSON pointer. A message is not a request.
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

/// Returns the value of JSON that was parsed before, so that it is valid.
fn parsed(raw: &RawValue) -> Value {
    parsed_str(raw.get())
}

fn parsed_str(json: &str) -> Value {
    tolerant(json).unwrap_or_default()
}

/// Fails for a duplicate key in a value at a path, or in anything inside of it.
fn check_keys(text: &str, raw: &RawValue, path: &str) -> Result<(), ChatError> {
    let Some(duplicate) = duplicate_key(raw.get()) else {
        return Ok(());
    };
    let separator = if path.is_empty() || duplicate.path.starts_with('[') {
        ""
    } else {
        "."
    };
    let place = offset(text, raw) + duplicate.offset;
    let error = ChatError::new(text, place, "duplicate key; remove one");
    Err(error.at(format!("{path}{separator}{}", duplicate.path)))
}

fn parse<'a, T: Deserialize<'a>>(text: &str, body: &'a str) -> Result<T, ChatError> {
    serde_json::from_str(body).map_err(|error| syntax(text, text.len() - body.len(), body, &error))
}

/// Returns the error of parsing `body`, a part of `text` that starts at the byte `skipped`.
fn syntax(text: &str, skipped: usize, body: &str, error: &serde_json::Error) -> ChatError {
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
///
/// A `RawValue` has no position. A borrowed one is a slice of the input, so the
/// difference of the addresses is its offset. It must be borrowed from this very text: a copy with
/// the same content gives a meaningless number.
pub(crate) fn offset(text: &str, raw: &RawValue) -> usize {
    raw.get().as_ptr().addr() - text.as_ptr().addr()
}

fn list_of(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(" and ")
}

/// The fields of an object in order, with duplicates, as slices of the input.
///
/// A map would sort the keys and keep one of two equal ones. The slices keep the position of each
/// value, which errors name and replacements need.
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
