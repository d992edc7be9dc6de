//! Summaries in the place of dropped messages, made by the caller: a command, a function, a model.
//!
//! A summary is as long as its author likes, and the window has to be chosen before there is one. So the window is
//! chosen with a marker of as many tokens as a summary may have, and each marker then gets a summary, cut to that
//! many:
//!
//! ```text
//! chat      0 1 2 3 4 5 6 7
//! window    0 [4 earlier messages omitted omitted ...] 5 6 7
//! result    0 [the summary of 1 2 3 4]                 5 6 7
//! ```
//!
//! The session remembers the summaries of the last window by a hash of the messages, so that a growing chat is
//! summarized once per cut.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use cupel_chat::{Fitted, SessionWindow, TokenCounter};
use sha2::{Digest as _, Sha256};

use crate::argument::Argument;
use crate::error::{Error, Fault};
use crate::fit::Session;
use crate::options::{Options, check_ladder};
use crate::policy::NamedPolicy;
use crate::prepared::PreparedSession;

/// The most tokens of a summary, unless the caller says otherwise: a paragraph.
pub const SUMMARY_TOKENS: i64 = 200;

/// The largest limit of a summary. The marker that leaves room for it is some eight bytes per token.
const MAX_SUMMARY_TOKENS: i64 = 100_000;

/// The messages that a summary stands for.
#[derive(Debug, Clone)]
pub struct DroppedMessages {
    /// Their positions in the chat.
    pub positions: Range<usize>,
    /// The messages as a JSON array, each as it is written in the chat.
    pub json: String,
    /// The hash of the author of the summary, its limit and the messages: the name of the summary.
    pub key: String,
}

impl Options {
    /// Returns a policy whose markers leave room for summaries, if they are asked for.
    pub(crate) fn with_summaries(
        &self,
        named: NamedPolicy,
        counter: &dyn TokenCounter,
    ) -> Result<NamedPolicy, Error> {
        let Some(tokens) = self.summary_tokens else {
            return Ok(named);
        };
        self.check_summaries(&named)?;
        let mut chat = named.policy.chat().clone();
        chat.marker = Some(marker_of(tokens, counter));
        let policy = named.policy.to_builder().chat(chat).build();
        Ok(NamedPolicy {
            name: named.name,
            policy: policy.map_err(Error::internal)?,
        })
    }

    /// Checks that summaries can be made with a policy, if they are asked for.
    pub(crate) fn check_summaries(&self, named: &NamedPolicy) -> Result<(), Error> {
        let Some(tokens) = self.summary_tokens else {
            return Ok(());
        };
        if !(1..=MAX_SUMMARY_TOKENS).contains(&tokens) {
            return Err(Fault::SummaryTokens(tokens, MAX_SUMMARY_TOKENS).into());
        }
        let marker = Argument::Chat("marker");
        if self.chat.given().any(|it| it.name() == marker.name()) {
            return Err(Fault::Exclude(marker, Argument::Summarize).into());
        }
        check_ladder(&named.policy, &named.name, Argument::Summarize)
    }
}

/// Returns the shortest marker that has this many tokens, out of one word repeated.
fn marker_of(tokens: i64, counter: &dyn TokenCounter) -> String {
    let marker = |words| {
        format!(
            "[{{n}} earlier messages omitted]{}",
            " omitted".repeat(words)
        )
    };
    // Binary search: a counter of the caller may take long. A word has a token or more; a counter that disagrees, such
    // as one that returns 1 for every text, gets a word per token.
    let (mut least, mut most) = (0, usize::try_from(tokens).unwrap_or(usize::MAX));
    while least < most {
        let middle = usize::midpoint(least, most);
        if counter.count(&marker(middle)) < tokens {
            least = middle + 1;
        } else {
            most = middle;
        }
    }
    marker(least)
}

