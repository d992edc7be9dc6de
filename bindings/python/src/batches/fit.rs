//! `fit_batches`: fits the requests of an Arrow stream, one per row.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::builder::{Float64Builder, Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{Array, ArrayRef, RecordBatch, new_empty_array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use cupel_app::{Continued, Conversations, FittedRequest, Options, Source as Text, fit_request};
use cupel_eval::Prices;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString};
use rayon::ThreadPool;
use rayon::prelude::*;

use super::export::{Export, Failure, Pull};
use super::layout::{id_text, list, same_column, wrong_type};
use super::source::Source;
use super::thread_count;
use super::values::{Values, Writer, bytes, integers, json, orders, strings};
use crate::counter::PyCounter;
use crate::error::{Fault, notice_text};
use crate::options;
use crate::strategy::take_raised;
use crate::threads;

/// The rows that are fitted together, on all cores. It bounds the memory: fitted requests and answers of so many rows
/// are held.
const WINDOW_ROWS: usize = 1 << 10;
/// The most rows of a batch of the result.
const PIECE_ROWS: usize = 1 << 8;
/// The bytes of fitted requests after which a batch of the result ends. The offsets of its texts have 32 bits.
const REQUEST_BYTES: usize = 1 << 28;

/// What a column of the input is read as, besides the request.
const ROLES: [&str; 5] = ["request", "budget", "model", "conversation", "order"];

/// The columns of the input that are read.
struct Plan {
    /// By role; `None` for one that the input lacks. The request is always there.
    roles: [Option<(usize, Field)>; ROLES.len()],
    /// The columns that are copied to the result.
    copied: Vec<(usize, Field)>,
}

impl Plan {
    /// Finds the columns in a schema and checks their types.
    fn new(
        schema: &Schema,
        named: &[(String, Option<String>)],
        keep: Option<&[String]>,
        with_request: bool,
    ) -> Result<Self, Fault> {
        let find = |name: &str| {
            let found = schema.column_with_name(name);
            found.map(|(at, field)| (at, field.clone()))
        };
        let all: Vec<&str> = schema
            .fields()
            .iter()
            .map(|it| it.name().as_str())
            .collect();
        let missing = |name: &str| format!("missing column `{name}`; the data has {}", list(&all));
        let mut roles = [const { None }; ROLES.len()];
        for (role, found) in ROLES.iter().zip(&mut roles) {
            let given = named.iter().find(|(name, _)| name == role);
            *found = match given {
                None => find(role),
                Some((_, None)) => None,
                Some((_, Some(name))) => {
                    let column = find(name);
                    Some(column.ok_or_else(|| Fault::new("columns", missing(name)))?)
                }
            };
        }
        let Some((request, _)) = &roles[0] else {
            let hint = "name the column of the requests: columns={\"request\": \"...\"}";
            return Err(Fault::new("data", missing(ROLES[0])).help(hint));
        };
        let copied: Vec<(usize, Field)> = match keep {
            Some(keep) => keep
                .iter()
                .map(|name| find(name).ok_or_else(|| Fault::new("keep", missing(name))))
                .collect::<Result<_, _>>()?,
            None => {
                let fields = schema.fields().iter().enumerate();
                let others = fields.filter(|(at, _)| at != request);
                others.map(|(at, field)| (at, (**field).clone())).collect()
            }
        };
        let own = result_fields(with_request);
        let is_own = |name: &str| own.iter().any(|field| field.name() == name);
        if let Some((_, taken)) = copied.iter().find(|(_, field)| is_own(field.name())) {
            let message = format!("the result has a column `{}` of its own", taken.name());
            return Err(Fault::new("keep", message)
                .help("rename the column, or name those to copy: keep=[\"id\"]"));
        }
        let plan = Self { roles, copied };
        let empty = plan
            .fields()
            .map(|field| new_empty_array(field.data_type()));
        let empty: Vec<ArrayRef> = empty.collect();
        Rows::new(&plan, &empty).map_err(|message| {
            Fault::new("data", message).help("a column without this use: columns={\"NAME\": None}")
        })?;
        Ok(plan)
    }

