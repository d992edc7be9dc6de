//! Policy sensitivity: the items on which policies disagree.

use std::collections::HashMap;

use crate::{ContextBudget, ContextItem, CupelError, Pipeline, Policy, SelectionReport};

/// Whether a variant selected an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum ItemStatus {
    /// It is in the window.
    Included,
    /// It is not.
    Excluded,
}

/// An item on which the variants disagree.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PolicySensitivityDiffEntry {
    /// The item's content.
    pub content: String,
    /// The label and status of every variant, in the order of the variants.
    pub statuses: Vec<(String, ItemStatus)>,
}

/// The runs of several variants over the same items.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PolicySensitivityReport {
    /// The label and report of every variant, in the order given.
    pub variants: Vec<(String, SelectionReport)>,
    /// The items on which they disagree, in the order of the candidates.
    pub diffs: Vec<PolicySensitivityDiffEntry>,
}

/// Runs several policies over the same items and budget and compares the windows.
///
/// Items are matched by content. A content that occurs several times among the candidates counts as
/// included by a variant that includes any of its duplicates.
///
/// # Errors
///
/// [`CupelError::PipelineConfig`] for fewer than two variants; the errors of the runs.
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
    if variants.len() < 2 {
        return Err(CupelError::PipelineConfig(
            "policy_sensitivity requires at least 2 variants".to_owned(),
        ));
    }
    let mut contents: Vec<&str> = Vec::new();
    let mut index: HashMap<&str, usize> = HashMap::new();
    for item in items {
        index.entry(item.content()).or_insert_with(|| {
            contents.push(item.content());
            contents.len() - 1
        });
    }
    let mut reports = Vec::with_capacity(variants.len());
    let mut statuses = vec![Vec::with_capacity(variants.len()); contents.len()];
    for (label, policy) in variants {
        let report = policy.dry_run(items, budget)?;
        for statuses in &mut statuses {
            statuses.push((label.as_ref().to_owned(), ItemStatus::Excluded));
        }
        for included in &report.included {
            if let Some((_, status)) = statuses[index[included.item.content()]].last_mut() {
                *status = ItemStatus::Included;
            }
        }
        reports.push((label.as_ref().to_owned(), report));
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

/// Compares pipelines, as [`policy_sensitivity`]: a pipeline is a policy.
///
/// # Errors
///
/// As [`policy_sensitivity`].
pub fn policy_sensitivity_from_pipelines(
    items: &[ContextItem],
    budget: &ContextBudget,
    variants: &[(impl AsRef<str>, &Pipeline)],
) -> Result<PolicySensitivityReport, CupelError> {
    policy_sensitivity(items, budget, variants)
}
