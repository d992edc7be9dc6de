//! Construction, entry points, and invariants of the stages.

use std::sync::Arc;

use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, ContextSource, CountQuotaEntry,
    CountQuotaSlice, CupelError, ExclusionReason, GreedySlice, InclusionReason, KnapsackSlice,
    MetadataTrustScorer, OverflowStrategy, Pipeline, Placer, Policy, PolicyBuilder, QuotaEntry,
    QuotaSlice, RecencyScorer, ReflexiveScorer, ScarcityBehavior, Scorer, Slicer, UShapedPlacer,
};

use super::{
    Random, RandomRuns, STRATEGIES, Seen, arrange_by, at, budget, build, check_consistent,
    contents, everything, excluded, hinted, included, item, kind, outcome, owned, pinned, policies,
    policy, score_all_by, select_by, timeless,
};

// proves: DEDUP-1, ENUM-12, R030
#[test]
fn copies_are_dropped_and_overflow_is_an_error_unless_said_otherwise() {
    let complete = || {
        Pipeline::builder()
            .scorer(ReflexiveScorer)
            .slicer(everything())
            .placer(UShapedPlacer)
    };
    let pipelines = [
        complete().build().unwrap(),
        Pipeline::new(ReflexiveScorer, everything(), UShapedPlacer),
        Policy::new(ReflexiveScorer, everything(), UShapedPlacer),
        policy().slicer(everything()).build().unwrap(),
    ];
    let items = [item("same", 10), item("same", 10)];
    for pipeline in pipelines {
        assert!(pipeline.policy().deduplication());
        assert_eq!(
            pipeline.policy().overflow_strategy(),
            OverflowStrategy::Throw
        );
        assert_eq!(pipeline.run(&items, &budget(20)).unwrap().len(), 1);
        assert_eq!(
            pipeline.run(&items, &budget(9)).unwrap_err().code(),
            "Overflow"
        );
    }
    let lenient = complete()
        .deduplication(false)
        .overflow_strategy(OverflowStrategy::Proceed)
        .build()
        .unwrap();
    assert_eq!(lenient.run(&items, &budget(9)).unwrap().len(), 2);
}

#[test]
fn the_first_missing_part_is_named_in_the_order_scorer_slicer_placer() {
    for parts in 0..7 {
        let mut of_policy = PolicyBuilder::new();
        let mut of_pipeline = Pipeline::builder();
        let has = |part: u32| parts >> part & 1 == 1;
        if has(0) {
            of_policy = of_policy.scorer(ReflexiveScorer);
            of_pipeline = of_pipeline.scorer(ReflexiveScorer);
        }
        if has(1) {
            of_policy = of_policy.slicer(GreedySlice);
            of_pipeline = of_pipeline.slicer(GreedySlice);
        }
        if has(2) {
            of_policy = of_policy.placer(UShapedPlacer);
            of_pipeline = of_pipeline.placer(UShapedPlacer);
        }
        let missing = (0..3).find(|part| !has(*part)).unwrap();
        let name = ["scorer", "slicer", "placer"][missing as usize];
        let error = CupelError::PipelineConfig(format!("{name} is required"));
        assert_eq!(of_policy.build().unwrap_err(), error);
        assert_eq!(of_pipeline.build().unwrap_err(), error);
    }
}

#[test]
fn strategies_may_come_by_value_by_pointer_or_by_reference() {
    static SCORER: &ReflexiveScorer = &ReflexiveScorer;
    static SLICER: &GreedySlice = &GreedySlice;
    static PLACER: &ChronologicalPlacer = &ChronologicalPlacer;
    let boxed: Box<dyn Scorer> = Box::new(ReflexiveScorer);
    let shared: Arc<dyn Slicer> = Arc::new(GreedySlice);
    let placer: Box<dyn Placer> = Box::new(ChronologicalPlacer);
    let builders = [
        policy().scorer(boxed),
        policy().scorer(Arc::new(ReflexiveScorer)),
        policy().scorer(SCORER),
        policy().slicer(shared).placer(placer),
        policy().slicer(SLICER).placer(PLACER),
        policy()
            .slicer(Box::new(GreedySlice))
            .placer(Arc::new(ChronologicalPlacer)),
    ];
    let items = [hinted("low", 10, 0.1), hinted("high", 10, 0.9)];
    for builder in builders {
        assert_eq!(outcome(builder, &items, &budget(10)), Ok(owned(&["high"])));
    }
}

