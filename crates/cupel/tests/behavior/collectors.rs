//! The calls a collector gets, and their order.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Barrier;
use std::time::Duration;

use cupel::{
    ContextBudget, ContextItem, CountQuotaEntry, CountQuotaSlice, CountRequirementShortfall,
    CupelError, DiagnosticTraceCollector, ExclusionReason, GreedySlice, InclusionReason,
    NullTraceCollector, OverflowEvent, OverflowStrategy, PipelineStage, Policy, PolicyBuilder,
    QuotaSlice, ScarcityBehavior, Scorer, Selection, SelectionReport, StageTraceSnapshot,
    TraceCollector, TraceDetailLevel, TraceEvent,
};

use super::{
    Random, RandomRuns, Seen, budget, build, check_consistent, contents, everything, excluded,
    hinted, included, item, kind, owned, pinned, policy, score_all_by, score_by, select_by,
    slice_by, timeless,
};

/// Writes down every call, one line each, and keeps what the completion hook was given.
#[derive(Default)]
struct Log {
    level: TraceDetailLevel,
    without_report: bool,
    lines: Vec<String>,
    completed: Option<(SelectionReport, ContextBudget, Vec<StageTraceSnapshot>)>,
}

impl Log {
    fn at(level: TraceDetailLevel) -> Self {
        Self {
            level,
            ..Self::default()
        }
    }

    fn write(&mut self, line: String) {
        self.lines.push(line);
    }
}

impl TraceCollector for Log {
    fn is_enabled(&self) -> bool {
        true
    }

    fn record_stage_event(&mut self, event: TraceEvent) {
        assert_eq!(event.message, None);
        self.write(format!("stage {} {}", event.stage.name(), event.item_count));
    }

    fn record_item_event(&mut self, event: TraceEvent) {
        assert_eq!((event.item_count, event.duration_ms), (1, 0.0));
        let message = event.message.expect("an item event says what happened");
        self.write(format!("item {} {message}", event.stage.name()));
    }

    fn record_included(&mut self, item: ContextItem, score: f64, reason: InclusionReason) {
        self.write(format!("in {} {score} {}", item.content(), reason.name()));
    }

    fn record_excluded(&mut self, item: ContextItem, score: f64, reason: ExclusionReason) {
        self.write(format!("out {} {score} {}", item.content(), reason.name()));
    }

    fn set_candidates(&mut self, total: usize, total_tokens: i64) {
        self.write(format!("candidates {total} {total_tokens}"));
    }

    fn on_pipeline_completed(
        &mut self,
        report: &SelectionReport,
        budget: &ContextBudget,
        stage_snapshots: &[StageTraceSnapshot],
    ) {
        let (inside, outside) = (report.included.len(), report.excluded.len());
        self.write(format!("completed {inside} {outside}"));
        self.completed = Some((report.clone(), budget.clone(), stage_snapshots.to_vec()));
    }

    fn detail_level(&self) -> TraceDetailLevel {
        self.level
    }

    fn wants_report(&self) -> bool {
        !self.without_report
    }

    fn on_run_started(&mut self, budget: &ContextBudget) {
        self.write(format!("run {}", budget.target_tokens()));
    }

    fn on_stage_started(&mut self, stage: PipelineStage) {
        self.write(format!("enter {}", stage.name()));
    }

    fn record_shortfall(&mut self, shortfall: CountRequirementShortfall) {
        let (required, satisfied) = (shortfall.required_count, shortfall.satisfied_count);
        self.write(format!("short {} {required} {satisfied}", shortfall.kind));
    }

    fn on_overflow(&mut self, event: &OverflowEvent) {
        let items = contents(&event.overflowing_items).join(" ");
        self.write(format!("overflow {} {items}", event.tokens_over_budget));
    }

    fn on_run_failed(&mut self, error: &CupelError) {
        self.write(format!("failed {}", error.code()));
    }
}

/// Is disabled and must be told nothing.
struct Deaf;

impl TraceCollector for Deaf {
    fn is_enabled(&self) -> bool {
        false
    }

    fn record_stage_event(&mut self, _: TraceEvent) {
        unreachable!("record_stage_event")
    }

    fn record_item_event(&mut self, _: TraceEvent) {
        unreachable!("record_item_event")
    }

    fn record_included(&mut self, _: ContextItem, _: f64, _: InclusionReason) {
        unreachable!("record_included")
    }

    fn record_excluded(&mut self, _: ContextItem, _: f64, _: ExclusionReason) {
        unreachable!("record_excluded")
    }

    fn set_candidates(&mut self, _: usize, _: i64) {
        unreachable!("set_candidates")
    }

    fn on_pipeline_completed(
        &mut self,
        _: &SelectionReport,
        _: &ContextBudget,
        _: &[StageTraceSnapshot],
    ) {
        unreachable!("on_pipeline_completed")
    }

    fn detail_level(&self) -> TraceDetailLevel {
        unreachable!("detail_level")
    }

    fn wants_report(&self) -> bool {
        unreachable!("wants_report")
    }

    fn on_run_started(&mut self, _: &ContextBudget) {
        unreachable!("on_run_started")
    }

    fn on_stage_started(&mut self, _: PipelineStage) {
        unreachable!("on_stage_started")
    }

    fn record_shortfall(&mut self, _: CountRequirementShortfall) {
        unreachable!("record_shortfall")
    }

