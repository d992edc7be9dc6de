//! Random sessions with everything that the rules of Anthropic and of the Responses API are about, truncated
//! after each message, at several budgets.

use cupel::ContextBudget;
use cupel_chat::{Chat, FitError, Heuristic, default_policy, newest_policy, single_policy};
use cupel_conformance::testing;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::valid;

/// A step of a session: what happens, and how many words its texts have.
type Step = (u8, usize);

fn words(count: usize) -> String {
    "word ".repeat(count + 1)
}

/// Renders a step as Anthropic messages. Turns of the user and of the model alternate.
fn anthropic(number: usize, (kind, size): Step) -> Vec<Value> {
    let text = || words(size);
    let user = |content: Value| json!({"role": "user", "content": content});
    let assistant = |content: Value| json!({"role": "assistant", "content": content});
    let say = || json!({"type": "text", "text": text()});
    let thought = json!({"type": "thinking", "thinking": text(), "signature": "s"});
    let (id, server) = (format!("toolu_{number}"), format!("srvtoolu_{number}"));
    let mut call = json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let result = user(json!([{"type": "tool_result", "tool_use_id": id, "content": text()}]));
    let search =
        json!({"type": "server_tool_use", "id": server, "name": "web_search", "input": {"q": 1}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": server, "content": []});
    match kind {
        // A question, an answer.
        0 | 1 => vec![user(json!(text()))],
        2 => vec![assistant(json!(text()))],
        // A call, with thinking in the same message, in another one, or none.
        3 => vec![assistant(json!([thought, call])), result],
        4 => vec![
            assistant(json!([thought])),
            assistant(json!([call])),
            result,
        ],
        5 => vec![assistant(json!([say(), call])), result],
        // A tool of the provider: in one message, paused, and with a call in between.
        6 => vec![assistant(json!([search, found, say()]))],
        7 => vec![
            assistant(json!([say(), search])),
            assistant(json!([found, say()])),
        ],
        8 => vec![
            assistant(json!([search, call])),
            result,
            assistant(json!([found, say()])),
        ],
        // A call by a program of the provider.
        9 => {
            call["caller"] = json!({"type": "code_execution_20250825", "tool_id": server});
            vec![
                assistant(json!([search])),
                assistant(json!([call])),
                result,
                assistant(json!([found])),
            ]
        }
        // A question with an instruction, and its answer.
        10 => vec![
            user(json!(text())),
            json!({"role": "system", "content": "Be brief."}),
            assistant(json!("ok")),
        ],
        _ => vec![assistant(
            json!([{"type": "compaction", "content": text()}]),
        )],
    }
}

/// Renders a step as items of the Responses API.
fn responses(number: usize, (kind, size): Step) -> Vec<Value> {
    let text = || words(size);
    let id = format!("call_{number}");
    let call = |kind: &str| json!({"type": kind, "call_id": id, "name": "f", "arguments": "{}", "action": {}});
    let output = |kind: &str| json!({"type": kind, "call_id": id, "output": text()});
    let reasoning = || json!({"type": "reasoning", "id": "rs", "summary": []});
    let reference = |id: &str| json!({"type": "item_reference", "id": id});
    let request = format!("mcpr_{number}");
    match kind {
        0 | 1 => vec![json!({"role": "user", "content": text()})],
        2 => vec![json!({"type": "message", "role": "assistant", "content": text()})],
        3 => vec![
            reasoning(),
            call("function_call"),
            output("function_call_output"),
        ],
        4 => vec![
            reasoning(),
            reference("fc_1"),
            output("function_call_output"),
        ],
        5 => vec![
            reference("rs_1"),
            reference("fc_1"),
            output("function_call_output"),
        ],
        6 => vec![
            call("shell_call"),
            json!({"type": "shell_call_output", "call_id": id,
                "output": [{"stdout": text(), "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}),
        ],
        7 => vec![
            json!({"type": "tool_search_call", "call_id": null, "arguments": {}}),
            json!({"type": "tool_search_output", "call_id": null, "tools": [{"name": text()}]}),
            call("function_call"),
            output("function_call_output"),
        ],
        8 => vec![
            json!({"type": "mcp_approval_request", "id": request, "name": "f", "arguments": "{}", "server_label": "s"}),
            json!({"type": "mcp_approval_response", "approval_request_id": request, "approve": true}),
            json!({"type": "mcp_call", "id": "m", "approval_request_id": request, "name": "f", "output": text()}),
        ],
        9 => {
            let mut inner = call("function_call");
            inner["caller"] = json!({"type": "program", "caller_id": format!("p_{number}")});
            vec![
                json!({"type": "program", "call_id": format!("p_{number}"), "code": text()}),
                inner,
                output("function_call_output"),
                json!({"type": "program_output", "call_id": format!("p_{number}"), "result": "1"}),
            ]
        }
        10 => vec![json!({"type": "additional_tools", "role": "developer", "tools": []})],
        _ => vec![json!({"type": "compaction", "id": "c", "encrypted_content": "A".repeat(size)})],
    }
}

/// Checks a request at several budgets: windows are valid and within the budget, a chat that fits is not
/// changed, and the sweep agrees.
fn check(request: &str) -> Result<usize, TestCaseError> {
    let counter = &Heuristic;
    let fail = |error: FitError| TestCaseError::fail(format!("{error}: {request}"));
    let chat =
        Chat::parse(request, None).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let all = chat.tokens(counter);
    let budget = |tokens| ContextBudget::with_target(tokens, tokens).unwrap();
    let mut windows = 0;
    for policy in [default_policy(), single_policy(), newest_policy()] {
        for share in [15, 30, 45, 60, 75, 90, 100] {
            let tokens = all * share / 100;
            let fitted = match chat.fit(&policy, &budget(tokens), counter) {
                // Also: the last user turn has an open call, or nothing can be the first message.
                Err(
                    FitError::TooLarge { .. }
                    | FitError::InvalidMessage { .. }
                    | FitError::NoUserTurn(_),
                ) if tokens < all => {
                    continue;
                }
                fitted => fitted.map_err(fail)?,
            };
            windows += 1;
            let json = fitted.to_json();
            prop_assert!(fitted.tokens_after <= tokens);
            let objection = valid::objection_to_window(chat.shape(), request, &json);
            if tokens < all {
                prop_assert_eq!(objection, None, "{} of {}: {}", tokens, all, json);
            } else {
                let objection =
                    objection.or_else(|| valid::objection(chat.shape(), &valid::messages(&json)));
                prop_assert_eq!(
                    fitted.warnings.is_empty(),
                    objection.is_none(),
                    "{:?}",
                    objection
                );
                prop_assert_eq!(&json, request);
            }
        }
        let candidates = chat.candidates_for(&policy, None, counter).map_err(fail)?;
        let pipeline = chat.policy_over(&policy, &candidates);
        let sweep = pipeline.sweep_sampled(&candidates, &budget(all), 1..=all, 1);
        let sweep = sweep.map_err(|error| TestCaseError::fail(error.to_string()))?;
        for step in sweep.steps.iter().filter(|_| sweep.exact) {
            let fitted = chat.fit_candidates(&policy, &budget(step.from), &candidates, counter);
            prop_assert_eq!(fitted.is_err(), step.error.is_some(), "at {}", step.from);
        }
    }
    Ok(windows)
}

fn run(cases: u32, render: fn(usize, Step) -> Vec<Value>, document: fn(Value, bool) -> Value) {
    let config = Config {
        cases: testing::cases(cases),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let windows = std::cell::Cell::new(0);
    let steps = vec((0..12_u8, 0..40_usize), 1..10);
    TestRunner::new(config)
        .run(&(steps, any::<bool>()), |(steps, flag)| {
            let steps = steps.iter().enumerate();
            let messages = steps.flat_map(|(number, step)| render(number, *step));
            let messages: Vec<Value> = messages.collect();
            for end in 1..=messages.len() {
                let request = document(messages[..end].to_vec().into(), flag);
                windows.set(windows.get() + check(&request.to_string())?);
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(windows.get() > 20, "the budgets are too small");
}

fn anthropic_request(messages: Value, thinking: bool) -> Value {
    let mut request = json!({"model": "claude-opus-5", "max_tokens": 9, "system": "s"});
    if thinking {
        request["thinking"] = json!({"type": "adaptive"});
    }
    request["messages"] = messages;
    request
}

#[test]
fn anthropic_windows_follow_the_rules_of_the_api() {
    run(12, anthropic, anthropic_request);
}

#[test]
fn a_compaction_in_a_turn_of_the_model_opens_a_window() {
    // Found at random: the compaction was in a group with the message before it.
    for kinds in [&[6, 11, 3, 11][..], &[6, 11, 3, 3, 11]] {
        let steps = kinds.iter().enumerate();
        let messages: Vec<Value> = steps
            .flat_map(|(number, &kind)| anthropic(number, (kind, 0)))
            .collect();
        let request = anthropic_request(messages.into(), false).to_string();
        check(&request).unwrap();
        let chat = Chat::parse(&request, None).unwrap();
        let tokens = chat.tokens(&Heuristic) - 1;
        let budget = ContextBudget::with_target(tokens, tokens).unwrap();
        let fitted = chat.fit(&default_policy(), &budget, &Heuristic).unwrap();
        assert_eq!(fitted.kept[0], 1);
    }
}

#[test]
fn no_window_starts_on_a_call_that_a_compaction_keeps() {
    let compaction = || anthropic(9, (11, 0)).remove(0);
    let mut messages = anthropic(0, (7, 3));
    messages.insert(1, compaction());
    messages.push(compaction());
    let request = anthropic_request(messages.into(), false).to_string();
    check(&request).unwrap();
    let chat = Chat::parse(&request, None).unwrap();
    let tokens = chat.tokens(&Heuristic) - 1;
    let budget = ContextBudget::with_target(tokens, tokens).unwrap();
    // The call is the first mandatory message, and no window can start on it.
    let error = chat
        .fit(&default_policy(), &budget, &Heuristic)
        .unwrap_err();
    assert!(matches!(error, FitError::NoUserTurn(_)), "{error}");
}

#[test]
fn responses_windows_follow_the_rules_of_the_api() {
    run(12, responses, |items, _| {
        let mut request = json!({"model": "gpt-5"});
        request["input"] = items;
        request
    });
}
