//! [`CupelError`]: the errors of constructors and runs.

use std::fmt;

use crate::model::ParseContextKindError;

/// The error of building an item, a budget, a strategy or a pipeline, or of a run.
///
/// Constructors validate their arguments. A run fails only for conditions that depend on the
/// candidates.
///
/// ```
/// use cupel::{ContextItemBuilder, CupelError};
///
/// let error = ContextItemBuilder::new("", 3).build().unwrap_err();
/// assert_eq!(error, CupelError::EmptyContent);
/// assert_eq!(error.code(), "EmptyContent");
/// assert_eq!(error.to_string(), "content must be non-empty");
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CupelError {
    /// The content of an item is empty (ITEM-1).
    #[error("content must be non-empty")]
    EmptyContent,
    /// A kind is empty or whitespace (ENUM-5).
    #[error("kind must be a non-empty, non-whitespace-only string")]
    EmptyKind,
    /// A source is empty or whitespace (ENUM-10).
    #[error("source must be a non-empty, non-whitespace-only string")]
    EmptySource,
    /// A view of an item breaks one of the rules of
    /// [`ContextItemBuilder::build`](crate::ContextItemBuilder::build).
    #[error("invalid view: {0}")]
    InvalidView(String),
    /// A budget breaks one of its rules (BUDGET-1 to BUDGET-7).
    #[error("invalid budget: {0}")]
    InvalidBudget(String),
    /// The pinned items alone exceed the budget (CLASSIFY-5).
    #[error("pinned tokens ({pinned_tokens}) exceed available budget ({available})")]
    PinnedExceedsBudget {
        /// The tokens of the pinned items.
        pinned_tokens: i64,
        /// The limit: `max_tokens - output_reserve`.
        available: i64,
    },
    /// The items that [`LadderSlice`](crate::LadderSlice) must keep exceed the budget, shortened as far as
    /// its steps allow.
    #[error(
        "mandatory items need {needed_tokens} tokens, {} over the budget of {available}",
        needed_tokens.saturating_sub(*available)
    )]
    MandatoryExceedsBudget {
        /// The tokens of the mandatory items.
        needed_tokens: i64,
        /// The budget of the slicer.
        available: i64,
    },
    /// Pinned and sliced items together exceed the target under
    /// [`OverflowStrategy::Throw`](crate::OverflowStrategy::Throw) (PLACE-4).
    #[error("merged tokens ({merged_tokens}) exceed target tokens ({target_tokens})")]
    Overflow {
        /// The tokens of the merged items.
        merged_tokens: i64,
        /// The limit that they exceed.
        target_tokens: i64,
    },
    /// A pipeline or policy is incomplete, or does not support an analysis.
    #[error("invalid pipeline configuration: {0}")]
    PipelineConfig(String),
    /// The settings of a scorer are invalid, or a custom scorer failed.
    #[error("invalid scorer configuration: {0}")]
    ScorerConfig(String),
    /// The settings of a slicer are invalid, or a count requirement cannot be met under
    /// [`ScarcityBehavior::Throw`](crate::ScarcityBehavior::Throw).
    #[error("invalid slicer configuration: {0}")]
    SlicerConfig(String),
    /// The vector of an item is not a list of finite numbers, or its length differs from that of the query's
    /// or of another item's.
    #[error("invalid vector: {0}")]
    InvalidVector(String),
    /// A scorer needs a query, and neither it nor the policy has one.
    #[error("{scorer} has no query; give the policy one with `Policy::with_query`")]
    MissingQuery {
        /// The scorer.
        scorer: &'static str,
    },
    /// A scorer contains itself. Built-in scorers own their children and never return this error; it is
    /// for custom scorers that share them.
    #[error("cycle detected: scorer appears in its own dependency graph")]
    CycleDetected,
    /// The knapsack table would exceed the limit of the specification (KNAP-18).
    #[error(
        "KnapsackSlice DP table exceeds the 50,000,000-cell limit: candidates={candidates}, capacity={capacity}, cells={cells}"
    )]
    TableTooLarge {
        /// Candidates with a positive token count.
        candidates: usize,
        /// The capacity in buckets.
        capacity: usize,
        /// The cells of the table: `candidates * (capacity + 1)`.
        cells: u64,
    },
    /// The knapsack table would exceed the limit that the caller set.
    #[error(
        "KnapsackSlice DP table exceeds the raised limit of {limit} cells: cells={cells}; raise the limit or the bucket size"
    )]
    TableOverLimit {
        /// The cells of the table.
        cells: u64,
        /// The limit that the caller set. A limit in bytes allows eight cells per byte.
        limit: u64,
    },
    /// [`ChoiceSlice`](crate::ChoiceSlice) would examine more states than its limit.
    #[error(
        "ChoiceSlice exceeds its limit of {limit} states; offer fewer items or views, or raise the limit"
    )]
    TooManyStates {
        /// The limit.
        limit: u64,
    },
    /// A custom scorer, slicer or placer broke its contract (SLICER-1, PLACER-1).
    #[error("{strategy} broke its contract: {violation}")]
    Contract {
        /// The strategy.
        strategy: StrategyRole,
        /// The violation.
        violation: ContractViolation,
    },
}

