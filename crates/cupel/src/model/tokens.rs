//! Token sums, which never wrap.

use super::ContextItem;

/// Returns the sum of the items' token counts, saturated at the ends of `i64`.
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
    reported(tokens.sum())
}

/// Saturates an exact token sum, as reports and errors carry it.
pub(crate) fn reported(tokens: i128) -> i64 {
    i64::try_from(tokens).unwrap_or(if tokens < 0 { i64::MIN } else { i64::MAX })
}
