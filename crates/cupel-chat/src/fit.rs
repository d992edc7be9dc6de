//! [`Chat::fit`]: what stays of a chat within a budget.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, ContextKind, CountRequirementShortfall,
    CupelError, ExcludedItem, ExclusionReason, GroupSlice, IncludedItem, OverflowStrategy, Policy,
    RecencyScorer, ScoredItem, ScoredRef, Selection, SelectionReport, Slicer, TraceEvent,
};

use crate::chat::Chat;
use crate::shape::Shape;
use crate::tokens::TokenCounter;
use crate::turn::Role;

/// Takes items in the order of their rank as long as they fit, and passes over what does not.
///
/// [`GreedySlice`](cupel::GreedySlice) goes by score per token and so prefers short messages; in a
/// conversation the newest count, long or short.
///
/// ```
/// use cupel::{ContextBudget, ContextItem, ScoredItem, Slicer};
/// use cupel_chat::BestFirst;
///
/// let scored = |content: &str, tokens, score| -> Result<_, cupel::CupelError> {
///     Ok(ScoredItem { item: ContextItem::builder(content, tokens).build()?, score })
/// };
/// let sorted = [scored("new", 90, 0.9)?, scored("older", 20, 0.8)?, scored("old", 10, 0.7)?];
/// let kept = BestFirst.slice(&sorted, &ContextBudget::with_target(100, 100)?)?;
/// assert_eq!(kept.iter().map(ContextItem::content).collect::<Vec<_>>(), ["new", "old"]);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct BestFirst;

impl Slicer for BestFirst {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        let ranked: Vec<ScoredRef<'_>> = sorted.iter().map(ScoredItem::borrowed).collect();
        Ok(self.select(&ranked, budget)?.items(&ranked))
    }

    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        let mut left = i128::from(budget.target_tokens());
        let mut selection = Selection::default();
        if left <= 0 {
            return Ok(selection);
        }
        for (rank, scored) in ranked.iter().enumerate() {
            let tokens = i128::from(scored.item.tokens());
            if tokens <= left {
                left -= tokens;
                selection.push(rank);
            }
        }
        Ok(selection)
    }
}

/// The policy for chats: the newest first, in whole groups.
pub fn default_policy() -> Policy {
    for_chats(&Policy::new(RecencyScorer, BestFirst, ChronologicalPlacer))
}

/// A policy as [`Chat::fit`] uses it: groups stay whole, copies stay, and an overflow is an error.
///
/// ```
/// use cupel::{ChronologicalPlacer, GreedySlice, Policy, RecencyScorer};
///
/// let policy = Policy::new(RecencyScorer, GreedySlice, ChronologicalPlacer);
/// assert!(!cupel_chat::for_chats(&policy).deduplication());
/// ```
pub fn for_chats(policy: &Policy) -> Policy {
    let builder = policy
        .to_builder()
        .map_slicer(GroupSlice::new)
        .deduplication(false)
        .overflow_strategy(OverflowStrategy::Throw);
    // A policy has all its parts.
    builder.build().unwrap_or_else(|_| policy.clone())
}

/// What stays of a chat; see [`Chat::fit`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Fitted<'a> {
    chat: &'a Chat,
    /// The positions of what stays, ascending.
    pub kept: Vec<usize>,
    /// What does not, in order.
    pub dropped: Vec<Dropped>,
    /// The tokens of the whole request before and after.
    pub tokens_before: i64,
    /// The tokens of what is written.
    pub tokens_after: i64,
    /// The run behind it. What goes along with any choice of messages is in it as a pinned item of the
    /// kind `Request`; what no run could have kept is excluded as `Filtered`.
    pub report: SelectionReport,
}

/// A message that does not stay.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Dropped {
    /// Its position.
    pub index: usize,
    /// Its role as it is written.
    pub role: String,
    /// Its tokens.
    pub tokens: i64,
    /// Why.
    pub reason: ExclusionReason,
}

impl Fitted<'_> {
    /// The chat in its own shape with what stays of it, to the byte.
    pub fn to_json(&self) -> String {
        self.chat.write(&self.kept)
    }
}

/// Why a chat cannot be made to fit.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FitError {
    /// What has to be kept is larger than the budget.
    TooLarge {
        /// The tokens there are for the request.
        available: i64,
        /// The tokens of what has to be kept, the overhead included.
        needed: i64,
        /// The tokens of what goes along with any choice of messages.
        overhead: i64,
        /// The messages that have to be kept.
        messages: Vec<MustKeep>,
    },
    /// A message that has to be kept is part of a call or answer that is not whole.
    Orphan {
        /// Its position.
        index: usize,
        /// Its role as it is written.
        role: String,
        /// What it is.
        orphan: &'static str,
    },
    /// The shape wants the user to speak first, and no user does.
    NoUserTurn(Shape),
    /// The policy failed.
    Policy(CupelError),
}

