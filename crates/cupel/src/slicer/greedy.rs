//! [`GreedySlice`].

use super::{Selection, Slicer, slice_by_selection};
use crate::model::descending;
use crate::{ContextBudget, ContextItem, CupelError, ScoredItem, ScoredRef};

/// Fills the budget by score per token, best first.
///
/// Equal densities keep their rank order, so the same input always yields the same choice
/// (GREEDY-3). An item that does not fit is passed over and smaller ones behind it still get
/// their chance. Items of zero tokens are free and always kept while the target is
/// positive (GREEDY-5).
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

impl Slicer for GreedySlice {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        slice_by_selection(self, sorted, budget)
    }

    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        let mut remaining = i128::from(budget.target_tokens());
        let mut kept = Vec::new();
        if remaining <= 0 {
            return Ok(Selection::default());
        }
        let mut densities: Vec<(f64, usize)> = ranked
            .iter()
            .enumerate()
            .map(|(rank, scored)| (density(scored), rank))
            .collect();
        densities.sort_unstable_by(|a, b| descending(a.0, b.0).then(a.1.cmp(&b.1)));
        for (_, rank) in densities {
            let tokens = i128::from(ranked[rank].item.tokens());
            if tokens <= remaining {
                kept.push(rank);
                remaining -= tokens;
            }
        }
        Ok(Selection::keep(kept))
    }
}

/// Score per token; free items come before every finite density.
fn density(scored: &ScoredRef<'_>) -> f64 {
    match scored.item.tokens() {
        0 => f64::MAX,
        tokens => scored.score / tokens as f64,
    }
}
