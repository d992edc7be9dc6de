//! Presets: the built-in policies (feature `documents`).

use std::sync::LazyLock;

use super::error::{ConfigError, ConfigErrorKind};
use super::{Document, Format, PolicyConfig};
use crate::Policy;

/// A built-in policy.
#[derive(Debug)]
pub struct Preset {
    name: &'static str,
    text: &'static str,
    is_for_chats: bool,
    config: PolicyConfig,
}

impl Preset {
    /// Returns the name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the version. Windows may differ between versions.
    pub fn version(&self) -> i64 {
        self.config.version.unwrap_or(1)
    }

    /// Returns when to use it, in one line.
    pub fn description(&self) -> &str {
        self.config.description.as_deref().unwrap_or_default()
    }

    /// Returns whether it is for chats. A preset for items may drop the task and the newest step of a chat.
    ///
    /// ```
    /// use cupel::config::preset;
    ///
    /// assert!(preset("agent")?.is_for_chats() && !preset("rag")?.is_for_chats());
    /// # Ok::<(), cupel::config::ConfigError>(())
    /// ```
    pub fn is_for_chats(&self) -> bool {
        self.is_for_chats
    }

    /// Returns the JSON document.
    pub fn text(&self) -> &'static str {
        self.text
    }

    /// Returns the policy as data.
    pub fn config(&self) -> &PolicyConfig {
        &self.config
    }
}

/// Returns all presets.
///
/// ```
/// let names: Vec<_> = cupel::config::presets().iter().map(|preset| preset.name()).collect();
/// assert_eq!(
///     names,
///     ["agent", "single", "tool-use", "relevant", "newest", "chat", "memory", "code-review", "rag", "document-qa", "long-running", "debugging"]
/// );
/// ```
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// Returns the preset of this name.
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

impl Policy {
    /// Builds the preset of this name (feature `documents`).
    ///
    /// # Errors
    ///
    /// As [`preset`].
    ///
    /// ```
    /// use cupel::{ContextBudget, ContextItem, Policy};
    ///
    /// let items = [ContextItem::builder("hello", 2).build()?];
    /// let budget = ContextBudget::builder(100).build()?;
    /// assert_eq!(Policy::preset("rag")?.run(&items, &budget)?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn preset(name: &str) -> Result<Self, ConfigError> {
        preset(name)?.config().build()
    }
}

macro_rules! texts {
    ($($audience:ident: $($name:literal)+;)+) => {
        [$($((
            $name,
            include_str!(concat!("presets/", $name, ".json")),
            stringify!($audience),
        )),+),+]
    };
}

/// The names, documents and audiences, in the order of the documentation.
const TEXTS: [(&str, &str, &str); 12] = texts![
    chats: "agent" "single" "tool-use" "relevant" "newest";
    items: "chat" "memory" "code-review" "rag" "document-qa" "long-running" "debugging";
];

static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    let read = |(name, text, audience)| {
        let config = Document::parse(text, Format::Json).and_then(|it| it.preset_config());
        Preset {
            name,
            text,
            is_for_chats: audience == "chats",
            config: config.expect("presets are valid policies; a test builds all"),
        }
    };
    TEXTS.map(read).into()
});
