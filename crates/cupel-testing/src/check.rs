//! [`SelectionReportCheck`]: every assertion as a method that returns a result.

use std::cmp::Ordering;
use std::fmt::Display;

use cupel::{
    ContextBudget, ContextKind, ExcludedItem, ExclusionReason, IncludedItem, InclusionReason,
    SelectionReport, budget_utilization,
};

use crate::SelectionReportAssertionError;

/// What a check returns: itself, for the next one, or what failed.
pub type Checked<T> = Result<T, SelectionReportAssertionError>;

/// The assertions as checks that return a result instead of panicking.
///
/// [`check`](crate::SelectionReportAssertions::check) makes one from a report. A check that passes
/// returns `self`, so checks chain with `?`. The methods are those of
/// [`SelectionReportAssertionChain`](crate::SelectionReportAssertionChain), whose documentation
/// describes each one.
///
/// ```
/// use cupel::ContextKind;
/// use cupel_testing::fixture::ReportBuilder;
/// use cupel_testing::{SelectionReportAssertionError, SelectionReportAssertions};
///
/// let report = ReportBuilder::new().included("hello", 2, 0.5).build();
/// let one_message = || -> Result<(), SelectionReportAssertionError> {
///     report
///         .check()
///         .include_exactly_n_items(1)?
///         .include_item_with_kind(ContextKind::message())?;
///     Ok(())
/// };
/// assert_eq!(one_message(), Ok(()));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SelectionReportCheck<'a> {
    report: &'a SelectionReport,
}

/// Checks return what failed as a [`SelectionReportAssertionError`].
#[expect(
    clippy::needless_pass_by_value,
    reason = "the arguments are those of the chain"
)]
#[expect(
    clippy::missing_errors_doc,
    reason = "every check has the one error that the block names"
)]
impl<'a> SelectionReportCheck<'a> {
    pub(crate) fn new(report: &'a SelectionReport) -> Self {
        Self { report }
    }

    /// Checks that an included item has the kind.
    pub fn include_item_with_kind(self, kind: ContextKind) -> Checked<Self> {
        self.result(self.included_kinds().any(|other| *other == kind), || {
            format!(
                "IncludeItemWithKind({kind}) failed: Included contained 0 items with Kind={kind}. \
                 Included had {} items with kinds: [{}].",
                self.report.included.len(),
                joined(distinct(self.included_kinds())),
            )
        })
    }

    /// Checks that an included entry satisfies the predicate.
    pub fn include_item_matching(self, predicate: impl Fn(&IncludedItem) -> bool) -> Checked<Self> {
        let included = &self.report.included;
        self.result(included.iter().any(predicate), || {
            let entries = included
                .iter()
                .map(|entry| summary(entry.item.kind(), entry.score, entry.reason.name()));
            no_match("IncludeItemMatching", "Included", entries)
        })
    }

    /// Checks that exactly `n` included items have the kind.
    pub fn include_exactly_n_items_with_kind(self, kind: ContextKind, n: usize) -> Checked<Self> {
        let actual = self
            .included_kinds()
            .filter(|other| **other == kind)
            .count();
        self.result(actual == n, || {
            format!(
                "IncludeExactlyNItemsWithKind({kind}, {n}) failed: \
                 expected {n} items with Kind={kind} in Included, but found {actual}. \
                 Included had {} items total.",
                self.report.included.len(),
            )
        })
    }

    /// Checks that an excluded item has a reason of the given variant.
    pub fn exclude_item_with_reason(self, reason: ExclusionReason) -> Checked<Self> {
        self.exclude_with_reason("ExcludeItemWithReason", reason.name(), |other| {
            same_variant(other, &reason)
        })
    }

