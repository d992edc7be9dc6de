//! What a run needs: candidates, a budget and a policy, from an input and the command line.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::Args;
use cupel::config::{PolicyConfig, Preset, RequestConfig, preset, presets};
use cupel::{
    BudgetSweep, ContextBudget, ContextItem, CupelError, Decisions, Pipeline, Policy,
    SelectionReport, SweepProgress, total_tokens,
};
use cupel_chat::{
    Candidates, Chat, FitError, Fitted, Shape, TokenCounter, UnknownModel, Warning, default_policy,
    session_policy,
};

use crate::budget::{BudgetArgs, DefaultBudget, RunBudget};
use crate::classify::{Classified, Evidence, Form, Input, raw_items};
use crate::counting::ChatArgs;
use crate::decision::Run;
use crate::embed;
use crate::failure::Failure;
use crate::input::{ReadArgs, Source};
use crate::kinds::unused_kinds;
use crate::output::{Output, write_file};
use crate::summary::Header;
use crate::trimming::TrimmingArgs;
use crate::windows::for_each_window;

/// The presets for chats, chats with a state, and items without a policy.
const CHATS_POLICY: &str = "agent";
const SESSIONS_POLICY: &str = "session";
const ITEMS_POLICY: &str = "chat";

/// The arguments of every command that runs one policy over one input.
#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    #[command(flatten)]
    policy: PolicyArg,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    trimming: TrimmingArgs,
}

/// The arguments of a command that reads items only.
#[derive(Debug, Args)]
pub(crate) struct ItemsArgs {
    #[command(flatten)]
    policy: PolicyArg,

    #[command(flatten)]
    input: InputArgs,
}

/// An input, its limits, and how it is read.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Chat, items or request document; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    settings: SettingsArgs,
}

/// The limits of a run and how an input is read.
#[derive(Debug, Args)]
pub(crate) struct SettingsArgs {
    #[command(flatten)]
    budget: BudgetArgs,

    /// Question that the window is to answer
    ///
    /// For policies that score by relevance to it. Default: `query` of the request document; for a chat the
    /// text of the last user turn.
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    query: Option<String>,

    #[command(flatten)]
    chat: ChatArgs,
}

impl SettingsArgs {
    /// Returns a warning if `--query` is given and no policy reads it.
    fn unread_query(&self, policies: &[NamedPolicy]) -> Option<String> {
        let reads = |policy: &NamedPolicy| policy.policy.needs_query();
        if self.query.is_none() || policies.iter().any(reads) {
            return None;
        }
        let names: Vec<&str> = policies.iter().map(|policy| &*policy.name).collect();
        Some(embed::unread_query(&names.join(" or ")))
    }
}

/// The policy of a run.
#[derive(Debug, Args)]
pub(crate) struct PolicyArg {
    /// Policy: a preset or a file (see `cupel policy list`)
    ///
    /// Default: the request's policy, otherwise the preset `agent` for a chat and `chat` for items.
    #[arg(long, value_name = "NAME|FILE")]
    policy: Option<String>,
}

/// Where the report goes.
#[derive(Debug, Args)]
pub(crate) struct ReportArg {
    /// Write the report of the run to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl ReportArg {
    pub(crate) fn is_given(&self) -> bool {
        self.report.is_some()
    }

    /// Writes the report if `--report` asks for it.
    pub(crate) fn write(&self, report: &SelectionReport) -> Result<(), Failure> {
        let Some(path) = &self.report else {
            return Ok(());
        };
        let report = serde_json::to_string_pretty(report)
            .map_err(|error| Failure::internal(error.to_string()))?;
        write_file(path, &format!("{report}\n"))
    }
}

impl TaskArgs {
    /// Reads the input.
    pub(crate) fn load(&self, need: Need) -> Result<Task, Failure> {
        self.input.load(&self.policy, &self.trimming, need)
    }

    /// Reads the text of the input.
    pub(crate) fn source(&self) -> Result<Source, Failure> {
        Source::read(&self.input.file)
    }

    /// Returns how a chat is read.
    pub(crate) fn read_args(&self) -> &ReadArgs {
        &self.input.settings.chat.read
    }

    /// Returns the settings of the command line.
    pub(crate) fn settings(&self) -> Result<Settings<'_>, Failure> {
        Settings::new(&self.input.settings, &self.policy, &self.trimming)
    }

    /// Checks the settings before there is an input.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.input.settings.budget.check()?;
        self.settings()?.chat_policy(true).map(|_| ())
    }
}

