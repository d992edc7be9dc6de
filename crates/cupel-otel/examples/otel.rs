//! Prints the spans of one run.
//!
//! Run with `cargo run -p cupel-otel --example otel`.

#![allow(clippy::print_stdout, reason = "an example prints its result")]

use cupel::{
    ContextBudget, ContextItem, ContextKind, GreedySlice, Pipeline, ReflexiveScorer, UShapedPlacer,
};
use cupel_otel::{CupelOtelTraceCollector, CupelVerbosity};
use opentelemetry::KeyValue;
use opentelemetry::trace::{Tracer, TracerProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();

    let item = |text: &str, tokens, kind, hint| {
        let builder = ContextItem::builder(text, tokens).kind(kind);
        builder.future_relevance_hint(hint).build()
    };
    let rules = ContextItem::builder("You are a helpful assistant.", 8);
    let items = [
        rules
            .kind(ContextKind::system_prompt())
            .pinned(true)
            .build()?,
        item("Where are my keys?", 5, ContextKind::message(), 0.9)?,
        item("Keys: on the fridge.", 6, ContextKind::memory(), 0.8)?,
        item("Keys: on the fridge.", 6, ContextKind::document(), 0.4)?,
        item("A story about a fridge", 60, ContextKind::document(), 0.3)?,
    ];
    let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, UShapedPlacer);
    let mut collector = CupelOtelTraceCollector::with_provider(CupelVerbosity::Full, &provider);
    let budget = ContextBudget::with_target(40, 30)?;
    // The run's span is a child of the application's span.
    provider.tracer("application").in_span("answer", |_| {
        pipeline.run_traced(&items, &budget, &mut collector)
    })?;

    let mut spans = exporter.get_finished_spans()?;
    spans.sort_by_key(|span| span.start_time);
    for span in &spans {
        let is_root = span.name == "cupel.pipeline";
        let indent = match span.instrumentation_scope.name() {
            "cupel" if is_root => "  ",
            "cupel" => "    ",
            _ => "",
        };
        let length = span.end_time.duration_since(span.start_time)?;
        println!("{indent}{}  {length:?}", span.name);
        for attribute in &span.attributes {
            println!("{indent}  | {}", pair(attribute));
        }
        for event in span.events.iter() {
            let attributes: Vec<_> = event.attributes.iter().map(pair).collect();
            println!("{indent}  * {}: {}", event.name, attributes.join(", "));
        }
    }
    Ok(())
}

fn pair(attribute: &KeyValue) -> String {
    format!("{} = {}", attribute.key, attribute.value)
}
