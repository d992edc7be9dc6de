//! Scorers: how relevant is an item, seen against all the others?
//!
//! | scorer | reads | score | whole batch costs |
//! |---|---|---|---|
//! | [`RecencyScorer`] | timestamp | rank among the timestamped, newest 1.0 | one sort |
//! | [`PriorityScorer`] | priority | rank among the prioritized, highest 1.0 | one sort |
//! | [`KindScorer`] | kind | the kind's weight | one lookup an item |
//! | [`TagScorer`] | tags | matched weight over total weight | one lookup a tag |
//! | [`FrequencyScorer`] | tags | share of the peers with a tag in common | grows with the tags, and faster where most items have many tags in common |
//! | [`ReflexiveScorer`] | future relevance hint | the hint, clamped to `[0, 1]` | nothing |
//! | [`MetadataTrustScorer`] | metadata `cupel:trust` | the value, clamped to `[0, 1]` | one parse an item |
//! | [`MetadataKeyScorer`] | one metadata key | the boost on a match, else 1.0 | one lookup an item |
//! | [`DecayScorer`] | timestamp, a clock | a curve over the age | nothing |
//! | [`CompositeScorer`] | its children | their weighted average | its children |
//! | [`ScaledScorer`] | its inner scorer | stretched to `[0, 1]` over all items | its inner scorer, once |
//! | [`ProductScorer`] | its children | their product | its children |
//!
//! All but [`ProductScorer`] are the specification's; that one is ours.

mod composite;
mod decay;
mod frequency;
mod kind;
mod metadata;
mod numbers;
mod part;
mod product;
mod rank;
mod reflexive;
mod scaled;
mod tag;

use std::hint::black_box;
use std::sync::Arc;

pub use composite::{CompositeScorer, CompositeScorerBuilder};
pub use decay::{DecayCurve, DecayScorer, SystemTimeProvider, TimeProvider};
pub use frequency::FrequencyScorer;
pub use kind::KindScorer;
pub use metadata::{MetadataKeyScorer, MetadataTrustScorer};
pub use part::ScorePart;
pub use product::ProductScorer;
pub use rank::{PriorityScorer, RecencyScorer};
pub use reflexive::ReflexiveScorer;
pub use scaled::ScaledScorer;
pub use tag::{TagComparison, TagScorer};

#[cfg(feature = "serde")]
use crate::config::{ConfigError, ScorerConfig};
use crate::error::{ContractViolation, StrategyRole};
use crate::{ContextItem, CupelError, parallel};

/// Gives every item a score.
///
/// A scorer is a pure function (SCORER-2): the same items give the same scores, and
/// nothing else is touched. Scores are conventionally in `[0, 1]`; nothing enforces it.
///
/// Only [`score`](Self::score) has to be written. A scorer whose score depends on the
/// other items would look at all of them for each of them; it writes
/// [`score_all`](Self::score_all) as well and does that work once.
///
/// ```
/// use cupel::{ContextItem, Scorer};
///
/// /// The longer the text, the lower the score.
/// struct Brevity;
///
/// impl Scorer for Brevity {
///     fn score(&self, item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
///         1.0 / (1.0 + item.content().len() as f64)
///     }
/// }
///
/// let items = [
///     ContextItem::builder("yes", 1).build()?,
///     ContextItem::builder("perhaps", 2).build()?,
/// ];
/// assert_eq!(Brevity.score_all(&items)?, [0.25, 0.125]);
/// # Ok::<(), cupel::CupelError>(())
/// ```
pub trait Scorer: Send + Sync {
    /// The score of `item`, which is an element of `all_items`.
    ///
    /// Built-in scorers that must find `item` among `all_items` look for this very
    /// element first, then for another handle to the same item.
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64;

    /// The scores of all items, in order: what the pipeline calls, once per run.
    ///
    /// Equals [`score`](Self::score) of every item bit for bit.
    ///
    /// # Errors
    ///
    /// A scorer that cannot answer returns the error the run ends with.
    fn score_all(&self, items: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
        Ok(items.iter().map(|item| self.score(item, items)).collect())
    }

    /// For the built-in scorers, not part of the contract.
    ///
    /// [`score_all`](Self::score_all) of those candidates that are scored, without a list of their
    /// own: one number per candidate, of which those of the others mean nothing.
    #[doc(hidden)]
    fn score_among(&self, candidates: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
        score_apart(self, candidates)
    }

    /// What explanations call this scorer: the name of its type, unless written.
    fn scorer_name(&self) -> &str {
        let path = std::any::type_name::<Self>();
        let path = path.split('<').next().unwrap_or(path);
        path.rsplit("::").next().unwrap_or(path)
    }

    /// How the scores of all items come about, in order. A scorer that combines others writes this to
    /// show their parts.
    ///
    /// # Errors
    ///
    /// As [`score_all`](Self::score_all).
    fn explain_all(&self, items: &[ContextItem]) -> Result<Vec<ScorePart>, CupelError> {
        let scores = self.score_all(items)?.into_iter();
        Ok(scores
            .map(|score| ScorePart::new(self.scorer_name(), score))
            .collect())
    }

    /// How the score of the item at `index` comes about: one of [`explain_all`](Self::explain_all).
    ///
    /// # Errors
    ///
    /// As [`score_all`](Self::score_all).
    fn explain(&self, items: &[ContextItem], index: usize) -> Result<ScorePart, CupelError> {
        let part = self.explain_all(items)?.into_iter().nth(index);
        Ok(part.unwrap_or_else(|| ScorePart::new(self.scorer_name(), f64::NAN)))
    }