impl ItemsArgs {
    /// Reads the input.
    pub(crate) fn load(&self) -> Result<Task, Failure> {
        self.input
            .load(&self.policy, &TrimmingArgs::default(), Need::Budget)
    }
}

impl InputArgs {
    /// Reads the input for runs of other policies, which [`Task::variant`] makes.
    pub(crate) fn load_for_variants(&self, trimming: &TrimmingArgs) -> Result<Task, Failure> {
        let source = Source::read(&self.file)?;
        let mut settings = Settings::new(&self.settings, &PolicyArg { policy: None }, trimming)?;
        settings.runs_own_policy = false;
        settings.task(source, Need::Budget)
    }

    /// Returns a warning if `--query` is given and no policy reads it.
    pub(crate) fn unread_query(&self, policies: &[NamedPolicy]) -> Option<String> {
        self.settings.unread_query(policies)
    }

    fn load(
        &self,
        policy: &PolicyArg,
        trimming: &TrimmingArgs,
        need: Need,
    ) -> Result<Task, Failure> {
        let source = Source::read(&self.file)?;
        Settings::new(&self.settings, policy, trimming)?.task(source, need)
    }
}

/// Parses a position in the input.
pub(crate) fn position(text: &str) -> Result<usize, &'static str> {
    text.parse()
        .map_err(|_| "expected a position: a whole number from 0")
}

/// A preset or a policy file.
pub(crate) enum Named {
    Preset(&'static Preset),
    File(Source),
    /// A policy of the program that embeds the command.
    Given(Policy),
}

impl Named {
    /// Finds the preset or the file of that name.
    pub(crate) fn find(name: &str) -> Result<Self, Failure> {
        if let Some(policy) = embed::policy(name) {
            return Ok(Self::Given(policy));
        }
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
                None => "`cupel policy list` shows the presets; name a file by its path".to_owned(),
            }),
        )
    }

    /// Returns the policy as data.
    pub(crate) fn config(&self) -> Result<PolicyConfig, Failure> {
        match self {
            Self::Preset(preset) => Ok(preset.config().clone()),
            Self::File(source) => source.policy(),
            Self::Given(policy) => {
                PolicyConfig::of(policy).map_err(|error| Failure::input(error.message().to_owned()))
            }
        }
    }
}

/// A policy and its name.
#[derive(Debug, Clone)]
pub(crate) struct NamedPolicy {
    pub(crate) name: String,
    pub(crate) policy: Policy,
}

impl NamedPolicy {
    /// Finds the policy of that name.
    pub(crate) fn find(name: &str) -> Result<Self, Failure> {
        if let Some(policy) = embed::policy(name) {
            let name = name.to_owned();
            return Ok(Self { name, policy });
        }
        Self::of_config(name, &Named::find(name)?.config()?)
    }

    /// Returns the default for chats, or for chats with a state.
    pub(crate) fn for_chats(has_state: bool) -> Self {
        let (name, policy) = if has_state {
            (SESSIONS_POLICY, session_policy())
        } else {
            (CHATS_POLICY, default_policy())
        };
        let name = name.to_owned();
        Self { name, policy }
    }

    /// Returns a warning if this is a preset for items.
    fn unsuited_to_chats(&self) -> Option<String> {
        preset(&self.name)
            .ok()
            .filter(|preset| !preset.is_for_chats())?;
        let for_chats = presets().iter().filter(|preset| preset.is_for_chats());
        let for_chats: Vec<&str> = for_chats.map(Preset::name).collect();
        Some(format!(
            "the preset {} is for items: it may drop the task and the newest step of a chat; presets for chats are {}",
            self.name,
            for_chats.join(", ")
        ))
    }

    /// Returns the policy for a query. Items have no other query, so a policy that needs one and has none
    /// is an error.
    fn with_query(mut self, query: Option<&str>, is_chat: bool) -> Result<Self, Failure> {
        match query {
            Some(query) => self.policy = self.policy.with_query(query),
            None if !is_chat && self.policy.needs_query() => {
                let name = &self.name;
                return Err(Failure::input(format!("the policy {name} needs a query"))
                    .help("add --query TEXT, or `query` in the request document"));
            }
            None => {}
        }
        Ok(self)
    }

