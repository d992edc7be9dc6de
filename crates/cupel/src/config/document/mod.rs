//! Policies and requests as JSON, TOML and YAML text (feature `documents`).

mod json;
mod toml;
mod yaml;

use std::ops::Range;
use std::path::Path;

use super::data::Data;
use super::error::{ConfigError, ConfigErrorKind, Position, Step};
use super::registry::{CHAT, POLICY, Record, Shape};
use super::tree::{Entry, Node, Value, duplicate_key, repeated};
use super::{PolicyConfig, RequestConfig, faults, request};
use crate::{ChatSettings, ContextItem, Policy, RawValue};

/// The maximum nesting of objects and arrays.
const MAX_DEPTH: usize = 128;

/// A document format.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// JSON.
    Json,
    /// TOML.
    Toml,
    /// YAML 1.2: only `true` and `false` are booleans, `no` is a string.
    Yaml,
}

impl Format {
    /// Returns the format that the extension of a file names, if it does.
    ///
    /// ```
    /// use cupel::config::Format;
    ///
    /// assert_eq!(Format::of_path("policies/chat.yml"), Some(Format::Yaml));
    /// assert_eq!(Format::of_path("chat"), None);
    /// ```
    pub fn of_path(path: impl AsRef<Path>) -> Option<Self> {
        let extension = path.as_ref().extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "json" | "jsonl" => Some(Self::Json),
            "toml" => Some(Self::Toml),
            "yaml" | "yml" => Some(Self::Yaml),
            _ => None,
        }
    }

    /// Detects the format of a text: JSON if it starts with `{`, or with `[` that is not a TOML
    /// header; TOML if its first line is a header or an assignment; YAML otherwise.
    ///
    /// ```
    /// use cupel::config::Format;
    ///
    /// assert_eq!(Format::of_text(r#"{"scorer": {"type": "recency"}}"#), Format::Json);
    /// assert_eq!(Format::of_text("[scorer]\ntype = \"recency\""), Format::Toml);
    /// assert_eq!(Format::of_text("scorer: {type: recency}"), Format::Yaml);
    /// ```
    pub fn of_text(text: &str) -> Self {
        let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
        let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let Some(line) = lines.next() else {
            return Self::Json;
        };
        let bare =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '$' | '"' | ' ');
        let header = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        match (line.split_once('='), header) {
            _ if line.starts_with('{') => Self::Json,
            (_, Some((name, _)))
                if name.starts_with(|c: char| c == '[' || c.is_ascii_alphabetic()) =>
            {
                Self::Toml
            }
            _ if line.starts_with('[') => Self::Json,
            (Some((key, _)), _) if key.chars().all(bare) => Self::Toml,
            _ => Self::Yaml,
        }
    }
}

/// A parsed text in one of the formats.
///
/// ```
/// use cupel::config::{Document, Format};
///
/// let document = Document::parse("scorer:\n  type: composite\n  entrys: []\n", Format::Yaml)?;
/// let error = document.policy().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"line 3, column 3: scorer.entrys: unknown key "entrys"; did you mean "entries"?"#
/// );
/// let place = error.position().unwrap();
/// assert_eq!(&document.text()[place.span.clone()], "entrys");
/// # Ok::<(), cupel::config::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Document<'a> {
    text: &'a str,
    root: Node<'a>,
    /// The path of a part in its document, outermost first.
    path: Vec<Step>,
}

impl<'a> Document<'a> {
    /// Parses a text; a byte order mark at its start is skipped.
    ///
    /// # Errors
    ///
    /// [`ConfigErrorKind::Syntax`] or [`ConfigErrorKind::DuplicateKey`] with the position.
    pub fn parse(text: &'a str, format: Format) -> Result<Self, ConfigError> {
        let root = match format {
            Format::Json => json::parse(text),
            Format::Toml => toml::parse(text),
            Format::Yaml => yaml::parse(text),
        }?;
        let path = Vec::new();
        Ok(Self { text, root, path })
    }

