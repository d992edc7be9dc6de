//! Errors of reading a chat.

use std::fmt;

use cupel::config::Position;

/// A position in a text. Lines and columns start at 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The byte offset.
    pub offset: usize,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Place {
    /// Returns the position of a byte of `text`.
    pub(crate) fn of(text: &str, offset: usize) -> Self {
        let Position {
            line, column, span, ..
        } = Position::of(text, offset..offset);
        Self {
            offset: span.start,
            line,
            column,
        }
    }
}

/// The error of reading a chat: what is wrong, where, and what to do.
///
/// ```
/// use cupel_chat::Chat;
///
/// let text = "{\"messages\": [\n  {\"role\": \"user\", \"content\": 7}\n]}";
/// let error = Chat::parse(text, None).unwrap_err();
/// assert_eq!(error.path, "messages[0].content");
/// assert_eq!((error.place.line, error.place.column), (2, 3));
/// assert_eq!(
///     error.to_string(),
///     "line 2, column 3, messages[0].content: must be a string or an array of content blocks, not a number"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatError {
    /// What is wrong and how to fix it.
    pub message: String,
    /// The path of the invalid value, such as `messages[3].tool_calls[0].id`; empty for the whole text.
    pub path: String,
    /// The position of the value, or of the message that contains it.
    pub place: Place,
    kind: Kind,
}

/// The kinds of errors that callers handle differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Invalid,
    /// The message continues a sentence that starts with the path, such as "must be a string".
    Value,
    Ambiguous,
    Mixed,
}

impl ChatError {
    pub(crate) fn new(text: &str, offset: usize, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            path: String::new(),
            place: Place::of(text, offset),
            kind: Kind::Invalid,
        }
    }

    pub(crate) fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Returns whether several formats are possible, so that naming one helps.
    pub fn is_ambiguous(&self) -> bool {
        self.kind == Kind::Ambiguous
    }

    /// Returns whether the list has both messages and items.
    pub fn is_mixed(&self) -> bool {
        self.kind == Kind::Mixed
    }

    /// Returns the message as a whole sentence, such as "`messages[0]` must be an object, not a number".
    pub fn sentence(&self) -> String {
        match self.kind {
            Kind::Value => format!("`{}` {}", self.path, self.message),
            Kind::Invalid | Kind::Ambiguous | Kind::Mixed => self.message.clone(),
        }
    }

    pub(crate) fn at(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }
}

impl fmt::Display for ChatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column, .. } = self.place;
        write!(f, "line {line}, column {column}")?;
        if !self.path.is_empty() {
            write!(f, ", {}", self.path)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ChatError {}
