//! The ends of every number range: nothing panics, nothing wraps, sums are exact.

use std::sync::Arc;

use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, CountConstrainedKnapsackSlice,
    CountQuotaEntry, CountQuotaSlice, CountRequirementShortfall, CupelError, ExclusionReason,
    GreedySlice, KnapsackSlice, OverflowStrategy, Placer, Policy, QuotaEntry, QuotaSlice,
    ScarcityBehavior, ScoredItem, SelectionReport, Slicer, UShapedPlacer,
};

use super::{
    STRATEGIES, Seen, budget, build, check_consistent, contents, everything, excluded, included,
    item, kind, outcome, owned, pinned, policy, score_all_by, scored, select_by,
};

const MAX: i64 = i64::MAX;
const MIN: i64 = i64::MIN;

/// Scores no formula is prepared for, and two ordinary ones.
const SCORES: [f64; 8] = [
    f64::NAN,
    f64::INFINITY,
    0.5,
    f64::NEG_INFINITY,
    f64::MAX,
    -0.0,
    1.0,
    -f64::NAN,
];

fn quotas() -> Vec<QuotaEntry> {
    let entries = [("A", 30.0, 60.0), ("C", 70.0, 100.0)];
    entries
        .map(|(name, require, cap)| QuotaEntry::new(kind(name), require, cap).unwrap())
        .into()
}

fn counts() -> Vec<CountQuotaEntry> {
    let most = usize::MAX;
    let entries = [("A", 1, 2), ("B", 0, most), ("C", most, most)];
    entries
        .map(|(name, require, cap)| CountQuotaEntry::new(kind(name), require, cap).unwrap())
        .into()
}

/// Every built-in slicer, alone and nested.
fn slicers() -> Vec<Arc<dyn Slicer>> {
    let knapsack = |bucket| KnapsackSlice::new(bucket).unwrap();
    let degrade = ScarcityBehavior::Degrade;
    let counted = CountQuotaSlice::new(counts(), GreedySlice, degrade).unwrap();
    vec![
        Arc::new(GreedySlice),
        Arc::new(knapsack(1)),
        Arc::new(knapsack(100)),
        Arc::new(knapsack(MAX)),
        Arc::new(QuotaSlice::new(quotas(), GreedySlice).unwrap()),
        Arc::new(QuotaSlice::new(quotas(), knapsack(MAX / 3)).unwrap()),
        Arc::new(QuotaSlice::new(quotas(), counted.clone()).unwrap()),
        Arc::new(counted),
        Arc::new(CountConstrainedKnapsackSlice::new(counts(), knapsack(MAX / 9), degrade).unwrap()),
    ]
}

/// Items of these token counts, of three kinds in turn.
fn items(tokens: &[i64], pinned: usize) -> Vec<ContextItem> {
    let tokens = tokens.iter().enumerate();
    tokens
        .map(|(index, &tokens)| {
            let kind = kind(["A", "B", "C"][index % 3]);
            let builder = ContextItem::builder(index.to_string(), tokens).kind(kind);
            build(builder.pinned(index < pinned))
        })
        .collect()
}

fn budgets() -> Vec<ContextBudget> {
    let of = |max: i64, target: i64, reserve: i64, slots: &[i64], margin: f64| {
        let names = ["A", "B", "C"].into_iter().map(kind);
        let slots = names.zip(slots.iter().copied()).collect();
        ContextBudget::new(max, target, reserve, slots, margin).unwrap()
    };
    let mut budgets = vec![
        of(0, 0, 0, &[], 0.0),
        of(1, 1, 0, &[], 0.0),
        of(100, 100, 0, &[], 0.0),
        of(MAX, 0, 0, &[], 0.0),
        of(MAX, MAX, 0, &[], 0.0),
        of(MAX, MAX, 1, &[], 0.0),
        of(MAX, MAX, MAX, &[], 0.0),
        of(MAX, MAX, 0, &[MAX, MAX, MAX], 0.0),
        of(MAX, MAX - 1, MAX / 2, &[1, 0, 1], 33.3),
    ];
    for margin in [f64::MIN_POSITIVE, 1e-20, 50.0, 99.999, 100.0] {
        budgets.push(of(MAX, MAX, 0, &[], margin));
    }
    budgets
}

fn tokens<'a>(items: impl IntoIterator<Item = &'a ContextItem>) -> i128 {
    let tokens = items.into_iter().map(ContextItem::tokens);
    tokens.map(i128::from).sum()
}

