//! [`TargetSweep`]: a slicer's choices for all targets of a range.

use crate::CupelError;

/// What a slicer chooses for every target of a range, as pieces on which the choice is the same.
///
/// ```
/// use cupel::TargetSweep;
///
/// let mut sweep = TargetSweep::default();
/// sweep.step(0);
/// sweep.step(10);
/// sweep.keep(0, 10, 20);
/// assert_eq!(sweep.steps(), [0, 10]);
/// assert_eq!(sweep.kept(), [(0, 10, 20)]);
/// ```
#[doc(hidden)]
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TargetSweep {
    steps: Vec<i64>,
    kept: Vec<(usize, i64, i64)>,
    failure: Option<(i64, CupelError)>,
}

impl TargetSweep {
    /// The choice changes at this target; called in ascending order, first with the least target.
    pub fn step(&mut self, target: i64) {
        self.steps.push(target);
    }

    /// The item of this rank is chosen for all targets from `from` up to, but without, `to`.
    pub fn keep(&mut self, rank: usize, from: i64, to: i64) {
        if from < to {
            self.kept.push((rank, from, to));
        }
    }

    /// From this target on the slicer fails.
    pub fn fail(&mut self, target: i64, error: CupelError) {
        self.failure = Some((target, error));
    }

    /// The number of steps and pieces.
    pub fn len(&self) -> usize {
        self.steps.len() + self.kept.len()
    }

    /// Whether nothing is known yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The targets at which the choice changes, ascending.
    pub fn steps(&self) -> &[i64] {
        &self.steps
    }

    /// The chosen ranks, each with the first target for which it is chosen and the first for
    /// which it no longer is. A rank may have several such pieces; they do not overlap.
    pub fn kept(&self) -> &[(usize, i64, i64)] {
        &self.kept
    }

    /// The target from which the slicer fails, and with what.
    pub fn failure(&self) -> Option<&(i64, CupelError)> {
        self.failure.as_ref()
    }
}
