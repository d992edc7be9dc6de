//! [`ScoredItem`] and its borrowed form.

use super::ContextItem;

/// An item with its score.
///
/// Scores are in `[0, 1]` by convention; this is not enforced (ENUM-17).
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

/// A borrowed item with its score and its position, as slicers and placers receive it.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredRef<'a> {
    /// The item.
    pub item: &'a ContextItem,
    /// Its score.
    pub score: f64,
    /// In a run, the item's position in the list of candidates. A candidate that represents a group has
    /// the position of the group's best member. In a list from [`from_list`](Self::from_list), and in a call
    /// of [`Slicer::slice`](crate::Slicer::slice) or [`Placer::place`](crate::Placer::place), the
    /// index in that list.
    pub position: usize,
}

impl<'a> ScoredRef<'a> {
    /// Pairs an item with its score and position.
    pub fn new(item: &'a ContextItem, score: f64, position: usize) -> Self {
        Self {
            item,
            score,
            position,
        }
    }

    /// Borrows the items of a list. Their positions are their indices.
    ///
    /// ```
    /// use cupel::{ContextItem, ScoredItem, ScoredRef};
    ///
    /// let item = ContextItem::builder("hello", 2).build()?;
    /// let list = vec![ScoredItem { item, score: 0.5 }; 2];
    /// assert_eq!(ScoredRef::from_list(&list)[1].position, 1);
    /// # Ok::<(), cupel::CupelError>(())
    /// ```
    pub fn from_list(list: &'a [ScoredItem]) -> Vec<Self> {
        let scored = list.iter().enumerate();
        scored
            .map(|(index, scored)| Self::new(&scored.item, scored.score, index))
            .collect()
    }

    /// Returns an owned copy: a clone of the handle, and the score.
    pub fn to_scored_item(self) -> ScoredItem {
        ScoredItem {
            item: self.item.clone(),
            score: self.score,
        }
    }
}
