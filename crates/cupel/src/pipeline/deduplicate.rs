//! Stage 3, Deduplicate: of items with equal content, the best stays.

use std::collections::HashMap;

use super::ledger::{Cause, Ledger};
use super::positions::Positions;
use crate::fast::bloom::RepeatFilter;
use crate::fast::interner::Interner;

/// Excludes duplicates and returns their number. Contents are compared byte by byte (DEDUP-3); a later
/// item replaces the current survivor only with a strictly greater score (DEDUP-5).
pub(super) fn deduplicate(ledger: &mut Ledger<'_>, scoreable: &Positions) -> usize {
    let items = ledger.items();
    let hash = |candidate: usize| items[candidate].content_hash();
    let filter = RepeatFilter::new(scoreable.iter().map(hash));
    let mut candidates = scoreable.clone();
    candidates.retain(|candidate| filter.may_repeat(hash(candidate)));

    let mut duplicates = by_stored_hash(ledger, &candidates);
    let is_equal =
        |&(loser, winner): &(usize, usize)| items[loser].content() == items[winner].content();
    if !duplicates.iter().all(is_equal) {
        // Different contents share a stored hash, perhaps on purpose.
        duplicates = by_content(ledger, &candidates);
    }
    for &(loser, winner) in &duplicates {
        ledger.exclude(loser, Cause::copy_of(winner));
    }
    duplicates.len()
}

/// Returns each loser with its winner, by the hash that every item stores.
fn by_stored_hash(ledger: &Ledger<'_>, candidates: &Positions) -> Vec<(usize, usize)> {
    let slots = 2 * candidates.len().next_power_of_two();
    let mut interner = Interner::new(slots.ilog2());
    contest(ledger, candidates, |candidate| {
        let hash = ledger.items()[candidate].content_hash();
        interner.intern([hash, 0], |_| true) - 1
    })
}

/// Returns each loser with its winner, by the contents themselves; the map's hash is keyed `SipHash`.
fn by_content(ledger: &Ledger<'_>, candidates: &Positions) -> Vec<(usize, usize)> {
    let mut numbers: HashMap<&str, usize> = HashMap::with_capacity(candidates.len());
    contest(ledger, candidates, |candidate| {
        let next = numbers.len();
        *numbers
            .entry(ledger.items()[candidate].content())
            .or_insert(next)
    })
}

/// Returns each loser with its winner. `number` counts contents from 0 in the order of their first
/// appearance.
fn contest(
    ledger: &Ledger<'_>,
    candidates: &Positions,
    mut number: impl FnMut(usize) -> usize,
) -> Vec<(usize, usize)> {
    // Rounded up, so that false positives of the filter, which differ from process to process, do not
    // change the memory of a run.
    let capacity = candidates.len().next_power_of_two();
    let mut survivors = Vec::with_capacity(capacity);
    let mut losses = Vec::with_capacity(capacity / 2);
    for candidate in candidates.iter() {
        let number = number(candidate);
        let Some(survivor) = survivors.get_mut(number) else {
            survivors.push(candidate);
            continue;
        };
        if ledger.score(candidate) > ledger.score(*survivor) {
            losses.push((std::mem::replace(survivor, candidate), candidate));
        } else {
            losses.push((candidate, *survivor));
        }
    }
    losses
}

#[cfg(test)]
mod tests {
    use cupel_conformance::testing::Random;

    use super::*;
    use crate::ContextItem;

    /// Checks that the best item of each content survives, and the first of equals.
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
    fn contents_with_equal_hashes_are_distinguished() {
        let mut random = Random::new(1);
        for length in [0, 1, 2, 3, 20, 300] {
            for distinct in [1, 2, length / 2 + 1, 10 * length + 1] {
                let contents: Vec<usize> = (0..length).map(|_| random.below(distinct)).collect();
                check(&contents, |hash| hash);
                check(&contents, |_| 0);
                check(&contents, |hash| hash % 3);
                check(&contents, |hash| hash << 60);
                check(&contents, |hash| hash % (1 << 32));
            }
        }
    }
}
