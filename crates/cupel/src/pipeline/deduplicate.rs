//! Stage 3, Deduplicate: of items with equal content, the best stays.

use super::ledger::{Cause, Ledger};
use super::positions::Positions;
use crate::fast::bloom::RepeatFilter;
use crate::fast::interner::Interner;

/// Excludes duplicates and returns their number. Contents are compared byte by byte (DEDUP-3); a later
/// item replaces the current survivor only with a strictly greater score (DEDUP-5).
///
/// Contents `a b a a` with scores `1 3 2 2`: the second `a` beats the first (2 > 1), and the third
/// does not beat the second (2 = 2). `b` and the second `a` survive.
pub(super) fn deduplicate(ledger: &mut Ledger<'_>, scoreable: &Positions) -> usize {
    let items = ledger.items();
    let hash = |candidate: usize| items[candidate].content_hash();
    // Most contents are unique. The filter drops them by their hashes alone, so that their texts, the
    // bulk of the memory, are never read: a run over 10,000 items has 1.8 times the instructions
    // without it.
    let filter = RepeatFilter::new(scoreable.iter().map(hash));
    let mut candidates = scoreable.clone();
    candidates.retain(|candidate| filter.may_repeat(hash(candidate)));

    // Rounded up, so that false positives of the filter, which differ from process to process, do not
    // change the memory of a run.
    let capacity = candidates.len().next_power_of_two();
    let mut interner = Interner::new((2 * capacity).ilog2());
    // By content, in the order of first appearance: the best candidate so far.
    let mut survivors: Vec<usize> = Vec::with_capacity(capacity);
    let mut duplicates = 0;
    for candidate in candidates.iter() {
        // The hash is seeded per process, so an attacker cannot prepare contents that collide. If two contents
        // collide by chance, their texts are compared.
        let is_same =
            |number: usize| items[survivors[number - 1]].content() == items[candidate].content();
        let index = interner.intern([hash(candidate), 0], is_same) - 1;
        let Some(survivor) = survivors.get_mut(index) else {
            survivors.push(candidate);
            continue;
        };
        duplicates += 1;
        if ledger.score(candidate) > ledger.score(*survivor) {
            let loser = std::mem::replace(survivor, candidate);
            ledger.exclude(loser, Cause::copy_of(candidate));
        } else {
            ledger.exclude(candidate, Cause::copy_of(*survivor));
        }
    }
    duplicates
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
