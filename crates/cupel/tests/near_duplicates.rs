//! [`NearDuplicateSlice`] against a naive implementation, and its invariants.

use std::collections::BTreeSet;

use chrono::DateTime;
use cupel::*;
use cupel_conformance::testing::{Random, cases};

fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::with_target(tokens, tokens).unwrap()
}

/// The distinct sequences of `size` words of a text.
fn shingles(text: &str, size: usize) -> BTreeSet<Vec<String>> {
    let text = text.to_lowercase();
    // An ideograph is a word of its own.
    let text = text.replace('漢', " 漢 ").replace('字', " 字 ");
    let words: Vec<String> = text
        .split(|char: char| !char.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(String::from)
        .collect();
    match words.len() {
        0 => BTreeSet::new(),
        few if few < size => BTreeSet::from([words]),
        _ => words.windows(size).map(<[String]>::to_vec).collect(),
    }
}

fn similarity(a: &BTreeSet<Vec<String>>, b: &BTreeSet<Vec<String>>) -> f64 {
    let (common, all) = (a.intersection(b).count(), a.union(b).count());
    if all == 0 {
        0.0
    } else {
        common as f64 / all as f64
    }
}

/// The naive algorithm: every pair is compared, for items of one unit each.
struct Naive<'a> {
    ranked: Vec<ScoredRef<'a>>,
    groups: Vec<String>,
    /// For every pair of ranks.
    similarities: Vec<Vec<f64>>,
    threshold: f64,
}

