//! From the tree of a document to data, by the table of names.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use super::error::{ConfigError, ConfigErrorKind};
use super::registry::{
    self, COUNT_ENTRY, CURVES, Family, Field, Literal, Need, PLACERS, POLICY, QUOTA, Record,
    SCORER_ENTRY, SCORERS, SLICERS, STEP_WINDOW, Shape,
};
use super::tree::{Node, Value};
use super::{
    CurveConfig, KnapsackConfig, PlacerConfig, PolicyConfig, ScorerConfig, ScorerEntry,
    SlicerConfig, StepWindow, duration,
};
use crate::{
    ContextKind, CountQuotaEntry, CupelError, GroupScore, KindScorer, OverflowStrategy, QuotaEntry,
    ScarcityBehavior, Scorer,
};

type Result<T> = std::result::Result<T, ConfigError>;

pub(super) fn policy(node: &Node<'_>) -> Result<PolicyConfig> {
    let fields = Fields::of(node, &POLICY)?;
    fields.optional("$schema", text)?;
    Ok(PolicyConfig {
        name: fields.optional("name", label)?,
        version: fields.optional("version", integer)?,
        description: fields.optional("description", text)?,
        scorer: fields.value("scorer", |node, _| scorer(node))?,
        slicer: fields.value("slicer", |node, _| slicer(node))?,
        placer: fields.value("placer", |node, _| placer(node))?,
        deduplication: fields.value("deduplication", boolean)?,
        overflow_strategy: match fields.value("overflow_strategy", choice)? {
            "truncate" => OverflowStrategy::Truncate,
            "proceed" => OverflowStrategy::Proceed,
            _ => OverflowStrategy::Throw,
        },
    })
}

pub(super) fn scorer(node: &Node<'_>) -> Result<ScorerConfig> {
    let fields = Fields::of_family(node, &SCORERS)?;
    let inner = |node: &Node<'_>, _: Shape| scorer(node);
    Ok(match fields.record.name {
        "recency" => ScorerConfig::Recency,
        "priority" => ScorerConfig::Priority,
        "kind" => match fields.optional("weights", by_kind(number))? {
            Some(weights) => ScorerConfig::Kind { weights },
            None => KindScorer::with_default_weights().to_config()?,
        },
        "tag" => ScorerConfig::Tag {
            tag_weights: fields.value("tag_weights", by_text(number))?,
            ignore_case: fields.value("ignore_case", boolean)?,
        },
        "frequency" => ScorerConfig::Frequency,
        "reflexive" => ScorerConfig::Reflexive,
        "composite" => ScorerConfig::Composite {
            entries: fields.value("entries", list(scorer_entry))?,
        },
        "scaled" => ScorerConfig::Scaled {
            inner: fields.value("inner", inner)?.into(),
        },
        "decay" => ScorerConfig::Decay {
            curve: fields.value("curve", |node, _| curve(node))?,
            null_timestamp_score: fields.value("null_timestamp_score", number)?,
            reference_time: fields.optional("reference_time", time)?,
        },
        "metadata_trust" => ScorerConfig::MetadataTrust {
            default_score: fields.value("default_score", number)?,
        },
        "metadata_key" => ScorerConfig::MetadataKey {
            key: fields.value("key", text)?,
            value: fields.value("value", text)?,
            boost: fields.value("boost", number)?,
        },
        "product" => ScorerConfig::Product {
            scorers: fields.value("scorers", list(inner))?,
        },
        other => return Err(unread(other)),
    })
}

fn scorer_entry(node: &Node<'_>, _: Shape) -> Result<ScorerEntry> {
    let fields = Fields::of(node, &SCORER_ENTRY)?;
    Ok(ScorerEntry {
        scorer: fields.value("scorer", |node, _| scorer(node))?,
        weight: fields.value("weight", number)?,
    })
}

pub(super) fn curve(node: &Node<'_>) -> Result<CurveConfig> {
    let fields = Fields::of_family(node, &CURVES)?;
    Ok(match fields.record.name {
        "exponential" => CurveConfig::Exponential {
            half_life: fields.value("half_life", length)?,
        },
        "window" => CurveConfig::Window {
            max_age: fields.value("max_age", length)?,
        },
        "step" => CurveConfig::Step {
            windows: fields.value("windows", list(step_window))?,
        },
        other => return Err(unread(other)),
    })
}

