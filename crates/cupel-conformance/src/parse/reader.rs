//! Typed access to a TOML document that tracks key paths and which keys were read.

use std::{cell::RefCell, collections::BTreeSet};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use toml::{
    Table, Value,
    value::{Datetime, Offset},
};

use crate::{
    error::{Problem, VectorError},
    model::{Document, document_number},
};

/// The file and the key paths read so far.
pub(super) struct Source<'a> {
    file: &'a str,
    seen: RefCell<BTreeSet<String>>,
}

impl<'a> Source<'a> {
    pub(super) fn new(file: &'a str) -> Self {
        Self {
            file,
            seen: RefCell::default(),
        }
    }

    pub(super) fn error(&self, key: impl Into<String>, problem: Problem) -> VectorError {
        VectorError {
            path: self.file.to_owned(),
            key: key.into(),
            problem: Box::new(problem),
        }
    }

    /// Returns the unread keys, without the keys below them.
    pub(super) fn ignored(&self, root: &Table) -> Vec<String> {
        let mut ignored = Vec::new();
        self.collect_ignored("", root, &mut ignored);
        ignored
    }

    fn collect_ignored(&self, path: &str, table: &Table, ignored: &mut Vec<String>) {
        for (key, value) in table {
            let path = join(path, key);
            if self.seen.borrow().contains(&path) {
                self.collect_ignored_in(&path, value, ignored);
            } else {
                ignored.push(path);
            }
        }
    }

    fn collect_ignored_in(&self, path: &str, value: &Value, ignored: &mut Vec<String>) {
        match value {
            Value::Table(table) => self.collect_ignored(path, table, ignored),
            Value::Array(values) => {
                for (index, value) in values.iter().enumerate() {
                    self.collect_ignored_in(&format!("{path}[{index}]"), value, ignored);
                }
            }
            _ => {}
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// A value and its place.
#[derive(Clone)]
pub(super) struct Node<'a> {
    source: &'a Source<'a>,
    path: String,
    pub(super) value: &'a Value,
}

impl<'a> Node<'a> {
    pub(super) fn error(&self, problem: Problem) -> VectorError {
        self.source.error(&self.path, problem)
    }

    pub(super) fn read<T: Read<'a>>(&self) -> Result<T, VectorError> {
        T::read(self)
    }

    /// Looks the value up in a table of names.
    pub(super) fn name<T: Copy>(
        &self,
        what: &'static str,
        names: &[(&'static str, T)],
    ) -> Result<T, VectorError> {
        let name: String = self.read()?;
        names
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, meaning)| *meaning)
            .ok_or_else(|| {
                self.error(Problem::UnknownName {
                    what,
                    name,
                    known: names.iter().map(|(known, _)| *known).collect(),
                })
            })
    }

    fn wrong_type<T: Read<'a>>(&self) -> VectorError {
        self.error(Problem::WrongType {
            expected: T::WHAT,
            found: match self.value {
                Value::String(_) => "a string",
                Value::Integer(_) => "an integer",
                Value::Float(_) => "a float",
                Value::Boolean(_) => "a boolean",
                Value::Datetime(_) => "a date-time",
                Value::Array(_) => "a list",
                Value::Table(_) => "a table",
            },
        })
    }

    fn out_of_range<T: Read<'a>>(&self) -> VectorError {
        self.error(Problem::OutOfRange {
            expected: T::WHAT,
            found: self.value.to_string(),
        })
    }
}

/// A table and its place.
#[derive(Clone)]
pub(super) struct Fields<'a> {
    source: &'a Source<'a>,
    path: String,
    table: &'a Table,
}

impl<'a> Fields<'a> {
    pub(super) fn root(source: &'a Source<'a>, table: &'a Table) -> Self {
        Self {
            source,
            path: String::new(),
            table,
        }
    }

    /// Returns an absent table: every field of it is missing.
    pub(super) fn absent(source: &'a Source<'a>, path: &str, empty: &'a Table) -> Self {
        Self {
            source,
            path: path.to_owned(),
            table: empty,
        }
    }

    /// Returns the value under `key` and marks it as read.
    pub(super) fn get(&self, key: &str) -> Option<Node<'a>> {
        let value = self.table.get(key)?;
        let path = join(&self.path, key);
        self.source.seen.borrow_mut().insert(path.clone());
        Some(Node {
            source: self.source,
            path,
            value,
        })
    }

    /// Returns the required value under `key`; `what` describes it in the error.
    pub(super) fn get_required(
        &self,
        key: &str,
        what: &'static str,
    ) -> Result<Node<'a>, VectorError> {
        self.get(key).ok_or_else(|| self.missing(key, what))
    }

    pub(super) fn optional<T: Read<'a>>(&self, key: &str) -> Result<Option<T>, VectorError> {
        self.get(key).map(|node| node.read()).transpose()
    }

    pub(super) fn required<T: Read<'a>>(&self, key: &str) -> Result<T, VectorError> {
        self.optional(key)?
            .ok_or_else(|| self.missing(key, T::WHAT))
    }

    /// Returns the list under `key`, empty if it is absent.
    pub(super) fn list<T: Read<'a>>(&self, key: &str) -> Result<Vec<T>, VectorError> {
        Ok(self.optional(key)?.unwrap_or_default())
    }

    /// Returns every key with its value.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a String, Node<'a>)> {
        self.table
            .keys()
            .filter_map(|key| Some((key, self.get(key)?)))
    }

    pub(super) fn missing(&self, key: &str, expected: &'static str) -> VectorError {
        self.error(key, Problem::Missing { expected })
    }

    pub(super) fn error(&self, key: &str, problem: Problem) -> VectorError {
        self.source.error(join(&self.path, key), problem)
    }
}

