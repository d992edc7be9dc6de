//! [`GreedySlice`].

use std::ops::RangeInclusive;

use super::{PreparedChoice, Selection, Slicer, TargetSweep, Unsorted, slice_by_selection};
use crate::fast::parallel;
use crate::fast::radix::RadixKey;
use crate::order::{Ranked, descending, descending_key, low_bits};
use crate::{ContextBudget, ContextItem, CupelError, ScoredItem, ScoredRef};

/// Fills the budget by score per token, best first.
///
/// Equal densities keep their rank order, so the same input always yields the same choice
/// (GREEDY-3). An item that does not fit is passed over and smaller ones behind it still get
/// their chance. Items of zero tokens are free and always kept while the target is
/// positive (GREEDY-5).
///
/// ```
/// use cupel::{ContextBudget, ContextItem, GreedySlice, ScoredItem, Slicer};
///
/// let scored = |content: &str, tokens, score| -> Result<_, cupel::CupelError> {
///     Ok(ScoredItem { item: ContextItem::builder(content, tokens).build()?, score })
/// };
/// let sorted = [scored("long", 90, 0.9)?, scored("short", 20, 0.8)?];
/// let kept = GreedySlice.slice(&sorted, &ContextBudget::with_target(100, 100)?)?;
/// assert_eq!(kept[0].content(), "short");
/// assert_eq!(kept.len(), 1);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GreedySlice;

