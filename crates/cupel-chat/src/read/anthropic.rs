//! Anthropic Messages.

use serde_json::{Map, Value};

use super::{Fault, blocks, fault, text};
use crate::turn::{Role, Turn};

pub(super) fn turn(fields: &Map<String, Value>) -> Result<Turn, Fault> {
    let label = text(fields, "role", "")?;
    let role = match label {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => {
            return fault(
                "role",
                "system is no role here; the system prompt stands beside the messages, as `system`",
            );
        }
        other => {
            return fault(
                "role",
                format!("{other:?} is no role; the roles are user and assistant"),
            );
        }
    };
    let mut turn = Turn::new(role, label);
    blocks::content(&mut turn, fields.get("content"), "content")?;
    Ok(turn)
}

/// The text of the system prompt: a text or a list of blocks.
pub(crate) fn system(value: &Value) -> Result<Turn, Fault> {
    let mut turn = Turn::new(Role::System, "system");
    blocks::content(&mut turn, Some(value), "")?;
    Ok(turn)
}
