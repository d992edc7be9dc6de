//! Every subcommand on the examples that come with the project.

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, example};

/// The positions in the answer's list.
fn indices(list: &Value) -> Vec<u64> {
    let list = list.as_array().expect("a list");
    list.iter()
        .map(|entry| entry["index"].as_u64().expect("an index"))
        .collect()
}

#[test]
fn select_answers_with_every_candidate_exactly_once() {
    let ran = Sandbox::new().run(&["select", &example("request.json"), "--json"]);
    let answer = ran.json();
    let mut keys: Vec<_> = answer.as_object().expect("an object").keys().collect();
    keys.sort();
    assert_eq!(
        keys,
        ["excluded", "included", "overflow", "report", "selected"]
    );
    let selected = indices(&answer["selected"]);
    assert_eq!(selected, indices(&answer["included"]));
    let mut all = [selected, indices(&answer["excluded"])].concat();
    all.sort_unstable();
    assert_eq!(all, (0..12).collect::<Vec<_>>());
    assert_eq!(
        answer["included"][0]["reason"],
        json!({ "reason": "Pinned" })
    );
    assert_eq!(answer["report"]["total_candidates"], 12);
    assert!(answer["excluded"][0]["reason"]["reason"].is_string());
}

#[test]
fn items_are_written_byte_for_byte() {
    let array = "[ {\"tokens\":1,  \"content\":\"a\"},\n{\"content\": \"b\", \"tokens\": 900}, {\"content\": \"\\u0063\", \"tokens\": 1, \"metadata\": {\"k\": 1.50}} ]";
    let lines = "{\"tokens\":1,  \"content\":\"a\"}\n\n{\"content\": \"b\", \"tokens\": 900}\n{\"content\": \"\\u0063\", \"tokens\": 1, \"metadata\": {\"k\": 1.50}}\n";
    let request = format!("{{\"budget\": {{\"max_tokens\": 10}}, \"items\": {array}}}");
    let yaml = "items:\n  - {content: a, tokens: 1}\nbudget: {max_tokens: 10}\n";
    let sandbox = Sandbox::with(&[
        ("array.json", array.as_bytes()),
        ("lines.jsonl", lines.as_bytes()),
        ("request.json", request.as_bytes()),
        ("request.yaml", yaml.as_bytes()),
    ]);
    let first = r#"{"tokens":1,  "content":"a"}"#;
    let last = r#"{"content": "\u0063", "tokens": 1, "metadata": {"k": 1.50}}"#;
    let listed = format!("[\n  {first},\n  {last}\n]\n");
    let check = |file: &str, expected: &str| {
        assert_eq!(
            sandbox.run(&["select", file, "--budget", "10"]).ok(),
            expected,
            "{file}"
        );
    };
    check("array.json", &listed);
    check("lines.jsonl", &format!("{first}\n{last}\n"));
    check("request.json", &listed);
    let ran = sandbox.run(&["select", "request.yaml"]);
    let items: Value = serde_json::from_str(ran.ok()).expect("JSON");
    assert_eq!(items[0]["content"], "a");
}

#[test]
fn one_item_on_one_line_is_lines() {
    let sandbox = Sandbox::new();
    let line = b"{\"content\": \"the items\", \"tokens\": 1}\n";
    let ran = sandbox.run_with_input(&["select", "-", "--budget", "10"], line);
    assert_eq!(ran.ok().as_bytes(), line);
}

#[test]
fn nothing_selected_is_an_empty_list() {
    let sandbox = Sandbox::with(&[("items.json", b"[{\"content\": \"a\", \"tokens\": 9}]")]);
    let ran = sandbox.run(&["select", "items.json", "--budget", "5"]);
    assert_eq!(ran.ok(), "[]\n");
    assert!(
        ran.err
            .starts_with("kept 0 of 1 item, 0 of 9 tokens (budget 5)\n"),
        "{}",
        ran.err
    );
}

#[test]
fn the_command_line_takes_precedence_over_the_request() {
    let sandbox = Sandbox::new();
    let request = example("request.json");
    let own = sandbox.run(&["explain", &request, "--json"]).json();
    assert_eq!(own["budget"]["max_tokens"], 200);
    assert_eq!(own["budget"]["output_reserve"], 20);
    assert_eq!(own["policy"], "of the request");
    let args = [
        "--budget", "120", "--target", "100", "--margin", "10", "--slot", "Memory=5", "--policy",
        "rag",
    ];
    let other = sandbox
        .run(&[&["explain", &request, "--json"], &args[..]].concat())
        .json();
    assert_eq!(
        other["budget"],
        json!({
            "max_tokens": 120,
            "target_tokens": 100,
            "output_reserve": 20,
            "reserved_slots": { "Memory": 5 },
            "estimation_safety_margin_percent": 10.0,
        })
    );
    assert_eq!(other["policy"], "rag");
}

