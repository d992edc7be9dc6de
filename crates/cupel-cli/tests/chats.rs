//! Real chats through the command.

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, example};

/// The same conversation in every shape.
const SHAPES: [(&str, &str); 4] = [
    (
        "openai",
        r#"{"model": "gpt-4o", "messages": [
  {"role": "system", "content": "Be brief."},
  {"role": "user", "content": "An old question about something else entirely, long ago."},
  {"role": "assistant", "content": null, "tool_calls": [
    {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}}]},
  {"role": "tool", "tool_call_id": "c1", "content": "Four degrees, wind from the north, and rain until the evening."},
  {"role": "assistant", "content": "Cold and wet."},
  {"role": "user", "content": "And tomorrow?"}
], "x-trace": 12345678901234567890}
"#,
    ),
    (
        "openai-responses",
        r#"{"instructions": "Be brief.", "input": [
  {"role": "user", "content": "An old question about something else entirely, long ago."},
  {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{\"city\":\"Oslo\"}"},
  {"type": "function_call_output", "call_id": "c1", "output": "Four degrees, wind from the north, and rain until the evening."},
  {"role": "assistant", "content": "Cold and wet."},
  {"role": "user", "content": "And tomorrow?"}
]}
"#,
    ),
    (
        "anthropic",
        r#"{"model": "claude-sonnet-4", "system": "Be brief.", "messages": [
  {"role": "user", "content": "An old question about something else entirely, long ago."},
  {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}}]},
  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "Four degrees, wind from the north, and rain until the evening."}]},
  {"role": "assistant", "content": "Cold and wet."},
  {"role": "user", "content": "And tomorrow?"}
]}
"#,
    ),
    (
        "langchain",
        r#"[
  {"type": "system", "data": {"content": "Be brief."}},
  {"type": "human", "data": {"content": "An old question about something else entirely, long ago."}},
  {"type": "ai", "data": {"content": "", "tool_calls": [{"id": "c1", "name": "weather", "args": {"city": "Oslo"}}]}},
  {"type": "tool", "data": {"tool_call_id": "c1", "content": "Four degrees, wind from the north, and rain until the evening."}},
  {"type": "ai", "data": {"content": "Cold and wet."}},
  {"type": "human", "data": {"content": "And tomorrow?"}}
]
"#,
    ),
];

#[test]
fn the_session_of_the_readme_fits_into_2k() {
    let sandbox = Sandbox::new();
    let session = example("agent-session.json");
    let ran = sandbox.run(&["fit", &session, "--budget", "2k"]);
    let fitted: Value = serde_json::from_str(ran.ok()).expect("a chat");
    let whole: Value =
        serde_json::from_str(&std::fs::read_to_string(&session).expect("the session"))
            .expect("a chat");
    let messages = fitted["messages"].as_array().expect("messages");
    let mut rest = whole["messages"].as_array().expect("messages").iter();
    let is_same = |message: &Value, other: &Value| {
        ["role", "tool_calls", "tool_call_id"]
            .iter()
            .all(|key| message[*key] == other[*key])
            && (message["content"] == other["content"] || message["role"] != "user")
    };
    for message in messages {
        assert!(
            rest.any(|other| is_same(message, other)),
            "in order: {message}"
        );
    }
    assert_eq!(messages[1], whole["messages"][1], "the task stays");
    assert_eq!(messages[0]["role"], "system");
    assert_eq!(messages[messages.len() - 1]["role"], "user");
    assert_eq!(rest.next(), None, "the last user turn stays");
    assert_eq!(fitted["tools"], whole["tools"]);
    let summary = ran.err.lines().next().expect("a summary");
    let is_marker = |it: &&Value| {
        let text = it["content"].as_str().unwrap_or_default();
        text.starts_with('[') && text.contains(" earlier message")
    };
    let kept = messages.len() - messages.iter().filter(is_marker).count();
    assert!(
        summary.starts_with(&format!("kept {kept} of 44 messages, ")),
        "{summary}"
    );
    assert!(summary.ends_with(" (budget 2,000)"), "{summary}");
    let settings = ran.err.lines().last();
    assert_eq!(
        settings,
        Some("  openai, counted by o200k_base, policy agent")
    );

    let counted = sandbox
        .run_with_input(&["count", "-", "--json"], ran.out.as_bytes())
        .json();
    let answer = sandbox
        .run(&["fit", &session, "--budget", "2k", "--json"])
        .json();
    assert_eq!(answer["tokens_after"], counted["total"]["o200k_base"]);
    assert!(counted["total"]["o200k_base"].as_i64() <= Some(2_000));
    assert_eq!(answer["chat"], fitted);
}

