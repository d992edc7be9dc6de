//! [`ConfigError`]: what is wrong with a document, where, and how to fix it.

use std::error::Error;
use std::fmt;
use std::ops::Range;

use super::suggest::{nearest_name, removed};
use crate::CupelError;

/// What is wrong with a policy or a request, where, and how to fix it.
///
/// ```
/// use cupel::config::{ConfigErrorKind, PolicyConfig, ScorerConfig};
///
/// let scorer = ScorerConfig::MetadataTrust { default_score: 1.5 };
/// let error = PolicyConfig::new(scorer).build().unwrap_err();
/// assert_eq!(error.kind(), ConfigErrorKind::Invalid);
/// assert_eq!(error.path(), "scorer.default_score");
/// assert_eq!(error.message(), "default_score must be from 0 to 1");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigError(Box<Inner>);

#[derive(Debug, Clone, PartialEq)]
struct Inner {
    kind: ConfigErrorKind,
    /// Innermost step first: errors are passed outward.
    path: Vec<Step>,
    message: String,
    suggestion: Option<String>,
    source: Option<CupelError>,
    position: Option<Position>,
}

/// The kind of a [`ConfigError`].
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConfigErrorKind {
    /// The text is not valid JSON, TOML or YAML, or nested too deeply.
    Syntax,
    /// A key occurs twice in one object.
    DuplicateKey,
    /// A key that the object does not have.
    UnknownKey,
    /// An unknown name of a strategy, a choice or a preset.
    UnknownName,
    /// A required field is missing.
    MissingField,
    /// A value has the wrong type.
    WrongType,
    /// A value is out of range, or in an unknown notation.
    OutOfRange,
    /// A constructor refused the value; [`source`](Error::source) is its error, if it has one.
    Invalid,
    /// The file cannot be read.
    Io,
    /// A strategy that is not in the registry.
    NotData,
}

/// A place in a text, such as that of a [`ConfigError`].
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The bytes of the text.
    pub span: Range<usize>,
}

impl ConfigError {
    pub(super) fn new(kind: ConfigErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            path: Vec::new(),
            message: message.into(),
            suggestion: None,
            source: None,
            position: None,
        }))
    }

    /// Wraps the error of a constructor.
    pub(crate) fn invalid(source: CupelError) -> Self {
        let message = match &source {
            CupelError::ScorerConfig(text)
            | CupelError::SlicerConfig(text)
            | CupelError::PipelineConfig(text)
            | CupelError::InvalidBudget(text) => text.clone(),
            other => other.to_string(),
        };
        let mut error = Self::new(ConfigErrorKind::Invalid, message);
        error.0.source = Some(source);
        error
    }

    /// Replaces the message.
    pub(super) fn with_message(mut self, message: String) -> Self {
        self.0.message = message;
        self
    }

    /// Creates the error of a strategy that cannot be written as data. `strategy` is the name of
    /// its type.
    pub fn not_data(strategy: &str) -> Self {
        let name = strategy.split('<').next().unwrap_or(strategy);
        let name = name.rsplit("::").next().unwrap_or(name);
        let message = format!("{name} cannot be written as data; only built-in strategies can");
        Self::new(ConfigErrorKind::NotData, message)
    }

    /// Creates the error of two fields that exclude each other; it is at the second.
    pub(crate) fn exclusive(first: &str, second: &'static str) -> Self {
        let message = format!("{first} and {second} exclude each other; remove one");
        Self::new(ConfigErrorKind::Invalid, message).within(second)
    }

    /// Creates the error of a `name` that is none of `known`.
    pub(super) fn unknown<'k>(
        kind: ConfigErrorKind,
        what: &str,
        name: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) -> Self {
        if let Some(instead) = removed(what, name) {
            return Self::new(kind, format!("the {what} {name:?} was removed; {instead}"));
        }
        let known: Vec<&str> = known.into_iter().collect();
        let mut error = Self::new(kind, format!("unknown {what} {name:?}"));
        match nearest_name(name, known.iter().copied()) {
            Some(near) => error.0.suggestion = Some(near.to_owned()),
            None => {
                let one_of = if known.len() > 1 { "one of " } else { "only " };
                error.0.message += "; expected ";
                error.0.message += one_of;
                error.0.message += &known.join(", ");
            }
        }
        error
    }

    /// Adds the step from the enclosing object or array to the path.
    pub(crate) fn within(mut self, step: impl Into<Step>) -> Self {
        self.0.path.push(step.into());
        self
    }

    #[cfg(feature = "documents")]
    pub(super) fn at(mut self, text: &str, span: Range<usize>) -> Self {
        self.0.position = Some(Position::of(text, span));
        self
    }

    /// Returns the kind.
    pub fn kind(&self) -> ConfigErrorKind {
        self.0.kind
    }

    /// Returns the path in the document, such as `scorer.entries[1].weight`; empty for the document
    /// itself.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for step in self.steps() {
            match step {
                Step::Index(index) => {
                    path.push('[');
                    path.push_str(&index.to_string());
                    path.push(']');
                }
                Step::Key(key) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path += key;
                }
            }
        }
        path
    }

    /// Returns the steps of the path, outermost first.
    pub(super) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.0.path.iter().rev()
    }

    /// Returns what is wrong and how to fix it, without path, position and suggestion.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the name that was probably meant.
    pub fn suggestion(&self) -> Option<&str> {
        self.0.suggestion.as_deref()
    }

    /// Returns [`CupelError::code`] of the constructor that refused a value, otherwise the code for the strategy
    /// or the budget that the path is in; `None` for other parts of a document.
    pub fn code(&self) -> Option<&'static str> {
        if let Some(source) = &self.0.source {
            return Some(source.code());
        }
        let path = self.path();
        let path = path.strip_prefix("policy.").unwrap_or(&path);
        let codes = [
            ("scorer", "ScorerConfig"),
            ("slicer", "SlicerConfig"),
            ("budget", "InvalidBudget"),
        ];
        let code = codes.into_iter().find(|(part, _)| path.starts_with(part));
        code.map(|(_, code)| code)
    }

    /// Returns the position in the text; `None` for errors of data without a text.
    pub fn position(&self) -> Option<&Position> {
        self.0.position.as_ref()
    }
}

