//! Counts, for each distinct tag set, the items whose sets intersect it.
//!
//! Four items with the sets `a b`, `b c`, `a b c` and `c`:
//!
//! ```text
//! a b      2 carry a, 3 carry b, together 5; minus those with b that also have a, which are 2: 3
//! b c      3 carry b, 3 carry c, together 6; minus those with c that also have b, which are 2: 4
//! sublists of b, for the subtraction: {a b, a b c} with the tags before b; of c: {b c, a b c}
//! ```
//!
//! The plain twin is `counts_equal_those_of_all_pairs`. Against bit rows over all items, the shortest
//! program without a cliff, a frequency run takes half the time at 10,000 items and a third at
//! 100,000; a comparison of all blocks of 512 items takes 2 seconds there.
//!
//! Inclusion-exclusion by the first common tag: a set intersects, for each of its tags, all carriers of
//! the tag, minus those with which it has an earlier tag in common. The number of those is the same
//! problem again, for the carriers only and their tags before that one only.
//!
//! So a list of sets is split into one sublist per tag, until comparing each set with all others is
//! cheaper. Comparisons are bit-parallel: each tag has a bit row of the sets that carry it.

use std::num::Wrapping;

use super::sets::TagSets;
use crate::fast::interner::index32;
use crate::order::to_index;

/// A distinct set, restricted to its first tags.
#[derive(Clone, Copy, Default)]
struct Member {
    set: u32,
    /// The number of items with exactly this set.
    items: u32,
    /// The index of its first tag.
    start: u32,
    /// The number of its tags, at least one.
    len: u32,
}

impl Member {
    fn tags(self, tags: &[u32]) -> &[u32] {
        &tags[self.start as usize..][..self.len as usize]
    }
}

/// Returns the number of items that intersect each distinct set, its own included. Splits a list if
/// `is_cheaper(cost of splitting, cost of comparing)` holds.
pub(super) fn count(sets: &TagSets, is_cheaper: fn(u64, u64) -> bool) -> Vec<u32> {
    let all = sets.distinct.iter().zip(0..).map(|(set, number)| Member {
        set: number,
        items: set.items,
        start: set.start,
        len: set.len,
    });
    let mut list: Vec<Member> = all.filter(|member| member.len > 0).collect();
    list.sort_unstable_by_key(|member| member.len);
    let mut counter = Counter {
        tags: &sets.tags,
        counts: vec![Wrapping(0); sets.distinct.len()],
        tallies: vec![Tally::default(); sets.tag_count],
        rows: Vec::new(),
        weights: Vec::new(),
        is_cheaper,
    };
    if !list.is_empty() {
        counter.add(&list, Wrapping(1));
    }
    counter.counts.into_iter().map(|items| items.0).collect()
}

struct Counter<'a> {
    tags: &'a [u32],
    /// By set, modulo 2^32: intermediate sums may wrap.
    counts: Vec<Wrapping<u32>>,
    /// By tag; all zero except while a list is split.
    tallies: Vec<Tally>,
    /// By tag, some words each; all zero except while a list is compared.
    rows: Vec<u64>,
    weights: Vec<Weight>,
    is_cheaper: fn(u64, u64) -> bool,
}

/// Sums over the members of a list that carry a tag.
#[derive(Clone, Copy, Default)]
struct Tally {
    /// Their items.
    items: u32,
    /// The members that carry the tag after another one: the length of its sublist.
    members: u32,
    /// The tags before it in those members.
    tags: u32,
    /// The index of the next member of its sublist.
    next: u32,
}

/// The members in a word that have `2^exponent` more items than their bit counts: a bit counts one, and the
/// binary digits of the rest are weights.
struct Weight {
    word: usize,
    members: u64,
    exponent: u32,
}

