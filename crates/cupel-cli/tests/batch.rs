//! Many requests at once.

use std::fmt::Write as _;

use serde_json::Value;

use crate::sandbox::{Sandbox, example};

/// A request of four items, told apart by its number.
fn request(number: usize) -> String {
    let mut items = String::new();
    for item in 0..4 {
        let _ = write!(
            items,
            "{}{{\"content\": \"{number}-{item}\", \"tokens\": {}, \"priority\": {item}}}",
            if item > 0 { ", " } else { "" },
            5 + (number * 7 + item * 3) % 11
        );
    }
    format!(
        "{{\"items\": [{items}], \"budget\": {{\"max_tokens\": 20}}, \"policy\": {{\"scorer\": {{\"type\": \"priority\"}}}}}}\n"
    )
}

#[test]
fn every_line_answers_as_select_does() {
    let sandbox = Sandbox::new();
    sandbox
        .run(&["batch", &example("requests.jsonl"), "answers.jsonl"])
        .ok();
    let requests = std::fs::read_to_string(example("requests.jsonl")).expect("the example");
    let answers = sandbox.read("answers.jsonl");
    assert_eq!(answers.lines().count(), 3);
    for (request, answer) in requests.lines().zip(answers.lines()) {
        let alone = sandbox.run_with_input(&["select", "-", "--json"], request.as_bytes());
        assert_eq!(answer, alone.ok().trim_end());
    }
}

#[test]
fn line_k_answers_line_k_over_many_chunks() {
    let requests: String = (0..5_000).map(request).collect();
    let sandbox = Sandbox::new();
    let ran = sandbox.run_with_input(&["batch", "-", "--brief"], requests.as_bytes());
    let summary = ran.err.lines().next();
    assert_eq!(summary, Some("5,000 requests answered, 0 failed"));
    let full = sandbox.run_with_input(&["batch", "-", "-"], requests.as_bytes());
    assert_eq!(ran.ok().lines().count(), 5_000);
    for (number, (brief, full)) in ran.out.lines().zip(full.ok().lines()).enumerate() {
        let brief: Value = serde_json::from_str(brief).expect("JSON");
        let full: Value = serde_json::from_str(full).expect("JSON");
        assert_eq!(brief["included"], full["included"]);
        assert_eq!(brief["excluded"], full["excluded"]);
        assert!(brief["report"].is_null());
        let content = full["selected"][0]["item"]["content"]
            .as_str()
            .expect("a content");
        assert!(
            content.starts_with(&format!("{number}-")),
            "line {number}: {content}"
        );
    }
}

#[test]
fn an_invalid_line_is_reported_with_its_number_and_the_batch_continues() {
    let mut lines: Vec<Vec<u8>> = (0..6).map(|number| request(number).into_bytes()).collect();
    lines[1] = b"{\"items\": [\n".to_vec();
    lines[2] = b"\n".to_vec();
    lines[3] = b"{\"items\": [], \"budget\": {\"max_tokens\": \xff}}\n".to_vec();
    lines[4] = b"{\"items\": [], \"buget\": {}}".to_vec();
    lines[4].push(b'\n');
    let sandbox = Sandbox::with(&[("in.jsonl", &lines.concat())]);
    let ran = sandbox.run(&["batch", "in.jsonl", "out.jsonl"]);
    assert_eq!(ran.exit, 2);
    let slowest = ran.err.find("  slowest").expect("a time");
    insta::assert_snapshot!("bad_lines", &ran.err[..slowest]);
    let answers = sandbox.read("out.jsonl");
    let answers: Vec<Value> = answers
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(answers.len(), 6);
    for (number, answer) in answers.iter().enumerate() {
        let failed = (1..5).contains(&number);
        assert_eq!(answer["error"].is_object(), failed, "line {}", number + 1);
        assert_eq!(
            answer["selected"].is_array(),
            !failed,
            "line {}",
            number + 1
        );
        if failed {
            assert_eq!(answer["error"]["line"], number + 1);
        }
    }
}

#[test]
fn batch_refuses_a_document_over_several_lines_and_keeps_the_output_file() {
    let item = r#"{"content": "a", "tokens": 1}"#;
    let long = format!("[\n{}\n]\n", vec![item; 5_000].join(",\n"));
    let two = format!("{{\n\"items\": [{item}]\n}}\n").repeat(2);
    let marked = format!("\u{feff}\n[\n{item}\n]");
    for document in [long, two, marked] {
        let sandbox = Sandbox::with(&[
            ("in.json", document.as_bytes()),
            ("out.jsonl", b"the answers of another day\n"),
        ]);
        let ran = sandbox.run(&["batch", "in.json", "out.jsonl"]);
        assert_eq!(ran.exit, 2);
        assert!(ran.err.contains("--> in.json\n"), "{}", ran.err);
        assert!(ran.err.contains("`jq -c .`"), "{}", ran.err);
        assert_eq!(sandbox.read("out.jsonl"), "the answers of another day\n");
    }
}

#[test]
fn a_truncated_first_line_is_one_invalid_line() {
    for cut_off in ["{\"items\": [\n", "\n", "[\n", "\"items\n", "\u{feff}{\n"] {
        let requests = format!("{cut_off}{}{}", request(1), request(2));
        let ran = Sandbox::new().run_with_input(&["batch", "-"], requests.as_bytes());
        assert_eq!((ran.exit, ran.out.lines().count()), (2, 3), "{}", ran.err);
        assert!(
            ran.err.contains("\n2 requests answered, 1 failed\n"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn a_request_over_its_budget_ends_the_batch_with_1() {
    let over = r#"{"items": [{"content": "a", "tokens": 9, "pinned": true}], "budget": {"max_tokens": 5}}"#;
    let input = format!("{over}\n{}", request(1));
    let ran = Sandbox::new().run_with_input(&["batch", "-"], input.as_bytes());
    assert_eq!(ran.exit, 1);
    assert_eq!(ran.out.lines().count(), 2);
    assert!(ran.err.contains("--> standard input:1"), "{}", ran.err);
}

#[test]
fn options_apply_to_every_request() {
    let input = "{\"items\": [{\"content\": \"a\", \"tokens\": 9}]}\n".repeat(2);
    let sandbox = Sandbox::new();
    let ran = sandbox.run_with_input(
        &["batch", "-", "--budget", "9", "--policy", "rag", "--brief"],
        input.as_bytes(),
    );
    for line in ran.ok().lines() {
        let answer: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(answer["selected"], serde_json::json!([{ "index": 0 }]));
    }
}
