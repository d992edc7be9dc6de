//! The wire format (feature `serde`).
//!
//! Writers use `snake_case` keys, omit absent values and sort maps by key. Readers also accept `camelCase`
//! keys and `null` for absent values, preserve unknown stages and reasons, and validate through the
//! constructors.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use chrono::{DateTime, Utc};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use crate::diagnostics::totals;
use crate::{
    ContextBudget, ContextItem, ContextItemBuilder, ContextKind, ContextSource, ContextView,
    CountRequirementShortfall, DiagnosticTraceCollector, ExcludedItem, ExclusionReason,
    IncludedItem, InclusionReason, PipelineStage, QuotaEntry, RawValue, SelectionReport,
    TraceDetailLevel, TraceEvent, UnknownName, UnknownReason,
};

/// A binary64 number. NaN and infinities are written as the strings `NaN`, `inf` and `-inf`.
pub(crate) mod float {
    use super::{Deserialize, Deserializer, RawValue, Serializer, de};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(crate) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() {
            serializer.serialize_f64(*value)
        } else {
            serializer.collect_str(value)
        }
    }

    /// Writes a number that is present. `skip_serializing_if` omits absent ones.
    #[expect(clippy::ref_option, reason = "serde's signature")]
    pub(crate) fn serialize_some<S: Serializer>(
        value: &Option<f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serialize(&value.unwrap_or(f64::NAN), serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Ok(Float::deserialize(deserializer)?.0)
    }

    /// A number, read from a number or a string.
    pub(super) struct Float(pub(super) f64);

    impl<'de> Deserialize<'de> for Float {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let wrong = "expected a number, or one of the texts \"NaN\", \"inf\", \"-inf\"";
            let value = RawValue::deserialize(deserializer)?;
            from_raw(&value)
                .map(Self)
                .ok_or_else(|| de::Error::custom(wrong))
        }
    }

    /// Returns the number that a value represents.
    pub(crate) fn from_raw(value: &RawValue) -> Option<f64> {
        match value {
            RawValue::Float(number) => Some(*number),
            RawValue::Integer(number) => Some(*number as f64),
            RawValue::Text(text) => match text.as_str() {
                "NaN" => Some(f64::NAN),
                "inf" => Some(f64::INFINITY),
                "-inf" => Some(f64::NEG_INFINITY),
                _ => None,
            },
            _ => None,
        }
    }

    impl serde::Serialize for Float {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serialize(&self.0, serializer)
        }
    }
}

/// An item: a text with its tokens, and what strategies know about it.
#[derive(serde::Serialize)]
#[serde(rename = "ContextItem")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "ContextItem")
)]
pub(crate) struct WrittenItem<'a> {
    /// The text.
    content: &'a str,
    /// Its tokens.
    tokens: i64,
    /// The kind, such as `Message` or `ToolOutput`.
    kind: &'a ContextKind,
    /// Where it comes from, such as `Chat` or `Rag`.
    source: &'a ContextSource,
    /// The priority; higher is more important.
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i64>,
    /// The tags.
    tags: &'a [String],
    /// The metadata, by key.
    metadata: BTreeMap<&'a String, &'a String>,
    /// The time, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::schema::Time>"))]
    timestamp: Option<DateTime<Utc>>,
    /// The caller's estimate of its future relevance.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::schema::Float>"))]
    future_relevance_hint: Option<float::Float>,
    /// Whether it must be in the window.
    pinned: bool,
    /// The tokens before it was shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    original_tokens: Option<i64>,
    /// Shorter forms, largest first.
    #[serde(skip_serializing_if = "<[ContextView]>::is_empty")]
    views: &'a [ContextView],
}

