//! [`Numbers`]: a hash table that numbers keys.

use crate::hash::Secret;

/// What is numbered. Keys of different things may be equal where the caller looks closer.
pub(super) type Key = [u64; 2];

/// Numbers keys from 1 on, in the order in which they come.
#[derive(Clone)]
pub(super) struct Numbers {
    secret: Secret,
    /// By number; what stands at 0 is nobody's.
    keys: Vec<Key>,
    /// Numbers, by the leading bits of a hash or as soon after that as there was place; 0 in a free slot. At least
    /// half of the slots are free.
    slots: Vec<u32>,
    /// How many bits of a hash are not leading.
    shift: u32,
}

impl Numbers {
    /// With `2^bits` slots to start with, but at least two.
    pub(super) fn new(bits: u32) -> Self {
        let bits = bits.max(1);
        Self {
            secret: Secret::of_process(),
            keys: vec![[0; 2]],
            slots: vec![0; 1 << bits],
            shift: u64::BITS - bits,
        }
    }

    /// The greatest number, which is how many there are.
    pub(super) fn greatest(&self) -> usize {
        self.keys.len() - 1
    }

    /// The number of an equal key that `is_same`, or 0.
    #[inline]
    pub(super) fn find(&self, key: Key, is_same: impl Fn(usize) -> bool) -> usize {
        self.slots[self.seek(key, is_same)] as usize
    }

    /// As [`find`](Self::find), but a key that has no number gets the next one.
    #[inline]
    pub(super) fn number(&mut self, key: Key, is_same: impl Fn(usize) -> bool) -> usize {
        let at = self.seek(key, is_same);
        match self.slots[at] {
            0 => self.add(key, at),
            number => number as usize,
        }
    }

    /// The slot of the key, or the free one where it would go.
    #[inline]
    fn seek(&self, key: Key, is_same: impl Fn(usize) -> bool) -> usize {
        let mut at = self.home(key);
        loop {
            let number = self.slots[at] as usize;
            let [left, right] = self.keys[number];
            let difference = (left ^ key[0]) | (right ^ key[1]);
            // Which of both is zero cannot be foreseen, that one of them is can.
            let is_done = difference.min(number as u64) == 0;
            if is_done && (number == 0 || is_same(number)) {
                return at;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    fn add(&mut self, key: Key, at: usize) -> usize {
        let number = self.keys.len();
        self.keys.push(key);
        self.slots[at] = index(number);
        if number > self.slots.len() / 2 {
            self.grow();
        }
        number
    }

    #[cold]
    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 2];
        self.shift -= 1;
        for number in 1..self.keys.len() {
            let at = self.seek(self.keys[number], |_| false);
            self.slots[at] = index(number);
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "it is less than the slots")]
    fn home(&self, key: Key) -> usize {
        (self.secret.mix(key) >> self.shift) as usize
    }
}

/// A number of 32 bits; those who number keys see to it that there are no more.
#[expect(clippy::cast_possible_truncation, reason = "see above")]
pub(super) fn index(number: usize) -> u32 {
    number as u32
}
