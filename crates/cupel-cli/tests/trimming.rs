//! The options that say how a chat is trimmed, and sessions with a state.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox, example};

/// Fits the example session of an agent: 44 messages, 5,869 tokens, the task at position 1.
fn fit(sandbox: &Sandbox, args: &[&str]) -> Ran {
    let file = example("agent-session.json");
    sandbox.run(&[&["fit", &file, "--json"], args].concat())
}

fn positions(list: &Value) -> Vec<u64> {
    let list = list.as_array().expect("a list").iter();
    list.map(|entry| {
        entry
            .get("index")
            .unwrap_or(entry)
            .as_u64()
            .expect("a position")
    })
    .collect()
}

#[test]
fn pinned_messages_stay_with_their_groups() {
    let sandbox = Sandbox::new();
    let without = fit(&sandbox, &["--budget", "2k"]).json();
    assert!(!positions(&without["kept"]).contains(&5));
    let with = fit(&sandbox, &["--budget", "2k", "--pin", "5,role:user"]).json();
    let kept = positions(&with["kept"]);
    // 5 is a tool call, 6 its result; 15 and 31 are user turns.
    for position in [5, 6, 15, 31] {
        assert!(kept.contains(&position), "{kept:?}");
    }
}

#[test]
fn the_task_stays_unless_it_may_be_dropped() {
    let sandbox = Sandbox::new();
    for (option, stays) in [("--keep-task", true), ("--no-keep-task", false)] {
        let answer = fit(
            &sandbox,
            &["--budget", "1200", "--policy", "single", option],
        )
        .json();
        assert_eq!(positions(&answer["kept"]).contains(&1), stays, "{option}");
    }
}

#[test]
fn cache_breakpoints_are_named_in_every_answer_and_set_if_requested() {
    let sandbox = Sandbox::new();
    let text = r#"{"system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}]}"#;
    let run = |args: &[&str]| {
        let args = [&["fit", "-", "--budget", "1k", "--json"], args].concat();
        sandbox.run_with_input(&args, text.as_bytes())
    };
    let places = json!([
        {"place": "system", "index": null, "position": null},
        {"place": "end", "index": 0, "position": 0}
    ]);
    let without = run(&[]).json();
    assert_eq!(without["cache_breakpoints"], places);
    let request: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(without["chat"], request);
    let with = run(&["--cache-breakpoints"]).json();
    assert_eq!(with["cache_breakpoints"], places);
    let block = |text: &str| json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
    assert_eq!(with["chat"]["system"], block("Be brief."));
    assert_eq!(with["chat"]["messages"][0]["content"], block("Hi"));
    assert_eq!(with["tokens_after"], without["tokens_after"]);
    // A state has the same answer.
    let state = run(&["--cache-breakpoints", "--state", "chat.state"]).json();
    assert_eq!(state["chat"], with["chat"]);
    // Another format has none, and the command says so.
    let openai = fit(&sandbox, &["--budget", "2k", "--cache-breakpoints"]);
    let file = example("agent-session.json");
    let shown = sandbox.run(&["fit", &file, "--budget", "2k", "--cache-breakpoints"]);
    let warning = "warning: --cache-breakpoints has no effect: the format openai has no breakpoints; \
                   anthropic and bedrock have";
    let words = shown.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(warning), "{}", shown.err);
    let places = &openai.json()["cache_breakpoints"];
    let names: Vec<&Value> = places
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| &it["place"])
        .collect();
    assert_eq!(names, ["system", "head", "previous", "end"]);
}

#[test]
fn results_over_the_limit_are_shortened_although_the_chat_fits() {
    let sandbox = Sandbox::new();
    let whole = fit(&sandbox, &["--budget", "100k"]).json();
    assert_eq!(whole["shortened"], json!([]));
    let limited = fit(&sandbox, &["--budget", "100k", "--max-result", "100"]).json();
    assert_eq!(limited["dropped"], json!([]));
    let shortened = limited["shortened"].as_array().expect("a list");
    assert!(shortened.len() > 5, "{limited}");
    for message in shortened {
        assert_eq!(message["role"], "tool");
        // 100 tokens of text; the role, the name and the framing of the message come on top.
        assert!(message["tokens"].as_i64() <= Some(110), "{message}");
        assert!(message["original_tokens"].as_i64() > message["tokens"].as_i64());
    }
}

