//! The windows of a sweep.

use cupel::{BudgetSweep, SweepStep};

/// Calls `visit` with each step of a sweep and the candidates before `len` that it keeps, in ascending
/// order.
pub fn for_each_window(
    sweep: &BudgetSweep,
    len: usize,
    mut visit: impl FnMut(&SweepStep, &[usize]),
) {
    let mut changes = changes(sweep, len).into_iter().peekable();
    let mut is_kept = vec![false; len];
    for step in &sweep.steps {
        while let Some((_, index)) = changes.next_if(|(budget, _)| *budget <= step.from) {
            is_kept[index] ^= true;
        }
        let kept: Vec<usize> = (0..len).filter(|&index| is_kept[index]).collect();
        visit(step, &kept);
    }
}

/// Returns the budgets at which a candidate enters or leaves the window, in ascending order.
fn changes(sweep: &BudgetSweep, len: usize) -> Vec<(i64, usize)> {
    let candidates = sweep.items.iter().filter(|item| item.index < len);
    let mut changes: Vec<(i64, usize)> = candidates
        .flat_map(|item| {
            let intervals = item.intervals.iter();
            intervals
                .flat_map(|&(from, to)| [(from, item.index), (to.saturating_add(1), item.index)])
        })
        .collect();
    changes.sort_unstable();
    changes
}
