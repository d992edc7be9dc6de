//! Every command reads the same input as the same task: class, policy, budget and tokens.

use serde_json::Value;

use crate::sandbox::{Ran, Sandbox};

const CHAT: &str =
    r#"{"messages": [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]}"#;
const CHAT_LINES: &str =
    "{\"role\": \"user\", \"content\": \"one\"}\n{\"role\": \"user\", \"content\": \"two\"}\n";
const ARRAY: &str = r#"[{"content": "one", "tokens": 6}, {"content": "two", "tokens": 7}]"#;
const LINES: &str =
    "{\"content\": \"one\", \"tokens\": 6}\n{\"content\": \"two\", \"tokens\": 7}\n";
const REQUEST: &str = r#"{"items": [{"content": "one", "tokens": 6}, {"content": "two", "tokens": 7}],
 "budget": {"max_tokens": 50, "output_reserve": 10}, "policy": "rag"}"#;
const TOML: &str = "policy = \"rag\"\nitems = [{content = \"one\", tokens = 6}, {content = \"two\", tokens = 7}]\n[budget]\nmax_tokens = 50\noutput_reserve = 10\n";
const YAML: &str = "items:\n- {content: one, tokens: 6}\n- {content: two, tokens: 7}\nbudget: {max_tokens: 50, output_reserve: 10}\npolicy: rag\n";
const UNCOUNTED: &str =
    r#"[{"content": "one", "kind": "Document"}, {"content": "two", "tokens": 7}]"#;

/// An input and the task it stands for.
struct Expected {
    file: &'static str,
    text: &'static str,
    /// Whether the input states its budget.
    has_budget: bool,
    shape: &'static str,
    policy: &'static str,
    /// The limit of the window: with the reserve taken off.
    limit: i64,
    /// The tokens of all candidates.
    tokens: i64,
    counted: &'static str,
}

/// A message "one" costs 3 tokens of framing, 1 for its role and 1 for its text in `o200k_base`;
/// the answer costs 3 (OpenAI cookbook, "How to count tokens").
#[rustfmt::skip] // one input per line
fn inputs() -> Vec<Expected> {
    let chat = |file, text| Expected { file, text, has_budget: false, shape: "openai", policy: "agent", limit: 40, tokens: 13, counted: "counted by o200k_base" };
    let items = |file, text| Expected { file, text, has_budget: false, shape: "items", policy: "chat", limit: 40, tokens: 13, counted: "tokens as given" };
    let request = |file, text| Expected { has_budget: true, policy: "rag", ..items(file, text) };
    vec![
        chat("chat.json", CHAT),
        chat("chat.jsonl", CHAT_LINES),
        items("array.json", ARRAY),
        items("lines.jsonl", LINES),
        request("request.json", REQUEST),
        request("request.toml", TOML),
        request("request.yaml", YAML),
        Expected { tokens: 8, counted: "counted by o200k_base", ..items("uncounted.json", UNCOUNTED) },
    ]
}

fn run(sandbox: &Sandbox, command: &[&str], input: &Expected) -> Ran {
    let budget: &[&str] = if input.has_budget {
        &[]
    } else {
        &["--budget", "40"]
    };
    sandbox.run(&[command, &[input.file], budget].concat())
}

