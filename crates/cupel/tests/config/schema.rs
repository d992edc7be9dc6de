//! The schemas and the reader reject the same documents, as far as a schema can express the rules.

use cupel::config::{
    Document, Format, PolicyConfig, Preset, policy_schema, presets, request_schema,
};
use jsonschema::Validator;
use serde_json::Value;

use super::faults::{Fault, POLICIES, REQUESTS};

pub(super) fn validator(schema: &str) -> Validator {
    let schema: Value = serde_json::from_str(schema).unwrap();
    jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .unwrap()
}

/// Converts a document of any format to JSON with independent parsers; `None` on a syntax error.
fn as_json(format: Format, text: &str) -> Option<Value> {
    match format {
        Format::Json => serde_json::from_str(text).ok(),
        Format::Toml => {
            let table: toml::Table = text.parse().ok()?;
            serde_json::to_value(table).ok()
        }
        Format::Yaml => {
            let options = serde_saphyr::options! { strict_booleans: true };
            serde_saphyr::from_str_with_options(text, options).ok()
        }
        other => panic!("no independent reader of {other:?}"),
    }
}

fn check(validator: &Validator, faults: &[Fault]) {
    for fault in faults {
        let Some(document) = as_json(fault.format, fault.text) else {
            assert!(!fault.in_schema, "{}", fault.text);
            continue;
        };
        let is_rejected = !validator.is_valid(&document);
        assert!(is_rejected >= fault.in_schema, "accepted: {}", fault.text);
    }
}

#[test]
fn the_schema_rejects_policies_that_the_reader_rejects() {
    check(&validator(&policy_schema()), POLICIES);
}

#[test]
fn the_schema_rejects_requests_that_the_reader_rejects() {
    check(&validator(&request_schema()), REQUESTS);
}

