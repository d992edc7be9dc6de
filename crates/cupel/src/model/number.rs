//! Optional numbers in eight bytes, as they stand beside the handle of an item.

use chrono::{DateTime, Utc};

/// Stands for no number.
pub(crate) const ABSENT: i64 = i64::MAX;
/// Stands for a number that is not held; all that are held are less.
pub(crate) const ELSEWHERE: i64 = i64::MAX - 1;

pub(super) fn held(number: Option<i64>) -> i64 {
    number.map_or(ABSENT, |number| number.min(ELSEWHERE))
}

/// Nanoseconds since 1970, which order as the times do: not held are times before 1678 or after 2261
/// and leap seconds.
pub(crate) fn held_time(time: Option<DateTime<Utc>>) -> i64 {
    let is_regular = |time: &DateTime<Utc>| time.timestamp_subsec_nanos() < 1_000_000_000;
    time.map_or(ABSENT, |time| {
        let number = time.timestamp_nanos_opt().filter(|_| is_regular(&time));
        number.map_or(ELSEWHERE, |number| number.min(ELSEWHERE))
    })
}

/// A time that is held, in seconds since 1970 and nanoseconds beyond.
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
    fn numbers_order_as_times_do() {
        let time = |seconds, nanos| DateTime::from_timestamp(seconds, nanos);
        let times = [
            time(-9_000_000_000, 0),
            time(-1, 0),
            time(-1, 999_999_999),
            time(0, 0),
            time(0, 1),
            time(59, 999_999_999),
            time(59, 1_500_000_000),
            time(60, 500_000_000),
            time(9_223_372_036, 854_775_807),
            time(9_223_372_036, 854_775_808),
        ];
        let numbers = times.map(held_time);
        let is_held = numbers.map(|number| number < ELSEWHERE);
        let expected = [
            true, true, true, true, true, true, false, true, false, false,
        ];
        assert_eq!(is_held, expected);
        let held = numbers.iter().filter(|number| **number < ELSEWHERE);
        assert!(held.is_sorted_by(|a, b| a < b));
        for (time, number) in times.into_iter().zip(numbers) {
            if number < ELSEWHERE {
                assert_eq!(Some(DateTime::from_timestamp_nanos(number)), time);
            }
        }
        assert_eq!(held_time(None), ABSENT);
    }
}
