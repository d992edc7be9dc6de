//! What people see: lines that fit, help that fits a screen, one name for one count.

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use crate::sandbox::{Ran, Sandbox, example};

/// The widths that are tested; `None` is a pipe, which has 80 columns.
const WIDTHS: [Option<usize>; 4] = [None, Some(60), Some(80), Some(120)];

#[track_caller]
fn assert_fits(text: &str, columns: Option<usize>, what: &str) {
    let columns = columns.unwrap_or(80);
    for line in text.lines() {
        let width = line.width();
        assert!(
            width <= columns,
            "{what}: {width} of {columns} columns:\n{line}"
        );
    }
}

/// A chat whose texts, names and counts are longer and wider than usual.
fn wide_chat() -> String {
    let text = "漢字かな交じり文 and a long line without an end ".repeat(6);
    let mut messages = vec![json!({"role": "system", "content": text})];
    for turn in 0..12 {
        let id = format!("call_{turn}");
        let call = json!({"id": id, "type": "function", "function": {"name": "look_up_everything_about_a_topic", "arguments": "{}"}});
        messages.push(json!({"role": "user", "content": format!("{turn} {text}")}));
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
        messages.push(json!({"role": "assistant", "content": text}));
    }
    messages.push(json!({"role": "user", "content": "And now?"}));
    let tool = json!({"type": "function", "function": {"name": "look_up_everything_about_a_topic", "description": text}});
    json!({"model": "gpt-4o", "max_tokens": 12_345, "messages": messages, "tools": [tool]})
        .to_string()
}

/// Items with long kinds, and a policy with a quota for one of them.
fn wide_items() -> String {
    let item = |index: u32| {
        json!({
            "content": format!("{index} {}", "漢字 ".repeat(60)),
            "tokens": 1_000 + 10 * index,
            "kind": format!("AKindWithAnUnusuallyLongName{}", index % 3),
            "future_relevance_hint": f64::from(index * 7 % 20) / 20.0,
        })
    };
    let items: Vec<Value> = (0..9).map(item).collect();
    json!({
        "items": items,
        "budget": {"max_tokens": 6_000, "target_tokens": 5_500, "output_reserve": 1_234, "estimation_safety_margin_percent": 2.5},
        "policy": {
            "scorer": {"type": "composite", "entries": [
                {"scorer": {"type": "reflexive"}, "weight": 2},
                {"scorer": {"type": "recency"}, "weight": 1},
            ]},
            "slicer": {"type": "quota", "quotas": [{"kind": "AKindWithAnUnusuallyLongName1", "require": 10, "cap": 50}], "inner": {"type": "greedy"}},
        },
    })
    .to_string()
}

/// A configuration with long names and values.
const CONFIG: &[u8] = br#"budget = "2k"
policy = "single"
model = "a-model-with-a-name-that-is-much-longer-than-the-names-of-models-are"
encoding = "o200k"
factor = 1.0
margin = 0

[chat]
marker = "{n} messages of the conversation so far were left out here, because they are too old"
pin = ["role:system", "0", "1"]
"#;

fn sandbox() -> Sandbox {
    let chat = wide_chat();
    let chats = format!("{chat}\n{chat}\n");
    let runs = include_str!("runs.jsonl");
    let policy = std::fs::read(example("policy.toml")).expect("the example");
    let questions = std::fs::read_to_string(example("questions.jsonl")).expect("the example");
    let other = questions.replace("helmet", "bell");
    Sandbox::with(&[
        ("questions.jsonl", questions.as_bytes()),
        (
            "other.jsonl",
            other.lines().next().expect("a transcript").as_bytes(),
        ),
        ("chat.json", chat.as_bytes()),
        ("chats.jsonl", chats.as_bytes()),
        ("items.json", wide_items().as_bytes()),
        ("runs.jsonl", runs.as_bytes()),
        (
            "conversations.jsonl",
            crate::eval::conversations().as_bytes(),
        ),
        ("policy.toml", &policy),
        ("settings.toml", CONFIG),
    ])
}

/// A command line for each kind of output that people read.
const HUMAN: &[&[&str]] = &[
    &["fit", "chat.json", "--diff"],
    &["fit", "chat.json", "--budget", "2k", "--diff"],
    &["fit", "items.json", "--diff"],
    &[
        "fit",
        "chat.json",
        "--budget",
        "2k",
        "--slot",
        "Tool=1k",
        "--diff",
    ],
    &[
        "fit",
        "chat.json",
        "--budget",
        "2k",
        "--state",
        "s.state",
        "--diff",
    ],
    &["explain", "chat.json", "--budget", "2k"],
    &["explain", "chat.json"],
    &["explain", "items.json"],
    &["explain", "items.json", "--item", "7"],
    &["explain", "chat.json", "--budget", "2k", "--item", "5"],
    &["explain", "chat.json", "--budget", "2k", "--item", "0"],
    &[
        "explain",
        "chat.json",
        "--budget",
        "2k",
        "--html",
        "why.html",
    ],
    &["count", "chat.json"],
    &["count", "items.json"],
    &["count", "chat.json", "--text"],
    &[
        "compare",
        "chat.json",
        "--budget",
        "2k",
        "--policy",
        "agent",
        "--policy",
        "chat",
        "--policy",
        "tool-use",
    ],
    &[
        "compare",
        "items.json",
        "--policy",
        "chat",
        "--policy",
        "rag",
    ],
    &["sweep", "chat.json"],
    &["sweep", "items.json"],
    &["min-budget", "chat.json"],
    &["min-budget", "items.json"],
    &["min-budget", "items.json", "--item", "3"],
    &["marginal", "chat.json", "--budget", "2k", "--slack", "500"],
    &["models"],
    &["policy", "list"],
    &["policy", "check", "policy.toml"],
    &["config", "show"],
    &[
        "config",
        "show",
        "--config",
        "settings.toml",
        "--budget",
        "2k",
    ],
    &["config", "check", "settings.toml"],
    &["fit", "chat.json", "--config", "settings.toml", "--diff"],
    &["explain", "chat.json", "--config", "settings.toml"],
    &["init", "-o", "new.toml", "--force"],
    &["eval", "agent", "runs.jsonl", "--budget", "60,120"],
    &["eval", "criteria", "conversations.jsonl"],
    &[
        "eval",
        "questions.jsonl",
        "--policy",
        "memory,newest,chat",
        "--budget",
        "40,90,8k",
    ],
    &[
        "eval",
        "tune",
        "questions.jsonl",
        "--report",
        "other.jsonl",
        "--policy",
        "memory",
        "--budget",
        "40",
        "--grid",
        "scorer.k1=0.5,0.9",
        "--grid",
        "scorer.near.forward=0.5,0.6",
    ],
    &["search", "chat.json", "a long line without an end"],
    &["search", "items.json", "漢字", "--scorer", "relevance"],
    &["conform", "--name", "greedy"],
    &["conform", "--name", "greedy", "--list"],
];

