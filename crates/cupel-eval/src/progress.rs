//! The progress of a long call, and how a caller stops it.

use std::ops::ControlFlow;

/// How far a call is: transcripts of an evaluation, or runs of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The elements that are done.
    pub done: usize,
    /// All elements.
    pub total: usize,
}

/// An observer stopped the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stopped")]
pub struct Stopped;

/// The observer of a caller that needs no progress and never stops.
pub fn unobserved(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
