//! [`LawViolation`]: the broken law, the input and the observed behavior.

use std::error::Error;
use std::fmt;

use cupel::StrategyRole;

/// A rule of a strategy's contract.
///
/// ```
/// use cupel_testing::laws::Law;
///
/// let law = Law::WithinTarget.to_string();
/// assert_eq!(law, "WithinTarget (the kept tokens are within the target)");
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Law {
    /// The batch or positional method returns a result, not an error.
    Answers,
    /// The same input gives the same answer.
    Repeatable,
    /// `score_all` returns one score for every item.
    OneScorePerItem,
    /// `score_all` equals `score` of every item, bit by bit.
    BatchEqualsSingle,
    /// Every kept item was offered: the same handle, not an equal item.
    Subset,
    /// No item is kept more often than it was offered.
    NoRepeats,
    /// The kept tokens are within the target. A count quota slicer may exceed it.
    WithinTarget,
    /// An empty list or a target of zero gives an empty list.
    NothingFromNothing,
    /// `select` keeps the items that `slice` returns, or returns the same error.
    SelectEqualsSlice,
    /// Every received item is placed exactly once, and no other item.
    Permutation,
    /// `arrange` gives the order that `place` gives.
    ArrangeEqualsPlace,
    /// `rule` gives the order that `arrange` gives, for the list and for its subsets.
    RuleEqualsArrange,
}

impl Law {
    fn rule(self) -> &'static str {
        match self {
            Self::Answers => "it returns a result, not an error",
            Self::Repeatable => "the same input gives the same answer",
            Self::OneScorePerItem => "`score_all` returns one score for every item",
            Self::BatchEqualsSingle => "`score_all` equals `score` of every item",
            Self::Subset => "every kept item was offered",
            Self::NoRepeats => "no item is kept more often than it was offered",
            Self::WithinTarget => "the kept tokens are within the target",
            Self::NothingFromNothing => "an empty list or a target of zero gives an empty list",
            Self::SelectEqualsSlice => "`select` keeps the items that `slice` returns",
            Self::Permutation => "every received item is placed exactly once",
            Self::ArrangeEqualsPlace => "`arrange` gives the order that `place` gives",
            Self::RuleEqualsArrange => {
                "`rule` gives the order that `arrange` gives, for the list and for its subsets"
            }
        }
    }
}

/// Writes the variant's name and its rule.
impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?} ({})", self.rule())
    }
}

/// A law that a strategy broke.
///
/// ```
/// use cupel::{ContextItem, Placer, ScoredItem};
/// use cupel_testing::fixture::scored;
/// use cupel_testing::laws::{Law, check_placer};
///
/// struct OnlyFirst;
///
/// impl Placer for OnlyFirst {
///     fn place(&self, items: &[ScoredItem]) -> Vec<ContextItem> {
///         items.iter().take(1).map(|scored| scored.item.clone()).collect()
///     }
/// }
///
/// let items = [scored("a", 10, 0.9), scored("b", 20, 0.8)];
/// let violation = check_placer(&OnlyFirst, &items).unwrap_err();
/// assert_eq!(violation.law(), Law::Permutation);
/// assert_eq!(
///     violation.to_string(),
///     "placer breaks Permutation (every received item is placed exactly once): \
///      `place` returned 1 of 2 items; \
///      input: 2 items: \"a\" (10 tokens, score 0.9), \"b\" (20 tokens, score 0.8)",
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LawViolation {
    strategy: StrategyRole,
    law: Law,
    finding: String,
    input: String,
}

impl LawViolation {
    pub(super) fn new(strategy: StrategyRole, law: Law, finding: String, input: String) -> Self {
        Self {
            strategy,
            law,
            finding,
            input,
        }
    }

    /// Adds a name before the input.
    pub(super) fn on(mut self, case: &str) -> Self {
        self.input = format!("{case}, {}", self.input);
        self
    }

    /// Returns the strategy's role in a pipeline.
    pub fn strategy(&self) -> StrategyRole {
        self.strategy
    }

    /// Returns the broken law.
    pub fn law(&self) -> Law {
        self.law
    }

    /// Returns the observed behavior.
    pub fn finding(&self) -> &str {
        &self.finding
    }

    /// Returns the input that shows it.
    pub fn input(&self) -> &str {
        &self.input
    }
}

impl fmt::Display for LawViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            strategy,
            law,
            finding,
            input,
        } = self;
        write!(f, "{strategy} breaks {law}: {finding}; input: {input}")
    }
}

impl Error for LawViolation {}
