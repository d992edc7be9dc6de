//! [`KnapsackSlice`].

use std::fmt;
use std::ops::Add;

use super::{Selection, Slicer, slice_by_selection};
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

    /// Refuses a table above the limit (KNAP-18).
    fn check_cells(&self, candidates: usize, capacity: usize) -> Result<(), CupelError> {
        let cells = candidates as u128 * (capacity as u128 + 1);
        let cells = u64::try_from(cells).unwrap_or(u64::MAX);
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
        let ranks = |wanted: fn(i64) -> bool| {
            let tokens = ranked.iter().map(|scored| scored.item.tokens());
            let chosen = tokens.enumerate().filter(move |(_, t)| wanted(*t));
            chosen.map(|(rank, _)| rank).collect::<Vec<usize>>()
        };
        let free = Selection::keep(ranks(|tokens| tokens == 0));
        let candidates = ranks(|tokens| tokens > 0);
        let capacity = saturated(budget.target_tokens() / self.bucket_size);
        if candidates.is_empty() || capacity == 0 {
            return Ok(free);
        }
        self.check_cells(candidates.len(), capacity)?;

        // A candidate that is worth nothing or larger than the whole capacity has no row:
        // no cell of it can be a strict improvement.
        let rows: Vec<Row> = candidates
            .into_iter()
            .map(|rank| Row {
                rank,
                weight: saturated(buckets(ranked[rank].item.tokens(), self.bucket_size)),
                value: value(ranked[rank].score),
            })
            .filter(|row| row.value > 0 && row.weight <= capacity)
            .collect();
        let total: u128 = rows.iter().map(|row| u128::from(row.value)).sum();
        let chosen = if u64::try_from(total).is_ok() {
            solve::<u64>(&rows, capacity)
        } else {
            solve::<u128>(&rows, capacity)
        };
        let mut selection = free;
        selection.extend(chosen);
        Ok(selection)
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

/// The specification's dynamic program: ranks of the chosen rows, last row first.
///
/// A row replaces only on a strictly greater value (KNAP-9), and reconstruction runs from
/// the last row to the first (KNAP-11); together they fix the choice among equal totals. A row
/// is computed down to the least capacity that reconstruction can still ask it for.
fn solve<V>(rows: &[Row], capacity: usize) -> Vec<usize>
where
    V: Copy + Default + Ord + Add<Output = V> + From<u64>,
{
    let mut best = vec![V::default(); capacity + 1];
    let mut keep = BitTable::new(rows.len(), capacity + 1);
    let mut behind: u128 = rows.iter().map(|row| row.weight as u128).sum();
    for (index, row) in rows.iter().enumerate() {
        behind -= row.weight as u128;
        let needed = capacity.saturating_sub(usize::try_from(behind).unwrap_or(usize::MAX));
        for at in (row.weight.max(needed)..=capacity).rev() {
            let with_row = best[at - row.weight] + V::from(row.value);
            if with_row > best[at] {
                best[at] = with_row;
                keep.set(index, at);
            }
        }
    }
    let mut chosen = Vec::new();
    let mut remaining = capacity;
    for (index, row) in rows.iter().enumerate().rev() {
        if keep.get(index, remaining) {
            chosen.push(row.rank);
            remaining -= row.weight;
        }
    }
    chosen
}

/// A table of booleans, one bit each.
struct BitTable {
    words: Vec<u64>,
    words_per_row: usize,
}

impl BitTable {
    fn new(rows: usize, columns: usize) -> Self {
        let words_per_row = columns.div_ceil(64);
        Self {
            words: vec![0; rows * words_per_row],
            words_per_row,
        }
    }

    fn set(&mut self, row: usize, column: usize) {
        self.words[row * self.words_per_row + column / 64] |= 1 << (column % 64);
    }

    fn get(&self, row: usize, column: usize) -> bool {
        self.words[row * self.words_per_row + column / 64] >> (column % 64) & 1 == 1
    }
}
