//! The form of a failure: payload, location and terminal output.

use std::cell::RefCell;
use std::panic::{Location, catch_unwind, set_hook, take_hook};
use std::process::Command;
use std::sync::Once;

use cupel::{
    ContextBudget, ContextItem, ContextKind, CupelError, ExclusionReason, InclusionReason, Placer,
    ScoredItem, Scorer, Slicer,
};
use cupel_testing::fixture::{ReportBuilder, item};
use cupel_testing::{SelectionReportAssertionError, SelectionReportAssertions, laws};

use crate::surface::sample;

thread_local! {
    static SEEN: RefCell<Option<(String, u32)>> = const { RefCell::new(None) };
}

/// Returns the file and line that a panic hook receives.
fn location_of(panicking: impl FnOnce() + std::panic::UnwindSafe) -> (String, u32) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let next = take_hook();
        set_hook(Box::new(move |info| {
            let location = info.location().map(|at| (at.file().to_owned(), at.line()));
            SEEN.set(location);
            next(info);
        }));
    });
    catch_unwind(panicking).expect_err("it does not panic");
    SEEN.take().expect("the hook runs for every panic")
}

#[track_caller]
fn here() -> (String, u32) {
    let here = Location::caller();
    (here.file().to_owned(), here.line())
}

/// Asserts that an expression panics at its own line.
macro_rules! panics_here {
    ($panicking:expr) => {
        assert_eq!(
            (
                location_of(|| {
                    let _ = $panicking;
                }),
                stringify!($panicking)
            ),
            (here(), stringify!($panicking))
        )
    };
}

// proves: TEST-3, R141
#[test]
#[rustfmt::skip]
#[expect(deprecated, reason = "the names of 1.2 are methods too")]
fn every_failure_is_located_at_the_line_of_the_caller() {
    let report = sample();
    let memory = ContextKind::memory;
    let filtered = || ExclusionReason::Filtered { filter_name: String::new() };
    let budget = ContextBudget::with_target(100, 100).unwrap();
    let unsorted = ReportBuilder::new().over_budget("a", 1, 0.1, 0).over_budget("b", 1, 0.2, 0).build_unsorted();

    panics_here!(report.should().include_item_with_kind(memory()));
    panics_here!(report.should().include_item_matching(|_| false));
    panics_here!(report.should().include_exactly_n_items_with_kind(memory(), 1));
    panics_here!(report.should().exclude_item_with_reason(filtered()));
    panics_here!(report.should().exclude_item_matching_with_reason(|_| true, filtered()));
    panics_here!(report.should().exclude_item_with_budget_details(|_| true, 1, 1));
    panics_here!(report.should().have_no_exclusions_for_kind(ContextKind::message()));
    panics_here!(report.should().have_at_least_n_exclusions(2));
    panics_here!(unsorted.should().excluded_items_are_sorted_by_score_descending());
    panics_here!(report.should().have_budget_utilization_above(0.75, &budget));
    panics_here!(report.should().have_kind_coverage_count(2));
    panics_here!(report.should().place_item_at_edge(|_| false));
    panics_here!(report.should().place_top_n_scored_at_edges(3));

    panics_here!(report.should().include_exactly_n_items(3));
    panics_here!(report.should().include_item_with_reason(InclusionReason::Pinned));
    panics_here!(report.should().exclude_item_matching(|_| false));
    panics_here!(report.should().exclude_item_with_reason_named("Filtered"));
    panics_here!(report.should().have_exactly_n_shortfalls(1));

    panics_here!(report.should().include_exact_n_items_with_kind(memory(), 1));
    panics_here!(report.should().have_excluded_item_with_budget_details(|_| true, 1, 1));

    panics_here!(laws::scorer(&Lawless));
    panics_here!(laws::slicer(&Lawless));
    panics_here!(laws::placer(&Lawless));

    panics_here!(item("", 1));
    panics_here!(ReportBuilder::new().included("", 1, 0.5));
    panics_here!(ReportBuilder::new().pinned("", 1));
    panics_here!(ReportBuilder::new().over_budget("", 1, 0.5, 0));
    panics_here!(ReportBuilder::new().kind(memory()));
}

