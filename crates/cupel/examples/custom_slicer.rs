//! A custom slicer with its own exclusion reasons: at most one item per source.
//!
//! Run with `cargo run --example custom_slicer`.

#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::collections::HashSet;

use cupel::slicer::slice_by_selection;
use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, ContextSource, CupelError, ExclusionReason,
    Pipeline, ReflexiveScorer, Refusal, ScoredItem, ScoredRef, Selection, Slicer,
};

/// Selects the best item per source, in order of score, if it fits.
struct OnePerSource;

impl Slicer for OnePerSource {
    /// The required method. It calls `select`.
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        slice_by_selection(self, sorted, budget)
    }

    /// The pipeline calls this method. It selects by rank and gives reasons for exclusions.
    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        let mut selection = Selection::default();
        let mut sources = HashSet::new();
        let mut left = budget.target_tokens();
        if left <= 0 {
            return Ok(selection);
        }
        for (rank, scored) in ranked.iter().enumerate() {
            if sources.contains(scored.item.source()) {
                let filter_name = format!("one item from {}", scored.item.source());
                let reason = ExclusionReason::Filtered { filter_name };
                selection.refuse(rank, Refusal::Because(reason));
            } else if scored.item.tokens() <= left {
                left -= scored.item.tokens();
                sources.insert(scored.item.source());
                selection.push(rank);
            }
        }
        Ok(selection)
    }
}

fn main() -> Result<(), CupelError> {
    let item = |text: &str, source: &str, hint: f64| {
        ContextItem::builder(text, 10)
            .source(ContextSource::new(source)?)
            .future_relevance_hint(hint)
            .build()
    };
    let items = [
        item("wiki: the answer", "wiki", 0.9)?,
        item("wiki: the same, longer", "wiki", 0.8)?,
        item("tickets: a similar case", "tickets", 0.7)?,
        item("mail: an old thread", "mail", 0.1)?,
    ];
    let pipeline = Pipeline::new(ReflexiveScorer, OnePerSource, ChronologicalPlacer);
    let report = pipeline.dry_run(&items, &ContextBudget::with_target(20, 20)?)?;
    for included in &report.included {
        println!("in   {}", included.item.content());
    }
    for excluded in &report.excluded {
        println!("out  {}: {}", excluded.item.content(), excluded.reason);
    }
    Ok(())
}
