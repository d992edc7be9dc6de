//! Vercel AI SDK: model messages of `generateText`, and the UI messages of `useChat`.
//!
//! | what | model messages | UI messages |
//! |---|---|---|
//! | content | `content`: a string or parts | `parts`; `id` is required |
//! | start, order, end | any; the provider behind the SDK has its own rules | any |
//! | calls | parts `tool-call` of an assistant message | parts `tool-NAME` and `dynamic-tool` |
//! | results | parts `tool-result` of a tool message, before the next user or system message | in the part of the call |
//! | approvals | `tool-approval-request` with its `tool-approval-response` | in the part of the call |
//!
//! Sources: the schemas `modelMessageSchema` and `uiMessagesSchema` of the package `ai`, and
//! `convertToModelMessages`. Versions 4 to 6 are read.

use serde_json::{Map, Value};

use super::fields::{
    Fault, ROLES, arguments, count_unknown, join, list, message_with_role, object, optional, text,
    type_fault,
};
use super::{Format, ResultPlace, Shape, blocks, media};
use crate::message::{ContentPart, ParsedMessage, Role};

pub(super) const FORMAT: Format = Format {
    fields: KNOWN,
    content_fields: &["content", "parts"],
    own_fields: &["parts", "toolInvocations", "experimental_attachments"],
    result_place: ResultPlace::BeforeUserTurn,
    evidence,
    // Tool messages have the same role there.
    refines: &[Shape::OpenAi],
    marker,
    ..Format::new("vercel", "Vercel AI SDK", read)
};

/// The fields of a message. Version 4 repeats the texts and the calls of `parts` in `content` and
/// `toolInvocations`.
const KNOWN: &[&str] = &[
    "id",
    "role",
    "content",
    "parts",
    "toolInvocations",
    "providerOptions",
    "providerMetadata",
    "experimental_providerMetadata",
];

/// The types of the parts of model messages that occur in this format only.
const PARTS: [&str; 4] = [
    "tool-call",
    "tool-result",
    "tool-approval-request",
    "tool-approval-response",
];

fn evidence(element: &Value) -> Option<String> {
    element.get("role")?;
    let kind = |part: &Value| PARTS.into_iter().find(|kind| part["type"] == *kind);
    if let Some(Value::Array(parts)) = element.get("parts") {
        let is_typed = |part: &Value| part["type"].is_string();
        let is_ui = !parts.is_empty() && parts.iter().all(is_typed);
        return is_ui.then(|| "`parts` with `type`".to_owned());
    }
    let kind = element.get("content")?.as_array()?.iter().find_map(kind)?;
    Some(format!("a content part of type `{kind}`"))
}

fn read(fields: &Map<String, Value>) -> Result<ParsedMessage, Fault> {
    let mut message = message_with_role(fields, &ROLES)?;
    let key = if fields.contains_key("parts") {
        "parts"
    } else {
        "content"
    };
    match fields.get(key) {
        Some(Value::String(text)) => message.push_slot(text, key),
        Some(Value::Array(parts)) => {
            for (index, value) in parts.iter().enumerate() {
                let path = format!("{key}[{index}]");
                part(&mut message, object(value, &path)?, &path)?;
            }
        }
        found => return type_fault(key, "a string or an array of parts", found),
    }
    count_unknown(&mut message, fields, "", KNOWN)?;
    Ok(message)
}

