//! [`Lists`]: words with a role of their own in questions and answers, as data.

use std::collections::HashSet;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

use crate::scorer::settings::Language;

/// The word lists of a language. Words are lowercase. Those for times are not stemmed: `evening` and `even` have
/// the same stem.
pub(super) struct Lists {
    /// Endings of contracted words: the `s` of `it's`. They are not words.
    clitics: HashSet<&'static str>,
    /// Words without content, left out of a query.
    stop: HashSet<&'static str>,
    /// Stems of words that say what to do with the answer: `summarize`, `mention`.
    question: HashSet<String>,
    /// Words of questions about a whole topic. A `*` at the end stands for any ending.
    broad: Vec<&'static str>,
    /// Words for times.
    time: HashSet<&'static str>,
    /// Words for quantities.
    number: HashSet<&'static str>,
    /// Phrases that ask for a time.
    time_questions: Vec<Vec<&'static str>>,
    /// Phrases that ask for a quantity.
    number_questions: Vec<Vec<&'static str>>,
}

impl Language {
    /// Returns the word lists, which English alone has.
    pub(super) fn lists(self) -> Option<&'static Lists> {
        (self == Self::English).then(Lists::english)
    }
}

/// What an answer can be: the expected answer type of question answering, in two
/// classes. A set of them is a bit set, because the question is compared with every item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// A time: a date, a weekday, a duration.
    Time,
    /// A quantity.
    Number,
}

impl Answer {
    pub(super) const ALL: [Self; 2] = [Self::Time, Self::Number];

    /// Returns the bit of this answer in a set.
    pub(super) fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Returns the name in explanations.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Time => "mentions a time",
            Self::Number => "mentions a number",
        }
    }
}

impl Lists {
    pub(super) fn english() -> &'static Self {
        static ENGLISH: LazyLock<Lists> = LazyLock::new(|| {
            let words = |text: &'static str| text.split_whitespace();
            let stemmer = Stemmer::create(Algorithm::English);
            let stems = |text| {
                words(text)
                    .map(|it| stemmer.stem(it).into_owned())
                    .collect()
            };
            let phrases = |text: &'static str| text.lines().map(|it| words(it).collect()).collect();
            Lists {
                clitics: words(include_str!("english/clitics.txt")).collect(),
                stop: words(include_str!("english/stop.txt")).collect(),
                question: stems(include_str!("english/question.txt")),
                broad: words(include_str!("english/broad.txt")).collect(),
                time: words(include_str!("english/time.txt")).collect(),
                number: words(include_str!("english/number.txt")).collect(),
                time_questions: phrases(include_str!("english/time_questions.txt")),
                number_questions: phrases(include_str!("english/number_questions.txt")),
            }
        });
        &ENGLISH
    }

    pub(super) fn is_clitic(&self, word: &str) -> bool {
        self.clitics.contains(word)
    }

    pub(super) fn is_stop_word(&self, word: &str) -> bool {
        self.stop.contains(word)
    }

    pub(super) fn is_question_word(&self, stem: &str) -> bool {
        self.question.contains(stem)
    }

    pub(super) fn is_broad(&self, word: &str) -> bool {
        self.broad
            .iter()
            .any(|broad| match broad.strip_suffix('*') {
                Some(prefix) => word.starts_with(prefix),
                None => word == *broad,
            })
    }

    /// Returns the set of answers that a word can be part of.
    pub(super) fn answers(&self, word: &str) -> u8 {
        let is_digits = word.bytes().all(|byte| byte.is_ascii_digit());
        let is_year = is_digits && word.len() == 4 && ["18", "19", "20"].contains(&&word[..2]);
        let is_time = is_year || is_ordinal(word) || self.time.contains(word);
        let is_number = is_digits || self.number.contains(word);
        [(is_time, Answer::Time), (is_number, Answer::Number)]
            .into_iter()
            .filter(|(is_it, _)| *is_it)
            .fold(0, |set, (_, answer)| set | answer.bit())
    }

    /// Returns whether a question with these words asks for an answer.
    pub(super) fn asks_for(&self, answer: Answer, question: &[String]) -> bool {
        let phrases = match answer {
            Answer::Time => &self.time_questions,
            Answer::Number => &self.number_questions,
        };
        phrases.iter().any(|phrase| {
            let mut places = question.windows(phrase.len());
            places.any(|words| words.iter().eq(phrase.iter()))
        })
    }
}

/// Returns whether a word is an ordinal in digits: `1st`, `22nd`.
fn is_ordinal(word: &str) -> bool {
    let endings = ["st", "nd", "rd", "th"];
    let digits = endings.iter().find_map(|ending| word.strip_suffix(ending));
    digits.is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}
