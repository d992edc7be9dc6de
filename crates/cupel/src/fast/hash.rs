//! Hashes with a seed that differs from process to process, so that inputs made to collide in one
//! process do not collide in another; [`fixed_hash`] is the exception, for similarity.
//!
//! [`hash`] and [`Seed::hash`] fold the product of two words into one, as wyhash does (Wang Yi 2019);
//! [`keyed_hash`] is `SipHash` (Aumasson and Bernstein 2012), which resists chosen collisions.
//! Equal hashes are always followed by a comparison of the texts, and no result depends on the order
//! of hashes.
//!
//! With `SipHash` for contents, building items of 2 kB takes 2.0 times as long hot and 1.8 times cold.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

/// Returns the hash of a text in this process.
pub(crate) fn hash(text: &str) -> u64 {
    hash_with(*seeds(), text)
}

/// The digits of pi, as odd numbers: two seeds of hashes that are the same in every process.
const FIXED_SEEDS: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345];

/// Returns the hash of a text that is the same in every process.
pub(crate) fn fixed_hash(text: &str) -> u64 {
    hash_with(FIXED_SEEDS, text)
}

/// Extends the hash of a sequence by its next element. The result is the same in every process.
pub(crate) fn fixed_chain(hash: u64, next: u64) -> u64 {
    fold(hash ^ FIXED_SEEDS[0], next ^ FIXED_SEEDS[1]).rotate_left(17)
}

fn hash_with([first, second]: [u64; 2], text: &str) -> u64 {
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

/// Returns the keyed `SipHash` of a text: slower, and resistant to chosen collisions.
pub(crate) fn keyed_hash(text: &str) -> u64 {
    static STATE: OnceLock<RandomState> = OnceLock::new();
    STATE.get_or_init(RandomState::new).hash_one(text)
}

/// The seed of hashes of two words.
#[derive(Clone, Copy)]
pub(crate) struct Seed([u64; 2]);

impl Seed {
    pub(crate) fn of_process() -> Self {
        Self(*seeds())
    }

    #[inline]
    pub(crate) fn hash(self, [left, right]: [u64; 2]) -> u64 {
        fold(left ^ self.0[0], right ^ self.0[1])
    }
}

/// Returns two odd random numbers, drawn once per process.
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

/// Returns the exclusive or of both halves of the product.
#[expect(clippy::cast_possible_truncation, reason = "each half has 64 bits")]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Returns the eight bytes from `start` on as a number.
fn word(block: &[u8], start: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&block[start..start + 8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::hash;

    #[test]
    fn similar_texts_have_different_hashes() {
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
