//! Ctrl-C during a long call.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::strategy::keep_raised;

/// Asks the interpreter now and then whether a signal handler raised, such as that of Ctrl-C.
pub(crate) struct Signals {
    next: Instant,
}

impl Signals {
    /// The time between two checks: short for a person, long for the engine, which waits for the GIL.
    pub(crate) const PERIOD: Duration = Duration::from_millis(50);

    pub(crate) fn new() -> Self {
        Self {
            next: now() + Self::PERIOD,
        }
    }

    /// Breaks if a signal handler raised. The exception is kept.
    pub(crate) fn check(&mut self) -> ControlFlow<()> {
        if now() < self.next {
            return ControlFlow::Continue(());
        }
        let raised = Python::attach(|py| py.check_signals().err());
        self.next = now() + Self::PERIOD;
        match raised {
            None => ControlFlow::Continue(()),
            Some(raised) => {
                keep_raised(raised);
                ControlFlow::Break(())
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "checks are a time apart")]
fn now() -> Instant {
    Instant::now()
}
