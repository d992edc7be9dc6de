//! Stage 4, Sort: best score first.

use super::ledger::Ledger;
use super::positions::Positions;
use crate::fast::parallel;
use crate::order::Ranked;

/// Returns the candidates by score, highest first; ties keep their input order (SORT-2).
pub(super) fn sort(ledger: &Ledger<'_>, candidates: &Positions) -> Positions {
    let mut ranked = parallel::map(candidates.as_slice(), |_, &candidate| {
        let candidate = candidate as usize;
        Ranked::new(ledger.score(candidate), candidate)
    });
    parallel::sort(&mut ranked);
    ranked.into_iter().map(Ranked::position).collect()
}
