//! What a message was asked for: the words that make some of its lines worth more.
//!
//! A file of 400 lines does not say which of them matter. The question before it does: the user asks to fix
//! `RetryPolicy`, the model calls `{"path": "src/upload.py"}`, and of the 400 lines three have the word `RetryPolicy`.
//! Only what comes before a message counts, so that its forms stay the same while the chat grows.

use std::collections::HashSet;
use std::sync::Arc;

/// The fewest bytes of a word. Shorter ones are in most lines: `the`, `if`, `id`.
const SHORTEST: usize = 4;

/// The most words of a turn, and of calls, that are read. A question has fewer. A pasted file, or one that a call
/// writes, has more, and they would be in most lines.
const MOST: usize = 1_024;

/// Some distinct words.
#[derive(Debug)]
pub(crate) struct Words {
    words: HashSet<String>,
    /// A Bloom filter with one hash: most words of a text are not here, and a bit is cheaper than a lookup.
    filter: [u64; FILTER / 64],
}

/// The bits of the filter: a few per word of a long question.
const FILTER: usize = 4_096;

impl Default for Words {
    fn default() -> Self {
        Self {
            words: HashSet::new(),
            filter: [0; FILTER / 64],
        }
    }
}

impl Words {
    /// Returns the distinct words of texts.
    pub(crate) fn of<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut words = Self::default();
        for word in texts.flat_map(words_of).take(MOST) {
            let bit = bit(word);
            words.filter[bit / 64] |= 1 << (bit % 64);
            if !words.words.contains(word) {
                words.words.insert(word.to_owned());
            }
        }
        words
    }

    fn has(&self, word: &str) -> bool {
        let bit = bit(word);
        self.filter[bit / 64] >> (bit % 64) & 1 == 1 && self.words.contains(word)
    }
}

/// Returns the bit of a word in the filter: from its length, its first and its last bytes.
fn bit(word: &str) -> usize {
    let bytes = word.as_bytes();
    let byte = |at: usize| usize::from(bytes.get(at).copied().unwrap_or(0));
    let end = bytes.len();
    let mix =
        byte(0) * 31 + byte(1) * 257 + byte(2) * 7 + byte(end.wrapping_sub(1)) * 61 + end * 577;
    mix % FILTER
}

/// The words that a message is shortened for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    /// Those of the last user turn before the message. All messages after the turn share them.
    pub(crate) turn: Arc<Words>,
    /// Those of the arguments of the calls that the message answers.
    pub(crate) calls: Arc<Words>,
}

impl Query {
    pub(super) fn has(&self, word: &str) -> bool {
        self.turn.has(word) || self.calls.has(word)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.turn.words.is_empty() && self.calls.words.is_empty()
    }
}

/// Returns the words of a text in order: runs of letters, digits and underscores that are not only digits. Case
/// matters: in code, `Field` and `field` are two names. All characters beyond ASCII are letters here, so that a table
/// of bytes is enough.
pub(super) fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let mut bytes = text.bytes().enumerate();
    let mut words = std::iter::from_fn(move || {
        // The first byte of a word, then the first one after it. Both are ASCII or begin a character.
        let (start, first) = bytes.find(|(_, byte)| WORD[usize::from(*byte)] != 0)?;
        let mut marks = WORD[usize::from(first)];
        let end = bytes.find(|(_, byte)| {
            marks |= WORD[usize::from(*byte)];
            WORD[usize::from(*byte)] == 0
        });
        let end = end.map_or(text.len(), |(end, _)| end);
        Some((&text[start..end], marks))
    });
    std::iter::from_fn(move || {
        let is_word = |(word, marks): &(&str, u8)| word.len() >= SHORTEST && *marks != DIGIT;
        words.find(is_word).map(|(word, _)| word)
    })
}

const DIGIT: u8 = 1;
const LETTER: u8 = 2;

/// Whether a byte is part of a word, and how.
const WORD: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0u8;
    loop {
        table[byte as usize] = match byte {
            b'0'..=b'9' => DIGIT,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => LETTER,
            _ => 0,
        };
        if byte == u8::MAX {
            break table;
        }
        byte += 1;
    }
};
