//! The one record of every candidate's fate.

use super::positions::Positions;
use super::sort::sort;
use crate::diagnostics::{BudgetExceededMessages, Excerpt};
use crate::order::descending_key;
use crate::slicer::{Refusal, Unsorted};
use crate::{
    ContextItem, CountRequirementShortfall, CupelError, ExcludedItem, ExclusionReason,
    IncludedItem, InclusionReason, PipelineStage, ScoredRef, SelectionReport, TraceEvent,
};

/// What has become of every candidate, by its position in the input.
///
/// A fate is written once and holds numbers, never text. The window and the report are both
/// projections of the ledger, so they cannot disagree. Where only the window is wanted, slicing leaves
/// the fates of what it passes over unwritten.
#[derive(Clone)]
pub(crate) struct Ledger<'a> {
    items: &'a [ContextItem],
    /// Empty before scoring.
    scores: Vec<f64>,
    /// `None` while a candidate is still in the running, and for ever if it is in the window.
    exclusions: Vec<Option<Cause>>,
    /// What was sliced, best score first; empty if nobody listens.
    ranking: Positions,
    /// The candidates of the window, in order.
    window: Vec<usize>,
    /// The first pinned candidate that takes room.
    pub(super) first_pinned: Option<usize>,
    /// The slicer's own reasons; [`Cause::Refused`] points here.
    pub(super) refusals: Vec<(usize, Refusal)>,
    pub(super) shortfalls: Vec<CountRequirementShortfall>,
    /// The tokens left of the target when slicing, and then placing, had finished.
    pub(super) left_by_slice: i64,
    pub(super) left_by_place: i64,
    /// Whether the slicer divides the budget among kinds.
    pub(super) kind_quotas: bool,
}

/// Why a candidate is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// Classify: its token count is negative.
    NegativeTokens,
    /// Deduplicate: it is a copy of this candidate, which may itself have lost to a later one.
    CopyOf(u32),
    /// Slice: it found no room.
    NoRoom,
    /// Slice: it would have had room without the pinned items.
    NoRoomBesidePinned,
    /// Slice: the slicer gave this reason.
    Refused(u32),
    /// Place: truncation found no room for it.
    Truncated,
    /// Place: truncation would have had room without the pinned items.
    TruncatedBesidePinned,
}

impl Cause {
    fn stage(self) -> PipelineStage {
        match self {
            Self::NegativeTokens => PipelineStage::Classify,
            Self::CopyOf(_) => PipelineStage::Deduplicate,
            Self::NoRoom | Self::NoRoomBesidePinned | Self::Refused(_) => PipelineStage::Slice,
            Self::Truncated | Self::TruncatedBesidePinned => PipelineStage::Place,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "positions fit, see `Positions`"
    )]
    pub(super) fn copy_of(survivor: usize) -> Self {
        Self::CopyOf(survivor as u32)
    }
}

impl<'a> Ledger<'a> {
    pub(super) fn new(items: &'a [ContextItem]) -> Result<Self, CupelError> {
        Positions::check(items.len())?;
        Ok(Self {
            items,
            scores: Vec::new(),
            exclusions: vec![None; items.len()],
            ranking: Positions::default(),
            window: Vec::new(),
            first_pinned: None,
            refusals: Vec::new(),
            shortfalls: Vec::new(),
            left_by_slice: 0,
            left_by_place: 0,
            kind_quotas: false,
        })
    }

