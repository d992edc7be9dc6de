//! Windows that an agent can work with: the task, the newest step, a contiguous recent part, a stable
//! prefix.

use std::collections::BTreeMap;
use std::fmt::Write;

use cupel::{ContextBudget, Policy, Shorten};
use cupel_chat::{
    Chat, Encoding, FitError, FitState, Fitted, Fitter, Heuristic, Rebuilt, Shape, TokenCounter,
    default_policy, newest_policy, single_policy,
};
use cupel_conformance::testing;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::characters::Characters;
use crate::generated::{SHAPES, Step, document, render, step};
use crate::{valid, validators};

pub(crate) fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::with_target(tokens, tokens).unwrap()
}

fn call(id: usize, arguments: &str) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": format!("c{id}"), "type": "function",
         "function": {"name": "search", "arguments": arguments}}]})
}

fn result(id: usize, content: &str) -> Value {
    json!({"role": "tool", "tool_call_id": format!("c{id}"), "content": content})
}

/// A table of reservations as JSON, about 35 tokens per row.
fn reservations(rows: usize) -> String {
    let row = |n: usize| {
        json!({"reservation_id": format!("RES{n:04}"), "status": "confirmed", "seats": n % 7,
            "note": "no special requests were made by the passenger"})
    };
    Value::from((0..rows).map(row).collect::<Vec<_>>()).to_string()
}

/// A session of an agent: the task, then steps of a call and its result, `rows` rows each.
pub(crate) fn agent_loop(steps: usize, rows: usize) -> Vec<Value> {
    let mut messages = vec![
        json!({"role": "system", "content": "You are a travel agent."}),
        json!({"role": "user", "content": "Find the cheapest reservation and cancel all others."}),
    ];
    for id in 0..steps {
        messages.push(call(id, &format!("{{\"page\":{id}}}")));
        messages.push(result(id, &reservations(rows)));
    }
    messages
}

/// A conversation with tool calls: users ask, the assistant looks up and answers.
pub(crate) fn conversation(turns: usize) -> Vec<Value> {
    let mut messages = vec![json!({"role": "system", "content": "Be helpful."})];
    for id in 0..turns {
        let mut text = format!("Question {id}:");
        for n in 0..12 {
            write!(text, " detail {n} of question {id},").unwrap();
        }
        messages.push(json!({"role": "user", "content": text}));
        messages.push(call(id, "{\"q\":\"prices\"}"));
        messages.push(result(id, &reservations(3 + id % 9)));
        messages.push(json!({"role": "assistant", "content": format!("Answer {id}. {text}")}));
    }
    messages.push(json!({"role": "user", "content": "Thanks. What was the first answer?"}));
    messages
}

pub(crate) fn chat_of(messages: &[Value]) -> Chat {
    Chat::parse(&document(Shape::OpenAi, messages), Some(Shape::OpenAi)).unwrap()
}

fn fit(chat: &Chat, tokens: i64) -> Fitted<'_> {
    chat.fit(&single_policy(), &budget(tokens), &Encoding::O200k)
        .unwrap()
}

/// Returns the tokens of each kept message.
fn kept_tokens(
    chat: &Chat,
    fitted: &Fitted<'_>,
    counter: &dyn TokenCounter,
) -> BTreeMap<usize, i64> {
    let items = chat.items(counter);
    let mut tokens: BTreeMap<usize, i64> = fitted
        .kept
        .iter()
        .map(|&index| (index, items[index].tokens()))
        .collect();
    for short in &fitted.shortened {
        tokens.insert(short.index, short.tokens);
    }
    tokens
}

#[test]
fn the_newest_step_is_shortened_and_not_dropped() {
    let mut messages = agent_loop(3, 10);
    messages.push(call(3, "{}"));
    messages.push(result(3, &reservations(520)));
    let chat = chat_of(&messages);
    let items = chat.items(&Encoding::O200k);
    assert!(items[9].tokens() > 13_000, "{}", items[9].tokens());
    let fitted = fit(&chat, 8_000);
    assert!(fitted.tokens_after <= 8_000);
    assert!(fitted.kept.ends_with(&[8, 9]), "{:?}", fitted.kept);
    let newest = fitted
        .shortened
        .iter()
        .find(|short| short.index == 9)
        .unwrap();
    assert!(
        (3_000..=6_410).contains(&newest.tokens),
        "{}",
        newest.tokens
    );
    assert_eq!(newest.original_tokens, items[9].tokens());
    // The result is JSON and stays JSON.
    let text = &newest.texts[0].1;
    assert!(serde_json::from_str::<Value>(text).is_ok(), "{text}");
    // The policy of earlier versions drops it.
    let old = chat
        .fit(&newest_policy(), &budget(8_000), &Encoding::O200k)
        .unwrap();
    assert!(!old.kept.contains(&9));
}

