//! Reduction: dominance between rows, and scaling of weights and values (Kellerer, Pferschy and
//! Pisinger 2004).

use std::collections::BinaryHeap;

use super::Row;

/// Removes rows that the solution cannot contain because of the rows that dominate them.
///
/// A row `a` dominates a later row `b` if its value is no less and its weight no more. A set with
/// `b` but without `a` is never the solution: with `a` instead of `b` its value is no
/// less and it is lexicographically smaller. So a solution with `b` contains all rows that dominate
/// `b`. If they do not fit together with `b`, then `b` is removed.
///
/// With a capacity of 10 and rows of one value, of weights 4, 3, 5 and 2 in this order:
///
/// ```text
/// 4, 3   admitted: 7 fit
/// 5      4 and 3 dominate it, and 4 + 3 + 5 > 10: removed
/// 2      nothing dominates it: admitted
/// ```
pub(super) struct Dominance {
    capacity: i64,
    /// A max-heap of the weights of the lightest earlier rows, as many as fit together.
    lightest: BinaryHeap<i64>,
    /// The capacity minus the weights in `lightest`.
    remaining: i64,
    /// The largest weight that is admitted. All earlier rows up to it are in `lightest`. It never grows
    /// while values fall: every row that dominates a row also dominates a later and heavier one.
    max_weight: i64,
    last_value: i64,
}

impl Dominance {
    pub(super) fn new(capacity: i64) -> Self {
        Self {
            capacity,
            lightest: BinaryHeap::new(),
            remaining: capacity,
            max_weight: capacity,
            last_value: i64::MAX,
        }
    }

    /// Returns `true` if the solution may contain the next row. Considers the earlier rows since the
    /// value last increased. In the order of the Sort stage it never increases, so these are all of them.
    pub(super) fn admits(&mut self, row: &Row) -> bool {
        // Rows before a greater value do not dominate it. The list is sorted by score, so this happens
        // only in lists that callers of `slice` made.
        if row.value > self.last_value {
            self.lightest.clear();
            self.remaining = self.capacity;
            self.max_weight = self.capacity;
        }
        self.last_value = row.value;
        if row.weight > self.max_weight {
            return false;
        }
        self.lightest.push(row.weight);
        self.remaining -= row.weight;
        // Keep as many of the lightest as fit together. A later row as heavy as the first that does not fit is
        // dominated by all rows in `lightest` and does not fit beside them. One `pop` is enough: the
        // heaviest is at least the weight that was just pushed.
        while self.remaining < 0
            && let Some(heaviest) = self.lightest.pop()
        {
            self.remaining += heaviest;
            self.max_weight = heaviest - 1;
        }
        row.weight <= self.max_weight
    }
}

/// Divides weights and values by their greatest common divisors. Lowers the top value if it exceeds the
/// sum of all smaller ones.
///
/// The order of sets by value and the sets that fit do not change. Sums then fit narrower lanes, and a
/// bound that is rounded down to an integer is tighter. With a capacity of 100:
///
/// ```text
/// weight:value   20:9000  30:6000  40:i64::MAX     an infinite score has the largest value
/// weights        divided by 10: 2, 3, 4; the capacity becomes 10
/// values         the smaller ones divided by 3000: 3, 2
/// top value      any value above 3 + 2 ranks sets in the same way: 6
/// ```
pub(super) fn scale(rows: &mut [Row], capacity: &mut i64) {
    let weight_step = gcd(rows.iter().map(|row| row.weight));
    let top = rows.iter().map(|row| row.value).max().unwrap_or(1);
    let smaller = || {
        rows.iter()
            .map(|row| row.value)
            .filter(|&value| value < top)
    };
    // Only the smaller values need the divisor: the top value is chosen anew if it exceeds their sum.
    let mut value_step = gcd(smaller());
    let top_steps = match i64::try_from(smaller().map(i128::from).sum::<i128>()) {
        Ok(total) if total < top => total / value_step + 1,
        _ => {
            value_step = gcd([top, value_step].into_iter());
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

/// Returns the greatest common divisor of positive values, or 1 if there are none.
fn gcd(mut values: impl Iterator<Item = i64>) -> i64 {
    let mut divisor = values.next().unwrap_or(1);
    for mut number in values {
        if divisor == 1 {
            break;
        }
        while number != 0 {
            (divisor, number) = (number, divisor % number);
        }
    }
    divisor
}
