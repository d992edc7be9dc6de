//! The conformance suite through the command.

use crate::sandbox::Sandbox;

/// The example of `PROGRAM.md`.
fn program() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/documents/PROGRAM.md");
    let text = std::fs::read_to_string(path).expect("the description is there");
    let (_, program) = text.split_once("```python\n").expect("it has a program");
    program
        .split_once("```")
        .expect("the program ends")
        .0
        .to_owned()
}

fn has_python() -> bool {
    let version = std::process::Command::new("python3")
        .arg("--version")
        .output();
    version.is_ok_and(|output| output.status.success())
}

#[test]
fn the_command_is_fully_conformant() {
    let answer = Sandbox::new().run(&["conform", "--json"]).json();
    assert_eq!(answer["claim"], "Cupel Fully Conformant");
    assert_eq!(answer["failures"], serde_json::json!([]));
    for (level, counts) in answer["levels"].as_object().expect("levels") {
        assert_eq!(counts["unsupported"], 0, "{level}");
        assert!(counts["passed"].as_u64() > Some(0), "{level}");
    }
    let channels = answer["channels"].as_object().expect("channels").keys();
    assert_eq!(
        channels.collect::<Vec<_>>(),
        [
            "events",
            "order",
            "overflow",
            "report",
            "scores",
            "selection",
            "shortfalls",
            "window"
        ]
    );
}

#[test]
fn a_program_answers_as_the_library_does() {
    let cupel = assert_cmd::cargo::cargo_bin("cupel").display().to_string();
    let args = ["conform", "--json", "--exec", &cupel, "conform", "--answer"];
    let answer = Sandbox::new().run(&args).json();
    assert_eq!(answer["claim"], "Cupel Fully Conformant");
    let own = Sandbox::new().run(&["conform", "--json"]).json();
    assert_eq!(answer["levels"], own["levels"]);
    assert_eq!(answer["channels"], own["channels"]);
}

#[test]
fn the_program_of_the_description_only_places_by_time() {
    if !has_python() {
        return;
    }
    let sandbox = Sandbox::with(&[("place.py", program().as_bytes())]);
    let ran = sandbox.run(&["conform", "--json", "--exec", "python3", "place.py"]);
    assert_eq!(ran.exit, 1, "{}", ran.err);
    let answer: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(answer["success"], false, "required cases are not supported");
    assert!(answer["claim"].is_null());
    let required = &answer["levels"]["required"];
    assert!(required["passed"].as_u64() > Some(3), "{required}");
    assert!(required["unsupported"].as_u64() > Some(30), "{required}");
}

#[test]
fn a_program_that_lacks_a_channel_it_must_support_fails() {
    let script = b"while read -r question; do echo '{\"unsupported\": \"all\"}'; done";
    let sandbox = Sandbox::with(&[("none.sh", script)]);
    let conform = |supports: &[&str]| {
        let args = [&["conform", "--requirement", "CHRONO-1"], supports].concat();
        sandbox.run(&[&args[..], &["--exec", "/bin/sh", "none.sh"]].concat())
    };
    let says = "order: declared, but not observed: all";
    let ran = conform(&[]);
    assert!(!ran.out.contains(says), "{}", ran.out);
    let ran = conform(&["--supports", "scores,order"]);
    assert_eq!(ran.exit, 1, "{}", ran.err);
    assert!(ran.out.contains(says), "{}", ran.out);
    let ran = conform(&["--supports", "orders"]);
    assert!(ran.err.contains("unknown channel `orders`"), "{}", ran.err);
}

#[test]
fn a_program_that_answers_wrongly_fails_and_the_difference_is_shown() {
    let sandbox = Sandbox::with(&[(
        "wrong.sh",
        b"while read -r question; do echo '{\"order\": [0]}'; done",
    )]);
    let ran = sandbox.run(&[
        "conform",
        "--requirement",
        "CHRONO-*",
        "--exec",
        "/bin/sh",
        "wrong.sh",
    ]);
    assert_eq!(ran.exit, 1, "{}", ran.err);
    assert!(ran.out.contains("order: expected"), "{}", ran.out);
    assert!(ran.out.contains("FAILED"));
}

