//! Replays recorded runs: trims the history before each answer and measures the window.
//!
//! ```text
//! run      system  user  call  result  call  result  answer
//! answer 1 system  user |                                    no more than the budget: not trimmed
//! answer 2 system  user  call  result |                      trimmed: is what the call names in the window?
//! answer 3 system  user  call  result  call  result |        trimmed: how much of the last window does it reuse?
//! ```

use std::collections::{BTreeSet, HashMap};
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};
use cupel::{ContextBudget, ContextItem};
use cupel_chat::{Chat, ChatError, FitError, Fitted, Role, TokenCounter};
use serde::Serialize;

use crate::bootstrap::SAMPLES;
use crate::evidence::EvalPolicy;
use crate::metric::{self, Author, Continuation, Message, Window};
use crate::parallel;
use crate::price::{Billing, Prices};
use crate::progress::{Progress, Stopped};
use crate::tally::{Estimates, ReplayMeasure, Sums};

/// The prices of the measures without a bill of their own: a token that is read from the cache costs a tenth, as
/// Anthropic and OpenAI charge for most models, and writing is free.
pub(crate) const PLAIN: Prices = Prices {
    read: 0.1,
    write: 1.0,
};

/// How a history is trimmed.
#[derive(Debug, Clone)]
pub enum Method {
    /// Keeps the longest suffix of whole groups, as most trimming functions do.
    Suffix,
    /// Fits each history by a policy.
    Fit(EvalPolicy),
}

impl Method {
    /// The name of [`Method::Suffix`].
    pub const SUFFIX: &str = "suffix";

    /// Returns the name: that of the policy, or `suffix`.
    pub fn name(&self) -> &str {
        match self {
            Self::Suffix => Self::SUFFIX,
            Self::Fit(policy) => &policy.name,
        }
    }

    /// Returns the window of a history at a budget for the whole request, as it is written and read again, not as it
    /// was planned. `None` if the history cannot be trimmed to the budget.
    ///
    /// # Errors
    ///
    /// A window that cannot be parsed.
    pub(crate) fn window(
        &self,
        history: &History,
        budget: i64,
        counter: &dyn TokenCounter,
    ) -> Result<Option<Trimmed>, ChatError> {
        let Ok((text, origins)) = self.trim(history, budget, counter) else {
            return Ok(None);
        };
        let request = match &origins[..] {
            // A text with one message per line and no message is no chat.
            [] => Request {
                messages: Vec::new(),
                overhead: history.request.overhead,
            },
            _ => History::parse(&text, &history.chat, counter)?.request,
        };
        debug_assert_eq!(origins.len(), request.messages.len());
        Ok(Some(Trimmed { request, origins }))
    }

    /// Trims a history. Returns the request as written, and the position of each message in the history; `None` for
    /// an added message.
    fn trim(
        &self,
        history: &History,
        budget: i64,
        counter: &dyn TokenCounter,
    ) -> Result<(String, Vec<Option<usize>>), FitError> {
        let chat = &history.chat;
        match self {
            Self::Suffix => {
                let kept = suffix(history, budget);
                let text = chat.write(&kept);
                Ok((text, kept.into_iter().map(Some).collect()))
            }
            Self::Fit(policy) => {
                let limits = ContextBudget::with_target(budget, budget);
                let limits = limits.map_err(FitError::Policy)?;
                Ok(written(&chat.fit(&policy.policy, &limits, counter)?))
            }
        }
    }
}

/// The results of a replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayReport {
    /// The runs.
    pub runs: usize,
    /// The requests of all runs: answers with a history.
    pub requests: usize,
    /// The name of the token counter.
    pub counter: String,
    /// The bootstrap samples of an interval.
    pub samples: usize,
    /// How [`ReplayMeasure::FullBill`] is computed.
    #[serde(flatten)]
    pub billing: Billing,
    /// The requests that, as the one before, have a time.
    pub timed: usize,
    /// Those of them that came when the cache had expired.
    pub expired: usize,
    /// By budget, then by method.
    pub results: Vec<ReplayRow>,
}

