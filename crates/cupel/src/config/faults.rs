//! Everything that is wrong with a policy document, by the table of names; reading stops at the first fault.

use super::error::{ConfigError, Step};
use super::read::{
    Fields, boolean, by_kind, by_text, choice, curve, integer, known_field, length, list, missing,
    number, placer, scorer, slicer, text, time, type_of,
};
use super::registry::{Field, Need, Record, Role, Shape};
use super::tree::{Entry, Node, Value};

/// The faults of the parts of a value; where there are none, the first of the value as a whole.
pub(super) fn of(node: &Node<'_>, shape: Shape) -> Vec<ConfigError> {
    let mut faults = of_parts(node, shape);
    if faults.is_empty() {
        faults.extend(of_whole(node, shape).err());
    }
    faults
}

fn of_parts(node: &Node<'_>, shape: Shape) -> Vec<ConfigError> {
    match (&node.value, shape) {
        (Value::List(nodes), Shape::List(inner, _)) => {
            let parts = nodes.iter().enumerate();
            parts
                .flat_map(|(index, node)| of_part(index, node, *inner))
                .collect()
        }
        (Value::Map(entries), Shape::ByKind(inner) | Shape::ByText(inner)) => {
            let parts = entries.iter();
            parts
                .flat_map(|entry| of_part(&*entry.key, &entry.value, *inner))
                .collect()
        }
        (Value::Map(entries), Shape::Record(record)) => of_fields(entries, record, false),
        (Value::Map(entries), Shape::Family(role)) => match type_of(node, role.family()) {
            Ok(record) => of_fields(entries, record, true),
            Err(fault) => vec![fault],
        },
        _ => Vec::new(),
    }
}

fn of_part(step: impl Into<Step>, node: &Node<'_>, shape: Shape) -> Vec<ConfigError> {
    let step = step.into();
    let faults = of(node, shape).into_iter();
    faults.map(|fault| fault.within(step.clone())).collect()
}

fn of_fields(entries: &[Entry<'_>], record: &'static Record, tagged: bool) -> Vec<ConfigError> {
    let mut faults = Vec::new();
    let mut unknown = false;
    for entry in entries {
        match known_field(record, tagged, &entry.key) {
            Ok(Some(slot)) => {
                let shape = record.fields[slot].shape;
                faults.extend(of_part(&*entry.key, &entry.value, shape));
            }
            Ok(None) => {}
            Err(fault) => {
                unknown = true;
                faults.push(fault);
            }
        }
    }
    // A key that is not known is often a missing one, misspelt.
    if !unknown {
        let is_missing = |field: &&Field| {
            field.need == Need::Required && entries.iter().all(|entry| entry.key != field.name)
        };
        faults.extend(
            record
                .fields
                .iter()
                .filter(is_missing)
                .map(|field| missing(field.name, field.doc)),
        );
    }
    faults
}

/// What the reader says, and the constructor.
fn of_whole(node: &Node<'_>, shape: Shape) -> Result<(), ConfigError> {
    match shape {
        Shape::Text | Shape::Label => text(node, shape).map(drop),
        Shape::Bool => boolean(node, shape).map(drop),
        Shape::Number(_) => number(node, shape).map(drop),
        Shape::Integer(..) => integer::<i64>(node, shape).map(drop),
        Shape::Duration => length(node, shape).map(drop),
        Shape::Time => time(node, shape).map(drop),
        Shape::Choice(_) => choice(node, shape).map(drop),
        Shape::List(..) => list(|_, _| Ok(()))(node, shape).map(drop),
        Shape::ByKind(_) => by_kind(|_, _| Ok(()))(node, shape).map(drop),
        Shape::ByText(_) => by_text(|_, _| Ok(()))(node, shape).map(drop),
        Shape::Record(record) => Fields::of(node, record).map(drop),
        Shape::Family(Role::Scorer) => scorer(node)?.build().map(drop),
        Shape::Family(Role::Slicer) => slicer(node)?.build().map(drop),
        Shape::Family(Role::Placer) => placer(node).map(drop),
        Shape::Family(Role::Curve) => curve(node)?.build().map(drop),
        // No policy has one.
        Shape::AnyNumber | Shape::Metadata | Shape::Policy => Ok(()),
    }
}
