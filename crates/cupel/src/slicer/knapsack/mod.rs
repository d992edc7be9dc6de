//! [`KnapsackSlice`]: exact 0/1 knapsack (Kellerer, Pferschy and Pisinger 2004).
//!
//! The specification's dynamic program takes a candidate only for a strictly greater value (KNAP-9)
//! and traces back from the last candidate to the first (KNAP-11). Its solution is therefore
//! the lexicographically smallest optimum, scanning from the last item to the first.
//!
//! Every reduction here relies on one invariant: a constraint that the solution satisfies does not
//! change the solution. Fewer sets are left, the solution is one of them, and it is still the best and the
//! lexicographically smallest of them.
//!
//! | file | reduction |
//! |---|---|
//! | `scale` | scaling: divides weights and values by their common divisors |
//! | `search`, `bound` | variable fixing by Lagrangian bounds: decides candidates that are in all optimal sets, or in none |
//! | `window` | state pruning: computes only the capacities that an optimal set can leave to a candidate |
//!
//! The dynamic program (`program`) solves the rest (`subproblem`), with SIMD lanes (`lane`) and one
//! keep bit per cell (`table`).
//!
//! An example, with a capacity of 10 and the rows `weight:value` 6:7, 5:5, 5:5 and 4:4:
//!
//! ```text
//! bound     by value per weight, 6:7 fits and 5:5 does not: 5:5 is the break item, the multiplier is 5 / 5 = 1
//!           reduced cost = value - 1 * weight: 1, 0, 0, 0; no set has more than 1 * 10 + 1 = 11
//! search    assume that the optimum is 11: a row with a reduced cost above 11 - 11 = 0 is in it, so 6:7 is fixed
//! program   a capacity of 4 and a value of 4 remain: 4:4 reaches it; {6:7, 4:4} has 11, which is optimal
//! ```

mod bound;
mod lane;
mod program;
mod scale;
mod search;
mod subproblem;
mod sweep;
mod table;
mod window;

use std::cmp::Ordering;
use std::fmt;
use std::ops::{ControlFlow, RangeInclusive};

use self::table::TooLarge;
use super::{Selection, Slicer, SweepVisitor, slice_by_select};
use crate::{ContextBudget, CupelError, ScoredRef};

/// Selects the set with the highest total score that fits the budget (0/1 knapsack).
///
/// Tokens are counted in buckets. Item tokens are rounded up and the budget is rounded down, so a
/// set that fits in buckets fits in tokens (KNAP-13). The value of a score is
/// `floor(score * 10000)`. An item with a score below 0.0001 has no value and is never selected
/// (KNAP-10). Items of zero tokens are always selected.
///
/// Among sets with the same total value, the result is the lexicographically smallest, scanning
/// from the last item to the first: earlier items win ties.
///
/// # Cost
///
/// The specification's table has one cell per candidate and bucket. Above 50,000,000 cells it fails
/// with [`CupelError::TableTooLarge`]. The result is that of the full table, but only cells that can
/// affect it are computed: 10,000 candidates in 128,000 buckets take a fraction of a millisecond with
/// usual scores, and a few milliseconds with adversarial scores. To solve larger problems, set
/// [`memory_limit`](Self::memory_limit), which limits the bytes used, or
/// [`cell_limit`](Self::cell_limit), which raises the number of cells.
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
    limit: Limit,
}

/// The limit on the problem size.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Limit {
    /// The maximum number of cells in the full table.
    Cells(u64),
    /// The maximum number of bytes used for tables.
    Memory(usize),
}

impl KnapsackSlice {
    /// The specification's default (KNAP-1): a budget of 128,000 tokens has 1,280 buckets.
    const DEFAULT_BUCKET_SIZE: i64 = 100;

    /// The specification's limit (KNAP-18). With the value, the error is the specification's
    /// `TableTooLarge`; with a raised one it is [`CupelError::TableOverLimit`], which names the limit.
    const DEFAULT_CELL_LIMIT: u64 = 50_000_000;

    /// Creates a knapsack slicer with `bucket_size` tokens per bucket.
    ///
    /// # Errors
    ///
    /// [`CupelError::SlicerConfig`] if `bucket_size` is not positive.
    pub fn new(bucket_size: i64) -> Result<Self, CupelError> {
        if bucket_size <= 0 {
            return Err(CupelError::SlicerConfig(
                "bucket_size must be > 0".to_owned(),
            ));
        }
        Ok(Self {
            bucket_size,
            limit: Limit::Cells(Self::DEFAULT_CELL_LIMIT),
        })
    }

