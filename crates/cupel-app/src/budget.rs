//! [`BudgetOptions`]: the limits of a run, and the budget that follows from them and the input.

use std::collections::BTreeMap;
use std::fmt;

use cupel::{ContextBudget, ContextKind};
use cupel_chat::{BudgetError, Model, parse_budget};

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
}

/// The limits of a run. Each takes precedence over the input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BudgetOptions {
    /// The token limit. Defaults to the budget of the request, for a chat to the context window of its model less
    /// the tokens that the request reserves for the answer.
    pub budget: Option<Amount>,
    /// The tokens to aim for, at most the limit. Defaults to the limit.
    pub target: Option<Amount>,
    /// The tokens reserved for the answer of the model, at most the limit. Defaults to those of the request.
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
    /// The context window of the chat's model less the tokens that the request reserves for the answer.
    Window {
        model: Option<&'a str>,
        /// The field of the request that limits the window, and its tokens.
        stated: Option<(&'static str, i64)>,
        /// The field of the request that limits the answer, and its tokens.
        reserved: Option<(&'static str, i64)>,
    },
}

/// How a budget was chosen that neither the input nor the caller states.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetOrigin {
    /// The window, such as `window of gpt-4o (128,000)`.
    pub window: String,
    /// What of it is reserved for the answer.
    pub reserve: OriginReserve,
}

/// What a default budget leaves for the answer.
#[derive(Debug, Clone, PartialEq)]
pub enum OriginReserve {
    /// The limit of a field of the request.
    Field(&'static str, i64),
    /// The reserve of the caller.
    Given(Amount),
    /// Nothing.
    None,
}

impl BudgetOrigin {
    /// Returns the origin in the words of a door.
    pub fn describe(&self, dialect: &dyn Dialect) -> String {
        let window = &self.window;
        match &self.reserve {
            OriginReserve::Field(field, tokens) => {
                format!("{window} less {field} ({})", grouped(*tokens))
            }
            OriginReserve::Given(amount) => {
                let reserve = dialect.with_value(Argument::Reserve, &amount.to_string());
                format!("{window} less {reserve}")
            }
            OriginReserve::None => {
                let reserve = dialect.argument(Argument::Reserve);
                format!("{window}; {reserve} keeps room for the answer")
            }
        }
    }
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
    /// `model` is the model that the input names.
    pub(crate) fn over(
        &self,
        document: Option<&ContextBudget>,
        default: DefaultBudget<'_>,
        model: Option<&str>,
    ) -> Result<RunBudget, Error> {
        let window = self.window(model)?;
        let both = |tokens: i64| (tokens, tokens);
        let mut origin = None;
        let mut reserved = None;
        let (max, target) = match (&self.budget, document, default) {
            (Some(amount), _, _) => both(amount.budget(window).map_err(invalid(Argument::Budget))?),
            (None, Some(document), _) => (document.max_tokens(), document.target_tokens()),
            (None, None, DefaultBudget::Tokens(tokens)) => both(tokens),
            (None, None, DefaultBudget::Missing) => return Err(Fault::NoBudget.into()),
            (
                None,
                None,
                DefaultBudget::Window {
                    model,
                    stated,
                    reserved: own,
                },
            ) => {
                let model = self.model.as_deref().or(model);
                let own = own.filter(|_| self.reserve.is_none());
                let (tokens, window) = model_window(model, stated)?;
                if let Some((field, tokens)) = own.filter(|(_, own)| *own >= tokens) {
                    let field = field.to_owned();
                    return Err(Error::new(Fault::NothingLeft {
                        field,
                        tokens,
                        window,
                    }));
                }
                reserved = own.map(|(_, tokens)| tokens);
                let reserve = match (own, &self.reserve) {
                    (Some((field, tokens)), _) => OriginReserve::Field(field, tokens),
                    (None, Some(amount)) => OriginReserve::Given(amount.clone()),
                    (None, None) => OriginReserve::None,
                };
                origin = Some(BudgetOrigin { window, reserve });
                both(tokens)
            }
        };
        let amount = |argument, amount: &Option<Amount>| {
            let amount = amount.as_ref().map(|amount| amount.tokens(window));
            amount.transpose().map_err(invalid(argument))
        };
        let target = amount(Argument::Target, &self.target)?.unwrap_or(target);
        let mut builder = ContextBudget::builder(max).target_tokens(target);
        if let Some(document) = document {
            builder = builder
                .output_reserve(document.output_reserve())
                .safety_margin_percent(document.estimation_safety_margin_percent());
            for (kind, tokens) in document.reserved_slots().iter().collect::<BTreeMap<_, _>>() {
                builder = builder.reserved_slot(kind.clone(), *tokens);
            }
        }
        let reserve = amount(Argument::Reserve, &self.reserve)?.or(reserved);
        if let Some(reserve) = reserve {
            builder = builder.output_reserve(reserve);
        }
        if let Some(margin) = self.margin {
            builder = builder.safety_margin_percent(margin);
        }
        for (kind, tokens) in &self.slots {
            builder = builder.reserved_slot(kind.clone(), *tokens);
        }
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

    /// Reads the amounts before there is an input. A percentage needs the window of its model later.
    pub(crate) fn check(&self) -> Result<(), Error> {
        const ANY_WINDOW: Option<i64> = Some(1_000_000);
        if let Some(amount) = &self.budget {
            amount
                .budget(ANY_WINDOW)
                .map_err(invalid(Argument::Budget))?;
        }
        for (argument, amount) in [
            (Argument::Target, &self.target),
            (Argument::Reserve, &self.reserve),
        ] {
            if let Some(amount) = amount {
                amount.tokens(ANY_WINDOW).map_err(invalid(argument))?;
            }
        }
        Ok(())
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

/// Returns the context window that the request states, otherwise the one of the model, and its name.
fn model_window(model: Option<&str>, stated: Option<(&str, i64)>) -> Result<(i64, String), Error> {
    if let Some((field, window)) = stated {
        let name = format!("{field} of the request ({})", grouped(window));
        return Ok((window, name));
    }
    let name = model.ok_or(Fault::NoModelBudget(None))?;
    let model = Model::find(name);
    let model = model.map_err(|error| Fault::NoModelBudget(Some(error.to_string())))?;
    let window = model.window;
    Ok((window, format!("window of {name} ({})", grouped(window))))
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
