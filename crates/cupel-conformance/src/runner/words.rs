//! Formats values for mismatches: items by label, never by position.

use crate::{
    model::{Field, Observation, Task},
    vector::{Expected, ExpectedOverflow},
};

/// Returns the label of the item at `index`.
pub(super) fn label(task: &Task, index: usize) -> &str {
    if index < task.item_count() {
        task.label(index)
    } else {
        "(no such item)"
    }
}

/// Returns the labels of the items at `indices`.
pub(super) fn labels(task: &Task, indices: impl IntoIterator<Item = usize>) -> Vec<&str> {
    indices
        .into_iter()
        .map(|index| label(task, index))
        .collect()
}

/// Formats a field of a reason.
pub(super) fn plain(field: &Field) -> String {
    match field {
        Field::Integer(number) => number.to_string(),
        Field::Float(number) => format!("{number:?}"),
        Field::Text(text) => format!("{text:?}"),
    }
}

/// Returns the reason at the start of an item event's message.
pub(super) fn reason(message: &str) -> String {
    match message.split_once(':') {
        Some((reason, _)) => reason.to_owned(),
        None => format!("{message} (no colon)"),
    }
}

/// Formats an overflow or its absence.
pub(super) fn overflow(overflow: Option<&ExpectedOverflow>) -> String {
    match overflow {
        Some(overflow) => format!(
            "{} tokens over budget with {:?}",
            overflow.tokens_over_budget, overflow.labels
        ),
        None => "none".to_owned(),
    }
}

/// Names the kind of answer a case expects.
pub(super) fn wanted(expected: &Expected) -> String {
    match expected {
        Expected::Error(error) => {
            let code = error.code.as_deref().unwrap_or("an error");
            let moment = if error.at_construction {
                " at construction"
            } else {
                ""
            };
            format!("{code}{moment}")
        }
        Expected::Scores(_) => "scores".to_owned(),
        Expected::Selected(_) => "a selection".to_owned(),
        Expected::Placed(_) => "an order".to_owned(),
        Expected::Ran(_) => "a run".to_owned(),
    }
}

/// Formats an answer.
pub(super) fn describe(task: &Task, observation: &Observation) -> String {
    match observation {
        Observation::Scores(scores) => format!("scores {scores:?}"),
        Observation::Selected(selected) => format!(
            "a selection {:?}",
            labels(task, selected.kept.iter().copied())
        ),
        Observation::Placed(order) => {
            format!("an order {:?}", labels(task, order.iter().copied()))
        }
        Observation::Ran(run) => {
            format!("a run {:?}", labels(task, run.output.iter().copied()))
        }
        Observation::Failed(failure) => format!("{}: {}", failure.code, failure.message),
    }
}
