//! The thirteen assertions: when they pass, when they fail, and their messages.

use cupel::{
    ChronologicalPlacer, ContextBudget, ContextItem, ContextKind, ExcludedItem, ExclusionReason,
    GreedySlice, IncludedItem, InclusionReason, Pipeline, ReflexiveScorer, SelectionReport,
    UShapedPlacer, UnknownReason,
};
use cupel_testing::SelectionReportAssertions;
use cupel_testing::fixture::{ReportBuilder, item};

fn report() -> ReportBuilder {
    ReportBuilder::new()
}

fn empty() -> SelectionReport {
    report().build()
}

fn kind(name: &str) -> ContextKind {
    ContextKind::new(name).unwrap()
}

/// Included items of these kinds, in this order.
fn of_kinds(names: &[&str]) -> SelectionReport {
    let add = |report: ReportBuilder, name: &&str| report.included("x", 1, 0.5).kind(kind(name));
    names.iter().fold(report(), add).build()
}

/// Included items with these scores, in this order.
fn with_scores(scores: &[f64]) -> SelectionReport {
    let add = |report: ReportBuilder, score: &f64| report.included("x", 1, *score);
    scores.iter().fold(report(), add).build()
}

/// Excluded items with these scores, in this order.
fn excluded_with_scores(scores: &[f64]) -> SelectionReport {
    let add = |report: ReportBuilder, score: &f64| report.over_budget("x", 1, *score, 0);
    scores.iter().fold(report(), add).build_unsorted()
}

fn over_budget() -> ExclusionReason {
    ExclusionReason::BudgetExceeded {
        item_tokens: 0,
        available_tokens: 0,
    }
}

fn negative() -> ExclusionReason {
    ExclusionReason::NegativeTokens { tokens: 0 }
}

fn filtered() -> ExclusionReason {
    ExclusionReason::Filtered {
        filter_name: String::new(),
    }
}

fn unknown(name: &str) -> ExclusionReason {
    ExclusionReason::Unknown(UnknownReason::new(name, Vec::new()))
}

fn every_reason() -> [ExclusionReason; 12] {
    let text = String::new;
    [
        over_budget(),
        ExclusionReason::ScoredTooLow {
            score: 0.0,
            threshold: 0.0,
        },
        ExclusionReason::Deduplicated {
            deduplicated_against: text(),
        },
        ExclusionReason::QuotaCapExceeded {
            kind: text(),
            cap: 0,
            actual: 0,
        },
        ExclusionReason::QuotaRequireDisplaced {
            displaced_by_kind: text(),
        },
        negative(),
        ExclusionReason::PinnedOverride {
            displaced_by: text(),
        },
        filtered(),
        ExclusionReason::CountCapExceeded {
            kind: text(),
            cap: 0,
            count: 0,
        },
        ExclusionReason::CountRequireCandidatesExhausted { kind: text() },
        ExclusionReason::GroupExcluded {
            group_size: 0,
            group_tokens: 0,
            available_tokens: 0,
        },
        unknown("FromTomorrow"),
    ]
}

fn budget(max_tokens: i64, target_tokens: i64) -> ContextBudget {
    ContextBudget::with_target(max_tokens, target_tokens).unwrap()
}

// ---- 1 ----

// proves: TEST-8
#[test]
fn an_included_kind_is_found_in_any_spelling() {
    let report = of_kinds(&["Message", "toolOUTPUT"]);
    passes!(report, include_item_with_kind(ContextKind::message()));
    passes!(report, include_item_with_kind(ContextKind::tool_output()));
    passes!(report, include_item_with_kind(kind("TOOLoutput")));
}

// proves: TEST-9, R143
#[test]
fn a_missing_kind_is_reported_with_the_kinds_there_are_in_order_of_appearance() {
    fails!(
        of_kinds(&[
            "ToolOutput",
            "zebra",
            "Message",
            "TOOLOUTPUT",
            "apple",
            "Message"
        ]),
        include_item_with_kind(ContextKind::memory()),
        "IncludeItemWithKind(Memory) failed: Included contained 0 items with Kind=Memory. Included had 6 items with kinds: [ToolOutput, zebra, Message, apple]."
    );
}

// proves: TEST-9
#[test]
fn nothing_included_is_reported_as_an_empty_list() {
    fails!(
        empty(),
        include_item_with_kind(ContextKind::message()),
        "IncludeItemWithKind(Message) failed: Included contained 0 items with Kind=Message. Included had 0 items with kinds: []."
    );
}

// proves: TEST-8
#[test]
fn the_kind_of_an_excluded_item_does_not_count() {
    let report = report().over_budget("x", 1, 0.5, 0).build();
    fails!(
        report,
        include_item_with_kind(ContextKind::message()),
        "IncludeItemWithKind(Message) failed: Included contained 0 items with Kind=Message. Included had 0 items with kinds: []."
    );
}

