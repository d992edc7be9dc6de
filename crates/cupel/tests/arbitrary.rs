//! Random tasks with many edge cases: ties, equal contents, missing fields, zero and negative tokens,
//! non-finite numbers, kinds and tags that differ in case, nested strategies.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use cupel_conformance::model::{Budget, Document, Item, ScoredItem, Task};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::json;

const KINDS: &[&str] = &[
    "Message",
    "message",
    "Memory",
    "ToolOutput",
    "TOOLOUTPUT",
    "note",
];
const TAGS: &[&str] = &["a", "A", "b", "c", "ä", "Ä"];

pub(crate) fn run() -> impl Strategy<Value = Task> {
    run_over(
        budget(prop_oneof![0..300_i64, 200..1_500_i64]),
        vec(item(tokens()), 0..20),
    )
}

pub(crate) fn extreme_run() -> impl Strategy<Value = Task> {
    run_over(budget(0..=i64::MAX), vec(item(extreme_tokens()), 0..8))
}

fn run_over(
    budget: impl Strategy<Value = Budget>,
    items: impl Strategy<Value = Vec<Item>>,
) -> impl Strategy<Value = Task> {
    (policy(), budget, items).prop_map(|(policy, budget, items)| Task::Run {
        policy,
        budget,
        items,
    })
}

pub(crate) fn score() -> impl Strategy<Value = Task> {
    (scorer(), vec(item(tokens()), 0..14)).prop_map(|(scorer, items)| Task::Score { scorer, items })
}

pub(crate) fn slice() -> impl Strategy<Value = Task> {
    (
        slicer(),
        budget(0..400_i64),
        vec(scored(tokens(), raw_score()), 0..16),
    )
        .prop_map(|(slicer, budget, items)| Task::Slice {
            slicer,
            budget,
            items,
        })
}

/// Scores on five levels, all equal, or worth their weight: many optimal sets.
pub(crate) fn tied_knapsack() -> impl Strategy<Value = Task> {
    let scores = prop_oneof![
        Just(None),
        select(&[0.2, 0.4, 0.6, 0.8, 1.0]).prop_map(Some),
    ];
    let levels = vec((1_i64..12, 0_usize..5), 1..14);
    (scores, levels, 1_i64..60, 1_i64..4, any::<bool>()).prop_map(
        |(constant, levels, target_tokens, bucket_size, by_weight)| Task::Slice {
            slicer: json!({ "type": "knapsack", "bucket_size": bucket_size }),
            budget: Budget {
                max_tokens: target_tokens,
                target_tokens,
                ..Budget::default()
            },
            items: levels
                .into_iter()
                .map(|(tokens, level)| ScoredItem {
                    item: Item {
                        content: "x".into(),
                        tokens,
                        ..Item::default()
                    },
                    score: match constant {
                        Some(score) => score,
                        None if by_weight => tokens as f64 / 10.0,
                        None => [0.2, 0.4, 0.6, 0.8, 1.0][level],
                    },
                })
                .collect(),
        },
    )
}

pub(crate) fn place() -> impl Strategy<Value = Task> {
    (placer(), vec(scored(tokens(), raw_score()), 0..20))
        .prop_map(|(placer, items)| Task::Place { placer, items })
}

fn placer() -> impl Strategy<Value = Document> {
    select(&["chronological", "u-shaped"]).prop_map(|name| json!({ "type": name }))
}

fn policy() -> impl Strategy<Value = Document> {
    let overflow = select(&["throw", "truncate", "proceed"]);
    (scorer(), slicer(), placer(), any::<bool>(), overflow).prop_map(
        |(scorer, slicer, placer, deduplication, overflow)| {
            json!({
                "scorer": scorer,
                "slicer": slicer,
                "placer": placer,
                "deduplication": deduplication,
                "overflow_strategy": overflow,
            })
        },
    )
}

