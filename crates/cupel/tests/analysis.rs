//! Budget simulation, the sweep, policy sensitivity, explanations, figures about reports.

use std::path::Path;
use std::sync::Arc;

use cupel::*;
use cupel_conformance::model::{self, Task};
use cupel_conformance::testing::cases;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::{adapter, arbitrary};

fn item(content: &str, tokens: i64, hint: f64) -> ContextItem {
    let builder = ContextItem::builder(content, tokens).future_relevance_hint(hint);
    builder.build().unwrap()
}

fn budget(tokens: i64) -> ContextBudget {
    ContextBudget::with_target(tokens, tokens).unwrap()
}

fn pipeline(slicer: impl Slicer + 'static) -> Pipeline {
    Pipeline::new(ReflexiveScorer, slicer, ChronologicalPlacer)
}

fn quota() -> QuotaSlice {
    QuotaSlice::new(Vec::new(), GreedySlice).unwrap()
}

fn count(inner: impl Slicer + 'static) -> CountQuotaSlice {
    CountQuotaSlice::new(Vec::new(), inner, ScarcityBehavior::Degrade).unwrap()
}

fn count_knapsack() -> CountConstrainedKnapsackSlice {
    let knapsack = KnapsackSlice::new(1).unwrap();
    CountConstrainedKnapsackSlice::new(Vec::new(), knapsack, ScarcityBehavior::Degrade).unwrap()
}

fn contents(items: &[ContextItem]) -> Vec<&str> {
    items.iter().map(ContextItem::content).collect()
}

