//! The question `fit`: the input with what fits the budget.

use std::collections::BTreeMap;

use cupel::{ExclusionReason, SelectionReport, total_tokens};
use cupel_chat::{
    CacheBreakpoint, CacheMark, Cuts, Dropped, FitState, Fitted, FittedMessage, Fitter, Marker,
    Rebuilt, Reuse, SessionWindow, Shortened, TokenCounter, Warning,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::error::Error;
use crate::prepared::{Prepared, PreparedSession};
use crate::run::Run;

/// A window: the run that chose it, and the trimmed chat.
pub struct Fit<'p> {
    prepared: &'p Prepared,
    /// The decisions about every candidate, and the report.
    pub run: Run<'p>,
    /// The trimmed chat; `None` for items.
    pub fitted: Option<Fitted<'p>>,
}

/// The answer to `fit`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    // What a session adds is there as a whole or not at all.
    schemars(extend("dependentRequired" = { "reuse": ["rebuilt"], "rebuilt": ["reuse"] }))
)]
pub struct FitAnswer {
    /// The positions of the kept messages or items, in ascending order.
    pub kept: Vec<usize>,
    /// The dropped messages or items, in order.
    pub dropped: Vec<DroppedEntry>,
    /// The kept messages with shortened texts, in order.
    pub shortened: Vec<ShortenedEntry>,
    /// The texts in the place of dropped messages, in order.
    pub markers: Vec<Marker>,
    /// What the provider may reject in the window, and lost cache breakpoints.
    pub warnings: Vec<Warning>,
    /// Where a breakpoint of the provider's prompt cache is worth one, in order; at most four. Empty for items.
    pub cache_breakpoints: Vec<CacheBreakpoint>,
    /// The tokens of the whole request before.
    pub tokens_before: i64,
    /// The tokens of the whole request after.
    pub tokens_after: i64,
    /// The cuts of all requests so far; `None` if the policy has no replay, or if the chat does not exceed the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuts: Option<Cuts>,
    /// What a session adds.
    #[serde(flatten)]
    pub session: Option<SessionAnswer>,
    /// The format of the input, such as `openai` or `items`.
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::ShapeName"))]
    pub shape: &'static str,
    /// The tokens that the window may have.
    pub budget: i64,
    /// The name of the token counter; `None` if the input states all tokens.
    pub counter: Option<String>,
    /// Whether the token counts are estimates.
    pub estimated: bool,
    /// The input with the window in its place, byte for byte where nothing changed; several lines are an array.
    /// `None` unless it was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    pub chat: Option<Box<RawValue>>,
}

/// A dropped message or item.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DroppedEntry {
    /// Its position.
    pub index: usize,
    /// The role of a message as written, or the kind of an item.
    pub role: String,
    /// Its tokens.
    pub tokens: i64,
    /// The reason.
    pub reason: ExclusionReason,
}

/// A kept message with shortened texts.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShortenedEntry {
    /// Its position.
    pub index: usize,
    /// Its role as written.
    pub role: String,
    /// The most tokens that each of its shortened texts may have.
    pub level: i64,
    /// Its tokens.
    pub tokens: i64,
    /// Its tokens before.
    pub original_tokens: i64,
    /// The path of each shortened value and its new text; `None` in an answer without texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub texts: Option<Vec<(String, String)>>,
}

/// What a session adds to the answer.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionAnswer {
    /// What the window shares with the one before it; `None` for the first.
    pub reuse: Option<Reuse>,
    /// Why a part of the state is of no use; `None` if all of it is that of the chat.
    pub rebuilt: Option<Rebuilt>,
}

/// A message of a window, for a caller that has the messages as values of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowMessage {
    /// The message at this position of the input.
    Original(usize),
    /// The message at this position with other texts, each with its path; see [`FittedMessage::Changed`].
    Changed(usize, Vec<(String, String)>),
    /// A new message, as JSON.
    New(String),
}

impl From<&Dropped> for DroppedEntry {
    fn from(dropped: &Dropped) -> Self {
        Self {
            index: dropped.index,
            role: dropped.role.clone(),
            tokens: dropped.tokens,
            reason: dropped.reason.clone(),
        }
    }
}

