//! The same session in every format: reading, fitting and shortening.

use cupel::ContextBudget;
use cupel_chat::{Chat, Encoding, Fitted, Shape, default_policy, newest_policy, single_policy};
use serde_json::{Value, json};

use crate::valid;

macro_rules! example {
    ($name:literal, $shape:ident) => {
        (
            $name,
            Shape::$shape,
            include_str!(concat!("examples/shapes/", $name, ".json")),
        )
    };
}

const EXAMPLES: [(&str, Shape, &str); 10] = [
    example!("openai", OpenAi),
    example!("openai-responses", Responses),
    example!("anthropic", Anthropic),
    example!("gemini", Gemini),
    example!("bedrock", Bedrock),
    example!("vercel-model", Vercel),
    example!("vercel-ui", Vercel),
    example!("ollama", Ollama),
    example!("sharegpt", ShareGpt),
    example!("cohere", Cohere),
];

fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::with_target(tokens, tokens).unwrap()
}

fn parse(text: &Value, shape: Shape) -> Chat {
    Chat::parse(&text.to_string(), Some(shape)).unwrap()
}

/// Returns the tokens of the messages of a chat.
fn tokens(chat: &Chat) -> Vec<i64> {
    let items = chat.items(&Encoding::O200k);
    items.iter().map(cupel::ContextItem::tokens).collect()
}

#[test]
fn every_example_is_detected_and_written_byte_for_byte_if_it_fits() {
    for (name, shape, text) in EXAMPLES {
        let chat = Chat::parse(text, None).unwrap();
        assert_eq!(chat.shape(), shape, "{name}");
        let all = chat.tokens(&Encoding::O200k);
        for policy in [default_policy(), single_policy(), newest_policy()] {
            let fitted = chat.fit(&policy, &budget(all), &Encoding::O200k).unwrap();
            assert_eq!(fitted.to_json(), text, "{name}");
            assert_eq!(fitted.tokens_after, all);
        }
    }
}

#[test]
fn every_format_counts_the_same_session_alike() {
    let count = |text: &str| Chat::parse(text, None).unwrap().tokens(&Encoding::O200k);
    let openai = count(EXAMPLES[0].2);
    for (name, _, text) in EXAMPLES {
        let tokens = count(text);
        assert!(
            (openai * 3 / 4..openai * 5 / 4).contains(&tokens),
            "{name}: {tokens} instead of about {openai}"
        );
    }
}

/// Returns the value at a path such as `content[0].text`.
fn at<'v>(message: &'v mut Value, path: &str) -> &'v mut Value {
    let pointer = format!("/{}", path.replace(['.', '['], "/").replace(']', ""));
    let found = message.pointer_mut(&pointer);
    found.unwrap_or_else(|| panic!("there is no {path}"))
}

/// Checks that a window differs from the chat only by dropped messages, markers, and shortened texts of
/// the same type. Returns the number of shortened values.
fn check_changes(name: &str, chat: &Chat, fitted: &Fitted<'_>) -> usize {
    let output = fitted.to_json();
    let is_marker = |message: &Value| {
        let mut markers = fitted.markers.iter();
        markers.any(|marker| message.to_string().contains(&marker.text))
    };
    let mut window = valid::messages(&output);
    window.retain(|message| !is_marker(message));
    assert_eq!(window.len(), fitted.kept.len(), "{name}");
    let mut changed = 0;
    for (&index, mut message) in fitted.kept.iter().zip(window) {
        let mut original: Value = serde_json::from_str(chat.message(index).json()).unwrap();
        let mut shortened = fitted.shortened.iter();
        let texts = shortened.find(|it| it.index == index).map(|it| &it.texts);
        for (path, _) in texts.into_iter().flatten() {
            let (old, new) = (
                at(&mut original, path).take(),
                at(&mut message, path).take(),
            );
            let (old_type, new_type) = (std::mem::discriminant(&old), std::mem::discriminant(&new));
            assert_eq!(old_type, new_type, "{name}, message {index}, {path}");
            assert!(new.to_string().len() < old.to_string().len(), "{old} {new}");
            changed += 1;
        }
        assert_eq!(message, original, "{name}, message {index}");
    }
    changed
}

#[test]
fn every_format_is_shortened_and_stays_valid_at_every_budget() {
    for (name, shape, text) in EXAMPLES {
        let chat = Chat::parse(text, None).unwrap();
        let all = chat.tokens(&Encoding::O200k);
        let (mut windows, mut shortened, mut dropped) = (0, 0, 0);
        for tokens in (300..all).step_by(97) {
            let Ok(fitted) = chat.fit(&default_policy(), &budget(tokens), &Encoding::O200k) else {
                assert_eq!(windows, 0, "{name}: a larger budget fails");
                continue;
            };
            windows += 1;
            shortened += check_changes(name, &chat, &fitted);
            dropped += fitted.dropped.len();
            let output = fitted.to_json();
            let messages = valid::messages(&output);
            assert_eq!(
                valid::objection(shape, &messages),
                None,
                "{name} at {tokens}"
            );
            let again = Chat::parse(&output, Some(shape)).unwrap();
            assert_eq!(
                again.tokens(&Encoding::O200k),
                fitted.tokens_after,
                "{name} at {tokens}"
            );
            assert!(fitted.tokens_after <= tokens);
        }
        assert!(windows > 15, "{name}: {windows} windows");
        assert!(shortened > 20, "{name}: {shortened} shortened");
        assert!(dropped > 0, "{name}: {dropped} dropped");
    }
}

