//! The integration tests in one binary.

mod bills;
mod criteria;
mod custom;
mod datasets;
mod replays;
mod searches;
mod stopping;

use cupel::{ChronologicalPlacer, ContextItem, Policy, RankSlice, Scorer};
use cupel_chat::Encoding;
use cupel_eval::{Dataset, EvalPolicy};

/// A scorer that no document describes: later items score higher, as with `RecencyScorer` on items without times.
struct Later;

impl Scorer for Later {
    fn score(&self, item: &ContextItem, all: &[ContextItem]) -> f64 {
        let position = all.iter().position(|other| std::ptr::eq(other, item));
        position.map_or(0.0, |position| position as f64)
    }
}

fn later() -> EvalPolicy {
    let policy = Policy::new(Later, RankSlice, ChronologicalPlacer);
    EvalPolicy::new("later", policy)
}

fn dataset(name: &str, text: &str) -> Dataset {
    Dataset::parse(name, text, &Encoding::O200k).expect("a data set")
}

/// A transcript of an old and a new item of 5 tokens; the evidence is one of them.
fn line(id: &str, evidence: usize) -> String {
    format!(
        r#"{{"items": [{{"content": "old {id}", "tokens": 5, "future_relevance_hint": 1.0}}, {{"content": "new {id}", "tokens": 5}}], "questions": [{{"query": "q", "evidence": [{evidence}]}}]}}"#
    ) + "\n"
}

fn lines(transcripts: usize) -> String {
    (0..transcripts)
        .map(|id| line(&id.to_string(), id % 2))
        .collect()
}
