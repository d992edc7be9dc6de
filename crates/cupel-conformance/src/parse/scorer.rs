//! Scorers by name.

use super::{
    reader::{Fields, Node},
    scope::Scope,
};
use crate::{
    error::VectorError,
    model::{Curve, FusionMethod, Neighborhood, Scorer},
};

type Build = fn(&Scope<'_>) -> Result<Scorer, VectorError>;

/// Every scorer name with the reader of its fields.
const SCORERS: &[(&str, Build)] = &[
    ("recency", |_| Ok(Scorer::Recency)),
    ("priority", |_| Ok(Scorer::Priority)),
    ("kind", kind),
    ("tag", tag),
    ("frequency", |_| Ok(Scorer::Frequency)),
    ("reflexive", |_| Ok(Scorer::Reflexive)),
    ("composite", |scope| Ok(Scorer::Composite(children(scope)?))),
    ("product", |scope| {
        let children = children(scope)?;
        Ok(Scorer::Product(
            children.into_iter().map(|(child, _)| child).collect(),
        ))
    }),
    ("fusion", |scope| {
        let method = scope
            .get("method")
            .map(|name| name.name("method", FusionMethod::ALL));
        Ok(Scorer::Fusion {
            entries: children(scope)?,
            method: method.transpose()?.unwrap_or(FusionMethod::Sum),
            k: scope.optional("k")?.unwrap_or(60.0),
        })
    }),
    ("relevance", |scope| relevance(scope, None)),
    ("conversation", |scope| {
        relevance(scope, Some(neighborhood(scope)?))
    }),
    ("neighbor", |scope| {
        Ok(Scorer::Neighbor {
            inner: Box::new(inner(scope)?),
            neighborhood: neighborhood(scope)?,
        })
    }),
    ("scaled", |scope| {
        Ok(Scorer::Scaled(Box::new(inner(scope)?)))
    }),
    ("metadata_trust", |scope| {
        Ok(Scorer::MetadataTrust {
            default_score: scope.optional("default_score")?.unwrap_or(0.5),
        })
    }),
    ("decay", |scope| {
        Ok(Scorer::Decay {
            reference_time: scope.required("reference_time")?,
            null_timestamp_score: scope.optional("null_timestamp_score")?,
            curve: curve(&scope.required("curve")?)?,
        })
    }),
    ("metadata_key", |scope| {
        Ok(Scorer::MetadataKey {
            key: scope.required("key")?,
            value: scope.required("value")?,
            boost: scope.required("boost")?,
        })
    }),
];

/// Reads the scorer `name` with its fields in `scope`.
pub(super) fn scorer(name: &Node<'_>, scope: &Scope<'_>) -> Result<Scorer, VectorError> {
    name.name("scorer", SCORERS)?(scope)
}

/// Reads the scorer of a pipeline: `scorer`, or the composite of `scorers`.
pub(super) fn pipeline_scorer(config: &Scope<'_>) -> Result<Scorer, VectorError> {
    if let Some(fields) = config.optional("scorer")? {
        return typed(&config.within("scorer", fields));
    }
    let mut children = children(config)?;
    match children.as_slice() {
        [(_, weight)] if *weight > 0.0 => Ok(children.remove(0).0),
        _ => Ok(Scorer::Composite(children)),
    }
}

/// Reads a scorer from a table with its name under `type`.
fn typed(scope: &Scope<'_>) -> Result<Scorer, VectorError> {
    scorer(
        &scope.own().get_required("type", "the name of a scorer")?,
        scope,
    )
}

/// Reads the children of a composite, product or fusion with their weights.
fn children(scope: &Scope<'_>) -> Result<Vec<(Scorer, f64)>, VectorError> {
    let (key, list) = ["scorers", "children"]
        .into_iter()
        .find_map(|key| Some((key, scope.get(key)?)))
        .ok_or_else(|| scope.own().missing("scorers", "a list of scorers"))?;
    list.read::<Vec<Fields<'_>>>()?
        .into_iter()
        .map(|fields| {
            let child = scope.within(key, fields);
            Ok((
                typed(&child)?,
                child.own().optional("weight")?.unwrap_or(1.0),
            ))
        })
        .collect()
}

/// Reads the scorer that a decorator wraps.
fn inner(scope: &Scope<'_>) -> Result<Scorer, VectorError> {
    const KEY: &str = "inner_scorer";
    let node = scope.get(KEY).ok_or_else(|| {
        scope
            .own()
            .missing(KEY, "the name of a scorer or a table with `type`")
    })?;
    if node.value.is_table() {
        typed(&scope.within(KEY, node.read()?))
    } else {
        scorer(&node, &scope.beside(KEY))
    }
}

/// Reads the query and the parameters of BM25.
fn relevance(scope: &Scope<'_>, conversation: Option<Neighborhood>) -> Result<Scorer, VectorError> {
    let query = match scope.optional::<Vec<Fields<'_>>>("queries")? {
        Some(texts) => texts
            .iter()
            .map(|text| {
                Ok((
                    text.required("text")?,
                    text.optional("weight")?.unwrap_or(1.0),
                ))
            })
            .collect::<Result<_, VectorError>>()?,
        None => vec![(scope.required("query")?, 1.0)],
    };
    Ok(Scorer::Relevance {
        query,
        k1: scope.optional("k1")?.unwrap_or(0.9),
        b: scope.optional("b")?.unwrap_or(0.5),
        conversation,
    })
}

