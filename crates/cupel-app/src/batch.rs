//! One of many requests: [`fit_request`] fits it, [`Conversations`] tells what it reuses of the one before.
//!
//! A log has millions of requests of many conversations, and their rows may be interleaved. What is remembered of a
//! conversation is its last window, as hashes, until too many others came:
//!
//! ```text
//! row  conversation  memory of 2 conversations     compared with
//! 0    a             a0                            nothing: the first of a
//! 1    b             a0 b1                         nothing: the first of b
//! 2    a             a2 b1                         a0
//! 3    c             a2 c3          b forgotten    nothing: the first of c
//! 4    b             b4 c3          a forgotten    unknown: row 1 was forgotten
//! ```

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use cupel_chat::{Reuse, Sent};

use crate::error::Error;
use crate::fit::FitAnswer;
use crate::notice::Notice;
use crate::options::Options;
use crate::prepared::{Prepared, Scope};
use crate::source::Source;

/// A fitted request of a log.
#[derive(Debug, Clone)]
pub struct FittedRequest {
    /// The answer without the chat and the texts of shortened messages.
    pub answer: FitAnswer,
    /// Settings without effect, an estimated count, and what the provider may reject.
    pub notices: Vec<Notice>,
    /// The window, to be compared with the next one of the conversation; `None` for items.
    pub sent: Option<Sent>,
    /// The fitted request, if it was asked for.
    pub request: Option<String>,
}

/// Fits one of many requests. The window is that of [`Prepared::fit`].
///
/// # Errors
///
/// What is wrong with the request or the options; a single message or item is no request.
///
/// ```
/// use cupel_app::{Options, Source, fit_request};
///
/// let mut options = Options::default();
/// options.budget.budget = Some("8k".into());
/// let request = r#"{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello!"}]}"#;
/// let fitted = fit_request(Source::new("request", request), &options, true)?;
/// assert_eq!(fitted.answer.kept, [0]);
/// assert_eq!(fitted.request.as_deref(), Some(request));
/// # Ok::<(), cupel_app::Error>(())
/// ```
pub fn fit_request(
    source: Source,
    options: &Options,
    with_request: bool,
) -> Result<FittedRequest, Error> {
    let prepared = Prepared::new(source, options, Scope::OneBudget)?;
    prepared.check_request()?;
    let fit = prepared.fit()?;
    let model = prepared.setting.model.as_deref();
    let mut notices = prepared.setting.all_notices();
    let warnings = fit.fitted.iter().flat_map(|fitted| &fitted.warnings);
    notices.extend(warnings.cloned().map(Notice::Window));
    Ok(FittedRequest {
        answer: fit.answer().without_texts(),
        notices,
        sent: fit.fitted.as_ref().map(|fitted| fitted.sent(model)),
        request: with_request.then(|| fit.text()).transpose()?,
    })
}

/// The most messages of windows that are remembered, at 24 bytes each: 50 MB. Half of them, which is a generation, is
/// enough for 20,000 conversations of 50 messages that go on at the same time.
const REMEMBERED: usize = 1 << 21;
/// The most forgotten conversations that are told from new ones, at 8 bytes each.
const FORGOTTEN: usize = 1 << 20;

/// What a request of a log shares with the previous request of its conversation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Continued {
    /// It is the first of its conversation.
    First,
    /// This much of the previous window.
    Reuse(Reuse),
    /// Unknown: it comes after a later one of its conversation.
    OutOfOrder,
    /// Unknown: the previous one was forgotten, because too many requests of other conversations came between.
    Forgotten,
}

/// The last windows of the conversations of a log, by hashes, in bounded memory.
///
/// Two generations: a window is added to the young one. When that is full, it becomes the old one, and what was old is
/// forgotten; a conversation that continues is young again.
pub struct Conversations {
    young: HashMap<u64, Remembered>,
    old: HashMap<u64, Remembered>,
    /// The messages in the young generation.
    messages: usize,
    /// The most of them.
    room: usize,
    forgotten: HashSet<u64>,
    hasher: RandomState,
}

struct Remembered {
    order: Option<i64>,
    sent: Sent,
}

impl Default for Conversations {
    fn default() -> Self {
        Self::with_room(REMEMBERED)
    }
}

impl Conversations {
    /// Creates a memory of at most as many messages of windows. A generation has half of them.
    pub fn with_room(messages: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            messages: 0,
            room: messages / 2,
            forgotten: HashSet::new(),
            hasher: RandomState::new(),
        }
    }

    /// Compares a request with the previous one of its conversation, and remembers it. `order` is its place among them,
    /// if that is known: one that is lower than before is not remembered.
    ///
    /// Requests that were not sent, such as one that cannot be fitted, are left out.
    pub fn push(&mut self, conversation: &str, order: Option<i64>, sent: Sent) -> Continued {
        // 64 bits: at ten million conversations the probability that two are taken for one is 3e-6 (birthday bound).
        let key = self.hasher.hash_one(conversation);
        let young = self.young.remove(&key);
        if let Some(remembered) = &young {
            self.messages -= remembered.weight();
        }
        let previous = young.or_else(|| self.old.remove(&key));
        let is_late = |it: &Remembered| it.order.zip(order).is_some_and(|(old, new)| new < old);
        let (continued, remembered) = match previous {
            Some(previous) if is_late(&previous) => (Continued::OutOfOrder, previous),
            Some(previous) => (
                Continued::Reuse(sent.reuse_of(&previous.sent)),
                Remembered { order, sent },
            ),
            None => {
                let continued = if self.forgotten.remove(&key) {
                    Continued::Forgotten
                } else {
                    Continued::First
                };
                (continued, Remembered { order, sent })
            }
        };
        self.insert(key, remembered);
        continued
    }

    fn insert(&mut self, key: u64, remembered: Remembered) {
        let weight = remembered.weight();
        if self.messages.saturating_add(weight) > self.room {
            let old = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            if self.forgotten.len().saturating_add(old.len()) > FORGOTTEN {
                self.forgotten.clear();
            }
            self.forgotten.extend(old.into_keys());
            self.messages = 0;
        }
        self.messages = self.messages.saturating_add(weight);
        self.young.insert(key, remembered);
    }
}

