//! [`FinishedRun`]: writes the spans of a run.

use std::time::{Duration, SystemTime};

use cupel::{
    CupelError, ExcludedItem, IncludedItem, InclusionReason, PipelineStage, SelectionReport,
    StageTraceSnapshot, total_tokens,
};
use opentelemetry::global::BoxedTracer;
use opentelemetry::trace::{Span, SpanBuilder, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};

use crate::{CupelVerbosity, exclusion_reason_name, names};

/// A run with its times.
pub(crate) struct FinishedRun<'a> {
    pub(crate) verbosity: CupelVerbosity,
    pub(crate) max_tokens: i64,
    pub(crate) started: SystemTime,
    pub(crate) ended: SystemTime,
    pub(crate) stages: Vec<TimedStage<'a>>,
    pub(crate) outcome: Result<&'a SelectionReport, &'a CupelError>,
}

/// A finished stage with its times.
pub(crate) struct TimedStage<'a> {
    start: SystemTime,
    end: SystemTime,
    snapshot: &'a StageTraceSnapshot,
}

impl<'a> From<(SystemTime, &'a StageTraceSnapshot)> for TimedStage<'a> {
    fn from((start, snapshot): (SystemTime, &'a StageTraceSnapshot)) -> Self {
        Self {
            start,
            end: start.checked_add(duration(snapshot)).unwrap_or(start),
            snapshot,
        }
    }
}

/// Places stages without start times one after another, so that the last one ends at `ended`. Returns
/// the start of the first one, and the stages.
pub(crate) fn contiguous(
    snapshots: &[StageTraceSnapshot],
    ended: SystemTime,
) -> (SystemTime, Vec<TimedStage<'_>>) {
    let mut start = ended;
    for snapshot in snapshots {
        start = start.checked_sub(duration(snapshot)).unwrap_or(start);
    }
    let started = start;
    let stages = snapshots.iter().map(|snapshot| {
        let stage = TimedStage::from((start, snapshot));
        start = stage.end;
        stage
    });
    let stages = stages.collect();
    (started, stages)
}

/// Returns the duration of a stage; zero if the snapshot's value is negative or not finite.
fn duration(snapshot: &StageTraceSnapshot) -> Duration {
    Duration::try_from_secs_f64(snapshot.duration_ms / 1e3).unwrap_or_default()
}

impl FinishedRun<'_> {
    /// Writes the root span and its stages, and ends every span (OTEL-16).
    pub(crate) fn write(&self, tracer: &BoxedTracer) {
        let root = SpanBuilder::from_name(names::ROOT)
            .with_start_time(self.started)
            .with_attributes(self.root_attributes());
        let context = Context::map_current(|parent| {
            parent.with_span(tracer.build_with_context(root, parent))
        });
        for stage in &self.stages {
            self.write_stage(stage, tracer, &context);
        }
        if let Err(error) = self.outcome {
            context.span().set_status(Status::error(error.to_string()));
        }
        // Rounding may put the end of a stage after the clock's reading.
        let ends = self.stages.iter().map(|stage| stage.end);
        let end = ends.fold(self.ended, SystemTime::max);
        context.span().end_with_timestamp(end);
    }

    fn root_attributes(&self) -> Vec<KeyValue> {
        let mut attributes = vec![
            KeyValue::new(names::MAX_TOKENS, self.max_tokens),
            KeyValue::new(names::VERBOSITY, self.verbosity.name()),
        ];
        match self.outcome {
            Ok(report) => {
                let is_shortened = |entry: &IncludedItem| {
                    matches!(entry.reason, InclusionReason::Shortened { .. })
                };
                if !report.excluded.is_empty() || report.included.iter().any(is_shortened) {
                    let items = report.included.iter().map(|entry| &entry.item);
                    attributes.extend([
                        KeyValue::new(names::COMPACTED, true),
                        KeyValue::new(names::TOKENS_BEFORE, report.total_tokens_considered),
                        KeyValue::new(names::TOKENS_AFTER, total_tokens(items)),
                    ]);
                }
            }
            Err(error) => attributes.push(KeyValue::new(names::ERROR_TYPE, error.code())),
        }
        attributes
    }

    fn write_stage(&self, stage: &TimedStage<'_>, tracer: &BoxedTracer, root: &Context) {
        let TimedStage {
            start,
            end,
            snapshot,
        } = *stage;
        let name = names::stage(snapshot.stage);
        let mut attributes = vec![
            KeyValue::new(names::STAGE_NAME, name),
            KeyValue::new(names::ITEM_COUNT_IN, count(snapshot.item_count_in)),
            KeyValue::new(names::ITEM_COUNT_OUT, count(snapshot.item_count_out)),
        ];
        let exclusions = self.verbosity >= CupelVerbosity::StageAndExclusions;
        if exclusions && !snapshot.excluded.is_empty() {
            let excluded = count(snapshot.excluded.len());
            attributes.push(KeyValue::new(names::EXCLUSION_COUNT, excluded));
        }
        let builder = SpanBuilder::from_name(format!("{}.{name}", names::STAGE))
            .with_start_time(start)
            .with_attributes(attributes);
        let mut span = tracer.build_with_context(builder, root);
        if exclusions && span.is_recording() {
            for excluded in &snapshot.excluded {
                span.add_event_with_timestamp(names::EXCLUSION, end, exclusion(excluded));
            }
        }
        let inclusions = self.verbosity >= CupelVerbosity::Full;
        if inclusions && snapshot.stage == PipelineStage::Place && span.is_recording() {
            for included in self.outcome.iter().flat_map(|report| &report.included) {
                span.add_event_with_timestamp(names::INCLUDED, end, inclusion(included));
            }
        }
        span.end_with_timestamp(end);
    }
}

fn exclusion(excluded: &ExcludedItem) -> Vec<KeyValue> {
    let item = &excluded.item;
    vec![
        KeyValue::new(
            names::EXCLUSION_REASON,
            exclusion_reason_name(&excluded.reason),
        ),
        KeyValue::new(names::EXCLUSION_ITEM_KIND, item.kind().as_str().to_owned()),
        KeyValue::new(names::EXCLUSION_ITEM_TOKENS, item.tokens()),
    ]
}

fn inclusion(included: &IncludedItem) -> Vec<KeyValue> {
    let item = &included.item;
    let mut attributes = vec![
        KeyValue::new(names::ITEM_KIND, item.kind().as_str().to_owned()),
        KeyValue::new(names::ITEM_TOKENS, item.tokens()),
        KeyValue::new(names::ITEM_SCORE, included.score),
    ];
    if let InclusionReason::Shortened {
        original_tokens, ..
    } = included.reason
    {
        attributes.push(KeyValue::new(names::ITEM_ORIGINAL_TOKENS, original_tokens));
    }
    attributes
}

fn count(items: usize) -> i64 {
    i64::try_from(items).unwrap_or(i64::MAX)
}
