//! Every error of a document, by the registry; a reader stops at the first.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use super::PolicyConfig;
use super::data::{
    Data, Fields, as_str, known_field, missing, type_of, unknown_choice, wrong_type,
};
use super::error::{ConfigError, Step};
use super::registry::{Field, Need, POLICY, Record, Role, Shape};
use super::strategies::{CurveConfig, PlacerConfig, ScorerConfig, SlicerConfig};
use super::tree::{Entry, Node, Value};
use crate::{ContextKind, LadderStep, Query, RawValue};

/// Returns the errors of the parts of a value; if there are none, the first of the whole value.
pub(super) fn of(node: &Node<'_>, shape: Shape) -> Vec<ConfigError> {
    let mut errors = of_parts(node, shape);
    if errors.is_empty() {
        errors.extend(of_whole(node, shape).err());
    }
    errors
}

fn of_parts(node: &Node<'_>, shape: Shape) -> Vec<ConfigError> {
    match (&node.value, shape) {
        (Value::Array(nodes), Shape::Array(inner, _)) => {
            let parts = nodes.iter().enumerate();
            parts
                .flat_map(|(index, node)| of_part(index, node, *inner))
                .collect()
        }
        (Value::Object(entries), Shape::ByKind(inner) | Shape::ByString(inner)) => {
            let parts = entries.iter();
            parts
                .flat_map(|entry| of_part(&*entry.key, &entry.value, *inner))
                .collect()
        }
        (Value::Object(entries), Shape::Record(record)) => of_fields(entries, record, false),
        (Value::Object(entries), Shape::PolicyOrPath) => of_fields(entries, &POLICY, false),
        (Value::Object(entries), Shape::Family(role)) => match type_of(node, role.family()) {
            Ok(record) => of_fields(entries, record, true),
            Err(error) => vec![error],
        },
        _ => Vec::new(),
    }
}

fn of_part(step: impl Into<Step>, node: &Node<'_>, shape: Shape) -> Vec<ConfigError> {
    let step = step.into();
    let errors = of(node, shape).into_iter();
    errors.map(|error| error.within(step.clone())).collect()
}

fn of_fields(entries: &[Entry<'_>], record: &'static Record, tagged: bool) -> Vec<ConfigError> {
    let mut errors = Vec::new();
    let mut unknown = false;
    for entry in entries {
        match known_field(record, tagged, &entry.key) {
            Ok(Some(slot)) => {
                let shape = record.fields[slot].shape;
                errors.extend(of_part(&*entry.key, &entry.value, shape));
            }
            Ok(None) => {}
            Err(error) => {
                unknown = true;
                errors.push(error);
            }
        }
    }
    // An unknown key is often a required one, misspelled.
    if !unknown {
        let is_given = |name: &str| entries.iter().any(|entry| entry.key == name);
        let is_missing = |field: &&Field| match field.need {
            Need::Required => !is_given(field.name),
            Need::RequiredUnless(other) => !is_given(field.name) && !is_given(other),
            Need::Optional | Need::Default(_) => false,
        };
        let missing_fields = record.fields.iter().filter(is_missing);
        errors.extend(missing_fields.map(|field| missing(field.name, field.doc)));
    }
    errors
}

/// Reads a value, and builds it if it is a strategy.
fn of_whole(node: &Node<'_>, shape: Shape) -> Result<(), ConfigError> {
    match shape {
        // A blank label has an error of its own kind where the whole record is read.
        Shape::String | Shape::Label => String::read(node, Shape::String).map(drop),
        Shape::Bool => bool::read(node, shape).map(drop),
        Shape::Number(_) => f64::read(node, shape).map(drop),
        Shape::Integer(..) => i64::read(node, shape).map(drop),
        Shape::Duration => TimeDelta::read(node, shape).map(drop),
        Shape::Time => DateTime::<Utc>::read(node, shape).map(drop),
        Shape::Choice(names) => match as_str(node)? {
            name if names.contains(&name) => Ok(()),
            name => Err(unknown_choice(name, names)),
        },
        Shape::Array(..) => Vec::<RawValue>::read(node, shape).map(drop),
        Shape::ByKind(_) => BTreeMap::<ContextKind, RawValue>::read(node, shape).map(drop),
        Shape::ByString(_) => BTreeMap::<String, RawValue>::read(node, shape).map(drop),
        Shape::Record(record) => Fields::of(node, record).map(drop),
        Shape::Family(Role::Scorer) => ScorerConfig::read(node, shape)?.build().map(drop),
        Shape::Family(Role::Slicer) => SlicerConfig::read(node, shape)?.build().map(drop),
        Shape::Family(Role::Placer) => PlacerConfig::read(node, shape)?.build().map(drop),
        Shape::Family(Role::Curve) => CurveConfig::read(node, shape)?.build().map(drop),
        Shape::Family(Role::LadderStep) => LadderStep::read(node, shape).map(drop),
        Shape::Query => Query::read(node, shape).map(drop),
        Shape::Preset => super::preset(as_str(node)?).map(drop),
        Shape::PolicyOrPath => match &node.value {
            Value::Object(_) => PolicyConfig::read(node, shape)?.build().map(drop),
            Value::String(_) => String::read(node, Shape::Label).map(drop),
            _ => Err(wrong_type("a policy, the name of a preset or a path", node)),
        },
        Shape::Amount(least) => match &node.value {
            Value::String(_) => String::read(node, Shape::Label).map(drop),
            Value::Integer(_) | Value::Float(_) => {
                i64::read(node, Shape::Integer(least, i64::MAX)).map(drop)
            }
            _ => Err(wrong_type("tokens such as 8000 or \"8k\"", node)),
        },
        // Only requests have these.
        Shape::AnyNumber | Shape::Metadata | Shape::Policy => Ok(()),
    }
}

/// Any value: the parts are checked by themselves.
impl Data for RawValue {
    fn read(node: &Node<'_>, _: Shape) -> Result<Self, ConfigError> {
        Ok(node.to_raw())
    }

    fn write(&self) -> RawValue {
        self.clone()
    }
}
