//! [`Input`]: the one decision whether a text is a chat, items or a request, and its reading.

use std::cell::Cell;
use std::collections::BTreeMap;

use cupel::ContextItem;
use cupel::config::{ConfigError, Document, Format, RequestConfig};
use cupel_chat::{Chat, ChatError, Shape};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::argument::{Argument, Dialect};
use crate::error::{Error, Fault};
use crate::options::ReadOptions;
use crate::source::Source;

/// The class of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A chat from any provider.
    Chat,
    /// Items.
    Items(Form),
}

/// How items are written in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// An array.
    Array,
    /// One item per line.
    Lines,
    /// A request document.
    Request,
}

/// A class and the evidence for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classified {
    /// The class.
    pub class: Class,
    /// What decided it.
    pub evidence: Evidence,
}

/// What decided the class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// An argument of the caller and its value.
    Argument(Argument, String),
    /// A key of the document, such as `messages`.
    Key(&'static str),
    /// A description of the first message or item, such as "`role`".
    Element(String),
    /// The keys of the first value are not those of an item. A chat may be inside of it.
    UnknownKeys,
    /// Nothing: the text has no value with keys.
    Missing,
}

impl Evidence {
    /// Returns the evidence in the words of a door.
    pub(crate) fn describe(&self, dialect: &dyn Dialect) -> String {
        match self {
            Self::Argument(argument, value) => {
                format!("`{}`", dialect.with_value(*argument, value))
            }
            Self::Key(name) => format!("`{name}`"),
            Self::Element(description) => description.clone(),
            Self::UnknownKeys => "no key of an item".to_owned(),
            Self::Missing => String::new(),
        }
    }
}

/// An input that was read.
pub enum Input {
    /// A chat.
    Chat(Box<Chat>),
    /// Items, or a request document with items.
    Items {
        /// How they are written.
        form: Form,
        /// The items, and the budget and the policy of a request.
        request: Box<RequestConfig>,
        /// Whether tokens that the input does not state were counted.
        counted: bool,
    },
}

impl Classified {
    /// Classifies a text by `--shape` and `--at`, else by the keys of its first value.
    ///
    /// Text that is not JSON holds items: chats are read as JSON only.
    pub fn of(source: &Source, args: &ReadOptions) -> Self {
        let form = Form::of(source);
        let new = |class, evidence| Self { class, evidence };
        let of_shape = |shape| match shape {
            Shape::Items => Class::Items(form),
            _ => Class::Chat,
        };
        match (args.shape, &args.at) {
            (_, Some(at)) => {
                return new(Class::Chat, Evidence::Argument(Argument::At, at.clone()));
            }
            (Some(shape), None) => {
                let evidence = Evidence::Argument(Argument::Shape, shape.to_string());
                return new(of_shape(shape), evidence);
            }
            (None, None) => {}
        }
        let undecided = || new(Class::Items(form), Evidence::Missing);
        let Some(first) = first_value(source) else {
            return undecided();
        };
        if form != Form::Array
            && let Ok(keys) = serde_json::from_str::<BTreeMap<String, &RawValue>>(first.get())
        {
            let has = |key: &&&'static str| keys.contains_key(**key);
            // A list of messages or of items decides; the order of the formats decides between two of them.
            let list = |shape: Shape| Some((shape, shape.lists().iter().find(has)?));
            if let Some((shape, key)) = Shape::ALL.into_iter().find_map(list) {
                return new(of_shape(shape), Evidence::Key(key));
            }
            if let Some(key) = ["budget", "policy"].iter().find(has) {
                return new(Class::Items(form), Evidence::Key(key));
            }
        }
        match serde_json::from_str::<Value>(first.get()) {
            Ok(element @ Value::Object(_)) => match Shape::of_element(&element) {
                Some((shape, evidence)) => new(of_shape(shape), Evidence::Element(evidence)),
                None if element.get("role").is_some() => {
                    new(Class::Chat, Evidence::Element("`role`".to_owned()))
                }
                // The error of the chat reader names the unknown fields.
                None => new(Class::Chat, Evidence::UnknownKeys),
            },
            _ => undecided(),
        }
    }
}