#[test]
fn no_output_wraps() {
    let sandbox = sandbox();
    for args in HUMAN {
        for columns in WIDTHS {
            let ran = sandbox.run_in_columns(args, columns);
            ran.ok();
            assert_fits(&ran.out, columns, &format!("{args:?}"));
            assert_fits(&ran.err, columns, &format!("{args:?}"));
        }
    }
}

/// The answer of these is data; the notes next to it fit.
#[test]
fn no_summary_wraps() {
    let sandbox = sandbox();
    for args in [
        &["fit", "chat.json"][..],
        &["fit", "chat.json", "--budget", "2k"],
        &[
            "fit",
            "chat.json",
            "--budget",
            "2k",
            "--marker",
            "{n} messages were left out here",
        ],
        &[
            "fit",
            "chat.json",
            "--budget",
            "2k",
            "--model",
            "a-model-that-is-not-known",
        ],
        &["select", "items.json"],
        &["batch", "chats.jsonl", "--budget", "2k"],
        &["batch", "chats.jsonl", "--budget", "2k", "--brief"],
    ] {
        for columns in WIDTHS {
            let ran = sandbox.run_in_columns(args, columns);
            ran.ok();
            assert!(!ran.err.is_empty(), "{args:?}");
            assert_fits(&ran.err, columns, &format!("{args:?}"));
        }
    }
}

#[test]
fn no_error_wraps_on_a_terminal() {
    let sandbox = sandbox();
    for args in [
        &["fit", "chat.json", "--budget", "20"][..],
        &["fit", "chat.json", "--budget", "8,000"],
        &["fit", "chat.json", "--model", "a-model-that-is-not-known"],
        &["fit", "missing.json"],
        &["select", "chat.json", "--budget", "300"],
        &["fit", "chat.json", "--budget", "9k", "--policy", "rga"],
        &["explain", "chat.json", "--item", "99999"],
    ] {
        for columns in [60, 80, 120] {
            let ran = sandbox.run_in_columns(args, Some(columns));
            assert_ne!(ran.exit, 0, "{args:?}");
            assert_fits(&ran.err, Some(columns), &format!("{args:?}"));
        }
        // In a log the message is one line.
        let ran = sandbox.run(args);
        assert!(
            ran.err
                .lines()
                .next()
                .is_some_and(|line| line.starts_with("error: "))
        );
    }
}

/// The subcommands that the main help lists.
fn subcommands() -> Vec<Vec<String>> {
    let help = Sandbox::new().run(&["-h"]);
    let listed = help.ok().lines().take_while(|line| *line != "Options:");
    let listed = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let mut commands: Vec<Vec<String>> = vec![Vec::new()];
    commands.extend(
        listed
            .filter(|name| *name != "help")
            .map(|name| vec![name.to_owned()]),
    );
    for nested in [
        ["policy", "list"],
        ["policy", "show"],
        ["policy", "check"],
        ["policy", "schema"],
        ["config", "show"],
        ["config", "check"],
        ["config", "schema"],
        ["eval", "agent"],
        ["eval", "criteria"],
        ["eval", "tune"],
    ] {
        commands.push(nested.map(str::to_owned).to_vec());
    }
    commands
}

#[test]
fn every_help_fits_the_columns_and_the_short_one_a_screen() {
    let sandbox = Sandbox::new();
    let commands = subcommands();
    assert!(commands.len() > 18, "{commands:?}");
    for command in commands {
        for flag in ["-h", "--help"] {
            let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
            args.push(flag);
            for columns in WIDTHS {
                let ran = sandbox.run_in_columns(&args, columns);
                assert_fits(ran.ok(), columns, &format!("{args:?}"));
            }
            if flag == "-h" {
                let lines = sandbox.run(&args).ok().lines().count();
                assert!(lines <= 40, "{args:?} has {lines} lines");
            }
        }
    }
}

#[test]
fn global_options_are_in_the_main_help_only() {
    let sandbox = Sandbox::new();
    let option = |line: &str, name: &str| line.trim_start().starts_with(name);
    for command in subcommands() {
        let mut args: Vec<&str> = command.iter().map(String::as_str).collect();
        args.push("--help");
        let ran = sandbox.run(&args);
        let has = ran
            .ok()
            .lines()
            .any(|line| option(line, "--json") || option(line, "--color"));
        assert_eq!(has, command.is_empty(), "{args:?}");
    }
    // They are accepted after a subcommand and before it.
    let items = example("items.json");
    let after = sandbox.run(&["explain", &items, "--budget", "99", "--json"]);
    let before = sandbox.run(&["--json", "explain", &items, "--budget", "99"]);
    assert_eq!(after.json(), before.json());
    assert!(sandbox.run(&["policy", "list", "--json"]).json().is_array());
}

