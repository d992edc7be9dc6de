//! [`KnapsackSlice`].

use std::collections::TryReserveError;
use std::fmt;
use std::ops::{Add, RangeInclusive};

use super::{Selection, Slicer, TargetSweep, slice_by_selection};
use crate::{ContextBudget, ContextItem, CupelError, ScoredItem, ScoredRef};

/// Chooses the set with the highest total score that fits the budget.
///
/// Tokens are counted in buckets: an item's need is rounded up, the budget down, so a choice
/// that fits in buckets fits in tokens (KNAP-13). A score counts as `floor(score * 10000)`, so
/// an item below 0.0001 is worth nothing and is never chosen (KNAP-10). Items of zero
/// tokens are free and always kept.
///
/// Of several sets with the same total the choice is fixed by the specification's dynamic
/// program: ties go to the earlier items.
///
/// Time and memory grow with candidates times buckets; a table above 50,000,000 cells is
/// refused with [`CupelError::TableTooLarge`] unless [`cell_limit`](Self::cell_limit) says otherwise.
///
/// ```
/// use cupel::{ContextBudget, ContextItem, KnapsackSlice, ScoredItem, Slicer};
///
/// let scored = |content: &str, tokens, score| -> Result<_, cupel::CupelError> {
///     Ok(ScoredItem { item: ContextItem::builder(content, tokens).build()?, score })
/// };
/// let sorted = [scored("big", 60, 0.9)?, scored("half", 50, 0.6)?, scored("other half", 50, 0.5)?];
/// let kept = KnapsackSlice::new(1)?.slice(&sorted, &ContextBudget::with_target(100, 100)?)?;
/// let contents: Vec<_> = kept.iter().map(ContextItem::content).collect();
/// assert_eq!(contents, ["other half", "half"]); // 1.1 together, against 0.9
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KnapsackSlice {
    bucket_size: i64,
    cell_limit: u64,
}

impl KnapsackSlice {
    const DEFAULT_BUCKET_SIZE: i64 = 100;
    const DEFAULT_CELL_LIMIT: u64 = 50_000_000;

    /// A knapsack that counts tokens in buckets of the given size.
    ///
    /// # Errors
    ///
    /// [`CupelError::SlicerConfig`] if the size is not positive.
    pub fn new(bucket_size: i64) -> Result<Self, CupelError> {
        if bucket_size <= 0 {
            return Err(CupelError::SlicerConfig(
                "bucket_size must be > 0".to_owned(),
            ));
        }
        Ok(Self {
            bucket_size,
            cell_limit: Self::DEFAULT_CELL_LIMIT,
        })
    }

    /// Buckets of 100 tokens (KNAP-1).
    pub fn with_default_bucket_size() -> Self {
        Self {
            bucket_size: Self::DEFAULT_BUCKET_SIZE,
            cell_limit: Self::DEFAULT_CELL_LIMIT,
        }
    }

    /// Raises the number of table cells that is accepted; it is never lowered below the
    /// specification's 50,000,000. A cell costs one bit.
    pub fn cell_limit(mut self, cells: u64) -> Self {
        self.cell_limit = cells.max(Self::DEFAULT_CELL_LIMIT);
        self
    }

    /// The tokens per bucket.
    pub fn bucket_size(&self) -> i64 {
        self.bucket_size
    }

