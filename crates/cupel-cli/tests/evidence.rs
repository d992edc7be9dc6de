//! `cupel eval` and `cupel eval tune` on the questions in `examples/questions.jsonl`, and on invalid ones.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox, example};

fn eval(args: &[&str]) -> Ran {
    let questions = example("questions.jsonl");
    Sandbox::new().run(&[&["eval", &*questions], args].concat())
}

fn questions() -> Vec<Value> {
    let text = std::fs::read_to_string(example("questions.jsonl")).expect("the example");
    let lines = text.lines().map(serde_json::from_str);
    lines
        .collect::<Result<_, _>>()
        .expect("the example is JSON")
}

fn number(value: &Value) -> i64 {
    value.as_i64().expect("an integer")
}

/// The row of a measure.
fn value(results: &Value, measure: &str, at: i64, policy: &str, minus: Option<&str>) -> f64 {
    let rows = results["results"].as_array().expect("rows");
    let row = rows.iter().find(|row| {
        row["measure"] == measure
            && row["at"] == at
            && row["policy"] == policy
            && row["minus"] == json!(minus)
    });
    row.unwrap_or_else(|| panic!("{measure} {at} {policy}: {results}"))["value"]
        .as_f64()
        .expect("a number")
}

/// The newest items that fit, written naively, with both metrics.
fn newest(budget: i64) -> (f64, f64) {
    let (mut items, mut tokens, mut count) = (0.0, 0.0, 0.0);
    for transcript in questions() {
        let cost = |index: usize| number(&transcript["items"][index]["tokens"]);
        let len = transcript["items"].as_array().expect("items").len();
        let (mut kept, mut left) = (BTreeSet::new(), budget);
        for index in (0..len).rev() {
            if cost(index) <= left {
                left -= cost(index);
                kept.insert(index);
            }
        }
        for question in transcript["questions"].as_array().expect("questions") {
            let evidence = question["evidence"].as_array().expect("evidence").iter();
            let evidence: BTreeSet<usize> = evidence
                .map(|index| usize::try_from(number(index)).expect("a position"))
                .collect();
            if evidence.is_empty() {
                continue;
            }
            let found: BTreeSet<usize> = evidence.intersection(&kept).copied().collect();
            let sum = |of: &BTreeSet<usize>| of.iter().map(|&index| cost(index)).sum::<i64>();
            items += found.len() as f64 / evidence.len() as f64;
            tokens += sum(&found) as f64 / sum(&evidence).min(budget) as f64;
            count += 1.0;
        }
    }
    (items / count, tokens / count)
}

#[test]
fn the_measures_of_the_newest_items_are_those_of_a_naive_loop() {
    let results = eval(&["--policy", "newest", "--budget", "10,40,90,5k", "--json"]).json();
    assert_eq!(
        (&results["questions"], &results["skipped"]),
        (&10.into(), &1.into())
    );
    for budget in [10, 40, 90, 5_000] {
        let (items, tokens) = newest(budget);
        let measured = value(&results, "items_kept", budget, "newest", None);
        assert!((measured - items).abs() < 1e-12, "{budget}");
        let measured = value(&results, "tokens_kept", budget, "newest", None);
        assert!((measured - tokens).abs() < 1e-12, "{budget}");
    }
    assert_eq!(value(&results, "items_kept", 5_000, "newest", None), 1.0);
    assert_eq!(value(&results, "recall_at", 50, "newest", None), 1.0);
}

#[test]
fn a_difference_is_the_first_policy_less_the_other() {
    let results = eval(&["--policy", "newest,chat", "--budget", "60", "--json"]).json();
    let of = |policy, minus| value(&results, "items_kept", 60, policy, minus);
    let difference = of("newest", Some("chat"));
    assert!((difference - (of("newest", None) - of("chat", None))).abs() < 1e-12);
}

#[test]
fn the_table_has_budgets_policies_and_differences() {
    let ran = eval(&["--policy", "newest,chat", "--budget", "40,90"]);
    insta::assert_snapshot!("eval_evidence", format!("{}{}", ran.ok(), ran.err));
    let csv = eval(&["--policy", "newest,chat", "--budget", "40", "--csv"]);
    let lines: Vec<&str> = csv.ok().lines().collect();
    assert_eq!(lines[0], "measure,at,policy,minus,value,low,high");
    // Two metrics and four ranks, for two policies and their difference.
    assert_eq!(lines.len(), 1 + 6 * 3);
    assert!(
        lines[1].starts_with("items_kept,40,newest,,"),
        "{}",
        lines[1]
    );
}

