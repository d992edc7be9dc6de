//! Compares frequency scores with the specification's formula over all pairs of items.
//!
//! `CUPEL_CASES` sets the number of cases, which the regimes share.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use cupel::{ContextItem, FrequencyScorer, Scorer};
use cupel_conformance::testing::{Random, cases};

/// Random batches of one shape.
#[derive(Debug)]
struct Regime {
    items: RangeInclusive<usize>,
    /// How many tags an item has, repeats included.
    tags: RangeInclusive<usize>,
    /// How many tags there are to choose from.
    vocabulary: usize,
    /// How many different choices of tags there are at most, some much more frequent than others;
    /// if not said, every item chooses for itself.
    sets: Option<usize>,
}

impl Regime {
    fn batch(&self, random: &mut Random) -> Vec<Vec<String>> {
        let sets: Vec<Vec<usize>> = (0..self.sets.unwrap_or(0))
            .map(|_| self.set(random))
            .collect();
        let tags = |random: &mut Random| match sets.len() {
            0 => self.set(random),
            _ => {
                let rank = random.below(sets.len());
                sets[random.below(rank + 1)].clone()
            }
        };
        let count = within(random, &self.items);
        let mut item = || {
            let tags = tags(random).into_iter();
            tags.map(|tag| spelling(tag, random.below(3))).collect()
        };
        (0..count).map(|_| item()).collect()
    }

    fn set(&self, random: &mut Random) -> Vec<usize> {
        let count = within(random, &self.tags);
        (0..count).map(|_| random.below(self.vocabulary)).collect()
    }
}

/// One of three spellings of a tag; different numbers are different tags in every spelling. Short
/// and long tags, the empty one, and letters whose case counts because they are not ASCII.
fn spelling(tag: usize, variant: usize) -> String {
    let text = match (tag, tag % 5) {
        (0, _) => String::new(),
        (_, 0) => format!("t{tag}"),
        (_, 1) => format!("fifteen byte {tag}"),
        (_, 2) => format!("a tag of rather many bytes {tag}"),
        (_, 3) => format!("Äpfel {}", tag - 3),
        _ => format!("äpfel {}", tag - 4),
    };
    match variant {
        0 => text,
        1 => text.to_ascii_uppercase(),
        _ => text.replacen('e', "E", 1),
    }
}

/// FREQUENCY-SCORE of every item.
fn expected(batch: &[Vec<String>]) -> Vec<f64> {
    let mut numbers = BTreeMap::new();
    let mut number = |tag: &String| {
        let next = numbers.len();
        *numbers.entry(tag.to_ascii_lowercase()).or_insert(next)
    };
    let mut numbered = |tags: &Vec<String>| tags.iter().map(&mut number).collect();
    let batch: Vec<Vec<usize>> = batch.iter().map(&mut numbered).collect();
    let mut is_own = vec![false; numbers.len()];
    let mut score = |(this, tags): (usize, &Vec<usize>)| {
        if tags.is_empty() || batch.len() <= 1 {
            return 0.0;
        }
        for &tag in tags {
            is_own[tag] = true;
        }
        let others = batch.iter().enumerate().filter(|(other, _)| *other != this);
        let matches = others.filter(|(_, other)| other.iter().any(|&tag| is_own[tag]));
        let score = matches.count() as f64 / (batch.len() - 1) as f64;
        for &tag in tags {
            is_own[tag] = false;
        }
        score
    };
    batch.iter().enumerate().map(&mut score).collect()
}

fn items(batch: &[Vec<String>]) -> Vec<ContextItem> {
    let item = |tags: &Vec<String>| ContextItem::builder("x", 1).tags(tags.clone()).build();
    batch.iter().map(|tags| item(tags).unwrap()).collect()
}

/// Batch and single scores of one batch in so many cases.
fn check(one_in: u64, regime: &Regime) {
    for seed in 0..u64::from(cases(4_000)).div_ceil(one_in) {
        let batch = regime.batch(&mut Random::new(seed));
        let (items, expected) = (items(&batch), expected(&batch));
        let scores = FrequencyScorer.score_all(&items).unwrap();
        assert!(scores == expected, "seed {seed}, {regime:?}");
        for index in (0..items.len()).step_by(1 + items.len() / 20) {
            let score = FrequencyScorer.score(&items[index], &items);
            assert_eq!(score, expected[index], "seed {seed}, {regime:?}");
        }
    }
}

// proves: FREQ-1, FREQ-3, FREQ-4, FREQ-5, FREQ-6, FREQ-7
#[test]
fn small_batches_are_scored_exactly() {
    for tags in [0..=1, 1..=6, 7..=40, 0..=40] {
        for vocabulary in [1, 4, 50, 1_000] {
            for sets in [Some(1), Some(10), None] {
                let tags = tags.clone();
                let regime = Regime {
                    items: 0..=60,
                    tags,
                    vocabulary,
                    sets,
                };
                check(100, &regime);
            }
        }
    }
}

// proves: FREQ-4, FREQ-6
#[test]
fn large_batches_are_scored_exactly() {
    for (tags, vocabulary) in [
        (0..=1, 30),
        (1..=5, 50),
        (1..=6, 400),
        (1..=6, 20_000),
        (2..=12, 50),
        (7..=40, 90),
        (7..=40, 3_000),
    ] {
        for (items, sets) in [
            (700..=900, None),
            (2_000..=3_000, None),
            (2_000..=3_000, Some(30)),
            (2_000..=3_000, Some(3_000)),
        ] {
            let tags = tags.clone();
            let regime = Regime {
                items,
                tags,
                vocabulary,
                sets,
            };
            check(4_000, &regime);
        }
    }
}

fn within(random: &mut Random, range: &RangeInclusive<usize>) -> usize {
    range.start() + random.below(range.end() - range.start() + 1)
}
