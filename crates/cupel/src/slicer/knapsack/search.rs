//! The search for the choice: first where it is likely to be, then wider.

use super::bound::Price;
use super::table::TooLarge;
use super::task::{Outcome, Task};
use super::window::{Window, windows};
use super::{Row, reduce, size};

/// The ranks of the rows that the specification's table chooses, last row first.
pub(super) fn choose(
    mut rows: Vec<Row>,
    mut capacity: i64,
    memory: usize,
) -> Result<Vec<usize>, TooLarge> {
    let weight: i128 = rows.iter().map(|row| i128::from(row.weight)).sum();
    if weight <= i128::from(capacity) {
        return Ok(rows.iter().rev().map(|row| row.rank).collect());
    }
    reduce::scale(&mut rows, &mut capacity);
    match Price::with_least_bound(&rows, capacity) {
        Some(price) => Search::new(&rows, capacity, price, memory).widen(),
        None => choose_from_all(&rows, capacity, memory),
    }
}

/// The choice by the whole table, for values so large that there are no bounds.
fn choose_from_all(rows: &[Row], capacity: i64, memory: usize) -> Result<Vec<usize>, TooLarge> {
    let task = Task {
        rows,
        windows: &vec![Window::up_to(size(capacity)); rows.len()],
        capacity: size(capacity),
        least: 0,
        most: None,
        memory,
    };
    match task.solve()? {
        Outcome::Chosen(chosen) => Ok(chosen.into_iter().map(|row| rows[row].rank).collect()),
        Outcome::Short(_) => unreachable!("the empty set is worth what was asked for"),
    }
}

struct Search<'a> {
    rows: &'a [Row],
    capacity: i64,
    price: Price,
    bound: i64,
    /// The bound in whole values: no set is worth more.
    most: i64,
    memory: usize,
}

/// The rows that an assumption leaves open, and what the others make of the problem.
struct Part {
    open: Vec<Row>,
    /// What the settled rows leave.
    capacity: i64,
    /// What the settled rows are worth.
    value: i64,
    /// By how much the bound exceeds the assumption.
    spare: i64,
}

impl<'a> Search<'a> {
    /// The rows that the first assumption leaves open, at most: enough for most problems.
    const FIRST_OPEN: usize = 32;

    /// The rows beyond the first that may reach a value, when trying to reach it early.
    const FIRST_BEYOND: usize = 16;

    /// By how much to go on if that was not enough.
    const GROWTH: usize = 4;

    fn new(rows: &'a [Row], capacity: i64, price: Price, memory: usize) -> Self {
        let bound = price.bound(rows, capacity);
        Self {
            rows,
            capacity,
            price,
            bound,
            most: price.value_below(bound),
            memory,
        }
    }

    /// Assumes that some set is worth so much that few rows are left open, then less and less until
    /// it is true.
    fn widen(&self) -> Result<Vec<usize>, TooLarge> {
        let gains = self.rows.iter().map(|row| self.price.gain(row));
        let mut sizes: Vec<i64> = gains.map(i64::abs).collect();
        let mut open = Self::FIRST_OPEN.min(sizes.len() / Self::GROWTH);
        let mut least = self.most + 1;
        let mut found = 0;
        loop {
            let assumed = if open < sizes.len() {
                let (_, size, _) = sizes.select_nth_unstable(open);
                self.price.value_above(self.bound - *size)
            } else {
                0
            };
            // What was found is true, and the more is assumed the better.
            least = assumed.min(least - 1).max(found);
            let part = self.part(least);
            match self.decide(&part, least)? {
                Outcome::Chosen(chosen) => return Ok(self.ranks(&part, &chosen)),
                Outcome::Short(value) => found = found.max(value),
            }
            open = Self::GROWTH * (1 + part.open.len().max(open));
        }
    }

    /// What is open if some set is worth at least `least`.
    ///
    /// Then all optimal sets are. A row that gains more than the bound has to spare is in all of them,
    /// for without it the bound is too low; a row that loses more is in none of them. With that
    /// settled, the choice is that among the other rows.
    fn part(&self, least: i64) -> Part {
        let mut part = Part {
            open: Vec::new(),
            capacity: self.capacity,
            value: 0,
            spare: self.bound - self.price.of_value(least),
        };
        for row in self.rows {
            let gain = self.price.gain(row);
            if gain > part.spare {
                part.capacity -= row.weight;
                part.value += row.value;
            } else if gain >= -part.spare {
                part.open.push(*row);
            }
        }
        part
    }

    /// The ranks of the settled rows and of those chosen among the open ones.
    fn ranks(&self, part: &Part, chosen: &[usize]) -> Vec<usize> {
        let mut chosen = chosen.iter().map(|&row| part.open[row].rank).peekable();
        let is_taken = |row: &&Row| {
            self.price.gain(row) > part.spare || chosen.next_if_eq(&row.rank).is_some()
        };
        let taken = self.rows.iter().rev().filter(is_taken);
        taken.map(|row| row.rank).collect()
    }

    /// The choice among the open rows if some set is worth at least `least`. If not, then a set is
    /// found that is worth less.
    fn decide(&self, part: &Part, least: i64) -> Result<Outcome, TooLarge> {
        if part.capacity < 0 {
            return Ok(Outcome::Short(0));
        }
        let (least, most) = (least - part.value, self.most - part.value);
        let Some(windows) = windows(&part.open, part.capacity, self.price, least) else {
            return Ok(Outcome::Short(part.value));
        };
        if least == most
            && let Some(chosen) = self.decide_early(part, &windows, most)?
        {
            return Ok(Outcome::Chosen(chosen));
        }
        let task = self.task(&part.open, &windows, part.capacity, least, most);
        Ok(match task.solve()? {
            Outcome::Short(value) => Outcome::Short(part.value + value),
            chosen @ Outcome::Chosen(_) => chosen,
        })
    }

    /// Tries to reach `most` with the first of the open rows. If that works, then later rows are not
    /// chosen, as sets without them go first; and with fewer rows behind them, the windows of
    /// the first are narrower.
    fn decide_early(
        &self,
        part: &Part,
        windows: &[Window],
        most: i64,
    ) -> Result<Option<Vec<usize>>, TooLarge> {
        let Part { open, capacity, .. } = part;
        let mut value = 0;
        let may_reach = |(row, window): (&Row, &Window)| {
            value += row.value;
            value >= most && window.to >= size(*capacity)
        };
        let first = open.iter().zip(windows).position(may_reach);
        let first = first.unwrap_or(open.len());
        let mut beyond = Self::FIRST_BEYOND;
        // With nearly all rows there is little to gain.
        while first + beyond < open.len() / 4 * 3 {
            let rows = &open[..first + beyond];
            if let Some(windows) = self::windows(rows, *capacity, self.price, most) {
                let task = self.task(rows, &windows, *capacity, most, most);
                if let Outcome::Chosen(chosen) = task.solve()? {
                    return Ok(Some(chosen));
                }
            }
            beyond *= Self::GROWTH;
        }
        Ok(None)
    }

    fn task<'t>(
        &self,
        rows: &'t [Row],
        windows: &'t [Window],
        capacity: i64,
        least: i64,
        most: i64,
    ) -> Task<'t> {
        Task {
            rows,
            windows,
            capacity: size(capacity),
            least,
            most: Some(most),
            memory: self.memory,
        }
    }
}
