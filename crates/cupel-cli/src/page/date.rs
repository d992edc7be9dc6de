//! The date of a page.

use chrono::{DateTime, NaiveDate};
use serde::Serialize;

/// The day on which a page is written, in UTC.
///
/// The clock is not read: a page has a date only if `--date` or the environment variable
/// `SOURCE_DATE_EPOCH` (<https://reproducible-builds.org/specs/source-date-epoch/>) gives one, so that the
/// same input gives the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Date(String);

impl Date {
    /// Parses a date such as `2026-11-16`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let date = NaiveDate::parse_from_str(text, "%Y-%m-%d");
        date.map(|date| Self(date.to_string()))
            .map_err(|_| "expected a date such as 2026-11-16".to_owned())
    }

    /// Returns the date of `SOURCE_DATE_EPOCH`, if it is set.
    pub(crate) fn from_environment() -> Option<Self> {
        Self::of_epoch(&std::env::var("SOURCE_DATE_EPOCH").ok()?)
    }

    /// Returns the date of a number of seconds since 1970; `None` for another text.
    fn of_epoch(seconds: &str) -> Option<Self> {
        let time = DateTime::from_timestamp(seconds.parse().ok()?, 0)?;
        Some(Self(time.date_naive().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_a_day_or_the_seconds_since_1970() {
        let day = Date::parse("2026-11-16").unwrap();
        assert_eq!(Date::of_epoch("1794787200"), Some(day.clone()));
        assert_eq!(Date::of_epoch("1794873599"), Some(day.clone()));
        assert_eq!(day.0, "2026-11-16");
        assert_eq!(
            Date::parse("16.11.2026").unwrap_err(),
            "expected a date such as 2026-11-16"
        );
        assert_eq!(Date::of_epoch("soon"), None);
        assert_eq!(Date::of_epoch(""), None);
    }
}
