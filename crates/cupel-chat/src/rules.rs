//! The rules of a chat as a slicer, so that [`Chat::fit`], sweeps and explanations all follow them.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use cupel::slicer::{BuiltinSlicer, SweepVisitor, ViewChange, slice_by_selection};
use cupel::{
    ContextBudget, ContextItem, ContextKind, CupelError, ExclusionReason, GroupSlice, LadderSlice,
    OverflowStrategy, Policy, Refusal, ScoredItem, ScoredRef, Selection, Slicer,
};

use crate::candidates::Candidates;
use crate::chat::Chat;
use crate::groups::Defect;
use crate::message::Role;

impl Chat {
    /// Returns a policy without a ladder that follows the rules of this chat: it selects from its
    /// [`candidates`](Self::candidates) what [`fit`](Self::fit) selects. Use it for sweeps and explanations.
    /// [`policy_over`](Self::policy_over) is for any policy.
    ///
    /// It keeps or drops groups as a whole, does not deduplicate, and fails on overflow. If the chat does not
    /// fit, it drops invalid messages first, and starts on a user turn if the format does.
    ///
    /// ```
    /// use cupel::{ContextBudget, Pipeline};
    /// use cupel_chat::{Chat, Encoding, newest_policy};
    ///
    /// let chat = Chat::parse(r#"[
    ///   {"role": "user", "content": "Hello!"},
    ///   {"role": "assistant", "content": "Hello! What can I do for you today?"},
    ///   {"role": "user", "content": "What is 2 + 2?"}
    /// ]"#, None)?;
    /// let candidates = chat.candidates(&Encoding::O200k);
    /// let pipeline = Pipeline::from(chat.policy(&newest_policy()));
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
        with_slicer(&self.asked(policy), |inner| {
            let groups = GroupSlice::new(inner);
            match rules {
                Some(rules) => Arc::new(ChatSlice { groups, rules }),
                None => Arc::new(groups),
            }
        })
    }

    /// Returns a policy that follows the rules of this chat over the candidates that were made
    /// [for it](Self::candidates_for).
    pub fn policy_over(&self, policy: &Policy, candidates: &Candidates) -> Policy {
        let Some(ladder) = candidates.ladder.clone() else {
            let is_pinned = |index: &usize| candidates[*index].pinned();
            let pinned = (0..self.len()).filter(is_pinned).collect();
            return self.policy_with_pinned(policy, pinned);
        };
        let slicer = ChatLadder {
            refused: self.refused_by_ladder(candidates),
            whole: Whole::of(self, policy.chat().strict),
            gap_tokens: candidates.gap_tokens(),
            step: policy.chat().step,
            ladder,
        };
        with_slicer(&self.asked(policy), |_| Arc::new(slicer))
    }

    /// Returns the policy for the question of this chat, if it needs a query and has none.
    fn asked(&self, policy: &Policy) -> Policy {
        // The question is a copy of a whole message, and most policies read none.
        let question = policy.needs_query().then(|| self.question()).flatten();
        question.map_or_else(|| policy.clone(), |question| policy.with_query(question))
    }

    /// Returns by position the filter that drops a message before the ladder, if one does.
    pub(crate) fn refused_by_ladder(&self, candidates: &Candidates) -> Vec<Option<Filter>> {
        if !self.shape.is_chat() {
            return vec![None; self.len()];
        }
        let start = self.earliest_start();
        let refused = |index| {
            if candidates.is_dropped_before(index) {
                Some(Filter::DroppedBefore)
            } else if let Some(defect) = self.groups.defect(index) {
                Some(Filter::Invalid(defect.describe()))
            } else if self.groups.group(index) < start {
                Some(Filter::Invalid(BEFORE_USER))
            } else {
                None
            }
        };
        (0..self.len()).map(refused).collect()
    }

    /// Returns the first message that a window can contain: in a format that starts on a user turn, the
    /// first one.
    pub(crate) fn earliest_start(&self) -> usize {
        let start = (0..self.len()).find(|&index| self.can_start(index));
        start.filter(|_| self.shape.starts_on_user()).unwrap_or(0)
    }
}

