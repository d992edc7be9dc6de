//! [`Prepared`]: an input, a policy, a budget and a counter that belong together.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use cupel::config::RequestConfig;
use cupel::{
    BudgetSweep, ContextBudget, ContextItem, CupelError, Decisions, ExclusionReason,
    InclusionReason, Pipeline, Policy, SweepProgress, total_tokens,
};
use cupel_chat::{
    Candidates, Chat, ChatSweep, Cut, Cuts, FitError, Fitted, Shape, TokenCounter, Warning,
};

use crate::argument::Argument;
use crate::budget::{BudgetOrigin, DefaultBudget, RunBudget};
use crate::counter::Estimated;
use crate::error::{Error, Fault, Unexpected};
use crate::hints::hints_out_of_range;
use crate::input::{Classified, Evidence, Form, Input, raw_items};
use crate::kinds::unused_kinds;
use crate::notice::Notice;
use crate::options::Options;
use crate::policy::{NamedPolicy, unread_query};
use crate::precedence::{Resolved, Stated, UsedConfig};
use crate::run::Run;
use crate::source::Source;
use crate::summary::SUMMARY_TOKENS;
use crate::text::{grouped, grouped_count};
use crate::times::missing_times;
use crate::windows::for_each_window;

/// Which budgets a question uses. It decides which views of messages are made, and what the default budget is.
///
/// Items have no default budget, except for [`AnyBudget`](Self::AnyBudget); that of a chat is the context window of
/// its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One budget. Only the views of messages that it needs are made, which is less work.
    OneBudget,
    /// One budget, and others beside it, such as the least one that keeps a message.
    Budget,
    /// A range of budgets, such as a sweep. Defaults to the tokens of all candidates.
    AnyBudget,
    /// One budget, for policies that are named later ([`Prepared::compare`]), so the query is not checked yet.
    OtherPolicies,
}

/// The settings of a run, however its input is read.
pub struct Setting {
    /// The limits of the window.
    pub budget: ContextBudget,
    /// How the budget was chosen, if neither the input nor the caller states it.
    pub origin: Option<BudgetOrigin>,
    /// The policy.
    pub policy: NamedPolicy,
    /// The counter of tokens that the input does not state; `None` if it states all of them.
    pub counter: Option<Arc<dyn TokenCounter>>,
    /// The model of the request or of the caller.
    pub model: Option<String>,
    /// Why the counter is an estimate, if a model is named and an exact counter was to be expected.
    pub estimated: Option<Estimated>,
    /// Settings without effect.
    pub notices: Vec<Notice>,
    /// What of a configuration applies, if there is one.
    pub config: Option<UsedConfig>,
    pub(crate) source: Source,
}

impl Setting {
    /// Returns the name of the input.
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// Returns settings without effect, and an estimated count.
    pub fn all_notices(&self) -> Vec<Notice> {
        let estimated = self.estimated.clone().map(Notice::Estimated);
        self.notices.iter().cloned().chain(estimated).collect()
    }

    /// Returns where token counts are from: `counted by o200k_base`.
    pub fn counted_by(&self) -> String {
        match self.counter.as_deref() {
            None => "tokens as given".to_owned(),
            Some(counter) if counter.is_estimate() => format!("estimated by {}", counter.name()),
            Some(counter) => format!("counted by {}", counter.name()),
        }
    }

    /// Returns why a candidate was dropped, in few words, without the numbers that differ from one to the next.
    pub fn dropped_because(&self, reason: &ExclusionReason) -> String {
        let words = self.words(reason);
        words.unwrap_or_else(|| reason.summary())
    }

    /// Returns the words for a reason that says more about the policy than the reason itself does.
    fn words(&self, reason: &ExclusionReason) -> Option<String> {
        match reason {
            // A policy that ranks by time drops the oldest, so the reason is its age, not a rank.
            ExclusionReason::RankedBelow { .. } if self.ranks_by_time() => Some(OLDER.to_owned()),
            // The names of the rules of a chat say what is wrong: "tool call without a result".
            ExclusionReason::Filtered { filter_name } => Some(filter_name.clone()),
            _ => None,
        }
    }

    fn ranks_by_time(&self) -> bool {
        self.policy.policy.scorer().ranks_by_time()
    }

    /// Returns whether the policy has a ladder.
    fn has_ladder(&self) -> bool {
        self.policy.policy.slicer().ladder().is_some()
    }

    /// Returns the error of a fit, at the input.
    pub(crate) fn fit_error(&self, error: FitError) -> Error {
        Error::from(error).or_at(|| self.source.whole())
    }
}

/// Why a policy that ranks by time keeps and drops messages.
const NEWER: &str = "newer than the cut";
const OLDER: &str = "older than the cut";
/// Why it keeps a message of a chat that has no cut.
const FITS: &str = "fits";

/// The tokens that a candidate or its group needed, and those that were left for it.
struct Refused {
    tokens: i64,
    left: i64,
}

impl Refused {
    fn of(reason: &ExclusionReason) -> Option<Self> {
        let (tokens, left) = match reason {
            ExclusionReason::BudgetExceeded {
                item_tokens,
                available_tokens,
            } => (item_tokens, available_tokens),
            ExclusionReason::GroupExcluded {
                group_tokens,
                available_tokens,
                ..
            } => (group_tokens, available_tokens),
            _ => return None,
        };
        Some(Self {
            tokens: *tokens,
            left: *left,
        })
    }
}

