//! Stage 4: best score first.

use super::ledger::Ledger;
use crate::model::descending;

/// Sorts by score, highest first; ties keep their input order (SORT-2).
pub(super) fn sort(ledger: &Ledger<'_>, candidates: &mut [usize]) {
    candidates
        .sort_unstable_by(|&a, &b| descending(ledger.score(a), ledger.score(b)).then(a.cmp(&b)));
}
