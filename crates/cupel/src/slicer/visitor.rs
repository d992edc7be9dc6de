//! [`SweepVisitor`].

use std::ops::ControlFlow;

use crate::CupelError;

/// Receives the choices of a [`Slicer::sweep`](crate::Slicer::sweep) as changes. Nothing is chosen
/// before the first.
pub trait SweepVisitor {
    /// From `target` on the items of these ranks enter the choice, in full, or leave it if they were in
    /// it. A rank that is listed twice stays as it was. Then the items of `views`, which are in
    /// the choice, are kept as these views, or in full. Targets do not decrease from call to call.
    fn change(&mut self, target: i64, ranks: &[usize], views: &[ViewChange]) -> ControlFlow<()>;

    /// From `target` to the next change the slicer fails, so that nothing is chosen.
    fn fail(&mut self, target: i64, error: CupelError);
}

/// A rank, and the index of its view or `None` for the item in full.
pub type ViewChange = (usize, Option<usize>);