/// One run: what it returns keeps the budget exactly, and it fails for the right reasons only.
fn check(policy: &Policy, items: &[ContextItem], budget: &ContextBudget) {
    let ceiling = i128::from(budget.max_tokens()) - i128::from(budget.output_reserve());
    let limit = ceiling.min(budget.target_tokens().into());
    let pins = |item: &&ContextItem| item.pinned() && item.tokens() >= 0;
    let pinned = tokens(items.iter().filter(pins));
    let throws = policy.overflow_strategy() == OverflowStrategy::Throw;
    let report = match policy.dry_run(items, budget) {
        Err(CupelError::PinnedExceedsBudget { .. }) => return assert!(pinned > ceiling),
        Err(CupelError::Overflow { .. }) => return assert!(throws),
        Err(CupelError::TableTooLarge { .. }) => return,
        Err(error) => panic!("{error}"),
        Ok(report) => report,
    };
    assert!(pinned <= ceiling, "{pinned} pinned tokens in {budget:?}");
    check_consistent(&report);
    assert_eq!(report.total_candidates, items.len());
    let window: Vec<_> = report.included.iter().map(|entry| &entry.item).collect();
    let total = tokens(window.iter().copied());
    match policy.overflow_strategy() {
        OverflowStrategy::Proceed => {}
        OverflowStrategy::Truncate if pinned > limit => {
            assert!(window.iter().all(|item| item.pinned()));
        }
        _ => assert!(total <= limit, "{total} tokens in {budget:?}"),
    }
}

// proves: R008, R009, R010, BUDGET-11, CLASSIFY-11, SCORE-8, KNAP-4, PIPE-1
#[test]
fn every_slicer_and_placer_survives_every_extreme_and_keeps_the_budget_exactly() {
    let mixed = [MAX, MIN, 0, 1, MAX - 1, -1, MAX / 2, 2];
    let lists: [&[i64]; 5] = [&[MAX; 7], &[MIN; 3], &[0; 4], &[1; 8], &mixed];
    for slicer in slicers() {
        for strategy in STRATEGIES {
            for (shift, placer) in [
                Arc::new(UShapedPlacer) as Arc<dyn Placer>,
                Arc::new(ChronologicalPlacer),
            ]
            .into_iter()
            .enumerate()
            {
                let scores = SCORES.into_iter().cycle().skip(shift * 3);
                let policy = policy()
                    .scorer(score_all_by(move |items| {
                        Ok(scores.clone().take(items.len()).collect())
                    }))
                    .slicer(slicer.clone())
                    .placer(placer)
                    .overflow_strategy(strategy)
                    .build()
                    .unwrap();
                for budget in budgets() {
                    for (tokens, pinned) in lists.iter().zip([0, 1, 2, 3, 8]) {
                        check(&policy, &items(tokens, 0), &budget);
                        check(&policy, &items(tokens, pinned), &budget);
                    }
                }
            }
        }
    }
}

// proves: R008, SLICER-1
#[test]
fn slicers_survive_negative_counts_they_are_never_offered() {
    let sorted: Vec<_> = items(&[MIN, -1, MIN, MAX, 0, 1, MIN], 0)
        .into_iter()
        .zip(SCORES)
        .map(|(item, score)| ScoredItem { item, score })
        .collect();
    for slicer in slicers() {
        for budget in budgets() {
            match slicer.slice(&sorted, &budget) {
                Ok(kept) => assert!(kept.len() <= sorted.len()),
                Err(error) => assert_eq!(error.code(), "TableTooLarge"),
            }
        }
    }
}

// proves: CLASSIFY-5, CLASSIFY-11, PIPE-1, R008
#[test]
fn pinned_items_beyond_the_integer_range_are_refused_under_every_strategy() {
    for max in [100, MAX - 1, MAX] {
        for items in [
            [pinned("p", MAX), pinned("q", MAX)],
            [pinned("p", MAX), pinned("q", 1)],
        ] {
            for strategy in STRATEGIES {
                let window = outcome(policy().overflow_strategy(strategy), &items, &budget(max));
                let error = CupelError::PinnedExceedsBudget {
                    pinned_tokens: MAX,
                    available: max,
                };
                assert_eq!(window, Err(error), "{strategy:?} within {max}");
            }
        }
    }
}

// proves: CLASSIFY-5, R008
#[test]
fn pinned_items_that_fill_the_integer_range_are_accepted() {
    let items = [pinned("p", MAX - 1), pinned("q", 1), item("x", 1)];
    let window = outcome(policy(), &items, &budget(MAX));
    assert_eq!(window, Ok(owned(&["p", "q"])));
}

