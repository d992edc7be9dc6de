//! [`GreedySlice`].

use super::fill::fills_by_key;
use crate::{ScoredRef, Slicer};

/// Takes items by score per token, best first, while they fit: the greedy heuristic of the knapsack
/// problem (Dantzig 1957).
///
/// Equal densities keep their rank order, so the same input always yields the same choice
/// (GREEDY-3). An item that does not fit is skipped; smaller ones after it are still tried. Items
/// of zero tokens are kept while the target is positive (GREEDY-5).
///
/// ```
/// use cupel::{ContextBudget, ContextItem, GreedySlice, ScoredItem, Slicer};
///
/// let scored = |content: &str, tokens, score| -> Result<_, cupel::CupelError> {
///     Ok(ScoredItem { item: ContextItem::builder(content, tokens).build()?, score })
/// };
/// let sorted = [scored("long", 90, 0.9)?, scored("short", 20, 0.8)?];
/// let kept = GreedySlice.slice(&sorted, &ContextBudget::with_target(100, 100)?)?;
/// assert_eq!(kept[0].content(), "short");
/// assert_eq!(kept.len(), 1);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GreedySlice;

impl GreedySlice {
    /// Returns the density: score per token. Free items come before every finite density.
    #[expect(clippy::unused_self, reason = "`fills_by_key` calls a method")]
    pub(super) fn key(self, scored: &ScoredRef<'_>) -> f64 {
        match scored.item.tokens() {
            0 => f64::MAX,
            tokens => scored.score / tokens as f64,
        }
    }
}

impl Slicer for GreedySlice {
    fills_by_key!();

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::SlicerConfig, super::ConfigError> {
        Ok(super::SlicerConfig::Greedy)
    }
}
