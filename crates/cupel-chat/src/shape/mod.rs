//! The chat formats: one file per format, one row each in [`FORMATS`].
//!
//! | file | format |
//! |---|---|
//! | `openai.rs` | OpenAI Chat Completions |
//! | `responses.rs` | OpenAI Responses |
//! | `anthropic.rs` | Anthropic Messages |
//! | `langchain.rs` | LangChain messages |
//! | `items.rs` | items of the library |
//!
//! `detect.rs` finds the format of a text, `blocks.rs` reads the content blocks that the formats share,
//! and `fields.rs` reads fields of JSON objects.

pub(crate) mod anthropic;
mod blocks;
mod detect;
mod fields;
mod items;
mod langchain;
mod openai;
pub(crate) mod responses;

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

pub(crate) use detect::detect;
use detect::evidence;
pub(crate) use fields::{Fault, read};

use crate::layout::Layout;
use crate::message::{Image, ParsedMessage};

/// The format of a chat: which provider's messages it holds.
///
/// ```
/// use cupel_chat::Shape;
///
/// assert_eq!("anthropic".parse::<Shape>(), Ok(Shape::Anthropic));
/// assert_eq!(Shape::Responses.name(), "openai-responses");
/// assert_eq!(
///     "antropic".parse::<Shape>().unwrap_err().to_string(),
///     "unknown chat format \"antropic\"; expected one of openai, openai-responses, anthropic, langchain, items"
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// OpenAI Chat Completions: `messages` with roles, `tool_calls` and `tool` messages.
    OpenAi,
    /// OpenAI Responses: `input` items such as `function_call` and `function_call_output`.
    Responses,
    /// Anthropic Messages: content blocks such as `tool_use` and `tool_result`; the system prompt is a
    /// field of the request.
    Anthropic,
    /// LangChain messages: `{"type": "human", "data": {...}}`, the flat form, and the serialized
    /// constructor (`"lc": 1`).
    LangChain,
    /// Items of the library.
    Items,
}

/// The formats, in the order of [`Shape`].
const FORMATS: [&Format; 5] = [
    &openai::FORMAT,
    &responses::FORMAT,
    &anthropic::FORMAT,
    &langchain::FORMAT,
    &items::FORMAT,
];

/// Everything that differs between formats.
pub(crate) struct Format {
    shape: Shape,
    name: &'static str,
    /// Where a valid chat starts.
    pub(crate) start: Start,
    /// Whether consecutive items of the model belong together: reasoning, its tool calls, its text.
    pub(crate) groups_model_items: bool,
    /// Reads one message.
    read: fn(&Map<String, Value>) -> Result<ParsedMessage, Fault>,
    /// Returns what in one element of the list occurs in this format only.
    evidence: fn(&Value) -> Option<String>,
    /// Returns what in the other fields of the request occurs in this format only.
    request_evidence: fn(&Layout) -> Option<String>,
    /// The types of content blocks that occur in this format only.
    block_types: &'static [&'static str],
    /// Returns the tokens of an image.
    pub(crate) image_tokens: fn(Image) -> i64,
}

/// The first message after the system messages of a valid chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// Any message.
    Any,
    /// A user message.
    User,
    /// A user message, in a chat that has one.
    UserIfAny,
}

impl Shape {
    /// All formats.
    pub const ALL: [Self; 5] = [
        Self::OpenAi,
        Self::Responses,
        Self::Anthropic,
        Self::LangChain,
        Self::Items,
    ];

    pub(crate) fn format(self) -> &'static Format {
        FORMATS[self as usize]
    }

    /// Returns the name that [`from_str`](Self::from_str) parses.
    pub fn name(self) -> &'static str {
        self.format().name
    }

    /// Returns what an element of the list is called: `message` or `item`.
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
        evidence(element)
    }

    /// Returns whether the first message after the system messages must be a user message. The API of
    /// Anthropic requires it; LangChain messages may be sent there.
    pub fn starts_on_user(self) -> bool {
        self.format().start != Start::Any
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error of parsing the name of a [`Shape`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown chat format {0:?}; expected one of {names}", names = names())]
pub struct UnknownShape(String);

impl FromStr for Shape {
    type Err = UnknownShape;

    fn from_str(name: &str) -> Result<Self, UnknownShape> {
        let found = Self::ALL.into_iter().find(|shape| shape.name() == name);
        found.ok_or_else(|| UnknownShape(name.to_owned()))
    }
}

/// Returns the names of all formats.
fn names() -> String {
    Shape::ALL.map(Shape::name).join(", ")
}

/// Returns the type of a JSON value with its article.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_has_its_row() {
        for shape in Shape::ALL {
            assert_eq!(shape.format().shape, shape);
        }
        assert_eq!(FORMATS.len(), Shape::ALL.len());
    }
}