    /// Returns the policy with the options for chats.
    pub(crate) fn trimmed(mut self, trimming: &TrimmingArgs) -> Result<Self, Failure> {
        self.policy = trimming.apply(&self.policy, &self.name)?;
        Ok(self)
    }

    fn of_request(config: &PolicyConfig) -> Result<Self, Failure> {
        Self::of_config(config.name.as_deref().unwrap_or("of the request"), config)
    }

    fn of_config(name: &str, config: &PolicyConfig) -> Result<Self, Failure> {
        // A document was built when it was read, so this is not expected to fail.
        let policy = config
            .build()
            .map_err(|error| Failure::input(error.to_string()))?;
        Ok(Self {
            name: name.to_owned(),
            policy,
        })
    }
}

/// The settings of the command line, for one input or many.
pub(crate) struct Settings<'a> {
    args: &'a SettingsArgs,
    trimming: &'a TrimmingArgs,
    policy: Option<NamedPolicy>,
    for_items: NamedPolicy,
    /// Whether the task's own policy is run, or only variants.
    runs_own_policy: bool,
}

impl<'a> Settings<'a> {
    pub(crate) fn new(
        args: &'a SettingsArgs,
        policy: &PolicyArg,
        trimming: &'a TrimmingArgs,
    ) -> Result<Self, Failure> {
        let policy = policy.policy.as_deref().map(NamedPolicy::find);
        Ok(Self {
            args,
            trimming,
            policy: policy.transpose()?,
            for_items: NamedPolicy::find(ITEMS_POLICY)?,
            runs_own_policy: true,
        })
    }

    /// Returns the policy of a chat.
    fn chat_policy(&self, has_state: bool) -> Result<NamedPolicy, Failure> {
        let policy = self.policy.clone();
        let policy = policy.unwrap_or_else(|| NamedPolicy::for_chats(has_state));
        policy.trimmed(self.trimming)
    }

    /// Returns the policy for the query of the run, and warnings.
    fn asked(
        &self,
        policy: NamedPolicy,
        query: Option<&str>,
        is_chat: bool,
    ) -> Result<(NamedPolicy, Vec<String>), Failure> {
        if !self.runs_own_policy {
            return Ok((policy, Vec::new()));
        }
        let warning = self.args.unread_query(std::slice::from_ref(&policy));
        let policy = policy.with_query(query, is_chat)?;
        Ok((policy, warning.into_iter().collect()))
    }

    /// Returns the task of a chat whose decisions are remembered.
    pub(crate) fn session(&self, source: Source, has_state: bool) -> Result<SessionTask, Failure> {
        let SettingsArgs {
            budget,
            query,
            chat: args,
        } = self.args;
        let classified = Classified::of(&source, &args.read);
        let chat = match Input::read(&source, &classified, &args.read, &|_| 0)? {
            Input::Chat(chat) => chat,
            Input::Items { request, .. } => {
                let got = match &request.items[..] {
                    [] => "an empty list",
                    _ => "a list of items",
                };
                let message = format!("a session needs a chat, and this is {got}");
                return Err(Failure::input(message).at(source.whole()));
            }
        };
        let model = budget.model.as_deref().or(chat.model());
        let RunBudget { budget, origin } = budget
            .over(None, window_of(&chat), model)
            .map_err(|failure| failure.or_at(|| source.whole()))?;
        let policy = self.chat_policy(has_state)?;
        let (policy, mut warnings) = self.asked(policy, query.as_deref(), true)?;
        warnings.extend(policy.unsuited_to_chats());
        Ok(SessionTask {
            budget,
            origin,
            warnings,
            policy,
            unknown_model: args.unknown(model),
            counter: args.counter(model, Some(chat.shape()))?,
            chat,
            source,
        })
    }

    /// Returns the task of an input. The command line takes precedence over the input.
    pub(crate) fn task(&self, source: Source, need: Need) -> Result<Task, Failure> {
        let SettingsArgs { budget, chat, .. } = self.args;
        let classified = Classified::of(&source, &chat.read);
        let counter = chat.counter(budget.model.as_deref(), None)?;
        let input = Input::read(&source, &classified, &chat.read, &|text| {
            counter.count(text)
        })?;
        let evidence = classified.evidence;
        match input {
            Input::Chat(chat) => self.chat_task(source, evidence, chat, need),
            Input::Items {
                form,
                request,
                counted,
            } => {
                if let Some(option) = self.trimming.given() {
                    let help = match option {
                        "--pin" => "pin an item with its field \"pinned\"".to_owned(),
                        _ => format!("remove {option}"),
                    };
                    let message = format!("{option} applies to chats, and this is a list of items");
                    return Err(Failure::input(message).at(source.whole()).help(help));
                }
                let counter = counted.then_some(counter);
                self.items_task(source, evidence, form, *request, counter, need)
            }
        }
    }

