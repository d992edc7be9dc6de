//! `ShareGPT`: the `conversations` of training data.
//!
//! | what | rule |
//! |---|---|
//! | start | `human`, after an optional `system` |
//! | order | `human` and `observation` alternate with `gpt` and `function_call` |
//! | results | an `observation` after each `function_call` |
//! | end | any |
//!
//! Source: the description of the format in LLaMA-Factory. Names of other data sets are read too.

use serde_json::{Map, Value};

use super::fields::{Fault, arguments, count_unknown, fault, text, type_fault};
use super::{Binding, Format, RequestField, Shape, Start, anthropic, order};
use crate::message::{ParsedMessage, Role};

pub(super) const FORMAT: Format = Format {
    lists: &["conversations"],
    request_fields: &[
        RequestField::Prompt("system", anthropic::system),
        RequestField::Prompt("tools", tools),
        RequestField::Json("tools"),
    ],
    start: Start::User,
    binding: Binding::Next,
    link: Some(order::link),
    fields: &["from", "value", "weight"],
    content_fields: &["value"],
    own_fields: &["value"],
    rejects_repeated_roles: true,
    evidence,
    // The field `system` of a row.
    refines: &[Shape::Anthropic],
    ..Format::new("sharegpt", "ShareGPT", read)
};

/// The authors: name, role.
const AUTHORS: [(&str, Role); 13] = [
    ("system", Role::System),
    ("human", Role::User),
    ("user", Role::User),
    ("gpt", Role::Assistant),
    ("chatgpt", Role::Assistant),
    ("assistant", Role::Assistant),
    ("model", Role::Assistant),
    ("bard", Role::Assistant),
    ("bing", Role::Assistant),
    ("function_call", Role::Assistant),
    ("observation", Role::Tool),
    ("tool", Role::Tool),
    ("function_response", Role::Tool),
];

fn evidence(element: &Value) -> Option<String> {
    let is_text = |key: &str| element.get(key).is_some_and(Value::is_string);
    (is_text("from") && is_text("value")).then(|| "`from` and `value`".to_owned())
}

fn read(fields: &Map<String, Value>) -> Result<ParsedMessage, Fault> {
    let label = text(fields, "from", "")?;
    let Some((_, role)) = AUTHORS.iter().find(|(name, _)| *name == label) else {
        let names = AUTHORS.map(|(name, _)| name).join(", ");
        return fault(
            "from",
            format!("unknown author {label:?}; expected one of {names}"),
        );
    };
    let mut message = ParsedMessage::new(*role, label);
    let value = text(fields, "value", "")?;
    match role {
        Role::Assistant if label == "function_call" || value.contains("<tool_call>") => {
            let call: Value = serde_json::from_str(value).unwrap_or_default();
            match call.get("name").and_then(Value::as_str) {
                Some(name) => {
                    message.push_call_in_order(None, name, arguments(call.get("arguments")));
                }
                None => message.push_call_in_order(None, "", value.to_owned()),
            }
        }
        Role::Tool => {
            message.results.push(order::result_id(None, ""));
            message.push_slot(value, "value");
        }
        _ => message.push_slot(value, "value"),
    }
    count_unknown(&mut message, fields, "", FORMAT.fields)?;
    Ok(message)
}

/// Reads the definitions of the tools: a string of JSON.
fn tools(value: &Value) -> Result<ParsedMessage, Fault> {
    let Value::String(text) = value else {
        return type_fault("tools", "a string", Some(value));
    };
    let mut message = ParsedMessage::new(Role::System, "tools");
    message.push_text(text);
    Ok(message)
}