/// Valid policies that together have every field of every row.
const VALID: &[&str] = &[
    r#"{"$schema": "x", "name": "a", "version": 3, "description": "", "scorer": {"type": "recency"}, "slicer": {"type": "greedy"},
        "placer": {"type": "chronological"}, "deduplication": false, "overflow_strategy": "proceed"}"#,
    r#"{"scorer": {"type": "priority"}, "placer": {"type": "u-shaped"}, "overflow_strategy": "throw"}"#,
    r#"{"scorer": {"type": "kind"}, "slicer": {"type": "knapsack"}, "overflow_strategy": "truncate"}"#,
    r#"{"scorer": {"type": "kind", "weights": {"Memory": 0, "mine": 5}}, "slicer": {"type": "knapsack", "bucket_size": 5, "cell_limit": 50000001}}"#,
    r#"{"scorer": {"type": "tag", "tag_weights": {}}, "slicer": {"type": "knapsack", "memory_limit": 0}}"#,
    r#"{"scorer": {"type": "tag", "tag_weights": {"a": 1, "A": 0.5}, "ignore_case": false}, "slicer": {"type": "group"}}"#,
    r#"{"scorer": {"type": "frequency"}, "slicer": {"type": "group", "score": "mean", "inner": {"type": "knapsack"}}}"#,
    r#"{"scorer": {"type": "reflexive"}, "slicer": {"type": "ladder", "steps": []}}"#,
    r#"{"scorer": {"type": "reflexive"}, "slicer": {"type": "choice"}}"#,
    r#"{"scorer": {"type": "reflexive"}, "slicer": {"type": "choice", "state_limit": 1000}}"#,
    r#"{"scorer": {"type": "reflexive"}, "slicer": {"type": "ladder", "steps": [{"type": "supersede", "levels": [100]}, {"type": "shorten", "kind": "ToolOutput", "levels": [800, 0]}, {"type": "drop"},
        {"type": "shorten", "kind": "ToolOutput", "mandatory": true, "levels": [25]}], "gradual": true, "marker_tokens": 10}}"#,
    r#"{"scorer": {"type": "reflexive"}, "slicer": {"type": "quota", "quotas": [{"kind": "Memory"}, {"kind": "x", "require": 0.5, "cap": 1}]}}"#,
    r#"{"scorer": {"type": "composite", "entries": [{"scorer": {"type": "recency"}}, {"scorer": {"type": "scaled", "inner": {"type": "recency"}}, "weight": 1e-3}]},
        "slicer": {"type": "quota", "quotas": [], "inner": {"type": "rank"}}}"#,
    r#"{"scorer": {"type": "metadata_trust"}, "slicer": {"type": "count_quota", "entries": []}}"#,
    r#"{"scorer": {"type": "metadata_trust", "default_score": 1},
        "slicer": {"type": "count_quota", "entries": [{"kind": "a", "require_count": 0, "cap_count": 0}], "scarcity": "throw", "inner": {"type": "greedy"}}}"#,
    r#"{"scorer": {"type": "metadata_key", "key": "", "value": "", "boost": 0.1},
        "slicer": {"type": "count_constrained_knapsack", "entries": [{"kind": "a", "require_count": 1, "cap_count": 2}], "scarcity": "degrade", "bucket_size": 1}}"#,
    r#"{"scorer": {"type": "product", "scorers": [{"type": "recency"}, {"type": "metadata_key", "key": "k", "value": "v", "boost": 2}]},
        "slicer": {"type": "count_constrained_knapsack", "entries": [], "memory_limit": 100}}"#,
    r#"{"scorer": {"type": "recency"}, "slicer": {"type": "density", "exponent": 0.5}}"#,
    r#"{"scorer": {"type": "recency"}, "slicer": {"type": "near_duplicates", "threshold": 0.9, "shingle_size": 1, "inner": {"type": "rank"}}}"#,
    r#"{"scorer": {"type": "embedding", "table": "tests/config/words.safetensors", "query": "cat"}}"#,
    r#"{"scorer": {"type": "embedding", "vector": [0.5, -1]}, "slicer": {"type": "diversity"}}"#,
    r#"{"scorer": {"type": "recency"}, "slicer": {"type": "diversity", "lambda": 1, "similarity": "vectors", "shingle_size": 2}}"#,
    r#"{"scorer": {"type": "fusion", "entries": [{"scorer": {"type": "recency"}, "weight": 0.4}, {"scorer": {"type": "priority"}}], "method": "shares", "k": 0}}"#,
    r#"{"scorer": {"type": "relevance", "query": "where are the keys", "language": "german", "k1": 0, "b": 1}}"#,
    r#"{"scorer": {"type": "neighbor", "inner": {"type": "recency"}, "near": {"forward": 0.5, "backward": 0}, "wide": {"weight": 1, "decay": 0.9, "power": 2}, "sessions": true}}"#,
    r#"{"scorer": {"type": "conversation", "query": [{"text": "keys"}, {"text": "the task", "weight": 0.5}], "language": "english", "k1": 1, "b": 0.5, "near": {}, "wide": {},
        "sessions": false, "question": {"word_weight": 0, "answer_boost": 1, "speaker_boost": 2, "broad_weight": 1}}}"#,
    r#"{"scorer": {"type": "decay", "curve": {"type": "exponential", "half_life": "24h"}},
        "slicer": {"type": "count_constrained_knapsack", "entries": [], "cell_limit": 60000000}}"#,
    r#"{"scorer": {"type": "decay", "curve": {"type": "exponential", "half_life": 0.5}, "null_timestamp_score": 0}}"#,
    r#"{"scorer": {"type": "decay", "curve": {"type": "window", "max_age": "P1DT12H"}, "reference_time": "2026-01-31T12:00:00.5+01:00"}}"#,
    r#"{"scorer": {"type": "decay", "curve": {"type": "step", "windows": [{"max_age": "1h30m", "score": -1}, {"max_age": "1.5d", "score": 0.5}]}}}"#,
];

