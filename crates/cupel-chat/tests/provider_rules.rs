//! One test per rule of a provider that trimming once broke, or per form that was once read wrongly.

use cupel::{ContextBudget, Policy};
use cupel_chat::{
    Chat, Encoding, FitError, Fitted, Shape, WarningKind, default_policy, newest_policy,
    single_policy,
};
use serde_json::{Value, json};

use crate::valid;

fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::with_target(tokens, tokens).unwrap()
}

fn words(count: usize) -> String {
    "several words of a text ".repeat(count)
}

fn strict(policy: &Policy) -> Policy {
    let mut settings = policy.chat().clone();
    settings.strict = true;
    policy.to_builder().chat(settings).build().unwrap()
}

fn parse(request: &Value) -> Chat {
    Chat::parse(&request.to_string(), None).unwrap_or_else(|error| panic!("{error}: {request}"))
}

fn error_of(request: &Value, shape: Option<Shape>) -> (String, String) {
    let error = Chat::parse(&request.to_string(), shape).unwrap_err();
    (error.path.clone(), error.message)
}

/// Fits a request at every share of its tokens: each window is valid, and at the whole budget the request
/// comes out byte for byte without a warning. Returns the windows as lists of positions.
fn check_windows(request: &Value) -> Vec<Vec<usize>> {
    let text = request.to_string();
    let chat = parse(request);
    let all = chat.tokens(&Encoding::O200k);
    let mut windows = Vec::new();
    for policy in [default_policy(), single_policy(), newest_policy()] {
        for share in 1..=100 {
            let fitted = match chat.fit(&policy, &budget(all * share / 100), &Encoding::O200k) {
                Err(FitError::TooLarge { .. }) => continue,
                fitted => fitted.unwrap(),
            };
            let json = fitted.to_json();
            let objection = valid::objection_to_window(chat.shape(), &text, &json);
            assert_eq!(objection, None, "{share} %: {json}");
            windows.push(fitted.kept);
        }
        let fitted = chat.fit(&policy, &budget(all), &Encoding::O200k).unwrap();
        assert_eq!(fitted.to_json(), text);
        assert_eq!(fitted.warnings, [], "{text}");
    }
    assert!(windows.len() > 2, "{windows:?}");
    windows
}

/// Checks that every window has all of some messages or none of them.
fn check_together(request: &Value, together: &[usize]) {
    for kept in check_windows(request) {
        let count = together.iter().filter(|index| kept.contains(index)).count();
        assert!(count == 0 || count == together.len(), "{kept:?}");
    }
}

/// Checks that every window has these messages.
fn check_always(request: &Value, always: &[usize]) {
    for kept in check_windows(request) {
        let is_kept = always.iter().all(|index| kept.contains(index));
        assert!(is_kept, "{kept:?}");
    }
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "open", "arguments": "{}"}})
}

// ---- A chat that fits is not changed ----

#[test]
fn results_with_a_list_of_call_ids_belong_to_their_calls() {
    let step = |id: &str| {
        [
            json!({"role": "assistant", "content": "I look.", "thought": "I look.", "action": "open",
                "agent": "main", "tool_calls": [call(id)], "message_type": "action"}),
            json!({"role": "tool", "content": words(20), "agent": "main",
                "message_type": "observation", "tool_call_ids": [id]}),
        ]
    };
    let mut messages = vec![
        json!({"role": "system", "content": "You are a programmer.", "message_type": "system_prompt"}),
        json!({"role": "user", "content": "Fix the bug."}),
    ];
    messages.extend(["a", "b", "c"].iter().flat_map(|id| step(id)));
    let request = json!({"messages": messages});
    for pair in [[2, 3], [4, 5], [6, 7]] {
        check_together(&request, &pair);
    }
    let (path, message) = error_of(
        &json!([{"role": "tool", "content": "x", "tool_call_ids": [7]}]),
        None,
    );
    assert_eq!(path, "[0].tool_call_ids[0]");
    assert_eq!(message, "must be a string, not a number");
}

fn with_orphans() -> Value {
    json!([
        {"role": "user", "content": "hi"},
        {"role": "tool", "tool_call_id": "gone", "content": words(5)},
        {"role": "assistant", "tool_calls": [call("a"), call("b")]},
        {"role": "tool", "tool_call_id": "a", "content": "half"},
        {"role": "tool", "content": "of what?"},
        {"role": "user", "content": "again"},
        {"role": "assistant", "content": words(50)},
        {"role": "user", "content": "and again"},
    ])
}

