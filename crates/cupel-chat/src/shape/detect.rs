//! Detects the format of a chat.

use serde_json::Value;

use super::{FORMATS, Shape, names, type_of};
use crate::error::{ChatError, Kind};
use crate::layout::Layout;

/// Something that occurs in one format only, and the element it was found in.
struct Evidence {
    shape: Shape,
    what: String,
    index: Option<usize>,
}

/// Returns the only format that there is evidence of.
pub(crate) fn detect(layout: &Layout, values: &[Value]) -> Result<Shape, ChatError> {
    if layout.path == "input" {
        return Ok(Shape::Responses);
    }
    let mut found: Vec<Evidence> = Vec::new();
    let mut add = |shape: Shape, what: String, index: Option<usize>| {
        if found.iter().all(|evidence| evidence.shape != shape) {
            found.push(Evidence { shape, what, index });
        }
    };
    for format in FORMATS {
        if let Some(what) = (format.request_evidence)(layout) {
            add(format.shape, what, None);
        }
    }
    let (mut system, mut message) = (None, None);
    for (index, value) in values.iter().enumerate() {
        match evidence(value) {
            Some((shape, what)) => add(shape, what, Some(index)),
            None if value.get("role").is_some() => {
                message = message.or(Some((index, "`role`")));
                let role = value["role"].as_str();
                if system.is_none() && matches!(role, Some("system" | "developer")) {
                    system = Some(index);
                }
            }
            // Reading the item says what is wrong with it.
            None if layout.path == "items" => {}
            None => return Err(unknown(layout, index, value)),
        }
    }
    let item = found.iter().find(|evidence| evidence.shape == Shape::Items);
    if item.is_some() || layout.path == "items" {
        let others = found
            .iter()
            .filter(|evidence| evidence.shape != Shape::Items);
        let mut others = others.filter_map(|evidence| Some((evidence.index?, &*evidence.what)));
        if let Some(message) = message.or_else(|| others.next()) {
            return Err(mixed(layout, message, item));
        }
    }
    if layout.path == "items" {
        return Ok(Shape::Items);
    }
    if let (Some(_), [evidence]) = (system, &found[..])
        && evidence.shape == Shape::Anthropic
    {
        found.push(Evidence {
            shape: Shape::OpenAi,
            what: "the role `system`".to_owned(),
            index: system,
        });
    }
    match &found[..] {
        // User and assistant messages with text only are the same in both; OpenAI accepts more.
        [] => Ok(match layout.field("model").and_then(Value::as_str) {
            Some(model) if model.contains("claude") => Shape::Anthropic,
            _ => Shape::OpenAi,
        }),
        [evidence] => Ok(evidence.shape),
        several => Err(ambiguous(layout, several)),
    }
}

/// Returns the format that an element of the list is evidence of.
pub(super) fn evidence(value: &Value) -> Option<(Shape, String)> {
    let of_element = |format: &super::Format| Some((format.shape, (format.evidence)(value)?));
    let element = FORMATS.into_iter().find_map(of_element);
    element.or_else(|| {
        let blocks = value.get("content").and_then(Value::as_array)?;
        value.get("role")?;
        blocks.iter().find_map(|block| {
            let kind = block.get("type").and_then(Value::as_str)?;
            let format = FORMATS
                .iter()
                .find(|format| format.block_types.contains(&kind))?;
            Some((format.shape, format!("a content block of type `{kind}`")))
        })
    })
}

fn ambiguous(layout: &Layout, found: &[Evidence]) -> ChatError {
    let seen = found
        .iter()
        .map(|Evidence { shape, what, index }| match index {
            Some(index) => format!("{what} in {} ({shape})", layout.path_of(*index, "")),
            None => format!("{what} ({shape})"),
        });
    let seen: Vec<String> = seen.collect();
    let message = format!(
        "the chat format is ambiguous: found {}; name the format, one of {}",
        seen.join(" and "),
        names()
    );
    ChatError::new(&layout.text, 0, message)
        .at(layout.path)
        .kind(Kind::Ambiguous)
}

/// Returns the error for a message in a list with an item, or in the list `items`.
fn mixed(layout: &Layout, (message, what): (usize, &str), item: Option<&Evidence>) -> ChatError {
    let is = |index: usize, what: &str| format!("{} is {what}", layout.path_of(index, ""));
    let a_message = is(message, &format!("a message (it has {what})"));
    let item = item.and_then(|evidence| Some((evidence.index?, &evidence.what)));
    let (last, text) = match item {
        Some((item, what)) => {
            let an_item = is(item, &format!("an item (it has {what})"));
            let mut both = [(message, a_message), (item, an_item)];
            both.sort_unstable();
            let [(_, first), (last, second)] = both;
            let text = format!(
                "messages and items are mixed: {first}, {second}; use messages only or items only"
            );
            (last, text)
        }
        None => (
            message,
            format!("{a_message} in `items`; rename the list to `messages`, or use items"),
        ),
    };
    layout.fault(last, "", text).kind(Kind::Mixed)
}

fn unknown(layout: &Layout, index: usize, value: &Value) -> ChatError {
    let message = match value {
        Value::Object(fields)
            if fields.contains_key("messages") || fields.contains_key("input") =>
        {
            "this is a whole chat, not a message; read one chat at a time".to_owned()
        }
        Value::Object(fields) => {
            let keys: Vec<String> = fields.keys().map(|key| format!("`{key}`")).collect();
            format!(
                "unknown message format: it has {}; messages have `role` or `type`, items have `content`. If you know the format, name it: {}",
                if keys.is_empty() {
                    "no fields".to_owned()
                } else {
                    keys.join(", ")
                },
                names()
            )
        }
        other => {
            let message = format!("must be an object, not {}", type_of(other));
            return layout.fault(index, "", message).kind(Kind::Value);
        }
    };
    layout.fault(index, "", message)
}
