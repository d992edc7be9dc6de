//! `select`, its result and its report.

use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use cupel::{
    ContextBudget, ContextItem, Decisions, DiagnosticTraceCollector, Policy, SelectionReport,
    TraceDetailLevel,
};
use cupel_cli::{Call, FitAnswer, missing_times, select_document};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString, PyType};
use pyo3_arrow::PyTable;
use self_cell::self_cell;
use serde_json::{Value, json};

use crate::columns::{self, DecisionColumns};
use crate::item::{Candidates, Item};
use crate::json::to_python;
use crate::{budget, error, policy};

type Items = Arc<Vec<ContextItem>>;

self_cell!(
    /// The decisions of a run with its items.
    struct OwnedDecisions {
        owner: Items,
        #[covariant]
        dependent: Decisions,
    }
);

/// Selects the items that fit a budget.
///
/// `items` are dicts, `Item` objects or prebuilt `Items`; `budget` is a number of tokens, a string such as
/// `"8k"`, a dict or a `Budget`; `policy` is a preset, a file, a dict or a `Policy`, by default the preset
/// `chat`. `query` is the question for policies that score by relevance. `trace=True` adds the events of the
/// stages to the report.
///
/// >>> import cupel
/// >>> items = [{"content": "old", "tokens": 60}, {"content": "new", "tokens": 30}]
/// >>> selection = cupel.select(items, 50)
/// >>> selection.items, selection.indices, selection.tokens
/// ([{'content': 'new', 'tokens': 30}], [1], 30)
#[pyfunction]
#[pyo3(signature = (items, budget, policy=None, *, query=None, trace=false))]
pub(crate) fn select(
    py: Python<'_>,
    items: &Bound<'_, PyAny>,
    budget: &Bound<'_, PyAny>,
    policy: Option<&Bound<'_, PyAny>>,
    query: Option<&Bound<'_, PyString>>,
    trace: bool,
) -> PyResult<Selection> {
    let (policy, name) = read_policy(policy, query)?;
    let budget = budget::read(budget)?;
    let candidates = Candidates::read(items)?;
    let items = Arc::clone(&candidates.items);
    if let Some(warning) = missing_times(&items, &budget, &policy) {
        error::warn(py, &warning)?;
    }
    let run = py.detach(|| {
        let mut trace = trace.then(|| DiagnosticTraceCollector::new(TraceDetailLevel::Item));
        let owned = OwnedDecisions::try_new(items, |items| match &mut trace {
            Some(collector) => policy.decide_traced(items, &budget, collector),
            None => policy.decide(items, &budget),
        })?;
        Ok((owned, trace.map(DiagnosticTraceCollector::into_report)))
    });
    let (owned, trace) = run.map_err(|fault| error::run(py, &fault))?;
    let decisions = owned.borrow_dependent();
    let items = OnceLock::new();
    if let Some(window) = candidates.window(py, decisions)? {
        let _ = items.set(window.unbind());
    }
    let report = Report(Run::Select {
        owned,
        trace,
        policy,
        name,
        budget,
    });
    Ok(Selection {
        items,
        report: Py::new(py, report)?,
    })
}

/// Returns the positions of the items that fit a budget, in the order of the window.
#[pyfunction]
#[pyo3(signature = (items, budget, policy=None, *, query=None))]
pub(crate) fn select_index(
    py: Python<'_>,
    items: &Bound<'_, PyAny>,
    budget: &Bound<'_, PyAny>,
    policy: Option<&Bound<'_, PyAny>>,
    query: Option<&Bound<'_, PyString>>,
) -> PyResult<Vec<usize>> {
    let (policy, _) = read_policy(policy, query)?;
    let budget = budget::read(budget)?;
    let items = Candidates::read(items)?.items;
    if let Some(warning) = missing_times(&items, &budget, &policy) {
        error::warn(py, &warning)?;
    }
    let window = py.detach(|| policy.run_indices(&items, &budget));
    window.map_err(|fault| error::run(py, &fault))
}

/// The policy for items without one.
const DEFAULT_POLICY: &str = "chat";

fn read_policy(
    value: Option<&Bound<'_, PyAny>>,
    query: Option<&Bound<'_, PyString>>,
) -> PyResult<(Policy, String)> {
    let (policy, name) = policy_or_default(value)?;
    Ok((policy::with_query(policy, &name, query)?, name))
}

