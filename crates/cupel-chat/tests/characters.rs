//! A counter of one token per character, so that counts can be worked out by hand.

use cupel_chat::TokenCounter;

pub(crate) struct Characters;

impl TokenCounter for Characters {
    fn count(&self, text: &str) -> i64 {
        i64::try_from(text.chars().count()).unwrap()
    }

    fn name(&self) -> &'static str {
        "characters"
    }

    fn is_estimate(&self) -> bool {
        true
    }
}
