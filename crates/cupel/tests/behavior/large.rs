//! Long lists, which are sorted, ranked and filled by other algorithms than short ones, compared with
//! the literal rule.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use cupel::{
    ChronologicalPlacer, CompositeScorer, ContextItem, DecayCurve, DecayScorer, FrequencyScorer,
    FusionMethod, FusionScorer, GreedySlice, KindScorer, MetadataKeyScorer, MetadataTrustScorer,
    PipelineStage, Placer, Policy, PriorityScorer, ProductScorer, RecencyScorer, ReflexiveScorer,
    ScaledScorer, Scorer, TagScorer, TimeProvider, UShapedPlacer,
};

use super::{Random, RandomRuns, at, budget, build};

const LENGTHS: [usize; 5] = [255, 256, 257, 1_000, 6_000];

/// Scores by position.
struct Given(Vec<f64>);

impl Scorer for Given {
    fn score(&self, _: &ContextItem, _: &[ContextItem]) -> f64 {
        unreachable!("a run scores all items at once")
    }

    fn score_all(&self, items: &[ContextItem]) -> Result<Vec<f64>, cupel::CupelError> {
        assert_eq!(items.len(), self.0.len());
        Ok(self.0.clone())
    }
}

/// Score and tokens of one item.
type Draw = fn(&mut Random) -> (f64, i64);

/// Ties of every kind, numbers of every size.
const DRAWS: [(&str, Draw); 8] = [
    ("five levels", |random| {
        (below(random, 5) as f64 / 5.0, 1 + below(random, 90))
    }),
    ("one level", |random| (0.5, 20 + below(random, 1_480))),
    ("score as tokens", |random| {
        let tokens = 1 + below(random, 300);
        (tokens as f64, tokens)
    }),
    ("many free", |random| {
        (below(random, 1_000) as f64, below(random, 4))
    }),
    ("below zero", |random| {
        (below(random, 2_000) as f64 - 1_000.0, 1 + below(random, 50))
    }),
    ("no numbers", |random| {
        let scores = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            -0.0,
            0.0,
            5e-324,
            1.0,
        ];
        (scores[random.below(7)], below(random, 40))
    }),
    ("huge tokens", |random| {
        let tokens = [1, 77, 4_294_967_294, 4_294_967_295, 4_294_967_296, i64::MAX];
        (below(random, 9) as f64, tokens[random.below(6)])
    }),
    ("all apart", |random| {
        (
            (wide(random) >> (62 - 40)) as f64,
            20 + below(random, 1_480),
        )
    }),
];

fn below(random: &mut Random, bound: usize) -> i64 {
    i64::try_from(random.below(bound)).expect("31 bits")
}

/// A number of 62 bits.
fn wide(random: &mut Random) -> i64 {
    below(random, 1 << 31) << 31 | below(random, 1 << 31)
}

/// Best first, ties in order.
fn ranking(scores: &[f64]) -> Vec<usize> {
    let mut ranking: Vec<usize> = (0..scores.len()).collect();
    ranking.sort_by(|&a, &b| best_first(scores[a], scores[b]));
    ranking
}

fn best_first(a: f64, b: f64) -> std::cmp::Ordering {
    let order = b.partial_cmp(&a);
    order.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The specification's greedy fill, step by step; the kept positions by rank.
fn filled(draws: &[(f64, i64)], target: i64) -> Vec<usize> {
    let ranking = ranking(&draws.iter().map(|draw| draw.0).collect::<Vec<_>>());
    let density = |position: usize| match draws[position] {
        (_, 0) => f64::MAX,
        (score, tokens) => score / tokens as f64,
    };
    let mut visits: Vec<usize> = (0..ranking.len()).collect();
    visits.sort_by(|&a, &b| best_first(density(ranking[a]), density(ranking[b])));
    let mut left = target;
    let fits = |&rank: &usize| {
        let tokens = draws[ranking[rank]].1;
        let fits = tokens <= left;
        left -= if fits { tokens } else { 0 };
        fits
    };
    let mut kept: Vec<usize> = visits.into_iter().filter(fits).collect();
    kept.sort_unstable();
    kept.into_iter().map(|rank| ranking[rank]).collect()
}

fn items(draws: &[(f64, i64)]) -> Vec<ContextItem> {
    let items = draws.iter().enumerate();
    let item = |(position, &(_, tokens))| ContextItem::builder(format!("{position}"), tokens);
    items.map(|numbered| build(item(numbered))).collect()
}

fn numbers<'a>(items: impl Iterator<Item = &'a ContextItem>) -> Vec<usize> {
    items.map(|item| item.content().parse().unwrap()).collect()
}

