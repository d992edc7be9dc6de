//! The limits of a run on the command line.

use std::collections::BTreeMap;

use clap::Args;
use cupel::{ContextBudget, ContextKind};
use cupel_chat::{BudgetError, BudgetProblem, Model, parse_budget};

use crate::failure::Failure;
use crate::text::grouped;

/// The limits of a run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct BudgetArgs {
    /// Token limit: 8000, 8k, or 70% of the model's window
    ///
    /// Default: the budget of the request document; for a chat the context window of its model, less the
    /// tokens that the request reserves for the answer (`max_tokens` and the like).
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true)]
    budget: Option<String>,

    /// Tokens to aim for. Default: the limit
    #[arg(
        long,
        hide_short_help = true,
        value_name = "TOKENS",
        allow_hyphen_values = true
    )]
    target: Option<String>,

    /// Tokens reserved for the model's answer
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true)]
    reserve: Option<String>,

    /// Safety margin for estimated counts, in percent of the budget that pinned items leave
    #[arg(long, hide_short_help = true, value_name = "PERCENT", value_parser = percent, allow_hyphen_values = true)]
    margin: Option<f64>,

    /// Tokens reserved for a kind of items; repeatable
    #[arg(long, hide_short_help = true, value_name = "KIND=TOKENS", value_parser = slot)]
    pub(crate) slot: Vec<(ContextKind, i64)>,

    /// Model, for window and encoding (default: the chat's)
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
}

/// Parses a token count such as `8k`. Zero is valid, a percentage is not.
pub(crate) fn tokens(text: &str) -> Result<i64, String> {
    parse_tokens(text, None).map_err(|error| {
        let problem = match error.problem() {
            BudgetProblem::UnknownWindow => "a percentage is not valid here".to_owned(),
            problem => problem.to_string(),
        };
        format!("{problem}; write tokens as 8000, 8k or 1.5M")
    })
}

/// Parses a token count that may be zero, or a percentage of `window`.
fn parse_tokens(text: &str, window: Option<i64>) -> Result<i64, BudgetError> {
    match text.trim() {
        "0" => Ok(0),
        text => parse_budget(text, window),
    }
}

/// Parses a reserved slot such as `Memory=500`.
fn slot(text: &str) -> Result<(ContextKind, i64), String> {
    let (kind, amount) = text
        .rsplit_once('=')
        .ok_or("expected KIND=TOKENS, such as Memory=500")?;
    let kind = ContextKind::new(kind).map_err(|error| error.to_string())?;
    Ok((kind, tokens(amount)?))
}

/// Parses a percentage such as `5` or `5%`.
fn percent(text: &str) -> Result<f64, &'static str> {
    match text.strip_suffix('%').unwrap_or(text).parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("expected a percentage from 0 to 100, such as 5"),
    }
}

/// The budget of a run without `--budget` and without a budget in the document.
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
        /// The field of the request and its tokens.
        reserved: Option<(&'static str, i64)>,
    },
}

/// A budget, and how it was chosen if neither the input nor the command line states it.
pub(crate) struct RunBudget {
    pub(crate) budget: ContextBudget,
    pub(crate) origin: Option<String>,
}

impl BudgetArgs {
    /// Returns the budget of the document with the limits of the command line in their place.
    ///
    /// `model` is the model that the input names.
    pub(crate) fn over(
        &self,
        document: Option<&ContextBudget>,
        default: DefaultBudget<'_>,
        model: Option<&str>,
    ) -> Result<RunBudget, Failure> {
        let window = self.window(model)?;
        let both = |tokens: i64| (tokens, tokens);
        let mut origin = None;
        let mut reserved = None;
        let (max, target) = match (&self.budget, document, default) {
            (Some(text), _, _) => {
                both(parse_budget(text, window).map_err(|error| invalid("--budget", &error))?)
            }
            (None, Some(document), _) => (document.max_tokens(), document.target_tokens()),
            (None, None, DefaultBudget::Tokens(tokens)) => both(tokens),
            (None, None, DefaultBudget::Missing) => {
                return Err(Failure::input("missing budget")
                    .help("add --budget 8k, or \"budget\": {\"max_tokens\": 8000} to a request"));
            }
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
                let (window, name) = model_window(model, stated)?;
                let text = less_reserve(window, &name, own, self.reserve.as_deref())?;
                reserved = own.map(|(_, tokens)| tokens);
                origin = Some(text);
                both(window)
            }
        };
        let amount = |flag: &str, text: &Option<String>| {
            let amount = text.as_ref().map(|text| parse_tokens(text, window));
            amount.transpose().map_err(|error| invalid(flag, &error))
        };
        let target = amount("--target", &self.target)?.unwrap_or(target);
        let mut builder = ContextBudget::builder(max).target_tokens(target);
        if let Some(document) = document {
            builder = builder
                .output_reserve(document.output_reserve())
                .safety_margin_percent(document.estimation_safety_margin_percent());
            for (kind, tokens) in document.reserved_slots().iter().collect::<BTreeMap<_, _>>() {
                builder = builder.reserved_slot(kind.clone(), *tokens);
            }
        }
        let reserve = amount("--reserve", &self.reserve)?.or(reserved);
        if let Some(reserve) = reserve {
            builder = builder.output_reserve(reserve);
        }
        if let Some(margin) = self.margin {
            builder = builder.safety_margin_percent(margin);
        }
        for (kind, tokens) in &self.slot {
            builder = builder.reserved_slot(kind.clone(), *tokens);
        }
        let budget = builder.build().map_err(|error| {
            let reserve = reserve.unwrap_or(0);
            let budget = grouped(max);
            if target > max {
                Failure::input(format!(
                    "--target {} exceeds the budget of {budget}",
                    grouped(target)
                ))
                .help("lower --target or raise --budget")
            } else if reserve > max {
                Failure::input(format!(
                    "--reserve {} exceeds the budget of {budget}",
                    grouped(reserve)
                ))
                .help("lower --reserve or raise --budget")
            } else {
                Failure::run(&error)
            }
        })?;
        Ok(RunBudget { budget, origin })
    }

    /// Parses the limits before there is an input. A percentage needs the window of its model later.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        const ANY_WINDOW: Option<i64> = Some(1_000_000);
        if let Some(text) = &self.budget {
            parse_budget(text, ANY_WINDOW).map_err(|error| invalid("--budget", &error))?;
        }
        for (flag, text) in [("--target", &self.target), ("--reserve", &self.reserve)] {
            if let Some(text) = text {
                parse_tokens(text, ANY_WINDOW).map_err(|error| invalid(flag, &error))?;
            }
        }
        Ok(())
    }

    /// Returns the context window of a known model. A percentage of an unknown one is an error.
    fn window(&self, model: Option<&str>) -> Result<Option<i64>, Failure> {
        let amounts = [
            ("--budget", &self.budget),
            ("--target", &self.target),
            ("--reserve", &self.reserve),
        ];
        let share = amounts.into_iter().find_map(|(flag, text)| {
            let text = text.as_ref().filter(|text| text.contains('%'))?;
            Some(format!("{flag} {text}"))
        });
        match (self.model.as_deref().or(model).map(Model::find), share) {
            (Some(Ok(model)), _) => Ok(Some(model.window)),
            (_, None) => Ok(None),
            (Some(Err(error)), Some(share)) => Err(Failure::input(format!("{share}: {error}"))),
            (None, Some(share)) => Err(Failure::input(format!(
                "{share}: a percentage needs a model"
            ))
            .help("add --model, or give tokens such as 8k")),
        }
    }
}

