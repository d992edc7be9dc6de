//! [`RecencyScorer`] and [`PriorityScorer`]: one rank algorithm over two fields.

use super::Scorer;
use crate::{ContextItem, CupelError};

/// Scores by age rank: the newest timestamped item 1.0, the oldest 0.0.
///
/// The score is the number of strictly older items over the number of timestamped
/// items minus one (RECENCY-5). Ties share a score; an item without a timestamp
/// scores 0.0, the only one with a timestamp 1.0.
///
/// ```
/// use chrono::{TimeZone, Utc};
/// use cupel::{ContextItem, RecencyScorer, Scorer};
///
/// let at = |hour| Utc.with_ymd_and_hms(2026, 1, 1, hour, 0, 0).unwrap();
/// let items = [
///     ContextItem::builder("new", 1).timestamp(at(9)).build()?,
///     ContextItem::builder("old", 1).timestamp(at(7)).build()?,
///     ContextItem::builder("between", 1).timestamp(at(8)).build()?,
///     ContextItem::builder("timeless", 1).build()?,
/// ];
/// assert_eq!(RecencyScorer.score_all(&items)?, [1.0, 0.0, 0.5, 0.0]);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RecencyScorer;

impl Scorer for RecencyScorer {
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
        rank(item, all_items, ContextItem::timestamp)
    }

    fn score_all(&self, items: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
        Ok(rank_all(items, ContextItem::timestamp))
    }
}

/// Scores by priority rank: the highest priority 1.0, the lowest 0.0.
///
/// The algorithm is [`RecencyScorer`]'s over another field (PRIORITY-5).
///
/// ```
/// use cupel::{ContextItem, PriorityScorer, Scorer};
///
/// let items = [
///     ContextItem::builder("urgent", 1).priority(10).build()?,
///     ContextItem::builder("later", 1).priority(-3).build()?,
///     ContextItem::builder("whenever", 1).build()?,
/// ];
/// assert_eq!(PriorityScorer.score_all(&items)?, [1.0, 0.0, 0.0]);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PriorityScorer;

impl Scorer for PriorityScorer {
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
        rank(item, all_items, ContextItem::priority)
    }

    fn score_all(&self, items: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
        Ok(rank_all(items, ContextItem::priority))
    }
}

fn rank<K: Ord>(
    item: &ContextItem,
    all_items: &[ContextItem],
    key: impl Fn(&ContextItem) -> Option<K>,
) -> f64 {
    let Some(own) = key(item) else { return 0.0 };
    let (mut keyed, mut lower) = (0, 0);
    for other in all_items.iter().filter_map(key) {
        keyed += 1;
        lower += usize::from(other < own);
    }
    normalized(lower, keyed)
}

/// Sorts the keys once; the rank of a key is the position of its first copy.
fn rank_all<K: Ord + Copy>(
    items: &[ContextItem],
    key: impl Fn(&ContextItem) -> Option<K>,
) -> Vec<f64> {
    let mut keys: Vec<(K, usize)> = items
        .iter()
        .enumerate()
        .filter_map(|(index, item)| Some((key(item)?, index)))
        .collect();
    keys.sort_unstable();
    let mut scores = vec![0.0; items.len()];
    let mut lower = 0;
    for (position, &(own, index)) in keys.iter().enumerate() {
        if own != keys[lower].0 {
            lower = position;
        }
        scores[index] = normalized(lower, keys.len());
    }
    scores
}

/// A rank among `keyed` items as a score; the only keyed item is the best by definition.
fn normalized(lower: usize, keyed: usize) -> f64 {
    if keyed <= 1 {
        1.0
    } else {
        lower as f64 / (keyed - 1) as f64
    }
}
