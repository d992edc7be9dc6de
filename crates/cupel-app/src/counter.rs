//! [`CounterName`]: token counters by name, and the counter of a run.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use cupel::config::nearest_name;
use cupel_chat::{
    Encoding, Heuristic, MissingVocabulary, Model, Scaled, Shape, TokenCounter, UnknownEncoding,
    UnknownModel,
};

use crate::error::{Error, Fault};

/// A token counter that a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterName {
    /// Counts as the models with this encoding do.
    Exact(Encoding),
    /// Estimates, for models whose encoding is not public.
    Heuristic,
}

impl CounterName {
    /// The counters that [`count`](crate::count) compares.
    pub const COMPARED: [Self; 3] = [
        Self::Exact(Encoding::O200k),
        Self::Exact(Encoding::Cl100k),
        Self::Heuristic,
    ];

    /// Returns the counter of a model: an estimate if its encoding is not public, or its vocabulary is missing.
    pub fn of(model: &Model) -> Self {
        let available = model
            .encoding
            .and_then(|encoding| encoding.available().ok());
        available.map_or(Self::Heuristic, Self::Exact)
    }

    /// Returns the counter.
    pub fn counter(self) -> Arc<dyn TokenCounter> {
        match self {
            Self::Exact(encoding) => Arc::new(encoding),
            Self::Heuristic => Arc::new(Heuristic),
        }
    }
}

impl fmt::Display for CounterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.counter().name())
    }
}

impl FromStr for CounterName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "heuristic" => Ok(Self::Heuristic),
            name => name
                .parse()
                .map_err(|error: UnknownEncoding| {
                    let known = Encoding::ALL.iter().map(TokenCounter::name);
                    let near = nearest_name(name, known.chain(["heuristic"]));
                    let near =
                        near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
                    format!("{error}, heuristic{near}")
                })
                .and_then(|encoding: Encoding| {
                    let available = encoding.available();
                    available.map_err(|missing| missing.to_string())
                })
                .map(Self::Exact),
        }
    }
}

/// Why the tokens of a named model are estimated.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Estimated {
    /// The model is unknown.
    UnknownModel(UnknownModel),
    /// The vocabulary of the model, which is named, is missing.
    MissingVocabulary(&'static str, MissingVocabulary),
}

impl fmt::Display for Estimated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownModel(unknown) => unknown.fmt(f),
            Self::MissingVocabulary(model, missing) => {
                write!(f, "the tokens of {model} are estimated: {missing}")
            }
        }
    }
}

/// Several counters.
pub type Counters = Vec<Arc<dyn TokenCounter>>;

/// How tokens are counted.
#[derive(Clone, Default)]
pub struct CounterOptions {
    /// The counter. Defaults to that of the model.
    pub counter: Option<Arc<dyn TokenCounter>>,
    /// A factor above 0 for a provider that counts differently. Defaults to 1.
    pub factor: Option<f64>,
}

impl fmt::Debug for CounterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CounterOptions")
            .field("counter", &self.counter.as_ref().map(TokenCounter::name))
            .field("factor", &self.factor)
            .finish()
    }
}

impl CounterOptions {
    /// Returns the counter by its name, else by the model. An unknown model is estimated, and so are chats
    /// without a model in the format of a provider whose encoding is not public.
    ///
    /// # Errors
    ///
    /// [`Fault::Factor`].
    pub fn counter(
        &self,
        model: Option<&str>,
        shape: Option<Shape>,
    ) -> Result<Arc<dyn TokenCounter>, Error> {
        let counter = match (&self.counter, model.map(Model::find)) {
            (Some(counter), _) => Arc::clone(counter),
            (None, Some(Ok(model))) => CounterName::of(model).counter(),
            (None, Some(Err(_))) => Arc::new(Guess(DEFAULT)),
            (None, None) if shape.is_some_and(Shape::is_estimated) => Arc::new(Guess(DEFAULT)),
            (None, None) => Arc::new(DEFAULT),
        };
        match self.factor {
            None => Ok(counter),
            Some(factor) => match Scaled::new(counter, factor) {
                Ok(scaled) => Ok(Arc::new(scaled)),
                Err(error) => Err(Fault::Factor(error.to_string()).into()),
            },
        }
    }

    /// Returns the counter by its name, else those that are compared.
    pub(crate) fn compared(&self) -> Result<Counters, Error> {
        let one = |counter: Arc<dyn TokenCounter>| {
            let options = Self {
                counter: Some(counter),
                factor: self.factor,
            };
            options.counter(None, None)
        };
        match &self.counter {
            Some(counter) => Ok(vec![one(Arc::clone(counter))?]),
            None => CounterName::COMPARED
                .map(|it| one(it.counter()))
                .into_iter()
                .collect(),
        }
    }

    /// Returns why tokens are estimated though a model is named, if its name chooses the counter. That an encoding
    /// is not public is no reason to tell.
    pub(crate) fn estimated(&self, model: Option<&str>) -> Option<Estimated> {
        let name = model.filter(|_| self.counter.is_none())?;
        match Model::find(name) {
            Ok(model) => {
                let missing = model.encoding?.available().err()?;
                Some(Estimated::MissingVocabulary(model.name, missing))
            }
            Err(unknown) => Some(Estimated::UnknownModel(unknown)),
        }
    }
}

/// The encoding for an unknown model, and for a chat or items without a model: that of OpenAI's newest models.
const DEFAULT: Encoding = Encoding::O200k;

/// Counts by the encoding of another model, and says that it is an estimate.
struct Guess(Encoding);

impl TokenCounter for Guess {
    fn count(&self, text: &str) -> i64 {
        self.0.count(text)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn is_estimate(&self) -> bool {
        true
    }

    fn identity(&self) -> Option<u64> {
        self.0.identity()
    }
}