/// A message that has to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MustKeep {
    /// Its position.
    pub index: usize,
    /// Its role as it is written.
    pub role: String,
    /// Its tokens.
    pub tokens: i64,
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge {
                available,
                needed,
                overhead,
                messages,
            } => {
                let over = needed.saturating_sub(*available);
                write!(
                    f,
                    "what has to be kept needs {needed} tokens, {over} more than the {available} there are:"
                )?;
                for (position, message) in messages.iter().enumerate() {
                    let MustKeep {
                        index,
                        role,
                        tokens,
                    } = message;
                    let comma = if position > 0 { "," } else { "" };
                    write!(f, "{comma} message {index} ({role}, {tokens} tokens)")?;
                }
                let and = if messages.is_empty() { "" } else { " and" };
                write!(
                    f,
                    "{and} {overhead} tokens around the messages; raise the budget or shorten these"
                )
            }
            Self::Orphan {
                index,
                role,
                orphan,
            } => write!(
                f,
                "message {index} ({role}) has to be kept and is part of an {orphan}; complete the chat"
            ),
            Self::NoUserTurn(shape) => {
                write!(
                    f,
                    "a chat of the shape {shape} starts on a user turn, and there is none that can be kept"
                )
            }
            Self::Policy(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Policy(error) => Some(error),
            _ => None,
        }
    }
}

/// The reason of what stood before the first user turn that is kept.
const BEFORE_USER: &str = "starts on a user turn";

impl Chat {
    /// What has to be kept: the system's messages, answers to calls the provider remembers, the last
    /// user turn with its group, and, where a chat has to start on a user turn, the user turn before
    /// that group.
    pub(crate) fn must_keep(&self) -> Result<BTreeSet<usize>, FitError> {
        let is_system = |index: &usize| self.is_system(*index);
        let mut kept: BTreeSet<usize> = (0..self.turns.len()).filter(is_system).collect();
        if self.shape == Shape::Items {
            return Ok(kept);
        }
        for &answer in self.threads.answers() {
            kept.extend(self.threads.members(self.threads.group(answer)));
        }
        kept.iter().try_for_each(|&index| self.check_whole(index))?;
        let user_turn = |index: &usize| self.turns[*index].is_user_turn();
        let mut next = (0..self.turns.len()).rfind(user_turn);
        if next.is_none() && self.shape == Shape::Anthropic && !self.is_empty() {
            return Err(FitError::NoUserTurn(self.shape));
        }
        while let Some(index) = next {
            self.check_whole(index)?;
            let first = self.threads.group(index);
            kept.extend(self.threads.members(first));
            if !self.shape.starts_on_user() || user_turn(&first) {
                break;
            }
            let whole = |index: &usize| self.threads.orphan(*index).is_none();
            next = (0..first).rev().filter(user_turn).find(whole);
            if next.is_none() {
                return Err(FitError::NoUserTurn(self.shape));
            }
        }
        Ok(kept)
    }

    /// Fails for a message that no choice may hold.
    fn check_whole(&self, index: usize) -> Result<(), FitError> {
        match self.threads.orphan(index) {
            None => Ok(()),
            Some(orphan) => Err(FitError::Orphan {
                index,
                role: self.turns[index].label.clone(),
                orphan: orphan.describe(),
            }),
        }
    }