/// The results of one method at one budget.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayRow {
    /// The budget.
    pub budget: i64,
    /// The name of the method.
    pub policy: String,
    /// The requests whose history exceeds the budget.
    pub trimmed: usize,
    /// The trimmed requests whose answer has evidence.
    pub steps: usize,
    /// The measures.
    #[serde(flatten)]
    pub estimates: Estimates<ReplayMeasure>,
}

/// Why a replay has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// No run has an answer with a history.
    #[error("the runs have no answer to replay")]
    NoAnswer,
    /// A part of a run cannot be read, although the run can.
    #[error("run {run}: {error}")]
    Unreadable {
        /// The number of the run, from 1.
        run: usize,
        /// Why.
        error: ChatError,
    },
    /// The observer stopped the replay.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Replays runs by every method at every budget. A budget is the tokens of a request without system messages and
/// request overhead. A request that a policy cannot trim counts as [`ReplayMeasure::Failed`]. The time of a request is
/// that of its last message with one.
///
/// The observer is called after every few runs. If it breaks, the replay stops.
///
/// # Errors
///
/// [`ReplayError`]; the first one in the order of the runs.
///
/// ```
/// use cupel_chat::Heuristic;
/// use cupel_eval::{Billing, Method, ReplayMeasure, parse_runs, replay, unobserved};
///
/// let run = r#"{"messages": [
///     {"role": "user", "content": "Cancel the order W2378156."},
///     {"role": "assistant", "content": "Do you want me to cancel it now?"},
///     {"role": "user", "content": "Yes, please do."},
///     {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function",
///         "function": {"name": "cancel", "arguments": "{\"order\": \"W2378156\"}"}}]}
/// ]}"#;
/// let runs = parse_runs(run, "", None)?;
/// let billing = Billing::default();
/// let report = replay(&runs, &[Method::Suffix], &[10], &billing, &Heuristic, &mut unobserved)?;
/// // The order is in the first message, which the suffix of 10 tokens does not have.
/// let recall = report.results[0].estimates.get(ReplayMeasure::Grounding).unwrap();
/// assert_eq!(recall.value, 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn replay(
    runs: &[Chat],
    methods: &[Method],
    budgets: &[i64],
    billing: &Billing,
    counter: &dyn TokenCounter,
    observe: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<ReplayReport, ReplayError> {
    let by_budget = budgets.iter().map(|&budget| {
        let settings = methods.iter();
        settings.map(move |method| Setting { method, budget })
    });
    let settings: Vec<Setting<'_>> = by_budget.flatten().collect();
    let numbered: Vec<(usize, &Chat)> = (1..).zip(runs).collect();
    let replayed = parallel::map_observed(&numbered, RUNS_PER_THREAD, observe, |&(run, chat)| {
        let replayed = replay_run(chat, &settings, *billing, counter);
        replayed.map_err(|error| ReplayError::Unreadable { run, error })
    })?;
    let requests = replayed.iter().map(|run| run.requests).sum();
    if requests == 0 {
        return Err(ReplayError::NoAnswer);
    }
    let rows = settings.iter().enumerate().map(|(position, setting)| {
        let tallies = replayed.iter().map(|run| &run.tallies[position]);
        let tallies: Vec<&Tally> = tallies.collect();
        ReplayRow {
            budget: setting.budget,
            policy: setting.method.name().to_owned(),
            trimmed: tallies.iter().map(|tally| tally.trimmed).sum(),
            steps: tallies.iter().map(|tally| tally.steps).sum(),
            estimates: Estimates::of(&tallies.iter().map(|tally| &tally.sums).collect::<Vec<_>>()),
        }
    });
    Ok(ReplayReport {
        runs: runs.len(),
        requests,
        counter: counter.name().to_owned(),
        samples: SAMPLES,
        billing: *billing,
        timed: replayed.iter().map(|run| run.timed).sum(),
        expired: replayed.iter().map(|run| run.expired).sum(),
        results: rows.collect(),
    })
}

/// The runs per thread in a chunk. Runs differ in length, so with one run per thread most threads would wait for
/// the longest run.
pub(crate) const RUNS_PER_THREAD: usize = 4;

/// A method and its budget.
struct Setting<'m> {
    method: &'m Method,
    budget: i64,
}

