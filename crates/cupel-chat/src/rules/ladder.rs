//! A ladder over the valid messages of a chat.
//!
//! The ladder itself is in the library ([`LadderSlice`]). This slicer adds what the ladder does not know:
//! which messages are invalid, and which a cut of a replay dropped.
//!
//! Dropped messages are replaced by a marker, which needs tokens. The ladder reserves `marker_tokens` when it
//! drops messages itself. Two gaps are unknown to it: that of a cut (`gap_tokens`), and messages
//! dropped by a slicer around the ladder. For these, `select` takes the marker's tokens off the budget
//! beforehand and lets the ladder reserve nothing.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use cupel::slicer::{SweepVisitor, slice_by_selection};
use cupel::{
    ContextBudget, ContextItem, ContextView, CupelError, LadderSlice, ScoredItem, ScoredRef,
    Selection, Slicer,
};

use super::{Filter, MappedRanks, Part, Whole, sweep_below_whole, tokens_of};

/// Selects with a ladder, and the slicers around it, from the messages that are valid in a window.
#[derive(Debug, Clone)]
pub(super) struct ChatLadder {
    /// The ladder of the policy, with the steps that the chat allows and the tokens of its markers.
    pub(super) ladder: LadderSlice,
    /// The slicer of the policy with this ladder: the ladder itself, or a slicer that wraps it.
    pub(super) slicer: Arc<dyn Slicer>,
    /// By position, the filter that keeps a message from the slicer.
    pub(super) refused: Vec<Option<Filter>>,
    pub(super) whole: Whole,
    /// The tokens of the messages that a cut of a replay dropped.
    pub(super) gap_tokens: i64,
}

impl ChatLadder {
    fn refusal(&self, scored: &ScoredRef<'_>) -> Option<Filter> {
        self.refused.get(scored.position).copied().flatten()
    }

    /// Returns whether another slicer is around the ladder. Such a slicer may drop messages that the ladder
    /// would keep, even if all fit: `NearDuplicateSlice` drops copies.
    fn is_wrapped(&self) -> bool {
        self.slicer.inner().is_some()
    }

    /// Returns the selection of all messages that no cut dropped, if they fit and the policy keeps them.
    fn select_whole(
        &self,
        slicer: &dyn Slicer,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Option<Selection>, CupelError> {
        if self.whole == Whole::IfValid {
            return Ok(None);
        }
        // Invalid messages stay in a chat that fits. Those that a cut dropped do not.
        let is_cut = |scored: &ScoredRef<'_>| {
            let filter = self.refusal(scored);
            filter.filter(|filter| *filter == Filter::Cut)
        };
        let (mut selection, whole) = Part::filter(ranked, |it| is_cut(it).map(Filter::name));
        let tokens = tokens_of(&whole.items);
        if tokens > budget.target_tokens() {
            self.whole.check_part(tokens, budget.target_tokens())?;
            return Ok(None);
        }
        // No part of this chat is a valid window, so no slicer may drop anything from it.
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

    /// Selects within a budget, from which [`select`](Slicer::select) has already taken the tokens of markers
    /// that the ladder does not reserve.
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
        let chosen = slicer.select(&valid.items, budget)?;
        let kept = selection.adopt(chosen, &valid.ranks)?;
        selection.extend(kept);
        Ok(selection)
    }

    /// Returns the messages that a window can contain, and the refusals of the others.
    fn valid<'a>(&self, ranked: &[ScoredRef<'a>]) -> (Selection, Part<'a>) {
        Part::filter(ranked, |scored| self.refusal(scored).map(Filter::name))
    }

    /// Returns the slicer with a ladder that reserves nothing for markers, and the budget minus their tokens.
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

    /// Returns whether the markers of the dropped messages fit beside a selection.
    ///
    /// They do if their tokens fit into the target, or if the dropped messages had, even as their shortest
    /// views, no more tokens than a marker: then no marker is written.
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
        // The gap of a cut has a marker whatever is selected now. A gap no larger than the marker
        // has none.
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
        // The sweep of the ladder does not handle gaps. Without a sweep, the caller runs at single targets.
        if self.gap_tokens > 0 {
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
        // Here some message is refused, so the others fit one token below the whole chat. They are what is
        // selected last.
        sweep_below_whole(self.whole, ranked, targets, visitor, |targets, visitor| {
            Some((below(targets, visitor)?, valid.ranks.clone()))
        })
    }
}
