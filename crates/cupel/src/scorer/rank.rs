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
        Ok(rank_all(items, ContextItem::timestamp))
    }

    fn score_among(&self, candidates: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
        Ok(rank_all(candidates, |item| {
            item.timestamp().filter(|_| item.is_scored())
        }))
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

    fn score_among(&self, candidates: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
        Ok(rank_all(candidates, |item| {
            item.priority().filter(|_| item.is_scored())
        }))
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

/// The ranks of all keys at once: by counting where there are few different ones, by sorting
/// otherwise.
fn rank_all<K: Key>(
    items: &[ContextItem],
    key: impl Fn(&ContextItem) -> Option<K> + Sync,
) -> Vec<f64> {
    let numbers = parallel::map(items, |_, item| key(item).map_or(ABSENT, Key::number));
    let present = || numbers.iter().copied().filter(|&number| number != ABSENT);
    let (Some(least), Some(greatest)) = (present().min(), present().max()) else {
        return vec![0.0; items.len()];
    };
    if greatest == UNFIT {
        return rank_unfit(items, key);
    }
    let range = greatest.abs_diff(least);
    if range < items.len() as u64 {
        return rank_by_counting(&numbers, least, low_bits(range) + 1);
    }
    match pack(numbers, least, range) {
        Ok((mut packed, index_bits)) => {
            parallel::sort(&mut packed);
            let index_mask = (1 << index_bits) - 1;
            let sorted = packed.iter();
            let sorted = sorted.map(|&key| (key >> index_bits, low_bits(key & index_mask)));
            write_ranks(sorted, items.len())
        }
        Err(TooWide) => rank_unfit(items, key),
    }
}

/// Stands for no key.
const ABSENT: i64 = i64::MAX;
/// Stands for a key that is none of the other numbers.
const UNFIT: i64 = i64::MAX - 1;

/// What items can be ranked by.
trait Key: Ord + Copy + Send {
    /// A number that orders as the key does, or [`UNFIT`].
    fn number(self) -> i64;
}

impl Key for i64 {
    fn number(self) -> i64 {
        self.min(UNFIT)
    }
}

impl Key for DateTime<Utc> {
    fn number(self) -> i64 {
        if self.timestamp_subsec_nanos().is_multiple_of(1_000) {
            self.timestamp_micros()
        } else {
            UNFIT
        }
    }
}

/// The ranks of `distinct` numbers at most, from `least` on.
fn rank_by_counting(numbers: &[i64], least: i64, distinct: usize) -> Vec<f64> {
    let slot = |number: i64| low_bits(number.abs_diff(least));
    let mut lower = vec![0; distinct];
    let mut keyed = 0;
    for &number in numbers {
        if number != ABSENT {
            lower[slot(number)] += 1;
            keyed += 1;
        }
    }
    let mut before = 0;
    for count in &mut lower {
        before += std::mem::replace(count, before);
    }
    let score = |&number: &i64| match number {
        ABSENT => 0.0,
        _ => normalized(lower[slot(number)], keyed),
    };
    numbers.iter().map(score).collect()
}

/// Keys and positions have no room in one number.
struct TooWide;

/// Every number that is present with its position behind it, in one, and the bits that the position
/// takes.
fn pack(numbers: Vec<i64>, least: i64, range: u64) -> Result<(Vec<u64>, u32), TooWide> {
    let present = numbers.iter().filter(|&&number| number != ABSENT);
    let common = present.fold(0, |bits, number| bits | number.abs_diff(least));
    let zeros = common.trailing_zeros();
    let index_bits = usize::BITS - numbers.len().leading_zeros();
    let key_bits = u64::BITS - (range >> zeros).leading_zeros();
    if key_bits + index_bits > u64::BITS {
        return Err(TooWide);
    }
    let packed = numbers.into_iter().enumerate();
    let packed = packed.filter(|(_, number)| *number != ABSENT);
    let packed =
        packed.map(|(index, number)| number.abs_diff(least) >> zeros << index_bits | index as u64);
    Ok((packed.collect(), index_bits))
}

/// The ranks of keys that have to be compared as they are.
fn rank_unfit<K: Key>(items: &[ContextItem], key: impl Fn(&ContextItem) -> Option<K>) -> Vec<f64> {
    let keyed = items.iter().enumerate();
    let keyed = keyed.filter_map(|(index, item)| Some((key(item)?, index)));
    let mut keys: Vec<(K, usize)> = keyed.collect();
    keys.sort_unstable();
    write_ranks(keys.into_iter(), items.len())
}

/// The scores of sorted keys at the positions beside them; the rank of a key is the position of its
/// first copy.
fn write_ranks<K: PartialEq + Copy>(
    sorted: impl ExactSizeIterator<Item = (K, usize)>,
    items: usize,
) -> Vec<f64> {
    let keyed = sorted.len();
    let mut scores = vec![0.0; items];
    let mut first = None;
    for (position, (own, index)) in sorted.enumerate() {
        let lower = match first {
            Some((key, lower)) if key == own => lower,
            _ => position,
        };
        first = Some((own, lower));
        scores[index] = normalized(lower, keyed);
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
