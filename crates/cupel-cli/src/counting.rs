//! How tokens are counted.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use cupel_chat::{Encoding, Heuristic, Model, Scaled, Shape, TokenCounter, UnknownModel};

use crate::failure::Failure;

/// How chats are read and counted.
#[derive(Debug, Args)]
#[command(next_help_heading = "Chats")]
pub(crate) struct ChatArgs {
    /// What the chat looks like, if it is not found out
    #[arg(long, value_name = "SHAPE", value_parser = shape())]
    pub(crate) shape: Option<Shape>,

    /// What counts tokens: o200k, cl100k or heuristic; the model's own unless set, o200k without a known model
    #[arg(long, value_name = "NAME")]
    encoding: Option<Counter>,

    /// Multiply what is counted, for a provider that counts more or less
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    factor: Option<f64>,
}

/// Reads a shape by name.
pub(crate) fn shape() -> impl TypedValueParser<Value = Shape> {
    PossibleValuesParser::new(Shape::ALL.map(Shape::name)).try_map(|name| name.parse())
}

/// A counter by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counter {
    Exact(Encoding),
    Heuristic,
}

impl std::str::FromStr for Counter {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "heuristic" => Ok(Self::Heuristic),
            name => name.parse().map(Self::Exact).map_err(|_| {
                format!("there is no encoding {name:?}; there are o200k, cl100k and heuristic")
            }),
        }
    }
}

impl Counter {
    /// All counters.
    pub(crate) const ALL: [Self; 3] = [
        Self::Exact(Encoding::O200k),
        Self::Exact(Encoding::Cl100k),
        Self::Heuristic,
    ];

    /// The counter of a model.
    pub(crate) fn of(model: &Model) -> Self {
        model.encoding.map_or(Self::Heuristic, Self::Exact)
    }

    pub(crate) fn boxed(self) -> Box<dyn TokenCounter> {
        match self {
            Self::Exact(encoding) => Box::new(encoding),
            Self::Heuristic => Box::new(Heuristic),
        }
    }
}

impl ChatArgs {
    /// What counts: by name, else the model's. A model that is not known is estimated.
    pub(crate) fn counter(&self, model: Option<&str>) -> Result<Box<dyn TokenCounter>, Failure> {
        let counter = match (self.encoding, model.map(Model::find)) {
            (Some(counter), _) => counter.boxed(),
            (None, Some(Ok(model))) => Counter::of(model).boxed(),
            (None, Some(Err(_))) => Box::new(Guess(DEFAULT)),
            (None, None) => Box::new(DEFAULT),
        };
        match self.factor {
            None => Ok(counter),
            Some(factor) => match Scaled::new(counter, factor) {
                Ok(scaled) => Ok(Box::new(scaled)),
                Err(error) => Err(Failure::input(format!("--factor: {error}"))),
            },
        }
    }

    /// What is wrong with the model's name, where the name says what counts.
    pub(crate) fn unknown(&self, model: Option<&str>) -> Option<UnknownModel> {
        match self.encoding {
            Some(_) => None,
            None => Model::find(model?).err(),
        }
    }
}

/// What counts for a model that is not known, or where none is named.
const DEFAULT: Encoding = Encoding::O200k;

/// The encoding of another model.
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
}