#[test]
fn pipelines_and_policies_can_be_sent_shared_and_cloned() {
    fn shared<T: Send + Sync + Clone + std::fmt::Debug>(_: &T) {}
    let policy = policy().build().unwrap();
    shared(&policy);
    shared(&policy);
}

#[test]
fn a_policy_a_clone_and_a_pipeline_of_it_answer_alike() {
    let mut random = Random::new(11);
    for builder in policies() {
        let policy = builder.build().unwrap();
        let pipeline = policy.clone();
        assert_eq!(pipeline.policy().deduplication(), policy.deduplication());
        assert_eq!(
            pipeline.policy().overflow_strategy(),
            policy.overflow_strategy()
        );
        for _ in 0..10 {
            let (items, budget) = random.run();
            let window = outcome(builder_of(&policy), &items, &budget);
            let again = pipeline.clone().run(&items, &budget);
            assert_eq!(again.map(|window| owned(&contents(&window))), window);
            let report = |report: Result<_, CupelError>| {
                report.map(|r| format!("{:?}", timeless(r).included))
            };
            assert_eq!(
                report(pipeline.dry_run(&items, &budget)),
                report(policy.dry_run(&items, &budget))
            );
        }
    }
}

/// A builder with the strategies a policy hands out.
fn builder_of(policy: &Policy) -> PolicyBuilder {
    struct Borrowed(Policy);
    impl Scorer for Borrowed {
        fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
            self.0.scorer().score(item, all_items)
        }
    }
    let (scorer, slicer, placer) = (policy.clone(), policy.clone(), policy.clone());
    PolicyBuilder::new()
        .scorer(Borrowed(scorer))
        .slicer(select_by(move |ranked, budget| {
            slicer.slicer().select(ranked, budget)
        }))
        .placer(arrange_by(move |items| placer.placer().arrange(items)))
        .deduplication(policy.deduplication())
        .overflow_strategy(policy.overflow_strategy())
}

#[test]
fn a_clone_shares_the_overflow_observer() {
    let seen = Seen::nothing();
    let observer = seen.clone();
    let policy = policy()
        .slicer(everything())
        .overflow_strategy(OverflowStrategy::Proceed)
        .on_overflow(move |event| observer.push(event.tokens_over_budget))
        .build()
        .unwrap();
    policy.clone().run(&[item("a", 10)], &budget(9)).unwrap();
    policy.clone().run(&[item("a", 10)], &budget(7)).unwrap();
    assert_eq!(seen.take(), [1, 3]);

    let observer = seen.clone();
    let pipeline = Pipeline::builder()
        .scorer(ReflexiveScorer)
        .slicer(everything())
        .placer(ChronologicalPlacer)
        .overflow_strategy(OverflowStrategy::Proceed)
        .on_overflow(move |event| observer.push(event.tokens_over_budget))
        .build();
    pipeline.unwrap().run(&[item("a", 10)], &budget(5)).unwrap();
    assert_eq!(seen.take(), [5]);
}

// proves: GEN-7, GEN-8, SCORE-5
#[test]
fn the_six_stages_run_in_order_and_each_strategy_once() {
    let seen = Seen::nothing();
    let (scoring, slicing, placing) = (seen.clone(), seen.clone(), seen.clone());
    let policy = PolicyBuilder::new()
        .scorer(score_all_by(move |items| {
            scoring.push(format!("score {}", contents(items).join(" ")));
            ReflexiveScorer.score_all(items)
        }))
        .slicer(select_by(move |ranked, budget| {
            let names: Vec<_> = ranked.iter().map(|s| s.item.content()).collect();
            slicing.push(format!("slice {}", names.join(" ")));
            GreedySlice.select(ranked, budget)
        }))
        .placer(arrange_by(move |items| {
            let names: Vec<_> = items.iter().map(|s| s.item.content()).collect();
            placing.push(format!("place {}", names.join(" ")));
            UShapedPlacer.arrange(items)
        }));
    let items = [
        hinted("b", 10, 0.5),
        hinted("negative", -1, 0.9),
        pinned("p", 10),
        hinted("b", 10, 0.5),
        hinted("a", 10, 0.9),
        hinted("large", 900, 0.7),
    ];
    policy.build().unwrap().run(&items, &budget(100)).unwrap();
    assert_eq!(
        seen.take(),
        ["score b b a large", "slice a large b", "place p a b"]
    );
}