#[test]
fn orphans_of_a_chat_that_fits_are_kept_with_a_warning() {
    let request = with_orphans();
    let chat = parse(&request);
    let all = chat.tokens(&Encoding::O200k);
    for policy in [default_policy(), single_policy(), newest_policy()] {
        let fitted = chat.fit(&policy, &budget(all), &Encoding::O200k).unwrap();
        assert_eq!(fitted.to_json(), request.to_string());
        assert_eq!((fitted.dropped.len(), fitted.tokens_after), (0, all));
        let warnings: Vec<_> = fitted
            .warnings
            .iter()
            .map(|warning| (warning.kind, &warning.messages[..]))
            .collect();
        assert_eq!(
            warnings,
            [
                (WarningKind::CallWithoutResult, &[2][..]),
                (WarningKind::ResultWithoutCall, &[1, 4][..]),
            ]
        );
        assert_eq!(
            fitted.warnings[1].to_string(),
            "messages 1, 4: tool result without a call; the provider may reject it"
        );
        // Strict: they are dropped even so.
        let fitted = chat.fit(&strict(&policy), &budget(all), &Encoding::O200k);
        let fitted = fitted.unwrap();
        assert_eq!(fitted.kept, [0, 5, 6, 7]);
        assert_eq!(fitted.warnings, []);
    }
}

#[test]
fn orphans_are_dropped_first() {
    let chat = parse(&with_orphans());
    let all = chat.tokens(&Encoding::O200k);
    for policy in [default_policy(), single_policy(), newest_policy()] {
        let fitted = chat.fit(&policy, &budget(all - 1), &Encoding::O200k);
        let fitted = fitted.unwrap();
        assert_eq!(fitted.kept, [0, 5, 6, 7]);
        assert!(fitted.shortened.is_empty());
        assert_eq!(
            fitted.dropped[0].reason.to_string(),
            "Filtered: dropped by filter 'tool result without a call'"
        );
    }
}

/// Checks that a chat that fits is kept with one warning, that a strict policy drops the invalid messages, and
/// that a chat that does not fit loses them first.
fn check_invalid(request: &Value, kind: WarningKind, messages: &[usize], valid: &[usize]) {
    let text = request.to_string();
    let chat = parse(request);
    assert!(valid::objection(chat.shape(), &valid::messages(&text)).is_some());
    let all = chat.tokens(&Encoding::O200k);
    for policy in [default_policy(), single_policy(), newest_policy()] {
        let fitted = chat.fit(&policy, &budget(all), &Encoding::O200k).unwrap();
        assert_eq!(fitted.to_json(), text);
        let warnings = fitted.warnings.iter();
        let warnings: Vec<_> = warnings.map(|it| (it.kind, &it.messages[..])).collect();
        assert_eq!(warnings, [(kind, messages)], "{text}");
        for (policy, tokens) in [(&strict(&policy), all), (&policy, all - 1)] {
            let fitted = chat.fit(policy, &budget(tokens), &Encoding::O200k);
            let fitted = fitted.unwrap();
            assert_eq!(fitted.kept, valid, "{text}");
            let window = valid::objection_to_window(chat.shape(), &text, &fitted.to_json());
            assert_eq!(window, None);
        }
    }
}

#[test]
fn a_user_message_between_a_call_and_its_result_is_invalid() {
    let openai = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": [call("a")]},
        {"role": "user", "content": "hurry"},
        {"role": "tool", "tool_call_id": "a", "content": words(9)},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "thanks"},
    ]);
    check_invalid(&openai, WarningKind::ResultOutOfPlace, &[3], &[0, 2, 4, 5]);
    let anthropic = json!({"system": "s", "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "open", "input": {}}]},
        {"role": "user", "content": "hurry"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": words(9)}]},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "thanks"},
    ]});
    check_invalid(
        &anthropic,
        WarningKind::ResultOutOfPlace,
        &[3],
        &[0, 2, 4, 5],
    );
    // The Responses API pairs items by id.
    check_windows(&json!({"input": [
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "a", "name": "open", "arguments": "{}"},
        {"role": "user", "content": "hurry"},
        {"type": "function_call_output", "call_id": "a", "output": words(9)},
        {"role": "assistant", "content": words(40)},
        {"role": "user", "content": "thanks"},
    ]}));
}

#[test]
fn two_results_of_one_call_are_invalid() {
    let openai = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": [call("a")]},
        {"role": "tool", "tool_call_id": "a", "content": words(9)},
        {"role": "tool", "tool_call_id": "a", "content": words(9)},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "thanks"},
    ]);
    check_invalid(&openai, WarningKind::DuplicateResult, &[3], &[0, 4, 5]);
    let responses = json!({"input": [
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "a", "name": "open", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": words(9)},
        {"type": "function_call_output", "call_id": "a", "output": words(9)},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "thanks"},
    ]});
    check_invalid(&responses, WarningKind::DuplicateResult, &[3], &[0, 4, 5]);
}

#[test]
fn two_user_messages_in_a_row_are_invalid_where_roles_alternate() {
    let said = |role: &str, text: &str| json!({"role": role, "content": [{"text": text}]});
    let bedrock = |messages: Vec<Value>| json!({"modelId": "m", "messages": messages});
    let chat = bedrock(vec![
        said("user", "hi"),
        said("user", &words(9)),
        said("assistant", "hello"),
        said("user", "bye"),
    ]);
    check_invalid(&chat, WarningKind::RepeatedRole, &[1], &[0, 2, 3]);
    let chat = parse(&bedrock(vec![said("user", "hi"), said("user", &words(9))]));
    let all = chat.tokens(&Encoding::O200k);
    let error = chat.fit(&strict(&default_policy()), &budget(all), &Encoding::O200k);
    assert_eq!(
        error.unwrap_err().to_string(),
        "message 1 (user) is mandatory, and its group is invalid: same role as the message before; merge the two messages"
    );
}

