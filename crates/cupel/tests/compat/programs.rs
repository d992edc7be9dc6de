//! Whole programs as users of the published crate write them.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use chrono::{DateTime, Duration, TimeZone, Utc};
use cupel::*;

type Outcome = Result<(), Box<dyn Error>>;

/// A conversation with rules, history, a tool result and a retrieved page.
fn conversation() -> Result<Vec<ContextItem>, CupelError> {
    let at = |minute| Utc.with_ymd_and_hms(2024, 6, 1, 12, minute, 0).unwrap();
    Ok(vec![
        ContextItemBuilder::new("You are a helpful assistant.", 12)
            .kind(ContextKind::new(ContextKind::SYSTEM_PROMPT)?)
            .pinned(true)
            .build()?,
        ContextItemBuilder::new("How do I reset my password?", 10)
            .timestamp(at(1))
            .priority(1)
            .build()?,
        ContextItemBuilder::new("Open the settings page.", 8)
            .timestamp(at(2))
            .priority(1)
            .build()?,
        ContextItemBuilder::new("user 4711: locked", 20)
            .kind(ContextKind::tool_output())
            .source(ContextSource::new(ContextSource::TOOL)?)
            .timestamp(at(3))
            .tags(vec!["account".to_string()])
            .build()?,
        ContextItemBuilder::new("Locked accounts are unlocked by an administrator.", 60)
            .kind(ContextKind::document())
            .source(ContextSource::new(ContextSource::RAG)?)
            .tags(vec!["account".to_string(), "help".to_string()])
            .metadata(HashMap::from([(
                "cupel:trust".to_string(),
                "0.9".to_string(),
            )]))
            .build()?,
        ContextItemBuilder::new("It still does not work.", 6)
            .timestamp(at(4))
            .priority(5)
            .future_relevance_hint(0.9)
            .build()?,
    ])
}

#[test]
fn a_first_program_keeps_the_newest_that_fit() -> Outcome {
    let pipeline = Pipeline::builder()
        .scorer(Box::new(RecencyScorer))
        .slicer(Box::new(GreedySlice))
        .placer(Box::new(ChronologicalPlacer))
        .build()?;
    let budget = ContextBudget::new(100, 50, 10, HashMap::new(), 0.0)?;

    let window = pipeline.run(&conversation()?, &budget)?;

    let texts: Vec<&str> = window.iter().map(ContextItem::content).collect();
    assert_eq!(
        texts,
        [
            "Open the settings page.",
            "user 4711: locked",
            "It still does not work.",
            "You are a helpful assistant.",
        ]
    );
    assert!(window.iter().map(ContextItem::tokens).sum::<i64>() <= 50);
    Ok(())
}

#[test]
fn strategies_are_composed_of_boxes() -> Outcome {
    let scorer = CompositeScorer::new(vec![
        (Box::new(RecencyScorer), 2.0),
        (Box::new(KindScorer::with_default_weights()), 1.0),
        (Box::new(ScaledScorer::new(Box::new(FrequencyScorer))), 0.5),
        (Box::new(MetadataTrustScorer::new(0.5)?), 0.5),
    ])?;
    let slicer = QuotaSlice::new(
        vec![
            QuotaEntry::new(ContextKind::message(), 20.0, 60.0)?,
            QuotaEntry::new(ContextKind::document(), 0.0, 10.0)?,
        ],
        Box::new(GreedySlice),
    )?;
    let pipeline = Pipeline::builder()
        .scorer(Box::new(scorer))
        .slicer(Box::new(slicer))
        .placer(Box::new(UShapedPlacer))
        .deduplication(true)
        .overflow_strategy(OverflowStrategy::Truncate)
        .build()?;
    let budget = ContextBudget::new(100, 80, 0, HashMap::new(), 5.0)?;

    let mut collector = DiagnosticTraceCollector::new(TraceDetailLevel::Item);
    let window = pipeline.run_traced::<DiagnosticTraceCollector>(
        &conversation()?,
        &budget,
        &mut collector,
    )?;
    let report = collector.into_report();

    assert_eq!(report.included.len(), window.len());
    assert!(
        report
            .included
            .iter()
            .any(|entry| entry.reason == InclusionReason::Pinned)
    );
    let page = report
        .excluded
        .iter()
        .find(|entry| *entry.item.kind() == ContextKind::document())
        .ok_or("the page exceeds its share")?;
    match &page.reason {
        ExclusionReason::BudgetExceeded { item_tokens, .. } => assert_eq!(*item_tokens, 60),
        other => panic!("{other:?}"),
    }
    assert_eq!(report.total_candidates, 6);
    Ok(())
}

