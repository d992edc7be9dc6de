//! A counting allocator: allocations, requested bytes, and peak bytes.

#![allow(
    unsafe_code,
    reason = "a global allocator needs it; every call is forwarded unchanged"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Off while anything is timed: a call then costs one more load than the system allocator.
static IS_ON: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static HELD: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

/// Memory use of a call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Allocations and reallocations.
    pub(crate) allocations: u64,
    /// Requested bytes, freed or not.
    pub(crate) bytes: u64,
    /// Peak bytes held at one time, beyond those held before.
    pub(crate) peak: u64,
    /// Bytes held at the end, beyond those held before.
    pub(crate) held: u64,
}

/// Returns the memory use of `work`, with its result still held at the end.
pub(crate) fn counted<T>(work: impl FnOnce() -> T) -> (T, Usage) {
    for counter in [&ALLOCATIONS, &BYTES] {
        counter.store(0, Relaxed);
    }
    HELD.store(0, Relaxed);
    PEAK.store(0, Relaxed);
    IS_ON.store(true, Relaxed);
    let result = work();
    IS_ON.store(false, Relaxed);
    let usage = Usage {
        allocations: ALLOCATIONS.load(Relaxed),
        bytes: BYTES.load(Relaxed),
        peak: u64::try_from(PEAK.load(Relaxed)).unwrap_or(0),
        held: u64::try_from(HELD.load(Relaxed)).unwrap_or(0),
    };
    (result, usage)
}

/// Records `allocated` bytes and `returned` bytes.
fn record(allocated: usize, returned: usize) {
    if !IS_ON.load(Relaxed) {
        return;
    }
    let signed = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
    if allocated > 0 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        BYTES.fetch_add(allocated as u64, Relaxed);
    }
    let change = signed(allocated) - signed(returned);
    let held = HELD.fetch_add(change, Relaxed) + change;
    PEAK.fetch_max(held, Relaxed);
}

// SAFETY: every method hands its arguments to the system allocator and its answer back, so the
// contract is kept as far as the caller and the system keep it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record(layout.size(), 0);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        record(layout.size(), 0);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        record(0, layout.size());
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        record(size, layout.size());
        unsafe { System.realloc(block, layout, size) }
    }
}
