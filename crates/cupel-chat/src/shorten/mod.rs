//! Shortens tool results and texts to a number of tokens.
//!
//! The output depends on the text, the level, the counter and what the text was asked for ([`query`]) only, so that
//! a shortened message stays the same from turn to turn. JSON stays JSON ([`json`]), other text is cut by lines that
//! suit its kind ([`text`], [`kinds`]), base64 and binary become placeholders ([`binary`]). Markers say how much is
//! gone.

mod binary;
mod document;
mod errors;
mod identifiers;
mod json;
mod kinds;
mod lines;
mod query;
mod search;
#[cfg(test)]
mod tests;
mod text;

use std::borrow::Cow;

use crate::TokenCounter;
use document::Document;
use kinds::Kind;
pub(crate) use query::{Query, Words};
use search::Limit;
use text::Text;

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
    /// Returns the shortener of a tool result.
    pub(crate) fn of_result(original: &'t str, query: &Query) -> Self {
        Self::new(original, query, &kinds::OF_RESULTS)
    }

    /// Returns the shortener of a text of the model or of a user.
    pub(crate) fn of_text(original: &'t str, query: &Query) -> Self {
        Self::new(original, query, &kinds::OF_TEXTS)
    }

    fn new(original: &'t str, query: &Query, kinds: &'static [Kind]) -> Self {
        let text = binary::replace(original);
        let form = match text.trim_start().bytes().next() {
            Some(b'{' | b'[') => {
                Document::parse(&text, original.chars().count(), query).map(Form::Json)
            }
            Some(b'"') => serde_json::from_str::<String>(&text)
                .ok()
                .map(|value| Form::JsonString(Text::new(Cow::Owned(value), query, kinds))),
            _ => None,
        };
        Self {
            original,
            form: form.unwrap_or_else(|| Form::Text(Text::new(text, query, kinds))),
        }
    }

    /// Returns the text in at most `level` tokens, or `None` if it has no more than that already or
    /// cannot be shortened that far.
    pub(crate) fn shorten(&self, level: i64, counter: &dyn TokenCounter) -> Option<String> {
        let limit = Limit::exceeded(self.original, level, counter)?;
        match &self.form {
            Form::Json(document) => document.shorten(limit),
            Form::JsonString(text) => text.shorten(limit, &json::quote),
            Form::Text(text) => text.shorten(limit, &str::to_owned),
        }
    }
}
