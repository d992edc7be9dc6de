//! `select`, its result and its report.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use cupel::config::RequestConfig;
use cupel::{
    ContextBudget, ContextItem, CupelError, Decisions, DiagnosticTraceCollector, ExclusionReason,
    InclusionReason, SelectionReport, TraceDetailLevel,
};
use cupel_app::{
    Error, FitAnswer, NamedPolicy, Options, Prepared, Scope, SelectAnswer, Source, grouped,
    hints_out_of_range, missing_times,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString, PyType};
use pyo3_arrow::PyTable;
use self_cell::self_cell;
use serde::Deserialize as _;
use serde_json::Value;

use crate::columns::{self, DecisionColumns};
use crate::counter::PyCounter;
use crate::item::{Candidates, Item};
use crate::json::{answer, to_python, to_value};
use crate::policy::{read_for_items, with_query};
use crate::spans::traced;
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
/// Args:
///     items: Dicts with the fields of an `Item`, items, other objects with these attributes, or
///         prebuilt `Items`; also texts, documents and hits of a search.
///     budget: Tokens as `8000` or `"8k"`, a dict or a `Budget`.
///     policy: A preset, the path of a file, a dict or a `Policy`. Default: `"chat"`, for
///         documents with scores `"rag"`.
///     query: The question, for policies that score by relevance.
///     trace: Whether the report has the events of the stages. Default: False.
///     counter: A function that counts the tokens of items that have none. Default: o200k.
///
/// Raises:
///     OverBudgetError: The pinned items do not fit.
///     InvalidInputError: An argument is invalid.
///
/// >>> import cupel
/// >>> items = [{"content": "old", "tokens": 60}, {"content": "new", "tokens": 30}]
/// >>> selection = cupel.select(items, 50)
/// >>> selection.items, selection.indices, selection.tokens
/// ([{'content': 'new', 'tokens': 30}], [1], 30)
#[pyfunction]
#[pyo3(signature = (items, budget, policy=None, *, query=None, trace=false, counter=None))]
pub(crate) fn select(
    py: Python<'_>,
    items: &Bound<'_, PyAny>,
    budget: &Bound<'_, PyAny>,
    policy: Option<&Bound<'_, PyAny>>,
    query: Option<&Bound<'_, PyString>>,
    trace: bool,
    counter: Option<&Bound<'_, PyAny>>,
) -> PyResult<Selection> {
    let budget = budget::read(budget)?;
    let candidates = Candidates::counted(items, counter)?;
    let named = with_query(read_for_items(policy, candidates.has_scores)?, query)?;
    let items = Arc::clone(&candidates.items);
    let policy = &named.policy;
    warn(py, &items, &budget, policy)?;
    let (owned, trace) = traced(py, |span| {
        let run = py.detach(|| {
            let mut trace = trace.then(|| DiagnosticTraceCollector::new(TraceDetailLevel::Item));
            let owned = OwnedDecisions::try_new(items, |items| match (&mut trace, span) {
                (Some(collector), None) => policy.decide_traced(items, &budget, collector),
                (None, None) => policy.decide(items, &budget),
                (Some(collector), Some(span)) => {
                    let mut both = (collector, span.collector());
                    policy.decide_traced(items, &budget, &mut both)
                }
                (None, Some(span)) => policy.decide_traced(items, &budget, &mut span.collector()),
            })?;
            Ok((owned, trace.map(DiagnosticTraceCollector::into_report)))
        });
        run.map_err(error::raise::<CupelError>)
    })?;
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

/// Warns of what the policy reads and the items lack or misstate.
fn warn(
    py: Python<'_>,
    items: &[ContextItem],
    budget: &ContextBudget,
    policy: &cupel::Policy,
) -> PyResult<()> {
    let notices = [
        missing_times(items, budget, policy),
        hints_out_of_range(items, policy),
    ];
    let mut notices = notices.iter().flatten();
    notices.try_for_each(|notice| error::warn(py, notice))
}

/// Returns the positions of the items that fit a budget, in the order of the window.
///
/// It takes the arguments of `select`, and is faster: nothing is recorded.
///
/// >>> import cupel
/// >>> items = [{"content": "old", "tokens": 60}, {"content": "new", "tokens": 30}]
/// >>> cupel.select_index(items, 50)
/// [1]
#[pyfunction]
#[pyo3(signature = (items, budget, policy=None, *, query=None, counter=None))]
pub(crate) fn select_index(
    py: Python<'_>,
    items: &Bound<'_, PyAny>,
    budget: &Bound<'_, PyAny>,
    policy: Option<&Bound<'_, PyAny>>,
    query: Option<&Bound<'_, PyString>>,
    counter: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<usize>> {
    let budget = budget::read(budget)?;
    let Candidates {
        items, has_scores, ..
    } = Candidates::counted(items, counter)?;
    let policy = with_query(read_for_items(policy, has_scores)?, query)?.policy;
    warn(py, &items, &budget, &policy)?;
    let window = py.detach(|| policy.run_indices(&items, &budget));
    window.map_err(error::raise)
}

/// The result of `select`: a sequence of the selected items, in the order of the window.
///
/// >>> import cupel
/// >>> selection = cupel.select([{"content": "a", "tokens": 3}, {"content": "b", "tokens": 4}], 5)
/// >>> len(selection), selection[0]["content"], selection
/// (1, 'a', <cupel.Selection: 1 of 2 items, 3 tokens>)
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
    /// The selected items, in the order of the window: the caller's own objects. A shortened
    /// item is a copy.
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
    ///
    /// >>> import cupel
    /// >>> items = [{"content": "a", "tokens": 3}, {"content": "b", "tokens": 4}]
    /// >>> cupel.select(items, 9).index({"content": "b", "tokens": 4})
    /// 1
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
    ///
    /// >>> import cupel
    /// >>> cupel.select([{"content": "a", "tokens": 3}], 9).count({"content": "a", "tokens": 3})
    /// 1
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
        generic_alias(class, item)
    }
}

