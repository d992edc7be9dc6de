//! Message content: a string or an array of content blocks. The formats with typed blocks share [`BLOCKS`], one
//! row per block type; `tokens/cost.rs` has the tokens of each [`ContentPart`].

use serde_json::{Map, Value};

use super::fields::{Fault, arguments, fault, join, object, optional, text, type_fault};
use crate::message::{ContentPart, Image, ParsedMessage, Required};
use crate::tokens::image;

/// How a content block is read.
#[derive(Debug, Clone, Copy)]
enum Reading {
    /// The field `text`, which a shorter text may replace unless citations point into it.
    Text,
    /// The text of a field, which never changes.
    Fixed(&'static str),
    /// The encrypted text of a field.
    Encrypted(&'static str),
    Image,
    Audio,
    File,
    /// A file with a title, a context and maybe its text.
    Document,
    /// A tool call of the caller, with its id in a field.
    Call(&'static str),
    /// A tool result of the caller.
    Result,
    /// A tool call that the provider executes, with its id in a field.
    ServerCall,
    /// The result of such a call, with the id of the call in a field.
    ServerResult(&'static str),
    /// A summary that stands for everything before it.
    Compaction,
    /// A change of instructions or tools from here on.
    Setting,
    /// The JSON of the block.
    Json,
    /// Nothing: the provider does not show it to the model.
    Free,
}

/// The block types of all formats.
const BLOCKS: &[(&str, Reading)] = &[
    // Chat Completions, Anthropic, LangChain.
    ("text", Reading::Text),
    ("refusal", Reading::Fixed("refusal")),
    ("image_url", Reading::Image),
    ("image", Reading::Image),
    ("input_audio", Reading::Audio),
    ("audio", Reading::Audio),
    ("file", Reading::Document),
    // Responses.
    ("input_text", Reading::Text),
    ("output_text", Reading::Text),
    ("summary_text", Reading::Fixed("text")),
    ("reasoning_text", Reading::Fixed("text")),
    ("encrypted_content", Reading::Encrypted("encrypted_content")),
    ("input_image", Reading::Image),
    ("computer_screenshot", Reading::Image),
    ("input_file", Reading::Document),
    // Anthropic: https://platform.claude.com/docs/en/api/messages
    ("thinking", Reading::Fixed("thinking")),
    ("redacted_thinking", Reading::Encrypted("data")),
    ("document", Reading::Document),
    ("search_result", Reading::Json),
    ("container_upload", Reading::File),
    ("tool_use", Reading::Call("id")),
    ("tool_result", Reading::Result),
    ("tool_reference", Reading::Json),
    ("server_tool_use", Reading::ServerCall),
    ("mcp_tool_use", Reading::ServerCall),
    ("compaction", Reading::Compaction),
    ("mid_conv_system", Reading::Setting),
    ("tool_addition", Reading::Setting),
    ("tool_removal", Reading::Setting),
    ("fallback", Reading::Free),
    // LangChain: its own blocks, and the items of Responses.
    ("tool_call", Reading::Call("id")),
    ("function_call", Reading::Call("call_id")),
    ("custom_tool_call", Reading::Call("call_id")),
    ("computer_call", Reading::Call("call_id")),
    ("invalid_tool_call", Reading::Json),
    ("tool_call_chunk", Reading::Json),
    ("server_tool_call", Reading::ServerCall),
    ("server_tool_call_chunk", Reading::Json),
    ("server_tool_result", Reading::ServerResult("tool_call_id")),
    ("input_json_delta", Reading::Json),
    ("reasoning", Reading::Json),
    ("text-plain", Reading::Document),
    ("video", Reading::File),
    ("non_standard", Reading::Json),
    ("reasoning_content", Reading::Json),
    ("guard_content", Reading::Json),
    ("executable_code", Reading::Json),
    ("code_execution_result", Reading::Json),
    ("media", Reading::File),
    ("web_search_call", Reading::Json),
    ("file_search_call", Reading::Json),
    ("code_interpreter_call", Reading::Json),
    ("image_generation_call", Reading::Json),
    ("mcp_call", Reading::Json),
    ("mcp_list_tools", Reading::Json),
    ("mcp_approval_request", Reading::Json),
];

/// Returns how a block type is read. Every tool of Anthropic has its own type of result.
fn reading(kind: &str) -> Option<Reading> {
    let known = BLOCKS.iter().find(|(name, _)| *name == kind);
    let known = known.map(|(_, reading)| *reading);
    known.or_else(|| {
        kind.ends_with("_tool_result")
            .then_some(Reading::ServerResult("tool_use_id"))
    })
}

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

pub(super) fn block(message: &mut ParsedMessage, value: &Value, path: &str) -> Result<(), Fault> {
    if let Value::String(text) = value {
        message.push_slot(text, path);
        return Ok(());
    }
    let fields = object(value, path)?;
    let kind = text(fields, "type", path)?;
    message.has_thinking |= matches!(kind, "thinking" | "redacted_thinking");
    match reading(kind) {
        Some(Reading::Text) if !is_annotated(fields) => {
            message.push_slot(text(fields, "text", path)?, &join(path, "text"));
        }
        Some(Reading::Text) => message.push_text(text(fields, "text", path)?),
        Some(Reading::Fixed(key)) => message.push_text(text(fields, key, path)?),
        Some(Reading::Encrypted(key)) => {
            let cipher = text(fields, key, path)?;
            push(message, ContentPart::Encrypted(cipher.len()));
        }
        Some(Reading::Image) => push(message, ContentPart::Image(image_of(fields))),
        Some(Reading::Audio) => push(message, ContentPart::Audio),
        Some(Reading::File) => push(message, ContentPart::File),
        Some(Reading::Document) => document(message, fields, path)?,
        Some(Reading::Call(id)) => {
            // The program of the provider that makes the call.
            let caller = fields.get("caller").and_then(|it| it.get("tool_id"));
            if let Some(id) = caller.and_then(Value::as_str) {
                message.push_link(id, false);
            }
            let name = optional(fields, "name", path)?.unwrap_or(kind);
            let keys = ["input", "args", "arguments", "action"];
            let input = keys.iter().find_map(|key| fields.get(*key));
            message.push_call(text(fields, id, path)?, name, arguments(input));
        }
        Some(Reading::Result) => result(message, fields, path)?,
        Some(Reading::ServerCall) => {
            let input = fields.get("input").or_else(|| fields.get("args"));
            message.push_text(optional(fields, "name", path)?.unwrap_or(kind));
            message.push_text(&arguments(input));
            message.push_link(text(fields, "id", path)?, false);
        }
        Some(Reading::ServerResult(id)) => {
            let content = fields.get("content").or_else(|| fields.get("output"));
            push_json(message, content.unwrap_or_default());
            message.push_link(text(fields, id, path)?, true);
        }
        Some(Reading::Compaction) => {
            message.required = Some(Required::Compaction);
            message.push_text(optional(fields, "content", path)?.unwrap_or_default());
            if let Some(cipher) = optional(fields, "encrypted_content", path)? {
                push(message, ContentPart::Encrypted(cipher.len()));
            }
        }
        Some(Reading::Setting) => {
            message.required = message.required.or(Some(Required::Setting));
            push_json(message, value);
        }
        Some(Reading::Json) => push_json(message, value),
        Some(Reading::Free) => {}
        None => unknown(message, kind, value, &join(path, "type"))?,
    }
    Ok(())
}

/// Adds a block of an unknown type, which counts as its JSON. `field` is the path of the type. Fails for one
/// that looks like a tool call or a tool result: trimming could separate it from the other.
pub(super) fn unknown(
    message: &mut ParsedMessage,
    kind: &str,
    value: &Value,
    field: &str,
) -> Result<(), Fault> {
    let Some(what) = value
        .as_object()
        .and_then(|fields| looks_like(kind, fields))
    else {
        message.unknown = Some((field.to_owned(), kind.to_owned()));
        push_json(message, value);
        return Ok(());
    };
    // The parts of the AI SDK are written with hyphens.
    let format = if kind.contains('-') {
        "; the format vercel has such blocks"
    } else {
        ""
    };
    fault(
        field,
        format!(
            "unknown content block type `{kind}`, which looks like {what}: what belongs to it cannot be found{format}"
        ),
    )
}

/// Returns whether a block or an item of an unknown type looks like a tool call or a tool result.
pub(super) fn looks_like(kind: &str, fields: &Map<String, Value>) -> Option<&'static str> {
    const IDS: [&str; 6] = [
        "call_id",
        "callId",
        "tool_call_id",
        "toolCallId",
        "tool_use_id",
        "toolUseId",
    ];
    let letters = kind.chars().filter(|letter| letter.is_alphanumeric());
    let kind: String = letters.flat_map(char::to_lowercase).collect();
    let is_any = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    let has_any = |keys: &[&str]| keys.iter().any(|key| fields.contains_key(*key));
    let is_about_tools = is_any(&["tool", "function", "call"]);
    let is_named = fields.contains_key("name");
    if is_about_tools && is_any(&["result", "response", "output"]) {
        Some("a tool result")
    } else if is_any(&["call", "tooluse", "functionuse"])
        || is_named && has_any(&["arguments", "args", "input", "parameters"])
    {
        Some("a tool call")
    } else if has_any(&IDS) {
        Some("part of a tool call")
    } else {
        None
    }
}

/// Adds a part that is content of the message itself.
fn push(message: &mut ParsedMessage, part: ContentPart) {
    message.has_own_content = true;
    message.parts.push(part);
}

/// Adds a value as its JSON; encrypted texts, images and files in it count as such.
pub(super) fn push_json(message: &mut ParsedMessage, value: &Value) {
    let mut value = value.clone();
    take_opaque(message, &mut value);
    message.push_text(&value.to_string());
}

/// Adds a string as it is, and another value as its JSON.
pub(super) fn push_value(message: &mut ParsedMessage, value: &Value) {
    match value {
        Value::String(text) if data_url(text).is_none() => message.push_text(text),
        value => push_json(message, value),
    }
}

/// Takes the texts out of a value that are no texts for the model.
fn take_opaque(message: &mut ParsedMessage, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let kind = fields.get("type").and_then(Value::as_str);
            // The field that holds an encoded image or file.
            let data = match kind {
                Some("base64") => "data",
                Some("image_generation_call") => "result",
                _ => "",
            };
            let media = fields.get("media_type").and_then(Value::as_str);
            let is_image = data == "result" || media.is_some_and(|it| it.starts_with("image/"));
            for (key, value) in fields {
                let Value::String(text) = value else {
                    take_opaque(message, value);
                    continue;
                };
                let part = if key.starts_with("encrypted") {
                    ContentPart::Encrypted(text.len())
                } else if key == data {
                    encoded(text, is_image)
                } else if let Some((head, data)) = data_url(text) {
                    encoded(data, head.starts_with("image/"))
                } else {
                    continue;
                };
                push(message, part);
                text.clear();
            }
        }
        Value::Array(values) => {
            for value in values {
                take_opaque(message, value);
            }
        }
        _ => {}
    }
}

/// Returns an image or a file in base64.
fn encoded(base64: &str, is_image: bool) -> ContentPart {
    if is_image {
        ContentPart::Image(Image {
            size: image::size(base64),
            low_detail: false,
        })
    } else {
        ContentPart::File
    }
}

/// Returns the media type and the base64 of a data URL.
fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// Reads a tool result of the caller.
fn result(
    message: &mut ParsedMessage,
    fields: &Map<String, Value>,
    path: &str,
) -> Result<(), Fault> {
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
pub(super) fn image_of(fields: &Map<String, Value>) -> Image {
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
        .or_else(|| Some(data_url(&url?)?.1.to_owned()));
    Image {
        size: data.and_then(|data| image::size(&data)),
        low_detail: detail.as_deref() == Some("low"),
    }
}
