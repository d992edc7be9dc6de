//! [`RankSlice`].

use super::fill::fills_by_key;
use crate::{ScoredRef, Slicer};

/// Takes items in rank order while they fit, and skips those that do not.
///
/// [`GreedySlice`](crate::GreedySlice) orders by score per token and so prefers short items. This
/// slicer orders by score alone, ties by input order: in a conversation scored by recency the newest
/// messages stay, long or short. Items of zero tokens are kept while the target is positive.
///
/// ```
/// use cupel::{ContextBudget, ContextItem, RankSlice, ScoredItem, Slicer};
///
/// let scored = |content: &str, tokens, score| -> Result<_, cupel::CupelError> {
///     Ok(ScoredItem { item: ContextItem::builder(content, tokens).build()?, score })
/// };
/// let sorted = [scored("new", 90, 0.9)?, scored("older", 20, 0.8)?, scored("old", 10, 0.7)?];
/// let kept = RankSlice.slice(&sorted, &ContextBudget::with_target(100, 100)?)?;
/// assert_eq!(kept.iter().map(ContextItem::content).collect::<Vec<_>>(), ["new", "old"]);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RankSlice;

impl RankSlice {
    /// Returns the same key for every item: ties are taken by rank.
    #[expect(clippy::unused_self, reason = "`fills_by_key` calls a method")]
    fn key(self, _: &ScoredRef<'_>) -> f64 {
        0.0
    }
}

impl Slicer for RankSlice {
    fills_by_key!();

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::SlicerConfig, super::ConfigError> {
        Ok(super::SlicerConfig::Rank)
    }
}
