//! What swings between policies.

use std::collections::HashMap;

use crate::{ContextBudget, ContextItem, CupelError, Pipeline, Policy, SelectionReport};

/// Whether a variant selected an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum ItemStatus {
    /// It did.
    Included,
    /// It did not.
    Excluded,
}

/// An item on which the variants disagree.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PolicySensitivityDiffEntry {
    /// The item's content.
    pub content: String,
    /// Every variant's label and verdict, in the order of the variants.
    pub statuses: Vec<(String, ItemStatus)>,
}

/// What several variants made of the same items.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PolicySensitivityReport {
    /// Every variant's label and report, in the order given.
    pub variants: Vec<(String, SelectionReport)>,
    /// The items on which they disagree, in the order of the candidates.
    pub diffs: Vec<PolicySensitivityDiffEntry>,
}

/// Runs several policies over the same items and budget and tells what swings.
///
/// Items are matched by content. A content that stands several times among the candidates
/// counts as included by a variant that includes any of its copies.
///
/// # Errors
///
/// [`CupelError::PipelineConfig`] for fewer than two variants; whatever one of the runs fails with.
///
/// ```
/// use cupel::*;
///
/// let by_hint = Policy::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);
/// let by_priority = Policy::new(PriorityScorer, GreedySlice, ChronologicalPlacer);
/// let items = [
///     ContextItem::builder("likely", 40).priority(1).future_relevance_hint(0.9).build()?,
///     ContextItem::builder("urgent", 40).priority(9).future_relevance_hint(0.1).build()?,
/// ];
/// let variants = [("hint", &by_hint), ("priority", &by_priority)];
/// let report = policy_sensitivity(&items, &ContextBudget::with_target(40, 40)?, &variants)?;
/// assert_eq!(report.diffs[0].content, "likely");
/// assert_eq!(report.diffs[0].statuses[0], ("hint".to_owned(), ItemStatus::Included));
/// assert_eq!(report.diffs[0].statuses[1], ("priority".to_owned(), ItemStatus::Excluded));
/// # Ok::<(), CupelError>(())
/// ```
pub fn policy_sensitivity(
    items: &[ContextItem],
    budget: &ContextBudget,
    variants: &[(impl AsRef<str>, &Policy)],
) -> Result<PolicySensitivityReport, CupelError> {
    let variants = variants.iter();
    compare(
        items,
        budget,
        variants.map(|(label, policy)| (label.as_ref(), *policy)),
    )
}

/// As [`policy_sensitivity`], for pipelines.
///
/// # Errors
///
/// As [`policy_sensitivity`].
pub fn policy_sensitivity_from_pipelines(
    items: &[ContextItem],
    budget: &ContextBudget,
    variants: &[(impl AsRef<str>, &Pipeline)],
) -> Result<PolicySensitivityReport, CupelError> {
    let variants = variants.iter();
    compare(
        items,
        budget,
        variants.map(|(label, pipeline)| (label.as_ref(), pipeline.policy())),
    )
}

fn compare<'a>(
    items: &[ContextItem],
    budget: &ContextBudget,
    variants: impl ExactSizeIterator<Item = (&'a str, &'a Policy)>,
) -> Result<PolicySensitivityReport, CupelError> {
    if variants.len() < 2 {
        return Err(CupelError::PipelineConfig(
            "policy_sensitivity requires at least 2 variants".to_owned(),
        ));
    }
    let mut contents: Vec<&str> = Vec::new();
    let mut number: HashMap<&str, usize> = HashMap::new();
    for item in items {
        number.entry(item.content()).or_insert_with(|| {
            contents.push(item.content());
            contents.len() - 1
        });
    }
    let mut reports = Vec::with_capacity(variants.len());
    let mut statuses = vec![Vec::with_capacity(variants.len()); contents.len()];
    for (label, policy) in variants {
        let report = policy.dry_run(items, budget)?;
        for statuses in &mut statuses {
            statuses.push((label.to_owned(), ItemStatus::Excluded));
        }
        for included in &report.included {
            if let Some((_, status)) = statuses[number[included.item.content()]].last_mut() {
                *status = ItemStatus::Included;
            }
        }
        reports.push((label.to_owned(), report));
    }
    let entries = contents.into_iter().zip(statuses);
    let diffs = entries
        .filter(|(_, statuses)| statuses.windows(2).any(|pair| pair[0].1 != pair[1].1))
        .map(|(content, statuses)| PolicySensitivityDiffEntry {
            content: content.to_owned(),
            statuses,
        });
    Ok(PolicySensitivityReport {
        diffs: diffs.collect(),
        variants: reports,
    })
}
