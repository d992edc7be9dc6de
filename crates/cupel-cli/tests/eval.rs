//! `cupel eval agent` on the recorded runs in `runs.jsonl`, `cupel eval criteria` on two conversations, and both on
//! invalid ones.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox};

/// Three runs: OpenAI Chat, Anthropic Messages and OpenAI Responses.
fn runs() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs.jsonl");
    std::fs::read_to_string(path).expect("the runs")
}

/// Keeps the newest messages that fit and skips those that do not.
const NEWEST: &str = r#"{"scorer": {"type": "recency"}, "slicer": {"type": "rank"}, "placer": {"type": "chronological"}}"#;

fn run(runs: &str, args: &[&str]) -> Ran {
    let policies = ["--policy", "suffix,newest.json"];
    let sandbox = Sandbox::with(&[("newest.json", NEWEST.as_bytes())]);
    let args = [&["eval", "agent", "-"], args, &policies].concat();
    sandbox.run_with_input(&args, runs.as_bytes())
}

fn results(runs: &str, args: &[&str]) -> Value {
    run(runs, &[args, &["--json"]].concat()).json()
}

fn value(results: &Value, row: usize, measure: &str) -> f64 {
    let value = &results["results"][row][measure]["value"];
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{measure}: {results}"))
}

#[test]
fn the_table_shows_each_budget_and_policy() {
    let ran = run(&runs(), &["--budget", "150,100k"]);
    insta::assert_snapshot!("eval_agent", format!("{}{}", ran.ok(), ran.err));
    for line in ran.out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn runs_in_an_array_or_in_wrappers_are_the_same_runs() {
    let args = ["--budget", "150"];
    let lines = results(&runs(), &args);
    let array = format!("[\n{}\n]", runs().trim_end().replace('\n', ",\n"));
    assert_eq!(results(&array, &args), lines);
    let wrapped: Vec<String> = runs()
        .lines()
        .map(|run| format!(r#"{{"log": {{"request": {run}}}}}"#))
        .collect();
    let args = ["--budget", "150", "--at", "/log/request"];
    assert_eq!(results(&wrapped.join("\n"), &args), lines);
}

/// The call names the parcel of the first message. `fit` reads such a text as one chat too.
#[test]
fn a_chat_with_one_message_per_line_is_one_run() {
    let messages = [
        json!({"role": "user", "content": "Please track parcel PX-1001."}),
        json!({"role": "assistant", "content": "I will look it up. One moment, please."}),
        json!({"role": "user", "content": "Thanks."}),
        json!({"role": "assistant", "content": null, "tool_calls": [{
            "id": "c1",
            "type": "function",
            "function": {"name": "get_parcel", "arguments": "{\"parcel\": \"PX-1001\"}"},
        }]}),
    ];
    let lines = messages.iter().map(ToString::to_string);
    let lines = lines.collect::<Vec<_>>().join("\n");
    for budget in ["0", "10", "100k"] {
        let args = ["--budget", budget];
        let found = results(&lines, &args);
        assert_eq!((&found["runs"], &found["requests"]), (&1.into(), &2.into()));
        assert_eq!(found, results(&json!(messages).to_string(), &args));
    }
    assert_eq!(
        value(&results(&lines, &["--budget", "10"]), 0, "grounding_recall"),
        0.0
    );
    let spoiled = lines + "\n{\"role\": \"robot\", \"content\": \"b\"}\n";
    let ran = run(&spoiled, &["--budget", "10"]);
    assert_eq!((ran.exit, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("standard input:5:"), "{}", ran.err);
}

#[test]
fn help_fits_80_columns() {
    for args in [
        &["eval", "--help"][..],
        &["eval", "agent", "--help"],
        &["eval", "criteria", "--help"],
    ] {
        let mut command = assert_cmd::Command::cargo_bin("cupel").expect("the command");
        let command = command.env("COLUMNS", "80").args(args);
        let ran = Ran::from(command.output().expect("the command runs"));
        for line in ran.ok().lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(ran.out.contains("Examples:"), "{}", ran.out);
    }
}

/// The result of the first call of the first run does not fit 200 tokens. Three of its requests over
/// the budget have evidence:
///
/// | call | evidence | suffix | newest |
/// |---|---|---|---|
/// | `track_parcel` | the parcel, in the large result | 0 | 0 |
/// | `get_account` | the account, in the first user turn | 0 | 1 |
/// | `redirect_parcel` | the parcel and the address, in later results | 1 | 1 |
#[test]
fn recall_is_the_mean_over_the_steps() {
    let runs = runs();
    let first = runs.lines().next().expect("a run");
    let results = results(first, &["--budget", "200"]);
    assert_eq!(
        (&results["runs"], &results["requests"]),
        (&1.into(), &6.into())
    );
    for row in 0..2 {
        assert_eq!(results["results"][row]["steps"], 3);
        assert_eq!(results["results"][row]["trimmed"], 5);
    }
    assert_eq!(results["results"][0]["policy"], "suffix");
    assert_eq!(value(&results, 0, "grounding_recall"), 1.0 / 3.0);
    assert_eq!(value(&results, 1, "grounding_recall"), 2.0 / 3.0);
    for row in 0..2 {
        let supported = value(&results, row, "supported_recall");
        assert_eq!(supported, value(&results, row, "grounding_recall"));
        for fault in ["orphans", "over_budget", "failed"] {
            assert_eq!(value(&results, row, fault), 0.0, "{fault}");
        }
    }
}

#[test]
fn a_budget_for_everything_trims_nothing() {
    let results = results(&runs(), &["--budget", "100k"]);
    for row in 0..2 {
        let result = &results["results"][row];
        assert_eq!(
            (&result["trimmed"], &result["steps"]),
            (&0.into(), &0.into())
        );
        assert!(result["grounding_recall"].is_null());
        assert!(result["cost"].is_null());
    }
}

/// The parcel of the call is in the first user turn, which stays unchanged. A marker that is part of another
/// user turn is not a message.
#[test]
fn a_marker_inside_a_message_does_not_shift_the_messages() {
    let mut messages =
        vec![json!({"role": "user", "content": "Please track parcel PX-1001 for me today."})];
    for turn in 0..6 {
        let depots = format!(
            "Parcel report number {turn}: it moved from depot {turn} to depot {} in the morning, as planned.",
            turn + 1
        );
        let invoice = format!(
            "Thanks. And what about invoice INV-{}, is that one paid already or not?",
            2000 + turn
        );
        messages.push(json!({"role": "assistant", "content": depots}));
        messages.push(json!({"role": "user", "content": invoice}));
    }
    let request = json!({"messages": messages}).to_string();
    let sandbox = Sandbox::with(&[("request.json", request.as_bytes())]);
    let fit = [
        "fit",
        "request.json",
        "--policy",
        "relevant",
        "--budget",
        "190",
        "--json",
    ];
    let markers = sandbox.run(&fit).json()["markers"].clone();
    assert!(
        markers
            .as_array()
            .is_some_and(|it| it.iter().any(|it| it["merged_into"].is_u64())),
        "{markers}"
    );
    let call = json!({"id": "c1", "type": "function", "function": {"name": "get_parcel", "arguments": "{\"parcel\": \"PX-1001\"}"}});
    messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
    let run = json!({"messages": messages}).to_string();
    let args = [
        "eval", "agent", "-", "--budget", "190", "--policy", "relevant", "--json",
    ];
    let results = sandbox.run_with_input(&args, run.as_bytes()).json();
    assert_eq!(value(&results, 0, "grounding_recall"), 1.0);
    assert_eq!(value(&results, 0, "supported_recall"), 1.0);
}

#[test]
fn the_same_runs_have_the_same_answer_to_the_byte() {
    let answer = || results(&runs(), &["--budget", "150,300"]).to_string();
    assert_eq!(answer(), answer());
}

#[test]
fn the_suffix_is_compared_with_the_default_policy() {
    let args = ["eval", "agent", "-", "--budget", "150", "--json"];
    let results = Sandbox::new().run_with_input(&args, runs().as_bytes());
    let results = &results.json()["results"];
    assert_eq!(results.as_array().map(Vec::len), Some(2));
    assert_eq!(results[0]["policy"], "suffix");
    assert_ne!(results[1]["policy"], "suffix");
}

/// An answer of the table, and the note that says how a lifetime changed the bill.
#[test]
fn a_lifetime_counts_by_the_timestamps_of_messages() {
    let runs = runs();
    let untimed = run(&runs, &["--budget", "150", "--lifetime", "300"]);
    let note = "--lifetime has no effect: the messages have no timestamps";
    assert!(untimed.ok().contains("bill, full  "), "{}", untimed.out);
    assert!(untimed.err.contains(note), "{}", untimed.err);
    let message = |role: &str, second: i64| json!({"role": role, "content": "word ".repeat(20), "timestamp": second});
    let roles = ["user", "assistant"].into_iter().cycle();
    let messages = roles.zip([0, 100, 400, 500, 801, 900]);
    let messages: Vec<Value> = messages.map(|(role, it)| message(role, it)).collect();
    let run_of = |args: &[&str]| run(&json!({"messages": messages}).to_string(), args);
    let args = ["--budget", "40", "--lifetime", "400"];
    // Requests at 0, 400 and 801 s.
    let note = "requests more than 400 s after the one before: 1 of 2";
    let ran = run_of(&args);
    assert!(ran.err.contains(note), "{}", ran.err);
    let answer = run_of(
        &[
            &args[..],
            &["--prices", "0.5,1", "--prefix", "2k", "--json"],
        ]
        .concat(),
    );
    let answer = answer.json();
    assert_eq!(answer["prices"], json!({"read": 0.5, "write": 1.0}));
    let numbers = ["prefix", "lifetime", "timed", "expired"].map(|key| &answer[key]);
    assert_eq!(numbers, [2_000, 400, 2, 1]);
}

#[test]
fn invalid_runs_are_reported_with_their_line_and_field() {
    let good = runs();
    let good = good.lines().next().expect("a run");
    let cases = [
        ("cut off", format!("{good}\n\n{{\"messages\": [\n")),
        (
            "unknown role",
            format!(
                "{good}\n{}\n",
                r#"{"messages": [{"role": "user", "content": "a"}, {"role": "robot", "content": "b"}]}"#
            ),
        ),
        (
            "missing arguments",
            format!(
                "{good}\n{}\n",
                r#"{"messages": [{"role": "assistant", "tool_calls": [{"id": 7}]}]}"#
            ),
        ),
        (
            "items",
            format!(
                "{good}\n{}\n",
                r#"{"items": [{"content": "a", "tokens": 1}]}"#
            ),
        ),
        (
            "one message per line",
            "{\"role\": \"user\", \"content\": \"a\"}\n".repeat(2),
        ),
        ("empty", String::new()),
    ];
    let mut shown = String::new();
    for (name, runs) in cases {
        let sandbox = Sandbox::with(&[("runs.jsonl", runs.as_bytes())]);
        let ran = sandbox.run(&["eval", "agent", "runs.jsonl", "--budget", "100"]);
        assert_eq!((ran.exit, ran.out.as_str()), (2, ""), "{name}");
        let _ = writeln!(shown, "# {name}\n{}", ran.err);
    }
    for args in [
        &["--budget", "1.5"][..],
        &["--budget", "10%"],
        &["--budget", "100", "--prices", "google"],
        &["--budget", "100", "--prices", "-0.1,1"],
        &["--budget", "100", "--prefix", "1,000"],
        &["--budget", "100", "--lifetime", "5m"],
        &[],
    ] {
        let ran = Sandbox::with(&[("runs.jsonl", good.as_bytes())])
            .run(&[&["eval", "agent", "runs.jsonl"], args].concat());
        assert_eq!((ran.exit, ran.out.as_str()), (2, ""), "{args:?}");
        let _ = writeln!(shown, "# {}\n{}", args.join(" "), ran.err);
    }
    insta::assert_snapshot!("eval_errors", shown);
}

/// Two conversations whose windows differ by share: 5 user turns of 24 tokens with answers of 64, and one turn.
pub(crate) fn conversations() -> String {
    let mut messages = Vec::new();
    for number in 0..5 {
        let turn = format!("Keep the code K-{number} in mind. {}", "word ".repeat(8));
        messages.push(json!({"role": "user", "content": turn}));
        let answer = format!("The code is noted: K-{number}. {}", "answer ".repeat(50));
        messages.push(json!({"role": "assistant", "content": answer}));
    }
    messages
        .push(json!({"role": "user", "content": "Which code was the first, museum or station?"}));
    let terms = json!([
        {"forms": ["0"], "weight": 2.0},
        {"forms": ["4"], "weight": 1.0},
        {"forms": ["museum", "museums"], "weight": 1.0},
    ]);
    let short = json!({"messages": [{"role": "user", "content": "A museum?"}], "terms": [{"forms": ["museum"], "weight": 3}]});
    format!(
        "{}\n{short}\n",
        json!({"messages": messages, "terms": terms})
    )
}

fn criteria(conversations: &str, args: &[&str]) -> Ran {
    let args = [&["eval", "criteria", "-"], args].concat();
    Sandbox::new().run_with_input(&args, conversations.as_bytes())
}

/// At 50 % the suffix keeps the last two codes, so 2 of 4 weights of the first conversation. The second one has one
/// turn, which does not fit.
#[test]
fn criteria_have_a_table_per_share() {
    let args = ["--share", "100,50%", "--policy", "suffix,newest"];
    let ran = criteria(&conversations(), &args);
    insta::assert_snapshot!("eval_criteria", format!("{}{}", ran.ok(), ran.err));
    for line in ran.out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let args = ["--share", "50", "--policy", "suffix", "--json"];
    let answer = criteria(&conversations(), &args).json();
    assert_eq!(
        (&answer["conversations"], &answer["requests"]),
        (&2.into(), &7.into())
    );
    let row = &answer["results"][0];
    assert_eq!(
        (&row["share"], &row["policy"]),
        (&json!(0.5), &json!("suffix"))
    );
    assert_eq!(value(&answer, 0, "criterion_recall"), 0.25);
    assert_eq!(value(&answer, 0, "failed"), 0.5);
}

#[test]
fn shares_default_to_those_of_the_documentation() {
    let answer = criteria(&conversations(), &["--policy", "agent", "--json"]).json();
    let rows = answer["results"].as_array().expect("rows").iter();
    let shares: Vec<&Value> = rows.map(|row| &row["share"]).collect();
    assert_eq!(
        shares,
        [&json!(0.8), &json!(0.6), &json!(0.4), &json!(0.25)]
    );
}

#[test]
fn invalid_conversations_are_reported_with_their_place_and_the_fix() {
    let conversations = conversations();
    let cases = [
        (
            "no terms",
            r#"{"messages": [{"role": "user", "content": "a"}]}"#,
        ),
        (
            "an answer at the end",
            r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "terms": [{"forms": ["car"], "weight": 1}]}"#,
        ),
        (
            "a form of two words",
            r#"{"messages": [{"role": "user", "content": "a"}], "terms": [{"forms": ["car", "red car"], "weight": 1}]}"#,
        ),
        (
            "a negative weight",
            r#"{"messages": [{"role": "user", "content": "a"}], "terms": [{"forms": ["car"], "weight": -1}]}"#,
        ),
        ("cut off", "{\"messages\": ["),
        ("items", r#"{"items": [{"content": "a", "tokens": 1}]}"#),
    ];
    let mut shown = String::new();
    for (name, line) in cases {
        let text = format!("{conversations}{line}\n");
        let sandbox = Sandbox::with(&[("chats.jsonl", text.as_bytes())]);
        let ran = sandbox.run(&["eval", "criteria", "chats.jsonl"]);
        assert_eq!((ran.exit, ran.out.as_str()), (2, ""), "{name}");
        let _ = writeln!(shown, "# {name}\n{}", ran.err);
    }
    for args in [
        &["--share", "0.8"][..],
        &["--share", "80,2k"],
        &["--share", "-5"],
        &["--share", "101%"],
    ] {
        let ran = criteria(&conversations, args);
        assert_eq!((ran.exit, ran.out.as_str()), (2, ""), "{args:?}");
        let _ = writeln!(shown, "# {}\n{}", args.join(" "), ran.err);
    }
    insta::assert_snapshot!("criteria_errors", shown);
}
