//! [`CupelOtelTraceCollector`]: records the times of a run and writes its spans at the end.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Instant, SystemTime};

use cupel::{
    ContextBudget, ContextItem, CupelError, ExcludedItem, ExclusionReason, PipelineStage,
    SelectionReport, StageTraceSnapshot, TraceCollector, TraceDetailLevel, TraceEvent,
};
use opentelemetry::InstrumentationScope;
use opentelemetry::global::{self, BoxedTracer, ObjectSafeTracerProvider};

use crate::spans::{FinishedRun, TimedStage, contiguous};
use crate::{CupelVerbosity, SOURCE_NAME};

/// Writes one root span and a span per stage for each run.
///
/// The spans are written when the run ends; the [crate documentation](crate) lists their attributes
/// and events. A collector can be used for any number of runs, one after another.
///
/// If [`on_pipeline_completed`](TraceCollector::on_pipeline_completed) is called without the hooks
/// for the start of the run and its stages, the stage spans follow each other without gaps, have the
/// durations of the snapshots, and end at the time of the call.
///
/// ```
/// use cupel::*;
/// use cupel_otel::{CupelOtelTraceCollector, CupelVerbosity};
/// use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
///
/// let exporter = InMemorySpanExporter::default();
/// let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
/// opentelemetry::global::set_tracer_provider(provider);
///
/// let mut collector = CupelOtelTraceCollector::new(CupelVerbosity::StageOnly);
/// let pipeline = Pipeline::new(RecencyScorer, GreedySlice, ChronologicalPlacer);
/// let items = [ContextItem::builder("Be brief.", 3).pinned(true).build()?];
/// let error = pipeline.run_traced(&items, &ContextBudget::with_target(2, 2)?, &mut collector);
///
/// let spans = exporter.get_finished_spans().unwrap();
/// assert_eq!(spans[0].name, "cupel.pipeline");
/// assert_eq!(
///     spans[0].status,
///     opentelemetry::trace::Status::error(error.unwrap_err().to_string()),
/// );
/// # Ok::<(), CupelError>(())
/// ```
#[derive(Debug)]
pub struct CupelOtelTraceCollector {
    verbosity: CupelVerbosity,
    /// `None` for the tracer of the global provider.
    tracer: Option<BoxedTracer>,
    run: Option<Run>,
}

impl CupelOtelTraceCollector {
    /// Creates a collector that writes to the tracer provider that is global when a run ends.
    pub fn new(verbosity: CupelVerbosity) -> Self {
        Self {
            verbosity,
            tracer: None,
            run: None,
        }
    }

    /// Creates a collector that writes to this provider. It may be any
    /// [`TracerProvider`](opentelemetry::trace::TracerProvider) whose tracers and spans are
    /// `Send + Sync`.
    pub fn with_provider(
        verbosity: CupelVerbosity,
        provider: &impl ObjectSafeTracerProvider,
    ) -> Self {
        let tracer = provider.boxed_tracer(InstrumentationScope::builder(SOURCE_NAME).build());
        Self {
            tracer: Some(BoxedTracer::new(tracer)),
            ..Self::new(verbosity)
        }
    }

    /// Returns the verbosity.
    pub fn verbosity(&self) -> CupelVerbosity {
        self.verbosity
    }

    fn write(&self, run: &FinishedRun<'_>) {
        match &self.tracer {
            Some(tracer) => run.write(tracer),
            None => run.write(&global::tracer(SOURCE_NAME)),
        }
    }
}

// The next run replaces the state that a panic leaves.
impl UnwindSafe for CupelOtelTraceCollector {}

// There is no interior mutability.
impl RefUnwindSafe for CupelOtelTraceCollector {}

impl TraceCollector for CupelOtelTraceCollector {
    fn is_enabled(&self) -> bool {
        true
    }

    fn on_run_started(&mut self, budget: &ContextBudget) {
        self.run = Some(Run {
            clock: Clock::start(),
            max_tokens: budget.max_tokens(),
            stages: Vec::new(),
            current: None,
        });
    }

