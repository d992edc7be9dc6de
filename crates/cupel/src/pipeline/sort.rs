//! Stage 4: best score first.

use super::ledger::Ledger;
use crate::order::Ranked;
use crate::parallel;

/// Sorts by score, highest first; ties keep their input order (SORT-2).
pub(super) fn sort(ledger: &Ledger<'_>, candidates: &mut [usize]) {
    let mut ranked = parallel::map(candidates, |_, &candidate| {
        Ranked::new(ledger.score(candidate), candidate)
    });
    parallel::sort(&mut ranked);
    for (candidate, ranked) in candidates.iter_mut().zip(ranked) {
        *candidate = ranked.position();
    }
}