    /// Returns the member of that key as a document. Its errors have the paths and positions of the
    /// whole text.
    ///
    /// ```
    /// use cupel::config::{Document, Format};
    ///
    /// let text = "budget = 8000\n[policy]\nscorer = {type = \"recent\"}\n";
    /// let document = Document::parse(text, Format::Toml)?;
    /// let error = document.part("policy").unwrap().policy().unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "line 3, column 18: policy.scorer.type: unknown scorer \"recent\"; did you mean \"recency\"?"
    /// );
    /// # Ok::<(), cupel::config::ConfigError>(())
    /// ```
    pub fn part(&self, key: &str) -> Option<Self> {
        let Value::Object(entries) = &self.root.value else {
            return None;
        };
        let entry = entries.iter().find(|entry| entry.key == key)?;
        let mut path = self.path.clone();
        path.push(Step::from(key));
        Some(Self {
            text: self.text,
            root: entry.value.clone(),
            path,
        })
    }

    /// Returns the keys of an object, in the order of the text; none of another value.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let entries = match &self.root.value {
            Value::Object(entries) => &entries[..],
            _ => &[],
        };
        entries.iter().map(|entry| &*entry.key)
    }

    /// Returns the value.
    pub fn value(&self) -> RawValue {
        self.root.to_raw()
    }

    /// Returns where the value is in the text.
    pub fn position(&self) -> Position {
        Position::of(self.text, self.root.span.clone())
    }

    /// Returns all errors of the document as an object of this type, in the order of the text.
    ///
    /// Rules across fields, and texts in a notation of their own such as amounts of tokens, are up to
    /// the reader of the object.
    ///
    /// ```
    /// use cupel::config::registry::{Field, Record, Shape};
    /// use cupel::config::{Document, Format};
    ///
    /// static SERVER: Record = Record::new("server", "Where to listen.", &[
    ///     Field::optional("port", Shape::Integer(1, 65_535), "The port."),
    /// ]);
    /// let document = Document::parse("prot = 80\n", Format::Toml)?;
    /// let faults = document.faults(&SERVER);
    /// assert_eq!(faults[0].message(), "unknown key \"prot\"");
    /// assert_eq!(faults[0].suggestion(), Some("port"));
    /// # Ok::<(), cupel::config::ConfigError>(())
    /// ```
    pub fn faults(&self, record: &'static Record) -> Vec<ConfigError> {
        let faults = faults::of(&self.root, Shape::Record(record)).into_iter();
        let mut faults: Vec<ConfigError> = faults.map(|fault| self.locate(fault)).collect();
        faults.sort_by_key(|fault| fault.position().map(|position| position.span.start));
        faults
    }

    /// Reads the document as the table `chat` of a policy.
    ///
    /// # Errors
    ///
    /// The first error, with its position.
    pub fn chat_settings(&self) -> Result<ChatSettings, ConfigError> {
        let settings = ChatSettings::read(&self.root, Shape::Record(&CHAT));
        settings.map_err(|error| self.locate(error))
    }

    /// Returns the text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Reads the document as the data of a policy, which can be built.
    ///
    /// # Errors
    ///
    /// The first error, with its position.
    pub fn policy_config(&self) -> Result<PolicyConfig, ConfigError> {
        self.checked(PolicyConfig::read(&self.root, Shape::Policy))
    }

    /// Reads a preset, which cannot extend another.
    pub(super) fn preset_config(&self) -> Result<PolicyConfig, ConfigError> {
        let no_base = |_: &str| Err(syntax("a preset cannot extend another"));
        self.checked(PolicyConfig::read_with(&self.root, no_base))
    }

    fn checked(
        &self,
        config: Result<PolicyConfig, ConfigError>,
    ) -> Result<PolicyConfig, ConfigError> {
        let built = config.and_then(|config| config.build().map(|_| config));
        built.map_err(|error| self.locate(error))
    }

    /// Returns all errors of the document as a policy, in the order of the text; none if
    /// [`policy`](Self::policy) succeeds.
    ///
    /// Rules across fields are checked if the fields themselves are valid.
    ///
    /// ```
    /// use cupel::config::{Document, Format};
    ///
    /// let text = "scorer: {type: recencyy}\nslicer: {type: knapsack, bucket_size: 0}\n";
    /// let faults = Document::parse(text, Format::Yaml)?.policy_faults();
    /// let paths: Vec<String> = faults.iter().map(|fault| fault.path()).collect();
    /// assert_eq!(paths, ["scorer.type", "slicer.bucket_size"]);
    /// # Ok::<(), cupel::config::ConfigError>(())
    /// ```
    pub fn policy_faults(&self) -> Vec<ConfigError> {
        let Err(first) = self.policy() else {
            return Vec::new();
        };
        let mut faults = self.faults(&POLICY);
        if faults.is_empty() {
            faults.push(first);
        }
        faults
    }

    /// Reads the document as a policy.
    ///
    /// # Errors
    ///
    /// As [`policy_config`](Self::policy_config).
    pub fn policy(&self) -> Result<Policy, ConfigError> {
        let config = PolicyConfig::read(&self.root, Shape::Policy);
        let policy = config.and_then(|config| config.build());
        policy.map_err(|error| self.locate(error))
    }

    /// Reads the document as a request; an array is a request of items alone.
    ///
    /// # Errors
    ///
    /// As [`policy_config`](Self::policy_config).
    pub fn request(&self) -> Result<RequestConfig, ConfigError> {
        self.request_with(None)
    }

    /// Reads a request whose items may leave out `tokens`: `count` is called with the content.
    ///
    /// # Errors
    ///
    /// As [`policy_config`](Self::policy_config).
    ///
    /// ```
    /// use cupel::config::{Document, Format};
    ///
    /// let document = Document::parse(r#"[{"content": "one two three"}]"#, Format::Json)?;
    /// let words = |content: &str| content.split(' ').count() as i64;
    /// assert_eq!(document.request_counted(&words)?.items[0].tokens(), 3);
    /// assert!(document.request().is_err());
    /// # Ok::<(), cupel::config::ConfigError>(())
    /// ```
    pub fn request_counted(
        &self,
        count: &dyn Fn(&str) -> i64,
    ) -> Result<RequestConfig, ConfigError> {
        self.request_with(Some(count))
    }

    fn request_with(&self, count: request::Count<'_>) -> Result<RequestConfig, ConfigError> {
        let request = request::request(&self.root, count).map_err(|error| self.locate(error))?;
        if let Some(policy) = &request.policy {
            let built = policy.build();
            built.map_err(|error| self.locate(error.within("policy")))?;
        }
        Ok(request)
    }

    /// Reads the document as one item, such as a line of a JSONL file.
    ///
    /// # Errors
    ///
    /// As [`policy_config`](Self::policy_config).
    ///
    /// ```
    /// use cupel::config::{Document, Format};
    ///
    /// let item = Document::parse(r#"{"content": "hello", "tokens": 2}"#, Format::Json)?.item()?;
    /// assert_eq!(item.content(), "hello");
    /// # Ok::<(), cupel::config::ConfigError>(())
    /// ```
    pub fn item(&self) -> Result<ContextItem, ConfigError> {
        request::item(&self.root, None).map_err(|error| self.locate(error))
    }

    /// Reads an item that may leave out `tokens`, as
    /// [`request_counted`](Self::request_counted).
    ///
    /// # Errors
    ///
    /// As [`policy_config`](Self::policy_config).
    pub fn item_counted(&self, count: &dyn Fn(&str) -> i64) -> Result<ContextItem, ConfigError> {
        request::item(&self.root, Some(count)).map_err(|error| self.locate(error))
    }

    fn locate(&self, error: ConfigError) -> ConfigError {
        let span = self.root.span_of(&error);
        let steps = self.path.iter().rev().cloned();
        steps.fold(error.at(self.text, span), ConfigError::within)
    }
}

