//! Items: the classes `Item` and `Items`, and items from dicts.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Datelike as _, SecondsFormat, Utc};
use cupel::config::{Document, Format};
use cupel::{ContextItem, ContextKind, ContextSource, Decisions};
use cupel_chat::{Encoding, TokenCounter};
use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyDict, PyFloat, PyInt, PyIterator, PyList, PyMapping, PySlice, PyString, PyTuple,
    PyType,
};

use crate::counter::PyCounter;
use crate::json::{NotFinite, reduced, refuse_table, rfc3339, to_json, to_python};
use crate::{callback, error};

/// A candidate for the context window: a text, its tokens, and what policies read of it.
///
/// Args:
///     content: The text, not empty.
///     tokens: Its tokens; negative ones exclude the item. Default: counted with `o200k_base`.
///     kind: The kind, such as `"Message"` or `"ToolOutput"`. Default: `"Message"`.
///     source: Where it comes from, such as `"Chat"` or `"Rag"`. Default: `"Chat"`.
///     priority: Any integer; higher is more important.
///     tags: Texts that a policy may weight or count.
///     metadata: Texts by key.
///     timestamp: An aware `datetime`, or a string in RFC 3339 with an offset from UTC.
///     future_relevance_hint: The caller's own score, from 0 to 1.
///     pinned: Whether it is always in the window. Default: False.
///     original_tokens: Its tokens before it was shortened.
///     views: Shorter forms with fewer tokens: dicts with `content` and `tokens`, and perhaps
///         `level` and `value`, the share of the score that it keeps, from 0 to 1.
///
/// >>> import cupel
/// >>> item = cupel.Item("The keys are on the fridge.", 8, kind="Memory", priority=2)
/// >>> item.tokens, item.kind, item.pinned
/// (8, 'Memory', False)
#[pyclass(frozen, eq, hash, module = "cupel", name = "Item")]
#[derive(Clone, PartialEq)]
pub(crate) struct Item(pub(crate) ContextItem);

impl std::hash::Hash for Item {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.content().hash(state);
        self.0.tokens().hash(state);
    }
}

