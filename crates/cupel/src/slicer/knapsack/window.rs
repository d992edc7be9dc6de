//! Prunes dynamic programming states by bounds (Morin and Marsten 1976).
//!
//! A capacity of 100, rows whose ratios fall from 2 to 0.5, and a known set with almost the value of the
//! bound: then the first half of the rows, which have the better ratios, is taken almost as a whole and
//! leaves little to choose. If all of it weighs 60, a set that leaves it only 20 has lost too much
//! value there, and one that leaves it 100 has given the worse rows nothing. The window is what lies
//! between, often some dozen of the 101 capacities.

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
/// A step of `gap / width` gives windows of about `width` capacities. The best width of a row is
/// unknown, so widths double from 64 on.
fn multipliers(multiplier: Multiplier, capacity: i64, gap: i64) -> Vec<Multiplier> {
    // Cells are computed in whole blocks of 128 (`i16`) or fewer: a narrower window saves next to nothing.
    const MIN_WIDTH: i64 = 64;
    let mut multipliers = vec![multiplier];
    let mut width = MIN_WIDTH;
    // A window of a quarter of the capacity saves little, and a step below 1 is none.
    while width < capacity / 4 && width <= gap {
        let step = gap / width;
        multipliers.extend([multiplier.offset(step), multiplier.offset(-step)]);
        width *= 2;
    }
    multipliers
}
