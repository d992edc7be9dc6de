//! [`BudgetOptions`]: the limits of a run, and the budget that follows from them and the input.

use std::collections::BTreeMap;
use std::fmt;

use cupel::{ContextBudget, ContextKind};
use cupel_chat::{BudgetError, Chat, DefaultBudgetError, Model, parse_budget};

use crate::argument::{Argument, Dialect};
use crate::error::{Error, Fault};
use crate::text::grouped;

/// An amount of tokens as it is written: `8000`, `8k`, `1.5M`, or a share of the model's window such as `70%`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Amount(String);

impl From<i64> for Amount {
    fn from(tokens: i64) -> Self {
        Self(tokens.to_string())
    }
}

impl From<String> for Amount {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Amount {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Amount {
    /// Returns the tokens of a budget; `window` is what a share is of.
    fn budget(&self, window: Option<i64>) -> Result<i64, BudgetError> {
        parse_budget(&self.0, window)
    }

    /// Returns the tokens of an amount that may be zero.
    fn tokens(&self, window: Option<i64>) -> Result<i64, BudgetError> {
        match self.0.trim() {
            "0" => Ok(0),
            text => parse_budget(text, window),
        }
    }

    fn is_share(&self) -> bool {
        self.0.contains('%')
    }

    /// Returns the tokens; `None` for a share.
    pub(crate) fn absolute(&self) -> Option<i64> {
        self.tokens(None).ok()
    }

    /// Reads the amount without the window that a share is of.
    ///
    /// # Errors
    ///
    /// [`Fault::Amount`].
    pub(crate) fn check(&self, argument: Argument) -> Result<(), Error> {
        // Any window large enough that a valid percentage of it is a valid amount.
        const ANY_WINDOW: Option<i64> = Some(1_000_000);
        let read = match argument {
            Argument::Budget => self.budget(ANY_WINDOW),
            _ => self.tokens(ANY_WINDOW),
        };
        read.map(drop).map_err(invalid(argument))
    }
}

/// The limits of a run. Each takes precedence over the input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BudgetOptions {
    /// The token limit. Defaults to the budget of the request, for a chat to the context window of its model less
    /// 4,096 tokens for the answer, or those that the request asks for if they are more, and at most what the model
    /// accepts as input.
    pub budget: Option<Amount>,
    /// The tokens to aim for, at most the limit. Defaults to the limit.
    pub target: Option<Amount>,
    /// The tokens reserved for the answer of the model, at most the limit. Without a budget
    /// defaults to 4,096, or to those that the request asks for if they are more.
    pub reserve: Option<Amount>,
    /// The safety margin for estimated counts, in percent from 0 to 100. Defaults to 0.
    pub margin: Option<f64>,
    /// Tokens reserved for kinds of items. Defaults to none.
    pub slots: Vec<(ContextKind, i64)>,
    /// The model, for its context window and its encoding. Defaults to that of the chat.
    pub model: Option<String>,
}

/// The budget of a run without one in the options or in the document.
pub(crate) enum DefaultBudget<'a> {
    /// An error.
    Missing,
    /// These tokens.
    Tokens(i64),
    /// What the model and the fields of the request imply, see [`Chat::default_budget`].
    OfChat(&'a Chat),
}

/// How a budget was chosen that neither the input nor the caller states.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetOrigin {
    /// The window, such as `window of gpt-4o (128,000)`.
    pub window: String,
    /// What of it is reserved for the answer.
    pub reserve: OriginReserve,
    /// The most input tokens that the model accepts, if that is less than the window and the reserve leave.
    pub input_limit: Option<i64>,
}

