//! [`SelectionReport`]: what a run decided, as data that owns its items.

use super::{ExclusionReason, InclusionReason, TraceEvent};
use crate::ContextItem;
use crate::model::saturate;
use crate::order::descending_key;

/// What a run decided about every candidate.
///
/// Every candidate is in exactly one of the two lists. The totals follow from the lists.
/// [`Decisions`](crate::Decisions) has the same decisions by position and copies nothing:
/// [`window`](crate::Decisions::window) and [`excluded`](crate::Decisions::excluded) are the positions
/// of the entries of both lists.
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SelectionReport {
    /// The events of the run, in order.
    pub events: Vec<TraceEvent>,
    /// The window, in order.
    pub included: Vec<IncludedItem>,
    /// The excluded items, best score first; equal scores in the order of exclusion.
    pub excluded: Vec<ExcludedItem>,
    /// The number of items in both lists.
    pub total_candidates: usize,
    /// The tokens of both lists. A shortened item counts with its original tokens.
    pub total_tokens_considered: i64,
    /// Count requirements that were not met.
    pub count_requirement_shortfalls: Vec<CountRequirementShortfall>,
}

impl SelectionReport {
    /// Creates a report of the given lists. Sorts the excluded items and computes the totals.
    pub fn new(
        events: Vec<TraceEvent>,
        included: Vec<IncludedItem>,
        mut excluded: Vec<ExcludedItem>,
        count_requirement_shortfalls: Vec<CountRequirementShortfall>,
    ) -> Self {
        excluded.sort_by_cached_key(|excluded| descending_key(excluded.score));
        Self::sorted(events, included, excluded, count_requirement_shortfalls)
    }

    /// Returns the report without the contents of its items, for logs.
    ///
    /// Contents in items and reasons become [`REMOVED`](Self::REMOVED). Event messages quote
    /// contents, so they end at their first quotation mark. Tags and metadata stay.
    ///
    /// ```
    /// use cupel::*;
    ///
    /// let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);
    /// let items = [ContextItem::builder("secret", 10).build()?];
    /// let report = pipeline.dry_run(&items, &ContextBudget::with_target(50, 50)?)?;
    /// let report = report.without_content();
    /// assert_eq!(report.included[0].item.content(), SelectionReport::REMOVED);
    /// assert_eq!(report.included[0].item.tokens(), 10);
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn without_content(&self) -> Self {
        let mut report = self.clone();
        for included in &mut report.included {
            included.item = included.item.with_content(Self::REMOVED);
        }
        for excluded in &mut report.excluded {
            excluded.item = excluded.item.with_content(Self::REMOVED);
            excluded.reason.remove_content(Self::REMOVED);
        }
        let messages = report.events.iter_mut();
        for message in messages.filter_map(|event| event.message.as_mut()) {
            if let Some(quote) = message.find('"') {
                message.replace_range(quote.., Self::REMOVED);
            }
        }
        report
    }

    /// The content of every item of a report [`without_content`](Self::without_content).
    pub const REMOVED: &str = "[removed]";

    /// Creates a report of lists that are sorted.
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

/// Returns the number of items in both lists, and their tokens in full.
pub(crate) fn totals(included: &[IncludedItem], excluded: &[ExcludedItem]) -> (usize, i64) {
    let included_tokens = included.iter().map(|included| match included.reason {
        InclusionReason::Shortened {
            original_tokens, ..
        } => original_tokens,
        _ => included.item.tokens(),
    });
    let tokens = included_tokens.chain(excluded.iter().map(|excluded| excluded.item.tokens()));
    let total = saturate(tokens.map(i128::from).sum());
    (included.len() + excluded.len(), total)
}

/// An item in the window.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IncludedItem {
    /// The item as it is in the window: in full, or as one of its views.
    pub item: ContextItem,
    /// The item's score; 1.0 for pinned items.
    #[cfg_attr(feature = "serde", serde(with = "crate::wire::float"))]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Float"))]
    pub score: f64,
    /// Why it is included.
    pub reason: InclusionReason,
}

impl IncludedItem {
    /// Creates an entry.
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExcludedItem {
    /// The item.
    pub item: ContextItem,
    /// The item's score; 0.0 if it was excluded before scoring.
    #[cfg_attr(feature = "serde", serde(with = "crate::wire::float"))]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Float"))]
    pub score: f64,
    /// Why it is excluded.
    pub reason: ExclusionReason,
}

impl ExcludedItem {
    /// Creates an entry.
    pub fn new(item: ContextItem, score: f64, reason: ExclusionReason) -> Self {
        Self {
            item,
            score,
            reason,
        }
    }
}

/// A count requirement that was not met.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountRequirementShortfall {
    /// The kind, as configured.
    pub kind: String,
    /// The number of items required.
    #[cfg_attr(feature = "serde", serde(alias = "requiredCount"))]
    pub required_count: usize,
    /// The number of items included.
    #[cfg_attr(feature = "serde", serde(alias = "satisfiedCount"))]
    pub satisfied_count: usize,
}

impl CountRequirementShortfall {
    /// Creates a shortfall.
    pub fn new(kind: impl Into<String>, required_count: usize, satisfied_count: usize) -> Self {
        Self {
            kind: kind.into(),
            required_count,
            satisfied_count,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        ChronologicalPlacer, ContextBudget, ContextItem, GreedySlice, Pipeline, ReflexiveScorer,
        SelectionReport,
    };

    #[test]
    fn a_report_without_content_holds_no_content_anywhere() {
        let item = |text: &str, tokens| ContextItem::builder(text, tokens);
        let items = [
            item("secret rules", 30).pinned(true).build().unwrap(),
            item("secret plan", 5).build().unwrap(),
            item("secret plan", 5).build().unwrap(),
            item("secret story", 80).build().unwrap(),
            item("secret archive", 900).build().unwrap(),
        ];
        let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);
        let budget = ContextBudget::with_target(100, 100).unwrap();
        let report = pipeline.dry_run(&items, &budget).unwrap();
        assert!(format!("{report:?}").contains("secret"));
        let clean = report.without_content();
        assert!(!format!("{clean:?}").contains("secret"), "{clean:?}");
        let messages = clean
            .events
            .iter()
            .filter_map(|event| event.message.as_deref());
        assert_eq!(
            messages.collect::<Vec<_>>(),
            [
                "Deduplicated: same content as [removed]",
                "PinnedOverride: displaced by pinned [removed]",
                "BudgetExceeded: 900 tokens requested, 65 available",
            ]
        );
        assert_eq!(clean.included[0].item.content(), SelectionReport::REMOVED);
        assert_eq!(
            clean.total_tokens_considered,
            report.total_tokens_considered
        );
        let scores = |report: &SelectionReport| -> Vec<f64> {
            report
                .excluded
                .iter()
                .map(|excluded| excluded.score)
                .collect()
        };
        assert_eq!(scores(&clean), scores(&report));
    }
}
