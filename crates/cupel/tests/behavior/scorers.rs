//! Scorers: batch against item by item, identity, the clock, and cost.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use cupel::{
    CompositeScorer, ContextItem, CupelError, DecayCurve, DecayScorer, EmbeddingScorer,
    FrequencyScorer, FusionMethod, FusionScorer, KindScorer, MetadataKeyScorer,
    MetadataTrustScorer, PriorityScorer, ProductScorer, Query, RecencyScorer, ReflexiveScorer,
    ScaledScorer, Scorer, SystemTimeProvider, TagComparison, TagScorer, TimeProvider,
};

use super::{
    Random, RandomRuns, Seen, at, budget, build, excluded, hinted, included, item, kind, policy,
    score_by,
};

fn tags(comparison: TagComparison) -> TagScorer {
    let weights = [("a", 0.1), ("b", 0.2), ("d", 0.3), ("", 0.7)];
    let weights = weights.map(|(tag, weight)| (tag.to_owned(), weight));
    TagScorer::from_weights(weights, comparison).unwrap()
}

fn decay(curve: Result<DecayCurve, CupelError>) -> DecayScorer {
    DecayScorer::with_curve(at(0), curve.unwrap()).unwrap()
}

/// The scorers that look at the item alone.
fn absolute() -> Vec<Box<dyn Scorer>> {
    let steps = [(1, 0.9), (24, 0.5), (72, 0.1)];
    let steps = steps.map(|(hours, score)| (TimeDelta::hours(hours), score));
    let huge = [(kind("document"), 1e308), (kind("own"), 0.25)];
    vec![
        Box::new(KindScorer::with_default_weights()),
        Box::new(KindScorer::from_weights(huge).unwrap()),
        Box::new(tags(TagComparison::Ordinal)),
        Box::new(tags(TagComparison::IgnoreAsciiCase)),
        Box::new(ReflexiveScorer),
        Box::new(MetadataTrustScorer::new(0.4).unwrap()),
        Box::new(MetadataKeyScorer::new("cupel:priority", "high", 1.5).unwrap()),
        Box::new(decay(DecayCurve::exponential(TimeDelta::minutes(37)))),
        Box::new(decay(DecayCurve::window(TimeDelta::hours(24)))),
        Box::new(decay(DecayCurve::step(steps.into()))),
    ]
}

/// The scorers that look at the others as well.
fn relative() -> Vec<Box<dyn Scorer>> {
    vec![
        Box::new(RecencyScorer),
        Box::new(PriorityScorer),
        Box::new(FrequencyScorer),
    ]
}

fn leaves() -> Vec<Box<dyn Scorer>> {
    absolute().into_iter().chain(relative()).collect()
}

/// Every built-in scorer, and every combinator over every one of them and over each other.
fn builtins() -> Vec<Box<dyn Scorer>> {
    let average = |scorers: Vec<Box<dyn Scorer>>| {
        let weights = (1_u8..).map(|weight| 0.1 * f64::from(weight));
        CompositeScorer::new(scorers.into_iter().zip(weights).collect()).unwrap()
    };
    let scaled = || {
        leaves()
            .into_iter()
            .map(|leaf| Box::new(ScaledScorer::new(leaf)) as _)
    };
    let mut scorers = leaves();
    scorers.extend(scaled());
    scorers.push(Box::new(average(leaves())));
    scorers.push(Box::new(ProductScorer::new(leaves()).unwrap()));
    // `FusionMethod::Shares` scores each position of a handle differently.
    for method in [FusionMethod::Sum, FusionMethod::ReciprocalRank] {
        let entries = leaves().into_iter().map(|leaf| (leaf, 0.3)).collect();
        scorers.push(Box::new(FusionScorer::new(method, entries).unwrap()));
    }
    scorers.push(Box::new(average(scaled().collect())));
    scorers.push(Box::new(ScaledScorer::new(average(scaled().collect()))));
    scorers.push(Box::new(ScaledScorer::new(ScaledScorer::new(
        RecencyScorer,
    ))));
    let product = ProductScorer::new(scaled().collect()).unwrap();
    scorers.push(Box::new(average(vec![
        Box::new(product),
        Box::new(FrequencyScorer),
    ])));
    let squared = ProductScorer::new(
        absolute()
            .into_iter()
            .skip(1)
            .take(1)
            .chain(absolute())
            .collect(),
    );
    scorers.push(Box::new(ScaledScorer::new(squared.unwrap())));
    scorers
}

