//! [`CupelError`]: everything that can go wrong, at construction or in a run.

use std::fmt;

use crate::model::ParseContextKindError;

/// Why an item, budget, strategy or pipeline could not be built, or a run not finished.
///
/// Constructors refuse nonsense, so a value that exists is valid; what is left
/// for a run are the conditions only the candidates can show.
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
    /// An item was given no content (ITEM-1).
    #[error("content must be non-empty")]
    EmptyContent,
    /// A kind was empty or only white space (ENUM-5).
    #[error("kind must be a non-empty, non-whitespace-only string")]
    EmptyKind,
    /// A source was empty or only white space (ENUM-10).
    #[error("source must be a non-empty, non-whitespace-only string")]
    EmptySource,
    /// A budget broke one of its rules (BUDGET-1 to BUDGET-7).
    #[error("invalid budget: {0}")]
    InvalidBudget(String),
    /// The pinned items alone are larger than the window allows (CLASSIFY-5).
    #[error("pinned tokens ({pinned_tokens}) exceed available budget ({available})")]
    PinnedExceedsBudget {
        /// What the pinned items need.
        pinned_tokens: i64,
        /// What the window allows: `max_tokens` minus `output_reserve`.
        available: i64,
    },
    /// Pinned and sliced items together exceed the target under
    /// [`OverflowStrategy::Throw`](crate::OverflowStrategy::Throw) (PLACE-4).
    #[error("merged tokens ({merged_tokens}) exceed target tokens ({target_tokens})")]
    Overflow {
        /// What the merged items need.
        merged_tokens: i64,
        /// The limit they had to keep.
        target_tokens: i64,
    },
    /// A pipeline or policy is incomplete, or an analysis cannot be made with it.
    #[error("invalid pipeline configuration: {0}")]
    PipelineConfig(String),
    /// A scorer was configured with nonsense, or failed to score.
    #[error("invalid scorer configuration: {0}")]
    ScorerConfig(String),
    /// A slicer was configured with nonsense, or a count requirement could not be met.
    #[error("invalid slicer configuration: {0}")]
    SlicerConfig(String),
    /// A scorer contains itself. Scorers own their children, so the built-in
    /// ones cannot produce it; the variant is there for implementations that share.
    #[error("cycle detected: scorer appears in its own dependency graph")]
    CycleDetected,
    /// The knapsack table would be larger than the specification's guard (KNAP-18).
    #[error(
        "KnapsackSlice DP table exceeds the 50,000,000-cell limit: candidates={candidates}, capacity={capacity}, cells={cells}"
    )]
    TableTooLarge {
        /// Candidates with a positive token count.
        candidates: usize,
        /// The capacity in buckets.
        capacity: usize,
        /// The cells of the table: candidates times (capacity plus one).
        cells: u64,
    },
    /// The knapsack table would be larger than the limit the caller raised it to.
    #[error(
        "KnapsackSlice DP table exceeds the raised limit of {limit} cells: cells={cells}; raise the limit or the bucket size"
    )]
    TableOverLimit {
        /// The cells of the table.
        cells: u64,
        /// The limit set by the caller. A limit in bytes is a limit of eight cells a byte.
        limit: u64,
    },
    /// A custom scorer, slicer or placer broke its contract (SLICER-1, PLACER-1).
    #[error("{strategy} broke its contract: {violation}")]
    Contract {
        /// Which part of the pipeline.
        strategy: StrategyRole,
        /// What it did.
        violation: ContractViolation,
    },
}

impl CupelError {
    /// The variant's name: a stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::EmptyContent => "EmptyContent",
            Self::EmptyKind => "EmptyKind",
            Self::EmptySource => "EmptySource",
            Self::InvalidBudget(_) => "InvalidBudget",
            Self::PinnedExceedsBudget { .. } => "PinnedExceedsBudget",
            Self::Overflow { .. } => "Overflow",
            Self::PipelineConfig(_) => "PipelineConfig",
            Self::ScorerConfig(_) => "ScorerConfig",
            Self::SlicerConfig(_) => "SlicerConfig",
            Self::CycleDetected => "CycleDetected",
            Self::TableTooLarge { .. } => "TableTooLarge",
            Self::TableOverLimit { .. } => "TableOverLimit",
            Self::Contract { .. } => "Contract",
        }
    }
}

impl From<ParseContextKindError> for CupelError {
    fn from(_: ParseContextKindError) -> Self {
        Self::EmptyKind
    }
}

/// The part of a pipeline a custom strategy plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StrategyRole {
    /// Gives every item a score.
    Scorer,
    /// Chooses what stays.
    Slicer,
    /// Chooses the order.
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
    /// It returned an item that was not among those it received.
    UnknownItem {
        /// The position in what it returned.
        position: usize,
    },
    /// It returned an item more often than it received it.
    RepeatedItem {
        /// The position of the repetition in what it returned.
        position: usize,
    },
    /// It returned fewer or more values than it received items.
    WrongLength {
        /// How many were due.
        expected: usize,
        /// How many came.
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
            Self::WrongLength { expected, returned } => {
                write!(
                    f,
                    "it returned {returned} values for {expected} items; return one for every item"
                )
            }
        }
    }
}
