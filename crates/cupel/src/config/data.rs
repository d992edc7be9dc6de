//! [`Data`]: values that are read from the tree of a document and written as one.

use std::collections::BTreeMap;
use std::fmt::Display;

use chrono::{DateTime, FixedOffset, SecondsFormat, TimeDelta, Utc};

use super::duration;
use super::error::{ConfigError, ConfigErrorKind};
use super::registry::{Family, Field, Literal, Need, Range, Record, Shape};
use super::tree::{Node, Value};
use crate::{ContextKind, CupelError, RawValue};

type Result<T> = std::result::Result<T, ConfigError>;

/// The value of a field.
pub(crate) trait Data: Sized {
    /// Reads the value; `shape` has the range or the elements.
    fn read(node: &Node<'_>, shape: Shape) -> Result<Self>;

    /// Writes the value so that [`read`](Self::read) gives it back; `Null` if it is absent.
    fn write(&self) -> RawValue;

    /// Returns the value of a field that is left out and has no default; `None` if it is required.
    fn absent() -> Option<Self> {
        None
    }
}

impl<T: Data> Data for Option<T> {
    fn read(node: &Node<'_>, shape: Shape) -> Result<Self> {
        T::read(node, shape).map(Some)
    }

    fn write(&self) -> RawValue {
        self.as_ref().map_or(RawValue::Null, T::write)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Data> Data for Box<T> {
    fn read(node: &Node<'_>, shape: Shape) -> Result<Self> {
        T::read(node, shape).map(Self::new)
    }

    fn write(&self) -> RawValue {
        T::write(self)
    }
}

impl Data for bool {
    fn read(node: &Node<'_>, _: Shape) -> Result<Self> {
        match node.value {
            Value::Bool(value) => Ok(value),
            _ => Err(wrong_type("a boolean", node)),
        }
    }

    fn write(&self) -> RawValue {
        RawValue::Bool(*self)
    }
}

impl Data for String {
    fn read(node: &Node<'_>, shape: Shape) -> Result<Self> {
        let string = as_str(node)?;
        if matches!(shape, Shape::Label) && string.trim().is_empty() {
            return Err(out_of_range("a name", "a blank string"));
        }
        Ok(string.to_owned())
    }

    fn write(&self) -> RawValue {
        RawValue::Text(self.clone())
    }
}

impl Data for ContextKind {
    fn read(node: &Node<'_>, _: Shape) -> Result<Self> {
        Self::new(as_str(node)?).map_err(|error| blank(error, "kind"))
    }

    fn write(&self) -> RawValue {
        RawValue::Text(self.as_str().to_owned())
    }
}

impl Data for f64 {
    fn read(node: &Node<'_>, shape: Shape) -> Result<Self> {
        let number = match node.value {
            Value::Float(number) => number,
            Value::Integer(number) => number as f64,
            _ => return Err(wrong_type("a number", node)),
        };
        match shape {
            Shape::Number(range) if !range.contains(number) => Err(out_of_range(range, number)),
            _ => Ok(number),
        }
    }

    fn write(&self) -> RawValue {
        RawValue::Float(*self)
    }
}

macro_rules! integers {
    ($($type:ty: $widen:expr),+) => {$(
        impl Data for $type {
            fn read(node: &Node<'_>, shape: Shape) -> Result<Self> {
                integer(node, shape)
            }

            fn write(&self) -> RawValue {
                RawValue::Integer($widen(*self))
            }
        }
    )+};
}

integers!(i64: i128::from, u64: i128::from, u32: i128::from, usize: |number: usize| number as i128);

fn integer<T: TryFrom<i128>>(node: &Node<'_>, shape: Shape) -> Result<T> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "an integer, and the cast saturates"
    )]
    let number = match node.value {
        Value::Integer(number) => number,
        Value::Float(number) if number.fract() == 0.0 => number as i128,
        Value::Float(number) => return Err(out_of_range("an integer", number)),
        _ => return Err(wrong_type("an integer", node)),
    };
    let (least, most) = match shape {
        Shape::Integer(least, most) => (least, most),
        _ => (i64::MIN, i64::MAX),
    };
    let within = (i128::from(least)..=i128::from(most)).contains(&number);
    let value = T::try_from(number).ok().filter(|_| within);
    value.ok_or_else(|| {
        if least > i64::MIN && most == i64::MAX && number < i128::from(least) {
            return out_of_range(format_args!("an integer of at least {least}"), number);
        }
        out_of_range(format_args!("an integer from {least} to {most}"), number)
    })
}

impl Data for TimeDelta {
    fn read(node: &Node<'_>, _: Shape) -> Result<Self> {
        const NOTATIONS: &str = "a duration such as \"24h\", \"1h30m\", \"500ms\", a number of seconds or ISO 8601 (\"PT24H\")";
        match &node.value {
            Value::String(text) => {
                duration::parse(text).ok_or_else(|| out_of_range(NOTATIONS, format!("{text:?}")))
            }
            Value::Integer(_) | Value::Float(_) => {
                let seconds = f64::read(node, Shape::Duration)?;
                duration::from_seconds(seconds).ok_or_else(|| out_of_range(NOTATIONS, seconds))
            }
            _ => Err(wrong_type(NOTATIONS, node)),
        }
    }

