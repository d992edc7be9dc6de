//! How many items each distinct set meets: those whose sets have a tag in common with it.
//!
//! Sets that meet have a first tag in common. So a set meets, for each of its tags, all carriers
//! of the tag but those that it has met in an earlier one. How many these are is the same question
//! once more, about the carriers only, and about the tags before that one only.
//!
//! In this way a list of sets is split into one part for every tag, until it is cheaper to compare
//! each with all others, which is done with a bit for each.

use std::num::Wrapping;

use super::sets::TagSets;
use crate::order::low_bits;
use crate::scorer::numbers::index;

/// A distinct set, of which only the first tags are looked at.
#[derive(Clone, Copy, Default)]
struct Member {
    set: u32,
    /// How many items carry exactly this set.
    items: u32,
    /// Where its tags start.
    start: u32,
    /// How many of them are looked at, at least one.
    len: u32,
}

impl Member {
    fn tags(self, tags: &[u32]) -> &[u32] {
        &tags[self.start as usize..][..self.len as usize]
    }

    /// One for each of its items if they are few.
    fn bits(&self) -> usize {
        if self.items <= 4 {
            self.items as usize
        } else {
            1
        }
    }
}

/// For every distinct set, the items it meets, its own included. Splits a list where that
/// `is_cheaper`, by an estimate of what splitting and comparing cost.
pub(super) fn count(sets: &TagSets, is_cheaper: fn(u64, u64) -> bool) -> Vec<u32> {
    let all = sets.distinct.iter().zip(0..).map(|(set, number)| Member {
        set: number,
        items: set.items,
        start: set.start,
        len: set.len,
    });
    let mut list: Vec<Member> = all.filter(|member| member.len > 0).collect();
    list.sort_unstable_by_key(|member| member.len);
    let mut count = Count {
        tags: &sets.tags,
        meetings: vec![Wrapping(0); sets.distinct.len()],
        tallies: vec![Tally::default(); sets.tag_count],
        rows: Vec::new(),
        weights: Vec::new(),
        is_cheaper,
    };
    if !list.is_empty() {
        count.list(&list, Wrapping(1));
    }
    count.meetings.into_iter().map(|items| items.0).collect()
}

struct Count<'a> {
    tags: &'a [u32],
    /// By set, modulo 2^32: sums may leave the range on the way.
    meetings: Vec<Wrapping<u32>>,
    /// By tag; all zero but while a list is split.
    tallies: Vec<Tally>,
    /// By tag, some words each; all zero but while a list is compared.
    rows: Vec<u64>,
    weights: Vec<Weight>,
    is_cheaper: fn(u64, u64) -> bool,
}

/// What a list has to do with a tag.
#[derive(Clone, Copy, Default)]
struct Tally {
    /// The items of the members that carry the tag.
    items: u32,
    /// The members that carry the tag after another one: the size of its part.
    members: u32,
    /// The tags before it in all of these.
    tags: u32,
    /// Where the next member of the part goes.
    next: u32,
}

/// The members in a word that stand for `2^exponent` items more than their bits count for.
struct Weight {
    word: usize,
    members: u64,
    exponent: u32,
}