/// Returns a policy with another slicer that treats messages as a chat needs it: copies stay, and an
/// overflow is an error.
fn with_slicer(policy: &Policy, wrap: impl FnOnce(Arc<dyn Slicer>) -> Arc<dyn Slicer>) -> Policy {
    let builder = policy
        .to_builder()
        .map_slicer(wrap)
        .deduplication(false)
        .overflow_strategy(OverflowStrategy::Throw);
    // `build` fails only if a strategy is missing, and the policy has all of them.
    builder.build().unwrap_or_else(|_| policy.clone())
}

/// Maps the ranks of a part of a list to ranks of the list.
struct MappedRanks<'v> {
    ranks: &'v [usize],
    visitor: &'v mut dyn SweepVisitor,
}

impl SweepVisitor for MappedRanks<'_> {
    fn change(&mut self, target: i64, ranks: &[u32], views: &[ViewChange]) -> ControlFlow<()> {
        let rank = |rank: &u32| u32::try_from(self.ranks[*rank as usize]).unwrap_or(u32::MAX);
        let ranks: Vec<u32> = ranks.iter().map(rank).collect();
        let views = views.iter().map(|(changed, view)| (rank(changed), *view));
        self.visitor
            .change(target, &ranks, &views.collect::<Vec<_>>())
    }

    fn fail(&mut self, target: i64, error: CupelError) {
        self.visitor.fail(target, error);
    }
}

/// Why a message is not offered to a ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filter {
    /// No valid window contains it, so that only the whole chat does.
    Invalid(&'static str),
    /// An earlier window of the session dropped it.
    DroppedBefore,
}

impl Filter {
    fn name(self) -> &'static str {
        match self {
            Self::Invalid(name) => name,
            Self::DroppedBefore => DROPPED_BEFORE,
        }
    }
}

/// When a chat that fits is kept as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whole {
    /// Always, although it may be invalid.
    IfItFits,
    /// Always, and no part of it is a valid window.
    OrNothing,
    /// Only if it is valid.
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

    /// Fails if only the whole chat, which needs `tokens`, is a window.
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

/// Returns the tokens of ranked items.
fn tokens_of(ranked: &[ScoredRef<'_>]) -> i64 {
    let tokens = ranked.iter().map(|scored| scored.item.tokens());
    tokens.fold(0, i64::saturating_add)
}

/// A ladder over the messages that are valid in a window.
#[derive(Debug, Clone)]
struct ChatLadder {
    ladder: LadderSlice,
    /// By position, the filter that drops a message.
    refused: Vec<Option<Filter>>,
    whole: Whole,
    /// The tokens of the messages that an earlier window of the session dropped.
    gap_tokens: i64,
    /// The granularity of a cut.
    step: Option<i64>,
}

impl ChatLadder {
    fn refusal(&self, scored: &ScoredRef<'_>) -> Option<Filter> {
        self.refused.get(scored.position).copied().flatten()
    }

    /// Returns the messages that the ladder chooses from at a target, and the refusals of the others: of a
    /// chat that fits, all that no earlier window dropped.
    fn admitted<'a>(
        &self,
        ranked: &[ScoredRef<'a>],
        target: i64,
    ) -> Result<(Selection, Part<'a>), CupelError> {
        if self.whole != Whole::IfValid {
            let is_before = |scored: &ScoredRef<'a>| {
                let filter = self.refusal(scored);
                filter.filter(|filter| *filter == Filter::DroppedBefore)
            };
            let (selection, whole) = Part::filter(ranked, |it| is_before(it).map(Filter::name));
            let tokens = tokens_of(&whole.view);
            if tokens <= target {
                return Ok((selection, whole));
            }
            self.whole.check_part(tokens, target)?;
        }
        Ok(self.valid(ranked))
    }

    /// Returns the messages that a window can contain, and the refusals of the others.
    fn valid<'a>(&self, ranked: &[ScoredRef<'a>]) -> (Selection, Part<'a>) {
        Part::filter(ranked, |scored| self.refusal(scored).map(Filter::name))
    }

    /// Returns the ladder, and how many tokens of a target are not available to it: those of the markers of an
    /// earlier window.
    fn with_gap(&self) -> (LadderSlice, i64) {
        let marker = self.ladder.marker_tokens();
        if self.gap_tokens > marker {
            (self.ladder.clone().with_marker_tokens(0), marker)
        } else {
            (self.ladder.clone(), 0)
        }
    }

    /// Returns the target that removes a multiple of the step.
    fn quantized(&self, target: i64, part: &Part<'_>) -> i64 {
        let total = tokens_of(&part.view);
        match self.step {
            Some(step) if total > target => {
                let excess = total - target;
                let rounded = (excess.saturating_add(step - 1) / step).saturating_mul(step);
                (total - rounded).max(0)
            }
            _ => target,
        }
    }
}