// proves: TEST-10, R142
#[test]
fn any_is_an_ordinary_kind() {
    passes!(of_kinds(&["any"]), include_item_with_kind(kind("Any")));
    fails!(
        of_kinds(&["Message"]),
        include_item_with_kind(kind("Any")),
        "IncludeItemWithKind(Any) failed: Included contained 0 items with Kind=Any. Included had 1 items with kinds: [Message]."
    );
}

// ---- 2 ----

// proves: TEST-11
#[test]
fn the_predicate_sees_item_score_and_reason() {
    let report = report()
        .pinned("a", 1)
        .included("b", 1, 0.5)
        .included("c", 0, 0.25)
        .build();
    passes!(
        report,
        include_item_matching(|entry: &IncludedItem| {
            entry.item.content() == "b"
                && entry.score == 0.5
                && entry.reason == InclusionReason::Scored
        })
    );
    passes!(
        report,
        include_item_matching(|entry: &IncludedItem| {
            entry.reason == InclusionReason::ZeroToken
        })
    );
}

// proves: TEST-12, TEST-13, R144
#[test]
fn no_match_shows_the_first_five_entries() {
    let report = report()
        .pinned("a", 1)
        .kind(ContextKind::system_prompt())
        .included("b", 1, 0.5)
        .included("c", 0, f64::NAN)
        .included("d", 1, 2.0 / 3.0)
        .included("e", 1, -0.25)
        .included("f", 1, 0.125)
        .build();
    fails!(
        report,
        include_item_matching(|_| false),
        "IncludeItemMatching failed: no item in Included matched the predicate. Included had 6 items. \
         Included began with: [(kind=SystemPrompt, score=1.000000, reason=Pinned), \
         (kind=Message, score=0.500000, reason=Scored), (kind=Message, score=NaN, reason=ZeroToken), \
         (kind=Message, score=0.666667, reason=Scored), (kind=Message, score=-0.250000, reason=Scored)]."
    );
}

// proves: TEST-12
#[test]
fn no_match_among_nothing_has_nothing_to_show() {
    fails!(
        empty(),
        include_item_matching(|_| true),
        "IncludeItemMatching failed: no item in Included matched the predicate. Included had 0 items."
    );
}

// ---- 3 ----

// proves: TEST-14
#[test]
fn items_of_a_kind_are_counted_exactly() {
    let report = of_kinds(&["Memory", "Message", "MEMORY"]);
    passes!(
        report,
        include_exactly_n_items_with_kind(ContextKind::memory(), 2)
    );
    passes!(
        report,
        include_exactly_n_items_with_kind(ContextKind::message(), 1)
    );
    passes!(
        report,
        include_exactly_n_items_with_kind(ContextKind::document(), 0)
    );
    passes!(
        empty(),
        include_exactly_n_items_with_kind(ContextKind::memory(), 0)
    );
}

// proves: TEST-15
#[test]
fn another_count_than_expected_is_reported() {
    let report = of_kinds(&["Memory", "Message", "MEMORY"]);
    fails!(
        report,
        include_exactly_n_items_with_kind(ContextKind::memory(), 1),
        "IncludeExactlyNItemsWithKind(Memory, 1) failed: expected 1 items with Kind=Memory in Included, but found 2. Included had 3 items total."
    );
    fails!(
        report,
        include_exactly_n_items_with_kind(ContextKind::memory(), 3),
        "IncludeExactlyNItemsWithKind(Memory, 3) failed: expected 3 items with Kind=Memory in Included, but found 2. Included had 3 items total."
    );
    fails!(
        report,
        include_exactly_n_items_with_kind(ContextKind::message(), 0),
        "IncludeExactlyNItemsWithKind(Message, 0) failed: expected 0 items with Kind=Message in Included, but found 1. Included had 3 items total."
    );
    fails!(
        empty(),
        include_exactly_n_items_with_kind(ContextKind::memory(), 1),
        "IncludeExactlyNItemsWithKind(Memory, 1) failed: expected 1 items with Kind=Memory in Included, but found 0. Included had 0 items total."
    );
}

// ---- 4 ----

// proves: TEST-16
#[test]
fn a_reason_matches_by_variant_whatever_its_fields() {
    let report = report().over_budget("x", 60, 0.5, 35).build();
    passes!(report, exclude_item_with_reason(over_budget()));
}

// proves: TEST-16
#[test]
fn every_variant_is_a_valid_argument_and_matches_only_itself() {
    for (at, present) in every_reason().into_iter().enumerate() {
        let report = report().excluded("x", 1, 0.5, present).build();
        for (other, wanted) in every_reason().into_iter().enumerate() {
            let result = report.check().exclude_item_with_reason(wanted.clone());
            assert_eq!(result.is_ok(), at == other, "{wanted:?} in {report:?}");
        }
    }
}

