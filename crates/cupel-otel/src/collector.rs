//! [`CupelOtelTraceCollector`]: follows a run and keeps what its spans need.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Instant, SystemTime};

use cupel::{
    ContextBudget, ContextItem, CupelError, ExcludedItem, ExclusionReason, PipelineStage,
    SelectionReport, StageTraceSnapshot, TraceCollector, TraceDetailLevel, TraceEvent,
};
use opentelemetry::InstrumentationScope;
use opentelemetry::global::{self, BoxedTracer, ObjectSafeTracerProvider};

use crate::spans::{FinishedRun, TimedStage, back_to_back};
use crate::{CupelVerbosity, SOURCE_NAME};

/// Writes every run it is handed to as one root span and a span per stage.
///
/// The [crate's page](crate) says what is on them. They are written when the run ends. One
/// collector serves any number of runs, one after the other.
///
/// A program that calls [`on_pipeline_completed`](TraceCollector::on_pipeline_completed) itself,
/// without the hooks that say when things begin, gets spans that end with the call and lie
/// back to back, as long as the snapshots say.
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
    /// `None` for the global provider's.
    tracer: Option<BoxedTracer>,
    run: Option<Run>,
}

impl CupelOtelTraceCollector {
    /// A collector that writes to the global tracer provider, to whichever is installed when a
    /// run ends.
    pub fn new(verbosity: CupelVerbosity) -> Self {
        Self {
            verbosity,
            tracer: None,
            run: None,
        }
    }

    /// A collector that writes to this provider, which may be any
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

    /// How much this collector writes.
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

/// What a run that panicked leaves behind is dropped when the next one starts.
impl UnwindSafe for CupelOtelTraceCollector {}

/// As above; a shared reference changes nothing.
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

    /// The stage is complete: what did not leave it was excluded by it (R114).
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
            Some(run) if run.followed(stage_snapshots) => {
                let starts = run.stages.iter().map(|stage| stage.start);
                let stages = starts.zip(stage_snapshots).map(TimedStage::from);
                (run.clock.wall, run.clock.now(), stages.collect())
            }
            _ => {
                let ended = Clock::start().wall;
                let (started, stages) = back_to_back(stage_snapshots, ended);
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

/// A run under way.
#[derive(Debug)]
struct Run {
    clock: Clock,
    max_tokens: i64,
    /// The stages that have finished.
    stages: Vec<StartedStage>,
    /// The stage that has not.
    current: Option<StartedStage>,
}

impl Run {
    /// Whether the hooks told of just these stages.
    fn followed(&self, snapshots: &[StageTraceSnapshot]) -> bool {
        let followed = self.stages.iter().map(|stage| stage.snapshot.stage);
        followed.eq(snapshots.iter().map(|snapshot| snapshot.stage))
    }
}

#[derive(Debug)]
struct StartedStage {
    start: SystemTime,
    snapshot: StageTraceSnapshot,
}

/// One reading of the wall clock, carried on by the monotonic one, so that setting the wall
/// clock during a run moves no span out of its parent.
#[derive(Debug)]
struct Clock {
    wall: SystemTime,
    since: Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "spans bear the wall-clock time")]
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
