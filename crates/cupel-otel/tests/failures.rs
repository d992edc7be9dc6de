//! Runs that fail.

use cupel::{ContextItem, CupelError, OverflowStrategy, Pipeline, TraceCollector};
use cupel_otel::{CupelOtelTraceCollector, CupelVerbosity};
use opentelemetry::trace::Status;

use crate::{
    TIERS, budget, candidates, everything, finished, hinted, in_memory, names, pinned, pipeline,
    root, slice_by, text_of, traced, with_slicer,
};

fn check(
    verbosity: CupelVerbosity,
    pipeline: &Pipeline,
    items: &[ContextItem],
    message: &str,
    expected: &str,
) {
    let (window, spans) = traced(verbosity, pipeline, items, &budget(40));
    assert_eq!(window.unwrap_err().to_string(), message);
    assert_eq!(text_of(&spans).trim_end(), expected.trim_matches('\n'));
    let root = root(&spans);
    assert_eq!(root.status, Status::error(message.to_owned()));
    for stage in spans.iter().filter(|span| span.name != root.name) {
        assert_eq!(stage.status, Status::Unset);
        assert!(root.start_time <= stage.start_time && stage.end_time <= root.end_time);
    }
}

// proves: R113
#[test]
fn a_run_that_fails_in_the_first_stage_has_only_a_root_span() {
    check(
        CupelVerbosity::Full,
        &pipeline(),
        &[pinned("rules", 50)],
        "pinned tokens (50) exceed available budget (40)",
        r#"
cupel.pipeline
  cupel.budget.max_tokens=40
  cupel.verbosity="Full"
  error.type="PinnedExceedsBudget"
"#,
    );
}

// proves: R113, R114
#[test]
fn stages_that_finished_before_the_failure_have_spans_with_their_exclusions() {
    let slicer = slice_by(|_| Err(CupelError::SlicerConfig("no capacity".to_owned())));
    check(
        CupelVerbosity::StageAndExclusions,
        &with_slicer(slicer, OverflowStrategy::Throw),
        &candidates(),
        "invalid slicer configuration: no capacity",
        r#"
  cupel.stage.classify
    cupel.stage.name="classify"
    cupel.stage.item_count_in=6
    cupel.stage.item_count_out=5
    cupel.exclusion.count=1
    ! cupel.exclusion: cupel.exclusion.reason="NegativeTokens" cupel.exclusion.item_kind="Message" cupel.exclusion.item_tokens=-5
  cupel.stage.score
    cupel.stage.name="score"
    cupel.stage.item_count_in=4
    cupel.stage.item_count_out=4
  cupel.stage.deduplicate
    cupel.stage.name="deduplicate"
    cupel.stage.item_count_in=4
    cupel.stage.item_count_out=3
    cupel.exclusion.count=1
    ! cupel.exclusion: cupel.exclusion.reason="Deduplicated" cupel.exclusion.item_kind="Message" cupel.exclusion.item_tokens=20
cupel.pipeline
  cupel.budget.max_tokens=40
  cupel.verbosity="StageAndExclusions"
  error.type="SlicerConfig"
"#,
    );
}

// proves: R113, R114
#[test]
fn a_run_that_fails_in_the_last_stage_has_the_first_four_spans() {
    check(
        CupelVerbosity::StageOnly,
        &with_slicer(everything(), OverflowStrategy::Throw),
        &[pinned("rules", 10), hinted("a", 35, 0.5)],
        "merged tokens (45) exceed target tokens (40)",
        r#"
  cupel.stage.classify
    cupel.stage.name="classify"
    cupel.stage.item_count_in=2
    cupel.stage.item_count_out=2
  cupel.stage.score
    cupel.stage.name="score"
    cupel.stage.item_count_in=1
    cupel.stage.item_count_out=1
  cupel.stage.deduplicate
    cupel.stage.name="deduplicate"
    cupel.stage.item_count_in=1
    cupel.stage.item_count_out=1
  cupel.stage.slice
    cupel.stage.name="slice"
    cupel.stage.item_count_in=1
    cupel.stage.item_count_out=1
cupel.pipeline
  cupel.budget.max_tokens=40
  cupel.verbosity="StageOnly"
  error.type="Overflow"
"#,
    );
}

// proves: R113
#[test]
fn a_failed_run_does_not_affect_the_next() {
    for tier in TIERS {
        let (provider, exporter) = in_memory();
        let mut collector = CupelOtelTraceCollector::with_provider(tier, &provider);
        let failing = with_slicer(
            slice_by(|_| Err(CupelError::SlicerConfig("no capacity".to_owned()))),
            OverflowStrategy::Throw,
        );
        let failure = failing.run_traced(&candidates(), &budget(40), &mut collector);
        assert!(failure.is_err());
        exporter.reset();
        pipeline()
            .run_traced(&candidates(), &budget(40), &mut collector)
            .unwrap();
        let spans = finished(&exporter);
        let (_, alone) = traced(tier, &pipeline(), &candidates(), &budget(40));
        assert_eq!(text_of(&spans), text_of(&alone));
        assert_eq!(root(&spans).status, Status::Unset);
    }
}

#[test]
fn a_failure_without_a_run_is_not_written() {
    let (provider, exporter) = in_memory();
    let mut collector = CupelOtelTraceCollector::with_provider(CupelVerbosity::Full, &provider);
    collector.on_run_failed(&CupelError::EmptyContent);
    assert_eq!(names(&finished(&exporter)), [""; 0]);
}
