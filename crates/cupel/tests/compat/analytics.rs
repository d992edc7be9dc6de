//! `cupel::analytics`: numbers about a report and comparisons of policies.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{TimeZone, Utc};
use cupel::{
    ChronologicalPlacer, ContextItem, ContextItemBuilder, ContextKind, CountQuotaEntry,
    CountQuotaSlice, CupelError, GreedySlice, ItemStatus, KindQuotaUtilization, KindScorer,
    Pipeline, Policy, PolicyBuilder, PolicySensitivityDiffEntry, PolicySensitivityReport,
    QuotaConstraint, QuotaConstraintMode, QuotaEntry, QuotaPolicy, QuotaSlice, ReflexiveScorer,
    ScarcityBehavior, Scorer, SelectionReport, budget_utilization, kind_diversity,
    policy_sensitivity, policy_sensitivity_from_pipelines, quota_utilization, timestamp_coverage,
};

use super::{budget, hinted, item, kind, of_kind, pinned};

/// The report of a run that has room for everything.
fn report(items: &[ContextItem]) -> SelectionReport {
    Pipeline::builder()
        .scorer(Box::new(ReflexiveScorer))
        .slicer(Box::new(GreedySlice))
        .placer(Box::new(ChronologicalPlacer))
        .build()
        .unwrap()
        .dry_run(items, &budget(1000, 1000))
        .unwrap()
}

#[test]
fn utilization_is_the_share_of_the_window() {
    let report = report(&[item("a", 30), item("b", 20)]);
    assert_eq!(budget_utilization(&report, &budget(200, 100)), 0.25);
    assert_eq!(budget_utilization(&report, &budget(50, 0)), 1.0);
}

// Nothing in a window of nothing is 0, something is infinitely much (R021).
//
// proves: R021
#[test]
fn utilization_of_an_empty_window_is_defined() {
    assert_eq!(budget_utilization(&report(&[]), &budget(0, 0)), 0.0);
    let one = report(&[item("a", 1)]);
    assert_eq!(budget_utilization(&one, &budget(0, 0)), f64::INFINITY);
}

#[test]
fn diversity_counts_kinds_under_any_case() {
    let items = ["Memory", "MEMORY", "Document"].map(|name| of_kind(name, name, 1, 0.5));
    assert_eq!(kind_diversity(&report(&items)), 2);
    assert_eq!(kind_diversity(&report(&[])), 0);
}

#[test]
fn coverage_is_the_share_with_a_timestamp() {
    let dated = ContextItemBuilder::new("dated", 1)
        .timestamp(Utc.with_ymd_and_hms(2024, 6, 1, 12, 0, 0).unwrap())
        .build()
        .unwrap();
    let items = [dated, item("a", 1), item("b", 1), item("c", 1)];
    assert_eq!(timestamp_coverage(&report(&items)), 0.25);
    assert_eq!(timestamp_coverage(&report(&[])), 0.0);
}

/// A custom policy.
struct Constraints(Vec<QuotaConstraint>);

impl QuotaPolicy for Constraints {
    fn quota_constraints(&self) -> Vec<QuotaConstraint> {
        self.0.clone()
    }
}

/// A row as its parts; the type is exhaustive.
fn row(row: KindQuotaUtilization) -> (String, QuotaConstraintMode, [f64; 4]) {
    let KindQuotaUtilization {
        kind,
        mode,
        require,
        cap,
        actual,
        utilization,
    } = row;
    (kind.to_string(), mode, [require, cap, actual, utilization])
}

