//! The serde form of every type that has one, as JSON.
//!
//! Keys are written in `snake_case`; `camelCase` is accepted as well (R107). Absent values are omitted, and
//! null is read as absent (R108). Model types reject unknown keys, report types ignore them.

use std::collections::HashMap;
use std::fmt::Debug;

use chrono::{DateTime, TimeZone, Utc};
use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, ContextItemBuilder, ContextKind,
    ContextSource, CountQuotaEntry, CountQuotaSlice, CountRequirementShortfall,
    DiagnosticTraceCollector, ExcludedItem, ExclusionReason, GreedySlice, IncludedItem,
    InclusionReason, NullTraceCollector, OverflowEvent, OverflowStrategy, Pipeline, PipelineStage,
    QuotaEntry, ReflexiveScorer, ScarcityBehavior, ScoredItem, SelectionReport, TraceCollector,
    TraceDetailLevel, TraceEvent,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn write(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

#[track_caller]
fn read<T: DeserializeOwned>(json: &str) -> T {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error} in {json}"))
}

/// Checks that `json`, parsed from a string, a reader or a tree, is written as `written`.
#[track_caller]
fn check_rewritten<T: Serialize + DeserializeOwned>(json: &str, written: &str) {
    assert_eq!(write(&read::<T>(json)), written);
    let read: T = serde_json::from_reader(json.as_bytes()).unwrap();
    assert_eq!(write(&read), written);
    let tree: Value = serde_json::from_str(json).unwrap();
    let read: T = serde_json::from_value(tree).unwrap();
    assert_eq!(write(&read), written);
}

/// Checks that the value is written as exactly this JSON and parsed from it.
#[track_caller]
fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, json: &str) {
    assert_eq!(write(value), json);
    assert_eq!(&read::<T>(json), value);
    check_rewritten::<T>(json, json);
}

/// Checks that the JSON is rejected with a message that starts with `message`.
#[track_caller]
fn check_rejected<T: DeserializeOwned>(json: &str, message: &str) {
    match serde_json::from_str::<T>(json) {
        Ok(_) => panic!("{json} is accepted"),
        Err(error) => assert!(
            error.to_string().starts_with(message),
            "{error}\n  is not\n{message}"
        ),
    }
}

/// Checks that the JSON is rejected with a message that names the field.
#[track_caller]
fn check_field_named<T: DeserializeOwned>(json: &str, field: &str) {
    match serde_json::from_str::<T>(json) {
        Ok(_) => panic!("{json} is accepted"),
        Err(error) => assert!(
            error.to_string().contains(&format!("`{field}`")),
            "{error} does not name {field}"
        ),
    }
}

/// Checks that exactly these keys of the object are required and not nullable.
#[track_caller]
fn check_required<T: Serialize + DeserializeOwned>(json: &str, required: &[&str]) {
    read::<T>(json);
    let whole: serde_json::Map<String, Value> = read(json);
    for key in whole.keys() {
        let mut without = whole.clone();
        without.remove(key);
        let mut nulled = whole.clone();
        nulled.insert(key.clone(), Value::Null);
        for (change, object) in [("without", without), ("with null for", nulled)] {
            let outcome = serde_json::from_str::<T>(&write(&object));
            assert_eq!(
                outcome.is_err(),
                required.contains(&key.as_str()),
                "{change} {key}: {:?}",
                outcome.err().map(|error| error.to_string())
            );
        }
    }
}

/// Converts every key to `camelCase`, at every depth except below `metadata`.
fn camel_case(json: &str) -> String {
    fn rename(value: Value) -> Value {
        match value {
            Value::Object(fields) => fields
                .into_iter()
                .map(|(key, value)| {
                    let value = if key == "metadata" {
                        value
                    } else {
                        rename(value)
                    };
                    (camel(&key), value)
                })
                .collect(),
            Value::Array(values) => values.into_iter().map(rename).collect(),
            other => other,
        }
    }
    fn camel(key: &str) -> String {
        let mut words = key.split('_');
        let mut name = words.next().unwrap_or_default().to_string();
        for word in words {
            let (first, rest) = word.split_at(1);
            name.push_str(&first.to_uppercase());
            name.push_str(rest);
        }
        name
    }
    write(&rename(read(json)))
}

/// Checks that the JSON with `camelCase` keys is parsed to the same value.
#[track_caller]
fn check_camel_case<T: Serialize + DeserializeOwned>(json: &str) {
    let renamed = camel_case(json);
    assert_ne!(renamed, json, "no key has two words");
    check_rewritten::<T>(&renamed, json);
}

fn item(content: &str, tokens: i64) -> ContextItem {
    ContextItemBuilder::new(content, tokens).build().unwrap()
}

#[test]
fn every_serializable_type_can_be_written_and_read() {
    fn assert_serde<T: Serialize + DeserializeOwned>() {}

    assert_serde::<ContextBudget>();
    assert_serde::<ContextItem>();
    assert_serde::<ContextKind>();
    assert_serde::<ContextSource>();
    assert_serde::<OverflowStrategy>();
    assert_serde::<ScoredItem>();
    assert_serde::<CountRequirementShortfall>();
    assert_serde::<PipelineStage>();
    assert_serde::<TraceEvent>();
    assert_serde::<OverflowEvent>();
    assert_serde::<ExclusionReason>();
    assert_serde::<InclusionReason>();
    assert_serde::<IncludedItem>();
    assert_serde::<ExcludedItem>();
    assert_serde::<SelectionReport>();
    assert_serde::<TraceDetailLevel>();
    assert_serde::<NullTraceCollector>();
    assert_serde::<DiagnosticTraceCollector>();
    assert_serde::<QuotaEntry>();
}

// ---- kinds, sources, plain enumerations ----

