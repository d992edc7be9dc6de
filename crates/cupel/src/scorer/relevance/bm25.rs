//! [`RelevanceScorer`]: Okapi BM25 (Robertson and Walker 1994; Manning, Raghavan and Schütze,
//! Introduction to Information Retrieval, section 11.4.3).
//!
//! A term adds to the score of an item
//!
//! ```text
//! weight * idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean length))
//! idf = ln(1 + (n - df + 0.5) / (df + 0.5))
//! ```
//!
//! with `tf` occurrences in the item, `n` items and `df` of them with the term. Of 3 items with 4
//! words each, one contains `key` once: idf = ln(1 + 2.5 / 1.5) = 0.98, and the item gets 0.98 *
//! 1.9 / 1.9 = 0.98. A term in all three items has ln(1 + 0.5 / 3.5) = 0.13: the 1 in the logarithm
//! keeps it positive, where the original formula would subtract for a frequent term.

use std::fmt;
use std::sync::Arc;

use super::evaluate::{Method, Record, VisitTerm};
use super::index::{Index, SharedIndex};
use super::neighbor::Neighborhood;
use super::question::{Question, Term};
use super::sequence::Sequence;
use crate::scorer::settings::{Language, NearKernel, WideKernel, not_negative};
use crate::scorer::{Among, BuiltinScorer, ScorePart, Scorer};
use crate::{ContextItem, CupelError, Query};

/// The most terms of a query that are matched. A query may be a whole file that a user pasted, and
/// each term takes a pass over all items. The heaviest 128 are rare words, which decide the order.
const MOST_TERMS: usize = 128;

/// How words are matched: the language and the parameters of BM25.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Matching {
    pub(super) language: Language,
    pub(super) k1: f64,
    pub(super) b: f64,
}

impl Matching {
    pub(super) fn new(language: Language, k1: f64, b: f64) -> Result<Self, CupelError> {
        not_negative("k1", k1)?;
        if !(0.0..=1.0).contains(&b) {
            return Err(CupelError::ScorerConfig("b must be from 0 to 1".to_owned()));
        }
        Ok(Self { language, k1, b })
    }

    /// Visits the BM25 scores of all items for each term that occurs.
    pub(super) fn each_term(&self, index: &Index, question: &Question, visit: &mut VisitTerm<'_>) {
        let Self { k1, b, .. } = *self;
        let n = index.len() as f64;
        let known = question.terms.iter().filter_map(|term| {
            let number = index.term(&term.stem)?;
            let df = index.postings(number).len() as f64;
            let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
            Some((term, number, term.weight * idf))
        });
        // The order of the terms is the order of the sum, which rounding depends on: it is that of
        // the query, unless there are too many. The sort is stable.
        let mut known: Vec<(&Term, u32, f64)> = known.collect();
        if known.len() > MOST_TERMS {
            known.sort_by(|a, b| b.2.total_cmp(&a.2));
            known.truncate(MOST_TERMS);
        }
        let mut matches = vec![0.0; index.len()];
        for (term, number, weight) in known {
            matches.fill(0.0);
            let postings = index.postings(number);
            for (place, count) in postings.filter(|&(place, _)| !index.is_query(place)) {
                let tf = f64::from(count);
                let length = 1.0 - b + b * index.relative_length(place);
                matches[place] = weight * tf * (k1 + 1.0) / (tf + k1 * length);
            }
            // `Debug` would escape combining characters.
            visit(&format!("term \"{}\"", term.word), &mut matches);
        }
    }
}

impl Default for Matching {
    fn default() -> Self {
        Self {
            language: Language::English,
            // Below the usual 1.2 and 0.75 (Manning et al., section 11.4.3): a repetition adds less
            // and a long item loses less. The values matter little: the best of nine settings gained
            // 0.2 points on the data it was chosen on, and nothing on others (docs/relevance.md).
            k1: 0.9,
            b: 0.5,
        }
    }
}

/// Scores by the words that an item shares with a query: Okapi BM25 (Robertson and Walker 1994).
///
/// A term of the query adds more the rarer it is, the more often the item contains it, and the shorter the item is.
/// The sum is divided by the largest one: scores are in `[0, 1]`, and an item without a match scores 0.0. Words are
/// compared by their stems; stop words of the query are left out. Identifiers are split (`parseQuery`, `snake_case`,
/// `src/main.rs`), and texts without spaces between words, such as Chinese, match by pairs of characters.
///
/// Of a query with more than 128 terms that occur, those of the greatest weight count.
///
/// An item with the metadata `cupel:query` matches nothing: the question of a conversation is not its own answer.
///
/// # Formula
///
/// With `n` items that take part in scoring, of which `df` contain the term, a term of weight `w` that occurs
/// `tf` times in an item of `length` words adds, in binary64 and from the left,
///
/// ```text
/// idf = ln(1 + (n - df + 0.5) / (df + 0.5))
/// (w * idf) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * (length / mean)))
/// ```
///
/// - The words of an item are counted with repetitions and with stop words, without the endings of contracted
///   words (`'s`). `mean` is the mean over all items, also those with `cupel:query`, which count for `n` and
///   `df` too.
/// - The terms of a text of the query are its distinct stems in order, without those of stop words, unless there
///   are only stop words. `w` is the weight of the text divided by the greatest weight of all texts. A stem
///   in several texts is one term, at its first place, and has the sum of their weights.
/// - The score is the sum over the terms in that order, divided by the greatest sum of all items, or 0 if that is 0.
///   Beyond 128 terms the order is that of `w * idf`, greatest first, ties in the order of the terms.
///
/// The index of the words is built once per list of items and is shared with copies for other queries
/// ([`Scorer::with_query`]). The scorer keeps the items of the last 16 lists for that.
///
/// ```
/// use cupel::{ContextItem, RelevanceScorer, Scorer};
///
/// let item = |text: &str| ContextItem::builder(text, 5).build();
/// let items = [item("The key is on the shelf.")?, item("It rains.")?];
/// let scorer = RelevanceScorer::new("Where are my keys?");
/// assert_eq!(scorer.score_all(&items)?, [1.0, 0.0]);
/// assert_eq!(scorer.explain(&items, 0)?.parts[0].scorer, "term \"keys\"");
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Clone)]
pub struct RelevanceScorer {
    query: Option<Query>,
    matching: Matching,
    index: SharedIndex,
}