/// What a default budget leaves for the answer.
#[derive(Debug, Clone, PartialEq)]
pub enum OriginReserve {
    /// The limit of a field of the request.
    Field(&'static str, i64),
    /// The reserve of the caller.
    Given(Amount),
    /// The reserve of the configuration of that name.
    Configured(Amount, String),
    /// These tokens, because nothing states a reserve.
    Default(i64),
    /// These tokens, which are more than the limit of a field of the request. A lower limit does not change the
    /// budget, so that the requests of a conversation have the same one.
    Covers {
        /// The field.
        field: &'static str,
        /// Its tokens.
        limit: i64,
        /// The tokens for the answer.
        reserve: i64,
    },
}

impl BudgetOrigin {
    /// Returns the origin in the words of a door.
    pub fn describe(&self, dialect: &dyn Dialect) -> String {
        let window = &self.window;
        let origin = match &self.reserve {
            OriginReserve::Field(field, tokens) => {
                format!("{window} less {field} ({})", grouped(*tokens))
            }
            OriginReserve::Given(amount) => {
                let reserve = dialect.with_value(Argument::Reserve, &amount.to_string());
                format!("{window} less {reserve}")
            }
            OriginReserve::Configured(amount, name) => {
                format!("{window} less the reserve of {name} ({amount})")
            }
            OriginReserve::Default(tokens) => {
                let (tokens, reserve) = (grouped(*tokens), dialect.argument(Argument::Reserve));
                format!("{window} less {tokens} for the answer; {reserve} changes that")
            }
            OriginReserve::Covers {
                field,
                limit,
                reserve,
            } => {
                let (limit, reserve) = (grouped(*limit), grouped(*reserve));
                format!("{window} less {reserve} for the answer, more than {field} ({limit})")
            }
        };
        match self.input_limit {
            Some(limit) => format!("{origin}; at most {} of input", grouped(limit)),
            None => origin,
        }
    }
}

/// The budget that a chat implies.
struct Implied {
    window: i64,
    /// The most input: the window, or less if the model accepts less.
    target: i64,
    /// What the request, or the default, reserves for the answer; `None` if the caller reserves.
    reserved: Option<i64>,
    origin: BudgetOrigin,
}

/// A budget, and how it was chosen if neither the input nor the caller states it.
#[derive(Debug, Clone)]
pub(crate) struct RunBudget {
    pub(crate) budget: ContextBudget,
    pub(crate) origin: Option<BudgetOrigin>,
}

impl BudgetOptions {
    /// Returns the budget of the document with these limits in their place.
    ///
    /// `model` is the model that the input names, `reserve_of` the name of the configuration that the reserve is from.
    pub(crate) fn over(
        &self,
        document: Option<&ContextBudget>,
        default: DefaultBudget<'_>,
        model: Option<&str>,
        reserve_of: Option<&str>,
    ) -> Result<RunBudget, Error> {
        // Precedence: the caller, then the document, then the default of the question.
        let window = self.window(model)?;
        let amount = |argument, amount: &Option<Amount>| {
            let amount = amount.as_ref().map(|amount| amount.tokens(window));
            amount.transpose().map_err(invalid(argument))
        };
        let given = amount(Argument::Reserve, &self.reserve)?.zip(self.reserve.as_ref());
        let given = given.map(|(tokens, amount)| {
            let (Some(name), DefaultBudget::OfChat(chat)) = (reserve_of, &default) else {
                return (tokens, OriginReserve::Given(amount.clone()));
            };
            match chat.output_limit() {
                // What the request allows its answer would exceed the window with less.
                Some((field, limit)) if limit > tokens => {
                    (limit, OriginReserve::Field(field, limit))
                }
                _ => (
                    tokens,
                    OriginReserve::Configured(amount.clone(), name.to_owned()),
                ),
            }
        });
        let both = |tokens: i64| (tokens, tokens);
        let mut origin = None;
        let mut reserved = None;
        let (max, target) = match (&self.budget, document, default) {
            (Some(amount), _, _) => both(amount.budget(window).map_err(invalid(Argument::Budget))?),
            (None, Some(document), _) => (document.max_tokens(), document.target_tokens()),
            (None, None, DefaultBudget::Tokens(tokens)) => both(tokens),
            (None, None, DefaultBudget::Missing) => return Err(Fault::NoBudget.into()),
            (None, None, DefaultBudget::OfChat(chat)) => {
                let implied = self.implied(chat, given.as_ref().map(|(_, origin)| origin))?;
                reserved = implied.reserved;
                origin = Some(implied.origin);
                (implied.window, implied.target)
            }
        };
        let target = amount(Argument::Target, &self.target)?.unwrap_or(target);
        let mut builder = ContextBudget::builder(max).target_tokens(target);
        if let Some(document) = document {
            builder = builder
                .output_reserve(document.output_reserve())
                .safety_margin_percent(document.estimation_safety_margin_percent());
            // In the order of the kinds, because a hash map has no fixed order.
            for (kind, tokens) in document.reserved_slots().iter().collect::<BTreeMap<_, _>>() {
                builder = builder.reserved_slot(kind.clone(), *tokens);
            }
        }
        let reserve = given.map(|(tokens, _)| tokens).or(reserved);
        if let Some(reserve) = reserve {
            builder = builder.output_reserve(reserve);
        }
        if let Some(margin) = self.margin {
            builder = builder.safety_margin_percent(margin);
        }
        for (kind, tokens) in &self.slots {
            builder = builder.reserved_slot(kind.clone(), *tokens);
        }
        // The builder reports one of the limits. The error names the argument that exceeds the budget.
        let budget = builder.build().map_err(|error| {
            let reserve = reserve.unwrap_or(0);
            if target > max {
                Fault::AboveBudget(Argument::Target, target, max).into()
            } else if reserve > max {
                Fault::AboveBudget(Argument::Reserve, reserve, max).into()
            } else {
                Error::from(error)
            }
        })?;
        Ok(RunBudget { budget, origin })
    }

