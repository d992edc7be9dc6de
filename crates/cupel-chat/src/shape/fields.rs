//! Reads a message, and the fields of JSON objects.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::{Shape, type_of};
use crate::message::ParsedMessage;

/// An error in a message: the path of the field and the message.
pub(crate) type Fault = (String, String);

pub(super) fn fault<T>(field: impl Into<String>, message: impl Into<String>) -> Result<T, Fault> {
    Err((field.into(), message.into()))
}

/// Reads one message of a chat.
pub(crate) fn read(shape: Shape, value: &Value) -> Result<ParsedMessage, Fault> {
    let fields = object(value, "")?;
    let mut message = (shape.format().read)(fields)?;
    message.time = ["timestamp", "created_at", "time"]
        .iter()
        .find_map(|key| time(fields.get(*key)?));
    Ok(message)
}

fn time(value: &Value) -> Option<DateTime<Utc>> {
    match value {
        Value::String(text) => {
            let time = DateTime::parse_from_rfc3339(text).ok()?;
            Some(time.with_timezone(&Utc))
        }
        Value::Number(seconds) => DateTime::from_timestamp(seconds.as_i64()?, 0),
        _ => None,
    }
}

/// Returns a required string.
pub(super) fn text<'a>(
    fields: &'a Map<String, Value>,
    key: &str,
    path: &str,
) -> Result<&'a str, Fault> {
    match fields.get(key) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => fault(
            join(path, key),
            format!("must be a string, not {}", type_of(other)),
        ),
        None => fault(join(path, key), "is missing; it must be a string"),
    }
}

/// Returns a string that may be missing or null.
pub(super) fn optional<'a>(
    fields: &'a Map<String, Value>,
    key: &str,
    path: &str,
) -> Result<Option<&'a str>, Fault> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => text(fields, key, path).map(Some),
    }
}

/// Returns an array that may be missing or null.
pub(super) fn list<'a>(
    fields: &'a Map<String, Value>,
    key: &str,
    path: &str,
) -> Result<&'a [Value], Fault> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(values)) => Ok(values),
        Some(other) => fault(
            join(path, key),
            format!("must be an array, not {}", type_of(other)),
        ),
    }
}

pub(super) fn object<'a>(value: &'a Value, path: &str) -> Result<&'a Map<String, Value>, Fault> {
    match value {
        Value::Object(fields) => Ok(fields),
        other => fault(path, format!("must be an object, not {}", type_of(other))),
    }
}

pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// Returns the arguments of a tool call: a string unchanged, other values as JSON.
pub(super) fn arguments(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
