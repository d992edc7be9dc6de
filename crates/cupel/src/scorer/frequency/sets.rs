//! The distinct tag sets of a batch.

use crate::ContextItem;
use crate::hash::Secret;
use crate::scorer::numbers::{Numbers, index};
use crate::scorer::{BLOCK, read_ahead};

/// The distinct tag sets of a batch. Tags and sets are numbered in order of first appearance.
pub(super) struct TagSets {
    /// The set of every item.
    pub(super) of_item: Vec<u32>,
    pub(super) distinct: Vec<TagSet>,
    /// The tags of one set after the other, ascending within a set.
    pub(super) tags: Vec<u32>,
    pub(super) tag_count: usize,
}

pub(super) struct TagSet {
    /// Where its tags start.
    pub(super) start: u32,
    pub(super) len: u32,
    /// How many items carry exactly this set.
    pub(super) items: u32,
}

impl TagSets {
    /// With more, numbers of 32 bits would not do.
    pub(super) const LIMIT: usize = u32::MAX as usize - 1;

    /// `None` if the items, or the tags of the distinct sets, may be more than the limit. An item that
    /// takes no part has no tags.
    pub(super) fn of(
        items: &[ContextItem],
        limit: usize,
        takes_part: impl Fn(&ContextItem) -> bool,
    ) -> Option<Self> {
        if items.len() > limit {
            return None;
        }
        let mut tag_numbers = Numbers::new(9);
        let mut texts = vec![""];
        let mut sets = Sets {
            secret: Secret::of_process(),
            numbers: Numbers::new((items.len().ilog2() + 1).min(14)),
            distinct: Vec::new(),
            tags: Vec::new(),
        };
        let mut of_item = Vec::with_capacity(items.len());
        let mut tags = Vec::new();
        for block in items.chunks(BLOCK) {
            read_ahead(block);
            let more = block.iter().map(|item| item.tag_keys().len());
            if sets.tags.len() + more.sum::<usize>() > limit {
                return None;
            }
            for item in block {
                tags.clear();
                // A bit for every tag among the first 64: their sorted set without sorting.
                let (mut mask, mut beyond) = (0, 0);
                let keys = item.tag_keys().iter().filter(|_| takes_part(item));
                for (position, key) in keys.enumerate() {
                    let text = || item.tags()[position].as_str();
                    let number = tag_numbers.number(key.folded(), |number| {
                        key.is_whole() || texts[number].eq_ignore_ascii_case(text())
                    });
                    if number == texts.len() {
                        texts.push(text());
                    }
                    let tag = index(number - 1);
                    mask |= 1 << (tag % 64);
                    beyond |= tag / 64;
                    tags.push(tag);
                }
                of_item.push(if beyond == 0 {
                    sets.number_of_mask(mask)
                } else {
                    sets.number_of_many(&mut tags)
                });
            }
        }
        Some(Self {
            of_item,
            distinct: sets.distinct,
            tags: sets.tags,
            tag_count: tag_numbers.greatest(),
        })
    }
}

/// The sets so far.
struct Sets {
    secret: Secret,
    numbers: Numbers,
    distinct: Vec<TagSet>,
    tags: Vec<u32>,
}

impl Sets {
    /// The number of the set of tags that have a bit, which one more item carries.
    #[inline]
    fn number_of_mask(&mut self, mask: u64) -> u32 {
        let number = self.numbers.number([mask, 0], |_| true) - 1;
        if number == self.distinct.len() {
            self.add(ones(mask));
        }
        self.distinct[number].items += 1;
        index(number)
    }

    /// The same for tags of which not all are among the first 64.
    #[inline(never)]
    fn number_of_many(&mut self, tags: &mut Vec<u32>) -> u32 {
        tags.sort_unstable();
        tags.dedup();
        let words = tags.iter().map(|&tag| u64::from(tag));
        let hash = words.fold(0, |hash, tag| self.secret.mix([hash, tag]));
        let is_same = |number: usize| {
            let set = &self.distinct[number - 1];
            self.tags[set.start as usize..][..set.len as usize] == **tags
        };
        let number = self.numbers.number([hash, 1], is_same) - 1;
        if number == self.distinct.len() {
            self.add(tags.iter().copied());
        }
        self.distinct[number].items += 1;
        index(number)
    }

    fn add(&mut self, tags: impl Iterator<Item = u32>) {
        let start = index(self.tags.len());
        self.tags.extend(tags);
        self.distinct.push(TagSet {
            start,
            len: index(self.tags.len()) - start,
            items: 0,
        });
    }
}

/// The positions of the ones, ascending.
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
    fn more_items_or_tags_than_can_be_numbered_are_refused() {
        let item = |tag: &str| ContextItem::builder("x", 1).tag("a").tag(tag).build();
        let items = [item("b").unwrap(), item("c").unwrap()];
        assert!(TagSets::of(&items, 3, |_| true).is_none());
        assert_eq!(
            TagSets::of(&items, 4, |_| true).map(|sets| sets.tag_count),
            Some(3)
        );
    }
}
