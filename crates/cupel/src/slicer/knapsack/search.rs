//! Solves the 0/1 knapsack with an expanding core (Balas and Zemel 1980): rows with a large reduced cost are
//! fixed, the dynamic program decides the others.
//!
//! The core are the rows whose reduced cost is at most the gap between the upper bound and a value that the
//! optimum is assumed to have at least. An example with an upper bound of 20 and 8 rows, whose reduced costs
//! are 9, 4, 2, 1, 0, -1, -3 and -8. The first core has about 8 / 4 = 2 rows:
//!
//! ```text
//! |cost| in ascending order        0 1 1 2 3 4 8 9; the one at index 2 is 1
//! assume an optimum of 20 - 1      the gap is 1: 9, 4 and 2 are in, -3 and -8 are out, 3 rows remain
//! the program finds 17 at best     wrong: but a set with 17 exists, so the gap is at most 3
//! assume an optimum of 17          9 and 4 are in, -8 is out, 5 rows remain; 17 is the optimum
//! ```
//!
//! A wrong assumption costs one small program. Most first ones hold.

use super::bound::Multiplier;
use super::scale::scale;
use super::subproblem::{Outcome, Subproblem};
use super::table::TooLarge;
use super::window::{Window, windows};
use super::{Row, size};

/// Returns the ranks of the rows in the solution, last row first.
pub(super) fn solve(
    mut rows: Vec<Row>,
    mut capacity: i64,
    memory: usize,
) -> Result<Vec<usize>, TooLarge> {
    let weight: i128 = rows.iter().map(|row| i128::from(row.weight)).sum();
    if weight <= i128::from(capacity) {
        return Ok(rows.iter().rev().map(|row| row.rank).collect());
    }
    scale(&mut rows, &mut capacity);
    match Multiplier::with_least_bound(&rows, capacity) {
        // Fixed point leaves room for all sums; otherwise there is no bound, and the table is full.
        Some(multiplier) => CoreSearch::new(&rows, capacity, multiplier, memory).run(),
        None => solve_full_table(&rows, capacity, memory),
    }
}

/// Solves the full table, for values too large for a bound.
fn solve_full_table(rows: &[Row], capacity: i64, memory: usize) -> Result<Vec<usize>, TooLarge> {
    let subproblem = Subproblem {
        rows,
        windows: &vec![Window::up_to(size(capacity)); rows.len()],
        capacity: size(capacity),
        min_value: 0,
        max_value: None,
        memory,
    };
    match subproblem.solve()? {
        Outcome::Solved(chosen) => Ok(chosen.into_iter().map(|row| rows[row].rank).collect()),
        Outcome::BelowMinimum(_) => unreachable!("the empty set has the minimum value 0"),
    }
}

struct CoreSearch<'a> {
    rows: &'a [Row],
    capacity: i64,
    multiplier: Multiplier,
    /// The upper bound of all values, in fixed point.
    bound: i64,
    /// The upper bound, rounded down to a value.
    max_value: i64,
    memory: usize,
}

/// The rows that are not fixed, and the problem that remains for them.
struct Core {
    rows: Vec<Row>,
    /// The capacity without the rows fixed to 1.
    capacity: i64,
    /// The total value of the rows fixed to 1.
    fixed_value: i64,
    /// The upper bound minus the assumed minimum value, in fixed point.
    gap: i64,
}

impl<'a> CoreSearch<'a> {
    /// The maximum size of the first core. Enough for most problems: unless scores are correlated with
    /// the tokens, a few rows around the break item decide (Pisinger 1999).
    const FIRST_CORE: usize = 32;

    /// The growth factor of the core. The cost of the program grows about with the square of the core, so
    /// the failed attempts together (`1/16 + 1/256 + ...`) cost less than the last one.
    const GROWTH: usize = 4;

    fn new(rows: &'a [Row], capacity: i64, multiplier: Multiplier, memory: usize) -> Self {
        let bound = multiplier.bound(rows, capacity);
        Self {
            rows,
            capacity,
            multiplier,
            bound,
            max_value: multiplier.floor(bound),
            memory,
        }
    }

