//! Runs the policy over the requests of a segment.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_schema::SchemaRef;
use arrow_select::take::take;
use cupel::{
    ContextBudget, ContextItem, ContextKind, ContextSource, ContextView, CupelError, Policy,
};
use cupel_chat::TokenCounter;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use super::layout::{Batch, CellError, named};
use crate::columns::DecisionColumns;
use crate::error::{self, Fault};
use crate::strategy::take_raised;

/// What every request is run with.
pub(super) struct Settings {
    pub(super) policy: Policy,
    pub(super) policy_name: String,
    pub(super) needs_query: bool,
    pub(super) budget: Option<ContextBudget>,
    pub(super) query: Option<String>,
    pub(super) counter: Arc<dyn TokenCounter>,
    /// Whether a failed request is a row of the result.
    pub(super) reports_errors: bool,
    pub(super) schema: SchemaRef,
}

/// Why a request failed.
#[derive(Debug)]
pub(super) struct RequestError {
    /// The request and the value at fault: `request "r17", items[3].tokens`.
    place: String,
    item: Option<usize>,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Input(String),
    Run(CupelError),
    /// What a Python strategy raised.
    Raised(PyErr),
}

impl RequestError {
    /// Returns the exception. One that a strategy raised is returned unchanged, with the request as a note.
    pub(super) fn into_exception(self, py: Python<'_>) -> PyErr {
        match self.cause {
            Cause::Input(message) => Fault::new(self.place, message).into(),
            Cause::Run(error) => error::run_at(error, &self.place),
            Cause::Raised(error) => {
                // A note is a help, and an exception without it is still the right one.
                let _ = error.value(py).call_method1("add_note", (self.place,));
                error
            }
        }
    }

    /// Returns whether it may be a row of the result. An interruption such as Ctrl-C ends the stream.
    fn is_reportable(&self) -> bool {
        match &self.cause {
            Cause::Raised(error) => Python::attach(|py| error.is_instance_of::<PyException>(py)),
            _ => true,
        }
    }
}

impl std::fmt::Display for RequestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.place)?;
        match &self.cause {
            Cause::Input(message) => f.write_str(message),
            Cause::Run(error) => error.fmt(f),
            Cause::Raised(error) => error.fmt(f),
        }
    }
}

/// An error before its request is named.
struct Unnamed {
    path: Option<String>,
    item: Option<usize>,
    cause: Cause,
}

impl From<String> for Unnamed {
    fn from(message: String) -> Self {
        Self {
            path: None,
            item: None,
            cause: Cause::Input(message),
        }
    }
}

impl From<&str> for Unnamed {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl From<CupelError> for Unnamed {
    fn from(error: CupelError) -> Self {
        Self {
            path: None,
            item: None,
            cause: take_raised().map_or(Cause::Run(error), Cause::Raised),
        }
    }
}

impl From<CellError> for Unnamed {
    fn from(error: CellError) -> Self {
        let item = error.item;
        Self {
            path: Some(match error.field {
                Some(field) => format!("items[{item}].{field}"),
                None => format!("items[{item}]"),
            }),
            item: Some(item),
            cause: Cause::Input(error.message),
        }
    }
}

impl Settings {
    /// Runs the policy over some requests of a batch and returns their decisions as a batch.
    pub(super) fn run(
        &self,
        batch: &Batch<'_>,
        requests: Range<usize>,
        items: usize,
    ) -> Result<RecordBatch, RequestError> {
        let mut columns = DecisionColumns::with_capacity(items);
        let mut ids = Vec::with_capacity(items);
        for request in requests {
            let row = batch.row(request);
            let rows = match self.select(batch, request, &mut columns) {
                Ok(rows) => rows,
                Err(error) => {
                    let request = named(batch.ids, row);
                    let error = RequestError {
                        place: match error.path {
                            Some(path) => format!("{request}, {path}"),
                            None => request,
                        },
                        item: error.item,
                        cause: error.cause,
                    };
                    if !self.reports_errors || !error.is_reportable() {
                        return Err(error);
                    }
                    columns.append_error(error.item, &error.to_string());
                    1
                }
            };
            ids.extend(std::iter::repeat_n(row as u64, rows));
        }
        let ids = take(batch.ids, &UInt64Array::from(ids), None).expect("rows are in range");
        let mut arrays = vec![ids];
        arrays.extend(columns.finish());
        Ok(RecordBatch::try_new(self.schema.clone(), arrays).expect("columns match the schema"))
    }

