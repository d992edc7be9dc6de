//! What a message was asked for: the words that make some of its lines worth more.
//!
//! A file of 400 lines does not say which of them matter. The question before it does: the user asks to fix
//! `RetryPolicy`, the model calls `{"path": "src/upload.py"}`, and of the 400 lines three have the word `RetryPolicy`.
//! Only what comes before a message counts, so that its forms stay the same while the chat grows.

use std::collections::HashSet;
use std::sync::Arc;

/// The fewest bytes of a word. Shorter ones are in most lines: `the`, `if`, `id`.
const SHORTEST: usize = 4;

/// The most words of a text that are read. A question has fewer. A file that the user pasted may have more, and they
/// would be in most lines.
const MOST: usize = 4_096;

/// The distinct words of some texts.
pub(crate) type Words = Arc<HashSet<String>>;

/// The words that a message is shortened for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    /// Those of the last user turn before the message. All messages after the turn share them.
    pub(crate) turn: Words,
    /// Those of the arguments of the calls that the message answers.
    pub(crate) calls: Words,
}

impl Query {
    pub(super) fn has(&self, word: &str) -> bool {
        self.turn.contains(word) || self.calls.contains(word)
    }
}

/// Returns the distinct words of texts.
pub(crate) fn words_of<'t>(texts: impl Iterator<Item = &'t str>) -> Words {
    let words = texts.flat_map(words).take(MOST);
    Arc::new(words.map(str::to_owned).collect())
}

/// Returns the words of a text in order: runs of letters, digits and underscores that are not only digits. Case
/// matters: in code, `Field` and `field` are two names.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let is_long = |word: &&str| word.len() >= SHORTEST;
    words
        .filter(is_long)
        .filter(|word| !word.bytes().all(|byte| byte.is_ascii_digit()))
}
