//! The sweep of a selection that starts on a user turn: the start depends on the budget.
//!
//! A larger budget may move the start in two ways: other messages are kept, so the first of them is another
//! one, or another user turn fits. Between these targets the start is the same.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use cupel::CupelError;
use cupel::slicer::{SweepVisitor, ViewChange};

use super::Part;
use super::groups::ChatSlice;

/// The limit of segments times messages of a sweep, such as 700 segments of a chat with 6,000 messages. It
/// is meant as about a second of work. Each segment sweeps all messages after its start, so the work is the
/// product. Beyond the limit there is no sweep, and the caller runs at single budgets.
pub(super) const MAX_WORK: usize = 1 << 22;

/// Finds the targets at which the start of the selection changes.
///
/// It visits the sweep of the groups and keeps track of the kept messages. Between two changes of these, the
/// start only changes when another user turn fits, so it is computed at the targets in `fits_from`.
pub(super) struct StartFinder<'a> {
    pub(super) slicer: &'a ChatSlice,
    pub(super) part: &'a Part<'a>,
    pub(super) tokens: Vec<i128>,
    /// The least target at which each user turn fits, in ascending order.
    pub(super) fits_from: Vec<i64>,
    /// The positions of the kept messages.
    pub(super) kept: BTreeSet<usize>,
    /// The first target that has no segment yet.
    pub(super) at: i64,
    /// The first target of each segment, and the start of the selection in it.
    pub(super) segments: Vec<(i64, Option<usize>)>,
    /// The segments that may still be added ([`MAX_WORK`]). At 0 the sweep is given up.
    pub(super) work_left: usize,
}

impl StartFinder<'_> {
    /// Adds the segments of the targets before `end`, for which the same messages are kept.
    pub(super) fn advance(&mut self, end: i64) {
        let first = self.slicer.first(self.kept.first().copied());
        while self.at < end && self.work_left > 0 {
            let start = self.slicer.start(first, &self.tokens, self.at);
            if self.segments.last().is_none_or(|(_, last)| *last != start) {
                self.segments.push((self.at, start));
                self.work_left -= 1;
            }
            // The start may change when another user turn fits.
            let fits = self.fits_from.partition_point(|&target| target <= self.at);
            let next = self.fits_from.get(fits);
            self.at = next.map_or(end, |&next| next.min(end));
        }
    }
}

impl SweepVisitor for StartFinder<'_> {
    fn change(&mut self, target: i64, ranks: &[usize], _: &[ViewChange]) -> ControlFlow<()> {
        self.advance(target);
        if self.work_left == 0 {
            return ControlFlow::Break(());
        }
        for &rank in ranks {
            let position = self.part.items[rank].position;
            if !self.kept.remove(&position) {
                self.kept.insert(position);
            }
        }
        ControlFlow::Continue(())
    }

    fn fail(&mut self, _: i64, _: CupelError) {
        self.work_left = 0;
    }
}

/// The changes of a sweep in order, and the ranks selected at its end. A change toggles a rank, as
/// in [`SweepVisitor::change`]; targets ascend.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) steps: Vec<(i64, Vec<usize>)>,
    pub(super) chosen: BTreeSet<usize>,
}

impl Changes {
    pub(super) fn toggle(&mut self, target: i64, rank: usize) {
        if self.steps.last().is_none_or(|(last, _)| *last != target) {
            self.steps.push((target, Vec::new()));
        }
        if let Some((_, ranks)) = self.steps.last_mut() {
            ranks.push(rank);
        }
        if !self.chosen.remove(&rank) {
            self.chosen.insert(rank);
        }
    }

    /// Unselects everything from a target on.
    pub(super) fn clear(&mut self, target: i64) {
        for rank in self.chosen.clone() {
            self.toggle(target, rank);
        }
    }

    /// Visits the changes; two changes of a rank at one target cancel out.
    pub(super) fn replay(self, visitor: &mut dyn SweepVisitor) -> ControlFlow<()> {
        for (target, mut ranks) in self.steps {
            ranks.sort_unstable();
            let changed: Vec<usize> = ranks
                .chunk_by(|a, b| a == b)
                .filter(|same| same.len() % 2 == 1)
                .map(|same| same[0])
                .collect();
            if !changed.is_empty() {
                visitor.change(target, &changed, &[])?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Records the sweep of the messages after a start as changes of the whole list, at the targets of the whole
/// window.
pub(super) struct Shifted<'a> {
    /// The ranks of the messages in the whole list.
    pub(super) ranks: &'a [usize],
    /// The tokens of the group of the start. Targets are higher by them.
    pub(super) taken: i64,
    pub(super) changes: &'a mut Changes,
    /// Whether the sweep failed or reported views, which `Changes` cannot hold. A chat makes views for ladders
    /// only, and a ladder does not come here, so usually there are none.
    pub(super) failed: bool,
}

impl SweepVisitor for Shifted<'_> {
    fn change(&mut self, target: i64, ranks: &[usize], views: &[ViewChange]) -> ControlFlow<()> {
        self.failed |= !views.is_empty();
        for &rank in ranks {
            self.changes.toggle(target + self.taken, self.ranks[rank]);
        }
        ControlFlow::Continue(())
    }

    fn fail(&mut self, _: i64, _: CupelError) {
        self.failed = true;
    }
}
