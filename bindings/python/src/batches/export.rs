//! Results that are made as they are read: an Arrow C stream, and an iterator of pyarrow record batches.

use std::sync::{Mutex, MutexGuard, TryLockError};

use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::{PyRecordBatch, PyRecordBatchReader, PySchema};

use super::fit::RowError;
use super::run::RequestError;
use super::source::SourceError;
use crate::callback;
use crate::error::{self, Fault};

/// Makes batches when they are pulled.
pub(super) trait Pull: Send {
    fn schema(&self) -> SchemaRef;

    /// Returns the next batch. The calling thread must have released the GIL.
    fn advance(&mut self) -> Result<Option<RecordBatch>, Failure>;

    /// Ends the stream with a failure, after the batches that are ready.
    fn fail(&mut self, failure: Failure);

    /// Returns what to warn of when the stream has ended. Each text is returned once.
    fn warnings(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Why a stream ends before its input.
pub(super) enum Failure {
    Source(SourceError),
    Input(String),
    Request(RequestError),
    Row(RowError),
}

impl Failure {
    fn text(&self) -> String {
        match self {
            Self::Source(SourceError::Stream(text)) | Self::Input(text) => text.clone(),
            Self::Source(SourceError::Raised(error)) => error.to_string(),
            Self::Request(error) => error.to_string(),
            Self::Row(error) => error.to_string(),
        }
    }

    fn into_exception(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Source(SourceError::Raised(error)) => error,
            Self::Source(SourceError::Stream(text)) => PyOSError::new_err(text),
            Self::Input(text) => Fault::new("data", text).into(),
            Self::Request(error) => error.into_exception(py),
            Self::Row(error) => error.into_exception(py),
        }
    }
}

/// A stream that is read once, by iteration or as an Arrow C stream.
pub(super) struct Export {
    /// The function that made it.
    function: &'static str,
    schema: SchemaRef,
    /// `None` once it is exported.
    stream: Mutex<Option<Box<dyn Pull>>>,
}

impl Export {
    pub(super) fn new(function: &'static str, stream: impl Pull + 'static) -> Self {
        Self {
            function,
            schema: stream.schema(),
            stream: Mutex::new(Some(Box::new(stream))),
        }
    }

    /// Returns the stream. It is an error if it is in use: by another thread, or by a caller of the generator or
    /// the strategy that reads it.
    fn lock(&self) -> PyResult<MutexGuard<'_, Option<Box<dyn Pull>>>> {
        match self.stream.try_lock() {
            Ok(stream) => Ok(stream),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(Fault::new("", "the stream is being read already")
                    .help("read it in one thread, and not in its own generator or strategy")
                    .into())
            }
        }
    }

    fn consumed(&self) -> PyErr {
        Fault::new("", "the stream was already read")
            .help(format!("call {} again", self.function))
            .into()
    }

    pub(super) fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let schema = PySchema::new(self.schema.clone()).into_pyobject(py)?;
        schema.call_method0("__arrow_c_schema__")
    }

    pub(super) fn stream<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut stream = self.lock()?.take().ok_or_else(|| self.consumed())?;
        let reader: Box<dyn RecordBatchReader + Send> = if callback::is_running() {
            // The consumer releases the GIL without PyO3, which then takes this thread for attached: see `callback`.
            let batches = callback::detach(py, || {
                let batches = std::iter::from_fn(|| stream.advance().transpose());
                batches.collect::<Result<Vec<RecordBatch>, Failure>>()
            });
            let batches = batches.map_err(|failure| failure.into_exception(py))?;
            warn(py, &mut *stream)?;
            let batches = batches.into_iter().map(Ok);
            Box::new(RecordBatchIterator::new(batches, self.schema.clone()))
        } else {
            let function = self.function;
            Box::new(Exported { stream, function })
        };
        let reader = PyRecordBatchReader::new(reader).into_pyobject(py)?;
        reader.call_method1("__arrow_c_stream__", (requested_schema,))
    }

    /// Returns the next record batch of pyarrow.
    pub(super) fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut stream = self.lock()?;
        let stream = stream.as_mut().ok_or_else(|| self.consumed())?;
        let batch = callback::detach(py, || stream.advance());
        match batch.map_err(|failure| failure.into_exception(py))? {
            Some(batch) => PyRecordBatch::new(batch).into_pyarrow(py).map(Some),
            None => warn(py, &mut **stream).map(|()| None),
        }
    }
}

/// Warns of what a stream that has ended tells.
fn warn(py: Python<'_>, stream: &mut dyn Pull) -> PyResult<()> {
    let mut warnings = stream.warnings().into_iter();
    warnings.try_for_each(|text| error::warn_text(py, &text))
}

/// The stream as the Arrow C interface pulls it. Errors become text.
struct Exported {
    stream: Box<dyn Pull>,
    function: &'static str,
}

impl Iterator for Exported {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if callback::is_running() {
            let message = format!(
                "a stream that was opened outside of a generator or a strategy cannot be read in it; iterate over {}() instead",
                self.function
            );
            return Some(Err(ArrowError::InvalidArgumentError(message)));
        }
        // The consumer may hold the GIL, which the threads of a Python strategy need.
        let stream = &mut self.stream;
        let next = Python::attach(|py| {
            if let Err(error) = py.check_signals() {
                stream.fail(Failure::Source(SourceError::Raised(error)));
            }
            let next = py.detach(|| stream.advance());
            if let Ok(None) = next {
                let raised = |error| Failure::Source(SourceError::Raised(error));
                warn(py, &mut **stream).map_err(raised)?;
            }
            next
        });
        next.map_err(|failure| ArrowError::InvalidArgumentError(failure.text()))
            .transpose()
    }
}

impl RecordBatchReader for Exported {
    fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }
}
