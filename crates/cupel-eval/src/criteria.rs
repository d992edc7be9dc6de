//! Replays conversations at a share of their size: what the last window holds of the criterion, and the bill.

use std::ops::ControlFlow;
use std::str::FromStr;

use cupel_chat::{ChatError, TokenCounter};
use serde::{Serialize, Serializer};

use crate::bootstrap::SAMPLES;
use crate::conversation::{Conversation, criterion_recall, words};
use crate::parallel;
use crate::progress::{Progress, Stopped};
use crate::replay::{History, Memo, Method, PLAIN, RUNS_PER_THREAD, Request, answers};
use crate::tally::{CriteriaMeasure, Estimates, Sums};

/// A share of a conversation's tokens, in percent from 1 to 100: its budget.
///
/// ```
/// use cupel_eval::Share;
///
/// let share: Share = "80%".parse().unwrap();
/// assert_eq!(share, "80".parse().unwrap());
/// assert_eq!((share.percent(), share.of(199)), (80.0, 159));
/// assert!("0.8".parse::<Share>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(f64);

/// A text is not a percentage from 1 to 100.
///
/// Below 1 it would be a fraction by mistake: 0.8 for 80 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a percentage from 1 to 100, such as 80")]
pub struct InvalidShare;

impl Share {
    /// Returns the percentage.
    pub fn percent(self) -> f64 {
        self.0
    }

    /// Returns the share of a number of tokens, rounded down, at least 1.
    pub fn of(self, tokens: i64) -> i64 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "rounds down, and saturates"
        )]
        let share = (tokens as f64 * self.0 / 100.0) as i64;
        share.max(1)
    }
}

impl FromStr for Share {
    type Err = InvalidShare;

    fn from_str(text: &str) -> Result<Self, InvalidShare> {
        let text = text.trim();
        let percent = text.strip_suffix('%').unwrap_or(text).trim_end().parse();
        let percent = percent.ok().filter(|it| (1.0..=100.0).contains(it));
        percent.map(Self).ok_or(InvalidShare)
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 / 100.0)
    }
}

/// The results of conversations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CriteriaReport {
    /// The conversations.
    pub conversations: usize,
    /// The requests of all conversations: before each answer, and the last one.
    pub requests: usize,
    /// The name of the token counter.
    pub counter: String,
    /// The bootstrap samples of an interval.
    pub samples: usize,
    /// By share, then by method.
    pub results: Vec<CriteriaRow>,
}

/// The results of one method at one share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CriteriaRow {
    /// The budget.
    pub share: Share,
    /// The name of the method.
    pub policy: String,
    /// The measures.
    #[serde(flatten)]
    pub estimates: Estimates<CriteriaMeasure>,
}

/// Why conversations have no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CriteriaError {
    /// There are no conversations.
    #[error("there are no conversations")]
    NoConversation,
    /// A part of a conversation cannot be read, although the conversation can.
    #[error("conversation {conversation}: {error}")]
    Unreadable {
        /// The number of the conversation, from 1.
        conversation: usize,
        /// Why.
        error: ChatError,
    },
    /// The observer stopped the call.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Replays conversations by every method at every share of their tokens. The budget is for the whole request.
