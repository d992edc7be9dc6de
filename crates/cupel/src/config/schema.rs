//! JSON Schemas of the documents, generated from the registry.

use super::presets;
use super::query::QUERY_TEXTS;
use super::registry::{ITEMS, Literal, Need, POLICY, REQUEST, Record, Role, Shape};
use crate::RawValue;

/// Returns the JSON Schema (draft 2020-12) of a policy document.
///
/// It has names, types, ranges and defaults. Rules across fields, such as that required shares are at
/// most 100 % in total, are checked by [`Document`](super::Document) only.
///
/// ```
/// let schema: serde_json::Value = serde_json::from_str(&cupel::config::policy_schema())?;
/// assert_eq!(schema["title"], "Cupel policy");
/// assert_eq!(schema["$defs"]["placer"]["oneOf"][1]["$ref"], "#/$defs/placer.u-shaped");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn policy_schema() -> String {
    let mut schema = Schema::default();
    let root = schema.record(&POLICY);
    schema.finish("Cupel policy", root)
}

/// Returns the JSON Schema (draft 2020-12) of a request document.
///
/// ```
/// let schema: serde_json::Value = serde_json::from_str(&cupel::config::request_schema())?;
/// assert_eq!(schema["$defs"]["budget"]["properties"]["max_tokens"]["type"], "integer");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn request_schema() -> String {
    let mut schema = Schema::default();
    let items = schema.shape(ITEMS);
    let request = schema.record(&REQUEST);
    let root = (
        "anyOf",
        RawValue::List(vec![object(request), object(items)]),
    );
    schema.finish("Cupel request", vec![root])
}

/// Returns the JSON Schema (draft 2020-12) of an object with known keys.
///
/// ```
/// use cupel::config::record_schema;
/// use cupel::config::registry::{Field, Record, Shape};
///
/// static SERVER: Record = Record::new("server", "Where to listen.", &[
///     Field::optional("port", Shape::Integer(1, 65_535), "The port."),
/// ]);
/// let schema: serde_json::Value = serde_json::from_str(&record_schema("Server", &SERVER))?;
/// assert_eq!(schema["$defs"]["server"]["properties"]["port"]["maximum"], 65_535);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn record_schema(title: &str, record: &'static Record) -> String {
    let mut schema = Schema::default();
    let root = schema.record(record);
    schema.finish(title, root)
}

