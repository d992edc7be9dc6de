//! The largest rendering within a number of tokens, with few counts.
//!
//! Counting tokens takes most of the time of shortening, so the search is made for few counts. With
//! a limit of 60 tokens, 3 tokens per line and 7 for the marker, from a guess of 20 lines:
//!
//! ```text
//! probe   tokens   still possible   next
//! 20      67       0..=19           the line through (0, 0) and (20, 67) has 60 at 17.9: 17
//! 17      58       17..=19          the line through (20, 67) and (17, 58) has 60 at 17.7: 18
//! 18      61       17               done
//! ```

use crate::TokenCounter;

/// A number of tokens by a counter, with the estimate that turns tokens into bytes.
#[derive(Clone, Copy)]
pub(super) struct Limit<'c> {
    pub(super) level: i64,
    pub(super) counter: &'c dyn TokenCounter,
    /// The bytes of 100 tokens, estimated from the beginning of the text.
    density: usize,
}

/// The tokens by which a prefix may exceed the whole text: a prefix can end inside a token, and
/// then its last bytes are several tokens, where the whole text has one.
const TORN: i64 = 32;

/// The bytes of 100 tokens that are assumed before anything is counted: four per token, as in
/// English prose. It is the first guess only; counts replace it.
const DENSITY: usize = 400;

/// From this level on a rendering within 2 % of it is good enough; below, the search is exact. Two
/// percent of 400 tokens are eight, about one line.
const COARSE: i64 = 400;

/// The counts after which a coarse search takes what it has.
const MOST_PROBES: usize = 8;

impl<'c> Limit<'c> {
    /// Returns the limit for a text, or `None` if the text is within it.
    ///
    /// Counts prefixes of doubling length, so that the cost depends on the level and not on the
    /// text.
    pub(super) fn exceeded(text: &str, level: i64, counter: &'c dyn TokenCounter) -> Option<Self> {
        let mut limit = Self {
            level,
            counter,
            density: DENSITY,
        };
        // The first prefix is a little longer than the estimate, so that one count is usually enough.
        let mut length = limit.bytes() + 256;
        while length < text.len() {
            let prefix = &text[..boundary(text, length)];
            let tokens = counter.count_once(prefix);
            // Far enough above the level that the whole text is above it, too. The prefix is the best estimate of
            // the density so far.
            if tokens > level.saturating_add(TORN) {
                let tokens = usize::try_from(tokens.max(1)).unwrap_or(usize::MAX);
                limit.density = prefix.len().saturating_mul(100) / tokens;
                return Some(limit);
            }
            length *= 2;
        }
        (counter.count(text) > level).then_some(limit)
    }

    /// Returns whether the text fits.
    pub(super) fn holds(self, text: &str) -> bool {
        Self::exceeded(text, self.level, self.counter).is_none()
    }

    /// Returns a share of the limit.
    pub(super) fn percent(self, percent: i64) -> Self {
        self.with_level(self.level.saturating_mul(percent) / 100)
    }

    pub(super) fn with_level(self, level: i64) -> Self {
        Self { level, ..self }
    }

    /// Returns the estimated length of a text with this number of tokens.
    pub(super) fn bytes(self) -> usize {
        // `level * density / 100`, in two parts that do not overflow. Bounded, so that callers may multiply it.
        let level = usize::try_from(self.level).unwrap_or(0);
        (level / 100)
            .saturating_mul(self.density)
            .min(usize::MAX / 64)
            + level % 100 * self.density / 100
    }

