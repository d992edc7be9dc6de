//! Through the table and back, within the memory there is.

use std::ops::Range;

use super::lane::Lane;
use super::program::{Program, Span};
use super::table::{KeepTable, TooLarge, bytes, reserved};
use super::window::Window;

/// What is remembered of the way through some rows, to find the way back.
pub(super) enum Record<V> {
    /// All bits.
    Kept(KeepTable<V>),
    /// The values at some rows, from which to go through the rows behind them again.
    Checkpoints(Vec<Checkpoint<V>>),
}

/// Some rows, and the values before them.
pub(super) struct Checkpoint<V> {
    rows: Range<usize>,
    state: Vec<V>,
}

/// Goes through the rows, as far as is needed to read back from the capacity: when its value cannot be
/// exceeded, no later row would be found kept.
pub(super) fn forward<V: Lane>(
    program: &mut Program<'_, V>,
    rows: Range<usize>,
    capacity: usize,
    memory: usize,
) -> Result<Record<V>, TooLarge> {
    let spans = program.spans(rows.clone(), Window::only(capacity));
    match KeepTable::new(rows.start, &spans, memory) {
        Ok(mut table) => {
            for (row, span) in rows.zip(&spans) {
                program.offer(row, span, table.add(span));
                if program.is_done(capacity) {
                    break;
                }
            }
            Ok(Record::Kept(table))
        }
        Err(error) => {
            check_in(program, rows, &spans, capacity, memory, &error).map(Record::Checkpoints)
        }
    }
}

/// Reads the choice back, last row first; returns the capacity that is left to the rows before.
pub(super) fn back<V: Lane>(
    program: &mut Program<'_, V>,
    record: Record<V>,
    mut capacity: usize,
    memory: usize,
    chosen: &mut Vec<usize>,
) -> Result<usize, TooLarge> {
    let mut checkpoints = match record {
        Record::Kept(table) => {
            return Ok(program.read_back(&table, capacity, |row| chosen.push(row)));
        }
        Record::Checkpoints(checkpoints) => checkpoints,
    };
    while let Some(Checkpoint { rows, state }) = checkpoints.pop() {
        program.restore(&state);
        drop(state);
        let held = checkpoints
            .iter()
            .map(|earlier| bytes::<V>(earlier.state.len()));
        let memory = memory.saturating_sub(held.sum());
        let record = forward(program, rows, capacity, memory)?;
        capacity = back(program, record, capacity, memory, chosen)?;
    }
    Ok(capacity)
}

/// As [`forward`], if the bits do not fit the memory. Half of it is for checkpoints, the other for going
/// from one to the next again: with all bits, or else with checkpoints in between.
fn check_in<V: Lane>(
    program: &mut Program<'_, V>,
    rows: Range<usize>,
    spans: &[Span],
    capacity: usize,
    memory: usize,
    error: &TooLarge,
) -> Result<Vec<Checkpoint<V>>, TooLarge> {
    let half = memory / 2;
    let needed = memory.saturating_add(error.missing);
    let state = bytes::<V>(capacity.saturating_add(1));
    let parts = needed.div_ceil(half.max(1)).min(half / state);
    if parts < 2 || rows.len() < 2 {
        let least = state.saturating_mul(4);
        return Err(TooLarge {
            missing: least.max(needed).saturating_sub(memory),
        });
    }
    let mut bits = vec![V::default(); spans.iter().map(Span::words).max().unwrap_or(0)];
    let mut checkpoints = Vec::with_capacity(parts);
    let end = rows.end;
    let part = rows.len().div_ceil(parts);
    for (start, spans) in rows.step_by(part).zip(spans.chunks(part)) {
        let values = program.state(capacity);
        let mut state = reserved(values.len(), half)?;
        state.extend_from_slice(values);
        let rows = start..end.min(start + part);
        checkpoints.push(Checkpoint {
            rows: rows.clone(),
            state,
        });
        for (row, span) in rows.zip(spans) {
            program.offer(row, span, &mut bits[..span.words()]);
            if program.is_done(capacity) {
                return Ok(checkpoints);
            }
        }
    }
    Ok(checkpoints)
}
