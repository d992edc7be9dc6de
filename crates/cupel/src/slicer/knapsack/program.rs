//! 0/1 knapsack dynamic program (Bellman 1957; Kellerer, Pferschy and Pisinger 2004, section 2.3).
//!
//! `best[c]` is the best value within the capacity `c`. Rows `weight:value` 3:4 and 2:3, in this order:
//!
//! ```text
//! capacity      0  1  2  3  4  5
//! best before   0  0  0  0  0  0
//! after 3:4     0  0  0  4  4  4     kept where 0 + 4 > 0
//! after 2:3     0  0  3  4  4  7     kept at 2 (0 + 3 > 0) and 5 (4 + 3 > 4), not at 3 (0 + 3 < 4)
//! traceback     from 5: 2:3 is kept, 3 are left; there 3:4 is kept
//! ```

use super::lane::{LANES, Lane, update_block};
use super::table::{KeepTable, TooLarge, byte_size, try_with_capacity};
use super::window::Window;
use super::{Row, size};

/// The best value of the rows so far, per capacity.
///
/// A cell outside a row's window is not updated, so its value may be too low. It is never too high. The
/// solution does not change, by induction on the rows:
///
/// - A set visits one cell per row: the capacity that it leaves to this row and the rows before it. All
///   cells that an optimal set visits are within the windows, so they are computed.
/// - The value of such a cell is the greater of two: without the row, `best[c]` of the rows before, and with
///   it, `best[c - weight] + value`. The exact greater one belongs to an optimal set, which visits the cell
///   that it was read from. So that cell is exact, by the induction.
/// - The smaller one may be too low, which does not make it greater. If both are equal, both belong to
///   optimal sets and are exact, and the row is not taken (KNAP-9).
pub(super) struct Program<'a, V> {
    windows: &'a [Window],
    items: Vec<Item<V>>,
    /// An upper bound of all values, if available.
    max_value: Option<V>,
    best: Vec<V>,
    /// The largest capacity with a stored value. Larger capacities are read as this one: all rows so far fit
    /// there, or no optimal set leaves so much capacity to them.
    last_stored: usize,
    /// A copy of a block whose source and destination overlap.
    scratch: Vec<V>,
}

struct Item<V> {
    weight: usize,
    value: V,
    /// The weight of this row and all rows before it. At any larger capacity all of them fit, so the cell of
    /// this capacity stands for the larger ones.
    prefix_weight: usize,
}

/// The cells of a row to compute: whole blocks from `base` on. `base` is at least the weight of the row,
/// because it does not fit below. Cells after `to` are padding.
pub(super) struct Span {
    pub(super) base: usize,
    to: usize,
    blocks: usize,
}

impl Span {
    /// Returns the number of words for the keep bits.
    pub(super) fn words(&self) -> usize {
        self.blocks * LANES
    }
}

impl<'a, V: Lane> Program<'a, V> {
    /// Creates a program for capacities up to `capacity`. Also returns the remaining memory.
    pub(super) fn new(
        rows: &[Row],
        windows: &'a [Window],
        capacity: usize,
        max_value: Option<i64>,
        memory: usize,
    ) -> Result<(Self, usize), TooLarge> {
        let mut prefix_weight = 0_usize;
        let item = |row: &Row| {
            let weight = size(row.weight);
            prefix_weight = prefix_weight.saturating_add(weight);
            Item {
                weight,
                value: V::try_from(row.value).unwrap_or_default(),
                prefix_weight,
            }
        };
        let items = rows.iter().map(item).collect();
        // Beyond the weight of all rows the value stays the same, so these cells are not stored. The
        // vector has one block more, because the last block may reach beyond the last cell.
        let cells = capacity.min(prefix_weight).saturating_add(1 + V::BLOCK);
        let mut best = try_with_capacity(cells, memory)?;
        best.push(V::default());
        let program = Self {
            windows,
            items,
            max_value: max_value.and_then(|max_value| V::try_from(max_value).ok()),
            best,
            last_stored: 0,
            scratch: vec![V::default(); V::BLOCK],
        };
        Ok((program, memory - byte_size::<V>(cells)))
    }

    /// Returns the best value at a capacity.
    pub(super) fn best_at(&self, capacity: usize) -> V {
        self.best[capacity.min(self.last_stored)]
    }

    /// Returns `true` if the value at this capacity has reached the upper bound.
    pub(super) fn is_optimal(&self, capacity: usize) -> bool {
        self.max_value
            .is_some_and(|max_value| self.best_at(capacity) >= max_value)
    }

    /// Returns the cells that a traceback from any requested capacity can visit. The later rows leave a row at
    /// most the largest requested capacity, and at least the smallest one minus their total weight.
    pub(super) fn spans(&self, requested: Window) -> Vec<Span> {
        let mut suffix_weight = 0_usize;
        let span = |row: usize| {
            let Item {
                weight,
                prefix_weight,
                ..
            } = self.items[row];
            let window = self.windows[row];
            let to = window.to.min(requested.to).min(prefix_weight);
            let from = window
                .from
                .max(requested.from.saturating_sub(suffix_weight))
                .min(to);
            suffix_weight = suffix_weight.saturating_add(weight);
            let base = from.max(weight);
            Span {
                base,
                to,
                blocks: (to + 1).saturating_sub(base).div_ceil(V::BLOCK),
            }
        };
        let mut spans: Vec<Span> = (0..self.items.len()).rev().map(span).collect();
        spans.reverse();
        spans
    }

    /// Applies the Bellman recursion for a row to its span, from the largest capacity down.
    pub(super) fn apply_row(&mut self, row: usize, span: &Span, kept: &mut [V]) {
        if span.blocks == 0 {
            return;
        }
        // Cells after the last stored one are padding. Some may be left from a row whose blocks reached
        // further than those of the rows since, so their values lack these rows. They are cut off and filled
        // with the last stored value, which stands for all larger capacities.
        let last_value = self.best[self.last_stored];
        self.best.truncate(self.last_stored + 1);
        let end = span.base + span.blocks * V::BLOCK;
        self.best.resize(end.max(self.best.len()), last_value);
        self.last_stored = self.last_stored.max(span.to);
        let Item { weight, value, .. } = self.items[row];
        let blocks = kept.as_chunks_mut::<LANES>().0.iter_mut().enumerate();
        for (block, kept) in blocks.rev() {
            let at = span.base + block * V::BLOCK;
            // From the largest capacity down, so that a cell reads values without the row. Otherwise the row
            // could be taken twice. A block is written as a whole, so if the weight is below the size of a
            // block, the source overlaps the destination and is copied first.
            *kept = if weight >= V::BLOCK {
                let (before, best) = self.best.split_at_mut(at);
                update_block(
                    &mut best[..V::BLOCK],
                    &before[at - weight..][..V::BLOCK],
                    value,
                )
            } else {
                let before = &self.best[at - weight..][..V::BLOCK];
                self.scratch.copy_from_slice(before);
                update_block(&mut self.best[at..][..V::BLOCK], &self.scratch, value)
            };
        }
    }

    /// Visits the taken rows of a table from the last to the first (KNAP-11), starting at `capacity`.
    pub(super) fn traceback(
        &self,
        table: &KeepTable<V>,
        mut capacity: usize,
        mut take: impl FnMut(usize),
    ) {
        for row in (0..table.rows()).rev() {
            let Item {
                weight,
                prefix_weight,
                ..
            } = self.items[row];
            // Larger capacities have no cells: there all rows up to this one fit, as at their total weight.
            capacity = capacity.min(prefix_weight);
            if table.is_kept(row, capacity) {
                take(row);
                capacity -= weight;
            }
        }
    }
}
