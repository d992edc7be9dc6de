//! Gemini: the `contents` of `generateContent`, in the Gemini API and in Vertex AI.
//!
//! | what | rule of the API |
//! |---|---|
//! | start | a user content; a content without a role is the user's |
//! | order | a content with function calls follows a user content or function responses |
//! | results | the next content has one `functionResponse` per `functionCall`, matched by `id`, or by name and order |
//! | end | a user content or function responses |
//! | thoughts | `thoughtSignature` stays in its part, unchanged |
//! | names | camel case and snake case |
//!
//! Sources: the reference of `Content` and `Part`, "Function calling" and "Thought signatures" on
//! ai.google.dev, and the messages of the API for requests that it rejects.

use serde_json::{Map, Value};

use super::fields::{
    Fault, arguments, count_unknown, fault, join, list, object, optional, role_of, text,
};
use super::{Binding, Format, RequestField, Start, blocks, media, order};
use crate::layout::Layout;
use crate::message::{ContentPart, ParsedMessage, Role};
use crate::tokens::image;

pub(super) const FORMAT: Format = Format {
    lists: &["contents"],
    request_fields: &[
        RequestField::Prompt("systemInstruction", system),
        RequestField::Prompt("system_instruction", system),
        RequestField::Json("tools"),
        RequestField::Prompt("generationConfig", response_schema),
        RequestField::Prompt("generation_config", response_schema),
        RequestField::Prompt("config", config),
    ],
    start: Start::User,
    binding: Binding::Next,
    link: Some(order::link),
    fields: &["role", "parts"],
    content_fields: &["parts"],
    own_fields: &["parts"],
    evidence,
    request_evidence,
    image_tokens: image::gemini_tokens,
    ..Format::new("gemini", "Gemini", read)
};

/// The fields of a part that hold its data, in camel case.
const DATA: [&str; 9] = [
    "text",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];

fn evidence(element: &Value) -> Option<String> {
    let parts = element.get("parts")?.as_array()?;
    let has_data = |part: &Value| {
        let fields = part.as_object();
        fields.is_some_and(|fields| !fields.contains_key("type") && data(fields).is_some())
    };
    parts
        .iter()
        .any(has_data)
        .then(|| "`parts` without `type`".to_owned())
}

fn request_evidence(layout: &Layout) -> Option<String> {
    let keys = [
        "systemInstruction",
        "system_instruction",
        "generationConfig",
        "generation_config",
    ];
    let key = keys.into_iter().find(|key| layout.field(key).is_some())?;
    Some(format!("the field `{key}`"))
}

/// The roles of messages.
const ROLES: [(&str, Role); 3] = [
    ("user", Role::User),
    ("model", Role::Assistant),
    ("function", Role::Tool),
];

fn read(fields: &Map<String, Value>) -> Result<ParsedMessage, Fault> {
    let label = optional(fields, "role", "")?.unwrap_or("user");
    let role = role_of(label, &ROLES)?;
    let mut message = ParsedMessage::new(role, label);
    parts(&mut message, fields)?;
    count_unknown(&mut message, fields, "", FORMAT.fields)?;
    Ok(message)
}

fn parts(message: &mut ParsedMessage, fields: &Map<String, Value>) -> Result<(), Fault> {
    for (index, value) in list(fields, "parts", "")?.iter().enumerate() {
        let path = format!("parts[{index}]");
        part(message, object(value, &path)?, &path)?;
    }
    Ok(())
}

/// Returns a field that is written in camel case or in snake case: the name as written, and the value.
fn field<'f>(fields: &'f Map<String, Value>, camel: &str) -> Option<(&'f String, &'f Value)> {
    let is_same = |key: &String| key.replace('_', "").eq_ignore_ascii_case(camel);
    let mut found = fields.iter().filter(|(_, value)| !value.is_null());
    found.find(|(key, _)| is_same(key))
}