    fn chat_task(
        &self,
        source: Source,
        evidence: Evidence,
        chat: Box<Chat>,
        need: Need,
    ) -> Result<Task, Failure> {
        let SettingsArgs {
            budget,
            query,
            chat: args,
        } = self.args;
        let model = budget.model.as_deref().or(chat.model());
        let counter = args.counter(model, Some(chat.shape()))?;
        let policy = self.chat_policy(false)?;
        let (policy, asked) = self.asked(policy, query.as_deref(), true)?;
        let failure = |error| Failure::fit(&error).or_at(|| source.whole());
        let candidates = |budget| chat.candidates_for(&policy.policy, budget, &*counter);
        let over = |default| {
            let budget = budget.over(None, default, model);
            budget.map_err(|failure| failure.or_at(|| source.whole()))
        };
        let (budget, candidates) = match need {
            Need::OneBudget => {
                let budget = over(window_of(&chat))?;
                let candidates = candidates(Some(&budget.budget));
                (budget, candidates.map_err(failure)?)
            }
            Need::Budget => {
                let budget = over(window_of(&chat))?;
                (budget, candidates(None).map_err(failure)?)
            }
            Need::AnyBudget => {
                let candidates = candidates(None).map_err(failure)?;
                (over(all_tokens(&candidates))?, candidates)
            }
        };
        let RunBudget { budget, origin } = budget;
        let mut warnings = unused_kinds(&candidates, &budget, &policy.policy, "message");
        warnings.extend(policy.unsuited_to_chats());
        warnings.extend(asked);
        Ok(Task {
            budget,
            origin,
            warnings,
            query: query.clone(),
            policy,
            has_own_policy: false,
            items: candidates.to_vec(),
            model: model.map(str::to_owned),
            unknown_model: args.unknown(model),
            counter: Some(counter),
            content: Content::Chat {
                chat,
                candidates: Box::new(candidates),
            },
            evidence,
            source,
        })
    }

    fn items_task(
        &self,
        source: Source,
        evidence: Evidence,
        form: Form,
        request: RequestConfig,
        counter: Option<Box<dyn TokenCounter>>,
        need: Need,
    ) -> Result<Task, Failure> {
        let SettingsArgs {
            budget,
            query,
            chat: args,
        } = self.args;
        let default = match need {
            Need::AnyBudget => all_tokens(&request.items),
            Need::OneBudget | Need::Budget => DefaultBudget::Missing,
        };
        let model = budget.model.as_deref();
        let unknown_model = args.unknown(model).filter(|_| counter.is_some());
        let run_budget = budget.over(request.budget.as_ref(), default, None)?;
        let RunBudget { budget, origin } = run_budget;
        let policy = match (&self.policy, &request.policy) {
            (Some(policy), _) => policy.clone(),
            (None, Some(own)) => NamedPolicy::of_request(own)?,
            (None, None) => self.for_items.clone(),
        };
        let query = query.clone().or(request.query);
        let (policy, asked) = self
            .asked(policy, query.as_deref(), false)
            .map_err(|failure| failure.or_at(|| source.whole()))?;
        let mut warnings = unused_kinds(&request.items, &budget, &policy.policy, "item");
        let missing = embed::missing_times(&request.items, &budget, &policy.policy);
        warnings.extend(missing);
        warnings.extend(asked);
        Ok(Task {
            budget,
            origin,
            warnings,
            query,
            policy,
            has_own_policy: self.policy.is_none() && request.policy.is_some(),
            items: request.items,
            model: model.map(str::to_owned),
            unknown_model,
            counter,
            content: Content::Items(form),
            evidence,
            source,
        })
    }
}

/// Returns the context window of the chat's model as the default budget.
fn window_of(chat: &Chat) -> DefaultBudget<'_> {
    DefaultBudget::Window {
        model: chat.model(),
        stated: chat.window_limit(),
        reserved: chat.output_limit(),
    }
}