/// Equal bits; the bits of a NaN have no meaning.
fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// Few items with equal fields here and there; now and then one handle stands in two places.
fn some_items(random: &mut Random) -> Vec<ContextItem> {
    let mut items: Vec<ContextItem> = Vec::new();
    for _ in 0..random.below(7) {
        let next = if items.len() > 1 && random.below(8) == 0 {
            random.pick(&items)
        } else {
            random.item("x")
        };
        items.push(next);
    }
    items
}

/// A batch and item by item agree, by element and by any handle to it.
fn check(scorer: &dyn Scorer, items: &[ContextItem]) {
    let batch = scorer.score_all(items).unwrap();
    assert_eq!(batch.len(), items.len());
    for (item, together) in items.iter().zip(batch) {
        let alone = scorer.score(item, items);
        assert!(
            same(alone, together),
            "{alone} alone, {together} together: {items:?}"
        );
        let by_handle = scorer.score(&item.clone(), items);
        assert!(
            same(by_handle, alone),
            "{by_handle} by handle, {alone} by element: {items:?}"
        );
    }
}

// proves: SCORER-1, SCORER-2, GEN-3, SCALED-2, SCALED-3, SCALED-7, COMP-1, COMP-8, FREQ-2, ITEM-19
#[test]
fn a_batch_equals_its_items_one_by_one_bit_for_bit() {
    let scorers = builtins();
    let mut random = Random::new(1);
    for _ in 0..1_500 {
        let items = some_items(&mut random);
        for scorer in &scorers {
            check(scorer, &items);
        }
    }
}

// proves: TAG-5, TAG-6, TAG-7, TAG-8, TAG-9
#[test]
fn tags_of_any_length_and_case_count_under_either_comparison() {
    let tags = [
        "",
        "go",
        "Go",
        "fifteen bytes !",
        "Fifteen bytes !",
        "sixteen bytes !!",
        "SIXTEEN bytes !!",
        "ä",
        "Ä",
    ];
    let tags = tags.map(str::to_owned);
    let configured = ["", "Go", "fifteen bytes !", "SIXTEEN bytes !!", "Ä"];
    let weights = configured
        .map(str::to_owned)
        .into_iter()
        .zip([1.0, 2.0, 4.0, 8.0, 16.0]);
    for (comparison, matched) in [
        (
            TagComparison::Ordinal,
            [1.0, 0.0, 2.0, 4.0, 0.0, 0.0, 8.0, 0.0, 16.0],
        ),
        (
            TagComparison::IgnoreAsciiCase,
            [1.0, 2.0, 2.0, 4.0, 4.0, 8.0, 8.0, 0.0, 16.0],
        ),
    ] {
        let scorer = TagScorer::from_weights(weights.clone(), comparison).unwrap();
        for (tag, matched) in tags.iter().zip(matched) {
            let item = build(
                ContextItem::builder("x", 1)
                    .tag(tag)
                    .tag("other")
                    .tag("another of many bytes"),
            );
            assert_eq!(
                scorer.score(&item, &[]),
                matched / 31.0,
                "{tag:?}, {comparison:?}"
            );
        }
    }
}

