//! YAML 1.2 (core schema), with the position of every value.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Tag};

use super::{MAX_DEPTH, distinct, empty, syntax, too_deep, without_mark};
use crate::config::error::ConfigError;
use crate::config::tree::{Entry, Node, Value};

/// The maximum number of values that aliases expand to.
const MAX_ALIASED: usize = 100_000;

pub(super) fn parse(text: &str) -> Result<Node<'_>, ConfigError> {
    let mut reader = Reader {
        text,
        offset: without_mark(text).start,
        open: Vec::new(),
        anchors: HashMap::new(),
        aliased: 0,
        root: None,
    };
    for event in Parser::new_from_str(&text[without_mark(text)]) {
        let (event, span) = event.map_err(|error| reader.within(reader.scan_error(&error)))?;
        let span = span.byte_range().unwrap_or_default();
        let span = span.start + reader.offset..span.end + reader.offset;
        if let Err(error) = reader.event(event, span.clone()) {
            let known = error.position().is_some();
            let error = if known { error } else { error.at(text, span) };
            return Err(reader.within(error));
        }
    }
    reader.root.ok_or_else(|| empty(text))
}

struct Reader<'a> {
    text: &'a str,
    /// Where the parsed text begins.
    offset: usize,
    /// The open arrays and objects, outermost first.
    open: Vec<Open<'a>>,
    /// Complete values by anchor.
    anchors: HashMap<usize, Node<'a>>,
    aliased: usize,
    root: Option<Node<'a>>,
}

struct Open<'a> {
    start: usize,
    anchor: usize,
    inside: Inside<'a>,
}

enum Inside<'a> {
    Array(Vec<Node<'a>>),
    /// The entries, and the key that waits for its value.
    Object(Vec<Entry<'a>>, Option<(Cow<'a, str>, Range<usize>)>),
}

impl<'a> Reader<'a> {
    fn event(&mut self, event: Event<'a>, span: Range<usize>) -> Result<(), ConfigError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                // Keys are strings as written: `1` is the key "1".
                if let Some(Open {
                    inside: Inside::Object(_, key @ None),
                    ..
                }) = self.open.last_mut()
                {
                    *key = Some((text, span));
                    return Ok(());
                }
                let value = scalar(text, style, tag.as_deref())?;
                self.finish(Node { value, span }, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.begin(&span, anchor, tag.as_deref(), Inside::Array(Vec::new()))
            }
            Event::MappingStart(_, anchor, tag) => self.begin(
                &span,
                anchor,
                tag.as_deref(),
                Inside::Object(Vec::new(), None),
            ),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else {
                    return Err(syntax("unexpected end of a collection"));
                };
                let value = match open.inside {
                    Inside::Array(nodes) => Value::Array(nodes),
                    Inside::Object(entries, _) => Value::Object(distinct(self.text, entries)?),
                };
                let span = open.start..span.end.max(open.start);
                self.finish(Node { value, span }, open.anchor)
            }
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor) else {
                    return Err(syntax("an alias inside the value it refers to"));
                };
                self.aliased += size(node);
                if self.aliased > MAX_ALIASED {
                    let message = format!("aliases expand to more than {MAX_ALIASED} values");
                    return Err(syntax(message));
                }
                let value = node.value.clone();
                self.finish(Node { value, span }, 0)
            }
            Event::DocumentStart(..) if self.root.is_some() => {
                Err(syntax("more than one document; use one file each"))
            }
            _ => Ok(()),
        }
    }

    fn begin(
        &mut self,
        span: &Range<usize>,
        anchor: usize,
        tag: Option<&Tag>,
        inside: Inside<'a>,
    ) -> Result<(), ConfigError> {
        if self.open.len() == MAX_DEPTH {
            return Err(too_deep());
        }
        if let Some(tag) = tag.filter(|tag| !matches!(tag.suffix(), "map" | "seq")) {
            return Err(unknown_tag(tag));
        }
        if let Some(Open {
            inside: Inside::Object(_, None),
            ..
        }) = self.open.last()
        {
            return Err(syntax("a key must be a string, not an array or an object"));
        }
        self.open.push(Open {
            start: span.start,
            anchor,
            inside,
        });
        Ok(())
    }

    /// Adds a complete value to the collection around it.
    fn finish(&mut self, node: Node<'a>, anchor: usize) -> Result<(), ConfigError> {
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.inside) {
            None => self.root = Some(node),
            Some(Inside::Array(nodes)) => nodes.push(node),
            Some(Inside::Object(entries, key)) => {
                let Some((key, key_span)) = key.take() else {
                    return Err(syntax("a key must be a string, not an alias"));
                };
                entries.push(Entry {
                    key,
                    key_span,
                    value: node,
                });
            }
        }
        Ok(())
    }

    /// Adds the path of the current position to an error.
    fn within(&self, error: ConfigError) -> ConfigError {
        let outwards = self.open.iter().rev();
        outwards.fold(error, |error, open| match &open.inside {
            Inside::Array(nodes) => error.within(nodes.len()),
            Inside::Object(_, Some((key, _))) => error.within(&**key),
            Inside::Object(_, None) => error,
        })
    }

    fn scan_error(&self, error: &ScanError) -> ConfigError {
        let at = error.marker().byte_offset().unwrap_or(self.text.len());
        let at = (at + self.offset).min(self.text.len());
        syntax(error.info()).at(self.text, at..at)
    }
}

