//! Spans of runs that succeed.

use cupel::{
    ContextItem, ContextKind, DiagnosticTraceCollector, ExclusionReason, OverflowStrategy, Refusal,
    Selection, TraceCollector, TraceDetailLevel, UnknownReason,
};
use cupel_otel::{CupelOtelTraceCollector, CupelVerbosity, SOURCE_NAME, exclusion_reason_name};
use opentelemetry::Value;
use opentelemetry::trace::{SpanId, SpanKind, Status};
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};

use crate::{
    STAGES, TIERS, attribute, budget, build, candidates, everything, finished, hinted, in_memory,
    names, pinned, pipeline, root, slice_by, span, stage, text_of, traced, with_slicer,
};

// proves: OTEL-4, OTEL-5
#[test]
fn a_run_is_a_root_with_five_stages() {
    for tier in TIERS {
        let (window, spans) = traced(tier, &pipeline(), &candidates(), &budget(40));
        assert_eq!(window.unwrap().len(), 3);
        assert_eq!(
            names(&spans),
            [
                "cupel.stage.classify",
                "cupel.stage.score",
                "cupel.stage.deduplicate",
                "cupel.stage.slice",
                "cupel.stage.place",
                "cupel.pipeline",
            ]
        );
        let root = root(&spans);
        assert_eq!(root.parent_span_id, SpanId::INVALID);
        for span in &spans {
            assert_eq!(span.span_kind, SpanKind::Internal);
            assert_eq!(span.status, Status::Unset);
            assert_eq!(span.span_context.trace_id(), root.span_context.trace_id());
            assert!(span.links.is_empty());
        }
        for name in STAGES {
            let stage = stage(&spans, name);
            assert_eq!(stage.parent_span_id, root.span_context.span_id());
            assert!(!stage.parent_span_is_remote);
        }
    }
}

// proves: OTEL-2, R110
#[test]
fn the_scope_has_a_name_and_nothing_else() {
    assert_eq!(SOURCE_NAME, "cupel");
    let (_, spans) = traced(
        CupelVerbosity::StageOnly,
        &pipeline(),
        &candidates(),
        &budget(40),
    );
    for span in &spans {
        let scope = &span.instrumentation_scope;
        assert_eq!(scope.name(), "cupel");
        assert_eq!(scope.version(), None);
        assert_eq!(scope.schema_url(), None);
        assert_eq!(scope.attributes().count(), 0);
    }
}

/// The spans of [`candidates`] at the last tier.
const FULL: &str = r#"  cupel.stage.classify
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
  cupel.stage.slice
    cupel.stage.name="slice"
    cupel.stage.item_count_in=3
    cupel.stage.item_count_out=2
    cupel.exclusion.count=1
    ! cupel.exclusion: cupel.exclusion.reason="BudgetExceeded" cupel.exclusion.item_kind="Document" cupel.exclusion.item_tokens=60
  cupel.stage.place
    cupel.stage.name="place"
    cupel.stage.item_count_in=3
    cupel.stage.item_count_out=3
    ! cupel.item.included: cupel.item.kind="SystemPrompt" cupel.item.tokens=10 cupel.item.score=1.0
    ! cupel.item.included: cupel.item.kind="Message" cupel.item.tokens=5 cupel.item.score=0.75
    ! cupel.item.included: cupel.item.kind="Message" cupel.item.tokens=20 cupel.item.score=0.5
cupel.pipeline
  cupel.budget.max_tokens=40
  cupel.verbosity="Full"
  gen_ai.conversation.compacted=true
  cupel.tokens.before=110
  cupel.tokens.after=35
"#;

/// Every tier has the lines of the last one, without the exclusions and the items it leaves out.
fn expected(tier: CupelVerbosity) -> String {
    let is_written = |line: &&str| match tier {
        CupelVerbosity::StageOnly => {
            !line.contains("cupel.exclusion") && !line.contains("cupel.item.")
        }
        CupelVerbosity::StageAndExclusions => !line.contains("cupel.item."),
        CupelVerbosity::Full => true,
    };
    let lines: Vec<&str> = FULL.lines().filter(is_written).collect();
    lines
        .join("\n")
        .replace("\"Full\"", &format!("{:?}", tier.name()))
}

// proves: OTEL-6, OTEL-7, OTEL-8, OTEL-9, OTEL-10, OTEL-11, OTEL-12, OTEL-13, R111, R114
#[test]
fn each_tier_writes_its_attributes_and_events() {
    for (tier, lines) in TIERS.into_iter().zip([26, 32, 35]) {
        let (_, spans) = traced(tier, &pipeline(), &candidates(), &budget(40));
        let text = text_of(&spans);
        assert_eq!(text.trim_end(), expected(tier), "\n{text}");
        assert_eq!(text.lines().count(), lines);
    }
}

