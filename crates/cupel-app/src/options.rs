//! [`Options`]: everything that a caller can set about a question, each stated once.

use cupel::{Policy, Shorten};
use cupel_chat::Shape;

use crate::argument::Argument;
use crate::budget::BudgetOptions;
use crate::counter::CounterOptions;
use crate::error::{Error, Fault};
use crate::policy::NamedPolicy;

/// How an input is read, counted and run. The default of every field is to follow the input: its format, its
/// model, its policy.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The limits.
    pub budget: BudgetOptions,
    /// The policy. Defaults to the policy of the request, else to the preset `agent` for a chat, `session` for a
    /// chat with a state, and `chat` for items.
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
}

impl Options {
    /// Checks what can be checked before there is an input: amounts, and options for chats that the policy would
    /// ignore.
    ///
    /// # Errors
    ///
    /// [`Fault::Amount`] and [`Fault::NeedsLadder`].
    pub fn check(&self) -> Result<(), Error> {
        self.budget.check()?;
        self.chat_policy(false).map(drop)
    }

    /// Returns the policy of a chat with the [`ChatOptions`].
    pub(crate) fn chat_policy(&self, has_state: bool) -> Result<NamedPolicy, Error> {
        let policy = self.policy.clone();
        let policy = policy.unwrap_or_else(|| NamedPolicy::for_chats(has_state));
        self.chat.apply(policy)
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

/// How a chat is trimmed: the table `chat` of a policy document. Each field takes precedence over the policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatOptions {
    /// Messages that always stay: positions, ranges of positions and roles, such as `3`, `3-5` and `role:system`.
    pub pin: Vec<String>,
    /// Whether the task, the first user turn, always stays. Defaults to `true`.
    pub keep_task: Option<bool>,
    /// The most tokens of a tool result, at least 1, even if all fits. Defaults to no limit.
    pub max_result: Option<i64>,
    /// Which texts may be shortened. Defaults to [`Shorten::All`].
    pub shorten: Option<Shorten>,
    /// The text in the place of dropped messages; `{n}` becomes their number, and `off` means none. Defaults to a
    /// note between two user turns only.
    pub marker: Option<String>,
    /// The tokens that a cut removes at least. Defaults to as many as needed.
    pub step: Option<i64>,
    /// Whether what the provider rejects is dropped, even if all fits. Defaults to `false`.
    pub strict: bool,
}

/// The marker that means none.
pub(crate) const MARKER_OFF: &str = "off";

impl ChatOptions {
    /// Returns a policy with these options.
    ///
    /// # Errors
    ///
    /// [`Fault::NeedsLadder`] for an option that the policy would ignore.
    pub fn apply(&self, named: NamedPolicy) -> Result<NamedPolicy, Error> {
        if let Some(argument) = self.needs_ladder() {
            check_ladder(&named.policy, &named.name, argument)?;
        }
        if *self == Self::default() {
            return Ok(named);
        }
        let mut chat = named.policy.chat().clone();
        if !self.pin.is_empty() {
            chat.pin.clone_from(&self.pin);
        }
        chat.keep_task = self.keep_task.unwrap_or(chat.keep_task);
        chat.max_result = self.max_result.or(chat.max_result);
        chat.shorten = self.shorten.unwrap_or(chat.shorten);
        if let Some(marker) = &self.marker {
            // In a policy, the empty text turns markers off.
            let is_off = marker == MARKER_OFF;
            chat.marker = Some(if is_off {
                String::new()
            } else {
                marker.clone()
            });
        }
        chat.step = self.step.or(chat.step);
        chat.strict |= self.strict;
        let policy = named.policy.to_builder().chat(chat).build();
        Ok(NamedPolicy {
            name: named.name,
            policy: policy.map_err(Error::internal)?,
        })
    }

    /// Returns the first option that only a policy with a ladder follows.
    fn needs_ladder(&self) -> Option<Argument> {
        let shortens = self.shorten.is_some_and(|shorten| shorten != Shorten::Off);
        let marks = self.marker.as_ref().is_some_and(|it| it != MARKER_OFF);
        first_given(&[
            (Argument::KeepTask, self.keep_task == Some(true)),
            (Argument::Shorten, shortens),
            (Argument::Marker, marks),
        ])
    }

    /// Returns the first option that is given.
    pub(crate) fn given(&self) -> Option<Argument> {
        first_given(&[
            (Argument::Pin, !self.pin.is_empty()),
            (Argument::KeepTask, self.keep_task.is_some()),
            (Argument::MaxResult, self.max_result.is_some()),
            (Argument::Shorten, self.shorten.is_some()),
            (Argument::Marker, self.marker.is_some()),
            (Argument::Step, self.step.is_some()),
            (Argument::Strict, self.strict),
        ])
    }
}

fn first_given(options: &[(Argument, bool)]) -> Option<Argument> {
    let given = options.iter().find(|(_, is_given)| *is_given);
    given.map(|(argument, _)| *argument)
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
