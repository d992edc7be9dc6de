//! The specification's dynamic program, row by row.

use std::ops::Range;

use super::lane::{LANES, Lane, improve};
use super::table::{KeepTable, TooLarge, bytes, reserved};
use super::window::Window;
use super::{Row, size};

/// For every capacity the best value of the rows so far.
///
/// Capacities outside a row's window keep what they had: the value of some set, but perhaps not of
/// the best. That does no harm. Optimal sets leave only capacities within the windows. Of the two
/// values that meet in a cell on the way of such a set, the greater lies on the way of one
/// too, so it is right; and the other, right or too low, is not greater. Where both are equally
/// great, both are right, and the row is not taken, as the specification has it.
pub(super) struct Program<'a, V> {
    windows: &'a [Window],
    items: Vec<Item<V>>,
    /// What no set exceeds, if known.
    most: Option<V>,
    best: Vec<V>,
    /// The largest capacity with a value of its own; larger ones share it.
    known: usize,
    /// Room for the copy of a block.
    block: Vec<V>,
}

struct Item<V> {
    weight: usize,
    value: V,
    /// The weight of this row and those before it; with more capacity all of them are taken.
    reach: usize,
}

/// The cells of a row that are calculated: blocks from `base` on. Up to `to` they matter.
pub(super) struct Span {
    pub(super) base: usize,
    to: usize,
    blocks: usize,
}

impl Span {
    /// The words that hold its bits.
    pub(super) fn words(&self) -> usize {
        self.blocks * LANES
    }
}

impl<'a, V: Lane> Program<'a, V> {
    /// A program for capacities up to the given one, and what it leaves of the memory.
    pub(super) fn new(
        rows: &[Row],
        windows: &'a [Window],
        capacity: usize,
        most: Option<i64>,
        memory: usize,
    ) -> Result<(Self, usize), TooLarge> {
        let mut reach = 0_usize;
        let item = |row: &Row| {
            let weight = size(row.weight);
            reach = reach.saturating_add(weight);
            Item {
                weight,
                value: V::try_from(row.value).unwrap_or_default(),
                reach,
            }
        };
        let items = rows.iter().map(item).collect();
        let cells = capacity.min(reach).saturating_add(1 + V::BLOCK);
        let mut best = reserved(cells, memory)?;
        best.push(V::default());
        let program = Self {
            windows,
            items,
            most: most.and_then(|most| V::try_from(most).ok()),
            best,
            known: 0,
            block: vec![V::default(); V::BLOCK],
        };
        Ok((program, memory - bytes::<V>(cells)))
    }

    pub(super) fn best_at(&self, capacity: usize) -> V {
        self.best[capacity.min(self.known)]
    }

    /// Whether the value of this capacity cannot be exceeded.
    pub(super) fn is_done(&self, capacity: usize) -> bool {
        self.most.is_some_and(|most| self.best_at(capacity) >= most)
    }

    /// The cells that are needed to read back through the rows from any of the capacities asked for.
    /// The rows behind a row leave it no less than that capacity without their weight.
    pub(super) fn spans(&self, rows: Range<usize>, asked: Window) -> Vec<Span> {
        let mut behind = 0_usize;
        let span = |row: usize| {
            let Item { weight, reach, .. } = self.items[row];
            let window = self.windows[row];
            let to = window.to.min(asked.to).min(reach);
            let from = window.from.max(asked.from.saturating_sub(behind)).min(to);
            behind = behind.saturating_add(weight);
            let base = from.max(weight);
            Span {
                base,
                to,
                blocks: (to + 1).saturating_sub(base).div_ceil(V::BLOCK),
            }
        };
        let mut spans: Vec<Span> = rows.rev().map(span).collect();
        spans.reverse();
        spans
    }

    /// Offers a row to the cells of its span, from the largest capacity down, block by block.
    pub(super) fn offer(&mut self, row: usize, span: &Span, kept: &mut [V]) {
        if span.blocks == 0 {
            return;
        }
        let shared = self.best[self.known];
        self.best.truncate(self.known + 1);
        let end = span.base + span.blocks * V::BLOCK;
        self.best.resize(end.max(self.best.len()), shared);
        self.known = self.known.max(span.to);
        let Item { weight, value, .. } = self.items[row];
        let blocks = kept.as_chunks_mut::<LANES>().0.iter_mut().enumerate();
        for (block, kept) in blocks.rev() {
            let at = span.base + block * V::BLOCK;
            *kept = if weight >= V::BLOCK {
                let (before, best) = self.best.split_at_mut(at);
                improve(
                    &mut best[..V::BLOCK],
                    &before[at - weight..][..V::BLOCK],
                    value,
                )
            } else {
                let before = &self.best[at - weight..][..V::BLOCK];
                self.block.copy_from_slice(before);
                improve(&mut self.best[at..][..V::BLOCK], &self.block, value)
            };
        }
    }

    /// Reads back from the last row of a table to its first (KNAP-11), given the capacity left to them;
    /// returns the capacity left to the rows before.
    pub(super) fn read_back(
        &self,
        table: &KeepTable<V>,
        mut capacity: usize,
        mut take: impl FnMut(usize),
    ) -> usize {
        for row in table.rows().rev() {
            let Item { weight, reach, .. } = self.items[row];
            capacity = capacity.min(reach);
            if table.is_kept(row, capacity) {
                take(row);
                capacity -= weight;
            }
        }
        capacity
    }

    /// The values up to a capacity, to go on from later.
    pub(super) fn state(&self, capacity: usize) -> &[V] {
        &self.best[..=capacity.min(self.known)]
    }

    pub(super) fn restore(&mut self, state: &[V]) {
        self.best.clear();
        self.best.extend_from_slice(state);
        self.known = state.len() - 1;
    }
}
