//! [`SelectionReportAssertionError`]: why an assertion failed.

use std::error::Error;
use std::fmt;

/// A failed assertion, as the checking form returns it.
///
/// The panicking form panics with [its message](Self::message) as a string.
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
    /// Wraps a message, which begins with the assertion's name, then `(` or a space.
    pub(crate) fn new(message: String) -> Self {
        Self { message }
    }

    /// Returns the specification's message: the assertion's name, the expected and the actual value.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the assertion's name in the specification, which begins the message.
    pub fn assertion(&self) -> &str {
        self.message.split(['(', ' ']).next().unwrap_or_default()
    }
}

/// Writes the message.
impl fmt::Display for SelectionReportAssertionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for SelectionReportAssertionError {}
