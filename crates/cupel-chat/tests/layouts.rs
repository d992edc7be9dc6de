//! Where a chat is found: in wrappers, at a JSON pointer, among other chats, and in transcripts.

use std::fmt::Write as _;

use cupel::{ContextBudget, CupelError};
use cupel_chat::{
    Chat, Chats, Encoding, FitError, FittedMessage, Heuristic, Message, Role, Shape,
    default_policy, newest_policy, single_policy,
};
use cupel_conformance::testing;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::generated::{Step, render, step};

const MESSAGES: &str = r#"[ {"role": "user", "content": "one"} , {"role": "assistant", "content": "two"},
  {"role": "user", "content": "three"} ]"#;
const LAST: &str = r#"[
  {"role": "user", "content": "three"} ]"#;

/// Checks that a chat is found at a path, and that only its list changes.
#[track_caller]
fn check(at: &str, document: &str, path: &str) {
    let text = document.replace("LIST", MESSAGES);
    let chat = Chat::parse_at(&text, at, None).unwrap();
    assert_eq!((chat.shape(), chat.len()), (Shape::OpenAi, 3), "{document}");
    assert_eq!(chat.message(1).path(), format!("{path}[1]"), "{document}");
    assert_eq!(chat.write(&[0, 1, 2]), text);
    assert_eq!(chat.write(&[2]), document.replace("LIST", LAST));
    let place = chat.message(1).place();
    assert!(text[place.offset..].starts_with(r#"{"role": "assistant""#));
}

#[test]
fn common_wrappers_need_no_pointer() {
    check(
        "",
        r#"{"custom_id": "r1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "gpt-4o", "messages": LIST}}"#,
        "body.messages",
    );
    check(
        "",
        r#"{"custom_id": "r1", "params": {"max_tokens": 9, "messages": LIST}}"#,
        "params.messages",
    );
    check(
        "",
        "{\n \"values\": {\"messages\": LIST, \"step\": 1},\n \"next\": []}\n",
        "values.messages",
    );
    check(
        "",
        r#"{"v": 4, "channel_values": {"messages": LIST}}"#,
        "channel_values.messages",
    );
    check(
        "",
        r#"{"task_id": 3, "reward": 1.0, "info": {}, "traj": LIST, "trial": 0}"#,
        "traj",
    );
    check(
        "",
        r#"{"environment": "main", "trajectory": [{"action": "ls"}], "history": LIST, "info": {}}"#,
        "history",
    );
}

#[test]
fn a_pointer_names_the_list_or_its_request() {
    let log = r#"{"request": {"headers": [], "body": {"messages": LIST}}, "items": []}"#;
    check("/request/body", log, "request.body.messages");
    check("/request/body/messages", log, "request.body.messages");
    // Of two lists, the pointer names one.
    check(
        "/messages",
        r#"{"messages": LIST, "input": []}"#,
        "messages",
    );
    check("/log/1", r#"{"log": [0, LIST]}"#, "log[1]");
    check("/a~1b/c~0d", r#"{"a/b": {"c~d": LIST}}"#, "a/b.c~d");
    check("/1/runs", r#"[{"runs": []}, {"runs": LIST}]"#, "[1].runs");
    check("", "LIST", "");
}

#[test]
fn the_fields_next_to_the_list_are_the_request() {
    let request = r#"{"model": "gpt-4o", "tools": [{"type": "function", "function": {"name": "f"}}], "messages": [{"role": "user", "content": "x"}]}"#;
    let whole = Chat::parse(request, None).unwrap();
    for at in ["/a/b", "/a/b/messages"] {
        let chat = Chat::parse_at(&format!(r#"{{"a": {{"b": {request}}}}}"#), at, None).unwrap();
        assert_eq!(chat.model(), Some("gpt-4o"));
        let counter = Encoding::O200k;
        assert_eq!(chat.overhead(&counter), whole.overhead(&counter));
        assert_eq!(chat.parsed_at(), at);
    }
}

#[track_caller]
fn check_error(at: &str, text: &str, expected: &str, pointers: &[&str]) {
    let error = Chat::parse_at(text, at, None).unwrap_err();
    assert_eq!(error.to_string(), expected, "{text}");
    assert_eq!(error.pointers, pointers, "{text}");
}

#[test]
fn a_pointer_to_nothing_names_what_is_there() {
    check_error(
        "/request/bdy",
        r#"{"request": {"body": {}, "headers": []}}"#,
        "line 1, column 13, request: nothing at the pointer `/request/bdy`: the object has `body`, `headers`",
        &[],
    );
    check_error(
        "/a/2",
        r#"{"a": [0]}"#,
        "line 1, column 7, a: nothing at the pointer `/a/2`: the array has 1 element",
        &[],
    );
    check_error(
        "/a/00",
        r#"{"a": [0]}"#,
        "line 1, column 7, a: nothing at the pointer `/a/00`: the array has 1 element",
        &[],
    );
    check_error(
        "a",
        r#"{"a": []}"#,
        "line 1, column 1: invalid JSON pointer `a`: it must start with `/`",
        &[],
    );
}

#[test]
fn an_error_names_the_lists_that_were_found() {
    let error = |text: &str| Chat::parse(text, None).unwrap_err();
    let log = r#"{"id": 7, "request": {"body": {"messages": [{"role": "user", "content": "x"}]}}}"#;
    assert_eq!(error(log).pointers, ["/request/body/messages"]);
    let two = r#"{"a": [{"role": "user"}], "b/c": [{"type": "human", "content": "x"}], "d": [{"content": "x", "tokens": 1}]}"#;
    assert_eq!(error(two).pointers, ["/a", "/b~1c"]);
    let first = r#"{"runs": [{"log": [[{"role": "user", "content": "x"}]]}, {}]}"#;
    assert_eq!(error(first).pointers, ["/runs/0/log/0"]);
    let array = r#"[{"log": {"turns": [{"role": "user", "content": "x"}]}}]"#;
    assert_eq!(error(array).pointers, ["/0/log/turns"]);
    let lines = "{\"log\": {\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}}\n{}\n";
    assert_eq!(error(lines).pointers, ["/log/messages"]);
    let both = r#"{"messages": [], "input": []}"#;
    assert_eq!(error(both).pointers, ["/messages", "/input"]);
    let shape = Some(Shape::Responses);
    assert_eq!(Chat::parse(both, shape).unwrap().shape(), Shape::Responses);
    // A field of that name without a list is no list.
    let field = r#"{"messages": [{"role": "user", "content": "x"}], "conversations": 7}"#;
    assert_eq!(Chat::parse(field, None).unwrap().len(), 1);
}

#[test]
fn formats_that_are_not_read_are_named() {
    for (text, start) in [
        (
            "<|im_start|>user\nhi<|im_end|>\n",
            "this looks like a prompt template such as ChatML (it has `<|im_start|>`); convert it to messages",
        ),
        (
            r#"{"object": "list", "data": [{"object": "thread.message", "role": "user", "content": []}]}"#,
            "this looks like an OpenAI Assistants thread (it has `thread.message`); convert it to messages",
        ),
        (
            r#"[{"parts": [{"content": "hi", "part_kind": "user-prompt"}], "kind": "request"}]"#,
            "this looks like the message history of PydanticAI (it has `part_kind`); convert it",
        ),
        (
            r#"{"message": "and?", "chat_history": [{"role": "USER", "message": "hi"}]}"#,
            "this looks like a request of the Cohere Chat API v1 (it has `chat_history`); convert it to version 2",
        ),
        (
            r#"{"id": "x", "choices": [{"message": {"role": "assistant", "content": "hi"}}]}"#,
            "this looks like the answer of a provider, not a request (it has `choices`); append",
        ),
        (
            r#"{"model": "m", "prompt": "hi"}"#,
            "this looks like the prompt of a completion, not a chat (it has `prompt`); convert it",
        ),
    ] {
        let error = Chat::parse(text, None).unwrap_err();
        assert!(error.is_foreign(), "{text}");
        assert!(error.message.starts_with(start), "{}", error.message);
    }
}

#[test]
fn many_chats_are_found_and_written_back() {
    let chat = |id: usize| format!(r#"{{"id": {id}, "messages": {MESSAGES}}}"#).replace('\n', "");
    let lines = format!(
        "\u{feff}{}\n\n  {}\r\n{{broken\n{}",
        chat(1),
        chat(2),
        chat(3)
    );
    let chats = Chats::find(&lines, "").unwrap();
    let found: Vec<(usize, &str)> = chats.iter().collect();
    assert_eq!(found.len(), 4);
    assert_eq!(found[1], (3, &*chat(2)));
    assert_eq!(found[2], (4, "{broken"));
    assert_eq!(
        chats.write(&["a", "b", "c", "d"]),
        "\u{feff}a\n\n  b\r\nc\nd"
    );
    let array = format!("[\n  {},\n  {}\n]\n", chat(1), chat(2));
    let chats = Chats::find(&array, "").unwrap();
    assert_eq!(
        chats.iter().map(|(line, _)| line).collect::<Vec<_>>(),
        [2, 3]
    );
    assert_eq!(chats.write(&["a", "b"]), "[\n  a,\n  b\n]\n");
    let error = Chat::parse(&array, None).unwrap_err();
    assert!(error.is_many(), "{error}");
    let logs = "{\"q\": {\"messages\": []}}\n{\"q\": {\"messages\": []}}\n";
    assert!(Chats::find(logs, "").is_none());
    assert_eq!(Chats::find(logs, "/q").unwrap().len(), 2);
}

#[test]
fn one_chat_is_not_many() {
    for text in [
        "",
        "[]",
        "{}",
        r#"{"messages": []}"#,
        "{\n\"messages\": []}",
        r#"[{"role": "user", "content": "x"}]"#,
        "{\"role\": \"user\", \"content\": \"x\"}\n{\"role\": \"user\", \"content\": \"x\"}",
        // The input of a tool call is no list of messages.
        "{\"type\": \"custom_tool_call\", \"call_id\": \"a\", \"name\": \"f\", \"input\": \"x\"}\n{\"type\": \"custom_tool_call_output\", \"call_id\": \"a\", \"output\": \"y\"}",
        "{\"items\": []}\n{\"items\": []}",
        "{\"content\": \"x\", \"tokens\": 1}\n{\"content\": \"y\"}",
    ] {
        assert!(Chats::find(text, "").is_none(), "{text}");
    }
}

#[test]
fn a_chat_in_a_wrapper_is_fitted_in_place() {
    let long = "word ".repeat(200);
    let text = format!(
        r#"{{"custom_id": "r1", "body": {{"messages": [{{"role": "user", "content": "one"}}, {{"role": "assistant", "content": "{long}"}}, {{"role": "user", "content": "two"}}], "model": "gpt-4o"}}, "x": 1.0}}"#
    );
    let chat = Chat::parse(&text, None).unwrap();
    let budget = ContextBudget::with_target(40, 40).unwrap();
    let fitted = chat
        .fit(&default_policy(), &budget, &Encoding::O200k)
        .unwrap();
    let written = fitted.to_json();
    assert!(written.starts_with(
        r#"{"custom_id": "r1", "body": {"messages": [{"role": "user", "content": "one"}, "#
    ));
    assert!(written.ends_with(r#"], "model": "gpt-4o"}, "x": 1.0}"#));
    let again = Chat::parse(&written, None).unwrap();
    assert!(again.tokens(&Encoding::O200k) <= 40);
}

/// A record of a Claude Code transcript.
fn record(number: usize, kind: &str, fields: &str, message: &str) -> String {
    let parent = match number {
        1 => "null".to_owned(),
        number => format!("\"u{}\"", number - 1),
    };
    format!(
        "{{\"parentUuid\": {parent}, \"isSidechain\": false,{fields} \"sessionId\": \"s\", \"type\": \"{kind}\", \"message\": {message}, \"uuid\": \"u{number}\", \"timestamp\": \"2026-01-01T10:00:0{number}.000Z\"}}\n"
    )
}

/// A transcript: a task, two steps whose answers span lines, a side chain and other records.
fn transcript() -> String {
    let long = "long ".repeat(150);
    let result = |id: &str| {
        format!(
            r#"{{"role": "user", "content": [{{"type": "tool_result", "tool_use_id": "{id}", "content": "{long}"}}]}}"#
        )
    };
    let answer = |id: &str, block: &str| {
        format!(
            r#"{{"id": "{id}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [{block}], "stop_reason": null}}"#
        )
    };
    let thinking = r#"{"type": "thinking", "thinking": "hmm", "signature": "EqQBCg=="}"#;
    let call = |id: &str| {
        format!(r#"{{"type": "tool_use", "id": "{id}", "name": "Read", "input": {{}}}}"#)
    };
    let user = |text: &str| format!(r#"{{"role": "user", "content": "{text}"}}"#);
    let side = record(9, "assistant", "", &answer("msg_9", &call("side")))
        .replace("\"isSidechain\": false", "\"isSidechain\": true");
    [
        "{\"type\": \"summary\", \"summary\": \"Fix\", \"leafUuid\": \"x\"}\n",
        &record(1, "user", " \"cwd\": \"/w\",", &user("Fix the bug.")),
        &record(2, "assistant", "", &answer("msg_1", thinking)),
        &side,
        &record(3, "assistant", "", &answer("msg_1", &call("a"))),
        &record(4, "user", "", &result("a")),
        "{\"type\": \"file-history-snapshot\", \"messageId\": \"m\", \"snapshot\": {}}\n",
        &record(5, "assistant", "", &answer("msg_2", &call("b"))),
        &record(6, "user", "", &result("b")),
        &record(
            7,
            "assistant",
            "",
            &answer("msg_3", r#"{"type": "text", "text": "Done."}"#),
        ),
        &record(8, "user", "", &user("Commit.")),
    ]
    .concat()
}

/// Returns the id and the parent of every record that has an id.
fn chain(text: &str) -> Vec<(String, Value)> {
    let records = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let links = records.filter_map(|record: Value| {
        Some((
            record.get("uuid")?.as_str()?.to_owned(),
            record["parentUuid"].clone(),
        ))
    });
    links.collect()
}

#[test]
fn a_claude_code_transcript_is_a_chat_among_other_records() {
    let text = transcript();
    let chat = Chat::parse(&text, None).unwrap();
    assert_eq!((chat.shape(), chat.len()), (Shape::ClaudeCode, 8));
    assert_eq!(chat.model(), Some("claude-sonnet-4-5"));
    let all: Vec<usize> = (0..8).collect();
    assert_eq!(chat.write(&all), text);
    let items = chat.items(&Encoding::O200k);
    let group = |index: usize| items[index].metadata().get("cupel:group");
    assert_eq!(group(1), group(2), "one message in two lines");
    assert_eq!(group(1), group(3), "and its result");
    assert_ne!(group(1), group(4));
    let expected: chrono::DateTime<chrono::Utc> = "2026-01-01T10:00:03Z".parse().unwrap();
    assert_eq!(items[2].timestamp(), Some(expected));
}

#[test]
fn records_that_are_no_messages_stay_and_the_chain_is_closed() {
    let text = transcript();
    let chat = Chat::parse(&text, None).unwrap();
    let written = chat.write(&[0, 6, 7]);
    let lines: Vec<&str> = text.lines().collect();
    let kept = [0, 1, 3, 6, 9, 10].map(|line| lines[line]);
    let expected = kept.join("\n") + "\n";
    let expected = expected.replace("\"parentUuid\": \"u6\"", "\"parentUuid\": \"u1\"");
    // The parent of the side chain is its own.
    assert_eq!(written, expected);
    let again = Chat::parse(&written, None).unwrap();
    assert_eq!((again.shape(), again.len()), (Shape::ClaudeCode, 3));
}

#[test]
fn a_fitted_transcript_is_one_chain() {
    let text = transcript();
    let chat = Chat::parse(&text, None).unwrap();
    let counter = Encoding::O200k;
    let others = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| {
            line.contains("\"isSidechain\": true") || !line.contains("\"message\":")
        });
        lines.map(str::to_owned).collect()
    };
    let mut shortest = usize::MAX;
    for tokens in (60..500).step_by(20) {
        let budget = ContextBudget::with_target(tokens, tokens).unwrap();
        for policy in [default_policy(), single_policy(), newest_policy()] {
            let Ok(fitted) = chat.fit(&policy, &budget, &counter) else {
                continue;
            };
            let written = fitted.to_json();
            assert_eq!(others(&written), others(&text), "{tokens}");
            let links = chain(&written);
            let has = |id: &str| links.iter().any(|(known, _)| known == id);
            let is_linked =
                |(_, parent): &(String, Value)| parent.is_null() || has(parent.as_str().unwrap());
            // The parent of the side chain is no record of the file.
            let main = links.iter().filter(|(id, _)| id != "u9");
            assert!(main.clone().all(is_linked), "{tokens}: {written}");
            assert_eq!(main.filter(|(_, parent)| parent.is_null()).count(), 1);
            assert_eq!(has("u2"), has("u3"), "{tokens}");
            assert_eq!(has("u3"), has("u4"), "{tokens}");
            let again = Chat::parse(&written, None).unwrap();
            assert!(again.tokens(&counter) <= tokens);
            shortest = shortest.min(again.len());
        }
    }
    assert!(shortest < 6, "{shortest}");
}

#[test]
fn a_marker_is_a_record_of_the_chain() {
    let user = |text: &str| format!(r#"{{"role": "user", "content": "{text}"}}"#);
    let long = "long ".repeat(150);
    let answer = format!(r#"{{"role": "assistant", "content": "{long}"}}"#);
    let text = [
        record(1, "user", "", &user("Fix the bug.")),
        record(2, "assistant", "", &answer),
        record(3, "user", "", &user("Commit.")),
    ]
    .concat();
    let chat = Chat::parse(&text, None).unwrap();
    let budget = ContextBudget::with_target(30, 30).unwrap();
    let fitted = chat.fit(&default_policy(), &budget, &Encoding::O200k);
    let fitted = fitted.unwrap();
    assert_eq!((&fitted.kept[..], fitted.markers.len()), (&[0, 2][..], 1));
    let written = fitted.to_json();
    let links = chain(&written);
    let ids: Vec<&str> = links.iter().map(|(id, _)| id.as_str()).collect();
    let [first, marker, last] = ids[..] else {
        panic!("{written}");
    };
    // RFC 9562: version 8, variant 10.
    assert!(marker.len() == 36 && &marker[14..15] == "8" && "89ab".contains(&marker[19..20]));
    assert_eq!((first, last), ("u1", "u3"));
    assert_eq!((&links[1].1, &links[2].1), (&first.into(), &marker.into()));
    let again = Chat::parse(&written, None).unwrap();
    assert_eq!(again.len(), 3);
    assert_eq!(again.message(1).text(), "[1 earlier message omitted]");
    assert_eq!(again.message(1).role(), Role::Assistant);
}

#[test]
fn messages_before_a_compaction_are_passed_through() {
    let text = transcript();
    let boundary = "{\"type\": \"system\", \"subtype\": \"compact_boundary\", \"parentUuid\": null, \"uuid\": \"b\"}\n";
    let summary = record(
        8,
        "user",
        " \"isCompactSummary\": true,",
        r#"{"role": "user", "content": "The bug is fixed."}"#,
    );
    let last = record(9, "user", "", r#"{"role": "user", "content": "Thanks."}"#);
    let text = format!("{text}{boundary}{summary}{last}");
    let chat = Chat::parse(&text, None).unwrap();
    assert_eq!(chat.len(), 2);
    assert_eq!(chat.message(0).text(), "The bug is fixed.");
    let budget = ContextBudget::with_target(100, 100).unwrap();
    let fitted = chat
        .fit(&default_policy(), &budget, &Encoding::O200k)
        .unwrap();
    assert_eq!(fitted.to_json(), text);
}

#[test]
fn a_transcript_of_a_subagent_is_a_chat() {
    let text = transcript().replace("\"isSidechain\": false", "\"isSidechain\": true");
    let chat = Chat::parse(&text, None).unwrap();
    assert_eq!((chat.shape(), chat.len()), (Shape::ClaudeCode, 9));
    let text = transcript() + "{\"role\": \"user\", \"content\": \"x\"}\n";
    for shape in [None, Some(Shape::ClaudeCode)] {
        let error = Chat::parse(&text, shape).unwrap_err();
        assert!(error.is_ambiguous() && error.place.line == 12, "{error}");
    }
    let error = Chat::parse("[]", Some(Shape::ClaudeCode)).unwrap_err();
    assert_eq!(
        error.message,
        "a transcript of the format claude-code has one record per line"
    );
}

#[test]
fn records_in_an_array_are_refused() {
    for (text, shape) in [(transcript(), "claude-code"), (rollout(), "codex")] {
        let mut lines: Vec<&str> = text.lines().collect();
        // A summary has no evidence of any format.
        lines.retain(|line| !line.contains("leafUuid") && !line.contains("snapshot"));
        let array = format!("[{}]", lines.join(","));
        let error = Chat::parse(&array, None).unwrap_err().message;
        let start = format!("a record of the format {shape}, which has one record per line");
        assert!(error.starts_with(&start), "{error}");
    }
}

#[test]
fn parts_of_an_anthropic_answer_are_one_group() {
    let answer = |block: &str| {
        format!(
            "{{\"id\": \"msg_1\", \"type\": \"message\", \"role\": \"assistant\", \"model\": \"claude-sonnet-4-5\", \"content\": [{block}], \"stop_reason\": null}}\n"
        )
    };
    let result = |id: &str| {
        format!(
            "{{\"role\": \"user\", \"content\": [{{\"type\": \"tool_result\", \"tool_use_id\": \"{id}\", \"content\": \"x\"}}]}}\n"
        )
    };
    let call =
        |id: &str| format!(r#"{{"type": "tool_use", "id": "{id}", "name": "f", "input": {{}}}}"#);
    let text = [
        "{\"role\": \"user\", \"content\": \"one\"}\n",
        &answer(&call("a")),
        &result("a"),
        &answer(&call("b")),
        &result("b"),
        "{\"role\": \"user\", \"content\": \"two\"}\n",
    ]
    .concat();
    let chat = Chat::parse(&text, None).unwrap();
    assert_eq!(chat.shape(), Shape::Anthropic);
    let items = chat.items(&Encoding::O200k);
    let group = |index: usize| items[index].metadata().get("cupel:group");
    assert!(group(1).is_some());
    assert!((2..5).all(|index| group(index) == group(1)));
}

/// A Codex rollout.
fn rollout() -> String {
    let long = "long ".repeat(150);
    let item = |payload: &str| {
        format!(
            "{{\"timestamp\": \"2026-04-22T19:00:01.1Z\", \"type\": \"response_item\", \"payload\": {payload}}}\n"
        )
    };
    let user = |text: &str| {
        item(&format!(
            r#"{{"type": "message", "role": "user", "content": [{{"type": "input_text", "text": "{text}"}}]}}"#
        ))
    };
    [
        "{\"timestamp\": \"2026-04-22T19:00:01.055Z\", \"type\": \"session_meta\", \"payload\": {\"id\": \"t\", \"instructions\": \"Be brief.\"}}\n",
        "{\"timestamp\": \"2026-04-22T19:00:01.055Z\", \"type\": \"turn_context\", \"payload\": {\"model\": \"gpt-5-codex\"}}\n",
        &user("Run the tests."),
        "{\"timestamp\": \"2026-04-22T19:00:01.1Z\", \"type\": \"event_msg\", \"payload\": {\"type\": \"user_message\", \"message\": \"Run the tests.\"}}\n",
        &item(r#"{"type": "reasoning", "summary": [], "content": null, "encrypted_content": "gAAAAA"}"#),
        &item(r#"{"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"}"#),
        &item(&format!(r#"{{"type": "function_call_output", "call_id": "c1", "output": "{long}"}}"#)),
        "{\"timestamp\": \"2026-04-22T19:00:01.1Z\", \"type\": \"event_msg\", \"payload\": {\"type\": \"token_count\", \"info\": null}}\n",
        &item(r#"{"type": "ghost_snapshot", "ghost_commit": {}}"#),
        &item(r#"{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "All pass."}]}"#),
        &user("Commit."),
    ]
    .concat()
}

#[test]
fn a_codex_rollout_is_a_chat_among_other_records() {
    let text = rollout();
    let chat = Chat::parse(&text, None).unwrap();
    assert_eq!((chat.shape(), chat.len()), (Shape::Codex, 6));
    assert_eq!(chat.model(), Some("gpt-5-codex"));
    // 3 and 1 for the role, 3 for the text, and 3 for the answer.
    assert_eq!(chat.overhead(&Encoding::O200k), 10);
    let lines: Vec<&str> = text.lines().collect();
    let kept = [0, 1, 2, 3, 7, 8, 10].map(|line| lines[line]);
    assert_eq!(chat.write(&[0, 5]), kept.join("\n") + "\n");
    let counter = Encoding::O200k;
    let budget = ContextBudget::with_target(60, 60).unwrap();
    let fitted = chat.fit(&newest_policy(), &budget, &counter).unwrap();
    let written = fitted.to_json();
    assert_eq!(
        written.contains("encrypted_content"),
        written.contains("function_call_output")
    );
    let again = Chat::parse(&written, None).unwrap();
    assert!(again.tokens(&counter) <= 60 && again.shape() == Shape::Codex);
}

#[test]
fn the_summary_of_a_codex_rollout_replaces_what_is_before() {
    let summary = "{\"timestamp\": \"2026-04-22T19:00:05Z\", \"type\": \"compacted\", \"payload\": {\"message\": \"The tests pass.\"}}\n";
    let last = "{\"timestamp\": \"2026-04-22T19:00:06Z\", \"type\": \"response_item\", \"payload\": {\"type\": \"message\", \"role\": \"user\", \"content\": \"Thanks.\"}}\n";
    let text = rollout() + summary + last;
    let chat = Chat::parse(&text, None).unwrap();
    let texts: Vec<String> = chat.messages().map(Message::text).collect();
    assert_eq!(texts, ["The tests pass.", "Thanks."]);
    assert_eq!(chat.write(&[0, 1]), text);
}

#[test]
fn lines_without_a_line_break_at_the_end_are_written_as_lines() {
    for text in [transcript(), rollout()] {
        let text = text.trim_end();
        let chat = Chat::parse(text, None).unwrap();
        let last = chat.len() - 1;
        assert_eq!(chat.write(&(0..=last).collect::<Vec<_>>()), text);
        let written = chat.write(&[0, last]);
        assert!(Chat::parse(&written, None).is_ok_and(|chat| chat.len() == 2));
        let written = chat.write(&[0]);
        assert!(Chat::parse(&written, None).is_ok_and(|chat| chat.len() == 1));
    }
}

/// Returns a transcript of messages among other records, and the same messages one per line.
fn transcript_and_lines(shape: Shape, messages: &[Value]) -> (String, String) {
    let (mut records, mut lines) = (String::new(), String::new());
    let mut number = 0;
    let mut parent = Value::Null;
    for (position, message) in messages.iter().enumerate() {
        let _ = writeln!(lines, "{message}");
        number += 1;
        let id = format!("u{number}");
        let record = match shape {
            Shape::Codex => json!({"type": "response_item", "payload": message}),
            _ => json!({
                "type": message["role"], "message": message, "sessionId": "s", "isSidechain": false,
                "uuid": id, "parentUuid": parent,
            }),
        };
        let _ = writeln!(records, "{record}");
        parent = json!(id);
        if position % 3 == 1 {
            number += 1;
            let id = format!("u{number}");
            let other = json!({"type": "system", "uuid": id, "parentUuid": parent, "payload": {}});
            let _ = writeln!(records, "{other}");
            parent = json!(id);
        }
        if position % 4 == 2 {
            let side = json!({
                "type": "assistant", "message": {"role": "assistant", "content": "aside"},
                "isSidechain": true, "uuid": format!("s{number}"), "parentUuid": null,
            });
            let _ = writeln!(records, "{side}");
        }
    }
    (records, lines)
}

#[test]
fn a_transcript_is_fitted_as_its_messages_alone() {
    let config = Config {
        cases: testing::cases(20),
        failure_persistence: None,
        ..Config::default()
    };
    let texts = |chat: &Chat| chat.messages().map(Message::text).collect::<Vec<_>>();
    let other_records = |text: &str| {
        let others = |line: &&str| line.contains("\"system\"") || line.contains("aside");
        let without_parent = |line: &str| {
            let mut record: Value = serde_json::from_str(line).unwrap();
            record["parentUuid"] = Value::Null;
            record
        };
        text.lines()
            .filter(others)
            .map(without_parent)
            .collect::<Vec<_>>()
    };
    let dropped = std::cell::Cell::new(0);
    let run = TestRunner::new(config).run(&vec(step(), 1..12), |steps| {
        for (shape, plain) in [
            (Shape::ClaudeCode, Shape::Anthropic),
            (Shape::Codex, Shape::Responses),
        ] {
            let mut steps = steps.clone();
            for step in &mut steps {
                let Step::Tools {
                    think,
                    late,
                    reused,
                    ..
                } = step
                else {
                    continue;
                };
                // A transcript has no field `thinking`, and may have a result at any place.
                if shape == Shape::ClaudeCode {
                    (*think, *late) = (false, false);
                }
                // It may have two results of one id, as late ones of reused ids are.
                *reused &= !*late;
            }
            let mut messages = render(plain, &steps);
            // The instructions of Codex are not a message.
            messages.retain(|message| message["role"] != "system");
            let (records, lines) = transcript_and_lines(shape, &messages);
            let transcript = Chat::parse(&records, Some(shape)).unwrap();
            let alone = Chat::parse(&lines, Some(plain)).unwrap();
            prop_assert_eq!(texts(&transcript), texts(&alone));
            let all = alone.tokens(&Heuristic);
            prop_assert_eq!(transcript.tokens(&Heuristic), all);
            for share in [20, 50, 80, 100] {
                let tokens = (all * share / 100).max(1);
                let budget = ContextBudget::with_target(tokens, tokens).unwrap();
                let fit = |chat: &Chat| {
                    let fitted = chat.fit(&default_policy(), &budget, &Heuristic).ok()?;
                    Some((fitted.kept.clone(), fitted.to_json()))
                };
                let (fitted, expected) = (fit(&transcript), fit(&alone));
                prop_assert_eq!(fitted.is_some(), expected.is_some());
                let (Some((kept, written)), Some((expected, alone))) = (fitted, expected) else {
                    continue;
                };
                prop_assert_eq!(&kept, &expected);
                dropped.set(dropped.get() + messages.len() - kept.len());
                if kept.is_empty() {
                    continue;
                }
                prop_assert_eq!(other_records(&written), other_records(&records));
                let again = Chat::parse(&written, Some(shape)).unwrap();
                let alone = Chat::parse(&alone, Some(plain)).unwrap();
                prop_assert_eq!(texts(&again), texts(&alone));
                let links = chain(&written);
                let is_linked = |(_, parent): &(String, Value)| {
                    // The records of Codex are no chain.
                    shape == Shape::Codex
                        || parent.is_null()
                        || links.iter().any(|(id, _)| parent == id)
                };
                prop_assert!(links.iter().all(is_linked), "{}", written);
            }
        }
        Ok(())
    });
    run.unwrap();
    assert!(dropped.get() > 0);
}

#[test]
fn a_row_of_training_data_with_a_system_prompt_is_sharegpt() {
    let row = json!({"system": "You code.", "conversations": [
        {"from": "human", "value": "Sort a list."}, {"from": "gpt", "value": "Call sort."},
    ]});
    let chat = Chat::parse(&row.to_string(), None).unwrap();
    assert_eq!(chat.shape(), Shape::ShareGpt);
}

#[test]
fn a_chat_has_the_pointer_of_its_list() {
    let user = r#"{"role": "user", "content": "hi"}"#;
    let pointer = |text: &str| {
        let chat = Chat::parse(text, None).unwrap();
        chat.list_pointer().map(str::to_owned)
    };
    assert_eq!(pointer(&format!("[{user}]")).as_deref(), Some(""));
    let request = format!(r#"{{"model": "m", "messages": [{user}]}}"#);
    assert_eq!(pointer(&request).as_deref(), Some("/messages"));
    let answer = r#"{"role": "assistant", "content": "hello"}"#;
    assert_eq!(pointer(&format!("{user}\n{answer}\n")), None);
}

#[test]
fn the_error_of_a_policy_is_the_source() {
    let error = FitError::Policy(CupelError::EmptyContent);
    let source = std::error::Error::source(&error).map(ToString::to_string);
    assert_eq!(source, Some(CupelError::EmptyContent.to_string()));
    let error = FitError::NoUserTurn(Shape::Anthropic);
    assert!(std::error::Error::source(&error).is_none());
}

#[test]
fn a_message_without_a_shorter_text_is_the_original() {
    let chat = r#"[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]"#;
    let chat = Chat::parse(chat, None).unwrap();
    let budget = ContextBudget::with_target(1_000, 1_000).unwrap();
    let fitted = chat.fit(&default_policy(), &budget, &Encoding::O200k);
    assert_eq!(
        fitted.unwrap().messages(),
        [FittedMessage::Original(0), FittedMessage::Original(1)]
    );
}

#[test]
fn white_space_around_commas_and_lines_stays_with_its_message() {
    let user = r#"{"role": "user", "content": "one"}"#;
    let answer = r#"{"role": "assistant", "content": "two"}"#;
    let list = format!("[{user}  ,\n {answer}\t,{user}]");
    let chat = Chat::parse(&list, None).unwrap();
    assert_eq!(chat.write(&[1]), format!("[\n {answer}]"));
    assert_eq!(chat.write(&[1, 2]), format!("[\n {answer},{user}]"));
    let lines = format!("  {user}\n\t {answer} \n   {user}\n");
    let chat = Chat::parse(&lines, None).unwrap();
    assert_eq!(chat.message(1).json(), answer);
    assert_eq!(chat.write(&[1]), format!("\t {answer} \n"));
    assert_eq!(chat.write(&[0, 2]), format!("  {user}\n   {user}\n"));
}

#[test]
fn a_marker_before_a_last_line_without_a_line_break_is_a_line() {
    let line = |role: &str, text: &str| json!({"role": role, "content": text}).to_string();
    let lines = [
        line("user", "Do it."),
        line("assistant", &"words ".repeat(90)),
        line("user", "And now?"),
    ];
    let text = lines.join("\n");
    let chat = Chat::parse(&text, None).unwrap();
    let budget = ContextBudget::with_target(60, 60).unwrap();
    let mut settings = default_policy().chat().clone();
    settings.shorten = cupel::Shorten::Off;
    let policy = default_policy().to_builder().chat(settings).build();
    let fitted = chat.fit(&policy.unwrap(), &budget, &Encoding::O200k);
    let written = fitted.unwrap().to_json();
    let written: Vec<&str> = written.split('\n').collect();
    assert_eq!((written[0], written[2]), (&*lines[0], &*lines[2]));
    assert!(written[1].contains("[1 earlier message omitted]"));
}

#[test]
fn a_string_is_a_list_only_where_a_format_accepts_one() {
    let error = Chat::parse(r#"{"messages": "hi"}"#, None).unwrap_err();
    assert_eq!(
        (&*error.path, &*error.message),
        ("messages", "must be an array")
    );
    let messages = r#"[{"role": "user", "content": "hi"}]"#;
    for other in [
        r#""input": {"a": 1}"#,
        r#""input": null"#,
        r#""contents": "b""#,
    ] {
        let text = format!(r#"{{{other}, "messages": {messages}}}"#);
        let chat = Chat::parse(&text, None).unwrap();
        assert_eq!(
            (chat.len(), chat.message(0).path()),
            (1, "messages[0]".to_owned())
        );
    }
}

#[test]
fn a_line_that_is_no_record_is_not_part_of_a_transcript() {
    for line in [
        r#"{"type": "user", "role": "user", "content": "hi"}"#,
        r#"{"role": "user", "content": "hi"}"#,
        r#"{"content": "hi"}"#,
    ] {
        let text = format!("{}{line}\n", transcript());
        let error = Chat::parse(&text, Some(Shape::ClaudeCode)).unwrap_err();
        let start = "not a record of the format claude-code";
        assert!(error.message.starts_with(start), "{}", error.message);
    }
}
