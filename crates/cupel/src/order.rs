//! The order of scores and densities, as a comparison and as sort keys.

use std::cmp::Ordering;

use crate::fast::radix::RadixKey;

/// Compares scores: highest first, `-0.0` equal to `0.0` (SORT-4), NaN after every number (SORT-6).
/// The caller breaks ties by index.
pub(crate) fn descending(a: f64, b: f64) -> Ordering {
    b.partial_cmp(&a)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Returns a number whose ascending order is the order of [`descending`], so that scores can be sorted
/// as integers, packed with a position.
///
/// The bits of positive numbers ascend with the numbers, those of negative ones descend. Flipping all
/// bits but the sign of the former, and none of the latter, puts `1.0, 0.0, -1.0` into ascending order:
/// `0x400f..., 0x7fff..., 0xbff0...`.
pub(crate) fn descending_key(score: f64) -> u64 {
    const SIGN: u64 = 1 << 63;
    if score.is_nan() {
        return u64::MAX;
    }
    // `-0.0 + 0.0` is `0.0`.
    let bits = (score + 0.0).to_bits();
    if bits & SIGN == 0 {
        !(bits | SIGN)
    } else {
        bits
    }
}

/// A score with a position: highest score first, ties by position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ranked(u128);

impl RadixKey for Ranked {
    fn radix(self) -> u64 {
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

/// Converts a part of a packed key to an index.
pub(crate) fn to_index(position: impl Into<u128>) -> usize {
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
    fn keys_order_as_scores_do() {
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
}
