//! Bars 36 to 38: the index of `RelevanceScorer`, a query over it, and its memory.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::black_box;
use std::sync::Arc;

use cupel::{ContextItem, ConversationScorer, Query, Scorer};
use rust_stemmers::{Algorithm, Stemmer};

use super::Session;
use crate::allocator::counted;
use crate::measure::{Duel, Eviction, cold_duel, duel};
use crate::table::{Figure, Row, Unit, at_most};

const TURNS: usize = 10_000;
const TURN: usize = 1_024;
const QUESTION: &str = "When does the command drop the oldest messages of a chat, and how does a policy keep the newest?";

/// Prose of this repository.
const TEXT: &str = concat!(
    include_str!("../../../docs/command.md"),
    include_str!("../../../docs/policies.md"),
    include_str!("../../../docs/agents.md"),
    include_str!("../../../docs/explain.md"),
    include_str!("../../../docs/performance.md"),
    include_str!("../../../ARCHITECTURE.md"),
);

pub(crate) fn rows(session: Session) -> Vec<Row> {
    // Each turn starts elsewhere in the text.
    let letters: Vec<char> = TEXT.chars().filter(char::is_ascii).collect();
    let turn = |number: usize| -> String {
        let start = number * 677 % (letters.len() - TURN);
        letters[start..start + TURN].iter().collect()
    };
    let texts: Vec<String> = (0..TURNS).map(turn).collect();
    let items = texts
        .iter()
        .map(|text| ContextItem::builder(&**text, 256).build());
    let Ok(items) = items.collect::<Result<Vec<ContextItem>, _>>() else {
        return vec![Row::new(36, "index").missed("an item is invalid")];
    };
    let mut rows = index(session, &texts, &items);
    rows.extend(query(session, &items));
    rows.push(memory(&items));
    rows
}

fn ask(scorer: &ConversationScorer, query: &str) -> Arc<dyn Scorer> {
    let with_query = scorer.with_query(&Query::from(query));
    with_query.unwrap_or_else(|| Arc::new(scorer.clone()))
}

/// Builds the index: the word of the query is in no item, so the query itself costs next to nothing.
fn build_index(items: &[ContextItem]) -> ConversationScorer {
    let scorer = ConversationScorer::without_query();
    black_box(ask(&scorer, "zyzzyva").score_all(items).is_ok());
    scorer
}

/// Reads the words of all texts and stems each distinct one once.
fn tokenize(texts: &[String]) -> usize {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut stems: HashMap<String, String> = HashMap::new();
    let mut letters = 0;
    for text in texts {
        let text = text.to_lowercase();
        for word in text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
        {
            if let Some(stem) = stems.get(word) {
                letters += stem.len();
                continue;
            }
            let stem = stemmer.stem(word).into_owned();
            letters += stem.len();
            stems.insert(word.to_owned(), stem);
        }
    }
    letters
}

fn hash(texts: &[String]) -> u64 {
    let hash = |text: &String| {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        hasher.finish()
    };
    texts.iter().map(hash).fold(0, u64::wrapping_add)
}

fn index(session: Session, texts: &[String], items: &[ContextItem]) -> Vec<Row> {
    let row = |state: &str| {
        let what =
            format!("word index of 10k turns of 1 KB / tokenizing and hashing them, {state}");
        Row::new(36, what).goal(at_most(3.0, 2.0))
    };
    let ours = || build_index(items);
    let reading = || (tokenize(texts), hash(texts));
    let hot = duel(session.plan(), ours, reading, |_, _| Ok(()));
    let mut eviction = Eviction::new();
    let cold = cold_duel(session.plan(), ours, reading, || eviction.evict());
    vec![ratio(row("hot"), hot), ratio(row("cold"), Ok(cold))]
}

fn query(session: Session, items: &[ContextItem]) -> Vec<Row> {
    let scorer = build_index(items);
    let row = |state: &str| {
        let what = format!("query over 10k indexed turns / sort of 10k scores, {state}");
        Row::new(37, what).goal(at_most(5.0, 3.0))
    };
    let ours = || ask(&scorer, QUESTION).score_all(items);
    let Ok(ranking) = ours() else {
        return vec![row("hot").missed("the query failed")];
    };
    let sort = || {
        let mut sorted = ranking.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        sorted
    };
    let hot = duel(session.plan(), ours, sort, |_, _| Ok(()));
    let mut eviction = Eviction::new();
    let cold = cold_duel(session.plan(), ours, sort, || eviction.evict());
    vec![ratio(row("hot"), hot), ratio(row("cold"), Ok(cold))]
}

/// Bytes that the scorer holds after the first query, over the bytes of the texts.
fn memory(items: &[ContextItem]) -> Row {
    let text: usize = items.iter().map(|item| item.content().len()).sum();
    let (scorer, usage) = counted(|| build_index(items));
    drop(scorer);
    let row = Row::new(38, "memory of the word index / bytes of the text").goal(at_most(1.0, 0.8));
    row.peer(Figure::of(text as f64, Unit::Bytes))
        .ours(Figure::of(usage.held as f64, Unit::Bytes))
        .measured(usage.held as f64 / text as f64, Unit::Times)
}

/// Returns the row with both times and the ratio of ours, the first, to the other.
fn ratio(row: Row, duel: Result<Duel, String>) -> Row {
    match duel {
        Ok(duel) => row
            .peer(duel.second.figure())
            .ours(duel.first.figure())
            .measured(duel.ratio(), Unit::Times),
        Err(difference) => row.missed(difference),
    }
}
