//! The hashes of contents and tags, computed once when an item is built.
//!
//! They only ever speed up a comparison: equal hashes are followed by a comparison of the texts,
//! and no result depends on the order of hashes. The seed differs from process to process, so
//! that contents made to collide in one do not collide in another.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

/// The hash of a text in this process.
pub(crate) fn hash(text: &str) -> u64 {
    let [first, second] = *seeds();
    let bytes = text.as_bytes();
    let mut blocks = bytes.chunks_exact(32);
    let (mut left, mut right) = (first ^ bytes.len() as u64, second.rotate_left(32));
    for block in &mut blocks {
        left = fold(word(block, 0) ^ left, word(block, 8) ^ first);
        right = fold(word(block, 16) ^ right, word(block, 24) ^ second);
    }
    let rest = blocks.remainder();
    let mut last = [0; 32];
    last[..rest.len()].copy_from_slice(rest);
    left = fold(word(&last, 0) ^ left, word(&last, 8) ^ first);
    right = fold(word(&last, 16) ^ right, word(&last, 24) ^ second);
    fold(left ^ second, right ^ first)
}

/// Another one, slower and safer: nobody finds texts that collide, not even by watching the time.
pub(crate) fn keyed_hash(text: &str) -> u64 {
    static STATE: OnceLock<RandomState> = OnceLock::new();
    STATE.get_or_init(RandomState::new).hash_one(text)
}

/// Hashes of two words.
#[derive(Clone, Copy)]
pub(crate) struct Secret([u64; 2]);

impl Secret {
    pub(crate) fn of_process() -> Self {
        Self(*seeds())
    }

    #[inline]
    pub(crate) fn mix(self, [left, right]: [u64; 2]) -> u64 {
        fold(left ^ self.0[0], right ^ self.0[1])
    }
}

/// Two odd numbers that nobody outside the process knows.
fn seeds() -> &'static [u64; 2] {
    static SEEDS: OnceLock<[u64; 2]> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let seed = |salt: u64| {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_u64(salt);
            hasher.finish() | 1
        };
        [seed(1), seed(2)]
    })
}

/// Both halves of the product.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the halves are taken apart"
)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The eight bytes from `at` on as a number.
fn word(block: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&block[at..at + 8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::hash;

    #[test]
    fn texts_that_differ_a_little_hash_apart() {
        let text = "x".repeat(100);
        let mut texts: Vec<String> = (0..=100).map(|length| text[..length].to_owned()).collect();
        for position in 0..100 {
            let mut bytes = text.clone().into_bytes();
            bytes[position] = b'y';
            texts.push(String::from_utf8(bytes).unwrap());
        }
        texts.push("\0".into());
        texts.push("\0\0".into());
        let hashes: HashSet<u64> = texts.iter().map(|text| hash(text)).collect();
        assert_eq!(hashes.len(), texts.len());
        assert_eq!(hash("same"), hash("same"));
    }
}
