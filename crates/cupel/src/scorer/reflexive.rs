//! [`ReflexiveScorer`].

use super::{BuiltinScorer, Pointwise, Scorer};
use crate::ContextItem;

/// Scores by the caller's hint, clamped to `[0, 1]`.
///
/// An item without a hint, or with one that is not finite, scores 0.0 (REFLEX-2).
///
/// ```
/// use cupel::{ContextItem, ReflexiveScorer, Scorer};
///
/// let hinted = |hint| ContextItem::builder("x", 1).future_relevance_hint(hint).build();
/// let items = [hinted(0.5)?, hinted(1.7)?, hinted(-0.3)?, hinted(f64::INFINITY)?];
/// assert_eq!(ReflexiveScorer.score_all(&items)?, [0.5, 1.0, 0.0, 0.0]);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ReflexiveScorer;

impl Scorer for ReflexiveScorer {
    fn score(&self, item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
        match item.future_relevance_hint() {
            Some(hint) if hint.is_finite() => hint.clamp(0.0, 1.0),
            _ => 0.0,
        }
    }

    fn builtin(&self) -> Option<&dyn BuiltinScorer> {
        Some(self)
    }

    fn reads_hints(&self) -> bool {
        true
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        Ok(super::ScorerConfig::Reflexive)
    }
}

impl Pointwise for ReflexiveScorer {}
