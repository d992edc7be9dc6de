//! What a run needs: items, a budget and a policy, from a file and the command line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use cupel::config::{PolicyConfig, RequestConfig, preset};
use cupel::{BudgetSweep, ContextBudget, ContextItem, ContextKind, Pipeline, Policy};

use crate::decision::{Decision, tokens};
use crate::failure::Failure;
use crate::input::{Form, Source};

/// The policy of a request that names none.
const DEFAULT_POLICY: &str = "chat";

/// Where items and budget come from.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// The items: a JSON array, JSONL, or a request document; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    budget: BudgetArgs,
}

/// Where the policy comes from.
#[derive(Debug, Args)]
pub(crate) struct PolicyArg {
    /// The policy: the name of a preset or a file; `chat` if the request has none
    #[arg(long, value_name = "NAME|FILE")]
    policy: Option<String>,
}

impl PolicyArg {
    pub(crate) fn name(&self) -> Option<&str> {
        self.policy.as_deref()
    }
}

/// The limits of a run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct BudgetArgs {
    /// The limit in tokens
    #[arg(long, value_name = "TOKENS", value_parser = token_count, allow_hyphen_values = true)]
    budget: Option<i64>,

    /// What to aim at, if less than the limit
    #[arg(long, value_name = "TOKENS", value_parser = token_count, allow_hyphen_values = true)]
    target: Option<i64>,

    /// Tokens to keep free for the model's answer
    #[arg(long, value_name = "TOKENS", value_parser = token_count, allow_hyphen_values = true)]
    reserve: Option<i64>,

    /// Percent to take off the limits, for token counts that are estimates
    #[arg(long, value_name = "PERCENT", value_parser = percent, allow_hyphen_values = true)]
    margin: Option<f64>,

    /// Tokens to keep free for a kind; may be given several times
    #[arg(long, value_name = "KIND=TOKENS", value_parser = slot)]
    slot: Vec<(ContextKind, i64)>,
}

fn slot(text: &str) -> Result<(ContextKind, i64), String> {
    let (kind, tokens) = text
        .rsplit_once('=')
        .ok_or("expected KIND=TOKENS, such as Memory=500")?;
    let kind = ContextKind::new(kind).map_err(|error| error.to_string())?;
    Ok((kind, token_count(tokens)?))
}

/// A number of tokens.
pub(crate) fn token_count(text: &str) -> Result<i64, String> {
    match text.parse() {
        Ok(tokens) if tokens >= 0 => Ok(tokens),
        _ => Err("expected a number of tokens, such as 8000".to_owned()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).parse();
    match percent {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("expected a percentage from 0 to 100, such as 5".to_owned()),
    }
}

impl BudgetArgs {
    /// The budget of the document with what the command line says instead. Where neither gives a
    /// limit it is `otherwise`.
    fn over(
        &self,
        document: Option<&ContextBudget>,
        otherwise: Option<i64>,
    ) -> Result<ContextBudget, Failure> {
        let both = |tokens: i64| (tokens, tokens);
        let limits = self.budget.map(both);
        let limits = limits.or_else(|| Some((document?.max_tokens(), document?.target_tokens())));
        let Some((max, target)) = limits.or(otherwise.map(both)) else {
            return Err(Failure::input("there is no budget").help(
                "add --budget, such as --budget 8000, or \"budget\": {\"max_tokens\": 8000} to the request",
            ));
        };
        let mut builder = ContextBudget::builder(max).target_tokens(self.target.unwrap_or(target));
        if let Some(document) = document {
            builder = builder
                .output_reserve(document.output_reserve())
                .safety_margin_percent(document.estimation_safety_margin_percent());
            for (kind, tokens) in document.reserved_slots().iter().collect::<BTreeMap<_, _>>() {
                builder = builder.reserved_slot(kind.clone(), *tokens);
            }
        }
        if let Some(reserve) = self.reserve {
            builder = builder.output_reserve(reserve);
        }
        if let Some(margin) = self.margin {
            builder = builder.safety_margin_percent(margin);
        }
        for (kind, tokens) in &self.slot {
            builder = builder.reserved_slot(kind.clone(), *tokens);
        }
        builder.build().map_err(|error| {
            Failure::run(&error)
                .help("--budget is the limit; --target and --reserve are at most that, or what the request says")
        })
    }
}

/// A policy and what the user calls it.
#[derive(Debug, Clone)]
pub(crate) struct NamedPolicy {
    pub(crate) name: String,
    pub(crate) policy: Policy,
}

impl NamedPolicy {
    /// The policy of that name.
    pub(crate) fn find(name: &str) -> Result<Self, Failure> {
        Self::of_config(name, &Self::config(name)?)
    }

    /// A preset, or the policy document in a file.
    pub(crate) fn config(name: &str) -> Result<PolicyConfig, Failure> {
        let path = Path::new(name);
        let unknown = match preset(name) {
            Ok(preset) => return Ok(preset.config().clone()),
            Err(error) => error,
        };
        let looks_like_a_file = path.components().count() > 1 || path.extension().is_some();
        if looks_like_a_file || path.exists() {
            return Source::read(path)?.policy();
        }
        Err(
            Failure::input(unknown.message()).help(match unknown.suggestion() {
                Some(near) => {
                    format!("did you mean `{near}`? `cupel policy list` shows all presets")
                }
                None => {
                    "`cupel policy list` shows the presets; a file is named by its path".to_owned()
                }
            }),
        )
    }

    fn of_config(name: &str, config: &PolicyConfig) -> Result<Self, Failure> {
        // A document is built once when it is read, so this does not fail.
        let policy = config
            .build()
            .map_err(|error| Failure::input(error.to_string()))?;
        Ok(Self {
            name: name.to_owned(),
            policy,
        })
    }
}

/// What the command line says about every request.
pub(crate) struct Defaults<'a> {
    budget: &'a BudgetArgs,
    policy: Option<NamedPolicy>,
    otherwise: NamedPolicy,
}

