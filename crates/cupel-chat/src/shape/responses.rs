//! OpenAI Responses.

use serde_json::{Map, Value};

use super::fields::{Fault, arguments, fault, join, optional, text, type_fault};
use super::{Format, blocks};
use crate::message::{ContentPart, ParsedMessage, Role};

pub(super) const FORMAT: Format = Format {
    lists: &["input"],
    read_string: Some(user_message),
    fields: &["type", "call_id", "arguments", "output"],
    continued_by: &["previous_response_id", "conversation"],
    groups_model_items: true,
    evidence,
    block_types: &["input_text", "output_text", "input_image", "input_file"],
    ..Format::new("openai-responses", "OpenAI Responses", read)
};

fn evidence(element: &Value) -> Option<String> {
    let has = |key: &str| element.get(key).is_some();
    let kind = element.get("type")?.as_str()?;
    let is_item = if has("role") {
        kind == "message"
    } else {
        !has("tokens") && (kind.contains('_') || kind == "reasoning")
    };
    (is_item && !has("lc")).then(|| format!("the type `{kind}`"))
}

fn read(fields: &Map<String, Value>) -> Result<ParsedMessage, Fault> {
    match optional(fields, "type", "")? {
        None | Some("message") => read_message(fields),
        Some("reasoning") => read_reasoning(fields),
        Some("mcp_approval_request") => {
            let mut message = ParsedMessage::new(Role::Assistant, "mcp_approval_request");
            let name = optional(fields, "name", "")?.unwrap_or_default();
            message.push_call(
                text(fields, "id", "")?,
                name,
                arguments(fields.get("arguments")),
            );
            Ok(message)
        }
        Some("mcp_approval_response") => {
            let mut message = ParsedMessage::new(Role::Tool, "mcp_approval_response");
            message
                .results
                .push(text(fields, "approval_request_id", "")?.to_owned());
            Ok(message)
        }
        Some(kind) if kind.ends_with("_output") => {
            let mut message = ParsedMessage::new(Role::Tool, kind);
            message.results.push(call_id(kind, fields)?.to_owned());
            match fields.get("output") {
                Some(Value::Object(output)) => {
                    message.push_text(&Value::from(output.clone()).to_string());
                }
                output => blocks::content(&mut message, output, "output")?,
            }
            Ok(message)
        }
        // A function or a tool of the caller; its output is a separate item.
        Some(kind) if kind.ends_with("_call") && fields.contains_key("call_id") => {
            let mut message = ParsedMessage::new(Role::Assistant, kind);
            let name = optional(fields, "name", "")?.unwrap_or(kind);
            let keys = ["arguments", "input", "action", "operation"];
            let input = keys.iter().find_map(|key| fields.get(*key));
            message.push_call(text(fields, "call_id", "")?, name, arguments(input));
            if kind == "local_shell_call" {
                message.item_id = optional(fields, "id", "")?.map(str::to_owned);
            }
            Ok(message)
        }
        Some("function_call") => type_fault("call_id", "a string", None),
        // A tool of the provider, which includes its output, or an unknown type.
        Some(kind) => {
            let made = kind.ends_with("_call") || kind == "mcp_list_tools";
            let role = if made { Role::Assistant } else { Role::Other };
            let mut message = ParsedMessage::new(role, kind);
            message.push_text(&Value::from(fields.clone()).to_string());
            Ok(message)
        }
    }
}

/// Returns the id of the call that an output belongs to. Outputs of the local shell have it in `id`.
fn call_id<'f>(kind: &str, fields: &'f Map<String, Value>) -> Result<&'f str, Fault> {
    match optional(fields, "call_id", "")? {
        Some(id) => Ok(id),
        None if kind == "local_shell_call_output" => text(fields, "id", ""),
        None => text(fields, "call_id", ""),
    }
}

/// Returns the user message of a request whose `input` is a string.
fn user_message(text: &str) -> ParsedMessage {
    let mut message = ParsedMessage::new(Role::User, "user");
    message.push_slot(text, "");
    message
}

fn read_message(fields: &Map<String, Value>) -> Result<ParsedMessage, Fault> {
    let label = text(fields, "role", "")?;
    let role = match label {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        other => {
            return fault(
                "role",
                format!(
                    "unknown role {other:?}; expected one of system, developer, user, assistant"
                ),
            );
        }
    };
    let mut message = ParsedMessage::new(role, label);
    blocks::content(&mut message, fields.get("content"), "content")?;
    Ok(message)
}

fn read_reasoning(fields: &Map<String, Value>) -> Result<ParsedMessage, Fault> {
    let mut message = ParsedMessage::new(Role::Assistant, "reasoning");
    message.precedes_next = true;
    for key in ["summary", "content"] {
        blocks::content(&mut message, fields.get(key), &join("", key))?;
    }
    if let Some(cipher) = optional(fields, "encrypted_content", "")? {
        message.parts.push(ContentPart::Encrypted(cipher.len()));
    }
    Ok(message)
}
