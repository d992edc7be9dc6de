//! `cupel::diagnostics`: reports, reasons, events and collectors.

use std::cell::RefCell;
use std::rc::Rc;

use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, CountRequirementShortfall, CupelError,
    DiagnosticTraceCollector, ExcludedItem, ExclusionReason, GreedySlice, IncludedItem,
    InclusionReason, NullTraceCollector, OverflowEvent, Pipeline, PipelineStage, ReflexiveScorer,
    SelectionReport, StageTraceSnapshot, TraceCollector, TraceDetailLevel, TraceEvent,
};

use super::{budget, contents, hinted, item, pinned};

fn pipeline() -> Pipeline {
    Pipeline::builder()
        .scorer(Box::new(ReflexiveScorer))
        .slicer(Box::new(GreedySlice))
        .placer(Box::new(ChronologicalPlacer))
        .build()
        .unwrap()
}

/// One candidate for every reason a built-in run has to keep or drop it by itself.
fn candidates() -> Vec<ContextItem> {
    vec![
        pinned("rules", 10),
        hinted("best", 40, 0.9),
        hinted("best", 40, 0.4),
        hinted("late", 60, 0.5),
        hinted("free", 0, 0.3),
        item("broken", -5),
    ]
}

fn report() -> SelectionReport {
    pipeline()
        .dry_run(&candidates(), &budget(100, 100))
        .unwrap()
}

/// The events of whole stages, which carry no message.
fn stage_events(events: &[TraceEvent]) -> Vec<TraceEvent> {
    let whole = events.iter().filter(|event| event.message.is_none());
    whole.cloned().collect()
}

#[test]
fn a_report_is_read_field_by_field() {
    let report = report();
    let SelectionReport {
        events,
        included,
        excluded,
        total_candidates,
        total_tokens_considered,
        count_requirement_shortfalls,
        ..
    } = &report;
    let _: &Vec<TraceEvent> = events;
    let _: &Vec<IncludedItem> = included;
    let _: &Vec<ExcludedItem> = excluded;
    let _: (&usize, &i64) = (total_candidates, total_tokens_considered);
    let _: &Vec<CountRequirementShortfall> = count_requirement_shortfalls;
    assert_eq!(
        (report.total_candidates, report.total_tokens_considered),
        (6, 145)
    );
    assert!(report.count_requirement_shortfalls.is_empty());

    let mut copy = report.clone();
    assert_eq!(copy, report);
    copy.total_candidates = 7;
    assert_ne!(copy, report);
}

// The free item's score is its computed one (R091), the pinned item's is 1.0 (R090).
//
// proves: REPORT-15, R090, R091
#[test]
fn an_included_entry_is_item_score_and_reason() {
    let report = report();
    let entries: Vec<_> = report.included.iter().map(included_parts).collect();
    assert_eq!(
        entries,
        [
            ("rules", 1.0, InclusionReason::Pinned),
            ("best", 0.9, InclusionReason::Scored),
            ("free", 0.3, InclusionReason::ZeroToken),
        ]
    );
}

fn included_parts(entry: &IncludedItem) -> (&str, f64, InclusionReason) {
    let IncludedItem {
        item,
        score,
        reason,
        ..
    } = entry;
    let _: &ContextItem = item;
    (item.content(), *score, *reason)
}

// proves: REPORT-14
#[test]
fn an_excluded_entry_is_item_score_and_reason() {
    let report = report();
    let entries: Vec<_> = report.excluded.iter().map(excluded_parts).collect();
    assert_eq!(
        entries,
        [
            (
                "late",
                0.5,
                ExclusionReason::BudgetExceeded {
                    item_tokens: 60,
                    available_tokens: 50,
                },
            ),
            (
                "best",
                0.4,
                ExclusionReason::Deduplicated {
                    deduplicated_against: "best".to_string(),
                },
            ),
            (
                "broken",
                0.0,
                ExclusionReason::NegativeTokens { tokens: -5 }
            ),
        ]
    );
}

