//! Parses budgets such as `8k` and `70%`, and derives the default budget of a chat.

use crate::chat::Chat;
use crate::models::{Model, UnknownModel};

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

/// The tokens kept for the answer, unless a request asks for more: what many clients ask for by default. A small
/// window gives at most a quarter of itself.
///
/// A request that asks for less keeps the same. The cuts of a chat depend on its budget, and a conversation has
/// requests with other limits, such as a title of 50 tokens. With the limit of each the budget would move, and all
/// cuts with it.
pub const DEFAULT_RESERVE: i64 = 4_096;

/// The budget of a chat for which none was given, and what it follows from; see
/// [`Chat::default_budget`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DefaultBudget {
    /// The most tokens of the request: the window less the reserve, or the input limit if that is less.
    pub tokens: i64,
    /// The tokens of the request and the answer together.
    pub window: i64,
    /// The field of the request that states the window; `None` if it is the model's.
    pub window_field: Option<&'static str>,
    /// The model, if it is known.
    pub model: Option<&'static Model>,
    /// The tokens kept for the answer.
    pub reserve: i64,
    /// The field of the request that states the reserve; `None` if it is the [`DEFAULT_RESERVE`], which the request
    /// does not exceed.
    pub reserve_field: Option<&'static str>,
}

impl DefaultBudget {
    /// Returns the input limit of the model, if it is what limits the request.
    pub fn input_limit(&self) -> Option<i64> {
        let limit = self.model?.input_limit?;
        (limit == self.tokens && limit < self.window - self.reserve).then_some(limit)
    }
}

/// Why a chat has no default budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefaultBudgetError {
    /// Neither the chat nor the caller names a model, and no field states a window.
    #[error("the chat names no model; give the model, or the budget in tokens")]
    NoModel,
    /// The model is not known.
    #[error(transparent)]
    UnknownModel(#[from] UnknownModel),
    /// The answer takes the whole window.
    #[error(
        "`{field}` reserves {reserve} tokens for the answer, all {window} of the window; lower it"
    )]
    NothingLeft {
        /// The field of the request.
        field: &'static str,
        /// Its tokens.
        reserve: i64,
        /// The tokens of the window.
        window: i64,
    },
}

impl Chat {
    /// Returns the budget that the model and the fields of the request imply. `model` takes the place of the
    /// model that the request names.
    ///
    /// | part | from |
    /// |---|---|
    /// | window | the field [`window_limit`](Self::window_limit), otherwise [`Model::window`] |
    /// | reserve | [`DEFAULT_RESERVE`], at most a quarter of the window; the field [`output_limit`](Self::output_limit) if it is more |
    /// | input limit | [`Model::input_limit`] |
    ///
    /// # Errors
    ///
    /// [`DefaultBudgetError`].
    ///
    /// ```
    /// use cupel_chat::Chat;
    ///
    /// let text = r#"{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}"#;
    /// let budget = Chat::parse(text, None)?.default_budget(None)?;
    /// assert_eq!((budget.window, budget.reserve, budget.tokens), (128_000, 4_096, 123_904));
    /// let budget = Chat::parse(text, None)?.default_budget(Some("gpt-5"))?;
    /// assert_eq!((budget.input_limit(), budget.tokens), (Some(272_000), 272_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn default_budget(&self, model: Option<&str>) -> Result<DefaultBudget, DefaultBudgetError> {
        let known = model.or(self.model()).map(Model::find).transpose();
        let (model, window_field, window) = match (self.window_limit(), known) {
            // A stated window needs no model.
            (Some((field, window)), known) => (known.ok().flatten(), Some(field), window),
            (None, known) => {
                let model = known?.ok_or(DefaultBudgetError::NoModel)?;
                (Some(model), None, model.window)
            }
        };
        let least = DEFAULT_RESERVE.min(window / 4);
        let (reserve_field, reserve) = match self.output_limit() {
            Some((field, reserve)) if reserve >= window => {
                return Err(DefaultBudgetError::NothingLeft {
                    field,
                    reserve,
                    window,
                });
            }
            Some((field, reserve)) if reserve >= least => (Some(field), reserve),
            _ => (None, least),
        };
        let input_limit = model.and_then(|model| model.input_limit);
        Ok(DefaultBudget {
            tokens: (window - reserve).min(input_limit.unwrap_or(i64::MAX)),
            window,
            window_field,
            model,
            reserve,
            reserve_field,
        })
    }
}
