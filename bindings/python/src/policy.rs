//! Policies: the class `Policy`, and policies from names, files and dicts.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cupel::config::{Document, Format, PolicyConfig, presets};
use cupel::{OverflowStrategy, Policy};
use cupel_app::{NamedPolicy, Notice, Source};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString, PyTuple, PyType};

use crate::error::{self, Fault};
use crate::json::{NotFinite, described, reduced, text, to_json, to_python};
use crate::options::several;
use crate::strategy;

/// The name of a policy without one.
const UNNAMED: &str = "of the caller";

/// How a window is chosen: a scorer, a slicer, a placer and settings.
///
/// Args:
///     scorer: How relevant an item is: a name such as `"recency"`, a dict with a `type`, a
///         `Scorer`, or a function of all items that returns one number per item.
///     slicer: What fits: a name such as `"knapsack"`, a dict, a `Slicer`, or a function of the
///         ranked pairs of item and score and the budget that returns positions.
///         Default: `"greedy"`.
///     placer: The order of the window: a name, a dict, a `Placer`, or a function of the pairs
///         that returns a permutation of their positions. Default: `"chronological"`.
///     deduplication: Whether only the best of items with the same text stays. Default: True.
///     overflow_strategy: What happens if pinned and selected items exceed the budget: `"throw"`
///         an error, `"truncate"` to what fits, or `"proceed"` with all. Default: `"throw"`.
///
/// >>> import cupel
/// >>> policy = cupel.Policy("reflexive", {"type": "knapsack", "bucket_size": 1}, "u-shaped")
/// >>> items = [{"content": "a", "tokens": 7, "future_relevance_hint": 0.9},
/// ...          {"content": "b", "tokens": 6, "future_relevance_hint": 0.6}]
/// >>> cupel.select_index(items, 10, policy)
/// [0]
#[pyclass(frozen, module = "cupel", name = "Policy")]
pub(crate) struct PyPolicy {
    pub(crate) policy: Policy,
    /// The name in errors and summaries.
    pub(crate) name: String,
    /// The arguments of the constructor, for a policy that is not data.
    arguments: Option<(Py<PyTuple>, Py<PyDict>)>,
}

/// Reads a policy: the name of a preset, the path of a file, a dict or a `Policy`.
pub(crate) fn read(value: &Bound<'_, PyAny>) -> PyResult<NamedPolicy> {
    if let Ok(policy) = value.cast::<PyPolicy>() {
        return Ok(policy.get().named());
    }
    if let Ok(name) = value.cast::<PyString>() {
        return Ok(NamedPolicy::find(text(name, "policy")?, load)?);
    }
    if let Ok(fields) = value.cast::<PyMapping>() {
        return PyPolicy::from_dict(fields).map(|policy| policy.named());
    }
    if let Ok(path) = value.extract::<PathBuf>() {
        return PyPolicy::from_file(path).map(|policy| policy.named());
    }
    let got = described(value);
    let message = format!("expected a preset, the path of a file, a dict or a Policy, got {got}");
    Err(Fault::new("policy", message).into())
}

/// Reads a list of policies. Each has a name of its own in the answer.
pub(crate) fn read_several(value: &Bound<'_, PyAny>) -> PyResult<Vec<NamedPolicy>> {
    let mut names = BTreeSet::new();
    let policies = several(value, "policies")?.into_iter().zip(1..);
    let policies = policies.map(|(policy, position)| {
        let mut policy = read(&policy)?;
        if policy.name == UNNAMED {
            policy.name = format!("policy {position}");
        }
        if !names.insert(policy.name.clone()) {
            policy.name = format!("{} ({position})", policy.name);
            names.insert(policy.name.clone());
        }
        Ok(policy)
    });
    policies.collect()
}

/// Reads a file as a policy document if the name is a path, not one of a preset.
fn load(name: &str) -> Result<Option<Source>, Fault> {
    let path = Path::new(name);
    let looks_like_a_file = path.components().count() > 1 || path.extension().is_some();
    if !looks_like_a_file && !path.exists() {
        return Ok(None);
    }
    read_file(path).map(Some)
}

fn read_file(path: &Path) -> Result<Source, Fault> {
    let name = path.display().to_string();
    match std::fs::read(path) {
        Ok(bytes) => Ok(Source::from_bytes(name, bytes)?),
        Err(error) => {
            let problem = error.to_string();
            // The number of the system's error means nothing to a reader.
            let problem = problem.split(" (os error").next().unwrap_or_default();
            let message = format!("cannot read {name}: {}", problem.to_lowercase());
            let fault = Fault::new("policy", message);
            Err(match error.kind() {
                ErrorKind::NotFound => fault.help("check the path"),
                ErrorKind::IsADirectory => fault.help("name a file, not a directory"),
                ErrorKind::PermissionDenied => fault.help("check the permissions of the file"),
                _ => fault,
            })
        }
    }
}

