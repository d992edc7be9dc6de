//! The command in this process: `python -m cupel`, and its answers for `_commands.py` and `_fit.py`.

use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use cupel_chat::{Chat, Encoding, Heuristic, Model, TokenCounter};
use cupel_cli::{Call, WindowMessage, parse_counter};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::error::{self, Fault};
use crate::json::{NotFinite, text, to_json, to_python};
use crate::policy;
use crate::selection::Report;
use crate::strategy::{keep_raised, take_raised};

/// The name of the caller's policy in a call.
pub(crate) const POLICY: &str = "of the caller";

/// Runs the command line and returns its exit status.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| cupel_cli::main(arguments))
}

/// Returns whether a signal handler raised, such as that of Ctrl-C. The exception is kept.
fn is_interrupted() -> bool {
    Python::attach(|py| match py.check_signals() {
        Ok(()) => false,
        Err(raised) => {
            keep_raised(raised);
            true
        }
    })
}

/// Runs a subcommand. `input` is what `-` reads, `policies` are the policies by name. Returns what it prints
/// with `--json`.
#[pyfunction]
#[pyo3(signature = (arguments, input=None, policies=None))]
pub(crate) fn command<'py>(
    py: Python<'py>,
    arguments: Vec<String>,
    input: Option<String>,
    policies: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let root = if input.is_some() { "data" } else { "" };
    let mut call = Call::new(arguments);
    if let Some(input) = input {
        call = call.input(root, input);
    }
    for (name, value) in policies.into_iter().flatten() {
        let name: String = name.extract()?;
        call = call.policy(name, policy::read(&value)?.0);
    }
    let call = call.stopped_by(is_interrupted);
    let answer = py.detach(|| call.answer_with_warnings());
    if let Some(raised) = take_raised() {
        return Err(raised);
    }
    let (answer, warnings) = answer.map_err(|problem| error::problem(py, &problem, root))?;
    for warning in warnings {
        error::warn(py, &warning)?;
    }
    let answer = serde_json::from_str(&answer)
        .map_err(|fault| Fault::new("", format!("the answer is not JSON: {fault}")))?;
    to_python(py, &answer)
}

/// Checks the arguments of `cupel fit`, without the subcommand.
#[pyfunction]
pub(crate) fn check_fit(py: Python<'_>, arguments: Vec<String>) -> PyResult<()> {
    let line = ["fit".to_owned()].into_iter().chain(arguments);
    let checked = Call::new(line).check_fit();
    checked.map_err(|problem| error::problem(py, &problem, ""))
}

/// Writes a value as JSON. `path` names it in errors.
#[pyfunction]
pub(crate) fn dumps(value: &Bound<'_, PyAny>, path: &str) -> PyResult<String> {
    to_json(value, path, NotFinite::Text)
}

/// Remembers the decisions of earlier turns.
#[pyclass(frozen, module = "cupel._cupel")]
pub(crate) struct Session(Mutex<cupel_cli::Session>);

impl Session {
    /// Returns the session. It is an error if it is in use: by another thread, or by the caller of a strategy
    /// that uses it.
    fn lock(&self) -> PyResult<MutexGuard<'_, cupel_cli::Session>> {
        match self.0.try_lock() {
            Ok(session) => Ok(session),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(Fault::new("", "this Fitter is fitting a chat already")
                    .help("use one Fitter per conversation")
                    .into())
            }
        }
    }
}

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (state=None))]
    fn new(state: Option<&Bound<'_, PyString>>) -> PyResult<Self> {
        match state {
            None => Ok(Self(Mutex::default())),
            Some(state) => cupel_cli::Session::resume(text(state, "state")?)
                .map(|session| Self(Mutex::new(session)))
                .map_err(|fault| Fault::new("state", fault.to_string()).into()),
        }
    }

    /// Returns the state as JSON.
    fn state(&self) -> PyResult<String> {
        Ok(self.lock()?.state())
    }
}

