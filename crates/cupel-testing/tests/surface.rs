//! Method names, chaining, and compatibility with `cupel-testing` 1.2.

use cupel::{
    ContextBudget, ContextKind, ExcludedItem, ExclusionReason, IncludedItem, InclusionReason,
    SelectionReport,
};
use cupel_testing::fixture::ReportBuilder;
use cupel_testing::{
    SelectionReportAssertionChain, SelectionReportAssertionError, SelectionReportAssertions,
    SelectionReportCheck,
};

/// Returns a report with two included items and one excluded.
pub(crate) fn sample() -> SelectionReport {
    ReportBuilder::new()
        .included("a", 30, 0.9)
        .included("b", 20, 0.8)
        .over_budget("c", 60, 0.5, 35)
        .build()
}

fn budget() -> ContextBudget {
    ContextBudget::with_target(100, 100).unwrap()
}

fn over_budget() -> ExclusionReason {
    ExclusionReason::BudgetExceeded {
        item_tokens: 0,
        available_tokens: 0,
    }
}

/// Returns a failure of every assertion.
pub(crate) fn failures() -> Vec<(&'static str, SelectionReportAssertionError)> {
    fn failed(
        result: Result<SelectionReportCheck, SelectionReportAssertionError>,
    ) -> SelectionReportAssertionError {
        result.unwrap_err()
    }
    let report = &sample();
    let check = report.check();
    let unsorted = &ReportBuilder::new()
        .over_budget("low", 1, 0.25, 0)
        .over_budget("high", 1, 0.75, 0)
        .build_unsorted();
    let memory = ContextKind::memory;
    let filtered = || ExclusionReason::Filtered {
        filter_name: "f".to_owned(),
    };
    vec![
        (
            "IncludeItemWithKind",
            failed(check.include_item_with_kind(memory())),
        ),
        (
            "IncludeItemMatching",
            failed(check.include_item_matching(|_| false)),
        ),
        (
            "IncludeExactlyNItemsWithKind",
            failed(check.include_exactly_n_items_with_kind(memory(), 1)),
        ),
        (
            "ExcludeItemWithReason",
            failed(check.exclude_item_with_reason(filtered())),
        ),
        (
            "ExcludeItemMatchingWithReason",
            failed(check.exclude_item_matching_with_reason(|_| true, filtered())),
        ),
        (
            "ExcludeItemWithBudgetDetails",
            failed(check.exclude_item_with_budget_details(|_| true, 1, 1)),
        ),
        (
            "HaveNoExclusionsForKind",
            failed(check.have_no_exclusions_for_kind(ContextKind::message())),
        ),
        (
            "HaveAtLeastNExclusions",
            failed(check.have_at_least_n_exclusions(2)),
        ),
        (
            "ExcludedItemsAreSortedByScoreDescending",
            failed(
                unsorted
                    .check()
                    .excluded_items_are_sorted_by_score_descending(),
            ),
        ),
        (
            "HaveBudgetUtilizationAbove",
            failed(check.have_budget_utilization_above(0.75, &budget())),
        ),
        (
            "HaveKindCoverageCount",
            failed(check.have_kind_coverage_count(2)),
        ),
        (
            "PlaceItemAtEdge",
            failed(check.place_item_at_edge(|_| false)),
        ),
        (
            "PlaceTopNScoredAtEdges",
            failed(check.place_top_n_scored_at_edges(3)),
        ),
    ]
}

// proves: TEST-4, TEST-6, TEST-7, TEST-38, R140
#[test]
fn every_message_begins_with_the_specified_name_and_contains_no_internals() {
    let failures = failures();
    assert_eq!(failures.len(), 13);
    for (name, error) in failures {
        assert_eq!(error.assertion(), name);
        let rest = error.message().strip_prefix(name).unwrap();
        let begins =
            rest.starts_with(" failed: ") || rest.starts_with('(') && rest.contains(") failed: ");
        assert!(begins, "{error}");
        for internal in [
            "{",
            "}",
            "\"",
            "::",
            "Some",
            "cupel",
            "Selection",
            "ExclusionReason",
        ] {
            assert!(
                !error.message().contains(internal),
                "{internal} in: {error}"
            );
        }
    }
}

/// Returns the method names in the two tables of the chain.
fn methods() -> (Vec<&'static str>, Vec<&'static str>) {
    let tables: Vec<&str> = include_str!("../src/chain.rs")
        .split("\npanicking! {\n")
        .collect();
    let names = |table: &'static str| {
        let table = table.split("\n}\n").next().unwrap();
        let lines = table
            .lines()
            .filter_map(|line| line.strip_prefix("    fn "));
        lines.map(|line| line.split('(').next().unwrap()).collect()
    };
    (names(tables[1]), names(tables[2]))
}

// proves: TEST-6, R140, R149
#[test]
fn the_methods_are_the_thirteen_in_snake_case_and_five_more() {
    let (specified, ours) = methods();
    let snake_case = |name: &str| {
        let mut words = String::new();
        for character in name.chars() {
            if character.is_ascii_uppercase() && !words.is_empty() {
                words.push('_');
            }
            words.push(character.to_ascii_lowercase());
        }
        words
    };
    let expected: Vec<String> = failures()
        .iter()
        .map(|(name, _)| snake_case(name))
        .collect();
    assert_eq!(specified, expected);
    assert_eq!(
        ours,
        [
            "include_exactly_n_items",
            "include_item_with_reason",
            "exclude_item_matching",
            "exclude_item_with_reason_named",
            "have_exactly_n_shortfalls",
        ]
    );
}

