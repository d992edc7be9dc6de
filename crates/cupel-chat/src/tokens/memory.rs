//! What a process remembers of texts.
//!
//! A caller without a state sends a whole conversation with every request, and most of its texts were counted for the
//! request before. Counting a text takes 20 to 250 ns per byte, finding it here about 0.3.
//!
//! A [`Memory`] has two generations. A new entry goes to the young one. When that is full, it becomes the old one, and
//! what was old is forgotten; what is used again moves to the young one. So the memory is bounded, and what is in use
//! stays:
//!
//! ```text
//! young {a b}  old {}      room for 2
//! young {c}    old {a b}   c is new: a and b are old
//! young {c a}  old {b}     a is used
//! young {d}    old {c a}   d is new: b is forgotten
//! ```

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The name of a text: 128 bits of a hash with a key of this process. Two texts of one name are less likely than an
/// error of the machine, and nobody outside of the process can make them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Name(u64, u64);

impl Name {
    /// Names a text. `salt` separates texts of different meaning.
    pub(crate) fn of(text: &str, salt: u64) -> Self {
        let keys = keys();
        let bytes = text.as_bytes();
        let mut lanes = [
            keys[0] ^ bytes.len() as u64,
            keys[1] ^ salt,
            keys[2],
            keys[3],
        ];
        // Chunks of known length: a copy of a slice is a call for each word.
        let (words, rest) = bytes.as_chunks::<8>();
        let (blocks, others) = words.as_chunks::<4>();
        for block in blocks {
            mix(&mut lanes, block.map(u64::from_le_bytes), keys);
        }
        let mut last = [0; 4];
        for (word, bytes) in last.iter_mut().zip(others) {
            *word = u64::from_le_bytes(*bytes);
        }
        last[others.len()] = last_word(rest);
        mix(&mut lanes, last, keys);
        name(lanes, keys)
    }

    /// Names a short text, with two lanes instead of four. Of the instructions to count the forms of 2,400 shortened
    /// results by their lines, this saves a third.
    #[inline]
    pub(crate) fn of_short(text: &str, keys: &[u64; 4], salt: u64) -> Self {
        let bytes = text.as_bytes();
        // Each half of a name depends on the length and the salt.
        let both = bytes.len() as u64 ^ salt.rotate_left(32);
        let mut lanes = [keys[0] ^ both, keys[1] ^ both.rotate_left(16)];
        let mut add = |word: u64| {
            lanes = [
                fold(word ^ lanes[0], keys[2]),
                fold(word ^ lanes[1], keys[3]),
            ];
        };
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            add(u64::from_le_bytes(*word));
        }
        add(last_word(rest));
        Self(
            fold(lanes[0] ^ keys[3], keys[0]),
            fold(lanes[1] ^ keys[2], keys[1]),
        )
    }

    /// Returns the place of the name in a table.
    #[inline]
    pub(crate) fn slot(self, len: usize) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "a remainder")]
        let slot = (self.1 % len as u64) as usize;
        slot
    }

    /// Names several texts, in order.
    pub(crate) fn of_all<'t>(texts: impl Iterator<Item = &'t str>) -> u64 {
        texts.fold(0, |name: u64, text| Self::of(text, name.rotate_left(17)).0)
    }

    /// Names something that was made of a named text and numbers.
    pub(crate) fn with(self, numbers: [u64; 3]) -> Self {
        let keys = keys();
        let [a, b, c] = numbers;
        let mut lanes = [self.0, self.1, a ^ keys[0], b ^ keys[1]];
        mix(&mut lanes, [a, b, c, self.0], keys);
        name(lanes, keys)
    }
}

/// Returns the keys of this process.
pub(crate) fn keys() -> &'static [u64; 4] {
    static KEYS: OnceLock<[u64; 4]> = OnceLock::new();
    KEYS.get_or_init(|| {
        let random = RandomState::new();
        [0_u64, 1, 2, 3].map(|number| random.hash_one(number) | 1)
    })
}

/// Returns the name that four lanes make.
fn name(lanes: [u64; 4], keys: &[u64; 4]) -> Name {
    let left = fold(lanes[0] ^ keys[3], lanes[1] ^ keys[2]);
    let right = fold(lanes[2] ^ keys[1], lanes[3] ^ keys[0]);
    Name(
        fold(left ^ keys[0], right ^ keys[1]),
        fold(left.rotate_left(32) ^ keys[2], right ^ keys[3]),
    )
}

/// Returns up to 7 bytes as a word.
#[inline]
fn last_word(bytes: &[u8]) -> u64 {
    let word = |word: u64, byte: &u8| word << 8 | u64::from(*byte);
    bytes.iter().rev().fold(0, word)
}

/// Adds a block of four words to four lanes.
#[inline]
fn mix(lanes: &mut [u64; 4], words: [u64; 4], keys: &[u64; 4]) {
    let word = |number: usize| words[number];
    // Each word is in two products with different keys, so that no word alone can make one of them 0 in both.
    lanes[0] = fold(word(0) ^ lanes[0], word(1) ^ keys[0]);
    lanes[1] = fold(word(2) ^ lanes[1], word(3) ^ keys[1]);
    lanes[2] = fold(word(1) ^ lanes[2], word(2) ^ keys[2]);
    lanes[3] = fold(word(3) ^ lanes[3], word(0) ^ keys[3]);
}

