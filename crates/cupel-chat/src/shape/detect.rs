//! Detects the format of a chat by evidence, and recognizes formats that are not read.

use serde_json::{Map, Value};

use super::{Shape, names, type_of};
use crate::error::{ChatError, Kind};
use crate::layout::{Layout, lists_in};

/// Something that occurs in one format only, and the element it was found in.
struct Evidence {
    shape: Shape,
    what: String,
    index: Option<usize>,
}

/// Returns the only format that there is evidence of.
pub(crate) fn detect(layout: &Layout, values: &[Value]) -> Result<Shape, ChatError> {
    if let Some(shape) = layout.transcript {
        return Ok(shape);
    }
    let key = layout.key();
    let with_key = |shape: &Shape| shape.format().lists.contains(&key);
    let with_key: Vec<Shape> = Shape::ALL.into_iter().filter(with_key).collect();
    match with_key[..] {
        [only] if only.is_chat() => return Ok(only),
        _ => {}
    }
    let mut found: Vec<Evidence> = Vec::new();
    let mut add = |shape: Shape, what: String, index: Option<usize>| {
        if found.iter().all(|evidence| evidence.shape != shape) {
            found.push(Evidence { shape, what, index });
        }
    };
    for shape in Shape::ALL {
        if let Some(what) = (shape.format().request_evidence)(layout) {
            add(shape, what, None);
        }
    }
    let mut message = None;
    for (index, value) in values.iter().enumerate() {
        match evidence(value) {
            Some((shape, what)) => add(shape, what, Some(index)),
            None if value.get("role").is_some() => message = message.or(Some((index, "`role`"))),
            // Reading the item says what is wrong with it.
            None if key == "items" => {}
            None => return Err(unknown(layout, index, value)),
        }
    }
    settle(&mut found, |evidence| evidence.shape);
    let item = found.iter().find(|evidence| !evidence.shape.is_chat());
    if item.is_some() || key == "items" {
        let others = found.iter().filter(|evidence| evidence.shape.is_chat());
        let mut others = others.filter_map(|evidence| Some((evidence.index?, &*evidence.what)));
        if let Some(message) = message.or_else(|| others.next()) {
            return Err(mixed(layout, message, item));
        }
    }
    if key == "items" {
        return Ok(Shape::Items);
    }
    // Anthropic accepts a system message, but not as the first one.
    let first = values.first().and_then(|first| first.get("role")?.as_str());
    let starts_with_system = matches!(first, Some("system" | "developer"));
    if let (true, [evidence]) = (starts_with_system, &found[..])
        && evidence.shape == Shape::Anthropic
    {
        found.push(Evidence {
            shape: Shape::OpenAi,
            what: "the role `system`".to_owned(),
            index: Some(0),
        });
    }
    match &found[..] {
        // User and assistant messages with text only are the same in both; OpenAI accepts more.
        [] => Ok(match layout.field("model").and_then(Value::as_str) {
            Some(model) if model.contains("claude") && !starts_with_system => Shape::Anthropic,
            _ => Shape::OpenAi,
        }),
        [evidence] if evidence.shape.format().transcript.is_some() => {
            let Evidence { shape, index, .. } = evidence;
            let message = format!(
                "a record of the format {shape}, which has one record per line; `jq -c '.[]'` writes an array as lines"
            );
            Err(layout.fault(index.unwrap_or_default(), "", message))
        }
        [evidence] => Ok(evidence.shape),
        several => Err(ambiguous(layout, several)),
    }
}

/// Returns the format that an element of the list is evidence of.
pub(crate) fn evidence(value: &Value) -> Option<(Shape, String)> {
    let of_element = |shape: Shape| Some((shape, (shape.format().evidence)(value)?));
    let mut found: Vec<(Shape, String)> = Shape::ALL.into_iter().filter_map(of_element).collect();
    settle(&mut found, |(shape, _)| *shape);
    let element = found.into_iter().next();
    element.or_else(|| {
        let blocks = value.get("content").and_then(Value::as_array)?;
        value.get("role")?;
        blocks.iter().find_map(|block| {
            let kind = block.get("type").and_then(Value::as_str)?;
            let has_type = |shape: &Shape| shape.format().block_types.contains(&kind);
            let shape = Shape::ALL.into_iter().find(has_type)?;
            Some((shape, format!("a content block of type `{kind}`")))
        })
    })
}

/// Removes evidence of a format that another one with evidence refines.
fn settle<T>(found: &mut Vec<T>, shape: impl Fn(&T) -> Shape) {
    let refines = found.iter().flat_map(|it| shape(it).format().refines);
    let refined: Vec<Shape> = refines.copied().collect();
    found.retain(|it| !refined.contains(&shape(it)));
}

