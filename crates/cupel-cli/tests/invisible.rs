//! Control and invisible characters of the input: none reaches a terminal, and none is lost from a chat.

use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox};

/// Reverses, hides, joins or moves text; sets the title of the terminal; clears the screen.
const HOSTILE: &str = "a\u{202e}b\u{2066}c\u{200b}d\u{200d}e\u{feff}f\u{ad}g\u{1b}[8mh\u{1b}]0;i\u{7}j\u{7f}k\u{9b}2Jl\u{85}m\u{2028}n\u{e0041}o\r\u{8}";

/// The characters that no output for people may have, by the standards that define them: control characters (Unicode
/// `Cc`), separators of lines and paragraphs (`Zl`, `Zp`), and those of the format characters (`Cf`) that `HOSTILE`
/// and the bidirectional algorithm (UAX #9) use.
fn is_forbidden(c: char) -> bool {
    c.is_control() && c != '\n'
        || matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{ad}' | '\u{feff}' | '\u{61c}' | '\u{e0041}'
        )
        || ('\u{200b}'..='\u{200f}').contains(&c)
        || ('\u{202a}'..='\u{202e}').contains(&c)
        || ('\u{2060}'..='\u{206f}').contains(&c)
}

/// The styles of the command: reset, bold, dimmed, underlined, colors.
const STYLES: [&str; 9] = ["0", "1", "2", "4", "31", "32", "33", "34", "36"];

#[track_caller]
fn assert_clean(text: &str, what: &str) {
    let mut plain = text.to_owned();
    for style in STYLES {
        plain = plain.replace(&format!("\u{1b}[{style}m"), "");
    }
    if let Some(c) = plain.chars().find(|&c| is_forbidden(c)) {
        panic!("{what}: {c:?} in {plain:?}");
    }
}

fn chat() -> Value {
    let text = |index: usize| format!("{index} {HOSTILE} {}", "some words ".repeat(40));
    let mut messages = vec![json!({"role": "system", "content": text(0)})];
    for turn in 0..8 {
        let id = format!("call_{turn}{HOSTILE}");
        let name = format!("tool{HOSTILE}");
        let call =
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
        messages.push(json!({"role": "user", "content": text(turn), "name": HOSTILE}));
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": text(turn)}));
    }
    messages.push(json!({"role": "user", "content": HOSTILE}));
    json!({"model": "gpt-4o", "messages": messages})
}

fn items() -> Value {
    let item = |index: usize| {
        json!({
            "content": format!("{index} {HOSTILE}"),
            "tokens": 100,
            "kind": format!("kind{}{HOSTILE}", index % 2),
            "tags": [HOSTILE],
            "metadata": {HOSTILE: HOSTILE},
        })
    };
    (0..6).map(item).collect()
}

fn sandbox() -> Sandbox {
    let role = json!([{"role": HOSTILE, "content": "a"}, {"role": "user", "content": "b"}]);
    let text = |value: Value| value.to_string().into_bytes();
    let both = [text(chat()), text(role.clone())].join(&b'\n');
    let policy = json!({
        "name": HOSTILE,
        "scorer": {"type": "recency"},
        "slicer": {"type": "quota", "quotas": [{"kind": HOSTILE, "require": 1, "cap": 90}], "inner": {"type": "greedy"}},
    });
    let key = json!([{"content": "a", "tokens": 1, (HOSTILE): 1}]);
    Sandbox::with(&[
        ("chat.json", &text(chat())),
        ("items.json", &text(items())),
        ("role.json", &text(role)),
        ("both.jsonl", &both),
        ("policy.json", &text(policy)),
        ("key.json", &text(key)),
        ("scorer.json", &text(json!({"scorer": {"type": HOSTILE}}))),
        (
            "model.json",
            &text(json!({"model": HOSTILE, "messages": [{"role": "user", "content": "a"}]})),
        ),
        (&format!("name{}.json", '\u{202e}'), &text(chat())),
    ])
}

