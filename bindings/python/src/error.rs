//! Errors: the exceptions of `cupel._errors`, with the texts of the command.

use std::error::Error as _;

use cupel::CupelError;
use cupel::config::ConfigError;
use cupel_cli::{Problem, run_problem};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::json::to_python;
use crate::strategy::take_raised;

/// A fault in an argument: its place and what is wrong.
pub(crate) struct Fault {
    /// The path of the value, such as `items[3].tokens`.
    pub(crate) path: String,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Fault {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
            help: None,
        }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        Python::attach(|py| {
            let error = serde_json::json!({
                "message": fault.message,
                "path": fault.path,
                "help": fault.help,
                "exit_code": 2,
            });
            exception(py, &error, None, "")
        })
    }
}

/// Returns the exception for a problem of the command. `root` is the name of the argument at fault, which the
/// path of the problem is in.
pub(crate) fn problem(py: Python<'_>, problem: &Problem, root: &str) -> PyErr {
    match take_raised() {
        Some(raised) => raised,
        None => exception(py, &problem.json()["error"], None, root),
    }
}

/// Returns the exception for a failed run.
pub(crate) fn run(py: Python<'_>, error: &CupelError) -> PyErr {
    match take_raised() {
        Some(raised) => raised,
        None => {
            let problem = run_problem(error);
            exception(py, &problem.json()["error"], Some(error.code()), "")
        }
    }
}

/// Returns the exception for a failed run of one of several requests. `place` names the request.
pub(crate) fn run_at(py: Python<'_>, error: &CupelError, place: &str) -> PyErr {
    let mut problem = run_problem(error).json()["error"].take();
    problem["path"] = place.into();
    exception(py, &problem, Some(error.code()), "")
}

/// Returns the exception for invalid data.
pub(crate) fn config(py: Python<'_>, error: &ConfigError, root: &str) -> PyErr {
    let help = error
        .suggestion()
        .map(|name| format!("did you mean `{name}`?"));
    let problem = serde_json::json!({
        "message": error.message(),
        "path": error.path(),
        "help": help,
        "cause": error.source().map(ToString::to_string),
        "exit_code": 2,
    });
    exception(py, &problem, error.code(), root)
}

/// Warns of a setting without effect.
pub(crate) fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    let errors = py.import("cupel._errors")?;
    errors.call_method1("warn", (message,)).map(drop)
}

fn exception(py: Python<'_>, error: &serde_json::Value, code: Option<&str>, root: &str) -> PyErr {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let raise = || {
        let make = MAKE.get_or_try_init(py, || {
            let errors = py.import("cupel._errors")?;
            errors.getattr("from_problem").map(Bound::unbind)
        })?;
        let options = PyDict::new(py);
        options.set_item("code", code)?;
        options.set_item("root", root)?;
        make.bind(py).call((to_python(py, error)?,), Some(&options))
    };
    raise().map_or_else(|failed| failed, PyErr::from_value)
}
