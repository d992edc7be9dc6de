//! [`Decisions`]: the record of a run, by position.

use std::fmt;
use std::sync::OnceLock;

use super::ledger::Ledger;
use super::{Policy, score};
use crate::scorer::explained;
use crate::{
    ContextBudget, ContextItem, CountRequirementShortfall, CupelError, ExclusionReason,
    InclusionReason, PipelineStage, PlacementRule, ScorePart, SelectionReport, total_tokens,
};

/// What a run decided about every candidate, by its position in the input; see
/// [`Pipeline::decide`](crate::Pipeline::decide).
///
/// This is the record of a run. [`SelectionReport`] and [`Explanation`](crate::Explanation) are
/// views of it. It borrows the items, and texts are built when they are requested. A position that
/// is out of range has no decision: methods return `None`, or 0.0 as the score.
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
/// assert_eq!((decisions.position(1), decisions.rank(1)), (Some(0), Some(0)));
/// assert_eq!((decisions.tokens_used(), decisions.tokens_left()), (5, 95));
/// # Ok::<(), CupelError>(())
/// ```
#[derive(Clone)]
pub struct Decisions<'a> {
    ledger: Ledger<'a>,
    policy: Policy,
    target_tokens: i64,
    lookup: OnceLock<Lookup>,
}

/// Window positions and ranks by candidate.
#[derive(Clone)]
struct Lookup {
    ranking: Vec<usize>,
    positions: Vec<Option<usize>>,
    ranks: Vec<Option<usize>>,
}

/// What a run decided about one candidate.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(tag = "decision", rename_all = "snake_case")
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Decision {
    /// The candidate is in the window.
    #[cfg_attr(feature = "schema", schemars(title = "Included"))]
    Included {
        /// Its position in the window, from 0.
        position: usize,
        /// Why it is included.
        reason: InclusionReason,
    },
    /// The candidate is not in the window.
    #[cfg_attr(feature = "schema", schemars(title = "Excluded"))]
    Excluded {
        /// The stage that excluded it.
        stage: PipelineStage,
        /// Why it is excluded.
        reason: ExclusionReason,
    },
}

impl<'a> Decisions<'a> {
    pub(super) fn new(ledger: Ledger<'a>, policy: &Policy, budget: &ContextBudget) -> Self {
        Self {
            ledger,
            policy: policy.clone(),
            target_tokens: budget.target_tokens(),
            lookup: OnceLock::new(),
        }
    }