fn step_window(node: &Node<'_>, _: Shape) -> Result<StepWindow> {
    let fields = Fields::of(node, &STEP_WINDOW)?;
    Ok(StepWindow {
        max_age: fields.value("max_age", length)?,
        score: fields.value("score", number)?,
    })
}

pub(super) fn slicer(node: &Node<'_>) -> Result<SlicerConfig> {
    let fields = Fields::of_family(node, &SLICERS)?;
    let inner = |node: &Node<'_>, _: Shape| slicer(node);
    Ok(match fields.record.name {
        "greedy" => SlicerConfig::Greedy,
        "rank" => SlicerConfig::Rank,
        "knapsack" => SlicerConfig::Knapsack(knapsack(&fields)?),
        "quota" => SlicerConfig::Quota {
            quotas: fields.value("quotas", list(quota))?,
            inner: fields.value("inner", inner)?.into(),
        },
        "count_quota" => SlicerConfig::CountQuota {
            entries: fields.value("entries", list(count_entry))?,
            scarcity: scarcity(&fields)?,
            inner: fields.value("inner", inner)?.into(),
        },
        "count_constrained_knapsack" => SlicerConfig::CountConstrainedKnapsack {
            entries: fields.value("entries", list(count_entry))?,
            scarcity: scarcity(&fields)?,
            knapsack: knapsack(&fields)?,
        },
        "group" => SlicerConfig::Group {
            score: match fields.value("score", choice)? {
                "mean" => GroupScore::Mean,
                "sum" => GroupScore::Sum,
                _ => GroupScore::Max,
            },
            inner: fields.value("inner", inner)?.into(),
        },
        other => return Err(unread(other)),
    })
}

fn knapsack(fields: &Fields<'_, '_>) -> Result<KnapsackConfig> {
    Ok(KnapsackConfig {
        bucket_size: fields.value("bucket_size", integer)?,
        cell_limit: fields.optional("cell_limit", integer)?,
        memory_limit: fields.optional("memory_limit", integer)?,
    })
}

fn scarcity(fields: &Fields<'_, '_>) -> Result<ScarcityBehavior> {
    Ok(match fields.value("scarcity", choice)? {
        "throw" => ScarcityBehavior::Throw,
        _ => ScarcityBehavior::Degrade,
    })
}

fn quota(node: &Node<'_>, _: Shape) -> Result<QuotaEntry> {
    let fields = Fields::of(node, &QUOTA)?;
    let kind = fields.value("kind", kind)?;
    let (require, cap) = (
        fields.value("require", number)?,
        fields.value("cap", number)?,
    );
    QuotaEntry::new(kind, require, cap).map_err(ConfigError::invalid)
}

fn count_entry(node: &Node<'_>, _: Shape) -> Result<CountQuotaEntry> {
    let fields = Fields::of(node, &COUNT_ENTRY)?;
    let kind = fields.value("kind", kind)?;
    let require_count = fields.value("require_count", integer)?;
    let cap_count = fields.value("cap_count", integer)?;
    CountQuotaEntry::new(kind, require_count, cap_count).map_err(ConfigError::invalid)
}

pub(super) fn placer(node: &Node<'_>) -> Result<PlacerConfig> {
    let fields = Fields::of_family(node, &PLACERS)?;
    Ok(match fields.record.name {
        "chronological" => PlacerConfig::Chronological,
        "u-shaped" => PlacerConfig::UShaped,
        other => return Err(unread(other)),
    })
}

/// A row of the table that no arm reads; the tests have every row.
fn unread(name: &str) -> ConfigError {
    ConfigError::new(
        ConfigErrorKind::UnknownName,
        format!("{name:?} cannot be read yet"),
    )
}

/// The most fields that a record has.
const MOST: usize = 12;

/// The fields of a map, by the positions of its record.
pub(super) struct Fields<'n, 'a: 'n> {
    record: &'static Record,
    slots: [Option<&'n Node<'a>>; MOST],
}

impl<'n, 'a> Fields<'n, 'a> {
    pub(super) fn of(node: &'n Node<'a>, record: &'static Record) -> Result<Self> {
        Self::collect(node, record, false)
    }

    /// The fields of the type that the map names.
    fn of_family(node: &'n Node<'a>, family: &'static Family) -> Result<Self> {
        Self::collect(node, type_of(node, family)?, true)
    }