#[test]
fn the_task_stays_at_every_budget() {
    for messages in [agent_loop(12, 20), conversation(10)] {
        let chat = chat_of(&messages);
        let all = chat.tokens(&Encoding::O200k);
        for share in [5, 10, 20, 35, 50, 75, 99] {
            let fitted = fit(&chat, all * share / 100);
            assert_eq!(fitted.kept[..2], [0, 1], "{share} %");
            assert!(fitted.tokens_after <= all * share / 100);
        }
    }
}

#[test]
fn without_the_task_the_first_user_turn_is_a_message_like_others() {
    let mut policy = single_policy();
    let mut settings = policy.chat().clone();
    settings.keep_task = false;
    policy = policy.to_builder().chat(settings).build().unwrap();
    let chat = chat_of(&conversation(10));
    let fitted = chat.fit(&policy, &budget(600), &Encoding::O200k).unwrap();
    assert!(!fitted.kept.contains(&1));
    assert_eq!(
        valid::objection(Shape::OpenAi, &valid::messages(&fitted.to_json())),
        None
    );
}

#[test]
fn old_results_are_shortened_before_anything_is_dropped() {
    let chat = chat_of(&agent_loop(8, 30));
    let all = chat.tokens(&Encoding::O200k);
    let fitted = fit(&chat, all / 3);
    assert!(fitted.dropped.is_empty());
    let shortened: Vec<usize> = fitted.shortened.iter().map(|short| short.index).collect();
    assert_eq!(shortened, [3, 5, 7, 9, 11, 13, 15]);
    // Identifiers are the last to go.
    let texts: String = fitted
        .shortened
        .iter()
        .map(|short| short.texts[0].1.as_str())
        .collect();
    assert!(texts.contains("RES0003"), "{texts}");
}

#[test]
fn everything_that_is_not_shortened_stays_byte_for_byte() {
    let text = r#"{"model": "gpt-4o", "messages": [
  {"role":"system","content":"Be brief."},
  {"role" : "user", "content": "Look it up.", "x": 1.0e0},
  {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"q\": 1}"}}]},
  {"role":"tool", "tool_call_id":"a" , "content":"CONTENT", "y": "\u0041"},
  {"role":"assistant","content":"Done."},
  {"role":"user","content":"Again."},
  {"role":"assistant","content":null,"tool_calls":[{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},
  {"role":"tool","tool_call_id":"b","content":"ok"}
], "seed": 0.10}"#;
    let long = "a line of the log with the number 4711\\n".repeat(100);
    let text = text.replace("CONTENT", &long);
    let chat = Chat::parse(&text, None).unwrap();
    let fitted = fit(&chat, 300);
    assert!(fitted.dropped.is_empty());
    assert_eq!(fitted.shortened.len(), 1);
    let short = &fitted.shortened[0];
    assert_eq!((short.index, short.texts[0].0.as_str()), (3, "content"));
    let shortened = serde_json::to_string(&short.texts[0].1).unwrap();
    assert_eq!(
        fitted.to_json(),
        text.replace(&format!("\"{long}\""), &shortened)
    );
    // Within the budget nothing changes at all.
    assert_eq!(fit(&chat, 100_000).to_json(), text);
}

#[test]
fn windows_have_no_holes_but_around_the_task_and_the_last_user_turn() {
    for messages in [agent_loop(15, 8), conversation(12)] {
        let chat = chat_of(&messages);
        let all = chat.tokens(&Encoding::O200k);
        let last_user = messages
            .iter()
            .rposition(|it| it["role"] == "user")
            .unwrap();
        for tokens in (300..all).step_by(97) {
            let Ok(fitted) = chat.fit(&single_policy(), &budget(tokens), &Encoding::O200k) else {
                continue;
            };
            for pair in fitted.kept.windows(2) {
                let is_gap = pair[1] > pair[0] + 1;
                let allowed = pair[0] <= 1 || pair[0] == last_user || pair[1] == last_user;
                // The newest step before the last user turn is mandatory, too.
                let newest = messages
                    .iter()
                    .rposition(|it| !it["tool_calls"].is_null())
                    .unwrap();
                let at_newest = newest < last_user && (pair[1] == newest || pair[0] == newest + 1);
                assert!(
                    !is_gap || allowed || at_newest,
                    "{tokens}: {:?}",
                    fitted.kept
                );
            }
        }
    }
}

