//! Breakpoints of prompt caches: where a window has them, and messages without them.
//!
//! A provider stores the prefix of a request up to each breakpoint, and reads the longest prefix that it has. Four places
//! are worth one:
//!
//! ```text
//! system, tools | 0 user  1 call  2 result | 9 call  10 result | 11 call  12 result |
//!            system                     head            previous                  end
//!
//! system     the same in all conversations of an agent
//! head       read after a cut: the head of a replay never changes
//! previous   what the previous request stored
//! end        what the next request reads
//! ```
//!
//! A client moves its breakpoint with every request, to the newest message that the provider is to cache. The message
//! that had it is the same one without it, for the cache of the provider and for a session:
//!
//! ```text
//! request 1   {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {...}}]}
//! request 2   {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
//! request 3   {"role": "user", "content": "Hi"}      the same: a string stands for one text block
//! ```

use std::borrow::Cow;
use std::ops::Range;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::chat::Chat;
use crate::fit::{Fitted, FittedMessage};
use crate::layout::{Entries, offset};
use crate::message::{ParsedMessage, Role, Slot};
use crate::shape::RequestField;
use crate::splice::{quoted, replace_values};

/// The most breakpoints of a request, at Anthropic and Bedrock.
const MOST: usize = 4;

/// How a request marks the end of a prefix that the prompt cache is to store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breakpoints {
    /// The field `cache_control` of a content block, a tool or the request:
    /// <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>.
    Field,
    /// The content block `cachePoint`, also in the lists of system prompts and tools:
    /// <https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html>.
    Block,
}

/// A place in a window where a breakpoint of the provider's prompt cache is worth one of the four that a request may
/// have; see [`Fitted::breakpoints`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheBreakpoint {
    /// What ends there.
    pub place: CachePlace,
    /// The position in the input of the message that it is after; `None` for fields of the request.
    pub index: Option<usize>,
    /// The position of that message in the window, where markers count.
    pub position: Option<usize>,
}

/// What ends at a [`CacheBreakpoint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CachePlace {
    /// The system prompt and the tools, or the first system messages.
    System,
    /// The first messages, which stay the same at every cut of a replay.
    Head,
    /// The previous request: all before the last messages of the model.
    Previous,
    /// The window.
    End,
}

/// A breakpoint to put into a window; see [`Fitted::cache_marks`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheMark {
    /// The position of the message in the window; `None` for a field of the request.
    pub message: Option<usize>,
    /// Where to put it in the message or the document: a key to set, such as `content[0].cache_control`, or the index
    /// to insert an element at, such as `content[1]`.
    pub path: String,
    /// What to put there, as JSON.
    pub json: String,
}

impl Chat {
    /// Returns the places for breakpoints in a window, in order. A place that is another one, too, is named once, by the
    /// later name. `head` is the first message behind the head of a replay.
    pub(crate) fn breakpoints(
        &self,
        head: Option<usize>,
        kept: &[usize],
        marked: &[usize],
    ) -> Vec<CacheBreakpoint> {
        if !self.shape.is_chat() {
            return Vec::new();
        }
        let at = |place, index: usize| {
            let before = kept.partition_point(|&it| it < index);
            let markers = marked.partition_point(|&it| it <= index);
            CacheBreakpoint {
                place,
                index: Some(index),
                position: Some(before + markers),
            }
        };
        let last_before = |end: usize| kept[..kept.partition_point(|&it| it < end)].last().copied();
        let is_system = |index: &&usize| self.messages[**index].role() == Role::System;
        let system = kept.iter().take_while(is_system).last();
        let system = system.map(|&index| at(CachePlace::System, index));
        let of_request = || CacheBreakpoint {
            place: CachePlace::System,
            index: None,
            position: None,
        };
        let system = system.or_else(|| self.has_request_prefix().then(of_request));
        let head = head
            .and_then(last_before)
            .map(|it| at(CachePlace::Head, it));
        let previous = self.previous_request().and_then(last_before);
        let previous = previous.map(|it| at(CachePlace::Previous, it));
        let end = kept.last().map(|&it| at(CachePlace::End, it));
        let mut places: Vec<CacheBreakpoint> = [system, head, previous, end]
            .into_iter()
            .flatten()
            .collect();
        // The sort is stable, so that the last of equal places is the one with the later name.
        places.sort_by_key(|place| place.index);
        places.reverse();
        places.dedup_by_key(|place| place.index);
        places.reverse();
        places
    }

