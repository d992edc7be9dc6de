//! [`Scaled`] and [`Calibration`]: a counter times a factor.

use super::TokenCounter;

/// A counter whose counts are multiplied by a factor and rounded up; see also [`Calibration`].
///
/// ```
/// use cupel_chat::{Encoding, Scaled, TokenCounter};
///
/// let counter = Scaled::new(Encoding::O200k, 1.2)?;
/// assert_eq!(counter.count("one two three four five"), 6); // 5 * 1.2
/// assert_eq!(counter.name(), "o200k_base x 1.2");
/// assert!(Scaled::new(Encoding::O200k, 0.0).is_err());
/// # Ok::<(), cupel_chat::InvalidFactor>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Scaled<C> {
    inner: C,
    factor: f64,
    name: String,
}

/// The error of a factor out of range.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("the factor {0} must be a number above 0 and at most 100")]
pub struct InvalidFactor(f64);

impl<C: TokenCounter> Scaled<C> {
    /// Multiplies the counts of `inner` by `factor`.
    ///
    /// # Errors
    ///
    /// [`InvalidFactor`] unless the factor is above 0 and at most 100.
    pub fn new(inner: C, factor: f64) -> Result<Self, InvalidFactor> {
        if !(factor > 0.0 && factor <= 100.0) {
            return Err(InvalidFactor(factor));
        }
        let name = format!("{} x {factor}", inner.name());
        Ok(Self {
            inner,
            factor,
            name,
        })
    }
}

impl<C: TokenCounter> TokenCounter for Scaled<C> {
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
    fn count(&self, text: &str) -> i64 {
        (self.inner.count(text) as f64 * self.factor).ceil() as i64
    }

    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
    fn count_once(&self, text: &str) -> i64 {
        (self.inner.count_once(text) as f64 * self.factor).ceil() as i64
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn is_estimate(&self) -> bool {
        true
    }

    fn identity(&self) -> Option<u64> {
        let inner = self.inner.identity()?;
        Some(inner.rotate_left(48) ^ self.factor.to_bits())
    }
}

/// The ratio of reported tokens to counted tokens, over any number of requests.
///
/// It is the sum of the reported tokens over the sum of the counted ones, so that long requests weigh
/// more than short ones.
///
/// ```
/// use cupel_chat::{Calibration, Heuristic, TokenCounter};
///
/// let mut calibration = Calibration::from_usage(1_100, 1_000)?;
/// calibration.observe(2_500, 2_000)?;
/// assert_eq!(calibration.factor(), 1.2);
/// let counter = calibration.apply(Heuristic)?;
/// assert_eq!(counter.name(), "heuristic x 1.2");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calibration {
    reported: i128,
    counted: i128,
}

/// The error of a token count that is not positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("reported tokens ({reported}) and counted tokens ({counted}) must both be above 0")]
pub struct InvalidUsage {
    reported: i64,
    counted: i64,
}

impl Calibration {
    /// Starts with one request: its tokens as reported by the provider, and as counted.
    ///
    /// # Errors
    ///
    /// [`InvalidUsage`] unless both numbers are above 0.
    pub fn from_usage(reported: i64, counted: i64) -> Result<Self, InvalidUsage> {
        let mut calibration = Self {
            reported: 0,
            counted: 0,
        };
        calibration.observe(reported, counted)?;
        Ok(calibration)
    }

    /// Adds another request.
    ///
    /// # Errors
    ///
    /// [`InvalidUsage`] unless both numbers are above 0.
    pub fn observe(&mut self, reported: i64, counted: i64) -> Result<(), InvalidUsage> {
        if reported <= 0 || counted <= 0 {
            return Err(InvalidUsage { reported, counted });
        }
        self.reported += i128::from(reported);
        self.counted += i128::from(counted);
        Ok(())
    }

    /// Returns reported tokens per counted token.
    pub fn factor(&self) -> f64 {
        self.reported as f64 / self.counted as f64
    }

    /// Returns `counter` multiplied by the factor.
    ///
    /// # Errors
    ///
    /// [`InvalidFactor`] if the factor is above 100; the numbers then belong to different requests.
    pub fn apply<C: TokenCounter>(&self, counter: C) -> Result<Scaled<C>, InvalidFactor> {
        Scaled::new(counter, self.factor())
    }
}
