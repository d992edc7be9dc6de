//! [`ContextBudget`]: the token limits of a run.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::{ContextKind, saturate};
use crate::CupelError;

/// The token limits of a run.
///
/// - `max_tokens`: the hard limit, usually the model's context window.
/// - `target_tokens`: the soft limit that the slicer fills.
/// - `output_reserve`: tokens reserved for the model's answer.
/// - reserved slots: tokens reserved per kind.
/// - safety margin: a percentage subtracted from the rest, for token counts that are estimates.
///
/// A budget is validated when it is built (BUDGET-8).
///
/// ```
/// use cupel::ContextBudget;
///
/// let budget = ContextBudget::builder(128_000)
///     .target_tokens(100_000)
///     .output_reserve(4_000)
///     .build()?;
/// assert_eq!(budget.target_tokens(), 100_000);
///
/// let error = ContextBudget::with_target(100, 200).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "invalid budget: target_tokens (200) must be <= max_tokens (100)"
/// );
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct ContextBudget {
    max_tokens: i64,
    target_tokens: i64,
    output_reserve: i64,
    reserved_slots: HashMap<ContextKind, i64>,
    estimation_safety_margin_percent: f64,
}

impl ContextBudget {
    /// Creates a budget from all its fields.
    ///
    /// # Errors
    ///
    /// Returns [`CupelError::InvalidBudget`] with the first rule that is broken, in the
    /// specification's order: a negative `max_tokens` or `target_tokens`, a target above
    /// the maximum, a reserve that is negative or above the maximum, a margin outside
    /// `[0, 100]`, a negative slot.
    pub fn new(
        max_tokens: i64,
        target_tokens: i64,
        output_reserve: i64,
        reserved_slots: HashMap<ContextKind, i64>,
        estimation_safety_margin_percent: f64,
    ) -> Result<Self, CupelError> {
        let invalid = |broken: String| Err(CupelError::InvalidBudget(broken));
        if max_tokens < 0 {
            return invalid(format!("max_tokens ({max_tokens}) must be >= 0"));
        }
        if target_tokens < 0 {
            return invalid(format!("target_tokens ({target_tokens}) must be >= 0"));
        }
        if target_tokens > max_tokens {
            return invalid(format!(
                "target_tokens ({target_tokens}) must be <= max_tokens ({max_tokens})"
            ));
        }
        if output_reserve < 0 {
            return invalid(format!("output_reserve ({output_reserve}) must be >= 0"));
        }
        if output_reserve > max_tokens {
            return invalid(format!(
                "output_reserve ({output_reserve}) must be <= max_tokens ({max_tokens})"
            ));
        }
        if !(0.0..=100.0).contains(&estimation_safety_margin_percent) {
            return invalid(format!(
                "estimation_safety_margin_percent ({estimation_safety_margin_percent}) must be in [0.0, 100.0]"
            ));
        }
        let negative = reserved_slots.iter().filter(|(_, slot)| **slot < 0);
        if let Some((kind, _)) = negative.min_by_key(|(kind, _)| *kind) {
            return invalid(format!(
                "reserved slot count for kind '{kind}' must be >= 0"
            ));
        }
        Ok(Self {
            max_tokens,
            target_tokens,
            output_reserve,
            reserved_slots,
            estimation_safety_margin_percent,
        })
    }

    /// Creates a builder from the hard limit.
    pub fn builder(max_tokens: i64) -> ContextBudgetBuilder {
        ContextBudgetBuilder(Self::unchecked(max_tokens, max_tokens))
    }