// proves: R008, R027, PLACE-3, PLACE-6, PLACE-11, CQ-10, CQ-11
#[test]
fn a_merged_total_beyond_the_integer_range_is_an_overflow_and_reported_at_its_end() {
    let required = CountQuotaEntry::new(kind("Message"), 3, 3).unwrap();
    let counted = CountQuotaSlice::new(vec![required], GreedySlice, ScarcityBehavior::Degrade);
    let slicers: [Arc<dyn Slicer>; 2] = [Arc::new(everything()), Arc::new(counted.unwrap())];
    let items = ["a", "b", "c"].map(|name| item(name, MAX));
    for slicer in slicers {
        let seen = Seen::nothing();
        let observer = seen.clone();
        let run = |strategy| {
            let observer = observer.clone();
            let policy = policy()
                .slicer(slicer.clone())
                .overflow_strategy(strategy)
                .on_overflow(move |event| observer.push(event.tokens_over_budget));
            policy.build().unwrap().dry_run(&items, &budget(MAX))
        };
        let error = CupelError::Overflow {
            merged_tokens: MAX,
            target_tokens: MAX,
        };
        assert_eq!(run(OverflowStrategy::Throw), Err(error));
        let truncated = run(OverflowStrategy::Truncate).unwrap();
        assert_eq!(included(&truncated), ["a"]);
        assert_eq!(excluded(&truncated), ["b", "c"]);
        assert!(seen.take().is_empty());
        let accepted = run(OverflowStrategy::Proceed).unwrap();
        assert_eq!(included(&accepted), ["a", "b", "c"]);
        assert_eq!(seen.take(), [MAX]);
    }
}

// proves: R008, R043, EXCL-20, EXCL-22
#[test]
fn available_tokens_below_the_integer_range_are_reported_at_its_end() {
    let required = CountQuotaEntry::new(kind("Message"), 3, 3).unwrap();
    let counted = CountQuotaSlice::new(vec![required], GreedySlice, ScarcityBehavior::Degrade);
    let mut items = ["a", "b", "c"].map(|name| item(name, MAX)).to_vec();
    items.push(build(ContextItem::builder("x", 1).kind(kind("Own"))));
    let policy = policy()
        .slicer(counted.unwrap())
        .overflow_strategy(OverflowStrategy::Proceed);
    let report = policy
        .build()
        .unwrap()
        .dry_run(&items, &budget(100))
        .unwrap();
    let reason = ExclusionReason::BudgetExceeded {
        item_tokens: 1,
        available_tokens: MIN,
    };
    assert_eq!(report.excluded[0].reason, reason);
}

// proves: REPORT-7, R008, R096
#[test]
fn report_totals_are_exact_or_at_the_end_of_the_range() {
    let total = |tokens: &[i64]| {
        let report = policy()
            .build()
            .unwrap()
            .dry_run(&items(tokens, 0), &budget(1));
        let report: SelectionReport = report.unwrap();
        report.total_tokens_considered
    };
    assert_eq!(total(&[MAX, MAX]), MAX);
    assert_eq!(total(&[MIN, MIN]), MIN);
    assert_eq!(total(&[MAX, MIN]), -1);
    assert_eq!(total(&[MAX, MAX, MIN, MIN, 1]), -1);
}

/// The limits an inner slicer of shares is given for three kinds.
fn shares(quotas: Vec<QuotaEntry>, tokens: &[i64], budget: &ContextBudget) -> Vec<(i64, i64)> {
    let seen = Seen::nothing();
    let limits = seen.clone();
    let inner = select_by(move |_, budget| {
        limits.push((budget.max_tokens(), budget.target_tokens()));
        Ok(cupel::Selection::default())
    });
    let policy = policy().slicer(QuotaSlice::new(quotas, inner).unwrap());
    policy
        .build()
        .unwrap()
        .run(&items(tokens, 0), budget)
        .unwrap();
    seen.take()
}

// proves: QUOTA-6, QUOTA-9, QUOTA-11, R008, R068
#[test]
fn shares_by_mass_are_exact_beyond_the_integer_range() {
    let half = MAX / 2;
    assert_eq!(shares(vec![], &[MAX; 15], &budget(100)), [(100, 33); 3]);
    assert_eq!(
        shares(vec![], &[MAX; 15], &budget(MAX)),
        [(MAX, MAX / 3); 3]
    );
    assert_eq!(shares(vec![], &[MAX, MAX], &budget(MAX)), [(MAX, half); 2]);
    // 2^53 + 1 has no binary64; the share of the only kind is the whole target all the same.
    let odd = (1 << 53) + 1;
    assert_eq!(shares(vec![], &[1], &budget(odd)), [(odd, odd)]);
}

