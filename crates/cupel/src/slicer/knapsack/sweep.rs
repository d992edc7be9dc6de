//! The choices for all budgets of a range.

use std::ops::RangeInclusive;

use super::lane::{Lane, with_lane};
use super::program::Program;
use super::table::{KeepTable, TooLarge};
use super::window::Window;
use super::{KnapsackSlice, Limit, Row, size, split};
use crate::ScoredRef;
use crate::slicer::TargetSweep;

impl KnapsackSlice {
    /// Reads all capacities off one table. A cell depends on the rows before it and the capacities
    /// below it, so the table of the largest capacity holds those of all smaller ones; and a row
    /// that others keep out of the largest, they keep out of all.
    pub(super) fn sweep_targets(
        &self,
        ranked: &[ScoredRef<'_>],
        targets: RangeInclusive<i64>,
    ) -> Option<TargetSweep> {
        let (first, last) = targets.into_inner();
        if first > last {
            return None;
        }
        let mut sweep = TargetSweep::new(first);
        let (free, candidates) = split(ranked);
        let highest = last.max(0) / self.bucket_size;
        let allowed = self.largest_capacity(candidates).min(highest);
        if allowed < highest {
            // The first target of the first capacity whose table is too large.
            let from = first.max((allowed + 1) * self.bucket_size);
            sweep.fail(from, self.check_cells(candidates, allowed + 1).err()?);
        }
        if last > 0 {
            for rank in free {
                sweep.toggle(rank, first.max(1));
            }
        }
        if candidates == 0 || allowed == 0 {
            return Some(sweep);
        }
        let rows = self.rows(ranked, allowed);
        let mut is_in = vec![false; rows.len()];
        let lowest = first.max(0) / self.bucket_size;
        let visit = |capacity: i64, chosen: &[usize]| {
            let from = first.max(capacity * self.bucket_size);
            let mut chosen = chosen.iter().peekable();
            for (row, is_in) in is_in.iter_mut().enumerate().rev() {
                let is_chosen = chosen.next_if_eq(&&row).is_some();
                if is_chosen != std::mem::replace(is_in, is_chosen) {
                    sweep.toggle(rows[row].rank, from);
                }
            }
        };
        visit_choices(&rows, lowest..=allowed, self.memory(), visit).ok()?;
        Some(sweep)
    }

    /// The largest capacity that so many candidates may have.
    fn largest_capacity(&self, candidates: usize) -> i64 {
        match self.limit {
            Limit::Cells(limit) if candidates > 0 => {
                i64::try_from(limit / candidates as u64).map_or(i64::MAX, |cells| cells - 1)
            }
            _ => i64::MAX,
        }
    }
}

/// Calls a function with every capacity and its choice, last row first. Capacities above the weight
/// of all rows are left out: they change nothing.
fn visit_choices(
    rows: &[Row],
    capacities: RangeInclusive<i64>,
    memory: usize,
    visit: impl FnMut(i64, &[usize]),
) -> Result<(), TooLarge> {
    with_lane!(rows, V => visit_choices_with::<V>(rows, capacities, memory, visit))
}

fn visit_choices_with<V: Lane>(
    rows: &[Row],
    capacities: RangeInclusive<i64>,
    memory: usize,
    mut visit: impl FnMut(i64, &[usize]),
) -> Result<(), TooLarge> {
    let weights = rows.iter().map(|row| row.weight);
    let useful = weights.fold(0, i64::saturating_add);
    let (lowest, highest) = capacities.into_inner();
    let (lowest, highest) = (lowest.min(useful), highest.min(useful));
    let windows = vec![Window::up_to(size(highest)); rows.len()];
    let (mut program, memory) = Program::<V>::new(rows, &windows, size(highest), None, memory)?;
    let asked = Window {
        from: size(lowest),
        to: size(highest),
    };
    let spans = program.spans(0..rows.len(), asked);
    let mut table = KeepTable::new(0, &spans, memory)?;
    for (row, span) in spans.iter().enumerate() {
        program.offer(row, span, table.add(span));
    }
    let mut chosen = Vec::new();
    for capacity in lowest..=highest {
        chosen.clear();
        program.read_back(&table, size(capacity), |row| chosen.push(row));
        visit(capacity, &chosen);
    }
    Ok(())
}