    /// The rows of the dynamic program. A candidate that is worth nothing or larger than the whole
    /// capacity has none: no cell of it can be a strict improvement.
    fn rows(&self, ranked: &[ScoredRef<'_>], candidates: Vec<usize>, capacity: usize) -> Vec<Row> {
        let row = |rank: usize| Row {
            rank,
            weight: saturated(buckets(ranked[rank].item.tokens(), self.bucket_size)),
            value: value(ranked[rank].score),
        };
        let rows = candidates.into_iter().map(row);
        rows.filter(|row| row.value > 0 && row.weight <= capacity)
            .collect()
    }

    /// The largest capacity that so many candidates may have.
    fn largest_capacity(&self, candidates: usize) -> usize {
        match u64::try_from(candidates) {
            Ok(0) | Err(_) => usize::MAX,
            Ok(candidates) => usize::try_from((self.cell_limit / candidates).saturating_sub(1))
                .unwrap_or(usize::MAX),
        }
    }

    /// The specification's dynamic program. A row replaces only on a strictly greater value (KNAP-9),
    /// and reading back runs from the last row to the first (KNAP-11); together they fix the choice
    /// among equal totals.
    ///
    /// `needed` tells, from the weight of the rows behind a row, the least capacity that reading back
    /// can ask that row for.
    fn solve(
        &self,
        rows: &[Row],
        capacity: usize,
        needed: impl Fn(u128) -> usize,
    ) -> Result<BitTable, CupelError> {
        let total: u128 = rows.iter().map(|row| u128::from(row.value)).sum();
        let solved = if u64::try_from(total).is_ok() {
            fill::<u64>(rows, capacity, needed)
        } else {
            fill::<u128>(rows, capacity, needed)
        };
        solved.map_err(|_| CupelError::TableOverLimit {
            cells: cells(rows.len(), capacity),
            limit: self.cell_limit,
        })
    }

    /// Refuses a table above the limit (KNAP-18).
    fn check_cells(&self, candidates: usize, capacity: usize) -> Result<(), CupelError> {
        let cells = cells(candidates, capacity);
        if cells <= self.cell_limit {
            return Ok(());
        }
        Err(if self.cell_limit == Self::DEFAULT_CELL_LIMIT {
            CupelError::TableTooLarge {
                candidates,
                capacity,
                cells,
            }
        } else {
            CupelError::TableOverLimit {
                cells,
                limit: self.cell_limit,
            }
        })
    }
}

impl Default for KnapsackSlice {
    fn default() -> Self {
        Self::with_default_bucket_size()
    }
}

impl fmt::Debug for KnapsackSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("KnapsackSlice");
        debug.field("bucket_size", &self.bucket_size);
        if self.cell_limit != Self::DEFAULT_CELL_LIMIT {
            debug.field("cell_limit", &self.cell_limit);
        }
        debug.finish()
    }
}

impl Slicer for KnapsackSlice {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        slice_by_selection(self, sorted, budget)
    }

    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        if budget.target_tokens() <= 0 {
            return Ok(Selection::default());
        }
        let (free, candidates) = split(ranked);
        let capacity = saturated(budget.target_tokens() / self.bucket_size);
        let mut selection = Selection::keep(free);
        if !candidates.is_empty() && capacity > 0 {
            self.check_cells(candidates.len(), capacity)?;
            let rows = self.rows(ranked, candidates, capacity);
            let capacity = useful_capacity(&rows, capacity);
            let table = self.solve(&rows, capacity, needed_at(capacity))?;
            selection.extend(table.chosen(&rows, capacity).map(|row| rows[row].rank));
        }
        Ok(selection)
    }

    /// Reads all capacities off one table. A cell depends on the rows before it and the capacities
    /// below it, so the table of the largest capacity holds those of all smaller ones.
    fn sweep(&self, ranked: &[ScoredRef<'_>], targets: RangeInclusive<i64>) -> Option<TargetSweep> {
        let (first, last) = targets.into_inner();
        let mut end = last.checked_add(1)?;
        if first > last {
            return None;
        }
        let mut sweep = TargetSweep::default();
        sweep.step(first);
        let (free, candidates) = split(ranked);
        if first <= 0 && last > 0 && !free.is_empty() {
            sweep.step(1);
        }
        let highest = saturated(last.max(0) / self.bucket_size);
        let allowed = self.largest_capacity(candidates.len()).min(highest);
        if allowed < highest {
            // The first target of the first capacity whose table is too large.
            let refused = i64::try_from(allowed + 1)
                .ok()?
                .checked_mul(self.bucket_size)?;
            end = refused.clamp(first, end);
            sweep.fail(end, self.check_cells(candidates.len(), allowed + 1).err()?);
        }
        for rank in free {
            sweep.keep(rank, first.max(1).min(end), end);
        }
        if candidates.is_empty() || allowed == 0 {
            return Some(sweep);
        }
        let rows = self.rows(ranked, candidates, allowed);
        let useful = useful_capacity(&rows, allowed);
        let table = self.solve(&rows, useful, |_| 0).ok()?;
        let mut open: Vec<Option<i64>> = vec![None; rows.len()];
        let lowest = saturated(first.max(0) / self.bucket_size);
        for capacity in lowest.min(useful)..=useful {
            let from = i64::try_from(capacity)
                .ok()?
                .checked_mul(self.bucket_size)?
                .max(first);
            let mut changed = false;
            let mut chosen = table.chosen(&rows, capacity).peekable();
            for row in (0..rows.len()).rev() {
                let is_chosen = chosen.next_if_eq(&row).is_some();
                match (is_chosen, open[row]) {
                    (true, None) => open[row] = Some(from),
                    (false, Some(since)) => {
                        sweep.keep(rows[row].rank, since, from);
                        open[row] = None;
                    }
                    _ => continue,
                }
                changed = true;
            }
            if changed && sweep.steps().last() != Some(&from) {
                sweep.step(from);
            }
        }
        for (row, since) in rows.iter().zip(open) {
            if let Some(since) = since {
                sweep.keep(row.rank, since, end);
            }
        }
        Some(sweep)
    }

    fn is_knapsack(&self) -> bool {
        true
    }
}