fn part(message: &mut ParsedMessage, fields: &Map<String, Value>, path: &str) -> Result<(), Fault> {
    match text(fields, "type", path)? {
        "text" => message.push_slot(text(fields, "text", path)?, &join(path, "text")),
        "reasoning" => {
            let key = if fields.contains_key("text") {
                "text"
            } else {
                "reasoning"
            };
            message.push_text(text(fields, key, path)?);
        }
        "redacted-reasoning" => {
            let cipher = text(fields, "data", path)?;
            message.push_part(ContentPart::Encrypted(cipher.len()));
        }
        kind @ ("image" | "file") => {
            let mime_type = ["mediaType", "mimeType"]
                .iter()
                .find_map(|key| fields.get(*key));
            let mime_type = mime_type.and_then(Value::as_str).unwrap_or(kind);
            let data = ["image", "data", "url"]
                .iter()
                .find_map(|key| fields.get(*key));
            message.push_part(media::part(mime_type, data.and_then(Value::as_str)));
        }
        // They are not sent to the model.
        "step-start" | "source" | "source-url" | "source-document" => {}
        // A tool of the provider; its result is in the same message or a later one of the assistant.
        kind @ ("tool-call" | "tool-result") if is_from_provider(message, fields) => {
            message.push_link(text(fields, "toolCallId", path)?, kind == "tool-result");
            message.push_text(&Value::from(fields.clone()).to_string());
        }
        "tool-call" => {
            let name = text(fields, "toolName", path)?;
            let id = text(fields, "toolCallId", path)?;
            message.push_call(id, name, input(fields));
        }
        "tool-result" => {
            message.push_result(text(fields, "toolCallId", path)?, |message| {
                match fields.get("output") {
                    Some(value) => output(message, object(value, path)?, &join(path, "output")),
                    None => {
                        let value = fields.get("result").unwrap_or(&Value::Null);
                        message.push_json(value, &join(path, "result"));
                        Ok(())
                    }
                }
            })?;
        }
        "tool-approval-request" => message.push_link(text(fields, "approvalId", path)?, false),
        "tool-approval-response" => {
            message.push_link(text(fields, "approvalId", path)?, true);
            if let Some(reason) = optional(fields, "reason", path)? {
                message.push_text(reason);
            }
        }
        "tool-invocation" => {
            let path = &join(path, "toolInvocation");
            let fields = object(fields.get("toolInvocation").unwrap_or(&Value::Null), path)?;
            ui_call(message, fields, text(fields, "toolName", path)?, path)?;
        }
        "dynamic-tool" => ui_call(message, fields, text(fields, "toolName", path)?, path)?,
        kind if kind.starts_with("tool-") => {
            ui_call(message, fields, &kind["tool-".len()..], path)?;
        }
        // A part of the application, which it may convert to text.
        kind if kind.starts_with("data-") => {
            message.push_text(&arguments(fields.get("data")));
        }
        kind => {
            let value = Value::from(fields.clone());
            blocks::unknown(message, kind, &value, &join(path, "type"))?;
        }
    }
    Ok(())
}

/// Returns whether the provider executes a tool. Results of other tools are in tool messages.
fn is_from_provider(message: &ParsedMessage, fields: &Map<String, Value>) -> bool {
    let is_executed = fields.get("providerExecuted") == Some(&Value::Bool(true));
    is_executed || (fields.contains_key("output") && message.is_from_model())
}

fn input(fields: &Map<String, Value>) -> String {
    let keys = ["input", "rawInput", "args"];
    arguments(keys.iter().find_map(|key| fields.get(*key)))
}

/// Reads a tool call of a UI message, which contains its result.
fn ui_call(
    message: &mut ParsedMessage,
    fields: &Map<String, Value>,
    name: &str,
    path: &str,
) -> Result<(), Fault> {
    let id = text(fields, "toolCallId", path)?;
    message.push_call(id, name, input(fields));
    message.push_result(id, |message| {
        for key in ["output", "result", "errorText"] {
            if let Some(value) = fields.get(key) {
                message.push_json(value, &join(path, key));
            }
        }
        Ok(())
    })
}

/// Reads the output of a result.
fn output(
    message: &mut ParsedMessage,
    fields: &Map<String, Value>,
    path: &str,
) -> Result<(), Fault> {
    match text(fields, "type", path)? {
        "execution-denied" => {
            let reason = optional(fields, "reason", path)?.unwrap_or_default();
            message.push_text(reason);
        }
        "content" => {
            for (index, value) in list(fields, "value", path)?.iter().enumerate() {
                let path = join(path, &format!("value[{index}]"));
                let fields = object(value, &path)?;
                match text(fields, "type", &path)? {
                    "text" => message.push_slot(text(fields, "text", &path)?, &join(&path, "text")),
                    kind => {
                        let mime_type = optional(fields, "mediaType", &path)?;
                        let mime_type = mime_type.unwrap_or(kind).replace("image-", "image/");
                        let data = optional(fields, "data", &path)?;
                        message.push_part(media::part(&mime_type, data));
                    }
                }
            }
        }
        _ => {
            let value = fields.get("value").unwrap_or(&Value::Null);
            message.push_json(value, &join(path, "value"));
        }
    }
    Ok(())
}

/// Writes a marker as a UI message or as a model message.
fn marker(role: Role, text: &str, like: &Value) -> (&'static str, String) {
    let (label, json) = super::text_marker(role, text, like);
    let Some(id) = like.get("id").filter(|_| like.get("parts").is_some()) else {
        return (label, json);
    };
    let id = Value::from(format!("before-{}", id.as_str().unwrap_or_default()));
    let part = format!(r#"{{"type":"text","text":{text}}}"#);
    (
        label,
        format!(r#"{{"id":{id},"role":"{label}","parts":[{part}]}}"#),
    )
}