/// Returns the format of messages, such as `openai`.
#[pyfunction]
pub(crate) fn shape_of(py: Python<'_>, messages: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    let json = to_json(messages, "messages", NotFinite::Refuse)?;
    // The command has the text of the error.
    let call = || Call::new(["count", "-"]).input("messages", &json).answer();
    match Chat::parse(&json, None) {
        Ok(chat) => Ok(chat.shape().name()),
        Err(fault) => Err(match call() {
            Err(problem) => error::problem(py, &problem, "messages"),
            Ok(_) => Fault::new("messages", fault.to_string()).into(),
        }),
    }
}

/// The answer of `cupel fit` without the chat, the messages of the window, the JSON pointer of the list with
/// the messages, the report, and notes.
type Fitted<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyList>,
    Option<String>,
    Report,
    Vec<String>,
);

/// Runs `cupel fit`. Each message of the window is a position, a position with new texts by path, or a new
/// message.
#[pyfunction]
#[pyo3(signature = (arguments, chat, policy=None, session=None))]
pub(crate) fn fit<'py>(
    py: Python<'py>,
    mut arguments: Vec<String>,
    chat: &Bound<'py, PyAny>,
    policy: Option<&Bound<'py, PyAny>>,
    session: Option<&Bound<'py, Session>>,
) -> PyResult<Fitted<'py>> {
    let input = to_json(chat, "messages", NotFinite::Refuse)?;
    let policy = policy
        .map(policy::read)
        .transpose()?
        .map(|(policy, _)| policy);
    if policy.is_some() {
        arguments.push(format!("--policy={POLICY}"));
    }
    let line = ["fit".to_owned()]
        .into_iter()
        .chain(arguments.iter().cloned());
    let mut call = Call::new(line).input("messages", &input);
    if let Some(policy) = &policy {
        call = call.policy(POLICY, policy.clone());
    }
    let answer = match session {
        Some(session) => {
            let session = &mut *session.get().lock()?;
            py.detach(|| call.fit(Some(session)))
        }
        None => py.detach(|| call.fit(None)),
    };
    let answer = answer.map_err(|problem| error::problem(py, &problem, "messages"))?;
    let messages = PyList::empty(py);
    for message in &answer.messages {
        match message {
            WindowMessage::Original(index) => messages.append(index)?,
            WindowMessage::Changed(index, texts) => messages.append((index, texts.clone()))?,
            WindowMessage::New(json) => messages.append(json)?,
        }
    }
    let document = to_python(py, &answer.document)?;
    let (notes, list) = (answer.notes.clone(), answer.list.clone());
    let is_session = session.is_some() || arguments.iter().any(|it| it.starts_with("--state"));
    if is_session {
        // `explain` has no `--state`: the page shows this window with the policy `session`.
        arguments.retain(|argument| !argument.starts_with("--state"));
        if !arguments
            .iter()
            .any(|argument| argument.starts_with("--policy"))
        {
            arguments.push("--policy=session".to_owned());
        }
    }
    let report = Report::of_fit(answer, arguments, input, policy);
    Ok((document, messages, list, report, notes))
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

/// Returns the counter of an encoding or of a model; that of `o200k_base` by default.
pub(crate) fn counter(
    model: Option<&str>,
    encoding: Option<&str>,
) -> PyResult<Arc<dyn TokenCounter>> {
    let encoding = match (encoding, model) {
        (Some(name), _) => {
            let counter = parse_counter(name).map_err(|fault| Fault::new("encoding", fault))?;
            return Ok(Arc::from(counter));
        }
        (None, Some(name)) => {
            let model = Model::find(name);
            let model = model.map_err(|fault| Fault::new("model", fault.to_string()))?;
            model.encoding
        }
        (None, None) => Some(Encoding::O200k),
    };
    Ok(match encoding {
        Some(encoding) => Arc::new(encoding),
        None => Arc::new(Heuristic),
    })
}
