//! The rules of the providers, written from their documentation: shares no code with the library.

use std::collections::{BTreeMap, BTreeSet};

use cupel_chat::Shape;
use serde_json::Value;

use crate::validators;

/// Returns the messages of a request.
pub(crate) fn messages(text: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(text).expect("the output is JSON");
    let list = ["messages", "input", "contents", "conversations"]
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
            Some("tool") => match message["tool_call_ids"].as_array() {
                Some(ids) => (vec![], ids.iter().map(text).collect()),
                None => (vec![], vec![text(&message["tool_call_id"])]),
            },
            _ => (ids(&message["tool_calls"]), vec![]),
        },
        Shape::Responses => {
            let kind = message["type"].as_str().unwrap_or_default();
            let id = match kind {
                "local_shell_call_output" => &message["id"],
                _ => &message["call_id"],
            };
            let ids: Vec<String> = id.as_str().map(str::to_owned).into_iter().collect();
            if ANSWERED.contains(&kind) {
                (ids, vec![])
            } else if ANSWERED.iter().any(|call| output_of(call) == kind) {
                (vec![], ids)
            } else {
                (vec![], vec![])
            }
        }
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

/// The calls of Responses that the caller answers with an output item.
const ANSWERED: [&str; 7] = [
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "tool_search_call",
];

fn output_of(call: &str) -> String {
    match call {
        "tool_search_call" => "tool_search_output".to_owned(),
        call => format!("{call}_output"),
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
    if let Some(is_user_turn) = validators::is_user_turn(shape, message) {
        return is_user_turn;
    }
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
    let kind = message["type"].as_str().unwrap_or_default();
    let is_call =
        kind.ends_with("_call") || ["reasoning", "item_reference", "program"].contains(&kind);
    message["role"] == "assistant" || is_call
}

/// Returns what the API of Anthropic rejects beside tool calls and results of the caller.
/// <https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages>
fn anthropic_objection(messages: &[Value]) -> Option<String> {
    let mut server_calls: BTreeSet<&str> = BTreeSet::new();
    let blocks = |message: &'_ Value| message["content"].as_array().cloned().unwrap_or_default();
    let is_server = |block: &Value| {
        let kind = block["type"].as_str().unwrap_or_default();
        kind == "server_tool_use" || kind.ends_with("_tool_result")
    };
    for (index, message) in messages.iter().enumerate() {
        for block in message["content"].as_array().into_iter().flatten() {
            let kind = block["type"].as_str().unwrap_or_default();
            if kind == "server_tool_use" {
                server_calls.extend(block["id"].as_str());
            }
            let id = block["tool_use_id"].as_str().unwrap_or_default();
            if kind.ends_with("_tool_result") && !server_calls.contains(id) {
                return Some(format!("message {index} has a {kind} without its call"));
            }
        }
        if message["role"] == "system" {
            let before = index.checked_sub(1).map(|before| &messages[before]);
            let follows = before.is_some_and(|before| {
                let ends_in_server_tool = blocks(before).last().is_some_and(is_server);
                before["role"] == "user" || (before["role"] == "assistant" && ends_in_server_tool)
            });
            let next = messages.get(index + 1);
            if !follows || next.is_some_and(|next| next["role"] != "assistant") {
                return Some(format!("the system message {index} is out of place"));
            }
        }
    }
    None
}

/// Returns what the Responses API rejects beside calls and outputs of the caller.
fn responses_objection(messages: &[Value]) -> Option<String> {
    let requests = |end: usize| {
        let before = messages[..end].iter();
        before.filter(|item| item["type"] == "mcp_approval_request")
    };
    for (index, item) in messages.iter().enumerate() {
        let kind = item["type"].as_str().unwrap_or_default();
        let next = messages.get(index + 1);
        let is_thought = kind == "reasoning"
            || (kind == "item_reference" && item["id"].to_string().starts_with("\"rs_"));
        if is_thought && !next.is_some_and(is_from_model) {
            return Some(format!("reasoning {index} has no following item"));
        }
        let approval = &item["approval_request_id"];
        let is_approved = requests(index).any(|request| request["id"] == *approval);
        if !approval.is_null() && !is_approved {
            return Some(format!("{kind} {index} has no approval request"));
        }
        let is_server_search = kind == "tool_search_output" && item["call_id"].is_null();
        let before = index.checked_sub(1).map(|before| &messages[before]);
        if is_server_search && before.is_none_or(|it| it["type"] != "tool_search_call") {
            return Some(format!("tool search output {index} has no call"));
        }
        if kind == "compaction_trigger" && next.is_some() {
            return Some("a compaction trigger is not the last item".to_owned());
        }
    }
    None
}

/// Returns whether it stands for all messages before it.
pub(crate) fn is_compaction(message: &Value) -> bool {
    let blocks = message["content"].as_array();
    message["type"] == "compaction"
        || blocks.is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "compaction"))
}

