//! Parses an answer.

use std::collections::BTreeMap;

use cupel_conformance::Unsupported;
use cupel_conformance::model::{
    Event, Excluded, Failure, Field, Included, Observation, Overflow, Report, Run, Selected,
    Shortfall, Task,
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Parses the answer to a task. An invalid answer fails the case.
pub(super) fn parse(text: &str, task: &Task) -> Result<Observation, Unsupported> {
    let answer: Answer = match serde_json::from_str(text) {
        Ok(answer) => answer,
        Err(error) => return Ok(no_answer(format!("invalid answer: {error}"))),
    };
    if let Some(reason) = answer.unsupported {
        return Err(Unsupported(reason));
    }
    Ok(match (answer.error, task) {
        (Some(error), _) => Observation::Failed(error),
        (None, Task::Score { .. }) => match answer.scores {
            Some(scores) => Observation::Scores(scores.into_iter().map(|score| score.0).collect()),
            None => missing("scores"),
        },
        (None, Task::Slice { .. }) => match answer.kept {
            Some(kept) => Observation::Selected(Selected {
                kept,
                shortfalls: answer.shortfalls,
                cap_rejected: answer.cap_rejected,
            }),
            None => missing("kept"),
        },
        (None, Task::Place { .. }) => match answer.order {
            Some(order) => Observation::Placed(order),
            None => missing("order"),
        },
        (None, Task::Run { .. }) => match answer.selected {
            Some(selected) => Observation::Ran(Run {
                output: selected.into_iter().map(|entry| entry.index).collect(),
                report: report(answer.included, answer.excluded, answer.report),
                overflow: match answer.overflow {
                    AcceptedOverflow::Unobserved => None,
                    AcceptedOverflow::Observed(over) => Some(over),
                },
            }),
            None => missing("selected"),
        },
    })
}

/// Returns an observation that no case expects.
pub(super) fn no_answer(message: String) -> Observation {
    Observation::Failed(Failure {
        at_construction: false,
        code: "NoAnswer".to_owned(),
        message,
    })
}

fn missing(key: &str) -> Observation {
    no_answer(format!("the answer has no `{key}`"))
}

/// The keys of all kinds of answers.
#[derive(Deserialize)]
struct Answer {
    unsupported: Option<String>,
    error: Option<Failure>,
    scores: Option<Vec<Number>>,
    kept: Option<Vec<usize>>,
    shortfalls: Option<Vec<Shortfall>>,
    cap_rejected: Option<Vec<usize>>,
    order: Option<Vec<usize>>,
    selected: Option<Vec<Entry>>,
    included: Option<Vec<Entry>>,
    excluded: Option<Vec<Entry>>,
    report: Option<Totals>,
    #[serde(default)]
    overflow: AcceptedOverflow,
}

/// An overflow that was accepted, if the program reports it.
#[derive(Default)]
enum AcceptedOverflow {
    #[default]
    Unobserved,
    Observed(Option<Overflow>),
}

/// A key whose value is null is observed too.
impl<'de> Deserialize<'de> for AcceptedOverflow {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self::Observed)
    }
}

#[derive(Deserialize)]
struct Entry {
    index: usize,
    #[serde(default)]
    score: Option<Number>,
    #[serde(default)]
    reason: Option<Reason>,
}

impl Entry {
    fn score(&self) -> f64 {
        self.score.as_ref().map_or(f64::NAN, |score| score.0)
    }
}

/// A name, or an object with the name and its fields.
#[derive(Deserialize)]
#[serde(untagged)]
enum Reason {
    Name(String),
    Full {
        reason: String,
        #[serde(flatten)]
        fields: Map<String, Value>,
    },
}

impl Reason {
    fn into_parts(self) -> (String, BTreeMap<String, Field>) {
        match self {
            Self::Name(name) => (name, BTreeMap::new()),
            Self::Full { reason, fields } => {
                let fields = fields.into_iter();
                (
                    reason,
                    fields
                        .filter_map(|(key, value)| Some((key, field(value)?)))
                        .collect(),
                )
            }
        }
    }
}

fn field(value: Value) -> Option<Field> {
    match value {
        Value::String(text) => Some(Field::Text(text)),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Some(Field::Integer(integer)),
            None => number.as_f64().map(Field::Float),
        },
        _ => None,
    }
}

#[derive(Deserialize)]
struct Totals {
    total_candidates: usize,
    total_tokens_considered: i64,
    #[serde(default)]
    count_requirement_shortfalls: Vec<Shortfall>,
    #[serde(default)]
    events: Option<Vec<Event>>,
}

/// A number; one that is not finite is a string.
struct Number(f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = match Value::deserialize(deserializer)? {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => match text.as_str() {
                "NaN" => Some(f64::NAN),
                "inf" => Some(f64::INFINITY),
                "-inf" => Some(f64::NEG_INFINITY),
                _ => None,
            },
            _ => None,
        };
        number.map(Self).ok_or_else(|| {
            serde::de::Error::custom("expected a number, or \"NaN\", \"inf\" or \"-inf\"")
        })
    }
}

/// Returns the report if the answer has all its parts.
fn report(
    included: Option<Vec<Entry>>,
    excluded: Option<Vec<Entry>>,
    totals: Option<Totals>,
) -> Option<Report> {
    let totals = totals?;
    let included = included?.into_iter().map(|entry| Included {
        index: entry.index,
        score: entry.score(),
        reason: entry.reason.map(Reason::into_parts).unwrap_or_default().0,
    });
    let excluded = excluded?.into_iter().map(|entry| {
        let (index, score) = (entry.index, entry.score());
        let (reason, fields) = entry.reason.map(Reason::into_parts).unwrap_or_default();
        Excluded {
            index,
            score,
            reason,
            fields,
        }
    });
    Some(Report {
        included: included.collect(),
        excluded: excluded.collect(),
        total_candidates: totals.total_candidates,
        total_tokens_considered: totals.total_tokens_considered,
        shortfalls: totals.count_requirement_shortfalls,
        events: totals.events,
    })
}
