//! [`SelectionReport`]: the whole answer to "why?".

use super::{ExclusionReason, InclusionReason, TraceEvent};
use crate::ContextItem;
use crate::order::descending_key;
use crate::total_tokens;

/// What a run decided about every candidate.
///
/// Every candidate is in exactly one of the two lists. The totals follow from the lists.
///
/// ```
/// use cupel::*;
///
/// let pipeline = Pipeline::builder()
///     .scorer(ReflexiveScorer)
///     .slicer(GreedySlice)
///     .placer(ChronologicalPlacer)
///     .build()?;
/// let items = [
///     ContextItem::builder("short", 10).future_relevance_hint(0.5).build()?,
///     ContextItem::builder("long", 100).future_relevance_hint(0.9).build()?,
/// ];
/// let report = pipeline.dry_run(&items, &ContextBudget::with_target(50, 50)?)?;
/// assert_eq!(report.included[0].item.content(), "short");
/// assert_eq!(
///     report.excluded[0].reason,
///     ExclusionReason::BudgetExceeded { item_tokens: 100, available_tokens: 40 },
/// );
/// # Ok::<(), CupelError>(())
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct SelectionReport {
    /// What happened, in order.
    pub events: Vec<TraceEvent>,
    /// The window, in its final order.
    pub included: Vec<IncludedItem>,
    /// The rest, best score first; equal scores in the order of their exclusion.
    pub excluded: Vec<ExcludedItem>,
    /// The length of both lists.
    pub total_candidates: usize,
    /// The tokens of both lists.
    pub total_tokens_considered: i64,
    /// Count requirements that could not be met.
    pub count_requirement_shortfalls: Vec<CountRequirementShortfall>,
}

impl SelectionReport {
    /// A report of the given lists: sorts the excluded items and computes the totals.
    pub fn new(
        events: Vec<TraceEvent>,
        included: Vec<IncludedItem>,
        mut excluded: Vec<ExcludedItem>,
        count_requirement_shortfalls: Vec<CountRequirementShortfall>,
    ) -> Self {
        excluded.sort_by_cached_key(|excluded| descending_key(excluded.score));
        Self::sorted(events, included, excluded, count_requirement_shortfalls)
    }

    /// A report of lists that are in order.
    pub(crate) fn sorted(
        events: Vec<TraceEvent>,
        included: Vec<IncludedItem>,
        excluded: Vec<ExcludedItem>,
        count_requirement_shortfalls: Vec<CountRequirementShortfall>,
    ) -> Self {
        let (total_candidates, total_tokens_considered) = totals(&included, &excluded);
        Self {
            events,
            included,
            excluded,
            total_candidates,
            total_tokens_considered,
            count_requirement_shortfalls,
        }
    }
}

/// The number of items in both lists, and their tokens.
pub(crate) fn totals(included: &[IncludedItem], excluded: &[ExcludedItem]) -> (usize, i64) {
    let items = included.iter().map(|included| &included.item);
    let items = items.chain(excluded.iter().map(|excluded| &excluded.item));
    (included.len() + excluded.len(), total_tokens(items))
}

/// An item in the window.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IncludedItem {
    /// The item.
    pub item: ContextItem,
    /// The score it was judged by; 1.0 for pinned items.
    #[cfg_attr(feature = "serde", serde(with = "crate::wire::float"))]
    pub score: f64,
    /// Why it is in.
    pub reason: InclusionReason,
}

impl IncludedItem {
    /// An item with its score and reason.
    pub fn new(item: ContextItem, score: f64, reason: InclusionReason) -> Self {
        Self {
            item,
            score,
            reason,
        }
    }
}

/// An item that is not in the window.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ExcludedItem {
    /// The item.
    pub item: ContextItem,
    /// The score it was judged by; 0.0 if it was excluded before scoring.
    #[cfg_attr(feature = "serde", serde(with = "crate::wire::float"))]
    pub score: f64,
    /// Why it is out.
    pub reason: ExclusionReason,
}

impl ExcludedItem {
    /// An item with its score and reason.
    pub fn new(item: ContextItem, score: f64, reason: ExclusionReason) -> Self {
        Self {
            item,
            score,
            reason,
        }
    }
}

/// A count requirement that could not be met.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CountRequirementShortfall {
    /// The kind, as configured.
    pub kind: String,
    /// How many were required.
    #[cfg_attr(feature = "serde", serde(alias = "requiredCount"))]
    pub required_count: usize,
    /// How many there were.
    #[cfg_attr(feature = "serde", serde(alias = "satisfiedCount"))]
    pub satisfied_count: usize,
}

impl CountRequirementShortfall {
    /// A kind with what it required and what it got.
    pub fn new(kind: impl Into<String>, required_count: usize, satisfied_count: usize) -> Self {
        Self {
            kind: kind.into(),
            required_count,
            satisfied_count,
        }
    }
}
