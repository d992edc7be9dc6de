//! A ladder over the valid messages of a chat.
//!
//! The ladder itself is in the library ([`LadderSlice`]). This adds what it cannot know: which
//! messages are invalid, which an earlier window dropped, and how coarse a cut is. With
//! `step = 200`, a chat of 1,050 tokens and a target of 1,000 is cut to 850: the excess of 50 is
//! rounded up to 200. The next 150 tokens then need no cut, so that the beginning of the window
//! stays the same for several turns.

use std::ops::{ControlFlow, RangeInclusive};

use cupel::slicer::{BuiltinSlicer, SweepVisitor};
use cupel::{ContextBudget, ContextKind, CupelError, LadderSlice, ScoredRef, Selection, Slicer};

use super::{Filter, MappedRanks, Part, Whole, sweep_below_whole, tokens_of};

/// A ladder over the messages that are valid in a window.
#[derive(Debug, Clone)]
pub(super) struct ChatLadder {
    pub(super) ladder: LadderSlice,
    /// By position, the filter that drops a message.
    pub(super) refused: Vec<Option<Filter>>,
    pub(super) whole: Whole,
    /// The tokens of the messages that an earlier window of the session dropped.
    pub(super) gap_tokens: i64,
    /// The granularity of a cut.
    pub(super) step: Option<i64>,
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
            let tokens = tokens_of(&whole.items);
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

    /// Returns the ladder, and how many tokens of a target are not available to it: those of the
    /// markers of an earlier window.
    ///
    /// If an earlier window dropped more than a marker costs, its gap has a marker in every window
    /// from now on. The ladder would reserve tokens only if it drops something itself.
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
        let total = tokens_of(&part.items);
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
    cupel::selects_in_partitions!();
}

impl BuiltinSlicer for ChatLadder {
    fn select_in(
        &self,
        _: Option<&ContextKind>,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        let (ladder, taken) = self.with_gap();
        let target = (budget.target_tokens() - taken).max(0);
        let (mut selection, admitted) = self.admitted(ranked, target)?;
        let max_tokens = (budget.max_tokens() - taken).max(0);
        let within = |target| ContextBudget::with_target(max_tokens, target);
        let quantized = within(self.quantized(target, &admitted))?;
        // A coarse cut may ask for less than the mandatory messages need. Then the exact target
        // counts.
        let chosen = ladder.select(&admitted.items, &quantized);
        let chosen = match (chosen, self.step) {
            (Err(CupelError::MandatoryExceedsBudget { .. }), Some(_)) => {
                ladder.select(&admitted.items, &within(target)?)?
            }
            (chosen, _) => chosen?,
        };
        let kept = selection.adopt(chosen, &admitted.ranks)?;
        selection.extend(kept);
        Ok(selection)
    }

    fn sweep(
        &self,
        ranked: &[ScoredRef<'_>],
        targets: RangeInclusive<i64>,
        visitor: &mut dyn SweepVisitor,
    ) -> Option<ControlFlow<()>> {
        // The sweep of the ladder knows neither steps nor gaps. The caller then runs at each
        // target.
        if self.step.is_some() || self.gap_tokens > 0 {
            return None;
        }
        let (_, valid) = self.valid(ranked);
        let inner = self.ladder.builtin()?;
        let below = |targets, visitor: &mut dyn SweepVisitor| {
            let ranks = &valid.ranks;
            inner.sweep(&valid.items, targets, &mut MappedRanks { ranks, visitor })
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

    cupel::without! { select_unsorted prepare least_targets group_score counts }
}
