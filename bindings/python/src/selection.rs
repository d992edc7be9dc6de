//! `select`, its result and its report.

use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use cupel::config::RequestConfig;
use cupel::{
    ContextBudget, ContextItem, CupelError, Decisions, DiagnosticTraceCollector, ExclusionReason,
    InclusionReason, SelectionReport, TraceDetailLevel,
};
use cupel_app::{
    FitAnswer, NamedPolicy, Options, Prepared, Scope, SelectAnswer, Source, missing_times,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString, PyType};
use pyo3_arrow::PyTable;
use self_cell::self_cell;

use crate::columns::{self, DecisionColumns};
use crate::item::{Candidates, Item};
use crate::json::answer;
use crate::policy::{read_for_items, with_query};
use crate::{budget, error};

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
    let named = with_query(read_for_items(policy)?, query)?;
    let budget = budget::read(budget)?;
    let candidates = Candidates::read(items)?;
    let items = Arc::clone(&candidates.items);
    let policy = &named.policy;
    if let Some(notice) = missing_times(&items, &budget, policy) {
        error::warn(py, &notice)?;
    }
    let run = py.detach(|| {
        let mut trace = trace.then(|| DiagnosticTraceCollector::new(TraceDetailLevel::Item));
        let owned = OwnedDecisions::try_new(items, |items| match &mut trace {
            Some(collector) => policy.decide_traced(items, &budget, collector),
            None => policy.decide(items, &budget),
        })?;
        Ok((owned, trace.map(DiagnosticTraceCollector::into_report)))
    });
    let (owned, trace) = run.map_err(error::raise::<CupelError>)?;
    let decisions = owned.borrow_dependent();
    let items = OnceLock::new();
    if let Some(window) = candidates.window(py, decisions)? {
        let _ = items.set(window.unbind());
    }
    let report = Report(Run::Select {
        owned,
        trace: trace.map(Box::new),
        policy: Box::new(named),
        budget: Box::new(budget),
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
    let policy = with_query(read_for_items(policy)?, query)?.policy;
    let budget = budget::read(budget)?;
    let items = Candidates::read(items)?.items;
    if let Some(notice) = missing_times(&items, &budget, &policy) {
        error::warn(py, &notice)?;
    }
    let window = py.detach(|| policy.run_indices(&items, &budget));
    window.map_err(error::raise)
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
        trace: Option<Box<SelectionReport>>,
        policy: Box<NamedPolicy>,
        budget: Box<ContextBudget>,
    },
    Fit(Box<FittedChat>),
}

/// A fitted chat, and the question that its window answers.
pub(crate) struct FittedChat {
    /// The window.
    pub(crate) answer: FitAnswer,
    /// The report of the run.
    pub(crate) report: SelectionReport,
    /// The score of every message or item.
    pub(crate) scores: Vec<f64>,
    /// The rank of every message or item, from 0.
    pub(crate) ranks: Vec<Option<usize>>,
    /// The text of the chat. The page reads it again when it is asked for.
    pub(crate) source: Source,
    /// The options of the window.
    pub(crate) options: Options,
}

impl Report {
    /// Returns the report of a fitted chat.
    pub(crate) fn of_fit(fitted: FittedChat) -> Self {
        Self(Run::Fit(Box::new(fitted)))
    }

    /// Returns the number of candidates.
    fn rows(&self) -> usize {
        match &self.0 {
            Run::Select { owned, .. } => owned.borrow_owner().len(),
            Run::Fit(fitted) => fitted.scores.len(),
        }
    }

    fn window(&self) -> Vec<usize> {
        match &self.0 {
            Run::Select { owned, .. } => owned.borrow_dependent().window().to_vec(),
            Run::Fit(fitted) => fitted.answer.kept.clone(),
        }
    }

    /// Returns what was decided about every candidate: the window in its order, then the others.
    fn decided(&self) -> Vec<Row> {
        match &self.0 {
            Run::Select { owned, .. } => Row::of_run(owned.borrow_dependent()),
            Run::Fit(fitted) => Row::of_fit(fitted),
        }
    }

    fn batch(&self) -> PyResult<RecordBatch> {
        let mut columns = DecisionColumns::with_capacity(self.rows());
        let mut rows = self.decided();
        rows.sort_unstable_by_key(|row| row.index);
        for row in &rows {
            let (status, reason) = match &row.reason {
                Reason::Included(reason) => ("included", reason.name()),
                Reason::Excluded(reason) => ("excluded", reason.name()),
            };
            let place = (row.index, row.rank, row.score);
            columns.append_row(place, status, reason, row.position, row.tokens);
        }
        let schema = Arc::new(Schema::new(columns::fields()));
        RecordBatch::try_new(schema, columns.finish())
            .map_err(|fault| PyRuntimeError::new_err(fault.to_string()))
    }
}

