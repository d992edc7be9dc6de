//! Strategies as policy documents.
//!
//! A table is a policy document and is passed on as it is. A name is the specification's own
//! format, with the fields in `[config]`; the tables below rename them, one row per field. The
//! implementation under test reads the document, so nothing here knows what a strategy does, what
//! its defaults are and which values are valid.

use serde_json::{Map, json};

use super::{
    reader::{Fields, Node},
    scope::Scope,
};
use crate::{
    error::{Problem, VectorError},
    model::{Document, document_number},
};

/// A field of the specification's format.
struct Field {
    name: &'static str,
    /// Its name in policy documents.
    document: &'static str,
    need: Need,
    form: Form,
}

#[derive(Clone, Copy, PartialEq)]
enum Need {
    Required,
    Optional,
    /// Left out if this boolean is true, required if it is false, optional without it.
    Unless(&'static str),
}

/// How the value of a field differs from that in a policy document.
#[derive(Clone, Copy)]
enum Form {
    Same,
    /// A list of tables with fields of their own.
    Records(&'static [Field]),
    /// A table whose `type` names its fields.
    Typed(&'static str, Types),
    /// A list of tables with a name under this key and a `weight`; a document has an object.
    Weights(&'static str),
    /// A list of scorers, each with its `weight`.
    Children,
    /// The name of another scorer, with its fields beside the name.
    InnerScorer,
    /// The name of another slicer, with its fields beside the name.
    InnerSlicer,
}

/// The fields of every strategy of a role.
type Types = &'static [(&'static str, &'static [Field])];

use Form::{Children, InnerScorer, InnerSlicer, Records, Same, Typed, Weights};
use Need::{Optional, Required, Unless};

#[rustfmt::skip]
const SCORERS: Types = &[
    ("recency", &[]),
    ("priority", &[]),
    ("kind", &[field("weights", Unless("use_default_weights"), Weights("kind"))]),
    ("tag", &[field("tag_weights", Required, Weights("tag"))]),
    ("frequency", &[]),
    ("reflexive", &[]),
    ("composite", &[field("scorers", Required, Children).named("entries")]),
    ("scaled", &[field("inner_scorer", Required, InnerScorer).named("inner")]),
    ("metadata_trust", &[optional("default_score")]),
    // Documents have a default for the reference time: the time of the run.
    ("decay", &[required("reference_time"), optional("null_timestamp_score"), CURVE]),
    ("metadata_key", &[required("key"), required("value"), required("boost")]),
];

const CURVE: Field = field("curve", Required, Typed("curve", CURVES));
/// A duration is a number of seconds, which documents accept too.
const CURVES: Types = &[
    (
        "exponential",
        &[required("half_life_secs").named("half_life")],
    ),
    ("window", &[MAX_AGE]),
    ("step", &[field("windows", Required, Records(WINDOW))]),
];
const MAX_AGE: Field = required("max_age_secs").named("max_age");
const WINDOW: &[Field] = &[MAX_AGE, required("score")];

#[rustfmt::skip]
const SLICERS: Types = &[
    ("greedy", &[]),
    ("knapsack", &[BUCKET_SIZE]),
    ("quota", &[field("quotas", Required, Records(QUOTA)), INNER]),
    ("count_quota", &[COUNTS, SCARCITY, INNER]),
    ("count_constrained_knapsack", &[COUNTS, SCARCITY, BUCKET_SIZE]),
];

const BUCKET_SIZE: Field = optional("bucket_size");
const INNER: Field = field("inner_slicer", Optional, InnerSlicer).named("inner");
const SCARCITY: Field = optional("scarcity_behavior").named("scarcity");
const COUNTS: Field = field("entries", Required, Records(COUNT));
const QUOTA: &[Field] = &[required("kind"), optional("require"), optional("cap")];
const COUNT: &[Field] = &[
    required("kind"),
    required("require_count"),
    required("cap_count"),
];

const PLACERS: Types = &[("chronological", &[]), ("u-shaped", &[])];

const fn required(name: &'static str) -> Field {
    field(name, Required, Same)
}

const fn optional(name: &'static str) -> Field {
    field(name, Optional, Same)
}

const fn field(name: &'static str, need: Need, form: Form) -> Field {
    Field {
        name,
        document: name,
        need,
        form,
    }
}

impl Field {
    const fn named(mut self, document: &'static str) -> Self {
        self.document = document;
        self
    }
}

pub(super) fn scorer(name: &Node<'_>, scope: &Scope<'_>) -> Result<Document, VectorError> {
    strategy("scorer", SCORERS, name, scope)
}

pub(super) fn slicer(name: &Node<'_>, scope: &Scope<'_>) -> Result<Document, VectorError> {
    strategy("slicer", SLICERS, name, scope)
}

pub(super) fn placer(name: &Node<'_>, scope: &Scope<'_>) -> Result<Document, VectorError> {
    strategy("placer", PLACERS, name, scope)
}

/// Reads the policy of a pipeline, with the defaults of the format.
pub(super) fn policy(config: &Scope<'_>) -> Result<Document, VectorError> {
    let or = |key, default: Document| Ok(config.optional(key)?.unwrap_or(default));
    Ok(json!({
        "scorer": match config.get("scorer") {
            Some(node) => scorer(&node, config)?,
            None => pipeline_scorer(config)?,
        },
        "slicer": match config.get("slicer") {
            Some(node) => slicer(&node, config)?,
            None => json!({ "type": "greedy" }),
        },
        "placer": match config.get("placer") {
            Some(node) => placer(&node, config)?,
            None => json!({ "type": "chronological" }),
        },
        "deduplication": or("deduplication", true.into())?,
        "overflow_strategy": or("overflow_strategy", "throw".into())?,
    }))
}

/// Reads `scorers`: a single one with a positive weight stands for itself, any other list is a
/// composite.
fn pipeline_scorer(config: &Scope<'_>) -> Result<Document, VectorError> {
    let mut children = children(config)?;
    match children.as_mut_slice() {
        [(child, weight)] if *weight > 0.0 => Ok(child.take()),
        _ => Ok(json!({ "type": "composite", "entries": entries(children) })),
    }
}

fn strategy(
    role: &'static str,
    types: Types,
    name: &Node<'_>,
    scope: &Scope<'_>,
) -> Result<Document, VectorError> {
    if name.value.is_table() {
        return name.read();
    }
    named(role, types, name, scope)
}

fn named(
    role: &'static str,
    types: Types,
    name: &Node<'_>,
    scope: &Scope<'_>,
) -> Result<Document, VectorError> {
    let mut document = record(name.name(role, types)?, scope)?;
    document["type"] = name.read()?;
    Ok(document)
}

fn record(fields: &[Field], scope: &Scope<'_>) -> Result<Document, VectorError> {
    let mut document = Map::new();
    for field in fields {
        let is_required = match field.need {
            Required => true,
            Optional => false,
            Unless(key) => match scope.optional(key)? {
                Some(true) => continue,
                Some(false) => true,
                None => false,
            },
        };
        if is_required || scope.get(field.name).is_some() {
            document.insert(field.document.to_owned(), value(field, scope)?);
        }
    }
    Ok(document.into())
}

fn value(field: &Field, scope: &Scope<'_>) -> Result<Document, VectorError> {
    let key = field.name;
    let inner = |what| scope.get(key).ok_or_else(|| scope.own().missing(key, what));
    match field.form {
        Same => scope.required(key),
        Records(fields) => {
            let records = scope.required::<Vec<Fields<'_>>>(key)?.into_iter();
            records
                .map(|own| record(fields, &Scope::config(own)))
                .collect()
        }
        Typed(role, types) => {
            let own = scope.required::<Fields<'_>>(key)?;
            let name = own.get_required("type", "a name")?;
            named(role, types, &name, &Scope::config(own))
        }
        Weights(name) => weights(name, &scope.required::<Vec<Fields<'_>>>(key)?),
        Children => Ok(entries(children(scope)?)),
        InnerScorer => scorer(
            &inner("the name of a scorer or a policy document")?,
            &scope.beside(key),
        ),
        InnerSlicer => slicer(
            &inner("the name of a slicer or a policy document")?,
            &scope.beside(key),
        ),
    }
}

/// Reads a list of weights as an object, in which every name occurs once.
fn weights(name: &str, list: &[Fields<'_>]) -> Result<Document, VectorError> {
    let mut weights = Map::new();
    for fields in list {
        let key: String = fields.required(name)?;
        if weights.contains_key(&key) {
            return Err(fields.error(name, Problem::Duplicate { name: key }));
        }
        weights.insert(key, fields.required("weight")?);
    }
    Ok(weights.into())
}

/// Reads the children of a composite with their weights.
fn children(scope: &Scope<'_>) -> Result<Vec<(Document, f64)>, VectorError> {
    let (key, list) = ["scorers", "children"]
        .into_iter()
        .find_map(|key| Some((key, scope.get(key)?)))
        .ok_or_else(|| scope.own().missing("scorers", "a list of scorers"))?;
    list.read::<Vec<Fields<'_>>>()?
        .into_iter()
        .map(|own| {
            let child = scope.within(key, own);
            let name = child.own().get_required("type", "the name of a scorer")?;
            let weight = child.own().optional("weight")?.unwrap_or(1.0);
            Ok((named("scorer", SCORERS, &name, &child)?, weight))
        })
        .collect()
}

fn entries(children: Vec<(Document, f64)>) -> Document {
    let entries = children.into_iter();
    entries
        .map(|(scorer, weight)| json!({ "scorer": scorer, "weight": document_number(weight) }))
        .collect()
}
