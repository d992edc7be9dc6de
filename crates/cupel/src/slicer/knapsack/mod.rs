//! [`KnapsackSlice`].
//!
//! The specification fills a table of candidates times capacity, keeps a candidate only for a
//! strictly greater value (KNAP-9) and reads back from the last candidate to the first (KNAP-11).
//! So the choice has a candidate only if it has to: among the optimal sets those without the last
//! candidate go first, if there are any; among these those without the last but one; and so on. That
//! leaves one.
//!
//! Everything here rests on one law: *restrictions that the choice itself observes do not change
//! it*. It is still optimal and still goes first.
//!
//! | file | restriction |
//! |---|---|
//! | `reduce` | without candidates that earlier ones keep out |
//! | `search`, `bound` | with the candidates that all optimal sets have, without those that none has |
//! | `window` | with no more capacities for a candidate than optimal sets leave to it |
//!
//! What remains is up to the table: one run (`task`), row by row (`program`), block by block (`lane`), one
//! bit a cell (`table`), in parts if memory is short (`checkpoint`).

mod bound;
mod checkpoint;
mod lane;
mod program;
mod reduce;
mod search;
mod sweep;
mod table;
mod task;
mod window;

use std::cmp::Ordering;
use std::fmt;
use std::ops::{ControlFlow, RangeInclusive};

use self::reduce::Dominance;
use self::table::TooLarge;
use super::count::Counts;
use super::{
    BuiltinSlicer, GroupScore, PreparedChoice, Selection, Slicer, SweepVisitor, Unsorted,
    slice_by_selection,
};
use crate::{ContextBudget, ContextItem, ContextKind, CupelError, ScoredItem, ScoredRef};

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
/// # Cost
///
/// The specification's table has a cell for every candidate and bucket; above 50,000,000 cells it is
/// refused with [`CupelError::TableTooLarge`]. The choice is that of the table, but only cells that
/// can matter are calculated, and they are few: 10,000 candidates in 128,000 buckets take a fraction of a
/// millisecond with usual scores, and a few milliseconds with scores made to be difficult. So
/// the refusal can be lifted: [`memory_limit`](Self::memory_limit) accepts whatever can be solved
/// within so many bytes, [`cell_limit`](Self::cell_limit) a larger table.
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

/// What is accepted.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Limit {
    /// Problems whose whole table has at most so many cells.
    Cells(u64),
    /// Problems that can be solved within so many bytes.
    Memory(usize),
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
            limit: Limit::Cells(Self::DEFAULT_CELL_LIMIT),
        })
    }

    /// Buckets of 100 tokens (KNAP-1).
    pub fn with_default_bucket_size() -> Self {
        Self {
            bucket_size: Self::DEFAULT_BUCKET_SIZE,
            limit: Limit::Cells(Self::DEFAULT_CELL_LIMIT),
        }
    }

    /// Raises the number of table cells that is accepted; it is never lowered below the
    /// specification's 50,000,000. Replaces a memory limit.
    ///
    /// A larger table is refused with [`CupelError::TableOverLimit`].
    pub fn cell_limit(mut self, cells: u64) -> Self {
        self.limit = Limit::Cells(cells.max(Self::DEFAULT_CELL_LIMIT));
        self
    }

    /// Accepts tables of any size, as long as the choice can be found with so many bytes for tables.
    /// Replaces a cell limit.
    ///
    /// Usual problems need much less than a megabyte. The most difficult need some twenty bytes
    /// a bucket, and time for all cells: bits that do not fit the memory are calculated
    /// again, part by part. About a hundred bytes a candidate come on top of the limit. What
    /// cannot be solved is refused with [`CupelError::TableOverLimit`], which counts a bit as a cell.
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

    /// The tokens per bucket.
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

    /// The rows of the table that the choice can contain. A candidate that is worth nothing or larger
    /// than the whole capacity has none: no cell of it can be a strict improvement.
    fn rows(&self, ranked: &[ScoredRef<'_>], capacity: i64) -> Vec<Row> {
        let mut dominance = Dominance::new(capacity);
        let rows = ranked.iter().enumerate().map(|(rank, scored)| Row {
            rank,
            weight: buckets(scored.item.tokens(), self.bucket_size),
            value: value(scored.score),
        });
        rows.filter(|row| (1..=capacity).contains(&row.weight) && row.value > 0)
            .filter(|row| dominance.admits(row))
            .collect()
    }

    /// Refuses a table above the limit (KNAP-18).
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

    /// The bytes that tables may take. Within a cell limit they are what the cells need.
    fn memory(&self) -> usize {
        match self.limit {
            Limit::Cells(_) => usize::MAX,
            Limit::Memory(bytes) => bytes,
        }
    }

    fn refusal(&self, candidates: usize, capacity: i64, error: &TooLarge) -> CupelError {
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
        self.select_in(None, ranked, budget)
    }

    fn builtin(&self) -> Option<&dyn BuiltinSlicer> {
        Some(self)
    }

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
}

impl BuiltinSlicer for KnapsackSlice {
    fn select_in(
        &self,
        _partition: Option<&ContextKind>,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        if budget.target_tokens() <= 0 {
            return Ok(Selection::default());
        }
        let (free, candidates) = split(ranked);
        let capacity = budget.target_tokens() / self.bucket_size;
        let mut selection = Selection::keep(free);
        if candidates > 0 && capacity > 0 {
            self.check_cells(candidates, capacity)?;
            let rows = self.rows(ranked, capacity);
            let chosen = search::choose(rows, capacity, self.memory());
            selection.extend(chosen.map_err(|error| self.refusal(candidates, capacity, &error))?);
        }
        Ok(selection)
    }

    fn select_unsorted(&self, _list: &Unsorted<'_>, _budget: &ContextBudget) -> Option<Vec<usize>> {
        None
    }

    fn prepare<'a>(&'a self, _list: &Unsorted<'_>, _wanted: usize) -> Option<PreparedChoice<'a>> {
        None
    }

    fn sweep(
        &self,
        ranked: &[ScoredRef<'_>],
        targets: RangeInclusive<i64>,
        visitor: &mut dyn SweepVisitor,
    ) -> Option<ControlFlow<()>> {
        self.sweep_targets(ranked, targets, visitor)
    }

    fn least_targets(&self, _ranked: &[ScoredRef<'_>], _last: i64) -> Option<Vec<Option<i64>>> {
        None
    }

    fn group_score(&self) -> Option<GroupScore> {
        None
    }

    fn counts(&self) -> Option<&Counts> {
        None
    }
}

/// A candidate as a row of the table.
#[derive(Clone, Copy)]
struct Row {
    rank: usize,
    /// Positive, and no more than the capacity.
    weight: i64,
    /// Positive.
    value: i64,
}

/// What a score is worth: 10000 steps to the unit, never negative, NaN nothing (KNAP-6).
#[expect(
    clippy::cast_possible_truncation,
    reason = "large scores are saturated and NaN becomes zero (R009, R010); what is positive is rounded down"
)]
fn value(score: f64) -> i64 {
    ((score * 10_000.0) as i64).max(0)
}

/// Tokens in whole buckets, rounded up.
fn buckets(tokens: i64, bucket_size: i64) -> i64 {
    tokens / bucket_size + i64::from(tokens % bucket_size > 0)
}

/// A count that is not negative.
fn size(count: i64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// The ranks of free items, and the number of those that cost something.
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

/// The cells of a table of so many candidates.
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
