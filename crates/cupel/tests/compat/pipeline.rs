//! `cupel::pipeline`: builders, runs, policies and budget simulation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, ContextItemBuilder, ContextKind,
    CountConstrainedKnapsackSlice, CountQuotaEntry, CountQuotaSlice, CupelError,
    DiagnosticTraceCollector, ExclusionReason, GreedySlice, GroupSlice, KnapsackSlice,
    NullTraceCollector, OverflowStrategy, Pipeline, PipelineBuilder, Placer, Policy, PolicyBuilder,
    PriorityScorer, QuotaEntry, QuotaSlice, ReflexiveScorer, ScarcityBehavior, ScoredItem, Scorer,
    SelectionReport, Slicer, UShapedPlacer,
};

use super::{budget, check_text, contents, hinted, item, pinned};

type Run = Result<Vec<ContextItem>, CupelError>;
type DryRun = Result<SelectionReport, CupelError>;
type Least = Result<Option<i32>, CupelError>;

#[test]
fn pipeline_methods_have_their_signatures() {
    let _: fn() -> PipelineBuilder = Pipeline::builder;
    let _: fn(&Pipeline, &[ContextItem], &ContextBudget) -> Run = Pipeline::run;
    let _: fn(&Pipeline, &[ContextItem], &ContextBudget, &mut NullTraceCollector) -> Run =
        Pipeline::run_traced::<NullTraceCollector>;
    let _: fn(&Pipeline, &[ContextItem], &ContextBudget, &mut DiagnosticTraceCollector) -> Run =
        Pipeline::run_traced::<DiagnosticTraceCollector>;
    let _: fn(&Pipeline, &[ContextItem], &ContextBudget) -> DryRun = Pipeline::dry_run;
    let _: fn(&Pipeline, &[ContextItem], &ContextBudget, &Policy) -> DryRun =
        Pipeline::dry_run_with_policy;
    let _: fn(&Pipeline, &[ContextItem], &ContextBudget, i32) -> Run = Pipeline::get_marginal_items;
    let _: fn(&Pipeline, &[ContextItem], &ContextBudget, &ContextItem, i32) -> Least =
        Pipeline::find_min_budget_for;
}

#[test]
fn builder_methods_have_their_signatures() {
    type Builder = PipelineBuilder;
    let _: fn(Builder, Box<dyn Scorer>) -> Builder = Builder::scorer;
    let _: fn(Builder, Box<dyn Slicer>) -> Builder = Builder::slicer;
    let _: fn(Builder, Box<dyn Placer>) -> Builder = Builder::placer;
    let _: fn(Builder, bool) -> Builder = Builder::deduplication;
    let _: fn(Builder, OverflowStrategy) -> Builder = Builder::overflow_strategy;
    let _: fn(Builder) -> Result<Pipeline, CupelError> = Builder::build;

    let _: fn() -> PolicyBuilder = PolicyBuilder::new;
    let _: fn() -> PolicyBuilder = PolicyBuilder::default;
    let _: fn(PolicyBuilder, Arc<dyn Scorer>) -> PolicyBuilder = PolicyBuilder::scorer;
    let _: fn(PolicyBuilder, Arc<dyn Slicer>) -> PolicyBuilder = PolicyBuilder::slicer;
    let _: fn(PolicyBuilder, Arc<dyn Placer>) -> PolicyBuilder = PolicyBuilder::placer;
    let _: fn(PolicyBuilder, bool) -> PolicyBuilder = PolicyBuilder::deduplication;
    let _: fn(PolicyBuilder, OverflowStrategy) -> PolicyBuilder = PolicyBuilder::overflow_strategy;
    let _: fn(PolicyBuilder) -> Result<Policy, CupelError> = PolicyBuilder::build;
}

#[test]
fn a_pipeline_without_a_part_names_the_part() {
    let builder = Pipeline::builder();
    check_text(
        builder.build(),
        "invalid pipeline configuration: scorer is required",
    );
    let builder = Pipeline::builder().scorer(Box::new(ReflexiveScorer));
    check_text(
        builder.build(),
        "invalid pipeline configuration: slicer is required",
    );
    let builder = Pipeline::builder()
        .scorer(Box::new(ReflexiveScorer))
        .slicer(Box::new(GreedySlice));
    check_text(
        builder.build(),
        "invalid pipeline configuration: placer is required",
    );
}

