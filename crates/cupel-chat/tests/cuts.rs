//! The laws of a policy with cuts: what its windows have in common while a chat grows.

use cupel::{Policy, Shorten};
use cupel_chat::{Chat, Encoding, FitError, FitState, Fitter, Heuristic, Shape, default_policy};
use cupel_conformance::testing;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::agents::{agent_loop, budget, chat_of, conversation, newest_call, steps};
use crate::generated::{SHAPES, document, render, tool_results, with};
use crate::valid;

fn policy() -> Policy {
    default_policy()
}

fn fit(messages: &[Value], tokens: i64) -> String {
    let chat = chat_of(messages);
    let fitted = chat.fit(&policy(), &budget(tokens), &Encoding::O200k);
    let fitted = fitted.unwrap_or_else(|error| panic!("{error}"));
    assert!(fitted.tokens_after <= tokens);
    fitted.to_json()
}

/// The requests of a session: the messages before each answer.
fn requests(messages: &[Value]) -> impl Iterator<Item = &[Value]> {
    let is_answer = |index: &usize| messages[*index]["role"] == "assistant";
    let ends = (1..messages.len()).filter(is_answer);
    ends.chain([messages.len()]).map(|end| &messages[..end])
}

#[test]
fn between_two_cuts_a_window_starts_with_the_one_before() {
    for (messages, tokens) in [(agent_loop(60, 6), 3_000), (conversation(80), 5_000)] {
        let windows = requests(&messages).map(|it| valid::messages(&fit(it, tokens)));
        let windows: Vec<Vec<Value>> = windows.collect();
        let is_cut = |pair: &&[Vec<Value>]| !pair[1].starts_with(&pair[0]);
        let cuts = windows.windows(2).filter(is_cut).count();
        // Each cut makes room for at least the part of the budget above the mark, and the chat needs all of its
        // tokens only once.
        let whole = chat_of(&messages).tokens(&Encoding::O200k);
        let mark = 0.12;
        let most = 1.0 + 2.0 * whole as f64 / (mark * tokens as f64);
        assert!((1.0..=most).contains(&(cuts as f64)), "{cuts} of {most}");
        assert!(cuts * 5 < windows.len() * 2, "{cuts} of {}", windows.len());
    }
}

#[test]
fn user_turns_whose_answers_were_dropped_have_a_marker_between_them() {
    let turn = |index: usize| {
        // A marker costs more than the short answers, so those stay instead.
        let answer = match index % 4 {
            0 => "Yes.".to_owned(),
            _ => "It is a long way along the harbor. ".repeat(15),
        };
        [
            json!({"role": "user", "content": format!("Question {index}: is it far?")}),
            json!({"role": "assistant", "content": answer}),
        ]
    };
    let last = turn(30).into_iter().take(1);
    let messages: Vec<Value> = (0..30).flat_map(turn).chain(last).collect();
    let mut most = 0;
    for tokens in (160..500).step_by(17) {
        for request in requests(&messages) {
            let window = valid::messages(&fit(request, tokens));
            let is_user = |message: &Value| message["role"] == "user";
            let meets = |pair: &[Value]| is_user(&pair[0]) && is_user(&pair[1]);
            assert!(!window.windows(2).any(meets), "{tokens}: {window:#?}");
            let is_marker =
                |message: &&Value| message["content"].as_str().unwrap().ends_with(" omitted]");
            let markers = window.iter().filter(is_marker);
            most = most.max(markers.filter(|it| it["role"] == "assistant").count());
        }
    }
    // A single marker would be reserved for any window.
    assert!(most > 2, "{most}");
}

#[test]
fn a_session_with_a_state_and_a_caller_without_one_get_the_same_bytes() {
    for (messages, tokens) in [(agent_loop(40, 6), 2_500), (conversation(40), 1_500)] {
        let mut fitter = Fitter::new(policy());
        for request in requests(&messages) {
            let chat = chat_of(request);
            let window = fitter
                .fit(&chat, &budget(tokens), &Encoding::O200k)
                .unwrap();
            assert_eq!(window.fitted.to_json(), fit(request, tokens));
        }
        // In any order, and with another budget in between.
        let requests: Vec<&[Value]> = requests(&messages).collect();
        for request in requests.iter().rev().step_by(3) {
            let chat = chat_of(request);
            let other = budget(tokens + 700);
            fitter.fit(&chat, &other, &Encoding::O200k).unwrap();
            let window = fitter
                .fit(&chat, &budget(tokens), &Encoding::O200k)
                .unwrap();
            assert_eq!(window.fitted.to_json(), fit(request, tokens));
        }
    }
}