    /// What of the chat stays within a budget, so that the result is valid for its provider.
    ///
    /// The whole request counts: messages with their overhead, tool definitions, the system prompt,
    /// wherever it stands. The rules:
    ///
    /// - The system's messages and the last user turn stay. If they alone are too large, that is an
    ///   error that names them.
    /// - A turn with calls and all their results stay or go together, as does reasoning with what it
    ///   leads to. What follows the last user turn competes like everything else: it is the newest, so
    ///   the default policy takes it first, but a result larger than the budget cannot stay.
    /// - A request that goes on where another one ended (`previous_response_id`, `conversation`) may answer
    ///   calls that are not in it; such results stay.
    /// - A call without its result, a result without its call, and reasoning that leads nowhere are
    ///   dropped with their group: no provider accepts them.
    /// - Where the shape starts on a user turn and the policy's choice does not, the user turn before it
    ///   is kept too, at the expense of others; if there is no room for that one, the chat starts on
    ///   the first later one there is room for.
    /// - The order is the input's. The policy's placer is not asked.
    ///
    /// Items ([`Shape::Items`]) have no rules but their own pins and groups.
    ///
    /// # Errors
    ///
    /// [`FitError`].
    ///
    /// ```
    /// use cupel::ContextBudget;
    /// use cupel_chat::{Chat, Encoding, default_policy};
    ///
    /// let chat = Chat::parse(r#"[
    ///   {"role": "system", "content": "Be brief."},
    ///   {"role": "user", "content": "A long story, long ago and far away, that nobody needs any more."},
    ///   {"role": "assistant", "content": "I see."},
    ///   {"role": "user", "content": "What is 2 + 2?"}
    /// ]"#, None)?;
    /// let budget = ContextBudget::with_target(40, 40)?;
    /// let fitted = chat.fit(&default_policy(), &budget, &Encoding::O200k)?;
    /// assert_eq!(fitted.kept, [0, 2, 3]);
    /// assert_eq!((fitted.tokens_before, fitted.tokens_after), (49, 29));
    /// assert_eq!((fitted.dropped[0].index, fitted.dropped[0].tokens), (1, 20));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit(
        &self,
        policy: &Policy,
        budget: &ContextBudget,
        counter: &dyn TokenCounter,
    ) -> Result<Fitted<'_>, FitError> {
        let must_keep = self.must_keep()?;
        let items = self.items(counter);
        let overhead = self.overhead(counter);
        let room = check_room(self, &items, &must_keep, overhead, budget)?;

        let run = Run {
            items: &items,
            overhead,
            policy: &for_chats(policy),
            budget,
        };
        let whole = |index: &usize| self.threads.orphan(*index).is_none();
        let mut decided = run.decide(whole, |_| false)?;
        if let Some(start) = self.start(&decided, &must_keep, &items, room) {
            let is_in = |index: &usize| {
                whole(index) && (self.is_system(*index) || self.threads.group(*index) >= start)
            };
            let again = run.decide(is_in, |index| self.threads.group(index) == start)?;
            decided.overrule(again);
        }
        for (index, item) in items.iter().enumerate() {
            if let Some(orphan) = self.threads.orphan(index) {
                decided.filter(index, item, orphan.describe());
            }
        }

        let kept: Vec<usize> = decided.kept().collect();
        let dropped = decided.excluded.iter().map(|(&index, entry)| Dropped {
            index,
            role: self.turns[index].label.clone(),
            tokens: entry.item.tokens(),
            reason: entry.reason.clone(),
        });
        let sum = |tokens: i64, more: i64| tokens.saturating_add(more);
        let kept_tokens = kept.iter().map(|&index| items[index].tokens());
        Ok(Fitted {
            chat: self,
            tokens_before: items.iter().map(ContextItem::tokens).fold(overhead, sum),
            tokens_after: kept_tokens.fold(overhead, sum),
            dropped: dropped.collect(),
            kept,
            report: decided.into_report(),
        })
    }

    fn is_system(&self, index: usize) -> bool {
        self.turns[index].role() == Role::System
    }

    /// The user turn to start on, if the choice does not start on one and has to: the last one before
    /// everything that was chosen, if there is room for it, else the first behind it that has room.
    fn start(
        &self,
        decided: &Decided,
        must_keep: &BTreeSet<usize>,
        items: &[ContextItem],
        room: i64,
    ) -> Option<usize> {
        let first = decided.kept().find(|&index| !self.is_system(index))?;
        if !self.shape.starts_on_user() || self.turns[first].is_user_turn() {
            return None;
        }
        let may_start = |&index: &usize| {
            let group = self.threads.members(index).iter();
            let tokens = group.map(|&member| i128::from(items[member].tokens()));
            self.turns[index].is_user_turn()
                && self.threads.group(index) == index
                && self.threads.orphan(index).is_none()
                && (must_keep.contains(&index) || tokens.sum::<i128>() <= room.into())
        };
        let before = (0..first).rfind(|&index| self.turns[index].is_user_turn());
        (before.unwrap_or(first)..items.len()).find(may_start)
    }
}

/// A run over some of the messages.
struct Run<'a> {
    items: &'a [ContextItem],
    overhead: i64,
    policy: &'a Policy,
    budget: &'a ContextBudget,
}

