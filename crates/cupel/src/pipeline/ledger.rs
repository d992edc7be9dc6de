//! The one record of every candidate's fate.

use super::positions::Positions;
use crate::diagnostics::sentence;
use crate::order::descending_key;
use crate::slicer::{Refusal, Unsorted};
use crate::{
    ContextItem, CountRequirementShortfall, CupelError, ExcludedItem, ExclusionReason,
    IncludedItem, InclusionReason, PipelineStage, ScoredRef, SelectionReport, TraceEvent,
};

/// What has become of every candidate, by its position in the input.
///
/// A fate is written once and holds numbers, never text. The window and the report are both
/// projections of the ledger, so they cannot disagree. When nobody listens, slicing may leave the
/// fates of what it passes over unwritten; then only the window is read.
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
        let scored = |candidate: usize| ScoredRef {
            item: &self.items[candidate],
            score: self.scores[candidate],
        };
        candidates.map(scored).collect()
    }

    /// Candidates as slicers see them that need no ranking.
    pub(super) fn unsorted<'l>(&'l self, candidates: &'l Positions) -> Unsorted<'l> {
        Unsorted::new(self.items, &self.scores, candidates.as_slice())
    }

    /// An excluded candidate with its reason in words; `None` for one that is not excluded.
    pub(crate) fn excluded(&self, candidate: usize) -> Option<ExcludedItem> {
        let reason = self.reason(candidate)?;
        let item = self.items[candidate].clone();
        Some(ExcludedItem::new(item, self.score(candidate), reason))
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
            at = winner as usize;
            survivor = Some(at);
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

    /// The report of a run that somebody listened to.
    ///
    /// Excluded items of equal score stand in the order of their exclusion: by stage, and within a
    /// stage by position, which is the order in which each stage meets items of equal score. Most of
    /// them are out of the ranking, in order; the others are merged in.
    pub(super) fn report(&self, events: Vec<TraceEvent>) -> SelectionReport {
        let is_sliced =
            |candidate: &usize| self.stage_of_exclusion(*candidate) == Some(PipelineStage::Slice);
        let key = |candidate: usize| descending_key(self.score(candidate));
        let others = (0..self.items.len()).filter(|candidate| !is_sliced(candidate));
        let others = others.filter_map(|candidate| {
            let stage = self.stage_of_exclusion(candidate)?;
            Some((key(candidate), stage, candidate))
        });
        let mut others: Vec<(u64, PipelineStage, usize)> = others.collect();
        others.sort_unstable();
        let mut others = others.into_iter().peekable();

        let mut order = Positions::with_capacity(self.items.len() - self.window.len());
        for candidate in self.ranking.iter().filter(is_sliced) {
            if others.peek().is_some() {
                let own = (key(candidate), PipelineStage::Slice, candidate);
                while let Some((.., other)) = others.next_if(|other| *other < own) {
                    order.push(other);
                }
            }
            order.push(candidate);
        }
        others.for_each(|(.., other)| order.push(other));

        let mut excluded = Vec::with_capacity(order.len());
        self.each_read_ahead(&order, |candidate| {
            excluded.extend(self.excluded(candidate));
        });
        let mut included = Vec::with_capacity(self.window.len());
        let window = self.window.iter().copied().collect();
        self.each_read_ahead(&window, |candidate| included.push(self.included(candidate)));
        SelectionReport::sorted(events, included, excluded, self.shortfalls.clone())
    }

    /// Calls `visit` for candidates whose items it is going to clone.
    pub(super) fn each_read_ahead(&self, candidates: &Positions, mut visit: impl FnMut(usize)) {
        for block in candidates.blocks(ContextItem::BLOCK) {
            ContextItem::read_ahead(block.clone().map(|candidate| &self.items[candidate]));
            block.for_each(&mut visit);
        }
    }

    /// Says of one candidate after another why a stage excluded it, as the reason does.
    pub(super) fn messages(&self, stage: PipelineStage) -> impl Fn(usize) -> String + '_ {
        let too_large = sentence::BudgetExceeded::new(match stage {
            PipelineStage::Place => self.left_by_place,
            _ => self.left_by_slice,
        });
        move |candidate| match self.exclusions[candidate] {
            Some(Cause::NoRoom | Cause::Truncated) => {
                too_large.message(self.items[candidate].tokens())
            }
            Some(Cause::CopyOf(survivor)) => {
                sentence::deduplicated(self.items[survivor as usize].content())
            }
            Some(Cause::NoRoomBesidePinned | Cause::TruncatedBesidePinned) => {
                sentence::pinned_override(self.pinned_content())
            }
            _ => self
                .reason(candidate)
                .map_or_else(String::new, |reason| reason.to_string()),
        }
    }

    fn pinned_content(&self) -> &str {
        self.first_pinned
            .map_or("", |pinned| self.items[pinned].content())
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
                deduplicated_against: self.items[survivor as usize].content().to_owned(),
            },
            Cause::NoRoom => too_large(self.left_by_slice),
            Cause::Truncated => too_large(self.left_by_place),
            Cause::NoRoomBesidePinned | Cause::TruncatedBesidePinned => {
                ExclusionReason::PinnedOverride {
                    displaced_by: self.pinned_content().to_owned(),
                }
            }
            Cause::Refused(index) => match &self.refusals[index as usize].1 {
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
