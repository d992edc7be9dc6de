//! [`Options`]: everything that a caller can set about a question, each stated once.

use std::sync::Arc;

use cupel::config::{CHAT_SETTINGS, ChatSetting, ChatValue};
use cupel::{ChatSettings, Policy, Shorten};
use cupel_chat::{Shape, TokenCounter};

use crate::argument::Argument;
use crate::budget::BudgetOptions;
use crate::config::Config;
use crate::counter::{CounterOptions, Counters};
use crate::error::{Error, Fault};
use crate::policy::NamedPolicy;
use crate::precedence::{Stated, UsedConfig};
use crate::prepared::Scope;

/// How an input is read, counted and run. The default of every field is to follow the input: its format, its
/// model, its policy.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The limits.
    pub budget: BudgetOptions,
    /// The policy. Defaults to the policy of the request, else to the preset `agent` for a chat, and `chat` for
    /// items.
    pub policy: Option<NamedPolicy>,
    /// The question that the window is to answer, for policies that score by relevance. Defaults to `query` of
    /// the request, for a chat to the text of the last user turn.
    pub query: Option<String>,
    /// How the input is read.
    pub read: ReadOptions,
    /// How tokens are counted.
    pub counter: CounterOptions,
    /// How a chat is trimmed.
    pub chat: ChatOptions,
    /// Summaries take the place of markers, and have at most this many tokens. Defaults to none. The caller makes them:
    /// [`PreparedSession::fit_summarized`](crate::PreparedSession::fit_summarized).
    pub summary_tokens: Option<i64>,
    /// What applies where neither these options nor the input state something. Defaults to none.
    pub config: Option<Arc<Config>>,
}

impl Options {
    /// Checks what can be checked before there is an input: amounts, and options for chats that the policy would
    /// ignore.
    ///
    /// # Errors
    ///
    /// [`Fault::Amount`], [`Fault::Percent`], [`Fault::NeedsLadder`], and those of summaries.
    pub fn check(&self) -> Result<(), Error> {
        let resolved = self.resolved(&Stated::by_chat(None, Scope::OneBudget));
        let check = |options: &Self| {
            options.budget.check()?;
            let policy = options.chat_policy(NamedPolicy::for_chats)?;
            options.check_summaries(&policy)
        };
        check(&resolved.options).map_err(|error| resolved.blame(error))
    }

    /// Returns the counter of items that do not state their tokens.
    pub(crate) fn counter_of_items(&self) -> Result<Arc<dyn TokenCounter>, Error> {
        let stated = Stated {
            is_chat: Some(false),
            ..Stated::default()
        };
        let resolved = self.resolved(&stated);
        let model = resolved.options.budget.model.as_deref();
        resolved.options.counter.counter(model, None)
    }

    /// Returns the counters that [`count`](crate::count) shows: the one of these options, otherwise those that it
    /// compares; and what of the configuration they follow from.
    ///
    /// # Errors
    ///
    /// [`Fault::Factor`].
    pub fn counters(&self) -> Result<(Counters, Option<UsedConfig>), Error> {
        let resolved = self.resolved(&Stated::default());
        let used = resolved.used_config().map(|mut used| {
            let is_counter = |it: &Argument| matches!(it, Argument::Encoding | Argument::Factor);
            used.arguments.retain(is_counter);
            used
        });
        Ok((resolved.options.counter.compared()?, used))
    }

    /// Returns the policy of a chat, or the default for the question, with the [`ChatOptions`].
    pub(crate) fn chat_policy(&self, default: fn() -> NamedPolicy) -> Result<NamedPolicy, Error> {
        self.chat.apply(self.policy.clone().unwrap_or_else(default))
    }
}

/// How an input is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The chat format. Detected by default.
    pub shape: Option<Shape>,
    /// The JSON pointer of the chat in its document. Defaults to where a chat is found.
    pub at: Option<String>,
}

/// How a chat is trimmed: values for some of the [`CHAT_SETTINGS`]. Each takes precedence over the policy.
///
/// ```
/// use cupel_app::Options;
///
/// let mut options = Options::default();
/// options.chat.give(&["max_result", "strict"]).max_result = Some(2_000);
/// options.chat.settings.strict = true;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatOptions {
    /// The values. Those that are not given have no effect.
    pub settings: ChatSettings,
    /// The names of the settings that are given, each one of the [`CHAT_SETTINGS`].
    given: Vec<&'static str>,
}

/// The text that means none.
const OFF: &str = "off";

impl ChatOptions {
    /// Gives the settings of these names, and returns all settings to set their values.
    pub fn give(&mut self, names: &[&'static str]) -> &mut ChatSettings {
        self.given.extend(names);
        &mut self.settings
    }

    /// Gives a setting, and returns its value to set it. `off` means none for a text.
    pub fn value(&mut self, setting: &ChatSetting) -> ChatValue<'_> {
        (setting.value)(self.give(&[setting.name()]))
    }

    /// Returns a policy with these options.
    ///
    /// # Errors
    ///
    /// [`Fault::NeedsLadder`] for an option that the policy would ignore.
    pub fn apply(&self, named: NamedPolicy) -> Result<NamedPolicy, Error> {
        let mut given = self.settings.clone();
        let mut chat = named.policy.chat().clone();
        for setting in self.given() {
            let mut value = (setting.value)(&mut given);
            // In a policy, the empty text turns markers off.
            if let ChatValue::Text(Some(text)) = &mut value
                && text == OFF
            {
                text.clear();
            }
            if setting.needs_ladder && !is_off(&value) {
                let argument = Argument::Chat(setting.name());
                check_ladder(&named.policy, &named.name, argument)?;
            }
            (setting.value)(&mut chat).copy_from(value);
        }
        let policy = named.policy.to_builder().chat(chat).build();
        Ok(NamedPolicy {
            name: named.name,
            policy: policy.map_err(Error::internal)?,
        })
    }

    /// Returns the settings that are given, in the order of the table. A list without messages is not given.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static ChatSetting> {
        let has_no_messages = self.settings.pin.is_empty();
        let given = CHAT_SETTINGS.iter();
        let given = given.filter(|it| self.given.contains(&it.name()));
        given.filter(move |it| !(has_no_messages && it.name() == "pin"))
    }
}

/// Returns whether a value turns its setting off. A policy without a ladder does nothing with it either.
pub(crate) fn is_off(value: &ChatValue<'_>) -> bool {
    match value {
        ChatValue::Switch(value) => !**value,
        ChatValue::Text(value) => value.as_ref().is_none_or(String::is_empty),
        ChatValue::Shorten(value) => **value == Shorten::Off,
        ChatValue::Tools(value) => value.is_empty(),
        _ => false,
    }
}

/// Checks that a policy follows an option that only a ladder follows.
///
/// # Errors
///
/// [`Fault::NeedsLadder`].
pub fn check_ladder(policy: &Policy, name: &str, argument: Argument) -> Result<(), Error> {
    if policy.slicer().ladder().is_some() {
        return Ok(());
    }
    Err(Error::new(Fault::NeedsLadder {
        argument,
        policy: name.to_owned(),
    }))
}
