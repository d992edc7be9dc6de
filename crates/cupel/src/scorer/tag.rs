//! [`TagScorer`].

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::{Among, BuiltinScorer, Scorer, check_weight};
use crate::fast::interner::Interner;
use crate::fast::parallel;
use crate::fast::prefetch::{self, prefetch};
use crate::fast::tag_key::TagKey;
use crate::{ContextItem, CupelError};

/// Scores by tags: the weight of an item's tags over the weight of all configured tags.
///
/// Every occurrence of a tag counts, and the score is at most 1.0 (TAG-5, TAG-6). Tags are
/// compared exactly, or with [`TagComparison::IgnoreAsciiCase`] without regard to ASCII case.
///
/// ```
/// use std::collections::HashMap;
/// use cupel::{ContextItem, Scorer, TagScorer};
///
/// let scorer = TagScorer::new(HashMap::from([
///     ("billing".to_owned(), 3.0),
///     ("urgent".to_owned(), 1.0),
/// ]))?;
/// let item = ContextItem::builder("Refund asked for", 4).tag("billing").build()?;
/// assert_eq!(scorer.score(&item, &[]), 0.75);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Clone)]
pub struct TagScorer {
    tag_weights: HashMap<String, f64>,
    total_weight: f64,
    comparison: TagComparison,
    inline: InlineTags,
}

/// How a [`TagScorer`] compares an item's tags with the configured ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TagComparison {
    /// Byte by byte.
    #[default]
    Ordinal,
    /// `Urgent` equals `urgent`; letters beyond ASCII keep their case.
    IgnoreAsciiCase,
}

impl TagComparison {
    fn key(self, tag: String) -> String {
        match self {
            Self::Ordinal => tag,
            Self::IgnoreAsciiCase => tag.to_ascii_lowercase(),
        }
    }

    /// Returns whether tags with such keys are equal if and only if their folded keys are.
    fn is_decided_by(self, key: TagKey) -> bool {
        key.is_inline() && (self == Self::IgnoreAsciiCase || key.is_lowercase())
    }
}

impl TagScorer {
    /// Creates a scorer with a weight per tag, compared exactly.
    ///
    /// The total is summed in the order of the tags, so equal maps give equal scores (TAG-1).
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if a weight is negative or not finite, or if the sum of
    /// the weights is not finite.
    pub fn new(tag_weights: HashMap<String, f64>) -> Result<Self, CupelError> {
        let mut sorted: Vec<_> = tag_weights.into_iter().collect();
        sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Self::from_weights(sorted, TagComparison::Ordinal)
    }

    /// Creates a scorer from a list of weights and a comparison. The total is summed in list order.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and if two tags are equal under the comparison.
    ///
    /// ```
    /// use cupel::{ContextItem, Scorer, TagComparison, TagScorer};
    ///
    /// let weights = [("Urgent".to_owned(), 1.0)];
    /// let scorer = TagScorer::from_weights(weights, TagComparison::IgnoreAsciiCase)?;
    /// let item = ContextItem::builder("now", 1).tag("URGENT").build()?;
    /// assert_eq!(scorer.score(&item, &[]), 1.0);
    /// # Ok::<(), cupel::CupelError>(())
    /// ```
    pub fn from_weights(
        tag_weights: impl IntoIterator<Item = (String, f64)>,
        comparison: TagComparison,
    ) -> Result<Self, CupelError> {
        let mut checked = HashMap::new();
        let mut inline = InlineTags::new();
        let mut total_weight = 0.0;
        for (tag, weight) in tag_weights {
            check_weight(weight, || format!("tag weight for '{tag}'"))?;
            total_weight += weight;
            let key = comparison.key(tag);
            if checked.contains_key(&key) {
                return Err(CupelError::ScorerConfig(format!(
                    "tag '{key}' is listed twice; give every tag one weight"
                )));
            }
            let tag_key = TagKey::new(&key);
            if comparison.is_decided_by(tag_key) {
                inline.push(tag_key, weight);
            }
            checked.insert(key, weight);
        }
        if !total_weight.is_finite() {
            return Err(CupelError::ScorerConfig(
                "the sum of the tag weights must be finite".to_owned(),
            ));
        }
        Ok(Self {
            tag_weights: checked,
            total_weight,
            comparison,
            inline,
        })
    }