impl Form {
    fn of(source: &Source) -> Self {
        let text = source.text.trim_start();
        if source.format() != Format::Json {
            return if text.starts_with('-') {
                Self::Array
            } else {
                Self::Request
            };
        }
        if text.starts_with('[') {
            Self::Array
        } else if is_one_per_line(text) {
            Self::Lines
        } else {
            Self::Request
        }
    }
}

/// Whether the first line is a complete object that is an item or one of several.
fn is_one_per_line(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Keys {
        content: Option<IgnoredAny>,
        tokens: Option<IgnoredAny>,
    }
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    let is_object = |line: &str| line.trim_start().starts_with('{');
    is_object(first)
        && serde_json::from_str::<Keys>(first).is_ok_and(|keys| {
            let is_item = keys.content.is_some() || keys.tokens.is_some();
            is_item || lines.next().is_some_and(is_object)
        })
}

/// Returns the first element of a JSON array, else the first JSON value.
fn first_value(source: &Source) -> Option<&RawValue> {
    if source.format() != Format::Json {
        return None;
    }
    let text = source.text.trim_start();
    let text = text.strip_prefix('[').unwrap_or(text);
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    values.next()?.ok()
}

impl Input {
    /// Reads a classified text. `count` counts the tokens of an item that does not state them.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, with its place.
    pub fn read(
        source: &Source,
        classified: &Classified,
        args: &ReadOptions,
        count: &dyn Fn(&str) -> i64,
    ) -> Result<Self, Error> {
        let form = match classified.class {
            Class::Chat => {
                let at = args.at.as_deref().unwrap_or_default();
                let chat = Chat::parse_at(&source.text, at, args.shape);
                let chat = chat.map_err(|error| {
                    let policy = is_policy(source).then(|| policy_error(source));
                    policy.unwrap_or_else(|| chat_error(source, error))
                })?;
                return Ok(Self::Chat(Box::new(chat)));
            }
            Class::Items(form) => form,
        };
        let counted = Cell::new(false);
        let count = |content: &str| {
            counted.set(true);
            count(content)
        };
        let request = match form {
            // A list of requests, one per line, is for `batch`.
            Form::Lines if classified.evidence == Evidence::Key("items") => {
                let place = source.whole_file();
                return Err(Error::new(Fault::RequestLines).at(place));
            }
            Form::Lines => lines(source, &count)?,
            Form::Array | Form::Request => Document::parse(&source.text, source.format())
                .and_then(|document| document.request_counted(&count))
                .map_err(|error| unreadable(source, source, error))?,
        };
        Ok(Self::Items {
            form,
            request: Box::new(request),
            counted: counted.get(),
        })
    }
}

/// Reads one item per line.
fn lines(source: &Source, count: &dyn Fn(&str) -> i64) -> Result<RequestConfig, Error> {
    let mut items: Vec<ContextItem> = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let item = Document::parse(line, Format::Json)
            .and_then(|document| document.item_counted(count))
            .map_err(|error| {
                let line = Source {
                    line: Some(index + 1),
                    ..Source::new(&source.name, line)
                };
                unreadable(source, &line, error)
            });
        items.push(item?);
    }
    Ok(RequestConfig {
        items,
        ..RequestConfig::default()
    })
}

/// Returns the error of items that cannot be read. `part` is the line with the fault, or all of `source`.
///
/// A text is often of another kind than the caller believes, so the likely mistakes come first: a policy, a chat
/// of an unknown format, items with messages among them, plain text, and a chat in YAML or TOML. Otherwise the
/// reader's error is returned.
fn unreadable(source: &Source, part: &Source, error: ConfigError) -> Error {
    let text = source.text.trim_start();
    if is_policy(source) {
        return policy_error(source);
    }
    let is_json = source.format() == Format::Json;
    let chat = Chat::parse(&source.text, None);
    if let Err(chat) = chat
        && (chat.is_foreign() || (is_json && chat.is_mixed()))
    {
        return chat_error(source, chat);
    }
    if is_json {
        let place = part.place_of(&error);
        let fault = if text.starts_with(['{', '[']) {
            Fault::Document(error)
        } else {
            Fault::DocumentOrJson(error)
        };
        return Error::new(fault).at(place);
    }
    if !is_request(source) {
        return Error::new(Fault::PlainText).at(source.place(1, 1, String::new()));
    }
    let path = error.path();
    let key = path.rsplit(['.', ']']).next().unwrap_or_default();
    match key {
        "messages" | "input" | "role" => {
            let key = key.to_owned();
            Error::new(Fault::ChatNotJson { key }).at(source.whole_file())
        }
        _ => part.fault(error),
    }
}

