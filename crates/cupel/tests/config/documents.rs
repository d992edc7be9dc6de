//! Policies and requests in every format.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use cupel::config::{
    ConfigErrorKind, CurveConfig, Document, Format, PlacerConfig, PolicyConfig, RequestConfig,
    ScorerConfig, ScorerEntry, SlicerConfig, StepWindow, policy_schema, preset, presets,
};
use cupel::{
    ContextBudget, ContextItem, ContextKind, CupelError, DecayCurve, DecayScorer, GreedySlice,
    GroupSlice, OverflowStrategy, Placer, Policy, ProductScorer, QuotaEntry, QuotaSlice,
    RecencyScorer, ScoredItem, Slicer, TimeProvider, ToolResults, UShapedPlacer,
};

use super::schema::validator;

pub(super) const JSON: &str = r#"
{"$schema": "policy.schema.json",
 "scorer": {"type": "composite", "entries": [
    {"scorer": {"type": "recency"}, "weight": 3},
    {"scorer": {"type": "scaled", "inner": {"type": "kind", "weights": {"Memory": 0.9}}}, "weight": 1},
    {"scorer": {"type": "decay", "curve": {"type": "step", "windows": [
        {"max_age": "1h", "score": 0.9}, {"max_age": 86400, "score": 0.5}, {"max_age": "P7D", "score": 0}]}}}]},
 "slicer": {"type": "quota", "quotas": [{"kind": "ToolOutput", "require": 20, "cap": 60}], "inner": {"type": "knapsack", "bucket_size": 1}},
 "placer": {"type": "u-shaped"}, "deduplication": true, "overflow_strategy": "truncate"}
"#;

pub(super) const TOML: &str = r#"
"$schema" = "policy.schema.json"
placer = { type = "u-shaped" }
overflow_strategy = "truncate"

[scorer]
type = "composite"

[[scorer.entries]]
scorer = { type = "recency" }
weight = 3

[[scorer.entries]]
scorer = { type = "scaled", inner = { type = "kind", weights = { Memory = 0.9 } } }

[[scorer.entries]]
weight = 1.0
[scorer.entries.scorer]
type = "decay"
curve.type = "step"
curve.windows = [
    { max_age = "60m", score = 0.9 },
    { max_age = "1d", score = 0.5 },
    { max_age = 604800.0, score = 0 },
]

[slicer]
type = "quota"
inner = { type = "knapsack", bucket_size = 1 }
quotas = [{ kind = "ToolOutput", require = 20, cap = 60 }]
"#;

pub(super) const YAML: &str = r#"
$schema: policy.schema.json
scorer:
  type: composite
  entries:
    - scorer: &newest {type: recency}
      weight: 3
    - scorer:
        type: scaled
        inner:
          type: kind
          weights: {Memory: 0.9}
    - scorer:
        type: decay
        curve:
          type: step
          windows:
            - {max_age: 3600, score: 0.9}
            - {max_age: PT24H, score: 0.5}
            - {max_age: "168h", score: 0}
slicer:
  type: quota
  quotas:
    - kind: ToolOutput
      require: 20
      cap: 60
  inner: {type: knapsack, bucket_size: 1}
placer: {type: u-shaped}
overflow_strategy: truncate
"#;

fn built_in_rust() -> PolicyConfig {
    let memory = BTreeMap::from([(ContextKind::memory(), 0.9)]);
    let window = |hours, score| StepWindow {
        max_age: TimeDelta::hours(hours),
        score,
    };
    let entry = |scorer, weight| ScorerEntry { scorer, weight };
    let scaled = ScorerConfig::Scaled {
        inner: ScorerConfig::Kind { weights: memory }.into(),
    };
    let decay = ScorerConfig::Decay {
        curve: CurveConfig::Step {
            windows: vec![window(1, 0.9), window(24, 0.5), window(168, 0.0)],
        },
        null_timestamp_score: 0.5,
        reference_time: None,
    };
    PolicyConfig {
        slicer: SlicerConfig::Quota {
            quotas: vec![QuotaEntry::new(ContextKind::tool_output(), 20.0, 60.0).unwrap()],
            inner: SlicerConfig::Knapsack {
                bucket_size: 1,
                cell_limit: None,
                memory_limit: None,
            }
            .into(),
        },
        placer: PlacerConfig::UShaped,
        overflow_strategy: OverflowStrategy::Truncate,
        ..PolicyConfig::new(ScorerConfig::Composite {
            entries: vec![
                entry(ScorerConfig::Recency, 3.0),
                entry(scaled, 1.0),
                entry(decay, 1.0),
            ],
        })
    }
}