fn budget(limits: impl Strategy<Value = i64> + Clone + 'static) -> impl Strategy<Value = Budget> {
    // A broken rule now and then: the constructors must agree on errors too.
    let share = prop_oneof![
        12 => 0.0..=1.0_f64,
        1 => select(&[0.0, 1.0, 1.2, -0.1]),
    ];
    let margin = prop_oneof![
        6 => Just(0.0),
        3 => 0.0..=100.0_f64,
        1 => select(&[100.0, 90.0, 55.0, -0.0, -1.0, 100.5, f64::NAN]),
    ];
    let slots = vec((select(KINDS).prop_map(String::from), -1_i64..30), 0..3);
    let slots = prop_oneof![3 => Just(Vec::new()), 1 => slots];
    let reserve = prop_oneof![2 => Just(0.0), 1 => 0.0..0.5_f64, 1 => share.clone()];
    let target = prop_oneof![2 => Just(1.0), 2 => share];
    (limits, target, reserve, slots, margin).prop_map(
        |(max_tokens, target, reserve, reserved_slots, margin)| Budget {
            max_tokens,
            target_tokens: part(max_tokens, target),
            output_reserve: part(max_tokens, reserve),
            reserved_slots,
            estimation_safety_margin_percent: margin,
        },
    )
}

#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
fn part(of: i64, share: f64) -> i64 {
    (of as f64 * share) as i64
}

fn tokens() -> impl Strategy<Value = i64> + Clone {
    prop_oneof![8 => 1_i64..120, 2 => Just(0), 1 => -5_i64..0, 1 => Just(10)]
}

fn extreme_tokens() -> impl Strategy<Value = i64> + Clone {
    prop_oneof![
        3 => 0_i64..120,
        1 => select(&[i64::MAX, i64::MAX - 1, i64::MAX / 2, i64::MIN, -1, 1 << 53, (1 << 53) + 1]),
        1 => any::<i64>(),
    ]
}

fn item(tokens: impl Strategy<Value = i64> + Clone) -> impl Strategy<Value = Item> {
    let content = prop_oneof![
        3 => select(&["a", "b", "c", "A", "a ", "é", "e\u{301}"]).prop_map(String::from),
        4 => "[a-z]{2,4}",
        1 => Just(String::from(" ")),
    ];
    let kind = prop_oneof![
        2 => Just(None),
        8 => select(KINDS).prop_map(|kind| Some(kind.to_owned())),
    ];
    (
        (content, tokens, kind, option::of(priority())),
        vec(select(TAGS).prop_map(String::from), 0..4),
        prop_oneof![30 => Just(Vec::new()), 1 => vec("[a-h]", 7..12)],
        option::of(timestamp()),
        option::of(hint()),
        prop_oneof![9 => Just(false), 1 => Just(true)],
        option::of(trust()),
    )
        .prop_map(
            |(
                (content, tokens, kind, priority),
                mut tags,
                more,
                timestamp,
                hint,
                pinned,
                trust,
            )| {
                tags.extend(more);
                Item {
                    content,
                    tokens,
                    kind,
                    priority,
                    tags,
                    metadata: trust.into_iter().collect::<BTreeMap<_, _>>(),
                    timestamp,
                    future_relevance_hint: hint,
                    pinned,
                    ..Item::default()
                }
            },
        )
}

fn scored(
    tokens: impl Strategy<Value = i64> + Clone,
    score: impl Strategy<Value = f64>,
) -> impl Strategy<Value = ScoredItem> {
    (item(tokens), score).prop_map(|(item, score)| ScoredItem { item, score })
}

fn priority() -> impl Strategy<Value = i64> {
    prop_oneof![4 => 0_i64..4, 1 => select(&[i64::MIN, i64::MAX, -1])]
}

fn timestamp() -> impl Strategy<Value = DateTime<Utc>> {
    prop_oneof![
        4 => (0_i64..6).prop_map(|hours| at(hours * 3_600, 0)),
        1 => (0_i64..6, 0_u32..3).prop_map(|(seconds, nanos)| at(seconds, nanos)),
    ]
}

fn at(seconds: i64, nanos: u32) -> DateTime<Utc> {
    DateTime::from_timestamp(1_735_700_000 + seconds, nanos).expect("a time in range")
}

fn hint() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => 0.0..=1.0_f64,
        4 => select(&[0.0, -0.0, 0.25, 0.5, 1.0]),
        1 => select(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.7, -0.3]),
    ]
}

