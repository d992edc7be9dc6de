//! The bits of the specification's table, and the memory for it.

use std::ops::Range;

use super::lane::{LANES, Lane, is_kept};
use super::program::Span;

/// The memory does not suffice.
pub(super) struct TooLarge {
    /// The bytes that were missing.
    pub(super) missing: usize,
}

/// Which row is kept at which capacity, one bit each, for some consecutive rows.
pub(super) struct KeepTable<V> {
    first_row: usize,
    rows: Vec<KeptRow>,
    words: Vec<V>,
}

/// Where the bits of a row begin, and at which capacity.
struct KeptRow {
    base: usize,
    first_word: usize,
}

impl<V: Lane> KeepTable<V> {
    pub(super) fn new(first_row: usize, spans: &[Span], memory: usize) -> Result<Self, TooLarge> {
        let words = spans.iter().map(Span::words);
        Ok(Self {
            first_row,
            rows: Vec::with_capacity(spans.len()),
            words: reserved(words.fold(0, usize::saturating_add), memory)?,
        })
    }

    /// Room for the bits of the next row.
    pub(super) fn add(&mut self, span: &Span) -> &mut [V] {
        let first_word = self.words.len();
        self.rows.push(KeptRow {
            base: span.base,
            first_word,
        });
        self.words.resize(first_word + span.words(), V::default());
        &mut self.words[first_word..]
    }

    pub(super) fn rows(&self) -> Range<usize> {
        self.first_row..self.first_row + self.rows.len()
    }

    pub(super) fn is_kept(&self, row: usize, capacity: usize) -> bool {
        let KeptRow { base, first_word } = self.rows[row - self.first_row];
        capacity.checked_sub(base).is_some_and(|cell| {
            let block = &self.words[first_word + cell / V::BLOCK * LANES..];
            is_kept(&block[..LANES], cell % V::BLOCK)
        })
    }
}

/// An empty vector with room for so many elements, if the memory suffices.
pub(super) fn reserved<T>(length: usize, memory: usize) -> Result<Vec<T>, TooLarge> {
    let needed = bytes::<T>(length);
    let mut vec = Vec::new();
    match needed.checked_sub(memory) {
        Some(missing) if missing > 0 => Err(TooLarge { missing }),
        _ => match vec.try_reserve_exact(length) {
            Ok(()) => Ok(vec),
            Err(_) => Err(TooLarge { missing: needed }),
        },
    }
}

pub(super) fn bytes<T>(length: usize) -> usize {
    length.saturating_mul(size_of::<T>())
}