#[test]
fn a_chat_with_no_valid_window_is_kept_if_it_fits_and_refused_otherwise() {
    let request = json!({"system": "s", "messages": [
        {"role": "assistant", "content": "Hello?"},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "gone", "content": "x"},
            {"type": "text", "text": "Well?"}]},
    ]});
    let chat = parse(&request);
    let all = chat.tokens(&Encoding::O200k);
    for policy in [default_policy(), single_policy(), newest_policy()] {
        let fitted = chat.fit(&policy, &budget(all), &Encoding::O200k).unwrap();
        assert_eq!(fitted.to_json(), request.to_string());
        let kinds: Vec<WarningKind> = fitted.warnings.iter().map(|it| it.kind).collect();
        assert_eq!(
            kinds,
            [WarningKind::ResultWithoutCall, WarningKind::BeforeUserTurn]
        );
        for (policy, tokens) in [(&policy, all - 1), (&strict(&policy), all)] {
            let error = chat.fit(policy, &budget(tokens), &Encoding::O200k);
            assert!(matches!(
                error,
                Err(FitError::InvalidMessage { index: 1, .. })
            ));
        }
    }
}

#[test]
fn results_are_limited_even_if_the_chat_fits() {
    let request = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": [call("a")]},
        {"role": "tool", "tool_call_id": "a", "content": words(100)},
    ]);
    let mut settings = default_policy().chat().clone();
    settings.max_result = Some(50);
    let policy = default_policy()
        .to_builder()
        .chat(settings)
        .build()
        .unwrap();
    let chat = parse(&request);
    let fitted = chat
        .fit(&policy, &budget(100_000), &Encoding::O200k)
        .unwrap();
    assert_eq!(fitted.shortened[0].index, 2);
}

// ---- What is not understood is counted or refused ----

#[test]
fn unknown_blocks_that_look_like_calls_or_results_are_refused() {
    let rig = json!([{"role": "assistant", "content": [
        {"type": "toolcall", "id": "a", "function": {"name": "add", "arguments": {}}}]}]);
    for (block, what) in [
        (json!({"type": "toolcall", "id": "a"}), "a tool call"),
        (json!({"type": "toolresult", "id": "a"}), "a tool result"),
        (json!({"type": "functionResponse"}), "a tool result"),
        (
            json!({"type": "invoke", "name": "f", "args": {}}),
            "a tool call",
        ),
        (
            json!({"type": "x", "toolUseId": "a"}),
            "part of a tool call",
        ),
    ] {
        let request =
            json!([{"role": "assistant", "content": [{"type": "text", "text": "a"}, block]}]);
        let (path, message) = error_of(&request, Some(Shape::OpenAi));
        assert_eq!(path, "[0].content[1].type");
        assert!(
            message.contains(&format!("looks like {what}:")),
            "{message}"
        );
    }
    let (_, message) = error_of(&rig, Some(Shape::OpenAi));
    assert_eq!(
        message,
        "unknown content block type `toolcall`, which looks like a tool call: what belongs to it cannot be found"
    );
    let vercel =
        json!([{"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "a"}]}]);
    let (_, message) = error_of(&vercel, Some(Shape::OpenAi));
    assert!(
        message.ends_with("; the format vercel has such blocks"),
        "{message}"
    );
    let item = json!({"input": [{"type": "new_tool_call", "call_id": "a"}]});
    let (path, _) = error_of(&item, None);
    assert_eq!(path, "input[0].type");
}

#[test]
fn an_unknown_type_is_an_error_unless_the_format_is_named() {
    let block = json!({"system": "s", "messages": [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "hologram", "x": 1}]}]});
    let item = json!({"input": [{"type": "hologram", "x": 1}]});
    for (request, path, shape) in [
        (block, "messages[0].content[1].type", Shape::Anthropic),
        (item, "input[0].type", Shape::Responses),
    ] {
        let (found, message) = error_of(&request, None);
        let expected = format!(
            "unknown type `hologram`; the nearest format is {shape}, which counts it as its JSON if you name it"
        );
        assert_eq!((found.as_str(), message), (path, expected));
        assert!(Chat::parse(&request.to_string(), Some(shape)).is_ok());
    }
}

#[test]
fn fields_with_the_content_of_another_format_are_refused() {
    let parts = json!([{"role": "user", "parts": [{"type": "text", "text": "hi"}]}]);
    for shape in [Shape::OpenAi, Shape::Anthropic] {
        let (path, text) = error_of(&parts, Some(shape));
        let start = format!("a message of the format {shape} without content");
        assert!(path == "[0]" && text.starts_with(&start), "{path}: {text}");
    }
    let both = json!([{"role": "user", "content": "hi", "parts": [{"type": "text", "text": "hi"}],
        "images": ["iVBORw0KGgo="]}]);
    for shape in [Shape::OpenAi, Shape::Anthropic, Shape::Responses] {
        let (path, text) = error_of(&both, Some(shape));
        assert_eq!(path, "[0].images");
        assert_eq!(
            text,
            "unknown field `images`, which messages of the format ollama have"
        );
    }
}