/// A type a field can have.
pub(super) trait Read<'a>: Sized {
    /// The name of the type in messages.
    const WHAT: &'static str;

    fn read(node: &Node<'a>) -> Result<Self, VectorError>;
}

impl Read<'_> for String {
    const WHAT: &'static str = "a string";

    fn read(node: &Node<'_>) -> Result<Self, VectorError> {
        let text = node.value.as_str().map(str::to_owned);
        text.ok_or_else(|| node.wrong_type::<Self>())
    }
}

impl Read<'_> for i64 {
    const WHAT: &'static str = "an integer";

    fn read(node: &Node<'_>) -> Result<Self, VectorError> {
        let number = node.value.as_integer();
        number.ok_or_else(|| node.wrong_type::<Self>())
    }
}

impl Read<'_> for usize {
    const WHAT: &'static str = "a count of zero or more";

    fn read(node: &Node<'_>) -> Result<Self, VectorError> {
        let number = node.value.as_integer();
        let number = number.ok_or_else(|| node.wrong_type::<Self>())?;
        Self::try_from(number).map_err(|_| node.out_of_range::<Self>())
    }
}

impl Read<'_> for f64 {
    const WHAT: &'static str = "a number";

    fn read(node: &Node<'_>) -> Result<Self, VectorError> {
        let integer = || Some(node.value.as_integer()? as Self);
        let number = node.value.as_float().or_else(integer);
        number.ok_or_else(|| node.wrong_type::<Self>())
    }
}

impl Read<'_> for bool {
    const WHAT: &'static str = "a boolean";

    fn read(node: &Node<'_>) -> Result<Self, VectorError> {
        let truth = node.value.as_bool();
        truth.ok_or_else(|| node.wrong_type::<Self>())
    }
}

impl Read<'_> for DateTime<Utc> {
    const WHAT: &'static str = "a date-time with a zone";

    fn read(node: &Node<'_>) -> Result<Self, VectorError> {
        let Value::Datetime(written) = node.value else {
            return Err(node.wrong_type::<Self>());
        };
        let Some(offset) = written.offset else {
            return Err(node.error(Problem::NoZone {
                found: written.to_string(),
            }));
        };
        instant(written, offset).ok_or_else(|| node.out_of_range::<Self>())
    }
}

/// The instant a date-time with a zone means; seconds left out are zero.
fn instant(written: &Datetime, offset: Offset) -> Option<DateTime<Utc>> {
    let (date, time) = (written.date?, written.time?);
    let minutes = match offset {
        Offset::Z => 0,
        Offset::Custom { minutes } => minutes,
    };
    NaiveDate::from_ymd_opt(date.year.into(), date.month.into(), date.day.into())?
        .and_hms_nano_opt(
            time.hour.into(),
            time.minute.into(),
            time.second.unwrap_or(0).into(),
            time.nanosecond.unwrap_or(0),
        )?
        .checked_sub_signed(TimeDelta::minutes(minutes.into()))
        .map(|utc| utc.and_utc())
}

impl<'a> Read<'a> for Fields<'a> {
    const WHAT: &'static str = "a table";

    fn read(node: &Node<'a>) -> Result<Self, VectorError> {
        match node.value {
            Value::Table(table) => Ok(Self {
                source: node.source,
                path: node.path.clone(),
                table,
            }),
            _ => Err(node.wrong_type::<Self>()),
        }
    }
}

impl<'a, T: Read<'a>> Read<'a> for Vec<T> {
    const WHAT: &'static str = "a list";

    fn read(node: &Node<'a>) -> Result<Self, VectorError> {
        let Value::Array(values) = node.value else {
            return Err(node.wrong_type::<Self>());
        };
        values
            .iter()
            .enumerate()
            .map(|(index, value)| {
                T::read(&Node {
                    source: node.source,
                    path: format!("{}[{index}]", node.path),
                    value,
                })
            })
            .collect()
    }
}

impl<'a> Read<'a> for Node<'a> {
    const WHAT: &'static str = "a value";

    fn read(node: &Node<'a>) -> Result<Self, VectorError> {
        Ok(node.clone())
    }
}

/// Reads any value as data: a date-time is an RFC 3339 string.
impl Read<'_> for Document {
    const WHAT: &'static str = "a value";

    fn read(node: &Node<'_>) -> Result<Self, VectorError> {
        Ok(match node.value {
            Value::String(text) => text.as_str().into(),
            Value::Integer(number) => (*number).into(),
            Value::Float(number) => document_number(*number),
            Value::Boolean(truth) => (*truth).into(),
            Value::Datetime(_) => node.read::<DateTime<Utc>>()?.to_rfc3339().into(),
            Value::Array(_) => node.read::<Vec<Self>>()?.into(),
            Value::Table(_) => {
                let fields = node.read::<Fields<'_>>()?;
                let members = fields.entries();
                let members = members.map(|(key, node)| Ok((key.clone(), node.read()?)));
                Self::Object(members.collect::<Result<_, VectorError>>()?)
            }
        })
    }
}
