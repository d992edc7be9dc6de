//! Writes the policies of the vectors as documents and parses them.

use cupel::RawValue;
use cupel::config::{
    ConfigError, Document, Format, PlacerConfig, PolicyConfig, ScorerConfig, SlicerConfig,
};
use cupel_conformance::model::{self, Curve, Neighborhood, Placer, Scorer, Slicer, Task};

/// Parses the document of a vector's policy.
pub(crate) fn policy(policy: &model::Policy) -> Result<PolicyConfig, model::Failure> {
    // Vectors expect the error of the scorer before that of the slicer.
    read(&map([("scorer", scorer_data(&policy.scorer))]))?;
    let overflow = match policy.overflow_strategy {
        model::OverflowStrategy::Throw => "throw",
        model::OverflowStrategy::Truncate => "truncate",
        model::OverflowStrategy::Proceed => "proceed",
    };
    read(&map([
        ("scorer", scorer_data(&policy.scorer)),
        ("slicer", slicer_data(&policy.slicer)),
        ("placer", placer_data(policy.placer)),
        ("deduplication", RawValue::Bool(policy.deduplication)),
        ("overflow_strategy", text(overflow)),
    ]))
}

pub(crate) fn scorer(scorer: &Scorer) -> Result<ScorerConfig, model::Failure> {
    Ok(read(&map([("scorer", scorer_data(scorer))]))?.scorer)
}

pub(crate) fn slicer(slicer: &Slicer) -> Result<SlicerConfig, model::Failure> {
    let scorer = ("scorer", typed("recency", []));
    Ok(read(&map([scorer, ("slicer", slicer_data(slicer))]))?.slicer)
}

pub(crate) fn placer(placer: Placer) -> Result<PlacerConfig, model::Failure> {
    let scorer = ("scorer", typed("recency", []));
    Ok(read(&map([scorer, ("placer", placer_data(placer))]))?.placer)
}

/// Returns whether a document gives the same sum of tag weights to the last bit: documents sum them in
/// key order.
pub(crate) fn is_expressible(task: &Task) -> bool {
    match task {
        Task::Score { scorer, .. } => is_sorted(scorer),
        Task::Run { policy, .. } => is_sorted(&policy.scorer),
        Task::Slice { .. } | Task::Place { .. } => true,
    }
}

fn is_sorted(scorer: &Scorer) -> bool {
    match scorer {
        Scorer::Tag { weights, .. } => weights.is_sorted_by_key(|(tag, _)| tag),
        Scorer::Composite(entries) | Scorer::Fusion { entries, .. } => {
            entries.iter().all(|(child, _)| is_sorted(child))
        }
        Scorer::Product(children) => children.iter().all(is_sorted),
        Scorer::Scaled(inner) => is_sorted(inner),
        _ => true,
    }
}

/// Parses the document as JSON and checks the round-trip through one of the formats.
fn read(document: &RawValue) -> Result<PolicyConfig, model::Failure> {
    let text = document.to_string();
    let config = Document::parse(&text, Format::Json)
        .and_then(|document| document.policy_config())
        .map_err(|error| failure(&error))?;
    // The choice is deterministic and covers all formats.
    let format = [Format::Json, Format::Toml, Format::Yaml][text.len() % 3];
    let written = config.to_text(format).unwrap();
    let again = Document::parse(&written, format).and_then(|it| it.policy_config());
    assert_eq!(again.as_ref(), Ok(&config), "{written}");
    Ok(config)
}

fn failure(error: &ConfigError) -> model::Failure {
    let message = match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    };
    let Some(code) = error.code() else {
        panic!("{error}");
    };
    model::Failure {
        at_construction: true,
        code: code.to_owned(),
        message,
    }
}

