//! JSON: the beginning of the document with its shape, and values of the rest by key.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde::de::IgnoredAny;

use super::binary::thousands;
use super::identifiers::is_identifier;
use super::search::{Limit, boundary};

/// Up to this level the values by key are all there is room for.
const BY_KEY: i64 = 100;

/// The percent of the room for the beginning of the document.
const HEAD: i64 = 50;

/// Strings of more characters are cut before any field is omitted.
const LONG_STRING: usize = 80;

/// The characters of the longest value and of the longest key that are listed by key.
const SHORT_STRING: usize = 40;
const LONG_KEY: usize = 80;

/// The values that are tried one by one after the first one that does not fit.
const NEXT: usize = 12;

/// The deepest level at which the document is cut.
const DEEP: usize = 64;

/// A JSON object or array without white space between its tokens.
#[derive(Debug)]
pub(super) struct Document {
    /// The characters of the original.
    characters: usize,
    minified: String,
    /// Containers and the fields and elements at which the document may be cut.
    nodes: Vec<Node>,
    /// The nodes at which the document may be cut, in order.
    cuts: Vec<usize>,
    /// The long strings, with their quotes.
    long_strings: Vec<Range<usize>>,
    /// The distinct values worth listing, the most useful ones first.
    values: Vec<Listed>,
    /// The names of the keys, with their quotes.
    keys: Vec<String>,
}

#[derive(Debug)]
struct Node {
    /// The start, with the key if there is one.
    start: usize,
    parent: Option<usize>,
    is_object: bool,
}

/// A value that can be listed by key.
#[derive(Debug, Clone)]
struct Listed {
    class: Class,
    /// A scalar or a key, as written.
    span: Range<usize>,
    key: usize,
}

