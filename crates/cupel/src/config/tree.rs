//! The tree that every document format is parsed into.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use super::error::{ConfigError, ConfigErrorKind};
use crate::RawValue;
use crate::diagnostics::Excerpt;

/// A value and its bytes in the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node<'a> {
    pub(crate) value: Value<'a>,
    pub(crate) span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    String(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    /// In the order of the text, without duplicate keys.
    Object(Vec<Entry<'a>>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) key_span: Range<usize>,
    pub(crate) value: Node<'a>,
}

/// `the string "x"`, `an array`: as errors have it.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Integer(number) => write!(f, "the number {number}"),
            Self::Float(number) => write!(f, "the number {number}"),
            Self::String(text) => write!(f, "the string {}", Excerpt(text)),
            Self::Array(_) => f.write_str("an array"),
            Self::Object(_) => f.write_str("an object"),
        }
    }
}

impl From<Value<'static>> for Node<'static> {
    fn from(value: Value<'static>) -> Self {
        Self { value, span: 0..0 }
    }
}

impl From<(&'static str, Node<'static>)> for Entry<'static> {
    fn from((key, value): (&'static str, Node<'static>)) -> Self {
        Self {
            key: key.into(),
            key_span: 0..0,
            value,
        }
    }
}

/// Builds a tree without positions from any serde format.
impl TryFrom<RawValue> for Node<'static> {
    type Error = ConfigError;

    fn try_from(value: RawValue) -> Result<Self, ConfigError> {
        let value = match value {
            RawValue::Null => Value::Null,
            RawValue::Bool(value) => Value::Bool(value),
            RawValue::Integer(number) => Value::Integer(number),
            RawValue::Float(number) => Value::Float(number),
            RawValue::Text(text) => Value::String(text.into()),
            RawValue::List(values) => {
                let mut nodes = Vec::with_capacity(values.len());
                for (index, value) in values.into_iter().enumerate() {
                    nodes.push(Node::try_from(value).map_err(|error| error.within(index))?);
                }
                Value::Array(nodes)
            }
            RawValue::Map(entries) => {
                let mut map = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    let value = Node::try_from(value).map_err(|error| error.within(&*key))?;
                    map.push(Entry {
                        key: key.into(),
                        key_span: 0..0,
                        value,
                    });
                }
                if let Some(entry) = repeated(&map) {
                    return Err(duplicate_key(&entry.key));
                }
                Value::Object(map)
            }
        };
        Ok(value.into())
    }
}

/// Returns the first entry whose key is a duplicate.
pub(super) fn repeated<'m, 'a>(entries: &'m [Entry<'a>]) -> Option<&'m Entry<'a>> {
    const FEW: usize = 12;
    if entries.len() <= FEW {
        let mut all = entries.iter().enumerate();
        let is_duplicate = |(index, entry): &(usize, &Entry<'_>)| {
            entries[..*index].iter().any(|other| other.key == entry.key)
        };
        return all.find(is_duplicate).map(|(_, entry)| entry);
    }
    let mut seen = HashSet::with_capacity(entries.len());
    entries.iter().find(|entry| !seen.insert(&*entry.key))
}

pub(super) fn duplicate_key(key: &str) -> ConfigError {
    duplicate_key_somewhere(key).within(key)
}

/// Reports a duplicate key in an unknown object.
pub(super) fn duplicate_key_somewhere(key: &str) -> ConfigError {
    let message = format!("duplicate key {key:?}; remove one");
    ConfigError::new(ConfigErrorKind::DuplicateKey, message)
}
