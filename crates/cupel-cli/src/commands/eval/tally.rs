//! Sums of the measures over requests, and their bootstrap intervals over runs.

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

/// A measure over all runs with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The number of bootstrap samples, and how many lie below and above the 95 % interval.
pub(super) const SAMPLES: usize = 2_000;
const TAIL: usize = SAMPLES / 40;

/// Returns the estimate of each measure: the percentile bootstrap over runs (Efron 1979).
///
/// `None` if no request has the measure. The samples are the same in every execution.
pub(super) fn estimates(runs: &[&Tally]) -> [Option<Estimate>; Measure::ALL.len()] {
    let mut random = SplitMix64(0);
    let mut samples: [Vec<f64>; Measure::ALL.len()] = Default::default();
    for _ in 0..SAMPLES {
        let drawn: Vec<&Tally> = runs
            .iter()
            .map(|_| runs[random.below(runs.len())])
            .collect();
        for (samples, ratio) in samples.iter_mut().zip(ratios(&drawn)) {
            samples.extend(ratio);
        }
    }
    let mut samples = samples.into_iter();
    ratios(runs).map(|value| {
        let mut samples = samples.next()?;
        samples.sort_unstable_by(f64::total_cmp);
        // A sample without a request that has the measure has no value.
        let tail = TAIL * samples.len() / SAMPLES;
        Some(Estimate {
            value: value?,
            low: *samples.get(tail)?,
            high: *samples.get(samples.len() - 1 - tail)?,
        })
    })
}

/// Returns the ratio of the sums over runs; `None` for a denominator of zero.
fn ratios(runs: &[&Tally]) -> [Option<f64>; Measure::ALL.len()] {
    std::array::from_fn(|measure| {
        let sums = runs.iter().map(|run| run.sums[measure]);
        let (numerator, denominator) = sums.fold((0.0, 0.0), |(numerator, denominator), sum| {
            (numerator + sum.numerator, denominator + sum.denominator)
        });
        (denominator > 0.0).then(|| numerator / denominator)
    })
}

/// The generator `SplitMix64` (Steele, Lea, Flood 2014).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end` (multiply-shift, Lemire 2019); the bias is below `end` / 2^64.
    #[expect(clippy::cast_possible_truncation, reason = "below `end`")]
    fn below(&mut self, end: usize) -> usize {
        let product = u128::from(self.next()) * end as u128;
        (product >> 64) as usize
    }
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
    fn one_run_has_an_interval_of_width_zero() {
        let estimate = cost(&[tally(3.0, 4.0)]).expect("one run");
        assert_eq!(
            (estimate.low, estimate.value, estimate.high),
            (0.75, 0.75, 0.75)
        );
    }

    #[test]
    fn a_measure_without_requests_has_no_estimate() {
        assert_eq!(cost(&[tally(0.0, 0.0)]), None);
        assert_eq!(cost(&[]), None);
    }

    /// The standard error of a mean of 100 coin flips is 0.05, so 95 % are within 0.4 and 0.6.
    #[test]
    fn the_interval_of_a_mean_is_near_the_normal_approximation() {
        let runs: Vec<Tally> = (0..100).map(|n| tally(f64::from(n % 2), 1.0)).collect();
        let estimate = cost(&runs).expect("100 runs");
        assert!((estimate.low - 0.402).abs() < 0.015, "{estimate:?}");
        assert!((estimate.high - 0.598).abs() < 0.015, "{estimate:?}");
    }

    /// The first outputs for the seed 0, from the reference implementation.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut random = SplitMix64(0);
        assert_eq!(random.next(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.next(), 0x6e78_9e6a_a1b9_65f4);
    }
}
