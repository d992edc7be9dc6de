//! Maps lists on all cores (feature `rayon`), or in the calling thread.
//!
//! Results are in the order of the list, and so is the first error: they do not depend on the number of threads.

use std::ops::ControlFlow;

#[cfg(feature = "rayon")]
use rayon::prelude::*;

use crate::progress::{Progress, Stopped};

/// Maps every element.
pub(crate) fn map<T: Sync, R: Send>(list: &[T], map: impl Fn(&T) -> R + Sync) -> Vec<R> {
    #[cfg(feature = "rayon")]
    return list.par_iter().map(&map).collect();
    #[cfg(not(feature = "rayon"))]
    list.iter().map(map).collect()
}

/// Maps every element and tells the observer how many are done. The observer runs in the calling thread, so that
/// it may write to a terminal or ask an interpreter.
///
/// The list is mapped in chunks, because an observer in the calling thread can run between two parallel maps
/// only. A chunk has `per_thread` elements per thread: fewer are stopped sooner, more keep the threads busy when
/// elements take different times.
pub(crate) fn map_observed<T: Sync, R: Send, E: From<Stopped> + Send>(
    list: &[T],
    per_thread: usize,
    observe: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    map_one: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let mut results = Vec::with_capacity(list.len());
    for chunk in list.chunks(per_thread * threads()) {
        for result in map(chunk, &map_one) {
            results.push(result?);
        }
        let progress = Progress {
            done: results.len(),
            total: list.len(),
        };
        if observe(progress).is_break() {
            return Err(Stopped.into());
        }
    }
    Ok(results)
}

fn threads() -> usize {
    #[cfg(feature = "rayon")]
    return rayon::current_num_threads();
    #[cfg(not(feature = "rayon"))]
    1
}
