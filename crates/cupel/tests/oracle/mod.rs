//! The oracle: the specification's pseudocode, translated line by line.
//!
//! It is naive and shares no code with the library: a difference between the two
//! is a bug in one of them. A line that follows a ruling of `rulings.md` names it.
//!
//! Items are identified by their position in the task, never by their content.

mod construction;
mod document;
mod numbers;
mod pipeline;
mod placing;
pub(crate) mod relevance;
mod scoring;
mod slicing;

use cupel_conformance::model::{Failure, Item, Observation, ScoredItem, Selected, Task};

use slicing::Limits;

/// Performs the task by the specification's pseudocode.
pub(crate) fn observe(task: &Task) -> Observation {
    perform(task).unwrap_or_else(Observation::Failed)
}

fn perform(task: &Task) -> Result<Observation, Failure> {
    construction::validate(task)?;
    match task {
        Task::Score { scorer, items } => {
            let everything: Vec<Candidate> = candidates(items);
            let scored = pipeline::score(&everything, scorer);
            Ok(Observation::Scores(
                scored.iter().map(|entry| entry.score).collect(),
            ))
        }
        Task::Slice {
            slicer,
            budget,
            items,
        } => {
            let limits = Limits {
                max_tokens: budget.max_tokens,
                target_tokens: budget.target_tokens,
            };
            let sliced = slicing::slice(slicer, &scored_entries(items), limits)?;
            Ok(Observation::Selected(Selected {
                kept: sliced.selected.iter().map(|entry| entry.index).collect(),
                shortfalls: Some(sliced.shortfalls()),
                cap_rejected: Some(sliced.rejections.iter().map(|r| r.index).collect()),
            }))
        }
        Task::Place { placer, items } => {
            let placed = placing::place(placer, &scored_entries(items));
            Ok(Observation::Placed(
                placed.iter().map(|entry| entry.index).collect(),
            ))
        }
        Task::Run {
            policy,
            budget,
            items,
        } => pipeline::run(policy, budget, &candidates(items)).map(Observation::Ran),
    }
}

/// `ContextItem`, with its position in the task as identity (R006).
#[derive(Debug, Clone, Copy)]
struct Candidate<'a> {
    index: usize,
    item: &'a Item,
}

/// `ScoredItem`, with the identity of its item.
#[derive(Debug, Clone, Copy)]
struct Scored<'a> {
    index: usize,
    item: &'a Item,
    score: f64,
}

fn candidates(items: &[Item]) -> Vec<Candidate<'_>> {
    let mut list = Vec::new();
    for (index, item) in items.iter().enumerate() {
        list.push(Candidate { index, item });
    }
    list
}

fn scored_entries(items: &[ScoredItem]) -> Vec<Scored<'_>> {
    let mut list = Vec::new();
    for (index, ScoredItem { item, score }) in items.iter().enumerate() {
        list.push(Scored {
            index,
            item,
            score: *score,
        });
    }
    list
}

/// The kind of an item; "Message" when none was given (ITEM-5).
fn kind_of(item: &Item) -> &str {
    item.kind.as_deref().unwrap_or("Message")
}

/// Equality of `ContextKind`: ASCII letters match in either case (ENUM-3).
fn same_kind(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// A run that ends in an error.
fn failed(code: &str, message: String) -> Failure {
    Failure {
        at_construction: false,
        code: code.to_owned(),
        message,
    }
}