#[pymethods]
impl Item {
    #[new]
    #[pyo3(signature = (content, tokens=None, *, kind=None, source=None, priority=None, tags=None, metadata=None,
        timestamp=None, future_relevance_hint=None, pinned=false, original_tokens=None, views=None))]
    #[expect(clippy::too_many_arguments, reason = "one per field")]
    fn new<'py>(
        py: Python<'py>,
        content: Bound<'py, PyAny>,
        tokens: Option<Bound<'py, PyAny>>,
        kind: Option<Bound<'py, PyAny>>,
        source: Option<Bound<'py, PyAny>>,
        priority: Option<Bound<'py, PyAny>>,
        tags: Option<Bound<'py, PyAny>>,
        metadata: Option<Bound<'py, PyAny>>,
        timestamp: Option<Bound<'py, PyAny>>,
        future_relevance_hint: Option<Bound<'py, PyAny>>,
        pinned: bool,
        original_tokens: Option<Bound<'py, PyAny>>,
        views: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let fields = PyDict::new(py);
        fields.set_item("content", content)?;
        let optional = [
            ("tokens", tokens),
            ("kind", kind),
            ("source", source),
            ("priority", priority),
            ("tags", tags),
            ("metadata", metadata),
            ("timestamp", timestamp),
            ("future_relevance_hint", future_relevance_hint),
            ("original_tokens", original_tokens),
            ("views", views),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                fields.set_item(name, value)?;
            }
        }
        if pinned {
            fields.set_item("pinned", true)?;
        }
        Self::from_dict(fields.as_mapping())
    }

    /// Builds an item from its fields, as in a request document.
    ///
    /// >>> import cupel
    /// >>> cupel.Item.from_dict({"content": "Hello!", "tokens": 2}) == cupel.Item("Hello!", 2)
    /// True
    #[staticmethod]
    fn from_dict(fields: &Bound<'_, PyMapping>) -> PyResult<Self> {
        let dict = fields.cast::<PyDict>().ok();
        if let Some(item) = dict.and_then(|fields| read_dict(fields, &Encoding::O200k)) {
            return Ok(Self(item));
        }
        let list = PyList::new(fields.py(), [fields])?;
        let mut items = read_documents(list.as_any(), "item", &Encoding::O200k)?;
        // One dict is one item.
        Ok(Self(items.swap_remove(0)))
    }

    /// Returns the fields that are set.
    ///
    /// >>> import cupel
    /// >>> cupel.Item("Hello!", 2, pinned=True).to_dict()["pinned"]
    /// True
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &serde_json::to_value(&self.0).unwrap_or_default())
    }

    /// The text.
    #[getter]
    fn content(&self) -> &str {
        self.0.content()
    }

    /// The tokens.
    #[getter]
    fn tokens(&self) -> i64 {
        self.0.tokens()
    }

    /// The kind, such as `"Message"`.
    #[getter]
    fn kind(&self) -> &str {
        self.0.kind().as_str()
    }

    /// Where it comes from, such as `"Chat"`.
    #[getter]
    fn source(&self) -> &str {
        self.0.source().as_str()
    }

    /// The priority; higher is more important.
    #[getter]
    fn priority(&self) -> Option<i64> {
        self.0.priority()
    }

    /// The tags.
    #[getter]
    fn tags(&self) -> Vec<String> {
        self.0.tags().to_vec()
    }

    /// The metadata, by key.
    #[getter]
    fn metadata(&self) -> HashMap<String, String> {
        self.0.metadata().clone()
    }

    /// The time, in UTC.
    #[getter]
    fn timestamp<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(time) = self.0.timestamp() else {
            return Ok(None);
        };
        let datetime = py.import(intern!(py, "datetime"))?;
        let datetime = datetime.getattr(intern!(py, "datetime"))?;
        if !(1..=9999).contains(&time.year()) {
            let time = time.to_rfc3339_opts(SecondsFormat::AutoSi, true);
            let message = format!(
                "timestamp: {time} is outside of the years 1 to 9999 of datetime; use to_dict()[\"timestamp\"]"
            );
            return Err(PyOverflowError::new_err(message));
        }
        let time = datetime.call_method1(intern!(py, "fromisoformat"), (time.to_rfc3339(),));
        time.map(Some)
    }

    /// The caller's own score, from 0 to 1.
    #[getter]
    fn future_relevance_hint(&self) -> Option<f64> {
        self.0.future_relevance_hint()
    }

    /// Whether it is always in the window.
    #[getter]
    fn pinned(&self) -> bool {
        self.0.pinned()
    }

    /// The tokens before it was shortened.
    #[getter]
    fn original_tokens(&self) -> Option<i64> {
        self.0.original_tokens()
    }

    /// The shorter forms, largest first: dicts with `content`, `tokens`, `level` and `value`.
    #[getter]
    fn views<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(
            py,
            &serde_json::to_value(self.0.views()).unwrap_or_default(),
        )
    }

    fn __repr__(&self) -> String {
        const SHOWN: usize = 60;
        let mut content: String = self.0.content().chars().take(SHOWN).collect();
        if content.len() < self.0.content().len() {
            content.push_str("...");
        }
        let (kind, tokens) = (self.kind(), self.tokens());
        format!("Item({content:?}, {tokens}, kind={kind:?})")
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        reduced::<Self>(self.to_dict(py)?)
    }
}