/// Returns a class with a type argument, which type checkers read.
fn generic_alias<'py>(
    class: &Bound<'py, PyType>,
    item: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let alias = class.py().import("types")?.getattr("GenericAlias")?;
    alias.call1((class, item))
}

/// Why each candidate of a run is in or out.
///
/// It is not iterable: `included` and `excluded` are lists, `to_arrow()` is a table with a row per
/// candidate, and `to_html()` is a page with every text. A notebook shows that page, or a table of
/// the newest 1,000 candidates if the page has more than 300 kB.
///
/// >>> import cupel
/// >>> items = [{"content": "a", "tokens": 3}, {"content": "b", "tokens": 4}]
/// >>> report = cupel.select(items, 5).report
/// >>> report
/// <cupel.Report: 1 of 2 included, 3 tokens>
/// >>> report.excluded[0]["index"], report.excluded[0]["reason"]["reason"]
/// (1, 'BudgetExceeded')
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
    /// One of a fitted chat that was pickled.
    Pickled(Box<PickledFit>),
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
    /// The counter of the caller, which is also that of the options.
    pub(crate) counter: Option<Arc<PyCounter>>,
}

/// The report of a fitted chat without the chat, which its page would need.
struct PickledFit {
    /// The answer, as `to_dict` returns it, with the report.
    answer: Value,
    report: SelectionReport,
    scores: Vec<f64>,
    ranks: Vec<Option<usize>>,
    window: Vec<usize>,
    /// The position, the reason and the tokens of each dropped message.
    dropped: Vec<(usize, ExclusionReason, i64)>,
    tokens_used: i64,
}

impl PickledFit {
    fn new(answer: &str, scores: Vec<f64>, ranks: Vec<Option<usize>>) -> serde_json::Result<Self> {
        let answer: Value = serde_json::from_str(answer)?;
        let dropped = answer["dropped"].as_array().into_iter().flatten();
        let dropped = dropped.map(|entry| {
            Ok((
                usize::deserialize(&entry["index"])?,
                ExclusionReason::deserialize(&entry["reason"])?,
                i64::deserialize(&entry["tokens"])?,
            ))
        });
        Ok(Self {
            report: SelectionReport::deserialize(&answer["report"])?,
            scores,
            ranks,
            window: Vec::deserialize(&answer["kept"])?,
            dropped: dropped.collect::<serde_json::Result<_>>()?,
            tokens_used: i64::deserialize(&answer["tokens_after"])?,
            answer,
        })
    }
}

/// The arguments of [`restore_report`]: the answer, the scores and the ranks.
type PickledArguments = (String, Vec<f64>, Vec<Option<usize>>);

