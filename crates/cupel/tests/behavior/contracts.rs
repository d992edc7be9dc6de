//! Custom strategies: their input, their valid results, and the error if one breaks its contract.

use std::sync::Arc;

use cupel::{
    CompositeScorer, ContextBudget, ContextItem, ContractViolation, CountConstrainedKnapsackSlice,
    CountQuotaEntry, CountQuotaSlice, CupelError, DiagnosticTraceCollector, ExclusionReason,
    FrequencyScorer, FusionMethod, FusionScorer, GreedySlice, InclusionReason, KnapsackSlice,
    OverflowStrategy, PolicyBuilder, ProductScorer, QuotaEntry, QuotaSlice, ReflexiveScorer,
    Refusal, ScaledScorer, ScarcityBehavior, ScoredItem, ScoredRef, Scorer, Selection, Slicer,
    StrategyRole,
};

use super::{
    Random, Seen, arrange_by, budget, build, contents, everything, excluded, hinted, included,
    item, kind, outcome, owned, pinned, place_by, policy, score_all_by, score_by, scored,
    select_by, slice_by,
};

/// Three candidates that fit any budget used here, best first.
fn candidates() -> [ContextItem; 3] {
    [
        hinted("a", 10, 0.9),
        hinted("b", 10, 0.8),
        hinted("c", 10, 0.7),
    ]
}

fn check(policy: PolicyBuilder, expected: Result<&[&str], &CupelError>) {
    let expected = expected.map(owned).map_err(Clone::clone);
    assert_eq!(outcome(policy, &candidates(), &budget(100)), expected);
}

fn check_contract(policy: PolicyBuilder, strategy: StrategyRole, violation: ContractViolation) {
    let error = CupelError::Contract {
        strategy,
        violation,
    };
    check(policy, Err(&error));
}

/// A slicer by itself, within shares, within counts, and within both.
fn nested(slicer: impl Slicer + 'static) -> [Arc<dyn Slicer>; 4] {
    let slicer: Arc<dyn Slicer> = Arc::new(slicer);
    let in_shares = QuotaSlice::new(vec![], slicer.clone()).expect("no quotas are legal");
    let in_counts = |inner: Arc<dyn Slicer>| {
        CountQuotaSlice::new(vec![], inner, ScarcityBehavior::Degrade).expect("no knapsack")
    };
    let in_both = in_counts(Arc::new(in_shares.clone()));
    [
        slicer.clone(),
        Arc::new(in_shares),
        Arc::new(in_counts(slicer)),
        Arc::new(in_both),
    ]
}

fn rebuilt(item: &ContextItem) -> ContextItem {
    build(item.to_builder())
}

const fn unknown(position: usize) -> ContractViolation {
    ContractViolation::UnknownItem { position }
}

const fn repeated(position: usize) -> ContractViolation {
    ContractViolation::RepeatedItem { position }
}

const fn wrong_length(expected: usize, returned: usize) -> ContractViolation {
    ContractViolation::WrongLength { expected, returned }
}

/// What a strategy makes of the three candidates, and how that breaks its contract.
type Returned<T> = (fn([ContextItem; 3]) -> Vec<T>, ContractViolation);

/// Breaks of the contract that slicers and placers have in common.
const NOT_A_SUBSET: [Returned<ContextItem>; 5] = [
    (|_| vec![item("made up", 1)], unknown(0)),
    (|[a, _, _]| vec![rebuilt(&a)], unknown(0)),
    (|[a, b, _]| vec![a, rebuilt(&b)], unknown(1)),
    (|[a, b, _]| vec![a.clone(), b, a], repeated(2)),
    (|[a, b, c]| vec![c.clone(), b, a, c], repeated(3)),
];

fn three(items: &[ScoredItem]) -> [ContextItem; 3] {
    [0, 1, 2].map(|rank| items[rank].item.clone())
}

// proves: SLICER-1, SLICE-11, ITEM-19, R035
#[test]
fn a_slicer_that_returns_what_it_was_not_offered_ends_the_run() {
    for (returned, violation) in NOT_A_SUBSET {
        for slicer in nested(slice_by(move |sorted, _| Ok(returned(three(sorted))))) {
            check_contract(
                policy().slicer(slicer),
                StrategyRole::Slicer,
                violation.clone(),
            );
        }
    }
}

// proves: SLICER-1, R035
#[test]
fn a_slicer_that_keeps_a_rank_twice_or_beyond_the_list_ends_the_run() {
    let cases = [
        (vec![3], unknown(0)),
        (vec![0, usize::MAX], unknown(1)),
        (vec![1, 1], repeated(1)),
        (vec![2, 0, 1, 0], repeated(3)),
    ];
    for (kept, violation) in cases {
        for slicer in nested(select_by(move |_, _| Ok(Selection::keep(kept.clone())))) {
            check_contract(
                policy().slicer(slicer),
                StrategyRole::Slicer,
                violation.clone(),
            );
        }
    }
}