/// One candidate of the dynamic program.
struct Row {
    rank: usize,
    weight: usize,
    value: u64,
}

/// What a score is worth: 10000 steps to the unit, never negative, NaN nothing (KNAP-6).
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is not negative and saturation is wanted"
)]
fn value(score: f64) -> u64 {
    (score * 10_000.0).floor().clamp(0.0, i64::MAX as f64) as u64
}

/// Tokens in whole buckets, rounded up.
fn buckets(tokens: i64, bucket_size: i64) -> i64 {
    tokens / bucket_size + i64::from(tokens % bucket_size != 0)
}

fn saturated(count: i64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// The ranks of free items and of those that cost something.
fn split(ranked: &[ScoredRef<'_>]) -> (Vec<usize>, Vec<usize>) {
    let ranks = |wanted: fn(i64) -> bool| {
        let tokens = ranked.iter().map(|scored| scored.item.tokens());
        let chosen = tokens.enumerate().filter(move |(_, t)| wanted(*t));
        chosen.map(|(rank, _)| rank).collect()
    };
    (ranks(|tokens| tokens == 0), ranks(|tokens| tokens > 0))
}

/// The cells of a table of so many candidates.
fn cells(candidates: usize, capacity: usize) -> u64 {
    let cells = candidates as u128 * (capacity as u128 + 1);
    u64::try_from(cells).unwrap_or(u64::MAX)
}

/// The part of the capacity that the rows can fill. With more than that all of them are chosen,
/// as they are with exactly that.
fn useful_capacity(rows: &[Row], capacity: usize) -> usize {
    let weight: u128 = rows.iter().map(|row| row.weight as u128).sum();
    capacity.min(usize::try_from(weight).unwrap_or(usize::MAX))
}

/// The least capacity that reading back from `capacity` can ask a row for, by the weight of the
/// rows behind it.
fn needed_at(capacity: usize) -> impl Fn(u128) -> usize {
    move |behind| capacity.saturating_sub(usize::try_from(behind).unwrap_or(usize::MAX))
}

fn fill<V>(
    rows: &[Row],
    capacity: usize,
    needed: impl Fn(u128) -> usize,
) -> Result<BitTable, TryReserveError>
where
    V: Copy + Default + Ord + Add<Output = V> + From<u64>,
{
    let mut best = Vec::new();
    best.try_reserve_exact(capacity + 1)?;
    best.resize(capacity + 1, V::default());
    let mut keep = BitTable::new(rows.len(), capacity + 1)?;
    let mut behind: u128 = rows.iter().map(|row| row.weight as u128).sum();
    for (index, row) in rows.iter().enumerate() {
        behind -= row.weight as u128;
        for at in (row.weight.max(needed(behind))..=capacity).rev() {
            let with_row = best[at - row.weight] + V::from(row.value);
            if with_row > best[at] {
                best[at] = with_row;
                keep.set(index, at);
            }
        }
    }
    Ok(keep)
}

/// Which row is kept at which capacity, one bit each.
struct BitTable {
    words: Vec<u64>,
    words_per_row: usize,
}

impl BitTable {
    fn new(rows: usize, columns: usize) -> Result<Self, TryReserveError> {
        let words_per_row = columns.div_ceil(64);
        let size = rows.saturating_mul(words_per_row);
        let mut words = Vec::new();
        words.try_reserve_exact(size)?;
        words.resize(size, 0);
        Ok(Self {
            words,
            words_per_row,
        })
    }

    /// The chosen rows for a capacity, last row first.
    fn chosen<'a>(&'a self, rows: &'a [Row], capacity: usize) -> impl Iterator<Item = usize> + 'a {
        let mut remaining = capacity;
        (0..rows.len()).rev().filter(move |&row| {
            let is_chosen = self.get(row, remaining);
            if is_chosen {
                remaining -= rows[row].weight;
            }
            is_chosen
        })
    }

    fn set(&mut self, row: usize, column: usize) {
        self.words[row * self.words_per_row + column / 64] |= 1 << (column % 64);
    }

    fn get(&self, row: usize, column: usize) -> bool {
        self.words[row * self.words_per_row + column / 64] >> (column % 64) & 1 == 1
    }
}