    fn on_overflow(&mut self, _: &OverflowEvent) {
        unreachable!("on_overflow")
    }

    fn on_run_failed(&mut self, _: &CupelError) {
        unreachable!("on_run_failed")
    }
}

/// A run in which everything there is to tell happens: a negative count, a copy, items without
/// room, a requirement that cannot be met and an accepted overflow.
fn eventful() -> (Policy, Vec<ContextItem>, ContextBudget) {
    let entry = CountQuotaEntry::new(kind("tool"), 2, 2).unwrap();
    let slicer = CountQuotaSlice::new(vec![entry], GreedySlice, ScarcityBehavior::Degrade);
    let policy = policy()
        .slicer(slicer.unwrap())
        .overflow_strategy(OverflowStrategy::Proceed)
        .build();
    let tool = ContextItem::builder("t", 95).kind(kind("Tool"));
    let items = vec![
        hinted("copy", 10, 0.5),
        pinned("p", 10),
        hinted("negative", -1, 0.9),
        hinted("copy", 10, 0.9),
        build(tool.future_relevance_hint(0.6)),
        hinted("big", 500, 0.8),
        hinted("b", 10, 0.7),
    ];
    (policy.unwrap(), items, budget(100))
}

const EVENTFUL: &str = "\
run 100
candidates 7 634
enter Classify
item Classify NegativeTokens: -1 tokens
out negative 0 NegativeTokens
stage Classify 6
enter Score
stage Score 5
enter Deduplicate
item Deduplicate Deduplicated: same content as \"copy\"
out copy 0.5 Deduplicated
stage Deduplicate 4
enter Slice
item Slice BudgetExceeded: 10 tokens requested, -5 available
out copy 0.9 BudgetExceeded
item Slice BudgetExceeded: 500 tokens requested, -5 available
out big 0.8 BudgetExceeded
item Slice BudgetExceeded: 10 tokens requested, -5 available
out b 0.7 BudgetExceeded
stage Slice 1
short tool 2 1
enter Place
overflow 5 p t
stage Place 2
in p 1 Pinned
in t 0.6 Scored
completed 2 5";

/// Runs, and compares every call with the lines expected.
fn check(
    log: &mut Log,
    policy: &Policy,
    items: &[ContextItem],
    budget: &ContextBudget,
    expected: &[&str],
) {
    log.lines.clear();
    let result = policy.run_traced(items, budget, log);
    assert_eq!(result, policy.run(items, budget), "tracing changes nothing");
    assert_eq!(log.lines, expected);
}

// proves: GEN-7, TRACE-8, TRACE-9, TRACE-10, EVENT-3, EVENT-6, EVENT-7, EVENT-8, EVENT-11, EVENT-12, R047, R094, R100, R103, CQ-14, R083
#[test]
fn a_collector_is_told_everything_in_order() {
    let (policy, items, budget) = eventful();
    let expected: Vec<_> = EVENTFUL.lines().collect();
    let mut log = Log::at(TraceDetailLevel::Item);
    check(&mut log, &policy, &items, &budget, &expected);
}

// proves: TRACE-5, TRACE-6, TRACE-7, R099
#[test]
fn at_level_stage_only_the_item_events_are_missing() {
    let (policy, items, budget) = eventful();
    let expected: Vec<_> = EVENTFUL
        .lines()
        .filter(|line| !line.starts_with("item"))
        .collect();
    let mut log = Log::at(TraceDetailLevel::Stage);
    check(&mut log, &policy, &items, &budget, &expected);
}

#[test]
fn a_collector_that_wants_no_report_gets_everything_else() {
    let (policy, items, budget) = eventful();
    let expected = EVENTFUL.strip_suffix("\ncompleted 2 5").unwrap();
    let mut log = Log::at(TraceDetailLevel::Item);
    log.without_report = true;
    check(
        &mut log,
        &policy,
        &items,
        &budget,
        &expected.lines().collect::<Vec<_>>(),
    );
}

/// The lines of a run in which nothing is left over.
const UNEVENTFUL: [&str; 13] = [
    "run 9",
    "candidates 0 0",
    "enter Classify",
    "stage Classify 0",
    "enter Score",
    "stage Score 0",
    "enter Deduplicate",
    "stage Deduplicate 0",
    "enter Slice",
    "stage Slice 0",
    "enter Place",
    "stage Place 0",
    "completed 0 0",
];

// proves: EVENT-6, GEN-7, CLASSIFY-7, TRACE-10
#[test]
fn an_empty_run_has_one_event_per_stage() {
    let policy = policy().build().unwrap();
    let mut log = Log::at(TraceDetailLevel::Item);
    check(&mut log, &policy, &[], &budget(9), &UNEVENTFUL);
}

// proves: R097, DIAG-2
#[test]
fn a_second_run_starts_a_collector_afresh() {
    let (eventful, items, budget) = eventful();
    let quiet = policy().build().unwrap();
    let mut collector = DiagnosticTraceCollector::new(TraceDetailLevel::Item);
    eventful
        .run_traced(&items, &budget, &mut collector)
        .unwrap();
    quiet
        .run_traced(&items[1..2], &budget, &mut collector)
        .unwrap();
    let report = timeless(collector.into_report());
    assert_eq!(
        report,
        timeless(quiet.dry_run(&items[1..2], &budget).unwrap())
    );
    assert_eq!(report.total_candidates, 1);
    assert_eq!(report.count_requirement_shortfalls, []);
}