#[test]
fn a_policy_without_a_part_names_the_part() {
    check_text(
        PolicyBuilder::default().build(),
        "invalid pipeline configuration: scorer is required",
    );
    let builder = PolicyBuilder::new().scorer(Arc::new(ReflexiveScorer));
    check_text(
        builder.build(),
        "invalid pipeline configuration: slicer is required",
    );
    let builder = PolicyBuilder::new()
        .scorer(Arc::new(ReflexiveScorer))
        .slicer(Arc::new(GreedySlice));
    check_text(
        builder.build(),
        "invalid pipeline configuration: placer is required",
    );
}

fn builder() -> PipelineBuilder {
    Pipeline::builder()
        .scorer(Box::new(ReflexiveScorer))
        .slicer(Box::new(GreedySlice))
        .placer(Box::new(ChronologicalPlacer))
}

fn pipeline() -> Pipeline {
    builder().build().unwrap()
}

#[test]
fn pipelines_and_policies_print_their_strategies() {
    assert_eq!(
        format!("{:?}", Pipeline::builder()),
        "PolicyBuilder { scorer: false, slicer: false, placer: false, \
         deduplication: true, overflow_strategy: Throw }"
    );
    assert_eq!(
        format!("{:?}", builder().deduplication(false)),
        "PolicyBuilder { scorer: ReflexiveScorer, slicer: GreedySlice, \
         placer: ChronologicalPlacer, deduplication: false, overflow_strategy: Throw }"
    );
    assert_eq!(
        format!("{:?}", pipeline()),
        "Policy { scorer: ReflexiveScorer, slicer: GreedySlice, \
         placer: ChronologicalPlacer, deduplication: true, overflow_strategy: Throw }"
    );

    let policy = PolicyBuilder::new().scorer(Arc::new(ReflexiveScorer));
    assert_eq!(
        format!("{policy:?}"),
        "PolicyBuilder { scorer: ReflexiveScorer, slicer: false, placer: false, \
         deduplication: true, overflow_strategy: Throw }"
    );
    let policy = policy
        .slicer(Arc::new(GroupSlice::new(GreedySlice)))
        .placer(Arc::new(UShapedPlacer))
        .overflow_strategy(OverflowStrategy::Proceed)
        .build();
    assert_eq!(
        format!("{:?}", policy.unwrap()),
        "Policy { scorer: ReflexiveScorer, slicer: GroupSlice(GreedySlice), \
         placer: UShapedPlacer, deduplication: true, overflow_strategy: Proceed }"
    );
}

/// Custom strategies that record their input.
#[derive(Clone, Default)]
struct Witness(Arc<Mutex<Vec<String>>>);

impl Witness {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl Scorer for Witness {
    fn score(&self, item: &ContextItem, all_items: &[ContextItem]) -> f64 {
        assert!(all_items.iter().any(|other| std::ptr::eq(other, item)));
        self.note(format!(
            "score {} of {:?}",
            item.content(),
            contents(all_items)
        ));
        item.future_relevance_hint().unwrap_or(0.0)
    }
}

impl Slicer for Witness {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        self.note(format!("slice {:?}", pairs(sorted)));
        self.note(format!(
            "budget {} {} {} {} {}",
            budget.max_tokens(),
            budget.target_tokens(),
            budget.output_reserve(),
            budget.reserved_slots().len(),
            budget.estimation_safety_margin_percent()
        ));
        Ok(sorted.iter().rev().map(|it| it.item.clone()).collect())
    }
}

impl Placer for Witness {
    fn place(&self, items: &[ScoredItem]) -> Vec<ContextItem> {
        self.note(format!("place {:?}", pairs(items)));
        items.iter().map(|it| it.item.clone()).collect()
    }
}

