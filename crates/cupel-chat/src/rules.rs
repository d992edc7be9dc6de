//! The rules of a chat as part of a policy, so that every question about a chat, not only
//! [`Chat::fit`], is answered by them.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use cupel::slicer::slice_by_selection;
use cupel::{
    ContextBudget, ContextItem, ContextKind, CupelError, ExclusionReason, GroupSlice,
    OverflowStrategy, Policy, Refusal, ScoredItem, ScoredRef, Selection, Slicer,
};

use crate::chat::Chat;
use crate::threads::Orphan;
use crate::turn::Role;

impl Chat {
    /// A policy that keeps the rules of this chat: for its [`candidates`](Self::candidates) it chooses what
    /// [`fit`](Self::fit) chooses, so that other questions can be asked about the chat.
    ///
    /// Groups stay whole, copies stay, an overflow is an error, what can never be valid is left
    /// out, and the choice starts on a user turn where the shape does.
    ///
    /// ```
    /// use cupel::{ContextBudget, Pipeline};
    /// use cupel_chat::{Chat, Encoding, default_policy};
    ///
    /// let chat = Chat::parse(r#"[
    ///   {"role": "user", "content": "Hello!"},
    ///   {"role": "assistant", "content": "Hello! What can I do for you today?"},
    ///   {"role": "user", "content": "What is 2 + 2?"}
    /// ]"#, None)?;
    /// let candidates = chat.candidates(&Encoding::O200k);
    /// let pipeline = Pipeline::from(chat.policy(&default_policy()));
    /// let budget = ContextBudget::with_target(30, 30)?;
    /// let sweep = pipeline.sweep(&candidates, &budget, 20..=40)?;
    /// let included: Vec<_> = sweep.steps.iter().map(|step| step.included).collect();
    /// // What is around the messages and the question; with the greeting, with the answer, with both.
    /// assert_eq!(included, [2, 3, 3, 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn policy(&self, policy: &Policy) -> Policy {
        let rules = Rules::of(self);
        let builder = policy
            .to_builder()
            .map_slicer(|inner| {
                let groups = GroupSlice::new(inner);
                match rules {
                    Some(rules) => Box::new(ValidSlice { groups, rules }) as Box<dyn Slicer>,
                    None => Box::new(groups),
                }
            })
            .deduplication(false)
            .overflow_strategy(OverflowStrategy::Throw);
        // A policy has all its parts.
        builder.build().unwrap_or_else(|_| policy.clone())
    }
}

/// What a choice of messages has to look at beside their groups, by position.
struct Rules {
    messages: Vec<Message>,
    /// The first message that is pinned and not the system's.
    first_pinned: Option<usize>,
    /// Whether the choice has to start on a user turn.
    starts_on_user: bool,
}

struct Message {
    /// The first message of its group.
    group: usize,
    /// Why it can never be valid, if so.
    orphan: Option<&'static str>,
    is_user_turn: bool,
    /// Whether a chat can start on it.
    can_start: bool,
    pinned: bool,
}

impl Rules {
    /// `None` if there is nothing to look at.
    fn of(chat: &Chat) -> Option<Self> {
        let must_keep: BTreeSet<usize> = chat.must_keep().unwrap_or_default();
        let message = |index: usize| Message {
            group: chat.threads.group(index),
            orphan: chat.threads.orphan(index).map(Orphan::describe),
            is_user_turn: chat.turns[index].is_user_turn(),
            can_start: chat.can_start(index),
            pinned: must_keep.contains(&index),
        };
        let is_system = |index: usize| chat.turns[index].role() == Role::System;
        let rules = Self {
            messages: (0..chat.turns.len()).map(message).collect(),
            first_pinned: must_keep.into_iter().find(|&index| !is_system(index)),
            starts_on_user: chat.shape.starts_on_user(),
        };
        let has_orphans = rules
            .messages
            .iter()
            .any(|message| message.orphan.is_some());
        (rules.starts_on_user || has_orphans).then_some(rules)
    }

    fn message(&self, item: &ContextItem) -> Option<(usize, &Message)> {
        let index = item.metadata().get("index")?.parse().ok()?;
        Some((index, self.messages.get(index)?))
    }
}