impl RelevanceScorer {
    /// Creates a scorer for English texts.
    pub fn new(query: impl Into<Query>) -> Self {
        Self {
            query: Some(query.into()),
            ..Self::without_query()
        }
    }

    /// Creates a scorer that gets its query from the run; see [`Policy::with_query`](crate::Policy::with_query).
    pub fn without_query() -> Self {
        Self {
            query: None,
            matching: Matching::default(),
            index: SharedIndex::default(),
        }
    }

    /// Sets the language. Defaults to English.
    pub fn with_language(mut self, language: Language) -> Self {
        self.matching.language = language;
        self
    }

    /// Sets how fast repetitions of a word saturate (`k1`, default 0.9), and how much long items are discounted (`b`,
    /// default 0.5).
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if `k1` is negative or not finite, or `b` is not from 0 to 1.
    pub fn with_parameters(mut self, k1: f64, b: f64) -> Result<Self, CupelError> {
        self.matching = Matching::new(self.matching.language, k1, b)?;
        Ok(self)
    }

    fn evaluate(
        &self,
        sequence: &Sequence<'_>,
        record: Option<&mut Record>,
    ) -> Result<Vec<f64>, CupelError> {
        let items = sequence.items();
        let each = |visit: &mut VisitTerm<'_>| self.each_term_of(items, visit);
        method(sequence).scores(items.len(), each, record)
    }

    fn each_term_of(
        &self,
        items: &[ContextItem],
        visit: &mut VisitTerm<'_>,
    ) -> Result<(), CupelError> {
        let query = super::required(self.query.as_ref(), "RelevanceScorer")?;
        let question = Question::of(query, self.matching.language, 1.0);
        let index = self.index.of(items, self.matching.language);
        self.matching.each_term(&index, &question, visit);
        Ok(())
    }
}

/// Returns the method without kernels.
fn method<'a>(sequence: &Sequence<'_>) -> Method<'a> {
    let none = Neighborhood {
        near: NearKernel::OFF,
        wide: WideKernel::OFF,
        sessions: false,
    };
    none.method(sequence)
}

impl fmt::Debug for RelevanceScorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelevanceScorer")
            .field("query", &self.query)
            .field("matching", &self.matching)
            .finish_non_exhaustive()
    }
}

impl Scorer for RelevanceScorer {
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
        super::score_one(self, item, all_items)
    }

    fn builtin(&self) -> Option<&dyn BuiltinScorer> {
        Some(self)
    }

    fn reads_content(&self) -> bool {
        true
    }

    fn language(&self) -> Option<Language> {
        Some(self.matching.language)
    }

    fn with_query(&self, query: &Query) -> Option<Arc<dyn Scorer>> {
        if self.query.is_some() {
            return None;
        }
        Some(Arc::new(Self {
            query: Some(query.clone()),
            ..self.clone()
        }))
    }

    fn explain_all(&self, items: &[ContextItem]) -> Result<Vec<ScorePart>, CupelError> {
        let sequence = Sequence::of(items, Among::All);
        let mut record = Record::default();
        self.evaluate(&sequence, Some(&mut record))?;
        Ok(super::explain(
            &method(&sequence),
            &record,
            &sequence,
            self.scorer_name(),
        ))
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<crate::config::ScorerConfig, crate::config::ConfigError> {
        Ok(crate::config::ScorerConfig::Relevance {
            query: self.query.clone(),
            language: self.matching.language,
            k1: self.matching.k1,
            b: self.matching.b,
        })
    }
}

impl BuiltinScorer for RelevanceScorer {
    fn score_among(&self, items: &[ContextItem], among: Among) -> Result<Vec<f64>, CupelError> {
        let sequence = Sequence::of(items, among);
        Ok(sequence.in_input_order(self.evaluate(&sequence, None)?, 0.0))
    }

    fn each_term(
        &self,
        items: &[ContextItem],
        visit: &mut dyn FnMut(&str, &mut [f64]),
    ) -> Option<Result<(), CupelError>> {
        Some(self.each_term_of(items, visit))
    }
}

#[cfg(feature = "serde")]
impl RelevanceScorer {
    pub(crate) fn from_config(
        query: Option<Query>,
        language: Language,
        k1: f64,
        b: f64,
    ) -> Result<Self, crate::config::ConfigError> {
        let matching = Matching::new(language, k1, b);
        Ok(Self {
            query,
            matching: matching.map_err(crate::config::ConfigError::invalid)?,
            index: SharedIndex::default(),
        })
    }
}