// proves: ITEM-13, ITEM-15, ITEM-16, ITEM-18, ITEM-19, GEN-9, SLICER-1
#[test]
fn selected_items_are_the_callers_own_untouched_handles() {
    let mut random = Random::new(12);
    for builder in policies() {
        let policy = builder.build().unwrap();
        let (items, budget) = random.run();
        let fields = format!("{items:?} {budget:?}");
        let pipeline = policy.clone();
        let positions = pipeline.run_indices(&items, &budget);
        if let Ok(window) = policy.run(&items, &budget) {
            for (item, &position) in window.iter().zip(positions.as_ref().unwrap()) {
                assert!(item.is_same(&items[position]));
            }
        }
        assert_eq!(format!("{items:?} {budget:?}"), fields);
    }
    let rich = ContextItem::builder("rich", 3)
        .meta("own", "value")
        .meta("cupel:trust", "0.1")
        .original_tokens(400)
        .tag("t")
        .tag("t");
    let rich = build(rich);
    let copy = build(rich.to_builder());
    let window = policy().build().unwrap().run(&[rich], &budget(9)).unwrap();
    assert_eq!(window, [copy]);
    assert_eq!(window[0].original_tokens(), Some(400));
    assert_eq!(window[0].metadata()["own"], "value");
}

/// What a run did, by position: scores and reasons, in the order of the report.
fn fates(
    policy: &Policy,
    items: &[ContextItem],
    budget: &ContextBudget,
) -> Result<Vec<(usize, u64, String)>, CupelError> {
    let report = policy.dry_run(items, budget)?;
    let position = |item: &ContextItem| {
        let found = items.iter().position(|other| other.is_same(item));
        found.expect("a candidate")
    };
    let inside = report.included.iter();
    let inside = inside.map(|e| {
        (
            position(&e.item),
            e.score.to_bits(),
            format!("{:?}", e.reason),
        )
    });
    let outside = report.excluded.iter();
    let outside = outside.map(|e| {
        (
            position(&e.item),
            e.score.to_bits(),
            format!("{:?}", e.reason),
        )
    });
    Ok(inside.chain(outside).collect())
}

// proves: ITEM-13, ITEM-15, R014
#[test]
fn metadata_source_and_original_tokens_never_change_a_run() {
    let mut random = Random::new(13);
    for builder in policies() {
        let policy = builder.build().unwrap();
        for _ in 0..5 {
            let (items, budget) = random.run();
            let others: Vec<_> = items
                .iter()
                .map(|item| {
                    let noise = random.below(100).to_string();
                    let metadata = [("cupel:trust".to_owned(), noise)].into();
                    let builder = item.to_builder().metadata(metadata);
                    let builder = builder.source(ContextSource::rag());
                    build(builder.original_tokens(-9))
                })
                .collect();
            let (plain, noisy) = (
                fates(&policy, &items, &budget),
                fates(&policy, &others, &budget),
            );
            assert_eq!(plain, noisy);
        }
    }
}

// proves: R014
#[test]
fn metadata_counts_where_the_caller_chose_a_scorer_that_reads_it() {
    let trusted = |content: &str, trust: &str| {
        build(ContextItem::builder(content, 10).meta("cupel:trust", trust))
    };
    let items = [trusted("doubtful", "0.1"), trusted("sure", "0.9")];
    let scorer = MetadataTrustScorer::new(0.5).unwrap();
    let window = outcome(policy().scorer(scorer), &items, &budget(10));
    assert_eq!(window, Ok(owned(&["sure"])));
    assert_eq!(
        outcome(policy(), &items, &budget(10)),
        Ok(owned(&["doubtful"]))
    );
}

