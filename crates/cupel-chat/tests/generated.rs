//! Random sessions in every format, truncated after each message, at several budgets.

use cupel::{
    ChatSettings, ChronologicalPlacer, ContextBudget, GreedySlice, KnapsackSlice, Policy,
    RecencyScorer, Shorten, ToolResults,
};
use cupel_chat::{
    Chat, Encoding, FitError, Heuristic, Shape, TokenCounter, newest_policy, single_policy,
};
use cupel_conformance::testing;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::characters::Characters;
use crate::{renderers, valid, windows};

pub(crate) const SHAPES: [Shape; 10] = [
    Shape::OpenAi,
    Shape::Responses,
    Shape::Anthropic,
    Shape::LangChain,
    Shape::Gemini,
    Shape::Bedrock,
    Shape::Vercel,
    Shape::Ollama,
    Shape::ShareGpt,
    Shape::Cohere,
];

/// A step of a session.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    User(String),
    Say(String),
    Tools {
        /// Arguments and result of every call.
        calls: Vec<(String, String)>,
        think: bool,
        /// Results are in reverse order.
        reversed: bool,
        /// The last result comes after the next step.
        late: bool,
        /// The user adds text to the results, if the format allows it.
        with_text: bool,
        /// Ids are reused.
        reused: bool,
    },
}

pub(crate) fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{1,8}( [a-z]{1,8}){0,30}",
        1 => "[a-z ]{200,900}",
        1 => "[あ-ん一-龠é\"\\\\\n🦀]{1,40}",
    ]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let flags = (
        any::<bool>(),
        any::<bool>(),
        prop::bool::weighted(0.3),
        any::<bool>(),
        any::<bool>(),
    );
    prop_oneof![
        3 => words().prop_map(Step::User),
        3 => words().prop_map(Step::Say),
        4 => (vec((words(), words()), 1..4), flags).prop_map(
            |(calls, (think, reversed, late, with_text, reused))| Step::Tools {
                calls,
                think,
                reversed,
                late,
                with_text,
                reused,
            }
        ),
    ]
}

/// Renders a session in a format.
pub(crate) fn render(shape: Shape, steps: &[Step]) -> Vec<Value> {
    if let Some(messages) = renderers::render(shape, steps) {
        return messages;
    }
    let mut messages = vec![];
    if shape != Shape::Anthropic {
        messages.push(message(shape, "system", "Be helpful."));
    }
    let mut late: Vec<Value> = vec![];
    for (number, step) in steps.iter().enumerate() {
        let held = std::mem::take(&mut late);
        match step {
            Step::User(text) => messages.push(message(shape, "user", text)),
            Step::Say(text) => messages.push(message(shape, "assistant", text)),
            Step::Tools {
                calls,
                think,
                reversed,
                late: is_late,
                with_text,
                reused,
            } => {
                let id = |index: usize| match reused {
                    true => format!("reused-{index}"),
                    false => format!("call-{number}-{index}"),
                };
                messages.extend(calls_of(shape, calls, *think, &id));
                let mut results = results_of(shape, calls, *with_text, &id);
                if *reversed {
                    results.reverse();
                }
                if *is_late {
                    late.extend(results.pop());
                }
                messages.extend(results);
            }
        }
        messages.extend(held);
    }
    messages.extend(late);
    messages
}

fn message(shape: Shape, role: &str, text: &str) -> Value {
    match shape {
        Shape::Responses if role == "assistant" => {
            json!({"type": "message", "role": role, "id": "msg", "content": [{"type": "output_text", "text": text}]})
        }
        Shape::Anthropic => json!({"role": role, "content": [{"type": "text", "text": text}]}),
        Shape::LangChain => {
            let kind = match role {
                "user" => "human",
                "assistant" => "ai",
                other => other,
            };
            json!({"type": kind, "data": {"content": text, "response_metadata": {"n": 0.1}}})
        }
        _ => json!({"role": role, "content": text, "x": 1}),
    }
}

/// Returns the tool of a call with these arguments: the settings of [`tool_results`] name some.
pub(crate) fn tool(arguments: &str) -> &'static str {
    const TOOLS: [&str; 6] = ["f", "g", "wait", "read_page", "log", "todo"];
    TOOLS[arguments.len() % TOOLS.len()]
}