impl Slicer for ChatLadder {
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
        let (ladder, taken) = self.with_gap();
        let target = (budget.target_tokens() - taken).max(0);
        let (mut selection, admitted) = self.admitted(ranked, target)?;
        let max_tokens = (budget.max_tokens() - taken).max(0);
        let within = |target| ContextBudget::with_target(max_tokens, target);
        let quantized = within(self.quantized(target, &admitted))?;
        // A coarse cut may ask for more than the mandatory messages allow.
        let chosen = ladder.select(&admitted.view, &quantized);
        let chosen = match (chosen, self.step) {
            (Err(_), Some(_)) => ladder.select(&admitted.view, &within(target)?)?,
            (chosen, _) => chosen?,
        };
        let kept = selection.adopt(chosen, &admitted.ranks)?;
        selection.extend(kept);
        Ok(selection)
    }

    fn builtin(&self) -> Option<&dyn BuiltinSlicer> {
        Some(self)
    }
}

impl BuiltinSlicer for ChatLadder {
    fn select_in(
        &self,
        _: Option<&ContextKind>,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        self.select(ranked, budget)
    }

    cupel::without! { select_unsorted prepare least_targets counts }

    fn sweep(
        &self,
        ranked: &[ScoredRef<'_>],
        targets: RangeInclusive<i64>,
        visitor: &mut dyn SweepVisitor,
    ) -> Option<ControlFlow<()>> {
        if self.step.is_some() || self.gap_tokens > 0 {
            return None;
        }
        let (_, valid) = self.valid(ranked);
        let inner = self.ladder.builtin()?;
        let below = |targets, visitor: &mut dyn SweepVisitor| {
            let ranks = &valid.ranks;
            inner.sweep(&valid.view, targets, &mut MappedRanks { ranks, visitor })
        };
        if self.whole == Whole::IfValid
            || (self.whole == Whole::IfItFits && valid.ranks.len() == ranked.len())
        {
            return below(targets, visitor);
        }
        // One token below the whole chat, all valid messages fit.
        sweep_below_whole(self.whole, ranked, targets, visitor, |targets, visitor| {
            Some((below(targets, visitor)?, valid.ranks.clone()))
        })
    }

    cupel::without! { group_score }
}

/// Sweeps the targets below the tokens of all candidates with `below`, which returns the ranks that it chose
/// last, and keeps all candidates from there on.
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
    let mut is_missing = vec![true; ranked.len()];
    for rank in chosen {
        is_missing[rank] = false;
    }
    let missing = (0..ranked.len()).filter(|&rank| is_missing[rank]);
    let missing: Vec<u32> = missing
        .filter_map(|rank| u32::try_from(rank).ok())
        .collect();
    if to < tokens || missing.is_empty() {
        return Some(ControlFlow::Continue(()));
    }
    Some(visitor.change(from.max(tokens), &missing, &[]))
}

/// The properties of the messages that the rules depend on, by position.
struct Rules {
    messages: Vec<MessageRules>,
    /// The first mandatory message that is not a system message.
    first_pinned: Option<usize>,
    /// Whether the selection must start on a user turn.
    starts_on_user: bool,
    whole: Whole,
}

struct MessageRules {
    /// The first message of its group.
    group: usize,
    /// The reason if it is invalid.
    defect: Option<&'static str>,
    /// Whether it can be the first message of a chat.
    opens: bool,
    /// Whether a selection can start on it.
    can_start: bool,
    pinned: bool,
}

impl Rules {
    /// Returns `None` if groups are the only rule.
    fn of(chat: &Chat, mandatory: BTreeSet<usize>, is_strict: bool) -> Option<Self> {
        let message = |index: usize| MessageRules {
            group: chat.groups.group(index),
            defect: chat.groups.defect(index).map(Defect::describe),
            opens: chat.opens(index),
            can_start: chat.can_start(index),
            pinned: mandatory.contains(&index),
        };
        let is_system = |index: usize| chat.messages[index].role() == Role::System;
        let rules = Self {
            messages: (0..chat.len()).map(message).collect(),
            first_pinned: mandatory.into_iter().find(|&index| !is_system(index)),
            starts_on_user: chat.shape.starts_on_user(),
            whole: Whole::of(chat, is_strict),
        };
        let is_invalid = |message: &MessageRules| message.defect.is_some();
        let has_invalid = rules.messages.iter().any(is_invalid);
        (rules.starts_on_user || has_invalid).then_some(rules)
    }

