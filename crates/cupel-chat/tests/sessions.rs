//! Hand-written sessions in every format, trimmed to budgets.

use cupel::{ContextBudget, ContextKind, Policy};
use cupel_chat::{Chat, Encoding, FitError, Role, Shape, newest_policy};

use crate::characters::Characters;
use crate::valid;

fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::with_target(tokens, tokens).unwrap()
}

/// Returns the policy that keeps the newest messages and drops invalid messages even if the chat fits.
fn strict_policy() -> Policy {
    let mut settings = newest_policy().chat().clone();
    settings.strict = true;
    let policy = newest_policy().to_builder().chat(settings).build();
    policy.unwrap()
}

fn fit(text: &str, tokens: i64) -> Result<Vec<usize>, FitError> {
    let chat = Chat::parse(text, None).unwrap();
    let fitted = chat.fit(&strict_policy(), &budget(tokens), &Characters)?;
    assert!(fitted.tokens_after <= tokens);
    let kept = valid::messages(&fitted.to_json());
    assert_eq!(valid::objection(chat.shape(), &kept), None);
    Ok(fitted.kept)
}

/// Checks the kept messages at a budget.
fn check(text: &str, tokens: i64, kept: &[usize]) {
    assert_eq!(fit(text, tokens).as_deref(), Ok(kept), "{tokens} tokens");
}

fn groups(text: &str) -> Vec<Option<String>> {
    let chat = Chat::parse(text, None).unwrap();
    let items = chat.items(&Characters);
    let group = |item: &cupel::ContextItem| item.metadata().get("cupel:group").cloned();
    items.iter().map(group).collect()
}