/// Calls `check` with random runs whose strategies could be built.
fn for_random_runs(
    default_cases: u32,
    check: impl Fn(&Pipeline, &[ContextItem], &ContextBudget) -> Result<(), TestCaseError>,
) {
    let config = Config {
        cases: cases(default_cases),
        failure_persistence: None,
        ..Config::default()
    };
    let tasks = arbitrary::run().prop_filter_map("buildable", |task| {
        let Task::Run {
            policy,
            budget,
            items,
        } = &task
        else {
            return None;
        };
        let built = build(policy, budget, items).ok()?;
        Some((format!("{task:?}"), Opaque(built)))
    });
    TestRunner::new(config)
        .run(&tasks, |(_, Opaque((pipeline, budget, items)))| {
            check(&pipeline, &items, &budget)
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

type Built = (Pipeline, ContextBudget, Vec<ContextItem>);

/// Printed by its task instead.
struct Opaque(Built);

impl std::fmt::Debug for Opaque {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("..")
    }
}

fn build(
    policy: &model::Document,
    budget: &model::Budget,
    items: &[model::Item],
) -> Result<Built, model::Failure> {
    let policy = adapter::Surface::Batch.policy(policy)?.build();
    let pipeline = policy.map_err(adapter::construction)?;
    let items: Result<Vec<_>, _> = items.iter().map(adapter::item).collect();
    let budget = adapter::build_budget(budget).map_err(adapter::construction)?;
    Ok((pipeline, budget, items.map_err(adapter::construction)?))
}

/// The selected candidates of a real run, or the code of its error.
fn selected(
    pipeline: &Pipeline,
    items: &[ContextItem],
    budget: Result<ContextBudget, CupelError>,
) -> Result<Vec<usize>, &'static str> {
    let window = budget.and_then(|budget| pipeline.run_indices(items, &budget));
    let mut window = window.map_err(|error| error.code())?;
    window.sort_unstable();
    Ok(window)
}

#[test]
fn a_sweep_equals_one_run_per_budget() {
    for_random_runs(400, |pipeline, items, budget| {
        let gap = budget.max_tokens() - budget.target_tokens();
        let from = (budget.target_tokens() - 60).max(0);
        let targets = from..=from + 260;
        let sweep = pipeline.sweep(items, budget, targets.clone()).unwrap();
        prop_assert!(sweep.exact);
        prop_assert_eq!(sweep.steps[0].from, *targets.start());
        prop_assert_eq!(sweep.steps.last().unwrap().to, *targets.end());
        let mut step = sweep.steps.iter().peekable();
        let mut before = None;
        for target in targets {
            while step.peek().unwrap().to < target {
                let gone = step.next().unwrap();
                prop_assert_eq!(gone.to + 1, step.peek().unwrap().from);
            }
            let now = step.peek().unwrap();
            let run = selected(pipeline, items, budget.with_limits(target + gap, target));
            prop_assert_eq!(now.error, run.clone().err(), "at {}", target);
            let expected = run.clone().unwrap_or_default();
            prop_assert_eq!(
                sweep.selection_at(target),
                expected.clone(),
                "at {}",
                target
            );
            prop_assert_eq!(now.included, expected.len());
            prop_assert_eq!(now.excluded, items.len() - expected.len());
            let tokens: i64 = expected.iter().map(|&index| items[index].tokens()).sum();
            prop_assert_eq!(now.tokens_used, tokens);
            if now.from == target {
                prop_assert!(before.as_ref() != Some(&run), "an empty step at {}", target);
            }
            before = Some(run);
        }
        for item in &sweep.items {
            for pair in item.intervals.windows(2) {
                prop_assert!(pair[0].1 + 1 < pair[1].0, "intervals touch: {:?}", item);
            }
        }
        Ok(())
    });
}

#[test]
fn the_scores_of_a_step_add_up() {
    for_random_runs(150, |pipeline, items, budget| {
        let targets = budget.target_tokens()..=budget.target_tokens() + 40;
        let sweep = pipeline.sweep(items, budget, targets).unwrap();
        let gap = budget.max_tokens() - budget.target_tokens();
        for step in sweep.steps.iter().filter(|step| step.error.is_none()) {
            let at = budget.with_limits(step.from + gap, step.from).unwrap();
            let report = pipeline.dry_run(items, &at).unwrap();
            let total: f64 = report.included.iter().map(|included| included.score).sum();
            let close = (step.total_score - total).abs() <= 1e-9 * total.abs().max(1.0);
            let same = step.total_score.is_nan() && total.is_nan() || step.total_score == total;
            prop_assert!(close || same, "{} against {}", step.total_score, total);
        }
        Ok(())
    });
}

#[test]
fn scores_of_any_size_add_up() {
    let by_kind = |kind: &str, score| {
        let kind = ContextKind::new(kind).unwrap();
        (
            kind.clone(),
            ContextItem::builder("x", 10).kind(kind),
            score,
        )
    };
    let scored = [
        by_kind("huge", 1e300),
        by_kind("large", 4e9),
        by_kind("small", 0.25),
    ];
    let weights = scored.iter().map(|(kind, _, score)| (kind.clone(), *score));
    let scorer = KindScorer::from_weights(weights).unwrap();
    let items: Vec<_> = scored
        .iter()
        .map(|(_, item, _)| item.clone().build().unwrap())
        .collect();
    let pipeline = Pipeline::builder()
        .scorer(scorer)
        .slicer(GreedySlice)
        .placer(ChronologicalPlacer)
        .deduplication(false)
        .build()
        .unwrap();
    let sweep = pipeline.sweep(&items, &budget(30), 0..=30).unwrap();
    let totals: Vec<f64> = sweep.steps.iter().map(|step| step.total_score).collect();
    assert_eq!(totals, [0.0, 1e300, 1e300, 1e300]);
    let without_huge = pipeline.sweep(&items[1..], &budget(20), 0..=20).unwrap();
    let totals = without_huge.steps.iter().map(|step| step.total_score);
    assert_eq!(totals.collect::<Vec<_>>(), [0.0, 4e9, 4e9 + 0.25]);
}

/// The scores 2^30, 2^-23 and 2^-23: a sum of `f64` one after another loses the small ones.
#[test]
fn scores_add_up_without_rounding_in_between() {
    let large = f64::from(1 << 30);
    let small = 0.5_f64.powi(23);
    let weights = [("large", large), ("small", small)];
    let weights = weights.map(|(kind, score)| (ContextKind::new(kind).unwrap(), score));
    let items = [0, 1, 1].map(|kind: usize| {
        let item = ContextItem::builder("x", 10).kind(weights[kind].0.clone());
        item.build().unwrap()
    });
    let scorer = KindScorer::from_weights(weights).unwrap();
    let pipeline = Pipeline::builder().scorer(scorer).slicer(GreedySlice);
    let pipeline = pipeline.placer(ChronologicalPlacer).deduplication(false);
    let sweep = pipeline
        .build()
        .unwrap()
        .sweep(&items, &budget(30), 30..=30);
    let total = sweep.unwrap().steps[0].total_score;
    assert_eq!(large + small + small, large);
    assert_eq!(total, large + 2.0 * small);
}

#[test]
fn a_sampled_sweep_says_so_and_holds_where_it_looked() {
    let items: Vec<_> = (1..=9).map(|n| item(&n.to_string(), n * 7, 0.5)).collect();
    let pipeline = pipeline(quota());
    let sweep = pipeline
        .sweep_sampled(&items, &budget(300), 0..=300, 10)
        .unwrap();
    assert!(!sweep.exact);
    for step in &sweep.steps {
        let run = selected(&pipeline, &items, Ok(budget(step.from))).unwrap();
        assert_eq!(sweep.selection_at(step.from), run);
    }
    assert!(
        pipeline
            .sweep_sampled(&items, &budget(300), 0..=300, 301)
            .unwrap()
            .exact
    );
}

#[test]
fn a_sweep_ends_where_the_knapsack_table_grows_too_large() {
    let mut items: Vec<_> = (0..50).map(|n| item(&n.to_string(), 10 + n, 0.5)).collect();
    items.push(item("free", 0, 0.5));
    let pipeline = pipeline(KnapsackSlice::new(1).unwrap());
    let sweep = |targets| {
        let budget = budget(999_999);
        pipeline.sweep(&items, &budget, targets).unwrap()
    };

    let across = sweep(999_990..=1_000_010);
    assert!(across.exact);
    let last = across.steps.last().unwrap();
    assert_eq!((last.from, last.error), (1_000_000, Some("TableTooLarge")));
    assert_eq!((last.included, last.tokens_used), (0, 0));
    for item in [&across.items[0], &across.items[50]] {
        assert_eq!(item.intervals, [(999_990, 999_999)]);
    }

    let beyond = sweep(1_000_000..=1_000_010);
    let [only] = &beyond.steps[..] else {
        panic!("{:?}", beyond.steps);
    };
    assert_eq!((only.from, only.to), (1_000_000, 1_000_010));
    assert_eq!((only.included, only.error), (0, Some("TableTooLarge")));
    assert!(beyond.selection_at(1_000_005).is_empty());
}

#[test]
fn a_long_sweep_of_a_knapsack_ends_at_its_cell_limit() {
    // 50 rows of a table with 50,000,000 cells: at most 999,999 buckets of 10 tokens.
    let items: Vec<_> = (0..50).map(|n| item(&n.to_string(), 10 + n, 0.5)).collect();
    let slicer = KnapsackSlice::new(10).unwrap();
    let sweep = pipeline(slicer).sweep(&items, &budget(0), 0..=20_000_000);
    let sweep = sweep.unwrap();
    assert!(sweep.exact);
    let last = sweep.steps.last().unwrap();
    assert_eq!((last.from, last.error), (10_000_000, Some("TableTooLarge")));
    assert_eq!(sweep.selection_at(9_999_999).len(), 50);
}

#[test]
fn a_sweep_over_nonsense_is_refused() {
    let items = [item("a", 1, 0.5)];
    for (from, to) in [(-1, 5), (5, 4), (0, i64::MAX)] {
        let error = pipeline(GreedySlice)
            .sweep(&items, &budget(5), from..=to)
            .unwrap_err();
        assert_eq!(error.code(), "InvalidBudget");
    }
}

#[test]
fn a_sweep_is_written_as_csv() {
    let items = [item("dense", 10, 1.0), item("filler", 5, 0.4)];
    let sweep = pipeline(GreedySlice)
        .sweep(&items, &budget(20), 4..=16)
        .unwrap();
    assert_eq!(
        sweep.steps_csv(),
        "from,to,tokens_used,total_score,included,shortened,excluded,error\n\
         4,4,0,0,0,0,2,\n\
         5,9,5,0.4,1,0,1,\n\
         10,14,10,1,1,0,1,\n\
         15,16,15,1.4,2,0,0,\n"
    );
    assert_eq!(
        sweep.intervals_csv(),
        "index,from,to,view\n0,10,16,\n1,5,9,\n1,15,16,\n"
    );
}

#[cfg(feature = "serde")]
#[test]
fn a_sweep_is_written_as_json() {
    let items = [item("only", 10, 1.0)];
    let sweep = pipeline(GreedySlice)
        .sweep(&items, &budget(20), 9..=10)
        .unwrap();
    let expected = serde_json::json!({
        "exact": true,
        "steps": [
            {"from": 9, "to": 9, "tokens_used": 0, "total_score": 0.0, "included": 0, "shortened": 0, "excluded": 1},
            {"from": 10, "to": 10, "tokens_used": 10, "total_score": 1.0, "included": 1, "shortened": 0, "excluded": 0},
        ],
        "items": [{"index": 0, "intervals": [[10, 10]]}],
    });
    assert_eq!(serde_json::to_value(&sweep).unwrap(), expected);
}

/// The written bisection, one run per probe.
pub(crate) fn written_search(
    pipeline: &Pipeline,
    items: &[ContextItem],
    index: usize,
    ceiling: i64,
) -> Result<Option<i64>, CupelError> {
    let selects = |tokens: i64| match pipeline.run_indices(items, &budget(tokens)) {
        Ok(window) => Ok(window.contains(&index)),
        Err(CupelError::PinnedExceedsBudget { .. } | CupelError::Overflow { .. }) => Ok(false),
        Err(error) => Err(error),
    };
    let (mut low, mut high) = (items[index].tokens().max(0), ceiling);
    while high - low > 1 {
        let mid = low + (high - low) / 2;
        if selects(mid)? { high = mid } else { low = mid }
    }
    if selects(low)? {
        return Ok(Some(low));
    }
    Ok(selects(high)?.then_some(high))
}

// proves: SIM-11, SIM-14, SIM-15, SIM-16, SIM-19, R117, R118, R119, R120
#[test]
fn the_search_equals_the_written_bisection() {
    for_random_runs(400, |pipeline, items, budget| {
        let slicer = pipeline.policy().slicer();
        if slicer.is_quota() || slicer.is_count_quota() {
            return Ok(());
        }
        for (index, item) in items.iter().enumerate().take(4) {
            if item.tokens() < 0 || items.iter().position(|other| other == item) != Some(index) {
                continue;
            }
            let ceiling = i32::try_from(item.tokens() + 150).unwrap();
            let found = pipeline.find_min_budget_for(items, budget, item, ceiling);
            let expected = written_search(pipeline, items, index, ceiling.into());
            prop_assert_eq!(found.map(|least| least.map(i64::from)), expected);
        }
        Ok(())
    });
}

// proves: SIM-11, SIM-15, SIM-16
#[test]
fn the_search_among_many_equals_the_written_bisection() {
    // Few distinct densities and scores, so that most places are decided by ties.
    let items: Vec<_> = (0_i64..400)
        .map(|n| item(&n.to_string(), n * 7 % 20, (n * 11 % 5) as f64 / 4.0))
        .collect();
    let pipeline = pipeline(GreedySlice);
    for (index, item) in items.iter().enumerate() {
        for ceiling in [200, 4_000] {
            let found = pipeline.find_min_budget_for(&items, &budget(1), item, ceiling);
            let expected = written_search(&pipeline, &items, index, ceiling.into());
            assert_eq!(
                found.map(|least| least.map(i64::from)),
                expected,
                "item {index} up to {ceiling}"
            );
        }
    }
}

// proves: SIM-5, SIM-6, SIM-7, SIM-8, SIM-9, R121
#[test]
fn marginal_items_are_the_difference_of_two_runs() {
    for_random_runs(400, |pipeline, items, budget| {
        let slack = 30;
        if pipeline.policy().slicer().is_quota() {
            return Ok(());
        }
        let found = pipeline.get_marginal_items(items, budget, slack);
        let slack = i64::from(slack);
        let expected = pipeline.run_indices(items, budget).and_then(|full| {
            let (max, target) = (budget.max_tokens() - slack, budget.target_tokens() - slack);
            let reduced = pipeline.run_indices(items, &budget.with_limits(max, target)?)?;
            let lost = full.into_iter().filter(|index| !reduced.contains(index));
            Ok(lost.collect::<Vec<_>>())
        });
        match (found, expected) {
            (Ok(found), Ok(expected)) => {
                prop_assert_eq!(found.len(), expected.len());
                for (found, index) in found.iter().zip(expected) {
                    prop_assert!(found.is_same(&items[index]));
                }
            }
            (found, expected) => prop_assert_eq!(found.err(), expected.err()),
        }
        Ok(())
    });
}

// proves: SIM-4, R116
#[test]
fn the_questions_about_budgets_are_offered() {
    let items = [item("a", 10, 0.9), item("b", 20, 0.5)];
    let pipeline = pipeline(GreedySlice);
    let lost = pipeline.get_marginal_items(&items, &budget(30), 5).unwrap();
    assert_eq!(contents(&lost), ["b"]);
    let least = pipeline.find_min_budget_for(&items, &budget(1), &items[1], 100);
    assert_eq!(least.unwrap(), Some(30));
}

// proves: SIM-11, R117
#[test]
fn the_search_finds_a_budget_and_the_sweep_the_least() {
    let items = [item("X", 10, 1.0), item("Y", 5, 0.4)];
    let pipeline = pipeline(GreedySlice);
    let found = pipeline.find_min_budget_for(&items, &budget(1), &items[1], 20);
    assert_eq!(found.unwrap(), Some(15));
    let sweep = pipeline.sweep(&items, &budget(20), 0..=20).unwrap();
    assert_eq!(sweep.min_budget(1), Some(5));
    assert_eq!(sweep.items[1].intervals, [(5, 9), (15, 20)]);
}

// proves: SIM-10, CQ-27, R084, R123, R124
#[test]
fn marginal_items_refuse_shares_at_any_depth() {
    let items = [item("a", 10, 0.9)];
    let text = "GetMarginalItems requires monotonic item inclusion. QuotaSlice produces non-monotonic inclusion as budget changes shift percentage allocations.";
    let refused = CupelError::PipelineConfig(text.to_owned());
    for pipeline in [pipeline(quota()), pipeline(count(quota()))] {
        // The refusal comes first: the slack is nonsense as well.
        let error = pipeline
            .get_marginal_items(&items, &budget(10), -1)
            .unwrap_err();
        assert_eq!(error, refused);
    }
    for pipeline in [pipeline(count(GreedySlice)), pipeline(count_knapsack())] {
        assert!(pipeline.get_marginal_items(&items, &budget(10), 5).is_ok());
    }
}

/// A custom slicer that states that its inclusion is not monotonic.
struct NonMonotonic {
    is_quota: bool,
    is_count_quota: bool,
}

impl Slicer for NonMonotonic {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        // An odd target keeps every item, an even one none.
        let kept = if budget.target_tokens() % 2 == 1 {
            sorted
        } else {
            &[]
        };
        Ok(kept.iter().map(|scored| scored.item.clone()).collect())
    }

    fn is_quota(&self) -> bool {
        self.is_quota
    }

    fn is_count_quota(&self) -> bool {
        self.is_count_quota
    }
}

