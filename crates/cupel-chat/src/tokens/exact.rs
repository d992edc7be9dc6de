//! [`Encoding`].

use std::fmt;
use std::str::FromStr;

use super::{TokenCounter, windows};

/// An encoding of OpenAI. Counts are exact and need no network; special tokens count as plain text.
///
/// The first count in a process unpacks the vocabulary, which takes about 200 ms for `o200k_base` and
/// 100 ms for `cl100k_base`. Later counts take 20 to 250 ns per byte. Cost is linear in the text, also for
/// long runs without a word boundary.
///
/// ```
/// use cupel_chat::{Encoding, TokenCounter};
///
/// assert_eq!(Encoding::O200k.count("hello world"), 2);
/// assert_eq!(Encoding::Cl100k.count("<|endoftext|>"), 7);
/// assert_eq!("o200k_base".parse::<Encoding>(), Ok(Encoding::O200k));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// `o200k_base`: GPT-4o and later.
    O200k,
    /// `cl100k_base`: GPT-4 and GPT-3.5.
    Cl100k,
}

impl Encoding {
    /// All encodings.
    pub const ALL: [Self; 2] = [Self::O200k, Self::Cl100k];

    pub(super) fn bpe(self) -> &'static tiktoken::CoreBpe {
        tiktoken::get_encoding(self.name()).expect("the vocabularies are compiled in")
    }
}

impl TokenCounter for Encoding {
    fn count(&self, text: &str) -> i64 {
        let tokens = windows::count(self.bpe(), *self, text);
        i64::try_from(tokens).unwrap_or(i64::MAX)
    }

    fn name(&self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
        }
    }

    fn is_estimate(&self) -> bool {
        false
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error of parsing the name of an [`Encoding`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown encoding {0:?}; expected o200k_base or cl100k_base")]
pub struct UnknownEncoding(String);

impl FromStr for Encoding {
    type Err = UnknownEncoding;

    /// Parses the name, with or without `_base`.
    fn from_str(name: &str) -> Result<Self, UnknownEncoding> {
        let found = Self::ALL.into_iter().find(|encoding| {
            let full = encoding.name();
            full == name || full.strip_suffix("_base") == Some(name)
        });
        found.ok_or_else(|| UnknownEncoding(name.to_owned()))
    }
}
