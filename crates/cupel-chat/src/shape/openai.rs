//! OpenAI Chat Completions.

use serde_json::{Map, Value};

use super::fields::{
    Fault, arguments, count_unknown, join, list, message_with_role, object, optional, text,
    type_fault,
};
use super::{Format, blocks};
use crate::layout::Layout;
use crate::message::{ContentPart, ParsedMessage, Role};

pub(super) const FORMAT: Format = Format {
    lists: &["messages", "conversations"],
    fields: &["role", "content", "tool_calls", "tool_call_id", "name"],
    content_fields: &[
        "content",
        "tool_calls",
        "function_call",
        "refusal",
        "audio",
        "reasoning",
        "reasoning_content",
    ],
    is_estimated: false,
    evidence,
    request_evidence,
    block_types: &["image_url", "input_audio", "file", "refusal"],
    ..Format::new("openai", "OpenAI Chat", read)
};

fn evidence(element: &Value) -> Option<String> {
    let role = element.get("role")?.as_str()?;
    if element.get("type").is_some_and(|kind| kind == "message") || element.get("lc").is_some() {
        return None;
    }
    if let "tool" | "function" = role {
        return Some(format!("the role `{role}`"));
    }
    let is_set = |key: &&str| element.get(*key).is_some_and(|value| !value.is_null());
    let key = ["tool_calls", "function_call", "tool_call_id"]
        .into_iter()
        .find(is_set)?;
    Some(format!("`{key}`"))
}

fn request_evidence(layout: &Layout) -> Option<String> {
    let tools = layout.field("tools").and_then(Value::as_array)?;
    let is_function = |tool: &Value| tool.get("function").is_some();
    tools
        .iter()
        .any(is_function)
        .then(|| "tools with `function`".to_owned())
}

/// The fields of a message that are read on their own.
const KNOWN: [&str; 12] = [
    "role",
    "content",
    "name",
    "refusal",
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "audio",
    "function_call",
    "tool_calls",
    "tool_call_id",
    "tool_call_ids",
];

/// The roles of messages.
const ROLES: [(&str, Role); 6] = [
    ("system", Role::System),
    ("developer", Role::System),
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("tool", Role::Tool),
    ("function", Role::Tool),
];

fn read(fields: &Map<String, Value>) -> Result<ParsedMessage, Fault> {
    let mut message = message_with_role(fields, &ROLES)?;
    blocks::content(&mut message, fields.get("content"), "content")?;
    // OpenRouter repeats the text of `reasoning` in its details.
    let reasoning = ["reasoning_content", "reasoning", "reasoning_details"];
    let is_set = |key: &&&str| fields.get(**key).is_some_and(|value| !value.is_null());
    for key in reasoning
        .iter()
        .find(is_set)
        .into_iter()
        .chain(&["refusal"])
    {
        match fields.get(*key) {
            None | Some(Value::Null) => {}
            Some(value @ (Value::String(_) | Value::Array(_))) => {
                blocks::push_value(&mut message, value);
            }
            found => return type_fault(*key, "a string", found),
        }
    }
    if fields.get("audio").is_some_and(Value::is_object) {
        message.parts.push(ContentPart::Audio);
    }
    let name = optional(fields, "name", "")?;
    match &*message.label {
        "tool" => results(&mut message, fields)?,
        "function" => message.results.extend(name.map(function_id)),
        "assistant" => calls(&mut message, fields, "")?,
        _ => {}
    }
    if let Some(name) = name {
        message.parts.push(ContentPart::Name(name.to_owned()));
    }
    count_unknown(&mut message, fields, "", &KNOWN)?;
    Ok(message)
}

/// Reads the ids of the calls that a tool message answers: one, or the list of SWE-agent.
fn results(message: &mut ParsedMessage, fields: &Map<String, Value>) -> Result<(), Fault> {
    let id = optional(fields, "tool_call_id", "")?;
    message.results.extend(id.map(str::to_owned));
    for (index, id) in list(fields, "tool_call_ids", "")?.iter().enumerate() {
        match id {
            Value::String(id) if !message.results.contains(id) => message.results.push(id.clone()),
            Value::String(_) => {}
            found => {
                return type_fault(format!("tool_call_ids[{index}]"), "a string", Some(found));
            }
        }
    }
    Ok(())
}

/// Reads the tool calls of a message: `tool_calls`, and the older `function_call`, which has no id.
pub(super) fn calls(
    message: &mut ParsedMessage,
    fields: &Map<String, Value>,
    path: &str,
) -> Result<(), Fault> {
    for (index, value) in list(fields, "tool_calls", path)?.iter().enumerate() {
        let path = join(path, &format!("tool_calls[{index}]"));
        let call = object(value, &path)?;
        let body = match call.get("function").or_else(|| call.get("custom")) {
            Some(body) => object(body, &join(&path, "function"))?,
            None => call,
        };
        let input = body.get("arguments").or_else(|| body.get("input"));
        let name = text(body, "name", &join(&path, "function"))?;
        message.push_call(text(call, "id", &path)?, name, arguments(input));
    }
    if let Some(call @ Value::Object(_)) = fields.get("function_call") {
        let path = join(path, "function_call");
        let call = object(call, &path)?;
        let name = text(call, "name", &path)?;
        message.push_call(&function_id(name), name, arguments(call.get("arguments")));
    }
    Ok(())
}

/// Returns the id of a function call, which has only a name.
pub(super) fn function_id(name: &str) -> String {
    format!("function {name}")
}