    fn on_stage_started(&mut self, stage: PipelineStage) {
        if let Some(run) = &mut self.run {
            let start = run.clock.now();
            let snapshot = StageTraceSnapshot::new(stage, 0, 0, 0.0);
            run.current = Some(StartedStage { start, snapshot });
        }
    }

    fn record_excluded(&mut self, item: ContextItem, score: f64, reason: ExclusionReason) {
        if let Some(stage) = self.run.as_mut().and_then(|run| run.current.as_mut()) {
            let excluded = ExcludedItem::new(item, score, reason);
            stage.snapshot.excluded.push(excluded);
        }
    }

    /// Completes the stage. Items that entered and did not leave were excluded by it (R114).
    fn record_stage_event(&mut self, event: TraceEvent) {
        let Some(run) = &mut self.run else { return };
        if let Some(mut stage) = run.current.take() {
            stage.snapshot.duration_ms = event.duration_ms;
            stage.snapshot.item_count_out = event.item_count;
            stage.snapshot.item_count_in = event.item_count + stage.snapshot.excluded.len();
            run.stages.push(stage);
        }
    }

    fn record_item_event(&mut self, _event: TraceEvent) {}

    fn on_pipeline_completed(
        &mut self,
        report: &SelectionReport,
        budget: &ContextBudget,
        stage_snapshots: &[StageTraceSnapshot],
    ) {
        let run = self.run.take();
        if stage_snapshots.is_empty() {
            return;
        }
        let (started, ended, stages) = match run {
            Some(run) if run.recorded(stage_snapshots) => {
                let starts = run.stages.iter().map(|stage| stage.start);
                let stages = starts.zip(stage_snapshots).map(TimedStage::from);
                (run.clock.wall, run.clock.now(), stages.collect())
            }
            _ => {
                let ended = Clock::start().wall;
                let (started, stages) = contiguous(stage_snapshots, ended);
                (started, ended, stages)
            }
        };
        self.write(&FinishedRun {
            verbosity: self.verbosity,
            max_tokens: budget.max_tokens(),
            started,
            ended,
            stages,
            outcome: Ok(report),
        });
    }

    fn on_run_failed(&mut self, error: &CupelError) {
        let Some(run) = self.run.take() else { return };
        let stages = run.stages.iter();
        let stages = stages.map(|stage| TimedStage::from((stage.start, &stage.snapshot)));
        self.write(&FinishedRun {
            verbosity: self.verbosity,
            max_tokens: run.max_tokens,
            started: run.clock.wall,
            ended: run.clock.now(),
            stages: stages.collect(),
            outcome: Err(error),
        });
    }

    fn detail_level(&self) -> TraceDetailLevel {
        TraceDetailLevel::Stage
    }

    fn wants_report(&self) -> bool {
        true
    }
}

/// A run that has started.
#[derive(Debug)]
struct Run {
    clock: Clock,
    max_tokens: i64,
    /// The finished stages.
    stages: Vec<StartedStage>,
    /// The stage that is running.
    current: Option<StartedStage>,
}

impl Run {
    /// Returns whether the hooks recorded exactly these stages.
    fn recorded(&self, snapshots: &[StageTraceSnapshot]) -> bool {
        let recorded = self.stages.iter().map(|stage| stage.snapshot.stage);
        recorded.eq(snapshots.iter().map(|snapshot| snapshot.stage))
    }
}

#[derive(Debug)]
struct StartedStage {
    start: SystemTime,
    snapshot: StageTraceSnapshot,
}

/// One reading of the wall clock, advanced by the monotonic clock. Adjusting the wall clock during a
/// run therefore moves no span out of its parent.
#[derive(Debug)]
struct Clock {
    wall: SystemTime,
    since: Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "spans have wall-clock times")]
    fn start() -> Self {
        Self {
            wall: SystemTime::now(),
            since: Instant::now(),
        }
    }

    fn now(&self) -> SystemTime {
        self.wall + self.since.elapsed()
    }
}