    fn write(&self) -> RawValue {
        RawValue::Text(duration::format(*self))
    }
}

impl Data for DateTime<Utc> {
    fn read(node: &Node<'_>, _: Shape) -> Result<Self> {
        const NOTATION: &str = "an RFC 3339 time with a zone, such as \"2026-01-31T12:00:00Z\"";
        let Value::String(text) = &node.value else {
            return Err(wrong_type(NOTATION, node));
        };
        let time = text.parse::<DateTime<FixedOffset>>();
        time.map(|time| time.to_utc())
            .map_err(|_| out_of_range(NOTATION, format!("{text:?}")))
    }

    fn write(&self) -> RawValue {
        RawValue::Text(self.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }
}

impl<T: Data> Data for Vec<T> {
    fn read(node: &Node<'_>, shape: Shape) -> Result<Self> {
        elements(node, shape, T::read)
    }

    fn write(&self) -> RawValue {
        RawValue::List(self.iter().map(T::write).collect())
    }
}

/// Reads an array, each element with `read`.
pub(super) fn elements<'a, T>(
    node: &Node<'a>,
    shape: Shape,
    read: impl Fn(&Node<'a>, Shape) -> Result<T>,
) -> Result<Vec<T>> {
    let Value::Array(nodes) = &node.value else {
        return Err(wrong_type("an array", node));
    };
    let (inner, least) = match shape {
        Shape::Array(inner, least) => (*inner, least),
        _ => (Shape::String, 0),
    };
    if nodes.len() < least {
        return Err(out_of_range("at least one entry", "none"));
    }
    let elements = nodes.iter().enumerate();
    elements
        .map(|(index, node)| read(node, inner).map_err(|error| error.within(index)))
        .collect()
}

impl<T: Data> Data for BTreeMap<String, T> {
    fn read(node: &Node<'_>, shape: Shape) -> Result<Self> {
        let members = members(node, shape)?;
        Ok(members
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect())
    }

    fn write(&self) -> RawValue {
        let members = self.iter();
        RawValue::Map(members.map(|(k, v)| (k.clone(), v.write())).collect())
    }
}

impl<T: Data> Data for BTreeMap<ContextKind, T> {
    fn read(node: &Node<'_>, shape: Shape) -> Result<Self> {
        let mut map = Self::new();
        for (key, value) in members(node, shape)? {
            let kind = ContextKind::new(key).map_err(|error| blank(error, "kind").within(key))?;
            if map.insert(kind, value).is_some() {
                let message = format!("duplicate kind {key:?} (case is ignored); remove one");
                let error = ConfigError::new(ConfigErrorKind::DuplicateKey, message);
                return Err(error.within(key));
            }
        }
        Ok(map)
    }

    fn write(&self) -> RawValue {
        let members = self.iter();
        RawValue::Map(
            members
                .map(|(kind, value)| (kind.as_str().to_owned(), value.write()))
                .collect(),
        )
    }
}

fn members<'n, T: Data>(node: &'n Node<'_>, shape: Shape) -> Result<Vec<(&'n str, T)>> {
    let Value::Object(entries) = &node.value else {
        return Err(wrong_type("an object", node));
    };
    let inner = match shape {
        Shape::ByKind(inner) | Shape::ByString(inner) => *inner,
        _ => Shape::String,
    };
    let member = |entry: &'n super::tree::Entry<'_>| {
        let value = T::read(&entry.value, inner).map_err(|error| error.within(&*entry.key))?;
        Ok((&*entry.key, value))
    };
    entries.iter().map(member).collect()
}

/// Writes an object, without the members that are absent.
pub(super) fn object<const N: usize>(members: [(&str, RawValue); N]) -> RawValue {
    let present = members
        .into_iter()
        .filter(|(_, value)| *value != RawValue::Null);
    RawValue::Map(present.map(|(k, v)| (k.to_owned(), v)).collect())
}

/// The most fields that a record has.
const MOST: usize = 12;

/// The members of an object, by the positions of its record's fields.
pub(super) struct Fields<'n, 'a: 'n> {
    record: &'static Record,
    slots: [Option<&'n Node<'a>>; MOST],
}