// proves: GREEDY-3, GREEDY-5
#[test]
fn a_long_list_is_filled_as_the_literal_rule_fills_it_heard_or_not() {
    let mut random = Random::new(7);
    for length in LENGTHS {
        for (name, draw) in DRAWS {
            let draws: Vec<_> = (0..length).map(|_| draw(&mut random)).collect();
            let items = items(&draws);
            let scores = draws.iter().map(|draw| draw.0).collect();
            let policy = Policy::new(Given(scores), GreedySlice, ChronologicalPlacer);
            for target in [1, 40, 2_000, 30_000, 5_000_000_000, i64::MAX] {
                let expected = filled(&draws, target);
                let window = policy.run(&items, &budget(target)).unwrap();
                assert_eq!(
                    numbers(window.iter()),
                    expected,
                    "{name}, {length}, {target}"
                );
                let report = policy.dry_run(&items, &budget(target)).unwrap();
                let included = report.included.iter().map(|included| &included.item);
                assert_eq!(numbers(included), expected, "{name}, {length}, {target}");
            }
        }
    }
}

// proves: REPORT-4, REPORT-5, TRACE-9, R103
#[test]
fn a_long_report_is_in_the_order_of_score_stage_and_list() {
    let mut random = Random::new(8);
    let count = 2_000;
    let draws: Vec<_> = (0..count)
        .map(|_| (below(&mut random, 9) as f64, below(&mut random, 60)))
        .collect();
    let scores: Vec<f64> = draws.iter().map(|draw| draw.0).collect();
    // Every third text comes again, and one item of 50 has a negative token count.
    let invalid = |position: usize| position % 50 == 49;
    let text = |position: usize| format!("{}", position - usize::from(position % 3 == 2));
    let items = (0..count).map(|position| {
        let tokens = if invalid(position) {
            -1
        } else {
            draws[position].1
        };
        let builder = ContextItem::builder(text(position), tokens);
        build(builder.original_tokens(i64::try_from(position).unwrap()))
    });
    let items: Vec<ContextItem> = items.collect();
    let valid = (0..count).filter(|&position| !invalid(position));
    let given = Given(valid.map(|position| scores[position]).collect());
    let policy = Policy::new(given, GreedySlice, ChronologicalPlacer);
    let report = policy.dry_run(&items, &budget(9_000)).unwrap();
    assert_eq!(report.included.len() + report.excluded.len(), count);

    let entries = report.excluded.iter().map(|excluded| {
        let position = excluded.item.original_tokens().unwrap();
        let position = usize::try_from(position).unwrap();
        let stage = match excluded.reason.name() {
            "NegativeTokens" => 0,
            "Deduplicated" => 1,
            "BudgetExceeded" => 2,
            other => panic!("{other}"),
        };
        (excluded.score, stage, position)
    });
    let entries: Vec<_> = entries.collect();
    let mut sorted = entries.clone();
    sorted.sort_by(|a, b| best_first(a.0, b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    assert_eq!(entries, sorted);
    for stage in 0..3 {
        assert!(
            entries.iter().any(|entry| entry.1 == stage),
            "stage {stage}"
        );
    }

    let messages = |stage| {
        let events = report
            .events
            .iter()
            .filter(move |event| event.stage == stage);
        events
            .filter_map(|event| event.message.clone())
            .collect::<Vec<_>>()
    };
    let sliced = entries.iter().filter(|entry| entry.1 == 2);
    let left = 9_000 - report.included.iter().map(|i| i.item.tokens()).sum::<i64>();
    let expected = sliced.map(|entry| {
        let tokens = items[entry.2].tokens();
        format!("BudgetExceeded: {tokens} tokens requested, {left} available")
    });
    assert_eq!(messages(PipelineStage::Slice), expected.collect::<Vec<_>>());
    let excluded =
        messages(PipelineStage::Classify).len() + messages(PipelineStage::Deduplicate).len();
    assert_eq!(
        excluded + messages(PipelineStage::Slice).len(),
        entries.len()
    );
}

// proves: RECENCY-5, PRIORITY-5
#[test]
fn ranks_of_a_batch_equal_those_of_single_items_for_any_keys() {
    type Draw<T> = fn(&mut Random) -> T;
    let priorities: [(&str, Draw<i64>); 5] = [
        ("few", |random| below(random, 100)),
        ("around zero", |random| below(random, 1_000) - 500),
        ("wide", |random| wide(random) >> 2),
        ("far apart", |random| {
            [i64::MIN, -1, 0, 1, i64::MAX - 2][random.below(5)]
        }),
        ("largest", |random| i64::MAX - below(random, 3)),
    ];
    let times: [(&str, Draw<TimeDelta>); 5] = [
        ("seconds", |random| {
            TimeDelta::seconds(below(random, 100_000))
        }),
        ("milliseconds", |random| {
            TimeDelta::milliseconds(wide(random) >> (62 - 40))
        }),
        ("microseconds", |random| {
            TimeDelta::microseconds(wide(random) >> (62 - 50))
        }),
        ("nanoseconds", |random| {
            TimeDelta::nanoseconds(wide(random) >> 2)
        }),
        ("one instant", |_| TimeDelta::zero()),
    ];
    let mut random = Random::new(9);
    for length in [0, 1, 2, 700] {
        for ((priority_name, priority), (time_name, time)) in priorities.into_iter().zip(times) {
            let items = (0..length).map(|_| {
                let mut builder = ContextItem::builder("x", 1);
                if random.below(10) > 1 {
                    builder = builder.priority(priority(&mut random));
                }
                if random.below(10) > 0 {
                    builder = builder.timestamp(at(0) + time(&mut random));
                }
                build(builder)
            });
            let items: Vec<ContextItem> = items.collect();
            let scorers: [(&str, &dyn Scorer); 2] = [
                (priority_name, &PriorityScorer),
                (time_name, &RecencyScorer),
            ];
            for (name, scorer) in scorers {
                let one_by_one = items.iter().map(|item| scorer.score(item, &items));
                let one_by_one: Vec<f64> = one_by_one.collect();
                assert_eq!(
                    scorer.score_all(&items).unwrap(),
                    one_by_one,
                    "{name}, {length}"
                );
            }
        }
    }
}

// proves: CHRONO-3, USHAPE-1
#[test]
fn a_long_window_is_placed_as_the_literal_rule_places_it() {
    let mut random = Random::new(10);
    let times = [
        DateTime::<Utc>::MIN_UTC,
        at(0),
        at(0) + TimeDelta::nanoseconds(1),
        at(0) + TimeDelta::seconds(1),
        DateTime::<Utc>::MAX_UTC,
    ];
    let items = (0..3_000).map(|position| {
        let mut builder = ContextItem::builder(format!("{position}"), 1);
        if let Some(time) = times.get(random.below(6)) {
            builder = builder.timestamp(*time);
        }
        let score = [0.0, -0.0, 0.5, f64::NAN][random.below(4)];
        cupel::ScoredItem {
            item: build(builder),
            score,
        }
    });
    let items: Vec<cupel::ScoredItem> = items.collect();

    let mut in_time: Vec<usize> = (0..items.len()).collect();
    in_time.sort_by_key(|&position| {
        let time = items[position].item.timestamp();
        (time.is_none(), time)
    });
    assert_eq!(numbers(ChronologicalPlacer.place(&items).iter()), in_time);

    let ranking = ranking(&items.iter().map(|scored| scored.score).collect::<Vec<_>>());
    let mut ends = vec![0; items.len()];
    let (mut left, mut right) = (0, items.len());
    for (rank, position) in ranking.into_iter().enumerate() {
        if rank % 2 == 0 {
            ends[left] = position;
            left += 1;
        } else {
            right -= 1;
            ends[right] = position;
        }
    }
    assert_eq!(numbers(UShapedPlacer.place(&items).iter()), ends);
}

/// Scores by what all items have together.
struct Together;

impl Scorer for Together {
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
        let all: i64 = all_items.iter().map(ContextItem::tokens).sum();
        item.tokens() as f64 / all as f64
    }
}

/// A clock that stands still.
struct Noon;

impl TimeProvider for Noon {
    fn now(&self) -> DateTime<Utc> {
        at(0)
    }
}

// proves: SCORE-2
#[test]
fn pinned_and_invalid_items_have_no_say_in_any_score() {
    let scorers = || -> Vec<Box<dyn Scorer>> {
        let tags = HashMap::from([("a".to_owned(), 1.0), ("c".to_owned(), 0.5)]);
        let curve = DecayCurve::exponential(TimeDelta::hours(5)).unwrap();
        vec![
            Box::new(RecencyScorer),
            Box::new(PriorityScorer),
            Box::new(KindScorer::with_default_weights()),
            Box::new(TagScorer::new(tags).unwrap()),
            Box::new(FrequencyScorer),
            Box::new(ReflexiveScorer),
            Box::new(MetadataTrustScorer::new(0.3).unwrap()),
            Box::new(MetadataKeyScorer::new("cupel:priority", "high", 2.0).unwrap()),
            Box::new(DecayScorer::new(Box::new(Noon), curve, 0.1).unwrap()),
            Box::new(Together),
        ]
    };
    let weighted = |scorer| (scorer, 1.5);
    let mut all = scorers();
    let composite = CompositeScorer::new(scorers().into_iter().map(weighted).collect());
    all.push(Box::new(composite.unwrap()));
    all.push(Box::new(ProductScorer::new(scorers()).unwrap()));
    for method in [
        FusionMethod::Sum,
        FusionMethod::ReciprocalRank,
        FusionMethod::Shares,
    ] {
        let entries = scorers().into_iter().map(weighted).collect();
        all.push(Box::new(FusionScorer::new(method, entries).unwrap()));
    }
    all.extend(scorers().into_iter().map(|scorer| -> Box<dyn Scorer> {
        Box::new(ScaledScorer::new(ScaledScorer::new(scorer)))
    }));
    let all: Vec<Arc<dyn Scorer>> = all.into_iter().map(Arc::from).collect();

    let mut random = Random::new(11);
    for length in [1, 2, 3, 40, 300] {
        let items = (0..length).map(|position: usize| {
            let builder = random.item(&position.to_string()).to_builder();
            match random.below(9) {
                0 => build(builder.pinned(true)),
                1 => build(ContextItem::builder(position.to_string(), -1)),
                _ => build(builder),
            }
        });
        let items: Vec<ContextItem> = items.collect();
        let is_scored = |item: &&ContextItem| !item.pinned() && item.tokens() >= 0;
        let scored: Vec<ContextItem> = items.iter().filter(is_scored).cloned().collect();
        for (number, scorer) in all.iter().enumerate() {
            let policy = Policy::new(Arc::clone(scorer), GreedySlice, ChronologicalPlacer);
            let report = policy.dry_run(&items, &budget(1_000_000)).unwrap();
            let expected = scorer.score_all(&scored).unwrap();
            let expected = scored.iter().map(ContextItem::content).zip(expected);
            let expected: HashMap<&str, f64> = expected.collect();
            let mut found = 0;
            for included in report.included.iter().filter(|i| !i.item.pinned()) {
                let expected = expected[included.item.content()];
                assert_eq!(
                    included.score.to_bits(),
                    expected.to_bits(),
                    "scorer {number}"
                );
                found += 1;
            }
            assert_eq!(found, scored.len());
        }
    }
}
