//! Breakpoints of the prompt cache in windows. Expected requests are written by hand, after the documentation of the
//! providers.

use cupel::Policy;
use cupel_chat::{CachePlace, Chat, Encoding, Fitted, Shape, default_policy};
use serde_json::{Value, json};

use crate::agents::budget;
use crate::cuts::marked_loop;
use crate::valid;

/// Returns the default policy with breakpoints.
fn policy() -> Policy {
    let mut settings = default_policy().chat().clone();
    settings.cache_breakpoints = true;
    default_policy()
        .to_builder()
        .chat(settings)
        .build()
        .unwrap()
}

fn fit(chat: &Chat, tokens: i64) -> Fitted<'_> {
    let fitted = chat.fit(&policy(), &budget(tokens), &Encoding::O200k);
    fitted.unwrap_or_else(|error| panic!("{error}"))
}

/// Checks the request that a chat in the budget becomes.
fn check(shape: Shape, text: &str, expected: &str) {
    let chat = Chat::parse(text, Some(shape)).unwrap();
    let json = fit(&chat, 100_000).to_json();
    assert_eq!(json, expected);
    assert_eq!(valid::objection(shape, &valid::messages(&json)), None);
    // The window is a request with all four, so nothing is added to it.
    let again = Chat::parse(&json, Some(shape)).unwrap();
    assert_eq!(
        again.tokens(&Encoding::O200k),
        chat.tokens(&Encoding::O200k)
    );
}

#[test]
fn an_anthropic_request_gets_cache_control_on_blocks() {
    check(
        Shape::Anthropic,
        r#"{"system": "Be brief.", "tools": [{"name": "f", "input_schema": {}}], "messages": [
  {"role": "user", "content": "Weather?"},
  {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {"cache_control": 1}}]},
  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "12 degrees"}]}
]}"#,
        r#"{"system": [{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}], "tools": [{"name": "f", "input_schema": {}}], "messages": [
  {"role": "user", "content": [{"type":"text","text":"Weather?","cache_control":{"type":"ephemeral"}}]},
  {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {"cache_control": 1}}]},
  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "12 degrees","cache_control":{"type":"ephemeral"}}]}
]}"#,
    );
    // Without a system prompt, the tools end the prefix; one that is loaded later cannot be cached.
    check(
        Shape::Anthropic,
        r#"{"tools": [{"name": "f", "input_schema": {}}, {"name": "g", "input_schema": {}, "defer_loading": true}], "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]}"#,
        r#"{"tools": [{"name": "f", "input_schema": {},"cache_control":{"type":"ephemeral"}}, {"name": "g", "input_schema": {}, "defer_loading": true}], "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi","cache_control":{"type":"ephemeral"}}]}]}"#,
    );
}

#[test]
fn a_bedrock_request_gets_cache_points_after_blocks() {
    check(
        Shape::Bedrock,
        r#"{"system": [{"text": "Be brief."}], "messages": [
  {"role": "user", "content": [{"text": "Weather?"}]},
  {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}]},
  {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": "12"}]}}]}
]}"#,
        r#"{"system": [{"text": "Be brief."},{"cachePoint":{"type":"default"}}], "messages": [
  {"role": "user", "content": [{"text": "Weather?"},{"cachePoint":{"type":"default"}}]},
  {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}]},
  {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": "12"}]}},{"cachePoint":{"type":"default"}}]}
]}"#,
    );
    check(
        Shape::Bedrock,
        r#"{"toolConfig": {"tools": [{"toolSpec": {"name": "f"}}]}, "messages": [{"role": "user", "content": [{"text": "Hi"}]}]}"#,
        r#"{"toolConfig": {"tools": [{"toolSpec": {"name": "f"}},{"cachePoint":{"type":"default"}}]}, "messages": [{"role": "user", "content": [{"text": "Hi"},{"cachePoint":{"type":"default"}}]}]}"#,
    );
}

#[test]
fn thinking_and_empty_texts_cannot_have_one() {
    check(
        Shape::Anthropic,
        r#"[{"role": "user", "content": "Hi"},
  {"role": "assistant", "content": [{"type": "text", "text": "Hm"}, {"type": "thinking", "thinking": "?", "signature": "x"}, {"type": "text", "text": " "}]}]"#,
        r#"[{"role": "user", "content": "Hi"},
  {"role": "assistant", "content": [{"type": "text", "text": "Hm","cache_control":{"type":"ephemeral"}}, {"type": "thinking", "thinking": "?", "signature": "x"}, {"type": "text", "text": " "}]}]"#,
    );
    // No block of the last message can, so the one before gets it.
    check(
        Shape::Anthropic,
        r#"[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]}]"#,
        r#"[{"role": "user", "content": [{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]}, {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]}]"#,
    );
    check(
        Shape::Bedrock,
        r#"[{"role": "user", "content": [{"text": "Hi"}]}, {"role": "assistant", "content": [{"text": "Hm"}, {"reasoningContent": {"reasoningText": {"text": "?"}}}]}]"#,
        r#"[{"role": "user", "content": [{"text": "Hi"}]}, {"role": "assistant", "content": [{"text": "Hm"},{"cachePoint":{"type":"default"}}, {"reasoningContent": {"reasoningText": {"text": "?"}}}]}]"#,
    );
}

