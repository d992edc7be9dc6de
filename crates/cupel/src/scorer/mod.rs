//! Scorers: how relevant an item is among all the others.
//!
//! | scorer | reads | score | whole batch costs |
//! |---|---|---|---|
//! | [`RecencyScorer`] | timestamp | rank among the timestamped, newest 1.0 | one sort |
//! | [`PriorityScorer`] | priority | rank among the prioritized, highest 1.0 | one sort |
//! | [`KindScorer`] | kind | the kind's weight | one lookup per item |
//! | [`TagScorer`] | tags | matched weight over total weight | one lookup per tag |
//! | [`FrequencyScorer`] | tags | share of the peers with a tag in common | grows with the tags, and faster where most items have many tags in common |
//! | [`ReflexiveScorer`] | future relevance hint | the hint, clamped to `[0, 1]` | nothing |
//! | [`MetadataTrustScorer`] | metadata `cupel:trust` | the value, clamped to `[0, 1]` | one parse per item |
//! | [`MetadataKeyScorer`] | one metadata key | the boost on a match, else 1.0 | one lookup per item |
//! | [`DecayScorer`] | timestamp, a clock | a curve over the age | nothing |
//! | [`CompositeScorer`] | its children | their weighted average | its children |
//! | [`ScaledScorer`] | its inner scorer | stretched to `[0, 1]` over all items | its inner scorer, once |
//! | [`ProductScorer`] | its children | their product | its children |
//! | [`FusionScorer`] | its children | their scores relative to the maximum, their ranks, or each child's share of the tokens | its children; for ranks and shares one sort per child |
//! | [`EmbeddingScorer`] | vectors, or the text and a table of word vectors (feature `embeddings`) | cosine similarity to the query | one product per item |
//! | `RelevanceScorer` | the text, a query | shared words (BM25) | reading the texts once, then the matches of each word |
//! | `NeighborScorer` | its inner scorer | spread to the items around | its inner scorer, once |
//! | `ConversationScorer` | the text, a query | shared words, neighbors, rules for questions | as `RelevanceScorer` |
//!
//! The specification defines all up to [`ScaledScorer`]. The others are extensions; the last three need the feature
//! `relevance`.

mod composite;
mod decay;
mod embedding;
mod frequency;
mod fusion;
mod kind;
mod metadata;
mod part;
mod product;
mod rank;
mod reflexive;
#[cfg(feature = "relevance")]
mod relevance;
mod scaled;
#[cfg(any(feature = "serde", feature = "relevance"))]
mod settings;
mod tag;

use std::fmt;
use std::sync::Arc;

pub use composite::{CompositeScorer, CompositeScorerBuilder};
pub use decay::{DecayCurve, DecayScorer, SystemTimeProvider, TimeProvider};
pub use embedding::EmbeddingScorer;
#[cfg(feature = "embeddings")]
pub use embedding::WordVectors;
pub use frequency::FrequencyScorer;
pub use fusion::{FusionMethod, FusionScorer};
pub use kind::KindScorer;
pub use metadata::{MetadataKeyScorer, MetadataTrustScorer};
pub use part::ScorePart;
pub use product::ProductScorer;
pub use rank::{PriorityScorer, RecencyScorer};
pub use reflexive::ReflexiveScorer;
#[cfg(feature = "relevance")]
pub use relevance::{ConversationScorer, NeighborScorer, RelevanceScorer};
pub use scaled::ScaledScorer;
#[cfg(any(feature = "serde", feature = "relevance"))]
pub use settings::{Language, NearKernel, QuestionRules, WideKernel};
pub use tag::{TagComparison, TagScorer};

#[cfg(feature = "serde")]
use crate::config::{ConfigError, ScorerConfig};
use crate::error::{ContractViolation, StrategyRole};
use crate::fast::parallel;
use crate::type_name::type_name;
use crate::{ContextItem, CupelError, Query};

