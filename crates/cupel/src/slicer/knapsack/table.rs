//! The keep table of the dynamic program, one bit per cell, and its memory limit.
//!
//! The values are needed for the last row only, because each row is computed from the one before. The
//! traceback needs to know of every row where it was taken. So a cell of the table is one bit, and 10^9 cells
//! take 125 MB, where values of 8 bytes would take 8 GB.

use super::lane::{LANES, Lane, is_kept};
use super::program::Span;

/// The memory limit is exceeded.
#[derive(Debug)]
pub(super) struct TooLarge {
    /// The number of bytes over the limit.
    pub(super) missing: usize,
}

/// One bit per row and capacity, set if the row is taken there. Rows are appended from the first to the last.
pub(super) struct KeepTable<V> {
    rows: Vec<KeptRow>,
    /// The bits of all rows, one row after the other, [`LANES`] words per block. All of it is reserved at the
    /// start, within the memory limit, so appending a row never allocates.
    words: Vec<V>,
}

/// Where the bits of a row are.
struct KeptRow {
    /// The first capacity of the row's span. The row is not taken below it.
    base: usize,
    /// The index of its first word.
    first_word: usize,
}

impl<V: Lane> KeepTable<V> {
    pub(super) fn new(spans: &[Span], memory: usize) -> Result<Self, TooLarge> {
        let words = spans.iter().map(Span::words);
        Ok(Self {
            rows: Vec::with_capacity(spans.len()),
            words: try_with_capacity(words.fold(0, usize::saturating_add), memory)?,
        })
    }

    /// Appends a row and returns its zeroed bits.
    pub(super) fn push_row(&mut self, span: &Span) -> &mut [V] {
        let first_word = self.words.len();
        self.rows.push(KeptRow {
            base: span.base,
            first_word,
        });
        self.words.resize(first_word + span.words(), V::default());
        &mut self.words[first_word..]
    }

    /// Returns the number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Returns `true` if a row is taken at a capacity, which must not be above the row's span: the words there
    /// are those of the next row.
    pub(super) fn is_kept(&self, row: usize, capacity: usize) -> bool {
        let KeptRow { base, first_word } = self.rows[row];
        capacity.checked_sub(base).is_some_and(|cell| {
            let block = &self.words[first_word + cell / V::BLOCK * LANES..];
            is_kept(&block[..LANES], cell % V::BLOCK)
        })
    }
}

/// Returns an empty vector of capacity `length`, if the memory limit allows it.
pub(super) fn try_with_capacity<T>(length: usize, memory: usize) -> Result<Vec<T>, TooLarge> {
    let needed = byte_size::<T>(length);
    let mut vec = Vec::new();
    match needed.checked_sub(memory) {
        Some(missing) if missing > 0 => Err(TooLarge { missing }),
        _ => match vec.try_reserve_exact(length) {
            Ok(()) => Ok(vec),
            // The allocator does not say how much it has.
            Err(_) => Err(TooLarge { missing: needed }),
        },
    }
}

/// Returns the size of `length` elements in bytes.
pub(super) fn byte_size<T>(length: usize) -> usize {
    length.saturating_mul(size_of::<T>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_may_have_as_many_bytes_as_the_limit() {
        let missing = |memory| match try_with_capacity::<u64>(4, memory) {
            Ok(_) => None,
            Err(TooLarge { missing }) => Some(missing),
        };
        assert_eq!([33, 32, 31].map(missing), [None, None, Some(1)]);
    }
}
