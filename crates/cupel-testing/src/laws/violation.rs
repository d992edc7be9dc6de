//! [`LawViolation`]: which law, on what input, and what was seen.

use std::error::Error;
use std::fmt;

use cupel::StrategyRole;

/// What a strategy has to keep to.
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
    /// `score_all` equals `score` of every item, to the last bit.
    BatchEqualsSingle,
    /// Every kept item is one that was offered: the same handle, not an equal item.
    Subset,
    /// No item is kept more often than it was offered.
    NoRepeats,
    /// The kept tokens are within the target; a slicer of item counts is free to exceed it.
    WithinTarget,
    /// An empty list or a target of zero gives an empty list.
    NothingFromNothing,
    /// `select` keeps the items that `slice` returns, or fails as it does.
    SelectEqualsSlice,
    /// Every placed item is one that was received, and every received item is placed once.
    Permutation,
    /// `arrange` gives the order that `place` gives.
    ArrangeEqualsPlace,
}

impl Law {
    fn rule(self) -> &'static str {
        match self {
            Self::Answers => "it returns a result, not an error",
            Self::Repeatable => "the same input gives the same answer",
            Self::OneScorePerItem => "`score_all` returns one score for every item",
            Self::BatchEqualsSingle => "`score_all` equals `score` of every item",
            Self::Subset => "every kept item is one that was offered",
            Self::NoRepeats => "no item is kept more often than it was offered",
            Self::WithinTarget => "the kept tokens are within the target",
            Self::NothingFromNothing => "an empty list or a target of zero gives an empty list",
            Self::SelectEqualsSlice => "`select` keeps the items that `slice` returns",
            Self::Permutation => "exactly the received items are placed, each once",
            Self::ArrangeEqualsPlace => "`arrange` gives the order that `place` gives",
        }
    }
}

/// The variant's name and what it demands.
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
/// struct OnlyTheBest;
///
/// impl Placer for OnlyTheBest {
///     fn place(&self, items: &[ScoredItem]) -> Vec<ContextItem> {
///         items.iter().take(1).map(|scored| scored.item.clone()).collect()
///     }
/// }
///
/// let items = [scored("a", 10, 0.9), scored("b", 20, 0.8)];
/// let violation = check_placer(&OnlyTheBest, &items).unwrap_err();
/// assert_eq!(violation.law(), Law::Permutation);
/// assert_eq!(
///     violation.to_string(),
///     "placer breaks Permutation (exactly the received items are placed, each once): \
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

    /// The same with a name before the input.
    pub(super) fn on(mut self, case: &str) -> Self {
        self.input = format!("{case}, {}", self.input);
        self
    }

    /// The part of a pipeline the strategy plays.
    pub fn strategy(&self) -> StrategyRole {
        self.strategy
    }

    /// The law.
    pub fn law(&self) -> Law {
        self.law
    }

    /// What was seen.
    pub fn finding(&self) -> &str {
        &self.finding
    }

    /// The input on which it was seen.
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
