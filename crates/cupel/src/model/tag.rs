//! [`Tags`]: an item's tags, each with a [`TagKey`] that scorers compare instead of its text.

use crate::hash::keyed_hash;

/// Tags in order and with repeats.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Tags {
    texts: Vec<String>,
    keys: Vec<TagKey>,
}

impl Tags {
    pub(crate) fn push(&mut self, tag: String) {
        self.keys.push(TagKey::new(&tag));
        self.texts.push(tag);
    }

    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// One key per text.
    pub(crate) fn keys(&self) -> &[TagKey] {
        &self.keys
    }
}

impl From<Vec<String>> for Tags {
    fn from(texts: Vec<String>) -> Self {
        let keys = texts.iter().map(|tag| TagKey::new(tag)).collect();
        Self { texts, keys }
    }
}

/// A tag in two words.
///
/// Up to 15 bytes are held whole, with capitals made small; of more, a hash is held that is
/// secret to this process. The last byte tells the length, whether there were ASCII capitals
/// and whether it is a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TagKey([u64; 2]);

impl TagKey {
    const WHOLE: usize = 15;
    const CAPITALS: u64 = 1 << 63;
    const HASH: u64 = 1 << 62;

    pub(crate) fn new(tag: &str) -> Self {
        let bytes = tag.as_bytes();
        let mut words = if bytes.len() <= Self::WHOLE {
            let mut whole = [0; 16];
            whole[..bytes.len()].copy_from_slice(bytes);
            whole.make_ascii_lowercase();
            let whole = u128::from_le_bytes(whole) | (bytes.len() as u128) << 120;
            [low_word(whole), low_word(whole >> 64)]
        } else {
            [keyed_hash(&tag.to_ascii_lowercase()), Self::HASH]
        };
        if bytes.iter().any(u8::is_ascii_uppercase) {
            words[1] |= Self::CAPITALS;
        }
        Self(words)
    }

    /// Equal for tags that are equal but for ASCII case.
    pub(crate) fn folded(self) -> [u64; 2] {
        [self.0[0], self.0[1] & !Self::CAPITALS]
    }

    /// Whether no tag that differs by more than ASCII case has the same [`folded`](Self::folded).
    pub(crate) fn is_whole(self) -> bool {
        self.0[1] & Self::HASH == 0
    }

    /// Whether no letter was made small.
    pub(crate) fn is_small(self) -> bool {
        self.0[1] & Self::CAPITALS == 0
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the rest is another word")]
fn low_word(words: u128) -> u64 {
    words as u64
}

#[cfg(test)]
mod tests {
    use super::TagKey;

    // proves: FREQ-5
    #[test]
    fn keys_are_equal_exactly_if_tags_differ_only_in_ascii_case() {
        let mut tags: Vec<String> = vec!["\0".into(), "\0\0".into(), "ä".into(), "Ä".into()];
        for length in 0..40 {
            for text in ["aaaaaaaaaa", "abcdefghij", "AbCdEfGhIj", "Zz@[`{ 09_"] {
                let text: String = text.chars().cycle().take(length).collect();
                for position in 0..length {
                    let mut bytes = text.clone().into_bytes();
                    bytes[position] ^= b' ';
                    tags.extend(String::from_utf8(bytes));
                }
                tags.push(text);
            }
        }
        let keys: Vec<TagKey> = tags.iter().map(|tag| TagKey::new(tag)).collect();
        for (tag, key) in tags.iter().zip(&keys) {
            assert_eq!(key.is_whole(), tag.len() <= 15, "{tag:?}");
            assert_eq!(key.is_small(), *tag == tag.to_ascii_lowercase(), "{tag:?}");
            for (other, other_key) in tags.iter().zip(&keys) {
                assert_eq!(
                    key.folded() == other_key.folded(),
                    tag.eq_ignore_ascii_case(other),
                    "{tag:?} {other:?}"
                );
            }
        }
    }
}
