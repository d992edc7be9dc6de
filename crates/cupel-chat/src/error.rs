//! What can be wrong with a text that is to be read as a chat.

use std::fmt;

use cupel::config::Position;

/// Where in a text something is; lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The byte.
    pub offset: usize,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Place {
    /// The place of a byte of `text`.
    pub(crate) fn of(text: &str, offset: usize) -> Self {
        let Position { line, column, span } = Position::of(text, offset..offset);
        Self {
            offset: span.start,
            line,
            column,
        }
    }
}

/// Why a text is not a chat, where, and what to do about it.
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
///     "line 2, column 3, messages[0].content: must be a text or a list of content blocks, not a number"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatError {
    /// What is wrong and how to mend it.
    pub message: String,
    /// The path of the value at fault, such as `messages[3].tool_calls[0].id`; empty for the whole text.
    pub path: String,
    /// The value, or the message that holds it.
    pub place: Place,
    kind: Kind,
}

/// What can be done about a fault other than mending its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Fault,
    Unclear,
    Mixed,
}

impl ChatError {
    pub(crate) fn new(text: &str, offset: usize, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            path: String::new(),
            place: Place::of(text, offset),
            kind: Kind::Fault,
        }
    }

    pub(crate) fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Whether the text speaks for several shapes, so that naming one helps.
    pub fn is_unclear(&self) -> bool {
        self.kind == Kind::Unclear
    }

    /// Whether messages and items stand in one list.
    pub fn is_mixed(&self) -> bool {
        self.kind == Kind::Mixed
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
