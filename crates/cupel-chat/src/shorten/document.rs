//! The tables of a JSON document: where it may be cut, and which values are worth listing.
//!
//! One pass over the tokens of the text builds them, without a tree of values: a tool result may
//! have megabytes, and it is shortened to several levels. For `{"rows": [{"id": "a1"}], "n": 3}`:
//!
//! ```text
//! minified  {"rows":[{"id":"a1"}],"n":3}
//! nodes     0: whole   1: "rows":[   2: {   3: "id":"a1"   4: "n":3      start of each, parent
//! cuts      1, 2, 4    not 3: a field of a row is no place to cut
//! values    "a1" under "id", 3 under "n"
//! ```
//!
//! All positions are bytes of the minified text.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::OnceLock;

use serde::de::IgnoredAny;

use super::identifiers::{SHORT, is_identifier};
use super::query::Query;
use super::text::Text;

/// Strings of more characters are cut before any field is omitted. Names, titles, paths and ids are
/// shorter; what is longer is text.
pub(super) const LONG_STRING: usize = 80;

/// The characters of the longest value that is listed by key, unless it is an identifier. A
/// sentence is not what a later call repeats.
const SHORT_STRING: usize = 40;
/// The bytes of the longest key whose values are listed. A longer key is data itself, and it would
/// cost more than the value.
const LONG_KEY: usize = 80;

/// The deepest level at which the document is cut. A cut closes every open container, so a cut
/// below it would spend the room on brackets.
const DEEP: usize = 64;

/// A JSON object or array without white space between its tokens.
#[derive(Debug)]
pub(super) struct Document {
    /// The characters of the original.
    pub(super) characters: usize,
    pub(super) minified: String,
    /// Every field and element in the order of the text: `start` ascends, which the search for a
    /// cut relies on.
    pub(super) nodes: Vec<Node>,
    /// The nodes before which the document may be cut, in order. Containers of fields are cut
    /// anywhere, rows only between rows.
    pub(super) cuts: Vec<usize>,
    /// The long strings, with their quotes, in order.
    pub(super) long_strings: Vec<Range<usize>>,
    /// The values of the long strings. Built once for all levels, when a string is first cut.
    pub(super) texts: OnceLock<Vec<Text<'static>>>,
    /// The document with only the beginnings of long strings.
    pub(super) abridged: OnceLock<Box<Document>>,
    /// The distinct values worth listing, the most useful ones first: by class, then the shortest,
    /// which leaves room for more of them.
    pub(super) values: Vec<Listed>,
    /// The names of the keys, with their quotes. The first is `"values"`, for elements of a
    /// top-level array, which have no key.
    pub(super) keys: Vec<String>,
    pub(super) query: Query,
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

/// The classes of values in the order in which they are listed. Short identifiers are mostly
/// amounts, times and years, which a later call repeats less often than ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Identifier,
    /// Identifiers of at most [`SHORT`] characters.
    ShortIdentifier,
    /// Short strings and integers of at least four digits.
    Short,
    Number,
}

impl Document {
    /// Parses a text; `None` if it is not JSON. `characters` are those of the original.
    pub(super) fn parse(text: &str, characters: usize, query: &Query) -> Option<Self> {
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
            query: query.clone(),
        };
        let mut scan = Scan {
            document: &mut document,
            open: Vec::new(),
            field: None,
            numbers: HashMap::new(),
            following: vec![0],
            last_key: 0,
            known: HashSet::new(),
        };
        // Text up to the next white space between tokens is copied at once.
        let (mut copied, mut at) = (0, 0);
        while at < text.len() {
            let end = token_end(text.as_bytes(), at);
            let token = &text[at..end];
            let here = scan.document.minified.len() + at - copied;
            if matches!(token.as_bytes()[0], b' ' | b'\t' | b'\n' | b'\r') {
                scan.document.minified.push_str(&text[copied..at]);
                copied = end;
            } else {
                scan.add(token, here);
            }
            at = end;
        }
        document.minified.push_str(&text[copied..]);
        document
            .values
            .sort_unstable_by_key(|value| (value.class, value.span.len(), value.span.start));
        Some(document)
    }
}

/// Fills the tables from the tokens of a valid text.
struct Scan<'t, 'd> {
    document: &'d mut Document,
    /// The containers around the current token, the innermost last.
    open: Vec<Open>,
    /// The field whose value comes next.
    field: Option<Field<'t>>,
    /// The numbers of the keys.
    numbers: HashMap<&'t str, usize>,
    /// The key that followed each key last (a last-successor prediction). Rows repeat their keys,
    /// so a comparison replaces most lookups in `numbers`.
    following: Vec<usize>,
    last_key: usize,
    /// The values that are listed, so that a repeated one is listed once.
    known: HashSet<&'t str>,
}