    /// Returns the columns of a piece: those with a role, then those that are copied.
    fn columns(&self) -> impl Iterator<Item = &(usize, Field)> {
        self.roles.iter().flatten().chain(&self.copied)
    }

    fn fields(&self) -> impl Iterator<Item = &Field> {
        self.columns().map(|(_, field)| field)
    }

    /// Returns the columns of a batch that are read or copied.
    fn project(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>, String> {
        let columns = self.columns();
        columns
            .map(|(at, field)| same_column(batch, *at, field))
            .collect()
    }

    /// Returns the column of a role in projected columns.
    fn column<'a>(&self, columns: &'a [ArrayRef], role: usize) -> Option<&'a dyn Array> {
        self.roles[role].as_ref()?;
        let at = self.roles[..role].iter().flatten().count();
        Some(columns[at].as_ref())
    }

    fn copied<'a>(&self, columns: &'a [ArrayRef]) -> &'a [ArrayRef] {
        &columns[columns.len() - self.copied.len()..]
    }
}

/// The requests of a column.
enum Requests<'a> {
    Text(Values<'a, &'a str>),
    Bytes(Values<'a, &'a [u8]>),
    /// Structs and lists of them, which are written as JSON.
    Json(Writer<'a>),
}

/// The budgets of a column.
enum Budgets<'a> {
    Tokens(Values<'a, i64>),
    /// Such as `8k` or `50%`.
    Text(Values<'a, &'a str>),
}

/// The rows of a piece, ready to be read.
struct Rows<'a> {
    requests: Requests<'a>,
    budgets: Option<Budgets<'a>>,
    models: Option<Values<'a, &'a str>>,
    conversations: Option<&'a dyn Array>,
    orders: Option<Values<'a, i64>>,
}

impl<'a> Rows<'a> {
    fn new(plan: &Plan, columns: &'a [ArrayRef]) -> Result<Self, String> {
        let [request, budget, model, conversation, order] =
            std::array::from_fn(|role| plan.column(columns, role));
        let invalid = |role: usize, array: &dyn Array, expected: &str| {
            let field = plan.roles[role].as_ref().map(|(_, field)| field.name());
            wrong_type(field.map_or("", |name| name), array.data_type(), expected)
        };
        let request = request.ok_or("missing requests")?;
        let requests = strings(request)
            .map(Requests::Text)
            .or_else(|| bytes(request).map(Requests::Bytes))
            .or_else(|| json(request).map(Requests::Json))
            .ok_or_else(|| invalid(0, request, "JSON text, or structs or lists of messages"))?;
        let budgets = budget.map(|array| {
            strings(array)
                .map(Budgets::Text)
                .or_else(|| integers(array).map(Budgets::Tokens))
                .ok_or_else(|| invalid(1, array, "integers, or strings such as 8k"))
        });
        let models = model.map(|array| strings(array).ok_or_else(|| invalid(2, array, "strings")));
        let orders = order.map(|array| {
            orders(array).ok_or_else(|| invalid(4, array, "integers, timestamps or dates"))
        });
        Ok(Self {
            requests,
            budgets: budgets.transpose()?,
            models: models.transpose()?,
            conversations: conversation,
            orders: orders.transpose()?,
        })
    }

    /// Returns the request of a row as JSON.
    fn request(&self, row: usize) -> Result<Text, Fault> {
        const NAME: &str = "request";
        let text = match &self.requests {
            Requests::Text(texts) => cell(NAME, texts(row))?.map(|text| Text::new(NAME, text)),
            Requests::Bytes(bytes) => match cell(NAME, bytes(row))? {
                Some(bytes) => Some(Text::from_bytes(NAME, bytes.to_vec())?),
                None => None,
            },
            Requests::Json(write) => {
                let mut text = String::new();
                let is_value = write(row, &mut text).map_err(|it| Fault::new(NAME, it))?;
                is_value.then(|| Text::new(NAME, text))
            }
        };
        let text = text.ok_or_else(|| Fault::new("", "the request is null"))?;
        if text.text.trim().is_empty() {
            return Err(Fault::new("", "the request is empty"));
        }
        Ok(text)
    }