/// A policy, its candidates, the error of its run, and the stages that finish before it.
type Failing = (PolicyBuilder, Vec<ContextItem>, &'static str, usize);

/// A run that fails in each stage that can fail.
fn failing() -> [Failing; 4] {
    let items = || {
        vec![
            item("negative", -7),
            hinted("x", 60, 0.9),
            hinted("x", 60, 0.5),
        ]
    };
    let scorer = score_all_by(|_| Err(CupelError::ScorerConfig("no".to_owned())));
    let slicer = slice_by(|_, _| Err(CupelError::SlicerConfig("no".to_owned())));
    let (mut too_much, mut crowded) = (items(), items());
    too_much.push(pinned("p", 101));
    crowded.push(hinted("y", 60, 0.4));
    [
        (policy(), too_much, "PinnedExceedsBudget", 0),
        (policy().scorer(scorer), items(), "ScorerConfig", 1),
        (policy().slicer(slicer), items(), "SlicerConfig", 3),
        (policy().slicer(everything()), crowded, "Overflow", 4),
    ]
}

// proves: R098, R097, REPORT-6, REPORT-7, TRACE-11
#[test]
fn the_report_of_a_failed_run_holds_what_finished_and_adds_up() {
    for (policy, items, code, stages) in failing() {
        let policy = policy.build().unwrap();
        let mut collector = DiagnosticTraceCollector::default();
        // What an earlier run has left behind is gone as well.
        policy
            .run_traced(&items[..1], &budget(100), &mut collector)
            .ok();
        let error = policy
            .run_traced(&items, &budget(100), &mut collector)
            .unwrap_err();
        assert_eq!(error.code(), code);
        let report = collector.into_report();
        check_consistent(&report);
        assert_eq!(report.included, []);
        let finished: Vec<_> = report.events.iter().map(|event| event.stage).collect();
        assert_eq!(finished, PipelineStage::ALL[..stages]);
    }
}

// proves: EVENT-6, R113
#[test]
fn a_failed_run_ends_with_its_error_and_never_completes() {
    for (policy, items, code, stages) in failing() {
        let mut log = Log::at(TraceDetailLevel::Item);
        let result = policy
            .build()
            .unwrap()
            .run_traced(&items, &budget(100), &mut log);
        assert!(result.is_err());
        let entered = log.lines.iter().filter(|line| line.starts_with("enter"));
        assert_eq!(entered.count(), stages + 1);
        assert_eq!(log.lines.last(), Some(&format!("failed {code}")));
        assert!(log.completed.is_none());
    }
}

/// Runs everything there is with a collector that is disabled.
fn check_told_nothing(collector: &mut dyn TraceCollector) {
    let (eventful, items, budget) = eventful();
    assert!(eventful.run_traced(&items, &budget, collector).is_ok());
    for (policy, items, _, _) in failing() {
        let policy = policy.build().unwrap();
        assert!(policy.run_traced(&items, &budget, collector).is_err());
    }
}

// proves: DIAG-3, TRACE-1, R101
#[test]
fn a_disabled_collector_is_asked_whether_it_is_enabled_and_nothing_else() {
    check_told_nothing(&mut Deaf);
    check_told_nothing(&mut Box::new(Deaf));
    check_told_nothing(&mut (Box::new(Deaf) as Box<dyn TraceCollector>));
    check_told_nothing(&mut &mut Deaf);
    check_told_nothing(&mut (Deaf, Deaf));
    check_told_nothing(&mut ((Deaf, ()), (NullTraceCollector, Deaf)));
    check_told_nothing(&mut ());
    check_told_nothing(&mut NullTraceCollector);
}

// proves: DIAG-3, R101
#[test]
fn the_disabled_half_of_a_pair_is_told_nothing() {
    let (policy, items, budget) = eventful();
    let log = || Log::at(TraceDetailLevel::Item);
    let mut first = (Deaf, log());
    let mut last = (log(), Deaf);
    let mut nested = ((Deaf, log()), (Deaf, Deaf));
    policy.run_traced(&items, &budget, &mut first).unwrap();
    policy.run_traced(&items, &budget, &mut last).unwrap();
    policy.run_traced(&items, &budget, &mut nested).unwrap();
    for log in [first.1, last.0, nested.0.1] {
        assert_eq!(log.lines.join("\n"), EVENTFUL);
    }
}

// proves: DIAG-2
#[test]
fn pointers_and_pairs_forward_every_call() {
    let (eventful, items, budget) = eventful();
    let log = || Log::at(TraceDetailLevel::Item);
    let (mut one, mut boxed, mut pair, mut many) = (
        log(),
        Box::new(log()),
        (log(), log()),
        (Box::new(log()), ((), (log(), NullTraceCollector))),
    );
    let mut collectors: [&mut dyn TraceCollector; 4] =
        [&mut &mut one, &mut boxed, &mut pair, &mut many];
    for collector in &mut collectors {
        eventful.run_traced(&items, &budget, collector).unwrap();
        let (failing, items, _, _) = failing().into_iter().next().unwrap();
        let failing = failing.build().unwrap();
        failing.run_traced(&items, &budget, collector).unwrap_err();
    }
    let failed = "run 100\ncandidates 4 214\nenter Classify\nfailed PinnedExceedsBudget";
    let (second, third) = pair;
    let (fourth, ((), (fifth, _))) = many;
    for log in [one, *boxed, second, third, *fourth, fifth] {
        assert_eq!(log.lines.join("\n"), format!("{EVENTFUL}\n{failed}"));
        assert!(log.completed.is_some());
    }
}

#[test]
fn only_the_half_of_a_pair_that_wants_a_report_gets_one() {
    let (policy, items, budget) = eventful();
    let silent = || Log {
        without_report: true,
        ..Log::default()
    };
    let mut first = (silent(), Log::default());
    let mut last = (Log::default(), silent());
    let mut none = (silent(), silent());
    policy.run_traced(&items, &budget, &mut first).unwrap();
    policy.run_traced(&items, &budget, &mut last).unwrap();
    policy.run_traced(&items, &budget, &mut none).unwrap();
    let got = [first.0, first.1, last.0, last.1, none.0, none.1].map(|log| log.completed.is_some());
    assert_eq!(got, [false, true, true, false, false, false]);
}

// proves: TRACE-6, R099
#[test]
fn each_of_a_pair_gets_the_events_of_its_own_level() {
    let (policy, items, budget) = eventful();
    let collector = DiagnosticTraceCollector::new;
    let (stage, item) = (TraceDetailLevel::Stage, TraceDetailLevel::Item);
    let mut both = (collector(stage), collector(item));
    policy.run_traced(&items, &budget, &mut both).unwrap();
    let (few, all) = (both.0.into_report(), both.1.into_report());
    assert_eq!((few.events.len(), all.events.len()), (5, 10));
    assert_eq!((few.included, few.excluded), (all.included, all.excluded));
}

// proves: R008, R096
#[test]
fn the_candidates_total_is_told_exactly_or_at_the_end_of_its_range() {
    for (tokens, told) in [([i64::MAX; 2], i64::MAX), ([i64::MAX, i64::MIN], -1)] {
        let mut log = Log::default();
        let items = tokens.map(|tokens| item("x", tokens));
        policy()
            .build()
            .unwrap()
            .run_traced(&items, &budget(9), &mut log)
            .unwrap();
        assert_eq!(log.lines[1], format!("candidates 2 {told}"));
    }
}

// proves: TRACE-1, TRACE-3, TRACE-4, TRACE-7, TRACE-13, R030
#[test]
fn there_is_a_silent_collector_and_a_buffering_one_at_level_stage() {
    assert!(!NullTraceCollector.is_enabled());
    assert!(!().is_enabled());
    assert_eq!(size_of::<NullTraceCollector>(), 0);
    let buffering = DiagnosticTraceCollector::default();
    assert!(buffering.is_enabled());
    assert_eq!(buffering.detail_level(), TraceDetailLevel::Stage);
    assert_eq!(TraceDetailLevel::default(), TraceDetailLevel::Stage);
    assert!(TraceDetailLevel::Stage < TraceDetailLevel::Item);
}

// proves: TRACE-5, TRACE-6, TRACE-9
#[test]
fn a_buffering_collector_discards_item_events_below_level_item() {
    let stage = || TraceEvent::stage(PipelineStage::Slice, 1.0, 2);
    let about = || TraceEvent::item(PipelineStage::Slice, "gone");
    for (level, expected) in [
        (TraceDetailLevel::Stage, vec![stage()]),
        (TraceDetailLevel::Item, vec![about(), stage()]),
    ] {
        let mut collector = DiagnosticTraceCollector::new(level);
        collector.record_item_event(about());
        collector.record_stage_event(stage());
        assert_eq!(collector.into_report().events, expected);
    }
}

// proves: TRACE-9, TRACE-12, EVENT-7
#[test]
fn a_callback_sees_every_event_the_moment_it_is_recorded() {
    for level in [TraceDetailLevel::Stage, TraceDetailLevel::Item] {
        let seen = Seen::nothing();
        let (by_callback, by_slicer) = (seen.clone(), seen.clone());
        let slicer = select_by(move |_, _| {
            by_slicer.push("slicing".to_owned());
            Ok(Selection::default())
        });
        let callback = Box::new(move |event: &TraceEvent| {
            let name = event.stage.name();
            by_callback.push(match &event.message {
                Some(message) => format!("{name} {message}"),
                None => name.to_owned(),
            });
        });
        let mut collector = DiagnosticTraceCollector::with_callback(level, callback);
        let policy = policy().slicer(slicer).build().unwrap();
        let items = [item("negative", -1), item("a", 5)];
        policy
            .run_traced(&items, &budget(9), &mut collector)
            .unwrap();
        let expected = [
            "Classify NegativeTokens: -1 tokens",
            "Classify",
            "Score",
            "Deduplicate",
            "slicing",
            "Slice BudgetExceeded: 5 tokens requested, 9 available",
            "Slice",
            "Place",
        ];
        let shown = |line: &&str| level == TraceDetailLevel::Item || !line.contains(':');
        assert_eq!(
            seen.take(),
            expected.into_iter().filter(shown).collect::<Vec<_>>()
        );
        let lines = if level == TraceDetailLevel::Item {
            7
        } else {
            5
        };
        assert_eq!(collector.into_report().events.len(), lines);
    }
}

// proves: R102, R104, REPORT-3, REPORT-4, REPORT-16, TRACE-11, DIAG-4
#[test]
fn every_way_to_a_report_gives_the_same_report() {
    let (policy, items, budget) = eventful();
    let item = TraceDetailLevel::Item;
    let mut both = (DiagnosticTraceCollector::new(item), Log::at(item));
    let window = policy.run_traced(&items, &budget, &mut both).unwrap();
    let own = both.0.into_report();
    let (completed, told_budget, _) = both.1.completed.unwrap();
    assert_eq!(completed, own);
    assert_eq!(told_budget, budget);
    assert_eq!(included(&own), contents(&window));
    let dry = policy.dry_run(&items, &budget).unwrap();
    let by_pipeline = policy.clone();
    let other = super::policy().build().unwrap();
    for report in [
        own,
        by_pipeline.dry_run(&items, &budget).unwrap(),
        other.dry_run_with_policy(&items, &budget, &policy).unwrap(),
    ] {
        assert_eq!(timeless(report), timeless(dry.clone()));
    }
}

// proves: R099, R104, TRACE-6
#[test]
fn the_level_gates_events_only() {
    let (policy, items, budget) = eventful();
    let mut dry = policy.dry_run(&items, &budget).unwrap();
    assert_eq!(
        dry.events
            .iter()
            .filter(|event| event.message.is_some())
            .count(),
        5
    );
    dry.events.retain(|event| event.message.is_none());
    let stage = TraceDetailLevel::Stage;
    let mut both = (DiagnosticTraceCollector::new(stage), Log::at(stage));
    policy.run_traced(&items, &budget, &mut both).unwrap();
    let (completed, _, _) = both.1.completed.unwrap();
    assert_eq!(timeless(completed), timeless(dry.clone()));
    assert_eq!(timeless(both.0.into_report()), timeless(dry));
}

fn snapshots(
    policy: &Policy,
    items: &[ContextItem],
    budget: &ContextBudget,
) -> Vec<StageTraceSnapshot> {
    let mut log = Log::default();
    policy.run_traced(items, budget, &mut log).unwrap();
    let (report, _, snapshots) = log.completed.unwrap();
    let durations = snapshots.iter().map(|snapshot| snapshot.duration_ms);
    let told = report.events.iter().map(|event| event.duration_ms);
    assert!(durations.eq(told), "a snapshot has the time of its event");
    snapshots
}

// proves: R114, R094, GEN-7
#[test]
fn a_snapshot_counts_what_enters_and_leaves_each_stage() {
    let counts = |snapshots: Vec<StageTraceSnapshot>| -> Vec<_> {
        let stages: Vec<_> = snapshots.iter().map(|snapshot| snapshot.stage).collect();
        assert_eq!(stages, PipelineStage::ALL);
        let counts = snapshots.into_iter();
        counts
            .map(|s| (s.item_count_in, s.item_count_out, s.excluded.len()))
            .collect()
    };
    let (eventful, items, enough) = eventful();
    assert_eq!(
        counts(snapshots(&eventful, &items, &enough)),
        [(7, 6, 1), (5, 5, 0), (5, 4, 1), (4, 1, 3), (2, 2, 0)]
    );
    let truncating = policy()
        .slicer(everything())
        .overflow_strategy(OverflowStrategy::Truncate)
        .build()
        .unwrap();
    assert_eq!(
        counts(snapshots(&truncating, &items, &enough)),
        [(7, 6, 1), (5, 5, 0), (5, 4, 1), (4, 4, 0), (5, 3, 2)]
    );
}

// proves: R103
#[test]
fn a_snapshot_lists_exclusions_in_the_order_they_happened() {
    let (policy, items, budget) = eventful();
    let snapshots = snapshots(&policy, &items, &budget);
    let names = |index: usize| -> Vec<_> {
        let excluded = snapshots[index].excluded.iter();
        excluded
            .map(|excluded| (excluded.item.content(), excluded.score))
            .collect()
    };
    assert_eq!(names(0), [("negative", 0.0)]);
    assert_eq!(names(2), [("copy", 0.5)]);
    assert_eq!(names(3), [("copy", 0.9), ("big", 0.8), ("b", 0.7)]);
}

/// A pinned item, two sliced ones that together exceed 100 tokens by 10, and a budget with
/// every field set.
fn crowd() -> ([ContextItem; 3], ContextBudget) {
    let budget = ContextBudget::builder(500)
        .target_tokens(100)
        .output_reserve(20)
        .reserved_slot(kind("memory"), 5)
        .safety_margin_percent(1.0);
    let items = [
        hinted("low", 40, 0.1),
        hinted("high", 40, 0.9),
        pinned("p", 30),
    ];
    (items, budget.build().unwrap())
}

// proves: R047, PLACE-11, ENUM-15, EVENT-11, EVENT-12, BUDGET-12
#[test]
fn an_accepted_overflow_reaches_the_observer_from_every_entry_point() {
    let seen = Seen::nothing();
    let observer = seen.clone();
    let policy = policy()
        .slicer(everything())
        .placer(cupel::UShapedPlacer)
        .overflow_strategy(OverflowStrategy::Proceed)
        .on_overflow(move |event| observer.push(event.clone()))
        .build()
        .unwrap();
    let (items, budget) = crowd();
    let [low, high, p] = items.clone();
    let expected = OverflowEvent::new(10, vec![p, high, low], budget.clone());
    let mut log = Log::default();
    policy.run(&items, &budget).unwrap();
    policy.dry_run(&items, &budget).unwrap();
    policy.run_traced(&items, &budget, &mut log).unwrap();
    policy.run_indices(&items, &budget).unwrap();
    let events = seen.take();
    assert_eq!(
        events,
        [
            expected.clone(),
            expected.clone(),
            expected.clone(),
            expected
        ]
    );
    for (told, own) in events[0].overflowing_items.iter().zip([2, 1, 0]) {
        assert!(told.is_same(&items[own]));
    }
    assert!(log.lines.contains(&"overflow 10 p high low".to_owned()));
}

// proves: EVENT-13, ENUM-13, ENUM-16, PLACE-11
#[test]
fn nothing_is_told_of_an_overflow_that_was_not_accepted_or_did_not_happen() {
    let fits = [hinted("low", 40, 0.1), pinned("p", 60)];
    for (strategy, items) in [
        (OverflowStrategy::Throw, crowd().0.to_vec()),
        (OverflowStrategy::Truncate, crowd().0.to_vec()),
        (OverflowStrategy::Throw, fits.to_vec()),
        (OverflowStrategy::Truncate, fits.to_vec()),
        (OverflowStrategy::Proceed, fits.to_vec()),
    ] {
        let policy = policy()
            .slicer(everything())
            .overflow_strategy(strategy)
            .on_overflow(|_| unreachable!("no overflow was accepted"))
            .build()
            .unwrap();
        let mut log = Log::default();
        policy.run_traced(&items, &crowd().1, &mut log).ok();
        assert!(!log.lines.iter().any(|line| line.starts_with("overflow")));
    }
}

// proves: CQ-13, CQ-14, CCK-6, R083, R084, REPORT-2
#[test]
fn shortfalls_reach_collectors_and_reports_through_decorators() {
    let entries = ["tool", "memory"].map(|name| CountQuotaEntry::new(kind(name), 3, 3).unwrap());
    let counts = CountQuotaSlice::new(entries.into(), GreedySlice, ScarcityBehavior::Degrade);
    let slicer = QuotaSlice::new(vec![], counts.unwrap()).unwrap();
    let policy = policy().slicer(slicer).build().unwrap();
    let items = [build(ContextItem::builder("m", 1).kind(kind("MEMORY")))];
    let expected = [
        CountRequirementShortfall::new("tool", 3, 0),
        CountRequirementShortfall::new("memory", 3, 1),
    ];
    let mut both = (DiagnosticTraceCollector::default(), Log::default());
    policy.run_traced(&items, &budget(9), &mut both).unwrap();
    let lines = both.1.lines.iter().filter(|line| line.starts_with("short"));
    assert_eq!(
        lines.collect::<Vec<_>>(),
        ["short tool 3 0", "short memory 3 1"]
    );
    let dry = policy.dry_run(&items, &budget(9)).unwrap();
    assert_eq!(dry.count_requirement_shortfalls, expected);
    assert_eq!(both.0.into_report().count_requirement_shortfalls, expected);
    let unasked = super::policy().build().unwrap().dry_run(&items, &budget(9));
    assert_eq!(unasked.unwrap().count_requirement_shortfalls, []);
}

// proves: R083
#[test]
fn a_slicer_shared_by_runs_keeps_no_shortfall() {
    let entry = CountQuotaEntry::new(kind("Message"), 1, 1).unwrap();
    let counts = CountQuotaSlice::new(vec![entry], GreedySlice, ScarcityBehavior::Degrade);
    let tool = build(ContextItem::builder("t", 1).kind(kind("tool")));
    let policy = policy().slicer(counts.unwrap()).build().unwrap();
    let short = |items: &[ContextItem]| {
        let report = policy.dry_run(items, &budget(9)).unwrap();
        report.count_requirement_shortfalls.len()
    };
    assert_eq!(
        [
            short(std::slice::from_ref(&tool)),
            short(&[item("m", 1), tool])
        ],
        [1, 0]
    );
}

// proves: DIAG-4
#[test]
fn collectors_never_change_a_run() {
    let mut random = Random::new(4);
    for round in 0..300 {
        let names: Vec<_> = (0..random.below(8))
            .map(|_| format!("{}", random.below(6)))
            .collect();
        let items: Vec<_> = names.iter().map(|name| random.item(name)).collect();
        let strategy = random.pick(&[
            OverflowStrategy::Throw,
            OverflowStrategy::Truncate,
            OverflowStrategy::Proceed,
        ]);
        let mut policy = policy()
            .overflow_strategy(strategy)
            .deduplication(round % 2 == 0);
        if round % 3 == 0 {
            policy = policy.slicer(everything());
        }
        let policy = policy.build().unwrap();
        let budget = budget(random.pick(&[0, 10, 50, 200]));
        let plain = policy.run(&items, &budget);
        let item = TraceDetailLevel::Item;
        let mut collectors: [Box<dyn TraceCollector>; 6] = [
            Box::new(()),
            Box::new(NullTraceCollector),
            Box::new(DiagnosticTraceCollector::default()),
            Box::new(DiagnosticTraceCollector::new(item)),
            Box::new(Log::at(item)),
            Box::new((Log::default(), DiagnosticTraceCollector::new(item))),
        ];
        for collector in &mut collectors {
            let traced = policy.run_traced(&items, &budget, collector);
            assert_eq!(handles(&items, &traced), handles(&items, &plain));
        }
    }
}

/// A window by the positions of its handles, which also tells items with a NaN hint apart.
fn handles(
    items: &[ContextItem],
    window: &Result<Vec<ContextItem>, CupelError>,
) -> Result<Vec<Option<usize>>, CupelError> {
    let position = |item: &ContextItem| items.iter().position(|other| other.is_same(item));
    let window = window.as_ref().map_err(Clone::clone)?;
    Ok(window.iter().map(position).collect())
}

// proves: EVENT-1, EVENT-2, EVENT-3
#[test]
fn stage_events_carry_wall_clock_time_and_item_events_none() {
    let slow = score_by(|item, all_items| {
        std::thread::sleep(Duration::from_millis(2));
        cupel::ReflexiveScorer.score(item, all_items)
    });
    let (_, items, budget) = eventful();
    let policy = policy().scorer(slow).build().unwrap();
    let report = policy.dry_run(&items, &budget).unwrap();
    for event in &report.events {
        assert!(event.duration_ms.is_finite() && event.duration_ms >= 0.0);
        if event.message.is_some() {
            assert_eq!((event.duration_ms, event.item_count), (0.0, 1));
        }
        if event.stage == PipelineStage::Score {
            assert!(event.duration_ms >= 10.0, "five items of two milliseconds");
        }
    }
}

// proves: DIAG-1, DIAG-2
#[test]
fn one_pipeline_serves_two_threads_with_a_collector_each() {
    let (policy, items, budget) = eventful();
    let pipeline = policy;
    let barrier = Barrier::new(2);
    let check = |items: &[ContextItem]| {
        let expected = timeless(pipeline.dry_run(items, &budget).unwrap());
        barrier.wait();
        for _ in 0..100 {
            let mut collector = DiagnosticTraceCollector::new(TraceDetailLevel::Item);
            pipeline.run_traced(items, &budget, &mut collector).unwrap();
            assert_eq!(timeless(collector.into_report()), expected);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| check(&items));
        scope.spawn(|| check(&items[3..]));
    });
}

