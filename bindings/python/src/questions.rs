//! The questions of `_commands.py`: values in, the answers of `cupel-app` out.

use std::sync::Arc;

use cupel_app::{ReadOptions, Source, count_text};
use cupel_chat::TokenCounter;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::counter::PyCounter;
use crate::error;
use crate::json::{self, NotFinite, text, to_json, to_python};
use crate::options::{self, string};
use crate::signals::Signals;
use crate::strategy::take_raised;

/// Reads a chat, items or a request.
fn source(data: &Bound<'_, PyAny>) -> PyResult<Source> {
    Ok(Source::new("data", to_json(data, "data", NotFinite::Text)?))
}

/// Answers the question of that name. `arguments` has what the function takes by name, `others` the options that it
/// passes on.
#[pyfunction]
pub(crate) fn ask<'py>(
    question: &str,
    data: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyDict>,
    others: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = data.py();
    let asked = options::read(arguments, others)?;
    let source = source(data)?;
    let (options, arguments) = (&asked.options, asked.arguments.clone());
    let answered = py.detach(|| {
        let mut signals = Signals::new();
        let mut observer = |_| signals.check();
        cupel_app::ask(question, source, options, arguments, &mut observer)
    });
    let answered = answered.map_err(|error| asked.error(error))?;
    asked.check()?;
    // A signal handler raised and ended the search.
    if let Some(raised) = take_raised() {
        return Err(raised);
    }
    for notice in &answered.notices {
        error::warn(py, notice)?;
    }
    to_python(py, &answered.answer)
}

/// Counts the tokens of a text, a chat or items.
#[pyfunction]
#[pyo3(signature = (data, model=None, encoding=None, counter=None))]
pub(crate) fn count(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    model: Option<&Bound<'_, PyAny>>,
    encoding: Option<&Bound<'_, PyAny>>,
    counter: Option<&Bound<'_, PyAny>>,
) -> PyResult<i64> {
    let model = model.map(|model| string(model, "model")).transpose()?;
    let encoding = encoding.map(|name| string(name, "encoding")).transpose()?;
    let own = counter.map(|counter| PyCounter::read(counter, "counter"));
    let own = own.transpose()?;
    let counters: [Arc<dyn TokenCounter>; 1] = [match &own {
        Some(own) => Arc::<PyCounter>::clone(own),
        None => options::counter(model.as_deref(), encoding.as_deref())?,
    }];
    let answer = match data.cast::<PyString>() {
        Ok(data) => {
            let text = text(data, "data")?;
            py.detach(|| count_text(text, &counters))
        }
        Err(_) => {
            let source = source(data)?;
            let count = || cupel_app::count(&source, &ReadOptions::default(), &counters);
            py.detach(count).map_err(error::raise)?
        }
    };
    if let Some(raised) = own.and_then(|own| own.take_raised()) {
        return Err(raised);
    }
    Ok(answer.total.into_iter().sum())
}

/// Counts the tokens of texts.
#[pyfunction]
#[pyo3(signature = (texts, encoding=None, model=None))]
pub(crate) fn count_texts(
    py: Python<'_>,
    texts: Vec<pyo3::pybacked::PyBackedStr>,
    encoding: Option<&str>,
    model: Option<&str>,
) -> PyResult<Vec<i64>> {
    let counter = options::counter(model, encoding)?;
    Ok(py.detach(|| texts.iter().map(|text| counter.count(text)).collect()))
}

/// Returns scores as hints.
#[pyfunction]
pub(crate) fn hints_of_scores(scores: Vec<Option<f64>>) -> Vec<f64> {
    cupel_app::hints_of_scores(&scores)
}

/// Returns the known models.
#[pyfunction]
pub(crate) fn models(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    json::answer(py, &cupel_app::models())
}
