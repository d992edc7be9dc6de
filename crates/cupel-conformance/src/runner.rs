//! Runs cases through adapters.

mod compare;
mod invariants;
mod summary;
mod words;

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

pub use self::{
    compare::{Comparison, Mismatch, check, compare},
    summary::{Cause, Claim, Failed, Summary, Tally},
};
use crate::{
    model::{Channel, Observation, Task},
    vector::Vector,
};

/// One entry point of an implementation.
///
/// An implementation with several entry points that must agree (plain and
/// traced runs, one score at a time or all at once) has one adapter per entry point.
///
/// ```
/// use cupel_conformance::{Adapter, Unsupported, model::{Channel, Observation, Task}};
///
/// /// Keeps the order it is given.
/// struct Lazy;
///
/// impl Adapter for Lazy {
///     fn name(&self) -> &str {
///         "lazy"
///     }
///
///     fn channels(&self, task: &Task) -> &[Channel] {
///         match task {
///             Task::Place { .. } => &[Channel::Order],
///             _ => &[],
///         }
///     }
///
///     fn observe(&self, task: &Task) -> Result<Observation, Unsupported> {
///         match task {
///             Task::Place { items, .. } => Ok(Observation::Placed((0..items.len()).collect())),
///             _ => Err(Unsupported("only places".into())),
///         }
///     }
/// }
/// # let _ = Lazy.name();
/// ```
pub trait Adapter {
    /// Returns the name of the adapter in failures and summaries; unique in a run.
    fn name(&self) -> &str;

    /// Returns the channels the adapter declares for a task; none if it does not support the task.
    ///
    /// A case that expects something on a declared channel fails if the answer lacks the channel.
    /// An adapter that learns what an implementation supports from its answers declares none.
    fn channels(&self, task: &Task) -> &[Channel];

    /// Does what the task asks and returns what happened.
    ///
    /// An error of the implementation is an observation too: [`Observation::Failed`].
    /// A panic fails the case and nothing else.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if the implementation has no such strategy or entry point.
    fn observe(&self, task: &Task) -> Result<Observation, Unsupported>;
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<T: Adapter + ?Sized> Adapter for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn channels(&self, task: &Task) -> &[Channel] {
                (**self).channels(task)
            }

            fn observe(&self, task: &Task) -> Result<Observation, Unsupported> {
                (**self).observe(task)
            }
        }
    )*};
}

forward!(&T, Box<T>);

/// The adapter does not support a task; holds the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unsupported: {0}")]
pub struct Unsupported(pub String);

/// Selects the cases of a run and lists known failures.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Runs only cases whose name contains this.
    pub name: Option<String>,
    /// Runs only cases that prove a requirement matching this: an id, or a prefix and a `*`.
    pub requirement: Option<String>,
    /// Runs only cases with this flag.
    pub flag: Option<String>,
    /// Cases that are known to fail. A known failure that passes is an error.
    pub known_failures: Vec<KnownFailure>,
}

/// A case that is known to fail on one adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFailure {
    /// The name of the adapter.
    pub adapter: String,
    /// The name of the case.
    pub name: String,
    /// Why it fails.
    pub reason: String,
}

impl Options {
    /// Returns whether the options select a case.
    ///
    /// ```
    /// use cupel_conformance::{Options, suite};
    ///
    /// let options = Options { requirement: Some("SLICE-*".into()), ..Options::default() };
    /// for vector in suite()?.iter().filter(|vector| options.selects(vector)) {
    ///     assert!(vector.requirements.iter().any(|id| id.starts_with("SLICE-")));
    /// }
    /// # Ok::<(), cupel_conformance::VectorErrors>(())
    /// ```
    pub fn selects(&self, vector: &Vector) -> bool {
        let named = |text: &String| vector.name.contains(text);
        let proves = |pattern: &String| vector.requirements.iter().any(|id| matches(pattern, id));
        let flagged = |flag: &String| vector.flags.contains(flag);
        self.name.as_ref().is_none_or(named)
            && self.requirement.as_ref().is_none_or(proves)
            && self.flag.as_ref().is_none_or(flagged)
    }

    fn selects_all(&self) -> bool {
        self.name.is_none() && self.requirement.is_none() && self.flag.is_none()
    }
}

fn matches(pattern: &str, id: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => id.starts_with(beginning),
        None => id == pattern,
    }
}

/// Runs every selected case through every adapter.
///
/// A failure does not stop the run; the summary lists all of them.
pub fn run(vectors: &[Vector], adapters: &[&dyn Adapter], options: &Options) -> Summary {
    let mut summary = Summary::new(vectors, adapters, options);
    for vector in vectors.iter().filter(|vector| options.selects(vector)) {
        for adapter in adapters {
            summary.record(vector, adapter.name(), outcome(vector, *adapter), options);
        }
    }
    summary
}

/// The outcome of one case on one adapter.
enum Outcome {
    /// Holds the channels that were compared.
    Passed(Vec<Channel>),
    Unsupported,
    Failed(Cause),
}

fn outcome(vector: &Vector, adapter: &dyn Adapter) -> Outcome {
    let observed = catch_unwind(AssertUnwindSafe(|| adapter.observe(&vector.task)));
    let (comparison, reason) = match observed {
        Err(panic) => return Outcome::Failed(Cause::Panic(panic_message(panic.as_ref()))),
        Ok(Err(Unsupported(reason))) => (Comparison::default(), reason),
        Ok(Ok(observation)) => (
            compare(vector, &observation),
            "the answer does not have it".to_owned(),
        ),
    };
    let Comparison {
        compared,
        mismatches,
    } = comparison;
    let expected = vector.channels();
    let mut declared = adapter.channels(&vector.task).iter();
    let missing =
        declared.find(|channel| expected.contains(channel) && !compared.contains_key(channel));
    if !mismatches.is_empty() {
        Outcome::Failed(Cause::Mismatches(mismatches))
    } else if let Some(channel) = missing {
        Outcome::Failed(Cause::Unsupported {
            channel: *channel,
            reason,
        })
    } else if compared.is_empty() {
        Outcome::Unsupported
    } else {
        Outcome::Passed(compared.into_keys().collect())
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
