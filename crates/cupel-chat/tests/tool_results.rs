//! Settings for the results of single tools, each in a chat with what a person would keep of it.

use std::collections::BTreeMap;

use cupel::ToolResults;
use cupel_chat::{Chat, Heuristic, Shape, default_policy, single_policy};
use serde_json::{Value, json};

use crate::agents::budget;
use crate::generated::with;
use crate::windows;

/// A call: the tool, its arguments and its result.
type Call = (&'static str, Value, String);

/// Returns a chat of a task and calls, one after the other: message `2 n + 1` is call `n`, the next one its result.
fn chat(shape: Shape, calls: &[Call]) -> Chat {
    let mut messages = vec![json!({"role": "user", "content": "Make the build green."})];
    for (number, (name, arguments, text)) in calls.iter().enumerate() {
        let id = format!("c{number}");
        messages.extend(match shape {
            Shape::Anthropic => {
                let call = json!({"type": "tool_use", "id": id, "name": name, "input": arguments});
                let result = json!({"type": "tool_result", "tool_use_id": id, "content": text});
                [
                    json!({"role": "assistant", "content": [call]}),
                    json!({"role": "user", "content": [result]}),
                ]
            }
            _ => {
                let function = json!({"name": name, "arguments": arguments.to_string()});
                let call = json!({"id": id, "type": "function", "function": function});
                [
                    json!({"role": "assistant", "content": null, "tool_calls": [call]}),
                    json!({"role": "tool", "tool_call_id": id, "content": text}),
                ]
            }
        });
    }
    Chat::parse(&Value::from(messages).to_string(), Some(shape)).unwrap()
}

/// Returns a text of some lines. Texts of different words differ.
fn text(word: &str, lines: usize) -> String {
    let line = |number| format!("{word} says something in line {number}.\n");
    (0..lines).map(line).collect()
}

fn call(name: &'static str, arguments: Value, word: &str, lines: usize) -> Call {
    (name, arguments, text(word, lines))
}

/// Small calls, which a cut leaves as they are.
fn small(count: usize) -> impl Iterator<Item = Call> {
    (0..count).map(|number| call("note", json!({"number": number}), "note", 2))
}

/// Checks which results of some tools stay whole at a share of the tokens, without the setting and with it, in two
/// formats and under both policies for chats.
#[track_caller]
fn check(
    calls: &[Call],
    tools: &[&str],
    share: i64,
    setting: (&str, ToolResults),
    whole: [&[usize]; 2],
) {
    let (tool, how) = setting;
    for shape in [Shape::OpenAi, Shape::Anthropic] {
        let chat = chat(shape, calls);
        let all = chat.tokens(&Heuristic);
        // A larger budget keeps more, and views for one budget are those that the ladder takes.
        let ladder = with(&single_policy(), |it| {
            it.tool_results = BTreeMap::from([(tool.to_owned(), how)]);
        });
        windows::check(&chat, &ladder, &Heuristic, (200..=all).step_by(23)).unwrap();
        let tokens = all * share / 100;
        for (name, policy) in [("agent", default_policy()), ("single", single_policy())] {
            let treated = with(&policy, |it| {
                it.tool_results = BTreeMap::from([(tool.to_owned(), how)]);
            });
            for (policy, whole) in [policy, treated].iter().zip(whole) {
                let fitted = chat.fit(policy, &budget(tokens), &Heuristic).unwrap();
                assert!(fitted.tokens_after <= tokens);
                let is_short = |index| fitted.shortened.iter().any(|it| it.index == index);
                let is_whole = |call: &usize| {
                    let index = 2 * call + 2;
                    fitted.kept.contains(&index) && !is_short(index)
                };
                let found = (0..calls.len()).filter(|&it| tools.contains(&calls[it].0));
                let found: Vec<usize> = found.filter(is_whole).collect();
                assert_eq!(found, whole, "{name}, {shape}, {:?}", policy.chat());
            }
        }
    }
}

/// The job was busy twice: when it was is what counts, not what it said last.
#[test]
fn never_keeps_a_result_that_comes_again() {
    let wait = || call("wait", json!({"job": 7}), "job", 40);
    let calls: Vec<Call> = small(3)
        .chain([call("list", json!({}), "list", 300), wait(), wait()])
        .chain(small(2))
        .collect();
    check(
        &calls,
        &["wait"],
        95,
        ("wait", ToolResults::Never),
        [&[5], &[4, 5]],
    );
}

/// The page was loaded again: what it said before is of no use, although nobody wrote it and the reader asked for
/// another part.
#[test]
fn by_path_gives_up_what_a_newer_result_of_the_same_path_replaces() {
    let fetch = |part, word| call("fetch", json!({"url": "a.html", "part": part}), word, 40);
    let calls: Vec<Call> = small(3)
        .chain([
            call("list", json!({}), "list", 300),
            fetch(1, "old"),
            fetch(2, "new"),
        ])
        .chain(small(2))
        .collect();
    let setting = ("fetch", ToolResults::ByPath);
    check(&calls, &["fetch"], 95, setting, [&[4, 5], &[5]]);
    // Without a path, the newest with the same arguments counts.
    let status = |word| call("status", json!({"short": true}), word, 40);
    let calls: Vec<Call> = small(3)
        .chain([
            call("list", json!({}), "list", 300),
            status("old"),
            status("new"),
        ])
        .chain(small(2))
        .collect();
    check(
        &calls,
        &["status"],
        95,
        ("stat*", ToolResults::ByPath),
        [&[4, 5], &[5]],
    );
}

/// Logs are long, and of less use than the listing before them.
#[test]
fn shorten_first_spares_older_results_of_other_tools() {
    let calls: Vec<Call> = small(4)
        .chain([
            call("list", json!({}), "list", 60),
            call("log", json!({}), "log", 120),
        ])
        .chain(small(4))
        .collect();
    check(
        &calls,
        &["list", "log"],
        80,
        ("log", ToolResults::ShortenFirst),
        [&[], &[4]],
    );
}

/// The plan is from the beginning, and what the whole session is about.
#[test]
fn keep_spares_a_plan_until_all_else_is_gone() {
    let read = |number| call("read", json!({"page": number}), "page", 40);
    let calls: Vec<Call> = (0..8)
        .map(read)
        .chain([call("todo", json!({"todos": 9}), "plan", 30)])
        .chain((9..24).map(read))
        .collect();
    let setting = ("todo", ToolResults::Keep);
    for share in [50, 25] {
        check(&calls, &["todo"], share, setting, [&[], &[8]]);
    }
}
