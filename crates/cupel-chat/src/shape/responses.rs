//! OpenAI Responses: <https://platform.openai.com/docs/api-reference/responses/create>.
//!
//! [`ITEMS`] has one row per type of input item.

use serde_json::{Map, Value};

use super::fields::{
    Fault, arguments, count_unknown, fault, message_with_role, optional, text, type_fault,
};
use super::{Binding, Format, ResultPlace, blocks};
use crate::message::{ContentPart, ParsedMessage, Required, Role};

pub(super) const FORMAT: Format = Format {
    lists: &["input"],
    read_string: Some(user_message),
    fields: &["type", "call_id", "arguments", "output"],
    continued_by: &["previous_response_id", "conversation"],
    binding: Binding::ModelItems,
    result_place: ResultPlace::Anywhere,
    is_estimated: false,
    evidence,
    block_types: &["input_text", "output_text", "input_image", "input_file"],
    ..Format::new("openai-responses", "OpenAI Responses", read)
};

fn evidence(element: &Value) -> Option<String> {
    let has = |key: &str| element.get(key).is_some();
    let kind = element.get("type")?.as_str()?;
    let is_item = if has("role") {
        kind == "message" && !has("stop_reason")
    } else {
        !has("tokens") && (kind.contains('_') || is_known(kind))
    };
    (is_item && !has("lc")).then(|| format!("the type `{kind}`"))
}

