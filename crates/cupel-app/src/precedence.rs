//! What comes before what: the caller, then what the input states itself, then the configuration, then the default.
//!
//! [`Options::resolved`] is the only place with this order. It returns options in which the configuration fills what
//! neither the caller nor the input states; everything else reads these options as if the caller had given all of it.
//!
//! | value | stated by an input | instead of the configuration's |
//! |---|---|---|
//! | budget, target, reserve, slot | a request document with `budget` | all of them; so does the caller's budget |
//! | margin | a request document with `budget` | it |
//! | reserve | a chat that allows its answer more (`max_tokens`) | it, by the larger amount |
//! | model | a chat with `model` | it |
//! | policy | a request document with `policy` | it |
//! | encoding | none states one | the caller's encoding or model |
//! | factor, settings for chats | none states one | the caller's |
//!
//! The limits of a configuration belong together: a reserve for a window of 128,000 tokens makes no sense for
//! `--budget 2k`. That is why a budget of another origin takes the place of all of them.

use std::borrow::Cow;

use cupel::config::{ChatSetting, ChatValue, Preset};
use cupel::{ChatSettings, Policy};

use crate::argument::Argument;
use crate::config::Config;
use crate::error::{Configured, Error};
use crate::notice::Notice;
use crate::options::{ChatOptions, Options, is_off};
use crate::prepared::Scope;

/// What an input states itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stated<'i> {
    /// Whether it is a chat; `None` if there is no input.
    pub(crate) is_chat: Option<bool>,
    /// The model that a chat names.
    pub(crate) model: Option<&'i str>,
    /// Whether a request document has a budget.
    pub(crate) has_budget: bool,
    /// Whether a request document has a policy.
    pub(crate) has_policy: bool,
    /// Whether the question goes over a range of budgets. Limits play no part in it then.
    pub(crate) is_over_budgets: bool,
}

impl<'i> Stated<'i> {
    /// Returns what a chat states.
    pub(crate) fn by_chat(model: Option<&'i str>, scope: Scope) -> Self {
        Self {
            is_chat: Some(true),
            model,
            is_over_budgets: scope == Scope::AnyBudget,
            ..Self::default()
        }
    }
}

/// The options for one input.
pub(crate) struct Resolved<'o> {
    pub(crate) options: Cow<'o, Options>,
    /// What is from the configuration.
    pub(crate) used: Vec<Argument>,
}

/// What of a configuration applies to an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedConfig {
    /// The name of the configuration.
    pub name: String,
    /// What it sets for this input, in the order of [`Argument::all`].
    pub arguments: Vec<Argument>,
}

impl Options {
    /// Returns the options for an input that states this.
    pub(crate) fn resolved(&self, stated: &Stated<'_>) -> Resolved<'_> {
        let Some(config) = &self.config else {
            return Resolved {
                options: Cow::Borrowed(self),
                used: Vec::new(),
            };
        };
        let given = &config.options;
        let mut merged = self.clone();
        let mut used = Used(Vec::new());
        if self.budget.budget.is_none() && !stated.has_budget && !stated.is_over_budgets {
            let (to, from) = (&mut merged.budget, &given.budget);
            used.fill(Argument::Budget, &mut to.budget, from.budget.as_ref());
            used.fill(Argument::Target, &mut to.target, from.target.as_ref());
            used.fill(Argument::Reserve, &mut to.reserve, from.reserve.as_ref());
            if !from.slots.is_empty() {
                // A later slot of the same kind takes precedence.
                to.slots.splice(..0, from.slots.iter().cloned());
                used.0.push(Argument::Slot);
            }
        }
        if !stated.has_budget {
            let (to, from) = (&mut merged.budget.margin, &given.budget.margin);
            used.fill(Argument::Margin, to, from.as_ref());
        }
        if stated.model.is_none() {
            let (to, from) = (&mut merged.budget.model, &given.budget.model);
            used.fill(Argument::Model, to, from.as_ref());
        }
        let is_usable = config.policy_is_for(stated);
        if !stated.has_policy && is_usable {
            used.fill(Argument::Policy, &mut merged.policy, given.policy.as_ref());
        }
        // A model on the command line is to count with its own encoding.
        if self.budget.model.is_none() {
            let (to, from) = (&mut merged.counter.counter, &given.counter.counter);
            used.fill(Argument::Encoding, to, from.as_ref());
        }
        let (to, from) = (&mut merged.counter.factor, &given.counter.factor);
        used.fill(Argument::Factor, to, from.as_ref());
        if stated.is_chat != Some(false) {
            let named = self.policy.as_ref().map(|policy| &policy.policy);
            for setting in config.settings_for(named, &self.chat) {
                // A summary takes the place of a marker.
                if setting.name() == "marker" && self.summary_tokens.is_some() {
                    continue;
                }
                give(&mut merged.chat, config, setting);
                used.0.push(Argument::Chat(setting.name()));
            }
        }
        Resolved {
            options: Cow::Owned(merged),
            used: used.0,
        }
    }

    /// Returns the settings for a chat that apply to a policy of the caller.
    pub(crate) fn chat_for(&self, policy: &Policy) -> Cow<'_, ChatOptions> {
        let Some(config) = &self.config else {
            return Cow::Borrowed(&self.chat);
        };
        let mut chat = self.chat.clone();
        for setting in config.settings_for(Some(policy), &self.chat) {
            give(&mut chat, config, setting);
        }
        Cow::Owned(chat)
    }
}