/// Returns a policy that treats the results of some tools in each way.
pub(crate) fn tool_results(policy: &Policy) -> Policy {
    let settings = [
        ("wait", ToolResults::Never),
        ("read_*", ToolResults::ByPath),
        ("log", ToolResults::ShortenFirst),
        ("todo", ToolResults::Keep),
    ];
    let settings = settings.map(|(tool, how)| (tool.to_owned(), how));
    with(policy, |chat| chat.tool_results = settings.into())
}

fn calls_of(
    shape: Shape,
    calls: &[(String, String)],
    think: bool,
    id: &dyn Fn(usize) -> String,
) -> Vec<Value> {
    let calls = calls.iter().enumerate();
    match shape {
        Shape::OpenAi => {
            let calls: Vec<Value> = calls
                .map(|(index, (arguments, _))| json!({"id": id(index), "type": "function", "function": {"name": tool(arguments), "arguments": arguments}}))
                .collect();
            vec![json!({"role": "assistant", "content": null, "tool_calls": calls})]
        }
        Shape::Responses => {
            let thought = think.then(|| json!({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]}));
            let calls = calls.map(|(index, (arguments, _))| {
                json!({"type": "function_call", "call_id": id(index), "name": tool(arguments), "arguments": arguments})
            });
            thought.into_iter().chain(calls).collect()
        }
        Shape::Anthropic => {
            let thought =
                think.then(|| json!({"type": "thinking", "thinking": "hm", "signature": "x"}));
            let calls = calls.map(|(index, (arguments, _))| {
                json!({"type": "tool_use", "id": id(index), "name": tool(arguments), "input": {"a": arguments}})
            });
            let content: Vec<Value> = thought.into_iter().chain(calls).collect();
            vec![json!({"role": "assistant", "content": content})]
        }
        _ => {
            let calls: Vec<Value> = calls
                .map(|(index, (arguments, _))| json!({"id": id(index), "name": tool(arguments), "args": {"a": arguments}, "type": "tool_call"}))
                .collect();
            vec![json!({"type": "ai", "data": {"content": "", "tool_calls": calls}})]
        }
    }
}

fn results_of(
    shape: Shape,
    calls: &[(String, String)],
    with_text: bool,
    id: &dyn Fn(usize) -> String,
) -> Vec<Value> {
    let results = calls.iter().enumerate();
    let mut results: Vec<Value> = results
        .map(|(index, (_, result))| match shape {
            Shape::OpenAi => json!({"role": "tool", "tool_call_id": id(index), "content": result}),
            Shape::Responses => json!({"type": "function_call_output", "call_id": id(index), "output": result}),
            Shape::Anthropic => json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id(index), "content": result}]}),
            _ => json!({"type": "tool", "data": {"tool_call_id": id(index), "content": result}}),
        })
        .collect();
    if shape == Shape::Anthropic && with_text {
        let said = json!({"type": "text", "text": "and hurry"});
        if let Some(blocks) = results[0]["content"].as_array_mut() {
            blocks.push(said);
        }
    }
    results
}

pub(crate) fn document(shape: Shape, messages: &[Value]) -> String {
    let document = match shape {
        Shape::Responses => json!({"instructions": "Be helpful.", "input": messages}),
        Shape::Anthropic => json!({"system": "Be helpful.", "max_tokens": 9, "messages": messages}),
        _ => renderers::document(shape, messages).unwrap_or_else(|| json!({"messages": messages})),
    };
    serde_json::to_string_pretty(&document).unwrap()
}

