//! One run of the dynamic program: forward pass and traceback.

use super::Row;
use super::lane::{Lane, with_lane};
use super::program::Program;
use super::table::{KeepTable, TooLarge};
use super::window::Window;

/// A 0/1 knapsack problem with bounds on its optimum.
pub(super) struct Subproblem<'a> {
    pub(super) rows: &'a [Row],
    /// Per row, the capacities that a set with at least `min_value` can leave to it and the rows before it.
    pub(super) windows: &'a [Window],
    pub(super) capacity: usize,
    /// The minimum value of a solution, which may be assumed wrongly.
    pub(super) min_value: i64,
    /// An upper bound of all values, if known.
    pub(super) max_value: Option<i64>,
    /// The memory limit in bytes.
    pub(super) memory: usize,
}

/// The result of a [`Subproblem`].
pub(super) enum Outcome {
    /// The rows of the solution, last row first.
    Solved(Vec<usize>),
    /// No set has the minimum value. Some set has this value; it may not be the best, because the windows
    /// hold for sets with the minimum value only.
    BelowMinimum(i64),
}

impl Subproblem<'_> {
    pub(super) fn solve(&self) -> Result<Outcome, TooLarge> {
        with_lane!(self.rows, V => self.solve_with::<V>())
    }

    fn solve_with<V: Lane>(&self) -> Result<Outcome, TooLarge> {
        let (mut program, memory) = Program::<V>::new(
            self.rows,
            self.windows,
            self.capacity,
            self.max_value,
            self.memory,
        )?;
        let spans = program.spans(Window::only(self.capacity));
        let mut table = KeepTable::new(&spans, memory)?;
        for (row, span) in spans.iter().enumerate() {
            program.apply_row(row, span, table.push_row(span));
            // No value exceeds the upper bound, so a later row does not improve it strictly and is not taken.
            if program.is_optimal(self.capacity) {
                break;
            }
        }
        let value = program.best_at(self.capacity);
        // Only the full table has larger values. It has the minimum 0 and no upper bound.
        let value = value.try_into().unwrap_or(i64::MAX);
        if value < self.min_value {
            return Ok(Outcome::BelowMinimum(value));
        }
        let mut chosen = Vec::new();
        program.traceback(&table, self.capacity, |row| chosen.push(row));
        Ok(Outcome::Solved(chosen))
    }
}