fn excluded_parts(entry: &ExcludedItem) -> (&str, f64, ExclusionReason) {
    let ExcludedItem {
        item,
        score,
        reason,
        ..
    } = entry;
    let _: &ContextItem = item;
    (item.content(), *score, reason.clone())
}

/// A reason written out through its public fields.
fn spell(reason: &ExclusionReason) -> String {
    match reason {
        ExclusionReason::BudgetExceeded {
            item_tokens,
            available_tokens,
        } => format!("BudgetExceeded {item_tokens} {available_tokens}"),
        ExclusionReason::ScoredTooLow { score, threshold } => {
            format!("ScoredTooLow {score} {threshold}")
        }
        ExclusionReason::Deduplicated {
            deduplicated_against,
        } => format!("Deduplicated {deduplicated_against}"),
        ExclusionReason::QuotaCapExceeded { kind, cap, actual } => {
            let _: (&i64, &i64) = (cap, actual);
            format!("QuotaCapExceeded {kind} {cap} {actual}")
        }
        ExclusionReason::QuotaRequireDisplaced { displaced_by_kind } => {
            format!("QuotaRequireDisplaced {displaced_by_kind}")
        }
        ExclusionReason::NegativeTokens { tokens } => format!("NegativeTokens {tokens}"),
        ExclusionReason::PinnedOverride { displaced_by } => {
            format!("PinnedOverride {displaced_by}")
        }
        ExclusionReason::Filtered { filter_name } => format!("Filtered {filter_name}"),
        ExclusionReason::CountCapExceeded { kind, cap, count } => {
            let _: (&usize, &usize) = (cap, count);
            format!("CountCapExceeded {kind} {cap} {count}")
        }
        ExclusionReason::CountRequireCandidatesExhausted { kind } => {
            format!("CountRequireCandidatesExhausted {kind}")
        }
        ExclusionReason::_Unknown => "_Unknown".to_string(),
        _ => "another".to_string(),
    }
}

// proves: EXCL-2, EXCL-3, EXCL-4, EXCL-5, EXCL-6, EXCL-7, EXCL-8, EXCL-9, EXCL-10
#[test]
fn every_exclusion_reason_can_be_made_and_taken_apart() {
    let reasons = [
        ExclusionReason::BudgetExceeded {
            item_tokens: 1,
            available_tokens: 2,
        },
        ExclusionReason::ScoredTooLow {
            score: 0.25,
            threshold: 0.5,
        },
        ExclusionReason::Deduplicated {
            deduplicated_against: "text".to_string(),
        },
        ExclusionReason::QuotaCapExceeded {
            kind: "Memory".to_string(),
            cap: 3,
            actual: 4,
        },
        ExclusionReason::QuotaRequireDisplaced {
            displaced_by_kind: "Memory".to_string(),
        },
        ExclusionReason::NegativeTokens { tokens: -1 },
        ExclusionReason::PinnedOverride {
            displaced_by: "rules".to_string(),
        },
        ExclusionReason::Filtered {
            filter_name: "age".to_string(),
        },
        ExclusionReason::CountCapExceeded {
            kind: "Memory".to_string(),
            cap: 1,
            count: 1,
        },
        ExclusionReason::CountRequireCandidatesExhausted {
            kind: "Memory".to_string(),
        },
        ExclusionReason::_Unknown,
    ];
    let spelled: Vec<_> = reasons.iter().map(spell).collect();
    assert_eq!(
        spelled,
        [
            "BudgetExceeded 1 2",
            "ScoredTooLow 0.25 0.5",
            "Deduplicated text",
            "QuotaCapExceeded Memory 3 4",
            "QuotaRequireDisplaced Memory",
            "NegativeTokens -1",
            "PinnedOverride rules",
            "Filtered age",
            "CountCapExceeded Memory 1 1",
            "CountRequireCandidatesExhausted Memory",
            "_Unknown",
        ]
    );
    assert_eq!(
        format!("{:?}", reasons[0]),
        "BudgetExceeded { item_tokens: 1, available_tokens: 2 }"
    );
}