/// Makes a report again that was pickled.
#[pyfunction]
#[pyo3(name = "_restore_report")]
pub(crate) fn restore_report(
    answer: &str,
    scores: Vec<f64>,
    ranks: Vec<Option<usize>>,
) -> PyResult<Report> {
    let fit = PickledFit::new(answer, scores, ranks).map_err(Error::internal);
    Ok(Report(Run::Pickled(Box::new(fit.map_err(error::raise)?))))
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
            Run::Pickled(fit) => fit.scores.len(),
        }
    }

    fn window(&self) -> Vec<usize> {
        match &self.0 {
            Run::Select { owned, .. } => owned.borrow_dependent().window().to_vec(),
            Run::Fit(fitted) => fitted.answer.kept.clone(),
            Run::Pickled(fit) => fit.window.clone(),
        }
    }

    /// Returns what was decided about every candidate: the window in its order, then the others.
    fn decided(&self) -> Vec<Row> {
        match &self.0 {
            Run::Select { owned, .. } => Row::of_run(owned.borrow_dependent()),
            Run::Fit(fitted) => {
                let dropped = fitted.answer.dropped.iter();
                let dropped =
                    dropped.map(|entry| (entry.index, entry.reason.clone(), entry.tokens));
                let (scores, ranks) = (&fitted.scores, &fitted.ranks);
                Row::of_fit(&fitted.answer.kept, dropped, &fitted.report, scores, ranks)
            }
            Run::Pickled(fit) => {
                let dropped = fit.dropped.iter().cloned();
                Row::of_fit(&fit.window, dropped, &fit.report, &fit.scores, &fit.ranks)
            }
        }
    }

    /// Returns the answer and the report of a fitted chat as JSON.
    fn fit_answer(&self) -> Result<Option<Value>, Error> {
        match &self.0 {
            Run::Select { .. } => Ok(None),
            Run::Fit(fitted) => {
                let mut answer = to_value(&fitted.answer)?;
                answer["report"] = to_value(&fitted.report)?;
                Ok(Some(answer))
            }
            Run::Pickled(fit) => Ok(Some(fit.answer.clone())),
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

/// The most bytes of what a notebook shows. A notebook with a few of them still opens at once and can be diffed.
const MAX_OUTPUT: usize = 300_000;

/// The most candidates of the table in the place of a larger page: some 100 bytes each.
const MAX_ROWS: usize = 1_000;

impl Report {
    /// Returns whether the page may fit [`MAX_OUTPUT`]: it has every text and, per candidate, at least 100 bytes.
    /// Making a larger one only to discard it takes seconds.
    fn fits_output(&self) -> bool {
        let bytes = match &self.0 {
            Run::Select { owned, .. } => {
                let items = owned.borrow_owner().iter();
                items.map(|item| item.content().len()).sum()
            }
            Run::Fit(fitted) => fitted.source.text.len(),
            Run::Pickled(_) => return false,
        };
        bytes + 100 * self.rows() <= MAX_OUTPUT
    }

    /// Returns a table of the newest candidates, with a line that says what it leaves out. It is folded beside the page.
    fn table(&self, is_alone: bool) -> String {
        let (all, used) = (self.rows(), self.tokens_used());
        let mut rows = self.decided();
        rows.sort_unstable_by_key(|row| row.index);
        let left_out = rows.len().saturating_sub(MAX_ROWS);
        let number = |count: usize| grouped(i64::try_from(count).unwrap_or(i64::MAX));
        let first = number(left_out);
        let rest = match (left_out, &self.0) {
            (0, _) => String::new(),
            (_, Run::Pickled(_)) => format!("; the first {first} are not shown here"),
            (_, run) => {
                let result = match run {
                    Run::Select { .. } => "selection",
                    _ => "fitted",
                };
                format!(
                    "; the first {first} are not shown here. The page with all of them: \
                     <code>open(\"why.html\", \"w\").write({result}.report.to_html())</code>"
                )
            }
        };
        let (open, kept) = (
            if is_alone { " open" } else { "" },
            number(self.window().len()),
        );
        let mut html = format!(
            "<details{open}><summary>{kept} of {} included, {} tokens{rest}</summary>\
             <div style=\"max-height: 720px; overflow: auto\"><table>\
             <tr><th>#</th><th></th><th>reason</th><th>tokens</th></tr>",
            number(all),
            grouped(used)
        );
        for row in &rows[left_out..] {
            let (status, reason) = match &row.reason {
                Reason::Included(reason) => ("in", reason.name()),
                Reason::Excluded(reason) => ("out", reason.name()),
            };
            let _ = write!(
                html,
                "<tr><td>{}</td><td>{status}</td><td>{reason}</td><td>{}</td></tr>",
                row.index, row.tokens
            );
        }
        html.push_str("</table></div></details>");
        html
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
    fn of_fit(
        window: &[usize],
        dropped: impl Iterator<Item = (usize, ExclusionReason, i64)>,
        report: &SelectionReport,
        scores: &[f64],
        ranks: &[Option<usize>],
    ) -> Vec<Self> {
        let row = |index: usize, score, reason, position, tokens| Self {
            index,
            // A pickled report may have been changed.
            rank: ranks.get(index).copied().flatten(),
            score,
            reason,
            position,
            tokens,
        };
        let kept = window.iter().zip(&report.included);
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
        let dropped = dropped.map(|(index, reason, tokens)| {
            let score = scores.get(index).copied().unwrap_or(f64::NAN);
            row(index, score, Reason::Excluded(reason), None, tokens)
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
    ///
    /// >>> import cupel
    /// >>> report = cupel.select([{"content": "a", "tokens": 3}], 5).report
    /// >>> sorted(report.to_dict())
    /// ['excluded', 'included', 'overflow', 'report', 'selected']
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
            Run::Fit(_) | Run::Pickled(_) => to_python(
                py,
                &self.fit_answer().map_err(error::raise)?.unwrap_or_default(),
            ),
        }
    }

    /// Returns the report as a `pyarrow.Table`, one row per candidate.
    ///
    /// >>> import cupel
    /// >>> report = cupel.select([{"content": "a", "tokens": 3}], 5).report
    /// >>> report.to_arrow().column_names
    /// ['index', 'rank', 'score', 'status', 'reason', 'position', 'tokens']
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
            Run::Pickled(fit) => fit.tokens_used,
        }
    }

    /// The candidates in the window, in its order: dicts with `index`, `score` and `reason`.
    #[getter]
    fn included<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        listed(
            py,
            self.decided()
                .into_iter()
                .filter(|row| row.position.is_some()),
        )
    }

    /// The other candidates, best score first: dicts with `index`, `score` and `reason`.
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
    ///
    /// Write it to a file and open it in a browser. Any size is possible: the page has every text.
    ///
    /// >>> import cupel
    /// >>> page = cupel.select([{"content": "a", "tokens": 3}], 5).report.to_html()
    /// >>> page[:15]
    /// '<!doctype html>'
    fn to_html(&self, py: Python<'_>) -> PyResult<String> {
        if matches!(self.0, Run::Pickled(_)) {
            let fault = error::Fault::new("", "a report that was pickled has no page");
            return Err(fault.help("keep the text of to_html() before").into());
        }
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
            // Refused above.
            Run::Pickled(_) => Ok(String::new()),
        });
        if let Run::Fit(fitted) = &self.0
            && let Some(counter) = &fitted.counter
            && let Some(raised) = counter.take_raised()
        {
            return Err(raised);
        }
        page.map_err(error::raise)
    }

    /// Returns the page in a frame with a folded table, for notebooks. A page of more than [`MAX_OUTPUT`] bytes is left
    /// out: a notebook stores its outputs, and a page has every text. GitHub shows the table alone: it removes frames.
    #[pyo3(name = "_repr_html_")]
    fn repr_html(&self, py: Python<'_>) -> PyResult<String> {
        if self.fits_output() {
            let page = self.to_html(py)?;
            let page = page.replace('&', "&amp;").replace('"', "&quot;");
            let frame = format!(
                "<iframe srcdoc=\"{page}\" style=\"width: 100%; height: 720px; border: 1px solid #8884; \
                 border-radius: 6px\" title=\"cupel\"></iframe>"
            );
            let html = frame + &self.table(false);
            if html.len() <= MAX_OUTPUT {
                return Ok(html);
            }
        }
        Ok(self.table(true))
    }

    fn __len__(&self) -> usize {
        self.rows()
    }

    fn __repr__(&self) -> String {
        let (all, used) = (self.rows(), self.tokens_used());
        let kept = self.window().len();
        format!("<cupel.Report: {kept} of {all} included, {used} tokens>")
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        generic_alias(class, item)
    }

    /// The report of a fitted chat is pickled without its page, which needs the chat.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, PickledArguments)> {
        let report = this.get();
        let (scores, ranks) = match &report.0 {
            Run::Select { .. } => {
                return Err(PyTypeError::new_err(
                    "a Report of select cannot be pickled; pickle report.to_dict() or \
                     report.to_arrow()",
                ));
            }
            Run::Fit(fitted) => (fitted.scores.clone(), fitted.ranks.clone()),
            Run::Pickled(fit) => (fit.scores.clone(), fit.ranks.clone()),
        };
        let answer = report.fit_answer().map_err(error::raise)?;
        let restore = this.py().import("cupel._cupel")?;
        let restore = restore.getattr("_restore_report")?;
        Ok((
            restore,
            (answer.unwrap_or_default().to_string(), scores, ranks),
        ))
    }
}