// proves: ENUM-1, ENUM-7, R020
#[test]
fn kinds_and_sources_are_strings() {
    check(&ContextKind::memory(), r#""Memory""#);
    check(&ContextSource::new("weB").unwrap(), r#""weB""#);
    check_rewritten::<ContextKind>(r#""mEMORY""#, r#""mEMORY""#);
    check_rewritten::<ContextKind>(r#""\u00fcber \"x\"""#, r#""über \"x\"""#);
}

// proves: ENUM-5, ENUM-10
#[test]
fn blank_kinds_and_sources_are_rejected_with_the_message_of_the_constructor() {
    for blank in [r#""""#, r#"" \t""#] {
        check_rejected::<ContextKind>(
            blank,
            "kind must be a non-empty, non-whitespace-only string",
        );
        check_rejected::<ContextSource>(
            blank,
            "source must be a non-empty, non-whitespace-only string",
        );
    }
    check_rejected::<ContextKind>("null", "invalid type: null");
    check_rejected::<ContextSource>("7", "invalid type: integer");
}

#[test]
fn a_kind_is_a_map_key() {
    let map = HashMap::from([(ContextKind::memory(), 3)]);
    check(&map, r#"{"Memory":3}"#);
}

// proves: ENUM-11
#[test]
fn strategies_and_levels_are_their_names() {
    check(&OverflowStrategy::Throw, r#""Throw""#);
    check(&OverflowStrategy::Truncate, r#""Truncate""#);
    check(&OverflowStrategy::Proceed, r#""Proceed""#);
    check(&TraceDetailLevel::Stage, r#""Stage""#);
    check(&TraceDetailLevel::Item, r#""Item""#);
    check_rejected::<OverflowStrategy>(r#""throw""#, "unknown variant `throw`");
    check_rejected::<TraceDetailLevel>(r#""Token""#, "unknown variant `Token`");
}

// proves: EVENT-5
#[test]
fn stages_are_their_names() {
    check(&PipelineStage::Classify, r#""Classify""#);
    check(&PipelineStage::Score, r#""Score""#);
    check(&PipelineStage::Deduplicate, r#""Deduplicate""#);
    check(&PipelineStage::Slice, r#""Slice""#);
    check(&PipelineStage::Place, r#""Place""#);
}

// proves: EVENT-9, R105
#[test]
fn an_unknown_stage_keeps_its_name() {
    for json in [r#""Sort""#, r#""classify""#, r#""Re-rank \"2\"""#] {
        check_rewritten::<PipelineStage>(json, json);
        assert_ne!(read::<PipelineStage>(json), PipelineStage::Classify);
        assert_eq!(read::<PipelineStage>(json), read::<PipelineStage>(json));
    }
    assert_ne!(
        read::<PipelineStage>(r#""Sort""#),
        read::<PipelineStage>(r#""Rerank""#)
    );
    check_rejected::<PipelineStage>("7", "invalid type: integer");
}

// ---- items ----

/// An item with every field.
const RICH_ITEM: &str = concat!(
    r#"{"content":"text","tokens":3,"kind":"Document","source":"Rag","priority":-4,"#,
    r#""tags":["b","a","b"],"metadata":{"a":"1","b":"2"},"timestamp":"2024-06-01T12:00:00Z","#,
    r#""future_relevance_hint":0.5,"pinned":true,"original_tokens":9}"#
);

/// An item with only the required fields.
const PLAIN_ITEM: &str = concat!(
    r#"{"content":"text","tokens":3,"kind":"Message","source":"Chat","#,
    r#""tags":[],"metadata":{},"pinned":false}"#
);

fn noon() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2024, 6, 1, 12, 0, 0).unwrap()
}

fn rich_item() -> ContextItem {
    ContextItemBuilder::new("text", 3)
        .kind(ContextKind::document())
        .source(ContextSource::new(ContextSource::RAG).unwrap())
        .priority(-4)
        .tags(["b", "a", "b"].map(String::from).to_vec())
        .metadata(
            [("b", "2"), ("a", "1")]
                .map(|(k, v)| (k.into(), v.into()))
                .into(),
        )
        .timestamp(noon())
        .future_relevance_hint(0.5)
        .pinned(true)
        .original_tokens(9)
        .build()
        .unwrap()
}

// proves: R107, R108
#[test]
fn an_item_is_written_without_absent_fields() {
    check(&rich_item(), RICH_ITEM);
    check(&item("text", 3), PLAIN_ITEM);
}

// proves: ITEM-5, ITEM-6, ITEM-7, ITEM-8, ITEM-9, ITEM-10, ITEM-11, ITEM-12, ITEM-13, R108
#[test]
fn an_item_requires_only_content_and_tokens() {
    check_required::<ContextItem>(RICH_ITEM, &["content", "tokens"]);
    check_rewritten::<ContextItem>(r#"{"content":"text","tokens":3}"#, PLAIN_ITEM);
    check_rewritten::<ContextItem>(
        r#"{"content":"text","tokens":3,"kind":null,"source":null,"priority":null,"tags":null,
            "metadata":null,"timestamp":null,"future_relevance_hint":null,"pinned":null,
            "original_tokens":null}"#,
        PLAIN_ITEM,
    );
}

// proves: R107
#[test]
fn an_item_is_read_in_camel_case() {
    check_camel_case::<ContextItem>(RICH_ITEM);
}

// proves: ITEM-1, ITEM-2, ENUM-5, ENUM-10
#[test]
fn an_invalid_item_is_rejected_with_the_message_of_the_constructor() {
    check_rejected::<ContextItem>(r#"{"content":"","tokens":3}"#, "content must be non-empty");
    check_rejected::<ContextItem>(
        r#"{"content":"text","tokens":3,"kind":" "}"#,
        "kind must be a non-empty, non-whitespace-only string",
    );
    check_rejected::<ContextItem>(
        r#"{"content":"text","tokens":3,"source":""}"#,
        "source must be a non-empty, non-whitespace-only string",
    );
    check_field_named::<ContextItem>(r#"{"tokens":3}"#, "content");
    check_field_named::<ContextItem>(r#"{"content":"text"}"#, "tokens");
    check_field_named::<ContextItem>(r#"{"content":"text","tokens":3,"colour":"red"}"#, "colour");
}

#[test]
fn an_item_can_be_an_array() {
    let item: ContextItem = read(r#"["text",3]"#);
    assert_eq!(write(&item), PLAIN_ITEM);
}

// proves: ITEM-3
#[test]
fn every_token_count_round_trips() {
    for tokens in [i64::MIN, -1, 0, i64::MAX] {
        let item = item("text", tokens);
        assert_eq!(read::<ContextItem>(&write(&item)), item);
    }
}

// proves: ITEM-17, R019
#[test]
fn a_timestamp_is_read_at_any_offset_and_written_in_utc() {
    for (given, written) in [
        ("2024-06-01T12:00:00Z", "2024-06-01T12:00:00Z"),
        ("2024-06-01T14:00:00+02:00", "2024-06-01T12:00:00Z"),
        ("2024-05-31T23:30:00.250-12:30", "2024-06-01T12:00:00.250Z"),
    ] {
        let json = format!(r#"{{"content":"text","tokens":3,"timestamp":"{given}"}}"#);
        let item: ContextItem = read(&json);
        assert!(write(&item).contains(&format!(r#""timestamp":"{written}""#)));
    }
    assert!(
        serde_json::from_str::<ContextItem>(
            r#"{"content":"text","tokens":3,"timestamp":"2024-06-01T12:00:00"}"#
        )
        .is_err()
    );
}

// proves: R015, TRUST-14
#[test]
fn metadata_values_become_strings_and_null_drops_the_key() {
    let item: ContextItem = read(
        r#"{"content":"text","tokens":3,"metadata":{
            "cupel:trust": 0.85, "whole": 7, "negative": -7, "huge": 18446744073709551615,
            "yes": true, "no": false, "text": "as it is", "empty": "", "nothing": null,
            "list": [1, "two", null], "tree": {"leaf": {"deep": 1.5}}}}"#,
    );
    let mut read: Vec<_> = item.metadata().iter().collect();
    read.sort_unstable();
    let expected = [
        ("cupel:trust", "0.85"),
        ("empty", ""),
        ("huge", "18446744073709551615"),
        ("list", r#"[1,"two",null]"#),
        ("negative", "-7"),
        ("no", "false"),
        ("text", "as it is"),
        ("tree", r#"{"leaf":{"deep":1.5}}"#),
        ("whole", "7"),
        ("yes", "true"),
    ];
    let pairs: Vec<_> = read
        .into_iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    assert_eq!(pairs, expected);
}

// proves: ITEM-11, R109
#[test]
fn a_hint_that_is_not_finite_is_a_string() {
    for (hint, text) in [
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
    ] {
        let item = ContextItemBuilder::new("text", 3)
            .future_relevance_hint(hint)
            .build()
            .unwrap();
        let json = PLAIN_ITEM.replace(
            r#""pinned""#,
            &format!(r#""future_relevance_hint":"{text}","pinned""#),
        );
        assert_eq!(write(&item), json);
        check_rewritten::<ContextItem>(&json, &json);
        let back = read::<ContextItem>(&json).future_relevance_hint();
        assert!(back.is_some_and(|back| back == hint || back.is_nan() && hint.is_nan()));
    }
    assert!(
        serde_json::from_str::<ContextItem>(
            r#"{"content":"text","tokens":3,"future_relevance_hint":"much"}"#
        )
        .is_err()
    );
}

#[test]
fn maps_are_written_in_key_order() {
    let names: Vec<String> = (0..40).map(|n| format!("Key{n:02}")).collect();
    let item = |keys: &[String]| {
        let metadata = keys.iter().map(|key| (key.clone(), key.clone()));
        let builder = ContextItemBuilder::new("text", 3).metadata(metadata.collect());
        write(&builder.build().unwrap())
    };
    let budget = |keys: &[String]| {
        let slots = keys.iter().map(|key| (ContextKind::new(key).unwrap(), 1));
        write(&ContextBudget::new(100, 100, 0, slots.collect(), 0.0).unwrap())
    };
    let backwards: Vec<String> = names.iter().rev().cloned().collect();
    assert_eq!(item(&names), item(&backwards));
    assert_eq!(budget(&names), budget(&backwards));
    for json in [item(&backwards), budget(&backwards)] {
        let places: Vec<_> = names.iter().map(|name| json.find(name.as_str())).collect();
        assert!(places.is_sorted(), "{json}");
    }
}

// ---- scored items and quotas ----

// proves: ENUM-17, R109
#[test]
fn a_scored_item_has_item_and_score() {
    for score in ["0.5", "-3.0", r#""NaN""#, r#""inf""#, r#""-inf""#] {
        let json = format!(r#"{{"item":{PLAIN_ITEM},"score":{score}}}"#);
        check_rewritten::<ScoredItem>(&json, &json);
    }
    let json = format!(r#"{{"item":{PLAIN_ITEM},"score":0.5}}"#);
    let pair: ScoredItem = read(&json);
    assert_eq!((pair.item, pair.score), (item("text", 3), 0.5));
    check_required::<ScoredItem>(&json, &["item", "score"]);
    check_field_named::<ScoredItem>(&with_unknown_key(&json), "unknown");
}

// proves: QUOTA-1, QUOTA-2
#[test]
fn a_quota_has_kind_require_and_cap() {
    let json = r#"{"kind":"Memory","require":10.0,"cap":50.5}"#;
    let quota = QuotaEntry::new(ContextKind::memory(), 10.0, 50.5).unwrap();
    assert_eq!(write(&quota), json);
    check_rewritten::<QuotaEntry>(json, json);
    check_rewritten::<QuotaEntry>(r#"{"cap":50.5,"kind":"Memory","require":10}"#, json);
    check_required::<QuotaEntry>(json, &["kind", "require", "cap"]);
    check_rejected::<QuotaEntry>(
        r#"{"kind":"Memory","require":20,"cap":10.5}"#,
        "invalid slicer configuration: require (20) must be <= cap (10.5)",
    );
    check_rejected::<QuotaEntry>(
        r#"{"kind":"Memory","require":0,"cap":101}"#,
        "invalid slicer configuration: cap (101) must be in [0.0, 100.0]",
    );
    check_field_named::<QuotaEntry>(
        r#"{"kind":"Memory","require":0,"cap":1,"floor":0}"#,
        "floor",
    );
}

// ---- budgets ----

const BUDGET: &str = concat!(
    r#"{"max_tokens":100,"target_tokens":80,"output_reserve":10,"#,
    r#""reserved_slots":{"Document":20,"Memory":30},"estimation_safety_margin_percent":12.5}"#
);

/// Returns the JSON of a budget of two limits.
fn bare_budget(max: i64, target: i64) -> String {
    format!(
        r#"{{"max_tokens":{max},"target_tokens":{target},"output_reserve":0,"reserved_slots":{{}},"estimation_safety_margin_percent":0.0}}"#
    )
}

// proves: R107
#[test]
fn a_budget_has_five_fields() {
    let slots = HashMap::from([(ContextKind::memory(), 30), (ContextKind::document(), 20)]);
    check(
        &ContextBudget::new(100, 80, 10, slots, 12.5).unwrap(),
        BUDGET,
    );
    check_camel_case::<ContextBudget>(BUDGET);
}

// proves: BUDGET-1, BUDGET-2, BUDGET-9, R030, R108
#[test]
fn a_budget_requires_only_its_limits() {
    check_required::<ContextBudget>(BUDGET, &["max_tokens", "target_tokens"]);
    check_rewritten::<ContextBudget>(
        r#"{"max_tokens":100,"target_tokens":80}"#,
        &bare_budget(100, 80),
    );
    check_field_named::<ContextBudget>(r#"{"target_tokens":80}"#, "max_tokens");
    check_field_named::<ContextBudget>(r#"{"max_tokens":80}"#, "target_tokens");
    check_field_named::<ContextBudget>(
        r#"{"max_tokens":80,"target_tokens":80,"currency":"tokens"}"#,
        "currency",
    );
}

// proves: BUDGET-1, BUDGET-2, BUDGET-3, BUDGET-4, BUDGET-5, BUDGET-6, BUDGET-7, BUDGET-8
#[test]
fn an_invalid_budget_is_rejected_with_the_message_of_the_constructor() {
    for (fields, text) in [
        (
            r#""max_tokens":-1,"target_tokens":0"#,
            "max_tokens (-1) must be >= 0",
        ),
        (
            r#""max_tokens":1,"target_tokens":-1"#,
            "target_tokens (-1) must be >= 0",
        ),
        (
            r#""max_tokens":1,"target_tokens":2"#,
            "target_tokens (2) must be <= max_tokens (1)",
        ),
        (
            r#""max_tokens":1,"target_tokens":1,"output_reserve":-1"#,
            "output_reserve (-1) must be >= 0",
        ),
        (
            r#""max_tokens":1,"target_tokens":1,"output_reserve":2"#,
            "output_reserve (2) must be <= max_tokens (1)",
        ),
        (
            r#""max_tokens":1,"target_tokens":1,"estimation_safety_margin_percent":100.5"#,
            "estimation_safety_margin_percent (100.5) must be in [0.0, 100.0]",
        ),
        (
            r#""max_tokens":1,"target_tokens":1,"reserved_slots":{"Memory":-1}"#,
            "reserved slot count for kind 'Memory' must be >= 0",
        ),
    ] {
        check_rejected::<ContextBudget>(
            &format!("{{{fields}}}"),
            &format!("invalid budget: {text}"),
        );
    }
    check_rejected::<ContextBudget>(
        r#"{"max_tokens":1,"target_tokens":1,"reserved_slots":{" ":1}}"#,
        "kind must be a non-empty, non-whitespace-only string",
    );
}

// proves: BUDGET-10
#[test]
fn duplicate_slots_keep_the_last_value_and_the_first_spelling() {
    let budget: ContextBudget =
        read(r#"{"max_tokens":9,"target_tokens":9,"reserved_slots":{"memory":1,"MEMORY":2}}"#);
    assert_eq!(
        write(&budget),
        bare_budget(9, 9).replace("{}", r#"{"memory":2}"#)
    );
}

// ---- reasons ----

// proves: EXCL-2, EXCL-3, EXCL-4, EXCL-5, EXCL-6, EXCL-7, EXCL-8, EXCL-9, EXCL-10, EXCL-11, EXCL-15, EXCL-16, R106
#[test]
fn an_exclusion_reason_has_its_name_and_its_fields() {
    check(
        &ExclusionReason::BudgetExceeded {
            item_tokens: 2048,
            available_tokens: -512,
        },
        r#"{"reason":"BudgetExceeded","item_tokens":2048,"available_tokens":-512}"#,
    );
    check(
        &ExclusionReason::ScoredTooLow {
            score: 0.12,
            threshold: 0.25,
        },
        r#"{"reason":"ScoredTooLow","score":0.12,"threshold":0.25}"#,
    );
    check(
        &ExclusionReason::Deduplicated {
            deduplicated_against: "text".to_string(),
        },
        r#"{"reason":"Deduplicated","deduplicated_against":"text"}"#,
    );
    check(
        &ExclusionReason::QuotaCapExceeded {
            kind: "ToolOutput".to_string(),
            cap: 3,
            actual: 4,
        },
        r#"{"reason":"QuotaCapExceeded","kind":"ToolOutput","cap":3,"actual":4}"#,
    );
    check(
        &ExclusionReason::QuotaRequireDisplaced {
            displaced_by_kind: "SystemPrompt".to_string(),
        },
        r#"{"reason":"QuotaRequireDisplaced","displaced_by_kind":"SystemPrompt"}"#,
    );
    check(
        &ExclusionReason::NegativeTokens { tokens: -1 },
        r#"{"reason":"NegativeTokens","tokens":-1}"#,
    );
    check(
        &ExclusionReason::PinnedOverride {
            displaced_by: "rules".to_string(),
        },
        r#"{"reason":"PinnedOverride","displaced_by":"rules"}"#,
    );
    check(
        &ExclusionReason::Filtered {
            filter_name: "max_age_filter".to_string(),
        },
        r#"{"reason":"Filtered","filter_name":"max_age_filter"}"#,
    );
    check(
        &ExclusionReason::CountCapExceeded {
            kind: "Memory".to_string(),
            cap: 1,
            count: 2,
        },
        r#"{"reason":"CountCapExceeded","kind":"Memory","cap":1,"count":2}"#,
    );
    check(
        &ExclusionReason::CountRequireCandidatesExhausted {
            kind: "Memory".to_string(),
        },
        r#"{"reason":"CountRequireCandidatesExhausted","kind":"Memory"}"#,
    );
    check(
        &ExclusionReason::GroupExcluded {
            group_size: 3,
            group_tokens: 812,
            available_tokens: -4,
        },
        r#"{"reason":"GroupExcluded","group_size":3,"group_tokens":812,"available_tokens":-4}"#,
    );
    check(
        &ExclusionReason::RankedBelow {
            item_tokens: 40,
            blocking_tokens: 163,
            available_tokens: 149,
        },
        r#"{"reason":"RankedBelow","item_tokens":40,"blocking_tokens":163,"available_tokens":149}"#,
    );
    let unknown = r#"{"reason":"_Unknown"}"#;
    assert_eq!(write(&ExclusionReason::_Unknown), unknown);
    check_rewritten::<ExclusionReason>(unknown, unknown);
}

#[test]
fn the_reason_of_a_similar_item_has_its_name_and_its_fields() {
    check(
        &ExclusionReason::NearDuplicate {
            similar_to: "text".into(),
            similarity: 0.875,
        },
        r#"{"reason":"NearDuplicate","similar_to":"text","similarity":0.875}"#,
    );
    check(
        &ExclusionReason::Redundant {
            gain: 0.25,
            similar_to: "text".into(),
            similarity: 0.5,
        },
        r#"{"reason":"Redundant","gain":0.25,"similar_to":"text","similarity":0.5}"#,
    );
    check(
        &ExclusionReason::Superseded {
            superseded_by: "text".into(),
        },
        r#"{"reason":"Superseded","superseded_by":"text"}"#,
    );
}

// proves: R109
#[test]
fn scores_of_a_reason_are_never_null() {
    let json = r#"{"reason":"ScoredTooLow","score":"NaN","threshold":"inf"}"#;
    let reason = ExclusionReason::ScoredTooLow {
        score: f64::NAN,
        threshold: f64::INFINITY,
    };
    assert_eq!(write(&reason), json);
    check_rewritten::<ExclusionReason>(json, json);
}

// proves: R107
#[test]
fn an_exclusion_reason_is_read_in_camel_case_in_any_order_with_unknown_fields() {
    for json in [
        r#"{"reason":"BudgetExceeded","item_tokens":1,"available_tokens":2}"#,
        r#"{"reason":"Deduplicated","deduplicated_against":"text"}"#,
        r#"{"reason":"QuotaRequireDisplaced","displaced_by_kind":"Memory"}"#,
        r#"{"reason":"PinnedOverride","displaced_by":"rules"}"#,
        r#"{"reason":"Filtered","filter_name":"age"}"#,
        r#"{"reason":"GroupExcluded","group_size":3,"group_tokens":9,"available_tokens":1}"#,
        r#"{"reason":"RankedBelow","item_tokens":3,"blocking_tokens":9,"available_tokens":1}"#,
    ] {
        check_camel_case::<ExclusionReason>(json);
    }
    check_rewritten::<ExclusionReason>(
        r#"{"tokens":-1,"note":{"deep":[1]},"reason":"NegativeTokens"}"#,
        r#"{"reason":"NegativeTokens","tokens":-1}"#,
    );
}

// proves: EXCL-11
#[test]
fn a_known_exclusion_reason_requires_its_fields() {
    type Reason = ExclusionReason;
    for (json, field) in [
        (r#"{"item_tokens":1,"available_tokens":2}"#, "reason"),
        (
            r#"{"reason":"BudgetExceeded","item_tokens":1}"#,
            "available_tokens",
        ),
        (
            r#"{"reason":"BudgetExceeded","item_tokens":"many","available_tokens":2}"#,
            "item_tokens",
        ),
        (
            r#"{"reason":"BudgetExceeded","item_tokens":1.5,"available_tokens":2}"#,
            "item_tokens",
        ),
        (
            r#"{"reason":"BudgetExceeded","item_tokens":1,"available_tokens":null}"#,
            "available_tokens",
        ),
        (r#"{"reason":"ScoredTooLow","score":0.5}"#, "threshold"),
        (
            r#"{"reason":"ScoredTooLow","score":[],"threshold":0.5}"#,
            "score",
        ),
        (r#"{"reason":"Deduplicated"}"#, "deduplicated_against"),
        (
            r#"{"reason":"Deduplicated","deduplicated_against":7}"#,
            "deduplicated_against",
        ),
        (
            r#"{"reason":"QuotaCapExceeded","kind":"Memory","actual":1}"#,
            "cap",
        ),
        (
            r#"{"reason":"QuotaRequireDisplaced","displaced_by":"x"}"#,
            "displaced_by_kind",
        ),
        (
            r#"{"reason":"NegativeTokens","tokens":9223372036854775808}"#,
            "tokens",
        ),
        (r#"{"reason":"PinnedOverride"}"#, "displaced_by"),
        (r#"{"reason":"Filtered"}"#, "filter_name"),
        (
            r#"{"reason":"CountCapExceeded","kind":"Memory","cap":-1,"count":1}"#,
            "cap",
        ),
        (r#"{"reason":"CountRequireCandidatesExhausted"}"#, "kind"),
        (
            r#"{"reason":"GroupExcluded","group_size":2,"group_tokens":3}"#,
            "available_tokens",
        ),
    ] {
        check_field_named::<Reason>(json, field);
    }
    for json in [
        r#"{"reason":7}"#,
        r#"{"reason":null}"#,
        "{}",
        r#""Filtered""#,
    ] {
        assert!(serde_json::from_str::<Reason>(json).is_err(), "{json}");
    }
}

/// Checks that the value is equal as a JSON tree when it is written again.
#[track_caller]
fn check_same_tree<T: Serialize + DeserializeOwned>(json: &str) {
    let (before, after): (Value, Value) = (read(json), read(&write(&read::<T>(json))));
    assert_eq!(before, after);
    let through_a_tree: T = serde_json::from_value(before.clone()).unwrap();
    assert_eq!(serde_json::to_value(&through_a_tree).unwrap(), before);
}

// proves: EXCL-14, R105
#[test]
fn an_unknown_exclusion_reason_keeps_its_name_and_its_fields() {
    for json in [
        r#"{"reason":"RateLimited"}"#,
        r#"{"limit":3,"reason":"RateLimited","item_tokens":"as text"}"#,
        r#"{"reason":"RateLimited","none":null,"yes":true,"whole":7,"negative":-7,"one":1.0,
            "half":0.5,"tiny":1e-300,"huge":18446744073709551615,"text":"\u00fc\"\n",
            "list":[1,[2,{"three":3}],null],"tree":{"reason":"inner","empty":{},"none":[]}}"#,
        r#"{"reason":"budgetExceeded","item_tokens":1}"#,
        r#"{"reason":"","x":1}"#,
        r#"{"reason":"_Unknown","x":{"y":2}}"#,
    ] {
        check_same_tree::<ExclusionReason>(json);
        assert_eq!(read::<ExclusionReason>(json), read::<ExclusionReason>(json));
    }
    assert_ne!(
        read::<ExclusionReason>(r#"{"reason":"RateLimited","limit":3}"#),
        read::<ExclusionReason>(r#"{"reason":"RateLimited","limit":4}"#)
    );
}

// proves: EXCL-15, EXCL-17
#[test]
fn an_inclusion_reason_is_an_object_with_its_name() {
    check(&InclusionReason::Scored, r#"{"reason":"Scored"}"#);
    check(&InclusionReason::Pinned, r#"{"reason":"Pinned"}"#);
    check(&InclusionReason::ZeroToken, r#"{"reason":"ZeroToken"}"#);
    check_rewritten::<InclusionReason>(
        r#"{"why":["not"],"reason":"Scored"}"#,
        r#"{"reason":"Scored"}"#,
    );
    for json in [r#""Scored""#, "{}", r#"{"reason":7}"#, r#"{"reason":null}"#] {
        assert!(
            serde_json::from_str::<InclusionReason>(json).is_err(),
            "{json}"
        );
    }
}

// proves: EXCL-17, R105
#[test]
fn an_unknown_inclusion_reason_keeps_its_name() {
    let json = r#"{"reason":"Lucky"}"#;
    check_rewritten::<InclusionReason>(json, json);
    let lucky: InclusionReason = read(json);
    assert_ne!(lucky, InclusionReason::Scored);
    assert_eq!(lucky, read(json));
}

// ---- report entries ----

// proves: REPORT-14, REPORT-15, R109
#[test]
fn an_entry_has_item_score_and_reason() {
    for score in ["0.9", r#""NaN""#, r#""inf""#, r#""-inf""#] {
        let included =
            format!(r#"{{"item":{PLAIN_ITEM},"score":{score},"reason":{{"reason":"Scored"}}}}"#);
        check_rewritten::<IncludedItem>(&included, &included);
        let excluded = format!(
            r#"{{"item":{PLAIN_ITEM},"score":{score},"reason":{{"reason":"NegativeTokens","tokens":-1}}}}"#
        );
        check_rewritten::<ExcludedItem>(&excluded, &excluded);
    }
}

// proves: R108, R109
#[test]
fn an_entry_requires_its_three_fields_and_ignores_others() {
    let all = ["item", "score", "reason"];
    let included = format!(r#"{{"item":{PLAIN_ITEM},"score":0.9,"reason":{{"reason":"Scored"}}}}"#);
    let excluded =
        format!(r#"{{"item":{PLAIN_ITEM},"score":0.9,"reason":{{"reason":"Odd","x":[1]}}}}"#);
    check_required::<IncludedItem>(&included, &all);
    check_required::<ExcludedItem>(&excluded, &all);
    check_rewritten::<IncludedItem>(&with_unknown_key(&included), &included);
    check_rewritten::<ExcludedItem>(&with_unknown_key(&excluded), &excluded);

    let entry: IncludedItem = read(&included);
    assert_eq!(entry.item, item("text", 3));
    assert_eq!((entry.score, entry.reason), (0.9, InclusionReason::Scored));
}

/// Returns the object with an unknown key in front.
fn with_unknown_key(json: &str) -> String {
    json.replacen('{', r#"{"unknown":{"key":[null]},"#, 1)
}

// ---- events and shortfalls ----

// proves: EVENT-4, R108
#[test]
fn an_event_without_message_has_no_message_key() {
    let silent = r#"{"stage":"Score","duration_ms":12.4,"item_count":47}"#;
    let telling = concat!(
        r#"{"stage":"Slice","duration_ms":0.0,"item_count":1,"#,
        r#""message":"BudgetExceeded: 2048 tokens requested, 512 available"}"#
    );
    for json in [silent, telling] {
        check_rewritten::<TraceEvent>(json, json);
        check_rewritten::<TraceEvent>(&with_unknown_key(json), json);
        check_camel_case::<TraceEvent>(json);
    }
    check_required::<TraceEvent>(telling, &["stage", "duration_ms", "item_count"]);

    let event: TraceEvent = read(silent);
    assert_eq!(event.stage, PipelineStage::Score);
    assert_eq!((event.duration_ms, event.item_count), (12.4, 47));
    assert_eq!(event.message, None);
}

// proves: EVENT-9, R105
#[test]
fn an_event_of_an_unknown_stage_round_trips() {
    let json = r#"{"stage":"Rerank","duration_ms":1.5,"item_count":2}"#;
    check_rewritten::<TraceEvent>(json, json);
}

// proves: EVENT-14, R107
#[test]
fn the_overflow_event_of_the_specification_is_accepted() {
    let event: OverflowEvent = read(
        r#"{
            "tokens_over_budget": 384,
            "overflowing_items": [
                { "content": "...", "tokens": 512, "kind": "Message" },
                { "content": "...", "tokens": 1024, "kind": "ToolOutput" }
            ],
            "budget": { "maxTokens": 4096, "targetTokens": 3072 }
        }"#,
    );
    assert_eq!(event.tokens_over_budget, 384);
    assert_eq!(
        event.overflowing_items[1].kind(),
        &ContextKind::tool_output()
    );
    assert_eq!(
        event.budget,
        ContextBudget::new(4096, 3072, 0, HashMap::new(), 0.0).unwrap()
    );
}

// proves: EVENT-14
#[test]
fn an_overflow_event_has_three_fields() {
    let budget = bare_budget(4, 2);
    let json = format!(
        r#"{{"tokens_over_budget":1,"overflowing_items":[{PLAIN_ITEM}],"budget":{budget}}}"#
    );
    check_rewritten::<OverflowEvent>(&json, &json);
    check_rewritten::<OverflowEvent>(&with_unknown_key(&json), &json);
    check_camel_case::<OverflowEvent>(&json);
    check_required::<OverflowEvent>(
        &json,
        &["tokens_over_budget", "overflowing_items", "budget"],
    );
}

#[test]
fn a_shortfall_has_three_fields() {
    let json = r#"{"kind":"Tool","required_count":3,"satisfied_count":1}"#;
    let shortfall: CountRequirementShortfall = read(json);
    assert_eq!(shortfall.kind, "Tool");
    assert_eq!(
        (shortfall.required_count, shortfall.satisfied_count),
        (3, 1)
    );
    check(&shortfall, json);
    check_rewritten::<CountRequirementShortfall>(&with_unknown_key(json), json);
    check_camel_case::<CountRequirementShortfall>(json);
    check_required::<CountRequirementShortfall>(
        json,
        &["kind", "required_count", "satisfied_count"],
    );
}

// ---- reports ----

/// Returns the JSON of a report with one entry in every list.
fn report_text() -> String {
    format!(
        concat!(
            r#"{{"events":[{{"stage":"Classify","duration_ms":0.25,"item_count":2}}],"#,
            r#""included":[{{"item":{item},"score":0.9,"reason":{{"reason":"Scored"}}}}],"#,
            r#""excluded":[{{"item":{item},"score":0.4,"reason":{{"reason":"Deduplicated","#,
            r#""deduplicated_against":"text"}}}}],"#,
            r#""total_candidates":2,"total_tokens_considered":6,"#,
            r#""count_requirement_shortfalls":[{{"kind":"Tool","required_count":3,"#,
            r#""satisfied_count":1}}]}}"#
        ),
        item = PLAIN_ITEM
    )
}

// proves: REPORT-17, R107, R108
#[test]
fn a_report_has_six_fields() {
    let json = report_text();
    check(&read::<SelectionReport>(&json), &json);
    check_rewritten::<SelectionReport>(&with_unknown_key(&json), &json);
    check_camel_case::<SelectionReport>(&json);
    check_required::<SelectionReport>(
        &json,
        &[
            "events",
            "included",
            "excluded",
            "total_candidates",
            "total_tokens_considered",
        ],
    );
}

/// Returns the JSON of a report with one excluded item, these totals and no list of shortfalls.
fn report_with_totals(candidates: usize, tokens: i64) -> String {
    format!(
        concat!(
            r#"{{"events":[],"included":[],"excluded":[{{"item":{item},"score":0.0,"#,
            r#""reason":{{"reason":"NegativeTokens","tokens":-1}}}}],"#,
            r#""total_candidates":{candidates},"total_tokens_considered":{tokens}}}"#
        ),
        item = PLAIN_ITEM,
        candidates = candidates,
        tokens = tokens
    )
}

// proves: REPORT-2, REPORT-6, REPORT-17
#[test]
fn a_report_without_shortfalls_has_an_empty_list() {
    let json = report_with_totals(1, 3);
    let report: SelectionReport = read(&json);
    assert!(report.count_requirement_shortfalls.is_empty());
    let written = json.strip_suffix('}').unwrap().to_string();
    check_rewritten::<SelectionReport>(
        &json,
        &(written + r#","count_requirement_shortfalls":[]}"#),
    );
}

// proves: REPORT-6, R095
#[test]
fn a_report_with_a_wrong_number_of_candidates_is_rejected() {
    check_rejected::<SelectionReport>(
        &report_with_totals(5, 3),
        "total_candidates 5 does not equal included.len() 0 + excluded.len() 1",
    );
    check_rejected::<SelectionReport>(
        &report_text().replace(r#""total_candidates":2"#, r#""total_candidates":3"#),
        "total_candidates 3 does not equal included.len() 1 + excluded.len() 1",
    );
}

// proves: R095
#[test]
fn a_report_with_a_wrong_number_of_tokens_is_accepted() {
    let report: SelectionReport = read(&report_with_totals(1, 4736));
    assert_eq!(report.total_candidates, 1);
}

// The specification's example is abridged; `total_candidates` is corrected here (R095).
//
// proves: REPORT-17, R095
#[test]
fn the_report_of_the_specification_is_accepted() {
    let json = r#"{
        "events": [
            { "stage": "Classify", "duration_ms": 0.3, "item_count": 5 },
            { "stage": "Place", "duration_ms": 0.2, "item_count": 2 }
        ],
        "included": [
            {
                "item": { "content": "Recent turn", "tokens": 256, "kind": "Message" },
                "score": 0.92,
                "reason": { "reason": "Scored" }
            }
        ],
        "excluded": [
            {
                "item": { "content": "Old tool output", "tokens": 2048, "kind": "ToolOutput" },
                "score": 0.45,
                "reason": {
                    "reason": "BudgetExceeded", "item_tokens": 2048, "available_tokens": 512
                }
            }
        ],
        "total_candidates": 2,
        "total_tokens_considered": 4736
    }"#;
    let report: SelectionReport = read(json);
    assert_eq!(report.events.len(), 2);
    assert_eq!(report.included[0].reason, InclusionReason::Scored);
    assert_eq!(
        report.excluded[0].reason,
        ExclusionReason::BudgetExceeded {
            item_tokens: 2048,
            available_tokens: 512,
        }
    );
}

// proves: EVENT-9, EXCL-14, R105
#[test]
fn a_report_of_another_version_round_trips() {
    let json = report_text()
        .replace(r#""Classify""#, r#""Rerank""#)
        .replace(r#"{"reason":"Scored"}"#, r#"{"reason":"Lucky"}"#)
        .replace(r#""Deduplicated""#, r#""Similar""#)
        .replace(r#":"text"}"#, r#":{"to":["text",0.75]}}"#);
    assert!(json.contains(r#"{"reason":"Similar","deduplicated_against":{"to":["text",0.75]}}"#));
    check_same_tree::<SelectionReport>(&json);
}

/// Returns a pipeline that requires two tool outputs, and candidates for several reasons.
fn count_quota_run() -> (Pipeline, Vec<ContextItem>, ContextBudget) {
    let tools = CountQuotaEntry::new(ContextKind::tool_output(), 2, 2).unwrap();
    let slicer = CountQuotaSlice::new(
        vec![tools],
        Box::new(GreedySlice),
        ScarcityBehavior::Degrade,
    );
    let pipeline = Pipeline::builder()
        .scorer(Box::new(ReflexiveScorer))
        .slicer(Box::new(slicer.unwrap()))
        .placer(Box::new(ChronologicalPlacer))
        .build()
        .unwrap();
    let hinted = |content: &str, tokens, hint| {
        ContextItemBuilder::new(content, tokens).future_relevance_hint(hint)
    };
    let items = vec![
        hinted("call", 10, 0.1).kind(ContextKind::tool_output()),
        hinted("same", 20, 0.5),
        hinted("same", 20, 0.4),
        hinted("large", 500, f64::NAN),
        hinted("rules", 5, 0.0).pinned(true),
        hinted("broken", -5, 0.9),
    ];
    let items = items.into_iter().map(|item| item.build().unwrap());
    let budget = ContextBudget::new(100, 100, 0, HashMap::new(), 0.0).unwrap();
    (pipeline, items.collect(), budget)
}

/// Replaces every duration by a number that round-trips exactly.
fn with_round_durations(json: &str) -> String {
    let mut object: Value = read(json);
    for event in object["events"].as_array_mut().unwrap() {
        event["duration_ms"] = Value::from(0.25);
    }
    write(&object)
}

// proves: EXCL-11, REPORT-17
#[test]
fn the_report_of_a_run_round_trips() {
    let (pipeline, items, budget) = count_quota_run();
    let mut report = pipeline.dry_run(&items, &budget).unwrap();
    for event in &mut report.events {
        event.duration_ms = 0.25;
    }
    let json = write(&report);
    assert!(!json.contains("null"), "{json}");
    check_rewritten::<SelectionReport>(&json, &json);
    let back: SelectionReport = read(&json);
    assert_eq!(back.events, report.events);
    assert_eq!(back.included, report.included);
    assert_eq!(back.count_requirement_shortfalls.len(), 1);
}

// ---- collectors ----

#[test]
fn the_null_collector_is_null() {
    check_rewritten::<NullTraceCollector>("null", "null");
    assert!(!read::<NullTraceCollector>("null").is_enabled());
    assert!(serde_json::from_str::<NullTraceCollector>("{}").is_err());
}

// The list of shortfalls is a seventh field, so that they reach the report (R083); it may be absent. The
// totals are computed from the lists (R097), so they may be absent too.
//
// proves: R083, R097
#[test]
fn a_collector_has_its_lists_its_totals_and_its_level() {
    for level in ["Stage", "Item"] {
        let json = format!(
            concat!(
                r#"{{"events":[],"included":[],"excluded":[],"total_candidates":0,"#,
                r#""total_tokens_considered":0,"count_requirement_shortfalls":[],"#,
                r#""detail_level":"{level}"}}"#
            ),
            level = level
        );
        check_rewritten::<DiagnosticTraceCollector>(&json, &json);
        check_rewritten::<DiagnosticTraceCollector>(&with_unknown_key(&json), &json);
        check_camel_case::<DiagnosticTraceCollector>(&json);
        check_required::<DiagnosticTraceCollector>(
            &json,
            &["events", "included", "excluded", "detail_level"],
        );
        let new = DiagnosticTraceCollector::new(read(&format!("{level:?}")));
        assert_eq!(write(&new), json);
    }
}

#[test]
fn a_collector_keeps_the_order_of_exclusions_and_drops_its_callback() {
    let mut collector =
        DiagnosticTraceCollector::with_callback(TraceDetailLevel::Item, Box::new(|_| {}));
    collector.set_candidates(3, 9);
    for (content, score) in [("first", 0.5), ("best", 0.9), ("second", 0.5)] {
        let reason = ExclusionReason::NegativeTokens { tokens: 3 };
        collector.record_excluded(item(content, 3), score, reason);
    }
    let json = write(&collector);
    assert!(!json.contains("callback"), "{json}");
    let places = ["first", "best", "second"].map(|content| json.find(content));
    assert!(places.is_sorted(), "{json}");
    assert!(
        json.contains(r#""total_candidates":3,"total_tokens_considered":9"#),
        "{json}"
    );

    let with_callback = json.replacen('{', r#"{"callback":"any","#, 1);
    let back: DiagnosticTraceCollector = read(&with_callback);
    assert!(format!("{back:?}").contains("callback: None"));
    let excluded = back.into_report().excluded;
    let order: Vec<_> = excluded.iter().map(|entry| entry.item.content()).collect();
    assert_eq!(order, ["best", "first", "second"]);
}

#[test]
fn a_collector_round_trips_with_all_records() {
    let (pipeline, mut items, budget) = count_quota_run();
    items.retain(|item| item.content() != "large");
    let mut collector = DiagnosticTraceCollector::new(TraceDetailLevel::Item);
    pipeline
        .run_traced(&items, &budget, &mut collector)
        .unwrap();
    let json = with_round_durations(&write(&collector));
    let back: DiagnosticTraceCollector = read(&json);
    let mut report = collector.into_report();
    for event in &mut report.events {
        event.duration_ms = 0.25;
    }
    assert_eq!(report.count_requirement_shortfalls.len(), 1);
    assert_eq!(back.into_report(), report);
}
