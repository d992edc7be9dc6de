//! Hints: those outside of the range that a scorer reads, and the scores of documents as hints.

use cupel::{ContextItem, Policy};

use crate::notice::Notice;

/// Returns the notice for hints outside of 0 to 1, if the policy reads hints. The scorer clamps them, so that the
/// best of several scores above 1, such as those of a reranker, is no longer the best.
pub fn hints_out_of_range(items: &[ContextItem], policy: &Policy) -> Option<Notice> {
    let hints = items.iter().map(ContextItem::future_relevance_hint);
    let mut outside = hints
        .enumerate()
        .filter_map(|(index, hint)| Some((index, hint?)))
        .filter(|(_, hint)| !(0.0..=1.0).contains(hint));
    let (index, hint) = outside.next()?;
    let count = 1 + outside.count();
    let notice = Notice::HintsOutOfRange { count, index, hint };
    policy.scorer().reads_hints().then_some(notice)
}

/// Returns scores of a retriever or a reranker as hints from 0 to 1, the highest first in both. A missing score is the
/// lowest hint, and so is NaN.
///
/// Scores between 0 and 1 are hints already. If one is outside, the ranks of all are: the scale of a logit or of BM25
/// has no fixed ends, so a distance between two scores says nothing. Equal scores have equal hints.
///
/// ```
/// use cupel_app::hints_of_scores;
///
/// assert_eq!(hints_of_scores(&[Some(0.25), None, Some(1.0)]), [0.25, 0.0, 1.0]);
/// let logits = [Some(-5.0), Some(-1.0), Some(-3.0), None, Some(-1.0)];
/// assert_eq!(hints_of_scores(&logits), [1.0 / 3.0, 1.0, 2.0 / 3.0, 0.0, 1.0]);
/// ```
pub fn hints_of_scores(scores: &[Option<f64>]) -> Vec<f64> {
    let known = || scores.iter().flatten().filter(|score| !score.is_nan());
    if known().all(|score| (0.0..=1.0).contains(score)) {
        let hints = scores.iter().map(|score| score.unwrap_or(0.0));
        return hints
            .map(|hint| if hint.is_nan() { 0.0 } else { hint })
            .collect();
    }
    let mut distinct: Vec<f64> = known().copied().collect();
    distinct.sort_unstable_by(f64::total_cmp);
    // Not by `total_cmp`, which tells 0 from -0.
    distinct.dedup_by(|a, b| a == b);
    let hints = scores.iter().map(|score| match score {
        Some(score) if !score.is_nan() => {
            let rank = distinct.partition_point(|other| other < score) + 1;
            rank as f64 / distinct.len() as f64
        }
        _ => 0.0,
    });
    hints.collect()
}
