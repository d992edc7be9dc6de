//! Questions about runs: how full is the window, what would another budget or policy change?

mod sensitivity;
mod simulation;
mod utilization;

pub use sensitivity::{
    ItemStatus, PolicySensitivityDiffEntry, PolicySensitivityReport, policy_sensitivity,
    policy_sensitivity_from_pipelines,
};
pub use utilization::{
    KindQuotaUtilization, budget_utilization, kind_diversity, quota_utilization, timestamp_coverage,
};
