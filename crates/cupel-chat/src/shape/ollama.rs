//! Ollama: the `messages` of `/api/chat`.
//!
//! | what | rule of the API |
//! |---|---|
//! | start, order, end | any; the template of the model decides |
//! | calls | `tool_calls` with `arguments` as an object, usually without ids |
//! | results | tool messages after the calls, matched by `tool_call_id`, or by `tool_name` and order |
//! | images | base64 strings in `images` |
//!
//! Sources: "Tool calling" in the documentation of Ollama, and the types of its Python client.

use serde_json::{Map, Value};

use super::fields::{
    Fault, ROLES, arguments, count_unknown, join, list, message_with_role, object, optional, text,
    type_fault,
};
use super::{Format, RequestField, Shape, media, order};
use crate::layout::Layout;
use crate::message::{ParsedMessage, Role};

pub(super) const FORMAT: Format = Format {
    request_fields: &[RequestField::Json("tools")],
    link: Some(order::link),
    fields: &[
        "role",
        "content",
        "images",
        "thinking",
        "tool_calls",
        "tool_call_id",
        "tool_name",
        "name",
    ],
    content_fields: &["content", "tool_calls", "images", "thinking"],
    own_fields: &["images"],
    evidence,
    request_evidence,
    // Tool messages, `tool_calls` and tools have the same names there.
    refines: &[Shape::OpenAi],
    ..Format::new("ollama", "Ollama", read)
};

fn evidence(element: &Value) -> Option<String> {
    element.get("role")?;
    let is_set = |key: &&str| element.get(*key).is_some_and(|value| !value.is_null());
    if let Some(key) = ["images", "tool_name"].into_iter().find(is_set) {
        return Some(format!("`{key}`"));
    }
    let calls = element.get("tool_calls")?.as_array()?;
    let is_object = |call: &Value| {
        let arguments = call.get("function").and_then(|body| body.get("arguments"));
        arguments.is_some_and(Value::is_object)
    };
    calls
        .iter()
        .any(is_object)
        .then(|| "`tool_calls` with `arguments` as an object".to_owned())
}

fn request_evidence(layout: &Layout) -> Option<String> {
    let keys = ["keep_alive", "options"];
    let key = keys.into_iter().find(|key| layout.field(key).is_some())?;
    Some(format!("the field `{key}`"))
}

fn read(fields: &Map<String, Value>) -> Result<ParsedMessage, Fault> {
    let mut message = message_with_role(fields, &ROLES)?;
    if let Some(text) = optional(fields, "thinking", "")? {
        message.push_text(text);
    }
    if let Some(text) = optional(fields, "content", "")? {
        message.push_slot(text, "content");
    }
    for (index, value) in list(fields, "images", "")?.iter().enumerate() {
        let Value::String(data) = value else {
            return type_fault(format!("images[{index}]"), "a base64 string", Some(value));
        };
        message.push_part(media::part("image", Some(data)));
    }
    for (index, value) in list(fields, "tool_calls", "")?.iter().enumerate() {
        let path = format!("tool_calls[{index}]");
        let call = object(value, &path)?;
        let path = join(&path, "function");
        let body = object(call.get("function").unwrap_or(&Value::Null), &path)?;
        let id = optional(call, "id", "")?.filter(|id| !id.is_empty());
        let name = text(body, "name", &path)?;
        message.push_call_in_order(id, name, arguments(body.get("arguments")));
    }
    if message.role() == Role::Tool {
        let id = optional(fields, "tool_call_id", "")?.filter(|id| !id.is_empty());
        let name = optional(fields, "tool_name", "")?;
        let name = name.or(optional(fields, "name", "")?).unwrap_or_default();
        message.push_text(name);
        message.results.push(order::result_id(id, name));
    }
    count_unknown(&mut message, fields, "", FORMAT.fields)?;
    Ok(message)
}