/// Returns the tokens of all candidates as the default budget.
fn all_tokens(items: &[ContextItem]) -> DefaultBudget<'static> {
    DefaultBudget::Tokens(total_tokens(items).max(0))
}

/// A chat, a budget and a policy.
pub(crate) struct SessionTask {
    pub(crate) chat: Box<Chat>,
    pub(crate) budget: ContextBudget,
    /// How the budget was chosen, if neither the input nor the command line states it.
    origin: Option<String>,
    warnings: Vec<String>,
    pub(crate) policy: NamedPolicy,
    pub(crate) counter: Box<dyn TokenCounter>,
    /// Why the counter is an estimate, if the model is unknown.
    unknown_model: Option<UnknownModel>,
    source: Source,
}

impl SessionTask {
    /// Returns what a summary names.
    pub(crate) fn header(&self) -> Header<'_> {
        Header {
            shape: self.chat.shape(),
            len: self.chat.len(),
            budget: &self.budget,
            origin: self.origin.as_deref(),
            policy: &self.policy.name,
            counted_by: counted_by(Some(&*self.counter)),
            unknown_model: self.unknown_model.as_ref(),
            warnings: &self.warnings,
        }
    }

    /// Returns the failure to fit the chat.
    pub(crate) fn failure(&self, error: &FitError) -> Failure {
        Failure::fit(error).or_at(|| self.source.whole())
    }
}

/// Returns how tokens are known, as a summary shows it.
fn counted_by(counter: Option<&dyn TokenCounter>) -> String {
    match counter {
        None => "tokens as given".to_owned(),
        Some(counter) if counter.is_estimate() => format!("estimated by {}", counter.name()),
        Some(counter) => format!("counted by {}", counter.name()),
    }
}

/// Candidates, a budget and a policy.
pub(crate) struct Task {
    pub(crate) items: Vec<ContextItem>,
    pub(crate) budget: ContextBudget,
    /// How the budget was chosen, if neither the input nor the command line states it.
    origin: Option<String>,
    /// Warnings about the policy and the budget.
    warnings: Vec<String>,
    /// The query of `--query` or of the request.
    query: Option<String>,
    pub(crate) policy: NamedPolicy,
    /// Whether the policy is the request's own.
    pub(crate) has_own_policy: bool,
    /// The counter of tokens that the input does not state; `None` if it states all of them.
    pub(crate) counter: Option<Box<dyn TokenCounter>>,
    /// The model of the request or of `--model`.
    pub(crate) model: Option<String>,
    /// Why the counter is an estimate, if the model is unknown.
    pub(crate) unknown_model: Option<UnknownModel>,
    pub(crate) content: Content,
    evidence: Evidence,
    source: Source,
}

/// The candidates of a policy that a task is compared with.
pub(crate) struct Variant {
    policy: Policy,
    /// The candidates of a chat; those of items are the items.
    candidates: Option<Candidates>,
}

/// What the candidates are made from.
pub(crate) enum Content {
    Chat {
        chat: Box<Chat>,
        /// The candidates of the task's policy.
        candidates: Box<Candidates>,
    },
    Items(Form),
}

/// Which budgets a command uses. The budget of items is given by the input or the command line; that of a chat
/// defaults to the context window of its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// One, and the command runs at no other.
    OneBudget,
    /// One, and others beside it.
    Budget,
    /// Many; the default is the tokens of all candidates.
    AnyBudget,
}

impl Task {
    /// Returns the name of the input.
    pub(crate) fn name(&self) -> &str {
        &self.source.name
    }

    /// Returns how the items are written; a chat is an error.
    pub(crate) fn form(&self) -> Result<Form, Failure> {
        match self.content {
            Content::Items(form) => Ok(form),
            Content::Chat { .. } => {
                let evidence = &self.evidence;
                Err(Failure::input(format!(
                    "this is a chat (it has {evidence}), not a list of items"
                ))
                .at(self.source.whole())
                .help("`cupel fit` fits a chat into a budget"))
            }
        }
    }

    /// Refuses a line of a batch that is a single item or message.
    pub(crate) fn check_request(&self) -> Result<(), Failure> {
        let (single, command) = match self.content {
            Content::Items(Form::Lines) => ("an item", "`cupel select` reads one item per line"),
            Content::Chat { .. }
                if matches!(self.evidence, Evidence::Element(_))
                    && self.source.text.trim_start().starts_with('{') =>
            {
                ("a message", "`cupel fit` reads one message per line")
            }
            _ => return Ok(()),
        };
        Err(Failure::input(format!("this is {single}, not a request"))
            .help(format!("each line holds one request; {command}")))
    }

