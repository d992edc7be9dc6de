//! Which columns of a batch hold what: the request id, the item fields, the budget and the query.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, new_empty_array};
use arrow_buffer::NullBuffer;
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, Field, Schema};
use chrono::{DateTime, Utc};
use std::collections::HashMap;

use super::values::{
    Span, Values, absent, booleans, integers, is_list, lists, numbers, string_lists, string_maps,
    strings, timestamps,
};

/// The column of items as structs.
const ITEMS: &str = "items";
/// The item fields that are scalars. One of them as a list means one row per request.
const SCALARS: [&str; 9] = [
    "content",
    "tokens",
    "kind",
    "source",
    "priority",
    "timestamp",
    "future_relevance_hint",
    "pinned",
    "original_tokens",
];
/// The item fields that are lists or maps themselves.
const NESTED: [&str; 3] = ["tags", "metadata", "views"];
/// The columns with one value per request.
const PER_REQUEST: [&str; 2] = ["budget", "query"];

/// How the items of a request are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// One row per item; the rows of a request are contiguous.
    Rows,
    /// One row per request; every item field is a list column.
    Lists,
    /// One row per request; `items` is a list of structs.
    Structs,
}

/// The columns that are read.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "one per optional column")]
pub(super) struct Plan {
    pub(super) layout: Layout,
    /// The request id.
    pub(super) id: Field,
    /// The columns of a projected batch: the request id, then those that are read.
    columns: Vec<(usize, Field)>,
    pub(super) has_content: bool,
    pub(super) has_timestamp: bool,
    pub(super) has_budget: bool,
    pub(super) has_query: bool,
}

impl Plan {
    /// Finds the columns in a schema and checks their types.
    pub(super) fn new(schema: &Schema, request_id: &str) -> Result<Self, String> {
        let find = |name: &str| {
            let found = schema.column_with_name(name);
            found.map(|(at, field)| (at, field.clone()))
        };
        let names = || schema.fields().iter().map(|field| field.name().as_str());
        let Some(id) = find(request_id) else {
            let columns: Vec<&str> = names().collect();
            return Err(format!(
                "missing column `{request_id}`, the request id; the data has {}; name another one with request_id=",
                list(&columns)
            ));
        };
        let item_fields = || SCALARS.into_iter().chain(NESTED);
        let is_list_column =
            |name: &str| find(name).is_some_and(|(_, field)| is_list(field.data_type()));
        let layout = match find(ITEMS) {
            Some(_) => Layout::Structs,
            None if SCALARS.into_iter().any(is_list_column) => Layout::Lists,
            None => Layout::Rows,
        };
        let read: Vec<&str> = match layout {
            Layout::Structs => vec![ITEMS],
            Layout::Rows | Layout::Lists => item_fields().collect(),
        };
        let read = read.into_iter().chain(PER_REQUEST);
        let read = read.filter(|name| *name != request_id);
        let mut columns = vec![id.clone()];
        columns.extend(read.filter_map(find));
        let inner: Vec<String> = match (layout, find(ITEMS)) {
            (Layout::Structs, Some((_, items))) => struct_fields(&items)?,
            _ => columns
                .iter()
                .map(|(_, field)| field.name().clone())
                .collect(),
        };
        let has = |name: &str| inner.iter().any(|field| field == name);
        let outer = match layout {
            Layout::Structs => inner.clone(),
            _ => names().map(str::to_owned).collect(),
        };
        for field in item_fields().filter(|field| !has(field)) {
            let similar = outer
                .iter()
                .find(|name| *name != request_id && is_spelling(name, field));
            if let Some(similar) = similar {
                return Err(format!(
                    "unknown column `{similar}`; did you mean `{field}`? Rename it, or leave it out"
                ));
            }
        }
        if !has("content") && !has("tokens") {
            return Err(format!(
                "missing column `content`; an item needs `content` or `tokens`; the data has {}",
                list(&outer.iter().map(String::as_str).collect::<Vec<_>>())
            ));
        }
        let plan = Self {
            layout,
            id: id.1,
            has_content: has("content"),
            has_timestamp: has("timestamp"),
            has_budget: columns.iter().any(|(_, field)| field.name() == "budget"),
            has_query: columns.iter().any(|(_, field)| field.name() == "query"),
            columns,
        };
        let empty = plan.columns.iter();
        let empty: Vec<ArrayRef> = empty
            .map(|(_, field)| new_empty_array(field.data_type()))
            .collect();
        Batch::new(&plan, &empty, &[])?;
        Ok(plan)
    }

