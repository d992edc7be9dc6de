//! [`CompositeScorer`].

use std::fmt;
use std::sync::Arc;

use super::{Among, BuiltinScorer, ScorePart, Scorer, scores};
use crate::{ContextItem, CupelError, Query};

/// The weighted average of several scorers.
///
/// Weights are relative: 3 and 1 are the same as 0.75 and 0.25 (COMP-3). A scorer owns its children
/// and so cannot contain itself (COMP-9); an `Arc` lets several parents share one scorer.
///
/// To multiply scores instead, use [`ProductScorer`](crate::ProductScorer).
///
/// ```
/// use cupel::{CompositeScorer, ContextItem, KindScorer, ReflexiveScorer, Scorer};
///
/// let scorer = CompositeScorer::builder()
///     .add(ReflexiveScorer, 3.0)
///     .add(KindScorer::with_default_weights(), 1.0)
///     .build()?;
/// let item = ContextItem::builder("hello", 1).future_relevance_hint(1.0).build()?;
/// assert_eq!(scorer.score(&item, &[]), 0.75 * 1.0 + 0.25 * 0.2);
/// # Ok::<(), cupel::CupelError>(())
/// ```
pub struct CompositeScorer {
    scorers: Vec<Arc<dyn Scorer>>,
    /// The weights as given.
    #[cfg(feature = "serde")]
    weights: Vec<f64>,
    normalized_weights: Vec<f64>,
}

impl CompositeScorer {
    /// Creates the average of scorers with their weights, summed in list order.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if there is no entry, a weight is not positive and
    /// finite, or the sum of the weights is not finite.
    pub fn new(entries: Vec<(Box<dyn Scorer>, f64)>) -> Result<Self, CupelError> {
        let total = super::total_weight(&entries)?;
        let (scorers, weights): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
        Ok(Self {
            scorers: scorers.into_iter().map(Arc::from).collect(),
            normalized_weights: weights.iter().map(|weight| weight / total).collect(),
            #[cfg(feature = "serde")]
            weights,
        })
    }

    /// Starts an empty composite; see [`CompositeScorerBuilder`].
    pub fn builder() -> CompositeScorerBuilder {
        CompositeScorerBuilder {
            entries: Vec::new(),
        }
    }
}

#[cfg_attr(
    feature = "serde",
    expect(clippy::missing_fields_in_debug, reason = "derived from the weights")
)]
impl fmt::Debug for CompositeScorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompositeScorer")
            .field("num_scorers", &self.scorers.len())
            .field("normalized_weights", &self.normalized_weights)
            .finish()
    }
}

impl Scorer for CompositeScorer {
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
        let children = self.scorers.iter().zip(&self.normalized_weights);
        children.fold(0.0, |sum, (scorer, weight)| {
            sum + scorer.score(item, all_items) * weight
        })
    }

    fn builtin(&self) -> Option<&dyn BuiltinScorer> {
        Some(self)
    }

    fn children(&self) -> Vec<&dyn Scorer> {
        super::as_children(&self.scorers)
    }

    fn ranks_by_time(&self) -> bool {
        let children = self.scorers.iter().zip(&self.normalized_weights);
        let by_time = children.filter(|(scorer, _)| scorer.ranks_by_time());
        by_time.map(|(_, weight)| weight).sum::<f64>() > 0.5
    }

    fn with_query(&self, query: &Query) -> Option<Arc<dyn Scorer>> {
        Some(Arc::new(Self {
            scorers: super::with_query_in(&self.scorers, query)?,
            #[cfg(feature = "serde")]
            weights: self.weights.clone(),
            normalized_weights: self.normalized_weights.clone(),
        }))
    }

    fn explain_all(&self, items: &[ContextItem]) -> Result<Vec<ScorePart>, CupelError> {
        super::explain_combined(self.scorer_name(), &self.scorers, items, |parts| {
            let weighted = parts.iter_mut().zip(&self.normalized_weights);
            weighted.fold(0.0, |sum, (part, weight)| {
                part.set_weight(*weight);
                sum + part.score * weight
            })
        })
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        let entries = super::entries_to_config(&self.scorers, &self.weights)?;
        Ok(super::ScorerConfig::Composite { entries })
    }
}

impl BuiltinScorer for CompositeScorer {
    fn score_among(&self, items: &[ContextItem], among: Among) -> Result<Vec<f64>, CupelError> {
        let mut children = self.scorers.iter().zip(&self.normalized_weights);
        let Some((first, weight)) = children.next() else {
            return Ok(vec![0.0; items.len()]);
        };
        let mut sums = scores(first, items, among)?;
        for score in &mut sums {
            // `0.0 + -0.0` is `0.0`, as in a sum that starts at zero.
            *score = 0.0 + *score * weight;
        }
        for (scorer, weight) in children {
            for (sum, score) in sums.iter_mut().zip(scores(scorer, items, among)?) {
                *sum += score * weight;
            }
        }
        Ok(sums)
    }
}

/// Builds a [`CompositeScorer`].
///
/// ```
/// use cupel::CompositeScorer;
///
/// let error = CompositeScorer::builder().build().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "invalid scorer configuration: at least one scorer entry is required"
/// );
/// ```
pub struct CompositeScorerBuilder {
    entries: Vec<(Box<dyn Scorer>, f64)>,
}

impl CompositeScorerBuilder {
    /// Adds a scorer with its weight.
    pub fn add(mut self, scorer: impl Scorer + 'static, weight: f64) -> Self {
        self.entries.push((Box::new(scorer), weight));
        self
    }

    /// Builds the composite.
    ///
    /// # Errors
    ///
    /// As [`CompositeScorer::new`].
    pub fn build(self) -> Result<CompositeScorer, CupelError> {
        CompositeScorer::new(self.entries)
    }
}

impl fmt::Debug for CompositeScorerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weights: Vec<f64> = self.entries.iter().map(|entry| entry.1).collect();
        f.debug_struct("CompositeScorerBuilder")
            .field("weights", &weights)
            .finish()
    }
}

#[cfg(feature = "serde")]
impl CompositeScorer {
    pub(crate) fn from_config(
        entries: Vec<crate::config::ScorerEntry>,
    ) -> Result<Self, super::ConfigError> {
        let entries = super::entries_from_config(entries)?;
        Self::new(entries).map_err(crate::config::invalid_in("entries"))
    }
}