    fn message(&self, scored: &ScoredRef<'_>) -> Option<&MessageRules> {
        self.messages.get(scored.position)
    }
}

/// The filter name of messages dropped before the user turn on which the chat starts.
const BEFORE_USER: &str = "starts on a user turn";

/// The filter name of messages that an earlier window of the session dropped.
const DROPPED_BEFORE: &str = "dropped by an earlier window";

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

/// The messages of a selection that starts on a given user turn.
struct SplitAtStart<'a> {
    /// The ranks before the start, which are dropped.
    before: Vec<usize>,
    /// The ranks of the group of the start, and their tokens.
    own: Vec<usize>,
    tokens: i64,
    /// The messages after the start, from which the rest of the budget is filled.
    after: Part<'a>,
}

impl ChatSlice {
    /// Returns the selection of all candidates, if they fit and the policy keeps them.
    fn select_whole(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Option<Selection>, CupelError> {
        let (whole, tokens) = (self.rules.whole, tokens_of(ranked));
        if whole == Whole::IfValid {
            return Ok(None);
        }
        if tokens <= budget.target_tokens() {
            let chosen = self.groups.select(ranked, budget)?;
            if chosen.kept().len() == ranked.len() {
                return Ok(Some(chosen));
            }
        }
        whole.check_part(tokens, budget.target_tokens())?;
        Ok(None)
    }

    fn defect(&self, scored: &ScoredRef<'_>) -> Option<&'static str> {
        self.rules.message(scored)?.defect
    }

    fn group(&self, scored: &ScoredRef<'_>) -> usize {
        self.rules
            .message(scored)
            .map_or(0, |message| message.group)
    }

    /// Returns the tokens of each group, at the position of its first message.
    fn group_tokens(&self, part: &Part<'_>) -> Vec<i128> {
        let mut tokens = vec![0; self.rules.messages.len()];
        for scored in &part.view {
            if let Some(tokens) = tokens.get_mut(self.group(scored)) {
                *tokens += i128::from(scored.item.tokens());
            }
        }
        tokens
    }

    /// Returns the first message of a selection, by the position of its first kept message.
    fn first(&self, kept: Option<usize>) -> Option<usize> {
        kept.into_iter().chain(self.rules.first_pinned).min()
    }

    /// Returns the message to start on, if a selection must start on a user turn and `first` is not one:
    /// the last one before `first` that fits, otherwise the first one after it.
    fn start(&self, first: Option<usize>, tokens: &[i128], target: i64) -> Option<usize> {
        let first = first?;
        let messages = &self.rules.messages;
        if !self.rules.starts_on_user || messages[first].opens {
            return None;
        }
        let may_start = |&index: &usize| {
            let message = &messages[index];
            message.can_start && (message.pinned || tokens[index] <= i128::from(target))
        };
        let before = (0..first).rev().find(may_start);
        before.or_else(|| (first..messages.len()).find(may_start))
    }

    /// Sweeps the groups, and where the start changes sweeps the messages after it again.
    fn sweep_parts(
        &self,
        ranked: &[ScoredRef<'_>],
        targets: RangeInclusive<i64>,
    ) -> Option<Changes> {
        let inner = self.groups.builtin()?;
        let (_, complete) = Part::filter(ranked, |scored| self.defect(scored));
        let tokens = self.group_tokens(&complete);
        let user_turns = self.rules.messages.iter().zip(&tokens);
        let user_turns = user_turns.filter(|(message, _)| message.can_start);
        let fits_from: BTreeSet<i64> = user_turns
            .filter_map(|(_, &tokens)| i64::try_from(tokens).ok())
            .collect();
        let mut starts = StartFinder {
            slicer: self,
            tokens,
            fits_from: fits_from.into_iter().collect(),
            part: &complete,
            kept: BTreeSet::new(),
            at: *targets.start(),
            segments: Vec::new(),
            left: MAX_WORK / complete.view.len().max(1),
        };
        let flow = inner.sweep(&complete.view, targets.clone(), &mut starts)?;
        starts.advance(targets.end().checked_add(1)?);
        if flow.is_break() || starts.left == 0 {
            return None;
        }
        let segments = starts.segments;
        let mut changes = Changes::default();
        let ends = segments.iter().skip(1).map(|(from, _)| from - 1);
        for (&(from, start), to) in segments.iter().zip(ends.chain([*targets.end()])) {
            changes.clear(from);
            let rest = start.map(|start| self.split_at_start(ranked, &complete, start));
            let (part, taken) = match &rest {
                Some(rest) => (&rest.after, rest.tokens),
                None => (&complete, 0),
            };
            for &rank in rest.iter().flat_map(|rest| &rest.own) {
                changes.toggle(from, u32::try_from(rank).ok()?);
            }
            let mut shifted = Shifted {
                ranks: &part.ranks,
                taken,
                changes: &mut changes,
                failed: false,
            };
            let range = (from - taken).max(0)..=(to - taken).max(0);
            if inner.sweep(&part.view, range, &mut shifted)?.is_break() || shifted.failed {
                return None;
            }
        }
        Some(changes)
    }

    fn split_at_start<'a>(
        &self,
        ranked: &[ScoredRef<'a>],
        complete: &Part<'a>,
        start: usize,
    ) -> SplitAtStart<'a> {
        let (mut before, mut own, mut after) = (Vec::new(), Vec::new(), Vec::new());
        let mut tokens = 0_i64;
        for (&rank, scored) in complete.ranks.iter().zip(&complete.view) {
            match self.group(scored).cmp(&start) {
                Ordering::Less => before.push(rank),
                Ordering::Equal => {
                    own.push(rank);
                    tokens = tokens.saturating_add(scored.item.tokens());
                }
                Ordering::Greater => after.push(rank),
            }
        }
        SplitAtStart {
            before,
            own,
            tokens,
            after: Part::new(ranked, after),
        }
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
        if let Some(whole) = self.select_whole(ranked, budget)? {
            return Ok(whole);
        }
        let (mut selection, complete) = Part::filter(ranked, |scored| self.defect(scored));
        let chosen = self.groups.select(&complete.view, budget)?;
        let kept = chosen.kept().iter();
        let first = self.first(kept.map(|&rank| complete.view[rank].position).min());
        let tokens = self.group_tokens(&complete);
        let Some(start) = self.start(first, &tokens, budget.target_tokens()) else {
            let kept = selection.adopt(chosen, &complete.ranks)?;
            selection.extend(kept);
            return Ok(selection);
        };

        let split = self.split_at_start(ranked, &complete, start);
        for rank in split.before {
            selection.refuse(rank, filtered(BEFORE_USER));
        }
        selection.extend(split.own);
        let left = ContextBudget::with_target(
            (budget.max_tokens() - split.tokens).max(0),
            (budget.target_tokens() - split.tokens).max(0),
        )?;
        let chosen = self.groups.select(&split.after.view, &left)?;
        let kept = selection.adopt(chosen, &split.after.ranks)?;
        selection.extend(kept);
        Ok(selection)
    }

    fn inner(&self) -> Option<&dyn Slicer> {
        Some(&self.groups)
    }

    fn builtin(&self) -> Option<&dyn BuiltinSlicer> {
        Some(self)
    }
}

impl BuiltinSlicer for ChatSlice {
    fn select_in(
        &self,
        _: Option<&ContextKind>,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        self.select(ranked, budget)
    }

    cupel::without! { select_unsorted prepare least_targets counts }

    fn sweep(
        &self,
        ranked: &[ScoredRef<'_>],
        targets: RangeInclusive<i64>,
        visitor: &mut dyn SweepVisitor,
    ) -> Option<ControlFlow<()>> {
        let tokens = tokens_of(ranked);
        let keeps_whole = |target: i64| {
            let budget = ContextBudget::with_target(target, target).ok()?;
            self.select_whole(ranked, &budget).ok().flatten()
        };
        let last = *targets.end();
        if last < tokens || keeps_whole(tokens).is_none() || keeps_whole(last).is_none() {
            self.rules.whole.check_part(tokens, last).ok()?;
            return Some(self.sweep_parts(ranked, targets)?.replay(visitor));
        }
        sweep_below_whole(
            self.rules.whole,
            ranked,
            targets,
            visitor,
            |targets, visitor| {
                let changes = self.sweep_parts(ranked, targets)?;
                let chosen = changes.chosen.iter().map(|&rank| rank as usize).collect();
                Some((changes.replay(visitor), chosen))
            },
        )
    }

    // The wrapped slicer has it.
    cupel::without! { group_score }
}

/// The limit of starts times messages of a sweep, about a second of work: 700 starts at 6,000 messages.
/// Beyond it the caller samples budgets.
const MAX_WORK: usize = 1 << 22;

/// Finds the targets at which the start of the selection changes.
struct StartFinder<'a> {
    slicer: &'a ChatSlice,
    part: &'a Part<'a>,
    tokens: Vec<i128>,
    /// The least target at which each user turn fits, in ascending order.
    fits_from: Vec<i64>,
    /// The positions of the kept messages.
    kept: BTreeSet<usize>,
    /// The first target that has no segment yet.
    at: i64,
    /// The first target of each segment, and the start of the selection in it.
    segments: Vec<(i64, Option<usize>)>,
    left: usize,
}

impl StartFinder<'_> {
    /// Adds the segments of the targets before `end`, for which the same messages are kept.
    fn advance(&mut self, end: i64) {
        let first = self.slicer.first(self.kept.first().copied());
        while self.at < end && self.left > 0 {
            let start = self.slicer.start(first, &self.tokens, self.at);
            if self.segments.last().is_none_or(|(_, last)| *last != start) {
                self.segments.push((self.at, start));
                self.left -= 1;
            }
            // The start may change when another user turn fits.
            let fits = self.fits_from.partition_point(|&target| target <= self.at);
            let next = self.fits_from.get(fits);
            self.at = next.map_or(end, |&next| next.min(end));
        }
    }
}

impl SweepVisitor for StartFinder<'_> {
    fn change(&mut self, target: i64, ranks: &[u32], _: &[ViewChange]) -> ControlFlow<()> {
        self.advance(target);
        if self.left == 0 {
            return ControlFlow::Break(());
        }
        for &rank in ranks {
            let position = self.part.view[rank as usize].position;
            if !self.kept.remove(&position) {
                self.kept.insert(position);
            }
        }
        ControlFlow::Continue(())
    }

