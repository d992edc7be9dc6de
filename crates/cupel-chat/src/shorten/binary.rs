//! Placeholders for encoded and binary data, which costs tokens and says nothing to a model.
//!
//! `{"png": "iVBORw0KGgo... (20,000 characters)"}` becomes
//! `{"png": "[base64, 20,000 characters]"}`. A placeholder has no quotes and no backslash, so JSON
//! stays JSON.

use std::borrow::Cow;
use std::ops::Range;

/// The minimum bytes of a run in one line that is data. Longer than hashes, keys and most access tokens, which
/// a later call may have to repeat.
const LONG: usize = 256;

/// The characters of a line of wrapped base64: 64 (PEM, RFC 7468) and 76 (MIME, RFC 2045).
const WRAPPED: std::ops::RangeInclusive<usize> = 60..=80;

/// The minimum number of control characters in binary data, and the maximum bytes from one to the next.
/// Terminal output has a few; the escape character of colors is not counted at all.
const CONTROLS: usize = 16;

/// Replaces base64, hexadecimal and binary data by placeholders such as
/// `[base64, 123,456 characters]`. JSON stays JSON.
pub(super) fn replace(text: &str) -> Cow<'_, str> {
    let mut found = find_encoded(text.as_bytes());
    find_binary(text, &mut found);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    found.sort_unstable_by_key(|(range, _)| range.start);
    let (mut output, mut copied) = (String::new(), 0);
    for (range, label) in found {
        // Of two overlapping finds the first one counts.
        if copied <= range.start {
            output.push_str(&text[copied..range.start]);
            let characters = thousands(text[range.clone()].chars().count());
            output.extend(["[", label, ", ", &characters, " characters]"]);
            copied = range.end;
        }
    }
    output.push_str(&text[copied..]);
    Cow::Owned(output)
}