#[test]
fn nothing_is_shortened_if_shortening_is_off() {
    let sandbox = Sandbox::new();
    let shortened = |which: &str| {
        let answer = fit(&sandbox, &["--budget", "3k", "--shorten", which]).json();
        positions(&answer["shortened"]).len()
    };
    assert_eq!(shortened("off"), 0);
    assert!(shortened("old") > 0);
    assert!(shortened("all") > 0);
}

#[test]
fn a_marker_takes_the_place_of_dropped_messages() {
    let sandbox = Sandbox::new();
    let marked = fit(&sandbox, &["--budget", "2k", "--marker", "[{n} gone]"]).json();
    let markers = marked["markers"].as_array().expect("a list");
    assert!(!markers.is_empty());
    let omitted: u64 = markers.iter().filter_map(|it| it["omitted"].as_u64()).sum();
    let dropped = positions(&marked["dropped"]).len();
    assert_eq!(usize::try_from(omitted), Ok(dropped));
    for marker in markers {
        assert_eq!(marker["text"], format!("[{} gone]", marker["omitted"]));
        assert!(
            marked["chat"]
                .to_string()
                .contains(marker["text"].as_str().expect("a text"))
        );
    }
    let unmarked = fit(&sandbox, &["--budget", "2k", "--marker", "off"]).json();
    assert_eq!(unmarked["markers"], json!([]));
}

#[test]
fn the_other_commands_trim_in_the_same_way() {
    let sandbox = Sandbox::new();
    let file = example("agent-session.json");
    let is_in = |args: &[&str]| {
        let args = [&["explain", &file, "--budget", "2k", "--json"], args].concat();
        let answer = sandbox.run(&args).json();
        let mut candidates = answer["candidates"].as_array().expect("a list").iter();
        candidates.any(|it| it["index"] == 5 && it["included"] == true)
    };
    assert!(!is_in(&[]));
    assert!(is_in(&["--pin", "5"]));
    let least = |args: &[&str]| {
        let args = [&["min-budget", &file, "--item", "1"], args].concat();
        let tokens = sandbox.run(&args).ok().trim().replace(',', "");
        tokens.parse::<i64>().expect("a number")
    };
    assert!(least(&["--no-keep-task"]) > least(&["--keep-task"]));
    let compare = [
        "compare", &file, "--budget", "2k", "--policy", "agent", "--policy", "newest",
    ];
    let answer = sandbox
        .run(&[&compare[..], &["--pin", "5", "--json"]].concat())
        .json();
    for variant in 0..2 {
        assert!(positions(&answer["variants"][variant]["selected"]).contains(&5));
    }
}

/// The first messages of the example as a chat of its own.
fn beginning(messages: usize) -> Vec<u8> {
    let text = std::fs::read_to_string(example("agent-session.json")).expect("the example");
    let mut chat: Value = serde_json::from_str(&text).expect("JSON");
    chat["messages"]
        .as_array_mut()
        .expect("messages")
        .truncate(messages);
    chat.to_string().into_bytes()
}

fn turn(sandbox: &Sandbox, messages: usize, args: &[&str]) -> Ran {
    let base = ["fit", "-", "--budget", "2500", "--state", "s.state"];
    sandbox.run_with_input(&[&base, args].concat(), &beginning(messages))
}

#[test]
fn a_state_keeps_the_prefix_from_turn_to_turn() {
    let sandbox = Sandbox::new();
    let first = turn(&sandbox, 31, &["--json"]).json();
    assert_eq!(
        (&first["reuse"], &first["rebuilt"]),
        (&Value::Null, &Value::Null)
    );
    assert!(!positions(&first["dropped"]).is_empty() || !positions(&first["shortened"]).is_empty());
    // Two messages more fit below the budget, so the window before is a prefix of this one.
    let second = turn(&sandbox, 32, &["--json"]).json();
    assert_eq!(second["reuse"]["share"], 1.0);
    assert_eq!(second["reuse"]["first_changed"], Value::Null);
    let window = |answer: &Value| {
        answer["chat"]["messages"]
            .as_array()
            .cloned()
            .expect("messages")
    };
    assert_eq!(window(&second)[..window(&first).len()], window(&first)[..]);
    let summary = turn(&sandbox, 32, &[]);
    assert!(
        summary.err.contains("of the window before (100 %)"),
        "{}",
        summary.err
    );
}

