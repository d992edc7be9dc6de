//! Stage 3: of items with the same content, the best stays.

use std::collections::HashMap;

use super::ledger::{Cause, Ledger};
use super::positions::Positions;
use crate::ContextItem;
use crate::order::low_bits;

/// Excludes copies and returns how many there were. Contents are compared byte by byte (DEDUP-3);
/// whoever stands for a content so far is challenged by every copy in turn, and a later copy wins
/// only with a strictly greater score (DEDUP-5).
pub(super) fn deduplicate(ledger: &mut Ledger<'_>, scoreable: &Positions) -> usize {
    let suspects = suspects(ledger.items(), scoreable);
    let losses = by_stored_hash(ledger, &suspects);
    let losses = losses.unwrap_or_else(|| by_keyed_hash(ledger, &suspects));
    for &(loser, winner) in &losses {
        ledger.exclude(loser, Cause::copy_of(winner));
    }
    losses.len()
}

/// The candidates that may have copies. Every hash has a bit, one of eight or more to a candidate; who
/// has a bit alone has no copy.
fn suspects(items: &[ContextItem], scoreable: &Positions) -> Positions {
    // The bits that were met, and those that were met again.
    let mut words = vec![[0_u64; 2]; (scoreable.len() / 8).next_power_of_two()];
    let mask = words.len() - 1;
    let place = |candidate: usize| {
        let hash = items[candidate].content_hash();
        (low_bits(hash >> 6) & mask, 1 << (hash % 64))
    };
    for candidate in scoreable.iter() {
        let (at, bit) = place(candidate);
        let [met, again] = &mut words[at];
        *again |= *met & bit;
        *met |= bit;
    }
    let mut suspects = scoreable.clone();
    suspects.retain(|candidate| {
        let (at, bit) = place(candidate);
        words[at][1] & bit != 0
    });
    suspects
}

/// Every loser with its winner, found through the hash that every item carries: an open-addressed
/// table, half empty. `None` if different contents share a hash, or too much of it: somebody may have
/// made them to.
fn by_stored_hash(ledger: &Ledger<'_>, suspects: &Positions) -> Option<Vec<(usize, usize)>> {
    let items = ledger.items();
    // The champions' positions plus one; zero is free.
    let mut slots = vec![0_u32; 2 * suspects.len().next_power_of_two()];
    let mask = slots.len() - 1;
    let mut detours = 4 * slots.len();
    let mut losses = Vec::with_capacity(items.len() / 16);
    for &taken in suspects.as_slice() {
        let candidate = taken as usize;
        let hash = items[candidate].content_hash();
        let mut at = low_bits(hash >> u32::BITS) & mask;
        loop {
            let Some(champion) = (slots[at] as usize).checked_sub(1) else {
                slots[at] = taken + 1;
                break;
            };
            if items[champion].content_hash() == hash {
                if ledger.score(candidate) > ledger.score(champion) {
                    slots[at] = taken + 1;
                    losses.push((champion, candidate));
                } else {
                    losses.push((candidate, champion));
                }
                break;
            }
            detours = detours.checked_sub(1)?;
            at = (at + 1) & mask;
        }
    }
    let are_equal = losses.chunks(ContextItem::BLOCK / 2).all(|block| {
        let pairs = block.iter().flat_map(|&(loser, winner)| [loser, winner]);
        ContextItem::read_contents_ahead(pairs.map(|candidate| &items[candidate]));
        let mut pairs = block.iter();
        pairs.all(|&(loser, winner)| items[loser].content() == items[winner].content())
    });
    are_equal.then_some(losses)
}

/// Every loser with its winner, found through a hash whose key nobody knows.
fn by_keyed_hash(ledger: &Ledger<'_>, suspects: &Positions) -> Vec<(usize, usize)> {
    let mut champions: HashMap<&str, usize> = HashMap::with_capacity(suspects.len());
    let mut losses = Vec::new();
    for candidate in suspects.iter() {
        let content = ledger.items()[candidate].content();
        let champion = champions.entry(content).or_insert(candidate);
        if *champion == candidate {
            continue;
        }
        if ledger.score(candidate) > ledger.score(*champion) {
            losses.push((std::mem::replace(champion, candidate), candidate));
        } else {
            losses.push((candidate, *champion));
        }
    }
    losses
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those that stay are the best of their content, the first of equals.
    fn check(contents: &[usize], hash: impl Fn(u64) -> u64) {
        let item = |&content: &usize| {
            let item = ContextItem::builder(content.to_string(), 1)
                .build()
                .unwrap();
            let hash = hash(item.content_hash());
            item.with_content_hash(hash)
        };
        let items: Vec<ContextItem> = contents.iter().map(item).collect();
        let scores: Vec<f64> = (0..items.len()).map(|at| (at * 7 % 5) as f64).collect();
        let mut ledger = Ledger::new(&items).unwrap();
        ledger.set_scores(scores.clone());
        let copies = deduplicate(&mut ledger, &(0..items.len()).collect());

        let mut expected = 0;
        for (at, content) in contents.iter().enumerate() {
            let same = (0..items.len()).filter(|&other| contents[other] == *content);
            let best = same.reduce(|best, at| if scores[at] > scores[best] { at } else { best });
            let survivor = ledger.survivor(at).unwrap_or(at);
            assert_eq!(Some(survivor), best, "{at} of {contents:?}");
            expected += usize::from(survivor != at);
        }
        assert_eq!(copies, expected);
    }

    // proves: DEDUP-3, DEDUP-5
    #[test]
    fn contents_that_share_a_hash_are_told_apart() {
        let mut state = 1_usize;
        let mut below = |bound: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) % (1 << 32);
            (state >> 8) % bound
        };
        for length in [0, 1, 2, 3, 20, 300] {
            for distinct in [1, 2, length / 2 + 1, 10 * length + 1] {
                let contents: Vec<usize> = (0..length).map(|_| below(distinct)).collect();
                check(&contents, |hash| hash);
                check(&contents, |_| 0);
                check(&contents, |hash| hash % 3);
                check(&contents, |hash| hash << 60);
                check(&contents, |hash| hash % (1 << 32));
            }
        }
    }
}