    fn fail(&mut self, _: i64, _: CupelError) {
        self.left = 0;
    }
}

/// The changes of a sweep in order, and the ranks selected at its end.
#[derive(Default)]
struct Changes {
    steps: Vec<(i64, Vec<u32>)>,
    chosen: BTreeSet<u32>,
}

impl Changes {
    fn toggle(&mut self, target: i64, rank: u32) {
        if self.steps.last().is_none_or(|(last, _)| *last != target) {
            self.steps.push((target, Vec::new()));
        }
        if let Some((_, ranks)) = self.steps.last_mut() {
            ranks.push(rank);
        }
        if !self.chosen.remove(&rank) {
            self.chosen.insert(rank);
        }
    }

    fn clear(&mut self, target: i64) {
        for rank in std::mem::take(&mut self.chosen) {
            self.chosen.insert(rank);
            self.toggle(target, rank);
        }
    }

    /// Visits the changes; two changes of a rank at one target cancel out.
    fn replay(self, visitor: &mut dyn SweepVisitor) -> ControlFlow<()> {
        for (target, mut ranks) in self.steps {
            ranks.sort_unstable();
            let changed: Vec<u32> = ranks
                .chunk_by(|a, b| a == b)
                .filter(|same| same.len() % 2 == 1)
                .map(|same| same[0])
                .collect();
            if !changed.is_empty() {
                visitor.change(target, &changed, &[])?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Records the sweep of the messages after a start as changes of the whole list.
struct Shifted<'a> {
    ranks: &'a [usize],
    taken: i64,
    changes: &'a mut Changes,
    failed: bool,
}

impl SweepVisitor for Shifted<'_> {
    fn change(&mut self, target: i64, ranks: &[u32], views: &[ViewChange]) -> ControlFlow<()> {
        self.failed |= !views.is_empty();
        for &rank in ranks {
            let rank = u32::try_from(self.ranks[rank as usize]).unwrap_or(u32::MAX);
            self.changes.toggle(target + self.taken, rank);
        }
        ControlFlow::Continue(())
    }

    fn fail(&mut self, _: i64, _: CupelError) {
        self.failed = true;
    }
}

fn filtered(filter: &str) -> Refusal {
    Refusal::Because(ExclusionReason::Filtered {
        filter_name: filter.to_owned(),
    })
}
