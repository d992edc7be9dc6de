//! [`Sent`]: a window as its provider got it, by hashes.
//!
//! A provider's prompt cache reads the prefix that a request has in common with the one before. To tell how much that is,
//! a window is remembered as one hash per message, so that a log of any size takes 24 bytes per message of the windows
//! that are still to be compared:
//!
//! ```text
//! request 1   tools, system | 0 user  1 call  2 result
//! request 2   tools, system | 0 user  1 call  2 result  3 call  4 result     reuses all of request 1
//! request 3   tools, system | 0 user  marker            3 call  4 result     reuses tools, system and 0
//! request 4   other tools   | 0 user  marker            3 call  4 result     reuses nothing
//! ```

use crate::cache::{unmarked, without_marks};
use crate::fit::Fitted;
use crate::fitter::{Reuse, hash, written};

/// A window as its provider got it, by hashes; see [`Fitted::sent`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The hash of what comes before the messages, and of what has a cache of its own: the format and the model.
    head: u64,
    /// The tokens of the request overhead.
    overhead: i64,
    /// The messages: position, hash and tokens.
    messages: Vec<(usize, u64, i64)>,
}

impl Fitted<'_> {
    /// Returns what is needed to tell what the next request of the conversation reuses. Each model has a prompt cache of
    /// its own.
    ///
    /// ```
    /// use cupel::ContextBudget;
    /// use cupel_chat::{Chat, Heuristic, default_policy};
    ///
    /// let first = Chat::parse(r#"[{"role": "user", "content": "Hello!"}]"#, None)?;
    /// let next = Chat::parse(r#"[
    ///   {"role": "user", "content": "Hello!"},
    ///   {"role": "assistant", "content": "Hello! What can I do for you?"},
    ///   {"role": "user", "content": "What is 2 + 2?"}
    /// ]"#, None)?;
    /// let budget = ContextBudget::with_target(1_000, 1_000)?;
    /// let first = first.fit(&default_policy(), &budget, &Heuristic)?;
    /// let next = next.fit(&default_policy(), &budget, &Heuristic)?;
    /// let model = Some("gpt-4o");
    /// let reuse = next.sent(model).reuse_of(&first.sent(model));
    /// assert_eq!((reuse.tokens, reuse.share), (first.tokens_after, 1.0));
    /// assert_eq!(next.sent(model).reuse_of(&first.sent(Some("gpt-4.1"))).tokens, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sent(&self, model: Option<&str>) -> Sent {
        let chat = self.chat;
        let head = hash(0, chat.shape.name().as_bytes());
        let head = hash(head, model.unwrap_or_default().as_bytes());
        let fields = chat.shape.format().request_fields.iter();
        let fields =
            fields.filter_map(|field| Some((field.key(), chat.layout.field(field.key())?)));
        let fields = fields.filter(|(_, value)| !value.is_null());
        let head = fields.fold(head, |head, (key, value)| {
            let text = value.to_string();
            // A breakpoint of the prompt cache is no part of the prompt.
            let text = without_marks(&text);
            hash(hash(head, key.as_bytes()), text.as_bytes())
        });
        let hash_of = |index: usize| {
            let text = unmarked(chat.layout.json(index), &chat.messages[index]);
            hash(0, text.as_bytes())
        };
        // The report has the kept messages in the same order, and after them the request overhead.
        let tokens_of = |index: usize| {
            let position = self.kept.partition_point(|&it| it < index);
            let entry = self.report.included.get(position);
            entry.map_or(0, |it| it.item.tokens())
        };
        let messages = written(self, hash_of, tokens_of);
        let tokens = messages.iter().map(|(_, _, tokens)| *tokens);
        let tokens = tokens.fold(0, i64::saturating_add);
        Sent {
            head,
            overhead: self.tokens_after.saturating_sub(tokens),
            messages,
        }
    }
}

impl Sent {
    /// Returns the number of messages and markers.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns what this request shares with the one that was sent before. Other than in a session, the tokens are those
    /// of the whole request: if tools, system prompt, format and model are the same, the request overhead is reused too,
    /// otherwise nothing is.
    pub fn reuse_of(&self, previous: &Self) -> Reuse {
        let is_same = self.head == previous.head;
        let next: &[_] = if is_same { &self.messages } else { &[] };
        let overhead = (
            if is_same { previous.overhead } else { 0 },
            previous.overhead,
        );
        Reuse::between(&previous.messages, next, overhead)
    }
}