// proves: QUOTA-7, R008, R067
#[test]
fn shares_by_percentage_saturate() {
    let all = || vec![QuotaEntry::new(kind("A"), 100.0, 100.0).unwrap()];
    assert_eq!(shares(all(), &[MAX, MAX, MAX], &budget(MAX)), [(MAX, MAX)]);
}

// proves: SLICE-1, SLICE-2, SLICE-4, SLICE-6, SLICE-7, R008, R024, R025
#[test]
fn effective_limits_are_exact_and_stay_in_range() {
    let limits = |budget: &ContextBudget, pinned: i64| {
        let effective = budget.effective(pinned);
        (effective.max_tokens(), effective.target_tokens())
    };
    let margin = |percent: f64| {
        let budget = ContextBudget::builder(MAX).safety_margin_percent(percent);
        limits(&budget.build().unwrap(), 0)
    };
    // A margin goes through binary64, where the largest count is 2^63.
    assert_eq!(margin(0.0), (MAX, MAX));
    assert_eq!(margin(-0.0), (MAX, MAX));
    assert_eq!(margin(f64::MIN_POSITIVE), (MAX, MAX));
    assert_eq!(margin(50.0), (1 << 62, 1 << 62));
    assert_eq!(margin(100.0), (0, 0));
    assert_eq!(limits(&budget(MAX), MAX), (0, 0));
    assert_eq!(limits(&budget(MAX), MAX - 1), (1, 1));
    assert_eq!(limits(&budget(MAX), MIN), (MAX, MAX));
    let slots = ContextBudget::builder(MAX)
        .output_reserve(MAX)
        .reserved_slot(kind("A"), MAX)
        .reserved_slot(kind("B"), MAX)
        .build()
        .unwrap();
    assert_eq!(limits(&slots, MAX), (0, 0));
    assert_eq!(slots.total_reserved(), MAX);
    assert_eq!(slots.unreserved_capacity(), MIN);
    assert!(!slots.has_capacity());
}

fn selected(
    slicer: &dyn Slicer,
    sorted: &[ScoredItem],
    target: i64,
) -> Result<Vec<String>, CupelError> {
    let kept = slicer.slice(sorted, &budget(target))?;
    Ok(owned(&contents(&kept)))
}

// proves: KNAP-7, KNAP-8, KNAP-13, R008
#[test]
fn knapsack_weights_are_rounded_up_without_overflow() {
    let one = [scored("a", MAX, 0.5)];
    for (bucket, kept) in [(MAX, 1), (MAX - 1, 0), (MAX / 2, 0), (MAX / 2 + 1, 0)] {
        let slicer = KnapsackSlice::new(bucket).unwrap();
        let window = selected(&slicer, &one, MAX).unwrap();
        assert_eq!(window.len(), kept, "in buckets of {bucket}");
    }
    let default = KnapsackSlice::default();
    assert_eq!(selected(&default, &one, 100), Ok(vec![]));
    assert_eq!(selected(&default, &one, 99), Ok(vec![]));
}

// proves: KNAP-6, R009, R010
#[test]
fn knapsack_values_saturate_and_nan_is_worth_nothing() {
    let slicer = KnapsackSlice::new(1).unwrap();
    let sorted = [
        scored("infinite", 1, f64::INFINITY),
        scored("huge", 1, f64::MAX),
        scored("also huge", 1, 1e300),
        scored("small", 1, 0.5),
        scored("negative", 1, f64::NEG_INFINITY),
        scored("nan", 1, f64::NAN),
    ];
    let all = selected(&slicer, &sorted, 6);
    assert_eq!(all, Ok(owned(&["small", "also huge", "huge", "infinite"])));
    let two = selected(&slicer, &sorted, 2);
    assert_eq!(two, Ok(owned(&["huge", "infinite"])));
}

/// A table of `candidates` rows that are worth nothing, so that nothing has to be computed.
fn worthless(candidates: usize) -> Vec<ScoredItem> {
    vec![scored("x", 1, 0.0); candidates]
}

