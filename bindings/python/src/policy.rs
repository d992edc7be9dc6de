//! Policies: the class `Policy`, and policies from names, files and dicts.

use std::path::PathBuf;

use cupel::config::{Document, Format, PolicyConfig, presets};
use cupel::{OverflowStrategy, Policy};
use cupel_cli::{find_policy, unread_query};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString, PyTuple, PyType};

use crate::command::POLICY;
use crate::error::{self, Fault};
use crate::json::{NotFinite, described, reduced, text, to_json, to_python};
use crate::strategy;

/// How a window is chosen: a scorer, a slicer, a placer and settings.
#[pyclass(frozen, module = "cupel", name = "Policy")]
pub(crate) struct PyPolicy {
    pub(crate) policy: Policy,
    /// The name in errors and summaries.
    pub(crate) name: String,
    /// The arguments of the constructor, for a policy that is not data.
    arguments: Option<(Py<PyTuple>, Py<PyDict>)>,
}

/// Reads a policy: the name of a preset, the path of a file, a dict or a `Policy`.
pub(crate) fn read(value: &Bound<'_, PyAny>) -> PyResult<(Policy, String)> {
    let py = value.py();
    if let Ok(policy) = value.cast::<PyPolicy>() {
        let policy = policy.get();
        return Ok((policy.policy.clone(), policy.name.clone()));
    }
    if let Ok(name) = value.cast::<PyString>() {
        let name = text(name, "policy")?;
        let policy = find_policy(name).map_err(|problem| error::problem(py, &problem, ""))?;
        return Ok((policy, name.to_owned()));
    }
    if let Ok(fields) = value.cast::<PyMapping>() {
        let policy = PyPolicy::from_dict(fields)?;
        return Ok((policy.policy, policy.name));
    }
    if let Ok(path) = value.extract::<PathBuf>() {
        let policy = PyPolicy::from_file(py, path)?;
        return Ok((policy.policy, policy.name));
    }
    let got = described(value);
    let message = format!("expected a preset, the path of a file, a dict or a Policy, got {got}");
    Err(Fault::new("policy", message).into())
}

/// Returns the policy for a query. Items have no other query, so a policy that needs one and has none is an
/// error.
pub(crate) fn with_query(
    policy: Policy,
    name: &str,
    query: Option<&Bound<'_, PyString>>,
) -> PyResult<Policy> {
    match query {
        Some(query) => {
            warn_of_unread_query(query.py(), &policy, name)?;
            Ok(policy.with_query(text(query, "query")?))
        }
        None if policy.needs_query() => {
            let message = format!("the policy {name} needs a query");
            Err(Fault::new("", message).help("pass query=\"...\"").into())
        }
        None => Ok(policy),
    }
}

/// Warns if a query has no effect, as the command does.
pub(crate) fn warn_of_unread_query(py: Python<'_>, policy: &Policy, name: &str) -> PyResult<()> {
    if policy.needs_query() {
        return Ok(());
    }
    error::warn(py, &unread_query(name))
}

/// Returns the names of the presets.
#[pyfunction(name = "presets")]
pub(crate) fn preset_names() -> Vec<&'static str> {
    presets().iter().map(cupel::config::Preset::name).collect()
}

fn overflow(name: &str) -> PyResult<OverflowStrategy> {
    Ok(match name {
        "throw" => OverflowStrategy::Throw,
        "truncate" => OverflowStrategy::Truncate,
        "proceed" => OverflowStrategy::Proceed,
        other => {
            let message =
                format!("unknown name `{other}`; expected one of throw, truncate, proceed");
            return Err(Fault::new("overflow_strategy", message).into());
        }
    })
}

