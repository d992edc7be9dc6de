//! Whole groups of messages, chosen by any slicer, that start on a user turn if the format does.
//!
//! The slicer knows nothing of user turns. It selects first. If its window does not start on a user turn, a
//! user turn is chosen as the start, and the slicer selects again from the messages after it. With a budget
//! of 45, newest first:
//!
//! ```text
//! message   0 user   1 assistant   2 user   3 assistant
//! tokens    50       10            20       10
//! first                kept        kept     kept          40 of 45, starts on an answer
//! start                            kept                   message 0 does not fit, so 2 is the start
//! again                            kept     kept          25 left for the messages after 2
//! ```
//!
//! A user turn before the window is preferred. A start inside of the window drops the kept messages before it.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::{ControlFlow, RangeInclusive};

use cupel::slicer::{SweepVisitor, slice_by_selection};
use cupel::{
    ContextBudget, ContextItem, CupelError, GroupSlice, ScoredItem, ScoredRef, Selection, Slicer,
};

use super::starts::{Changes, MAX_WORK, Shifted, StartFinder};
use super::{BEFORE_USER, Part, Whole, filtered, sweep_below_whole, tokens_of};
use crate::chat::Chat;
use crate::groups::Defect;
use crate::message::Role;

/// Selects whole groups by the rules.
pub(super) struct ChatSlice {
    pub(super) groups: GroupSlice,
    pub(super) rules: Rules,
}

/// The properties of the messages that the rules depend on, by position.
pub(super) struct Rules {
    messages: Vec<MessageRules>,
    /// The first mandatory message that is not a system message. Mandatory messages are pinned, so the
    /// slicer is not given them, but the window may start with this one.
    first_mandatory: Option<usize>,
    /// Whether the selection must start on a user turn.
    starts_on_user: bool,
    whole: Whole,
}

struct MessageRules {
    /// The first message of its group.
    group: usize,
    /// Why the message is invalid; `None` if it is valid.
    defect: Option<&'static str>,
    /// Whether a valid chat can start with it.
    opens: bool,
    /// Whether a selection can start on it: it opens, is valid, and is the first of its group. A start in the
    /// middle of a group would drop a part of the group.
    can_start: bool,
    is_mandatory: bool,
}