impl PolicyConfig {
    /// Writes the policy as text that [`Document`] reads back as the same data.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build): only valid policies are written.
    ///
    /// ```
    /// use cupel::config::{Format, PolicyConfig, ScorerConfig};
    ///
    /// let text = PolicyConfig::new(ScorerConfig::Recency).to_text(Format::Yaml)?;
    /// assert!(text.starts_with("scorer:\n  type: recency\n"));
    /// # Ok::<(), cupel::config::ConfigError>(())
    /// ```
    pub fn to_text(&self, format: Format) -> Result<String, ConfigError> {
        self.build()?;
        let fault = |error: &dyn std::fmt::Display| syntax(error.to_string());
        let json = || serde_json::to_string_pretty(self).map_err(|error| fault(&error));
        match format {
            Format::Json => Ok(json()? + "\n"),
            Format::Toml => ::toml::to_string_pretty(self).map_err(|error| fault(&error)),
            Format::Yaml => Ok(yaml::write(&json::parse(&json()?)?)),
        }
    }
}

impl Policy {
    /// Reads and builds the policy document in a file (feature `documents`).
    ///
    /// The format is that of the file's extension, otherwise that of the text. [`Document`] reads
    /// text that does not come from a file.
    ///
    /// # Errors
    ///
    /// [`ConfigErrorKind::Io`] if the file cannot be read as UTF-8 text, otherwise as
    /// [`Document::parse`] and [`Document::policy`].
    ///
    /// ```no_run
    /// let policy = cupel::Policy::from_path("policies/support.toml")?;
    /// # Ok::<(), cupel::config::ConfigError>(())
    /// ```
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        #[expect(clippy::disallowed_methods, reason = "reads the file of its argument")]
        let text = std::fs::read_to_string(path).map_err(|error| {
            let message = format!("cannot read {}: {error}", path.display());
            ConfigError::new(ConfigErrorKind::Io, message)
        })?;
        let format = Format::of_path(path).unwrap_or_else(|| Format::of_text(&text));
        Document::parse(&text, format)?.policy()
    }
}

