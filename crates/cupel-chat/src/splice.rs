//! Replaces values in the JSON of a message and leaves every other byte as it is.
//!
//! A shortened tool result is one string in a message with ids, signatures and cache marks, which
//! providers compare or verify. Reading the message into values and writing it back may reorder
//! keys and rewrite numbers, so the string is replaced in the text:
//!
//! ```text
//! {"role":"tool", "content":"a long text", "cost":1.0}    content -> "short"
//!                           ^range of the value^
//! {"role":"tool", "content":"short", "cost":1.0}
//! ```
//!
//! Paths are found by parsing level by level into slices of the input ([`RawValue`]). All ranges
//! refer to the original text, so they are found first and then copied in ascending order.

use std::ops::Range;

use serde_json::value::RawValue;

use crate::layout::{Entries, offset};

/// Returns `json` with the values at some paths replaced: a string by another string, and any other
/// value by the JSON that the text is.
///
/// A path such as `content[1].text` consists of keys and indices; the empty path is the whole
/// value. A path that leads nowhere is ignored.
pub(crate) fn replace_values<'a>(
    json: &str,
    replacements: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let found = replacements
        .into_iter()
        .filter_map(|(path, text)| Some((find(json, path)?, text)));
    let mut found: Vec<(Range<usize>, &str)> = found.collect();
    found.sort_by_key(|(range, _)| range.start);
    let mut result = String::with_capacity(json.len());
    let mut end = 0;
    for (range, text) in found {
        result.push_str(&json[end..range.start]);
        // The kind of the old value decides how the text is meant: a string takes any text, another
        // value needs JSON, so that an object never becomes a string by accident.
        if json[range.clone()].starts_with('"') {
            result.push_str(&quoted(text));
        } else {
            result.push_str(text);
        }
        end = range.end;
    }
    result.push_str(&json[end..]);
    result
}

/// Returns `json` with a value put at a path: at a key of an object, in the place of its value if there is one, or
/// before the element at an index of an array. A path that leads nowhere is ignored.
pub(crate) fn put_value(json: &str, path: &str, value: &str) -> String {
    let at = insertion(json, path);
    let Some((range, before, after)) = at else {
        return json.to_owned();
    };
    let (start, end) = (&json[..range.start], &json[range.end..]);
    format!("{start}{before}{value}{after}{end}")
}

/// Returns the bytes that a value takes the place of, and what separates it from its neighbors.
fn insertion(json: &str, path: &str) -> Option<(Range<usize>, String, &'static str)> {
    let (parent, step) = path.rsplit_once(['.', '[']).unwrap_or(("", path));
    let parent = find(json, parent)?;
    let open = parent.start + 1;
    let raw: &RawValue = serde_json::from_str(&json[parent]).ok()?;
    let parent = raw.get();
    let end_of = |value: &RawValue| open - 1 + offset(parent, value) + value.get().len();
    if let Some(index) = step.strip_suffix(']') {
        let index: usize = index.parse().ok()?;
        let elements: Vec<&RawValue> = serde_json::from_str(parent).ok()?;
        return match index.checked_sub(1) {
            Some(before) => {
                let at = end_of(elements.get(before)?);
                Some((at..at, ",".to_owned(), ""))
            }
            None => Some((
                open..open,
                String::new(),
                if elements.is_empty() { "" } else { "," },
            )),
        };
    }
    if let Some(range) = find(json, path) {
        return Some((range, String::new(), ""));
    }
    let Entries(entries) = serde_json::from_str(parent).ok()?;
    let key = format!("{}:", quoted(step));
    Some(match entries.last() {
        Some((_, last)) => (end_of(last)..end_of(last), format!(",{key}"), ""),
        None => (open..open, key, ""),
    })
}

/// Returns a text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns the bytes of the value at a path.
fn find(json: &str, path: &str) -> Option<Range<usize>> {
    let mut value: &RawValue = serde_json::from_str(json).ok()?;
    // `content[1].text` splits into `content`, `1]` and `text`: the bracket that stays tells an
    // index from a key.
    for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
        value = match step.strip_suffix(']') {
            Some(index) => {
                let index: usize = index.parse().ok()?;
                let elements: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
                elements.get(index).copied()?
            }
            None => {
                let Entries(entries) = serde_json::from_str(value.get()).ok()?;
                let mut values = entries.into_iter().filter(|(key, _)| key == step);
                // Of duplicate keys the last one counts, as in most parsers (RFC 8259, section 4).
                values.next_back()?.1
            }
        };
    }
    let start = offset(json, value);
    Some(start..start + value.get().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_bytes_stay() {
        let json = r#"{"a":1.0, "content" : [ {"text": "x\u0041"},{"text":"y"} ],"b":null }"#;
        let replaced = replace_values(
            json,
            [("content[1].text", "z\n"), ("content[0].text", "\"")],
        );
        assert_eq!(
            replaced,
            r#"{"a":1.0, "content" : [ {"text": "\""},{"text":"z\n"} ],"b":null }"#
        );
    }

    #[test]
    fn json_replaces_a_value_that_is_not_a_string() {
        let replaced = replace_values(r#"{"a": {"b":[1, 2]} }"#, [("a.b", "[1]")]);
        assert_eq!(replaced, r#"{"a": {"b":[1]} }"#);
    }

    #[test]
    fn a_value_is_put_at_a_key_or_before_an_element() {
        for (json, path, expected) in [
            (
                r#"{"a": [ {"b":1 } ]}"#,
                "a[0].c",
                r#"{"a": [ {"b":1,"c":9 } ]}"#,
            ),
            (r#"{"a": [ {} ]}"#, "a[0].c", r#"{"a": [ {"c":9} ]}"#),
            (r#"{"a": "x", "b": 2}"#, "a", r#"{"a": 9, "b": 2}"#),
            (r#" { "b": 2 } "#, "a", r#" { "b": 2,"a":9 } "#),
            (r#"{"a": [1, 2 ]}"#, "a[1]", r#"{"a": [1,9, 2 ]}"#),
            (r#"{"a": [1, 2 ]}"#, "a[2]", r#"{"a": [1, 2,9 ]}"#),
            (r#"{"a": [1]}"#, "a[0]", r#"{"a": [9,1]}"#),
            (r#"{"a": []}"#, "a[0]", r#"{"a": [9]}"#),
            (r#"{"a": [1]}"#, "a[2]", r#"{"a": [1]}"#),
            (r#"{"a": 1}"#, "b.c", r#"{"a": 1}"#),
        ] {
            assert_eq!(put_value(json, path, "9"), expected, "{path}");
        }
    }

    #[test]
    fn the_last_of_duplicate_keys_is_replaced() {
        let replaced = replace_values(r#"{"a":"1","a":"2"}"#, [("a", "3")]);
        assert_eq!(replaced, r#"{"a":"1","a":"3"}"#);
    }

    #[test]
    fn an_empty_path_is_the_whole_value_and_an_unknown_path_nothing() {
        assert_eq!(replace_values(r#" "a" "#, [("", "b")]), r#" "b" "#);
        assert_eq!(replace_values(r#"{"a":1}"#, [("b.c", "x")]), r#"{"a":1}"#);
        assert_eq!(
            replace_values(r#"{"a":[]}"#, [("a[0]", "x")]),
            r#"{"a":[]}"#
        );
    }
}
