//! [`SelectionReportAssertionChain`]: the assertions that panic.

use cupel::{
    ContextBudget, ContextKind, ExcludedItem, ExclusionReason, IncludedItem, InclusionReason,
    SelectionReport,
};

use crate::SelectionReportCheck;

/// A chain of assertions on a report.
///
/// [`should`](crate::SelectionReportAssertions::should) makes one from a report. An assertion that
/// passes returns the chain. An assertion that fails panics at the caller's line with the
/// specification's message as a string, so `#[should_panic(expected = "...")]` can match it.
/// Scores and shares compare exactly.
///
/// [`check`](crate::SelectionReportAssertions::check) has the same assertions as methods that
/// return a [`SelectionReportAssertionError`](crate::SelectionReportAssertionError).
///
/// ```
/// use cupel::ContextKind;
/// use cupel_testing::SelectionReportAssertions;
/// use cupel_testing::fixture::ReportBuilder;
///
/// let report = ReportBuilder::new()
///     .included("Where are my keys?", 5, 0.9)
///     .over_budget("A long story", 60, 0.3, 35)
///     .build();
/// report
///     .should()
///     .include_item_with_kind(ContextKind::message())
///     .exclude_item_with_budget_details(|entry| entry.item.content() == "A long story", 60, 35)
///     .have_at_least_n_exclusions(1);
/// ```
#[derive(Debug, Clone)]
pub struct SelectionReportAssertionChain<'a> {
    check: SelectionReportCheck<'a>,
}

impl<'a> SelectionReportAssertionChain<'a> {
    pub(crate) fn new(report: &'a SelectionReport) -> Self {
        Self {
            check: SelectionReportCheck::new(report),
        }
    }

    /// Returns the assertions as checks; [`check`](crate::SelectionReportAssertions::check) is shorter.
    ///
    /// ```
    /// use cupel_testing::SelectionReportAssertions;
    /// use cupel_testing::fixture::ReportBuilder;
    ///
    /// let report = ReportBuilder::new().included("hello", 2, 0.5).build();
    /// let chain = report.should();
    /// assert!(chain.as_check().include_exactly_n_items(2).is_err());
    /// ```
    pub fn as_check(&self) -> SelectionReportCheck<'a> {
        self.check
    }
}

/// Defines one panicking method per line `fn name(arguments);`. It calls the check of that name.
macro_rules! panicking {
    ($($(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),*);)*) => {
        impl SelectionReportAssertionChain<'_> {$(
            $(#[$attribute])*
            #[track_caller]
            pub fn $name(&mut self, $($argument: $type),*) -> &mut Self {
                if let Err(error) = self.check.$name($($argument),*) {
                    panic!("{error}");
                }
                self
            }
        )*}
    };
}

