//! [`UShapedPlacer`].

use super::{PlacementRule, Placer, WindowEnd, placed};
use crate::fast::parallel;
use crate::order::Ranked;
use crate::{ContextItem, ScoredItem, ScoredRef};

/// Places the best scores at both ends and the worst in the middle, for models that attend less to
/// the middle (Liu et al. 2023, "Lost in the Middle").
///
/// Even ranks by score fill from the left and odd ranks from the right; ties rank in the order of the
/// input (USHAPE-1). Pinned items have score 1.0 and no other privilege.
///
/// ```
/// use cupel::{ContextItem, Placer, ScoredItem, UShapedPlacer};
///
/// let scored = |content: &str, score| -> Result<_, cupel::CupelError> {
///     Ok(ScoredItem { item: ContextItem::builder(content, 1).build()?, score })
/// };
/// let items = [scored("A", 0.9)?, scored("B", 0.8)?, scored("C", 0.7)?, scored("D", 0.6)?];
/// let order = UShapedPlacer.place(&items);
/// let contents: Vec<_> = order.iter().map(ContextItem::content).collect();
/// assert_eq!(contents, ["A", "C", "D", "B"]);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct UShapedPlacer;

impl Placer for UShapedPlacer {
    fn place(&self, items: &[ScoredItem]) -> Vec<ContextItem> {
        placed(items, rule)
    }

    fn rule(&self, items: &[ScoredRef<'_>]) -> Option<PlacementRule> {
        Some(rule(items))
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::PlacerConfig, super::ConfigError> {
        Ok(super::PlacerConfig::UShaped)
    }
}

fn rule(items: &[ScoredRef<'_>]) -> PlacementRule {
    let ranks = items.iter().enumerate();
    let ranks = ranks.map(|(position, scored)| Ranked::new(scored.score, position));
    let mut ranks: Vec<Ranked> = ranks.collect();
    parallel::sort(&mut ranks);
    let ends = [WindowEnd::Front, WindowEnd::Back].into_iter().cycle();
    PlacementRule::with_ends(
        ranks.into_iter().map(Ranked::position).collect(),
        ends.take(items.len()).collect(),
    )
}