impl From<&Shortened> for ShortenedEntry {
    fn from(shortened: &Shortened) -> Self {
        Self {
            index: shortened.index,
            role: shortened.role.clone(),
            level: shortened.level,
            tokens: shortened.tokens,
            original_tokens: shortened.original_tokens,
            texts: Some(shortened.texts.clone()),
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

impl Prepared {
    /// Fits the input into the budget.
    ///
    /// # Errors
    ///
    /// [`Fault::Fit`](crate::Fault::Fit) and [`Fault::Run`](crate::Fault::Run).
    pub fn fit(&self) -> Result<Fit<'_>, Error> {
        let run = self.run()?;
        Ok(Fit {
            fitted: self.fitted(&run),
            prepared: self,
            run,
        })
    }

    /// Returns what all answers about a window have in common, for a window that keeps nothing.
    fn described(&self, tokens: (i64, i64)) -> FitAnswer {
        let counter = self.setting.counter.as_deref();
        empty(
            tokens,
            self.shape().name(),
            self.budget().window_limit(),
            counter,
        )
    }
}

fn empty(
    (tokens_before, tokens_after): (i64, i64),
    shape: &'static str,
    budget: i64,
    counter: Option<&dyn TokenCounter>,
) -> FitAnswer {
    FitAnswer {
        kept: Vec::new(),
        dropped: Vec::new(),
        shortened: Vec::new(),
        markers: Vec::new(),
        warnings: Vec::new(),
        cache_breakpoints: Vec::new(),
        tokens_before,
        tokens_after,
        cuts: None,
        session: None,
        shape,
        budget,
        counter: counter.map(|counter| counter.name().to_owned()),
        estimated: counter.is_some_and(TokenCounter::is_estimate),
        chat: None,
    }
}

impl FitAnswer {
    /// Fills in the window of a chat.
    fn of_chat(self, fitted: &Fitted<'_>) -> Self {
        Self {
            kept: fitted.kept.clone(),
            dropped: fitted.dropped.iter().map(DroppedEntry::from).collect(),
            shortened: fitted.shortened.iter().map(ShortenedEntry::from).collect(),
            markers: fitted.markers.clone(),
            warnings: fitted.warnings.clone(),
            cuts: fitted.cuts.clone(),
            cache_breakpoints: fitted.breakpoints.clone(),
            ..self
        }
    }

    /// Leaves out the texts of shortened messages.
    pub fn without_texts(mut self) -> Self {
        for shortened in &mut self.shortened {
            shortened.texts = None;
        }
        self
    }

    /// Adds the chat as it is written.
    ///
    /// # Errors
    ///
    /// [`Fault::Internal`](crate::Fault::Internal) if the text is not JSON.
    pub fn with_chat(mut self, text: &str) -> Result<Self, Error> {
        self.chat = Some(raw(text)?);
        Ok(self)
    }
}

/// Returns a text with one or more JSON values as one value: several are an array. The bytes of each value stay:
/// parsing would change large numbers and the order of keys.
fn raw(text: &str) -> Result<Box<RawValue>, Error> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let values: Vec<&RawValue> = values.collect::<Result<_, _>>().map_err(Error::internal)?;
    if let [value] = values[..] {
        return Ok(value.to_owned());
    }
    let values: Vec<&str> = values.into_iter().map(RawValue::get).collect();
    RawValue::from_string(format!("[{}]", values.join(","))).map_err(Error::internal)
}

impl Fit<'_> {
    /// Returns the input with the window in its place, byte for byte where nothing changed.
    ///
    /// # Errors
    ///
    /// [`Fault::Internal`](crate::Fault::Internal) if items cannot be written.
    pub fn text(&self) -> Result<String, Error> {
        match &self.fitted {
            Some(fitted) => Ok(fitted.to_json()),
            None => self
                .prepared
                .rewritten(&self.prepared.kept(&self.run.decisions)),
        }
    }

