//! Python values as JSON and back.

use std::fmt::Write as _;

use cupel_app::Error;
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyTypeError, PyValueError};
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

/// The fields of requests in which a client takes a class of pydantic.
const ANSWER_FORMATS: [&str; 5] = [
    "response_format",
    "text_format",
    "output_format",
    "response_schema",
    "responseSchema",
];

/// Writes a Python value as JSON. Pydantic models are written as `model_dump(mode="json")` returns them, times
/// as RFC 3339. `path` names the value in errors.
pub(crate) fn to_json(
    value: &Bound<'_, PyAny>,
    path: &str,
    not_finite: NotFinite,
) -> PyResult<String> {
    let mut writer = Writer {
        text: Vec::new(),
        path: path.to_owned(),
        not_finite,
        depth: 0,
    };
    writer.value(value)?;
    Ok(String::from_utf8(writer.text)?)
}

struct Writer {
    /// Bytes, so that strings are escaped into their place: three copies less are 40 % of the time of a long chat.
    text: Vec<u8>,
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
            self.text.extend(b"null");
        } else if let Ok(truth) = value.cast::<PyBool>() {
            let name: &[u8] = if truth.is_true() { b"true" } else { b"false" };
            self.text.extend(name);
        } else if value.is_instance_of::<PyInt>() {
            // An enum of integers prints its name.
            let number = value.cast::<PyInt>()?.as_any();
            match number.extract::<i64>() {
                Ok(number) => return self.json(number),
                Err(_) => self.text.extend(number.str()?.to_str()?.as_bytes()),
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
            let message = format!("nested more than {MAX_DEPTH} levels deep, or in itself");
            // The path to the place has as many steps: its start says where it is.
            let start: String = self.path.chars().take(60).collect();
            return Err(Fault::new(format!("{start}..."), message).into());
        }
        self.depth += 1;
        write(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn string(&mut self, value: &Bound<'_, PyString>) -> PyResult<()> {
        self.json(text(value, &self.path)?)
    }

    fn json(&mut self, value: impl Serialize) -> PyResult<()> {
        let written = serde_json::to_writer(&mut self.text, &value);
        written.map_err(Error::internal).map_err(raise)
    }

    fn float(&mut self, number: f64) -> PyResult<()> {
        match number {
            number if number.is_finite() => self.json(number),
            number if self.not_finite == NotFinite::Text => self.json(number.to_string()),
            number => {
                let message = format!("{number} is not a number of JSON");
                Err(Fault::new(&self.path, message).into())
            }
        }
    }

    fn dict(&mut self, fields: &Bound<'_, PyDict>) -> PyResult<()> {
        self.text.push(b'{');
        let length = self.path.len();
        for (position, (key, value)) in fields.iter().enumerate() {
            if position > 0 {
                self.text.push(b',');
            }
            let Ok(key) = key.cast::<PyString>() else {
                let message = format!("expected a string as key, got {}", described(&key));
                return Err(Fault::new(&self.path, message).into());
            };
            self.string(key)?;
            self.text.push(b':');
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(key.to_str()?);
            self.value(&value)?;
            self.path.truncate(length);
        }
        self.text.push(b'}');
        Ok(())
    }

    fn elements<'py>(&mut self, elements: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<()> {
        self.text.push(b'[');
        let length = self.path.len();
        for (position, value) in elements.enumerate() {
            if position > 0 {
                self.text.push(b',');
            }
            let _ = write!(self.path, "[{position}]");
            self.value(&value)?;
            self.path.truncate(length);
        }
        self.text.push(b']');
        Ok(())
    }

    /// Writes a model, a time, or any other mapping or sequence.
    fn object(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        if value.is_instance_of::<PyType>() {
            // A client sends the class of an answer as its schema. Elsewhere a class is a mistake, such as a tool that
            // was not made of it.
            let key = self.path.rsplit('.').next().unwrap_or_default();
            if ANSWER_FORMATS.contains(&key)
                && let Some(schema) = value.getattr_opt(intern!(py, "model_json_schema"))?
            {
                return self.value(&schema.call0()?);
            }
            let message = format!("expected a value of JSON, got the class {value}");
            return Err(Fault::new(&self.path, message).into());
        }
        if let Some(number) = scalar(value)? {
            return self.value(&number);
        }
        refuse_table(value, &self.path)?;
        if let Some(dump) = value.getattr_opt(intern!(py, "model_dump"))? {
            let options = PyDict::new(py);
            options.set_item(intern!(py, "mode"), intern!(py, "json"))?;
            // Defaults that the caller did not set are not sent.
            options.set_item(intern!(py, "exclude_unset"), true)?;
            let fields = dump.call((), Some(&options));
            let fields = fields.map_err(|raised| {
                // Of a model that holds itself or an object that is not JSON.
                if raised.is_instance_of::<PyValueError>(py) {
                    let message = format!("cannot be written as JSON: {}", raised.value(py));
                    return Fault::new(&self.path, message).into();
                }
                raised
            });
            return self.value(&fields?);
        }
        if let Some(time) = rfc3339(value, &self.path)? {
            return self.json(time);
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

/// Returns a value as JSON.
#[pyfunction]
pub(crate) fn as_json(value: &Bound<'_, PyAny>, path: &str) -> PyResult<String> {
    to_json(value, path, NotFinite::Text)
}

/// Returns whether the engine reads a field of a request.
#[pyfunction]
pub(crate) fn is_request_field(name: &str) -> bool {
    cupel_chat::is_request_field(name)
}

/// Refuses a table, such as a data frame: its elements are columns, or the names of columns.
#[pyfunction]
pub(crate) fn refuse_table(value: &Bound<'_, PyAny>, path: &str) -> PyResult<()> {
    let rows = ["to_pylist", "to_dicts", "to_dict"];
    let is_table = value.hasattr("columns")? && value.hasattr("shape")?;
    let mut rows = rows
        .into_iter()
        .filter(|name| is_table && value.hasattr(*name).unwrap_or(false));
    let Some(name) = rows.next() else {
        return Ok(());
    };
    let argument = if name == "to_dict" { "\"records\"" } else { "" };
    let fault = Fault::new(path, format!("expected a list, got {}", described(value)));
    Err(fault
        .help(format!("pass its rows: {name}({argument})"))
        .into())
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
        Some(offset) => match offset.call0() {
            Ok(offset) => offset.is_none(),
            // `NaT` of pandas has the methods of a time, and raises.
            Err(_) => {
                let fault = Fault::new(path, format!("{} is not a time", value.repr()?));
                return Err(fault.help("leave the field out").into());
            }
        },
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
