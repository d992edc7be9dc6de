//! Prunes dynamic programming states by bounds (Morin and Marsten 1976).
//!
//! Most capacities cannot remain for the first rows in a good solution: with too little, the first rows
//! lose more than the others can gain, and with too much the others do. An example with a capacity of 10, the
//! rows `weight:value` 3:6, 3:6, 4:4 and 4:4: which capacities `c` can sets with a value of at least 15 leave
//! to the first two rows?
//!
//! ```text
//! prefix 3:6 3:6, λ = 2      reduced costs 0, 0        it has at most 2c
//! suffix 4:4 4:4, λ = 1      reduced costs 0, 0        it has at most 10 - c
//!                            2c + 10 - c >= 15         c >= 5
//! prefix 3:6 3:6, λ = 1/2    reduced costs 4.5, 4.5    it has at most c/2 + 9
//! suffix 4:4 4:4, λ = 1                                it has at most 10 - c
//!                            c/2 + 9 + 10 - c >= 15    c <= 8
//! ```
//!
//! The window is `5..=8`, 4 of 11 capacities.

use super::bound::Multiplier;
use super::{Row, size};

/// The capacities that can remain for a row and the rows before it. Both ends are inclusive.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Window {
    pub(super) fn only(capacity: usize) -> Self {
        Self {
            from: capacity,
            to: capacity,
        }
    }

    pub(super) fn up_to(capacity: usize) -> Self {
        Self {
            from: 0,
            to: capacity,
        }
    }
}

/// Returns, per row, the capacities that a set with at least `min_value` can leave to the prefix that
/// ends with this row. Returns `None` if there is no such set.
///
/// Let a set leave capacity `c` to the prefix. Its value is at most the bound of the prefix within
/// `c` plus the bound of the suffix within the rest, each with its own multiplier. If the prefix has
/// the larger multiplier, the sum grows with `c`, which gives a lower end of the window. If the
/// suffix has it, the sum falls with `c`, which gives an upper end.
pub(super) fn windows(
    rows: &[Row],
    capacity: i64,
    multiplier: Multiplier,
    min_value: i64,
) -> Option<Vec<Window>> {
    let min_value = multiplier.to_fixed(min_value);
    let gap = multiplier.bound(rows, capacity) - min_value;
    let multipliers = multipliers(multiplier, capacity, gap);
    // Per multiplier, the sum of the positive reduced costs of the prefix, and that of the suffix plus
    // `λ * capacity`. Each row moves from the suffix to the prefix.
    let mut prefix: Vec<i64> = vec![0; multipliers.len()];
    let mut suffix: Vec<i64> = multipliers
        .iter()
        .map(|multiplier| multiplier.bound(rows, capacity))
        .collect();
    let mut windows = Vec::with_capacity(rows.len());
    for row in rows {
        for (index, multiplier) in multipliers.iter().enumerate() {
            let positive = multiplier.reduced_cost(row).max(0);
            prefix[index] += positive;
            suffix[index] -= positive;
        }
        let (mut from, mut to) = (0, capacity);
        // `(λ_prefix - λ_suffix) * c >= missing`, divided by the difference, which may be negative. A lower
        // end is rounded up and an upper end down.
        let mut narrow = |of_prefix: usize, of_suffix: usize| {
            let missing = min_value - prefix[of_prefix] - suffix[of_suffix];
            match multipliers[of_prefix].per_unit - multipliers[of_suffix].per_unit {
                0 => {}
                slope @ 1.. => from = from.max(-(-missing).div_euclid(slope)),
                slope => to = to.min((-missing).div_euclid(-slope)),
            }
        };
        for larger in (1..multipliers.len()).step_by(2) {
            let smaller = larger + 1;
            for (a, b) in [(larger, smaller), (larger, 0), (0, smaller)] {
                narrow(a, b);
                narrow(b, a);
            }
        }
        if from > to {
            return None;
        }
        windows.push(Window {
            from: size(from),
            to: size(to),
        });
    }
    Some(windows)
}

/// Returns a multiplier, followed by pairs of a larger and a smaller one.
///
/// With multipliers that differ by a step, each unit of capacity on the wrong side costs a step of the gap.
/// So a step of `gap / width` gives windows of about `width` capacities. A larger step also loosens the
/// bounds, by an amount that differs from row to row, so the best step depends on the row. Widths double from
/// 64 on, and each row gets the intersection of all windows.
fn multipliers(multiplier: Multiplier, capacity: i64, gap: i64) -> Vec<Multiplier> {
    // Cells are computed in whole blocks of 128 (`i16`) or more: a narrower window saves next to nothing.
    const MIN_WIDTH: i64 = 64;
    let mut multipliers = vec![multiplier];
    let mut width = MIN_WIDTH;
    // A window of a quarter of the capacity saves little. Beyond the gap, the step would be 0.
    while width < capacity / 4 && width <= gap {
        let step = gap / width;
        multipliers.extend([multiplier.offset(step), multiplier.offset(-step)]);
        width *= 2;
    }
    multipliers
}
