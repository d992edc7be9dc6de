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
        let mut scan = Scan {
            document: &mut document,
            open: Vec::new(),
            field: None,
            numbers: HashMap::new(),
            known: HashSet::new(),
        };
        let mut at = 0;
        while at < text.len() {
            let end = token_end(text.as_bytes(), at);
            scan.add(&text[at..end]);
            at = end;
        }
        document
            .values
            .sort_unstable_by_key(|value| (value.class, value.span.len(), value.span.start));
        Some(document)
    }
}

/// Fills the tables from the tokens of a valid text.
struct Scan<'t, 'd> {
    document: &'d mut Document,
    open: Vec<Open>,
    /// The field whose value comes next.
    field: Option<Field<'t>>,
    /// The numbers of the keys.
    numbers: HashMap<&'t str, usize>,
    /// The values that are listed.
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
    /// Whether it is an array or inside one.
    in_array: bool,
}

impl<'t> Scan<'t, '_> {
    fn add(&mut self, token: &'t str) {
        match token.as_bytes()[0] {
            b' ' | b'\t' | b'\n' | b'\r' => return,
            b'"' if self.field.is_none() && self.open.last().is_some_and(|open| open.is_object) => {
                self.start_field(token);
            }
            b'{' | b'[' => self.start_container(token == "{"),
            b'}' | b']' => {
                self.open.pop();
            }
            b',' | b':' => {}
            _ => self.add_scalar(token),
        }
        self.document.minified.push_str(token);
    }

    fn start_field(&mut self, name: &'t str) {
        let keys = &mut self.document.keys;
        let key = *self.numbers.entry(name).or_insert_with(|| {
            keys.push(name.to_owned());
            keys.len() - 1
        });
        self.field = Some(Field {
            start: self.document.minified.len(),
            key,
            name,
        });
    }

    fn start_container(&mut self, is_object: bool) {
        let node = self.add_node(is_object);
        let around = self.open.last();
        let outer = around.map_or(0, |open| open.key);
        let in_array = !is_object || around.is_some_and(|open| open.in_array);
        let field = self.field.take();
        let key = field.map_or(outer, |field| field.key);
        self.open.push(Open {
            node,
            is_object,
            key,
            in_array,
        });
        // The key of a container may be its identifier.
        if let Some(Field { start, name, .. }) =
            field.filter(|field| is_identifier(unquoted(field.name)))
        {
            self.list(name, Class::Identifier, start..start + name.len(), outer);
        }
    }

    fn add_scalar(&mut self, token: &'t str) {
        self.add_node(false);
        let start = self.document.minified.len();
        let span = start..start + token.len();
        let outer = self.open.last().map_or(0, |open| open.key);
        let key = self.field.take().map_or(outer, |field| field.key);
        if let Some(class) = classify(token) {
            self.list(token, class, span.clone(), key);
        }
        if token.starts_with('"') && is_longer(unquoted(token), LONG_STRING) {
            self.document.long_strings.push(span);
        }
    }

    /// Adds a node for the value that starts. A field of an object inside an array is no place to cut,
    /// so that rows stay whole.
    fn add_node(&mut self, is_object: bool) -> usize {
        let around = self.open.last();
        let nodes = &mut self.document.nodes;
        if self.open.len() <= DEEP && around.is_some_and(|open| !open.is_object || !open.in_array) {
            self.document.cuts.push(nodes.len());
        }
        let here = self.document.minified.len();
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

/// Returns the class of a scalar, if it is worth listing.
fn classify(token: &str) -> Option<Class> {
    let text = unquoted(token);
    if text.len() < token.len() {
        if is_identifier(text) {
            let is_short = !is_longer(text, SHORT_IDENTIFIER);
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