impl Slicer for GreedySlice {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        slice_by_selection(self, sorted, budget)
    }

    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        let mut remaining = i128::from(budget.target_tokens());
        let mut kept = Vec::new();
        if remaining <= 0 {
            return Ok(Selection::default());
        }
        for rank in by_density(ranked) {
            let tokens = i128::from(ranked[rank].item.tokens());
            if tokens <= remaining {
                kept.push(rank);
                remaining -= tokens;
            }
        }
        Ok(Selection::keep(kept))
    }

    /// Lays the items out in steps of density. The densest steps that fit whole are kept as they are,
    /// only the first that does not is sorted; then what no longer fits is dropped, and the rest is
    /// laid out anew, every time with more steps to be sorted.
    fn select_unsorted(&self, list: &Unsorted<'_>, budget: &ContextBudget) -> Option<Vec<usize>> {
        let mut remaining = u64::try_from(budget.target_tokens()).unwrap_or(0);
        let mut kept = Vec::with_capacity(list.positions.len().min(1 << 11));
        if remaining == 0 {
            return Some(kept);
        }
        let mut waiting = Vec::with_capacity(list.positions.len());
        for (index, scored) in list.iter().enumerate() {
            let tokens = u64::try_from(scored.item.tokens()).ok()?;
            if tokens == 0 {
                kept.push(index);
            } else if tokens <= remaining {
                waiting.push(Waiting::new(index, tokens, &scored)?);
            }
        }
        let score = |item: &Waiting| list.scored(list.positions[item.index as usize]).score;
        let in_order = |a: &Waiting, b: &Waiting| {
            let by_density = a.density.cmp(&b.density);
            let by_score = || descending(score(a), score(b));
            by_density.then_with(by_score).then(a.index.cmp(&b.index))
        };
        let mut steps = Steps::new();
        let mut looked_at = Vec::with_capacity(waiting.len().min(1 << 7));
        while !waiting.is_empty() {
            steps.lay_out(&waiting);
            let (whole, sorted) = steps.fill(&mut remaining);
            looked_at.clear();
            for item in &waiting {
                let offset = steps.offset(item);
                if offset < whole {
                    kept.push(item.index as usize);
                } else if offset < sorted {
                    looked_at.push(*item);
                }
            }
            looked_at.sort_unstable_by(in_order);
            for item in &looked_at {
                if u64::from(item.tokens) <= remaining {
                    kept.push(item.index as usize);
                    remaining -= u64::from(item.tokens);
                }
            }
            waiting
                .retain(|item| u64::from(item.tokens) <= remaining && steps.offset(item) >= sorted);
        }
        Some(kept)
    }

    /// Sorts what comes before the item; every budget is one walk up to it.
    fn prepare<'a>(&'a self, list: &Unsorted<'_>, wanted: usize) -> Option<PreparedChoice<'a>> {
        let visit = |index: usize, scored: &ScoredRef<'_>| Visit {
            density: descending_key(density(scored)),
            score: descending_key(scored.score),
            index,
        };
        let item = list.scored(list.positions[wanted]);
        let needed = item.item.tokens();
        let wanted = visit(wanted, &item);
        let mut before = Vec::new();
        for (index, scored) in list.iter().enumerate() {
            let tokens = scored.item.tokens();
            let visit = visit(index, &scored);
            if tokens < 0 {
                return None;
            }
            if visit < wanted && tokens > 0 {
                before.push(visit);
            }
        }
        parallel::sort(&mut before);
        let tokens = |visit: &Visit| list.scored(list.positions[visit.index]).item.tokens();
        let before: Vec<i64> = before.iter().map(tokens).collect();
        Some(Box::new(move |budget| {
            let mut remaining = budget.target_tokens();
            if remaining <= 0 {
                return false;
            }
            for &tokens in &before {
                if remaining < needed {
                    return false;
                }
                if tokens <= remaining {
                    remaining -= tokens;
                }
            }
            needed <= remaining
        }))
    }

    /// Fills all targets at once. Two targets part only at an item that fits one and not the
    /// other; until then their choices are made together.
    fn sweep(&self, ranked: &[ScoredRef<'_>], targets: RangeInclusive<i64>) -> Option<TargetSweep> {
        const MOST_STEPS: usize = 1 << 21;
        let (first, last) = targets.into_inner();
        let end = last.checked_add(1)?;
        let tokens = |rank: usize| ranked[rank].item.tokens();
        if first > last || (0..ranked.len()).any(|rank| tokens(rank) < 0) {
            return None;
        }
        let mut sweep = TargetSweep::new(first);
        let from = first.max(1);
        if from > last {
            return Some(sweep);
        }
        let (free, order): (Vec<usize>, Vec<usize>) = by_density(ranked)
            .into_iter()
            .partition(|&rank| tokens(rank) == 0);
        for &rank in &free {
            sweep.toggle(rank, from);
        }
        let fits = NextFit::new(order.iter().map(|&rank| tokens(rank)).collect());

        let mut chosen = Vec::new();
        let mut parted = Vec::new();
        let mut piece = Piece {
            from,
            to: end,
            spent: 0,
            next: 0,
            chosen: 0,
        };
        loop {
            let mut next = fits.first(piece.next, piece.to - 1 - piece.spent);
            while let Some(position) = next {
                let needed = piece.spent + fits.tokens[position];
                piece.next = position + 1;
                if needed > piece.from {
                    parted.push(Piece {
                        from: needed,
                        spent: needed,
                        chosen: chosen.len(),
                        ..piece
                    });
                    // Only what is smaller fits the rest.
                    piece.to = needed;
                    next = fits.first_smaller(position);
                } else {
                    piece.spent = needed;
                    sweep.toggle(order[position], piece.from);
                    chosen.push(order[position]);
                    next = fits.first(piece.next, piece.to - 1 - piece.spent);
                }
            }
            let Some(next) = parted.pop() else {
                return Some(sweep);
            };
            if sweep.step_count() > MOST_STEPS {
                return None;
            }
            piece = next;
            for rank in chosen.drain(piece.chosen..) {
                sweep.toggle(rank, piece.from);
            }
            // What it was parted by.
            let rank = order[piece.next - 1];
            sweep.toggle(rank, piece.from);
            chosen.push(rank);
        }
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::SlicerConfig, super::ConfigError> {
        Ok(super::SlicerConfig::Greedy)
    }
}

/// An item that may still be kept.
#[derive(Clone, Copy)]
struct Waiting {
    /// Least for the densest.
    density: u64,
    /// Its position in the list.
    index: u32,
    tokens: u32,
}

impl Waiting {
    /// `None` if there are too many tokens to be held.
    fn new(index: usize, tokens: u64, scored: &ScoredRef<'_>) -> Option<Self> {
        Some(Self {
            density: descending_key(density(scored)),
            index: u32::try_from(index).ok()?,
            tokens: u32::try_from(tokens).ok()?,
        })
    }
}

/// Steps of density, the densest first. What is far less dense than the densest is beyond them.
struct Steps {
    least: u64,
    /// The width of a step, as a power of two.
    width: u32,
    /// The tokens of each step.
    tokens: Vec<u64>,
    /// The greatest width of all steps together, as a power of two.
    span: u32,
    /// How many steps are sorted.
    sorted: usize,
}

impl Steps {
    /// A list that is to be laid out over sixteen halvings of the density at first.
    fn new() -> Self {
        Self {
            least: 0,
            width: 0,
            tokens: Vec::new(),
            span: f64::MANTISSA_DIGITS - 1 + 4,
            sorted: 1,
        }
    }

    /// Lays a list out, every time over a span twice as wide.
    fn lay_out(&mut self, waiting: &[Waiting]) {
        const MOST_STEP_BITS: u32 = 11;
        let densities = || waiting.iter().map(|item| item.density);
        self.least = densities().min().unwrap_or(0);
        let range = densities().max().unwrap_or(0) - self.least;
        let range = range.min((1 << self.span) - 1);
        self.span = (self.span + 1).min(u64::BITS - 1);
        let bits = u64::BITS - range.leading_zeros();
        self.width = bits.saturating_sub(waiting.len().ilog2().min(MOST_STEP_BITS));
        let beyond = (range >> self.width) + 1;
        self.tokens.clear();
        self.tokens.resize(low_bits(beyond) + 1, 0);
        for item in waiting {
            let step = (self.offset(item) >> self.width).min(beyond);
            self.tokens[low_bits(step)] += u64::from(item.tokens);
        }
        self.tokens.pop();
    }

    fn offset(&self, item: &Waiting) -> u64 {
        item.density - self.least
    }

    /// Takes the steps that fit whole out of the budget. Returns the offsets at which they end, and at
    /// which those end that are to be sorted; next time, those are four times as many.
    fn fill(&mut self, remaining: &mut u64) -> (u64, u64) {
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
        let offset = |steps: usize| (steps as u64) << self.width;
        (offset(whole), offset(sorted))
    }
}

/// When an item is looked at: the least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Visit {
    density: u64,
    score: u64,
    index: usize,
}