#[test]
fn every_inclusion_reason_stage_and_level_can_be_named() {
    fn reason(reason: InclusionReason) -> &'static str {
        match reason {
            InclusionReason::Scored => "Scored",
            InclusionReason::Pinned => "Pinned",
            InclusionReason::ZeroToken => "ZeroToken",
            _ => "another",
        }
    }
    fn stage(stage: PipelineStage) -> &'static str {
        match stage {
            PipelineStage::Classify => "Classify",
            PipelineStage::Score => "Score",
            PipelineStage::Deduplicate => "Deduplicate",
            PipelineStage::Slice => "Slice",
            PipelineStage::Place => "Place",
            _ => "another",
        }
    }
    fn level(level: TraceDetailLevel) -> &'static str {
        match level {
            TraceDetailLevel::Stage => "Stage",
            TraceDetailLevel::Item => "Item",
            _ => "another",
        }
    }

    for each in [
        InclusionReason::Scored,
        InclusionReason::Pinned,
        InclusionReason::ZeroToken,
    ] {
        assert_eq!(format!("{each:?}"), reason(each));
    }
    for each in [
        PipelineStage::Classify,
        PipelineStage::Score,
        PipelineStage::Deduplicate,
        PipelineStage::Slice,
        PipelineStage::Place,
    ] {
        assert_eq!(format!("{each:?}"), stage(each));
    }
    for each in [TraceDetailLevel::Stage, TraceDetailLevel::Item] {
        assert_eq!(format!("{each:?}"), level(each));
    }
}

// An item count is the number of items that leave the stage (R094). A dry run records at level
// Item (R104): each exclusion is told before the stage that made it (R100).
//
// proves: EVENT-5, R094, R100, R104
#[test]
fn an_event_is_stage_duration_count_and_message() {
    let report = report();
    let told: Vec<_> = report
        .events
        .iter()
        .map(|event| {
            let TraceEvent {
                stage,
                duration_ms,
                item_count,
                message,
                ..
            } = event;
            let _: &Option<String> = message;
            assert!(*duration_ms >= 0.0);
            let reason = message.as_deref().map(|text| text.split(':').next());
            (*stage, *item_count, reason.flatten())
        })
        .collect();
    assert_eq!(
        told,
        [
            (PipelineStage::Classify, 1, Some("NegativeTokens")),
            (PipelineStage::Classify, 5, None),
            (PipelineStage::Score, 4, None),
            (PipelineStage::Deduplicate, 1, Some("Deduplicated")),
            (PipelineStage::Deduplicate, 3, None),
            (PipelineStage::Slice, 1, Some("BudgetExceeded")),
            (PipelineStage::Slice, 2, None),
            (PipelineStage::Place, 3, None),
        ]
    );
}

#[test]
fn collector_methods_have_their_signatures() {
    type Null = NullTraceCollector;

    let _: fn(&Null) -> bool = TraceCollector::is_enabled;
    let _: fn(&mut Null, TraceEvent) = TraceCollector::record_stage_event;
    let _: fn(&mut Null, TraceEvent) = TraceCollector::record_item_event;
    let _: fn(&mut Null, ContextItem, f64, InclusionReason) = TraceCollector::record_included;
    let _: fn(&mut Null, ContextItem, f64, ExclusionReason) = TraceCollector::record_excluded;
    let _: fn(&mut Null, usize, i64) = TraceCollector::set_candidates;
    let _: fn(&mut Null, &SelectionReport, &ContextBudget, &[StageTraceSnapshot]) =
        TraceCollector::on_pipeline_completed;
}

#[test]
fn diagnostic_collector_methods_have_their_signatures() {
    type Diagnostic = DiagnosticTraceCollector;
    type Callback = Box<dyn Fn(&TraceEvent)>;

    let _: fn(TraceDetailLevel) -> Diagnostic = Diagnostic::new;
    let _: fn(TraceDetailLevel, Callback) -> Diagnostic = Diagnostic::with_callback;
    let _: fn(Diagnostic) -> SelectionReport = Diagnostic::into_report;
    let _: fn(&Diagnostic) -> bool = TraceCollector::is_enabled;
    let _: fn(&mut Diagnostic, TraceEvent) = TraceCollector::record_stage_event;
}

