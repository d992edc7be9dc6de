//! The spans of `cupel.otel`: what `cupel-otel` writes about a run, as values for the tracer of Python.
//!
//! `cupel-otel` decides on every name, attribute and event. It writes to a [`Sink`] in the place of a tracer provider,
//! and `cupel/otel.py` writes the same to the provider of the program:
//!
//! ```text
//! run -> CupelOtelTraceCollector -> Sink -> cupel/otel.py -> opentelemetry-api
//! ```

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use cupel::{ContextBudget, SelectionReport, TraceCollector as _};
use cupel_otel::{CupelOtelTraceCollector, CupelVerbosity, names, stage_snapshots};
use opentelemetry::trace::{SpanBuilder, SpanContext, Status, Tracer, TracerProvider};
use opentelemetry::{Context, InstrumentationScope, KeyValue, Value};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::Fault;

/// Whether spans are written; without them, a call pays for reading this.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// The object that writes to the tracer of Python, and how much.
static WRITER: Mutex<Option<(Py<PyAny>, CupelVerbosity)>> = Mutex::new(None);

fn writer() -> MutexGuard<'static, Option<(Py<PyAny>, CupelVerbosity)>> {
    WRITER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets what writes the spans of later calls, or that nothing does.
#[pyfunction]
#[pyo3(signature = (writer, verbosity))]
pub(crate) fn set_span_writer(writer: Option<Py<PyAny>>, verbosity: &str) -> PyResult<()> {
    const ALL: [CupelVerbosity; 3] = [
        CupelVerbosity::StageOnly,
        CupelVerbosity::StageAndExclusions,
        CupelVerbosity::Full,
    ];
    let Some(verbosity) = ALL.into_iter().find(|it| it.name() == verbosity) else {
        let known = ALL.map(CupelVerbosity::name).join(", ");
        let message = format!("unknown name `{verbosity}`; expected one of {known}");
        return Err(Fault::new("verbosity", message).into());
    };
    IS_ON.store(writer.is_some(), Ordering::Relaxed);
    let old = std::mem::replace(
        &mut *self::writer(),
        writer.map(|writer| (writer, verbosity)),
    );
    // Not under the lock: the destructor of a Python object may do anything.
    drop(old);
    Ok(())
}

/// Returns the name of the root span, and that of the attribute with the type of an error.
#[pyfunction]
pub(crate) fn span_names() -> (&'static str, &'static str) {
    (names::ROOT, names::ERROR_TYPE)
}

/// The span of a call that is in progress.
pub(crate) struct Span {
    writer: Py<PyAny>,
    /// What the writer returned for the started span.
    started: Py<PyAny>,
    verbosity: CupelVerbosity,
    sink: Sink,
}

/// Makes a call in a span, if spans are written. The span is current while the call lasts, so that those of functions
/// of the caller, such as a summarizer, are below it.
pub(crate) fn traced<R>(
    py: Python<'_>,
    call: impl FnOnce(Option<&Span>) -> PyResult<R>,
) -> PyResult<R> {
    let Some(span) = Span::start(py)? else {
        return call(None);
    };
    let result = call(Some(&span));
    span.finish(py, result.as_ref().err())?;
    result
}

impl Span {
    fn start(py: Python<'_>) -> PyResult<Option<Self>> {
        if !IS_ON.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let found = writer()
            .as_ref()
            .map(|(writer, verbosity)| (writer.clone_ref(py), *verbosity));
        let Some((writer, verbosity)) = found else {
            return Ok(None);
        };
        let started = writer.call_method0(py, "start")?;
        Ok(Some(Self {
            writer,
            started,
            verbosity,
            sink: Sink::default(),
        }))
    }

    /// Returns a collector for a run.
    pub(crate) fn collector(&self) -> CupelOtelTraceCollector {
        CupelOtelTraceCollector::with_provider(self.verbosity, &self.sink)
    }

    /// Writes a finished run by its report. `tokens` are those of the request before and after, which has more than
    /// messages.
    pub(crate) fn record(
        &self,
        report: &SelectionReport,
        budget: &ContextBudget,
        tokens: (i64, i64),
    ) {
        let snapshots = stage_snapshots(report);
        self.collector()
            .on_pipeline_completed(report, budget, &snapshots);
        for span in &mut *self.sink.finished() {
            for attribute in &mut span.attributes {
                attribute.value = match attribute.key.as_str() {
                    names::TOKENS_BEFORE => tokens.0.into(),
                    names::TOKENS_AFTER => tokens.1.into(),
                    _ => continue,
                };
            }
        }
    }

