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
use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::Value;

use crate::chat::Chat;
use crate::message::{ContentPart, ParsedMessage, Slot};
use crate::shorten::{Query, Shortener, Words};
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
    asked: Asked<'c>,
}

/// What a message was asked for.
struct Asked<'c> {
    chat: &'c Chat,
    index: usize,
    query: OnceCell<Query>,
    name: OnceCell<u64>,
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

/// The user turns, which the messages after them are shortened for.
#[derive(Debug, Clone)]
pub(crate) struct Questions {
    /// By position, the last user turn before a message.
    turns: Vec<Option<usize>>,
    /// By position, the words of a user turn, and the name of its texts. Found when a message after it is shortened.
    words: Vec<OnceLock<Arc<Words>>>,
    names: Vec<OnceLock<u64>>,
}

impl Questions {
    pub(crate) fn new(messages: &[ParsedMessage]) -> Self {
        let mut last = None;
        let turns = messages.iter().enumerate().map(|(index, message)| {
            let before = last;
            last = Some(index).filter(|_| message.is_user_turn()).or(last);
            before
        });
        Self {
            turns: turns.collect(),
            words: vec![OnceLock::new(); messages.len()],
            names: vec![OnceLock::new(); messages.len()],
        }
    }
}

impl<'c> Asked<'c> {
    fn new(chat: &'c Chat, index: usize) -> Self {
        Self {
            chat,
            index,
            query: OnceCell::new(),
            name: OnceCell::new(),
        }
    }

    /// Returns the words of the last user turn before the message, and of the arguments of the calls whose results it
    /// has.
    fn query(&self) -> &Query {
        self.query.get_or_init(|| {
            let turn = self.chat.questions.turns[self.index].map_or_else(Arc::default, |turn| {
                let words = &self.chat.questions.words[turn];
                words
                    .get_or_init(|| Words::of(self.texts(turn)).into())
                    .clone()
            });
            Query {
                turn,
                calls: Words::of(self.arguments()).into(),
            }
        })
    }

    /// Names the texts that the words are from.
    fn name(&self) -> u64 {
        *self.name.get_or_init(|| {
            let turn = self.chat.questions.turns[self.index].map_or(0, |turn| {
                let name = &self.chat.questions.names[turn];
                *name.get_or_init(|| Name::of_all(self.texts(turn)))
            });
            turn.rotate_left(32) ^ Name::of_all(self.arguments())
        })
    }

    fn texts(&self, turn: usize) -> impl Iterator<Item = &'c str> {
        let message = &self.chat.messages[turn];
        let own = message.slots.iter().filter(|slot| slot.result.is_none());
        own.filter_map(|slot| match &message.parts[slot.part] {
            ContentPart::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    fn arguments(&self) -> impl Iterator<Item = &'c str> {
        let (chat, index) = (self.chat, self.index);
        let calls = chat.groups.with(index).iter();
        let calls = calls.filter(move |&&member| member <= index);
        let parts = calls.flat_map(|&member| &chat.messages[member].parts);
        parts.filter_map(|part| match part {
            ContentPart::Call(_, arguments) => Some(arguments.as_str()),
            _ => None,
        })
    }
}

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
            asked: Asked::new(self, index),
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
            if let Some((text, tokens)) = string.shorten(share, &self.asked, counter) {
                replacement.tokens += tokens - string.tokens;
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

/// A shortened text with its tokens; `None` if a level makes none.
type Shortened = Option<(Arc<str>, i64)>;

impl Shortenable<'_> {
    /// Returns the string shortened to a level, as the process remembers it.
    fn shorten(&self, level: i64, asked: &Asked<'_>, counter: &dyn TokenCounter) -> Shortened {
        static SHORTENED: LazyLock<Memory<Shortened>> = LazyLock::new(|| Memory::new(REMEMBERED));
        let make = || {
            let text = self.make(level, asked, counter)?;
            let tokens = counter.count_once(&text);
            Some((Arc::from(text), tokens))
        };
        let Some(counter) = counter.identity() else {
            return make();
        };
        let kind = u64::from(self.slot.result.is_some()) + 2 * u64::from(self.slot.is_json);
        let text = self.name.get_or_init(|| Name::of(self.text, 0));
        let level = level.unsigned_abs().rotate_left(8) ^ kind;
        let name = text.with([counter, level, asked.name()]);
        SHORTENED.get_or_make(
            name,
            |it| 64 + it.as_ref().map_or(0, |(text, _)| text.len()),
            make,
        )
    }

    fn make(&self, level: i64, asked: &Asked<'_>, counter: &dyn TokenCounter) -> Option<String> {
        let shortener = self.shortener.get_or_init(|| match self.slot.result {
            Some(_) => Shortener::of_result(self.text, asked.query()),
            None => Shortener::of_text(self.text, asked.query()),
        });
        let text = shortener.shorten(level, counter)?;
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Encoding;

    /// A chat in which a file of 50 functions is read, after one user turn and before another one.
    fn form_of_a_file(before: &str, path: &str, after: &str) -> String {
        let function =
            |number| format!("def handle_{number}(request):\n    return page({number})\n\n");
        let file: String = (0..50).map(function).collect();
        let arguments = json!({ "path": path }).to_string();
        let call = json!({"id": "c", "type": "function", "function": {"name": "read", "arguments": arguments}});
        let chat = json!([
            {"role": "user", "content": before},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": file},
            {"role": "user", "content": after},
        ]);
        let chat = Chat::parse(&chat.to_string(), None).unwrap();
        let tokens = cost::message(chat.shape, &chat.messages[2], &Encoding::O200k);
        let shortener = chat.shortener(2, tokens, false, &Encoding::O200k);
        shortener.shorten(100, &Encoding::O200k).unwrap().0
    }

    #[test]
    fn a_result_is_shortened_for_what_came_before_it() {
        let form = form_of_a_file("Why does handle_37 fail?", "src/handle_19.py", "Thanks.");
        assert!(form.contains("def handle_37(request)"), "{form}");
        assert!(form.contains("def handle_19(request)"), "{form}");
        let other = form_of_a_file("Why does it fail?", "src/pages.py", "Thanks.");
        assert!(!other.contains("def handle_37(request)"), "{other}");
        let later = form_of_a_file("Why does it fail?", "src/pages.py", "Look at handle_37.");
        assert_eq!(later, other);
    }
}