// proves: OTEL-10, OTEL-12, R114
#[test]
fn truncated_items_are_events_of_the_last_stage_before_the_included_ones() {
    let items = [
        pinned("rules", 10),
        hinted("a", 20, 0.9),
        hinted("b", 20, 0.1),
    ];
    let pipeline = with_slicer(everything(), OverflowStrategy::Truncate);
    let (_, spans) = traced(CupelVerbosity::Full, &pipeline, &items, &budget(40));
    assert!(stage(&spans, "slice").events.is_empty());
    let place = stage(&spans, "place");
    let number = |name| attribute(&place.attributes, name).cloned();
    assert_eq!(number("cupel.stage.item_count_in"), Some(Value::I64(3)));
    assert_eq!(number("cupel.stage.item_count_out"), Some(Value::I64(2)));
    assert_eq!(number("cupel.exclusion.count"), Some(Value::I64(1)));
    let events: Vec<_> = place.events.iter().map(|event| &*event.name).collect();
    assert_eq!(
        events,
        [
            "cupel.exclusion",
            "cupel.item.included",
            "cupel.item.included"
        ]
    );
}

// proves: R111
#[test]
fn a_run_without_exclusions_has_no_attributes_about_them() {
    let items = [pinned("rules", 10), hinted("a", 20, 0.5)];
    for tier in TIERS {
        let (_, spans) = traced(tier, &pipeline(), &items, &budget(40));
        let text = text_of(&spans);
        assert!(!text.contains("exclusion"), "{text}");
        assert!(!text.contains("gen_ai"), "{text}");
        assert!(!text.contains("cupel.tokens"), "{text}");
        assert_eq!(root(&spans).attributes.len(), 2);
    }
}

#[test]
fn a_run_without_candidates_has_all_its_spans() {
    let (_, spans) = traced(CupelVerbosity::Full, &pipeline(), &[], &budget(40));
    assert_eq!(spans.len(), 6);
    for name in STAGES {
        let attributes = &stage(&spans, name).attributes;
        assert_eq!(
            attribute(attributes, "cupel.stage.item_count_in"),
            Some(&Value::I64(0))
        );
        assert_eq!(
            attribute(attributes, "cupel.stage.item_count_out"),
            Some(&Value::I64(0))
        );
    }
    assert!(spans.iter().all(|span| span.events.is_empty()));
}

/// Returns one of each reason, with its name.
fn reasons() -> Vec<(&'static str, ExclusionReason)> {
    let text = String::from("text");
    vec![
        (
            "BudgetExceeded",
            ExclusionReason::BudgetExceeded {
                item_tokens: 1,
                available_tokens: 0,
            },
        ),
        (
            "ScoredTooLow",
            ExclusionReason::ScoredTooLow {
                score: 0.1,
                threshold: 0.5,
            },
        ),
        (
            "Deduplicated",
            ExclusionReason::Deduplicated {
                deduplicated_against: text.clone(),
            },
        ),
        (
            "QuotaCapExceeded",
            ExclusionReason::QuotaCapExceeded {
                kind: text.clone(),
                cap: 1,
                actual: 2,
            },
        ),
        (
            "QuotaRequireDisplaced",
            ExclusionReason::QuotaRequireDisplaced {
                displaced_by_kind: text.clone(),
            },
        ),
        (
            "NegativeTokens",
            ExclusionReason::NegativeTokens { tokens: -1 },
        ),
        (
            "PinnedOverride",
            ExclusionReason::PinnedOverride {
                displaced_by: text.clone(),
            },
        ),
        (
            "Filtered",
            ExclusionReason::Filtered {
                filter_name: text.clone(),
            },
        ),
        (
            "CountCapExceeded",
            ExclusionReason::CountCapExceeded {
                kind: text.clone(),
                cap: 1,
                count: 1,
            },
        ),
        (
            "CountRequireCandidatesExhausted",
            ExclusionReason::CountRequireCandidatesExhausted { kind: text.clone() },
        ),
        (
            "GroupExcluded",
            ExclusionReason::GroupExcluded {
                group_size: 2,
                group_tokens: 3,
                available_tokens: 1,
            },
        ),
        (
            "Unknown",
            ExclusionReason::Unknown(UnknownReason::new("FromTheFuture", Vec::new())),
        ),
        ("Unknown", ExclusionReason::_Unknown),
    ]
}