// proves: FREQ-1, FREQ-3, FREQ-4, FREQ-5, FREQ-6, FREQ-7
#[test]
fn frequency_counts_the_same_peers_for_few_tags_and_for_many() {
    let mut random = Random::new(2);
    for _ in 0..600 {
        let most = random.pick(&[2, 8, 14]);
        let items: Vec<_> = (0..random.below(12))
            .map(|_| {
                let count = random.below(most);
                let tags = (0..count).map(|_| {
                    let letters = random.pick(&["tag", "TAG", "tAg"]);
                    format!("{letters}{}", random.below(24))
                });
                let tags = tags.collect();
                build(ContextItem::builder("x", 1).tags(tags))
            })
            .collect();
        check(&FrequencyScorer, &items);
        check(&ScaledScorer::new(FrequencyScorer), &items);
    }
}

// proves: SCORER-2
#[test]
fn a_scorer_keeps_nothing_between_calls() {
    let scorers = builtins();
    let mut random = Random::new(3);
    let (first, other) = (some_items(&mut random), some_items(&mut random));
    for scorer in &scorers {
        let before = scorer.score_all(&first).unwrap();
        scorer.score_all(&other).unwrap();
        scorer.score_all(&[]).unwrap();
        let there = std::thread::scope(|scope| {
            let thread = scope.spawn(|| scorer.score_all(&first).unwrap());
            thread.join().unwrap()
        });
        let after = scorer.score_all(&first).unwrap();
        for ((before, after), there) in before.iter().zip(after).zip(there) {
            assert!(same(*before, after) && same(*before, there));
        }
    }
}

// proves: SCORER-4, DECAY-3, TRUST-1
#[test]
fn scorers_of_the_item_alone_ignore_the_list() {
    let mut random = Random::new(5);
    for _ in 0..200 {
        let items = some_items(&mut random);
        for (scorer, item) in absolute()
            .iter()
            .flat_map(|s| items.iter().map(move |i| (s, i)))
        {
            assert!(same(scorer.score(item, &[]), scorer.score(item, &items)));
        }
    }
}

// proves: SCALED-1, SCALED-4, R056
#[test]
fn a_scaled_score_without_information_is_one_half() {
    let items = [hinted("a", 1, 0.2), hinted("b", 1, 0.8)];
    let scorer = ScaledScorer::new(ReflexiveScorer);
    let twin = build(items[1].to_builder());
    assert_eq!(scorer.score(&items[1], &items), 1.0);
    assert_eq!(scorer.score(&twin, &items), 0.5, "a twin is another item");
    assert_eq!(scorer.score(&items[1], &[]), 0.5);
    assert_eq!(scorer.score(&items[1], &items[1..]), 0.5);
    assert_eq!(scorer.score_all(&[]), Ok(vec![]));
    for score in [f64::NAN, f64::INFINITY, 3.0] {
        let flat = ScaledScorer::new(score_by(move |_, _| score));
        assert_eq!(flat.score_all(&items), Ok(vec![0.5, 0.5]));
    }
}

// proves: R057
#[test]
fn an_item_outside_the_list_is_ranked_by_the_literal_formula() {
    let dated = |hours| {
        build(
            ContextItem::builder("x", 1)
                .timestamp(at(hours))
                .priority(hours),
        )
    };
    let list = [dated(1), dated(2), dated(2)];
    for scorer in [&RecencyScorer as &dyn Scorer, &PriorityScorer] {
        assert_eq!(scorer.score(&dated(3), &list), 1.5);
        assert_eq!(scorer.score(&dated(2), &list), 0.5);
        assert_eq!(scorer.score(&dated(0), &list), 0.0);
        assert_eq!(scorer.score(&dated(0), &list[..1]), 1.0);
        assert_eq!(scorer.score(&dated(0), &[]), 1.0);
    }
    let tagged = || build(ContextItem::builder("x", 1).tag("t"));
    let list = [tagged(), tagged()];
    assert_eq!(FrequencyScorer.score(&tagged(), &list), 2.0);
    assert_eq!(FrequencyScorer.score(&list[0].clone(), &list), 1.0);
    assert_eq!(FrequencyScorer.score(&tagged(), &list[..1]), 0.0);
    assert_eq!(FrequencyScorer.score(&tagged(), &[]), 0.0);
}

