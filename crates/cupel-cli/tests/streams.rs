//! Standard input and output, pipes, colors.

use std::io::Read as _;
use std::process::{Command, Stdio};

use assert_cmd::cargo::CommandCargoExt as _;

use crate::sandbox::{Sandbox, example};

const ESCAPE: char = '\u{1b}';

#[test]
fn a_selection_can_be_selected_from_again() {
    let sandbox = Sandbox::new();
    let first = sandbox.run(&["select", &example("items.json"), "--budget", "150"]);
    let again = sandbox.run_with_input(&["select", "-", "--budget", "150"], first.ok().as_bytes());
    assert_eq!(again.ok(), first.ok());
}

#[test]
fn a_pipe_has_colors_only_on_request() {
    let sandbox = Sandbox::new();
    let items = example("items.json");
    let args = ["explain", &items, "--budget", "150"];
    let plain = sandbox.run(&args);
    assert!(!plain.ok().contains(ESCAPE) && !plain.err.contains(ESCAPE));
    let colored = sandbox.run(&[&args[..], &["--color", "always"]].concat());
    assert!(colored.ok().contains(ESCAPE));
    let bad = ["select", "nowhere.json", "--budget", "1"];
    assert!(!sandbox.run(&bad).err.contains(ESCAPE));
    let colored = sandbox.run(&[&bad[..], &["--color", "always"]].concat());
    assert!(colored.err.contains(ESCAPE));
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let marked = "\u{feff}[{\"content\": \"a\", \"tokens\": 1}]";
    let sandbox = Sandbox::with(&[("items.json", marked.as_bytes())]);
    let selected = sandbox.run(&["select", "items.json", "--budget", "5"]);
    assert_eq!(
        selected.ok(),
        "[\n  {\"content\": \"a\", \"tokens\": 1}\n]\n"
    );
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    // More than a pipe holds.
    let line = format!(
        "{{\"content\": \"{}\", \"tokens\": 0}}\n",
        "x".repeat(10_000)
    );
    let sandbox = Sandbox::with(&[("items.jsonl", line.repeat(100).as_bytes())]);
    for args in [
        &["select", "items.jsonl", "--budget", "5"][..],
        &["select", "items.jsonl", "--budget", "5", "--json"],
        &["sweep", "items.jsonl", "--csv", "items"],
    ] {
        let mut child = Command::cargo_bin("cupel")
            .expect("the command is built")
            .args(args)
            .current_dir(sandbox.path(""))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        drop(child.stdout.take());
        let mut told = String::new();
        let mut stderr = child.stderr.take().expect("standard error is a pipe");
        stderr
            .read_to_string(&mut told)
            .expect("standard error is a text");
        let status = child.wait().expect("the command ends");
        assert_eq!(status.code(), Some(0), "{args:?}: {told}");
        assert_eq!(told, "", "{args:?}");
    }
}

/// Returns a request with 2,000 items and quotas nested 50 deep: the slicer is run at each budget.
pub(super) fn slow_request() -> Vec<u8> {
    use serde_json::json;
    let mut slicer = json!({"type": "greedy"});
    for depth in 0..50 {
        let quotas = json!([{"kind": "Document", "require": depth % 7, "cap": 90}]);
        slicer = json!({"type": "quota", "quotas": quotas, "inner": slicer});
    }
    let item = |index: u32| {
        json!({
            "content": format!("passage {index}"),
            "tokens": 40 + index * 37 % 101,
            "kind": if index.is_multiple_of(3) { "Message" } else { "Document" },
            "future_relevance_hint": f64::from(index * 7_919 % 1_000) / 1_000.0,
        })
    };
    let request = json!({
        "items": (0..2_000).map(item).collect::<Vec<_>>(),
        "policy": {"scorer": {"type": "reflexive"}, "slicer": slicer},
    });
    request.to_string().into_bytes()
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_long_search_with_the_budgets_reached() {
    use std::io::{BufRead as _, BufReader};
    let sandbox = Sandbox::with(&[("slow.json", &slow_request())]);
    for command in ["sweep", "min-budget"] {
        let mut child = Command::cargo_bin("cupel")
            .expect("the command is built")
            .args([command, "slow.json", "--json"])
            .current_dir(sandbox.path(""))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let stderr = child.stderr.take().expect("standard error is a pipe");
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let announcement = lines.next().expect("a long search is announced");
        assert!(
            announcement.starts_with("trying budgets takes about "),
            "{command}: {announcement}"
        );
        let interrupt = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status();
        assert!(interrupt.expect("kill runs").success());
        // Standard output first: the answer is larger than the buffer of a pipe.
        let output = child.wait_with_output().expect("the command ends");
        let notes: Vec<String> = lines.collect();
        assert_eq!(output.status.code(), Some(130), "{command}: {notes:?}");
        let stopped = notes.iter().any(|note| note.starts_with("stopped: "));
        assert!(stopped, "{command}: {notes:?}");
        let answer: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("the answer is JSON");
        let stopped_at = answer["stopped_at"].as_i64().expect("a budget");
        assert_eq!(answer["exact"], false);
        if command == "sweep" {
            let steps = answer["steps"].as_array().expect("steps");
            assert_eq!(steps.last().expect("a step")["to"], stopped_at);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::File::create("/dev/full").expect("linux has /dev/full");
    let output = Command::cargo_bin("cupel")
        .expect("the command is built")
        .args(["policy", "list"])
        .stdout(full)
        .output()
        .expect("the command runs");
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("cannot write standard output: no space left"),
        "{told}"
    );
}
