//! Token counting: the trait, exact counters, an estimate, and the tokens of a message.

mod calibration;
pub(crate) mod cost;
mod exact;
mod heuristic;
pub(crate) mod image;
pub(crate) mod memory;
mod pieces;
mod vocabularies;
mod windows;

use std::sync::Arc;

pub use calibration::{Calibration, InvalidFactor, InvalidUsage, Scaled};
pub use exact::{Encoding, MissingVocabulary, UnknownEncoding};
pub use heuristic::Heuristic;
pub use vocabularies::{Vocabularies, provide_vocabularies};

/// Counts the tokens of a text.
///
/// [`Encoding`] counts exactly, [`Heuristic`] estimates, [`Scaled`] multiplies another counter by a
/// factor. Write one for anything else:
///
/// ```
/// use cupel_chat::TokenCounter;
///
/// struct Words;
///
/// impl TokenCounter for Words {
///     fn count(&self, text: &str) -> i64 {
///         i64::try_from(text.split_whitespace().count()).unwrap_or(i64::MAX)
///     }
///     fn name(&self) -> &str {
///         "words"
///     }
///     fn is_estimate(&self) -> bool {
///         true
///     }
/// }
/// assert_eq!(Words.count("one two three"), 3);
/// ```
pub trait TokenCounter: Send + Sync {
    /// Returns the number of tokens; never negative.
    fn count(&self, text: &str) -> i64;

    /// Returns what [`count`](Self::count) returns, for a text that is not counted again: a candidate of a search,
    /// which shares most of its lines with other candidates. By default, it counts as `count` does.
    fn count_once(&self, text: &str) -> i64 {
        self.count(text)
    }

    /// Returns the name to show.
    fn name(&self) -> &str;

    /// Returns whether the count is an estimate.
    fn is_estimate(&self) -> bool;

    /// Returns a number that no counter has that counts otherwise. What was shortened with such a counter is remembered
    /// in the process, so that a caller who sends a whole conversation again pays for its new texts. By default there is
    /// none.
    fn identity(&self) -> Option<u64> {
        None
    }
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<T: TokenCounter + ?Sized> TokenCounter for $pointer {
            fn count(&self, text: &str) -> i64 {
                (**self).count(text)
            }

            fn count_once(&self, text: &str) -> i64 {
                (**self).count_once(text)
            }

            fn name(&self) -> &str {
                (**self).name()
            }

            fn is_estimate(&self) -> bool {
                (**self).is_estimate()
            }

            fn identity(&self) -> Option<u64> {
                (**self).identity()
            }
        }
    )*};
}

forward!(Box<T>, Arc<T>, &T);
