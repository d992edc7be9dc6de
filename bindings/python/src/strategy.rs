//! Strategies: built-in ones as callables, and Python callables as strategies.

use std::cell::RefCell;
use std::sync::Arc;

use cupel::config::{Document, Format, PolicyConfig, SlicerConfig};
use cupel::{
    CompositeScorer, ContextBudget, ContextItem, CountRequirementShortfall, CupelError,
    ExclusionReason, Placer, Query, Refusal, ScoredItem, ScoredRef, Scorer, Selection, Slicer,
};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFrozenSet, PyList, PyMapping, PySet, PyString};

use crate::budget::{self, Budget};
use crate::callback;
use crate::error::{self, Fault};
use crate::item::{Candidates, Item};
use crate::json::{NotFinite, described, text, to_json, to_python};

thread_local! {
    /// What a Python strategy raised in the run on this thread.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Returns what a Python strategy raised on this thread.
pub(crate) fn take_raised() -> Option<PyErr> {
    RAISED.take()
}

/// Keeps an exception until the run on this thread has ended.
pub(crate) fn keep_raised(raised: PyErr) {
    RAISED.set(Some(raised));
}

/// Keeps an exception until the run has ended, and returns an error that ends it.
fn raised(raised: PyErr) -> CupelError {
    keep_raised(raised);
    CupelError::PipelineConfig("a strategy raised an exception".to_owned())
}

/// Reads a policy document with one strategy.
fn document(role: &str, value: &Bound<'_, PyAny>) -> PyResult<PolicyConfig> {
    let strategy = match value.cast::<PyString>() {
        Ok(name) => serde_json::json!({ "type": text(name, role)? }).to_string(),
        Err(_) => to_json(value, role, NotFinite::Text)?,
    };
    let json = match role {
        "scorer" => format!(r#"{{"scorer": {strategy}}}"#),
        role => format!(r#"{{"scorer": {{"type": "reflexive"}}, "{role}": {strategy}}}"#),
    };
    let document = Document::parse(&json, Format::Json);
    let config = document.and_then(|document| document.policy_config());
    config.map_err(|fault| error::config(fault, ""))
}

fn not_a_strategy(role: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let got = described(value);
    let message = format!("expected the name of a {role}, a dict or a callable, got {got}");
    Fault::new(role, message).into()
}

/// A built-in scorer, or a combination of scorers. It is called with items.
///
/// >>> import cupel
/// >>> scorer = cupel.Scorer.from_dict("priority")
/// >>> scorer([{"content": text, "tokens": 1, "priority": len(text)} for text in ("a", "bb")])
/// [0.0, 1.0]
#[pyclass(frozen, module = "cupel", name = "Scorer")]
pub(crate) struct PyScorer(Arc<dyn Scorer>);

/// Reads a scorer: a name, a dict, a `Scorer` or a callable.
pub(crate) fn scorer(value: &Bound<'_, PyAny>) -> PyResult<Arc<dyn Scorer>> {
    if let Ok(scorer) = value.cast::<PyScorer>() {
        return Ok(Arc::clone(&scorer.get().0));
    }
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyDict>() {
        let config = document("scorer", value)?;
        let built = config.scorer.build();
        let built = built.map_err(|fault| error::config(fault, "scorer"))?;
        return Ok(Arc::from(built));
    }
    if value.is_callable() {
        return Ok(Arc::new(Callable::new(value)));
    }
    Err(not_a_strategy("scorer", value))
}

#[pymethods]
impl PyScorer {
    /// Builds a scorer from its name or its fields.
    ///
    /// >>> import cupel
    /// >>> cupel.Scorer.from_dict({"type": "kind", "weights": {"Memory": 0.7}})
    /// <cupel.Scorer KindScorer>
    #[staticmethod]
    fn from_dict(fields: &Bound<'_, PyAny>) -> PyResult<Self> {
        scorer(fields).map(Self)
    }

    /// Builds the weighted average of scorers, built-in ones or functions.
    ///
    /// Args:
    ///     entries: Pairs of a scorer and its weight, which is above 0.
    ///
    /// >>> import cupel
    /// >>> equal = lambda items: [1.0] * len(items)
    /// >>> scorer = cupel.Scorer.composite([("reflexive", 3), (equal, 1)])
    /// >>> scorer([{"content": "a", "tokens": 1, "future_relevance_hint": 0.6}])
    /// [0.7]
    #[staticmethod]
    fn composite(entries: Vec<(Bound<'_, PyAny>, f64)>) -> PyResult<Self> {
        let mut built: Vec<(Box<dyn Scorer>, f64)> = Vec::new();
        for (inner, weight) in entries {
            built.push((Box::new(scorer(&inner)?), weight));
        }
        let composite = CompositeScorer::new(built).map_err(error::raise)?;
        Ok(Self(Arc::new(composite)))
    }

    /// Returns this scorer for a question.
    ///
    /// >>> import cupel
    /// >>> scorer = cupel.Scorer.from_dict("relevance").with_query("keys")
    /// >>> [score > 0 for score in scorer([{"content": "It rains."}, {"content": "The keys!"}])]
    /// [False, True]
    fn with_query(&self, query: &Bound<'_, PyString>) -> PyResult<Self> {
        let scorer = self.0.with_query(&Query::from(text(query, "query")?));
        Ok(Self(scorer.unwrap_or_else(|| Arc::clone(&self.0))))
    }

    fn __call__(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
        let items = Candidates::read(items)?.items;
        let scores = py.detach(|| self.0.score_all(&items));
        scores.map_err(error::raise)
    }

    fn __repr__(&self) -> String {
        format!("<cupel.Scorer {}>", self.0.scorer_name())
    }
}

/// Returns the name of a callable in errors and reports.
pub(crate) fn name_of(callable: &Bound<'_, PyAny>) -> String {
    let name = callable.getattr_opt("__name__").ok().flatten();
    let name = name.and_then(|name| name.extract().ok());
    name.unwrap_or_else(|| described(callable))
}

/// A Python callable as a strategy.
struct Callable {
    callable: Py<PyAny>,
    /// Its name in errors and reports.
    name: String,
}

impl Callable {
    fn new(callable: &Bound<'_, PyAny>) -> Self {
        Self {
            callable: callable.clone().unbind(),
            name: name_of(callable),
        }
    }

    fn call<'py>(
        &self,
        py: Python<'py>,
        arguments: impl PyCallArgs<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        callback::run(|| self.callable.bind(py).call1(arguments))
    }
}

impl Scorer for Callable {
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
        let position = all_items.iter().position(|other| std::ptr::eq(other, item));
        let position = position.or_else(|| all_items.iter().position(|other| other.is_same(item)));
        let scores = self.score_all(all_items).ok();
        scores
            .zip(position)
            .and_then(|(scores, position)| scores.get(position).copied())
            .unwrap_or(0.0)
    }

    fn score_all(&self, items: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
        Python::attach(|py| -> PyResult<Vec<f64>> {
            let list = PyList::new(py, items.iter().map(|item| Item(item.clone())))?;
            let scores = self.call(py, (list,))?;
            let scores: Vec<f64> = extracted(&scores, "scorer", &self.name, "float")?;
            if scores.len() != items.len() {
                let (name, got, expected) = (&self.name, scores.len(), items.len());
                let message =
                    format!("the scorer {name} returned {got} scores for {expected} items");
                return Err(Fault::new("scorer", message).into());
            }
            Ok(scores)
        })
        .map_err(raised)
    }

    fn scorer_name(&self) -> &str {
        &self.name
    }
}

/// A built-in slicer. It is called with pairs of item and score, best first, and a budget.
///
/// >>> import cupel
/// >>> slicer = cupel.Slicer.from_dict("greedy")
/// >>> slicer([({"content": "a", "tokens": 9}, 0.9), ({"content": "b", "tokens": 3}, 0.5)], 10)
/// [1]
#[pyclass(frozen, module = "cupel", name = "Slicer")]
pub(crate) struct PySlicer(Arc<dyn Slicer>);

/// Reads a slicer: a name, a dict, a `Slicer` or a callable.
pub(crate) fn slicer(value: &Bound<'_, PyAny>) -> PyResult<Arc<dyn Slicer>> {
    if let Ok(slicer) = value.cast::<PySlicer>() {
        return Ok(Arc::clone(&slicer.get().0));
    }
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyDict>() {
        let config: SlicerConfig = document("slicer", value)?.slicer;
        let built = config.build();
        let built = built.map_err(|fault| error::config(fault, "slicer"))?;
        return Ok(Arc::from(built));
    }
    if value.is_callable() {
        return Ok(Arc::new(Callable::new(value)));
    }
    Err(not_a_strategy("slicer", value))
}

/// Scored items as Python gives them: pairs of item and score.
struct Scored<'py> {
    items: Candidates<'py>,
    scores: Vec<f64>,
}

impl<'py> Scored<'py> {
    fn read(value: &Bound<'py, PyAny>) -> PyResult<Self> {
        let (items, scores) = (PyList::empty(value.py()), PyList::empty(value.py()));
        callback::run(|| {
            for pair in value.try_iter()? {
                let (item, score): (Bound<'py, PyAny>, Bound<'py, PyAny>) = pair?.extract()?;
                items.append(item)?;
                scores.append(score)?;
            }
            PyResult::Ok(())
        })?;
        Ok(Self {
            items: Candidates::read(items.as_any())?,
            scores: scores.extract()?,
        })
    }

    fn refs(&self) -> Vec<ScoredRef<'_>> {
        let pairs = self.items.items.iter().zip(&self.scores).enumerate();
        pairs
            .map(|(index, (item, score))| ScoredRef::new(item, *score, index))
            .collect()
    }
}

