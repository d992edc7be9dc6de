//! Anthropic Messages: <https://platform.claude.com/docs/en/api/messages>.

use serde_json::{Map, Value};

use super::fields::{Fault, count_unknown, fault, text};
use super::{Binding, Format, ResultPlace, Start, blocks};
use crate::cache::Breakpoints;
use crate::layout::Layout;
use crate::message::{ParsedMessage, Role};
use crate::tokens::image;

pub(super) const FORMAT: Format = Format {
    start: Start::User,
    content_fields: &["content"],
    // The API joins consecutive messages of the model into one turn.
    binding: Binding::UntilUserTurn,
    result_place: ResultPlace::BeforeUserTurn,
    binds_system: true,
    is_thinking,
    check_order,
    evidence,
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
    breakpoints: Some(Breakpoints::Field),
    image_tokens: image::anthropic_tokens,
    ..Format::new("anthropic", "Anthropic", read)
};

fn evidence(element: &Value) -> Option<String> {
    let is_answer = element.get("type")? == "message" && element.get("stop_reason").is_some();
    is_answer.then(|| "`stop_reason`".to_owned())
}

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

/// Returns whether the request asks for thinking:
/// <https://platform.claude.com/docs/en/build-with-claude/extended-thinking>.
fn is_thinking(request: &Layout, _: &[ParsedMessage]) -> bool {
    let thinking = request.field("thinking").and_then(|it| it.get("type"));
    let thinking = thinking.and_then(Value::as_str);
    thinking.is_some_and(|kind| kind != "disabled")
}

fn read(fields: &Map<String, Value>) -> Result<ParsedMessage, Fault> {
    let label = text(fields, "role", "")?;
    let role = match label {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        other => {
            return fault(
                "role",
                format!("unknown role {other:?}; expected user, assistant or system"),
            );
        }
    };
    let mut message = ParsedMessage::new(role, label);
    blocks::content(&mut message, fields.get("content"), "content")?;
    count_unknown(&mut message, fields, "", &["role", "content"])?;
    // An answer that was stored in parts has the same id in each.
    if let (Role::Assistant, Some(Value::String(id))) = (role, fields.get("id")) {
        message.push_link(&format!("message {id}"), false);
    }
    Ok(message)
}

/// Checks that system messages stand where the API accepts them: after a user turn, or after a turn of the
/// model that ends in a tool of the provider; and last or before a turn of the model.
fn check_order(messages: &[ParsedMessage]) -> Result<(), (usize, Fault)> {
    let is_system = |index: &usize| messages[*index].role() == Role::System;
    for index in (0..messages.len()).filter(is_system) {
        let before = index.checked_sub(1).map(|before| &messages[before]);
        let follows = before.is_some_and(|before| {
            before.role() == Role::User || (before.is_from_model() && before.ends_in_server_tool())
        });
        let is_followed = messages
            .get(index + 1)
            .is_none_or(ParsedMessage::is_from_model);
        if !follows || !is_followed {
            let message = "a system message must follow a user message and be the last or precede an assistant message; put a system prompt into the field `system` of the request";
            return fault("role", message).map_err(|fault| (index, fault));
        }
    }
    Ok(())
}

/// Reads the system prompt: a string or an array of content blocks.
pub(super) fn system(value: &Value) -> Result<ParsedMessage, Fault> {
    let mut message = ParsedMessage::new(Role::System, "system");
    blocks::content(&mut message, Some(value), "")?;
    Ok(message)
}
