//! Parses budgets such as `8k` and `70%`.

/// The error of parsing a budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid budget `{text}`: {problem}; write tokens as 8000, 200_000, 128k (128,000) or 1.5M, or a share of a model's window as 70%"
)]
pub struct BudgetError {
    text: String,
    problem: BudgetProblem,
}

impl BudgetError {
    /// Returns what is wrong with the text.
    pub fn problem(&self) -> BudgetProblem {
        self.problem
    }
}

/// Why a text is not a budget.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BudgetProblem {
    /// There is no text.
    #[error("it is empty")]
    Empty,
    /// The number is below zero.
    #[error("it is negative")]
    Negative,
    /// Digits are grouped by commas.
    #[error("remove the comma")]
    Comma,
    /// The text is not a decimal number.
    #[error("it is not a number")]
    NotANumber,
    /// The letter after the number is not a unit.
    #[error("unknown unit; expected k, M or %")]
    UnknownUnit,
    /// The number of tokens has a fraction.
    #[error("it is not a whole number of tokens")]
    Fraction,
    /// A share is given without a window.
    #[error("a share needs a model whose window is known")]
    UnknownWindow,
    /// The share is above 100%.
    #[error("a share is at most 100%")]
    ShareTooLarge,
    /// The budget is zero.
    #[error("it leaves no tokens")]
    Zero,
    /// The budget is above 10^12 tokens.
    #[error("it is larger than any window")]
    TooLarge,
}

/// The largest budget: above any context window, and far below overflow.
const MAX_TOKENS: i64 = 1_000_000_000_000;

/// Parses a budget: a number of tokens such as `8000`, `128k` (128,000) or `1.5M`, or a share of a
/// model's `window` such as `70%`.
///
/// # Errors
///
/// [`BudgetError`] if the text is neither, if the result is not a whole number of tokens from 1 to
/// 10^12, or for a share if `window` is `None`.
///
/// ```
/// use cupel_chat::parse_budget;
///
/// assert_eq!(parse_budget("128k", None), Ok(128_000));
/// assert_eq!(parse_budget("200_000", None), Ok(200_000));
/// assert_eq!(parse_budget("1.5k", None), Ok(1_500));
/// assert_eq!(parse_budget("70%", Some(128_000)), Ok(89_600));
/// assert_eq!(
///     parse_budget("-5", None).unwrap_err().to_string(),
///     "invalid budget `-5`: it is negative; write tokens as 8000, 200_000, 128k (128,000) or 1.5M, \
///      or a share of a model's window as 70%"
/// );
/// ```
pub fn parse_budget(text: &str, window: Option<i64>) -> Result<i64, BudgetError> {
    tokens(text.trim(), window).map_err(|problem| BudgetError {
        text: text.to_owned(),
        problem,
    })
}

fn tokens(text: &str, window: Option<i64>) -> Result<i64, BudgetProblem> {
    if text.is_empty() {
        return Err(BudgetProblem::Empty);
    }
    if text.starts_with('-') {
        return Err(BudgetProblem::Negative);
    }
    let (digits, unit) = match text.char_indices().last() {
        Some((end, unit)) if unit.is_alphabetic() || unit == '%' => {
            (text[..end].trim_end(), Some(unit))
        }
        _ => (text, None),
    };
    let number = Decimal::parse(digits).ok_or(if digits.contains(',') {
        BudgetProblem::Comma
    } else {
        BudgetProblem::NotANumber
    })?;
    let tokens = match unit {
        None => number.times(1)?,
        Some('k' | 'K') => number.times(1_000)?,
        Some('m' | 'M') => number.times(1_000_000)?,
        Some('%') => {
            let window = window.ok_or(BudgetProblem::UnknownWindow)?;
            if number.is_above(100) {
                return Err(BudgetProblem::ShareTooLarge);
            }
            number.share(window)
        }
        Some(_) => return Err(BudgetProblem::UnknownUnit),
    };
    match tokens {
        ..=0 => Err(BudgetProblem::Zero),
        tokens if tokens > i128::from(MAX_TOKENS) => Err(BudgetProblem::TooLarge),
        tokens => i64::try_from(tokens).map_err(|_| BudgetProblem::TooLarge),
    }
}

/// A decimal number: `digits / 10^decimals`.
struct Decimal {
    digits: i128,
    decimals: u32,
}

impl Decimal {
    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let grouped = |part: &str| {
            part.bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'_')
                && !part.starts_with('_')
                && !part.ends_with('_')
        };
        if whole.is_empty() || text.ends_with('.') || !grouped(whole) || !grouped(fraction) {
            return None;
        }
        let digits: String = format!("{whole}{fraction}").replace('_', "");
        let decimals = fraction.bytes().filter(u8::is_ascii_digit).count();
        if digits.len() > 24 {
            // Above every limit, but still a number.
            return (decimals == 0).then_some(Self {
                digits: i128::MAX >> 24,
                decimals: 0,
            });
        }
        Some(Self {
            digits: digits.parse().ok()?,
            decimals: u32::try_from(decimals).ok()?,
        })
    }

    fn times(&self, factor: i128) -> Result<i128, BudgetProblem> {
        let scale = 10_i128.pow(self.decimals);
        let product = self.digits.saturating_mul(factor);
        if product % scale != 0 {
            return Err(BudgetProblem::Fraction);
        }
        Ok(product / scale)
    }

    fn is_above(&self, limit: i128) -> bool {
        self.digits > limit * 10_i128.pow(self.decimals)
    }

    /// Returns this many percent of `of`, rounded down.
    fn share(&self, of: i64) -> i128 {
        self.digits.saturating_mul(of.into()) / (10_i128.pow(self.decimals) * 100)
    }
}
