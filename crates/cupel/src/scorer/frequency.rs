//! [`FrequencyScorer`].

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Scorer, position};
use crate::model::Folded;
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
        if items.len() <= 1 {
            return Ok(vec![0.0; items.len()]);
        }
        let sets = TagSets::of(items);
        let sharing = sets.items_sharing_a_tag();
        let peers = (items.len() - 1) as f64;
        let score = |set: &Option<usize>| match set {
            Some(set) => (sharing[*set] - 1) as f64 / peers,
            None => 0.0,
        };
        Ok(sets.of_item.iter().map(score).collect())
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        Ok(super::ScorerConfig::Frequency)
    }
}

fn shares_any_tag(left: &[String], right: &[String]) -> bool {
    left.iter()
        .any(|tag| right.iter().any(|other| tag.eq_ignore_ascii_case(other)))
}

/// Sets of up to this many tags are counted through their subsets.
const SMALL: usize = 6;

/// A subset of a small set: ascending tag numbers, the rest filled up.
type Subset = [u32; SMALL];

/// The distinct tag sets of a batch.
struct TagSets {
    /// The set of every item; `None` for an item without tags.
    of_item: Vec<Option<usize>>,
    distinct: Vec<TagSet>,
    tag_count: usize,
}

struct TagSet {
    /// Ascending tag numbers, each once.
    tags: Vec<u32>,
    /// How many items carry exactly this set.
    items: usize,
}

impl TagSets {
    fn of(items: &[ContextItem]) -> Self {
        let mut numbers: HashMap<Folded<'_>, u32> = HashMap::new();
        let mut known: HashMap<Vec<u32>, usize> = HashMap::new();
        let mut distinct: Vec<TagSet> = Vec::new();
        let mut of_item = Vec::with_capacity(items.len());
        for item in items {
            let mut tags: Vec<u32> = Vec::with_capacity(item.tags().len());
            for tag in item.tags() {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                tags.push(*numbers.entry(Folded(tag)).or_insert(next));
            }
            tags.sort_unstable();
            tags.dedup();
            if tags.is_empty() {
                of_item.push(None);
                continue;
            }
            let set = match known.entry(tags) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    let tags = entry.key().clone();
                    distinct.push(TagSet { tags, items: 0 });
                    *entry.insert(distinct.len() - 1)
                }
            };
            distinct[set].items += 1;
            of_item.push(Some(set));
        }
        Self {
            of_item,
            distinct,
            tag_count: numbers.len(),
        }
    }

    /// For every distinct set, the number of items that share a tag with it, its own included.
    ///
    /// Two small sets meet through inclusion and exclusion over their subsets, which costs
    /// the same for every set; a large set is compared with each distinct set.
    fn items_sharing_a_tag(&self) -> Vec<usize> {
        let mut carriers: HashMap<Subset, usize> = HashMap::new();
        for set in self.small() {
            for_each_subset(&set.tags, |subset, _| {
                *carriers.entry(subset).or_default() += set.items;
            });
        }
        let mut sharing = vec![0; self.distinct.len()];
        for (set, total) in self.distinct.iter().zip(&mut sharing) {
            if set.is_small() {
                let (mut added, mut removed) = (0, 0);
                for_each_subset(&set.tags, |subset, size| {
                    let sum = if size % 2 == 1 {
                        &mut added
                    } else {
                        &mut removed
                    };
                    *sum += carriers[&subset];
                });
                *total = added - removed;
            }
        }
        let mut marked = vec![false; self.tag_count];
        for (index, large) in self.distinct.iter().enumerate() {
            if large.is_small() {
                continue;
            }
            large
                .tags
                .iter()
                .for_each(|&tag| marked[tag as usize] = true);
            for (other_index, other) in self.distinct.iter().enumerate() {
                if other.tags.iter().any(|&tag| marked[tag as usize]) {
                    sharing[index] += other.items;
                    if other.is_small() {
                        sharing[other_index] += large.items;
                    }
                }
            }
            large
                .tags
                .iter()
                .for_each(|&tag| marked[tag as usize] = false);
        }
        sharing
    }

    fn small(&self) -> impl Iterator<Item = &TagSet> {
        self.distinct.iter().filter(|set| set.is_small())
    }
}

impl TagSet {
    fn is_small(&self) -> bool {
        self.tags.len() <= SMALL
    }
}

/// Calls `visit` with every non-empty subset of a small set, and its size.
fn for_each_subset(tags: &[u32], mut visit: impl FnMut(Subset, u32)) {
    for mask in 1_u32..(1 << tags.len()) {
        let mut subset = [u32::MAX; SMALL];
        let members = tags
            .iter()
            .enumerate()
            .filter(|(bit, _)| mask >> bit & 1 == 1);
        for (slot, (_, tag)) in subset.iter_mut().zip(members) {
            *slot = *tag;
        }
        visit(subset, mask.count_ones());
    }
}
