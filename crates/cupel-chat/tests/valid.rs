//! The rules of the providers, written from their documentation: shares no code with the library.

use std::collections::BTreeSet;

use cupel_chat::Shape;
use serde_json::Value;

/// Returns the messages of a request.
pub(crate) fn messages(text: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(text).expect("the output is JSON");
    let list = ["messages", "input"]
        .iter()
        .find_map(|key| document.get(key));
    let list = list.unwrap_or(&document).as_array();
    list.expect("there is a list of messages").clone()
}

/// Returns the ids of the tool calls and tool results of one message.
fn calls_and_results(shape: Shape, message: &Value) -> (Vec<String>, Vec<String>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let ids = |list: &Value| {
        let list = list.as_array().cloned().unwrap_or_default();
        list.iter()
            .map(|call| text(&call["id"]))
            .collect::<Vec<_>>()
    };
    match shape {
        Shape::OpenAi => match message["role"].as_str() {
            Some("tool") => (vec![], vec![text(&message["tool_call_id"])]),
            _ => (ids(&message["tool_calls"]), vec![]),
        },
        Shape::Responses => match message["type"].as_str() {
            Some("function_call") => (vec![text(&message["call_id"])], vec![]),
            Some("function_call_output") => (vec![], vec![text(&message["call_id"])]),
            _ => (vec![], vec![]),
        },
        Shape::Anthropic => {
            let blocks = message["content"].as_array().cloned().unwrap_or_default();
            let of = |kind: &str, key: &str| {
                let blocks = blocks.iter().filter(|block| block["type"] == kind);
                blocks.map(|block| text(&block[key])).collect::<Vec<_>>()
            };
            (of("tool_use", "id"), of("tool_result", "tool_use_id"))
        }
        Shape::LangChain => {
            let data = langchain_data(message);
            match langchain_type(message) {
                "tool" => (vec![], vec![text(&data["tool_call_id"])]),
                _ => (ids(&data["tool_calls"]), vec![]),
            }
        }
        _ => (vec![], vec![]),
    }
}

fn langchain_data(message: &Value) -> &Value {
    let inner = ["data", "kwargs"].iter().find_map(|key| message.get(key));
    inner.unwrap_or(message)
}

fn langchain_type(message: &Value) -> &str {
    match message["id"]
        .as_array()
        .and_then(|path| path.last())
        .and_then(Value::as_str)
    {
        Some("HumanMessage") => "human",
        Some("AIMessage") => "ai",
        Some("ToolMessage") => "tool",
        Some("SystemMessage") => "system",
        _ => message["type"].as_str().unwrap_or_default(),
    }
}

fn is_system(shape: Shape, message: &Value) -> bool {
    match shape {
        Shape::LangChain => langchain_type(message) == "system",
        _ => matches!(message["role"].as_str(), Some("system" | "developer")),
    }
}

/// Returns whether it is a user message with content other than tool results.
pub(crate) fn is_user_turn(shape: Shape, message: &Value) -> bool {
    match shape {
        Shape::LangChain => langchain_type(message) == "human",
        Shape::Anthropic => {
            let says = |block: &Value| block["type"] != "tool_result";
            let content = &message["content"];
            message["role"] == "user"
                && content
                    .as_array()
                    .is_none_or(|blocks| blocks.iter().any(says))
        }
        _ => message["role"] == "user",
    }
}

/// Returns whether the model made the item.
fn is_from_model(message: &Value) -> bool {
    message["role"] == "assistant"
        || matches!(
            message["type"].as_str(),
            Some("function_call" | "reasoning" | "web_search_call")
        )
}

/// Returns what a provider would reject.
pub(crate) fn objection(shape: Shape, messages: &[Value]) -> Option<String> {
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut answered: BTreeSet<String> = BTreeSet::new();
    let mut spoken = false;
    for (index, message) in messages.iter().enumerate() {
        let (calls, results) = calls_and_results(shape, message);
        for id in results {
            if open.remove(&id) {
                answered.insert(id);
            } else if !answered.contains(&id) {
                return Some(format!(
                    "message {index} has a result for {id} without a call"
                ));
            }
        }
        for id in calls {
            answered.remove(&id);
            if !open.insert(id.clone()) {
                return Some(format!("message {index} calls {id} while it is open"));
            }
        }
        if shape == Shape::Responses && message["type"] == "reasoning" {
            let next = messages.get(index + 1);
            if !next.is_some_and(is_from_model) {
                return Some(format!("reasoning {index} has no following item"));
            }
        }
        if !spoken && !is_system(shape, message) {
            spoken = true;
            let starts_on_user = match shape {
                Shape::Anthropic => true,
                Shape::LangChain => messages.iter().any(|m| is_user_turn(shape, m)),
                _ => false,
            };
            if starts_on_user && !is_user_turn(shape, message) {
                return Some(format!(
                    "message {index} is the first and not a user message"
                ));
            }
        }
    }
    let open = open.into_iter().next();
    open.map(|id| format!("call {id} has no result"))
}

/// Returns whether `kept` is a subsequence of `all`.
pub(crate) fn is_subsequence(kept: &[Value], all: &[Value]) -> bool {
    let mut all = all.iter();
    kept.iter().all(|message| all.any(|other| other == message))
}
