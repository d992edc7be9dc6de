//! The rules of a chat as slicers, so that [`Chat::fit`], sweeps and explanations all follow them.
//!
//! | file | slicer |
//! |---|---|
//! | `ladder.rs` | `ChatLadder`: drops invalid messages, then lets a ladder choose from the others |
//! | `groups.rs` | `ChatSlice`: keeps whole groups with any other slicer, and starts on a user turn |
//! | `starts.rs` | the sweep of `ChatSlice` |
//!
//! Each rule is part of the selection. If `fit` repaired the window after the selection instead, sweeps and
//! explanations would not see the repair, and would describe windows that are never written. The rules, in
//! the order in which they apply:
//!
//! 1. A chat that fits stays as it is, even if it is invalid: nothing has to be trimmed. [`Whole`] lists the
//!    exceptions.
//! 2. Messages that no provider accepts in a trimmed chat are dropped first, with their group.
//! 3. The slicer chooses among the others, whole groups at a time.
//! 4. If the format starts on a user turn, the window does: messages before that turn are dropped,
//!    and the rest of the budget is filled again from the messages after it.

mod groups;
mod ladder;
mod starts;

use std::collections::BTreeSet;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use cupel::slicer::{SweepVisitor, ViewChange};
use cupel::{
    CupelError, ExclusionReason, GroupSlice, OverflowStrategy, Policy, Refusal, ScoredRef,
    Selection, Slicer,
};

use self::groups::{ChatSlice, Rules};
use self::ladder::ChatLadder;
use crate::candidates::Candidates;
use crate::chat::Chat;

/// The filter name of messages dropped before the user turn on which the chat starts.
const BEFORE_USER: &str = "before the first user turn";

/// The filter name of messages that a cut of a replay dropped.
const CUT: &str = "older than the cut";

impl Chat {
    /// Returns a policy without a ladder that follows the rules of this chat: it selects from its
    /// [`candidates`](Self::candidates) what [`fit`](Self::fit) selects. Use it for sweeps and explanations.
    /// For a policy that may have a ladder, use [`policy_over`](Self::policy_over).
    ///
    /// It keeps or drops groups as a whole, does not deduplicate, and fails on overflow. If the chat does not
    /// fit, it drops invalid messages first, and starts on a user turn if the format does.
    ///
    /// ```
    /// use cupel::ContextBudget;
    /// use cupel_chat::{Chat, Encoding, newest_policy};
    ///
    /// let chat = Chat::parse(r#"[
    ///   {"role": "user", "content": "Hello!"},
    ///   {"role": "assistant", "content": "Hello! What can I do for you today?"},
    ///   {"role": "user", "content": "What is 2 + 2?"}
    /// ]"#, None)?;
    /// let candidates = chat.candidates(&Encoding::O200k);
    /// let pipeline = chat.policy(&newest_policy());
    /// let budget = ContextBudget::with_target(30, 30)?;
    /// let sweep = pipeline.sweep(&candidates, &budget, 20..=40)?;
    /// let included: Vec<_> = sweep.steps.iter().map(|step| step.included).collect();
    /// // The request overhead and the question; with the greeting, with the answer, with both.
    /// assert_eq!(included, [2, 3, 3, 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn policy(&self, policy: &Policy) -> Policy {
        self.policy_with_pinned(policy, self.mandatory().unwrap_or_default())
    }

    fn policy_with_pinned(&self, policy: &Policy, pinned: BTreeSet<usize>) -> Policy {
        let rules = Rules::of(self, pinned, policy.chat().strict);
        with_slicer(&self.with_question(policy), |inner| {
            let groups = GroupSlice::new(inner);
            match rules {
                Some(rules) => Arc::new(ChatSlice { groups, rules }),
                None => Arc::new(groups),
            }
        })
    }

    /// Returns a policy that follows the rules of this chat over the candidates that
    /// [`candidates_for`](Self::candidates_for) made for the same policy.
    pub fn policy_over(&self, policy: &Policy, candidates: &Candidates) -> Policy {
        let Some(ladder) = candidates.ladder.clone() else {
            let is_pinned = |index: &usize| candidates[*index].pinned();
            let pinned = (0..self.len()).filter(is_pinned).collect();
            return self.policy_with_pinned(policy, pinned);
        };
        let slicer = policy.slicer().with_ladder(ladder.clone());
        let slicer = ChatLadder {
            slicer: slicer.unwrap_or_else(|| Arc::new(ladder.clone())),
            refused: self.refused_by_ladder(candidates),
            whole: Whole::of(self, candidates.is_strict),
            gap_tokens: candidates.gap_tokens(),
            ladder,
        };
        with_slicer(&self.with_question(policy), |_| Arc::new(slicer))
    }

    /// Returns the policy for the question of this chat, if it needs a query and has none.
    fn with_question(&self, policy: &Policy) -> Policy {
        // The question is a copy of a whole message, and most policies read none.
        let question = policy.needs_query().then(|| self.question()).flatten();
        question.map_or_else(|| policy.clone(), |question| policy.with_query(question))
    }

    /// Returns, by position, the filter that keeps a message from the ladder, if there is one.
    fn refused_by_ladder(&self, candidates: &Candidates) -> Vec<Option<Filter>> {
        (0..self.len())
            .map(self.ladder_filter(candidates))
            .collect()
    }

    /// Returns a function from a position to the filter that keeps this message from the ladder, if there is
    /// one.
    pub(crate) fn ladder_filter<'a>(
        &'a self,
        candidates: &'a Candidates,
    ) -> impl Fn(usize) -> Option<Filter> + 'a {
        let start = self.earliest_start();
        move |index| {
            // Items have no rules of a provider. A message that a cut dropped stays dropped, and
            // that reason is stated first, because it holds whether the message is valid or not.
            if !self.shape.is_chat() {
                None
            } else if candidates.is_cut(index) {
                Some(Filter::Cut)
            } else if let Some(defect) = self.groups.defect(index) {
                Some(Filter::Invalid(defect.describe()))
            } else if self.groups.group(index) < start {
                Some(Filter::Invalid(BEFORE_USER))
            } else {
                None
            }
        }
    }

    /// Returns the first message that a window can contain. In a format that starts on a user turn, that is
    /// the first message on which a window [can start](Self::can_start); otherwise it is message 0.
    pub(crate) fn earliest_start(&self) -> usize {
        let start = (0..self.len()).find(|&index| self.can_start(index));
        start.filter(|_| self.shape.starts_on_user()).unwrap_or(0)
    }
}

