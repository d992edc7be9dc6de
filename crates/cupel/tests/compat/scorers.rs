//! `cupel::scorer`: constructors, refusals and results.

use std::collections::HashMap;

use chrono::{DateTime, Duration, TimeZone, Utc};
use cupel::{
    CompositeScorer, ContextItem, ContextItemBuilder, ContextKind, CupelError, DecayCurve,
    DecayScorer, FrequencyScorer, KindScorer, MetadataKeyScorer, MetadataTrustScorer,
    PriorityScorer, RecencyScorer, ReflexiveScorer, ScaledScorer, Scorer, SystemTimeProvider,
    TagScorer, TimeProvider,
};

use super::{check_close, hinted, item, kind, of_kind};

type Construction<T> = Result<T, CupelError>;
type Weighted = Vec<(Box<dyn Scorer>, f64)>;
type Clock = Box<dyn TimeProvider + Send + Sync>;

#[test]
fn scorer_constructors_have_their_signatures() {
    let _: fn() -> KindScorer = KindScorer::with_default_weights;
    let _: fn(HashMap<ContextKind, f64>) -> Construction<KindScorer> = KindScorer::new;
    let _: fn(HashMap<String, f64>) -> Construction<TagScorer> = TagScorer::new;
    let _: fn(f64) -> Construction<MetadataTrustScorer> = MetadataTrustScorer::new;
    let _: fn(String, &'static str, f64) -> Construction<MetadataKeyScorer> =
        MetadataKeyScorer::new;
    let _: fn(Weighted) -> Construction<CompositeScorer> = CompositeScorer::new;
    let _: fn(Box<dyn Scorer>) -> ScaledScorer = ScaledScorer::new;
    let _: fn(Duration) -> Construction<DecayCurve> = DecayCurve::exponential;
    let _: fn(Duration) -> Construction<DecayCurve> = DecayCurve::window;
    let _: fn(Vec<(Duration, f64)>) -> Construction<DecayCurve> = DecayCurve::step;
    let _: fn(Clock, DecayCurve, f64) -> Construction<DecayScorer> = DecayScorer::new;
    let _: fn(&SystemTimeProvider) -> DateTime<Utc> = TimeProvider::now;
}

#[test]
fn every_scorer_scores_an_item_among_all() {
    let _: fn(&RecencyScorer, &ContextItem, &[ContextItem]) -> f64 = Scorer::score;
    let _: fn(&PriorityScorer, &ContextItem, &[ContextItem]) -> f64 = Scorer::score;
    let _: fn(&FrequencyScorer, &ContextItem, &[ContextItem]) -> f64 = Scorer::score;
    let _: fn(&ReflexiveScorer, &ContextItem, &[ContextItem]) -> f64 = Scorer::score;
    let _: fn(&KindScorer, &ContextItem, &[ContextItem]) -> f64 = Scorer::score;
    let _: fn(&TagScorer, &ContextItem, &[ContextItem]) -> f64 = Scorer::score;
    let _: fn(&MetadataTrustScorer, &ContextItem, &[ContextItem]) -> f64 = Scorer::score;
    let _: fn(&MetadataKeyScorer, &ContextItem, &[ContextItem]) -> f64 = Scorer::score;
    let _: fn(&CompositeScorer, &ContextItem, &[ContextItem]) -> f64 = Scorer::score;
    let _: fn(&ScaledScorer, &ContextItem, &[ContextItem]) -> f64 = Scorer::score;
    let _: fn(&DecayScorer, &ContextItem, &[ContextItem]) -> f64 = Scorer::score;
}

/// The constructor refuses with `ScorerConfig` and exactly this text.
#[track_caller]
fn check_refused<T>(result: Construction<T>, text: &str) {
    match result {
        Err(CupelError::ScorerConfig(payload)) => assert_eq!(payload, text),
        Err(other) => panic!("{other:?} instead of {text}"),
        Ok(_) => panic!("accepted instead of {text}"),
    }
}

// proves: COMP-4, COMP-6, COMP-7
#[test]
fn composite_weights_are_positive_and_finite() {
    let of = |weight| {
        CompositeScorer::new(vec![
            (Box::new(RecencyScorer) as Box<dyn Scorer>, 1.0),
            (Box::new(PriorityScorer), weight),
        ])
    };
    check_refused(
        CompositeScorer::new(Vec::new()),
        "at least one scorer entry is required",
    );
    for weight in [0.0, -0.0, -1.0, f64::NEG_INFINITY] {
        check_refused(of(weight), "weight must be positive");
    }
    for weight in [f64::NAN, f64::INFINITY] {
        check_refused(of(weight), "weight must be finite");
    }
    assert!(of(f64::MIN_POSITIVE).is_ok());
}

// Weights that are finite one by one and infinite together are refused (R050).
//
// proves: R050
#[test]
fn sums_of_weights_are_finite() {
    let entries: Weighted = vec![
        (Box::new(RecencyScorer), f64::MAX),
        (Box::new(PriorityScorer), f64::MAX),
    ];
    assert!(matches!(
        CompositeScorer::new(entries),
        Err(CupelError::ScorerConfig(_))
    ));
    let tags = ["a", "b"].map(|tag| (tag.to_string(), f64::MAX));
    assert!(matches!(
        TagScorer::new(HashMap::from(tags)),
        Err(CupelError::ScorerConfig(_))
    ));
}

// proves: KIND-4, KIND-5, KIND-6, KIND-7
#[test]
fn kind_weights_are_finite_and_not_negative() {
    let of = |weight| KindScorer::new(HashMap::from([(kind("Notes"), weight)]));
    for weight in [-0.5, f64::NEG_INFINITY] {
        check_refused(of(weight), "weight for kind 'Notes' must be non-negative");
    }
    for weight in [f64::NAN, f64::INFINITY] {
        check_refused(of(weight), "weight for kind 'Notes' must be finite");
    }
    assert!(of(0.0).is_ok());
    assert!(of(17.0).is_ok());
    assert!(KindScorer::new(HashMap::new()).is_ok());
}

// proves: TAG-2, TAG-3
#[test]
fn tag_weights_are_finite_and_not_negative() {
    let of = |weight| TagScorer::new(HashMap::from([("urgent".to_string(), weight)]));
    for weight in [-0.5, f64::NEG_INFINITY] {
        check_refused(of(weight), "tag weight for 'urgent' must be non-negative");
    }
    for weight in [f64::NAN, f64::INFINITY] {
        check_refused(of(weight), "tag weight for 'urgent' must be finite");
    }
    assert!(of(0.0).is_ok());
    assert!(TagScorer::new(HashMap::new()).is_ok());
}

// proves: TRUST-9, TRUST-10, R018
#[test]
fn the_default_trust_is_given_by_the_caller_and_lies_between_zero_and_one() {
    for score in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        check_refused(
            MetadataTrustScorer::new(score),
            "defaultScore must be in [0.0, 1.0]",
        );
    }
    for score in [0.0, 0.5, 1.0] {
        let scorer = MetadataTrustScorer::new(score).unwrap();
        assert_eq!(scorer.score(&item("text", 1), &[]), score);
    }
}

