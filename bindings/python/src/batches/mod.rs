//! `select_batches`: runs a policy over the requests of an Arrow stream. `fit_batches` is in `fit.rs`.

mod export;
mod fit;
mod layout;
mod requests;
mod run;
mod source;
mod values;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use cupel::Policy;
use cupel_app::{NamedPolicy, no_times};
use cupel_chat::Model;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyString};
use rayon::ThreadPool;
use rayon::prelude::*;

use self::export::{Export, Failure, Pull};
pub(crate) use self::fit::{FittedBatches, fit_batches};
use self::layout::{Batch, Plan};
use self::requests::{Requests, Segment};
use self::run::Settings;
use self::source::Source;
use crate::error::{self, Fault};
use crate::json::{described, text};
use crate::options::counter;
use crate::policy::{read_for_items, warn_of_unread_query};
use crate::{budget, columns, threads};

/// The items that one thread answers at a time, and the rows of a batch of the result. A request is never
/// split.
const CHUNK_ITEMS: usize = 1 << 12;
/// The items that are gathered from small batches before they are answered.
const GATHERED_ITEMS: usize = 1 << 16;
/// The chunks of a large batch that are answered before the consumer gets the first.
const WINDOW_CHUNKS: usize = 1 << 8;

/// Runs a policy over every request of a table and returns the decisions as an Arrow stream.
///
/// `data` has the fields of items as columns: `content`, `tokens` (counted if missing), `kind`,
/// `source`, `priority`, `tags`, `metadata`, `timestamp` (with a time zone),
/// `future_relevance_hint`, `pinned`, `original_tokens` and `views`. Other columns are ignored.
/// There are three layouts: one row per request with a list per field; one row per request with a
/// column `items`, a list of structs; or one row per item, where the rows of a request are
/// contiguous. Without `content`, strategies that read texts, such as deduplication, are refused.
///
/// The result has one row per item, in the order of the input: the request id, `index` (the
/// position in the request), `rank`, `score`, `status` (`included` or `excluded`), `reason`,
/// `position` (in the window) and `tokens` (those of its view if the item is shortened). Batches
/// are pulled as the result is read, so that memory does not grow with the log, except for about
/// 20 bytes per request in the layout with one row per item.
///
/// Args:
///     data: A table, a record batch reader or another object with the Arrow C stream (pyarrow,
///         Polars, DuckDB, pandas), or an iterable of them. Its buffers are read in place.
///     budget: Tokens as `8000` or `"8k"`, a share of the model's window as `"50%"`, a dict or a
///         `Budget`. Default: the column `budget`, which differs by request.
///     policy: A preset, the path of a file, a dict or a `Policy`. Default: `"chat"`.
///     request_id: The name of the column that tells requests apart. Default: `"request_id"`.
///     query: The question, for policies that score by relevance. Default: the column `query`.
///     model: The model that counts the tokens and whose window a percentage is of.
///     encoding: The token counter. Default: the model's, otherwise `o200k_base`.
///     errors: `"raise"` ends the stream at an invalid request, `"report"` makes it one row with
///         the status `error` and the text as reason. Default: `"raise"`.
///     threads: The most threads, 1 or more. Default: all cores.
///
/// >>> import cupel, pyarrow as pa
/// >>> texts, tokens = [["x", "y"], ["z"]], [[3, 4], [5]]
/// >>> log = pa.table({"request_id": ["a", "b"], "content": texts, "tokens": tokens})
/// >>> decisions = pa.table(cupel.select_batches(log, 6))
/// >>> decisions.column("status").to_pylist()
/// ['included', 'excluded', 'included']
#[pyfunction]
#[pyo3(signature = (data, budget=None, policy=None, *, request_id="request_id", query=None, model=None, encoding=None, errors="raise", threads=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn select_batches(
    data: &Bound<'_, PyAny>,
    budget: Option<&Bound<'_, PyAny>>,
    policy: Option<&Bound<'_, PyAny>>,
    request_id: &str,
    query: Option<&Bound<'_, PyString>>,
    model: Option<&Bound<'_, PyString>>,
    encoding: Option<&Bound<'_, PyString>>,
    errors: &str,
    threads: Option<&Bound<'_, PyAny>>,
) -> PyResult<SelectedBatches> {
    let named = read_for_items(policy, false)?;
    if let Some(query) = query {
        warn_of_unread_query(query.py(), &named)?;
    }
    let NamedPolicy { name, policy } = named;
    let query = query.map(|query| text(query, "query")).transpose()?;
    let model = model.map(|model| text(model, "model")).transpose()?;
    let encoding = encoding.map(|name| text(name, "encoding")).transpose()?;
    let window = model.and_then(|name| Model::find(name).ok());
    let window = window.map(|model| model.window);
    let budget = budget.map(|budget| budget::read_within(budget, window));
    let budget = budget.transpose()?;
    let counter = counter(model, encoding)?;
    let reports_errors = match errors {
        "raise" => false,
        "report" => true,
        other => {
            let message = format!("expected \"raise\" or \"report\", got {other:?}");
            return Err(Fault::new("errors", message).into());
        }
    };
    let threads = threads.map(thread_count).transpose()?;
    let pool = threads::pool(threads).map_err(|fault| Fault::new("threads", fault.to_string()))?;
    let source = Source::new(data)?;
    let plan = source.schema().map(|schema| Plan::new(&schema, request_id));
    let plan = plan
        .transpose()
        .map_err(|message| Fault::new("data", message))?;
    let settings = Settings {
        schema: result_schema(plan.as_ref(), request_id)?,
        needs_query: policy.needs_query(),
        policy,
        policy_name: name,
        budget,
        query: query.map(str::to_owned),
        counter,
        reports_errors,
    };
    if let Some(plan) = &plan {
        check(plan, &settings)?;
        if !plan.has_timestamp
            && let Some(notice) = no_times(&settings.policy)
        {
            error::warn(data.py(), &notice)?;
        }
    }
    let stream = Stream {
        source,
        plan,
        settings,
        pool,
        requests: Requests::new(),
        segments: Vec::new(),
        chunks: VecDeque::new(),
        ready: VecDeque::new(),
        failure: None,
        is_at_end: false,
    };
    Ok(SelectedBatches(Export::new("select_batches", stream)))
}