    /// Returns the options of a row: those of the call, with its budget and its model.
    fn options<'o>(&self, row: usize, options: &'o Options) -> Result<Cow<'o, Options>, Fault> {
        let budget = match &self.budgets {
            Some(Budgets::Tokens(tokens)) => {
                cell(ROLES[1], tokens(row))?.map(|tokens| tokens.to_string())
            }
            Some(Budgets::Text(texts)) => cell(ROLES[1], texts(row))?.map(str::to_owned),
            None => None,
        };
        let model = self.models.as_ref().map_or(Ok(None), |models| models(row));
        let model = cell(ROLES[2], model)?;
        if budget.is_none() && model.is_none() {
            return Ok(Cow::Borrowed(options));
        }
        let mut own = options.clone();
        if let Some(budget) = budget {
            own.budget.budget = Some(budget.into());
        }
        if let Some(model) = model {
            own.budget.model = Some(model.to_owned());
        }
        Ok(Cow::Owned(own))
    }

    /// Returns the conversation of a row.
    fn conversation(&self, row: usize) -> Option<String> {
        let array = self.conversations.filter(|array| !array.is_null(row))?;
        Some(id_text(array, row))
    }

    /// Returns the place of a row in its conversation.
    fn order(&self, row: usize) -> Result<Option<i64>, Fault> {
        let orders = self.orders.as_ref();
        cell(ROLES[4], orders.map_or(Ok(None), |orders| orders(row)))
    }
}

/// Names the column of an invalid cell.
fn cell<T>(column: &str, value: Result<T, String>) -> Result<T, Fault> {
    value.map_err(|message| Fault::new(column, message))
}

/// What every row is fitted with.
struct Settings {
    options: Options,
    /// The counter of the caller, which is also that of the options.
    counter: Option<Arc<PyCounter>>,
    prices: Prices,
    with_request: bool,
    stops_at_errors: bool,
    schema: SchemaRef,
}

/// A row that was fitted, before it is compared with the previous one of its conversation.
struct FittedRow {
    fitted: FittedRequest,
    conversation: Option<String>,
    order: Option<i64>,
}

/// Why a row has no window.
enum Refused {
    Fault(Fault),
    /// What Python code of the caller raised.
    Raised(PyErr),
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Refused {
    /// Returns whether it may be a row of the result. An interruption such as Ctrl-C ends the stream.
    fn is_reportable(&self) -> bool {
        match self {
            Self::Fault(_) => true,
            Self::Raised(error) => Python::attach(|py| error.is_instance_of::<PyException>(py)),
        }
    }
}

/// A row that ends the stream, by its position in the stream.
pub(super) struct RowError {
    row: u64,
    refused: Refused,
}

impl RowError {
    /// Returns the exception. One that Python code of the caller raised is returned unchanged, with the row as a note.
    pub(super) fn into_exception(self, py: Python<'_>) -> PyErr {
        match self.refused {
            Refused::Fault(fault) => fault.in_row(self.row).into(),
            Refused::Raised(error) => {
                // A note is a help, and an exception without it is still the right one.
                let _ = error
                    .value(py)
                    .call_method1("add_note", (format!("row {}", self.row),));
                error
            }
        }
    }
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}", self.row)?;
        match &self.refused {
            Refused::Fault(fault) => {
                if let Some(place) = fault.place() {
                    write!(f, ", {place}")?;
                }
                write!(f, ": {}", fault.message())
            }
            Refused::Raised(error) => write!(f, ": {error}"),
        }
    }
}