/// A request of a session: the length of the history and the budget in percent, whether the first user turn is
/// another one, and whether another process goes on from the state.
type Turn = (usize, i64, bool, bool);

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = (
        20..=100_usize,
        prop::sample::select(vec![20, 45, 80]),
        any::<bool>(),
        any::<bool>(),
    );
    prop::collection::vec(turn, 1..8)
}

/// Returns the histories of a session in a format: the messages, and the same with another first user turn.
fn histories(shape: Shape, steps: &[crate::generated::Step]) -> [Vec<Value>; 2] {
    let messages = render(shape, steps);
    let mut edited = messages.clone();
    let user = edited.iter().position(|it| it["role"] == "user");
    if let Some(user) = user {
        // A field that clients add: the bytes differ, the rules do not.
        edited[user]["metadata"] = json!("edited");
    }
    [messages, edited]
}

#[test]
fn a_state_changes_no_window_in_any_order_of_requests_in_any_process() {
    let config = Config {
        // A case is a hundred fits: one in ten of the cases that are asked for.
        cases: testing::cases(60).div_ceil(10),
        failure_persistence: None,
        max_shrink_iters: 60,
        ..Config::default()
    };
    let limited = with(&policy(), |it| it.max_result = Some(60));
    let run = |steps: &[crate::generated::Step], turns: &[Turn]| {
        let cases = SHAPES.into_iter().flat_map(|it| {
            let limited = limited.clone();
            [(it, policy()), (it, limited), (it, tool_results(&policy()))]
        });
        for (shape, policy) in cases {
            let histories = histories(shape, steps);
            let mut fitter = Fitter::new(policy.clone());
            for &(length, share, is_edited, is_resumed) in turns {
                let history = &histories[usize::from(is_edited)];
                let end = (history.len() * length).div_ceil(100);
                let chat = Chat::parse(&document(shape, &history[..end]), Some(shape)).unwrap();
                let budget = budget(chat.tokens(&Heuristic) * share / 100);
                if is_resumed {
                    let state = FitState::from_json(&fitter.state().to_json()).unwrap();
                    fitter = Fitter::resume(policy.clone(), state);
                }
                let alone = chat
                    .fit(&policy, &budget, &Heuristic)
                    .map(|it| it.to_json());
                let window = fitter.fit(&chat, &budget, &Heuristic);
                let window = window.map(|it| it.fitted.to_json());
                prop_assert_eq!(window, alone, "{}", shape);
            }
        }
        Ok(())
    };
    TestRunner::new(config)
        .run(&(steps(), turns()), |(steps, turns)| run(&steps, &turns))
        .unwrap_or_else(|error| panic!("{error}"));
}

/// Sets a breakpoint of the prompt cache on a message, as a client of the format does.
fn set_breakpoint(shape: Shape, message: &mut Value) {
    match shape {
        Shape::Anthropic => {
            // A string has no place for it.
            if let Value::String(text) = &message["content"] {
                message["content"] = json!([{"type": "text", "text": text}]);
            }
            let blocks = message["content"].as_array_mut().unwrap();
            blocks.last_mut().unwrap()["cache_control"] = json!({"type": "ephemeral"});
        }
        Shape::Bedrock => {
            let blocks = message["content"].as_array_mut().unwrap();
            blocks.push(json!({"cachePoint": {"type": "default"}}));
        }
        Shape::Vercel => {
            let options = json!({"anthropic": {"cacheControl": {"type": "ephemeral"}}});
            message["providerOptions"] = options;
        }
        _ => unreachable!("{shape} has no breakpoints"),
    }
}

