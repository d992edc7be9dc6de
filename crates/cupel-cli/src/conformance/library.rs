//! Answers questions with the library, through policy and request documents.

use std::error::Error as _;

use cupel::config::{ConfigError, ConfigErrorKind, Document, Format};
use cupel::{ContextBudget, ContextItem, ContextKind, CupelError, Policy, Refusal, ScoredRef};
use cupel_app::Run;
use serde_json::{Value, json};

/// Returns the answer to a question; both are one line of JSON.
pub(crate) fn answer_to(question: &str) -> String {
    let answer = match serde_json::from_str::<Value>(question) {
        Ok(question) => attempt(&question).unwrap_or_else(|failed| failed.0),
        Err(error) => json!({ "unsupported": format!("invalid question: {error}") }),
    };
    answer.to_string()
}

/// An answer with an error.
struct Failed(Value);

impl Failed {
    fn new(code: &str, message: &str, at_construction: bool) -> Self {
        Self(json!({ "error": {
            "code": code,
            "message": message,
            "at_construction": at_construction,
        } }))
    }
}

/// A failed run.
impl From<CupelError> for Failed {
    fn from(error: CupelError) -> Self {
        Self::new(error.code(), &error.to_string(), false)
    }
}

/// An invalid document. One with a strategy or a field that the library lacks is no error of the
/// library: a misspelled case would pass if it expected an error.
impl From<ConfigError> for Failed {
    fn from(error: ConfigError) -> Self {
        use ConfigErrorKind::{MissingField, Syntax, UnknownKey, UnknownName};
        if matches!(
            error.kind(),
            MissingField | Syntax | UnknownKey | UnknownName
        ) {
            return Self(json!({ "unsupported": error.to_string() }));
        }
        let message = match error.source() {
            Some(source) => source.to_string(),
            None => error.to_string(),
        };
        Self::new(error.code().unwrap_or("Document"), &message, true)
    }
}

fn attempt(question: &Value) -> Result<Value, Failed> {
    Ok(match question["task"].as_str() {
        Some("score") => {
            let items = read_items(&question["items"])?;
            let policy = read_policy(&json!({ "scorer": question["scorer"] }))?;
            let scores = policy.scorer().score_all(&items)?;
            json!({ "scores": scores.into_iter().map(number).collect::<Value>() })
        }
        Some("slice") => {
            let (items, scores) = read_scored(&question["items"])?;
            let budget = read_budget(&question["budget"])?;
            let policy = read_policy(&json!({
                "scorer": { "type": "reflexive" },
                "slicer": question["slicer"],
            }))?;
            let selection = policy.slicer().select(&ranked(&items, &scores), &budget)?;
            let refusals = selection.refusals().iter();
            let capped = refusals.filter(|(_, why)| matches!(why, Refusal::CountCap { .. }));
            json!({
                "kept": selection.kept(),
                "shortfalls": selection.shortfalls(),
                "cap_rejected": capped.map(|(rank, _)| *rank).collect::<Vec<_>>(),
            })
        }
        Some("place") => {
            let (items, scores) = read_scored(&question["items"])?;
            let policy = read_policy(&json!({
                "scorer": { "type": "reflexive" },
                "placer": question["placer"],
            }))?;
            json!({ "order": policy.placer().arrange(&ranked(&items, &scores))? })
        }
        Some("run") => {
            read_budget(&question["budget"])?;
            let mut document = question.clone();
            if let Some(document) = document.as_object_mut() {
                document.remove("task");
                document.remove("version");
            }
            let document = document.to_string();
            let request = Document::parse(&document, Format::Json)?.request()?;
            let (Some(policy), Some(budget)) = (request.policy, request.budget) else {
                return Ok(json!({ "unsupported": "a run needs a policy and a budget" }));
            };
            json!(Run::of(&policy.build()?, &request.items, &budget)?.answer())
        }
        _ => json!({ "unsupported": "unknown task" }),
    })
}

/// Builds the budget with the constructor: it checks its arguments in the order of the specification.
fn read_budget(budget: &Value) -> Result<ContextBudget, Failed> {
    let integer = |key: &str| budget[key].as_i64().unwrap_or(0);
    let slots = budget["reserved_slots"].as_object().into_iter().flatten();
    let slots = slots
        .map(|(kind, tokens)| Ok((ContextKind::new(kind)?, tokens.as_i64().unwrap_or(0))))
        .collect::<Result<_, CupelError>>();
    let margin = &budget["estimation_safety_margin_percent"];
    let built = slots.and_then(|slots| {
        ContextBudget::new(
            integer("max_tokens"),
            integer("target_tokens"),
            integer("output_reserve"),
            slots,
            read_number(margin),
        )
    });
    built.map_err(|error| Failed::new(error.code(), &error.to_string(), true))
}

fn read_policy(document: &Value) -> Result<Policy, ConfigError> {
    Document::parse(&document.to_string(), Format::Json)?.policy()
}

fn read_items(items: &Value) -> Result<Vec<ContextItem>, ConfigError> {
    let document = json!({ "items": items }).to_string();
    Ok(Document::parse(&document, Format::Json)?.request()?.items)
}

fn read_scored(scored: &Value) -> Result<(Vec<ContextItem>, Vec<f64>), ConfigError> {
    let scored = scored.as_array().cloned().unwrap_or_default();
    let items = scored.iter().map(|scored| scored["item"].clone());
    let items = read_items(&items.collect())?;
    let scores = scored.iter().map(|scored| read_number(&scored["score"]));
    Ok((items, scores.collect()))
}

fn ranked<'a>(items: &'a [ContextItem], scores: &[f64]) -> Vec<ScoredRef<'a>> {
    let ranked = items.iter().zip(scores).enumerate();
    ranked
        .map(|(index, (item, score))| ScoredRef::new(item, *score, index))
        .collect()
}

fn read_number(number: &Value) -> f64 {
    match number {
        Value::String(text) => text.parse().unwrap_or(f64::NAN),
        number => number.as_f64().unwrap_or(f64::NAN),
    }
}

fn number(number: f64) -> Value {
    if number.is_finite() {
        number.into()
    } else {
        number.to_string().into()
    }
}
