//! Stage 3: of items with the same content, the best stays.

use std::collections::HashMap;

use super::ledger::{Cause, Ledger};
use super::positions::Positions;
use crate::order::low_bits;

/// Excludes copies and returns how many there were. Contents are compared byte by byte (DEDUP-3);
/// whoever stands for a content so far is challenged by every copy in turn, and a later copy wins
/// only with a strictly greater score (DEDUP-5).
pub(super) fn deduplicate(ledger: &mut Ledger<'_>, scoreable: &Positions) -> usize {
    let losses = by_stored_hash(ledger, scoreable);
    let losses = losses.unwrap_or_else(|| by_keyed_hash(ledger, scoreable));
    for &(loser, winner) in &losses {
        ledger.exclude(loser, Cause::copy_of(winner));
    }
    losses.len()
}

/// Every loser with its winner, found through the hash that every item carries.
///
/// An open-addressed table, half empty. Contents that share all of their hash are told apart by
/// comparison; where that happens often, somebody made them collide, and the answer is `None`.
fn by_stored_hash(ledger: &Ledger<'_>, scoreable: &Positions) -> Option<Vec<(usize, usize)>> {
    /// How many pairs of different contents may share a hash.
    const COLLISIONS: usize = 64;
    const TAG: u64 = !(u32::MAX as u64);
    let items = ledger.items();
    // The upper half of the hash and the champion's position plus one; zero is free.
    let mut slots = vec![0_u64; 2 * scoreable.len()];
    let mut losses = Vec::with_capacity(scoreable.len() / 16);
    let mut collisions = 0;
    for candidate in scoreable.iter() {
        let hash = items[candidate].content_hash();
        let tag = hash & TAG;
        let taken = tag | (candidate as u64 + 1);
        let mut at = scaled(hash, slots.len());
        loop {
            let slot = slots[at];
            if slot == 0 {
                slots[at] = taken;
                break;
            }
            let champion = low_bits((slot & !TAG) - 1);
            if slot & TAG == tag && items[champion].content_hash() == hash {
                if items[champion].content() == items[candidate].content() {
                    if ledger.score(candidate) > ledger.score(champion) {
                        slots[at] = taken;
                        losses.push((champion, candidate));
                    } else {
                        losses.push((candidate, champion));
                    }
                    break;
                }
                collisions += 1;
                if collisions > COLLISIONS {
                    return None;
                }
            }
            at = if at + 1 == slots.len() { 0 } else { at + 1 };
        }
    }
    Some(losses)
}

/// The lower half of a hash, stretched over a table of this length.
fn scaled(hash: u64, length: usize) -> usize {
    let share = u128::from(hash & u64::from(u32::MAX)) * length as u128;
    low_bits(share >> u32::BITS)
}

/// Every loser with its winner, found through a hash whose key nobody knows.
fn by_keyed_hash(ledger: &Ledger<'_>, scoreable: &Positions) -> Vec<(usize, usize)> {
    let mut champions: HashMap<&str, usize> = HashMap::with_capacity(scoreable.len());
    let mut losses = Vec::new();
    for candidate in scoreable.iter() {
        let content = ledger.items()[candidate].content();
        let champion = champions.entry(content).or_insert(candidate);
        if *champion == candidate {
            continue;
        }
        if ledger.score(candidate) > ledger.score(*champion) {
            losses.push((std::mem::replace(champion, candidate), candidate));
        } else {
            losses.push((candidate, *champion));
        }
    }
    losses
}