/// The classes of values in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Identifier,
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
    /// Parses a text; `None` if it is not JSON. `original` is the text before placeholders.
    pub(super) fn parse(text: &str, original: &str) -> Option<Self> {
        serde_json::from_str::<IgnoredAny>(text).ok()?;
        let mut document = Self {
            characters: original.chars().count(),
            minified: String::with_capacity(text.len()),
            nodes: Vec::new(),
            cuts: Vec::new(),
            long_strings: Vec::new(),
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

    /// Returns the document within the limit.
    pub(super) fn shorten(&self, limit: Limit<'_>) -> Option<String> {
        if self.minified.len() <= limit.bytes() * 4 && limit.holds(&self.minified) {
            return Some(self.minified.clone());
        }
        self.with_cut_strings(limit)
            .or_else(|| self.with_head(limit))
            .or_else(|| self.by_key(limit))
    }

    /// Returns all fields, with long strings cut.
    fn with_cut_strings(&self, limit: Limit<'_>) -> Option<String> {
        let long: usize = self.long_strings.iter().map(ExactSizeIterator::len).sum();
        let count = self.long_strings.len();
        if count == 0 || self.minified.len() - long > limit.bytes() * 4 {
            return None;
        }
        let longest = self.long_strings.iter().map(ExactSizeIterator::len).max()?;
        let (_, text) = limit.largest(longest - LONG_STRING, limit.bytes() / count, |more| {
            let mut output = String::new();
            let mut end = 0;
            for span in &self.long_strings {
                output.push_str(&self.minified[end..span.start]);
                output.push_str(&cut_string(
                    &self.minified[span.clone()],
                    LONG_STRING + more,
                ));
                end = span.end;
            }
            output.push_str(&self.minified[end..]);
            output
        })?;
        Some(text)
    }

    /// Returns the beginning of the document and values of the rest.
    fn with_head(&self, limit: Limit<'_>) -> Option<String> {
        if limit.level <= BY_KEY {
            return None;
        }
        let half = limit.percent(HEAD);
        let cut = |bytes: usize| {
            let after = self
                .cuts
                .partition_point(|&node| self.nodes[node].start <= bytes);
            after.checked_sub(1).map(|index| self.cuts[index])
        };
        let (bytes, _) = half.largest(self.minified.len(), half.bytes(), |bytes| {
            cut(bytes).map_or_else(String::new, |node| self.head(node, &[]))
        })?;
        let node = cut(bytes)?;
        if node <= 1 {
            return None;
        }
        let from = self.nodes[node].start;
        let rest: Vec<&Listed> = self
            .values
            .iter()
            .filter(|value| value.span.start >= from)
            .collect();
        largest_list(limit, &rest, |values| self.head(node, values))
    }

    /// Returns values by key.
    fn by_key(&self, limit: Limit<'_>) -> Option<String> {
        let values: Vec<&Listed> = self.values.iter().collect();
        largest_list(limit, &values, |values| self.list_values(values))
    }

    /// Writes the document up to a node, and the values under `_omitted`.
    fn head(&self, node: usize, values: &[&Listed]) -> String {
        let mut output = self.minified[..self.nodes[node].start]
            .trim_end_matches(',')
            .to_owned();
        let mut parent = self.nodes[node].parent;
        while let Some(container) = parent {
            let Node {
                parent: outer,
                is_object,
                ..
            } = self.nodes[container];
            if outer.is_none() {
                if !output.ends_with(['{', '[']) || output.len() > 1 {
                    output.push(',');
                }
                let list = self.list_values(values);
                if is_object {
                    output.extend([r#""_omitted":"#, &list]);
                } else {
                    output.extend([r#"{"_omitted":"#, &list, "}"]);
                }
            }
            output.push(if is_object { '}' } else { ']' });
            parent = outer;
        }
        output
    }

    /// Writes values as an object of lists by key, in the order of the document.
    fn list_values(&self, values: &[&Listed]) -> String {
        let mut first: HashMap<usize, usize> = HashMap::new();
        for value in values {
            let start = first.entry(value.key).or_insert(usize::MAX);
            *start = value.span.start.min(*start);
        }
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by_key(|value| (first[&value.key], value.span.start));
        let mut output = format!(r#"{{"_shortened_from_chars":{}"#, self.characters);
        for group in sorted.chunk_by(|a, b| a.key == b.key) {
            output.extend([",", &self.keys[group[0].key], ":"]);
            let texts: Vec<&str> = group
                .iter()
                .map(|value| &self.minified[value.span.clone()])
                .collect();
            match texts[..] {
                [single] => output.push_str(single),
                _ => output.extend(["[", &texts.join(","), "]"]),
            }
        }
        output.push('}');
        output
    }
}

/// Returns the rendering of as many values as fit, in their order.
fn largest_list(
    limit: Limit<'_>,
    values: &[&Listed],
    render: impl Fn(&[&Listed]) -> String,
) -> Option<String> {
    let most = usize::try_from(limit.level).unwrap_or(0).min(values.len());
    let (count, mut text) = limit.largest(most, most / 4, |count| render(&values[..count]))?;
    // The next value may be longer than the room that is left, and a later one short enough.
    let mut chosen = values[..count].to_vec();
    for value in values.iter().skip(count + 1).take(NEXT) {
        chosen.push(value);
        let more = render(&chosen);
        if limit.counter.count(&more) <= limit.level {
            text = more;
        } else {
            chosen.pop();
        }
    }
    Some(text)
}

/// Writes a JSON string.
pub(super) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
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
fn unquoted(token: &str) -> &str {
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
            return Some(Class::Identifier);
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

/// Cuts a JSON string to about `most` characters, from its beginning and its end.
fn cut_string(token: &str, most: usize) -> String {
    let text = unquoted(token);
    if text.len() <= most {
        return token.to_owned();
    }
    let Ok(value) = serde_json::from_str::<String>(token) else {
        // A surrogate escape without its pair.
        return quote(&format!(
            "[{} characters omitted]",
            thousands(text.chars().count())
        ));
    };
    let head = boundary(&value, most * 3 / 5);
    let tail = boundary(&value, value.len().saturating_sub(most * 2 / 5)).max(head);
    let omitted = value[head..tail].chars().count();
    if omitted == 0 {
        return token.to_owned();
    }
    let marker = format!(" [{} characters omitted] ", thousands(omitted));
    quote(&[&value[..head], &marker, &value[tail..]].concat())
}