impl Serialize for ContextItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = WrittenItem {
            content: self.content(),
            tokens: self.tokens(),
            kind: self.kind(),
            source: self.source(),
            priority: self.priority(),
            tags: self.tags(),
            metadata: self.metadata().iter().collect(),
            timestamp: self.timestamp(),
            future_relevance_hint: self.future_relevance_hint().map(float::Float),
            pinned: self.pinned(),
            original_tokens: self.original_tokens(),
            views: self.views(),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ContextItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(rename = "ContextItem", deny_unknown_fields)]
        struct Fields {
            content: String,
            tokens: i64,
            #[serde(default)]
            kind: Option<ContextKind>,
            #[serde(default)]
            source: Option<ContextSource>,
            #[serde(default)]
            priority: Option<i64>,
            #[serde(default)]
            tags: Option<Vec<String>>,
            #[serde(default)]
            metadata: Option<BTreeMap<String, RawValue>>,
            #[serde(default)]
            timestamp: Option<DateTime<Utc>>,
            #[serde(default, alias = "futureRelevanceHint")]
            future_relevance_hint: Option<float::Float>,
            #[serde(default)]
            pinned: Option<bool>,
            #[serde(default, alias = "originalTokens")]
            original_tokens: Option<i64>,
            #[serde(default)]
            views: Option<Vec<ContextView>>,
        }
        let fields = Fields::deserialize(deserializer)?;
        let metadata = fields.metadata.unwrap_or_default().into_iter();
        let mut builder = ContextItemBuilder::new(fields.content, fields.tokens)
            .kind(fields.kind.unwrap_or_default())
            .source(fields.source.unwrap_or_default())
            .tags(fields.tags.unwrap_or_default())
            .pinned(fields.pinned.unwrap_or_default())
            .views(fields.views.unwrap_or_default())
            .metadata(
                metadata
                    .filter_map(|(key, value)| Some((key, value.into_text()?)))
                    .collect(),
            );
        if let Some(priority) = fields.priority {
            builder = builder.priority(priority);
        }
        if let Some(timestamp) = fields.timestamp {
            builder = builder.timestamp(timestamp);
        }
        if let Some(hint) = fields.future_relevance_hint {
            builder = builder.future_relevance_hint(hint.0);
        }
        if let Some(tokens) = fields.original_tokens {
            builder = builder.original_tokens(tokens);
        }
        builder.build().map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ContextView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(rename = "ContextView", deny_unknown_fields)]
        struct Fields {
            content: String,
            tokens: i64,
            #[serde(default)]
            level: Option<i64>,
            #[serde(default)]
            value: Option<f64>,
        }
        let fields = Fields::deserialize(deserializer)?;
        let mut view = Self::new(fields.content, fields.tokens);
        if let Some(level) = fields.level {
            view = view.with_level(level);
        }
        if let Some(value) = fields.value {
            view = view.with_value(value);
        }
        Ok(view)
    }
}

/// The limits of a run, in tokens.
#[derive(serde::Serialize)]
#[serde(rename = "ContextBudget")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "ContextBudget")
)]
pub(crate) struct WrittenBudget<'a> {
    /// The limit of the model in tokens.
    max_tokens: i64,
    /// The tokens to aim for, at most the limit.
    target_tokens: i64,
    /// The tokens reserved for the answer of the model.
    output_reserve: i64,
    /// The tokens reserved for kinds of items, by kind.
    reserved_slots: BTreeMap<&'a ContextKind, &'a i64>,
    /// The safety margin for estimated counts, in percent from 0 to 100.
    estimation_safety_margin_percent: f64,
}

impl Serialize for ContextBudget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = WrittenBudget {
            max_tokens: self.max_tokens(),
            target_tokens: self.target_tokens(),
            output_reserve: self.output_reserve(),
            reserved_slots: self.reserved_slots().iter().collect(),
            estimation_safety_margin_percent: self.estimation_safety_margin_percent(),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ContextBudget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(rename = "ContextBudget", deny_unknown_fields)]
        struct Fields {
            #[serde(alias = "maxTokens")]
            max_tokens: i64,
            #[serde(alias = "targetTokens")]
            target_tokens: i64,
            #[serde(default, alias = "outputReserve")]
            output_reserve: Option<i64>,
            #[serde(default, alias = "reservedSlots")]
            reserved_slots: Option<HashMap<ContextKind, i64>>,
            #[serde(default, alias = "estimationSafetyMarginPercent")]
            estimation_safety_margin_percent: Option<f64>,
        }
        let fields = Fields::deserialize(deserializer)?;
        Self::new(
            fields.max_tokens,
            fields.target_tokens,
            fields.output_reserve.unwrap_or_default(),
            fields.reserved_slots.unwrap_or_default(),
            fields.estimation_safety_margin_percent.unwrap_or_default(),
        )
        .map_err(de::Error::custom)
    }
}

impl Serialize for QuotaEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("QuotaEntry", 3)?;
        fields.serialize_field("kind", self.kind())?;
        fields.serialize_field("require", &self.require())?;
        fields.serialize_field("cap", &self.cap())?;
        fields.end()
    }
}

