//! [`TargetSweep`]: a slicer's choices for all targets of a range.

use crate::CupelError;

/// What a slicer chooses for every target of a range, as what changes from one choice to the next.
///
/// ```
/// use cupel::TargetSweep;
///
/// let mut sweep = TargetSweep::new(0);
/// sweep.toggle(0, 10); // in
/// sweep.toggle(0, 15); // out again
/// sweep.toggle(1, 15);
/// let steps: Vec<_> = sweep.steps().collect();
/// assert_eq!(steps, [(0, &[][..]), (10, &[0][..]), (15, &[0, 1][..])]);
/// ```
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub struct TargetSweep {
    /// The first target of every choice, and where its changes begin.
    steps: Vec<(i64, usize)>,
    changes: Vec<u32>,
    failure: Option<(i64, CupelError)>,
}

impl TargetSweep {
    /// Nothing is chosen from the least target on.
    pub fn new(least: i64) -> Self {
        Self {
            steps: vec![(least, 0)],
            changes: Vec::new(),
            failure: None,
        }
    }

    /// From this target on the item of this rank is chosen, or no longer if it was. Called in
    /// ascending order of targets.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a ranking is a list of such positions"
    )]
    pub fn toggle(&mut self, rank: usize, target: i64) {
        if self.steps.last().is_none_or(|(last, _)| *last != target) {
            self.steps.push((target, self.changes.len()));
        }
        self.changes.push(rank as u32);
    }

    /// From this target on the slicer fails.
    pub fn fail(&mut self, target: i64, error: CupelError) {
        self.failure = Some((target, error));
    }

    /// The number of choices so far.
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// The ranks toggled so far, some of them several times.
    pub fn changes(&self) -> &[u32] {
        &self.changes
    }

    /// The targets at which the choice changes, ascending, up to where the slicer fails, with the
    /// ranks that enter or leave it. A rank that does both at one target stays.
    pub fn steps(&self) -> impl Iterator<Item = (i64, &[u32])> {
        let end = self
            .failure
            .as_ref()
            .map_or(i64::MAX, |(target, _)| *target);
        let ends = self.steps.iter().skip(1).map(|(_, changes)| *changes);
        let ends = ends.chain([self.changes.len()]);
        let steps = self.steps.iter().zip(ends);
        let steps = steps.map(|(&(target, from), to)| (target, &self.changes[from..to]));
        steps.take_while(move |(target, _)| *target < end)
    }

    /// The target from which the slicer fails, and with what.
    pub fn failure(&self) -> Option<&(i64, CupelError)> {
        self.failure.as_ref()
    }
}