#[test]
fn parts_are_chosen_at_run_time() -> Outcome {
    let build = |optimal: bool, newest: bool| -> Result<Pipeline, CupelError> {
        let scorer: Box<dyn Scorer> = if newest {
            Box::new(RecencyScorer)
        } else {
            Box::new(PriorityScorer)
        };
        let slicer: Box<dyn Slicer> = if optimal {
            Box::new(KnapsackSlice::new(1)?)
        } else {
            Box::new(GreedySlice)
        };
        let placers: Vec<Box<dyn Placer>> =
            vec![Box::new(ChronologicalPlacer), Box::new(UShapedPlacer)];
        let mut builder = Pipeline::builder().scorer(scorer).slicer(slicer);
        for placer in placers {
            builder = builder.placer(placer);
        }
        builder.build()
    };
    let budget = ContextBudget::new(40, 40, 0, HashMap::new(), 0.0)?;
    for (optimal, newest) in [(false, false), (false, true), (true, false), (true, true)] {
        let window = build(optimal, newest)?.run(&conversation()?, &budget)?;
        assert!(window.iter().any(ContextItem::pinned));
        assert!(window.iter().any(|item| item.priority() == Some(5)));
    }
    Ok(())
}

#[test]
fn a_pipeline_is_shared_among_threads() -> Outcome {
    let pipeline = Arc::new(
        Pipeline::builder()
            .scorer(Box::new(RecencyScorer))
            .slicer(Box::new(GreedySlice))
            .placer(Box::new(ChronologicalPlacer))
            .build()?,
    );
    let items = Arc::new(conversation()?);
    let budget = ContextBudget::new(60, 60, 0, HashMap::new(), 0.0)?;
    let expected = pipeline.run(&items, &budget)?;
    let handles: Vec<_> = (0..2)
        .map(|_| {
            let (pipeline, items, budget) = (pipeline.clone(), items.clone(), budget.clone());
            std::thread::spawn(move || pipeline.run(&items, &budget))
        })
        .collect();
    for handle in handles {
        let window = handle.join().expect("no panic")?;
        assert_eq!(window, expected);
    }
    Ok(())
}

/// The clock of a test.
struct Noon;

impl TimeProvider for Noon {
    fn now(&self) -> DateTime<Utc> {
        Utc.with_ymd_and_hms(2024, 6, 1, 13, 0, 0).unwrap()
    }
}

#[test]
fn policies_share_their_parts() -> Outcome {
    let slicer: Arc<dyn Slicer> = Arc::new(GreedySlice);
    let placer: Arc<dyn Placer> = Arc::new(ChronologicalPlacer);
    let decay = DecayScorer::new(
        Box::new(Noon),
        DecayCurve::exponential(Duration::minutes(30))?,
        0.0,
    )?;
    let scorers: Vec<(String, Arc<dyn Scorer>)> = vec![
        ("decay".to_string(), Arc::new(decay)),
        ("priority".to_string(), Arc::new(PriorityScorer)),
        ("reflexive".to_string(), Arc::new(ReflexiveScorer)),
    ];
    let policies = scorers
        .into_iter()
        .map(|(name, scorer)| {
            let policy = PolicyBuilder::new()
                .scorer(scorer)
                .slicer(Arc::clone(&slicer))
                .placer(placer.clone())
                .build()?;
            Ok((name, policy))
        })
        .collect::<Result<Vec<(String, Policy)>, CupelError>>()?;

    let items = conversation()?;
    let budget = ContextBudget::new(40, 40, 0, HashMap::new(), 0.0)?;
    let by_name: Vec<(String, &Policy)> = policies
        .iter()
        .map(|(name, policy)| (name.clone(), policy))
        .collect();
    let report = policy_sensitivity(&items, &budget, &by_name)?;
    assert_eq!(report.variants.len(), 3);
    assert_eq!(report.variants[1].0, "priority");

    let base = Pipeline::builder()
        .scorer(Box::new(RecencyScorer))
        .slicer(Box::new(GreedySlice))
        .placer(Box::new(UShapedPlacer))
        .build()?;
    for ((name, policy), (label, variant)) in policies.iter().zip(&report.variants) {
        let alone = base.dry_run_with_policy(&items, &budget, policy)?;
        assert_eq!(name, label);
        assert_eq!(alone.included, variant.included);
    }
    Ok(())
}

