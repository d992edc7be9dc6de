//! Placeholders for encoded and binary data, which costs tokens and says nothing to a model.

use std::borrow::Cow;

/// The bytes from which on a run is data. Longer than hashes, keys and most access tokens.
const LONG: usize = 256;

/// The characters of a line of wrapped base64: 64 (PEM, RFC 7468) and 76 (MIME, RFC 2045).
const WRAPPED: std::ops::RangeInclusive<usize> = 60..=80;

/// Control characters are binary data if there are at least so many, with gaps of at most so many
/// bytes.
const CONTROLS: usize = 16;

/// Replaces base64, hexadecimal and binary data by placeholders such as
/// `[base64, 123,456 characters]`. JSON stays JSON.
pub(super) fn replace(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut output, mut copied, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        let (end, label) = match bytes[at] {
            byte if is_base64(byte) => encoded(bytes, at),
            _ if control(bytes, at).is_some() => binary(bytes, at),
            b'\\' => (escape(bytes, at), None),
            _ => (at + 1, None),
        };
        if let Some(label) = label {
            output.push_str(&text[copied..at]);
            let characters = thousands(text[at..end].chars().count());
            output.extend(["[", label, ", ", &characters, " characters]"]);
            copied = end;
        }
        at = end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
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

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

/// Returns the end of the run at `start`, and its label if it is data. Wrapped lines are one run.
fn encoded(bytes: &[u8], start: usize) -> (usize, Option<&'static str>) {
    let first = run(bytes, start);
    let (mut end, mut lines) = (first, 1);
    while WRAPPED.contains(&(first - start)) {
        let next = line_break(bytes, end);
        let next_end = run(bytes, next);
        if next == end || next_end == next || next_end - next > first - start {
            break;
        }
        lines += 1;
        end = next_end;
        if next_end - next < first - start {
            break;
        }
    }
    let is_long = lines > 3 || first - start >= LONG;
    (end, label(&bytes[start..end]).filter(|_| is_long))
}

/// Returns the end of the run of base64 characters. JSON may escape the slash.
fn run(bytes: &[u8], mut at: usize) -> usize {
    loop {
        match bytes.get(at..) {
            Some([byte, ..]) if is_base64(*byte) => at += 1,
            Some([b'\\', b'/', ..]) => at += 2,
            _ => return at,
        }
    }
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

/// Returns the end of the binary data at `start`, and its label if it is long enough.
fn binary(bytes: &[u8], start: usize) -> (usize, Option<&'static str>) {
    let (mut end, mut at, mut controls) = (start + 1, start, 0);
    while at < bytes.len() && at < end + CONTROLS && bytes[at] != b'"' {
        match control(bytes, at) {
            Some(next) => {
                (at, end) = (next, next);
                controls += 1;
            }
            None => at = escape(bytes, at),
        }
    }
    (end, (controls >= CONTROLS).then_some("binary"))
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
        [
            b'\\',
            b'u',
            b'f' | b'F',
            b'f' | b'F',
            b'f' | b'F',
            b'd' | b'D',
            ..,
        ] => Some(at + 6),
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
