//! Replays a recorded run: trims the history before each answer and measures the window.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use cupel::{ContextBudget, ContextItem, GroupSlice, Policy};
use cupel_chat::{Chat, ChatError, FitError, Fitted, Fitter, Role, TokenCounter};

use super::metric::{self, Author, Message, Window};
use super::tally::{Measure, Tally};
use cupel_app::NamedPolicy;

/// The price of a cached token; a token that is not cached costs 1.
const CACHED_PRICE: f64 = 0.1;

/// How a history is trimmed.
#[derive(Debug, Clone)]
pub(super) enum Method {
    /// Keeps the longest suffix of whole groups, as most trimming functions do.
    Suffix,
    /// Fits each history by a policy.
    Fit(NamedPolicy),
    /// Fits each history by a policy and the decisions about earlier ones.
    Session(NamedPolicy),
}

/// A method and its budget: the tokens of a request without system messages and request overhead.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) method: Method,
    pub(super) budget: i64,
}

impl Method {
    /// The name of the contiguous suffix on the command line.
    pub(super) const SUFFIX: &str = "suffix";

    /// Returns the name of the policy.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Suffix => Self::SUFFIX,
            Self::Fit(policy) | Self::Session(policy) => &policy.name,
        }
    }

    /// Returns whether decisions about earlier histories are remembered.
    pub(super) fn has_state(&self) -> bool {
        matches!(self, Self::Session(_))
    }

    /// Starts a run.
    fn start(&self) -> Trimmer<'_> {
        match self {
            Self::Suffix => Trimmer::Suffix,
            Self::Fit(policy) => Trimmer::Fit(&policy.policy),
            Self::Session(policy) => Trimmer::Session(Box::new(Fitter::new(policy.policy.clone()))),
        }
    }
}

/// A [`Method`] in a run.
enum Trimmer<'a> {
    Suffix,
    Fit(&'a Policy),
    Session(Box<Fitter>),
}

impl Trimmer<'_> {
    /// Trims a history to a budget for the whole request.
    fn trim(
        &mut self,
        history: &Request,
        budget: i64,
        counter: &dyn TokenCounter,
    ) -> Result<Trimmed, FitError> {
        let chat = &history.chat;
        let limits = ContextBudget::with_target(budget, budget).map_err(FitError::Policy)?;
        match self {
            Self::Suffix => {
                let kept = suffix(history, budget);
                Ok(Trimmed {
                    text: chat.write(&kept),
                    origins: kept.into_iter().map(Some).collect(),
                })
            }
            Self::Fit(policy) => Ok(Trimmed::of(&chat.fit(policy, &limits, counter)?)),
            Self::Session(fitter) => {
                let window = fitter.fit(chat, &limits, counter)?;
                Ok(Trimmed::of(&window.fitted))
            }
        }
    }
}

/// A trimmed request as written.
struct Trimmed {
    text: String,
    /// The position of each message in the history; `None` for an added message.
    origins: Vec<Option<usize>>,
}

impl Trimmed {
    fn of(fitted: &Fitted<'_>) -> Self {
        // A marker that is merged into a kept message adds none.
        let added = fitted.markers.iter().filter(|it| it.merged_into.is_none());
        let mut markers = added.peekable();
        let origins = fitted.kept.iter().flat_map(|&index| {
            let marker = markers.next_if(|marker| marker.before == index);
            marker.map(|_| None).into_iter().chain([Some(index)])
        });
        Self {
            origins: origins.collect(),
            text: fitted.to_json(),
        }
    }
}

