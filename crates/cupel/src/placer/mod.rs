//! Placers: the order of the window.
//!
//! | placer | order |
//! |---|---|
//! | [`ChronologicalPlacer`] | oldest first, items without a timestamp last |
//! | [`UShapedPlacer`] | best scores at both ends, worst in the middle |
//!
//! The specification defines both.

mod chronological;
mod rule;
mod u_shaped;

use std::fmt;
use std::sync::Arc;

pub use chronological::ChronologicalPlacer;
pub use rule::{PlacementRule, WindowEnd};
pub use u_shaped::UShapedPlacer;

#[cfg(feature = "serde")]
use crate::config::{ConfigError, PlacerConfig};
use crate::error::StrategyRole;
use crate::slicer::match_handles;
use crate::type_name::type_name;
use crate::{ContextItem, CupelError, ScoredItem, ScoredRef};

/// Orders the selected items.
///
/// Only [`place`](Self::place) is required. It returns exactly the items it received, in any order
/// (PLACER-1), and the same order for the same input (PLACER-2). A run ends with
/// [`CupelError::Contract`] if its placer breaks the first rule.
///
/// ```
/// use cupel::{ContextItem, Placer, ScoredItem};
///
/// /// Longest first.
/// struct ByLength;
///
/// impl Placer for ByLength {
///     fn place(&self, items: &[ScoredItem]) -> Vec<ContextItem> {
///         let mut placed: Vec<_> = items.iter().map(|scored| scored.item.clone()).collect();
///         placed.sort_by_key(|item| std::cmp::Reverse(item.content().len()));
///         placed
///     }
/// }
///
/// let items = ["a", "abc", "ab"].map(|content| ScoredItem {
///     item: ContextItem::builder(content, 1).build().unwrap(),
///     score: 0.5,
/// });
/// let placed = ByLength.place(&items);
/// assert_eq!(placed[0].content(), "abc");
/// ```
pub trait Placer: Send + Sync {
    /// Returns the items in their final order. In `items`, pinned items come first with score 1.0, and
    /// the others follow by score.
    fn place(&self, items: &[ScoredItem]) -> Vec<ContextItem>;

    /// Returns the order as positions in `items`. The pipeline calls this method.
    ///
    /// Defaults to the order of the [`rule`](Self::rule). Without one, calls [`place`](Self::place) and
    /// finds the items by their handles.
    ///
    /// # Errors
    ///
    /// [`CupelError::Contract`] if `place` returned an item it did not receive, or one twice.
    fn arrange(&self, items: &[ScoredRef<'_>]) -> Result<Vec<usize>, CupelError> {
        if let Some(rule) = self.rule(items) {
            return Ok(rule.into_order());
        }
        let owned: Vec<ScoredItem> = items.iter().map(|scored| scored.to_scored_item()).collect();
        match_handles(items, &self.place(&owned), StrategyRole::Placer)
    }

    /// Returns one rule that orders `items` and every subset of them as [`arrange`](Self::arrange) does.
    ///
    /// A page or a chart that shows many budgets needs it: one call gives the order of every window,
    /// see [`Decisions::placement_rule`](crate::Decisions::placement_rule). Defaults to `None`, for an
    /// order that does not follow such a rule.
    fn rule(&self, _items: &[ScoredRef<'_>]) -> Option<PlacementRule> {
        None
    }

    /// Returns the placer's name in debug output. Defaults to the name of its type.
    fn placer_name(&self) -> &str {
        type_name::<Self>()
    }

    /// Returns this placer as data, for [`PolicyConfig::of`](crate::config::PolicyConfig::of).
    ///
    /// # Errors
    ///
    /// Defaults to [`ConfigError::not_data`], for a placer that no document can name.
    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<PlacerConfig, ConfigError> {
        Err(ConfigError::not_data(std::any::type_name::<Self>()))
    }
}

/// Prints the placer's name.
impl fmt::Debug for dyn Placer + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.placer_name())
    }
}

/// Implements [`Placer`] for pointers to placers.
macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<T: Placer + ?Sized> Placer for $pointer {
            fn place(&self, items: &[ScoredItem]) -> Vec<ContextItem> {
                (**self).place(items)
            }

            fn arrange(&self, items: &[ScoredRef<'_>]) -> Result<Vec<usize>, CupelError> {
                (**self).arrange(items)
            }

            fn rule(&self, items: &[ScoredRef<'_>]) -> Option<PlacementRule> {
                (**self).rule(items)
            }

            fn placer_name(&self) -> &str {
                (**self).placer_name()
            }

            #[cfg(feature = "serde")]
            fn to_config(&self) -> Result<PlacerConfig, ConfigError> {
                (**self).to_config()
            }
        }
    )*};
}

forward!(Box<T>, Arc<T>, &T);

/// Returns the items in the order of a rule.
fn placed(
    items: &[ScoredItem],
    rule: impl FnOnce(&[ScoredRef<'_>]) -> PlacementRule,
) -> Vec<ContextItem> {
    let refs = ScoredRef::from_list(items);
    let positions = rule(&refs).into_order().into_iter();
    positions
        .map(|position| items[position].item.clone())
        .collect()
}
