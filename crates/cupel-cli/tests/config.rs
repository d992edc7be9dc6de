//! `cupel.toml`: how it is found, what comes before what, what is said about mistakes; `cupel init` and
//! `cupel config`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox, example};

/// A chat of 6 messages that names a model.
const CHAT: &str = r#"{"model": "gpt-4o", "messages": [
  {"role": "system", "content": "Be brief."},
  {"role": "user", "content": "What is the capital of France, and of Spain, and of Italy?"},
  {"role": "assistant", "content": "Paris, Madrid and Rome are the capitals of these countries."},
  {"role": "user", "content": "And which of them is the largest by the number of inhabitants?"},
  {"role": "assistant", "content": "Madrid has the most inhabitants of these three cities."},
  {"role": "user", "content": "Thanks!"}
]}"#;

/// The same chat without its model.
fn without_model() -> String {
    CHAT.replacen(r#""model": "gpt-4o", "#, "", 1)
}

/// The same chat with a limit for the answer.
fn with_answer(tokens: u32) -> String {
    CHAT.replacen('{', &format!("{{\"max_tokens\": {tokens}, "), 1)
}

const ITEMS: &str = r#"[
  {"content": "one", "tokens": 40, "kind": "Memory", "future_relevance_hint": 0.2},
  {"content": "two", "tokens": 30, "kind": "Document", "future_relevance_hint": 0.9},
  {"content": "three", "tokens": 20, "kind": "Document", "future_relevance_hint": 0.5}
]"#;

/// A request that states its budget and its policy.
fn request() -> String {
    format!(
        r#"{{"items": {ITEMS}, "budget": {{"max_tokens": 60, "output_reserve": 5}}, "policy": {{"name": "own", "scorer": {{"type": "reflexive"}}}}}}"#
    )
}

/// A policy that fills a chat from the newest message on and shortens nothing.
const POLICY: &str = "name = \"mine\"\nextends = \"newest\"\n";

/// A directory with inputs and a configuration.
fn sandbox(config: &str) -> Sandbox {
    let (without, request) = (without_model(), request());
    Sandbox::with(&[
        ("cupel.toml", config.as_bytes()),
        ("chat.json", CHAT.as_bytes()),
        ("unnamed.json", without.as_bytes()),
        ("items.json", ITEMS.as_bytes()),
        ("request.json", request.as_bytes()),
        ("mine.toml", POLICY.as_bytes()),
    ])
}

fn run(sandbox: &Sandbox, args: &[&str]) -> Ran {
    sandbox.run_in("", &[], args)
}

/// What `cupel explain --json` says about an input: its `policy` and its `budget`.
#[track_caller]
fn explained(sandbox: &Sandbox, args: &[&str]) -> Value {
    run(sandbox, &[&["explain", "--json"], args].concat()).json()
}

#[track_caller]
fn fitted(sandbox: &Sandbox, args: &[&str]) -> Value {
    run(sandbox, &[&["fit", "--json"], args].concat()).json()
}

const LIMITS: &str =
    "budget = 1000\ntarget = \"800\"\nreserve = 50\nmargin = 10\nslot = { Memory = 7 }\n";

#[test]
fn the_file_comes_before_the_defaults() {
    let limits = sandbox(LIMITS);
    for input in ["chat.json", "items.json"] {
        let budget = json!({
            "max_tokens": 1000, "target_tokens": 800, "output_reserve": 50,
            "estimation_safety_margin_percent": 10.0, "reserved_slots": { "Memory": 7 },
        });
        assert_eq!(explained(&limits, &[input])["budget"], budget, "{input}");
    }
    // Without the file, the window of the model less the default reserve; items have no default budget.
    let default = explained(&limits, &["chat.json", "--no-config"]);
    assert_eq!(default["budget"]["max_tokens"], 128_000);
    assert_eq!(default["budget"]["output_reserve"], 4_096);
    let ran = run(&limits, &["explain", "items.json", "--no-config"]);
    assert_eq!(ran.exit, 2, "{}", ran.err);

    let share = sandbox("budget = \"50%\"");
    assert_eq!(
        explained(&share, &["chat.json"])["budget"]["max_tokens"],
        64_000
    );
    let policy = sandbox("policy = \"newest\"\nencoding = \"cl100k\"\nfactor = 2");
    assert_eq!(explained(&policy, &["chat.json"])["policy"], "newest");
    assert_eq!(
        fitted(&policy, &["chat.json"])["counter"],
        "cl100k_base x 2"
    );
    assert_eq!(
        fitted(&policy, &["chat.json", "--no-config"])["counter"],
        "o200k_base"
    );
    let model = sandbox("model = \"gpt-4\"");
    let unnamed = fitted(&model, &["unnamed.json"]);
    assert_eq!(
        (&unnamed["counter"], &unnamed["budget"]),
        (&json!("cl100k_base"), &json!(6_144))
    );
}

