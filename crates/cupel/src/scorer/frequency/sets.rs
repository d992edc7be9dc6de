//! The distinct tag sets of a list of items, interned.
//!
//! Items with the tags `x y`, `Y x` and `z` have the sets `0 1`, `0 1` and `2`: tags are numbered without
//! regard to case, sets hold ascending numbers, and the first set counts two items.

use crate::ContextItem;
use crate::fast::hash::Seed;
use crate::fast::interner::{Interner, index32};
use crate::fast::prefetch::{self, prefetch};
use crate::scorer::Among;

/// Distinct tag sets. Tags and sets are numbered in order of first appearance.
pub(super) struct TagSets {
    /// The set of each item.
    pub(super) of_item: Vec<u32>,
    pub(super) distinct: Vec<TagSet>,
    /// The tags of all sets, one set after another, ascending within a set.
    pub(super) tags: Vec<u32>,
    pub(super) tag_count: usize,
}

pub(super) struct TagSet {
    /// The index of its first tag.
    pub(super) start: u32,
    pub(super) len: u32,
    /// The number of items with exactly this set.
    pub(super) items: u32,
}

impl TagSets {
    /// The most items or tags that 32-bit numbers allow.
    pub(super) const LIMIT: usize = u32::MAX as usize - 1;

    /// Returns `None` if the items, or the tags of the distinct sets, may exceed the limit. Items that
    /// do not take part have the empty set.
    pub(super) fn new(items: &[ContextItem], limit: usize, among: Among) -> Option<Self> {
        if items.len() > limit {
            return None;
        }
        let mut tag_interner = Interner::new(9);
        let mut texts = vec![""];
        let mut sets = SetInterner {
            seed: Seed::of_process(),
            interner: Interner::new((items.len().ilog2() + 1).min(14)),
            distinct: Vec::new(),
            tags: Vec::new(),
        };
        let mut of_item = Vec::with_capacity(items.len());
        let mut tags = Vec::new();
        for block in items.chunks(prefetch::BLOCK) {
            prefetch(block.iter().map(ContextItem::first_tag_word));
            let more = block.iter().map(|item| item.tag_keys().len());
            if sets.tags.len() + more.sum::<usize>() > limit {
                return None;
            }
            for item in block {
                tags.clear();
                // A bit mask of the tags below 64 sorts them and removes repeats.
                let (mut mask, mut high_bits) = (0, 0);
                let keys = item.tag_keys().iter().filter(|_| among.includes(item));
                for (position, key) in keys.enumerate() {
                    let text = || item.tags()[position].as_str();
                    let number = tag_interner.intern(key.folded(), |number| {
                        key.is_inline() || texts[number].eq_ignore_ascii_case(text())
                    });
                    if number == texts.len() {
                        texts.push(text());
                    }
                    let tag = index32(number - 1);
                    mask |= 1 << (tag % 64);
                    high_bits |= tag / 64;
                    tags.push(tag);
                }
                of_item.push(if high_bits == 0 {
                    sets.intern_mask(mask)
                } else {
                    sets.intern_list(&mut tags)
                });
            }
        }
        Some(Self {
            of_item,
            distinct: sets.distinct,
            tags: sets.tags,
            tag_count: tag_interner.len(),
        })
    }
}

/// The distinct sets so far.
struct SetInterner {
    seed: Seed,
    interner: Interner,
    distinct: Vec<TagSet>,
    tags: Vec<u32>,
}

impl SetInterner {
    /// Adds an item whose tags are the bits of a mask and returns the number of its set.
    #[inline]
    fn intern_mask(&mut self, mask: u64) -> u32 {
        let number = self.interner.intern([mask, 0], |_| true) - 1;
        if number == self.distinct.len() {
            self.add(ones(mask));
        }
        self.distinct[number].items += 1;
        index32(number)
    }

    /// Adds an item with any tags and returns the number of its set.
    #[inline(never)]
    fn intern_list(&mut self, tags: &mut Vec<u32>) -> u32 {
        tags.sort_unstable();
        tags.dedup();
        let words = tags.iter().map(|&tag| u64::from(tag));
        let hash = words.fold(0, |hash, tag| self.seed.hash([hash, tag]));
        let is_same = |number: usize| {
            let set = &self.distinct[number - 1];
            self.tags[set.start as usize..][..set.len as usize] == **tags
        };
        let number = self.interner.intern([hash, 1], is_same) - 1;
        if number == self.distinct.len() {
            self.add(tags.iter().copied());
        }
        self.distinct[number].items += 1;
        index32(number)
    }

    fn add(&mut self, tags: impl Iterator<Item = u32>) {
        let start = index32(self.tags.len());
        self.tags.extend(tags);
        self.distinct.push(TagSet {
            start,
            len: index32(self.tags.len()) - start,
            items: 0,
        });
    }
}

/// Returns the positions of the ones, ascending.
fn ones(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let position = mask.trailing_zeros();
        mask &= mask.checked_sub(1)?;
        Some(position)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_items_or_tags_are_refused() {
        let item = |tag: &str| ContextItem::builder("x", 1).tag("a").tag(tag).build();
        let items = [item("b").unwrap(), item("c").unwrap()];
        assert!(TagSets::new(&items, 3, Among::All).is_none());
        assert_eq!(
            TagSets::new(&items, 4, Among::All).map(|sets| sets.tag_count),
            Some(3)
        );
    }
}