/// A clock that strikes another hour whenever it is read.
#[derive(Clone, Default)]
struct Ticking(Arc<AtomicUsize>);

impl TimeProvider for Ticking {
    fn now(&self) -> DateTime<Utc> {
        let reads = self.0.fetch_add(1, Ordering::SeqCst);
        at(i64::try_from(reads).unwrap())
    }
}

// proves: DECAY-2, DECAY-3, DECAY-16, R052
#[test]
fn a_batch_reads_the_injected_clock_once_and_an_item_once_each() {
    let clock = Ticking::default();
    let curve = DecayCurve::exponential(TimeDelta::hours(1)).unwrap();
    let scorer = DecayScorer::with_curve(clock.clone(), curve).unwrap();
    let dated = build(ContextItem::builder("x", 1).timestamp(at(0)));
    let items = [dated.clone(), dated.clone(), dated.clone()];
    assert_eq!(scorer.score_all(&items), Ok(vec![1.0; 3]));
    assert_eq!(scorer.score_all(&items), Ok(vec![0.5; 3]));
    assert_eq!(scorer.score(&dated, &items), 0.25);
    assert_eq!(scorer.score(&dated, &items), 0.125);
    assert_eq!(clock.0.load(Ordering::SeqCst), 4);
    policy()
        .scorer(scorer)
        .build()
        .unwrap()
        .run(&items, &budget(9))
        .unwrap();
    assert_eq!(clock.0.load(Ordering::SeqCst), 5);
}

// proves: DECAY-16, DECAY-17, DECAY-18
#[test]
fn a_clock_can_be_sent_and_shared_and_the_systems_own_has_no_size() {
    fn shared<T: Send + Sync + ?Sized>() {}
    shared::<Box<dyn TimeProvider>>();
    shared::<DecayScorer>();
    assert_eq!(size_of::<SystemTimeProvider>(), 0);
    let curve = DecayCurve::window(TimeDelta::hours(1)).unwrap();
    let scorer = DecayScorer::new(Box::new(SystemTimeProvider), curve, 0.5).unwrap();
    let now = SystemTimeProvider.now();
    let fresh = build(ContextItem::builder("x", 1).timestamp(now));
    let old = build(ContextItem::builder("x", 1).timestamp(now - TimeDelta::hours(2)));
    assert_eq!(scorer.score_all(&[fresh, old]), Ok(vec![1.0, 0.0]));
}

// proves: DECAY-2, DECAY-4, R053
#[test]
fn decay_survives_the_ends_of_time() {
    let (first, last) = (DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC);
    let curves = || {
        [
            DecayCurve::exponential(TimeDelta::nanoseconds(1)),
            DecayCurve::exponential(TimeDelta::MAX),
            DecayCurve::window(TimeDelta::MAX),
            DecayCurve::step(vec![(TimeDelta::nanoseconds(1), 0.75)]),
        ]
    };
    for (now, then, expected) in [
        (last, first, [0.0, 1.0, 1.0, 0.75]),
        (first, last, [1.0, 1.0, 1.0, 0.75]),
    ] {
        let dated = build(ContextItem::builder("x", 1).timestamp(then));
        let scores = curves().map(|curve| {
            let scorer = DecayScorer::with_curve(now, curve.unwrap()).unwrap();
            scorer.score(&dated, &[])
        });
        for (score, expected) in scores.into_iter().zip(expected) {
            assert!((score - expected).abs() < 0.01, "{score} for {expected}");
        }
    }
}

