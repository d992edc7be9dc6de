//! Relevance to a question, step by step over whole texts: no index, no shared code.

use std::collections::HashSet;

use cupel_conformance::model::{Document, Item};
use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;
use unicode_script::{Script, UnicodeScript};

use super::document::{self, flag, integer, name_of, number, text};

/// The parameters, with the documented defaults.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameters {
    pub(crate) k1: f64,
    pub(crate) b: f64,
    pub(crate) near: Option<(f64, f64)>,
    /// Weight, decay and power.
    pub(crate) wide: Option<(f64, f64, i32)>,
    pub(crate) has_question_rules: bool,
    /// Whether turns of different sessions are not neighbors.
    pub(crate) sessions: bool,
}

/// One turn: its text, its speaker's name if it is given apart, and its session.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) text: String,
    pub(crate) speaker: Option<String>,
    pub(crate) session: Option<String>,
    /// Whether it is the query itself.
    pub(crate) is_query: bool,
}

impl Parameters {
    /// The parameters of a scorer: `relevance`, `neighbor` or `conversation`.
    pub(super) fn of(scorer: &Document) -> Self {
        let (near, wide) = (&scorer["near"], &scorer["wide"]);
        let spreads = name_of(scorer) != "relevance";
        let power = i32::try_from(integer(wide, "power", 3)).expect("a small power");
        let near = (number(near, "forward", 0.6), number(near, "backward", 0.4));
        let wide = (
            number(wide, "weight", 0.5),
            number(wide, "decay", 0.97),
            power,
        );
        Self {
            k1: number(scorer, "k1", 0.9),
            b: number(scorer, "b", 0.5),
            near: spreads.then_some(near),
            wide: spreads.then_some(wide),
            has_question_rules: name_of(scorer) == "conversation",
            sessions: flag(scorer, "sessions", false),
        }
    }
}

/// The texts of a scorer's query with their weights.
pub(super) fn query(scorer: &Document) -> Vec<(String, f64)> {
    if let Some(text) = scorer["query"].as_str() {
        return vec![(text.to_owned(), 1.0)];
    }
    let texts = document::list(scorer, "query").iter();
    texts
        .map(|it| (text(it, "text").to_owned(), number(it, "weight", 1.0)))
        .collect()
}

impl Turn {
    pub(crate) fn of(item: &Item) -> Self {
        let meta = |key: &str| item.metadata.get(key).cloned();
        Self {
            text: item.content.clone(),
            speaker: meta("cupel:speaker"),
            session: meta("cupel:session"),
            is_query: meta("cupel:query").is_some(),
        }
    }
}

