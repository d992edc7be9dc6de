//! Writes a case as a question.

use cupel_conformance::model::{
    Budget, CountEntry, Curve, Item, Neighborhood, OverflowStrategy, Placer, Policy, Scarcity,
    ScoredItem, Scorer, Slicer, Task,
};
use serde_json::{Map, Value, json};

/// Returns the question for a task.
pub(super) fn write(task: &Task) -> Value {
    match task {
        Task::Score { scorer, items } => json!({
            "task": "score",
            "scorer": write_scorer(scorer),
            "items": list(items, item),
        }),
        Task::Slice {
            slicer,
            budget,
            items,
        } => json!({
            "task": "slice",
            "slicer": write_slicer(slicer),
            "budget": write_budget(budget),
            "items": list(items, scored),
        }),
        Task::Place { placer, items } => json!({
            "task": "place",
            "placer": write_placer(*placer),
            "items": list(items, scored),
        }),
        Task::Run {
            policy,
            budget,
            items,
        } => json!({
            "task": "run",
            "policy": write_policy(policy),
            "budget": write_budget(budget),
            "items": list(items, item),
        }),
    }
}

fn list<T>(values: &[T], write: impl Fn(&T) -> Value) -> Value {
    values.iter().map(write).collect()
}

/// Writes a number; one that is not finite becomes a string.
fn number(number: f64) -> Value {
    if number.is_finite() {
        number.into()
    } else {
        number.to_string().into()
    }
}

fn item(item: &Item) -> Value {
    let mut document = json!({ "content": item.content, "tokens": item.tokens });
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            document[key] = value;
        }
    };
    set("kind", item.kind.clone().map(Value::from));
    set("source", item.source.clone().map(Value::from));
    set("priority", item.priority.map(Value::from));
    set(
        "tags",
        (!item.tags.is_empty()).then(|| item.tags.clone().into()),
    );
    set(
        "metadata",
        (!item.metadata.is_empty()).then(|| json!(item.metadata)),
    );
    set(
        "timestamp",
        item.timestamp.map(|time| time.to_rfc3339().into()),
    );
    set(
        "future_relevance_hint",
        item.future_relevance_hint.map(number),
    );
    set("pinned", item.pinned.then_some(Value::Bool(true)));
    set("original_tokens", item.original_tokens.map(Value::from));
    document
}

fn scored(scored: &ScoredItem) -> Value {
    json!({ "item": item(&scored.item), "score": number(scored.score) })
}

fn write_budget(budget: &Budget) -> Value {
    let slots = budget.reserved_slots.iter();
    let slots: Map<String, Value> = slots
        .map(|(kind, tokens)| (kind.clone(), (*tokens).into()))
        .collect();
    json!({
        "max_tokens": budget.max_tokens,
        "target_tokens": budget.target_tokens,
        "output_reserve": budget.output_reserve,
        "reserved_slots": slots,
        "estimation_safety_margin_percent": number(budget.estimation_safety_margin_percent),
    })
}

fn write_policy(policy: &Policy) -> Value {
    json!({
        "scorer": write_scorer(&policy.scorer),
        "slicer": write_slicer(&policy.slicer),
        "placer": write_placer(policy.placer),
        "deduplication": policy.deduplication,
        "overflow_strategy": match policy.overflow_strategy {
            OverflowStrategy::Throw => "throw",
            OverflowStrategy::Truncate => "truncate",
            OverflowStrategy::Proceed => "proceed",
        },
    })
}

fn weights(weights: &[(String, f64)]) -> Value {
    let weights = weights.iter();
    let weights = weights.map(|(name, weight)| (name.clone(), number(*weight)));
    Value::Object(weights.collect())
}

fn write_kernels(document: &mut Value, it: Neighborhood) {
    document["near"] = json!({ "forward": number(it.forward), "backward": number(it.backward) });
    document["wide"] =
        json!({ "weight": number(it.weight), "decay": number(it.decay), "power": it.power });
    document["sessions"] = it.sessions.into();
}