/// A tool loop of a format: the task, then calls with their results.
pub(crate) fn marked_loop(shape: Shape, steps: usize) -> Vec<Value> {
    let log = "a line of the log\n".repeat(40);
    let mut messages = vec![match shape {
        Shape::Bedrock => json!({"role": "user", "content": [{"text": "Why does it fail?"}]}),
        _ => json!({"role": "user", "content": "Why does it fail?"}),
    }];
    for step in 0..steps {
        let (id, log) = (format!("c{step}"), format!("{step}\n{log}"));
        messages.extend(match shape {
            Shape::Anthropic => [
                json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "log", "input": {"n": step}}]}),
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": log}]}),
            ],
            Shape::Bedrock => [
                json!({"role": "assistant", "content": [{"toolUse": {"toolUseId": id, "name": "log", "input": {"n": step}}}]}),
                json!({"role": "user", "content": [{"toolResult": {"toolUseId": id, "content": [{"text": log}]}}]}),
            ],
            _ => [
                json!({"role": "assistant", "content": [{"type": "tool-call", "toolCallId": id, "toolName": "log", "input": {"n": step}}]}),
                json!({"role": "tool", "content": [{"type": "tool-result", "toolCallId": id, "toolName": "log", "output": {"type": "text", "value": log}}]}),
            ],
        });
    }
    messages
}

#[test]
fn a_breakpoint_that_moves_is_no_edit_and_does_not_end_the_prefix() {
    for shape in [Shape::Anthropic, Shape::Bedrock, Shape::Vercel] {
        let messages = marked_loop(shape, 40);
        let (mut plain, mut marked) = (Fitter::new(policy()), Fitter::new(policy()));
        let mut shortened = 0;
        for request in requests(&messages) {
            let fit = |fitter: &mut Fitter, messages: &[Value]| {
                let chat = Chat::parse(&Value::from(messages).to_string(), Some(shape)).unwrap();
                let window = fitter.fit(&chat, &budget(1_500), &Encoding::O200k);
                let window = window.unwrap_or_else(|error| panic!("{shape}: {error}"));
                assert_eq!(window.rebuilt, None, "{shape}, {} messages", messages.len());
                (window.reuse, window.fitted.kept, window.fitted.shortened)
            };
            let mut moved = request.to_vec();
            set_breakpoint(shape, moved.last_mut().unwrap());
            let expected = fit(&mut plain, request);
            shortened += expected.2.len();
            assert_eq!(fit(&mut marked, &moved), expected, "{shape}");
        }
        assert!(shortened > 100, "{shape}: {shortened}");
    }
}

#[test]
fn a_window_that_is_the_next_history_stays_valid_and_the_same() {
    let messages = agent_loop(30, 6);
    let window = fit(&messages, 2_500);
    assert_eq!(fit(&valid::messages(&window), 2_500), window);
    let mut history: Vec<Value> = Vec::new();
    for pair in messages.chunks(2) {
        history.extend(pair.iter().cloned());
        history = valid::messages(&fit(&history, 2_500));
        assert_eq!(valid::objection(Shape::OpenAi, &history), None);
    }
}

/// A question, and twelve answers of several hundred tokens.
fn answers() -> Vec<Value> {
    let mut messages = Vec::new();
    for number in 0..12 {
        messages.push(json!({"role": "user", "content": format!("Tell me about topic {number}.")}));
        let line =
            |line| format!("Fact {line} of topic {number} is stated in this line of text.\n");
        let text: String = (0..30).map(line).collect();
        messages.push(json!({"role": "assistant", "content": text}));
    }
    messages.push(json!({"role": "user", "content": "Go on with the last one."}));
    messages
}

#[test]
fn one_token_over_the_budget_costs_some_old_answers_and_not_the_newest() {
    let messages = answers();
    let chat = chat_of(&messages);
    let all = chat.tokens(&Encoding::O200k);
    let fitted = chat.fit(&policy(), &budget(all - 1), &Encoding::O200k);
    let fitted = fitted.unwrap();
    assert!(fitted.dropped.is_empty());
    let shortened: Vec<usize> = fitted.shortened.iter().map(|it| it.index).collect();
    let is_short = |index: &usize| shortened.contains(index);
    // The first answer is in the head, the last is the newest; most of the others stay in full.
    assert!(!is_short(&1) && !is_short(&23), "{shortened:?}");
    assert!(shortened.len() <= 4, "{shortened:?}");
    // A quarter is free for the next requests, and at most the twelfth of one more answer.
    assert!(fitted.tokens_after * 100 > all * 66);
}

