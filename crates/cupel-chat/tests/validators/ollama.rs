//! Ollama: the tool messages after each assistant message with calls, in order.

use std::collections::VecDeque;

use serde_json::Value;

pub(super) fn objection(messages: &[Value]) -> Option<String> {
    let mut open: VecDeque<&Value> = VecDeque::new();
    for (index, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let Some(call) = open.pop_front() else {
                return Some(format!("message {index} has a result without a call"));
            };
            if call["function"]["name"] != message["tool_name"] {
                return Some(format!("message {index} has a result of another tool"));
            }
            continue;
        }
        if !open.is_empty() {
            return Some(format!("message {index} follows calls without results"));
        }
        open.extend(message["tool_calls"].as_array().into_iter().flatten());
    }
    (!open.is_empty()).then(|| "the last calls have no results".to_owned())
}