/// Parallel calls; results in another order, with a message in between.
const OPENAI: &str = r#"{
  "model": "gpt-4o",
  "messages": [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": "Weather in Rome and Oslo?", "x": 12345678901234567890},
    {"role": "assistant", "content": null, "tool_calls": [
      {"id": "a", "type": "function", "function": {"name": "w", "arguments": "{}"}},
      {"id": "b", "type": "function", "function": {"name": "w", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "b", "content": "cold"},
    {"role": "tool", "tool_call_id": "a", "content": "warm", "score": 1.0e0},
    {"role": "user", "content": "Still there?"},
    {"role": "assistant", "content": "Warm and cold."},
    {"role": "user", "content": [{"type": "text", "text": "And this?"},
      {"type": "image_url", "image_url": {"url": "https://example.com/x.png", "detail": "low"}}]}
  ],
  "seed": 0.10
}"#;

#[test]
fn parallel_calls_and_their_results_are_one_group() {
    let call = Some("2".to_owned());
    let none = None;
    let expected = [&none, &none, &call, &call, &call, &none, &none, &none];
    assert_eq!(groups(OPENAI).iter().collect::<Vec<_>>(), expected);
    let chat = Chat::parse(OPENAI, None).unwrap();
    let kinds: Vec<ContextKind> = chat
        .items(&Characters)
        .iter()
        .map(|item| item.kind().clone())
        .collect();
    assert_eq!(kinds[0], ContextKind::system_prompt());
    assert_eq!(kinds[3], ContextKind::tool_output());
    assert_eq!(kinds[5], ContextKind::message());
    assert_eq!(chat.message(0).role(), Role::System);
    assert_eq!(chat.message(2).text(), "w({})\nw({})");
    assert_eq!(chat.message(7).text(), "And this?\n[image]");
    assert_eq!(chat.model(), Some("gpt-4o"));
    // By hand: messages 21, 32, 24, 11, 11, 19, 26, 101, overhead 3.
    check(OPENAI, 248, &[0, 1, 2, 3, 4, 5, 6, 7]);
    check(OPENAI, 247, &[0, 2, 3, 4, 5, 6, 7]);
    check(OPENAI, 216, &[0, 2, 3, 4, 5, 6, 7]);
    // The group costs 46 and no longer fits.
    check(OPENAI, 215, &[0, 1, 5, 6, 7]);
    check(OPENAI, 202, &[0, 1, 5, 6, 7]);
    check(OPENAI, 201, &[0, 5, 6, 7]);
    check(OPENAI, 170, &[0, 5, 6, 7]);
    check(OPENAI, 169, &[0, 6, 7]);
    check(OPENAI, 151, &[0, 6, 7]);
    check(OPENAI, 125, &[0, 7]);
    let error = fit(OPENAI, 124).unwrap_err();
    assert_eq!(
        error.to_string(),
        "mandatory messages need 125 tokens, 1 over the budget of 124: message 0 (developer, 21 tokens), \
         message 7 (user, 101 tokens), request overhead (3 tokens); raise the budget or shorten these"
    );
}

#[test]
fn kept_messages_are_written_byte_for_byte() {
    let chat = Chat::parse(OPENAI, None).unwrap();
    let fitted = chat
        .fit(&newest_policy(), &budget(151), &Characters)
        .unwrap();
    let (before, rest) = OPENAI
        .split_once("\n    {\"role\": \"user\", \"content\": \"Weather")
        .unwrap();
    let (_, after) = rest.split_once("there?\"},").unwrap();
    assert_eq!(fitted.to_json(), format!("{before}{after}"));
    assert_eq!(chat.write(&[0, 1, 2, 3, 4, 5, 6, 7]), OPENAI);
    let none = chat.write(&[]);
    assert_eq!(valid::messages(&none).len(), 0);
    assert!(none.ends_with("],\n  \"seed\": 0.10\n}"), "{none}");
}

/// Reasoning, parallel calls, a tool of the provider, and an item of an unknown type.
const RESPONSES: &str = include_str!("examples/openai-responses.json");

#[test]
fn reasoning_and_the_calls_after_it_are_one_group() {
    let (call, search, none) = (Some("1".to_owned()), Some("6".to_owned()), None);
    let expected = [
        &none, &call, &call, &call, &call, &call, &search, &search, &search, &none,
    ];
    assert_eq!(groups(RESPONSES).iter().collect::<Vec<_>>(), expected);
    let chat = Chat::parse(RESPONSES, None).unwrap();
    let all = chat.tokens(&Characters);
    let least = 3 + (3 + 4 + 8);
    let mut sizes = std::collections::BTreeSet::new();
    for tokens in least..=all {
        sizes.insert(fit(RESPONSES, tokens).unwrap());
    }
    assert!(sizes.len() > 5, "{sizes:?}");
    check(RESPONSES, all, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    check(RESPONSES, least, &[9]);
}

/// Thinking, a result and text in one message, and a system prompt in blocks.
const ANTHROPIC: &str = include_str!("examples/anthropic.json");

#[test]
fn a_user_turn_with_results_keeps_its_call_and_the_user_turn_before_it() {
    let (first, second, none) = (Some("1".to_owned()), Some("5".to_owned()), None);
    let expected = [&none, &first, &first, &none, &none, &second, &second];
    assert_eq!(groups(ANTHROPIC).iter().collect::<Vec<_>>(), expected);
    let chat = Chat::parse(ANTHROPIC, None).unwrap();
    assert_eq!(chat.shape(), Shape::Anthropic);
    assert_eq!(
        chat.items(&Characters)[2].kind(),
        &ContextKind::tool_output()
    );
    // Overhead 3 and 18; messages 26, 26, 14, 19, 15, 21, 21.
    check(ANTHROPIC, 163, &[0, 1, 2, 3, 4, 5, 6]);
    check(ANTHROPIC, 78, &[4, 5, 6]);
    // An answer before the first user turn is dropped even if it fits.
    check(ANTHROPIC, 97, &[4, 5, 6]);
    check(ANTHROPIC, 104, &[0, 4, 5, 6]);
    check(ANTHROPIC, 123, &[0, 3, 4, 5, 6]);
    let error = fit(ANTHROPIC, 77).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("1 over the budget of 77: message 4 (user, 15 tokens), message 5"),
        "{error}"
    );
}

#[test]
fn messages_before_the_first_user_turn_are_dropped_with_a_reason() {
    let chat = Chat::parse(ANTHROPIC, None).unwrap();
    let fitted = chat
        .fit(&newest_policy(), &budget(97), &Characters)
        .unwrap();
    let dropped = fitted.dropped.iter().map(|dropped| {
        let reason = dropped.reason.to_string();
        (dropped.index, dropped.role.as_str(), dropped.tokens, reason)
    });
    let reason = "Filtered: dropped by filter 'before the first user turn'";
    let before = [
        (0, "user", 26),
        (1, "assistant", 26),
        (2, "user", 14),
        (3, "assistant", 19),
    ];
    let before = before.map(|(index, role, tokens)| (index, role, tokens, reason.to_owned()));
    assert_eq!(dropped.collect::<Vec<_>>(), before);
}

/// A tool loop whose results come with text of the user, so that a chat can only start on the first turn.
const LOOP: &str = r#"{"max_tokens": 9, "messages": [
  {"role": "user", "content": "q"},
  {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "one"}, {"type": "text", "text": "go on"}]},
  {"role": "assistant", "content": [{"type": "tool_use", "id": "b", "name": "f", "input": {}}]},
  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b", "content": "two"}]},
  {"role": "assistant", "content": "done"},
  {"role": "user", "content": "thx"}
]}"#;