/// The arguments that are filled from the configuration.
struct Used(Vec<Argument>);

impl Used {
    fn fill<T: Clone>(&mut self, argument: Argument, to: &mut Option<T>, from: Option<&T>) {
        if to.is_none() && from.is_some() {
            *to = from.cloned();
            self.0.push(argument);
        }
    }
}

/// Gives a setting the value of the configuration.
fn give(chat: &mut ChatOptions, config: &Config, setting: &ChatSetting) {
    let mut settings = config.options.chat.settings.clone();
    chat.value(setting)
        .copy_from((setting.value)(&mut settings));
}

impl Config {
    /// Returns whether the policy is one for the input: a preset is for chats or for items.
    fn policy_is_for(&self, stated: &Stated<'_>) -> bool {
        match (self.preset.map(Preset::is_for_chats), stated.is_chat) {
            (Some(is_for_chats), Some(is_chat)) => is_for_chats == is_chat,
            _ => true,
        }
    }

    /// Returns the settings for chats that the caller does not give. A policy that the caller names keeps the settings
    /// that it states, and does not get those that only a ladder follows if it has none.
    fn settings_for(
        &self,
        named: Option<&Policy>,
        caller: &ChatOptions,
    ) -> impl Iterator<Item = &'static ChatSetting> {
        let by_caller: Vec<&str> = caller.given().map(ChatSetting::name).collect();
        let mut given = self.options.chat.settings.clone();
        let named = named.map(|policy| (policy.chat().clone(), policy.slicer().ladder().is_some()));
        let settings = self.options.chat.given();
        settings.filter(move |setting| {
            let applies = match &named {
                None => true,
                Some((stated, has_ladder)) => {
                    let value = (setting.value)(&mut given);
                    let is_followed = *has_ladder || !setting.needs_ladder || is_off(&value);
                    is_followed && is_default(setting, stated)
                }
            };
            applies && !by_caller.contains(&setting.name())
        })
    }
}

/// Returns whether a setting has its default.
fn is_default(setting: &ChatSetting, settings: &ChatSettings) -> bool {
    let (mut settings, mut defaults) = (settings.clone(), ChatSettings::default());
    let value: ChatValue<'_> = (setting.value)(&mut settings);
    value == (setting.value)(&mut defaults)
}

impl Resolved<'_> {
    /// Returns whether a value is from the configuration.
    pub(crate) fn is_configured(&self, argument: Argument) -> bool {
        self.used.contains(&argument)
    }

    /// Returns the name of the configuration, if the value is from it.
    pub(crate) fn origin(&self, argument: Argument) -> Option<&str> {
        let config = self.options.config.as_ref();
        config
            .filter(|_| self.is_configured(argument))
            .map(|it| it.name())
    }

    /// Returns what of the configuration applies, if there is one that sets something.
    pub(crate) fn used_config(&self) -> Option<UsedConfig> {
        let config = self.options.config.as_ref();
        let config = config.filter(|config| !config.is_empty())?;
        let arguments = Argument::all().filter(|argument| self.is_configured(*argument));
        Some(UsedConfig {
            name: config.name().to_owned(),
            arguments: arguments.collect(),
        })
    }

    /// Names the configuration in an error about one of its values.
    pub(crate) fn blame(&self, error: Error) -> Error {
        let Some(config) = self
            .options
            .config
            .as_ref()
            .filter(|_| !self.used.is_empty())
        else {
            return error;
        };
        let place = error.argument().filter(|it| self.is_configured(*it));
        let place = place.and_then(|argument| config.place(argument));
        let error = error.configured(Configured {
            name: Some(config.name().to_owned()),
            arguments: self.used.clone(),
        });
        match place {
            Some(place) => error.or_at(|| place.clone()),
            None => error,
        }
    }

    /// Returns whether a notice is about what a caller asked for. A configuration is for many inputs: a setting that one
    /// of them has no use for is not worth a warning.
    pub(crate) fn is_relevant(&self, notice: &Notice) -> bool {
        let setting = match notice {
            Notice::NoBreakpoints(_) => "cache_breakpoints",
            Notice::UnusedTools { .. } => "tool_results",
            _ => return true,
        };
        !self.is_configured(Argument::Chat(setting))
    }
}

impl UsedConfig {
    /// Returns the name and what it sets: `cupel.toml (budget, chat.pin)`.
    pub fn describe(&self) -> String {
        let names = self.arguments.iter().map(|argument| argument.key());
        let names: Vec<String> = names.collect();
        if names.is_empty() {
            format!("{} (nothing applies)", self.name)
        } else {
            format!("{} ({})", self.name, names.join(", "))
        }
    }
}
