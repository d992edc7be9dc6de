//! What a run decides, by position in the input: the answer of `cupel select --json`.

use std::collections::HashMap;

use cupel::{
    ContextBudget, ContextItem, CupelError, DiagnosticTraceCollector, ExclusionReason,
    InclusionReason, OverflowEvent, Policy, SelectionReport, TraceCollector, TraceDetailLevel,
    TraceEvent, total_tokens,
};
use cupel_chat::Fitted;
use serde::{Serialize, Serializer};

/// What a run decided about every candidate.
#[derive(Debug, Serialize)]
pub(crate) struct Decision {
    /// The window in order.
    pub(crate) selected: Vec<Selected>,
    /// The window in order, with scores and reasons.
    pub(crate) included: Vec<Entry<InclusionReason>>,
    /// The rest, best score first.
    pub(crate) excluded: Vec<Entry<ExclusionReason>>,
    /// The report of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) report: Option<SelectionReport>,
    /// What exceeded the budget and was accepted.
    pub(crate) overflow: Option<Overflow>,
}

/// An item of the window.
#[derive(Debug, Serialize)]
pub(crate) struct Selected {
    pub(crate) index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) item: Option<ContextItem>,
}

/// A candidate, its score, and why it is in or out.
#[derive(Debug, Serialize)]
pub(crate) struct Entry<R> {
    pub(crate) index: usize,
    #[serde(serialize_with = "write_score")]
    pub(crate) score: f64,
    pub(crate) reason: R,
}

/// An overflow that the policy accepts.
#[derive(Debug, Serialize)]
pub(crate) struct Overflow {
    pub(crate) tokens_over_budget: i64,
    pub(crate) items: Vec<usize>,
}

impl Decision {
    /// Runs the policy.
    pub(crate) fn of(
        policy: &Policy,
        items: &[ContextItem],
        budget: &ContextBudget,
    ) -> Result<Self, CupelError> {
        let mut collector = (
            DiagnosticTraceCollector::new(TraceDetailLevel::Item),
            Overflowed(None),
        );
        policy.run_traced(items, budget, &mut collector)?;
        let (collector, Overflowed(overflow)) = collector;
        Ok(Self::of_report(
            collector.into_report(),
            overflow,
            position_in(items),
        ))
    }

    /// What became of the candidates of a chat.
    pub(crate) fn of_chat(fitted: Fitted<'_>, candidates: &[ContextItem]) -> Self {
        Self::of_report(fitted.report, None, position_in(candidates))
    }

    fn of_report(
        report: SelectionReport,
        overflow: Option<OverflowEvent>,
        position: impl Fn(&ContextItem) -> usize,
    ) -> Self {
        let included = report.included.iter();
        let excluded = report.excluded.iter();
        Self {
            selected: included
                .clone()
                .map(|included| Selected {
                    index: position(&included.item),
                    item: Some(included.item.clone()),
                })
                .collect(),
            included: included
                .map(|included| Entry {
                    index: position(&included.item),
                    score: included.score,
                    reason: included.reason,
                })
                .collect(),
            excluded: excluded
                .map(|excluded| Entry {
                    index: position(&excluded.item),
                    score: excluded.score,
                    reason: excluded.reason.clone(),
                })
                .collect(),
            overflow: overflow.map(|event| Overflow {
                tokens_over_budget: event.tokens_over_budget,
                items: event.overflowing_items.iter().map(&position).collect(),
            }),
            report: Some(report),
        }
    }

    /// The same without the items and the report.
    pub(crate) fn brief(mut self) -> Self {
        for selected in &mut self.selected {
            selected.item = None;
        }
        self.report = None;
        self
    }

    /// The same without the times of the events, so that equal input has an equal answer.
    pub(crate) fn timeless(mut self) -> Self {
        let events = self.report.iter_mut().flat_map(|report| &mut report.events);
        events.for_each(|event| event.duration_ms = 0.0);
        self
    }

    /// The tokens of the window.
    pub(crate) fn tokens(&self, items: &[ContextItem]) -> i64 {
        let window = self.selected.iter();
        total_tokens(window.map(|selected| &items[selected.index]))
    }
}

/// The positions of some of the candidates.
pub(crate) fn positions(candidates: &[ContextItem], some: &[ContextItem]) -> Vec<usize> {
    some.iter().map(position_in(candidates)).collect()
}

/// Finds a candidate's position by what tells handles apart: where their text lies.
fn position_in(candidates: &[ContextItem]) -> impl Fn(&ContextItem) -> usize {
    let address = |item: &ContextItem| item.content().as_ptr().addr();
    let candidates = candidates.iter().enumerate();
    let known: HashMap<usize, usize> = candidates
        .map(|(index, item)| (address(item), index))
        .collect();
    move |item| known[&address(item)]
}

/// Keeps the overflow that a run accepts.
struct Overflowed(Option<OverflowEvent>);

impl TraceCollector for Overflowed {
    fn is_enabled(&self) -> bool {
        true
    }

    fn record_stage_event(&mut self, _event: TraceEvent) {}

    fn record_item_event(&mut self, _event: TraceEvent) {}

    fn on_overflow(&mut self, event: &OverflowEvent) {
        self.0 = Some(event.clone());
    }
}

/// A score as the report writes it: what JSON has no number for is a text.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
pub(crate) fn write_score<S: Serializer>(score: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if score.is_finite() {
        serializer.serialize_f64(*score)
    } else {
        serializer.collect_str(score)
    }
}