#[test]
fn a_slicer_that_refuses_a_rank_beyond_the_list_ends_the_run() {
    let slicers = nested(select_by(|_, _| {
        let mut selection = Selection::keep(vec![0]);
        selection.refuse(1, Refusal::CountCap { cap: 1, count: 1 });
        selection.refuse(3, Refusal::CountCap { cap: 1, count: 1 });
        Ok(selection)
    }));
    for slicer in slicers {
        check_contract(policy().slicer(slicer), StrategyRole::Slicer, unknown(1));
    }
}

// proves: SLICER-1, SLICE-10, PLACE-2, R034
#[test]
fn a_slicer_may_return_its_choice_in_any_order() {
    for slicer in nested(slice_by(|sorted, _| {
        let [a, _, c] = three(sorted);
        Ok(vec![c, a])
    })) {
        check(policy().slicer(slicer), Ok(&["a", "c"]));
    }
    for slicer in nested(select_by(|_, _| Ok(Selection::keep(vec![2, 1])))) {
        check(policy().slicer(slicer), Ok(&["b", "c"]));
    }
}

// proves: SLICE-12, SLICER-1
#[test]
fn a_slicer_cannot_add_an_item_to_an_empty_list() {
    let slicer = slice_by(|_, _| Ok(vec![item("made up", 1)]));
    let error = CupelError::Contract {
        strategy: StrategyRole::Slicer,
        violation: unknown(0),
    };
    assert_eq!(
        outcome(policy().slicer(slicer), &[], &budget(9)),
        Err(error)
    );
}

// proves: PIPE-4, R005
#[test]
fn an_error_of_a_slicer_ends_the_run_as_it_is() {
    let errors = [
        CupelError::SlicerConfig("no choice today".to_owned()),
        CupelError::PipelineConfig("odd, but its own".to_owned()),
        CupelError::EmptyContent,
    ];
    for error in errors {
        let raised = error.clone();
        for slicer in nested(slice_by(move |_, _| Err(raised.clone()))) {
            check(policy().slicer(slicer), Err(&error));
        }
        let raised = error.clone();
        for slicer in nested(select_by(move |_, _| Err(raised.clone()))) {
            check(policy().slicer(slicer), Err(&error));
        }
    }
}

// proves: PIPE-4, R005, R072, R078, CQ-12, CCK-4, CCK-5
#[test]
fn a_requirement_that_cannot_be_met_ends_the_run_under_throw() {
    let entries = || vec![CountQuotaEntry::new(kind("tool"), 2, 2).unwrap()];
    let counts = CountQuotaSlice::new(entries(), GreedySlice, ScarcityBehavior::Throw);
    let knapsack = KnapsackSlice::new(1).unwrap();
    let packed = CountConstrainedKnapsackSlice::new(entries(), knapsack, ScarcityBehavior::Throw);
    let slicers: [(&str, Arc<dyn Slicer>); 2] = [
        ("CountQuotaSlice", Arc::new(counts.unwrap())),
        ("CountConstrainedKnapsackSlice", Arc::new(packed.unwrap())),
    ];
    for (name, slicer) in slicers {
        let text =
            format!("{name}: candidate pool for kind 'tool' has 0 items but RequireCount is 2.");
        for slicer in nested(slicer) {
            check(
                policy().slicer(slicer),
                Err(&CupelError::SlicerConfig(text.clone())),
            );
        }
    }
}

// proves: PLACER-1, ITEM-19
#[test]
fn a_placer_that_returns_what_it_did_not_receive_ends_the_run() {
    for (returned, violation) in NOT_A_SUBSET {
        let placer = place_by(move |items| returned(three(items)));
        check_contract(policy().placer(placer), StrategyRole::Placer, violation);
    }
}

// proves: PLACER-1
#[test]
fn a_placer_that_loses_an_item_ends_the_run() {
    let cases: [Returned<ContextItem>; 3] = [
        (|_| vec![], wrong_length(3, 0)),
        (|[a, _, c]| vec![c, a], wrong_length(3, 2)),
        (|[_, b, _]| vec![b], wrong_length(3, 1)),
    ];
    for (returned, violation) in cases {
        let placer = place_by(move |items| returned(three(items)));
        check_contract(policy().placer(placer), StrategyRole::Placer, violation);
    }
}

// proves: PLACER-1
#[test]
fn a_placer_whose_positions_are_no_permutation_ends_the_run() {
    let cases = [
        (vec![], wrong_length(3, 0)),
        (vec![0, 1], wrong_length(3, 2)),
        (vec![0, 1, 2, 0], wrong_length(3, 4)),
        (vec![0, 1, 3], unknown(2)),
        (vec![usize::MAX, 1, 0], unknown(0)),
        (vec![0, 2, 2], repeated(2)),
    ];
    for (order, violation) in cases {
        let placer = arrange_by(move |_| Ok(order.clone()));
        check_contract(policy().placer(placer), StrategyRole::Placer, violation);
    }
}

