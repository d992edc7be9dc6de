//! Sums of measures, and their bootstrap intervals over runs or conversations.

use std::marker::PhantomData;

use serde::{Serialize, Serializer};

use crate::bootstrap::{Estimate, Resamples};

/// The measures of an evaluation, each the ratio of two sums.
pub trait Measures: Copy + 'static {
    /// All measures in the order of the answer, which is that of their positions.
    const ALL: &'static [Self];

    /// Returns the position in [`ALL`](Self::ALL).
    fn position(self) -> usize;

    /// Returns the name in JSON.
    fn name(self) -> &'static str;
}

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

impl Measures for ReplayMeasure {
    const ALL: &'static [Self] = &[
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

    fn position(self) -> usize {
        self as usize
    }

    fn name(self) -> &'static str {
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

/// A measure of the windows of conversations: the ratio of two sums. `docs/agents.md` of the repository defines each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CriteriaMeasure {
    /// The share, by weight, of the criterion's terms that the last window contains.
    Recall,
    /// The tokens of the last window over the budget.
    Fill,
    /// The price of all requests over their price without trimming.
    Bill,
    /// The share of conversations whose last window has no message.
    Failed,
}

impl Measures for CriteriaMeasure {
    const ALL: &'static [Self] = &[Self::Recall, Self::Fill, Self::Bill, Self::Failed];

    fn position(self) -> usize {
        self as usize
    }

    fn name(self) -> &'static str {
        match self {
            Self::Recall => "criterion_recall",
            Self::Fill => "fill",
            Self::Bill => "bill",
            Self::Failed => "failed",
        }
    }
}

/// The values of all measures. Serialized, it is an object by the measures' names.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimates<M> {
    /// By position.
    values: Vec<Option<Estimate>>,
    measures: PhantomData<M>,
}

impl<M: Measures> Estimates<M> {
    /// Computes the estimates by the bootstrap over units.
    pub(crate) fn of(units: &[&Sums<M>]) -> Self {
        let samples = Resamples::new(units.len());
        let estimate = |&measure| samples.estimate(|drawn| ratio(units, drawn, measure));
        Self {
            values: M::ALL.iter().map(estimate).collect(),
            measures: PhantomData,
        }
    }

    /// Returns the value of a measure; `None` if nothing has it.
    pub fn get(&self, measure: M) -> Option<Estimate> {
        self.values[measure.position()]
    }
}

impl<M: Measures> Serialize for Estimates<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let measures = M::ALL.iter();
        serializer.collect_map(measures.map(|&measure| (measure.name(), self.get(measure))))
    }
}

/// The sums of one unit, such as a run, under one setting.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sums<M> {
    /// By position.
    ratios: Vec<Ratio>,
    measures: PhantomData<M>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Ratio {
    numerator: f64,
    denominator: f64,
}

impl<M: Measures> Sums<M> {
    /// Adds to the two sums of a measure.
    pub(crate) fn add(&mut self, measure: M, part: f64, whole: f64) {
        let sum = &mut self.ratios[measure.position()];
        sum.numerator += part;
        sum.denominator += whole;
    }

    /// Adds a request to a measure that is a share of requests.
    pub(crate) fn count(&mut self, measure: M, counts: bool) {
        self.add(measure, f64::from(u8::from(counts)), 1.0);
    }
}

impl<M: Measures> Default for Sums<M> {
    fn default() -> Self {
        Self {
            ratios: vec![Ratio::default(); M::ALL.len()],
            measures: PhantomData,
        }
    }
}

/// Returns the ratio of the sums over the drawn units; `None` for a denominator of zero.
fn ratio<M: Measures>(units: &[&Sums<M>], drawn: &[usize], measure: M) -> Option<f64> {
    let sums = drawn
        .iter()
        .map(|&unit| units[unit].ratios[measure.position()]);
    let (numerator, denominator) = sums.fold((0.0, 0.0), |(numerator, denominator), sum| {
        (numerator + sum.numerator, denominator + sum.denominator)
    });
    (denominator > 0.0).then(|| numerator / denominator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(numerator: f64, denominator: f64) -> Sums<ReplayMeasure> {
        let mut sums = Sums::default();
        sums.add(ReplayMeasure::Cost, numerator, denominator);
        sums
    }

    fn cost(runs: &[Sums<ReplayMeasure>]) -> Option<Estimate> {
        let runs: Vec<_> = runs.iter().collect();
        Estimates::of(&runs).get(ReplayMeasure::Cost)
    }

    #[test]
    fn measures_are_in_the_order_of_their_positions() {
        fn check<M: Measures>() {
            for (position, measure) in M::ALL.iter().enumerate() {
                assert_eq!(measure.position(), position);
            }
        }
        check::<ReplayMeasure>();
        check::<CriteriaMeasure>();
    }

    #[test]
    fn the_value_is_the_ratio_of_the_sums() {
        let estimate = cost(&[run(1.0, 2.0), run(2.0, 10.0)]).expect("two runs");
        assert_eq!(estimate.value, 0.25);
        assert_eq!((estimate.low, estimate.high), (0.2, 0.5));
    }

    #[test]
    fn a_measure_without_requests_has_no_estimate() {
        assert_eq!(cost(&[run(0.0, 0.0)]), None);
        assert_eq!(cost(&[]), None);
    }
}
