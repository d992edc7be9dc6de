//! [`NamedPolicy`]: a policy and the name that answers show.

use std::collections::BTreeSet;

use cupel::config::{PolicyConfig, Preset, nearest_name, preset, presets};
use cupel::{Policy, ToolResults};
use cupel_chat::{Chat, Message, default_policy};

use crate::error::{Error, Fault};
use crate::notice::Notice;
use crate::source::Source;

/// The presets that are used without a policy: for chats and for items.
const CHATS_POLICY: &str = "agent";
const ITEMS_POLICY: &str = "chat";

/// A policy and its name. The name is for people; it may be that of a preset, of a file or any other.
#[derive(Debug, Clone)]
pub struct NamedPolicy {
    /// The name.
    pub name: String,
    /// The policy.
    pub policy: Policy,
}

impl NamedPolicy {
    /// Creates a named policy.
    pub fn new(name: impl Into<String>, policy: Policy) -> Self {
        Self {
            name: name.into(),
            policy,
        }
    }

    /// Finds a policy by the name of a preset, else by that of a document, which `load` returns if there is one.
    ///
    /// # Errors
    ///
    /// The error of `load`, [`Fault::UnknownPolicy`] without a document, or the fault of the document.
    pub fn find<E: From<Error>>(
        name: &str,
        load: impl FnOnce(&str) -> Result<Option<Source>, E>,
    ) -> Result<Self, E> {
        let config = find_config(name, load)?;
        Ok(Self::of_config(name, &config)?)
    }

    /// Builds a policy from a document.
    ///
    /// # Errors
    ///
    /// [`Fault::Policy`] if a value is out of its range.
    pub fn of_config(name: impl Into<String>, config: &PolicyConfig) -> Result<Self, Error> {
        let policy = config.build();
        let policy = policy.map_err(|error| Error::new(Fault::Policy(error.to_string())))?;
        Ok(Self::new(name, policy))
    }

    /// Returns the default for chats.
    pub fn for_chats() -> Self {
        Self::new(CHATS_POLICY, default_policy())
    }

    /// Returns the default for items.
    ///
    /// # Errors
    ///
    /// [`Fault::Internal`] if the preset is invalid.
    pub fn for_items() -> Result<Self, Error> {
        Self::preset_named(ITEMS_POLICY)
    }

    /// Returns the default policy for documents with the scores of a retriever: the preset `rag`. That for other items
    /// ranks by time, and documents have none.
    ///
    /// # Errors
    ///
    /// [`Fault::Internal`], because the preset exists.
    pub fn for_documents() -> Result<Self, Error> {
        Self::preset_named("rag")
    }

    fn preset_named(name: &str) -> Result<Self, Error> {
        let policy = Policy::preset(name).map_err(Error::internal)?;
        Ok(Self::new(name, policy))
    }

    /// Returns the policy of a request document.
    pub(crate) fn of_request(config: &PolicyConfig) -> Result<Self, Error> {
        Self::of_config(config.name.as_deref().unwrap_or("of the request"), config)
    }

    /// Returns notices about what has no effect on a chat, or not the one that is meant.
    pub(crate) fn unsuited_to(&self, chat: &Chat) -> impl Iterator<Item = Notice> {
        let shape = chat.shape();
        let sets_breakpoints = self.policy.chat().cache_breakpoints;
        let no_breakpoints = sets_breakpoints && !shape.has_cache_breakpoints();
        let no_breakpoints = no_breakpoints.then_some(Notice::NoBreakpoints(shape));
        let notices = self.preset_for_items().into_iter().chain(no_breakpoints);
        notices.chain(self.unused_tools(chat))
    }

    /// Returns a notice if settings name tools that no message calls. A chat without calls may still get them.
    fn unused_tools(&self, chat: &Chat) -> Option<Notice> {
        let settings = &self.policy.chat().tool_results;
        if settings.is_empty() {
            return None;
        }
        let calls = chat.messages().flat_map(Message::calls);
        let called: BTreeSet<&str> = calls.map(|call| call.name).collect();
        let is_called = |name: &&String| called.iter().any(|tool| ToolResults::is_for(name, tool));
        let unused = settings.keys().filter(|name| !is_called(name));
        let tools: Vec<String> = unused.cloned().collect();
        let first = tools.first().filter(|_| !called.is_empty())?;
        let near = nearest_name(first, called.iter().copied());
        Some(Notice::UnusedTools {
            near: near.map(str::to_owned),
            tools,
        })
    }

    /// Returns a notice if this is a preset for items.
    fn preset_for_items(&self) -> Option<Notice> {
        preset(&self.name)
            .ok()
            .filter(|preset| !preset.is_for_chats())?;
        let for_chats = presets().iter().filter(|preset| preset.is_for_chats());
        Some(Notice::PresetForItems {
            preset: self.name.clone(),
            for_chats: for_chats.map(Preset::name).collect(),
        })
    }

    /// Returns the policy for a query. Without a query, a chat has its last user turn as the query. Items have none,
    /// so a policy that needs one is an error.
    pub(crate) fn with_query(mut self, query: Option<&str>, is_chat: bool) -> Result<Self, Error> {
        match query {
            Some(query) => self.policy = self.policy.with_query(query),
            None if !is_chat && self.policy.needs_query() => {
                return Err(Error::new(Fault::NeedsQuery { policy: self.name }));
            }
            None => {}
        }
        Ok(self)
    }
}

/// Finds a policy as data: a preset, else the document that `load` returns.
///
/// # Errors
///
/// As [`NamedPolicy::find`].
pub fn find_config<E: From<Error>>(
    name: &str,
    load: impl FnOnce(&str) -> Result<Option<Source>, E>,
) -> Result<PolicyConfig, E> {
    let unknown = match preset(name) {
        Ok(preset) => return Ok(preset.config().clone()),
        Err(error) => error,
    };
    match load(name)? {
        Some(source) => Ok(source.policy()?),
        None => Err(Error::new(Fault::UnknownPolicy(unknown)).into()),
    }
}

/// Returns a notice if a query is given and no policy reads it.
pub(crate) fn unread_query<'p>(
    query: Option<&str>,
    policies: impl IntoIterator<Item = &'p NamedPolicy> + Clone,
) -> Option<Notice> {
    let is_read = || {
        policies
            .clone()
            .into_iter()
            .any(|it| it.policy.needs_query())
    };
    if query.is_none() || is_read() {
        return None;
    }
    let policies = policies.into_iter().map(|policy| policy.name.clone());
    Some(Notice::UnreadQuery {
        policies: policies.collect(),
    })
}