#[test]
fn the_report_is_written_to_the_named_file() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["select", &example("request.json"), "--report", "why.json"]);
    ran.ok();
    let report: cupel::SelectionReport =
        serde_json::from_str(&sandbox.read("why.json")).expect("a report");
    assert_eq!(report.total_candidates, 12);
    let items: Vec<cupel::ContextItem> = serde_json::from_str(&ran.out).expect("items");
    assert_eq!(items.len(), report.included.len());
}

#[test]
fn explain_shows_every_candidate() {
    let ran = Sandbox::new().run(&["explain", &example("request.json")]);
    let lines: Vec<_> = ran.ok().lines().collect();
    let verdicts = |verdict: &str| {
        lines
            .iter()
            .filter(|line| line.starts_with(verdict))
            .count()
    };
    assert_eq!(verdicts("in ") + verdicts("out"), 12);
    assert!(lines[0].contains("(budget 180: "), "{}", lines[0]);
    assert!(ran.out.contains("duplicate of another item"));
    assert!(ran.out.contains("pinned"));
}

#[test]
fn explain_describes_one_candidate() {
    let sandbox = Sandbox::new();
    let args = ["explain", &example("request.json"), "--item", "4"];
    let ran = sandbox.run(&args);
    assert!(
        ran.ok().starts_with("item 4 (Document), 26 tokens\n"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("  out       duplicate of another item\n"));
    let answer = sandbox.run(&[&args[..], &["--json"]].concat()).json();
    assert_eq!(answer["index"], 4);
    assert_eq!(answer["displaced_by"], json!([6]));
}

#[test]
fn explain_writes_a_self_contained_page() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["explain", &example("request.json"), "--html", "why.html"]);
    assert_eq!((ran.ok(), &*ran.err), ("", "wrote why.html\n"));
    let page = sandbox.read("why.html");
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"));
    assert!(page.contains("Carrier status for DE-88213-X"));
    assert!(!page.contains("src=\"http") && !page.contains("href=\"http"));
}

#[test]
fn sweep_plots_writes_csv_and_json() {
    let sandbox = Sandbox::new();
    let args = ["sweep", &example("items.json"), "--policy", "rag"];
    let plot = sandbox.run(&args);
    assert!(plot.ok().contains("budget 0"), "{}", plot.out);
    let csv = sandbox.run(&[&args[..], &["--csv"]].concat());
    assert!(
        csv.ok()
            .starts_with("from,to,tokens_used,total_score,included,shortened,excluded,error\n")
    );
    let items = sandbox.run(&[&args[..], &["--csv", "items"]].concat());
    assert!(items.ok().starts_with("index,from,to,view\n"));
    let answer = sandbox.run(&[&args[..], &["--json"]].concat()).json();
    let steps = answer["steps"].as_array().expect("steps");
    assert_eq!(csv.out.lines().count(), steps.len() + 1);
    assert_eq!(steps[0]["from"], 0);
    assert_eq!(steps[steps.len() - 1]["to"], 336);
}

#[test]
fn a_budget_one_below_the_least_does_not_select_the_item() {
    let sandbox = Sandbox::new();
    let items = example("items.json");
    let policy = example("policy.toml");
    for item in [2, 9, 11] {
        let number = item.to_string();
        let least = sandbox.run(&["min-budget", &items, "--policy", &policy, "--item", &number]);
        let least: i64 = least.ok().trim().parse().expect("a number");
        let selects = |budget: i64| {
            let budget = budget.to_string();
            let args = [
                "explain", &items, "--policy", &policy, "--budget", &budget, "--json",
            ];
            let answer = sandbox.run(&args).json();
            let candidates = answer["candidates"].as_array().expect("candidates").clone();
            candidates
                .iter()
                .any(|one| one["index"] == item && one["included"] == true)
        };
        assert!(selects(least), "{item} at {least}");
        assert!(!selects(least - 1), "{item} at {}", least - 1);
    }
    let all = sandbox
        .run(&["min-budget", &items, "--policy", &policy, "--json"])
        .json();
    assert_eq!(all["items"].as_array().map(Vec::len), Some(12));
}

#[test]
fn marginal_items_are_those_of_the_larger_window_only() {
    let sandbox = Sandbox::new();
    let items = example("items.json");
    let window = |budget: &str| {
        let args = [
            "select", &items, "--policy", "rag", "--budget", budget, "--json",
        ];
        indices(&sandbox.run(&args).json()["selected"])
    };
    let args = [
        "marginal", &items, "--policy", "rag", "--budget", "200", "--slack", "80", "--json",
    ];
    let lost = indices(&sandbox.run(&args).json()["lost"]);
    let small = window("120");
    let expected: Vec<_> = window("200")
        .into_iter()
        .filter(|index| !small.contains(index))
        .collect();
    assert!(!expected.is_empty());
    assert_eq!(lost, expected);
}