impl RadixKey for Visit {
    fn radix(self) -> u64 {
        self.density
    }
}

/// Targets that have made the same choices so far.
#[derive(Clone, Copy)]
struct Piece {
    from: i64,
    to: i64,
    /// The tokens of those choices.
    spent: i64,
    /// The next item to be looked at.
    next: usize,
    /// How many choices they share with the targets below them.
    chosen: usize,
}

/// Finds the next item that fits: a tree of least token counts.
struct NextFit {
    tokens: Vec<i64>,
    /// The least token count from every position on.
    least_behind: Vec<i64>,
    /// For every item the first one behind it with fewer tokens; the number of items if there is none.
    smaller: Vec<usize>,
    /// A complete binary tree; the leaves are the token counts.
    least: Vec<i64>,
    leaves: usize,
}

impl NextFit {
    fn new(tokens: Vec<i64>) -> Self {
        let leaves = tokens.len().next_power_of_two();
        let mut least = vec![i64::MAX; 2 * leaves];
        least[leaves..leaves + tokens.len()].copy_from_slice(&tokens);
        for node in (1..leaves).rev() {
            least[node] = least[2 * node].min(least[2 * node + 1]);
        }
        let mut least_behind = tokens.clone();
        for position in (1..tokens.len()).rev() {
            least_behind[position - 1] = least_behind[position - 1].min(least_behind[position]);
        }
        let mut smaller = vec![tokens.len(); tokens.len()];
        for position in (0..tokens.len()).rev() {
            let mut next = position + 1;
            while next < tokens.len() && tokens[next] >= tokens[position] {
                next = smaller[next];
            }
            smaller[position] = next;
        }
        Self {
            tokens,
            least_behind,
            smaller,
            least,
            leaves,
        }
    }