// proves: SIM-18
#[test]
fn both_simulations_refuse_a_custom_slicer_that_states_it_is_not_monotonic() {
    let items = [item("a", 10, 0.9)];
    for (is_quota, is_count_quota) in [(false, false), (true, false), (false, true)] {
        let custom = || NonMonotonic {
            is_quota,
            is_count_quota,
        };
        let direct = pipeline(custom());
        let boxed = pipeline(Box::new(custom()) as Box<dyn Slicer>);
        for pipeline in [direct, boxed] {
            let marginal = pipeline.get_marginal_items(&items, &budget(20), 5);
            assert_eq!(marginal.is_err(), is_quota, "{marginal:?}");
            let least = pipeline.find_min_budget_for(&items, &budget(20), &items[0], 100);
            assert_eq!(least.is_err(), is_quota || is_count_quota, "{least:?}");
        }
        // Around any slicer the flag of the inner one counts.
        let nested = pipeline(count(custom())).get_marginal_items(&items, &budget(20), 5);
        assert_eq!(nested.is_err(), is_quota, "{nested:?}");
    }
}

// proves: SIM-17, CQ-26, CCK-14, CCK-15, R084, R123, R124
#[test]
fn the_search_refuses_shares_and_counts_at_any_depth() {
    let items = [item("a", 10, 0.9)];
    let unknown = item("b", 10, 0.9);
    let text = "FindMinBudgetFor requires monotonic item inclusion. QuotaSlice and CountQuotaSlice produce non-monotonic inclusion as budget changes shift allocations. Use a GreedySlice or KnapsackSlice inner slicer for budget simulation.";
    let refused = CupelError::PipelineConfig(text.to_owned());
    for pipeline in [
        pipeline(quota()),
        pipeline(count(GreedySlice)),
        pipeline(count_knapsack()),
        pipeline(QuotaSlice::new(Vec::new(), count(GreedySlice)).unwrap()),
    ] {
        let found = pipeline.find_min_budget_for(&items, &budget(10), &unknown, 1);
        assert_eq!(found.unwrap_err(), refused);
    }
}