// proves: COMP-9, COMP-11, SCALED-8, R059
#[test]
fn a_child_is_handed_over_before_its_parent_exists_so_no_graph_can_close() {
    // The signatures are the proof: a child is an owned value, never absent, and neither
    // type has a way to change its children later.
    type Entries = Vec<(Box<dyn Scorer>, f64)>;
    let composite: fn(Entries) -> Result<CompositeScorer, CupelError> = CompositeScorer::new;
    let scaled: fn(Box<dyn Scorer>) -> ScaledScorer = ScaledScorer::new;
    let deep = (0..50).fold(Box::new(ReflexiveScorer) as Box<dyn Scorer>, |child, _| {
        Box::new(composite(vec![(Box::new(scaled(child)), 2.0)]).unwrap())
    });
    let items = [hinted("a", 1, 0.2), hinted("b", 1, 0.8)];
    assert_eq!(deep.score_all(&items), Ok(vec![0.0, 1.0]));
}

// proves: COMP-10, R059
#[test]
fn one_scorer_may_serve_several_parents() {
    let shared: Arc<dyn Scorer> = Arc::new(ReflexiveScorer);
    let scaled = ScaledScorer::new(shared.clone());
    let inner = CompositeScorer::builder().add(shared.clone(), 1.0).build();
    let diamond = CompositeScorer::builder()
        .add(shared.clone(), 1.0)
        .add(shared, 1.0)
        .add(scaled, 1.0)
        .add(inner.unwrap(), 1.0)
        .build()
        .unwrap();
    let items = [hinted("a", 1, 0.5), hinted("b", 1, 1.0)];
    assert_eq!(diamond.score_all(&items), Ok(vec![0.375, 1.0]));
    check(&diamond, &items);
}

// proves: COMP-1, COMP-13
#[test]
fn children_are_asked_in_the_order_of_their_entries() {
    let seen = Seen::nothing();
    let child = |name: &'static str| {
        let seen = seen.clone();
        score_by(move |_, _| {
            seen.push(name);
            0.5
        })
    };
    let composite = CompositeScorer::builder()
        .add(child("first"), 1.0)
        .add(child("second"), 9.0)
        .add(child("third"), 0.1)
        .build()
        .unwrap();
    let product = ProductScorer::new(vec![
        Box::new(child("first")),
        Box::new(child("second")),
        Box::new(child("third")),
    ]);
    let items = [item("a", 1)];
    for scorer in [&composite as &dyn Scorer, &product.unwrap()] {
        scorer.score(&items[0], &items);
        assert_eq!(seen.take(), ["first", "second", "third"]);
        scorer.score_all(&items).unwrap();
        assert_eq!(seen.take(), ["first", "second", "third"]);
    }
}

/// Scores like its inner scorer and counts the batches.
struct Counting<S>(S, Arc<AtomicUsize>);

impl<S: Scorer> Scorer for Counting<S> {
    fn score(&self, _item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
        unreachable!("a batch asks for a batch")
    }

    fn score_all(&self, items: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.score_all(items)
    }
}

// proves: SCALED-7, SCORE-5
#[test]
fn scaled_scorers_five_deep_ask_for_one_batch_of_many_items() {
    let mut random = Random::new(6);
    let items: Vec<_> = (0..20_000).map(|_| random.item("x")).collect();
    for leaf in leaves() {
        let batches = Arc::new(AtomicUsize::new(0));
        let counted: Box<dyn Scorer> = Box::new(Counting(leaf, batches.clone()));
        let nested = (0..5).fold(counted, |inner, _| Box::new(ScaledScorer::new(inner)));
        let scores = nested.score_all(&items).unwrap();
        assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)));
        assert_eq!(batches.load(Ordering::SeqCst), 1);
    }
}

/// Many items, each with as many of the tags as `count` says.
fn crowd(vocabulary: usize, mut count: impl FnMut(&mut Random) -> usize) -> Vec<ContextItem> {
    let mut random = Random::new(7);
    let crowd = (0..20_000).map(|_| {
        let count = count(&mut random);
        let tags = (0..count).map(|_| format!("tag {}", random.below(vocabulary)));
        let tags = tags.collect();
        build(ContextItem::builder("x", 1).tags(tags))
    });
    crowd.collect()
}