    /// Returns the format of the input, such as `openai` or `items`.
    pub(crate) fn shape(&self) -> Shape {
        match &self.content {
            Content::Chat { chat, .. } => chat.shape(),
            Content::Items(_) => Shape::Items,
        }
    }

    /// Returns the JSON pointer of the list of items; `None` if there is one per line.
    pub(crate) fn list_pointer(&self) -> Option<String> {
        match self.content {
            Content::Chat { .. } | Content::Items(Form::Lines) => None,
            Content::Items(Form::Array) => Some(String::new()),
            Content::Items(Form::Request) => Some("/items".to_owned()),
        }
    }

    /// Returns how many candidates are messages or items, without the request overhead.
    pub(crate) fn len(&self) -> usize {
        match &self.content {
            Content::Chat { chat, .. } => chat.len(),
            Content::Items(_) => self.items.len(),
        }
    }

    /// Returns the role of a message or the kind of an item.
    pub(crate) fn label(&self, index: usize) -> String {
        match &self.content {
            Content::Chat { chat, .. } => chat.message(index).label().to_owned(),
            Content::Items(_) => self.items[index].kind().to_string(),
        }
    }

    /// Returns how the tokens are known, as a summary shows it.
    pub(crate) fn counted_by(&self) -> String {
        counted_by(self.counter.as_deref())
    }

    /// Writes the warnings about the settings, for a command without a summary.
    pub(crate) fn warn(&self, output: &mut Output) {
        if output.has_warnings() {
            self.warnings
                .iter()
                .for_each(|warning| output.warn(warning));
        }
    }