/// Gives every item a score.
///
/// A scorer is a pure function (SCORER-2): the same items give the same scores, without side
/// effects. Scores are conventionally in `[0, 1]`; nothing enforces it.
///
/// Only [`score`](Self::score) is required. A scorer whose scores depend on the other items also
/// implements [`score_all`](Self::score_all), to look at all items once instead of once per item.
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
    /// Returns the score of `item`, which is an element of `all_items`.
    ///
    /// Built-in scorers that search `all_items` for `item` look for this element first, then for
    /// another handle to the same item.
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64;

    /// Returns the scores of all items, in order. The pipeline calls this method, once per run.
    ///
    /// Equals [`score`](Self::score) of every item bit for bit.
    ///
    /// # Errors
    ///
    /// Returns the error with which the run ends, if the scorer has no answer.
    fn score_all(&self, items: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
        match self.builtin() {
            Some(builtin) => builtin.score_among(items, Among::All),
            None => Ok(items.iter().map(|item| self.score(item, items)).collect()),
        }
    }

    /// Returns the capabilities of a built-in scorer. Not part of the public contract.
    #[doc(hidden)]
    fn builtin(&self) -> Option<&dyn BuiltinScorer> {
        None
    }

    /// Returns this scorer with `query`, or nothing if it needs no query or has one of its own.
    ///
    /// A scorer that combines others passes the query to them. Defaults to nothing.
    fn with_query(&self, query: &Query) -> Option<Arc<dyn Scorer>> {
        let _ = query;
        None
    }

    /// Returns the scorers that this one combines or rescales, in order.
    ///
    /// Defaults to none. The questions below are answered through them unless said otherwise.
    fn children(&self) -> Vec<&dyn Scorer> {
        Vec::new()
    }

    /// Returns whether newer items score above older ones: timestamps decide all of the score, or
    /// more of it than everything else together.
    ///
    /// Defaults to `false`, whatever the children say.
    fn ranks_by_time(&self) -> bool {
        false
    }

    /// Returns whether scores depend on the contents of items.
    ///
    /// A caller without the contents, such as one that replays a log of token counts, does not run
    /// a policy that reads them. Defaults to whether a child reads them, without children to `false`.
    fn reads_content(&self) -> bool {
        self.children().into_iter().any(Scorer::reads_content)
    }

    /// Returns whether scores depend on the future relevance hints of items.
    ///
    /// Defaults to whether a child reads them, without children to `false`.
    fn reads_hints(&self) -> bool {
        self.children().into_iter().any(Scorer::reads_hints)
    }

    /// Returns the language in which the texts are read, if a language matters.
    ///
    /// Defaults to that of the first child that has one.
    #[cfg(feature = "relevance")]
    fn language(&self) -> Option<Language> {
        self.children().into_iter().find_map(Scorer::language)
    }

    /// Returns the scorer's name in explanations and debug output. Defaults to the name of its type.
    fn scorer_name(&self) -> &str {
        type_name::<Self>()
    }

    /// Returns the scores of all items with their parts, in order. A scorer that combines others
    /// implements this method to show their parts.
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

    /// Returns the score of the item at `index` with its parts, as [`explain_all`](Self::explain_all)
    /// does.
    ///
    /// # Errors
    ///
    /// [`CupelError::PipelineConfig`] if there is no item at `index`; otherwise as
    /// [`score_all`](Self::score_all).
    fn explain(&self, items: &[ContextItem], index: usize) -> Result<ScorePart, CupelError> {
        let part = self.explain_all(items)?.into_iter().nth(index);
        part.ok_or_else(|| CupelError::no_candidate(index, items.len()))
    }

    /// Returns this scorer as data, for [`PolicyConfig::of`](crate::config::PolicyConfig::of).
    ///
    /// # Errors
    ///
    /// Defaults to [`ConfigError::not_data`], for a scorer that no document can name.
    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<ScorerConfig, ConfigError> {
        Err(ConfigError::not_data(self.scorer_name()))
    }
}

