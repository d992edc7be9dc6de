//! [`MetadataTrustScorer`] and [`MetadataKeyScorer`]: scores from metadata.

use super::{BuiltinScorer, Pointwise, Scorer};
use crate::{ContextItem, CupelError};

/// Scores by the trust value the caller stored under `cupel:trust`, clamped to `[0, 1]`.
///
/// An item without a value, or with a value that is not a finite number, gets the default score
/// (TRUST-2 to TRUST-4). Keys that begin with `cupel:` are reserved for such conventions.
///
/// ```
/// use cupel::{ContextItem, MetadataTrustScorer, Scorer};
///
/// let trusted = |value: &str| ContextItem::builder("x", 1).meta("cupel:trust", value).build();
/// let items = [trusted("0.85")?, trusted("1.5")?, trusted("high")?];
/// let scorer = MetadataTrustScorer::new(0.25)?;
/// assert_eq!(scorer.score_all(&items)?, [0.85, 1.0, 0.25]);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct MetadataTrustScorer {
    default_score: f64,
}

impl MetadataTrustScorer {
    /// The metadata key.
    pub const KEY: &str = "cupel:trust";

    /// Creates a scorer with the score of items without a valid value.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if it is outside `[0, 1]`.
    pub fn new(default_score: f64) -> Result<Self, CupelError> {
        if !(0.0..=1.0).contains(&default_score) {
            return Err(CupelError::ScorerConfig(
                "defaultScore must be in [0.0, 1.0]".to_owned(),
            ));
        }
        Ok(Self { default_score })
    }
}

impl Scorer for MetadataTrustScorer {
    fn score(&self, item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
        let value = item.metadata().get(Self::KEY);
        match value.and_then(|text| text.parse::<f64>().ok()) {
            Some(trust) if trust.is_finite() => trust.clamp(0.0, 1.0),
            _ => self.default_score,
        }
    }

    fn builtin(&self) -> Option<&dyn BuiltinScorer> {
        Some(self)
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        Ok(super::ScorerConfig::MetadataTrust {
            default_score: self.default_score,
        })
    }
}

impl Pointwise for MetadataTrustScorer {}

/// Scores a boost where a metadata key has a given value, and 1.0 everywhere else.
///
/// The score is a factor and is not clamped (MKEY-6). [`ProductScorer`] multiplies it with other
/// scores; [`CompositeScorer`] would take their weighted average.
///
/// [`CompositeScorer`]: crate::CompositeScorer
/// [`ProductScorer`]: crate::ProductScorer
///
/// ```
/// use cupel::{ContextItem, MetadataKeyScorer, Scorer};
///
/// let scorer = MetadataKeyScorer::new("cupel:priority", "high", 1.5)?;
/// let urgent = ContextItem::builder("x", 1).meta("cupel:priority", "high").build()?;
/// let plain = ContextItem::builder("y", 1).build()?;
/// assert_eq!(scorer.score(&urgent, &[]), 1.5);
/// assert_eq!(scorer.score(&plain, &[]), 1.0);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct MetadataKeyScorer {
    key: String,
    value: String,
    boost: f64,
}

impl MetadataKeyScorer {
    /// Creates a scorer from a key, the value that gets the boost, and the boost.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if the boost is not a finite number above 0.
    pub fn new(
        key: impl Into<String>,
        value: impl Into<String>,
        boost: f64,
    ) -> Result<Self, CupelError> {
        if !boost.is_finite() || boost <= 0.0 {
            return Err(CupelError::ScorerConfig(
                "boost must be a finite value greater than 0.0".to_owned(),
            ));
        }
        Ok(Self {
            key: key.into(),
            value: value.into(),
            boost,
        })
    }
}

impl Scorer for MetadataKeyScorer {
    fn score(&self, item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
        if item.metadata().get(&self.key) == Some(&self.value) {
            self.boost
        } else {
            1.0
        }
    }

    fn builtin(&self) -> Option<&dyn BuiltinScorer> {
        Some(self)
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        Ok(super::ScorerConfig::MetadataKey {
            key: self.key.clone(),
            value: self.value.clone(),
            boost: self.boost,
        })
    }
}

impl Pointwise for MetadataKeyScorer {}

#[cfg(feature = "serde")]
impl MetadataTrustScorer {
    pub(crate) fn from_config(default_score: f64) -> Result<Self, super::ConfigError> {
        Self::new(default_score).map_err(crate::config::refused_in(
            "default_score",
            "default_score must be from 0 to 1",
        ))
    }
}

#[cfg(feature = "serde")]
impl MetadataKeyScorer {
    pub(crate) fn from_config(
        key: String,
        value: String,
        boost: f64,
    ) -> Result<Self, super::ConfigError> {
        Self::new(key, value, boost).map_err(crate::config::invalid_in("boost"))
    }
}