/// Reads a number of threads.
fn thread_count(threads: &Bound<'_, PyAny>) -> PyResult<usize> {
    let most = rayon::max_num_threads();
    match threads.extract::<usize>() {
        Ok(count) if (1..=most).contains(&count) => Ok(count),
        Err(error) if error.is_instance_of::<PyTypeError>(threads.py()) => {
            let message = format!("threads: expected an integer, got {}", described(threads));
            Err(PyTypeError::new_err(message))
        }
        _ => Err(Fault::new("threads", format!("expected 1 to {most}, got {threads}")).into()),
    }
}

/// Checks what every request needs: a budget, a query and texts.
fn check(plan: &Plan, settings: &Settings) -> Result<(), Fault> {
    if settings.budget.is_none() && !plan.has_budget {
        return Err(
            Fault::new("", "missing budget").help("pass budget=8000, or add a column `budget`")
        );
    }
    if settings.needs_query && settings.query.is_none() && !plan.has_query {
        let message = format!("the policy {} needs a query", settings.policy_name);
        return Err(Fault::new("", message).help("pass query=\"...\", or add a column `query`"));
    }
    if !plan.has_content
        && let Some(reader) = text_reader(&settings.policy)
    {
        let message = format!("missing column `content`: {reader} of the policy reads the texts");
        return Err(Fault::new("data", message)
            .help("add the texts, or use a policy that does not read them"));
    }
    Ok(())
}

/// Returns the part of a policy that reads the texts of items; `None` if no part does. Python callables are
/// assumed not to.
fn text_reader(policy: &Policy) -> Option<&'static str> {
    let readers = [
        ("deduplication", policy.deduplication()),
        ("the scorer", policy.scorer().reads_content()),
        ("the slicer", policy.slicer().reads_content()),
    ];
    let reader = readers.into_iter().find(|(_, reads)| *reads);
    reader.map(|(part, _)| part)
}

fn result_schema(plan: Option<&Plan>, request_id: &str) -> Result<SchemaRef, Fault> {
    let id = match plan {
        Some(plan) => Field::new(request_id, plan.id.data_type().clone(), true),
        None => Field::new(request_id, DataType::Null, true),
    };
    let columns = columns::fields();
    if columns.iter().any(|field| field.name() == request_id) {
        let message = format!("the result has a column `{request_id}` of its own");
        return Err(Fault::new("request_id", message).help("rename the request id"));
    }
    let fields: Vec<Field> = std::iter::once(id).chain(columns).collect();
    Ok(Arc::new(Schema::new(fields)))
}

/// Some requests of a segment.
struct Chunk {
    segment: usize,
    requests: Range<usize>,
    items: usize,
}

/// Pulls batches, answers their requests on all cores and returns the answers in order.
struct Stream {
    source: Source,
    plan: Option<Plan>,
    settings: Settings,
    pool: Arc<ThreadPool>,
    requests: Requests,
    segments: Vec<Segment>,
    /// The requests of `segments` that are not answered yet.
    chunks: VecDeque<Chunk>,
    ready: VecDeque<RecordBatch>,
    /// Returned after the batches that are ready.
    failure: Option<Failure>,
    is_at_end: bool,
}