#[pymethods]
impl PySlicer {
    /// Builds a slicer from its name or its fields.
    ///
    /// >>> import cupel
    /// >>> cupel.Slicer.from_dict({"type": "knapsack", "bucket_size": 1})
    /// <cupel.Slicer KnapsackSlice>
    #[staticmethod]
    fn from_dict(fields: &Bound<'_, PyAny>) -> PyResult<Self> {
        slicer(fields).map(Self)
    }

    fn __call__(
        &self,
        py: Python<'_>,
        scored: &Bound<'_, PyAny>,
        budget: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<usize>> {
        Ok(self.select(py, scored, budget)?.0.kept().to_vec())
    }

    /// Returns the choice with its reasons.
    ///
    /// >>> import cupel
    /// >>> scored = [({"content": "a", "tokens": 9}, 0.9), ({"content": "b", "tokens": 3}, 0.5)]
    /// >>> cupel.Slicer.from_dict("greedy").select(scored, 10).kept
    /// [1]
    fn select(
        &self,
        py: Python<'_>,
        scored: &Bound<'_, PyAny>,
        budget: &Bound<'_, PyAny>,
    ) -> PyResult<Choice> {
        let scored = Scored::read(scored)?;
        let budget = budget::read(budget)?;
        let refs = scored.refs();
        let selection = py.detach(|| self.0.select(&refs, &budget));
        selection.map(Choice).map_err(error::raise)
    }

    fn __repr__(&self) -> String {
        format!("<cupel.Slicer {}>", self.0.slicer_name())
    }
}

/// The choice of a slicer. A slicer in Python that states reasons returns one.
///
/// Args:
///     kept: Positions of the items that stay.
///     refusals: Pairs of a position and its reason: a dict with `reason` and other fields.
///     shortfalls: What a count requirement lacks: dicts with `kind`, `required_count` and
///         `satisfied_count`.
///
/// >>> import cupel
/// >>> def first(scored, budget):
/// ...     return cupel.Choice([0], refusals=[(1, {"reason": "NotFirst"})])
/// >>> items = [{"content": "a", "tokens": 2}, {"content": "b", "tokens": 2}]
/// >>> selection = cupel.select(items, 10, cupel.Policy("reflexive", first))
/// >>> selection.report.excluded[0]["reason"]
/// {'reason': 'NotFirst'}
#[pyclass(frozen, module = "cupel", name = "Choice")]
pub(crate) struct Choice(Selection);

#[pymethods]
impl Choice {
    #[new]
    #[pyo3(signature = (kept, *, refusals=None, shortfalls=None))]
    fn new(
        kept: Vec<usize>,
        refusals: Option<&Bound<'_, PyAny>>,
        shortfalls: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut selection = Selection::keep(kept);
        for pair in refusals
            .map(PyAnyMethods::try_iter)
            .transpose()?
            .into_iter()
            .flatten()
        {
            let (position, reason): (usize, Bound<'_, PyAny>) = pair?.extract()?;
            let json = to_json(&reason, "refusals", NotFinite::Text)?;
            let reason: ExclusionReason = serde_json::from_str(&json)
                .map_err(|fault| Fault::new("refusals", fault.to_string()))?;
            selection.refuse(position, refusal(reason));
        }
        for entry in shortfalls
            .map(PyAnyMethods::try_iter)
            .transpose()?
            .into_iter()
            .flatten()
        {
            let json = to_json(&entry?, "shortfalls", NotFinite::Text)?;
            let shortfall: CountRequirementShortfall = serde_json::from_str(&json)
                .map_err(|fault| Fault::new("shortfalls", fault.to_string()))?;
            selection.fall_short(shortfall);
        }
        Ok(Self(selection))
    }

    /// The kept positions, in the order of the choice.
    #[getter]
    fn kept(&self) -> Vec<usize> {
        self.0.kept().to_vec()
    }

    /// The refused positions with their reasons.
    #[getter]
    fn refusals<'py>(&self, py: Python<'py>) -> PyResult<Vec<(usize, Bound<'py, PyAny>)>> {
        let refusals = self.0.refusals().iter();
        let refusals = refusals.map(|(position, refusal)| {
            let reason = match refusal {
                Refusal::CountCap { cap, count } => serde_json::json!({
                    "reason": "CountCapExceeded", "cap": cap, "count": count,
                }),
                Refusal::Because(reason) => serde_json::to_value(reason).unwrap_or_default(),
                _ => serde_json::Value::Null,
            };
            Ok((*position, to_python(py, &reason)?))
        });
        refusals.collect()
    }