impl<'a> Naive<'a> {
    fn new(ranked: &[ScoredRef<'a>], threshold: f64, size: usize) -> Self {
        let shingles = ranked.iter().map(|it| shingles(it.item.content(), size));
        let shingles: Vec<_> = shingles.collect();
        let row = |a| shingles.iter().map(|b| similarity(a, b)).collect();
        let group = |(rank, scored): (usize, &ScoredRef<'_>)| {
            let group = scored.item.metadata().get("cupel:group");
            group.map_or_else(|| format!("alone {rank}"), |name| format!("group {name}"))
        };
        Self {
            ranked: ranked.to_vec(),
            groups: ranked.iter().enumerate().map(group).collect(),
            similarities: shingles.iter().map(row).collect(),
            threshold,
        }
    }

    fn call(&self, rank: usize) -> Option<&String> {
        self.ranked[rank].item.metadata().get("cupel:call")
    }

    fn group(&self, rank: usize) -> &str {
        &self.groups[rank]
    }

    fn is_mandatory(&self, rank: usize) -> bool {
        let metadata = self.ranked[rank].item.metadata();
        metadata.contains_key("cupel:mandatory") || metadata.contains_key("cupel:keep")
    }

    fn is_newer(&self, a: usize, b: usize) -> bool {
        let age = |rank: usize| {
            (
                self.ranked[rank].item.timestamp(),
                self.ranked[rank].position,
            )
        };
        age(a) > age(b)
    }

    /// The ranks that have a twin among the kept ones.
    fn with_twins(&self, kept: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut with_twins = BTreeSet::new();
        for rank in 0..self.ranked.len() {
            let is_outside = |other: &&usize| self.group(**other) != self.group(rank);
            let is_same_call =
                |other: usize| self.call(rank).is_some() && self.call(rank) == self.call(other);
            let newest = kept
                .iter()
                .copied()
                .filter(|&other| is_same_call(other))
                .reduce(|a, b| if self.is_newer(b, a) { b } else { a });
            let is_superseded =
                newest.is_some_and(|newest| is_outside(&&newest) && self.is_newer(newest, rank));
            let is_similar = kept.iter().filter(is_outside).any(|&other| {
                let is_in_group = (0..self.ranked.len())
                    .any(|third| third != other && self.group(third) == self.group(other));
                other < rank
                    && !is_same_call(other)
                    && (is_in_group || !with_twins.contains(&other))
                    && self.similarities[other][rank] >= self.threshold
            });
            if !self.is_mandatory(rank) && (is_superseded || is_similar) {
                with_twins.insert(rank);
            }
        }
        with_twins
    }

    fn select(&self, inner: &dyn Slicer, budget: &ContextBudget) -> (Vec<usize>, BTreeSet<usize>) {
        let all: BTreeSet<usize> = (0..self.ranked.len()).collect();
        let mut removed = BTreeSet::new();
        let mut released = BTreeSet::new();
        loop {
            let offered: Vec<usize> = all.difference(&removed).copied().collect();
            let list: Vec<ScoredRef<'_>> = offered.iter().map(|&rank| self.ranked[rank]).collect();
            let chosen = inner.select(&list, budget).unwrap();
            let kept: Vec<usize> = chosen.kept().iter().map(|&index| offered[index]).collect();
            let with_twins = self.with_twins(&kept.iter().copied().collect());
            let is_duplicate = |rank: &usize| {
                all.iter()
                    .filter(|&other| self.group(*other) == self.group(*rank))
                    .all(|other| with_twins.contains(other))
            };
            let duplicates: BTreeSet<usize> = all.iter().copied().filter(is_duplicate).collect();
            if !duplicates.is_subset(&removed) {
                removed.extend(duplicates);
                continue;
            }
            let lost: BTreeSet<usize> = removed
                .iter()
                .copied()
                .filter(|rank| !duplicates.contains(rank) && !released.contains(rank))
                .collect();
            if lost.is_empty() {
                let named = removed.intersection(&with_twins).copied().collect();
                return (kept, named);
            }
            removed.retain(|rank| !lost.contains(rank));
            released.extend(lost);
        }
    }
}

/// Texts of few words, so that many are similar.
fn text(random: &mut Random) -> String {
    let length = random.within(1..=8);
    let words = (0..length).map(|_| random.pick(&["a", "B", "c", "d", "e!", "f,", "漢字"]));
    words.collect::<Vec<_>>().join(" ")
}

fn candidates(random: &mut Random, has_groups: bool) -> Vec<ContextItem> {
    let count = random.within(0..=14);
    let item = |_| {
        let mut item = ContextItem::builder(text(random), random.within(0..=30))
            .future_relevance_hint(random.within(0..=9) as f64 / 9.0);
        if random.below(3) == 0 {
            item = item.meta(NearDuplicateSlice::CALL, random.pick(&["f(1)", "f(2)"]));
        }
        if random.below(3) == 0 {
            let at = DateTime::from_timestamp(random.within(0..=3), 0).unwrap();
            item = item.timestamp(at);
        }
        if has_groups && random.below(2) == 0 {
            item = item.meta(GroupSlice::KEY, random.pick(&["g", "h", "i"]));
        }
        if random.below(10) == 0 {
            item = item.meta(
                random.pick(&[LadderSlice::MANDATORY, LadderSlice::KEEP]),
                "",
            );
        }
        item.build().unwrap()
    };
    (0..count).map(item).collect()
}

#[test]
fn choices_equal_those_of_the_naive_implementation() {
    let mut random = Random::new(21);
    let inners: [fn() -> Box<dyn Slicer>; 4] = [
        || Box::new(RankSlice),
        || Box::new(GreedySlice),
        || Box::new(KnapsackSlice::new(1).unwrap()),
        || Box::new(GroupSlice::new(GreedySlice)),
    ];
    let mut dropped = 0;
    for round in 0..100 * cases(30) {
        let items = candidates(&mut random, round % 2 == 1);
        let mut ranking: Vec<usize> = (0..items.len()).collect();
        let hint = |index: &usize| items[*index].future_relevance_hint().unwrap();
        ranking.sort_by(|a, b| hint(b).total_cmp(&hint(a)));
        let scored = |&index: &usize| ScoredRef::new(&items[index], hint(&index), index);
        let ranked: Vec<ScoredRef<'_>> = ranking.iter().map(scored).collect();
        let threshold = random.pick(&[0.1, 0.34, 0.5, 0.75, 0.8, 1.0]);
        let size = random.pick(&[1, 2, 3]);
        let naive = Naive::new(&ranked, threshold, size);
        for inner in inners {
            let slicer = NearDuplicateSlice::new(inner());
            let slicer = slicer.with_similarity(threshold, size).unwrap();
            let budget = budget(random.within(0..=150));
            let selection = slicer.select(&ranked, &budget).unwrap();
            let (kept, named) = naive.select(&inner(), &budget);
            assert_eq!(selection.kept(), kept, "{threshold} {size} {items:#?}");
            let refused = selection.refusals().iter().filter_map(|(rank, refusal)| {
                let Refusal::Because(reason) = refusal else {
                    return None;
                };
                let (content, expected) = match reason {
                    ExclusionReason::NearDuplicate {
                        similar_to,
                        similarity: stated,
                    } => {
                        let own = ranked[*rank].item.content();
                        let expected =
                            similarity(&shingles(own, size), &shingles(similar_to, size));
                        assert!((stated - expected).abs() < 1e-12);
                        (similar_to, expected)
                    }
                    ExclusionReason::Superseded { superseded_by } => (superseded_by, 1.0),
                    _ => return None,
                };
                assert!(expected >= threshold);
                let is_twin = |&kept: &usize| ranked[kept].item.content() == content;
                assert!(kept.iter().any(is_twin), "the twin is kept");
                Some(*rank)
            });
            assert_eq!(refused.collect::<BTreeSet<_>>(), named);
            dropped += named.len();
        }
    }
    assert!(dropped > 100, "{dropped}");
}

#[test]
fn a_superseded_result_names_the_newest_one() {
    let result = |content: &str, seconds| {
        ContextItem::builder(content, 10)
            .meta(NearDuplicateSlice::CALL, "status({})")
            .timestamp(DateTime::from_timestamp(seconds, 0).unwrap())
            .build()
            .unwrap()
    };
    let items = [
        result("pending", 1),
        result("shipped", 3),
        result("packed", 2),
    ];
    let slicer = NearDuplicateSlice::new(RankSlice);
    let pipeline = Pipeline::new(RecencyScorer, slicer, ChronologicalPlacer);
    assert_eq!(pipeline.run_indices(&items, &budget(100)).unwrap(), [1]);
    let explanation = pipeline.explain(&items, &budget(100), 0).unwrap();
    assert_eq!(explanation.displaced_by, [1]);
    assert_eq!(explanation.extra_tokens, None);
    let text = explanation.to_string();
    assert!(
        text.contains("Superseded: same call as the newer \"shipped\""),
        "{text}"
    );
}

#[test]
fn groups_are_dropped_as_a_whole_or_not_at_all() {
    let item = |content: &str, hint, group: &str| {
        ContextItem::builder(content, 10)
            .future_relevance_hint(hint)
            .meta(GroupSlice::KEY, group)
            .build()
            .unwrap()
    };
    let same = "one two three four five";
    let items = [
        item(same, 0.9, "a"),
        item("call x", 0.9, "a"),
        item(&same.to_uppercase(), 0.5, "b"),
        item("call y", 0.5, "b"),
        item(&format!("{same}!"), 0.4, "c"),
        item("Call x", 0.4, "c"),
    ];
    let slicer = NearDuplicateSlice::new(GroupSlice::new(RankSlice));
    let pipeline = Pipeline::new(ReflexiveScorer, slicer, ChronologicalPlacer);
    let window = pipeline.run_indices(&items, &budget(100)).unwrap();
    assert_eq!(
        window.iter().copied().collect::<BTreeSet<_>>(),
        BTreeSet::from([0, 1, 2, 3])
    );
}

#[test]
fn all_near_duplicates_among_many_items_are_found() {
    // 3,000 texts of 40 words, each with a copy in which one word differs.
    let mut random = Random::new(5);
    let mut items = Vec::new();
    for at in 0..3_000 {
        let words: Vec<String> = (0..40).map(|_| random.below(5_000).to_string()).collect();
        let mut copy = words.clone();
        copy[39] = "changed".to_owned();
        for (words, hint) in [(words, 0.9), (copy, 0.1)] {
            let item = ContextItem::builder(format!("{at} {}", words.join(" ")), 40);
            items.push(item.future_relevance_hint(hint).build().unwrap());
        }
    }
    let slicer = NearDuplicateSlice::new(RankSlice);
    let pipeline = Pipeline::new(ReflexiveScorer, slicer, ChronologicalPlacer);
    let window = pipeline.run_indices(&items, &budget(1_000_000)).unwrap();
    assert_eq!(window.len(), 3_000);
    assert!(window.iter().all(|index| index % 2 == 0));
}

#[test]
fn a_threshold_out_of_range_is_refused() {
    for (threshold, size) in [(0.0, 3), (1.1, 3), (f64::NAN, 3), (0.5, 0)] {
        let slicer = NearDuplicateSlice::new(RankSlice).with_similarity(threshold, size);
        assert!(matches!(slicer, Err(CupelError::SlicerConfig(_))));
    }
}
