//! The tables of a JSON document: where it may be cut, and which values are worth listing.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::OnceLock;

use serde::de::IgnoredAny;

use super::identifiers::is_identifier;
use super::lines::Text;

/// Strings of more characters are cut before any field is omitted.
pub(super) const LONG_STRING: usize = 80;

/// The characters of the longest value and of the longest key that are listed by key.
const SHORT_STRING: usize = 40;
const LONG_KEY: usize = 80;

/// The characters of identifiers that are listed after the longer ones.
const SHORT_IDENTIFIER: usize = 5;

/// The deepest level at which the document is cut.
const DEEP: usize = 64;

/// A JSON object or array without white space between its tokens.
#[derive(Debug)]
pub(super) struct Document {
    /// The characters of the original.
    pub(super) characters: usize,
    pub(super) minified: String,
    pub(super) nodes: Vec<Node>,
    /// The nodes before which the document may be cut, in order.
    pub(super) cuts: Vec<usize>,
    /// The long strings, with their quotes.
    pub(super) long_strings: Vec<Range<usize>>,
    /// The values of the long strings.
    pub(super) texts: OnceLock<Vec<Text<'static>>>,
    /// The document with only the beginnings of long strings.
    pub(super) abridged: OnceLock<Box<Document>>,
    /// The distinct values worth listing, the most useful ones first.
    pub(super) values: Vec<Listed>,
    /// The names of the keys, with their quotes.
    pub(super) keys: Vec<String>,
}

/// A field or an element.
#[derive(Debug)]
pub(super) struct Node {
    /// The start, with the key if there is one.
    pub(super) start: usize,
    pub(super) parent: Option<usize>,
    pub(super) is_object: bool,
}

/// A value that can be listed by key.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    class: Class,
    /// A scalar or a key, as written.
    pub(super) span: Range<usize>,
    pub(super) key: usize,
}

/// The classes of values in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Identifier,
    /// Identifiers of four or five characters, which are often amounts, times or endings of numbers.
    ShortIdentifier,
    /// Short strings and integers of at least four digits.
    Short,
    Number,
}

/// A container that is open during the scan.
struct Open {
    node: usize,
    is_object: bool,
    /// The key of the container or of the nearest one around it that has a key.
    key: usize,
    /// Whether an array is around the fields.
    in_array: bool,
}

impl Document {
    /// Parses a text; `None` if it is not JSON. `characters` are those of the original.
    pub(super) fn parse(text: &str, characters: usize) -> Option<Self> {
        serde_json::from_str::<IgnoredAny>(text).ok()?;
        let mut document = Self {
            characters,
            minified: String::with_capacity(text.len()),
            nodes: Vec::new(),
            cuts: Vec::new(),
            long_strings: Vec::new(),
            texts: OnceLock::new(),
            abridged: OnceLock::new(),
            values: Vec::new(),
            keys: vec![r#""values""#.to_owned()],
        };
        document.scan(text);
        document.rank_values();
        Some(document)
    }

    /// Fills the tables from a valid text.
    fn scan<'t>(&mut self, text: &'t str) {
        let bytes = text.as_bytes();
        let mut numbers: HashMap<&'t str, usize> = HashMap::new();
        let mut open: Vec<Open> = Vec::new();
        // The key of the field that is read: its start in the minified text and its number.
        let mut field: Option<(usize, usize)> = None;
        let mut at = 0;
        while at < bytes.len() {
            let end = token_end(bytes, at);
            let token = &text[at..end];
            at = end;
            let start = self.minified.len();
            match token.as_bytes()[0] {
                b' ' | b'\t' | b'\n' | b'\r' => continue,
                b'"' if field.is_none() && open.last().is_some_and(|open| open.is_object) => {
                    let number = *numbers.entry(token).or_insert_with(|| {
                        self.keys.push(token.to_owned());
                        self.keys.len() - 1
                    });
                    field = Some((start, number));
                }
                b'{' | b'[' => {
                    let node = self.add_node(field.map_or(start, |(start, _)| start), &open);
                    let around = open.last();
                    if let Some((start, number)) = field.filter(|_| around.is_some()) {
                        let key = around.map_or(0, |open| open.key);
                        let name = self.keys[number].len();
                        if is_identifier(unquoted(&self.keys[number])) {
                            self.list(Class::Identifier, start..start + name, key);
                        }
                    }
                    let is_object = token == "{";
                    self.nodes[node].is_object = is_object;
                    open.push(Open {
                        node,
                        is_object,
                        key: field
                            .map_or_else(|| around.map_or(0, |open| open.key), |(_, key)| key),
                        in_array: !is_object || around.is_some_and(|open| open.in_array),
                    });
                    field = None;
                }
                b'}' | b']' => {
                    open.pop();
                }
                b',' | b':' => {}
                _ => {
                    self.add_node(field.map_or(start, |(start, _)| start), &open);
                    let around = open.last().map_or(0, |open| open.key);
                    let key = field.map_or(around, |(_, key)| key);
                    if let Some(class) = classify(token) {
                        self.list(class, start..start + token.len(), key);
                    }
                    if token.starts_with('"') && unquoted(token).chars().nth(LONG_STRING).is_some()
                    {
                        self.long_strings.push(start..start + token.len());
                    }
                    field = None;
                }
            }
            self.minified.push_str(token);
        }
    }

