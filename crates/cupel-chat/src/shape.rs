//! The shapes a chat comes in, and how they are told apart.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::error::{ChatError, Kind};
use crate::layout::Layout;

/// What the messages of a chat look like.
///
/// ```
/// use cupel_chat::Shape;
///
/// assert_eq!("anthropic".parse::<Shape>(), Ok(Shape::Anthropic));
/// assert_eq!(Shape::Responses.name(), "openai-responses");
/// assert_eq!(
///     "antropic".parse::<Shape>().unwrap_err().to_string(),
///     "there is no shape \"antropic\"; the shapes are openai, openai-responses, anthropic, langchain, items"
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// OpenAI Chat Completions: `messages` with roles, `tool_calls` and `tool` messages.
    OpenAi,
    /// OpenAI Responses: `input` items, among them `function_call` and `function_call_output`.
    Responses,
    /// Anthropic Messages: content blocks, `tool_use` and `tool_result` among them, `system` beside.
    Anthropic,
    /// LangChain messages: `{"type": "human", "data": {...}}`, the flat form, and the serialised
    /// constructor (`"lc": 1`).
    LangChain,
    /// Items of the library.
    Items,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Self; 5] = [
        Self::OpenAi,
        Self::Responses,
        Self::Anthropic,
        Self::LangChain,
        Self::Items,
    ];

    /// The name by which a shape is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Responses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::LangChain => "langchain",
            Self::Items => "items",
        }
    }

    /// What one of a list of this shape is called: `message` or `item`.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Items => "item",
            _ => "message",
        }
    }

    /// Returns the format that one element of a list is evidence of, and what in it says so.
    ///
    /// Returns `None` for a message that several formats share (only `role` and `content`), and for
    /// an element of no known format. An element with `tokens` and no `role` is an item, whatever
    /// its `type`.
    ///
    /// ```
    /// use cupel_chat::Shape;
    /// use serde_json::json;
    ///
    /// let (shape, evidence) = Shape::of_element(&json!({"content": "a", "tokens": 1, "type": "x"})).unwrap();
    /// assert_eq!((shape, &*evidence), (Shape::Items, "`content` without `role`"));
    /// assert_eq!(Shape::of_element(&json!({"role": "user", "content": "a"})), None);
    /// ```
    pub fn of_element(element: &Value) -> Option<(Self, String)> {
        sign_of(element)
    }

    /// Whether the first message after the system's must be the user's. Anthropic's interface refuses
    /// others; LangChain's messages may go there.
    pub fn starts_on_user(self) -> bool {
        matches!(self, Self::Anthropic | Self::LangChain)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no shape's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no shape {0:?}; the shapes are openai, openai-responses, anthropic, langchain, items"
)]
pub struct UnknownShape(String);

impl FromStr for Shape {
    type Err = UnknownShape;

    fn from_str(name: &str) -> Result<Self, UnknownShape> {
        let found = Self::ALL.into_iter().find(|shape| shape.name() == name);
        found.ok_or_else(|| UnknownShape(name.to_owned()))
    }
}

/// What speaks for a shape, and the message it was seen in, if it was in one.
struct Sign {
    shape: Shape,
    what: String,
    index: Option<usize>,
}

/// The shape that everything seen speaks for.
pub(crate) fn detect(layout: &Layout, values: &[Value]) -> Result<Shape, ChatError> {
    if layout.path == "input" {
        return Ok(Shape::Responses);
    }
    let mut signs: Vec<Sign> = Vec::new();
    let mut note = |shape: Shape, what: String, index: Option<usize>| {
        if signs.iter().all(|sign| sign.shape != shape) {
            signs.push(Sign { shape, what, index });
        }
    };
    for (key, shape) in [
        ("system", Shape::Anthropic),
        ("anthropic_version", Shape::Anthropic),
    ] {
        if layout.field(key).is_some() {
            note(shape, format!("`{key}` beside the messages"), None);
        }
    }
    if let Some(Value::Array(tools)) = layout.field("tools") {
        for tool in tools {
            if tool.get("input_schema").is_some() {
                let what = "tools with `input_schema`".to_owned();
                note(Shape::Anthropic, what, None);
            } else if tool.get("function").is_some() {
                note(Shape::OpenAi, "tools with `function`".to_owned(), None);
            }
        }
    }
    let (mut system, mut message) = (None, None);
    for (index, value) in values.iter().enumerate() {
        match sign_of(value) {
            Some((shape, what)) => note(shape, what, Some(index)),
            None if value.get("role").is_some() => {
                message = message.or(Some((index, "`role`")));
                let role = value["role"].as_str();
                if system.is_none() && matches!(role, Some("system" | "developer")) {
                    system = Some(index);
                }
            }
            // What is wrong with an item is found out when it is read.
            None if layout.path == "items" => {}
            None => return Err(unknown(layout, index, value)),
        }
    }
    let item = signs.iter().find(|sign| sign.shape == Shape::Items);
    if item.is_some() || layout.path == "items" {
        let signs = signs.iter().filter(|sign| sign.shape != Shape::Items);
        let mut signs = signs.filter_map(|sign| Some((sign.index?, &*sign.what)));
        if let Some(message) = message.or_else(|| signs.next()) {
            return Err(mixed(layout, message, item));
        }
    }
    if layout.path == "items" {
        return Ok(Shape::Items);
    }
    if let (Some(_), [sign]) = (system, &signs[..])
        && sign.shape == Shape::Anthropic
    {
        signs.push(Sign {
            shape: Shape::OpenAi,
            what: "the role system".to_owned(),
            index: system,
        });
    }
    match &signs[..] {
        // Text of user and assistant alone is the same in both; OpenAI's rules are the wider ones.
        [] => Ok(match layout.field("model").and_then(Value::as_str) {
            Some(model) if model.contains("claude") => Shape::Anthropic,
            _ => Shape::OpenAi,
        }),
        [sign] => Ok(sign.shape),
        several => {
            let seen = several
                .iter()
                .map(|Sign { shape, what, index }| match index {
                    Some(index) => format!("{what} in {} ({shape})", layout.path_of(*index, "")),
                    None => format!("{what} ({shape})"),
                });
            let seen: Vec<String> = seen.collect();
            Err(ChatError::new(
                &layout.text,
                0,
                format!(
                    "the shape is not clear: there is {}; name the shape that is meant, one of {}",
                    seen.join(" and "),
                    names()
                ),
            )
            .at(layout.path)
            .kind(Kind::Unclear))
        }
    }
}