#[test]
fn a_report_is_analysed() -> Outcome {
    let slicer = || {
        CountQuotaSlice::new(
            vec![
                CountQuotaEntry::new(ContextKind::tool_output(), 1, 2)?,
                CountQuotaEntry::new(ContextKind::message(), 0, 2)?,
            ],
            Box::new(GreedySlice),
            ScarcityBehavior::Degrade,
        )
    };
    let pipeline = Pipeline::builder()
        .scorer(Box::new(RecencyScorer))
        .slicer(Box::new(slicer()?))
        .placer(Box::new(ChronologicalPlacer))
        .build()?;
    let budget = ContextBudget::new(100, 60, 0, HashMap::new(), 0.0)?;
    let report = pipeline.dry_run(&conversation()?, &budget)?;

    assert_eq!(budget_utilization(&report, &budget), 0.46);
    assert_eq!(kind_diversity(&report), 3);
    assert_eq!(timestamp_coverage(&report), 0.75);
    let policy: Box<dyn QuotaPolicy> = Box::new(slicer()?);
    let rows = quota_utilization(&report, policy.as_ref(), &budget);
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (row.kind.as_str(), row.actual, row.utilization))
        .collect();
    assert_eq!(rows, [("Message", 2.0, 1.0), ("ToolOutput", 1.0, 0.5)]);
    let capped = report
        .excluded
        .iter()
        .filter(|entry| matches!(entry.reason, ExclusionReason::CountCapExceeded { .. }))
        .count();
    assert_eq!(capped, 1);
    Ok(())
}

#[test]
fn a_budget_is_simulated() -> Outcome {
    let pipeline = Pipeline::builder()
        .scorer(Box::new(RecencyScorer))
        .slicer(Box::new(GreedySlice))
        .placer(Box::new(ChronologicalPlacer))
        .build()?;
    let items = conversation()?;
    let budget = ContextBudget::new(50, 50, 0, HashMap::new(), 0.0)?;

    let slack: i32 = 20;
    let at_risk = pipeline.get_marginal_items(&items, &budget, slack)?;
    assert_eq!(at_risk.len(), 1);
    assert_eq!(at_risk[0].content(), "user 4711: locked");

    let least: Option<i32> = pipeline.find_min_budget_for(&items, &budget, &items[3], 200)?;
    assert_eq!(least, Some(46));
    Ok(())
}

#[test]
fn errors_are_told_apart() -> Outcome {
    let pipeline = Pipeline::builder()
        .scorer(Box::new(RecencyScorer))
        .slicer(Box::new(GreedySlice))
        .placer(Box::new(ChronologicalPlacer))
        .build()?;
    let tiny = ContextBudget::new(11, 11, 0, HashMap::new(), 0.0)?;
    match pipeline.run(&conversation()?, &tiny) {
        Err(CupelError::PinnedExceedsBudget {
            pinned_tokens,
            available,
        }) => assert_eq!((pinned_tokens, available), (12, 11)),
        Err(CupelError::Overflow { .. }) => panic!("nothing was merged"),
        Err(other) => return Err(other.into()),
        Ok(window) => panic!("{window:?}"),
    }
    Ok(())
}