/// Writes a number with commas between thousands.
pub(super) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Data and its label.
type Found = (Range<usize>, &'static str);

/// Finds base64 and hexadecimal data. As in the search of Boyer and Moore (1977), most bytes are not read:
/// probes that are 60 bytes apart, the shortest line of `WRAPPED`, cannot miss a run of 60. In prose, a probe
/// finds a space, or a short word whose ends are near.
fn find_encoded(bytes: &[u8]) -> Vec<Found> {
    let stride = *WRAPPED.start();
    let mut found = Vec::new();
    let (mut from, mut at) = (0, stride - 1);
    while at < bytes.len() {
        if !is_in_run(bytes, at) {
            (from, at) = (at + 1, at + stride);
            continue;
        }
        let before = (from..at).rev().take_while(|&at| is_in_run(bytes, at));
        let start = after_escape(bytes, at - before.count());
        let (end, label) = encoded(bytes, start);
        found.extend(label.map(|label| (start..end, label)));
        from = end.max(at + 1);
        at = from + stride - 1;
    }
    found
}

/// Returns whether the byte is a character of base64. JSON may escape the slash.
fn is_in_run(bytes: &[u8], at: usize) -> bool {
    is_base64(bytes[at]) || bytes[at] == b'\\' && bytes.get(at + 1) == Some(&b'/')
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

/// Returns the start of a run without the letters of an escape sequence before it.
fn after_escape(bytes: &[u8], start: usize) -> usize {
    let backslashes = bytes[..start]
        .iter()
        .rev()
        .take_while(|&&byte| byte == b'\\');
    match bytes.get(start) {
        _ if backslashes.count().is_multiple_of(2) => start,
        Some(b'u') => (start + 5).min(bytes.len()),
        _ => (start + 1).min(bytes.len()),
    }
}

/// Returns the end of the run at `start`, and its label if it is data. Wrapped lines are one run.
fn encoded(bytes: &[u8], start: usize) -> (usize, Option<&'static str>) {
    let first = run(bytes, start);
    let width = first.saturating_sub(start);
    let (mut end, mut lines) = (first, 1);
    while WRAPPED.contains(&width) {
        let next = line_break(bytes, end);
        let next_end = run(bytes, next);
        if next == end || next_end == next || next_end - next > width {
            break;
        }
        lines += 1;
        end = next_end;
        if next_end - next < width {
            break;
        }
    }
    // Four lines of at least 60 bytes have nearly as many bytes as `LONG`.
    let is_long = lines > 3 || width >= LONG;
    (end, is_long.then(|| label(&bytes[start..end])).flatten())
}

/// Returns the end of the run of base64 characters.
fn run(bytes: &[u8], start: usize) -> usize {
    (start..bytes.len())
        .find(|&at| !is_in_run(bytes, at))
        .unwrap_or(bytes.len())
}

/// Returns the end of a line break, which may be escaped.
fn line_break(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let breaks: [&[u8]; 4] = [b"\n", b"\r\n", b"\\n", b"\\r\\n"];
    let found = breaks
        .iter()
        .find(|line_break| rest.starts_with(line_break));
    at + found.map_or(0, |line_break| line_break.len())
}

/// Returns the encoding of a run, if the letters are mixed as in data. Words, paths and numbers are
/// not.
///
/// Of 64 equally likely characters 26 are capitals, 26 small letters and 10 digits. An eighth of
/// each case and a 32nd of digits are far below these shares, and far above those of a path in
/// snake case or a long identifier.
fn label(run: &[u8]) -> Option<&'static str> {
    let count = |test: fn(&u8) -> bool| run.iter().filter(|byte| test(byte)).count();
    let upper = count(u8::is_ascii_uppercase);
    let lower = count(u8::is_ascii_lowercase);
    let digits = count(u8::is_ascii_digit);
    let hexadecimal = count(u8::is_ascii_hexdigit);
    let share = |part: usize, of: usize| part * of >= run.len();
    if share(upper, 8) && share(lower, 8) && share(digits, 32) {
        return Some("base64");
    }
    let is_hexadecimal = hexadecimal == run.len() && (upper == 0 || lower == 0);
    (is_hexadecimal && share(upper + lower, 8) && share(digits, 8)).then_some("hexadecimal")
}

/// Finds binary data: many control characters.
fn find_binary(text: &str, found: &mut Vec<Found>) {
    let bytes = text.as_bytes();
    // 0xef is the first byte of the replacement character, which invalid UTF-8 was decoded to.
    let is_suspicious = |byte: &&u8| match **byte {
        b'\t' | b'\n' | b'\r' => false,
        byte => byte < b' ' || byte == 0x7f || byte == 0xef,
    };
    // A count without an early end is vectorized.
    let suspicious = bytes.iter().filter(is_suspicious).count();
    if suspicious == 0 && !text.contains("\\u00") && !text.contains("\\uff") {
        return;
    }
    let mut at = 0;
    while at < bytes.len() {
        if control(bytes, at).is_none() {
            at = escape(bytes, at);
            continue;
        }
        // Goes on while the next control character is near, but not beyond the end of a JSON string.
        let (start, mut end, mut controls) = (at, at, 0);
        while at < bytes.len() && at < end + CONTROLS && bytes[at] != b'"' {
            match control(bytes, at) {
                Some(next) => {
                    (at, end) = (next, next);
                    controls += 1;
                }
                None => at = escape(bytes, at),
            }
        }
        if controls >= CONTROLS {
            found.push((start..end, "binary"));
        }
        at = end;
    }
}

/// Returns the end of the control character or replacement character at a byte; it may be escaped.
fn control(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at..)? {
        [b'\t' | b'\n' | b'\r' | 0x1b, ..] => None,
        [0..0x20 | 0x7f, ..] => Some(at + 1),
        [0xef, 0xbf, 0xbd, ..] => Some(at + 3),
        [b'\\', b'u', b'0', b'0', b'0' | b'1', digit, ..] if digit.is_ascii_hexdigit() => {
            Some(at + 6)
        }
        [b'\\', b'u', b'f', b'f', b'f', b'd', ..] => Some(at + 6),
        _ => None,
    }
}

/// Returns the end of the character or escape sequence at a byte.
fn escape(bytes: &[u8], at: usize) -> usize {
    let length = match bytes.get(at..) {
        Some([b'\\', b'u', ..]) => 6,
        Some([b'\\', ..]) => 2,
        _ => 1,
    };
    (at + length).min(bytes.len())
}
