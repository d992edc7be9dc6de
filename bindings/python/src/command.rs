//! The command in this process: `python -m cupel`.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command line and returns its exit status.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| cupel_cli::main(arguments))
}
