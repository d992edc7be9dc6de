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
    /// Token limit: 8000, 8k, 1.5M, or a share of the model's context window, 70%
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true)]
    budget: Option<String>,

    /// Tokens to aim for. Default: the limit
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true)]
    target: Option<String>,

    /// Tokens reserved for the model's answer
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true)]
    reserve: Option<String>,

    /// Safety margin for estimated counts, in percent of the budget that pinned items leave
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_hyphen_values = true)]
    margin: Option<f64>,

    /// Tokens reserved for a kind; repeatable
    #[arg(long, value_name = "KIND=TOKENS", value_parser = slot)]
    slot: Vec<(ContextKind, i64)>,

    /// Model, for its context window and its encoding
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

impl BudgetArgs {
    /// Returns the budget of the document with the limits of the command line in their place.
    ///
    /// Without a limit in either it is `otherwise`. `model` is the model that the input names.
    pub(crate) fn over(
        &self,
        document: Option<&ContextBudget>,
        otherwise: Option<i64>,
        model: Option<&str>,
    ) -> Result<ContextBudget, Failure> {
        let window = self.window(model)?;
        let both = |tokens: i64| (tokens, tokens);
        let limits = match &self.budget {
            Some(text) => Some(both(
                parse_budget(text, window).map_err(|error| invalid("--budget", &error))?,
            )),
            None => document.map(|document| (document.max_tokens(), document.target_tokens())),
        };
        let Some((max, target)) = limits.or(otherwise.map(both)) else {
            return Err(Failure::input("missing budget")
                .help("add --budget 8k, or \"budget\": {\"max_tokens\": 8000} to a request"));
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
        if let Some(reserve) = amount("--reserve", &self.reserve)? {
            builder = builder.output_reserve(reserve);
        }
        if let Some(margin) = self.margin {
            builder = builder.safety_margin_percent(margin);
        }
        for (kind, tokens) in &self.slot {
            builder = builder.reserved_slot(kind.clone(), *tokens);
        }
        builder.build().map_err(|error| {
            Failure::run(&error).help("--target and --reserve must not exceed --budget")
        })
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

/// Formats a limit and its safety margin for a summary.
pub(crate) fn shown(limit: i64, budget: &ContextBudget) -> String {
    format!("budget {}{}", grouped(limit), margin(budget))
}

/// Formats a safety margin; an empty string if there is none.
pub(crate) fn margin(budget: &ContextBudget) -> String {
    match budget.estimation_safety_margin_percent() {
        margin if margin > 0.0 => format!(", margin {margin} %"),
        _ => String::new(),
    }
}

/// Returns the failure of an option with an invalid budget.
fn invalid(flag: &str, error: &BudgetError) -> Failure {
    Failure::input(format!("{flag}: {error}"))
}