/// Lists are by ascending number of tags that are looked at: so the processor foresees every loop over them.
impl Count<'_> {
    /// Adds to the meetings of every member those with the list.
    fn list(&mut self, list: &[Member], sign: Wrapping<u32>) {
        if let [member] = list {
            self.meetings[member.set as usize] += Wrapping(member.items) * sign;
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
        let parts = tallies.map(|tally| cost_of_comparing(tally.members.into(), tally.tags.into()));
        let is_cheaper = (self.is_cheaper)(splitting + parts.sum::<u64>(), whole);
        if is_cheaper {
            self.split(list, &tallied, sign);
        } else {
            self.forget(&tallied);
            self.compare(list, sign);
        }
    }

    /// Fills the tallies, and tells which.
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

    fn forget(&mut self, tallied: &[u32]) {
        for &tag in tallied {
            self.tallies[tag as usize] = Tally::default();
        }
    }

    /// Every member meets the carriers of each of its tags, but for those it has met before.
    fn split(&mut self, list: &[Member], tallied: &[u32], sign: Wrapping<u32>) {
        let mut end = 0;
        let mut ends = Vec::with_capacity(tallied.len());
        for &tag in tallied {
            let tally = &mut self.tallies[tag as usize];
            (tally.next, end) = (end, end + tally.members);
            ends.push(end);
        }
        let mut parts = vec![Member::default(); end as usize];
        let mut longer = list;
        // All first tags, then all second tags: so each part is in order.
        for before in 0.. {
            longer = &longer[longer.partition_point(|member| member.len <= before)..];
            if longer.is_empty() {
                break;
            }
            for member in longer {
                let tag = self.tags[(member.start + before) as usize];
                let tally = &mut self.tallies[tag as usize];
                self.meetings[member.set as usize] += Wrapping(tally.items) * sign;
                if before > 0 {
                    parts[tally.next as usize] = Member {
                        len: before,
                        ..*member
                    };
                    tally.next += 1;
                }
            }
        }
        self.forget(tallied);
        let mut start = 0;
        for end in ends {
            let part = start..end as usize;
            start = part.end;
            if !part.is_empty() {
                self.list(&parts[part], -sign);
            }
        }
    }

    /// Adds to the meetings of every member those with the list, each with each.
    fn compare(&mut self, list: &[Member], sign: Wrapping<u32>) {
        let alone = list.partition_point(|member| member.len == 1);
        let bits: usize = list[alone..].iter().map(Member::bits).sum();
        match bits.div_ceil(64) {
            0..=1 => self.compare_by::<2>(list, sign),
            2 => self.compare_by::<3>(list, sign),
            3 => self.compare_by::<4>(list, sign),
            4 => self.compare_by::<5>(list, sign),
            5..=6 => self.compare_by::<7>(list, sign),
            _ => self.compare_by::<{ 1 + WORDS }>(list, sign),
        }
    }

    /// A row has a number, the items of the members that have this tag only, and `R - 1` words with
    /// the bits of the other members that carry it. There are as many rounds as it takes to give
    /// everybody bits.
    fn compare_by<const R: usize>(&mut self, list: &[Member], sign: Wrapping<u32>) {
        let words = self.tallies.len() * R;
        if self.rows.len() < words {
            self.rows.resize(words, 0);
        }
        let rows = self.rows.as_chunks_mut::<R>().0;
        let mut waiting = list;
        while !waiting.is_empty() {
            let mut bits = 0;
            let mut round = 0;
            for member in waiting {
                let tags = member.tags(self.tags);
                if let [tag] = tags {
                    rows[*tag as usize][0] += u64::from(member.items);
                } else if bits + member.bits() <= 64 * (R - 1) {
                    for bit in bits..bits + member.bits() {
                        for &tag in tags {
                            rows[tag as usize][1 + bit / 64] |= 1 << (bit % 64);
                        }
                    }
                    weigh(&mut self.weights, bits, member.items - index(member.bits()));
                    bits += member.bits();
                } else {
                    break;
                }
                round += 1;
            }
            for member in list {
                let mut met = [0; R];
                for &tag in member.tags(self.tags) {
                    let row = &rows[tag as usize];
                    met[0] += row[0];
                    for word in 1..R {
                        met[word] |= row[word];
                    }
                }
                let lone = index(low_bits(met[0]));
                let bits = met[1..].iter().map(|word| word.count_ones());
                let more = self.weights.iter().map(|weight| {
                    let members = met[weight.word] & weight.members;
                    members.count_ones() << weight.exponent
                });
                let items = lone + bits.sum::<u32>() + more.sum::<u32>();
                self.meetings[member.set as usize] += Wrapping(items) * sign;
            }
            self.weights.clear();
            let (done, rest) = waiting.split_at(round);
            for member in done {
                for &tag in member.tags(self.tags) {
                    rows[tag as usize] = [0; R];
                }
            }
            waiting = rest;
        }
    }
}

/// The bit counts for so many items more.
fn weigh(weights: &mut Vec<Weight>, bit: usize, mut more: u32) {
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

/// So many words hold the bits of the members that are compared in one round.
const WORDS: usize = 8;

/// The unit of costs is about an instruction.
fn cost_of_comparing(members: u64, tags: u64) -> u64 {
    let words = members.div_ceil(64);
    let rounds = words.div_ceil(WORDS as u64);
    let words = words.min(WORDS as u64);
    rounds * (members * (20 + 7 * words) + tags * (9 + words))
}

fn cost_of_splitting(tags: u64) -> u64 {
    tags * 45
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ContextItem;

    /// Splitting everything, comparing everything and choosing come to the same.
    fn check(batch: &[Vec<u32>]) {
        let item = |tags: &Vec<u32>| {
            let tags = tags.iter().map(ToString::to_string).collect();
            ContextItem::builder("x", 1).tags(tags).build().unwrap()
        };
        let items: Vec<ContextItem> = batch.iter().map(item).collect();
        let sets = TagSets::of(&items, TagSets::LIMIT, |_| true).unwrap();
        let ways: [fn(u64, u64) -> bool; 3] =
            [|_, _| true, |_, _| false, |parts, whole| parts < whole];
        for is_cheaper in ways {
            let meetings = count(&sets, is_cheaper);
            for (tags, set) in batch.iter().zip(&sets.of_item) {
                let meets = |other: &&Vec<u32>| tags.iter().any(|tag| other.contains(tag));
                let expected = batch.iter().filter(meets).count();
                assert_eq!(
                    meetings[*set as usize] as usize, expected,
                    "{tags:?} of {batch:?}"
                );
            }
        }
    }

    // proves: FREQ-4
    #[test]
    fn splitting_and_comparing_come_to_the_same() {
        let mut state = 1_u32;
        let mut below = |bound: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % bound
        };
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