    /// Creates a knapsack slicer with 100 tokens per bucket (KNAP-1).
    pub fn with_default_bucket_size() -> Self {
        Self {
            bucket_size: Self::DEFAULT_BUCKET_SIZE,
            limit: Limit::Cells(Self::DEFAULT_CELL_LIMIT),
        }
    }

    /// Sets the maximum number of table cells, at least the specification's 50,000,000. Replaces a
    /// memory limit.
    ///
    /// With a raised limit, a larger table fails with [`CupelError::TableOverLimit`].
    pub fn cell_limit(mut self, cells: u64) -> Self {
        self.limit = Limit::Cells(cells.max(Self::DEFAULT_CELL_LIMIT));
        self
    }

    /// Limits the bytes used for tables instead of the number of cells. Replaces a cell limit.
    ///
    /// Usual problems need much less than a megabyte, and 10,000 candidates in a million buckets at
    /// most some tens of megabytes: one bit per cell that can affect the result, and up to sixteen
    /// bytes per bucket. About a hundred bytes per candidate are not counted. A problem that exceeds
    /// the limit fails with [`CupelError::TableOverLimit`], where one bit counts as one cell.
    ///
    /// ```
    /// use cupel::{ContextBudget, ContextItem, KnapsackSlice, ScoredItem, Slicer};
    ///
    /// let item = ContextItem::builder("a", 600_000).build()?;
    /// let sorted = vec![ScoredItem { item, score: 0.5 }; 100];
    /// let budget = ContextBudget::with_target(1_000_000, 1_000_000)?;
    /// let knapsack = KnapsackSlice::new(1)?;
    /// assert!(knapsack.slice(&sorted, &budget).is_err()); // 100,000,100 cells
    /// assert_eq!(knapsack.memory_limit(64 << 20).slice(&sorted, &budget)?.len(), 1);
    /// # Ok::<(), cupel::CupelError>(())
    /// ```
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.limit = Limit::Memory(bytes);
        self
    }

    /// Returns the number of tokens per bucket.
    pub fn bucket_size(&self) -> i64 {
        self.bucket_size
    }

    /// Returns the cell limit and the memory limit as documents have them: at most one is set.
    #[cfg(feature = "serde")]
    pub(super) fn limits(&self) -> (Option<u64>, Option<usize>) {
        match self.limit {
            Limit::Cells(Self::DEFAULT_CELL_LIMIT) => (None, None),
            Limit::Cells(cells) => (Some(cells), None),
            Limit::Memory(bytes) => (None, Some(bytes)),
        }
    }

    /// Returns the rows that the solution can contain. Omits candidates without value or larger than the
    /// capacity, which cannot strictly improve any cell.
    fn rows(&self, ranked: &[ScoredRef<'_>], capacity: i64) -> Vec<Row> {
        let rows = ranked.iter().enumerate().map(|(rank, scored)| Row {
            rank,
            weight: buckets(scored.item.tokens(), self.bucket_size),
            value: value(scored.score),
        });
        rows.filter(|row| (1..=capacity).contains(&row.weight) && row.value > 0)
            .collect()
    }

    /// Fails if the full table exceeds the cell limit (KNAP-18). The limit is that of the full table although
    /// few of its cells are computed: whether a problem is refused depends on its size only.
    fn check_cells(&self, candidates: usize, capacity: i64) -> Result<(), CupelError> {
        let cells = cells(candidates, capacity);
        match self.limit {
            Limit::Cells(limit) if cells <= limit => Ok(()),
            Limit::Cells(Self::DEFAULT_CELL_LIMIT) => Err(CupelError::TableTooLarge {
                candidates,
                capacity: size(capacity),
                cells,
            }),
            Limit::Cells(limit) => Err(CupelError::TableOverLimit { cells, limit }),
            Limit::Memory(_) => Ok(()),
        }
    }

    /// Returns the memory limit in bytes. A cell limit implies no further one.
    fn memory(&self) -> usize {
        match self.limit {
            Limit::Cells(_) => usize::MAX,
            Limit::Memory(bytes) => bytes,
        }
    }

    /// Converts a memory error to the public error. With a cell limit it means that the allocator failed.
    fn over_limit(&self, candidates: usize, capacity: i64, error: &TooLarge) -> CupelError {
        let bits = |bytes: usize| (bytes as u64).saturating_mul(8);
        match self.limit {
            Limit::Cells(limit) => CupelError::TableOverLimit {
                cells: cells(candidates, capacity),
                limit,
            },
            Limit::Memory(bytes) => CupelError::TableOverLimit {
                cells: bits(bytes.saturating_add(error.missing)),
                limit: bits(bytes),
            },
        }
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
        match self.limit {
            Limit::Cells(Self::DEFAULT_CELL_LIMIT) => {}
            Limit::Cells(cells) => {
                debug.field("cell_limit", &cells);
            }
            Limit::Memory(bytes) => {
                debug.field("memory_limit", &bytes);
            }
        }
        debug.finish()
    }
}

