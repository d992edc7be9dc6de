//! Vocabularies that are not compiled in.
//!
//! The vocabularies of all providers take 3 MB, so a small build has those of OpenAI alone. It may count with the
//! others if something else in the process has them: the Python package asks the package `cupel-vocabularies`.

use std::sync::OnceLock;

use super::Encoding;

/// Counts tokens for encodings whose vocabulary is not compiled in.
pub trait Vocabularies: Send + Sync {
    /// Returns whether [`count`](Self::count) is exact for the encoding. The answer never changes.
    fn has(&self, encoding: Encoding) -> bool;

    /// Returns the number of tokens of a text.
    fn count(&self, encoding: Encoding, text: &str) -> i64;
}

static PROVIDED: OnceLock<Box<dyn Vocabularies>> = OnceLock::new();

/// Provides vocabularies to this process. The first ones stay: counts are remembered, and must not change.
///
/// ```
/// use cupel_chat::{Encoding, TokenCounter, Vocabularies, provide_vocabularies};
///
/// struct Words;
///
/// impl Vocabularies for Words {
///     fn has(&self, encoding: Encoding) -> bool {
///         encoding == Encoding::KimiK2
///     }
///     fn count(&self, _: Encoding, text: &str) -> i64 {
///         text.split_whitespace().count() as i64
///     }
/// }
/// provide_vocabularies(Box::new(Words));
/// # #[cfg(not(feature = "vocabularies"))]
/// assert_eq!(Encoding::KimiK2.count("one two three"), 3);
/// ```
pub fn provide_vocabularies(vocabularies: Box<dyn Vocabularies>) {
    let _ = PROVIDED.set(vocabularies);
}

/// Returns the provider of an encoding.
pub(super) fn provided(encoding: Encoding) -> Option<&'static dyn Vocabularies> {
    let provided = PROVIDED.get()?;
    provided.has(encoding).then_some(&**provided)
}