/// Returns the context window that the request states, otherwise the one of the model, and its name.
fn model_window(
    model: Option<&str>,
    stated: Option<(&str, i64)>,
) -> Result<(i64, String), Failure> {
    const HELP: &str = "add --budget 8k, or --model NAME for the context window of that model";
    if let Some((field, window)) = stated {
        return Ok((
            window,
            format!("{field} of the request ({})", grouped(window)),
        ));
    }
    let Some(name) = model else {
        return Err(Failure::input("missing budget: the chat names no model").help(HELP));
    };
    let window = match Model::find(name) {
        Ok(model) => model.window,
        Err(error) => {
            return Err(Failure::input(format!("missing budget: {error}")).help(HELP));
        }
    };
    Ok((window, format!("window of {name} ({})", grouped(window))))
}

/// Returns how a budget follows from a window and what is reserved for the answer.
fn less_reserve(
    window: i64,
    of: &str,
    reserved: Option<(&str, i64)>,
    reserve: Option<&str>,
) -> Result<String, Failure> {
    Ok(match (reserved, reserve) {
        (Some((field, tokens)), _) if tokens >= window => {
            return Err(Failure::input(format!(
                "`{field}` of the request ({}) leaves nothing of the {of}",
                grouped(tokens)
            ))
            .help("add --budget 8k for the request, or --reserve 1k for the answer"));
        }
        (Some((field, tokens)), _) => format!("{of} less {field} ({})", grouped(tokens)),
        (None, Some(reserve)) => format!("{of} less --reserve {reserve}"),
        (None, None) => format!("{of}; --reserve keeps room for the answer"),
    })
}

/// Returns how the limit of the window follows from the budget: `target 200 less reserve 50`. `None` if it
/// is the budget.
pub(crate) fn limits(budget: &ContextBudget) -> Option<String> {
    let (max, target) = (budget.max_tokens(), budget.target_tokens());
    let (limit, reserve) = (budget.window_limit(), budget.output_reserve());
    let margin = budget.estimation_safety_margin_percent();
    let limit = if limit == max {
        None
    } else if limit == max - reserve {
        let name = if target == max { "target" } else { "budget" };
        Some(format!(
            "{name} {} less reserve {}",
            grouped(max),
            grouped(reserve)
        ))
    } else {
        Some(format!("target of a budget of {}", grouped(max)))
    };
    let margin = (margin > 0.0).then(|| format!("margin {margin} %"));
    let parts: Vec<String> = limit.into_iter().chain(margin).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Returns the failure of an option with an invalid budget.
pub(crate) fn invalid(flag: &str, error: &BudgetError) -> Failure {
    Failure::input(format!("{flag}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_says_how_it_follows_from_the_budget() {
        let shown = |max, target, reserve, margin| {
            let budget = ContextBudget::builder(max).target_tokens(target);
            let budget = budget.output_reserve(reserve).safety_margin_percent(margin);
            limits(&budget.build().expect("a valid budget"))
        };
        assert_eq!(shown(200, 200, 0, 0.0), None);
        let reserve = shown(200, 200, 50, 0.0);
        assert_eq!(reserve.as_deref(), Some("target 200 less reserve 50"));
        let target = shown(200, 100, 50, 0.0);
        assert_eq!(target.as_deref(), Some("target of a budget of 200"));
        let both = shown(2_000, 1_990, 50, 5.0);
        let both = both.as_deref();
        assert_eq!(both, Some("budget 2,000 less reserve 50, margin 5 %"));
    }
}