/// 300 short turns, after which a session leaves room for more.
fn short_turns(turns: usize) -> Vec<u8> {
    let turn = |number| serde_json::json!({"role": "user", "content": format!("hi {number}")});
    let messages: Vec<Value> = (0..turns).map(turn).collect();
    Value::from(messages).to_string().into_bytes()
}

#[test]
fn a_session_says_what_is_older_than_its_cut() {
    let sandbox = Sandbox::new();
    let fit = |turns| {
        let args = [
            "fit", "-", "--budget", "900", "--state", "s.state", "-o", "out.json",
        ];
        let ran = sandbox.run_with_input(&args, &short_turns(turns));
        ran.ok();
        let reasons = ran
            .err
            .lines()
            .filter(|line| line.starts_with("  dropped "));
        let reasons: Vec<String> = reasons.map(str::to_owned).collect();
        reasons
    };
    // The newest of the dropped messages would fit: the cut is below the budget.
    let first = fit(300);
    assert!(
        first.len() == 1 && first[0].contains("older than the cut: "),
        "{first:?}"
    );
    let next = fit(301);
    // The head: the task, and user turns of 7 tokens in 40 % of the budget.
    let reason = "older than the cut: 52-";
    assert!(next.len() == 1 && next[0].contains(reason), "{next:?}");
}

#[test]
fn no_option_but_the_one_for_the_answer_replaces_the_input() {
    let text = short_turns(3);
    let sandbox = Sandbox::with(&[("chat.json", &text)]);
    let budget = ["--budget", "900"];
    for (command, option) in [
        ("fit", "--state=./chat.json"),
        ("fit", "--report=chat.json"),
        ("explain", "--html=chat.json"),
    ] {
        let ran = sandbox.run(&[&[command, "chat.json", option], &budget[..]].concat());
        assert_eq!(ran.exit, 2, "{option}");
        assert!(ran.err.contains("names the input"), "{option}: {}", ran.err);
        assert_eq!(sandbox.read("chat.json").as_bytes(), text, "{option}");
    }
    sandbox
        .run(&[&["fit", "chat.json", "-o", "chat.json"], &budget[..]].concat())
        .ok();
}

#[test]
fn an_edited_history_is_reported() {
    let sandbox = Sandbox::new();
    turn(&sandbox, 32, &[]).ok();
    let edited = String::from_utf8(beginning(32)).expect("UTF-8");
    let edited = edited.replacen("Accounting found 14", "Accounting found 15", 1);
    let args = ["fit", "-", "--budget", "2500", "--state", "s.state"];
    let ran = sandbox.run_with_input(&args, edited.as_bytes());
    ran.ok();
    assert!(
        ran.err.contains("the history changed at message 1"),
        "{}",
        ran.err
    );
}

#[cfg(unix)]
#[test]
fn a_summary_is_asked_for_once_per_cut() {
    let sandbox = Sandbox::new();
    let answer = |messages| {
        let command = "echo asked >> asked; wc -c";
        let args = [
            "fit", "-", "--json", "--budget", "1800", "--state", "s.state",
        ];
        let args = [&args[..], &["--summarize", command]].concat();
        sandbox.run_with_input(&args, &beginning(messages)).json()
    };
    let first = answer(31);
    let markers = first["markers"].as_array().expect("a list");
    assert!(!markers.is_empty());
    for marker in markers {
        let bytes: usize = marker["text"]
            .as_str()
            .and_then(|it| it.parse().ok())
            .expect("wc -c");
        assert!(bytes > 1_000, "{marker}");
    }
    assert_eq!(sandbox.read("asked").lines().count(), markers.len());
    let second = answer(32);
    assert_eq!(second["markers"], first["markers"]);
    assert_eq!(sandbox.read("asked").lines().count(), markers.len());
}

