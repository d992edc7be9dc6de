//! Chats in wrappers and files with many chats, through the command.

use serde_json::Value;

use crate::sandbox::Sandbox;

/// A request whose old answer does not fit into 60 tokens.
fn request(id: &str, task: &str) -> String {
    let long = "old ".repeat(100);
    format!(
        r#"{{"custom_id": "{id}", "body": {{"model": "gpt-4o", "messages": [{{"role": "user", "content": "{task}"}}, {{"role": "assistant", "content": "{long}"}}, {{"role": "user", "content": "And now?"}}]}}}}"#
    )
}

#[test]
fn every_chat_of_a_file_is_fitted_in_its_line() {
    let sandbox = Sandbox::new();
    let lines = format!("{}\n{}\n", request("a", "One?"), request("b", "Two?"));
    let ran = sandbox.run_with_input(&["fit", "-", "--budget", "60"], lines.as_bytes());
    let fitted: Vec<&str> = ran.ok().lines().collect();
    assert_eq!(fitted.len(), 2);
    for ((line, id), task) in fitted.iter().zip(["a", "b"]).zip(["One?", "Two?"]) {
        let start = format!(
            r#"{{"custom_id": "{id}", "body": {{"model": "gpt-4o", "messages": [{{"role": "user", "content": "{task}"}}"#
        );
        assert!(line.starts_with(&start), "{line}");
        assert!(
            line.ends_with(r#"{"role": "user", "content": "And now?"}]}}"#),
            "{line}"
        );
        // Alone, the line is fitted in the same way.
        let alone = sandbox.run_with_input(
            &["fit", "-", "--budget", "60"],
            request(id, task).as_bytes(),
        );
        assert_eq!(alone.ok().trim_end(), *line);
    }
    assert!(ran.err.contains("line 2: kept "), "{}", ran.err);
    assert!(
        ran.err.contains("2 chats fitted, 0 failed: kept "),
        "{}",
        ran.err
    );
    let roomy = sandbox.run_with_input(&["fit", "-", "--budget", "8k"], lines.as_bytes());
    assert_eq!(roomy.ok(), lines, "byte for byte");
    let array = format!("[{},\n {}]\n", request("a", "One?"), request("b", "Two?"));
    let roomy = sandbox.run_with_input(&["fit", "-", "--budget", "8k"], array.as_bytes());
    assert_eq!(roomy.ok(), array, "byte for byte");
}

#[test]
fn a_chat_that_fails_is_named_and_the_others_are_answered() {
    let sandbox = Sandbox::new();
    let broken = r#"{"custom_id": "x", "body": {"messages": [{"role": "king", "content": "x"}]}}"#;
    let large = request("c", &"new ".repeat(100));
    let small = request("a", "One?");
    let lines = format!("{small}\n{broken}\n\n{large}\n{small}\n");
    let ran = sandbox.run_with_input(&["fit", "-", "--budget", "20"], lines.as_bytes());
    assert_eq!(ran.exit, 2, "{}", ran.err);
    assert!(ran.err.contains("standard input:2:"), "{}", ran.err);
    assert!(ran.err.contains("unknown role \"king\""), "{}", ran.err);
    assert!(ran.err.contains("standard input:4"), "{}", ran.err);
    assert!(ran.err.contains("2 chats fitted, 2 failed"), "{}", ran.err);
    let answers: Vec<&str> = ran.out.lines().collect();
    let is_error = |line: &str| {
        let value: Value = serde_json::from_str(line).expect("JSON");
        value.get("error").is_some()
    };
    assert_eq!(answers.len(), 5);
    assert!(!is_error(answers[0]) && is_error(answers[1]));
    assert!(answers[2].is_empty(), "a blank line stays");
    assert!(is_error(answers[3]) && !is_error(answers[4]));
    let over = format!("{small}\n{large}\n");
    let ran = sandbox.run_with_input(&["fit", "-", "--budget", "20"], over.as_bytes());
    assert_eq!(ran.exit, 1, "{}", ran.err);
}

#[test]
fn a_pointer_names_the_chat_on_every_command_that_reads_one() {
    let sandbox = Sandbox::new();
    let log = r#"{"id": 7, "request": {"body": {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}}}"#;
    std::fs::write(sandbox.path("log.json"), log).expect("a file");
    let at = ["--at", "/request/body"];
    let ran = sandbox.run(&[&["fit", "log.json", "--budget", "8k"], &at[..]].concat());
    assert_eq!(ran.ok().trim_end(), log);
    for command in [
        &["count", "log.json"][..],
        &["explain", "log.json", "--budget", "8k"],
        &["sweep", "log.json"],
        &[
            "compare", "log.json", "--budget", "8k", "--policy", "agent", "--policy", "newest",
        ],
    ] {
        sandbox.run(&[command, &at[..]].concat()).ok();
    }
    let ran = sandbox.run(&["fit", "log.json", "--budget", "8k"]);
    assert_eq!(ran.exit, 2);
    assert!(
        ran.err.contains("--at /request/body/messages"),
        "{}",
        ran.err
    );
    let ran = sandbox.run(&["fit", "log.json", "--budget", "8k", "--at", "request"]);
    assert!(ran.err.contains("starts with `/`"), "{}", ran.err);
    let logs = format!("{log}\n{log}\n");
    let args = ["fit", "-", "--budget", "8k", "--at", "/request/body"];
    assert_eq!(sandbox.run_with_input(&args, logs.as_bytes()).ok(), logs);
}

#[test]
fn a_command_for_one_chat_says_how_to_name_one_of_many() {
    let sandbox = Sandbox::new();
    let lines = format!("{}\n{}\n", request("a", "One?"), request("b", "Two?"));
    let ran = sandbox.run_with_input(&["count", "-"], lines.as_bytes());
    assert_eq!(ran.exit, 2);
    assert!(ran.err.contains("2 chats in one text"), "{}", ran.err);
    assert!(ran.err.contains("`sed -n 1p`"), "{}", ran.err);
    let array = format!("[{}, {}]", request("a", "One?"), request("b", "Two?"));
    let ran = sandbox.run_with_input(&["count", "-"], array.as_bytes());
    assert!(ran.err.contains("--at /0"), "{}", ran.err);
    sandbox
        .run_with_input(&["count", "-", "--at", "/0"], array.as_bytes())
        .ok();
}

#[test]
fn formats_that_are_not_read_are_named() {
    let sandbox = Sandbox::new();
    for (name, text, says) in [
        ("chat.txt", "<|im_start|>user\nhi<|im_end|>\n", "ChatML"),
        ("chat.json", "<|im_start|>user\nhi<|im_end|>\n", "ChatML"),
        (
            "chat.json",
            r#"{"message": "and?", "chat_history": []}"#,
            "Cohere Chat API v1",
        ),
        (
            "chat.json",
            r#"[{"parts": [{"part_kind": "user-prompt"}]}]"#,
            "PydanticAI",
        ),
    ] {
        std::fs::write(sandbox.path(name), text).expect("a file");
        let ran = sandbox.run(&["fit", name, "--budget", "8k"]);
        assert_eq!(ran.exit, 2);
        assert!(
            ran.err.contains(says) && ran.err.contains("convert it"),
            "{}",
            ran.err
        );
    }
}
