//! The loops that may run on several cores (feature `rayon`).
//!
//! Each has one result, whatever the number of threads: a map keeps positions, and keys that are
//! sorted differ from each other.

#[cfg(feature = "rayon")]
use rayon::prelude::*;

use crate::order::{self, Leading};

/// Below this length threads cost more than they save.
#[cfg(feature = "rayon")]
const WORTHWHILE: usize = 1 << 14;

/// Sorts keys of which no two are equal.
pub(crate) fn sort<K: Leading>(keys: &mut Vec<K>) {
    #[cfg(feature = "rayon")]
    if keys.len() >= WORTHWHILE {
        return keys.par_sort_unstable();
    }
    order::sort(keys);
}

/// `map` of every element with its position.
pub(crate) fn map<T: Sync, R: Send>(list: &[T], map: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    #[cfg(feature = "rayon")]
    if list.len() >= WORTHWHILE {
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

/// What `map` makes of every block of so many elements, in order.
pub(crate) fn map_blocks<'a, T: Sync, R: Send, I: Iterator<Item = R>>(
    list: &'a [T],
    block: usize,
    map: impl Fn(&'a [T]) -> I + Sync + Send,
) -> Vec<R> {
    #[cfg(feature = "rayon")]
    if list.len() >= WORTHWHILE {
        return list.par_chunks(block).flat_map_iter(map).collect();
    }
    let mut results = Vec::with_capacity(list.len());
    list.chunks(block)
        .for_each(|block| results.extend(map(block)));
    results
}

/// `map` of every element, each a piece of work of its own.
pub(crate) fn map_each<T: Sync, R: Send>(list: &[T], map: impl Fn(&T) -> R + Sync) -> Vec<R> {
    #[cfg(feature = "rayon")]
    return list.par_iter().map(&map).collect();
    #[cfg(not(feature = "rayon"))]
    list.iter().map(map).collect()
}