#[test]
fn a_chat_that_fits_is_written_byte_for_byte_in_every_format() {
    let sandbox = Sandbox::new();
    for (shape, chat) in SHAPES {
        let ran = sandbox.run_with_input(&["fit", "-", "--budget", "8k"], chat.as_bytes());
        assert_eq!(ran.ok(), chat, "{shape}");
        assert!(
            ran.err.contains(&format!("\n  {shape}, ")),
            "{shape}: {}",
            ran.err
        );
    }
}

#[test]
fn a_call_is_dropped_with_its_result_and_the_rest_fits_again() {
    let sandbox = Sandbox::new();
    for (shape, chat) in SHAPES {
        let args = ["fit", "-", "--budget", "50", "--policy", "newest"];
        let ran = sandbox.run_with_input(&args, chat.as_bytes());
        assert!(
            !ran.ok().contains("Oslo") && !ran.out.contains("Four degrees"),
            "{shape}: {}",
            ran.out
        );
        assert!(
            ran.out.contains("And tomorrow?") && ran.out.contains("Be brief."),
            "{shape}"
        );
        let again = sandbox.run_with_input(&args, ran.out.as_bytes());
        assert_eq!(again.ok(), ran.out, "{shape}");
    }
}

#[test]
fn fit_answers_in_json() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run_with_input(
        &["fit", "-", "--budget", "50", "--policy", "newest", "--json"],
        SHAPES[0].1.as_bytes(),
    );
    let answer = ran.json();
    assert_eq!(ran.err, "");
    let mut keys: Vec<_> = answer.as_object().expect("an object").keys().collect();
    keys.sort();
    assert_eq!(
        keys,
        [
            "budget",
            "cache_breakpoints",
            "chat",
            "counter",
            "dropped",
            "estimated",
            "kept",
            "markers",
            "shape",
            "shortened",
            "tokens_after",
            "tokens_before",
            "warnings"
        ]
    );
    assert_eq!(answer["shape"], "openai");
    assert_eq!(answer["budget"], 50);
    let kept = answer["kept"].as_array().expect("positions").len();
    assert_eq!(
        answer["chat"]["messages"].as_array().map(Vec::len),
        Some(kept)
    );
    let dropped = answer["dropped"].as_array().expect("messages");
    assert_eq!(kept + dropped.len(), 6);
    assert_eq!(dropped.last().expect("a message")["role"], "tool");
    assert_eq!(
        dropped.last().expect("a message")["reason"]["reason"],
        "GroupExcluded"
    );
}

#[test]
fn orphans_of_a_chat_that_fits_are_kept_with_a_warning_unless_strict() {
    let chat = r#"[{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "a", "content": "x"}]"#;
    let sandbox = Sandbox::new();
    let run = |args: &[&str]| sandbox.run_with_input(args, chat.as_bytes());
    let warning = "warning: message 1: tool result without a call; the provider may reject it";
    for command in ["fit", "explain"] {
        let ran = run(&[command, "-", "--budget", "8k"]);
        assert!(ran.err.contains(warning), "{command}: {}", ran.err);
        let answer = run(&[command, "-", "--budget", "8k", "--json"]).json();
        let expected = serde_json::json!([{"kind": "result_without_call", "messages": [1]}]);
        assert_eq!(answer["warnings"], expected);
        let ran = run(&[command, "-", "--budget", "8k", "--strict"]);
        assert!(!ran.err.contains("warning"), "{command}: {}", ran.err);
    }
    assert_eq!(run(&["fit", "-", "--budget", "8k"]).ok().trim_end(), chat);
    let strict = run(&["fit", "-", "--budget", "8k", "--strict"]);
    assert_eq!(
        strict.ok().trim_end(),
        r#"[{"role": "user", "content": "hi"}]"#
    );
}

