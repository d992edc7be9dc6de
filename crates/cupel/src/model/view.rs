//! [`ContextView`].

use crate::CupelError;

/// A shorter form of an item with its own token count: an extract, a title, a placeholder.
///
/// An item offers views through [`ContextItemBuilder::view`](crate::ContextItemBuilder::view). A slicer
/// that knows views ([`LadderSlice`](crate::LadderSlice), [`ChoiceSlice`](crate::ChoiceSlice), or a custom
/// one through [`Selection::shorten`](crate::Selection::shorten)) keeps an item in full, as one of its views, or not at
/// all. Other slicers ignore views.
///
/// ```
/// use cupel::{ContextItem, ContextView};
///
/// let item = ContextItem::builder("a long tool result", 1310)
///     .view(ContextView::new("its first lines", 96).with_level(100))
///     .view(ContextView::new("its title", 4).with_value(0.2))
///     .build()?;
/// assert_eq!(item.views()[0].level(), 100);
/// assert_eq!(item.views()[1].value(), Some(0.2));
///
/// let shortened = item.as_view(0).unwrap();
/// assert_eq!(shortened.content(), "its first lines");
/// assert_eq!((shortened.tokens(), shortened.original_tokens()), (96, Some(1310)));
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::schema::require_value)
)]
pub struct ContextView {
    /// The shorter content.
    content: String,
    /// Its tokens.
    tokens: i64,
    /// The nominal size in tokens that the view was made for.
    level: i64,
    /// The share of the item's score that the view keeps, from 0 to 1.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    value: Option<f64>,
}

impl ContextView {
    /// Creates a view from its content and its token count.
    pub fn new(content: impl Into<String>, tokens: i64) -> Self {
        Self {
            content: content.into(),
            tokens,
            level: tokens,
            value: None,
        }
    }

    /// Sets the nominal size in tokens that the view was made for. Defaults to its token count.
    pub fn with_level(mut self, level: i64) -> Self {
        self.level = level;
        self
    }

    /// Sets the share of the item's score that the view keeps, in `[0, 1]`. Defaults to the view's tokens
    /// divided by the item's tokens.
    pub fn with_value(mut self, value: f64) -> Self {
        self.value = Some(value);
        self
    }

    /// Returns the content.
    pub fn content(&self) -> &str {
        &self.content
    }

    /// Returns the token count.
    pub fn tokens(&self) -> i64 {
        self.tokens
    }

    /// Returns the nominal size in tokens that the view was made for.
    pub fn level(&self) -> i64 {
        self.level
    }

    /// Returns the share of the item's score that the view keeps. `None` if it is not set and the view
    /// does not belong to an item yet.
    pub fn value(&self) -> Option<f64> {
        self.value
    }

    /// Replaces the content.
    pub(super) fn set_content(&mut self, content: &str) {
        content.clone_into(&mut self.content);
    }
}

/// Checks the views of an item, sets the default values and sorts by level, largest first.
pub(super) fn finish_views(views: &mut [ContextView], item_tokens: i64) -> Result<(), CupelError> {
    for (index, view) in views.iter_mut().enumerate() {
        let invalid =
            |fault: String| Err(CupelError::InvalidView(format!("view {index}: {fault}")));
        let tokens = view.tokens;
        let value = view.value.unwrap_or(tokens as f64 / item_tokens as f64);
        if view.content.is_empty() {
            return invalid("content must be non-empty".to_owned());
        }
        if tokens < 0 {
            return invalid(format!("tokens ({tokens}) must be >= 0"));
        }
        if tokens >= item_tokens {
            return invalid(format!(
                "tokens ({tokens}) must be below the item's tokens ({item_tokens})"
            ));
        }
        if !(0.0..=1.0).contains(&value) {
            return invalid(format!("value ({value}) must be in [0.0, 1.0]"));
        }
        view.value = Some(value);
    }
    views.sort_by_key(|view| std::cmp::Reverse(view.level));
    match views.windows(2).find(|pair| pair[0].level == pair[1].level) {
        Some(pair) => Err(CupelError::InvalidView(format!(
            "two views have the level {}; give every view its own",
            pair[0].level
        ))),
        None => Ok(()),
    }
}