// proves: KNAP-18, R064
#[test]
fn a_knapsack_table_of_fifty_million_cells_is_the_largest() {
    let slicer = KnapsackSlice::new(1).unwrap();
    let too_large = |candidates, capacity, cells| {
        Err(CupelError::TableTooLarge {
            candidates,
            capacity,
            cells,
        })
    };
    let many = worthless(50_000);
    assert_eq!(selected(&slicer, &many, 999), Ok(vec![]));
    assert_eq!(
        selected(&slicer, &many, 1_000),
        too_large(50_000, 1_000, 50_050_000)
    );
    assert_eq!(
        selected(&slicer, &many[..1], 50_000_000),
        too_large(1, 50_000_000, 50_000_001)
    );
    let most = usize::try_from(MAX).unwrap();
    assert_eq!(
        selected(&slicer, &many[..1], MAX),
        too_large(1, most, 1 << 63)
    );
    assert_eq!(
        selected(&slicer, &many[..3], MAX),
        too_large(3, most, u64::MAX)
    );
}

// proves: KNAP-5, KNAP-18, R064
#[test]
fn only_items_that_cost_something_count_as_candidates_of_the_table() {
    let slicer = KnapsackSlice::new(1).unwrap();
    let mut sorted = worthless(1);
    sorted.extend(vec![scored("free", 0, 0.0); 3]);
    assert_eq!(
        selected(&slicer, &sorted[1..], MAX),
        Ok(owned(&["free"; 3]))
    );
    let error = selected(&slicer, &sorted, 50_000_000).unwrap_err();
    assert!(matches!(
        error,
        CupelError::TableTooLarge { candidates: 1, .. }
    ));
}

// proves: KNAP-18, CCK-13
#[test]
fn a_raised_limit_is_reported_as_the_callers_own() {
    let raised = |cells| KnapsackSlice::new(1).unwrap().cell_limit(cells);
    let many = worthless(50_000);
    assert_eq!(selected(&raised(50_050_000), &many, 1_000), Ok(vec![]));
    let error = CupelError::TableOverLimit {
        cells: 50_050_000,
        limit: 50_049_999,
    };
    assert_eq!(
        selected(&raised(50_049_999), &many, 1_000),
        Err(error.clone())
    );
    let degrade = ScarcityBehavior::Degrade;
    let packed = CountConstrainedKnapsackSlice::new(vec![], raised(50_049_999), degrade);
    assert_eq!(selected(&packed.unwrap(), &many, 1_000), Err(error));
    // The specification's own limit cannot be lowered.
    assert_eq!(selected(&raised(1), &many, 999), Ok(vec![]));
    let error = selected(&raised(1), &many, 1_000).unwrap_err();
    assert_eq!(error.code(), "TableTooLarge");
}

// proves: PIPE-4, CCK-13, KNAP-18
#[test]
fn an_oversized_table_ends_the_run() {
    let knapsack = KnapsackSlice::new(1).unwrap();
    let degrade = ScarcityBehavior::Degrade;
    let slicers: [Arc<dyn Slicer>; 3] = [
        Arc::new(knapsack),
        Arc::new(QuotaSlice::new(vec![], knapsack).unwrap()),
        Arc::new(CountConstrainedKnapsackSlice::new(vec![], knapsack, degrade).unwrap()),
    ];
    for slicer in slicers {
        let window = outcome(policy().slicer(slicer), &[item("a", 1)], &budget(MAX));
        assert_eq!(window.unwrap_err().code(), "TableTooLarge");
    }
}

#[test]
fn a_knapsack_without_limits_packs_a_small_item_into_the_largest_target() {
    let slicer = KnapsackSlice::new(1).unwrap().cell_limit(u64::MAX);
    let kept = selected(&slicer, &[scored("a", 10, 0.5)], MAX);
    assert_eq!(kept, Ok(owned(&["a"])));
}

// proves: CQ-9, CQ-13, CQ-18, CCK-6
#[test]
fn counts_as_large_as_the_machine_allows_are_counts_like_any_other() {
    let most = usize::MAX;
    let entries = || vec![CountQuotaEntry::new(kind("A"), most, most).unwrap()];
    let degrade = ScarcityBehavior::Degrade;
    let knapsack = KnapsackSlice::new(1).unwrap();
    let slicers: [Arc<dyn Slicer>; 2] = [
        Arc::new(CountQuotaSlice::new(entries(), GreedySlice, degrade).unwrap()),
        Arc::new(CountConstrainedKnapsackSlice::new(entries(), knapsack, degrade).unwrap()),
    ];
    for slicer in slicers {
        let policy = policy().slicer(slicer).build().unwrap();
        let report = policy
            .dry_run(&items(&[1, 1, 1, 1], 0), &budget(9))
            .unwrap();
        let shortfall = CountRequirementShortfall::new("A", most, 2);
        assert_eq!(report.count_requirement_shortfalls, [shortfall]);
        assert!(included(&report).starts_with(&["0"]) && included(&report).contains(&"3"));
    }
}

