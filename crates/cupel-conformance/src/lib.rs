//! Conformance vectors for the Cupel specification and a runner for any
//! implementation. A vector is a TOML file with a task and its expected result.
//! An [`Adapter`] performs the task with one implementation; the runner compares
//! the results. `README.md` shows how to test your own implementation,
//! `FORMAT.md` describes the files.
//!
//! | purpose | items |
//! |---|---|
//! | get vectors | [`suite`] (embedded), [`load_dir`] (any directory), [`Vector::parse`] (one string) |
//! | connect an implementation | [`Adapter`], with the plain data of [`model`]; [`Unsupported`] for missing features |
//! | run them | [`run`] with [`Options`] (filters, known failures), giving a [`Summary`] |
//! | compare one answer | [`check`], or [`compare`] for the number of compared expectations |
//! | claim conformance | [`Summary::claim`] and [`SUITE_VERSION`] |
//! | list what is covered | [`Vector::requirements`], [`Vector::rulings`], [`Vector::flags`], [`flags`] |
//!
//! ```
//! use cupel_conformance::{Vector, check, model::Observation};
//!
//! let vector = Vector::parse(
//!     "required/scoring/oldest.toml",
//!     r#"
//!     test = { name = "The oldest item scores 0", stage = "scoring", scorer = "recency" }
//!     items = [
//!         { content = "old", tokens = 1, timestamp = 2024-01-01T00:00Z },
//!         { content = "new", tokens = 1, timestamp = 2024-06-01T00:00Z },
//!     ]
//!     expected = [{ content = "old", score_approx = 0.0 }]
//!     "#,
//! )?;
//! assert!(check(&vector, &Observation::Scores(vec![0.0, 1.0])).is_ok());
//!
//! let mismatches = check(&vector, &Observation::Scores(vec![0.5, 1.0])).unwrap_err();
//! assert_eq!(
//!     mismatches[0].to_string(),
//!     r#"score["old"]: expected 0.0 (less than 1e-9 away), got 0.5"#
//! );
//! # Ok::<(), cupel_conformance::VectorError>(())
//! ```

pub mod model;
#[doc(hidden)]
pub mod testing;

mod error;
mod parse;
mod runner;
mod suite;
mod vector;

pub use error::{Problem, VectorError, VectorErrors};
pub use runner::{
    Adapter, Cause, Claim, Comparison, Failed, KnownFailure, Mismatch, Options, Summary, Tally,
    Unsupported, check, compare, run,
};
pub use suite::{SUITE_VERSION, flags, load_dir, suite};
pub use vector::{
    Expected, ExpectedEntry, ExpectedError, ExpectedOverflow, ExpectedRun, ExpectedScore,
    ExpectedSelection, Level, Vector,
};

/// Compiles and runs the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
