//! Where a chat is found: in wrappers, at a JSON pointer, and among other chats.

use cupel::ContextBudget;
use cupel_chat::{Chat, Chats, Encoding, Shape, default_policy};

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
        assert_eq!(chat.pointer(), at);
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