impl Pull for Stream {
    fn schema(&self) -> SchemaRef {
        self.settings.schema.clone()
    }

    fn fail(&mut self, failure: Failure) {
        self.failure = Some(failure);
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>, Failure> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if let Some(failure) = self.failure.take() {
                self.chunks.clear();
                self.is_at_end = true;
                return Err(failure);
            }
            if self.chunks.is_empty() {
                if self.is_at_end {
                    return Ok(None);
                }
                self.gather();
            }
            self.answer();
        }
    }
}

impl Stream {
    /// Pulls batches until there is enough to do for all cores.
    fn gather(&mut self) {
        self.segments.clear();
        let Some(plan) = &self.plan else {
            self.is_at_end = true;
            return;
        };
        let mut items = 0;
        while items < GATHERED_ITEMS && self.failure.is_none() && !self.is_at_end {
            let known = self.segments.len();
            let pushed = match self.source.next() {
                Err(error) => Err(Failure::Source(error)),
                Ok(Some(batch)) => self
                    .requests
                    .push(plan, &batch, &mut self.segments)
                    .map_err(Failure::Input),
                Ok(None) => {
                    self.is_at_end = true;
                    let last = self.requests.close().map_err(Failure::Input);
                    last.map(|last| self.segments.extend(last))
                }
            };
            self.failure = pushed.err();
            for at in known..self.segments.len() {
                match chunks(plan, at, &self.segments[at]) {
                    Ok(chunks) => {
                        items += chunks.iter().map(|chunk| chunk.items).sum::<usize>();
                        self.chunks.extend(chunks);
                    }
                    Err(text) => self.failure = Some(Failure::Input(text)),
                }
            }
        }
    }

    /// Answers the next chunks.
    fn answer(&mut self) {
        let window = WINDOW_CHUNKS.min(self.chunks.len());
        let chunks: Vec<Chunk> = self.chunks.drain(..window).collect();
        let Some(plan) = self.plan.as_ref().filter(|_| !chunks.is_empty()) else {
            return;
        };
        let (settings, segments) = (&self.settings, &self.segments);
        let answers: Vec<Result<RecordBatch, Failure>> = self.pool.install(|| {
            let used = chunks[0].segment..=chunks[chunks.len() - 1].segment;
            let batches: Result<Vec<Batch<'_>>, String> = used
                .clone()
                .map(|at| Batch::new(plan, &segments[at].columns, &segments[at].requests))
                .collect();
            let batches = match batches {
                Ok(batches) => batches,
                Err(text) => return vec![Err(Failure::Input(text))],
            };
            let run = |chunk: &Chunk| {
                let batch = &batches[chunk.segment - used.start()];
                settings
                    .run(batch, chunk.requests.clone(), chunk.items)
                    .map_err(Failure::Request)
            };
            chunks.par_iter().map(run).collect()
        });
        for answer in answers {
            match answer {
                Ok(batch) if batch.num_rows() > 0 => self.ready.push_back(batch),
                Ok(_) => {}
                Err(failure) => {
                    self.failure = Some(failure);
                    break;
                }
            }
        }
    }
}

/// Splits the requests of a segment into chunks of about [`CHUNK_ITEMS`] items.
fn chunks(plan: &Plan, at: usize, segment: &Segment) -> Result<Vec<Chunk>, String> {
    let batch = Batch::new(plan, &segment.columns, &segment.requests)?;
    let mut chunks: Vec<Chunk> = Vec::new();
    for request in 0..segment.requests.len() {
        // A request whose lists differ in length fails when it is answered.
        let items = batch.len(request).unwrap_or(1);
        match chunks.last_mut() {
            Some(chunk) if chunk.items + items <= CHUNK_ITEMS => {
                chunk.requests.end = request + 1;
                chunk.items += items;
            }
            _ => chunks.push(Chunk {
                segment: at,
                requests: request..request + 1,
                items,
            }),
        }
    }
    Ok(chunks)
}

/// The decisions of `select_batches`: an Arrow stream, and an iterator of record batches.
///
/// It can be read once. An error raises its exception from the iterator. A consumer of the stream
/// raises its own, with the same text.
///
/// >>> import cupel, pyarrow as pa
/// >>> requests = pa.table({"request_id": ["a"], "content": [["x", "y"]], "tokens": [[3, 4]]})
/// >>> [batch.num_rows for batch in cupel.select_batches(requests, 6)]
/// [2]
#[pyclass(module = "cupel", frozen)]
pub(crate) struct SelectedBatches(Export);

#[pymethods]
impl SelectedBatches {
    /// Returns the schema as an Arrow C schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.schema(py)
    }

    /// Returns the decisions as an Arrow C stream. It can be read once.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.0.stream(py, requested_schema)
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// Returns the next record batch of pyarrow.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.next(py)
    }
}