    /// The first item behind `position` with fewer tokens than the one there.
    fn first_smaller(&self, position: usize) -> Option<usize> {
        let smaller = self.smaller[position];
        (smaller < self.tokens.len()).then_some(smaller)
    }

    /// The first item from `position` on with at most `room` tokens.
    fn first(&self, position: usize, room: i64) -> Option<usize> {
        if *self.least_behind.get(position)? > room {
            return None;
        }
        let mut node = self.leaves + position;
        while self.least[node] > room {
            // On to the next subtree to the right.
            node = (node >> node.trailing_ones()) + 1;
        }
        while node < self.leaves {
            node *= 2;
            if self.least[node] > room {
                node += 1;
            }
        }
        Some(node - self.leaves)
    }
}

/// The ranks in visiting order: highest density first, ties by rank.
fn by_density(ranked: &[ScoredRef<'_>]) -> Vec<usize> {
    let mut order = parallel::map(ranked, |rank, scored| Ranked::new(density(scored), rank));
    parallel::sort(&mut order);
    order.into_iter().map(Ranked::position).collect()
}

/// Score per token; free items come before every finite density.
fn density(scored: &ScoredRef<'_>) -> f64 {
    match scored.item.tokens() {
        0 => f64::MAX,
        tokens => scored.score / tokens as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chooses from the list as it is and from the list sorted by score, for several budgets.
    fn check(list: &[(i64, f64)]) {
        let item = |tokens: i64| ContextItem::builder("x", tokens).build().unwrap();
        let items: Vec<ContextItem> = list.iter().map(|&(tokens, _)| item(tokens)).collect();
        let scores: Vec<f64> = list.iter().map(|&(_, score)| score).collect();
        let positions: Vec<u32> = (0..).take(list.len()).collect();
        let unsorted = Unsorted::new(&items, &scores, &positions);
        let mut ranking = positions.clone();
        ranking.sort_by(|&a, &b| descending(scores[a as usize], scores[b as usize]));
        let ranked: Vec<ScoredRef<'_>> = ranking.iter().map(|&at| unsorted.scored(at)).collect();

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
            let kept = GreedySlice.select_unsorted(&unsorted, &budget);
            let has_giants = |&(tokens, _): &(i64, f64)| (1 << 32..=target).contains(&tokens);
            assert_eq!(kept.is_none(), list.iter().any(has_giants));
            let Some(mut kept) = kept else { continue };
            kept.sort_unstable();
            let selection = GreedySlice.select(&ranked, &budget).unwrap();
            let selected = selection.kept().iter().map(|&rank| ranking[rank] as usize);
            let mut selected: Vec<usize> = selected.collect();
            selected.sort_unstable();
            assert_eq!(kept, selected, "{target} of {total} tokens");
        }
    }

    // proves: GREEDY-3
    #[test]
    fn a_list_need_not_be_sorted() {
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 4
        };
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
        // One after another that almost fits.
        let almost = (0..4_000).map(|at| match at % 2 {
            0 => (1, f64::from(9_000 - at)),
            _ => (
                100_000 - i64::from(at),
                f64::from((9_000 - at) * (100_000 - at)),
            ),
        });
        check(&almost.collect::<Vec<_>>());
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
