//! [`ProductScorer`].

use std::fmt;
use std::sync::Arc;

use super::{Among, BuiltinScorer, ScorePart, Scorer, scores};
use crate::{ContextItem, CupelError, Query};

/// The product of several scorers, multiplied in order.
///
/// Each child is a factor, such as [`MetadataKeyScorer`](crate::MetadataKeyScorer).
/// [`CompositeScorer`](crate::CompositeScorer) takes the weighted average instead.
///
/// ```
/// use cupel::{ContextItem, MetadataKeyScorer, ProductScorer, ReflexiveScorer, Scorer};
///
/// let scorer = ProductScorer::new(vec![
///     Box::new(ReflexiveScorer),
///     Box::new(MetadataKeyScorer::new("cupel:priority", "high", 1.5)?),
/// ])?;
/// let item = ContextItem::builder("now", 1)
///     .future_relevance_hint(0.5)
///     .meta("cupel:priority", "high")
///     .build()?;
/// assert_eq!(scorer.score(&item, &[]), 0.75);
/// # Ok::<(), cupel::CupelError>(())
/// ```
pub struct ProductScorer {
    scorers: Vec<Arc<dyn Scorer>>,
}

impl ProductScorer {
    /// Creates the product of scorers, multiplied in list order.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if there is none.
    pub fn new(scorers: Vec<Box<dyn Scorer>>) -> Result<Self, CupelError> {
        if scorers.is_empty() {
            return Err(CupelError::ScorerConfig(
                "at least one scorer is required".to_owned(),
            ));
        }
        Ok(Self {
            scorers: scorers.into_iter().map(Arc::from).collect(),
        })
    }
}

impl fmt::Debug for ProductScorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProductScorer")
            .field("num_scorers", &self.scorers.len())
            .finish()
    }
}

impl Scorer for ProductScorer {
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
        let scores = self.scorers.iter().map(|s| s.score(item, all_items));
        scores.fold(1.0, |product, score| product * score)
    }

    fn builtin(&self) -> Option<&dyn BuiltinScorer> {
        Some(self)
    }

    fn children(&self) -> Vec<&dyn Scorer> {
        super::as_children(&self.scorers)
    }

    fn with_query(&self, query: &Query) -> Option<Arc<dyn Scorer>> {
        Some(Arc::new(Self {
            scorers: super::with_query_in(&self.scorers, query)?,
        }))
    }

    fn explain_all(&self, items: &[ContextItem]) -> Result<Vec<ScorePart>, CupelError> {
        super::explain_combined(self.scorer_name(), &self.scorers, items, |parts| {
            parts.iter().fold(1.0, |product, part| product * part.score)
        })
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        let mut scorers = Vec::with_capacity(self.scorers.len());
        for (index, scorer) in self.scorers.iter().enumerate() {
            let factor = scorer.to_config();
            scorers.push(factor.map_err(|error| error.within(index).within("scorers"))?);
        }
        Ok(super::ScorerConfig::Product { scorers })
    }
}

impl BuiltinScorer for ProductScorer {
    fn score_among(&self, items: &[ContextItem], among: Among) -> Result<Vec<f64>, CupelError> {
        let mut products = vec![1.0; items.len()];
        for scorer in &self.scorers {
            for (product, score) in products.iter_mut().zip(scores(scorer, items, among)?) {
                *product *= score;
            }
        }
        Ok(products)
    }
}

#[cfg(feature = "serde")]
impl ProductScorer {
    pub(crate) fn from_config(
        scorers: Vec<super::ScorerConfig>,
    ) -> Result<Self, super::ConfigError> {
        let scorers = crate::config::each("scorers", scorers, super::ScorerConfig::into_built)?;
        Self::new(scorers).map_err(crate::config::invalid_in("scorers"))
    }
}
