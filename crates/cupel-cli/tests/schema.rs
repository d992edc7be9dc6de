//! What `--json` prints is valid under the schema of the answers.

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox, example};

/// Returns the validator of an answer, or of what one of several answers may be.
fn validator(answers: &[&str]) -> Validator {
    let schema: Value = serde_json::from_str(cupel_app::answers_schema()).expect("a schema");
    let answers = answers.iter();
    let answers = answers.map(|it| json!({ "$ref": format!("#/$defs/{it}") }));
    let answers: Vec<Value> = answers.collect();
    let schema = json!({ "$defs": schema["$defs"], "anyOf": answers });
    jsonschema::validator_for(&schema).expect("the schema is valid")
}

/// Checks values, one per line if there are several.
#[track_caller]
fn check(answers: &[&str], text: &str, command: &[&str]) -> usize {
    let validator = validator(answers);
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let values: Vec<Value> = values.collect::<Result<_, _>>().expect("JSON");
    for value in &values {
        let errors = validator.iter_errors(value);
        let errors: Vec<String> = errors.map(|it| it.to_string()).collect();
        assert!(errors.is_empty(), "{command:?}: {errors:#?}\n{value:#}");
    }
    values.len()
}

fn json(sandbox: &Sandbox, command: &[&str]) -> Ran {
    sandbox.run(&[command, &["--json"]].concat())
}

#[test]
fn every_answer_of_the_command_is_valid() {
    let sandbox = Sandbox::new();
    let (chat, items) = (example("agent-session.json"), example("items.json"));
    let (request, requests) = (example("request.json"), example("requests.jsonl"));
    let (chat, items, request, requests) = (&*chat, &*items, &*request, &*requests);
    let commands: [(&str, &[&str]); 23] = [
        ("FitAnswer", &["fit", chat, "--budget", "2k"]),
        (
            "FitAnswer",
            &["fit", chat, "--budget", "8k", "--state", "s"],
        ),
        (
            "FitAnswer",
            &["fit", chat, "--budget", "2k", "--state", "s"],
        ),
        ("FitAnswer", &["fit", items, "--budget", "100"]),
        ("SelectAnswer", &["select", items, "--budget", "100"]),
        ("SelectAnswer", &["select", request]),
        ("ExplainAnswer", &["explain", chat, "--budget", "2k"]),
        ("ExplainAnswer", &["explain", request]),
        ("ExplainOneAnswer", &["explain", request, "--item", "2"]),
        (
            "ExplainOneAnswer",
            &["explain", chat, "--budget", "2k", "--item", "7"],
        ),
        ("SearchAnswer", &["search", items, "carrier", "--top", "2"]),
        ("SearchAnswer", &["search", chat, "Which test fails?"]),
        ("SweepAnswer", &["sweep", items, "--policy", "rag"]),
        (
            "SweepAnswer",
            &["sweep", chat, "--from", "1900", "--to", "2000"],
        ),
        ("MinBudgetAnswer", &["min-budget", items, "--policy", "rag"]),
        ("MinBudgetAnswer", &["min-budget", items, "--item", "2"]),
        (
            "MarginalAnswer",
            &["marginal", items, "--budget", "150", "--slack", "50"],
        ),
        (
            "CompareAnswer",
            &[
                "compare", items, "--budget", "120", "--policy", "chat", "--policy", "rag",
            ],
        ),
        ("CountAnswer", &["count", chat]),
        ("CountAnswer", &["count", items]),
        ("CountAnswer", &["count", requests, "--text"]),
        ("ModelsAnswer", &["models"]),
        ("ModelsAnswer", &["models", "gpt-4o"]),
    ];
    for (answer, command) in commands {
        let ran = json(&sandbox, command);
        assert_eq!(check(&[answer], ran.ok(), command), 1, "{command:?}");
        assert_eq!(check(&["ErrorAnswer"], &ran.err, command), 0, "{command:?}");
    }
}

#[test]
fn every_line_of_a_batch_is_valid() {
    let chat = r#"{"messages": [{"role": "user", "content": "Hello!"}]}"#;
    let lines = format!(
        "{chat}\n[{{\"content\": \"a\", \"tokens\": 3}}]\nnothing\n{{\"custom_id\": \"r\"}}\n"
    );
    let chats = format!("{chat}\n{{\"custom_id\": \"r\", \"messages\": 1}}\n{chat}\n");
    let files: [(&str, &[u8]); 2] = [
        ("in.jsonl", lines.as_bytes()),
        ("chats.jsonl", chats.as_bytes()),
    ];
    let sandbox = Sandbox::with(&files);
    let requests = example("requests.jsonl");
    let answers = ["FitAnswer", "SelectAnswer", "ErrorAnswer"];
    for (command, exit, count) in [
        (&["batch", &*requests][..], 0, 3),
        (&["batch", &*requests, "--brief"], 0, 3),
        (&["batch", "in.jsonl", "--budget", "100"], 2, 4),
        (&["batch", "in.jsonl", "--budget", "100", "--brief"], 2, 4),
        (&["fit", "chats.jsonl", "--budget", "100"], 2, 3),
    ] {
        let ran = json(&sandbox, command);
        assert_eq!(ran.exit, exit, "{command:?}: {}", ran.err);
        assert_eq!(check(&answers, &ran.out, command), count, "{command:?}");
    }
}

#[test]
fn every_error_is_valid() {
    let files: [(&str, &[u8]); 3] = [
        ("bad.json", b"{\"messages\": [{\"role\": 1}]}"),
        ("policy.json", b"{\"scorer\": {\"type\": \"recent\"}}"),
        ("items.json", b"[{\"content\": \"a\", \"tokens\": 3}]"),
    ];
    let sandbox = Sandbox::with(&files);
    let chat = example("agent-session.json");
    let commands: [(&[&str], i32); 9] = [
        (&["fit", &chat, "--budget", "300"], 1),
        (&["explain", &chat, "--budget", "300"], 1),
        (&["fit", "bad.json", "--budget", "100"], 2),
        (&["fit", "missing.json"], 2),
        (&["fit", &chat, "--budget", "8,000"], 2),
        (
            &[
                "select",
                "items.json",
                "--budget",
                "9",
                "--policy",
                "policy.json",
            ],
            2,
        ),
        (
            &["explain", "items.json", "--budget", "9", "--item", "5"],
            2,
        ),
        (&["models", "gpt-unknown"], 2),
        (&["sweeep"], 2),
    ];
    for (command, exit) in commands {
        let ran = json(&sandbox, command);
        assert_eq!(ran.exit, exit, "{command:?}: {}", ran.err);
        assert_eq!(ran.out, "", "{command:?}");
        assert_eq!(check(&["ErrorAnswer"], &ran.err, command), 1, "{command:?}");
    }
}
