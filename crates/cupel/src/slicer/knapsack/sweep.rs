//! Solutions for all targets of a range, from one keep table.
//!
//! The core and the windows of a single solution hold for one capacity. Here all capacities are requested,
//! so the table is full: one bit per row and capacity, up to the cell limit. The traceback of one capacity
//! costs one step per row.
//!
//! With buckets of 10 tokens and the targets `25..=47`, the capacities are 2, 3 and 4. Capacity 2 holds for
//! the targets `25..=29`, capacity 3 for `30..=39` and capacity 4 for `40..=47`. The visitor is told at 25, 30
//! and 40 which rows enter or leave.

use std::ops::{ControlFlow, RangeInclusive};

use super::lane::{Lane, with_lane};
use super::program::Program;
use super::table::{KeepTable, TooLarge};
use super::window::Window;
use super::{KnapsackSlice, Limit, Row, size, split};
use crate::ScoredRef;
use crate::slicer::SweepVisitor;

impl KnapsackSlice {
    /// Visits the solutions of all targets, by one traceback per capacity.
    ///
    /// A cell depends only on earlier rows and smaller capacities, so the table of the largest
    /// capacity contains the tables of all smaller ones. A row removed by dominance at the largest
    /// capacity is removed at all smaller ones.
    pub(super) fn sweep_targets(
        &self,
        ranked: &[ScoredRef<'_>],
        targets: RangeInclusive<i64>,
        visitor: &mut dyn SweepVisitor,
    ) -> Option<ControlFlow<()>> {
        let (first, last) = targets.into_inner();
        if first > last {
            return None;
        }
        let (free, candidates) = split(ranked);
        let highest = last.max(0) / self.bucket_size;
        let allowed = self.largest_capacity(candidates).min(highest);
        // Larger capacities have a table above the limit: the sweep ends in the error of the first one.
        let failure = if allowed < highest {
            // The first target of the smallest capacity whose table is too large.
            let from = first.max((allowed + 1) * self.bucket_size);
            Some((from, self.check_cells(candidates, allowed + 1).err()?))
        } else {
            None
        };
        let end = failure.as_ref().map_or(i64::MAX, |(target, _)| *target);

        // The ranks that change at the target `at`. They are reported when the first target with other
        // changes is known, because a target is reported once.
        let mut changes: Vec<usize> = Vec::new();
        // Nothing is selected below a target of 1. From there on items of zero tokens are (KNAP-14).
        let mut at = first.max(1);
        if last > 0 {
            changes.extend(free);
        }
        let rows = self.rows(ranked, allowed);
        let mut is_included = vec![false; rows.len()];
        let lowest = first.max(0) / self.bucket_size;
        let visit = |capacity: i64, chosen: &[usize]| {
            let from = first.max(1).max(capacity * self.bucket_size);
            if from > at {
                report(visitor, &mut changes, at, end)?;
                at = from;
            }
            // Both lists are from the last row to the first.
            let mut chosen = chosen.iter().peekable();
            for (row, is_included) in is_included.iter_mut().enumerate().rev() {
                let is_chosen = chosen.next_if_eq(&&row).is_some();
                if is_chosen != std::mem::replace(is_included, is_chosen) {
                    changes.push(rows[row].rank);
                }
            }
            ControlFlow::Continue(())
        };
        let flow = visit_solutions(&rows, lowest..=allowed, self.memory(), visit).ok()?;
        let flow = match flow {
            ControlFlow::Continue(()) => report(visitor, &mut changes, at, end),
            stopped @ ControlFlow::Break(()) => stopped,
        };
        if let (ControlFlow::Continue(()), Some((target, error))) = (flow, failure) {
            visitor.fail(target, error);
        }
        Some(flow)
    }

    /// Returns the largest capacity that the limit allows for this number of candidates.
    fn largest_capacity(&self, candidates: usize) -> i64 {
        match self.limit {
            Limit::Cells(limit) if candidates > 0 => {
                i64::try_from(limit / candidates as u64).map_or(i64::MAX, |cells| cells - 1)
            }
            _ => i64::MAX,
        }
    }
}

/// Reports the changes at a target if there are any and the target is below `end`.
fn report(
    visitor: &mut dyn SweepVisitor,
    changes: &mut Vec<usize>,
    target: i64,
    end: i64,
) -> ControlFlow<()> {
    if !changes.is_empty() && target < end {
        visitor.change(target, changes, &[])?;
    }
    changes.clear();
    ControlFlow::Continue(())
}

/// Calls `visit` with each capacity and its solution, last row first. Skips capacities above the total
/// weight, where the solution stays the same. Fails before the first call of `visit`, or not at all.
fn visit_solutions(
    rows: &[Row],
    capacities: RangeInclusive<i64>,
    memory: usize,
    visit: impl FnMut(i64, &[usize]) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, TooLarge> {
    with_lane!(rows, V => visit_solutions_with::<V>(rows, capacities, memory, visit))
}

fn visit_solutions_with<V: Lane>(
    rows: &[Row],
    capacities: RangeInclusive<i64>,
    memory: usize,
    mut visit: impl FnMut(i64, &[usize]) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, TooLarge> {
    let weights = rows.iter().map(|row| row.weight);
    let useful = weights.fold(0, i64::saturating_add);
    let (lowest, highest) = capacities.into_inner();
    let (lowest, highest) = (lowest.min(useful), highest.min(useful));
    let windows = vec![Window::up_to(size(highest)); rows.len()];
    let (mut program, memory) = Program::<V>::new(rows, &windows, size(highest), None, memory)?;
    let requested = Window {
        from: size(lowest),
        to: size(highest),
    };
    let spans = program.spans(requested);
    let mut table = KeepTable::new(&spans, memory)?;
    for (row, span) in spans.iter().enumerate() {
        program.apply_row(row, span, table.push_row(span));
    }
    let mut chosen = Vec::new();
    for capacity in lowest..=highest {
        chosen.clear();
        program.traceback(&table, size(capacity), |row| chosen.push(row));
        if visit(capacity, &chosen).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