#[test]
fn an_option_comes_before_the_file() {
    let sandbox = sandbox(&format!(
        "{LIMITS}model = \"gpt-4\"\npolicy = \"newest\"\nencoding = \"cl100k\"\nfactor = 2\n"
    ));
    let budget = |args: &[&str]| explained(&sandbox, args)["budget"].clone();
    // A budget takes the place of the limits that belong to the other one; the margin is about counts.
    let other = json!({
        "max_tokens": 300, "target_tokens": 300, "output_reserve": 0,
        "estimation_safety_margin_percent": 10.0, "reserved_slots": {},
    });
    assert_eq!(budget(&["chat.json", "--budget", "300"]), other);
    assert_eq!(
        budget(&["chat.json", "--target", "700"])["target_tokens"],
        700
    );
    assert_eq!(
        budget(&["chat.json", "--reserve", "0"])["output_reserve"],
        0
    );
    assert_eq!(
        budget(&["chat.json", "--margin", "0"])["estimation_safety_margin_percent"],
        0.0
    );
    let slots = budget(&["items.json", "--slot", "Document=3", "--slot", "Memory=9"]);
    assert_eq!(
        slots["reserved_slots"],
        json!({ "Document": 3, "Memory": 9 })
    );
    let answer = explained(&sandbox, &["chat.json", "--policy", "agent"]);
    assert_eq!(answer["policy"], "agent");
    let counter = |args: &[&str]| fitted(&sandbox, args)["counter"].clone();
    assert_eq!(counter(&["unnamed.json"]), "cl100k_base x 2");
    assert_eq!(
        counter(&["unnamed.json", "--encoding", "o200k"]),
        "o200k_base x 2"
    );
    assert_eq!(
        counter(&["unnamed.json", "--model", "gpt-4o"]),
        "o200k_base x 2"
    );
    assert_eq!(
        counter(&["unnamed.json", "--factor", "1.5"]),
        "cl100k_base x 1.5"
    );
}

#[test]
fn the_request_comes_before_the_file() {
    let config = format!("{LIMITS}policy = \"rag\"\n");
    let sandbox = sandbox(&config);
    let own = explained(&sandbox, &["request.json"]);
    assert_eq!(own["policy"], "own");
    let budget = json!({
        "max_tokens": 60, "target_tokens": 60, "output_reserve": 5,
        "estimation_safety_margin_percent": 0.0, "reserved_slots": {},
    });
    assert_eq!(own["budget"], budget);
    // And an option before the request.
    let other = explained(
        &sandbox,
        &["request.json", "--budget", "50", "--policy", "chat"],
    );
    assert_eq!(
        (&other["policy"], &other["budget"]["max_tokens"]),
        (&json!("chat"), &json!(50))
    );
    assert_eq!(other["budget"]["output_reserve"], 5);
    // What a request leaves out is the file's.
    let items = format!("{{\"items\": {ITEMS}}}");
    std::fs::write(sandbox.path("bare.json"), items).expect("the request");
    let bare = explained(&sandbox, &["bare.json"]);
    assert_eq!(
        (&bare["policy"], &bare["budget"]["max_tokens"]),
        (&json!("rag"), &json!(1000))
    );
}

#[test]
fn the_model_of_a_chat_comes_before_the_model_of_the_file() {
    let sandbox = sandbox("model = \"gpt-4\"\n");
    let named = fitted(&sandbox, &["chat.json"]);
    assert_eq!(
        (&named["counter"], &named["budget"]),
        (&json!("o200k_base"), &json!(123_904))
    );
    let option = fitted(&sandbox, &["chat.json", "--model", "gpt-4"]);
    assert_eq!(
        (&option["counter"], &option["budget"]),
        (&json!("cl100k_base"), &json!(6_144))
    );
}

