//! All integration tests of the crate, as one binary.

mod dependencies;
mod failures;
mod providers;
mod spans;
mod times;
mod wire;

use std::fmt::Write as _;

use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, ContextItemBuilder, ContextKind, CupelError,
    GreedySlice, OverflowStrategy, Pipeline, PipelineBuilder, ReflexiveScorer, ScoredItem,
    ScoredRef, Selection, Slicer,
};
use cupel_otel::{CupelOtelTraceCollector, CupelVerbosity};
use opentelemetry::{KeyValue, Value, trace::SpanId};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};

const STAGES: [&str; 5] = ["classify", "score", "deduplicate", "slice", "place"];

const TIERS: [CupelVerbosity; 3] = [
    CupelVerbosity::StageOnly,
    CupelVerbosity::StageAndExclusions,
    CupelVerbosity::Full,
];

/// Returns a provider and the exporter that holds its finished spans.
fn in_memory() -> (SdkTracerProvider, InMemorySpanExporter) {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    (provider, exporter)
}

/// Returns the window and the spans of one run, in the order in which they ended.
fn traced(
    verbosity: CupelVerbosity,
    pipeline: &Pipeline,
    items: &[ContextItem],
    budget: &ContextBudget,
) -> (Result<Vec<ContextItem>, CupelError>, Vec<SpanData>) {
    let (provider, exporter) = in_memory();
    let mut collector = CupelOtelTraceCollector::with_provider(verbosity, &provider);
    let window = pipeline.run_traced(items, budget, &mut collector);
    (window, finished(&exporter))
}

fn finished(exporter: &InMemorySpanExporter) -> Vec<SpanData> {
    exporter.get_finished_spans().expect("no thread panicked")
}

fn names(spans: &[SpanData]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_ref()).collect()
}

fn span<'a>(spans: &'a [SpanData], name: &str) -> &'a SpanData {
    let mut named = spans.iter().filter(|span| span.name == name);
    let span = named.next().unwrap_or_else(|| panic!("no span {name}"));
    assert!(named.next().is_none(), "several spans {name}");
    span
}

fn root(spans: &[SpanData]) -> &SpanData {
    span(spans, "cupel.pipeline")
}

fn stage<'a>(spans: &'a [SpanData], name: &str) -> &'a SpanData {
    span(spans, &format!("cupel.stage.{name}"))
}

fn attribute<'a>(attributes: &'a [KeyValue], name: &str) -> Option<&'a Value> {
    let mut named = attributes.iter().filter(|kv| kv.key.as_str() == name);
    let value = named.next().map(|kv| &kv.value);
    assert!(named.next().is_none(), "several attributes {name}");
    value
}

/// Writes names, attributes and events of spans as text. Strings are quoted, doubles have a point.
fn text_of(spans: &[SpanData]) -> String {
    let mut text = String::new();
    for span in spans {
        let indent = if span.parent_span_id == SpanId::INVALID {
            ""
        } else {
            "  "
        };
        let _ = writeln!(text, "{indent}{}", span.name);
        for attribute in &span.attributes {
            let _ = writeln!(text, "{indent}  {}", pair(attribute));
        }
        for event in span.events.iter() {
            let attributes: Vec<_> = event.attributes.iter().map(pair).collect();
            let _ = writeln!(text, "{indent}  ! {}: {}", event.name, attributes.join(" "));
        }
    }
    text
}

fn pair(attribute: &KeyValue) -> String {
    let value = match &attribute.value {
        Value::String(value) => format!("{:?}", value.as_str()),
        Value::F64(value) => format!("{value:?}"),
        Value::I64(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        other => panic!("unexpected type of attribute: {other:?}"),
    };
    format!("{}={value}", attribute.key)
}

/// Returns an item with score `hint`.
fn hinted(content: &str, tokens: i64, hint: f64) -> ContextItem {
    build(ContextItem::builder(content, tokens).future_relevance_hint(hint))
}

fn pinned(content: &str, tokens: i64) -> ContextItem {
    let builder = ContextItem::builder(content, tokens).pinned(true);
    build(builder.kind(ContextKind::system_prompt()))
}

fn build(builder: ContextItemBuilder) -> ContextItem {
    builder.build().expect("the content is not empty")
}

/// Returns a budget with equal limits.
fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::builder(tokens)
        .build()
        .expect("not negative")
}

/// Scores are hints; items without timestamps are placed by rank.
fn pipeline() -> Pipeline {
    Pipeline::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer)
}

fn builder(slicer: impl Slicer + 'static) -> PipelineBuilder {
    Pipeline::builder()
        .scorer(ReflexiveScorer)
        .slicer(slicer)
        .placer(ChronologicalPlacer)
}

fn with_slicer(slicer: impl Slicer + 'static, overflow: OverflowStrategy) -> Pipeline {
    let builder = builder(slicer).overflow_strategy(overflow);
    builder.build().expect("all strategies are set")
}

/// With a budget of 40, Classify, Deduplicate and Slice exclude one item each, and three are included.
fn candidates() -> Vec<ContextItem> {
    vec![
        pinned("rules", 10),
        hinted("broken", -5, 0.7),
        hinted("twin", 20, 0.5),
        hinted("twin", 20, 0.25),
        build(
            ContextItem::builder("big", 60)
                .kind(ContextKind::document())
                .future_relevance_hint(0.9),
        ),
        hinted("small", 5, 0.75),
    ]
}

/// A slicer that calls a function.
struct SliceBy<F>(F);

impl<F> Slicer for SliceBy<F>
where
    F: Fn(&[ScoredRef<'_>]) -> Result<Selection, CupelError> + Send + Sync,
{
    fn slice(
        &self,
        _sorted: &[ScoredItem],
        _budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        unreachable!("runs call `select`")
    }

    fn select(
        &self,
        ranked: &[ScoredRef<'_>],
        _budget: &ContextBudget,
    ) -> Result<Selection, CupelError> {
        (self.0)(ranked)
    }
}

fn slice_by(
    select: impl Fn(&[ScoredRef<'_>]) -> Result<Selection, CupelError> + Send + Sync + 'static,
) -> impl Slicer + 'static {
    SliceBy(select)
}

/// Returns a slicer that ignores the budget and selects everything.
fn everything() -> impl Slicer + 'static {
    slice_by(|ranked| Ok(Selection::keep((0..ranked.len()).collect())))
}
