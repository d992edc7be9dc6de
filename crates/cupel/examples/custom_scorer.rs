//! A custom scorer: the share of a question's words that an item contains.
//!
//! Run with `cargo run --example custom_scorer`.

#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::collections::HashSet;

use cupel::{
    ContextBudget, ContextItem, CupelError, GreedySlice, Pipeline, ScaledScorer, Scorer,
    UShapedPlacer,
};

/// The share of the question's words that an item contains.
struct WordOverlap {
    question: HashSet<String>,
}

impl WordOverlap {
    fn new(question: &str) -> Self {
        Self {
            question: words(question).collect(),
        }
    }
}

/// Only `score` is required. The pipeline calls `score_all`, which calls it per item by default. A scorer
/// that compares items with each other implements `score_all` as well.
impl Scorer for WordOverlap {
    fn score(&self, item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
        let own: HashSet<String> = words(item.content()).collect();
        own.intersection(&self.question).count() as f64 / self.question.len() as f64
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.len() > 3)
        .map(str::to_lowercase)
}

fn main() -> Result<(), CupelError> {
    let items = [
        ContextItem::builder("The reactor is cooled by heavy water.", 9).build()?,
        ContextItem::builder("Lunch is served between noon and two.", 9).build()?,
        ContextItem::builder("Heavy water is stored in the eastern tank.", 10).build()?,
    ];
    // Custom scorers can be wrapped like built-in ones.
    let scorer = ScaledScorer::new(WordOverlap::new("Where is the heavy water stored?"));
    let pipeline = Pipeline::new(scorer, GreedySlice, UShapedPlacer);

    let report = pipeline.dry_run(&items, &ContextBudget::with_target(20, 20)?)?;
    for included in &report.included {
        println!("in   {:.2}  {}", included.score, included.item.content());
    }
    for excluded in &report.excluded {
        println!("out  {:.2}  {}", excluded.score, excluded.item.content());
        println!("           {}", excluded.reason);
    }
    Ok(())
}