/// How an item is read.
#[derive(Debug, Clone, Copy)]
enum Reading {
    /// A message with a role.
    Message,
    /// A message between agents of the provider.
    AgentMessage,
    /// Reasoning, which is invalid without the next item.
    Reasoning,
    /// A call that the caller answers with an output; its arguments are in the field.
    Call(&'static str),
    /// The output of the caller, in the field. A provider that executes the tool itself leaves `call_id` out.
    Output(&'static str),
    /// A call that the provider answers with an item of its own.
    ServerCall,
    /// The output of such a call.
    ServerOutput,
    /// A call of a tool of the provider with its output, or another item that the model made.
    Made,
    /// A request for an approval, the answer to it, and the call that needed it.
    ApprovalRequest,
    ApprovalResponse,
    ApprovedCall,
    /// An item that the provider stores.
    Reference,
    /// Mandatory: it stands for everything before it, or sets tools or parameters.
    Required(Required),
}

/// The types of input items.
const ITEMS: &[(&str, Reading)] = &[
    ("message", Reading::Message),
    ("agent_message", Reading::AgentMessage),
    ("reasoning", Reading::Reasoning),
    ("function_call", Reading::Call("arguments")),
    ("function_call_output", Reading::Output("output")),
    ("custom_tool_call", Reading::Call("input")),
    ("custom_tool_call_output", Reading::Output("output")),
    ("computer_call", Reading::Call("action")),
    ("computer_call_output", Reading::Output("output")),
    ("local_shell_call", Reading::Call("action")),
    ("local_shell_call_output", Reading::Output("output")),
    ("shell_call", Reading::Call("action")),
    ("shell_call_output", Reading::Output("output")),
    ("apply_patch_call", Reading::Call("operation")),
    ("apply_patch_call_output", Reading::Output("output")),
    ("tool_search_call", Reading::Call("arguments")),
    ("tool_search_output", Reading::Output("tools")),
    ("program", Reading::ServerCall),
    ("program_output", Reading::ServerOutput),
    ("multi_agent_call", Reading::ServerCall),
    ("multi_agent_call_output", Reading::ServerOutput),
    ("web_search_call", Reading::Made),
    ("file_search_call", Reading::Made),
    ("code_interpreter_call", Reading::Made),
    ("image_generation_call", Reading::Made),
    ("mcp_list_tools", Reading::Made),
    ("mcp_approval_request", Reading::ApprovalRequest),
    ("mcp_approval_response", Reading::ApprovalResponse),
    ("mcp_call", Reading::ApprovedCall),
    ("item_reference", Reading::Reference),
    ("compaction", Reading::Required(Required::Compaction)),
    // The name of `compaction` in session files of Codex.
    (
        "compaction_summary",
        Reading::Required(Required::Compaction),
    ),
    ("compaction_trigger", Reading::Required(Required::Setting)),
    ("additional_tools", Reading::Required(Required::Setting)),
    ("configuration_update", Reading::Required(Required::Setting)),
];

fn reading(kind: &str) -> Option<Reading> {
    let row = ITEMS.iter().find(|(name, _)| *name == kind);
    row.map(|(_, reading)| *reading)
}

/// Returns whether an item has this type.
pub(crate) fn is_known(kind: &str) -> bool {
    reading(kind).is_some()
}

pub(super) fn read(fields: &Map<String, Value>) -> Result<ParsedMessage, Fault> {
    let kind = match optional(fields, "type", "")? {
        Some(kind) => kind,
        // A reference needs no type.
        None if !fields.contains_key("role") && fields.contains_key("id") => "item_reference",
        None => "message",
    };
    let Some(reading) = reading(kind) else {
        return unknown(kind, fields);
    };
    let whole = || Value::from(fields.clone());
    let mut item = ParsedMessage::new(role(reading), kind);
    match reading {
        Reading::Message => return read_message(fields),
        Reading::AgentMessage => blocks::content(&mut item, fields.get("content"), "content")?,
        Reading::Reasoning => read_reasoning(&mut item, fields)?,
        Reading::Call(input) => match optional(fields, "call_id", "")? {
            Some(id) => {
                let name = optional(fields, "name", "")?.unwrap_or(kind);
                // A computer call may have several actions.
                let input = fields.get(input).or_else(|| fields.get("actions"));
                item.push_call(id, name, arguments(input));
                if kind == "local_shell_call" {
                    item.item_id = optional(fields, "id", "")?.map(str::to_owned);
                }
            }
            None if is_server_search(kind, fields) => blocks::push_json(&mut item, &whole()),
            None => return type_fault("call_id", "a string", fields.get("call_id")),
        },
        Reading::Output(output) => match call_id(kind, fields)? {
            Some(id) => {
                item.results.push(id.to_owned());
                read_output(&mut item, fields.get(output), output)?;
            }
            None if is_server_search(kind, fields) => {
                item.role = Some(Role::Assistant);
                blocks::push_json(&mut item, &whole());
            }
            None => return type_fault("call_id", "a string", fields.get("call_id")),
        },
        Reading::ServerCall | Reading::ServerOutput => {
            let is_result = matches!(reading, Reading::ServerOutput);
            item.push_link(text(fields, "call_id", "")?, is_result);
            blocks::push_json(&mut item, &whole());
        }
        Reading::Made => blocks::push_json(&mut item, &whole()),
        Reading::ApprovalRequest => {
            item.push_link(text(fields, "id", "")?, false);
            blocks::push_json(&mut item, &whole());
        }
        Reading::ApprovalResponse => {
            item.push_link(text(fields, "approval_request_id", "")?, true);
            blocks::push_json(&mut item, &whole());
        }
        Reading::ApprovedCall => {
            if let Some(id) = optional(fields, "approval_request_id", "")? {
                item.push_link(id, false);
            }
            blocks::push_json(&mut item, &whole());
        }
        Reading::Reference => {
            let id = text(fields, "id", "")?;
            item.precedes_next = id.starts_with("rs_");
            blocks::push_json(&mut item, &whole());
        }
        Reading::Required(why) => {
            item.required = Some(why);
            blocks::push_json(&mut item, &whole());
        }
    }
    // The program that makes the call.
    let caller = fields.get("caller").and_then(|it| it.get("caller_id"));
    if let Some(id) = caller.and_then(Value::as_str) {
        item.push_link(id, false);
    }
    Ok(item)
}

fn role(reading: Reading) -> Role {
    match reading {
        Reading::Output(_) | Reading::ApprovalResponse => Role::Tool,
        Reading::Message | Reading::Required(_) => Role::Other,
        _ => Role::Assistant,
    }
}

/// Reads an item of an unknown type, which counts as its JSON. Fails for one that looks like a tool call or a
/// tool result: trimming could separate it from the other.
fn unknown(kind: &str, fields: &Map<String, Value>) -> Result<ParsedMessage, Fault> {
    if let Some(what) = blocks::looks_like(kind, fields) {
        return fault(
            "type",
            format!(
                "unknown item type `{kind}`, which looks like {what}: what belongs to it cannot be found"
            ),
        );
    }
    let mut item = ParsedMessage::new(Role::Other, kind);
    item.unknown = Some(("type".to_owned(), kind.to_owned()));
    blocks::push_json(&mut item, &Value::from(fields.clone()));
    Ok(item)
}

/// Returns whether the provider searched for tools itself: the call and its output have no `call_id` then.
fn is_server_search(kind: &str, fields: &Map<String, Value>) -> bool {
    let execution = fields.get("execution").and_then(Value::as_str);
    kind.starts_with("tool_search_") && execution != Some("client")
}

/// Returns the id of the call that an output belongs to. Outputs of the local shell have it in `id`.
fn call_id<'f>(kind: &str, fields: &'f Map<String, Value>) -> Result<Option<&'f str>, Fault> {
    match optional(fields, "call_id", "")? {
        None if kind == "local_shell_call_output" => text(fields, "id", "").map(Some),
        id => Ok(id),
    }
}

