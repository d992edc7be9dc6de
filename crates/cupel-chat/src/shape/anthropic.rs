//! Anthropic Messages.

use serde_json::{Map, Value};

use super::fields::{Fault, fault, text};
use super::{Format, Start, blocks};
use crate::layout::Layout;
use crate::message::{ParsedMessage, Role};
use crate::tokens::image;

pub(super) const FORMAT: Format = Format {
    start: Start::User,
    content_fields: &["content"],
    request_evidence,
    block_types: &[
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "server_tool_use",
        "document",
        "image",
    ],
    image_tokens: image::anthropic_tokens,
    ..Format::new("anthropic", "Anthropic", read)
};

fn request_evidence(layout: &Layout) -> Option<String> {
    let is_set = |key: &&str| layout.field(key).is_some();
    if let Some(key) = ["system", "anthropic_version"].into_iter().find(is_set) {
        return Some(format!("the field `{key}`"));
    }
    let tools = layout.field("tools").and_then(Value::as_array)?;
    let has_schema = |tool: &Value| tool.get("input_schema").is_some();
    tools
        .iter()
        .any(has_schema)
        .then(|| "tools with `input_schema`".to_owned())
}

fn read(fields: &Map<String, Value>) -> Result<ParsedMessage, Fault> {
    let label = text(fields, "role", "")?;
    let role = match label {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => {
            return fault(
                "role",
                "unknown role \"system\"; put the system prompt into the field `system` of the request",
            );
        }
        other => {
            return fault(
                "role",
                format!("unknown role {other:?}; expected user or assistant"),
            );
        }
    };
    let mut message = ParsedMessage::new(role, label);
    blocks::content(&mut message, fields.get("content"), "content")?;
    Ok(message)
}

/// Reads the system prompt: a string or an array of content blocks.
pub(super) fn system(value: &Value) -> Result<ParsedMessage, Fault> {
    let mut message = ParsedMessage::new(Role::System, "system");
    blocks::content(&mut message, Some(value), "")?;
    Ok(message)
}