/// A chat of several turns whose answers are long, so that windows have markers.
fn turns() -> String {
    let turn = |number: usize| {
        let answer = "several words of an answer ".repeat(12);
        [
            json!({"role": "user", "content": format!("Question {number}?")}),
            json!({"role": "assistant", "content": answer}),
        ]
    };
    let mut messages: Vec<Value> = (0..5).flat_map(turn).collect();
    messages.push(json!({"role": "user", "content": "The last question?"}));
    Value::from(messages).to_string()
}

#[test]
fn every_command_counts_the_markers_of_a_window() {
    let sandbox = Sandbox::with(&[("chat.json", turns().as_bytes())]);
    let run = |args: &[&str]| sandbox.run(args).json();
    for policy in ["agent", "single"] {
        let policy = ["--policy", policy];
        let sweep = ["sweep", "chat.json", "--shorten", "off", "--json"];
        let sweep = run(&[&sweep[..], &policy].concat());
        let steps = sweep["steps"].as_array().expect("steps");
        let steps = steps.iter().filter(|step| step["error"].is_null());
        let steps: Vec<&Value> = steps.collect();
        let mut markers = 0;
        for step in steps.iter().step_by(steps.len() / 12 + 1) {
            let budget = step["from"].to_string();
            let args = |command| {
                let args = [
                    "chat.json",
                    "--budget",
                    &budget,
                    "--shorten",
                    "off",
                    "--json",
                ];
                [&[command], &args[..], &policy].concat()
            };
            let fitted = run(&args("fit"));
            markers += fitted["markers"].as_array().map_or(0, Vec::len);
            let tokens = &fitted["tokens_after"];
            assert_eq!(&step["tokens_used"], tokens, "sweep at {budget}");
            assert_eq!(&run(&args("explain"))["tokens_used"], tokens);
            let one = run(&[&args("explain")[..], &["--item", "3"]].concat());
            assert_eq!(&one["tokens_used"], tokens);
            let compared = run(&[&args("compare")[..], &policy].concat());
            assert_eq!(&compared["variants"][0]["tokens"], tokens);
        }
        assert!(markers > 2);
    }
}

#[test]
fn an_explanation_says_why_a_message_is_always_kept() {
    let sandbox = Sandbox::with(&[("chat.json", turns().as_bytes())]);
    let args = ["chat.json", "--budget", "200", "--pin", "3"];
    let table = sandbox
        .run(&[&["explain"], &args[..]].concat())
        .ok()
        .to_owned();
    for reason in ["task", "last user turn", "pin 3"] {
        assert!(table.contains(&format!("always kept: {reason}")), "{table}");
    }
    let one = sandbox.run(&[&["explain", "--item", "1"], &args[..]].concat());
    // Only messages that always stay rank below it, and they took the place of nothing.
    assert!(!one.ok().contains("instead"), "{}", one.out);
    // Ranks count from 1 in the text and in JSON.
    let shown = one.out.lines().find(|line| line.starts_with("  rank"));
    let shown = shown.and_then(|line| line.split_whitespace().nth(1));
    let json = sandbox.run(&[&["explain", "--item", "1", "--json"], &args[..]].concat());
    let json = json.json();
    assert_eq!(shown, Some(&*json["rank"].to_string()));
    let ranks = json["neighbors"].as_array().expect("neighbors").iter();
    assert!(ranks.clone().all(|it| it["rank"] != 0) && ranks.count() > 1);
}

#[test]
fn a_failed_line_of_a_batch_keeps_its_custom_id() {
    let line = |id: &str, content: &str| {
        let body = json!({"messages": [{"role": "user", "content": content}]});
        json!({"custom_id": id, "method": "POST", "url": "/v1/chat/completions", "body": body})
    };
    let lines = format!("{}\n{}\n", line("a", "hi"), line("b", &"word ".repeat(90)));
    let sandbox = Sandbox::new();
    let ran = sandbox.run_with_input(&["fit", "-", "--budget", "12"], lines.as_bytes());
    let answers: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(
        [&answers[0]["custom_id"], &answers[1]["custom_id"]],
        ["a", "b"]
    );
    assert!(answers[1]["error"]["message"].is_string());
}