impl Settings {
    fn fit(&self, rows: &Rows<'_>, row: usize) -> Result<FittedRow, Refused> {
        let (conversation, order) = (rows.conversation(row), rows.order(row)?);
        let text = rows.request(row)?;
        let mut options = rows.options(row, &self.options)?;
        let counter = self.counter.as_ref().map(|it| it.for_another_call());
        if let Some(counter) = &counter {
            options.to_mut().counter.counter = Some(Arc::clone(counter) as Arc<_>);
        }
        let fitted = fit_request(text, &options, self.with_request);
        // A counter that raised has counted 0 since, so that what was fitted with it is of no use.
        if let Some(raised) = counter.and_then(|it| it.take_raised()) {
            return Err(Refused::Raised(raised));
        }
        let fitted = fitted.map_err(|error| match take_raised() {
            Some(raised) => Refused::Raised(raised),
            None => Refused::Fault(error.into()),
        })?;
        let length = fitted.request.as_ref().map_or(0, String::len);
        if i32::try_from(length).is_err() {
            return Err(Fault::new("", "the fitted request has 2 GiB or more").into());
        }
        Ok(FittedRow {
            fitted,
            conversation,
            order,
        })
    }
}

/// Sums over the rows so far.
#[derive(Clone, Default)]
struct Summary {
    rows: u64,
    failed: u64,
    out_of_order: u64,
    forgotten: u64,
    tokens_before: i64,
    tokens_after: i64,
    reused_tokens: i64,
    cost: f64,
    /// The first row that failed, as a sentence.
    first_failure: Option<String>,
}

impl Summary {
    /// Returns what to warn of at the end.
    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let all = self.rows;
        if let Some(first) = &self.first_failure {
            let failed = self.failed;
            warnings.push(format!(
                "{failed} of {all} requests could not be fitted; the first: {first}"
            ));
        }
        if self.out_of_order > 0 {
            let late = self.out_of_order;
            warnings.push(format!(
                "{late} of {all} requests came after a later one of their conversation, so that their reuse is unknown; sort the rows by conversation and order"
            ));
        }
        if self.forgotten > 0 {
            let forgotten = self.forgotten;
            warnings.push(format!(
                "the previous requests of {forgotten} of {all} requests were forgotten, so that their reuse is unknown; sort the rows by conversation"
            ));
        }
        warnings
    }
}

const OUT_OF_ORDER: &str =
    "the row comes after a later one of its conversation, so that its reuse is unknown";
const FORGOTTEN: &str = "the previous request of the conversation was forgotten, because too many others came between, so that its reuse is unknown";

/// Returns the fields of the result, without those that are copied.
fn result_fields(with_request: bool) -> Vec<Field> {
    let list_of = |data_type| DataType::List(Arc::new(Field::new_list_field(data_type, true)));
    let mut fields = vec![
        ("tokens_before", DataType::Int64),
        ("tokens_after", DataType::Int64),
        ("kept", DataType::Int64),
        ("dropped", DataType::Int64),
        ("shortened", DataType::Int64),
        ("kept_indices", list_of(DataType::Int64)),
        ("dropped_indices", list_of(DataType::Int64)),
        ("reasons", list_of(DataType::Utf8)),
        ("shortened_indices", list_of(DataType::Int64)),
        ("reused_tokens", DataType::Int64),
        ("reused_share", DataType::Float64),
        ("cost", DataType::Float64),
        ("warnings", list_of(DataType::Utf8)),
        ("error_code", DataType::Utf8),
        ("error", DataType::Utf8),
        ("error_place", DataType::Utf8),
    ];
    if with_request {
        fields.push(("request", DataType::Utf8));
    }
    // Nullable, as engines declare their columns: tables of different engines have equal schemas.
    let fields = fields.into_iter();
    fields
        .map(|(name, data_type)| Field::new(name, data_type, true))
        .collect()
}

/// Builds the columns of [`result_fields`], one row per request.
#[derive(Default)]
struct Columns {
    /// Tokens before and after; kept, dropped and shortened messages.
    figures: [Int64Builder; 5],
    kept: ListBuilder<Int64Builder>,
    dropped: ListBuilder<Int64Builder>,
    reasons: ListBuilder<StringBuilder>,
    shortened: ListBuilder<Int64Builder>,
    reused_tokens: Int64Builder,
    reused_share: Float64Builder,
    cost: Float64Builder,
    warnings: ListBuilder<StringBuilder>,
    /// Code, text and place.
    error: [StringBuilder; 3],
    request: StringBuilder,
    rows: usize,
    request_bytes: usize,
}