    /// The count requirements that were not met.
    #[getter]
    fn shortfalls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shortfalls = serde_json::to_value(self.0.shortfalls());
        to_python(py, &shortfalls.unwrap_or_default())
    }
}

/// Returns the refusal for a reason.
fn refusal(reason: ExclusionReason) -> Refusal {
    match reason {
        ExclusionReason::CountCapExceeded { cap, count, .. } => Refusal::CountCap { cap, count },
        reason => Refusal::Because(reason),
    }
}

/// Returns pairs of item and score for a Python strategy.
fn pairs(
    py: Python<'_>,
    scored: impl ExactSizeIterator<Item = (ContextItem, f64)>,
) -> PyResult<Bound<'_, PyList>> {
    PyList::new(py, scored.map(|(item, score)| (Item(item), score)))
}

fn positions(returned: &Bound<'_, PyAny>, role: &str, name: &str) -> PyResult<Vec<usize>> {
    extracted(returned, role, name, "position")
}

/// Returns the numbers that a Python strategy returned. The error names the first that is not one.
fn extracted<'py, T: FromPyObjectOwned<'py>>(
    returned: &Bound<'py, PyAny>,
    role: &str,
    name: &str,
    expected: &str,
) -> PyResult<Vec<T>> {
    let got = described(returned);
    let fault = |what: String| Fault::new(role, format!("the {role} {name} returned {what}"));
    let is_unordered = returned.is_instance_of::<PyMapping>()
        || returned.is_instance_of::<PySet>()
        || returned.is_instance_of::<PyFrozenSet>();
    let values = returned.try_iter().ok().filter(|_| !is_unordered);
    let Some(values) = values else {
        return Err(fault(format!("{got}, expected a sequence of {expected}s")).into());
    };
    let values = values.enumerate().map(|(at, value)| {
        let value = value?;
        // A mask is not a list of positions.
        let is_number = expected == "float" || !value.is_instance_of::<PyBool>();
        let number = is_number.then(|| value.extract().ok()).flatten();
        number.ok_or_else(|| {
            let value = value
                .repr()
                .map_or_else(|_| got.clone(), |it| it.to_string());
            fault(format!("{value} at {at}, expected a {expected}")).into()
        })
    });
    values.collect()
}

