//! Python values as JSON and back.

use std::fmt::Write as _;

use cupel_app::Error;
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PySequence, PyString, PyTuple, PyType,
};
use serde::Serialize;
use serde_json::Value;

use crate::callback;
use crate::error::{Fault, raise};

/// How a number that JSON does not have is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotFinite {
    /// As a string, as in documents of this project.
    Text,
    /// It is an error.
    Refuse,
}

/// The most levels of nested values.
const MAX_DEPTH: usize = 200;

/// Writes a Python value as JSON. Pydantic models are written as `model_dump(mode="json")` returns them, times
/// as RFC 3339. `path` names the value in errors.
pub(crate) fn to_json(
    value: &Bound<'_, PyAny>,
    path: &str,
    not_finite: NotFinite,
) -> PyResult<String> {
    let mut writer = Writer {
        text: String::new(),
        path: path.to_owned(),
        not_finite,
        depth: 0,
    };
    writer.value(value)?;
    Ok(writer.text)
}

struct Writer {
    text: String,
    path: String,
    not_finite: NotFinite,
    depth: usize,
}

impl Writer {
    fn value(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(text) = value.cast::<PyString>() {
            return self.string(text);
        }
        if value.is_none() {
            self.text.push_str("null");
        } else if let Ok(truth) = value.cast::<PyBool>() {
            self.text
                .push_str(if truth.is_true() { "true" } else { "false" });
        } else if value.is_instance_of::<PyInt>() {
            // An enum of integers prints its name.
            let number = value.cast::<PyInt>()?.as_any();
            match number.extract::<i64>() {
                Ok(number) => {
                    let _ = write!(self.text, "{number}");
                }
                Err(_) => self.text.push_str(number.str()?.to_str()?),
            }
        } else if let Ok(number) = value.cast::<PyFloat>() {
            return self.float(number.value());
        } else if let Ok(fields) = value.cast::<PyDict>() {
            return self.nested(|it| it.dict(fields));
        } else if let Ok(list) = value.cast::<PyList>() {
            return self.nested(|it| it.elements(list.iter()));
        } else if let Ok(list) = value.cast::<PyTuple>() {
            return self.nested(|it| it.elements(list.iter()));
        } else {
            return self.nested(|it| callback::run(|| it.object(value)));
        }
        Ok(())
    }

    fn nested(&mut self, write: impl FnOnce(&mut Self) -> PyResult<()>) -> PyResult<()> {
        if self.depth == MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(Fault::new(&self.path, message).into());
        }
        self.depth += 1;
        write(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn string(&mut self, value: &Bound<'_, PyString>) -> PyResult<()> {
        let text = Value::from(text(value, &self.path)?).to_string();
        self.text.push_str(&text);
        Ok(())
    }

    fn float(&mut self, number: f64) -> PyResult<()> {
        let text = match number {
            number if number.is_finite() => Value::from(number).to_string(),
            number if self.not_finite == NotFinite::Text => {
                Value::from(number.to_string()).to_string()
            }
            number => {
                let message = format!("{number} is not a number of JSON");
                return Err(Fault::new(&self.path, message).into());
            }
        };
        self.text.push_str(&text);
        Ok(())
    }

    fn dict(&mut self, fields: &Bound<'_, PyDict>) -> PyResult<()> {
        self.text.push('{');
        let length = self.path.len();
        for (position, (key, value)) in fields.iter().enumerate() {
            if position > 0 {
                self.text.push(',');
            }
            let Ok(key) = key.cast::<PyString>() else {
                let message = format!("expected a string as key, got {}", described(&key));
                return Err(Fault::new(&self.path, message).into());
            };
            self.string(key)?;
            self.text.push(':');
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(key.to_str()?);
            self.value(&value)?;
            self.path.truncate(length);
        }
        self.text.push('}');
        Ok(())
    }

    fn elements<'py>(&mut self, elements: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<()> {
        self.text.push('[');
        let length = self.path.len();
        for (position, value) in elements.enumerate() {
            if position > 0 {
                self.text.push(',');
            }
            let _ = write!(self.path, "[{position}]");
            self.value(&value)?;
            self.path.truncate(length);
        }
        self.text.push(']');
        Ok(())
    }

