//! OpenAI Chat Completions.

use serde_json::{Map, Value};

use super::{Fault, blocks, fault, join, list, object, optional, plain, text};
use crate::turn::{Piece, Role, Turn};

pub(super) fn turn(fields: &Map<String, Value>) -> Result<Turn, Fault> {
    let label = text(fields, "role", "")?;
    let role = match label {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        other => {
            return fault(
                "role",
                format!(
                    "{other:?} is no role; the roles are system, developer, user, assistant, tool, function"
                ),
            );
        }
    };
    let mut turn = Turn::new(role, label);
    blocks::content(&mut turn, fields.get("content"), "content")?;
    for key in ["refusal", "reasoning_content"] {
        if let Some(text) = optional(fields, key, "")? {
            turn.say(text);
        }
    }
    let name = optional(fields, "name", "")?;
    match label {
        "tool" => turn
            .results
            .extend(optional(fields, "tool_call_id", "")?.map(str::to_owned)),
        "function" => turn.results.extend(name.map(by_name)),
        "assistant" => calls(&mut turn, fields, "")?,
        _ => {}
    }
    if let Some(name) = name {
        turn.named = true;
        turn.pieces.push(Piece::Text(name.to_owned()));
    }
    Ok(turn)
}

/// The calls of a message: `tool_calls`, and `function_call` as it was before there were ids.
pub(super) fn calls(turn: &mut Turn, fields: &Map<String, Value>, path: &str) -> Result<(), Fault> {
    for (index, value) in list(fields, "tool_calls", path)?.iter().enumerate() {
        let path = join(path, &format!("tool_calls[{index}]"));
        let call = object(value, &path)?;
        let body = match call.get("function").or_else(|| call.get("custom")) {
            Some(body) => object(body, &join(&path, "function"))?,
            None => call,
        };
        let arguments = body.get("arguments").or_else(|| body.get("input"));
        let name = text(body, "name", &join(&path, "function"))?;
        turn.call(text(call, "id", &path)?, name, plain(arguments));
    }
    if let Some(call @ Value::Object(_)) = fields.get("function_call") {
        let path = join(path, "function_call");
        let call = object(call, &path)?;
        let name = text(call, "name", &path)?;
        turn.call(&by_name(name), name, plain(call.get("arguments")));
    }
    Ok(())
}

/// The id of a call that has only a name.
pub(super) fn by_name(name: &str) -> String {
    format!("function {name}")
}