#[test]
fn breakpoints_of_the_request_stay_and_count() {
    let block = |text: &str, mark: &str| format!(r#"{{"type": "text", "text": "{text}"{mark}}}"#);
    let (mark, hour) = (
        r#", "cache_control": {"type": "ephemeral"}"#,
        r#","cache_control":{"ttl":"1h","type":"ephemeral"}"#,
    );
    let full = format!(
        r#"{{"system": [{}, {}], "messages": [{{"role": "user", "content": [{}, {}, {}]}}]}}"#,
        block("a", mark),
        block("b", mark),
        block("c", mark),
        block("d", mark),
        block("e", "")
    );
    check(Shape::Anthropic, &full, &full);
    // With three, the end gets the fourth.
    let three = full.replacen(mark, "", 1);
    let expected = three.replacen(
        r#""text": "e"}"#,
        r#""text": "e","cache_control":{"type":"ephemeral"}}"#,
        1,
    );
    // Its message has breakpoints, so the end is one of them already.
    assert_ne!(three, expected);
    check(Shape::Anthropic, &three, &three);
    // A lifetime of an hour must not follow one of five minutes.
    let request = |system: &str, end: &str| {
        let (system, end) = (block("a", system), block("b", end));
        format!(r#"{{"system": [{system}], "messages": [{{"role": "user", "content": [{end}]}}]}}"#)
    };
    check(Shape::Anthropic, &request("", hour), &request(hour, hour));
    let five = r#","cache_control":{"type":"ephemeral"}"#;
    check(Shape::Anthropic, &request(hour, ""), &request(hour, five));
    // The request sets one at its end.
    let automatic = |system: &str| {
        let request = request(system, "");
        format!(
            r#"{{"cache_control": {{"type": "ephemeral"}}, {}"#,
            &request[1..]
        )
    };
    check(Shape::Anthropic, &automatic(""), &automatic(five));
}

/// Returns the messages of a window that have a breakpoint, by position.
fn marked(window: &[Value]) -> Vec<usize> {
    let has_mark = |it: &(usize, &Value)| {
        let json = it.1.to_string();
        json.contains("cache_control") || json.contains("cachePoint")
    };
    window
        .iter()
        .enumerate()
        .filter(has_mark)
        .map(|(index, _)| index)
        .collect()
}

#[test]
fn windows_of_a_growing_chat_keep_the_head_and_end_where_the_next_request_reads() {
    for shape in [Shape::Anthropic, Shape::Bedrock] {
        let messages = marked_loop(shape, 40);
        let (mut last_end, mut heads, mut found) = (None, Vec::new(), 0);
        for end in (1..=messages.len()).step_by(2) {
            let system = match shape {
                Shape::Bedrock => json!([{"text": "Be brief."}]),
                _ => json!("Be brief."),
            };
            let request = json!({"system": system, "messages": messages[..end]}).to_string();
            let chat = Chat::parse(&request, Some(shape)).unwrap();
            let fitted = fit(&chat, 1_500);
            let json = fitted.to_json();
            let window = valid::messages(&json);
            assert_eq!(valid::objection(shape, &window), None, "{shape}");
            // Where the answer says.
            let places = fitted.breakpoints.iter();
            let positions: Vec<usize> = places.filter_map(|it| it.position).collect();
            assert_eq!(marked(&window), positions, "{shape}");
            assert!(
                positions.len() <= 3 && fitted.breakpoints.len() <= 4,
                "{shape}"
            );
            assert_eq!(fitted.breakpoints[0].place, CachePlace::System);
            let index = |place| {
                let place = fitted.breakpoints.iter().find(|it| it.place == place)?;
                Some((place.index?, window[place.position?].clone()))
            };
            let without = |it: Option<(usize, Value)>| it.map(|(index, _)| index);
            assert_eq!(without(index(CachePlace::End)), Some(end - 1), "{shape}");
            if let Some(previous) = without(index(CachePlace::Previous)) {
                assert_eq!(Some(previous), last_end, "{shape}");
                found += 1;
            }
            if let Some(head) = index(CachePlace::Head) {
                heads.push(head.1.to_string());
            }
            last_end = Some(end - 1);
        }
        // The task is the first message; a head ends behind it, and its last message never changes.
        assert!(
            found > 20 && heads.len() > 20,
            "{shape}: {found}, {}",
            heads.len()
        );
        heads.dedup();
        assert_eq!(heads.len(), 1, "{shape}");
    }
}

#[test]
fn other_formats_and_policies_have_the_places_alone() {
    let text = r#"{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Why?"}]}"#;
    let chat = Chat::parse(text, Some(Shape::OpenAi)).unwrap();
    let fitted = fit(&chat, 1_000);
    assert_eq!(fitted.to_json(), text);
    assert_eq!(fitted.cache_marks(), []);
    let places = fitted
        .breakpoints
        .iter()
        .map(|it| (it.place, it.index, it.position));
    let expected = [
        (CachePlace::System, Some(0), Some(0)),
        (CachePlace::Previous, Some(1), Some(1)),
        (CachePlace::End, Some(3), Some(3)),
    ];
    assert_eq!(places.collect::<Vec<_>>(), expected);
    let with = Shape::ALL
        .into_iter()
        .filter(|it| it.has_cache_breakpoints());
    assert_eq!(with.collect::<Vec<_>>(), [Shape::Anthropic, Shape::Bedrock]);
    let text = r#"{"system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}]}"#;
    let chat = Chat::parse(text, Some(Shape::Anthropic)).unwrap();
    let fitted = chat
        .fit(&default_policy(), &budget(1_000), &Encoding::O200k)
        .unwrap();
    assert_eq!(fitted.to_json(), text);
    assert_eq!(fitted.breakpoints.len(), 2);
}
