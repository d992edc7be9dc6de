//! Shortens tool results and texts to a number of tokens.
//!
//! The output depends on the text, the level and the counter only, so that a shortened message stays
//! the same from turn to turn. JSON stays JSON ([`json`]), other text is cut by whole lines
//! ([`lines`]), base64 and binary become placeholders ([`binary`]). Markers say how much is gone.

mod binary;
mod document;
mod identifiers;
mod json;
mod lines;
mod search;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::TokenCounter;
use document::Document;
use lines::{Shares, Text};
use search::Limit;

/// A text that can be shortened to any number of tokens.
#[derive(Debug)]
pub(crate) struct Shortener<'t> {
    original: &'t str,
    form: Form<'t>,
}

#[derive(Debug)]
enum Form<'t> {
    /// A JSON object or array.
    Json(Document),
    /// A JSON string, by its value.
    JsonString(Text<'static>),
    Text(Text<'t>),
}

impl<'t> Shortener<'t> {
    pub(crate) fn new(original: &'t str) -> Self {
        let text = binary::replace(original);
        let form = match text.trim_start().bytes().next() {
            Some(b'{' | b'[') => Document::parse(&text, original.chars().count()).map(Form::Json),
            Some(b'"') => serde_json::from_str::<String>(&text)
                .ok()
                .map(|value| Form::JsonString(Text::new(Cow::Owned(value)))),
            _ => None,
        };
        Self {
            original,
            form: form.unwrap_or_else(|| Form::Text(Text::new(text))),
        }
    }

    /// Returns the tool result in at most `level` tokens, or `None` if it has no more than that
    /// already or cannot be shortened that far.
    pub(crate) fn result(&self, level: i64, counter: &dyn TokenCounter) -> Option<String> {
        self.shorten(level, counter, Shares::RESULT)
    }

    /// Returns the assistant's or user's text in at most `level` tokens, or `None` as
    /// [`result`](Self::result) does.
    pub(crate) fn prose(&self, level: i64, counter: &dyn TokenCounter) -> Option<String> {
        self.shorten(level, counter, Shares::PROSE)
    }

    fn shorten(&self, level: i64, counter: &dyn TokenCounter, shares: Shares) -> Option<String> {
        let limit = Limit::exceeded(self.original, level, counter)?;
        match &self.form {
            Form::Json(document) => document.shorten(limit),
            Form::JsonString(text) => text.shorten(limit, shares, &json::quote),
            Form::Text(text) => text.shorten(limit, shares, &str::to_owned),
        }
    }
}