    /// Returns the budget that the model and the fields of a chat imply. A `given` reserve takes the place of that of
    /// the request.
    fn implied(&self, chat: &Chat, given: Option<&OriginReserve>) -> Result<Implied, Error> {
        let name = self.model.as_deref().or(chat.model()).unwrap_or_default();
        let named = |field: Option<&str>, window| match field {
            Some(field) => format!("{field} of the request ({})", grouped(window)),
            None => format!("window of {name} ({})", grouped(window)),
        };
        let stated = chat.window_limit().map(|(field, _)| field);
        let implied = match chat.default_budget(self.model.as_deref()) {
            Ok(implied) => implied,
            Err(DefaultBudgetError::NothingLeft {
                field,
                reserve,
                window,
            }) => {
                let window_name = named(stated, window);
                let is_smaller = |it: &&OriginReserve| !matches!(it, OriginReserve::Field(..));
                let Some(origin) = given.filter(is_smaller) else {
                    return Err(Error::new(Fault::NothingLeft {
                        field: field.to_owned(),
                        tokens: reserve,
                        window: window_name,
                    }));
                };
                return Ok(Implied {
                    window,
                    target: window,
                    reserved: None,
                    origin: BudgetOrigin {
                        window: window_name,
                        reserve: origin.clone(),
                        input_limit: None,
                    },
                });
            }
            Err(DefaultBudgetError::UnknownModel(error)) => {
                return Err(Fault::NoModelBudget(Some(error.to_string())).into());
            }
            Err(_) => return Err(Fault::NoModelBudget(None).into()),
        };
        let window = implied.window;
        // The model's input limit counts only if it is below the window: a request may state a smaller window
        // (`num_ctx` of Ollama).
        let limit = implied.model.and_then(|model| model.input_limit);
        let limit = limit.filter(|limit| *limit < window);
        let (reserve, reserved) = match (given, implied.reserve_field) {
            (Some(origin), _) => (origin.clone(), None),
            (None, Some(field)) => {
                let reserve = OriginReserve::Field(field, implied.reserve);
                (reserve, Some(implied.reserve))
            }
            (None, None) => {
                let reserve = match chat.output_limit() {
                    Some((field, limit)) => OriginReserve::Covers {
                        field,
                        limit,
                        reserve: implied.reserve,
                    },
                    None => OriginReserve::Default(implied.reserve),
                };
                (reserve, Some(implied.reserve))
            }
        };
        let left = window - reserved.unwrap_or(0);
        Ok(Implied {
            window,
            target: limit.unwrap_or(window),
            reserved,
            origin: BudgetOrigin {
                window: named(implied.window_field, window),
                reserve,
                input_limit: limit.filter(|limit| *limit < left),
            },
        })
    }

    /// Reads the amounts before there is an input. A percentage needs the window of its model later.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for (argument, amount) in [
            (Argument::Budget, &self.budget),
            (Argument::Target, &self.target),
            (Argument::Reserve, &self.reserve),
        ] {
            if let Some(amount) = amount {
                amount.check(argument)?;
            }
        }
        match self.margin {
            Some(margin) if !(0.0..=100.0).contains(&margin) => {
                Err(Fault::Percent(Argument::Margin, margin).into())
            }
            _ => Ok(()),
        }
    }

    /// Returns the context window of a known model. A percentage of an unknown one is an error.
    fn window(&self, model: Option<&str>) -> Result<Option<i64>, Error> {
        let amounts = [
            (Argument::Budget, &self.budget),
            (Argument::Target, &self.target),
            (Argument::Reserve, &self.reserve),
        ];
        let share = amounts.into_iter().find_map(|(argument, amount)| {
            let amount = amount.as_ref().filter(|amount| amount.is_share())?;
            Some((argument, amount.to_string()))
        });
        match (self.model.as_deref().or(model).map(Model::find), share) {
            (Some(Ok(model)), _) => Ok(Some(model.window)),
            (_, None) => Ok(None),
            (Some(Err(error)), Some((argument, share))) => {
                Err(Fault::ShareOfUnknownModel(argument, share, error.to_string()).into())
            }
            (None, Some((argument, share))) => Err(Fault::ShareNeedsModel(argument, share).into()),
        }
    }
}

fn invalid(argument: Argument) -> impl Fn(BudgetError) -> Error {
    move |error| Fault::Amount(argument, error).into()
}

/// Parses a budget, or the share of a model's `window`.
///
/// # Errors
///
/// [`Fault::Amount`] and the errors of a budget.
pub fn budget_of(amount: &Amount, window: Option<i64>) -> Result<ContextBudget, Error> {
    let tokens = amount.budget(window).map_err(invalid(Argument::Budget))?;
    Ok(ContextBudget::try_from(tokens)?)
}