#[test]
fn a_larger_budget_does_not_empty_a_loop() {
    let chat = Chat::parse(LOOP, Some(Shape::Anthropic)).unwrap();
    let kept = |tokens| {
        chat.fit(&newest_policy(), &budget(tokens), &Characters)
            .unwrap()
            .kept
    };
    let all = chat.tokens(&Characters);
    let alone = (0..all)
        .find(|&tokens| {
            chat.fit(&newest_policy(), &budget(tokens), &Characters)
                .is_ok()
        })
        .unwrap();
    let with_start = (alone..all)
        .find(|&tokens| kept(tokens).contains(&0))
        .unwrap();
    assert_eq!(kept(alone), [6]);
    for tokens in with_start..=all {
        assert_eq!(kept(tokens)[0], 0, "at {tokens}");
        assert!(kept(tokens).len() > 1, "at {tokens}");
    }
    assert_eq!(kept(all - 1), [0, 3, 4, 5, 6]);
}

#[test]
fn the_policy_of_a_chat_chooses_what_fit_chooses_at_every_budget() {
    for (text, shape) in [
        (LOOP, Some(Shape::Anthropic)),
        (ANTHROPIC, None),
        (LANGCHAIN, None),
        (OPENAI, None),
    ] {
        let chat = Chat::parse(text, shape).unwrap();
        let newest = newest_policy();
        let candidates = chat.candidates_for(&newest, None, &Characters).unwrap();
        let policy = chat.policy_over(&newest, &candidates);
        for tokens in 0..=chat.tokens(&Characters) {
            let Ok(fitted) = chat.fit(&newest_policy(), &budget(tokens), &Characters) else {
                continue;
            };
            let mut chosen = policy.run_indices(&candidates, &budget(tokens)).unwrap();
            chosen.sort_unstable();
            chosen.pop(); // the request overhead
            assert_eq!(chosen, fitted.kept, "at {tokens}");
            let counted = chat.fit_candidates(&newest, &budget(tokens), &candidates, &Characters);
            assert_eq!(counted.unwrap().kept, fitted.kept, "at {tokens}");
        }
    }
}

/// All three notations of a message.
const LANGCHAIN: &str = include_str!("examples/langchain.json");

#[test]
fn langchain_messages_are_read_in_all_notations() {
    let chat = Chat::parse(LANGCHAIN, None).unwrap();
    assert_eq!(chat.shape(), Shape::LangChain);
    let roles: Vec<Role> = chat.messages().map(cupel_chat::Message::role).collect();
    let expected = [
        Role::System,
        Role::User,
        Role::Assistant,
        Role::Tool,
        Role::Assistant,
        Role::User,
    ];
    assert_eq!(roles, expected);
    // A call in two notations is one call.
    assert_eq!(chat.message(2).text(), "add({\"a\":1})");
    let call = Some("2".to_owned());
    assert_eq!(
        groups(LANGCHAIN),
        [None, None, call.clone(), call, None, None]
    );
    // Messages 18, 20, 18, 8, 7, 15, overhead 3.
    check(LANGCHAIN, 89, &[0, 1, 2, 3, 4, 5]);
    check(LANGCHAIN, 88, &[0, 1, 4, 5]);
    check(LANGCHAIN, 63, &[0, 1, 4, 5]);
    check(LANGCHAIN, 62, &[0, 1, 5]);
    // The answer fits, but not the user turn before it.
    check(LANGCHAIN, 55, &[0, 5]);
    check(LANGCHAIN, 36, &[0, 5]);
}

