//! Budgets: the class `Budget`, and budgets from numbers, strings and dicts.

use std::collections::{BTreeMap, HashMap};

use cupel::config::{Document, Format};
use cupel::{ContextBudget, ContextKind};
use cupel_app::{Amount, BudgetOptions, budget_of};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyMapping, PyString, PyTuple};

use crate::error::{self, Fault};
use crate::json::{NotFinite, described, reduced, text, to_json};
use crate::options::amount;

/// The limits of a window, in tokens.
///
/// Args:
///     max_tokens: The model's context window, 0 or more.
///     target_tokens: The most tokens of the window, at most `max_tokens`. Default: `max_tokens`
///         without the reserve.
///     output_reserve: Tokens for the model's answer, at most `max_tokens`. Default: 0.
///     reserved_slots: Tokens that are kept free for items of a kind, by kind.
///     estimation_safety_margin_percent: What is taken off the limits if tokens are estimates,
///         from 0 to 100. Default: 0.
///
/// >>> import cupel
/// >>> cupel.Budget(8000, output_reserve=1000)
/// Budget(8000, target_tokens=7000, output_reserve=1000)
#[pyclass(frozen, eq, module = "cupel", name = "Budget")]
#[derive(Clone, PartialEq)]
pub(crate) struct Budget(pub(crate) ContextBudget);

#[pymethods]
impl Budget {
    #[new]
    #[pyo3(signature = (max_tokens, *, target_tokens=None, output_reserve=0, reserved_slots=None,
        estimation_safety_margin_percent=0.0))]
    fn new(
        max_tokens: i64,
        target_tokens: Option<i64>,
        output_reserve: i64,
        reserved_slots: Option<HashMap<String, i64>>,
        estimation_safety_margin_percent: f64,
    ) -> PyResult<Self> {
        let slots = reserved_slots.unwrap_or_default().into_iter();
        let slots = slots.map(|(kind, tokens)| Ok((ContextKind::new(kind)?, tokens)));
        let budget = slots.collect::<Result<_, _>>().and_then(|slots| {
            ContextBudget::new(
                max_tokens,
                target_tokens.unwrap_or_else(|| max_tokens.saturating_sub(output_reserve).max(0)),
                output_reserve,
                slots,
                estimation_safety_margin_percent,
            )
        });
        budget.map(Self).map_err(error::raise)
    }

    /// Returns all fields.
    ///
    /// >>> import cupel
    /// >>> cupel.Budget(8000).to_dict()["target_tokens"]
    /// 8000
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("max_tokens", self.0.max_tokens())?;
        fields.set_item("target_tokens", self.0.target_tokens())?;
        fields.set_item("output_reserve", self.0.output_reserve())?;
        fields.set_item("reserved_slots", self.reserved_slots())?;
        let margin = self.0.estimation_safety_margin_percent();
        fields.set_item("estimation_safety_margin_percent", margin)?;
        Ok(fields)
    }

    /// The model's context window.
    #[getter]
    fn max_tokens(&self) -> i64 {
        self.0.max_tokens()
    }

    /// The most tokens of the window.
    #[getter]
    fn target_tokens(&self) -> i64 {
        self.0.target_tokens()
    }

    /// The tokens for the model's answer.
    #[getter]
    fn output_reserve(&self) -> i64 {
        self.0.output_reserve()
    }

    /// The tokens that are kept free, by kind.
    #[getter]
    fn reserved_slots(&self) -> BTreeMap<String, i64> {
        let slots = self.0.reserved_slots().iter();
        slots
            .map(|(kind, tokens)| (kind.as_str().to_owned(), *tokens))
            .collect()
    }

    /// What is taken off the limits if tokens are estimates, from 0 to 100.
    #[getter]
    fn estimation_safety_margin_percent(&self) -> f64 {
        self.0.estimation_safety_margin_percent()
    }

    fn __repr__(&self) -> String {
        let (max, target) = (self.0.max_tokens(), self.0.target_tokens());
        let reserve = self.0.output_reserve();
        format!("Budget({max}, target_tokens={target}, output_reserve={reserve})")
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        reduced::<Self>(self.to_dict(py)?.into_any())
    }

    /// Builds a budget from its fields, as in a request document.
    ///
    /// >>> import cupel
    /// >>> cupel.Budget.from_dict({"max_tokens": 8000, "output_reserve": 1000}).output_reserve
    /// 1000
    #[staticmethod]
    fn from_dict(fields: &Bound<'_, PyAny>) -> PyResult<Self> {
        let budget = to_json(fields, "budget", NotFinite::Text)?;
        let json = format!(r#"{{"items": [], "budget": {budget}}}"#);
        let request = Document::parse(&json, Format::Json).and_then(|it| it.request());
        let request = request.map_err(|fault| error::config(fault, ""))?;
        let missing = || Fault::new("budget", "expected a budget");
        Ok(Self(request.budget.ok_or_else(missing)?))
    }
}

/// Reads the limits of a question: an amount, which may be a share of the model's window, a dict or a `Budget`.
pub(crate) fn limits(value: &Bound<'_, PyAny>) -> PyResult<BudgetOptions> {
    if value.is_instance_of::<PyMapping>() || value.is_instance_of::<Budget>() {
        return read(value).map(|budget| limits_of(&budget));
    }
    Ok(BudgetOptions {
        budget: Some(amount(value, "budget")?),
        ..BudgetOptions::default()
    })
}

fn limits_of(budget: &ContextBudget) -> BudgetOptions {
    let slots = budget.reserved_slots().iter();
    let mut slots: Vec<_> = slots
        .map(|(kind, tokens)| (kind.clone(), *tokens))
        .collect();
    slots.sort();
    BudgetOptions {
        budget: Some(budget.max_tokens().into()),
        target: Some(budget.target_tokens().into()),
        reserve: Some(budget.output_reserve().into()),
        margin: Some(budget.estimation_safety_margin_percent()),
        slots,
        model: None,
    }
}

/// Reads a budget: a number, a string such as `8k`, a dict or a `Budget`.
pub(crate) fn read(value: &Bound<'_, PyAny>) -> PyResult<ContextBudget> {
    read_within(value, None)
}

/// Reads a budget that may be a share of a context window.
pub(crate) fn read_within(
    value: &Bound<'_, PyAny>,
    window: Option<i64>,
) -> PyResult<ContextBudget> {
    let py = value.py();
    if let Ok(budget) = value.cast::<Budget>() {
        return Ok(budget.get().0.clone());
    }
    let is_number = value.hasattr(intern!(py, "__index__"))?;
    if is_number && !value.is_instance_of::<PyBool>() {
        let tokens = value.extract::<i64>();
        let tokens = tokens.map_err(|_| Fault::new("budget", "the number is too large"))?;
        return ContextBudget::try_from(tokens).map_err(error::raise);
    }
    if let Ok(value) = value.cast::<PyString>() {
        let amount = Amount::from(text(value, "budget")?);
        return budget_of(&amount, window).map_err(error::raise);
    }
    if value.is_instance_of::<PyMapping>() {
        return Budget::from_dict(value).map(|budget| budget.0);
    }
    let got = described(value);
    let message = format!(
        "expected a number of tokens, a string such as \"8k\", a dict or a Budget, got {got}"
    );
    Err(Fault::new("budget", message).into())
}