// proves: PLACER-1, GEN-8
#[test]
fn a_placer_may_return_any_order() {
    let reversed = place_by(|items| items.iter().rev().map(|s| s.item.clone()).collect());
    check(policy().placer(reversed), Ok(&["c", "b", "a"]));
    let rotated = arrange_by(|items| Ok(vec![1, 2, 0][..items.len()].to_vec()));
    check(policy().placer(rotated), Ok(&["b", "c", "a"]));
}

#[test]
fn an_error_of_a_placer_ends_the_run_as_it_is() {
    let error = CupelError::PipelineConfig("no order today".to_owned());
    let raised = error.clone();
    let placer = arrange_by(move |_| Err(raised.clone()));
    check(policy().placer(placer), Err(&error));
}

/// A scorer by itself and as the child of every scorer that has children.
fn wrapped(scorer: impl Scorer + 'static) -> [Arc<dyn Scorer>; 5] {
    let scorer: Arc<dyn Scorer> = Arc::new(scorer);
    let composite = CompositeScorer::builder()
        .add(ReflexiveScorer, 1.0)
        .add(scorer.clone(), 1.0);
    let product = ProductScorer::new(vec![Box::new(ReflexiveScorer), Box::new(scorer.clone())]);
    let entries: Vec<(Box<dyn Scorer>, f64)> = vec![
        (Box::new(ReflexiveScorer), 1.0),
        (Box::new(scorer.clone()), 1.0),
    ];
    let fusion = FusionScorer::new(FusionMethod::Shares, entries);
    [
        scorer.clone(),
        Arc::new(composite.build().unwrap()),
        Arc::new(product.unwrap()),
        Arc::new(fusion.unwrap()),
        Arc::new(ScaledScorer::new(scorer)),
    ]
}

// proves: SCORE-4
#[test]
fn a_scorer_that_returns_the_wrong_number_of_scores_ends_the_run() {
    for returned in [0, 2, 4] {
        for scorer in wrapped(score_all_by(move |_| Ok(vec![0.5; returned]))) {
            check_contract(
                policy().scorer(scorer),
                StrategyRole::Scorer,
                wrong_length(3, returned),
            );
        }
    }
}

#[test]
fn an_error_of_a_scorer_ends_the_run_as_it_is() {
    let error = CupelError::ScorerConfig("the model is asleep".to_owned());
    let raised = error.clone();
    for scorer in wrapped(score_all_by(move |_| Err(raised.clone()))) {
        check(policy().scorer(scorer), Err(&error));
    }
}

// proves: SCORE-4, SCORE-7, REPORT-8
#[test]
fn a_batch_of_scores_belongs_to_the_items_in_order() {
    let scorer = score_all_by(|items| {
        assert_eq!(contents(items), ["a", "b", "c"]);
        Ok(vec![-3.0, 12.5, 1.0])
    });
    let policy = policy().scorer(scorer).build().unwrap();
    let report = policy.dry_run(&candidates(), &budget(100)).unwrap();
    let reported: Vec<_> = report.included.iter().map(|entry| entry.score).collect();
    assert_eq!(included(&report), ["b", "c", "a"]);
    assert_eq!(reported, [12.5, 1.0, -3.0]);
}

/// Pinned, negative and scoreable items in one list; `a` and `b` are what a scorer may see.
fn mixed() -> [ContextItem; 6] {
    [
        pinned("p", 10),
        hinted("a", 10, 0.2),
        hinted("negative", -1, 0.9),
        hinted("b", 10, 0.8),
        pinned("q", 10),
        build(ContextItem::builder("both", -5).pinned(true)),
    ]
}

// proves: SCORE-1, SCORE-2, SCORE-3, SCORE-4, SCORE-5, SCORER-1, PIPE-3, CLASSIFY-6
#[test]
fn a_scorer_is_asked_once_for_each_scoreable_item_among_exactly_those() {
    let seen = Seen::nothing();
    let asked = seen.clone();
    let scorer = score_by(move |item, all_items| {
        let own = all_items.iter().position(|other| std::ptr::eq(other, item));
        asked.push((own.expect("the very element"), owned(&contents(all_items))));
        ReflexiveScorer.score(item, all_items)
    });
    let items = mixed();
    let policy = policy().scorer(scorer).build().unwrap();
    let report = policy.dry_run(&items, &budget(100)).unwrap();
    let list = owned(&["a", "b"]);
    assert_eq!(seen.take(), [(0, list.clone()), (1, list)]);
    assert_eq!(included(&report), ["p", "q", "b", "a"]);
}