impl Slicer for Callable {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        cupel::slicer::slice_by_selection(self, sorted, budget)
    }

    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        Python::attach(|py| -> PyResult<Selection> {
            let scored = pairs(py, ranked.iter().map(|it| (it.item.clone(), it.score)))?;
            let returned = self.call(py, (scored, Budget(budget.clone())))?;
            let selection = match returned.cast::<Choice>() {
                Ok(choice) => choice.get().0.clone(),
                Err(_) => Selection::keep(positions(&returned, "slicer", &self.name)?),
            };
            check(selection.kept(), ranked.len(), "slicer", &self.name)?;
            Ok(selection)
        })
        .map_err(raised)
    }

    fn slicer_name(&self) -> &str {
        &self.name
    }
}

/// Refuses positions out of range and duplicates.
fn check(positions: &[usize], length: usize, role: &str, name: &str) -> PyResult<()> {
    let mut seen = vec![false; length];
    for &position in positions {
        let fault = match seen.get_mut(position) {
            Some(seen) if !*seen => {
                *seen = true;
                continue;
            }
            Some(_) => format!("the {role} {name} returned the position {position} twice"),
            None => format!("the {role} {name} returned the position {position} of {length} items"),
        };
        return Err(Fault::new(role, fault).into());
    }
    Ok(())
}

