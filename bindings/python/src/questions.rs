//! The questions of `_commands.py`: values in, the answers of `cupel-app` out.

use cupel_app::{
    Error, ExplainOneAnswer, Notice, Options, Prepared, ReadOptions, Scope, Source, count_text,
    scorer_named,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde::Serialize;
use serde_json::Value;

use crate::error::{self, Fault};
use crate::json::{self, NotFinite, text, to_json, to_python, to_value};
use crate::options::{self, counter, string, tokens, whole_number};
use crate::policy::read_several;
use crate::signals::Signals;
use crate::strategy::take_raised;

/// Reads a chat, items or a request.
fn source(data: &Bound<'_, PyAny>) -> PyResult<Source> {
    Ok(Source::new("data", to_json(data, "data", NotFinite::Text)?))
}

/// Runs a question without the GIL, warns of its notices and returns its answer.
fn answered<A: Serialize + Send>(
    py: Python<'_>,
    question: impl Send + FnOnce() -> Result<(A, Vec<Notice>), Error>,
) -> PyResult<Bound<'_, PyAny>> {
    let answer = py.detach(|| {
        let (answer, notices) = question()?;
        Ok::<(Value, Vec<Notice>), Error>((to_value(&answer)?, notices))
    });
    let (answer, notices) = answer.map_err(error::raise)?;
    // A signal handler raised and ended the search.
    if let Some(raised) = take_raised() {
        return Err(raised);
    }
    for notice in notices {
        error::warn(py, &notice)?;
    }
    to_python(py, &answer)
}

/// Prepares an input and asks a question about its windows.
fn ask<'py, A: Serialize + Send>(
    data: &Bound<'py, PyAny>,
    options: &Options,
    scope: Scope,
    question: impl Send + FnOnce(&Prepared) -> Result<A, Error>,
) -> PyResult<Bound<'py, PyAny>> {
    let source = source(data)?;
    answered(data.py(), || {
        let prepared = Prepared::new(source, options, scope)?;
        let answer = question(&prepared)?;
        Ok((answer, prepared.setting.all_notices()))
    })
}

/// Explains why each message or item is in or out, or everything about one.
#[pyfunction]
pub(crate) fn explain<'py>(
    data: &Bound<'py, PyAny>,
    budget: Option<&Bound<'py, PyAny>>,
    policy: Option<&Bound<'py, PyAny>>,
    item: Option<&Bound<'py, PyAny>>,
    others: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = options::read(budget, policy, others)?;
    let item = item.map(|item| whole_number(item, "item")).transpose()?;
    ask(data, &options, Scope::Budget, |prepared| match item {
        Some(item) => to_value(&ExplainOneAnswer::from(prepared.explain_item(item)?)),
        None => to_value(&prepared.explain()?),
    })
}

/// Returns the window at every budget of a range.
#[pyfunction]
pub(crate) fn sweep<'py>(
    data: &Bound<'py, PyAny>,
    start: Option<&Bound<'py, PyAny>>,
    stop: Option<&Bound<'py, PyAny>>,
    policy: Option<&Bound<'py, PyAny>>,
    others: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = options::read(None, policy, others)?;
    let start = start.map(|start| tokens(start, "start")).transpose()?;
    let stop = stop.map(|stop| tokens(stop, "stop")).transpose()?;
    ask(data, &options, Scope::AnyBudget, |prepared| {
        let mut signals = Signals::new();
        prepared.sweep(start.unwrap_or(0), stop, &mut |_| signals.check())
    })
}

/// Returns the smallest budgets from which on messages or items stay.
#[pyfunction]
pub(crate) fn min_budget<'py>(
    data: &Bound<'py, PyAny>,
    item: Option<&Bound<'py, PyAny>>,
    ceiling: Option<&Bound<'py, PyAny>>,
    policy: Option<&Bound<'py, PyAny>>,
    others: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = options::read(None, policy, others)?;
    let item = item.map(|item| whole_number(item, "item")).transpose()?;
    let ceiling = ceiling.map(|it| tokens(it, "ceiling")).transpose()?;
    ask(data, &options, Scope::AnyBudget, |prepared| {
        let mut signals = Signals::new();
        prepared.min_budget(item, ceiling, &mut |_| signals.check())
    })
}

/// Compares the windows of policies.
#[pyfunction]
pub(crate) fn compare<'py>(
    data: &Bound<'py, PyAny>,
    budget: Option<&Bound<'py, PyAny>>,
    policies: &Bound<'py, PyAny>,
    others: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = options::read(budget, None, others)?;
    let policies = read_several(policies)?;
    let source = source(data)?;
    answered(data.py(), || {
        let prepared = Prepared::new(source, &options, Scope::OtherPolicies)?;
        let answer = prepared.compare(policies)?;
        let mut notices = prepared.setting.all_notices();
        notices.extend(answer.notices.iter().cloned());
        Ok((answer, notices))
    })
}

/// Finds the messages or items that match a question.
#[pyfunction]
pub(crate) fn search<'py>(
    data: &Bound<'py, PyAny>,
    query: &Bound<'py, PyAny>,
    top: &Bound<'py, PyAny>,
    scorer: Option<&Bound<'py, PyAny>>,
    policy: Option<&Bound<'py, PyAny>>,
    others: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let query = match query.cast::<PyString>() {
        Ok(query) if !query.is_empty()? => text(query, "query")?.to_owned(),
        found => {
            let got = match found {
                Ok(empty) => empty.repr()?.to_string(),
                Err(_) => json::described(query),
            };
            let message = format!("expected a text to search for, got {got}");
            return Err(Fault::new("query", message).into());
        }
    };
    let mut options = options::read(None, policy, others)?;
    let top = whole_number(top, "top")?;
    if let Some(scorer) = scorer {
        let name = string(scorer, "scorer")?;
        if options.policy.is_some() {
            let message = "scorer and policy exclude each other; remove one";
            return Err(Fault::new("scorer", message).into());
        }
        options.policy = Some(scorer_named(&name).map_err(error::raise)?);
    }
    let source = source(data)?;
    answered(data.py(), || {
        let answer = cupel_app::search(&source, &query, top, &options)?;
        let notices = answer.notices.clone();
        Ok((answer, notices))
    })
}

/// Counts the tokens of a text, a chat or items.
#[pyfunction]
#[pyo3(signature = (data, model=None, encoding=None))]
pub(crate) fn count(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    model: Option<&Bound<'_, PyAny>>,
    encoding: Option<&Bound<'_, PyAny>>,
) -> PyResult<i64> {
    let model = model.map(|model| string(model, "model")).transpose()?;
    let encoding = encoding.map(|name| string(name, "encoding")).transpose()?;
    let counters = [counter(model.as_deref(), encoding.as_deref())?];
    let counted = match data.cast::<PyString>() {
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
    Ok(counted.total.into_iter().sum())
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
    let counter = counter(model, encoding)?;
    Ok(py.detach(|| texts.iter().map(|text| counter.count(text)).collect()))
}

/// Returns the known models.
#[pyfunction]
pub(crate) fn models(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    json::answer(py, &cupel_app::models())
}
