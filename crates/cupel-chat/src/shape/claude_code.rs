//! Claude Code transcripts: one record per line. Records of the types `user` and `assistant` hold
//! an Anthropic message.
//!
//! | record | reading |
//! |---|---|
//! | `user`, `assistant` | its `message` is one of the chat; lines with the same message id are one group |
//! | the same with `isSidechain` | passed through, unless all messages are of side chains |
//! | `system` with the subtype `compact_boundary` | the messages before it are no longer sent; their records are passed through |
//! | any other | passed through |
//!
//! A record names the one before it in `parentUuid`. A session is resumed along these links, from the last
//! record to the first. So a record whose parent is dropped gets the nearest kept ancestor.

use serde_json::{Map, Value};

use super::{Format, Record, ResultPlace, Transcript, anthropic};
use crate::layout::RequestFields;
use crate::message::{ParsedMessage, Required};

pub(super) const FORMAT: Format = Format {
    name: "claude-code",
    title: "Claude Code",
    lists: &[],
    fields: &["type", "message", "uuid", "parentUuid", "sessionId"],
    // The program reorders the records of a request.
    result_place: ResultPlace::Anywhere,
    is_thinking: |_, turn| turn.iter().any(|message| message.has_thinking),
    evidence,
    request_evidence: |_| None,
    block_types: &[],
    transcript: Some(&Transcript {
        message: "message",
        classify,
        annotate,
        request_fields,
        parent: Some(("uuid", "parentUuid")),
        marker,
    }),
    // A transcript is no request.
    breakpoints: None,
    ..anthropic::FORMAT
};

/// Fields, at least one of which a record has. Other programs write `type` and `message`, too.
const SESSION: [&str; 4] = ["sessionId", "parentUuid", "isSidechain", "uuid"];

fn evidence(element: &Value) -> Option<String> {
    let record = element.as_object().filter(|record| is_message(record))?;
    let key = SESSION.iter().find(|key| record.contains_key(**key))?;
    Some(format!("a record with `message` and `{key}`"))
}

fn is_message(record: &Map<String, Value>) -> bool {
    let kind = record.get("type").and_then(Value::as_str);
    let is_object = record.get("message").is_some_and(Value::is_object);
    is_object && matches!(kind, Some("user" | "assistant"))
}

fn is_true(record: &Map<String, Value>, key: &str) -> bool {
    record.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn classify(record: &Map<String, Value>) -> Record {
    let subtype = record.get("subtype").and_then(Value::as_str);
    if subtype == Some("compact_boundary") {
        Record::Boundary
    } else if !is_message(record) {
        Record::Other
    } else if is_true(record, "isSidechain") {
        Record::Side
    } else {
        Record::Message
    }
}

fn annotate(record: &Map<String, Value>, message: &mut ParsedMessage) {
    if is_true(record, "isCompactSummary") {
        message.required = Some(Required::Compaction);
    }
}

/// Returns the model of an answer.
fn request_fields(record: &Map<String, Value>) -> RequestFields {
    let message = record.get("message");
    let model = message.and_then(|message| message.get("model"));
    // Answers of the program itself have the model `<synthetic>`.
    let is_model = |model: &&Value| model.as_str().is_some_and(|it| !it.starts_with('<'));
    let model = model
        .filter(is_model)
        .map(|model| ("model".to_owned(), model.clone()));
    model.into_iter().collect()
}

/// Returns the record of a marker before another one: of the same session, with an id of its own and the
/// same parent.
fn marker(message: Value, next: &Map<String, Value>) -> Map<String, Value> {
    let mut record = next.clone();
    record.retain(|key, _| {
        let fields = ["cwd", "gitBranch", "timestamp", "userType", "version"];
        SESSION.contains(&&**key) || fields.contains(&&**key)
    });
    if let Some(Value::String(id)) = record.get_mut("uuid") {
        *id = derived_id(id);
    }
    record.insert("type".to_owned(), message["role"].clone());
    record.insert("message".to_owned(), message);
    record
}

/// Returns an id that another one determines: a UUID of version 8 (RFC 9562) from its FNV-1a hash.
fn derived_id(id: &str) -> String {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    const VERSION: u128 = 0xf << 76;
    const VARIANT: u128 = 0x3 << 62;
    let step = |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(PRIME);
    let hash = id.bytes().fold(BASIS, step) & !VERSION & !VARIANT | 0x8 << 76 | 0x2 << 62;
    let hex = format!("{hash:032x}");
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}