/// A policy whose scorer gives the candidates these scores in turn.
fn scoring(scores: &'static [f64]) -> cupel::PolicyBuilder {
    policy().scorer(score_all_by(
        move |items| Ok(scores[..items.len()].to_vec()),
    ))
}

/// NaN of either sign around numbers of every size, for candidates 0 to 5.
const UNORDERED: &[f64] = &[
    f64::NAN,
    0.5,
    f64::INFINITY,
    f64::NEG_INFINITY,
    -f64::NAN,
    0.9,
];

// proves: SCORE-7, SCORE-8, SORT-6, REPORT-4, R009, R010, USHAPE-1
#[test]
fn nan_ranks_after_every_number_everywhere() {
    let items = items(&[1; 6], 0);
    let ranks = ["2", "5", "1", "3", "0", "4"];
    let run = |tokens| outcome(scoring(UNORDERED), &items, &budget(tokens));
    assert_eq!(run(6), Ok(owned(&ranks)));
    for fitting in 1..6 {
        let tokens = i64::try_from(fitting).unwrap();
        assert_eq!(run(tokens), Ok(owned(&ranks[..fitting])));
    }
    let u_shaped = outcome(scoring(UNORDERED).placer(UShapedPlacer), &items, &budget(6));
    assert_eq!(u_shaped, Ok(owned(&["2", "1", "0", "4", "3", "5"])));
    let report = scoring(UNORDERED)
        .build()
        .unwrap()
        .dry_run(&items, &budget(0));
    assert_eq!(excluded(&report.unwrap()), ranks);
}

// proves: GREEDY-1, GREEDY-2, GREEDY-4, GREEDY-5, R010
#[test]
fn free_items_are_kept_at_any_density_of_the_others() {
    let sorted = [
        scored("infinite", 9, f64::INFINITY),
        scored("largest", 1, f64::MAX),
        scored("free", 0, f64::NEG_INFINITY),
        scored("also free", 0, f64::NAN),
        scored("nan", 1, f64::NAN),
    ];
    let kept = selected(&GreedySlice, &sorted, 10);
    assert_eq!(
        kept,
        Ok(owned(&["infinite", "largest", "free", "also free"]))
    );
}

// proves: SORT-4, R011
#[test]
fn zeros_of_either_sign_tie() {
    let items = items(&[1; 4], 0);
    let scores: &[f64] = &[-0.0, 0.0, -0.0, 0.0];
    let window = outcome(scoring(scores), &items, &budget(9));
    assert_eq!(window, Ok(owned(&["0", "1", "2", "3"])));
    let window = outcome(scoring(scores).placer(UShapedPlacer), &items, &budget(9));
    assert_eq!(window, Ok(owned(&["0", "2", "3", "1"])));
    let report = scoring(scores).build().unwrap().dry_run(&items, &budget(0));
    assert_eq!(excluded(&report.unwrap()), ["0", "1", "2", "3"]);
}

// proves: SLICE-7, SLICE-12, SLICE-13, SLICE-14, SLICER-4, GREEDY-11, KNAP-14, QUOTA-23, CQ-7, CCK-2, R046, R073
#[test]
fn an_empty_list_or_a_zero_target_selects_nothing() {
    let full = ContextBudget::builder(100).safety_margin_percent(100.0);
    let reserved = ContextBudget::builder(100).reserved_slot(kind("A"), 100);
    let nothing = [
        budget(0),
        full.build().unwrap(),
        reserved.build().unwrap(),
        ContextBudget::with_target(100, 0).unwrap(),
    ];
    for slicer in slicers() {
        let policy = policy().slicer(slicer);
        for budget in &nothing {
            let candidates = items(&[0, 0, 0, 1, 5], 1);
            let policy = policy.clone().build().unwrap();
            let report = policy.dry_run(&candidates, budget).unwrap();
            assert_eq!(included(&report), ["0"], "only the pinned item");
            assert_eq!(report.count_requirement_shortfalls, []);
        }
        for budget in budgets() {
            assert_eq!(outcome(policy.clone(), &[], &budget), Ok(vec![]));
        }
    }
}
