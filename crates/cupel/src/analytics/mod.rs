//! Questions about runs: how full is the window, what would another budget or policy change, why
//! is this item out?
//!
//! | question | answered by |
//! |---|---|
//! | how much of the budget is used, how diverse is the window? | [`budget_utilization`], [`kind_diversity`], [`timestamp_coverage`], [`quota_utilization`], also as methods of [`SelectionReport`](crate::SelectionReport) |
//! | what would a smaller budget lose? | [`Pipeline::marginal_items`](crate::Pipeline::marginal_items) |
//! | at what budget is an item in? | [`Pipeline::min_budget_for`](crate::Pipeline::min_budget_for) by bisection, [`Pipeline::sweep`](crate::Pipeline::sweep) for all budgets |
//! | what swings between policies? | [`policy_sensitivity`], [`policy_sensitivity_from_pipelines`] |
//! | why is this item in or out? | [`Pipeline::explain`](crate::Pipeline::explain), [`Pipeline::decide`](crate::Pipeline::decide) for all items |

mod explanation;
mod sensitivity;
mod simulation;
mod sweep;
mod utilization;

pub use explanation::{Explanation, Neighbor};
pub use sensitivity::{
    ItemStatus, PolicySensitivityDiffEntry, PolicySensitivityReport, policy_sensitivity,
    policy_sensitivity_from_pipelines,
};
pub use sweep::{BudgetSweep, ItemIntervals, SweepStep};
pub use utilization::{
    KindQuotaUtilization, budget_utilization, kind_diversity, quota_utilization, timestamp_coverage,
};