fn raw_score() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => 0.0..=1.0_f64,
        4 => select(&[0.0, -0.0, 0.00009, 0.25, 0.5, 1.0]),
        1 => select(&[f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 3.5, -2.0]),
    ]
}

fn trust() -> impl Strategy<Value = (String, String)> {
    let text = prop_oneof![
        3 => (0.0..=1.0_f64).prop_map(|trust| trust.to_string()),
        1 => select(&["1.5", "-0.1", "high", "", "NaN", "inf", " 0.5", "1_0", "+.5"])
            .prop_map(String::from),
    ];
    let key = select(&["cupel:trust", "cupel:trust", "cupel:priority"]).prop_map(String::from);
    (key, text)
}

/// A weight, now and then one that no constructor accepts.
fn weight() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![
        240 => 0.01..5.0_f64,
        60 => select(&[1.0, 2.0]),
        1 => select(&[0.0, -1.0, f64::NAN, f64::INFINITY, 1e308]),
    ]
}

/// Adds the fields that are present to a strategy.
fn with(mut strategy: Document, fields: &[(&str, Option<Document>)]) -> Document {
    for (key, value) in fields {
        if let Some(value) = value {
            strategy[*key] = value.clone();
        }
    }
    strategy
}

/// A number, or the string for one that JSON cannot express.
fn number(number: f64) -> Document {
    if number.is_finite() {
        number.into()
    } else {
        number.to_string().into()
    }
}

fn weights(weights: Vec<(String, f64)>) -> Document {
    let weights = weights.into_iter();
    Document::Object(weights.map(|(key, weight)| (key, number(weight))).collect())
}

fn entries(entries: Vec<(Document, f64)>) -> Document {
    let entries = entries.into_iter();
    entries
        .map(|(scorer, weight)| json!({ "scorer": scorer, "weight": number(weight) }))
        .collect()
}

fn scorer() -> impl Strategy<Value = Document> {
    let named = |name: &str| Just(json!({ "type": name }));
    let tags = (subsequence(TAGS, 0..4), vec(weight(), 4)).prop_map(|(tags, weights)| {
        let tags = tags.into_iter().map(String::from);
        tags.zip(weights).collect::<Vec<_>>()
    });
    let leaf = prop_oneof![
        3 => named("recency"),
        2 => named("priority"),
        2 => named("frequency"),
        3 => named("reflexive"),
        1 => named("kind"),
        // An object cannot have a kind twice in one spelling.
        1 => per_kind(weight()).prop_map(|kinds| json!({ "type": "kind", "weights": weights(kinds) })),
        2 => (tags, any::<bool>()).prop_map(|(tags, ignore_case)| {
            json!({ "type": "tag", "tag_weights": weights(tags), "ignore_case": ignore_case })
        }),
        1 => (0.0..=1.0_f64)
            .prop_map(|score| json!({ "type": "metadata_trust", "default_score": score })),
        1 => (0.01..3.0_f64).prop_map(|boost| {
            json!({ "type": "metadata_key", "key": "cupel:priority", "value": "high", "boost": boost })
        }),
        2 => decay(),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            3 => vec((inner.clone(), weight()), 1..4)
                .prop_map(|all| json!({ "type": "composite", "entries": entries(all) })),
            1 => vec(inner.clone(), 1..3)
                .prop_map(|scorers| json!({ "type": "product", "scorers": scorers })),
            3 => (
                vec((inner.clone(), weight()), 1..4),
                select(&["sum", "reciprocal_rank", "shares"]),
                prop_oneof![60 => select(&[0.0, 1.0, 60.0]), 1 => Just(-1.0)],
            )
                .prop_map(|(all, method, k)| {
                    json!({ "type": "fusion", "entries": entries(all), "method": method, "k": k })
                }),
            2 => inner.prop_map(|inner| json!({ "type": "scaled", "inner": inner })),
        ]
    })
}

