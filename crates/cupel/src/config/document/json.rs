//! JSON (RFC 8259), with the position of every value.

use std::borrow::Cow;

use super::{MAX_DEPTH, distinct, empty, syntax, too_deep, without_mark};
use crate::config::error::ConfigError;
use crate::config::tree::{Entry, Node, Value};

pub(super) fn parse(text: &str) -> Result<Node<'_>, ConfigError> {
    let mut reader = Reader {
        text,
        at: without_mark(text).start,
        depth: 0,
    };
    if reader.next().is_none() {
        return Err(empty(text));
    }
    let node = reader.value()?;
    match reader.next() {
        None => Ok(node),
        Some(_) => Err(reader.unexpected("the end of the document")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// Skips white space and peeks at the next byte.
    fn next(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn value(&mut self) -> Result<Node<'a>, ConfigError> {
        let first = self.next();
        let start = self.at;
        let value = match first {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::array)?,
            Some(b'"') => Value::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", Value::Bool(true))?,
            Some(b'f') => self.word("false", Value::Bool(false))?,
            Some(b'n') => self.word("null", Value::Null)?,
            _ => return Err(self.unexpected("a value")),
        };
        let span = start..self.at;
        Ok(Node { value, span })
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Value<'a>, ConfigError>,
    ) -> Result<Value<'a>, ConfigError> {
        if self.depth == MAX_DEPTH {
            return Err(too_deep().at(self.text, self.at..self.at + 1));
        }
        self.at += 1;
        self.depth += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Value<'a>, ConfigError> {
        let mut entries = Vec::new();
        if self.next() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(entries));
        }
        loop {
            if self.next() != Some(b'"') {
                return Err(self.unexpected("a key in double quotes"));
            }
            let start = self.at;
            let key = self.string()?;
            let key_span = start..self.at;
            if self.next() != Some(b':') {
                return Err(self.unexpected("`:`").within(&*key));
            }
            self.at += 1;
            let value = self.value().map_err(|error| error.within(&*key))?;
            entries.push(Entry {
                key,
                key_span,
                value,
            });
            match self.next() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return distinct(self.text, entries).map(Value::Object);
                }
                _ => return Err(self.unexpected("`,` or `}`")),
            }
        }
    }

    fn array(&mut self) -> Result<Value<'a>, ConfigError> {
        let mut nodes = Vec::new();
        if self.next() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(nodes));
        }
        loop {
            let index = nodes.len();
            nodes.push(self.value().map_err(|error| error.within(index))?);
            match self.next() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(nodes));
                }
                _ => return Err(self.unexpected("`,` or `]`")),
            }
        }
    }

    fn word(&mut self, word: &str, value: Value<'a>) -> Result<Value<'a>, ConfigError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.unexpected("a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    /// Reads a string; borrows from the text if nothing in it is escaped.
    fn string(&mut self) -> Result<Cow<'a, str>, ConfigError> {
        let opening = self.at;
        self.at += 1;
        let mut owned: Option<String> = None;
        loop {
            let rest = &self.text[self.at..];
            let Some(plain) = first_special(rest.as_bytes()) else {
                let error = syntax("unterminated string; close it with `\"`");
                return Err(error.at(self.text, opening..self.text.len()));
            };
            let run = &rest[..plain];
            let byte = rest.as_bytes()[plain];
            self.at += plain;
            match byte {
                b'"' => {
                    self.at += 1;
                    return Ok(match owned {
                        None => Cow::Borrowed(run),
                        Some(text) => Cow::Owned(text + run),
                    });
                }
                b'\\' => {
                    let text = owned.get_or_insert_default();
                    text.push_str(run);
                    let c = self.escape()?;
                    owned.get_or_insert_default().push(c);
                }
                _ => {
                    let error = syntax(format!(
                        "control character in a string; write it as \\u{byte:04x}"
                    ));
                    return Err(error.at(self.text, self.at..self.at + 1));
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, ConfigError> {
        let start = self.at;
        let fault = |reader: &Self, message: &str| {
            let end = (start + 2).min(reader.text.len());
            Err(syntax(message).at(reader.text, start..end))
        };
        let code = self.text.as_bytes().get(start + 1).copied();
        self.at += 2;
        Ok(match code {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let Some(mut unit) = self.hex() else {
                    return fault(self, "escape `\\u` needs four hexadecimal digits");
                };
                if (0xd800..0xdc00).contains(&unit) && self.text[self.at..].starts_with("\\u") {
                    self.at += 2;
                    match self.hex() {
                        Some(low @ 0xdc00..0xe000) => {
                            unit = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                        }
                        _ => return fault(self, "unpaired surrogate"),
                    }
                }
                match char::from_u32(unit) {
                    Some(c) => c,
                    None => return fault(self, "unpaired surrogate"),
                }
            }
            _ => return fault(self, "unknown escape; write a backslash as `\\\\`"),
        })
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }

    fn number(&mut self) -> Result<Value<'a>, ConfigError> {
        let start = self.at;
        let rest = &self.text[start..];
        let of_number = |byte: u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.bytes().position(|byte| !of_number(byte));
        let number = &rest[..length.unwrap_or(rest.len())];
        self.at += number.len();
        let fault = |message: &str| Err(syntax(message).at(self.text, start..self.at));
        if !is_number(number) {
            return fault("invalid number; write it as -12, 0.5 or 1e6");
        }
        let whole = !number.contains(['.', 'e', 'E']);
        if whole
            && number != "-0"
            && let Ok(integer) = number.parse()
        {
            return Ok(Value::Integer(integer));
        }
        match number.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Value::Float(float)),
            _ => fault("number is too large"),
        }
    }

    fn unexpected(&mut self, expected: &str) -> ConfigError {
        match self.text[self.at..].chars().next() {
            None => {
                let end = self.text.len();
                syntax(format!("expected {expected}, but the text ends")).at(self.text, end..end)
            }
            Some(c) => {
                let before = self.text[..self.at].trim_end();
                let trailing = before.ends_with(',') && matches!(c, '}' | ']');
                let fix = if trailing {
                    "; remove the `,` before it"
                } else {
                    ""
                };
                let error = syntax(format!("expected {expected}, found `{c}`{fix}"));
                error.at(self.text, self.at..self.at + c.len_utf8())
            }
        }
    }
}