#[test]
fn roles_alternate_and_a_marker_stands_between_user_turns() {
    let chat = chat_of(&conversation(12));
    let all = chat.tokens(&Encoding::O200k);
    let mut marked = 0;
    for tokens in (200..all).step_by(53) {
        let Ok(fitted) = chat.fit(&single_policy(), &budget(tokens), &Encoding::O200k) else {
            continue;
        };
        let window = valid::messages(&fitted.to_json());
        assert_eq!(valid::objection(Shape::OpenAi, &window), None);
        for pair in window.windows(2) {
            let both_users = pair[0]["role"] == "user" && pair[1]["role"] == "user";
            assert!(!both_users, "{tokens}: {:?}", fitted.kept);
        }
        for marker in &fitted.markers {
            marked += 1;
            let before = fitted
                .kept
                .iter()
                .position(|&index| index == marker.before)
                .unwrap();
            let omitted = fitted.kept[before] - fitted.kept[before - 1] - 1;
            assert_eq!(marker.omitted, omitted);
            let messages = if omitted == 1 { "message" } else { "messages" };
            let text = format!("[{omitted} earlier {messages} omitted]");
            assert!(window.iter().any(|message| {
                message["role"] == "assistant" && message["content"] == text.as_str()
            }));
        }
        let again = Chat::parse(&fitted.to_json(), Some(Shape::OpenAi)).unwrap();
        assert_eq!(again.tokens(&Encoding::O200k), fitted.tokens_after);
        assert!(fitted.tokens_after <= tokens);
    }
    assert!(marked > 0);
}

type Notation<'n> = &'n dyn Fn(&str, String) -> Value;

