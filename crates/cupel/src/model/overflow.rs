//! [`OverflowStrategy`].

/// What a run does when pinned and sliced items together exceed the target.
///
/// The limit is [`ContextBudget::window_limit`](crate::ContextBudget::window_limit): the smaller of
/// `target_tokens` and `max_tokens - output_reserve`. Reaching it exactly is not an overflow (ENUM-16).
///
/// ```
/// use cupel::OverflowStrategy;
///
/// assert_eq!(OverflowStrategy::default(), OverflowStrategy::Throw);
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum OverflowStrategy {
    /// Fails with [`CupelError::Overflow`](crate::CupelError::Overflow).
    #[default]
    Throw,
    /// Keeps the items that still fit, best first. Pinned items always stay.
    Truncate,
    /// Keeps everything and calls the overflow observer.
    Proceed,
}
