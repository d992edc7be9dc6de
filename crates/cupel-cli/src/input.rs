//! What the command reads: files and standard input, as text with a name.

use std::cell::Cell;
use std::io::Read as _;
use std::path::Path;

use cupel::config::{ConfigError, Document, Format, PolicyConfig, RequestConfig};
use cupel::{ContextBudget, ContextItem};
use cupel_chat::{Chat, ChatError, Shape};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::failure::{Exit, Failure, Place};

/// A text and where it came from.
#[derive(Debug)]
pub(crate) struct Source {
    /// The name of the file as the user gave it.
    pub(crate) name: String,
    pub(crate) text: String,
    /// The line of the file at which the text begins, from 1.
    pub(crate) first_line: usize,
}

/// How items are written in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A list.
    Array,
    /// One a line.
    Lines,
    /// In a request document.
    Request,
}

/// What stands beside items.
#[derive(Debug)]
pub(crate) struct Plain {
    pub(crate) budget: Option<ContextBudget>,
    pub(crate) policy: Option<PolicyConfig>,
    /// Whether every item says its tokens.
    pub(crate) counted: bool,
}

impl Source {
    /// Reads a file, or standard input for `-`.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let read = if path == Path::new("-") {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map(|_| bytes)
        } else {
            std::fs::read(path)
        };
        let bytes = read.map_err(|error| Failure::io("read", path, &error))?;
        Self::new(name(path), bytes)
    }

    fn new(name: String, bytes: Vec<u8>) -> Result<Self, Failure> {
        let text = decode(&name, 1, bytes)?;
        if text.trim().is_empty() {
            return Err(Failure::input("there is nothing in it")
                .in_file(&name)
                .help("cupel reads chats and items in JSON, one a line too; requests and policies also in TOML or YAML"));
        }
        Ok(Self {
            name,
            text,
            first_line: 1,
        })
    }

    /// One line of a file of lines.
    pub(crate) fn line(name: &str, line: usize, bytes: Vec<u8>) -> Result<Self, Failure> {
        let text = decode(name, line, bytes)?;
        if text.trim().is_empty() {
            return Err(Failure::input("the line is empty").help("every line holds one request"));
        }
        Ok(Self {
            name: name.to_owned(),
            text,
            first_line: line,
        })
    }

    /// The items in the text and how they are written, with budget and policy if it is a request.
    pub(crate) fn items(&self) -> Result<(Form, RequestConfig), Failure> {
        if self.format() == Format::Json && self.has_items_by_line() {
            return Ok((Form::Lines, self.lines(Document::item)?));
        }
        let request = self.request()?;
        let is_list = self.text.trim_start().starts_with(['[', '-']);
        Ok((if is_list { Form::Array } else { Form::Request }, request))
    }

    /// Whether the first line is an object by itself, and one of several or an item.
    fn has_items_by_line(&self) -> bool {
        #[derive(Deserialize)]
        struct Signs {
            content: Option<IgnoredAny>,
            tokens: Option<IgnoredAny>,
        }
        let mut lines = self.text.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default();
        let is_object = |line: &str| line.trim_start().starts_with('{');
        let signs = serde_json::from_str::<Signs>(first);
        is_object(first)
            && signs.is_ok_and(|signs| {
                let is_item = signs.content.is_some() || signs.tokens.is_some();
                is_item || lines.next().is_some_and(is_object)
            })
    }

    /// What a text that holds items says beside them, which may be nothing; `None` if it is a chat.
    pub(crate) fn plain(&self, shape: Option<Shape>) -> Result<Option<Plain>, Failure> {
        let is_items = match shape {
            Some(shape) => shape == Shape::Items,
            None => !self.is_chat() && self.has_items(),
        };
        if !is_items {
            return Ok(None);
        }
        let uncounted = Cell::new(false);
        let count = |_: &str| {
            uncounted.set(true);
            0
        };
        let request = if self.has_items_by_line() {
            self.lines(|document| document.item_counted(&count))?
        } else {
            Document::parse(&self.text, Format::Json)
                .and_then(|document| document.request_counted(&count))
                .map_err(|error| self.unreadable(self, &error))?
        };
        Ok(Some(Plain {
            budget: request.budget,
            policy: request.policy,
            counted: !uncounted.get(),
        }))
    }

    /// Whether the text is JSON with items: a request document, or items in a list or one a line.
    fn has_items(&self) -> bool {
        #[derive(Deserialize)]
        struct Signs {
            items: Option<IgnoredAny>,
            content: Option<IgnoredAny>,
            tokens: Option<IgnoredAny>,
        }
        let signs: Option<Signs> = self.first();
        signs.is_some_and(|signs| {
            [signs.items, signs.content, signs.tokens]
                .iter()
                .any(Option::is_some)
        })
    }

    /// The first element of a list, else the first value, if it can be read as that.
    fn first<'t, T: Deserialize<'t>>(&'t self) -> Option<T> {
        let first: &RawValue = if self.text.trim_start().starts_with('[') {
            let list = serde_json::from_str::<Vec<&RawValue>>(&self.text);
            list.ok()?.into_iter().next()?
        } else {
            let mut values = serde_json::Deserializer::from_str(&self.text).into_iter();
            values.next()?.ok()?
        };
        serde_json::from_str(first.get()).ok()
    }

    /// The items of a text with one a line.
    fn lines<'t>(
        &'t self,
        item: impl Fn(&Document<'t>) -> Result<ContextItem, ConfigError>,
    ) -> Result<RequestConfig, Failure> {
        if self.first::<RawRequest<'_>>().is_some() {
            return Err(Failure::input("these are requests, one a line, not items")
                .in_file(&self.name)
                .help("`cupel batch` answers many requests"));
        }
        let mut items = Vec::new();
        for (index, line) in self.text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let read = Document::parse(line, Format::Json).and_then(|document| item(&document));
            let item = read.map_err(|error| {
                let line = Self {
                    name: self.name.clone(),
                    text: line.to_owned(),
                    first_line: index + 1,
                };
                self.unreadable(&line, &error)
            });
            items.push(item?);
        }
        Ok(RequestConfig {
            items,
            ..RequestConfig::default()
        })
    }

    /// The text as a request document or a list of items.
    pub(crate) fn request(&self) -> Result<RequestConfig, Failure> {
        Document::parse(&self.text, self.format())
            .and_then(|document| document.request())
            .map_err(|error| self.unreadable(self, &error))
    }

    /// Why items cannot be read: there are messages among them, or there is a fault in a part of the text.
    fn unreadable(&self, part: &Self, error: &ConfigError) -> Failure {
        match Chat::parse(&self.text, None) {
            Err(error) if error.is_mixed() => self.chat_failure(error),
            _ => part.failure(error),
        }
    }

    /// The text as a policy document.
    pub(crate) fn policy(&self) -> Result<PolicyConfig, Failure> {
        Document::parse(&self.text, self.format())
            .and_then(|document| document.policy_config())
            .map_err(|error| self.failure(&error))
    }

    /// Everything that is wrong with the text as a policy document.
    pub(crate) fn policy_faults(&self) -> Vec<Failure> {
        let faults = match Document::parse(&self.text, self.format()) {
            Ok(document) => document.policy_faults(),
            Err(error) => vec![error],
        };
        faults.iter().map(|fault| self.failure(fault)).collect()
    }

    /// Whether the text looks like a chat: a request with messages, or messages in a list or one a line.
    pub(crate) fn is_chat(&self) -> bool {
        #[derive(Deserialize)]
        struct Signs {
            messages: Option<IgnoredAny>,
            input: Option<IgnoredAny>,
            role: Option<IgnoredAny>,
            r#type: Option<IgnoredAny>,
            lc: Option<IgnoredAny>,
        }
        let signs: Option<Signs> = self.first();
        signs.is_some_and(|signs| {
            [
                signs.messages,
                signs.input,
                signs.role,
                signs.r#type,
                signs.lc,
            ]
            .iter()
            .any(Option::is_some)
        })
    }

    /// The text as a chat.
    pub(crate) fn chat(&self, shape: Option<Shape>) -> Result<Chat, Failure> {
        Chat::parse(&self.text, shape).map_err(|error| self.chat_failure(error))
    }

    fn chat_failure(&self, error: ChatError) -> Failure {
        let unclear = error.is_unclear();
        let message = if error.message.starts_with("must ") || error.message.starts_with("is ") {
            format!("`{}` {}", error.path, error.message)
        } else {
            error.message
        };
        let place = self.place(error.place.line, error.place.column, error.path);
        let failure = Failure::input(message).at(place);
        if unclear {
            failure.help("name it with --shape")
        } else if self.text.trim_start().starts_with(['{', '[']) {
            failure
        } else {
            failure.help("a chat is a JSON document or one JSON object per line")
        }
    }

    /// The text of every item as it stands there; `None` if it is not JSON.
    pub(crate) fn raw_items(&self, form: Form) -> Option<Vec<String>> {
        if self.format() != Format::Json {
            return None;
        }
        let items: Vec<&RawValue> = match form {
            Form::Array => serde_json::from_str(&self.text).ok()?,
            Form::Request => {
                serde_json::from_str::<RawRequest<'_>>(&self.text)
                    .ok()?
                    .items
            }
            Form::Lines => {
                let items = serde_json::Deserializer::from_str(&self.text).into_iter();
                items.collect::<Result<_, _>>().ok()?
            }
        };
        Some(
            items
                .into_iter()
                .map(|item| item.get().to_owned())
                .collect(),
        )
    }

    /// By the end of the name, else by the text.
    fn format(&self) -> Format {
        Format::of_path(&self.name).unwrap_or_else(|| Format::of_text(&self.text))
    }

    /// A fault of the text, with its place.
    pub(crate) fn failure(&self, error: &ConfigError) -> Failure {
        let failure = Failure::new(Exit::Input, error.message());
        let failure = match error.suggestion() {
            Some(name) => failure.help(format!("did you mean `{name}`?")),
            None => failure,
        };
        let path = error.path();
        let place = match error.position() {
            Some(position) => self.place(position.line, position.column, path),
            None => Place {
                file: self.name.clone(),
                path,
                ..Place::default()
            },
        };
        failure.at(place)
    }

    /// A place in the text, from 1.
    pub(crate) fn place(&self, line: usize, column: usize, path: String) -> Place {
        Place {
            file: self.name.clone(),
            line: line + self.first_line - 1,
            column,
            path,
            source: self.text.lines().nth(line - 1).map(str::to_owned),
        }
    }
}

/// A request document whose items are not looked into.
#[derive(Deserialize)]
struct RawRequest<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

/// What to call a file.
pub(crate) fn name(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

/// UTF-8 with or without a mark at its beginning; the text begins at that line of the file.
fn decode(name: &str, first_line: usize, bytes: Vec<u8>) -> Result<String, Failure> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(match text.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => text,
        }),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let bytes = error.into_bytes();
            let before = String::from_utf8_lossy(&bytes[..valid]);
            let line = before.rsplit('\n').next().unwrap_or_default();
            let failure = Failure::input(format!(
                "byte 0x{:02x} is not UTF-8",
                bytes.get(valid).copied().unwrap_or_default()
            ));
            let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
            Err(failure
                .at(Place {
                    file: name.to_owned(),
                    line: before.matches('\n').count() + first_line,
                    column: line.chars().count() + 1,
                    ..Place::default()
                })
                .help(if utf16 {
                    "the file is UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`"
                } else {
                    "save the file as UTF-8"
                }))
        }
    }
}
