//! [`ScaledScorer`].

use std::fmt;
use std::sync::Arc;

use super::{Among, BuiltinScorer, ScorePart, Scorer, position, scores};
use crate::{ContextItem, CupelError, Query};

/// Rescales another scorer's scores to `[0, 1]` over all items (min-max normalization).
///
/// The lowest score becomes 0.0, the highest 1.0. The score is 0.5 if there is no range (one item,
/// all scores equal) or a score is not finite.
///
/// [`score_all`](Scorer::score_all) calls the inner scorer once, also when scaled scorers are nested.
///
/// ```
/// use cupel::{ContextItem, ReflexiveScorer, ScaledScorer, Scorer};
///
/// let hinted = |hint| ContextItem::builder("x", 1).future_relevance_hint(hint).build();
/// let items = [hinted(0.3)?, hinted(0.5)?, hinted(0.4)?];
/// let scores = ScaledScorer::new(ReflexiveScorer).score_all(&items)?;
/// assert_eq!(scores[..2], [0.0, 1.0]);
/// assert!((scores[2] - 0.5).abs() < 1e-9);
/// # Ok::<(), cupel::CupelError>(())
/// ```
pub struct ScaledScorer {
    inner: Arc<dyn Scorer>,
}

impl ScaledScorer {
    /// Creates a scorer that rescales `inner`.
    pub fn new(inner: impl Scorer + 'static) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }
}

impl fmt::Debug for ScaledScorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScaledScorer")
    }
}

impl Scorer for ScaledScorer {
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
        let raw: Vec<f64> = all_items
            .iter()
            .map(|other| self.inner.score(other, all_items))
            .collect();
        match position(item, all_items) {
            Some(own) => Range::of(&raw).scale(raw[own]),
            None => NO_INFORMATION,
        }
    }

    fn builtin(&self) -> Option<&dyn BuiltinScorer> {
        Some(self)
    }

    fn children(&self) -> Vec<&dyn Scorer> {
        vec![&self.inner]
    }

    fn ranks_by_time(&self) -> bool {
        self.inner.ranks_by_time()
    }

    fn with_query(&self, query: &Query) -> Option<Arc<dyn Scorer>> {
        Some(Arc::new(Self {
            inner: self.inner.with_query(query)?,
        }))
    }

    fn explain_all(&self, items: &[ContextItem]) -> Result<Vec<ScorePart>, CupelError> {
        let inner = super::explained(&self.inner, items)?;
        let raw: Vec<f64> = inner.iter().map(|part| part.score).collect();
        let range = Range::of(&raw);
        let scaled = inner.into_iter().map(|part| {
            ScorePart::new(self.scorer_name(), range.scale(part.score)).with_parts(vec![part])
        });
        Ok(scaled.collect())
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        let inner = self.inner.to_config();
        Ok(super::ScorerConfig::Scaled {
            inner: inner.map_err(|error| error.within("inner"))?.into(),
        })
    }
}

impl BuiltinScorer for ScaledScorer {
    fn score_among(&self, items: &[ContextItem], among: Among) -> Result<Vec<f64>, CupelError> {
        let mut scores = scores(&self.inner, items, among)?;
        if among == Among::Scoreable {
            // The range ignores NaN.
            let others = scores.iter_mut().zip(items);
            let others = others.filter(|(_, item)| !among.includes(item));
            others.for_each(|(score, _)| *score = f64::NAN);
        }
        let range = Range::of(&scores);
        for score in &mut scores {
            *score = range.scale(*score);
        }
        Ok(scores)
    }
}

const NO_INFORMATION: f64 = 0.5;

#[derive(Clone, Copy)]
struct Range {
    min: f64,
    max: f64,
}

impl Range {
    /// Returns the least and the largest number, ignoring NaN.
    fn of(scores: &[f64]) -> Self {
        let empty = Self {
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        };
        scores.iter().fold(empty, |range, &score| Self {
            min: if score < range.min { score } else { range.min },
            max: if score > range.max { score } else { range.max },
        })
    }

    fn scale(self, raw: f64) -> f64 {
        if self.max == self.min {
            return NO_INFORMATION;
        }
        let scaled = (raw - self.min) / (self.max - self.min);
        if scaled.is_finite() {
            scaled
        } else {
            NO_INFORMATION
        }
    }
}

#[cfg(feature = "serde")]
impl ScaledScorer {
    pub(crate) fn from_config(inner: Box<super::ScorerConfig>) -> Result<Self, super::ConfigError> {
        Ok(Self::new(inner.into_inner()?))
    }
}