// proves: ITEM-4
#[test]
fn token_counts_are_taken_as_given() {
    let items = [item(&"word ".repeat(100_000), 1), item("x", 100)];
    let window = policy().build().unwrap().run(&items, &budget(50)).unwrap();
    assert!(window.len() == 1 && window[0].is_same(&items[0]));
}

// proves: ITEM-2, DEDUP-3
#[test]
fn white_space_is_content_and_kept_apart() {
    let blanks = [" ", "  ", "\n", "\r\n", "\t", "\u{a0}", "\u{200b}", "\0"];
    let items = blanks.map(|blank| item(blank, 1));
    assert_eq!(outcome(policy(), &items, &budget(99)), Ok(owned(&blanks)));
    assert_eq!(
        ContextItem::builder("", 1).build(),
        Err(CupelError::EmptyContent)
    );
}

// proves: ITEM-19, R006, DEDUP-2
#[test]
fn equal_items_are_candidates_each() {
    let twin = hinted("twin", 10, 0.5);
    let items = [
        twin.clone(),
        build(twin.to_builder()),
        build(twin.to_builder()),
    ];
    let policy = policy().deduplication(false);
    for (tokens, count) in [(9, 0), (10, 1), (29, 2), (30, 3)] {
        let policy = policy.clone().build().unwrap();
        let report = policy.dry_run(&items, &budget(tokens)).unwrap();
        assert_eq!(
            (report.included.len(), report.excluded.len()),
            (count, 3 - count)
        );
        let places = policy.run_indices(&items, &budget(tokens));
        assert_eq!(places.unwrap(), [0, 1, 2][..count]);
    }
}

// proves: PIPE-1, CLASSIFY-5, BUDGET-13, R023
#[test]
fn pinned_items_are_held_against_the_ceiling_and_nothing_else() {
    let limits = ContextBudget::builder(100)
        .target_tokens(90)
        .output_reserve(10)
        .reserved_slot(kind("memory"), 80)
        .safety_margin_percent(100.0)
        .build()
        .unwrap();
    for strategy in STRATEGIES {
        let run = |tokens| {
            let items = [pinned("p", tokens), item("x", 0)];
            outcome(policy().overflow_strategy(strategy), &items, &limits)
        };
        assert_eq!(run(90), Ok(owned(&["p"])));
        let error = CupelError::PinnedExceedsBudget {
            pinned_tokens: 91,
            available: 90,
        };
        assert_eq!(run(91), Err(error));
    }
}

// proves: PIPE-2, PLACE-4, PLACE-9, ENUM-13, ENUM-14, ENUM-15, SLICE-14, R029, R037
#[test]
fn pinned_items_above_the_target_are_a_matter_of_the_strategy() {
    let limits = ContextBudget::with_target(100, 50).unwrap();
    let items = [pinned("p", 60), hinted("free", 0, 0.9), item("x", 1)];
    let run = |strategy| outcome(policy().overflow_strategy(strategy), &items, &limits);
    let error = CupelError::Overflow {
        merged_tokens: 60,
        target_tokens: 50,
    };
    assert_eq!(run(OverflowStrategy::Throw), Err(error));
    assert_eq!(run(OverflowStrategy::Truncate), Ok(owned(&["p"])));
    assert_eq!(run(OverflowStrategy::Proceed), Ok(owned(&["p"])));
    let reckless = policy()
        .slicer(everything())
        .overflow_strategy(OverflowStrategy::Truncate);
    assert_eq!(outcome(reckless, &items, &limits), Ok(owned(&["p"])));
}