impl CupelError {
    /// Returns the error for a position without a candidate.
    pub(crate) fn no_candidate(index: usize, candidates: usize) -> Self {
        Self::PipelineConfig(format!(
            "index {index} is out of range: there are {candidates} candidates"
        ))
    }

    /// Returns the variant's name, a stable error code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::EmptyContent => "EmptyContent",
            Self::EmptyKind => "EmptyKind",
            Self::EmptySource => "EmptySource",
            Self::InvalidView(_) => "InvalidView",
            Self::InvalidBudget(_) => "InvalidBudget",
            Self::PinnedExceedsBudget { .. } => "PinnedExceedsBudget",
            Self::MandatoryExceedsBudget { .. } => "MandatoryExceedsBudget",
            Self::Overflow { .. } => "Overflow",
            Self::PipelineConfig(_) => "PipelineConfig",
            Self::ScorerConfig(_) => "ScorerConfig",
            Self::SlicerConfig(_) => "SlicerConfig",
            Self::InvalidVector(_) => "InvalidVector",
            Self::MissingQuery { .. } => "MissingQuery",
            Self::CycleDetected => "CycleDetected",
            Self::TableTooLarge { .. } => "TableTooLarge",
            Self::TableOverLimit { .. } => "TableOverLimit",
            Self::TooManyStates { .. } => "TooManyStates",
            Self::Contract { .. } => "Contract",
        }
    }
}

impl From<ParseContextKindError> for CupelError {
    fn from(_: ParseContextKindError) -> Self {
        Self::EmptyKind
    }
}

/// The role of a strategy in a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StrategyRole {
    /// Scores the items.
    Scorer,
    /// Selects items.
    Slicer,
    /// Orders the window.
    Placer,
}

impl fmt::Display for StrategyRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scorer => "scorer",
            Self::Slicer => "slicer",
            Self::Placer => "placer",
        })
    }
}

/// How a custom strategy broke its contract.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContractViolation {
    /// It returned an item that it did not receive.
    UnknownItem {
        /// The position in its result.
        position: usize,
    },
    /// It returned an item more often than it received it.
    RepeatedItem {
        /// The position of the duplicate in its result.
        position: usize,
    },
    /// It shortened an item that it did not keep, shortened an item twice, or named a view that the
    /// item does not offer.
    UnknownView {
        /// The position among its shortened items.
        position: usize,
    },
    /// It returned fewer or more values than it received items.
    WrongLength {
        /// The number of items it received.
        expected: usize,
        /// The number of values it returned.
        returned: usize,
    },
}

impl fmt::Display for ContractViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownItem { position } => write!(
                f,
                "the item at position {position} of its result was not offered; return the received items themselves (clone the handle)"
            ),
            Self::RepeatedItem { position } => write!(
                f,
                "the item at position {position} of its result was already returned; return every item at most once"
            ),
            Self::UnknownView { position } => write!(
                f,
                "the view at position {position} of its result is not a view of a kept item; shorten kept items only, each once, to one of their views"
            ),
            Self::WrongLength { expected, returned } => {
                write!(
                    f,
                    "it returned {returned} values for {expected} items; return one for every item"
                )
            }
        }
    }
}