    /// This scorer as data, for [`PolicyConfig::of`](crate::config::PolicyConfig::of).
    ///
    /// # Errors
    ///
    /// [`ConfigError::not_data`], as provided, for a scorer that no document can name.
    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<ScorerConfig, ConfigError> {
        Err(ConfigError::not_data(self.scorer_name()))
    }
}

/// A pointer to a scorer is a scorer.
macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<T: Scorer + ?Sized> Scorer for $pointer {
            fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
                (**self).score(item, all_items)
            }

            fn score_all(&self, items: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
                (**self).score_all(items)
            }

            fn score_among(&self, candidates: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
                (**self).score_among(candidates)
            }

            fn scorer_name(&self) -> &str {
                (**self).scorer_name()
            }

            fn explain_all(
                &self,
                items: &[ContextItem],
            ) -> Result<Vec<ScorePart>, CupelError> {
                (**self).explain_all(items)
            }

            fn explain(
                &self,
                items: &[ContextItem],
                index: usize,
            ) -> Result<ScorePart, CupelError> {
                (**self).explain(items, index)
            }

            #[cfg(feature = "serde")]
            fn to_config(&self) -> Result<ScorerConfig, ConfigError> {
                (**self).to_config()
            }
        }
    )*};
}

forward!(Box<T>, Arc<T>, &T);

/// The position of `item` in `all_items`: this very element, else the first other handle to it.
fn position(item: &ContextItem, all_items: &[ContextItem]) -> Option<usize> {
    all_items
        .iter()
        .position(|other| std::ptr::eq(other, item))
        .or_else(|| all_items.iter().position(|other| other.is_same(item)))
}

/// One score per item from `scorer`, which may be anybody's.
pub(crate) fn column<S: Scorer + ?Sized>(
    scorer: &S,
    items: &[ContextItem],
) -> Result<Vec<f64>, CupelError> {
    one_each(scorer.score_all(items)?, items)
}

/// [`Scorer::score_among`] of `scorer`, which may be anybody's.
pub(crate) fn column_among<S: Scorer + ?Sized>(
    scorer: &S,
    candidates: &[ContextItem],
) -> Result<Vec<f64>, CupelError> {
    one_each(scorer.score_among(candidates)?, candidates)
}

/// [`Scorer::score_among`] by way of a list of the scored candidates.
fn score_apart<S: Scorer + ?Sized>(
    scorer: &S,
    candidates: &[ContextItem],
) -> Result<Vec<f64>, CupelError> {
    let scored = candidates.iter().filter(|item| item.is_scored());
    let scored: Vec<ContextItem> = scored.cloned().collect();
    let mut scores = column(scorer, &scored)?.into_iter();
    let own = candidates.iter().map(|item| {
        let score = item.is_scored().then(|| scores.next());
        score.flatten().unwrap_or_default()
    });
    Ok(own.collect())
}

/// One explained score per item from `scorer`, which may be anybody's.
pub(crate) fn explained(
    scorer: &dyn Scorer,
    items: &[ContextItem],
) -> Result<Vec<ScorePart>, CupelError> {
    one_each(scorer.explain_all(items)?, items)
}

fn one_each<T>(answers: Vec<T>, items: &[ContextItem]) -> Result<Vec<T>, CupelError> {
    if answers.len() == items.len() {
        return Ok(answers);
    }
    Err(CupelError::Contract {
        strategy: StrategyRole::Scorer,
        violation: ContractViolation::WrongLength {
            expected: items.len(),
            returned: answers.len(),
        },
    })
}

/// What a scorer that combines `children` says about every item: `combine` is given one item's parts.
fn explain_combined(
    name: &str,
    children: &[Box<dyn Scorer>],
    items: &[ContextItem],
    combine: impl Fn(&mut [ScorePart]) -> f64,
) -> Result<Vec<ScorePart>, CupelError> {
    let mut parts: Vec<Vec<ScorePart>> = vec![Vec::new(); items.len()];
    for child in children {
        for (parts, part) in parts.iter_mut().zip(explained(child, items)?) {
            parts.push(part);
        }
    }
    let parts = parts.into_iter().map(|mut parts| {
        let score = combine(&mut parts);
        ScorePart::new(name, score).with_parts(parts)
    });
    Ok(parts.collect())
}

/// The scores of a scorer that looks at one item at a time.
fn one_by_one(scorer: &impl Scorer, items: &[ContextItem]) -> Vec<f64> {
    parallel::map(items, |_, item| scorer.score(item, items))
}

/// As [`one_by_one`], for a scorer that looks at the keys of the tags.
fn one_by_one_with_tags(scorer: &impl Scorer, items: &[ContextItem]) -> Vec<f64> {
    parallel::map_blocks(items, BLOCK, |block| {
        read_ahead(block);
        block.iter().map(|item| scorer.score(item, items))
    })
}

/// So many items are read ahead: the keys of their tags fit into the fastest cache.
const BLOCK: usize = 32;

/// Touches the keys of the tags, which are read next. Reads that do not wait for each other overlap;
/// with work between them they would not.
fn read_ahead(items: &[ContextItem]) {
    let keys = items.iter().map(ContextItem::tag_keys);
    let ends = keys.flat_map(|keys| [keys.first(), keys.last()]).flatten();
    black_box(ends.fold(0, |sum, key| sum ^ key.folded()[0]));
}

/// Refuses a weight that is negative or not finite.
fn check_weight(weight: f64, what: impl FnOnce() -> String) -> Result<(), CupelError> {
    let fault = if weight < 0.0 {
        "non-negative"
    } else if !weight.is_finite() {
        "finite"
    } else {
        return Ok(());
    };
    Err(CupelError::ScorerConfig(format!(
        "{} must be {fault}",
        what()
    )))
}
