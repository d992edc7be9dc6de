//! 95 % intervals by the percentile bootstrap (Efron 1979).

use cupel_conformance::testing::Random;

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The number of samples, and how many lie below and above the 95 % interval.
pub(super) const SAMPLES: usize = 2_000;
const TAIL: usize = SAMPLES / 40;

/// Samples of the units of a data set, drawn with replacement. They are the same in every execution.
pub(super) struct Resamples {
    units: usize,
    /// The drawn units of all samples.
    drawn: Vec<usize>,
}

impl Resamples {
    /// Draws samples of `units` units.
    pub(super) fn new(units: usize) -> Self {
        let mut random = Random::new(0);
        let drawn = (0..SAMPLES * units)
            .map(|_| below(&mut random, units))
            .collect();
        Self { units, drawn }
    }

    /// Returns the value of all units and its interval. `None` if `value` has none for all units; a
    /// sample without a value is left out.
    pub(super) fn estimate(&self, value: impl Fn(&[usize]) -> Option<f64>) -> Option<Estimate> {
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

/// Returns a number below `end` (multiply-shift, Lemire 2019); the bias is below `end` / 2^64.
#[expect(clippy::cast_possible_truncation, reason = "below `end`")]
fn below(random: &mut Random, end: usize) -> usize {
    let product = u128::from(random.bits()) * end as u128;
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
        let mut random = Random::new(0);
        assert_eq!(random.bits(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.bits(), 0x6e78_9e6a_a1b9_65f4);
    }
}