#[test]
fn a_request_that_allows_its_answer_more_reserves_more_than_the_file() {
    let sandbox = sandbox("reserve = \"2k\"\n");
    let (more, less) = (with_answer(3_000), with_answer(1_000));
    for (name, text) in [("more.json", &more), ("less.json", &less)] {
        std::fs::write(sandbox.path(name), text).expect("the chat");
    }
    let reserve = |args: &[&str]| explained(&sandbox, args)["budget"]["output_reserve"].clone();
    assert_eq!(reserve(&["chat.json"]), 2_000);
    assert_eq!(reserve(&["more.json"]), 3_000);
    assert_eq!(reserve(&["less.json"]), 2_000);
    assert_eq!(reserve(&["more.json", "--reserve", "500"]), 500);
    assert_eq!(reserve(&["more.json", "--no-config"]), 4_096);
    let said = |input: &str| run(&sandbox, &["fit", input]).err;
    assert!(
        said("less.json").contains("less the reserve of cupel.toml (2k)"),
        "{}",
        said("less.json")
    );
    assert!(
        said("more.json").contains("less max_tokens (3,000)"),
        "{}",
        said("more.json")
    );
    // With a budget of the file, too.
    std::fs::write(
        sandbox.path("cupel.toml"),
        "budget = \"10k\"\nreserve = \"2k\"\n",
    )
    .expect("the file");
    assert_eq!(reserve(&["more.json"]), 3_000);
    assert_eq!(reserve(&["less.json"]), 2_000);
}