type Members = Vec<(&'static str, RawValue)>;

/// Collects the definitions.
#[derive(Default)]
struct Schema {
    definitions: Vec<(String, RawValue)>,
}

impl Schema {
    fn finish(self, title: &str, root: Members) -> String {
        let head = [
            (
                "$schema",
                text("https://json-schema.org/draft/2020-12/schema"),
            ),
            ("title", text(title)),
        ];
        let definitions = ("$defs", RawValue::Map(self.definitions));
        let schema = object(head.into_iter().chain(root).chain([definitions]));
        // Cannot fail: all keys are strings, and the writer is memory.
        serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
    }

    /// Returns a reference to a definition; `define` makes it if it is the first.
    fn reference(&mut self, name: &str, define: impl FnOnce(&mut Self) -> Members) -> Members {
        if !self.definitions.iter().any(|(known, _)| known == name) {
            let place = self.definitions.len();
            self.definitions.push((name.to_owned(), RawValue::Null));
            self.definitions[place].1 = object(define(self));
        }
        vec![("$ref", text(&format!("#/$defs/{name}")))]
    }

    fn record(&mut self, record: &'static Record) -> Members {
        self.reference(record.name, |schema| schema.object(record, None))
    }

    fn family(&mut self, role: Role) -> Members {
        let family = role.family();
        self.reference(family.name, |schema| {
            let types = family.types.iter().map(|record| {
                let name = format!("{}.{}", family.name, record.name);
                let tag = Some(record.name);
                object(schema.reference(&name, |schema| schema.object(record, tag)))
            });
            vec![("oneOf", RawValue::List(types.collect()))]
        })
    }

    /// Returns the schema of an object with known keys; `tag` is its `type`.
    fn object(&mut self, record: &'static Record, tag: Option<&str>) -> Members {
        let mut properties = Vec::new();
        let mut required = Vec::new();
        let mut rules = Vec::new();
        if let Some(name) = tag {
            properties.push(("type".to_owned(), object([("const", text(name))])));
            required.push(text("type"));
        }
        for field in record.fields {
            let mut members = self.shape(field.shape);
            if record.nullable && field.need != Need::Required {
                let null = object([("type", text("null"))]);
                members = vec![("anyOf", RawValue::List(vec![object(members), null]))];
            }
            members.push(("description", text(field.doc)));
            if let Need::Default(literal) = field.need {
                members.push(("default", default(literal)));
            }
            properties.push((field.name.to_owned(), object(members.clone())));
            let names = |name| object([("required", RawValue::List(vec![text(name)]))]);
            if let Some(alias) = field.alias {
                properties.push((alias.to_owned(), object(members)));
                let both = RawValue::List([field.name, alias].map(text).to_vec());
                rules.push(object([("not", object([("required", both)]))]));
            }
            let alternative = match field.need {
                Need::Required => field.alias,
                Need::RequiredUnless(other) => Some(other),
                Need::Optional | Need::Default(_) => continue,
            };
            if let Some(alternative) = alternative {
                let either = [field.name, alternative].map(names).to_vec();
                rules.push(object([("anyOf", RawValue::List(either))]));
            } else {
                required.push(text(field.name));
            }
        }
        let mut members = vec![
            ("description", text(record.doc)),
            ("type", text("object")),
            ("properties", RawValue::Map(properties)),
            ("required", RawValue::List(required)),
            ("additionalProperties", RawValue::Bool(false)),
        ];
        if !rules.is_empty() {
            members.push(("allOf", RawValue::List(rules)));
        }
        members
    }

    fn shape(&mut self, shape: Shape) -> Members {
        let typed = |name| ("type", text(name));
        let label = || vec![typed("string"), ("pattern", text(r"\S"))];
        match shape {
            Shape::String => vec![typed("string")],
            Shape::Label => label(),
            Shape::Bool => vec![typed("boolean")],
            Shape::Number(range) => {
                let mut members = vec![typed("number")];
                let least = if range.exclusive { "exclusiveMinimum" } else { "minimum" };
                if range.min > f64::MIN {
                    members.push((least, number(range.min)));
                }
                if range.max < f64::MAX {
                    members.push(("maximum", number(range.max)));
                }
                members
            }
            Shape::AnyNumber => {
                let texts = ["NaN", "inf", "-inf"].map(text).to_vec();
                let kinds = [typed("number"), ("enum", RawValue::List(texts))];
                vec![("anyOf", RawValue::List(kinds.map(|kind| object([kind])).to_vec()))]
            }
            Shape::Integer(least, most) => {
                let mut members = vec![typed("integer")];
                if least > i64::MIN {
                    members.push(("minimum", RawValue::Integer(least.into())));
                }
                if most < i64::MAX {
                    members.push(("maximum", RawValue::Integer(most.into())));
                }
                members
            }
            Shape::Duration => self.reference("duration", |_| {
                let notation = r"^(([0-9]+(\.[0-9]+)?(d|h|m|s|ms|us|ns))+|P(?=[0-9T])([0-9.]+W)?([0-9.]+D)?(T(?=[0-9])([0-9.]+H)?([0-9.]+M)?([0-9.]+S)?)?)$";
                let doc = "A positive duration: \"24h\", \"1h30m\", \"500ms\", a number of seconds, or ISO 8601 such as \"PT24H\".";
                let written = object([typed("string"), ("pattern", text(notation))]);
                let seconds = object([typed("number"), ("exclusiveMinimum", RawValue::Integer(0))]);
                vec![
                    ("description", text(doc)),
                    ("anyOf", RawValue::List(vec![written, seconds])),
                ]
            }),
            Shape::Time => vec![typed("string"), ("format", text("date-time"))],
            Shape::Choice(choices) => {
                let choices = choices.iter().map(|choice| text(choice)).collect();
                vec![("enum", RawValue::List(choices))]
            }
            Shape::Array(inner, least) => {
                let mut members = vec![typed("array"), ("items", object(self.shape(*inner)))];
                if least > 0 {
                    members.push(("minItems", RawValue::Integer(least as i128)));
                }
                members
            }
            Shape::ByKind(inner) => vec![
                typed("object"),
                ("propertyNames", object([("pattern", text(r"\S"))])),
                ("additionalProperties", object(self.shape(*inner))),
            ],
            Shape::ByString(inner) => vec![
                typed("object"),
                ("additionalProperties", object(self.shape(*inner))),
            ],
            Shape::Metadata => vec![typed("object")],
            Shape::Record(record) => self.record(record),
            Shape::Family(role) => self.family(role),
            Shape::Query => {
                let text = object(self.shape(Shape::String));
                let texts = object(self.shape(QUERY_TEXTS));
                vec![("anyOf", RawValue::List(vec![text, texts]))]
            }
            Shape::Preset => {
                let names = presets().iter().map(|preset| text(preset.name()));
                vec![("enum", RawValue::List(names.collect()))]
            }
            Shape::Policy => {
                let preset = object(self.shape(Shape::Preset));
                let policy = object(self.record(&POLICY));
                vec![("anyOf", RawValue::List(vec![preset, policy]))]
            }
            Shape::PolicyOrPath => {
                let name = object(label());
                let policy = object(self.record(&POLICY));
                vec![("anyOf", RawValue::List(vec![name, policy]))]
            }
            Shape::Amount(least) => {
                let tokens = object(self.shape(Shape::Integer(least, i64::MAX)));
                let notation = r"^ *[0-9][0-9_]*(\.[0-9_]+)? *[kKmM%]? *$";
                let written = object([typed("string"), ("pattern", text(notation))]);
                vec![("anyOf", RawValue::List(vec![tokens, written]))]
            }
        }
    }
}

fn object(members: impl IntoIterator<Item = (&'static str, RawValue)>) -> RawValue {
    let members = members.into_iter();
    RawValue::Map(
        members
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
    )
}

fn text(text: &str) -> RawValue {
    RawValue::Text(text.to_owned())
}

/// Writes an integral number without a fraction.
fn number(number: f64) -> RawValue {
    #[expect(clippy::cast_possible_truncation, reason = "integral and small")]
    if number.fract() == 0.0 {
        RawValue::Integer(number as i128)
    } else {
        RawValue::Float(number)
    }
}

fn default(literal: Literal) -> RawValue {
    match literal {
        Literal::Bool(value) => RawValue::Bool(value),
        Literal::Integer(value) => RawValue::Integer(value.into()),
        Literal::Number(value) => number(value),
        Literal::String(value) => text(value),
        Literal::Type(name) => object([("type", text(name))]),
        Literal::Weights(weights) => {
            let weights = weights.iter();
            RawValue::Map(
                weights
                    .map(|(k, w)| ((*k).to_owned(), number(*w)))
                    .collect(),
            )
        }
        Literal::EmptyObject => object([]),
        Literal::EmptyArray => RawValue::List(Vec::new()),
    }
}