// proves: DIAG-1
#[test]
fn a_pipeline_keeps_no_collector() {
    let (policy, items, budget) = eventful();
    let count = Rc::new(RefCell::new(0));
    let counter = Rc::clone(&count);
    let callback = Box::new(move |_: &TraceEvent| *counter.borrow_mut() += 1);
    let mut first = DiagnosticTraceCollector::with_callback(TraceDetailLevel::Stage, callback);
    policy.run_traced(&items, &budget, &mut first).unwrap();
    assert_eq!(*count.borrow(), 5);
    policy.run(&items, &budget).unwrap();
    policy
        .run_traced(&items, &budget, &mut Log::default())
        .unwrap();
    assert_eq!(*count.borrow(), 5);
}

// proves: REPORT-1, REPORT-4, REPORT-5, REPORT-9, REPORT-10, REPORT-13, R092, R103, PLACE-10
#[test]
fn excluded_items_of_equal_score_stand_in_the_order_of_their_exclusion() {
    let slicer = select_by(|ranked, _| {
        assert_eq!(ranked[2].item.content(), "sliced away");
        Ok(Selection::keep(vec![1, 0]))
    });
    let policy = policy()
        .slicer(slicer)
        .overflow_strategy(OverflowStrategy::Truncate)
        .build()
        .unwrap();
    let items = [
        item("stays", 100),
        item("truncated", 10),
        item("sliced away", 1),
        item("truncated", 11),
        item("negative", -1),
        hinted("better negative", -1, 0.9),
    ];
    let mut collector = DiagnosticTraceCollector::default();
    policy
        .run_traced(&items, &budget(105), &mut collector)
        .unwrap();
    for report in [
        collector.into_report(),
        policy.dry_run(&items, &budget(105)).unwrap(),
    ] {
        let out: Vec<_> = report
            .excluded
            .iter()
            .map(|e| (e.item.tokens(), e.score))
            .collect();
        assert_eq!(included(&report), ["stays"]);
        assert_eq!(out, [(-1, 0.0), (-1, 0.0), (11, 0.0), (1, 0.0), (10, 0.0)]);
        assert_eq!(excluded(&report)[..2], ["negative", "better negative"]);
        check_consistent(&report);
    }
}