    /// Adds a node that starts at `start`. A field of an object inside an array is no place to cut,
    /// so that rows stay whole.
    fn add_node(&mut self, start: usize, open: &[Open]) -> usize {
        let around = open.last();
        if open.len() <= DEEP && around.is_some_and(|open| !open.is_object || !open.in_array) {
            self.cuts.push(self.nodes.len());
        }
        self.nodes.push(Node {
            start,
            parent: around.map(|open| open.node),
            is_object: false,
        });
        self.nodes.len() - 1
    }

    fn list(&mut self, class: Class, span: Range<usize>, key: usize) {
        if self.keys[key].len() <= LONG_KEY {
            self.values.push(Listed { class, span, key });
        }
    }

    /// Sorts the values by class and length and removes duplicates. The first occurrence stays.
    fn rank_values(&mut self) {
        let mut values = std::mem::take(&mut self.values);
        values.sort_unstable_by_key(|value| (value.class, value.span.len(), value.span.start));
        let mut known = HashSet::new();
        values.retain(|value| known.insert(&self.minified[value.span.clone()]));
        self.values = values;
    }
}

/// Returns the end of the token at a byte of valid JSON. A white space character is a token.
fn token_end(bytes: &[u8], start: usize) -> usize {
    match bytes[start] {
        b'"' => {
            let mut at = start + 1;
            while at < bytes.len() && bytes[at] != b'"' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at + 1
        }
        b'-' | b'0'..=b'9' | b'a'..=b'z' => {
            let is_end =
                |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r');
            let length = bytes[start..].iter().position(is_end);
            length.map_or(bytes.len(), |length| start + length)
        }
        _ => start + 1,
    }
}

/// Returns a string without its quotes.
pub(super) fn unquoted(token: &str) -> &str {
    token
        .strip_prefix('"')
        .and_then(|token| token.strip_suffix('"'))
        .unwrap_or(token)
}

/// Returns the class of a scalar, if it is worth listing.
fn classify(token: &str) -> Option<Class> {
    let text = unquoted(token);
    if text.len() < token.len() {
        if is_identifier(text) {
            let is_short = text.chars().nth(SHORT_IDENTIFIER).is_none();
            return Some(if is_short {
                Class::ShortIdentifier
            } else {
                Class::Identifier
            });
        }
        let is_short = !text.is_empty() && text.chars().nth(SHORT_STRING).is_none();
        return is_short.then_some(Class::Short);
    }
    let digits = token.trim_start_matches('-');
    if !digits.starts_with(|c: char| c.is_ascii_digit()) || token.len() > LONG_STRING {
        return None;
    }
    let is_integer = digits.bytes().all(|byte| byte.is_ascii_digit());
    Some(if is_integer && digits.len() >= 4 {
        Class::Short
    } else {
        Class::Number
    })
}