#[test]
fn a_marker_that_was_set_keeps_every_format_valid() {
    let mut settings = default_policy().chat().clone();
    settings.marker = Some("({n} left out)".to_owned());
    let policy = default_policy()
        .to_builder()
        .chat(settings)
        .build()
        .unwrap();
    for (name, shape, text) in EXAMPLES {
        let chat = Chat::parse(text, None).unwrap();
        let all = chat.tokens(&Encoding::O200k);
        let mut markers = 0;
        for tokens in (300..all).step_by(97) {
            let Ok(fitted) = chat.fit(&policy, &budget(tokens), &Encoding::O200k) else {
                continue;
            };
            markers += fitted.markers.len();
            let output = fitted.to_json();
            assert_eq!(
                output.matches(" left out)").count(),
                fitted.markers.len(),
                "{name}"
            );
            let messages = valid::messages(&output);
            assert_eq!(
                valid::objection(shape, &messages),
                None,
                "{name} at {tokens}"
            );
            let again = Chat::parse(&output, Some(shape)).unwrap();
            assert_eq!(
                again.tokens(&Encoding::O200k),
                fitted.tokens_after,
                "{name} at {tokens}"
            );
        }
        assert!(markers > 0, "{name}");
    }
}

#[test]
fn a_shortened_object_of_gemini_keeps_its_fields() {
    let log = "12:01:33 worker 7 finished job 8123 without errors\n".repeat(200);
    let chat = parse(
        &json!({"contents": [
            {"role": "user", "parts": [{"text": "Why did the build fail?"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "log", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "log", "response": {"exit": 1, "log": log}}}]},
            {"role": "model", "parts": [{"text": "The log has no errors."}]},
            {"role": "user", "parts": [{"text": "Look again."}]},
        ]}),
        Shape::Gemini,
    );
    let fitted = chat
        .fit(&default_policy(), &budget(400), &Encoding::O200k)
        .unwrap();
    let response =
        &valid::messages(&fitted.to_json())[2]["parts"][0]["functionResponse"]["response"];
    assert_eq!(response["exit"], 1);
    assert!(
        response["log"]
            .as_str()
            .unwrap()
            .starts_with("12:01:33 worker 7"),
        "{response}"
    );
}

#[test]
fn calls_without_ids_are_matched_by_name_and_order() {
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
    let response = |name: &str| json!({"functionResponse": {"name": name, "response": {}}});
    let content = |role: &str, parts: Value| json!({"role": role, "parts": parts});
    let chat = parse(
        &json!({"contents": [
            content("user", json!([{"text": "Hello"}])),
            content("model", json!([call("a"), call("b"), call("a")])),
            content("user", json!([response("b"), response("a"), response("a")])),
            content("model", json!([call("a")])),
            content("user", json!([response("a")])),
        ]}),
        Shape::Gemini,
    );
    let calls: Vec<&str> = chat.message(1).calls().map(|call| call.id).collect();
    assert_eq!(chat.message(2).results(), [calls[1], calls[0], calls[2]]);
    let next: Vec<&str> = chat.message(3).calls().map(|call| call.id).collect();
    assert_eq!(chat.message(4).results(), next);
    assert_ne!(calls[0], next[0]);
}

#[test]
fn gemini_is_read_in_camel_case_and_in_snake_case() {
    let camel = json!({"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": [
        {"role": "user", "parts": [{"text": "Look."}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAABAAAAAMACAYAAAA="}}]},
        {"role": "model", "parts": [{"functionCall": {"id": "1", "name": "f", "args": {}}, "thoughtSignature": "c2ln"}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "1", "name": "f", "response": {"a": 1}}}]},
    ]});
    let snake = camel.to_string();
    let snake = snake.replace("systemInstruction", "system_instruction");
    let snake = snake
        .replace("inlineData", "inline_data")
        .replace("mimeType", "mime_type");
    let snake = snake.replace("functionCall", "function_call");
    let snake = snake.replace("functionResponse", "function_response");
    let snake = snake.replace("thoughtSignature", "thought_signature");
    let camel = parse(&camel, Shape::Gemini);
    let snake = Chat::parse(&snake, None).unwrap();
    assert_eq!(snake.shape(), Shape::Gemini);
    assert_eq!(tokens(&camel), tokens(&snake));
    assert_eq!(
        camel.overhead(&Encoding::O200k),
        snake.overhead(&Encoding::O200k)
    );
    // An image of 1024 x 768 has two tiles: 3 + 1 + 2 + 2 x 258.
    assert_eq!(tokens(&camel)[0], 522);
}