// proves: TEST-16, R143
#[test]
fn reasons_this_version_does_not_know_are_distinguished_by_name() {
    let report = report()
        .excluded("x", 1, 0.5, unknown("Bored"))
        .excluded("y", 1, 0.5, unknown("BudgetExceeded"))
        .build();
    passes!(report, exclude_item_with_reason(unknown("Bored")));
    fails!(
        report,
        exclude_item_with_reason(unknown("Tired")),
        "ExcludeItemWithReason(Tired) failed: no excluded item had reason Tired. Excluded had 2 items with reasons: [Bored, BudgetExceeded]."
    );
    assert!(
        report
            .check()
            .exclude_item_with_reason(over_budget())
            .is_err()
    );
}

// proves: TEST-17, R143
#[test]
fn a_missing_reason_is_reported_with_the_variants_there_are_in_order_of_appearance() {
    let report = report()
        .excluded("a", -1, 0.9, negative())
        .over_budget("b", 60, 0.8, 35)
        .excluded("c", 1, 0.7, filtered())
        .over_budget("d", 61, 0.6, 35)
        .build();
    let too_low = ExclusionReason::ScoredTooLow {
        score: 0.25,
        threshold: 0.5,
    };
    fails!(
        report,
        exclude_item_with_reason(too_low.clone()),
        "ExcludeItemWithReason(ScoredTooLow) failed: no excluded item had reason ScoredTooLow. Excluded had 4 items with reasons: [NegativeTokens, BudgetExceeded, Filtered]."
    );
}

// proves: TEST-17
#[test]
fn nothing_excluded_has_no_reasons() {
    let report = report().included("x", 1, 0.5).build();
    fails!(
        report,
        exclude_item_with_reason(over_budget()),
        "ExcludeItemWithReason(BudgetExceeded) failed: no excluded item had reason BudgetExceeded. Excluded had 0 items with reasons: []."
    );
}

// ---- 5 ----

// proves: TEST-18, R139
#[test]
fn predicate_and_reason_have_to_hold_for_one_entry() {
    let report = report()
        .excluded("a", 1, 0.5, filtered())
        .over_budget("b", 60, 0.25, 35)
        .build();
    let content =
        |content: &'static str| move |entry: &ExcludedItem| entry.item.content() == content;
    passes!(
        report,
        exclude_item_matching_with_reason(content("a"), filtered())
    );
    passes!(
        report,
        exclude_item_matching_with_reason(content("b"), over_budget())
    );
    passes!(
        report,
        exclude_item_matching_with_reason(
            |entry: &ExcludedItem| entry.score < 0.5 && entry.reason.name() == "BudgetExceeded",
            over_budget()
        )
    );
    fails!(
        report,
        exclude_item_matching_with_reason(content("a"), over_budget()),
        "ExcludeItemMatchingWithReason(reason=BudgetExceeded) failed: predicate matched 1 excluded item(s) but none had reason BudgetExceeded. Matched items had reasons: [Filtered]."
    );
}

// proves: TEST-19, R143
#[test]
fn only_the_reasons_of_matching_entries_are_reported() {
    let report = report()
        .excluded("a", 1, 0.9, filtered())
        .excluded("b", 1, 0.8, negative())
        .excluded("c", 1, 0.7, filtered())
        .over_budget("d", 60, 0.1, 35)
        .build();
    fails!(
        report,
        exclude_item_matching_with_reason(|entry: &ExcludedItem| entry.score > 0.5, over_budget()),
        "ExcludeItemMatchingWithReason(reason=BudgetExceeded) failed: predicate matched 3 excluded item(s) but none had reason BudgetExceeded. Matched items had reasons: [Filtered, NegativeTokens]."
    );
}

// proves: TEST-19
#[test]
fn a_predicate_that_matches_nothing_is_reported_as_zero() {
    let none = "ExcludeItemMatchingWithReason(reason=Filtered) failed: predicate matched 0 excluded item(s) but none had reason Filtered. Matched items had reasons: [].";
    let report = report().excluded("a", 1, 0.5, filtered()).build();
    fails!(
        report,
        exclude_item_matching_with_reason(|_| false, filtered()),
        none
    );
    fails!(
        empty(),
        exclude_item_matching_with_reason(|_| true, filtered()),
        none
    );
}

// ---- 6 ----

/// Two items over budget and one filtered.
fn details() -> SelectionReport {
    report()
        .excluded("f", 60, 0.9, filtered())
        .over_budget("a", 60, 0.5, 35)
        .over_budget("b", 70, 0.25, -5)
        .build()
}

// proves: TEST-20, R139, R145
#[test]
fn any_matching_entry_with_both_numbers_passes() {
    passes!(
        details(),
        exclude_item_with_budget_details(|_| true, 60, 35)
    );
    passes!(
        details(),
        exclude_item_with_budget_details(|_| true, 70, -5)
    );
    passes!(
        details(),
        exclude_item_with_budget_details(|entry: &ExcludedItem| entry.score < 0.5, 70, -5)
    );
}

