//! How tokens are counted.

use clap::Args;
use cupel_chat::{Encoding, Heuristic, Model, Scaled, Shape, TokenCounter};

use crate::failure::Failure;

/// How chats are read and counted.
#[derive(Debug, Args)]
#[command(next_help_heading = "Chats")]
pub(crate) struct ChatArgs {
    /// What the chat looks like, if it is not found out: openai, openai-responses, anthropic, langchain, items
    #[arg(long, value_name = "SHAPE")]
    pub(crate) shape: Option<Shape>,

    /// What counts tokens: o200k, cl100k or heuristic; the model's own unless set, o200k without a model
    #[arg(long, value_name = "NAME")]
    encoding: Option<Counter>,

    /// Multiply what is counted, for a provider that counts more or less
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    factor: Option<f64>,
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

/// The model that the user names; one that is not known needs an encoding beside it.
pub(crate) fn named_model(name: Option<&str>) -> Result<Option<&'static Model>, Failure> {
    name.map(Model::find)
        .transpose()
        .map_err(|error| Failure::input(error.to_string()))
}

impl ChatArgs {
    /// What counts: by name, else the named model's, else that of the chat's own model if it is known.
    pub(crate) fn counter(
        &self,
        named: Option<&str>,
        own: Option<&str>,
    ) -> Result<Box<dyn TokenCounter>, Failure> {
        let counter = match self.encoding {
            Some(counter) => counter,
            None => match named_model(named)? {
                Some(model) => Counter::of(model),
                None => own
                    .and_then(|name| Model::find(name).ok())
                    .map_or(Counter::Exact(Encoding::O200k), Counter::of),
            },
        };
        match self.factor {
            None => Ok(counter.boxed()),
            Some(factor) => match Scaled::new(counter.boxed(), factor) {
                Ok(scaled) => Ok(Box::new(scaled)),
                Err(error) => Err(Failure::input(format!("--factor: {error}"))),
            },
        }
    }
}