    /// Assumes a minimum value of the optimum that leaves a small core. Lowers it, which expands the
    /// core, until a set reaches it. This ends, because the minimum is lowered each time: at 0 the empty set
    /// reaches it.
    fn run(&self) -> Result<Vec<usize>, TooLarge> {
        let costs = self
            .rows
            .iter()
            .map(|row| self.multiplier.reduced_cost(row));
        let mut costs: Vec<i64> = costs.map(i64::abs).collect();
        let mut core_size = Self::FIRST_CORE.min(costs.len() / Self::GROWTH);
        let mut min_value = self.max_value + 1;
        let mut incumbent_value = 0;
        loop {
            // With the minimum `bound - cost`, the gap is this cost, and the core has the rows up to it.
            let assumed = if core_size < costs.len() {
                let (_, cost, _) = costs.select_nth_unstable(core_size);
                self.multiplier.ceil(self.bound - *cost)
            } else {
                0
            };
            // A set with the incumbent's value exists, and a higher minimum leaves a smaller core.
            min_value = assumed.min(min_value - 1).max(incumbent_value);
            let core = self.core(min_value);
            match self.solve_core(&core, min_value)? {
                Outcome::Solved(chosen) => return Ok(self.ranks(&core, &chosen)),
                Outcome::BelowMinimum(value) => incumbent_value = incumbent_value.max(value),
            }
            core_size = Self::GROWTH * (1 + core.rows.len().max(core_size));
        }
    }

    /// Fixes rows by reduced cost (Ingargiola and Korsh 1973), if the optimum is at least
    /// `min_value`.
    ///
    /// A row whose reduced cost exceeds the gap is in every optimal set: without it the bound is
    /// below `min_value`. A row whose reduced cost is below the negative gap is in none. Both hold
    /// for all optimal sets, so fixing these rows does not change the solution.
    fn core(&self, min_value: i64) -> Core {
        let mut core = Core {
            rows: Vec::new(),
            capacity: self.capacity,
            fixed_value: 0,
            gap: self.bound - self.multiplier.to_fixed(min_value),
        };
        for row in self.rows {
            let cost = self.multiplier.reduced_cost(row);
            if cost > core.gap {
                core.capacity -= row.weight;
                core.fixed_value += row.value;
            } else if cost >= -core.gap {
                core.rows.push(*row);
            }
        }
        core
    }

    /// Returns the ranks of the rows fixed to 1 and of those chosen in the core, last row first.
    fn ranks(&self, core: &Core, chosen: &[usize]) -> Vec<usize> {
        let mut chosen = chosen.iter().map(|&row| core.rows[row].rank).peekable();
        let is_taken = |row: &&Row| {
            self.multiplier.reduced_cost(row) > core.gap || chosen.next_if_eq(&row.rank).is_some()
        };
        let taken = self.rows.iter().rev().filter(is_taken);
        taken.map(|row| row.rank).collect()
    }

    /// Solves the core if some set has at least `min_value`. Otherwise returns the value of a set
    /// below it.
    fn solve_core(&self, core: &Core, min_value: i64) -> Result<Outcome, TooLarge> {
        // The fixed rows do not fit, so the assumption is wrong. Only the empty set is known.
        if core.capacity < 0 {
            return Ok(Outcome::BelowMinimum(0));
        }
        let min_value = min_value - core.fixed_value;
        let max_value = self.max_value - core.fixed_value;
        // Without windows no set has the minimum. The fixed rows fit, so they are a set.
        let Some(windows) = windows(&core.rows, core.capacity, self.multiplier, min_value) else {
            return Ok(Outcome::BelowMinimum(core.fixed_value));
        };
        let subproblem = Subproblem {
            rows: &core.rows,
            windows: &windows,
            capacity: size(core.capacity),
            min_value,
            max_value: Some(max_value),
            memory: self.memory,
        };
        Ok(match subproblem.solve()? {
            Outcome::BelowMinimum(value) => Outcome::BelowMinimum(core.fixed_value + value),
            solved @ Outcome::Solved(_) => solved,
        })
    }
}
