//! [`Encoding`].

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use super::memory::{Memory, Name};
use super::{TokenCounter, windows};

/// The most texts whose counts the process remembers, with 40 bytes each.
const REMEMBERED: usize = 1 << 18;

/// A public encoding. Counts are exact and need no network; special tokens count as plain text.
///
/// The first count in a process unpacks the vocabulary, which takes about 200 ms for `o200k_base` and
/// 100 ms for `cl100k_base`. Later counts take 20 to 250 ns per byte, and the process remembers those of the last
/// 131,072 texts at least: counting one of them again takes less than 1 ns per byte. Cost is linear in the text; for the
/// encodings of OpenAI also in long runs without a word boundary.
///
/// The feature `vocabularies` adds those of other providers. Two have licenses of their own: that of
/// Llama 3 is the Llama 3 Community License, that of the `DeepSeek` models the
/// `DeepSeek` Model License.
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
    #[cfg(feature = "vocabularies")]
    Llama3,
    /// `qwen2`: Qwen 2.5 and 3.
    #[cfg(feature = "vocabularies")]
    Qwen2,
    /// `deepseek_v3`: `DeepSeek` V3, R1 and V4.
    #[cfg(feature = "vocabularies")]
    DeepSeekV3,
    /// `mistral_v3`: Mistral models with the Tekken tokenizer.
    #[cfg(feature = "vocabularies")]
    MistralV3,
    /// `kimi_k2`: Kimi K2.
    #[cfg(feature = "vocabularies")]
    KimiK2,
}

impl Encoding {
    /// All encodings.
    pub const ALL: &'static [Self] = &[
        Self::O200k,
        Self::Cl100k,
        #[cfg(feature = "vocabularies")]
        Self::Llama3,
        #[cfg(feature = "vocabularies")]
        Self::Qwen2,
        #[cfg(feature = "vocabularies")]
        Self::DeepSeekV3,
        #[cfg(feature = "vocabularies")]
        Self::MistralV3,
        #[cfg(feature = "vocabularies")]
        Self::KimiK2,
    ];

    pub(super) fn bpe(self) -> &'static tiktoken::CoreBpe {
        tiktoken::get_encoding(self.name()).expect("the vocabularies are compiled in")
    }
}

impl TokenCounter for Encoding {
    fn count(&self, text: &str) -> i64 {
        static COUNTS: LazyLock<Memory<i64>> = LazyLock::new(|| Memory::new(REMEMBERED));
        let name = Name::of(text, *self as u64);
        COUNTS.get_or_make(
            name,
            |_| 1,
            || {
                let tokens = windows::count(self.bpe(), *self, text);
                i64::try_from(tokens).unwrap_or(i64::MAX)
            },
        )
    }

    fn name(&self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
            #[cfg(feature = "vocabularies")]
            Self::Llama3 => "llama3",
            #[cfg(feature = "vocabularies")]
            Self::Qwen2 => "qwen2",
            #[cfg(feature = "vocabularies")]
            Self::DeepSeekV3 => "deepseek_v3",
            #[cfg(feature = "vocabularies")]
            Self::MistralV3 => "mistral_v3",
            #[cfg(feature = "vocabularies")]
            Self::KimiK2 => "kimi_k2",
        }
    }

    fn is_estimate(&self) -> bool {
        false
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