fn unknown_tag(tag: &Tag) -> ConfigError {
    let (handle, suffix) = (tag.handle(), tag.suffix());
    syntax(format!("unknown tag {handle}{suffix}; remove it"))
}

fn size(node: &Node<'_>) -> usize {
    1 + match &node.value {
        Value::Array(nodes) => nodes.iter().map(size).sum(),
        Value::Object(entries) => entries.iter().map(|entry| size(&entry.value)).sum(),
        _ => 0,
    }
}

/// Resolves a scalar by the core schema.
fn scalar<'a>(
    text: Cow<'a, str>,
    style: ScalarStyle,
    tag: Option<&Tag>,
) -> Result<Value<'a>, ConfigError> {
    match tag.map(Tag::suffix) {
        None if style == ScalarStyle::Plain => {}
        None | Some("str" | "") => return Ok(Value::String(text)),
        Some("int" | "float" | "bool" | "null") => {}
        Some(_) => return tag.map_or(Ok(Value::Null), |tag| Err(unknown_tag(tag))),
    }
    Ok(match &*text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match number(&text)? {
            Some(value) => value,
            None => Value::String(text),
        },
    })
}

fn number<'a>(text: &str) -> Result<Option<Value<'a>>, ConfigError> {
    let radix = |digits, radix| i128::from_str_radix(digits, radix).map(Value::Integer);
    if let Some(digits) = text.strip_prefix("0x") {
        return Ok(radix(digits, 16).ok());
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return Ok(radix(digits, 8).ok());
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    match unsigned {
        ".inf" | ".Inf" | ".INF" if text.starts_with('-') => {
            return Ok(Some(Value::Float(f64::NEG_INFINITY)));
        }
        ".inf" | ".Inf" | ".INF" => return Ok(Some(Value::Float(f64::INFINITY))),
        _ if matches!(text, ".nan" | ".NaN" | ".NAN") => return Ok(Some(Value::Float(f64::NAN))),
        _ => {}
    }
    let begins = unsigned.strip_prefix('.').unwrap_or(unsigned);
    let of_number = |byte: u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'-' | b'+');
    if !begins.starts_with(|c: char| c.is_ascii_digit()) || !unsigned.bytes().all(of_number) {
        return Ok(None);
    }
    if let Ok(integer) = text.parse() {
        return Ok(Some(Value::Integer(integer)));
    }
    match text.parse::<f64>() {
        Ok(float) if float.is_finite() => Ok(Some(Value::Float(float))),
        Ok(_) => Err(syntax("number is too large")),
        Err(_) => Ok(None),
    }
}

/// Writes a tree as YAML in block style.
pub(super) fn write(node: &Node<'_>) -> String {
    let mut text = String::new();
    block(&mut text, node, 0);
    text
}

/// Writes a value whose first line is already indented.
fn block(out: &mut String, node: &Node<'_>, depth: usize) {
    match &node.value {
        Value::Object(entries) if !entries.is_empty() => {
            for (index, entry) in entries.iter().enumerate() {
                indent(out, if index > 0 { depth } else { 0 });
                let _ = write!(out, "{}:", text(&entry.key));
                nested(out, &entry.value, depth);
            }
        }
        Value::Array(nodes) if !nodes.is_empty() => {
            for (index, node) in nodes.iter().enumerate() {
                indent(out, if index > 0 { depth } else { 0 });
                out.push_str("- ");
                block(out, node, depth + 1);
            }
        }
        _ => {
            let _ = writeln!(out, "{}", flow(node));
        }
    }
}

/// Writes the value of a key.
fn nested(out: &mut String, node: &Node<'_>, depth: usize) {
    match &node.value {
        Value::Object(entries) if !entries.is_empty() => {
            out.push('\n');
            indent(out, depth + 1);
            block(out, node, depth + 1);
        }
        Value::Array(nodes) if !nodes.is_empty() => {
            out.push('\n');
            indent(out, depth + 1);
            block(out, node, depth + 1);
        }
        _ => {
            let _ = writeln!(out, " {}", flow(node));
        }
    }
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Writes a scalar or an empty collection on one line.
fn flow(node: &Node<'_>) -> String {
    match &node.value {
        Value::String(value) => text(value),
        _ => node.to_raw().to_string(),
    }
}

/// Writes a string: plain if it is unambiguous, otherwise in double quotes as in JSON.
fn text(value: &str) -> String {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let plain = value.starts_with(|c: char| c.is_ascii_alphabetic()) && value.chars().all(word);
    let is_string = matches!(
        scalar(value.into(), ScalarStyle::Plain, None),
        Ok(Value::String(_))
    );
    // YAML 1.1 parsers read these as booleans.
    let folded = value.to_ascii_lowercase();
    let boolean = matches!(folded.as_str(), "y" | "n" | "yes" | "no" | "on" | "off");
    if plain && is_string && !boolean {
        return value.to_owned();
    }
    crate::RawValue::Text(value.to_owned()).to_string()
}
