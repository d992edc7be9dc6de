//! The limits of a run on the command line.

use clap::Args;
use cupel::{ContextBudget, ContextKind};
use cupel_app::{Amount, BudgetOptions};
use cupel_chat::{BudgetError, BudgetProblem, parse_budget};

use crate::text::grouped;

/// The limits of a run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct BudgetArgs {
    /// Token limit: 8000, 8k, or 70% of the model's window
    ///
    /// Default: the budget of the request document; for a chat the context window of its model, less the
    /// tokens for the answer (--reserve), at most the input that the model accepts.
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
    ///
    /// Default: with --budget none; otherwise 4,096 or a quarter of the window, whichever is less, or what the request
    /// allows the answer (`max_tokens` and the like), if that is more.
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true)]
    reserve: Option<String>,

    /// Safety margin for estimated counts, in percent of the budget that pinned items leave
    #[arg(long, hide_short_help = true, value_name = "PERCENT", value_parser = percent, allow_hyphen_values = true)]
    margin: Option<f64>,

    /// Tokens reserved for a kind of items; repeatable
    #[arg(long, hide_short_help = true, value_name = "KIND=TOKENS", value_parser = slot)]
    slot: Vec<(ContextKind, i64)>,

    /// Model, for window and encoding (default: the chat's)
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
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
    pub(crate) fn options(&self) -> BudgetOptions {
        let amount = |text: &Option<String>| text.as_deref().map(Amount::from);
        BudgetOptions {
            budget: amount(&self.budget),
            target: amount(&self.target),
            reserve: amount(&self.reserve),
            margin: self.margin,
            slots: self.slot.clone(),
            model: self.model.clone(),
        }
    }
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