    /// Returns what a summary names.
    pub(crate) fn header(&self) -> Header<'_> {
        Header {
            shape: self.shape(),
            len: self.len(),
            budget: &self.budget,
            origin: self.origin.as_deref(),
            policy: &self.policy.name,
            counted_by: self.counted_by(),
            unknown_model: self.unknown_model.as_ref(),
            warnings: &self.warnings,
        }
    }

    /// Returns the pipeline that the input is run with.
    pub(crate) fn pipeline(&self) -> Pipeline {
        let policy = &self.policy.policy;
        match &self.content {
            Content::Items(_) => policy.clone().into(),
            Content::Chat { chat, candidates } => chat.policy_over(policy, candidates).into(),
        }
    }

    /// Runs the policy.
    pub(crate) fn decide(&self) -> Result<Decisions<'_>, Failure> {
        self.decide_within(&self.budget)
    }

    /// Runs the policy within another budget.
    pub(crate) fn decide_within(&self, budget: &ContextBudget) -> Result<Decisions<'_>, Failure> {
        let decide = |policy: &Policy, items, budget: &ContextBudget| policy.decide(items, budget);
        self.run_over(&self.policy.policy, self.candidates(), budget, decide)
    }

    /// Returns another policy with its candidates.
    pub(crate) fn variant(&self, policy: &NamedPolicy) -> Result<Variant, Failure> {
        let is_chat = matches!(self.content, Content::Chat { .. });
        let policy = policy
            .clone()
            .with_query(self.query.as_deref(), is_chat)
            .map_err(|failure| failure.or_at(|| self.source.whole()))?;
        let candidates = match (&self.content, &self.counter) {
            (Content::Chat { chat, .. }, Some(counter)) => {
                let candidates = chat.candidates_for(&policy.policy, None, &**counter);
                Some(candidates.map_err(|error| self.fit_failure(&error))?)
            }
            _ => None,
        };
        Ok(Variant {
            policy: policy.policy,
            candidates,
        })
    }

    /// Runs another policy over its candidates.
    pub(crate) fn decide_with<'v>(
        &'v self,
        variant: &'v Variant,
    ) -> Result<Decisions<'v>, Failure> {
        let candidates = variant.candidates.as_ref();
        let decide = |policy: &Policy, items, budget: &ContextBudget| policy.decide(items, budget);
        self.run_over(&variant.policy, candidates, &self.budget, decide)
    }

    /// Runs the policy with a trace.
    pub(crate) fn run(&self) -> Result<Run<'_>, Failure> {
        self.run_over(
            &self.policy.policy,
            self.candidates(),
            &self.budget,
            Run::of,
        )
    }

    /// Runs a policy over its candidates; those of items are the items.
    fn run_over<'v, T>(
        &'v self,
        policy: &Policy,
        candidates: Option<&'v Candidates>,
        budget: &ContextBudget,
        run: impl FnOnce(&Policy, &'v [ContextItem], &ContextBudget) -> Result<T, CupelError>,
    ) -> Result<T, Failure> {
        let (Content::Chat { chat, .. }, Some(candidates)) = (&self.content, candidates) else {
            return run(policy, &self.items, budget)
                .map_err(|error| Failure::run(&error).or_at(|| self.source.whole()));
        };
        chat.check(candidates, budget)
            .map_err(|error| self.fit_failure(&error))?;
        run(&chat.policy_over(policy, candidates), candidates, budget)
            .map_err(|error| self.fit_failure(&chat.run_error(candidates, budget, error)))
    }

    fn fit_failure(&self, error: &FitError) -> Failure {
        Failure::fit(error).or_at(|| self.source.whole())
    }

    /// Returns the tokens of a window of the task's policy, with its markers.
    pub(crate) fn tokens_of(&self, decisions: &Decisions<'_>) -> i64 {
        self.tokens_over(self.candidates(), decisions)
    }

    /// Returns the tokens of a window of another policy, with its markers.
    pub(crate) fn tokens_with(&self, variant: &Variant, decisions: &Decisions<'_>) -> i64 {
        self.tokens_over(variant.candidates.as_ref(), decisions)
    }

    fn tokens_over(&self, candidates: Option<&Candidates>, decisions: &Decisions<'_>) -> i64 {
        let window = decisions.window().iter().copied();
        let mut kept: Vec<usize> = window.filter(|&index| index < self.len()).collect();
        kept.sort_unstable();
        let view = |index| decisions.view(index);
        let markers = self.marker_tokens(candidates, &kept, view);
        decisions.tokens_used().saturating_add(markers)
    }

    /// Returns the tokens of the markers in a window with these messages.
    fn marker_tokens(
        &self,
        candidates: Option<&Candidates>,
        kept: &[usize],
        view: impl Fn(usize) -> Option<usize>,
    ) -> i64 {
        let (Content::Chat { chat, .. }, Some(counter)) = (&self.content, &self.counter) else {
            return 0;
        };
        let markers =
            candidates.map(|candidates| chat.markers_for(candidates, kept, view, &**counter));
        let markers = markers.iter().flatten();
        markers.map(|marker| marker.tokens).sum()
    }

    /// Returns why a message is never dropped.
    pub(crate) fn kept_because(&self, index: usize) -> Option<&str> {
        self.candidates()?.kept_because(index)
    }

    fn candidates(&self) -> Option<&Candidates> {
        match &self.content {
            Content::Items(_) => None,
            Content::Chat { candidates, .. } => Some(&**candidates),
        }
    }

    /// Returns what every target of a range selects, [without markers](Self::add_markers). The range ends at the
    /// tokens of all candidates by default.
    pub(crate) fn sweep(
        &self,
        from: i64,
        to: Option<i64>,
        observer: impl FnMut(SweepProgress) -> ControlFlow<()>,
    ) -> Result<BudgetSweep, Failure> {
        let to = to.unwrap_or_else(|| self.all_tokens().max(from));
        let (items, samples) = (&self.items, self.samples());
        let mut sweep = self
            .pipeline()
            .sweep_observed(items, &self.budget, from..=to, samples, observer)
            .map_err(|error| Failure::run(&error))?;
        // The request overhead is a pinned candidate, but no message.
        let overhead = items.len() - self.len();
        sweep.items.truncate(self.len());
        for step in &mut sweep.steps {
            let pinned = overhead.min(step.included);
            step.included -= pinned;
            step.excluded -= overhead - pinned;
            // A pinned candidate scores 1.
            step.total_score -= pinned as f64;
        }
        Ok(sweep)
    }

    /// Adds the tokens of the markers to each step of a sweep. Visits every message once per step.
    pub(crate) fn add_markers(&self, sweep: &mut BudgetSweep) {
        let candidates = self.candidates().filter(|it| it.may_have_markers());
        let Some(candidates) = candidates else {
            return;
        };
        let mut marker_tokens = Vec::with_capacity(sweep.steps.len());
        for_each_window(sweep, self.len(), |step, kept| {
            let view = |index| sweep.view_at(index, step.from);
            marker_tokens.push(self.marker_tokens(Some(candidates), kept, view));
        });
        for (step, markers) in sweep.steps.iter_mut().zip(marker_tokens) {
            step.tokens_used = step.tokens_used.saturating_add(markers);
        }
    }

    /// Returns the budget at which everything fits, or the largest one that is tried.
    pub(crate) fn all_tokens(&self) -> i64 {
        /// Far below the end of the range, so that sums with reserves do not reach it.
        const LARGEST: i64 = i64::MAX / 4;
        total_tokens(&self.items).min(LARGEST)
    }

    /// Returns the number of budgets to try for a slicer that has to be tried at each: as many as take
    /// about one second, or the library's own number. A wrapped slicer visits the candidates again.
    fn samples(&self) -> usize {
        const VISITS: usize = 20_000_000;
        let (candidates, pipeline) = (self.items.len(), self.pipeline());
        let outermost = Some(pipeline.policy().slicer());
        let depth = std::iter::successors(outermost, |slicer| slicer.inner()).count();
        let visits = candidates.saturating_mul(depth).max(1);
        (VISITS / visits).clamp(pipeline.sweep_samples(candidates), 1 << 17)
    }

    /// Refuses a position without a message or item.
    pub(crate) fn check_index(&self, index: usize) -> Result<(), Failure> {
        if index < self.len() {
            return Ok(());
        }
        let failure = Failure::input(format!("--item {index} is out of range"));
        Err(match self.len().checked_sub(1) {
            Some(last) => failure.help(format!("positions start at 0; the last is {last}")),
            None => failure.help(format!("the input has no {}s", self.shape().unit())),
        })
    }

    /// Returns the request overhead of a chat: tools and parameters. It is the last candidate, if there is one.
    pub(crate) fn overhead(&self) -> i64 {
        total_tokens(&self.items[self.len()..])
    }

    /// Returns the heading of a table column of [`label`](Self::label).
    pub(crate) fn label_heading(&self) -> &'static str {
        match self.content {
            Content::Chat { .. } => "role",
            Content::Items(_) => "kind",
        }
    }

    /// Returns how a text names a message or an item: `message 8 (tool)`.
    pub(crate) fn named(&self, index: usize) -> String {
        format!("{} {index} ({})", self.shape().unit(), self.label(index))
    }

    /// Returns every item as it stands in the input, or as JSON if the input is not JSON.
    pub(crate) fn written(&self, form: Form) -> Result<Vec<String>, Failure> {
        if let Some(items) = raw_items(&self.source, form) {
            return Ok(items.into_iter().map(str::to_owned).collect());
        }
        let items = self.items.iter().map(serde_json::to_string);
        items
            .collect::<Result<_, _>>()
            .map_err(|error| Failure::internal(error.to_string()))
    }

    /// Returns the trimmed chat of a run; `None` for items.
    pub(crate) fn fitted(&self, run: &Run<'_>) -> Option<Fitted<'_>> {
        let (Content::Chat { chat, candidates }, Some(counter)) = (&self.content, &self.counter)
        else {
            return None;
        };
        Some(chat.fitted(candidates, &run.decisions, run.report.clone(), &**counter))
    }

    /// Returns the warnings about the window of a chat.
    pub(crate) fn warnings(&self, window: &[usize]) -> Vec<Warning> {
        let Content::Chat { chat, .. } = &self.content else {
            return Vec::new();
        };
        let kept = window.iter().copied().filter(|&index| index < self.len());
        chat.warnings(&kept.collect::<Vec<_>>())
    }

    /// Returns the input with these messages or items and no others, the rest of it unchanged.
    ///
    /// Items that are not JSON become a JSON array.
    pub(crate) fn rewritten(&self, kept: &[usize]) -> Result<String, Failure> {
        match &self.content {
            Content::Chat { chat, .. } => Ok(chat.write(kept)),
            Content::Items(form) => match Chat::parse(&self.source.text, Some(Shape::Items)) {
                Ok(items) => Ok(items.write(kept)),
                Err(_) => {
                    let items = self.written(*form)?;
                    let kept: Vec<&str> = kept.iter().map(|&index| &*items[index]).collect();
                    Ok(format!("[\n  {}\n]\n", kept.join(",\n  ")))
                }
            },
        }
    }
}