#[test]
fn what_is_not_text_is_not_counted_as_text() {
    let data = "1APvevhghXWA43weVosxu1TWTKkCH".repeat(10_000);
    let user = |content: Value| json!({"messages": [content]});
    for (shape, request) in [
        (
            Shape::Ollama,
            user(json!({"role": "user", "content": "look", "images": [data]})),
        ),
        (
            Shape::Bedrock,
            user(
                json!({"role": "user", "content": [{"text": "look"}, {"image": {"format": "png", "source": {"bytes": data}}}]}),
            ),
        ),
        (
            Shape::Vercel,
            user(
                json!({"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image", "image": data}]}),
            ),
        ),
        (
            Shape::Vercel,
            user(
                json!({"id": "1", "role": "user", "parts": [{"type": "file", "mediaType": "application/pdf", "url": format!("data:application/pdf;base64,{data}")}]}),
            ),
        ),
        (
            Shape::Gemini,
            json!({"contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "audio/wav", "data": data}}]}]}),
        ),
    ] {
        let tokens = tokens(&parse(&request, shape))[0];
        assert!((500..2_000).contains(&tokens), "{shape}: {tokens}");
    }
}

#[test]
fn the_parts_of_a_ui_message_are_counted() {
    let text = "The quick brown fox jumps over the lazy dog near the river bank. ".repeat(20);
    let chat = parse(
        &json!([{"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]}]),
        Shape::Vercel,
    );
    // 20 sentences of 14 tokens, the role, and 3 per message.
    assert!(
        (270..300).contains(&tokens(&chat)[0]),
        "{:?}",
        tokens(&chat)
    );
    assert_eq!(chat.message(0).text(), text);
}

#[test]
fn cache_points_cost_nothing() {
    let request = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
    let with = parse(
        &request(json!([{"text": "Hello"}, {"cachePoint": {"type": "default"}}])),
        Shape::Bedrock,
    );
    let without = parse(&request(json!([{"text": "Hello"}])), Shape::Bedrock);
    assert_eq!(tokens(&with), tokens(&without));
}

#[test]
fn an_approval_stays_with_its_request() {
    let chat = parse(
        &json!({"messages": [
            {"role": "user", "content": "Delete it. ".repeat(40)},
            {"role": "assistant", "content": [
                {"type": "tool-call", "toolCallId": "c", "toolName": "rm", "input": {"path": "a".repeat(400)}},
                {"type": "tool-approval-request", "approvalId": "p", "toolCallId": "c"}]},
            {"role": "tool", "content": [{"type": "tool-approval-response", "approvalId": "p", "approved": true}]},
            {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c", "toolName": "rm", "output": {"type": "text", "value": "ok"}}]},
            {"role": "user", "content": "Thanks."},
        ]}),
        Shape::Vercel,
    );
    for tokens in 20..300 {
        let Ok(fitted) = chat.fit(&newest_policy(), &budget(tokens), &Encoding::O200k) else {
            continue;
        };
        let kept: Vec<bool> = (1..4).map(|index| fitted.kept.contains(&index)).collect();
        assert!(
            kept == [true; 3] || kept == [false; 3],
            "{tokens}: {kept:?}"
        );
    }
}

#[test]
fn calls_in_the_text_of_sharegpt_have_results() {
    let chat = parse(
        &json!({"conversations": [
            {"from": "human", "value": "Weather?"},
            {"from": "gpt", "value": "<tool_call>\n{\"name\": \"weather\", \"arguments\": {}}\n</tool_call>"},
            {"from": "tool", "value": "<tool_response>\n12 degrees\n</tool_response>"},
            {"from": "gpt", "value": "12 degrees."},
            {"from": "human", "value": "Thanks."},
        ]}),
        Shape::ShareGpt,
    );
    let all = chat.tokens(&Encoding::O200k);
    let fitted = chat
        .fit(&default_policy(), &budget(all), &Encoding::O200k)
        .unwrap();
    assert_eq!(fitted.kept, [0, 1, 2, 3, 4]);
    assert_eq!(chat.message(1).calls().count(), 1);
}

#[test]
fn unknown_parts_are_refused() {
    for (request, expected) in [
        (
            json!({"contents": [{"role": "user", "parts": [{"hologram": {}}]}]}),
            "unknown type `hologram`; the nearest format is gemini",
        ),
        (
            json!({"modelId": "m", "messages": [{"role": "user", "content": [{"tool_call": {}}]}]}),
            "unknown content block type `tool_call`, which looks like a tool call",
        ),
        (
            json!([{"id": "1", "role": "assistant", "parts": [{"type": "toolcall"}]}]),
            "unknown content block type `toolcall`, which looks like a tool call",
        ),
        (
            json!({"conversations": [{"from": "narrator", "value": "x"}]}),
            "unknown author \"narrator\"; expected one of system, human",
        ),
    ] {
        let error = Chat::parse(&request.to_string(), None).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