impl Slicer for KnapsackSlice {
    slice_by_select!();

    fn is_knapsack(&self) -> bool {
        true
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::SlicerConfig, super::ConfigError> {
        let (cell_limit, memory_limit) = self.limits();
        Ok(super::SlicerConfig::Knapsack {
            bucket_size: self.bucket_size,
            cell_limit,
            memory_limit,
        })
    }

    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        // Without a target not even items of zero tokens are selected (KNAP-14).
        if budget.target_tokens() <= 0 {
            return Ok(Selection::default());
        }
        let (free, candidates) = split(ranked);
        let capacity = budget.target_tokens() / self.bucket_size;
        let mut selection = Selection::keep(free);
        // With a target below one bucket only they are (KNAP-7).
        if capacity > 0 {
            self.check_cells(candidates, capacity)?;
            let rows = self.rows(ranked, capacity);
            let chosen = search::solve(rows, capacity, self.memory());
            selection
                .extend(chosen.map_err(|error| self.over_limit(candidates, capacity, &error))?);
        }
        Ok(selection)
    }

    fn sweep(
        &self,
        ranked: &[ScoredRef<'_>],
        targets: RangeInclusive<i64>,
        visitor: &mut dyn SweepVisitor,
    ) -> Option<ControlFlow<()>> {
        self.sweep_targets(ranked, targets, visitor)
    }
}

/// A candidate: one row of the table. Rows are in the order of their ranks, which decides ties.
#[derive(Clone, Copy)]
struct Row {
    /// The index in the list that the slicer was given.
    rank: usize,
    /// In buckets; from 1 to the capacity.
    weight: i64,
    /// Positive.
    value: i64,
}

/// Returns `floor(score * 10000)`, or 0 for a negative score or NaN (KNAP-6).
#[expect(
    clippy::cast_possible_truncation,
    reason = "large scores saturate and NaN becomes 0 (R009, R010); positive scores are rounded down"
)]
fn value(score: f64) -> i64 {
    ((score * 10_000.0) as i64).max(0)
}

/// Returns the number of buckets for `tokens`, rounded up.
fn buckets(tokens: i64, bucket_size: i64) -> i64 {
    tokens / bucket_size + i64::from(tokens % bucket_size > 0)
}

/// Converts a count that is not negative to `usize`.
fn size(count: i64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Returns the ranks of the items of zero tokens, and the number of items with more. Items with negative
/// tokens are ignored (KNAP-4).
fn split(ranked: &[ScoredRef<'_>]) -> (Vec<usize>, usize) {
    let mut free = Vec::new();
    let mut candidates = 0;
    for (rank, scored) in ranked.iter().enumerate() {
        match scored.item.tokens().cmp(&0) {
            Ordering::Less => {}
            Ordering::Equal => free.push(rank),
            Ordering::Greater => candidates += 1,
        }
    }
    (free, candidates)
}

/// Returns the number of cells of the full table.
fn cells(candidates: usize, capacity: i64) -> u64 {
    let cells = candidates as i128 * (i128::from(capacity) + 1);
    u64::try_from(cells).unwrap_or(u64::MAX)
}

#[cfg(feature = "serde")]
impl KnapsackSlice {
    pub(crate) fn from_config(
        bucket_size: i64,
        cell_limit: Option<u64>,
        memory_limit: Option<usize>,
    ) -> Result<Self, super::ConfigError> {
        let slicer = Self::new(bucket_size).map_err(crate::config::invalid_in("bucket_size"))?;
        match (cell_limit, memory_limit) {
            (None, None) => Ok(slicer),
            (Some(cells), None) => Ok(slicer.cell_limit(cells)),
            (None, Some(bytes)) => Ok(slicer.memory_limit(bytes)),
            (Some(_), Some(_)) => Err(super::ConfigError::exclusive("cell_limit", "memory_limit")),
        }
    }
}