    /// Returns the columns of a batch that are read, the request id first.
    pub(super) fn project(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>, String> {
        let columns = self.columns.iter();
        let columns = columns.map(|(at, field)| same_column(batch, *at, field));
        columns.collect()
    }

    fn column<'a>(&self, columns: &'a [ArrayRef], name: &str) -> Option<&'a dyn Array> {
        let at = self
            .columns
            .iter()
            .skip(1)
            .position(|(_, field)| field.name() == name)?;
        Some(columns[at + 1].as_ref())
    }
}

/// Returns the column of a batch that was at a position of the first batch. It must have the same type.
pub(super) fn same_column(
    batch: &RecordBatch,
    at: usize,
    field: &Field,
) -> Result<ArrayRef, String> {
    let schema = batch.schema();
    let found = match schema.fields().get(at) {
        Some(same) if same.name() == field.name() => Some(at),
        _ => schema.index_of(field.name()).ok(),
    };
    match found.map(|at| batch.column(at)) {
        Some(column) if column.data_type() == field.data_type() => Ok(column.clone()),
        Some(column) => Err(format!(
            "column `{}` is {} in one batch and {} in the first",
            field.name(),
            column.data_type(),
            field.data_type()
        )),
        None => Err(format!(
            "column `{}` is in the first batch and missing in another",
            field.name()
        )),
    }
}

/// Returns the names of the fields of a list of structs.
fn struct_fields(items: &Field) -> Result<Vec<String>, String> {
    let element = match items.data_type() {
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element)
        | DataType::FixedSizeList(element, _) => element.data_type(),
        other => other,
    };
    match element {
        DataType::Struct(fields) if is_list(items.data_type()) => {
            Ok(fields.iter().map(|field| field.name().clone()).collect())
        }
        _ => Err(wrong_type(ITEMS, items.data_type(), "a list of structs")),
    }
}

/// Returns whether a column is probably a misspelled field: `Tokens`, `token`, `originalTokens`.
fn is_spelling(name: &str, field: &str) -> bool {
    let letters = |text: &str| {
        let letters = text
            .chars()
            .filter(|c| !matches!(c, '_' | '-' | ' '))
            .map(|c| c.to_ascii_lowercase());
        let letters: String = letters.collect();
        letters.strip_suffix('s').unwrap_or(&letters).to_owned()
    };
    letters(name) == letters(field) || cupel::config::nearest_name(name, [field]).is_some()
}

/// Returns names in backticks.
pub(super) fn list(names: &[&str]) -> String {
    match names {
        [] => "no columns".to_owned(),
        names => format!("`{}`", names.join("`, `")),
    }
}

/// Returns the error of a column of another type.
pub(super) fn wrong_type(name: &str, data_type: &DataType, expected: &str) -> String {
    let hint = match data_type {
        DataType::Timestamp(_, None) => {
            "; a time without a zone is ambiguous: convert it to UTC with a time zone"
        }
        _ => "",
    };
    format!("column `{name}`: expected {expected}, got {data_type}{hint}")
}

/// A column of an item field: its values and where those of each request are.
pub(super) struct Column<'a, T> {
    name: &'static str,
    values: Values<'a, T>,
    spans: Arc<[Span]>,
}

impl<T> Column<'_, T> {
    /// Returns the value of item `at` of a request.
    pub(super) fn get(&self, request: usize, at: usize) -> Result<Option<T>, CellError> {
        (self.values)(self.spans[request].start + at).map_err(|message| CellError {
            item: at,
            field: Some(self.name),
            message,
        })
    }
}

/// An invalid value of an item.
#[derive(Debug)]
pub(super) struct CellError {
    pub(super) item: usize,
    pub(super) field: Option<&'static str>,
    pub(super) message: String,
}

