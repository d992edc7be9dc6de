//! The one record of every candidate's fate.

use crate::order::descending_key;
use crate::slicer::Refusal;
use crate::{
    ContextItem, CountRequirementShortfall, ExcludedItem, ExclusionReason, IncludedItem,
    InclusionReason, PipelineStage, ScoredRef, SelectionReport, TraceEvent,
};

/// What has become of every candidate, by its position in the input.
///
/// A fate is written once and holds numbers, never text. The window and the report are both
/// projections of the ledger, so they cannot disagree. When nobody listens, slicing may leave the
/// fates of what it passes over unwritten; then only the window is read.
#[derive(Clone)]
pub(crate) struct Ledger<'a> {
    items: &'a [ContextItem],
    scores: Vec<f64>,
    /// `None` while a candidate is still in the running, and for ever if it is in the window.
    exclusions: Vec<Option<Cause>>,
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
}

/// Why a candidate is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// Classify: its token count is negative.
    NegativeTokens,
    /// Deduplicate: it is a copy of this candidate, which may itself have lost to a later one.
    CopyOf(usize),
    /// Slice: it found no room.
    NoRoom,
    /// Slice: it would have had room without the pinned items, of which this is the first.
    NoRoomBeside(usize),
    /// Slice: the slicer gave this reason.
    Refused(usize),
    /// Place: truncation found no room for it.
    Truncated,
    /// Place: truncation would have had room without the pinned items, of which this is the first.
    TruncatedBeside(usize),
}

impl Cause {
    fn stage(self) -> PipelineStage {
        match self {
            Self::NegativeTokens => PipelineStage::Classify,
            Self::CopyOf(_) => PipelineStage::Deduplicate,
            Self::NoRoom | Self::NoRoomBeside(_) | Self::Refused(_) => PipelineStage::Slice,
            Self::Truncated | Self::TruncatedBeside(_) => PipelineStage::Place,
        }
    }
}

impl<'a> Ledger<'a> {
    pub(super) fn new(items: &'a [ContextItem]) -> Self {
        Self {
            items,
            scores: vec![0.0; items.len()],
            exclusions: vec![None; items.len()],
            window: Vec::new(),
            first_pinned: None,
            refusals: Vec::new(),
            shortfalls: Vec::new(),
            left_by_slice: 0,
            left_by_place: 0,
        }
    }

    pub(super) fn items(&self) -> &'a [ContextItem] {
        self.items
    }

    pub(crate) fn score(&self, candidate: usize) -> f64 {
        self.scores[candidate]
    }

    /// Takes over the scores of all candidates.
    pub(super) fn set_scores(&mut self, scores: Vec<f64>) {
        self.scores = scores;
    }

    pub(super) fn set_score(&mut self, candidate: usize, score: f64) {
        self.scores[candidate] = score;
    }

    pub(super) fn exclude(&mut self, candidate: usize, cause: Cause) {
        debug_assert!(
            self.exclusions[candidate].is_none(),
            "a fate is written once"
        );
        self.exclusions[candidate] = Some(cause);
    }

    pub(super) fn is_excluded(&self, candidate: usize) -> bool {
        self.exclusions[candidate].is_some()
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
    pub(super) fn scored(&self, candidates: &[usize]) -> Vec<ScoredRef<'a>> {
        let scored = |&candidate: &usize| ScoredRef {
            item: &self.items[candidate],
            score: self.scores[candidate],
        };
        candidates.iter().map(scored).collect()
    }

    /// An excluded candidate with its reason in words; `None` for one that is not excluded.
    pub(crate) fn excluded(&self, candidate: usize) -> Option<ExcludedItem> {
        let reason = self.reason(candidate)?;
        let item = self.items[candidate].clone();
        Some(ExcludedItem::new(item, self.scores[candidate], reason))
    }

    /// The stage that excluded a candidate.
    pub(crate) fn stage_of_exclusion(&self, candidate: usize) -> Option<PipelineStage> {
        self.exclusions[candidate].map(Cause::stage)
    }

    /// The candidate that stayed in place of a copy.
    pub(crate) fn survivor(&self, candidate: usize) -> Option<usize> {
        let mut survivor = None;
        let mut at = candidate;
        while let Some(Cause::CopyOf(winner)) = self.exclusions[at] {
            survivor = Some(winner);
            at = winner;
        }
        survivor
    }

    /// A candidate of the window.
    pub(crate) fn included(&self, candidate: usize) -> IncludedItem {
        let item = &self.items[candidate];
        let reason = if item.pinned() {
            InclusionReason::Pinned
        } else if item.tokens() == 0 {
            InclusionReason::ZeroToken
        } else {
            InclusionReason::Scored
        };
        IncludedItem::new(item.clone(), self.scores[candidate], reason)
    }

    /// The report. Excluded items of equal score stand in the order of their exclusion: by
    /// stage, and within a stage by position, which is the order in which each stage meets
    /// items of equal score.
    pub(super) fn report(&self, events: Vec<TraceEvent>) -> SelectionReport {
        let mut excluded: Vec<usize> = (0..self.items.len())
            .filter(|&candidate| self.is_excluded(candidate))
            .collect();
        excluded.sort_by_cached_key(|&candidate| {
            let score = descending_key(self.scores[candidate]);
            (score, self.stage_of_exclusion(candidate))
        });
        let excluded = excluded.into_iter();
        SelectionReport::new(
            events,
            self.window.iter().map(|&c| self.included(c)).collect(),
            excluded.filter_map(|c| self.excluded(c)).collect(),
            self.shortfalls.clone(),
        )
    }

    /// Why a candidate is excluded; `None` for one that is not.
    pub(crate) fn reason(&self, candidate: usize) -> Option<ExclusionReason> {
        let cause = self.exclusions[candidate]?;
        let item = &self.items[candidate];
        let too_large = |available_tokens| ExclusionReason::BudgetExceeded {
            item_tokens: item.tokens(),
            available_tokens,
        };
        Some(match cause {
            Cause::NegativeTokens => ExclusionReason::NegativeTokens {
                tokens: item.tokens(),
            },
            Cause::CopyOf(survivor) => ExclusionReason::Deduplicated {
                deduplicated_against: self.items[survivor].content().to_owned(),
            },
            Cause::NoRoom => too_large(self.left_by_slice),
            Cause::Truncated => too_large(self.left_by_place),
            Cause::NoRoomBeside(pinned) | Cause::TruncatedBeside(pinned) => {
                ExclusionReason::PinnedOverride {
                    displaced_by: self.items[pinned].content().to_owned(),
                }
            }
            Cause::Refused(index) => match &self.refusals[index].1 {
                Refusal::CountCap { cap, count } => ExclusionReason::CountCapExceeded {
                    kind: item.kind().as_str().to_owned(),
                    cap: *cap,
                    count: *count,
                },
                Refusal::Because(reason) => reason.clone(),
            },
        })
    }
}