/// Reads the output of a tool: a string, content blocks, a screenshot, or chunks of a shell's output.
fn read_output(item: &mut ParsedMessage, output: Option<&Value>, path: &str) -> Result<(), Fault> {
    match output {
        Some(Value::Array(parts)) if path == "output" => {
            for (index, part) in parts.iter().enumerate() {
                let path = format!("{path}[{index}]");
                match part.as_object().filter(|part| !part.contains_key("type")) {
                    Some(chunk) => read_chunk(item, chunk, &path)?,
                    None => blocks::block(item, part, &path)?,
                }
            }
            Ok(())
        }
        Some(output @ Value::Object(fields)) if path == "output" => {
            if fields.contains_key("image_url") || fields.contains_key("file_id") {
                let image = blocks::image_of(fields);
                item.parts.push(ContentPart::Image(image));
            } else {
                blocks::push_json(item, output);
            }
            Ok(())
        }
        Some(output) if path != "output" => {
            blocks::push_json(item, output);
            Ok(())
        }
        output => blocks::content(item, output, path),
    }
}

/// Reads one chunk of a shell's output.
fn read_chunk(
    item: &mut ParsedMessage,
    chunk: &Map<String, Value>,
    path: &str,
) -> Result<(), Fault> {
    for key in ["stdout", "stderr"] {
        if let Some(text) = optional(chunk, key, path)? {
            item.push_slot(text, &format!("{path}.{key}"));
        }
    }
    if let Some(outcome) = chunk.get("outcome") {
        item.push_text(&outcome.to_string());
    }
    Ok(())
}

/// Returns the user message of a request whose `input` is a string.
fn user_message(text: &str) -> ParsedMessage {
    let mut message = ParsedMessage::new(Role::User, "user");
    message.push_slot(text, "");
    message
}

/// The fields of a message that cost nothing.
const FREE: [&str; 6] = ["type", "role", "content", "id", "status", "phase"];

/// The roles of messages.
const ROLES: [(&str, Role); 4] = [
    ("system", Role::System),
    ("developer", Role::System),
    ("user", Role::User),
    ("assistant", Role::Assistant),
];

fn read_message(fields: &Map<String, Value>) -> Result<ParsedMessage, Fault> {
    let mut message = message_with_role(fields, &ROLES)?;
    blocks::content(&mut message, fields.get("content"), "content")?;
    count_unknown(&mut message, fields, "", &FREE)?;
    Ok(message)
}

fn read_reasoning(item: &mut ParsedMessage, fields: &Map<String, Value>) -> Result<(), Fault> {
    item.precedes_next = true;
    for key in ["summary", "content"] {
        blocks::content(item, fields.get(key), key)?;
    }
    if let Some(cipher) = optional(fields, "encrypted_content", "")? {
        item.parts.push(ContentPart::Encrypted(cipher.len()));
    }
    Ok(())
}
