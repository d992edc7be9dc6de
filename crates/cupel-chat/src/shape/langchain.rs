//! LangChain messages: the output of `messages_to_dict`, the flat form, and serialized constructors.

use serde_json::{Map, Value};

use super::fields::{
    Fault, arguments, count_unknown, fault, join, list, object, optional, text, value_fault,
};
use super::openai::{self, function_id};
use super::{Format, ResultPlace, Start, blocks};
use crate::message::{ParsedMessage, Role};

pub(super) const FORMAT: Format = Format {
    fields: &["type", "content", "data", "kwargs"],
    start: Start::UserIfAny,
    result_place: ResultPlace::BeforeUserTurn,
    is_estimated: false,
    evidence,
    marker,
    ..Format::new("langchain", "LangChain", read)
};

fn evidence(element: &Value) -> Option<String> {
    let has = |key: &str| element.get(key).is_some();
    if has("lc") {
        return Some("`lc`".to_owned());
    }
    let kind = element.get("type")?.as_str()?;
    let is_message = message_type(kind).is_some() && (has("data") || has("content"));
    (is_message && !has("role") && !has("tokens")).then(|| format!("the type `{kind}`"))
}

/// The message types: name, class, role.
const TYPES: [(&str, &str, Role); 7] = [
    ("human", "HumanMessage", Role::User),
    ("ai", "AIMessage", Role::Assistant),
    ("system", "SystemMessage", Role::System),
    ("tool", "ToolMessage", Role::Tool),
    ("function", "FunctionMessage", Role::Tool),
    ("chat", "ChatMessage", Role::Other),
    ("remove", "RemoveMessage", Role::Other),
];

/// Returns the message type with the name, the class, or the chunk class `name`.
fn message_type(name: &str) -> Option<&'static (&'static str, &'static str, Role)> {
    let name = name.strip_suffix("Chunk").unwrap_or(name);
    TYPES
        .iter()
        .find(|(kind, class, _)| *kind == name || *class == name)
}

/// The fields of a message that are read on their own, and those that the model does not see.
const KNOWN: [&str; 15] = [
    "type",
    "role",
    "content",
    "name",
    "id",
    "example",
    "tool_calls",
    "invalid_tool_calls",
    "tool_call_chunks",
    "tool_call_id",
    "additional_kwargs",
    "response_metadata",
    "usage_metadata",
    "artifact",
    "chunk_position",
];

fn read(fields: &Map<String, Value>) -> Result<ParsedMessage, Fault> {
    let (name, path, fields) = if fields.contains_key("lc") {
        let class = list(fields, "id", "")?.last().and_then(Value::as_str);
        let Some(class) = class else {
            return value_fault(
                "id",
                "must be an array that ends with the name of a message class",
            );
        };
        let kwargs = fields.get("kwargs").unwrap_or(&Value::Null);
        (class, "kwargs", object(kwargs, "kwargs")?)
    } else {
        let name = text(fields, "type", "")?;
        match fields.get("data") {
            Some(data) => (name, "data", object(data, "data")?),
            None => (name, "", fields),
        }
    };
    let Some((label, _, role)) = message_type(name) else {
        let types = TYPES.map(|(name, ..)| name).join(", ");
        let field = if path == "kwargs" { "id" } else { "type" };
        return fault(
            field,
            format!("unknown message type {name:?}; expected one of {types}"),
        );
    };
    let mut message = ParsedMessage::new(*role, label);
    if *label == "chat" {
        text(fields, "role", path)?.clone_into(&mut message.label);
        message.role = Some(match message.label.as_str() {
            "system" | "developer" => Role::System,
            "user" | "human" => Role::User,
            "assistant" | "ai" => Role::Assistant,
            _ => Role::Other,
        });
    }
    blocks::content(&mut message, fields.get("content"), &join(path, "content"))?;
    match *label {
        "tool" => {
            let id = optional(fields, "tool_call_id", path)?;
            message.results.extend(id.map(str::to_owned));
        }
        "function" => message
            .results
            .extend(optional(fields, "name", path)?.map(function_id)),
        _ if message.is_from_model() => calls(&mut message, fields, path)?,
        _ => {}
    }
    count_unknown(&mut message, fields, path, &KNOWN)?;
    Ok(message)
}

/// Reads the tool calls of a message and its invalid tool calls: either may have a result.
fn calls(
    message: &mut ParsedMessage,
    fields: &Map<String, Value>,
    path: &str,
) -> Result<(), Fault> {
    for key in ["tool_calls", "invalid_tool_calls"] {
        for (index, value) in list(fields, key, path)?.iter().enumerate() {
            let path = join(path, &format!("{key}[{index}]"));
            let call = object(value, &path)?;
            let name = optional(call, "name", &path)?.unwrap_or_default();
            // A call without an id has no result.
            let id = optional(call, "id", &path)?.unwrap_or_default();
            message.push_call(id, name, arguments(call.get("args")));
        }
    }
    // The calls as the provider sent them, with the same ids.
    if let Some(Value::Object(more)) = fields.get("additional_kwargs") {
        openai::calls(message, more, &join(path, "additional_kwargs"))?;
    }
    Ok(())
}

/// Writes a marker in the notation of another message.
fn marker(role: Role, text: &str, like: &Value) -> (&'static str, String) {
    let (label, class) = if role == Role::User {
        ("human", "HumanMessage")
    } else {
        ("ai", "AIMessage")
    };
    let json = if like.get("lc").is_some() {
        format!(
            r#"{{"lc":1,"type":"constructor","id":["langchain","schema","messages","{class}"],"kwargs":{{"content":{text},"type":"{label}"}}}}"#
        )
    } else if like.get("data").is_some() {
        format!(r#"{{"type":"{label}","data":{{"content":{text},"type":"{label}"}}}}"#)
    } else {
        format!(r#"{{"type":"{label}","content":{text}}}"#)
    };
    (label, json)
}
