//! Vercel AI SDK: `MissingToolResultsError` of model messages, and the schema of UI messages.

use std::collections::BTreeSet;

use serde_json::Value;

pub(super) fn objection(messages: &[Value]) -> Option<String> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        if let Some(parts) = message["parts"].as_array() {
            let is_call = |part: &&Value| {
                let kind = part["type"].as_str().unwrap_or_default();
                kind.starts_with("tool-") || kind == "dynamic-tool"
            };
            let mut calls = parts.iter().filter(is_call);
            if message["id"].as_str().is_none() || parts.is_empty() {
                return Some(format!("message {index} has no id or no parts"));
            }
            if calls.any(|call| call["toolCallId"].as_str().is_none()) {
                return Some(format!("message {index} has a call without an id"));
            }
            continue;
        }
        let parts = message["content"].as_array().map(Vec::as_slice);
        let parts = parts.unwrap_or_default();
        let ids = |kind: &str| {
            let parts = parts.iter().filter(|part| part["type"] == kind);
            let ids = parts.filter_map(|part| part["toolCallId"].as_str());
            ids.collect::<Vec<_>>()
        };
        match message["role"].as_str() {
            Some("assistant") => open.extend(ids("tool-call")),
            Some("tool") => {
                for id in ids("tool-result") {
                    if !open.remove(id) {
                        return Some(format!(
                            "message {index} has a result for {id} without a call"
                        ));
                    }
                }
            }
            Some("user" | "system") if open.is_empty() => {}
            _ => {
                return Some(format!(
                    "message {index} follows calls without results: {open:?}"
                ));
            }
        }
    }
    (!open.is_empty()).then(|| format!("the last calls have no results: {open:?}"))
}
