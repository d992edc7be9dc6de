//! The question `models`: the known models.

use cupel_chat::{MODELS, MODELS_AS_OF, Model, TokenCounter as _};

use crate::CounterName;
use serde::Serialize;

/// A known model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelAnswer {
    /// The name.
    pub name: &'static str,
    /// The context window in tokens.
    pub window: i64,
    /// The most tokens of a request, if the model accepts fewer than its window; `None` otherwise.
    pub input_limit: Option<i64>,
    /// The encoding; `None` if it is not public.
    pub encoding: Option<String>,
    /// Whether token counts are estimates.
    pub estimated: bool,
    /// The documentation that the figures are from.
    pub source: &'static str,
    /// The month in which the figures were last compared with it.
    pub as_of: &'static str,
}

impl From<&Model> for ModelAnswer {
    fn from(model: &Model) -> Self {
        Self {
            name: model.name,
            window: model.window,
            input_limit: model.input_limit,
            encoding: model.encoding.map(|encoding| encoding.name().to_owned()),
            estimated: CounterName::of(model) == CounterName::Heuristic,
            source: model.source,
            as_of: MODELS_AS_OF,
        }
    }
}

/// Returns the known models.
pub fn models() -> Vec<ModelAnswer> {
    MODELS.iter().map(ModelAnswer::from).collect()
}