#[test]
fn unknown_fields_with_text_are_counted() {
    let count = |field: &str| {
        let mut message = json!({"role": "assistant", "content": "hi"});
        message[field] = words(10).into();
        parse(&json!([message])).tokens(&Encoding::O200k)
    };
    let plain = parse(&json!([{"role": "assistant", "content": "hi"}])).tokens(&Encoding::O200k);
    assert!(count("draft") > plain + 40);
    assert!(count("reasoning") > plain + 40);
    // The model does not see these.
    for field in ["id", "created_at", "thought", "metadata"] {
        assert_eq!(count(field), plain, "{field}");
    }
}

// ---- Responses ----

fn responses(items: Vec<Value>) -> Value {
    let mut request = json!({"model": "gpt-5"});
    request["input"] = items.into();
    request
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// A screenshot of 1024 x 768 pixels: its header, and data that would cost 50,000 tokens as text.
fn screenshot() -> String {
    format!(
        "iVBORw0KGgoAAAANSUhEUgAABAAAAAMACAYAAAA={}",
        "A1b2".repeat(50_000)
    )
}

#[test]
fn images_in_outputs_and_generated_images_count_as_images() {
    let url = format!("data:image/png;base64,{}", screenshot());
    for (item, index) in [
        (
            json!({"type": "computer_call_output", "call_id": "a",
            "output": {"type": "computer_screenshot", "image_url": url}}),
            1,
        ),
        (
            json!({"type": "function_call_output", "call_id": "a",
            "output": [{"type": "input_image", "image_url": url}]}),
            1,
        ),
        (
            json!({"type": "image_generation_call", "id": "ig", "status": "completed",
            "result": screenshot()}),
            1,
        ),
        (
            json!({"type": "code_interpreter_call", "id": "ci", "code": "plot()",
            "outputs": [{"type": "image", "url": url}]}),
            1,
        ),
    ] {
        let chat = parse(&responses(vec![user("look"), item.clone(), user("and?")]));
        let tokens = chat.items(&Encoding::O200k)[index].tokens();
        // 765 tokens for the image, by the rule for tiles.
        assert!((765..=850).contains(&tokens), "{tokens}: {}", item["type"]);
    }
}

#[test]
fn a_compaction_item_is_mandatory() {
    let request = responses(vec![
        user(&words(40)),
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}),
        json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "A".repeat(80)}),
        user(&words(10)),
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words(30)}]}),
        user("next"),
    ]);
    check_always(&request, &[2, 5]);
    // The task before it is part of it, and is dropped first.
    let windows = check_windows(&request);
    assert!(windows.iter().any(|kept| *kept == [2, 3, 5]), "{windows:?}");
}