// proves: MKEY-7, MKEY-8, MKEY-9, MKEY-10
#[test]
fn a_boost_is_finite_and_positive() {
    for boost in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        check_refused(
            MetadataKeyScorer::new("key", "value", boost),
            "boost must be a finite value greater than 0.0",
        );
    }
    assert!(MetadataKeyScorer::new(String::from("key"), "value", 0.001).is_ok());
}

/// Durations that no curve accepts.
fn no_durations() -> [Duration; 2] {
    [Duration::zero(), Duration::seconds(-1)]
}

// proves: DECAY-8, DECAY-9, DECAY-10, DECAY-11
#[test]
fn curves_need_positive_durations() {
    for duration in no_durations() {
        check_refused(
            DecayCurve::exponential(duration),
            "halfLife must be strictly positive",
        );
        check_refused(
            DecayCurve::window(duration),
            "maxAge must be strictly positive",
        );
        check_refused(
            DecayCurve::step(vec![(Duration::hours(1), 0.9), (duration, 0.1)]),
            "windows: each maxAge must be strictly positive",
        );
    }
    check_refused(DecayCurve::step(Vec::new()), "windows must be non-empty");
    assert!(DecayCurve::exponential(Duration::nanoseconds(1)).is_ok());
    assert!(DecayCurve::window(Duration::nanoseconds(1)).is_ok());
}