fn write_scorer(scorer: &Scorer) -> Value {
    match scorer {
        Scorer::Recency => json!({ "type": "recency" }),
        Scorer::Priority => json!({ "type": "priority" }),
        Scorer::Frequency => json!({ "type": "frequency" }),
        Scorer::Reflexive => json!({ "type": "reflexive" }),
        Scorer::Kind { weights: None } => json!({ "type": "kind" }),
        Scorer::Kind { weights: Some(set) } => json!({ "type": "kind", "weights": weights(set) }),
        Scorer::Tag {
            weights: set,
            ignore_case,
        } => json!({ "type": "tag", "tag_weights": weights(set), "ignore_case": ignore_case }),
        Scorer::Composite(entries) => json!({
            "type": "composite",
            "entries": list(entries, write_entry),
        }),
        Scorer::Fusion { entries, method, k } => json!({
            "type": "fusion",
            "entries": list(entries, write_entry),
            "method": method.name(),
            "k": number(*k),
        }),
        Scorer::Product(scorers) => json!({
            "type": "product",
            "scorers": list(scorers, write_scorer),
        }),
        Scorer::Relevance {
            query,
            k1,
            b,
            conversation,
        } => {
            let mut document = json!({
                "type": "relevance",
                "query": list(query, |(text, weight)| json!({ "text": text, "weight": number(*weight) })),
                "k1": number(*k1),
                "b": number(*b),
            });
            if let Some(neighborhood) = conversation {
                document["type"] = "conversation".into();
                write_kernels(&mut document, *neighborhood);
            }
            document
        }
        Scorer::Neighbor {
            inner,
            neighborhood,
        } => {
            let mut document = json!({ "type": "neighbor", "inner": write_scorer(inner) });
            write_kernels(&mut document, *neighborhood);
            document
        }
        Scorer::Scaled(inner) => json!({ "type": "scaled", "inner": write_scorer(inner) }),
        Scorer::MetadataTrust { default_score } => {
            json!({ "type": "metadata_trust", "default_score": number(*default_score) })
        }
        Scorer::MetadataKey { key, value, boost } => {
            json!({ "type": "metadata_key", "key": key, "value": value, "boost": number(*boost) })
        }
        Scorer::Decay {
            reference_time,
            null_timestamp_score,
            curve,
        } => {
            let mut document = json!({
                "type": "decay",
                "reference_time": reference_time.to_rfc3339(),
                "curve": write_curve(curve),
            });
            if let Some(score) = null_timestamp_score {
                document["null_timestamp_score"] = number(*score);
            }
            document
        }
    }
}

fn write_entry((scorer, weight): &(Scorer, f64)) -> Value {
    json!({ "scorer": write_scorer(scorer), "weight": number(*weight) })
}

fn write_curve(curve: &Curve) -> Value {
    // ISO 8601 durations are exact to the nanosecond.
    match curve {
        Curve::Exponential { half_life } => {
            json!({ "type": "exponential", "half_life": half_life.to_string() })
        }
        Curve::Window { max_age } => json!({ "type": "window", "max_age": max_age.to_string() }),
        Curve::Step { windows } => json!({
            "type": "step",
            "windows": list(windows, |(max_age, score)| {
                json!({ "max_age": max_age.to_string(), "score": number(*score) })
            }),
        }),
    }
}

fn write_slicer(slicer: &Slicer) -> Value {
    let sized = |mut document: Value, bucket_size: Option<i64>| {
        if let Some(size) = bucket_size {
            document["bucket_size"] = size.into();
        }
        document
    };
    let scarcity = |scarcity: Scarcity| match scarcity {
        Scarcity::Degrade => "degrade",
        Scarcity::Throw => "throw",
    };
    let counts = |entries: &[CountEntry]| {
        list(entries, |entry| {
            json!({
                "kind": entry.kind,
                "require_count": entry.require_count,
                "cap_count": entry.cap_count,
            })
        })
    };
    match slicer {
        Slicer::Greedy => json!({ "type": "greedy" }),
        Slicer::Rank => json!({ "type": "rank" }),
        Slicer::Density { exponent } => {
            json!({ "type": "density", "exponent": number(*exponent) })
        }
        Slicer::Knapsack { bucket_size } => sized(json!({ "type": "knapsack" }), *bucket_size),
        Slicer::Quota { quotas, inner } => json!({
            "type": "quota",
            "quotas": list(quotas, |quota| json!({
                "kind": quota.kind,
                "require": number(quota.require),
                "cap": number(quota.cap),
            })),
            "inner": write_slicer(inner),
        }),
        Slicer::CountQuota {
            entries,
            scarcity: behavior,
            inner,
        } => json!({
            "type": "count_quota",
            "entries": counts(entries),
            "scarcity": scarcity(*behavior),
            "inner": write_slicer(inner),
        }),
        Slicer::CountConstrainedKnapsack {
            entries,
            scarcity: behavior,
            bucket_size,
        } => sized(
            json!({
                "type": "count_constrained_knapsack",
                "entries": counts(entries),
                "scarcity": scarcity(*behavior),
            }),
            *bucket_size,
        ),
    }
}

fn write_placer(placer: Placer) -> Value {
    match placer {
        Placer::Chronological => json!({ "type": "chronological" }),
        Placer::UShaped => json!({ "type": "u-shaped" }),
    }
}