// proves: SCORE-3, ITEM-19
#[test]
fn the_items_a_scorer_sees_are_the_callers_handles() {
    let items = mixed();
    let (a, b) = (items[1].clone(), items[3].clone());
    let scorer = score_all_by(move |seen| {
        assert!(seen[0].is_same(&a) && seen[1].is_same(&b) && seen.len() == 2);
        Ok(vec![0.5; 2])
    });
    assert!(outcome(policy().scorer(scorer), &items, &budget(100)).is_ok());
}

// proves: SCORE-6, CLASSIFY-7, CLASSIFY-8, CLASSIFY-9
#[test]
fn a_scorer_is_not_asked_when_nothing_is_scoreable() {
    let lists: [(Vec<ContextItem>, &[&str]); 3] = [
        (vec![], &[]),
        (vec![pinned("p", 10), pinned("q", 0)], &["p", "q"]),
        (vec![item("negative", -1), pinned("both", -1)], &[]),
    ];
    for (items, expected) in lists {
        let by_item = wrapped(score_by(|_, _| unreachable!("there is nothing to score")));
        let by_batch = wrapped(score_all_by(|_| unreachable!("there is nothing to score")));
        for scorer in by_item.into_iter().chain(by_batch) {
            let window = outcome(policy().scorer(scorer), &items, &budget(100));
            assert_eq!(window, Ok(owned(expected)));
        }
    }
}

/// What a slicer was given: its two limits and the contents with their scores.
#[derive(Debug, PartialEq)]
struct Offer {
    budget: ContextBudget,
    items: Vec<(String, f64)>,
}

/// A greedy slicer that writes down what it is offered.
fn spy(seen: &Seen<Offer>) -> impl Slicer + 'static {
    let seen = seen.clone();
    select_by(move |ranked, budget| {
        let items = ranked.iter();
        seen.push(Offer {
            budget: budget.clone(),
            items: items
                .map(|s| (s.item.content().to_owned(), s.score))
                .collect(),
        });
        GreedySlice.select(ranked, budget)
    })
}

fn limits(max: i64, target: i64) -> ContextBudget {
    ContextBudget::with_target(max, target).unwrap()
}

// proves: SLICE-1, SLICE-2, SLICE-4, SLICE-8, SLICE-9, SLICER-5, PIPE-3, BUDGET-13, BUDGET-14, BUDGET-16, BUDGET-17
#[test]
fn a_slicer_gets_two_fresh_limits_and_the_scoreable_items_best_first() {
    let seen = Seen::nothing();
    let budget = ContextBudget::builder(1_000)
        .target_tokens(800)
        .output_reserve(100)
        .reserved_slot(kind("memory"), 50)
        .safety_margin_percent(10.0)
        .build()
        .unwrap();
    let items = [
        hinted("low", 1, 0.2),
        pinned("p", 100),
        hinted("high", 1, 0.8),
        hinted("also low", 1, 0.2),
        pinned("q", 50),
    ];
    let policy = policy().slicer(spy(&seen)).build().unwrap();
    policy.run(&items, &budget).unwrap();
    let items = [("high", 0.8), ("low", 0.2), ("also low", 0.2)];
    let offer = Offer {
        budget: limits(630, 540),
        items: items.map(|(text, score)| (text.to_owned(), score)).into(),
    };
    assert_eq!(seen.take(), [offer]);
}

// proves: SLICE-9, SORT-1, SORT-2, SORT-3, DEDUP-7
#[test]
fn a_slicer_sees_survivors_only_and_ties_in_their_order() {
    let seen = Seen::nothing();
    let items = [
        hinted("twin", 1, 0.1),
        hinted("x", 1, 0.5),
        hinted("twin", 2, 0.5),
        hinted("y", 1, 0.5),
    ];
    let policy = policy().slicer(spy(&seen)).build().unwrap();
    policy.run(&items, &budget(100)).unwrap();
    let names: Vec<_> = seen.take()[0].items.iter().map(|s| s.0.clone()).collect();
    assert_eq!(names, ["x", "twin", "y"]);
}

// proves: QUOTA-7, QUOTA-11, QUOTA-12, QUOTA-14
#[test]
fn an_inner_slicer_of_shares_gets_the_cap_as_maximum_and_the_share_as_target() {
    let seen = Seen::nothing();
    let entry = QuotaEntry::new(kind("tool"), 20.0, 50.0).unwrap();
    let slicer = QuotaSlice::new(vec![entry], spy(&seen)).unwrap();
    let tool =
        |content: &str, tokens| build(ContextItem::builder(content, tokens).kind(kind("TOOL")));
    let items = [item("m", 300), tool("t", 60), tool("u", 40)];
    let budget = ContextBudget::builder(900).target_tokens(200);
    let budget = budget.output_reserve(300).build().unwrap();
    policy()
        .slicer(slicer)
        .build()
        .unwrap()
        .run(&items, &budget)
        .unwrap();
    let seen: Vec<_> = seen
        .take()
        .into_iter()
        .map(|offer| (offer.budget, offer.items.len()))
        .collect();
    // Tools need 40 and may have 100; the other 160 are shared 300 to 100.
    assert_eq!(seen, [(limits(200, 120), 1), (limits(100, 80), 2)]);
}