impl Columns {
    fn push(&mut self, row: FittedRow, settings: &Settings, log: &mut Log<'_>) {
        let FittedRow {
            fitted,
            conversation,
            order,
        } = row;
        let answer = &fitted.answer;
        let counts = [
            answer.kept.len(),
            answer.dropped.len(),
            answer.shortened.len(),
        ];
        let counts = counts.map(number);
        let figures = [answer.tokens_before, answer.tokens_after]
            .into_iter()
            .chain(counts);
        for (column, figure) in self.figures.iter_mut().zip(figures) {
            column.append_value(figure);
        }
        let indices = |all: &[usize]| all.iter().map(|it| Some(number(*it))).collect::<Vec<_>>();
        self.kept.append_value(indices(&answer.kept));
        let dropped: Vec<usize> = answer.dropped.iter().map(|it| it.index).collect();
        self.dropped.append_value(indices(&dropped));
        let reasons = answer.dropped.iter().map(|it| Some(it.reason.name()));
        self.reasons.append_value(reasons);
        let shortened: Vec<usize> = answer.shortened.iter().map(|it| it.index).collect();
        self.shortened.append_value(indices(&shortened));

        let mut warnings: Vec<Option<String>> = fitted
            .notices
            .iter()
            .map(|it| Some(notice_text(it)))
            .collect();
        let continued = conversation.as_deref().zip(fitted.sent);
        let continued = continued.map(|(name, sent)| log.conversations.push(name, order, sent));
        let summary = &mut *log.summary;
        let reuse = match continued {
            Some(Continued::Reuse(reuse)) => Some(reuse),
            Some(Continued::OutOfOrder) => {
                summary.out_of_order += 1;
                warnings.push(Some(OUT_OF_ORDER.to_owned()));
                None
            }
            Some(Continued::Forgotten) => {
                summary.forgotten += 1;
                warnings.push(Some(FORGOTTEN.to_owned()));
                None
            }
            Some(Continued::First) | None => None,
        };
        let reused = reuse.map(|reuse| reuse.tokens);
        let cost = settings
            .prices
            .price(answer.tokens_after, reused.unwrap_or(0));
        self.reused_tokens.append_option(reused);
        self.reused_share
            .append_option(reuse.map(|reuse| reuse.share));
        self.cost.append_value(cost);
        self.warnings.append_value(warnings);
        for column in &mut self.error {
            column.append_null();
        }
        self.request.append_option(fitted.request.as_deref());
        self.request_bytes += fitted.request.as_ref().map_or(0, String::len);
        self.rows += 1;

        summary.tokens_before = summary.tokens_before.saturating_add(answer.tokens_before);
        summary.tokens_after = summary.tokens_after.saturating_add(answer.tokens_after);
        summary.reused_tokens = summary.reused_tokens.saturating_add(reused.unwrap_or(0));
        summary.cost += cost;
    }

    fn push_error(&mut self, refused: &Refused) {
        for column in &mut self.figures {
            column.append_null();
        }
        for column in [&mut self.kept, &mut self.dropped, &mut self.shortened] {
            column.append_null();
        }
        for column in [&mut self.reasons, &mut self.warnings] {
            column.append_null();
        }
        self.reused_tokens.append_null();
        self.reused_share.append_null();
        self.cost.append_null();
        self.request.append_null();
        let [code, text, place] = &mut self.error;
        match refused {
            Refused::Fault(fault) => {
                code.append_value(fault.kind());
                text.append_value(fault.message());
                place.append_option(fault.place());
            }
            Refused::Raised(error) => {
                code.append_value("exception");
                text.append_value(error.to_string());
                place.append_null();
            }
        }
        self.rows += 1;
    }

