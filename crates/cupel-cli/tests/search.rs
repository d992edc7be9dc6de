//! `cupel search`, and `--query` of the commands that run a policy.

use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox, example};

const ITEMS: &str = r#"[
  {"content": "The parcel left the warehouse on Monday.", "tokens": 10},
  {"content": "Northway is the carrier.", "tokens": 6},
  {"content": "The weather was fine.", "tokens": 5}
]"#;

/// A policy that needs a query.
const RELEVANCE: &str = r#"{"scorer": {"type": "relevance"}, "slicer": {"type": "rank"}}"#;

fn sandbox() -> Sandbox {
    Sandbox::with(&[
        ("items.json", ITEMS.as_bytes()),
        ("relevance.json", RELEVANCE.as_bytes()),
    ])
}

fn indices(answer: &Value, list: &str) -> Vec<u64> {
    let rows = answer[list].as_array().expect("a list").iter();
    rows.map(|row| row["index"].as_u64().expect("an index"))
        .collect()
}

#[test]
fn the_best_passages_come_first_with_the_words_that_match() {
    let args = [
        "search",
        "items.json",
        "Which carriers left?",
        "--scorer",
        "relevance",
    ];
    let ran = sandbox().run(&args);
    let lines: Vec<&str> = ran.ok().lines().collect();
    assert!(
        lines[0].ends_with("item 1 (Message), 6 tokens"),
        "{}",
        ran.out
    );
    assert_eq!(lines[1], "        Northway is the carrier.");
    assert!(
        lines[2].starts_with("        carriers 1.0000"),
        "{}",
        ran.out
    );
    assert!(
        lines[4].ends_with("item 0 (Message), 10 tokens"),
        "{}",
        ran.out
    );
    // Two of three items share a word with the question.
    assert!(!ran.out.contains("weather"), "{}", ran.out);
    assert!(ran.err.contains("2 of 3 items"), "{}", ran.err);
}

#[test]
fn matched_words_are_highlighted_by_their_stems() {
    let args = ["search", "items.json", "carriers", "--color", "always"];
    let ran = sandbox().run(&args);
    assert!(
        ran.ok().contains("\u{1b}[31mcarrier\u{1b}[0m."),
        "{}",
        ran.out
    );
    let plain = sandbox().run(&["search", "items.json", "carriers"]);
    assert!(!plain.ok().contains('\u{1b}'), "{}", plain.out);
}

#[test]
fn chats_items_and_requests_are_searched() {
    let chat = example("agent-session.json");
    let ran = Sandbox::new().run(&["search", &chat, "Which test fails?", "--top", "2", "--json"]);
    let answer = ran.json();
    assert_eq!(answer["scorer"], "conversation");
    assert_eq!(indices(&answer, "passages").len(), 2);
    let best = answer["passages"][0]["content"].as_str().expect("a text");
    assert!(best.contains("FAILED"), "{best}");
    let parts = answer["passages"][0]["parts"].as_array().expect("parts");
    let sum: f64 = parts
        .iter()
        .map(|part| part["score"].as_f64().expect("a score"))
        .sum();
    let score = answer["passages"][0]["score"].as_f64().expect("a score");
    assert!((sum - score).abs() < 1e-9, "{answer}");

    let request = example("request.json");
    let ran = Sandbox::new().run(&["search", &request, "carrier", "--json"]);
    assert!(!indices(&ran.json(), "passages").is_empty());
}

#[test]
fn a_question_without_a_match_finds_nothing() {
    let ran = sandbox().run(&["search", "items.json", "zebra"]);
    assert_eq!((ran.ok(), &*ran.err), ("", "no item matches\n"));
}

#[test]
fn a_scorer_that_reads_no_question_is_a_warning_and_an_unknown_one_an_error() {
    let ran = sandbox().run(&["search", "items.json", "carrier", "--scorer", "reflexive"]);
    assert!(
        ran.err.contains("does not read the question"),
        "{}",
        ran.err
    );
    let ran = sandbox().run(&["search", "items.json", "carrier", "--scorer", "relevnce"]);
    assert_eq!(ran.exit, 2);
    assert!(
        ran.err.contains("did you mean \"relevance\"?"),
        "{}",
        ran.err
    );
    let ran = sandbox().run(&["search", "items.json", ""]);
    assert_eq!(ran.exit, 2);
}

