//! Presets: policies that have a name (feature `documents`).

use std::sync::LazyLock;

use super::error::{ConfigError, ConfigErrorKind};
use super::{Document, Format, PolicyConfig};

/// A policy that has a name.
#[derive(Debug)]
pub struct Preset {
    name: &'static str,
    text: &'static str,
    config: PolicyConfig,
}

impl Preset {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Counts its changes; another version may choose otherwise.
    pub fn version(&self) -> i64 {
        self.config.version.unwrap_or(1)
    }

    /// When to use it, in a line.
    pub fn description(&self) -> &str {
        self.config.description.as_deref().unwrap_or_default()
    }

    /// Its document, as JSON.
    pub fn text(&self) -> &'static str {
        self.text
    }

    /// Its data.
    pub fn config(&self) -> &PolicyConfig {
        &self.config
    }
}

/// All presets.
///
/// ```
/// let names: Vec<_> = cupel::config::presets().iter().map(|preset| preset.name()).collect();
/// assert_eq!(
///     names,
///     ["chat", "code-review", "rag", "document-qa", "tool-use", "long-running", "debugging"]
/// );
/// ```
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// The preset of this name.
///
/// # Errors
///
/// [`ConfigErrorKind::UnknownName`], with a suggestion where there is one.
///
/// ```
/// use cupel::config::preset;
///
/// assert!(preset("rag")?.config().build().is_ok());
/// let error = preset("code_reviews").unwrap_err();
/// assert_eq!(error.to_string(), r#"unknown preset "code_reviews"; did you mean "code-review"?"#);
/// # Ok::<(), cupel::config::ConfigError>(())
/// ```
pub fn preset(name: &str) -> Result<&'static Preset, ConfigError> {
    let found = PRESETS.iter().find(|preset| preset.name == name);
    found.ok_or_else(|| {
        let known = PRESETS.iter().map(Preset::name);
        ConfigError::unknown(ConfigErrorKind::UnknownName, "preset", name, known)
    })
}

static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    let texts = [
        ("chat", include_str!("presets/chat.json")),
        ("code-review", include_str!("presets/code-review.json")),
        ("rag", include_str!("presets/rag.json")),
        ("document-qa", include_str!("presets/document-qa.json")),
        ("tool-use", include_str!("presets/tool-use.json")),
        ("long-running", include_str!("presets/long-running.json")),
        ("debugging", include_str!("presets/debugging.json")),
    ];
    let read = |(name, text)| {
        let config = Document::parse(text, Format::Json).and_then(|it| it.policy_config());
        Preset {
            name,
            text,
            config: config.expect("a preset is a valid policy, as a test of all shows"),
        }
    };
    texts.map(read).into()
});