    fn collect(node: &'n Node<'a>, record: &'static Record, tagged: bool) -> Result<Self> {
        let Value::Map(entries) = &node.value else {
            return Err(wrong_type(&format!("a map ({})", record.name), node));
        };
        let mut slots = [None; MOST];
        for entry in entries {
            match known_field(record, tagged, &entry.key)? {
                Some(slot) if slots[slot].is_some() => {
                    let name = record.fields[slot].name;
                    let message =
                        format!("{name:?} stands in both its spellings; remove one of them");
                    let error = ConfigError::new(ConfigErrorKind::DuplicateKey, message);
                    return Err(error.within(&*entry.key));
                }
                Some(_) if record.nullable && entry.value.value == Value::Null => {}
                Some(slot) => slots[slot] = Some(&entry.value),
                None => {}
            }
        }
        Ok(Self { record, slots })
    }

    fn slot(&self, key: &str) -> Option<(&'static Field, Option<&'n Node<'a>>)> {
        let mut fields = self.record.fields.iter().zip(&self.slots);
        let slot = fields.find(|(field, _)| field.name == key);
        slot.map(|(field, node)| (field, *node))
    }

    /// The field, or nothing if it is left out.
    pub(super) fn optional<T>(
        &self,
        key: &str,
        read: impl Fn(&Node<'a>, Shape) -> Result<T>,
    ) -> Result<Option<T>> {
        match self.slot(key) {
            Some((field, Some(node))) => {
                let value = read(node, field.shape).map_err(|error| error.within(key))?;
                Ok(Some(value))
            }
            _ => Ok(None),
        }
    }

    /// The field, or its default if it has one.
    pub(super) fn value<T>(
        &self,
        key: &str,
        read: impl Fn(&Node<'a>, Shape) -> Result<T>,
    ) -> Result<T> {
        match self.slot(key) {
            Some((field, Some(node))) => read(node, field.shape).map_err(|error| error.within(key)),
            Some((field, None)) => match field.need {
                Need::Default(literal) => read(&literal.node(), field.shape),
                _ => Err(missing(key, field.doc)),
            },
            None => Err(missing(key, "")),
        }
    }
}

/// The type that a map of the family names.
pub(super) fn type_of(node: &Node<'_>, family: &'static Family) -> Result<&'static Record> {
    let Value::Map(entries) = &node.value else {
        let expected = format!(
            "a map with a `type`, as {{\"type\": {:?}}}",
            family.types[0].name
        );
        return Err(wrong_type(&expected, node));
    };
    let Some(tag) = entries.iter().find(|entry| entry.key == "type") else {
        let names: Vec<&str> = family.names().collect();
        let message = format!("missing field \"type\"; give one of {}", names.join(", "));
        return Err(ConfigError::new(ConfigErrorKind::MissingField, message));
    };
    let record = match &tag.value.value {
        Value::Text(name) => family.find(name).ok_or_else(|| {
            let kind = ConfigErrorKind::UnknownName;
            ConfigError::unknown(kind, family.name, name, family.names())
        }),
        _ => Err(wrong_type("a text", &tag.value)),
    };
    record.map_err(|error| error.within("type"))
}

/// The position of the field with that key; none for the `type` of a map that has one.
pub(super) fn known_field(record: &Record, tagged: bool, key: &str) -> Result<Option<usize>> {
    let has_key = |field: &Field| field.name == key || field.alias == Some(key);
    match record.fields.iter().position(has_key) {
        None if tagged && key == "type" => Ok(None),
        None => {
            let known = record.fields.iter().map(|field| field.name);
            let tag = tagged.then_some("type");
            let known: Vec<&str> = tag.into_iter().chain(known).collect();
            let kind = ConfigErrorKind::UnknownKey;
            Err(ConfigError::unknown(kind, "key", key, known).within(key))
        }
        slot => Ok(slot),
    }
}

impl Literal {
    /// As if it had been written.
    fn node(self) -> Node<'static> {
        let node = |value| Node { value, span: 0..0 };
        node(match self {
            Self::Bool(value) => Value::Bool(value),
            Self::Integer(number) => Value::Integer(number.into()),
            Self::Number(number) => Value::Float(number),
            Self::Text(text) => Value::Text(text.into()),
            Self::Type(name) => Value::Map(vec![super::tree::Entry {
                key: "type".into(),
                key_span: 0..0,
                value: node(Value::Text(name.into())),
            }]),
            Self::EmptyMap => Value::Map(Vec::new()),
            Self::EmptyList => Value::List(Vec::new()),
        })
    }
}