impl Node<'_> {
    /// Returns the bytes of the value that `error` is about, or of its nearest ancestor.
    fn span_of(&self, error: &ConfigError) -> Range<usize> {
        let mut node = self;
        let mut span = self.span.clone();
        for step in error.steps() {
            let next = match (&node.value, step) {
                (Value::Object(entries), Step::Key(key)) => entries
                    .iter()
                    .find(|entry| entry.key == *key)
                    .map(|entry| (&entry.value, &entry.key_span)),
                (Value::Array(nodes), Step::Index(index)) => {
                    nodes.get(*index).map(|node| (node, &node.span))
                }
                _ => None,
            };
            let Some((value, key_span)) = next else { break };
            node = value;
            span = match error.kind() {
                ConfigErrorKind::UnknownKey | ConfigErrorKind::DuplicateKey => key_span.clone(),
                _ => value.span.clone(),
            };
        }
        span
    }

    /// Returns the value without positions.
    pub(crate) fn to_raw(&self) -> RawValue {
        match &self.value {
            Value::Null => RawValue::Null,
            Value::Bool(value) => RawValue::Bool(*value),
            Value::Integer(number) => RawValue::Integer(*number),
            Value::Float(number) => RawValue::Float(*number),
            Value::String(text) => RawValue::Text(text.clone().into_owned()),
            Value::Array(nodes) => RawValue::List(nodes.iter().map(Node::to_raw).collect()),
            Value::Object(entries) => {
                let entries = entries.iter();
                let pair = |entry: &Entry<'_>| (entry.key.to_string(), entry.value.to_raw());
                RawValue::Map(entries.map(pair).collect())
            }
        }
    }
}

fn syntax(message: impl Into<String>) -> ConfigError {
    ConfigError::new(ConfigErrorKind::Syntax, message)
}

fn too_deep() -> ConfigError {
    syntax(format!(
        "nested more than {MAX_DEPTH} levels deep; flatten it"
    ))
}

fn empty(text: &str) -> ConfigError {
    syntax("the text is empty; expected a document").at(text, 0..0)
}

/// Refuses duplicate keys.
fn distinct<'a>(text: &str, entries: Vec<Entry<'a>>) -> Result<Vec<Entry<'a>>, ConfigError> {
    match repeated(&entries) {
        None => Ok(entries),
        Some(Entry { key, key_span, .. }) => Err(duplicate_key(key).at(text, key_span.clone())),
    }
}

/// Returns the range of the text without its byte order mark.
fn without_mark(text: &str) -> Range<usize> {
    let mark = '\u{feff}';
    let start = if text.starts_with(mark) {
        mark.len_utf8()
    } else {
        0
    };
    start..text.len()
}