fn pairs(items: &[ScoredItem]) -> Vec<(&str, f64)> {
    let pairs = items.iter().map(|it| (it.item.content(), it.score));
    pairs.collect()
}

// The slicer's budget is the effective one, less slots and margin (R022, R024), and the placer
// sees the pinned items first and the others by score, in any order of the slicer (R034).
//
// proves: ENUM-18, SCORE-2, SCORE-3, SCORE-5, SLICE-1, SLICE-2, SLICE-4, SLICE-8, PLACE-1, PLACE-2, R022, R034
#[test]
fn custom_strategies_get_the_input_the_stages_promise() {
    let witness = Witness::default();
    let pipeline = Pipeline::builder()
        .scorer(Box::new(witness.clone()))
        .slicer(Box::new(witness.clone()))
        .placer(Box::new(witness.clone()))
        .build()
        .unwrap();
    let items = [
        hinted("low", 10, 0.25),
        pinned("rules", 30),
        item("broken", -1),
        hinted("high", 20, 0.5),
    ];
    let slots = HashMap::from([(ContextKind::memory(), 10)]);
    let budget = ContextBudget::new(200, 150, 20, slots, 10.0).unwrap();
    let kept = pipeline.run(&items, &budget).unwrap();
    assert_eq!(contents(&kept), ["rules", "high", "low"]);
    assert_eq!(
        *witness.0.lock().unwrap(),
        [
            r#"score low of ["low", "high"]"#,
            r#"score high of ["low", "high"]"#,
            r#"slice [("high", 0.5), ("low", 0.25)]"#,
            "budget 126 99 0 0 0",
            r#"place [("rules", 1.0), ("high", 0.5), ("low", 0.25)]"#,
        ]
    );
}

// proves: ITEM-16
#[test]
fn items_come_back_as_they_went_in() {
    let metadata = HashMap::from([("origin".to_string(), "wiki".to_string())]);
    let rich = ContextItemBuilder::new("rich", 5)
        .metadata(metadata)
        .tags(vec!["a".to_string()])
        .original_tokens(50)
        .priority(3)
        .build()
        .unwrap();
    let kept = pipeline().run(std::slice::from_ref(&rich), &budget(10, 10));
    assert_eq!(kept.unwrap(), [rich]);
}

// proves: ITEM-4
#[test]
fn a_token_count_is_believed() {
    let items = [item("a text of seven words, by estimation", 1)];
    assert_eq!(pipeline().run(&items, &budget(1, 1)).unwrap(), items);
}

// proves: ITEM-15
#[test]
fn metadata_means_nothing_to_the_stages() {
    let plain = rivals();
    let marked = rivals().map(|item| {
        let words = ["cupel:trust", "cupel:priority", "pinned", "tokens", "score"];
        let metadata = words.map(|word| (word.to_string(), "0".to_string()));
        ContextItemBuilder::new(item.content(), item.tokens())
            .future_relevance_hint(item.future_relevance_hint().unwrap())
            .metadata(HashMap::from(metadata))
            .build()
            .unwrap()
    });
    let with = pipeline().run(&marked, &budget(60, 60)).unwrap();
    let without = pipeline().run(&plain, &budget(60, 60)).unwrap();
    assert_eq!(contents(&with), contents(&without));
}

// proves: ITEM-18
#[test]
fn a_run_leaves_its_input_alone() {
    let items = [
        rivals().to_vec(),
        vec![pinned("rules", 5), item("broken", -1)],
    ]
    .concat();
    let before = items.clone();
    pipeline().dry_run(&items, &budget(60, 60)).unwrap();
    assert_eq!(items, before);
}

// proves: ITEM-19, R006
#[test]
fn of_two_items_with_one_text_the_refused_one_is_reported() {
    let items = [hinted("same", 100, 0.9), hinted("same", 10, 0.5)];
    let pipeline = builder().deduplication(false).build().unwrap();
    let report = pipeline.dry_run(&items, &budget(50, 50)).unwrap();
    let (kept, refused) = (&report.included[0], &report.excluded[0]);
    assert_eq!((kept.item.tokens(), kept.score), (10, 0.5));
    assert_eq!((refused.item.tokens(), refused.score), (100, 0.9));
}