/// A strategy that breaks a law in every role.
struct Lawless;

impl Scorer for Lawless {
    fn score(&self, _item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
        0.0
    }

    fn score_all(&self, _items: &[ContextItem]) -> Result<Vec<f64>, CupelError> {
        Ok(vec![0.5])
    }
}

impl Slicer for Lawless {
    fn slice(
        &self,
        _sorted: &[ScoredItem],
        _budget: &ContextBudget,
    ) -> Result<Vec<ContextItem>, CupelError> {
        Ok(vec![item("made up", 1)])
    }
}

impl Placer for Lawless {
    fn place(&self, _items: &[ScoredItem]) -> Vec<ContextItem> {
        vec![item("made up", 1)]
    }
}

// proves: TEST-3, R141
#[test]
fn the_first_failed_assertion_panics_with_its_message_as_a_string() {
    let message = "HaveKindCoverageCount(2) failed: expected at least 2 distinct ContextKind values in Included, but found 1: [Message].";
    let panicked = crate::panic_message(|| {
        sample()
            .should()
            .have_at_least_n_exclusions(1)
            .have_kind_coverage_count(2)
            .have_at_least_n_exclusions(9);
    });
    assert_eq!(panicked, message);
}

// proves: TEST-3, R141
#[test]
#[should_panic(expected = "HaveAtLeastNExclusions(2) failed: expected at least 2 excluded items")]
fn should_panic_matches_the_message_of_an_assertion() {
    sample().should().have_at_least_n_exclusions(2);
}

#[test]
#[should_panic(expected = "slicer breaks Subset (every kept item was offered): ")]
fn should_panic_matches_the_message_of_a_law_check() {
    laws::slicer(&Lawless);
}

// proves: TEST-3, R141
#[test]
fn the_checking_form_returns_a_dedicated_error_type() {
    let error: SelectionReportAssertionError =
        sample().check().have_kind_coverage_count(2).unwrap_err();
    let message = "HaveKindCoverageCount(2) failed: expected at least 2 distinct ContextKind values in Included, but found 1: [Message].";
    assert_eq!(error.assertion(), "HaveKindCoverageCount");
    assert_eq!(error.message(), message);
    assert_eq!(error.to_string(), message);
    assert_eq!(
        format!("{error:?}"),
        format!("SelectionReportAssertionError {{ message: {message:?} }}")
    );
}

const FAIL: &str = "CUPEL_TESTING_FAIL";

#[test]
fn an_ordinary_test() {
    let report = sample();
    let kinds = if std::env::var_os(FAIL).is_some() {
        2
    } else {
        1
    };
    report.should().have_kind_coverage_count(kinds);
}

// proves: TEST-3, TEST-4
#[test]
fn a_failed_test_shows_the_message_and_the_line() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "failure::an_ordinary_test"])
        .env(FAIL, "1")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let shown = String::from_utf8(output.stdout).unwrap();
    let mut lines = include_str!("failure.rs").lines();
    let is_failing = |line: &str| line.trim() == "report.should().have_kind_coverage_count(kinds);";
    let line = lines.position(is_failing).unwrap() + 1;
    let message = "HaveKindCoverageCount(2) failed: expected at least 2 distinct ContextKind values in Included, but found 1: [Message].";
    let location = format!("{}:{line}:", file!());
    let (_, after) = shown.split_once(&location).expect("the line is shown");
    // The line ends with a column, and the message follows.
    let message_line = after.lines().nth(1);
    assert_eq!(message_line, Some(message), "{shown}");
    assert_eq!(shown.matches(message).count(), 1, "{shown}");
}
