//! The page of `cupel explain --html`: one self-contained file.
//!
//! `page.html` is a template for `page.css`, the scripts and the data as JSON ([`data`]). The content
//! security policy of the page allows only this style and this script, by their digests.

mod chat;
mod cuts;
mod data;
mod date;
mod lines;
mod number;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cupel::{ContextBudget, ContextItem, Pipeline};
use cupel_app::{Content, Error, Prepared};
use cupel_chat::ChatSweep;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

pub(crate) use chat::ChatPart;
use data::PageData;
pub(crate) use date::Date;

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
/// One module: the files share its scope.
const SCRIPT: &str = concat!(
    include_str!("script/data.js"),
    include_str!("script/text.js"),
    include_str!("script/dom.js"),
    include_str!("script/card.js"),
    include_str!("script/transcript.js"),
    include_str!("script/lists.js"),
    include_str!("script/budget.js"),
    include_str!("script/history.js"),
    include_str!("script/main.js"),
);

/// A run that a page shows.
pub(crate) struct Subject<'a> {
    pub(crate) title: &'a str,
    pub(crate) items: &'a [ContextItem],
    pub(crate) budget: &'a ContextBudget,
    pub(crate) pipeline: &'a Pipeline,
    /// `None` for items.
    pub(crate) chat: Option<ChatPart<'a>>,
    /// Words the reasons as `explain` does in the terminal.
    pub(crate) prepared: Option<&'a Prepared>,
    /// The windows of a policy with a replay, and those of the previous request.
    pub(crate) replayed: Option<&'a ChatSweep>,
    pub(crate) before: Option<&'a ChatSweep>,
    pub(crate) about: About,
}

/// What the footer names.
#[derive(Default, Serialize)]
pub(crate) struct About {
    pub(crate) policy: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// How the tokens are known.
    pub(crate) counter: String,
    pub(crate) format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) date: Option<Date>,
    pub(crate) version: &'static str,
}

/// Renders the page of an input, with the windows of other budgets. The same input gives the same bytes.
///
/// # Errors
///
/// As [`Prepared::run`] with its budget.
pub(crate) fn render(prepared: &Prepared, date: Option<Date>) -> Result<String, Error> {
    let pipeline = prepared.pipeline();
    let targets = data::targets(prepared.enough(), prepared.budget());
    let mut go_on = |_| ControlFlow::Continue(());
    let replayed = prepared.replayed(targets.clone(), &mut go_on)?;
    let before = prepared.replayed_before(targets)?;
    let mut subject = Subject::of(prepared, &pipeline, date);
    if let Some(replayed) = &replayed {
        subject = subject.with_replay(prepared, replayed, before.as_ref());
    }
    subject.render()
}

impl<'a> Subject<'a> {
    fn of(prepared: &'a Prepared, pipeline: &'a Pipeline, date: Option<Date>) -> Self {
        let setting = &prepared.setting;
        Self {
            title: setting.name(),
            items: prepared.items(),
            budget: &setting.budget,
            pipeline,
            chat: match (&prepared.content, &setting.counter) {
                (Content::Chat { chat, candidates }, Some(counter)) => {
                    let policy = &setting.policy.policy;
                    Some(ChatPart::new(chat, candidates, &**counter, policy))
                }
                _ => None,
            },
            prepared: Some(prepared),
            replayed: None,
            before: None,
            about: About {
                policy: setting.policy.name.clone(),
                model: setting.model.clone(),
                counter: setting.counted_by(),
                format: prepared.shape().name(),
                date,
                version: env!("CARGO_PKG_VERSION"),
            },
        }
    }

    /// Shows the windows of a replay: the messages as they were read, with all of their forms.
    fn with_replay(
        mut self,
        prepared: &'a Prepared,
        replayed: &'a ChatSweep,
        before: Option<&'a ChatSweep>,
    ) -> Self {
        let setting = &prepared.setting;
        if let (Content::Chat { chat, .. }, Some(counter)) = (&prepared.content, &setting.counter) {
            let policy = &setting.policy.policy;
            let part = ChatPart::new(chat, &replayed.candidates, &**counter, policy);
            self.chat = Some(part);
        }
        Self {
            items: &replayed.candidates,
            replayed: Some(replayed),
            before,
            ..self
        }
    }

    pub(crate) fn render(&self) -> Result<String, Error> {
        let data = PageData::new(self)?;
        Ok(assemble(&data.to_json()))
    }
}

fn assemble(data: &str) -> String {
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
        source_of(SCRIPT),
        source_of(STYLE)
    );
    // Data comes last: a placeholder inside it is not replaced.
    HTML.replace("{{policy}}", &policy)
        .replace("{{style}}", STYLE)
        .replace("{{script}}", SCRIPT)
        .replace("{{data}}", data)
}

/// Returns the source expression of a content security policy that allows exactly this text.
fn source_of(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}
