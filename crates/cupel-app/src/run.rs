//! [`Run`]: one traced run, and its answer to `select`.

use cupel::{
    ContextBudget, ContextItem, CupelError, Decisions, DiagnosticTraceCollector, ExclusionReason,
    InclusionReason, Policy, SelectionReport, TraceDetailLevel,
};
use serde::{Serialize, Serializer};

/// A run: its decisions by position, and its report with the trace.
pub struct Run<'a> {
    /// The decisions about every candidate.
    pub decisions: Decisions<'a>,
    /// The report, with the events of the run.
    pub report: SelectionReport,
    /// The overflow that the policy accepts, if there is one.
    pub overflow: Option<Overflow>,
}

/// The decisions about every candidate in JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SelectAnswer<'r> {
    /// The window in order.
    selected: Vec<Selected<'r>>,
    /// The window in order, with scores and reasons.
    included: Vec<Entry<InclusionReason>>,
    /// The other candidates, best score first.
    excluded: Vec<Entry<ExclusionReason>>,
    /// The report of the run; absent from a brief answer. The durations of its events are 0 unless times were asked
    /// for.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<&'r SelectionReport>,
    /// The overflow that the policy accepts; `None` if the window is within the budget.
    overflow: Option<Overflow>,
}

/// An item of the window.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Selected<'r> {
    /// Its position.
    index: usize,
    /// The item as it is in the window; absent from a brief answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<&'r ContextItem>,
}

/// A candidate with its score and the reason for its inclusion or exclusion.
#[derive(Debug, Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "CandidateWith{R}")
)]
struct Entry<R> {
    /// Its position.
    index: usize,
    /// Its score; a string if it is not finite.
    #[serde(serialize_with = "write_score")]
    #[cfg_attr(feature = "schema", schemars(with = "cupel::schema::Float"))]
    score: f64,
    /// Why it is in or out.
    reason: R,
}

/// An overflow that the policy accepts.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overflow {
    /// The tokens over the budget.
    pub tokens_over_budget: i64,
    /// The positions of all items of the window: the pinned ones first, then the others by rank.
    items: Vec<usize>,
}

impl<'a> Run<'a> {
    /// Runs the policy.
    ///
    /// # Errors
    ///
    /// As [`Policy::decide`].
    pub fn of(
        policy: &Policy,
        items: &'a [ContextItem],
        budget: &ContextBudget,
    ) -> Result<Self, CupelError> {
        let mut collector = DiagnosticTraceCollector::new(TraceDetailLevel::Item);
        let decisions = policy.decide_traced(items, budget, &mut collector)?;
        Ok(Self {
            overflow: Overflow::of(&decisions),
            report: collector.into_report(),
            decisions,
        })
    }

    /// Sets the time of every event to 0, so that equal input gives equal output.
    pub fn without_times(mut self) -> Self {
        for event in &mut self.report.events {
            event.duration_ms = 0.0;
        }
        self
    }

    /// Returns the answer in JSON.
    pub fn answer(&self) -> SelectAnswer<'_> {
        SelectAnswer::of(&self.decisions, Some(&self.report))
    }

    /// Returns the answer without the items and the report.
    pub fn brief_answer(&self) -> SelectAnswer<'_> {
        SelectAnswer::of(&self.decisions, None)
    }
}

impl Overflow {
    fn of(decisions: &Decisions<'_>) -> Option<Self> {
        decisions.overflow().map(|tokens_over_budget| Self {
            tokens_over_budget,
            items: decisions.merged(),
        })
    }
}

impl<'r> SelectAnswer<'r> {
    /// Returns the answer of a run; without a report, it has no items.
    pub fn of(decisions: &'r Decisions<'_>, report: Option<&'r SelectionReport>) -> Self {
        let window = decisions.window().iter();
        Self {
            selected: window
                .clone()
                .map(|&index| Selected {
                    index,
                    item: report.is_some().then(|| decisions.item(index)),
                })
                .collect(),
            included: window
                .filter_map(|&index| Some(entry(decisions, index, decisions.inclusion(index)?)))
                .collect(),
            excluded: decisions
                .excluded()
                .into_iter()
                .filter_map(|index| Some(entry(decisions, index, decisions.exclusion(index)?)))
                .collect(),
            report,
            overflow: Overflow::of(decisions),
        }
    }
}

fn entry<R>(decisions: &Decisions<'_>, index: usize, reason: R) -> Entry<R> {
    Entry {
        index,
        score: decisions.score(index),
        reason,
    }
}

/// Writes a score as a report does: a score that is not finite is a string.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
pub(crate) fn write_score<S: Serializer>(score: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if score.is_finite() {
        serializer.serialize_f64(*score)
    } else {
        serializer.collect_str(score)
    }
}
