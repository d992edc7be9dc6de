//! `cupel --version`: what the command is built from, as `build.rs` states it.

use chrono::DateTime;
use cupel_chat::Encoding;

use crate::text::wrap;

/// Returns the version, and the commit, target and features of the build.
pub(crate) fn long() -> String {
    let available = Encoding::ALL.iter().filter(|it| it.available().is_ok());
    let vocabularies: Vec<&str> = available.map(cupel_chat::TokenCounter::name).collect();
    let licenses = if cfg!(feature = "vocabularies") {
        "MIT; the vocabularies of Llama 3 (Built with Meta Llama 3), DeepSeek and Kimi K2 have their own: `cupel licenses`"
    } else {
        "MIT; `cupel licenses` has all"
    };
    let rows = [
        ("commit", env!("CUPEL_BUILD_COMMIT").to_owned()),
        ("date", date(env!("CUPEL_BUILD_DATE_EPOCH"))),
        ("target", env!("CUPEL_BUILD_TARGET").to_owned()),
        ("features", env!("CUPEL_BUILD_FEATURES").to_owned()),
        ("vocabularies", vocabularies.join(", ")),
        ("licenses", licenses.to_owned()),
    ];
    let mut lines = vec![env!("CARGO_PKG_VERSION").to_owned()];
    // A copy without git has no commit, a build without the variable no date.
    for (label, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        lines.extend(wrap(&format!("{label:<13} {value}"), COLUMNS, 14));
    }
    lines.join("\n")
}

/// The width of the lines, whatever terminal they are for: the text is part of the build.
const COLUMNS: usize = 80;

/// Returns a date such as `2026-11-19` from the seconds since 1970.
fn date(epoch: &str) -> String {
    let seconds = epoch.parse().ok();
    let time = seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    time.map(|time| time.date_naive().to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_stated_by_the_environment_or_missing() {
        assert_eq!(date("1795046400"), "2026-11-19");
        assert_eq!(date(""), "");
        assert_eq!(date("tomorrow"), "");
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        assert!(long().lines().all(|line| line.len() <= COLUMNS));
    }
}
