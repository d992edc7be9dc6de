//! [`GreedySlice`].

use std::ops::RangeInclusive;

use super::{PreparedSlice, Selection, Slicer, TargetSweep, Unsorted, slice_by_selection};
use crate::order::{Ranked, descending, descending_key, low_bits};
use crate::parallel;
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

    /// Looks at the densest items first, a few at a time, and drops what no longer fits before it
    /// looks at more: of a long list only a short part is ever sorted.
    fn select_unsorted(&self, list: &Unsorted<'_>, budget: &ContextBudget) -> Option<Vec<usize>> {
        const FIRST: usize = 256;
        let mut remaining = budget.target_tokens();
        let mut kept = Vec::new();
        if remaining <= 0 {
            return Some(kept);
        }
        let mut waiting = parallel::map(list.positions, |index, &position| {
            Waiting::new(index, &list.scored(position))
        });
        let scored = |item: &Waiting| list.scored(list.positions[item.index as usize]);
        let tokens = |item: &Waiting| match item.tokens {
            u32::MAX => scored(item).item.tokens(),
            tokens => tokens.into(),
        };
        let in_order = |a: &Waiting, b: &Waiting| {
            let by_score = || descending(scored(a).score, scored(b).score);
            let by_density = a.density.cmp(&b.density);
            by_density.then_with(by_score).then(a.index.cmp(&b.index))
        };
        let mut thresholds = match waiting.len() {
            ..=FIRST => Thresholds::default(),
            _ => Thresholds::new(&waiting),
        };
        let mut next = FIRST;
        let mut looked_at = Vec::with_capacity(waiting.len().min(8 * FIRST));
        while !waiting.is_empty() {
            let threshold = thresholds.after(next);
            looked_at.clear();
            waiting.retain(|item| {
                let fits = tokens(item) <= remaining;
                if fits && item.density <= threshold {
                    looked_at.push(*item);
                }
                fits && item.density > threshold
            });
            looked_at.sort_unstable_by(in_order);
            kept.reserve(looked_at.len());
            for item in &looked_at {
                let tokens = tokens(item);
                if tokens <= remaining {
                    kept.push(item.index as usize);
                    remaining -= tokens;
                }
            }
            next *= 4;
        }
        Some(kept)
    }

    /// Sorts once; every budget is one walk.
    fn prepare<'a>(&'a self, ranked: &[ScoredRef<'_>]) -> Option<PreparedSlice<'a>> {
        let tokens = |rank: usize| (rank, ranked[rank].item.tokens());
        let order: Vec<(usize, i64)> = by_density(ranked).into_iter().map(tokens).collect();
        Some(Box::new(move |budget| {
            let mut remaining = i128::from(budget.target_tokens());
            let mut kept = Vec::new();
            if remaining > 0 {
                for &(rank, tokens) in &order {
                    if i128::from(tokens) <= remaining {
                        kept.push(rank);
                        remaining -= i128::from(tokens);
                    }
                }
            }
            kept
        }))
    }

    /// Fills all targets at once. Two targets part only at an item that fits one and not the
    /// other; until then their choices are made together.
    fn sweep(&self, ranked: &[ScoredRef<'_>], targets: RangeInclusive<i64>) -> Option<TargetSweep> {
        const MOST_PIECES: usize = 1 << 22;
        let (first, last) = targets.into_inner();
        let end = last.checked_add(1)?;
        let tokens = |rank: usize| ranked[rank].item.tokens();
        if first > last || (0..ranked.len()).any(|rank| tokens(rank) < 0) {
            return None;
        }
        let mut sweep = TargetSweep::default();
        if first <= 0 {
            sweep.step(first);
        }
        if last <= 0 {
            return Some(sweep);
        }
        let (free, order): (Vec<usize>, Vec<usize>) = by_density(ranked)
            .into_iter()
            .partition(|&rank| tokens(rank) == 0);
        for &rank in &free {
            sweep.keep(rank, first.max(1), end);
        }
        let fits = NextFit::new(order.iter().map(|&rank| tokens(rank)).collect());

        let mut pieces = vec![Piece {
            from: first.max(1),
            to: end,
            spent: 0,
            next: 0,
        }];
        while let Some(mut piece) = pieces.pop() {
            if sweep.len() > MOST_PIECES {
                return None;
            }
            while let Some(position) = fits.first(piece.next, piece.to - 1 - piece.spent) {
                let needed = piece.spent + fits.tokens[position];
                if needed > piece.from {
                    pieces.push(Piece {
                        from: needed,
                        next: position,
                        ..piece
                    });
                    piece.to = needed;
                } else {
                    sweep.keep(order[position], piece.from, piece.to);
                    piece.spent = needed;
                }
                piece.next = position + 1;
            }
            // A target of one with nothing kept chooses what a target of zero does.
            if first > 0 || piece.spent > 0 || !free.is_empty() {
                sweep.step(piece.from);
            }
        }
        Some(sweep)
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::SlicerConfig, super::ConfigError> {
        Ok(super::SlicerConfig::Greedy)
    }
}

/// An item that has not been looked at.
#[derive(Clone, Copy)]
struct Waiting {
    /// Least for the densest.
    density: u64,
    /// Its position in the list.
    index: u32,
    /// The largest number stands for itself and all beyond.
    tokens: u32,
}

impl Waiting {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the list is a list of such positions"
    )]
    fn new(index: usize, scored: &ScoredRef<'_>) -> Self {
        Self {
            density: descending_key(density(scored)),
            index: index as u32,
            tokens: u32::try_from(scored.item.tokens()).unwrap_or(u32::MAX),
        }
    }
}

/// How many items there are up to which density, roughly.
#[derive(Default)]
struct Thresholds {
    least: u64,
    /// The width of a step, as a power of two.
    width: u32,
    /// The items of each step.
    counts: Vec<u32>,
    /// The first step that has not been passed.
    next: usize,
}

impl Thresholds {
    fn new(waiting: &[Waiting]) -> Self {
        const MOST_STEP_BITS: u32 = 11;
        let densities = || waiting.iter().map(|item| item.density);
        let least = densities().min().unwrap_or(0);
        let range = densities().max().unwrap_or(0) - least;
        let bits = u64::BITS - range.leading_zeros();
        let width = bits.saturating_sub(waiting.len().ilog2().min(MOST_STEP_BITS));
        let mut counts = vec![0; low_bits(range >> width) + 1];
        for density in densities() {
            counts[low_bits((density - least) >> width)] += 1;
        }
        Self {
            least,
            width,
            counts,
            next: 0,
        }
    }

    /// The density up to which there are at least so many items that have not been passed, and
    /// passes them; the largest number if there are not so many.
    fn after(&mut self, items: usize) -> u64 {
        let mut passed = 0;
        while let Some(&count) = self.counts.get(self.next) {
            if passed >= items {
                return self.least + ((self.next as u64) << self.width) - 1;
            }
            passed += count as usize;
            self.next += 1;
        }
        u64::MAX
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
}

/// Finds the next item that fits: a tree of least token counts.
struct NextFit {
    tokens: Vec<i64>,
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
        Self {
            tokens,
            least,
            leaves,
        }
    }

    /// The first item from `position` on with at most `room` tokens.
    fn first(&self, position: usize, room: i64) -> Option<usize> {
        if position >= self.tokens.len() {
            return None;
        }
        let mut node = self.leaves + position;
        while self.least[node] > room {
            // On to the next subtree to the right; past the last one there is none.
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < self.leaves {
            node *= 2;
            if self.least[node] > room {
                node += 1;
            }
        }
        Some(node - self.leaves).filter(|&found| found < self.tokens.len())
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
