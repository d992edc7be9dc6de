//! What a run needs: items, a budget and a policy, from a file and the command line.

use std::path::{Path, PathBuf};

use clap::Args;
use cupel::config::{PolicyConfig, Preset, RequestConfig, preset};
use cupel::{BudgetSweep, ContextBudget, ContextItem, Pipeline, Policy, total_tokens};
use cupel_chat::{Chat, Shape, TokenCounter, default_policy};

use crate::budget::BudgetArgs;
use crate::counting::ChatArgs;
use crate::decision::Decision;
use crate::failure::Failure;
use crate::input::{Form, Source};

/// The policy of a request that names none.
const DEFAULT_POLICY: &str = "chat";

/// Where items and budget come from.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Items, a request document, or a chat; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    budget: BudgetArgs,
}

/// Where the policy comes from.
#[derive(Debug, Args)]
pub(crate) struct PolicyArg {
    /// The policy: the name of a preset or a file; unless set the request's own, else `chat`, and for
    /// chats the newest first
    #[arg(long, value_name = "NAME|FILE")]
    policy: Option<String>,
}

impl PolicyArg {
    pub(crate) fn name(&self) -> Option<&str> {
        self.policy.as_deref()
    }
}

/// A position in the input.
pub(crate) fn position(text: &str) -> Result<usize, &'static str> {
    text.parse()
        .map_err(|_| "expected a position, a whole number from 0")
}

/// What the name of a policy stands for.
pub(crate) enum Named {
    Preset(&'static Preset),
    File(Source),
}

impl Named {
    /// The preset or the file of that name.
    pub(crate) fn find(name: &str) -> Result<Self, Failure> {
        let path = Path::new(name);
        let unknown = match preset(name) {
            Ok(preset) => return Ok(Self::Preset(preset)),
            Err(error) => error,
        };
        let looks_like_a_file = path.components().count() > 1 || path.extension().is_some();
        if looks_like_a_file || path.exists() {
            return Source::read(path).map(Self::File);
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

    /// The policy as data.
    pub(crate) fn config(&self) -> Result<PolicyConfig, Failure> {
        match self {
            Self::Preset(preset) => Ok(preset.config().clone()),
            Self::File(source) => source.policy(),
        }
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
        Self::of_config(name, &Named::find(name)?.config()?)
    }

    /// The policy of that name for a chat, else the request's own, else the newest messages first.
    pub(crate) fn for_chats(
        name: Option<&str>,
        own: Option<&PolicyConfig>,
    ) -> Result<Self, Failure> {
        match (name, own) {
            (Some(name), _) => Self::find(name),
            (None, Some(own)) => Self::of_request(own),
            (None, None) => Ok(Self {
                name: "newest first".to_owned(),
                policy: default_policy(),
            }),
        }
    }

    fn of_request(config: &PolicyConfig) -> Result<Self, Failure> {
        Self::of_config(config.name.as_deref().unwrap_or("of the request"), config)
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
            (None, Some(config)) => NamedPolicy::of_request(config),
            (None, None) => Ok(self.otherwise.clone()),
        }
    }

    /// What the request in the text selects.
    pub(crate) fn answer(&self, source: &Source) -> Result<Decision, Failure> {
        let request = source.request()?;
        let budget = self.budget.over(request.budget.as_ref(), None, None)?;
        let policy = self.policy(&request)?.policy;
        Decision::of(&policy, &request.items, &budget).map_err(|error| Failure::run(&error))
    }
}

/// Everything a run needs.
pub(crate) struct Task {
    pub(crate) items: Vec<ContextItem>,
    pub(crate) budget: ContextBudget,
    pub(crate) policy: NamedPolicy,
    /// Whether the policy is the request's own.
    pub(crate) has_own_policy: bool,
    pub(crate) origin: Origin,
    source: Source,
}

/// Where the items come from.
pub(crate) enum Origin {
    /// They are written as items.
    Items(Form),
    /// They are the candidates of a chat.
    Chat(Box<Chat>, Box<dyn TokenCounter>),
}

/// A command's need for a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// There must be one.
    Budget,
    /// It tries many; where none is given, everything fits.
    AnyBudget,
}

impl Task {
    /// Reads items; a chat is refused.
    pub(crate) fn load_items(
        file: &Path,
        budget: &BudgetArgs,
        policy: Option<&str>,
    ) -> Result<Self, Failure> {
        let source = Source::read(file)?;
        if source.is_chat() {
            return Err(Failure::input("this is a chat, not a list of items")
                .in_file(&source.name)
                .help("`cupel fit` fits a chat into a budget"));
        }
        Self::of_items(source, budget, policy, Need::Budget)
    }

