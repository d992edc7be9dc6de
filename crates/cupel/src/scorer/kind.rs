//! [`KindScorer`].

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::{BuiltinScorer, Pointwise, Scorer, check_weight};
use crate::model::KnownKind;
use crate::{ContextItem, ContextKind, CupelError};

/// Scores by kind: every kind has a weight, and a kind without one scores 0.0.
///
/// Weights are not clamped; a weight of 5 scores 5 (KIND-1).
///
/// ```
/// use cupel::{ContextItem, ContextKind, KindScorer, Scorer};
///
/// let memory = ContextItem::builder("likes tea", 3).kind(ContextKind::memory()).build()?;
/// assert_eq!(KindScorer::with_default_weights().score(&memory, &[]), 0.8);
///
/// let scorer = KindScorer::from_weights([(ContextKind::new("MEMORY")?, 2.0)])?;
/// assert_eq!(scorer.score(&memory, &[]), 2.0);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Clone)]
pub struct KindScorer {
    weights: HashMap<ContextKind, f64>,
    /// The weights of the specification's kinds, by [`KnownKind`].
    known: [f64; KnownKind::ALL.len()],
}

impl KindScorer {
    pub(crate) const DEFAULT_WEIGHTS: [(&str, f64); 5] = [
        (ContextKind::SYSTEM_PROMPT, 1.0),
        (ContextKind::MEMORY, 0.8),
        (ContextKind::TOOL_OUTPUT, 0.6),
        (ContextKind::DOCUMENT, 0.4),
        (ContextKind::MESSAGE, 0.2),
    ];

    /// Creates a scorer with the specification's weights: system prompt 1.0, memory 0.8, tool output 0.6,
    /// document 0.4, message 0.2 (KIND-2).
    pub fn with_default_weights() -> Self {
        let weights = Self::DEFAULT_WEIGHTS.into_iter();
        Self::of(
            weights
                .map(|(kind, weight)| (ContextKind::from_static(kind), weight))
                .collect(),
        )
    }

    /// Creates a scorer with a weight per kind.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if a weight is negative or not finite.
    pub fn new(weights: HashMap<ContextKind, f64>) -> Result<Self, CupelError> {
        let mut sorted: Vec<_> = weights.into_iter().collect();
        sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Self::from_weights(sorted)
    }

    /// Creates a scorer from a list of weights.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if a weight is negative or not finite, or a kind is
    /// listed twice.
    pub fn from_weights(
        weights: impl IntoIterator<Item = (ContextKind, f64)>,
    ) -> Result<Self, CupelError> {
        let mut checked = HashMap::new();
        for (kind, weight) in weights {
            check_weight(weight, || format!("weight for kind '{kind}'"))?;
            if checked.contains_key(&kind) {
                return Err(CupelError::ScorerConfig(format!(
                    "kind '{kind}' is listed twice; give every kind one weight"
                )));
            }
            checked.insert(kind, weight);
        }
        Ok(Self::of(checked))
    }

    fn of(weights: HashMap<ContextKind, f64>) -> Self {
        let mut known = [0.0; KnownKind::ALL.len()];
        for kind in KnownKind::ALL {
            let weight = ContextKind::try_from(kind.name()).ok();
            let weight = weight.and_then(|kind| weights.get(&kind).copied());
            known[kind as usize] = weight.unwrap_or(0.0);
        }
        Self { weights, known }
    }
}

#[expect(clippy::missing_fields_in_debug, reason = "derived from the weights")]
impl fmt::Debug for KindScorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weights: BTreeMap<_, _> = self.weights.iter().collect();
        f.debug_struct("KindScorer")
            .field("weights", &weights)
            .finish()
    }
}

impl Scorer for KindScorer {
    #[inline]
    fn score(&self, item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
        match item.known_kind() {
            Some(kind) => self.known[kind as usize],
            None => self.weights.get(item.kind()).copied().unwrap_or(0.0),
        }
    }

    fn builtin(&self) -> Option<&dyn BuiltinScorer> {
        Some(self)
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        let weights = self.weights.iter();
        Ok(super::ScorerConfig::Kind {
            weights: weights
                .map(|(kind, weight)| (kind.clone(), *weight))
                .collect(),
        })
    }
}

impl Pointwise for KindScorer {}

#[cfg(feature = "serde")]
impl KindScorer {
    pub(crate) fn from_config(
        weights: BTreeMap<ContextKind, f64>,
    ) -> Result<Self, super::ConfigError> {
        Self::from_weights(weights).map_err(crate::config::invalid_in("weights"))
    }
}