// proves: PIPE-3, DEDUP-9, R031, R085
#[test]
fn pinned_items_take_no_part_in_deduplication_shares_or_counts() {
    let items = [pinned("same", 10), item("same", 10), pinned("same", 10)];
    let capped = || CountQuotaEntry::new(kind("message"), 0, 1).unwrap();
    let degrade = ScarcityBehavior::Degrade;
    let required = CountQuotaEntry::new(kind("message"), 1, 1).unwrap();
    let throw = ScarcityBehavior::Throw;
    let share = QuotaEntry::new(kind("message"), 0.0, 100.0).unwrap();
    let slicers: [Arc<dyn Slicer>; 4] = [
        Arc::new(GreedySlice),
        Arc::new(CountQuotaSlice::new(vec![capped()], GreedySlice, degrade).unwrap()),
        Arc::new(CountQuotaSlice::new(vec![required], GreedySlice, throw).unwrap()),
        Arc::new(QuotaSlice::new(vec![share], GreedySlice).unwrap()),
    ];
    for slicer in slicers {
        let report = policy()
            .slicer(slicer)
            .build()
            .unwrap()
            .dry_run(&items, &budget(30));
        let reasons: Vec<_> = report.unwrap().included.iter().map(|e| e.reason).collect();
        let pinned = InclusionReason::Pinned;
        assert_eq!(reasons, [pinned, pinned, InclusionReason::Scored]);
    }
}

// proves: EXCL-1, EXCL-11, EXCL-12, EXCL-24, EXCL-25, EXCL-26, REPORT-6, REPORT-7, REPORT-13, CLASSIFY-1, BUDGET-11, ITEM-19
#[test]
fn every_candidate_ends_in_one_list_with_a_reason_of_a_built_in_stage() {
    let mut random = Random::new(14);
    for builder in policies() {
        let policy = builder.build().unwrap();
        for _ in 0..40 {
            let (items, budget) = random.run();
            let Ok(report) = policy.dry_run(&items, &budget) else {
                continue;
            };
            check_consistent(&report);
            let mut places: Vec<_> = fates(&policy, &items, &budget)
                .unwrap()
                .into_iter()
                .map(|fate| fate.0)
                .collect();
            places.sort_unstable();
            assert_eq!(places, (0..items.len()).collect::<Vec<_>>());
            for entry in &report.included {
                let expected = match (entry.item.pinned(), entry.item.tokens()) {
                    (true, _) => InclusionReason::Pinned,
                    (false, 0) => InclusionReason::ZeroToken,
                    (false, _) => InclusionReason::Scored,
                };
                assert_eq!(entry.reason, expected);
                assert!(entry.item.tokens() >= 0);
            }
            for entry in &report.excluded {
                check_reason(&entry.item, &entry.reason);
            }
        }
    }
}

/// A reason that a built-in stage may give, with the data it has to carry.
fn check_reason(item: &ContextItem, reason: &ExclusionReason) {
    match reason {
        ExclusionReason::NegativeTokens { tokens } => {
            assert!(*tokens < 0 && *tokens == item.tokens());
        }
        ExclusionReason::Deduplicated {
            deduplicated_against,
        } => assert_eq!(deduplicated_against, item.content()),
        ExclusionReason::BudgetExceeded { item_tokens, .. } => {
            assert_eq!(*item_tokens, item.tokens());
        }
        ExclusionReason::PinnedOverride { displaced_by } => assert!(!displaced_by.is_empty()),
        ExclusionReason::CountCapExceeded { kind, cap, count } => {
            assert_eq!(kind, item.kind().as_str());
            assert!(count >= cap);
        }
        reserved => panic!("{reserved:?} is reserved"),
    }
}

// proves: GEN-3, GEN-4, SORT-1, DEDUP-5, USHAPE-1, GREEDY-2
#[test]
fn scores_that_differ_in_the_last_bit_are_different_scores() {
    let low = 0.7_f64;
    let high = low.next_up();
    let items = [hinted("low", 10, low), hinted("high", 10, high)];
    for placer in [
        Arc::new(ChronologicalPlacer) as Arc<dyn Placer>,
        Arc::new(UShapedPlacer),
    ] {
        let window = outcome(policy().placer(placer), &items, &budget(20));
        assert_eq!(window, Ok(owned(&["high", "low"])));
    }
    assert_eq!(outcome(policy(), &items, &budget(10)), Ok(owned(&["high"])));
    let copies = [hinted("same", 10, low), hinted("same", 20, high)];
    let report = policy()
        .build()
        .unwrap()
        .dry_run(&copies, &budget(99))
        .unwrap();
    assert_eq!(report.included[0].item.tokens(), 20);
    assert_eq!(report.excluded[0].score, low);
}