    /// Checks that an excluded entry satisfies the predicate and has a reason of the given variant.
    pub fn exclude_item_matching_with_reason(
        self,
        predicate: impl Fn(&ExcludedItem) -> bool,
        reason: ExclusionReason,
    ) -> Checked<Self> {
        let matched = self.excluded_matching(predicate);
        let mut reasons = matched.iter().map(|entry| &entry.reason);
        self.result(reasons.any(|other| same_variant(other, &reason)), || {
            let reason = reason.name();
            format!(
                "ExcludeItemMatchingWithReason(reason={reason}) failed: \
                 predicate matched {} excluded item(s) but none had reason {reason}. \
                 Matched items had reasons: [{}].",
                matched.len(),
                joined(distinct(matched.iter().map(|entry| entry.reason.name()))),
            )
        })
    }

    /// Checks that an excluded entry satisfies the predicate and is `BudgetExceeded` with these numbers.
    pub fn exclude_item_with_budget_details(
        self,
        predicate: impl Fn(&ExcludedItem) -> bool,
        expected_item_tokens: i64,
        expected_available_tokens: i64,
    ) -> Checked<Self> {
        let expected = (expected_item_tokens, expected_available_tokens);
        let matched = self.excluded_matching(predicate);
        let details: Vec<(i64, i64)> = matched
            .iter()
            .filter_map(|entry| match entry.reason {
                ExclusionReason::BudgetExceeded {
                    item_tokens,
                    available_tokens,
                } => Some((item_tokens, available_tokens)),
                _ => None,
            })
            .collect();
        self.result(details.contains(&expected), || {
            let found = match details.first() {
                Some((item_tokens, available_tokens)) => {
                    format!("found item_tokens={item_tokens}, available_tokens={available_tokens}")
                }
                None => "no matching item had reason BudgetExceeded".to_owned(),
            };
            format!(
                "ExcludeItemWithBudgetDetails failed: expected BudgetExceeded with \
                 item_tokens={expected_item_tokens}, available_tokens={expected_available_tokens}, \
                 but {found}."
            )
        })
    }

    /// Checks that no excluded item has the kind.
    pub fn have_no_exclusions_for_kind(self, kind: ContextKind) -> Checked<Self> {
        let matched = self.excluded_matching(|entry| *entry.item.kind() == kind);
        let Some(first) = matched.first() else {
            return Ok(self);
        };
        Err(SelectionReportAssertionError::new(format!(
            "HaveNoExclusionsForKind({kind}) failed: \
             found {} excluded item(s) with Kind={kind}. First: score={:.4}, reason={}.",
            matched.len(),
            first.score,
            first.reason.name(),
        )))
    }

    /// Checks that at least `n` items are excluded.
    pub fn have_at_least_n_exclusions(self, n: usize) -> Checked<Self> {
        let actual = self.report.excluded.len();
        self.result(actual >= n, || {
            format!(
                "HaveAtLeastNExclusions({n}) failed: \
                 expected at least {n} excluded items, but Excluded had {actual}."
            )
        })
    }

    /// Checks that no excluded item has a higher score than the one before it.
    pub fn excluded_items_are_sorted_by_score_descending(self) -> Checked<Self> {
        let excluded = &self.report.excluded;
        let mut pairs = excluded.windows(2);
        let Some(index) = pairs.position(|pair| is_higher(pair[1].score, pair[0].score)) else {
            return Ok(self);
        };
        Err(SelectionReportAssertionError::new(format!(
            "ExcludedItemsAreSortedByScoreDescending failed: \
             item at index {} (score={:.6}) is higher than item at index {index} (score={:.6}). \
             Expected non-increasing scores.",
            index + 1,
            excluded[index + 1].score,
            excluded[index].score,
        )))
    }

    /// Checks that the included tokens divided by `budget.max_tokens()` are at least `threshold`.
    pub fn have_budget_utilization_above(
        self,
        threshold: f64,
        budget: &ContextBudget,
    ) -> Checked<Self> {
        let actual = budget_utilization(self.report, budget);
        self.result(actual >= threshold, || {
            let tokens = self.report.included.iter().map(|entry| entry.item.tokens());
            format!(
                "HaveBudgetUtilizationAbove({threshold}) failed: \
                 computed utilization was {actual:.6} \
                 (includedTokens={}, budget.MaxTokens={}).",
                tokens.map(i128::from).sum::<i128>(),
                budget.max_tokens(),
            )
        })
    }

