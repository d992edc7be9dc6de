//! [`Ledger`]: the record of a run.

use std::fmt::Write as _;

use super::positions::Positions;
use super::shortened::Shortened;
use super::sort::sort;
use crate::diagnostics::Excerpt;
use crate::order::descending_key;
use crate::slicer::Refusal;
use crate::{
    ContextItem, CountRequirementShortfall, CupelError, ExcludedItem, ExclusionReason,
    IncludedItem, InclusionReason, PipelineStage, ScoredRef, SelectionReport, TraceEvent,
};

/// The decision about every candidate, by its position in the input.
///
/// An exclusion is written once and holds numbers, never text. The window and the report are both
/// read from the ledger, so they cannot disagree. If only the window is recorded, the candidates
/// that slicing excludes are not written.
#[derive(Clone)]
pub(crate) struct Ledger<'a> {
    items: &'a [ContextItem],
    /// Empty before scoring.
    scores: Vec<f64>,
    /// `None` for a candidate that is not excluded.
    exclusions: Vec<Option<Cause>>,
    /// The sliced candidates by rank; empty unless the run is traced.
    ranking: Positions,
    /// The candidates of the window, in order.
    window: Vec<usize>,
    /// The candidates that the slicer keeps as views.
    pub(super) shortened: Shortened,
    /// The first pinned candidate that has tokens.
    pub(super) first_pinned: Option<usize>,
    /// The slicer's own reasons; [`Cause::Refused`] points here.
    pub(super) refusals: Vec<(usize, Refusal)>,
    pub(super) shortfalls: Vec<CountRequirementShortfall>,
    /// The tokens left of the target when slicing, and then placing, had finished.
    pub(super) left_by_slice: i64,
    pub(super) left_by_place: i64,
    /// The tokens above the limit, if the overflow strategy accepted them.
    pub(super) tokens_over: Option<i64>,
    /// Whether the slicer divides the budget among kinds.
    pub(super) kind_quotas: bool,
}

/// Why a candidate is excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// Classify: its token count is negative.
    NegativeTokens,
    /// Deduplicate: it is a copy of this candidate, which may itself be a copy of a later one.
    CopyOf(u32),
    /// Slice: it does not fit.
    NoRoom,
    /// Slice: it fits without the pinned items only.
    NoRoomNextToPinned,
    /// Slice: the slicer gave this reason.
    Refused(u32),
    /// Place: truncated, it does not fit.
    Truncated,
    /// Place: truncated, it fits without the pinned items only.
    TruncatedNextToPinned,
}