// proves: GEN-3, GEN-4, GREEDY-1, GREEDY-2
#[test]
fn densities_are_compared_beyond_single_precision() {
    let tokens = 1 << 24;
    let items = [
        hinted("heavier", tokens + 1, 0.5),
        hinted("lighter", tokens, 0.5),
    ];
    let window = outcome(policy(), &items, &budget(tokens + 1));
    assert_eq!(window, Ok(owned(&["lighter"])));
}

// proves: GEN-5, GREEDY-6, R008
#[test]
fn token_counts_beyond_binary64_are_compared_exactly() {
    let large = 1_i64 << 53;
    let slicers: [Arc<dyn Slicer>; 3] = [
        Arc::new(GreedySlice),
        Arc::new(KnapsackSlice::new(large).unwrap()),
        Arc::new(QuotaSlice::new(vec![], GreedySlice).unwrap()),
    ];
    for slicer in slicers {
        let run = |tokens| {
            let items = [hinted("a", tokens, 0.5)];
            outcome(policy().slicer(slicer.clone()), &items, &budget(large))
        };
        assert_eq!(run(large), Ok(owned(&["a"])));
        assert_eq!(run(large + 1), Ok(vec![]));
    }
}

// proves: GEN-11, SORT-2, GREEDY-3, CHRONO-3, USHAPE-5, DEDUP-7, PLACE-2, R070
#[test]
fn ties_keep_their_order_through_every_stage() {
    let names: Vec<String> = (0..40).map(|index| index.to_string()).collect();
    let items: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let builder = ContextItem::builder(name, 10).future_relevance_hint(0.5);
            build(
                builder
                    .kind(kind(["A", "B", "C"][index % 3]))
                    .timestamp(at(0)),
            )
        })
        .collect();
    let counts = CountQuotaSlice::new(vec![], GreedySlice, ScarcityBehavior::Degrade);
    let slicers: [Arc<dyn Slicer>; 4] = [
        Arc::new(GreedySlice),
        Arc::new(KnapsackSlice::new(1).unwrap()),
        Arc::new(QuotaSlice::new(vec![], GreedySlice).unwrap()),
        Arc::new(counts.unwrap()),
    ];
    for slicer in slicers {
        let window = outcome(policy().slicer(slicer.clone()), &items, &budget(400));
        assert_eq!(window.as_ref(), Ok(&names));
        let u_shaped = policy().slicer(slicer).placer(UShapedPlacer);
        let window = outcome(u_shaped, &items, &budget(400)).unwrap();
        assert_eq!((&*window[0], &*window[1], &*window[39]), ("0", "2", "1"));
    }
    let report = policy()
        .build()
        .unwrap()
        .dry_run(&items, &budget(100))
        .unwrap();
    assert_eq!(included(&report), names[..10]);
    assert_eq!(excluded(&report), names[10..]);
}

// proves: GEN-8, SCORE-8
#[test]
fn no_score_excludes_an_item_that_has_room() {
    let scorer = score_all_by(|items| {
        let scores = [f64::NAN, f64::NEG_INFINITY, -1.0, 0.0];
        Ok(scores[..items.len()].to_vec())
    });
    let items = ["a", "b", "c", "d"].map(|name| item(name, 1));
    let window = outcome(policy().scorer(scorer), &items, &budget(9));
    assert_eq!(window, Ok(owned(&["d", "c", "b", "a"])));
}

// proves: RECENCY-9, ITEM-17
#[test]
fn instants_count_and_not_their_offsets() {
    let dated = |name: &str, text: &str| {
        let timestamp = chrono::DateTime::parse_from_rfc3339(text).unwrap();
        build(ContextItem::builder(name, 1).timestamp(timestamp.to_utc()))
    };
    let items = [
        dated("late", "2026-01-01T10:00:00+00:00"),
        dated("early", "2026-01-01T11:00:00+02:00"),
    ];
    assert_eq!(RecencyScorer.score_all(&items), Ok(vec![1.0, 0.0]));
    assert_eq!(
        outcome(policy(), &items, &budget(9)),
        Ok(owned(&["early", "late"]))
    );
}
