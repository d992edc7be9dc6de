//! Providers and parents of spans.

use std::borrow::Cow;
use std::collections::HashSet;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use cupel::{ContextBudget, ContextItem, CupelError, Pipeline};
use cupel_otel::{CupelOtelTraceCollector, CupelVerbosity};
use opentelemetry::trace::{
    Span, SpanBuilder, SpanContext, SpanId, Status, TraceContextExt, TraceFlags, TraceId,
    TraceState, Tracer, TracerProvider,
};
use opentelemetry::{Context, InstrumentationScope, KeyValue, global};
use opentelemetry_sdk::trace::SdkTracerProvider;

use crate::{STAGES, TIERS, budget, candidates, finished, in_memory, names, pipeline, root, stage};

/// Runs as the specification's sample does, but not asynchronously, with the budget, and without
/// calling the hook.
fn run(
    pipeline: &Pipeline,
    items: &[ContextItem],
    budget: &ContextBudget,
    mut collector: CupelOtelTraceCollector,
) -> Result<Vec<ContextItem>, CupelError> {
    pipeline.run_traced(items, budget, &mut collector)
}

/// The only test that touches the global provider.
// proves: OTEL-2, OTEL-17, R115
#[test]
fn a_collector_writes_to_the_provider_that_is_global_when_the_run_ends() {
    let collector = CupelOtelTraceCollector::new(CupelVerbosity::StageOnly);
    run(&pipeline(), &candidates(), &budget(40), collector).unwrap();

    let early = CupelOtelTraceCollector::new(CupelVerbosity::StageOnly);
    let (provider, exporter) = in_memory();
    global::set_tracer_provider(provider.clone());
    run(&pipeline(), &candidates(), &budget(40), early).unwrap();
    let spans = finished(&exporter);
    assert_eq!(spans.len(), 6);
    assert!(
        spans
            .iter()
            .all(|span| span.instrumentation_scope.name() == "cupel")
    );

    global::set_tracer_provider(SdkTracerProvider::builder().build());
    let late = CupelOtelTraceCollector::new(CupelVerbosity::StageOnly);
    run(&pipeline(), &candidates(), &budget(40), late).unwrap();
    assert_eq!(finished(&exporter).len(), 6);
}

// proves: OTEL-4
#[test]
fn the_root_is_a_child_of_the_current_span() {
    let (provider, exporter) = in_memory();
    let mut collector = CupelOtelTraceCollector::with_provider(CupelVerbosity::Full, &provider);
    let tracer = provider.tracer("application");
    let request = tracer.in_span("request", |context| {
        pipeline()
            .run_traced(&candidates(), &budget(40), &mut collector)
            .unwrap();
        context.span().span_context().clone()
    });
    let spans = finished(&exporter);
    assert_eq!(spans.len(), 7);
    let root = root(&spans);
    assert_eq!(root.parent_span_id, request.span_id());
    assert_eq!(root.span_context.trace_id(), request.trace_id());
    let place = stage(&spans, "place");
    assert_eq!(place.parent_span_id, root.span_context.span_id());
    assert_eq!(place.span_context.trace_id(), request.trace_id());

    exporter.reset();
    pipeline()
        .run_traced(&candidates(), &budget(40), &mut collector)
        .unwrap();
    let spans = finished(&exporter);
    assert_eq!(crate::root(&spans).parent_span_id, SpanId::INVALID);
}

#[test]
fn the_root_is_a_child_of_a_remote_span() {
    let (provider, exporter) = in_memory();
    let mut collector = CupelOtelTraceCollector::with_provider(CupelVerbosity::Full, &provider);
    let remote = SpanContext::new(
        TraceId::from(7),
        SpanId::from(9),
        TraceFlags::SAMPLED,
        true,
        TraceState::default(),
    );
    let _attached = Context::new().with_remote_span_context(remote).attach();
    pipeline()
        .run_traced(&candidates(), &budget(40), &mut collector)
        .unwrap();
    let spans = finished(&exporter);
    assert_eq!(root(&spans).parent_span_id, SpanId::from(9));
    assert!(root(&spans).parent_span_is_remote);
    let slice = stage(&spans, "slice");
    assert_eq!(slice.span_context.trace_id(), TraceId::from(7));
    assert!(!slice.parent_span_is_remote);
}

#[test]
fn a_run_does_not_change_the_current_context() {
    let (provider, _) = in_memory();
    let mut collector = CupelOtelTraceCollector::with_provider(CupelVerbosity::Full, &provider);
    pipeline()
        .run_traced(&candidates(), &budget(40), &mut collector)
        .unwrap();
    assert!(!Context::current().has_active_span());
}

