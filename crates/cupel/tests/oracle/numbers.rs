//! Number rules that several procedures share.

use std::cmp::Ordering;

/// `COMPARE-DESCENDING`: the higher number first, NaN after every number (R009),
/// the two zeros equal (R011).
pub(super) fn compare_descending(a: f64, b: f64) -> Ordering {
    if a.is_nan() || b.is_nan() {
        a.is_nan().cmp(&b.is_nan())
    } else if a > b {
        Ordering::Less
    } else if a < b {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

/// The positions of `values`, highest value first, equal values by position.
pub(super) fn descending_positions(values: &[f64]) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..values.len()).collect();
    positions.sort_by(|&a, &b| compare_descending(values[a], values[b]).then(a.cmp(&b)));
    positions
}

/// `floor` as an integer; NaN is 0, and what no integer can hold is the nearest one.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the cast saturates, which is the documented answer"
)]
pub(super) fn floor(value: f64) -> i128 {
    value.floor() as i128
}

/// The 64-bit integer nearest to `value`.
pub(super) fn saturate(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

/// `floor(factor * part / whole)` in exact integers (R068), for `factor >= 0` and `whole > 0`.
///
/// A quotient beyond 127 bits becomes the nearest integer that fits.
pub(super) fn floor_share(factor: i128, part: i128, whole: i128) -> i128 {
    let (quotient, remainder) = multiply_divide(
        factor.unsigned_abs(),
        part.unsigned_abs(),
        whole.unsigned_abs(),
    );
    let magnitude = |value: u128| i128::try_from(value).unwrap_or(i128::MAX);
    if part >= 0 {
        magnitude(quotient)
    } else if remainder == 0 {
        -magnitude(quotient)
    } else {
        -magnitude(quotient.saturating_add(1))
    }
}

/// Quotient and remainder of `a * b / divisor` without ever forming the product: the bits of
/// `a` are taken from the highest to the lowest, and what they stand for is kept divided.
///
/// The divisor lies below 2^127, so doubling a remainder cannot overflow.
fn multiply_divide(a: u128, b: u128, divisor: u128) -> (u128, u128) {
    let mut quotient: u128 = 0;
    let mut remainder: u128 = 0;
    for bit in (0..u128::BITS).rev() {
        quotient = quotient.saturating_mul(2);
        remainder *= 2;
        if remainder >= divisor {
            quotient = quotient.saturating_add(1);
            remainder -= divisor;
        }
        if (a >> bit) & 1 == 1 {
            quotient = quotient.saturating_add(b / divisor);
            remainder += b % divisor;
            if remainder >= divisor {
                quotient = quotient.saturating_add(1);
                remainder -= divisor;
            }
        }
    }
    (quotient, remainder)
}