impl Cause {
    fn stage(self) -> PipelineStage {
        match self {
            Self::NegativeTokens => PipelineStage::Classify,
            Self::CopyOf(_) => PipelineStage::Deduplicate,
            Self::NoRoom | Self::NoRoomNextToPinned | Self::Refused(_) => PipelineStage::Slice,
            Self::Truncated | Self::TruncatedNextToPinned => PipelineStage::Place,
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
            shortened: Shortened::default(),
            first_pinned: None,
            refusals: Vec::new(),
            shortfalls: Vec::new(),
            left_by_slice: 0,
            left_by_place: 0,
            tokens_over: None,
            kind_quotas: false,
        })
    }

    pub(super) fn items(&self) -> &'a [ContextItem] {
        self.items
    }

    /// Returns a candidate as the slicer keeps it: in full, or as a view.
    pub(crate) fn item(&self, candidate: usize) -> &ContextItem {
        self.shortened.item(self.items, candidate)
    }

    /// Returns the kept view of a candidate in the window.
    pub(super) fn view(&self, candidate: usize) -> Option<usize> {
        let view = self.shortened.view(candidate)?;
        (!self.is_excluded(candidate)).then_some(view)
    }

    pub(crate) fn score(&self, candidate: usize) -> f64 {
        self.scores.get(candidate).copied().unwrap_or(0.0)
    }

    /// Stores the scores of all candidates.
    pub(super) fn set_scores(&mut self, scores: Vec<f64>) {
        self.scores = scores;
    }

    pub(super) fn exclude(&mut self, candidate: usize, cause: Cause) {
        debug_assert!(
            self.exclusions[candidate].is_none(),
            "an exclusion is written once"
        );
        self.exclusions[candidate] = Some(cause);
    }

    /// Excludes for the slicer's own reason. A later reason for the same candidate replaces it.
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

    /// Returns the candidates as slicers and placers get them.
    pub(super) fn scored(&self, candidates: impl Iterator<Item = usize>) -> Vec<ScoredRef<'a>> {
        let scored = |candidate: usize| {
            ScoredRef::new(&self.items[candidate], self.scores[candidate], candidate)
        };
        candidates.map(scored).collect()
    }

    /// Returns the report entry of an excluded candidate; `None` for one that is not excluded.
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

    /// Returns the stage that excluded a candidate.
    pub(crate) fn stage_of_exclusion(&self, candidate: usize) -> Option<PipelineStage> {
        self.exclusions.get(candidate)?.map(Cause::stage)
    }

    /// Returns the candidate that stayed instead of a copy.
    pub(crate) fn survivor(&self, candidate: usize) -> Option<usize> {
        let mut survivor = None;
        let mut at = candidate;
        while let Some(Some(Cause::CopyOf(winner))) = self.exclusions.get(at) {
            at = *winner as usize;
            survivor = Some(at);
        }
        survivor
    }

    /// Returns the report entry of a candidate of the window.
    pub(super) fn included(&self, candidate: usize) -> IncludedItem {
        let item = self.item(candidate).clone();
        IncludedItem::new(item, self.scores[candidate], self.inclusion(candidate))
    }

    /// Returns why a candidate of the window is included.
    pub(crate) fn inclusion(&self, candidate: usize) -> InclusionReason {
        let item = &self.items[candidate];
        if item.pinned() {
            InclusionReason::Pinned
        } else if self.shortened.view(candidate).is_some() {
            InclusionReason::Shortened {
                tokens: self.item(candidate).tokens(),
                original_tokens: item.tokens(),
            }
        } else if item.tokens() == 0 {
            InclusionReason::ZeroToken
        } else {
            InclusionReason::Scored
        }
    }

    /// Returns the excluded candidates, best score first.
    ///
    /// Equal scores are in the order of exclusion: by stage, and within a stage by position, which is
    /// the order in which each stage processes items of equal score.
    pub(super) fn exclusions(&self) -> Vec<(usize, Cause)> {
        let causes = self.exclusions.iter().enumerate();
        let excluded = causes.filter_map(|(candidate, cause)| Some((candidate, (*cause)?)));
        let mut excluded: Vec<(usize, Cause)> = excluded.collect();
        excluded.sort_by_cached_key(|&(candidate, cause)| {
            (descending_key(self.score(candidate)), cause.stage())
        });
        excluded
    }

    /// Returns the candidates that were ranked: scoreable, and not excluded before slicing.
    pub(super) fn ranking(&self) -> Positions {
        if self.ranking.len() > 0 {
            return self.ranking.clone();
        }
        let is_ranked = |&candidate: &usize| {
            let stage = self.stage_of_exclusion(candidate);
            !self.items[candidate].pinned()
                && stage.is_none_or(|stage| stage >= PipelineStage::Slice)
        };
        sort(self, &(0..self.items.len()).filter(is_ranked).collect())
    }

    /// Returns the report of a run that recorded every candidate.
    pub(super) fn report(&self, events: Vec<TraceEvent>) -> SelectionReport {
        let excluded = self.exclusions().into_iter();
        let excluded = excluded.map(|(candidate, cause)| self.entry(candidate, cause));
        let excluded = excluded.collect();
        let window = self.window.iter();
        let included = window.map(|&candidate| self.included(candidate)).collect();
        SelectionReport::sorted(events, included, excluded, self.shortfalls.clone())
    }

    /// Returns the message of the item event for an excluded candidate; empty for one that is not.
    pub(super) fn message(&self, candidate: usize) -> String {
        let reason = match self.exclusions[candidate] {
            None => return String::new(),
            // Contents may be long, and a message has their beginning only.
            Some(Cause::CopyOf(survivor)) => {
                same_content(Excerpt::needed(self.items[survivor as usize].content()))
            }
            Some(Cause::NoRoomNextToPinned | Cause::TruncatedNextToPinned) => {
                displaced(Excerpt::needed(self.pinned_content()))
            }
            Some(cause) => self.reason_of(candidate, cause),
        };
        // Most messages have 40 to 60 bytes: one allocation instead of a string that grows three times.
        let mut message = String::with_capacity(64);
        let _ = write!(message, "{reason}");
        message
    }

    fn pinned_content(&self) -> &str {
        self.first_pinned
            .map_or("", |pinned| self.items[pinned].content())
    }

    /// Returns why a candidate is excluded; `None` for one that is not.
    pub(crate) fn reason(&self, candidate: usize) -> Option<ExclusionReason> {
        let cause = (*self.exclusions.get(candidate)?)?;
        Some(self.reason_of(candidate, cause))
    }

    /// Inlined: most reasons hold no text and are built in place.
    #[inline]
    fn reason_of(&self, candidate: usize, cause: Cause) -> ExclusionReason {
        let item = &self.items[candidate];
        let too_large = |available_tokens| ExclusionReason::BudgetExceeded {
            item_tokens: self.item(candidate).tokens(),
            available_tokens,
        };
        match cause {
            Cause::NegativeTokens => ExclusionReason::NegativeTokens {
                tokens: item.tokens(),
            },
            Cause::NoRoom => too_large(self.left_by_slice),
            Cause::Truncated => too_large(self.left_by_place),
            Cause::CopyOf(survivor) => same_content(self.items[survivor as usize].content()),
            Cause::NoRoomNextToPinned | Cause::TruncatedNextToPinned => {
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