#[test]
fn settings_in_the_input_are_mandatory() {
    for setting in [
        json!({"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "f"}]}),
        json!({"type": "configuration_update", "reasoning": {"effort": "low"}}),
    ] {
        let items = vec![user(&words(20)), setting, user(&words(30)), user("next")];
        check_always(&responses(items), &[1]);
    }
}

#[test]
fn an_item_reference_may_be_the_call_of_a_result() {
    let output = json!({"type": "function_call_output", "call_id": "call_1", "output": words(20)});
    let fc = json!({"type": "item_reference", "id": "fc_1"});
    let thoughts = [
        json!({"type": "item_reference", "id": "rs_1"}),
        json!({"id": "rs_1"}),
        json!({"type": "reasoning", "id": "rs_1", "summary": []}),
    ];
    for thought in thoughts {
        let items = vec![
            user("weather in Paris?"),
            thought,
            fc.clone(),
            output.clone(),
            user(&words(30)),
            user("and tomorrow?"),
        ];
        check_together(&responses(items), &[1, 2, 3]);
    }
}

#[test]
fn an_approval_its_request_and_its_call_are_one_group() {
    let request = json!({"type": "mcp_approval_request", "id": "mcpr_1", "name": "x", "server_label": "s", "arguments": "{}"});
    let response =
        json!({"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": true});
    let call = json!({"type": "mcp_call", "id": "mcp_1", "approval_request_id": "mcpr_1", "name": "x",
        "server_label": "s", "arguments": "{}", "output": words(20)});
    let items = vec![
        user("q"),
        request.clone(),
        response.clone(),
        call,
        user(&words(20)),
        user("next"),
    ];
    check_together(&responses(items), &[1, 2, 3]);
    // A pending request, and a call that needed no approval.
    check_windows(&responses(vec![user(&words(20)), request, response]));
    let call = json!({"type": "mcp_call", "id": "mcp_1", "name": "x", "server_label": "s", "arguments": "{}"});
    check_windows(&responses(vec![
        user("q"),
        call,
        user(&words(9)),
        user("next"),
    ]));
}

/// One row per type of the input items of the Responses API: the items, and which are one group.
#[test]
#[expect(clippy::too_many_lines, reason = "one row per item type")]
fn every_item_type_of_responses_is_read() {
    let call = |kind: &str, key: &str, value: Value| {
        let mut item = json!({"type": kind, "call_id": "c", "id": "i", "status": "completed"});
        item[key] = value;
        item
    };
    let output = |kind: &str, value: Value| json!({"type": kind, "call_id": "c", "output": value});
    let rows: Vec<(Vec<Value>, bool)> = vec![
        (
            vec![
                json!({"type": "message", "role": "assistant", "id": "m", "status": "completed", "phase": "final_answer",
            "content": [{"type": "output_text", "text": "a", "annotations": []}, {"type": "refusal", "refusal": "no"}]}),
            ],
            false,
        ),
        (
            vec![
                json!({"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "a"}]}),
            ],
            false,
        ),
        (
            vec![
                json!({"role": "user", "content": [{"type": "input_image", "file_id": "f", "detail": "low"},
            {"type": "input_file", "file_id": "f"}]}),
            ],
            false,
        ),
        (
            vec![
                call("function_call", "arguments", json!("{}")),
                output("function_call_output", json!("a")),
            ],
            true,
        ),
        (
            vec![
                call("function_call", "arguments", json!("{}")),
                output(
                    "function_call_output",
                    json!([{"type": "input_text", "text": "a"}]),
                ),
            ],
            true,
        ),
        (
            vec![
                call("custom_tool_call", "input", json!("a")),
                output("custom_tool_call_output", json!("a")),
            ],
            true,
        ),
        (
            vec![
                call("computer_call", "action", json!({"type": "screenshot"})),
                output(
                    "computer_call_output",
                    json!({"type": "computer_screenshot", "file_id": "f"}),
                ),
            ],
            true,
        ),
        (
            vec![
                call("computer_call", "actions", json!([{"type": "click"}])),
                output(
                    "computer_call_output",
                    json!({"type": "computer_screenshot", "image_url": "https://example.com/a.png"}),
                ),
            ],
            true,
        ),
        (
            vec![
                call(
                    "local_shell_call",
                    "action",
                    json!({"type": "exec", "command": ["ls"]}),
                ),
                json!({"type": "local_shell_call_output", "id": "c", "output": "a"}),
            ],
            true,
        ),
        (
            vec![
                call("shell_call", "action", json!({"commands": ["ls"]})),
                output(
                    "shell_call_output",
                    json!([{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]),
                ),
            ],
            true,
        ),
        (
            vec![
                call(
                    "apply_patch_call",
                    "operation",
                    json!({"type": "delete_file", "path": "a"}),
                ),
                json!({"type": "apply_patch_call_output", "call_id": "c", "status": "completed"}),
            ],
            true,
        ),
        (
            vec![
                call("tool_search_call", "arguments", json!({})),
                json!({"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": []}),
            ],
            true,
        ),
        (
            vec![
                json!({"type": "tool_search_call", "call_id": null, "execution": "server", "arguments": {}}),
                json!({"type": "tool_search_output", "call_id": null, "execution": "server", "tools": []}),
            ],
            true,
        ),
        (
            vec![
                json!({"type": "tool_search_call", "arguments": {}}),
                json!({"type": "tool_search_output", "tools": []}),
            ],
            true,
        ),
        (
            vec![
                json!({"type": "program", "id": "p", "call_id": "c", "code": "1", "fingerprint": "f"}),
                json!({"type": "function_call", "call_id": "d", "name": "f", "arguments": "{}", "caller": {"type": "program", "caller_id": "c"}}),
                json!({"type": "function_call_output", "call_id": "d", "output": "a"}),
                json!({"type": "program_output", "id": "o", "call_id": "c", "result": "a", "status": "completed"}),
            ],
            true,
        ),
        (
            vec![
                call("multi_agent_call", "arguments", json!("{}")),
                output(
                    "multi_agent_call_output",
                    json!([{"type": "output_text", "text": "a"}]),
                ),
            ],
            true,
        ),
        (
            vec![
                json!({"type": "agent_message", "author": "a", "recipient": "b", "content": [{"type": "encrypted_content", "encrypted_content": "AAAA"}]}),
            ],
            false,
        ),
        (
            vec![
                json!({"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "a"}], "content": [{"type": "reasoning_text", "text": "b"}]}),
                json!({"type": "message", "role": "assistant", "content": "a"}),
            ],
            true,
        ),
        (
            vec![
                json!({"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "a"}}),
            ],
            false,
        ),
        (
            vec![json!({"type": "file_search_call", "id": "f", "queries": ["a"], "results": null})],
            false,
        ),
        (
            vec![
                json!({"type": "code_interpreter_call", "id": "c", "code": "1", "container_id": "x", "outputs": null}),
            ],
            false,
        ),
        (
            vec![
                json!({"type": "image_generation_call", "id": "i", "result": null, "status": "failed"}),
            ],
            false,
        ),
        (
            vec![json!({"type": "mcp_list_tools", "id": "l", "server_label": "s", "tools": []})],
            false,
        ),
        (
            vec![
                json!({"type": "mcp_call", "id": "m", "name": "f", "server_label": "s", "arguments": "{}"}),
            ],
            false,
        ),
        (
            vec![
                json!({"type": "mcp_approval_request", "id": "m", "name": "f", "server_label": "s", "arguments": "{}"}),
                json!({"type": "mcp_approval_response", "approval_request_id": "m", "approve": false}),
            ],
            true,
        ),
        (
            vec![json!({"type": "item_reference", "id": "msg_1"})],
            false,
        ),
        (
            vec![json!({"type": "compaction", "encrypted_content": "AAAA"})],
            false,
        ),
        (
            vec![json!({"type": "additional_tools", "role": "developer", "tools": []})],
            false,
        ),
        (
            vec![json!({"type": "configuration_update", "reasoning": {"effort": "low"}})],
            false,
        ),
    ];
    for (items, is_group) in rows {
        let mut input = vec![user("first")];
        input.extend(items.clone());
        input.extend([user(&words(20)), user("last")]);
        let request = responses(input);
        check_windows(&request);
        let chat = parse(&request);
        assert_eq!(chat.shape(), Shape::Responses);
        let group = |index: usize| {
            let metadata = chat.items(&Encoding::O200k)[index].metadata().clone();
            metadata.get("cupel:group").cloned()
        };
        let groups: Vec<_> = (1..=items.len()).map(group).collect();
        let expected = is_group.then(|| "1".to_owned());
        assert_eq!(groups, vec![expected; items.len()], "{items:?}");
    }
    check_windows(&responses(vec![
        user(&words(20)),
        user("last"),
        json!({"type": "compaction_trigger"}),
    ]));
}

#[test]
fn the_output_of_a_shell_is_shortened() {
    let request = responses(vec![
        user("list files"),
        json!({"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}),
        json!({"type": "shell_call_output", "call_id": "c", "max_output_length": 4096,
            "output": [{"stdout": words(200), "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}),
    ]);
    let chat = parse(&request);
    let fitted = chat
        .fit(&default_policy(), &budget(200), &Encoding::O200k)
        .unwrap();
    assert_eq!(fitted.shortened[0].texts[0].0, "output[0].stdout");
    let again = Chat::parse(&fitted.to_json(), None).unwrap();
    assert_eq!(again.tokens(&Encoding::O200k), fitted.tokens_after);
}

// ---- Anthropic ----

fn anthropic(messages: Vec<Value>) -> Value {
    let mut request = json!({"model": "claude-opus-5", "max_tokens": 100});
    request["messages"] = messages.into();
    request
}

fn assistant(blocks: Value) -> Value {
    let mut message = json!({"role": "assistant"});
    message["content"] = blocks;
    message
}

fn tool_use(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Read", "input": {}})
}

fn tool_result(id: &str, text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]})
}

#[test]
fn consecutive_messages_of_the_model_are_one_group() {
    let request = anthropic(vec![
        user("Fix the bug."),
        assistant(json!([{"type": "thinking", "thinking": words(20), "signature": "s"}])),
        assistant(json!([tool_use("a")])),
        tool_result("a", &words(10)),
        assistant(json!("Done.")),
        user(&words(10)),
        assistant(json!("You are welcome.")),
        user("Next."),
    ]);
    check_together(&request, &[1, 2, 3]);
}

#[test]
fn an_anthropic_compaction_is_mandatory_and_can_open_a_chat() {
    let request = anthropic(vec![
        user(&words(30)),
        assistant(json!("a")),
        user(&words(20)),
        assistant(json!([{"type": "compaction", "content": "The user sent letters."}])),
        user("What are we talking about?"),
    ]);
    check_always(&request, &[3, 4]);
    let windows = check_windows(&request);
    assert!(windows.iter().any(|kept| *kept == [3, 4]), "{windows:?}");
    check_windows(&anthropic(vec![
        assistant(json!([{"type": "compaction", "content": "A summary."}])),
        user(&words(20)),
        assistant(json!(words(30))),
        user("next"),
    ]));
}

#[test]
fn system_messages_stay_where_the_api_accepts_them() {
    let system = json!({"role": "system", "content": "Use metric units."});
    let search =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let turns = vec![
        user(&words(10)),
        assistant(json!(words(20))),
        user("How warm is it?"),
        system.clone(),
        assistant(json!("12 degrees.")),
        user(&words(20)),
        assistant(json!(words(20))),
        user("Thanks."),
    ];
    check_always(&anthropic(turns), &[2, 3, 4, 7]);
    // After tool results, and last.
    check_always(
        &anthropic(vec![
            user(&words(20)),
            assistant(json!([tool_use("a")])),
            tool_result("a", "x"),
            system.clone(),
        ]),
        &[0, 1, 2, 3],
    );
    // After a turn of the model that ends in a tool of the provider.
    parse(&anthropic(vec![
        user("q"),
        assistant(json!([search])),
        system.clone(),
    ]));
    for messages in [
        vec![system.clone(), user("q")],
        vec![user("q"), system.clone(), system.clone()],
        vec![user("q"), system.clone(), user("r")],
        vec![user("q"), assistant(json!("a")), system.clone()],
    ] {
        let (path, _) = error_of(&anthropic(messages.clone()), Some(Shape::Anthropic));
        assert!(path.contains("].role"), "{path}: {messages:?}");
    }
}

#[test]
fn with_thinking_the_current_turn_is_complete() {
    let thought = |id: &str| {
        let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
        assistant(json!([thinking, tool_use(id)]))
    };
    let mut messages = vec![
        user(&words(30)),
        assistant(json!(words(20))),
        user("Fix the bug."),
    ];
    for id in ["a", "b", "c"] {
        messages.extend([thought(id), tool_result(id, &words(40))]);
    }
    let mut request = anthropic(messages);
    for thinking in [
        json!({"type": "enabled", "budget_tokens": 2000}),
        json!({"type": "adaptive"}),
    ] {
        request["thinking"] = thinking;
        check_always(&request, &[2, 3, 4, 5, 6, 7, 8]);
    }
    request["thinking"] = json!({"type": "disabled"});
    let windows = check_windows(&request);
    assert!(windows.iter().any(|kept| !kept.contains(&3)), "{windows:?}");
}

#[test]
fn a_transcript_with_thinking_keeps_the_current_turn() {
    let windows = |thinks: bool| {
        let mut messages = vec![
            user("hi"),
            assistant(json!(words(20))),
            user("Fix the bug."),
        ];
        for id in ["a", "b", "c"] {
            let mut blocks = vec![tool_use(id)];
            if thinks {
                blocks.insert(
                    0,
                    json!({"type": "thinking", "thinking": "hm", "signature": "s"}),
                );
            }
            messages.extend([assistant(json!(blocks)), tool_result(id, &words(40))]);
        }
        let record = |message: Value| {
            json!({"type": message["role"], "sessionId": "s", "message": message}).to_string()
        };
        let lines: Vec<String> = messages.into_iter().map(record).collect();
        let chat = Chat::parse(&lines.join("\n"), None).unwrap();
        assert_eq!(chat.shape(), Shape::ClaudeCode);
        let all = chat.tokens(&Encoding::O200k);
        let windows = (1..=100).filter_map(|share| {
            let fitted = chat.fit(
                &default_policy(),
                &budget(all * share / 100),
                &Encoding::O200k,
            );
            Some(fitted.ok()?.kept)
        });
        windows.collect::<Vec<_>>()
    };
    let is_complete = |kept: &Vec<usize>| kept.ends_with(&[2, 3, 4, 5, 6, 7, 8]);
    assert!(windows(true).iter().all(is_complete));
    assert!(!windows(false).iter().all(is_complete));
}

#[test]
fn a_server_tool_and_its_result_in_a_later_message_are_one_group() {
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}});
    let found =
        json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
    // A turn that was paused, and a tool of the caller in between.
    let paused = anthropic(vec![
        user(&words(10)),
        assistant(json!([{"type": "text", "text": words(20)}, search.clone()])),
        assistant(json!([found.clone(), {"type": "text", "text": "ok"}])),
        user("Thanks."),
        assistant(json!(words(20))),
        user("Next."),
    ]);
    check_together(&paused, &[1, 2]);
    let between = anthropic(vec![
        user("hi"),
        assistant(json!([search, tool_use("a")])),
        tool_result("a", &words(30)),
        assistant(json!([found.clone(), {"type": "text", "text": "done"}])),
        user("Thanks."),
        assistant(json!(words(20))),
        user("Next."),
    ]);
    check_together(&between, &[1, 2, 3]);
    let chat = parse(&anthropic(vec![
        user("hi"),
        assistant(json!([found])),
        user("x"),
    ]));
    let warnings = chat.warnings(&[0, 1, 2]);
    assert_eq!(warnings[0].kind, WarningKind::ResultWithoutCall);
}

#[test]
fn a_call_by_a_program_of_the_provider_belongs_to_the_program() {
    let run = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {}});
    let mut call = tool_use("a");
    call["caller"] = json!({"type": "code_execution_20250825", "tool_id": "srvtoolu_1"});
    let request = anthropic(vec![
        user(&words(20)),
        assistant(json!([run])),
        assistant(json!([call])),
        tool_result("a", "x"),
        assistant(
            json!([{"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1",
            "content": {"type": "code_execution_result", "stdout": words(20)}}]),
        ),
        user("Thanks."),
        assistant(json!("ok")),
        user("Next."),
    ]);
    check_together(&request, &[1, 2, 3, 4]);
}

#[test]
fn a_window_ends_on_a_message_of_the_model_only_if_the_chat_does() {
    let request = anthropic(vec![
        user(&words(10)),
        assistant(json!("Let me see.")),
        assistant(json!([tool_use("A")])),
        tool_result("A", &words(50)),
    ]);
    check_together(&request, &[1, 2, 3]);
    // A result that comes after an answer.
    let late = anthropic(vec![
        user(&words(10)),
        assistant(json!([tool_use("a"), tool_use("b")])),
        tool_result("a", &words(20)),
        assistant(json!("Wait.")),
        tool_result("b", &words(20)),
    ]);
    check_together(&late, &[1, 2, 3, 4]);
    let prefilled = anthropic(vec![
        user(&words(10)),
        assistant(json!(words(10))),
        user("Give me JSON."),
        assistant(json!("{")),
    ]);
    check_windows(&prefilled);
}

#[test]
fn dropped_cache_breakpoints_are_warned_about() {
    let cached = json!({"role": "user", "content": [
        {"type": "text", "text": words(20), "cache_control": {"type": "ephemeral"}}]});
    let request = anthropic(vec![
        user("hi"),
        assistant(json!("hello")),
        cached,
        assistant(json!(words(20))),
        user("Next."),
    ]);
    let chat = parse(&request);
    let all = chat.tokens(&Encoding::O200k);
    let fitted = chat
        .fit(&default_policy(), &budget(all / 3), &Encoding::O200k)
        .unwrap();
    assert!(!fitted.kept.contains(&2));
    let warnings = fitted.warnings.iter().map(|it| (it.kind, &it.messages[..]));
    let warnings: Vec<_> = warnings.collect();
    assert_eq!(warnings, [(WarningKind::CacheBreakpointDropped, &[2][..])]);
    check_windows_of_cached(&chat);
}

fn check_windows_of_cached(chat: &Chat) {
    let all = chat.tokens(&Encoding::O200k);
    let fitted = chat
        .fit(&default_policy(), &budget(all), &Encoding::O200k)
        .unwrap();
    assert_eq!(fitted.warnings, []);
}

// ---- Markers ----

fn with_marker(chat: &Chat, tokens: i64) -> Result<Fitted<'_>, FitError> {
    let mut settings = single_policy().chat().clone();
    settings.marker = Some("({n} left out)".to_owned());
    let policy = single_policy().to_builder().chat(settings).build().unwrap();
    chat.fit(&policy, &budget(tokens), &Encoding::O200k)
}

#[test]
fn markers_keep_roles_alternating() {
    let openai = {
        let mut messages = vec![json!({"role": "system", "content": "s"}), user("Do it.")];
        for id in ["a", "b", "c", "d"] {
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call(id)]}));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": words(30)}));
        }
        json!({"messages": messages})
    };
    let claude = {
        let mut messages = vec![user("Do it.")];
        for id in ["a", "b", "c", "d"] {
            messages.push(assistant(json!([tool_use(id)])));
            messages.push(tool_result(id, &words(30)));
        }
        anthropic(messages)
    };
    let talk = {
        let mut messages = vec![user("Do it.")];
        for _ in 0..5 {
            messages.push(assistant(json!(words(20))));
            messages.push(user(&words(10)));
        }
        json!({"messages": messages})
    };
    for request in [openai, claude, talk] {
        let chat = parse(&request);
        let all = chat.tokens(&Encoding::O200k);
        let mut marked = 0;
        for share in 5..100 {
            let Ok(fitted) = with_marker(&chat, all * share / 100) else {
                continue;
            };
            let json = fitted.to_json();
            let window = valid::messages(&json);
            for pair in window.windows(2) {
                let role = |message: &Value| message["role"].as_str().unwrap().to_owned();
                let is_same = role(&pair[0]) == role(&pair[1]) && role(&pair[0]) != "tool";
                assert!(!is_same, "{share} %: {json}");
            }
            let objection = valid::objection_to_window(chat.shape(), &request.to_string(), &json);
            assert_eq!(objection, None);
            for marker in &fitted.markers {
                assert!(json.contains(&marker.text), "{json}");
            }
            marked += fitted.markers.len();
            let again = Chat::parse(&json, Some(chat.shape())).unwrap();
            assert_eq!(
                again.tokens(&Encoding::O200k),
                fitted.tokens_after,
                "{json}"
            );
            assert!(fitted.tokens_after <= all * share / 100);
        }
        assert!(marked > 0);
    }
}

#[test]
fn the_text_of_a_merged_marker_can_be_replaced() {
    let mut messages = vec![user("Do it.")];
    for id in ["a", "b", "c", "d"] {
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call(id)]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": words(30)}));
    }
    let chat = parse(&json!({"messages": messages}));
    let mut fitted = with_marker(&chat, 150).unwrap();
    assert_eq!(fitted.markers[0].merged_into, Some(0));
    fitted.set_marker_text(0, "A summary of the first steps.", &Encoding::O200k);
    let json = fitted.to_json();
    let window = valid::messages(&json);
    assert_eq!(
        window[0]["content"],
        "Do it.\n\nA summary of the first steps."
    );
    let again = Chat::parse(&json, None).unwrap();
    assert_eq!(again.tokens(&Encoding::O200k), fitted.tokens_after);
}

// ---- Presets ----

#[test]
fn a_required_result_larger_than_the_budget_is_shortened() {
    let request = json!({"messages": [
        user("hi"),
        {"role": "assistant", "content": null, "tool_calls": [call("a")]},
        {"role": "tool", "tool_call_id": "a", "content": words(700)},
        {"role": "assistant", "content": "ok"},
        user("bye"),
    ]});
    let chat = parse(&request);
    let policy = Policy::preset("tool-use").unwrap();
    let fitted = chat.fit(&policy, &budget(500), &Encoding::O200k).unwrap();
    assert!(fitted.kept.contains(&2), "{:?}", fitted.kept);
    assert_eq!(fitted.shortened[0].index, 2);
}