    /// Returns whether the request has a system prompt or tools beside its messages.
    fn has_request_prefix(&self) -> bool {
        let fields = self.shape.format().request_fields.iter();
        let mut keys = fields.map(RequestField::key);
        keys.any(|key| self.layout.field(key).is_some_and(|value| !value.is_null()))
    }

    /// Returns the end of the previous request: the start of the last run of messages of the model. A run at the end of
    /// the chat is a prefilled answer or pending calls of this request.
    pub(crate) fn previous_request(&self) -> Option<usize> {
        let is_other = |message: &ParsedMessage| !message.is_from_model();
        let end = self.messages.iter().rposition(is_other)?;
        let last = self.messages[..end]
            .iter()
            .rposition(ParsedMessage::is_from_model)?;
        let before = self.messages[..last].iter().rposition(is_other);
        Some(before.map_or(0, |before| before + 1))
    }
}

impl Fitted<'_> {
    /// Returns the breakpoints that [`cache_breakpoints`](cupel::ChatSettings::cache_breakpoints) adds to the window;
    /// empty without it, and in formats without breakpoints. [`to_json`](Self::to_json) has them.
    ///
    /// A request has at most four. Those that the window has already stay and count, and what is left goes to the end,
    /// the head, the system prompt with the tools, and the previous request, in this order. A new breakpoint before
    /// another one has its lifetime (`ttl`), because a provider refuses a longer one after a shorter one.
    pub fn cache_marks(&self) -> Vec<CacheMark> {
        let kind = self.chat.shape.format().breakpoints;
        let Some(kind) = kind.filter(|_| self.sets_breakpoints) else {
            return Vec::new();
        };
        Marking::new(self, kind).marks()
    }
}

/// The parts of a request in the order of the prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Tools,
    System,
    /// A message, by its position in the window.
    Message(usize),
    /// A breakpoint of the request is at its end.
    Request,
}

/// Chooses the blocks that get a breakpoint.
struct Marking<'f> {
    fitted: &'f Fitted<'f>,
    kind: Breakpoints,
    messages: Vec<FittedMessage<'f>>,
    /// The breakpoints of the window, in order.
    existing: Vec<(Part, Value)>,
}

impl<'f> Marking<'f> {
    fn new(fitted: &'f Fitted<'f>, kind: Breakpoints) -> Self {
        let chat = fitted.chat;
        let messages = fitted.messages();
        let mut existing = Vec::new();
        let mut add = |part, value: &Value| {
            let mut found = Vec::new();
            collect_breakpoints(value, &mut found);
            existing.extend(found.into_iter().map(|value| (part, value.clone())));
        };
        for (part, key) in kind.request_parts() {
            chat.layout
                .field(key)
                .into_iter()
                .for_each(|it| add(part, it));
        }
        for (position, message) in messages.iter().enumerate() {
            if let FittedMessage::Original(index) | FittedMessage::Changed { index, .. } = message
                && chat.messages[*index].has_cache_breakpoint
                && let Ok(value) = chat.layout.value(*index)
            {
                add(Part::Message(position), &value);
            }
        }
        if let Some(value) = chat
            .layout
            .field("cache_control")
            .filter(|it| !it.is_null())
        {
            existing.push((Part::Request, value.clone()));
        }
        Self {
            fitted,
            kind,
            messages,
            existing,
        }
    }

    fn marks(&self) -> Vec<CacheMark> {
        let mut left = MOST.saturating_sub(self.existing.len());
        let mut taken: Vec<Part> = self.existing.iter().map(|(part, _)| *part).collect();
        let mut marks = Vec::new();
        for place in [
            CachePlace::End,
            CachePlace::Head,
            CachePlace::System,
            CachePlace::Previous,
        ] {
            let mut found = self.fitted.breakpoints.iter();
            let found = found.find(|it| it.place == place);
            let found =
                found.filter(|_| !(place == CachePlace::End && taken.contains(&Part::Request)));
            let mark = found.and_then(|it| match it.position {
                Some(position) => self.in_messages(position),
                None => self.in_request(),
            });
            if let Some((part, mark)) = mark
                && left > 0
                && !taken.contains(&part)
            {
                left -= 1;
                taken.push(part);
                marks.push((part, mark));
            }
        }
        marks.sort_by_key(|(part, _)| *part);
        marks.into_iter().map(|(_, mark)| mark).collect()
    }