#[cfg(unix)]
#[test]
fn a_summary_over_the_limit_is_cut() {
    let sandbox = Sandbox::new();
    let args = [
        "--budget",
        "2k",
        "--summarize",
        "yes word",
        "--summary-tokens",
        "20",
    ];
    let answer = fit(&sandbox, &args).json();
    let text = answer["markers"][0]["text"].as_str().expect("a text");
    assert!(
        text.starts_with("word\nword") && text.ends_with("word [...]"),
        "{text}"
    );
    assert!(answer["tokens_after"].as_i64() <= Some(2_000));
}

#[test]
fn a_setting_for_a_tool_that_no_message_calls_is_a_notice() {
    let sandbox = Sandbox::new();
    let file = example("agent-session.json");
    let fit = |tools: &'static str| {
        let ran = sandbox.run(&["fit", &file, "--budget", "2k", "--tool-results", tools]);
        (ran.ok().to_owned(), ran.err)
    };
    let (kept, err) = fit("run_tests=keep,git_*=never");
    assert!(!err.contains("has no effect"), "{err}");
    let (plain, err) = fit("run_test=keep,wait=never");
    let words: Vec<&str> = err.split_whitespace().collect();
    let notice = "--tool-results has no effect for `run_test`, `wait`: no message calls them; did you mean `run_tests`?";
    assert!(words.join(" ").contains(notice), "{err}");
    assert_ne!(kept, plain);
}

#[test]
fn errors_name_the_fix() {
    let file = example("agent-session.json");
    let items = example("items.json");
    let cases: &[(&str, &[&str])] = &[
        (&file, &["--pin", "44"]),
        (&file, &["--pin", "5-3"]),
        (&file, &["--pin", "role:robot"]),
        (&file, &["--max-result", "0"]),
        (&file, &["--shorten", "none"]),
        (&file, &["--tool-results", "keep"]),
        (&file, &["--tool-results", "todo_write=keeps"]),
        (&file, &["--policy", "newest", "--tool-results", "a=keep"]),
        (&file, &["--step", "500"]),
        (&file, &["--policy", "session"]),
        (&file, &["--policy", "newest", "--shorten", "old"]),
        (&file, &["--policy", "newest", "--summarize", "wc -c"]),
        (&file, &["--state", "damaged.state"]),
        (&file, &["--state", "other.state"]),
        (&file, &["--state", "no/where.state"]),
        (&file, &["--summarize", "exit 3"]),
        (&file, &["--summarize", "true"]),
        (&file, &["--summary-tokens", "9"]),
        (&file, &["--summarize", "true", "--marker", "off"]),
        (&items, &["--pin", "3"]),
        (&items, &["--state", "s.state"]),
    ];
    let mut shown = String::new();
    for (file, args) in cases {
        let sandbox = Sandbox::with(&[
            ("damaged.state", br#"{"cupel_state": 1, "settings": 3"#),
            ("other.state", br#"{"cupel_state": 99}"#),
        ]);
        let ran = sandbox.run(&[&["fit", file, "--budget", "2k"], *args].concat());
        assert_eq!((ran.exit, ran.out.as_str()), (2, ""), "{args:?}");
        let error = ran.err.replace(file, "FILE");
        let _ = writeln!(shown, "# {}\n{error}", args.join(" "));
    }
    insta::assert_snapshot!("trimming_errors", shown);
}

#[test]
fn help_fits_80_columns() {
    for command in [
        "fit",
        "explain",
        "sweep",
        "min-budget",
        "marginal",
        "compare",
    ] {
        let mut program = assert_cmd::Command::cargo_bin("cupel").expect("the command");
        let program = program.env("COLUMNS", "80").args([command, "--help"]);
        let ran = Ran::from(program.output().expect("the command runs"));
        assert!(ran.ok().contains("--max-result"), "{command}");
        for line in ran.out.lines() {
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
    }
}