    /// Returns the batch of the rows so far, after the copied columns of the same rows.
    fn finish(&mut self, copied: Vec<ArrayRef>, settings: &Settings) -> RecordBatch {
        let Self {
            mut figures,
            mut kept,
            mut dropped,
            mut reasons,
            mut shortened,
            mut reused_tokens,
            mut reused_share,
            mut cost,
            mut warnings,
            mut error,
            mut request,
            ..
        } = std::mem::take(self);
        let mut columns = copied;
        columns.extend(
            figures
                .iter_mut()
                .map(|it| Arc::new(it.finish()) as ArrayRef),
        );
        columns.push(Arc::new(kept.finish()));
        columns.push(Arc::new(dropped.finish()));
        columns.push(Arc::new(reasons.finish()));
        columns.push(Arc::new(shortened.finish()));
        columns.push(Arc::new(reused_tokens.finish()));
        columns.push(Arc::new(reused_share.finish()));
        columns.push(Arc::new(cost.finish()));
        columns.push(Arc::new(warnings.finish()));
        columns.extend(error.iter_mut().map(|it| Arc::new(it.finish()) as ArrayRef));
        if settings.with_request {
            columns.push(Arc::new(request.finish()));
        }
        RecordBatch::try_new(settings.schema.clone(), columns).expect("columns match the schema")
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// What is known of the rows before.
struct Log<'l> {
    conversations: &'l mut Conversations,
    summary: &'l mut Summary,
}

/// Pulls batches, fits their rows on all cores and returns the figures in order.
struct Stream {
    source: Source,
    plan: Option<Plan>,
    settings: Settings,
    pool: Arc<ThreadPool>,
    /// Columns of a batch that are not fitted yet, at most [`PIECE_ROWS`] rows each.
    pieces: VecDeque<Vec<ArrayRef>>,
    ready: VecDeque<RecordBatch>,
    conversations: Conversations,
    summary: Summary,
    /// The summary of the batches so far, for the caller. It is locked for a copy only: a thread that waits for it may
    /// hold the GIL, which this one may need for a callable.
    published: Arc<Mutex<Summary>>,
    /// Returned after the batches that are ready.
    failure: Option<Failure>,
    is_at_end: bool,
    has_warned: bool,
}

impl Pull for Stream {
    fn schema(&self) -> SchemaRef {
        self.settings.schema.clone()
    }

    fn fail(&mut self, failure: Failure) {
        self.pieces.clear();
        self.failure = Some(failure);
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>, Failure> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            // A failure of the source comes after the rows before it.
            if self.pieces.is_empty() {
                if let Some(failure) = self.failure.take() {
                    self.is_at_end = true;
                    return Err(failure);
                }
                if self.is_at_end {
                    return Ok(None);
                }
            }
            self.gather();
            self.fit();
            lock(&self.published).clone_from(&self.summary);
        }
    }

    fn warnings(&mut self) -> Vec<String> {
        if std::mem::replace(&mut self.has_warned, true) {
            return Vec::new();
        }
        self.summary.warnings()
    }
}

impl Stream {
    /// Pulls batches until there is enough to do for all cores.
    fn gather(&mut self) {
        let Some(plan) = &self.plan else {
            self.is_at_end = true;
            return;
        };
        let mut rows: usize = self.pieces.iter().map(|piece| piece[0].len()).sum();
        while rows < WINDOW_ROWS && self.failure.is_none() && !self.is_at_end {
            let batch = match self.source.next() {
                Ok(Some(batch)) => batch,
                Ok(None) => {
                    self.is_at_end = true;
                    return;
                }
                Err(error) => {
                    self.failure = Some(Failure::Source(error));
                    return;
                }
            };
            match plan.project(&batch) {
                Ok(columns) => {
                    rows += batch.num_rows();
                    for start in (0..batch.num_rows()).step_by(PIECE_ROWS) {
                        let len = PIECE_ROWS.min(batch.num_rows() - start);
                        self.pieces.push_back(slice(&columns, start, len));
                    }
                }
                Err(text) => self.failure = Some(Failure::Input(text)),
            }
        }
    }