impl<'de> Deserialize<'de> for QuotaEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(rename = "QuotaEntry", deny_unknown_fields)]
        struct Fields {
            kind: ContextKind,
            require: f64,
            cap: f64,
        }
        let fields = Fields::deserialize(deserializer)?;
        Self::new(fields.kind, fields.require, fields.cap).map_err(de::Error::custom)
    }
}

impl Serialize for PipelineStage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for PipelineStage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Ok(Self::from_name(&name))
    }
}

impl Serialize for InclusionReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_reason(serializer, self.name(), self.fields())
    }
}

impl<'de> Deserialize<'de> for InclusionReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (name, mut fields) = ReasonFields::read(deserializer)?;
        let known = Self::from_fields(&name, |key| fields.take(key))?;
        Ok(known.unwrap_or_else(|| Self::Unknown(UnknownName::new(&name))))
    }
}

impl Serialize for ExclusionReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_reason(serializer, self.name(), self.fields())
    }
}

impl<'de> Deserialize<'de> for ExclusionReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (name, mut fields) = ReasonFields::read(deserializer)?;
        let known = Self::from_fields(&name, |key| fields.take(key))?;
        Ok(known.unwrap_or_else(|| Self::Unknown(UnknownReason::new(name, fields.0))))
    }
}

fn write_reason<S: Serializer, K: Serialize>(
    serializer: S,
    name: &str,
    fields: Vec<(K, RawValue)>,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("reason", name)?;
    for (key, value) in fields {
        map.serialize_entry(&key, &value)?;
    }
    map.end()
}

/// The unread fields of a reason.
struct ReasonFields(Vec<(String, RawValue)>);

impl ReasonFields {
    /// Reads an object and takes the name of the reason.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(String, Self), D::Error> {
        let entries = Entries::deserialize(deserializer)?;
        let mut fields = Self(entries.into());
        match fields.take("reason")? {
            RawValue::Text(name) => Ok((name, fields)),
            _ => Err(de::Error::custom("field `reason` must be a string")),
        }
    }

    fn take<E: de::Error>(&mut self, key: &'static str) -> Result<RawValue, E> {
        let named = |spelling: &str| spelling == key || is_camel_case_of(spelling, key);
        match self.0.iter().position(|(spelling, _)| named(spelling)) {
            Some(index) => Ok(self.0.remove(index).1),
            None => Err(E::missing_field(key)),
        }
    }
}

/// Returns whether `spelling` is the `camelCase` form of the `snake_case` word `key`.
fn is_camel_case_of(spelling: &str, key: &str) -> bool {
    let mut camel = String::with_capacity(key.len());
    for (index, part) in key.split('_').enumerate() {
        let (first, rest) = part.split_at(usize::from(index > 0));
        camel.push_str(&first.to_ascii_uppercase());
        camel.push_str(rest);
    }
    spelling == camel
}

impl<'de> Deserialize<'de> for SelectionReport {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(rename = "SelectionReport")]
        struct Fields {
            events: Vec<TraceEvent>,
            included: Vec<IncludedItem>,
            excluded: Vec<ExcludedItem>,
            #[serde(alias = "totalCandidates")]
            total_candidates: usize,
            #[serde(alias = "totalTokensConsidered")]
            total_tokens_considered: i64,
            #[serde(default, alias = "countRequirementShortfalls")]
            count_requirement_shortfalls: Option<Vec<CountRequirementShortfall>>,
        }
        let fields = Fields::deserialize(deserializer)?;
        let (included, excluded) = (fields.included.len(), fields.excluded.len());
        if fields.total_candidates != included + excluded {
            return Err(de::Error::custom(format!(
                "total_candidates {} does not equal included.len() {included} + excluded.len() {excluded}",
                fields.total_candidates
            )));
        }
        Ok(Self {
            events: fields.events,
            included: fields.included,
            excluded: fields.excluded,
            total_candidates: fields.total_candidates,
            total_tokens_considered: fields.total_tokens_considered,
            count_requirement_shortfalls: fields.count_requirement_shortfalls.unwrap_or_default(),
        })
    }
}

