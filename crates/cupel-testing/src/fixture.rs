//! Builds reports, items and scored items for tests.
//!
//! Every function panics at the caller's line if the content is empty.

use cupel::{
    ContextItem, ContextItemBuilder, ContextKind, CountRequirementShortfall, ExcludedItem,
    ExclusionReason, IncludedItem, InclusionReason, ScoredItem, SelectionReport,
};

/// Returns an item of kind `Message`.
///
/// ```
/// let item = cupel_testing::fixture::item("hello", 2);
/// assert_eq!((item.content(), item.tokens()), ("hello", 2));
/// ```
///
/// # Panics
///
/// Panics if the content is empty.
#[track_caller]
pub fn item(content: impl Into<String>, tokens: i64) -> ContextItem {
    build(ContextItem::builder(content, tokens))
}

/// Returns an item of kind `Message` with a score.
///
/// ```
/// let scored = cupel_testing::fixture::scored("hello", 2, 0.5);
/// assert_eq!((scored.item.content(), scored.score), ("hello", 0.5));
/// ```
///
/// # Panics
///
/// Panics if the content is empty.
#[track_caller]
pub fn scored(content: impl Into<String>, tokens: i64, score: f64) -> ScoredItem {
    let item = item(content, tokens);
    ScoredItem { item, score }
}

/// Builds a [`SelectionReport`] entry by entry.
///
/// The kind defaults to `Message`; [`kind`](Self::kind) changes that of the last entry. Included
/// entries keep the given order. Excluded entries are sorted by score, as in every report;
/// [`build_unsorted`](Self::build_unsorted) keeps their order.
///
/// ```
/// use cupel::{ContextKind, ExclusionReason};
/// use cupel_testing::fixture::ReportBuilder;
///
/// let report = ReportBuilder::new()
///     .pinned("Be brief.", 3).kind(ContextKind::system_prompt())
///     .included("Where are my keys?", 5, 0.9)
///     .excluded("broken", -1, 0.0, ExclusionReason::NegativeTokens { tokens: -1 })
///     .over_budget("A long story", 60, 0.3, 35)
///     .build();
/// assert_eq!(report.included[0].item.kind(), &ContextKind::system_prompt());
/// assert_eq!(report.excluded[0].item.content(), "A long story");
/// assert_eq!(report.total_candidates, 4);
/// assert_eq!(report.total_tokens_considered, 67);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReportBuilder {
    included: Vec<IncludedItem>,
    excluded: Vec<ExcludedItem>,
    shortfalls: Vec<CountRequirementShortfall>,
    last: Option<List>,
}

#[derive(Debug, Clone, Copy)]
enum List {
    Included,
    Excluded,
}

impl ReportBuilder {
    /// Creates a builder without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an included item. The reason is `ZeroToken` for 0 tokens, otherwise `Scored`.
    ///
    /// # Panics
    ///
    /// Panics if the content is empty.
    #[track_caller]
    pub fn included(self, content: impl Into<String>, tokens: i64, score: f64) -> Self {
        let reason = match tokens {
            0 => InclusionReason::ZeroToken,
            _ => InclusionReason::Scored,
        };
        self.push_included(IncludedItem::new(item(content, tokens), score, reason))
    }

    /// Adds a pinned item with the score 1.0.
    ///
    /// # Panics
    ///
    /// Panics if the content is empty.
    #[track_caller]
    pub fn pinned(self, content: impl Into<String>, tokens: i64) -> Self {
        let item = build(ContextItem::builder(content, tokens).pinned(true));
        self.push_included(IncludedItem::new(item, 1.0, InclusionReason::Pinned))
    }

    /// Adds an excluded item.
    ///
    /// # Panics
    ///
    /// Panics if the content is empty.
    #[track_caller]
    pub fn excluded(
        self,
        content: impl Into<String>,
        tokens: i64,
        score: f64,
        reason: ExclusionReason,
    ) -> Self {
        self.push_excluded(ExcludedItem::new(item(content, tokens), score, reason))
    }

    /// Adds an excluded item with the reason `BudgetExceeded`.
    ///
    /// # Panics
    ///
    /// Panics if the content is empty.
    #[track_caller]
    pub fn over_budget(
        self,
        content: impl Into<String>,
        tokens: i64,
        score: f64,
        available_tokens: i64,
    ) -> Self {
        let reason = ExclusionReason::BudgetExceeded {
            item_tokens: tokens,
            available_tokens,
        };
        self.excluded(content, tokens, score, reason)
    }

    /// Adds an included entry.
    pub fn push_included(mut self, entry: IncludedItem) -> Self {
        self.included.push(entry);
        self.last = Some(List::Included);
        self
    }

    /// Adds an excluded entry.
    pub fn push_excluded(mut self, entry: ExcludedItem) -> Self {
        self.excluded.push(entry);
        self.last = Some(List::Excluded);
        self
    }

    /// Sets the kind of the entry added last.
    ///
    /// # Panics
    ///
    /// Panics if there is no entry.
    #[track_caller]
    pub fn kind(mut self, kind: ContextKind) -> Self {
        let item = match self.last {
            Some(List::Included) => self.included.last_mut().map(|entry| &mut entry.item),
            Some(List::Excluded) => self.excluded.last_mut().map(|entry| &mut entry.item),
            None => None,
        };
        let item = item.expect("call `kind` after adding an entry");
        *item = build(item.to_builder().kind(kind));
        self
    }

    /// Adds a count requirement that was not met.
    pub fn shortfall(mut self, kind: impl Into<String>, required: usize, satisfied: usize) -> Self {
        let shortfall = CountRequirementShortfall::new(kind, required, satisfied);
        self.shortfalls.push(shortfall);
        self
    }

    /// Builds the report with its excluded entries sorted by score.
    pub fn build(self) -> SelectionReport {
        SelectionReport::new(Vec::new(), self.included, self.excluded, self.shortfalls)
    }

    /// Builds the report with its excluded entries in the given order. No run returns such a report.
    ///
    /// ```
    /// use cupel_testing::fixture::ReportBuilder;
    ///
    /// let report = ReportBuilder::new()
    ///     .over_budget("low", 60, 0.25, 35)
    ///     .over_budget("high", 60, 0.75, 35);
    /// assert_eq!(report.clone().build().excluded[0].item.content(), "high");
    /// assert_eq!(report.build_unsorted().excluded[0].item.content(), "low");
    /// ```
    pub fn build_unsorted(self) -> SelectionReport {
        let excluded = self.excluded.clone();
        let mut report = self.build();
        report.excluded = excluded;
        report
    }
}

#[track_caller]
fn build(item: ContextItemBuilder) -> ContextItem {
    match item.build() {
        Ok(item) => item,
        Err(error) => panic!("{error}"),
    }
}