#[test]
fn user_turns_outlive_answers() {
    let mut messages = answers();
    messages[4]["content"] = json!("Keep the grouping in one pass, and add a test for it.");
    let chat = chat_of(&messages);
    let tokens = chat.tokens(&Encoding::O200k) * 30 / 100;
    let fitted = chat.fit(&policy(), &budget(tokens), &Encoding::O200k);
    let fitted = fitted.unwrap();
    for index in (0..messages.len()).step_by(2) {
        assert!(fitted.kept.contains(&index), "{index} of {:?}", fitted.kept);
    }
}

/// A long user turn in the middle has to go. Oldest first, what is before it would go too, and leave a third of the
/// budget free.
#[test]
fn what_fits_beside_a_dropped_user_turn_stays() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let answer = |text: &str| json!({"role": "assistant", "content": text});
    let messages = [
        user("Plan a dinner for eight."),
        answer(&"Gladly. ".repeat(40)),
        user(&"Two of us eat no fish. ".repeat(6)),
        answer("Noted, no fish."),
        user(&"An old menu follows. ".repeat(60)),
        answer("Noted, thank you for it."),
        user(&"What do we need to buy? ".repeat(24)),
    ];
    let chat = chat_of(&messages);
    let tokens = |messages: &[Value]| chat_of(messages).tokens(&Encoding::O200k);
    let rest = [&messages[..4], &messages[5..]].concat();
    // The marker needs some tokens.
    let fitted = chat.fit(&policy(), &budget(tokens(&rest) + 20), &Encoding::O200k);
    let kept = fitted.unwrap().kept;
    assert!(kept.contains(&2) && !kept.contains(&4), "{kept:?}");
}

/// Wishes that take more than their share of the budget, and old answers of a few words: the answers go first.
#[test]
fn user_turns_over_their_share_outlive_old_answers() {
    let user = |text: String| json!({"role": "user", "content": text});
    let answer = |text: String| json!({"role": "assistant", "content": text});
    let mut messages = vec![
        user("Note my wishes.".to_owned()),
        answer("Gladly, I note all of them one by one. ".repeat(40)),
    ];
    for number in 0..8 {
        let wish = format!("Wish {number}: it must be done before the {number}th of May. ");
        messages.push(user(wish.repeat(4)));
        messages.push(answer("Noted, I will do it. ".repeat(3)));
    }
    messages.push(user("What did I wish?".to_owned()));
    let chat = chat_of(&messages);
    let fitted = chat.fit(&policy(), &budget(840), &Encoding::O200k);
    let kept = fitted.unwrap().kept;
    let mut users = (0..messages.len()).step_by(2);
    assert!(users.all(|index| kept.contains(&index)), "{kept:?}");
}

/// Short messages cost less than a marker each, and a row of them does not.
#[test]
fn a_chat_of_short_messages_is_cut() {
    let role = |number: usize| ["user", "assistant"][number % 2];
    let message = |number: usize| json!({"role": role(number), "content": format!("hi {number}")});
    let messages: Vec<Value> = (0..301).map(message).collect();
    let chat = chat_of(&messages);
    let fitted = chat.fit(&policy(), &budget(900), &Encoding::O200k);
    let cuts = fitted.unwrap().cuts.unwrap();
    assert!((2..10).contains(&cuts.made.len()), "{:?}", cuts.made);
}

#[test]
fn a_prefilled_answer_is_not_shortened_before_older_messages() {
    let mut messages = answers();
    let text = "The beginning of the answer that is to be continued. ".repeat(10);
    messages.push(json!({"role": "assistant", "content": text}));
    let chat = chat_of(&messages);
    let tokens = chat.tokens(&Encoding::O200k) / 3;
    let fitted = chat.fit(&policy(), &budget(tokens), &Encoding::O200k);
    let fitted = fitted.unwrap();
    let last = messages.len() - 1;
    assert_eq!(fitted.kept.last(), Some(&last));
    assert!(fitted.shortened.iter().all(|it| it.index != last));
}

