//! Amazon Bedrock: the validation exceptions of Converse about the order of messages.

use serde_json::Value;

use super::{sorted, with};

pub(super) fn is_user_turn(message: &Value) -> bool {
    let blocks = message["content"].as_array().cloned().unwrap_or_default();
    let says =
        |block: &Value| block.get("toolResult").is_none() && block.get("cachePoint").is_none();
    message["role"] == "user" && blocks.iter().any(says)
}

pub(super) fn objection(messages: &[Value]) -> Option<String> {
    let mut expected_calls: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let expected = if index % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != expected {
            return Some(format!(
                "message {index}: a conversation must start with a user message and alternate"
            ));
        }
        let uses = sorted(&with(&message["content"], "toolUse"), "toolUseId");
        let results = with(&message["content"], "toolResult");
        if sorted(&results, "toolUseId") != expected_calls {
            return Some(format!(
                "message {index}: expected toolResult blocks for {expected_calls:?}"
            ));
        }
        if expected == "user" && !uses.is_empty() {
            return Some(format!(
                "message {index}: user messages cannot contain tool uses"
            ));
        }
        for content in results
            .iter()
            .flat_map(|result| with(&result["content"], "json"))
        {
            if !content.is_object() {
                return Some(format!("message {index}: json must be an object"));
            }
        }
        expected_calls = uses;
    }
    (!expected_calls.is_empty())
        .then(|| format!("the last calls have no toolResult blocks: {expected_calls:?}"))
}
