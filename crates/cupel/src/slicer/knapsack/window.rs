//! Which capacities the choice can leave to the first rows.

use super::bound::Price;
use super::{Row, size};

/// The capacities that may be left to a row and those before it.
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

/// For every row the capacities that sets worth at least `least` can leave to it and those before it;
/// nothing if there can be no such set.
///
/// A set that leaves the first rows a capacity `c` is worth no more than the bound of the first
/// rows within `c` and that of the other rows within the rest, each at a price of its own. At
/// a higher price for the first rows that grows with `c`, so it is too low up to some `c`; at
/// a higher price for the others it is too low from some `c` on.
pub(super) fn windows(
    rows: &[Row],
    capacity: i64,
    price: Price,
    least: i64,
) -> Option<Vec<Window>> {
    let least = price.of_value(least);
    let prices = prices(price, capacity, price.bound(rows, capacity) - least);
    let mut before: Vec<i64> = vec![0; prices.len()];
    let mut after: Vec<i64> = prices
        .iter()
        .map(|price| price.bound(rows, capacity))
        .collect();
    let mut windows = Vec::with_capacity(rows.len());
    for row in rows {
        for (index, price) in prices.iter().enumerate() {
            let gain = price.gain(row).max(0);
            before[index] += gain;
            after[index] -= gain;
        }
        let (mut from, mut to) = (0, capacity);
        let mut narrow = |first: usize, other: usize| {
            let missing = least - before[first] - after[other];
            match prices[first].per_unit - prices[other].per_unit {
                0 => {}
                more @ 1.. => from = from.max(-(-missing).div_euclid(more)),
                less => to = to.min((-missing).div_euclid(-less)),
            }
        };
        for higher in (1..prices.len()).step_by(2) {
            let lower = higher + 1;
            for (a, b) in [(higher, lower), (higher, 0), (0, lower)] {
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

/// A price, and pairs above and below it. If the bound is higher than what is asked for by `spare`, a
/// step of `spare / width` in price makes windows of about that width; which width a row can have
/// is not known.
fn prices(price: Price, capacity: i64, spare: i64) -> Vec<Price> {
    const NARROWEST: i64 = 64;
    let mut prices = vec![price];
    let mut width = NARROWEST;
    while width < capacity / 4 && width <= spare {
        let step = spare / width;
        prices.extend([price.moved(step), price.moved(-step)]);
        width *= 2;
    }
    prices
}