/// A custom collector with only the required methods.
#[derive(Default)]
struct Stages(Vec<PipelineStage>);

impl TraceCollector for Stages {
    fn is_enabled(&self) -> bool {
        true
    }
    fn record_stage_event(&mut self, event: TraceEvent) {
        self.0.push(event.stage);
    }
    fn record_item_event(&mut self, _event: TraceEvent) {}
}

#[test]
fn a_collector_of_three_methods_sees_the_five_stages() {
    let mut stages = Stages::default();
    pipeline()
        .run_traced(&candidates(), &budget(100, 100), &mut stages)
        .unwrap();
    assert_eq!(
        stages.0,
        [
            PipelineStage::Classify,
            PipelineStage::Score,
            PipelineStage::Deduplicate,
            PipelineStage::Slice,
            PipelineStage::Place,
        ]
    );

    let provided: &mut dyn TraceCollector = &mut stages;
    provided.record_included(item("text", 1), 0.5, InclusionReason::Scored);
    provided.record_excluded(item("text", 1), 0.5, ExclusionReason::_Unknown);
    provided.set_candidates(1, 1);
    provided.on_pipeline_completed(&report(), &budget(1, 1), &[]);
    assert_eq!(stages.0.len(), 5);
}

/// A custom collector with all seven methods that records its calls.
struct Diary {
    enabled: bool,
    lines: Vec<String>,
}

impl Diary {
    /// The lines that begin with this word are these.
    #[track_caller]
    fn check(&self, word: &str, expected: &[&str]) {
        let lines = self.lines.iter();
        let found: Vec<_> = lines
            .filter(|line| line.split(' ').next() == Some(word))
            .collect();
        assert_eq!(found, expected);
    }
}

impl TraceCollector for Diary {
    fn is_enabled(&self) -> bool {
        self.enabled
    }
    fn record_stage_event(&mut self, event: TraceEvent) {
        let line = format!("stage {:?} {}", event.stage, event.item_count);
        self.lines.push(line);
    }
    fn record_item_event(&mut self, event: TraceEvent) {
        assert_eq!((event.duration_ms, event.item_count), (0.0, 1));
    }
    fn record_included(&mut self, item: ContextItem, score: f64, reason: InclusionReason) {
        let line = format!("in {} {score} {reason:?}", item.content());
        self.lines.push(line);
    }
    fn record_excluded(&mut self, item: ContextItem, score: f64, reason: ExclusionReason) {
        let line = format!("out {} {score} {}", item.content(), spell(&reason));
        self.lines.push(line);
    }
    fn set_candidates(&mut self, total: usize, total_tokens: i64) {
        self.lines
            .push(format!("candidates {total} {total_tokens}"));
    }
    fn on_pipeline_completed(
        &mut self,
        report: &SelectionReport,
        budget: &ContextBudget,
        stage_snapshots: &[StageTraceSnapshot],
    ) {
        self.lines.push(format!(
            "completed {} of {}",
            report.included.len(),
            budget.max_tokens()
        ));
        self.lines.extend(stage_snapshots.iter().map(snapshot_line));
        let excluded = report.excluded.iter().map(|entry| entry.item.content());
        let names: Vec<_> = excluded.collect();
        self.lines.push(format!("excluded {}", names.join(" ")));
    }
}

fn snapshot_line(snapshot: &StageTraceSnapshot) -> String {
    let StageTraceSnapshot {
        stage,
        item_count_in,
        item_count_out,
        duration_ms,
        excluded,
        ..
    } = snapshot;
    let _: &Vec<ExcludedItem> = excluded;
    assert!(*duration_ms >= 0.0);
    format!(
        "{stage:?} {item_count_in} to {item_count_out}, {} out",
        excluded.len()
    )
}

