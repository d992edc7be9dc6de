//! The subcommands for a program that embeds them: input from memory, answers as values.

use std::cell::RefCell;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use clap::Parser as _;
use cupel::{
    ContextBudget, ContextItem, CupelError, Decisions, Policy, SelectionReport, total_tokens,
};
use cupel_chat::{
    Chat, FitState, Fitted, FittedMessage, Fitter, InvalidState, SessionWindow, TokenCounter,
};
use serde_json::Value;

use crate::args::{Cli, FitLine};
use crate::budget::invalid;
use crate::counting::Counter;
use crate::decision::Answer;
use crate::failure::{Failure, Problem};
use crate::output::Output;
use crate::task::{NamedPolicy, SessionTask};

/// A subcommand with its arguments, for a program that embeds it.
///
/// ```
/// use cupel_cli::Call;
///
/// let call = Call::new(["count", "-"]).input("chat", r#"[{"role": "user", "content": "Hello!"}]"#);
/// let answer: serde_json::Value = serde_json::from_str(&call.answer()?).unwrap();
/// assert_eq!(answer["total"]["o200k_base"], 9);
///
/// let problem = Call::new(["fit", "-", "--budget", "1,000"]).input("chat", "[]").answer().unwrap_err();
/// assert_eq!(problem.json()["error"]["exit_code"], 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Call {
    arguments: Vec<OsString>,
    context: CallContext,
}

/// The input, the policies and the stop check of a call, in place of those of the process.
#[derive(Default)]
struct CallContext {
    /// The text of standard input, and its name in answers.
    input: Option<(String, String)>,
    /// Policies by name.
    policies: Vec<(String, Policy)>,
    /// Returns whether the call is to stop.
    is_stopped: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl std::fmt::Debug for CallContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallContext")
            .field("input", &self.input)
            .field("policies", &self.policies)
            .finish_non_exhaustive()
    }
}

thread_local! {
    static CONTEXT: RefCell<CallContext> = RefCell::default();
}

/// Returns the name and the text of standard input, if `path` is `-` and the program gives one.
pub(crate) fn input(path: &Path) -> Option<(String, String)> {
    if path != Path::new("-") {
        return None;
    }
    CONTEXT.with_borrow_mut(|it| it.input.take())
}

/// Returns a policy that the program gives.
pub(crate) fn policy(name: &str) -> Option<Policy> {
    CONTEXT.with_borrow(|it| {
        let found = it.policies.iter().find(|(given, _)| given == name);
        found.map(|(_, policy)| policy.clone())
    })
}

/// Returns whether the program stops the call.
pub(crate) fn is_stopped() -> bool {
    // Called after the borrow ends: it may start another call, which borrows again.
    let is_stopped = CONTEXT.with_borrow(|it| it.is_stopped.clone());
    is_stopped.is_some_and(|is_stopped| is_stopped())
}

impl Call {
    /// Creates a call of a subcommand.
    pub fn new<A: Into<OsString>>(arguments: impl IntoIterator<Item = A>) -> Self {
        let name = [OsString::from("cupel")].into_iter();
        Self {
            arguments: name.chain(arguments.into_iter().map(Into::into)).collect(),
            context: CallContext::default(),
        }
    }

    /// Sets the text that `-` reads, and its name in errors and pages.
    pub fn input(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.context.input = Some((name.into(), text.into()));
        self
    }

    /// Gives a policy a name, for `--policy` and other arguments that name one. It takes precedence over
    /// presets and files.
    pub fn policy(mut self, name: impl Into<String>, policy: Policy) -> Self {
        self.context.policies.push((name.into(), policy));
        self
    }

    /// Stops `sweep`, `min-budget`, `eval` and `eval tune` once `is_stopped` returns `true`. It is called between
    /// runs, at most every 50 ms, in the thread of the call. A stopped search over budgets answers for those up to
    /// that point; `eval` fails.
    pub fn stopped_by(mut self, is_stopped: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.context.is_stopped = Some(Arc::new(is_stopped));
        self
    }