// proves: OTEL-13, OTEL-14
#[test]
fn a_reason_is_written_as_its_variants_name_or_as_unknown() {
    for (name, reason) in reasons() {
        assert_eq!(exclusion_reason_name(&reason), name);
        if name != "Unknown" {
            assert_eq!(reason.name(), name);
        }
        let slicer = slice_by(move |_| {
            let mut selection = Selection::default();
            selection.refuse(0, Refusal::Because(reason.clone()));
            Ok(selection)
        });
        let (_, spans) = traced(
            CupelVerbosity::StageAndExclusions,
            &with_slicer(slicer, OverflowStrategy::Throw),
            &[hinted("a", 5, 0.5)],
            &budget(40),
        );
        let slice = stage(&spans, "slice");
        assert_eq!(slice.events.len(), 1);
        let value = attribute(&slice.events[0].attributes, "cupel.exclusion.reason");
        assert_eq!(value, Some(&Value::from(name)));
    }
}

#[test]
fn kinds_keep_their_spelling() {
    for spelling in [
        "TOOLoutput",
        "  spaced out ",
        "médias/ß",
        "\u{1F511}",
        "a\nb",
    ] {
        let kind = ContextKind::new(spelling).unwrap();
        let item = |content, tokens| {
            let builder = ContextItem::builder(content, tokens).kind(kind.clone());
            build(builder.future_relevance_hint(0.5))
        };
        let items = [item("in", 5), item("out", 50)];
        let (_, spans) = traced(CupelVerbosity::Full, &pipeline(), &items, &budget(40));
        let excluded = &stage(&spans, "slice").events[0].attributes;
        let included = &stage(&spans, "place").events[0].attributes;
        let value = Value::from(spelling);
        assert_eq!(
            attribute(excluded, "cupel.exclusion.item_kind"),
            Some(&value)
        );
        assert_eq!(attribute(included, "cupel.item.kind"), Some(&value));
    }
}

#[test]
fn a_shortened_item_has_the_tokens_of_its_view_and_its_own() {
    let view = cupel::ContextView::new("short", 6);
    let item = ContextItem::builder("long", 90).future_relevance_hint(0.5);
    let items = [build(item.view(view)), hinted("other", 5, 0.9)];
    let slicer = slice_by(|_| {
        let mut selection = Selection::keep(vec![0, 1]);
        selection.shorten(1, 0);
        Ok(selection)
    });
    let pipeline = with_slicer(slicer, OverflowStrategy::Throw);
    let (_, spans) = traced(CupelVerbosity::Full, &pipeline, &items, &budget(40));
    let events = &stage(&spans, "place").events;
    let numbers = |key| {
        let values = events.iter().map(|event| attribute(&event.attributes, key));
        values.map(Option::<&Value>::cloned).collect::<Vec<_>>()
    };
    let number = |number: i64| Some(Value::from(number));
    assert_eq!(numbers("cupel.item.tokens"), [number(5), number(6)]);
    assert_eq!(numbers("cupel.item.original_tokens"), [None, number(90)]);
    let root = spans
        .iter()
        .find(|span| span.name == "cupel.pipeline")
        .unwrap();
    let total = |key| attribute(&root.attributes, key).cloned();
    assert_eq!(total("cupel.tokens.before"), number(95));
    assert_eq!(total("cupel.tokens.after"), number(11));
}

#[test]
fn the_content_of_an_item_is_never_written() {
    let (_, spans) = traced(
        CupelVerbosity::Full,
        &pipeline(),
        &candidates(),
        &budget(40),
    );
    let text = text_of(&spans);
    for item in candidates() {
        assert!(!text.contains(item.content()), "{text}");
    }
}

#[test]
fn token_sums_saturate() {
    let items = [
        hinted("a", i64::MAX, 0.5),
        hinted("b", i64::MAX, 0.5),
        hinted("c", -1, 0.5),
    ];
    let pipeline = with_slicer(everything(), OverflowStrategy::Proceed);
    let (window, spans) = traced(CupelVerbosity::Full, &pipeline, &items, &budget(40));
    assert_eq!(window.unwrap().len(), 2);
    let attributes = &root(&spans).attributes;
    for name in ["cupel.tokens.before", "cupel.tokens.after"] {
        assert_eq!(attribute(attributes, name), Some(&Value::I64(i64::MAX)));
    }
}