#[test]
fn markers_follow_the_notation_of_the_chat() {
    let question = |n: usize| format!("{n} {}", "a long question ".repeat(20));
    let flat = |kind: &str, text: String| json!({"type": kind, "content": text});
    let data = |kind: &str, text: String| json!({"type": kind, "data": {"content": text}});
    let notations: [(Notation<'_>, &str); 2] = [
        (&flat, r#"{"type":"ai","content":"#),
        (&data, r#"{"type":"ai","data":{"content":"#),
    ];
    for (notation, start) in notations {
        let mut messages = Vec::new();
        for n in 0..5 {
            messages.push(notation("human", question(n)));
            messages.push(notation("ai", question(n)));
        }
        messages.push(notation("human", "Last.".to_owned()));
        let text = Value::from(messages).to_string();
        let chat = Chat::parse(&text, None).unwrap();
        let fitted = fit(&chat, 90);
        let marker = r#""[9 earlier messages omitted]""#;
        let json = fitted.to_json();
        assert!(json.contains(&format!("{start}{marker}")), "{json}");
        assert_eq!(
            Chat::parse(&json, None).unwrap().tokens(&Encoding::O200k),
            fitted.tokens_after
        );
    }
}

#[test]
fn a_marker_is_left_out_if_it_costs_more_than_what_it_stands_for() {
    let chat = |answer: &str| {
        let messages = json!([
            {"role": "user", "content": "The quick brown fox jumps over the lazy dog. ".repeat(20)},
            {"role": "assistant", "content": answer},
            {"role": "user", "content": "bye"},
        ]);
        Chat::parse(&messages.to_string(), None).unwrap()
    };
    for marker in [None, Some("[{n} messages were omitted here]")] {
        let mut settings = single_policy().chat().clone();
        settings.marker = marker.map(str::to_owned);
        let policy = single_policy().to_builder().chat(settings);
        let policy = policy.build().unwrap();
        let short = chat("hello");
        let all = short.tokens(&Encoding::O200k);
        let fitted = short.fit(&policy, &budget(all - 1), &Encoding::O200k);
        let fitted = fitted.unwrap();
        assert_eq!(fitted.kept, [0, 2]);
        assert!(fitted.markers.is_empty() && fitted.shortened.is_empty());
        let long = chat(&"several words ".repeat(20));
        let tokens = long.tokens(&Encoding::O200k) - 20;
        let fitted = long.fit(&policy, &budget(tokens), &Encoding::O200k);
        let fitted = fitted.unwrap();
        assert_eq!((fitted.kept.len(), fitted.markers.len()), (2, 1));
        assert!(fitted.tokens_after <= tokens);
    }
}

#[test]
fn a_marker_can_be_set_and_turned_off() {
    let chat = chat_of(&conversation(12));
    let fit = |marker: &str, tokens| {
        let mut settings = single_policy().chat().clone();
        settings.marker = Some(marker.to_owned());
        let policy = single_policy().to_builder().chat(settings).build().unwrap();
        chat.fit(&policy, &budget(tokens), &Encoding::O200k)
            .unwrap()
    };
    assert!(fit("", 800).markers.is_empty());
    let fitted = fit("({n} left out)", 800);
    assert!(!fitted.markers.is_empty() && fitted.tokens_after <= 800);
    for marker in &fitted.markers {
        assert_eq!(marker.text, format!("({} left out)", marker.omitted));
    }
}

#[test]
fn pins_keep_messages_and_name_their_faults() {
    let chat = chat_of(&conversation(12));
    let fit = |pin: &str| {
        let mut settings = single_policy().chat().clone();
        settings.pin = vec![pin.to_owned()];
        let policy = single_policy().to_builder().chat(settings).build().unwrap();
        chat.fit(&policy, &budget(1_500), &Encoding::O200k)
    };
    // Message 7 is a result; its call is message 6.
    let fitted = fit("7").unwrap();
    assert!(
        fitted.kept.contains(&6) && fitted.kept.contains(&7),
        "{:?}",
        fitted.kept
    );
    let fitted = fit("4-5").unwrap();
    assert!(fitted.kept.contains(&4) && fitted.kept.contains(&5));
    let error = |pin: &str| fit(pin).unwrap_err().to_string();
    assert_eq!(
        error("50"),
        "invalid pin `50`: out of range; positions start at 0 and the last is 49"
    );
    assert_eq!(
        error("5-4"),
        "invalid pin `5-4`: the range is empty; write `4-5`"
    );
    assert!(error("x").contains("expected a position"));
    assert_eq!(
        error("role:robot"),
        "invalid pin `role:robot`: no message has the role `robot`; the chat has assistant, system, tool, user"
    );
    assert!(matches!(fit("role:tool"), Err(FitError::TooLarge { .. })));
}

#[test]
fn results_can_be_limited_and_shortening_turned_off() {
    let chat = chat_of(&agent_loop(6, 30));
    let with = |edit: &dyn Fn(&mut cupel::ChatSettings), tokens| {
        let mut settings = single_policy().chat().clone();
        edit(&mut settings);
        let policy = single_policy().to_builder().chat(settings).build().unwrap();
        chat.fit(&policy, &budget(tokens), &Encoding::O200k)
            .unwrap()
    };
    // A limit holds for every result, even if the chat fits.
    let fitted = with(&|it| it.max_result = Some(150), 100_000);
    assert_eq!(fitted.shortened.len(), 6);
    assert!(fitted.shortened.iter().all(|short| short.tokens <= 160));
    let all = chat.tokens(&Encoding::O200k);
    let fitted = with(&|it| it.shorten = Shorten::Off, all / 3);
    assert!(fitted.shortened.is_empty() && !fitted.dropped.is_empty());
    let fitted = with(&|it| it.shorten = Shorten::Old, all / 3);
    assert!(!fitted.shortened.is_empty());
    let mut settings = single_policy().chat().clone();
    settings.shorten = Shorten::Old;
    let policy = single_policy().to_builder().chat(settings).build().unwrap();
    let error = chat
        .fit(&policy, &budget(300), &Encoding::O200k)
        .unwrap_err();
    assert!(matches!(error, FitError::TooLarge { .. }), "{error}");
}

/// Replays a session with a fitter; returns the share of reused tokens, and the windows.
fn replay(messages: &[Value], tokens: i64) -> (f64, usize) {
    let mut fitter = Fitter::new(default_policy());
    let (mut reused, mut of, mut windows) = (0, 0, 0);
    for end in 2..=messages.len() {
        if messages[end - 1]["role"] == "assistant" {
            continue;
        }
        let chat = chat_of(&messages[..end]);
        let window = fitter
            .fit(&chat, &budget(tokens), &Encoding::O200k)
            .unwrap();
        assert!(window.fitted.tokens_after <= tokens);
        assert_eq!(window.rebuilt, None);
        let json = window.fitted.to_json();
        assert_eq!(
            valid::objection(Shape::OpenAi, &valid::messages(&json)),
            None
        );
        assert_eq!(window.fitted.kept[..2], [0, 1]);
        assert_eq!(window.fitted.kept.last(), Some(&(end - 1)));
        // A state survives a round trip.
        let state = FitState::from_json(&fitter.state().to_json()).unwrap();
        assert_eq!(state, *fitter.state());
        if let Some(reuse) = window.reuse {
            reused += reuse.tokens;
            of += reuse.of;
        }
        windows += 1;
    }
    (reused as f64 / of as f64, windows)
}

#[test]
fn a_session_reuses_most_of_the_previous_window() {
    for messages in [agent_loop(40, 6), conversation(25)] {
        let (share, windows) = replay(&messages, 3_000);
        assert!(windows > 20);
        assert!(share > 0.6, "{share}");
    }
}

#[test]
fn a_session_gives_the_same_windows_with_its_state_in_a_file() {
    let messages = agent_loop(30, 6);
    let mut fitter = Fitter::new(default_policy());
    let mut state = FitState::default();
    for end in (4..=messages.len()).step_by(2) {
        let chat = chat_of(&messages[..end]);
        let window = fitter.fit(&chat, &budget(2_500), &Encoding::O200k).unwrap();
        let mut other = Fitter::resume(default_policy(), state);
        let resumed = other.fit(&chat, &budget(2_500), &Encoding::O200k).unwrap();
        assert_eq!(resumed.fitted.to_json(), window.fitted.to_json());
        assert_eq!(resumed.reuse, window.reuse);
        state = FitState::from_json(&other.state().to_json()).unwrap();
    }
}

#[test]
fn an_edited_history_is_noticed() {
    let mut messages = agent_loop(30, 6);
    let mut fitter = Fitter::new(default_policy());
    let fit = |fitter: &mut Fitter, messages: &[Value]| {
        let chat = chat_of(messages);
        let window = fitter.fit(&chat, &budget(2_500), &Encoding::O200k).unwrap();
        (window.rebuilt, window.fitted.to_json())
    };
    assert_eq!(fit(&mut fitter, &messages).0, None);
    messages[41]["content"] = "edited".into();
    let (rebuilt, json) = fit(&mut fitter, &messages);
    assert_eq!(rebuilt, Some(Rebuilt::HistoryChanged(41)));
    assert_eq!(
        valid::objection(Shape::OpenAi, &valid::messages(&json)),
        None
    );
    // Another policy counts the same.
    let mut other = Fitter::resume(single_policy(), fitter.state().clone());
    assert_eq!(fit(&mut other, &messages).0, None);
}

#[test]
fn the_newest_step_of_a_shortened_history_is_complete_again() {
    let messages = agent_loop(30, 6);
    let mut fitter = Fitter::new(default_policy());
    let chat = chat_of(&messages);
    fitter.fit(&chat, &budget(2_500), &Encoding::O200k).unwrap();
    // The caller takes back all steps but five. The fifth was shortened before.
    let chat = chat_of(&messages[..12]);
    let window = fitter.fit(&chat, &budget(2_500), &Encoding::O200k).unwrap();
    assert_eq!(window.rebuilt, Some(Rebuilt::HistoryChanged(12)));
    assert!(window.fitted.kept.ends_with(&[10, 11]));
    assert!(
        window
            .fitted
            .shortened
            .iter()
            .all(|short| short.index != 11)
    );
}

#[test]
fn a_damaged_state_is_an_error() {
    let chat = chat_of(&agent_loop(3, 6));
    let mut fitter = Fitter::new(default_policy());
    fitter.fit(&chat, &budget(2_500), &Encoding::O200k).unwrap();
    let state = fitter.state().to_json();
    let damaged = [
        "",
        "{}",
        &state[..state.len() / 2],
        &state.replace("\"cupel_state\":3", "\"cupel_state\":4"),
        &state.replace("\"cupel_state\":3", "\"cupel_state\":2"),
        &state.replacen(",169]", ",168]", 1),
    ];
    for text in damaged {
        let error = FitState::from_json(text).unwrap_err().to_string();
        assert!(
            error.ends_with("; delete the state to start again"),
            "{error}"
        );
    }
}

#[test]
fn a_state_keeps_summaries_until_there_are_others() {
    let chat = chat_of(&agent_loop(3, 6));
    let mut fitter = Fitter::new(default_policy());
    let summaries = |text: &str| BTreeMap::from([("key".to_owned(), text.to_owned())]);
    fitter.remember_summaries(summaries("They counted."));
    fitter.fit(&chat, &budget(2_500), &Encoding::O200k).unwrap();
    assert_eq!(*fitter.state().summaries(), summaries("They counted."));
    let state = fitter.state().to_json();
    assert_eq!(FitState::from_json(&state).unwrap(), *fitter.state());
    for edited in ["counted", "key"] {
        let edited = state.replace(edited, "slept");
        assert!(FitState::from_json(&edited).is_err(), "{edited}");
    }
    fitter.remember_summaries(BTreeMap::new());
    assert!(!fitter.state().to_json().contains("summaries"));
}

/// A session whose results have from 1 to 200,000 tokens.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let huge = (0..200_000_u32, 0..4_u32).prop_map(|(words, scale)| {
        let words = words >> (scale * 5);
        Step::Tools {
            calls: vec![(
                "{}".to_owned(),
                "line of text\n".repeat(words as usize / 3 + 1),
            )],
            think: false,
            reversed: false,
            late: false,
            with_text: false,
            reused: false,
        }
    });
    (
        vec(prop_oneof![6 => step(), 1 => huge.clone()], 1..9),
        huge,
        any::<bool>(),
    )
        .prop_map(|(mut steps, last, ends_huge)| {
            if ends_huge {
                steps.push(last);
            }
            steps
        })
}

