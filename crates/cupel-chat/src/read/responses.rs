//! OpenAI Responses.

use serde_json::{Map, Value};

use super::{Fault, blocks, fault, join, optional, plain, text};
use crate::turn::{Piece, Role, Turn};

pub(super) fn turn(fields: &Map<String, Value>) -> Result<Turn, Fault> {
    match optional(fields, "type", "")? {
        None | Some("message") => message(fields),
        Some("reasoning") => reasoning(fields),
        Some("mcp_approval_request") => {
            let mut turn = Turn::new(Role::Assistant, "mcp_approval_request");
            let name = optional(fields, "name", "")?.unwrap_or_default();
            turn.call(
                text(fields, "id", "")?,
                name,
                plain(fields.get("arguments")),
            );
            Ok(turn)
        }
        Some("mcp_approval_response") => {
            let mut turn = Turn::new(Role::Tool, "mcp_approval_response");
            turn.results
                .push(text(fields, "approval_request_id", "")?.to_owned());
            Ok(turn)
        }
        Some(kind) if kind.ends_with("_output") => {
            let mut turn = Turn::new(Role::Tool, kind);
            turn.results.push(answered(kind, fields)?.to_owned());
            match fields.get("output") {
                Some(Value::Object(output)) => turn.say(&Value::from(output.clone()).to_string()),
                output => blocks::content(&mut turn, output, "output")?,
            }
            Ok(turn)
        }
        // A function or a tool of the caller's; its output comes as an item of its own.
        Some(kind) if kind.ends_with("_call") && fields.contains_key("call_id") => {
            let mut turn = Turn::new(Role::Assistant, kind);
            let name = optional(fields, "name", "")?.unwrap_or(kind);
            let arguments = ["arguments", "input", "action", "operation"];
            let arguments = arguments.iter().find_map(|key| fields.get(*key));
            turn.call(text(fields, "call_id", "")?, name, plain(arguments));
            if kind == "local_shell_call" {
                turn.item_id = optional(fields, "id", "")?.map(str::to_owned);
            }
            Ok(turn)
        }
        Some("function_call") => fault("call_id", "is missing; it must be a text"),
        // A tool of the provider's, with its output inside, or something new.
        Some(kind) => {
            let made = kind.ends_with("_call") || kind == "mcp_list_tools";
            let role = if made { Role::Assistant } else { Role::Other };
            let mut turn = Turn::new(role, kind);
            turn.say(&Value::from(fields.clone()).to_string());
            Ok(turn)
        }
    }
}

/// The call that an output answers. Outputs of the local shell have it in `id`.
fn answered<'f>(kind: &str, fields: &'f Map<String, Value>) -> Result<&'f str, Fault> {
    match optional(fields, "call_id", "")? {
        Some(id) => Ok(id),
        None if kind == "local_shell_call_output" => text(fields, "id", ""),
        None => text(fields, "call_id", ""),
    }
}

/// A text in place of the list is what the user says.
pub(crate) fn said(text: &str) -> Turn {
    let mut turn = Turn::new(Role::User, "user");
    turn.say(text);
    turn
}

fn message(fields: &Map<String, Value>) -> Result<Turn, Fault> {
    let label = text(fields, "role", "")?;
    let role = match label {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        other => {
            return fault(
                "role",
                format!("{other:?} is no role; the roles are system, developer, user, assistant"),
            );
        }
    };
    let mut turn = Turn::new(role, label);
    blocks::content(&mut turn, fields.get("content"), "content")?;
    Ok(turn)
}

fn reasoning(fields: &Map<String, Value>) -> Result<Turn, Fault> {
    let mut turn = Turn::new(Role::Assistant, "reasoning");
    turn.leads = true;
    for key in ["summary", "content"] {
        blocks::content(&mut turn, fields.get(key), &join("", key))?;
    }
    if let Some(cipher) = optional(fields, "encrypted_content", "")? {
        turn.pieces.push(Piece::Cipher(cipher.len()));
    }
    Ok(turn)
}