#[test]
fn output_for_people_has_no_names_of_types() {
    let sandbox = sandbox();
    // A kind in a warning is a word of the user.
    let has_kinds = |args: &&&[&str]| args.contains(&"items.json") || args.contains(&"--slot");
    for args in HUMAN.iter().filter(|args| !has_kinds(args)) {
        let ran = sandbox.run_in_columns(args, Some(200));
        for name in [
            "BudgetExceeded",
            "PinnedExceeds",
            "Scorer",
            "GroupExcluded",
            "ToolOutput",
            "SystemPrompt",
            "Message",
        ] {
            let found = [&ran.out, &ran.err]
                .into_iter()
                .flat_map(|text| text.lines());
            let found: Vec<&str> = found.filter(|line| line.contains(name)).collect();
            assert!(
                found.is_empty() || args[0] == "conform",
                "{args:?}: {found:?}"
            );
        }
    }
}

/// The number before " of 44 messages" in a text.
fn kept_of_44(ran: &Ran) -> Option<u64> {
    let text = format!("{}{}", ran.out, ran.err);
    let (before, _) = text.split_once(" of 44 messages")?;
    before.rsplit(' ').next()?.parse().ok()
}

#[test]
fn every_command_counts_messages_alike() {
    let sandbox = Sandbox::new();
    let chat = example("agent-session.json");
    let run = |args: &[&str]| sandbox.run(&[args, &[&chat, "--budget", "2k"]].concat());
    let single = |args: &[&str]| run(&[args, &["--policy", "single"]].concat());
    let fitted = single(&["fit", "--json"]).json();
    let kept = fitted["kept"].as_array().map(Vec::len).expect("positions");
    let expected = Some(kept as u64);
    assert_eq!(kept_of_44(&single(&["fit", "-o", "fitted.json"])), expected);
    assert_eq!(kept_of_44(&single(&["explain"])), expected);
    let compared = run(&["compare", "--policy", "single", "--policy", "single"]);
    assert_eq!(kept_of_44(&compared), expected);
    let explained = single(&["explain", "--json"]).json();
    let candidates = explained["candidates"].as_array().expect("candidates");
    assert_eq!(candidates.len(), 44);
    let included = candidates.iter().filter(|it| it["included"] == true);
    assert_eq!(included.count(), kept);
    assert_eq!(explained["overhead"], 412);
    assert_eq!(explained["tokens_used"], fitted["tokens_after"]);
    let by_default = run(&["fit", "--json"]).json();
    for (policy, fitted) in [("single", &fitted), ("agent", &by_default)] {
        let at = ["sweep", &chat, "--from", "2000", "--to", "2000", "--json"];
        let policy = ["--policy", policy];
        let sweep = sandbox.run(&[&at[..], &policy].concat()).json();
        let step = &sweep["steps"][0];
        let kept = fitted["kept"].as_array().map(Vec::len);
        assert_eq!(step["included"], json!(kept));
        assert_eq!(step["tokens_used"], fitted["tokens_after"]);
        assert_eq!(sweep["items"].as_array().map(Vec::len), Some(44));
    }
    // A replay may keep less with more tokens, and says so; without a policy it is the one of fit.
    let swept = sandbox.run(&["sweep", &chat, "--json"]);
    let fitted = sandbox.run(&["sweep", &chat, "--policy", "agent", "--json"]);
    assert_eq!(swept.json(), fitted.json());
    assert_eq!(swept.json()["monotone"], false);
    let swept = sandbox.run(&["sweep", &chat]);
    assert!(swept.err.contains("not monotone"), "{}", swept.err);
    let swept = sandbox.run(&["sweep", &chat, "--policy", "single", "--json"]);
    assert_eq!(swept.json()["monotone"], true);
    let swept = sandbox.run(&["sweep", &chat, "--policy", "single"]);
    assert!(!swept.err.contains("monotone"), "{}", swept.err);
    let rows = sandbox.run(&["min-budget", &chat, "--json"]).json();
    assert_eq!(rows["items"].as_array().map(Vec::len), Some(44));
    // The request overhead is no message.
    let overhead = sandbox.run(&["explain", &chat, "--budget", "2k", "--item", "44"]);
    assert_eq!(overhead.exit, 2);
    assert!(overhead.err.contains("the last is 43"), "{}", overhead.err);
}