#[test]
fn a_collector_can_be_sent_to_another_thread() {
    fn check<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + 'static>(value: T) -> T {
        value
    }
    let (provider, exporter) = in_memory();
    let collector = CupelOtelTraceCollector::with_provider(CupelVerbosity::Full, &provider);
    let collector = check(collector);
    let worker =
        std::thread::spawn(move || run(&pipeline(), &candidates(), &budget(40), collector));
    worker.join().unwrap().unwrap();
    assert_eq!(finished(&exporter).len(), 6);
}

#[test]
fn tiers_are_ordered_and_can_be_keys() {
    assert!(TIERS.is_sorted());
    assert_eq!(HashSet::from(TIERS).len(), 3);
    assert_eq!(CupelVerbosity::default(), CupelVerbosity::StageOnly);
}

/// The calls on the spans of a [`Logging`] provider, in order.
type Log = Arc<Mutex<Vec<String>>>;

/// A provider that is not the SDK's.
struct Logging(Log);

impl TracerProvider for Logging {
    type Tracer = LoggingTracer;

    fn tracer_with_scope(&self, scope: InstrumentationScope) -> LoggingTracer {
        self.0
            .lock()
            .unwrap()
            .push(format!("scope {}", scope.name()));
        LoggingTracer(Arc::clone(&self.0))
    }
}

struct LoggingTracer(Log);

impl Tracer for LoggingTracer {
    type Span = LoggingSpan;

    fn build_with_context(&self, builder: SpanBuilder, _parent: &Context) -> LoggingSpan {
        LoggingSpan {
            name: builder.name,
            context: SpanContext::empty_context(),
            log: Arc::clone(&self.0),
        }
    }
}

struct LoggingSpan {
    name: Cow<'static, str>,
    context: SpanContext,
    log: Log,
}

impl LoggingSpan {
    fn log(&self, call: &str) {
        let mut log = self.log.lock().unwrap();
        log.push(format!("{call} {}", self.name));
    }
}

impl Span for LoggingSpan {
    fn add_event_with_timestamp<T: Into<Cow<'static, str>>>(
        &mut self,
        _name: T,
        _timestamp: SystemTime,
        _attributes: Vec<KeyValue>,
    ) {
        self.log("event");
    }

    fn span_context(&self) -> &SpanContext {
        &self.context
    }

    fn is_recording(&self) -> bool {
        false
    }

    fn set_attribute(&mut self, _attribute: KeyValue) {}

    fn set_status(&mut self, _status: Status) {}

    fn update_name<T: Into<Cow<'static, str>>>(&mut self, _new_name: T) {}

    fn add_link(&mut self, _span_context: SpanContext, _attributes: Vec<KeyValue>) {}

    fn end_with_timestamp(&mut self, _timestamp: SystemTime) {
        self.log("end");
    }
}

impl Drop for LoggingSpan {
    fn drop(&mut self) {
        self.log("drop");
    }
}

// proves: OTEL-16
#[test]
fn every_span_ends_once_before_it_is_dropped_and_unrecorded_spans_get_no_events() {
    let log = Log::default();
    let provider = Logging(Arc::clone(&log));
    let collector = CupelOtelTraceCollector::with_provider(CupelVerbosity::Full, &provider);
    run(&pipeline(), &candidates(), &budget(40), collector).unwrap();
    let mut expected = vec!["scope cupel".to_owned()];
    let stages = STAGES.map(|stage| format!("cupel.stage.{stage}"));
    for name in stages.iter().map(String::as_str).chain(["cupel.pipeline"]) {
        expected.push(format!("end {name}"));
        expected.push(format!("drop {name}"));
    }
    assert_eq!(*log.lock().unwrap(), expected);
}

// proves: OTEL-16
#[test]
fn the_spans_of_a_failed_run_end_too() {
    let log = Log::default();
    let provider = Logging(Arc::clone(&log));
    let collector = CupelOtelTraceCollector::with_provider(CupelVerbosity::Full, &provider);
    run(&pipeline(), &candidates(), &budget(5), collector).unwrap_err();
    let log = log.lock().unwrap();
    assert_eq!(
        *log,
        ["scope cupel", "end cupel.pipeline", "drop cupel.pipeline"]
    );
}

#[test]
fn two_collectors_share_a_provider() {
    let (provider, exporter) = in_memory();
    let collector = || CupelOtelTraceCollector::with_provider(CupelVerbosity::StageOnly, &provider);
    let mut both = (collector(), collector());
    pipeline()
        .run_traced(&candidates(), &budget(40), &mut both)
        .unwrap();
    let spans = finished(&exporter);
    assert_eq!(spans.len(), 12);
    let roots = names(&spans)
        .iter()
        .filter(|name| **name == "cupel.pipeline")
        .count();
    assert_eq!(roots, 2);
}
