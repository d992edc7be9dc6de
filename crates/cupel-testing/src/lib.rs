//! Assertions on a [`SelectionReport`], and law checks for your own scorers, slicers and placers.
//!
//! Call [`should`](SelectionReportAssertions::should) on a report and chain assertions. A failed
//! assertion panics at the caller's line with the expected and the actual value in its message.
//!
//! ```
//! use cupel::{ContextBudget, ContextItem, ContextKind, GreedySlice, Pipeline, ReflexiveScorer, UShapedPlacer};
//! use cupel_testing::SelectionReportAssertions;
//!
//! let items = [
//!     ContextItem::builder("Where are my keys?", 5).future_relevance_hint(0.9).build()?,
//!     ContextItem::builder("A long story", 60).future_relevance_hint(0.3).build()?,
//! ];
//! let pipeline = Pipeline::new(ReflexiveScorer, GreedySlice, UShapedPlacer);
//! let report = pipeline.dry_run(&items, &ContextBudget::with_target(40, 40)?)?;
//!
//! report
//!     .should()
//!     .include_exactly_n_items_with_kind(ContextKind::message(), 1)
//!     .exclude_item_with_budget_details(|entry| entry.item.content() == "A long story", 60, 35)
//!     .excluded_items_are_sorted_by_score_descending();
//! # Ok::<(), cupel::CupelError>(())
//! ```
//!
//! # The vocabulary
//!
//! The specification defines these thirteen and their messages. A message begins with the
//! specification's name (`IncludeItemWithKind` and so on).
//!
//! | # | group | [assertion](SelectionReportAssertionChain) | passes if |
//! |---|---|---|---|
//! | 1 | inclusion | [`include_item_with_kind`](SelectionReportAssertionChain::include_item_with_kind) | an included item has the kind |
//! | 2 | | [`include_item_matching`](SelectionReportAssertionChain::include_item_matching) | an included entry satisfies the predicate |
//! | 3 | | [`include_exactly_n_items_with_kind`](SelectionReportAssertionChain::include_exactly_n_items_with_kind) | n included items have the kind |
//! | 4 | exclusion | [`exclude_item_with_reason`](SelectionReportAssertionChain::exclude_item_with_reason) | an excluded item has a reason of this variant |
//! | 5 | | [`exclude_item_matching_with_reason`](SelectionReportAssertionChain::exclude_item_matching_with_reason) | an excluded entry satisfies the predicate and has a reason of this variant |
//! | 6 | | [`exclude_item_with_budget_details`](SelectionReportAssertionChain::exclude_item_with_budget_details) | an excluded entry satisfies the predicate and is `BudgetExceeded` with these numbers |
//! | 7 | | [`have_no_exclusions_for_kind`](SelectionReportAssertionChain::have_no_exclusions_for_kind) | no excluded item has the kind |
//! | 8 | aggregate | [`have_at_least_n_exclusions`](SelectionReportAssertionChain::have_at_least_n_exclusions) | n or more items are excluded |
//! | 9 | | [`excluded_items_are_sorted_by_score_descending`](SelectionReportAssertionChain::excluded_items_are_sorted_by_score_descending) | the excluded items are sorted by score, highest first |
//! | 10 | budget | [`have_budget_utilization_above`](SelectionReportAssertionChain::have_budget_utilization_above) | the included tokens divided by `max_tokens` are at least the threshold |
//! | 11 | coverage | [`have_kind_coverage_count`](SelectionReportAssertionChain::have_kind_coverage_count) | n or more kinds are included |
//! | 12 | ordering | [`place_item_at_edge`](SelectionReportAssertionChain::place_item_at_edge) | the first or last included entry satisfies the predicate |
//! | 13 | | [`place_top_n_scored_at_edges`](SelectionReportAssertionChain::place_top_n_scored_at_edges) | the n highest scores are at the edges |
//!
//! Five more go beyond the specification:
//!
//! | assertion | passes if |
//! |---|---|
//! | [`include_exactly_n_items`](SelectionReportAssertionChain::include_exactly_n_items) | n items are included |
//! | [`include_item_with_reason`](SelectionReportAssertionChain::include_item_with_reason) | an included item has the reason |
//! | [`exclude_item_matching`](SelectionReportAssertionChain::exclude_item_matching) | an excluded entry satisfies the predicate |
//! | [`exclude_item_with_reason_named`](SelectionReportAssertionChain::exclude_item_with_reason_named) | an excluded item has a reason with this name |
//! | [`have_exactly_n_shortfalls`](SelectionReportAssertionChain::have_exactly_n_shortfalls) | n count requirements were not met |
//!
//! # Without panics
//!
//! [`check`](SelectionReportAssertions::check) has the same assertions as methods that return a
//! [`SelectionReportAssertionError`]; see [`SelectionReportCheck`].
//!
//! # Other modules
//!
//! - [`laws`]: checks that your own strategies keep their contracts.
//! - [`fixture`]: builds reports and items for tests.

use cupel::SelectionReport;

pub mod chain;
mod check;
mod error;
pub mod fixture;
pub mod laws;

pub use chain::SelectionReportAssertionChain;
pub use check::{Checked, SelectionReportCheck};
pub use error::SelectionReportAssertionError;

/// Adds assertions to a report.
///
/// ```
/// use cupel_testing::SelectionReportAssertions;
/// use cupel_testing::fixture::ReportBuilder;
///
/// let report = ReportBuilder::new().included("hello", 2, 0.5).build();
/// report.should().have_kind_coverage_count(1).have_at_least_n_exclusions(0);
/// assert!(report.check().have_at_least_n_exclusions(1).is_err());
/// ```
pub trait SelectionReportAssertions {
    /// Returns a chain of assertions that panic with a message.
    fn should(&self) -> SelectionReportAssertionChain<'_>;

    /// Returns a chain of assertions that return results.
    fn check(&self) -> SelectionReportCheck<'_> {
        self.should().as_check()
    }
}

impl SelectionReportAssertions for SelectionReport {
    fn should(&self) -> SelectionReportAssertionChain<'_> {
        SelectionReportAssertionChain::new(self)
    }
}

/// Compiles and runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
