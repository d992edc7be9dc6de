//! Why an item is excluded, for five reasons, and what to change.
//!
//! Run with `cargo run --example why_excluded`.

#![allow(clippy::print_stdout, reason = "an example shows its result")]

use cupel::{
    ContextBudget, ContextItem, ContextKind, CountQuotaEntry, CountQuotaSlice, CupelError,
    DiagnosticTraceCollector, ExclusionReason, GreedySlice, Pipeline, ReflexiveScorer,
    ScarcityBehavior, TraceDetailLevel, UShapedPlacer,
};

fn main() -> Result<(), CupelError> {
    let item = |text: &str, tokens: i64, hint: f64| {
        ContextItem::builder(text, tokens).future_relevance_hint(hint)
    };
    let tool = ContextKind::tool_output;
    let items = [
        item("system prompt", 30, 0.0).pinned(true).build()?,
        item("broken counter", -4, 0.9).build()?,
        item("question", 10, 0.9).build()?,
        item("question", 10, 0.4).build()?,
        item("tool result 1", 10, 0.8).kind(tool()).build()?,
        item("tool result 2", 10, 0.7).kind(tool()).build()?,
        item("long document", 90, 0.6).build()?,
        item("longer document", 400, 0.5).build()?,
    ];
    let one_tool = CountQuotaEntry::new(tool(), 0, 1)?;
    let slicer = CountQuotaSlice::new(vec![one_tool], GreedySlice, ScarcityBehavior::Degrade)?;
    let pipeline = Pipeline::new(ReflexiveScorer, slicer, UShapedPlacer);

    let mut collector = DiagnosticTraceCollector::new(TraceDetailLevel::Item);
    let budget = ContextBudget::with_target(100, 100)?;
    let window = pipeline.run_traced(&items, &budget, &mut collector)?;
    let report = collector.into_report();

    println!(
        "{} of {} items are in the window\n",
        window.len(),
        items.len()
    );
    for excluded in &report.excluded {
        let index = items.iter().position(|item| item.is_same(&excluded.item));
        let why = pipeline.explain(&items, &budget, index.unwrap_or_default())?;
        let advice = match &excluded.reason {
            ExclusionReason::BudgetExceeded { .. } => match why.extra_tokens {
                Some(extra) => format!("raise the budget by {extra}"),
                None => "no budget selects it".to_owned(),
            },
            ExclusionReason::PinnedOverride { displaced_by } => {
                format!("shorten {displaced_by:?}, which is pinned")
            }
            ExclusionReason::Deduplicated { .. } => "nothing: its content is included".to_owned(),
            ExclusionReason::NegativeTokens { .. } => "count its tokens again".to_owned(),
            ExclusionReason::CountCapExceeded { kind, cap, .. } => {
                format!("allow more than {cap} of {kind}")
            }
            other => other.name().to_owned(),
        };
        println!("{:16} {}", excluded.item.content(), excluded.reason);
        println!("{:16} -> {advice}", "");
    }
    println!("\nevents");
    for event in &report.events {
        let message = event.message.as_deref().unwrap_or("");
        println!(
            "{:12} {:2}  {message}",
            event.stage.name(),
            event.item_count
        );
    }
    Ok(())
}