    /// Returns the candidates.
    pub fn items(&self) -> &'a [ContextItem] {
        self.ledger.items()
    }

    /// Returns a candidate as it is in the window: in full, or as one of its views. An excluded one is
    /// returned in full.
    ///
    /// # Panics
    ///
    /// If `candidate` is out of range.
    pub fn item(&self, candidate: usize) -> &ContextItem {
        match self.view(candidate) {
            Some(_) => self.ledger.item(candidate),
            None => &self.items()[candidate],
        }
    }

    /// Returns the index of a candidate's kept view; `None` for a candidate that is kept in full or
    /// excluded.
    pub fn view(&self, candidate: usize) -> Option<usize> {
        self.ledger.view(candidate)
    }

    /// Returns the candidates in the window, in its order.
    ///
    /// These are the positions of the entries of [`SelectionReport::included`].
    pub fn window(&self) -> &[usize] {
        self.ledger.window()
    }

    /// Returns the excluded candidates, best score first; equal scores in the order of exclusion.
    ///
    /// These are the positions of the entries of [`SelectionReport::excluded`].
    pub fn excluded(&self) -> Vec<usize> {
        let exclusions = self.ledger.exclusions().into_iter();
        exclusions.map(|(candidate, _)| candidate).collect()
    }

    /// Returns the decision about a candidate.
    pub fn get(&self, candidate: usize) -> Option<Decision> {
        if let Some(position) = self.position(candidate) {
            let reason = self.ledger.inclusion(candidate);
            return Some(Decision::Included { position, reason });
        }
        Some(Decision::Excluded {
            stage: self.stage(candidate)?,
            reason: self.exclusion(candidate)?,
        })
    }

    /// Returns the position of a candidate in the window, from 0; `None` for an excluded one.
    pub fn position(&self, candidate: usize) -> Option<usize> {
        *self.lookup().positions.get(candidate)?
    }

    /// Returns the rank of a candidate, from 0; `None` for one that is pinned or was excluded before
    /// ranking.
    pub fn rank(&self, candidate: usize) -> Option<usize> {
        *self.lookup().ranks.get(candidate)?
    }

    /// Returns the ranked candidates, best first.
    pub fn ranking(&self) -> &[usize] {
        &self.lookup().ranking
    }

    fn lookup(&self) -> &Lookup {
        self.lookup.get_or_init(|| {
            let inverse = |candidates: &[usize]| {
                let mut places = vec![None; self.items().len()];
                for (place, &candidate) in candidates.iter().enumerate() {
                    places[candidate] = Some(place);
                }
                places
            };
            let ranking: Vec<usize> = self.ledger.ranking().iter().collect();
            Lookup {
                positions: inverse(self.window()),
                ranks: inverse(&ranking),
                ranking,
            }
        })
    }

    /// Returns the score of a candidate: 1.0 if it is pinned, 0.0 if it was excluded before scoring.
    pub fn score(&self, candidate: usize) -> f64 {
        self.ledger.score(candidate)
    }

    /// Scores the candidates again and returns how each score is composed; `None` for a candidate
    /// that is not scored.
    ///
    /// # Errors
    ///
    /// The errors of the scorer.
    pub fn score_parts(&self) -> Result<Vec<Option<ScorePart>>, CupelError> {
        let is_scored = self.items().iter().map(ContextItem::is_scored);
        let items = score::scoreable_items(self.items());
        if items.is_empty() {
            return Ok(vec![None; self.items().len()]);
        }
        let mut explained = explained(self.policy.scorer(), &items)?.into_iter();
        let parts = is_scored.map(|is_scored| is_scored.then(|| explained.next()).flatten());
        Ok(parts.collect())
    }

    /// Returns why a candidate is in the window; `None` for one that is not.
    pub fn inclusion(&self, candidate: usize) -> Option<InclusionReason> {
        let is_in = candidate < self.items().len() && self.stage(candidate).is_none();
        is_in.then(|| self.ledger.inclusion(candidate))
    }

    /// Returns why a candidate is excluded; `None` for one in the window.
    pub fn exclusion(&self, candidate: usize) -> Option<ExclusionReason> {
        self.ledger.reason(candidate)
    }

    /// Returns why a candidate is excluded in a few words with the numbers; `None` for one in the
    /// window.
    ///
    /// As [`ExclusionReason::phrase`], and names kind quotas where they are the cause.
    pub fn phrase(&self, candidate: usize) -> Option<String> {
        let reason = self.exclusion(candidate)?;
        Some(reason.phrase_with(self.quota_kind(candidate)))
    }

    /// Returns why a candidate is excluded without the numbers that differ from item to item;
    /// `None` for one in the window.
    ///
    /// As [`ExclusionReason::summary`], and names kind quotas where they are the cause.
    pub fn summary(&self, candidate: usize) -> Option<String> {
        let reason = self.exclusion(candidate)?;
        Some(reason.summary_with(self.quota_kind(candidate)))
    }

    /// Returns the kind of a candidate if kind quotas took part in the run.
    fn quota_kind(&self, candidate: usize) -> Option<&str> {
        let item = self.items().get(candidate)?;
        self.ledger.kind_quotas.then(|| item.kind().as_str())
    }

    /// Returns the stage that excluded a candidate; `None` for one in the window.
    pub fn stage(&self, candidate: usize) -> Option<PipelineStage> {
        self.ledger.stage_of_exclusion(candidate)
    }

    /// Returns the candidate with the same content that stayed, if this one is a duplicate.
    pub fn copy_of(&self, candidate: usize) -> Option<usize> {
        self.ledger.survivor(candidate)
    }

    /// Returns the count requirements that were not met.
    pub fn shortfalls(&self) -> &[CountRequirementShortfall] {
        &self.ledger.shortfalls
    }

    /// Returns the tokens of the window. A shortened item counts with the tokens of its view.
    pub fn tokens_used(&self) -> i64 {
        let window = self.window().iter();
        total_tokens(window.map(|&candidate| self.item(candidate)))
    }

    /// Returns the tokens of the target that the window does not use; negative after an overflow.
    pub fn tokens_left(&self) -> i64 {
        self.target_tokens.saturating_sub(self.tokens_used())
    }

    /// Returns the tokens by which the selection exceeds its limit, if
    /// [`OverflowStrategy::Proceed`](crate::OverflowStrategy::Proceed) accepted them.
    pub fn overflow(&self) -> Option<i64> {
        self.ledger.tokens_over
    }

    /// Returns the candidates in the window before placing: the pinned ones by position, then the
    /// others by rank. This is the order of [`OverflowEvent`](crate::OverflowEvent).
    pub fn merged(&self) -> Vec<usize> {
        let mut merged = self.window().to_vec();
        merged.sort_by_key(|&candidate| (self.rank(candidate), candidate));
        merged
    }

    /// Returns the order of the window at any budget, if the placer has a rule for it: the rule over all
    /// candidates that can be in a window.
    ///
    /// ```
    /// use cupel::*;
    ///
    /// let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, UShapedPlacer);
    /// let item = |hint: f64| ContextItem::builder(hint.to_string(), 5).future_relevance_hint(hint).build();
    /// let items = [item(0.1)?, item(0.9)?, item(0.5)?];
    /// let small = pipeline.decide(&items, &ContextBudget::with_target(10, 10)?)?;
    /// let large = pipeline.decide(&items, &ContextBudget::with_target(15, 15)?)?;
    /// let rule = small.placement_rule().unwrap();
    /// assert_eq!(rule.order(|candidate| candidate != 0), small.window());
    /// assert_eq!(rule.order(|_| true), large.window());
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn placement_rule(&self) -> Option<PlacementRule> {
        let is_pinned = |&index: &usize| {
            let item = &self.items()[index];
            item.pinned() && item.tokens() >= 0
        };
        let pinned = (0..self.items().len()).filter(is_pinned);
        let candidates: Vec<usize> = pinned.chain(self.ranking().iter().copied()).collect();
        let scored = self.ledger.scored(candidates.iter().copied());
        let rule = self.policy.placer().rule(&scored)?;
        Some(rule.map(|position| candidates[position]))
    }

    /// Returns the report of the run, without events.
    pub fn to_report(&self) -> SelectionReport {
        self.ledger.report(Vec::new())
    }
}

/// Shows the window and the excluded candidates with their reasons.
impl fmt::Debug for Decisions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let excluded = self.excluded().into_iter();
        let excluded = excluded.map(|candidate| (candidate, self.summary(candidate)));
        f.debug_struct("Decisions")
            .field("window", &self.window())
            .field("excluded", &excluded.collect::<Vec<_>>())
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
            Some("`Memory` quota is full: needs 20, 70 left")
        );
        assert_eq!(
            decisions.summary(0).as_deref(),
            Some("`Memory` quota is full")
        );
        assert_eq!(decisions.phrase(1), None);
        assert_eq!(decisions.summary(1), None);
    }
}
