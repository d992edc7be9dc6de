//! Python code of the caller that runs inside of a call: strategies and iterables.
//!
//! `PyO3` counts per thread whether it is attached to the interpreter. Inside of a callback the count is positive,
//! and stays so if another extension module, such as pyarrow, releases the GIL and calls this one:
//! `Python::attach` would then use the interpreter without the GIL. Code that another module may call asks
//! [`is_running`] first.

use std::cell::Cell;

use pyo3::marker::Ungil;
use pyo3::prelude::*;

thread_local! {
    /// The callbacks on this thread since the GIL was last released by this module.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Restores the depth, also if the code panics.
struct Restored(usize);

impl Restored {
    fn replace(depth: usize) -> Self {
        Self(DEPTH.replace(depth))
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        DEPTH.set(self.0);
    }
}

/// Returns whether a callback runs on this thread.
pub(crate) fn is_running() -> bool {
    DEPTH.get() > 0
}

/// Runs Python code of the caller.
pub(crate) fn run<R>(code: impl FnOnce() -> R) -> R {
    let _restored = Restored::replace(DEPTH.get() + 1);
    code()
}

/// Releases the GIL and resets the depth: `PyO3` tracks this release.
pub(crate) fn detach<R: Ungil>(py: Python<'_>, code: impl Ungil + FnOnce() -> R) -> R {
    let _restored = Restored::replace(0);
    py.detach(code)
}