#[test]
fn item_events_have_the_reasons_of_the_report() {
    // The slicer keeps 120 of 105 tokens; truncation leaves 45.
    let policy = policy()
        .slicer(select_by(|_, _| Ok(Selection::keep(vec![0, 1]))))
        .overflow_strategy(OverflowStrategy::Truncate)
        .build()
        .unwrap();
    let items = [item("stays", 60), item("truncated", 60), item("sliced", 7)];
    let mut collector = DiagnosticTraceCollector::new(TraceDetailLevel::Item);
    policy
        .run_traced(&items, &budget(105), &mut collector)
        .unwrap();
    let report = collector.into_report();
    let reasons: Vec<_> = report.excluded.iter().map(|it| &it.reason).collect();
    let exceeded = |item_tokens, available_tokens| ExclusionReason::BudgetExceeded {
        item_tokens,
        available_tokens,
    };
    assert_eq!(reasons, [&exceeded(7, -15), &exceeded(60, 45)]);
    let messages = report.events.iter().filter_map(|it| it.message.clone());
    let reasons = reasons.iter().map(ToString::to_string);
    assert!(messages.eq(reasons), "{:?}", report.events);
}

// proves: REPORT-8, REPORT-11, REPORT-15, R033, R090, R091, R093, SCORE-5
#[test]
fn reported_scores_are_the_ones_the_run_decided_by() {
    let calls = Seen::nothing();
    let counter = calls.clone();
    // The answer changes with every call, so that a second one would show.
    let scorer = score_by(move |item, _| {
        counter.push(item.content().to_owned());
        0.5 + 0.001 * counter.0.lock().unwrap().len() as f64
    });
    let policy = policy().scorer(scorer).build().unwrap();
    let items = [
        item("a", 1),
        item("free", 0),
        pinned("p", 0),
        item("a", 2),
        item("big", 99),
    ];
    let report = policy.dry_run(&items, &budget(9)).unwrap();
    let inside: Vec<_> = report
        .included
        .iter()
        .map(|i| (i.score, i.reason.name()))
        .collect();
    let outside: Vec<_> = report
        .excluded
        .iter()
        .map(|e| (e.score, e.reason.name()))
        .collect();
    assert_eq!(
        inside,
        [(1.0, "Pinned"), (0.503, "Scored"), (0.502, "ZeroToken")]
    );
    assert_eq!(
        outside,
        [(0.504, "BudgetExceeded"), (0.501, "Deduplicated")]
    );
    assert_eq!(calls.take(), owned(&["a", "free", "a", "big"]));
}

