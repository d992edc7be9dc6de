//! [`DecayScorer`] with its curves and clock.

use std::fmt;

use chrono::{DateTime, Duration, Utc};

use super::{Among, BuiltinScorer, Scorer};
use crate::fast::parallel;
use crate::model::number;
use crate::{ContextItem, CupelError};

/// A clock.
///
/// [`DecayScorer`] takes its clock from the caller. A fixed clock makes runs repeatable.
///
/// ```
/// use chrono::{DateTime, TimeZone, Utc};
/// use cupel::TimeProvider;
///
/// struct Noon;
///
/// impl TimeProvider for Noon {
///     fn now(&self) -> DateTime<Utc> {
///         Utc.with_ymd_and_hms(2026, 1, 1, 12, 0, 0).unwrap()
///     }
/// }
///
/// assert_eq!(Noon.now().to_rfc3339(), "2026-01-01T12:00:00+00:00");
/// ```
pub trait TimeProvider: Send + Sync {
    /// Returns the current instant.
    fn now(&self) -> DateTime<Utc>;

    /// Returns whether there is a clock to read. Defaults to `true`; [`SystemTimeProvider`] has none on
    /// `wasm32-unknown-unknown`, where a [`DecayScorer`] needs a fixed time or a clock of the caller.
    fn is_available(&self) -> bool {
        true
    }

    /// Returns this clock as data: the instant of a fixed clock, or `None` for the system clock.
    ///
    /// # Errors
    ///
    /// Defaults to [`ConfigError::not_data`](crate::config::ConfigError::not_data), for any other clock.
    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<Option<DateTime<Utc>>, super::ConfigError> {
        Err(super::ConfigError::not_data(std::any::type_name::<Self>()))
    }
}