/// Returns a policy with a wrapped slicer, and with two settings that a chat needs:
///
/// - No deduplication. Messages with the same text, such as two results "ok", answer different calls. A
///   call without its result is invalid.
/// - An overflow is an error. Truncation would cut single messages from groups.
fn with_slicer(policy: &Policy, wrap: impl FnOnce(Arc<dyn Slicer>) -> Arc<dyn Slicer>) -> Policy {
    let builder = policy
        .to_builder()
        .map_slicer(wrap)
        .deduplication(false)
        .overflow_strategy(OverflowStrategy::Throw);
    // `build` fails only if a strategy is missing, and the policy has all of them.
    builder.build().unwrap_or_else(|_| policy.clone())
}

/// Why a message does not reach a ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filter {
    /// A trimmed chat with this message is invalid. It is kept only if the whole chat is.
    Invalid(&'static str),
    /// A cut of a replay dropped it. It is not kept even if there is space again, so that the beginning of the
    /// window stays the same from request to request.
    Cut,
}

impl Filter {
    fn name(self) -> &'static str {
        match self {
            Self::Invalid(name) => name,
            Self::Cut => CUT,
        }
    }
}

/// When a chat that fits is kept as it is.
///
/// An invalid chat that fits may be accepted by its provider all the same, or the caller may be about to
/// complete it. Only with `strict` its invalid messages are dropped although it fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whole {
    /// Always. The usual case.
    IfItFits,
    /// Always. If it does not fit, the run fails: a mandatory message is invalid, or no message can be the
    /// first, so no part of the chat is a valid window.
    OrNothing,
    /// Only if it is valid (`strict`).
    IfValid,
}

impl Whole {
    fn of(chat: &Chat, is_strict: bool) -> Self {
        if is_strict {
            Self::IfValid
        } else if chat.mandatory().is_err() {
            Self::OrNothing
        } else {
            Self::IfItFits
        }
    }

    /// Fails with [`Whole::OrNothing`], where the only window is the whole chat of these tokens.
    fn check_part(self, tokens: i64, target: i64) -> Result<(), CupelError> {
        if self == Self::OrNothing {
            return Err(CupelError::MandatoryExceedsBudget {
                needed_tokens: tokens,
                available: target,
            });
        }
        Ok(())
    }
}

