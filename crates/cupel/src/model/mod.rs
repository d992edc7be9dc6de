//! The data model: items, kinds and sources, budgets, scored items.
//!
//! Every value is validated when it is built and immutable afterwards.

mod budget;
mod item;
mod label;
pub(crate) mod marks;
pub(crate) mod number;
mod overflow;
mod query;
mod scored;
mod tag;
mod tokens;
mod view;

pub use budget::{ContextBudget, ContextBudgetBuilder};
pub use item::{ContextItem, ContextItemBuilder};
pub use label::{ContextKind, ContextSource, ParseContextKindError};
pub use marks::{Marks, Retention};
pub use overflow::OverflowStrategy;
pub use query::Query;
pub use scored::{ScoredItem, ScoredRef};
pub use tokens::total_tokens;
pub use view::ContextView;

pub(crate) use budget::floor_tokens;
pub(crate) use label::KnownKind;
pub(crate) use tokens::saturate;
