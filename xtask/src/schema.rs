//! `cargo xtask schema`: writes what follows from the tables and types of the library: the JSON Schemas of policies,
//! requests, configurations and answers, and the types of arguments and results in Python.

use std::fmt::Write as _;

use cupel::ChatSettings;
use cupel::config::{CHAT_SETTINGS, ChatValue};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use crate::{python_types, root};

/// A written file and the function that returns its text.
type File = (&'static str, fn() -> String);

const SCHEMAS: [File; 7] = [
    (
        "crates/cupel/schema/policy.schema.json",
        cupel::config::policy_schema,
    ),
    (
        "crates/cupel/schema/request.schema.json",
        cupel::config::request_schema,
    ),
    (
        "crates/cupel-app/schema/config.schema.json",
        cupel_app::config_schema,
    ),
    (
        "bindings/python/python/cupel/_chat_settings.py",
        chat_settings,
    ),
    ("crates/cupel-app/schema/answers.schema.json", answers),
    ("crates/cupel-eval/schema/evidence.schema.json", evidence),
    ("bindings/python/python/cupel/types.py", || {
        python_types::text(&[("Answer", answers()), ("EvidenceReport", evidence())])
    }),
];

fn answers() -> String {
    written::<cupel_app::Answer>("Cupel answer")
}

fn evidence() -> String {
    written::<cupel_eval::EvidenceReport>("Cupel evidence report")
}

/// Returns the settings for chats as keyword arguments of Python.
fn chat_settings() -> String {
    let mut text = String::from(
        "\"\"\"The settings for chats. Written by `cargo xtask schema`.\"\"\"

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypedDict


class ChatSettings(TypedDict, total=False):
    \"\"\"How a chat is trimmed; see docs/policies.md. None is the policy's setting.\"\"\"
",
    );
    for setting in &CHAT_SETTINGS {
        let literal = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
            format!("Literal[{}]", names.join(", "))
        };
        let annotation = match (setting.value)(&mut ChatSettings::default()) {
            ChatValue::Switch(_) => "bool".to_owned(),
            ChatValue::Tokens(_) => "int | str".to_owned(),
            ChatValue::Text(_) => "str".to_owned(),
            ChatValue::Messages(_) => "str | int | Iterable[str | int]".to_owned(),
            ChatValue::Shorten(_) => literal(cupel::Shorten::NAMES),
            ChatValue::Tools(_) => {
                format!("Mapping[str, {}]", literal(cupel::ToolResults::NAMES))
            }
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

/// Returns the schema of what a type is written as, in JSON.
///
/// The types and the documentation of their fields are the source. This turns documentation for Rust into
/// descriptions of JSON, and closes the objects, so that a key without a description is a fault.
fn written<T: JsonSchema>(title: &str) -> String {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with_transform(RecursiveTransform(describe));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    if let Some(Value::Object(definitions)) = schema.get_mut("$defs") {
        for (name, definition) in definitions {
            definition["title"] = name.as_str().into();
        }
    }
    // Cannot fail: the keys are strings.
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

/// Closes an object, and turns documentation into descriptions.
fn describe(schema: &mut Schema) {
    // `int64` and `uint` are the widths of Rust's types. JSON has none, and validators warn about them.
    let is_number = schema.get("format").and_then(Value::as_str) != Some("date-time");
    if is_number {
        schema.remove("format");
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = description(text);
    }
    let summary = schema.get("description").and_then(Value::as_str);
    let summary = summary.unwrap_or_default().to_owned();
    let required = schema.get("required").cloned().unwrap_or_default();
    let together = schema.get("dependentRequired").cloned();
    let together = together.unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    for (name, property) in properties {
        let required = required.as_array().into_iter().flatten();
        // Keys that are there together or not at all are null like required ones.
        let is_nullable =
            required.into_iter().any(|it| it == name.as_str()) || together.get(name).is_some();
        if !is_nullable {
            remove_null(property);
        }
        if property.get("description").is_none() {
            let is_tag = property.get("const").is_some();
            // The value of `HistoryChanged(usize)` is what the case is about.
            let text = if is_tag {
                "The name of the case."
            } else {
                &summary
            };
            property["description"] = text.into();
        }
        if let Some(Value::String(text)) = property.get_mut("description") {
            let absence = if is_nullable { "null" } else { "absent" };
            *text = without_none(&description(text), absence);
        }
    }
    // A schema that says so itself is open.
    if schema.get("additionalProperties").is_none() {
        schema.insert("additionalProperties".to_owned(), false.into());
    }
}

/// Removes null from what a property may be: `None` is no key at all if the key is optional.
fn remove_null(property: &mut Value) {
    let Some(property) = property.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|it| it != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            property.insert("type".to_owned(), only);
        }
    }
    let null = serde_json::json!({ "type": "null" });
    if let Some(Value::Array(types)) = property.get_mut("anyOf") {
        types.retain(|it| *it != null);
        if let [Value::Object(only)] = &types[..] {
            let only = only.clone();
            property.remove("anyOf");
            property.extend(only);
        }
    }
}

/// Returns the first paragraph of a documentation without its links, as one line.
fn description(doc: &str) -> String {
    let paragraph = doc.trim().split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    let words = words.join(" ");
    let mut text = String::new();
    let mut rest = &words[..];
    // [`Name`](path), [`Name`] and [name](path) become `Name` and name; other brackets stay.
    while let Some((before, after)) = rest.split_once('[') {
        text += before;
        let (name, behind) = after.split_once(']').unwrap_or((after, ""));
        let target = behind.strip_prefix('(').and_then(|it| it.split_once(')'));
        rest = match target {
            Some((_, behind)) => behind,
            None if name.starts_with('`') => behind,
            None => {
                text.push('[');
                rest = after;
                continue;
            }
        };
        text += name;
    }
    text += rest;
    // A pointer to a type or a method says nothing to readers of JSON.
    match text.rsplit_once("; see `") {
        Some((sentence, name)) if name.ends_with("`.") => format!("{sentence}."),
        _ => text,
    }
}

/// Replaces `None`, at the start of a sentence with a capital letter.
fn without_none(text: &str, absence: &str) -> String {
    let (first, rest) = absence.split_at(1);
    let capital = format!("{}{rest}", first.to_uppercase());
    let text = text.replace(". `None`", &format!(". {capital}"));
    text.replace("`None`", absence)
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn documentation_becomes_a_description_of_json() {
        let doc = "The [`Chat`](crate::Chat),\nor [a fit](Fit) in `[0, 1]`; see [`x`](y).\n\nMore.";
        assert_eq!(description(doc), "The `Chat`, or a fit in `[0, 1]`.");
        let doc = "Its rank. `None` if it has none; `None` for markers.";
        let expected = "Its rank. Null if it has none; null for markers.";
        assert_eq!(without_none(doc, "null"), expected);
    }
}
