//! Reads strategies from policy documents, with the defaults that `cupel policy schema` states.
//!
//! It is naive on purpose: the library's reader refuses unknown keys and wrong types, so a
//! disagreement about a name or a default is a difference in an answer.

use chrono::TimeDelta;
use cupel_conformance::model::Document;

/// The `type` of a strategy.
pub(super) fn name_of(strategy: &Document) -> &str {
    text(strategy, "type")
}

pub(super) fn text<'d>(document: &'d Document, key: &str) -> &'d str {
    document[key].as_str().unwrap_or_default()
}

/// A number; one that JSON cannot express is a string.
pub(super) fn number(document: &Document, key: &str, default: f64) -> f64 {
    match &document[key] {
        Document::Null => default,
        Document::String(text) => text.parse().expect("NaN or an infinity"),
        number => number.as_f64().expect("a number"),
    }
}

pub(super) fn integer(document: &Document, key: &str, default: i64) -> i64 {
    document[key].as_i64().unwrap_or(default)
}

pub(super) fn flag(document: &Document, key: &str, default: bool) -> bool {
    document[key].as_bool().unwrap_or(default)
}

/// The elements of an array; none if it is left out.
pub(super) fn list<'d>(document: &'d Document, key: &str) -> &'d [Document] {
    document[key].as_array().map_or(&[], Vec::as_slice)
}

/// The members of an object of numbers, in the order of their keys.
pub(super) fn weights(document: &Document, key: &str) -> Vec<(String, f64)> {
    let members = document[key].as_object().into_iter().flatten();
    let weight = |(name, _): (&String, _)| (name.clone(), number(&document[key], name, 0.0));
    let mut weights: Vec<_> = members.map(weight).collect();
    weights.sort_by(|a, b| a.0.cmp(&b.0));
    weights
}

/// The scorers of a composite or a fusion with their weights.
pub(super) fn entries(scorer: &Document) -> Vec<(&Document, f64)> {
    let entries = list(scorer, "entries").iter();
    entries
        .map(|entry| (&entry["scorer"], number(entry, "weight", 1.0)))
        .collect()
}

/// A duration, which generators and vectors write as a number of seconds: to the nearest nanosecond.
#[expect(
    clippy::cast_possible_truncation,
    reason = "durations of vectors are in range"
)]
pub(super) fn duration(document: &Document, key: &str) -> TimeDelta {
    let seconds = number(document, key, 0.0);
    let whole = TimeDelta::seconds(seconds.trunc() as i64);
    whole + TimeDelta::nanoseconds((seconds.fract() * 1e9).round() as i64)
}

/// The slicer inside another; `greedy` if it is left out.
pub(super) fn inner_slicer(slicer: &Document) -> Document {
    match &slicer["inner"] {
        Document::Null => serde_json::json!({ "type": "greedy" }),
        inner => inner.clone(),
    }
}

/// `QuotaEntry`.
pub(super) struct Quota {
    pub(super) kind: String,
    pub(super) require: f64,
    pub(super) cap: f64,
}

/// `CountQuotaEntry`; the counts are signed, so that a document can have an invalid one.
pub(super) struct CountEntry {
    pub(super) kind: String,
    pub(super) require_count: i64,
    pub(super) cap_count: i64,
}

pub(super) fn quotas(slicer: &Document) -> Vec<Quota> {
    let quota = |quota: &Document| Quota {
        kind: text(quota, "kind").to_owned(),
        require: number(quota, "require", 0.0),
        cap: number(quota, "cap", 100.0),
    };
    list(slicer, "quotas").iter().map(quota).collect()
}

pub(super) fn counts(slicer: &Document) -> Vec<CountEntry> {
    let entry = |entry: &Document| CountEntry {
        kind: text(entry, "kind").to_owned(),
        require_count: integer(entry, "require_count", 0),
        cap_count: integer(entry, "cap_count", 0),
    };
    list(slicer, "entries").iter().map(entry).collect()
}

/// Whether a count slicer fails if a kind has too few candidates.
pub(super) fn throws(slicer: &Document) -> bool {
    text(slicer, "scarcity") == "throw"
}
