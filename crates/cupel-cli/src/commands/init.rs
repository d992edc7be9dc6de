//! `cupel init`

use std::path::{Path, PathBuf};

use clap::Args;
use cupel_app::{Argument, Config, Source, counter_of_model};

use crate::config::{FILE, load_policy, search_above};
use crate::failure::{Exit, Failure};
use crate::output::{Output, write_file};
use crate::replace::write_new_file;

/// Write a cupel.toml with every key as a comment
///
/// The file is in the working directory, or where -o says. One that is there stays, unless --force replaces it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Init {
    /// Policy: a preset or a file (see `cupel policy list`)
    #[arg(long, value_name = "NAME|FILE")]
    policy: Option<String>,

    /// Token limit: 8000, 8k, or 70% of the model's window
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true)]
    budget: Option<String>,

    /// Model of inputs that name none
    #[arg(long, value_name = "NAME")]
    model: Option<String>,

    /// Replace the file if there is one
    #[arg(long)]
    force: bool,
}

const EXAMPLES: &str = "\
Examples:
  cupel init
  cupel init --policy agent --budget 70% --model gpt-4o
  cupel init -o service/cupel.toml";

impl Init {
    pub(crate) fn run(self, output: &mut Output) -> Result<Exit, Failure> {
        let path = output.take_file().unwrap_or_else(|| PathBuf::from(FILE));
        let given = [
            (Argument::Budget, &self.budget),
            (Argument::Policy, &self.policy),
            (Argument::Model, &self.model),
        ];
        let given = given
            .iter()
            .filter_map(|(argument, value)| Some((*argument, value.as_deref()?)));
        let given: Vec<(Argument, &str)> = given.collect();
        let text = Config::template(&given);
        // What is written can be read: a wrong value is an error now, not with the next command.
        let source = Source::new(path.display().to_string(), &text);
        Config::read(&source, &mut |name| load_policy(&path, name))?;
        if let Some(model) = &self.model {
            counter_of_model(model)?;
        }
        if self.force {
            write_file(&path, &text)?;
        } else if !write_new_file(&path, &text)? {
            let failure = Failure::input(format!("{} exists already", path.display()));
            return Err(failure.help("edit it, or replace it with --force"));
        }
        output.note(format_args!("wrote {}", path.display()));
        // Only the nearest file is read.
        if let Some(other) = search_above().filter(|_| path == Path::new(FILE)) {
            output.note(format_args!(
                "it takes the place of {} here",
                other.display()
            ));
        }
        if given.is_empty() {
            output.note("it sets nothing yet: remove the # of a key to set it");
        }
        Ok(Exit::Success)
    }
}
