//! Durations such as `24h`, `1h30m` and `PT24H`.

use chrono::TimeDelta;

const SECOND: i128 = 1_000_000_000;

/// The units of `1h30m`, largest first. Days are read but never written.
const UNITS: [(&str, i128); 7] = [
    ("d", 86_400 * SECOND),
    ("h", 3_600 * SECOND),
    ("m", 60 * SECOND),
    ("s", SECOND),
    ("ms", SECOND / 1_000),
    ("us", SECOND / 1_000_000),
    ("ns", 1),
];

/// Parses `24h`, `1h30m`, `1.5h`, `500ms`, or ISO 8601 (`PT24H`, `P1DT12H`, `P2W`).
pub(super) fn parse(text: &str) -> Option<TimeDelta> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let nanos = match text.strip_prefix('P') {
        Some(iso) => parse_iso(iso)?,
        None => parse_parts(text, &UNITS)?,
    };
    from_nanos(if negative { -nanos } else { nanos })
}

/// Converts a number of seconds, rounded to the nanosecond.
pub(super) fn from_seconds(seconds: f64) -> Option<TimeDelta> {
    let whole = seconds.trunc();
    // Larger values do not fit into a duration.
    if whole.is_nan() || whole.abs() > 1e18 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "checked above")]
    let (whole, part) = (
        whole as i128,
        ((seconds - whole) * SECOND as f64).round() as i128,
    );
    from_nanos(whole * SECOND + part)
}

/// Formats a duration in its canonical form: `24h`, `1h30m`, `0s`.
pub(super) fn format(duration: TimeDelta) -> String {
    let nanos = i128::from(duration.num_seconds()) * SECOND + i128::from(duration.subsec_nanos());
    let mut text = String::from(if nanos < 0 { "-" } else { "" });
    let mut rest = nanos.abs();
    for (unit, size) in &UNITS[1..] {
        if rest >= *size {
            text.push_str(&(rest / size).to_string());
            text.push_str(unit);
            rest %= size;
        }
    }
    if nanos == 0 { "0s".to_owned() } else { text }
}

fn from_nanos(nanos: i128) -> Option<TimeDelta> {
    let seconds = i64::try_from(nanos.div_euclid(SECOND)).ok()?;
    let part = u32::try_from(nanos.rem_euclid(SECOND)).ok()?;
    TimeDelta::new(seconds, part)
}

fn parse_iso(text: &str) -> Option<i128> {
    const DATE: [(&str, i128); 2] = [("W", 7 * 86_400 * SECOND), ("D", 86_400 * SECOND)];
    const TIME: [(&str, i128); 3] = [("H", 3_600 * SECOND), ("M", 60 * SECOND), ("S", SECOND)];
    match text.split_once('T') {
        Some(("", time)) => parse_parts(time, &TIME),
        Some((date, time)) => Some(parse_parts(date, &DATE)? + parse_parts(time, &TIME)?),
        None => parse_parts(text, &DATE),
    }
}

/// Parses one or more numbers with units, each unit at most once and largest first.
fn parse_parts(mut text: &str, mut units: &[(&str, i128)]) -> Option<i128> {
    let mut total = 0_i128;
    loop {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, rest) = text.split_at(digits);
        let unit_end = rest.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, rest) = rest.split_at(unit_end.unwrap_or(rest.len()));
        let index = units.iter().position(|(name, _)| *name == unit)?;
        total = total.checked_add(scaled(number, units[index].1)?)?;
        (text, units) = (rest, &units[index + 1..]);
        if text.is_empty() {
            return Some(total);
        }
    }
}

/// Converts a decimal number of units to nanoseconds exactly; refuses finer digits.
fn scaled(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole = whole.parse::<i128>().ok()?.checked_mul(unit)?;
    let parts = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let fraction = fraction.parse::<i128>().ok()?.checked_mul(unit)?;
    (fraction % parts == 0).then(|| whole.checked_add(fraction / parts))?
}

#[cfg(test)]
mod tests {
    use super::{format, from_seconds, parse};
    use chrono::TimeDelta;

    #[test]
    fn every_notation_is_parsed_and_one_is_written() {
        for (text, nanos, canonical) in [
            ("24h", 86_400_000_000_000_i64, "24h"),
            ("30m", 1_800_000_000_000, "30m"),
            ("1h30m", 5_400_000_000_000, "1h30m"),
            ("2d", 172_800_000_000_000, "48h"),
            ("500ms", 500_000_000, "500ms"),
            ("1.5h", 5_400_000_000_000, "1h30m"),
            ("1d1h1m1s1ms1us1ns", 90_061_001_001_001, "25h1m1s1ms1us1ns"),
            ("PT24H", 86_400_000_000_000, "24h"),
            ("P1DT12H", 129_600_000_000_000, "36h"),
            ("P2W", 1_209_600_000_000_000, "336h"),
            ("PT0.5S", 500_000_000, "500ms"),
            ("0s", 0, "0s"),
            ("-1m", -60_000_000_000, "-1m"),
        ] {
            let duration = parse(text);
            assert_eq!(duration, Some(TimeDelta::nanoseconds(nanos)), "{text}");
            assert_eq!(format(duration.unwrap()), canonical, "{text}");
        }
    }

    #[test]
    fn invalid_durations_are_refused() {
        for text in [
            "",
            "h",
            "24",
            "24 h",
            "1h1h",
            "30m1h",
            "24H",
            "P",
            "PT",
            "P1M",
            "P1Y",
            "PT1D",
            "1..5h",
            "0.1ns",
            "--1h",
            "+1h",
            "9999999999999999999999h",
            "1e3s",
            "P1DT",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn seconds_are_rounded_to_the_nanosecond() {
        for (seconds, nanos) in [
            (1.5, 1_500_000_000),
            (0.1, 100_000_000),
            (-2.0, -2_000_000_000),
        ] {
            assert_eq!(from_seconds(seconds), Some(TimeDelta::nanoseconds(nanos)));
        }
        assert_eq!(from_seconds(f64::NAN), None);
        assert_eq!(from_seconds(1e300), None);
    }
}