/// Prints the scorer's name.
impl fmt::Debug for dyn Scorer + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scorer_name())
    }
}

/// What the pipeline asks of a built-in scorer, see [`Scorer::builtin`]. Not part of the public interface.
#[doc(hidden)]
pub trait BuiltinScorer: Scorer {
    /// Returns one number per item: its score among the items that take part. The numbers of the
    /// others are arbitrary.
    ///
    /// # Errors
    ///
    /// As [`score_all`](Scorer::score_all).
    fn score_among(&self, items: &[ContextItem], among: Among) -> Result<Vec<f64>, CupelError>;

    /// Visits the terms of a query with one number per item, if the scorer is a sum over terms.
    ///
    /// # Errors
    ///
    /// As [`score_all`](Scorer::score_all).
    fn each_term(
        &self,
        items: &[ContextItem],
        visit: &mut dyn FnMut(&str, &mut [f64]),
    ) -> Option<Result<(), CupelError>> {
        let _ = (items, visit);
        None
    }
}

/// Which items of a list take part in scoring. Not part of the public interface.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// All of them.
    All,
    /// Those that a run scores: not pinned, with a valid token count.
    Scoreable,
}

impl Among {
    /// Returns whether an item takes part.
    #[inline]
    pub(crate) fn includes(self, item: &ContextItem) -> bool {
        self == Self::All || item.is_scored()
    }
}

