//! Upper bound by Lagrangian relaxation of the capacity constraint (Fisher 1981).
//!
//! The capacity becomes a price: a row costs `λ` per unit of weight. With rows `weight:value` 6:7, 5:5
//! and 4:4, a capacity of 10 and `λ = 1`:
//!
//! ```text
//! reduced costs   7 - 6 = 1   5 - 5 = 0   4 - 4 = 0
//! bound           1 * 10 + 1 = 11: no set within 10 has more
//! without 6:7     1 * 10 + 0 = 10: a set with a value of 11 contains 6:7
//! ```
//!
//! The last line is what fixes rows: the reduced cost says by how much the bound falls if the row is
//! decided the other way.

use super::Row;

/// A Lagrange multiplier of the capacity constraint, in fixed point.
///
/// For a multiplier `λ >= 0`, the reduced cost of a row is `value - λ * weight`. No set within a
/// capacity has a value above `λ * capacity` plus the sum of the positive reduced costs. The bound
/// is valid for every `λ >= 0`; the choice of `λ` only affects how tight it is.
#[derive(Clone, Copy)]
pub(super) struct Multiplier {
    pub(super) per_unit: i64,
    /// The number of fractional bits.
    shift: u32,
    /// An upper bound of `value / weight` over all rows. With a larger `λ` all reduced costs are negative,
    /// so the bound is `λ * capacity` and only grows.
    max_per_unit: i64,
}

impl Multiplier {
    /// Sums of values and `λ * capacity` stay below `2^SUM_BITS`. `windows` adds up to three such sums
    /// and subtracts others, so three bits and the sign of an `i64` are left for that; fewer bits
    /// would round multipliers more coarsely and widen the windows.
    const SUM_BITS: u32 = 60;

    /// Returns the multiplier with the least bound: `value / weight` of the break item.
    /// Returns `None` if the numbers are too large for fixed point.
    pub(super) fn with_least_bound(rows: &[Row], capacity: i64) -> Option<Self> {
        let total: i128 = rows.iter().map(|row| i128::from(row.value)).sum();
        let max_value = rows.iter().map(|row| row.value).max()?;
        let min_weight = rows.iter().map(|row| row.weight).min()?;
        let max_per_unit = i128::from(max_value / min_weight) + 1;
        // The largest number of any bound. It is shifted as far as it stays below `2^SUM_BITS`: an `i128`
        // with as many leading zeros as `unused` is below that.
        let largest = total.max(max_per_unit * i128::from(capacity));
        let unused = i128::BITS - Self::SUM_BITS;
        let shift = largest.leading_zeros().checked_sub(unused)?;
        // The bound is convex and piecewise linear in `λ`, with corners at the ratios of the rows; its
        // least corner is the ratio of the break item. Rounded up. Either rounding is valid, because every
        // `λ >= 0` gives a bound.
        let row = break_item(rows, capacity);
        Some(Self {
            per_unit: -(-row.value << shift).div_euclid(row.weight),
            shift,
            max_per_unit: i64::try_from(max_per_unit << shift).ok()?,
        })
    }

    /// Returns the multiplier changed by a step and clamped to its range.
    pub(super) fn offset(self, step: i64) -> Self {
        Self {
            per_unit: self
                .per_unit
                .saturating_add(step)
                .clamp(0, self.max_per_unit),
            ..self
        }
    }

    /// Returns `value - λ * weight` of a row, in fixed point. It does not overflow: the weight is at most the
    /// capacity, so the product is below `2^SUM_BITS`.
    pub(super) fn reduced_cost(self, row: &Row) -> i64 {
        (row.value << self.shift) - row.weight * self.per_unit
    }

    /// Returns an upper bound of the value of any set of the rows within the capacity, in fixed
    /// point.
    pub(super) fn bound(self, rows: &[Row], capacity: i64) -> i64 {
        let positive = rows.iter().map(|row| self.reduced_cost(row).max(0));
        self.per_unit * capacity + positive.sum::<i64>()
    }

    /// Converts a value to fixed point.
    pub(super) fn to_fixed(self, value: i64) -> i64 {
        value << self.shift
    }

    /// Converts from fixed point to a value, rounding down.
    pub(super) fn floor(self, fixed: i64) -> i64 {
        fixed >> self.shift
    }

    /// Converts from fixed point to a value, rounding up.
    pub(super) fn ceil(self, fixed: i64) -> i64 {
        -(-fixed >> self.shift)
    }
}

/// Returns the break item: the first that does not fit when rows are taken by descending
/// `value / weight`. Finds it by quickselect, in linear expected time (Balas and Zemel 1980).
///
/// The ratios are `f64`, which may order two nearly equal ones wrongly. A neighbor of the break item
/// gives a bound that is valid, too, and nearly as tight.
fn break_item(rows: &[Row], capacity: i64) -> &Row {
    let per_weight = |row: &Row| row.value as f64 / row.weight as f64;
    let mut rows: Vec<_> = rows.iter().map(|row| (per_weight(row), row)).collect();
    let mut rows = rows.as_mut_slice();
    let mut remaining = capacity;
    while rows.len() > 1 {
        let middle = rows.len() / 2;
        rows.select_nth_unstable_by(middle, |a, b| b.0.total_cmp(&a.0));
        // If the better half does not fit, it contains the break item. If it fits, it is taken as a whole,
        // and the break item is in the other half.
        let weights = rows[..middle].iter().map(|(_, row)| row.weight);
        let weight = weights.fold(0, i64::saturating_add);
        if weight > remaining {
            rows = &mut rows[..middle];
        } else {
            remaining -= weight;
            rows = &mut rows[middle..];
        }
    }
    rows[0].1
}

#[cfg(test)]
mod tests {
    use cupel_conformance::testing::Random;

    use super::*;

    #[test]
    fn the_multiplier_has_the_least_bound_and_leaves_room_for_sums() {
        let mut random = Random::new(1);
        let mut up_to = |bound: usize| i64::try_from(random.below(bound)).unwrap() + 1;
        for case in 0..300 {
            let most = [3, 40, 100_000][case % 3];
            let rows: Vec<Row> = (0..usize::try_from(up_to(12)).unwrap())
                .map(|rank| Row {
                    rank,
                    weight: up_to(most),
                    value: up_to(most * 7),
                })
                .collect();
            let capacity = up_to(most * 9);
            let least = Multiplier::with_least_bound(&rows, capacity).unwrap();
            let bound = least.bound(&rows, capacity);
            let largest = i128::from(least.max_per_unit) * i128::from(capacity);
            assert!(largest <= 1 << Multiplier::SUM_BITS, "case {case}");
            for row in &rows {
                // The multipliers of the rows are the corners of the bound, a convex function.
                let per_unit = -(-row.value << least.shift).div_euclid(row.weight);
                assert!(per_unit <= least.max_per_unit, "case {case}");
                let other = Multiplier { per_unit, ..least };
                // Multipliers are rounded up by one unit at most, for each unit of weight.
                let rounding = capacity + rows.iter().map(|row| row.weight).sum::<i64>();
                assert!(
                    bound <= other.bound(&rows, capacity) + rounding,
                    "case {case}"
                );
            }
        }
    }
}
