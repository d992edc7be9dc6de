//! One run of the dynamic program: through the rows and back.

use super::lane::{Lane, with_lane};
use super::program::Program;
use super::table::TooLarge;
use super::window::Window;
use super::{Row, checkpoint};

pub(super) struct Task<'a> {
    pub(super) rows: &'a [Row],
    /// The capacities that an optimal set can leave to each row and those before it.
    pub(super) windows: &'a [Window],
    pub(super) capacity: usize,
    /// What a set has to be worth to be of interest.
    pub(super) least: i64,
    /// What no set exceeds, if known.
    pub(super) most: Option<i64>,
    /// The bytes that may be used.
    pub(super) memory: usize,
}

/// What came of it.
pub(super) enum Outcome {
    /// The choice, last row first.
    Chosen(Vec<usize>),
    /// No set is worth what was asked for; some set is worth this.
    Short(i64),
}

impl Task<'_> {
    pub(super) fn solve(&self) -> Result<Outcome, TooLarge> {
        with_lane!(self.rows, V => self.solve_with::<V>())
    }

    fn solve_with<V: Lane>(&self) -> Result<Outcome, TooLarge> {
        let (mut program, memory) = Program::<V>::new(
            self.rows,
            self.windows,
            self.capacity,
            self.most,
            self.memory,
        )?;
        let rows = 0..self.rows.len();
        let record = checkpoint::forward(&mut program, rows, self.capacity, memory)?;
        let value = program.best_at(self.capacity);
        let value = value.try_into().unwrap_or(i64::MAX);
        if value < self.least {
            return Ok(Outcome::Short(value));
        }
        let mut chosen = Vec::new();
        checkpoint::back(&mut program, record, self.capacity, memory, &mut chosen)?;
        Ok(Outcome::Chosen(chosen))
    }
}
