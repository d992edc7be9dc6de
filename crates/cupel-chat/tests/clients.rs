//! The message types of a real client.

use async_openai::types::chat::{
    ChatCompletionRequestMessage, ChatCompletionRequestToolMessageContent,
};
use cupel::ContextBudget;
use cupel_chat::{Chat, Encoding, Shape, default_policy};
use serde_json::json;

use crate::valid;

#[test]
fn messages_of_async_openai_are_fitted_by_position() {
    let log = "12:01:33 worker 7 finished job 8123 without errors\n".repeat(200);
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Why did the nightly build fail?"},
        {"role": "assistant", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "log", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": log},
        {"role": "assistant", "tool_calls": [
            {"id": "b", "type": "function", "function": {"name": "log", "arguments": "{\"n\":2}"}}]},
        {"role": "tool", "tool_call_id": "b", "content": "no more entries"},
    ]);
    let messages: Vec<ChatCompletionRequestMessage> = serde_json::from_value(messages).unwrap();
    let chat = Chat::from_messages(&messages, Shape::OpenAi).unwrap();
    let budget = ContextBudget::with_target(400, 400).unwrap();
    let fitted = chat
        .fit(&default_policy(), &budget, &Encoding::O200k)
        .unwrap();
    assert_eq!(fitted.kept, [0, 1, 2, 3, 4, 5]);

    let mut window = messages;
    for short in &fitted.shortened {
        let ChatCompletionRequestMessage::Tool(result) = &mut window[short.index] else {
            panic!("only tool results are this long");
        };
        let text = short.texts[0].1.clone();
        result.content = ChatCompletionRequestToolMessageContent::Text(text);
    }
    let json = serde_json::to_string(&window).unwrap();
    assert_eq!(valid::messages(&json), valid::messages(&fitted.to_json()));
    let again = Chat::from_messages(&window, Shape::OpenAi).unwrap();
    assert_eq!(again.tokens(&Encoding::O200k), fitted.tokens_after);
    assert!(fitted.tokens_after <= 400);
}