#[test]
fn compare_lists_the_items_on_which_policies_disagree() {
    let sandbox = Sandbox::new();
    let args = [
        "compare",
        &example("request.json"),
        "--policy",
        "chat",
        "--budget",
        "150",
    ];
    let answer = sandbox.run(&[&args[..], &["--json"]].concat()).json();
    let variants = answer["variants"].as_array().expect("variants");
    assert_eq!(
        [&variants[0]["policy"], &variants[1]["policy"]],
        ["of the request", "chat"]
    );
    let has = |variant: usize, index: &Value| {
        let selected = variants[variant]["selected"].as_array().expect("positions");
        selected.contains(index)
    };
    let mut swings = 0;
    for index in (0..12).map(Value::from) {
        let swing = answer["diffs"]
            .as_array()
            .expect("diffs")
            .iter()
            .find(|diff| diff["index"] == index);
        assert_eq!(swing.is_some(), has(0, &index) != has(1, &index));
        if let Some(swing) = swing {
            swings += 1;
            assert_eq!(swing["included"], json!([has(0, &index), has(1, &index)]));
        }
    }
    assert!(swings > 0);
    let table = sandbox.run(&args);
    assert_eq!(table.ok().lines().count(), swings + 1);
    assert!(
        table
            .err
            .contains(&format!("policies disagree on {swings} items")),
        "{}",
        table.err
    );
}

#[test]
fn presets_can_be_listed_shown_checked_and_used() {
    let sandbox = Sandbox::new();
    let presets = sandbox.run(&["policy", "list", "--json"]).json();
    let listed = sandbox.run(&["policy", "list"]);
    for preset in presets.as_array().expect("a list") {
        let name = preset["name"].as_str().expect("a name");
        assert!(listed.ok().contains(name));
        for format in ["json", "toml", "yaml"] {
            let file = format!("mine.{format}");
            let text = sandbox.run(&["policy", "show", name, "--format", format]);
            std::fs::write(sandbox.path(&file), text.ok()).expect("a file");
            assert_eq!(
                sandbox.run(&["policy", "check", &file]).ok(),
                format!("{file}: ok\n")
            );
            let shown = sandbox.run(&["policy", "show", &file]);
            assert_eq!(
                shown.ok(),
                sandbox.run(&["policy", "show", name]).ok(),
                "{name} as {format}"
            );
        }
        let selected = sandbox.run(&[
            "select",
            &example("items.json"),
            "--budget",
            "150",
            "--policy",
            name,
            "--query",
            "Where is order 4711?",
        ]);
        selected.ok();
    }
}

#[test]
fn every_file_is_checked_even_if_others_are_invalid() {
    let sandbox = Sandbox::with(&[
        ("bad.json", b"{}"),
        ("good.yaml", b"scorer: {type: recency}\n"),
    ]);
    let ran = sandbox.run(&["policy", "check", "bad.json", "nowhere.json", "good.yaml"]);
    assert_eq!((ran.exit, &*ran.out), (2, "good.yaml: ok\n"));
    assert_eq!(ran.err.matches("error:").count(), 2, "{}", ran.err);
}

#[test]
fn schemas_are_json() {
    let sandbox = Sandbox::new();
    for args in [
        &["policy", "schema"][..],
        &["policy", "schema", "--request"],
        &["policy", "schema", "--answers"],
    ] {
        assert!(sandbox.run(args).json()["$schema"].is_string());
        assert!(sandbox.run(args).out.ends_with("}\n"));
    }
}

#[test]
fn every_command_has_help_with_examples_and_a_page() {
    let sandbox = Sandbox::new();
    let pages = sandbox.run(&["man", "pages"]);
    let help = sandbox.run(&["--help"]);
    let commands = help
        .ok()
        .lines()
        .skip_while(|line| *line != "Everyday:")
        .skip(1);
    let commands: Vec<_> = commands
        .take_while(|line| *line != "Options:")
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.len() >= 15, "{commands:?}");
    for command in commands {
        let help = sandbox.run(&[command, "--help"]);
        assert!(help.ok().contains("Examples:"), "{command}");
        let page = format!("pages/cupel-{command}.1");
        assert!(pages.ok().contains(&page), "{page}");
        assert!(sandbox.read(&page).contains(".TH cupel-"), "{page}");
    }
    assert!(sandbox.run(&["man"]).ok().contains(".TH cupel 1"));
}