#[test]
fn a_program_may_exit_after_every_answer() {
    let sandbox = Sandbox::with(&[(
        "once.sh",
        b"read -r question; echo '{\"unsupported\": \"all\"}'",
    )]);
    let ran = sandbox.run(&[
        "conform",
        "--json",
        "--requirement",
        "CHRONO-1",
        "--exec",
        "/bin/sh",
        "once.sh",
    ]);
    let answer: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(answer["failures"], serde_json::json!([]));
    assert!(answer["levels"]["optional"]["unsupported"].as_u64() > Some(1));
    assert_eq!(answer["success"], false, "nothing was tried");
}

#[test]
fn a_program_that_is_silent_fails_or_writes_no_json_fails_every_case() {
    let sandbox = Sandbox::with(&[
        ("bad.sh", b"exit 7"),
        ("mute.sh", b"exec sleep 60"),
        ("odd.sh", b"echo hello; cat"),
    ]);
    for (script, says) in [
        ("bad.sh", "ended without an answer"),
        ("mute.sh", "no answer within 1 seconds"),
        ("odd.sh", "invalid answer"),
    ] {
        let args = [
            "conform",
            "--name",
            "from the oldest to",
            "--timeout",
            "1",
            "--exec",
            "/bin/sh",
            script,
        ];
        let ran = sandbox.run(&args);
        assert_eq!(ran.exit, 1, "{script}: {}", ran.err);
        assert!(ran.out.contains(says), "{script}: {}", ran.out);
    }
}

#[test]
fn cases_can_be_listed_by_requirement_and_flag() {
    let sandbox = Sandbox::new();
    let all = sandbox.run(&["conform", "--list", "--json"]).json();
    let some = sandbox
        .run(&["conform", "--list", "--json", "--requirement", "SLICE-*"])
        .json();
    let all = all.as_array().expect("a list");
    let some = some.as_array().expect("a list");
    let proves = |case: &&serde_json::Value| {
        let rows = case["requirements"].as_array().expect("rows");
        rows.iter()
            .any(|row| row.as_str().is_some_and(|row| row.starts_with("SLICE-")))
    };
    assert!(!some.is_empty());
    assert_eq!(some.len(), all.iter().filter(proves).count());
    let flagged = sandbox.run(&["conform", "--list", "--flag", "TwinContent"]);
    assert!(flagged.ok().lines().count() > 1);
}

#[test]
fn a_program_gets_no_more_questions_after_three_timeouts() {
    let sandbox = Sandbox::with(&[("mute.sh", b"exec sleep 60")]);
    let args = ["conform", "--requirement", "CHRONO-*", "--timeout", "1"];
    let ran = sandbox.run(&[&args[..], &["--exec", "/bin/sh", "mute.sh"]].concat());
    assert_eq!(ran.exit, 1, "{}", ran.err);
    assert_eq!(ran.out.matches("no answer within 1 seconds").count(), 3);
    assert!(
        ran.out.contains("the program timed out 3 times in a row"),
        "{}",
        ran.out
    );
}

#[test]
fn required_cases_that_are_not_supported_are_counted() {
    let script = b"while read -r question; do echo '{\"unsupported\": \"all\"}'; done";
    let sandbox = Sandbox::with(&[("none.sh", script)]);
    let ran = sandbox.run(&["conform", "--exec", "/bin/sh", "none.sh"]);
    assert_eq!(ran.exit, 1, "{}", ran.err);
    let verdict = ran.out.lines().last().unwrap_or_default();
    assert!(
        verdict.starts_with("FAILED, 204 required cases not supported"),
        "{verdict}"
    );
}