// proves: EXCL-12, R106
#[test]
fn built_in_stages_give_no_reserved_reason() {
    let entries = || vec![CountQuotaEntry::new(ContextKind::message(), 1, 2).unwrap()];
    let quota = QuotaEntry::new(ContextKind::message(), 10.0, 60.0).unwrap();
    let knapsack = KnapsackSlice::new(1).unwrap();
    let degrade = ScarcityBehavior::Degrade;
    let slicers: [Box<dyn Slicer>; 6] = [
        Box::new(GreedySlice),
        Box::new(knapsack),
        Box::new(QuotaSlice::new(vec![quota], Box::new(GreedySlice)).unwrap()),
        Box::new(CountQuotaSlice::new(entries(), Box::new(GreedySlice), degrade).unwrap()),
        Box::new(CountConstrainedKnapsackSlice::new(entries(), knapsack, degrade).unwrap()),
        Box::new(Everything),
    ];
    let items = [
        rivals().to_vec(),
        rivals().to_vec(),
        vec![
            pinned("rules", 30),
            item("broken", -1),
            hinted("d", 90, 0.1),
        ],
    ]
    .concat();
    for slicer in slicers {
        let pipeline = builder()
            .slicer(slicer)
            .overflow_strategy(OverflowStrategy::Truncate)
            .build()
            .unwrap();
        let report = pipeline.dry_run(&items, &budget(100, 100)).unwrap();
        assert!(report.excluded.len() > 3);
        for entry in report.excluded {
            assert!(
                matches!(
                    entry.reason,
                    ExclusionReason::BudgetExceeded { .. }
                        | ExclusionReason::Deduplicated { .. }
                        | ExclusionReason::NegativeTokens { .. }
                        | ExclusionReason::PinnedOverride { .. }
                        | ExclusionReason::CountCapExceeded { .. }
                ),
                "{entry:?}"
            );
        }
    }
}

#[test]
fn deduplication_is_on_until_it_is_switched_off() {
    let items = [hinted("same", 10, 0.2), hinted("same", 20, 0.8)];
    let kept = pipeline().run(&items, &budget(100, 100)).unwrap();
    assert_eq!(kept, items[1..]);
    let both = builder().deduplication(false).build().unwrap();
    assert_eq!(both.run(&items, &budget(100, 100)).unwrap().len(), 2);
}

/// Takes everything, which is more than the target.
struct Everything;

impl Slicer for Everything {
    fn slice(
        &self,
        sorted: &[ScoredItem],
        _budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        Ok(sorted.iter().map(|it| it.item.clone()).collect())
    }
}

/// Three items of 160 tokens in all meet a target of 100.
fn overflowing(strategy: OverflowStrategy) -> DryRun {
    let items = [
        hinted("first", 60, 0.9),
        hinted("second", 60, 0.8),
        hinted("third", 40, 0.7),
    ];
    let pipeline = builder()
        .slicer(Box::new(Everything))
        .overflow_strategy(strategy)
        .build()?;
    pipeline.dry_run(&items, &budget(200, 100))
}

fn included(report: &SelectionReport) -> Vec<&str> {
    let entries = report.included.iter();
    entries.map(|entry| entry.item.content()).collect()
}

// Truncation goes on after a misfit (R036).
//
// proves: ENUM-13, ENUM-14, R036
#[test]
fn the_overflow_strategy_decides_about_too_much() {
    check_text(
        overflowing(OverflowStrategy::Throw),
        "merged tokens (160) exceed target tokens (100)",
    );
    let truncated = overflowing(OverflowStrategy::Truncate).unwrap();
    assert_eq!(included(&truncated), ["first", "third"]);
    assert_eq!(
        truncated.excluded[0].reason,
        ExclusionReason::BudgetExceeded {
            item_tokens: 60,
            available_tokens: 0,
        }
    );
    let proceeded = overflowing(OverflowStrategy::Proceed).unwrap();
    assert_eq!(included(&proceeded), ["first", "second", "third"]);
}