fn neighborhood(scope: &Scope<'_>) -> Result<Neighborhood, VectorError> {
    let number = |key, default: f64| Ok(scope.optional(key)?.unwrap_or(default));
    let power = scope.optional::<i64>("wide_power")?.unwrap_or(3);
    Ok(Neighborhood {
        forward: number("near_forward", 0.6)?,
        backward: number("near_backward", 0.4)?,
        weight: number("wide_weight", 0.5)?,
        decay: number("wide_decay", 0.97)?,
        power: u32::try_from(power).unwrap_or(0),
        sessions: scope.optional("sessions")?.unwrap_or(false),
    })
}

fn kind(scope: &Scope<'_>) -> Result<Scorer, VectorError> {
    let weights = match scope.optional("use_default_weights")? {
        Some(true) => None,
        Some(false) => Some(scope.required("weights")?),
        None => scope.optional("weights")?,
    };
    let weights = weights.map(|list| weighted("kind", list)).transpose()?;
    Ok(Scorer::Kind { weights })
}

fn tag(scope: &Scope<'_>) -> Result<Scorer, VectorError> {
    Ok(Scorer::Tag {
        weights: weighted("tag", scope.required("tag_weights")?)?,
        ignore_case: scope.optional("ignore_case")?.unwrap_or(false),
    })
}

fn weighted(key: &str, list: Vec<Fields<'_>>) -> Result<Vec<(String, f64)>, VectorError> {
    list.into_iter()
        .map(|fields| Ok((fields.required(key)?, fields.required("weight")?)))
        .collect()
}

fn curve(fields: &Fields<'_>) -> Result<Curve, VectorError> {
    type Build = fn(&Fields<'_>) -> Result<Curve, VectorError>;
    const CURVES: &[(&str, Build)] = &[
        ("exponential", |fields| {
            Ok(Curve::Exponential {
                half_life: fields.required("half_life_secs")?,
            })
        }),
        ("window", |fields| {
            Ok(Curve::Window {
                max_age: fields.required("max_age_secs")?,
            })
        }),
        ("step", |fields| {
            Ok(Curve::Step {
                windows: fields
                    .required::<Vec<Fields<'_>>>("windows")?
                    .iter()
                    .map(|window| Ok((window.required("max_age_secs")?, window.required("score")?)))
                    .collect::<Result<_, VectorError>>()?,
            })
        }),
    ];
    let name = fields.get_required("type", "the name of a curve")?;
    name.name("curve", CURVES)?(fields)
}
