//! Policies as data (feature `serde`).
//!
//! A [`PolicyConfig`] is plain data that serde reads and writes, and that
//! [builds](PolicyConfig::build) the [`Policy`](crate::Policy) it describes. [`PolicyConfig::of`]
//! is the way back. The names are those of [`registry`].
//!
//! ```
//! use cupel::config::{PolicyConfig, ScorerConfig};
//! use cupel::{ContextBudget, ContextItem};
//!
//! let config: PolicyConfig = serde_json::from_str(
//!     r#"{"scorer": {"type": "scaled", "inner": {"type": "priority"}}, "overflow_strategy": "truncate"}"#,
//! )?;
//! assert_eq!(config.scorer, ScorerConfig::Scaled { inner: ScorerConfig::Priority.into() });
//!
//! let policy = config.build()?;
//! let items = [ContextItem::builder("hello", 2).build()?];
//! assert_eq!(policy.run(&items, &ContextBudget::with_target(10, 10)?)?.len(), 1);
//! assert_eq!(PolicyConfig::of(&policy)?, config);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With the feature `documents`, [`Document`] reads policies and requests from JSON, TOML and YAML
//! text, with line and column in errors. There are [presets](presets()), and JSON Schemas of
//! [policies](policy_schema) and [requests](request_schema).

mod data;
mod define;
#[cfg(feature = "documents")]
mod document;
mod duration;
mod error;
#[cfg(feature = "documents")]
mod faults;
mod policy;
#[cfg(feature = "documents")]
mod presets;
mod query;
pub mod registry;
mod relevance;
#[cfg(feature = "documents")]
mod request;
#[cfg(feature = "documents")]
mod schema;
mod strategies;
mod suggest;
mod tree;

pub use crate::pipeline::{CHAT_SETTINGS, ChatSetting, ChatValue};
use data::Data;
#[cfg(feature = "documents")]
pub use document::{Document, Format};
pub use error::{ConfigError, ConfigErrorKind, Position};
pub(crate) use error::{each, invalid_in, refused_in};
pub use policy::PolicyConfig;
#[cfg(feature = "documents")]
pub use presets::{Preset, preset, presets};
#[cfg(feature = "documents")]
pub use request::RequestConfig;
#[cfg(feature = "documents")]
pub use schema::{policy_schema, record_schema, request_schema};
pub use strategies::{
    CurveConfig, PlacerConfig, ScorerConfig, ScorerEntry, SlicerConfig, StepWindow,
};
pub use suggest::{nearest_name, removed};

/// Implements serde's traits through the tree that documents are parsed into.
macro_rules! serde_through_tree {
    ($($type:ty),* $(,)?) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.write().serialize(serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = crate::RawValue::deserialize(deserializer)?;
                tree::Node::try_from(value)
                    .and_then(|node| Self::read(&node, registry::Shape::Metadata))
                    .map_err(serde::de::Error::custom)
            }
        }
    )*};
}

serde_through_tree!(
    PolicyConfig,
    ScorerConfig,
    ScorerEntry,
    CurveConfig,
    StepWindow,
    SlicerConfig,
    PlacerConfig,
);
