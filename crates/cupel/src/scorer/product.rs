//! [`ProductScorer`].

use std::fmt;

use super::{ScorePart, Scorer};
use crate::{ContextItem, CupelError};

/// The product of several scorers, multiplied in order.
///
/// Beside [`CompositeScorer`](crate::CompositeScorer), which averages: here a child is a
/// factor, as [`MetadataKeyScorer`](crate::MetadataKeyScorer) is meant to be.
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
    scorers: Vec<Box<dyn Scorer>>,
}

impl ProductScorer {
    /// The factors, in the order in which they are multiplied.
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
        Ok(Self { scorers })
    }

    /// The product of the columns of `items` items.
    fn multiply(
        &self,
        items: usize,
        column: impl Fn(&dyn Scorer) -> Result<Vec<f64>, CupelError>,
    ) -> Result<Vec<f64>, CupelError> {
        let mut products = vec![1.0; items];
        for scorer in &self.scorers {
            for (product, score) in products.iter_mut().zip(column(scorer)?) {
                *product *= score;
            }
        }
        Ok(products)
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

    fn score_all(&self, items: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
        self.multiply(items.len(), |scorer| super::column(scorer, items))
    }

    fn score_among(&self, candidates: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
        self.multiply(candidates.len(), |scorer| {
            super::column_among(scorer, candidates)
        })
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
