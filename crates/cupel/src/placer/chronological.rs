//! [`ChronologicalPlacer`].

use super::{PlacementRule, Placer, placed};
use crate::fast::parallel;
use crate::fast::radix::RadixKey;
use crate::order::to_index;
use crate::{ContextItem, ScoredItem, ScoredRef};

/// Places the oldest first, items without a timestamp last.
///
/// Ties keep the order of the input: pinned first, then by score (CHRONO-3). Scores have no other
/// influence.
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
        placed(items, rule)
    }

    fn rule(&self, items: &[ScoredRef<'_>]) -> Option<PlacementRule> {
        Some(rule(items))
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::PlacerConfig, super::ConfigError> {
        Ok(super::PlacerConfig::Chronological)
    }
}

fn rule(items: &[ScoredRef<'_>]) -> PlacementRule {
    let time = |position: usize| items[position].item.seconds_and_nanos();
    let mut timed = Vec::with_capacity(items.len());
    timed.extend((0..items.len()).filter_map(|at| Some(TimeKey::new(time(at)?, at))));
    parallel::sort(&mut timed);
    let timeless = (0..items.len()).filter(|&position| time(position).is_none());
    let mut sequence = Vec::with_capacity(items.len());
    sequence.extend(timed.into_iter().map(TimeKey::position).chain(timeless));
    PlacementRule::in_sequence(sequence)
}

/// A time with a position: oldest first, ties by position. From the top: 44 bits of seconds, 31 of
/// nanoseconds, 53 of the position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TimeKey(u128);

impl TimeKey {
    const POSITION_BITS: u32 = 53;
    /// Makes seconds positive: more than those of any time before 1970.
    const SECONDS_OFFSET: i64 = 1 << 43;

    fn new((seconds, nanos): (i64, u32), position: usize) -> Self {
        let seconds = seconds.saturating_add(Self::SECONDS_OFFSET).unsigned_abs();
        let time = u128::from(seconds) << 31 | u128::from(nanos);
        Self(time << Self::POSITION_BITS | position as u128)
    }

    fn position(self) -> usize {
        to_index(self.0 & ((1 << Self::POSITION_BITS) - 1))
    }
}

impl RadixKey for TimeKey {
    fn radix(self) -> u64 {
        (self.0 >> u64::BITS) as u64
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::*;

    #[test]
    fn keys_order_as_times_do() {
        let (first, last) = (DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC);
        let second = |seconds, nanos| DateTime::from_timestamp(seconds, nanos);
        let times = [
            Some(first),
            second(-1, 0),
            second(-1, 1_999_999_999),
            second(0, 0),
            second(0, 1),
            second(1, 0),
            Some(last),
        ];
        let key = |time: Option<DateTime<Utc>>, position: usize| {
            let item = ContextItem::builder("x", 1).timestamp(time.unwrap());
            let time = item.build().unwrap().seconds_and_nanos();
            TimeKey::new(time.unwrap(), position)
        };
        for a in times {
            for b in times {
                let keys = key(a, 7).cmp(&key(b, 7));
                assert_eq!(keys, a.cmp(&b), "{a:?} and {b:?}");
            }
            assert!(key(a, 1) < key(a, 2));
            assert_eq!(key(a, 7).position(), 7);
        }
    }
}
