//! A ladder over the valid messages of a chat.
//!
//! The ladder itself is in the library ([`LadderSlice`]). This adds what it cannot know: which
//! messages are invalid, which an earlier window dropped, and how coarse a cut is. With
//! `step = 200`, a chat of 1,050 tokens and a target of 1,000 is cut to 850: the excess of 50 is
//! rounded up to 200. The next 150 tokens then need no cut, so that the beginning of the window
//! stays the same for several turns.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use cupel::slicer::{SweepVisitor, slice_by_selection};
use cupel::{
    ContextBudget, ContextItem, ContextView, CupelError, LadderSlice, ScoredItem, ScoredRef,
    Selection, Slicer,
};

use super::{Filter, MappedRanks, Part, Whole, sweep_below_whole, tokens_of};

/// A ladder, and what the policy has around it, over the messages that are valid in a window.
#[derive(Debug, Clone)]
pub(super) struct ChatLadder {
    pub(super) ladder: LadderSlice,
    /// The slicer of the policy with this ladder: the ladder itself, or a slicer that wraps it.
    pub(super) slicer: Arc<dyn Slicer>,
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

    /// Returns whether another slicer is around the ladder. It may drop messages that the ladder keeps,
    /// even if all fit.
    fn is_wrapped(&self) -> bool {
        self.slicer.inner().is_some()
    }

    /// Returns the selection of all messages that no earlier window dropped, if they fit and the policy
    /// keeps them.
    fn select_whole(
        &self,
        slicer: &dyn Slicer,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Option<Selection>, CupelError> {
        if self.whole == Whole::IfValid {
            return Ok(None);
        }
        let is_before = |scored: &ScoredRef<'_>| {
            let filter = self.refusal(scored);
            filter.filter(|filter| *filter == Filter::DroppedBefore)
        };
        let (mut selection, whole) = Part::filter(ranked, |it| is_before(it).map(Filter::name));
        let tokens = tokens_of(&whole.items);
        if tokens > budget.target_tokens() {
            self.whole.check_part(tokens, budget.target_tokens())?;
            return Ok(None);
        }
        let chosen = if self.whole == Whole::OrNothing {
            Selection::keep((0..whole.items.len()).collect())
        } else {
            slicer.select(&whole.items, budget)?
        };
        if chosen.kept().len() < whole.items.len() {
            return Ok(None);
        }
        let kept = selection.adopt(chosen, &whole.ranks)?;
        selection.extend(kept);
        Ok(Some(selection))
    }

    /// Selects within a budget, of which the markers of earlier windows are not part.
    fn select_within(
        &self,
        slicer: &dyn Slicer,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        if let Some(whole) = self.select_whole(slicer, ranked, budget)? {
            return Ok(whole);
        }
        let (mut selection, valid) = self.valid(ranked);
        let target = self.quantized(budget.target_tokens(), &valid);
        let quantized = ContextBudget::with_target(budget.max_tokens(), target)?;
        // A coarse cut may ask for more than the mandatory messages allow.
        let chosen = slicer.select(&valid.items, &quantized);
        let chosen = match (chosen, self.step) {
            (Err(CupelError::MandatoryExceedsBudget { .. }), Some(_)) => {
                slicer.select(&valid.items, budget)?
            }
            (chosen, _) => chosen?,
        };
        let kept = selection.adopt(chosen, &valid.ranks)?;
        selection.extend(kept);
        Ok(selection)
    }

    /// Returns the messages that a window can contain, and the refusals of the others.
    fn valid<'a>(&self, ranked: &[ScoredRef<'a>]) -> (Selection, Part<'a>) {
        Part::filter(ranked, |scored| self.refusal(scored).map(Filter::name))
    }

    /// Returns the slicer with a ladder that reserves nothing for markers, and the budget without them.
    fn with_marker_reserved(
        &self,
        budget: &ContextBudget,
    ) -> Result<(Arc<dyn Slicer>, ContextBudget), CupelError> {
        let marker = self.ladder.marker_tokens();
        let ladder = self.ladder.clone().with_marker_tokens(0);
        let slicer = self.slicer.with_ladder(ladder);
        let left = |tokens: i64| (tokens - marker).max(0);
        let budget =
            ContextBudget::with_target(left(budget.max_tokens()), left(budget.target_tokens()))?;
        Ok((slicer.unwrap_or_else(|| self.slicer.clone()), budget))
    }

    /// Returns whether a selection leaves room for the markers in the place of what is dropped.
    ///
    /// A ladder reserves them for what it drops itself. What a slicer around it drops, it does not see.
    fn has_room_for_markers(
        &self,
        selection: &Selection,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> bool {
        let mut is_kept = vec![false; ranked.len()];
        let mut tokens = self.ladder.marker_tokens();
        for &rank in selection.kept() {
            is_kept[rank] = true;
            tokens = tokens.saturating_add(ranked[rank].item.tokens());
        }
        for &(rank, view) in selection.views() {
            let item = ranked[rank].item;
            let view = item
                .views()
                .get(view)
                .map_or(item.tokens(), ContextView::tokens);
            tokens -= item.tokens() - view;
        }
        let all = is_kept.iter().zip(ranked);
        let dropped = all.filter(|(is_kept, it)| !**is_kept && self.refusal(it).is_none());
        let least = dropped.map(|(_, it)| {
            let view = it.item.views().last();
            view.map_or(it.item.tokens(), ContextView::tokens)
        });
        tokens <= budget.target_tokens()
            || least.fold(0, i64::saturating_add) <= self.ladder.marker_tokens()
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
        // An earlier window of the session left a gap, whose marker stands in any case.
        if self.gap_tokens > self.ladder.marker_tokens() {
            let (slicer, budget) = self.with_marker_reserved(budget)?;
            return self.select_within(&slicer, ranked, &budget);
        }
        let selection = self.select_within(&self.slicer, ranked, budget)?;
        if self.is_wrapped() && !self.has_room_for_markers(&selection, ranked, budget) {
            let (slicer, budget) = self.with_marker_reserved(budget)?;
            return self.select_within(&slicer, ranked, &budget);
        }
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
        let below = |targets, visitor: &mut dyn SweepVisitor| {
            let ranks = &valid.ranks;
            let mut mapped = MappedRanks { ranks, visitor };
            self.slicer.sweep(&valid.items, targets, &mut mapped)
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
}