// proves: CQ-11, CQ-15, CQ-16, CQ-24, R076
#[test]
fn an_inner_slicer_of_counts_gets_the_original_maximum_and_the_rest_of_the_target() {
    for (cost, rest) in [(150, 50), (200, 0), (250, 0)] {
        let seen = Seen::nothing();
        let entry = CountQuotaEntry::new(kind("tool"), 1, 1).unwrap();
        let degrade = ScarcityBehavior::Degrade;
        let slicer = CountQuotaSlice::new(vec![entry], spy(&seen), degrade).unwrap();
        let tool = ContextItem::builder("t", cost).kind(kind("tool"));
        let items = [item("m", 10), build(tool), item("n", 0)];
        let policy = policy()
            .slicer(slicer)
            .overflow_strategy(OverflowStrategy::Proceed);
        let budget = limits(500, 200);
        policy.build().unwrap().run(&items, &budget).unwrap();
        let rest = Offer {
            budget: limits(500, rest),
            items: vec![("m".to_owned(), 0.0), ("n".to_owned(), 0.0)],
        };
        assert_eq!(seen.take(), [rest]);
    }
}

// proves: CQ-16, R076
#[test]
fn the_inner_target_of_a_count_quota_follows_the_formula() {
    let mut random = Random::new(16);
    for _ in 0..300 {
        let max = random.pick(&[0, 1, 50, 200, i64::MAX]);
        let target = random.within(0..=max).min(max);
        let required = random.below(4);
        let tools: Vec<_> = (0..random.below(6))
            .map(|rank| {
                let tokens = random.pick(&[0, 1, 30, 60, i64::MAX]);
                let tool = ContextItem::builder(rank.to_string(), tokens).kind(kind("tool"));
                let score = 1.0 - rank as f64 / 10.0;
                ScoredItem {
                    item: build(tool),
                    score,
                }
            })
            .chain([scored("other", 5, 0.0)])
            .collect();
        let seen = Seen::nothing();
        let entry = CountQuotaEntry::new(kind("tool"), required, 9).unwrap();
        let slicer = CountQuotaSlice::new(vec![entry], spy(&seen), ScarcityBehavior::Degrade);
        slicer.unwrap().slice(&tools, &limits(max, target)).unwrap();
        let tools = &tools[..tools.len() - 1];
        let committed = tools.iter().take(required).map(|tool| tool.item.tokens());
        let committed: i128 = committed.map(i128::from).sum();
        let rest = (i128::from(target) - committed).max(0).min(i128::from(max));
        let rest = i64::try_from(rest).unwrap();
        let offers = seen.take();
        let budgets: Vec<_> = offers.iter().map(|offer| &offer.budget).collect();
        if target > 0 {
            assert_eq!(budgets, [&limits(max, rest)]);
        } else {
            assert!(budgets.is_empty(), "R073: a target of 0 ends the slicer");
        }
    }
}

/// Every flag of a slicer, and its caps by kind in order.
fn flags(slicer: &dyn Slicer) -> (bool, bool, bool, Vec<(String, usize)>) {
    let caps = slicer.count_cap_map().into_iter();
    let mut caps: Vec<_> = caps.map(|(kind, cap)| (kind.to_string(), cap)).collect();
    caps.sort();
    (
        slicer.is_knapsack(),
        slicer.is_quota(),
        slicer.is_count_quota(),
        caps,
    )
}

fn at_most(cap: usize) -> Vec<CountQuotaEntry> {
    vec![CountQuotaEntry::new(kind("tool"), 0, cap).unwrap()]
}

fn in_counts(cap: usize, inner: impl Slicer + 'static) -> CountQuotaSlice {
    CountQuotaSlice::new(at_most(cap), inner, ScarcityBehavior::Degrade).unwrap()
}

fn in_shares(inner: impl Slicer + 'static) -> QuotaSlice {
    QuotaSlice::new(vec![], inner).unwrap()
}

fn packed(cap: usize) -> CountConstrainedKnapsackSlice {
    let knapsack = KnapsackSlice::default();
    CountConstrainedKnapsackSlice::new(at_most(cap), knapsack, ScarcityBehavior::Degrade).unwrap()
}