#[test]
fn items_are_chosen_in_whole_groups_and_stay_in_order() {
    let lines = "{\"content\":\"a\",\"tokens\":5,\"timestamp\":\"2026-01-01T00:00:00Z\"}\n\
                 {\"content\":\"b\",\"tokens\":5,\"metadata\":{\"cupel:group\":\"g\"},\"timestamp\":\"2026-01-02T00:00:00Z\"}\n\
                 \n\
                 {\"content\":\"c\",\"tokens\":5,\"metadata\":{\"cupel:group\":\"g\"},\"timestamp\":\"2026-01-03T00:00:00Z\"}\n\
                 {\"content\":\"d\",\"tokens\":5,\"pinned\":true}";
    let chat = Chat::parse(lines, None).unwrap();
    assert_eq!((chat.shape(), chat.len()), (Shape::Items, 4));
    let kept = |tokens| {
        chat.fit(&newest_policy(), &budget(tokens), &Characters)
            .map(|fitted| fitted.kept)
    };
    assert_eq!(kept(20), Ok(vec![0, 1, 2, 3]));
    assert_eq!(kept(15), Ok(vec![1, 2, 3]));
    assert_eq!(kept(14), Ok(vec![0, 3]));
    assert_eq!(kept(5), Ok(vec![3]));
    assert_eq!(
        kept(4).unwrap_err().to_string(),
        "mandatory items need 5 tokens, 1 over the budget of 4: item 3 (Message, 5 tokens); \
         raise the budget or shorten these"
    );
    let fitted = chat
        .fit(&newest_policy(), &budget(14), &Characters)
        .unwrap();
    // The blank line stays.
    let expected: Vec<&str> = [0, 2, 4]
        .map(|line| lines.lines().nth(line).unwrap())
        .to_vec();
    assert_eq!(fitted.to_json(), expected.join("\n"));
}

#[test]
fn invalid_messages_are_dropped_with_a_reason() {
    let text = r#"[
      {"role": "user", "content": "hi"},
      {"role": "tool", "tool_call_id": "gone", "content": "late"},
      {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": ""}}, {"id": "b", "function": {"name": "f", "arguments": ""}}]},
      {"role": "tool", "tool_call_id": "a", "content": "half"},
      {"role": "tool", "content": "of what?"},
      {"role": "user", "content": "again"},
      {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": ""}}]},
      {"role": "tool", "tool_call_id": "a", "content": "whole"}
    ]"#;
    let chat = Chat::parse(text, None).unwrap();
    let fitted = chat
        .fit(&strict_policy(), &budget(10_000), &Characters)
        .unwrap();
    assert_eq!(fitted.kept, [0, 5, 6, 7]);
    let reasons: Vec<String> = fitted
        .dropped
        .iter()
        .map(|dropped| dropped.reason.to_string())
        .collect();
    let filtered = |what: &str| format!("Filtered: dropped by filter '{what}'");
    assert_eq!(
        reasons,
        [
            filtered("tool result without a call"),
            filtered("tool call without a result"),
            filtered("tool call without a result"),
            filtered("tool result without a call"),
        ]
    );
    let report = &fitted.report;
    assert_eq!(report.total_candidates, chat.len() + 1);
    assert_eq!(report.included.len(), 5);
}

#[test]
fn an_output_of_the_local_shell_names_its_call_in_id() {
    let session = |output: &str| {
        format!(
            r#"{{"input": [
              {{"role": "user", "content": "What is here?"}},
              {{"type": "local_shell_call", "id": "lsh_1", "call_id": "call_1", "status": "completed",
                "action": {{"type": "exec", "command": ["ls"], "env": {{}}}}}},
              {{"type": "local_shell_call_output", {output}, "output": "a.txt"}},
              {{"role": "user", "content": "Thanks."}}
            ]}}"#
        )
    };
    for output in [
        r#""id": "call_1""#,
        r#""id": "lsh_1""#,
        r#""id": "out_1", "call_id": "call_1""#,
    ] {
        let text = session(output);
        let group = Some("1".to_owned());
        assert_eq!(
            groups(&text),
            [None, group.clone(), group, None],
            "{output}"
        );
        check_kept(&text, 1_000, &[0, 1, 2, 3]);
    }
    check_kept(&session(r#""id": "call_2""#), 1_000, &[0, 3]);
    let nameless = Chat::parse(&session(r#""status": "completed""#), None).unwrap_err();
    assert_eq!(nameless.path, "input[2].id");
}

#[test]
fn results_of_calls_that_the_provider_stores_are_mandatory() {
    let text = r#"{"previous_response_id": "resp_1", "input": [
      {"role": "user", "content": "a long question that is of no use any more"},
      {"type": "function_call_output", "call_id": "c1", "output": "12"},
      {"role": "user", "content": "And?"}
    ]}"#;
    let least = 3 + (3 + 20 + 2) + (3 + 4 + 4);
    check_kept(text, least, &[1, 2]);
    assert!(matches!(
        fit(text, least - 1),
        Err(FitError::TooLarge { .. })
    ));
    let forgotten = text.replace("\"resp_1\"", "null");
    check_kept(&forgotten, 1_000, &[0, 2]);
}

/// As [`check`], for a request that continues another.
fn check_kept(text: &str, tokens: i64, kept: &[usize]) {
    let chat = Chat::parse(text, None).unwrap();
    let fitted = chat.fit(&strict_policy(), &budget(tokens), &Characters);
    assert_eq!(
        fitted.map(|fitted| fitted.kept).as_deref(),
        Ok(kept),
        "{tokens} tokens"
    );
}

#[test]
fn a_user_turn_in_an_invalid_group_is_an_error() {
    let text = r#"{"system": "s", "messages": [
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "gone", "content": "x"}, {"type": "text", "text": "well?"}]}
    ]}"#;
    assert_eq!(
        fit(text, 1_000).unwrap_err().to_string(),
        "message 0 (user) is mandatory, and its group is invalid: tool result without a call; add the call"
    );
    let silent = r#"{"system": "s", "messages": [{"role": "assistant", "content": "hello?"}]}"#;
    assert_eq!(
        fit(silent, 1_000).unwrap_err(),
        FitError::NoUserTurn(Shape::Anthropic)
    );
}

