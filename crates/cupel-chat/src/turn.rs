//! One message of any shape, as the rest of the crate sees it.

use chrono::{DateTime, Utc};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Whoever set the model up: system and developer messages.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool that answers a call.
    Tool,
    /// Something else that stands among the messages.
    Other,
}

/// One message.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Turn {
    pub(crate) role: Option<Role>,
    /// The role or type as it is written.
    pub(crate) label: String,
    /// The calls it makes and the calls it answers, by id.
    pub(crate) calls: Vec<String>,
    pub(crate) results: Vec<String>,
    /// The id of the item that its call is, by which it may be answered too.
    pub(crate) item_id: Option<String>,
    /// Whether it leads to the message after it and means nothing without.
    pub(crate) leads: bool,
    /// Whether it says anything but results.
    pub(crate) speaks: bool,
    pub(crate) pieces: Vec<Piece>,
    /// Whether it has a name, which is among the pieces.
    pub(crate) named: bool,
    pub(crate) time: Option<DateTime<Utc>>,
}

/// Something that costs tokens.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    /// A tool call: name and arguments.
    Call(String, String),
    Image(Image),
    Audio,
    File,
    /// Text only the provider can read, by its length in bytes.
    Cipher(usize),
}

/// What is known of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Image {
    pub(crate) size: Option<(u32, u32)>,
    pub(crate) low_detail: bool,
}

impl Turn {
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

    pub(crate) fn say(&mut self, text: &str) {
        self.speaks = true;
        if !text.is_empty() {
            self.pieces.push(Piece::Text(text.to_owned()));
        }
    }

    /// Adds a call; one that was seen already, in another spelling, costs nothing more.
    pub(crate) fn call(&mut self, id: &str, name: &str, arguments: String) {
        self.speaks = true;
        if !self.calls.iter().any(|known| known == id) {
            self.calls.push(id.to_owned());
            self.pieces.push(Piece::Call(name.to_owned(), arguments));
        }
    }

    /// Whether a model made it.
    pub(crate) fn is_made_by_model(&self) -> bool {
        self.role() == Role::Assistant
    }

    /// Whether it is the user speaking, not only handing over results.
    pub(crate) fn is_user_turn(&self) -> bool {
        self.role() == Role::User && self.speaks
    }

    /// What there is to read.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            if !text.is_empty() {
                text.push('\n');
            }
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Call(name, arguments) => {
                    text.push_str(name);
                    text.push('(');
                    text.push_str(arguments);
                    text.push(')');
                }
                Piece::Image(_) => text.push_str("[image]"),
                Piece::Audio => text.push_str("[audio]"),
                Piece::File => text.push_str("[file]"),
                Piece::Cipher(_) => text.push_str("[encrypted]"),
            }
        }
        if text.is_empty() {
            text.push_str("[empty]");
        }
        text
    }
}