/// Returns a fitted chat as written, and the positions of its messages in the history.
fn written(fitted: &Fitted<'_>) -> (String, Vec<Option<usize>>) {
    // A marker that is merged into a kept message adds none.
    let added = fitted.markers.iter().filter(|it| it.merged_into.is_none());
    let mut markers = added.peekable();
    let origins = fitted.kept.iter().flat_map(|&index| {
        let marker = markers.next_if(|marker| marker.before == index);
        marker.map(|_| None).into_iter().chain([Some(index)])
    });
    let origins = origins.collect();
    (fitted.to_json(), origins)
}

/// A trimmed request.
pub(crate) struct Trimmed {
    pub(crate) request: Request,
    /// The position of each message in the history; `None` for an added message.
    pub(crate) origins: Vec<Option<usize>>,
}

impl Trimmed {
    pub(crate) fn window(&self) -> Window<'_> {
        Window {
            messages: &self.request.messages,
            origins: self.origins.clone(),
        }
    }
}

/// Returns the system messages and the longest suffix that fits and does not split a group.
///
/// Goes backward and remembers the earliest group that began. A suffix may start at a message if no message after
/// it belongs to a group that starts earlier:
///
/// ```text
/// message          0 user   1 call a   2 result a   3 call b   4 result b
/// first of group   0        1          1            3          3
/// earliest         0        1          1            3          3     of this message and those after it
/// may start        yes      yes        no           yes        no
/// ```
fn suffix(history: &History, budget: i64) -> Vec<usize> {
    let messages = &history.request.messages;
    let body = budget.saturating_sub(history.request.fixed_tokens());
    // The first message of each message's group.
    let mut groups: HashMap<&str, usize> = HashMap::new();
    let items = history.candidates.iter().enumerate();
    let firsts = items.map(|(index, item)| match item.group() {
        Some(group) => *groups.entry(group).or_insert(index),
        None => index,
    });
    let firsts: Vec<usize> = firsts.collect();
    let mut start = messages.len();
    let mut earliest = messages.len();
    let mut tokens: i64 = 0;
    for index in (0..messages.len()).rev() {
        if messages[index].author != Author::System {
            tokens = tokens.saturating_add(messages[index].tokens);
        }
        if tokens > body {
            break;
        }
        earliest = earliest.min(firsts[index]);
        if earliest == index {
            start = index;
        }
    }
    let is_kept = |index: &usize| *index >= start || messages[*index].author == Author::System;
    (0..messages.len()).filter(is_kept).collect()
}

/// The messages before an answer.
pub(crate) struct History {
    chat: Chat,
    candidates: Vec<ContextItem>,
    pub(crate) request: Request,
}

impl History {
    /// Parses a text of the same format and layout as a chat.
    pub(crate) fn parse(
        text: &str,
        like: &Chat,
        counter: &dyn TokenCounter,
    ) -> Result<Self, ChatError> {
        let chat = Chat::parse_at(text, like.parsed_at(), Some(like.shape()))?;
        let candidates = chat.candidates(counter);
        let messages = chat.messages().zip(&candidates);
        let messages = messages.map(|(message, item)| Message {
            author: match message.role() {
                Role::System => Author::System,
                Role::Assistant => Author::Assistant,
                _ if message.is_user_turn() => Author::User,
                _ => Author::Other,
            },
            json: message.json().to_owned(),
            text: message.text(),
            tokens: item.tokens(),
            calls: message.calls().map(|call| call.id.to_owned()).collect(),
            results: message.results().to_vec(),
        });
        let request = Request {
            messages: messages.collect(),
            overhead: chat.overhead(counter),
        };
        Ok(Self {
            chat,
            candidates,
            request,
        })
    }

    /// Returns when the request was sent: the time of its last message with one.
    fn time(&self) -> Option<DateTime<Utc>> {
        self.chat
            .messages()
            .filter_map(cupel_chat::Message::time)
            .last()
    }
}

/// A request as the measures see it.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) messages: Vec<Message>,
    overhead: i64,
}

impl Request {
    pub(crate) fn body_tokens(&self) -> i64 {
        metric::body_tokens(&self.messages)
    }

    /// Returns the tokens of the system messages and the request overhead.
    fn fixed_tokens(&self) -> i64 {
        self.tokens().saturating_sub(self.body_tokens())
    }

    pub(crate) fn tokens(&self) -> i64 {
        let messages = metric::sum(self.messages.iter());
        self.overhead.saturating_add(messages)
    }

