//! [`ConversationScorer`].

use std::fmt;
use std::sync::Arc;

use super::bm25::Matching;
use super::evaluate::{Boosts, Method, Record, VisitTerm};
use super::index::{Index, SharedIndex};
use super::neighbor::Neighborhood;
use super::question::Question;
use super::sequence::Sequence;
use crate::scorer::settings::{Language, NearKernel, QuestionRules, WideKernel};
use crate::scorer::{Among, BuiltinScorer, ScorePart, Scorer};
use crate::{ContextItem, CupelError, Query};

/// Scores the turns of a conversation by their relevance to a question.
///
/// As [`RelevanceScorer`](super::RelevanceScorer) with the kernels of [`NeighborScorer`](super::NeighborScorer), and with rules for questions
/// ([`QuestionRules`]): words such as `summarize` count less, turns with a date or a number count more if the question asks for one, and so
/// do turns of a speaker whom the question names (metadata `cupel:speaker`, or a text that starts with `Ada: ` or
/// `[9:30] Ada: `). A question about a whole topic weighs the wide kernel more. Scores are in `[0, 1]`.
///
/// `docs/relevance.md` in the repository has its measured recall.
///
/// ```
/// use cupel::{ContextItem, ConversationScorer, Scorer};
///
/// let item = |text: &str| ContextItem::builder(text, 5).build();
/// let items = [
///     item("Ada: When is the release?")?,
///     item("Ben: Next Tuesday.")?,
///     item("Ada: It rains.")?,
/// ];
/// let scores = ConversationScorer::new("When will the release be, according to Ben?").score_all(&items)?;
/// assert!(scores[1] > scores[0] && scores[0] > scores[2]);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Clone)]
pub struct ConversationScorer {
    query: Option<Query>,
    matching: Matching,
    neighborhood: Neighborhood,
    rules: QuestionRules,
    index: SharedIndex,
}

impl ConversationScorer {
    /// Creates a scorer for English conversations.
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
            neighborhood: Neighborhood::default(),
            rules: QuestionRules::default(),
            index: SharedIndex::default(),
        }
    }

    /// Sets the language. Defaults to English.
    pub fn with_language(mut self, language: Language) -> Self {
        self.matching.language = language;
        self
    }

    /// Sets the parameters of BM25; see [`RelevanceScorer::with_parameters`](super::RelevanceScorer::with_parameters).
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if `k1` is negative or not finite, or `b` is not from 0 to 1.
    pub fn with_parameters(mut self, k1: f64, b: f64) -> Result<Self, CupelError> {
        self.matching = Matching::new(self.matching.language, k1, b)?;
        Ok(self)
    }

    /// Sets the kernels, and whether items of different sessions (metadata `cupel:session`) are not neighbors.
    ///
    /// # Errors
    ///
    /// As [`NeighborScorer::with_near`](super::NeighborScorer::with_near) and
    /// [`NeighborScorer::with_wide`](super::NeighborScorer::with_wide).
    pub fn with_neighbors(
        mut self,
        near: NearKernel,
        wide: WideKernel,
        sessions: bool,
    ) -> Result<Self, CupelError> {
        self.neighborhood = Neighborhood::new(near, wide, sessions)?;
        Ok(self)
    }

    /// Sets the rules for questions.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if a weight is negative, a boost is not positive, or one is not finite.
    pub fn with_rules(mut self, rules: QuestionRules) -> Result<Self, CupelError> {
        rules.check()?;
        self.rules = rules;
        Ok(self)
    }

    fn question(&self) -> Result<Question, CupelError> {
        let query = super::required(self.query.as_ref(), "ConversationScorer")?;
        Ok(Question::of(
            query,
            self.matching.language,
            self.rules.word_weight,
        ))
    }

    fn method<'a>(
        &self,
        sequence: &Sequence<'_>,
        index: &'a Index,
        question: &Question,
    ) -> Method<'a> {
        let mut method = self.neighborhood.method(sequence);
        if question.is_broad && method.wide.weight > 0.0 {
            method.wide.weight = self.rules.broad_weight;
        }
        let numbers = question
            .terms
            .iter()
            .filter_map(|term| index.term(&term.stem));
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        method.boosts = Some(Boosts {
            index,
            answers: question.answers,
            answer_boost: self.rules.answer_boost,
            terms: numbers,
            speaker_boost: self.rules.speaker_boost,
        });
        method
    }

    fn evaluate(
        &self,
        sequence: &Sequence<'_>,
        method: &Method<'_>,
        (index, question): (&Index, &Question),
        record: Option<&mut Record>,
    ) -> Result<Vec<f64>, CupelError> {
        let each = |visit: &mut VisitTerm<'_>| {
            self.matching.each_term(index, question, visit);
            Ok(())
        };
        method.scores(sequence.items().len(), each, record)
    }
}

impl fmt::Debug for ConversationScorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConversationScorer")
            .field("query", &self.query)
            .field("matching", &self.matching)
            .field("neighborhood", &self.neighborhood)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl Scorer for ConversationScorer {
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
        let question = self.question()?;
        let sequence = Sequence::of(items, Among::All);
        let index = self.index.of(sequence.items(), self.matching.language);
        let method = self.method(&sequence, &index, &question);
        let mut record = Record::default();
        self.evaluate(&sequence, &method, (&index, &question), Some(&mut record))?;
        Ok(super::explain(
            &method,
            &record,
            &sequence,
            self.scorer_name(),
        ))
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<crate::config::ScorerConfig, crate::config::ConfigError> {
        Ok(crate::config::ScorerConfig::Conversation {
            query: self.query.clone(),
            language: self.matching.language,
            k1: self.matching.k1,
            b: self.matching.b,
            near: self.neighborhood.near,
            wide: self.neighborhood.wide,
            sessions: self.neighborhood.sessions,
            question: self.rules,
        })
    }
}

impl BuiltinScorer for ConversationScorer {
    fn score_among(&self, items: &[ContextItem], among: Among) -> Result<Vec<f64>, CupelError> {
        let question = self.question()?;
        let sequence = Sequence::of(items, among);
        let index = self.index.of(sequence.items(), self.matching.language);
        let method = self.method(&sequence, &index, &question);
        let scores = self.evaluate(&sequence, &method, (&index, &question), None)?;
        Ok(sequence.in_input_order(scores, 0.0))
    }
}

#[cfg(feature = "serde")]
impl ConversationScorer {
    #[expect(clippy::too_many_arguments, reason = "one per field of the row")]
    pub(crate) fn from_config(
        query: Option<Query>,
        language: Language,
        k1: f64,
        b: f64,
        near: NearKernel,
        wide: WideKernel,
        sessions: bool,
        question: QuestionRules,
    ) -> Result<Self, crate::config::ConfigError> {
        let new = || -> Result<Self, CupelError> {
            question.check()?;
            Ok(Self {
                query,
                matching: Matching::new(language, k1, b)?,
                neighborhood: Neighborhood::new(near, wide, sessions)?,
                rules: question,
                index: SharedIndex::default(),
            })
        };
        new().map_err(crate::config::ConfigError::invalid)
    }
}
