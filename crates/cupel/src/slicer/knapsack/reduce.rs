//! Candidates that cannot be chosen, and numbers that need not be large.

use std::collections::BinaryHeap;

use super::Row;

/// Lets those rows pass that the choice may contain, as far as earlier rows tell.
///
/// Let `a` come before `b`, be worth no less and weigh no more. A set with `b` but without `a` is
/// never the choice: with `a` instead of `b` it is worth no less and does without the later row,
/// which goes first. So with `b` come all such `a`; and if they do not fit together, then `b` is
/// not chosen.
pub(super) struct Dominance {
    capacity: i64,
    /// The lightest of the earlier rows, as many as fit together.
    lightest: BinaryHeap<i64>,
    /// The capacity that they leave.
    room: i64,
    /// The weight up to which rows may pass; all lighter rows so far are among the lightest.
    heaviest: i64,
    last_value: i64,
}

impl Dominance {
    pub(super) fn new(capacity: i64) -> Self {
        Self {
            capacity,
            lightest: BinaryHeap::new(),
            room: capacity,
            heaviest: capacity,
            last_value: i64::MAX,
        }
    }

    /// Whether the next row may pass. Earlier rows count if they are worth no less: all of them in the
    /// order of the Sort stage, else those since the value last rose.
    pub(super) fn admits(&mut self, row: &Row) -> bool {
        if row.value > self.last_value {
            self.lightest.clear();
            self.room = self.capacity;
            self.heaviest = self.capacity;
        }
        self.last_value = row.value;
        if row.weight > self.heaviest {
            return false;
        }
        self.lightest.push(row.weight);
        self.room -= row.weight;
        while self.room < 0
            && let Some(heaviest) = self.lightest.pop()
        {
            self.room += heaviest;
            self.heaviest = heaviest - 1;
        }
        row.weight <= self.heaviest
    }
}

/// Divides weights and values by what they have in common, and brings down a value that exceeds
/// all smaller ones together, as that of infinite scores does. Which of two sets is worth more and
/// which of them fit stays as it is; but sums fit narrower lanes, and a bound rounded down to a whole
/// number is rounded down to a value that a set can have.
pub(super) fn scale(rows: &mut [Row], capacity: &mut i64) {
    let weight_step = common_divisor(rows.iter().map(|row| row.weight));
    let top = rows.iter().map(|row| row.value).max().unwrap_or(1);
    let smaller = || {
        rows.iter()
            .map(|row| row.value)
            .filter(|&value| value < top)
    };
    let mut value_step = common_divisor(smaller());
    let top_steps = match i64::try_from(smaller().map(i128::from).sum::<i128>()) {
        Ok(total) if total < top => total / value_step + 1,
        _ => {
            value_step = common_divisor([top, value_step].into_iter());
            top / value_step
        }
    };
    for row in rows {
        row.weight /= weight_step;
        row.value = if row.value == top {
            top_steps
        } else {
            row.value / value_step
        };
    }
    *capacity /= weight_step;
}

/// The greatest common divisor of positive numbers; 1 if there are none.
fn common_divisor(mut numbers: impl Iterator<Item = i64>) -> i64 {
    let mut divisor = numbers.next().unwrap_or(1);
    for mut number in numbers {
        if divisor == 1 {
            break;
        }
        while number != 0 {
            (divisor, number) = (number, divisor % number);
        }
    }
    divisor
}
