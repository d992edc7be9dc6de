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
    /// The JSON pointers of the lists of messages that were found instead.
    pub pointers: Vec<String>,
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
    /// A message of no known format.
    Unknown,
    /// A format that is known and not read.
    Foreign,
    /// Several chats.
    Many,
}

impl ChatError {
    pub(crate) fn new(text: &str, offset: usize, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            path: String::new(),
            place: Place::of(text, offset),
            pointers: Vec::new(),
            kind: Kind::Invalid,
        }
    }

    pub(crate) fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Adds where lists of messages are.
    pub(crate) fn elsewhere(mut self, pointers: Vec<String>) -> Self {
        self.pointers = pointers;
        self
    }

    /// Returns whether several formats are possible, or none is known, so that naming one helps.
    pub fn is_ambiguous(&self) -> bool {
        matches!(self.kind, Kind::Ambiguous | Kind::Unknown)
    }

    /// Returns whether the text is in a format that is known and not read.
    pub fn is_foreign(&self) -> bool {
        self.kind == Kind::Foreign
    }

    /// Returns whether the text holds several chats, which [`Chats`](crate::Chats) finds.
    pub fn is_many(&self) -> bool {
        self.kind == Kind::Many
    }

    /// Returns whether the list has both messages and items.
    pub fn is_mixed(&self) -> bool {
        self.kind == Kind::Mixed
    }

    /// Returns the message as a whole sentence, such as "`messages[0]` must be an object, not a number".
    pub fn sentence(&self) -> String {
        match self.kind {
            Kind::Value => format!("`{}` {}", self.path, self.message),
            _ => self.message.clone(),
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