    /// Checks that at least `n` distinct kinds are included.
    pub fn have_kind_coverage_count(self, n: usize) -> Checked<Self> {
        let kinds = distinct(self.included_kinds());
        self.result(kinds.len() >= n, || {
            format!(
                "HaveKindCoverageCount({n}) failed: \
                 expected at least {n} distinct ContextKind values in Included, \
                 but found {}: [{}].",
                kinds.len(),
                joined(&kinds),
            )
        })
    }

    /// Checks that the first or the last included entry satisfies the predicate.
    pub fn place_item_at_edge(self, predicate: impl Fn(&IncludedItem) -> bool) -> Checked<Self> {
        let included = &self.report.included;
        let mut edges = included.first().into_iter().chain(included.last());
        self.result(edges.any(&predicate), || match included.iter().position(predicate) {
            None => "PlaceItemAtEdge failed: no item in Included matched the predicate.".to_owned(),
            // An entry matched, so the list is not empty.
            Some(index) => format!(
                "PlaceItemAtEdge failed: item matching predicate was at index {index} (not at edge). \
                 Edge positions: 0 and {}. Included had {} items.",
                included.len() - 1,
                included.len(),
            ),
        })
    }

    /// Checks that the `n` outermost positions hold scores no lower than the `n`-th highest.
    pub fn place_top_n_scored_at_edges(self, n: usize) -> Checked<Self> {
        let included = &self.report.included;
        let count = included.len();
        let mut top: Vec<usize> = (0..count).collect();
        top.sort_by(|&a, &b| descending(included[a].score, included[b].score));
        top.truncate(n);
        let edges: Vec<usize> = (0..top.len()).map(|n| edge(n, count)).collect();
        let lowest = top.last().map(|&index| included[index].score);
        let too_low = |index: &&usize| {
            lowest.is_some_and(|lowest| is_higher(lowest, included[**index].score))
        };
        let missing = n - top.len();
        let misplaced = edges.iter().filter(too_low).count() + missing;
        self.result(misplaced == 0, || {
            let items = top.iter().map(|&index| {
                let entry = &included[index];
                let (kind, score) = (entry.item.kind(), entry.score);
                format!("(kind={kind}, score={score:.6}, idx={index})")
            });
            let shortage = match missing {
                0 => String::new(),
                _ => format!(" n={n} exceeds Included count={count}."),
            };
            format!(
                "PlaceTopNScoredAtEdges({n}) failed: \
                 {misplaced} of the top-{n} scored items were not at expected edge positions. \
                 Top-{n} items (by score): [{}]. Expected edge positions: [{}].{shortage}",
                joined(items),
                joined(&edges),
            )
        })
    }

    /// Checks that exactly `n` items are included.
    pub fn include_exactly_n_items(self, n: usize) -> Checked<Self> {
        let actual = self.report.included.len();
        self.result(actual == n, || {
            format!(
                "IncludeExactlyNItems({n}) failed: \
                 expected {n} items in Included, but found {actual}."
            )
        })
    }

    /// Checks that an included item has the reason.
    pub fn include_item_with_reason(self, reason: InclusionReason) -> Checked<Self> {
        let reasons = self.report.included.iter().map(|entry| entry.reason);
        self.result(reasons.clone().any(|other| other == reason), || {
            let names = reasons.map(|reason| reason.name());
            no_reason("IncludeItemWithReason", reason.name(), "Included", names)
        })
    }

    /// Checks that an excluded entry satisfies the predicate.
    pub fn exclude_item_matching(self, predicate: impl Fn(&ExcludedItem) -> bool) -> Checked<Self> {
        let excluded = &self.report.excluded;
        self.result(excluded.iter().any(predicate), || {
            let entries = excluded
                .iter()
                .map(|entry| summary(entry.item.kind(), entry.score, entry.reason.name()));
            no_match("ExcludeItemMatching", "Excluded", entries)
        })
    }

    /// Checks that an excluded item has a reason with this name.
    pub fn exclude_item_with_reason_named(self, name: &str) -> Checked<Self> {
        self.exclude_with_reason("ExcludeItemWithReasonNamed", name, |other| {
            other.name() == name
        })
    }

