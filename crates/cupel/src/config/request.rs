//! Requests as data: items, a budget and a policy.

use std::collections::HashMap;

use super::error::ConfigError;
use super::read::{
    Fields, as_text, blank, boolean, by_kind, integer, kind, list, number, out_of_range, policy,
    text, time, wrong_type,
};
use super::registry::{BUDGET, ITEM, ITEMS, REQUEST, Shape};
use super::tree::{Node, Value};
use super::{PolicyConfig, preset};
use crate::wire::float;
use crate::{ContextBudget, ContextItem, ContextSource};

type Result<T> = std::result::Result<T, ConfigError>;

/// What to choose from, within what, and how.
///
/// In a document it is `{"items": [...], "budget": {...}, "policy": ...}`, where the policy is the name of a
/// preset or a policy itself; or a list of items alone.
///
/// ```
/// use cupel::config::{Document, Format};
///
/// let text = r#"{
///   "items": [{"content": "hello", "tokens": 2}],
///   "budget": {"max_tokens": 100},
///   "policy": {"scorer": {"type": "recency"}}
/// }"#;
/// let request = Document::parse(text, Format::Json)?.request()?;
/// let policy = request.policy.unwrap().build()?;
/// assert_eq!(policy.run(&request.items, &request.budget.unwrap())?.len(), 1);
///
/// let text = r#"[{"content": "hello", "tokens": "two"}]"#;
/// let error = Document::parse(text, Format::Json)?.request().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"line 1, column 33: [0].tokens: expected a whole number, got the text "two""#
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestConfig {
    /// The candidates.
    pub items: Vec<ContextItem>,
    /// The limits, if given.
    pub budget: Option<ContextBudget>,
    /// The policy, if given; a preset's if it was named.
    pub policy: Option<PolicyConfig>,
}

/// What counts the tokens of a content whose item does not say them; `None` if every item has to.
pub(super) type Count<'c> = Option<&'c dyn Fn(&str) -> i64>;

pub(super) fn request(node: &Node<'_>) -> Result<RequestConfig> {
    request_with(node, None)
}

pub(super) fn request_with(node: &Node<'_>, count: Count<'_>) -> Result<RequestConfig> {
    if let Value::List(_) = node.value {
        let items = list(|node, _| item(node, count))(node, ITEMS)?;
        return Ok(RequestConfig {
            items,
            ..RequestConfig::default()
        });
    }
    let fields = Fields::of(node, &REQUEST)?;
    fields.optional("$schema", text)?;
    Ok(RequestConfig {
        items: fields.value("items", list(|node, _| item(node, count)))?,
        budget: fields.optional("budget", budget)?,
        policy: fields.optional("policy", policy_or_preset)?,
    })
}

fn policy_or_preset(node: &Node<'_>, _: Shape) -> Result<PolicyConfig> {
    match &node.value {
        Value::Text(name) => Ok(preset(name)?.config().clone()),
        Value::Map(_) => policy(node),
        _ => Err(wrong_type("a policy, or the name of a preset", node)),
    }
}

pub(super) fn item(node: &Node<'_>, count: Count<'_>) -> Result<ContextItem> {
    let fields = Fields::of(node, &ITEM)?;
    let content = fields.value("content", text)?;
    let tokens = match (fields.optional("tokens", integer)?, count) {
        (Some(tokens), _) => tokens,
        (None, Some(count)) => count(&content),
        (None, None) => fields.value("tokens", integer)?,
    };
    let mut builder = ContextItem::builder(content, tokens);
    if let Some(kind) = fields.optional("kind", kind)? {
        builder = builder.kind(kind);
    }
    if let Some(source) = fields.optional("source", source)? {
        builder = builder.source(source);
    }
    if let Some(priority) = fields.optional("priority", integer)? {
        builder = builder.priority(priority);
    }
    if let Some(tags) = fields.optional("tags", list(text))? {
        builder = builder.tags(tags);
    }
    if let Some(metadata) = fields.optional("metadata", metadata)? {
        builder = builder.metadata(metadata);
    }
    if let Some(timestamp) = fields.optional("timestamp", time)? {
        builder = builder.timestamp(timestamp);
    }
    if let Some(hint) = fields.optional("future_relevance_hint", any_number)? {
        builder = builder.future_relevance_hint(hint);
    }
    if let Some(pinned) = fields.optional("pinned", boolean)? {
        builder = builder.pinned(pinned);
    }
    if let Some(tokens) = fields.optional("original_tokens", integer)? {
        builder = builder.original_tokens(tokens);
    }
    builder
        .build()
        .map_err(|error| ConfigError::invalid(error).within("content"))
}

fn source(node: &Node<'_>, _: Shape) -> Result<ContextSource> {
    ContextSource::new(as_text(node)?).map_err(|error| blank(error, "source"))
}

fn metadata(node: &Node<'_>, _: Shape) -> Result<HashMap<String, String>> {
    let Value::Map(entries) = &node.value else {
        return Err(wrong_type("a map", node));
    };
    let texts = entries.iter().filter_map(|entry| {
        let text = entry.value.to_raw().into_text()?;
        Some((entry.key.to_string(), text))
    });
    Ok(texts.collect())
}

fn any_number(node: &Node<'_>, shape: Shape) -> Result<f64> {
    match &node.value {
        Value::Text(text) => float::from_raw(&node.to_raw()).ok_or_else(|| {
            out_of_range(
                "a number, or one of \"NaN\", \"inf\", \"-inf\"",
                format!("{text:?}"),
            )
        }),
        _ => number(node, shape),
    }
}

fn budget(node: &Node<'_>, _: Shape) -> Result<ContextBudget> {
    let fields = Fields::of(node, &BUDGET)?;
    let max_tokens = fields.value("max_tokens", integer)?;
    let target_tokens = fields.optional("target_tokens", integer)?;
    let slots = fields.value("reserved_slots", by_kind(integer))?;
    ContextBudget::new(
        max_tokens,
        target_tokens.unwrap_or(max_tokens),
        fields.value("output_reserve", integer)?,
        slots.into_iter().collect(),
        fields.value("estimation_safety_margin_percent", number)?,
    )
    .map_err(ConfigError::invalid)
}
