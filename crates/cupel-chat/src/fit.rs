//! [`Chat::fit`]: what stays of a chat within a budget.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use cupel::slicer::slice_by_selection;
use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, CupelError, ExclusionReason, Policy,
    RecencyScorer, ScoredItem, ScoredRef, Selection, SelectionReport, Slicer, total_tokens,
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
        slice_by_selection(self, sorted, budget)
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

/// The policy for chats: the newest first.
///
/// ```
/// assert_eq!(cupel_chat::default_policy().scorer().scorer_name(), "RecencyScorer");
/// ```
pub fn default_policy() -> Policy {
    Policy::new(RecencyScorer, BestFirst, ChronologicalPlacer)
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
        /// What the messages look like.
        shape: Shape,
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
                shape,
                available,
                needed,
                overhead,
                messages,
            } => {
                let over = needed.saturating_sub(*available);
                let unit = shape.unit();
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
                    write!(f, "{comma} {unit} {index} ({role}, {tokens} tokens)")?;
                }
                if *overhead > 0 {
                    let and = if messages.is_empty() { "" } else { " and" };
                    write!(f, "{and} {overhead} tokens around the {unit}s")?;
                }
                f.write_str("; raise the budget or shorten these")
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
        let Some(last) = (0..self.turns.len()).rfind(user_turn) else {
            return if self.shape == Shape::Anthropic && !self.is_empty() {
                Err(FitError::NoUserTurn(self.shape))
            } else {
                Ok(kept)
            };
        };
        self.check_whole(last)?;
        let first = self.threads.group(last);
        kept.extend(self.threads.members(first));
        if self.shape.starts_on_user() && !user_turn(&first) {
            let start = (0..first).rfind(|&index| self.can_start(index));
            let start = start.ok_or(FitError::NoUserTurn(self.shape))?;
            kept.extend(self.threads.members(start));
        }
        Ok(kept)
    }

    /// Whether a chat can start on a message: the user speaks, and to nothing before.
    pub(crate) fn can_start(&self, index: usize) -> bool {
        self.turns[index].is_user_turn()
            && self.threads.group(index) == index
            && self.threads.orphan(index).is_none()
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
    /// - Where the shape starts on a user turn and the policy's choice does not, the last user turn before
    ///   it that there is room for is kept too, at the expense of others; if there is none, the chat
    ///   starts on the first later one.
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
        self.fit_candidates(policy, budget, &self.candidates(counter))
    }

    /// [`fit`](Self::fit) for a chat that is counted already, of which these are the
    /// [`candidates`](Self::candidates).
    ///
    /// # Errors
    ///
    /// [`FitError`].
    ///
    /// # Panics
    ///
    /// If there are fewer candidates than messages.
    ///
    /// ```
    /// use cupel::ContextBudget;
    /// use cupel_chat::{Chat, Encoding, default_policy};
    ///
    /// let chat = Chat::parse(r#"[
    ///   {"role": "user", "content": "Hello!"},
    ///   {"role": "assistant", "content": "Hello! What can I do for you today?"},
    ///   {"role": "user", "content": "What is 2 + 2?"}
    /// ]"#, None)?;
    /// let candidates = chat.candidates(&Encoding::O200k);
    /// for (tokens, kept) in [(21, &[0, 2][..]), (29, &[1, 2]), (35, &[0, 1, 2])] {
    ///     let budget = ContextBudget::with_target(tokens, tokens)?;
    ///     assert_eq!(chat.fit_candidates(&default_policy(), &budget, &candidates)?.kept, kept);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit_candidates(
        &self,
        policy: &Policy,
        budget: &ContextBudget,
        candidates: &[ContextItem],
    ) -> Result<Fitted<'_>, FitError> {
        self.check(candidates, budget)?;
        let report = self.policy(policy).dry_run(candidates, budget);
        let mut report = report.map_err(FitError::Policy)?;

        // Handles of one item share its text, which is never empty.
        let place = |item: &ContextItem| item.content().as_ptr().addr();
        let index_of: HashMap<usize, usize> = candidates.iter().map(place).zip(0..).collect();
        let index_of = |item: &ContextItem| index_of[&place(item)];
        report.included.sort_by_key(|entry| index_of(&entry.item));
        let tokens_after = total_tokens(report.included.iter().map(|entry| &entry.item));
        let kept = report.included.iter().map(|entry| index_of(&entry.item));
        let kept: Vec<usize> = kept.filter(|&index| index < self.len()).collect();
        let dropped = report.excluded.iter().filter_map(|entry| {
            let index = index_of(&entry.item);
            Some(Dropped {
                index,
                role: self.turns.get(index)?.label.clone(),
                tokens: entry.item.tokens(),
                reason: entry.reason.clone(),
            })
        });
        let mut dropped: Vec<Dropped> = dropped.collect();
        dropped.sort_by_key(|dropped| dropped.index);
        Ok(Fitted {
            chat: self,
            tokens_before: total_tokens(candidates),
            tokens_after,
            dropped,
            kept,
            report,
        })
    }

    /// Checks that the chat has the messages its format requires, and that the mandatory ones fit.
    ///
    /// [`fit`](Self::fit) starts with this check; a run of the chat's [`policy`](Self::policy) does not.
    ///
    /// # Errors
    ///
    /// [`FitError`].
    pub fn check(
        &self,
        candidates: &[ContextItem],
        budget: &ContextBudget,
    ) -> Result<(), FitError> {
        self.must_keep()?;
        self.check_room(candidates, budget)
    }

    fn check_room(
        &self,
        candidates: &[ContextItem],
        budget: &ContextBudget,
    ) -> Result<(), FitError> {
        let available = budget.window_limit();
        let (messages, around) = candidates.split_at(self.len());
        let pinned = messages
            .iter()
            .enumerate()
            .filter(|(_, item)| item.pinned());
        let needed = total_tokens(pinned.clone().map(|(_, item)| item).chain(around));
        if needed <= available {
            return Ok(());
        }
        Err(FitError::TooLarge {
            shape: self.shape,
            available,
            needed,
            overhead: total_tokens(around),
            messages: pinned
                .map(|(index, item)| MustKeep {
                    index,
                    role: self.turns[index].label.clone(),
                    tokens: item.tokens(),
                })
                .collect(),
        })
    }

    fn is_system(&self, index: usize) -> bool {
        self.turns[index].role() == Role::System
    }
}