fn is_policy(source: &Source) -> bool {
    source.policy().is_ok()
}

fn policy_error(source: &Source) -> Error {
    let name = source.name.clone();
    Error::new(Fault::PolicyAsInput { name }).at(source.whole())
}

/// Returns whether a text that is not JSON is meant as a request: by its file extension or by a key of one.
fn is_request(source: &Source) -> bool {
    const KEYS: [&str; 7] = [
        "items", "budget", "policy", "query", "messages", "input", "content",
    ];
    let is_key = |line: &str| {
        let line = line.trim_start_matches([' ', '-', '[']);
        let end = line.find([':', '=', ']', '.']).unwrap_or(0);
        KEYS.contains(&line[..end].trim_end())
    };
    Format::of_path(&source.name).is_some() || source.text.lines().any(is_key)
}

fn chat_error(source: &Source, error: ChatError) -> Error {
    let place = source.place(error.place.line, error.place.column, error.path.clone());
    let is_array = source.text.trim_start().starts_with('[');
    Error::new(Fault::Chat { error, is_array }).at(place)
}

/// Returns the text of every item as it stands in the source; `None` if the source is not JSON.
pub(crate) fn raw_items(source: &Source, form: Form) -> Option<Vec<&str>> {
    #[derive(Deserialize)]
    struct Request<'a> {
        #[serde(borrow)]
        items: Vec<&'a RawValue>,
    }
    if source.format() != Format::Json {
        return None;
    }
    let items: Vec<&RawValue> = match form {
        Form::Array => serde_json::from_str(&source.text).ok()?,
        Form::Request => {
            serde_json::from_str::<Request<'_>>(&source.text)
                .ok()?
                .items
        }
        Form::Lines => {
            let items = serde_json::Deserializer::from_str(&source.text).into_iter();
            items.collect::<Result<_, _>>().ok()?
        }
    };
    Some(items.into_iter().map(RawValue::get).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::argument::Plain;

    #[test]
    fn the_first_value_decides() {
        use Class::{Chat, Items};
        let cases = [
            (
                "a.json",
                r#"{"messages": [], "items": []}"#,
                Chat,
                "`messages`",
            ),
            ("a.json", r#"{"input": "hi"}"#, Chat, "`input`"),
            (
                "a.json",
                r#"{"items": []}"#,
                Items(Form::Request),
                "`items`",
            ),
            (
                "a.json",
                r#"[{"role": "user", "content": "a"}]"#,
                Chat,
                "`role`",
            ),
            ("a.json", r#"[{"lc": 1}]"#, Chat, "`lc`"),
            (
                "a.json",
                r#"[{"type": "human", "content": "a"}]"#,
                Chat,
                "the type `human`",
            ),
            (
                "a.json",
                r#"[{"type": "note", "content": "a", "tokens": 1}]"#,
                Items(Form::Array),
                "`content` without `role`",
            ),
            (
                "a.json",
                r#"{"tokens": 1}"#,
                Items(Form::Lines),
                "`tokens` without `role`",
            ),
            (
                "a.jsonl",
                "{\"role\": \"user\"}\n{\"role\": \"user\"}",
                Chat,
                "`role`",
            ),
            (
                "a.json",
                r#"[{"speaker": "Ann"}]"#,
                Chat,
                "no key of an item",
            ),
            ("a.json", "[]", Items(Form::Array), ""),
            ("a.json", r#"[{"role": "us"#, Items(Form::Array), ""),
            ("a.yaml", "items: []", Items(Form::Request), ""),
            ("a.yaml", "- content: a", Items(Form::Array), ""),
        ];
        for (name, text, class, evidence) in cases {
            let source = Source::new(name, text);
            let found = Classified::of(&source, &ReadOptions::default());
            let found = (found.class, found.evidence.describe(&Plain));
            assert_eq!(found, (class, evidence.to_owned()), "{text}");
        }
    }
}
