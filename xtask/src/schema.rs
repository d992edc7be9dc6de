//! `cargo xtask schema`: writes what follows from the tables of the library: the JSON Schemas of policies and requests,
//! and the types of the settings for chats in Python.

use std::fmt::Write as _;

use cupel::ChatSettings;
use cupel::config::{CHAT_SETTINGS, ChatValue};

use crate::root;

/// A written file and the function that returns its text.
type Schema = (&'static str, fn() -> String);

const SCHEMAS: [Schema; 3] = [
    (
        "crates/cupel/schema/policy.schema.json",
        cupel::config::policy_schema,
    ),
    (
        "crates/cupel/schema/request.schema.json",
        cupel::config::request_schema,
    ),
    (
        "bindings/python/python/cupel/_chat_settings.py",
        chat_settings,
    ),
];

/// Returns the settings for chats as keyword arguments of Python.
fn chat_settings() -> String {
    let mut text = String::from(
        "\"\"\"The settings for chats. Written by `cargo xtask schema`.\"\"\"

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypedDict


class ChatSettings(TypedDict, total=False):
    \"\"\"How a chat is trimmed; see docs/policies.md. None is the policy's setting.\"\"\"
",
    );
    for setting in &CHAT_SETTINGS {
        let shorten: Vec<String> = cupel::Shorten::NAMES
            .iter()
            .map(|name| format!("{name:?}"))
            .collect();
        let annotation = match (setting.value)(&mut ChatSettings::default()) {
            ChatValue::Switch(_) => "bool".to_owned(),
            ChatValue::Tokens(_) => "int | str".to_owned(),
            ChatValue::Text(_) => "str".to_owned(),
            ChatValue::Messages(_) => "str | int | Iterable[str | int]".to_owned(),
            ChatValue::Shorten(_) => format!("Literal[{}]", shorten.join(", ")),
        };
        let _ = write!(
            text,
            "\n    {}: {annotation} | None\n    \"\"\"{}.\"\"\"\n",
            setting.name(),
            setting.help
        );
    }
    text
}

pub(crate) fn write() -> Result<(), String> {
    for (file, text) in SCHEMAS {
        std::fs::write(root().join(file), text()).map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::SCHEMAS;
    use crate::{read, root};

    #[test]
    fn the_schema_files_are_current() {
        for (file, text) in SCHEMAS {
            let written = read(&root().join(file)).unwrap();
            assert!(
                written == text(),
                "{file} is stale; run `cargo xtask schema`"
            );
        }
    }
}
