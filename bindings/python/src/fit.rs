//! `fit` and `Session` for `_fit.py`: a chat as JSON in, the messages of the window by position out.

use std::sync::{Mutex, MutexGuard, TryLockError};

use cupel::SelectionReport;
use cupel_app::{
    Error, Fit, Notice, Options, Prepared, PreparedSession, ReadOptions, Scope, Source,
    WindowMessage, count,
};
use cupel_chat::{CacheMark, Chat, FitState};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::error::{self, Fault};
use crate::json::{NotFinite, answer, text, to_json};
use crate::options;
use crate::selection::{FittedChat, Report};

/// Remembers the decisions of earlier turns.
#[pyclass(frozen, module = "cupel._cupel")]
pub(crate) struct Session(Mutex<cupel_app::Session>);

impl Session {
    /// Returns the session. It is an error if it is in use: by another thread, or by the caller of a strategy
    /// that uses it.
    fn lock(&self) -> PyResult<MutexGuard<'_, cupel_app::Session>> {
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
        let state = match state {
            Some(state) => FitState::from_json(text(state, "state")?),
            None => Ok(FitState::default()),
        };
        let state = state.map_err(|fault| Fault::new("state", fault.to_string()))?;
        Ok(Self(Mutex::new(cupel_app::Session::resume(state))))
    }

    /// Returns the state as JSON.
    fn state(&self) -> PyResult<String> {
        Ok(self.lock()?.state().to_json())
    }
}

/// Checks the options of `fit` before there is a chat.
#[pyfunction]
pub(crate) fn check_fit(
    parameters: &Bound<'_, PyDict>,
    others: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let given = options::read(parameters, others)?;
    given.options.check().map_err(error::raise)
}

/// Returns the format of messages, such as `openai`.
#[pyfunction]
pub(crate) fn shape_of(messages: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    let json = to_json(messages, "messages", NotFinite::Refuse)?;
    match Chat::parse(&json, None) {
        Ok(chat) => Ok(chat.shape().name()),
        Err(fault) => {
            // Counting nothing with no counter reads the chat, and its error has the place.
            let source = Source::new("messages", json);
            let read = count(&source, &ReadOptions::default(), &[]);
            Err(match read {
                Err(error) => error::raise(error),
                Ok(_) => Fault::new("messages", fault.to_string()).into(),
            })
        }
    }
}

/// The answer without the chat, the messages of the window, the cache breakpoints to put into it, the JSON pointer of
/// the list with the messages, and the report.
type Fitted<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyList>,
    Vec<Mark>,
    Option<String>,
    Report,
);

/// A cache breakpoint: the position of the message in the window, or None for the request; the path to put it at; and
/// its JSON.
type Mark = (Option<usize>, String, String);

/// A window, and what the chat is rebuilt from.
struct Window {
    fitted: FittedChat,
    messages: Vec<WindowMessage>,
    marks: Vec<CacheMark>,
    list: Option<String>,
    notices: Vec<Notice>,
}

/// Fits a chat or items. Each message of the window is a position, a position with new texts by path, or a new
/// message.
#[pyfunction]
#[pyo3(signature = (chat, parameters, others, session=None))]
pub(crate) fn fit<'py>(
    py: Python<'py>,
    chat: &Bound<'py, PyAny>,
    parameters: &Bound<'py, PyDict>,
    others: &Bound<'py, PyDict>,
    session: Option<&Bound<'py, Session>>,
) -> PyResult<Fitted<'py>> {
    let options = options::read(parameters, others)?.options;
    let source = Source::new("messages", to_json(chat, "messages", NotFinite::Refuse)?);
    let window = match session {
        Some(session) => {
            let session = &mut *session.get().lock()?;
            py.detach(|| Window::of_session(source, options, session))
        }
        None => py.detach(|| Window::of_chat(source, options)),
    };
    let window = window.map_err(error::raise)?;
    let messages = PyList::empty(py);
    for message in window.messages {
        match message {
            WindowMessage::Original(index) => messages.append(index)?,
            WindowMessage::Changed(index, texts) => messages.append((index, texts))?,
            WindowMessage::New(json) => messages.append(json)?,
        }
    }
    let document = answer(py, &window.fitted.answer)?;
    for notice in &window.notices {
        error::warn(py, notice)?;
    }
    let marks = window.marks.into_iter();
    let marks = marks.map(|mark| (mark.message, mark.path, mark.json));
    Ok((
        document,
        messages,
        marks.collect(),
        window.list,
        Report::of_fit(window.fitted),
    ))
}

impl Window {
    fn of_chat(source: Source, options: Options) -> Result<Self, Error> {
        let prepared = Prepared::new(source.clone(), &options, Scope::OneBudget)?;
        let fit = prepared.fit()?;
        let (answer, messages, marks) = (fit.answer(), fit.messages(), fit.cache_marks());
        let (scores, ranks) = (fit.scores(), fit.ranks());
        let Fit { run, fitted, .. } = fit;
        let report = fitted.map_or(run.report, |fitted| fitted.report);
        Ok(Self {
            messages,
            marks,
            list: prepared.list_pointer().map(str::to_owned),
            notices: prepared.setting.all_notices(),
            fitted: FittedChat {
                answer,
                report: without_times(report),
                scores,
                ranks,
                source,
                options,
            },
        })
    }

    fn of_session(
        source: Source,
        options: Options,
        session: &mut cupel_app::Session,
    ) -> Result<Self, Error> {
        let prepared = PreparedSession::new(source.clone(), &options)?;
        let window = prepared.fit(session)?;
        let answer = prepared.answer(&window);
        let messages = window.fitted.messages().into_iter();
        Ok(Self {
            messages: messages.map(WindowMessage::from).collect(),
            marks: window.fitted.cache_marks(),
            list: prepared.chat.list_pointer().map(str::to_owned),
            notices: prepared.setting.all_notices(),
            fitted: FittedChat {
                answer,
                report: without_times(window.fitted.report),
                scores: window.fitted.scores,
                ranks: window.fitted.ranks,
                source,
                options,
            },
        })
    }
}

/// Sets the time of every event to 0, so that equal input gives an equal report.
fn without_times(mut report: SelectionReport) -> SelectionReport {
    for event in &mut report.events {
        event.duration_ms = 0.0;
    }
    report
}
