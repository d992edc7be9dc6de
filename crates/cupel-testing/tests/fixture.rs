//! Reports from `ReportBuilder`.

use cupel::{
    ContextItem, ContextKind, CountRequirementShortfall, ExcludedItem, ExclusionReason,
    IncludedItem, InclusionReason, SelectionReport,
};
use cupel_testing::fixture::{ReportBuilder, item, scored};

#[test]
fn entries_equal_those_of_a_run() {
    let report = ReportBuilder::new()
        .included("scored", 5, 0.5)
        .included("free", 0, 0.25)
        .pinned("pinned", 3)
        .over_budget("large", 60, 0.75, 35)
        .build();
    let included: Vec<_> = report
        .included
        .iter()
        .map(|entry| {
            (
                entry.item.content(),
                entry.item.tokens(),
                entry.score,
                entry.reason,
            )
        })
        .collect();
    assert_eq!(
        included,
        [
            ("scored", 5, 0.5, InclusionReason::Scored),
            ("free", 0, 0.25, InclusionReason::ZeroToken),
            ("pinned", 3, 1.0, InclusionReason::Pinned),
        ]
    );
    assert!(report.included[2].item.pinned());
    assert_eq!(
        report.excluded[0].reason,
        ExclusionReason::BudgetExceeded {
            item_tokens: 60,
            available_tokens: 35
        }
    );
    assert_eq!(report.total_candidates, 4);
    assert_eq!(report.total_tokens_considered, 68);
}

#[test]
fn a_built_report_equals_one_from_the_constructors() {
    let reason = ExclusionReason::NegativeTokens { tokens: -1 };
    let memory = ContextItem::builder("b", 2)
        .kind(ContextKind::memory())
        .build()
        .unwrap();
    let built = ReportBuilder::new()
        .included("a", 1, 0.5)
        .push_included(IncludedItem::new(
            memory.clone(),
            0.25,
            InclusionReason::Scored,
        ))
        .excluded("c", -1, 0.0, reason.clone())
        .push_excluded(ExcludedItem::new(item("d", 4), 0.75, reason.clone()))
        .shortfall("Memory", 2, 1)
        .build();
    let constructed = SelectionReport::new(
        vec![],
        vec![
            IncludedItem::new(item("a", 1), 0.5, InclusionReason::Scored),
            IncludedItem::new(memory, 0.25, InclusionReason::Scored),
        ],
        vec![
            ExcludedItem::new(item("d", 4), 0.75, reason.clone()),
            ExcludedItem::new(item("c", -1), 0.0, reason),
        ],
        vec![CountRequirementShortfall::new("Memory", 2, 1)],
    );
    assert_eq!(built, constructed);
    assert_eq!(ReportBuilder::new().build(), SelectionReport::default());
}

#[test]
fn the_kind_is_that_of_the_entry_added_last() {
    let report = ReportBuilder::new()
        .included("a", 1, 0.5)
        .over_budget("b", 1, 0.5, 0)
        .kind(ContextKind::memory())
        .included("c", 1, 0.5)
        .kind(ContextKind::document())
        .build();
    assert_eq!(report.included[0].item.kind(), &ContextKind::message());
    assert_eq!(report.included[1].item.kind(), &ContextKind::document());
    assert_eq!(report.excluded[0].item.kind(), &ContextKind::memory());
}

#[test]
fn an_unsorted_report_differs_only_in_order() {
    let builder = ReportBuilder::new()
        .over_budget("low", 1, 0.25, 0)
        .over_budget("high", 2, 0.75, 0);
    let mut unsorted = builder.clone().build_unsorted();
    assert_eq!(unsorted.excluded[0].item.content(), "low");
    unsorted.excluded.reverse();
    assert_eq!(unsorted, builder.build());
}

#[test]
fn empty_content_panics() {
    let text = crate::panic_message(|| {
        scored("", 1, 0.5);
    });
    assert_eq!(text, "content must be non-empty");
}
