//! Optional numbers in eight bytes, with two sentinels, for the inline fields of an item.

use chrono::{DateTime, Utc};

/// The sentinel for no number.
pub(crate) const ABSENT: i64 = i64::MAX;
/// The sentinel for a number that does not fit and is read from behind the handle. Numbers that fit are
/// less.
pub(crate) const OUT_OF_LINE: i64 = i64::MAX - 1;

/// Returns the number, or its sentinel.
pub(super) fn inline(number: Option<i64>) -> i64 {
    number.map_or(ABSENT, |number| number.min(OUT_OF_LINE))
}

/// Returns nanoseconds since 1970, which order as the times do, or a sentinel. Times before 1677-09-21 or
/// after 2262-04-11 and leap seconds are out of line.
pub(crate) fn inline_time(time: Option<DateTime<Utc>>) -> i64 {
    let is_regular = |time: &DateTime<Utc>| time.timestamp_subsec_nanos() < 1_000_000_000;
    time.map_or(ABSENT, |time| {
        let number = time.timestamp_nanos_opt().filter(|_| is_regular(&time));
        number.map_or(OUT_OF_LINE, |number| number.min(OUT_OF_LINE))
    })
}

/// Splits an inline time into seconds since 1970 and nanoseconds.
#[expect(clippy::cast_possible_truncation, reason = "less than a second")]
pub(super) fn seconds_and_nanos(time: i64) -> (i64, u32) {
    const SECOND: i64 = 1_000_000_000;
    (
        time.div_euclid(SECOND),
        time.rem_euclid(SECOND).unsigned_abs() as u32,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_times_order_as_times_do() {
        let time = |seconds, nanos| DateTime::from_timestamp(seconds, nanos);
        let times = [
            time(-9_000_000_000, 0),
            time(-1, 0),
            time(-1, 999_999_999),
            time(0, 0),
            time(0, 1),
            time(59, 999_999_999),
            time(59, 1_000_000_000),
            time(59, 1_500_000_000),
            time(60, 500_000_000),
            time(9_223_372_036, 854_775_807),
            time(9_223_372_036, 854_775_808),
        ];
        let numbers = times.map(inline_time);
        let is_inline = numbers.map(|number| number < OUT_OF_LINE);
        let expected = [
            true, true, true, true, true, true, false, false, true, false, false,
        ];
        assert_eq!(is_inline, expected);
        let inline = numbers.iter().filter(|number| **number < OUT_OF_LINE);
        assert!(inline.is_sorted_by(|a, b| a < b));
        for (time, number) in times.into_iter().zip(numbers) {
            if number < OUT_OF_LINE {
                assert_eq!(Some(DateTime::from_timestamp_nanos(number)), time);
            }
        }
        assert_eq!(inline_time(None), ABSENT);
    }
}