#[test]
fn every_command_agrees_on_class_policy_budget_and_tokens() {
    for input in inputs() {
        let sandbox = Sandbox::with(&[(input.file, input.text.as_bytes())]);
        let file = input.file;
        let Expected {
            shape,
            policy,
            limit,
            tokens,
            counted,
            ..
        } = input;
        let unit = if shape == "items" {
            "items"
        } else {
            "messages"
        };
        let first = format!("kept 2 of 2 {unit}, {tokens} of {tokens} tokens (budget {limit}");
        let last = format!("\n  {shape}, {counted}, policy {policy}\n");
        let agrees = |summary: &str| summary.starts_with(&first) && summary.ends_with(&last);

        let fit = run(&sandbox, &["fit"], &input);
        fit.ok();
        assert!(agrees(&fit.err), "fit {file}: {}", fit.err);

        let select = run(&sandbox, &["select"], &input);
        if shape == "items" {
            select.ok();
            assert!(agrees(&select.err), "select {file}: {}", select.err);
        } else {
            assert_eq!(select.exit, 2, "select {file}");
            assert!(select.err.contains("this is a chat"), "{}", select.err);
        }

        let explain = run(&sandbox, &["explain"], &input);
        let lines: Vec<&str> = explain.ok().lines().collect();
        let header = format!("{}\n{}\n", lines[0], lines[2]);
        assert!(agrees(&header), "explain {file}: {header}");

        let explain = run(&sandbox, &["explain", "--json"], &input).json();
        assert_eq!(explain["policy"], policy, "explain {file}");
        assert_eq!(explain["tokens_used"], tokens, "explain {file}");

        let sweep = run(&sandbox, &["sweep", "--json"], &input).json();
        let last = sweep["steps"].as_array().and_then(|steps| steps.last());
        assert_eq!(last.expect("a step")["to"], tokens, "sweep {file}");

        let least = run(&sandbox, &["min-budget", "--json"], &input).json();
        assert_eq!(least["ceiling"], tokens, "min-budget {file}");

        let lost = run(&sandbox, &["marginal", "--slack", "1", "--json"], &input).json();
        assert_eq!(lost["lost"], Value::Array(Vec::new()), "marginal {file}");

        let compare = run(
            &sandbox,
            &["compare", "--policy", "chat", "--policy", "rag", "--json"],
            &input,
        );
        for variant in compare.json()["variants"].as_array().expect("variants") {
            assert_eq!(variant["tokens"], tokens, "compare {file}");
        }

        let count = sandbox.run(&["count", file, "--json"]).json();
        assert_eq!(
            count["items"].as_array().map(Vec::len),
            Some(2),
            "count {file}"
        );
    }
}

/// A request on one line is answered by a batch as by `select`.
#[test]
fn a_batch_agrees_with_select() {
    let request = REQUEST.replace('\n', "");
    for line in [&*request, ARRAY] {
        let sandbox = Sandbox::with(&[("in.jsonl", line.as_bytes())]);
        let batch = sandbox.run(&["batch", "in.jsonl", "--budget", "40"]);
        let select = sandbox.run_with_input(
            &["select", "-", "--budget", "40", "--json"],
            line.as_bytes(),
        );
        assert_eq!(batch.ok(), select.ok());
    }
}

/// Inputs that no command accepts are refused by all of them with the same words.
#[test]
fn every_command_refuses_the_same_inputs_for_the_same_reason() {
    let inputs = [
        (
            "typed.json",
            r#"[{"type": "note", "content": "one", "tokens": 6}]"#,
            "unknown key",
        ),
        (
            "chat.yaml",
            "messages:\n- {role: user, content: one}\n",
            "a chat must be JSON",
        ),
        (
            "list.yaml",
            "- {role: user, content: one}\n",
            "a chat must be JSON",
        ),
        ("neither.json", r#"{"model": "gpt-4o"}"#, "`messages`"),
        (
            "cut.json",
            r#"{"messages": [{"role": "user", "con"#,
            "unterminated string",
        ),
    ];
    let commands: [&[&str]; 7] = [
        &["fit"],
        &["select"],
        &["explain"],
        &["sweep"],
        &["min-budget"],
        &["marginal", "--slack", "1"],
        &["compare", "--policy", "chat", "--policy", "rag"],
    ];
    for (file, text, says) in inputs {
        let sandbox = Sandbox::with(&[(file, text.as_bytes())]);
        let mut refusals = commands.map(|command| {
            let ran = sandbox.run(&[command, &[file, "--budget", "40"]].concat());
            assert_eq!(ran.exit, 2, "{command:?} {file}: {}", ran.err);
            ran.err
        });
        assert!(refusals[0].contains(says), "{file}: {}", refusals[0]);
        refusals.sort_unstable();
        assert_eq!(refusals.first(), refusals.last(), "{file}");
        let count = sandbox.run(&["count", file]);
        assert_eq!(count.exit, 2, "count {file}");
        assert!(count.err.contains(says), "{file}: {}", count.err);
    }
}