    /// Returns the weight of the tag at a position, 0.0 if it has none.
    #[inline]
    fn weight(&self, item: &ContextItem, position: usize, key: TagKey) -> f64 {
        if self.comparison.is_decided_by(key) {
            self.inline.weight(key)
        } else {
            self.weight_of_text(&item.tags()[position])
        }
    }

    #[inline(never)]
    fn weight_of_text(&self, tag: &str) -> f64 {
        let weight = match self.comparison {
            TagComparison::Ordinal => self.tag_weights.get(tag),
            TagComparison::IgnoreAsciiCase => self.tag_weights.get(&tag.to_ascii_lowercase()),
        };
        weight.copied().unwrap_or(0.0)
    }
}

/// The weights of the tags that are decided by their keys.
#[derive(Clone)]
struct InlineTags {
    interner: Interner,
    /// By number; 0.0 for the sentinel.
    weights: Vec<f64>,
}

impl InlineTags {
    fn new() -> Self {
        Self {
            interner: Interner::new(6),
            weights: vec![0.0],
        }
    }

    fn push(&mut self, key: TagKey, weight: f64) {
        self.interner.intern(key.folded(), |_| true);
        self.weights.push(weight);
    }

    #[inline]
    fn weight(&self, key: TagKey) -> f64 {
        self.weights[self.interner.find(key.folded(), |_| true)]
    }
}

#[expect(clippy::missing_fields_in_debug, reason = "derived from the weights")]
impl fmt::Debug for TagScorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weights: BTreeMap<_, _> = self.tag_weights.iter().collect();
        let mut debug = f.debug_struct("TagScorer");
        debug
            .field("tag_weights", &weights)
            .field("total_weight", &self.total_weight);
        if self.comparison != TagComparison::Ordinal {
            debug.field("comparison", &self.comparison);
        }
        debug.finish()
    }
}

impl Scorer for TagScorer {
    #[inline]
    fn score(&self, item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
        if self.total_weight == 0.0 || item.tag_keys().is_empty() {
            return 0.0;
        }
        let keys = item.tag_keys().iter().enumerate();
        let weights = keys.map(|(position, &key)| self.weight(item, position, key));
        let matched = weights.fold(0.0, |sum, weight| sum + weight);
        (matched / self.total_weight).min(1.0)
    }

    fn builtin(&self) -> Option<&dyn BuiltinScorer> {
        Some(self)
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        let weights = self.tag_weights.iter();
        Ok(super::ScorerConfig::Tag {
            tag_weights: weights
                .map(|(tag, weight)| (tag.clone(), *weight))
                .collect(),
            ignore_case: self.comparison == TagComparison::IgnoreAsciiCase,
        })
    }
}

impl BuiltinScorer for TagScorer {
    fn score_among(&self, items: &[ContextItem], _: Among) -> Result<Vec<f64>, CupelError> {
        Ok(parallel::map_blocks(items, prefetch::BLOCK, |block| {
            prefetch(block.iter().map(ContextItem::first_tag_word));
            block.iter().map(|item| self.score(item, items))
        }))
    }
}

#[cfg(feature = "serde")]
impl TagScorer {
    pub(crate) fn from_config(
        tag_weights: std::collections::BTreeMap<String, f64>,
        ignore_case: bool,
    ) -> Result<Self, super::ConfigError> {
        let comparison = if ignore_case {
            TagComparison::IgnoreAsciiCase
        } else {
            TagComparison::Ordinal
        };
        let scorer = Self::from_weights(tag_weights, comparison);
        scorer.map_err(crate::config::invalid_in("tag_weights"))
    }
}
