//! Checkpointed traceback: recomputes rows from saved states if the keep table does not fit the
//! memory limit (linear-space idea of Hirschberg 1975).

use std::ops::Range;

use super::lane::Lane;
use super::program::{Program, Span};
use super::table::{KeepTable, TooLarge, byte_size, try_with_capacity};
use super::window::Window;

/// The data that a forward pass saves for the traceback.
pub(super) enum History<V> {
    /// The keep table of all rows.
    Kept(KeepTable<V>),
    /// Saved states, from which the rows after each are recomputed.
    Checkpoints(Vec<Checkpoint<V>>),
}

/// A segment of rows and the state before its first row.
pub(super) struct Checkpoint<V> {
    rows: Range<usize>,
    state: Vec<V>,
}

/// Runs the forward pass for a traceback from `capacity`. Stops when the value there reaches the upper
/// bound: a later row cannot improve it strictly, so the traceback would not take one.
pub(super) fn forward<V: Lane>(
    program: &mut Program<'_, V>,
    rows: Range<usize>,
    capacity: usize,
    memory: usize,
) -> Result<History<V>, TooLarge> {
    let spans = program.spans(rows.clone(), Window::only(capacity));
    match KeepTable::new(rows.start, &spans, memory) {
        Ok(mut table) => {
            for (row, span) in rows.zip(&spans) {
                program.apply_row(row, span, table.push_row(span));
                if program.is_optimal(capacity) {
                    break;
                }
            }
            Ok(History::Kept(table))
        }
        Err(error) => forward_with_checkpoints(program, rows, &spans, capacity, memory, &error)
            .map(History::Checkpoints),
    }
}

/// Appends the rows of the solution, last row first. Returns the capacity left to the rows before.
pub(super) fn traceback<V: Lane>(
    program: &mut Program<'_, V>,
    history: History<V>,
    mut capacity: usize,
    memory: usize,
    chosen: &mut Vec<usize>,
) -> Result<usize, TooLarge> {
    let mut checkpoints = match history {
        History::Kept(table) => {
            return Ok(program.traceback(&table, capacity, |row| chosen.push(row)));
        }
        History::Checkpoints(checkpoints) => checkpoints,
    };
    while let Some(Checkpoint { rows, state }) = checkpoints.pop() {
        program.restore(&state);
        drop(state);
        let held = checkpoints
            .iter()
            .map(|earlier| byte_size::<V>(earlier.state.len()));
        let memory = memory.saturating_sub(held.sum());
        let history = forward(program, rows, capacity, memory)?;
        capacity = traceback(program, history, capacity, memory, chosen)?;
    }
    Ok(capacity)
}

/// Runs [`forward`] if the keep table exceeds the memory limit. Half of the memory holds checkpoints.
/// The other half recomputes one segment at a time, with its keep table or with nested checkpoints.
fn forward_with_checkpoints<V: Lane>(
    program: &mut Program<'_, V>,
    rows: Range<usize>,
    spans: &[Span],
    capacity: usize,
    memory: usize,
    error: &TooLarge,
) -> Result<Vec<Checkpoint<V>>, TooLarge> {
    let half = memory / 2;
    let needed = memory.saturating_add(error.missing);
    let state = byte_size::<V>(capacity.saturating_add(1));
    let segments = needed.div_ceil(half.max(1)).min(half / state);
    if segments < 2 || rows.len() < 2 {
        let least = state.saturating_mul(4);
        return Err(TooLarge {
            missing: least.max(needed).saturating_sub(memory),
        });
    }
    let mut bits = vec![V::default(); spans.iter().map(Span::words).max().unwrap_or(0)];
    let mut checkpoints = Vec::with_capacity(segments);
    let end = rows.end;
    let segment = rows.len().div_ceil(segments);
    for (start, spans) in rows.step_by(segment).zip(spans.chunks(segment)) {
        let values = program.state(capacity);
        let mut state = try_with_capacity(values.len(), half)?;
        state.extend_from_slice(values);
        let rows = start..end.min(start + segment);
        checkpoints.push(Checkpoint {
            rows: rows.clone(),
            state,
        });
        for (row, span) in rows.zip(spans) {
            program.apply_row(row, span, &mut bits[..span.words()]);
            if program.is_optimal(capacity) {
                return Ok(checkpoints);
            }
        }
    }
    Ok(checkpoints)
}
