//! Candidates and budgets.

use toml::Value;

use super::reader::Fields;
use crate::{
    error::VectorError,
    model::{Budget, Item, ScoredItem},
};

/// Reads the candidates under `[[items]]`.
pub(super) fn items(root: &Fields<'_>) -> Result<Vec<Item>, VectorError> {
    root.list("items")?.iter().map(item).collect()
}

/// Reads the candidates under `[[{key}]]` with their scores.
pub(super) fn scored_items(root: &Fields<'_>, key: &str) -> Result<Vec<ScoredItem>, VectorError> {
    root.list(key)?
        .iter()
        .map(|fields| {
            Ok(ScoredItem {
                item: item(fields)?,
                score: fields.required("score")?,
            })
        })
        .collect()
}

fn item(fields: &Fields<'_>) -> Result<Item, VectorError> {
    Ok(Item {
        id: fields.optional("id")?,
        content: fields.required("content")?,
        tokens: fields.required("tokens")?,
        kind: fields.optional("kind")?,
        source: fields.optional("source")?,
        priority: fields.optional("priority")?,
        tags: fields.list("tags")?,
        metadata: fields
            .optional::<Fields<'_>>("metadata")?
            .iter()
            .flat_map(Fields::entries)
            .map(|(key, node)| (key.clone(), plain_text(node.value)))
            .collect(),
        timestamp: fields.optional("timestamp")?,
        future_relevance_hint: fields.optional("futureRelevanceHint")?,
        pinned: fields.optional("pinned")?.unwrap_or(false),
        original_tokens: fields.optional("originalTokens")?,
    })
}

/// Returns a metadata value as a string (R015).
fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Reads the `[budget]` table.
pub(super) fn budget(root: &Fields<'_>) -> Result<Budget, VectorError> {
    let fields: Fields<'_> = root.required("budget")?;
    let target_tokens = fields.required("target_tokens")?;
    Ok(Budget {
        max_tokens: fields.optional("max_tokens")?.unwrap_or(target_tokens),
        target_tokens,
        output_reserve: fields.optional("output_reserve")?.unwrap_or(0),
        reserved_slots: fields
            .optional::<Fields<'_>>("reserved_slots")?
            .iter()
            .flat_map(Fields::entries)
            .map(|(kind, node)| Ok((kind.clone(), node.read()?)))
            .collect::<Result<_, VectorError>>()?,
        estimation_safety_margin_percent: fields
            .optional("estimation_safety_margin_percent")?
            .unwrap_or(0.0),
    })
}