/// The requests of a batch, ready to be read.
pub(super) struct Batch<'a> {
    pub(super) ids: &'a ArrayRef,
    rows: &'a [Range<usize>],
    /// The spans of all item columns, with their names.
    spans: Vec<(&'static str, Arc<[Span]>)>,
    /// Null items of a list of structs.
    null_items: Option<(&'a NullBuffer, Arc<[Span]>)>,
    pub(super) content: Option<Column<'a, &'a str>>,
    pub(super) tokens: Option<Column<'a, i64>>,
    pub(super) kind: Option<Column<'a, &'a str>>,
    pub(super) source: Option<Column<'a, &'a str>>,
    pub(super) priority: Option<Column<'a, i64>>,
    pub(super) tags: Option<Column<'a, Vec<String>>>,
    pub(super) metadata: Option<Column<'a, HashMap<String, String>>>,
    pub(super) timestamp: Option<Column<'a, DateTime<Utc>>>,
    pub(super) future_relevance_hint: Option<Column<'a, f64>>,
    pub(super) pinned: Option<Column<'a, bool>>,
    pub(super) original_tokens: Option<Column<'a, i64>>,
    pub(super) views: Option<Column<'a, Vec<View<'a>>>>,
    budget: Option<Values<'a, i64>>,
    query: Option<Values<'a, &'a str>>,
}

/// A shorter form of an item.
pub(super) struct View<'a> {
    pub(super) content: &'a str,
    pub(super) tokens: Option<i64>,
    pub(super) level: Option<i64>,
    pub(super) value: Option<f64>,
}

/// Finds the values of item fields, and remembers where those of each request are.
struct Finder<'a, 'p> {
    plan: &'p Plan,
    columns: &'a [ArrayRef],
    /// The spans of the requests in rows.
    rows: Arc<[Span]>,
    /// The structs of the items and their spans.
    items: Option<(&'a dyn Array, Arc<[Span]>)>,
    found: Vec<(&'static str, Arc<[Span]>)>,
}

impl<'a> Finder<'a, '_> {
    fn column<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl Fn(&'a dyn Array) -> Option<Values<'a, T>>,
    ) -> Result<Option<Column<'a, T>>, String> {
        let (array, spans) = match (&self.items, self.plan.layout) {
            (Some((items, spans)), _) => match items.as_struct().column_by_name(name) {
                Some(array) => (array.as_ref(), spans.clone()),
                None => return Ok(None),
            },
            (None, layout) => {
                let Some(array) = self.plan.column(self.columns, name) else {
                    return Ok(None);
                };
                if layout == Layout::Rows {
                    (array, self.rows.clone())
                } else {
                    let (values, spans) = lists(array).ok_or_else(|| {
                        let expected =
                            format!("a list of {expected}, as the other item columns are lists");
                        wrong_type(name, array.data_type(), &expected)
                    })?;
                    (values, Arc::from(spans))
                }
            }
        };
        let values = read(array).ok_or_else(|| wrong_type(name, array.data_type(), expected))?;
        self.found.push((name, spans.clone()));
        Ok(Some(Column {
            name,
            values,
            spans,
        }))
    }
}

impl<'a> Batch<'a> {
    /// Prepares projected columns for reading; `rows` are the rows of each request.
    pub(super) fn new(
        plan: &Plan,
        columns: &'a [ArrayRef],
        rows: &'a [Range<usize>],
    ) -> Result<Self, String> {
        let spans = rows.iter().map(|rows| Span {
            start: rows.start,
            len: rows.len(),
        });
        let items = match plan.layout {
            Layout::Structs => plan.column(columns, ITEMS).and_then(lists),
            Layout::Rows | Layout::Lists => None,
        };
        let items = items.map(|(items, spans)| (items, Arc::<[Span]>::from(spans)));
        let null_items = items
            .as_ref()
            .and_then(|(items, spans)| Some((items.nulls()?, spans.clone())));
        let mut find = Finder {
            plan,
            columns,
            rows: spans.collect(),
            items,
            found: Vec::new(),
        };
        let per_request = |name: &str| plan.column(columns, name);
        let budget = per_request("budget").map(|array| {
            integers(array).ok_or_else(|| wrong_type("budget", array.data_type(), "integers"))
        });
        let query = per_request("query").map(|array| {
            strings(array).ok_or_else(|| wrong_type("query", array.data_type(), "strings"))
        });
        Ok(Self {
            ids: &columns[0],
            rows,
            null_items,
            content: find.column("content", "strings", strings)?,
            tokens: find.column("tokens", "integers", integers)?,
            kind: find.column("kind", "strings", strings)?,
            source: find.column("source", "strings", strings)?,
            priority: find.column("priority", "integers", integers)?,
            tags: find.column("tags", "lists of strings", string_lists)?,
            metadata: find.column("metadata", "maps or structs of strings", string_maps)?,
            timestamp: find.column(
                "timestamp",
                "timestamps with a time zone, or strings such as 2026-03-02T09:00:00Z",
                timestamps,
            )?,
            future_relevance_hint: find.column("future_relevance_hint", "numbers", numbers)?,
            pinned: find.column("pinned", "booleans", booleans)?,
            original_tokens: find.column("original_tokens", "integers", integers)?,
            views: find.column("views", "lists of structs with content and tokens", views)?,
            budget: budget.transpose()?,
            query: query.transpose()?,
            spans: find.found,
        })
    }