// proves: OTEL-11
#[test]
fn the_exclusion_count_includes_events_that_the_sdk_drops() {
    let items: Vec<_> = (0..200).map(|n| hinted(&format!("{n}"), 50, 0.5)).collect();
    let (_, spans) = traced(CupelVerbosity::Full, &pipeline(), &items, &budget(40));
    let slice = stage(&spans, "slice");
    assert_eq!(slice.events.len(), 128);
    assert_eq!(slice.events.dropped_count, 72);
    let count = attribute(&slice.attributes, "cupel.exclusion.count");
    assert_eq!(count, Some(&Value::I64(200)));
}

#[test]
fn tracing_does_not_change_the_run() {
    let budgets = [0, 9, 10, 30, 40, 95, 1000].map(budget);
    for strategy in [
        OverflowStrategy::Throw,
        OverflowStrategy::Truncate,
        OverflowStrategy::Proceed,
    ] {
        for pipeline in [pipeline(), with_slicer(everything(), strategy)] {
            for budget in &budgets {
                let plain = pipeline.run(&candidates(), budget);
                for tier in TIERS {
                    let (traced, _) = traced(tier, &pipeline, &candidates(), budget);
                    assert_eq!(traced, plain);
                }
            }
        }
    }
}

// proves: OTEL-4
#[test]
fn a_collector_can_be_used_for_many_runs() {
    let (provider, exporter) = in_memory();
    let mut collector = CupelOtelTraceCollector::with_provider(CupelVerbosity::Full, &provider);
    let mut seen = Vec::new();
    for _ in 0..3 {
        exporter.reset();
        let pipeline = pipeline();
        pipeline
            .run_traced(&candidates(), &budget(40), &mut collector)
            .unwrap();
        let spans = finished(&exporter);
        assert_eq!(spans.len(), 6);
        let trace = root(&spans).span_context.trace_id();
        seen.push((trace, text_of(&spans)));
    }
    assert!(seen.iter().all(|(_, text)| *text == seen[0].1));
    assert!(seen[0].0 != seen[1].0 && seen[1].0 != seen[2].0);
}

#[test]
fn a_run_that_panics_does_not_affect_the_next() {
    let (provider, exporter) = in_memory();
    let mut collector = CupelOtelTraceCollector::with_provider(CupelVerbosity::Full, &provider);
    let panicking = with_slicer(slice_by(|_| panic!("of a slicer")), OverflowStrategy::Throw);
    let run = std::panic::AssertUnwindSafe(|| {
        panicking.run_traced(&candidates(), &budget(40), &mut collector)
    });
    assert!(std::panic::catch_unwind(run).is_err());
    assert!(finished(&exporter).is_empty());
    let items = [hinted("a", 5, 0.5)];
    pipeline()
        .run_traced(&items, &budget(40), &mut collector)
        .unwrap();
    let spans = finished(&exporter);
    assert_eq!(spans.len(), 6);
    let classify = &stage(&spans, "classify").attributes;
    assert_eq!(
        attribute(classify, "cupel.stage.item_count_in"),
        Some(&Value::I64(1))
    );
}

#[test]
fn spans_that_the_sampler_drops_are_not_written() {
    let exporter = opentelemetry_sdk::trace::InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .with_sampler(Sampler::AlwaysOff)
        .build();
    let mut collector = CupelOtelTraceCollector::with_provider(CupelVerbosity::Full, &provider);
    let window = pipeline().run_traced(&candidates(), &budget(40), &mut collector);
    assert_eq!(window.unwrap().len(), 3);
    assert!(finished(&exporter).is_empty());
}

#[test]
fn a_collector_declines_item_events_and_can_be_paired() {
    let (provider, exporter) = in_memory();
    let collector = CupelOtelTraceCollector::with_provider(CupelVerbosity::Full, &provider);
    assert!(collector.is_enabled());
    assert!(collector.wants_report());
    assert_eq!(collector.detail_level(), TraceDetailLevel::Stage);
    assert_eq!(collector.verbosity(), CupelVerbosity::Full);

    let mut both = (
        DiagnosticTraceCollector::new(TraceDetailLevel::Item),
        collector,
    );
    pipeline()
        .run_traced(&candidates(), &budget(40), &mut both)
        .unwrap();
    assert_eq!(both.0.into_report().excluded.len(), 3);
    let alone = traced(
        CupelVerbosity::Full,
        &pipeline(),
        &candidates(),
        &budget(40),
    );
    assert_eq!(text_of(&finished(&exporter)), text_of(&alone.1));
    assert_eq!(span(&alone.1, "cupel.pipeline").events.len(), 0);
}
