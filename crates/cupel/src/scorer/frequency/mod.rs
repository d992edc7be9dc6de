//! [`FrequencyScorer`].

mod intersections;
mod sets;

use sets::TagSets;

use super::{Among, BuiltinScorer, Scorer, position, score_copied, score_each};
use crate::{ContextItem, CupelError};

/// Scores by the share of the other items that have a tag in common.
///
/// Tags compare without regard to ASCII case (FREQ-5). An item does not count itself, but an equal
/// copy of it counts (FREQ-2). The denominator is all other items, tagged or not.
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
/// every tag once and then works on the distinct tag sets. Time grows about linearly with the number
/// of tags while each tag is in a small share of the sets. In the worst case, many distinct sets that
/// mostly share tags (such as ten of fifty tags each), every set is compared with every other, 64 at
/// a time.
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

    fn builtin(&self) -> Option<&dyn BuiltinScorer> {
        Some(self)
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        Ok(super::ScorerConfig::Frequency)
    }
}

impl BuiltinScorer for FrequencyScorer {
    fn score_among(&self, items: &[ContextItem], among: Among) -> Result<Vec<f64>, CupelError> {
        match (shares(items, among), among) {
            (Some(scores), _) => Ok(scores),
            (None, Among::All) => Ok(score_each(self, items)),
            (None, Among::Scoreable) => score_copied(self, items),
        }
    }
}

/// Returns the scores of the items that take part, or `None` if there are too many.
fn shares(items: &[ContextItem], among: Among) -> Option<Vec<f64>> {
    let count = items.iter().filter(|item| among.includes(item)).count();
    if count <= 1 {
        return Some(vec![0.0; items.len()]);
    }
    let sets = TagSets::new(items, TagSets::LIMIT, among)?;
    let intersecting = intersections::count(&sets, |parts, whole| parts < whole);
    let peers = (count - 1) as f64;
    // A set that is not empty intersects itself.
    let score = |set: &u32| f64::from(intersecting[*set as usize].saturating_sub(1)) / peers;
    Some(sets.of_item.iter().map(score).collect())
}

fn shares_any_tag(left: &[String], right: &[String]) -> bool {
    left.iter()
        .any(|tag| right.iter().any(|other| tag.eq_ignore_ascii_case(other)))
}
