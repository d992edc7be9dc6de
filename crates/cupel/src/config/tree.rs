//! A document as a tree: what every format is read into.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use super::error::{ConfigError, ConfigErrorKind};
use crate::RawValue;
use crate::diagnostics::Excerpt;

/// A value and the bytes of the text it stands in.
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
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    /// In the order of the text, no key twice.
    Map(Vec<Entry<'a>>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) key_span: Range<usize>,
    pub(crate) value: Node<'a>,
}

/// What this is, in words.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Integer(number) => write!(f, "the number {number}"),
            Self::Float(number) => write!(f, "the number {number}"),
            Self::Text(text) => write!(f, "the text {}", Excerpt(text)),
            Self::List(_) => f.write_str("a list"),
            Self::Map(_) => f.write_str("a map"),
        }
    }
}

/// A tree without places, from any reader of serde's.
impl TryFrom<RawValue> for Node<'static> {
    type Error = ConfigError;

    fn try_from(value: RawValue) -> Result<Self, ConfigError> {
        let value = match value {
            RawValue::Null => Value::Null,
            RawValue::Bool(value) => Value::Bool(value),
            RawValue::Integer(number) => Value::Integer(number),
            RawValue::Float(number) => Value::Float(number),
            RawValue::Text(text) => Value::Text(text.into()),
            RawValue::List(values) => {
                let mut nodes = Vec::with_capacity(values.len());
                for (index, value) in values.into_iter().enumerate() {
                    nodes.push(Node::try_from(value).map_err(|error| error.within(index))?);
                }
                Value::List(nodes)
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
                Value::Map(map)
            }
        };
        Ok(Self { value, span: 0..0 })
    }
}

/// The first entry whose key stood before.
pub(super) fn repeated<'m, 'a>(entries: &'m [Entry<'a>]) -> Option<&'m Entry<'a>> {
    const FEW: usize = 12;
    if entries.len() <= FEW {
        let mut all = entries.iter().enumerate();
        let stood = |(index, entry): &(usize, &Entry<'_>)| {
            entries[..*index].iter().any(|other| other.key == entry.key)
        };
        return all.find(stood).map(|(_, entry)| entry);
    }
    let mut seen = HashSet::with_capacity(entries.len());
    entries.iter().find(|entry| !seen.insert(&*entry.key))
}

pub(super) fn duplicate_key(key: &str) -> ConfigError {
    stands_twice(key).within(key)
}

/// The same where the map is not known.
pub(super) fn stands_twice(key: &str) -> ConfigError {
    let message = format!("key {key:?} stands twice; remove one of them");
    ConfigError::new(ConfigErrorKind::DuplicateKey, message)
}
