//! Items of the library.

use serde_json::Value;

use super::Format;
use crate::message::ParsedMessage;

pub(super) const FORMAT: Format = Format {
    is_chat: false,
    lists: &["items"],
    request_fields: &[],
    is_estimated: false,
    evidence,
    // `Chat::parse` reads the items themselves.
    ..Format::new("items", "items", |_| Ok(ParsedMessage::default()))
};

fn evidence(element: &Value) -> Option<String> {
    let has = |key: &str| element.get(key).is_some();
    let is_item = !has("role") && !has("lc") && (has("tokens") || !has("type") && has("content"));
    let key = if has("content") { "content" } else { "tokens" };
    is_item.then(|| format!("`{key}` without `role`"))
}
