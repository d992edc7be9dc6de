//! The chat formats: one file per format, one row each in [`formats!`].
//!
//! | file | format |
//! |---|---|
//! | `openai.rs` | OpenAI Chat Completions |
//! | `responses.rs` | OpenAI Responses |
//! | `anthropic.rs` | Anthropic Messages |
//! | `langchain.rs` | LangChain messages |
//! | `claude_code.rs` | Claude Code transcripts |
//! | `codex.rs` | Codex rollouts |
//! | `gemini.rs` | Gemini contents |
//! | `bedrock.rs` | Amazon Bedrock Converse |
//! | `vercel.rs` | Vercel AI SDK |
//! | `ollama.rs` | Ollama |
//! | `sharegpt.rs` | `ShareGPT` |
//! | `cohere.rs` | Cohere, version 2 |
//! | `items.rs` | items of the library |
//!
//! `detect.rs` finds the format of a text, `blocks.rs` reads the typed content blocks that most formats share,
//! `media.rs` reads images and files, `order.rs` links results to calls by order, and `fields.rs` reads fields of
//! JSON objects.
//!
//! # How to add a format
//!
//! 1. Its file, with a [`Format`] that states where it differs from the defaults of [`Format::new`]:
//!
//!    ```text
//!    pub(super) const FORMAT: Format = Format {
//!        lists: &["contents"],
//!        request_fields: &[
//!            RequestField::Prompt("systemInstruction", prompt),
//!            RequestField::Json("tools"),
//!        ],
//!        start: Start::User,
//!        evidence,
//!        marker,
//!        ..Format::new("gemini", "Gemini", read)
//!    };
//!    ```
//!
//!    `read` turns one element of the list into a [`ParsedMessage`]: role, text (`push_slot` with the path
//!    of the string if it may be shortened, else `push_text`), calls and results with their ids, images.
//!    `evidence` returns what in an element occurs in this format only; evidence that another format has
//!    too is settled by [`Format::refines`].
//! 2. Below: its `mod` line and its row in [`formats!`], which makes the variant of [`Shape`].
//! 3. Its tests; see "A chat format" in ARCHITECTURE.md.
//!
//! Nothing else in this crate names a format: layout, detection, rules, markers and token counts read its row.

mod anthropic;
mod bedrock;
mod blocks;
mod claude_code;
mod codex;
mod cohere;
mod detect;
mod fields;
mod gemini;
mod items;
mod langchain;
mod media;
mod ollama;
mod openai;
mod order;
mod responses;
mod sharegpt;
mod vercel;

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

pub(crate) use detect::{detect, evidence, foreign};
pub(crate) use fields::{Fault, annotate, read};

use crate::cache::Breakpoints;
use crate::chat::is_limit;
use crate::layout::{Layout, RequestFields};
use crate::message::{Image, ParsedMessage, Role};
use crate::tokens::image;

