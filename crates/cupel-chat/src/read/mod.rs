//! Messages of every shape, read into turns.

pub(crate) mod anthropic;
mod blocks;
pub(crate) mod langchain;
pub(crate) mod openai;
pub(crate) mod responses;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use crate::shape::{Shape, kind_of};
use crate::turn::Turn;

/// What is wrong with a message: the field and the words.
pub(crate) type Fault = (String, String);

pub(crate) fn fault<T>(field: impl Into<String>, message: impl Into<String>) -> Result<T, Fault> {
    Err((field.into(), message.into()))
}

/// Reads one message of a chat.
pub(crate) fn turn(shape: Shape, value: &Value) -> Result<Turn, Fault> {
    let Value::Object(fields) = value else {
        return fault("", format!("must be an object, not {}", kind_of(value)));
    };
    let mut turn = match shape {
        Shape::OpenAi => openai::turn(fields),
        Shape::Responses => responses::turn(fields),
        Shape::Anthropic => anthropic::turn(fields),
        Shape::LangChain => langchain::turn(fields),
        Shape::Items => Ok(Turn::default()),
    }?;
    turn.time = ["timestamp", "created_at", "time"]
        .iter()
        .find_map(|key| time(fields.get(*key)?));
    Ok(turn)
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

/// A text that must be there.
fn text<'a>(fields: &'a Map<String, Value>, key: &str, path: &str) -> Result<&'a str, Fault> {
    match fields.get(key) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => fault(
            join(path, key),
            format!("must be a text, not {}", kind_of(other)),
        ),
        None => fault(join(path, key), "is missing; it must be a text"),
    }
}

/// A text that may be missing or null.
fn optional<'a>(
    fields: &'a Map<String, Value>,
    key: &str,
    path: &str,
) -> Result<Option<&'a str>, Fault> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => text(fields, key, path).map(Some),
    }
}

/// A list that may be missing or null.
fn list<'a>(fields: &'a Map<String, Value>, key: &str, path: &str) -> Result<&'a [Value], Fault> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(values)) => Ok(values),
        Some(other) => fault(
            join(path, key),
            format!("must be a list, not {}", kind_of(other)),
        ),
    }
}

fn object<'a>(value: &'a Value, path: &str) -> Result<&'a Map<String, Value>, Fault> {
    match value {
        Value::Object(fields) => Ok(fields),
        other => fault(path, format!("must be an object, not {}", kind_of(other))),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// A text as it is, anything else as JSON: how arguments come.
fn plain(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