    /// Runs the policy over one request, appends its decisions and returns their number.
    fn select(
        &self,
        batch: &Batch<'_>,
        request: usize,
        columns: &mut DecisionColumns,
    ) -> Result<usize, Unnamed> {
        let len = batch.len(request)?;
        let items: Result<Vec<ContextItem>, CellError> =
            (0..len).map(|at| self.item(batch, request, at)).collect();
        let items = items?;
        let budget = match (batch.budget(request)?, &self.budget) {
            (Some(tokens), Some(budget)) => &budget.with_limits(tokens, tokens)?,
            (Some(tokens), None) => &ContextBudget::try_from(tokens)?,
            (None, Some(budget)) => budget,
            (None, None) => return Err("missing budget".into()),
        };
        if self.needs_query {
            let query = batch.query(request)?.or(self.query.as_deref());
            let query =
                query.ok_or_else(|| format!("the policy {} needs a query", self.policy_name))?;
            let policy = self.policy.with_query(query);
            columns.append(&policy.decide(&items, budget)?);
        } else {
            columns.append(&self.policy.decide(&items, budget)?);
        }
        Ok(len)
    }

    fn item(&self, batch: &Batch<'_>, request: usize, at: usize) -> Result<ContextItem, CellError> {
        /// Returns the value of a column; `None` if it is null or the column is absent.
        macro_rules! value {
            ($column:ident) => {
                match &batch.$column {
                    Some(column) => column.get(request, at)?,
                    None => None,
                }
            };
        }
        let invalid = |field, message: String| CellError {
            item: at,
            field: Some(field),
            message,
        };
        if batch.is_null(request, at) {
            return Err(CellError {
                item: at,
                field: None,
                message: "the item is null".to_owned(),
            });
        }
        let content = match (&batch.content, value!(content)) {
            (_, Some(content)) => content.to_owned(),
            (Some(_), None) => return Err(invalid("content", "missing".to_owned())),
            // Without texts every item has a content of its own, so that none is a duplicate.
            (None, None) => at.to_string(),
        };
        let tokens = match value!(tokens) {
            Some(tokens) => tokens,
            None if batch.content.is_some() => self.counter.count(&content),
            None => {
                return Err(invalid(
                    "tokens",
                    "missing, and there is no content to count".to_owned(),
                ));
            }
        };
        let mut item = ContextItem::builder(content, tokens);
        if let Some(kind) = value!(kind) {
            let kind = ContextKind::new(kind);
            item = item.kind(kind.map_err(|error| invalid("kind", error.to_string()))?);
        }
        if let Some(source) = value!(source) {
            let source = ContextSource::new(source);
            item = item.source(source.map_err(|error| invalid("source", error.to_string()))?);
        }
        /// Sets the fields of the item that have a value.
        macro_rules! set {
            ($($field:ident),*) => {
                $(if let Some(value) = value!($field) {
                    item = item.$field(value);
                })*
            };
        }
        set!(
            priority,
            tags,
            metadata,
            timestamp,
            future_relevance_hint,
            pinned,
            original_tokens
        );
        for view in value!(views).into_iter().flatten() {
            let tokens = view
                .tokens
                .unwrap_or_else(|| self.counter.count(view.content));
            let mut short = ContextView::new(view.content, tokens);
            if let Some(level) = view.level {
                short = short.with_level(level);
            }
            if let Some(value) = view.value {
                short = short.with_value(value);
            }
            item = item.view(short);
        }
        item.build().map_err(|error| {
            let field = match error {
                CupelError::InvalidView(_) => "views",
                _ => "content",
            };
            invalid(field, error.to_string())
        })
    }
}
