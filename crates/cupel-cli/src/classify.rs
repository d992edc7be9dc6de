//! Classification of an input as a chat, items or a request. Every command uses this one.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

use cupel::ContextItem;
use cupel::config::{ConfigError, Document, Format, RequestConfig};
use cupel_chat::{Chat, ChatError, Shape};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::failure::Failure;
use crate::input::{ReadArgs, Source};

/// The class of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// A chat from any provider.
    Chat,
    /// Items.
    Items(Form),
}

/// How items are written in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// An array.
    Array,
    /// One item per line.
    Lines,
    /// A request document.
    Request,
}

/// A class and the evidence for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Classified {
    pub(crate) class: Class,
    pub(crate) evidence: Evidence,
}

/// What decided the class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// An option of the command line.
    Option(String),
    /// A key of the document, such as `messages`.
    Key(&'static str),
    /// A description of the first message or item, such as "`role`".
    Element(String),
    /// The keys of the first value are not those of an item. A chat may be inside of it.
    UnknownKeys,
    /// Nothing: the text has no value with keys.
    Missing,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(name) => write!(f, "`{name}`"),
            Self::Key(name) => write!(f, "`{name}`"),
            Self::Element(description) => f.write_str(description),
            Self::UnknownKeys => f.write_str("no key of an item"),
            Self::Missing => Ok(()),
        }
    }
}

/// An input that was read.
pub(crate) enum Input {
    Chat(Box<Chat>),
    Items {
        form: Form,
        request: Box<RequestConfig>,
        /// Whether tokens that the input does not state were counted.
        counted: bool,
    },
}

impl Classified {
    /// Classifies a text by `--shape` and `--at`, else by the keys of its first value.
    ///
    /// Text that is not JSON holds items: chats are read as JSON only.
    pub(crate) fn of(source: &Source, args: &ReadArgs) -> Self {
        let form = Form::of(source);
        let new = |class, evidence| Self { class, evidence };
        let of_shape = |shape| match shape {
            Shape::Items => Class::Items(form),
            _ => Class::Chat,
        };
        match (args.shape, &args.at) {
            (_, Some(at)) => return new(Class::Chat, Evidence::Option(format!("--at {at}"))),
            (Some(shape), None) => {
                return new(
                    of_shape(shape),
                    Evidence::Option(format!("--shape {shape}")),
                );
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
                // The chat reader names the fields of what it does not know.
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
    pub(crate) fn read(
        source: &Source,
        classified: &Classified,
        args: &ReadArgs,
        count: &dyn Fn(&str) -> i64,
    ) -> Result<Self, Failure> {
        let form = match classified.class {
            Class::Chat => {
                let at = args.at.as_deref().unwrap_or_default();
                let chat = Chat::parse_at(&source.text, at, args.shape);
                let chat = chat.map_err(|error| {
                    let policy = is_policy(source).then(|| policy_failure(source));
                    policy.unwrap_or_else(|| chat_failure(source, error))
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
            Form::Lines if classified.evidence == Evidence::Key("items") => {
                return Err(
                    Failure::input("these are requests, one per line, not items")
                        .in_file(&source.name)
                        .help("`cupel batch` answers many requests"),
                );
            }
            Form::Lines => lines(source, &count)?,
            Form::Array | Form::Request => Document::parse(&source.text, source.format())
                .and_then(|document| document.request_counted(&count))
                .map_err(|error| unreadable(source, source, &error))?,
        };
        Ok(Self::Items {
            form,
            request: Box::new(request),
            counted: counted.get(),
        })
    }
}

/// Reads one item per line.
fn lines(source: &Source, count: &dyn Fn(&str) -> i64) -> Result<RequestConfig, Failure> {
    let mut items: Vec<ContextItem> = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let item = Document::parse(line, Format::Json)
            .and_then(|document| document.item_counted(count))
            .map_err(|error| {
                let line = Source {
                    name: source.name.clone(),
                    text: line.to_owned(),
                    line: Some(index + 1),
                    had_byte_order_mark: false,
                };
                unreadable(source, &line, &error)
            });
        items.push(item?);
    }
    Ok(RequestConfig {
        items,
        ..RequestConfig::default()
    })
}

/// Says why items cannot be read: messages among them, a chat that is not JSON, or a fault in `part`.
fn unreadable(source: &Source, part: &Source, error: &ConfigError) -> Failure {
    let text = source.text.trim_start();
    if is_policy(source) {
        return policy_failure(source);
    }
    if source.format() != Format::Json && !is_request(source) {
        return match Chat::parse(&source.text, None) {
            Err(error) if error.is_foreign() => chat_failure(source, error),
            _ => Failure::input("this is plain text, not a chat")
                .at(source.place(1, 1, String::new()))
                .help(
                    "chats and items are JSON, one object per line too; requests are also TOML or YAML",
                ),
        };
    }
    if source.format() == Format::Json {
        return match Chat::parse(&source.text, None) {
            Err(error) if error.is_mixed() || error.is_foreign() => chat_failure(source, error),
            _ if text.starts_with(['{', '[']) => part.failure(error),
            _ => part.failure(error).or_help(
                "chats and items are JSON, one object per line too; requests are also TOML or YAML",
            ),
        };
    }
    match Chat::parse(&source.text, None) {
        Err(error) if error.is_foreign() => return chat_failure(source, error),
        _ => {}
    }
    let path = error.path();
    let key = path.rsplit(['.', ']']).next().unwrap_or_default();
    match key {
        "messages" | "input" | "role" => Failure::input(format!(
            "a chat must be JSON; this text is not, and has `{key}`"
        ))
        .in_file(&source.name)
        .help("convert it first, such as with `yq -o json`"),
        _ => part.failure(error),
    }
}

fn is_policy(source: &Source) -> bool {
    source.policy().is_ok()
}

fn policy_failure(source: &Source) -> Failure {
    Failure::input("this is a policy, not a chat or items")
        .at(source.whole())
        .help(format!("name the chat, and add --policy {}", source.name))
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

fn chat_failure(source: &Source, error: ChatError) -> Failure {
    let help = match &error.pointers[..] {
        [] if error.is_many() => {
            let one = if source.text.trim_start().starts_with('[') {
                "--at /0 names the first one"
            } else {
                "`sed -n 1p` prints the first one"
            };
            Some(format!("`cupel fit` reads them all; {one}"))
        }
        [] if error.is_ambiguous() => Some("name it with --shape".to_owned()),
        [] => None,
        pointers => Some(format!(
            "name the place of the chat: --at {}",
            pointers.join(" or --at ")
        )),
    };
    let message = error.sentence();
    let place = source.place(error.place.line, error.place.column, error.path);
    let failure = Failure::input(message).at(place);
    match help {
        Some(help) => failure.help(help),
        None => failure,
    }
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
            let source = Source {
                name: name.to_owned(),
                text: text.to_owned(),
                line: None,
                had_byte_order_mark: false,
            };
            let found = Classified::of(&source, &ReadArgs::default());
            let found = (found.class, found.evidence.to_string());
            assert_eq!(found, (class, evidence.to_owned()), "{text}");
        }
    }
}
