//! Data parallelism with work stealing (feature `rayon`; Blumofe and Leiserson 1999).
//!
//! Results do not depend on the number of threads: a map keeps positions, and sorted keys are
//! distinct. Gains are in `docs/performance.md`.

#[cfg(feature = "rayon")]
use rayon::prelude::*;

use super::radix::{self, RadixKey};

/// Below this length threads cost more than they save.
#[cfg(feature = "rayon")]
const MIN_LEN: usize = 1 << 14;

/// Sorts distinct keys.
pub(crate) fn sort<K: RadixKey>(keys: &mut Vec<K>) {
    #[cfg(feature = "rayon")]
    if keys.len() >= MIN_LEN {
        return keys.par_sort_unstable();
    }
    radix::sort(keys);
}

/// Maps every element with its position.
pub(crate) fn map<T: Sync, R: Send>(list: &[T], map: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    #[cfg(feature = "rayon")]
    if list.len() >= MIN_LEN {
        let elements = list.par_iter().enumerate();
        return elements
            .map(|(index, element)| map(index, element))
            .collect();
    }
    let elements = list.iter().enumerate();
    elements
        .map(|(index, element)| map(index, element))
        .collect()
}

/// Maps blocks of elements and concatenates the results.
pub(crate) fn map_blocks<'a, T: Sync, R: Send, I: Iterator<Item = R>>(
    list: &'a [T],
    block: usize,
    map: impl Fn(&'a [T]) -> I + Sync + Send,
) -> Vec<R> {
    #[cfg(feature = "rayon")]
    if list.len() >= MIN_LEN {
        return list.par_chunks(block).flat_map_iter(map).collect();
    }
    let mut results = Vec::with_capacity(list.len());
    list.chunks(block)
        .for_each(|block| results.extend(map(block)));
    results
}