/// The wire form of events and reports.
#[cfg(feature = "serde")]
mod wire {
    use cupel::{ExclusionReason, OverflowEvent, PipelineStage, SelectionReport, TraceEvent};
    use serde_json::{Value, json};

    use super::{budget, crowd, eventful, timeless};

    fn written(value: &impl serde::Serialize) -> Value {
        serde_json::to_value(value).expect("can be written")
    }

    // proves: EVENT-1, EVENT-4, EVENT-5, R108
    #[test]
    fn an_event_without_a_message_is_written_without_one() {
        for (stage, name) in PipelineStage::ALL.into_iter().zip([
            "Classify",
            "Score",
            "Deduplicate",
            "Slice",
            "Place",
        ]) {
            let event = TraceEvent::stage(stage, 1.5, 3);
            let expected = json!({"stage": name, "duration_ms": 1.5, "item_count": 3});
            assert_eq!(written(&event), expected);
            let mut with_null = expected;
            with_null["message"] = Value::Null;
            assert_eq!(
                serde_json::from_value::<TraceEvent>(with_null).unwrap(),
                event
            );
        }
        assert_eq!(
            written(&TraceEvent::item(PipelineStage::Slice, "gone")),
            json!({"stage": "Slice", "duration_ms": 0.0, "item_count": 1, "message": "gone"})
        );
    }