    /// Returns the answer without the chat.
    pub fn answer(&self) -> FitAnswer {
        let prepared = self.prepared;
        if let Some(fitted) = &self.fitted {
            let tokens = (fitted.tokens_before, fitted.tokens_after);
            return prepared.described(tokens).of_chat(fitted);
        }
        let decisions = &self.run.decisions;
        let items = prepared.items();
        let mut dropped = decisions.excluded();
        dropped.sort_unstable();
        let dropped = dropped.into_iter().filter_map(|index| {
            Some(DroppedEntry {
                index,
                role: prepared.label(index),
                tokens: items[index].tokens(),
                reason: decisions.exclusion(index)?,
            })
        });
        FitAnswer {
            kept: prepared.kept(decisions),
            dropped: dropped.collect(),
            ..prepared.described((total_tokens(items), decisions.tokens_used()))
        }
    }

    /// Returns the cache breakpoints to put into the window; see [`Fitted::cache_marks`].
    pub fn cache_marks(&self) -> Vec<CacheMark> {
        let fitted = self.fitted.as_ref();
        fitted.map_or_else(Vec::new, Fitted::cache_marks)
    }

    /// Returns the messages or items of the window, in order, without new cache breakpoints.
    pub fn messages(&self) -> Vec<WindowMessage> {
        match &self.fitted {
            Some(fitted) => fitted.messages().into_iter().map(Into::into).collect(),
            None => {
                let kept = self.prepared.kept(&self.run.decisions).into_iter();
                kept.map(WindowMessage::Original).collect()
            }
        }
    }

    /// Returns the report of the run.
    pub fn report(&self) -> &SelectionReport {
        match &self.fitted {
            Some(fitted) => &fitted.report,
            None => &self.run.report,
        }
    }

    /// Returns the score of every message or item.
    pub fn scores(&self) -> Vec<f64> {
        let decisions = &self.run.decisions;
        (0..self.prepared.len())
            .map(|it| decisions.score(it))
            .collect()
    }

    /// Returns the rank of every message or item, from 0; `None` for one that was not ranked.
    pub fn ranks(&self) -> Vec<Option<usize>> {
        let decisions = &self.run.decisions;
        (0..self.prepared.len())
            .map(|it| decisions.rank(it))
            .collect()
    }
}

/// What is remembered of the earlier requests of a conversation.
#[derive(Debug, Clone, Default)]
pub struct Session {
    fitter: Option<Fitter>,
    state: FitState,
}

impl Session {
    /// Continues a session.
    pub fn resume(state: FitState) -> Self {
        Self {
            fitter: None,
            state,
        }
    }

    /// Returns what is remembered.
    pub fn state(&self) -> &FitState {
        self.fitter.as_ref().map_or(&self.state, Fitter::state)
    }

    /// Remembers the summaries of the window that was fitted last.
    pub(crate) fn remember_summaries(&mut self, summaries: BTreeMap<String, String>) {
        if let Some(fitter) = &mut self.fitter {
            fitter.remember_summaries(summaries);
        }
    }
}

impl PreparedSession {
    /// Fits the chat and remembers what was counted. If that fails, the session does not change.
    ///
    /// # Errors
    ///
    /// [`Fault::Fit`](crate::Fault::Fit).
    pub fn fit(&self, session: &mut Session) -> Result<SessionWindow<'_>, Error> {
        let state = &session.state;
        let policy = &self.setting.policy.policy;
        // Kept from call to call: it has the last window's items, so that unchanged messages are not counted again.
        let fitter = session
            .fitter
            .get_or_insert_with(|| Fitter::resume(policy.clone(), state.clone()));
        let window = fitter.fit(&self.chat, &self.setting.budget, self.counter());
        window.map_err(|error| self.setting.fit_error(error))
    }

    /// Returns the answer for a window, without the chat.
    pub fn answer(&self, window: &SessionWindow<'_>) -> FitAnswer {
        let fitted = &window.fitted;
        let tokens = (fitted.tokens_before, fitted.tokens_after);
        let (shape, limit) = (self.chat.shape().name(), self.setting.budget.window_limit());
        FitAnswer {
            session: Some(SessionAnswer {
                reuse: window.reuse,
                rebuilt: window.rebuilt,
            }),
            ..empty(tokens, shape, limit, Some(self.counter())).of_chat(fitted)
        }
    }
}
