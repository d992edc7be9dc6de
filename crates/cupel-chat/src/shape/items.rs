//! Items of the library.

use serde_json::Value;

use super::{Format, Shape, Start};
use crate::message::ParsedMessage;
use crate::tokens::image;

pub(super) const FORMAT: Format = Format {
    shape: Shape::Items,
    name: "items",
    start: Start::Any,
    groups_model_items: false,
    // `Chat::parse` reads the items themselves.
    read: |_| Ok(ParsedMessage::default()),
    evidence,
    request_evidence: |_| None,
    block_types: &[],
    image_tokens: image::openai_tokens,
};

fn evidence(element: &Value) -> Option<String> {
    let has = |key: &str| element.get(key).is_some();
    let is_item = !has("role") && !has("lc") && (has("tokens") || !has("type") && has("content"));
    let key = if has("content") { "content" } else { "tokens" };
    is_item.then(|| format!("`{key}` without `role`"))
}
