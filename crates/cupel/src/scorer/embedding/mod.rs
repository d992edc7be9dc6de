//! [`EmbeddingScorer`] and the table of word vectors.

#[cfg(feature = "embeddings")]
mod table;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

#[cfg(feature = "embeddings")]
pub use table::WordVectors;

#[cfg(feature = "embeddings")]
use super::position;
use super::{Among, BuiltinScorer, Scorer};
use crate::fast::parallel;
use crate::{ContextItem, CupelError, Query, vector};

/// Scores by the cosine similarity of an item's vector to the query's, 0 at least.
///
/// The library has no model: vectors come from the caller, in one of two ways.
///
/// - **Given**: the vector of the query, and one per item, by content
///   ([`with_vectors`](Self::with_vectors)) or in the metadata `cupel:vector` as numbers separated by commas. All have
///   one length. An item without a vector scores 0.
/// - **A table of word vectors** (feature `embeddings`): the vector of a text is the mean of its words'
///   vectors, weighted by inverse document frequency among the items. The query is the scorer's own or that of the
///   run ([`Policy::with_query`](crate::Policy::with_query)).
///
/// ```
/// use cupel::{ContextItem, EmbeddingScorer, Scorer};
///
/// let items = [
///     ContextItem::builder("cats", 1).build()?,
///     ContextItem::builder("dogs", 1).meta("cupel:vector", "0, 2").build()?,
///     ContextItem::builder("rain", 1).build()?,
/// ];
/// let scorer = EmbeddingScorer::new([3.0, 4.0])?.with_vectors([("cats", vec![1.0, 0.0])])?;
/// assert_eq!(scorer.score_all(&items)?, [0.6, 0.8, 0.0]);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Clone)]
pub struct EmbeddingScorer {
    source: Source,
}

#[derive(Clone)]
enum Source {
    Given {
        query: Vec<f64>,
        by_content: Arc<HashMap<String, Vec<f32>>>,
    },
    #[cfg(feature = "embeddings")]
    Table {
        table: Arc<WordVectors>,
        query: Option<Query>,
    },
}

impl EmbeddingScorer {
    /// The metadata key of an item's vector: numbers separated by commas.
    pub const KEY: &str = vector::KEY;

    /// Creates a scorer for the vector of a query.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if the vector is empty or a number is not finite.
    pub fn new<T: Into<f64>>(query: impl IntoIterator<Item = T>) -> Result<Self, CupelError> {
        let query: Vec<f64> = query.into_iter().map(Into::into).collect();
        if query.is_empty() || !query.iter().all(|number| number.is_finite()) {
            return Err(CupelError::ScorerConfig(
                "the vector of the query must have numbers, all of them finite".to_owned(),
            ));
        }
        Ok(Self {
            source: Source::Given {
                query,
                by_content: Arc::default(),
            },
        })
    }

    /// Sets the vectors of items by their content. They win over the metadata `cupel:vector`.
    ///
    /// # Errors
    ///
    /// [`CupelError::InvalidVector`] if a vector does not have the length of the query's or a number is not
    /// finite, [`CupelError::ScorerConfig`] if the scorer has a table.
    pub fn with_vectors<K: Into<String>>(
        mut self,
        vectors: impl IntoIterator<Item = (K, Vec<f32>)>,
    ) -> Result<Self, CupelError> {
        match &mut self.source {
            Source::Given { query, by_content } => {
                let mut given = HashMap::new();
                for (content, vector) in vectors {
                    let content = content.into();
                    check(&vector, query.len(), &content)?;
                    given.insert(content, vector);
                }
                *by_content = Arc::new(given);
                Ok(self)
            }
            #[cfg(feature = "embeddings")]
            Source::Table { .. } => Err(CupelError::ScorerConfig(
                "a scorer with a table of word vectors takes no vectors of items".to_owned(),
            )),
        }
    }

    /// Creates a scorer from a table of word vectors, with the query of the run.
    #[cfg(feature = "embeddings")]
    pub fn from_table(table: impl Into<Arc<WordVectors>>) -> Self {
        Self {
            source: Source::Table {
                table: table.into(),
                query: None,
            },
        }
    }
}

/// Checks the vector of an item.
fn check(vector: &[f32], length: usize, content: &str) -> Result<(), CupelError> {
    if vector.len() == length && vector.iter().all(|number| number.is_finite()) {
        return Ok(());
    }
    let content = crate::diagnostics::Excerpt(content);
    Err(CupelError::InvalidVector(format!(
        "the vector of {content} has {} numbers; it needs {length} finite ones, as the query has",
        vector.len()
    )))
}