fn kernels(it: Neighborhood) -> [(&'static str, RawValue); 3] {
    let near = [
        ("forward", number(it.forward)),
        ("backward", number(it.backward)),
    ];
    let wide = [
        ("weight", number(it.weight)),
        ("decay", number(it.decay)),
        ("power", RawValue::Integer(it.power.into())),
    ];
    [
        ("near", map(near)),
        ("wide", map(wide)),
        ("sessions", RawValue::Bool(it.sessions)),
    ]
}

fn scorer_data(scorer: &Scorer) -> RawValue {
    let children = |children: &[Scorer]| list(children, scorer_data);
    let entry = |(scorer, weight): &(Scorer, f64)| {
        map([("scorer", scorer_data(scorer)), ("weight", number(*weight))])
    };
    match scorer {
        Scorer::Recency => typed("recency", []),
        Scorer::Priority => typed("priority", []),
        Scorer::Frequency => typed("frequency", []),
        Scorer::Reflexive => typed("reflexive", []),
        Scorer::Kind { weights: None } => typed("kind", []),
        Scorer::Kind {
            weights: Some(weights),
        } => typed("kind", [("weights", numbers(weights))]),
        Scorer::Tag {
            weights,
            ignore_case,
        } => typed(
            "tag",
            [
                ("tag_weights", numbers(weights)),
                ("ignore_case", RawValue::Bool(*ignore_case)),
            ],
        ),
        Scorer::Composite(entries) => typed("composite", [("entries", list(entries, entry))]),
        Scorer::Fusion { entries, method, k } => typed(
            "fusion",
            [
                ("entries", list(entries, entry)),
                ("method", text(method.name())),
                ("k", number(*k)),
            ],
        ),
        Scorer::Product(factors) => typed("product", [("scorers", children(factors))]),
        Scorer::Relevance {
            query,
            k1,
            b,
            conversation,
        } => {
            let query = list(query, |(written, weight)| {
                map([("text", text(written)), ("weight", number(*weight))])
            });
            let mut fields = vec![("query", query), ("k1", number(*k1)), ("b", number(*b))];
            fields.extend(conversation.iter().copied().flat_map(kernels));
            let name = conversation.map_or("relevance", |_| "conversation");
            typed(name, fields)
        }
        Scorer::Neighbor {
            inner,
            neighborhood,
        } => {
            let inner = ("inner", scorer_data(inner));
            typed(
                "neighbor",
                [inner].into_iter().chain(kernels(*neighborhood)),
            )
        }
        Scorer::Scaled(inner) => typed("scaled", [("inner", scorer_data(inner))]),
        Scorer::MetadataTrust { default_score } => typed(
            "metadata_trust",
            [("default_score", number(*default_score))],
        ),
        Scorer::MetadataKey { key, value, boost } => typed(
            "metadata_key",
            [
                ("key", text(key)),
                ("value", text(value)),
                ("boost", number(*boost)),
            ],
        ),
        Scorer::Decay {
            reference_time,
            null_timestamp_score,
            curve,
        } => {
            let mut fields = vec![
                ("curve", self::curve(curve)),
                ("reference_time", text(&reference_time.to_rfc3339())),
            ];
            if let Some(score) = null_timestamp_score {
                fields.push(("null_timestamp_score", number(*score)));
            }
            typed("decay", fields)
        }
    }
}

fn curve(curve: &Curve) -> RawValue {
    match curve {
        Curve::Exponential { half_life } => {
            typed("exponential", [("half_life", duration(*half_life))])
        }
        Curve::Window { max_age } => typed("window", [("max_age", duration(*max_age))]),
        Curve::Step { windows } => {
            let window = |(max_age, score): &(chrono::TimeDelta, f64)| {
                map([("max_age", duration(*max_age)), ("score", number(*score))])
            };
            typed("step", [("windows", list(windows, window))])
        }
    }
}

fn slicer_data(slicer: &Slicer) -> RawValue {
    let counts = |entries: &[model::CountEntry]| {
        list(entries, |entry| {
            map([
                ("kind", text(&entry.kind)),
                (
                    "require_count",
                    RawValue::Integer(entry.require_count.into()),
                ),
                ("cap_count", RawValue::Integer(entry.cap_count.into())),
            ])
        })
    };
    let scarcity = |scarcity: model::Scarcity| match scarcity {
        model::Scarcity::Degrade => text("degrade"),
        model::Scarcity::Throw => text("throw"),
    };
    let bucket_size = |size: Option<i64>| {
        let size = size.map(|size| RawValue::Integer(size.into()));
        size.map(|size| ("bucket_size", size))
    };
    match slicer {
        Slicer::Greedy => typed("greedy", []),
        Slicer::Rank => typed("rank", []),
        Slicer::Density { exponent } => typed("density", [("exponent", number(*exponent))]),
        Slicer::Knapsack { bucket_size: size } => typed("knapsack", bucket_size(*size)),
        Slicer::Quota { quotas, inner } => {
            let quota = |quota: &model::Quota| {
                map([
                    ("kind", text(&quota.kind)),
                    ("require", number(quota.require)),
                    ("cap", number(quota.cap)),
                ])
            };
            let inner = slicer_data(inner);
            typed("quota", [("quotas", list(quotas, quota)), ("inner", inner)])
        }
        Slicer::CountQuota {
            entries,
            scarcity: behavior,
            inner,
        } => typed(
            "count_quota",
            [
                ("entries", counts(entries)),
                ("scarcity", scarcity(*behavior)),
                ("inner", slicer_data(inner)),
            ],
        ),
        Slicer::CountConstrainedKnapsack {
            entries,
            scarcity: behavior,
            bucket_size: size,
        } => {
            let fields = [
                ("entries", counts(entries)),
                ("scarcity", scarcity(*behavior)),
            ];
            let fields = fields.into_iter().chain(bucket_size(*size));
            typed("count_constrained_knapsack", fields)
        }
    }
}

fn placer_data(placer: Placer) -> RawValue {
    match placer {
        Placer::Chronological => typed("chronological", []),
        Placer::UShaped => typed("u-shaped", []),
    }
}

fn typed(name: &str, fields: impl IntoIterator<Item = (&'static str, RawValue)>) -> RawValue {
    map([("type", text(name))].into_iter().chain(fields))
}

fn map(fields: impl IntoIterator<Item = (&'static str, RawValue)>) -> RawValue {
    let fields = fields.into_iter();
    RawValue::Map(fields.map(|(key, value)| (key.to_owned(), value)).collect())
}

fn list<T>(values: &[T], write: impl Fn(&T) -> RawValue) -> RawValue {
    RawValue::List(values.iter().map(write).collect())
}

/// Returns an object that may have duplicate keys.
fn numbers(weights: &[(String, f64)]) -> RawValue {
    let entries = weights.iter();
    let entry = |(key, weight): &(String, f64)| (key.clone(), number(*weight));
    RawValue::Map(entries.map(entry).collect())
}

/// Returns a number. JSON has no NaN or infinity; a string fails at the same path.
fn number(number: f64) -> RawValue {
    if number.is_finite() {
        RawValue::Float(number)
    } else {
        RawValue::Text(number.to_string())
    }
}

fn text(text: &str) -> RawValue {
    RawValue::Text(text.to_owned())
}

/// Returns a duration in nanoseconds, which is exact.
fn duration(duration: chrono::TimeDelta) -> RawValue {
    let seconds = i128::from(duration.num_seconds());
    let nanos = seconds * 1_000_000_000 + i128::from(duration.subsec_nanos());
    text(&format!("{nanos}ns"))
}