    /// Returns the tokens that a provider's cache has of the request after this one. Tools and parameters are the same
    /// in all requests of a run, and come first.
    pub(crate) fn reused(&self, next: &Self) -> i64 {
        let prefix = metric::shared_prefix(&self.messages, &next.messages);
        self.overhead.saturating_add(prefix)
    }
}

/// What a run adds to the sums of a setting.
#[derive(Default)]
struct Tally {
    /// The requests whose history exceeds the budget.
    trimmed: usize,
    /// The trimmed requests whose answer has evidence.
    steps: usize,
    sums: Sums<ReplayMeasure>,
}

/// What a run adds to the sums.
struct Replayed {
    requests: usize,
    timed: usize,
    expired: usize,
    /// By setting.
    tallies: Vec<Tally>,
}

/// Replays a run.
///
/// # Errors
///
/// A history or a window that cannot be parsed, although the run can.
fn replay_run(
    run: &Chat,
    settings: &[Setting<'_>],
    billing: Billing,
    counter: &dyn TokenCounter,
) -> Result<Replayed, ChatError> {
    // One session per setting, so that each history is parsed and counted once for all settings.
    let counter = Memo::new(counter);
    let mut sessions: Vec<Session<'_>> = settings
        .iter()
        .map(|setting| Session::new(setting, billing))
        .collect();
    let (mut requests, mut timed, mut expired) = (0, 0, 0);
    let mut before = Untrimmed::default();
    for answer in answers(run) {
        requests += 1;
        let kept: Vec<usize> = (0..answer.start).collect();
        let history = History::parse(&run.write(&kept), run, &counter)?;
        let calls = answer.flat_map(|index| run.message(index).calls());
        let (mut values, mut lines) = (BTreeSet::new(), BTreeSet::new());
        for call in calls {
            values.extend(metric::argument_values(call.arguments));
            lines.extend(metric::argument_lines(call.arguments));
        }
        let request = &history.request;
        // Without trimming, a request is a prefix of the next one, so all of it is cached.
        let untrimmed = Untrimmed {
            tokens: request.tokens(),
            body: request.body_tokens(),
            time: history.time(),
        };
        let is_expired = billing.is_expired(before.time, untrimmed.time);
        timed += usize::from(before.time.is_some() && untrimmed.time.is_some());
        expired += usize::from(is_expired);
        let cached = if is_expired { 0 } else { before.body };
        let step = Step {
            evidence: metric::evidence(&values, &request.messages),
            lines: metric::evidence(&lines, &request.messages),
            cost: PLAIN.price(untrimmed.tokens, before.tokens),
            bill: PLAIN.price(untrimmed.body, before.body),
            full_bill: billing.price(request.fixed_tokens(), untrimmed.body, cached),
            time: untrimmed.time,
            history,
        };
        for session in &mut sessions {
            session.request(&step, &counter)?;
        }
        before = untrimmed;
    }
    let tallies = sessions.into_iter().map(|session| session.tally).collect();
    Ok(Replayed {
        requests,
        timed,
        expired,
        tallies,
    })
}

/// A request without trimming.
#[derive(Default)]
struct Untrimmed {
    tokens: i64,
    /// The tokens without system messages and request overhead.
    body: i64,
    time: Option<DateTime<Utc>>,
}

/// Returns the answers of the model, the longest runs of assistant messages, to any other messages. Nothing can be
/// trimmed before the first message that is not a system message, and a text with one message per line and no message
/// is no chat.
pub(crate) fn answers(run: &Chat) -> impl Iterator<Item = Range<usize>> {
    let role = |index: usize| run.message(index).role();
    let is_answer = move |index: usize| role(index) == Role::Assistant;
    let body = (0..run.len()).position(|index| role(index) != Role::System);
    let body = body.unwrap_or(run.len());
    let starts = (body + 1..run.len()).filter(move |&at| is_answer(at) && !is_answer(at - 1));
    starts.map(move |start| {
        let end = (start..run.len()).find(|&index| !is_answer(index));
        start..end.unwrap_or(run.len())
    })
}

/// The history before an answer, and the values that the answer repeats from it.
struct Step {
    history: History,
    /// The argument values of the answer's tool calls that occur in the history.
    evidence: Vec<String>,
    /// The lines of the answer's arguments that occur in the history.
    lines: Vec<String>,
    /// The price of the request without trimming.
    cost: f64,
    /// The same, system messages and request overhead aside.
    bill: f64,
    /// The same as it is billed.
    full_bill: f64,
    /// When the request was sent.
    time: Option<DateTime<Utc>>,
}

/// The requests of a run under one setting.
struct Session<'a> {
    budget: i64,
    billing: Billing,
    method: &'a Method,
    tally: Tally,
    /// The last request that was sent.
    previous: Option<Sent>,
}

