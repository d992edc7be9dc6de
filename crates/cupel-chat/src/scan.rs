//! What JSON may contain and a chat may not: duplicate keys and unpaired surrogates.
//!
//! All functions expect text that `serde_json` accepted as a `RawValue`, so that brackets and quotes match.
//! A `RawValue` keeps `"\ud800"` and `1e999` as they are. A `Value` cannot hold them: there, a field around
//! the messages gets the nearest value that it can hold, so that its tokens are counted, and is written back
//! as it was.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use serde::de::DeserializeOwned;

/// A key that occurs in an object for the second time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DuplicateKey {
    /// The byte offset of the key.
    pub(crate) offset: usize,
    /// The path of the field, such as `messages[3].content`.
    pub(crate) path: String,
}

/// An object or an array that the scan is inside of.
struct Open<'j> {
    /// The index of its first key in the list of keys; `None` for an array.
    first_key: Option<usize>,
    /// The key of the current field.
    key: &'j str,
    /// The index of the current element.
    index: usize,
    /// Whether the next string is a key.
    before_key: bool,
}

/// Returns the first duplicate key, of the object that ends first.
///
/// The keys of an object are sorted when it ends, so that an object with many keys costs `n log n` and the
/// usual one, with a few, next to nothing.
pub(crate) fn duplicate_key(json: &str) -> Option<DuplicateKey> {
    let mut open: Vec<Open<'_>> = Vec::new();
    // The keys of all open objects with their offsets, those of the innermost object last.
    let mut keys: Vec<(Cow<'_, str>, usize)> = Vec::new();
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => open.push(Open {
                first_key: Some(keys.len()),
                key: "",
                index: 0,
                before_key: true,
            }),
            b'[' => open.push(Open {
                first_key: None,
                key: "",
                index: 0,
                before_key: false,
            }),
            b'}' | b']' => {
                let ended = open.pop()?;
                if let Some(first) = ended.first_key {
                    keys[first..].sort_unstable();
                    let mut pairs = keys[first..].windows(2);
                    if let Some(pair) = pairs.find(|pair| pair[0].0 == pair[1].0) {
                        return Some(DuplicateKey {
                            offset: pair[1].1,
                            path: path(&open, &pair[1].0),
                        });
                    }
                    keys.truncate(first);
                }
            }
            b',' => {
                let innermost = open.last_mut()?;
                innermost.index += 1;
                innermost.before_key = innermost.first_key.is_some();
            }
            b'"' => {
                let end = string_end(bytes, at);
                if let Some(innermost) = open.last_mut()
                    && std::mem::take(&mut innermost.before_key)
                {
                    innermost.key = &json[at + 1..end - 1];
                    keys.push((unescaped(&json[at..end]), at));
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the path of a field of the innermost open value.
fn path(open: &[Open<'_>], key: &str) -> String {
    let mut path = String::new();
    for container in open {
        if container.first_key.is_none() {
            let _ = write!(path, "[{}]", container.index);
        } else {
            push_key(&mut path, container.key);
        }
    }
    push_key(&mut path, key);
    path
}

fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

/// Returns the end of the string that starts at a byte.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// Returns the value of a key; one with an unpaired surrogate as it is written.
fn unescaped(quoted: &str) -> Cow<'_, str> {
    let inner = &quoted[1..quoted.len() - 1];
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    serde_json::from_str(quoted).map_or(Cow::Borrowed(inner), Cow::Owned)
}

/// Returns the first escape of a surrogate (`\ud800` to `\udfff`) that is not half of a pair.
pub(crate) fn unpaired_surrogate(json: &str) -> Option<Range<usize>> {
    // The code unit of an escape such as `\ud83d` at a byte.
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut at = 0;
    // In JSON, a backslash is the start of an escape.
    while let Some(next) = json[at..].find('\\') {
        at += next;
        match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => return Some(at..at + 6),
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    None
}

/// Parses JSON. A number that is out of range is read as the largest one, and an unpaired surrogate as the
/// replacement character.
pub(crate) fn tolerant<T: DeserializeOwned>(json: &str) -> Option<T> {
    serde_json::from_str(json)
        .or_else(|_| serde_json::from_str(&repaired(json)))
        .ok()
}

fn repaired(json: &str) -> String {
    let mut text = json.to_owned();
    let mut from = 0;
    // The replacement is as long as the escape.
    while let Some(escape) = unpaired_surrogate(&text[from..]) {
        let escape = from + escape.start..from + escape.end;
        from = escape.end;
        text.replace_range(escape, "\\ufffd");
    }
    let mut repaired = String::with_capacity(text.len());
    let (mut copied, mut at) = (0, 0);
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'"' => at = string_end(text.as_bytes(), at),
            b'-' | b'0'..=b'9' => {
                let is_end =
                    |byte: &u8| !matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let length = text.as_bytes()[at..].iter().position(is_end);
                let end = length.map_or(text.len(), |length| at + length);
                let number = text[at..end].parse::<f64>();
                if number.is_ok_and(f64::is_infinite) {
                    repaired.push_str(&text[copied..at]);
                    let sign = if *byte == b'-' { "-" } else { "" };
                    let _ = write!(repaired, "{sign}{:e}", f64::MAX);
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    repaired.push_str(&text[copied..]);
    repaired
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_duplicate_key_is_found_at_its_second_place() {
        let found = |json: &str| duplicate_key(json).map(|it| (it.offset, it.path));
        for json in [
            "7",
            r#""{\"a\":1,\"a\":2}""#,
            r#"{"a":{"a":"a"},"b":[{"a":1},{"a":1}],"":{"":1}}"#,
            r#"{"a":"b","b":"a","c":["a","b"]}"#,
        ] {
            assert_eq!(found(json), None, "{json}");
        }
        for (json, offset, path) in [
            (r#"{"a":1,"a":2}"#, 7, "a"),
            (r#"{"a":1,"\u0061":2}"#, 7, "a"),
            (r#"[0,{"x":[{"b":1,"c":[],"b":{}}]}]"#, 23, "[1].x[0].b"),
            (r#"{"m":[[],[{"k":",","k":1}]]}"#, 19, "m[1][0].k"),
        ] {
            assert_eq!(found(json), Some((offset, path.to_owned())), "{json}");
        }
        let many: Vec<String> = (0..50_000).map(|key| format!("\"{key}\":0")).collect();
        assert_eq!(found(&format!("{{{}}}", many.join(","))), None);
    }

    #[test]
    fn a_surrogate_is_unpaired_unless_high_and_low_follow_each_other() {
        for json in [
            r#""\ud83d\ude00""#,
            r#""\\ud83d""#,
            r#""\u00e9\n""#,
            "\"é\"",
        ] {
            assert_eq!(unpaired_surrogate(json), None, "{json}");
            assert!(serde_json::from_str::<String>(json).is_ok());
        }
        for (json, start) in [
            (r#""\ud83d""#, 1),
            (r#""\ude00\ud83d""#, 1),
            (r#""\ud83d\ude00\uDE00""#, 13),
            (r#""\ud83d\ud83d\ude00""#, 1),
            (r#""\\\ud83d""#, 3),
            (r#""é\ud83dx""#, 3),
        ] {
            assert_eq!(unpaired_surrogate(json), Some(start..start + 6), "{json}");
            assert!(serde_json::from_str::<String>(json).is_err());
        }
    }

    #[test]
    fn a_value_gets_the_nearest_that_it_can_hold() {
        let json = r#"{"a":"\ud800 1e999 \"","b":[1e999,-1e999,1.5],"c":1e3}"#;
        let expected = json!({"a": "\u{fffd} 1e999 \"", "b": [f64::MAX, -f64::MAX, 1.5], "c": 1e3});
        assert_eq!(tolerant::<Value>(json), Some(expected));
    }
}