// proves: TEST-20, TEST-21, R145
#[test]
fn other_numbers_are_reported_of_the_first_matching_entry() {
    let texts = [
        (61, 35, "item_tokens=61, available_tokens=35"),
        (60, 34, "item_tokens=60, available_tokens=34"),
        (60, -5, "item_tokens=60, available_tokens=-5"),
        (70, 35, "item_tokens=70, available_tokens=35"),
    ];
    for (item_tokens, available_tokens, expected) in texts {
        fails!(
            details(),
            exclude_item_with_budget_details(|_| true, item_tokens, available_tokens),
            format!(
                "ExcludeItemWithBudgetDetails failed: expected BudgetExceeded with {expected}, but found item_tokens=60, available_tokens=35."
            )
        );
    }
    fails!(
        details(),
        exclude_item_with_budget_details(
            |entry: &ExcludedItem| entry.item.content() == "b",
            60,
            35
        ),
        "ExcludeItemWithBudgetDetails failed: expected BudgetExceeded with item_tokens=60, available_tokens=35, but found item_tokens=70, available_tokens=-5."
    );
}

// proves: TEST-21
#[test]
fn no_matching_entry_over_budget_is_reported() {
    let none = "ExcludeItemWithBudgetDetails failed: expected BudgetExceeded with item_tokens=60, available_tokens=35, but no matching item had reason BudgetExceeded.";
    let is_filtered = |entry: &ExcludedItem| entry.item.content() == "f";
    fails!(
        details(),
        exclude_item_with_budget_details(is_filtered, 60, 35),
        none
    );
    fails!(
        details(),
        exclude_item_with_budget_details(|_| false, 60, 35),
        none
    );
    fails!(
        empty(),
        exclude_item_with_budget_details(|_| true, 60, 35),
        none
    );
}

// ---- 7 ----

// proves: TEST-22
#[test]
fn a_kind_may_be_missing_from_the_excluded_items() {
    passes!(empty(), have_no_exclusions_for_kind(ContextKind::message()));
    passes!(
        of_kinds(&["Memory"]),
        have_no_exclusions_for_kind(ContextKind::memory())
    );
    let report = report().over_budget("x", 1, 0.5, 0).build();
    passes!(report, have_no_exclusions_for_kind(ContextKind::memory()));
}

// proves: TEST-23, R143, R144
#[test]
fn an_excluded_kind_is_reported_with_its_first_entry() {
    let report = report()
        .over_budget("other", 1, 0.99, 0)
        .excluded("first", 1, 2.0 / 3.0, filtered())
        .kind(kind("memory"))
        .over_budget("second", 1, 0.5, 0)
        .kind(kind("MEMORY"))
        .build();
    fails!(
        report,
        have_no_exclusions_for_kind(ContextKind::memory()),
        "HaveNoExclusionsForKind(Memory) failed: found 2 excluded item(s) with Kind=Memory. First: score=0.6667, reason=Filtered."
    );
    fails!(
        report,
        have_no_exclusions_for_kind(ContextKind::message()),
        "HaveNoExclusionsForKind(Message) failed: found 1 excluded item(s) with Kind=Message. First: score=0.9900, reason=BudgetExceeded."
    );
}

// ---- 8 ----

// proves: TEST-24
#[test]
fn exclusions_are_counted_from_below() {
    passes!(empty(), have_at_least_n_exclusions(0));
    passes!(details(), have_at_least_n_exclusions(0));
    passes!(details(), have_at_least_n_exclusions(2));
    passes!(details(), have_at_least_n_exclusions(3));
    fails!(
        details(),
        have_at_least_n_exclusions(4),
        "HaveAtLeastNExclusions(4) failed: expected at least 4 excluded items, but Excluded had 3."
    );
    fails!(
        empty(),
        have_at_least_n_exclusions(1),
        "HaveAtLeastNExclusions(1) failed: expected at least 1 excluded items, but Excluded had 0."
    );
}

// ---- 9 ----

// proves: TEST-25, R009
#[test]
fn scores_that_do_not_rise_are_sorted() {
    let nan = f64::NAN;
    let sorted: [&[f64]; 8] = [
        &[],
        &[0.5],
        &[0.9, 0.5, 0.1],
        &[0.5, 0.5, 0.5],
        &[0.0, -0.0, 0.0],
        &[f64::INFINITY, 0.0, f64::NEG_INFINITY],
        &[0.5, f64::NEG_INFINITY, nan, -nan, nan],
        &[nan, nan],
    ];
    for scores in sorted {
        passes!(
            excluded_with_scores(scores),
            excluded_items_are_sorted_by_score_descending()
        );
    }
}

