//! Metrics of a report.

use std::collections::HashSet;

use crate::{
    ContextBudget, ContextKind, QuotaConstraint, QuotaConstraintMode, QuotaPolicy, SelectionReport,
};

/// Returns the tokens of the window divided by `max_tokens`.
///
/// If `max_tokens` is zero, returns 0 for a window without tokens and infinity for any other. See the
/// example of [`SelectionReport::budget_utilization`].
pub fn budget_utilization(report: &SelectionReport, budget: &ContextBudget) -> f64 {
    ratio(
        included_tokens(report, |_| true),
        budget.max_tokens() as f64,
    )
}

/// Returns the number of distinct kinds in the window.
pub fn kind_diversity(report: &SelectionReport) -> usize {
    let kinds = report.included.iter().map(|included| included.item.kind());
    kinds.collect::<HashSet<_>>().len()
}

/// Returns the fraction of the window's items that have a timestamp; 0 for an empty window.
pub fn timestamp_coverage(report: &SelectionReport) -> f64 {
    let included = report.included.iter();
    let timestamped = included.filter(|included| included.item.timestamp().is_some());
    ratio(timestamped.count() as f64, report.included.len() as f64)
}

/// The utilization of one kind's quota.
#[derive(Debug, Clone, PartialEq)]
pub struct KindQuotaUtilization {
    /// The kind.
    pub kind: ContextKind,
    /// The unit of the numbers.
    pub mode: QuotaConstraintMode,
    /// The required amount.
    pub require: f64,
    /// The maximum.
    pub cap: f64,
    /// The amount in the window: percent of the target, or number of items.
    pub actual: f64,
    /// `actual / cap`, clamped to `[0, 1]`; 0 if `cap` is 0.
    pub utilization: f64,
}

/// Returns the utilization of a slicer's quotas, one row per constraint, sorted by kind.
///
/// ```
/// use std::sync::Arc;
/// use cupel::*;
///
/// let half = QuotaEntry::new(ContextKind::message(), 0.0, 50.0)?;
/// let slicer = Arc::new(QuotaSlice::new(vec![half], GreedySlice)?);
/// let pipeline = Pipeline::new(RecencyScorer, slicer.clone(), ChronologicalPlacer);
/// let items = [ContextItem::builder("hello", 40).build()?];
/// let budget = ContextBudget::with_target(100, 100)?;
/// let report = pipeline.dry_run(&items, &budget)?;
/// let rows = quota_utilization(&report, &*slicer, &budget);
/// assert_eq!((rows[0].actual, rows[0].utilization), (40.0, 0.8));
/// # Ok::<(), CupelError>(())
/// ```
pub fn quota_utilization(
    report: &SelectionReport,
    policy: &dyn QuotaPolicy,
    budget: &ContextBudget,
) -> Vec<KindQuotaUtilization> {
    let row = |constraint: QuotaConstraint| {
        let of_kind = |kind: &ContextKind| *kind == constraint.kind;
        let actual = match constraint.mode {
            QuotaConstraintMode::Percentage => match budget.target_tokens() {
                0 => 0.0,
                target => included_tokens(report, of_kind) / target as f64 * 100.0,
            },
            QuotaConstraintMode::Count => {
                let included = report.included.iter();
                let matching = included.filter(|included| of_kind(included.item.kind()));
                matching.count() as f64
            }
        };
        let utilization = if constraint.cap > 0.0 {
            (actual / constraint.cap).clamp(0.0, 1.0)
        } else {
            0.0
        };
        KindQuotaUtilization {
            kind: constraint.kind,
            mode: constraint.mode,
            require: constraint.require,
            cap: constraint.cap,
            actual,
            utilization,
        }
    };
    let mut rows: Vec<_> = policy.quota_constraints().into_iter().map(row).collect();
    rows.sort_by(|a, b| a.kind.as_str().cmp(b.kind.as_str()));
    rows
}

impl SelectionReport {
    /// Returns [`budget_utilization`] of this report.
    ///
    /// ```
    /// use cupel::*;
    ///
    /// let pipeline = Pipeline::new(RecencyScorer, GreedySlice, ChronologicalPlacer);
    /// let items = [ContextItem::builder("half", 50).build()?];
    /// let budget = ContextBudget::with_target(100, 80)?;
    /// let report = pipeline.dry_run(&items, &budget)?;
    /// assert_eq!(report.budget_utilization(&budget), 0.5);
    /// assert_eq!(report.target_utilization(&budget), 0.625);
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn budget_utilization(&self, budget: &ContextBudget) -> f64 {
        budget_utilization(self, budget)
    }

    /// Returns the tokens of the window divided by the target.
    pub fn target_utilization(&self, budget: &ContextBudget) -> f64 {
        ratio(
            included_tokens(self, |_| true),
            budget.target_tokens() as f64,
        )
    }

    /// Returns [`kind_diversity`] of this report.
    ///
    /// ```
    /// use cupel::*;
    ///
    /// let pipeline = Pipeline::new(RecencyScorer, GreedySlice, ChronologicalPlacer);
    /// let items = [
    ///     ContextItem::builder("a", 1).build()?,
    ///     ContextItem::builder("b", 1).kind(ContextKind::new("MESSAGE")?).build()?,
    ///     ContextItem::builder("c", 1).kind(ContextKind::memory()).build()?,
    /// ];
    /// let report = pipeline.dry_run(&items, &ContextBudget::with_target(9, 9)?)?;
    /// assert_eq!(report.kind_diversity(), 2);
    /// assert_eq!(report.timestamp_coverage(), 0.0);
    /// # Ok::<(), CupelError>(())
    /// ```
    pub fn kind_diversity(&self) -> usize {
        kind_diversity(self)
    }

    /// Returns [`timestamp_coverage`] of this report.
    pub fn timestamp_coverage(&self) -> f64 {
        timestamp_coverage(self)
    }

    /// Returns [`quota_utilization`] of this report.
    pub fn quota_utilization(
        &self,
        policy: &dyn QuotaPolicy,
        budget: &ContextBudget,
    ) -> Vec<KindQuotaUtilization> {
        quota_utilization(self, policy, budget)
    }
}

fn included_tokens(report: &SelectionReport, wanted: impl Fn(&ContextKind) -> bool) -> f64 {
    let included = report.included.iter();
    let wanted = included.filter(|included| wanted(included.item.kind()));
    wanted
        .map(|included| i128::from(included.item.tokens()))
        .sum::<i128>() as f64
}

/// Returns `part / whole`, and 0 for `0 / 0`.
fn ratio(part: f64, whole: f64) -> f64 {
    if part == 0.0 { 0.0 } else { part / whole }
}