/// A fixed clock.
impl TimeProvider for DateTime<Utc> {
    fn now(&self) -> DateTime<Utc> {
        *self
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<Option<DateTime<Utc>>, super::ConfigError> {
        Ok(Some(*self))
    }
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SystemTimeProvider;

impl TimeProvider for SystemTimeProvider {
    #[expect(clippy::disallowed_methods, reason = "this is the one system clock")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    fn is_available(&self) -> bool {
        !cfg!(all(target_family = "wasm", target_os = "unknown"))
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<Option<DateTime<Utc>>, super::ConfigError> {
        Ok(None)
    }
}

/// How a score falls with age.
///
/// The constructors return an error for an invalid curve. [`DecayScorer::new`] checks again, so no
/// scorer holds an invalid curve (DECAY-12).
///
/// ```
/// use chrono::Duration;
/// use cupel::DecayCurve;
///
/// let steps = vec![(Duration::hours(1), 0.9), (Duration::hours(24), 0.5)];
/// assert!(DecayCurve::step(steps).is_ok());
/// let error = DecayCurve::window(Duration::zero()).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "invalid scorer configuration: maxAge must be strictly positive"
/// );
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum DecayCurve {
    /// Halves with every half-life: `2^(-age / half_life)`.
    Exponential(Duration),
    /// 1.0 while younger than the age, 0.0 from then on.
    Window(Duration),
    /// The score of the first window that is longer than the age, else of the last one.
    Step(Vec<(Duration, f64)>),
}

impl DecayCurve {
    /// Returns a curve that halves with every `half_life`.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if the half-life is not positive.
    pub fn exponential(half_life: Duration) -> Result<Self, CupelError> {
        Self::Exponential(half_life).validated()
    }

    /// Returns a curve that is 1.0 while younger than `max_age`, else 0.0.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if the age is not positive.
    pub fn window(max_age: Duration) -> Result<Self, CupelError> {
        Self::Window(max_age).validated()
    }

    /// Returns a curve of windows, each with an upper age (exclusive) and a score. The first window
    /// that is longer than an item's age gives its score; older items get the score of the last.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if there is no window, an age is not positive or a score
    /// is not finite.
    pub fn step(windows: Vec<(Duration, f64)>) -> Result<Self, CupelError> {
        Self::Step(windows).validated()
    }

    fn validated(self) -> Result<Self, CupelError> {
        let positive = |duration: &Duration| *duration > Duration::zero();
        let fault = match &self {
            Self::Exponential(half_life) if !positive(half_life) => {
                "halfLife must be strictly positive"
            }
            Self::Window(max_age) if !positive(max_age) => "maxAge must be strictly positive",
            Self::Step(windows) if windows.is_empty() => "windows must be non-empty",
            Self::Step(windows) if !windows.iter().all(|(max_age, _)| positive(max_age)) => {
                "windows: each maxAge must be strictly positive"
            }
            Self::Step(windows) if !windows.iter().all(|(_, score)| score.is_finite()) => {
                "windows: each score must be finite"
            }
            _ => return Ok(self),
        };
        Err(CupelError::ScorerConfig(fault.to_owned()))
    }

    #[inline]
    fn score(&self, age: Duration) -> f64 {
        match self {
            Self::Exponential(half_life) => 2.0_f64.powf(-seconds(age) / seconds(*half_life)),
            Self::Window(max_age) => f64::from(u8::from(age < *max_age)),
            Self::Step(windows) => windows
                .iter()
                .find(|(max_age, _)| *max_age > age)
                .or(windows.last())
                .map_or(0.0, |(_, score)| *score),
        }
    }
}

fn seconds(duration: Duration) -> f64 {
    duration.num_seconds() as f64 + f64::from(duration.subsec_nanos()) / 1e9
}

/// Scores by age against a clock, independent of the other items.
///
/// Items from the future have age zero. Items without a timestamp get the null-timestamp score.
/// [`score_all`](Scorer::score_all) reads the clock once.
///
/// ```
/// use chrono::{Duration, TimeZone, Utc};
/// use cupel::{ContextItem, DecayCurve, DecayScorer, Scorer};
///
/// let noon = Utc.with_ymd_and_hms(2026, 1, 1, 12, 0, 0).unwrap();
/// let curve = DecayCurve::exponential(Duration::hours(24))?;
/// let scorer = DecayScorer::new(Box::new(noon), curve, 0.5)?;
///
/// let yesterday = ContextItem::builder("x", 1).timestamp(noon - Duration::hours(24)).build()?;
/// assert_eq!(scorer.score(&yesterday, &[]), 0.5);
/// # Ok::<(), cupel::CupelError>(())
/// ```
///
/// The scorer owns its clock and is not `Clone` (DECAY-18):
///
/// ```compile_fail
/// fn needs_clone<T: Clone>() {}
/// needs_clone::<cupel::DecayScorer>();
/// ```
pub struct DecayScorer {
    provider: Box<dyn TimeProvider + Send + Sync>,
    curve: DecayCurve,
    null_timestamp_score: f64,
}

impl DecayScorer {
    /// The null-timestamp score of [`with_curve`](Self::with_curve) (DECAY-13).
    pub const DEFAULT_NULL_TIMESTAMP_SCORE: f64 = 0.5;

    /// Creates a scorer from a clock, a curve, and the score of items without a timestamp.
    ///
    /// # Errors
    ///
    /// [`CupelError::ScorerConfig`] if the score is outside `[0, 1]` or the curve is invalid.
    pub fn new(
        provider: Box<dyn TimeProvider + Send + Sync>,
        curve: DecayCurve,
        null_timestamp_score: f64,
    ) -> Result<Self, CupelError> {
        let curve = curve.validated()?;
        if !(0.0..=1.0).contains(&null_timestamp_score) {
            return Err(CupelError::ScorerConfig(
                "nullTimestampScore must be in [0.0, 1.0]".to_owned(),
            ));
        }
        Ok(Self {
            provider,
            curve,
            null_timestamp_score,
        })
    }

    /// Creates a scorer from a clock and a curve. Items without a timestamp score
    /// [`DEFAULT_NULL_TIMESTAMP_SCORE`](Self::DEFAULT_NULL_TIMESTAMP_SCORE).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_curve(
        provider: impl TimeProvider + 'static,
        curve: DecayCurve,
    ) -> Result<Self, CupelError> {
        Self::new(
            Box::new(provider),
            curve,
            Self::DEFAULT_NULL_TIMESTAMP_SCORE,
        )
    }

    #[inline]
    fn score_at(&self, now: &Now, item: &ContextItem) -> f64 {
        match now.age(item) {
            Some(age) => self.curve.score(age.max(Duration::zero())),
            None => self.null_timestamp_score,
        }
    }
}

/// An instant, as a time and as a [`number`].
struct Now(DateTime<Utc>, i64);

impl Now {
    fn new(now: DateTime<Utc>) -> Self {
        Self(now, number::inline_time(Some(now)))
    }

