//! The one order of scores and densities, as a comparison and as keys to sort by.

use std::cmp::Ordering;

/// Highest first, `-0.0` equal to `0.0` (SORT-4), NaN after every number (SORT-6). Ties are left
/// to the caller's index.
pub(crate) fn descending(a: f64, b: f64) -> Ordering {
    b.partial_cmp(&a)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// A number that sorts ascending as [`descending`] sorts scores.
pub(crate) fn descending_key(score: f64) -> u64 {
    const SIGN: u64 = 1 << 63;
    if score.is_nan() {
        return u64::MAX;
    }
    // Zero added to minus zero is zero.
    let bits = (score + 0.0).to_bits();
    if bits & SIGN == 0 {
        !(bits | SIGN)
    } else {
        bits
    }
}

/// What [`sort`] sorts: orders by a leading number first.
pub(crate) trait Leading: Ord + Copy + Send {
    fn leading(self) -> u64;
}

impl Leading for u64 {
    fn leading(self) -> u64 {
        self
    }
}

/// Sorts keys of which no two are equal: lays them out in piles by their leading numbers, as many
/// as there may be in one pass, sorts the larger piles, and all others in one go.
pub(crate) fn sort<K: Leading>(keys: &mut Vec<K>) {
    const FEW: usize = 128;
    const MOST_PILE_BITS: u32 = 13;
    const SMALL_PILE: usize = 8;
    if keys.len() < FEW {
        return keys.sort_unstable();
    }
    let leading = keys.iter().map(|key| key.leading());
    let (least, greatest) = leading.fold((u64::MAX, 0), |(least, greatest), leading| {
        (leading.min(least), leading.max(greatest))
    });
    let bits = u64::BITS - (greatest - least).leading_zeros();
    let pile_bits = keys.len().ilog2().min(MOST_PILE_BITS).min(bits);
    let pile = |key: &K| low_bits((key.leading() - least) >> (bits - pile_bits));
    let mut ends = vec![0; 1 << pile_bits];
    for key in &*keys {
        ends[pile(key)] += 1;
    }
    let mut end = 0;
    for count in &mut ends {
        end += std::mem::replace(count, end);
    }
    let mut sorted = keys.clone();
    for key in &*keys {
        let end = &mut ends[pile(key)];
        sorted[*end] = *key;
        *end += 1;
    }
    let mut start = 0;
    for end in ends {
        if end - start > SMALL_PILE {
            sorted[start..end].sort_unstable();
        }
        start = end;
    }
    insert(&mut sorted);
    *keys = sorted;
}

/// Sorts keys of which none is far from its place.
fn insert<K: Ord + Copy>(keys: &mut [K]) {
    for next in 1..keys.len() {
        let key = keys[next];
        let mut at = next;
        while at > 0 && key < keys[at - 1] {
            keys[at] = keys[at - 1];
            at -= 1;
        }
        keys[at] = key;
    }
}

/// A score with a position, highest score first, ties by position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ranked(u128);

impl Leading for Ranked {
    fn leading(self) -> u64 {
        (self.0 >> u64::BITS) as u64
    }
}

impl Ranked {
    pub(crate) fn new(score: f64, position: usize) -> Self {
        Self(u128::from(descending_key(score)) << 64 | position as u128)
    }

    pub(crate) fn position(self) -> usize {
        self.0 as usize
    }
}

/// A position that was packed into the low bits of a key, which holds nothing else.
pub(crate) fn low_bits(position: impl Into<u128>) -> usize {
    position.into() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: SORT-4, SORT-6, R009, R011
    #[test]
    fn nan_comes_last_and_zeros_tie() {
        let mut scores = [f64::NAN, 0.5, -f64::NAN, f64::NEG_INFINITY, f64::INFINITY];
        scores.sort_by(|a, b| descending(*a, *b));
        assert_eq!(scores[..3], [f64::INFINITY, 0.5, f64::NEG_INFINITY]);
        assert!(scores[3].is_nan() && scores[4].is_nan());
        assert_eq!(descending(0.0, -0.0), Ordering::Equal);
        assert_eq!(descending(f64::NAN, -f64::NAN), Ordering::Equal);
    }

    #[test]
    fn keys_sort_as_scores_do() {
        let scores = [
            f64::INFINITY,
            f64::MAX,
            1.0,
            0.5,
            f64::MIN_POSITIVE,
            5e-324,
            0.0,
            -0.0,
            -5e-324,
            -0.5,
            f64::MIN,
            f64::NEG_INFINITY,
            f64::NAN,
            -f64::NAN,
        ];
        for a in scores {
            for b in scores {
                let (key_a, key_b) = (descending_key(a), descending_key(b));
                assert_eq!(key_a.cmp(&key_b), descending(a, b), "{a} and {b}");
            }
        }
        assert!(Ranked::new(0.5, 9) < Ranked::new(0.4, 0));
        assert!(Ranked::new(0.5, 1) < Ranked::new(0.5, 2));
        assert_eq!(Ranked::new(f64::NAN, usize::MAX).position(), usize::MAX);
    }

    #[test]
    fn piles_sort_as_one_list_does() {
        let mut state = 1_u64;
        let mut random = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 11
        };
        for length in [0, 1, 2, 127, 128, 129, 1_000, 5_000] {
            for spread in [0, 1, 3, 20, 40, 63] {
                let keys: Vec<u64> = (0..length)
                    .map(|_| random() << 11 >> (63 - spread))
                    .collect();
                let mut sorted = keys.clone();
                sort(&mut sorted);
                assert!(sorted.is_sorted(), "{length} keys of {spread} bits");
                let mut expected = keys.clone();
                expected.sort_unstable();
                assert_eq!(sorted, expected);

                let ranked = keys.iter().enumerate();
                let ranked = ranked.map(|(position, &key)| Ranked::new(key as f64, position));
                let (mut sorted, mut expected): (Vec<_>, Vec<_>) = ranked.map(|r| (r, r)).unzip();
                sort(&mut sorted);
                expected.sort_unstable();
                assert!(sorted == expected, "{length} scores of {spread} bits");
            }
        }
    }
}
