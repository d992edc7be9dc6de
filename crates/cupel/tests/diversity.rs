//! [`DiversitySlice`] against naive maximal marginal relevance.

use std::collections::BTreeSet;

use cupel::*;
use cupel_conformance::testing::{Random, cases};

/// The Jaccard similarity of the words.
fn shingles(a: &ContextItem, b: &ContextItem) -> f64 {
    let words = |item: &ContextItem| {
        let words = item.content().split(' ').map(String::from);
        words.collect::<BTreeSet<String>>()
    };
    let (a, b) = (words(a), words(b));
    a.intersection(&b).count() as f64 / a.union(&b).count() as f64
}

fn vector(item: &ContextItem) -> Option<Vec<f64>> {
    let text = item.metadata().get("cupel:vector")?;
    Some(
        text.split(',')
            .map(|number| number.parse().unwrap())
            .collect(),
    )
}

fn vectors(a: &ContextItem, b: &ContextItem) -> f64 {
    let (Some(a), Some(b)) = (vector(a), vector(b)) else {
        return 0.0;
    };
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + a * b);
    let lengths = product(&a, &a).sqrt() * product(&b, &b).sqrt();
    if lengths == 0.0 {
        0.0
    } else {
        (product(&a, &b) / lengths).clamp(0.0, 1.0)
    }
}

/// Computes every gain again in every step.
fn naive(
    ranked: &[ScoredRef<'_>],
    target: i64,
    lambda: f64,
    similarity: fn(&ContextItem, &ContextItem) -> f64,
) -> Vec<usize> {
    let mut taken: Vec<usize> = Vec::new();
    let mut left = target;
    loop {
        let mut best: Option<(usize, f64)> = None;
        for rank in 0..ranked.len() {
            if target <= 0 || taken.contains(&rank) || ranked[rank].item.tokens() > left {
                continue;
            }
            let mut most = 0.0;
            for &other in &taken {
                most = f64::max(most, similarity(ranked[other].item, ranked[rank].item));
            }
            let gain = lambda * ranked[rank].score - (1.0 - lambda) * most;
            if best.is_none_or(|(_, greatest)| gain > greatest) {
                best = Some((rank, gain));
            }
        }
        let Some((best, _)) = best else { return taken };
        taken.push(best);
        left -= ranked[best].item.tokens();
    }
}

#[test]
fn choices_equal_naive_maximal_marginal_relevance() {
    let mut random = Random::new(31);
    for _ in 0..100 * cases(30) {
        let count = random.within(0..=16);
        let item = |_| {
            let length = random.within(1..=5);
            let words = (0..length).map(|_| random.pick(&["a", "b", "c", "d", "e", "f"]));
            let content = words.collect::<Vec<_>>().join(" ");
            let mut item = ContextItem::builder(content, random.within(0..=30));
            if random.below(5) > 0 {
                let numbers = (0..2).map(|_| random.within(-2..=3).to_string());
                item = item.meta("cupel:vector", numbers.collect::<Vec<_>>().join(","));
            }
            item.build().unwrap()
        };
        let items: Vec<ContextItem> = (0..count).map(item).collect();
        let mut scores: Vec<f64> = items
            .iter()
            .map(|_| random.within(0..=8) as f64 / 8.0)
            .collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        let ranked: Vec<ScoredRef<'_>> = items
            .iter()
            .zip(scores)
            .enumerate()
            .map(|(index, (item, score))| ScoredRef::new(item, score, index))
            .collect();
        for (similarity, compare) in [
            (Similarity::Shingles, shingles as fn(&_, &_) -> f64),
            (Similarity::Vectors, vectors),
        ] {
            let lambda = random.pick(&[0.0, 0.3, 0.5, 0.7, 1.0]);
            let target = random.within(0..=120);
            let slicer = DiversitySlice::new(lambda, similarity).unwrap();
            let slicer = slicer.with_shingle_size(1).unwrap();
            let budget = ContextBudget::with_target(target, target).unwrap();
            let selection = slicer.select(&ranked, &budget).unwrap();
            let expected = naive(&ranked, target, lambda, compare);
            assert_eq!(
                selection.kept(),
                expected,
                "{lambda} {similarity:?} {items:#?}"
            );
            for (rank, refusal) in selection.refusals() {
                let Refusal::Because(ExclusionReason::Redundant {
                    gain,
                    similar_to,
                    similarity,
                }) = refusal
                else {
                    panic!("{refusal:?}");
                };
                let own = &ranked[*rank];
                assert_eq!(*gain, lambda * own.score - (1.0 - lambda) * similarity);
                assert!(*similarity > 0.0);
                // On a tie, the one that was taken first.
                let is_as_similar =
                    |&&kept: &&usize| compare(ranked[kept].item, own.item) == *similarity;
                let nearest = expected.iter().find(is_as_similar);
                assert_eq!(
                    nearest.map(|&rank| ranked[rank].item.content()),
                    Some(&**similar_to)
                );
            }
        }
    }
}

#[test]
fn invalid_parameters_and_vectors_are_refused() {
    assert!(DiversitySlice::new(1.1, Similarity::Shingles).is_err());
    assert!(DiversitySlice::new(f64::NAN, Similarity::Shingles).is_err());
    let slicer = DiversitySlice::new(0.5, Similarity::Vectors).unwrap();
    assert!(slicer.with_shingle_size(0).is_err());
    let item = |vector: &str| {
        let item = ContextItem::builder("x", 1).meta("cupel:vector", vector);
        let item = item.build().unwrap();
        ScoredItem { item, score: 0.5 }
    };
    let budget = ContextBudget::with_target(9, 9).unwrap();
    let error = |vectors: [&str; 2]| slicer.slice(&vectors.map(item), &budget).unwrap_err();
    let lengths = error(["1,2", "1,2,3"]);
    assert_eq!(lengths.code(), "InvalidVector");
    let text = lengths.to_string();
    assert!(text.contains("\"x\" has 2 numbers"), "{text}");
    assert!(text.contains("has 3; give all items one length"), "{text}");
    let number = error(["1,x", "1,2"]);
    assert_eq!(number.code(), "InvalidVector");
    let text = number.to_string();
    assert!(text.contains("`x` in metadata"), "{text}");
}