    /// Fits the next pieces.
    fn fit(&mut self) {
        let Some(plan) = &self.plan else { return };
        // A batch of the input may have more rows than a window.
        let mut rows = 0;
        let mut pieces: Vec<Vec<ArrayRef>> = Vec::new();
        while rows < WINDOW_ROWS
            && let Some(piece) = self.pieces.pop_front()
        {
            rows += piece[0].len();
            pieces.push(piece);
        }
        let settings = &self.settings;
        let fitted = self.pool.install(|| {
            let read = pieces.iter().map(|piece| Rows::new(plan, piece));
            let read: Vec<Rows<'_>> = read.collect::<Result<_, String>>()?;
            let all = read.iter().zip(&pieces);
            let all: Vec<(&Rows<'_>, usize)> = all
                .flat_map(|(rows, piece)| (0..piece[0].len()).map(move |row| (rows, row)))
                .collect();
            let fitted = all.par_iter().map(|(rows, row)| settings.fit(rows, *row));
            Ok::<Vec<_>, String>(fitted.collect())
        });
        let mut fitted = match fitted {
            Ok(fitted) => fitted.into_iter(),
            Err(text) => {
                self.failure = Some(Failure::Input(text));
                return;
            }
        };
        let summary = &mut self.summary;
        for piece in &pieces {
            let copied = plan.copied(piece);
            let mut columns = Columns::default();
            // The first row of the piece that is not in a batch yet.
            let mut start = 0;
            for row in fitted.by_ref().take(piece[0].len()) {
                match row {
                    Ok(row) => {
                        let mut log = Log {
                            conversations: &mut self.conversations,
                            summary,
                        };
                        columns.push(row, settings, &mut log);
                    }
                    Err(refused) => {
                        let stops = settings.stops_at_errors || !refused.is_reportable();
                        let error = RowError {
                            row: summary.rows,
                            refused,
                        };
                        if stops {
                            let copied = slice(copied, start, columns.rows);
                            self.ready.push_back(columns.finish(copied, settings));
                            self.pieces.clear();
                            self.failure = Some(Failure::Row(error));
                            return;
                        }
                        summary.failed += 1;
                        if summary.first_failure.is_none() {
                            summary.first_failure = Some(error.to_string());
                        }
                        columns.push_error(&error.refused);
                    }
                }
                summary.rows += 1;
                if columns.request_bytes >= REQUEST_BYTES {
                    let rows = columns.rows;
                    let copied = slice(copied, start, rows);
                    self.ready.push_back(columns.finish(copied, settings));
                    start += rows;
                }
            }
            if columns.rows > 0 {
                let copied = slice(copied, start, columns.rows);
                self.ready.push_back(columns.finish(copied, settings));
            }
        }
    }
}

fn slice(columns: &[ArrayRef], start: usize, len: usize) -> Vec<ArrayRef> {
    columns
        .iter()
        .map(|column| column.slice(start, len))
        .collect()
}

fn lock(summary: &Mutex<Summary>) -> MutexGuard<'_, Summary> {
    summary.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fits the requests of a table. The arguments are those of `cupel.fit_batches`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn fit_batches(
    data: &Bound<'_, PyAny>,
    parameters: &Bound<'_, PyDict>,
    others: &Bound<'_, PyDict>,
    columns: Option<Vec<(String, Option<String>)>>,
    keep: Option<Vec<String>>,
    request: bool,
    prices: &Bound<'_, PyAny>,
    on_error: &str,
    threads: Option<&Bound<'_, PyAny>>,
) -> PyResult<FittedBatches> {
    let given = options::read(parameters, others)?;
    given.options.check().map_err(|error| given.error(error))?;
    if given.summarize.is_some() {
        let fault = Fault::new(
            "summarize",
            "the requests of a log are fitted without summaries",
        );
        return Err(fault.help("leave it out").into());
    }
    let prices = read_prices(prices)?;
    let stops_at_errors = match on_error {
        "raise" => true,
        "report" => false,
        other => {
            let message = format!("expected \"raise\" or \"report\", got {other:?}");
            return Err(Fault::new("on_error", message).into());
        }
    };
    let columns = columns.unwrap_or_default();
    if let Some((role, _)) = columns.iter().find(|(role, _)| !ROLES.contains(&&**role)) {
        let message = format!("unknown use `{role}`; expected one of {}", ROLES.join(", "));
        return Err(Fault::new("columns", message).into());
    }
    let threads = threads.map(thread_count).transpose()?;
    let pool = threads::pool(threads).map_err(|fault| Fault::new("threads", fault.to_string()))?;
    let source = Source::new(data)?;
    let plan = source
        .schema()
        .map(|schema| Plan::new(&schema, &columns, keep.as_deref(), request))
        .transpose()?;
    let copied = plan.iter().flat_map(|plan| &plan.copied);
    let fields = copied.map(|(_, field)| field.clone());
    let fields: Vec<Field> = fields.chain(result_fields(request)).collect();
    let published = Arc::new(Mutex::new(Summary::default()));
    let stream = Stream {
        source,
        plan,
        settings: Settings {
            options: given.options,
            counter: given.counter,
            prices,
            with_request: request,
            stops_at_errors,
            schema: Arc::new(Schema::new(fields)),
        },
        pool,
        pieces: VecDeque::new(),
        ready: VecDeque::new(),
        conversations: Conversations::default(),
        summary: Summary::default(),
        published: Arc::clone(&published),
        failure: None,
        is_at_end: false,
        has_warned: false,
    };
    Ok(FittedBatches {
        export: Export::new("fit_batches", stream),
        published,
    })
}

/// Reads prices: the name of a provider, or the prices of a read and a written token.
fn read_prices(value: &Bound<'_, PyAny>) -> PyResult<Prices> {
    let text = match (value.cast::<PyString>(), value.extract::<(f64, f64)>()) {
        (Ok(name), _) => name.to_str()?.to_owned(),
        (_, Ok((read, write))) => format!("{read},{write}"),
        _ => String::new(),
    };
    let prices = text.parse::<Prices>();
    Ok(prices.map_err(|error| Fault::new("prices", error.to_string()))?)
}

/// The figures of `fit_batches`: an Arrow stream, and an iterator of record batches.
///
/// It can be read once. An error raises its exception from the iterator. A consumer of the stream
/// raises its own, with the same text.
///
/// >>> import cupel, pyarrow as pa
/// >>> log = pa.table({"request": ['[{"role": "user", "content": "Hello!"}]']})
/// >>> [batch.num_rows for batch in cupel.fit_batches(log, 100)]
/// [1]
#[pyclass(module = "cupel", frozen)]
pub(crate) struct FittedBatches {
    export: Export,
    published: Arc<Mutex<Summary>>,
}

#[pymethods]
impl FittedBatches {
    /// The sums over the batches so far: `rows`, `failed`, `out_of_order` and `forgotten` (rows
    /// whose reuse is unknown), `tokens_before`, `tokens_after`, `reused_tokens` and `cost`.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let summary = lock(&self.published).clone();
        let sums = PyDict::new(py);
        sums.set_item("rows", summary.rows)?;
        sums.set_item("failed", summary.failed)?;
        sums.set_item("out_of_order", summary.out_of_order)?;
        sums.set_item("forgotten", summary.forgotten)?;
        sums.set_item("tokens_before", summary.tokens_before)?;
        sums.set_item("tokens_after", summary.tokens_after)?;
        sums.set_item("reused_tokens", summary.reused_tokens)?;
        sums.set_item("cost", summary.cost)?;
        Ok(sums)
    }

    /// Returns the schema as an Arrow C schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.export.schema(py)
    }

    /// Returns the figures as an Arrow C stream. It can be read once.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.export.stream(py, requested_schema)
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// Returns the next record batch of pyarrow.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.export.next(py)
    }
}