#[test]
fn the_answer_does_not_depend_on_the_number_of_threads() {
    let answer = |threads: &str| {
        let mut command = assert_cmd::Command::cargo_bin("cupel").expect("the command");
        let args = ["--policy", "newest,chat", "--budget", "40,90", "--json"];
        command.env("RAYON_NUM_THREADS", threads);
        command
            .args(["eval", &*example("questions.jsonl")])
            .args(args);
        Ran::from(command.output().expect("the command runs")).json()
    };
    assert_eq!(answer("1"), answer("3"));
}

/// Times decide the order, not positions.
#[test]
fn items_with_times_are_ordered_by_them() {
    let line = json!({
        "items": [
            {"content": "newest", "tokens": 5, "timestamp": "2026-01-03T00:00:00Z"},
            {"content": "oldest", "tokens": 5, "timestamp": "2026-01-01T00:00:00Z"},
        ],
        "questions": [{"query": "which", "evidence": [0]}],
    });
    let args = ["eval", "-", "--policy", "newest", "--budget", "5", "--json"];
    let ran = Sandbox::new().run_with_input(&args, line.to_string().as_bytes());
    assert_eq!(value(&ran.json(), "items_kept", 5, "newest", None), 1.0);
}

/// A session is metadata that a scorer can read.
#[test]
fn sessions_are_metadata() {
    let policy = r#"{"scorer": {"type": "metadata_key", "key": "cupel:session", "value": "2", "boost": 3}, "slicer": {"type": "rank"}}"#;
    let line = json!({
        "items": [
            {"content": "a", "tokens": 5, "session": 1},
            {"content": "b", "tokens": 5, "session": 2},
            {"content": "c", "tokens": 5},
        ],
        "questions": [{"query": "which", "evidence": [1]}],
    });
    let sandbox = Sandbox::with(&[("session.json", policy.as_bytes())]);
    let args = [
        "eval",
        "-",
        "--policy",
        "session.json",
        "--budget",
        "5",
        "--json",
    ];
    let ran = sandbox.run_with_input(&args, line.to_string().as_bytes());
    assert_eq!(
        value(&ran.json(), "items_kept", 5, "session.json", None),
        1.0
    );
}

/// Questions whose evidence has the hint, or is the newest item.
fn hinted(id: &str, evidence: usize) -> String {
    let line = json!({
        "id": id,
        "items": [
            {"content": format!("hinted {id}"), "tokens": 5, "future_relevance_hint": 1.0},
            {"content": format!("newest {id}"), "tokens": 5},
        ],
        "questions": [{"query": "which", "evidence": [evidence]}],
    });
    format!("{line}\n")
}

const WEIGHTED: &str = r#"{
  "scorer": {"type": "composite", "entries": [
    {"scorer": {"type": "recency"}, "weight": 5},
    {"scorer": {"type": "reflexive"}, "weight": 1}
  ]},
  "slicer": {"type": "rank"}
}"#;

fn tune(train: &str, report: &str, args: &[&str]) -> Ran {
    let sandbox = Sandbox::with(&[
        ("train.jsonl", train.as_bytes()),
        ("report.jsonl", report.as_bytes()),
        ("policy.json", WEIGHTED.as_bytes()),
    ]);
    let fixed = [
        "eval",
        "tune",
        "train.jsonl",
        "--report",
        "report.jsonl",
        "--policy",
        "policy.json",
        "--budget",
        "5",
    ];
    sandbox.run(&[&fixed, args].concat())
}

#[test]
fn the_best_setting_is_chosen_on_one_file_and_reported_on_another() {
    let grid = ["--grid", "scorer.entries[0].weight=5,0.5,0.25", "--json"];
    let (train, report) = (hinted("a", 0), hinted("b", 0) + &hinted("c", 1));
    let answer = tune(&train, &report, &grid).json();
    // The first of the two equal settings.
    assert_eq!(answer["chosen"], json!({"scorer.entries[0].weight": 0.5}));
    let means: Vec<f64> = answer["grid"]
        .as_array()
        .expect("the grid")
        .iter()
        .map(|row| row["mean"].as_f64().expect("a mean"))
        .collect();
    assert_eq!(means, [0.0, 1.0, 1.0]);
    assert_eq!(answer["policy"]["scorer"]["entries"][0]["weight"], 0.5);
    let of = |policy| value(&answer["report"], "items_kept", 5, policy, None);
    assert_eq!((of("chosen"), of("policy.json")), (0.5, 0.5));
}

#[test]
fn the_chosen_policy_is_printed_after_the_tables() {
    let grid = ["--grid", "scorer.entries[0].weight=5,0.5"];
    let ran = tune(&hinted("a", 0), &hinted("b", 0), &grid);
    insta::assert_snapshot!("eval_tune", format!("{}{}", ran.ok(), ran.err));
}

