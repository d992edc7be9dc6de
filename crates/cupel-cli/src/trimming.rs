//! How a chat is trimmed, on the command line: the table `chat` of a policy document as options.

use clap::{Args, ValueEnum};
use cupel::{Policy, Shorten};

use crate::budget::tokens;
use crate::failure::Failure;

/// How a chat is trimmed. Each option takes precedence over the policy.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Chats")]
pub(crate) struct TrimmingArgs {
    /// Messages that always stay: 0,3-5,role:system
    ///
    /// Positions, ranges of positions and roles.
    #[arg(long, value_name = "MESSAGES", value_delimiter = ',')]
    pin: Vec<String>,

    /// Always keep the task, the first user turn
    #[arg(long, overrides_with = "no_keep_task", hide_short_help = true)]
    keep_task: bool,

    /// Let the task be dropped like other messages
    #[arg(long, overrides_with = "keep_task", hide_short_help = true)]
    no_keep_task: bool,

    /// Shorten every tool result to this, even if all fits
    #[arg(long, value_name = "TOKENS", value_parser = at_least_one)]
    max_result: Option<i64>,

    /// Texts that may be shortened: off, old or all
    ///
    /// `off` none, `old` old tool results and answers, `all` also the task and the newest tool results as a
    /// last resort.
    #[arg(long, value_enum, value_name = "WHICH", hide_possible_values = true)]
    shorten: Option<ShortenArg>,

    /// Text in the place of dropped messages
    ///
    /// An n in braces becomes their number. `off` for none. Default: a note between two user turns only.
    #[arg(long, hide_short_help = true, value_name = "TEXT|off")]
    marker: Option<String>,

    /// Cut in steps of this many tokens, so that the windows of a growing chat share a longer prefix
    #[arg(long, hide_short_help = true, value_name = "TOKENS", value_parser = at_least_one)]
    step: Option<i64>,

    /// Drop what the provider rejects, even if all fits
    ///
    /// Such as a tool result without its call. Default: a chat that fits is not changed, and a warning
    /// names such messages.
    #[arg(long)]
    strict: bool,
}

/// The values of `--shorten`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ShortenArg {
    Off,
    Old,
    All,
}

/// Parses a token count of at least 1.
pub(crate) fn at_least_one(text: &str) -> Result<i64, String> {
    match tokens(text)? {
        0 => Err("expected at least 1 token".to_owned()),
        tokens => Ok(tokens),
    }
}

impl TrimmingArgs {
    /// Returns the policy with these options. Fails for an option that the policy would ignore.
    pub(crate) fn apply(&self, policy: &Policy, name: &str) -> Result<Policy, Failure> {
        if let Some(option) = self.needs_ladder() {
            check_ladder(policy, name, option)?;
        }
        let mut chat = policy.chat().clone();
        if !self.pin.is_empty() {
            chat.pin.clone_from(&self.pin);
        }
        if self.keep_task || self.no_keep_task {
            chat.keep_task = self.keep_task;
        }
        if self.max_result.is_some() {
            chat.max_result = self.max_result;
        }
        if let Some(shorten) = self.shorten {
            chat.shorten = match shorten {
                ShortenArg::Off => Shorten::Off,
                ShortenArg::Old => Shorten::Old,
                ShortenArg::All => Shorten::All,
            };
        }
        if let Some(marker) = &self.marker {
            chat.marker = Some(match marker.as_str() {
                "off" => String::new(),
                text => text.to_owned(),
            });
        }
        if self.step.is_some() {
            chat.step = self.step;
        }
        chat.strict |= self.strict;
        let policy = policy.to_builder().chat(chat).build();
        policy.map_err(|error| Failure::internal(error.to_string()))
    }

    /// Returns the first option that only a policy with a ladder follows.
    fn needs_ladder(&self) -> Option<&'static str> {
        let shortens = matches!(self.shorten, Some(ShortenArg::Old | ShortenArg::All));
        let marks = self.marker.as_deref().is_some_and(|marker| marker != "off");
        first_given(&[
            ("--keep-task", self.keep_task),
            ("--shorten", shortens),
            ("--marker", marks),
        ])
    }

    /// Returns the first option that is given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        first_given(&[
            ("--pin", !self.pin.is_empty()),
            ("--keep-task", self.keep_task),
            ("--no-keep-task", self.no_keep_task),
            ("--max-result", self.max_result.is_some()),
            ("--shorten", self.shorten.is_some()),
            ("--marker", self.marker.is_some()),
            ("--step", self.step.is_some()),
            ("--strict", self.strict),
        ])
    }
}

fn first_given(options: &[(&'static str, bool)]) -> Option<&'static str> {
    let given = options.iter().find(|(_, is_given)| *is_given);
    given.map(|(option, _)| *option)
}

/// Fails for an option that a policy without a ladder would ignore.
pub(crate) fn check_ladder(policy: &Policy, name: &str, option: &str) -> Result<(), Failure> {
    if policy.slicer().ladder().is_some() {
        return Ok(());
    }
    let message = format!(
        "{option} needs a policy with the slicer `ladder`, and the policy {name} has another"
    );
    Err(Failure::input(message).help("use --policy agent or session, or leave the option out"))
}
