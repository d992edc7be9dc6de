//! [`NeighborScorer`].

use std::fmt;
use std::sync::Arc;

use super::evaluate::{Method, Record, VisitTerm};
use super::sequence::Sequence;
use crate::scorer::settings::{NearKernel, WideKernel};
use crate::scorer::{Among, BuiltinScorer, ScorePart, Scorer, scores};
use crate::{ContextItem, CupelError, Query};

/// What two scorers have in common: near and wide kernels, and whether sessions separate items.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Neighborhood {
    pub(super) near: NearKernel,
    pub(super) wide: WideKernel,
    pub(super) sessions: bool,
}

impl Neighborhood {
    pub(super) fn new(
        near: NearKernel,
        wide: WideKernel,
        sessions: bool,
    ) -> Result<Self, CupelError> {
        near.check()?;
        wide.check()?;
        Ok(Self {
            near,
            wide,
            sessions,
        })
    }

    /// Returns the method of a run.
    pub(super) fn method<'a>(&self, sequence: &Sequence<'_>) -> Method<'a> {
        let whole = || std::iter::once(0..sequence.items().len()).collect();
        Method {
            near: self.near,
            wide: self.wide,
            sections: if self.sessions {
                sequence.sessions()
            } else {
                whole()
            },
            boosts: None,
        }
    }
}

/// Spreads another scorer's scores to the items around: what is next to a relevant item is relevant.
///
/// Items are in the order of their timestamps if all have one, else in input order. [`NearKernel`] reaches the direct
/// neighbors, [`WideKernel`] the passage. Over a [`RelevanceScorer`](super::RelevanceScorer) the near part works term by
/// term, so that a question and its answer add up. Scores are in `[0, 1]`; negative scores and NaN count as 0.
///
/// # Method
///
/// Scores are compared as they are: two that differ in the last bit are not equal. The order of items whose
/// scores are nearly equal therefore depends on the order of the operations, which is this, in binary64 and
/// from the left. Items are numbered in the order of the conversation; those with equal timestamps stay in input
/// order. With `sessions`, each run of adjacent items with the same metadata `cupel:session` (or without it) is
/// treated by itself in steps 1 and 3; the greatest values are those of all items.
///
/// 1. **Near**, for each column `m`, which has the scores of the inner scorer, or over a `RelevanceScorer` what one
///    term adds, before the division. Infinity counts as [`f64::MAX`]. From the first item to the last,
///    `ahead[i] = max(forward * ahead[i - 1], m[i])`; from the last to the first,
///    `behind[i] = max(backward * behind[i + 1], m[i])`. An item gets `max(ahead[i], behind[i])`.
/// 2. The near values are summed in the order of the columns and divided by the greatest sum: `s[i]`.
/// 3. **Wide**, unless its weight is 0: `p[i]` is `s[i]` divided by the greatest `s`, multiplied by itself
///    `power - 1` times. From the first item to the last, `before[i + 1] = decay * (before[i] + p[i])`; from the
///    last to the first, `after[i - 1] = decay * (after[i] + p[i])`; both are 0 at their start. The sums
///    `p[i] + before[i] + after[i]` are divided by the greatest one and multiplied by `weight`.
/// 4. The score is `s[i]` plus its wide part, divided by the greatest of these.
///
/// A division by the greatest value gives 0 for all if no value is above 0.
///
/// ```
/// use cupel::{ContextItem, NeighborScorer, RelevanceScorer, Scorer};
///
/// let item = |text: &str| ContextItem::builder(text, 5).build();
/// let items = [item("Where are the keys?")?, item("On the shelf.")?, item("Good night.")?];
/// let scores = NeighborScorer::new(RelevanceScorer::new("keys")).score_all(&items)?;
/// assert!(scores[0] > scores[1] && scores[1] > scores[2]);
/// # Ok::<(), cupel::CupelError>(())
/// ```
pub struct NeighborScorer {
    inner: Arc<dyn Scorer>,
    neighborhood: Neighborhood,
}

impl NeighborScorer {
    /// Creates a scorer with the default kernels.
    pub fn new(inner: impl Scorer + 'static) -> Self {
        Self {
            inner: Arc::new(inner),
            neighborhood: Neighborhood::default(),
        }
    }