    pub(super) fn items(&self) -> &'a [ContextItem] {
        self.items
    }

    pub(crate) fn score(&self, candidate: usize) -> f64 {
        self.scores.get(candidate).copied().unwrap_or(0.0)
    }

    /// Takes over the scores of all candidates.
    pub(super) fn set_scores(&mut self, scores: Vec<f64>) {
        self.scores = scores;
    }

    pub(super) fn exclude(&mut self, candidate: usize, cause: Cause) {
        debug_assert!(
            self.exclusions[candidate].is_none(),
            "a fate is written once"
        );
        self.exclusions[candidate] = Some(cause);
    }

    /// Excludes for the slicer's own reason; a later one for the same candidate replaces it.
    pub(super) fn refuse(&mut self, candidate: usize, refusal: u32) {
        self.exclusions[candidate] = Some(Cause::Refused(refusal));
    }

    pub(super) fn is_excluded(&self, candidate: usize) -> bool {
        self.exclusions[candidate].is_some()
    }

    pub(super) fn set_ranking(&mut self, ranking: Positions) {
        self.ranking = ranking;
    }

    pub(super) fn set_window(&mut self, window: Vec<usize>) {
        self.window = window;
    }

    pub(crate) fn window(&self) -> &[usize] {
        &self.window
    }

    pub(super) fn into_window(self) -> Vec<usize> {
        self.window
    }

    /// Candidates as slicers and placers see them.
    pub(super) fn scored(&self, candidates: impl Iterator<Item = usize>) -> Vec<ScoredRef<'a>> {
        let scored = |candidate: usize| {
            ScoredRef::new(&self.items[candidate], self.scores[candidate], candidate)
        };
        candidates.map(scored).collect()
    }

    /// Candidates as slicers see them that need no ranking.
    pub(super) fn unsorted<'l>(&'l self, candidates: &'l Positions) -> Unsorted<'l> {
        Unsorted::new(self.items, &self.scores, candidates.as_slice())
    }

    /// An excluded candidate with its reason in words; `None` for one that is not excluded.
    pub(super) fn excluded(&self, candidate: usize) -> Option<ExcludedItem> {
        let cause = self.exclusions[candidate]?;
        Some(self.entry(candidate, cause))
    }

    #[inline]
    fn entry(&self, candidate: usize, cause: Cause) -> ExcludedItem {
        ExcludedItem {
            item: self.items[candidate].clone(),
            score: self.score(candidate),
            reason: self.reason_of(candidate, cause),
        }
    }

    /// The stage that excluded a candidate.
    pub(crate) fn stage_of_exclusion(&self, candidate: usize) -> Option<PipelineStage> {
        self.exclusions.get(candidate)?.map(Cause::stage)
    }

    /// The candidate that stayed in place of a copy.
    pub(crate) fn survivor(&self, candidate: usize) -> Option<usize> {
        let mut survivor = None;
        let mut at = candidate;
        while let Some(Some(Cause::CopyOf(winner))) = self.exclusions.get(at) {
            at = *winner as usize;
            survivor = Some(at);
        }
        survivor
    }

    /// A candidate of the window.
    pub(super) fn included(&self, candidate: usize) -> IncludedItem {
        let item = self.items[candidate].clone();
        IncludedItem::new(item, self.scores[candidate], self.inclusion(candidate))
    }

    /// Why a candidate of the window is in.
    pub(crate) fn inclusion(&self, candidate: usize) -> InclusionReason {
        let item = &self.items[candidate];
        if item.pinned() {
            InclusionReason::Pinned
        } else if item.tokens() == 0 {
            InclusionReason::ZeroToken
        } else {
            InclusionReason::Scored
        }
    }

    /// The excluded candidates, best score first.
    ///
    /// Those of equal score stand in the order of their exclusion: by stage, and within a
    /// stage by position, which is the order in which each stage meets items of equal score. Most of
    /// them are out of the ranking, in order; the others are merged in.
    pub(super) fn exclusions(&self) -> Vec<(usize, Cause)> {
        let cause = |candidate: usize| Some((candidate, self.exclusions[candidate]?));
        let is_sliced = |(_, cause): &(usize, Cause)| cause.stage() == PipelineStage::Slice;
        let place = |&(candidate, cause): &(usize, Cause)| {
            let key = descending_key(self.score(candidate));
            (key, cause.stage(), candidate)
        };
        let all = || (0..self.items.len()).filter_map(cause);
        let others = all().filter(|exclusion| !is_sliced(exclusion));
        let mut others: Vec<_> = others.map(|other| (place(&other), other)).collect();
        others.sort_unstable_by_key(|(place, _)| *place);
        let mut others = others.into_iter().peekable();

        let sorted;
        let ranking = if self.ranking.len() > 0 {
            &self.ranking
        } else {
            let sliced = all().filter(is_sliced).map(|(candidate, _)| candidate);
            sorted = sort(self, &sliced.collect());
            &sorted
        };
        let mut excluded = Vec::with_capacity(self.items.len() - self.window.len());
        for exclusion in ranking.iter().filter_map(cause).filter(is_sliced) {
            let own = place(&exclusion);
            while let Some((_, other)) = others.next_if(|(place, _)| *place < own) {
                excluded.push(other);
            }
            excluded.push(exclusion);
        }
        excluded.extend(others.map(|(_, other)| other));
        excluded
    }

    /// The report of a run of which everything is recorded.
    pub(super) fn report(&self, events: Vec<TraceEvent>) -> SelectionReport {
        let exclusions = self.exclusions();
        let mut excluded = Vec::with_capacity(exclusions.len());
        for block in exclusions.chunks(ContextItem::BLOCK) {
            self.read_ahead(block.iter().map(|&(candidate, _)| candidate));
            let entries = block.iter();
            excluded.extend(entries.map(|&(candidate, cause)| self.entry(candidate, cause)));
        }
        let mut included = Vec::with_capacity(self.window.len());
        for block in self.window.chunks(ContextItem::BLOCK) {
            let block = block.iter().copied();
            self.read_ahead(block.clone());
            included.extend(block.map(|candidate| self.included(candidate)));
        }
        SelectionReport::sorted(events, included, excluded, self.shortfalls.clone())
    }

    /// Reads ahead for candidates whose items are about to be cloned.
    pub(super) fn read_ahead(&self, candidates: impl Iterator<Item = usize>) {
        ContextItem::read_ahead(candidates.map(|candidate| &self.items[candidate]));
    }

    /// Returns the message of the item event for a candidate that `stage` excluded.
    pub(super) fn messages(&self, stage: PipelineStage) -> impl Fn(usize) -> String + '_ {
        let too_large = BudgetExceededMessages::new(match stage {
            PipelineStage::Place => self.left_by_place,
            _ => self.left_by_slice,
        });
        move |candidate| {
            let reason = match self.exclusions[candidate] {
                None => return String::new(),
                Some(Cause::NoRoom | Cause::Truncated) => {
                    return too_large.message(self.items[candidate].tokens());
                }
                // Contents may be long, and a message has their beginning only.
                Some(Cause::CopyOf(survivor)) => {
                    same_content(Excerpt::needed(self.items[survivor as usize].content()))
                }
                Some(Cause::NoRoomBesidePinned | Cause::TruncatedBesidePinned) => {
                    displaced(Excerpt::needed(self.pinned_content()))
                }
                Some(cause) => self.reason_of(candidate, cause),
            };
            reason.to_string()
        }
    }

    fn pinned_content(&self) -> &str {
        self.first_pinned
            .map_or("", |pinned| self.items[pinned].content())
    }

    /// Why a candidate is excluded; `None` for one that is not.
    pub(crate) fn reason(&self, candidate: usize) -> Option<ExclusionReason> {
        let cause = (*self.exclusions.get(candidate)?)?;
        Some(self.reason_of(candidate, cause))
    }

    /// The reasons that carry no text, which most candidates have, are made in place.
    #[inline]
    fn reason_of(&self, candidate: usize, cause: Cause) -> ExclusionReason {
        let item = &self.items[candidate];
        let too_large = |available_tokens| ExclusionReason::BudgetExceeded {
            item_tokens: item.tokens(),
            available_tokens,
        };
        match cause {
            Cause::NegativeTokens => ExclusionReason::NegativeTokens {
                tokens: item.tokens(),
            },
            Cause::NoRoom => too_large(self.left_by_slice),
            Cause::Truncated => too_large(self.left_by_place),
            Cause::CopyOf(survivor) => same_content(self.items[survivor as usize].content()),
            Cause::NoRoomBesidePinned | Cause::TruncatedBesidePinned => {
                displaced(self.pinned_content())
            }
            Cause::Refused(index) => refused(item, &self.refusals[index as usize].1),
        }
    }
}

fn same_content(survivor: &str) -> ExclusionReason {
    ExclusionReason::Deduplicated {
        deduplicated_against: survivor.to_owned(),
    }
}

fn displaced(pinned: &str) -> ExclusionReason {
    ExclusionReason::PinnedOverride {
        displaced_by: pinned.to_owned(),
    }
}

fn refused(item: &ContextItem, refusal: &Refusal) -> ExclusionReason {
    match refusal {
        Refusal::CountCap { cap, count } => ExclusionReason::CountCapExceeded {
            kind: item.kind().as_str().to_owned(),
            cap: *cap,
            count: *count,
        },
        Refusal::Because(reason) => reason.clone(),
    }
}
