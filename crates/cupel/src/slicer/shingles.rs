//! Word shingles: similarity of texts (Broder 1997).
//!
//! The similarity of two texts is the Jaccard index of their sets of shingles. With shingles of 2
//! words
//!
//! ```text
//! the cat sat down      {the cat, cat sat, sat down}
//! the cat sat there     {the cat, cat sat, sat there}      2 common of 4: similarity 0.5
//! ```
//!
//! [`SimilarTexts`] finds pairs above a threshold without comparing all: sets of Jaccard index t or
//! more share at least t of each, so with shingles sorted by rarity they meet in a short prefix.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::fast::hash::{fixed_chain, fixed_hash};
use crate::fast::parallel;

/// The distinct shingles of several texts: sequences of a fixed number of words.
///
/// Words are runs of letters and digits in lowercase; an ideograph or kana is a word of its own. A text
/// of fewer words has one shingle, all of them. Shingles are compared by 64-bit hashes that are the
/// same in every process.
pub(super) struct Shingles {
    /// The shingles of each text in ascending order, without repetitions. A rare shingle has a low
    /// number, and all sets use the same order: prefix filtering rests on both.
    sets: Vec<Vec<u32>>,
}

/// A hasher of numbers that are hashes already: hashing them again would spread them no better.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

type ByHash<T> = HashMap<u64, T, BuildHasherDefault<Identity>>;

impl Shingles {
    /// Finds the shingles of `size` words.
    pub(super) fn new<'t>(texts: impl Iterator<Item = &'t str>, size: usize) -> Self {
        let texts: Vec<&str> = texts.collect();
        let hashes = parallel::map(&texts, |_, text| shingles(text, size));
        let mut frequencies: ByHash<u32> = HashMap::default();
        for &hash in hashes.iter().flatten() {
            *frequencies.entry(hash).or_default() += 1;
        }
        // By frequency, then by hash, so that the numbers do not depend on the order of the map.
        let mut by_rarity: Vec<(u32, u64)> = frequencies
            .iter()
            .map(|(hash, count)| (*count, *hash))
            .collect();
        by_rarity.sort_unstable();
        for ((_, hash), number) in by_rarity.into_iter().zip(0..) {
            frequencies.insert(hash, number);
        }
        let number = |hashes: Vec<u64>| {
            let mut set: Vec<u32> = hashes.iter().map(|hash| frequencies[hash]).collect();
            set.sort_unstable();
            set
        };
        Self {
            sets: hashes.into_iter().map(number).collect(),
        }
    }

    /// Returns the Jaccard similarity of two texts: common shingles over all shingles of both. It is 0 if
    /// one of them has no words.
    pub(super) fn similarity(&self, a: usize, b: usize) -> f64 {
        let (a, b) = (&self.sets[a], &self.sets[b]);
        let (mut at, mut common) = (0, 0);
        for shingle in a {
            while b.get(at).is_some_and(|other| other < shingle) {
                at += 1;
            }
            common += usize::from(b.get(at) == Some(shingle));
        }
        match a.len() + b.len() - common {
            0 => 0.0,
            all => common as f64 / all as f64,
        }
    }
}

/// Returns the hashes of the distinct shingles of a text, in ascending order.
fn shingles(text: &str, size: usize) -> Vec<u64> {
    let words = words(text);
    let sequences = words.windows(size.clamp(1, words.len().max(1)));
    let hash = |words: &[u64]| words.iter().fold(0, |hash, word| fixed_chain(hash, *word));
    let mut shingles: Vec<u64> = sequences.map(hash).collect();
    shingles.sort_unstable();
    shingles.dedup();
    shingles
}

/// Returns the hashes of the words of a text.
fn words(text: &str) -> Vec<u64> {
    let mut hashes = Vec::new();
    let mut word = String::new();
    let mut end = |word: &mut String| {
        if !word.is_empty() {
            hashes.push(fixed_hash(word));
            word.clear();
        }
    };
    for char in text.chars() {
        if !char.is_alphanumeric() {
            end(&mut word);
        } else if is_ideograph(char) {
            end(&mut word);
            word.push(char);
            end(&mut word);
        } else {
            word.extend(char.to_lowercase());
        }
    }
    end(&mut word);
    hashes
}