// NaN is refused as well (R054).
//
// proves: R054
#[test]
fn step_windows_are_taken_in_any_order_with_any_finite_score() {
    let of = |score| DecayCurve::step(vec![(Duration::hours(2), score), (Duration::hours(1), 0.0)]);
    assert!(of(7.0).is_ok());
    assert!(of(-7.0).is_ok());
    for score in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(matches!(of(score), Err(CupelError::ScorerConfig(_))));
    }
}

/// A custom clock.
struct Fixed(DateTime<Utc>);

impl TimeProvider for Fixed {
    fn now(&self) -> DateTime<Utc> {
        self.0
    }
}

fn noon() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2024, 6, 1, 12, 0, 0).unwrap()
}

fn decay(curve: DecayCurve, null_timestamp_score: f64) -> Construction<DecayScorer> {
    DecayScorer::new(Box::new(Fixed(noon())), curve, null_timestamp_score)
}

// The variants are public, so the scorer checks the curve again (R055).
//
// proves: DECAY-12, R055
#[test]
fn no_scorer_holds_an_invalid_curve() {
    for duration in no_durations() {
        check_refused(
            decay(DecayCurve::Exponential(duration), 0.5),
            "halfLife must be strictly positive",
        );
        check_refused(
            decay(DecayCurve::Window(duration), 0.5),
            "maxAge must be strictly positive",
        );
        check_refused(
            decay(DecayCurve::Step(vec![(duration, 0.5)]), 0.5),
            "windows: each maxAge must be strictly positive",
        );
    }
    check_refused(
        decay(DecayCurve::Step(Vec::new()), 0.5),
        "windows must be non-empty",
    );
}

// proves: DECAY-14, DECAY-15
#[test]
fn the_score_without_timestamp_lies_between_zero_and_one() {
    let of = |score| decay(DecayCurve::Window(Duration::hours(1)), score);
    for score in [-0.1, 1.1, f64::NAN] {
        check_refused(of(score), "nullTimestampScore must be in [0.0, 1.0]");
    }
    for score in [0.0, 1.0] {
        assert_eq!(of(score).unwrap().score(&item("text", 1), &[]), score);
    }
}

// There is no constructor without a clock.
//
// proves: DECAY-16, DECAY-18
#[test]
fn the_clock_is_injected() {
    let clock: Clock = Box::new(SystemTimeProvider);
    let scorer = DecayScorer::new(clock, DecayCurve::Window(Duration::hours(1)), 0.5).unwrap();
    let ancient = at(Duration::weeks(52));
    assert_eq!(scorer.score(&ancient, &[]), 0.0);
}

// The enumeration is exhaustive.
#[test]
fn a_curve_can_be_taken_apart() {
    fn longest(curve: &DecayCurve) -> Option<Duration> {
        match curve {
            DecayCurve::Exponential(half_life) => Some(*half_life),
            DecayCurve::Window(max_age) => Some(*max_age),
            DecayCurve::Step(windows) => {
                let _: &Vec<(Duration, f64)> = windows;
                windows.iter().map(|window| window.0).max()
            }
        }
    }

    let hour = Duration::hours(1);
    assert_eq!(longest(&DecayCurve::exponential(hour).unwrap()), Some(hour));
    assert_eq!(longest(&DecayCurve::window(hour).unwrap()), Some(hour));
    let steps = DecayCurve::step(vec![(hour, 1.0)]).unwrap();
    assert_eq!(longest(&steps), Some(hour));
}

/// An item of this age at noon.
fn at(age: Duration) -> ContextItem {
    ContextItemBuilder::new("text", 1)
        .timestamp(noon() - age)
        .build()
        .unwrap()
}