/// A request that was sent.
struct Sent {
    trimmed: Trimmed,
    /// The messages of the history that it was trimmed from.
    history: usize,
    time: Option<DateTime<Utc>>,
}

impl<'a> Session<'a> {
    fn new(setting: &Setting<'a>, billing: Billing) -> Self {
        Self {
            budget: setting.budget,
            billing,
            method: setting.method,
            tally: Tally::default(),
            previous: None,
        }
    }

    /// Trims the history, and measures the window if the history exceeds the budget.
    fn request(&mut self, step: &Step, counter: &dyn TokenCounter) -> Result<(), ChatError> {
        let request = &step.history.request;
        // A request within the budget is not measured, but it is sent: the next request may reuse its prefix.
        let is_trimmed = request.body_tokens() > self.budget;
        let budget = self.budget.saturating_add(request.fixed_tokens());
        let trimmed = self.method.window(&step.history, budget, counter)?;
        if is_trimmed {
            self.tally.trimmed += 1;
            let has_failed = trimmed.is_none();
            self.tally.sums.count(ReplayMeasure::Failed, has_failed);
        }
        // A request that cannot be trimmed is not sent. Its recall is 0, and the measures of a window do not apply.
        let Some(trimmed) = trimmed else {
            self.add_recall(step, is_trimmed, 0.0, 0.0);
            return Ok(());
        };
        let evidence = &step.evidence;
        let window = trimmed.window();
        let grounded = metric::grounding_recall(evidence, &window);
        let supported = metric::supported_recall(evidence, &request.messages, &window);
        self.add_recall(step, is_trimmed, grounded, supported);
        if is_trimmed {
            self.measure_prefix(&trimmed.request, step);
            self.measure_window(&trimmed, step);
        }
        self.previous = Some(Sent {
            history: request.messages.len(),
            time: step.time,
            trimmed,
        });
        Ok(())
    }

    fn add_recall(&mut self, step: &Step, is_trimmed: bool, grounded: f64, supported: f64) {
        if is_trimmed && !step.evidence.is_empty() {
            self.tally.steps += 1;
            self.tally.sums.add(ReplayMeasure::Grounding, grounded, 1.0);
            self.tally
                .sums
                .add(ReplayMeasure::Supported, supported, 1.0);
        }
    }

    fn measure_window(&mut self, sent: &Trimmed, step: &Step) {
        let sums = &mut self.tally.sums;
        let (window, history) = (sent.window(), &step.history.request.messages);
        let (body, budget) = (sent.request.body_tokens(), self.budget);
        sums.add(ReplayMeasure::Fill, body as f64, budget as f64);
        if !step.lines.is_empty() {
            let lines = metric::grounding_recall(&step.lines, &window);
            sums.add(ReplayMeasure::Lines, lines, 1.0);
        }
        let messages = window.messages;
        for (measure, is_fault) in [
            (ReplayMeasure::Orphans, metric::has_orphan(messages)),
            (ReplayMeasure::OverBudget, body > budget),
            (
                ReplayMeasure::Mandatory,
                metric::lacks_mandatory(history, &window),
            ),
            (ReplayMeasure::Holes, metric::has_hole(history, &window)),
            (
                ReplayMeasure::Breaks,
                metric::breaks_alternation(history, &window),
            ),
        ] {
            sums.count(measure, is_fault);
        }
        if let Some(previous) = &self.previous {
            let before = previous.trimmed.window();
            let next = Continuation::of(history, previous.history, &before, &window);
            sums.count(ReplayMeasure::Prefix, next.is_broken);
            sums.count(ReplayMeasure::Longer, next.is_longer);
        }
    }

