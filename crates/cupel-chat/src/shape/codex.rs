//! Codex rollouts: one record per line. Records of the type `response_item` hold an item of the
//! Responses API.
//!
//! | record | reading |
//! |---|---|
//! | `response_item` | its `payload` is an item of the chat, except a `ghost_snapshot`, which is not sent |
//! | `compacted` | a summary of everything before it: mandatory; the records before it are passed through |
//! | `session_meta`, `turn_context` | passed through; they state the instructions and the model |
//! | any other | passed through |

use serde_json::{Map, Value, json};

use super::fields::{Fault, optional};
use super::{Format, Record, Shape, Transcript, responses};
use crate::layout::RequestFields;
use crate::message::{ParsedMessage, Required, Role};

pub(super) const FORMAT: Format = Format {
    name: "codex",
    title: "Codex",
    lists: &[],
    read_string: None,
    fields: &["type", "payload", "timestamp"],
    read,
    evidence,
    request_evidence: |_| None,
    block_types: &[],
    refines: &[Shape::Responses],
    marker,
    transcript: Some(&Transcript {
        message: "payload",
        classify,
        annotate: |_, _| {},
        request_fields,
        parent: None,
        marker: marker_record,
    }),
    ..responses::FORMAT
};

/// Returns the type of a record and its payload.
fn payload(record: &Map<String, Value>) -> Option<(&str, &Map<String, Value>)> {
    Some((
        record.get("type")?.as_str()?,
        record.get("payload")?.as_object()?,
    ))
}

fn evidence(element: &Value) -> Option<String> {
    match payload(element.as_object()?)? {
        ("response_item", _) => Some("the record type `response_item`".to_owned()),
        _ => None,
    }
}

fn classify(record: &Map<String, Value>) -> Record {
    match payload(record) {
        Some(("compacted", _)) => Record::Summary,
        Some(("response_item", item)) => match item.get("type").and_then(Value::as_str) {
            Some("ghost_snapshot") => Record::Other,
            _ => Record::Message,
        },
        _ => Record::Other,
    }
}

fn read(fields: &Map<String, Value>) -> Result<ParsedMessage, Fault> {
    if fields.contains_key("type") || fields.contains_key("role") {
        return responses::read(fields);
    }
    // The payload of `compacted`: the items that replace those before, or only their summary.
    let mut message = ParsedMessage::new(Role::User, "compacted");
    message.required = Some(Required::Compaction);
    match fields.get("replacement_history") {
        Some(items @ Value::Array(_)) => message.push_text(&items.to_string()),
        _ => message.push_text(optional(fields, "message", "")?.unwrap_or_default()),
    }
    Ok(message)
}

/// Returns the model and the instructions that a record states.
fn request_fields(record: &Map<String, Value>) -> RequestFields {
    let Some((kind, payload)) = payload(record) else {
        return Vec::new();
    };
    let field = |key: &str| payload.get(key).filter(|value| !value.is_null()).cloned();
    match kind {
        "turn_context" => field("model").map(|model| ("model".to_owned(), model)),
        "session_meta" => field("instructions")
            .or_else(|| payload.get("base_instructions")?.get("text").cloned())
            .map(|text| ("instructions".to_owned(), text)),
        _ => None,
    }
    .into_iter()
    .collect()
}

fn marker(role: Role, text: &str, _: &Value) -> (&'static str, String) {
    let (label, block) = if role == Role::User {
        ("user", "input_text")
    } else {
        ("assistant", "output_text")
    };
    let content = format!(r#"[{{"type":"{block}","text":{text}}}]"#);
    let json = format!(r#"{{"type":"message","role":"{label}","content":{content}}}"#);
    (label, json)
}

fn marker_record(message: Value, next: &Map<String, Value>) -> Map<String, Value> {
    let mut record = Map::new();
    record.extend(
        next.get("timestamp")
            .map(|time| ("timestamp".to_owned(), time.clone())),
    );
    record.insert("type".to_owned(), json!("response_item"));
    record.insert("payload".to_owned(), message);
    record
}