/// Returns the policy that an argument names, or the default for items, with its name.
pub(crate) fn policy_or_default(value: Option<&Bound<'_, PyAny>>) -> PyResult<(Policy, String)> {
    match value {
        Some(value) => policy::read(value),
        None => {
            let policy = cupel_cli::find_policy(DEFAULT_POLICY);
            let policy = policy.map_err(|problem| PyRuntimeError::new_err(problem.to_string()))?;
            Ok((policy, DEFAULT_POLICY.to_owned()))
        }
    }
}

/// The result of `select`: a sequence of the selected items, in the order of the window.
#[pyclass(frozen, sequence, module = "cupel")]
pub(crate) struct Selection {
    /// The selected items; of prebuilt ones made when they are asked for.
    items: OnceLock<Py<PyList>>,
    report: Py<Report>,
}

impl Selection {
    fn list(&self, py: Python<'_>) -> PyResult<&Py<PyList>> {
        if let Some(items) = self.items.get() {
            return Ok(items);
        }
        let report = self.report.get();
        let Run::Select { owned, .. } = &report.0 else {
            return Err(PyRuntimeError::new_err("a selection has a run"));
        };
        let decisions = owned.borrow_dependent();
        let window = decisions.window().iter();
        let items = window.map(|&index| Item(decisions.item(index).clone()));
        let items = PyList::new(py, items)?.unbind();
        Ok(self.items.get_or_init(|| items))
    }
}

#[pymethods]
impl Selection {
    /// The selected items, in the order of the window.
    #[getter]
    fn items(&self, py: Python<'_>) -> PyResult<Py<PyList>> {
        Ok(self.list(py)?.clone_ref(py))
    }

    /// The positions of the selected items, in the order of the window.
    #[getter]
    fn indices(&self) -> Vec<usize> {
        self.report.get().window()
    }

    /// The tokens of the selected items.
    #[getter]
    fn tokens(&self) -> i64 {
        self.report.get().tokens_used()
    }

    /// Why each item is in or out.
    #[getter]
    fn report(&self, py: Python<'_>) -> Py<Report> {
        self.report.clone_ref(py)
    }

    fn __len__(&self) -> usize {
        self.report.get().window().len()
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.list(index.py())?
            .bind(index.py())
            .as_any()
            .get_item(index)
    }

    fn __contains__(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.list(item.py())?.bind(item.py()).contains(item)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.list(py)?.bind(py).as_any().try_iter()?.into_any())
    }

    fn __reversed__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.list(py)?.bind(py).call_method0("__reversed__")
    }

    /// Returns the first position of an item in the window, as `list.index` does.
    #[pyo3(signature = (item, start=0, stop=isize::MAX, /))]
    fn index<'py>(
        &self,
        item: &Bound<'py, PyAny>,
        start: isize,
        stop: isize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let items = self.list(item.py())?.bind(item.py());
        items.call_method1("index", (item, start, stop))
    }

    /// Returns how often an item is in the window.
    #[pyo3(signature = (item, /))]
    fn count<'py>(&self, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let items = self.list(item.py())?.bind(item.py());
        items.call_method1("count", (item,))
    }

    fn __repr__(&self) -> String {
        let (kept, tokens) = (self.__len__(), self.tokens());
        let all = self.report.get().rows();
        format!("<cupel.Selection: {kept} of {all} items, {tokens} tokens>")
    }

    #[pyo3(name = "_repr_html_")]
    fn repr_html(&self, py: Python<'_>) -> PyResult<String> {
        self.report.get().repr_html(py)
    }

    fn __reduce__(_this: &Bound<'_, Self>) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a Selection cannot be pickled; pickle selection.items, selection.indices or \
             selection.report.to_dict()",
        ))
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let alias = class.py().import("types")?.getattr("GenericAlias")?;
        alias.call1((class, item))
    }
}

/// Why each candidate of a run is in or out. It is not iterable: `included` and `excluded` are lists, and
/// `to_arrow()` is a table with one row per candidate.
#[pyclass(frozen, module = "cupel")]
pub(crate) struct Report(Run);

