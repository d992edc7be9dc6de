//! The rules of a chat as a slicer, so that [`Chat::fit`], sweeps and explanations all follow them.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use cupel::slicer::slice_by_selection;
use cupel::{
    ContextBudget, ContextItem, ContextKind, CupelError, ExclusionReason, GroupSlice,
    OverflowStrategy, Policy, Refusal, ScoredItem, ScoredRef, Selection, Slicer,
};

use crate::chat::Chat;
use crate::groups::Orphan;
use crate::message::Role;

impl Chat {
    /// Returns a policy that follows the rules of this chat: it selects from its
    /// [`candidates`](Self::candidates) what [`fit`](Self::fit) selects. Use it for sweeps and explanations.
    ///
    /// It keeps or drops groups as a whole, does not deduplicate, fails on overflow, drops orphans,
    /// and starts on a user turn if the format does.
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
    /// // The request overhead and the question; with the greeting, with the answer, with both.
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
                    Some(rules) => Box::new(ChatSlice { groups, rules }) as Box<dyn Slicer>,
                    None => Box::new(groups),
                }
            })
            .deduplication(false)
            .overflow_strategy(OverflowStrategy::Throw);
        // `build` fails only if a strategy is missing.
        builder.build().unwrap_or_else(|_| policy.clone())
    }
}

/// The properties of the messages that the rules depend on, by position.
struct Rules {
    messages: Vec<MessageRules>,
    /// The first mandatory message that is not a system message.
    first_pinned: Option<usize>,
    /// Whether the selection must start on a user turn.
    starts_on_user: bool,
}

struct MessageRules {
    /// The first message of its group.
    group: usize,
    /// Why it is never valid.
    orphan: Option<&'static str>,
    is_user_turn: bool,
    /// Whether a chat can start on it.
    can_start: bool,
    pinned: bool,
}

impl Rules {
    /// Returns `None` if groups are the only rule.
    fn of(chat: &Chat) -> Option<Self> {
        let mandatory: BTreeSet<usize> = chat.mandatory().unwrap_or_default();
        let message = |index: usize| MessageRules {
            group: chat.groups.group(index),
            orphan: chat.groups.orphan(index).map(Orphan::describe),
            is_user_turn: chat.messages[index].is_user_turn(),
            can_start: chat.can_start(index),
            pinned: mandatory.contains(&index),
        };
        let is_system = |index: usize| chat.messages[index].role() == Role::System;
        let rules = Self {
            messages: (0..chat.len()).map(message).collect(),
            first_pinned: mandatory.into_iter().find(|&index| !is_system(index)),
            starts_on_user: chat.shape.starts_on_user(),
        };
        let has_orphans = rules
            .messages
            .iter()
            .any(|message| message.orphan.is_some());
        (rules.starts_on_user || has_orphans).then_some(rules)
    }

    fn message(&self, scored: &ScoredRef<'_>) -> Option<&MessageRules> {
        self.messages.get(scored.position)
    }
}

/// The reason of messages before the user turn that the chat starts on.
const BEFORE_USER: &str = "starts on a user turn";

/// Selects whole groups by the rules.
struct ChatSlice {
    groups: GroupSlice,
    rules: Rules,
}

/// Some items of a ranked list, and their ranks in it.
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

impl ChatSlice {
    fn group(&self, scored: &ScoredRef<'_>) -> usize {
        self.rules
            .message(scored)
            .map_or(0, |message| message.group)
    }

    /// Returns the message to start on, if `kept` must start on a user turn and does not: the last one
    /// before `kept` that fits, otherwise the first one after its start.
    fn start(&self, whole: &Part<'_>, kept: &[usize], room: i64) -> Option<usize> {
        let kept = kept.iter().map(|&rank| whole.view[rank].position);
        let first = kept.chain(self.rules.first_pinned).min()?;
        let messages = &self.rules.messages;
        if !self.rules.starts_on_user || messages[first].is_user_turn {
            return None;
        }
        let mut tokens = vec![0_i128; messages.len()];
        for scored in &whole.view {
            tokens[self.group(scored)] += i128::from(scored.item.tokens());
        }
        let may_start = |&index: &usize| {
            let message = &messages[index];
            message.can_start && (message.pinned || tokens[index] <= i128::from(room))
        };
        let before = (0..first).rev().find(may_start);
        before.or_else(|| (first..messages.len()).find(may_start))
    }
}

impl Slicer for ChatSlice {
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
            match self
                .rules
                .message(scored)
                .and_then(|message| message.orphan)
            {
                Some(orphan) => selection.refuse(rank, filtered(orphan)),
                None => whole.push(rank),
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
            match self.group(scored).cmp(&start) {
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
