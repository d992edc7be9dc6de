//! Cohere: the `messages` of the chat API, version 2.
//!
//! | what | rule of the API |
//! |---|---|
//! | start, order, end | any |
//! | calls | `tool_calls` of an assistant message, with `tool_plan` |
//! | results | tool messages that answer each `tool_call_id` follow the assistant message |
//! | documents | in the content of tool messages, and in the field `documents` of the request |
//!
//! Sources: the API reference and "Tool use" on docs.cohere.com, and the types of the Python client.

use serde_json::{Map, Value};

use super::fields::{
    Fault, ROLES, count_unknown, join, list, message_with_role, object, optional, text,
};
use super::{Format, RequestField, Shape, blocks, openai};
use crate::layout::Layout;
use crate::message::{ParsedMessage, Role};

pub(super) const FORMAT: Format = Format {
    request_fields: &[RequestField::Json("tools"), RequestField::Json("documents")],
    fields: &[
        "role",
        "content",
        "tool_calls",
        "tool_plan",
        "tool_call_id",
        "citations",
    ],
    content_fields: &["content", "tool_calls", "tool_plan"],
    own_fields: &["tool_plan"],
    evidence,
    request_evidence,
    // Tool messages, `tool_calls` and tools have the same names there.
    refines: &[Shape::OpenAi],
    ..Format::new("cohere", "Cohere", read)
};

fn evidence(element: &Value) -> Option<String> {
    element.get("role")?;
    if element.get("tool_plan").is_some() {
        return Some("`tool_plan`".to_owned());
    }
    let blocks = element.get("content")?.as_array()?;
    let is_document = |block: &Value| document(block).is_some();
    blocks
        .iter()
        .any(is_document)
        .then(|| "a content block with `document`".to_owned())
}

fn request_evidence(layout: &Layout) -> Option<String> {
    let keys = [
        "documents",
        "citation_options",
        "safety_mode",
        "strict_tools",
    ];
    if let Some(key) = keys.into_iter().find(|key| layout.field(key).is_some()) {
        return Some(format!("the field `{key}`"));
    }
    let model = layout.field("model").and_then(Value::as_str)?;
    (model.starts_with("command-") || model.starts_with("c4ai-"))
        .then(|| format!("the model `{model}`"))
}

/// Returns the data of a document in the content of a tool message.
fn document(block: &Value) -> Option<&Value> {
    block.get("document")?.get("data")
}

fn read(fields: &Map<String, Value>) -> Result<ParsedMessage, Fault> {
    let mut message = message_with_role(fields, &ROLES)?;
    let content = fields.get("content");
    match content.and_then(Value::as_array) {
        Some(values) if values.iter().any(|block| document(block).is_some()) => {
            for (index, block) in values.iter().enumerate() {
                let path = format!("content[{index}]");
                match document(block) {
                    Some(data) => message.push_json(data, &join(&path, "document.data")),
                    None => {
                        let fields = object(block, &path)?;
                        message.push_slot(text(fields, "text", &path)?, &join(&path, "text"));
                    }
                }
            }
        }
        _ => blocks::content(&mut message, content, "content")?,
    }
    if let Some(plan) = optional(fields, "tool_plan", "")? {
        message.push_text(plan);
    }
    let citations = list(fields, "citations", "")?;
    if !citations.is_empty() {
        // Citations point into the text.
        message.slots.clear();
    }
    match message.role() {
        Role::Tool => message
            .results
            .push(text(fields, "tool_call_id", "")?.to_owned()),
        Role::Assistant => openai::calls(&mut message, fields, "")?,
        _ => {}
    }
    count_unknown(&mut message, fields, "", FORMAT.fields)?;
    Ok(message)
}
