//! One budget, for a list in any order, without sorting all of it.

use super::FillOrder;
use crate::ContextBudget;
use crate::order::{descending, descending_key, to_index};
use crate::slicer::Unsorted;

/// Returns the kept indices, or `None` if a token count that might fit has no place in 32 bits or
/// is negative.
///
/// A selection by weighted partition instead of a sort: bins of the histogram that fit as a whole are
/// kept, only the first bin that does not is sorted. Then items that no longer fit are dropped, and
/// the rest gets a new histogram, each time with more bins to sort.
pub(super) fn select(
    order: &impl FillOrder,
    list: &Unsorted<'_>,
    budget: &ContextBudget,
) -> Option<Vec<usize>> {
    let mut remaining = u64::try_from(budget.target_tokens()).unwrap_or(0);
    let mut kept = Vec::with_capacity(list.len().min(1 << 11));
    if remaining == 0 {
        return Some(kept);
    }
    let mut waiting = Vec::with_capacity(list.len());
    for (index, scored) in list.iter().enumerate() {
        let tokens = u64::try_from(scored.item.tokens()).ok()?;
        if tokens == 0 {
            kept.push(index);
        } else if tokens <= remaining {
            waiting.push(Waiting::new(order.key(&scored), index, tokens)?);
        }
    }
    let score = |item: &Waiting| list.get(item.index as usize).score;
    let in_order = |a: &Waiting, b: &Waiting| {
        let by_score = || descending(score(a), score(b));
        a.key
            .cmp(&b.key)
            .then_with(by_score)
            .then(a.index.cmp(&b.index))
    };
    let mut histogram = Histogram::new();
    let mut sorted = Vec::with_capacity(waiting.len().min(1 << 7));
    while !waiting.is_empty() {
        histogram.count(&waiting);
        let (whole_end, sorted_end) = histogram.take_whole_bins(&mut remaining);
        sorted.clear();
        for item in &waiting {
            let offset = histogram.offset(item);
            if offset < whole_end {
                kept.push(item.index as usize);
            } else if offset < sorted_end {
                sorted.push(*item);
            }
        }
        sorted.sort_unstable_by(in_order);
        for item in &sorted {
            if u64::from(item.tokens) <= remaining {
                kept.push(item.index as usize);
                remaining -= u64::from(item.tokens);
            }
        }
        waiting.retain(|item| {
            u64::from(item.tokens) <= remaining && histogram.offset(item) >= sorted_end
        });
    }
    Some(kept)
}

/// An item that may still be kept.
#[derive(Clone, Copy)]
struct Waiting {
    /// The least is taken first.
    key: u64,
    /// Its index in the list.
    index: u32,
    tokens: u32,
}

impl Waiting {
    /// Returns `None` if a number does not fit 32 bits.
    fn new(key: f64, index: usize, tokens: u64) -> Option<Self> {
        Some(Self {
            key: descending_key(key),
            index: u32::try_from(index).ok()?,
            tokens: u32::try_from(tokens).ok()?,
        })
    }
}

/// A histogram of tokens by key, first bin first. Keys far behind the first are not in it.
struct Histogram {
    least: u64,
    /// The width of a bin, as a power of two.
    width: u32,
    /// The tokens of each bin.
    tokens: Vec<u64>,
    /// The greatest width of all bins together, as a power of two.
    span: u32,
    /// How many bins are sorted.
    sorted: usize,
}

impl Histogram {
    /// Spans 16 binades at first: keys are bits of floating-point numbers.
    fn new() -> Self {
        Self {
            least: 0,
            width: 0,
            tokens: Vec::new(),
            span: f64::MANTISSA_DIGITS - 1 + 4,
            sorted: 1,
        }
    }

    /// Counts the tokens of a list, each time over twice the span.
    fn count(&mut self, waiting: &[Waiting]) {
        const MOST_BIN_BITS: u32 = 11;
        let keys = || waiting.iter().map(|item| item.key);
        self.least = keys().min().unwrap_or(0);
        let range = keys().max().unwrap_or(0) - self.least;
        let range = range.min((1 << self.span) - 1);
        self.span = (self.span + 1).min(u64::BITS - 1);
        let bits = u64::BITS - range.leading_zeros();
        self.width = bits.saturating_sub(waiting.len().ilog2().min(MOST_BIN_BITS));
        let beyond = (range >> self.width) + 1;
        self.tokens.clear();
        self.tokens.resize(to_index(beyond) + 1, 0);
        for item in waiting {
            let bin = (self.offset(item) >> self.width).min(beyond);
            self.tokens[to_index(bin)] += u64::from(item.tokens);
        }
        self.tokens.pop();
    }

    fn offset(&self, item: &Waiting) -> u64 {
        item.key - self.least
    }

    /// Takes the bins that fit as a whole out of the budget. Returns the offsets at which they end, and
    /// at which the bins to sort end; four times as many bins are sorted the next time.
    fn take_whole_bins(&mut self, remaining: &mut u64) -> (u64, u64) {
        let mut whole = 0;
        while let Some(tokens) = self
            .tokens
            .get(whole)
            .filter(|tokens| **tokens <= *remaining)
        {
            *remaining -= tokens;
            whole += 1;
        }
        let sorted = whole.saturating_add(self.sorted).min(self.tokens.len());
        self.sorted = self.sorted.saturating_mul(4);
        let offset = |bins: usize| (bins as u64) << self.width;
        (offset(whole), offset(sorted))
    }
}

#[cfg(test)]
mod tests {
    use cupel_conformance::testing::Random;

    use super::*;
    use crate::{ContextItem, DensitySlice, GreedySlice, RankSlice, ScoredRef, Slicer};

    /// Chooses from the list as it is and from the list sorted by score, for several budgets.
    fn check(slicer: &dyn Slicer, list: &[(i64, f64)]) {
        let item = |tokens: i64| ContextItem::builder("x", tokens).build().unwrap();
        let items: Vec<ContextItem> = list.iter().map(|&(tokens, _)| item(tokens)).collect();
        let scores: Vec<f64> = list.iter().map(|&(_, score)| score).collect();
        let positions: Vec<u32> = (0..).take(list.len()).collect();
        let unsorted = Unsorted::new(&items, &scores, &positions);
        let mut ranking = positions.clone();
        ranking.sort_by(|&a, &b| descending(scores[a as usize], scores[b as usize]));
        let ranked = ranking.iter().map(|&at| unsorted.get(at as usize));
        let ranked: Vec<ScoredRef<'_>> = ranked.collect();

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
            let kept = slicer
                .builtin()
                .and_then(|builtin| builtin.select_unsorted(&unsorted, &budget));
            let has_giants = |&(tokens, _): &(i64, f64)| (1 << 32..=target).contains(&tokens);
            assert_eq!(kept.is_none(), list.iter().any(has_giants));
            let Some(mut kept) = kept else { continue };
            kept.sort_unstable();
            let selection = slicer.select(&ranked, &budget).unwrap();
            let selected = selection.kept().iter().map(|&rank| ranking[rank] as usize);
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
        // Each score is just beyond the span of the histogram that has the one before.
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