fn decay() -> impl Strategy<Value = Document> {
    let seconds = || {
        prop_oneof![
            14 => (1_i64..20_000).prop_map(|seconds| seconds as f64),
            1 => (1_i64..5).prop_map(|nanoseconds| nanoseconds as f64 / 1e9),
            1 => Just(0.0),
        ]
    };
    let window = (seconds(), 0.0..1.0_f64)
        .prop_map(|(max_age, score)| json!({ "max_age": max_age, "score": score }));
    let curve = prop_oneof![
        seconds().prop_map(|half_life| json!({ "type": "exponential", "half_life": half_life })),
        seconds().prop_map(|max_age| json!({ "type": "window", "max_age": max_age })),
        vec(window, 0..4).prop_map(|windows| json!({ "type": "step", "windows": windows })),
    ];
    (curve, option::of(0.0..=1.0_f64), 0_i64..30_000).prop_map(|(curve, score, seconds)| {
        let reference_time = at(seconds, 1).to_rfc3339();
        let decay = json!({ "type": "decay", "curve": curve, "reference_time": reference_time });
        with(decay, &[("null_timestamp_score", score.map(number))])
    })
}

fn slicer() -> impl Strategy<Value = Document> {
    let bucket =
        || prop_oneof![1 => Just(None), 4 => (1_i64..20).prop_map(|size| Some(size.into()))];
    let scarcity = || prop_oneof![12 => Just("degrade"), 1 => Just("throw")];
    let counts = || {
        let entry = (0_i64..3, 0_i64..3);
        per_kind(entry).prop_map(|entries| {
            let entries = entries.into_iter();
            let entry = |(kind, (require, more))| {
                json!({ "kind": kind, "require_count": require, "cap_count": require + more })
            };
            entries.map(entry).collect::<Document>()
        })
    };
    let quotas = per_kind((0.0..=40.0_f64, 0.0..=60.0_f64)).prop_map(|entries| {
        let entries = entries.into_iter();
        let quota = |(kind, (require, more)): (String, (f64, f64))| {
            json!({ "kind": kind, "require": require, "cap": (require + more).min(100.0) })
        };
        entries.map(quota).collect::<Document>()
    });
    let leaf = prop_oneof![
        3 => Just(json!({ "type": "greedy" })),
        2 => Just(json!({ "type": "rank" })),
        2 => select(&[0.0, 0.5, 0.7, 1.0, 2.0])
            .prop_map(|exponent| json!({ "type": "density", "exponent": exponent })),
        3 => bucket()
            .prop_map(|size| with(json!({ "type": "knapsack" }), &[("bucket_size", size)])),
        2 => (counts(), scarcity(), bucket()).prop_map(|(entries, scarcity, size)| {
            let name = "count_constrained_knapsack";
            let slicer = json!({ "type": name, "entries": entries, "scarcity": scarcity });
            with(slicer, &[("bucket_size", size)])
        }),
    ];
    leaf.prop_recursive(2, 4, 1, move |inner| {
        // A knapsack directly inside a count quota is refused; once in a while it is tried.
        let counted = (inner.clone(), 0..8).prop_map(|(inner, lot)| match &inner["type"] {
            name if name == "knapsack" && lot > 0 => json!({ "type": "greedy" }),
            _ => inner,
        });
        prop_oneof![
            (quotas.clone(), inner)
                .prop_map(|(quotas, inner)| json!({ "type": "quota", "quotas": quotas, "inner": inner })),
            (counts(), scarcity(), counted).prop_map(|(entries, scarcity, inner)| {
                json!({ "type": "count_quota", "entries": entries, "scarcity": scarcity, "inner": inner })
            }),
        ]
    })
}

/// Up to three entries of distinct kinds, once in a while of kinds that differ only in case.
fn per_kind<T: Clone + std::fmt::Debug>(
    entry: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = Vec<(String, T)>> + Clone {
    let distinct = subsequence(vec!["message", "Memory", "TOOLoutput", "note"], 0..=3);
    let distinct = (distinct, vec(entry.clone(), 3)).prop_map(|(kinds, entries)| {
        let kinds = kinds.into_iter().map(String::from);
        kinds.zip(entries).collect::<Vec<_>>()
    });
    let any = vec((select(KINDS).prop_map(String::from), entry), 0..3);
    prop_oneof![15 => distinct, 1 => any]
}
