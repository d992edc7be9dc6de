//! Stage 3: of items with the same content, the best stays.

use std::collections::HashMap;

use super::ledger::{Cause, Ledger};

/// The survivors, in input order. Contents are compared byte by byte (DEDUP-3); a later copy
/// wins only with a strictly greater score (DEDUP-5).
pub(super) fn deduplicate(
    ledger: &mut Ledger<'_>,
    scoreable: &[usize],
    enabled: bool,
) -> Vec<usize> {
    if !enabled {
        return scoreable.to_vec();
    }
    let items = ledger.items();
    let mut content_of: HashMap<&str, usize> = HashMap::with_capacity(scoreable.len());
    let mut best: Vec<usize> = Vec::with_capacity(scoreable.len());
    let contents: Vec<usize> = scoreable
        .iter()
        .map(|&candidate| {
            let text = items[candidate].content();
            let content = *content_of.entry(text).or_insert_with(|| {
                best.push(candidate);
                best.len() - 1
            });
            if ledger.score(candidate) > ledger.score(best[content]) {
                best[content] = candidate;
            }
            content
        })
        .collect();
    let mut survivors = Vec::with_capacity(best.len());
    for (&candidate, content) in scoreable.iter().zip(contents) {
        if best[content] == candidate {
            survivors.push(candidate);
        } else {
            ledger.exclude(candidate, Cause::CopyOf(best[content]));
        }
    }
    survivors
}
