//! Texts with recorded agent runs.

use std::fmt;

use cupel_chat::{Chat, ChatError, Chats, Shape};

/// The error of reading recorded runs: what is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunsError {
    /// A chat cannot be read. The place is in the whole text.
    Chat(ChatError),
    /// A line has items instead of a chat.
    Items {
        /// The line, from 1.
        line: usize,
    },
}

impl fmt::Display for RunsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chat(error) => error.fmt(f),
            Self::Items { line } => write!(f, "line {line}: this is not a chat"),
        }
    }
}

impl std::error::Error for RunsError {}

/// Reads recorded runs: one chat per line, or the elements of an array. A text that is one chat is one run, in any
/// layout, also with one message per line.
///
/// `at` is the JSON pointer (RFC 6901) of the chat in each line or element, empty if it is the chat. `shape` is the
/// chat format, detected if it is `None`.
///
/// # Errors
///
/// The first run that is not a chat.
///
/// ```
/// use cupel_eval::parse_runs;
///
/// let run = r#"{"messages": [{"role": "user", "content": "Hi"}]}"#;
/// assert_eq!(parse_runs(&format!("{run}\n\n{run}\n"), "", None)?.len(), 2);
/// let messages = concat!(
///     r#"{"role": "user", "content": "Hi"}"#, "\n",
///     r#"{"role": "assistant", "content": "Hello!"}"#, "\n",
/// );
/// assert_eq!(parse_runs(messages, "", None)?[0].len(), 2);
/// # Ok::<(), cupel_eval::RunsError>(())
/// ```
pub fn parse_runs(text: &str, at: &str, shape: Option<Shape>) -> Result<Vec<Chat>, RunsError> {
    let chats = match Chats::find(text, at) {
        Some(chats) => chats.iter().map(|(_, chat)| chat).collect(),
        None => lists(text).unwrap_or_else(|| vec![text]),
    };
    let run = |chat: &str| {
        let start = chat.as_ptr().addr() - text.as_ptr().addr();
        let chat = Chat::parse_at(chat, at, shape);
        let chat = chat.map_err(|error| RunsError::Chat(moved(error, &text[..start])))?;
        match chat.shape() {
            Shape::Items => Err(RunsError::Items {
                line: lines(&text[..start]) + 1,
            }),
            _ => Ok(chat),
        }
    };
    chats.into_iter().map(run).collect()
}

/// Returns the lines if each is the start of a list and there are several: runs that are lists of messages.
fn lists(text: &str) -> Option<Vec<&str>> {
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let is_list = |line: &&str| serde_json::from_str::<Vec<serde::de::IgnoredAny>>(line).is_ok();
    (lines.len() > 1 && lines.first().is_some_and(is_list)).then_some(lines)
}

fn lines(text: &str) -> usize {
    text.matches('\n').count()
}

/// Returns the error of a part of a text with its place in the whole text.
fn moved(mut error: ChatError, before: &str) -> ChatError {
    let place = &mut error.place;
    if place.line == 1 {
        let line = before.rsplit('\n').next().unwrap_or_default();
        place.column += line.trim_start_matches('\u{feff}').chars().count();
    }
    place.line += lines(before);
    place.offset += before.len();
    error
}
