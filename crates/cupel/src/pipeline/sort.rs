//! Stage 4: best score first.

use super::ledger::Ledger;
use crate::model::descending_key;

/// Sorts by score, highest first; ties keep their input order (SORT-2).
pub(super) fn sort(ledger: &Ledger<'_>, candidates: &mut [usize]) {
    let mut keys: Vec<u128> = candidates
        .iter()
        .map(|&candidate| {
            let key = descending_key(ledger.score(candidate));
            u128::from(key) << 64 | candidate as u128
        })
        .collect();
    keys.sort_unstable();
    for (candidate, key) in candidates.iter_mut().zip(keys) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the lower half is a position"
        )]
        let position = key as usize;
        *candidate = position;
    }
}