/// A chat or items, with the policy, the budget and the counter that belong to it.
///
/// Made by [`Prepared::new`] alone, so that the parts match: the candidates are those of the policy, counted by
/// the counter. Every question about a window is a method, and all of them show the same window.
pub struct Prepared {
    /// The policy, the budget and the counter.
    pub setting: Setting,
    /// What the candidates are made from.
    pub content: Content,
    /// The query of the options or of the request.
    query: Option<String>,
    /// Whether the policy is the request's own.
    has_own_policy: bool,
    /// The options of the caller. How other policies trim the chat follows from them.
    options: Options,
    /// Whether the caller gave the query.
    has_given_query: bool,
    evidence: Evidence,
}

/// What the candidates are made from.
pub enum Content {
    /// A chat.
    Chat {
        /// The chat.
        chat: Box<Chat>,
        /// Its messages as candidates of the policy, and the request overhead.
        candidates: Box<Candidates>,
    },
    /// Items.
    Items {
        /// How they are written.
        form: Form,
        /// The items, which are the candidates.
        items: Vec<ContextItem>,
    },
}

/// Another policy over the input of a [`Prepared`], with its candidates.
pub struct Variant {
    /// The policy.
    pub policy: NamedPolicy,
    /// The candidates of a chat; those of items are the items.
    candidates: Option<Candidates>,
}

/// A chat of a [`Session`](crate::Session), with the policy, the budget and the counter.
pub struct PreparedSession {
    /// The chat.
    pub chat: Box<Chat>,
    /// The policy, the budget and the counter.
    pub setting: Setting,
    pub(crate) counter: Arc<dyn TokenCounter>,
    /// The most tokens of a summary.
    pub(crate) summary_tokens: i64,
}

impl PreparedSession {
    /// Prepares the session of a chat.
    ///
    /// # Errors
    ///
    /// What is wrong with the input or the options.
    pub fn new(source: Source, options: &Options) -> Result<Self, Error> {
        let classified = Classified::of(&source, &options.read);
        // Only items are counted while they are read, and items are an error here.
        let chat = match Input::read(&source, &classified, &options.read, &|_| 0)? {
            Input::Chat(chat) => chat,
            Input::Items { request, .. } => {
                let got = match &request.items[..] {
                    [] => Unexpected::EmptyList,
                    _ => Unexpected::Items,
                };
                let what = match options.summary_tokens {
                    Some(_) => "a summary",
                    None => "a session",
                };
                return Err(Error::new(Fault::NeedsChat { what, got }).at(source.whole()));
            }
        };
        let stated = Stated::by_chat(chat.model(), Scope::OneBudget);
        let resolved = options.resolved(&stated);
        let session = Self::of_chat(source, chat, &resolved);
        session.map_err(|error| resolved.blame(error))
    }

    fn of_chat(source: Source, chat: Box<Chat>, resolved: &Resolved<'_>) -> Result<Self, Error> {
        let options = &*resolved.options;
        let model = options.budget.model.as_deref().or(chat.model());
        let default = DefaultBudget::OfChat(&chat);
        let reserve_of = resolved.origin(Argument::Reserve);
        let budget = options.budget.over(None, default, model, reserve_of);
        let budget = budget.map_err(|error| at_cause(error, &source))?;
        let counter = options.counter.counter(model, Some(chat.shape()))?;
        let policy = options.chat_policy(NamedPolicy::for_chats)?;
        let policy = options.with_summaries(policy, &*counter)?;
        let query = options.query.as_deref();
        let mut notices: Vec<Notice> = unread_query(query, [&policy]).into_iter().collect();
        let policy = policy.with_query(query, true)?;
        notices.extend(policy.unsuited_to(&chat));
        notices.retain(|notice| resolved.is_relevant(notice));
        let setting = Setting {
            budget: budget.budget,
            origin: budget.origin,
            policy,
            counter: Some(Arc::clone(&counter)),
            model: model.map(str::to_owned),
            estimated: options.counter.estimated(model),
            notices,
            config: resolved.used_config(),
            source,
        };
        Ok(Self {
            chat,
            setting,
            counter,
            summary_tokens: options.summary_tokens.unwrap_or(SUMMARY_TOKENS),
        })
    }

    /// Returns the counter.
    pub fn counter(&self) -> &dyn TokenCounter {
        &*self.counter
    }
}

impl Prepared {
    /// Prepares an input. The options take precedence over the input.
    ///
    /// # Errors
    ///
    /// What is wrong with the input or the options.
    pub fn new(source: Source, options: &Options, scope: Scope) -> Result<Self, Error> {
        let classified = Classified::of(&source, &options.read);
        // For items without tokens. A chat has a counter of its own, chosen by its model and its format.
        let counter = options.counter_of_items()?;
        let count = |text: &str| counter.count(text);
        let input = Input::read(&source, &classified, &options.read, &count)?;
        let evidence = classified.evidence;
        match input {
            Input::Chat(chat) => Self::of_chat(source, evidence, chat, options, scope),
            Input::Items {
                form,
                request,
                counted,
            } => {
                // Options that have no effect are an error, so that a caller does not rely on them.
                if let Some(setting) = options.chat.given().next() {
                    let fault = Fault::ForChats(Argument::Chat(setting.name()));
                    return Err(Error::new(fault).at(source.whole()));
                }
                let counter = counted.then_some(counter);
                Self::of_items(source, evidence, form, *request, counter, options, scope)
            }
        }
    }

    /// Prepares a chat that was parsed already; `name` names it in errors and answers.
    ///
    /// # Errors
    ///
    /// What is wrong with the chat or the options.
    pub fn from_chat(
        name: impl Into<String>,
        chat: Chat,
        options: &Options,
        scope: Scope,
    ) -> Result<Self, Error> {
        let source = Source::new(name, "");
        Self::of_chat(source, Evidence::Missing, Box::new(chat), options, scope)
    }