/// Makes [`Shape`] and `FORMATS`: one row per format, with the documentation of its variant and its file.
macro_rules! formats {
    ($(#[$doc:meta])* pub enum Shape { $($(#[$row:meta])* $variant:ident => $file:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Shape {
            $($(#[$row])* $variant,)*
        }

        /// The formats, in the order of [`Shape`].
        const FORMATS: [&Format; Shape::ALL.len()] = [$(&$file::FORMAT),*];

        impl Shape {
            /// All formats.
            pub const ALL: [Self; [$(stringify!($file)),*].len()] = [$(Self::$variant),*];
        }
    };
}

formats! {
    /// The format of a chat: which provider's messages it holds.
    ///
    /// ```
    /// use cupel_chat::Shape;
    ///
    /// assert_eq!("anthropic".parse::<Shape>(), Ok(Shape::Anthropic));
    /// assert_eq!(Shape::Responses.name(), "openai-responses");
    /// let error = "antropic".parse::<Shape>().unwrap_err().to_string();
    /// assert!(error.starts_with("unknown chat format \"antropic\"; expected one of openai, "));
    /// ```
    pub enum Shape {
        /// OpenAI Chat Completions: `messages` with roles, `tool_calls` and `tool` messages.
        OpenAi => openai,
        /// OpenAI Responses: `input` items such as `function_call` and `function_call_output`.
        Responses => responses,
        /// Anthropic Messages: content blocks such as `tool_use` and `tool_result`; the system prompt is
        /// a field of the request.
        Anthropic => anthropic,
        /// LangChain messages: `{"type": "human", "data": {...}}`, the flat form, and the serialized
        /// constructor (`"lc": 1`).
        LangChain => langchain,
        /// Claude Code transcripts: one record per line, some of which hold an Anthropic message.
        ClaudeCode => claude_code,
        /// Codex rollouts: one record per line, some of which hold an item of the Responses API.
        Codex => codex,
        /// Gemini: `contents` with `parts` such as `functionCall` and `functionResponse`.
        Gemini => gemini,
        /// Amazon Bedrock Converse: content blocks such as `toolUse` and `toolResult`.
        Bedrock => bedrock,
        /// Vercel AI SDK: UI messages with `parts`, and model messages with parts such as `tool-call`.
        Vercel => vercel,
        /// Ollama: `messages` with `images`, and tool calls without ids.
        Ollama => ollama,
        /// `ShareGPT`: `conversations` of messages with `from` and `value`.
        ShareGpt => sharegpt,
        /// Cohere Chat, version 2: `messages` with `tool_plan` and documents.
        Cohere => cohere,
        /// Items of the library.
        Items => items,
    }
}

/// Everything that differs between formats.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is one rule of a provider, independent of the others"
)]
pub(crate) struct Format {
    name: &'static str,
    /// The name in sentences.
    pub(crate) title: &'static str,
    /// Whether the elements are messages with rules. Items have only pins and groups.
    pub(crate) is_chat: bool,
    /// The keys of the list in a request.
    pub(crate) lists: &'static [&'static str],
    /// Reads a string in the place of the list, as one message.
    pub(crate) read_string: Option<fn(&str) -> ParsedMessage>,
    /// The other fields of the request that cost tokens.
    pub(crate) request_fields: &'static [RequestField],
    /// The fields that continue a conversation which the provider stores.
    pub(crate) continued_by: &'static [&'static str],
    /// Where a valid chat starts.
    pub(crate) start: Start,
    /// Which messages of the model belong to the next message.
    pub(crate) binding: Binding,
    /// Where the results of a tool call must be.
    pub(crate) result_place: ResultPlace,
    /// Whether the provider rejects two messages of one role in a row.
    pub(crate) rejects_repeated_roles: bool,
    /// Whether a system message in the list stays with the turn before and the answer after it.
    pub(crate) binds_system: bool,
    /// Returns whether the model thinks in the current turn, so that the provider requires all of it. Its
    /// arguments are the request and the messages after the last user turn.
    pub(crate) is_thinking: fn(&Layout, &[ParsedMessage]) -> bool,
    /// Whether no encoding of the provider is public, so that tokens are estimates.
    is_estimated: bool,
    /// Checks the order of the messages of a request. Returns the position of the first that is out of place.
    pub(crate) check_order: CheckOrder,
    /// Reads one message.
    read: fn(&Map<String, Value>) -> Result<ParsedMessage, Fault>,
    /// Gives ids to calls and results without one.
    pub(crate) link: Option<fn(&mut [ParsedMessage])>,
    /// The fields of its messages, to find the nearest format of an unknown message.
    fields: &'static [&'static str],
    /// Fields, at least one of which a message has; a message without content is not of this
    /// format.
    content_fields: &'static [&'static str],
    /// The fields with content that messages of other formats do not have, unless they list them too.
    own_fields: &'static [&'static str],
    /// Returns what in one element of the list is evidence of this format.
    evidence: fn(&Value) -> Option<String>,
    /// Returns what in the other fields of the request is evidence of this format.
    request_evidence: fn(&Layout) -> Option<String>,
    /// The types of content blocks that occur in this format only.
    block_types: &'static [&'static str],
    /// The formats whose evidence occurs in this one too. Evidence of both is evidence of this one.
    refines: &'static [Shape],
    /// Returns a marker message from its role, its text as JSON, and a message whose notation it uses:
    /// the role as written, and the message as JSON.
    pub(crate) marker: fn(Role, &str, &Value) -> (&'static str, String),
    /// How a request marks what the prompt cache of the provider is to store; `None` if it has no breakpoints.
    pub(crate) breakpoints: Option<Breakpoints>,
    /// Returns the tokens of an image.
    pub(crate) image_tokens: fn(Image) -> i64,
    /// How the messages are found in a transcript.
    pub(crate) transcript: Option<&'static Transcript>,
}