    fn measure_prefix(&mut self, sent: &Request, step: &Step) {
        let (mut cached, mut cached_body, mut billed_body) = (0, 0, 0);
        if let Some(previous) = &self.previous {
            let request = &previous.trimmed.request;
            let body = metric::shared_body(&request.messages, &sent.messages);
            cached = request.reused(sent);
            cached_body = body;
            if !self.billing.is_expired(previous.time, step.time) {
                billed_body = body;
            }
            for (measure, shared, all) in [
                (ReplayMeasure::BodyReuse, body, request.body_tokens()),
                (ReplayMeasure::RequestReuse, cached, request.tokens()),
            ] {
                self.tally.sums.add(measure, shared as f64, all as f64);
            }
        }
        let (fixed, body) = (sent.fixed_tokens(), sent.body_tokens());
        let cost = PLAIN.price(sent.tokens(), cached);
        let bill = PLAIN.price(body, cached_body);
        let full_bill = self.billing.price(fixed, body, billed_body);
        for (measure, price, untrimmed) in [
            (ReplayMeasure::Cost, cost, step.cost),
            (ReplayMeasure::Bill, bill, step.bill),
            (ReplayMeasure::FullBill, full_bill, step.full_bill),
        ] {
            self.tally.sums.add(measure, price, untrimmed);
        }
    }
}

/// A counter that counts each text once: the histories of a run have most texts in common.
pub(crate) struct Memo<'c> {
    counter: &'c dyn TokenCounter,
    known: Mutex<HashMap<String, i64>>,
}

impl<'c> Memo<'c> {
    pub(crate) fn new(counter: &'c dyn TokenCounter) -> Self {
        Self {
            counter,
            known: Mutex::default(),
        }
    }
}

impl TokenCounter for Memo<'_> {
    fn count(&self, text: &str) -> i64 {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&tokens) = known.get(text) {
            return tokens;
        }
        let tokens = self.counter.count(text);
        known.insert(text.to_owned(), tokens);
        tokens
    }

    fn name(&self) -> &str {
        self.counter.name()
    }

    fn is_estimate(&self) -> bool {
        self.counter.is_estimate()
    }

    fn identity(&self) -> Option<u64> {
        self.counter.identity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cupel_chat::Encoding;

    /// A user turn of 5 tokens, a call of 10 with two results of 5, and an answer of 5.
    const RUN: &str = r#"[
      {"role": "system", "content": "one"},
      {"role": "user", "content": "one"},
      {"role": "assistant", "tool_calls": [
        {"id": "a", "function": {"name": "one", "arguments": ""}},
        {"id": "b", "function": {"name": "", "arguments": ""}}]},
      {"role": "tool", "tool_call_id": "a", "content": "one"},
      {"role": "tool", "tool_call_id": "b", "content": "one"},
      {"role": "assistant", "content": "one"},
      {"role": "assistant", "content": "one"},
      {"role": "user", "content": "one"},
      {"role": "assistant", "content": "one"}
    ]"#;

    fn history() -> History {
        History::parse(
            RUN,
            &Chat::parse(RUN, None).expect("a chat"),
            &Encoding::O200k,
        )
        .expect("a chat")
    }

    #[test]
    fn the_suffix_does_not_split_a_group() {
        let history = history();
        let messages = &history.request.messages;
        let tokens: Vec<i64> = messages.iter().map(|it| it.tokens).collect();
        assert_eq!(tokens, [5, 5, 11, 5, 5, 5, 5, 5, 5]);
        let suffix = |body| suffix(&history, body + history.request.fixed_tokens());
        assert_eq!(suffix(46), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(suffix(45), [0, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(suffix(41), [0, 2, 3, 4, 5, 6, 7, 8]);
        // The results fit, their call does not.
        assert_eq!(suffix(40), [0, 5, 6, 7, 8]);
        assert_eq!(suffix(20), [0, 5, 6, 7, 8]);
        assert_eq!(suffix(19), [0, 6, 7, 8]);
        assert_eq!(suffix(4), [0]);
    }

    #[test]
    fn consecutive_assistant_messages_are_one_answer() {
        let run = Chat::parse(RUN, None).expect("a chat");
        assert_eq!(answers(&run).collect::<Vec<_>>(), [2..3, 5..7, 8..9]);
    }
}
