//! Metrics of a report, simulation of other budgets and policies, and explanations.
//!
//! | question | answered by |
//! |---|---|
//! | How much of the budget is used? How diverse is the window? | [`budget_utilization`], [`kind_diversity`], [`timestamp_coverage`], [`quota_utilization`], also as methods of [`SelectionReport`](crate::SelectionReport) |
//! | Which items does a smaller budget lose? | [`Pipeline::get_marginal_items`](crate::Pipeline::get_marginal_items) |
//! | At which budgets is an item included? | [`Pipeline::sweep`](crate::Pipeline::sweep); [`Pipeline::find_min_budget_for`](crate::Pipeline::find_min_budget_for) by bisection |
//! | On which items do policies disagree? | [`policy_sensitivity`], [`policy_sensitivity_from_pipelines`] |
//! | Why is an item included or excluded? | [`Pipeline::explain`](crate::Pipeline::explain), [`Pipeline::decide`](crate::Pipeline::decide) for all items |

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
pub use sweep::{BudgetSweep, ItemIntervals, SweepProgress, SweepStep, ViewInterval};
pub use utilization::{
    KindQuotaUtilization, budget_utilization, kind_diversity, quota_utilization, timestamp_coverage,
};
