//! How a chat is trimmed, on the command line: the table `chat` of a policy document as options.

use clap::{Args, ValueEnum};
use cupel::Shorten;
use cupel_app::ChatOptions;

use crate::budget::tokens;

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
    pub(crate) fn options(&self) -> ChatOptions {
        ChatOptions {
            pin: self.pin.clone(),
            keep_task: (self.keep_task || self.no_keep_task).then_some(self.keep_task),
            max_result: self.max_result,
            shorten: self.shorten.map(|shorten| match shorten {
                ShortenArg::Off => Shorten::Off,
                ShortenArg::Old => Shorten::Old,
                ShortenArg::All => Shorten::All,
            }),
            marker: self.marker.clone(),
            step: self.step,
            strict: self.strict,
        }
    }
}
