//! Slicers, placers and the rest of a pipeline by name.

use super::{
    reader::{Fields, Node},
    scope::Scope,
    scorer::pipeline_scorer,
};
use crate::{
    error::VectorError,
    model::{CountEntry, OverflowStrategy, Placer, Policy, Quota, Scarcity, Slicer},
};

type Build = fn(&Scope<'_>) -> Result<Slicer, VectorError>;

/// Every slicer name with the reader of its fields.
const SLICERS: &[(&str, Build)] = &[
    ("greedy", |_| Ok(Slicer::Greedy)),
    ("rank", |_| Ok(Slicer::Rank)),
    ("density", |scope| {
        Ok(Slicer::Density {
            exponent: scope.required("exponent")?,
        })
    }),
    ("knapsack", |scope| {
        Ok(Slicer::Knapsack {
            bucket_size: scope.optional("bucket_size")?,
        })
    }),
    ("quota", |scope| {
        Ok(Slicer::Quota {
            quotas: quotas(scope)?,
            inner: Box::new(inner(scope)?),
        })
    }),
    ("count_quota", |scope| {
        Ok(Slicer::CountQuota {
            entries: entries(scope)?,
            scarcity: scarcity(scope)?,
            inner: Box::new(inner(scope)?),
        })
    }),
    ("count_constrained_knapsack", |scope| {
        Ok(Slicer::CountConstrainedKnapsack {
            entries: entries(scope)?,
            scarcity: scarcity(scope)?,
            bucket_size: scope.optional("bucket_size")?,
        })
    }),
];

const PLACERS: &[(&str, Placer)] = &[
    ("chronological", Placer::Chronological),
    ("u-shaped", Placer::UShaped),
];

const OVERFLOW_STRATEGIES: &[(&str, OverflowStrategy)] = &[
    ("throw", OverflowStrategy::Throw),
    ("truncate", OverflowStrategy::Truncate),
    ("proceed", OverflowStrategy::Proceed),
];

const SCARCITIES: &[(&str, Scarcity)] =
    &[("degrade", Scarcity::Degrade), ("throw", Scarcity::Throw)];

/// Reads the pipeline of `[config]`.
pub(super) fn policy(config: &Scope<'_>) -> Result<Policy, VectorError> {
    Ok(Policy {
        scorer: pipeline_scorer(config)?,
        slicer: match config.get("slicer") {
            Some(name) => slicer(&name, config)?,
            None => Slicer::Greedy,
        },
        placer: match config.get("placer") {
            Some(name) => placer(&name)?,
            None => Placer::Chronological,
        },
        deduplication: config.optional("deduplication")?.unwrap_or(true),
        overflow_strategy: match config.get("overflow_strategy") {
            Some(name) => name.name("overflow strategy", OVERFLOW_STRATEGIES)?,
            None => OverflowStrategy::default(),
        },
    })
}

/// Reads the slicer `name` with its fields in `scope`.
pub(super) fn slicer(name: &Node<'_>, scope: &Scope<'_>) -> Result<Slicer, VectorError> {
    name.name("slicer", SLICERS)?(scope)
}

/// Reads the placer `name`.
pub(super) fn placer(name: &Node<'_>) -> Result<Placer, VectorError> {
    name.name("placer", PLACERS)
}

fn inner(scope: &Scope<'_>) -> Result<Slicer, VectorError> {
    const KEY: &str = "inner_slicer";
    let Some(node) = scope.get(KEY) else {
        return Ok(Slicer::Greedy);
    };
    if node.value.is_table() {
        let scope = scope.within(KEY, node.read()?);
        slicer(
            &scope.own().get_required("type", "the name of a slicer")?,
            &scope,
        )
    } else {
        slicer(&node, &scope.beside(KEY))
    }
}

fn quotas(scope: &Scope<'_>) -> Result<Vec<Quota>, VectorError> {
    scope
        .required::<Vec<Fields<'_>>>("quotas")?
        .iter()
        .map(|fields| {
            Ok(Quota {
                kind: fields.required("kind")?,
                require: fields.optional("require")?.unwrap_or(0.0),
                cap: fields.optional("cap")?.unwrap_or(100.0),
            })
        })
        .collect()
}

fn entries(scope: &Scope<'_>) -> Result<Vec<CountEntry>, VectorError> {
    scope
        .required::<Vec<Fields<'_>>>("entries")?
        .iter()
        .map(|fields| {
            Ok(CountEntry {
                kind: fields.required("kind")?,
                require_count: fields.required("require_count")?,
                cap_count: fields.required("cap_count")?,
            })
        })
        .collect()
}

fn scarcity(scope: &Scope<'_>) -> Result<Scarcity, VectorError> {
    match scope.get("scarcity_behavior") {
        Some(name) => name.name("scarcity behavior", SCARCITIES),
        None => Ok(Scarcity::default()),
    }
}
