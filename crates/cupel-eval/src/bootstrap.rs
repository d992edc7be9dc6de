//! 95 % intervals by the percentile bootstrap (Efron 1979).
//!
//! Units, such as transcripts, are drawn with replacement, as many as there are. The measure of such a sample
//! varies as it would with other data. The interval holds the middle 95 % of the samples' values:
//!
//! ```text
//! units 0 1 2 with the values 0.2 0.4 0.9; the mean is 0.5
//! samples 0 0 2 | 1 2 2 | 2 1 0 | ... have the means 0.43, 0.73, 0.5, ...
//! of 2,000 sorted means the 51st is `low` and the 1,950th is `high`
//! ```

use serde::Serialize;

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The value on all data.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// The samples of an interval. If they are normally distributed, the standard error of each end is 1.5 % of the
/// width: `sqrt(0.025 * 0.975 / 2000) / 0.0584 = 0.06` of a standard deviation, and the width is 3.92.
pub const SAMPLES: usize = 2_000;

/// The samples below the interval, and as many above: 2.5 % each.
const TAIL: usize = SAMPLES / 40;

/// Samples of the units of a data set. They are the same in every execution, and the same for every measure and
/// policy, so that a difference of two policies is paired: what a sample's units have in common cancels out.
#[derive(Debug)]
pub(crate) struct Resamples {
    units: usize,
    /// The drawn units of all samples.
    drawn: Vec<usize>,
}

impl Resamples {
    /// Draws samples of `units` units.
    pub(crate) fn new(units: usize) -> Self {
        let mut random = SplitMix64(0);
        let drawn = (0..SAMPLES * units)
            .map(|_| below(&mut random, units))
            .collect();
        Self { units, drawn }
    }

    /// Returns the value of all units and its interval. `None` if `value` has none for all units; a
    /// sample without a value is left out.
    pub(crate) fn estimate(&self, value: impl Fn(&[usize]) -> Option<f64>) -> Option<Estimate> {
        let all: Vec<usize> = (0..self.units).collect();
        let point = value(&all)?;
        let samples = self.drawn.chunks_exact(self.units.max(1));
        let mut samples: Vec<f64> = samples.filter_map(value).collect();
        samples.sort_unstable_by(f64::total_cmp);
        let tail = TAIL * samples.len() / SAMPLES;
        Some(Estimate {
            value: point,
            low: *samples.get(tail)?,
            high: *samples.get(samples.len() - 1 - tail)?,
        })
    }
}

/// `SplitMix64` (Steele, Lea and Flood 2014): a counter with an odd step, mixed. Results must be the same on every
/// platform and in every version, which a generator of another crate does not promise.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }
}

/// Returns a number below `end` (multiply-shift, Lemire 2019); the bias is below `end` / 2^64.
#[expect(clippy::cast_possible_truncation, reason = "below `end`")]
fn below(random: &mut SplitMix64, end: usize) -> usize {
    let product = u128::from(random.next()) * end as u128;
    (product >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of some of the numbers.
    fn mean(numbers: &[f64]) -> impl Fn(&[usize]) -> Option<f64> {
        |drawn| {
            let sum: f64 = drawn.iter().map(|&unit| numbers[unit]).sum();
            (!drawn.is_empty()).then(|| sum / drawn.len() as f64)
        }
    }

    #[test]
    fn one_unit_has_an_interval_of_width_zero() {
        let estimate = Resamples::new(1).estimate(mean(&[0.75])).expect("one unit");
        assert_eq!(
            (estimate.low, estimate.value, estimate.high),
            (0.75, 0.75, 0.75)
        );
    }

    #[test]
    fn no_units_have_no_estimate() {
        assert_eq!(Resamples::new(0).estimate(mean(&[])), None);
    }

    /// The standard error of a mean of 100 coin flips is 0.05, so 95 % are within 0.4 and 0.6.
    #[test]
    fn the_interval_of_a_mean_is_near_the_normal_approximation() {
        let flips: Vec<f64> = (0..100).map(|n| f64::from(n % 2)).collect();
        let estimate = Resamples::new(100)
            .estimate(mean(&flips))
            .expect("100 units");
        assert!((estimate.low - 0.402).abs() < 0.015, "{estimate:?}");
        assert!((estimate.high - 0.598).abs() < 0.015, "{estimate:?}");
    }

    /// The units differ much and the difference is constant, so only paired samples show it.
    #[test]
    fn a_difference_uses_the_same_samples_for_both() {
        let numbers: Vec<f64> = (0..20).map(f64::from).collect();
        let more: Vec<f64> = numbers.iter().map(|number| number + 0.5).collect();
        let difference = |drawn: &[usize]| Some(mean(&more)(drawn)? - mean(&numbers)(drawn)?);
        let estimate = Resamples::new(20).estimate(difference).expect("20 units");
        assert!((estimate.low - 0.5).abs() < 1e-9, "{estimate:?}");
        assert!((estimate.high - 0.5).abs() < 1e-9, "{estimate:?}");
    }

    /// The first outputs for the seed 0, from the reference implementation.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut random = SplitMix64(0);
        assert_eq!(random.next(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.next(), 0x6e78_9e6a_a1b9_65f4);
    }
}
