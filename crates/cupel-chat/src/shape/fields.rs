//! Reads a message, and the fields of JSON objects.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::detect::{evidence, named, nearest};
use super::{Shape, blocks, type_of};
use crate::error::Kind;
use crate::message::{ParsedMessage, Role};

/// An error in a message.
pub(crate) struct Fault {
    /// The path of the field.
    pub(crate) field: String,
    pub(crate) message: String,
    pub(crate) kind: Kind,
}

/// Returns an error whose message is a whole sentence.
pub(super) fn fault<T>(field: impl Into<String>, message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault {
        field: field.into(),
        message: message.into(),
        kind: Kind::Invalid,
    })
}

/// Returns an error whose message continues a sentence that starts with the path of the field.
pub(super) fn value_fault<T>(
    field: impl Into<String>,
    message: impl Into<String>,
) -> Result<T, Fault> {
    Err(Fault {
        field: field.into(),
        message: message.into(),
        kind: Kind::Value,
    })
}

/// Returns the error for a value that is missing or of another type than `expected`.
pub(super) fn type_fault<T>(
    field: impl Into<String>,
    expected: &str,
    found: Option<&Value>,
) -> Result<T, Fault> {
    let message = match found {
        Some(found) => format!("must be {expected}, not {}", type_of(found)),
        None => format!("is missing; it must be {expected}"),
    };
    value_fault(field, message)
}

/// Reads one message of a chat.
pub(crate) fn read(shape: Shape, value: &Value) -> Result<ParsedMessage, Fault> {
    let fields = object(value, "")?;
    let format = shape.format();
    let has_content = |key: &&str| fields.contains_key(*key);
    if !format.content_fields.is_empty() && !format.content_fields.iter().any(has_content) {
        let looks_like = evidence(value).map(|(shape, _)| shape);
        let looks_like = looks_like.or_else(|| nearest(fields));
        // Another format helps only if the message looks like one.
        let (hint, kind) = match looks_like.filter(|other| *other != shape) {
            Some(other) => (format!("it looks like {other}"), Kind::Unknown),
            None => {
                let expected = format.content_fields.join(", ");
                (format!("expected one of {expected}"), Kind::Invalid)
            }
        };
        return Err(Fault {
            field: String::new(),
            message: format!(
                "a message of the format {shape} without content: it has {}; {hint}",
                named(fields)
            ),
            kind,
        });
    }
    let mut message = (format.read)(fields)?;
    message.time = ["timestamp", "created_at", "time"]
        .iter()
        .find_map(|key| time(fields.get(*key)?));
    message.has_cache_breakpoint = has_cache_breakpoint(value);
    Ok(message)
}

/// Returns whether a value contains a breakpoint of a provider's prompt cache.
fn has_cache_breakpoint(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            let is_breakpoint = matches!(key.as_str(), "cache_control" | "cachePoint");
            (is_breakpoint && !value.is_null()) || has_cache_breakpoint(value)
        }),
        Value::Array(values) => values.iter().any(has_cache_breakpoint),
        _ => false,
    }
}

/// Fields that clients and agents add to messages and that the model does not see.
const NOTES: &[&str] = &[
    "id",
    "uuid",
    "type",
    "object",
    "index",
    "timestamp",
    "created_at",
    "createdAt",
    "created",
    "updated_at",
    "time",
    "date",
    "metadata",
    "status",
    "model",
    "provider",
    "usage",
    "finish_reason",
    "stop_reason",
    "stop_sequence",
    "stop_details",
    "annotations",
    "logprobs",
    "cache_control",
    "providerOptions",
    "container",
    "context_management",
    "extra",
    "tags",
    // SWE-agent repeats the content and the call.
    "agent",
    "message_type",
    "thought",
    "action",
];

/// Returns the formats whose messages have a field with content of their own.
fn owners(key: &str) -> Vec<&'static str> {
    let has_field = |shape: &Shape| shape.format().own_fields.contains(&key);
    let owners = Shape::ALL.into_iter().filter(has_field);
    owners.map(Shape::name).collect()
}

/// Adds the texts of the fields beside the `known` ones, because the model may see them. Fails for a field
/// with the content of another format.
pub(super) fn count_unknown(
    message: &mut ParsedMessage,
    fields: &Map<String, Value>,
    path: &str,
    known: &[&str],
) -> Result<(), Fault> {
    let had_content = message.has_own_content;
    for (key, value) in fields {
        let is_known = known.contains(&key.as_str()) || NOTES.contains(&key.as_str());
        if is_known || !has_text(value) {
            continue;
        }
        let owners = owners(key);
        if !owners.is_empty() {
            return Err(Fault {
                field: join(path, key),
                message: format!(
                    "unknown field `{key}`, which messages of the format {} have",
                    owners.join(" or ")
                ),
                kind: Kind::Unknown,
            });
        }
        blocks::push_value(message, value);
    }
    message.has_own_content = had_content;
    Ok(())
}

fn has_text(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(values) => values.iter().any(has_text),
        Value::Object(fields) => fields.values().any(has_text),
        _ => false,
    }
}

/// Adds what the record of a transcript says about its message.
pub(crate) fn annotate(shape: Shape, record: &Map<String, Value>, message: &mut ParsedMessage) {
    message.time = message.time.or_else(|| time(record.get("timestamp")?));
    if let Some(transcript) = shape.format().transcript {
        (transcript.annotate)(record, message);
    }
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

/// The roles of messages in most formats.
pub(super) const ROLES: [(&str, Role); 4] = [
    ("system", Role::System),
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("tool", Role::Tool),
];

/// Returns a message with the role in the field `role`.
pub(super) fn message_with_role(
    fields: &Map<String, Value>,
    roles: &[(&str, Role)],
) -> Result<ParsedMessage, Fault> {
    let label = text(fields, "role", "")?;
    Ok(ParsedMessage::new(role_of(label, roles)?, label))
}

/// Returns the role that a table gives to the role as written.
pub(super) fn role_of(label: &str, roles: &[(&str, Role)]) -> Result<Role, Fault> {
    match roles.iter().find(|(name, _)| *name == label) {
        Some((_, role)) => Ok(*role),
        None => {
            let names: Vec<&str> = roles.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            fault(
                "role",
                format!("unknown role {label:?}; expected one of {names}"),
            )
        }
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
        found => type_fault(join(path, key), "a string", found),
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
        found => type_fault(join(path, key), "an array", found),
    }
}

pub(super) fn object<'a>(value: &'a Value, path: &str) -> Result<&'a Map<String, Value>, Fault> {
    match value {
        Value::Object(fields) => Ok(fields),
        other => type_fault(path, "an object", Some(other)),
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