/// Checks the windows of a session at a budget: valid, within it, with the task, the newest step and the last user turn.
fn check(
    shape: Shape,
    messages: &[Value],
    policy: &Policy,
    tokens: i64,
) -> Result<(), TestCaseError> {
    let text = document(shape, messages);
    let chat = Chat::parse(&text, Some(shape)).unwrap();
    let fitted = match chat.fit(policy, &budget(tokens), &Heuristic) {
        Ok(fitted) => fitted,
        Err(FitError::TooLarge { needed, .. }) => {
            prop_assert!(needed > tokens);
            return Ok(());
        }
        // Only the whole chat is a window.
        Err(FitError::InvalidMessage { .. } | FitError::NoUserTurn(_)) => return Ok(()),
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    prop_assert!(fitted.tokens_after <= tokens);
    let json = fitted.to_json();
    // A limit for results shortens them even if the chat fits, and a shortened one again.
    let has_limit = policy.chat().max_result.is_some();
    if tokens >= chat.tokens(&Heuristic) {
        prop_assert!(has_limit || json == text);
        return Ok(());
    }
    if has_limit && valid::objection(shape, messages).is_some() {
        // With shorter results the whole chat fits, and stays as invalid as it is.
        return Ok(());
    }
    let objection = valid::objection_to_window(shape, &text, &json);
    prop_assert_eq!(
        objection,
        None,
        "{} at {}: {:?} of {} {:?} {}",
        shape,
        tokens,
        fitted.kept,
        text,
        policy.chat(),
        json
    );
    let is_invalid = |index: usize| {
        let reason = fitted.dropped.iter().find(|it| it.index == index);
        let reason = reason.map(|it| it.reason.to_string()).unwrap_or_default();
        reason.starts_with("Filtered")
    };
    if let Some(call) = newest_call(shape, messages) {
        let index = messages.iter().rposition(|message| *message == call);
        let index = index.unwrap_or_default();
        prop_assert!(
            fitted.kept.contains(&index) || is_invalid(index),
            "{} at {}",
            shape,
            tokens
        );
    }
    let is_turn = |message: &Value| valid::is_user_turn(shape, message);
    if let Some(last) = messages.iter().rposition(is_turn) {
        prop_assert!(fitted.kept.contains(&last), "{} at {}", shape, tokens);
    }
    let again = Chat::parse(&json, Some(shape)).unwrap();
    prop_assert_eq!(again.tokens(&Heuristic), fitted.tokens_after);
    if !has_limit {
        let once_more = again.fit(policy, &budget(tokens), &Heuristic).unwrap();
        prop_assert_eq!(once_more.to_json(), json, "{:?}", policy.chat());
    }
    Ok(())
}

#[test]
fn windows_are_valid_and_keep_what_the_next_answer_needs_in_every_format() {
    let config = Config {
        // A case is hundreds of fits: one in ten of the cases that are asked for.
        cases: testing::cases(60).div_ceil(10),
        failure_persistence: None,
        max_shrink_iters: 60,
        ..Config::default()
    };
    let marked = with(&policy(), |it| {
        it.marker = Some("[{n} messages are left out]".to_owned());
    });
    let policies = [
        policy(),
        with(&policy(), |it| it.shorten = Shorten::Off),
        with(&policy(), |it| it.keep_task = false),
        with(&policy(), |it| it.max_result = Some(60)),
        tool_results(&policy()),
        marked,
    ];
    TestRunner::new(config)
        .run(&steps(), |steps| {
            for shape in SHAPES {
                let messages = render(shape, &steps);
                let all = Chat::parse(&document(shape, &messages), Some(shape)).unwrap();
                let all = all.tokens(&Heuristic);
                for policy in &policies {
                    for share in [8, 21, 55, 80, 100] {
                        check(shape, &messages, policy, all * share / 100)?;
                    }
                }
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}
