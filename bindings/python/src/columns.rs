//! The decisions of runs as Arrow columns, for `Report.to_arrow` and `select_batches`.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder};
use arrow_schema::{DataType, Field};
use cupel::Decisions;

/// Returns the fields of the columns, in order.
///
/// `index` is the position of the item in its request, `rank` its rank by score from 0 (null if it is
/// pinned or was excluded before ranking), `position` its place in the window from 0 (null if it is
/// excluded), `tokens` its tokens: those in the window for an included item, its own for an excluded one.
pub(crate) fn fields() -> Vec<Field> {
    let types = [
        ("index", DataType::Int64),
        ("rank", DataType::Int64),
        ("score", DataType::Float64),
        ("status", DataType::Utf8),
        ("reason", DataType::Utf8),
        ("position", DataType::Int64),
        ("tokens", DataType::Int64),
    ];
    // Nullable, as engines declare their columns: tables of different engines have equal schemas.
    types
        .map(|(name, data_type)| Field::new(name, data_type, true))
        .into()
}

/// Builds the columns of [`fields`], one row per item.
pub(crate) struct DecisionColumns {
    index: Int64Builder,
    rank: Int64Builder,
    score: Float64Builder,
    status: StringBuilder,
    reason: StringBuilder,
    position: Int64Builder,
    tokens: Int64Builder,
}

impl DecisionColumns {
    /// Creates empty columns with room for `rows`.
    pub(crate) fn with_capacity(rows: usize) -> Self {
        let integers = || Int64Builder::with_capacity(rows);
        let strings = || StringBuilder::with_capacity(rows, rows * 16);
        Self {
            index: integers(),
            rank: integers(),
            score: Float64Builder::with_capacity(rows),
            status: strings(),
            reason: strings(),
            position: integers(),
            tokens: integers(),
        }
    }

    /// Appends one row per item of a run, in the order of the input.
    pub(crate) fn append(&mut self, decisions: &Decisions<'_>) {
        for candidate in 0..decisions.items().len() {
            let (rank, score) = (decisions.rank(candidate), decisions.score(candidate));
            let place = (candidate, rank, score);
            let position = decisions.position(candidate);
            let tokens = decisions.item(candidate).tokens();
            if let Some(reason) = decisions.inclusion(candidate) {
                self.append_row(place, "included", reason.name(), position, tokens);
            } else if let Some(reason) = decisions.exclusion(candidate) {
                self.append_row(place, "excluded", reason.name(), position, tokens);
            }
        }
    }

    /// Appends one row: position, rank and score of an item, and what was decided about it.
    pub(crate) fn append_row(
        &mut self,
        (index, rank, score): (usize, Option<usize>, f64),
        status: &str,
        reason: &str,
        position: Option<usize>,
        tokens: i64,
    ) {
        self.index.append_value(number(index));
        self.rank.append_option(rank.map(number));
        self.score.append_value(score);
        self.status.append_value(status);
        self.reason.append_value(reason);
        self.position.append_option(position.map(number));
        self.tokens.append_value(tokens);
    }

    /// Appends the row of a request that failed: status `error`, the text as reason, and the position of
    /// the item if one caused it.
    pub(crate) fn append_error(&mut self, index: Option<usize>, text: &str) {
        self.index.append_option(index.map(number));
        self.rank.append_null();
        self.score.append_null();
        self.status.append_value("error");
        self.reason.append_value(text);
        self.position.append_null();
        self.tokens.append_null();
    }

    /// Returns the columns, in the order of [`fields`].
    pub(crate) fn finish(mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.index.finish()),
            Arc::new(self.rank.finish()),
            Arc::new(self.score.finish()),
            Arc::new(self.status.finish()),
            Arc::new(self.reason.finish()),
            Arc::new(self.position.finish()),
            Arc::new(self.tokens.finish()),
        ]
    }
}

fn number(position: usize) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}