/// An immutable sequence of items, the fastest input of `select`. A slice of it is `Items` too.
///
/// Args:
///     items: Items, dicts with their fields, documents, or other objects with the fields as
///         attributes.
///     counter: A function that counts the tokens of items that have none. Default: o200k.
///
/// >>> import cupel
/// >>> items = cupel.Items([{"content": "old", "tokens": 60}, {"content": "new", "tokens": 30}])
/// >>> len(items), items[0].content, items[1:]
/// (2, 'old', <cupel.Items: 1 items>)
#[pyclass(frozen, eq, hash, sequence, module = "cupel", name = "Items")]
#[derive(PartialEq)]
pub(crate) struct Items(pub(crate) Arc<Vec<ContextItem>>);

impl std::hash::Hash for Items {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        for item in &*self.0 {
            Item(item.clone()).hash(state);
        }
    }
}

impl Items {
    /// Returns a list of the items.
    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.0.iter().map(|item| Item(item.clone())))
    }
}

#[pymethods]
impl Items {
    #[new]
    #[pyo3(signature = (items, *, counter=None))]
    fn new(items: &Bound<'_, PyAny>, counter: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Ok(Self(Candidates::counted(items, counter)?.items))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, length) = (index.py(), self.0.len().cast_signed());
        if let Ok(slice) = index.cast::<PySlice>() {
            let bounds = slice.indices(length)?;
            let positions = (0..bounds.slicelength)
                .map(|at| bounds.start + at.cast_signed() * bounds.step)
                .filter_map(|at| self.0.get(at.cast_unsigned()).cloned());
            let items = Self(Arc::new(positions.collect()));
            return Ok(Bound::new(py, items)?.into_any());
        }
        let index: isize = index.extract()?;
        let index = if index < 0 { index + length } else { index };
        let item = usize::try_from(index)
            .ok()
            .and_then(|index| self.0.get(index));
        let item = item.ok_or_else(|| PyIndexError::new_err("index out of range"))?;
        Ok(Bound::new(py, Item(item.clone()))?.into_any())
    }

    fn __contains__(&self, item: &Bound<'_, PyAny>) -> bool {
        let item = item.cast::<Item>();
        item.is_ok_and(|item| self.0.contains(&item.get().0))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.list(py)?.try_iter()
    }

    fn __reversed__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.list(py)?.call_method0(intern!(py, "__reversed__"))
    }

    /// Returns the first position of an item, as `list.index` does.
    ///
    /// >>> import cupel
    /// >>> items = cupel.Items([{"content": "a", "tokens": 1}, {"content": "b", "tokens": 1}])
    /// >>> items.index(items[1])
    /// 1
    #[pyo3(signature = (item, start=0, stop=isize::MAX, /))]
    fn index<'py>(
        &self,
        item: &Bound<'py, PyAny>,
        start: isize,
        stop: isize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let items = self.list(item.py())?;
        items.call_method1("index", (item, start, stop))
    }

    /// Returns how often an item occurs.
    ///
    /// >>> import cupel
    /// >>> items = cupel.Items([{"content": "a", "tokens": 1}, {"content": "a", "tokens": 1}])
    /// >>> items.count(items[0])
    /// 2
    #[pyo3(signature = (item, /))]
    fn count(&self, item: &Bound<'_, PyAny>) -> usize {
        let Ok(item) = item.cast::<Item>() else {
            return 0;
        };
        self.0.iter().filter(|own| **own == item.get().0).count()
    }

    fn __repr__(&self) -> String {
        let count = self.0.len();
        format!("<cupel.Items: {count} items>")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (Vec<Item>,)) {
        let items = self.0.iter().map(|item| Item(item.clone())).collect();
        (PyType::new::<Self>(py), (items,))
    }
}

/// The candidates of a run with the caller's objects.
pub(crate) struct Candidates<'py> {
    pub(crate) items: Arc<Vec<ContextItem>>,
    objects: Objects<'py>,
    /// Whether there are documents with scores among the objects.
    pub(crate) has_scores: bool,
}

enum Objects<'py> {
    List(Bound<'py, PyList>),
    /// The items themselves, as `Item`.
    Prebuilt,
}

