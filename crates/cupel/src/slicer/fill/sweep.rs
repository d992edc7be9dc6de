//! All targets of a range at once.

use std::ops::{ControlFlow, Range};

use super::Ordered;
use crate::slicer::SweepVisitor;

/// Fills all targets of a range together. Two targets make the same choices up to the first item
/// that fits one and not the other; there their interval is split. The lower part goes on, the
/// upper part waits on a stack, so intervals are visited in ascending order.
///
/// Items of 6, 5 and 3 tokens, in that order, and targets from 1 to 11:
///
/// ```text
/// 6 splits 1..=11   1..=5 skips it              6..=11 waits with 6 chosen
/// 5 splits 1..=5    1..=4 skips it              5..=5 waits with 5 chosen
/// 3 splits 1..=4    1..=2 has nothing           3..=4 has 3
/// 5..=5             3 does not fit: it has 5
/// 6..=11            5 splits it: 11..=11 waits with 6, 5; 3 splits 6..=10: 6..=8 has 6, 9..=10 has 6, 3
/// ```
///
/// The visitor gets the difference to the interval before: what one choice has and the other has not.
pub(super) fn sweep(
    ordered: Ordered,
    targets: Range<i64>,
    visitor: &mut dyn SweepVisitor,
) -> ControlFlow<()> {
    let Ordered {
        free,
        ranks,
        tokens,
    } = ordered;
    let rank = |position: usize| ranks[position];
    let fits = MinSegmentTree::new(tokens);
    // The changes since the last visit; a rank that is listed twice stays as it was.
    let mut changes: Vec<usize> = free;
    // The choices of the current interval, in the order in which they were made.
    let mut chosen: Vec<usize> = Vec::new();
    let mut waiting: Vec<Interval> = Vec::new();
    let mut interval = Interval {
        from: targets.start,
        to: targets.end,
        spent: 0,
        next: 0,
        chosen: 0,
    };
    loop {
        let mut next = fits.first(interval.next, interval.to - 1 - interval.spent);
        while let Some(position) = next {
            let needed = interval.spent + fits.tokens[position];
            interval.next = position + 1;
            if needed > interval.from {
                waiting.push(Interval {
                    from: needed,
                    spent: needed,
                    chosen: chosen.len(),
                    ..interval
                });
                // Only smaller items fit the lower part.
                interval.to = needed;
                next = fits.first_smaller(position);
            } else {
                interval.spent = needed;
                changes.push(rank(position));
                chosen.push(rank(position));
                next = fits.first(interval.next, interval.to - 1 - interval.spent);
            }
        }
        if !changes.is_empty() {
            visitor.change(interval.from, &changes, &[])?;
            changes.clear();
        }
        let Some(upper) = waiting.pop() else {
            return ControlFlow::Continue(());
        };
        interval = upper;
        // The choices that the interval before made after the split leave again.
        changes.extend(chosen.drain(interval.chosen..));
        // The item at which the interval was split is the first that the upper part has alone.
        let splitting = rank(interval.next - 1);
        changes.push(splitting);
        chosen.push(splitting);
    }
}

/// Targets that have made the same choices so far.
#[derive(Clone, Copy)]
struct Interval {
    from: i64,
    to: i64,
    /// The tokens of those choices.
    spent: i64,
    /// The next item to look at.
    next: usize,
    /// How many choices they share with the targets below them.
    chosen: usize,
}

/// A minimum segment tree over token counts: finds the next item that fits in logarithmic time.
///
/// Without it every interval walks over the items that fit none of its targets: of 10,000 random items
/// most are skipped in each of 127,000 intervals.
struct MinSegmentTree {
    tokens: Vec<i64>,
    /// The least token count from each position on. Most searches end here: nothing fits any more.
    suffix_min: Vec<i64>,
    /// For each item the next smaller one ("next smaller element"); the number of items if there is
    /// none. After a split the lower part has room for less than the splitting item, so that item's next
    /// smaller one is the next that can fit.
    next_smaller: Vec<usize>,
    /// A complete binary tree; the leaves are the token counts.
    nodes: Vec<i64>,
    leaves: usize,
}

impl MinSegmentTree {
    fn new(tokens: Vec<i64>) -> Self {
        let leaves = tokens.len().next_power_of_two();
        let mut nodes = vec![i64::MAX; 2 * leaves];
        nodes[leaves..leaves + tokens.len()].copy_from_slice(&tokens);
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node].min(nodes[2 * node + 1]);
        }
        let mut suffix_min = tokens.clone();
        for position in (1..tokens.len()).rev() {
            suffix_min[position - 1] = suffix_min[position - 1].min(suffix_min[position]);
        }
        let mut next_smaller = vec![tokens.len(); tokens.len()];
        for position in (0..tokens.len()).rev() {
            let mut next = position + 1;
            while next < tokens.len() && tokens[next] >= tokens[position] {
                next = next_smaller[next];
            }
            next_smaller[position] = next;
        }
        Self {
            tokens,
            suffix_min,
            next_smaller,
            nodes,
            leaves,
        }
    }

    /// Returns the first item after `position` with fewer tokens than the one there.
    fn first_smaller(&self, position: usize) -> Option<usize> {
        let smaller = self.next_smaller[position];
        (smaller < self.tokens.len()).then_some(smaller)
    }

    /// Returns the first item from `position` on with at most `room` tokens.
    fn first(&self, position: usize, room: i64) -> Option<usize> {
        if *self.suffix_min.get(position)? > room {
            return None;
        }
        let mut node = self.leaves + position;
        while self.nodes[node] > room {
            // On to the next subtree to the right.
            node = (node >> node.trailing_ones()) + 1;
        }
        while node < self.leaves {
            node *= 2;
            if self.nodes[node] > room {
                node += 1;
            }
        }
        Some(node - self.leaves)
    }
}
