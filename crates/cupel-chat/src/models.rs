//! Model names: their encoding and the size of their window.

use std::fmt;

use crate::Encoding;

/// The published properties of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    /// The name; dated and suffixed names (`gpt-4o-2024-08-06`) are found by it.
    pub name: &'static str,
    /// The size of its context window in tokens.
    pub window: i64,
    /// Its encoding; `None` if the encoding is not public, so that counts are estimates.
    pub encoding: Option<Encoding>,
}

/// The month in which [`MODELS`] was last compared with the documentation of the providers.
pub const MODELS_AS_OF: &str = "2026-11";

const fn exact(name: &'static str, window: i64, encoding: Encoding) -> Model {
    Model {
        name,
        window,
        encoding: Some(encoding),
    }
}

const fn estimated(name: &'static str, window: i64) -> Model {
    Model {
        name,
        window,
        encoding: None,
    }
}

/// The known models, as of [`MODELS_AS_OF`], with the default size of their context window, not a larger one on
/// request. For any other model name an encoding and give the budget in tokens.
pub const MODELS: &[Model] = &[
    exact("gpt-5.5", 1_050_000, Encoding::O200k),
    exact("gpt-5.4", 1_050_000, Encoding::O200k),
    exact("gpt-5.4-mini", 400_000, Encoding::O200k),
    exact("gpt-5.4-nano", 400_000, Encoding::O200k),
    exact("gpt-5.2", 400_000, Encoding::O200k),
    exact("gpt-5.2-chat", 128_000, Encoding::O200k),
    exact("gpt-5.1", 400_000, Encoding::O200k),
    exact("gpt-5.1-chat", 128_000, Encoding::O200k),
    exact("gpt-5", 400_000, Encoding::O200k),
    exact("gpt-5-chat", 128_000, Encoding::O200k),
    exact("gpt-4.5", 128_000, Encoding::O200k),
    exact("gpt-4.1", 1_047_576, Encoding::O200k),
    exact("gpt-4o", 128_000, Encoding::O200k),
    exact("gpt-4-turbo", 128_000, Encoding::Cl100k),
    exact("gpt-4-32k", 32_768, Encoding::Cl100k),
    exact("gpt-4", 8_192, Encoding::Cl100k),
    exact("gpt-3.5-turbo", 16_385, Encoding::Cl100k),
    exact("gpt-oss", 131_072, Encoding::O200k),
    exact("o1", 200_000, Encoding::O200k),
    exact("o1-mini", 128_000, Encoding::O200k),
    exact("o1-preview", 128_000, Encoding::O200k),
    exact("o3", 200_000, Encoding::O200k),
    exact("o4-mini", 200_000, Encoding::O200k),
    estimated("claude-3", 200_000),
    estimated("claude-3.5", 200_000),
    estimated("claude-3.7", 200_000),
    estimated("claude-opus-4", 200_000),
    estimated("claude-sonnet-4", 200_000),
    estimated("claude-haiku-4", 200_000),
    estimated("claude-opus-5", 1_000_000),
    estimated("claude-sonnet-5", 1_000_000),
    estimated("claude-fable-5", 1_000_000),
    estimated("gemini-1.5-pro", 2_097_152),
    estimated("gemini-1.5-flash", 1_048_576),
    estimated("gemini-2.0-flash", 1_048_576),
    estimated("gemini-2.5-flash", 1_048_576),
    estimated("gemini-2.5-pro", 1_048_576),
    estimated("gemini-3-flash", 1_048_576),
    estimated("gemini-3-pro", 1_048_576),
    estimated("gemini-3-pro-image", 65_536),
    estimated("gemini-3.1-pro", 1_048_576),
    estimated("llama-3.1", 131_072),
    estimated("llama-3.3", 131_072),
    estimated("mistral-large", 131_072),
];

/// The error of [`Model::find`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownModel {
    name: String,
    nearest: Option<&'static str>,
}

impl fmt::Display for UnknownModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown model {:?}", self.name)?;
        if let Some(nearest) = self.nearest {
            write!(f, "; did you mean {nearest:?}?")?;
        }
        f.write_str("; for another model name the encoding (o200k_base, cl100k_base or heuristic) and give the budget in tokens")
    }
}

impl std::error::Error for UnknownModel {}

impl Model {
    /// Finds a model by name. Ignores a date or variant after `-`, `:` or `@`, a provider before `/`, and
    /// `ft:`. The longest known name wins.
    ///
    /// # Errors
    ///
    /// [`UnknownModel`] with the nearest known name.
    ///
    /// ```
    /// use cupel_chat::{Encoding, Model};
    ///
    /// let model = Model::find("openai/gpt-4o-mini-2024-07-18")?;
    /// assert_eq!((model.window, model.encoding), (128_000, Some(Encoding::O200k)));
    /// assert!(Model::find("gtp-4o").unwrap_err().to_string().contains("did you mean \"gpt-4o\"?"));
    /// # Ok::<(), cupel_chat::UnknownModel>(())
    /// ```
    pub fn find(name: &str) -> Result<&'static Self, UnknownModel> {
        let plain = name.strip_prefix("ft:").unwrap_or(name);
        let plain = plain
            .rsplit('/')
            .next()
            .unwrap_or(plain)
            .to_ascii_lowercase();
        let known = |model: &&Self| {
            plain
                .strip_prefix(model.name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':', '@']))
        };
        let longest = MODELS
            .iter()
            .filter(known)
            .max_by_key(|model| model.name.len());
        longest.ok_or_else(|| {
            let known = MODELS.iter().map(|model| model.name);
            UnknownModel {
                name: name.to_owned(),
                nearest: cupel::config::nearest_name(&plain, known),
            }
        })
    }
}