// proves: R084, CCK-14
#[test]
fn decorators_and_pointers_forward_what_they_wrap() {
    type Flags = (bool, bool, bool, &'static [usize]);
    let table: [(Arc<dyn Slicer>, Flags); 9] = [
        (Arc::new(GreedySlice), (false, false, false, &[])),
        (
            Arc::new(KnapsackSlice::default()),
            (true, false, false, &[]),
        ),
        (Arc::new(packed(4)), (false, false, true, &[4])),
        (Arc::new(in_shares(GreedySlice)), (false, true, false, &[])),
        (
            Arc::new(in_counts(3, GreedySlice)),
            (false, false, true, &[3]),
        ),
        (
            Arc::new(in_shares(in_counts(3, GreedySlice))),
            (false, true, true, &[3]),
        ),
        (
            Arc::new(in_counts(3, in_shares(GreedySlice))),
            (false, true, true, &[3]),
        ),
        (Arc::new(in_shares(packed(4))), (false, true, true, &[4])),
        (
            Arc::new(in_counts(3, in_counts(2, GreedySlice))),
            (false, false, true, &[2]),
        ),
    ];
    for (slicer, (knapsack, quota, count, caps)) in table {
        let caps = caps.iter().map(|&cap| ("tool".to_owned(), cap)).collect();
        let expected = (knapsack, quota, count, caps);
        assert_eq!(flags(&*slicer), expected);
        assert_eq!(flags(&slicer), expected);
        assert_eq!(flags(&Box::new(slicer.clone())), expected);
        assert_eq!(flags(&&*slicer), expected);
    }
}

// proves: CQ-26, CQ-27, CCK-15, R084, R124
#[test]
fn budget_simulation_refuses_by_what_a_slicer_contains() {
    let table: [(Arc<dyn Slicer>, bool, bool); 7] = [
        (Arc::new(GreedySlice), false, false),
        (Arc::new(KnapsackSlice::default()), false, false),
        (Arc::new(everything()), false, false),
        (Arc::new(in_counts(3, GreedySlice)), true, false),
        (Arc::new(packed(3)), true, false),
        (Arc::new(in_shares(GreedySlice)), true, true),
        (Arc::new(in_counts(3, in_shares(GreedySlice))), true, true),
    ];
    let items = candidates();
    for (slicer, search, marginal) in table {
        let pipeline = policy().slicer(slicer).build().unwrap();
        let refused = |code: &str| code == "PipelineConfig";
        let found = pipeline.find_min_budget_for(&items, &budget(100), &items[0], 50);
        assert_eq!(found.is_err_and(|error| refused(error.code())), search);
        let lost = pipeline.get_marginal_items(&items, &budget(100), 10);
        assert_eq!(lost.is_err_and(|error| refused(error.code())), marginal);
    }
}

// proves: CQ-5, CQ-6, R079
#[test]
fn counts_refuse_a_knapsack_behind_any_pointer_and_nothing_that_merely_contains_one() {
    let attempt = |inner: Box<dyn Slicer>| {
        let slicer = CountQuotaSlice::new(vec![], inner, ScarcityBehavior::Degrade);
        slicer.map(|_| ()).map_err(|error| error.code())
    };
    let knapsack = KnapsackSlice::default;
    let refused: [Box<dyn Slicer>; 4] = [
        Box::new(knapsack()),
        Box::new(Arc::new(knapsack())),
        Box::new(Arc::new(Box::new(knapsack()) as Box<dyn Slicer>) as Arc<dyn Slicer>),
        Box::new(knapsack().cell_limit(u64::MAX)),
    ];
    for inner in refused {
        assert_eq!(attempt(inner), Err("SlicerConfig"));
    }
    let accepted: [Box<dyn Slicer>; 3] = [
        Box::new(in_shares(knapsack())),
        Box::new(packed(1)),
        Box::new(slice_by(|_, _| Ok(vec![]))),
    ];
    for inner in accepted {
        assert_eq!(attempt(inner), Ok(()));
    }
}

// proves: EXCL-13, EXCL-11, R084, REPORT-13
#[test]
fn the_report_has_the_reason_of_a_custom_slicer() {
    let (kind, text) = ("tool".to_owned(), "own words".to_owned());
    let reserved = [
        ExclusionReason::ScoredTooLow {
            score: 0.8,
            threshold: 0.85,
        },
        ExclusionReason::QuotaCapExceeded {
            kind: kind.clone(),
            cap: 1,
            actual: 2,
        },
        ExclusionReason::QuotaRequireDisplaced {
            displaced_by_kind: kind.clone(),
        },
        ExclusionReason::Filtered { filter_name: text },
        ExclusionReason::CountRequireCandidatesExhausted { kind },
    ];
    for reason in reserved {
        let given = reason.clone();
        let slicer = select_by(move |_, _| {
            let mut selection = Selection::keep(vec![0, 2]);
            selection.refuse(1, Refusal::Because(given.clone()));
            Ok(selection)
        });
        for slicer in nested(slicer) {
            let policy = policy().slicer(slicer).build().unwrap();
            let report = policy.dry_run(&candidates(), &budget(100)).unwrap();
            assert_eq!(included(&report), ["a", "c"]);
            assert_eq!(excluded(&report), ["b"]);
            assert_eq!(report.excluded[0].reason, reason);
            assert_eq!(report.excluded[0].score, 0.8);
            let messages = report
                .events
                .iter()
                .filter_map(|event| event.message.clone());
            assert_eq!(messages.collect::<Vec<_>>(), [reason.to_string()]);
        }
    }
}

// proves: R081, R084
#[test]
fn a_count_cap_names_the_kind_of_the_item_it_refused() {
    let slicer = select_by(|_, _| {
        let mut selection = Selection::default();
        selection.refuse(0, Refusal::CountCap { cap: 0, count: 5 });
        Ok(selection)
    });
    let items = [build(ContextItem::builder("a", 1).kind(kind("Tool")))];
    let policy = policy().slicer(slicer).build().unwrap();
    let report = policy.dry_run(&items, &budget(9)).unwrap();
    let reason = ExclusionReason::CountCapExceeded {
        kind: "Tool".to_owned(),
        cap: 0,
        count: 5,
    };
    assert_eq!(report.excluded[0].reason, reason);
}

// proves: EXCL-1
#[test]
fn an_item_a_slicer_both_keeps_and_refuses_is_kept() {
    let slicers = nested(select_by(|_, _| {
        let mut selection = Selection::keep(vec![1]);
        selection.refuse(1, Refusal::CountCap { cap: 1, count: 1 });
        selection.refuse(0, Refusal::CountCap { cap: 1, count: 1 });
        Ok(selection)
    }));
    for slicer in slicers {
        let policy = policy().slicer(slicer).build().unwrap();
        let report = policy.dry_run(&candidates(), &budget(100)).unwrap();
        assert_eq!(included(&report), ["b"]);
        assert_eq!(report.included[0].reason, InclusionReason::Scored);
        assert_eq!(excluded(&report), ["a", "c"]);
    }
}

// proves: R007, R006, ITEM-19, EXCL-1
#[test]
fn a_handle_passed_twice_is_two_candidates() {
    let twice = hinted("a", 10, 0.5);
    let items = [twice.clone(), twice];
    let run = |returned: usize| {
        let slicer = slice_by(move |sorted, _| {
            assert_eq!(sorted.len(), 2);
            Ok(vec![sorted[0].item.clone(); returned])
        });
        let policy = policy().slicer(slicer).deduplication(false).build();
        policy.unwrap().dry_run(&items, &budget(100))
    };
    for returned in 0..=2 {
        let report = run(returned).unwrap();
        assert_eq!(report.included.len(), returned);
        assert_eq!(report.excluded.len(), 2 - returned);
        assert_eq!(report.total_tokens_considered, 20);
    }
    let error = CupelError::Contract {
        strategy: StrategyRole::Slicer,
        violation: repeated(2),
    };
    assert_eq!(run(3), Err(error));
}

// proves: R007, PLACER-1
#[test]
fn a_placer_returns_a_handle_as_often_as_it_received_it() {
    let twice = hinted("a", 10, 0.5);
    let items = [twice.clone(), twice, hinted("b", 10, 0.4)];
    let run = |returned: fn(&[ScoredItem]) -> Vec<ContextItem>| {
        let policy = policy().placer(place_by(returned)).deduplication(false);
        outcome(policy, &items, &budget(100))
    };
    let reversed = run(|items| items.iter().rev().map(|s| s.item.clone()).collect());
    assert_eq!(reversed, Ok(owned(&["b", "a", "a"])));
    let once = run(|items| vec![items[0].item.clone(), items[2].item.clone()]);
    let thrice = run(|items| vec![items[0].item.clone(); 3]);
    let broken = |violation| {
        Err(CupelError::Contract {
            strategy: StrategyRole::Placer,
            violation,
        })
    };
    assert_eq!(once, broken(wrong_length(3, 2)));
    assert_eq!(thrice, broken(repeated(2)));
}

// proves: R007, FREQ-2
#[test]
fn each_occurrence_of_a_handle_is_a_peer_of_the_other() {
    let tagged = build(ContextItem::builder("a", 1).tag("x"));
    let items = [tagged.clone(), tagged, item("b", 1)];
    let scores = FrequencyScorer.score_all(&items).unwrap();
    assert_eq!(scores, [0.5, 0.5, 0.0]);
    let one_by_one = items.iter().map(|item| FrequencyScorer.score(item, &items));
    assert_eq!(one_by_one.collect::<Vec<_>>(), scores);
}

// proves: SLICE-11, ITEM-19, R006, DEDUP-2
#[test]
fn items_of_equal_content_are_distinguished_by_handle() {
    let items = [hinted("twin", 90, 0.9), hinted("twin", 20, 0.5)];
    let smallest = slice_by(|sorted, _| Ok(vec![sorted[1].item.clone()]));
    let policy = policy().slicer(smallest).deduplication(false).build();
    let report = policy.unwrap().dry_run(&items, &budget(100)).unwrap();
    assert!(report.included[0].item.is_same(&items[1]));
    assert_eq!(report.included[0].score, 0.5);
    assert!(report.excluded[0].item.is_same(&items[0]));
    assert_eq!(report.excluded[0].score, 0.9);
}

/// What a placer received: contents with their scores.
fn watching(seen: &Seen<Vec<(String, f64)>>) -> impl cupel::Placer + 'static {
    let seen = seen.clone();
    arrange_by(move |items: &[ScoredRef<'_>]| {
        let received = items.iter();
        seen.push(
            received
                .map(|s| (s.item.content().to_owned(), s.score))
                .collect(),
        );
        Ok((0..items.len()).collect())
    })
}