impl<'n, 'a> Fields<'n, 'a> {
    pub(super) fn of(node: &'n Node<'a>, record: &'static Record) -> Result<Self> {
        Self::collect(node, record, false)
    }

    /// Collects the fields of the type that the object names in `type`.
    pub(super) fn of_family(node: &'n Node<'a>, family: &'static Family) -> Result<Self> {
        Self::collect(node, type_of(node, family)?, true)
    }

    fn collect(node: &'n Node<'a>, record: &'static Record, tagged: bool) -> Result<Self> {
        let Value::Object(entries) = &node.value else {
            return Err(wrong_type(
                format_args!("an object ({})", record.name),
                node,
            ));
        };
        let mut slots = [None; MOST];
        for entry in entries {
            match known_field(record, tagged, &entry.key)? {
                Some(slot) if slots[slot].is_some() => {
                    let name = record.fields[slot].name;
                    let message =
                        format!("duplicate key {name:?}, in both its spellings; remove one");
                    let error = ConfigError::new(ConfigErrorKind::DuplicateKey, message);
                    return Err(error.within(&*entry.key));
                }
                Some(_) if record.nullable && entry.value.value == Value::Null => {}
                Some(slot) => slots[slot] = Some(&entry.value),
                None => {}
            }
        }
        Ok(Self { record, slots })
    }

    pub(super) fn record_name(&self) -> &'static str {
        self.record.name
    }

    fn slot(&self, key: &str) -> Option<(&'static Field, Option<&'n Node<'a>>)> {
        let mut fields = self.record.fields.iter().zip(&self.slots);
        let slot = fields.find(|(field, _)| field.name == key);
        slot.map(|(field, node)| (field, *node))
    }

    /// Reads a field, or its default if it is left out.
    pub(super) fn read<T: Data>(&self, key: &str) -> Result<T> {
        let given = self.read_by(key, T::read);
        let value = given.or_else(|| T::absent().map(Ok));
        value.unwrap_or_else(|| Err(self.missing(key)))
    }

    /// Creates the error of a required field that is left out.
    pub(super) fn missing(&self, key: &str) -> ConfigError {
        missing(key, self.slot(key).map_or("", |(field, _)| field.doc))
    }

    /// Reads a field, or takes `inherited` if it is left out.
    pub(super) fn read_or<T: Data>(&self, key: &str, inherited: Option<T>) -> Result<T> {
        match (self.slot(key), inherited) {
            (Some((_, None)), Some(inherited)) => Ok(inherited),
            _ => self.read(key),
        }
    }

    /// Reads a field or its default with `read`; `None` if it is left out and has no default.
    pub(super) fn read_by<T>(
        &self,
        key: &str,
        read: impl Fn(&Node<'_>, Shape) -> Result<T>,
    ) -> Option<Result<T>> {
        let (field, node) = self.slot(key)?;
        match (node, field.need) {
            (Some(node), _) => Some(read(node, field.shape).map_err(|error| error.within(key))),
            (None, Need::Default(literal)) => Some(read(&literal.node(), field.shape)),
            (None, _) => None,
        }
    }
}

/// Returns the type that an object of the family names.
pub(super) fn type_of(node: &Node<'_>, family: &'static Family) -> Result<&'static Record> {
    let Value::Object(entries) = &node.value else {
        let first = family.types[0].name;
        return Err(wrong_type(
            format_args!("an object with a `type`, such as {{\"type\": {first:?}}}"),
            node,
        ));
    };
    let Some(tag) = entries.iter().find(|entry| entry.key == "type") else {
        let names: Vec<&str> = family.names().collect();
        let names = names.join(", ");
        let message = format!("missing field \"type\"; expected one of {names}");
        return Err(ConfigError::new(ConfigErrorKind::MissingField, message));
    };
    let record = match &tag.value.value {
        Value::String(name) => family.find(name).ok_or_else(|| family.unknown(name)),
        _ => Err(wrong_type("a string", &tag.value)),
    };
    record.map_err(|error| error.within("type"))
}

