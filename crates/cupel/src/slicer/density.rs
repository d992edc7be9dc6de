//! [`DensitySlice`].

use super::fill::fills_by_key;
use crate::{CupelError, GreedySlice, ScoredRef, Slicer};

/// Takes items by `score / tokens^exponent`, best first, while they fit.
///
/// The exponent says how much short items are preferred: with 0 the slicer is
/// [`RankSlice`](crate::RankSlice), with 1 [`GreedySlice`](crate::GreedySlice). Evidence for a question
/// is not worth less because it is long, so 0 suits relevance scores; values between are a compromise.
/// Otherwise it behaves as these: equal densities keep their rank order, an item that does not fit is
/// skipped, and items of zero tokens are kept while the target is positive.
///
/// ```
/// use cupel::{ContextBudget, ContextItem, DensitySlice, ScoredItem, Slicer};
///
/// let scored = |content: &str, tokens, score| -> Result<_, cupel::CupelError> {
///     Ok(ScoredItem { item: ContextItem::builder(content, tokens).build()?, score })
/// };
/// let sorted = [scored("long", 64, 0.9)?, scored("middle", 36, 0.7)?, scored("short", 4, 0.2)?];
/// let first = |exponent| -> Result<_, cupel::CupelError> {
///     let budget = ContextBudget::with_target(64, 64)?;
///     let kept = DensitySlice::new(exponent)?.slice(&sorted, &budget)?;
///     Ok(kept[0].content().to_owned())
/// };
/// assert_eq!(first(0.0)?, "long");
/// assert_eq!(first(0.5)?, "middle"); // 0.1125, 0.1167, 0.1
/// assert_eq!(first(1.0)?, "short");
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DensitySlice {
    exponent: f64,
}

impl DensitySlice {
    /// Creates a slicer that divides scores by this power of the token count.
    ///
    /// # Errors
    ///
    /// [`CupelError::SlicerConfig`] if the exponent is negative or not finite.
    pub fn new(exponent: f64) -> Result<Self, CupelError> {
        if exponent >= 0.0 && exponent.is_finite() {
            return Ok(Self { exponent });
        }
        Err(CupelError::SlicerConfig(format!(
            "exponent {exponent} must be finite and not negative"
        )))
    }
}

impl DensitySlice {
    fn key(self, scored: &ScoredRef<'_>) -> f64 {
        if self.exponent == 0.0 {
            // `RankSlice`: also free items are taken by rank.
            return 0.0;
        }
        // Division by `powf(1.0)` would give the same number, but is slower.
        if self.exponent == 1.0 || scored.item.tokens() == 0 {
            return GreedySlice.key(scored);
        }
        scored.score / (scored.item.tokens() as f64).powf(self.exponent)
    }
}

impl Slicer for DensitySlice {
    fills_by_key!();

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::SlicerConfig, super::ConfigError> {
        Ok(super::SlicerConfig::Density {
            exponent: self.exponent,
        })
    }
}

#[cfg(feature = "serde")]
impl DensitySlice {
    pub(crate) fn from_config(exponent: f64) -> Result<Self, super::ConfigError> {
        Self::new(exponent).map_err(crate::config::invalid_in("exponent"))
    }
}