    // proves: EVENT-9, R105
    #[test]
    fn a_stage_of_another_version_survives_reading_and_writing() {
        let document = json!({"stage": "Rerank", "duration_ms": 0.5, "item_count": 2});
        let event: TraceEvent = serde_json::from_value(document.clone()).unwrap();
        assert_eq!(event.stage.name(), "Rerank");
        assert_eq!(written(&event), document);
    }

    // proves: EXCL-14, EXCL-15, EXCL-16, R105
    #[test]
    fn a_reason_of_another_version_survives_with_its_fields() {
        let document = json!({"reason": "Stale", "age": 7, "why": ["a", null], "how": {"x": 0.5}});
        let reason: ExclusionReason = serde_json::from_value(document.clone()).unwrap();
        assert_eq!(reason.name(), "Stale");
        assert_eq!(written(&reason), document);
    }

    // proves: REPORT-1, REPORT-2, REPORT-14, REPORT-15, REPORT-17, EXCL-15, EXCL-16, EXCL-17
    #[test]
    fn a_report_is_written_under_the_specified_keys_and_read_back() {
        let (policy, items, budget) = eventful();
        let report = timeless(policy.dry_run(&items, &budget).unwrap());
        let document = written(&report);
        let keys =
            |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
        let mut expected = [
            "events",
            "included",
            "excluded",
            "total_candidates",
            "total_tokens_considered",
            "count_requirement_shortfalls",
        ];
        expected.sort_unstable();
        let mut found = keys(&document);
        found.sort_unstable();
        assert_eq!(found, expected);
        assert_eq!(
            document["included"][0]["reason"],
            json!({"reason": "Pinned"})
        );
        assert_eq!(document["included"][0].as_object().unwrap().len(), 3);
        assert_eq!(document["excluded"][0].as_object().unwrap().len(), 3);
        assert_eq!(
            document["excluded"][0]["reason"],
            json!({"reason": "BudgetExceeded", "item_tokens": 10, "available_tokens": -5})
        );
        let read: SelectionReport = serde_json::from_value(document).unwrap();
        assert_eq!(read, report);
    }

    // proves: EVENT-11, EVENT-14, R107
    #[test]
    fn an_overflow_event_is_written_in_snake_case_and_read_in_both_spellings() {
        let (items, _) = crowd();
        let event = OverflowEvent::new(10, items.to_vec(), budget(100));
        let mut document = written(&event);
        assert_eq!(document["tokens_over_budget"], 10);
        assert_eq!(document["budget"]["max_tokens"], 100);
        assert_eq!(document["overflowing_items"][0]["content"], "low");
        document["budget"] = json!({"maxTokens": 100, "targetTokens": 100});
        let read: OverflowEvent = serde_json::from_value(document).unwrap();
        assert_eq!(read, event);
    }
}