/// A transcript: one record per line. Some hold a message; the others are passed through.
pub(crate) struct Transcript {
    /// The key of the message in its record.
    pub(crate) message: &'static str,
    /// Returns what a record is in the chat.
    pub(crate) classify: fn(&Map<String, Value>) -> Record,
    /// Adds what the record says about its message.
    pub(crate) annotate: fn(&Map<String, Value>, &mut ParsedMessage),
    /// Returns the fields of the request that a record states. Later records count.
    pub(crate) request_fields: fn(&Map<String, Value>) -> RequestFields,
    /// The keys of the id of a record and of the record before it.
    pub(crate) parent: Option<(&'static str, &'static str)>,
    /// Returns the record of a marker from its message and the next record.
    pub(crate) marker: fn(Value, &Map<String, Value>) -> Map<String, Value>,
}

/// What a record of a transcript is in the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    /// It holds a message.
    Message,
    /// It holds a message that stands for all messages before it.
    Summary,
    /// The messages before it are no longer sent.
    Boundary,
    /// It holds a message of another chat, such as that of a subagent.
    Side,
    /// It holds no message.
    Other,
}

type CheckOrder = fn(&[ParsedMessage]) -> Result<(), (usize, Fault)>;

/// A field of a request that costs tokens.
#[derive(Clone, Copy)]
pub(crate) enum RequestField {
    /// Instructions, which are read as one message.
    Prompt(&'static str, fn(&Value) -> Result<ParsedMessage, Fault>),
    /// Definitions of tools, counted as JSON without white space.
    Json(&'static str),
}

impl RequestField {
    /// Returns the name of the field.
    pub(crate) fn key(&self) -> &'static str {
        match self {
            Self::Prompt(key, _) | Self::Json(key) => key,
        }
    }
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

/// Which messages of the model are kept or dropped together with the next message. Before a compaction only
/// reasoning is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binding {
    /// None of them.
    Nothing,
    /// Consecutive items of the model: reasoning, its tool calls, its text.
    ModelItems,
    /// Those before a message that is not a user turn. A window ends on a message of the model only if the
    /// chat does.
    UntilUserTurn,
    /// All of them, because roles alternate. The first user turn always stays.
    Next,
}

/// Where the results of a tool call must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultPlace {
    /// Anywhere after the call.
    Anywhere,
    /// Before the next user turn.
    BeforeUserTurn,
    /// Right after the call, or after other results.
    AfterCall,
}

impl Format {
    /// Returns whether messages of the model and of the user alternate.
    pub(crate) fn alternates(&self) -> bool {
        self.binding == Binding::Next
    }

    /// Returns a format of `messages` with the roles `user` and `assistant`, no rules beyond those of all
    /// formats, and no evidence.
    const fn new(
        name: &'static str,
        title: &'static str,
        read: fn(&Map<String, Value>) -> Result<ParsedMessage, Fault>,
    ) -> Self {
        Self {
            name,
            title,
            is_chat: true,
            lists: &["messages"],
            read_string: None,
            request_fields: &[
                RequestField::Json("tools"),
                RequestField::Json("functions"),
                RequestField::Prompt("system", anthropic::system),
                RequestField::Prompt("instructions", anthropic::system),
                // The schema of the answer: OpenAI Chat, OpenAI Responses, Anthropic.
                RequestField::Prompt("response_format", answer_schema),
                RequestField::Prompt("text", answer_schema),
                RequestField::Prompt("text_format", answer_schema),
                RequestField::Prompt("output_format", answer_schema),
                RequestField::Prompt("output_config", answer_schema),
            ],
            continued_by: &[],
            start: Start::Any,
            binding: Binding::Nothing,
            result_place: ResultPlace::AfterCall,
            rejects_repeated_roles: false,
            binds_system: false,
            is_thinking: |_, _| false,
            is_estimated: true,
            check_order: |_| Ok(()),
            read,
            link: None,
            fields: &["role", "content"],
            content_fields: &[],
            own_fields: &[],
            evidence: |_| None,
            request_evidence: |_| None,
            block_types: &[],
            refines: &[],
            marker: text_marker,
            breakpoints: None,
            image_tokens: image::openai_tokens,
            transcript: None,
        }
    }
}

