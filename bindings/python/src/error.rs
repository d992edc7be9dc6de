//! Errors and notices: the exceptions and the warning of `cupel._errors`, in the dialect of Python.

use std::error::Error as _;

use cupel::CupelError;
use cupel::config::ConfigError;
use cupel_app::{Error, ErrorClass, Fault as AppFault, Notice, grouped};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::dialect::{Python as Dialect, keyword};
use crate::strategy::take_raised;

/// A fault as an exception has it: the place and what is wrong.
pub(crate) struct Fault {
    class: ErrorClass,
    /// The path of the value, such as `items[3].tokens`; may be empty.
    path: String,
    message: String,
    context: Box<Context>,
}

/// What a fault may have besides its sentence. It is boxed, so that a `Result` with a fault stays small.
#[derive(Default)]
struct Context {
    details: Vec<String>,
    help: Option<String>,
    /// The name of the engine's error.
    code: Option<&'static str>,
    /// The engine's own text, if a constructor refused a value.
    cause: Option<String>,
    /// The place in a file, if the text at fault was read from one. The line is 0 for the whole file.
    file: Option<(String, usize, usize)>,
}

impl Fault {
    /// Returns the fault of an invalid argument.
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            class: ErrorClass::InvalidInput,
            path: path.into(),
            message: message.into(),
            context: Box::default(),
        }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.context.help = Some(help.into());
        self
    }

    /// Sets the path, and names what failed there.
    pub(crate) fn of(mut self, path: &str, name: &str) -> Self {
        path.clone_into(&mut self.path);
        self.message = format!("{name}: {}", self.message);
        self
    }

    /// Names the row of a table as the place, and what is at fault in it.
    pub(crate) fn in_row(mut self, row: u64) -> Self {
        self.path = match self.place() {
            Some(place) => format!("row {row}, {place}"),
            None => format!("row {row}"),
        };
        self.context.file = None;
        self
    }

    /// Returns the kind of fault, as the data of a table names it.
    pub(crate) fn kind(&self) -> &'static str {
        match self.class {
            ErrorClass::OverBudget => "over_budget",
            ErrorClass::InvalidInput => "invalid_input",
            ErrorClass::Internal => "internal",
        }
    }

    /// Returns what is wrong.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns where it is: a path such as `messages[3].content`, the line and column of a text, or both.
    pub(crate) fn place(&self) -> Option<String> {
        let position = self.context.file.as_ref().filter(|(_, line, _)| *line > 0);
        let position = position.map(|(_, line, column)| format!("line {line}, column {column}"));
        match (self.path.is_empty(), position) {
            (false, Some(position)) => Some(format!("{} ({position})", self.path)),
            (false, None) => Some(self.path.clone()),
            (true, position) => position,
        }
    }

    /// Returns the exception.
    fn exception(&self, py: Python<'_>) -> PyResult<PyErr> {
        let (name, exit_code) = match self.class {
            ErrorClass::OverBudget => ("OverBudgetError", 1),
            ErrorClass::InvalidInput => ("InvalidInputError", 2),
            ErrorClass::Internal => ("InternalError", 3),
        };
        let fields = PyDict::new(py);
        fields.set_item("path", (!self.path.is_empty()).then_some(&self.path))?;
        fields.set_item("details", PyTuple::new(py, &self.context.details)?)?;
        fields.set_item("help", &self.context.help)?;
        fields.set_item("code", self.context.code)?;
        fields.set_item("cause", &self.context.cause)?;
        fields.set_item("exit_code", exit_code)?;
        if let Some((file, line, column)) = &self.context.file {
            fields.set_item("file", file)?;
            if *line > 0 {
                fields.set_item("line", line)?;
                fields.set_item("column", column)?;
            }
        }
        let class = py.import("cupel._errors")?.getattr(name)?;
        Ok(PyErr::from_value(
            class.call((&self.message,), Some(&fields))?,
        ))
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        Python::attach(|py| fault.exception(py).unwrap_or_else(|failed| failed))
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let (mut path, mut file) = (String::new(), None);
        if let Some(place) = &error.place {
            if INPUTS.contains(&&*place.file) {
                path = joined(&place.file, &place.path);
            } else {
                path.clone_from(&place.path);
                file = Some((place.file.clone(), place.line, place.column));
            }
        }
        let mut message = error.message(&Dialect);
        if let (true, Some(argument)) = (path.is_empty(), error.subject()) {
            keyword(argument).clone_into(&mut path);
            message = error.sentence(&Dialect);
        }
        let cause = match &*error.fault {
            AppFault::Document(error) | AppFault::DocumentOrJson(error) => {
                error.source().map(ToString::to_string)
            }
            _ => None,
        };
        let details = error.details().into_iter();
        let details = details.map(|it| format!("{} {}", grouped(it.tokens), it.what));
        Self {
            class: error.class(),
            path,
            message,
            context: Box::new(Context {
                details: details.collect(),
                help: error.help(&Dialect),
                code: error.code(),
                cause,
                file,
            }),
        }
    }
}

/// The arguments that are read as a text. The place of an error in them is a path; other texts are files.
const INPUTS: [&str; 3] = ["data", "items", "messages"];

/// Returns the path of a value in an argument; empty for the argument as a whole.
fn joined(argument: &str, path: &str) -> String {
    if path.starts_with(argument) {
        return path.to_owned();
    }
    match path.chars().next() {
        None => String::new(),
        Some('[') => format!("{argument}{path}"),
        Some(_) => format!("{argument}.{path}"),
    }
}

/// Returns the exception for an error: the one that a strategy raised, if that ended the run.
pub(crate) fn raise<E: Into<Error>>(error: E) -> PyErr {
    match take_raised() {
        Some(raised) => raised,
        None => Fault::from(error.into()).into(),
    }
}

/// Returns the exception for a failed run of one of several requests. `place` names the request.
pub(crate) fn run_at(error: CupelError, place: &str) -> PyErr {
    let mut fault = Fault::from(Error::from(error));
    place.clone_into(&mut fault.path);
    fault.into()
}

/// Returns the exception for invalid data. `argument` is where the data is from; may be empty.
pub(crate) fn config(error: ConfigError, argument: &str) -> PyErr {
    let path = joined(argument, &error.path());
    let mut fault = Fault::from(Error::new(AppFault::Document(error)));
    fault.path = path;
    fault.into()
}

/// Warns of a setting without effect, or of a guess.
pub(crate) fn warn(py: Python<'_>, notice: &Notice) -> PyResult<()> {
    warn_text(py, &notice_text(notice))
}

/// Returns a notice as a warning has it.
pub(crate) fn notice_text(notice: &Notice) -> String {
    notice.message(&Dialect)
}

/// Warns with a text.
pub(crate) fn warn_text(py: Python<'_>, text: &str) -> PyResult<()> {
    let errors = py.import("cupel._errors")?;
    errors.call_method1("warn", (text,)).map(drop)
}
