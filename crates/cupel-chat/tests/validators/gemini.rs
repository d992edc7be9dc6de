//! Gemini: the errors 400 of `generateContent` about the order of contents.

use serde_json::Value;

use super::{sorted, with};

fn is_model(content: &Value) -> bool {
    content["role"] == "model"
}

pub(super) fn is_user_turn(content: &Value) -> bool {
    let parts = content["parts"].as_array().cloned().unwrap_or_default();
    let is_response = |part: &Value| part.get("functionResponse").is_some();
    content["role"] == "user" && !parts.iter().all(is_response)
}

pub(super) fn objection(contents: &[Value]) -> Option<String> {
    let mut before: Option<&Value> = None;
    for (index, content) in contents.iter().enumerate() {
        let calls = with(&content["parts"], "functionCall");
        let responses = with(&content["parts"], "functionResponse");
        let expected_calls =
            before.map_or_else(Vec::new, |before| with(&before["parts"], "functionCall"));
        if before.is_none() && !is_user_turn(content) {
            return Some("the first content is not a user turn".to_owned());
        }
        if content["parts"].as_array().is_none_or(Vec::is_empty) {
            return Some(format!("content {index} has no parts"));
        }
        if !calls.is_empty() && before.is_none_or(is_model) {
            return Some(format!(
                "content {index}: a function call turn must come immediately after a user turn or after a function response turn"
            ));
        }
        if expected_calls.is_empty() && !responses.is_empty() {
            return Some(format!(
                "content {index}: a function response turn must come immediately after a function call turn"
            ));
        }
        if expected_calls.len() != responses.len() {
            return Some(format!(
                "content {index}: the number of function response parts must be equal to the number of function call parts"
            ));
        }
        if sorted(&expected_calls, "name") != sorted(&responses, "name") {
            return Some(format!("content {index}: responses to other functions"));
        }
        if sorted(&expected_calls, "id") != sorted(&responses, "id") {
            return Some(format!("content {index}: responses with other ids"));
        }
        if let Some(response) = responses.iter().find(|it| !it["response"].is_object()) {
            return Some(format!("content {index}: {response} is not an object"));
        }
        before = Some(content);
    }
    let open = before.is_some_and(|before| !with(&before["parts"], "functionCall").is_empty());
    open.then(|| "the last content has function calls without responses".to_owned())
}