// The specification's thirteen.
panicking! {
    /// Asserts that an included item has the kind. Kinds compare without regard to ASCII case.
    ///
    /// ```
    /// # use cupel::*;
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new().included("hello", 2, 0.5).build();
    /// report.should().include_item_with_kind(ContextKind::message());
    ///
    /// let error = report.check().include_item_with_kind(ContextKind::memory()).unwrap_err();
    /// assert_eq!(
    ///     error.message(),
    ///     "IncludeItemWithKind(Memory) failed: Included contained 0 items with Kind=Memory. \
    ///      Included had 1 items with kinds: [Message].",
    /// );
    /// ```
    fn include_item_with_kind(kind: ContextKind);

    /// Asserts that an included entry satisfies the predicate, which sees item, score and reason.
    ///
    /// The message ends with the first five entries.
    ///
    /// ```
    /// # use cupel::*;
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new().included("hello", 2, 0.5).build();
    /// report.should().include_item_matching(|entry| entry.item.content() == "hello");
    ///
    /// let error = report.check().include_item_matching(|entry| entry.score > 0.5).unwrap_err();
    /// assert_eq!(
    ///     error.message(),
    ///     "IncludeItemMatching failed: no item in Included matched the predicate. \
    ///      Included had 1 items. \
    ///      Included began with: [(kind=Message, score=0.500000, reason=Scored)].",
    /// );
    /// ```
    fn include_item_matching(predicate: impl Fn(&IncludedItem) -> bool);

    /// Asserts that exactly `n` included items have the kind.
    ///
    /// ```
    /// # use cupel::*;
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new().included("hello", 2, 0.5).build();
    /// report.should().include_exactly_n_items_with_kind(ContextKind::memory(), 0);
    ///
    /// let two = report.check().include_exactly_n_items_with_kind(ContextKind::message(), 2);
    /// assert_eq!(
    ///     two.unwrap_err().message(),
    ///     "IncludeExactlyNItemsWithKind(Message, 2) failed: \
    ///      expected 2 items with Kind=Message in Included, but found 1. \
    ///      Included had 1 items total.",
    /// );
    /// ```
    fn include_exactly_n_items_with_kind(kind: ContextKind, n: usize);

    /// Asserts that an excluded item has a reason of the given variant. Fields are ignored.
    ///
    /// [`exclude_item_with_reason_named`](Self::exclude_item_with_reason_named) needs no fields.
    ///
    /// ```
    /// # use cupel::*;
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new().over_budget("A long story", 60, 0.3, 35).build();
    /// let any_budget = ExclusionReason::BudgetExceeded { item_tokens: 0, available_tokens: 0 };
    /// report.should().exclude_item_with_reason(any_budget);
    ///
    /// let negative = ExclusionReason::NegativeTokens { tokens: 0 };
    /// assert_eq!(
    ///     report.check().exclude_item_with_reason(negative).unwrap_err().message(),
    ///     "ExcludeItemWithReason(NegativeTokens) failed: \
    ///      no excluded item had reason NegativeTokens. \
    ///      Excluded had 1 items with reasons: [BudgetExceeded].",
    /// );
    /// ```
    fn exclude_item_with_reason(reason: ExclusionReason);

    /// Asserts that an excluded entry satisfies the predicate and has a reason of the given variant.
    ///
    /// ```
    /// # use cupel::*;
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new().over_budget("A long story", 60, 0.3, 35).build();
    /// let story = |entry: &ExcludedItem| entry.item.content() == "A long story";
    /// let any_budget = ExclusionReason::BudgetExceeded { item_tokens: 0, available_tokens: 0 };
    /// report.should().exclude_item_matching_with_reason(story, any_budget);
    ///
    /// let negative = ExclusionReason::NegativeTokens { tokens: 0 };
    /// let error = report.check().exclude_item_matching_with_reason(story, negative).unwrap_err();
    /// assert_eq!(
    ///     error.message(),
    ///     "ExcludeItemMatchingWithReason(reason=NegativeTokens) failed: \
    ///      predicate matched 1 excluded item(s) but none had reason NegativeTokens. \
    ///      Matched items had reasons: [BudgetExceeded].",
    /// );
    /// ```
    fn exclude_item_matching_with_reason(
        predicate: impl Fn(&ExcludedItem) -> bool,
        reason: ExclusionReason
    );

    /// Asserts that an excluded entry satisfies the predicate and is `BudgetExceeded` with these numbers.
    ///
    /// ```
    /// # use cupel::*;
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new().over_budget("A long story", 60, 0.3, 35).build();
    /// report.should().exclude_item_with_budget_details(|_| true, 60, 35);
    ///
    /// let error = report.check().exclude_item_with_budget_details(|_| true, 60, 40).unwrap_err();
    /// assert_eq!(
    ///     error.message(),
    ///     "ExcludeItemWithBudgetDetails failed: \
    ///      expected BudgetExceeded with item_tokens=60, available_tokens=40, \
    ///      but found item_tokens=60, available_tokens=35.",
    /// );
    /// ```
    fn exclude_item_with_budget_details(
        predicate: impl Fn(&ExcludedItem) -> bool,
        expected_item_tokens: i64,
        expected_available_tokens: i64
    );

    /// Asserts that no excluded item has the kind.
    ///
    /// ```
    /// # use cupel::*;
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new().over_budget("A long story", 60, 0.3, 35).build();
    /// report.should().have_no_exclusions_for_kind(ContextKind::system_prompt());
    ///
    /// let error = report.check().have_no_exclusions_for_kind(ContextKind::message()).unwrap_err();
    /// assert_eq!(
    ///     error.message(),
    ///     "HaveNoExclusionsForKind(Message) failed: found 1 excluded item(s) with Kind=Message. \
    ///      First: score=0.3000, reason=BudgetExceeded.",
    /// );
    /// ```
    fn have_no_exclusions_for_kind(kind: ContextKind);

    /// Asserts that at least `n` items are excluded.
    ///
    /// ```
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new().over_budget("A long story", 60, 0.3, 35).build();
    /// report.should().have_at_least_n_exclusions(1);
    /// assert_eq!(
    ///     report.check().have_at_least_n_exclusions(2).unwrap_err().message(),
    ///     "HaveAtLeastNExclusions(2) failed: \
    ///      expected at least 2 excluded items, but Excluded had 1.",
    /// );
    /// ```
    fn have_at_least_n_exclusions(n: usize);

    /// Asserts that no excluded item has a higher score than the one before it.
    ///
    /// NaN comes after every number. Every run sorts its report like this, so only a report from
    /// another source can fail.
    ///
    /// ```
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new()
    ///     .over_budget("low", 60, 0.25, 35)
    ///     .over_budget("high", 60, 0.75, 35);
    /// report.clone().build().should().excluded_items_are_sorted_by_score_descending();
    ///
    /// let report = report.build_unsorted();
    /// assert_eq!(
    ///     report.check().excluded_items_are_sorted_by_score_descending().unwrap_err().message(),
    ///     "ExcludedItemsAreSortedByScoreDescending failed: \
    ///      item at index 1 (score=0.750000) is higher than item at index 0 (score=0.250000). \
    ///      Expected non-increasing scores.",
    /// );
    /// ```
    fn excluded_items_are_sorted_by_score_descending();

    /// Asserts that the included tokens divided by `budget.max_tokens()` are at least `threshold`.
    ///
    /// With `max_tokens` of zero the share is 0 if no token is included and infinite otherwise.
    ///
    /// ```
    /// # use cupel::*;
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new().included("a", 30, 0.9).included("b", 20, 0.8).build();
    /// let budget = ContextBudget::with_target(100, 60)?;
    /// report.should().have_budget_utilization_above(0.5, &budget);
    /// assert_eq!(
    ///     report.check().have_budget_utilization_above(0.75, &budget).unwrap_err().message(),
    ///     "HaveBudgetUtilizationAbove(0.75) failed: computed utilization was 0.500000 \
    ///      (includedTokens=50, budget.MaxTokens=100).",
    /// );
    /// # Ok::<(), CupelError>(())
    /// ```
    fn have_budget_utilization_above(threshold: f64, budget: &ContextBudget);

    /// Asserts that at least `n` distinct kinds are included.
    ///
    /// ```
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new().included("a", 3, 0.9).included("b", 2, 0.8).build();
    /// report.should().have_kind_coverage_count(1);
    /// assert_eq!(
    ///     report.check().have_kind_coverage_count(2).unwrap_err().message(),
    ///     "HaveKindCoverageCount(2) failed: \
    ///      expected at least 2 distinct ContextKind values in Included, but found 1: [Message].",
    /// );
    /// ```
    fn have_kind_coverage_count(n: usize);

    /// Asserts that the first or the last included entry satisfies the predicate.
    ///
    /// The order depends on the placer: a [`UShapedPlacer`](cupel::UShapedPlacer) puts the highest
    /// score first and the second highest last.
    ///
    /// ```
    /// # use cupel::*;
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new()
    ///     .included("a", 3, 0.9)
    ///     .included("b", 2, 0.7)
    ///     .included("c", 2, 0.8)
    ///     .build();
    /// report.should().place_item_at_edge(|entry| entry.item.content() == "c");
    ///
    /// let error = report.check().place_item_at_edge(|entry| entry.score == 0.7).unwrap_err();
    /// assert_eq!(
    ///     error.message(),
    ///     "PlaceItemAtEdge failed: item matching predicate was at index 1 (not at edge). \
    ///      Edge positions: 0 and 2. Included had 3 items.",
    /// );
    /// ```
    fn place_item_at_edge(predicate: impl Fn(&IncludedItem) -> bool);

    /// Asserts that the `n` outermost positions hold scores no lower than the `n`-th highest.
    ///
    /// The positions are taken from both ends inward: first, last, second, second to last. Items
    /// of equal score are interchangeable. Fails if `n` exceeds the number of included items.
    ///
    /// The order depends on the placer; with a [`UShapedPlacer`](cupel::UShapedPlacer) the
    /// assertion passes for every `n` up to the number of items.
    ///
    /// ```
    /// # use cupel::*;
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new()
    ///     .included("a", 3, 0.9)
    ///     .included("b", 2, 0.8)
    ///     .included("c", 2, 0.7)
    ///     .build();
    /// report.should().place_top_n_scored_at_edges(1);
    /// assert_eq!(
    ///     report.check().place_top_n_scored_at_edges(2).unwrap_err().message(),
    ///     "PlaceTopNScoredAtEdges(2) failed: \
    ///      1 of the top-2 scored items were not at expected edge positions. \
    ///      Top-2 items (by score): [(kind=Message, score=0.900000, idx=0), \
    ///      (kind=Message, score=0.800000, idx=1)]. Expected edge positions: [0, 2].",
    /// );
    /// ```
    fn place_top_n_scored_at_edges(n: usize);
}