// The report of the hook is sorted like any other (R102).
//
// proves: R102, R103, R114
#[test]
fn a_collector_of_seven_methods_is_told_everything_in_order() {
    let mut diary = Diary {
        enabled: true,
        lines: Vec::new(),
    };
    pipeline()
        .run_traced::<Diary>(&candidates(), &budget(100, 100), &mut diary)
        .unwrap();
    diary.check("candidates", &["candidates 6 145"]);
    diary.check(
        "stage",
        &[
            "stage Classify 5",
            "stage Score 4",
            "stage Deduplicate 3",
            "stage Slice 2",
            "stage Place 3",
        ],
    );
    diary.check(
        "out",
        &[
            "out broken 0 NegativeTokens -5",
            "out best 0.4 Deduplicated best",
            "out late 0.5 BudgetExceeded 60 50",
        ],
    );
    diary.check(
        "in",
        &[
            "in rules 1 Pinned",
            "in best 0.9 Scored",
            "in free 0.3 ZeroToken",
        ],
    );
    assert_eq!(
        diary.lines[12..],
        [
            "completed 3 of 100",
            "Classify 6 to 5, 1 out",
            "Score 4 to 4, 0 out",
            "Deduplicate 4 to 3, 1 out",
            "Slice 3 to 2, 1 out",
            "Place 3 to 3, 0 out",
            "excluded late best broken",
        ]
    );
}

// Not even the totals are told (R101).
//
// proves: R101
#[test]
fn a_disabled_collector_is_told_nothing() {
    let mut diary = Diary {
        enabled: false,
        lines: Vec::new(),
    };
    let traced = pipeline().run_traced(&candidates(), &budget(100, 100), &mut diary);
    assert_eq!(contents(&traced.unwrap()), ["rules", "best", "free"]);
    assert!(diary.lines.is_empty(), "{:?}", diary.lines);
}

#[test]
fn a_failing_run_is_never_reported_as_completed() {
    let mut diary = Diary {
        enabled: true,
        lines: Vec::new(),
    };
    let result = pipeline().run_traced(&[pinned("rules", 101)], &budget(100, 100), &mut diary);
    assert!(matches!(
        result,
        Err(CupelError::PinnedExceedsBudget {
            pinned_tokens: 101,
            available: 100,
        })
    ));
    assert!(!diary.lines.iter().any(|line| line.starts_with("completed")));
}

#[test]
fn the_null_collector_is_off_and_takes_no_room() {
    #[allow(
        clippy::default_constructed_unit_structs,
        reason = "programs of 1.2 have no other way to make one"
    )]
    let mut null = NullTraceCollector::default();
    assert!(!null.is_enabled());
    assert_eq!(size_of::<NullTraceCollector>(), 0);
    assert_eq!(format!("{null:?}"), "NullTraceCollector");

    let kept = pipeline().run_traced(&candidates(), &budget(100, 100), &mut null);
    assert_eq!(contents(&kept.unwrap()), ["rules", "best", "free"]);
}

/// What `event` leaves in a collector of this level, and whether its callback heard of it.
fn collected(level: TraceDetailLevel, as_item: bool) -> (usize, usize) {
    let heard = Rc::new(RefCell::new(Vec::new()));
    let ear = Rc::clone(&heard);
    let mut collector = DiagnosticTraceCollector::with_callback(
        level,
        Box::new(move |event: &TraceEvent| ear.borrow_mut().push(event.clone())),
    );
    assert!(collector.is_enabled());
    let event = stage_events(&report().events).remove(0);
    if as_item {
        collector.record_item_event(event);
    } else {
        collector.record_stage_event(event);
    }
    let kept = collector.into_report().events;
    let heard = heard.take();
    if !kept.is_empty() {
        assert_eq!(kept, heard);
    }
    (kept.len(), heard.len())
}

// proves: TRACE-5, TRACE-6, TRACE-12
#[test]
fn the_level_decides_about_item_events_and_nothing_else() {
    assert_eq!(collected(TraceDetailLevel::Stage, false), (1, 1));
    assert_eq!(collected(TraceDetailLevel::Item, false), (1, 1));
    assert_eq!(collected(TraceDetailLevel::Stage, true), (0, 0));
    assert_eq!(collected(TraceDetailLevel::Item, true), (1, 1));
}