    /// Reads items or a chat.
    pub(crate) fn load(
        args: &InputArgs,
        chat: &ChatArgs,
        policy: Option<&str>,
        need: Need,
    ) -> Result<Self, Failure> {
        let source = Source::read(&args.file)?;
        match chat.shape {
            None if source.is_chat() => Self::of_chat(source, args, chat, policy, need),
            None | Some(Shape::Items) => Self::of_items(source, &args.budget, policy, need),
            Some(_) => Self::of_chat(source, args, chat, policy, need),
        }
    }

    fn of_items(
        source: Source,
        budget: &BudgetArgs,
        policy: Option<&str>,
        need: Need,
    ) -> Result<Self, Failure> {
        let (form, request) = source.items()?;
        let defaults = Defaults::new(budget, policy)?;
        let document = request.budget.as_ref();
        Ok(Self {
            budget: budget.over(document, need.otherwise(&request.items), None)?,
            policy: defaults.policy(&request)?,
            has_own_policy: policy.is_none() && request.policy.is_some(),
            items: request.items,
            origin: Origin::Items(form),
            source,
        })
    }

    fn of_chat(
        source: Source,
        args: &InputArgs,
        chat_args: &ChatArgs,
        policy: Option<&str>,
        need: Need,
    ) -> Result<Self, Failure> {
        let chat = source.chat(chat_args.shape)?;
        let counter = chat_args.counter(args.budget.model.as_deref().or(chat.model()))?;
        let items = chat.candidates(&*counter);
        Ok(Self {
            budget: args
                .budget
                .over(None, need.otherwise(&items), chat.model())?,
            policy: NamedPolicy::for_chats(policy, None)?,
            has_own_policy: false,
            items,
            origin: Origin::Chat(Box::new(chat), counter),
            source,
        })
    }

    /// What the input is called.
    pub(crate) fn name(&self) -> &str {
        &self.source.name
    }

    /// The policy with more questions to ask.
    pub(crate) fn pipeline(&self) -> Pipeline {
        let policy = &self.policy.policy;
        match &self.origin {
            Origin::Items(_) => policy.clone().into(),
            Origin::Chat(chat, _) => chat.policy(policy).into(),
        }
    }

    /// Runs the policy.
    pub(crate) fn decide(&self) -> Result<Decision, Failure> {
        self.decide_with(&self.policy)
    }

    /// Runs another policy.
    pub(crate) fn decide_with(&self, policy: &NamedPolicy) -> Result<Decision, Failure> {
        match &self.origin {
            Origin::Items(_) => Decision::of(&policy.policy, &self.items, &self.budget)
                .map_err(|error| Failure::run(&error)),
            Origin::Chat(chat, _) => chat
                .fit_candidates(&policy.policy, &self.budget, &self.items)
                .map(|fitted| Decision::of_chat(fitted, &self.items))
                .map_err(|error| Failure::fit(&error)),
        }
    }

    /// A policy for this input.
    pub(crate) fn find_policy(&self, name: &str) -> Result<NamedPolicy, Failure> {
        match self.origin {
            Origin::Items(_) => NamedPolicy::find(name),
            Origin::Chat(..) => NamedPolicy::for_chats(Some(name), None),
        }
    }

    /// Every target from one to another; up to all items together unless it is given.
    pub(crate) fn sweep(&self, from: i64, to: Option<i64>) -> Result<BudgetSweep, Failure> {
        // Slicers whose budgets have to be tried one by one get about as many tries as a second allows.
        const WORTH: usize = 20_000_000;
        let samples = (WORTH / self.items.len().max(1)).clamp(Pipeline::SWEEP_SAMPLES, 1 << 17);
        // The sum of some items may be no budget.
        let all = || total_tokens(&self.items).min(i64::MAX / 4).max(from);
        let to = to.unwrap_or_else(all);
        self.pipeline()
            .sweep_sampled(&self.items, &self.budget, from..=to, samples)
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
    pub(crate) fn written(&self, form: Form) -> Result<Vec<String>, Failure> {
        if let Some(items) = self.source.raw_items(form) {
            return Ok(items);
        }
        let items = self.items.iter().map(serde_json::to_string);
        items
            .collect::<Result<_, _>>()
            .map_err(|error| Failure::internal(error.to_string()))
    }
}

impl Need {
    fn otherwise(self, items: &[ContextItem]) -> Option<i64> {
        (self == Self::AnyBudget).then(|| total_tokens(items).max(0))
    }
}
