//! Token counters of the caller: `counter=`, a function that takes a text and returns its number of tokens.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cupel_chat::TokenCounter;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBool;

use crate::callback;
use crate::error::Fault;
use crate::json::described;
use crate::strategy::name_of;

/// A Python function that counts tokens.
///
/// The engine cannot stop while it counts. So after an exception every text has 0 tokens, which ends the call soon, and
/// the caller of the engine raises the exception then: [`take_raised`](Self::take_raised).
pub(crate) struct PyCounter {
    callable: Py<PyAny>,
    name: String,
    counts: Arc<Counts>,
    raised: Mutex<Option<PyErr>>,
}

/// What a function returned, by 128 bits of keyed hashes of the texts. A call that crosses to Python takes
/// microseconds, and an agent sends most of its texts again with every request.
struct Counts {
    keys: [RandomState; 2],
    known: Mutex<HashMap<(u64, u64), i64>>,
    /// A number that no other counter has; a new one after an exception, so that what was shortened with counts of 0 is
    /// not used again.
    identity: AtomicU64,
}

/// The most texts that are remembered per function, some 40 bytes each.
const REMEMBERED: usize = 1 << 19;

fn new_identity() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    // The first bit is set: the encodings have small numbers.
    (1 << 63) | LAST.fetch_add(1, Ordering::Relaxed)
}

impl Counts {
    fn new() -> Self {
        Self {
            keys: [RandomState::new(), RandomState::new()],
            known: Mutex::default(),
            identity: AtomicU64::new(new_identity()),
        }
    }

    fn key(&self, text: &str) -> (u64, u64) {
        let [first, second] = &self.keys;
        (first.hash_one(text), second.hash_one(text))
    }
}

/// What a function returned, as a value of Python's weak dictionary.
#[pyclass(frozen)]
struct Remembered(Arc<Counts>);

impl PyCounter {
    /// Reads a counter: a function.
    pub(crate) fn read(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Arc<Self>> {
        if !value.is_callable() {
            let got = described(value);
            let message = format!("expected a function from a text to its tokens, got {got}");
            let help = "encoding names a counter, such as \"o200k\"";
            return Err(Fault::new(name, message).help(help).into());
        }
        Ok(Arc::new(Self {
            callable: value.clone().unbind(),
            name: name_of(value),
            counts: counts_of(value)?,
            raised: Mutex::default(),
        }))
    }

    /// Returns the same counter for another call, which may run at the same time: what the function raises in one of them
    /// does not end the other.
    pub(crate) fn for_another_call(&self) -> Arc<Self> {
        Arc::new(Self {
            callable: Python::attach(|py| self.callable.clone_ref(py)),
            name: self.name.clone(),
            counts: Arc::clone(&self.counts),
            raised: Mutex::default(),
        })
    }

    /// Returns what the function raised, or the error of what it returned, and forgets it.
    pub(crate) fn take_raised(&self) -> Option<PyErr> {
        self.raised().take()
    }

    fn raised(&self) -> std::sync::MutexGuard<'_, Option<PyErr>> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<(u64, u64), i64>> {
        let known = self.counts.known.lock();
        known.unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the function.
    fn ask(&self, text: &str) -> PyResult<i64> {
        Python::attach(|py| {
            let returned = callback::run(|| self.callable.bind(py).call1((text,)))?;
            let is_integer = returned.hasattr("__index__")? && !returned.is_instance_of::<PyBool>();
            match returned.extract() {
                Ok(tokens @ 0..) if is_integer => Ok(tokens),
                _ => {
                    let got = if is_integer {
                        returned.repr()?.to_string()
                    } else {
                        described(&returned)
                    };
                    let name = &self.name;
                    let message =
                        format!("the counter {name} returned {got}, expected an integer from 0");
                    Err(Fault::new("counter", message).into())
                }
            }
        })
    }
}

/// Returns what the process remembers of a function while there is the function.
fn counts_of(callable: &Bound<'_, PyAny>) -> PyResult<Arc<Counts>> {
    static FUNCTIONS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = callable.py();
    let functions = FUNCTIONS.get_or_try_init(py, || -> PyResult<_> {
        let dictionary = py.import("weakref")?.getattr("WeakKeyDictionary")?;
        Ok(dictionary.call0()?.unbind())
    })?;
    let functions = functions.bind(py);
    // Objects that cannot be hashed or weakly referenced are remembered for one call only.
    if let Ok(found) = functions.call_method1("get", (callable,))
        && let Ok(found) = found.cast::<Remembered>()
    {
        return Ok(Arc::clone(&found.get().0));
    }
    let counts = Arc::new(Counts::new());
    let _ = functions.set_item(callable, Remembered(Arc::clone(&counts)));
    Ok(counts)
}

impl TokenCounter for PyCounter {
    fn count(&self, text: &str) -> i64 {
        if self.raised().is_some() {
            return 0;
        }
        let key = self.counts.key(text);
        if let Some(tokens) = self.known().get(&key) {
            return *tokens;
        }
        // Not under a lock: the function may need another thread, which may count as well.
        match self.ask(text) {
            Ok(tokens) => {
                let mut known = self.known();
                if known.len() >= REMEMBERED {
                    known.clear();
                }
                known.insert(key, tokens);
                tokens
            }
            Err(raised) => {
                self.counts
                    .identity
                    .store(new_identity(), Ordering::Relaxed);
                self.raised().get_or_insert(raised);
                0
            }
        }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn is_estimate(&self) -> bool {
        false
    }

    fn identity(&self) -> Option<u64> {
        Some(self.counts.identity.load(Ordering::Relaxed))
    }
}