/// The fields of requests that are read beside those of [`Format`]: the model, whether the model thinks, and what only
/// one provider has.
const OTHER_FIELDS: [&str; 9] = [
    "model",
    "modelId",
    "thinking",
    "anthropic_version",
    "cache_control",
    "citation_options",
    "keep_alive",
    "safety_mode",
    "strict_tools",
];

/// Returns whether a chat reader looks at a field of a request with that name: the list of messages, what costs
/// tokens, limits, and what tells formats apart. A caller whose requests hold other values than JSON, such as a client's
/// timeout, can leave out the other fields: the windows are the same.
///
/// ```
/// use cupel_chat::is_request_field;
///
/// assert!(is_request_field("messages") && is_request_field("tools") && is_request_field("max_tokens"));
/// assert!(!is_request_field("temperature"));
/// ```
pub fn is_request_field(name: &str) -> bool {
    let reads = |shape: Shape| {
        let format = shape.format();
        format.lists.contains(&name)
            || format.continued_by.contains(&name)
            || format
                .request_fields
                .iter()
                .any(|field| field.key() == name)
    };
    OTHER_FIELDS.contains(&name) || is_limit(name) || Shape::ALL.into_iter().any(reads)
}

/// Reads the schema of the answer, which is part of the prompt: in one of these places, or the value itself.
fn answer_schema(value: &Value) -> Result<ParsedMessage, Fault> {
    let places = ["/json_schema/schema", "/format/schema", "/schema"];
    let mut found = places.into_iter().filter_map(|place| value.pointer(place));
    // `{"type": "json_object"}` asks for JSON without a schema.
    let itself = || Some(value).filter(|value| value.get("properties").is_some());
    let Some(schema) = found.next().or_else(itself) else {
        return fields::fault("", "the answer has no schema");
    };
    let mut message = ParsedMessage::new(Role::System, "system");
    message.push_text(&schema.to_string());
    Ok(message)
}

/// Writes a marker with the roles `user` and `assistant`, and its text as the content.
fn text_marker(role: Role, text: &str, _: &Value) -> (&'static str, String) {
    let label = if role == Role::User {
        "user"
    } else {
        "assistant"
    };
    (label, format!(r#"{{"role":"{label}","content":{text}}}"#))
}

impl Shape {
    pub(crate) fn format(self) -> &'static Format {
        FORMATS[self as usize]
    }

    /// Returns whether the elements are messages with rules.
    pub(crate) fn is_chat(self) -> bool {
        self.format().is_chat
    }

    /// Returns whether an element is evidence of this format.
    pub(crate) fn is_evident(self, element: &Value) -> bool {
        (self.format().evidence)(element).is_some()
    }

    /// Returns the name that [`from_str`](Self::from_str) parses.
    pub fn name(self) -> &'static str {
        self.format().name
    }

    /// Returns what an element of the list is called: `message` or `item`.
    pub fn unit(self) -> &'static str {
        if self.is_chat() { "message" } else { "item" }
    }

    /// Returns the keys that the list of messages has in a request, such as `messages`.
    pub fn lists(self) -> &'static [&'static str] {
        self.format().lists
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

    /// Returns whether no encoding of the format's provider is public, so that tokens are estimates.
    pub fn is_estimated(self) -> bool {
        self.format().is_estimated
    }

    /// Returns whether a request of the format can have breakpoints of the provider's prompt cache.
    pub fn has_cache_breakpoints(self) -> bool {
        self.format().breakpoints.is_some()
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