/// Returns the position of the first quote, backslash or control character.
fn first_special(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 32;
    // Sums instead of branches let the compiler vectorize: several times as fast.
    let special =
        |byte: u8| u8::from(byte == b'"') + u8::from(byte == b'\\') + u8::from(byte < b' ');
    let is_plain = |block: &&[u8]| block.iter().map(|&byte| special(byte)).sum::<u8>() == 0;
    let start = bytes.chunks_exact(BLOCK).take_while(is_plain).count() * BLOCK;
    let rest = bytes[start..].iter().position(|&byte| special(byte) > 0);
    rest.map(|position| start + position)
}

/// Returns whether the text is a number by JSON's grammar.
fn is_number(number: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.strip_prefix('-').unwrap_or(number);
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (number, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|text| digits(text.strip_prefix(['+', '-']).unwrap_or(text)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parse;
    use crate::RawValue;
    use crate::config::ConfigErrorKind;

    /// Compares with `serde_json`, which accepts duplicate keys.
    fn check(text: &str) {
        let ours = parse(text);
        match serde_json::from_str::<RawValue>(text) {
            Ok(theirs) => match ours {
                Ok(node) => assert_eq!(plain(node.to_raw()), plain(theirs), "{text}"),
                Err(error) => assert_eq!(error.kind(), ConfigErrorKind::DuplicateKey, "{text}"),
            },
            Err(_) => assert!(ours.is_err(), "{text}"),
        }
    }

    /// Integers beyond 64 bits are floats to `serde_json`.
    fn plain(value: RawValue) -> RawValue {
        match value {
            RawValue::Integer(number) => RawValue::Float(number as f64),
            RawValue::List(values) => RawValue::List(values.into_iter().map(plain).collect()),
            RawValue::Map(entries) => {
                let entries = entries.into_iter();
                RawValue::Map(entries.map(|(key, value)| (key, plain(value))).collect())
            }
            other => other,
        }
    }

    #[test]
    fn edge_cases_are_parsed_as_by_serde_json() {
        for text in [
            "",
            "null",
            " true ",
            "false",
            "nul",
            "truex",
            "0",
            "-0",
            "-0.0",
            "00",
            "-",
            "1.",
            ".5",
            "1e5",
            "1E+2",
            "1e",
            "1e400",
            "-1e400",
            "123456789012345678901234567890",
            "1.7976931348623157e308",
            "5e-324",
            "1e-999",
            "+1",
            "\"\"",
            "\"a",
            "\"\\u00e9\\n\\/\"",
            "\"\\ud83d\\ude00\"",
            "\"\\ud83d\"",
            "\"\\ude00\"",
            "\"\\ud83d\\u0041\"",
            "\"\\u12g4\"",
            "\"\\u+123\"",
            "\"\t\"",
            "\"\u{7f}\"",
            "[]",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[[[]]]",
            "{}",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "{a:1}",
            "{\"a\":1,\"b\":{\"a\":[null]}}",
            "{\"a\":1}{",
            "[1]//",
            "\u{a0}1",
            "\u{feff}1x",
        ] {
            check(text);
        }
    }

    #[test]
    fn long_strings_end_at_their_closing_quote() {
        for length in 0..100 {
            let plain = "é".repeat(length / 2) + &"a".repeat(length % 2);
            for text in [
                format!("\"{plain}\""),
                format!("[\"{plain}\\n{plain}\\\"\", \"{plain}\"]"),
                format!("\"{plain}\u{1}\""),
                format!("\"{plain}"),
            ] {
                check(&text);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn random_text_is_parsed_as_by_serde_json(text in r#"([\[\]{}:, ]|"[a-c\\"u0-9é]{0,3}"|-?[0-9]{1,3}[.e]?[0-9]{0,2}|true|null){0,9}"#) {
            check(&text);
        }
    }
}