// proves: ENUM-16
#[test]
fn pinned_items_are_held_against_the_window_and_everything_against_the_target() {
    let of = |tokens, target| {
        let budget = ContextBudget::new(100, target, 20, HashMap::new(), 0.0).unwrap();
        pipeline().run(&[pinned("rules", tokens)], &budget)
    };
    check_text(
        of(81, 100),
        "pinned tokens (81) exceed available budget (80)",
    );
    assert!(of(80, 80).is_ok());
    check_text(of(80, 79), "merged tokens (80) exceed target tokens (79)");
}

fn policy(slicer: Arc<dyn Slicer>) -> Policy {
    PolicyBuilder::new()
        .scorer(Arc::new(ReflexiveScorer))
        .slicer(slicer)
        .placer(Arc::new(ChronologicalPlacer))
        .deduplication(false)
        .overflow_strategy(OverflowStrategy::Truncate)
        .build()
        .unwrap()
}

// proves: SENS-11
#[test]
fn a_policy_replaces_everything_the_pipeline_was_built_with() {
    let other = Pipeline::builder()
        .scorer(Box::new(PriorityScorer))
        .slicer(Box::new(GreedySlice))
        .placer(Box::new(UShapedPlacer))
        .build()
        .unwrap();
    let items = [
        hinted("same", 60, 0.9),
        hinted("same", 60, 0.8),
        hinted("third", 30, 0.7),
        hinted("fourth", 10, 0.6),
    ];
    let policy = policy(Arc::new(Everything));
    let report = other
        .dry_run_with_policy(&items, &budget(200, 100), &policy)
        .unwrap();
    assert_eq!(included(&report), ["same", "third", "fourth"]);
    assert_eq!(report.included[0].score, 0.9);
    assert_eq!(report.excluded[0].score, 0.8);
}

/// Three items that greedy takes in the order c, a, b.
fn rivals() -> [ContextItem; 3] {
    [
        hinted("a", 40, 0.9),
        hinted("b", 40, 0.8),
        hinted("c", 20, 0.7),
    ]
}

fn slicing(slicer: Box<dyn Slicer>) -> Pipeline {
    builder().slicer(slicer).build().unwrap()
}

fn quota_slice() -> QuotaSlice {
    QuotaSlice::new(Vec::new(), Box::new(GreedySlice)).unwrap()
}

fn count_quota_slice(inner: Box<dyn Slicer>) -> CountQuotaSlice {
    CountQuotaSlice::new(Vec::new(), inner, ScarcityBehavior::Degrade).unwrap()
}

fn packed_slice() -> CountConstrainedKnapsackSlice {
    let knapsack = KnapsackSlice::new(1).unwrap();
    CountConstrainedKnapsackSlice::new(Vec::new(), knapsack, ScarcityBehavior::Degrade).unwrap()
}

/// The call is refused as a pipeline configuration whose payload is exactly this text (R004).
#[track_caller]
fn check_refused<T: std::fmt::Debug>(result: Result<T, CupelError>, text: &str) {
    match result {
        Err(CupelError::PipelineConfig(payload)) => assert_eq!(payload, text),
        other => panic!("{other:?} instead of {text}"),
    }
}

#[test]
fn marginal_items_are_those_the_slack_costs() {
    let marginal = |slack: i32| pipeline().get_marginal_items(&rivals(), &budget(100, 100), slack);
    assert_eq!(contents(&marginal(40).unwrap()), ["b"]);
    assert_eq!(contents(&marginal(80).unwrap()), ["a", "b"]);
    assert!(marginal(0).unwrap().is_empty());
    check_text(
        marginal(101),
        "invalid budget: max_tokens (-1) must be >= 0",
    );
}

// A negative slack is refused (R122).
//
// proves: R122
#[test]
fn a_negative_slack_is_an_error() {
    let result = pipeline().get_marginal_items(&rivals(), &budget(100, 100), -1);
    assert!(result.is_err());
}

const NO_MARGINS: &str = "GetMarginalItems requires monotonic item inclusion. QuotaSlice produces \
    non-monotonic inclusion as budget changes shift percentage allocations.";

