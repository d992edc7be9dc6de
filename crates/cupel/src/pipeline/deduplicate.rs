//! Stage 3: of items with the same content, the best stays.

use std::collections::HashMap;

use super::ledger::{Cause, Ledger};
use crate::ContextItem;
use crate::order::low_bits;

/// The survivors, in input order. Contents are compared byte by byte (DEDUP-3); a later copy
/// wins only with a strictly greater score (DEDUP-5).
pub(super) fn deduplicate(
    ledger: &mut Ledger<'_>,
    scoreable: Vec<usize>,
    enabled: bool,
) -> Vec<usize> {
    if !enabled {
        return scoreable;
    }
    let copies = Contents::new(ledger.items(), scoreable.len()).copies(&scoreable);
    // Whoever stands for its content so far; every copy challenges it in turn.
    let mut best: HashMap<usize, usize> = HashMap::new();
    for (first, copy) in copies {
        let champion = best.entry(first).or_insert(first);
        let (winner, loser) = if ledger.score(copy) > ledger.score(*champion) {
            (copy, *champion)
        } else {
            (*champion, copy)
        };
        ledger.exclude(loser, Cause::CopyOf(winner));
        *champion = winner;
    }
    if best.is_empty() {
        return scoreable;
    }
    let mut survivors = scoreable;
    survivors.retain(|&candidate| !ledger.is_excluded(candidate));
    survivors
}

/// Finds items whose content has been seen before.
///
/// An open-addressed table of positions, filled by the hash that every item carries. Contents
/// that share all of their hash are told apart by comparison; where that happens often, somebody
/// made them collide, and a table with a keyed hash takes over.
struct Contents<'a> {
    items: &'a [ContextItem],
    /// The upper half of the hash and the position plus one; zero is free.
    slots: Vec<u64>,
}

impl<'a> Contents<'a> {
    /// How many pairs of different contents may share a hash.
    const COLLISIONS: usize = 64;

    fn new(items: &'a [ContextItem], expected: usize) -> Self {
        let slots = (2 * expected).next_power_of_two();
        Self {
            items,
            slots: vec![0; slots],
        }
    }

    /// Every item that is not the first of its content, with the first one, in input order.
    fn copies(mut self, candidates: &[usize]) -> Vec<(usize, usize)> {
        self.by_stored_hash(candidates)
            .unwrap_or_else(|| self.by_keyed_hash(candidates))
    }

    fn by_stored_hash(&mut self, candidates: &[usize]) -> Option<Vec<(usize, usize)>> {
        let mask = self.slots.len() - 1;
        let mut copies = Vec::new();
        let mut collisions = 0;
        for &candidate in candidates {
            let position = u32::try_from(candidate + 1).ok()?;
            let hash = self.items[candidate].content_hash();
            let tag = hash & !u64::from(u32::MAX);
            let mut at = low_bits(hash) & mask;
            loop {
                let slot = self.slots[at];
                if slot == 0 {
                    self.slots[at] = tag | u64::from(position);
                    break;
                }
                let other = low_bits(slot & u64::from(u32::MAX)) - 1;
                if slot & !u64::from(u32::MAX) == tag && self.items[other].content_hash() == hash {
                    if self.items[other].content() == self.items[candidate].content() {
                        copies.push((other, candidate));
                        break;
                    }
                    collisions += 1;
                    if collisions > Self::COLLISIONS {
                        return None;
                    }
                }
                at = (at + 1) & mask;
            }
        }
        Some(copies)
    }

    fn by_keyed_hash(&self, candidates: &[usize]) -> Vec<(usize, usize)> {
        let mut first: HashMap<&str, usize> = HashMap::with_capacity(candidates.len());
        let copies = candidates.iter().filter_map(|&candidate| {
            let content = self.items[candidate].content();
            let first = *first.entry(content).or_insert(candidate);
            (first != candidate).then_some((first, candidate))
        });
        copies.collect()
    }
}