/// A built-in placer. It is called with pairs of item and score, and returns their order.
///
/// >>> import cupel
/// >>> placer = cupel.Placer.from_dict("u-shaped")
/// >>> placer([({"content": "a", "tokens": 1}, score) for score in (0.1, 0.9, 0.5)])
/// [1, 0, 2]
#[pyclass(frozen, module = "cupel", name = "Placer")]
pub(crate) struct PyPlacer(Arc<dyn Placer>);

/// Reads a placer: a name, a dict, a `Placer` or a callable.
pub(crate) fn placer(value: &Bound<'_, PyAny>) -> PyResult<Arc<dyn Placer>> {
    if let Ok(placer) = value.cast::<PyPlacer>() {
        return Ok(Arc::clone(&placer.get().0));
    }
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyDict>() {
        let config = document("placer", value)?.placer;
        let built = config.build();
        let built = built.map_err(|fault| error::config(fault, "placer"))?;
        return Ok(Arc::from(built));
    }
    if value.is_callable() {
        return Ok(Arc::new(Callable::new(value)));
    }
    Err(not_a_strategy("placer", value))
}

#[pymethods]
impl PyPlacer {
    /// Builds a placer from its name or its fields.
    ///
    /// >>> import cupel
    /// >>> cupel.Placer.from_dict("chronological")
    /// <cupel.Placer ChronologicalPlacer>
    #[staticmethod]
    fn from_dict(fields: &Bound<'_, PyAny>) -> PyResult<Self> {
        placer(fields).map(Self)
    }

    fn __call__(&self, py: Python<'_>, scored: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
        let scored = Scored::read(scored)?;
        let refs = scored.refs();
        let order = py.detach(|| self.0.arrange(&refs));
        order.map_err(error::raise)
    }

    fn __repr__(&self) -> String {
        format!("<cupel.Placer {}>", self.0.placer_name())
    }
}

impl Placer for Callable {
    fn place(&self, items: &[ScoredItem]) -> Vec<ContextItem> {
        let refs = ScoredRef::from_list(items);
        let order = self.arrange(&refs).unwrap_or_default();
        order
            .into_iter()
            .map(|index| items[index].item.clone())
            .collect()
    }

    fn arrange(&self, items: &[ScoredRef<'_>]) -> Result<Vec<usize>, CupelError> {
        Python::attach(|py| -> PyResult<Vec<usize>> {
            let scored = pairs(py, items.iter().map(|it| (it.item.clone(), it.score)))?;
            let returned = self.call(py, (scored,))?;
            let order = positions(&returned, "placer", &self.name)?;
            check(&order, items.len(), "placer", &self.name)?;
            if order.len() != items.len() {
                let (name, got, expected) = (&self.name, order.len(), items.len());
                let message = format!("the placer {name} returned {got} of {expected} positions");
                return Err(Fault::new("placer", message).into());
            }
            Ok(order)
        })
        .map_err(raised)
    }

    fn placer_name(&self) -> &str {
        &self.name
    }
}