///
/// The observer is called after every few conversations. If it breaks, the call stops.
///
/// # Errors
///
/// [`CriteriaError`]; the first one in the order of the conversations.
///
/// ```
/// use cupel_chat::Heuristic;
/// use cupel_eval::{CriteriaMeasure, Method, criteria, parse_conversations, unobserved};
///
/// let line = r#"{"messages": [
///     {"role": "user", "content": "I like to walk, and I never take a taxi."},
///     {"role": "assistant", "content": "I will keep that in mind for all of your trips in the city."},
///     {"role": "user", "content": "How do I get to the museum?"}
/// ], "terms": [{"forms": ["walk"], "weight": 2.5}]}"#;
/// let conversations = parse_conversations(line, "", None)?;
/// let shares = ["50".parse()?];
/// let report = criteria(&conversations, &[Method::Suffix], &shares, &Heuristic, &mut unobserved)?;
/// // The first message does not fit half of the tokens.
/// let recall = report.results[0].estimates.get(CriteriaMeasure::Recall).unwrap();
/// assert_eq!(recall.value, 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn criteria(
    conversations: &[Conversation],
    methods: &[Method],
    shares: &[Share],
    counter: &dyn TokenCounter,
    observe: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<CriteriaReport, CriteriaError> {
    if conversations.is_empty() {
        return Err(CriteriaError::NoConversation);
    }
    let by_share = shares.iter().map(|&share| {
        let settings = methods.iter();
        settings.map(move |method| (share, method))
    });
    let settings: Vec<(Share, &Method)> = by_share.flatten().collect();
    let numbered: Vec<(usize, &Conversation)> = (1..).zip(conversations).collect();
    let replayed = parallel::map_observed(
        &numbered,
        RUNS_PER_THREAD,
        observe,
        |&(number, conversation)| {
            let replayed = replay_conversation(conversation, &settings, counter);
            replayed.map_err(|error| CriteriaError::Unreadable {
                conversation: number,
                error,
            })
        },
    )?;
    let rows = settings
        .iter()
        .enumerate()
        .map(|(position, (share, method))| {
            let sums: Vec<_> = replayed.iter().map(|it| &it.sums[position]).collect();
            CriteriaRow {
                share: *share,
                policy: method.name().to_owned(),
                estimates: Estimates::of(&sums),
            }
        });
    Ok(CriteriaReport {
        conversations: conversations.len(),
        requests: replayed.iter().map(|it| it.requests).sum(),
        counter: counter.name().to_owned(),
        samples: SAMPLES,
        results: rows.collect(),
    })
}

/// What a conversation adds to the sums.
struct Replayed {
    requests: usize,
    /// By setting.
    sums: Vec<Sums<CriteriaMeasure>>,
}

/// Replays a conversation.
///
/// # Errors
///
/// A history or a window that cannot be parsed, although the conversation can.
fn replay_conversation(
    conversation: &Conversation,
    settings: &[(Share, &Method)],
    counter: &dyn TokenCounter,
) -> Result<Replayed, ChatError> {
    let Conversation { chat, terms } = conversation;
    let counter = Memo::new(counter);
    let ends = answers(chat).map(|answer| answer.start).chain([chat.len()]);
    let histories = ends.map(|end| {
        let before: Vec<usize> = (0..end).collect();
        History::parse(&chat.write(&before), chat, &counter)
    });
    let histories: Vec<History> = histories.collect::<Result<_, _>>()?;
    let whole = chat.tokens(&counter);
    let sums = settings.iter().map(|(share, method)| {
        let budget = share.of(whole);
        let mut sums = Sums::default();
        // The request before: as it was sent, and its tokens without trimming.
        let mut previous: Option<(Request, i64)> = None;
        for (position, history) in histories.iter().enumerate() {
            let request = &history.request;
            let trimmed = method.window(history, budget, &counter)?;
            // The suffix keeps nothing if the last turn does not fit: no request either.
            let window = trimmed.map(|it| it.request);
            let window = window.filter(|window| window.body_tokens() > 0);
            if position + 1 == histories.len() {
                let (recall, fill) = window.as_ref().map_or((0.0, 0.0), |window| {
                    let messages = window.messages.iter();
                    let words = messages.flat_map(|message| words(&message.text)).collect();
                    let fill = window.tokens() as f64 / budget as f64;
                    (criterion_recall(terms, &words), fill)
                });
                sums.add(CriteriaMeasure::Recall, recall, 1.0);
                sums.add(CriteriaMeasure::Fill, fill, 1.0);
                sums.count(CriteriaMeasure::Failed, window.is_none());
            }
            // A caller sends what cannot be trimmed as it is.
            let sent = window.unwrap_or_else(|| request.clone());
            let (reused, before) = match &previous {
                Some((previous, before)) => (previous.reused(&sent), *before),
                None => (0, 0),
            };
            let price = PLAIN.price(sent.tokens(), reused);
            let untrimmed = PLAIN.price(request.tokens(), before);
            sums.add(CriteriaMeasure::Bill, price, untrimmed);
            previous = Some((sent, request.tokens()));
        }
        Ok(sums)
    });
    Ok(Replayed {
        requests: histories.len(),
        sums: sums.collect::<Result<_, _>>()?,
    })
}
