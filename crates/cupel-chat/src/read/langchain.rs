//! LangChain messages: as `messages_to_dict` writes them, flat, and as serialised constructors.

use serde_json::{Map, Value};

use super::openai::{self, by_name};
use super::{Fault, blocks, fault, join, list, object, optional, plain, text};
use crate::turn::{Role, Turn};

/// The types of messages, with the classes they are made by.
const TYPES: [(&str, &str, Role); 7] = [
    ("human", "HumanMessage", Role::User),
    ("ai", "AIMessage", Role::Assistant),
    ("system", "SystemMessage", Role::System),
    ("tool", "ToolMessage", Role::Tool),
    ("function", "FunctionMessage", Role::Tool),
    ("chat", "ChatMessage", Role::Other),
    ("remove", "RemoveMessage", Role::Other),
];

/// The type a name stands for: its own, its class or its class in pieces.
fn named(name: &str) -> Option<&'static (&'static str, &'static str, Role)> {
    let name = name.strip_suffix("Chunk").unwrap_or(name);
    TYPES
        .iter()
        .find(|(kind, class, _)| *kind == name || *class == name)
}

/// Whether a message may have this type.
pub(crate) fn is_type(name: &str) -> bool {
    named(name).is_some()
}

pub(super) fn turn(fields: &Map<String, Value>) -> Result<Turn, Fault> {
    let (name, path, fields) = if fields.contains_key("lc") {
        let class = list(fields, "id", "")?.last().and_then(Value::as_str);
        let Some(class) = class else {
            return fault(
                "id",
                "must be a list that ends with the name of a message class",
            );
        };
        let kwargs = fields.get("kwargs").unwrap_or(&Value::Null);
        (class, "kwargs", object(kwargs, "kwargs")?)
    } else {
        let name = text(fields, "type", "")?;
        match fields.get("data") {
            Some(data) => (name, "data", object(data, "data")?),
            None => (name, "", fields),
        }
    };
    let Some((label, _, role)) = named(name) else {
        let types = TYPES.map(|(name, ..)| name).join(", ");
        let field = if path == "kwargs" { "id" } else { "type" };
        return fault(
            field,
            format!("{name:?} is no message type; the types are {types}"),
        );
    };
    let mut turn = Turn::new(*role, label);
    if *label == "chat" {
        text(fields, "role", path)?.clone_into(&mut turn.label);
        turn.role = Some(match turn.label.as_str() {
            "system" | "developer" => Role::System,
            "user" | "human" => Role::User,
            "assistant" | "ai" => Role::Assistant,
            _ => Role::Other,
        });
    }
    blocks::content(&mut turn, fields.get("content"), &join(path, "content"))?;
    match *label {
        "tool" => {
            let id = optional(fields, "tool_call_id", path)?;
            turn.results.extend(id.map(str::to_owned));
        }
        "function" => turn
            .results
            .extend(optional(fields, "name", path)?.map(by_name)),
        _ if turn.is_made_by_model() => calls(&mut turn, fields, path)?,
        _ => {}
    }
    Ok(turn)
}

/// The calls of a message, and those it failed to make: tools may answer either.
fn calls(turn: &mut Turn, fields: &Map<String, Value>, path: &str) -> Result<(), Fault> {
    for key in ["tool_calls", "invalid_tool_calls"] {
        for (index, value) in list(fields, key, path)?.iter().enumerate() {
            let path = join(path, &format!("{key}[{index}]"));
            let call = object(value, &path)?;
            let name = optional(call, "name", &path)?.unwrap_or_default();
            // Without an id nothing can answer it.
            let id = optional(call, "id", &path)?.unwrap_or_default();
            turn.call(id, name, plain(call.get("args")));
        }
    }
    // What the provider sent, with the same ids.
    if let Some(Value::Object(more)) = fields.get("additional_kwargs") {
        openai::calls(turn, more, &join(path, "additional_kwargs"))?;
    }
    Ok(())
}
