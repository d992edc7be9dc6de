//! Amazon Bedrock: the `messages` of Converse.
//!
//! | what | rule of the API |
//! |---|---|
//! | start | a user message |
//! | order | user and assistant messages alternate |
//! | results | the next user message has one `toolResult` per `toolUse` |
//! | end | a user message, except for models that continue an assistant message |
//! | reasoning | `reasoningText` and its signature stay unchanged |
//! | content | blocks with one field that names their type |
//!
//! Sources: the API reference of Converse and the service model of botocore, and the messages of the API
//! for requests that it rejects.

use serde_json::{Map, Value};

use super::blocks::unknown;
use super::fields::{
    Fault, arguments, count_unknown, join, list, message_with_role, object, optional, text,
    type_fault,
};
use super::{Binding, Format, RequestField, Shape, Start, media};
use crate::cache::Breakpoints;
use crate::layout::Layout;
use crate::message::{ContentPart, ParsedMessage, Role};
use crate::tokens::image;

pub(super) const FORMAT: Format = Format {
    request_fields: &[
        RequestField::Prompt("system", system),
        RequestField::Json("toolConfig"),
        RequestField::Json("outputConfig"),
    ],
    start: Start::User,
    binding: Binding::Next,
    rejects_repeated_roles: true,
    content_fields: &["content"],
    evidence,
    request_evidence,
    // The field `system` is a string or blocks with `type` at Anthropic.
    refines: &[Shape::Anthropic],
    breakpoints: Some(Breakpoints::Block),
    image_tokens: image::anthropic_tokens,
    ..Format::new("bedrock", "Amazon Bedrock", read)
};

/// The types of content blocks.
const BLOCKS: [&str; 14] = [
    "text",
    "image",
    "document",
    "video",
    "audio",
    "toolUse",
    "toolResult",
    "guardContent",
    "cachePoint",
    "reasoningContent",
    "citationsContent",
    "searchResult",
    "toolAddition",
    "toolRemoval",
];

fn evidence(element: &Value) -> Option<String> {
    let blocks = element.get("content")?.as_array()?;
    element.get("role")?;
    let kind = blocks.iter().find_map(|block| kind(block.as_object()?))?;
    Some(format!("a content block `{kind}` without `type`"))
}

/// Returns the type of a block: its only field.
fn kind(fields: &Map<String, Value>) -> Option<&'static str> {
    let mut keys = fields.keys();
    let (Some(key), None) = (keys.next(), keys.next()) else {
        return None;
    };
    BLOCKS.into_iter().find(|kind| kind == key)
}

fn request_evidence(layout: &Layout) -> Option<String> {
    let keys = ["modelId", "toolConfig", "inferenceConfig"];
    let key = keys.into_iter().find(|key| layout.field(key).is_some())?;
    Some(format!("the field `{key}`"))
}

/// The roles of messages.
const ROLES: [(&str, Role); 3] = [
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("system", Role::System),
];

fn read(fields: &Map<String, Value>) -> Result<ParsedMessage, Fault> {
    let mut message = message_with_role(fields, &ROLES)?;
    let Some(content @ Value::Array(_)) = fields.get("content") else {
        return type_fault(
            "content",
            "an array of content blocks",
            fields.get("content"),
        );
    };
    blocks(&mut message, content, "content")?;
    count_unknown(&mut message, fields, "", FORMAT.fields)?;
    Ok(message)
}

fn blocks(message: &mut ParsedMessage, content: &Value, path: &str) -> Result<(), Fault> {
    for (index, value) in content.as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}[{index}]");
        block(message, object(value, &path)?, &path)?;
    }
    Ok(())
}

fn block(
    message: &mut ParsedMessage,
    fields: &Map<String, Value>,
    path: &str,
) -> Result<(), Fault> {
    let Some(kind) = kind(fields) else {
        let kind = fields.keys().next().map_or("", String::as_str);
        return unknown(message, kind, &Value::from(fields.clone()), path);
    };
    let value = &fields[kind];
    let path = &join(path, kind);
    if kind == "text" {
        let Value::String(text) = value else {
            return type_fault(path, "a string", Some(value));
        };
        message.push_slot(text, path);
        return Ok(());
    }
    let body = object(value, path)?;
    match kind {
        "toolUse" => {
            let name = text(body, "name", path)?;
            let id = text(body, "toolUseId", path)?;
            message.push_call(id, name, arguments(body.get("input")));
        }
        "toolResult" => {
            message.push_result(text(body, "toolUseId", path)?, |message| {
                for (index, value) in list(body, "content", path)?.iter().enumerate() {
                    let path = join(path, &format!("content[{index}]"));
                    let fields = object(value, &path)?;
                    match fields.get("json") {
                        Some(value) => message.push_json(value, &join(&path, "json")),
                        None => block(message, fields, &path)?,
                    }
                }
                Ok(())
            })?;
        }
        "cachePoint" => {}
        "reasoningContent" => match body.get("reasoningText") {
            Some(reasoning) => {
                let path = join(path, "reasoningText");
                message.push_text(text(object(reasoning, &path)?, "text", &path)?);
            }
            None => {
                let cipher = optional(body, "redactedContent", path)?.unwrap_or_default();
                message.push_part(ContentPart::Encrypted(cipher.len()));
            }
        },
        "image" | "audio" | "video" => {
            let bytes = body.get("source").and_then(|source| source.get("bytes"));
            message.push_part(media::part(kind, bytes.and_then(Value::as_str)));
        }
        "document" => document(message, body, path)?,
        // Texts with citations, which point into them, and texts for a guardrail.
        _ => {
            let mut texts = Vec::new();
            collect_texts(value, &mut texts);
            if texts.is_empty() {
                message.push_text(&value.to_string());
            }
            for text in texts {
                message.push_text(text);
            }
        }
    }
    Ok(())
}

fn document(
    message: &mut ParsedMessage,
    body: &Map<String, Value>,
    path: &str,
) -> Result<(), Fault> {
    for key in ["name", "context"] {
        if let Some(text) = optional(body, key, path)? {
            message.push_text(text);
        }
    }
    let mut texts = Vec::new();
    for key in ["text", "content"] {
        let source = body.get("source").and_then(|source| source.get(key));
        match source {
            Some(Value::String(text)) => texts.push(text.as_str()),
            source => source
                .into_iter()
                .for_each(|it| collect_texts(it, &mut texts)),
        }
    }
    if texts.is_empty() {
        message.push_part(ContentPart::File);
    }
    for text in texts {
        message.push_text(text);
    }
    Ok(())
}

/// Collects the strings with the keys `text`, `title` and `source`, at any depth.
fn collect_texts<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect_texts(value, texts)),
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if matches!(&**key, "text" | "title" | "source") => {
                        texts.push(text);
                    }
                    value => collect_texts(value, texts),
                }
            }
        }
        _ => {}
    }
}

/// Reads the system prompt.
fn system(value: &Value) -> Result<ParsedMessage, Fault> {
    let mut message = ParsedMessage::new(Role::System, "system");
    blocks(&mut message, value, "")?;
    Ok(message)
}
