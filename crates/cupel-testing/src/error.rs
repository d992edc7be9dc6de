//! What a failed assertion leaves behind.

use std::error::Error;
use std::fmt;

/// Why an assertion failed: the payload of the chain's panics and the error of the checks.
///
/// ```
/// use cupel_testing::SelectionReportAssertions;
/// use cupel_testing::fixture::ReportBuilder;
///
/// let report = ReportBuilder::new().included("hello", 2, 0.5).build();
/// let error = report.check().have_at_least_n_exclusions(1).unwrap_err();
/// assert_eq!(error.assertion(), "HaveAtLeastNExclusions");
/// assert_eq!(
///     error.message(),
///     "HaveAtLeastNExclusions(1) failed: expected at least 1 excluded items, but Excluded had 0.",
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectionReportAssertionError {
    message: String,
}

impl SelectionReportAssertionError {
    /// `message` begins with the assertion's name, then `(` or a space.
    pub(crate) fn new(message: String) -> Self {
        Self { message }
    }

    /// The assertion's name, what it expected and what it found, in the specification's words.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The assertion's name in the specification, with which the message begins.
    pub fn assertion(&self) -> &str {
        self.message.split(['(', ' ']).next().unwrap_or_default()
    }
}

/// The message.
impl fmt::Display for SelectionReportAssertionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for SelectionReportAssertionError {}

/// Panics with `error` itself as the payload, at the caller's location.
///
/// Panic hooks show the text of string payloads only, so the text goes to standard error
/// first. `eprintln!` is what a test harness captures and shows with the failed test.
#[expect(
    clippy::print_stderr,
    reason = "a failed test shows what is printed here"
)]
#[track_caller]
pub(crate) fn raise(error: impl Error + Send + 'static) -> ! {
    eprintln!("{error}");
    std::panic::panic_any(error)
}
