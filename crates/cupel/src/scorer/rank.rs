//! [`RecencyScorer`] and [`PriorityScorer`]: one rank algorithm over two fields.

use chrono::{DateTime, Utc};

use super::Scorer;
use crate::order::low_bits;
use crate::{ContextItem, CupelError, parallel};

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
        // Whole seconds are as good as instants where no instant has a fraction.
        let whole_seconds = |item: &ContextItem| {
            let fraction = item.timestamp().map(|time| time.timestamp_subsec_nanos());
            fraction.unwrap_or(0) == 0
        };
        Ok(if items.iter().all(whole_seconds) {
            rank_all(items, |item| item.timestamp().map(|time| time.timestamp()))
        } else {
            rank_all(items, ContextItem::timestamp)
        })
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        Ok(super::ScorerConfig::Recency)
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

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        Ok(super::ScorerConfig::Priority)
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
fn rank_all<K: Key>(items: &[ContextItem], key: impl Fn(&ContextItem) -> Option<K>) -> Vec<f64> {
    let keyed = || {
        items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| Some((key(item)?, index)))
    };
    let mut scores = vec![0.0; items.len()];
    match K::packed(keyed(), items.len()) {
        Some((mut keys, index_bits)) => {
            parallel::sort(&mut keys);
            let index_mask = (1 << index_bits) - 1;
            write_ranks(
                keys.iter()
                    .map(|&key| (key >> index_bits, low_bits(key & index_mask))),
                &mut scores,
            );
        }
        None => {
            let mut keys: Vec<(K, usize)> = keyed().collect();
            parallel::sort(&mut keys);
            write_ranks(keys.into_iter(), &mut scores);
        }
    }
    scores
}

/// Writes the scores of sorted keys to the positions beside them.
fn write_ranks<K: PartialEq + Copy>(
    sorted: impl ExactSizeIterator<Item = (K, usize)>,
    scores: &mut [f64],
) {
    let keyed = sorted.len();
    let mut first = None;
    for (position, (own, index)) in sorted.enumerate() {
        let lower = match first {
            Some((key, lower)) if key == own => lower,
            _ => position,
        };
        first = Some((own, lower));
        scores[index] = normalized(lower, keyed);
    }
}

/// What items can be ranked by.
trait Key: Ord + Copy + Send {
    /// Keys and positions in one number each, which sort alike, and the bits the position takes;
    /// `None` if they have no room.
    fn packed(
        _keyed: impl Iterator<Item = (Self, usize)> + Clone,
        _positions: usize,
    ) -> Option<(Vec<u64>, u32)> {
        None
    }
}

impl Key for DateTime<Utc> {}

impl Key for i64 {
    fn packed(
        keyed: impl Iterator<Item = (Self, usize)> + Clone,
        positions: usize,
    ) -> Option<(Vec<u64>, u32)> {
        let (mut least, mut greatest) = (i64::MAX, i64::MIN);
        for (key, _) in keyed.clone() {
            least = least.min(key);
            greatest = greatest.max(key);
        }
        let index_bits = usize::BITS - positions.leading_zeros();
        let key_bits = u64::BITS - greatest.abs_diff(least).leading_zeros();
        if key_bits + index_bits > u64::BITS {
            return None;
        }
        let pack = |(key, index): (i64, usize)| key.abs_diff(least) << index_bits | index as u64;
        Some((keyed.map(pack).collect(), index_bits))
    }
}

/// A rank among `keyed` items as a score; the only keyed item is the best by definition.
fn normalized(lower: usize, keyed: usize) -> f64 {
    if keyed <= 1 {
        1.0
    } else {
        lower as f64 / (keyed - 1) as f64
    }
}