/// A chat with a long result of a tool.
fn with_result() -> String {
    let result = "The build of the second module takes a while. ".repeat(60);
    let call =
        json!({"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}});
    json!({"model": "gpt-4o", "messages": [
        {"role": "user", "content": "What takes so long?"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": result},
        {"role": "user", "content": "And now?"},
    ]})
    .to_string()
}

#[test]
fn the_settings_for_chats_come_before_those_of_a_default_policy_only() {
    let sandbox = sandbox("[chat]\nmax_result = 100\nreplay = false\n");
    std::fs::write(sandbox.path("long.json"), with_result()).expect("the chat");
    let own = "extends = \"agent\"\n[chat]\nmax_result = 200\n";
    std::fs::write(sandbox.path("own.toml"), own).expect("the policy");
    let result = |args: &[&str]| {
        let answer = fitted(&sandbox, &[&["long.json"], args].concat());
        let level = answer["shortened"][0]["level"].as_i64();
        level.map_or(0, |level| level)
    };
    assert_eq!(result(&["--no-config"]), 0);
    assert_eq!(result(&[]), 100);
    assert_eq!(result(&["--max-result", "150"]), 150);
    // A policy that is named keeps what it states, and gets what it leaves open.
    assert_eq!(result(&["--policy", "own.toml"]), 200);
    assert_eq!(result(&["--policy", "single"]), 100);
    // The policy of the file is that of the file.
    let policy = "policy = \"own.toml\"\n[chat]\nmax_result = 100\n";
    std::fs::write(sandbox.path("cupel.toml"), policy).expect("the file");
    assert_eq!(result(&[]), 100);
    // Without a ladder, a policy that is named does not fail for a setting of the file.
    let marker = "[chat]\nmarker = \"...\"\n";
    std::fs::write(sandbox.path("cupel.toml"), marker).expect("the file");
    run(&sandbox, &["fit", "long.json", "--policy", "rag"]).ok();
    let ran = run(
        &sandbox,
        &["fit", "long.json", "--policy", "rag", "--marker", "..."],
    );
    assert_eq!(ran.exit, 2, "{}", ran.err);
}

#[test]
fn items_ignore_the_settings_for_chats() {
    let sandbox = sandbox("budget = 100\n[chat]\nmax_result = 100\n");
    let ran = run(&sandbox, &["select", "items.json"]);
    ran.ok();
    assert!(
        ran.err.contains("config: cupel.toml (budget)\n"),
        "{}",
        ran.err
    );
    let ran = run(&sandbox, &["fit", "items.json", "--max-result", "100"]);
    assert_eq!(ran.exit, 2, "{}", ran.err);
}

#[test]
fn a_preset_applies_to_what_it_is_for_and_a_document_to_everything() {
    let policy = |sandbox: &Sandbox, input: &str| explained(sandbox, &[input])["policy"].clone();
    for (named, chat, items) in [
        ("single", "single", "chat"),
        ("rag", "agent", "rag"),
        ("mine.toml", "mine.toml", "mine.toml"),
    ] {
        let sandbox = sandbox(&format!("budget = 100\npolicy = \"{named}\"\n"));
        assert_eq!(policy(&sandbox, "chat.json"), chat, "{named}");
        assert_eq!(policy(&sandbox, "items.json"), items, "{named}");
    }
}

#[test]
fn a_policy_may_be_a_table_or_a_path_from_the_directory_of_the_file() {
    let table = sandbox("budget = 100\n[policy]\nextends = \"newest\"\n");
    assert_eq!(explained(&table, &["chat.json"])["policy"], "of cupel.toml");
    let sandbox = Sandbox::with(&[("chat.json", CHAT.as_bytes())]);
    std::fs::create_dir_all(sandbox.path("policies")).expect("a directory");
    std::fs::create_dir_all(sandbox.path("deep/er")).expect("a directory");
    std::fs::write(sandbox.path("policies/mine.toml"), POLICY).expect("the policy");
    std::fs::write(
        sandbox.path("cupel.toml"),
        "policy = \"policies/mine.toml\"",
    )
    .expect("the file");
    let ran = sandbox.run_in("deep/er", &[], &["fit", "./../../chat.json"]);
    ran.ok();
    assert!(ran.err.contains("policy policies/mine.toml"), "{}", ran.err);
    assert!(
        ran.err.contains("config: ../../cupel.toml (policy)"),
        "{}",
        ran.err
    );
}

#[test]
fn the_nearest_file_is_read_and_no_other() {
    let sandbox = sandbox("budget = 1000\nmargin = 1\n");
    std::fs::create_dir_all(sandbox.path("a/b")).expect("a directory");
    std::fs::write(sandbox.path("a/cupel.toml"), "budget = 2000\n").expect("the file");
    // A directory of that name is no file.
    std::fs::create_dir_all(sandbox.path("a/b/cupel.toml")).expect("a directory");
    let input = sandbox.path("chat.json").display().to_string();
    let budget = |directory: &str, env: &[(&str, &str)], args: &[&str]| {
        let args = [&["explain", "--json", &input], args].concat();
        let answer = sandbox.run_in(directory, env, &args).json();
        answer["budget"]["max_tokens"].as_i64().expect("a number")
    };
    assert_eq!(budget("", &[], &[]), 1_000);
    assert_eq!(budget("a", &[], &[]), 2_000);
    assert_eq!(budget("a/b", &[], &[]), 2_000);
    // The variable, then the options.
    let variable = [("CUPEL_CONFIG", "../cupel.toml")];
    assert_eq!(budget("a", &variable, &[]), 1_000);
    assert_eq!(budget("a", &variable, &["--config", "cupel.toml"]), 2_000);
    assert_eq!(budget("a", &variable, &["--no-config"]), 128_000);
    assert_eq!(budget("a", &[("CUPEL_CONFIG", "")], &[]), 128_000);
    assert_eq!(
        budget("a", &[("CUPEL_CONFIG", "")], &["--config", "cupel.toml"]),
        2_000
    );
}

#[test]
fn every_command_that_fits_or_counts_reads_the_file() {
    let sandbox = sandbox("budget = 100\npolicy = \"newest\"\nencoding = \"cl100k\"\n");
    let chats = format!("{0}\n{0}\n", CHAT.replace('\n', " "));
    std::fs::write(sandbox.path("chats.jsonl"), &chats).expect("the chats");
    let line = "config: cupel.toml";
    let commands: [(&[&str], &str); 11] = [
        (&["fit", "chat.json"], " (budget, policy, encoding)\n"),
        (&["fit", "chats.jsonl"], "\n"),
        (
            &["fit", "chat.json", "--state", "s"],
            " (budget, policy, encoding)\n",
        ),
        (&["select", "items.json"], " (budget, encoding)\n"),
        (&["explain", "chat.json"], " (budget, policy, encoding)\n"),
        (&["batch", "chats.jsonl"], "\n"),
        (&["sweep", "chat.json"], " (policy, encoding)\n"),
        (&["min-budget", "chat.json"], " (policy, encoding)\n"),
        (
            &["marginal", "chat.json", "--slack", "10"],
            " (budget, policy, encoding)\n",
        ),
        (
            &["compare", "chat.json", "--policy", "agent"],
            " (budget, policy, encoding)\n",
        ),
        (&["count", "chat.json"], " (encoding)\n"),
    ];
    for (command, used) in commands {
        let ran = run(&sandbox, command);
        ran.ok();
        let printed = format!("{}{}", ran.out, ran.err);
        assert!(
            printed.contains(&format!("{line}{used}")),
            "{command:?}: {printed}"
        );
        let without = run(&sandbox, &[command, &["--no-config", "--quiet"]].concat());
        assert!(
            !format!("{}{}", without.out, without.err).contains(line),
            "{command:?}"
        );
    }
    let counts = run(&sandbox, &["count", "chat.json", "--json"]).json();
    assert_eq!(
        counts["total"].as_object().expect("counts").len(),
        1,
        "{counts}"
    );
    let total = counts["total"]["cl100k_base"].as_i64();
    let fit = fitted(&sandbox, &["chat.json"]);
    assert_eq!(fit["tokens_before"].as_i64(), total);
    let found = run(&sandbox, &["search", "chat.json", "Madrid", "--json"]).json();
    let item = counts["items"].as_array().expect("items").iter();
    let index = found["passages"][0]["index"].clone();
    let counted = item
        .filter(|it| it["index"] == index)
        .map(|it| it["tokens"]["cl100k_base"].clone());
    assert_eq!(
        counted.collect::<Vec<_>>(),
        [found["passages"][0]["tokens"].clone()]
    );
}

#[test]
fn one_policy_is_compared_with_that_of_the_file() {
    let sandbox = sandbox("budget = 100\npolicy = \"newest\"\n");
    let answer = run(
        &sandbox,
        &["compare", "chat.json", "--policy", "agent", "--json"],
    )
    .json();
    let names: Vec<&Value> = answer["variants"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| &it["policy"])
        .collect();
    assert_eq!(names, ["newest", "agent"]);
    let args = [
        "compare",
        "chat.json",
        "--policy",
        "agent",
        "--no-config",
        "--budget",
        "100",
    ];
    assert_eq!(run(&sandbox, &args).exit, 2);
}

#[test]
fn questions_over_budgets_leave_out_the_limits_and_replay_as_fit_does() {
    let sandbox = sandbox("budget = 50\nreserve = 20\npolicy = \"agent\"\n");
    let ran = run(&sandbox, &["sweep", "chat.json"]);
    ran.ok();
    assert!(ran.err.contains("not monotone"), "{}", ran.err);
    assert!(
        ran.err.contains("config: cupel.toml (policy)"),
        "{}",
        ran.err
    );
    // The policy of the file is the default one, and its limits play no part.
    let with = run(&sandbox, &["min-budget", "chat.json", "--json"]);
    let without = run(
        &sandbox,
        &["min-budget", "chat.json", "--json", "--no-config"],
    );
    assert_eq!(with.ok(), without.ok());
    let swept = run(&sandbox, &["sweep", "chat.json", "--policy", "agent"]);
    assert_eq!(swept.exit, 0);
}

#[test]
fn a_setting_that_one_input_has_no_use_for_is_no_warning() {
    let text = "[chat]\ncache_breakpoints = true\n[chat.tool_results]\nother_tool = \"keep\"\n";
    let sandbox = sandbox(text);
    std::fs::write(sandbox.path("long.json"), with_result()).expect("the chat");
    let ran = run(&sandbox, &["fit", "long.json"]);
    ran.ok();
    assert!(!ran.err.contains("warning"), "{}", ran.err);
    let args = [
        "fit",
        "long.json",
        "--no-config",
        "--cache-breakpoints",
        "--tool-results",
        "other_tool=keep",
    ];
    assert_eq!(run(&sandbox, &args).err.matches("warning").count(), 2);
}

#[test]
fn a_summary_takes_the_place_of_a_marker_of_the_file() {
    let sandbox = sandbox("budget = 60\npolicy = \"single\"\n[chat]\nmarker = \"[cut]\"\n");
    let text = |args: &[&str]| {
        let args = [&["fit", "chat.json"], args].concat();
        run(&sandbox, &args).ok().to_owned()
    };
    assert!(text(&[]).contains("[cut]"));
    let summary = text(&[
        "--summarize",
        "echo about capitals",
        "--summary-tokens",
        "5",
    ]);
    assert!(
        summary.contains("about capitals") && !summary.contains("[cut]"),
        "{summary}"
    );
}

#[test]
fn an_empty_file_changes_nothing() {
    for text in ["", "# nothing\n", "\n\n"] {
        let sandbox = sandbox(text);
        let (with, without) = (
            run(&sandbox, &["fit", "chat.json"]),
            run(&sandbox, &["fit", "chat.json", "--no-config"]),
        );
        assert_eq!((with.ok(), &with.err), (without.ok(), &without.err));
    }
}

/// Mistakes, one per configuration: the snapshot has what is said about each.
const MISTAKES: &[(&str, &str)] = &[
    ("an unknown key", "buget = \"8k\"\n"),
    ("a key of a policy", "scorer = \"recency\"\n"),
    ("no TOML", "budget = \n"),
    ("a duplicate key", "budget = 1\nbudget = 2\n"),
    ("an amount in no notation", "budget = \"8kk\"\n"),
    ("an amount of another type", "budget = true\n"),
    ("no tokens", "budget = 0\n"),
    ("a fraction of a token", "reserve = 1.5\n"),
    (
        "a target above the budget",
        "budget = \"1k\"\ntarget = \"2k\"\n",
    ),
    ("a margin out of range", "margin = 101\n"),
    ("a factor out of range", "factor = 1000\n"),
    ("an unknown encoding", "encoding = \"o200\"\n"),
    ("an unknown preset", "policy = \"agnet\"\n"),
    (
        "a policy that is not there",
        "policy = \"policies/mine.toml\"\n",
    ),
    ("a policy of another type", "policy = 3\n"),
    (
        "a mistake in a table of a policy",
        "[policy]\nscorer = { type = \"recent\" }\n",
    ),
    (
        "a mistake in a policy document",
        "policy = \"broken.toml\"\n",
    ),
    (
        "an unknown setting for chats",
        "[chat]\nmax_results = 100\n",
    ),
    ("a value out of range", "[chat]\nmax_result = 0\n"),
    ("an unknown value", "[chat]\nshorten = \"odl\"\n"),
    (
        "a setting that the policy does not follow",
        "policy = \"flat.toml\"\n[chat]\nmarker = \"...\"\n",
    ),
    ("a kind twice", "slot = { Memory = 1, memory = 2 }\n"),
    ("a removed setting", "[chat]\nstep = 100\n"),
];

#[test]
fn mistakes() {
    let mut texts = String::new();
    for (name, text) in MISTAKES {
        let sandbox = sandbox(text);
        let broken = "scorer = { type = \"recency\" }\nslicer = { type = \"greedi\" }\n";
        std::fs::write(sandbox.path("broken.toml"), broken).expect("the policy");
        std::fs::write(
            sandbox.path("flat.toml"),
            "scorer = { type = \"recency\" }\n",
        )
        .expect("the policy");
        let ran = run(&sandbox, &["fit", "chat.json"]);
        assert_eq!((ran.exit, &*ran.out), (2, ""), "{name}: {}", ran.err);
        let _ = write!(texts, "{name}\n{}\n", ran.err);
        // The same for programs, with the place and the code.
        let json = run(&sandbox, &["fit", "chat.json", "--json"]).err;
        let error: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(error["error"]["code"], "InvalidConfig", "{name}: {json}");
        assert!(
            error["error"]["line"].is_u64() && error["error"]["column"].is_u64(),
            "{name}: {json}"
        );
        let file = error["error"]["file"].as_str().expect("a file");
        assert!(
            ["cupel.toml", "broken.toml"].contains(&file),
            "{name}: {json}"
        );
        // And in the check.
        let check = run(&sandbox, &["config", "check"]);
        assert_eq!((check.exit, check.err), (2, ran.err), "{name}");
    }
    insta::assert_snapshot!(texts);
}

#[test]
fn a_value_of_the_file_is_blamed_by_its_key() {
    let sandbox = sandbox("budget = 1000\nreserve = \"90%\"\n");
    let ran = run(&sandbox, &["fit", "chat.json"]);
    assert_eq!(ran.exit, 2);
    assert!(
        ran.err
            .starts_with("error: `reserve = 115200` in cupel.toml exceeds the budget of 1,000\n"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains(" --> cupel.toml:2:11 (reserve)\n"),
        "{}",
        ran.err
    );
    assert!(
        ran.err
            .contains("help: lower `reserve` in cupel.toml or raise `budget` in cupel.toml\n"),
        "{}",
        ran.err
    );
    let ran = run(&sandbox, &["fit", "chat.json", "--target", "2k"]);
    assert!(
        ran.err
            .contains("help: lower --target or raise `budget` in cupel.toml\n"),
        "{}",
        ran.err
    );
    let ran = run(&sandbox, &["fit", "unnamed.json"]);
    assert!(
        ran.err
            .contains("`reserve = \"90%\"` in cupel.toml: a percentage needs a model"),
        "{}",
        ran.err
    );
}

#[test]
fn a_file_that_is_named_has_to_be_there() {
    let sandbox = sandbox("");
    let ran = run(&sandbox, &["fit", "chat.json", "--config", "other.toml"]);
    assert_eq!(ran.exit, 2);
    assert!(
        ran.err.starts_with("error: cannot read other.toml: "),
        "{}",
        ran.err
    );
    let ran = sandbox.run_in("", &[("CUPEL_CONFIG", "other.toml")], &["fit", "chat.json"]);
    assert!(ran.err.contains("CUPEL_CONFIG"), "{}", ran.err);
    // Other formats by their extension.
    std::fs::write(sandbox.path("c.json"), "{\"budget\": \"70\"}").expect("the file");
    std::fs::write(sandbox.path("c.yaml"), "budget: 80\n").expect("the file");
    for (file, tokens) in [("c.json", 70), ("c.yaml", 80)] {
        let answer = explained(&sandbox, &["chat.json", "--config", file]);
        assert_eq!(answer["budget"]["max_tokens"], tokens);
    }
}

#[test]
fn the_check_reports_every_mistake() {
    let sandbox =
        sandbox("buget = 1\nencoding = \"o200\"\n\n[chat]\nshorten = \"odl\"\nmax_result = 0\n");
    let ran = run(&sandbox, &["config", "check", "--json"]);
    assert_eq!(ran.exit, 2);
    let checked: Value = serde_json::from_str(&ran.out).expect("JSON");
    let errors = checked[0]["errors"].as_array().expect("errors").iter();
    let places: Vec<(u64, &str)> = errors
        .map(|error| {
            (
                error["line"].as_u64().expect("a line"),
                error["path"].as_str().expect("a path"),
            )
        })
        .collect();
    assert_eq!(
        places,
        [
            (1, "buget"),
            (2, "encoding"),
            (5, "chat.shorten"),
            (6, "chat.max_result")
        ]
    );
    let fine = self::sandbox("budget = \"8k\"\n");
    assert_eq!(run(&fine, &["config", "check"]).ok(), "cupel.toml: ok\n");
    let none = fine.run_in("", &[("CUPEL_CONFIG", "")], &["config", "check"]);
    assert_eq!(none.exit, 2);
    assert!(none.err.contains("cupel init"), "{}", none.err);
}

#[test]
fn show_names_the_origin_of_every_value() {
    let sandbox =
        sandbox("budget = \"8k\"\nreserve = 100\npolicy = \"newest\"\n\n[chat]\nstrict = true\n");
    let values = |args: &[&str]| {
        let answer = run(&sandbox, &[&["config", "show", "--json"], args].concat()).json();
        let values = answer["values"].as_array().expect("values").clone();
        let find = move |key: &str| {
            let value = values.iter().find(|it| it["key"] == key).expect("the key");
            (
                value["value"].clone(),
                value["origin"].as_str().expect("an origin").to_owned(),
            )
        };
        (answer["file"].clone(), find)
    };
    let (file, value) = values(&[]);
    assert_eq!(file, "cupel.toml");
    assert_eq!(value("budget"), (json!("8k"), "cupel.toml:1".to_owned()));
    assert_eq!(
        value("policy"),
        (json!("newest"), "cupel.toml:3".to_owned())
    );
    assert_eq!(
        value("chat.strict"),
        (json!("true"), "cupel.toml:6".to_owned())
    );
    assert_eq!(value("model"), (Value::Null, "default".to_owned()));
    let (_, value) = values(&["--budget", "4k", "--strict"]);
    assert_eq!(value("budget"), (json!("4k"), "--budget".to_owned()));
    // A budget takes the place of the reserve.
    assert_eq!(value("reserve"), (Value::Null, "default".to_owned()));
    assert_eq!(value("chat.strict"), (json!("true"), "--strict".to_owned()));
    let (file, value) = values(&["--no-config"]);
    assert_eq!(
        (file, value("budget").1),
        (Value::Null, "default".to_owned())
    );
    let text = run(&sandbox, &["config", "show"]);
    insta::assert_snapshot!(text.ok());
}

#[test]
fn the_schema_accepts_what_the_reader_accepts() {
    let sandbox = sandbox("");
    let schema: Value = run(&sandbox, &["config", "schema"]).json();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let is_valid = |text: &str| {
        let document: toml::Table = text.parse().expect("TOML");
        validator.is_valid(&serde_json::to_value(document).expect("JSON"))
    };
    let full = format!(
        "\"$schema\" = \"cupel.schema.json\"\n{LIMITS}model = \"m\"\npolicy = \"agent\"\nencoding = \"o200k\"\nfactor = 1.5\n[chat]\nstrict = true\n"
    );
    for text in [
        "",
        &full,
        "budget = \"70%\"\n",
        "[policy]\nextends = \"agent\"\n",
    ] {
        assert!(is_valid(text), "{text}");
    }
    // What depends on other texts, such as the names of presets and encodings, is checked by the reader only.
    let by_reader = [
        "no TOML",
        "a duplicate key",
        "a target above the budget",
        "a factor out of range",
        "an unknown encoding",
        "an unknown preset",
        "a policy that is not there",
        "a mistake in a policy document",
        "a setting that the policy does not follow",
        "a kind twice",
    ];
    for (name, text) in MISTAKES
        .iter()
        .filter(|(name, _)| !by_reader.contains(name))
    {
        assert!(!is_valid(text), "{name}");
    }
}

#[test]
fn init_writes_a_file_that_says_everything_and_sets_nothing() {
    let sandbox = Sandbox::with(&[("chat.json", CHAT.as_bytes())]);
    let ran = run(&sandbox, &["init"]);
    assert_eq!(
        (ran.ok(), ran.err.lines().next()),
        ("", Some("wrote cupel.toml"))
    );
    let text = sandbox.read("cupel.toml");
    assert!(
        text.lines().all(|line| line.len() <= 80 && line.is_ascii()),
        "{text}"
    );
    let is_comment = |line: &str| line.is_empty() || line.starts_with('#') || line == "[chat]";
    assert!(text.lines().all(is_comment), "{text}");
    run(&sandbox, &["config", "check"]).ok();
    // With every key set, it is valid still, and under the schema.
    let set = |line: &str| match line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')) {
        Some(rest) => rest.to_owned(),
        None => line.to_owned(),
    };
    let all: Vec<String> = text.lines().map(set).collect();
    let all = all.join("\n");
    std::fs::write(sandbox.path("all.toml"), &all).expect("the file");
    assert_eq!(
        run(&sandbox, &["config", "check", "all.toml"]).ok(),
        "all.toml: ok\n"
    );
    let schema: Value = run(&sandbox, &["config", "schema"]).json();
    let document: toml::Table = all.parse().expect("TOML");
    let keys = document.len() - 1 + document["chat"].as_table().expect("a table").len();
    let shown = run(
        &sandbox,
        &["config", "show", "--json", "--config", "all.toml"],
    )
    .json();
    let shown = shown["values"].as_array().expect("values");
    assert_eq!(shown.len(), keys);
    assert!(
        shown.iter().all(|it| it["origin"] != "default"),
        "{shown:#?}"
    );
    let document = serde_json::to_value(document).expect("JSON");
    assert!(jsonschema::is_valid(&schema, &document), "{all}");
}

#[test]
fn init_keeps_the_file_that_is_there() {
    let sandbox = sandbox("budget = 1\n");
    let ran = run(&sandbox, &["init", "--budget", "8k"]);
    assert_eq!(ran.exit, 2);
    assert!(
        ran.err.contains("cupel.toml exists already") && ran.err.contains("--force"),
        "{}",
        ran.err
    );
    assert_eq!(sandbox.read("cupel.toml"), "budget = 1\n");
    let args = [
        "init",
        "--budget",
        "8k",
        "--policy",
        "mine.toml",
        "--model",
        "gpt-4o",
        "--force",
    ];
    run(&sandbox, &args).ok();
    let shown = run(&sandbox, &["config", "show", "--json"]).json();
    let given = shown["values"]
        .as_array()
        .expect("values")
        .iter()
        .filter(|it| !it["value"].is_null());
    let given: Vec<(&Value, &Value)> = given.map(|it| (&it["key"], &it["value"])).collect();
    assert_eq!(
        given,
        [
            (&json!("budget"), &json!("8k")),
            (&json!("model"), &json!("gpt-4o")),
            (&json!("policy"), &json!("mine.toml"))
        ]
    );
    // No temporary file is left.
    let files = std::fs::read_dir(sandbox.path("")).expect("a directory");
    assert!(
        files
            .flatten()
            .all(|it| !it.file_name().to_string_lossy().starts_with(".cupel"))
    );
}

#[test]
fn init_writes_nothing_that_cannot_be_read() {
    let sandbox = Sandbox::new();
    for args in [
        ["--budget", "8kk"],
        ["--policy", "agnet"],
        ["--model", "gpt-4oo"],
    ] {
        let ran = run(&sandbox, &[&["init"], &args[..]].concat());
        assert_eq!(ran.exit, 2, "{args:?}");
        assert!(!sandbox.path("cupel.toml").exists(), "{args:?}");
    }
    let ran = run(&sandbox, &["init", "-o", "no/where/cupel.toml"]);
    assert_eq!(ran.exit, 2, "{}", ran.err);
    std::fs::create_dir_all(sandbox.path("sub")).expect("a directory");
    run(&sandbox, &["init"]).ok();
    let ran = sandbox.run_in("sub", &[], &["init"]);
    ran.ok();
    assert!(
        ran.err.contains("it takes the place of ../cupel.toml here"),
        "{}",
        ran.err
    );
}

#[test]
fn the_example_is_valid() {
    let sandbox = Sandbox::new();
    let file = example("cupel.toml");
    assert_eq!(
        run(&sandbox, &["config", "check", &file]).ok(),
        format!("{file}: ok\n")
    );
}
