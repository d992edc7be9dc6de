//! Message content: a string or an array of content blocks. All formats share one table of block types.
//!
//! [`block`] turns a block type into a [`ContentPart`]; `tokens/cost.rs` has the tokens of each part.

use serde_json::{Map, Value};

use super::fields::{Fault, arguments, join, object, optional, text, type_fault};
use crate::message::{ContentPart, Image, ParsedMessage};
use crate::tokens::image;

/// Reads the content of a message: a string, an array of blocks, null or nothing.
pub(super) fn content(
    message: &mut ParsedMessage,
    value: Option<&Value>,
    path: &str,
) -> Result<(), Fault> {
    match value {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(text)) => {
            message.push_slot(text, path);
            Ok(())
        }
        Some(Value::Array(blocks)) => {
            for (index, value) in blocks.iter().enumerate() {
                block(message, value, &format!("{path}[{index}]"))?;
            }
            Ok(())
        }
        found => type_fault(path, "a string or an array of content blocks", found),
    }
}

fn block(message: &mut ParsedMessage, value: &Value, path: &str) -> Result<(), Fault> {
    if let Value::String(text) = value {
        message.push_slot(text, path);
        return Ok(());
    }
    let fields = object(value, path)?;
    match text(fields, "type", path)? {
        "text" | "input_text" | "output_text" if !is_annotated(fields) => {
            message.push_slot(text(fields, "text", path)?, &join(path, "text"));
        }
        "text" | "input_text" | "output_text" | "summary_text" | "reasoning_text" => {
            message.push_text(text(fields, "text", path)?);
        }
        "refusal" => message.push_text(text(fields, "refusal", path)?),
        "thinking" => message.push_text(text(fields, "thinking", path)?),
        "redacted_thinking" => {
            message.has_own_content = true;
            let cipher = text(fields, "data", path)?;
            message.parts.push(ContentPart::Encrypted(cipher.len()));
        }
        "image_url" | "input_image" | "image" => {
            message.has_own_content = true;
            message.parts.push(ContentPart::Image(image_of(fields)));
        }
        "input_audio" | "audio" => {
            message.has_own_content = true;
            message.parts.push(ContentPart::Audio);
        }
        "file" | "input_file" | "document" => document(message, fields, path)?,
        "tool_use" | "tool_call" => {
            let name = text(fields, "name", path)?;
            let input = fields.get("input").or_else(|| fields.get("args"));
            message.push_call(text(fields, "id", path)?, name, arguments(input));
        }
        "tool_result" => {
            message
                .results
                .push(text(fields, "tool_use_id", path)?.to_owned());
            let had_content = message.has_own_content;
            let slots = message.slots.len();
            content(message, fields.get("content"), &join(path, "content"))?;
            message.has_own_content = had_content;
            for slot in &mut message.slots[slots..] {
                slot.result = Some(message.results.len());
            }
        }
        // A block of an unknown type counts as its JSON.
        _ => message.push_text(&value.to_string()),
    }
    Ok(())
}

/// Returns whether a text block has annotations or citations, which point into its text.
fn is_annotated(fields: &Map<String, Value>) -> bool {
    let is_set = |key: &&str| match fields.get(*key) {
        None | Some(Value::Null) => false,
        Some(Value::Array(list)) => !list.is_empty(),
        Some(_) => true,
    };
    ["annotations", "citations", "logprobs"].iter().any(is_set)
}

fn document(
    message: &mut ParsedMessage,
    fields: &Map<String, Value>,
    path: &str,
) -> Result<(), Fault> {
    message.has_own_content = true;
    for key in ["title", "context", "filename"] {
        if let Some(text) = optional(fields, key, path)? {
            message.push_text(text);
        }
    }
    let source = fields.get("source").and_then(Value::as_object);
    match source
        .and_then(|source| source.get("type"))
        .and_then(Value::as_str)
    {
        Some("text") => message.push_text(&arguments(source.and_then(|source| source.get("data")))),
        Some("content") => {
            let inner = source.and_then(|source| source.get("content"));
            let slots = message.slots.len();
            content(message, inner, &join(path, "source.content"))?;
            // Citations point into the text of a document.
            message.slots.truncate(slots);
        }
        _ => message.parts.push(ContentPart::File),
    }
    Ok(())
}

/// Returns the requested detail of an image, and its size if the block contains the image.
fn image_of(fields: &Map<String, Value>) -> Image {
    let text = |value: Option<&'_ Value>| value.and_then(Value::as_str).map(str::to_owned);
    let nested = fields.get("image_url").and_then(Value::as_object);
    let source = fields.get("source").and_then(Value::as_object);
    let detail = text(fields.get("detail")).or_else(|| text(nested?.get("detail")));
    let url = text(fields.get("image_url"))
        .or_else(|| text(nested?.get("url")))
        .or_else(|| text(fields.get("url")));
    let data = text(source.and_then(|source| source.get("data")))
        .or_else(|| text(fields.get("data")))
        .or_else(|| text(fields.get("base64")))
        .or_else(|| {
            let url = url?;
            Some(
                url.strip_prefix("data:")?
                    .split_once(";base64,")?
                    .1
                    .to_owned(),
            )
        });
    Image {
        size: data.and_then(|data| image::size(&data)),
        low_detail: detail.as_deref() == Some("low"),
    }
}