/// A format that is not read.
struct Foreign {
    /// Its name in a sentence.
    title: &'static str,
    /// Returns what in a document, an element or a text that is not JSON is evidence of it.
    evidence: fn(&Value) -> Option<&'static str>,
    /// What to convert it to.
    fix: &'static str,
}

/// The formats that are not read.
const FOREIGN: [Foreign; 7] = [
    Foreign {
        title: "a prompt template such as ChatML",
        evidence: |value| {
            let text = value.as_str()?;
            let tags = ["<|im_start|>", "<|start_header_id|>", "[INST]"];
            tags.into_iter().find(|tag| text.contains(tag))
        },
        fix: "convert it to messages such as {\"role\": \"user\", \"content\": \"...\"}",
    },
    Foreign {
        title: "an OpenAI Assistants thread",
        evidence: |value| {
            let element = value.get("data").map_or(value, |data| &data[0]);
            (element.get("object")? == "thread.message").then_some("thread.message")
        },
        fix: "convert it to messages with `role` and `content` (openai), or to items of the Responses API (openai-responses)",
    },
    Foreign {
        title: "the message history of PydanticAI",
        evidence: |value| value.get("parts")?[0].get("part_kind").map(|_| "part_kind"),
        fix: "convert it to the request of its provider, such as messages with `role` and `content` (openai)",
    },
    Foreign {
        title: "a request of the Cohere Chat API v1",
        evidence: |value| value.get("chat_history").map(|_| "chat_history"),
        fix: "convert it to version 2, whose `messages` have `role` and `content`",
    },
    Foreign {
        title: "the answer of a provider, not a request",
        evidence: |value| {
            let has = |list: &str, key: &str| value[list][0].get(key).is_some();
            if has("choices", "message") {
                Some("choices")
            } else if has("candidates", "content") {
                Some("candidates")
            } else {
                (value.get("object")? == "response").then_some("object")
            }
        },
        fix: "append the answer to the messages of its request",
    },
    Foreign {
        title: "an export of ChatGPT",
        evidence: |value| value.get("mapping")?.as_object().map(|_| "mapping"),
        fix: "convert one branch of its tree to messages with `role` and `content` (openai)",
    },
    Foreign {
        title: "the prompt of a completion, not a chat",
        evidence: |value| value.get("prompt").map(|_| "prompt"),
        fix: "convert it to messages such as {\"role\": \"user\", \"content\": \"...\"}",
    },
];

/// Returns what a value of a format that is not read looks like, and what to convert it to.
fn described(value: &Value) -> Option<String> {
    FOREIGN.iter().find_map(|foreign| {
        let Foreign { title, fix, .. } = foreign;
        let evidence = (foreign.evidence)(value)?;
        Some(format!(
            "this looks like {title} (it has `{evidence}`); {fix}"
        ))
    })
}

/// Returns the error for a text of a format that is not read.
pub(crate) fn foreign(text: &str, value: &Value) -> Option<ChatError> {
    Some(ChatError::new(text, 0, described(value)?).kind(Kind::Foreign))
}

/// Returns the format whose messages share the most fields with an object.
pub(super) fn nearest(fields: &Map<String, Value>) -> Option<Shape> {
    let shared = |shape: Shape| {
        let known = shape.format().fields.iter();
        known.filter(|key| fields.contains_key(**key)).count()
    };
    let shapes = Shape::ALL.into_iter().rev();
    let chats = shapes.filter(|shape| shape.is_chat() && shared(*shape) > 0);
    // The last of equals is the first of the table.
    chats.max_by_key(|shape| shared(*shape))
}

/// Returns the fields of an object for an error.
pub(super) fn named(fields: &Map<String, Value>) -> String {
    let keys: Vec<String> = fields.keys().map(|key| format!("`{key}`")).collect();
    if keys.is_empty() {
        "no fields".to_owned()
    } else {
        keys.join(", ")
    }
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
        .at(&*layout.path)
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
    let Value::Object(fields) = value else {
        let message = format!("must be an object, not {}", type_of(value));
        return layout.fault(index, "", message).kind(Kind::Value);
    };
    if let Some(message) = described(value) {
        return layout.fault(index, "", message).kind(Kind::Foreign);
    }
    let nearest = match nearest(fields) {
        Some(shape) => format!("; the nearest format is {shape}"),
        None => String::new(),
    };
    let message = format!(
        "unknown message format: it has {}{nearest}; messages have `role` or `type`, items have `content`. If you know the format, name it: {}",
        named(fields),
        names()
    );
    let prefix = layout.pointer_of(index);
    let lists = lists_in(layout.json(index)).into_iter();
    let error = layout.fault(index, "", message).kind(Kind::Unknown);
    error.elsewhere(lists.map(|list| format!("{prefix}{list}")).collect())
}
