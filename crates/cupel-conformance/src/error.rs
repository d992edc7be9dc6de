//! What is wrong with a vector file.

use std::{fmt, io};

/// A vector file that cannot be used, with the place of the fault.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}{}{problem}", self.path, self.key, if self.key.is_empty() { "" } else { ": " })]
pub struct VectorError {
    /// The file.
    pub path: String,
    /// The key path inside it, such as `scored_items[2].tokens`; empty if the fault is the whole file's.
    pub key: String,
    /// The fault.
    pub problem: Box<Problem>,
}

/// A fault in a vector file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file could not be read.
    #[error("cannot be read: {0}")]
    Io(io::Error),
    /// The text is not TOML.
    #[error("not a TOML document: {0}")]
    Toml(toml::de::Error),
    /// A required field is absent.
    #[error("missing, expected {expected}")]
    Missing {
        /// What the format asks for.
        expected: &'static str,
    },
    /// A field has another type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// What the format asks for.
        expected: &'static str,
        /// What stands there.
        found: &'static str,
    },
    /// A value has the right type but cannot be held.
    #[error("expected {expected}, found {found}")]
    OutOfRange {
        /// What the format asks for.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A date-time says no zone.
    #[error("expected a date-time with a zone, found one without: add `Z` or an offset to {found}")]
    NoZone {
        /// What stands there.
        found: String,
    },
    /// A name from a closed list is not in it.
    #[error("unknown {what} `{name}`, expected one of: {}", .known.join(", "))]
    UnknownName {
        /// What is named.
        what: &'static str,
        /// What stands there.
        name: String,
        /// What could stand there.
        known: Vec<&'static str>,
    },
    /// A list of weights has a name twice, which no policy document can state.
    #[error("duplicate {name:?}; remove one")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// The file expects nothing.
    #[error("nothing is expected, add one of: {fields}")]
    NoExpectation {
        /// The fields that would say what is expected.
        fields: &'static str,
    },
    /// An expectation names an item that is not there.
    #[error("no such item, expected one of {known:?}, found {label:?}")]
    UnknownLabel {
        /// What stands there.
        label: String,
        /// The labels of the items.
        known: Vec<String>,
    },
    /// A score is expected of a label that several items share.
    #[error("several items have this label, give each an `id`: {label:?}")]
    AmbiguousLabel {
        /// What stands there.
        label: String,
    },
}

/// Every fault found while reading many files; never empty.
#[derive(Debug)]
pub struct VectorErrors(pub Vec<VectorError>);

impl fmt::Display for VectorErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, error) in self.0.iter().enumerate() {
            if position > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for VectorErrors {}