fn selected(ran: &Ran) -> Vec<u64> {
    indices(&ran.json(), "selected")
}

/// 6 tokens have room for either of two items; the query decides.
#[test]
fn the_query_decides_what_is_selected() {
    let select = |query: &str| {
        let args = [
            "select",
            "items.json",
            "--policy",
            "relevance.json",
            "--budget",
            "6",
            "--json",
            "--query",
            query,
        ];
        selected(&sandbox().run(&args))
    };
    assert_eq!(select("which carrier"), [1]);
    assert_eq!(select("how was the weather"), [2]);
}

#[test]
fn a_request_has_its_own_query_and_the_option_takes_precedence() {
    let items: Value = serde_json::from_str(ITEMS).expect("items");
    let policy: Value = serde_json::from_str(RELEVANCE).expect("a policy");
    let request = json!({"items": items, "budget": {"max_tokens": 6}, "policy": policy, "query": "which carrier"});
    let sandbox = Sandbox::with(&[("request.json", request.to_string().as_bytes())]);
    let select = |args: &[&str]| {
        selected(&sandbox.run(&[&["select", "request.json", "--json"], args].concat()))
    };
    assert_eq!(select(&[]), [1]);
    assert_eq!(select(&["--query", "weather"]), [2]);
    let batch = sandbox.run_with_input(&["batch", "-", "--brief"], request.to_string().as_bytes());
    assert_eq!(selected(&batch), [1]);
}

const RUNS: [&[&str]; 6] = [
    &["select"],
    &["fit"],
    &["explain"],
    &["sweep"],
    &["min-budget"],
    &["marginal", "--slack", "2"],
];

#[test]
fn every_command_needs_the_query_of_its_policy() {
    let sandbox = sandbox();
    for command in RUNS {
        let policy = ["items.json", "--policy", "relevance.json", "--budget", "12"];
        let budget: &[&str] = match command[0] {
            "sweep" | "min-budget" => &policy[..3],
            _ => &policy,
        };
        let args = [command, budget].concat();
        let ran = sandbox.run(&args);
        assert_eq!(ran.exit, 2, "{args:?}: {}", ran.err);
        assert!(
            ran.err.contains("relevance.json needs a query"),
            "{}",
            ran.err
        );
        assert!(ran.err.contains("--query TEXT"), "{}", ran.err);
        let asked = [&args[..], &["--query", "carrier"]].concat();
        sandbox.run(&asked).ok();
    }
    let compare = [
        "compare",
        "items.json",
        "--budget",
        "6",
        "--policy",
        "relevance.json",
        "--policy",
        "chat",
    ];
    let ran = sandbox.run(&compare);
    assert!(
        ran.exit == 2 && ran.err.contains("needs a query"),
        "{}",
        ran.err
    );
    let ran = sandbox.run(&[&compare[..], &["--query", "carrier", "--json"]].concat());
    assert_eq!(ran.json()["variants"][0]["selected"], json!([1]));
}

#[test]
fn a_query_that_no_scorer_reads_is_a_warning() {
    let sandbox = sandbox();
    let warning = "--query has no effect: no scorer of the policy chat";
    for command in RUNS {
        let args = [
            "items.json",
            "--policy",
            "chat",
            "--query",
            "carrier",
            "--budget",
            "12",
        ];
        let ran = sandbox.run(&[command, &args].concat());
        ran.ok();
        assert!(ran.err.contains(warning), "{command:?}: {}", ran.err);
    }
    let args = [
        "compare",
        "items.json",
        "--budget",
        "6",
        "--policy",
        "chat",
        "--policy",
        "rag",
        "--query",
        "x",
    ];
    let ran = sandbox.run(&args);
    assert!(
        ran.err.contains("no scorer of the policy chat or rag"),
        "{}",
        ran.err
    );
}