#[pymethods]
impl PyPolicy {
    #[new]
    #[pyo3(signature = (scorer, slicer=None, placer=None, *, deduplication=true, overflow_strategy="throw"))]
    fn new<'py>(
        py: Python<'py>,
        scorer: Bound<'py, PyAny>,
        slicer: Option<Bound<'py, PyAny>>,
        placer: Option<Bound<'py, PyAny>>,
        deduplication: bool,
        overflow_strategy: &str,
    ) -> PyResult<Self> {
        let options = PyDict::new(py);
        options.set_item("deduplication", deduplication)?;
        options.set_item("overflow_strategy", overflow_strategy)?;
        let arguments = [Some(scorer.clone()), slicer.clone(), placer.clone()];
        let arguments = PyTuple::new(py, arguments)?;
        let mut builder = Policy::builder()
            .scorer(strategy::scorer(&scorer)?)
            .deduplication(deduplication)
            .overflow_strategy(overflow(overflow_strategy)?);
        builder = match &slicer {
            Some(value) => builder.slicer(strategy::slicer(value)?),
            None => builder.slicer(cupel::GreedySlice),
        };
        builder = match &placer {
            Some(value) => builder.placer(strategy::placer(value)?),
            None => builder.placer(cupel::ChronologicalPlacer),
        };
        Ok(Self {
            policy: builder.build().map_err(|fault| error::run(py, &fault))?,
            name: POLICY.to_owned(),
            arguments: Some((arguments.unbind(), options.unbind())),
        })
    }

    /// Returns a preset.
    #[staticmethod]
    fn preset(py: Python<'_>, name: &Bound<'_, PyString>) -> PyResult<Self> {
        let name = text(name, "name")?;
        let policy = Policy::preset(name).map_err(|fault| error::config(py, &fault, "policy"))?;
        Ok(Self::data(policy, name))
    }

    /// Builds a policy from its fields, as in a policy document.
    #[staticmethod]
    fn from_dict(fields: &Bound<'_, PyMapping>) -> PyResult<Self> {
        let json = to_json(fields.as_any(), "policy", NotFinite::Text)?;
        let document = Document::parse(&json, Format::Json);
        let policy = document.and_then(|document| {
            let config = document.policy_config()?;
            let name = config.name.clone();
            Ok((config.build()?, name))
        });
        let (policy, name) =
            policy.map_err(|fault| error::config(fields.py(), &fault, "policy"))?;
        Ok(Self::data(policy, name.as_deref().unwrap_or(POLICY)))
    }

    /// Reads a policy document: JSON, TOML or YAML.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        // A name without a directory could be a preset.
        let name = match path.components().count() {
            1 => PathBuf::from(".").join(&path),
            _ => path.clone(),
        };
        let policy = find_policy(&name.display().to_string());
        let policy = policy.map_err(|problem| error::problem(py, &problem, ""))?;
        Ok(Self::data(policy, &path.display().to_string()))
    }

    /// Returns the fields of a policy document.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let config = PolicyConfig::of(&self.policy);
        let config = config.map_err(|fault| error::config(py, &fault, "policy"))?;
        to_python(py, &serde_json::to_value(config).unwrap_or_default())
    }

    /// Returns this policy for a question.
    fn with_query(&self, query: &Bound<'_, PyString>) -> PyResult<Self> {
        let policy = self.policy.with_query(text(query, "query")?);
        Ok(Self::data(policy, &self.name))
    }

    /// Whether a scorer needs a question.
    #[getter]
    fn needs_query(&self) -> bool {
        self.policy.needs_query()
    }

    /// The name in errors and summaries.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    fn __repr__(&self) -> String {
        format!("<cupel.{:?}>", self.policy)
    }

    fn __eq__(this: &Bound<'_, Self>, other: &Bound<'_, Self>) -> bool {
        let data = |policy: &Bound<'_, Self>| PolicyConfig::of(&policy.get().policy).ok();
        match (data(this), data(other)) {
            (Some(own), Some(other)) => own == other,
            // Python callables have no equality of their own.
            _ => this.is(other),
        }
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        match (self.to_dict(py), &self.arguments) {
            (Ok(fields), _) => reduced::<Self>(fields),
            (Err(_), Some((arguments, options))) => {
                let restore = py.import("cupel._cupel")?.getattr("_restore_policy")?;
                let arguments = arguments.bind(py).clone().into_any();
                let options = options.bind(py).clone().into_any();
                Ok((restore, PyTuple::new(py, [arguments, options])?))
            }
            (Err(error), None) => Err(error),
        }
    }
}

impl PyPolicy {
    fn data(policy: Policy, name: &str) -> Self {
        Self {
            policy,
            name: name.to_owned(),
            arguments: None,
        }
    }
}

/// Builds a policy again from the arguments of its constructor, for `pickle`.
#[pyfunction(name = "_restore_policy")]
pub(crate) fn restore_policy<'py>(
    arguments: &Bound<'py, PyTuple>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    PyType::new::<PyPolicy>(arguments.py()).call(arguments, Some(options))
}