#[track_caller]
fn read(text: &str, format: Format) -> PolicyConfig {
    Document::parse(text, format)
        .and_then(|document| document.policy_config())
        .unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

#[test]
fn the_formats_give_the_same_policy() {
    for (text, format) in [
        (JSON, Format::Json),
        (TOML, Format::Toml),
        (YAML, Format::Yaml),
    ] {
        assert_eq!(Format::of_text(text), format);
        assert_eq!(read(text, format), built_in_rust());
        let policy = Document::parse(text, format).unwrap().policy().unwrap();
        assert_eq!(PolicyConfig::of(&policy), Ok(built_in_rust()));
    }
    assert_eq!(
        serde_json::from_str::<PolicyConfig>(JSON).unwrap(),
        built_in_rust()
    );
}

#[test]
fn json_is_yaml() {
    assert_eq!(read(JSON, Format::Yaml), built_in_rust());
}

#[test]
fn serde_reads_through_the_same_reader() {
    let request = r#"{"items": [{"content": "a", "tokens": 1}], "policy": "rag"}"#;
    let request: RequestConfig = serde_json::from_str(request).unwrap();
    assert_eq!(request.policy.unwrap().name.as_deref(), Some("rag"));
    let message = |error: serde_json::Error| error.to_string();
    assert_eq!(
        serde_json::from_str::<SlicerConfig>(r#"{"type": "greedi"}"#).map_err(message),
        Err(r#"type: unknown slicer "greedi"; did you mean "greedy"?"#.to_owned())
    );
    assert_eq!(
        serde_json::from_str::<ScorerConfig>(r#"{"type": "kind", "type": "tag"}"#).map_err(message),
        Err(r#"type: duplicate key "type"; remove one"#.to_owned())
    );
}

/// Strategies that no document can name.
struct Own;

impl TimeProvider for Own {
    fn now(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH
    }
}

impl Slicer for Own {
    fn slice(
        &self,
        _sorted: &[ScoredItem],
        _budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        Ok(Vec::new())
    }
}

impl Placer for Own {
    fn place(&self, items: &[ScoredItem]) -> Vec<ContextItem> {
        items.iter().map(|scored| scored.item.clone()).collect()
    }
}

#[test]
fn a_strategy_that_is_no_data_is_named_with_its_place() {
    let curve = || DecayCurve::window(TimeDelta::hours(1)).unwrap();
    let clocked = DecayScorer::with_curve(Own, curve()).unwrap();
    let product = ProductScorer::new(vec![Box::new(RecencyScorer), Box::new(clocked)]).unwrap();
    let grouped = || GroupSlice::new(QuotaSlice::new(Vec::new(), Own).unwrap());
    for (policy, place) in [
        (
            Policy::new(product, GreedySlice, UShapedPlacer),
            "scorer.scorers[1]",
        ),
        (
            Policy::new(RecencyScorer, grouped(), UShapedPlacer),
            "slicer.inner.inner",
        ),
        (Policy::new(RecencyScorer, GreedySlice, Own), "placer"),
    ] {
        let error = PolicyConfig::of(&policy).unwrap_err();
        assert_eq!(error.kind(), ConfigErrorKind::NotData);
        let begin = format!("{place}: Own cannot be written as data");
        assert!(error.to_string().starts_with(&begin), "{error}");
    }
}

#[test]
fn every_preset_is_a_policy_that_says_what_it_is_and_reads_no_clock() {
    for preset in presets() {
        let config = read(preset.text(), Format::Json);
        assert_eq!(config.name.as_deref(), Some(preset.name()));
        assert_eq!(config.version, Some(preset.version()));
        assert!(preset.description().len() > 40, "{}", preset.name());
        assert!(!preset.text().contains("decay"), "{}", preset.name());
        let data = PolicyConfig {
            name: None,
            version: None,
            description: None,
            ..config.clone()
        };
        assert_eq!(PolicyConfig::of(&config.build().unwrap()), Ok(data));
    }
}

#[test]
fn a_document_inherits_the_parts_of_the_preset_it_extends() {
    let rag = preset("rag").unwrap().config();
    let same = read("extends = \"rag\"", Format::Toml);
    let plain = PolicyConfig {
        name: None,
        version: None,
        description: None,
        ..rag.clone()
    };
    assert_eq!(same, plain);
    for (text, format) in [
        (
            r#"{"extends": "rag", "slicer": {"type": "knapsack"}, "overflow_strategy": "proceed"}"#,
            Format::Json,
        ),
        (
            "extends = \"rag\"\noverflow_strategy = \"proceed\"\n[slicer]\ntype = \"knapsack\"\n",
            Format::Toml,
        ),
        (
            "extends: rag\nslicer: {type: knapsack}\noverflow_strategy: proceed\n",
            Format::Yaml,
        ),
    ] {
        let expected = PolicyConfig {
            slicer: SlicerConfig::Knapsack {
                bucket_size: 100,
                cell_limit: None,
                memory_limit: None,
            },
            overflow_strategy: OverflowStrategy::Proceed,
            ..plain.clone()
        };
        assert_eq!(read(text, format), expected, "{text}");
        assert_eq!(Format::of_text(text), format);
    }
    let schema = validator(&policy_schema());
    let is_valid = |json: serde_json::Value| schema.is_valid(&json);
    assert!(is_valid(serde_json::json!({"extends": "rag"})));
    assert!(!is_valid(serde_json::json!({"extends": "none"})));
    assert!(!is_valid(serde_json::json!({"deduplication": true})));
}

#[test]
fn settings_for_tools_are_read_and_written() {
    let text =
        "extends = \"agent\"\n[chat.tool_results]\n\"mcp_fs_*\" = \"by_path\"\nwait = \"never\"\n";
    let read = |text, format| Document::parse(text, format).unwrap().policy().unwrap();
    let policy = read(text, Format::Toml);
    // What the table does not name is that of the preset.
    assert!(policy.chat().replay);
    let results_of = |tool| policy.chat().results_of(tool);
    assert_eq!(results_of("mcp_fs_read"), Some(ToolResults::ByPath));
    assert_eq!(results_of("wait"), Some(ToolResults::Never));
    assert_eq!(results_of("wait_for"), None);
    let json = serde_json::to_string(&PolicyConfig::of(&policy).unwrap()).unwrap();
    let written = r#""tool_results":{"mcp_fs_*":"by_path","wait":"never"}"#;
    assert!(json.contains(written), "{json}");
    assert_eq!(read(&json, Format::Json).chat(), policy.chat());
}

#[test]
fn a_request_may_extend_a_preset() {
    let text = r#"{"items": [], "policy": {"extends": "chat", "deduplication": true}}"#;
    let request = Document::parse(text, Format::Json).unwrap().request();
    let policy = request.unwrap().policy.unwrap();
    let chat = preset("chat").unwrap().config();
    assert!(policy.deduplication && !chat.deduplication);
    assert_eq!(policy.scorer, chat.scorer);
}

#[test]
fn a_policy_is_read_from_a_file_by_its_name_or_its_text() {
    let directory = std::env::temp_dir().join(format!("cupel-policies-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for (name, text) in [
        ("a.toml", TOML),
        ("b.yml", YAML),
        ("c.json", JSON),
        ("toml", TOML),
        ("yaml", YAML),
    ] {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        let policy = Policy::from_path(&path).unwrap();
        assert_eq!(PolicyConfig::of(&policy), Ok(built_in_rust()), "{name}");
    }
    std::fs::write(directory.join("bad.toml"), "scorer = 1").unwrap();
    let kind = |name: &str| Policy::from_path(directory.join(name)).unwrap_err().kind();
    assert_eq!(kind("bad.toml"), ConfigErrorKind::WrongType);
    assert_eq!(kind("absent.toml"), ConfigErrorKind::Io);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_preset_is_built_by_name() {
    let policy = Policy::preset("rag").unwrap();
    let config = PolicyConfig::of(&policy).unwrap();
    assert_eq!(config.scorer, preset("rag").unwrap().config().scorer);
    assert!(Policy::preset("none").is_err());
}