impl Family {
    pub(super) fn unknown(&self, name: &str) -> ConfigError {
        let kind = ConfigErrorKind::UnknownName;
        ConfigError::unknown(kind, self.name, name, self.names())
    }
}

/// Returns the position of the field with that key; `None` for the `type` of an object that has one.
pub(super) fn known_field(record: &Record, tagged: bool, key: &str) -> Result<Option<usize>> {
    let has_key = |field: &Field| field.name == key || field.alias == Some(key);
    match record.fields.iter().position(has_key) {
        None if tagged && key == "type" => Ok(None),
        None => {
            let known = record.fields.iter().map(|field| field.name);
            let known = tagged.then_some("type").into_iter().chain(known);
            let kind = ConfigErrorKind::UnknownKey;
            Err(ConfigError::unknown(kind, "key", key, known).within(key))
        }
        slot => Ok(slot),
    }
}

impl Literal {
    /// Returns the node that a document with this value would have.
    fn node(self) -> Node<'static> {
        let object = |members: Vec<(&'static str, Value<'static>)>| {
            let entries = members.into_iter();
            Value::Object(entries.map(|(k, v)| (k, Node::from(v)).into()).collect())
        };
        Node::from(match self {
            Self::Bool(value) => Value::Bool(value),
            Self::Integer(number) => Value::Integer(number.into()),
            Self::Number(number) => Value::Float(number),
            Self::String(text) => Value::String(text.into()),
            Self::Type(name) => object(vec![("type", Value::String(name.into()))]),
            Self::Weights(weights) => {
                let weights = weights.iter();
                object(weights.map(|(k, w)| (*k, Value::Float(*w))).collect())
            }
            Self::EmptyObject => object(Vec::new()),
            Self::EmptyArray => Value::Array(Vec::new()),
        })
    }
}

pub(super) fn missing(key: &str, doc: &str) -> ConfigError {
    let first = doc.chars().next().map(|c| c.to_ascii_lowercase());
    let rest = doc.get(1..).unwrap_or_default().trim_end_matches('.');
    let doc: String = first.into_iter().chain(rest.chars()).collect();
    let message = format!("missing field {key:?}; add it: {doc}");
    ConfigError::new(ConfigErrorKind::MissingField, message)
}

pub(super) fn wrong_type(expected: impl Display, node: &Node<'_>) -> ConfigError {
    let message = format!("expected {expected}, got {}", node.value);
    ConfigError::new(ConfigErrorKind::WrongType, message)
}

pub(super) fn out_of_range(expected: impl Display, got: impl Display) -> ConfigError {
    let message = format!("expected {expected}, got {got}");
    ConfigError::new(ConfigErrorKind::OutOfRange, message)
}

pub(super) fn unknown_choice(name: &str, known: &'static [&'static str]) -> ConfigError {
    let known = known.iter().copied();
    ConfigError::unknown(ConfigErrorKind::UnknownName, "value", name, known)
}

pub(super) fn as_str<'n>(node: &'n Node<'_>) -> Result<&'n str> {
    match &node.value {
        Value::String(text) => Ok(text),
        _ => Err(wrong_type("a string", node)),
    }
}

/// Converts the refusal of a blank kind or source.
pub(super) fn blank(error: CupelError, what: &str) -> ConfigError {
    ConfigError::invalid(error).with_message(format!("a {what} must not be blank"))
}

impl Range {
    fn contains(self, number: f64) -> bool {
        let above = if self.exclusive {
            number > self.min
        } else {
            number >= self.min
        };
        above && number <= self.max
    }
}

/// `a number from 0 to 1`, as errors have it.
impl Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { min, max, .. } = self;
        match (*min, *max) {
            (f64::MIN, f64::MAX) => f.write_str("a finite number"),
            (_, f64::MAX) if self.exclusive => write!(f, "a finite number above {min}"),
            (_, f64::MAX) => write!(f, "a finite number of at least {min}"),
            _ if self.exclusive => write!(f, "a number above {min} and at most {max}"),
            _ => write!(f, "a number from {min} to {max}"),
        }
    }
}
