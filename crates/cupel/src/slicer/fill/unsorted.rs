//! One budget, for a list in any order, without sorting all of it.
//!
//! A selection by weighted partition, as for a weighted median (Balas and Zemel 1980), with bins instead
//! of a pivot: add up the tokens per bin of keys, keep the bins that fit as a whole, and sort only the
//! first that does not. Then drop what no longer fits, and begin again with the rest. A target of 10,
//! items in the form `key:tokens`, best key first, two bins:
//!
//! ```text
//! 9:4 2:7 7:3 1:2 3:5 8:2   bin 9 to 6: 9 tokens, kept as a whole; bin 5 to 1: 14, does not fit
//! 3:5 2:7 1:2               sorted: 1 token is left, none of them fits
//! ```
//!
//! The plain twin sorts the whole list twice, by score and by key: `a_list_need_not_be_sorted` compares
//! both. A run over 10,000 items takes 2.1 to 2.3 times as long that way, because a comparison sort
//! mispredicts its branches.

use std::cmp::Ordering;

use crate::order::{descending, descending_key, to_index};
use crate::{ContextBudget, ScoredRef};

/// Returns the kept indices of a list in input order, or `None` if an item has a negative token
/// count, which could free room for an item before it.
pub(in crate::slicer) fn select_unsorted(
    candidates: &[ScoredRef<'_>],
    budget: &ContextBudget,
    key: impl Fn(&ScoredRef<'_>) -> f64,
) -> Option<Vec<usize>> {
    let mut filling = Filling {
        candidates,
        room: budget.target_tokens(),
        kept: Vec::new(),
    };
    if filling.room <= 0 {
        return Some(filling.kept);
    }
    let mut waiting = Vec::with_capacity(candidates.len());
    for (index, scored) in candidates.iter().enumerate() {
        match scored.item.tokens() {
            ..0 => return None,
            0 => filling.kept.push(index),
            tokens if tokens <= filling.room => waiting.push(Waiting {
                key: descending_key(key(scored)),
                index,
            }),
            // An item beyond the whole target never fits.
            _ => {}
        }
    }
    filling.fill(waiting);
    Some(filling.kept)
}

/// An item that may still be kept. The least key is taken first. Its tokens and its score stay with the
/// candidate: first use of memory costs more than the work on it.
#[derive(Clone, Copy)]
struct Waiting {
    key: u64,
    /// Its index in the list.
    index: usize,
}

struct Filling<'l, 'a> {
    candidates: &'l [ScoredRef<'a>],
    /// The tokens left of the target.
    room: i64,
    kept: Vec<usize>,
}

impl Filling<'_, '_> {
    fn tokens(&self, item: &Waiting) -> i64 {
        self.candidates[item.index].item.tokens()
    }

    /// Keeps the items that a walk through the list in order keeps.
    fn fill(&mut self, mut waiting: Vec<Waiting>) {
        /// Up to this length a sort costs less than the bins.
        const SORTED: usize = 64;
        /// 2,048 sums of 16 bytes fill a first-level cache.
        const MOST_BIN_BITS: u32 = 11;
        let keys = || waiting.iter().map(|item| item.key);
        let least = keys().min().unwrap_or(0);
        let range = keys().max().unwrap_or(0) - least;
        if waiting.len() <= SORTED || range == 0 {
            return self.fill_sorted(waiting);
        }
        // About one item per bin if keys are uniform. If most share a bin because of an outlier, that
        // bin has at most a 64th of the range, and the next level spreads it.
        let bin_bits = waiting.len().ilog2().min(MOST_BIN_BITS);
        let width = (u64::BITS - range.leading_zeros()).saturating_sub(bin_bits);
        let bin = |item: &Waiting| to_index((item.key - least) >> width);
        let mut tokens = vec![0_i128; to_index(range >> width) + 1];
        for item in &waiting {
            tokens[bin(item)] += i128::from(self.tokens(item));
        }
        let mut whole = 0;
        while let Some(tokens) = tokens.get(whole)
            && let Some(left) = i128::from(self.room).checked_sub(*tokens)
            && let Ok(left @ 0..) = i64::try_from(left)
        {
            self.room = left;
            whole += 1;
        }
        let mut boundary = Vec::new();
        for item in &waiting {
            match bin(item).cmp(&whole) {
                Ordering::Less => self.kept.push(item.index),
                Ordering::Equal => boundary.push(*item),
                Ordering::Greater => {}
            }
        }
        self.fill(boundary);
        let before = waiting.len();
        waiting.retain(|item| bin(item) > whole && self.tokens(item) <= self.room);
        if waiting.len() <= before / 2 {
            self.fill(waiting);
        } else {
            // Most of the rest still fits. It could do so after every bin, and a sort costs less than
            // as many rounds.
            self.fill_sorted(waiting);
        }
    }

    /// Keeps the same items by sorting the list: by key, ties by rank, which is by score and then by
    /// position.
    fn fill_sorted(&mut self, mut waiting: Vec<Waiting>) {
        let score = |item: &Waiting| self.candidates[item.index].score;
        waiting.sort_unstable_by(|a, b| {
            let by_score = || descending(score(a), score(b));
            let by_key = a.key.cmp(&b.key).then_with(by_score);
            by_key.then(a.index.cmp(&b.index))
        });
        for item in waiting {
            let tokens = self.tokens(&item);
            if tokens <= self.room {
                self.room -= tokens;
                self.kept.push(item.index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cupel_conformance::testing::Random;

    use crate::order::descending;
    use crate::{
        ContextBudget, ContextItem, DensitySlice, GreedySlice, RankSlice, ScoredRef, Slicer,
    };

    /// Chooses from the list as it is and from the list sorted by score, for several budgets.
    fn check(slicer: &dyn Slicer, list: &[(i64, f64)]) {
        let item = |tokens: i64| ContextItem::builder("x", tokens).build().unwrap();
        let items: Vec<ContextItem> = list.iter().map(|&(tokens, _)| item(tokens)).collect();
        let unsorted = items.iter().zip(list).enumerate();
        let unsorted = unsorted.map(|(at, (item, &(_, score)))| ScoredRef::new(item, score, at));
        let unsorted: Vec<ScoredRef<'_>> = unsorted.collect();
        let mut ranked = unsorted.clone();
        ranked.sort_by(|a, b| descending(a.score, b.score));

        let total = list.iter().map(|&(tokens, _)| tokens);
        let total = total.fold(0, i64::saturating_add);
        let largest = list.iter().map(|&(tokens, _)| tokens).max().unwrap_or(0);
        for target in [
            0,
            1,
            30,
            largest,
            total / 50,
            total / 7,
            total / 2,
            total - 1,
            total,
        ] {
            let budget = ContextBudget::with_target(target.max(0), target.max(0)).unwrap();
            let mut kept = slicer.select_unsorted(&unsorted, &budget).unwrap();
            kept.sort_unstable();
            let selection = slicer.select(&ranked, &budget).unwrap();
            let selected = selection.kept().iter().map(|&rank| ranked[rank].position);
            let mut selected: Vec<usize> = selected.collect();
            selected.sort_unstable();
            assert_eq!(kept, selected, "{target} of {total} tokens");
        }
    }

    // proves: GREEDY-3
    #[test]
    fn a_list_need_not_be_sorted() {
        let mut random = Random::new(1);
        let mut random = || u32::try_from(random.below(1 << 28)).unwrap();
        let tokens: [fn(u32) -> i64; 5] = [
            |random| i64::from(random % 1_500),
            |random| i64::from(random % 3 + 20),
            |random| 1 << (random % 32),
            |random| i64::MAX >> (random % 63),
            |_| 100,
        ];
        let scores: [fn(u32) -> f64; 6] = [
            |random| f64::from(random) / 1e6,
            |random| f64::from(random % 5) / 5.0,
            |random| f64::from(random % 3) - 1.0,
            |random| 2.0_f64.powf(f64::from(random % 2_000) - 1_000.0),
            |random| [f64::NAN, f64::INFINITY, -0.0, 0.0, 1.0, f64::MAX][random as usize % 6],
            |_| 0.5,
        ];
        // Every second item almost fits.
        let almost = (0..4_000).map(|at| match at % 2 {
            0 => (1, f64::from(9_000 - at)),
            _ => (
                100_000 - i64::from(at),
                f64::from((9_000 - at) * (100_000 - at)),
            ),
        });
        let check = |list: &[(i64, f64)]| {
            check(&GreedySlice, list);
            check(&RankSlice, list);
            for exponent in [0.0, 0.3, 1.0, 2.0] {
                check(&DensitySlice::new(exponent).unwrap(), list);
            }
        };
        check(&almost.collect::<Vec<_>>());
        // Scores of all magnitudes.
        let far =
            [1023, 1007, 975, 911, 783, 527, 15, -1009].map(|exponent| 2.0_f64.powi(exponent));
        let far = far.into_iter().chain([f64::MIN]).map(|score| (1, score));
        check(&far.collect::<Vec<_>>());
        for length in [0, 1, 2, 40, 300, 5_000] {
            for tokens in tokens {
                for score in scores {
                    let list = (0..length).map(|_| (tokens(random()), score(random())));
                    check(&list.collect::<Vec<_>>());
                }
            }
        }
    }
}