/// Returns the total tokens of ranked items.
fn tokens_of(ranked: &[ScoredRef<'_>]) -> i64 {
    let tokens = ranked.iter().map(|scored| scored.item.tokens());
    tokens.fold(0, i64::saturating_add)
}

/// Some items of a ranked list, and their ranks in it, both in the order of the list.
///
/// A slicer that selects from `items` returns indices of `items`; `ranks[index]` is the rank in the list. Of
/// the list `a b c d`, the part with `b` and `d` has the ranks `[1, 3]`, and if the slicer selects 1 of it,
/// that is rank 3, `d`.
struct Part<'a> {
    ranks: Vec<usize>,
    items: Vec<ScoredRef<'a>>,
}

impl<'a> Part<'a> {
    fn new(ranked: &[ScoredRef<'a>], ranks: Vec<usize>) -> Self {
        let items = ranks.iter().map(|&rank| ranked[rank]).collect();
        Self { ranks, items }
    }

    /// Returns the items without a refusal, and a selection with the refusals of the others.
    fn filter(
        ranked: &[ScoredRef<'a>],
        refusal: impl Fn(&ScoredRef<'a>) -> Option<&'static str>,
    ) -> (Selection, Self) {
        let mut selection = Selection::default();
        let mut ranks = Vec::with_capacity(ranked.len());
        for (rank, scored) in ranked.iter().enumerate() {
            match refusal(scored) {
                Some(filter) => selection.refuse(rank, filtered(filter)),
                None => ranks.push(rank),
            }
        }
        (selection, Self::new(ranked, ranks))
    }
}

fn filtered(filter: &str) -> Refusal {
    Refusal::Because(ExclusionReason::Filtered {
        filter_name: filter.to_owned(),
    })
}

/// Sweeps a selection that keeps all candidates from the target on at which they fit.
///
/// `below` sweeps the targets under it and returns the ranks that are selected at the last of these. At the
/// tokens of all candidates, the ranks that are missing enter:
///
/// ```text
/// 3 candidates of 100 tokens, targets 200..=400
/// below(200..=299)    visits its changes, returns [0, 1]
/// target 300          rank 2 enters
/// ```
fn sweep_below_whole(
    whole: Whole,
    ranked: &[ScoredRef<'_>],
    targets: RangeInclusive<i64>,
    visitor: &mut dyn SweepVisitor,
    below: impl FnOnce(
        RangeInclusive<i64>,
        &mut dyn SweepVisitor,
    ) -> Option<(ControlFlow<()>, Vec<usize>)>,
) -> Option<ControlFlow<()>> {
    let (from, to) = targets.into_inner();
    let tokens = tokens_of(ranked);
    let mut chosen = Vec::new();
    if from < tokens {
        if let Err(error) = whole.check_part(tokens, from) {
            visitor.fail(from, error);
        } else {
            let (flow, ranks) = below(from..=to.min(tokens - 1), visitor)?;
            if flow.is_break() {
                return Some(flow);
            }
            chosen = ranks;
        }
    }
    // A sweep reports changes: ranks that are selected one token below stay and are not reported.
    let mut is_missing = vec![true; ranked.len()];
    for rank in chosen {
        is_missing[rank] = false;
    }
    let missing = (0..ranked.len()).filter(|&rank| is_missing[rank]);
    let missing: Vec<usize> = missing.collect();
    if to < tokens || missing.is_empty() {
        return Some(ControlFlow::Continue(()));
    }
    Some(visitor.change(from.max(tokens), &missing, &[]))
}

/// Visits a sweep over a [`Part`] with the ranks of the whole list.
struct MappedRanks<'v> {
    ranks: &'v [usize],
    visitor: &'v mut dyn SweepVisitor,
}

impl SweepVisitor for MappedRanks<'_> {
    fn change(&mut self, target: i64, ranks: &[usize], views: &[ViewChange]) -> ControlFlow<()> {
        let rank = |rank: &usize| self.ranks[*rank];
        let ranks: Vec<usize> = ranks.iter().map(rank).collect();
        let views = views.iter().map(|(changed, view)| (rank(changed), *view));
        self.visitor
            .change(target, &ranks, &views.collect::<Vec<_>>())
    }

    fn fail(&mut self, target: i64, error: CupelError) {
        self.visitor.fail(target, error);
    }
}
