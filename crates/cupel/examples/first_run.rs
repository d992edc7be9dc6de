//! A support session that exceeds its budget: the window, and the reasons for the excluded items.
//!
//! Run with `cargo run --release --example first_run`.

#![allow(clippy::print_stdout, reason = "an example shows its result")]

use chrono::{DateTime, Duration, Utc};
use cupel::{
    ChronologicalPlacer, CompositeScorer, ContextBudget, ContextItem, ContextKind, CupelError,
    KindScorer, KnapsackSlice, Pipeline, PriorityScorer, RecencyScorer, TagComparison, TagScorer,
};

fn main() -> Result<(), CupelError> {
    let items = session()?;

    let scorer = CompositeScorer::builder()
        .add(RecencyScorer, 3.0)
        .add(PriorityScorer, 2.0)
        .add(KindScorer::with_default_weights(), 1.0)
        .add(
            TagScorer::from_weights([("refund".into(), 1.0)], TagComparison::IgnoreAsciiCase)?,
            2.0,
        )
        .build()?;
    let pipeline = Pipeline::builder()
        .scorer(scorer)
        .slicer(KnapsackSlice::new(1)?)
        .placer(ChronologicalPlacer)
        .build()?;
    let budget = ContextBudget::builder(600)
        .output_reserve(120)
        .target_tokens(420)
        .build()?;

    let report = pipeline.dry_run(&items, &budget)?;
    let used: i64 = report
        .included
        .iter()
        .map(|included| included.item.tokens())
        .sum();
    println!(
        "{} candidates with {} tokens; budget {}, used {used}\n",
        report.total_candidates,
        report.total_tokens_considered,
        budget.target_tokens()
    );
    println!("IN    tokens  score  item");
    for included in &report.included {
        println!(
            "      {:6}  {:.3}  {} [{}]",
            included.item.tokens(),
            included.score,
            shortened(included.item.content()),
            included.reason.name()
        );
    }
    println!("\nOUT   tokens  score  item");
    for excluded in &report.excluded {
        println!(
            "      {:6}  {:.3}  {}\n                     {}",
            excluded.item.tokens(),
            excluded.score,
            shortened(excluded.item.content()),
            excluded.reason
        );
    }
    Ok(())
}

/// Returns the messages, tool output and documents of a session. Times are minutes since its start.
fn session() -> Result<Vec<ContextItem>, CupelError> {
    let start: DateTime<Utc> = DateTime::from_timestamp(1_767_258_000, 0).unwrap_or_default();
    let item = |minute: i64, tokens: i64, kind: ContextKind, text: &str| {
        ContextItem::builder(text, tokens)
            .kind(kind)
            .timestamp(start + Duration::minutes(minute))
    };
    let message = ContextKind::message;
    let tool = ContextKind::tool_output;
    [
        item(0, 38, ContextKind::system_prompt(), "You are the support agent of a small airline. Refunds above 500 need a supervisor.")
            .pinned(true),
        item(0, 24, ContextKind::memory(), "The customer prefers an answer by mail and has gold status.").priority(5),
        item(1, 21, message(), "Hello, my flight last week was cancelled and nobody told me."),
        item(2, 16, message(), "I am sorry to hear that. May I have your booking code?"),
        item(3, 6, message(), "It is QX7P2M.").priority(8),
        item(4, 96, tool(), "booking QX7P2M: 2 passengers, Oslo to Porto, cancelled by the airline, fare 412.00 each, not rebooked")
            .tag("refund")
            .priority(9),
        item(4, 180, tool(), "flight history of the last 24 months: 31 segments, 2 delays, full list of fares, seats and meals ..."),
        item(5, 44, message(), "Both tickets were cancelled by us. You may have a refund or a new flight; which do you prefer?"),
        item(6, 12, message(), "A refund, please, for both of us.").tag("Refund").priority(9),
        item(7, 210, ContextKind::document(), "Refund rules: cancelled by the airline means the full fare within 7 days, to the card used, vouchers on request ...")
            .tag("refund"),
        item(8, 96, tool(), "booking QX7P2M: 2 passengers, Oslo to Porto, cancelled by the airline, fare 412.00 each, not rebooked")
            .tag("refund")
            .priority(9),
        item(9, 18, message(), "And how long will that take? I leave on Friday."),
    ]
    .into_iter()
    .map(cupel::ContextItemBuilder::build)
    .collect()
}

fn shortened(text: &str) -> String {
    const WIDTH: usize = 64;
    match text.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