#[test]
fn output_reserve_and_margin_stay_free() {
    let chat = Chat::parse(OPENAI, None).unwrap();
    let budget = ContextBudget::builder(300)
        .output_reserve(149)
        .build()
        .unwrap();
    let fitted = chat.fit(&newest_policy(), &budget, &Characters).unwrap();
    assert_eq!(fitted.kept, [0, 6, 7]); // as with 151
    let budget = ContextBudget::builder(248)
        .safety_margin_percent(50.0)
        .build()
        .unwrap();
    let fitted = chat.fit(&newest_policy(), &budget, &Characters).unwrap();
    assert!(fitted.tokens_after <= 125 + 123 / 2);
}

#[test]
fn an_input_string_is_a_mandatory_user_message() {
    let text = r#"{"model": "gpt-5", "input": "What is 2 + 2?"}"#;
    let chat = Chat::parse(text, None).unwrap();
    assert_eq!(chat.message(0).role(), Role::User);
    let fit = |tokens| chat.fit(&newest_policy(), &budget(tokens), &Characters);
    assert_eq!(fit(30).unwrap().to_json(), text);
    assert!(matches!(fit(5), Err(FitError::TooLarge { .. })));
}

#[test]
fn an_empty_chat_stays_empty() {
    for text in ["[]", r#"{"messages": []}"#, r#"{"input":[],"model":"x"}"#] {
        let chat = Chat::parse(text, None).unwrap();
        let fitted = chat
            .fit(&newest_policy(), &budget(10), &Characters)
            .unwrap();
        assert_eq!(fitted.to_json(), text);
    }
}

#[test]
fn the_example_session_fits_into_2000_tokens() {
    let text = include_str!("examples/agent-session.json");
    let chat = Chat::parse(text, None).unwrap();
    assert_eq!(chat.shape(), Shape::OpenAi);
    let counter = Encoding::O200k;
    assert!(
        (5_000..=8_000).contains(&chat.tokens(&counter)),
        "{}",
        chat.tokens(&counter)
    );
    let fitted = chat
        .fit(&newest_policy(), &budget(2_000), &counter)
        .unwrap();
    let kept = valid::messages(&fitted.to_json());
    assert_eq!(valid::objection(Shape::OpenAi, &kept), None);
    assert!(
        (1_500..=2_000).contains(&fitted.tokens_after),
        "{}",
        fitted.tokens_after
    );
}