// proves: TEST-37
#[test]
fn the_only_dependency_is_cupel() {
    let manifest = include_str!("../Cargo.toml");
    let is_table = |line: &&str| line.starts_with('[') && line.contains("dependencies");
    match manifest.lines().filter(is_table).collect::<Vec<_>>()[..] {
        ["[dependencies]"] => {
            let (_, dependencies) = manifest.split_once("[dependencies]\n").unwrap();
            let (dependencies, _) = dependencies.split_once("\n[").unwrap();
            assert_eq!(dependencies.trim(), "cupel.workspace = true");
        }
        // The form in a packed crate.
        ["[dependencies.cupel]"] => {}
        ref tables => panic!("{tables:?}"),
    }
}

// proves: TEST-1, TEST-2, TEST-6
#[test]
fn every_assertion_that_passes_returns_the_chain_and_changes_nothing() {
    let report = sample();
    let before = report.clone();
    let mut chain: SelectionReportAssertionChain<'_> = report.should();
    let address = std::ptr::from_ref(&chain);
    let returned: &mut cupel_testing::chain::SelectionReportAssertionChain<'_> = chain
        .include_item_with_kind(ContextKind::message())
        .include_item_matching(|entry: &IncludedItem| entry.score > 0.8)
        .include_exactly_n_items_with_kind(ContextKind::message(), 2)
        .exclude_item_with_reason(over_budget())
        .exclude_item_matching_with_reason(|entry: &ExcludedItem| entry.score == 0.5, over_budget())
        .exclude_item_with_budget_details(|entry: &ExcludedItem| entry.score == 0.5, 60_i64, 35_i64)
        .have_no_exclusions_for_kind(ContextKind::memory())
        .have_at_least_n_exclusions(1_usize)
        .excluded_items_are_sorted_by_score_descending()
        .have_budget_utilization_above(0.5_f64, &budget())
        .have_kind_coverage_count(1_usize)
        .place_item_at_edge(|entry: &IncludedItem| entry.score == 0.9)
        .place_top_n_scored_at_edges(2_usize)
        .include_exactly_n_items(2)
        .include_item_with_reason(InclusionReason::Scored)
        .exclude_item_matching(|_| true)
        .exclude_item_with_reason_named("BudgetExceeded")
        .have_exactly_n_shortfalls(0);
    assert!(std::ptr::eq(address, returned));
    assert_eq!(report, before);
}

// proves: TEST-1, TEST-3
#[test]
fn a_check_can_be_kept_and_chained() {
    let report = sample();
    let check = report.check();
    let chained = || -> Result<(), SelectionReportAssertionError> {
        check
            .include_exactly_n_items(2)?
            .have_at_least_n_exclusions(2)?
            .include_exactly_n_items(7)?;
        Ok(())
    };
    assert_eq!(chained().unwrap_err().assertion(), "HaveAtLeastNExclusions");
    let boxed: Box<dyn std::error::Error + Send + Sync> = chained().unwrap_err().into();
    assert_eq!(
        boxed.to_string(),
        "HaveAtLeastNExclusions(2) failed: expected at least 2 excluded items, but Excluded had 1."
    );
    assert!(check.include_exactly_n_items(2).is_ok());
}

// proves: R140
#[test]
#[expect(deprecated, reason = "they are there for programs that call them")]
fn the_published_names_agree_with_the_specified_ones() {
    let report = sample();
    report
        .should()
        .include_exact_n_items_with_kind(ContextKind::message(), 2)
        .have_excluded_item_with_budget_details(|_| true, 60, 35);
    let panicked = crate::panic_message(|| {
        report
            .should()
            .include_exact_n_items_with_kind(ContextKind::message(), 1);
    });
    let specified = report
        .check()
        .include_exactly_n_items_with_kind(ContextKind::message(), 1);
    assert_eq!(panicked, specified.unwrap_err().message());
    let panicked = crate::panic_message(|| {
        report
            .should()
            .have_excluded_item_with_budget_details(|_| true, 60, 36);
    });
    let specified = report
        .check()
        .exclude_item_with_budget_details(|_| true, 60, 36);
    assert_eq!(panicked, specified.unwrap_err().message());
}

/// A user type that implements only `should`.
struct Answer {
    report: SelectionReport,
}

impl SelectionReportAssertions for Answer {
    fn should(&self) -> SelectionReportAssertionChain<'_> {
        self.report.should()
    }
}

// proves: TEST-1
#[test]
fn a_type_that_only_implements_should_has_both_forms() {
    let answer = Answer { report: sample() };
    answer.should().have_kind_coverage_count(1);
    assert!(answer.check().have_kind_coverage_count(2).is_err());
    assert!(
        answer
            .should()
            .as_check()
            .have_kind_coverage_count(2)
            .is_err()
    );
}

const _: () = {
    const fn is<T: Send + Sync + Unpin + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    is::<SelectionReportAssertionChain<'_>>();
    is::<SelectionReportCheck<'_>>();
    is::<SelectionReportAssertionError>();
    is::<cupel_testing::fixture::ReportBuilder>();
    is::<cupel_testing::laws::LawViolation>();
};