    /// Prepares items; `name` names them in errors and answers.
    ///
    /// # Errors
    ///
    /// What is wrong with the options.
    pub fn from_items(
        name: impl Into<String>,
        items: Vec<ContextItem>,
        options: &Options,
        scope: Scope,
    ) -> Result<Self, Error> {
        let request = RequestConfig {
            items,
            ..RequestConfig::default()
        };
        Self::from_request(name, request, options, scope)
    }

    /// Prepares a request; `name` names it in errors and answers.
    ///
    /// # Errors
    ///
    /// What is wrong with the request or the options.
    pub fn from_request(
        name: impl Into<String>,
        request: RequestConfig,
        options: &Options,
        scope: Scope,
    ) -> Result<Self, Error> {
        let (source, form) = (Source::new(name, ""), Form::Array);
        Self::of_items(
            source,
            Evidence::Missing,
            form,
            request,
            None,
            options,
            scope,
        )
    }

    fn of_chat(
        source: Source,
        evidence: Evidence,
        chat: Box<Chat>,
        options: &Options,
        scope: Scope,
    ) -> Result<Self, Error> {
        let stated = Stated::by_chat(chat.model(), scope);
        let resolved = options.resolved(&stated);
        let prepared = Self::of_resolved_chat(source, evidence, chat, options, &resolved, scope);
        prepared.map_err(|error| resolved.blame(error))
    }

    fn of_resolved_chat(
        source: Source,
        evidence: Evidence,
        chat: Box<Chat>,
        caller: &Options,
        resolved: &Resolved<'_>,
        scope: Scope,
    ) -> Result<Self, Error> {
        let options = &*resolved.options;
        let model = options.budget.model.as_deref().or(chat.model());
        let counter = options.counter.counter(model, Some(chat.shape()))?;
        let policy = options.chat_policy(NamedPolicy::for_chats)?;
        let policy = options.with_summaries(policy, &*counter)?;
        let query = options.query.as_deref();
        let (policy, unread) = with_query(policy, query, options, true, scope)?;
        let at_input = |error: Error| error.or_at(|| source.whole());
        let candidates = |budget| {
            let candidates = chat.candidates_for(&policy.policy, budget, &*counter);
            candidates.map_err(|error| at_input(error.into()))
        };
        let over = |default| {
            let reserve_of = resolved.origin(Argument::Reserve);
            let budget = options.budget.over(None, default, model, reserve_of);
            budget.map_err(|error| at_cause(error, &source))
        };
        // With one budget, candidates have only the views that it needs. For a range, the budget follows from the
        // candidates.
        let (budget, candidates) = match scope {
            Scope::OneBudget => {
                let budget = over(DefaultBudget::OfChat(&chat))?;
                let candidates = candidates(Some(&budget.budget))?;
                (budget, candidates)
            }
            Scope::Budget | Scope::OtherPolicies => {
                let budget = over(DefaultBudget::OfChat(&chat))?;
                let one = policy.policy.chat().replay.then_some(&budget.budget);
                let candidates = candidates(one)?;
                (budget, candidates)
            }
            Scope::AnyBudget => {
                // A replay cuts the messages for each budget; here they are as a chat that fits has them.
                let all = ContextBudget::with_target(MOST_TOKENS, MOST_TOKENS)?;
                let one = policy.policy.chat().replay.then_some(&all);
                let candidates = candidates(one)?;
                (over(all_tokens(&candidates))?, candidates)
            }
        };
        let RunBudget { budget, origin } = budget;
        let mut notices = unused_kinds(&candidates, &budget, &policy.policy, "message");
        notices.extend(policy.unsuited_to(&chat));
        notices.extend(unread);
        notices.retain(|notice| resolved.is_relevant(notice));
        // A list of items under the key of a list of messages.
        if chat.shape() == Shape::Items && options.read.shape.is_none() {
            notices.push(Notice::NoRole);
        }
        Ok(Self {
            query: options.query.clone(),
            // A chat states no policy.
            has_own_policy: resolved.is_configured(Argument::Policy),
            options: caller.clone(),
            has_given_query: options.query.is_some(),
            evidence,
            setting: Setting {
                budget,
                origin,
                policy,
                model: model.map(str::to_owned),
                estimated: options.counter.estimated(model),
                counter: Some(counter),
                notices,
                config: resolved.used_config(),
                source,
            },
            content: Content::Chat {
                chat,
                candidates: Box::new(candidates),
            },
        })
    }

    fn of_items(
        source: Source,
        evidence: Evidence,
        form: Form,
        request: RequestConfig,
        counter: Option<Arc<dyn TokenCounter>>,
        options: &Options,
        scope: Scope,
    ) -> Result<Self, Error> {
        let stated = Stated {
            is_chat: Some(false),
            model: None,
            has_budget: request.budget.is_some(),
            has_policy: request.policy.is_some(),
            is_over_budgets: scope == Scope::AnyBudget,
        };
        let resolved = options.resolved(&stated);
        let read = (form, request, counter);
        let prepared = Self::of_resolved_items(source, evidence, read, options, &resolved, scope);
        prepared.map_err(|error| resolved.blame(error))
    }