#[test]
fn invalid_lines_are_reported_with_their_place_and_field() {
    let item = r#"{"content": "a", "tokens": 1}"#;
    let question = r#"{"query": "q", "evidence": [0]}"#;
    let good = format!(r#"{{"items": [{item}], "questions": [{question}]}}"#);
    let with = |items: &str, questions: &str| {
        format!("{good}\n\n{{\"items\": [{items}], \"questions\": [{questions}]}}\n")
    };
    let cases = [
        ("cut off", format!("{good}\n{{\"items\": [\n")),
        (
            "no items",
            format!("{good}\n{{\"questions\": [{question}]}}\n"),
        ),
        ("empty items", with("", question)),
        ("no questions", format!("{good}\n{{\"items\": [{item}]}}\n")),
        (
            "an item without content",
            with(&format!(r#"{item}, {{"tokens": 2}}"#), question),
        ),
        (
            "tokens of a wrong type",
            with(r#"{"content": "a", "tokens": "1"}"#, question),
        ),
        (
            "tokens of a wrong type in a session",
            with(r#"{"content": "a", "session": 1, "tokens": "1"}"#, question),
        ),
        (
            "a session of a wrong type",
            with(r#"{"content": "a", "tokens": 1, "session": []}"#, question),
        ),
        (
            "an unknown key",
            with(r#"{"content": "a", "tokns": 1}"#, question),
        ),
        (
            "a question without query",
            with(item, r#"{"evidence": [0]}"#),
        ),
        (
            "an empty query",
            with(item, r#"{"query": " ", "evidence": [0]}"#),
        ),
        (
            "evidence out of range",
            with(item, r#"{"query": "q", "evidence": [0, 1]}"#),
        ),
        (
            "evidence that is no position",
            with(item, r#"{"query": "q", "evidence": [-1]}"#),
        ),
        (
            "evidence of a wrong type",
            with(item, r#"{"query": "q", "evidence": 0}"#),
        ),
        ("a question that is a string", with(item, r#""q""#)),
        (
            "no evidence at all",
            format!("{{\"items\": [{item}], \"questions\": [{{\"query\": \"q\"}}]}}\n"),
        ),
        (
            "a pinned item over the budget",
            format!(
                r#"{{"items": [{{"content": "a", "tokens": 99, "pinned": true}}], "questions": [{question}]}}"#
            ),
        ),
        ("empty", String::new()),
    ];
    let mut shown = String::new();
    for (name, text) in cases {
        let sandbox = Sandbox::with(&[("questions.jsonl", text.as_bytes())]);
        let args = [
            "eval",
            "questions.jsonl",
            "--policy",
            "newest",
            "--budget",
            "50",
        ];
        let ran = sandbox.run(&args);
        assert!(matches!(ran.exit, 1 | 2), "{name}: {}", ran.err);
        assert_eq!(ran.out, "", "{name}");
        let _ = writeln!(shown, "# {name}\n{}", ran.err);
    }
    for args in [
        &["--policy", "newest"][..],
        &["--policy", "newst", "--budget", "1k"],
        &["--policy", "newest", "--budget", "0"],
        &["--policy", "newest", "--budget", "1k", "--csv", "--json"],
    ] {
        let ran = eval(args);
        assert_eq!((ran.exit, ran.out.as_str()), (2, ""), "{args:?}");
        let _ = writeln!(shown, "# {}\n{}", args.join(" "), ran.err);
    }
    insta::assert_snapshot!("evidence_errors", shown);
}

#[test]
fn an_invalid_grid_or_the_same_transcripts_are_refused() {
    let mut shown = String::new();
    let (train, report) = (hinted("a", 0), hinted("b", 0));
    let grids = [
        "scorer.entries[0].weight",
        "scorer.entries[0].weight=1,x",
        "scorer.entries[7].weight=1",
        "scorer.entries[0].scorer=1",
        "scorer.entries[0].wieght=1",
        "scorer.entries[0].weight=-1",
        "=1",
    ];
    let cases = grids.map(|grid| (grid, &*report));
    // Other questions do not make it another transcript.
    let both = format!("{report}{}", hinted("a", 1));
    let same = [
        ("scorer.entries[0].weight=1", &*train),
        ("scorer.entries[0].weight=1", &*both),
    ];
    for (grid, report) in cases.into_iter().chain(same) {
        let ran = tune(&train, report, &["--grid", grid]);
        assert_eq!((ran.exit, ran.out.as_str()), (2, ""), "{grid}: {}", ran.err);
        let _ = writeln!(shown, "# {grid}\n{}", ran.err);
    }
    insta::assert_snapshot!("tune_errors", shown);
}
