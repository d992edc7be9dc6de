//! [`ScoredItem`] and its borrowed form.

use super::ContextItem;

/// An item with its score.
///
/// Scores are conventionally in `[0, 1]`; nothing enforces it (ENUM-17).
///
/// ```
/// use cupel::{ContextItemBuilder, ScoredItem};
///
/// let item = ContextItemBuilder::new("hello", 2).build()?;
/// let scored = ScoredItem { item, score: 0.5 };
/// assert_eq!(scored.item.content(), "hello");
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ScoredItem {
    /// The item.
    pub item: ContextItem,
    /// Its score.
    #[cfg_attr(feature = "serde", serde(with = "crate::wire::float"))]
    pub score: f64,
}

impl ScoredItem {
    /// The same pair without owning the item.
    pub fn borrowed(&self) -> ScoredRef<'_> {
        ScoredRef {
            item: &self.item,
            score: self.score,
        }
    }
}

/// A borrowed item with its score: what the pipeline hands to slicers and placers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredRef<'a> {
    /// The item.
    pub item: &'a ContextItem,
    /// Its score.
    pub score: f64,
}

impl ScoredRef<'_> {
    /// The pair with its own handle to the item.
    pub fn to_scored_item(self) -> ScoredItem {
        ScoredItem {
            item: self.item.clone(),
            score: self.score,
        }
    }
}
