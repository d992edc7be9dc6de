//! Start and end times of spans.

use std::time::{Duration, SystemTime};

use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, GreedySlice, Pipeline, PipelineStage, Scorer,
    SelectionReport, StageTraceSnapshot, TraceCollector, TraceEvent,
};
use cupel_otel::{CupelOtelTraceCollector, CupelVerbosity};
use opentelemetry_sdk::trace::SpanData;

use crate::{
    STAGES, budget, candidates, finished, in_memory, names, pipeline, root, stage, traced,
};

const PAUSE: Duration = Duration::from_millis(3);

/// Sleeps for one item.
struct Slow;

impl Scorer for Slow {
    fn score(&self, item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
        if item.content() == "big" {
            std::thread::sleep(PAUSE);
        }
        0.5
    }
}

/// Keeps the snapshots of a run. Sleeps before the first stage and after the last.
#[derive(Default)]
struct Snapshots(Vec<StageTraceSnapshot>);

impl TraceCollector for Snapshots {
    fn is_enabled(&self) -> bool {
        true
    }

    fn record_stage_event(&mut self, _event: TraceEvent) {}

    fn record_item_event(&mut self, _event: TraceEvent) {}

    fn set_candidates(&mut self, _total: usize, _total_tokens: i64) {
        std::thread::sleep(PAUSE);
    }

    fn on_pipeline_completed(
        &mut self,
        _report: &SelectionReport,
        _budget: &ContextBudget,
        stage_snapshots: &[StageTraceSnapshot],
    ) {
        std::thread::sleep(PAUSE);
        self.0 = stage_snapshots.to_vec();
    }
}

fn length(span: &SpanData) -> Duration {
    let length = span.end_time.duration_since(span.start_time);
    length.expect("a span does not end before it starts")
}

#[expect(clippy::disallowed_methods, reason = "spans have wall-clock times")]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}

/// Checks that the root span contains the stages and that they do not overlap.
fn check_nesting(spans: &[SpanData]) {
    let root = root(spans);
    let mut after = root.start_time;
    for span in spans.iter().filter(|span| span.name != root.name) {
        assert!(after <= span.start_time, "{} starts too early", span.name);
        after = span.end_time;
        length(span);
    }
    assert!(after <= root.end_time, "the root ends too early");
}

// proves: OTEL-8, R112
#[test]
fn a_stage_span_has_the_duration_of_the_stage() {
    let (provider, exporter) = in_memory();
    let collector = CupelOtelTraceCollector::with_provider(CupelVerbosity::StageOnly, &provider);
    let mut both = (Snapshots::default(), collector);
    let before = wall_clock();
    Pipeline::new(Slow, GreedySlice, ChronologicalPlacer)
        .run_traced(&candidates(), &budget(40), &mut both)
        .unwrap();
    let after = wall_clock();

    let spans = finished(&exporter);
    let snapshots = both.0.0;
    assert_eq!(snapshots.len(), STAGES.len());
    for (name, snapshot) in STAGES.iter().zip(&snapshots) {
        let measured = Duration::from_secs_f64(snapshot.duration_ms / 1e3);
        let difference = length(stage(&spans, name)).abs_diff(measured);
        assert!(
            difference <= Duration::from_nanos(1),
            "{name}: {difference:?}"
        );
    }
    assert!(length(stage(&spans, "score")) >= PAUSE);
    check_nesting(&spans);
    assert!(root(&spans).start_time + PAUSE <= stage(&spans, "classify").start_time);
    assert!(stage(&spans, "place").end_time + PAUSE <= root(&spans).end_time);
    assert!(before <= root(&spans).start_time);
    assert!(root(&spans).end_time <= after + Duration::from_millis(1));
}

// proves: OTEL-8, R112
#[test]
fn the_root_span_contains_the_stages_in_order() {
    for _ in 0..50 {
        let (_, spans) = traced(
            CupelVerbosity::Full,
            &pipeline(),
            &candidates(),
            &budget(40),
        );
        check_nesting(&spans);
    }
}

#[test]
fn events_have_the_end_time_of_their_stage() {
    let (_, spans) = traced(
        CupelVerbosity::Full,
        &pipeline(),
        &candidates(),
        &budget(40),
    );
    let events = spans.iter().map(|span| span.events.len());
    assert_eq!(events.sum::<usize>(), 6);
    for span in &spans {
        for event in span.events.iter() {
            assert_eq!(event.timestamp, span.end_time);
        }
    }
}

fn completed_without_hooks(snapshots: &[StageTraceSnapshot]) -> Vec<SpanData> {
    let (provider, exporter) = in_memory();
    let mut collector = CupelOtelTraceCollector::with_provider(CupelVerbosity::Full, &provider);
    let report = pipeline().dry_run(&candidates(), &budget(40)).unwrap();
    collector.on_pipeline_completed(&report, &budget(40), snapshots);
    finished(&exporter)
}

// proves: OTEL-17
#[test]
fn completion_without_the_other_hooks_writes_contiguous_stages() {
    let lengths = [1.0, 20.0, 0.5, 0.0, 2.0];
    let snapshots: Vec<_> = PipelineStage::ALL
        .into_iter()
        .zip(lengths)
        .map(|(stage, length)| StageTraceSnapshot::new(stage, 6, 6, length))
        .collect();
    let spans = completed_without_hooks(&snapshots);
    assert_eq!(spans.len(), 6);
    check_nesting(&spans);
    for (name, expected) in STAGES.iter().zip(lengths) {
        let expected = Duration::from_secs_f64(expected / 1e3);
        assert_eq!(length(stage(&spans, name)), expected);
    }
    assert_eq!(length(root(&spans)), Duration::from_micros(23_500));
    assert!(root(&spans).end_time <= wall_clock());
}

#[test]
fn without_stages_nothing_is_written() {
    assert!(completed_without_hooks(&[]).is_empty());
}

#[test]
fn an_invalid_duration_counts_as_zero() {
    for invalid in [f64::NAN, f64::INFINITY, -1.0, 1e300, 1e22] {
        let unknown = PipelineStage::from_name("Sort");
        let snapshots = [
            StageTraceSnapshot::new(PipelineStage::Classify, 1, 1, 2.0),
            StageTraceSnapshot::new(unknown, 1, 1, invalid),
        ];
        let spans = completed_without_hooks(&snapshots);
        assert_eq!(
            names(&spans),
            [
                "cupel.stage.classify",
                "cupel.stage.unknown",
                "cupel.pipeline"
            ]
        );
        check_nesting(&spans);
        assert_eq!(length(&spans[1]), Duration::ZERO);
    }
}
