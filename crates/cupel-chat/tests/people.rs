//! Chats that programs cut badly, each with what a person would have kept.

use cupel::Policy;
use cupel_chat::{Chat, Heuristic, default_policy, newest_policy, single_policy};
use serde_json::{Value, json};

use crate::agents::{budget, chat_of};

fn policies() -> [(&'static str, Policy); 3] {
    [
        ("agent", default_policy()),
        ("single", single_policy()),
        ("newest", newest_policy()),
    ]
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn answer(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn call(id: &str, name: &str) -> Value {
    call_with(id, name, &json!({"amount": 120}))
}

fn call_with(id: &str, name: &str, arguments: &Value) -> Value {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    let calls = json!([{"id": id, "type": "function", "function": function}]);
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn result(id: &str, text: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": text})
}

/// Returns the windows of the policies at the shares of a chat's tokens, in percent: the policy, and the kept messages.
fn windows<'c>(
    chat: &'c Chat,
    shares: &'c [i64],
) -> impl Iterator<Item = (String, Vec<usize>)> + 'c {
    let all = chat.tokens(&Heuristic);
    policies().into_iter().flat_map(move |(name, policy)| {
        shares.iter().map(move |share| {
            let fitted = chat.fit(&policy, &budget(all * share / 100), &Heuristic);
            let fitted = fitted.unwrap_or_else(|error| panic!("{name} at {share} %: {error}"));
            assert!(fitted.tokens_after <= all * share / 100);
            (format!("{name} at {share} %"), fitted.kept)
        })
    })
}

/// A payment waits for an approval: the call has no result yet. Without it nobody knows what is to be approved.
#[test]
fn a_call_that_waits_for_an_approval_stays() {
    let mut messages = vec![user("Refund what is owed.")];
    for number in 0..6 {
        let id = format!("c{number}");
        messages.push(call(&id, "find_orders"));
        messages.push(result(&id, &"An order of last month. ".repeat(20)));
    }
    messages.push(answer("Order 5 is owed. Shall I refund it?"));
    messages.push(user("Yes, please."));
    messages.push(call("last", "refund"));
    let last = messages.len() - 1;
    for (name, kept) in windows(&chat_of(&messages), &[90, 50, 30]) {
        assert!(kept.ends_with(&[last - 1, last]), "{name}: {kept:?}");
    }
    // Of two calls at once, one has its result already.
    messages[last]["tool_calls"] = json!([
        call("last", "refund")["tool_calls"][0],
        call("note", "write_note")["tool_calls"][0]
    ]);
    messages.push(result("note", "written"));
    for (name, kept) in windows(&chat_of(&messages), &[90, 50, 30]) {
        assert!(
            kept.ends_with(&[last - 1, last, last + 1]),
            "{name}: {kept:?}"
        );
    }
}

/// Twelve long answers, and a question about the newest. One token over the budget costs the oldest one a little.
#[test]
fn one_token_over_the_budget_costs_one_old_answer() {
    let mut messages = vec![user("What happened in the first hour?")];
    for hour in 0..12 {
        messages.push(answer(&format!("In hour {hour} it rained. ").repeat(80)));
        messages.push(user("And then?"));
    }
    let chat = chat_of(&messages);
    let all = chat.tokens(&Heuristic);
    let fitted = chat.fit(&single_policy(), &budget(all - 1), &Heuristic);
    let fitted = fitted.unwrap();
    let shortened: Vec<usize> = fitted.shortened.iter().map(|it| it.index).collect();
    assert_eq!((fitted.dropped.len(), &shortened[..]), (0, &[1][..]));
}

/// A call that a user turn follows will get no result: the provider rejects it, so it is dropped first.
#[test]
fn a_call_that_was_given_up_is_dropped_first() {
    let long = "A long story about something else. ".repeat(30);
    let messages = [
        user("Refund what is owed."),
        answer(&long),
        user("Go on."),
        call("gone", "refund"),
        user("Never mind. What was the story?"),
    ];
    for (name, kept) in windows(&chat_of(&messages), &[99]) {
        assert!(!kept.contains(&3), "{name}: {kept:?}");
    }
}

/// Returns a chat of calls with their results.
fn calls(calls: &[(&str, Value, &str)]) -> Vec<Value> {
    let mut messages = vec![user("Go through it.")];
    for (number, (name, arguments, text)) in calls.iter().enumerate() {
        let id = format!("c{number}");
        messages.push(call_with(&id, name, arguments));
        messages.push(result(&id, text));
    }
    messages
}

/// Returns the results that a newer one supersedes, each with the newer one.
fn superseded(messages: &[Value]) -> Vec<(usize, usize)> {
    let chat = chat_of(messages);
    let candidates = chat.candidates_for(&single_policy(), None, &Heuristic);
    let candidates = candidates.unwrap();
    let newer = |index| Some((index, candidates.superseded_by(index)?));
    (0..chat.len()).filter_map(newer).collect()
}

/// Each page says something else, so no page makes another one wrong.
#[test]
fn the_pages_of_a_listing_do_not_supersede_each_other() {
    let pages: Vec<String> = (0..8).map(|page| format!("page {page}")).collect();
    let pages: Vec<_> = pages
        .iter()
        .map(|page| ("next_page", json!({}), page.as_str()))
        .collect();
    assert_eq!(superseded(&calls(&pages)), []);
}

#[test]
fn a_result_that_comes_again_supersedes_the_older_one() {
    let status = |text| ("status", json!({"job": 7}), text);
    let messages = calls(&[
        status("waits"),
        status("waits"),
        status("runs"),
        status("waits"),
    ]);
    assert_eq!(superseded(&messages), [(2, 4)]);
}

#[test]
fn a_file_that_is_read_after_it_was_edited_supersedes_what_was_read_before() {
    let read = |path, text| ("read_file", json!({"path": path}), text);
    let edit = |path| ("Edit", json!({"file_path": path, "new": "b"}), "done");
    let before = [read("a.rs", "a"), read("b.rs", "a")];
    let after = [read("a.rs", "b"), read("b.rs", "b")];
    let messages = calls(&[&before[..], &[edit("a.rs")], &after].concat());
    // Nobody knows why b.rs differs.
    assert_eq!(superseded(&messages), [(2, 8)]);
    // The edit was before both.
    let messages = calls(&[edit("a.rs"), read("a.rs", "a"), read("a.rs", "b")]);
    assert_eq!(superseded(&messages), []);
}