// Beyond the specification.
panicking! {
    /// Asserts that exactly `n` items are included.
    ///
    /// ```
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new().included("hello", 2, 0.5).build();
    /// report.should().include_exactly_n_items(1);
    /// assert_eq!(
    ///     report.check().include_exactly_n_items(2).unwrap_err().message(),
    ///     "IncludeExactlyNItems(2) failed: expected 2 items in Included, but found 1.",
    /// );
    /// ```
    fn include_exactly_n_items(n: usize);

    /// Asserts that an included item has the reason.
    ///
    /// ```
    /// # use cupel::*;
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new().pinned("Be brief.", 3).build();
    /// report.should().include_item_with_reason(InclusionReason::Pinned);
    /// assert_eq!(
    ///     report.check().include_item_with_reason(InclusionReason::Scored).unwrap_err().message(),
    ///     "IncludeItemWithReason(Scored) failed: no included item had reason Scored. \
    ///      Included had 1 items with reasons: [Pinned].",
    /// );
    /// ```
    fn include_item_with_reason(reason: InclusionReason);

    /// Asserts that an excluded entry satisfies the predicate, which sees item, score and reason.
    ///
    /// The message ends with the first five entries.
    ///
    /// ```
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new().over_budget("A long story", 60, 0.3, 35).build();
    /// report.should().exclude_item_matching(|entry| entry.item.content() == "A long story");
    ///
    /// let error = report.check().exclude_item_matching(|entry| entry.score > 0.3).unwrap_err();
    /// assert_eq!(
    ///     error.message(),
    ///     "ExcludeItemMatching failed: no item in Excluded matched the predicate. \
    ///      Excluded had 1 items. \
    ///      Excluded began with: [(kind=Message, score=0.300000, reason=BudgetExceeded)].",
    /// );
    /// ```
    fn exclude_item_matching(predicate: impl Fn(&ExcludedItem) -> bool);

    /// Asserts that an excluded item has a reason with this [`name`](ExclusionReason::name).
    ///
    /// ```
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new().over_budget("A long story", 60, 0.3, 35).build();
    /// report.should().exclude_item_with_reason_named("BudgetExceeded");
    /// assert_eq!(
    ///     report.check().exclude_item_with_reason_named("Filtered").unwrap_err().message(),
    ///     "ExcludeItemWithReasonNamed(Filtered) failed: no excluded item had reason Filtered. \
    ///      Excluded had 1 items with reasons: [BudgetExceeded].",
    /// );
    /// ```
    fn exclude_item_with_reason_named(name: &str);

    /// Asserts that exactly `n` count requirements were not met.
    ///
    /// ```
    /// # use cupel_testing::*;
    /// # use cupel_testing::fixture::ReportBuilder;
    /// let report = ReportBuilder::new().shortfall("ToolOutput", 3, 1).build();
    /// report.should().have_exactly_n_shortfalls(1);
    /// assert_eq!(
    ///     report.check().have_exactly_n_shortfalls(0).unwrap_err().message(),
    ///     "HaveExactlyNShortfalls(0) failed: expected 0 count requirement shortfalls, \
    ///      but found 1: [(kind=ToolOutput, 1 of 3)].",
    /// );
    /// ```
    fn have_exactly_n_shortfalls(n: usize);
}

/// The names of `cupel-testing` 1.2 where they differ from the specification's.
impl SelectionReportAssertionChain<'_> {
    /// Calls [`include_exactly_n_items_with_kind`](Self::include_exactly_n_items_with_kind).
    #[deprecated(note = "use `include_exactly_n_items_with_kind`")]
    #[track_caller]
    pub fn include_exact_n_items_with_kind(&mut self, kind: ContextKind, n: usize) -> &mut Self {
        self.include_exactly_n_items_with_kind(kind, n)
    }

    /// Calls [`exclude_item_with_budget_details`](Self::exclude_item_with_budget_details).
    #[deprecated(note = "use `exclude_item_with_budget_details`")]
    #[track_caller]
    pub fn have_excluded_item_with_budget_details(
        &mut self,
        predicate: impl Fn(&ExcludedItem) -> bool,
        expected_item_tokens: i64,
        expected_available_tokens: i64,
    ) -> &mut Self {
        self.exclude_item_with_budget_details(
            predicate,
            expected_item_tokens,
            expected_available_tokens,
        )
    }
}