pub(super) fn missing(key: &str, doc: &str) -> ConfigError {
    let first = doc.chars().next().map(|c| c.to_ascii_lowercase());
    let rest = doc.get(1..).unwrap_or_default().trim_end_matches('.');
    let doc: String = first.into_iter().chain(rest.chars()).collect();
    let message = format!("missing field {key:?}; add it: {doc}");
    ConfigError::new(ConfigErrorKind::MissingField, message)
}

pub(super) fn wrong_type(expected: &str, node: &Node<'_>) -> ConfigError {
    let message = format!("expected {expected}, got {}", node.value);
    ConfigError::new(ConfigErrorKind::WrongType, message)
}

pub(super) fn out_of_range(expected: &str, got: impl std::fmt::Display) -> ConfigError {
    let message = format!("expected {expected}, got {got}");
    ConfigError::new(ConfigErrorKind::OutOfRange, message)
}

pub(super) fn text(node: &Node<'_>, _: Shape) -> Result<String> {
    as_text(node).map(str::to_owned)
}

pub(super) fn as_text<'n>(node: &'n Node<'_>) -> Result<&'n str> {
    match &node.value {
        Value::Text(text) => Ok(text),
        _ => Err(wrong_type("a text", node)),
    }
}

fn label(node: &Node<'_>, _: Shape) -> Result<String> {
    let text = as_text(node)?;
    if text.trim().is_empty() {
        return Err(out_of_range("a name", "a blank text"));
    }
    Ok(text.to_owned())
}

pub(super) fn kind(node: &Node<'_>, _: Shape) -> Result<ContextKind> {
    ContextKind::new(as_text(node)?).map_err(|error| blank(error, "kind"))
}

/// A blank kind or source.
pub(super) fn blank(error: CupelError, what: &str) -> ConfigError {
    ConfigError::invalid(error).with_message(format!("a {what} must not be blank"))
}

pub(super) fn boolean(node: &Node<'_>, _: Shape) -> Result<bool> {
    match node.value {
        Value::Bool(value) => Ok(value),
        _ => Err(wrong_type("true or false", node)),
    }
}

pub(super) fn number(node: &Node<'_>, shape: Shape) -> Result<f64> {
    let number = match node.value {
        Value::Float(number) => number,
        Value::Integer(number) => number as f64,
        _ => return Err(wrong_type("a number", node)),
    };
    match shape {
        Shape::Number(range) if !range.contains(number) => {
            Err(out_of_range(&range.words(), number))
        }
        _ => Ok(number),
    }
}

pub(super) fn integer<T: TryFrom<i128>>(node: &Node<'_>, shape: Shape) -> Result<T> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole, and the cast saturates"
    )]
    let number = match node.value {
        Value::Integer(number) => number,
        Value::Float(number) if number.fract() == 0.0 => number as i128,
        Value::Float(number) => return Err(out_of_range("a whole number", number)),
        _ => return Err(wrong_type("a whole number", node)),
    };
    let (least, most) = match shape {
        Shape::Integer(least, most) => (least, most),
        _ => (i64::MIN, i64::MAX),
    };
    let within = (i128::from(least)..=i128::from(most)).contains(&number);
    let value = T::try_from(number).ok().filter(|_| within);
    value.ok_or_else(|| {
        let expected = match (least, most) {
            (i64::MIN, _) => format!("a whole number from {least} to {most}"),
            (_, i64::MAX) if number < i128::from(least) => {
                format!("a whole number of at least {least}")
            }
            _ => format!("a whole number from {least} to {most}"),
        };
        out_of_range(&expected, number)
    })
}