    /// Runs the subcommand and returns what it writes to standard output with `--json`.
    ///
    /// # Errors
    ///
    /// The problem that the command reports.
    pub fn answer(self) -> Result<String, Box<Problem>> {
        self.answer_with_warnings().map(|(answer, _)| answer)
    }

    /// Runs the subcommand and returns what [`Call::answer`] does, and the warnings: settings without effect.
    ///
    /// # Errors
    ///
    /// The problem that the command reports.
    pub fn answer_with_warnings(self) -> Result<(String, Vec<String>), Box<Problem>> {
        self.run(
            |arguments| Cli::try_parse_from(arguments),
            |cli| {
                let mut output = Output::in_memory();
                cli.command.run(&mut output)?;
                Ok(output.into_answer())
            },
        )
    }

    /// Runs `fit` and returns the messages of the window by position. With a session, its decisions are
    /// remembered.
    ///
    /// # Errors
    ///
    /// The problem that the command reports.
    pub fn fit(self, session: Option<&mut Session>) -> Result<FitAnswer, Box<Problem>> {
        self.run(
            |arguments| FitLine::try_parse_from(&arguments[1..]),
            |line| line.fit.answer(session),
        )
    }

    /// Checks the arguments of `fit` without an input.
    ///
    /// # Errors
    ///
    /// The problem that the command reports.
    pub fn check_fit(self) -> Result<(), Box<Problem>> {
        self.run(
            |arguments| FitLine::try_parse_from(&arguments[1..]),
            |line| line.fit.check(),
        )
    }

    fn run<L, T>(
        self,
        parse: impl FnOnce(&[OsString]) -> Result<L, clap::Error>,
        run: impl FnOnce(L) -> Result<T, Failure>,
    ) -> Result<T, Box<Problem>> {
        let line =
            parse(&self.arguments).map_err(|error| Box::new(Problem::usage(&error.to_string())))?;
        // Reentrant: a strategy of the program may start another call.
        let outer = CONTEXT.replace(self.context);
        let result = catch_unwind(AssertUnwindSafe(|| run(line)));
        CONTEXT.set(outer);
        let result = result.unwrap_or_else(|_| Err(Failure::internal("the command panicked")));
        result.map_err(into_problem)
    }
}

/// Finds a policy by the name of a preset or the path of a file, as `--policy` does.
///
/// # Errors
///
/// The problem that the command reports.
pub fn find_policy(name: &str) -> Result<Policy, Box<Problem>> {
    let found = NamedPolicy::find(name).map_err(into_problem)?;
    Ok(found.policy)
}

/// Parses a budget such as `8k`, or `50%` of the context window of a model.
///
/// # Errors
///
/// The problem that the command reports.
pub fn parse_budget(text: &str, window: Option<i64>) -> Result<ContextBudget, Box<Problem>> {
    let tokens = cupel_chat::parse_budget(text, window);
    let tokens = tokens.map_err(|error| into_problem(invalid("--budget", &error)))?;
    ContextBudget::try_from(tokens).map_err(|error| run_problem(&error))
}

/// Returns the token counter of a name such as `o200k` or `heuristic`.
///
/// # Errors
///
/// What the command says about `--encoding`.
pub fn parse_counter(name: &str) -> Result<Box<dyn TokenCounter>, String> {
    name.parse().map(Counter::boxed)
}

/// Returns the warning for a query that no scorer of a policy reads.
pub fn unread_query(policy: &str) -> String {
    format!("--query has no effect: no scorer of the policy {policy} reads it")
}

/// Returns the warning for items of which none has a timestamp and not all fit, if a policy ranks them by time
/// above all.
pub fn missing_times(
    items: &[ContextItem],
    budget: &ContextBudget,
    policy: &Policy,
) -> Option<String> {
    let has_times = items.iter().any(|item| item.timestamp().is_some());
    if has_times || total_tokens(items) <= budget.target_tokens() {
        return None;
    }
    no_times(policy)
}

/// Returns the warning for a log without timestamps, if a policy ranks items by time above all.
pub fn no_times(policy: &Policy) -> Option<String> {
    policy.scorer().ranks_by_time().then(|| {
        "no item has a timestamp, by which the policy ranks: all items are equally old".to_owned()
    })
}