    fn of_resolved_items(
        source: Source,
        evidence: Evidence,
        (form, request, counter): (Form, RequestConfig, Option<Arc<dyn TokenCounter>>),
        caller: &Options,
        resolved: &Resolved<'_>,
        scope: Scope,
    ) -> Result<Self, Error> {
        let options = &*resolved.options;
        let default = match scope {
            Scope::AnyBudget => all_tokens(&request.items),
            _ => DefaultBudget::Missing,
        };
        let model = options.budget.model.as_deref();
        let estimated = options.counter.estimated(model);
        let budget = request.budget.as_ref();
        let run_budget = options.budget.over(budget, default, None, None)?;
        let RunBudget { budget, origin } = run_budget;
        let policy = match (&options.policy, &request.policy) {
            (Some(policy), _) => policy.clone(),
            (None, Some(own)) => NamedPolicy::of_request(own)?,
            (None, None) => NamedPolicy::for_items()?,
        };
        let query = options.query.clone().or(request.query);
        let with_query = with_query(policy, query.as_deref(), options, false, scope);
        let (policy, unread) = with_query.map_err(|error| error.or_at(|| source.whole()))?;
        let mut notices = unused_kinds(&request.items, &budget, &policy.policy, "item");
        notices.extend(missing_times(&request.items, &budget, &policy.policy));
        notices.extend(hints_out_of_range(&request.items, &policy.policy));
        // Items are fitted as well. A list of them that says nothing but contents may be a chat without roles.
        if scope == Scope::OneBudget
            && counter.is_some()
            && matches!(evidence, Evidence::Element(_))
            && request.items.iter().all(has_only_content)
        {
            notices.push(Notice::NoRole);
        }
        notices.extend(unread);
        Ok(Self {
            query,
            has_own_policy: match &options.policy {
                None => request.policy.is_some(),
                Some(_) => resolved.is_configured(Argument::Policy),
            },
            options: caller.clone(),
            has_given_query: options.query.is_some(),
            evidence,
            setting: Setting {
                budget,
                origin,
                policy,
                model: model.map(str::to_owned),
                estimated: estimated.filter(|_| counter.is_some()),
                counter,
                notices,
                config: resolved.used_config(),
                source,
            },
            content: Content::Items {
                form,
                items: request.items,
            },
        })
    }

    /// Returns the candidates: the messages or items, then the request overhead of a chat, if it has one.
    pub fn items(&self) -> &[ContextItem] {
        match &self.content {
            Content::Chat { candidates, .. } => candidates,
            Content::Items { items, .. } => items,
        }
    }

    /// Returns the limits of the window.
    pub fn budget(&self) -> &ContextBudget {
        &self.setting.budget
    }

    /// Returns how the items are written; a chat is an error.
    ///
    /// # Errors
    ///
    /// [`Fault::NeedsItems`].
    pub fn form(&self) -> Result<Form, Error> {
        match self.content {
            Content::Items { form, .. } => Ok(form),
            Content::Chat { .. } => {
                let evidence = self.evidence.clone();
                let fault = Fault::NeedsItems { evidence };
                Err(Error::new(fault).at(self.setting.source.whole()))
            }
        }
    }

    /// Refuses a line of many requests that is a single item or message.
    ///
    /// # Errors
    ///
    /// [`Fault::NotARequest`].
    pub fn check_request(&self) -> Result<(), Error> {
        let single = match self.content {
            Content::Items {
                form: Form::Lines, ..
            } => Unexpected::OneItem,
            Content::Chat { .. }
                if matches!(self.evidence, Evidence::Element(_))
                    && self.setting.source.text.trim_start().starts_with('{') =>
            {
                Unexpected::OneMessage
            }
            _ => return Ok(()),
        };
        Err(Fault::NotARequest(single).into())
    }

    /// Returns the format of the input, such as `openai` or `items`.
    pub fn shape(&self) -> Shape {
        match &self.content {
            Content::Chat { chat, .. } => chat.shape(),
            Content::Items { .. } => Shape::Items,
        }
    }

    /// Returns the JSON pointer of the list of messages or items; `None` if there is one per line.
    pub fn list_pointer(&self) -> Option<&str> {
        match &self.content {
            Content::Chat { chat, .. } => chat.list_pointer(),
            Content::Items {
                form: Form::Lines, ..
            } => None,
            Content::Items {
                form: Form::Array, ..
            } => Some(""),
            Content::Items {
                form: Form::Request,
                ..
            } => Some("/items"),
        }
    }

    /// Returns how many candidates are messages or items, without the request overhead.
    pub fn len(&self) -> usize {
        match &self.content {
            Content::Chat { chat, .. } => chat.len(),
            Content::Items { items, .. } => items.len(),
        }
    }

    /// Returns whether there are no messages or items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the role of a message or the kind of an item.
    pub fn label(&self, index: usize) -> String {
        match &self.content {
            Content::Chat { chat, .. } => chat.message(index).label().to_owned(),
            Content::Items { items, .. } => items[index].kind().to_string(),
        }
    }

    /// Returns how a text names a message or an item: `message 8 (tool)`.
    pub fn named(&self, index: usize) -> String {
        format!("{} {index} ({})", self.shape().unit(), self.label(index))
    }

    /// Returns the pipeline that the input is run with.
    pub fn pipeline(&self) -> Pipeline {
        let policy = &self.setting.policy.policy;
        match &self.content {
            Content::Items { .. } => policy.clone(),
            Content::Chat { chat, candidates } => chat.policy_over(policy, candidates),
        }
    }