    /// Creates a budget from the hard and the soft limit, with defaults for the rest.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_target(max_tokens: i64, target_tokens: i64) -> Result<Self, CupelError> {
        Self::builder(max_tokens)
            .target_tokens(target_tokens)
            .build()
    }

    /// Returns this budget with other limits and the same reserve, slots and margin.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_limits(&self, max_tokens: i64, target_tokens: i64) -> Result<Self, CupelError> {
        Self::new(
            max_tokens,
            target_tokens,
            self.output_reserve,
            self.reserved_slots.clone(),
            self.estimation_safety_margin_percent,
        )
    }

    /// Returns this budget with both limits larger by `tokens`; `None` beyond 64 bits.
    pub(crate) fn grown_by(&self, tokens: i64) -> Option<Self> {
        let target_tokens = self.target_tokens.checked_add(tokens)?;
        let max_tokens = self.max_tokens.checked_add(tokens)?;
        self.with_limits(max_tokens, target_tokens).ok()
    }

    /// Returns the hard limit.
    pub fn max_tokens(&self) -> i64 {
        self.max_tokens
    }

    /// Returns the soft limit.
    pub fn target_tokens(&self) -> i64 {
        self.target_tokens
    }

    /// Returns the tokens reserved for the model's answer.
    pub fn output_reserve(&self) -> i64 {
        self.output_reserve
    }

    /// Returns the tokens reserved per kind.
    pub fn reserved_slots(&self) -> &HashMap<ContextKind, i64> {
        &self.reserved_slots
    }

    /// Returns the percentage subtracted from the effective limits.
    pub fn estimation_safety_margin_percent(&self) -> f64 {
        self.estimation_safety_margin_percent
    }

    /// Returns the maximum number of tokens of the model's input: `max_tokens - output_reserve`.
    #[must_use]
    pub fn input_limit(&self) -> i64 {
        self.max_tokens - self.output_reserve
    }

    /// Returns the maximum number of tokens of a window: the smaller of the target and
    /// [`input_limit`](Self::input_limit) (BUDGET-11).
    #[must_use]
    pub fn window_limit(&self) -> i64 {
        self.target_tokens.min(self.input_limit())
    }

    /// Returns the output reserve plus all reserved slots.
    #[must_use]
    pub fn total_reserved(&self) -> i64 {
        saturate(i128::from(self.output_reserve) + self.slot_tokens())
    }

    /// Returns `max_tokens` minus [`total_reserved`](Self::total_reserved). It can be negative.
    #[must_use]
    pub fn unreserved_capacity(&self) -> i64 {
        saturate(i128::from(self.input_limit()) - self.slot_tokens())
    }

    /// Returns whether [`unreserved_capacity`](Self::unreserved_capacity) is positive.
    #[must_use]
    pub fn has_capacity(&self) -> bool {
        self.unreserved_capacity() > 0
    }

    /// Returns the budget that the slicer receives for a total of pinned tokens (SLICE-1 to SLICE-8).
    ///
    /// Reserve, slots and margin are subtracted from its two limits; the result has none of its own.
    ///
    /// ```
    /// use cupel::{ContextBudget, ContextKind};
    ///
    /// let budget = ContextBudget::builder(1_000)
    ///     .target_tokens(800)
    ///     .output_reserve(100)
    ///     .reserved_slot(ContextKind::memory(), 50)
    ///     .safety_margin_percent(10.0)
    ///     .build()?;
    /// let effective = budget.effective(150);
    /// assert_eq!(effective.max_tokens(), 630); // (1000 - 100 - 150 - 50) * 0.9
    /// assert_eq!(effective.target_tokens(), 540); // (800 - 150 - 50) * 0.9
    /// # Ok::<(), cupel::CupelError>(())
    /// ```
    pub fn effective(&self, pinned_tokens: i64) -> Self {
        let committed = i128::from(pinned_tokens) + self.slot_tokens();
        let left = |limit: i64| saturate((i128::from(limit) - committed).max(0));
        let max = left(self.input_limit());
        let target = left(self.target_tokens).min(max);
        Self::limits(self.less_margin(max), self.less_margin(target))
    }

    /// Subtracts the safety margin from an effective limit. Monotonic in `tokens`.
    pub(crate) fn less_margin(&self, tokens: i64) -> i64 {
        if self.estimation_safety_margin_percent == 0.0 {
            return tokens;
        }
        let multiplier = 1.0 - self.estimation_safety_margin_percent / 100.0;
        floor_tokens(tokens as f64 * multiplier)
    }

    /// Creates a budget from two limits that are known to be valid.
    pub(crate) fn limits(max_tokens: i64, target_tokens: i64) -> Self {
        debug_assert!(0 <= target_tokens && target_tokens <= max_tokens);
        Self::unchecked(max_tokens, target_tokens)
    }

    fn unchecked(max_tokens: i64, target_tokens: i64) -> Self {
        Self {
            max_tokens,
            target_tokens,
            output_reserve: 0,
            reserved_slots: HashMap::new(),
            estimation_safety_margin_percent: 0.0,
        }
    }

    /// Returns the sum of the reserved slots.
    pub(crate) fn slot_tokens(&self) -> i128 {
        self.reserved_slots.values().copied().map(i128::from).sum()
    }
}