/// What a report is about, and what its page is made from.
enum Run {
    Select {
        owned: OwnedDecisions,
        /// The events of the run, if it was traced.
        trace: Option<SelectionReport>,
        policy: Policy,
        name: String,
        budget: ContextBudget,
    },
    Fit {
        answer: Box<FitAnswer>,
        arguments: Vec<String>,
        input: String,
        policy: Option<Policy>,
    },
}

impl Report {
    /// Returns the report of a fitted chat. `arguments` are those of `cupel fit`, without the subcommand.
    pub(crate) fn of_fit(
        answer: FitAnswer,
        arguments: Vec<String>,
        input: String,
        policy: Option<Policy>,
    ) -> Self {
        Self(Run::Fit {
            answer: Box::new(answer),
            arguments,
            input,
            policy,
        })
    }

    /// Returns the number of candidates.
    fn rows(&self) -> usize {
        match &self.0 {
            Run::Select { owned, .. } => owned.borrow_owner().len(),
            Run::Fit { answer, .. } => answer.scores.len(),
        }
    }

    fn window(&self) -> Vec<usize> {
        match &self.0 {
            Run::Select { owned, .. } => owned.borrow_dependent().window().to_vec(),
            Run::Fit { answer, .. } => positions(&answer.document["kept"]),
        }
    }

    fn document(&self, py: Python<'_>) -> PyResult<Value> {
        match &self.0 {
            Run::Select { owned, trace, .. } => {
                let decisions = owned.borrow_dependent();
                let untraced;
                let report = match trace {
                    Some(report) => report,
                    None => {
                        untraced = decisions.to_report();
                        &untraced
                    }
                };
                let document = select_document(decisions, report);
                document.map_err(|problem| error::problem(py, &problem, ""))
            }
            Run::Fit { answer, .. } => {
                let mut document = answer.document.clone();
                document["report"] = serde_json::to_value(&answer.report).unwrap_or_default();
                Ok(document)
            }
        }
    }

    fn batch(&self) -> PyResult<RecordBatch> {
        let mut columns = DecisionColumns::with_capacity(self.rows());
        match &self.0 {
            Run::Select { owned, .. } => columns.append(owned.borrow_dependent()),
            Run::Fit { answer, .. } => append_fit(answer, &mut columns),
        }
        let schema = Arc::new(Schema::new(columns::fields()));
        RecordBatch::try_new(schema, columns.finish())
            .map_err(|fault| PyRuntimeError::new_err(fault.to_string()))
    }
}

fn positions(list: &Value) -> Vec<usize> {
    let list = list.as_array().into_iter().flatten();
    let list = list.filter_map(|index| usize::try_from(index.as_u64()?).ok());
    list.collect()
}

/// Appends the rows of a fitted chat, in the order of its messages.
fn append_fit(answer: &FitAnswer, columns: &mut DecisionColumns) {
    let document = &answer.document;
    let kept = positions(&document["kept"]);
    let included = kept.iter().zip(&answer.report.included);
    let mut included = included.enumerate().peekable();
    let mut dropped = document["dropped"].as_array().into_iter().flatten();
    for index in 0..answer.scores.len() {
        let (rank, score) = (answer.ranks[index], answer.scores[index]);
        match included.next_if(|(_, (kept, _))| **kept == index) {
            Some((position, (_, entry))) => columns.append_row(
                (index, rank, score),
                "included",
                entry.reason.name(),
                Some(position),
                entry.item.tokens(),
            ),
            None => {
                let Some(entry) = dropped.next() else {
                    continue;
                };
                let reason = entry["reason"]["reason"].as_str();
                columns.append_row(
                    (index, rank, score),
                    "excluded",
                    reason.unwrap_or_default(),
                    None,
                    entry["tokens"].as_i64().unwrap_or_default(),
                );
            }
        }
    }
}

/// Returns entries of a report: position, score and reason.
fn listed(py: Python<'_>, entries: Vec<(usize, f64, Value)>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for (index, score, reason) in entries {
        let entry = PyDict::new(py);
        entry.set_item("index", index)?;
        // A score that is not finite is a float here, and a string in JSON.
        entry.set_item("score", score)?;
        entry.set_item("reason", to_python(py, &reason)?)?;
        list.append(entry)?;
    }
    Ok(list)
}