/// The scores of all items, each among all of them.
fn scores(scorer: &dyn Scorer, items: &[ContextItem]) -> Vec<f64> {
    let each = items.iter().map(|item| scorer.score(item, items));
    each.collect()
}

#[test]
fn decay_follows_its_curve() {
    let hour = Duration::hours(1);
    let ages = [-1, 0, 1, 2, 30].map(|hours| at(Duration::hours(hours)));
    let step = vec![
        (hour, 0.9),
        (Duration::hours(24), 0.5),
        (Duration::hours(72), 0.1),
    ];
    for (curve, expected) in [
        (
            DecayCurve::Exponential(hour),
            [1.0, 1.0, 0.5, 0.25, 0.5_f64.powi(30)],
        ),
        (DecayCurve::Window(hour), [1.0, 1.0, 0.0, 0.0, 0.0]),
        (DecayCurve::Step(step), [0.9, 0.9, 0.5, 0.5, 0.1]),
    ] {
        let actual = scores(&decay(curve, 0.5).unwrap(), &ages);
        for (actual, expected) in actual.into_iter().zip(expected) {
            check_close(actual, expected);
        }
    }
}

#[test]
fn rank_scorers_compare_with_the_others() {
    let ages = [3, 1, 2].map(|hours| at(Duration::hours(hours)));
    assert_eq!(scores(&RecencyScorer, &ages), [0.0, 1.0, 0.5]);
    assert_eq!(scores(&RecencyScorer, &[item("text", 1)]), [0.0]);

    let ranked = |priority| {
        let builder = ContextItemBuilder::new("text", 1).priority(priority);
        builder.build().unwrap()
    };
    let items = [ranked(5), item("text", 1), ranked(-2), ranked(5)];
    assert_eq!(scores(&PriorityScorer, &items), [0.5, 0.0, 0.0, 0.5]);
    assert_eq!(scores(&PriorityScorer, &items[..2]), [1.0, 0.0]);
}

