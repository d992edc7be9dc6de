//! The types of the Python package that follow from tables and JSON Schemas: `types.py`.
//!
//! An object of a schema becomes a `TypedDict`, a definition that is no object an alias:
//!
//! ```text
//! {"type": "object", "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}}, "required": [..]}
//! class Range(TypedDict("Range", {"from": int})):     a key that is a keyword of Python is in the base
//!     to: int
//! {"oneOf": [{"title": "Pinned", ..}, {"const": "none"}]}
//! Reason: TypeAlias = Pinned | Literal["none"]
//! ```

use std::collections::BTreeSet;
use std::fmt::Write as _;

use cupel::config::registry::{self, Family, PLACERS, SCORERS, SLICERS, Shape};
use cupel::config::{Document, Format, presets};
use cupel_chat::{Encoding, TokenCounter};
use serde_json::{Map, Value, json};

/// The columns of a line, as in `pyproject.toml`.
const WIDTH: usize = 100;

/// The answers that functions of the package return. What they refer to is written as well.
const ANSWERS: [&str; 10] = [
    "FitAnswer",
    "SelectAnswer",
    "ExplainAnswer",
    "ExplainOneAnswer",
    "SearchAnswer",
    "SweepAnswer",
    "MinBudgetAnswer",
    "CompareAnswer",
    "ModelAnswer",
    "EvidenceReport",
];

/// A reason with any name is left out of the union, which would be useless with it: it could not be told apart from
/// `BudgetExceeded` by its key `reason`.
const OPEN: &str = "OtherReason";
const OPEN_DOC: &str = " A slicer in Python may state others, with keys of their own.";

/// Keys that are optional in the schema, and in every answer of the package: none is brief or without texts.
const ALWAYS: [(&str, &str); 3] = [
    ("SelectAnswer", "report"),
    ("Selected", "item"),
    ("ShortenedEntry", "texts"),
];

/// Keywords of Python that are keys.
const KEYWORDS: [&str; 1] = ["from"];

const HEAD: &str = r#""""The types of arguments and results. Written by `cargo xtask schema`.

Results are dicts, and the names here are their types. A reason is told from others by its key
``reason``. A name in an argument has a ``Literal`` type, so that type checkers find typos:

>>> import cupel
>>> from cupel.types import ExclusionReason, PresetName
>>> def shown(reason: ExclusionReason) -> str:
...     if reason["reason"] == "BudgetExceeded":
...         return f"{reason['item_tokens'] - reason['available_tokens']} tokens too many"
...     return reason["reason"]
>>> items = [{"content": "old", "tokens": 60}, {"content": "new", "tokens": 30}]
>>> policy: PresetName = "chat"
>>> [shown(entry["reason"]) for entry in cupel.select(items, 50, policy).report.excluded]
['40 tokens too many']
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict
"#;

/// Returns the text of `types.py`.
///
/// `schemas` are JSON Schemas with the names of their roots. Definitions have different names or are the same.
pub(crate) fn text(schemas: &[(&str, String)]) -> String {
    let mut definitions = Map::new();
    for (name, schema) in schemas {
        let mut schema: Value = serde_json::from_str(schema).unwrap_or_default();
        if let Value::Object(found) = schema["$defs"].take() {
            definitions.extend(found);
        }
        definitions.insert((*name).to_owned(), schema);
    }
    let mut module = Module::default();
    let encodings = Encoding::ALL.iter().flat_map(|encoding| {
        let name = encoding.name();
        [Some(name), name.strip_suffix("_base")]
    });
    let encodings = encodings.flatten().chain(["heuristic"]);
    let overflow = registry::POLICY.fields.iter();
    let overflow = overflow.filter(|field| field.name == "overflow_strategy");
    let overflow = overflow.flat_map(|field| match field.shape {
        Shape::Choice(names) => names,
        _ => &[],
    });
    module.names(
        "PresetName",
        "A built-in policy.",
        presets().iter().map(cupel::config::Preset::name),
    );
    module.names("EncodingName", "A token counter.", encodings);
    module.names(
        "ScorerName",
        "A scorer without required fields.",
        alone(&SCORERS),
    );
    module.names(
        "SlicerName",
        "A slicer without required fields.",
        alone(&SLICERS),
    );
    module.names("PlacerName", "A placer.", alone(&PLACERS));
    module.names(
        "OverflowStrategy",
        "What happens if mandatory items exceed the budget.",
        overflow.copied(),
    );
    for name in reachable(&definitions) {
        module.definition(name, &definitions[name]);
    }
    module.finish()
}

