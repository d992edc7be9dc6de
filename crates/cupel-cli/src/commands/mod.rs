//! The subcommands, a file each.

pub(crate) mod batch;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod conform;
pub(crate) mod count;
pub(crate) mod eval;
pub(crate) mod explain;
pub(crate) mod fit;
pub(crate) mod man;
pub(crate) mod marginal;
pub(crate) mod min_budget;
pub(crate) mod models;
pub(crate) mod policy;
pub(crate) mod search;
pub(crate) mod select;
pub(crate) mod sweep;
