//! Breakpoints of prompt caches in messages.
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

use serde_json::value::RawValue;

use crate::layout::{Entries, offset};
use crate::message::{ParsedMessage, Slot};

/// The fields that set a breakpoint: Anthropic, Bedrock (a content block of its own), and the options for a provider of
/// the Vercel AI SDK.
const MARKS: [&str; 3] = ["cache_control", "cachePoint", "providerOptions"];

/// The fields that hold content blocks, or what holds them. Arguments of calls are none: a field of them with the name
/// of a mark is what the model wrote.
const CONTENT: [&str; 5] = ["content", "parts", "toolResult", "data", "kwargs"];

/// Returns a message as a session compares it: its bytes without breakpoints, and a single text block as a string.
///
/// Most messages have neither. A search for the names of the fields and the paths of the parsed message show that
/// without parsing the text again.
pub(crate) fn unmarked<'t>(text: &'t str, message: &ParsedMessage) -> Cow<'t, str> {
    let mut result = Cow::Borrowed(text);
    if MARKS.iter().any(|mark| text.contains(mark)) {
        let mut cuts = Vec::new();
        collect_marks(text, text, &mut cuts);
        for range in cuts.into_iter().rev() {
            result.to_mut().replace_range(range, "");
        }
    }
    if let [Slot { path, .. }] = &message.slots[..]
        && path == "content[0].text"
        && let Some((block, text)) = single_text(&result)
    {
        let text = result[text].to_owned();
        result.to_mut().replace_range(block, &text);
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