// The lists are kept at both levels (R099), NaN ranks last (R009), and the totals are those of
// the lists, not by `set_candidates` (R097).
//
// proves: EXCL-13, R009, R097, R099
#[test]
fn a_collector_makes_its_report_from_what_it_was_told() {
    let reason = ExclusionReason::Filtered {
        filter_name: "age".to_string(),
    };
    for level in [TraceDetailLevel::Stage, TraceDetailLevel::Item] {
        let mut collector = DiagnosticTraceCollector::new(level);
        collector.set_candidates(99, 999);
        collector.record_included(item("second", 2), 0.1, InclusionReason::Scored);
        collector.record_included(item("first", 1), 0.9, InclusionReason::Pinned);
        for (content, score) in [
            ("low", 0.1),
            ("odd", f64::NAN),
            ("high", 0.8),
            ("twin", 0.1),
        ] {
            collector.record_excluded(item(content, 10), score, reason.clone());
        }
        let report = collector.into_report();
        let included: Vec<_> = report.included.iter().map(|it| it.item.content()).collect();
        let excluded: Vec<_> = report.excluded.iter().map(|it| it.item.content()).collect();
        assert_eq!(included, ["second", "first"]);
        assert_eq!(excluded, ["high", "low", "twin", "odd"]);
        assert_eq!(
            (report.total_candidates, report.total_tokens_considered),
            (6, 43)
        );
        assert!(report.events.is_empty());
        assert!(report.count_requirement_shortfalls.is_empty());
    }
}

#[test]
fn an_empty_collector_prints_its_seven_fields() {
    let empty = DiagnosticTraceCollector::new(TraceDetailLevel::Stage);
    assert_eq!(
        format!("{empty:?}"),
        "DiagnosticTraceCollector { events: [], included: [], excluded: [], \
         total_candidates: 0, total_tokens_considered: 0, detail_level: Stage, callback: None }"
    );
}

#[test]
fn a_collector_prints_exclusions_with_their_index_and_hides_its_callback() {
    let callback = Box::new(|_: &TraceEvent| {});
    let mut told = DiagnosticTraceCollector::with_callback(TraceDetailLevel::Item, callback);
    let reason = ExclusionReason::NegativeTokens { tokens: -1 };
    told.record_excluded(item("text", 1), 0.5, reason);
    let printed = format!("{told:?}");
    for part in [
        "excluded: [(ExcludedItem {",
        "reason: NegativeTokens { tokens: -1 } }, 0)]",
        r#"detail_level: Item, callback: Some("<callback>") }"#,
    ] {
        assert!(printed.contains(part), "{part} is not in {printed}");
    }
}

// proves: REPORT-16, TRACE-11
#[test]
fn a_traced_run_returns_the_items_and_leaves_the_report_with_the_collector() {
    let mut collector = DiagnosticTraceCollector::new(TraceDetailLevel::Item);
    let run: Result<Vec<ContextItem>, CupelError> = pipeline()
        .run_traced::<DiagnosticTraceCollector>(&candidates(), &budget(100, 100), &mut collector);
    let traced = collector.into_report();
    let names: Vec<_> = traced.included.iter().map(|it| it.item.content()).collect();
    assert_eq!(contents(&run.unwrap()), names);

    let dry = report();
    assert_eq!(traced.included, dry.included);
    assert_eq!(traced.excluded, dry.excluded);
    assert_eq!(traced.events.len(), dry.events.len());
    assert_eq!(stage_events(&traced.events).len(), 5);
}

/// Reads an event of which other crates have no constructor.
#[test]
fn an_overflow_event_is_read_field_by_field() {
    fn read(event: &OverflowEvent) -> (i64, &[ContextItem], &ContextBudget) {
        let OverflowEvent {
            tokens_over_budget,
            overflowing_items,
            budget,
            ..
        } = event;
        let _: &Vec<ContextItem> = overflowing_items;
        (*tokens_over_budget, overflowing_items, budget)
    }

    let _: fn(&OverflowEvent) -> (i64, &[ContextItem], &ContextBudget) = read;
}