#[test]
fn a_byte_order_mark_is_removed_with_a_warning() {
    let sandbox = Sandbox::new();
    let chat = r#"[{"role": "user", "content": "hi"}]"#;
    let input = format!("\u{feff}{chat}");
    let ran = sandbox.run_with_input(&["fit", "-", "--budget", "8k"], input.as_bytes());
    assert_eq!(ran.ok().trim_end(), chat);
    assert!(ran.err.contains("byte order mark"), "{}", ran.err);
}

#[test]
fn lines_of_messages_stay_lines() {
    let lines =
        "{\"role\": \"user\", \"content\": \"one\"}\n{\"role\": \"user\", \"content\": \"two\"}\n";
    let sandbox = Sandbox::new();
    let ran = sandbox.run_with_input(
        &["fit", "-", "--budget", "8", "--policy", "newest"],
        lines.as_bytes(),
    );
    assert_eq!(ran.ok(), "{\"role\": \"user\", \"content\": \"two\"}\n");
    let answer = sandbox
        .run_with_input(&["fit", "-", "--budget", "8k", "--json"], lines.as_bytes())
        .json();
    assert_eq!(answer["chat"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_budget_may_be_a_share_of_the_models_window() {
    let sandbox = Sandbox::new();
    let chat = SHAPES[0].1.as_bytes();
    let share = |args: &[&str]| {
        let args = [&["fit", "-", "--json"], args].concat();
        sandbox.run_with_input(&args, chat).json()["budget"].clone()
    };
    assert_eq!(share(&["--budget", "50%"]), 64_000); // the chat says gpt-4o
    assert_eq!(share(&["--budget", "50%", "--model", "gpt-4"]), 4_096);
    assert_eq!(share(&["--budget", "50%", "--reserve", "1k"]), 63_000);
}

#[test]
fn the_model_determines_the_encoding() {
    let sandbox = Sandbox::new();
    let counter = |chat: &str, args: &[&str]| {
        let args = [&["fit", "-", "--budget", "8k", "--json"], args].concat();
        let answer = sandbox.run_with_input(&args, chat.as_bytes()).json();
        (answer["counter"].clone(), answer["estimated"].clone())
    };
    let [(_, openai), _, (_, anthropic), (_, langchain)] = SHAPES;
    assert_eq!(counter(openai, &[]), (json!("o200k_base"), json!(false)));
    assert_eq!(
        counter(openai, &["--model", "gpt-4"]),
        (json!("cl100k_base"), json!(false))
    );
    assert_eq!(counter(anthropic, &[]), (json!("heuristic"), json!(true)));
    assert_eq!(counter(langchain, &[]), (json!("o200k_base"), json!(false)));
    assert_eq!(
        counter(langchain, &["--encoding", "heuristic", "--factor", "1.5"]),
        (json!("heuristic x 1.5"), json!(true))
    );
}

#[test]
fn explain_shows_what_fit_does() {
    let sandbox = Sandbox::new();
    let session = example("agent-session.json");
    for policy in [&[][..], &["--policy", "tool-use"]] {
        let fit = sandbox
            .run(&[&["fit", &session, "--budget", "3k", "--json"], policy].concat())
            .json();
        let explain = sandbox
            .run(&[&["explain", &session, "--budget", "3k", "--json"], policy].concat())
            .json();
        let candidates = explain["candidates"].as_array().expect("candidates");
        let kept = candidates.iter().filter(|one| one["included"] == true);
        assert_eq!(
            kept.map(|one| &one["index"]).collect::<Vec<_>>(),
            fit["kept"]
                .as_array()
                .expect("positions")
                .iter()
                .collect::<Vec<_>>()
        );
        assert_eq!(explain["tokens_used"], fit["tokens_after"]);
    }
}

#[test]
fn budget_and_policy_commands_accept_a_chat() {
    let sandbox = Sandbox::new();
    let session = example("agent-session.json");
    let steps = sandbox.run(&["sweep", &session, "--json"]).json();
    assert_eq!(steps["exact"], true);
    let least = sandbox.run(&["min-budget", &session, "--item", "33"]);
    let least: i64 = least.ok().trim().parse().expect("a number");
    let has = |budget: i64| {
        let ran = sandbox
            .run(&["fit", &session, "--budget", &budget.to_string(), "--json"])
            .json();
        ran["kept"]
            .as_array()
            .expect("positions")
            .contains(&json!(33))
    };
    assert!(has(least) && !has(least - 1), "{least}");
    let item = sandbox.run(&["explain", &session, "--budget", "2k", "--item", "30"]);
    assert!(
        item.ok().contains("shortened to 29 of 57 tokens"),
        "{}",
        item.out
    );
    let newest = [
        "explain", &session, "--budget", "2k", "--item", "33", "--policy", "newest",
    ];
    let item = sandbox.run(&newest);
    assert!(
        item.ok().contains("group of 3 too large: needs "),
        "{}",
        item.out
    );
    let swings = sandbox.run(&[
        "compare", &session, "--budget", "2k", "--policy", "chat", "--policy", "tool-use", "--json",
    ]);
    assert!(!swings.json()["diffs"].as_array().expect("diffs").is_empty());
    sandbox
        .run(&["explain", &session, "--budget", "2k", "--html", "why.html"])
        .ok();
    assert!(sandbox.read("why.html").contains("billing_month"));
}

#[test]
fn the_report_of_a_chat_is_a_report() {
    let sandbox = Sandbox::new();
    sandbox
        .run(&[
            "fit",
            &example("agent-session.json"),
            "--budget",
            "2k",
            "--report",
            "why.json",
        ])
        .ok();
    let report: cupel::SelectionReport =
        serde_json::from_str(&sandbox.read("why.json")).expect("a report");
    assert_eq!(report.total_candidates, 45); // the messages, and what stands around them
}

#[test]
fn every_command_names_the_request_overhead_the_same() {
    let sandbox = Sandbox::with(&[("chat.json", SHAPES[0].1.as_bytes())]);
    let budget = ["chat.json", "--budget", "50", "--policy", "newest"];
    sandbox
        .run(&[&["fit"], &budget[..], &["--report", "why.json"]].concat())
        .ok();
    let report: cupel::SelectionReport =
        serde_json::from_str(&sandbox.read("why.json")).expect("a report");
    let mut items = report.included.iter().map(|included| &included.item);
    let around = items.find(|item| item.kind().as_str() == "Request");
    let around = around.expect("the request overhead").tokens();
    let expected = format!("request overhead (tools, parameters): {around} tokens");
    let table = sandbox.run(&[&["explain"], &budget[..]].concat());
    assert!(table.ok().contains(&expected), "{expected}: {}", table.out);
}

#[test]
fn counts_add_up() {
    let sandbox = Sandbox::new();
    let answer = sandbox
        .run(&["count", &example("agent-session.json"), "--json"])
        .json();
    for encoding in ["o200k_base", "cl100k_base", "heuristic"] {
        let tokens = |value: &Value| value[encoding].as_i64().expect("a number");
        let items: i64 = answer["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|item| tokens(&item["tokens"]))
            .sum();
        let kinds: i64 = answer["kinds"]
            .as_object()
            .expect("kinds")
            .values()
            .map(tokens)
            .sum();
        assert_eq!(items, kinds);
        assert_eq!(
            items + tokens(&answer["overhead"]),
            tokens(&answer["total"])
        );
    }
    let table = sandbox.run(&["count", &example("agent-session.json"), "--model", "gpt-4o"]);
    assert!(!table.ok().contains("cl100k"));
    let total = answer["total"]["o200k_base"].to_string();
    let last = table.out.lines().last().expect("a total");
    assert!(last.replace(',', "").ends_with(&total), "{last}");
}

#[test]
fn a_text_is_counted_as_a_whole() {
    // Two words that are one token each in either encoding.
    let sandbox = Sandbox::with(&[("notes.txt", b"hello world")]);
    let answer = sandbox
        .run(&["count", "notes.txt", "--text", "--json"])
        .json();
    assert_eq!(answer["total"]["o200k_base"], 2);
    assert_eq!(answer["total"]["cl100k_base"], 2);
}

#[test]
fn items_are_counted_by_their_content_not_by_what_they_say() {
    let items = br#"[{"content": "hello world", "tokens": 900, "kind": "Memory"}]"#;
    let ran =
        Sandbox::new().run_with_input(&["count", "-", "--encoding", "o200k", "--json"], items);
    let answer = ran.json();
    assert_eq!(answer["kinds"], json!({ "Memory": { "o200k_base": 2 } }));
}

#[test]
fn items_in_a_request_are_fitted_by_its_own_budget_and_policy() {
    let sandbox = Sandbox::new();
    let request = example("request.json");
    let own = sandbox.run(&["fit", &request]);
    own.ok();
    assert!(
        own.err
            .contains("of 12 items, 133 of 336 tokens (budget 180: target 200 less reserve 20)\n"),
        "{}",
        own.err
    );
    let other = sandbox.run(&[
        "fit", &request, "--budget", "100", "--policy", "rag", "--json",
    ]);
    assert_eq!(other.json()["budget"], 80);
    assert_eq!(other.json()["counter"], serde_json::Value::Null);
}

#[test]
fn tokens_of_an_unknown_model_are_estimated() {
    let sandbox = Sandbox::with(&[
        (
            "named.json",
            br#"{"model": "house-model-7b", "messages": [{"role": "user", "content": "hi"}]}"#,
        ),
        ("plain.json", br#"[{"role": "user", "content": "hi"}]"#),
    ]);
    for args in [
        &["fit", "named.json", "--budget", "2k"][..],
        &[
            "fit",
            "plain.json",
            "--budget",
            "2k",
            "--model",
            "house-model-7b",
        ],
    ] {
        let ran = sandbox.run(args);
        ran.ok();
        assert!(ran.err.contains("estimated by o200k_base"), "{}", ran.err);
        assert!(
            ran.err
                .contains("warning: unknown model \"house-model-7b\""),
            "{}",
            ran.err
        );
        let answer = sandbox.run(&[args, &["--json"]].concat()).json();
        assert_eq!(answer["estimated"], true);
    }
    let args = ["explain", "named.json", "--budget", "2k", "--margin", "10"];
    let explained = sandbox.run(&args);
    let head: Vec<&str> = explained.ok().lines().collect();
    assert!(head[0].ends_with("(budget 2,000: margin 10 %)"), "{head:?}");
    assert_eq!(head[2], "  openai, estimated by o200k_base, policy agent");
    let exact = sandbox.run(&[
        "fit",
        "named.json",
        "--budget",
        "2k",
        "--encoding",
        "cl100k",
    ]);
    assert!(
        exact.err.contains("counted by cl100k_base"),
        "{}",
        exact.err
    );
    assert!(!exact.err.contains("note"), "{}", exact.err);
}

#[test]
fn a_preset_for_items_warns_on_a_chat() {
    let sandbox = Sandbox::new();
    let session = example("agent-session.json");
    let fit = |policy: &'static str, more: &[&'static str]| {
        let args = ["fit", &session, "--budget", "2k", "--policy", policy];
        let ran = sandbox.run(&[&args, more].concat());
        ran.ok();
        ran.err
    };
    let warning = "warning: the preset rag is for items: it may drop the task";
    assert!(fit("rag", &[]).contains(warning));
    assert!(fit("rag", &["--state", "state.json"]).contains(warning));
    for preset in ["agent", "single", "tool-use", "newest"] {
        let err = fit(preset, &[]);
        assert!(!err.contains("is for items"), "{err}");
    }
}

#[test]
fn a_chat_that_fits_is_the_same_to_the_last_byte_and_its_count_an_estimate() {
    let chat = r#"{"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}"#;
    let sandbox = Sandbox::with(&[("chat.json", chat.as_bytes())]);
    let ran = sandbox.run(&["fit", "chat.json", "--budget", "1k"]);
    assert_eq!(ran.ok(), chat);
    assert!(ran.err.contains("estimated by o200k_base"), "{}", ran.err);
}

/// Returns the number after a text, without commas.
fn number_after(line: &str, text: &str) -> Option<i64> {
    let (_, rest) = line.split_once(text)?;
    let digits = rest.chars().take_while(|c| c.is_ascii_digit() || *c == ',');
    digits
        .filter(|c| *c != ',')
        .collect::<String>()
        .parse()
        .ok()
}

#[test]
fn what_a_reason_says_is_left_is_what_the_headline_leaves() {
    let sandbox = Sandbox::new();
    let chat = example("agent-session.json");
    let mut seen = 0;
    for budget in (1_200_i64..1_400).step_by(9) {
        let run = |args: &[&str]| {
            let budget = budget.to_string();
            let options = ["--budget", &budget, "--policy", "single"];
            let args = [&["explain", &chat][..], &options, args].concat();
            sandbox.run_in_columns(&args, Some(200)).ok().to_owned()
        };
        let table = run(&[]);
        let used = number_after(&table, "messages, ").expect("the tokens of the window");
        let Some(row) = table.lines().find(|row| row.contains("needs ")) else {
            continue;
        };
        seen += 1;
        let needed = number_after(row, "needs ").expect("the tokens needed");
        let left = row.split_once(" left").expect("the tokens left").0;
        let left = left
            .rsplit([' ', ','])
            .next()
            .and_then(|it| it.parse().ok());
        assert_eq!(left, Some(budget - used), "{row}");
        // With as many tokens more as are missing, the message is in.
        let index = row.split_whitespace().nth(1).expect("a position");
        let one = run(&["--item", index]);
        let included = number_after(&one, "at a budget of ");
        assert_eq!(included, Some(used + needed), "{row}\n{one}");
    }
    assert!(seen > 10);
}

#[test]
fn a_chat_that_fits_has_no_cut() {
    let sandbox = Sandbox::new();
    let chat = example("agent-session.json");
    for (budget, is_cut) in [("100k", false), ("3000", false), ("1300", true)] {
        let options = ["--budget", budget, "--policy", "single"];
        let table = sandbox.run(&[&["explain", &chat][..], &options].concat());
        assert_eq!(
            table.ok().contains("newer than the cut"),
            is_cut,
            "{budget}"
        );
        assert_eq!(table.out.contains("  fits  "), !is_cut, "{budget}");
    }
}

#[test]
fn the_page_has_the_reasons_of_explain() {
    let sandbox = Sandbox::new();
    let chat = example("agent-session.json");
    let options = ["--policy", "single", "--html", "why.html"];
    let args = [&["explain", &chat, "--budget", "1400"][..], &options].concat();
    sandbox.run(&args).ok();
    let page = sandbox.read("why.html");
    for reason in [
        "older than the cut",
        "group of 3 too large: needs 119 with marker, 59 left",
    ] {
        assert!(
            page.contains(&format!("\"reason\":\"{reason}\"")),
            "{reason}"
        );
    }
}

#[test]
fn the_models_have_their_input_limits() {
    let sandbox = Sandbox::new();
    // developers.openai.com/api/docs/models/gpt-5: 400,000 context window, 128,000 max output tokens.
    let table = sandbox.run(&["models", "gpt-5"]);
    assert!(table.ok().contains("400,000  272,000"), "{}", table.out);
    let limit =
        |model: &str| sandbox.run(&["models", model, "--json"]).json()[0]["input_limit"].clone();
    assert_eq!(limit("gpt-5"), 272_000);
    assert_eq!(limit("gpt-4o"), Value::Null);
    assert!(!sandbox.run(&["models", "gpt-4o"]).ok().contains("input"));
}

#[test]
fn the_help_states_the_default_reserve() {
    let help = Sandbox::new().run(&["fit", "--help"]);
    let default = cupel_chat::DEFAULT_RESERVE.to_string();
    let words: Vec<&str> = help.ok().split_whitespace().collect();
    assert!(
        words.contains(&"4,096") && default == "4096",
        "{}",
        help.out
    );
}