/// Returns the policy that an argument names, or the default for items, which is another one for documents with scores.
pub(crate) fn read_for_items(
    value: Option<&Bound<'_, PyAny>>,
    has_scores: bool,
) -> PyResult<NamedPolicy> {
    match value {
        Some(value) => read(value),
        None if has_scores => NamedPolicy::for_documents().map_err(error::raise),
        None => NamedPolicy::for_items().map_err(error::raise),
    }
}

/// Returns the policy for a query. Items have no other query, so a policy that needs one and has none is an
/// error.
pub(crate) fn with_query(
    mut named: NamedPolicy,
    query: Option<&Bound<'_, PyString>>,
) -> PyResult<NamedPolicy> {
    match query {
        Some(query) => {
            warn_of_unread_query(query.py(), &named)?;
            named.policy = named.policy.with_query(text(query, "query")?);
            Ok(named)
        }
        None if named.policy.needs_query() => {
            let message = format!("the policy {} needs a query", named.name);
            Err(Fault::new("", message).help("pass query=\"...\"").into())
        }
        None => Ok(named),
    }
}

/// Warns if no scorer of a policy reads the query that is given.
pub(crate) fn warn_of_unread_query(py: Python<'_>, named: &NamedPolicy) -> PyResult<()> {
    if named.policy.needs_query() {
        return Ok(());
    }
    let policies = vec![named.name.clone()];
    error::warn(py, &Notice::UnreadQuery { policies })
}

/// Returns the names of the built-in policies. docs/policies.md says what each is for.
///
/// >>> import cupel
/// >>> "agent" in cupel.presets()
/// True
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
            policy: builder.build().map_err(error::raise)?,
            name: UNNAMED.to_owned(),
            arguments: Some((arguments.unbind(), options.unbind())),
        })
    }

    /// Returns a preset: one of the names of `presets()`.
    ///
    /// >>> import cupel
    /// >>> cupel.Policy.preset("rag").name
    /// 'rag'
    #[staticmethod]
    fn preset(name: &Bound<'_, PyString>) -> PyResult<Self> {
        let name = text(name, "name")?;
        let policy = Policy::preset(name).map_err(|fault| error::config(fault, "policy"))?;
        Ok(Self::data(policy, name))
    }

    /// Builds a policy from its fields, as in a policy document.
    ///
    /// >>> import cupel
    /// >>> cupel.Policy.from_dict({"name": "mine", "scorer": {"type": "recency"}}).name
    /// 'mine'
    #[staticmethod]
    fn from_dict(fields: &Bound<'_, PyMapping>) -> PyResult<Self> {
        let json = to_json(fields.as_any(), "policy", NotFinite::Text)?;
        let document = Document::parse(&json, Format::Json);
        let policy = document.and_then(|document| {
            let config = document.policy_config()?;
            let name = config.name.clone();
            Ok((config.build()?, name))
        });
        let (policy, name) = policy.map_err(|fault| error::config(fault, "policy"))?;
        Ok(Self::data(policy, name.as_deref().unwrap_or(UNNAMED)))
    }

    /// Reads a policy document: JSON, TOML or YAML.
    ///
    /// >>> import cupel
    /// >>> cupel.Policy.from_file("examples/policy.toml").needs_query
    /// False
    #[staticmethod]
    fn from_file(path: PathBuf) -> PyResult<Self> {
        let source = read_file(&path)?;
        let config = source.policy().map_err(error::raise)?;
        let NamedPolicy { name, policy } =
            NamedPolicy::of_config(source.name, &config).map_err(error::raise)?;
        Ok(Self::data(policy, &name))
    }

    /// Returns the fields of a policy document. One with functions of Python has none: an error.
    ///
    /// >>> import cupel
    /// >>> cupel.Policy("recency").to_dict()["scorer"]
    /// {'type': 'recency'}
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let config = PolicyConfig::of(&self.policy);
        let config = config.map_err(|fault| error::config(fault, "policy"))?;
        to_python(py, &serde_json::to_value(config).unwrap_or_default())
    }

    /// Returns this policy for a question, which scorers such as `relevance` read.
    ///
    /// >>> import cupel
    /// >>> cupel.Policy.preset("memory").with_query("Where are my keys?").needs_query
    /// False
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
    fn named(&self) -> NamedPolicy {
        NamedPolicy::new(&*self.name, self.policy.clone())
    }

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