/// Checks one chat at one budget; returns the number of dropped messages.
fn check_fit(
    shape: Shape,
    input: &[Value],
    policy: &Policy,
    tokens: i64,
    counter: &dyn TokenCounter,
) -> Result<usize, TestCaseError> {
    let text = document(shape, input);
    let chat = Chat::parse(&text, Some(shape)).unwrap();
    let budget = ContextBudget::with_target(tokens, tokens).unwrap();
    let fitted = chat.fit(policy, &budget, counter);
    if tokens >= chat.tokens(counter) && !policy.chat().strict {
        // A knapsack leaves out messages of value 0 even if they fit.
        let is_knapsack = format!("{policy:?}").contains("Knapsack");
        match &fitted {
            Ok(fitted) if fitted.dropped.is_empty() => {
                prop_assert_eq!(fitted.to_json(), text);
                let objection = valid::objection(shape, input);
                prop_assert_eq!(fitted.warnings.is_empty(), objection.is_none());
                return Ok(0);
            }
            fitted => prop_assert!(is_knapsack, "{:?}", fitted),
        }
    }
    let fitted = match fitted {
        Ok(fitted) => fitted,
        Err(FitError::TooLarge {
            available,
            needed,
            overhead,
            messages,
            ..
        }) => {
            prop_assert!(needed > available && available == tokens);
            let sum: i64 = messages.iter().map(|message| message.tokens).sum();
            prop_assert_eq!(needed, overhead + sum);
            return Ok(0);
        }
        // Only there can a user turn belong to an incomplete call, or the chat lack a user turn.
        Err(FitError::InvalidMessage { .. } | FitError::NoUserTurn(_))
            if shape == Shape::Anthropic || renderers::alternates(shape) =>
        {
            return Ok(0);
        }
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    let output = fitted.to_json();
    let kept = valid::messages(&output);
    let objection = valid::objection_to_window(shape, &text, &output);
    prop_assert_eq!(objection, None, "{}", output);
    prop_assert!(valid::is_subsequence(&kept, input));
    prop_assert_eq!(kept.len() + fitted.dropped.len(), input.len());
    if let Some(last) = input
        .iter()
        .rfind(|message| valid::is_user_turn(shape, message))
    {
        prop_assert_eq!(
            kept.iter()
                .rfind(|message| valid::is_user_turn(shape, message)),
            Some(last)
        );
    }
    let again = Chat::parse(&output, None).unwrap();
    // Texts of these formats are texts of OpenAI Chat.
    let is_refined = matches!(shape, Shape::Cohere | Shape::Ollama | Shape::Vercel);
    if !kept.is_empty() && kept.len() > 1 && !(is_refined && again.shape() == Shape::OpenAi) {
        prop_assert_eq!(again.shape(), shape);
    }
    let again = Chat::parse(&output, Some(shape)).unwrap();
    prop_assert_eq!(again.tokens(counter), fitted.tokens_after);
    prop_assert!(
        fitted.tokens_after <= tokens,
        "{} > {}",
        fitted.tokens_after,
        tokens
    );
    prop_assert_eq!(chat.tokens(counter), fitted.tokens_before);
    let report = &fitted.report;
    let sum: i64 = report
        .included
        .iter()
        .map(|entry| entry.item.tokens())
        .sum();
    prop_assert_eq!(sum, fitted.tokens_after);
    Ok(fitted.dropped.len())
}

/// Returns a policy that drops invalid messages even if the chat fits.
fn strict(policy: &Policy) -> Policy {
    let mut settings = policy.chat().clone();
    settings.strict = true;
    policy.to_builder().chat(settings).build().unwrap()
}

fn check(cases: u32, counter: &dyn TokenCounter, policies: &[Policy]) {
    // A case is hundreds of fits: one in ten of the cases that are asked for.
    let cases = testing::cases(10 * cases).div_ceil(10);
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let dropped = std::cell::Cell::new(0_usize);
    TestRunner::new(config)
        .run(&vec(step(), 1..12), |steps| {
            for shape in SHAPES {
                let messages = render(shape, &steps);
                for end in 1..=messages.len() {
                    let prefix = &messages[..end];
                    let chat = Chat::parse(&document(shape, prefix), Some(shape)).unwrap();
                    let all = chat.tokens(counter);
                    for policy in policies {
                        check_fit(shape, prefix, &strict(policy), all, counter)?;
                        for share in [10, 35, 70, 100] {
                            let tokens = all * share / 100;
                            let count = check_fit(shape, prefix, policy, tokens, counter)?;
                            dropped.set(dropped.get() + count);
                        }
                    }
                }
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(
        dropped.get() > 20 * cases as usize,
        "the budgets are too wide"
    );
}

#[test]
fn fitted_sessions_are_valid_within_the_budget_and_keep_the_last_user_turn() {
    check(60, &Heuristic, &[newest_policy()]);
}

#[test]
fn fitted_sessions_are_valid_with_exact_counts() {
    check(8, &Encoding::O200k, &[newest_policy()]);
}

#[test]
fn fitted_sessions_are_valid_under_any_policy() {
    let greedy = Policy::new(RecencyScorer, GreedySlice, ChronologicalPlacer);
    let knapsack = Policy::new(
        RecencyScorer,
        KnapsackSlice::new(1).unwrap(),
        ChronologicalPlacer,
    );
    check(12, &Heuristic, &[greedy, knapsack]);
}

/// Checks the sweep of a chat against one fit at the first and the last budget of each step.
fn check_sweep(shape: Shape, messages: &[Value], policy: &Policy) -> Result<(), TestCaseError> {
    let chat = Chat::parse(&document(shape, messages), Some(shape)).unwrap();
    let all = chat.tokens(&Heuristic);
    let budget = |tokens| ContextBudget::with_target(tokens, tokens).unwrap();
    let Ok(candidates) = chat.candidates_for(policy, None, &Heuristic) else {
        return Ok(());
    };
    if chat.check(&candidates, &budget(all)).is_err() {
        return Ok(());
    }
    let pipeline = chat.policy_over(policy, &candidates);
    let sweep = pipeline
        .sweep_sampled(&candidates, &budget(all), 1..=all, 1)
        .map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert!(sweep.exact, "{}: the slicer has no sweep", shape);
    for step in &sweep.steps {
        for tokens in [step.from, step.to] {
            let fitted = chat.fit(policy, &budget(tokens), &Heuristic);
            prop_assert_eq!(
                fitted.is_err(),
                step.error.is_some(),
                "{} at {}",
                shape,
                tokens
            );
            let Ok(fitted) = fitted else { continue };
            let is_in = |intervals: &[(i64, i64)]| {
                intervals
                    .iter()
                    .any(|(from, to)| (*from..=*to).contains(&tokens))
            };
            let swept = sweep.items.iter().filter(|item| is_in(&item.intervals));
            let swept: Vec<usize> = swept
                .map(|item| item.index)
                .filter(|&index| index < chat.len())
                .collect();
            prop_assert_eq!(swept, fitted.kept, "{} at {}", shape, tokens);
        }
    }
    Ok(())
}

#[test]
fn the_sweep_of_a_chat_equals_one_fit_per_budget() {
    let config = Config {
        // A case is hundreds of fits: one in ten of the cases that are asked for.
        cases: testing::cases(200).div_ceil(10),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    let greedy = Policy::new(RecencyScorer, GreedySlice, ChronologicalPlacer);
    TestRunner::new(config)
        .run(&vec(step(), 1..8), |steps| {
            for shape in SHAPES {
                let messages = render(shape, &steps);
                for policy in [&newest_policy(), &greedy, &single_policy()] {
                    check_sweep(shape, &messages, policy)?;
                    check_sweep(shape, &messages[..messages.len() - 1], policy)?;
                }
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

/// Returns a policy with changed settings for chats.
pub(crate) fn with(policy: &Policy, change: impl FnOnce(&mut ChatSettings)) -> Policy {
    let mut settings = policy.chat().clone();
    change(&mut settings);
    policy.to_builder().chat(settings).build().unwrap()
}

/// Returns the policies whose windows are compared.
pub(crate) fn policies() -> Vec<Policy> {
    let default = single_policy();
    let marker = "[{n} messages are left out]";
    let changed = [
        with(&default, |chat| chat.marker = Some(marker.to_owned())),
        with(&default, |chat| chat.max_result = Some(70)),
        with(&default, |chat| chat.keep_task = false),
        with(&default, |chat| chat.shorten = Shorten::Old),
        with(&default, |chat| chat.pin = vec!["0".to_owned()]),
        tool_results(&default),
        strict(&default),
        default,
    ];
    changed.into()
}

#[test]
fn a_window_is_the_same_for_one_budget_as_for_any_and_grows_with_it() {
    let config = Config {
        // A case is thousands of fits: one in ten of the cases that are asked for.
        cases: testing::cases(80).div_ceil(10),
        failure_persistence: None,
        max_shrink_iters: 300,
        ..Config::default()
    };
    let policies = policies();
    TestRunner::new(config)
        .run(&vec(step(), 1..10), |mut steps| {
            // Some calls are the same.
            for step in &mut steps {
                if let Step::Tools { calls, .. } = step {
                    for (arguments, _) in calls {
                        if arguments.len() % 2 == 0 {
                            "again".clone_into(arguments);
                        }
                    }
                }
            }
            for shape in SHAPES {
                let messages = render(shape, &steps);
                let chat = Chat::parse(&document(shape, &messages), Some(shape)).unwrap();
                let all = chat.tokens(&Characters);
                let budgets = (0..20).flat_map(|part| [all * part / 20, all * part / 20 + 1]);
                for policy in &policies {
                    windows::check(&chat, policy, &Characters, budgets.clone())
                        .map_err(|problem| TestCaseError::fail(format!("{shape}: {problem}")))?;
                }
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}