/// What was decided about a candidate.
struct Row {
    index: usize,
    rank: Option<usize>,
    score: f64,
    reason: Reason,
    /// The place in the window; `None` if it is not in it.
    position: Option<usize>,
    tokens: i64,
}

enum Reason {
    Included(InclusionReason),
    Excluded(ExclusionReason),
}

impl Row {
    /// Returns the rows of a run: the window in its order, then the others as a report lists them.
    fn of_run(decisions: &Decisions<'_>) -> Vec<Self> {
        let window = decisions.window().iter().copied();
        let rows = window.chain(decisions.excluded()).filter_map(|index| {
            let included = decisions.inclusion(index).map(Reason::Included);
            Some(Self {
                index,
                rank: decisions.rank(index),
                score: decisions.score(index),
                reason: included.or_else(|| decisions.exclusion(index).map(Reason::Excluded))?,
                position: decisions.position(index),
                tokens: decisions.item(index).tokens(),
            })
        });
        rows.collect()
    }

    /// Returns the rows of a fitted chat: the window, then the dropped messages.
    fn of_fit(fitted: &FittedChat) -> Vec<Self> {
        let row = |index: usize, score, reason, position, tokens| Self {
            index,
            rank: fitted.ranks[index],
            score,
            reason,
            position,
            tokens,
        };
        let kept = fitted.answer.kept.iter().zip(&fitted.report.included);
        let kept = kept.enumerate().map(|(position, (&index, entry))| {
            let reason = Reason::Included(entry.reason);
            row(
                index,
                entry.score,
                reason,
                Some(position),
                entry.item.tokens(),
            )
        });
        let dropped = fitted.answer.dropped.iter().map(|entry| {
            let reason = Reason::Excluded(entry.reason.clone());
            row(
                entry.index,
                fitted.scores[entry.index],
                reason,
                None,
                entry.tokens,
            )
        });
        kept.chain(dropped).collect()
    }
}

/// Returns rows as dicts.
fn listed(py: Python<'_>, rows: impl Iterator<Item = Row>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for row in rows {
        let fields = PyDict::new(py);
        fields.set_item("index", row.index)?;
        // A score that is not finite is a float here, and a string in JSON.
        fields.set_item("score", row.score)?;
        let reason = match &row.reason {
            Reason::Included(reason) => answer(py, reason)?,
            Reason::Excluded(reason) => answer(py, reason)?,
        };
        fields.set_item("reason", reason)?;
        list.append(fields)?;
    }
    Ok(list)
}

/// Returns the page of `cupel explain` for a chat or for items.
fn page(prepared: &Prepared) -> Result<String, cupel_app::Error> {
    cupel_cli::page(prepared, None)
}

#[pymethods]
impl Report {
    /// Returns the report as the command prints it in JSON.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
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
                answer(py, &SelectAnswer::of(decisions, Some(report)))
            }
            Run::Fit(fitted) => {
                let document = answer(py, &fitted.answer)?;
                document.set_item("report", answer(py, &fitted.report)?)?;
                Ok(document)
            }
        }
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
            Run::Fit(fitted) => fitted.answer.tokens_after,
        }
    }

    /// The candidates in the window, in its order: position, score and reason.
    #[getter]
    fn included<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        listed(
            py,
            self.decided()
                .into_iter()
                .filter(|row| row.position.is_some()),
        )
    }

    /// The other candidates: position, score and reason.
    #[getter]
    fn excluded<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        listed(
            py,
            self.decided()
                .into_iter()
                .filter(|row| row.position.is_none()),
        )
    }

    /// Returns a self-contained web page that explains the window at every budget.
    fn to_html(&self, py: Python<'_>) -> PyResult<String> {
        let page = py.detach(|| match &self.0 {
            Run::Select {
                owned,
                policy,
                budget,
                ..
            } => {
                let request = RequestConfig {
                    items: owned.borrow_owner().to_vec(),
                    budget: Some((**budget).clone()),
                    ..RequestConfig::default()
                };
                let options = Options {
                    policy: Some((**policy).clone()),
                    ..Options::default()
                };
                page(&Prepared::from_request(
                    "items",
                    request,
                    &options,
                    Scope::Budget,
                )?)
            }
            Run::Fit(fitted) => {
                let FittedChat {
                    source, options, ..
                } = &**fitted;
                page(&Prepared::new(source.clone(), options, Scope::Budget)?)
            }
        });
        page.map_err(error::raise)
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