// proves: PLACE-1, PLACE-6, PLACE-7, PLACE-8, PLACE-11, PLACE-12, PLACER-3, ENUM-14, ENUM-15, ENUM-18, R036
#[test]
fn a_placer_receives_what_is_left_after_the_overflow_was_handled() {
    let items = [
        hinted("c", 30, 0.7),
        hinted("a", 40, 0.9),
        pinned("p", 20),
        hinted("b", 50, 0.8),
    ];
    let run = |strategy| {
        let seen = Seen::nothing();
        let policy = policy()
            .slicer(everything())
            .placer(watching(&seen))
            .overflow_strategy(strategy);
        let result = policy.build().unwrap().run(&items, &budget(100));
        (result.map_err(|error| error.code()), seen.take())
    };
    let list = |items: &[(&str, f64)]| -> Vec<(String, f64)> {
        items
            .iter()
            .map(|(text, score)| ((*text).to_owned(), *score))
            .collect()
    };
    let all = [("p", 1.0), ("a", 0.9), ("b", 0.8), ("c", 0.7)];
    let fitting = [all[0], all[1], all[3]];
    assert_eq!(run(OverflowStrategy::Throw), (Err("Overflow"), vec![]));
    assert_eq!(run(OverflowStrategy::Truncate).1, [list(&fitting)]);
    assert_eq!(run(OverflowStrategy::Proceed).1, [list(&all)]);
}

