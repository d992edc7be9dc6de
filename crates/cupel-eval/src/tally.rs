//! Sums of the measures over requests, and their bootstrap intervals over runs.

use std::array;

use serde::{Serialize, Serializer};

use crate::bootstrap::{Estimate, Resamples};

/// A measure of a replay: the ratio of two sums over the requests of all runs. `docs/agents.md` of the repository
/// defines each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayMeasure {
    /// Grounding recall: the share of the evidence that the window contains.
    Grounding,
    /// Supported recall: the share of the evidence in the same place as in the history.
    Supported,
    /// Line recall: the share of the lines that the answer quotes from the history, which the window has too.
    Lines,
    /// The tokens of the window over the budget, without system messages.
    Fill,
    /// The share of the previous window's tokens in its longest common prefix with this window, without system
    /// messages.
    BodyReuse,
    /// The share of the previous request's tokens in its longest common prefix with this request.
    RequestReuse,
    /// The price of the requests over their price without trimming.
    Cost,
    /// The same, system messages and request overhead aside.
    Bill,
    /// The same with the prices, the prefix and the cache lifetime of a [`Billing`](crate::Billing).
    FullBill,
    /// The share of requests with a call without result, or a result without call.
    Orphans,
    /// The share of requests over the budget.
    OverBudget,
    /// The share of requests without a message that the next answer needs.
    Mandatory,
    /// The share of requests that do not start with the one before, although nothing was cut.
    Prefix,
    /// The share of requests in which a dropped or shortened message is back or longer.
    Longer,
    /// The share of requests with messages missing in the middle.
    Holes,
    /// The share of requests whose roles do not alternate, although those of the history do.
    Breaks,
    /// The share of requests that could not be trimmed.
    Failed,
}

impl ReplayMeasure {
    /// All measures in the order of the answer, which is that of their positions.
    pub const ALL: [Self; 17] = [
        Self::Grounding,
        Self::Supported,
        Self::Lines,
        Self::Fill,
        Self::BodyReuse,
        Self::RequestReuse,
        Self::Cost,
        Self::Bill,
        Self::FullBill,
        Self::Orphans,
        Self::OverBudget,
        Self::Mandatory,
        Self::Prefix,
        Self::Longer,
        Self::Holes,
        Self::Breaks,
        Self::Failed,
    ];

    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Grounding => "grounding_recall",
            Self::Supported => "supported_recall",
            Self::Lines => "lines",
            Self::Fill => "fill",
            Self::BodyReuse => "body_reuse",
            Self::RequestReuse => "request_reuse",
            Self::Cost => "cost",
            Self::Bill => "bill",
            Self::FullBill => "full_bill",
            Self::Orphans => "orphans",
            Self::OverBudget => "over_budget",
            Self::Mandatory => "mandatory_missing",
            Self::Prefix => "broken_prefixes",
            Self::Longer => "longer_forms",
            Self::Holes => "holes",
            Self::Breaks => "alternation_breaks",
            Self::Failed => "failed",
        }
    }
}

/// The values of all measures. Serialized, it is an object by the measures' names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplayEstimates([Option<Estimate>; ReplayMeasure::ALL.len()]);

impl ReplayEstimates {
    /// Computes the estimates by the bootstrap over runs.
    pub(crate) fn of(runs: &[&Tally]) -> Self {
        let samples = Resamples::new(runs.len());
        Self(array::from_fn(|measure| {
            samples.estimate(|drawn| ratio(runs, drawn, measure))
        }))
    }

    /// Returns the value of a measure; `None` if no request has it.
    pub fn get(&self, measure: ReplayMeasure) -> Option<Estimate> {
        self.0[measure as usize]
    }
}

impl Serialize for ReplayEstimates {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let measures = ReplayMeasure::ALL.into_iter();
        serializer.collect_map(measures.map(|measure| (measure.name(), self.get(measure))))
    }
}

/// The sums of one run under one setting.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Tally {
    /// The requests whose history exceeds the budget.
    pub(crate) trimmed: usize,
    /// The trimmed requests whose answer has evidence.
    pub(crate) steps: usize,
    sums: [Ratio; ReplayMeasure::ALL.len()],
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Ratio {
    numerator: f64,
    denominator: f64,
}

impl Tally {
    /// Adds to the two sums of a measure.
    pub(crate) fn add(&mut self, measure: ReplayMeasure, part: f64, whole: f64) {
        let sum = &mut self.sums[measure as usize];
        sum.numerator += part;
        sum.denominator += whole;
    }

    /// Adds a request to a measure that is a share of requests.
    pub(crate) fn count(&mut self, measure: ReplayMeasure, counts: bool) {
        self.add(measure, f64::from(u8::from(counts)), 1.0);
    }
}

/// Returns the ratio of the sums over the drawn runs; `None` for a denominator of zero.
fn ratio(runs: &[&Tally], drawn: &[usize], measure: usize) -> Option<f64> {
    let sums = drawn.iter().map(|&run| runs[run].sums[measure]);
    let (numerator, denominator) = sums.fold((0.0, 0.0), |(numerator, denominator), sum| {
        (numerator + sum.numerator, denominator + sum.denominator)
    });
    (denominator > 0.0).then(|| numerator / denominator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(numerator: f64, denominator: f64) -> Tally {
        let mut tally = Tally::default();
        tally.add(ReplayMeasure::Cost, numerator, denominator);
        tally
    }

    fn cost(runs: &[Tally]) -> Option<Estimate> {
        let runs: Vec<&Tally> = runs.iter().collect();
        ReplayEstimates::of(&runs).get(ReplayMeasure::Cost)
    }

    #[test]
    fn measures_are_in_the_order_of_their_positions() {
        for (position, measure) in ReplayMeasure::ALL.into_iter().enumerate() {
            assert_eq!(measure as usize, position);
        }
    }

    #[test]
    fn the_value_is_the_ratio_of_the_sums() {
        let estimate = cost(&[tally(1.0, 2.0), tally(2.0, 10.0)]).expect("two runs");
        assert_eq!(estimate.value, 0.25);
        assert_eq!((estimate.low, estimate.high), (0.2, 0.5));
    }

    #[test]
    fn a_measure_without_requests_has_no_estimate() {
        assert_eq!(cost(&[tally(0.0, 0.0)]), None);
        assert_eq!(cost(&[]), None);
    }
}
