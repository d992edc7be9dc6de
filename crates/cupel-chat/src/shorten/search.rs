//! The largest rendering within a number of tokens, with few counts.

use crate::TokenCounter;

/// A number of tokens by a counter.
#[derive(Clone, Copy)]
pub(super) struct Limit<'c> {
    pub(super) level: i64,
    pub(super) counter: &'c dyn TokenCounter,
}

/// The tokens by which a prefix may exceed the whole text: a prefix can end inside a token.
const TORN: i64 = 32;

/// The bytes of a token that are assumed before anything is counted.
const BYTES_PER_TOKEN: usize = 4;

/// From this level on a rendering within 2 % of it is good enough; below, the search is exact.
const COARSE: i64 = 400;

impl Limit<'_> {
    /// Returns a share of the limit.
    pub(super) fn percent(self, percent: i64) -> Self {
        let level = self.level.saturating_mul(percent) / 100;
        Self { level, ..self }
    }

    /// Returns whether the text fits. Counts prefixes of doubling length, so that the cost depends on
    /// the limit and not on the text.
    pub(super) fn holds(self, text: &str) -> bool {
        let mut length = self.bytes() + 256;
        while length < text.len() {
            let prefix = &text[..boundary(text, length)];
            if self.counter.count(prefix) > self.level.saturating_add(TORN) {
                return false;
            }
            length *= 2;
        }
        self.counter.count(text) <= self.level
    }

    /// Returns the estimated length of a text with this number of tokens.
    pub(super) fn bytes(self) -> usize {
        usize::try_from(self.level)
            .unwrap_or(0)
            .saturating_mul(BYTES_PER_TOKEN)
            .min(usize::MAX / 4)
    }

    /// Returns the largest size in `0..=max` whose rendering fits, and the rendering; `None` if size 0
    /// does not fit. `render` must not get shorter with the size.
    ///
    /// Interpolation search: tokens are almost linear in the size.
    pub(super) fn largest(
        self,
        max: usize,
        guess: usize,
        render: impl Fn(usize) -> String,
    ) -> Option<(usize, String)> {
        let mut fits: Option<(usize, i64, String)> = None;
        let mut exceeds: Option<(usize, i64)> = None;
        let mut size = guess.min(max);
        for probe in 0.. {
            let text = render(size);
            let tokens = self.counter.count(&text);
            if tokens <= self.level {
                fits = Some((size, tokens, text));
            } else {
                exceeds = Some((size, tokens));
            }
            let (low, low_tokens) = fits
                .as_ref()
                .map_or((0, 0), |&(size, tokens, _)| (size, tokens));
            let next = if fits.is_some() { low + 1 } else { 0 };
            let end = exceeds.map_or(max.saturating_add(1), |(size, _)| size);
            let enough = self.level >= COARSE && low_tokens * 50 >= self.level * 49;
            if next >= end || enough {
                break;
            }
            let estimate = match exceeds {
                Some((high, high_tokens)) => {
                    interpolate(low, high, self.level - low_tokens, high_tokens - low_tokens)
                }
                None => interpolate(0, low.max(1), self.level, low_tokens.max(1)).min(low * 4 + 4),
            };
            // Bisection ends the search where the tokens are not linear.
            let bisect = exceeds.is_some() && probe >= 4;
            size = if bisect { low.midpoint(end) } else { estimate };
            size = size.clamp(next, end - 1);
        }
        fits.map(|(size, _, text)| (size, text))
    }
}

/// Returns the point between `low` and `high` at the fraction `part / whole`.
fn interpolate(low: usize, high: usize, part: i64, whole: i64) -> usize {
    let span = (high - low) as f64 * part as f64 / whole.max(1) as f64;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a size within the text; saturates"
    )]
    let span = span as usize;
    low.saturating_add(span)
}

/// Returns the last character boundary at or before a byte (`str::floor_char_boundary`, Rust 1.91).
pub(super) fn boundary(text: &str, byte: usize) -> usize {
    let byte = byte.min(text.len());
    (0..=byte)
        .rfind(|&byte| text.is_char_boundary(byte))
        .unwrap_or(0)
}