#[test]
fn label_scorers_look_at_the_item_alone() {
    let kinds = KindScorer::with_default_weights();
    let items = [
        ContextKind::SYSTEM_PROMPT,
        "MEMORY",
        ContextKind::TOOL_OUTPUT,
        ContextKind::DOCUMENT,
        ContextKind::MESSAGE,
        "Other",
    ]
    .map(|name| of_kind(name, "text", 1, 0.0));
    assert_eq!(scores(&kinds, &items), [1.0, 0.8, 0.6, 0.4, 0.2, 0.0]);

    let hints = [0.5, -0.3, 1.7, f64::NAN, f64::INFINITY].map(|hint| hinted("text", 1, hint));
    assert_eq!(scores(&ReflexiveScorer, &hints), [0.5, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(scores(&ReflexiveScorer, &[item("text", 1)]), [0.0]);
}

fn tagged(tags: &[&str]) -> ContextItem {
    let tags = tags.iter().map(ToString::to_string).collect();
    ContextItemBuilder::new("text", 1)
        .tags(tags)
        .build()
        .unwrap()
}

// The tag scorer minds the case, the frequency scorer does not (R012).
//
// proves: ITEM-14, R012
#[test]
fn tag_scorers_weigh_and_count() {
    let weights = HashMap::from([("a".to_string(), 3.0), ("b".to_string(), 1.0)]);
    let tags = TagScorer::new(weights).unwrap();
    let items = [
        tagged(&["a"]),
        tagged(&["b", "b"]),
        tagged(&["a", "a", "b"]),
        tagged(&["A"]),
        tagged(&[]),
    ];
    assert_eq!(scores(&tags, &items), [0.75, 0.5, 1.0, 0.0, 0.0]);

    let items = [tagged(&["a"]), tagged(&["A", "x"]), tagged(&[])];
    assert_eq!(scores(&FrequencyScorer, &items), [0.5, 0.5, 0.0]);
    assert_eq!(scores(&FrequencyScorer, &items[..1]), [0.0]);
}

fn with_metadata(key: &str, value: &str) -> ContextItem {
    let metadata = HashMap::from([(key.to_string(), value.to_string())]);
    ContextItemBuilder::new("text", 1)
        .metadata(metadata)
        .build()
        .unwrap()
}

#[test]
fn metadata_scorers_read_their_key() {
    let trust = MetadataTrustScorer::new(0.4).unwrap();
    let items =
        ["0.85", "-0.1", "1.5", "high", "NaN", ""].map(|value| with_metadata("cupel:trust", value));
    assert_eq!(scores(&trust, &items), [0.85, 0.0, 1.0, 0.4, 0.4, 0.4]);

    let boost = MetadataKeyScorer::new("tier", "gold", 1.5).unwrap();
    let items = [
        with_metadata("tier", "gold"),
        with_metadata("tier", "Gold"),
        with_metadata("other", "gold"),
    ];
    assert_eq!(scores(&boost, &items), [1.5, 1.0, 1.0]);
}

/// A custom scorer with the one required method.
struct ByLength;

impl Scorer for ByLength {
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
        item.content().len() as f64 / all_items.len() as f64
    }
}

#[test]
fn combinators_take_boxed_scorers() {
    let items = ["a", "bbb"].map(|text| hinted(text, 1, 0.5));
    assert_eq!(scores(&ByLength, &items), [0.5, 1.5]);

    let composite = CompositeScorer::new(vec![
        (Box::new(ByLength), 3.0),
        (Box::new(ReflexiveScorer), 1.0),
    ]);
    assert_eq!(scores(&composite.unwrap(), &items), [0.5, 1.25]);

    let inner: Box<dyn Scorer> = Box::new(ByLength);
    let scaled = ScaledScorer::new(inner);
    assert_eq!(scores(&scaled, &items), [0.0, 1.0]);
    assert_eq!(scores(&scaled, &items[..1]), [0.5]);
    assert_eq!(scaled.score(&items[0], &[]), 0.5);
    assert_eq!(scaled.score(&item("outsider", 1), &items), 0.5);

    let nested = ScaledScorer::new(Box::new(ScaledScorer::new(Box::new(ReflexiveScorer))));
    assert_eq!(scores(&nested, &items), [0.5, 0.5]);
}

#[test]
fn scorers_print_their_settings() {
    let composite = CompositeScorer::new(vec![
        (Box::new(RecencyScorer), 3.0),
        (Box::new(PriorityScorer), 1.0),
    ]);
    assert_eq!(
        format!("{:?}", composite.unwrap()),
        "CompositeScorer { num_scorers: 2, normalized_weights: [0.75, 0.25] }"
    );
    let scaled = ScaledScorer::new(Box::new(RecencyScorer));
    assert_eq!(format!("{scaled:?}"), "ScaledScorer");
    let kinds = KindScorer::new(HashMap::from([(ContextKind::memory(), 0.5)])).unwrap();
    assert_eq!(
        format!("{kinds:?}"),
        r#"KindScorer { weights: {ContextKind("Memory"): 0.5} }"#
    );
    assert_eq!(
        format!("{:?}", MetadataKeyScorer::new("k", "v", 1.5).unwrap()),
        r#"MetadataKeyScorer { key: "k", value: "v", boost: 1.5 }"#
    );
    assert_eq!(
        format!("{:?}", MetadataTrustScorer::new(0.5).unwrap()),
        "MetadataTrustScorer { default_score: 0.5 }"
    );
    assert_eq!(
        format!("{RecencyScorer:?} {PriorityScorer:?} {FrequencyScorer:?} {ReflexiveScorer:?}"),
        "RecencyScorer PriorityScorer FrequencyScorer ReflexiveScorer"
    );
}

#[test]
fn a_tag_scorer_prints_its_weights_and_their_sum() {
    let tags = TagScorer::new(HashMap::from([("a".to_string(), 2.0)])).unwrap();
    assert_eq!(
        format!("{tags:?}"),
        r#"TagScorer { tag_weights: {"a": 2.0}, total_weight: 2.0 }"#
    );
}
