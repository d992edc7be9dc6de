//! Splits batches into requests. The rows of a request may span batches.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ord::partition::partition;
use arrow_select::concat::concat;

use super::layout::{Layout, Plan, id_text, named};

/// Projected columns with the rows of each request in them.
pub(super) struct Segment {
    pub(super) columns: Vec<ArrayRef>,
    pub(super) requests: Vec<Range<usize>>,
}

/// Splits a stream of batches into segments of whole requests.
pub(super) struct Requests {
    /// The parts of the request whose rows may continue in the next batch.
    open: Vec<Vec<ArrayRef>>,
    open_id: Option<String>,
    /// 64-bit hashes of the ids so far, to detect one whose rows are not contiguous. At ten million requests the
    /// probability of a false match is 3e-6 (birthday bound).
    seen: HashSet<u64>,
    hasher: RandomState,
}

impl Requests {
    pub(super) fn new() -> Self {
        Self {
            open: Vec::new(),
            open_id: None,
            seen: HashSet::new(),
            hasher: RandomState::new(),
        }
    }

    /// Adds a batch and appends the segments of the requests that are complete.
    pub(super) fn push(
        &mut self,
        plan: &Plan,
        batch: &RecordBatch,
        segments: &mut Vec<Segment>,
    ) -> Result<(), String> {
        let columns = plan.project(batch)?;
        let ids = &columns[0];
        if let Some(nulls) = ids.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
            let row = (0..nulls.len()).find(|row| nulls.is_null(*row));
            let name = plan.id.name();
            let row = row.unwrap_or_default();
            return Err(format!(
                "column `{name}`: row {row} of a batch is null; every row needs a request id"
            ));
        }
        if plan.layout != Layout::Rows {
            let requests = (0..batch.num_rows()).map(|row| row..row + 1).collect();
            segments.push(Segment { columns, requests });
            return Ok(());
        }
        let mut ranges = partition(std::slice::from_ref(ids))
            .map_err(|error| format!("column `{}`: {error}", plan.id.name()))?
            .ranges()
            .into_iter()
            .peekable();
        if let Some(first) = ranges.peek().cloned() {
            if self.open_id.as_deref() == Some(&id_text(ids, first.start)) {
                ranges.next();
                self.open.push(slice(&columns, &first));
                if ranges.peek().is_none() {
                    return Ok(());
                }
            }
            segments.extend(self.close()?);
        }
        let mut requests: Vec<Range<usize>> = Vec::new();
        for range in ranges {
            let id = id_text(ids, range.start);
            if !self.seen.insert(self.hasher.hash_one(&id)) {
                let name = named(ids, range.start);
                segments.push(Segment { columns, requests });
                return Err(format!(
                    "the rows of {name} are not contiguous; sort them by `{}`",
                    plan.id.name()
                ));
            }
            self.open_id = Some(id);
            requests.push(range);
        }
        if let Some(last) = requests.pop() {
            self.open.push(slice(&columns, &last));
        }
        segments.push(Segment { columns, requests });
        Ok(())
    }

    /// Returns the segment of the open request.
    pub(super) fn close(&mut self) -> Result<Option<Segment>, String> {
        let parts = std::mem::take(&mut self.open);
        self.open_id = None;
        let Some(first) = parts.first() else {
            return Ok(None);
        };
        let columns = if parts.len() == 1 {
            first.clone()
        } else {
            let column = |at: usize| {
                let parts = parts.iter().map(|part: &Vec<ArrayRef>| part[at].as_ref());
                let parts: Vec<&dyn Array> = parts.collect();
                concat(&parts).map_err(|error| error.to_string())
            };
            (0..first.len()).map(column).collect::<Result<_, _>>()?
        };
        let rows = columns.first().map_or(0, Array::len);
        Ok(Some(Segment {
            columns,
            requests: std::iter::once(0..rows).collect(),
        }))
    }
}

fn slice(columns: &[ArrayRef], rows: &Range<usize>) -> Vec<ArrayRef> {
    let columns = columns.iter();
    columns
        .map(|column| column.slice(rows.start, rows.len()))
        .collect()
}
