//! Reports, items and scored items in a line or two, for tests.
//!
//! Everything here panics at the caller's line if it is given an empty text.

use cupel::{
    ContextItem, ContextItemBuilder, ContextKind, CountRequirementShortfall, ExcludedItem,
    ExclusionReason, IncludedItem, InclusionReason, ScoredItem, SelectionReport,
};

/// An item of kind `Message` with a text and a token count.
///
/// ```
/// let item = cupel_testing::fixture::item("hello", 2);
/// assert_eq!((item.content(), item.tokens()), ("hello", 2));
/// ```
///
/// # Panics
///
/// If the text is empty.
#[track_caller]
pub fn item(content: impl Into<String>, tokens: i64) -> ContextItem {
    built(ContextItem::builder(content, tokens))
}

/// An item of kind `Message` with a text, a token count and a score.
///
/// ```
/// let scored = cupel_testing::fixture::scored("hello", 2, 0.5);
/// assert_eq!((scored.item.content(), scored.score), ("hello", 0.5));
/// ```
///
/// # Panics
///
/// If the text is empty.
#[track_caller]
pub fn scored(content: impl Into<String>, tokens: i64, score: f64) -> ScoredItem {
    let item = item(content, tokens);
    ScoredItem { item, score }
}

/// Builds a [`SelectionReport`] entry by entry.
///
/// Items are of kind `Message` unless [`kind`](Self::kind) follows. Included entries stay in the
/// order given; excluded entries are sorted by score, as in every report, unless the report
/// is [built unsorted](Self::build_unsorted).
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
    /// A report of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an included item; the reason is `Scored`, or `ZeroToken` for an item without tokens.
    ///
    /// # Panics
    ///
    /// If the text is empty.
    #[track_caller]
    pub fn included(self, content: impl Into<String>, tokens: i64, score: f64) -> Self {
        let reason = match tokens {
            0 => InclusionReason::ZeroToken,
            _ => InclusionReason::Scored,
        };
        self.push_included(IncludedItem::new(item(content, tokens), score, reason))
    }

    /// Adds an included item that is pinned, with the score 1.0.
    ///
    /// # Panics
    ///
    /// If the text is empty.
    #[track_caller]
    pub fn pinned(self, content: impl Into<String>, tokens: i64) -> Self {
        let item = built(ContextItem::builder(content, tokens).pinned(true));
        self.push_included(IncludedItem::new(item, 1.0, InclusionReason::Pinned))
    }

    /// Adds an excluded item.
    ///
    /// # Panics
    ///
    /// If the text is empty.
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

    /// Adds an excluded item that needed its tokens when so many were available.
    ///
    /// # Panics
    ///
    /// If the text is empty.
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
    /// If there is none.
    #[track_caller]
    pub fn kind(mut self, kind: ContextKind) -> Self {
        let item = match self.last {
            Some(List::Included) => self.included.last_mut().map(|entry| &mut entry.item),
            Some(List::Excluded) => self.excluded.last_mut().map(|entry| &mut entry.item),
            None => None,
        };
        let item = item.expect("`kind` follows the entry it is for");
        *item = built(item.to_builder().kind(kind));
        self
    }

    /// Adds a count requirement that was not met.
    pub fn shortfall(mut self, kind: impl Into<String>, required: usize, satisfied: usize) -> Self {
        let shortfall = CountRequirementShortfall::new(kind, required, satisfied);
        self.shortfalls.push(shortfall);
        self
    }

    /// The report, its excluded entries sorted by score.
    pub fn build(self) -> SelectionReport {
        SelectionReport::new(Vec::new(), self.included, self.excluded, self.shortfalls)
    }

    /// The report with its excluded entries in the order given, as no run would leave them.
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
fn built(item: ContextItemBuilder) -> ContextItem {
    match item.build() {
        Ok(item) => item,
        Err(error) => panic!("{error}"),
    }
}