// proves: PLACE-13
#[test]
fn a_placer_receives_an_empty_list_when_nothing_was_selected() {
    let seen = Seen::nothing();
    let policy = policy().placer(watching(&seen)).build().unwrap();
    assert_eq!(policy.run(&[item("large", 200)], &budget(100)), Ok(vec![]));
    assert_eq!(seen.take(), [vec![]]);
}

// proves: PLACE-3, BUDGET-12
#[test]
fn overflow_is_judged_by_the_original_target() {
    let budget = ContextBudget::builder(100).reserved_slot(kind("memory"), 90);
    let budget = budget.build().unwrap();
    let greedy = |items: &[ContextItem]| outcome(policy(), items, &budget);
    let reckless = |items: &[ContextItem]| outcome(policy().slicer(everything()), items, &budget);
    let [a, b, c] = candidates();
    let three = [a, b, c];
    assert_eq!(greedy(&three), Ok(owned(&["a"])));
    assert_eq!(reckless(&three), Ok(owned(&["a", "b", "c"])));
    let error = CupelError::Overflow {
        merged_tokens: 101,
        target_tokens: 100,
    };
    assert_eq!(reckless(&[item("x", 100), item("y", 1)]), Err(error));
}

// proves: BUDGET-11, R027, R028, PIPE-2, PLACE-4
#[test]
fn a_reckless_slicer_cannot_exceed_the_ceiling() {
    let budget = ContextBudget::builder(100).output_reserve(40);
    let budget = budget.build().unwrap();
    let items = [hinted("a", 40, 0.9), hinted("b", 40, 0.8)];
    let run = |strategy| {
        let policy = policy().slicer(everything()).overflow_strategy(strategy);
        outcome(policy, &items, &budget)
    };
    let error = CupelError::Overflow {
        merged_tokens: 80,
        target_tokens: 60,
    };
    assert_eq!(run(OverflowStrategy::Throw), Err(error));
    assert_eq!(run(OverflowStrategy::Truncate), Ok(owned(&["a"])));
    assert_eq!(run(OverflowStrategy::Proceed), Ok(owned(&["a", "b"])));
}

// proves: R042, R043, EXCL-20, R098
#[test]
fn a_reckless_slicer_leaves_a_negative_rest_in_the_report() {
    let slicer = select_by(|_, _| Ok(Selection::keep(vec![0, 1])));
    let items = [
        hinted("a", 60, 0.9),
        hinted("b", 60, 0.8),
        hinted("c", 5, 0.7),
    ];
    let policy = policy()
        .slicer(slicer)
        .overflow_strategy(OverflowStrategy::Proceed);
    let mut collector = DiagnosticTraceCollector::default();
    let policy = policy.build().unwrap();
    policy
        .run_traced(&items, &budget(100), &mut collector)
        .unwrap();
    let reason = ExclusionReason::BudgetExceeded {
        item_tokens: 5,
        available_tokens: -20,
    };
    assert_eq!(collector.into_report().excluded[0].reason, reason);
}
