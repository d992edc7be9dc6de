//! Items: the classes `Item` and `Items`, and items from dicts.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Datelike as _, SecondsFormat, Utc};
use cupel::config::{Document, Format};
use cupel::{ContextItem, ContextKind, ContextSource, Decisions};
use cupel_chat::{Encoding, TokenCounter as _};
use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyDict, PyFloat, PyInt, PyIterator, PyList, PyMapping, PySlice, PyString, PyTuple,
    PyType,
};

use crate::json::{NotFinite, reduced, rfc3339, to_json, to_python};
use crate::{callback, error};

/// A candidate for the context window.
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

    /// Builds an item from its fields.
    #[staticmethod]
    fn from_dict(fields: &Bound<'_, PyMapping>) -> PyResult<Self> {
        let item = match fields.cast::<PyDict>() {
            Ok(fields) => DictReader::default().read(fields)?,
            Err(_) => None,
        };
        match item {
            Some(item) => Ok(Self(item)),
            None => {
                let list = PyList::new(fields.py(), [fields])?;
                let mut items = read_documents(list.as_any(), "item")?;
                // One dict is one item.
                Ok(Self(items.swap_remove(0)))
            }
        }
    }

    /// Returns the fields that are set.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &serde_json::to_value(&self.0).unwrap_or_default())
    }

    #[getter]
    fn content(&self) -> &str {
        self.0.content()
    }

    #[getter]
    fn tokens(&self) -> i64 {
        self.0.tokens()
    }

    #[getter]
    fn kind(&self) -> &str {
        self.0.kind().as_str()
    }

    #[getter]
    fn source(&self) -> &str {
        self.0.source().as_str()
    }

    #[getter]
    fn priority(&self) -> Option<i64> {
        self.0.priority()
    }

    #[getter]
    fn tags(&self) -> Vec<String> {
        self.0.tags().to_vec()
    }

    #[getter]
    fn metadata(&self) -> HashMap<String, String> {
        self.0.metadata().clone()
    }

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

    #[getter]
    fn future_relevance_hint(&self) -> Option<f64> {
        self.0.future_relevance_hint()
    }

    #[getter]
    fn pinned(&self) -> bool {
        self.0.pinned()
    }

    #[getter]
    fn original_tokens(&self) -> Option<i64> {
        self.0.original_tokens()
    }

    /// The shorter forms.
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
    fn new(items: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(Candidates::read(items)?.items))
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
}

enum Objects<'py> {
    List(Bound<'py, PyList>),
    /// The items themselves, as `Item`.
    Prebuilt,
}

impl<'py> Candidates<'py> {
    /// Reads a sequence of items, dicts, or other objects with the fields of an item.
    pub(crate) fn read(value: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(items) = value.cast::<Items>() {
            return Ok(Self {
                items: Arc::clone(&items.get().0),
                objects: Objects::Prebuilt,
            });
        }
        let list = match value.cast::<PyList>() {
            Ok(list) => list.clone(),
            Err(_) => {
                if value.is_instance_of::<PyString>() || value.is_instance_of::<PyDict>() {
                    let got = crate::json::described(value);
                    let message = format!("expected a list of items, got {got}");
                    return Err(error::Fault::new("items", message).into());
                }
                let items = value.try_iter().map_err(|_| {
                    let got = crate::json::described(value);
                    error::Fault::new("items", format!("expected a list of items, got {got}"))
                })?;
                let items = callback::run(|| items.collect::<PyResult<Vec<_>>>());
                PyList::new(value.py(), items?)?
            }
        };
        let mut items = Vec::with_capacity(list.len());
        let mut reader = DictReader::default();
        for object in list.iter() {
            let item = match object.cast::<Item>() {
                Ok(item) => Some(item.get().0.clone()),
                Err(_) => match object.cast::<PyDict>() {
                    Ok(fields) => reader.read(fields)?,
                    Err(_) => None,
                },
            };
            match item {
                Some(item) => items.push(item),
                // The command's reader knows every form of a field, and the text of every error.
                None => {
                    items = read_documents(list.as_any(), "items")?;
                    break;
                }
            }
        }
        Ok(Self {
            items: Arc::new(items),
            objects: Objects::List(list),
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

/// Reads items with the reader of the command.
fn read_documents(list: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<ContextItem>> {
    let json = to_json(list, name, NotFinite::Text)?;
    let count = |text: &str| Encoding::O200k.count(text);
    let request =
        Document::parse(&json, Format::Json).and_then(|document| document.request_counted(&count));
    let request = request.map_err(|fault| error::config(fault, name))?;
    Ok(request.items)
}

/// The fields of an item, in the order of [`Values`].
const FIELDS: [&str; 11] = [
    "content",
    "tokens",
    "kind",
    "source",
    "priority",
    "tags",
    "metadata",
    "timestamp",
    "future_relevance_hint",
    "pinned",
    "original_tokens",
];

/// The values of the fields of an item.
type Values<'py> = [Option<Bound<'py, PyAny>>; FIELDS.len()];

/// Reads the values of the fields. Returns `None` for a key that is not a field.
///
/// Keys of dict literals are interned strings, which are compared by address: 2 ns instead of 20 ns per key.
fn values<'py>(fields: &Bound<'py, PyDict>) -> Option<Values<'py>> {
    static NAMES: PyOnceLock<[Py<PyString>; FIELDS.len()]> = PyOnceLock::new();
    let py = fields.py();
    let names = NAMES.get_or_init(py, || {
        FIELDS.map(|name| PyString::intern(py, name).unbind())
    });
    let mut values: Values<'py> = Default::default();
    for (key, value) in fields.iter() {
        let same = names.iter().position(|name| name.is(&key));
        let found = same.or_else(|| {
            let key = key.cast::<PyString>().ok()?.to_str().ok()?;
            FIELDS.iter().position(|name| *name == key)
        });
        values[found?] = Some(value);
    }
    Some(values)
}

/// Reads items from dicts.
#[derive(Default)]
struct DictReader<'py> {
    kinds: Names<'py, ContextKind>,
    sources: Names<'py, ContextSource>,
}

/// A dict that is not read here.
enum Unread {
    /// A field needs a closer look, or is invalid.
    Unusual,
    Raised(PyErr),
}

impl From<PyErr> for Unread {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl<'py> DictReader<'py> {
    /// Reads the fields of an item. Returns `None` for a field that needs a closer look.
    fn read(&mut self, fields: &Bound<'py, PyDict>) -> PyResult<Option<ContextItem>> {
        match self.item(fields) {
            Ok(item) => Ok(Some(item)),
            Err(Unread::Unusual) => Ok(None),
            Err(Unread::Raised(error)) => Err(error),
        }
    }