/// Lists are in ascending order of tag count, which makes the inner loops predictable.
impl Counter<'_> {
    /// Adds to the count of each member the items of the list that intersect it, times `sign`.
    fn add(&mut self, list: &[Member], sign: Wrapping<u32>) {
        if let [member] = list {
            self.counts[member.set as usize] += Wrapping(member.items) * sign;
            return;
        }
        let tags = list.iter().map(|member| u64::from(member.len)).sum();
        let members = list.len() as u64;
        let whole = cost_of_comparing(members, tags);
        let splitting = cost_of_splitting(tags);
        let least = splitting + cost_of_comparing(1, 0) * (tags - members);
        if !(self.is_cheaper)(least, whole) {
            return self.compare(list, sign);
        }
        let tallied = self.tally(list);
        let tallies = tallied.iter().map(|&tag| &self.tallies[tag as usize]);
        let sublists =
            tallies.map(|tally| cost_of_comparing(tally.members.into(), tally.tags.into()));
        let is_cheaper = (self.is_cheaper)(splitting + sublists.sum::<u64>(), whole);
        if is_cheaper {
            self.split(list, &tallied, sign);
        } else {
            self.clear_tallies(&tallied);
            self.compare(list, sign);
        }
    }

    /// Fills the tallies and returns their tags.
    fn tally(&mut self, list: &[Member]) -> Vec<u32> {
        let mut tallied = Vec::new();
        for member in list {
            for (&tag, before) in member.tags(self.tags).iter().zip(0..) {
                let tally = &mut self.tallies[tag as usize];
                if tally.items == 0 {
                    tallied.push(tag);
                }
                tally.items += member.items;
                tally.members += u32::from(before > 0);
                tally.tags += before;
            }
        }
        tallied
    }

    fn clear_tallies(&mut self, tallied: &[u32]) {
        for &tag in tallied {
            self.tallies[tag as usize] = Tally::default();
        }
    }

    /// Adds the carriers of each tag of each member, and subtracts those with an earlier common tag.
    fn split(&mut self, list: &[Member], tallied: &[u32], sign: Wrapping<u32>) {
        let mut end = 0;
        let mut ends = Vec::with_capacity(tallied.len());
        for &tag in tallied {
            let tally = &mut self.tallies[tag as usize];
            (tally.next, end) = (end, end + tally.members);
            ends.push(end);
        }
        let mut sublists = vec![Member::default(); end as usize];
        let mut longer = list;
        // All first tags, then all second tags: each sublist is in order of tag count.
        for before in 0.. {
            longer = &longer[longer.partition_point(|member| member.len <= before)..];
            if longer.is_empty() {
                break;
            }
            for member in longer {
                let tag = self.tags[(member.start + before) as usize];
                let tally = &mut self.tallies[tag as usize];
                self.counts[member.set as usize] += Wrapping(tally.items) * sign;
                if before > 0 {
                    sublists[tally.next as usize] = Member {
                        len: before,
                        ..*member
                    };
                    tally.next += 1;
                }
            }
        }
        self.clear_tallies(tallied);
        let mut start = 0;
        for end in ends {
            let part = start..end as usize;
            start = part.end;
            if !part.is_empty() {
                self.add(&sublists[part], -sign);
            }
        }
    }

    /// Like [`add`](Self::add), comparing each member with each other.
    fn compare(&mut self, list: &[Member], sign: Wrapping<u32>) {
        let alone = list.partition_point(|member| member.len == 1);
        match list[alone..].len().div_ceil(64) {
            0..=1 => self.compare_by::<2>(list, sign),
            2 => self.compare_by::<3>(list, sign),
            3 => self.compare_by::<4>(list, sign),
            4 => self.compare_by::<5>(list, sign),
            5..=6 => self.compare_by::<7>(list, sign),
            _ => self.compare_by::<{ 1 + WORDS }>(list, sign),
        }
    }

    /// A row has one word with the number of items that have only this tag, and `R - 1` words with the
    /// bits of the other members that carry it. Each round assigns bits to as many members as fit.
    fn compare_by<const R: usize>(&mut self, list: &[Member], sign: Wrapping<u32>) {
        let words = self.tallies.len() * R;
        if self.rows.len() < words {
            self.rows.resize(words, 0);
        }
        let rows = self.rows.as_chunks_mut::<R>().0;
        let mut remaining = list;
        while !remaining.is_empty() {
            let mut bits = 0;
            let mut assigned = 0;
            for member in remaining {
                let tags = member.tags(self.tags);
                if let [tag] = tags {
                    rows[*tag as usize][0] += u64::from(member.items);
                } else if bits < 64 * (R - 1) {
                    for &tag in tags {
                        rows[tag as usize][1 + bits / 64] |= 1 << (bits % 64);
                    }
                    add_weights(&mut self.weights, bits, member.items - 1);
                    bits += 1;
                } else {
                    break;
                }
                assigned += 1;
            }
            for member in list {
                let mut found = [0; R];
                for &tag in member.tags(self.tags) {
                    let row = &rows[tag as usize];
                    found[0] += row[0];
                    for word in 1..R {
                        found[word] |= row[word];
                    }
                }
                let single = index32(to_index(found[0]));
                let bits = found[1..].iter().map(|word| word.count_ones());
                let more = self.weights.iter().map(|weight| {
                    let members = found[weight.word] & weight.members;
                    members.count_ones() << weight.exponent
                });
                let items = single + bits.sum::<u32>() + more.sum::<u32>();
                self.counts[member.set as usize] += Wrapping(items) * sign;
            }
            self.weights.clear();
            let (done, rest) = remaining.split_at(assigned);
            for member in done {
                for &tag in member.tags(self.tags) {
                    rows[tag as usize] = [0; R];
                }
            }
            remaining = rest;
        }
    }
}