/// Implements a strategy trait for pointers.
macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<T: Scorer + ?Sized> Scorer for $pointer {
            fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
                (**self).score(item, all_items)
            }

            fn score_all(&self, items: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
                (**self).score_all(items)
            }

            fn builtin(&self) -> Option<&dyn BuiltinScorer> {
                (**self).builtin()
            }

            fn with_query(&self, query: &Query) -> Option<Arc<dyn Scorer>> {
                (**self).with_query(query)
            }

            fn children(&self) -> Vec<&dyn Scorer> {
                (**self).children()
            }

            fn ranks_by_time(&self) -> bool {
                (**self).ranks_by_time()
            }

            fn reads_content(&self) -> bool {
                (**self).reads_content()
            }

            fn reads_hints(&self) -> bool {
                (**self).reads_hints()
            }

            #[cfg(feature = "relevance")]
            fn language(&self) -> Option<Language> {
                (**self).language()
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

/// Returns the position of `item` in `all_items`: this element, else the first other handle to it.
fn position(item: &ContextItem, all_items: &[ContextItem]) -> Option<usize> {
    all_items
        .iter()
        .position(|other| std::ptr::eq(other, item))
        .or_else(|| all_items.iter().position(|other| other.is_same(item)))
}

/// Returns one number per item: its score among the items that take part. The numbers of the others
/// are arbitrary.
pub(crate) fn scores<S: Scorer + ?Sized>(
    scorer: &S,
    items: &[ContextItem],
    among: Among,
) -> Result<Vec<f64>, CupelError> {
    let scores = match (scorer.builtin(), among) {
        (Some(builtin), _) => builtin.score_among(items, among),
        (None, Among::All) => scorer.score_all(items),
        (None, Among::Scoreable) => score_copied(scorer, items),
    };
    one_each(scores?, items)
}

/// Scores a copied list of the scoreable items.
fn score_copied<S: Scorer + ?Sized>(
    scorer: &S,
    items: &[ContextItem],
) -> Result<Vec<f64>, CupelError> {
    let scoreable = items.iter().filter(|item| item.is_scored());
    let scoreable: Vec<ContextItem> = scoreable.cloned().collect();
    let scores = one_each(scorer.score_all(&scoreable)?, &scoreable)?;
    let mut scores = scores.into_iter();
    let own = items.iter().map(|item| {
        let score = item.is_scored().then(|| scores.next());
        score.flatten().unwrap_or_default()
    });
    Ok(own.collect())
}

/// Returns one explained score per item.
pub(crate) fn explained(
    scorer: &dyn Scorer,
    items: &[ContextItem],
) -> Result<Vec<ScorePart>, CupelError> {
    one_each(scorer.explain_all(items)?, items)
}

/// Checks that a scorer returned one answer per item.
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

/// Explains a scorer that combines `children`: `combine` gets the parts of one item.
fn explain_combined(
    name: &str,
    children: &[Arc<dyn Scorer>],
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

/// Returns scorers as [`Scorer::children`] does.
fn as_children(scorers: &[Arc<dyn Scorer>]) -> Vec<&dyn Scorer> {
    scorers.iter().map(|scorer| &**scorer).collect()
}

/// Returns `children` with a query, or nothing if none of them needs one.
fn with_query_in(children: &[Arc<dyn Scorer>], query: &Query) -> Option<Vec<Arc<dyn Scorer>>> {
    let with_query: Vec<_> = children.iter().map(|it| it.with_query(query)).collect();
    if with_query.iter().all(Option::is_none) {
        return None;
    }
    let each = with_query.into_iter().zip(children);
    Some(
        each.map(|(with_query, child)| with_query.unwrap_or_else(|| child.clone()))
            .collect(),
    )
}

/// A scorer with its weight.
type Weighted = (Box<dyn Scorer>, f64);

/// Returns the sum of the weights of several scorers, added in order.
///
/// # Errors
///
/// [`CupelError::ScorerConfig`] if there is no entry, a weight is not positive and finite, or the sum of
/// the weights is not finite.
fn total_weight(entries: &[Weighted]) -> Result<f64, CupelError> {
    let fault = |text: &str| Err(CupelError::ScorerConfig(text.to_owned()));
    if entries.is_empty() {
        return fault("at least one scorer entry is required");
    }
    let mut total = 0.0;
    for (_, weight) in entries {
        if *weight <= 0.0 {
            return fault("weight must be positive");
        }
        if !weight.is_finite() {
            return fault("weight must be finite");
        }
        total += weight;
    }
    if !f64::is_finite(total) {
        return fault("the sum of the weights must be finite");
    }
    Ok(total)
}

/// Returns scorers with their weights as data.
#[cfg(feature = "serde")]
fn entries_to_config(
    scorers: &[Arc<dyn Scorer>],
    weights: &[f64],
) -> Result<Vec<crate::config::ScorerEntry>, ConfigError> {
    let entries = scorers.iter().zip(weights).enumerate();
    let entry = |(index, (scorer, &weight)): (usize, (&Arc<dyn Scorer>, &f64))| {
        let scorer = scorer
            .to_config()
            .map_err(|error| error.within("scorer").within(index).within("entries"))?;
        Ok(crate::config::ScorerEntry { scorer, weight })
    };
    entries.map(entry).collect()
}

/// Builds the scorers of `entries`, with their weights.
#[cfg(feature = "serde")]
fn entries_from_config(
    entries: Vec<crate::config::ScorerEntry>,
) -> Result<Vec<Weighted>, ConfigError> {
    crate::config::each("entries", entries, |entry| {
        let scorer = entry.scorer.into_built();
        Ok((
            scorer.map_err(|error| error.within("scorer"))?,
            entry.weight,
        ))
    })
}

/// A scorer whose scores do not depend on the other items.
trait Pointwise: Scorer {}

impl<T: Pointwise> BuiltinScorer for T {
    fn score_among(&self, items: &[ContextItem], _: Among) -> Result<Vec<f64>, CupelError> {
        Ok(score_each(self, items))
    }
}

/// Returns [`Scorer::score`] of every item.
fn score_each(scorer: &impl Scorer, items: &[ContextItem]) -> Vec<f64> {
    parallel::map(items, |_, item| scorer.score(item, items))
}

/// Returns an error if a weight is negative or not finite.
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

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Duration};

    use super::*;
    use crate::ContextKind;

    fn builtins() -> Vec<Arc<dyn Scorer>> {
        let tags = [("a".to_owned(), 1.0), ("b".to_owned(), 2.0)];
        let curve = DecayCurve::exponential(Duration::hours(1)).unwrap();
        let now = DateTime::from_timestamp_nanos(9_000_000_000_000);
        let composite = CompositeScorer::builder()
            .add(RecencyScorer, 2.0)
            .add(ScaledScorer::new(FrequencyScorer), 1.0);
        let product = ProductScorer::new(vec![Box::new(PriorityScorer), Box::new(RecencyScorer)]);
        let fusion = |method| {
            let entries: Vec<(Box<dyn Scorer>, f64)> = vec![
                (Box::new(PriorityScorer), 1.0),
                (Box::new(RecencyScorer), 2.0),
            ];
            Arc::new(FusionScorer::new(method, entries).unwrap())
        };
        let builtins: Vec<Arc<dyn Scorer>> = vec![
            fusion(FusionMethod::Sum),
            Arc::new(RecencyScorer),
            Arc::new(PriorityScorer),
            Arc::new(KindScorer::with_default_weights()),
            Arc::new(TagScorer::new(tags.into()).unwrap()),
            Arc::new(FrequencyScorer),
            Arc::new(ReflexiveScorer),
            Arc::new(MetadataTrustScorer::new(0.5).unwrap()),
            Arc::new(MetadataKeyScorer::new("key", "value", 2.0).unwrap()),
            Arc::new(DecayScorer::with_curve(now, curve).unwrap()),
            Arc::new(composite.build().unwrap()),
            Arc::new(ScaledScorer::new(RecencyScorer)),
            Arc::new(product.unwrap()),
            Arc::new(EmbeddingScorer::new([0.5, 1.0]).unwrap()),
        ];
        #[cfg(feature = "relevance")]
        let builtins = {
            let more: [Arc<dyn Scorer>; 3] = [
                Arc::new(RelevanceScorer::new("7 12 20")),
                Arc::new(NeighborScorer::new(RelevanceScorer::new("2 3 21"))),
                Arc::new(ConversationScorer::new("how many: 7 12 20")),
            ];
            [builtins, more.to_vec()].concat()
        };
        builtins
    }

    #[cfg(all(feature = "serde", feature = "relevance"))]
    #[test]
    fn the_list_of_builtins_is_complete() {
        let mut names: Vec<&str> = crate::config::registry::SCORERS.names().collect();
        names.sort_unstable();
        let name = |scorer: Arc<dyn Scorer>| {
            let config = serde_json::to_value(scorer.to_config().unwrap()).unwrap();
            config["type"].as_str().unwrap().to_owned()
        };
        let mut listed: Vec<String> = builtins().into_iter().map(name).collect();
        listed.sort();
        assert_eq!(listed, names);
    }

    #[test]
    fn pointers_keep_the_capabilities_of_builtins() {
        for scorer in builtins() {
            let reference: &dyn Scorer = &&*scorer;
            assert!(reference.builtin().is_some(), "{}", scorer.scorer_name());
            let boxed: &dyn Scorer = &Box::new(scorer);
            assert!(boxed.builtin().is_some());
        }
    }

    /// Items with the fields that the built-in scorers read, and one content or one time for all if requested.
    fn items(content: Option<&str>, at: Option<i64>) -> Vec<ContextItem> {
        let item = |index: i64| {
            let own = format!("Ada: {index} 7 12 20");
            ContextItem::builder(content.unwrap_or(&own), 3)
                .tag(["a", "b"][usize::from(index % 2 == 0)])
                .priority(index * 5 % 7)
                .timestamp(DateTime::from_timestamp_nanos(
                    at.unwrap_or(index * 1_000_000_000),
                ))
                .future_relevance_hint(0.1 * (index * 3 % 8) as f64)
                .meta("cupel:vector", format!("{index},1"))
                .build()
                .unwrap()
        };
        (0..8).map(item).collect()
    }

    #[test]
    fn scorers_that_read_contents_say_so() {
        let by_content = EmbeddingScorer::new([0.5, 1.0]).unwrap();
        let by_content = by_content.with_vectors([("same", vec![1.0, 0.0])]).unwrap();
        let more: Vec<Arc<dyn Scorer>> = vec![
            Arc::new(by_content.clone()),
            Arc::new(ScaledScorer::new(by_content)),
        ];
        for scorer in builtins().into_iter().chain(more) {
            let [own, same] = [None, Some("same")]
                .map(|content| scorer.score_all(&items(content, None)).unwrap());
            let name = scorer.scorer_name();
            assert_eq!(scorer.reads_content(), own != same, "{name}");
        }
    }

    #[test]
    fn scorers_that_rank_by_time_put_the_newest_first() {
        let composite = |weight| {
            let composite = CompositeScorer::builder().add(RecencyScorer, weight);
            Arc::new(composite.add(PriorityScorer, 1.0).build().unwrap())
        };
        let scaled = |weight| Arc::new(ScaledScorer::new(composite(weight)));
        let window = DecayCurve::window(Duration::seconds(4)).unwrap();
        let now = DateTime::from_timestamp_nanos(9_000_000_000);
        let half = DecayCurve::exponential(Duration::seconds(4)).unwrap();
        let decay = |curve| Arc::new(DecayScorer::with_curve(now, curve).unwrap());
        let cases: [(Arc<dyn Scorer>, bool); 7] = [
            (Arc::new(RecencyScorer), true),
            (Arc::new(PriorityScorer), false),
            (composite(1.1), true),
            (composite(1.0), false),
            (scaled(1.1), true),
            (decay(half), true),
            (decay(window), false),
        ];
        for (scorer, expected) in cases {
            let boxed: Box<dyn Scorer> = Box::new(scorer.clone());
            assert_eq!(scorer.ranks_by_time(), expected, "{scorer:?}");
            assert_eq!(boxed.ranks_by_time(), expected, "{scorer:?}");
        }
    }

    #[cfg(feature = "relevance")]
    #[test]
    fn the_language_is_that_of_the_first_scorer_that_has_one() {
        let german = || RelevanceScorer::new("x").with_language(Language::German);
        let nested = CompositeScorer::builder()
            .add(RecencyScorer, 1.0)
            .add(ScaledScorer::new(NeighborScorer::new(german())), 1.0)
            .add(ConversationScorer::new("x"), 1.0);
        assert_eq!(nested.build().unwrap().language(), Some(Language::German));
        assert_eq!(Box::new(RecencyScorer).language(), None);
    }

    #[test]
    fn items_that_are_not_scoreable_do_not_influence_scores() {
        let items: Vec<ContextItem> = (0_u8..40)
            .map(|at| {
                let (index, at) = (usize::from(at), i64::from(at));
                let item = ContextItem::builder(format!("{at}"), if at % 7 == 3 { -1 } else { at })
                    .pinned(at % 5 == 0)
                    .tag(["a", "b", "c", "d"][index % 4])
                    .kind(ContextKind::new(["Memory", "Own"][index % 2]).unwrap())
                    .priority(at * at % 11)
                    .timestamp(DateTime::from_timestamp_nanos(at * at % 13 * 1_000_000_000))
                    .future_relevance_hint(at as f64 / 40.0)
                    .meta("key", ["value", "other"][index % 2]);
                item.build().unwrap()
            })
            .collect();
        let scoreable: Vec<ContextItem> = items
            .iter()
            .filter(|item| item.is_scored())
            .cloned()
            .collect();
        for scorer in builtins() {
            let among = scores(&scorer, &items, Among::Scoreable).unwrap();
            let among = among.into_iter().zip(&items);
            let among = among.filter(|(_, item)| item.is_scored());
            let among: Vec<f64> = among.map(|(score, _)| score).collect();
            let alone: Vec<f64> = scoreable
                .iter()
                .map(|item| scorer.score(item, &scoreable))
                .collect();
            assert_eq!(among, alone, "{}", scorer.scorer_name());
        }
    }
}
