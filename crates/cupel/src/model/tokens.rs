//! Saturating token sums.

use super::ContextItem;

/// Returns the sum of the items' token counts, saturated to the range of `i64`.
///
/// ```
/// use cupel::{ContextItem, total_tokens};
///
/// let item = |tokens| ContextItem::builder("a", tokens).build();
/// assert_eq!(total_tokens(&[item(2)?, item(3)?]), 5);
/// assert_eq!(total_tokens(&[item(i64::MAX)?, item(1)?]), i64::MAX);
/// # Ok::<(), cupel::CupelError>(())
/// ```
pub fn total_tokens<'a>(items: impl IntoIterator<Item = &'a ContextItem>) -> i64 {
    let tokens = items.into_iter().map(|item| i128::from(item.tokens()));
    saturate(tokens.sum())
}

/// Saturates an exact token sum to the range of `i64`, as in reports and errors.
pub(crate) fn saturate(tokens: i128) -> i64 {
    i64::try_from(tokens).unwrap_or(if tokens < 0 { i64::MIN } else { i64::MAX })
}
