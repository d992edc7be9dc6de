//! A program for the published crate cupel 1.2, compiled and run unchanged.
//!
//! Each module is one module of that interface: it names every public item, assigns every function
//! to a pointer of its documented type, and checks the documented values and texts. Where a
//! ruling settles a point differently, the expectation is the ruling's and the comment names it.
//! `defaults` alone goes further: it names what a ruling asks for beyond that interface.

mod analytics;
mod defaults;
mod diagnostics;
mod error;
mod model;
mod names;
mod pipeline;
mod placers;
mod programs;
mod scorers;
mod slicers;
mod traits;

use std::collections::HashMap;
use std::fmt::Debug;

use cupel::{ContextBudget, ContextItem, ContextItemBuilder, ContextKind, CupelError, ScoredItem};

/// An item with every optional field at its default.
fn item(content: &str, tokens: i64) -> ContextItem {
    ContextItemBuilder::new(content, tokens).build().unwrap()
}

/// An item that `ReflexiveScorer` gives this score.
fn hinted(content: &str, tokens: i64, hint: f64) -> ContextItem {
    ContextItemBuilder::new(content, tokens)
        .future_relevance_hint(hint)
        .build()
        .unwrap()
}

/// An item of this kind that `ReflexiveScorer` gives this score.
fn of_kind(name: &str, content: &str, tokens: i64, hint: f64) -> ContextItem {
    ContextItemBuilder::new(content, tokens)
        .kind(kind(name))
        .future_relevance_hint(hint)
        .build()
        .unwrap()
}

/// An item that bypasses the competition.
fn pinned(content: &str, tokens: i64) -> ContextItem {
    ContextItemBuilder::new(content, tokens)
        .pinned(true)
        .build()
        .unwrap()
}

/// An item with the score a slicer or placer sees.
fn scored(content: &str, tokens: i64, score: f64) -> ScoredItem {
    ScoredItem {
        item: item(content, tokens),
        score,
    }
}

fn kind(name: &str) -> ContextKind {
    ContextKind::new(name).unwrap()
}

/// A budget with these limits and nothing reserved.
fn budget(max_tokens: i64, target_tokens: i64) -> ContextBudget {
    ContextBudget::new(max_tokens, target_tokens, 0, HashMap::new(), 0.0).unwrap()
}

fn contents(items: &[ContextItem]) -> Vec<&str> {
    items.iter().map(ContextItem::content).collect()
}

/// The result is an error with exactly this text.
#[track_caller]
fn check_text<T: Debug>(result: Result<T, CupelError>, text: &str) {
    assert_eq!(result.unwrap_err().to_string(), text);
}

/// Two numbers agree within the tolerance of the specification.
#[track_caller]
fn check_close(actual: f64, expected: f64) {
    assert!(
        (actual - expected).abs() < 1e-9,
        "{actual} is not {expected}"
    );
}