    /// Returns the age of an item, or `None` without a timestamp.
    #[inline]
    fn age(&self, item: &ContextItem) -> Option<Duration> {
        let time = item.time_number();
        if self.1 < number::OUT_OF_LINE
            && time < number::OUT_OF_LINE
            && let Some(age) = self.1.checked_sub(time)
        {
            return Some(Duration::nanoseconds(age));
        }
        item.timestamp().map(|timestamp| self.0 - timestamp)
    }
}

impl fmt::Debug for DecayScorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecayScorer")
            .field("curve", &self.curve)
            .field("null_timestamp_score", &self.null_timestamp_score)
            .finish_non_exhaustive()
    }
}

impl Scorer for DecayScorer {
    fn score(&self, item: &ContextItem, _all_items: &[ContextItem]) -> f64 {
        if !self.provider.is_available() {
            return self.null_timestamp_score;
        }
        self.score_at(&Now::new(self.provider.now()), item)
    }

    fn builtin(&self) -> Option<&dyn BuiltinScorer> {
        Some(self)
    }

    /// Within a window or a step, ages are equal.
    fn ranks_by_time(&self) -> bool {
        matches!(self.curve, DecayCurve::Exponential(_))
    }

    #[cfg(feature = "serde")]
    fn to_config(&self) -> Result<super::ScorerConfig, super::ConfigError> {
        use crate::config::{CurveConfig, StepWindow};
        let window = |(max_age, score): &(Duration, f64)| StepWindow {
            max_age: *max_age,
            score: *score,
        };
        Ok(super::ScorerConfig::Decay {
            curve: match &self.curve {
                DecayCurve::Exponential(half_life) => CurveConfig::Exponential {
                    half_life: *half_life,
                },
                DecayCurve::Window(max_age) => CurveConfig::Window { max_age: *max_age },
                DecayCurve::Step(windows) => CurveConfig::Step {
                    windows: windows.iter().map(window).collect(),
                },
            },
            null_timestamp_score: self.null_timestamp_score,
            reference_time: self.provider.to_config()?,
        })
    }
}

impl BuiltinScorer for DecayScorer {
    fn score_among(&self, items: &[ContextItem], _: Among) -> Result<Vec<f64>, CupelError> {
        // Reading a clock that the platform lacks panics.
        if !self.provider.is_available() {
            return Err(CupelError::ScorerConfig(
                "this platform has no clock; give the decay scorer a reference_time".to_owned(),
            ));
        }
        let now = Now::new(self.provider.now());
        Ok(parallel::map(items, |_, item| self.score_at(&now, item)))
    }
}

#[cfg(feature = "serde")]
impl DecayScorer {
    pub(crate) fn from_config(
        curve: crate::config::CurveConfig,
        null_timestamp_score: f64,
        reference_time: Option<DateTime<Utc>>,
    ) -> Result<Self, super::ConfigError> {
        let clock: Box<dyn TimeProvider + Send + Sync> = match reference_time {
            Some(time) => Box::new(time),
            None => Box::new(SystemTimeProvider),
        };
        let curve = curve.into_built().map_err(|error| error.within("curve"))?;
        Self::new(clock, curve, null_timestamp_score).map_err(crate::config::refused_in(
            "null_timestamp_score",
            "null_timestamp_score must be from 0 to 1",
        ))
    }
}

#[cfg(feature = "serde")]
impl DecayCurve {
    pub(crate) fn exponential_from_config(half_life: Duration) -> Result<Self, super::ConfigError> {
        let refused = crate::config::refused_in("half_life", "half_life must be longer than 0");
        Self::exponential(half_life).map_err(refused)
    }

    pub(crate) fn window_from_config(max_age: Duration) -> Result<Self, super::ConfigError> {
        let refused = crate::config::refused_in("max_age", "max_age must be longer than 0");
        Self::window(max_age).map_err(refused)
    }

    pub(crate) fn step_from_config(
        windows: Vec<crate::config::StepWindow>,
    ) -> Result<Self, super::ConfigError> {
        let windows = crate::config::each("windows", windows, |window| {
            Self::window_from_config(window.max_age)?;
            Ok((window.max_age, window.score))
        })?;
        Self::step(windows).map_err(crate::config::invalid_in("windows"))
    }
}
