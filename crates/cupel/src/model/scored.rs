//! [`ScoredItem`], its borrowed form, and the one order of scores.

use std::cmp::Ordering;

use super::ContextItem;

/// An item with its score.
///
/// Scores are conventionally in `[0, 1]`; nothing enforces it (ENUM-17).
///
/// ```
/// use cupel::{ContextItemBuilder, ScoredItem};
///
/// let item = ContextItemBuilder::new("hello", 2).build()?;
/// let scored = ScoredItem { item, score: 0.5 };
/// assert_eq!(scored.item.content(), "hello");
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct ScoredItem {
    /// The item.
    pub item: ContextItem,
    /// Its score.
    #[cfg_attr(feature = "serde", serde(with = "crate::wire::float"))]
    pub score: f64,
}

impl ScoredItem {
    /// The same pair without owning the item.
    pub fn borrowed(&self) -> ScoredRef<'_> {
        ScoredRef {
            item: &self.item,
            score: self.score,
        }
    }
}

/// A borrowed item with its score: what the pipeline hands to slicers and placers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredRef<'a> {
    /// The item.
    pub item: &'a ContextItem,
    /// Its score.
    pub score: f64,
}

impl ScoredRef<'_> {
    /// The pair with its own handle to the item.
    pub fn to_scored_item(self) -> ScoredItem {
        ScoredItem {
            item: self.item.clone(),
            score: self.score,
        }
    }
}

/// The order of scores and densities everywhere: highest first, `-0.0` equal to
/// `0.0` (SORT-4), NaN after every number (SORT-6). Ties are left to the caller's index.
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

/// An exact token sum as a report or error can carry it.
pub(crate) fn reported(tokens: i128) -> i64 {
    i64::try_from(tokens).unwrap_or(if tokens < 0 { i64::MIN } else { i64::MAX })
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
    }
}