// proves: SIM-12, SIM-13, SIM-14, R123
#[test]
fn the_search_wants_a_known_target_and_a_ceiling_it_can_reach() {
    let items = [item("a", 10, 0.9)];
    let pipeline = pipeline(GreedySlice);
    let unknown = item("b", 10, 0.9);
    let search = |target: &ContextItem, ceiling: i32| {
        let found = pipeline.find_min_budget_for(&items, &budget(10), target, ceiling);
        found.unwrap_err().to_string()
    };
    assert_eq!(
        search(&unknown, 5),
        "invalid budget: target item must be an element of items"
    );
    assert_eq!(
        search(&items[0], 9),
        "invalid budget: search_ceiling (9) must be >= target.tokens() (10)"
    );
}

// proves: SIM-8, SIM-12, R125
#[test]
fn twins_are_told_apart_by_identity() {
    let pipeline = Pipeline::builder()
        .scorer(PriorityScorer)
        .slicer(GreedySlice)
        .placer(ChronologicalPlacer)
        .deduplication(false)
        .build()
        .unwrap();
    let twin = |priority| {
        let builder = ContextItem::builder("same", 10).priority(priority);
        builder.build().unwrap()
    };
    let items = [twin(1), twin(2)];
    let least = |target| {
        pipeline
            .find_min_budget_for(&items, &budget(1), target, 50)
            .unwrap()
    };
    assert_eq!(least(&items[1]), Some(10));
    assert_eq!(least(&items[0]), Some(20));
    assert_eq!(least(&twin(1)), Some(20)); // an equal item, not an equal text
    let lost = pipeline.get_marginal_items(&items, &budget(20), 5).unwrap();
    assert!(lost.len() == 1 && lost[0].is_same(&items[0]));
}

// proves: R120
#[test]
fn budgets_below_the_pinned_items_count_as_not_selecting() {
    let pinned = item("pinned", 50, 0.0)
        .to_builder()
        .pinned(true)
        .build()
        .unwrap();
    let items = [pinned, item("wanted", 5, 0.9)];
    let pipeline = pipeline(GreedySlice);
    let found = pipeline.find_min_budget_for(&items, &budget(1), &items[1], 90);
    assert_eq!(found.unwrap(), Some(55));
    let error = pipeline
        .get_marginal_items(&items, &budget(55), 10)
        .unwrap_err();
    assert_eq!(error.code(), "PinnedExceedsBudget");
}

// proves: R122
#[test]
fn a_slack_is_zero_or_more_and_leaves_a_budget() {
    let items = [item("a", 10, 0.9)];
    let pipeline = pipeline(GreedySlice);
    let lost = |slack| pipeline.get_marginal_items(&items, &budget(10), slack);
    assert_eq!(lost(0).unwrap(), []);
    assert_eq!(lost(-1).unwrap_err().code(), "InvalidBudget");
    assert_eq!(lost(11).unwrap_err().code(), "InvalidBudget");
    let reserve = ContextBudget::builder(10)
        .output_reserve(5)
        .build()
        .unwrap();
    let error = pipeline
        .get_marginal_items(&items, &reserve, 6)
        .unwrap_err();
    assert_eq!(error.code(), "InvalidBudget");
    let wide = pipeline
        .get_marginal_items(&items, &budget(10), i32::MAX)
        .unwrap_err();
    assert_eq!(wide.code(), "InvalidBudget");
}

// proves: R126
#[test]
fn a_target_that_costs_nothing_or_less_is_searched_from_zero() {
    let items = [item("free", 0, 0.9), item("broken", -3, 0.9)];
    let pipeline = pipeline(GreedySlice);
    let least = |target| {
        pipeline
            .find_min_budget_for(&items, &budget(1), target, 20)
            .unwrap()
    };
    assert_eq!(least(&items[0]), Some(1));
    assert_eq!(least(&items[1]), None);
}

// proves: SIM-20
#[test]
fn the_library_has_no_sweep_budget() {
    let mut directories = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut files = 0;
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let code = std::fs::read_to_string(&path).unwrap().to_lowercase();
                let code = code.replace('_', "");
                for name in ["structsweepbudget", "traitsweepbudget", "fnsweepbudget"] {
                    assert!(!code.replace(' ', "").contains(name), "{}", path.display());
                }
                files += 1;
            }
        }
    }
    assert!(files > 20, "{files} files");
}

#[test]
fn a_sweep_honors_reserve_slots_and_margin() {
    let items = [item("a", 40, 0.9)];
    let budget = ContextBudget::builder(500)
        .output_reserve(30)
        .reserved_slot(ContextKind::memory(), 20)
        .safety_margin_percent(50.0)
        .build()
        .unwrap();
    let pipeline = pipeline(GreedySlice);
    let sweep = pipeline.sweep(&items, &budget, 0..=1_000).unwrap();
    assert_eq!(sweep.min_budget(0), Some(130)); // (130 - 30 - 20) / 2 = 40
    assert_eq!(sweep.steps[0].error, Some("InvalidBudget")); // the reserve is larger
}

fn variants() -> (Policy, Policy) {
    let by_hint = Policy::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);
    let by_priority = Policy::new(PriorityScorer, GreedySlice, ChronologicalPlacer);
    (by_hint, by_priority)
}

