//! JSON Schemas of what the library writes (feature `schema`), for [`schemars`].
//!
//! The types of the data model that implement `Serialize` implement [`JsonSchema`], with the descriptions of
//! their documentation. Most derive it. Here are those that are not written as they are in memory.
//!
//! ```
//! let schema = schemars::schema_for!(cupel::ContextItem);
//! assert_eq!(schema.get("properties").unwrap()["tokens"]["type"], "integer");
//! ```

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::wire::{WrittenBudget, WrittenItem};
use crate::{ContextBudget, ContextItem, ContextKind, ContextSource, PipelineStage};

/// The schema of a binary64 number: a JSON number, or the string `NaN`, `inf` or `-inf`.
///
/// JSON has no such numbers, and a score of a custom scorer may be one.
pub enum Float {}

impl JsonSchema for Float {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Float".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "number" }, { "enum": ["NaN", "inf", "-inf"] }] })
    }
}

/// The schema of a time as it is written: RFC 3339.
pub(crate) enum Time {}

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// Implements `JsonSchema` for types that are written as strings of which some are well known.
macro_rules! strings {
    ($($type:ident)*) => {$(
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string" })
            }
        }
    )*};
}

strings!(ContextKind ContextSource);

/// Implements `JsonSchema` for a type that is written as another.
macro_rules! written_as {
    ($($type:ident => $written:ident,)*) => {$(
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $written::schema_name()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                $written::json_schema(generator)
            }
        }
    )*};
}

written_as! {
    ContextItem => WrittenItem,
    ContextBudget => WrittenBudget,
}

/// The stages of this version: no run of it has an unknown one.
impl JsonSchema for PipelineStage {
    fn schema_name() -> Cow<'static, str> {
        "PipelineStage".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = Self::ALL.map(|stage| stage.name());
        json_schema!({
            "description": "A stage of the pipeline that emits events.",
            "type": "string",
            "enum": names,
        })
    }
}

/// Makes the value of a view required: views are written as parts of items, and an item sets the default.
pub(crate) fn require_value(schema: &mut Schema) {
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.push("value".into());
    }
}

/// Returns the schema of one reason: an object with its name and its fields, each with its documentation.
pub(crate) fn reason(name: &str, doc: &str, fields: Vec<(&str, &str, Schema)>) -> Schema {
    let mut properties = Map::new();
    let tag = json!({ "description": "The name of the reason.", "type": "string", "const": name });
    properties.insert("reason".to_owned(), tag);
    let mut required = vec!["reason"];
    for (field, doc, mut schema) in fields {
        schema.insert("description".to_owned(), doc.trim().into());
        properties.insert(field.to_owned(), schema.to_value());
        required.push(field);
    }
    json_schema!({
        "title": name,
        "description": doc.trim(),
        "type": "object",
        "properties": properties,
        "required": required,
    })
}

/// Returns the schema of a value that is one of these reasons.
pub(crate) fn reasons(doc: &str, known: &[Schema]) -> Schema {
    json_schema!({ "description": doc, "oneOf": known })
}

/// Returns the schema of a value that is one of these reasons or one with another name.
pub(crate) fn open_reasons(doc: &str, mut known: Vec<Schema>) -> Schema {
    let names = known.iter().filter_map(|reason| reason.get("title"));
    let names: Vec<Value> = names.cloned().collect();
    // Without `not`, a known reason with a wrong field would pass as another one.
    known.push(json_schema!({
        "title": "OtherReason",
        "description": "A reason of a custom slicer, with fields of its own.",
        "type": "object",
        "properties": {
            "reason": {
                "description": "The name of the reason.",
                "type": "string",
                "not": { "enum": names },
            },
        },
        "required": ["reason"],
        "additionalProperties": true,
    }));
    reasons(doc, &known)
}