/// Returns the data of a part: its name in camel case, its name as written, and its value.
fn data(fields: &Map<String, Value>) -> Option<(&'static str, &String, &Value)> {
    DATA.into_iter().find_map(|camel| {
        let (key, value) = field(fields, camel)?;
        Some((camel, key, value))
    })
}

fn part(message: &mut ParsedMessage, fields: &Map<String, Value>, path: &str) -> Result<(), Fault> {
    let signature = field(fields, "thoughtSignature").and_then(|(_, value)| value.as_str());
    let Some((kind, key, value)) = data(fields) else {
        if signature.is_none() {
            let kind = fields.keys().next().map_or("", String::as_str);
            return blocks::unknown(message, kind, &Value::from(fields.clone()), path);
        }
        message.parts.extend(signature.map(encrypted));
        return Ok(());
    };
    let at = &join(path, key);
    match kind {
        "text" => {
            let is_thought = fields.get("thought").is_some_and(|value| value == true);
            let text = text(fields, key, path)?;
            // A signature belongs to the text as it was written.
            if is_thought || signature.is_some() {
                message.push_text(text);
            } else {
                message.push_slot(text, at);
            }
        }
        "functionCall" => {
            let call = object(value, at)?;
            let id = optional(call, "id", at)?;
            let name = text(call, "name", at)?;
            message.push_call_in_order(id, name, arguments(call.get("args")));
        }
        "functionResponse" => {
            let response = object(value, at)?;
            let id = optional(response, "id", at)?;
            let id = order::result_id(id, text(response, "name", at)?);
            message.push_result(&id, |message| {
                if let Some(value) = response.get("response") {
                    message.push_json(value, &join(at, "response"));
                }
                for (index, value) in list(response, "parts", at)?.iter().enumerate() {
                    let path = join(at, &format!("parts[{index}]"));
                    part(message, object(value, &path)?, &path)?;
                }
                Ok(())
            })?;
        }
        "inlineData" | "fileData" => {
            let blob = object(value, at)?;
            let mime_type = field(blob, "mimeType").and_then(|(_, value)| value.as_str());
            let data = blob.get("data").and_then(Value::as_str);
            message.push_part(media::part(mime_type.unwrap_or_default(), data));
        }
        // Code that the model executes, and tools of the provider: calls and results are in one content.
        _ => message.push_text(&value.to_string()),
    }
    message.parts.extend(signature.map(encrypted));
    Ok(())
}

fn encrypted(cipher: &str) -> ContentPart {
    ContentPart::Encrypted(cipher.len())
}

/// Reads the system instruction: a content, or a string in the configuration of a client.
fn system(value: &Value) -> Result<ParsedMessage, Fault> {
    let mut message = ParsedMessage::new(Role::System, "system");
    match value {
        Value::String(text) => message.push_text(text),
        value => parts(&mut message, object(value, "")?)?,
    }
    Ok(message)
}

/// Reads the schema of the answer, which counts as input.
fn response_schema(value: &Value) -> Result<ParsedMessage, Fault> {
    let fields = object(value, "")?;
    let keys = ["responseSchema", "responseJsonSchema"];
    let Some((_, schema)) = keys.iter().find_map(|key| field(fields, key)) else {
        return fault("", "the answer has no schema");
    };
    let mut message = ParsedMessage::new(Role::System, "system");
    message.push_text(&schema.to_string());
    Ok(message)
}

/// Reads the configuration of the Python client: the system instruction, tools and the schema.
fn config(value: &Value) -> Result<ParsedMessage, Fault> {
    let fields = object(value, "")?;
    let mut message = match field(fields, "systemInstruction") {
        Some((_, value)) => system(value)?,
        None => ParsedMessage::new(Role::System, "system"),
    };
    for key in ["tools", "responseSchema", "responseJsonSchema"] {
        if let Some((_, value)) = field(fields, key) {
            message.push_text(&value.to_string());
        }
    }
    Ok(message)
}
