//! `select_batches`: runs a policy over the requests of an Arrow stream.

use pyo3::prelude::*;

/// Selects.
#[pyfunction]
pub(crate) fn select_batches() -> i64 {
    0
}