#[test]
fn quota_utilization_has_a_row_per_constraint_in_order_of_kind() {
    let constraint = |name, mode, require, cap| QuotaConstraint {
        kind: kind(name),
        mode,
        require,
        cap,
    };
    let policy = Constraints(vec![
        constraint("memory", QuotaConstraintMode::Percentage, 10.0, 40.0),
        constraint("Tool", QuotaConstraintMode::Count, 1.0, 2.0),
        constraint("Document", QuotaConstraintMode::Count, 0.0, 0.0),
    ]);
    let report = report(&[
        of_kind("Memory", "fact", 30, 0.5),
        of_kind("Tool", "call 1", 10, 0.5),
        of_kind("Tool", "call 2", 10, 0.5),
        of_kind("Tool", "call 3", 10, 0.5),
        of_kind("Document", "page", 10, 0.5),
    ]);
    let rows = quota_utilization(&report, &policy, &budget(1000, 100));
    let rows: Vec<_> = rows.into_iter().map(row).collect();
    assert_eq!(
        rows,
        [
            (
                "Document".to_string(),
                QuotaConstraintMode::Count,
                [0.0, 0.0, 1.0, 0.0]
            ),
            (
                "Tool".to_string(),
                QuotaConstraintMode::Count,
                [1.0, 2.0, 3.0, 1.0]
            ),
            (
                "memory".to_string(),
                QuotaConstraintMode::Percentage,
                [10.0, 40.0, 30.0, 0.75]
            ),
        ]
    );
}

#[test]
fn quota_utilization_takes_the_slicers_themselves() {
    let quota = QuotaEntry::new(ContextKind::memory(), 10.0, 50.0).unwrap();
    let shares = QuotaSlice::new(vec![quota], Box::new(GreedySlice)).unwrap();
    let count = CountQuotaEntry::new(ContextKind::memory(), 1, 4).unwrap();
    let counts = CountQuotaSlice::new(
        vec![count],
        Box::new(GreedySlice),
        ScarcityBehavior::Degrade,
    )
    .unwrap();
    let report = report(&[of_kind("Memory", "fact", 25, 0.5)]);
    let policies: [&dyn QuotaPolicy; 2] = [&shares, &counts];
    let utilizations = policies.map(|policy| {
        let rows = quota_utilization(&report, policy, &budget(100, 100));
        rows[0].utilization
    });
    assert_eq!(utilizations, [0.5, 0.25]);

    let empty_target = quota_utilization(&report, &shares, &budget(100, 0));
    assert_eq!(
        (empty_target[0].actual, empty_target[0].utilization),
        (0.0, 0.0)
    );
}

fn policy(scorer: Arc<dyn Scorer>) -> Policy {
    PolicyBuilder::new()
        .scorer(scorer)
        .slicer(Arc::new(GreedySlice))
        .placer(Arc::new(ChronologicalPlacer))
        .deduplication(false)
        .build()
        .unwrap()
}

fn by_hint() -> Policy {
    policy(Arc::new(ReflexiveScorer))
}

fn by_kind() -> Policy {
    policy(Arc::new(KindScorer::with_default_weights()))
}

/// A fact and a page compete for one place; both policies take the rules and neither the giant.
fn rivals() -> [ContextItem; 4] {
    [
        of_kind("Memory", "fact", 40, 0.1),
        of_kind("Document", "page", 40, 0.9),
        pinned("rules", 10),
        of_kind("Document", "giant", 500, 0.9),
    ]
}

// proves: SENS-2, SENS-3, R004, R128
#[test]
fn one_variant_is_no_comparison() {
    let none: Vec<(&str, &Policy)> = Vec::new();
    let policy = by_hint();
    let one = vec![("only", &policy)];
    for variants in [none, one] {
        check_too_few(policy_sensitivity(&rivals(), &budget(50, 50), &variants));
    }
    let pipeline = pipeline(Box::new(ReflexiveScorer));
    check_too_few(policy_sensitivity_from_pipelines(
        &rivals(),
        &budget(50, 50),
        &[("only", &pipeline)],
    ));
}

#[track_caller]
fn check_too_few(result: Result<PolicySensitivityReport, CupelError>) {
    match result {
        Err(CupelError::PipelineConfig(text)) => {
            assert_eq!(text, "policy_sensitivity requires at least 2 variants");
        }
        other => panic!("{other:?}"),
    }
}

fn pipeline(scorer: Box<dyn Scorer>) -> Pipeline {
    Pipeline::builder()
        .scorer(scorer)
        .slicer(Box::new(GreedySlice))
        .placer(Box::new(ChronologicalPlacer))
        .build()
        .unwrap()
}