    /// Returns the number of items of a request, or which columns disagree.
    pub(super) fn len(&self, request: usize) -> Result<usize, String> {
        let mut lengths = self
            .spans
            .iter()
            .map(|(name, spans)| (name, spans[request].len));
        let Some((first, len)) = lengths.next() else {
            return Ok(0);
        };
        match lengths.find(|(_, other)| *other != len) {
            None => Ok(len),
            Some((name, other)) => Err(format!(
                "`{first}` has {len} elements and `{name}` has {other}; the lists of a request must have the same length"
            )),
        }
    }

    /// Returns whether an item of a list of structs is null.
    pub(super) fn is_null(&self, request: usize, at: usize) -> bool {
        let nulls = self.null_items.as_ref();
        nulls.is_some_and(|(nulls, spans)| nulls.is_null(spans[request].start + at))
    }

    /// Returns the row that holds the id, the budget and the query of a request.
    pub(super) fn row(&self, request: usize) -> usize {
        self.rows[request].start
    }

    /// Returns the budget of a request.
    pub(super) fn budget(&self, request: usize) -> Result<Option<i64>, String> {
        self.per_request("budget", self.budget.as_ref(), request)
    }

    /// Returns the query of a request.
    pub(super) fn query(&self, request: usize) -> Result<Option<&'a str>, String> {
        self.per_request("query", self.query.as_ref(), request)
    }

    /// Returns the value that all rows of a request share.
    fn per_request<T: PartialEq>(
        &self,
        name: &str,
        values: Option<&Values<'a, T>>,
        request: usize,
    ) -> Result<Option<T>, String> {
        let Some(values) = values else {
            return Ok(None);
        };
        let at = |row| values(row).map_err(|message| format!("{name}: {message}"));
        let mut rows = self.rows[request].clone();
        let first = rows.next().map_or(Ok(None), at)?;
        for row in rows {
            if at(row)? != first {
                return Err(format!("{name}: the rows of a request must have the same"));
            }
        }
        Ok(first)
    }
}

/// Returns how a message names a request: a string in quotes, a number as it is.
pub(super) fn named(ids: &dyn Array, row: usize) -> String {
    let text = id_text(ids, row);
    match strings(ids) {
        Some(_) => format!("request {text:?}"),
        None => format!("request {text}"),
    }
}

/// Returns a request id as text.
pub(super) fn id_text(ids: &dyn Array, row: usize) -> String {
    array_value_to_string(ids, row).unwrap_or_else(|error| format!("({error})"))
}

/// Reads lists of structs with content and tokens.
fn views(array: &dyn Array) -> Option<Values<'_, Vec<View<'_>>>> {
    if array.data_type() == &DataType::Null {
        return Some(absent());
    }
    let (child, spans) = lists(array)?;
    let structs = child.as_struct_opt()?;
    let column = |name: &str| structs.column_by_name(name).map(AsRef::as_ref);
    let contents = strings(column("content")?)?;
    let tokens = column("tokens").map_or(Some(absent()), integers)?;
    let levels = column("level").map_or(Some(absent()), integers)?;
    let values = column("value").map_or(Some(absent()), numbers)?;
    Some(Box::new(move |row| {
        let Span { start, len } = spans[row];
        let view = |at: usize| {
            Ok(View {
                content: contents(at)?.ok_or("views: missing content")?,
                tokens: tokens(at)?,
                level: levels(at)?,
                value: values(at)?,
            })
        };
        (start..start + len)
            .map(view)
            .collect::<Result<_, String>>()
            .map(Some)
    }))
}