    /// Writes a model, a time, or any other mapping or sequence.
    fn object(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        if value.is_instance_of::<PyType>() {
            let message = format!("expected a value of JSON, got the class {value}");
            return Err(Fault::new(&self.path, message).into());
        }
        if let Some(number) = scalar(value)? {
            return self.value(&number);
        }
        if let Some(dump) = value.getattr_opt(intern!(py, "model_dump"))? {
            let options = PyDict::new(py);
            options.set_item(intern!(py, "mode"), intern!(py, "json"))?;
            // Defaults that the caller did not set are not sent.
            options.set_item(intern!(py, "exclude_unset"), true)?;
            return self.value(&dump.call((), Some(&options))?);
        }
        if let Some(time) = rfc3339(value, &self.path)? {
            self.text.push_str(&Value::from(time).to_string());
            return Ok(());
        }
        if let Some(fields) = value.getattr_opt(intern!(py, "to_dict"))? {
            return self.value(&fields.call0()?);
        }
        if let Ok(mapping) = value.cast::<PyMapping>() {
            let fields = PyDict::new(py);
            fields.update(mapping)?;
            return self.dict(&fields);
        }
        if let Ok(list) = value.cast::<PySequence>()
            && !value.hasattr(intern!(py, "decode"))?
        {
            let list = list.to_list()?;
            return self.elements(list.iter());
        }
        let message = format!("expected a value of JSON, got {}", described(value));
        Err(Fault::new(&self.path, message).into())
    }
}

/// Returns the Python value of a scalar of `NumPy`, or of a library with the same interface; `None` for
/// other values.
fn scalar<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    let dimensions = match value.getattr_opt(intern!(py, "dtype"))? {
        Some(_) => value.getattr_opt(intern!(py, "ndim"))?,
        None => None,
    };
    match dimensions {
        Some(dimensions) if dimensions.eq(0)? => value.call_method0(intern!(py, "item")).map(Some),
        _ => Ok(None),
    }
}

/// Returns the text of a string. `path` names it in errors.
pub(crate) fn text<'a>(value: &'a Bound<'_, PyString>, path: &str) -> PyResult<&'a str> {
    value.to_str().map_err(|_| {
        let fault = Fault::new(path, "a lone surrogate is not text");
        fault.help("decode bytes with errors=\"replace\"").into()
    })
}

/// Returns what `pickle` calls to make an object again: `from_dict` of its class with its fields.
pub(crate) fn reduced<T: PyTypeInfo>(
    fields: Bound<'_, PyAny>,
) -> PyResult<(Bound<'_, PyAny>, Bound<'_, PyTuple>)> {
    let py = fields.py();
    let from_dict = PyType::new::<T>(py).getattr(intern!(py, "from_dict"))?;
    Ok((from_dict, PyTuple::new(py, [fields])?))
}

/// Returns a time as RFC 3339, or `None` for a value that is not a `datetime`. A time without a timezone is an
/// error.
pub(crate) fn rfc3339(value: &Bound<'_, PyAny>, path: &str) -> PyResult<Option<String>> {
    let py = value.py();
    let is_time =
        value.hasattr(intern!(py, "isoformat"))? && value.hasattr(intern!(py, "tzinfo"))?;
    if !is_time {
        return Ok(None);
    }
    let is_naive = match value.getattr_opt(intern!(py, "utcoffset"))? {
        Some(offset) => offset.call0()?.is_none(),
        None => true,
    };
    if is_naive {
        return Err(
            Fault::new(path, format!("{} has no timezone", value.repr()?))
                .help("use datetime.now(timezone.utc) or .replace(tzinfo=...)")
                .into(),
        );
    }
    let text = value.call_method0(intern!(py, "isoformat"))?;
    Ok(Some(text.extract()?))
}

/// Returns the type of a value, as an error names it.
pub(crate) fn described(value: &Bound<'_, PyAny>) -> String {
    match value.get_type().fully_qualified_name() {
        Ok(name) => name.to_string(),
        Err(_) => "an object".to_owned(),
    }
}

/// Returns an answer as Python's `json.loads` returns its JSON.
pub(crate) fn answer<'py>(py: Python<'py>, answer: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, &to_value(answer).map_err(raise)?)
}

/// Returns an answer as a JSON value.
pub(crate) fn to_value(answer: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(answer).map_err(Error::internal)
}

/// Returns a JSON value as Python's `json.loads` does.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(truth) => PyBool::new(py, *truth).to_owned().into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), ..) => number.into_pyobject(py)?.into_any(),
            (None, Some(number), _) => number.into_pyobject(py)?.into_any(),
            (None, None, Some(number)) => number.into_pyobject(py)?.into_any(),
            _ => return Err(PyTypeError::new_err("a number is out of range")),
        },
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Array(values) => {
            let list = PyList::empty(py);
            for value in values {
                list.append(to_python(py, value)?)?;
            }
            list.into_any()
        }
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            for (key, value) in fields {
                dict.set_item(key, to_python(py, value)?)?;
            }
            dict.into_any()
        }
    })
}