    /// Runs the policy.
    ///
    /// # Errors
    ///
    /// [`Fault::Fit`] and [`Fault::Run`].
    pub fn decide(&self) -> Result<Decisions<'_>, Error> {
        self.decide_over(self.candidates(), &self.setting.budget)
    }

    /// Returns whether the policy includes each candidate within another budget.
    ///
    /// # Errors
    ///
    /// [`Fault::Fit`] and [`Fault::Run`].
    pub fn included_within(&self, budget: &ContextBudget) -> Result<Vec<bool>, Error> {
        let own = match (&self.content, &self.setting.counter) {
            (Content::Chat { chat, .. }, Some(counter)) if self.has_replay() => {
                let policy = &self.setting.policy.policy;
                let own = chat.candidates_for(policy, Some(budget), &**counter);
                Some(own.map_err(|error| self.setting.fit_error(error))?)
            }
            _ => None,
        };
        let decisions = self.decide_over(own.as_ref().or(self.candidates()), budget)?;
        let is_included = |index| decisions.inclusion(index).is_some();
        Ok((0..self.items().len()).map(is_included).collect())
    }

    fn decide_over<'v>(
        &'v self,
        candidates: Option<&'v Candidates>,
        budget: &ContextBudget,
    ) -> Result<Decisions<'v>, Error> {
        let decide = |policy: &Policy, items, budget: &ContextBudget| policy.decide(items, budget);
        self.run_over(&self.setting.policy.policy, candidates, budget, decide)
    }

    /// Runs the policy with a trace.
    ///
    /// # Errors
    ///
    /// [`Fault::Fit`] and [`Fault::Run`].
    pub fn run(&self) -> Result<Run<'_>, Error> {
        let (policy, budget) = (&self.setting.policy.policy, &self.setting.budget);
        self.run_over(policy, self.candidates(), budget, Run::of)
    }

    /// Returns another policy with its candidates. [`ChatOptions`](crate::ChatOptions) and the query apply to it too.
    ///
    /// # Errors
    ///
    /// [`Fault::NeedsLadder`], [`Fault::NeedsQuery`] and [`Fault::Fit`].
    pub fn variant(&self, policy: NamedPolicy) -> Result<Variant, Error> {
        let is_chat = matches!(self.content, Content::Chat { .. });
        let policy = policy.with_query(self.query.as_deref(), is_chat);
        let policy = policy.map_err(|error| error.or_at(|| self.setting.source.whole()))?;
        let candidates = match (&self.content, &self.setting.counter) {
            (Content::Chat { chat, .. }, Some(counter)) => {
                let one = policy.policy.chat().replay.then_some(&self.setting.budget);
                let candidates = chat.candidates_for(&policy.policy, one, &**counter);
                Some(candidates.map_err(|error| self.setting.fit_error(error))?)
            }
            _ => None,
        };
        Ok(Variant { policy, candidates })
    }

    /// Runs another policy over its candidates.
    ///
    /// # Errors
    ///
    /// [`Fault::Fit`] and [`Fault::Run`].
    pub fn decide_with<'v>(&'v self, variant: &'v Variant) -> Result<Decisions<'v>, Error> {
        let candidates = variant.candidates.as_ref();
        let decide = |policy: &Policy, items, budget: &ContextBudget| policy.decide(items, budget);
        let (policy, budget) = (&variant.policy.policy, &self.setting.budget);
        self.run_over(policy, candidates, budget, decide)
    }

    /// Runs a policy over its candidates; those of items are the items.
    ///
    /// The one place where a chat's policy is run, so that all questions show the same window and the same errors.
    fn run_over<'v, T>(
        &'v self,
        policy: &Policy,
        candidates: Option<&'v Candidates>,
        budget: &ContextBudget,
        run: impl FnOnce(&Policy, &'v [ContextItem], &ContextBudget) -> Result<T, CupelError>,
    ) -> Result<T, Error> {
        let (Content::Chat { chat, .. }, Some(candidates)) = (&self.content, candidates) else {
            let run = run(policy, self.items(), budget);
            return run.map_err(|error| Error::from(error).or_at(|| self.setting.source.whole()));
        };
        let fit_error = |error| self.setting.fit_error(error);
        // Mandatory messages that do not fit are named before the run, whose error has no messages.
        chat.check(candidates, budget).map_err(fit_error)?;
        run(&chat.policy_over(policy, candidates), candidates, budget)
            .map_err(|error| fit_error(chat.run_error(candidates, budget, error)))
    }

    /// Returns the tokens of a window of the policy, with its markers.
    pub fn tokens_of(&self, decisions: &Decisions<'_>) -> i64 {
        self.tokens_over(self.candidates(), decisions)
    }

    /// Returns the tokens of a window of another policy, with its markers.
    pub fn tokens_with(&self, variant: &Variant, decisions: &Decisions<'_>) -> i64 {
        self.tokens_over(variant.candidates.as_ref(), decisions)
    }

    fn tokens_over(&self, candidates: Option<&Candidates>, decisions: &Decisions<'_>) -> i64 {
        let view = |index| decisions.view(index);
        let markers = self.marker_tokens(candidates, &self.kept(decisions), view);
        decisions.tokens_used().saturating_add(markers)
    }

    /// Returns the messages or items of a window in ascending order, without the request overhead.
    pub fn kept(&self, decisions: &Decisions<'_>) -> Vec<usize> {
        let window = decisions.window().iter().copied();
        let mut kept: Vec<usize> = window.filter(|&index| index < self.len()).collect();
        kept.sort_unstable();
        kept
    }

    /// Returns the tokens of the markers in a window with these messages.
    fn marker_tokens(
        &self,
        candidates: Option<&Candidates>,
        kept: &[usize],
        view: impl Fn(usize) -> Option<usize>,
    ) -> i64 {
        let (Content::Chat { chat, .. }, Some(counter)) = (&self.content, &self.setting.counter)
        else {
            return 0;
        };
        let markers =
            candidates.map(|candidates| chat.markers_for(candidates, kept, view, &**counter));
        let markers = markers.iter().flatten();
        markers.map(|marker| marker.tokens).sum()
    }

    /// Returns why a message is never dropped.
    pub fn kept_because(&self, index: usize) -> Option<&str> {
        self.candidates()?.kept_because(index)
    }

    /// Returns why a candidate is in the window; `None` if it is not. A message that a cut or the limit for tool results
    /// shortened is a shortened one, too.
    pub(crate) fn inclusion(
        &self,
        decisions: &Decisions<'_>,
        index: usize,
    ) -> Option<InclusionReason> {
        let reason = decisions.inclusion(index)?;
        let is_free = matches!(
            reason,
            InclusionReason::Scored | InclusionReason::Shortened { .. }
        );
        let before = self.candidates().and_then(|it| it.tokens_before(index));
        let tokens = decisions.item(index).tokens();
        Some(match before {
            Some(original_tokens) if is_free && tokens < original_tokens => {
                InclusionReason::Shortened {
                    tokens,
                    original_tokens,
                }
            }
            _ => reason,
        })
    }

    /// Returns the cut that shortened or dropped a message, if the policy has a replay.
    pub fn cut(&self, index: usize) -> Option<Cut> {
        self.cuts()?.of(index).copied()
    }

    /// Returns the cuts of a chat that exceeds the budget, if the policy has a replay.
    pub fn cuts(&self) -> Option<&Cuts> {
        self.candidates()?.cuts()
    }

    /// Returns which cut of a replay shortened or dropped a message, in words; `None` if there is none.
    pub fn cut_words(&self, decisions: &Decisions<'_>, index: usize) -> Option<String> {
        let cuts = self.cuts()?;
        if let Some(cut) = cuts.of(index) {
            return Some(format!(
                "at request {} of {}: {} tokens, over the budget of {}, became {}",
                grouped_count(cut.request),
                grouped_count(cuts.requests),
                grouped(cut.tokens_before),
                grouped(cut.budget),
                grouped(cut.tokens_after)
            ));
        }
        // The ladder behind the cuts.
        let reason = decisions.exclusion(index);
        let is_dropped = reason.is_some_and(|it| !matches!(it, ExclusionReason::Filtered { .. }));
        let is_shortened = decisions.view(index).is_some() || cuts.is_squeezed(index);
        (is_dropped || is_shortened).then(|| "for this request alone".to_owned())
    }

    /// Returns the message with the newer result that supersedes those of a message, if there is one.
    pub fn superseded_by(&self, index: usize) -> Option<usize> {
        self.candidates()?.superseded_by(index)
    }

    /// Returns why a message or an item is in the window or not. The fact comes first, because a table cuts the end.
    pub fn why(&self, decisions: &Decisions<'_>, index: usize) -> String {
        let is_by_time =
            self.setting.ranks_by_time() && matches!(self.content, Content::Chat { .. });
        match (self.inclusion(decisions, index), self.kept_because(index)) {
            (None, _) => {
                let words = decisions.exclusion(index);
                let words = words.and_then(|reason| self.why_out(decisions, &reason));
                let words = words.unwrap_or_else(|| decisions.phrase(index).unwrap_or_default());
                match self.cut(index) {
                    Some(cut) => format!("{words} at request {}", grouped_count(cut.request)),
                    None => words,
                }
            }
            (Some(InclusionReason::Scored), None) if is_by_time => {
                // The request overhead is a candidate of every window, too.
                let is_whole = decisions.window().len() == decisions.items().len();
                if is_whole { FITS } else { NEWER }.to_owned()
            }
            (Some(reason), None) => reason.phrase(),
            (Some(reason @ InclusionReason::Shortened { .. }), kept) => {
                let newer = self.superseded_by(index);
                let newer = newer.map(|newer| format!("superseded by #{newer}"));
                let words = [Some(reason.phrase()), newer, kept.map(str::to_owned)];
                words.into_iter().flatten().collect::<Vec<_>>().join("; ")
            }
            (Some(_), Some(kept)) => format!("always kept: {kept}"),
        }
    }

    /// Returns why a message is out, in words that fit to the numbers of the window; `None` if the reason does.
    fn why_out(&self, decisions: &Decisions<'_>, reason: &ExclusionReason) -> Option<String> {
        let refused = Refused::of(reason).filter(|_| self.setting.has_ladder());
        let Some(Refused { tokens, left }) = refused else {
            return self.setting.words(reason);
        };
        // A ladder drops from the oldest on, so one message or group has such a reason, and this runs once.
        let limit = self.setting.budget.window_limit();
        let free = limit.saturating_sub(self.tokens_of(decisions));
        if free == left {
            return None;
        }
        // The ladder reserves a marker for what it drops. Where the window needs none yet, the reserve is free; with
        // this message it would need one.
        let marker = (free - left).max(0);
        let has_marker = marker > 0;
        let needed = if has_marker { tokens + marker } else { tokens };
        let (needed, free) = (grouped(needed), grouped(free));
        let with = if has_marker { " with marker" } else { "" };
        Some(match reason {
            ExclusionReason::GroupExcluded { group_size, .. } => {
                format!("group of {group_size} too large: needs {needed}{with}, {free} left")
            }
            _ => format!("no room: needs {needed}{with}, {free} left"),
        })
    }

    fn candidates(&self) -> Option<&Candidates> {
        match &self.content {
            Content::Items { .. } => None,
            Content::Chat { candidates, .. } => Some(&**candidates),
        }
    }

    /// Returns what every target of a range selects, without the tokens of markers.
    pub(crate) fn swept(
        &self,
        targets: RangeInclusive<i64>,
        observer: &mut dyn FnMut(SweepProgress) -> ControlFlow<()>,
    ) -> Result<BudgetSweep, Error> {
        let (items, samples) = (self.items(), self.samples());
        let replayed = self.replayed(targets.clone(), observer)?;
        let mut sweep = match replayed {
            Some(replayed) => replayed.sweep,
            None => self.pipeline().sweep_observed(
                items,
                &self.setting.budget,
                targets,
                samples,
                observer,
            )?,
        };
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

    /// Returns the windows at a range of budgets, with the tokens of markers, if the policy has a replay.
    ///
    /// # Errors
    ///
    /// [`Fault::Fit`].
    pub fn replayed(
        &self,
        targets: RangeInclusive<i64>,
        observer: &mut dyn FnMut(SweepProgress) -> ControlFlow<()>,
    ) -> Result<Option<ChatSweep>, Error> {
        match &self.content {
            Content::Chat { chat, .. } => self.replayed_over(chat, targets, observer),
            Content::Items { .. } => Ok(None),
        }
    }

    /// As [`replayed`](Self::replayed), of the chat as it was at the previous request; `None` if there was none.
    ///
    /// # Errors
    ///
    /// [`Fault::Fit`].
    pub fn replayed_before(
        &self,
        targets: RangeInclusive<i64>,
    ) -> Result<Option<ChatSweep>, Error> {
        let earlier = match &self.content {
            Content::Chat { chat, .. } if self.has_replay() => chat.at_previous_request(),
            _ => None,
        };
        let mut go_on = |_| ControlFlow::Continue(());
        match earlier {
            Some(chat) => self.replayed_over(&chat, targets, &mut go_on),
            None => Ok(None),
        }
    }

    fn replayed_over(
        &self,
        chat: &Chat,
        targets: RangeInclusive<i64>,
        observer: &mut dyn FnMut(SweepProgress) -> ControlFlow<()>,
    ) -> Result<Option<ChatSweep>, Error> {
        let Some(counter) = self
            .setting
            .counter
            .as_deref()
            .filter(|_| self.has_replay())
        else {
            return Ok(None);
        };
        let (policy, budget) = (&self.setting.policy.policy, &self.setting.budget);
        // Not the messages of this chat: one at an earlier request has the same budgets.
        let samples = (REPLAYED / self.len().max(1)).max(LEAST_REPLAYS);
        let swept = chat.sweep(policy, budget, targets, samples, counter, observer);
        swept
            .map(Some)
            .map_err(|error| self.setting.fit_error(error))
    }

    /// Adds the tokens of the markers to each step of a sweep. Visits every message once per step.
    pub(crate) fn add_markers(&self, sweep: &mut BudgetSweep) {
        // The windows of a replay have them.
        let candidates = self.candidates().filter(|_| !self.has_replay());
        let candidates = candidates.filter(|it| it.may_have_markers());
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
    pub fn all_tokens(&self) -> i64 {
        total_tokens(self.items()).min(MOST_TOKENS)
    }

    /// Returns the least target of the budget at which everything fits, or a little more.
    pub fn enough(&self) -> i64 {
        let candidates = self.candidates();
        let items = self.items().iter().enumerate();
        let tokens = items.map(|(index, item)| {
            // A cut may have shortened it.
            let before = candidates.and_then(|it| it.tokens_before(index));
            (item.pinned(), before.unwrap_or(item.tokens()))
        });
        enough(self.budget(), tokens)
    }

    /// Returns the number of budgets to try for a slicer that has to be tried at each: as many as take
    /// about one second, or the library's own number. A wrapped slicer visits the candidates again.
    fn samples(&self) -> usize {
        /// The candidates that a core visits in about one second.
        const VISITS: usize = 20_000_000;
        /// More samples than this show no more in a table or a chart, and each one takes memory.
        const MOST: usize = 1 << 17;
        let (candidates, pipeline) = (self.items().len(), self.pipeline());
        let outermost = Some(pipeline.policy().slicer());
        let depth = std::iter::successors(outermost, |slicer| slicer.inner()).count();
        let visits = candidates.saturating_mul(depth).max(1);
        (VISITS / visits).clamp(pipeline.sweep_samples(candidates), MOST)
    }

    /// Returns whether the cuts of the chat are found by a replay. A larger budget does not always keep more then.
    pub fn has_replay(&self) -> bool {
        let is_chat = self.shape() != Shape::Items;
        is_chat && self.setting.has_ladder() && self.setting.policy.policy.chat().replay
    }

    /// Refuses a position without a message or item.
    ///
    /// # Errors
    ///
    /// [`Fault::OutOfRange`].
    pub fn check_index(&self, index: usize) -> Result<(), Error> {
        if index < self.len() {
            return Ok(());
        }
        Err(Error::new(Fault::OutOfRange {
            index,
            len: self.len(),
            shape: self.shape(),
        }))
    }

    /// Returns the request overhead of a chat: tools and parameters. It is the last candidate, if there is one.
    pub fn overhead(&self) -> i64 {
        total_tokens(&self.items()[self.len()..])
    }

    /// Returns every item as it stands in the input, or as JSON if the input is not JSON.
    ///
    /// # Errors
    ///
    /// [`Fault::Internal`] if an item cannot be written.
    pub fn written(&self, form: Form) -> Result<Vec<String>, Error> {
        if let Some(items) = raw_items(&self.setting.source, form) {
            return Ok(items.into_iter().map(str::to_owned).collect());
        }
        let items = self.items().iter().map(serde_json::to_string);
        items.collect::<Result<_, _>>().map_err(Error::internal)
    }

    /// Returns the trimmed chat of a run; `None` for items.
    pub fn fitted(&self, run: &Run<'_>) -> Option<Fitted<'_>> {
        let (Content::Chat { chat, candidates }, Some(counter)) =
            (&self.content, &self.setting.counter)
        else {
            return None;
        };
        Some(chat.fitted(candidates, &run.decisions, run.report.clone(), &**counter))
    }

    /// Returns the warnings about the window of a chat.
    pub fn warnings(&self, decisions: &Decisions<'_>) -> Vec<Warning> {
        match &self.content {
            Content::Chat { chat, .. } => chat.warnings(&self.kept(decisions)),
            Content::Items { .. } => Vec::new(),
        }
    }

    /// Returns the input with these messages or items and no others, the rest of it unchanged.
    ///
    /// Items that are not JSON become a JSON array.
    ///
    /// # Errors
    ///
    /// As [`written`](Self::written).
    pub fn rewritten(&self, kept: &[usize]) -> Result<String, Error> {
        match &self.content {
            Content::Chat { chat, .. } => Ok(chat.write(kept)),
            Content::Items { form, .. } => {
                // The layout of a chat writes JSON items byte for byte, too.
                match Chat::parse(&self.setting.source.text, Some(Shape::Items)) {
                    Ok(items) => Ok(items.write(kept)),
                    Err(_) => {
                        let items = self.written(*form)?;
                        let kept: Vec<&str> = kept.iter().map(|&index| &*items[index]).collect();
                        Ok(format!("[\n  {}\n]\n", kept.join(",\n  ")))
                    }
                }
            }
        }
    }

    /// Returns the policies to compare: those that are given, with the [`ChatOptions`](crate::ChatOptions), and that of the request or the
    /// configuration beside a single one.
    pub(crate) fn compared(&self, policies: Vec<NamedPolicy>) -> Result<Vec<Variant>, Error> {
        let is_chat = matches!(self.content, Content::Chat { .. });
        let policies = policies.into_iter().map(|policy| {
            if is_chat {
                self.options.chat_for(&policy.policy).apply(policy)
            } else {
                Ok(policy)
            }
        });
        let mut policies = policies.collect::<Result<Vec<_>, _>>()?;
        // One argument is compared with the policy of the request or of the configuration.
        if policies.len() == 1 && self.has_own_policy {
            policies.insert(0, self.setting.policy.clone());
        }
        if policies.len() < 2 {
            return Err(Fault::OnePolicy { is_chat }.into());
        }
        policies.into_iter().map(|it| self.variant(it)).collect()
    }

    /// Returns a notice if the caller gave a query that no policy reads.
    pub(crate) fn unread_by<'p>(
        &self,
        policies: impl IntoIterator<Item = &'p NamedPolicy> + Clone,
    ) -> Option<Notice> {
        let query = self.query.as_deref().filter(|_| self.has_given_query);
        unread_query(query, policies)
    }
}

/// Far below the end of the range, so that sums with reserves do not reach it.
const MOST_TOKENS: i64 = i64::MAX / 4;

/// The most messages that the replays of a sweep go through, about one second, and the least number of replays.
const REPLAYED: usize = 400_000;
const LEAST_REPLAYS: usize = 48;

/// Returns the least target of a budget at which all candidates fit, or a little more. `tokens` are those of each, and
/// whether it is pinned.
pub fn enough(budget: &ContextBudget, tokens: impl Iterator<Item = (bool, i64)>) -> i64 {
    let (mut pinned, mut others) = (0_i128, 0_i128);
    for (is_pinned, tokens) in tokens {
        let sum = if is_pinned { &mut pinned } else { &mut others };
        *sum += i128::from(tokens.max(0));
    }
    let gap = budget.max_tokens() - budget.target_tokens();
    let slots = i128::from(budget.total_reserved()) - i128::from(budget.output_reserve());
    let share = 1.0 - budget.estimation_safety_margin_percent() / 100.0;
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
    let others = (others as f64 / share).ceil() as i128;
    let enough = pinned
        .saturating_add(others)
        .saturating_add(slots)
        .saturating_add(i128::from((budget.output_reserve() - gap).max(0)));
    // Both limits of every budget stay below the largest number.
    i64::try_from(enough.min(i128::from(MOST_TOKENS - gap))).unwrap_or(MOST_TOKENS)
}

/// Returns whether nothing but the content and the tokens of an item is set.
fn has_only_content(item: &ContextItem) -> bool {
    let bare = ContextItem::builder(item.content(), item.tokens()).build();
    bare.is_ok_and(|bare| *item == bare)
}

/// Returns the policy for a query, and a notice if it does not read the one that the caller gave.
fn with_query(
    policy: NamedPolicy,
    query: Option<&str>,
    options: &Options,
    is_chat: bool,
    scope: Scope,
) -> Result<(NamedPolicy, Option<Notice>), Error> {
    // The policies that are compared get the query later, in `variant`.
    if scope == Scope::OtherPolicies {
        return Ok((policy, None));
    }
    let unread = unread_query(options.query.as_deref(), [&policy]);
    Ok((policy.with_query(query, is_chat)?, unread))
}

/// Returns the error of a budget at the input, if the input is the cause and not an argument.
fn at_cause(error: Error, source: &Source) -> Error {
    match *error.fault {
        Fault::NoModelBudget(_) | Fault::NothingLeft { .. } => error.or_at(|| source.whole()),
        _ => error,
    }
}

/// Returns the tokens of all candidates as the default budget.
fn all_tokens(items: &[ContextItem]) -> DefaultBudget<'static> {
    DefaultBudget::Tokens(total_tokens(items).max(0))
}
