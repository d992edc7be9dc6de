//! [`ConfigError`]: what is wrong with a document, where, and how to mend it.

use std::error::Error;
use std::fmt;
use std::ops::Range;

use super::suggest::nearest_name;
use crate::CupelError;

/// What is wrong with a policy or a request, where, and how to mend it.
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
pub struct ConfigError(Box<Fault>);

#[derive(Debug, Clone, PartialEq)]
struct Fault {
    kind: ConfigErrorKind,
    /// Innermost first, as errors travel outwards.
    path: Vec<Step>,
    message: String,
    suggestion: Option<String>,
    source: Option<CupelError>,
    position: Option<Position>,
}

/// What kind of fault a [`ConfigError`] reports.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConfigErrorKind {
    /// The text is not JSON, TOML or YAML, or nested too deeply.
    Syntax,
    /// A key stands twice in one map.
    DuplicateKey,
    /// A key that nothing reads.
    UnknownKey,
    /// A name that is not in the list: of a strategy, of a choice, of a preset.
    UnknownName,
    /// A required field is left out.
    MissingField,
    /// A value of another type than its field takes.
    WrongType,
    /// A value outside the range of its field, or in no known notation.
    OutOfRange,
    /// Parts that do not go together; [`source`](Error::source) has the library's own error.
    Invalid,
    /// A strategy of the caller's own, which no document can name.
    NotData,
}

/// A place in a text, such as that of a [`ConfigError`].
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
        Self(Box::new(Fault {
            kind,
            path: Vec::new(),
            message: message.into(),
            suggestion: None,
            source: None,
            position: None,
        }))
    }

    /// A constructor refused what it was given.
    pub(super) fn invalid(source: CupelError) -> Self {
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

    /// The same error in other words.
    pub(super) fn with_message(mut self, message: String) -> Self {
        self.0.message = message;
        self
    }

    /// For a strategy of your own: it cannot be written as data. `strategy` is the name of its type.
    pub fn not_data(strategy: &str) -> Self {
        let name = strategy.split('<').next().unwrap_or(strategy);
        let name = name.rsplit("::").next().unwrap_or(name);
        let message = format!(
            "{name} cannot be written as data; only the strategies in cupel::config::registry have a name there"
        );
        Self::new(ConfigErrorKind::NotData, message)
    }

    /// `name` is not one of `known`, which are `what`.
    pub(super) fn unknown<'k>(
        kind: ConfigErrorKind,
        what: &str,
        name: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let mut error = Self::new(kind, format!("unknown {what} {name:?}"));
        match nearest_name(name, known.iter().copied()) {
            Some(near) => error.0.suggestion = Some(near.to_owned()),
            None => {
                error.0.message += "; known are ";
                error.0.message += &known.join(", ");
            }
        }
        error
    }

    /// The same error, seen from the map or list around the place.
    pub(crate) fn within(mut self, step: impl Into<Step>) -> Self {
        self.0.path.push(step.into());
        self
    }

    #[cfg(feature = "documents")]
    pub(super) fn at(mut self, text: &str, span: Range<usize>) -> Self {
        self.0.position = Some(Position::of(text, span));
        self
    }

    /// What kind of fault it is.
    pub fn kind(&self) -> ConfigErrorKind {
        self.0.kind
    }

    /// Where in the document, as `scorer.entries[1].weight`; empty for the document itself.
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

    /// The way from the document to the place.
    pub(super) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.0.path.iter().rev()
    }

    /// What is wrong and how to mend it, without place and suggestion.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The name that was probably meant.
    pub fn suggestion(&self) -> Option<&str> {
        self.0.suggestion.as_deref()
    }

    /// Where in the text; absent when there is no text.
    pub fn position(&self) -> Option<&Position> {
        self.0.position.as_ref()
    }
}

/// `line 2, column 5: scorer.entries[1].wieght: unknown key "wieght"; did you mean "weight"?`,
/// as far as each part is known.
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