impl Run<'_> {
    /// Chooses among the messages that are `offered`, with more of them pinned.
    fn decide(
        &self,
        offered: impl Fn(&usize) -> bool,
        pinned: impl Fn(usize) -> bool,
    ) -> Result<Decided, FitError> {
        let mut indices: Vec<usize> = (0..self.items.len()).filter(offered).collect();
        let mut candidates = Vec::with_capacity(indices.len() + 1);
        for &index in &indices {
            let item = &self.items[index];
            candidates.push(if pinned(index) && !item.pinned() {
                item.to_builder()
                    .pinned(true)
                    .build()
                    .map_err(FitError::Policy)?
            } else {
                item.clone()
            });
        }
        if self.overhead > 0 {
            let kind = ContextKind::new("Request").map_err(FitError::Policy)?;
            let request = ContextItem::builder("[request]", self.overhead).kind(kind);
            candidates.push(request.pinned(true).build().map_err(FitError::Policy)?);
            indices.push(self.items.len());
        }
        let report = self.policy.dry_run(&candidates, self.budget);
        let report = report.map_err(FitError::Policy)?;

        // Handles of one item share its text, which is never empty.
        let place = |item: &ContextItem| item.content().as_ptr().addr();
        let index_of: HashMap<usize, usize> = candidates.iter().map(place).zip(indices).collect();
        let mut decided = Decided {
            messages: self.items.len(),
            events: report.events,
            included: BTreeMap::new(),
            excluded: BTreeMap::new(),
            shortfalls: report.count_requirement_shortfalls,
        };
        for entry in report.included {
            decided
                .included
                .insert(index_of[&place(&entry.item)], entry);
        }
        for entry in report.excluded {
            decided
                .excluded
                .insert(index_of[&place(&entry.item)], entry);
        }
        Ok(decided)
    }
}

/// What a run decided about every message, by position; the request itself stands behind the last.
struct Decided {
    messages: usize,
    events: Vec<TraceEvent>,
    included: BTreeMap<usize, IncludedItem>,
    excluded: BTreeMap<usize, ExcludedItem>,
    shortfalls: Vec<CountRequirementShortfall>,
}

impl Decided {
    fn kept(&self) -> impl Iterator<Item = usize> {
        self.included
            .keys()
            .copied()
            .filter(|&index| index < self.messages)
    }

    /// Says of a message that no run may keep it.
    fn filter(&mut self, index: usize, item: &ContextItem, filter: &str) {
        let reason = ExclusionReason::Filtered {
            filter_name: filter.to_owned(),
        };
        let entry = ExcludedItem::new(item.clone(), 0.0, reason);
        self.excluded.insert(index, entry);
    }

    /// Takes over a run that was offered less. What was chosen and is not offered any more stood before
    /// the user turn to start on.
    fn overrule(&mut self, again: Self) {
        let before = std::mem::replace(self, again);
        for (index, entry) in before.excluded {
            if !self.included.contains_key(&index) {
                self.excluded.entry(index).or_insert(entry);
            }
        }
        for (index, entry) in before.included {
            if !self.included.contains_key(&index) && !self.excluded.contains_key(&index) {
                self.filter(index, &entry.item, BEFORE_USER);
            }
        }
    }

    /// The report: what is in by position, what is out by score.
    fn into_report(self) -> SelectionReport {
        let mut excluded: Vec<ExcludedItem> = self.excluded.into_values().collect();
        excluded.sort_by(|a, b| {
            let by_score = b.score.partial_cmp(&a.score);
            by_score.unwrap_or_else(|| a.score.is_nan().cmp(&b.score.is_nan()))
        });
        SelectionReport::new(
            self.events,
            self.included.into_values().collect(),
            excluded,
            self.shortfalls,
        )
    }
}

/// The room beside what has to be kept; an error if that alone is too large.
fn check_room(
    chat: &Chat,
    items: &[ContextItem],
    must_keep: &BTreeSet<usize>,
    overhead: i64,
    budget: &ContextBudget,
) -> Result<i64, FitError> {
    let available = budget
        .target_tokens()
        .min(budget.max_tokens() - budget.output_reserve());
    let pinned = items
        .iter()
        .enumerate()
        .filter(|(index, item)| must_keep.contains(index) || item.pinned());
    let messages: Vec<MustKeep> = pinned
        .map(|(index, item)| MustKeep {
            index,
            role: chat.turns[index].label.clone(),
            tokens: item.tokens(),
        })
        .collect();
    let needed = messages
        .iter()
        .fold(overhead, |sum, message| sum.saturating_add(message.tokens));
    if needed <= available {
        return Ok(available - needed);
    }
    Err(FitError::TooLarge {
        available,
        needed,
        overhead,
        messages,
    })
}