/// Converts a number of tokens to a budget with `max_tokens` and `target_tokens` of that number and
/// nothing reserved. A negative number is [`CupelError::InvalidBudget`].
///
/// ```
/// use cupel::ContextBudget;
///
/// let budget = ContextBudget::try_from(8_000)?;
/// assert_eq!(budget, ContextBudget::with_target(8_000, 8_000)?);
///
/// let error = ContextBudget::try_from(-1).unwrap_err();
/// assert_eq!(error.to_string(), "invalid budget: max_tokens (-1) must be >= 0");
/// # Ok::<(), cupel::CupelError>(())
/// ```
impl TryFrom<i64> for ContextBudget {
    type Error = CupelError;

    fn try_from(tokens: i64) -> Result<Self, CupelError> {
        Self::builder(tokens).build()
    }
}

impl fmt::Debug for ContextBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots: BTreeMap<_, _> = self.reserved_slots.iter().collect();
        f.debug_struct("ContextBudget")
            .field("max_tokens", &self.max_tokens)
            .field("target_tokens", &self.target_tokens)
            .field("output_reserve", &self.output_reserve)
            .field("reserved_slots", &slots)
            .field(
                "estimation_safety_margin_percent",
                &self.estimation_safety_margin_percent,
            )
            .finish()
    }
}

/// Rounds a non-negative number of tokens down, as the specification's `floor`.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
pub(crate) fn floor_tokens(tokens: f64) -> i64 {
    tokens.floor() as i64
}

/// Builds a [`ContextBudget`]. Settings have the specification's defaults (BUDGET-9).
///
/// ```
/// use cupel::ContextBudget;
///
/// let budget = ContextBudget::builder(8_000).build()?;
/// assert_eq!(budget.target_tokens(), 8_000);
/// assert_eq!(budget.output_reserve(), 0);
/// # Ok::<(), cupel::CupelError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ContextBudgetBuilder(ContextBudget);

impl ContextBudgetBuilder {
    /// Sets the soft limit. Defaults to `max_tokens`.
    pub fn target_tokens(mut self, tokens: i64) -> Self {
        self.0.target_tokens = tokens;
        self
    }

    /// Sets the tokens reserved for the model's answer. Defaults to 0.
    pub fn output_reserve(mut self, tokens: i64) -> Self {
        self.0.output_reserve = tokens;
        self
    }

    /// Reserves tokens for a kind.
    pub fn reserved_slot(mut self, kind: ContextKind, tokens: i64) -> Self {
        self.0.reserved_slots.insert(kind, tokens);
        self
    }

    /// Sets the percentage subtracted from the effective limits. Defaults to 0.
    pub fn safety_margin_percent(mut self, percent: f64) -> Self {
        self.0.estimation_safety_margin_percent = percent;
        self
    }

    /// Builds the budget.
    ///
    /// # Errors
    ///
    /// As [`ContextBudget::new`].
    pub fn build(self) -> Result<ContextBudget, CupelError> {
        ContextBudget::new(
            self.0.max_tokens,
            self.0.target_tokens,
            self.0.output_reserve,
            self.0.reserved_slots,
            self.0.estimation_safety_margin_percent,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_both_limits_unless_it_is_negative() {
        for tokens in [0, 1, i64::MAX] {
            let budget = ContextBudget::new(tokens, tokens, 0, HashMap::new(), 0.0);
            assert_eq!(ContextBudget::try_from(tokens), budget);
        }
        for tokens in [-1, i64::MIN] {
            let message = format!("max_tokens ({tokens}) must be >= 0");
            let error = CupelError::InvalidBudget(message);
            assert_eq!(ContextBudget::try_from(tokens), Err(error));
        }
    }
}