const VALID_REQUESTS: &[&str] = &[
    "[]",
    r#"[{"content": "a", "tokens": -1}]"#,
    r#"{"items": [], "budget": {"max_tokens": 0}, "policy": "chat", "$schema": "x"}"#,
    r#"{"items": [], "budget": {"maxTokens": 10, "targetTokens": 5, "outputReserve": 1, "reservedSlots": {"Memory": 1}, "estimationSafetyMarginPercent": 2.5}}"#,
    r#"{"items": [], "budget": {"max_tokens": 10, "target_tokens": null, "output_reserve": null, "reserved_slots": null, "estimation_safety_margin_percent": null}}"#,
    r#"{"items": [{"content": "a", "tokens": 1, "kind": "mine", "source": "Tool", "priority": -3, "tags": ["x", ""], "metadata": {"a": [1, {"b": null}], "c": 0.5},
        "timestamp": "2026-01-31T12:00:00Z", "future_relevance_hint": 0.5, "pinned": true, "original_tokens": 9}], "policy": {"scorer": {"type": "recency"}}}"#,
    r#"{"items": [{"content": "a", "tokens": 1, "kind": null, "source": null, "priority": null, "tags": null, "metadata": null, "timestamp": null,
        "futureRelevanceHint": "NaN", "pinned": null, "originalTokens": null, "views": null}]}"#,
    r#"[{"content": "a", "tokens": 9, "views": [{"content": "b", "tokens": 0}, {"content": "c", "tokens": 8, "level": 10, "value": 1}]}]"#,
];

#[track_caller]
fn check_valid(validator: &Validator, text: &str) {
    let document: Value = serde_json::from_str(text).unwrap();
    let faults: Vec<String> = validator
        .iter_errors(&document)
        .map(|e| e.to_string())
        .collect();
    assert!(faults.is_empty(), "{faults:?} in {text}");
}

#[test]
fn the_schema_accepts_policies_that_the_reader_accepts() {
    let validator = validator(&policy_schema());
    for text in VALID
        .iter()
        .copied()
        .chain(presets().iter().map(Preset::text))
    {
        let policy = Document::parse(text, Format::Json).and_then(|it| it.policy());
        policy.unwrap_or_else(|error| panic!("{error} in {text}"));
        check_valid(&validator, text);
    }
}

#[test]
fn every_row_of_the_registry_round_trips() {
    for text in VALID {
        let config = Document::parse(text, Format::Json).and_then(|it| it.policy_config());
        let config = config.unwrap();
        for format in [Format::Json, Format::Toml, Format::Yaml] {
            let written = config.to_text(format).unwrap();
            let again = Document::parse(&written, format).and_then(|it| it.policy_config());
            assert_eq!(again.as_ref(), Ok(&config), "{written}");
        }
        let strategies = PolicyConfig {
            name: None,
            version: None,
            description: None,
            ..config.clone()
        };
        assert_eq!(PolicyConfig::of(&config.build().unwrap()), Ok(strategies));
    }
}

#[test]
fn the_schema_accepts_requests_that_the_reader_accepts() {
    let validator = validator(&request_schema());
    for text in VALID_REQUESTS {
        let request = Document::parse(text, Format::Json).and_then(|it| it.request());
        request.unwrap_or_else(|error| panic!("{error} in {text}"));
        check_valid(&validator, text);
    }
}

#[test]
fn every_row_of_the_registry_is_in_a_valid_document() {
    use cupel::config::registry::Role;
    for role in Role::ALL {
        for record in role.family().types {
            let tag = format!("\"type\": \"{}\"", record.name);
            let with_tag = VALID.iter().filter(|text| text.contains(&tag));
            let text: String = with_tag.copied().collect();
            assert!(!text.is_empty(), "{tag}");
            for field in record.fields {
                let key = format!("\"{}\"", field.name);
                assert!(text.contains(&key), "{key} of {tag}");
            }
        }
    }
}