    /// Sets how matches reach the items next to them.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if a share is not from 0 to 1.
    pub fn with_near(mut self, near: NearKernel) -> Result<Self, CupelError> {
        near.check()?;
        self.neighborhood.near = near;
        Ok(self)
    }

    /// Sets how passages reach their items.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if the weight is negative or not finite, the decay is not from 0 to 1, or the
    /// power is not from 1 to 16.
    pub fn with_wide(mut self, wide: WideKernel) -> Result<Self, CupelError> {
        wide.check()?;
        self.neighborhood.wide = wide;
        Ok(self)
    }

    /// Sets whether items of different sessions (metadata `cupel:session`) are not neighbors. Defaults to `false`.
    pub fn with_sessions(mut self, sessions: bool) -> Self {
        self.neighborhood.sessions = sessions;
        self
    }

    fn evaluate(
        &self,
        sequence: &Sequence<'_>,
        record: Option<&mut Record>,
    ) -> Result<Vec<f64>, CupelError> {
        let items = sequence.items();
        let method = self.neighborhood.method(sequence);
        method.scores(items.len(), |visit| self.each_column(items, visit), record)
    }

    /// Visits the terms of a lexical scorer, or the scores of another one.
    fn each_column(
        &self,
        items: &[ContextItem],
        visit: &mut VisitTerm<'_>,
    ) -> Result<(), CupelError> {
        let lexical = self
            .inner
            .builtin()
            .and_then(|inner| inner.each_term(items, visit));
        lexical.unwrap_or_else(|| {
            let mut scores = scores(&self.inner, items, Among::All)?;
            for score in &mut scores {
                // NaN is not above 0.
                *score = if *score > 0.0 {
                    score.min(f64::MAX)
                } else {
                    0.0
                };
            }
            visit(self.inner.scorer_name(), &mut scores);
            Ok(())
        })
    }
}

impl fmt::Debug for NeighborScorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NeighborScorer")
            .field("inner", &self.inner)
            .field("neighborhood", &self.neighborhood)
            .finish()
    }
}

impl Scorer for NeighborScorer {
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
        super::score_one(self, item, all_items)
    }

    fn builtin(&self) -> Option<&dyn BuiltinScorer> {
        Some(self)
    }

    fn children(&self) -> Vec<&dyn Scorer> {
        vec![&self.inner]
    }

    fn with_query(&self, query: &Query) -> Option<Arc<dyn Scorer>> {
        Some(Arc::new(Self {
            inner: self.inner.with_query(query)?,
            neighborhood: self.neighborhood,
        }))
    }

    fn explain_all(&self, items: &[ContextItem]) -> Result<Vec<ScorePart>, CupelError> {
        let sequence = Sequence::of(items, Among::All);
        let mut record = Record::default();
        self.evaluate(&sequence, Some(&mut record))?;
        let method = self.neighborhood.method(&sequence);
        Ok(super::explain(
            &method,
            &record,
            &sequence,
            self.scorer_name(),
        ))
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<crate::config::ScorerConfig, crate::config::ConfigError> {
        let inner = self.inner.to_config();
        Ok(crate::config::ScorerConfig::Neighbor {
            inner: inner.map_err(|error| error.within("inner"))?.into(),
            near: self.neighborhood.near,
            wide: self.neighborhood.wide,
            sessions: self.neighborhood.sessions,
        })
    }
}

impl BuiltinScorer for NeighborScorer {
    fn score_among(&self, items: &[ContextItem], among: Among) -> Result<Vec<f64>, CupelError> {
        let sequence = Sequence::of(items, among);
        Ok(sequence.in_input_order(self.evaluate(&sequence, None)?, 0.0))
    }
}

#[cfg(feature = "serde")]
impl NeighborScorer {
    pub(crate) fn from_config(
        inner: Box<crate::config::ScorerConfig>,
        near: NearKernel,
        wide: WideKernel,
        sessions: bool,
    ) -> Result<Self, crate::config::ConfigError> {
        let neighborhood = Neighborhood::new(near, wide, sessions);
        Ok(Self {
            inner: inner.into_inner()?.into(),
            neighborhood: neighborhood.map_err(crate::config::ConfigError::invalid)?,
        })
    }
}
