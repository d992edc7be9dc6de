//! Cohere: an assistant message with `tool_calls` must be followed by tool messages that answer each
//! `tool_call_id`.

use std::collections::BTreeSet;

use serde_json::Value;

pub(super) fn objection(messages: &[Value]) -> Option<String> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(id) {
                return Some(format!(
                    "message {index} has a result for {id} without a call"
                ));
            }
            continue;
        }
        if !open.is_empty() {
            return Some(format!(
                "message {index} follows calls without results: {open:?}"
            ));
        }
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open.extend(calls.filter_map(|call| call["id"].as_str()));
    }
    (!open.is_empty()).then(|| format!("the last calls have no results: {open:?}"))
}