// proves: TEST-26, R144
#[test]
fn the_first_rise_is_reported() {
    fails!(
        excluded_with_scores(&[0.9, 0.5, 0.5, 2.0 / 3.0, 0.1, 0.2]),
        excluded_items_are_sorted_by_score_descending(),
        "ExcludedItemsAreSortedByScoreDescending failed: item at index 3 (score=0.666667) is higher than item at index 2 (score=0.500000). Expected non-increasing scores."
    );
    fails!(
        excluded_with_scores(&[0.1, 0.2]),
        excluded_items_are_sorted_by_score_descending(),
        "ExcludedItemsAreSortedByScoreDescending failed: item at index 1 (score=0.200000) is higher than item at index 0 (score=0.100000). Expected non-increasing scores."
    );
}

// proves: TEST-5, TEST-26
#[test]
fn the_smallest_rise_is_one() {
    fails!(
        excluded_with_scores(&[0.5, 0.5_f64.next_up()]),
        excluded_items_are_sorted_by_score_descending(),
        "ExcludedItemsAreSortedByScoreDescending failed: item at index 1 (score=0.500000) is higher than item at index 0 (score=0.500000). Expected non-increasing scores."
    );
}

// proves: TEST-26, R009
#[test]
fn a_number_after_nan_is_a_rise() {
    fails!(
        excluded_with_scores(&[0.5, f64::NAN, -1.0]),
        excluded_items_are_sorted_by_score_descending(),
        "ExcludedItemsAreSortedByScoreDescending failed: item at index 2 (score=-1.000000) is higher than item at index 1 (score=NaN). Expected non-increasing scores."
    );
}

// proves: TEST-25
#[test]
fn the_report_of_a_run_is_sorted() {
    let hinted = |content: &str, hint| {
        let item = ContextItem::builder(content, 10).future_relevance_hint(hint);
        item.build().unwrap()
    };
    let items = [
        hinted("a", 0.25),
        hinted("b", f64::NAN),
        hinted("c", 0.75),
        item("d", -1),
        hinted("e", 0.5),
    ];
    let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, ChronologicalPlacer);
    let report = pipeline.dry_run(&items, &budget(10, 5)).unwrap();
    assert_eq!(report.excluded.len(), 5);
    passes!(report, excluded_items_are_sorted_by_score_descending());
}

// ---- 10 ----

fn fifty_tokens() -> SelectionReport {
    report()
        .included("a", 30, 0.9)
        .included("b", 20, 0.8)
        .build()
}

// proves: TEST-5, TEST-27
#[test]
fn utilization_is_of_the_ceiling_and_compares_exactly() {
    let budget = budget(100, 50);
    passes!(fifty_tokens(), have_budget_utilization_above(0.5, &budget));
    passes!(fifty_tokens(), have_budget_utilization_above(0.0, &budget));
    passes!(fifty_tokens(), have_budget_utilization_above(-1.0, &budget));
    fails!(
        fifty_tokens(),
        have_budget_utilization_above(0.5_f64.next_up(), &budget),
        "HaveBudgetUtilizationAbove(0.5000000000000001) failed: computed utilization was 0.500000 (includedTokens=50, budget.MaxTokens=100)."
    );
}

// proves: TEST-29, R144
#[test]
fn too_low_a_utilization_is_reported_with_both_numbers() {
    fails!(
        fifty_tokens(),
        have_budget_utilization_above(0.75, &budget(150, 50)),
        "HaveBudgetUtilizationAbove(0.75) failed: computed utilization was 0.333333 (includedTokens=50, budget.MaxTokens=150)."
    );
    fails!(
        empty(),
        have_budget_utilization_above(0.1, &budget(150, 50)),
        "HaveBudgetUtilizationAbove(0.1) failed: computed utilization was 0.000000 (includedTokens=0, budget.MaxTokens=150)."
    );
    fails!(
        fifty_tokens(),
        have_budget_utilization_above(1.5, &budget(40, 40)),
        "HaveBudgetUtilizationAbove(1.5) failed: computed utilization was 1.250000 (includedTokens=50, budget.MaxTokens=40)."
    );
    fails!(
        fifty_tokens(),
        have_budget_utilization_above(f64::NAN, &budget(50, 50)),
        "HaveBudgetUtilizationAbove(NaN) failed: computed utilization was 1.000000 (includedTokens=50, budget.MaxTokens=50)."
    );
}

// proves: TEST-27
#[test]
fn nothing_included_meets_a_threshold_of_zero_and_an_overfull_window_one_above_one() {
    passes!(
        empty(),
        have_budget_utilization_above(0.0, &budget(100, 50))
    );
    passes!(
        fifty_tokens(),
        have_budget_utilization_above(1.25, &budget(40, 40))
    );
}

