//! What a set can be worth at most, by a price on capacity.

use super::Row;

/// A price for a unit of capacity, in fixed point.
///
/// Let capacity be bought at a price. A row then gains its value less the price of its weight, and
/// no set within a capacity is worth more than the price of the capacity and all positive
/// gains together. That holds at every price that is not negative, so nothing depends on how well it
/// was found; some only bound better than others.
#[derive(Clone, Copy)]
pub(super) struct Price {
    pub(super) per_unit: i64,
    /// The bits behind the point.
    shift: u32,
    /// No row is worth more per unit.
    highest: i64,
}

impl Price {
    /// Sums of values and prices of capacities stay below so many bits; a few of them can be added.
    const SUM_BITS: u32 = 60;

    /// The price that bounds best: where capacity runs out when rows are taken by value per weight.
    /// None if the numbers are too large to calculate with.
    pub(super) fn with_least_bound(rows: &[Row], capacity: i64) -> Option<Self> {
        let total: i128 = rows.iter().map(|row| i128::from(row.value)).sum();
        let most = rows.iter().map(|row| row.value).max()?;
        let lightest = rows.iter().map(|row| row.weight).min()?;
        let highest = i128::from(most / lightest) + 1;
        let largest = total.max(highest * i128::from(capacity));
        let unused = i128::BITS - Self::SUM_BITS;
        let shift = largest.leading_zeros().checked_sub(unused)?;
        let row = break_row(rows, capacity);
        Some(Self {
            per_unit: -(-row.value << shift).div_euclid(row.weight),
            shift,
            highest: i64::try_from(highest << shift).ok()?,
        })
    }

    /// A price that is higher or lower by a step.
    pub(super) fn moved(self, step: i64) -> Self {
        Self {
            per_unit: self.per_unit.saturating_add(step).clamp(0, self.highest),
            ..self
        }
    }

    /// What a row gains at this price.
    pub(super) fn gain(self, row: &Row) -> i64 {
        (row.value << self.shift) - row.weight * self.per_unit
    }

    /// What no set of the rows within the capacity exceeds.
    pub(super) fn bound(self, rows: &[Row], capacity: i64) -> i64 {
        let gains = rows.iter().map(|row| self.gain(row).max(0));
        self.per_unit * capacity + gains.sum::<i64>()
    }

    /// A value in fixed point.
    pub(super) fn of_value(self, value: i64) -> i64 {
        value << self.shift
    }

    /// An amount in fixed point as a value, rounded down.
    pub(super) fn value_below(self, amount: i64) -> i64 {
        amount >> self.shift
    }

    /// An amount in fixed point as a value, rounded up.
    pub(super) fn value_above(self, amount: i64) -> i64 {
        -(-amount >> self.shift)
    }
}

/// The row at which capacity runs out when rows are taken by value per weight.
fn break_row(rows: &[Row], capacity: i64) -> &Row {
    let per_weight = |row: &Row| row.value as f64 / row.weight as f64;
    let mut rows: Vec<_> = rows.iter().map(|row| (per_weight(row), row)).collect();
    let mut rows = rows.as_mut_slice();
    let mut left = capacity;
    while rows.len() > 1 {
        let middle = rows.len() / 2;
        rows.select_nth_unstable_by(middle, |a, b| b.0.total_cmp(&a.0));
        let weights = rows[..middle].iter().map(|(_, row)| row.weight);
        let weight = weights.fold(0, i64::saturating_add);
        if weight > left {
            rows = &mut rows[..middle];
        } else {
            left -= weight;
            rows = &mut rows[middle..];
        }
    }
    rows[0].1
}
