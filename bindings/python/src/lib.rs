//! The extension module `cupel._cupel` of the Python package `cupel`.

mod batches;
#[cfg(feature = "bench")]
mod bench;
mod budget;
mod callback;
mod columns;
mod command;
mod counter;
mod dialect;
mod error;
mod evaluate;
mod fit;
mod item;
mod json;
mod options;
mod policy;
mod questions;
mod selection;
mod signals;
mod spans;
mod strategy;
mod threads;
mod vocabularies;

use pyo3::prelude::*;

/// The engine of the package `cupel`.
#[pymodule]
mod _cupel {
    #[expect(non_upper_case_globals, reason = "Python's name")]
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    use super::batches::{FittedBatches, SelectedBatches, fit_batches, select_batches};
    #[cfg(feature = "bench")]
    #[pymodule_export]
    use super::bench::engine_nanoseconds;
    #[pymodule_export]
    use super::budget::Budget;
    #[pymodule_export]
    use super::command::main;
    #[pymodule_export]
    use super::evaluate::evaluate;
    #[pymodule_export]
    use super::fit::{Session, check_fit, fit, shape_of};
    #[pymodule_export]
    use super::item::{Item, Items};
    #[pymodule_export]
    use super::json::{as_json, is_request_field, refuse_table};
    #[pymodule_export]
    use super::options::instead_of;
    #[pymodule_export]
    use super::policy::{PyPolicy, preset_names, restore_policy};
    #[pymodule_export]
    use super::questions::{ask, count, count_texts, hints_of_scores, models};
    #[pymodule_export]
    use super::selection::{Report, Selection, restore_report, select, select_index};
    #[pymodule_export]
    use super::spans::{set_span_writer, span_names};
    #[pymodule_export]
    use super::strategy::{Choice, PyPlacer, PyScorer, PySlicer};

    use pyo3::prelude::*;
    use pyo3::types::PySequence;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::vocabularies::provide();
        PySequence::register::<Items>(module.py())?;
        PySequence::register::<Selection>(module.py())
    }
}