    fn finish(self, py: Python<'_>, error: Option<&PyErr>) -> PyResult<()> {
        let spans = std::mem::take(&mut *self.sink.finished());
        let spans = spans.into_iter().map(|span| span.to_python(py));
        let spans = PyList::new(py, spans.collect::<PyResult<Vec<_>>>()?)?;
        let error = error.map(|error| error.value(py).clone());
        let arguments = (self.started, spans, error);
        self.writer.call_method1(py, "finish", arguments).map(drop)
    }
}

/// A tracer provider, and its tracer, that keeps finished spans.
#[derive(Debug, Clone, Default)]
struct Sink(Arc<Mutex<Vec<Finished>>>);

impl Sink {
    fn finished(&self) -> MutexGuard<'_, Vec<Finished>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A finished span, or one in progress.
#[derive(Debug, Default)]
struct Finished {
    name: Cow<'static, str>,
    start: Option<SystemTime>,
    end: Option<SystemTime>,
    attributes: Vec<KeyValue>,
    events: Vec<(Cow<'static, str>, SystemTime, Vec<KeyValue>)>,
}

/// A span in Python: its name, its start and its end, its attributes, and its events.
type PythonSpan<'py> = (
    String,
    Option<u128>,
    Option<u128>,
    Bound<'py, PyDict>,
    Vec<(String, u128, Bound<'py, PyDict>)>,
);

impl Finished {
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<PythonSpan<'py>> {
        let events = self.events.iter().map(|(name, time, attributes)| {
            let attributes = values(py, attributes)?;
            Ok((name.to_string(), nanoseconds(*time), attributes))
        });
        Ok((
            self.name.to_string(),
            self.start.map(nanoseconds),
            self.end.map(nanoseconds),
            values(py, &self.attributes)?,
            events.collect::<PyResult<_>>()?,
        ))
    }
}

/// Returns a time as OpenTelemetry has it in Python.
fn nanoseconds(time: SystemTime) -> u128 {
    let since = time.duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos())
}

fn values<'py>(py: Python<'py>, attributes: &[KeyValue]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for attribute in attributes {
        let key = attribute.key.as_str();
        match &attribute.value {
            Value::Bool(value) => dict.set_item(key, value)?,
            Value::I64(value) => dict.set_item(key, value)?,
            Value::F64(value) => dict.set_item(key, value)?,
            value => dict.set_item(key, value.as_str())?,
        }
    }
    Ok(dict)
}

impl TracerProvider for Sink {
    type Tracer = Self;

    fn tracer_with_scope(&self, _: InstrumentationScope) -> Self {
        self.clone()
    }
}

impl Tracer for Sink {
    type Span = Recording;

    fn build_with_context(&self, builder: SpanBuilder, _: &Context) -> Recording {
        Recording {
            sink: self.clone(),
            context: SpanContext::empty_context(),
            span: Finished {
                name: builder.name,
                start: builder.start_time,
                attributes: builder.attributes.unwrap_or_default(),
                ..Finished::default()
            },
        }
    }
}

/// A span that is written to a [`Sink`].
#[derive(Debug)]
struct Recording {
    sink: Sink,
    context: SpanContext,
    span: Finished,
}

impl opentelemetry::trace::Span for Recording {
    fn add_event_with_timestamp<T: Into<Cow<'static, str>>>(
        &mut self,
        name: T,
        timestamp: SystemTime,
        attributes: Vec<KeyValue>,
    ) {
        let event = (name.into(), timestamp, attributes);
        self.span.events.push(event);
    }

    fn span_context(&self) -> &SpanContext {
        &self.context
    }

    fn is_recording(&self) -> bool {
        true
    }

    fn set_attribute(&mut self, attribute: KeyValue) {
        self.span.attributes.push(attribute);
    }

    /// The status of a failed run is that of the exception, which `cupel/otel.py` has.
    fn set_status(&mut self, _: Status) {}

    fn update_name<T: Into<Cow<'static, str>>>(&mut self, name: T) {
        self.span.name = name.into();
    }

    fn add_link(&mut self, _: SpanContext, _: Vec<KeyValue>) {}

    fn end_with_timestamp(&mut self, timestamp: SystemTime) {
        let mut span = std::mem::take(&mut self.span);
        span.end = Some(timestamp);
        self.sink.finished().push(span);
    }
}