/// The command lines; the chat itself goes to a file.
const LINES: &[&str] = &[
    "fit chat.json --budget 900 -o out",
    "fit chat.json --budget 900 --diff",
    "fit chat.json --budget 900 --state s -o out",
    "fit chat.json --budget 900 --summarize cat -o out",
    "fit chat.json --budget 10",
    "fit chat.json --budget 900 --policy policy.json -o out",
    "fit items.json --budget 300 --diff",
    "fit both.jsonl --budget 900 -o out",
    "fit role.json --budget 900 -o out",
    "fit model.json --budget 900 -o out",
    "fit model.json",
    "fit HOSTILE --budget 900",
    "fit name\u{202e}.json --budget 900 -o out",
    "fit name\u{202e}.json --budget 1",
    "fit nowhere\u{202e}.json --budget 1",
    "fit chat.json --budget HOSTILE",
    "fit chat.json --budget 1k --slot HOSTILE=1 -o out",
    "fit chat.json --budget 900 -o nowhere/HOSTILE",
    "HOSTILE",
    "select items.json --budget 300 -o out",
    "select items.json --budget 300 --policy policy.json -o out",
    "select key.json --budget 300",
    "explain chat.json --budget 900",
    "explain role.json --budget 900",
    "explain items.json --budget 300",
    "explain items.json --budget 300 --policy policy.json",
    "explain items.json --budget 300 --item 1",
    "explain chat.json --budget 900 --item 3",
    "explain chat.json --budget 900 --item 5",
    "explain chat.json --budget 900 --html page\u{202e}.html",
    "search chat.json words",
    "search items.json a\u{202e}b",
    "search chat.json HOSTILE --scorer HOSTILE",
    "sweep chat.json",
    "sweep items.json --policy policy.json",
    "min-budget chat.json",
    "min-budget items.json --item 1",
    "marginal items.json --budget 300 --slack 200",
    "marginal chat.json --budget 900 --slack 300",
    "compare chat.json --budget 900 --policy agent --policy policy.json",
    "compare items.json --budget 300 --policy chat --policy rag",
    "count chat.json",
    "count items.json",
    "count role.json",
    "count chat.json --text",
    "policy check policy.json scorer.json HOSTILE",
    "policy check HOSTILE",
    "models HOSTILE",
    "batch both.jsonl out --budget 900",
    "conform --name HOSTILE",
    "eval HOSTILE",
    "eval chat.json --policy HOSTILE --budget 9",
];

#[test]
fn no_output_for_people_has_characters_of_the_input_that_a_terminal_obeys_or_hides() {
    let sandbox = sandbox();
    for line in LINES {
        for more in [&["--color", "always"][..], &["--json"]] {
            // Arguments of a process end at a NUL only; everything else passes.
            let words = line.split(' ').map(|word| word.replace("HOSTILE", HOSTILE));
            let words: Vec<String> = words.collect();
            let args: Vec<&str> = words.iter().map(String::as_str).collect();
            let ran = sandbox.run(&[&args[..], more].concat());
            let what = format!("{line} {more:?}, exit {}", ran.exit);
            assert_ne!(ran.exit, 3, "{what}: {}", ran.err);
            assert_clean(&ran.err, &what);
            // An answer in JSON is data: its strings are those of the input.
            if more != ["--json"] {
                assert_clean(&ran.out, &what);
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn json_on_a_terminal_is_escaped_and_has_the_same_value() {
    let sandbox = sandbox();
    let command = assert_cmd::cargo::cargo_bin("cupel");
    let line = format!(
        "stty -opost; {} explain items.json --budget 300 --json",
        command.display()
    );
    let script = std::process::Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(sandbox.path(""))
        .stdin(std::process::Stdio::null())
        .output();
    // Without util-linux there is no terminal to test with.
    let Ok(script) = script else { return };
    let shown = String::from_utf8(script.stdout).expect("UTF-8");
    assert_clean(&shown, "JSON on a terminal");
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let piped = sandbox.run(&["explain", "items.json", "--budget", "300", "--json"]);
    assert_eq!(shown, piped.json());
}

/// A chat is data, and stays byte for byte. DEL and the controls of C1 may stand in JSON as they are.
#[test]
fn a_chat_keeps_its_invisible_characters() {
    let chat = "[{\"role\": \"user\", \"content\": \"a\u{202e}\u{7f}\u{9b}31m\u{200b}\u{85}b\"}]";
    let sandbox = Sandbox::with(&[("chat.json", chat.as_bytes())]);
    let args = ["fit", "chat.json", "--budget", "100", "-q"];
    let same = |ran: &Ran| assert_eq!(ran.ok(), chat);
    same(&sandbox.run(&args));
    same(&sandbox.run(&[&args[..], &["--color", "always"]].concat()));
    sandbox.run(&[&args[..], &["-o", "out"]].concat()).ok();
    assert_eq!(sandbox.read("out"), chat);
    // Also inside of answers.
    let parsed: Value = serde_json::from_str(chat).expect("JSON");
    let fitted = sandbox.run(&[&args[..], &["--json"]].concat());
    assert_eq!(fitted.json()["chat"], parsed);
    let lines = format!("{chat}\n");
    let batch = sandbox.run_with_input(&["batch", "-", "--budget", "100", "-q"], lines.as_bytes());
    assert_eq!(batch.json()["chat"], parsed);
    let items = "[{\"content\": \"a\u{7f}\u{9b}b\", \"tokens\": 1}]";
    let selected = sandbox.run_with_input(&["select", "-", "--budget", "5"], items.as_bytes());
    let selected: Value = serde_json::from_str(selected.ok()).expect("JSON");
    assert_eq!(
        selected,
        serde_json::from_str::<Value>(items).expect("JSON")
    );
}