pub(crate) fn newest_call(shape: Shape, messages: &[Value]) -> Option<Value> {
    let has_call = |message: &&Value| match shape {
        Shape::OpenAi => !message["tool_calls"].is_null(),
        Shape::Responses => message["type"] == "function_call",
        Shape::Anthropic => {
            let blocks = message["content"].as_array();
            blocks.is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_use"))
        }
        Shape::LangChain => !message["data"]["tool_calls"].is_null(),
        _ => validators::has_call(shape, message),
    };
    messages.iter().rfind(has_call).cloned()
}

/// Checks windows at growing budgets: valid, with task and newest step, and monotone.
fn check_windows(shape: Shape, messages: &[Value], policy: &Policy) -> Result<(), TestCaseError> {
    let counter = Heuristic;
    let chat = Chat::parse(&document(shape, messages), Some(shape)).unwrap();
    let all = chat.tokens(&counter);
    let has_result = |message: &Value| message.to_string().contains("\"tool_result\"");
    let is_task = |message: &&Value| valid::is_user_turn(shape, message) && !has_result(message);
    let task = messages.iter().find(is_task);
    let mut smaller: BTreeMap<usize, i64> = BTreeMap::new();
    let candidates = chat
        .candidates_for(policy, None, &counter)
        .map_err(|error| TestCaseError::fail(error.to_string()))?;
    for share in [3, 5, 8, 13, 21, 34, 55, 80, 100] {
        let tokens = all * share / 100;
        let fitted = match chat.fit_candidates(policy, &budget(tokens), &candidates, &counter) {
            Ok(fitted) => fitted,
            Err(FitError::TooLarge { needed, .. }) => {
                prop_assert!(needed > tokens);
                prop_assert!(smaller.is_empty(), "a smaller budget was enough");
                continue;
            }
            // Only the whole chat is a window.
            Err(FitError::InvalidMessage { .. } | FitError::NoUserTurn(_)) if tokens < all => {
                continue;
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        prop_assert!(fitted.tokens_after <= tokens);
        let json = fitted.to_json();
        if tokens < all {
            let objection = valid::objection_to_window(shape, &document(shape, messages), &json);
            prop_assert_eq!(objection, None, "{} at {}", shape, tokens);
        } else {
            prop_assert_eq!(&json, &document(shape, messages));
        }
        let again = Chat::parse(&json, Some(shape)).unwrap();
        prop_assert_eq!(again.tokens(&counter), fitted.tokens_after);
        // No valid window contains an invalid message, or in some formats a message before the first user turn.
        let is_invalid = |index: usize| {
            let reason = fitted.dropped.iter().find(|it| it.index == index);
            let reason = reason.map(|it| it.reason.to_string()).unwrap_or_default();
            reason.starts_with("Filtered")
        };
        if let Some(call) = newest_call(shape, messages) {
            let index = messages
                .iter()
                .rposition(|message| *message == call)
                .unwrap();
            prop_assert!(
                fitted.kept.contains(&index) || is_invalid(index),
                "{} at {}",
                shape,
                tokens
            );
        }
        if let Some(task) = task {
            let index = messages.iter().position(|message| message == task).unwrap();
            prop_assert!(fitted.kept.contains(&index) || is_invalid(index));
        }
        let kept = kept_tokens(&chat, &fitted, &counter);
        for (index, tokens) in smaller {
            prop_assert!(
                kept.get(&index).is_some_and(|larger| *larger >= tokens),
                "{}: message {} is smaller at the larger budget {}",
                shape,
                index,
                fitted.tokens_after
            );
        }
        smaller = kept;
    }
    Ok(())
}

#[test]
fn windows_are_valid_monotone_and_keep_the_newest_step_in_every_format() {
    let config = Config {
        // A case is hundreds of fits: one in ten of the cases that are asked for.
        cases: testing::cases(240).div_ceil(10),
        failure_persistence: None,
        max_shrink_iters: 100,
        ..Config::default()
    };
    let policy = single_policy();
    TestRunner::new(config)
        .run(&steps(), |steps| {
            for shape in SHAPES {
                check_windows(shape, &render(shape, &steps), &policy)?;
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

/// Fits a chat by the default policy and returns the fitted positions with their tokens.
fn fitted_tokens(chat: &str, tokens: i64) -> Vec<(usize, i64)> {
    let chat = Chat::parse(chat, None).unwrap();
    let budget = ContextBudget::with_target(tokens, tokens).unwrap();
    let fitted = chat
        .fit(&single_policy(), &budget, &Encoding::O200k)
        .unwrap();
    let items = chat.items(&Encoding::O200k);
    let tokens = |&index: &usize| {
        let short = fitted.shortened.iter().find(|short| short.index == index);
        (
            index,
            short.map_or(items[index].tokens(), |short| short.tokens),
        )
    };
    fitted.kept.iter().map(tokens).collect()
}

#[test]
fn an_approval_that_nothing_follows_is_the_newest_step() {
    let old = "An old answer. ".repeat(60);
    let chat = json!({"input": [
        {"role": "user", "content": "Which protocols are there?"},
        {"type": "message", "role": "assistant", "content": old},
        {"role": "user", "content": "Ask the server."},
        {"type": "mcp_approval_request", "id": "r", "name": "ask", "arguments": "{}", "server_label": "s"},
        {"type": "mcp_approval_response", "approval_request_id": "r", "approve": true},
    ]});
    let kept = fitted_tokens(&chat.to_string(), 150);
    let kept: Vec<usize> = kept.into_iter().map(|(index, _)| index).collect();
    assert!(kept.ends_with(&[2, 3, 4]), "{kept:?}");
}

#[test]
fn the_beginning_of_the_answer_stays() {
    let old = "An old answer. ".repeat(60);
    let chat = json!({"system": "Write JSON.", "messages": [
        {"role": "user", "content": "List the colors."},
        {"role": "assistant", "content": old},
        {"role": "user", "content": "Now the shapes."},
        {"role": "assistant", "content": "{"},
    ]});
    let kept = fitted_tokens(&chat.to_string(), 60);
    let kept: Vec<usize> = kept.into_iter().map(|(index, _)| index).collect();
    assert!(kept.ends_with(&[2, 3]), "{kept:?}");
}

#[test]
fn an_answer_that_only_pairing_keeps_is_shortened_before_the_task() {
    let text = |role: &str, text: String| json!({"role": role, "parts": [{"text": text}]});
    let chat = json!({"contents": [
        text("user", "Compare the two harbors. ".repeat(40)),
        text("model", "The first one is older.\n".repeat(60)),
        text("user", "And which is larger?".to_owned()),
    ]});
    let full = fitted_tokens(&chat.to_string(), 10_000);
    let kept = fitted_tokens(&chat.to_string(), full[0].1 + 150);
    assert_eq!(kept.len(), 3);
    assert_eq!(kept[0], full[0]);
    assert!(kept[1].1 < full[1].1);
}

#[test]
fn a_result_that_a_newer_one_of_the_same_call_supersedes_is_shortened_first() {
    let table = reservations(40);
    let messages = json!([
        {"role": "user", "content": "Which seats are free?"},
        call(1, r#"{"day": 1}"#), result(1, &table),
        call(2, r#"{"day": 2}"#), result(2, &table.replace("RES", "OLD")),
        call(3, r#"{"day": 1}"#), result(3, &table),
        call(4, "{}"), result(4, "no more"),
    ]);
    let chat = Chat::parse(&messages.to_string(), None).unwrap();
    let all = chat.tokens(&Heuristic);
    let shortened = |tokens: i64| {
        let fitted = chat
            .fit(&single_policy(), &budget(tokens), &Heuristic)
            .unwrap();
        let shortened = fitted.shortened.iter().map(|it| it.index);
        shortened.collect::<Vec<_>>()
    };
    assert_eq!(shortened(all), Vec::<usize>::new());
    assert_eq!(shortened(all - 1), [2]);
    assert_eq!(shortened(all * 7 / 10), [2]);
    // More than its tokens have to be saved: the oldest of the others is next.
    assert_eq!(shortened(all / 2), [2, 4]);
    assert_eq!(shortened(all / 6), [2, 4, 6]);
    let candidates = chat
        .candidates_for(&single_policy(), None, &Heuristic)
        .unwrap();
    let calls = candidates.iter().map(|item| item.call().map(str::to_owned));
    let calls: Vec<usize> = calls
        .enumerate()
        .filter_map(|(at, call)| call.map(|_| at))
        .collect();
    assert_eq!(calls, [2, 6]);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the time is what is tested")]
fn a_long_wait_of_identical_calls_is_trimmed_in_linear_time() {
    let mut messages = vec![json!({"role": "user", "content": "Wait until it is ready."})];
    for number in 0..30_000 {
        messages.push(call(number, r#"{"job": 7}"#));
        messages.push(result(number, "still running"));
    }
    let chat = Chat::from_messages(&messages, Shape::OpenAi).unwrap();
    let half = budget(chat.tokens(&Heuristic) / 2);
    let start = std::time::Instant::now();
    let fitted = chat.fit(&single_policy(), &half, &Heuristic).unwrap();
    assert!(fitted.kept.len() > 10_000);
    // A second or two; every pair of calls would be 450 million comparisons, several minutes.
    assert!(start.elapsed() < std::time::Duration::from_secs(60));
}

#[test]
fn a_state_of_another_conversation_changes_no_window() {
    let fit = |fitter: &mut Fitter, chat: &Chat| {
        let window = fitter.fit(chat, &budget(1_000), &Encoding::O200k).unwrap();
        let alone = chat.fit(&default_policy(), &budget(1_000), &Encoding::O200k);
        assert_eq!(window.fitted.to_json(), alone.unwrap().to_json());
        window.rebuilt
    };
    let (first, other) = (chat_of(&agent_loop(30, 6)), chat_of(&conversation(30)));
    let mut fitter = Fitter::new(default_policy());
    assert_eq!(fit(&mut fitter, &first), None);
    for chat in [&other, &first] {
        assert_eq!(fit(&mut fitter, chat), Some(Rebuilt::HistoryChanged(0)));
    }
}

#[test]
fn a_state_of_any_other_version_is_refused() {
    let state = FitState::default().to_json();
    assert!(state.contains("\"cupel_state\":3,"), "{state}");
    for version in [0, 2, 4] {
        let other = state.replacen(":3,", &format!(":{version},"), 1);
        let error = FitState::from_json(&other).unwrap_err().to_string();
        assert!(
            error.contains(&format!("has version {version},")),
            "{error}"
        );
    }
}

#[test]
fn a_state_of_another_counter_starts_again() {
    let chat = chat_of(&agent_loop(30, 6));
    let mut fitter = Fitter::new(default_policy());
    fitter.fit(&chat, &budget(2_500), &Encoding::O200k).unwrap();
    let mut other = Fitter::resume(default_policy(), fitter.state().clone());
    let window = other.fit(&chat, &budget(2_500), &Heuristic).unwrap();
    assert_eq!(window.rebuilt, Some(Rebuilt::OtherSettings));
    // None of the counts of the other counter is left.
    let mut new = Fitter::new(default_policy());
    let expected = new.fit(&chat, &budget(2_500), &Heuristic).unwrap();
    assert_eq!(window.fitted.to_json(), expected.fitted.to_json());
    assert_eq!(window.fitted.tokens_before, chat.tokens(&Heuristic));
}

#[test]
fn a_pending_call_is_in_the_window_and_in_the_next_with_its_result() {
    let mut messages = vec![json!({"role": "user", "content": "Wait."})];
    messages.push(call(1, "first"));
    messages.push(result(1, &"a long line of output ".repeat(60)));
    messages.push(json!({"role": "user", "content": "Again."}));
    messages.push(call(2, "second"));
    let mut fitter = Fitter::new(default_policy());
    let chat = chat_of(&messages);
    let small = budget(chat.tokens(&Heuristic) - 20);
    let window = fitter.fit(&chat, &small, &Heuristic).unwrap();
    assert_eq!(window.fitted.kept.last(), Some(&4));
    messages.push(result(2, "done"));
    let chat = chat_of(&messages);
    let window = fitter.fit(&chat, &small, &Heuristic).unwrap();
    assert!(window.fitted.kept.ends_with(&[4, 5]));
}

/// A chat with a gap on both sides of a user turn, and a policy that marks gaps.
fn gaps_around_a_user_turn() -> (Chat, Policy) {
    let long = "x".repeat(400);
    let messages = [
        json!({"role": "system", "content": "s"}),
        json!({"role": "user", "content": long}),
        json!({"role": "assistant", "content": long}),
        json!({"role": "user", "content": "now"}),
        call(1, "first"),
        result(1, &long),
        call(2, "second"),
        result(2, "done"),
    ];
    let policy = single_policy();
    let mut settings = policy.chat().clone();
    settings.keep_task = false;
    settings.shorten = Shorten::Off;
    settings.marker = Some("[{n} out]".to_owned());
    let policy = policy.to_builder().chat(settings).build().unwrap();
    (chat_of(&messages), policy)
}

#[test]
fn a_message_has_one_marker_and_its_tokens_count_once() {
    let (chat, policy) = gaps_around_a_user_turn();
    let fitted = chat.fit(&policy, &budget(420), &Characters).unwrap();
    assert_eq!(fitted.kept, [0, 3, 6, 7]);
    // The gaps before and after it would both be marked in its text.
    let markers: Vec<_> = fitted.markers.iter().collect();
    assert_eq!(markers.len(), 1, "{markers:?}");
    assert_eq!((markers[0].merged_into, markers[0].omitted), (Some(3), 2));
    let again = Chat::parse(&fitted.to_json(), Some(Shape::OpenAi)).unwrap();
    assert_eq!(again.message(1).text(), "[2 out]\n\nnow");
    assert_eq!(again.tokens(&Characters), fitted.tokens_after);
}

#[test]
fn the_reuse_of_a_window_counts_a_marker_in_a_message() {
    let (chat, policy) = gaps_around_a_user_turn();
    let mut fitter = Fitter::new(policy);
    let first = fitter.fit(&chat, &budget(420), &Characters).unwrap();
    assert!(first.fitted.markers[0].merged_into.is_some());
    let messages = first.fitted.tokens_after - chat.overhead(&Characters);
    let second = fitter.fit(&chat, &budget(420), &Characters).unwrap();
    let reuse = second.reuse.unwrap();
    assert_eq!((reuse.of, reuse.tokens), (messages, messages));
}