// proves: FREQ-6
#[test]
fn frequency_scores_many_items_with_few_tags_and_with_many() {
    for items in [crowd(50, |random| 1 + random.below(5)), crowd(50, |_| 30)] {
        let scores = FrequencyScorer.score_all(&items).unwrap();
        for index in [0, 1, 9_999, 19_999] {
            assert_eq!(scores[index], FrequencyScorer.score(&items[index], &items));
        }
    }
}

// proves: TRUST-3, TRUST-11, MKEY-10, MKEY-11, MKEY-12, TRUST-12, TRUST-13
#[test]
fn no_metadata_value_makes_a_scorer_fail_or_excludes_an_item() {
    let values = [
        "high",
        "normal",
        "low",
        "",
        " ",
        "urgent!",
        "NaN",
        "1e999",
        "-0",
        "\u{1F525}",
    ];
    let items: Vec<_> = (0..values.len())
        .map(|index| {
            let builder = ContextItem::builder(index.to_string(), 1)
                .meta("cupel:priority", values[index])
                .meta("cupel:trust", values[index])
                .meta("cupel:source-type", values[index])
                .meta("cupel:own", values[index]);
            build(builder)
        })
        .collect();
    let trust = MetadataTrustScorer::new(0.25).unwrap();
    let boost = MetadataKeyScorer::new("cupel:priority", "high", 1.5).unwrap();
    assert_eq!(boost.score(&items[0], &items), 1.5);
    for scorer in [Box::new(trust) as Box<dyn Scorer>, Box::new(boost)] {
        let scores = scorer.score_all(&items).unwrap();
        assert!(scores.iter().all(|score| score.is_finite()));
        let report = policy()
            .scorer(scorer)
            .build()
            .unwrap()
            .dry_run(&items, &budget(99));
        let report = report.unwrap();
        assert_eq!(included(&report).len(), values.len());
        assert!(excluded(&report).is_empty());
    }
}

// proves: TAG-1, R050, KIND-7
#[test]
fn weights_at_the_end_of_the_range_are_refused_as_a_sum_and_taken_one_by_one() {
    let tags = |weights: &[f64]| {
        let weights = weights.iter().enumerate();
        let weights: HashMap<_, _> = weights.map(|(tag, w)| (tag.to_string(), *w)).collect();
        TagScorer::new(weights)
            .map(|_| ())
            .map_err(|error| error.code())
    };
    assert_eq!(tags(&[f64::MAX]), Ok(()));
    assert_eq!(tags(&[f64::MAX, f64::MAX]), Err("ScorerConfig"));
    let composite = CompositeScorer::builder().add(ReflexiveScorer, f64::MAX);
    assert!(composite.build().is_ok());
    let composite = CompositeScorer::builder()
        .add(ReflexiveScorer, f64::MAX)
        .add(ReflexiveScorer, f64::MAX);
    assert_eq!(composite.build().unwrap_err().code(), "ScorerConfig");
    let none = KindScorer::new(HashMap::new()).unwrap();
    assert_eq!(none.score(&item("x", 1), &[]), 0.0);
}

#[test]
fn the_age_is_exact_where_the_clock_is_out_of_the_range_of_nanoseconds() {
    // 64-bit nanoseconds end in 2262: the clock is in 2286, the item in 2255.
    let (now, age) = (10_000_000_000, 1_000_000_000);
    let time = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
    let old = ContextItem::builder("old", 1).timestamp(time(now - age));
    let old = [old.build().unwrap()];
    for (window, expected) in [(age, 0.0), (age + 1, 1.0)] {
        let curve = DecayCurve::window(TimeDelta::seconds(window)).unwrap();
        let scorer = DecayScorer::with_curve(time(now), curve).unwrap();
        assert_eq!(scorer.score_all(&old).unwrap(), [expected]);
    }
}