/// Returns what a provider would reject of a trimmed request, or what is missing of the input. The results of calls at
/// its end may still come.
pub(crate) fn objection_to_window(shape: Shape, input: &str, output: &str) -> Option<String> {
    let (before, after) = (messages(input), messages(output));
    let request: Value = serde_json::from_str(input).expect("the input is JSON");
    if let Some(objection) = objection_with(shape, &after, Open::AtTheEnd) {
        return Some(objection);
    }
    for compaction in before.iter().filter(|message| is_compaction(message)) {
        if !after.contains(compaction) {
            return Some("a compaction is missing".to_owned());
        }
    }
    if !matches!(shape, Shape::Anthropic | Shape::Gemini | Shape::Bedrock) {
        return None;
    }
    let is_model = |last: &Value| last["role"] == "assistant" || last["role"] == "model";
    let ends_on_model = |list: &[Value]| list.last().is_some_and(is_model);
    if ends_on_model(&after) && !ends_on_model(&before) {
        return Some("the window ends on an assistant message".to_owned());
    }
    let turn = |list: &[Value]| {
        let last = list
            .iter()
            .rposition(|message| is_user_turn(shape, message));
        last.map_or(0, |last| list.len() - last)
    };
    let thinking = request["thinking"]["type"].as_str();
    if thinking.is_some_and(|it| it != "disabled") && turn(&before) != turn(&after) {
        return Some("the current turn with thinking is not complete".to_owned());
    }
    None
}

/// Returns whether a provider rejects a message that follows a call without a result.
///
/// OpenAI: "An assistant message with `tool_calls` must be followed by tool messages responding to each
/// `tool_call_id`." Anthropic: "Each `tool_use` block must have a corresponding `tool_result` block in the next
/// message"; the API joins consecutive messages of one role.
fn interrupts_calls(shape: Shape, message: &Value) -> bool {
    match shape {
        Shape::OpenAi => message["role"] != "tool",
        Shape::Anthropic | Shape::LangChain => {
            let (_, results) = calls_and_results(shape, message);
            is_user_turn(shape, message) && results.is_empty()
        }
        _ => false,
    }
}

/// Where calls may have no result.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    Nowhere,
    /// In the last messages of the model, before which some results may have come already.
    AtTheEnd,
}

/// Returns what a provider would reject.
pub(crate) fn objection(shape: Shape, messages: &[Value]) -> Option<String> {
    objection_with(shape, messages, Open::Nowhere)
}

fn objection_with(shape: Shape, messages: &[Value], where_open: Open) -> Option<String> {
    if let Some(objection) = validators::validator(shape) {
        let objection = objection(messages);
        // These name calls that are open after the last message.
        let is_open = |it: &String| it.starts_with("the last c");
        return objection.filter(|it| where_open == Open::Nowhere || !is_open(it));
    }
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    let mut spoken = false;
    for (index, message) in messages.iter().enumerate() {
        if !open.is_empty() && interrupts_calls(shape, message) {
            return Some(format!(
                "message {index} follows calls without results: {open:?}"
            ));
        }
        let (calls, results) = calls_and_results(shape, message);
        for id in results {
            let is_stored = || {
                messages[..index]
                    .iter()
                    .any(|it| it["type"] == "item_reference")
            };
            // OpenAI: "Duplicate value for 'tool_call_id'"; Anthropic: "each tool_use must have a single
            // result"; Responses: "Duplicate function_call_output".
            if open.remove(&id).is_none() && !is_stored() {
                return Some(format!(
                    "message {index} has a result for {id} without an open call"
                ));
            }
        }
        for id in calls {
            if open.insert(id.clone(), index).is_some() {
                return Some(format!("message {index} calls {id} while it is open"));
            }
        }
        if !spoken && !is_system(shape, message) {
            spoken = true;
            let starts_on_user = match shape {
                Shape::Anthropic => true,
                Shape::LangChain => messages.iter().any(|m| is_user_turn(shape, m)),
                _ => false,
            };
            // A compaction stands for the messages before it.
            let opens = is_user_turn(shape, message) || is_compaction(message);
            if starts_on_user && !opens {
                return Some(format!(
                    "message {index} is the first and not a user message"
                ));
            }
        }
    }
    let is_result = |message: &Value| {
        let (calls, results) = calls_and_results(shape, message);
        calls.is_empty() && !results.is_empty() && !is_user_turn(shape, message)
    };
    let is_other = |message: &Value| {
        is_user_turn(shape, message) || is_system(shape, message) || is_result(message)
    };
    let end = messages.iter().rposition(|it| !is_result(it));
    let end = end.map_or(0, |end| end + 1);
    let start = messages[..end].iter().rposition(is_other);
    let start = start.map_or(0, |start| start + 1);
    let is_fine = |index: usize| where_open == Open::AtTheEnd && index >= start;
    if let Some((id, _)) = open.into_iter().find(|(_, index)| !is_fine(*index)) {
        return Some(format!("call {id} has no result"));
    }
    match shape {
        Shape::Anthropic => anthropic_objection(messages),
        Shape::Responses => responses_objection(messages),
        _ => None,
    }
}

/// Returns whether `kept` is a subsequence of `all`.
pub(crate) fn is_subsequence(kept: &[Value], all: &[Value]) -> bool {
    let mut all = all.iter();
    kept.iter().all(|message| all.any(|other| other == message))
}
