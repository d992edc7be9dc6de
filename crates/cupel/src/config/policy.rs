//! [`PolicyConfig`]: a policy as data.

use super::data::{Data, Fields, as_str, object, unknown_choice};
use super::error::ConfigError;
use super::registry::{CHAT, POLICY, Shape};
use super::strategies::{PlacerConfig, ScorerConfig, SlicerConfig};
use super::tree::Node;
use crate::pipeline::{CHAT_SETTINGS, ChatValue};
use crate::{ChatSettings, OverflowStrategy, Policy, RawValue, Shorten, ToolResults};

/// A policy as data.
///
/// ```
/// use cupel::config::{PolicyConfig, ScorerConfig, SlicerConfig};
///
/// let config = PolicyConfig::new(ScorerConfig::Recency);
/// assert_eq!(config.slicer, SlicerConfig::Greedy);
/// assert!(config.build().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyConfig {
    /// The name of the policy.
    pub name: Option<String>,
    /// The version of the policy under its name, counted from 1.
    pub version: Option<i64>,
    /// When to use the policy.
    pub description: Option<String>,
    /// How relevant an item is.
    pub scorer: ScorerConfig,
    /// Which items fit into the budget.
    pub slicer: SlicerConfig,
    /// The order of the window.
    pub placer: PlacerConfig,
    /// Whether only the best of several items with the same content is kept.
    pub deduplication: bool,
    /// What happens if pinned and selected items exceed the target.
    pub overflow_strategy: OverflowStrategy,
    /// How a chat is treated.
    pub chat: ChatSettings,
}

impl PolicyConfig {
    /// Creates a policy with this scorer and the defaults: greedy, chronological, with
    /// deduplication, and overflow as an error.
    pub fn new(scorer: ScorerConfig) -> Self {
        Self {
            name: None,
            version: None,
            description: None,
            scorer,
            slicer: SlicerConfig::Greedy,
            placer: PlacerConfig::Chronological,
            deduplication: true,
            overflow_strategy: OverflowStrategy::default(),
            chat: ChatSettings::default(),
        }
    }

    /// Returns a policy as data. The overflow observer is a function and is left out.
    ///
    /// # Errors
    ///
    /// [`ConfigErrorKind::NotData`](super::ConfigErrorKind::NotData) with the path of a strategy
    /// that is not in the [`registry`](super::registry).
    ///
    /// ```
    /// use cupel::config::PolicyConfig;
    /// use cupel::*;
    ///
    /// struct Brevity;
    /// impl Scorer for Brevity {
    ///     fn score(&self, item: &ContextItem, _: &[ContextItem]) -> f64 {
    ///         1.0 / (1.0 + item.content().len() as f64)
    ///     }
    /// }
    ///
    /// let scorer = CompositeScorer::builder().add(RecencyScorer, 1.0).add(Brevity, 2.0).build()?;
    /// let error = PolicyConfig::of(&Policy::new(scorer, GreedySlice, UShapedPlacer)).unwrap_err();
    /// assert_eq!(error.path(), "scorer.entries[1].scorer");
    /// assert!(error.message().starts_with("Brevity cannot be written as data"));
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn of(policy: &Policy) -> Result<Self, ConfigError> {
        let scorer = policy.scorer().to_config();
        let slicer = policy.slicer().to_config();
        let placer = policy.placer().to_config();
        Ok(Self {
            slicer: slicer.map_err(|error| error.within("slicer"))?,
            placer: placer.map_err(|error| error.within("placer"))?,
            deduplication: policy.deduplication(),
            overflow_strategy: policy.overflow_strategy(),
            chat: policy.chat().clone(),
            ..Self::new(scorer.map_err(|error| error.within("scorer"))?)
        })
    }

    /// Builds the policy.
    ///
    /// # Errors
    ///
    /// [`ConfigErrorKind::Invalid`](super::ConfigErrorKind::Invalid) with the path of the part
    /// that its constructor refused.
    pub fn build(&self) -> Result<Policy, ConfigError> {
        let scorer = self.scorer.build().map_err(|e| e.within("scorer"))?;
        let slicer = self.slicer.build().map_err(|e| e.within("slicer"))?;
        let placer = self.placer.build().map_err(|e| e.within("placer"))?;
        Policy::builder()
            .scorer(scorer)
            .slicer(slicer)
            .placer(placer)
            .deduplication(self.deduplication)
            .overflow_strategy(self.overflow_strategy)
            .chat(self.chat.clone())
            .build()
            .map_err(ConfigError::invalid)
    }