/// The two variants disagree on the fact and the page and on nothing else.
#[track_caller]
fn check_disagreement(report: PolicySensitivityReport) {
    let PolicySensitivityReport { variants, diffs } = report;
    let labels: Vec<(&str, usize)> = variants
        .iter()
        .map(|(label, report): &(String, SelectionReport)| (label.as_str(), report.included.len()))
        .collect();
    assert_eq!(labels, [("hint", 2), ("kind", 2)]);

    let mut told: Vec<(String, Vec<(String, ItemStatus)>)> = diffs
        .into_iter()
        .map(|PolicySensitivityDiffEntry { content, statuses }| (content, statuses))
        .collect();
    told.sort_by(|a, b| a.0.cmp(&b.0));
    let statuses = |hint, kind| vec![("hint".to_string(), hint), ("kind".to_string(), kind)];
    assert_eq!(
        told,
        [
            (
                "fact".to_string(),
                statuses(ItemStatus::Excluded, ItemStatus::Included)
            ),
            (
                "page".to_string(),
                statuses(ItemStatus::Included, ItemStatus::Excluded)
            ),
        ]
    );
}

// proves: SENS-5, SENS-6, SENS-7, SENS-8, SENS-10
#[test]
fn variants_are_compared_under_labels_of_any_text_type() {
    let (hint, kind) = (by_hint(), by_kind());
    let (items, budget) = (rivals(), budget(50, 50));

    let slices: Vec<(&str, &Policy)> = vec![("hint", &hint), ("kind", &kind)];
    check_disagreement(policy_sensitivity(&items, &budget, &slices).unwrap());

    let strings: Vec<(String, &Policy)> = slices
        .iter()
        .map(|(label, policy)| ((*label).to_string(), *policy))
        .collect();
    check_disagreement(policy_sensitivity(&items, &budget, &strings).unwrap());

    let array = [("hint", &hint), ("kind", &kind)];
    check_disagreement(policy_sensitivity(&items, &budget, &array).unwrap());

    let hint = pipeline(Box::new(ReflexiveScorer));
    let kind = pipeline(Box::new(KindScorer::with_default_weights()));
    check_disagreement(
        policy_sensitivity_from_pipelines(&items, &budget, &[("hint", &hint), ("kind", &kind)])
            .unwrap(),
    );
}

// Copies of one content have one status together: included if any of them is (R127).
//
// proves: R127
#[test]
fn equal_policies_never_disagree() {
    let (first, second) = (by_hint(), by_hint());
    let items = [hinted("same", 40, 0.9), hinted("same", 40, 0.8)];
    let report = policy_sensitivity(
        &items,
        &budget(50, 50),
        &[("first", &first), ("second", &second)],
    )
    .unwrap();
    assert!(report.diffs.is_empty(), "{:?}", report.diffs);
}

#[test]
fn analytics_values_can_be_made_by_anybody() {
    let row = KindQuotaUtilization {
        kind: kind("Memory"),
        mode: QuotaConstraintMode::Count,
        require: 0.0,
        cap: 1.0,
        actual: 1.0,
        utilization: 1.0,
    };
    assert_eq!(row.clone(), row);
    let entry = PolicySensitivityDiffEntry {
        content: "text".to_string(),
        statuses: vec![("a".to_string(), ItemStatus::Included)],
    };
    let report = PolicySensitivityReport {
        variants: vec![("a".to_string(), report(&[]))],
        diffs: vec![entry.clone()],
    };
    assert_eq!(report.diffs, [entry]);
    assert_eq!(report.clone().variants.len(), 1);

    // The enumeration is exhaustive.
    let by_status: HashMap<&str, usize> = [ItemStatus::Included, ItemStatus::Excluded]
        .map(|status| match status {
            ItemStatus::Included => ("in", 1),
            ItemStatus::Excluded => ("out", 1),
        })
        .into();
    assert_eq!(by_status.len(), 2);
}