#[derive(Clone, Copy)]
struct Field<'t> {
    /// The start in the minified text.
    start: usize,
    key: usize,
    name: &'t str,
}

/// A container that is open.
struct Open {
    node: usize,
    is_object: bool,
    /// Its key, or the nearest one around it.
    key: usize,
    /// Whether it is an array, the value of an identifier, or inside one of them. An object whose
    /// keys are identifiers, such as `{"u17": {...}, "u18": {...}}`, is a table by id: its values
    /// are rows.
    in_rows: bool,
}

impl<'t> Scan<'t, '_> {
    /// Adds a token that starts at `here` in the minified text.
    fn add(&mut self, token: &'t str, here: usize) {
        match token.as_bytes()[0] {
            b'"' if self.field.is_none() && self.open.last().is_some_and(|open| open.is_object) => {
                let key = self.number(token);
                self.field = Some(Field {
                    start: here,
                    key,
                    name: token,
                });
            }
            b'{' | b'[' => self.start_container(token == "{", here),
            b'}' | b']' => {
                self.open.pop();
            }
            b',' | b':' => {}
            _ => self.add_scalar(token, here),
        }
    }

    /// Returns the number of a key, which is its index in `keys`.
    fn number(&mut self, name: &'t str) -> usize {
        let keys = &mut self.document.keys;
        let mut key = self.following[self.last_key];
        if keys[key] != name {
            key = *self.numbers.entry(name).or_insert_with(|| {
                keys.push(name.to_owned());
                keys.len() - 1
            });
            self.following.resize(keys.len(), 0);
            self.following[self.last_key] = key;
        }
        self.last_key = key;
        key
    }

    /// Adds a node for an object or array, and lists its key if that is an identifier.
    fn start_container(&mut self, is_object: bool, here: usize) {
        let node = self.add_node(is_object, here);
        let around = self.open.last();
        let outer = around.map_or(0, |open| open.key);
        let in_rows = around.is_some_and(|open| open.in_rows);
        let field = self.field.take();
        let is_identified = field.is_some_and(|field| is_identifier(unquoted(field.name)));
        self.open.push(Open {
            node,
            is_object,
            key: field.map_or(outer, |field| field.key),
            in_rows: in_rows || !is_object || is_identified,
        });
        if let Some(Field { start, name, .. }) = field.filter(|_| is_identified) {
            self.list(name, Class::Identifier, start..start + name.len(), outer);
        }
    }

    /// Adds a node for a value that is no container. An element of an array is listed under the key of the
    /// array.
    fn add_scalar(&mut self, token: &'t str, here: usize) {
        self.add_node(false, here);
        let span = here..here + token.len();
        let outer = self.open.last().map_or(0, |open| open.key);
        let key = self.field.take().map_or(outer, |field| field.key);
        if let Some(class) = classify(token) {
            self.list(token, class, span.clone(), key);
        }
        if token.starts_with('"') && is_longer(unquoted(token), LONG_STRING) {
            self.document.long_strings.push(span);
        }
    }

    /// Adds a node for the value that starts. A field of a row is no place to cut, so that rows
    /// stay whole.
    fn add_node(&mut self, is_object: bool, here: usize) -> usize {
        let around = self.open.last();
        let nodes = &mut self.document.nodes;
        if self.open.len() <= DEEP && around.is_some_and(|open| !open.is_object || !open.in_rows) {
            self.document.cuts.push(nodes.len());
        }
        nodes.push(Node {
            start: self.field.map_or(here, |field| field.start),
            parent: around.map(|open| open.node),
            is_object,
        });
        nodes.len() - 1
    }

    /// Lists a value at its first occurrence.
    fn list(&mut self, token: &'t str, class: Class, span: Range<usize>, key: usize) {
        if self.document.keys[key].len() <= LONG_KEY && self.known.insert(token) {
            self.document.values.push(Listed { class, span, key });
        }
    }
}

/// Returns whether a text has more characters.
fn is_longer(text: &str, characters: usize) -> bool {
    text.len() > characters && text.chars().nth(characters).is_some()
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

/// Returns the class of a scalar, if it is worth listing. `true`, `false`, `null`, empty strings and long texts are
/// not: a later call does not look them up.
fn classify(token: &str) -> Option<Class> {
    let text = unquoted(token);
    if text.len() < token.len() {
        if is_identifier(text) {
            let is_short = !is_longer(text, SHORT);
            return Some(if is_short {
                Class::ShortIdentifier
            } else {
                Class::Identifier
            });
        }
        let is_short = !text.is_empty() && !is_longer(text, SHORT_STRING);
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
