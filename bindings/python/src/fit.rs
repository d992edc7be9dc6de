//! `fit` and `Session` for `_fit.py`: a chat as JSON in, the messages of the window by position out.

use std::sync::{Mutex, MutexGuard, TryLockError};

use cupel::SelectionReport;
use cupel_app::{
    DroppedMessages, Error, Fit, Notice, Prepared, PreparedSession, ReadOptions, Scope, Source,
    WindowMessage, count,
};
use cupel_chat::{CacheMark, Chat, FitState};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::callback;
use crate::error::{self, Fault};
use crate::json::{NotFinite, answer, described, text, to_json};
use crate::options::{self, Asked};
use crate::selection::{FittedChat, Report};
use crate::spans::{Span, traced};

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

/// Why a chat is not fitted.
enum Stopped {
    Error(Error),
    /// What a function of the caller raised.
    Raised(PyErr),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Asks a function of the caller for a summary. It gets the JSON pointer of the list with the messages, the first
/// position and the one after the last, and the name of the summary.
fn summary_of(
    summarize: &Py<PyAny>,
    list: Option<&str>,
    dropped: &DroppedMessages,
) -> PyResult<String> {
    Python::attach(|py| {
        let positions = &dropped.positions;
        let arguments = (list, positions.start, positions.end, &dropped.key);
        let returned = callback::run(|| summarize.bind(py).call1(arguments))?;
        match returned.cast::<PyString>() {
            Ok(summary) => Ok(text(summary, "summarize")?.to_owned()),
            Err(_) => {
                let got = described(&returned);
                let message = format!("the function returned {got}, expected a text");
                Err(Fault::new("summarize", message).into())
            }
        }
    })
}

/// Fits a chat or items. `author` names the function that summarizes. Each message of the window is a position, a position with new texts by path, or a new
/// message.
#[pyfunction]
#[pyo3(signature = (chat, parameters, others, session=None, author=""))]
pub(crate) fn fit<'py>(
    py: Python<'py>,
    chat: &Bound<'py, PyAny>,
    parameters: &Bound<'py, PyDict>,
    others: &Bound<'py, PyDict>,
    session: Option<&Bound<'py, Session>>,
    author: &str,
) -> PyResult<Fitted<'py>> {
    let asked = options::read(parameters, others)?;
    let source = Source::new("messages", to_json(chat, "messages", NotFinite::Refuse)?);
    let mut held = session.map(|session| session.get().lock()).transpose()?;
    // Summaries are made in a session; without one of the caller they are remembered for this call only.
    let mut own = asked
        .summarize
        .as_ref()
        .map(|_| cupel_app::Session::default());
    let window = traced(py, |span| {
        let window = match held.as_deref_mut().or(own.as_mut()) {
            Some(session) => {
                py.detach(|| Window::of_session(source, &asked, session, author, span))
            }
            None => py.detach(|| Window::of_chat(source, &asked, span)),
        };
        window.map_err(|stopped| match stopped {
            Stopped::Raised(raised) => raised,
            Stopped::Error(error) => asked.error(error),
        })
    })?;
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
    fn of_chat(source: Source, asked: &Asked, span: Option<&Span>) -> Result<Self, Stopped> {
        let prepared = Prepared::new(source.clone(), &asked.options, Scope::OneBudget)?;
        let fit = prepared.fit()?;
        asked.check().map_err(Stopped::Raised)?;
        let (answer, messages, marks) = (fit.answer(), fit.messages(), fit.cache_marks());
        let (scores, ranks) = (fit.scores(), fit.ranks());
        let Fit { run, fitted, .. } = fit;
        let report = fitted.map_or(run.report, |fitted| fitted.report);
        if let Some(span) = span {
            let tokens = (answer.tokens_before, answer.tokens_after);
            span.record(&report, &prepared.setting.budget, tokens);
        }
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
                options: asked.options.clone(),
                counter: asked.counter.clone(),
            },
        })
    }

    fn of_session(
        source: Source,
        asked: &Asked,
        session: &mut cupel_app::Session,
        author: &str,
        span: Option<&Span>,
    ) -> Result<Self, Stopped> {
        let prepared = PreparedSession::new(source.clone(), &asked.options)?;
        let list = prepared.chat.list_pointer();
        // A counter that raised has counted the rest as 0, and a session would remember that.
        let before = asked.counter.is_some().then(|| session.state().clone());
        let window = match &asked.summarize {
            Some(summarize) => prepared.fit_summarized(session, author, |dropped| {
                // No summary of a window that is of no use.
                let summary = asked
                    .check()
                    .and_then(|()| summary_of(summarize, list, dropped));
                summary.map_err(Stopped::Raised)
            }),
            None => prepared.fit(session).map_err(Stopped::Error),
        };
        if let Err(raised) = asked.check() {
            *session = cupel_app::Session::resume(before.unwrap_or_default());
            return Err(Stopped::Raised(raised));
        }
        let window = window?;
        let answer = prepared.answer(&window);
        if let Some(span) = span {
            let tokens = (answer.tokens_before, answer.tokens_after);
            span.record(&window.fitted.report, &prepared.setting.budget, tokens);
        }
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
                options: asked.options.clone(),
                counter: asked.counter.clone(),
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
