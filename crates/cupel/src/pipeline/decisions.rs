//! [`Decisions`]: a report that borrows.

use super::ledger::Ledger;
use crate::{
    ContextItem, CountRequirementShortfall, ExclusionReason, InclusionReason, PipelineStage,
    SelectionReport,
};

/// What a run decided about every candidate, by its position in the input; see
/// [`Pipeline::decide`](crate::Pipeline::decide).
///
/// Every candidate is either in the window or has an exclusion. Nothing is copied until it is asked
/// for; [`to_report`](Self::to_report) makes a report of its own.
///
/// ```
/// use cupel::*;
///
/// let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);
/// let items = [
///     ContextItem::builder("twice", 5).future_relevance_hint(0.3).build()?,
///     ContextItem::builder("twice", 5).future_relevance_hint(0.9).build()?,
/// ];
/// let decisions = pipeline.decide(&items, &ContextBudget::with_target(100, 100)?)?;
/// assert_eq!(decisions.window(), [1]);
/// assert_eq!(decisions.excluded(), [0]);
/// assert_eq!(decisions.stage(0), Some(PipelineStage::Deduplicate));
/// assert_eq!(decisions.copy_of(0), Some(1));
/// assert_eq!(decisions.score(0), 0.3);
/// # Ok::<(), CupelError>(())
/// ```
#[derive(Clone)]
pub struct Decisions<'a>(Ledger<'a>);

impl<'a> Decisions<'a> {
    pub(super) fn new(ledger: Ledger<'a>) -> Self {
        Self(ledger)
    }

    /// The candidates.
    pub fn items(&self) -> &'a [ContextItem] {
        self.0.items()
    }

    /// The candidates in the window, in its order.
    pub fn window(&self) -> &[usize] {
        self.0.window()
    }

    /// The candidates that are not, in the order of a report: best score first, equal scores in the
    /// order of their exclusion.
    pub fn excluded(&self) -> Vec<usize> {
        let exclusions = self.0.exclusions().into_iter();
        exclusions.map(|(candidate, _)| candidate).collect()
    }

    /// The score a candidate was judged by: 1.0 if it is pinned, 0.0 if it was excluded before scoring
    /// or is none.
    pub fn score(&self, candidate: usize) -> f64 {
        self.0.score(candidate)
    }

    /// Why a candidate is in the window; `None` for one that is not.
    pub fn inclusion(&self, candidate: usize) -> Option<InclusionReason> {
        let is_in = candidate < self.items().len() && self.stage(candidate).is_none();
        is_in.then(|| self.0.inclusion(candidate))
    }

    /// Why a candidate is not in the window; `None` for one that is.
    pub fn exclusion(&self, candidate: usize) -> Option<ExclusionReason> {
        self.0.reason(candidate)
    }

    /// Returns why a candidate is excluded in a few words with the numbers; `None` for one in the
    /// window.
    ///
    /// As [`ExclusionReason::phrase`], and names kind quotas where they are the cause.
    pub fn phrase(&self, candidate: usize) -> Option<String> {
        let reason = self.0.reason(candidate)?;
        Some(reason.phrase_with(self.0.kind_quotas))
    }

    /// Returns why a candidate is excluded without the numbers that differ from item to item;
    /// `None` for one in the window.
    ///
    /// As [`ExclusionReason::summary`], and names kind quotas where they are the cause.
    pub fn summary(&self, candidate: usize) -> Option<String> {
        let reason = self.0.reason(candidate)?;
        Some(reason.summary_with(self.0.kind_quotas))
    }

    /// The stage that excluded a candidate.
    pub fn stage(&self, candidate: usize) -> Option<PipelineStage> {
        self.0.stage_of_exclusion(candidate)
    }

    /// The candidate of the same content that stayed, if this one is a copy.
    pub fn copy_of(&self, candidate: usize) -> Option<usize> {
        self.0.survivor(candidate)
    }

    /// Count requirements that could not be met.
    pub fn shortfalls(&self) -> &[CountRequirementShortfall] {
        &self.0.shortfalls
    }

    /// The report of the run, without events.
    pub fn to_report(&self) -> SelectionReport {
        self.0.report(Vec::new())
    }
}

impl std::fmt::Debug for Decisions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decisions")
            .field("candidates", &self.items().len())
            .field("window", &self.window())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        ChronologicalPlacer, ContextBudget, ContextItem, ContextKind, GreedySlice, Pipeline,
        QuotaEntry, QuotaSlice, ReflexiveScorer,
    };

    #[test]
    fn a_kind_that_exhausts_its_quota_is_named_as_the_cause() {
        let memory = QuotaEntry::new(ContextKind::memory(), 0.0, 10.0).unwrap();
        let slicer = QuotaSlice::new(vec![memory], GreedySlice).unwrap();
        let pipeline = Pipeline::new(ReflexiveScorer, slicer, ChronologicalPlacer);
        let item = |text: &str, tokens| ContextItem::builder(text, tokens);
        let items = [
            item("note", 20)
                .kind(ContextKind::memory())
                .build()
                .unwrap(),
            item("message", 30).build().unwrap(),
        ];
        let budget = ContextBudget::with_target(100, 100).unwrap();
        let decisions = pipeline.decide(&items, &budget).unwrap();
        assert_eq!(decisions.window(), [1]);
        assert_eq!(
            decisions.phrase(0).as_deref(),
            Some("kind quota is full: needs 20, 70 left")
        );
        assert_eq!(decisions.summary(0).as_deref(), Some("kind quota is full"));
        assert_eq!(decisions.phrase(1), None);
        assert_eq!(decisions.summary(1), None);
    }
}
