//! The package `cupel-vocabularies`: token counts for encodings whose vocabulary is not in this module.

use cupel_chat::{Encoding, Heuristic, TokenCounter, Vocabularies};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Asks the package, which is imported when the first of its encodings is needed.
struct Package;

/// The function `count` of the package, and the names of its encodings.
type Counter = Option<(Py<PyAny>, Vec<String>)>;

fn counter(py: Python<'_>) -> &'static Counter {
    static COUNTER: PyOnceLock<Counter> = PyOnceLock::new();
    COUNTER.get_or_init(py, || {
        let module = py.import("cupel_vocabularies").ok()?;
        let names = module.getattr("encodings").ok()?.call0().ok()?;
        Some((
            module.getattr("count").ok()?.unbind(),
            names.extract().ok()?,
        ))
    })
}

impl Vocabularies for Package {
    fn has(&self, encoding: Encoding) -> bool {
        Python::attach(|py| {
            let counter = counter(py).as_ref();
            counter.is_some_and(|(_, names)| names.iter().any(|name| name == encoding.name()))
        })
    }

    fn count(&self, encoding: Encoding, text: &str) -> i64 {
        Python::attach(|py| {
            let (count, _) = counter(py).as_ref()?;
            let counted = count.bind(py).call1((encoding.name(), text));
            match counted.and_then(|tokens| tokens.extract()) {
                Ok(tokens) => Some(tokens),
                Err(error) => {
                    // Out of memory. A count cannot fail, and the estimate is near.
                    error.write_unraisable(py, None);
                    None
                }
            }
        })
        .unwrap_or_else(|| Heuristic.count(text))
    }
}

/// Lets the engine count with the package, if it is installed.
pub(crate) fn provide() {
    cupel_chat::provide_vocabularies(Box::new(Package));
}
