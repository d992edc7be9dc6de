//! Sums of the measures over requests, and their bootstrap intervals over runs.

use super::bootstrap::{Estimate, Resamples};

/// A measure: the ratio of two sums over the requests of all runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Grounding,
    Supported,
    BodyReuse,
    RequestReuse,
    Cost,
    Orphans,
    OverBudget,
    Holes,
    Breaks,
    Failed,
}

impl Measure {
    /// All measures in the order of the table: the name in JSON and the label in the table.
    pub(super) const ALL: [(Self, &'static str, &'static str); 10] = [
        (Self::Grounding, "grounding_recall", "grounding recall, %"),
        (Self::Supported, "supported_recall", "supported recall, %"),
        (Self::BodyReuse, "body_reuse", "reuse, body, %"),
        (Self::RequestReuse, "request_reuse", "reuse, request, %"),
        (Self::Cost, "cost", "cost / no trimming"),
        (Self::Orphans, "orphans", "orphans, %"),
        (Self::OverBudget, "over_budget", "over budget, %"),
        (Self::Holes, "holes", "holes, %"),
        (Self::Breaks, "alternation_breaks", "alternation breaks, %"),
        (Self::Failed, "failed", "failed, %"),
    ];
}

/// The sums of one run under one setting.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Tally {
    /// All requests.
    pub(super) requests: usize,
    /// The requests whose history exceeds the budget.
    pub(super) trimmed: usize,
    /// The trimmed requests whose answer has evidence.
    pub(super) steps: usize,
    sums: [Ratio; Measure::ALL.len()],
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Ratio {
    numerator: f64,
    denominator: f64,
}

impl Tally {
    /// Adds to the two sums of a measure.
    pub(super) fn add(&mut self, measure: Measure, part: f64, whole: f64) {
        let sum = &mut self.sums[measure as usize];
        sum.numerator += part;
        sum.denominator += whole;
    }

    /// Adds a request to a measure that is a share of requests.
    pub(super) fn count(&mut self, measure: Measure, counts: bool) {
        self.add(measure, f64::from(u8::from(counts)), 1.0);
    }
}

/// Returns the estimate of each measure, by the bootstrap over runs. `None` if no request has the
/// measure.
pub(super) fn estimates(runs: &[&Tally]) -> [Option<Estimate>; Measure::ALL.len()] {
    let samples = Resamples::new(runs.len());
    std::array::from_fn(|measure| samples.estimate(|drawn| ratio(runs, drawn, measure)))
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
        tally.add(Measure::Cost, numerator, denominator);
        tally
    }

    fn cost(runs: &[Tally]) -> Option<Estimate> {
        let runs: Vec<&Tally> = runs.iter().collect();
        estimates(&runs)[Measure::Cost as usize]
    }

    #[test]
    fn measures_are_in_the_order_of_their_positions() {
        for (position, (measure, ..)) in Measure::ALL.into_iter().enumerate() {
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