/// Folds the product of two words into one.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
    let folded = product as u64 ^ (product >> 64) as u64;
    folded
}

impl std::hash::Hash for Name {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.0);
    }
}

/// A name is a hash already.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, name: u64) {
        self.0 = name;
    }
}

type Map<V> = HashMap<Name, V, BuildHasherDefault<Same>>;

/// Values by the names of texts, bounded by the sum of their weights.
pub(crate) struct Memory<V> {
    /// Several, so that threads do not wait for each other.
    shards: [Mutex<Shard<V>>; SHARDS],
    /// The most weight of a generation of a shard.
    room: usize,
}

const SHARDS: usize = 16;

struct Shard<V> {
    young: Map<V>,
    old: Map<V>,
    weight: usize,
}

impl<V: Clone> Memory<V> {
    /// Creates a memory for values of a weight.
    pub(crate) fn new(room: usize) -> Self {
        let shard = || {
            Mutex::new(Shard {
                young: Map::default(),
                old: Map::default(),
                weight: 0,
            })
        };
        Self {
            shards: std::array::from_fn(|_| shard()),
            room: room / (2 * SHARDS),
        }
    }

    /// Returns the value of a name, or makes and remembers it. `weight` is that of a value.
    pub(crate) fn get_or_make(
        &self,
        name: Name,
        weight: impl Fn(&V) -> usize,
        make: impl FnOnce() -> V,
    ) -> V {
        let shard = &self.shards[name.slot(SHARDS)];
        // A panic elsewhere leaves a map that is whole.
        let lock = || shard.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut shard = lock();
            if let Some(value) = shard.young.get(&name) {
                return value.clone();
            }
            if let Some(value) = shard.old.remove(&name) {
                shard.insert(name, value.clone(), weight(&value), self.room);
                return value;
            }
        }
        // Not under the lock: making a value may take long.
        let value = make();
        lock().insert(name, value.clone(), weight(&value), self.room);
        value
    }
}

impl<V> Shard<V> {
    fn insert(&mut self, name: Name, value: V, weight: usize, room: usize) {
        if self.weight.saturating_add(weight) > room {
            self.old = std::mem::take(&mut self.young);
            self.weight = 0;
        }
        self.weight = self.weight.saturating_add(weight);
        self.young.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn counted(memory: &Memory<usize>, text: &str, made: &mut usize) -> usize {
        memory.get_or_make(
            Name::of(text, 0),
            |_| 1,
            || {
                *made += 1;
                text.len()
            },
        )
    }

    #[test]
    fn a_value_is_made_once_while_it_is_in_use() {
        let memory = Memory::new(2 * SHARDS * 10);
        let mut made = 0;
        for round in 0..1_000 {
            assert_eq!(counted(&memory, "in use", &mut made), 6);
            counted(&memory, &format!("text {round}"), &mut made);
        }
        assert_eq!(made, 1 + 1_000);
    }

    #[test]
    fn what_is_not_used_is_forgotten() {
        let memory = Memory::new(2 * SHARDS * 10);
        let mut made = 0;
        counted(&memory, "once", &mut made);
        for round in 0..10_000 {
            counted(&memory, &format!("text {round}"), &mut made);
        }
        let kept = memory.shards.iter().map(|shard| {
            let shard = shard.lock().unwrap();
            shard.young.len() + shard.old.len()
        });
        assert!(kept.sum::<usize>() <= 2 * SHARDS * 10);
        made = 0;
        counted(&memory, "once", &mut made);
        assert_eq!(made, 1);
    }

    #[test]
    fn names_differ_by_each_number() {
        let text = Name::of("text", 0);
        let numbers = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]];
        let names: HashSet<(u64, u64)> = numbers
            .map(|it| text.with(it))
            .map(|it| (it.0, it.1))
            .into();
        assert_eq!(names.len(), numbers.len());
        assert_eq!(text.with([1, 2, 3]), text.with([1, 2, 3]));
    }

    #[test]
    fn names_differ_by_every_byte_the_length_and_the_salt() {
        differ(Name::of);
        differ(|text, salt| Name::of_short(text, keys(), salt));
    }

    fn differ(make: fn(&str, u64) -> Name) {
        let texts: Vec<String> = (0..80)
            .flat_map(|len| {
                let zeros = "\0".repeat(len);
                let changed = (0..len).map({
                    let zeros = zeros.clone();
                    move |at| format!("{}a{}", &zeros[..at], &zeros[at + 1..])
                });
                std::iter::once(zeros).chain(changed).collect::<Vec<_>>()
            })
            .collect();
        let names = texts
            .iter()
            .flat_map(|text| [0, 1].map(|salt| make(text, salt)));
        let halves: Vec<(u64, u64)> = names.map(|name| (name.0, name.1)).collect();
        let distinct = |half: fn(&(u64, u64)) -> u64| {
            let distinct: HashSet<u64> = halves.iter().map(half).collect();
            distinct.len()
        };
        assert_eq!(distinct(|it| it.0), halves.len());
        assert_eq!(distinct(|it| it.1), halves.len());
        assert_eq!(make("same", 7), make("same", 7));
    }
}