/// A message, and what makes it one, in a list that has an item or the name of items.
fn mixed(layout: &Layout, (message, what): (usize, &str), item: Option<&Sign>) -> ChatError {
    let is = |index: usize, what: &str| format!("{} is {what}", layout.path_of(index, ""));
    let a_message = is(message, &format!("a message (it has {what})"));
    let item = item.and_then(|sign| Some((sign.index?, &sign.what)));
    let (last, text) = match item {
        Some((item, what)) => {
            let an_item = is(item, &format!("an item (it has {what})"));
            let mut both = [(message, a_message), (item, an_item)];
            both.sort_unstable();
            let [(_, first), (last, second)] = both;
            let text = format!(
                "messages and items are mixed: {first}, {second}; write all as messages or all as items"
            );
            (last, text)
        }
        None => (
            message,
            format!("{a_message} in `items`; call the list `messages`, or write items"),
        ),
    };
    layout.fault(last, "", text).kind(Kind::Mixed)
}

/// The names of all shapes.
fn names() -> String {
    Shape::ALL.map(Shape::name).join(", ")
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
                "not a message of any known shape: it has {}; messages have `role` or `type`, items have `content`. If the shape is known, name it: {}",
                if keys.is_empty() {
                    "no fields".to_owned()
                } else {
                    keys.join(", ")
                },
                names()
            )
        }
        other => format!("must be an object, not {}", kind_of(other)),
    };
    layout.fault(index, "", message)
}

/// A value's type, in words.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The block types that only one shape has.
const BLOCKS: [(Shape, &[&str]); 3] = [
    (
        Shape::Anthropic,
        &[
            "tool_use",
            "tool_result",
            "thinking",
            "redacted_thinking",
            "server_tool_use",
            "document",
            "image",
        ],
    ),
    (
        Shape::OpenAi,
        &["image_url", "input_audio", "file", "refusal"],
    ),
    (
        Shape::Responses,
        &["input_text", "output_text", "input_image", "input_file"],
    ),
];

/// What in one value speaks for a shape; `None` for a message that several shapes have.
fn sign_of(value: &Value) -> Option<(Shape, String)> {
    let has = |key: &str| value.get(key).is_some();
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let kind = text("type");
    if has("lc") {
        return Some((Shape::LangChain, "`lc`".to_owned()));
    }
    let Some(role) = text("role") else {
        let item = |key: &str| Some((Shape::Items, format!("`{key}` without `role`")));
        return match kind {
            _ if has("tokens") => item(if has("content") { "content" } else { "tokens" }),
            Some(kind)
                if crate::read::langchain::is_type(kind) && (has("data") || has("content")) =>
            {
                Some((Shape::LangChain, format!("the type {kind}")))
            }
            Some(kind) if kind.contains('_') || kind == "reasoning" => {
                Some((Shape::Responses, format!("the type {kind}")))
            }
            None if has("content") => item("content"),
            _ => None,
        };
    };
    if kind == Some("message") {
        return Some((Shape::Responses, "the type message".to_owned()));
    }
    if let "tool" | "function" = role {
        return Some((Shape::OpenAi, format!("the role {role}")));
    }
    for key in ["tool_calls", "function_call", "tool_call_id"] {
        if value.get(key).is_some_and(|value| !value.is_null()) {
            return Some((Shape::OpenAi, format!("`{key}`")));
        }
    }
    let blocks = value.get("content").and_then(Value::as_array)?;
    blocks.iter().find_map(|block| {
        let kind = block.get("type").and_then(Value::as_str)?;
        let (shape, _) = BLOCKS.iter().find(|(_, kinds)| kinds.contains(&kind))?;
        Some((*shape, format!("a block of type {kind}")))
    })
}
