//! Scaling of weights and values (Kellerer, Pferschy and Pisinger 2004).

use super::Row;

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