// The guard comes before every other check (R123) and looks through decorators (R084).
//
// proves: SIM-10, R004, R084, R123, R124
#[test]
fn marginal_items_are_refused_for_quotas() {
    let marginal = |slicer: Box<dyn Slicer>, slack: i32| {
        slicing(slicer).get_marginal_items(&rivals(), &budget(100, 100), slack)
    };
    for slack in [0, 10, 1000] {
        check_refused(marginal(Box::new(quota_slice()), slack), NO_MARGINS);
    }
    let wrapped = count_quota_slice(Box::new(quota_slice()));
    check_refused(marginal(Box::new(wrapped), 10), NO_MARGINS);

    let counted = count_quota_slice(Box::new(GreedySlice));
    assert!(marginal(Box::new(counted), 40).is_ok());
    assert!(marginal(Box::new(packed_slice()), 40).is_ok());
}

#[test]
fn the_error_of_the_full_run_comes_before_that_of_the_reduced_budget() {
    let result = pipeline().get_marginal_items(&[pinned("rules", 11)], &budget(10, 10), 11);
    check_text(result, "pinned tokens (11) exceed available budget (10)");
}

/// The least budget the pipeline finds for the target; the budget argument plays no part.
fn least(items: &[ContextItem], target: &ContextItem, ceiling: i32) -> Least {
    pipeline().find_min_budget_for(items, &budget(1, 0), target, ceiling)
}

// The lower bound is tried as well (R118).
//
// proves: R118, R119
#[test]
fn the_least_budget_is_found_by_bisection() {
    let items = rivals();
    assert_eq!(least(&items, &items[0], 1000).unwrap(), Some(60));
    assert_eq!(least(&items, &items[1], 1000).unwrap(), Some(100));
    assert_eq!(least(&items, &items[2], 1000).unwrap(), Some(20));
    assert_eq!(least(&items, &items[0], 60).unwrap(), Some(60));
    assert_eq!(least(&items, &items[0], 59).unwrap(), None);
}

// A budget too small for the pinned items counts as one without the target (R120), and a target
// of negative tokens is never included (R126).
//
// proves: R120, R126
#[test]
fn the_search_goes_on_where_no_selection_exists() {
    let items = [
        pinned("rules", 50),
        hinted("a", 10, 0.5),
        item("broken", -7),
    ];
    assert_eq!(least(&items, &items[1], 90).unwrap(), Some(60));
    assert_eq!(least(&items, &items[2], 90).unwrap(), None);
}

// A target is an element if an element equals it in every field, not in content alone (R125).
//
// proves: SIM-12, SIM-13, R125
#[test]
fn the_target_is_an_element_and_the_ceiling_is_above_it() {
    let items = rivals();
    for unknown in [item("unknown", 40), item("a", 40)] {
        match least(&items, &unknown, 1) {
            Err(CupelError::InvalidBudget(text)) => assert!(
                text.starts_with("target item must be an element of items"),
                "{text}"
            ),
            other => panic!("{other:?}"),
        }
    }
    check_text(
        least(&items, &items[0], 39),
        "invalid budget: search_ceiling (39) must be >= target.tokens() (40)",
    );
}

const NO_SEARCH: &str = "FindMinBudgetFor requires monotonic item inclusion. QuotaSlice and \
    CountQuotaSlice produce non-monotonic inclusion as budget changes shift allocations. Use a \
    GreedySlice or KnapsackSlice inner slicer for budget simulation.";

// proves: SIM-17, R004, R123, R124
#[test]
fn the_search_is_refused_for_quotas() {
    let slicers: [Box<dyn Slicer>; 4] = [
        Box::new(quota_slice()),
        Box::new(count_quota_slice(Box::new(GreedySlice))),
        Box::new(packed_slice()),
        Box::new(QuotaSlice::new(Vec::new(), Box::new(packed_slice())).unwrap()),
    ];
    for slicer in slicers {
        let unknown = item("unknown", 40);
        let result = slicing(slicer).find_min_budget_for(&rivals(), &budget(100, 100), &unknown, 1);
        check_refused(result, NO_SEARCH);
    }
}