/// Returns the names of the strategies that need no fields.
fn alone(family: &Family) -> impl Iterator<Item = &'static str> {
    let role = family.name;
    family.names().filter(move |name| {
        let mut policy = json!({ "scorer": { "type": "reflexive" } });
        policy[role] = json!({ "type": name });
        let text = policy.to_string();
        let document = Document::parse(&text, Format::Json);
        let config = document.and_then(|document| document.policy_config());
        config.and_then(|config| config.build()).is_ok()
    })
}

/// Returns the definitions that the answers refer to, in alphabetical order.
fn reachable(definitions: &Map<String, Value>) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut left: Vec<&str> = ANSWERS.to_vec();
    while let Some(name) = left.pop() {
        let Some((name, schema)) = definitions.get_key_value(name) else {
            panic!("no definition is named {name}");
        };
        if found.insert(name.as_str()) {
            references(schema, &mut left);
        }
    }
    found
}

fn references<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    found.extend(reference(schema));
    match schema {
        Value::Object(fields) => fields.values().for_each(|it| references(it, found)),
        Value::Array(values) => values.iter().for_each(|it| references(it, found)),
        _ => {}
    }
}

fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the cases of a definition that is one of several.
fn cases(schema: &Value) -> &[Value] {
    match schema.get("oneOf") {
        Some(cases) => list(cases),
        None => list(&schema["anyOf"]),
    }
}

#[derive(Default)]
struct Module {
    names: Vec<String>,
    /// The aliases of names come first, those of types after the types that they need.
    literals: String,
    classes: String,
    aliases: String,
}

impl Module {
    fn names(&mut self, name: &str, doc: &str, values: impl Iterator<Item = &'static str>) {
        let values: Vec<String> = values.map(|it| format!("{it:?}")).collect();
        self.literals += &literal_alias(name, doc, &values);
        self.names.push(name.to_owned());
    }