/// `line 2, column 5: scorer.entries[1].wieght: unknown key "wieght"; did you mean "weight"?`,
/// without the parts that are unknown.
impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Position { line, column, .. }) = self.position() {
            write!(f, "line {line}, column {column}: ")?;
        }
        if !self.0.path.is_empty() {
            write!(f, "{}: ", self.path())?;
        }
        f.write_str(self.message())?;
        match self.suggestion() {
            Some(name) => write!(f, "; did you mean {name:?}?"),
            None => Ok(()),
        }
    }
}

impl Error for ConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_ref().map(|error| error as _)
    }
}

impl Position {
    /// Returns the position of the bytes `span` of `text`. A byte order mark has no column.
    ///
    /// Ends that are not at a character boundary move to the boundary before; ends beyond the text
    /// move to its end.
    ///
    /// ```
    /// use cupel::config::Position;
    ///
    /// let position = Position::of("a\nbé = 1", 6..7);
    /// assert_eq!((position.line, position.column, position.span), (2, 4, 6..7));
    /// ```
    pub fn of(text: &str, span: Range<usize>) -> Self {
        let boundary = |byte: usize| {
            let mut before = (0..=byte.min(text.len())).rev();
            before
                .find(|&byte| text.is_char_boundary(byte))
                .unwrap_or(0)
        };
        let start = boundary(span.start);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before[line_start..].trim_start_matches('\u{feff}');
        Self {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
            span: start..boundary(span.end).max(start),
        }
    }
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// Converts a constructor's error about `field`.
pub(crate) fn invalid_in(field: &'static str) -> impl Fn(CupelError) -> ConfigError {
    move |error| ConfigError::invalid(error).within(field)
}

/// Converts a constructor's error about `field`, with a message that uses the names of documents.
pub(crate) fn refused_in(
    field: &'static str,
    message: &'static str,
) -> impl Fn(CupelError) -> ConfigError {
    move |error| {
        let error = ConfigError::invalid(error).within(field);
        error.with_message(message.to_owned())
    }
}

/// Converts each element of the array `field`; errors have the path of their element.
pub(crate) fn each<A, B>(
    field: &str,
    array: impl IntoIterator<Item = A>,
    convert: impl Fn(A) -> Result<B, ConfigError>,
) -> Result<Vec<B>, ConfigError> {
    let elements = array.into_iter().enumerate();
    elements
        .map(|(index, element)| convert(element).map_err(|e| e.within(index).within(field)))
        .collect()
}
