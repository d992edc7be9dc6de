//! Chat formats and token counters on the command line.

use clap::Args;
use cupel_app::{CounterName, CounterOptions};

use crate::input::ReadArgs;

/// How an input is read and its tokens are counted.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) read: ReadArgs,

    /// Encoding, such as o200k. Default: the model's
    ///
    /// `heuristic` is an estimate for models whose encoding is not public. Without a known model it is o200k.
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    encoding: Option<CounterName>,

    /// Multiply counted tokens, for a provider that counts differently
    #[arg(
        long,
        hide_short_help = true,
        value_name = "NUMBER",
        allow_hyphen_values = true
    )]
    factor: Option<f64>,
}

impl ChatArgs {
    pub(crate) fn counter(&self) -> CounterOptions {
        CounterOptions {
            counter: self.encoding.map(CounterName::counter),
            factor: self.factor,
        }
    }
}