    /// Returns the breakpoint after the last message up to a position that can have one.
    fn in_messages(&self, position: usize) -> Option<(Part, CacheMark)> {
        let chat = self.fitted.chat;
        (0..=position).rev().find_map(|position| {
            let json: Cow<'_, str> = match &self.messages[position] {
                FittedMessage::Original(index) => chat.layout.json(*index).into(),
                FittedMessage::Changed { index, texts } => {
                    let texts = texts.iter().map(|(path, text)| (*path, text.as_str()));
                    replace_values(chat.layout.json(*index), texts).into()
                }
                FittedMessage::Marker { json, .. } => (*json).into(),
            };
            let message: Value = serde_json::from_str(&json).ok()?;
            let part = Part::Message(position);
            let is_system = message["role"] == "system";
            let content = message.get("content").filter(|_| !is_system)?;
            let (path, json) = self.kind.mark(content, "content", &self.value(part))?;
            let message = Some(position);
            Some((
                part,
                CacheMark {
                    message,
                    path,
                    json,
                },
            ))
        })
    }

    /// Returns the breakpoint after the system prompt, or after the tools if there is none.
    fn in_request(&self) -> Option<(Part, CacheMark)> {
        let layout = &self.fitted.chat.layout;
        // The system prompt comes after the tools in the prefix.
        let parts = self.kind.request_parts().into_iter().rev();
        parts.into_iter().find_map(|(part, key)| {
            let value = self.value(part);
            let field = layout.field(key)?;
            let (content, path) = match field.get("tools") {
                Some(tools) => (tools, format!("{key}.tools")),
                None => (field, key.to_owned()),
            };
            let (path, json) = self.kind.mark(content, &path, &value)?;
            let parent = &layout.path[..layout.path.len() - layout.key().len()];
            let path = format!("{parent}{path}");
            Some((
                part,
                CacheMark {
                    message: None,
                    path,
                    json,
                },
            ))
        })
    }

    /// Returns the value of a new breakpoint: that of the next one.
    fn value(&self, part: Part) -> Value {
        let next = self.existing.iter().find(|(existing, _)| *existing > part);
        next.map_or_else(|| self.kind.default_value(), |(_, value)| value.clone())
    }
}