    fn definition(&mut self, name: &str, schema: &Value) {
        if schema.get("properties").is_some() {
            self.class(name, schema);
            return;
        }
        let mut doc = schema["description"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let mut parts = Vec::new();
        let mut literals = Vec::new();
        for case in cases(schema) {
            match case["title"].as_str() {
                Some(OPEN) => doc += OPEN_DOC,
                Some(title) => {
                    self.class(title, case);
                    parts.push(title.to_owned());
                }
                None if case.get("const").is_some() => literals.push(case["const"].to_string()),
                None => parts.push(annotation(case)),
            }
        }
        literals.extend(list(&schema["enum"]).iter().map(Value::to_string));
        self.names.push(name.to_owned());
        if parts.is_empty() {
            self.literals += &literal_alias(name, &doc, &literals);
            return;
        }
        if !literals.is_empty() {
            parts.push(format!("Literal[{}]", literals.join(", ")));
        }
        let line = format!("{name}: TypeAlias = {}", parts.join(" | "));
        let text = if line.len() <= WIDTH {
            line
        } else {
            format!("{name}: TypeAlias = (\n    {}\n)", parts.join("\n    | "))
        };
        let _ = write!(self.aliases, "\n{text}\n{}", docstring(&doc, &[], ""));
    }

    fn class(&mut self, name: &str, schema: &Value) {
        let doc = schema["description"].as_str().unwrap_or_default();
        let required = list(&schema["required"]).iter().filter_map(Value::as_str);
        let always = ALWAYS.iter().filter(|(class, _)| *class == name);
        let required: Vec<&str> = required.chain(always.map(|(_, key)| *key)).collect();
        let Some(properties) = schema["properties"].as_object() else {
            return;
        };
        let is_required = |key: &str| required.contains(&key);
        let optional = properties.keys().map(String::as_str);
        let optional = optional.filter(|key| !is_required(key));
        let (mut keywords, mut fields, mut docs) = (Vec::new(), String::new(), Vec::new());
        for key in required.iter().copied().chain(optional) {
            let property = &properties[key];
            let mut kind = annotation(property);
            if !is_required(key) {
                kind = format!("NotRequired[{kind}]");
            }
            let range = range(property);
            let doc = property["description"].as_str().unwrap_or_default();
            docs.push(format!("{key}{range}: {doc}"));
            // A keyword cannot be the name of an attribute of a class.
            if KEYWORDS.contains(&key) {
                keywords.push(format!("{key:?}: {kind}"));
            } else {
                let _ = writeln!(fields, "    {key}: {kind}");
            }
        }
        let base = if keywords.is_empty() {
            "TypedDict".to_owned()
        } else {
            let base = format!("_{name}");
            let _ = write!(
                self.classes,
                "\n\n{base} = TypedDict({base:?}, {{{}}})\n",
                keywords.join(", ")
            );
            base
        };
        let _ = write!(
            self.classes,
            "\n\nclass {name}({base}):\n{}\n{fields}",
            docstring(doc, &docs, "    ")
        );
        self.names.push(name.to_owned());
    }

    fn finish(mut self) -> String {
        self.names.sort_unstable();
        let names: Vec<String> = self
            .names
            .iter()
            .map(|it| format!("    {it:?},\n"))
            .collect();
        format!(
            "{HEAD}\n__all__ = [\n{}]\n{}{}\n{}",
            names.concat(),
            self.literals,
            self.classes,
            self.aliases
        )
    }
}

/// Returns an alias of names, one per line if they are too many for one.
fn literal_alias(name: &str, doc: &str, values: &[String]) -> String {
    let line = format!("{name}: TypeAlias = Literal[{}]", values.join(", "));
    let text = if line.len() <= WIDTH {
        line
    } else {
        format!(
            "{name}: TypeAlias = Literal[\n    {},\n]",
            values.join(",\n    ")
        )
    };
    format!("\n{text}\n{}", docstring(doc, &[], ""))
}

/// Returns the range of a number, such as ` (from 0)`.
fn range(property: &Value) -> String {
    match (property.get("minimum"), property.get("maximum")) {
        (Some(least), Some(most)) => format!(" ({least} to {most})"),
        (Some(least), None) => format!(" (from {least})"),
        _ => String::new(),
    }
}

/// Returns the docstring with a line per key.
fn docstring(doc: &str, keys: &[String], indent: &str) -> String {
    // Double backticks are code in docstrings.
    let quoted = |text: &str| text.replace('`', "``");
    let mut text = wrapped(&format!("{indent}\"\"\"{}", quoted(doc)), indent);
    if keys.is_empty() {
        let end = if text.trim_end().len() + 3 > WIDTH && !text.contains('\n') {
            format!("\n{indent}")
        } else {
            String::new()
        };
        return format!("{text}{end}\"\"\"\n");
    }
    let _ = write!(text, "\n\n{indent}Keys:\n");
    for key in keys {
        let line = wrapped(
            &format!("{indent}    {}", quoted(key)),
            &format!("{indent}        "),
        );
        text += &line;
        text.push('\n');
    }
    format!("{text}{indent}\"\"\"\n")
}

/// Wraps a text whose first line is indented.
fn wrapped(text: &str, indent: &str) -> String {
    let start = text.len() - text.trim_start().len();
    let (mut lines, mut line) = (String::new(), text[..start].to_owned());
    for (position, word) in text.split_whitespace().enumerate() {
        if position > 0 && line.len() + 1 + word.len() > WIDTH {
            lines += &line;
            lines.push('\n');
            indent.clone_into(&mut line);
        } else if position > 0 {
            line.push(' ');
        }
        line += word;
    }
    lines + &line
}

/// Returns the type of a schema in Python.
fn annotation(schema: &Value) -> String {
    if let Some(name) = reference(schema) {
        return name.to_owned();
    }
    if let Some(value) = schema.get("const") {
        return format!("Literal[{value}]");
    }
    if let Some(values) = schema.get("enum") {
        let values: Vec<String> = list(values).iter().map(Value::to_string).collect();
        return format!("Literal[{}]", values.join(", "));
    }
    let any_of = cases(schema);
    if !any_of.is_empty() {
        return union(any_of.iter().map(annotation));
    }
    match &schema["type"] {
        Value::Array(types) => union(types.iter().map(|kind| simple(kind, schema))),
        kind => simple(kind, schema),
    }
}

fn union(parts: impl Iterator<Item = String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for part in parts {
        if !different.contains(&part) {
            different.push(part);
        }
    }
    different.join(" | ")
}

fn simple(kind: &Value, schema: &Value) -> String {
    match kind.as_str() {
        Some("null") => "None".to_owned(),
        Some("boolean") => "bool".to_owned(),
        Some("integer") => "int".to_owned(),
        Some("number") => "float".to_owned(),
        Some("string") => "str".to_owned(),
        Some("array") => {
            // JSON has no tuples: a pair is read as a list.
            let elements = match schema.get("prefixItems") {
                Some(elements) => union(list(elements).iter().map(annotation)),
                None => annotation(&schema["items"]),
            };
            format!("list[{elements}]")
        }
        Some("object") => format!("dict[str, {}]", annotation(&schema["additionalProperties"])),
        _ => "Any".to_owned(),
    }
}