fn list(text: &'static str) -> HashSet<&'static str> {
    text.split_whitespace().collect()
}

macro_rules! english {
    ($name:literal) => {
        include_str!(concat!(
            "../../src/scorer/relevance/english/",
            $name,
            ".txt"
        ))
    };
}

fn stem(word: &str) -> String {
    Stemmer::create(Algorithm::English).stem(word).into_owned()
}

fn is_pair_script(c: char) -> bool {
    let names = [
        "Han", "Hiragana", "Katakana", "Hangul", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar",
        "Tibetan",
    ];
    !c.is_ascii() && names.contains(&c.script().full_name())
}

/// Words in order, without the endings of contracted words.
pub(crate) fn words(text: &str) -> Vec<String> {
    let chars: Vec<char> = text
        .nfkd()
        .filter(|&c| matches!(canonical_combining_class(c), 0 | 8))
        .nfc()
        .collect();
    // One class per character: 0 separates, 1 is a word, 2 is a script without spaces.
    let mut classes: Vec<u8> = Vec::new();
    for &c in &chars {
        let before = classes.last().copied().unwrap_or(0);
        let follows = !c.is_ascii() && matches!(c.script(), Script::Common | Script::Inherited);
        classes.push(match c {
            c if !c.is_alphanumeric() => 0,
            _ if follows && before != 0 => before,
            c => 1 + u8::from(is_pair_script(c)),
        });
    }
    let mut found: Vec<String> = Vec::new();
    let mut at = 0;
    let mut chain: Option<(usize, usize)> = None;
    while at < chars.len() {
        if classes[at] == 0 {
            at += 1;
            continue;
        }
        let run_end = (at..chars.len())
            .find(|&i| classes[i] == 0)
            .unwrap_or(chars.len());
        chain = match chain {
            Some((first, last))
                if at == last + 1
                    && chars[last] == '.'
                    && chars[last - 1].is_ascii_digit()
                    && chars[at].is_ascii_digit() =>
            {
                Some((first, run_end))
            }
            other => {
                push_chain(&mut found, &chars, other);
                Some((at, run_end))
            }
        };
        while at < run_end {
            let end = (at..run_end)
                .find(|&i| classes[i] != classes[at])
                .unwrap_or(run_end);
            let part = &chars[at..end];
            match classes[at] {
                2 if part.len() == 1 => found.push(part.iter().collect()),
                2 => found.extend(part.windows(2).map(|pair| pair.iter().collect())),
                _ => push_word(&mut found, part),
            }
            at = end;
        }
    }
    push_chain(&mut found, &chars, chain);
    let clitics = list(english!("clitics"));
    let lower = found.into_iter().map(|word| word.to_lowercase());
    lower.filter(|word| !clitics.contains(&**word)).collect()
}

fn push_chain(found: &mut Vec<String>, chars: &[char], chain: Option<(usize, usize)>) {
    if let Some((first, last)) = chain
        && chars[first..last].contains(&'.')
        && last - first <= 64
    {
        found.push(chars[first..last].iter().collect());
    }
}

fn push_word(found: &mut Vec<String>, word: &[char]) {
    if word.len() > 64 {
        return found.push(word[..64].iter().collect());
    }
    let mut parts = vec![Vec::new()];
    for (i, &c) in word.iter().enumerate() {
        let starts = i > 0
            && c.is_uppercase()
            && (word[i - 1].is_lowercase() || word.get(i + 1).is_some_and(|c| c.is_lowercase()));
        if starts {
            parts.push(Vec::new());
        }
        parts.last_mut().unwrap().push(c);
    }
    if parts.len() > 1 {
        found.extend(parts.iter().map(|part| part.iter().collect::<String>()));
    }
    found.push(word.iter().collect());
}

fn asks(question: &[String], phrases: &str) -> bool {
    let question = format!(" {} ", question.join(" "));
    phrases
        .lines()
        .any(|phrase| question.contains(&format!(" {phrase} ")))
}

fn mentions_time(words: &[String]) -> bool {
    let list = list(english!("time"));
    words.iter().any(|word| {
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
        let ending = &word[digits.len()..];
        let is_year = ending.is_empty()
            && word.len() == 4
            && ["18", "19", "20"]
                .iter()
                .any(|century| word.starts_with(century));
        list.contains(&**word)
            || is_number && (is_year || ["st", "nd", "rd", "th"].contains(&ending))
    })
}

fn mentions_number(words: &[String]) -> bool {
    let list = list(english!("number"));
    let is_digits = |word: &str| word.chars().all(|c| c.is_ascii_digit());
    words
        .iter()
        .any(|word| is_digits(word) || list.contains(&**word))
}

fn speaker(turn: &Turn) -> Option<String> {
    if turn.speaker.is_some() {
        return turn.speaker.clone();
    }
    let mut text = &*turn.text;
    if text.starts_with('[')
        && let Some(end) = text.find("] ")
    {
        text = &text[end + 2..];
    }
    let (name, _) = text.split_once(": ")?;
    let is_code = name.contains(['"', '{', '}', '[', ']', '<', '>', '=', '/', '\\']);
    let is_name =
        !is_code && !name.is_empty() && name.chars().count() <= 40 && !name.contains([':', '\n']);
    is_name.then(|| name.to_owned())
}

/// The terms of one text of a query with their factors.
fn terms(text: &str, question_words: bool) -> Vec<(String, f64)> {
    let stop = list(english!("stop"));
    let all = words(text);
    let content: Vec<String> = all
        .iter()
        .filter(|word| !stop.contains(&***word))
        .cloned()
        .collect();
    let chosen = if content.is_empty() { all } else { content };
    let mut stems: Vec<String> = Vec::new();
    for word in chosen {
        let stem = stem(&word);
        if !stems.contains(&stem) {
            stems.push(stem);
        }
    }
    let question: HashSet<String> = list(english!("question")).into_iter().map(stem).collect();
    let only = stems.iter().all(|stem| question.contains(stem));
    let factor = |stem: &String| {
        let is_light = question_words && !only && question.contains(stem);
        if is_light { 0.2 } else { 1.0 }
    };
    stems
        .iter()
        .map(|stem| (stem.clone(), factor(stem)))
        .collect()
}

/// Texts that are read once: words and stems of every turn, weights of the query's terms.
struct Read {
    texts: Vec<Vec<String>>,
    stems: Vec<Vec<String>>,
    weights: Vec<(String, f64)>,
    questions: Vec<Vec<String>>,
}

impl Read {
    fn new(turns: &[Turn], query: &[(String, f64)], question_words: bool) -> Self {
        let texts: Vec<Vec<String>> = turns.iter().map(|turn| words(&turn.text)).collect();
        let stems = texts
            .iter()
            .map(|words| words.iter().map(|word| stem(word)).collect());
        let mut weights: Vec<(String, f64)> = Vec::new();
        for (text, weight) in query {
            for (stem, factor) in terms(text, question_words) {
                match weights.iter_mut().find(|(known, _)| *known == stem) {
                    Some((_, sum)) => *sum += weight * factor,
                    None => weights.push((stem, weight * factor)),
                }
            }
        }
        Self {
            stems: stems.collect(),
            texts,
            weights,
            questions: query.iter().map(|(text, _)| words(text)).collect(),
        }
    }

    /// BM25 of every turn for one term.
    fn matches(&self, term: &str, weight: f64, parameters: Parameters) -> Vec<f64> {
        let n = self.stems.len() as f64;
        let mean = self.stems.iter().map(Vec::len).sum::<usize>() as f64 / n;
        let contains = |stems: &&Vec<String>| stems.iter().any(|stem| stem == term);
        let df = self.stems.iter().filter(contains).count() as f64;
        let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
        let each = self.stems.iter().map(|stems| {
            let tf = stems.iter().filter(|stem| *stem == term).count() as f64;
            let length = 1.0 - parameters.b + parameters.b * stems.len() as f64 / mean;
            if tf == 0.0 {
                return 0.0;
            }
            weight * idf * tf * (parameters.k1 + 1.0) / (tf + parameters.k1 * length)
        });
        each.collect()
    }

    fn boost(&self, turn: &Turn, words_of_turn: &[String]) -> f64 {
        let asks_for = |phrases| {
            self.questions
                .iter()
                .any(|question| asks(question, phrases))
        };
        let mut factor = 1.0;
        if asks_for(english!("time_questions")) && mentions_time(words_of_turn) {
            factor *= 1.3;
        }
        if asks_for(english!("number_questions")) && mentions_number(words_of_turn) {
            factor *= 1.3;
        }
        let names: Vec<String> = words(&speaker(turn).unwrap_or_default());
        let is_term = |name: &String| self.weights.iter().any(|(term, _)| *term == stem(name));
        if names.iter().any(is_term) {
            factor *= 1.5;
        }
        factor
    }

    fn is_broad(&self) -> bool {
        let broad = list(english!("broad"));
        self.questions.iter().flatten().any(|word| {
            broad.iter().any(|broad| match broad.strip_suffix('*') {
                Some(prefix) => word.starts_with(prefix),
                None => word == broad,
            })
        })
    }
}

fn top(scores: &[f64]) -> f64 {
    scores.iter().copied().fold(0.0, f64::max)
}

fn normalized(scores: &[f64]) -> Vec<f64> {
    let top = top(scores);
    let divide = |score: &f64| if top > 0.0 { score / top } else { 0.0 };
    scores.iter().map(divide).collect()
}

/// The scores of all turns, which are in the order of the conversation.
pub(crate) fn scores(turns: &[Turn], query: &[(String, f64)], parameters: Parameters) -> Vec<f64> {
    let read = Read::new(turns, query, parameters.has_question_rules);
    let matches = |(term, weight): &(String, f64)| {
        let mut own = read.matches(term, *weight, parameters);
        let queries = own.iter_mut().zip(turns).filter(|(_, turn)| turn.is_query);
        queries.for_each(|(own, _)| *own = 0.0);
        own
    };
    let columns: Vec<Vec<f64>> = read.weights.iter().map(matches).collect();
    let mut wide = parameters.wide.unwrap_or((0.0, 0.0, 1));
    let mut boosts = vec![1.0; turns.len()];
    if parameters.has_question_rules {
        let each = turns.iter().zip(&read.texts);
        boosts = each.map(|(turn, words)| read.boost(turn, words)).collect();
        if read.is_broad() && wide.0 > 0.0 {
            wide.0 = 2.0;
        }
    }
    let near = parameters.near.unwrap_or((0.0, 0.0));
    combine(turns, &columns, (near, wide), &boosts, parameters.sessions)
}

/// The scores of a `NeighborScorer` over columns of matches.
pub(super) fn spread(turns: &[Turn], columns: &[Vec<f64>], parameters: Parameters) -> Vec<f64> {
    let (near, wide) = (parameters.near.unwrap(), parameters.wide.unwrap());
    let boosts = vec![1.0; turns.len()];
    combine(turns, columns, (near, wide), &boosts, parameters.sessions)
}

type Kernels = ((f64, f64), (f64, f64, i32));

fn combine(
    turns: &[Turn],
    columns: &[Vec<f64>],
    ((forward, backward), (weight, decay, exponent)): Kernels,
    boosts: &[f64],
    sessions: bool,
) -> Vec<f64> {
    let n = turns.len();
    // Turns of one session with turns of another between them are apart.
    let reach = |i: usize, j: usize| {
        (i.min(j)..=i.max(j)).all(|k| !sessions || turns[k].session == turns[i].session)
    };
    let power = |base: f64, i: usize, j: usize| base.powi(i32::try_from(i.abs_diff(j)).unwrap());
    let mut score = vec![0.0; n];
    for own in columns {
        for (i, sum) in score.iter_mut().enumerate() {
            let near = (0..n).filter(|&j| reach(i, j)).map(|j| {
                let decay = if j <= i { forward } else { backward };
                own[j] * power(decay, i, j)
            });
            *sum += near.fold(0.0, f64::max);
        }
    }
    let boosted = normalized(&score).into_iter().zip(boosts);
    let score: Vec<f64> = boosted.map(|(score, boost)| score * boost).collect();
    let raised: Vec<f64> = normalized(&score)
        .iter()
        .map(|score| score.powi(exponent))
        .collect();
    let sums: Vec<f64> = (0..n)
        .map(|i| {
            let around = (0..n).filter(|&j| reach(i, j));
            around.map(|j| raised[j] * power(decay, i, j)).sum()
        })
        .collect();
    let widened = score.iter().zip(normalized(&sums));
    let widened = widened.map(|(own, wide)| own + weight * wide);
    normalized(&widened.collect::<Vec<f64>>())
}