// proves: SENS-1, SENS-5, SENS-6, SENS-7, SENS-8, SENS-10, SENS-11
#[test]
fn only_what_swings_is_in_the_diff_with_one_status_per_variant() {
    let (by_hint, by_priority) = variants();
    let item = |content: &str, hint, priority| {
        let builder = item(content, 40, hint).to_builder().priority(priority);
        builder.build().unwrap()
    };
    let items = [item("b", 0.9, 1), item("a", 0.1, 10), item("never", 0.0, 0)];
    let variants = [("hint", &by_hint), ("priority", &by_priority)];
    let report = policy_sensitivity(&items, &budget(40), &variants).unwrap();
    let labels: Vec<_> = report
        .variants
        .iter()
        .map(|(label, _)| label.as_str())
        .collect();
    assert_eq!(labels, ["hint", "priority"]);
    assert_eq!(report.variants[0].1.included[0].item.content(), "b");
    assert_eq!(report.variants[1].1.included[0].item.content(), "a");
    let (included, excluded) = (ItemStatus::Included, ItemStatus::Excluded);
    let diffs: Vec<_> = report
        .diffs
        .iter()
        .map(|diff| {
            (
                diff.content.as_str(),
                diff.statuses[0].1,
                diff.statuses[1].1,
            )
        })
        .collect();
    assert_eq!(
        diffs,
        [("b", included, excluded), ("a", excluded, included)]
    );
}

// proves: SENS-9
#[test]
fn diffs_stand_in_the_order_of_the_candidates() {
    let (by_hint, _) = variants();
    let nothing = Policy::new(ReflexiveScorer, quota_without_room(), ChronologicalPlacer);
    let items: Vec<_> = ["z", "a", "m"]
        .iter()
        .map(|text| item(text, 1, 0.5))
        .collect();
    let variants = [("all", &by_hint), ("none", &nothing)];
    let report = policy_sensitivity(&items, &budget(10), &variants).unwrap();
    let order: Vec<_> = report
        .diffs
        .iter()
        .map(|diff| diff.content.as_str())
        .collect();
    assert_eq!(order, ["z", "a", "m"]);
}

fn quota_without_room() -> QuotaSlice {
    let none = QuotaEntry::new(ContextKind::message(), 0.0, 0.0).unwrap();
    QuotaSlice::new(vec![none], GreedySlice).unwrap()
}

// proves: SENS-2, SENS-3, R004, R128
#[test]
fn fewer_than_two_variants_are_refused_in_both_forms() {
    let (policy, _) = variants();
    let pipeline = policy.clone();
    let refused =
        CupelError::PipelineConfig("policy_sensitivity requires at least 2 variants".into());
    let one = policy_sensitivity(&[], &budget(1), &[("one", &policy)]);
    assert_eq!(one.unwrap_err(), refused);
    let none: [(&str, &Pipeline); 0] = [];
    let none = policy_sensitivity_from_pipelines(&[], &budget(1), &none);
    assert_eq!(none.unwrap_err(), refused);
    let one = policy_sensitivity_from_pipelines(&[], &budget(1), &[("one", &pipeline)]);
    assert_eq!(one.unwrap_err(), refused);
}

// proves: SENS-12, R130
#[test]
fn policies_and_pipelines_take_any_slicer() {
    let entry = CountQuotaEntry::new(ContextKind::message(), 0, 1).unwrap();
    let one = CountQuotaSlice::new(vec![entry], GreedySlice, ScarcityBehavior::Degrade).unwrap();
    let policy = Policy::new(ReflexiveScorer, one, ChronologicalPlacer);
    let (all, _) = variants();
    let items = [item("a", 1, 0.9), item("b", 1, 0.8)];
    let by_policy = policy_sensitivity(&items, &budget(9), &[("one", &policy), ("all", &all)]);
    let (one, all) = (policy, all);
    let variants = [("one", &one), ("all", &all)];
    let by_pipeline = policy_sensitivity_from_pipelines(&items, &budget(9), &variants).unwrap();
    assert_eq!(by_policy.unwrap().diffs, by_pipeline.diffs);
    assert_eq!(by_pipeline.diffs.len(), 1);
}

// proves: R127
#[test]
fn copies_have_one_status_and_cause_no_swing() {
    let policy = PolicyBuilder::new()
        .scorer(ReflexiveScorer)
        .slicer(GreedySlice)
        .placer(ChronologicalPlacer)
        .deduplication(false)
        .build()
        .unwrap();
    let items = [item("same", 10, 0.9), item("same", 10, 0.1)];
    let report = policy_sensitivity(&items, &budget(10), &[("a", &policy), ("b", &policy)]);
    assert_eq!(report.unwrap().diffs, []);
}

// proves: R129
#[test]
fn a_variant_that_fails_fails_the_comparison() {
    let (policy, _) = variants();
    let pinned = item("pinned", 50, 0.0)
        .to_builder()
        .pinned(true)
        .build()
        .unwrap();
    let report = policy_sensitivity(&[pinned], &budget(9), &[("a", &policy), ("b", &policy)]);
    assert_eq!(report.unwrap_err().code(), "PinnedExceedsBudget");
}

// proves: SENS-1, SENS-11
#[test]
fn a_dry_run_with_a_policy_uses_nothing_of_the_pipeline() {
    let (by_hint, by_priority) = variants();
    let items = [item("a", 10, 0.9), item("b", 10, 0.8)];
    let strip = |mut report: SelectionReport| {
        report.events.clear();
        report
    };
    let borrowed = by_priority
        .dry_run_with_policy(&items, &budget(10), &by_hint)
        .unwrap();
    let own = by_hint.dry_run(&items, &budget(10)).unwrap();
    assert_eq!(strip(borrowed), strip(own));
}

// proves: ANALYTICS-1, ANALYTICS-2, ANALYTICS-3, R021
#[test]
fn figures_about_a_report_are_functions_and_methods() {
    let at = chrono::DateTime::from_timestamp(0, 0).unwrap();
    let memory = ContextKind::new("MEMORY").unwrap();
    let items = [
        item("a", 10, 0.9)
            .to_builder()
            .timestamp(at)
            .build()
            .unwrap(),
        item("b", 10, 0.9)
            .to_builder()
            .kind(memory)
            .build()
            .unwrap(),
        item("c", 10, 0.9)
            .to_builder()
            .kind(ContextKind::memory())
            .build()
            .unwrap(),
        item("d", 10, 0.9),
    ];
    let wide = ContextBudget::with_target(160, 80).unwrap();
    let report = pipeline(GreedySlice).dry_run(&items, &wide).unwrap();
    assert_eq!(budget_utilization(&report, &wide), 0.25);
    assert_eq!(report.budget_utilization(&wide), 0.25);
    assert_eq!(report.target_utilization(&wide), 0.5);
    assert_eq!((kind_diversity(&report), report.kind_diversity()), (2, 2));
    assert_eq!(
        (timestamp_coverage(&report), report.timestamp_coverage()),
        (0.25, 0.25)
    );

    let nothing = budget(0);
    assert_eq!(report.budget_utilization(&nothing), f64::INFINITY);
    let empty = pipeline(GreedySlice).dry_run(&[], &nothing).unwrap();
    assert_eq!(empty.budget_utilization(&nothing), 0.0);
    assert_eq!(empty.timestamp_coverage(), 0.0);

    let entry = QuotaEntry::new(ContextKind::memory(), 10.0, 50.0).unwrap();
    let quotas = QuotaSlice::new(vec![entry], GreedySlice).unwrap();
    let rows = report.quota_utilization(&quotas, &wide);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows, quota_utilization(&report, &quotas, &wide));
}

