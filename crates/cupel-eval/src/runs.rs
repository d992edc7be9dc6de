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
    let runs = parse_each(text, at, shape)?;
    Ok(runs.into_iter().map(|(_, chat)| chat).collect())
}

/// As [`parse_runs`], with the text of each run.
pub(crate) fn parse_each<'t>(
    text: &'t str,
    at: &str,
    shape: Option<Shape>,
) -> Result<Vec<(&'t str, Chat)>, RunsError> {
    let chats = match Chats::find(text, at) {
        Some(chats) => chats.iter().map(|(_, chat)| chat).collect(),
        None => lists(text).unwrap_or_else(|| vec![text]),
    };
    let run = |run: &'t str| {
        let chat = Chat::parse_at(run, at, shape);
        let chat = chat.map_err(|error| RunsError::Chat(moved(error, before(text, run))))?;
        match chat.shape() {
            Shape::Items => Err(RunsError::Items {
                line: place(text, run).0,
            }),
            _ => Ok((run, chat)),
        }
    };
    chats.into_iter().map(run).collect()
}

/// Returns the text before a slice of it.
fn before<'t>(text: &'t str, slice: &str) -> &'t str {
    let start = slice.as_ptr().addr() - text.as_ptr().addr();
    &text[..start]
}

/// Returns the line and the column, in characters, of a slice of a text, from 1.
pub(crate) fn place(text: &str, slice: &str) -> (usize, usize) {
    let before = before(text, slice);
    (lines(before) + 1, column(before))
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

/// Returns the column after the last line of a text, from 1.
fn column(text: &str) -> usize {
    let line = text.rsplit('\n').next().unwrap_or_default();
    line.trim_start_matches('\u{feff}').chars().count() + 1
}

/// Returns the error of a part of a text with its place in the whole text.
fn moved(mut error: ChatError, before: &str) -> ChatError {
    let place = &mut error.place;
    if place.line == 1 {
        place.column += column(before) - 1;
    }
    place.line += lines(before);
    place.offset += before.len();
    error
}