    /// Returns the largest size in `0..=max` whose rendering fits, and the rendering; `None` if
    /// size 0 does not fit. `render` must not get shorter with the size. From [`COARSE`] on the
    /// size may be smaller, if the rendering is almost full or the search takes long.
    ///
    /// `choose` returns what is rendered at a size. Many sizes in bytes keep the same lines, and a choice is rendered
    /// and counted once: of the 7 probes of a usual search, 2 or 3 are known.
    ///
    /// `base` estimates the tokens of size 0. The secant method with bisection as a fallback
    /// (Dekker 1969): tokens are almost linear in the size.
    pub(super) fn largest<C: PartialEq>(
        self,
        max: usize,
        guess: usize,
        base: i64,
        choose: impl Fn(usize) -> C,
        render: impl Fn(&C) -> String,
    ) -> Option<(usize, String)> {
        let is_coarse = self.level >= COARSE;
        // A coarse search aims 1 % below the limit, in the middle of what it accepts.
        let target = if is_coarse {
            self.level - self.level / 100
        } else {
            self.level
        };
        // Every size below `low` fits and no size from `end` on does. The search is over when they
        // meet.
        let mut fits: Option<(usize, usize)> = None;
        // The choices so far, with their renderings and tokens.
        let mut known: Vec<(C, String, i64)> = Vec::new();
        let (mut low, mut end) = (0, max.saturating_add(1));
        let mut last = (0, base);
        let mut size = guess.min(max);
        for probe in 1.. {
            let choice = choose(size);
            let place = known.iter().rposition(|(known, ..)| *known == choice);
            let place = place.unwrap_or_else(|| {
                let text = render(&choice);
                let tokens = self.counter.count_once(&text);
                known.push((choice, text, tokens));
                known.len() - 1
            });
            let tokens = known[place].2;
            if tokens <= self.level {
                fits = Some((size, place));
                low = size + 1;
            } else {
                end = size;
            }
            let is_full = tokens <= self.level && tokens >= self.level - self.level / 50;
            if low >= end || is_coarse && fits.is_some() && (is_full || probe >= MOST_PROBES) {
                break;
            }
            let next = secant(last, (size, tokens), target);
            last = (size, tokens);
            // The secant converges in a few steps on lines of equal length. One very long line
            // makes a step in the curve, at which it can stall: bisection halves the interval every
            // second time.
            size = if probe >= 4 && probe % 2 == 0 {
                low.midpoint(end)
            } else {
                next
            };
            // Without an upper bound the size grows at most fourfold.
            size = size
                .clamp(low, end - 1)
                .min(low.saturating_mul(4).max(guess));
        }
        fits.map(|(size, place)| (size, known.swap_remove(place).1))
    }
}

/// Returns the size at which the line through two points has `target` tokens.
fn secant(last: (usize, i64), here: (usize, i64), target: i64) -> usize {
    let ((last_size, last_tokens), (size, tokens)) = (last, here);
    let slope = (tokens - last_tokens) as f64 / (size as f64 - last_size as f64);
    let next = size as f64 + (target - tokens) as f64 / slope;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates; NaN is 0"
    )]
    let next = next as usize;
    next
}

/// Returns the last character boundary at or before a byte (`str::floor_char_boundary`, Rust 1.91).
pub(super) fn boundary(text: &str, byte: usize) -> usize {
    let byte = byte.min(text.len());
    (0..=byte)
        .rfind(|&byte| text.is_char_boundary(byte))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts words, and the number of its calls.
    struct Words(AtomicUsize);

    impl TokenCounter for Words {
        fn count(&self, text: &str) -> i64 {
            self.0.fetch_add(1, Ordering::Relaxed);
            i64::try_from(text.split_whitespace().count()).unwrap()
        }

        fn name(&self) -> &'static str {
            "words"
        }

        fn is_estimate(&self) -> bool {
            true
        }
    }

    #[test]
    fn the_search_finds_the_largest_size_with_few_counts() {
        let renderings: [fn(usize) -> usize; 4] = [
            |size| size,
            |size| 7 + size / 3,
            |size| size * size,
            |size| if size < 50 { 2 } else { 5_000 },
        ];
        for words in renderings {
            for (level, guess) in [
                (3, 0),
                (60, 900),
                (60, 1),
                (390, 10),
                (3_000, 1),
                (3_000, 900),
            ] {
                let counter = Words(0.into());
                let limit = Limit {
                    level,
                    counter: &counter,
                    density: DENSITY,
                };
                let render = |size: &usize| "w ".repeat(words(*size));
                let found = limit.largest(1_000, guess, 0, |size| size, render);
                let found = found.map(|(size, _)| size);
                let tokens = |size: usize| i64::try_from(words(size)).unwrap();
                let expected = (0..=1_000).rfind(|&size| tokens(size) <= level);
                if level < COARSE {
                    assert_eq!(found, expected, "{level} from {guess}");
                } else {
                    let used = tokens(found.unwrap());
                    assert!(used <= level, "{level} from {guess}: {used}");
                }
                assert!(counter.0.into_inner() <= 28, "{level} from {guess}");
            }
        }
    }

    #[test]
    fn a_choice_that_is_rendered_once_changes_nothing() {
        for step in [1, 3, 40, 500] {
            for (level, guess) in [(3, 0), (60, 900), (390, 10), (3_000, 1), (3_000, 900)] {
                let render = |size: &usize| "w ".repeat(7 + size / step * step);
                let search = |known: bool| {
                    let counter = Words(0.into());
                    let limit = Limit {
                        level,
                        counter: &counter,
                        density: DENSITY,
                    };
                    let found = if known {
                        let chosen = |size| size / step * step;
                        limit.largest(1_000, guess, 0, chosen, render)
                    } else {
                        limit.largest(1_000, guess, 0, |size| size, render)
                    };
                    (found, counter.0.into_inner())
                };
                let ((found, counts), (plain, all)) = (search(true), search(false));
                assert_eq!(found, plain, "{level} from {guess} by {step}");
                assert!(counts <= all, "{level} from {guess} by {step}");
            }
        }
    }
}