impl Remembered {
    /// Returns the messages; 1 for the conversation itself.
    fn weight(&self) -> usize {
        1 + self.sent.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chat of `turns` user turns with answers, and the next question.
    fn chat(turns: usize, extra: &str) -> String {
        let said = |it: usize| {
            format!(
                r#"{{"role": "user", "content": "Question {it}?"}}, {{"role": "assistant", "content": "Answer {it}."}}, "#
            )
        };
        let said: String = (0..turns).map(said).collect();
        format!(
            r#"{{"model": "gpt-4o"{extra}, "messages": [{said}{{"role": "user", "content": "Question {turns}?"}}]}}"#
        )
    }

    fn fitted(text: &str) -> FittedRequest {
        let mut options = Options::default();
        options.budget.budget = Some("8k".into());
        fit_request(Source::new("request", text), &options, false).unwrap()
    }

    fn sent(turns: usize) -> Sent {
        fitted(&chat(turns, "")).sent.unwrap()
    }

    fn reused(continued: Continued) -> (i64, i64) {
        match continued {
            Continued::Reuse(reuse) => (reuse.tokens, reuse.of),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_reuses_the_one_before_of_its_conversation() {
        let mut conversations = Conversations::default();
        let tokens = |turns| fitted(&chat(turns, "")).answer.tokens_after;
        assert_eq!(conversations.push("a", None, sent(1)), Continued::First);
        assert_eq!(conversations.push("b", None, sent(4)), Continued::First);
        let reuse = reused(conversations.push("a", None, sent(2)));
        assert_eq!(reuse, (tokens(1), tokens(1)));
        let reuse = reused(conversations.push("a", None, sent(3)));
        assert_eq!(reuse, (tokens(2), tokens(2)));
        // Its own tokens were 5 messages; the shorter one shares its 3 messages.
        let reuse = reused(conversations.push("b", None, sent(1)));
        assert_eq!(reuse, (tokens(1), tokens(4)));
    }

    #[test]
    fn other_tools_another_model_and_another_format_share_nothing() {
        let tools = r#", "tools": [{"type": "function", "function": {"name": "f"}}]"#;
        let tools = fitted(&chat(2, tools));
        let reuse = tools.sent.unwrap().reuse_of(&sent(1));
        assert_eq!(reuse.tokens, 0);
        let model = chat(2, "").replace("gpt-4o", "gpt-4.1");
        assert_eq!(fitted(&model).sent.unwrap().reuse_of(&sent(1)).tokens, 0);
        // A setting that is no part of the prompt.
        let seed = fitted(&chat(2, r#", "seed": 7"#)).sent.unwrap();
        assert_eq!(seed.reuse_of(&sent(1)).share, 1.0);
    }

    #[test]
    fn a_request_before_the_last_one_is_out_of_order() {
        let mut conversations = Conversations::default();
        conversations.push("a", Some(5), sent(1));
        let late = conversations.push("a", Some(4), sent(0));
        assert_eq!(late, Continued::OutOfOrder);
        // The later one is still compared with.
        let tokens = fitted(&chat(1, "")).answer.tokens_after;
        let reuse = reused(conversations.push("a", Some(5), sent(2)));
        assert_eq!(reuse, (tokens, tokens));
    }

    #[test]
    fn the_memory_is_bounded_and_says_what_it_forgot() {
        // Each conversation has one message: a generation has room for 10.
        let mut conversations = Conversations::with_room(2 * 10 * 2);
        let mut push = |name: &str| conversations.push(name, None, sent(0));
        assert_eq!(push("in use"), Continued::First);
        assert_eq!(push("once"), Continued::First);
        for number in 0..100 {
            assert_eq!(push(&format!("other {number}")), Continued::First);
            assert!(matches!(push("in use"), Continued::Reuse(_)));
        }
        assert_eq!(push("once"), Continued::Forgotten);
        assert_eq!(push("never seen"), Continued::First);
        assert!(matches!(push("once"), Continued::Reuse(_)));
        let kept = conversations.young.len() + conversations.old.len();
        assert!(kept <= 20, "{kept}");
    }

    #[test]
    fn the_window_is_that_of_fit() {
        let text = chat(40, "");
        let mut options = Options::default();
        options.budget.budget = Some("200".into());
        let source = || Source::new("request", &*text);
        let fitted = fit_request(source(), &options, true).unwrap();
        let prepared = Prepared::new(source(), &options, Scope::OneBudget).unwrap();
        let fit = prepared.fit().unwrap();
        assert!(!fitted.answer.dropped.is_empty());
        assert_eq!(fitted.answer.kept, fit.answer().kept);
        assert_eq!(fitted.request.unwrap(), fit.text().unwrap());
        // What is not the messages is the request overhead.
        let window = fit_request(Source::new("request", fit.text().unwrap()), &options, false);
        let reuse = window
            .unwrap()
            .sent
            .unwrap()
            .reuse_of(&fitted.sent.unwrap());
        assert_eq!((reuse.of, reuse.share), (fitted.answer.tokens_after, 1.0));
    }

    #[test]
    fn a_message_is_no_request() {
        let text = r#"{"role": "user", "content": "Hello!"}"#;
        let options = Options::default();
        assert!(fit_request(Source::new("request", text), &options, false).is_err());
    }
}