impl<'a> Defaults<'a> {
    pub(crate) fn new(budget: &'a BudgetArgs, policy: Option<&str>) -> Result<Self, Failure> {
        Ok(Self {
            budget,
            policy: policy.map(NamedPolicy::find).transpose()?,
            otherwise: NamedPolicy::find(DEFAULT_POLICY)?,
        })
    }

    /// The policy of the command line, else of the request, else the usual one.
    fn policy(&self, request: &RequestConfig) -> Result<NamedPolicy, Failure> {
        match (&self.policy, &request.policy) {
            (Some(policy), _) => Ok(policy.clone()),
            (None, Some(config)) => {
                NamedPolicy::of_config(config.name.as_deref().unwrap_or("of the request"), config)
            }
            (None, None) => Ok(self.otherwise.clone()),
        }
    }

    /// What the request in the text selects.
    pub(crate) fn answer(&self, source: &Source) -> Result<Decision, Failure> {
        let request = source.request()?;
        let budget = self.budget.over(request.budget.as_ref(), None)?;
        let policy = self.policy(&request)?.policy;
        Decision::of(&policy, &request.items, &budget).map_err(|error| Failure::run(&error))
    }
}

/// Everything a run needs.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) items: Vec<ContextItem>,
    pub(crate) budget: ContextBudget,
    pub(crate) policy: NamedPolicy,
    /// Whether the policy is the request's own.
    pub(crate) has_own_policy: bool,
    pub(crate) form: Form,
    source: Source,
}

impl Task {
    /// For commands that need a budget.
    pub(crate) fn load(args: &InputArgs, policy: Option<&str>) -> Result<Self, Failure> {
        Self::read(args, policy, |_| None)
    }

    /// For commands that try many budgets: where none is given, everything fits.
    pub(crate) fn load_for_any_budget(
        args: &InputArgs,
        policy: Option<&str>,
    ) -> Result<Self, Failure> {
        Self::read(args, policy, |items| Some(tokens(items.iter()).max(0)))
    }

    fn read(
        args: &InputArgs,
        policy: Option<&str>,
        otherwise: impl FnOnce(&[ContextItem]) -> Option<i64>,
    ) -> Result<Self, Failure> {
        let source = Source::read(&args.file)?;
        let (form, request) = source.items()?;
        let defaults = Defaults::new(&args.budget, policy)?;
        let otherwise = otherwise(&request.items);
        Ok(Self {
            budget: args.budget.over(request.budget.as_ref(), otherwise)?,
            policy: defaults.policy(&request)?,
            has_own_policy: policy.is_none() && request.policy.is_some(),
            items: request.items,
            form,
            source,
        })
    }

    /// What the input is called.
    pub(crate) fn name(&self) -> &str {
        &self.source.name
    }

    /// The policy with more questions to ask.
    pub(crate) fn pipeline(&self) -> Pipeline {
        self.policy.policy.clone().into()
    }

    /// Runs the policy.
    pub(crate) fn decide(&self) -> Result<Decision, Failure> {
        self.decide_with(&self.policy)
    }

    /// Runs another policy.
    pub(crate) fn decide_with(&self, policy: &NamedPolicy) -> Result<Decision, Failure> {
        Decision::of(&policy.policy, &self.items, &self.budget)
            .map_err(|error| Failure::run(&error))
    }

    /// Every target from one to another; up to all items together unless it is given.
    pub(crate) fn sweep(&self, from: i64, to: Option<i64>) -> Result<BudgetSweep, Failure> {
        let to = to.unwrap_or_else(|| tokens(self.items.iter()).max(from));
        self.pipeline()
            .sweep(&self.items, &self.budget, from..=to)
            .map_err(|error| Failure::run(&error))
    }

    /// Refuses a position at which there is no item.
    pub(crate) fn check_index(&self, index: usize) -> Result<(), Failure> {
        if index < self.items.len() {
            return Ok(());
        }
        let failure = Failure::input(format!("there is no item {index}"));
        Err(match self.items.len().checked_sub(1) {
            Some(last) => failure.help(format!("items are counted from 0; the last is {last}")),
            None => failure.help("the input has no items"),
        })
    }

    /// Every item as it stands in the input, or written anew where the input is no JSON.
    pub(crate) fn written(&self) -> Result<Vec<String>, Failure> {
        if let Some(items) = self.source.raw_items(self.form) {
            return Ok(items);
        }
        let items = self.items.iter().map(serde_json::to_string);
        items
            .collect::<Result<_, _>>()
            .map_err(|error| Failure::internal(error.to_string()))
    }
}