/// Returns whether a character is written without spaces around words: CJK ideographs and kana.
fn is_ideograph(char: char) -> bool {
    matches!(char, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// An index of texts that finds similar ones exactly, by prefix filtering (Bayardo, Ma and Srikant 2007):
/// texts of at least the similarity share one of their rarest shingles.
pub(super) struct SimilarTexts<'s> {
    shingles: &'s Shingles,
    threshold: f64,
    /// The texts that have a shingle among their rarest.
    by_shingle: HashMap<u32, Vec<usize>>,
}

impl<'s> SimilarTexts<'s> {
    pub(super) fn new(shingles: &'s Shingles, threshold: f64) -> Self {
        Self {
            shingles,
            threshold,
            by_shingle: HashMap::new(),
        }
    }

    /// Returns the prefix of a text's shingles: two similar texts share a shingle that is in the
    /// prefix of both.
    ///
    /// A similar text shares at least `common = ceil(threshold * n)` of the `n` shingles. So at
    /// most `n - common` are not shared, and among any `n - common + 1` of them one is. With 10
    /// shingles and a threshold of 0.8 these are 3. The first shared shingle in the common order is
    /// in both prefixes.
    fn prefix(&self, text: usize) -> &'s [u32] {
        let set = &self.shingles.sets[text];
        // Rounding may not make the prefix too short.
        let common = (self.threshold * set.len() as f64 - 1e-6).ceil();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates, and a length is far below the limits"
        )]
        let common = common as usize;
        let rest = set.len().saturating_sub(common);
        &set[..(rest + 1).min(set.len())]
    }

    pub(super) fn insert(&mut self, text: usize) {
        for &shingle in self.prefix(text) {
            self.by_shingle.entry(shingle).or_default().push(text);
        }
    }

    /// Returns the most similar text that `accept` accepts, at or above the threshold, with the similarity.
    /// On a tie it is the one inserted first.
    pub(super) fn find(&self, text: usize, accept: impl Fn(usize) -> bool) -> Option<(usize, f64)> {
        let prefix = self.prefix(text).iter();
        let postings = prefix.filter_map(|shingle| self.by_shingle.get(shingle));
        let mut candidates: Vec<usize> = postings.flatten().copied().collect();
        candidates.sort_unstable();
        candidates.dedup();
        let mut best: Option<(usize, f64)> = None;
        for candidate in candidates.into_iter().filter(|&text| accept(text)) {
            let similarity = self.shingles.similarity(candidate, text);
            if similarity >= self.threshold && best.is_none_or(|(_, most)| similarity > most) {
                best = Some((candidate, similarity));
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds the last of the texts among the others, by single words.
    fn find(texts: &[&str], threshold: f64) -> Option<(usize, f64)> {
        let shingles = Shingles::new(texts.iter().copied(), 1);
        let mut others = SimilarTexts::new(&shingles, threshold);
        let last = texts.len() - 1;
        (0..last).for_each(|text| others.insert(text));
        others.find(last, |_| true)
    }

    #[test]
    fn the_most_similar_text_is_found_the_first_on_a_tie() {
        let texts = ["a b c x", "a b c d", "d c b a", "a b", "a b c d"];
        assert_eq!(find(&texts, 0.5), Some((1, 1.0)));
        let texts = ["a b c x", "a b c y", "a b c d"];
        assert_eq!(find(&texts, 0.5), Some((0, 0.6)));
        assert_eq!(find(&texts, 0.7), None);
    }

    #[test]
    fn a_text_of_exactly_the_threshold_is_found() {
        // The rarest half of the words of one text is not in the other.
        assert_eq!(find(&["a b c d", "c d"], 0.5), Some((0, 0.5)));
        assert_eq!(find(&["c d", "a b c d"], 0.5), Some((0, 0.5)));
    }

    #[test]
    fn an_ideograph_is_a_word() {
        assert_eq!(find(&["漢字", "字漢"], 0.5), Some((0, 1.0)));
    }
}
