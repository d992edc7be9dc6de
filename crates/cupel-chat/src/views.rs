//! Shorter views of one message.
//!
//! A message has one or more strings that may be cut (`Slot`): texts of tool results, the text of
//! the task. A view at a level replaces each of them by a text of at most that many tokens. Its
//! cost is the cost of the message plus the difference of the strings, without building the
//! message:
//!
//! ```text
//! message of 1,210 tokens, one result of 1,200       level 400
//! the result in 396 tokens                           1,210 + 396 - 1,200 = 406
//! ```

use std::cell::OnceCell;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::chat::Chat;
use crate::message::{ContentPart, ParsedMessage, Slot};
use crate::shorten::Shortener;
use crate::tokens::memory::{Memory, Name};
use crate::tokens::{TokenCounter, cost};

/// Shorter texts for some strings of a message.
#[derive(Debug, Clone)]
pub(crate) struct Replacement {
    pub(crate) level: i64,
    /// The tokens of the message with the shorter texts.
    pub(crate) tokens: i64,
    /// The path of each string and its new text.
    pub(crate) texts: Vec<(String, String)>,
}

/// Shortens one message to any level.
pub(crate) struct MessageShortener<'c> {
    message: &'c ParsedMessage,
    /// The tokens of the message as it was read.
    tokens: i64,
    strings: Vec<Shortenable<'c>>,
}

/// A string that a shorter one may replace.
struct Shortenable<'c> {
    slot: &'c Slot,
    text: &'c str,
    /// Made when they are needed.
    shortener: OnceCell<Shortener<'c>>,
    name: OnceCell<Name>,
    tokens: i64,
    /// How many strings share a level: those of the same tool result.
    sharing: i64,
}

/// The fewest tokens of one of several strings that share a level. A result of 50 short texts at a
/// level of 100 would leave 2 tokens for each: less than a marker.
const LEAST_SHARE: i64 = 15;

impl Chat {
    /// Returns whether a message has a tool result with text.
    pub(crate) fn has_result(&self, index: usize) -> bool {
        let slots = &self.messages[index].slots;
        slots.iter().any(|slot| slot.result.is_some())
    }

    /// Returns the strings of a message that a shorter text may replace: those of its tool results; or
    /// all its texts, if it is the task, an assistant message of texts only, or one that contains the
    /// results of its own calls.
    fn replaceable(&self, index: usize, is_task: bool) -> Vec<&Slot> {
        let message = &self.messages[index];
        if self.has_result(index) {
            let slots = message.slots.iter();
            let is_own = message.is_from_model();
            return slots
                .filter(|slot| is_own || slot.result.is_some())
                .collect();
        }
        let members = self.groups.with(index).iter();
        let mut from_model = members.filter(|&&member| self.messages[member].is_from_model());
        let is_alone = from_model.nth(1).is_none();
        let is_text_only = message.slots.len() == message.parts.len();
        if is_task || (message.is_from_model() && is_alone && is_text_only) {
            return message.slots.iter().collect();
        }
        Vec::new()
    }

    /// Returns the shortener of a message of `tokens` tokens.
    pub(crate) fn shortener(
        &self,
        index: usize,
        tokens: i64,
        is_task: bool,
        counter: &dyn TokenCounter,
    ) -> MessageShortener<'_> {
        let message = &self.messages[index];
        let slots = self.replaceable(index, is_task);
        let own = |text: &str| {
            if message.parts.len() == 1 {
                // The rest of the message is its role.
                tokens - cost::message(self.shape, &message.without_parts(), counter)
            } else {
                counter.count(text)
            }
        };
        let strings = slots.iter().filter_map(|&slot| {
            let ContentPart::Text(text) = &message.parts[slot.part] else {
                return None;
            };
            let sharing = slots.iter().filter(|other| other.result == slot.result);
            Some(Shortenable {
                slot,
                text,
                shortener: OnceCell::new(),
                name: OnceCell::new(),
                tokens: own(text),
                sharing: i64::try_from(sharing.count()).unwrap_or(i64::MAX),
            })
        });
        MessageShortener {
            message,
            tokens,
            strings: strings.collect(),
        }
    }
}

impl MessageShortener<'_> {
    /// Returns the message shortened to a level, if that makes it shorter: its text, and what to
    /// replace. The strings of one tool result share the level.
    pub(crate) fn shorten(
        &self,
        level: i64,
        counter: &dyn TokenCounter,
    ) -> Option<(String, Replacement)> {
        let mut replacement = Replacement {
            level,
            tokens: self.tokens,
            texts: Vec::new(),
        };
        let mut replaced = Vec::new();
        for string in &self.strings {
            let share = (level / string.sharing).max(LEAST_SHARE.min(level));
            if string.tokens <= share {
                continue;
            }
            if let Some(text) = string.shorten(share, counter) {
                replacement.tokens += counter.count(&text) - string.tokens;
                replacement
                    .texts
                    .push((string.slot.path.clone(), text.to_string()));
                replaced.push(string.slot.part);
            }
        }
        if replacement.tokens >= self.tokens {
            return None;
        }
        let texts = replaced.iter().zip(&replacement.texts);
        let texts: Vec<(usize, &str)> = texts.map(|(part, (_, text))| (*part, &**text)).collect();
        Some((self.message.text_with(&texts), replacement))
    }
}

/// The most bytes of shortened texts that the process remembers.
const REMEMBERED: usize = 1 << 25;

/// A shortened text; `None` if a level makes none.
type Shortened = Option<Arc<str>>;

impl Shortenable<'_> {
    /// Returns the string shortened to a level, as the process remembers it.
    fn shorten(&self, level: i64, counter: &dyn TokenCounter) -> Shortened {
        static SHORTENED: LazyLock<Memory<Shortened>> = LazyLock::new(|| Memory::new(REMEMBERED));
        let make = || self.make(level, counter).map(Arc::from);
        let Some(counter) = counter.identity() else {
            return make();
        };
        let kind = u64::from(self.slot.result.is_some()) + 2 * u64::from(self.slot.is_json);
        let text = self.name.get_or_init(|| Name::of(self.text, 0));
        let name = text.with([counter, level.unsigned_abs(), kind]);
        SHORTENED.get_or_make(name, |it| 64 + it.as_deref().map_or(0, str::len), make)
    }

    fn make(&self, level: i64, counter: &dyn TokenCounter) -> Option<String> {
        let shortener = self.shortener.get_or_init(|| Shortener::new(self.text));
        let text = match self.slot.result {
            Some(_) => shortener.result(level, counter),
            None => shortener.prose(level, counter),
        }?;
        let text = if self.slot.is_json {
            normalized(&text, self.text)?
        } else {
            text
        };
        // Fewer tokens of more characters would say less at the same length.
        Some(text).filter(|text| text.len() < self.text.len())
    }
}

/// Returns shortened JSON as the message is read again, so that it has the tokens that are counted here.
/// An array stays an array.
fn normalized(json: &str, original: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(json).ok()?;
    if original.starts_with('[') && !value.is_array() {
        value = Value::from(vec![value]);
    }
    Some(value.to_string())
}
