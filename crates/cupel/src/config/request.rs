//! Requests as data: items, a budget, a policy and a query.

use std::collections::{BTreeMap, HashMap};

use super::data::{Data, Fields, as_str, blank, elements, out_of_range, wrong_type};
use super::error::ConfigError;
use super::registry::{BUDGET, ITEM, ITEMS, REQUEST, Shape, VIEW};
use super::tree::{Node, Value};
use super::{PolicyConfig, preset};
use crate::wire::float;
use crate::{
    ContextBudget, ContextItem, ContextKind, ContextSource, ContextView, CupelError, RawValue,
};

type Result<T> = std::result::Result<T, ConfigError>;

/// The candidates, the budget, the policy and the query of a run.
///
/// A document is `{"items": [...], "budget": {...}, "policy": ..., "query": "..."}`, where the policy
/// is the name of a preset or a policy itself; or an array of items alone.
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
///     r#"line 1, column 33: [0].tokens: expected an integer, got the string "two""#
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
    /// The question that the window is to answer, if given; for [`Policy::with_query`](crate::Policy::with_query).
    pub query: Option<String>,
}

/// Counts the tokens of items that leave them out; `None` if `tokens` is required.
pub(super) type Count<'c> = Option<&'c dyn Fn(&str) -> i64>;

impl<'de> serde::Deserialize<'de> for RequestConfig {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Self, D::Error> {
        let value = RawValue::deserialize(deserializer)?;
        Node::try_from(value)
            .and_then(|node| request(&node, None))
            .map_err(serde::de::Error::custom)
    }
}

pub(super) fn request(node: &Node<'_>, count: Count<'_>) -> Result<RequestConfig> {
    let item = |node: &Node<'_>, _: Shape| item(node, count);
    if let Value::Array(_) = node.value {
        return Ok(RequestConfig {
            items: elements(node, ITEMS, item)?,
            ..RequestConfig::default()
        });
    }
    let fields = Fields::of(node, &REQUEST)?;
    fields.read::<Option<String>>("$schema")?;
    let items = fields.read_by("items", |node, shape| elements(node, shape, item));
    Ok(RequestConfig {
        items: items.unwrap_or_else(|| Err(fields.missing("items")))?,
        budget: fields.read_by("budget", budget).transpose()?,
        policy: fields.read_by("policy", policy_or_preset).transpose()?,
        query: fields.read("query")?,
    })
}

fn policy_or_preset(node: &Node<'_>, shape: Shape) -> Result<PolicyConfig> {
    match &node.value {
        Value::String(name) => Ok(preset(name)?.config().clone()),
        Value::Object(_) => PolicyConfig::read(node, shape),
        _ => Err(wrong_type("a policy or the name of a preset", node)),
    }
}

pub(super) fn item(node: &Node<'_>, count: Count<'_>) -> Result<ContextItem> {
    let fields = Fields::of(node, &ITEM)?;
    let content: String = fields.read("content")?;
    let tokens = tokens(&fields, &content, count)?;
    let mut builder = ContextItem::builder(content, tokens)
        .kind(fields.read::<ContextKind>("kind")?)
        .source(fields.read::<ContextSource>("source")?)
        .tags(fields.read("tags")?)
        .pinned(fields.read("pinned")?);
    if let Some(metadata) = fields.read_by("metadata", metadata) {
        builder = builder.metadata(metadata?);
    }
    if let Some(priority) = fields.read("priority")? {
        builder = builder.priority(priority);
    }
    if let Some(timestamp) = fields.read("timestamp")? {
        builder = builder.timestamp(timestamp);
    }
    if let Some(hint) = fields.read_by("future_relevance_hint", any_number) {
        builder = builder.future_relevance_hint(hint?);
    }
    if let Some(tokens) = fields.read("original_tokens")? {
        builder = builder.original_tokens(tokens);
    }
    let views = |node: &Node<'_>, shape| elements(node, shape, |node, _| view(node, count));
    if let Some(views) = fields.read_by("views", views) {
        builder = builder.views(views?);
    }
    builder.build().map_err(|error| {
        let key = match error {
            CupelError::InvalidView(_) => "views",
            _ => "content",
        };
        ConfigError::invalid(error).within(key)
    })
}

/// Reads the token count of a content, or counts the tokens if it is left out.
fn tokens(fields: &Fields<'_, '_>, content: &str, count: Count<'_>) -> Result<i64> {
    match (fields.read("tokens")?, count) {
        (Some(tokens), _) => Ok(tokens),
        (None, Some(count)) => Ok(count(content)),
        (None, None) => Err(fields.missing("tokens")),
    }
}

fn view(node: &Node<'_>, count: Count<'_>) -> Result<ContextView> {
    let fields = Fields::of(node, &VIEW)?;
    let content: String = fields.read("content")?;
    let tokens = tokens(&fields, &content, count)?;
    let mut view = ContextView::new(content, tokens);
    if let Some(level) = fields.read("level")? {
        view = view.with_level(level);
    }
    if let Some(value) = fields.read("value")? {
        view = view.with_value(value);
    }
    Ok(view)
}

impl Data for ContextSource {
    fn read(node: &Node<'_>, _: Shape) -> Result<Self> {
        Self::new(as_str(node)?).map_err(|error| blank(error, "source"))
    }

    fn write(&self) -> RawValue {
        RawValue::Text(self.as_str().to_owned())
    }
}

fn metadata(node: &Node<'_>, _: Shape) -> Result<HashMap<String, String>> {
    let Value::Object(entries) = &node.value else {
        return Err(wrong_type("an object", node));
    };
    let texts = entries.iter().filter_map(|entry| {
        let text = entry.value.to_raw().into_text()?;
        Some((entry.key.to_string(), text))
    });
    Ok(texts.collect())
}

fn any_number(node: &Node<'_>, shape: Shape) -> Result<f64> {
    match &node.value {
        Value::String(text) => float::from_raw(&node.to_raw()).ok_or_else(|| {
            out_of_range(
                "a number, or one of \"NaN\", \"inf\", \"-inf\"",
                format!("{text:?}"),
            )
        }),
        _ => f64::read(node, shape),
    }
}

fn budget(node: &Node<'_>, _: Shape) -> Result<ContextBudget> {
    let fields = Fields::of(node, &BUDGET)?;
    let max_tokens = fields.read("max_tokens")?;
    let target_tokens: Option<i64> = fields.read("target_tokens")?;
    let slots: BTreeMap<ContextKind, i64> = fields.read("reserved_slots")?;
    ContextBudget::new(
        max_tokens,
        target_tokens.unwrap_or(max_tokens),
        fields.read("output_reserve")?,
        slots.into_iter().collect(),
        fields.read("estimation_safety_margin_percent")?,
    )
    .map_err(ConfigError::invalid)
}
