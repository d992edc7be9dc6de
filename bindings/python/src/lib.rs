//! The extension module `cupel._cupel` of the Python package `cupel`.

use pyo3::prelude::*;

mod batches;
mod columns;
mod threads;

/// The engine of the package `cupel`.
#[pymodule]
mod _cupel {
    #[pymodule_export]
    use super::batches::{SelectedBatches, select_batches};
}
