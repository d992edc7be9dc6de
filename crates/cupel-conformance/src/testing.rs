//! Reproducible random numbers for this project. Not part of the stable interface.

use std::ops::RangeInclusive;

/// The `SplitMix64` generator (Steele, Lea and Flood 2014): the same numbers on every platform.
///
/// ```
/// use cupel_conformance::testing::Random;
///
/// let mut random = Random::new(1);
/// assert!(random.below(6) < 6);
/// assert!([2, 3, 5].contains(&random.pick(&[2, 3, 5])));
/// ```
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Creates a generator. Equal seeds give equal numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Returns a number below `bound`, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        let bits = self.bits() % u64::try_from(bound).unwrap_or(u64::MAX);
        usize::try_from(bits).unwrap_or(0)
    }

    /// Returns a number in a range that is not empty.
    pub fn within(&mut self, range: RangeInclusive<i64>) -> i64 {
        let (first, last) = range.into_inner();
        let width = last.wrapping_sub(first).cast_unsigned();
        let offset = match width.checked_add(1) {
            Some(count) => self.bits() % count,
            None => self.bits(),
        };
        first.wrapping_add(offset.cast_signed())
    }

    /// Returns a number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns one of `choices`, which is not empty.
    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}

/// Returns the number of random cases per property: the environment variable `CUPEL_CASES`, or
/// `default`.
///
/// # Panics
///
/// If the variable is not a number.
pub fn cases(default: u32) -> u32 {
    match std::env::var("CUPEL_CASES") {
        Ok(cases) => cases.parse().expect("CUPEL_CASES is a number"),
        Err(_) => default,
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    /// The first outputs of the reference implementation, `splitmix64.c`, for the seed 1234567.
    #[test]
    fn the_numbers_are_those_of_the_reference_implementation() {
        let mut random = Random::new(1_234_567);
        let numbers = [(); 3].map(|()| random.bits());
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut random = Random::new(1);
        for _ in 0..1_000 {
            assert!(random.below(3) < 3);
            assert!((-1..=1).contains(&random.within(-1..=1)));
            assert!((0.0..1.0).contains(&random.unit()));
            random.within(i64::MIN..=i64::MAX);
        }
        assert_eq!(random.within(i64::MAX..=i64::MAX), i64::MAX);
    }
}