    fn item(&mut self, fields: &Bound<'py, PyDict>) -> Result<ContextItem, Unread> {
        let values = values(fields).ok_or(Unread::Unusual)?;
        let [
            content,
            tokens,
            kind,
            source,
            priority,
            tags,
            metadata,
            timestamp,
            future_relevance_hint,
            pinned,
            original_tokens,
        ] = &values;
        let content = content.as_ref().and_then(text).ok_or(Unread::Unusual)?;
        let tokens = match tokens {
            Some(tokens) => integer(tokens).ok_or(Unread::Unusual)?,
            None => Encoding::O200k.count(content),
        };
        let mut builder = ContextItem::builder(content, tokens);
        macro_rules! set {
            ($($field:ident: $read:expr;)*) => {
                $(if let Some(value) = $field {
                    builder = builder.$field($read(value).ok_or(Unread::Unusual)?);
                })*
            };
        }
        set! {
            kind: |name| self.kinds.get(name, |name| ContextKind::new(name).ok());
            source: |name| self.sources.get(name, |name| ContextSource::new(name).ok());
            priority: integer;
            tags: strings;
            metadata: self::metadata;
            future_relevance_hint: float;
            pinned: boolean;
            original_tokens: integer;
        }
        if let Some(value) = timestamp {
            builder = builder.timestamp(time(value)?.ok_or(Unread::Unusual)?);
        }
        builder.build().map_err(|_| Unread::Unusual)
    }
}

/// The names of a list of items by the string that holds them. Lists repeat a few, as the same objects.
struct Names<'py, T>(Vec<(Bound<'py, PyAny>, T)>);

impl<T> Default for Names<'_, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'py, T: Clone> Names<'py, T> {
    const CAPACITY: usize = 8;

    fn get(&mut self, name: &Bound<'py, PyAny>, new: impl Fn(&str) -> Option<T>) -> Option<T> {
        if let Some((_, known)) = self.0.iter().find(|(object, _)| object.is(name)) {
            return Some(known.clone());
        }
        let value = new(text(name)?)?;
        if self.0.len() < Self::CAPACITY {
            self.0.push((name.clone(), value.clone()));
        }
        Some(value)
    }
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

fn time(value: &Bound<'_, PyAny>) -> PyResult<Option<DateTime<Utc>>> {
    if let Some(time) = exact_time(value)? {
        return Ok(Some(time));
    }
    let text = match value.cast::<PyString>() {
        Ok(text) => text.to_str().ok().map(str::to_owned),
        // The command's reader names the item in an error.
        Err(_) => rfc3339(value, "timestamp").unwrap_or_default(),
    };
    let time = text.and_then(|text| DateTime::parse_from_rfc3339(&text).ok());
    Ok(time.map(|time| time.with_timezone(&Utc)))
}

/// Returns the time of a `datetime` with a `timezone`: 0.2 us instead of 1.2 us through its text.
fn exact_time(value: &Bound<'_, PyAny>) -> PyResult<Option<DateTime<Utc>>> {
    struct Module {
        datetime: Py<PyAny>,
        timezone: Py<PyAny>,
        epoch: Py<PyAny>,
    }
    static MODULE: PyOnceLock<Module> = PyOnceLock::new();
    let py = value.py();
    let module = MODULE.get_or_try_init(py, || {
        let module = py.import(intern!(py, "datetime"))?;
        let (datetime, timezone) = (module.getattr("datetime")?, module.getattr("timezone")?);
        let epoch = datetime.call_method1("fromtimestamp", (0, timezone.getattr("utc")?))?;
        Ok::<_, PyErr>(Module {
            datetime: datetime.unbind(),
            timezone: timezone.unbind(),
            epoch: epoch.unbind(),
        })
    })?;
    if !value.get_type().is(&module.datetime) {
        return Ok(None);
    }
    let zone = value.getattr(intern!(py, "tzinfo"))?;
    if !zone.get_type().is(&module.timezone) {
        return Ok(None);
    }
    let since = value.sub(&module.epoch)?;
    let days: i64 = since.getattr(intern!(py, "days"))?.extract()?;
    let seconds: i64 = since.getattr(intern!(py, "seconds"))?.extract()?;
    let micros: u32 = since.getattr(intern!(py, "microseconds"))?.extract()?;
    Ok(DateTime::from_timestamp(
        days * 86_400 + seconds,
        micros * 1_000,
    ))
}