impl<'py> Candidates<'py> {
    /// Reads a sequence of items, dicts, documents, or other objects with the fields of an item. Those without tokens
    /// are counted by the encoding `o200k_base`.
    pub(crate) fn read(value: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::read_with(value, &Encoding::O200k)
    }

    /// As [`read`](Self::read), with a function of the caller as counter.
    pub(crate) fn counted(
        value: &Bound<'py, PyAny>,
        counter: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let Some(counter) = counter else {
            return Self::read(value);
        };
        let counter = PyCounter::read(counter, "counter")?;
        let read = Self::read_with(value, &*counter);
        counter.take_raised().map_or(read, Err)
    }

    fn read_with(value: &Bound<'py, PyAny>, counter: &dyn TokenCounter) -> PyResult<Self> {
        if let Ok(items) = value.cast::<Items>() {
            return Ok(Self {
                items: Arc::clone(&items.get().0),
                objects: Objects::Prebuilt,
                has_scores: false,
            });
        }
        let list = match value.cast::<PyList>() {
            Ok(list) => list.clone(),
            Err(_) => {
                refuse_table(value, "items")?;
                let is_one = value.is_instance_of::<PyString>() || value.is_instance_of::<PyDict>();
                let items = value.try_iter().ok().filter(|_| !is_one);
                let items = items.ok_or_else(|| {
                    let got = crate::json::described(value);
                    error::Fault::new("items", format!("expected a list of items, got {got}"))
                })?;
                let items = callback::run(|| items.collect::<PyResult<Vec<_>>>());
                PyList::new(value.py(), items?)?
            }
        };
        let mut has_scores = false;
        let items = match read_list(&list, counter) {
            Some(items) => items,
            None => {
                let converted = documents(&list)?;
                has_scores = converted
                    .as_ref()
                    .is_some_and(|(_, has_scores)| *has_scores);
                let fields = converted.as_ref().map_or(&list, |(fields, _)| fields);
                match read_list(fields, counter) {
                    Some(items) => items,
                    None => read_documents(fields.as_any(), "items", counter)?,
                }
            }
        };
        Ok(Self {
            items: Arc::new(items),
            objects: Objects::List(list),
            has_scores,
        })
    }

    /// Returns the caller's objects in a window, shortened ones with the content and tokens of their view;
    /// `None` if the caller has no other objects than the items.
    pub(crate) fn window(
        &self,
        py: Python<'py>,
        decisions: &Decisions<'_>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let Objects::List(list) = &self.objects else {
            return Ok(None);
        };
        let objects = decisions.window().iter().map(|&index| {
            let object = list.get_item(index)?;
            match (decisions.view(index), object.cast::<PyDict>()) {
                (None, _) => Ok(object),
                (Some(_), Ok(fields)) => {
                    let (fields, view) = (fields.copy()?, decisions.item(index));
                    fields.set_item(intern!(py, "content"), view.content())?;
                    fields.set_item(intern!(py, "tokens"), view.tokens())?;
                    Ok(fields.into_any())
                }
                (Some(_), Err(_)) => {
                    let item = Item(decisions.item(index).clone());
                    Ok(Bound::new(py, item)?.into_any())
                }
            }
        });
        let objects: Vec<Bound<'py, PyAny>> = objects.collect::<PyResult<_>>()?;
        PyList::new(py, objects).map(Some)
    }
}

/// Returns a list with dicts of items in the place of documents, and whether one of them has a score; `None` if the list
/// has no documents.
fn documents<'py>(list: &Bound<'py, PyList>) -> PyResult<Option<(Bound<'py, PyList>, bool)>> {
    let module = list.py().import(intern!(list.py(), "cupel._documents"))?;
    // It reads attributes of the caller's objects.
    let converted = callback::run(|| module.call_method1(intern!(list.py(), "as_items"), (list,)))?;
    converted.extract()
}