#[test]
fn the_default_budget_is_the_window_less_the_answer() {
    let messages = r#""messages": [{"role": "user", "content": "Hi"}]"#;
    let cases = [
        (
            format!(r#"{{"model": "gpt-4o", {messages}}}"#),
            123_904,
            "less 4,096 for the answer; --reserve changes that",
        ),
        // A lower limit gives the same budget, so that the cuts of a conversation stay.
        (
            format!(r#"{{"model": "gpt-4o", "max_tokens": 50, {messages}}}"#),
            123_904,
            "less 4,096 for the answer, more than max_tokens (50)",
        ),
        (
            format!(r#"{{"model": "gpt-4o", "max_tokens": 8000, {messages}}}"#),
            120_000,
            "less max_tokens (8,000)",
        ),
        (
            format!(r#"{{"model": "gpt-4o", "max_completion_tokens": 28000, {messages}}}"#),
            100_000,
            "less max_completion_tokens (28,000)",
        ),
        (
            r#"{"model": "gpt-4o", "max_output_tokens": 8000, "input": "Hi"}"#.to_owned(),
            120_000,
            "less max_output_tokens (8,000)",
        ),
    ];
    for (chat, budget, why) in cases {
        let sandbox = Sandbox::new();
        let ran = sandbox.run_with_input(&["fit", "-"], chat.as_bytes());
        assert_eq!(ran.ok().trim_end(), chat);
        let notes = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            notes.contains("budget: window of gpt-4o (128,000)"),
            "{notes}"
        );
        assert!(notes.contains(why), "{notes}");
        let answer = sandbox.run_with_input(&["fit", "-", "--json"], chat.as_bytes());
        assert_eq!(answer.json()["budget"], budget);
    }
}

/// Each provider has a field of its own for the length of the answer (API references of Google, Amazon
/// Bedrock and Ollama).
#[test]
fn the_limit_of_the_answer_is_found_in_every_format() {
    let cases = [
        (
            r#"{"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "generationConfig": {"maxOutputTokens": 48576}}"#,
            &["--model", "gemini-2.5-pro"][..],
            1_000_000,
        ),
        (
            r#"{"modelId": "anthropic.claude-sonnet-4", "messages": [{"role": "user", "content": [{"text": "Hi"}]}], "inferenceConfig": {"maxTokens": 5000}}"#,
            &[],
            195_000,
        ),
        (
            r#"{"model": "llama3.1", "messages": [{"role": "user", "content": "Hi"}], "options": {"num_predict": 5072}}"#,
            &[],
            126_000,
        ),
        (
            r#"{"model": "llama3.1", "messages": [{"role": "user", "content": "Hi"}], "options": {"num_predict": -1, "num_ctx": 8192}}"#,
            &[],
            // Nothing limits the answer: it gets a quarter of a small window.
            8_192 - 2_048,
        ),
        (
            // Not a limit of the answer, but of the input: 272,000 of 400,000.
            r#"{"model": "gpt-5", "messages": [{"role": "user", "content": "Hi"}]}"#,
            &[],
            272_000,
        ),
    ];
    for (chat, args, budget) in cases {
        let args = [&["fit", "-", "--json"], args].concat();
        let ran = Sandbox::new().run_with_input(&args, chat.as_bytes());
        assert_eq!(ran.json()["budget"], budget, "{chat}");
    }
}

#[test]
fn options_take_precedence_over_the_default_budget() {
    let chat = r#"{"model": "gpt-4o", "max_tokens": 8000, "messages": [{"role": "user", "content": "Hi"}]}"#;
    let budget = |args: &[&str]| {
        let args = [&["fit", "-", "--json"], args].concat();
        let ran = Sandbox::new().run_with_input(&args, chat.as_bytes());
        ran.json()["budget"].clone()
    };
    assert_eq!(budget(&["--budget", "5k"]), 5_000);
    assert_eq!(budget(&["--reserve", "2k"]), 126_000);
    assert_eq!(budget(&["--model", "gpt-4"]), 192);
    assert_eq!(budget(&["--budget", "50%"]), 64_000);
}

#[test]
fn without_a_known_model_a_budget_is_needed() {
    let sandbox = Sandbox::new();
    let cases = [
        (
            r#"[{"role": "user", "content": "Hi"}]"#,
            "the chat names no model",
        ),
        (
            r#"{"model": "my-own", "messages": [{"role": "user", "content": "Hi"}]}"#,
            "unknown model \"my-own\"",
        ),
        (
            r#"{"model": "gpt-4", "max_tokens": 9000, "messages": [{"role": "user", "content": "Hi"}]}"#,
            "`max_tokens` of the request (9,000) leaves nothing",
        ),
    ];
    for (chat, says) in cases {
        for command in ["fit", "explain"] {
            let ran = sandbox.run_with_input(&[command, "-"], chat.as_bytes());
            assert_eq!(ran.exit, 2, "{chat}");
            assert!(ran.err.contains(says), "{}", ran.err);
            // The advice works.
            assert!(ran.err.contains("--budget 8k"), "{}", ran.err);
            let with = sandbox.run_with_input(&[command, "-", "--budget", "8k"], chat.as_bytes());
            with.ok();
        }
    }
}

#[test]
fn an_example_without_options_fits_and_names_its_budget() {
    let ran = Sandbox::new().run(&["fit", &example("agent-session.json")]);
    let text = std::fs::read_to_string(example("agent-session.json")).expect("the example");
    assert_eq!(ran.ok(), text);
    assert!(
        ran.err.starts_with("kept 44 of 44 messages, "),
        "{}",
        ran.err
    );
    assert!(
        ran.err
            .contains("budget: window of gpt-4o (128,000) less max_completion_tokens (4,096)"),
        "{}",
        ran.err
    );
}

#[test]
fn one_line_says_how_much_of_its_limit_the_window_uses() {
    let request = json!({
        "items": [
            {"content": "first", "tokens": 100, "priority": 3},
            {"content": "second", "tokens": 48, "priority": 2},
            {"content": "left out", "tokens": 52, "priority": 1},
        ],
        "policy": {"scorer": {"type": "priority"}, "slicer": {"type": "rank"}},
    });
    let sandbox = Sandbox::with(&[("request.json", request.to_string().as_bytes())]);
    let args = [
        "explain",
        "request.json",
        "--budget",
        "200",
        "--reserve",
        "50",
        "--item",
        "2",
    ];
    let ran = sandbox.run(&args);
    assert!(
        ran.ok()
            .contains("uses 148 of 150 (target 200 less reserve 50)\n"),
        "{}",
        ran.out
    );
    assert!(
        ran.out.contains("no room: needs 52, 2 left\n"),
        "{}",
        ran.out
    );
    let answer = sandbox.run(&[&args[..], &["--json"]].concat()).json();
    assert_eq!([&answer["tokens_used"], &answer["tokens_left"]], [148, 2]);
}

#[test]
fn min_budget_is_the_budget_from_which_on_an_item_stays() {
    // Greedy takes the denser item first: 1.0 / 19 is more than 0.5 / 10.
    let request = json!({
        "items": [
            {"content": "sparse", "tokens": 10, "future_relevance_hint": 0.5},
            {"content": "dense", "tokens": 19, "future_relevance_hint": 1.0},
        ],
        "policy": {"scorer": {"type": "reflexive"}, "slicer": {"type": "greedy"}},
    });
    let sandbox = Sandbox::with(&[("request.json", request.to_string().as_bytes())]);
    let ran = sandbox.run(&["min-budget", "request.json", "--item", "0"]);
    assert_eq!(ran.ok(), "29\n");
    assert_eq!(ran.err, "also included at 10 to 18\n");
    let answer = sandbox
        .run(&["min-budget", "request.json", "--json"])
        .json();
    assert_eq!(
        answer["items"],
        json!([
            {"index": 0, "min_budget": 29, "in_full": 29, "ranges": [[10, 18], [29, 29]]},
            {"index": 1, "min_budget": 19, "in_full": 19, "ranges": [[19, 29]]},
        ])
    );
    let below = sandbox.run(&[
        "min-budget",
        "request.json",
        "--item",
        "0",
        "--ceiling",
        "20",
    ]);
    assert_eq!(below.exit, 1);
    assert_eq!(
        below.err,
        "item 0 (Message) is included at 10 to 18, but not at 20\n"
    );
    let table = sandbox.run(&["min-budget", "request.json"]);
    assert!(table.ok().contains("10 to 18"), "{}", table.out);
}

#[test]
fn a_kind_that_no_candidate_has_is_a_warning() {
    let items = json!([
        {"content": "a", "tokens": 5, "kind": "ToolOutput"},
        {"content": "b", "tokens": 5, "kind": "Document"},
    ]);
    let quota = |kind: &str| json!({"scorer": {"type": "recency"}, "slicer": {"type": "quota", "quotas": [{"kind": kind, "require": 10, "cap": 50}], "inner": {"type": "greedy"}}});
    let sandbox = Sandbox::with(&[
        ("items.json", items.to_string().as_bytes()),
        ("typo.json", quota("Docment").to_string().as_bytes()),
        ("right.json", quota("Document").to_string().as_bytes()),
    ]);
    let warnings = |args: &[&str]| {
        let ran = sandbox.run(&[&["select", "items.json", "--budget", "900"], args].concat());
        ran.ok();
        let lines = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        lines
            .split_once("warning: ")
            .map(|(_, warning)| warning.to_owned())
    };
    assert_eq!(
        warnings(&["--slot", "Tool=500"]).as_deref(),
        Some(
            "no item has the kind `Tool`, for which 500 tokens are reserved; did you mean `ToolOutput`?"
        )
    );
    assert_eq!(
        warnings(&["--policy", "typo.json"]).as_deref(),
        Some("no item has the kind `Docment`, which has a quota; did you mean `Document`?")
    );
    assert_eq!(
        warnings(&["--slot", "tooloutput=5", "--policy", "right.json"]),
        None
    );
    assert_eq!(warnings(&["--slot", "Tool=500", "-q"]), None);
    for command in [
        &["explain"][..],
        &["sweep"],
        &["min-budget"],
        &["marginal", "--slack", "1"],
        &["compare", "--policy", "chat", "--policy", "rag"],
    ] {
        let args = ["items.json", "--budget", "900", "--slot", "Tool=500"];
        let ran = sandbox.run(&[command, &args].concat());
        ran.ok();
        assert!(
            ran.err.contains("no item has the kind `Tool`"),
            "{command:?}: {}",
            ran.err
        );
    }
}

#[test]
fn items_without_timestamps_are_a_warning_for_policies_that_read_them() {
    let items = |time: Value| {
        let item = json!({"content": "a", "tokens": 5, "timestamp": time});
        json!([item, {"content": "b", "tokens": 5}]).to_string()
    };
    let sandbox = Sandbox::with(&[
        ("untimed.json", items(Value::Null).as_bytes()),
        (
            "timed.json",
            items(json!("2026-03-02T09:00:00Z")).as_bytes(),
        ),
    ]);
    let warns = |file: &str, budget: &str, policy: &str| {
        let ran = sandbox.run(&["select", file, "--budget", budget, "--policy", policy]);
        ran.ok();
        ran.err.contains("no item has a timestamp")
    };
    assert!(warns("untimed.json", "6", "chat"));
    assert!(!warns("timed.json", "6", "chat"));
    assert!(warns("untimed.json", "6", "newest"));
    assert!(!warns("untimed.json", "6", "rag"), "hints count more");
    assert!(!warns("untimed.json", "10", "chat"), "all items fit");
    let reflexive = json!({"scorer": {"type": "reflexive"}}).to_string();
    std::fs::write(sandbox.path("reflexive.json"), reflexive).unwrap();
    assert!(!warns("untimed.json", "6", "reflexive.json"));
}

/// The advice of an error about a budget that is too small makes the command succeed.
#[test]
fn advice_about_a_budget_works() {
    let pinned = json!([
        {"content": "pinned", "tokens": 1_500, "pinned": true},
        {"content": "other", "tokens": 20},
    ]);
    let sandbox = Sandbox::with(&[("items.json", pinned.to_string().as_bytes())]);
    let chat = example("agent-session.json");
    let cases: [&[&str]; 6] = [
        &["fit", &chat],
        &["fit", &chat, "--reserve", "100"],
        &["explain", &chat],
        &["fit", &chat, "--policy", "tool-use"],
        &["fit", &chat, "--policy", "chat"],
        &["select", "items.json"],
    ];
    for args in cases {
        let run = |budget: i64| sandbox.run(&[args, &["--budget", &budget.to_string()]].concat());
        let refused = run(300);
        assert_eq!(refused.exit, 1, "{args:?}: {}", refused.err);
        let advice = refused
            .err
            .split_once("raise the budget by ")
            .expect("advice")
            .1;
        let tokens = advice.split(' ').next().expect("a number").replace(',', "");
        let tokens: i64 = tokens.parse().expect("a number");
        run(300 + tokens).ok();
        assert_eq!(run(300 + tokens - 1).exit, 1, "{args:?}");
    }
}

#[test]
fn the_answer_goes_to_a_file_and_notes_are_left_out() {
    let sandbox = Sandbox::new();
    let chat = example("agent-session.json");
    let plain = sandbox.run(&["fit", &chat, "--budget", "2k"]);
    let ran = sandbox.run(&["fit", &chat, "--budget", "2k", "-o", "fitted.json", "-q"]);
    assert_eq!((ran.ok(), &*ran.err), ("", ""));
    assert_eq!(sandbox.read("fitted.json"), plain.ok());
    // In place.
    sandbox
        .run(&[
            "fit",
            "fitted.json",
            "--budget",
            "1300",
            "-o",
            "fitted.json",
        ])
        .ok();
    let smaller = sandbox.read("fitted.json");
    assert!(smaller.len() < plain.out.len());
    // A run that fails leaves the file as it is.
    let failed = sandbox.run(&[
        "fit",
        "fitted.json",
        "--budget",
        "10",
        "-o",
        "fitted.json",
        "-q",
    ]);
    assert_eq!(failed.exit, 1);
    assert!(failed.err.starts_with("error: "), "{}", failed.err);
    assert_eq!(sandbox.read("fitted.json"), smaller);
    let table = ["explain", &chat, "--budget", "2k", "--color", "always"];
    sandbox.run(&[&table[..], &["-o", "why.txt"]].concat()).ok();
    assert!(!sandbox.read("why.txt").contains('\u{1b}'));
    let stdout = sandbox.run(&["policy", "list", "-o", "-"]);
    assert!(!stdout.ok().is_empty());
}

#[test]
fn a_page_is_announced_in_one_line() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["explain", &example("request.json"), "--html", "why.html"]);
    assert_eq!((ran.ok(), &*ran.err), ("", "wrote why.html\n"));
    assert!(sandbox.path("why.html").exists());
}

#[test]
fn a_diff_lists_every_message_once() {
    let sandbox = Sandbox::new();
    let chat = example("agent-session.json");
    let fitted = sandbox
        .run(&["fit", &chat, "--budget", "2k", "--json"])
        .json();
    let positions = |list: &Value| -> Vec<usize> {
        let list = list.as_array().expect("a list").iter();
        list.filter_map(|it| it["index"].as_u64()?.try_into().ok())
            .collect()
    };
    let diff = sandbox.run(&["fit", &chat, "--budget", "2k", "--diff"]);
    let marked = |mark: &str| -> Vec<usize> {
        let lines = diff
            .ok()
            .lines()
            .skip(1)
            .filter(|line| line.starts_with(mark));
        let positions = lines.filter_map(|line| line[1..].split_whitespace().next());
        positions
            .filter_map(|position| position.parse().ok())
            .collect()
    };
    assert_eq!(marked("-"), positions(&fitted["dropped"]));
    assert_eq!(marked("~"), positions(&fitted["shortened"]));
    let all = [marked("-"), marked("~"), marked(" ")].concat();
    assert_eq!(all.len(), 44);
    // With -o the chat is written as well.
    let both = sandbox.run(&[
        "fit",
        &chat,
        "--budget",
        "2k",
        "--diff",
        "-o",
        "fitted.json",
    ]);
    assert_eq!(both.ok(), diff.ok());
    let plain = sandbox.run(&["fit", &chat, "--budget", "2k"]);
    assert_eq!(sandbox.read("fitted.json"), plain.ok());
}

#[test]
fn a_batch_of_chats_answers_as_fit_does_and_sums_up() {
    let sandbox = Sandbox::new();
    let chat = std::fs::read_to_string(example("agent-session.json")).expect("the example");
    let chat: Value = serde_json::from_str(&chat).expect("JSON");
    let request = r#"{"items": [{"content": "a", "tokens": 9}, {"content": "b", "tokens": 9}], "budget": {"max_tokens": 10}}"#;
    let lines = format!("{chat}\n{request}\n{chat}\n");
    let ran = sandbox.run_with_input(
        &["batch", "-", "--budget", "2k", "--json"],
        lines.as_bytes(),
    );
    let answers: Vec<Value> = ran
        .ok()
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let alone = sandbox.run_with_input(
        &["fit", "-", "--budget", "2k", "--json"],
        chat.to_string().as_bytes(),
    );
    let alone = alone.json();
    assert_eq!((&answers[0], &answers[2]), (&alone, &alone));
    assert!(answers[1]["selected"].is_array());
    let tally: Value = serde_json::from_str(&ran.err).expect("the sums are JSON");
    let twice = |key: &str| 2 * alone[key].as_i64().expect("tokens") + 18;
    assert_eq!([&tally["answered"], &tally["failed"]], [3, 0]);
    assert_eq!(tally["tokens_before"], twice("tokens_before"));
    assert_eq!(tally["tokens_after"], twice("tokens_after"));
    let count = |key: &str| 2 * alone[key].as_array().map_or(0, Vec::len);
    assert_eq!(tally["dropped"], count("dropped"));
    assert_eq!(tally["shortened"], count("shortened"));
    assert!(tally["slowest"]["line"].is_u64());
    let brief = sandbox.run_with_input(
        &["batch", "-", "--budget", "2k", "--brief"],
        lines.as_bytes(),
    );
    let first: Value =
        serde_json::from_str(brief.ok().lines().next().expect("a line")).expect("JSON");
    assert_eq!(first["kept"], alone["kept"]);
    assert!(first["chat"].is_null() && first["shortened"][0]["texts"].is_null());
    assert!(
        brief.err.starts_with("3 requests answered, 0 failed\n"),
        "{}",
        brief.err
    );
}

#[test]
fn a_message_on_a_line_of_a_batch_is_refused() {
    let lines = "{\"role\": \"user\", \"content\": \"Hi\"}\n".repeat(2);
    let ran = Sandbox::new().run_with_input(&["batch", "-", "--budget", "9"], lines.as_bytes());
    assert_eq!(ran.exit, 2);
    assert!(
        ran.err.contains("this is a message, not a request"),
        "{}",
        ran.err
    );
}

#[test]
fn a_request_inside_of_a_line_of_a_batch_is_answered() {
    let messages = r#"[{"role": "user", "content": "Hi"}]"#;
    for line in [
        format!(r#"{{"custom_id": "a", "body": {{"model": "gpt-4o", "messages": {messages}}}}}"#),
        format!(r#"{{"custom_id": "a", "params": {{"max_tokens": 9, "messages": {messages}}}}}"#),
        format!(r#"{{"values": {{"messages": {messages}}}, "next": []}}"#),
        format!(r#"{{"task_id": 1, "reward": 1.0, "traj": {messages}}}"#),
        format!(r#"{{"history": {messages}, "trajectory": []}}"#),
    ] {
        let ran = Sandbox::new().run_with_input(&["batch", "-", "--budget", "99"], line.as_bytes());
        let answer: Value = serde_json::from_str(ran.ok()).expect("JSON");
        assert_eq!(answer["kept"], serde_json::json!([0]), "{line}");
    }
}

#[test]
fn faults_of_a_command_line_fit() {
    let sandbox = Sandbox::new();
    for args in [["--encoding", "o200"], ["--shape", "opnai"]] {
        let args = [&["fit", "chat.json"], &args[..]].concat();
        for columns in [60, 80] {
            let ran = sandbox.run_in_columns(&args, Some(columns));
            assert_eq!(ran.exit, 2);
            assert_fits(&ran.err, Some(columns), &format!("{args:?}"));
        }
    }
}

/// The width of a terminal counts, not `COLUMNS`.
#[cfg(target_os = "linux")]
#[test]
fn output_fits_a_terminal() {
    let sandbox = sandbox();
    let command = assert_cmd::cargo::cargo_bin("cupel");
    for columns in [60, 80, 100] {
        let line = format!(
            "stty rows 24 cols {columns}; {} explain chat.json --budget 2k --color never",
            command.display()
        );
        let script = std::process::Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .current_dir(sandbox.path(""))
            .env("COLUMNS", "200")
            .stdin(std::process::Stdio::null())
            .output();
        // Without util-linux there is no terminal to test with.
        let Ok(script) = script else { return };
        let text = String::from_utf8(script.stdout)
            .expect("UTF-8")
            .replace('\r', "");
        assert!(text.contains("kept "), "{text}");
        assert_fits(&text, Some(columns), "a terminal");
    }
}

/// A window of a long chat has hundreds of steps, and the smallest budgets are of no use to anyone.
#[test]
fn a_sweep_shows_the_steps_around_the_budget_and_the_largest_changes() {
    let sandbox = Sandbox::new();
    let chat = example("agent-session.json");
    let number = |text: &str| -> i64 { text.replace([',', '+'], "").parse().expect("a number") };
    for budget in [2_000_i64, 3_600] {
        let args = ["sweep", &chat, "--budget", &budget.to_string()];
        let all = sandbox.run(&[&args[..], &["--json"]].concat()).json();
        let steps = all["steps"].as_array().expect("steps");
        assert!(steps.len() > 16);
        let at = |name: &str, step: usize| steps[step][name].as_i64().expect("a number");
        let ran = sandbox.run_in_columns(&args, Some(100));
        let table = ran.ok().split_once("\n\n").expect("a plot and a table").1;
        let rows: Vec<Vec<&str>> = table
            .lines()
            .take_while(|line| !line.contains(" steps: "))
            .map(|line| line.split_whitespace().collect())
            .filter(|row: &Vec<&str>| row.len() > 1)
            .collect();
        let heading = rows[0].join(" ");
        assert_eq!(heading, "from to messages shortened tokens change score");
        let rows = &rows[1..];
        assert_eq!(rows.len(), 16, "{table}");
        let from = |row: &[&str]| number(row[usize::from(row[0] == ">")]);
        let shown: Vec<usize> = rows
            .iter()
            .map(|row| {
                (0..steps.len())
                    .find(|&step| at("from", step) == from(row))
                    .expect("a step")
            })
            .collect();
        assert!(shown.is_sorted(), "{table}");
        // The steps around the budget, whose row is marked.
        let own = (0..steps.len())
            .find(|&step| at("from", step) <= budget && budget <= at("to", step))
            .expect("a step of the budget");
        let marked: Vec<usize> = (0..16).filter(|&row| rows[row][0] == ">").collect();
        assert_eq!(marked.len(), 1, "{table}");
        assert_eq!(shown[marked[0]], own, "{table}");
        for near in own - 2..=(own + 2).min(steps.len() - 1) {
            assert!(shown.contains(&near), "{near}: {table}");
        }
        // The first and the last window.
        let first = (0..steps.len()).find(|&step| steps[step]["error"].is_null());
        assert!(shown.contains(&first.expect("a window")) && shown.contains(&(steps.len() - 1)));
        // No step that is left out changes more than one that is shown for its change.
        let change = |step: usize| match step {
            0 => 0,
            _ => (at("tokens_used", step) - at("tokens_used", step - 1)).abs(),
        };
        let largest = (0..steps.len())
            .max_by_key(|&step| change(step))
            .expect("a step");
        assert!(shown.contains(&largest), "{table}");
        let hidden = (0..steps.len()).filter(|step| !shown.contains(step));
        let most_hidden = hidden.map(change).max().expect("some are hidden");
        let as_large = shown.iter().filter(|&&step| change(step) >= most_hidden);
        assert!(as_large.count() >= 9, "{table}");
        for row in rows {
            let step = shown[rows.iter().position(|it| it == row).expect("the row")];
            if step > 0 && steps[step]["error"].is_null() {
                let signed = at("tokens_used", step) - at("tokens_used", step - 1);
                assert_eq!(number(row[row.len() - 2]), signed, "{table}");
            }
        }
        let last_line = format!("16 of {} steps: ", steps.len());
        assert!(table.contains(&last_line), "{table}");
        assert!(table.lines().any(|line| line.trim() == "..."), "{table}");
    }
    // Without a budget no row is marked, and few steps are all shown.
    let ran = sandbox.run(&["sweep", &chat]);
    assert!(!ran.ok().contains('>'), "{}", ran.out);
    let few = sandbox.run(&["sweep", &chat, "--from", "4k", "--to", "4100"]);
    assert!(
        !few.ok().contains("...") && !few.out.contains(" of "),
        "{}",
        few.out
    );
}

/// The fact in `why` is whole at any width that a terminal has, and with it the reason why a message stays.
#[test]
fn explain_at_80_columns_says_how_much_each_message_was_shortened_and_why_it_stays() {
    let sandbox = Sandbox::new();
    let chat = example("agent-session.json");
    let args = ["explain", &chat, "--budget", "2k", "--policy", "single"];
    let document = sandbox.run(&[&args[..], &["--json"]].concat()).json();
    let candidates = document["candidates"].as_array().expect("candidates");
    let cuts: Vec<(u64, String)> = candidates
        .iter()
        .filter(|it| it["reason"]["reason"] == "Shortened")
        .map(|it| {
            let [now, before] = ["tokens", "original_tokens"].map(|key| &it["reason"][key]);
            let index = it["index"].as_u64().expect("a position");
            (index, format!("shortened to {now} of {before} tokens"))
        })
        .collect();
    assert!(cuts.len() > 3, "{document}");
    for columns in [60, 80, 100] {
        let ran = sandbox.run_in_columns(&args, Some(columns));
        let row = |index: u64| {
            let mut rows = ran.ok().lines();
            let is_row = |line: &&str| line.starts_with(&format!("in  {index:>3}  "));
            rows.find(is_row)
                .unwrap_or_else(|| panic!("no row {index}: {}", ran.out))
        };
        for (index, fact) in &cuts {
            assert!(row(*index).contains(fact), "{columns}: {}", row(*index));
        }
        if columns >= 80 {
            // Shortened although it always stays.
            assert!(row(41).contains("; newest step"), "{columns}: {}", row(41));
            assert!(row(0).contains("always kept: system message"), "{}", row(0));
        }
    }
}

#[test]
fn a_mistyped_subcommand_has_a_suggestion() {
    let sandbox = Sandbox::new();
    for (typed, meant) in [
        (&["fti"][..], "fit"),
        (&["ift", "chat.json"], "fit"),
        (&["explian"], "explain"),
        (&["cuont"], "count"),
        (&["policy", "lsit"], "list"),
        (&["policy", "chekc"], "check"),
    ] {
        let ran = sandbox.run(typed);
        assert_eq!(ran.exit, 2);
        let tip = format!("tip: a similar subcommand exists: '{meant}'");
        assert!(ran.err.contains(&tip), "{typed:?}: {}", ran.err);
    }
    let ran = sandbox.run(&["nothing-like-it"]);
    assert!(!ran.err.contains("similar"), "{}", ran.err);
}

#[test]
fn the_words_of_a_license_stand_below_the_models_they_are_for() {
    const LLAMA: &str = "Built with Meta Llama 3.";
    let sandbox = Sandbox::new();
    assert!(sandbox.run(&["models"]).ok().contains(LLAMA));
    assert!(sandbox.run(&["models", "llama-3.1"]).ok().contains(LLAMA));
    for other in ["gpt-5", "claude-sonnet-4-5", "llama-4-scout"] {
        assert!(
            !sandbox.run(&["models", other]).ok().contains("Llama 3."),
            "{other}"
        );
    }
}

/// One cause in many chats is one error.
#[test]
fn an_error_of_many_chats_is_reported_once() {
    let line = "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}\n";
    let bad = "{\"messages\": [{\"role\": \"user\"}]}\n";
    let chats = format!("{}{bad}{}{bad}", line.repeat(20), line.repeat(20));
    let sandbox = Sandbox::with(&[("chats.jsonl", chats.as_bytes())]);
    for args in [&["fit", "chats.jsonl"][..], &["batch", "chats.jsonl"]] {
        let ran = sandbox.run_in_columns(args, Some(100));
        assert_eq!(ran.exit, 2);
        let count = ran.err.matches("error: ").count();
        assert!((1..=2).contains(&count), "{args:?}: {}", ran.err);
        assert!(
            ran.err
                .contains("the error of line 1 is on 39 more lines: 2-20, 22-41")
                || ran
                    .err
                    .contains("the error of line 1 is on 41 more lines: 2-42"),
            "{args:?}: {}",
            ran.err
        );
        // Every line still has its answer.
        let failed = ran.out.lines().filter(|line| line.contains("\"error\""));
        assert_eq!(failed.count(), 42, "{args:?}");
    }
}

/// A fault of the command line is no fault of the chats.
#[test]
fn a_wrong_budget_of_many_chats_is_an_error_of_the_command_line() {
    let line = "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}\n";
    let chats = line.repeat(40);
    let sandbox = Sandbox::with(&[("chats.jsonl", chats.as_bytes()), ("old.jsonl", b"old")]);
    for command in ["fit", "batch"] {
        let args = [command, "chats.jsonl", "--budget", "0", "-o", "old.jsonl"];
        let ran = sandbox.run_in_columns(&args, Some(100));
        assert_eq!(
            (ran.exit, ran.err.matches("error").count()),
            (2, 1),
            "{}",
            ran.err
        );
        assert!(!ran.err.contains("chats.jsonl"), "{}", ran.err);
        assert_eq!(sandbox.read("old.jsonl"), "old");
    }
}

#[test]
fn one_token_is_not_several() {
    let chat = br#"[{"role": "user", "content": "hi"}]"#;
    let sandbox = Sandbox::with(&[("chat.json", chat)]);
    let ran = sandbox.run(&["fit", "chat.json", "--budget", "7"]);
    assert_eq!(ran.exit, 1);
    assert!(
        ran.err.contains("raise the budget by 1 token, "),
        "{}",
        ran.err
    );
}