impl Breakpoints {
    /// Returns the fields of the request before its messages, in the order of the prefix.
    fn request_parts(self) -> [(Part, &'static str); 2] {
        match self {
            Self::Field => [(Part::Tools, "tools"), (Part::System, "system")],
            Self::Block => [(Part::Tools, "toolConfig"), (Part::System, "system")],
        }
    }

    fn default_value(self) -> Value {
        match self {
            Self::Field => serde_json::json!({"type": "ephemeral"}),
            Self::Block => serde_json::json!({"type": "default"}),
        }
    }

    /// Returns where in a list of blocks or tools a breakpoint is put, and what; `None` if no block can have one.
    fn mark(self, content: &Value, path: &str, value: &Value) -> Option<(String, String)> {
        let blocks = match content {
            // Only a block has a place for it.
            Value::String(text) if self == Self::Field && !text.trim().is_empty() => {
                let text = quoted(text);
                let block = format!(r#"[{{"type":"text","text":{text},"cache_control":{value}}}]"#);
                return Some((path.to_owned(), block));
            }
            Value::Array(blocks) => blocks,
            _ => return None,
        };
        let last = blocks.iter().rposition(|block| self.can_mark(block))?;
        Some(match self {
            Self::Field => (format!("{path}[{last}].cache_control"), value.to_string()),
            Self::Block => (
                format!("{path}[{}]", last + 1),
                format!(r#"{{"cachePoint":{value}}}"#),
            ),
        })
    }

    /// Returns whether a breakpoint can be on a block or a tool, or after it. The providers refuse one on empty text, on
    /// thinking and on a tool whose definition is loaded later.
    fn can_mark(self, block: &Value) -> bool {
        let is_empty = block["text"]
            .as_str()
            .is_some_and(|text| text.trim().is_empty());
        let is_tool = block.get("input_schema").is_some() && block["defer_loading"] != true;
        match self {
            Self::Field => {
                let kind = block["type"].as_str().unwrap_or_default();
                let kinds = [
                    "text",
                    "image",
                    "document",
                    "search_result",
                    "tool_use",
                    "tool_result",
                ];
                is_tool || (kinds.contains(&kind) && !is_empty)
            }
            Self::Block => {
                let is_other = |key: &str| block.get(key).is_none();
                is_other("reasoningContent") && is_other("cachePoint") && !is_empty
            }
        }
    }
}

/// Collects the breakpoints in a value, in order.
fn collect_breakpoints<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match key.as_str() {
                    "cache_control" | "cachePoint" if value.is_null() => {}
                    "cache_control" | "cachePoint" => found.push(value),
                    key if CONTENT.contains(&key) => collect_breakpoints(value, found),
                    _ => {}
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|it| collect_breakpoints(it, found)),
        _ => {}
    }
}

/// The fields that set a breakpoint: Anthropic, Bedrock (a content block of its own), and the options for a provider of
/// the Vercel AI SDK.
const MARKS: [&str; 3] = ["cache_control", "cachePoint", "providerOptions"];

/// The fields that hold content blocks or tools, or what holds them. Arguments of calls are none: a field of them with the name
/// of a mark is what the model wrote.
const CONTENT: [&str; 6] = ["content", "parts", "toolResult", "data", "kwargs", "tools"];

/// Returns a message as a session compares it: its bytes without breakpoints, and a single text block as a string.
///
/// Most messages have neither. A search for the names of the fields and the paths of the parsed message show that
/// without parsing the text again.
pub(crate) fn unmarked<'t>(text: &'t str, message: &ParsedMessage) -> Cow<'t, str> {
    let mut result = without_marks(text);
    if let [Slot { path, .. }] = &message.slots[..]
        && path == "content[0].text"
        && let Some((block, text)) = single_text(&result)
    {
        let text = result[text].to_owned();
        result.to_mut().replace_range(block, &text);
    }
    result
}

/// Returns the JSON of a message, or of tools, without breakpoints.
pub(crate) fn without_marks(text: &str) -> Cow<'_, str> {
    let mut result = Cow::Borrowed(text);
    if MARKS.iter().any(|mark| text.contains(mark)) {
        let mut cuts = Vec::new();
        collect_marks(text, text, &mut cuts);
        for range in cuts.into_iter().rev() {
            result.to_mut().replace_range(range, "");
        }
    }
    result
}

/// Adds the bytes of the breakpoints in a value, in ascending order. `value` is a part of `text`.
fn collect_marks(text: &str, value: &str, cuts: &mut Vec<Range<usize>>) {
    let mut cut = Cut::new(text, value);
    if let Ok(Entries(entries)) = serde_json::from_str(value) {
        for (key, member) in entries {
            let key = key.as_str();
            if !cut.take(member, MARKS.contains(&key), cuts) && CONTENT.contains(&key) {
                collect_marks(text, member.get(), cuts);
            }
        }
    } else if let Ok(blocks) = serde_json::from_str::<Vec<&RawValue>>(value) {
        for block in blocks {
            if !cut.take(block, is_cache_point(block), cuts) {
                collect_marks(text, block.get(), cuts);
            }
        }
    }
}

/// Returns whether a content block is nothing but a breakpoint.
fn is_cache_point(block: &RawValue) -> bool {
    let entries = serde_json::from_str(block.get());
    entries.is_ok_and(|Entries(entries)| matches!(&entries[..], [(key, _)] if key == "cachePoint"))
}

/// Cuts members out of an object or an array, each with one comma, so that the rest is as if it had never been there.
struct Cut<'t> {
    text: &'t str,
    /// Where the next member starts.
    start: usize,
    /// Where the last member ended, if one was kept so far.
    end: Option<usize>,
}

