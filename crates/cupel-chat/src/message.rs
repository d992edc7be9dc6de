//! One message of any chat format, as the rest of the crate sees it.

use chrono::{DateTime, Utc};
use serde_json::Value;

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// System and developer messages.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool: the message is a tool result.
    Tool,
    /// Any other item in the list.
    Other,
}

/// One message.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is one property of the content, independent of the others"
)]
pub(crate) struct ParsedMessage {
    pub(crate) role: Option<Role>,
    /// The role or type as written.
    pub(crate) label: String,
    /// The ids of its tool calls.
    pub(crate) calls: Vec<String>,
    /// The ids of the tool calls whose results it contains.
    pub(crate) results: Vec<String>,
    /// The id of the item of its tool call. A result may refer to the call by it.
    pub(crate) item_id: Option<String>,
    /// Ids that link it to other messages, except ids of the caller's tool calls.
    pub(crate) links: Vec<Link>,
    /// Whether it is invalid without the next message, as reasoning is.
    pub(crate) precedes_next: bool,
    /// Why it is mandatory, if its content is.
    pub(crate) required: Option<Required>,
    /// The path and the name of a block type or an item type in it that is unknown.
    pub(crate) unknown: Option<(String, String)>,
    /// Whether it contains thinking that the provider signed.
    pub(crate) has_thinking: bool,
    /// Whether it has a breakpoint of the provider's prompt cache.
    pub(crate) has_cache_breakpoint: bool,
    /// Whether it contains anything but tool results.
    pub(crate) has_own_content: bool,
    pub(crate) parts: Vec<ContentPart>,
    /// The text parts that a shorter text may replace.
    pub(crate) slots: Vec<Slot>,
    pub(crate) time: Option<DateTime<Utc>>,
}

/// An id that messages share: those of a tool call that the provider executes, of an approval, or of a
/// program. The messages are valid only together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) id: String,
    /// Whether the message is invalid without an earlier message with the same id.
    pub(crate) is_result: bool,
    /// The number of parts up to its own.
    parts: usize,
}

/// Why a message is mandatory because of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Required {
    /// It stands for all messages before it.
    Compaction,
    /// It sets tools or parameters from its position on.
    Setting,
}

/// A text part that a shorter text may replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The index of the part.
    pub(crate) part: usize,
    /// The path of the value in the message, such as `content[0].text`.
    pub(crate) path: String,
    /// Whether the value is JSON that stays JSON, instead of a string.
    pub(crate) is_json: bool,
    /// Which of the message's tool results the string is part of.
    pub(crate) result: Option<usize>,
}

/// A part of a message that costs tokens.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ContentPart {
    Text(String),
    /// The name of the author.
    Name(String),
    /// A tool call: name and arguments.
    Call(String, String),
    Image(Image),
    Audio,
    File,
    /// Encrypted text, by its length in bytes.
    Encrypted(usize),
}

/// The properties of an image that determine its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Image {
    pub(crate) size: Option<(u32, u32)>,
    pub(crate) low_detail: bool,
}