// proves: TEST-28, R021
#[test]
fn a_ceiling_of_zero_passes_only_by_comparison() {
    let nothing = budget(0, 0);
    passes!(empty(), have_budget_utilization_above(0.0, &nothing));
    fails!(
        empty(),
        have_budget_utilization_above(f64::MIN_POSITIVE, &nothing),
        format!(
            "HaveBudgetUtilizationAbove({}) failed: computed utilization was 0.000000 (includedTokens=0, budget.MaxTokens=0).",
            f64::MIN_POSITIVE
        )
    );
    passes!(
        fifty_tokens(),
        have_budget_utilization_above(1e300, &nothing)
    );
    fails!(
        fifty_tokens(),
        have_budget_utilization_above(f64::NAN, &nothing),
        "HaveBudgetUtilizationAbove(NaN) failed: computed utilization was inf (includedTokens=50, budget.MaxTokens=0)."
    );
}

// proves: TEST-29
#[test]
fn included_tokens_beyond_any_integer_are_reported() {
    let report = report()
        .included("a", i64::MAX, 0.9)
        .included("b", i64::MAX, 0.9)
        .build();
    fails!(
        report,
        have_budget_utilization_above(3.0, &budget(i64::MAX, 0)),
        "HaveBudgetUtilizationAbove(3) failed: computed utilization was 2.000000 (includedTokens=18446744073709551614, budget.MaxTokens=9223372036854775807)."
    );
}

// ---- 11 ----

// proves: TEST-30
#[test]
fn kinds_count_once_in_any_spelling() {
    let report = of_kinds(&["Memory", "MEMORY", "Message", "memory"]);
    passes!(report, have_kind_coverage_count(0));
    passes!(report, have_kind_coverage_count(1));
    passes!(report, have_kind_coverage_count(2));
    passes!(empty(), have_kind_coverage_count(0));
}

// proves: TEST-31, R143
#[test]
fn too_few_kinds_are_reported_in_order_of_appearance() {
    fails!(
        of_kinds(&["zebra", "MEMORY", "Message", "Memory", "apple"]),
        have_kind_coverage_count(5),
        "HaveKindCoverageCount(5) failed: expected at least 5 distinct ContextKind values in Included, but found 4: [zebra, MEMORY, Message, apple]."
    );
    fails!(
        empty(),
        have_kind_coverage_count(1),
        "HaveKindCoverageCount(1) failed: expected at least 1 distinct ContextKind values in Included, but found 0: []."
    );
}

// ---- 12 ----

fn four() -> SelectionReport {
    let items = [("a", 0.9), ("b", 0.5), ("c", 0.5), ("d", 0.9)];
    let add = |report: ReportBuilder, (content, score)| report.included(content, 1, score);
    items.into_iter().fold(report(), add).build()
}

fn named(content: &'static str) -> impl Fn(&IncludedItem) -> bool + Copy {
    move |entry| entry.item.content() == content
}

// proves: TEST-32
#[test]
fn both_ends_are_edges() {
    passes!(four(), place_item_at_edge(named("a")));
    passes!(four(), place_item_at_edge(named("d")));
    passes!(with_scores(&[0.5]), place_item_at_edge(|_| true));
}

// proves: TEST-32, R146
#[test]
fn a_match_further_in_does_not_hide_the_one_at_the_edge() {
    passes!(
        four(),
        place_item_at_edge(|entry: &IncludedItem| entry.item.content() > "a")
    );
}

// proves: TEST-33, R146
#[test]
fn a_match_within_is_reported_by_its_first_index() {
    fails!(
        four(),
        place_item_at_edge(|entry: &IncludedItem| entry.score == 0.5),
        "PlaceItemAtEdge failed: item matching predicate was at index 1 (not at edge). Edge positions: 0 and 3. Included had 4 items."
    );
    fails!(
        four(),
        place_item_at_edge(named("c")),
        "PlaceItemAtEdge failed: item matching predicate was at index 2 (not at edge). Edge positions: 0 and 3. Included had 4 items."
    );
}

// proves: TEST-33
#[test]
fn position_counts_and_not_score() {
    let report = report()
        .included("a", 1, 0.5)
        .included("b", 1, 0.5)
        .included("c", 1, 0.5)
        .build();
    fails!(
        report,
        place_item_at_edge(named("b")),
        "PlaceItemAtEdge failed: item matching predicate was at index 1 (not at edge). Edge positions: 0 and 2. Included had 3 items."
    );
}

// proves: TEST-33
#[test]
fn no_match_and_no_items_give_the_same_message() {
    let none = "PlaceItemAtEdge failed: no item in Included matched the predicate.";
    fails!(four(), place_item_at_edge(named("e")), none);
    fails!(empty(), place_item_at_edge(|_| true), none);
}

// ---- 13 ----