/// Returns the similarity of an item with a given vector.
fn score_given(
    query: &[f64],
    by_content: &HashMap<String, Vec<f32>>,
    item: &ContextItem,
) -> Result<f64, CupelError> {
    if let Some(vector) = by_content.get(item.content()) {
        return Ok(vector::cosine(vector, query));
    }
    let Some(vector) = vector::of_item(item)? else {
        return Ok(0.0);
    };
    check(&vector, query.len(), item.content())?;
    Ok(vector::cosine(&vector, query))
}

impl fmt::Debug for EmbeddingScorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EmbeddingScorer")
    }
}

impl Scorer for EmbeddingScorer {
    /// Returns 0.0 for an item without a usable vector, where [`score_all`](Scorer::score_all) may fail.
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
        match &self.source {
            Source::Given { query, by_content } => {
                let _ = all_items;
                score_given(query, by_content, item).unwrap_or(0.0)
            }
            #[cfg(feature = "embeddings")]
            Source::Table { .. } => {
                let scores = self.score_among(all_items, Among::All);
                let own = position(item, all_items);
                own.zip(scores.ok())
                    .map_or(0.0, |(own, scores)| scores[own])
            }
        }
    }

    fn builtin(&self) -> Option<&dyn BuiltinScorer> {
        Some(self)
    }

    fn reads_content(&self) -> bool {
        match &self.source {
            Source::Given { by_content, .. } => !by_content.is_empty(),
            #[cfg(feature = "embeddings")]
            Source::Table { .. } => true,
        }
    }

    fn with_query(&self, query: &Query) -> Option<Arc<dyn Scorer>> {
        match &self.source {
            #[cfg(feature = "embeddings")]
            Source::Table { table, query: None } => Some(Arc::new(Self {
                source: Source::Table {
                    table: table.clone(),
                    query: Some(query.clone()),
                },
            })),
            _ => {
                let _ = query;
                None
            }
        }
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        let not_data = || super::ConfigError::not_data(self.scorer_name());
        match &self.source {
            Source::Given { query, by_content } if by_content.is_empty() => {
                Ok(super::ScorerConfig::Embedding {
                    vector: Some(query.clone()),
                    table: None,
                    query: None,
                })
            }
            Source::Given { .. } => Err(not_data()),
            #[cfg(feature = "embeddings")]
            Source::Table { table, query } => Ok(super::ScorerConfig::Embedding {
                vector: None,
                table: Some(table.path().ok_or_else(not_data)?.to_owned()),
                query: query.clone(),
            }),
        }
    }
}

impl BuiltinScorer for EmbeddingScorer {
    fn score_among(&self, items: &[ContextItem], among: Among) -> Result<Vec<f64>, CupelError> {
        match &self.source {
            Source::Given { query, by_content } => {
                let score = |_, item: &ContextItem| {
                    if among.includes(item) {
                        score_given(query, by_content, item)
                    } else {
                        Ok(0.0)
                    }
                };
                parallel::map(items, score).into_iter().collect()
            }
            #[cfg(feature = "embeddings")]
            Source::Table { table, query } => {
                let scorer = "EmbeddingScorer";
                let query = query.as_ref().ok_or(CupelError::MissingQuery { scorer })?;
                Ok(table.scores(query, items, among))
            }
        }
    }
}

#[cfg(feature = "serde")]
impl EmbeddingScorer {
    pub(crate) fn from_config(
        vector: Option<Vec<f64>>,
        table: Option<String>,
        query: Option<Query>,
    ) -> Result<Self, super::ConfigError> {
        let fault = |text: &str| Err(CupelError::ScorerConfig(text.to_owned()));
        let built = match (vector, table, query) {
            (Some(vector), None, None) => Self::new(vector),
            #[cfg(feature = "embeddings")]
            (None, Some(path), query) => {
                return match WordVectors::from_path(path) {
                    Ok(table) => Ok(Self {
                        source: Source::Table {
                            table: table.into(),
                            query,
                        },
                    }),
                    Err(error) => Err(crate::config::invalid_in("table")(error)),
                };
            }
            #[cfg(not(feature = "embeddings"))]
            (None, Some(_), _) => fault("`table` needs the feature `embeddings` of cupel"),
            (None, None, _) => fault("give `vector`, or `table`"),
            (Some(_), ..) => fault("`vector` excludes `table` and `query`; remove them"),
        };
        built.map_err(super::ConfigError::invalid)
    }
}