impl Serialize for DiagnosticTraceCollector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (candidates, tokens) = totals(&self.included, &self.excluded);
        let mut fields = serializer.serialize_struct("DiagnosticTraceCollector", 7)?;
        fields.serialize_field("events", &self.events)?;
        fields.serialize_field("included", &self.included)?;
        fields.serialize_field("excluded", &self.excluded)?;
        fields.serialize_field("total_candidates", &candidates)?;
        fields.serialize_field("total_tokens_considered", &tokens)?;
        fields.serialize_field("count_requirement_shortfalls", &self.shortfalls)?;
        fields.serialize_field("detail_level", &self.detail_level)?;
        fields.end()
    }
}

impl<'de> Deserialize<'de> for DiagnosticTraceCollector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(rename = "DiagnosticTraceCollector")]
        struct Fields {
            events: Vec<TraceEvent>,
            included: Vec<IncludedItem>,
            excluded: Vec<ExcludedItem>,
            #[serde(default, alias = "countRequirementShortfalls")]
            count_requirement_shortfalls: Option<Vec<CountRequirementShortfall>>,
            #[serde(alias = "detailLevel")]
            detail_level: TraceDetailLevel,
        }
        let fields = Fields::deserialize(deserializer)?;
        let mut collector = Self::new(fields.detail_level);
        collector.events = fields.events;
        collector.included = fields.included;
        collector.excluded = fields.excluded;
        collector.shortfalls = fields.count_requirement_shortfalls.unwrap_or_default();
        Ok(collector)
    }
}

impl RawValue {
    /// Returns a string unquoted and other values as JSON; `None` for null.
    pub(crate) fn into_text(self) -> Option<String> {
        match self {
            Self::Null => None,
            Self::Text(text) => Some(text),
            other => Some(other.to_string()),
        }
    }
}

/// Prints the value as JSON.
impl fmt::Display for RawValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Integer(number) => number.fmt(f),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Text(text) => write_json(f, text),
            Self::List(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Map(entries) => {
                f.write_str("{")?;
                for (index, (key, value)) in entries.iter().enumerate() {
                    f.write_str(if index > 0 { "," } else { "" })?;
                    write_json(f, key)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

/// Writes a string as JSON.
fn write_json(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            c if c < ' ' => write!(f, "\\u{:04x}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

impl Serialize for RawValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Integer(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                (Ok(number), _) => serializer.serialize_i64(number),
                (_, Ok(number)) => serializer.serialize_u64(number),
                _ => serializer.serialize_i128(*number),
            },
            Self::Float(number) => float::serialize(number, serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(values) => serializer.collect_seq(values),
            Self::Map(entries) => {
                serializer.collect_map(entries.iter().map(|(key, value)| (key, value)))
            }
        }
    }
}

impl<'de> Deserialize<'de> for RawValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = RawValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Null)
    }

    fn visit_none<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawValue, D::Error> {
        RawValue::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<RawValue, E> {
        Ok(RawValue::Bool(value))
    }

    fn visit_i64<E>(self, number: i64) -> Result<RawValue, E> {
        Ok(RawValue::Integer(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<RawValue, E> {
        Ok(RawValue::Integer(number.into()))
    }

    fn visit_i128<E>(self, number: i128) -> Result<RawValue, E> {
        Ok(RawValue::Integer(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<RawValue, E> {
        Ok(RawValue::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<RawValue, E> {
        Ok(RawValue::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<RawValue, E> {
        Ok(RawValue::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RawValue, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(RawValue::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawValue, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry::<String, RawValue>()? {
            entries.push(entry);
        }
        Ok(number(&entries).unwrap_or(RawValue::Map(entries)))
    }
}

/// Returns the number that a map represents in `serde_json` with the feature `arbitrary_precision`.
fn number(entries: &[(String, RawValue)]) -> Option<RawValue> {
    match entries {
        [(key, RawValue::Text(text))] if key == "$serde_json::private::Number" => {
            let integer = text.parse().map(RawValue::Integer);
            let value = integer.or_else(|_| text.parse().map(RawValue::Float));
            value.ok()
        }
        _ => None,
    }
}

/// The entries of an object, in order.
struct Entries(Vec<(String, RawValue)>);

impl From<Entries> for Vec<(String, RawValue)> {
    fn from(entries: Entries) -> Self {
        entries.0
    }
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_map(ValueVisitor)? {
            RawValue::Map(entries) => Ok(Self(entries)),
            _ => Err(de::Error::custom(
                "expected an object with a field `reason`",
            )),
        }
    }
}