#[test]
fn an_explanation_agrees_with_the_run() {
    for_random_runs(80, |pipeline, items, budget| {
        let Ok(report) = pipeline.dry_run(items, budget) else {
            if !items.is_empty() {
                prop_assert!(pipeline.explain(items, budget, 0).is_err());
            }
            return Ok(());
        };
        let gap = budget.max_tokens() - budget.target_tokens();
        let window = pipeline.run_indices(items, budget).unwrap();
        let decisions = pipeline.decide(items, budget).unwrap();
        let parts = decisions.score_parts().unwrap();
        prop_assert_eq!(parts.len(), items.len());
        for (index, parts) in parts.iter().enumerate() {
            let why = pipeline.explain(items, budget, index).unwrap();
            prop_assert_eq!(decisions.get(index), Some(why.decision.clone()));
            prop_assert_eq!(decisions.score(index).to_bits(), why.score.to_bits());
            prop_assert_eq!(decisions.rank(index), why.rank);
            let text = |parts: &Option<ScorePart>| parts.as_ref().map(ScorePart::to_string);
            prop_assert_eq!(text(parts), text(&why.parts));
            match &why.decision {
                Decision::Included { position, reason } => {
                    prop_assert_eq!(window[*position], index);
                    prop_assert_eq!(report.included[*position].reason, *reason);
                }
                Decision::Excluded { reason, .. } => {
                    let entry = |excluded: &&ExcludedItem| excluded.item.is_same(&items[index]);
                    let entry = report.excluded.iter().find(entry).unwrap();
                    prop_assert_eq!(&entry.reason, reason);
                    prop_assert_eq!(entry.score.to_bits(), why.score.to_bits());
                    let is_copy = matches!(reason, ExclusionReason::Deduplicated { .. });
                    prop_assert_eq!(decisions.copy_of(index).is_some(), is_copy);
                    if let Some(survivor) = decisions.copy_of(index) {
                        prop_assert_eq!(items[survivor].content(), items[index].content());
                        prop_assert!(decisions.rank(survivor).is_some());
                    }
                }
                other => prop_assert!(false, "{:?}", other),
            }
            if let Some(parts) = &why.parts {
                prop_assert!(parts.score == why.score || why.score.is_nan(), "{}", parts);
            }
            if let Some(extra) = why.extra_tokens {
                let at = |extra: i64| {
                    let target = budget.target_tokens() + extra;
                    let selected =
                        selected(pipeline, items, budget.with_limits(target + gap, target));
                    selected.is_ok_and(|selected| selected.contains(&index))
                };
                prop_assert!(at(extra), "{} tokens more are not enough", extra);
                for less in 0..extra.min(200) {
                    prop_assert!(!at(less), "{} are enough, not {}", less, extra);
                }
            }
            let opening = format!("candidate {index}, ");
            prop_assert!(why.to_string().starts_with(&opening));
        }
        Ok(())
    });
}

#[test]
fn the_record_of_a_run_agrees_with_its_trace() {
    #[derive(Default)]
    struct Overflow(Option<OverflowEvent>);

    impl TraceCollector for Overflow {
        fn is_enabled(&self) -> bool {
            true
        }

        fn record_stage_event(&mut self, _event: TraceEvent) {}

        fn record_item_event(&mut self, _event: TraceEvent) {}

        fn on_overflow(&mut self, event: &OverflowEvent) {
            self.0 = Some(event.clone());
        }
    }

    for_random_runs(80, |pipeline, items, budget| {
        let mut collector = Overflow::default();
        let policy = pipeline.policy();
        let Ok(traced) = policy.decide_traced(items, budget, &mut collector) else {
            return Ok(());
        };
        let untraced = pipeline.decide(items, budget).unwrap();
        prop_assert_eq!(traced.ranking(), untraced.ranking());
        prop_assert_eq!(traced.excluded(), untraced.excluded());
        prop_assert_eq!(traced.merged(), untraced.merged());
        let over = collector.0.as_ref().map(|event| event.tokens_over_budget);
        prop_assert_eq!((traced.overflow(), untraced.overflow()), (over, over));
        if let Some(event) = &collector.0 {
            let merged = untraced.merged();
            prop_assert_eq!(merged.len(), event.overflowing_items.len());
            for (&candidate, item) in merged.iter().zip(&event.overflowing_items) {
                prop_assert!(items[candidate].is_same(item));
            }
        }
        let used = total_tokens(untraced.window().iter().map(|&index| &items[index]));
        prop_assert_eq!(untraced.tokens_used(), used);
        let left = budget.target_tokens().saturating_sub(used);
        prop_assert_eq!(untraced.tokens_left(), left);
        for (place, &candidate) in untraced.window().iter().enumerate() {
            prop_assert_eq!(untraced.position(candidate), Some(place));
        }
        if let Some(rule) = untraced.placement_rule() {
            let window = rule.order(|candidate| untraced.position(candidate).is_some());
            prop_assert_eq!(window, untraced.window());
        }
        for (index, item) in items.iter().enumerate() {
            let is_ranked = untraced.ranking().contains(&index);
            prop_assert_eq!(untraced.rank(index).is_some(), is_ranked);
            let is_early = untraced
                .stage(index)
                .is_some_and(|s| s < PipelineStage::Slice);
            prop_assert_eq!(is_ranked, !item.pinned() && !is_early);
        }
        prop_assert_eq!(untraced.get(items.len()), None);
        prop_assert_eq!(untraced.rank(items.len()), None);
        prop_assert_eq!(untraced.inclusion(items.len()), None);
        Ok(())
    });
}

#[test]
fn an_explanation_lists_the_ranges_of_budgets() {
    // Greedy takes the denser item whenever it fits, so the other one is in, out and in again.
    let pipeline = pipeline(GreedySlice);
    let items = [item("dense", 10, 1.0), item("filler", 5, 0.4)];
    let why = pipeline.explain(&items, &budget(3), 1).unwrap();
    assert_eq!(why.extra_tokens, Some(2));
    assert_eq!(why.included_at, [(5, 9), (15, 5 + (1 << 17))]);
    let text = why.to_string();
    assert!(
        text.contains("  included at budgets of 5 to 9, 15 and above\n"),
        "{text}"
    );
}

