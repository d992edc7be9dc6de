//! The measures of a window on questions with marked evidence: pure functions of the evidence and the
//! window.
//!
//! `docs/relevance.md` of the repository defines each measure. Evidence is a list of distinct positions of items.
//! Without evidence every measure is 1, because nothing is missing; a position that no item has is not kept.
//!
//! ```
//! use cupel_eval::recall::{items_kept, recall_at, tokens_kept};
//!
//! // The window keeps the items 0 and 2. The evidence is 0 and 1, with 30 and 50 tokens.
//! let (evidence, is_kept) = ([0, 1], [true, false, true]);
//! assert_eq!(items_kept(&evidence, &is_kept), 0.5);
//! assert_eq!(tokens_kept(&evidence, &is_kept, &[30, 50, 20], 60), 30.0 / 60.0);
//! assert_eq!(recall_at(&evidence, &[Some(0), Some(2), Some(1)], 3), 1.0);
//! ```

/// Returns the share of the evidence items that are kept.
pub fn items_kept(evidence: &[usize], is_kept: &[bool]) -> f64 {
    share(evidence, |item| is_kept.get(item) == Some(&true))
}

fn share(evidence: &[usize], counts: impl Fn(usize) -> bool) -> f64 {
    match evidence.len() {
        0 => 1.0,
        all => evidence.iter().filter(|&&item| counts(item)).count() as f64 / all as f64,
    }
}

/// Returns the kept evidence tokens over the evidence tokens that a window of `budget` tokens can hold.
/// Evidence without tokens counts as kept.
///
/// Evidence of 80 tokens cannot be kept at a budget of 60. Its share is of 60, so that 1 is always possible.
pub fn tokens_kept(evidence: &[usize], is_kept: &[bool], tokens: &[i64], budget: i64) -> f64 {
    let (mut kept, mut all) = (0, 0);
    for &item in evidence {
        let tokens = i128::from(tokens.get(item).map_or(0, |&tokens| tokens.max(0)));
        all += tokens;
        if is_kept.get(item) == Some(&true) {
            kept += tokens;
        }
    }
    match all.min(i128::from(budget)) {
        ..=0 => 1.0,
        // Pinned items may exceed the budget.
        most => (kept as f64 / most as f64).min(1.0),
    }
}

/// Returns the share of the evidence items among the first `k` of the ranking. `ranks` has the rank of each item,
/// from 0; `None` for an item that is not ranked.
pub fn recall_at(evidence: &[usize], ranks: &[Option<usize>], k: usize) -> f64 {
    share(evidence, |item| {
        let rank = ranks.get(item).copied().flatten();
        rank.is_some_and(|rank| rank < k)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use cupel_conformance::testing::Random;

    use super::*;

    #[test]
    fn evidence_longer_than_the_budget_is_measured_by_the_budget() {
        let tokens = [30, 50, 20, 10];
        let is_kept = [true, false, true, true];
        let evidence = [0, 1, 2];
        assert_eq!(items_kept(&evidence, &is_kept), 2.0 / 3.0);
        assert_eq!(tokens_kept(&evidence, &is_kept, &tokens, 1_000), 0.5);
        assert_eq!(tokens_kept(&evidence, &is_kept, &tokens, 60), 50.0 / 60.0);
    }

    #[test]
    fn without_evidence_nothing_is_missing() {
        assert_eq!(items_kept(&[], &[false]), 1.0);
        assert_eq!(tokens_kept(&[], &[false], &[5], 10), 1.0);
        assert_eq!(recall_at(&[], &[None], 5), 1.0);
    }

    #[test]
    fn a_position_without_an_item_is_not_kept() {
        assert_eq!(items_kept(&[0, 7], &[true]), 0.5);
        assert_eq!(recall_at(&[0, 7], &[Some(0)], 5), 0.5);
    }

    #[test]
    fn evidence_without_tokens_counts_as_kept() {
        assert_eq!(tokens_kept(&[0], &[false], &[0], 10), 1.0);
        assert_eq!(tokens_kept(&[0], &[false], &[-3], 10), 1.0);
    }

    /// An item that is not ranked, such as a duplicate, is never among the first.
    #[test]
    fn recall_counts_ranks_below_k() {
        let ranks = [Some(4), None, Some(5), Some(0)];
        assert_eq!(recall_at(&[0, 1, 2, 3], &ranks, 5), 0.5);
        assert_eq!(recall_at(&[1], &ranks, 50), 0.0);
    }

    /// The definitions over sets, written naively.
    #[test]
    #[expect(clippy::cast_possible_wrap, reason = "small numbers")]
    fn random_windows_agree_with_the_definitions_over_sets() {
        let mut random = Random::new(7);
        for _ in 0..500 {
            let items = 1 + random.below(30);
            let tokens: Vec<i64> = (0..items).map(|_| 1 + random.below(40) as i64).collect();
            let is_kept: Vec<bool> = (0..items).map(|_| random.below(2) == 0).collect();
            let mut ranking: Vec<usize> = (0..items).collect();
            for at in (1..items).rev() {
                ranking.swap(at, random.below(at + 1));
            }
            let mut ranks = vec![None; items];
            for (rank, &item) in ranking.iter().enumerate() {
                ranks[item] = Some(rank);
            }
            let drawn = (0..=random.below(items)).map(|_| random.below(items));
            let evidence: BTreeSet<usize> = drawn.collect();
            let budget = 1 + random.below(300) as i64;
            let k = 1 + random.below(10);

            let kept: BTreeSet<usize> = (0..items).filter(|&item| is_kept[item]).collect();
            let first: BTreeSet<usize> = ranking.iter().copied().take(k).collect();
            let share = |of: &BTreeSet<usize>| {
                evidence.intersection(of).count() as f64 / evidence.len() as f64
            };
            let sum = |of: &mut dyn Iterator<Item = &usize>| -> i64 {
                of.map(|&item| tokens[item]).sum()
            };
            let most = budget.min(sum(&mut evidence.iter()));
            let kept_tokens = sum(&mut evidence.intersection(&kept)).min(most);
            let by_tokens = kept_tokens as f64 / most as f64;

            let evidence: Vec<usize> = evidence.iter().copied().collect();
            assert_eq!(items_kept(&evidence, &is_kept), share(&kept));
            assert_eq!(tokens_kept(&evidence, &is_kept, &tokens, budget), by_tokens);
            assert_eq!(recall_at(&evidence, &ranks, k), share(&first));
        }
    }
}