/// The licenses ask for their texts, for these attributions, and for a notice of the restrictions of use.
#[test]
fn licenses_has_the_texts_and_attributions_of_all_that_the_command_contains() {
    let sandbox = Sandbox::new();
    let licenses = sandbox.run(&["licenses"]);
    let text = licenses.ok();
    assert!(text.starts_with(include_str!("../LICENSE").trim_end()));
    let mut at = 0;
    for expected in [
        "Copyright (c) 2022 OpenAI",
        "Built with Meta Llama 3.",
        "Meta Llama 3 is licensed under the Meta Llama 3 Community License, Copyright © Meta",
        "subject to paragraph 5 and Attachment A",
        "META LLAMA 3 COMMUNITY LICENSE AGREEMENT",
        "Meta Llama 3 Acceptable Use Policy",
        "DEEPSEEK LICENSE AGREEMENT",
        "Attachment A",
        "Copyright (c) 2025 Moonshot AI",
        "Apache License",
        "tiktoken 4.",
        "clap ",
    ] {
        let rest = &text[at..];
        at += rest
            .find(expected)
            .unwrap_or_else(|| panic!("no {expected:?} after byte {at}"));
    }
}

#[test]
fn every_shell_has_completions() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = sandbox.run(&["completions", shell]);
        assert!(script.ok().contains("min-budget"), "{shell}");
    }
}

#[test]
fn the_same_input_has_the_same_answer_to_the_byte() {
    let sandbox = Sandbox::new();
    let args = ["select", &example("request.json"), "--json"];
    assert_eq!(sandbox.run(&args).ok(), sandbox.run(&args).ok());
}

#[test]
fn a_margin_is_shown_with_the_budget() {
    let items = example("items.json");
    for command in ["select", "fit"] {
        let ran = Sandbox::new().run(&[command, &items, "--budget", "100", "--margin", "50"]);
        assert!(ran.err.contains("(budget 100: margin 50 %)"), "{}", ran.err);
    }
}

#[test]
fn items_of_any_size_can_be_swept() {
    let items = br#"[{"content": "a", "tokens": 9000000000000000000}, {"content": "b", "tokens": 9000000000000000000}, {"content": "c", "tokens": 5}]"#;
    let ran = Sandbox::new().run_with_input(&["min-budget", "-", "--json"], items);
    let least: Vec<Value> = ran.json()["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| item["min_budget"].clone())
        .collect();
    assert_eq!(least, [Value::Null, Value::Null, json!(5)]);
}

#[test]
fn views_are_shown_by_every_command_over_items() {
    let request = br#"{"items": [
        {"content": "alpha", "tokens": 1000, "future_relevance_hint": 0.9, "views": [{"content": "a", "tokens": 20}]},
        {"content": "beta", "tokens": 30, "future_relevance_hint": 0.5}],
        "policy": {"scorer": {"type": "reflexive"}, "slicer": {"type": "ladder",
            "steps": [{"type": "shorten", "kind": "Message", "levels": [100]}, {"type": "drop"}]}}}"#;
    let run = |args: &[&str]| {
        let sandbox = Sandbox::new();
        let args = [&[args[0], "-"], &args[1..]].concat();
        sandbox.run_with_input(&args, request)
    };
    let selected = run(&["select", "--budget", "50", "--json"]).json();
    let item = &selected["selected"][0]["item"];
    assert_eq!(
        (&item["content"], &item["original_tokens"]),
        (&json!("a"), &json!(1000))
    );
    let reason = json!({"reason": "Shortened", "tokens": 20, "original_tokens": 1000});
    assert_eq!(selected["included"][0]["reason"], reason);
    let written = run(&["select", "--budget", "50"]);
    assert!(
        written.ok().contains(r#""content":"a","tokens":20"#),
        "{}",
        written.out
    );

    let explained = run(&["explain", "--budget", "50"]);
    assert!(explained.ok().contains("shortened to 20 of 1,000 tokens"));
    let one = run(&["explain", "--budget", "50", "--item", "0"]);
    assert!(
        one.ok().contains("in full   at a budget of 1,030 or more"),
        "{}",
        one.out
    );
    let sandbox = Sandbox::new();
    let args = ["explain", "-", "--budget", "50", "--html", "why.html"];
    sandbox.run_with_input(&args, request).ok();
    let page = sandbox.read("why.html");
    assert!(page.contains(r#""views":[[20,1000,0]],"forms":[[20,["a"],20,null]]"#));

    let swept = run(&["sweep"]);
    assert!(swept.ok().contains("      2          1 "), "{}", swept.out);
    let items = run(&["sweep", "--csv", "items"]);
    assert!(
        items.ok().contains("\n0,20,1029,0\n0,1030,1030,\n"),
        "{}",
        items.out
    );

    let least = run(&["min-budget"]);
    assert!(least.ok().contains("20         1,030  "), "{}", least.out);
    let one = run(&["min-budget", "--item", "0"]);
    assert_eq!(one.ok(), "20\n");
    assert!(
        one.err.contains("shortened below a budget of 1,030"),
        "{}",
        one.err
    );
}