#[test]
fn an_explanation_says_how_the_limit_follows_from_the_budget() {
    let items = [item("a", 10, 1.0)];
    for (max, target, reserve, limit) in [
        (200, 200, 0, "200"),
        (200, 100, 0, "100"),
        (200, 200, 50, "150 (target 200 less reserve 50)"),
        (2_000, 1_990, 50, "1,950 (budget 2,000 less reserve 50)"),
    ] {
        let budget = ContextBudget::builder(max).target_tokens(target);
        let budget = budget.output_reserve(reserve).build().unwrap();
        let why = pipeline(GreedySlice).explain(&items, &budget, 0).unwrap();
        let line = format!("  the window uses 10 of {limit}\n");
        assert!(why.to_string().contains(&line), "{why}");
    }
}

#[test]
fn the_search_ceiling_may_be_the_tokens_of_the_item() {
    let items = [item("a", 10, 1.0)];
    let pipeline = pipeline(GreedySlice);
    let search = |ceiling| pipeline.find_min_budget_for(&items, &budget(50), &items[0], ceiling);
    assert_eq!(search(10), Ok(Some(10)));
    assert!(search(9).is_err());
}

#[test]
fn an_explanation_reads_well() {
    let scorer = CompositeScorer::builder()
        .add(ReflexiveScorer, 3.0)
        .add(ScaledScorer::new(PriorityScorer), 1.0)
        .build()
        .unwrap();
    let pipeline = Pipeline::new(scorer, GreedySlice, ChronologicalPlacer);
    let prioritized = |content: &str, tokens, hint, priority| {
        let builder = item(content, tokens, hint).to_builder().priority(priority);
        builder.build().unwrap()
    };
    let items = [
        prioritized("short and dense", 20, 0.5, 1),
        prioritized("long", 90, 1.0, 2),
        prioritized("tiny", 1, 0.1, 3),
    ];
    let why = pipeline.explain(&items, &budget(100), 1).unwrap();
    assert_eq!(
        why.to_string(),
        "candidate 1, 90 tokens: \"long\"\n  \
           excluded by Slice: BudgetExceeded: 90 tokens requested, 79 available\n  \
           rank 1 of 3\n  \
           the window uses 21 of 100\n  \
           displaced by candidate 0, 2\n  \
           included at a budget of 111\n  \
           CompositeScorer 0.875000\n    \
             ReflexiveScorer 1.000000 x 0.750000 = 0.750000\n    \
             ScaledScorer 0.500000 x 0.250000 = 0.125000\n      \
               PriorityScorer 0.500000\n  \
           rank 2: candidate 0, 20 tokens, score 0.375000, included\n  \
           rank 3: candidate 2, 1 tokens, score 0.325000, included\n"
    );
    for error in [
        pipeline.explain(&items, &budget(100), 3).unwrap_err(),
        PriorityScorer.explain(&items, 3).unwrap_err(),
    ] {
        assert_eq!(
            error.to_string(),
            "invalid pipeline configuration: index 3 is out of range: there are 3 candidates"
        );
    }
}

/// Greedy fills 8, 4, 2 and 1 tokens in this order, so the last item is in at odd budgets and from 15 on.
fn powers_of_two() -> [ContextItem; 4] {
    [
        item("eight", 8, 1.0),
        item("four", 4, 0.4),
        item("two", 2, 0.1),
        item("one", 1, 0.01),
    ]
}

#[test]
fn an_explanation_writes_four_ranges_and_counts_the_others() {
    let items = powers_of_two();
    let text = |tokens: i64| {
        let why = pipeline(GreedySlice).explain(&items, &budget(tokens), 3);
        why.unwrap().to_string()
    };
    for (tokens, ranges) in [
        (2, "3, 5, 7, 9 and 3 more ranges"),
        (6, "7, 9, 11, 13 and 1 more ranges"),
        (8, "9, 11, 13, 15 and above"),
    ] {
        let line = format!("\n  included at budgets of {ranges}\n");
        assert!(text(tokens).contains(&line), "{}", text(tokens));
    }
    assert!(text(14).contains("\n  included at a budget of 15\n"));
    assert!(!text(15).contains("budget of"));
}

#[test]
fn an_explanation_searches_no_further_than_it_says() {
    let items = [item("large", 200_000, 0.5)];
    let quota = || QuotaSlice::new(Vec::new(), GreedySlice).unwrap();
    for (by_steps, extra, found) in [
        (true, 131_072, true),
        (true, 131_073, false),
        (false, 2_048, true),
        (false, 2_049, false),
    ] {
        let pipeline = if by_steps {
            pipeline(GreedySlice)
        } else {
            pipeline(quota())
        };
        let why = pipeline.explain(&items, &budget(200_000 - extra), 0);
        let why = why.unwrap();
        assert_eq!(why.extra_tokens, found.then_some(extra));
        let ranges: &[(i64, i64)] = match (found, by_steps) {
            (false, _) => &[],
            (true, true) => &[(200_000, 331_072)],
            (true, false) => &[(200_000, 200_000)],
        };
        assert_eq!(why.included_at, ranges);
        let text = why.to_string();
        let line = "  included at a budget of 200,000; larger budgets were not searched\n";
        assert_eq!(text.contains(line), found && !by_steps, "{text}");
    }
}

#[test]
fn an_explanation_shows_two_neighbors_on_each_side() {
    let items: Vec<ContextItem> = (0..7)
        .map(|rank| item(&format!("{rank}"), 10, 0.9 - f64::from(rank) / 10.0))
        .collect();
    for (index, expected) in [
        (0, &[1, 2][..]),
        (1, &[0, 2, 3]),
        (3, &[1, 2, 4, 5]),
        (6, &[4, 5]),
    ] {
        let why = pipeline(GreedySlice).explain(&items, &budget(30), index);
        let why = why.unwrap();
        let ranks: Vec<usize> = why.neighbors.iter().map(|neighbor| neighbor.rank).collect();
        assert_eq!(ranks, expected);
        for neighbor in &why.neighbors {
            assert_eq!(neighbor.index, neighbor.rank);
            assert_eq!(
                neighbor.score,
                items[neighbor.index].future_relevance_hint().unwrap()
            );
            assert_eq!(neighbor.tokens, 10);
            assert_eq!(neighbor.included, neighbor.rank < 3);
        }
    }
}

#[test]
fn a_mandatory_item_is_not_in_instead_of_another() {
    let task = ContextItem::builder("task", 5)
        .future_relevance_hint(0.1)
        .mark(|marks| marks.retention = Retention::Mandatory)
        .build()
        .unwrap();
    let items = [item("large", 100, 1.0), task, item("small", 5, 0.5)];
    let why = pipeline(GreedySlice)
        .explain(&items, &budget(10), 0)
        .unwrap();
    assert_eq!(why.displaced_by, [2]);
}