impl<'t> Cut<'t> {
    fn new(text: &'t str, value: &str) -> Self {
        let open = value.as_ptr().addr() - text.as_ptr().addr() + 1;
        Self {
            start: after_comma(text, open),
            end: None,
            text,
        }
    }

    /// Passes a member, and returns whether it is cut out.
    fn take(&mut self, member: &RawValue, is_cut: bool, cuts: &mut Vec<Range<usize>>) -> bool {
        let end = offset(self.text, member) + member.get().len();
        let next = after_comma(self.text, end);
        if is_cut {
            // With the comma before it. The first member has none, and goes with the one after it.
            cuts.push(self.end.map_or(self.start..next, |before| before..end));
        }
        self.end = (!is_cut || self.end.is_some()).then_some(end);
        self.start = next;
        is_cut
    }
}

/// Returns the position of the next member.
fn after_comma(text: &str, at: usize) -> usize {
    let rest = text[at..].trim_start_matches([' ', '\t', '\n', '\r', ',']);
    text.len() - rest.len()
}

/// Returns the bytes of a content that is one text block with nothing but its text, and the bytes of that text.
fn single_text(text: &str) -> Option<(Range<usize>, Range<usize>)> {
    let bytes = |value: &RawValue| {
        let start = offset(text, value);
        start..start + value.get().len()
    };
    let Entries(fields) = serde_json::from_str(text).ok()?;
    let (_, content) = fields.into_iter().rfind(|(key, _)| key == "content")?;
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    let [block] = blocks[..] else { return None };
    let Entries(mut fields) = serde_json::from_str(block.get()).ok()?;
    fields.sort_unstable_by(|(left, _), (right, _)| right.cmp(left));
    match &fields[..] {
        [(kind, value), (key, words)] if kind == "type" && key == "text" => {
            (value.get() == "\"text\"").then(|| (bytes(content), bytes(words)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(text: &str) -> String {
        unmarked(text, &ParsedMessage::default()).into_owned()
    }

    #[test]
    fn a_message_without_its_marks_is_the_one_that_never_had_them() {
        for (marked, expected) in [
            (
                r#"{"role":"user","cache_control":{"type":"ephemeral"}}"#,
                r#"{"role":"user"}"#,
            ),
            (
                r#"{ "cache_control": null, "role": "user" }"#,
                r#"{ "role": "user" }"#,
            ),
            (
                r#"{"a": 1, "cachePoint": {}, "providerOptions": {"x": []}, "b": 2}"#,
                r#"{"a": 1, "b": 2}"#,
            ),
            (
                r#"{"cachePoint": {}, "providerOptions": {}, "b": 2}"#,
                r#"{"b": 2}"#,
            ),
            (
                "{\n  \"content\": [\n    {\n      \"text\": \"a\",\n      \"cache_control\": {}\n    }\n  ]\n}",
                "{\n  \"content\": [\n    {\n      \"text\": \"a\"\n    }\n  ]\n}",
            ),
            (
                r#"{"content": [{"text": "a"}, {"cachePoint": {"type": "default"}}, {"text": "b"}]}"#,
                r#"{"content": [{"text": "a"}, {"text": "b"}]}"#,
            ),
            (
                r#"{"content":[{"cachePoint":{}},{"text":"b"}]}"#,
                r#"{"content":[{"text":"b"}]}"#,
            ),
            // A result has blocks of its own.
            (
                r#"{"content":[{"tool_use_id":"a","content":[{"text":"b","cache_control":{}}],"cache_control":{}}]}"#,
                r#"{"content":[{"tool_use_id":"a","content":[{"text":"b"}]}]}"#,
            ),
        ] {
            assert_eq!(stripped(marked), expected);
        }
    }

    #[test]
    fn other_bytes_stay() {
        for text in [
            r#"{"role": "user", "content": "the field cache_control"}"#,
            // The model wrote these arguments.
            r#"{"content": [{"type": "tool_use", "input": {"cache_control": {}}}]}"#,
            r#"{"content": [{"text": "a", "x": {"cachePoint": 1}}], "y": {"providerOptions": 2}}"#,
            "not JSON with cachePoint",
        ] {
            assert_eq!(stripped(text), text);
        }
    }
}
