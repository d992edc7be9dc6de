//! [`OverflowStrategy`].

/// What a run does when pinned and sliced items together exceed the target.
///
/// The limit is `target_tokens`, or `max_tokens - output_reserve` where that is
/// less; reaching it exactly is no overflow (ENUM-16).
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
    /// Fail with [`CupelError::Overflow`](crate::CupelError::Overflow).
    #[default]
    Throw,
    /// Keep what still fits, best first; pinned items always stay.
    Truncate,
    /// Keep everything and tell the observer.
    Proceed,
}
