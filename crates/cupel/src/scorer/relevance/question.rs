//! [`Question`]: a query as its terms with their weights, and what it asks for.
//!
//! `When did Ada mention the release?` has the stop words `when`, `did` and `the`. The terms are
//! `ada` and `releas` with weight 1, and `mention` with weight 0.2: it says what Ada did with the
//! answer, not what the answer is about. The phrase `when did` asks for a time, so items with a date
//! get a boost.

use std::collections::{HashMap, HashSet};

use rust_stemmers::Stemmer;

use super::index::stem;
use super::lists::Answer;
use super::words::each_word;
use crate::Query;
use crate::scorer::settings::Language;

/// A query.
#[derive(Debug, Default)]
pub(super) struct Question {
    pub(super) terms: Vec<Term>,
    /// The answers that it asks for, as a set.
    pub(super) answers: u8,
    /// Whether it asks about a whole topic.
    pub(super) is_broad: bool,
    /// The places of the terms by their stems.
    places: HashMap<String, usize>,
}

/// A term of a query.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) stem: String,
    /// The first word of the query with this stem.
    pub(super) word: String,
    pub(super) weight: f64,
}

impl Question {
    /// Reads a query. Each distinct stem of a text that is not of a stop word is a term of the text's weight, or
    /// every stem if there are only stop words. Words that say what to do with the answer (`summarize`) weigh
    /// `question_words` times as much, unless the text has no others.
    pub(super) fn of(query: &Query, language: Language, question_words: f64) -> Self {
        let stemmer = language.algorithm().map(Stemmer::create);
        let mut question = Self::default();
        for (text, weight) in query.relative_texts() {
            question.add(text, weight, language, stemmer.as_ref(), question_words);
        }
        question
    }

    fn add(
        &mut self,
        text: &str,
        weight: f64,
        language: Language,
        stemmer: Option<&Stemmer>,
        question_words: f64,
    ) {
        let lists = language.lists();
        let mut words: Vec<String> = Vec::new();
        each_word(text, |word| {
            if !lists.is_some_and(|lists| lists.is_clitic(word)) {
                words.push(word.to_owned());
            }
        });
        let is_stop_word = |word: &str| lists.is_some_and(|lists| lists.is_stop_word(word));
        let has_content = words.iter().any(|word| !is_stop_word(word));
        let (mut own, mut seen) = (Vec::new(), HashSet::new());
        for word in words
            .iter()
            .filter(|word| !(has_content && is_stop_word(word)))
        {
            let stem = stem(stemmer, word);
            if seen.insert(stem.clone()) {
                let word = word.clone();
                own.push(Term { stem, word, weight });
            }
        }
        let is_question_word =
            |term: &Term| lists.is_some_and(|lists| lists.is_question_word(&term.stem));
        if !own.iter().all(is_question_word) {
            let question = own.iter_mut().filter(|term| is_question_word(term));
            question.for_each(|term| term.weight *= question_words);
        }
        for term in own {
            match self.places.get(&term.stem) {
                Some(&known) => self.terms[known].weight += term.weight,
                None => {
                    self.places.insert(term.stem.clone(), self.terms.len());
                    self.terms.push(term);
                }
            }
        }
        if let Some(lists) = lists {
            self.is_broad |= words.iter().any(|word| lists.is_broad(word));
            let expected = Answer::ALL.iter().filter(|&&it| lists.asks_for(it, &words));
            self.answers |= expected.fold(0, |set, answer| set | answer.bit());
        }
    }
}
