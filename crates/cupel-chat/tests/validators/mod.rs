//! What providers reject, one file per format, written from their documentation and from the messages of
//! their APIs: shares no code with the library.

mod bedrock;
mod cohere;
mod gemini;
mod ollama;
mod sharegpt;
mod vercel;

use cupel_chat::Shape;
use serde_json::Value;

/// Returns what the provider would reject of a list of messages.
type Validator = fn(&[Value]) -> Option<String>;

/// Returns the validator of a format with a file here.
pub(crate) fn validator(shape: Shape) -> Option<Validator> {
    Some(match shape {
        Shape::Bedrock => bedrock::objection,
        Shape::Cohere => cohere::objection,
        Shape::Gemini => gemini::objection,
        Shape::Ollama => ollama::objection,
        Shape::ShareGpt => sharegpt::objection,
        Shape::Vercel => vercel::objection,
        _ => return None,
    })
}

/// Returns whether it is a user message with content other than tool results, for a format with a file
/// here.
pub(crate) fn is_user_turn(shape: Shape, message: &Value) -> Option<bool> {
    Some(match shape {
        Shape::Bedrock => bedrock::is_user_turn(message),
        Shape::Gemini => gemini::is_user_turn(message),
        Shape::ShareGpt => message["from"] == "human",
        Shape::Cohere | Shape::Ollama | Shape::Vercel => message["role"] == "user",
        _ => return None,
    })
}

/// Returns whether a message has a tool call.
pub(crate) fn has_call(shape: Shape, message: &Value) -> bool {
    let typed = |list: &Value, prefix: &str| {
        let is_call = |part: &Value| {
            part["type"]
                .as_str()
                .is_some_and(|it| it.starts_with(prefix))
        };
        list.as_array().is_some_and(|list| list.iter().any(is_call))
    };
    match shape {
        Shape::Bedrock => !with(&message["content"], "toolUse").is_empty(),
        Shape::Gemini => !with(&message["parts"], "functionCall").is_empty(),
        Shape::ShareGpt => message["from"] == "function_call",
        Shape::Vercel => {
            typed(&message["content"], "tool-call") || typed(&message["parts"], "tool-")
        }
        _ => message.get("tool_calls").is_some(),
    }
}

/// Returns the elements of a list that have a field, by its value.
fn with<'v>(list: &'v Value, key: &str) -> Vec<&'v Value> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|value| value.get(key)).collect()
}

/// Returns a field of each object as text, sorted.
fn sorted(values: &[&Value], key: &str) -> Vec<String> {
    let text = |value: &&Value| value[key].as_str().unwrap_or_default().to_owned();
    let mut texts: Vec<String> = values.iter().map(text).collect();
    texts.sort_unstable();
    texts
}