impl ParsedMessage {
    pub(crate) fn new(role: Role, label: &str) -> Self {
        Self {
            role: Some(role),
            label: label.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn role(&self) -> Role {
        self.role.unwrap_or(Role::Other)
    }

    pub(crate) fn push_text(&mut self, text: &str) {
        self.has_own_content = true;
        if !text.is_empty() {
            self.parts.push(ContentPart::Text(text.to_owned()));
        }
    }

    /// Adds a text that a shorter one may replace.
    pub(crate) fn push_slot(&mut self, text: &str, path: &str) {
        self.push_replaceable(text, path, false);
    }

    /// Adds a JSON value that a shorter one of the same type may replace.
    pub(crate) fn push_json(&mut self, value: &Value, path: &str) {
        match value {
            Value::String(text) => self.push_slot(text, path),
            Value::Array(_) | Value::Object(_) => {
                self.push_replaceable(&value.to_string(), path, true);
            }
            scalar => self.push_text(&scalar.to_string()),
        }
    }

    fn push_replaceable(&mut self, text: &str, path: &str, is_json: bool) {
        let part = self.parts.len();
        self.push_text(text);
        if self.parts.len() > part {
            self.slots.push(Slot {
                part,
                path: path.to_owned(),
                is_json,
                result: (self.role() == Role::Tool).then_some(0),
            });
        }
    }

    /// Adds a part that is not text.
    pub(crate) fn push_part(&mut self, part: ContentPart) {
        self.has_own_content = true;
        self.parts.push(part);
    }

    /// Adds a tool result, whose content `read` adds.
    pub(crate) fn push_result<E>(
        &mut self,
        id: &str,
        read: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.results.push(id.to_owned());
        let had_content = self.has_own_content;
        let slots = self.slots.len();
        read(self)?;
        self.has_own_content = had_content;
        for slot in &mut self.slots[slots..] {
            slot.result = Some(self.results.len());
        }
        Ok(())
    }

    /// Adds a tool call. A call with a known id is the same call in another notation and costs nothing.
    pub(crate) fn push_call(&mut self, id: &str, name: &str, arguments: String) {
        self.has_own_content = true;
        if !self.calls.iter().any(|known| known == id) {
            self.calls.push(id.to_owned());
            self.parts
                .push(ContentPart::Call(name.to_owned(), arguments));
        }
    }

    /// Adds an id that it shares with an earlier or a later message, after the part with the id.
    pub(crate) fn push_link(&mut self, id: &str, is_result: bool) {
        self.links.push(Link {
            id: id.to_owned(),
            is_result,
            parts: self.parts.len(),
        });
    }

    /// Returns whether its last part is a tool call that the provider executes, or the result of one.
    pub(crate) fn ends_in_server_tool(&self) -> bool {
        let last = self.links.last();
        last.is_some_and(|link| link.parts == self.parts.len())
    }

    /// Returns whether it stands for an item that the provider stores.
    pub(crate) fn is_reference(&self) -> bool {
        self.label == "item_reference"
    }

    pub(crate) fn is_from_model(&self) -> bool {
        self.role() == Role::Assistant
    }

    /// Returns whether it is a user message with content other than tool results.
    pub(crate) fn is_user_turn(&self) -> bool {
        self.role() == Role::User && self.has_own_content
    }

    /// Returns whether it stands for all messages before it.
    pub(crate) fn is_compaction(&self) -> bool {
        self.required == Some(Required::Compaction)
    }

    /// Returns the same message without its parts.
    pub(crate) fn without_parts(&self) -> Self {
        Self {
            role: self.role,
            label: self.label.clone(),
            ..Self::default()
        }
    }

    /// Returns the text; never empty.
    pub(crate) fn text(&self) -> String {
        self.text_with(&[])
    }

    /// Returns the text with other texts for some parts.
    pub(crate) fn text_with(&self, replaced: &[(usize, &str)]) -> String {
        let mut text = String::new();
        for (index, part) in self.parts.iter().enumerate() {
            if !text.is_empty() {
                text.push('\n');
            }
            if let Some((_, shorter)) = replaced.iter().find(|(part, _)| *part == index) {
                text.push_str(shorter);
                continue;
            }
            match part {
                ContentPart::Text(part) | ContentPart::Name(part) => text.push_str(part),
                ContentPart::Call(name, arguments) => {
                    text.push_str(name);
                    text.push('(');
                    text.push_str(arguments);
                    text.push(')');
                }
                ContentPart::Image(_) => text.push_str("[image]"),
                ContentPart::Audio => text.push_str("[audio]"),
                ContentPart::File => text.push_str("[file]"),
                ContentPart::Encrypted(_) => text.push_str("[encrypted]"),
            }
        }
        if text.is_empty() {
            text.push_str("[empty]");
        }
        text
    }
}