    /// Reads a policy; `base` finds the one that it extends.
    pub(super) fn read_with(
        node: &Node<'_>,
        base: impl Fn(&str) -> Result<Self, ConfigError>,
    ) -> Result<Self, ConfigError> {
        let fields = Fields::of(node, &POLICY)?;
        fields.read::<Option<String>>("$schema")?;
        let extends: Option<String> = fields.read("extends")?;
        let base = extends
            .map(|name| base(&name).map_err(|error| error.within("extends")))
            .transpose()?;
        let base = base.as_ref();
        Ok(Self {
            name: fields.read("name")?,
            version: fields.read("version")?,
            description: fields.read("description")?,
            scorer: fields.read_or("scorer", base.map(|base| base.scorer.clone()))?,
            slicer: fields.read_or("slicer", base.map(|base| base.slicer.clone()))?,
            placer: fields.read_or("placer", base.map(|base| base.placer))?,
            deduplication: fields.read_or("deduplication", base.map(|base| base.deduplication))?,
            overflow_strategy: fields
                .read_or("overflow_strategy", base.map(|base| base.overflow_strategy))?,
            chat: {
                let inherited = base.map_or_else(ChatSettings::default, |base| base.chat.clone());
                let chat = fields.read_by("chat", |node, _| read_chat(node, &inherited));
                chat.unwrap_or_else(|| Ok(inherited.clone()))?
            },
        })
    }
}

impl Data for PolicyConfig {
    fn read(node: &Node<'_>, _: Shape) -> Result<Self, ConfigError> {
        Self::read_with(node, base)
    }

    fn write(&self) -> RawValue {
        object([
            ("name", self.name.write()),
            ("version", self.version.write()),
            ("description", self.description.write()),
            ("scorer", self.scorer.write()),
            ("slicer", self.slicer.write()),
            ("placer", self.placer.write()),
            ("deduplication", self.deduplication.write()),
            ("overflow_strategy", self.overflow_strategy.write()),
            ("chat", self.chat.write()),
        ])
    }
}

/// Reads settings over inherited ones: without that, a document that extends `agent` and pins a message would lose its
/// `replay`.
fn read_chat(node: &Node<'_>, inherited: &ChatSettings) -> Result<ChatSettings, ConfigError> {
    fn read<T: Data + Clone>(
        fields: &Fields<'_, '_>,
        name: &str,
        value: &mut T,
    ) -> Result<(), ConfigError> {
        *value = fields.read_or(name, Some(value.clone()))?;
        Ok(())
    }
    let fields = Fields::of(node, &CHAT)?;
    let mut settings = inherited.clone();
    for setting in &CHAT_SETTINGS {
        let name = setting.name();
        match (setting.value)(&mut settings) {
            ChatValue::Switch(value) => read(&fields, name, value)?,
            ChatValue::Tokens(value) => read(&fields, name, value)?,
            ChatValue::Text(value) => read(&fields, name, value)?,
            ChatValue::Messages(value) => read(&fields, name, value)?,
            ChatValue::Shorten(value) => read(&fields, name, value)?,
            ChatValue::Tools(value) => read(&fields, name, value)?,
        }
    }
    Ok(settings)
}

impl Data for ChatSettings {
    fn read(node: &Node<'_>, _: Shape) -> Result<Self, ConfigError> {
        read_chat(node, &Self::default())
    }

    /// Writes the settings that differ from the defaults, and nothing if there are none.
    fn write(&self) -> RawValue {
        let (mut settings, mut defaults) = (self.clone(), Self::default());
        let mut members = Vec::new();
        for setting in &CHAT_SETTINGS {
            let value = (setting.value)(&mut settings);
            if value == (setting.value)(&mut defaults) {
                continue;
            }
            let written = match value {
                ChatValue::Switch(value) => value.write(),
                ChatValue::Tokens(value) => value.write(),
                ChatValue::Text(value) => value.write(),
                ChatValue::Messages(value) => value.write(),
                ChatValue::Shorten(value) => value.write(),
                ChatValue::Tools(value) => value.write(),
            };
            members.push((setting.name().to_owned(), written));
        }
        if members.is_empty() {
            RawValue::Null
        } else {
            RawValue::Map(members)
        }
    }
}

impl Data for Shorten {
    fn read(node: &Node<'_>, _: Shape) -> Result<Self, ConfigError> {
        let name = as_str(node)?;
        Self::find(name).ok_or_else(|| unknown_choice(name, Self::NAMES))
    }

    fn write(&self) -> RawValue {
        RawValue::Text(self.name().to_owned())
    }
}

impl Data for ToolResults {
    fn read(node: &Node<'_>, _: Shape) -> Result<Self, ConfigError> {
        let name = as_str(node)?;
        Self::find(name).ok_or_else(|| unknown_choice(name, Self::NAMES))
    }

    fn write(&self) -> RawValue {
        RawValue::Text(self.name().to_owned())
    }
}

#[cfg(feature = "documents")]
fn base(name: &str) -> Result<PolicyConfig, ConfigError> {
    Ok(super::preset(name)?.config().clone())
}

#[cfg(not(feature = "documents"))]
fn base(name: &str) -> Result<PolicyConfig, ConfigError> {
    Err(ConfigError::new(
        super::ConfigErrorKind::UnknownName,
        format!("unknown preset {name:?}; presets need the feature `documents`"),
    ))
}