/// Reads items and dicts; `None` if one needs a closer look or is invalid.
fn read_list(list: &Bound<'_, PyList>, counter: &dyn TokenCounter) -> Option<Vec<ContextItem>> {
    let read = list.iter().map(|object| match object.cast::<Item>() {
        Ok(item) => Some(item.get().0.clone()),
        Err(_) => read_dict(object.cast::<PyDict>().ok()?, counter),
    });
    read.collect()
}

/// Reads items with the reader of the command.
fn read_documents(
    list: &Bound<'_, PyAny>,
    name: &str,
    counter: &dyn TokenCounter,
) -> PyResult<Vec<ContextItem>> {
    let json = to_json(list, name, NotFinite::Text)?;
    let count = |text: &str| counter.count(text);
    let request =
        Document::parse(&json, Format::Json).and_then(|document| document.request_counted(&count));
    let request = request.map_err(|fault| error::config(fault, name))?;
    Ok(request.items)
}

/// Reads the fields of an item without writing them as JSON, which takes ten times as long. Returns `None` for fields
/// that need a closer look or are invalid: [`read_documents`] knows every form of a field, and the text of every error.
fn read_dict(fields: &Bound<'_, PyDict>, counter: &dyn TokenCounter) -> Option<ContextItem> {
    let py = fields.py();
    let content = fields.get_item(intern!(py, "content")).ok()??;
    let content = text(&content)?;
    let tokens = match fields.get_item(intern!(py, "tokens")).ok()? {
        Some(tokens) => integer(&tokens)?,
        None => counter.count(content),
    };
    let mut item = ContextItem::builder(content, tokens);
    for (name, value) in fields.iter() {
        item = match text(&name)? {
            "content" | "tokens" => item,
            "kind" => item.kind(ContextKind::new(text(&value)?).ok()?),
            "source" => item.source(ContextSource::new(text(&value)?).ok()?),
            "priority" => item.priority(integer(&value)?),
            "tags" => item.tags(strings(&value)?),
            "metadata" => item.metadata(metadata(&value)?),
            "timestamp" => item.timestamp(time(&value)?),
            "future_relevance_hint" => item.future_relevance_hint(float(&value)?),
            "pinned" => item.pinned(boolean(&value)?),
            "original_tokens" => item.original_tokens(integer(&value)?),
            _ => return None,
        };
    }
    item.build().ok()
}

fn integer(value: &Bound<'_, PyAny>) -> Option<i64> {
    value.cast_exact::<PyInt>().ok()?.extract().ok()
}

fn float(value: &Bound<'_, PyAny>) -> Option<f64> {
    if let Ok(number) = value.cast::<PyFloat>() {
        return Some(number.value());
    }
    value.cast_exact::<PyInt>().ok()?.extract().ok()
}

fn boolean(value: &Bound<'_, PyAny>) -> Option<bool> {
    Some(value.cast::<PyBool>().ok()?.is_true())
}

fn text<'a>(value: &'a Bound<'_, PyAny>) -> Option<&'a str> {
    value.cast::<PyString>().ok()?.to_str().ok()
}

fn label(value: &Bound<'_, PyAny>) -> Option<String> {
    text(value).map(str::to_owned)
}

fn strings(value: &Bound<'_, PyAny>) -> Option<Vec<String>> {
    let list = value.cast::<PyList>().ok()?;
    list.iter().map(|text| label(&text)).collect()
}

fn metadata(value: &Bound<'_, PyAny>) -> Option<HashMap<String, String>> {
    let fields = value.cast::<PyDict>().ok()?;
    let fields = fields.iter();
    fields
        .map(|(key, value)| Some((label(&key)?, label(&value)?)))
        .collect()
}

fn time(value: &Bound<'_, PyAny>) -> Option<DateTime<Utc>> {
    let text = match value.cast::<PyString>() {
        Ok(text) => text.to_str().ok()?.to_owned(),
        Err(_) => rfc3339(value, "timestamp").ok()??,
    };
    let time = DateTime::parse_from_rfc3339(&text).ok()?;
    Some(time.with_timezone(&Utc))
}
