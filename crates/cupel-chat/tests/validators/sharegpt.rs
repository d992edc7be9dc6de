//! `ShareGPT`: "human and observation should appear in odd positions, while gpt and function should appear in
//! even positions" (LLaMA-Factory).

use serde_json::Value;

pub(super) fn objection(messages: &[Value]) -> Option<String> {
    let is_system = messages
        .first()
        .is_some_and(|first| first["from"] == "system");
    let mut is_open = false;
    for (position, message) in messages.iter().skip(usize::from(is_system)).enumerate() {
        let from = message["from"].as_str().unwrap_or_default();
        let allowed = match (position % 2, is_open) {
            (0, true) => &["observation"][..],
            (0, false) => &["human"],
            _ => &["gpt", "function_call"],
        };
        if !allowed.contains(&from) {
            return Some(format!(
                "position {position}: {from} instead of {allowed:?}"
            ));
        }
        is_open = from == "function_call";
    }
    is_open.then(|| "the last call has no observation".to_owned())
}
