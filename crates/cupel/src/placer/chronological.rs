//! [`ChronologicalPlacer`].

use super::{Placer, placed};
use crate::{ContextItem, CupelError, ScoredItem, ScoredRef};

/// Oldest first; items without a timestamp last.
///
/// Ties keep the order in which the items came: pinned first, then by score (CHRONO-3). Scores
/// have no say of their own.
///
/// ```
/// use chrono::{TimeZone, Utc};
/// use cupel::{ChronologicalPlacer, ContextItem, Placer, ScoredItem};
///
/// let at = |hour| Utc.with_ymd_and_hms(2026, 1, 1, hour, 0, 0).unwrap();
/// let items = [
///     ScoredItem { item: ContextItem::builder("timeless", 1).build()?, score: 0.9 },
///     ScoredItem { item: ContextItem::builder("late", 1).timestamp(at(9)).build()?, score: 0.8 },
///     ScoredItem { item: ContextItem::builder("early", 1).timestamp(at(8)).build()?, score: 0.1 },
/// ];
/// let order: Vec<_> = ChronologicalPlacer.place(&items);
/// let contents: Vec<_> = order.iter().map(ContextItem::content).collect();
/// assert_eq!(contents, ["early", "late", "timeless"]);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ChronologicalPlacer;

impl Placer for ChronologicalPlacer {
    fn place(&self, items: &[ScoredItem]) -> Vec<ContextItem> {
        placed(items, order)
    }

    fn arrange(&self, items: &[ScoredRef<'_>]) -> Result<Vec<usize>, CupelError> {
        Ok(order(items))
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::PlacerConfig, super::ConfigError> {
        Ok(super::PlacerConfig::Chronological)
    }
}

fn order(items: &[ScoredRef<'_>]) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..items.len()).collect();
    positions.sort_by_key(|&position| {
        let timestamp = items[position].item.timestamp();
        (timestamp.is_none(), timestamp)
    });
    positions
}
