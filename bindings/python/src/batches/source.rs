//! The batches of the caller: an Arrow stream, or an iterable of Arrow objects.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use pyo3_arrow::input::AnyRecordBatch;

use crate::callback;

/// Why no batch came.
pub(super) enum SourceError {
    /// The text of an Arrow stream.
    Stream(String),
    /// What the caller's iterator raised.
    Raised(PyErr),
}

type Reader = Box<dyn RecordBatchReader + Send>;

/// A source of batches that pulls one at a time.
pub(super) struct Source {
    reader: Option<Reader>,
    rest: Option<Py<PyIterator>>,
}

impl Source {
    /// Opens an object with the Arrow C interface, or an iterable of such objects.
    pub(super) fn new(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        if is_arrow(data)? {
            let reader = Some(open(data)?);
            return Ok(Self { reader, rest: None });
        }
        let rest = data.try_iter().map_err(|_| expected(data))?;
        let mut source = Self {
            reader: None,
            rest: Some(rest.unbind()),
        };
        source.advance(data.py())?;
        Ok(source)
    }

    /// Returns the schema of the first batches; `None` for an empty iterable.
    pub(super) fn schema(&self) -> Option<SchemaRef> {
        self.reader.as_ref().map(RecordBatchReader::schema)
    }

    /// Opens the next object of the iterable.
    fn advance(&mut self, py: Python<'_>) -> PyResult<()> {
        let next = match &self.rest {
            Some(rest) => callback::run(|| rest.bind(py).clone().next()).transpose()?,
            None => None,
        };
        self.reader = match next {
            Some(data) if is_arrow(&data)? => Some(open(&data)?),
            Some(data) => return Err(expected(&data)),
            None => None,
        };
        Ok(())
    }

    /// Returns the next batch. The calling thread must have released the GIL: a producer may need it.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>, SourceError> {
        while let Some(reader) = &mut self.reader {
            match reader.next() {
                Some(Ok(batch)) => return Ok(Some(batch)),
                Some(Err(error)) => return Err(SourceError::Stream(error.to_string())),
                None if self.rest.is_none() => self.reader = None,
                None => Python::attach(|py| self.advance(py)).map_err(SourceError::Raised)?,
            }
        }
        Ok(None)
    }
}

fn is_arrow(data: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(data.hasattr("__arrow_c_stream__")? || data.hasattr("__arrow_c_array__")?)
}

fn open(data: &Bound<'_, PyAny>) -> PyResult<Reader> {
    callback::run(|| data.extract::<AnyRecordBatch>()?.into_reader())
}

fn expected(data: &Bound<'_, PyAny>) -> PyErr {
    let name = data.get_type().name().map(|name| name.to_string());
    PyTypeError::new_err(format!(
        "data: expected a table, a record batch reader or another object with the Arrow C stream, or an iterable of them, got {}",
        name.unwrap_or_default()
    ))
}