    /// Checks that exactly `n` count requirements were not met.
    pub fn have_exactly_n_shortfalls(self, n: usize) -> Checked<Self> {
        let shortfalls = &self.report.count_requirement_shortfalls;
        self.result(shortfalls.len() == n, || {
            let described = shortfalls.iter().map(|shortfall| {
                let (satisfied, required) = (shortfall.satisfied_count, shortfall.required_count);
                format!("(kind={}, {satisfied} of {required})", shortfall.kind)
            });
            format!(
                "HaveExactlyNShortfalls({n}) failed: \
                 expected {n} count requirement shortfalls, but found {}: [{}].",
                shortfalls.len(),
                joined(described),
            )
        })
    }

    fn result(self, holds: bool, message: impl FnOnce() -> String) -> Checked<Self> {
        if holds {
            Ok(self)
        } else {
            Err(SelectionReportAssertionError::new(message()))
        }
    }

    fn exclude_with_reason(
        self,
        assertion: &str,
        reason: &str,
        matches: impl Fn(&ExclusionReason) -> bool,
    ) -> Checked<Self> {
        let mut reasons = self.report.excluded.iter().map(|entry| &entry.reason);
        let names = reasons.clone().map(ExclusionReason::name);
        self.result(reasons.any(matches), || {
            no_reason(assertion, reason, "Excluded", names)
        })
    }

    fn included_kinds(self) -> impl Iterator<Item = &'a ContextKind> {
        self.report.included.iter().map(|entry| entry.item.kind())
    }

    fn excluded_matching(self, predicate: impl Fn(&ExcludedItem) -> bool) -> Vec<&'a ExcludedItem> {
        let entries = self.report.excluded.iter();
        entries.filter(|entry| predicate(entry)).collect()
    }
}

/// Returns whether two reasons are of the same variant. Fields are ignored; unknown reasons compare
/// by name.
fn same_variant(a: &ExclusionReason, b: &ExclusionReason) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b) && a.name() == b.name()
}

/// Compares scores in the order of a report: highest first, NaN after every number (R009).
pub(crate) fn descending(a: f64, b: f64) -> Ordering {
    b.partial_cmp(&a)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn is_higher(score: f64, than: f64) -> bool {
    descending(score, than) == Ordering::Less
}

/// Returns the `n`-th edge position of a list, from both ends inward: first, last, second, second
/// to last.
fn edge(n: usize, count: usize) -> usize {
    if n.is_multiple_of(2) {
        n / 2
    } else {
        count - 1 - n / 2
    }
}

/// Returns the distinct values in order of first appearance.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.fold(Vec::new(), |mut seen, value| {
        if !seen.contains(&value) {
            seen.push(value);
        }
        seen
    })
}

fn joined(values: impl IntoIterator<Item = impl Display>) -> String {
    let texts: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    texts.join(", ")
}

fn summary(kind: &ContextKind, score: f64, reason: &str) -> String {
    format!("(kind={kind}, score={score:.6}, reason={reason})")
}

/// Formats the failure of a predicate, with the first five entries of the list.
fn no_match(assertion: &str, list: &str, entries: impl ExactSizeIterator<Item = String>) -> String {
    const SHOWN: usize = 5;
    let count = entries.len();
    let first = match joined(entries.take(SHOWN)) {
        first if first.is_empty() => first,
        first => format!(" {list} began with: [{first}]."),
    };
    format!(
        "{assertion} failed: no item in {list} matched the predicate. \
         {list} had {count} items.{first}"
    )
}

/// Formats the failure to find a reason, with the distinct reasons of the list.
fn no_reason<'a>(
    assertion: &str,
    reason: &str,
    list: &str,
    names: impl ExactSizeIterator<Item = &'a str>,
) -> String {
    format!(
        "{assertion}({reason}) failed: no {} item had reason {reason}. \
         {list} had {} items with reasons: [{}].",
        list.to_ascii_lowercase(),
        names.len(),
        joined(distinct(names)),
    )
}