pub(super) fn choice(node: &Node<'_>, shape: Shape) -> Result<&'static str> {
    let name = as_text(node)?;
    let choices = match shape {
        Shape::Choice(choices) => choices,
        _ => &[],
    };
    let chosen = choices.iter().find(|choice| **choice == name);
    chosen.copied().ok_or_else(|| {
        let kind = ConfigErrorKind::UnknownName;
        ConfigError::unknown(kind, "choice", name, choices.iter().copied())
    })
}

pub(super) fn length(node: &Node<'_>, _: Shape) -> Result<TimeDelta> {
    const NOTATIONS: &str =
        "a duration as \"24h\", \"1h30m\", \"500ms\", a number of seconds or ISO 8601 (\"PT24H\")";
    match &node.value {
        Value::Text(text) => {
            duration::parse(text).ok_or_else(|| out_of_range(NOTATIONS, format!("{text:?}")))
        }
        Value::Integer(_) | Value::Float(_) => {
            let seconds = number(node, Shape::Duration)?;
            duration::from_seconds(seconds).ok_or_else(|| out_of_range(NOTATIONS, seconds))
        }
        _ => Err(wrong_type(NOTATIONS, node)),
    }
}

pub(super) fn time(node: &Node<'_>, _: Shape) -> Result<DateTime<Utc>> {
    const NOTATION: &str = "a time with a zone by RFC 3339, as \"2026-01-31T12:00:00Z\"";
    let Value::Text(text) = &node.value else {
        return Err(wrong_type(NOTATION, node));
    };
    let time = text.parse::<DateTime<chrono::FixedOffset>>();
    time.map(|time| time.to_utc())
        .map_err(|_| out_of_range(NOTATION, format!("{text:?}")))
}

/// A list, each element read by `read`.
pub(super) fn list<'a, T>(
    read: impl Fn(&Node<'a>, Shape) -> Result<T>,
) -> impl Fn(&Node<'a>, Shape) -> Result<Vec<T>> {
    move |node, shape| {
        let Value::List(nodes) = &node.value else {
            return Err(wrong_type("a list", node));
        };
        let (inner, least) = match shape {
            Shape::List(inner, least) => (*inner, least),
            _ => (Shape::Text, 0),
        };
        if nodes.len() < least {
            return Err(out_of_range("at least one entry", "none"));
        }
        let elements = nodes.iter().enumerate();
        elements
            .map(|(index, node)| read(node, inner).map_err(|error| error.within(index)))
            .collect()
    }
}

/// A map from texts, each value read by `read`.
pub(super) fn by_text<'a, T>(
    read: impl Fn(&Node<'a>, Shape) -> Result<T>,
) -> impl Fn(&Node<'a>, Shape) -> Result<BTreeMap<String, T>> {
    move |node, shape| {
        let entries = pairs(node, shape, &read)?;
        Ok(entries
            .map(|(key, value)| (key.to_owned(), value))
            .collect())
    }
}

/// A map from kinds, each value read by `read`.
pub(super) fn by_kind<'a, T>(
    read: impl Fn(&Node<'a>, Shape) -> Result<T>,
) -> impl Fn(&Node<'a>, Shape) -> Result<BTreeMap<ContextKind, T>> {
    move |node, shape| {
        let mut map = BTreeMap::new();
        for (key, value) in pairs(node, shape, &read)? {
            let kind = ContextKind::new(key).map_err(|error| blank(error, "kind").within(key))?;
            if map.contains_key(&kind) {
                let message =
                    format!("kind {key:?} stands twice, case is ignored; remove one of them");
                let error = ConfigError::new(ConfigErrorKind::DuplicateKey, message);
                return Err(error.within(key));
            }
            map.insert(kind, value);
        }
        Ok(map)
    }
}

fn pairs<'n, 'a, T>(
    node: &'n Node<'a>,
    shape: Shape,
    read: impl Fn(&Node<'a>, Shape) -> Result<T>,
) -> Result<impl Iterator<Item = (&'n str, T)>> {
    let Value::Map(entries) = &node.value else {
        return Err(wrong_type("a map", node));
    };
    let inner = match shape {
        Shape::ByKind(inner) | Shape::ByText(inner) => *inner,
        _ => Shape::Text,
    };
    let mut pairs = Vec::with_capacity(entries.len());
    for entry in entries {
        let value = read(&entry.value, inner).map_err(|error| error.within(&*entry.key))?;
        pairs.push((&*entry.key, value));
    }
    Ok(pairs.into_iter())
}

impl registry::Range {
    fn contains(self, number: f64) -> bool {
        let above = if self.above {
            number > self.min
        } else {
            number >= self.min
        };
        above && number <= self.max
    }

    fn words(self) -> String {
        match self {
            Self {
                max: f64::MAX,
                min: f64::MIN,
                ..
            } => "a finite number".to_owned(),
            Self {
                max: f64::MAX,
                min,
                above: true,
            } => format!("a finite number above {min}"),
            Self {
                max: f64::MAX,
                min,
                above: false,
            } => format!("a finite number of at least {min}"),
            Self { min, max, .. } => format!("a number from {min} to {max}"),
        }
    }
}
