//! Chat formats and token counters on the command line.

use clap::Args;
use cupel::config::nearest_name;
use cupel_chat::{
    Encoding, Heuristic, Model, Scaled, Shape, TokenCounter, UnknownEncoding, UnknownModel,
};

use crate::failure::Failure;
use crate::input::ReadArgs;

/// How an input is read and its tokens are counted.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,

    /// Encoding, such as o200k. Default: the model's
    ///
    /// `heuristic` is an estimate for models whose encoding is not public. Without a known model it is o200k.
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    encoding: Option<Counter>,

    /// Multiply counted tokens, for a provider that counts differently
    #[arg(
        long,
        hide_short_help = true,
        value_name = "NUMBER",
        allow_hyphen_values = true
    )]
    factor: Option<f64>,
}

/// A token counter.
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
            name => name
                .parse()
                .map(Self::Exact)
                .map_err(|error: UnknownEncoding| {
                    let known = Encoding::ALL.iter().map(TokenCounter::name);
                    let near = nearest_name(name, known.chain(["heuristic"]));
                    let near =
                        near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
                    format!("{error}, heuristic{near}")
                }),
        }
    }
}

impl Counter {
    /// The counters to compare.
    pub(crate) const ALL: [Self; 3] = [
        Self::Exact(Encoding::O200k),
        Self::Exact(Encoding::Cl100k),
        Self::Heuristic,
    ];

    /// Returns the counter of a model.
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
    /// Returns the counter by `--encoding`, else by the model. An unknown model is estimated, and so are
    /// chats without a model in the format of a provider whose encoding is not public.
    pub(crate) fn counter(
        &self,
        model: Option<&str>,
        shape: Option<Shape>,
    ) -> Result<Box<dyn TokenCounter>, Failure> {
        let counter = match (self.encoding, model.map(Model::find)) {
            (Some(counter), _) => counter.boxed(),
            (None, Some(Ok(model))) => Counter::of(model).boxed(),
            (None, Some(Err(_))) => Box::new(Guess(DEFAULT)),
            (None, None) if shape.is_some_and(Shape::is_estimated) => Box::new(Guess(DEFAULT)),
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

    /// Returns why the model is unknown, if its name chooses the counter.
    pub(crate) fn unknown(&self, model: Option<&str>) -> Option<UnknownModel> {
        match self.encoding {
            Some(_) => None,
            None => Model::find(model?).err(),
        }
    }
}

/// The encoding for an unknown model and for none.
const DEFAULT: Encoding = Encoding::O200k;

/// The encoding of another model, as an estimate.
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
