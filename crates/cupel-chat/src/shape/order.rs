//! Links results to calls by order, in formats whose calls and results may have no id.

use std::collections::VecDeque;

use crate::message::{ContentPart, ParsedMessage};

/// The start of the placeholder for a missing id.
const MISSING: char = '\0';

impl ParsedMessage {
    /// Adds a tool call that may have no id.
    pub(super) fn push_call_in_order(&mut self, id: Option<&str>, name: &str, arguments: String) {
        let missing = || format!("{MISSING}{}", self.calls.len());
        let id = id.map_or_else(missing, str::to_owned);
        self.push_call(&id, name, arguments);
    }
}

/// Returns the id of a result: the given one, or a placeholder with the name of the called tool. An empty
/// name stands for any tool.
pub(super) fn result_id(id: Option<&str>, name: &str) -> String {
    id.map_or_else(|| format!("{MISSING}{name}"), str::to_owned)
}

/// Gives every call an id, and every result without an id the one of its call: the first call of the
/// last message with calls that has the same name and no result yet.
pub(super) fn link(messages: &mut [ParsedMessage]) {
    let mut open: VecDeque<(String, String)> = VecDeque::new();
    for (index, message) in messages.iter_mut().enumerate() {
        for id in &mut message.results {
            let name = id.strip_prefix(MISSING);
            let is_call = |(call, called): &(String, String)| match name {
                Some(name) => name.is_empty() || called == name,
                None => call == id,
            };
            if let Some(position) = open.iter().position(is_call)
                && let Some((call, _)) = open.remove(position)
            {
                *id = call;
            }
        }
        if message.calls.is_empty() {
            continue;
        }
        let names = message.parts.iter().filter_map(|part| match part {
            ContentPart::Call(name, _) => Some(name),
            _ => None,
        });
        open.clear();
        for (id, name) in message.calls.iter_mut().zip(names) {
            if let Some(number) = id.strip_prefix(MISSING) {
                *id = format!("call {index}.{number}");
            }
            open.push_back((id.clone(), name.clone()));
        }
    }
}
