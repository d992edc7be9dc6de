//! [`Encoding`].

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use super::memory::{Memory, Name};
use super::{Heuristic, TokenCounter, pieces, vocabularies, windows};

/// The most texts whose counts the process remembers, with 40 bytes each.
const REMEMBERED: usize = 1 << 18;

/// A public encoding. Counts are exact and need no network; special tokens count as plain text.
///
/// The first count in a process unpacks the vocabulary, which takes about 200 ms for `o200k_base` and
/// 100 ms for `cl100k_base`. Later counts take 20 to 250 ns per byte, and the process remembers those of the last
/// 131,072 texts at least: counting one of them again takes less than 1 ns per byte. Cost is linear in the text; for the
/// encodings of OpenAI also in long runs without a word boundary.
///
/// The vocabularies of OpenAI are compiled in. Those of other providers are, with the feature
/// `vocabularies`; otherwise [`provide_vocabularies`](crate::provide_vocabularies) may provide them. Without its
/// vocabulary an encoding counts as [`Heuristic`] does, and says that it is an estimate;
/// [`available`](Self::available) asks before. Llama 3, `DeepSeek` and Kimi K2 have licenses of their own.
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
    /// `llama3`: Llama 3 to 3.3. Built with Meta Llama 3.
    Llama3,
    /// `qwen2`: Qwen 2.5 and 3.
    Qwen2,
    /// `deepseek_v3`: `DeepSeek` V3, R1 and V4.
    DeepSeekV3,
    /// `mistral_v3`: Mistral models with the Tekken tokenizer.
    MistralV3,
    /// `kimi_k2`: Kimi K2.
    KimiK2,
}

impl Encoding {
    /// All encodings.
    pub const ALL: &'static [Self] = &[
        Self::O200k,
        Self::Cl100k,
        Self::Llama3,
        Self::Qwen2,
        Self::DeepSeekV3,
        Self::MistralV3,
        Self::KimiK2,
    ];

    /// Returns the encoding, if its vocabulary is compiled in or provided.
    ///
    /// # Errors
    ///
    /// [`MissingVocabulary`], which says how to get it.
    ///
    /// ```
    /// use cupel_chat::Encoding;
    ///
    /// assert_eq!(Encoding::O200k.available(), Ok(Encoding::O200k));
    /// ```
    pub fn available(self) -> Result<Self, MissingVocabulary> {
        if self.is_compiled_in() || vocabularies::provided(self).is_some() {
            Ok(self)
        } else {
            Err(MissingVocabulary(self))
        }
    }

    fn is_compiled_in(self) -> bool {
        tiktoken::list_encodings().contains(&self.name())
    }

    /// Returns the tokenizer of an encoding that is compiled in.
    pub(super) fn bpe(self) -> Option<&'static tiktoken::CoreBpe> {
        tiktoken::get_encoding(self.name())
    }

    fn count_anew(self, text: &str) -> i64 {
        if let Some(bpe) = self.bpe() {
            return i64::try_from(windows::count(bpe, self, text)).unwrap_or(i64::MAX);
        }
        match vocabularies::provided(self) {
            Some(provided) => provided.count(self, text),
            None => Heuristic.count(text),
        }
    }
}

impl TokenCounter for Encoding {
    fn count(&self, text: &str) -> i64 {
        static COUNTS: LazyLock<Memory<i64>> = LazyLock::new(|| Memory::new(REMEMBERED));
        let name = Name::of(text, *self as u64);
        COUNTS.get_or_make(name, |_| 1, || self.count_anew(text))
    }

    /// Does not take the place of a text that is sent again in the memory of [`count`](Self::count), and remembers
    /// lines instead.
    fn count_once(&self, text: &str) -> i64 {
        pieces::count(*self, text, |piece| self.count_anew(piece))
    }

    fn name(&self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
            Self::Llama3 => "llama3",
            Self::Qwen2 => "qwen2",
            Self::DeepSeekV3 => "deepseek_v3",
            Self::MistralV3 => "mistral_v3",
            Self::KimiK2 => "kimi_k2",
        }
    }

    fn is_estimate(&self) -> bool {
        self.available().is_err()
    }

    fn identity(&self) -> Option<u64> {
        Some(*self as u64)
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error of an [`Encoding`] whose vocabulary is neither compiled in nor provided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the vocabulary {0} is missing; install the Python package cupel-vocabularies \
     (`pip install \"cupel-context[vocabularies]\"`), or build with the feature `vocabularies`"
)]
pub struct MissingVocabulary(Encoding);

/// The error of parsing the name of an [`Encoding`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown encoding {0:?}; expected one of {names}", names = names())]
pub struct UnknownEncoding(String);

/// Returns the names of all encodings.
fn names() -> String {
    let names: Vec<&str> = Encoding::ALL.iter().map(TokenCounter::name).collect();
    names.join(", ")
}

impl FromStr for Encoding {
    type Err = UnknownEncoding;

    /// Parses the name, with or without `_base`.
    fn from_str(name: &str) -> Result<Self, UnknownEncoding> {
        let found = Self::ALL.iter().copied().find(|encoding| {
            let full = encoding.name();
            full == name || full.strip_suffix("_base") == Some(name)
        });
        found.ok_or_else(|| UnknownEncoding(name.to_owned()))
    }
}
