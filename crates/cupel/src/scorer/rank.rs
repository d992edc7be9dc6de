//! [`RecencyScorer`] and [`PriorityScorer`]: ranks of a field.

use super::{Among, BuiltinScorer, Scorer};
use crate::fast::parallel;
use crate::model::number::{ABSENT, OUT_OF_LINE};
use crate::order::to_index;
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

    fn builtin(&self) -> Option<&dyn BuiltinScorer> {
        Some(self)
    }

    fn ranks_by_time(&self) -> bool {
        true
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        Ok(super::ScorerConfig::Recency)
    }
}

impl BuiltinScorer for RecencyScorer {
    fn score_among(&self, items: &[ContextItem], among: Among) -> Result<Vec<f64>, CupelError> {
        let (number, key) = (ContextItem::time_number, ContextItem::timestamp);
        Ok(rank_all(items, among, number, key))
    }
}

/// Scores by priority rank: the highest priority 1.0, the lowest 0.0.
///
/// The algorithm is that of [`RecencyScorer`] (PRIORITY-5).
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

    fn builtin(&self) -> Option<&dyn BuiltinScorer> {
        Some(self)
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        Ok(super::ScorerConfig::Priority)
    }
}

impl BuiltinScorer for PriorityScorer {
    fn score_among(&self, items: &[ContextItem], among: Among) -> Result<Vec<f64>, CupelError> {
        let (number, key) = (ContextItem::priority_number, ContextItem::priority);
        Ok(rank_all(items, among, number, key))
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

/// Ranks all keys at once, by their numbers: counting sort if there are few distinct ones, a sort of
/// packed keys otherwise.
fn rank_all<K: Ord + Copy>(
    items: &[ContextItem],
    among: Among,
    number: impl Fn(&ContextItem) -> i64 + Sync,
    key: impl Fn(&ContextItem) -> Option<K>,
) -> Vec<f64> {
    let number = |item: &ContextItem| {
        if among.includes(item) {
            number(item)
        } else {
            ABSENT
        }
    };
    let numbers = parallel::map(items, |_, item| number(item));
    let (least, greatest) = numbers.iter().fold((ABSENT, i64::MIN), |ends, &number| {
        let present = if number == ABSENT { i64::MIN } else { number };
        (ends.0.min(number), ends.1.max(present))
    });
    if least == ABSENT {
        return vec![0.0; items.len()];
    }
    if greatest == OUT_OF_LINE {
        return rank_by_comparing(items, |item| key(item).filter(|_| among.includes(item)));
    }
    let range = above(greatest, least);
    if range < items.len() as u64 {
        rank_by_counting(&numbers, least, to_index(range) + 1)
    } else {
        rank_by_sorting(numbers, least, range, |index| number(&items[index]))
    }
}

/// Returns by how much a number exceeds the least.
fn above(number: i64, least: i64) -> u64 {
    number.wrapping_sub(least).cast_unsigned()
}

/// Ranks `distinct` numbers at most, from `least` on, by counting sort (Seward 1954).
fn rank_by_counting(numbers: &[i64], least: i64, distinct: usize) -> Vec<f64> {
    // The last slot is for absent numbers.
    let slot = |number: i64| to_index(above(number, least).min(distinct as u64));
    let mut counts = vec![0; distinct + 1];
    for &number in numbers {
        counts[slot(number)] += 1;
    }
    let keyed = numbers.len() - counts[distinct];
    let mut before = 0;
    let scores = counts[..distinct].iter().map(|count| {
        let lower = before;
        before += count;
        normalized(lower, keyed)
    });
    let scores: Vec<f64> = scores.chain([0.0]).collect();
    numbers.iter().map(|&number| scores[slot(number)]).collect()
}

/// Ranks numbers from `least` on, over a range. A sort key packs the leading bits of a number with its
/// position; the full numbers break ties of the leading bits.
fn rank_by_sorting(
    numbers: Vec<i64>,
    least: i64,
    range: u64,
    number: impl Fn(usize) -> i64,
) -> Vec<f64> {
    let items = numbers.len();
    let index_bits = usize::BITS - items.leading_zeros();
    let key_bits = u64::BITS - range.leading_zeros() + 1;
    let dropped_bits = (key_bits + index_bits).saturating_sub(u64::BITS);
    // Absent numbers come last.
    let last = (range >> dropped_bits) + 1;
    let packed = numbers.into_iter().enumerate().map(|(index, number)| {
        let leading = match number {
            ABSENT => last,
            _ => above(number, least) >> dropped_bits,
        };
        leading << index_bits | index as u64
    });
    let mut packed: Vec<u64> = packed.collect();
    parallel::sort(&mut packed);

    let leading = |packed: u64| packed >> index_bits;
    let index = |packed: u64| to_index(packed & ((1 << index_bits) - 1));
    packed.truncate(packed.partition_point(|&packed| leading(packed) < last));
    let is_same = |a: &u64, b: &u64| leading(*a) == leading(*b);
    if dropped_bits == 0 || packed.is_sorted_by(|a, b| !is_same(a, b)) {
        let sorted = packed.iter();
        return write_ranks(sorted.map(|&key| (leading(key), index(key))), items);
    }
    let number = |packed: u64| number(index(packed));
    let equal = packed.chunk_by_mut(is_same);
    equal.for_each(|equal| equal.sort_unstable_by_key(|&packed| number(packed)));
    let sorted = packed.iter();
    write_ranks(sorted.map(|&key| (number(key), index(key))), items)
}

/// Ranks keys by comparison, where a number does not hold the whole key.
fn rank_by_comparing<K: Ord + Copy>(
    items: &[ContextItem],
    key: impl Fn(&ContextItem) -> Option<K>,
) -> Vec<f64> {
    let keyed = items.iter().enumerate();
    let keyed = keyed.filter_map(|(index, item)| Some((key(item)?, index)));
    let mut keys: Vec<(K, usize)> = keyed.collect();
    keys.sort_unstable();
    write_ranks(keys.into_iter(), items.len())
}

/// Returns the scores of sorted keys at their positions; the rank of a key is the index of the first
/// equal key.
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

/// Returns a rank among `keyed` items as a score. The only keyed item scores 1.0.
fn normalized(lower: usize, keyed: usize) -> f64 {
    if keyed <= 1 {
        1.0
    } else {
        lower as f64 / (keyed - 1) as f64
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use cupel_conformance::testing::Random;

    use super::*;

    /// Checks `score_all` against `score` of every item.
    fn check(items: &[ContextItem]) {
        for scorer in [&RecencyScorer as &dyn Scorer, &PriorityScorer] {
            let one_by_one: Vec<f64> = items.iter().map(|item| scorer.score(item, items)).collect();
            assert_eq!(scorer.score_all(items), Ok(one_by_one));
        }
    }

    // proves: RECENCY-5, PRIORITY-5
    #[test]
    fn ranks_of_all_keys_equal_ranks_one_by_one() {
        let mut random = Random::new(1);
        for length in [1, 2, 30, 400] {
            // Keys over the whole range, then over smaller ranges; with and without an outlier.
            for shift in [0, 1, 8, 20, 40, 55, 61, 63] {
                for outlier in [None, Some(i64::MIN), Some(i64::MAX - 1), Some(i64::MAX)] {
                    let keys = (0..length).map(|_| {
                        Some(random.bits().cast_signed() >> shift).filter(|key| key % 5 != 0)
                    });
                    let items = keys.chain([outlier]).map(|key| {
                        let item = ContextItem::builder("x", 1);
                        let item = match key {
                            Some(key) => item
                                .priority(key)
                                .timestamp(DateTime::from_timestamp_nanos(key)),
                            None => item,
                        };
                        item.build().unwrap()
                    });
                    check(&items.collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn a_leap_second_is_older_than_the_next_second() {
        let at = |seconds, nanos| {
            let time = DateTime::from_timestamp(seconds, nanos).unwrap();
            ContextItem::builder("x", 1)
                .timestamp(time)
                .build()
                .unwrap()
        };
        let items = [at(60, 500_000_000), at(59, 1_500_000_000), at(59, 0)];
        assert_eq!(RecencyScorer.score_all(&items), Ok(vec![1.0, 0.5, 0.0]));
        check(&items);
    }
}