impl Rules {
    /// Returns the rules, or `None` if groups are the only rule: then [`GroupSlice`] alone is enough.
    pub(super) fn of(chat: &Chat, mandatory: BTreeSet<usize>, is_strict: bool) -> Option<Self> {
        let message = |index: usize| MessageRules {
            group: chat.groups.group(index),
            defect: chat.groups.defect(index).map(Defect::describe),
            opens: chat.opens(index),
            can_start: chat.can_start(index),
            is_mandatory: mandatory.contains(&index),
        };
        let is_system = |index: usize| chat.messages[index].role() == Role::System;
        let rules = Self {
            messages: (0..chat.len()).map(message).collect(),
            first_mandatory: mandatory.into_iter().find(|&index| !is_system(index)),
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
        // A slicer may refuse messages although they fit, such as by a quota.
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

    /// Returns the tokens of each group, at the position of its first message. The sums are `i128`, so that a
    /// group beyond the 64-bit range never seems to fit.
    fn group_tokens(&self, part: &Part<'_>) -> Vec<i128> {
        let mut tokens = vec![0; self.rules.messages.len()];
        for scored in &part.items {
            if let Some(tokens) = tokens.get_mut(self.group(scored)) {
                *tokens += i128::from(scored.item.tokens());
            }
        }
        tokens
    }

    /// Returns the first message of a window: the first that the slicer kept, or an earlier mandatory one.
    pub(super) fn first(&self, kept: Option<usize>) -> Option<usize> {
        kept.into_iter().chain(self.rules.first_mandatory).min()
    }

    /// Returns the user turn to start on, if a window that starts with `first` has to be moved: the last one
    /// before `first` that fits, otherwise the first one after it. `None` if the window can stay.
    pub(super) fn start(
        &self,
        first: Option<usize>,
        tokens: &[i128],
        target: i64,
    ) -> Option<usize> {
        let first = first?;
        let messages = &self.rules.messages;
        if !self.rules.starts_on_user || messages[first].opens {
            return None;
        }
        let may_start = |&index: &usize| {
            let message = &messages[index];
            // Mandatory messages are pinned: their tokens are not part of the target.
            message.can_start && (message.is_mandatory || tokens[index] <= i128::from(target))
        };
        let before = (0..first).rev().find(may_start);
        before.or_else(|| (first..messages.len()).find(may_start))
    }

    /// Sweeps the selection of [`select`](Slicer::select), in two passes.
    ///
    /// The first pass finds segments of targets with the same start ([`StartFinder`]). The second pass sweeps
    /// each segment: its selection is the group of the start, and what the slicer selects from the messages
    /// after it with the tokens of that group taken off the target. In the example above, whose message 2
    /// needs 20 tokens, the targets `30..=49` are a segment with the start 2, and the messages after it are
    /// swept for `10..=29`. Returns `None` if that would take too long or the inner slicer has no sweep.
    fn sweep_parts(
        &self,
        ranked: &[ScoredRef<'_>],
        targets: RangeInclusive<i64>,
    ) -> Option<Changes> {
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
            work_left: MAX_WORK / complete.items.len().max(1),
        };
        let flow = self
            .groups
            .sweep(&complete.items, targets.clone(), &mut starts)?;
        starts.advance(targets.end().checked_add(1)?);
        if flow.is_break() || starts.work_left == 0 {
            return None;
        }
        let segments = starts.segments;
        let mut changes = Changes::default();
        let ends = segments.iter().skip(1).map(|(from, _)| from - 1);
        for (&(from, start), to) in segments.iter().zip(ends.chain([*targets.end()])) {
            // Each segment begins from nothing. What it has in common with the one before cancels out in
            // `Changes::replay`.
            changes.clear(from);
            let rest = start.map(|start| self.split_at_start(ranked, &complete, start));
            let (part, taken) = match &rest {
                Some(rest) => (&rest.after, rest.tokens),
                None => (&complete, 0),
            };
            for &rank in rest.iter().flat_map(|rest| &rest.own) {
                changes.toggle(from, rank);
            }
            let mut shifted = Shifted {
                ranks: &part.ranks,
                taken,
                changes: &mut changes,
                failed: false,
            };
            // As in `select`, a target below 0 is 0.
            let range = (from - taken).max(0)..=(to - taken).max(0);
            let flow = self.groups.sweep(&part.items, range, &mut shifted)?;
            if flow.is_break() || shifted.failed {
                return None;
            }
        }
        Some(changes)
    }

    /// Splits valid messages at the group of a start.
    fn split_at_start<'a>(
        &self,
        ranked: &[ScoredRef<'a>],
        complete: &Part<'a>,
        start: usize,
    ) -> SplitAtStart<'a> {
        let (mut before, mut own, mut after) = (Vec::new(), Vec::new(), Vec::new());
        let mut tokens = 0_i64;
        for (&rank, scored) in complete.ranks.iter().zip(&complete.items) {
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

    fn inner(&self) -> Option<&dyn Slicer> {
        Some(&self.groups)
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
        let chosen = self.groups.select(&complete.items, budget)?;
        let kept = chosen.kept().iter();
        let first = self.first(kept.map(|&rank| complete.items[rank].position).min());
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
        let chosen = self.groups.select(&split.after.items, &left)?;
        let kept = selection.adopt(chosen, &split.after.ranks)?;
        selection.extend(kept);
        Ok(selection)
    }

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
        // The special case of all messages starts at their tokens. It needs no sweep of its own if it is never
        // reached, or if the policy refuses some messages although all fit (a quota). Both ends
        // of the targets at which all fit are checked, because a quota may be a share of the target.
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
                let chosen = changes.chosen.iter().copied().collect();
                Some((changes.replay(visitor), chosen))
            },
        )
    }
}