#[pymethods]
impl Report {
    /// Returns the report as the command prints it with `--json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.document(py)?)
    }

    /// Returns the report as a `pyarrow.Table`, one row per candidate.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let pyarrow = py.import("pyarrow")?;
        pyarrow.call_method1("table", (slf,))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let batch = self.batch()?;
        let schema = batch.schema();
        let table = PyTable::try_new(vec![batch], schema)?;
        let table = table.into_pyobject(py)?;
        table.call_method1("__arrow_c_stream__", (requested_schema,))
    }

    /// The tokens of the window.
    #[getter]
    fn tokens_used(&self) -> i64 {
        match &self.0 {
            Run::Select { owned, .. } => owned.borrow_dependent().tokens_used(),
            Run::Fit { answer, .. } => answer.document["tokens_after"].as_i64().unwrap_or_default(),
        }
    }

    /// The candidates in the window, in its order: position, score and reason.
    #[getter]
    fn included<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let entries = match &self.0 {
            Run::Select { owned, .. } => {
                let decisions = owned.borrow_dependent();
                let window = decisions.window().iter();
                let entries =
                    window.map(|&it| (it, decisions.score(it), json!(decisions.inclusion(it))));
                entries.collect::<Vec<_>>()
            }
            Run::Fit { answer, .. } => {
                let kept = positions(&answer.document["kept"]).into_iter();
                let entries = kept.zip(&answer.report.included);
                let entries = entries.map(|(it, entry)| (it, entry.score, json!(entry.reason)));
                entries.collect()
            }
        };
        listed(py, entries)
    }

    /// The other candidates: position, score and reason.
    #[getter]
    fn excluded<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let entries = match &self.0 {
            Run::Select { owned, .. } => {
                let decisions = owned.borrow_dependent();
                let excluded = decisions.excluded().into_iter();
                let entries =
                    excluded.map(|it| (it, decisions.score(it), json!(decisions.exclusion(it))));
                entries.collect::<Vec<_>>()
            }
            Run::Fit { answer, .. } => {
                let dropped = answer.document["dropped"].as_array().into_iter().flatten();
                let entries = dropped.filter_map(|entry| {
                    let index = usize::try_from(entry["index"].as_u64()?).ok()?;
                    Some((index, *answer.scores.get(index)?, entry["reason"].clone()))
                });
                entries.collect()
            }
        };
        listed(py, entries)
    }

    /// Returns the page of `cupel explain --html`.
    fn to_html(&self, py: Python<'_>) -> PyResult<String> {
        let (root, call) = match &self.0 {
            Run::Select {
                owned,
                policy,
                name,
                budget,
                ..
            } => {
                let request = json!({ "items": &**owned.borrow_owner(), "budget": budget });
                let call = Call::new(["explain", "-", "--html", "-", "--policy", name])
                    .input("items", request.to_string())
                    .policy(name, policy.clone());
                ("items", call)
            }
            Run::Fit {
                arguments,
                input,
                policy,
                ..
            } => {
                let arguments = ["explain", "--html", "-"]
                    .into_iter()
                    .chain(arguments.iter().map(String::as_str));
                let call = Call::new(arguments).input("messages", input);
                let call = match policy {
                    Some(policy) => call.policy(crate::command::POLICY, policy.clone()),
                    None => call,
                };
                ("messages", call)
            }
        };
        let page = py.detach(|| call.answer());
        page.map_err(|problem| error::problem(py, &problem, root))
    }

    /// Returns the page in a frame, for notebooks.
    #[pyo3(name = "_repr_html_")]
    fn repr_html(&self, py: Python<'_>) -> PyResult<String> {
        let page = self
            .to_html(py)?
            .replace('&', "&amp;")
            .replace('"', "&quot;");
        Ok(format!(
            "<iframe srcdoc=\"{page}\" style=\"width: 100%; height: 720px; border: 1px solid #8884; \
             border-radius: 6px\" title=\"cupel\"></iframe>"
        ))
    }

    fn __len__(&self) -> usize {
        self.rows()
    }

    fn __repr__(&self) -> String {
        let (all, used) = (self.rows(), self.tokens_used());
        let kept = self.window().len();
        format!("<cupel.Report: {kept} of {all} included, {used} tokens>")
    }

    fn __reduce__(_this: &Bound<'_, Self>) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a Report cannot be pickled; pickle report.to_dict() or report.to_arrow()",
        ))
    }
}
