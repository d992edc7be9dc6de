//! [`FrequencyScorer`].

mod meetings;
mod sets;

use sets::TagSets;

use super::{Scorer, one_by_one, position, score_apart};
use crate::{ContextItem, CupelError};

/// Scores by company: the share of the other items that have a tag in common.
///
/// Tags compare without regard to ASCII case (FREQ-5). An item never counts itself, but an
/// equal copy of it is a peer like any other (FREQ-2). The denominator is all other items,
/// tagged or not.
///
/// ```
/// use cupel::{ContextItem, FrequencyScorer, Scorer};
///
/// let tagged = |tag: &str| ContextItem::builder("x", 1).tag(tag).build();
/// let items = [tagged("Billing")?, tagged("billing")?, tagged("login")?];
/// assert_eq!(FrequencyScorer.score_all(&items)?, [0.5, 0.5, 0.0]);
/// # Ok::<(), cupel::CupelError>(())
/// ```
///
/// # Cost
///
/// [`score`](Scorer::score) looks at every other item. [`score_all`](Scorer::score_all) reads
/// every tag once and then works on the distinct tag sets, so that items with equal tags cost
/// nothing more. As long as a tag is on a small share of the sets, time grows about as the
/// number of tags does. The worst are very many distinct sets of which most share tags, such as
/// ten tags each out of fifty: there each set is compared with each other, 64 in one step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct FrequencyScorer;

impl Scorer for FrequencyScorer {
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
        if item.tags().is_empty() || all_items.len() <= 1 {
            return 0.0;
        }
        let own = position(item, all_items);
        let peers = all_items
            .iter()
            .enumerate()
            .filter(|(index, _)| Some(*index) != own);
        let matching = peers
            .filter(|(_, peer)| shares_any_tag(item.tags(), peer.tags()))
            .count();
        matching as f64 / (all_items.len() - 1) as f64
    }

    fn score_all(&self, items: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
        let scores = shares(items, |_| true);
        Ok(scores.unwrap_or_else(|| one_by_one(self, items)))
    }

    fn score_among(&self, candidates: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
        match shares(candidates, ContextItem::is_scored) {
            Some(scores) => Ok(scores),
            None => score_apart(self, candidates),
        }
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        Ok(super::ScorerConfig::Frequency)
    }
}

/// The scores of those items that take part; `None` if there are too many.
fn shares(items: &[ContextItem], takes_part: impl Fn(&ContextItem) -> bool) -> Option<Vec<f64>> {
    let number = items.iter().filter(|item| takes_part(item)).count();
    if number <= 1 {
        return Some(vec![0.0; items.len()]);
    }
    let sets = TagSets::of(items, TagSets::LIMIT, takes_part)?;
    let meetings = meetings::count(&sets, |parts, whole| parts < whole);
    let peers = (number - 1) as f64;
    // A set meets itself, unless it is empty.
    let score = |set: &u32| f64::from(meetings[*set as usize].saturating_sub(1)) / peers;
    Some(sets.of_item.iter().map(score).collect())
}

fn shares_any_tag(left: &[String], right: &[String]) -> bool {
    left.iter()
        .any(|tag| right.iter().any(|other| tag.eq_ignore_ascii_case(other)))
}