/// Makes a bit count for `more` items more.
fn add_weights(weights: &mut Vec<Weight>, bit: usize, mut more: u32) {
    let (word, bit) = (1 + bit / 64, 1 << (bit % 64));
    while more > 0 {
        let exponent = more.trailing_zeros();
        more &= more - 1;
        let mut known = weights.iter_mut().rev();
        match known.find(|weight| (weight.word, weight.exponent) == (word, exponent)) {
            Some(weight) => weight.members |= bit,
            None => weights.push(Weight {
                word,
                members: bit,
                exponent,
            }),
        }
    }
}

/// The most words of bits per row.
const WORDS: usize = 8;

/// Estimates the cost of comparing, in instructions.
fn cost_of_comparing(members: u64, tags: u64) -> u64 {
    let words = members.div_ceil(64);
    let rounds = words.div_ceil(WORDS as u64);
    let words = words.min(WORDS as u64);
    rounds * (members * (20 + 7 * words) + tags * (9 + words))
}

/// Estimates the cost of splitting, in instructions.
fn cost_of_splitting(tags: u64) -> u64 {
    tags * 45
}

#[cfg(test)]
mod tests {
    use cupel_conformance::testing::Random;

    use super::*;
    use crate::ContextItem;
    use crate::scorer::Among;

    /// Checks splitting only, comparing only and the cheaper of both against a comparison of all pairs.
    fn check(batch: &[Vec<u32>]) {
        let item = |tags: &Vec<u32>| {
            let tags = tags.iter().map(ToString::to_string).collect();
            ContextItem::builder("x", 1).tags(tags).build().unwrap()
        };
        let items: Vec<ContextItem> = batch.iter().map(item).collect();
        let sets = TagSets::new(&items, TagSets::LIMIT, Among::All).unwrap();
        let choices: [fn(u64, u64) -> bool; 3] =
            [|_, _| true, |_, _| false, |parts, whole| parts < whole];
        for is_cheaper in choices {
            let counts = count(&sets, is_cheaper);
            for (tags, set) in batch.iter().zip(&sets.of_item) {
                let intersects = |other: &&Vec<u32>| tags.iter().any(|tag| other.contains(tag));
                let expected = batch.iter().filter(intersects).count();
                assert_eq!(
                    counts[*set as usize] as usize, expected,
                    "{tags:?} of {batch:?}"
                );
            }
        }
    }

    #[test]
    fn costs_are_those_of_the_words_of_a_row() {
        // Two words per row: 34 instructions per member and 11 per tag.
        assert_eq!(cost_of_comparing(100, 10), 3_510);
        // 16 words: two rounds of eight, with 76 instructions per member and 17 per tag.
        assert_eq!(cost_of_comparing(1_000, 10), 152_340);
        assert_eq!(cost_of_splitting(10), 450);
    }

    // proves: FREQ-4
    #[test]
    fn counts_equal_those_of_all_pairs() {
        let mut random = Random::new(1);
        let mut below = |bound: u32| u32::try_from(random.below(bound as usize)).unwrap();
        for case in 0..200 {
            let (vocabulary, most) = (1 + below(90), 1 + below(12));
            // Rows of one, two, four and eight words, and several rounds.
            let size = [20, 90, 170, 300, 600, 1_100][case % 6];
            let batch = (0..=below(size)).map(|_| {
                let tags = 0..below(most + 1);
                tags.map(|_| below(vocabulary).min(below(vocabulary)))
                    .collect()
            });
            check(&batch.collect::<Vec<_>>());
        }
    }
}