#[test]
fn an_explanation_names_the_items_that_are_in_instead() {
    // Nine dense items and a free one are behind the large item.
    let mut items = vec![item("large", 100, 1.0)];
    items.extend((0..10).map(|index| item(&format!("{index}"), i64::from(index > 0), 0.5)));
    let explain = |items: &[ContextItem], index: usize| {
        pipeline(GreedySlice)
            .explain(items, &budget(99), index)
            .unwrap()
    };
    let why = explain(&items, 0);
    assert_eq!(why.displaced_by, [2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let line = "\n  displaced by candidate 2, 3, 4, 5, 6, 7, 8, 9 and 1 more\n";
    assert!(why.to_string().contains(line), "{why}");
    let why = explain(&items[..10], 0);
    let line = "\n  displaced by candidate 2, 3, 4, 5, 6, 7, 8, 9\n";
    assert!(why.to_string().contains(line), "{why}");
    assert!(explain(&items, 1).displaced_by.is_empty());
    assert!(!explain(&items, 1).to_string().contains("displaced"));

    // Those that rank above are not in its place.
    let middle = [
        item("top", 5, 1.0),
        item("large", 100, 0.9),
        item("last", 5, 0.1),
    ];
    assert_eq!(explain(&middle, 1).displaced_by, [2]);

    // A duplicate: the copy that stays.
    let copies = [
        item("same", 10, 0.1),
        item("same", 10, 0.9),
        item("other", 10, 0.2),
    ];
    assert_eq!(explain(&copies, 0).displaced_by, [1]);
    assert_eq!(explain(&copies, 0).rank, None);
    assert!(explain(&copies, 0).neighbors.is_empty());

    // An item that would fit without the pinned ones: these, without free ones.
    let pinned = |content: &str, tokens: i64| {
        let builder = item(content, tokens, 0.0).to_builder().pinned(true);
        builder.build().unwrap()
    };
    let rules = [
        pinned("free", 0),
        item("late", 60, 0.9),
        pinned("rules", 50),
    ];
    let why = explain(&rules, 1);
    assert_eq!(why.displaced_by, [2]);
    assert_eq!(why.extra_tokens, Some(11));

    // A count limit: the kept items of the same kind, without free ones.
    let entry = CountQuotaEntry::new(ContextKind::memory(), 0, 2).unwrap();
    let slicer = CountQuotaSlice::new(vec![entry], GreedySlice, ScarcityBehavior::Degrade);
    let of_kind = |content: &str, kind: ContextKind, tokens: i64, hint: f64| {
        let builder = item(content, tokens, hint).to_builder().kind(kind);
        builder.build().unwrap()
    };
    let kinds = [
        of_kind("first", ContextKind::memory(), 5, 0.9),
        of_kind("free", ContextKind::memory(), 0, 0.8),
        of_kind("third", ContextKind::memory(), 5, 0.7),
        of_kind("document", ContextKind::document(), 5, 0.6),
    ];
    let why = pipeline(slicer.unwrap()).explain(&kinds, &budget(99), 2);
    assert_eq!(why.unwrap().displaced_by, [0]);
}

#[test]
fn an_explanation_names_the_similar_item_that_is_in() {
    // The first item fills the window alone and is not similar; the third is similar to the second.
    let text = "the parcel for order 81 left the branch on monday morning";
    let items = [
        item("an invoice of the carrier", 5, 0.9),
        item(text, 10, 0.8),
        item(&format!("{text} again"), 11, 0.7),
    ];
    let slicer = NearDuplicateSlice::new(GreedySlice);
    let why = pipeline(slicer).explain(&items, &budget(99), 2).unwrap();
    assert!(matches!(
        why.decision,
        Decision::Excluded {
            reason: ExclusionReason::NearDuplicate { .. },
            ..
        }
    ));
    assert_eq!(why.displaced_by, [1]);
}

#[test]
fn an_explanation_of_an_included_item_has_its_place_from_one() {
    let items = [item("first", 5, 0.9), item("second", 5, 0.8)];
    let why = pipeline(GreedySlice).explain(&items, &budget(99), 1);
    let why = why.unwrap().to_string();
    assert!(why.contains("included at place 2 of the window"), "{why}");
}

#[test]
fn a_record_has_its_order_before_placing_and_its_rule() {
    let pinned = item("rules", 1, 0.0).to_builder().pinned(true);
    let items = [
        item("low", 5, 0.1),
        item("high", 5, 0.9),
        pinned.build().unwrap(),
        item("middle", 5, 0.5),
        item("left out", 500, 0.7),
    ];
    let check = |placer: Arc<dyn Placer>, expected: [usize; 4]| {
        let policy = Policy::builder()
            .scorer(ReflexiveScorer)
            .slicer(GreedySlice)
            .placer(placer)
            .build()
            .unwrap();
        let decisions = policy.decide(&items, &budget(100)).unwrap();
        assert_eq!(decisions.window(), expected);
        assert_eq!(decisions.merged(), [2, 1, 3, 0]);
        let rule = decisions.placement_rule().unwrap();
        assert_eq!(rule.order(|candidate| candidate != 4), expected);
        let text = format!("{decisions:?}");
        let expected = format!("Decisions {{ window: {expected:?}, excluded: [(4, ");
        assert!(text.starts_with(&expected), "{text}");
    };
    check(Arc::new(ChronologicalPlacer), [2, 1, 3, 0]);
    // Pinned items score 1.0: the best at both ends, the worst in the middle.
    check(Arc::new(UShapedPlacer), [2, 3, 0, 1]);
}

#[test]
fn decisions_at_many_budgets_are_in_order() {
    let policy = pipeline(GreedySlice).policy().clone();
    let items = [item("a", 2, 0.5), item("b", 3, 0.9)];
    let budgets = [budget(1), budget(9), budget(3)];
    let decisions = policy.decide_each(&items, &budgets).unwrap();
    let windows: Vec<_> = decisions.iter().map(|run| run.window().to_vec()).collect();
    assert_eq!(windows, [vec![], vec![1, 0], vec![1]]);
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the clock that stages are timed by"
)]
fn the_times_of_the_stages_are_milliseconds_within_the_run() {
    let items = [item("a", 2, 0.5)];
    let start = std::time::Instant::now();
    let mut collector = DiagnosticTraceCollector::new(TraceDetailLevel::Stage);
    let pipeline = pipeline(GreedySlice);
    pipeline
        .run_traced(&items, &budget(9), &mut collector)
        .unwrap();
    let whole = start.elapsed().as_secs_f64() * 1e3;
    let report = collector.into_report();
    let stages: f64 = report.events.iter().map(|event| event.duration_ms).sum();
    assert!(0.0 < stages && stages <= whole, "{stages} of {whole}");
}