/// Returns the error of a run as the command reports it.
pub fn run_problem(error: &CupelError) -> Box<Problem> {
    into_problem(Failure::run(error))
}

/// Returns what `select --json` prints for a run.
///
/// # Errors
///
/// The problem that the command reports.
pub fn select_document(
    decisions: &Decisions<'_>,
    report: &SelectionReport,
) -> Result<Value, Box<Problem>> {
    serde_json::to_value(Answer::of(decisions, Some(report)))
        .map_err(|error| into_problem(Failure::internal(error.to_string())))
}

fn into_problem(failure: Failure) -> Box<Problem> {
    match failure {
        Failure::Problem(problem) => problem,
        Failure::ClosedPipe => Box::new(Problem::usage("the output is closed")),
    }
}

/// What [`Call::fit`] decides.
#[derive(Debug)]
#[non_exhaustive]
pub struct FitAnswer {
    /// What `fit --json` prints, without the chat.
    pub document: Value,
    /// The messages of the window, in order.
    pub messages: Vec<WindowMessage>,
    /// The JSON pointer of the list that has the messages; `None` if there is one message per line.
    pub list: Option<String>,
    /// The report of the run.
    pub report: SelectionReport,
    /// The score of every message or item.
    pub scores: Vec<f64>,
    /// The rank of every message or item, from 0; `None` for one that was not ranked.
    pub ranks: Vec<Option<usize>>,
    /// Settings without effect, and guesses.
    pub notes: Vec<String>,
}

/// A message of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowMessage {
    /// The message at this position of the input.
    Original(usize),
    /// The message at this position with other texts, each with its path; see
    /// [`FittedMessage::Changed`].
    Changed(usize, Vec<(String, String)>),
    /// A new message, as JSON.
    New(String),
}

impl FitAnswer {
    /// Returns the answer of a trimmed chat.
    pub(crate) fn of_chat(
        chat: &Chat,
        document: Value,
        fitted: Fitted<'_>,
        notes: Vec<String>,
    ) -> Self {
        let messages = fitted.messages().into_iter().map(WindowMessage::from);
        Self {
            document,
            messages: messages.collect(),
            list: chat.list_pointer().map(str::to_owned),
            report: fitted.report,
            scores: fitted.scores,
            ranks: fitted.ranks,
            notes,
        }
    }
}

impl From<FittedMessage<'_>> for WindowMessage {
    fn from(message: FittedMessage<'_>) -> Self {
        match message {
            FittedMessage::Changed { index, texts } => {
                let texts = texts.into_iter();
                let texts = texts.map(|(path, text)| (path.to_owned(), text));
                Self::Changed(index, texts.collect())
            }
            FittedMessage::Marker { json, .. } => Self::New(json.to_owned()),
            FittedMessage::Original(index) => Self::Original(index),
        }
    }
}

/// The decisions of earlier turns, for the windows of a growing chat; see [`Fitter`].
#[derive(Debug, Default)]
pub struct Session {
    fitter: Option<Fitter>,
    state: FitState,
}

impl Session {
    /// Continues a session.
    ///
    /// # Errors
    ///
    /// [`InvalidState`] if the text is not a state.
    pub fn resume(state: &str) -> Result<Self, InvalidState> {
        Ok(Self {
            fitter: None,
            state: FitState::from_json(state)?,
        })
    }

    /// Returns the state as JSON.
    pub fn state(&self) -> String {
        self.fitter
            .as_ref()
            .map_or(&self.state, Fitter::state)
            .to_json()
    }

    /// Fits a chat.
    pub(crate) fn fit<'t>(&mut self, task: &'t SessionTask) -> Result<SessionWindow<'t>, Failure> {
        let fitter = self
            .fitter
            .get_or_insert_with(|| Fitter::resume(task.policy.policy.clone(), self.state.clone()));
        let window = fitter.fit(&task.chat, &task.budget, &*task.counter);
        window.map_err(|error| task.failure(&error))
    }
}