#[test]
fn the_parts_of_a_sum_have_normalized_weights() {
    let scorers: Vec<(Box<dyn Scorer>, f64)> = vec![
        (Box::new(ReflexiveScorer), 3.0),
        (Box::new(PriorityScorer), 1.0),
    ];
    let scorer = FusionScorer::new(FusionMethod::Sum, scorers).unwrap();
    let items = [hinted("a", 1, 0.5), hinted("b", 1, 0.25)];
    let parts = scorer.explain_all(&items).unwrap();
    let weights: Vec<_> = parts[1].parts.iter().map(|part| part.weight).collect();
    assert_eq!(weights, [Some(0.75), Some(0.25)]);
    // Half of the largest hint, three quarters of the weight; no priority.
    assert_eq!(parts[1].score, 0.5 * 0.75);
    assert_eq!(parts[1].parts[0].contribution, Some(0.5 * 0.75));
}

#[test]
fn the_largest_score_of_a_sum_is_one_even_if_it_is_infinite() {
    let scores = |item: &ContextItem, _: &[ContextItem]| match item.content() {
        "all" => f64::INFINITY,
        _ => 1.0,
    };
    let scorers: Vec<(Box<dyn Scorer>, f64)> = vec![(Box::new(score_by(scores)), 1.0)];
    let scorer = FusionScorer::new(FusionMethod::Sum, scorers).unwrap();
    let items = [item("all", 1), item("one", 1)];
    assert_eq!(scorer.score_all(&items).unwrap(), [1.0, 0.0]);
}

#[test]
fn combined_scorers_pass_a_query_on() {
    struct Asks(Option<String>);

    impl Scorer for Asks {
        fn score(&self, item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
            let is_asked_for = self.0.as_deref() == Some(item.content());
            f64::from(u8::from(is_asked_for))
        }

        fn with_query(&self, query: &Query) -> Option<Arc<dyn Scorer>> {
            let needs_one = self.0.is_none();
            needs_one.then(|| Arc::new(Self(Some(query.text()))) as Arc<dyn Scorer>)
        }
    }

    let asks = || -> Box<dyn Scorer> { Box::new(Asks(None)) };
    let combined: [Box<dyn Scorer>; 4] = [
        Box::new(ProductScorer::new(vec![asks()]).unwrap()),
        Box::new(CompositeScorer::new(vec![(asks(), 1.0)]).unwrap()),
        Box::new(FusionScorer::new(FusionMethod::Sum, vec![(asks(), 1.0)]).unwrap()),
        Box::new(ProductScorer::new(vec![Box::new(ScaledScorer::new(Asks(None)))]).unwrap()),
    ];
    let items = [item("keys", 1), item("doors", 1)];
    for scorer in combined {
        let scorer = scorer.with_query(&Query::from("doors")).unwrap();
        assert_eq!(scorer.score_all(&items).unwrap(), [0.0, 1.0]);
        // It has a query now.
        assert!(scorer.with_query(&Query::from("keys")).is_none());
    }
}

#[test]
fn debug_output_names_the_scorer_and_its_weights() {
    let entries = || -> Vec<(Box<dyn Scorer>, f64)> { vec![(Box::new(RecencyScorer), 2.0)] };
    let builder = CompositeScorer::builder().add(RecencyScorer, 2.0);
    assert_eq!(
        format!("{builder:?}"),
        "CompositeScorerBuilder { weights: [2.0] }"
    );
    let fusion = FusionScorer::new(FusionMethod::Shares, entries()).unwrap();
    assert_eq!(
        format!("{fusion:?}"),
        "FusionScorer { method: Shares, weights: [2.0], .. }"
    );
    let product = ProductScorer::new(vec![Box::new(RecencyScorer)]).unwrap();
    assert_eq!(format!("{product:?}"), "ProductScorer { num_scorers: 1 }");
    let embedding = EmbeddingScorer::new([1.0]).unwrap();
    assert_eq!(format!("{embedding:?}"), "EmbeddingScorer");
}