// proves: TEST-34
#[test]
fn edges_are_counted_from_both_ends_inward() {
    let u_shaped = [0.9, 0.7, 0.5, 0.4, 0.6, 0.8];
    for n in 0..=6 {
        passes!(with_scores(&u_shaped), place_top_n_scored_at_edges(n));
    }
    passes!(empty(), place_top_n_scored_at_edges(0));
    passes!(with_scores(&[0.5]), place_top_n_scored_at_edges(1));
}

// proves: TEST-34, TEST-36, R144
#[test]
fn a_better_score_within_is_reported_with_items_and_positions() {
    let report = report()
        .included("a", 1, 0.1)
        .included("b", 1, 0.9)
        .kind(ContextKind::memory())
        .included("c", 1, 0.2)
        .included("d", 1, 2.0 / 3.0)
        .included("e", 1, 0.5)
        .included("f", 1, 0.8)
        .build();
    fails!(
        report,
        place_top_n_scored_at_edges(4),
        "PlaceTopNScoredAtEdges(4) failed: 1 of the top-4 scored items were not at expected edge positions. \
         Top-4 items (by score): [(kind=Memory, score=0.900000, idx=1), (kind=Message, score=0.800000, idx=5), \
         (kind=Message, score=0.666667, idx=3), (kind=Message, score=0.500000, idx=4)]. \
         Expected edge positions: [0, 5, 1, 4]."
    );
    fails!(
        report,
        place_top_n_scored_at_edges(1),
        "PlaceTopNScoredAtEdges(1) failed: 1 of the top-1 scored items were not at expected edge positions. \
         Top-1 items (by score): [(kind=Memory, score=0.900000, idx=1)]. Expected edge positions: [0]."
    );
}

// proves: TEST-36, R147
#[test]
fn every_edge_with_too_low_a_score_counts() {
    fails!(
        with_scores(&[0.1, 0.8, 0.9, 0.7, 0.2]),
        place_top_n_scored_at_edges(3),
        "PlaceTopNScoredAtEdges(3) failed: 2 of the top-3 scored items were not at expected edge positions. \
         Top-3 items (by score): [(kind=Message, score=0.900000, idx=2), (kind=Message, score=0.800000, idx=1), \
         (kind=Message, score=0.700000, idx=3)]. Expected edge positions: [0, 4, 1]."
    );
}

// proves: TEST-34, TEST-36
#[test]
fn more_edges_than_items_fail_and_say_so() {
    fails!(
        with_scores(&[0.9, 0.5]),
        place_top_n_scored_at_edges(5),
        "PlaceTopNScoredAtEdges(5) failed: 3 of the top-5 scored items were not at expected edge positions. \
         Top-5 items (by score): [(kind=Message, score=0.900000, idx=0), (kind=Message, score=0.500000, idx=1)]. \
         Expected edge positions: [0, 1]. n=5 exceeds Included count=2."
    );
    fails!(
        empty(),
        place_top_n_scored_at_edges(1),
        "PlaceTopNScoredAtEdges(1) failed: 1 of the top-1 scored items were not at expected edge positions. \
         Top-1 items (by score): []. Expected edge positions: []. n=1 exceeds Included count=0."
    );
    assert!(
        empty()
            .check()
            .place_top_n_scored_at_edges(usize::MAX)
            .is_err()
    );
}

// proves: TEST-35, R147
#[test]
fn an_equal_score_may_hold_the_last_edge() {
    passes!(
        with_scores(&[0.9, 0.5, 0.5, 0.5]),
        place_top_n_scored_at_edges(2)
    );
    passes!(
        with_scores(&[0.5, 0.5, 0.1, 0.9]),
        place_top_n_scored_at_edges(2)
    );
    passes!(
        with_scores(&[0.5, 0.9, 0.5]),
        place_top_n_scored_at_edges(2)
    );
    fails!(
        with_scores(&[0.9, 0.5, 0.5, 0.1]),
        place_top_n_scored_at_edges(2),
        "PlaceTopNScoredAtEdges(2) failed: 1 of the top-2 scored items were not at expected edge positions. \
         Top-2 items (by score): [(kind=Message, score=0.900000, idx=0), (kind=Message, score=0.500000, idx=1)]. \
         Expected edge positions: [0, 3]."
    );
}

// proves: TEST-34, TEST-35, R147
#[test]
fn as_many_edges_as_items_always_pass() {
    for scores in lists() {
        passes!(
            with_scores(&scores),
            place_top_n_scored_at_edges(scores.len())
        );
    }
}