impl PreparedSession {
    /// Fits the chat as [`fit`](Self::fit) does, and puts a summary in the place of each marker.
    ///
    /// `summarize` is asked for those that the session does not remember. `author` names it: the summaries of another
    /// author are not used. If it fails, the session does not change.
    ///
    /// # Errors
    ///
    /// Those of [`fit`](Self::fit) and of `summarize`; [`Fault::EmptySummary`].
    pub fn fit_summarized<E: From<Error>>(
        &self,
        session: &mut Session,
        author: &str,
        summarize: impl FnMut(&DroppedMessages) -> Result<String, E>,
    ) -> Result<SessionWindow<'_>, E> {
        let before = session.state().clone();
        let mut window = self.fit(session)?;
        match self.replace_markers(before.summaries(), &mut window.fitted, author, summarize) {
            Ok(summaries) => {
                session.remember_summaries(summaries);
                Ok(window)
            }
            Err(error) => {
                *session = Session::resume(before);
                Err(error)
            }
        }
    }

    /// Puts a summary in the place of each marker. Returns the summaries of this window by their keys.
    fn replace_markers<E: From<Error>>(
        &self,
        known: &BTreeMap<String, String>,
        fitted: &mut Fitted<'_>,
        author: &str,
        mut summarize: impl FnMut(&DroppedMessages) -> Result<String, E>,
    ) -> Result<BTreeMap<String, String>, E> {
        let mut used = BTreeMap::new();
        for position in 0..fitted.markers.len() {
            let marker = &fitted.markers[position];
            let positions = marker.before - marker.omitted..marker.before;
            let messages: Vec<&str> = positions
                .clone()
                .map(|index| self.chat.message(index).json())
                .collect();
            let json = format!("[{}]", messages.join(","));
            let dropped = DroppedMessages {
                positions,
                key: key(author, self.summary_tokens, &json),
                json,
            };
            let summary = match known.get(&dropped.key) {
                Some(summary) => summary.clone(),
                None => self.cut(&summarize(&dropped)?)?,
            };
            fitted.set_marker_text(position, &summary, self.counter());
            used.insert(dropped.key, summary);
        }
        Ok(used)
    }

    /// Returns the longest prefix of a text that ends with a word and has at most the tokens of a summary.
    fn cut(&self, text: &str) -> Result<String, Error> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Fault::EmptySummary.into());
        }
        let fits = |text: &str| self.counter().count(text) <= self.summary_tokens;
        if fits(text) {
            return Ok(text.to_owned());
        }
        let words = text.match_indices(char::is_whitespace).map(|(at, _)| at);
        let ends: Vec<usize> = words.collect();
        let ends = if ends.is_empty() {
            text.char_indices().map(|(at, _)| at).collect()
        } else {
            ends
        };
        let shortened = |end: usize| format!("{} [...]", text[..end].trim_end());
        let count = ends.partition_point(|&end| fits(&shortened(end)));
        Ok(shortened(count.checked_sub(1).map_or(0, |last| ends[last])))
    }
}

/// Returns the hash of an author, a limit and messages.
fn key(author: &str, tokens: i64, dropped: &str) -> String {
    let limit = tokens.to_string();
    let mut hash = Sha256::new();
    for part in [author, &limit, dropped] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    let mut key = String::new();
    for byte in hash.finalize() {
        let _ = write!(key, "{byte:02x}");
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts every text as one number.
    struct Constant(i64);

    impl TokenCounter for Constant {
        fn count(&self, _: &str) -> i64 {
            self.0
        }

        fn name(&self) -> &'static str {
            "constant"
        }

        fn is_estimate(&self) -> bool {
            true
        }
    }

    struct Words;

    impl TokenCounter for Words {
        fn count(&self, text: &str) -> i64 {
            i64::try_from(text.split_whitespace().count()).expect("a small number")
        }

        fn name(&self) -> &'static str {
            "words"
        }

        fn is_estimate(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_marker_has_the_tokens_of_a_summary() {
        for tokens in [1, 4, 5, 200, 1_000] {
            // The marker without more words has four.
            let expected = usize::try_from(tokens.max(4)).expect("a small number");
            let marker = marker_of(tokens, &Words);
            assert_eq!(marker.split_whitespace().count(), expected, "{tokens}");
        }
    }

    #[test]
    fn a_counter_that_never_reaches_the_limit_ends() {
        assert_eq!(marker_of(20, &Constant(1)).matches(" omitted").count(), 21);
        assert_eq!(marker_of(20, &Constant(99)).matches(" omitted").count(), 1);
    }
}
