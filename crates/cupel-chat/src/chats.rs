//! Texts with many chats.
//!
//! Three readings of several lines or elements compete: one chat whose messages are the lines, many
//! chats, or neither. The first line or element decides. A message has a role, and a request has a
//! list of messages:
//!
//! ```text
//! {"role": "user", ...}        {"messages": [...]}
//! {"role": "assistant", ...}   {"messages": [...]}
//! one chat of two messages     two chats
//! ```

use std::ops::Range;

use serde_json::value::RawValue;

use crate::layout::{is_one_per_line, is_request, offset};

/// The chats of a text with many: one per line, or the elements of an array.
///
/// ```
/// use cupel_chat::{Chat, Chats};
///
/// let text = concat!(
///     r#"{"id": 1, "messages": [{"role": "user", "content": "Hi"}]}"#, "\n",
///     r#"{"id": 2, "messages": [{"role": "user", "content": "Hello"}, {"role": "user", "content": "?"}]}"#, "\n",
/// );
/// let chats = Chats::find(text, "").unwrap();
/// let mut written = Vec::new();
/// for (line, chat) in chats.iter() {
///     let chat = Chat::parse(chat, None)?;
///     assert_eq!(chat.len(), line);
///     written.push(chat.write(&[0]));
/// }
/// let expected = text.replace(r#", {"role": "user", "content": "?"}"#, "");
/// assert_eq!(chats.write(&written), expected);
/// assert!(Chats::find(r#"[{"role": "user", "content": "Hi"}]"#, "").is_none());
/// # Ok::<(), cupel_chat::ChatError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Chats<'t> {
    text: &'t str,
    /// The bytes of each chat, without white space, line breaks and separators around it: ascending
    /// and disjoint, so that `write` copies what lies between them.
    chats: Vec<Range<usize>>,
}

impl<'t> Chats<'t> {
    /// Finds the chats; `None` if the text does not hold several. `at` is the JSON pointer (RFC
    /// 6901) of the chat in each line; empty if the line is the chat.
    ///
    /// The first line or element decides. Others may turn out to be invalid when they are parsed.
    pub fn find(text: &'t str, at: &str) -> Option<Self> {
        let body = text.trim_start_matches('\u{feff}');
        let chats = if let Some(elements) = body.trim_start().strip_prefix('[') {
            // Most arrays are lists of messages, which the first element shows. It is read alone,
            // so that a chat of a megabyte is not parsed twice.
            let mut elements = serde_json::Deserializer::from_str(elements).into_iter();
            let first: &RawValue = elements.next()?.ok()?;
            // A pointer into an array names one of its elements: then there is one chat.
            if !at.is_empty() || !is_request(first.get(), "") {
                return None;
            }
            let list: Vec<&RawValue> = serde_json::from_str(body).ok()?;
            let range = |raw: &RawValue| offset(text, raw)..offset(text, raw) + raw.get().len();
            list.into_iter().map(range).collect()
        } else {
            // Each line is a slice of `text`, so its address gives its position.
            let range = |line: &str| {
                let start = line.as_ptr().addr() - text.as_ptr().addr();
                start..start + line.len()
            };
            let lines = body.lines().map(str::trim);
            let mut lines = lines.filter(|line| !line.is_empty()).peekable();
            let first = *lines.peek()?;
            let chats: Vec<Range<usize>> = lines.map(range).collect();
            // A single line is one chat, which needs no list around it.
            let is_many = chats.len() > 1 && is_one_per_line(body) && is_request(first, at);
            is_many.then_some(chats)?
        };
        Some(Self { text, chats })
    }

    /// Returns the number of chats.
    pub fn len(&self) -> usize {
        self.chats.len()
    }

    /// Returns whether there are no chats; there always are.
    pub fn is_empty(&self) -> bool {
        self.chats.is_empty()
    }

    /// Returns the line that each chat starts in, from 1, and its text.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &'t str)> {
        let mut line = 1;
        let mut end = 0;
        self.chats.iter().map(move |range| {
            line += self.text[end..range.start].matches('\n').count();
            end = range.start;
            (line, &self.text[range.clone()])
        })
    }

    /// Returns the text with other texts in the place of the chats. The rest is unchanged.
    ///
    /// # Panics
    ///
    /// If there are not as many texts as chats.
    pub fn write<S: AsRef<str>>(&self, chats: &[S]) -> String {
        assert_eq!(chats.len(), self.len(), "there is one text per chat");
        let mut written = String::with_capacity(self.text.len());
        let mut end = 0;
        for (range, chat) in self.chats.iter().zip(chats) {
            written.push_str(&self.text[end..range.start]);
            written.push_str(chat.as_ref());
            end = range.end;
        }
        written.push_str(&self.text[end..]);
        written
    }
}
