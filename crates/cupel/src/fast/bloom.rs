//! Bloom filter (Bloom 1970) with one hash function and at least eight bits per element.
//!
//! Finds the elements whose hash occurs more than once. No such element is missed; a few others are
//! found too, because a bit stands for several hashes.
//!
//! ```text
//! hashes    5 9 5 (bits 5, 9, 5): the bit 5 is set once, then again
//! found     5 may repeat; 9 does not; another hash with the bit 5 may repeat too
//! ```
//!
//! Without it a run with one scorer has 1.5 times the instructions at 1,000 items and 1.8 times at 10,000.

use crate::order::to_index;

/// The bits of the hashes that were inserted.
pub(crate) struct RepeatFilter {
    /// The bits that were set once, and those that were set again.
    words: Vec<[u64; 2]>,
}

impl RepeatFilter {
    /// Inserts hashes.
    pub(crate) fn new(hashes: impl ExactSizeIterator<Item = u64>) -> Self {
        let mut filter = Self {
            words: vec![[0; 2]; (hashes.len() / 8).next_power_of_two()],
        };
        for hash in hashes {
            let (word, bit) = filter.place(hash);
            let [once, again] = &mut filter.words[word];
            *again |= *once & bit;
            *once |= bit;
        }
        filter
    }

    /// Returns `false` only if at most one of the hashes equals this one.
    pub(crate) fn may_repeat(&self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        self.words[word][1] & bit != 0
    }

    fn place(&self, hash: u64) -> (usize, u64) {
        (
            to_index(hash >> 6) & (self.words.len() - 1),
            1 << (hash % 64),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::hash::hash;

    #[test]
    fn every_repeat_is_found_and_few_others() {
        for distinct in [1, 2, 15, 16, 17, 1_000] {
            // Every third element occurs twice.
            let texts = (0..distinct).chain((0..distinct).step_by(3));
            let hashes: Vec<u64> = texts.map(|text: usize| hash(&text.to_string())).collect();
            let filter = RepeatFilter::new(hashes.iter().copied());
            let found = (0..distinct).filter(|&text| filter.may_repeat(hashes[text]));
            let found: Vec<usize> = found.collect();
            assert!((0..distinct).step_by(3).all(|text| found.contains(&text)));
            let repeated = distinct.div_ceil(3);
            assert!(distinct < 1_000 || found.len() < repeated + distinct / 5);
        }
    }
}