/// Returns the system messages and the longest suffix that fits and does not split a group.
fn suffix(history: &Request, budget: i64) -> Vec<usize> {
    let messages = &history.messages;
    let body = budget - history.fixed_tokens();
    // The first message of each message's group.
    let mut groups: HashMap<&str, usize> = HashMap::new();
    let items = history.candidates.iter().enumerate();
    let firsts = items.map(|(index, item)| match item.metadata().get(GroupSlice::KEY) {
        Some(group) => *groups.entry(group).or_insert(index),
        None => index,
    });
    let firsts: Vec<usize> = firsts.collect();
    let mut start = messages.len();
    let mut earliest = messages.len();
    let mut tokens = 0;
    for index in (0..messages.len()).rev() {
        if messages[index].author != Author::System {
            tokens += messages[index].tokens;
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

/// A request: a chat and its messages as the measures see them.
struct Request {
    chat: Chat,
    candidates: Vec<ContextItem>,
    messages: Vec<Message>,
    overhead: i64,
}

impl Request {
    /// Parses a text of the same format and layout as a chat.
    fn parse(text: &str, like: &Chat, counter: &dyn TokenCounter) -> Result<Self, ChatError> {
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
        Ok(Self {
            messages: messages.collect(),
            overhead: chat.overhead(counter),
            candidates,
            chat,
        })
    }

    fn body_tokens(&self) -> i64 {
        metric::body_tokens(&self.messages)
    }

    /// Returns the tokens of the system messages and the request overhead.
    fn fixed_tokens(&self) -> i64 {
        self.tokens() - self.body_tokens()
    }

    fn tokens(&self) -> i64 {
        let messages = self.messages.iter().map(|message| message.tokens);
        self.overhead + messages.sum::<i64>()
    }
}

/// Replays a run and returns the tally of each setting.
///
/// # Errors
///
/// A history or a window that cannot be parsed, although the run can.
pub(super) fn replay(
    run: &Chat,
    settings: &[Setting],
    counter: &dyn TokenCounter,
) -> Result<Vec<Tally>, ChatError> {
    let counter = Memo::new(counter);
    let mut sessions: Vec<Session<'_>> = settings.iter().map(Session::new).collect();
    let mut cached = 0;
    for answer in answers(run) {
        let before: Vec<usize> = (0..answer.start).collect();
        let history = Request::parse(&run.write(&before), run, &counter)?;
        if history.messages.iter().all(|m| m.author == Author::System) {
            continue;
        }
        let calls = answer.flat_map(|index| run.message(index).calls());
        let values: BTreeSet<String> = calls
            .flat_map(|call| metric::argument_values(call.arguments))
            .collect();
        let step = Step {
            evidence: metric::evidence(&values, &history.messages),
            price: price(history.tokens(), cached),
            history,
        };
        for session in &mut sessions {
            session.request(&step, &counter)?;
        }
        cached = step.history.tokens();
    }
    Ok(sessions.into_iter().map(|session| session.tally).collect())
}

/// Returns the answers of the model: the longest runs of assistant messages.
fn answers(run: &Chat) -> impl Iterator<Item = Range<usize>> {
    let is_answer = |index: usize| run.message(index).role() == Role::Assistant;
    let starts = (0..run.len()).filter(move |&at| is_answer(at) && (at == 0 || !is_answer(at - 1)));
    starts.map(move |start| {
        let end = (start..run.len()).find(|&index| !is_answer(index));
        start..end.unwrap_or(run.len())
    })
}

/// The history before an answer and what the answer takes from it.
struct Step {
    history: Request,
    /// The argument values of the answer's tool calls that occur in the history.
    evidence: Vec<String>,
    /// The price of the request without trimming.
    price: f64,
}

/// The requests of a run under one setting.
struct Session<'a> {
    budget: i64,
    trimmer: Trimmer<'a>,
    tally: Tally,
    /// The last request that was sent.
    previous: Option<Request>,
}

impl<'a> Session<'a> {
    fn new(setting: &'a Setting) -> Self {
        Self {
            budget: setting.budget,
            trimmer: setting.method.start(),
            tally: Tally::default(),
            previous: None,
        }
    }

    /// Trims the history, and measures the window if the history exceeds the budget.
    fn request(&mut self, step: &Step, counter: &dyn TokenCounter) -> Result<(), ChatError> {
        let history = &step.history;
        let is_trimmed = history.body_tokens() > self.budget;
        self.tally.requests += 1;
        let budget = self.budget.saturating_add(history.fixed_tokens());
        let trimmed = self.trimmer.trim(history, budget, counter);
        if is_trimmed {
            self.tally.trimmed += 1;
            self.tally.count(Measure::Failed, trimmed.is_err());
        }
        let Ok(Trimmed { text, origins }) = trimmed else {
            self.add_recall(step, is_trimmed, 0.0, 0.0);
            return Ok(());
        };
        let sent = Request::parse(&text, &history.chat, counter)?;
        debug_assert_eq!(origins.len(), sent.messages.len());
        let window = Window {
            messages: &sent.messages,
            origins,
        };
        let evidence = &step.evidence;
        let grounded = metric::grounding_recall(evidence, &window);
        let supported = metric::supported_recall(evidence, &history.messages, &window);
        self.add_recall(step, is_trimmed, grounded, supported);
        if is_trimmed {
            self.measure_prefix(&sent, step.price);
            let tally = &mut self.tally;
            let messages = &history.messages;
            let breaks = metric::breaks_alternation(messages, &window);
            tally.count(Measure::Orphans, metric::has_orphan(&sent.messages));
            tally.count(Measure::OverBudget, sent.body_tokens() > self.budget);
            tally.count(Measure::Holes, metric::has_hole(messages, &window));
            tally.count(Measure::Breaks, breaks);
        }
        self.previous = Some(sent);
        Ok(())
    }

    fn add_recall(&mut self, step: &Step, is_trimmed: bool, grounded: f64, supported: f64) {
        if is_trimmed && !step.evidence.is_empty() {
            self.tally.steps += 1;
            self.tally.add(Measure::Grounding, grounded, 1.0);
            self.tally.add(Measure::Supported, supported, 1.0);
        }
    }

    fn measure_prefix(&mut self, sent: &Request, price_untrimmed: f64) {
        let mut cached = 0;
        if let Some(previous) = &self.previous {
            let body = metric::shared_body(&previous.messages, &sent.messages);
            cached = previous.overhead + metric::shared_prefix(&previous.messages, &sent.messages);
            for (measure, shared, all) in [
                (Measure::BodyReuse, body, previous.body_tokens()),
                (Measure::RequestReuse, cached, previous.tokens()),
            ] {
                self.tally.add(measure, shared as f64, all as f64);
            }
        }
        let price = price(sent.tokens(), cached);
        self.tally.add(Measure::Cost, price, price_untrimmed);
    }
}

/// Returns the price of a request of which `cached` tokens are the prefix of the one before.
fn price(tokens: i64, cached: i64) -> f64 {
    (tokens - cached) as f64 + CACHED_PRICE * cached as f64
}

/// A counter that counts each text once: the histories of a run have most texts in common.
struct Memo<'c> {
    counter: &'c dyn TokenCounter,
    known: Mutex<HashMap<String, i64>>,
}

impl<'c> Memo<'c> {
    fn new(counter: &'c dyn TokenCounter) -> Self {
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

    fn request() -> Request {
        Request::parse(
            RUN,
            &Chat::parse(RUN, None).expect("a chat"),
            &Encoding::O200k,
        )
        .expect("a chat")
    }

    #[test]
    fn the_suffix_does_not_split_a_group() {
        let request = request();
        let tokens: Vec<i64> = request.messages.iter().map(|it| it.tokens).collect();
        assert_eq!(tokens, [5, 5, 11, 5, 5, 5, 5, 5, 5]);
        let suffix = |body| suffix(&request, body + request.fixed_tokens());
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

    /// 0.1 for 60 cached tokens and 1 for the other 40.
    #[test]
    fn a_cached_token_costs_a_tenth() {
        assert_eq!(price(100, 60), 46.0);
        assert_eq!(price(100, 0), 100.0);
    }
}