// proves: TEST-34, TEST-35, TEST-36, R147, R009
#[test]
fn the_edges_hold_no_score_below_the_nth_highest() {
    for scores in lists() {
        // NaN is below every number.
        let value = |score: f64| if score.is_nan() { -2.0 } else { score };
        let values: Vec<f64> = scores.iter().copied().map(value).collect();
        let mut highest = values.clone();
        highest.sort_by(|a, b| b.total_cmp(a));
        for n in 1..=values.len() {
            let mut inner = values.as_slice();
            let mut too_low = 0;
            for turn in 0..n {
                let (edge, rest) = match turn % 2 {
                    0 => inner.split_first(),
                    _ => inner.split_last(),
                }
                .unwrap();
                too_low += usize::from(*edge < highest[n - 1]);
                inner = rest;
            }
            match with_scores(&scores).check().place_top_n_scored_at_edges(n) {
                Ok(_) => assert_eq!(too_low, 0, "{n} of {scores:?}"),
                Err(error) => {
                    let told = format!("failed: {too_low} of the top-{n} ");
                    assert!(
                        error.message().contains(&told),
                        "{n} of {scores:?}: {error}"
                    );
                }
            }
        }
    }
}

/// Returns every list of up to five scores out of four values.
fn lists() -> Vec<Vec<f64>> {
    let mut lists = vec![vec![]];
    let mut longest = 0..1;
    for _ in 0..5 {
        let end = lists.len();
        for at in longest.clone() {
            for score in [0.0, 0.5, 1.0, f64::NAN] {
                let mut longer: Vec<f64> = lists[at].clone();
                longer.push(score);
                lists.push(longer);
            }
        }
        longest = end..lists.len();
    }
    lists
}

// proves: TEST-34, R147
#[test]
fn a_u_shaped_window_passes_for_every_n() {
    let hints = [0.1, 0.9, 0.5, 0.5, 0.7, 0.3, 0.9];
    let items: Vec<ContextItem> = hints
        .into_iter()
        .enumerate()
        .map(|(number, hint)| {
            let item = ContextItem::builder(format!("item {number}"), 1).pinned(number == 4);
            item.future_relevance_hint(hint).build().unwrap()
        })
        .collect();
    let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, UShapedPlacer);
    let report = pipeline.dry_run(&items, &budget(100, 100)).unwrap();
    for n in 0..=items.len() {
        passes!(report, place_top_n_scored_at_edges(n));
    }
    passes!(
        report,
        place_item_at_edge(|entry: &IncludedItem| entry.reason == InclusionReason::Pinned)
    );
}

// ---- beyond the specification ----

#[test]
fn included_items_are_counted() {
    passes!(fifty_tokens(), include_exactly_n_items(2));
    passes!(empty(), include_exactly_n_items(0));
    fails!(
        fifty_tokens(),
        include_exactly_n_items(3),
        "IncludeExactlyNItems(3) failed: expected 3 items in Included, but found 2."
    );
}

#[test]
fn an_inclusion_reason_is_found() {
    let report = report()
        .included("a", 0, 0.5)
        .pinned("b", 1)
        .included("c", 0, 0.5)
        .build();
    passes!(report, include_item_with_reason(InclusionReason::Pinned));
    fails!(
        report,
        include_item_with_reason(InclusionReason::Scored),
        "IncludeItemWithReason(Scored) failed: no included item had reason Scored. Included had 3 items with reasons: [ZeroToken, Pinned]."
    );
}

#[test]
fn an_excluded_entry_is_found() {
    passes!(
        details(),
        exclude_item_matching(|entry: &ExcludedItem| entry.item.content() == "b")
    );
    fails!(
        details(),
        exclude_item_matching(|entry: &ExcludedItem| entry.item.content() == "z"),
        "ExcludeItemMatching failed: no item in Excluded matched the predicate. Excluded had 3 items. \
         Excluded began with: [(kind=Message, score=0.900000, reason=Filtered), \
         (kind=Message, score=0.500000, reason=BudgetExceeded), (kind=Message, score=0.250000, reason=BudgetExceeded)]."
    );
    fails!(
        empty(),
        exclude_item_matching(|_| true),
        "ExcludeItemMatching failed: no item in Excluded matched the predicate. Excluded had 0 items."
    );
}

#[test]
fn a_reason_is_found_by_name() {
    for reason in every_reason() {
        let report = report().excluded("x", 1, 0.5, reason.clone()).build();
        passes!(report, exclude_item_with_reason_named(reason.name()));
    }
    fails!(
        details(),
        exclude_item_with_reason_named("Budget"),
        "ExcludeItemWithReasonNamed(Budget) failed: no excluded item had reason Budget. Excluded had 3 items with reasons: [Filtered, BudgetExceeded]."
    );
}

#[test]
fn shortfalls_are_counted() {
    let report = report()
        .shortfall("Memory", 3, 1)
        .shortfall("note", 1, 0)
        .build();
    passes!(report, have_exactly_n_shortfalls(2));
    passes!(empty(), have_exactly_n_shortfalls(0));
    fails!(
        report,
        have_exactly_n_shortfalls(0),
        "HaveExactlyNShortfalls(0) failed: expected 0 count requirement shortfalls, but found 2: [(kind=Memory, 1 of 3), (kind=note, 0 of 1)]."
    );
}