/// The reason of what stands before the user turn that a chat starts on.
const BEFORE_USER: &str = "starts on a user turn";

/// Chooses whole groups so that the rules are kept.
struct ValidSlice {
    groups: GroupSlice,
    rules: Rules,
}

/// Some of a ranked list, by rank, and what is chosen from it.
struct Part<'a> {
    ranks: Vec<usize>,
    view: Vec<ScoredRef<'a>>,
}

impl<'a> Part<'a> {
    fn new(ranked: &[ScoredRef<'a>], ranks: Vec<usize>) -> Self {
        let view = ranks.iter().map(|&rank| ranked[rank]).collect();
        Self { ranks, view }
    }
}

impl ValidSlice {
    fn group(&self, item: &ContextItem) -> usize {
        self.rules
            .message(item)
            .map_or(0, |(_, message)| message.group)
    }

    /// The message to start on, if `kept` does not start on a user turn and has to: the last before
    /// everything that is kept that there is room for, else the first behind it.
    fn start(&self, whole: &Part<'_>, kept: &[usize], room: i64) -> Option<usize> {
        let position = |&rank: &usize| Some(self.rules.message(whole.view[rank].item)?.0);
        let kept = kept.iter().filter_map(position);
        let first = kept.chain(self.rules.first_pinned).min()?;
        let messages = &self.rules.messages;
        if !self.rules.starts_on_user || messages[first].is_user_turn {
            return None;
        }
        let mut tokens = vec![0_i128; messages.len()];
        for scored in &whole.view {
            tokens[self.group(scored.item)] += i128::from(scored.item.tokens());
        }
        let may_start = |&index: &usize| {
            let message = &messages[index];
            message.can_start && (message.pinned || tokens[index] <= i128::from(room))
        };
        let before = (0..first).rev().find(may_start);
        before.or_else(|| (first..messages.len()).find(may_start))
    }
}

impl Slicer for ValidSlice {
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
        let mut selection = Selection::default();
        let mut whole = Vec::with_capacity(ranked.len());
        for (rank, scored) in ranked.iter().enumerate() {
            match self.rules.message(scored.item) {
                Some((
                    _,
                    Message {
                        orphan: Some(orphan),
                        ..
                    },
                )) => {
                    selection.refuse(rank, filtered(orphan));
                }
                _ => whole.push(rank),
            }
        }
        let whole = Part::new(ranked, whole);
        let chosen = self.groups.select(&whole.view, budget)?;
        let Some(start) = self.start(&whole, chosen.kept(), budget.target_tokens()) else {
            let kept = selection.adopt(chosen, &whole.ranks)?;
            selection.extend(kept);
            return Ok(selection);
        };

        let mut behind = Vec::new();
        let mut taken = 0_i64;
        for (&rank, scored) in whole.ranks.iter().zip(&whole.view) {
            match self.group(scored.item).cmp(&start) {
                Ordering::Less => selection.refuse(rank, filtered(BEFORE_USER)),
                Ordering::Equal => {
                    selection.push(rank);
                    taken = taken.saturating_add(scored.item.tokens());
                }
                Ordering::Greater => behind.push(rank),
            }
        }
        let behind = Part::new(ranked, behind);
        let left = ContextBudget::with_target(
            (budget.max_tokens() - taken).max(0),
            (budget.target_tokens() - taken).max(0),
        )?;
        let chosen = self.groups.select(&behind.view, &left)?;
        let kept = selection.adopt(chosen, &behind.ranks)?;
        selection.extend(kept);
        Ok(selection)
    }

    fn is_knapsack(&self) -> bool {
        self.groups.is_knapsack()
    }

    fn is_quota(&self) -> bool {
        self.groups.is_quota()
    }

    fn is_count_quota(&self) -> bool {
        self.groups.is_count_quota()
    }

    fn count_cap_map(&self) -> HashMap<ContextKind, usize> {
        self.groups.count_cap_map()
    }
}

fn filtered(filter: &str) -> Refusal {
    Refusal::Because(ExclusionReason::Filtered {
        filter_name: filter.to_owned(),
    })
}
